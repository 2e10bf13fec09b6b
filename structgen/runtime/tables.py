"""`Tables`: a byte automaton in the compact form that is stored in a file and followed at run time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from .container import smallest

#: A dead state, and a missing target.
DEAD = -1

#: The operations of a record: on counters, and (in automata with a stack) on registers.
SET, INC, MARK = 0, 1, 2


def byte_classes(low: NDArray[np.uint8], high: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``uint8[256]``: bytes that no range tells apart have the same class, numbered in their order."""
    cuts = np.zeros(257, np.bool_)
    cuts[low] = True
    cuts[high.astype(np.int64) + 1] = True
    cuts[0] = False
    return np.cumsum(cuts[:256]).astype(np.uint8)


def dense_table(
    edge_start: NDArray[Any],
    low: NDArray[np.uint8],
    high: NDArray[np.uint8],
    target: NDArray[np.int64],
    classes: NDArray[np.uint8],
) -> NDArray[np.int32]:
    """``int32[states, classes]``: the target of the range that a class lies in, `DEAD` where there is none."""
    states = len(edge_start) - 1
    source = np.repeat(np.arange(states), np.diff(edge_start.astype(np.int64)))
    first = classes[low].astype(np.int64)
    width = classes[high].astype(np.int64) - first + 1
    edge = np.repeat(np.arange(len(source)), width)
    column = first[edge] + np.arange(len(edge)) - np.repeat(np.cumsum(width) - width, width)
    table = np.full((states, int(classes[-1]) + 1), DEAD, np.int32)
    table[source[edge], column] = target[edge]
    return table


def counters_are_sound(
    states: int, records: NDArray[np.int32], loops: NDArray[np.int32], live: NDArray[np.int32]
) -> bool:
    """Whether operations, loops and targets of the records are in range, and so are the states' loops.

    The bounds of the loops are up to `bounds_are_sound`.
    """
    targets = records[:, 2:]
    return bool(
        not ((records[:, 0] < SET) | (records[:, 0] > INC)).any()
        and not ((records[:, 1] < 0) | (records[:, 1] >= len(loops))).any()
        and not ((targets < DEAD) | (targets >= states)).any()
        and not ((records[:, 0] == SET) & (records[:, 2] < 0)).any()
        and not ((live < DEAD) | (live >= len(loops))).any()
    )


def bounds_are_sound(loops: NDArray[np.int32]) -> bool:
    """Whether the minimum and maximum of loops make sense."""
    return not ((loops[:, 0] < 0) | (loops[:, 1] < 1) | (loops[:, 0] > loops[:, 1])).any()


@dataclass(frozen=True, eq=False)
class Tables:
    """A byte automaton with at most one live counter, transitions as ranges of bytes.

    The transitions of state ``s`` are ``edge_*[edge_start[s]:edge_start[s + 1]]``, ascending and disjoint.

    Parameters
    ----------
    edge_start:
        ``uint[states + 1]``.
    edge_low, edge_high:
        ``uint8[edges]``, an inclusive range of bytes.
    edge_target:
        ``uint[edges]``: a state, or ``states + r`` for record ``r``.
    accepting:
        ``uint8[states]``: 1 where a text may end.
    records:
        ``int32[records, 5]``: operation, loop, targets for a count below the minimum, from there to below the
        maximum, and at the maximum (-1: dead). ``SET`` starts the count at 1; ``INC`` adds 1 and picks a target.
    loops:
        ``int32[loops, 2]``: minimum and maximum count.
    live:
        ``int32[states]``: the loop whose count a state depends on, or -1.
    start:
        The initial state.
    """

    edge_start: NDArray[Any]
    edge_low: NDArray[np.uint8]
    edge_high: NDArray[np.uint8]
    edge_target: NDArray[Any]
    accepting: NDArray[np.uint8]
    records: NDArray[np.int32]
    loops: NDArray[np.int32]
    live: NDArray[np.int32]
    start: int

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.accepting)

    def classes(self) -> NDArray[np.uint8]:
        """``uint8[256]``: bytes that no transition tells apart have the same class, numbered in their order."""
        return byte_classes(self.edge_low, self.edge_high)

    def dense(self, classes: NDArray[np.uint8]) -> NDArray[np.int32]:
        """The form for kernels: ``int32[states, classes]``, -1 dead, ``-2 - r`` for record ``r``."""
        target = self.edge_target.astype(np.int64)
        target = np.where(target >= self.states, self.states - 2 - target, target)
        return dense_table(self.edge_start, self.edge_low, self.edge_high, target, classes)

    @property
    def nbytes(self) -> int:
        """Bytes of the stored arrays."""
        return sum(a.nbytes for a in self.to_sections().values())

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md); counters only where there are any."""
        sections: dict[str, NDArray[Any]] = {
            "edge_start": smallest(self.edge_start),
            "edge_low": self.edge_low,
            "edge_high": self.edge_high,
            "edge_target": smallest(self.edge_target),
            "accepting": np.packbits(self.accepting, bitorder="little"),
        }
        if len(self.loops):
            sections |= {"records": self.records, "loops": self.loops, "live": self.live}
        return sections

    @classmethod
    def from_sections(cls, states: int, start: int, sections: Mapping[str, NDArray[Any]], where: str) -> Tables:
        """Tables used where they lie, after a check of every index in them. Raises `FormatError`."""
        try:
            edge_start, edge_target = sections["edge_start"], sections["edge_target"]
            low, high, accepting = sections["edge_low"], sections["edge_high"], sections["accepting"]
        except KeyError as error:
            raise FormatError(f"section {error} is missing", where=where) from error
        records = sections.get("records", np.zeros((0, 5), np.int32))
        loops = sections.get("loops", np.zeros((0, 2), np.int32))
        live = sections.get("live", np.full(states, DEAD, np.int32))
        starts = edge_start.astype(np.int64)
        one_dimensional = (edge_start, edge_target, low, high, accepting, live)
        sound = (
            states > 0 and 0 <= start < states
            and all(a.ndim == 1 for a in one_dimensional)
            and edge_start.dtype.kind == edge_target.dtype.kind == "u"
            and low.dtype == high.dtype == accepting.dtype == np.uint8
            and records.dtype == loops.dtype == live.dtype == np.int32
            and records.ndim == loops.ndim == 2 and records.shape[1] == 5 and loops.shape[1] == 2
            and len(starts) == states + 1 and starts[0] == 0 and starts[-1] == len(edge_target)
            and len(low) == len(high) == len(edge_target) and len(live) == states
            and len(accepting) == -(-states // 8)
            and not (np.diff(starts) < 0).any() and not (high < low).any()
            and (not len(edge_target) or int(edge_target.max()) < states + len(records))
            and counters_are_sound(states, records, loops, live)
            and bounds_are_sound(loops)
        )  # fmt: skip
        if not sound:
            raise FormatError("the automaton's tables point outside themselves", where=where)
        bits = np.unpackbits(accepting, count=states, bitorder="little")
        return cls(edge_start, low, high, edge_target, bits, records, loops, live, start)
