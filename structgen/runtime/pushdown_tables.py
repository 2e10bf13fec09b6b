"""`PushdownTables`: a pushdown automaton over bytes in the compact form that is stored and followed at run time.

The readable form, and what the moves mean, is `structgen.compiler.pushdown.Program`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .container import smallest
from .tables import DEAD, MARK, bounds_are_sound, byte_classes, counters_are_sound, dense_table

#: Members of a set: kernels keep a set in an ``int64``, a file in two words of 31 bits.
MOST_MEMBERS = 62


@dataclass(frozen=True, eq=False)
class PushdownTables:
    """A real-time pushdown automaton over bytes.

    The edges of state ``s`` are ``edge_*[edge_start[s]:edge_start[s + 1]]``, ascending and disjoint. An edge leads to
    a state, or to a *group* of moves that are all made. A move replaces the state by a sequence of states:
    that of its record, if it counts, then ``sequence[move_start[m]:move_start[m + 1]]``; all but the last are
    pushed, the last is entered, and an empty one pops.

    Parameters
    ----------
    edge_start:
        ``uint[states + 1]``.
    edge_low, edge_high:
        ``uint8[edges]``, an inclusive range of bytes.
    edge_target:
        ``uint[edges]``: 0 for nothing, ``1 + s`` for a state, ``1 + states + g`` for group ``g``.
    like:
        ``uint[states]``: ``1 + s`` where the bytes without an edge are taken as state ``s`` takes them, which is
        like no other; 0 where they are dead.
    group_start:
        ``uint[groups + 1]``: group ``g`` is the moves ``group_start[g]:group_start[g + 1]``.
    move_record:
        ``uint[moves]``: 0 for a move that does not count, else 1 plus its record.
    move_start:
        ``uint[moves + 1]``.
    sequence:
        ``uint[*]``: states.
    returns:
        ``uint8[states]``: 1 where the next byte may be left to the state below.
    records, loops, live:
        Counters, as in `structgen.runtime.tables.Tables`. A loop with the minimum -1 is a register, its maximum the
        number of possible members. A record of it is `MARK`, a test, the state, the member to add or -1, and -1.
    tests:
        ``int32[tests, 4]``: from how many to how many of the members in a mask must be there, and the mask's lower
        and upper 31 bits.
    start:
        The initial state, alone on the stack.
    """

    edge_start: NDArray[Any]
    edge_low: NDArray[np.uint8]
    edge_high: NDArray[np.uint8]
    edge_target: NDArray[Any]
    like: NDArray[Any]
    group_start: NDArray[Any]
    move_record: NDArray[Any]
    move_start: NDArray[Any]
    sequence: NDArray[Any]
    returns: NDArray[np.uint8]
    records: NDArray[np.int32]
    loops: NDArray[np.int32]
    live: NDArray[np.int32]
    tests: NDArray[np.int32]
    start: int

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.returns)

    @cached_property
    def registers(self) -> NDArray[np.bool_]:
        """``bool[states]``: which states are live in a register."""
        is_register = np.append(self.loops[:, 0] < 0, False)  # the last for states that are not live
        return is_register[self.live]

    @cached_property
    def passes(self) -> list[tuple[int, int, int]]:
        """For each test its mask, and the bounds on the number of its members that are there."""
        return [(upper << 31 | lower, low, high) for low, high, lower, upper in self.tests.tolist()]

    @property
    def nbytes(self) -> int:
        """Bytes of the stored arrays."""
        return sum(a.nbytes for a in self.to_sections().values())

    def edges(self, state: int) -> dict[int, int]:
        """What a state does with each byte that it takes: a state, or ``states + g`` for group ``g``."""
        like = int(self.like[state])
        edges = dict(self.edges(like - 1)) if like else {}
        begin, end = int(self.edge_start[state]), int(self.edge_start[state + 1])
        lows, highs = self.edge_low[begin:end].tolist(), self.edge_high[begin:end].tolist()
        for low, high, target in zip(lows, highs, self.edge_target[begin:end].tolist(), strict=True):
            if target:
                edges.update(dict.fromkeys(range(low, high + 1), target - 1))
            else:
                for byte in range(low, high + 1):
                    edges.pop(byte, None)
        return edges

    def targets(self, state: int) -> set[int]:
        """Where edges of a state lead, and of the one it is like: a few too many, if its own hide some of those."""
        begin, end = int(self.edge_start[state]), int(self.edge_start[state + 1])
        found = {target - 1 for target in self.edge_target[begin:end].tolist() if target}
        like = int(self.like[state])
        return found | self.targets(like - 1) if like else found

    @cached_property
    def moves(self) -> list[list[tuple[tuple[int, ...] | None, tuple[int, ...]]]]:
        """For each group its moves: the record, as its five columns, and the sequence."""
        records = [None, *(tuple(r) for r in self.records.tolist())]
        starts, states = self.move_start.tolist(), self.sequence.tolist()
        moves = [
            (records[record], tuple(states[starts[m] : starts[m + 1]]))
            for m, record in enumerate(self.move_record.tolist())
        ]
        groups = self.group_start.tolist()
        return [moves[i:j] for i, j in pairwise(groups)]

    def is_deterministic(self) -> bool:
        """Whether no text leads to two stacks, as far as that is seen without following any.

        No byte has several moves, and none that a state takes which may return is taken by a state that can lie below
        another one.
        """
        if (np.diff(self.group_start.astype(np.int64)) > 1).any():
            return False
        lower = np.zeros(self.states, np.bool_)
        for group in self.moves:
            for record, sequence in group:
                pushed = sequence if record is not None else sequence[:-1]
                lower[[*pushed, *(s for s in (record or ())[2:] if sequence and 0 <= s < self.states)]] = True
        taken = [np.zeros(257, np.int64), np.zeros(257, np.int64)]
        sources = np.repeat(np.arange(self.states), np.diff(self.edge_start.astype(np.int64)))
        for found, states in zip(taken, (self.returns.astype(np.bool_), lower), strict=True):
            alike = self.like[states].astype(np.int64)
            whole = states.copy()
            whole[alike[alike > 0] - 1] = True
            edges = whole[sources] & (self.edge_target > 0)
            np.add.at(found, self.edge_low[edges], 1)
            np.add.at(found, self.edge_high[edges].astype(np.int64) + 1, -1)
        own, others = (np.cumsum(found)[:256] > 0 for found in taken)
        return not (own & others).any()

    # -- the form for kernels --------------------------------------------------------------------------

    def arena(self) -> NDArray[np.int32]:
        """Everything in one ``int32`` array; the layout is that of `structgen.kernels`' section on stacks."""
        from .. import kernels

        classes = byte_classes(self.edge_low, self.edge_high)
        table = dense_table(
            self.edge_start, self.edge_low, self.edge_high, self.edge_target.astype(np.int64), classes
        )
        alike = np.flatnonzero(self.like)
        others = table[self.like[alike].astype(np.int64) - 1]
        table[alike] = np.where(table[alike] == DEAD, others, table[alike])
        table[table > DEAD] -= 1  # nothing becomes dead, states count from 0
        moves = np.zeros((len(self.move_start), 2), np.int32)
        moves[:-1, 0] = self.move_record.astype(np.int32) - 1
        moves[:, 1] = self.move_start
        parts: dict[int, NDArray[Any]] = {
            kernels.A_CLASS_OF: classes,
            kernels.A_TABLE: table,
            kernels.A_GROUPS: self.group_start,
            kernels.A_MOVES: moves,
            kernels.A_SEQUENCE: self.sequence,
            kernels.A_RECORDS: self.records,
            kernels.A_LOOPS: self.loops,
            kernels.A_LIVE: self.live,
            kernels.A_RETURNS: self.returns,
            kernels.A_TESTS: self.tests,
        }
        header = np.zeros(kernels.ARENA_HEADER, np.int32)
        header[kernels.A_STATES], header[kernels.A_CLASSES] = self.states, table.shape[1]
        position = len(header)
        for word, part in parts.items():
            header[word] = position
            position += part.size
        return np.concatenate([header, *(part.reshape(-1).astype(np.int32) for part in parts.values())])

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md); counters only where there are any."""
        sections: dict[str, NDArray[Any]] = {
            "edge_start": smallest(self.edge_start),
            "edge_low": self.edge_low,
            "edge_high": self.edge_high,
            "edge_target": smallest(self.edge_target),
            "like": smallest(self.like),
            "group_start": smallest(self.group_start),
            "move_record": smallest(self.move_record),
            "move_start": smallest(self.move_start),
            "sequence": smallest(self.sequence),
            "returns": np.packbits(self.returns, bitorder="little"),
        }
        if len(self.loops):
            sections |= {"records": self.records, "loops": self.loops, "live": self.live}
        if len(self.tests):
            sections["tests"] = self.tests
        return sections

    @classmethod
    def from_sections(
        cls, states: int, start: int, sections: Mapping[str, NDArray[Any]], where: str
    ) -> PushdownTables:
        """Tables used where they lie, after a check of every index in them. Raises `FormatError`."""
        names = (
            "edge_start", "edge_low", "edge_high", "edge_target", "like", "group_start", "move_record", "move_start",
            "sequence", "returns",
        )  # fmt: skip
        for name in names:
            if name not in sections:
                raise FormatError(f"section {name!r} is missing", where=where)
        returns = sections["returns"]
        if (
            states <= 0 or not 0 <= start < states
            or returns.ndim != 1 or returns.dtype != np.uint8 or len(returns) != -(-states // 8)
        ):  # fmt: skip
            raise FormatError("the automaton's size does not fit its tables", where=where)
        tables = cls(
            **{name: sections[name] for name in names[:-1]},
            returns=np.unpackbits(returns, count=states, bitorder="little"),
            records=sections.get("records", np.zeros((0, 5), np.int32)),
            loops=sections.get("loops", np.zeros((0, 2), np.int32)),
            live=sections.get("live", np.full(states, DEAD, np.int32)),
            tests=sections.get("tests", np.zeros((0, 4), np.int32)),
            start=start,
        )
        if not tables._is_sound():
            raise FormatError("the automaton's tables point outside themselves", where=where)
        return tables

    def _is_sound(self) -> bool:
        n = self.states
        flat = (
            self.edge_start,
            self.edge_target,
            self.like,
            self.group_start,
            self.move_record,
            self.move_start,
            self.sequence,
        )
        if any(a.ndim != 1 or a.dtype.kind != "u" for a in flat) or any(
            a.ndim != 1 or a.dtype != np.uint8 for a in (self.edge_low, self.edge_high)
        ):
            return False
        groups, moves = len(self.group_start) - 1, len(self.move_record)
        edges = len(self.edge_target)
        if (
            len(self.edge_start) != n + 1 or len(self.edge_low) != edges or len(self.edge_high) != edges
            or not partitions(self.edge_start, edges) or not partitions(self.group_start, moves)
            or (self.group_start[1:] <= self.group_start[:-1]).any()
            or len(self.move_start) != moves + 1 or not partitions(self.move_start, len(self.sequence))
            or (self.edge_high < self.edge_low).any()
            or int(self.edge_target.max(initial=0)) > n + groups
            or len(self.like) != n or int(self.like.max(initial=0)) > n
            or self.like[self.like[self.like != 0].astype(np.int64) - 1].any()
            or int(self.sequence.max(initial=0)) >= n
            or int(self.move_record.max(initial=0)) > len(self.records)
        ):  # fmt: skip
            return False
        # Ranges of a state must ascend without overlap: a dense table has one entry for each byte.
        same_state = np.ones(max(0, edges - 1), np.bool_)
        inner = self.edge_start[1:-1].astype(np.int64)
        same_state[inner[(inner > 0) & (inner < edges)] - 1] = False
        if (same_state & (self.edge_low[1:] <= self.edge_high[:-1])).any():
            return False
        return self._counters_are_sound()

    def _counters_are_sound(self) -> bool:
        n, records, loops, live, tests = self.states, self.records, self.loops, self.live, self.tests
        if not (len(records) or len(loops) or len(tests)):
            return len(live) == n and not (live != DEAD).any()
        if (
            records.dtype != np.int32 or loops.dtype != np.int32 or live.dtype != np.int32
            or records.ndim != 2 or loops.ndim != 2 or live.ndim != 1
            or records.shape[1] != 5 or loops.shape[1] != 2 or len(live) != n
            or tests.dtype != np.int32 or tests.ndim != 2 or tests.shape[1] != 4 or (tests < 0).any()
        ):  # fmt: skip
            return False
        marks, counts = records[records[:, 0] == MARK], records[records[:, 0] != MARK]
        registers, counters = loops[loops[:, 0] < 0], loops[loops[:, 0] >= 0]
        return bool(
            counters_are_sound(n, counts, loops, live)
            and bounds_are_sound(counters)
            and not (loops[counts[:, 1], 0] < 0).any()
            and not ((registers[:, 0] != -1) | (registers[:, 1] < 1) | (registers[:, 1] > MOST_MEMBERS)).any()
            and not ((marks[:, 1] < 0) | (marks[:, 1] >= len(tests))).any()
            and not ((marks[:, 2] < 0) | (marks[:, 2] >= n)).any()
            and not ((marks[:, 3] < -1) | (marks[:, 3] >= MOST_MEMBERS)).any()
        )


def partitions(starts: NDArray[Any], total: int) -> bool:
    """Whether ``starts`` begins at 0, never descends, and ends at ``total``."""
    if not len(starts) or int(starts[0]) != 0 or int(starts[-1]) != total:
        return False
    return not (starts[1:] < starts[:-1]).any()
