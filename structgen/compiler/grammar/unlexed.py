"""Terminals of texts that are too long for the lexer, ``%regex {"substring_...": ...}``: which they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...definitions.structured_regexes import LONG
from ...errors import UnsupportedError
from .load.rules import ContextFreeGrammar, Terminal


def unlexed(terminal: Terminal, text: str, grammar: ContextFreeGrammar) -> Terminal:
    """A terminal that has any part of a text, given as JSON, and nothing else.

    Raises `UnsupportedError` for what only a lexer can do.
    """
    for is_there, what in (
        (terminal.name in grammar.ignored, "is ignored"),
        (terminal.priority != 0, "has a priority"),
        (terminal.is_bounded, "has an attribute that bounds it"),
    ):
        if is_there:
            raise UnsupportedError(
                f"a terminal of a text of more than {LONG:,} bytes is not lexed, and this one {what}",
                where=f"terminal {terminal.name}",
                remedy="Shorten the text, or leave that out.",
            )
    return replace(terminal, pattern=None, text=None, substring=text)


def not_lexed(grammar: ContextFreeGrammar) -> Iterator[str]:
    """What the author of a grammar may not expect of such terminals."""
    for each in grammar.terminals:
        if each.substring is not None:
            yield (
                f"terminal {each.name} has a text of more than {LONG:,} bytes and is not lexed: it may end"
                " wherever one of the text's parts is complete, also where it could go on"
            )
