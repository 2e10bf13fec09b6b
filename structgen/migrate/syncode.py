"""Grammars of syncode."""

from __future__ import annotations

import re

from ..definitions import Grammar, Indentation
from ..errors import DefinitionError
from ..system.types import with_article
from .migrated import Migrated


def from_syncode(grammar: object) -> Migrated:
    """Convert a grammar of syncode.

    Lark reads it there with the basic lexer. Where it declares ``_INDENT`` and ``_DEDENT``, indentation is that of
    syncode's Python: after ``_NL`` or ``_NEWLINE``, with tabs of four columns.

    Parameters
    ----------
    grammar:
        The text in Lark's syntax, or a ``syncode`` grammar with its ``ebnf``.

    Raises
    ------
    DefinitionError
        For anything else.
    """
    text = getattr(grammar, "ebnf", grammar)
    if not isinstance(text, str):
        raise DefinitionError(f"{with_article(type(grammar))} is no grammar of syncode's", remedy="Pass its text.")
    if re.search(r"^\s*%declare\b[^\n]*\b_INDENT\b", text, re.MULTILINE) is None:
        return Migrated(Grammar(text, lexer="basic"))
    newline = "_NL" if re.search(r"^\s*_NL\b[^:\n]*:", text, re.MULTILINE) else "_NEWLINE"
    return Migrated(Grammar(text, lexer="basic", postlex=Indentation(newline, tab=4)))
