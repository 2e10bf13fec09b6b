"""Which ends of lexemes can always be completed, proved once, so that no step has to look ahead.

Comes in: a lexer and a parser. Goes out: for each end of a lexeme whether it is unconstrained:
whatever was read can go on.

Read `completing` (a proof for most grammars), `endings`, then `lines` and `separators` for indentation;
`pop_summaries` works out ahead what steps may ask for.
"""
