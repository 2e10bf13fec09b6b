"""Automata with a stack: what JSON Schemas and GBNF grammars are lowered to.

Comes in: a `Program`, states with moves that read bytes, call, and return. Goes out: `PushdownTables`,
after a search for texts that can be read in ever more ways at once.

Read `program`, `special_tokens` (which may stand for parts of texts), `tables` (to the arrays that are stored and
run), `growing` (part by part), `ambiguity`.
"""
