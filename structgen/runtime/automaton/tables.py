"""`Tables`: a byte automaton in the compact form that is stored in a file and followed at run time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import FormatError
from ...storage import columns
from ...storage.columns import MOST, Column, Columns, Field, Sizes
from ...storage.container import smallest
from ...system.types import Array, Sections

#: A dead state, and a missing target.
DEAD = -1

#: The operations of a record: on counters, and (in automata with a stack) on registers.
SET, INC, MARK = 0, 1, 2


def byte_classes(low: NDArray[np.uint8], high: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """``uint8[256]``: bytes that no range tells apart have the same class, numbered in their order."""
    class_of = np.zeros(256, np.uint8)
    kernels.number_byte_classes(low, high, class_of)
    return class_of


def bytes_in(low: NDArray[np.uint8], high: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """``bool[256]``: the bytes that some range holds."""
    changes = np.bincount(low, minlength=257) - np.bincount(high.astype(np.int64) + 1, minlength=257)
    found: NDArray[np.bool_] = np.cumsum(changes)[:256] > 0
    return found


def dense_table(
    edge_start: Array,
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


#: Which loops there are, and in which one each state counts; absent where nothing is counted.
LOOPS = Column("loops", "i4", rows="loops", fields=((0, MOST), (1, MOST)), default=0)
LIVE = Column("live", "i4", rows="states", least=DEAD, below="loops", default=DEAD)

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = Columns(
    Column("edge_start", rows=("states", 1), starts="edges", cast="i4"),
    Column("edge_low", "u1", rows="edges"),
    Column("edge_high", "u1", rows="edges"),
    LOOPS,
    LIVE,
    Column(
        "records", "i4", rows="records", default=0,
        fields=((SET, INC + 1), (0, "loops"), (DEAD, "states"), (DEAD, "states"), (DEAD, "states")),
    ),
    Column("edge_target", rows="edges", below=("states", "records"), cast="i4"),
    Column("accepting", "u1", flags="states"),
)  # fmt: skip

#: The fields of the meta section.
FIELDS = (Field("states", int, least=1), Field("start", int, below="states"))


def check_counters(records: NDArray[np.int32], loops: NDArray[np.int32], where: str) -> None:
    """Raise `FormatError` where a maximum is below its minimum, or a count is set and the record leads nowhere."""
    if (loops[:, 0] > loops[:, 1]).any():
        raise FormatError("section 'loops' has a maximum below its minimum", where=where)
    if (records[records[:, 0] == SET, 2] < 0).any():
        raise FormatError("section 'records' has a set that leads nowhere", where=where)


def representative(bounds: Array, count: int, reach: int) -> int:
    """A count from which texts of ``reach`` bytes fare as from ``count``, in a loop with a minimum and a maximum."""
    minimum, maximum = bounds.tolist()
    if count + reach >= maximum:
        return count
    if count >= minimum:
        return int(minimum) or 1
    return count if count + reach >= minimum else 1


def events(
    what: NDArray[np.int32], first: NDArray[np.int32], last: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The counts at which something comes, or goes as it is there no more, in order, and what."""
    when = np.concatenate([first, last + 1])
    # NumPy sorts 16-bit integers by radix, ten times faster than others.
    order = np.argsort(when.astype(np.uint16) if when.max(initial=0) < 1 << 16 else when, kind="stable")
    return when[order], np.concatenate([what, what])[order]


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

    edge_start: Array
    edge_low: NDArray[np.uint8]
    edge_high: NDArray[np.uint8]
    edge_target: Array
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

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md); counters only where there are any."""
        sections: dict[str, Array] = {
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
    def from_sections(cls, sections: Sections, sizes: Sizes, where: str) -> Tables:
        """Read `to_sections`. Raises `FormatError`."""
        found = columns.read(sections, SECTIONS, sizes, where)
        if (found["edge_high"] < found["edge_low"]).any():
            raise FormatError("section 'edge_high' has a range that ends before it begins", where=where)
        if len(found["loops"]):
            check_counters(found["records"], found["loops"], where)
        return cls(**found, start=sizes["start"])
