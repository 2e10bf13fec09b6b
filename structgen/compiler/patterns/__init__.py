"""Regular expressions: Python's `re`, ECMA-262 and Rust's crate, from text to a byte automaton.

Comes in: a pattern and its flags. Goes out: an `Nfa` or the `Tables` of a `Dfa`. Look-around is exact, by
intersection and complement.

Read `syntax` (the tree), `reader`, `parser`, `ecma` and `rust` (one reader and its dialects, which `dialects`
chooses among), `respelled` (one dialect in the spelling of another), `lower` (the tree as an
automaton), `look_arounds`, and `compiler`, which leads a `Regex` through all of them.
"""
