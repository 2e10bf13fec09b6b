"""`GrammarAttributes`: what a grammar captures, and at which temperatures it is sampled, as it is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from ....errors import FormatError
from ....storage.records import read_text, written
from ....system.arguments import is_temperature
from ....system.types import Array
from ...core.machine import Captured

#: The section of the file format, in files of grammars that have attributes.
SECTION = "attributes"


@dataclass(frozen=True)
class CapturedSymbol:
    """A nonterminal whose text is captured.

    Parameters
    ----------
    symbol, name:
        Its number, and under which name.
    before:
        How many bytes before it belong to what is captured.
    hidden:
        How many bytes at its end do not.
    is_hidden:
        Whether these are what is captured.
    shown:
        How many bytes at its beginning are not hidden, where that is known in place of ``hidden``.
    """

    symbol: int
    name: str
    before: int
    hidden: int
    is_hidden: bool
    shown: int | None = None

    def of(self, start: int, end: int) -> Captured:
        """What is captured of a text of the symbol."""
        end_of_text = max(start, end - self.hidden) if self.shown is None else min(start + self.shown, end)
        return Captured(self.name, *((end_of_text, end) if self.is_hidden else (start, end_of_text)))


@dataclass(frozen=True)
class TemperedTerminal:
    """A terminal and the temperature at which it is sampled."""

    terminal: int
    temperature: float


@dataclass(frozen=True)
class GrammarAttributes:
    """What is captured, and the terminals with temperatures, each once."""

    captures: tuple[CapturedSymbol, ...] = ()
    temperatures: tuple[TemperedTerminal, ...] = ()

    def to_sections(self) -> dict[str, Array]:
        """The section of the file format; none where there is nothing to say."""
        if not self.captures and not self.temperatures:
            return {}
        return {SECTION: np.frombuffer(json.dumps(written(self)).encode(), np.uint8)}

    @classmethod
    def from_section(cls, text: bytes, terminals: int, where: str) -> GrammarAttributes:
        """Read `to_sections`. Raises `FormatError`."""
        found = read_text(cls, text, where)
        if any(each.terminal >= terminals or not is_temperature(each.temperature) for each in found.temperatures):
            raise FormatError(f"section {SECTION!r} has what is no terminal, or no temperature", where=where)
        return found
