"""Indentation: how the ends of lines become indents and dedents, as `lark.indenter.Indenter` does it after the lexer.

Within brackets a line end means nothing. Elsewhere it is a terminal, and the column at which the next line begins is compared with
those of the lines that surround it: wider is an indent, narrower as many dedents as lines are left, and a column that no
surrounding line has is an error. The end of the text ends all of them.

The lexer tells columns apart, up to a bound: for each it has a terminal of its own, which stands for the line end with that
column. What it means depends on the place, which is a *level*: the open brackets and the surrounding columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..definitions import MOST_COLUMNS
from ..errors import FormatError


class Level(NamedTuple):
    """Open brackets, and the columns of the surrounding lines, ascending; the first is 0."""

    brackets: int = 0
    columns: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class Layout:
    """The terminals of indentation, as numbers.

    Parameters
    ----------
    newline, indent, dedent:
        The end of a line, and what follows it.
    opening, closing:
        Brackets.
    columns:
        The widest column that lines can begin at. The terminal ``first + column`` stands for a line end with that column, where
        ``first`` is the first number after the end of the text, and the one after these for wider ones, which are
        only right within brackets.
    """

    newline: int
    indent: int
    dedent: int
    opening: frozenset[int]
    closing: frozenset[int]
    columns: int

    def moves(self, level: Level, column: int) -> tuple[tuple[int, ...], Level] | None:
        """The terminals that a line end with a column stands for, and the level after; None where it is an error."""
        if level.brackets:
            return (), level
        *around, here = level.columns
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
        """One row of numbers: see docs/format.md."""
        opening, closing = sorted(self.opening), sorted(self.closing)
        numbers = [self.newline, self.indent, self.dedent, self.columns, len(opening), *opening, *closing]
        return np.array(numbers, np.uint32)

    @classmethod
    def from_section(cls, section: NDArray[Any], terminals: int, where: str) -> Layout | None:
        """Read `to_section`; None for an empty one. Raises `FormatError`."""
        numbers: list[int] = section.tolist()
        if not numbers:
            return None
        count = numbers[4] if len(numbers) > 4 else -1
        named = [*numbers[:3], *numbers[5:]]
        if not 0 <= count <= len(numbers) - 5 or max(named) >= terminals or numbers[3] > MOST_COLUMNS:
            raise FormatError("the terminals of the indentation are damaged", where=where)
        newline, indent, dedent, columns, *_ = numbers
        return cls(newline, indent, dedent, frozenset(numbers[5 : 5 + count]), frozenset(numbers[5 + count :]), columns)
