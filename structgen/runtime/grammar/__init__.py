"""The engine of Lark's grammars: a lexer and an LALR(1) parser.

Comes in: `GrammarTables`. Goes out: a `Machine` whose configurations are threads: a lexer's state above a parser's
stack. Tokens that don't end a lexeme are decided by the lexer alone; for the others a kernel moves the parser
(docs/guide/grammars.md).

Read `tables`, `interned_machine`, `machine`, `lexer_threads`, `parser` (stacks), `partial_masks` (what a lexeme
decides) with `byte_kinds`, `mask_builder` with `kernel_gss` and `mask_graph` (what the kernel reads), `storage`,
`indentation`, `embedded` (definitions and special tokens), `walked_rows`; `completability` and `distances` are rooms
of their own.
"""
