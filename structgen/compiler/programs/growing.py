"""Programs that are lowered on demand: tables that grow, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ...budget import Meter
from ...errors import InternalError
from ...runtime.pushdown.tables import PushdownTables
from .program import Program, State
from .tables import Flattener


class Parts(Protocol):
    """A program, some of whose states are open: they have no edges yet. Others never change."""

    program: Program

    @property
    def open(self) -> list[State]:
        """The open states."""

    def flattener(self, meter: Meter) -> Flattener:
        """The columns of the program, which has not gone on yet."""

    def go_on(self, states: Iterable[State]) -> None:
        """Give some open states their edges, with all that is lowered with them; perhaps others as well."""


class GrowingProgram:
    """The source of tables of which a part is there: see `structgen.runtime.pushdown.tables.Source`.

    States keep their numbers, which are the program's; other than in tables that are made at once, those that nothing
    leads to have some, too.

    Whatever a part raises (`BudgetExceededError`, or what a signal handler does) leaves a program that is half made.
    It is made anew then, by the same parts in the same order, when it is needed next.

    Parameters
    ----------
    begin:
        Makes the first part, the same each time. All its work is measured by the meter.
    """

    def __init__(self, begin: Callable[[], Parts], meter: Meter) -> None:
        self._begin = begin
        self._meter = meter
        self._asked: list[list[State]] = []
        self._states = 0  # of the tables so far
        self._made: tuple[Parts, Flattener] | None = None
        self._made = self._first()

    def _first(self) -> tuple[Parts, Flattener]:
        parts = self._begin()
        return parts, parts.flattener(self._meter)

    def lower(self, states: Iterable[State]) -> PushdownTables:
        """The tables, with the edges of some open states. Raises `BudgetExceededError`."""
        self._meter.begin_again()
        made, self._made = self._made or self._again(), None
        missing = sorted(set(made[0].open).intersection(states))
        if missing:
            _grow(made, missing)
            self._asked.append(missing)
        tables = self._tables(made)
        self._made = made
        return tables

    def tables(self) -> PushdownTables:
        """The tables so far."""
        self._made = self._made or self._again()
        return self._tables(self._made)

    def _again(self) -> tuple[Parts, Flattener]:
        made = self._first()
        for states in self._asked:
            _grow(made, states)
        if len(made[0].program.edges) < self._states:
            raise InternalError("a program that is lowered again has other states")
        return made

    def _tables(self, made: tuple[Parts, Flattener]) -> PushdownTables:
        parts, flattener = made
        tables = flattener.all_tables()
        tables.open = frozenset(parts.open)
        tables.source = self if tables.open else None
        self._states = tables.states
        return tables


def _grow(made: tuple[Parts, Flattener], states: list[State]) -> None:
    parts, flattener = made
    before = set(parts.open)
    parts.go_on(states)
    flattener.grow(sorted(before.difference(parts.open)))
