"""Automata over bytes: nondeterministic and deterministic ones, and the operations on them."""
