"""Regexes: parsing them, and lowering them to automata over bytes."""
