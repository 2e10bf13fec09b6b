"""What a grammar's text calls the numbers of its parser, for people: kept beside the tables, read on demand.

Steps never look at it. It is one section of JSON, so a file without it opens, and says so where it is missed.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ....errors import FormatError
from ....storage.records import parsed, read, written
from ....system.properties import cached_property, remembered
from ....system.types import Array

#: The section of the file format.
SECTION = "names"

#: Characters of a terminal's text or regex that are kept: longer ones would not be shown.
LONGEST = 40

#: Marks the place in a rule that a text has come to.
_DOT = "."

#: What is in no list of kernel items.
_NO_ITEMS = re.compile(r"[^0-9 \n]|[0-9]{10}")


@dataclass(frozen=True)
class WrittenTerminal:
    """A terminal: its name, and a short text or regex that it is."""

    name: str
    text: str | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class _Listed:
    """What files hold that were written before there was a `Provenance` of columns."""

    terminals: tuple[WrittenTerminal, ...]
    rules: tuple[str, ...]
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class Provenance:
    """Terminals and rules, and which rules each state of the parser is in the middle of.

    They are columns, so that to read them takes no objects for what nobody asks about.

    Parameters
    ----------
    terminals:
        The names by number, a line each.
    texts, patterns:
        By terminal: a short text or regex that it is.
    rules:
        By number, as ``"origin: symbol symbol"``, a line each.
    kernels:
        By state of the parser, a line each: its kernel items, with blanks between them. An item is a place in a rule;
        a rule of n symbols has n + 1, and those of each rule come behind those of the rule before.
    """

    terminals: str
    texts: tuple[str | None, ...]
    patterns: tuple[str | None, ...]
    rules: str
    kernels: str

    @classmethod
    def of(cls, terminals: Sequence[WrittenTerminal], rules: Iterable[str], kernels: Iterable[str]) -> Provenance:
        """From rows."""
        texts, patterns = tuple(t.text for t in terminals), tuple(t.pattern for t in terminals)
        return cls("\n".join(t.name for t in terminals), texts, patterns, "\n".join(rules), "\n".join(kernels))

    def to_section(self) -> Array:
        """The section of the file format."""
        return np.frombuffer(json.dumps(written(self), separators=(",", ":")).encode(), np.uint8)

    @classmethod
    def from_section(cls, section: Array, where: str) -> Provenance:
        """Read `to_section`, or what older files have in its place. Raises `FormatError`."""
        data = parsed(section.tobytes(), where)
        if isinstance(data, dict) and "texts" not in data:
            listed = read(_Listed, data, where)
            found = cls.of(listed.terminals, listed.rules, listed.kernels)
        else:
            found = read(cls, data, where)
        is_whole = max(found._numbers.values(), default=-1) < len(found.texts) == len(found.patterns)
        if not is_whole or not all(": " in rule for rule in found._rules) or _NO_ITEMS.search(found.kernels):
            raise FormatError(f"section {SECTION!r} has what is no rule, or no place in one", where=where)
        return found

    def terminal(self, name: str) -> WrittenTerminal | None:
        """The terminal of a name."""
        number = self._numbers.get(name)
        return None if number is None else WrittenTerminal(name, self.texts[number], self.patterns[number])

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """By name: the terminal."""
        return {name: number for number, name in enumerate(self.terminals.split("\n") if self.texts else ())}

    @cached_property
    def _rules(self) -> list[str]:
        return self.rules.split("\n") if self.rules else []

    @cached_property
    def _kernels(self) -> list[str]:
        return self.kernels.split("\n")

    @cached_property
    def _first(self) -> list[int]:
        """By rule: its first item; then how many items there are."""
        return [0, *accumulate(rule.count(" ") + (not rule.endswith(" ")) for rule in self._rules)]

    def _written(self, rule: int) -> list[str]:
        """A rule's origin and its symbols. All rules at once would be lists for the garbage collector to look at."""
        origin, *expansion = self._rules[rule].split()
        return [origin.removesuffix(":"), *expansion]

    @cached_property
    def _rules_of(self) -> dict[str, list[int]]:
        """By origin: the numbers of its rules."""
        found: dict[str, list[int]] = {}
        for number, rule in enumerate(self._rules):
            found.setdefault(rule.partition(": ")[0], []).append(number)
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
                here = {(r, at) for r, at in here if (r, at) in led or self._goes_on_with(r, at, origins)}
            for number, at in sorted(here):
                origin, *expansion = self._written(number)
                if at < len(expansion):
                    yield number, origin, " ".join([*expansion[:at], _DOT, *expansion[at:]])
            above = here

    def _items(self, state: int) -> Iterator[tuple[int, int]]:
        """The kernel items of a state: numbers of rules, and how many of their symbols are before it."""
        for item in map(int, self._kernels[state].split() if state < len(self._kernels) else ()):
            if item < self._first[-1]:
                number = bisect_right(self._first, item) - 1
                yield number, item - self._first[number]

    def _goes_on_with(self, rule: int, at: int, symbols: set[str]) -> bool:
        """Whether what comes next in a rule can begin with some symbols."""
        expected = self._written(rule)[at + 1 : at + 2]
        return bool(symbols and expected) and not symbols.isdisjoint(self._begins_with(expected[0]))

    @remembered
    def _begins_with(self, symbol: str) -> set[str]:
        """The symbols that a symbol can begin with: itself, and first ones of its rules."""
        found = {symbol}
        for each in (todo := [symbol]):  # grows as it goes
            rules = (self._rules[rule].split(None, 2)[1:2] for rule in self._rules_of.get(each, ()))
            new = {first for expansion in rules for first in expansion} - found
            found |= new
            todo += new
        return found
