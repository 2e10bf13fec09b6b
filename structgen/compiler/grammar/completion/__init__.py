"""Which ends of lexemes can always be completed, proved once, so that no step has to look ahead.

Comes in: a lexer and a parser. Goes out: for each end of a lexeme whether it is loose: whatever was read can go on.

Read `endings`, `completing` (ways to complete what the parser has taken), `writable` (whether the lexer can read such
a way); `pop_summaries` works out ahead what steps may ask for.
"""
