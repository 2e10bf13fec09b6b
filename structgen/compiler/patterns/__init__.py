"""Regular expressions: Python's `re` and ECMA-262, from text to a byte automaton.

Comes in: a pattern and its flags. Goes out: an `Nfa` or the `Tables` of a `Dfa`. Look-around is exact, by
intersection and complement.

Read `syntax` (the tree), `reader`, `parser` and `ecma` (one reader and its two dialects), `lower` (the tree as an
automaton), `look_arounds`, and `compiler`, which leads a `Regex` through all of them.
"""
