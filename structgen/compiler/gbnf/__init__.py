"""llama.cpp's GBNF: a grammar's text in, a pushdown program out.

Rules that don't call themselves are written out where they are mentioned; the others are called.

Read `reader` and `syntax` (with `characters`), `facts` and `calls` (what is called), `automata` (a rule as an
automaton), `interiors` (insides of quoted texts, once), `lowering`, `compiler`.
"""
