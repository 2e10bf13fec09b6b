"""A grammar in Lark's syntax as rules over bytes, for programs that it is a part of.

Comes in: a `Grammar`. Goes out: a grammar of `structgen.compiler.gbnf.syntax`. Read `lowering` first; `lexemes` says
what the lexer allows where, `annotated` which of the parser's states matter to it.
"""
