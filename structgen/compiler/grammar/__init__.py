"""Grammars in Lark's language: loading them, and the tables of their lexers and parsers."""
