"""Notations of grammars that are GBNF but for a few things: an entry for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..automata.charset import Ranges, complement


@dataclass(frozen=True)
class Escapes:
    """What stands behind a backslash.

    Parameters
    ----------
    simple:
        Letters, with the character that each stands for.
    digits:
        Letters, with the count of hexadecimal digits behind them; 0 is any number.
    """

    simple: Mapping[str, int]
    digits: Mapping[str, int]

    @property
    def said(self) -> str:
        """All of them, for a message."""
        numbers = (f"\\{letter}{'H' * count or 'H...'}" for letter, count in self.digits.items())
        return " ".join([*(f"\\{letter}" for letter in self.simple), *numbers])


def _escapes(controls: str, themselves: str, **digits: int) -> Escapes:
    stands_for = {"0": 0x00, "a": 0x07, "b": 0x08, "t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D, "e": 0x1B}
    return Escapes({**{c: stands_for[c] for c in controls}, **{c: ord(c) for c in themselves}}, digits)


_OF_GBNF = _escapes("nrt", '\\"[]-', x=2, u=4, U=8)
_OF_CFG = _escapes("nrt", '\\"[]', x=2, u=4, U=8)
_OF_XGRAMMAR = _escapes("nrtabfv0e", "\"'\\?/", x=0, u=4, U=8)


_ANY: Ranges = complement(())


@dataclass(frozen=True)
class GbnfDialect:
    """How a notation differs.

    Parameters
    ----------
    who:
        Whose it is, for messages.
    name:
        What names of rules are.
    escapes, in_classes:
        Within quotes and within brackets.
    by_lines:
        A rule ends with its line; else where the next one begins, at the beginning of a line.
    dot:
        The characters of a dot; None where it is part of names.
    may_be_empty:
        Whether nothing at all is an option.
    open_bounds:
        Whether ``{,n}`` is a bound.
    tokens:
        Whether ``<think>``, ``<[123]>`` and ``!<think>`` are tokens.
    macros:
        Whether there are macros, attributes, and look-ahead behind rules, as XGrammar has them.
    """

    who: str
    name: re.Pattern[str]
    escapes: Escapes
    in_classes: Escapes
    by_lines: bool = True
    dot: Ranges | None = _ANY
    may_be_empty: bool = True
    open_bounds: bool = False
    tokens: bool = False
    macros: bool = False
    head: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        space = r"[ \t\r\n]*(?:#[^\r\n]*(?![^\r\n])[ \t\r\n]*)*"
        head = re.compile(rf"(?:{self.name.pattern})(?:\[[^\]\r\n]*\][ \t]*)?{space}::=")
        object.__setattr__(self, "head", head)


GBNF = GbnfDialect("llama.cpp", re.compile(r"[A-Za-z0-9_-]+"), _OF_GBNF, _OF_GBNF, tokens=True)

DIALECTS = {
    "gbnf": GBNF,
    "xgrammar": GbnfDialect(
        "XGrammar",
        re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*"),
        _OF_XGRAMMAR,
        Escapes({**_OF_XGRAMMAR.simple, **{c: ord(c) for c in "^$.*+()[]{}|-"}}, _OF_XGRAMMAR.digits),
        by_lines=False,
        dot=None,
        may_be_empty=False,
        macros=True,
    ),
    "transformers-cfg": GbnfDialect(
        "transformers-CFG", re.compile(r"[\w-]+"), _OF_CFG, _OF_CFG, dot=complement(((10, 10),)), open_bounds=True
    ),
}
