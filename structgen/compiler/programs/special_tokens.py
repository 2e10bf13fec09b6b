"""Special tokens whose names stand in texts: each may be written in its name's place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile

from ...system.properties import cached_property
from .program import TokenSet


class SpecialTokens:
    """Some tokens without bytes, by name.

    Parameters
    ----------
    named:
        Their ids. None has the empty name, whatever is said here.
    """

    def __init__(self, named: Mapping[str, int]) -> None:
        self._named = named

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: token for name, token in self._named.items() if name}

    @cached_property
    def _begin(self) -> re.Pattern[str]:
        first = re.escape("".join({name[0] for name in self._ids}))
        return re.compile(f"[{first}]" if first else "(?!)")

    @cached_property
    def _common(self) -> str:
        """What all names begin with."""
        names = self._ids.keys()
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False)) if names else ()
        return "".join([letter for letter, _ in alike])

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(name) for name in self._ids}, reverse=True)

    def has(self, text: str) -> bool:
        """Whether the name of a special token stands in a text."""
        return self._common in text and any(name in text for name in self._ids)

    def split(self, text: str) -> list[tuple[str, TokenSet | None]]:
        """A text in pieces, each with the special token that it is the name of, or None; the longest names count."""
        pieces: list[tuple[str, TokenSet | None]] = []
        begin = 0
        for match in self._begin.finditer(text):
            at = match.start()
            name = self._name_at(text, at) if at >= begin else ""
            if name:
                if begin < at:
                    pieces.append((text[begin:at], None))
                pieces.append((name, TokenSet((self._ids[name],))))
                begin = at + len(name)
        if begin < len(text) or not pieces:
            pieces.append((text[begin:], None))
        return pieces

    def _name_at(self, text: str, at: int) -> str:
        """The longest name that begins there, or none."""
        names = (text[at : at + length] for length in self._lengths)
        return next((name for name in names if name in self._ids), "")
