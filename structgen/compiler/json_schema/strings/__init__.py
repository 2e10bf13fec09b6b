"""Sets of strings, closed under and, or and not: lengths, patterns, formats, constants.

Comes in: assertions on strings. Goes out: a `Dfa` over the bytes of JSON texts, between the quotes.

Read `strings` (the sets), `languages` (a tree of operations until an automaton is needed), `trees` (what a pattern's
tree says by itself), `words`, `lengths`, `formats`, `json_escapes` (values to JSON texts).
"""
