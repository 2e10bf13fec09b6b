"""Indentation: how the ends of lines become indents and dedents, as `lark.indenter.Indenter` does it after the lexer.

Within brackets a line end means nothing. Elsewhere it is a terminal, and the column at which the next line begins is
compared with those of the lines that surround it: wider is an indent, narrower as many dedents as lines are left, and
a column that no surrounding line has is an error. The end of the text ends all of them.

The lexer tells columns apart, up to a bound: for each it has a terminal of its own, which stands for the line end
with that column. What it means depends on the place, which is a *level*: the open brackets and the surrounding
columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import FormatError
from ..core.blocks import blank

#: The most columns that levels are narrow for.
MOST_ROOM = 8


class Level(NamedTuple):
    """Open brackets, and the columns of the surrounding lines, ascending; the first is 0."""

    brackets: int = 0
    columns: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class IndentationTerminals:
    """The terminals of indentation, as numbers.

    Parameters
    ----------
    newline, indent, dedent:
        The end of a line, and what follows it.
    opening, closing:
        Brackets.
    columns:
        The widest column that lines can begin at. The terminal ``first + column`` stands for a line end with that
        column, where ``first`` is the first number after the end of the text; the one after these for wider ones,
        which are only right within brackets.
    is_far:
        Whether obligations are followed past the next one
        (`structgen.runtime.grammar.completability.boundaries`).
    room:
        A level at which lines can be indented by fewer columns than this is *narrow*: whether blocks that a text must
        still open have room is looked at there (`structgen.runtime.grammar.completability.indented_moves`). At others
        they have. 0 where it is supposed that they have everywhere.
    """

    newline: int
    indent: int
    dedent: int
    opening: frozenset[int]
    closing: frozenset[int]
    columns: int
    is_far: bool = False
    room: int = 0

    @property
    def first_narrow(self) -> int:
        """The first column at which lines make a level narrow."""
        return max(0, self.columns + 1 - self.room)

    def is_narrow(self, level: Level | None) -> bool:
        """Whether a level is narrow."""
        return level is not None and level.columns[-1] >= self.first_narrow

    def moves(self, level: Level, column: int) -> tuple[tuple[int, ...], Level] | None:
        """The terminals that a line end with a column stands for, and the level after; None where it is an error."""
        if level.brackets:
            return (), level
        here = level.columns[-1]
        if column > self.columns:
            return None
        if column > here:
            return (self.newline, self.indent), Level(0, (*level.columns, column))
        left = tuple(c for c in level.columns if c <= column)
        if left[-1] != column:
            return None
        return (self.newline, *(self.dedent,) * (len(level.columns) - len(left))), Level(0, left)

    def after(self, level: Level, terminal: int) -> Level | None:
        """The level after a terminal that is no line end; None where a bracket is closed that was not opened."""
        if terminal in self.opening:
            return Level(level.brackets + 1, level.columns)
        if terminal in self.closing:
            return Level(level.brackets - 1, level.columns) if level.brackets else None
        return level

    def to_section(self) -> NDArray[np.uint32]:
        """One row of numbers: see docs/internals/format.md."""
        opening, closing = sorted(self.opening), sorted(self.closing)
        lines = [self.newline, self.indent, self.dedent, self.columns, int(self.is_far), self.room]
        return np.array([*lines, len(opening), *opening, *closing], np.uint32)

    @classmethod
    def from_numbers(cls, numbers: list[int], terminals: int, where: str) -> IndentationTerminals | None:
        """Read `to_section`; None for an empty one. Raises `FormatError`."""
        if not numbers:
            return None
        from ...definitions.values import MOST_COLUMNS

        count = numbers[6] if len(numbers) > 6 else -1
        named = [*numbers[:3], *numbers[7:]]
        if (
            not 0 <= count <= len(numbers) - 7 or max(named) >= terminals
            or numbers[3] > MOST_COLUMNS or numbers[4] > 1 or numbers[5] > MOST_ROOM
        ):  # fmt: skip
            raise FormatError("section 'layout' has a number that is out of bounds", where=where)
        newline, indent, dedent, columns, is_far, room, _, *brackets = numbers
        opening, closing = frozenset(brackets[:count]), frozenset(brackets[count:])
        return cls(newline, indent, dedent, opening, closing, columns, bool(is_far), room)


class LevelTable:
    """Levels by number, as `structgen.kernels.walk_stack_masks` reads them; they grow as they are met.

    Level 0 is the text's. Without a layout it is the only one, and nothing happens at it. No move leads to a narrow
    level: who asks for one goes on without kernels.
    """

    def __init__(self, layout: IndentationTerminals | None, end: int, words: int) -> None:
        self._layout = layout
        self._first = end + 1
        self._number: dict[Level | None, int] = {}
        self._known: list[Level | None] = []
        self._operations = (layout.columns + 2 if layout else 0) + 2
        self._words = words
        self._make_room(16)
        self.lines = np.array([-1, -1, -1, 1 << 30, 1 << 30], np.int32)
        self.brackets = np.zeros(end + 1, np.uint8)
        if layout:
            lines = layout.newline, layout.indent, layout.dedent, self._first, self._first + layout.first_narrow
            self.lines[:] = lines
            self.brackets[sorted(layout.opening)] = 1
            self.brackets[sorted(layout.closing)] = 2
        self.number(Level() if layout else None)

    def __len__(self) -> int:
        return len(self._known)

    def is_narrow(self, level: Level | None) -> bool:
        """Whether a level is narrow."""
        return self._layout is not None and self._layout.is_narrow(level)

    def level(self, number: int) -> Level | None:
        """The level with a number."""
        return self._known[number]

    def number(self, level: Level | None) -> int:
        """The number of a level."""
        known = self._number.get(level)
        if known is None:
            known = self._enter(level)
            self._fill(known, level)
        return known

    def _enter(self, level: Level | None) -> int:
        """The number of a level that has none yet, whose rows are still to be filled."""
        known = self._number[level] = len(self._known)
        self._known.append(level)
        if known == len(self._moves):
            before = self._tables
            self._make_room(2 * known)
            for table, values in zip(self._tables, before, strict=True):
                table[:known] = values
        return known

    def _make_room(self, levels: int) -> None:
        widths = self._words, self._words, self._operations, self._operations + 1, 1
        #: The kernel's argument ``of_levels``.
        self.block, self._tables = blank([(levels, width) for width in widths])
        keep, given, self._moves, self._levels, dedents = self._tables
        self._keep, self._given, self._dedents = keep.view(np.uint32), given.view(np.uint32), dedents.reshape(-1)
        self._moves[:] = self._levels[:] = -1

    def alike(self, number: int) -> int:
        """Stands for all levels with as many open brackets."""
        return kernels.OF_BRACKETS + int(self._levels[number, -1])

    def follow(self, number: int, operation: int) -> bool:
        """Have the level at hand that a column leads to, or a bracket: the last two operations open and close one.

        False where it is narrow.
        """
        level, layout = self._known[number], self._layout
        after = self._after(layout, level, operation) if level is not None and layout is not None else None
        if after is not None and layout is not None:
            if layout.is_narrow(after):
                return False
            self._levels[number, operation] = self.number(after)
        return True

    def follow_all(self, wanted: list[tuple[int, int]]) -> bool:
        """As `follow`, of levels with an operation each; at once for all indents and brackets, mostly many."""
        done = True
        indents: dict[int, list[int]] = {}
        opened: list[int] = []
        for number, operation in wanted:
            if operation == self._operations - 2:
                opened.append(number)
            elif self._moves[number, operation] == -2:
                if self._layout is not None and operation >= self._layout.first_narrow:
                    return False
                indents.setdefault(number, []).append(operation)
            else:
                done &= self.follow(number, operation)
        for number, columns in indents.items():
            self._indent(number, columns)
        self._open(opened)
        return done

    def _open(self, numbers: list[int]) -> None:
        new, width = [], self._operations - 2
        for number in numbers:
            level = self._known[number]
            assert level is not None
            after = Level(level.brackets + 1, level.columns)
            known = self._number.get(after)
            if known is None:
                known = self._enter(after)
                new.append((known, number, after.brackets))
            self._levels[number, width] = known
        if not new:
            return
        rows, outside, brackets = np.array(new).T
        self._fill(int(rows[0]), self._known[rows[0]])
        for table in (self._keep, self._given, self._moves):
            table[rows] = table[rows[0]]
        self._dedents[rows] = self._dedents[outside]
        self._levels[rows] = -1
        self._levels[rows, :width] = rows[:, None]
        self._levels[rows, width + 1] = outside
        self._levels[rows, -1] = brackets

    def _indent(self, number: int, columns: list[int]) -> None:
        level = self._known[number]
        assert level is not None
        new = []
        for column in columns:
            after = Level(0, (*level.columns, column))
            known = self._number.get(after)
            if known is None:
                known = self._enter(after)
                new.append((known, column))
            self._levels[number, column] = known
        if not new:
            return
        rows, indents = np.array(new).T
        for table in (self._keep, self._given, self._moves):
            table[rows] = table[number]
        self._dedents[rows] = self._dedents[number] + 1
        last = level.columns[-1]
        self._levels[number, last] = number
        self._levels[rows] = -1
        self._levels[rows, : last + 1] = self._levels[number, : last + 1]
        self._levels[rows, indents] = rows
        self._levels[rows, -1] = 0
        every, moves, width = np.arange(self._operations - 2), self._moves[number], self._operations - 2
        closes = np.where(moves[:width] > 0, moves[:width] + 1, -1)
        wider = np.where((every > indents[:, None]) & (every < width - 1), -2, closes)
        self._moves[rows, :width] = np.where(every == indents[:, None], 1, wider)

    def _after(self, layout: IndentationTerminals, level: Level, operation: int) -> Level | None:
        columns = self._operations - 2
        if operation < columns:
            moved = layout.moves(level, operation)
            return moved and moved[1]
        if operation == columns:
            return Level(level.brackets + 1, level.columns)
        return Level(level.brackets - 1, level.columns) if level.brackets else None

    def _fill(self, number: int, level: Level | None) -> None:
        self._keep[number] = 0xFFFFFFFF
        layout = self._layout
        self._levels[number, -1] = level.brackets if level is not None else 0
        if level is None or layout is None:
            return
        self._dedents[number] = len(level.columns) - 1
        columns = self._operations - 2
        self._moves[number, columns] = 1
        self._moves[number, columns + 1] = 1 if level.brackets else -1
        left_out = {layout.newline} if level.brackets else {layout.newline, *layout.closing}
        self._set(self._keep[number], left_out, False)
        if level.brackets:
            self._moves[number, :columns] = 0
            self._levels[number, :columns] = number
            self._set(self._given[number], {layout.newline, *range(self._first, self._first + columns)}, True)
            return
        for column in {*level.columns, level.columns[-1] + 1} & set(range(columns)):
            moved = layout.moves(level, column)
            if moved is not None:
                self._moves[number, column] = -2 if moved[1].columns[-1] > level.columns[-1] else len(moved[0])
        wider = level.columns[-1] + 1
        self._moves[number, wider : columns - 1] = -2

    @staticmethod
    def _set(words: NDArray[np.uint32], terminals: set[int], value: bool) -> None:
        for terminal in terminals:
            bit = np.uint32(1 << (terminal & 31))
            words[terminal >> 5] = words[terminal >> 5] | bit if value else words[terminal >> 5] & ~bit
