"""What completes texts as tables: pop summaries of all that can come to lie on a stack, and what can be read first.

An ordinary step asks many times whether a text can be completed, so kernels answer that (see
`structgen.kernels.walk_stack_masks`). A complete compile works the tables out; they are a few kilobytes, for most
summaries say no more than that a rule is reduced whatever comes next. ::

    cp_reach   by parser state: how many open brackets make a difference      cp_net    the brackets that it opens
    cp_row     by position, a state and a number of open brackets: its row; 0 where it has not been worked out
    cp_sure    by row: the set of endings of which each can be completed without what lies below
    cp_starts  where the moves of each row begin                              cp_sets   sets of endings
    cp_move    a nonterminal, how many states are popped besides, the set of endings before which that is so, and the
               endings that may be next then: 1 plus the number of a set, 0 for the same
    cp_first   by context, boundary, and whether there are open brackets: the set that may come first
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....errors import FormatError
from ....storage import columns
from ....storage.columns import MOST, Column, Columns, Sizes
from ....storage.container import smallest
from ....system.types import Array, Sections
from ...core.bitsets import words_of
from ..tables import GrammarTables
from .lexeme_ends import Endings
from .pop_summaries import Group, PopSummary

#: The sections of the file format (see docs/internals/format.md): all of them, or none.
SECTIONS = Columns(
    Column("cp_reach", rows="parser", below=MOST, cast="i4"),
    Column("cp_net", "i4", rows="parser"),
    Column("cp_sets", "u4", rows="completion sets", columns="completion words"),
    Column("cp_sure", rows="completion rows", below="completion sets", cast="i4"),
    Column("cp_starts", rows=("completion rows", 1), starts="completion moves", cast="i4"),
    Column(
        "cp_move",
        rows="completion moves",
        cast="i4",
        fields=((0, MOST), (0, MOST), (0, "completion sets"), (0, ("completion sets", 1))),
    ),
    Column("cp_row", rows="positions", below="completion rows", cast="i4"),
    Column("cp_first", rows="contexts", columns="first sets", below="completion sets", cast="i4"),
)


@dataclass(frozen=True, eq=False)
class CompletionTables:
    """All that can be asked of a grammar's `structgen.runtime.grammar.completability.completions.Completions`.

    Parameters
    ----------
    reach, net:
        ``int32[parser states]``. The positions of a state are one more than its reach; those of the first state come
        first.
    sets:
        ``uint32[*, words]``.
    sure, starts, moves:
        ``int32[rows]``, ``int32[rows + 1]``, ``int32[*, 4]``.
    row_of:
        ``int32[positions]``.
    first:
        ``int32[contexts, 2 * boundaries]``; the boundaries are those of `columns_of`.
    """

    reach: NDArray[np.int32]
    net: NDArray[np.int32]
    sets: NDArray[np.uint32]
    sure: NDArray[np.int32]
    starts: NDArray[np.int32]
    moves: NDArray[np.int32]
    row_of: NDArray[np.int32]
    first: NDArray[np.int32]

    def to_sections(self) -> dict[str, Array]:
        """The sections of the file format."""
        found = {
            "cp_reach": self.reach, "cp_sure": self.sure, "cp_starts": self.starts, "cp_move": self.moves,
            "cp_row": self.row_of, "cp_first": self.first,
        }  # fmt: skip
        return {name: smallest(each) for name, each in found.items()} | {"cp_net": self.net, "cp_sets": self.sets}

    @classmethod
    def from_sections(cls, tables: GrammarTables, sections: Sections, where: str) -> CompletionTables | None:
        """Read `to_sections`; None where there are none. Raises `FormatError`."""
        if not any(column.name in sections for column in SECTIONS):
            return None
        sizes: Sizes = {
            "parser": len(tables.context),
            "contexts": len(tables.starts),
            "first sets": 2 * len(columns_of(tables.endings)),
        }
        found = columns.read(sections, SECTIONS, sizes, where)
        if len(found["cp_row"]) != len(found["cp_reach"]) + int(found["cp_reach"].sum(dtype=np.int64)):
            raise FormatError("section 'cp_row' has not one row for each position", where=where)
        return cls(
            found["cp_reach"], found["cp_net"], found["cp_sets"], found["cp_sure"], found["cp_starts"],
            found["cp_move"], found["cp_row"], found["cp_first"],
        )  # fmt: skip


def columns_of(endings: Endings) -> NDArray[np.int32]:
    """The boundaries of endings that are not unconstrained, by the numbers that `Endings.ends` has, ascending."""
    found: NDArray[np.int32] = np.unique(endings.ends[endings.ends[:, 2] == 0, 1])
    return found


def asked_of(endings: Endings, end: int) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """The endings that are not unconstrained, those of columns last; and the terminal and boundary of each, as
    `columns_of` counts them."""
    which = np.flatnonzero(endings.ends[:, 2] == 0)
    which = which[np.argsort(endings.ends[which, 0] > end, kind="stable")]
    boundary = np.searchsorted(columns_of(endings), endings.ends[which, 1])
    return which, np.stack([endings.ends[which, 0], boundary], axis=1).astype(np.int32)


class TableBuilder:
    """Collects rows and sets, each once."""

    def __init__(self) -> None:
        self._sets: dict[int, int] = {0: 0}
        self._rows: dict[tuple[object, ...], int] = {(): 0}
        self._moves: list[list[tuple[int, int, int, int]]] = [[]]
        self._sure = [0]

    def number(self, endings: int) -> int:
        """The number of a set."""
        return self._sets.setdefault(endings, len(self._sets))

    def row(self, summaries: Iterable[tuple[Group, PopSummary]]) -> int:
        """The number of the row of a position, of which all summaries are there, each with its endings."""
        sure, before = 0, dict[tuple[int, int, int], int]()
        for group, summary in summaries:
            if summary.succeeds:
                sure |= group.endings
                continue
            for (origin, popped), following in summary.found.items():
                is_same = (group.stays or group.is_single) and following == group.endings
                move = origin, popped, 0 if is_same else 1 + self.number(following)
                before[move] = before.get(move, 0) | group.endings
        key = sure, *sorted(before.items())
        known = self._rows.setdefault(key, len(self._rows))
        if known == len(self._sure):
            self._sure.append(self.number(sure))
            self._moves.append([(*move[:2], self.number(there), move[2]) for move, there in before.items()])
        return known

    def tables(
        self, reach: list[int], net: list[int], row_of: list[int], first: list[list[int]], endings: int
    ) -> CompletionTables:
        """The tables, of so many endings."""
        moves = [move for row in self._moves for move in row]
        return CompletionTables(
            reach=np.array(reach, np.int32),
            net=np.array(net, np.int32),
            sets=words_of(list(self._sets), endings),
            sure=np.array(self._sure, np.int32),
            starts=np.cumsum([0, *map(len, self._moves)]).astype(np.int32),
            moves=np.array(moves, np.int32).reshape(-1, 4),
            row_of=np.array(row_of, np.int32),
            first=np.array(first, np.int32),
        )
