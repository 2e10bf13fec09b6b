"""Lark's grammars: a text in, the tables of a lexer and an LALR(1) parser out.

Phases, a room each: `load` (Lark expands the text) -> `lexer` (one automaton that reads as Lark's scanners do) and
`parser` (LALR(1), conflicts decided or kept) -> `completion` (which ends of lexemes need no further look, proved
once)
-> `GrammarTables`. `diagnostics` says what a grammar's author should know.

Read `compiler`, which calls the phases in order; docs/guide/grammars.md says what is accepted.
"""
