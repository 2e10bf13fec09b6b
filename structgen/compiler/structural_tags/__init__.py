"""Structural tags: a `StructuralTag` and a vocabulary in, the pushdown program of its texts and tokens out.

Read `formats` first; `reader` makes them of JSON, `translation` nodes of a grammar as GBNF has them of these,
`tokens` finds the tokens they name, `linker` lowers part by part into one program. Free text is the automaton of Aho
and Corasick (`structgen.compiler.gbnf.free_text`).
"""
