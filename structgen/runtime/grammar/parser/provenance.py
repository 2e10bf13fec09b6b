"""What a grammar's text calls the numbers of its parser, for people: kept beside the tables, read on demand.

Steps never look at it. It is one section of JSON, so a file without it opens, and says so where it is missed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ....errors import FormatError
from ....storage.records import read_text, written
from ....system.properties import cached_property
from ....system.types import Array

#: The section of the file format.
SECTION = "names"

#: Characters of a terminal's text or regex that are kept: longer ones would not be shown.
LONGEST = 40

#: Marks the place in a rule that a text has come to.
_DOT = "."

#: Numbers with blanks between them.
_ITEMS = re.compile(r"(?:\d{1,9}(?: \d{1,9})*)?")


@dataclass(frozen=True)
class WrittenTerminal:
    """A terminal: its name, and a short text or regex that it is."""

    name: str
    text: str | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class Provenance:
    """Terminals and rules, and which rules each state of the parser is in the middle of.

    Parameters
    ----------
    terminals:
        By number.
    rules:
        By number, as ``"origin: symbol symbol"``.
    kernels:
        By state of the parser: its kernel items, with blanks between them. An item is a place in a rule; a rule of n
        symbols has n + 1, and those of each rule come behind those of the rule before.
    """

    terminals: tuple[WrittenTerminal, ...]
    rules: tuple[str, ...]
    kernels: tuple[str, ...]

    @cached_property
    def _first(self) -> list[int]:
        """By rule: its first item; then how many items there are."""
        return [0, *accumulate(len(rule.split()) for rule in self.rules)]

    def to_section(self) -> Array:
        """The section of the file format."""
        return np.frombuffer(json.dumps(written(self), separators=(",", ":")).encode(), np.uint8)

    @classmethod
    def from_section(cls, section: Array, where: str) -> Provenance:
        """Read `to_section`. Raises `FormatError`."""
        found = read_text(cls, section.tobytes(), where)
        if not all(": " in rule for rule in found.rules) or not all(map(_ITEMS.fullmatch, found.kernels)):
            raise FormatError(f"section {SECTION!r} has what is no rule, or no place in one", where=where)
        return found

    def _written(self, rule: int) -> list[str]:
        """A rule's origin and its symbols. All rules at once would be lists for the garbage collector to look at."""
        origin, *expansion = self.rules[rule].split()
        return [origin.removesuffix(":"), *expansion]

    @cached_property
    def _begins(self) -> dict[str, set[str]]:
        """By origin: the first symbols of its rules."""
        found: dict[str, set[str]] = {}
        for origin, *expansion in (rule.split(None, 2) for rule in self.rules):
            found.setdefault(origin.removesuffix(":"), set()).update(expansion[:1])
        return found

    def begun(self, states: Iterable[int]) -> Iterator[tuple[int, str, str]]:
        """The rules that a stack is in the middle of: number, origin, and expansion with a dot where it is.

        Of the states, the top first, each is in the middle of several; those below the top only of what led up to the
        state above them: after ``2 *`` no ``/`` can come behind the 2.
        """
        above: set[tuple[int, int]] | None = None
        for state in states:
            here = set(self._items(state))
            if above is not None:
                led = {(rule, at - 1) for rule, at in above}
                origins = {self._written(rule)[0] for rule, at in above if at == 1}
                here = {(r, at) for r, at in here if (r, at) in led or not origins.isdisjoint(self._corners(r, at))}
            for number, at in sorted(here):
                origin, *expansion = self._written(number)
                if at < len(expansion):
                    yield number, origin, " ".join([*expansion[:at], _DOT, *expansion[at:]])
            above = here

    def _items(self, state: int) -> Iterator[tuple[int, int]]:
        """The kernel items of a state: numbers of rules, and how many of their symbols are before it."""
        for item in map(int, self.kernels[state].split() if state < len(self.kernels) else ()):
            if item < self._first[-1]:
                number = bisect_right(self._first, item) - 1
                yield number, item - self._first[number]

    def _corners(self, rule: int, at: int) -> set[str]:
        """The symbols that what comes next in a rule can begin with: itself, and first ones of its rules."""
        found = {*self._written(rule)[at + 1 : at + 2]}
        for symbol in (todo := [*found]):  # grows as it goes
            new = self._begins.get(symbol, set()) - found
            found |= new
            todo += new
        return found
