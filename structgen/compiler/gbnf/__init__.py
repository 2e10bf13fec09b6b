"""llama.cpp's GBNF, and dialects of it: a grammar's text in, a pushdown program out.

Rules that don't call themselves are written out where they are mentioned; the others are called.

Read `reader` and `syntax` (with `characters`, `dialects` and `macros`), `facts`, `left_recursion` and `calls` (what
is called), `automata` (a rule as an automaton), `interiors` (insides of quoted texts, once), `lowering`, `compiler`.
"""
