"""Engines' own doors: one module for each, which loads nothing of its engine until it is used."""
