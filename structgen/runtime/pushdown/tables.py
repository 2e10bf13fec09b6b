"""`PushdownTables`: a pushdown automaton over bytes in the compact form that is stored and followed at run time.

The readable form, and what the moves mean, is `structgen.compiler.programs.program.Program`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import BudgetExceededError, FormatError
from ...storage.columns import MOST, Column, Columns, Sizes
from ...storage.container import smallest
from ...system.memo import Memo
from ...system.properties import cached_property
from ...system.types import Array, Sections
from ..automaton.tables import DEAD, LIVE, LOOPS, MARK, SET, byte_classes, check_counters, dense_table
from .captures.labels import NO_LABELS, StateLabels
from .token_edges import TokenTables

#: Members of a set. Where one has no other than so many, kernels keep it in an ``int64``; files have two words of 31
#: bits for these many, in as many rows as are needed.
MOST_MEMBERS, PAIR = 1 << 10, 62

#: Bytes of sets of more members that kernels have room for at first: about as many as are kept before all that was
#: worked out is forgotten. To lay out a table of twice the size, with the sets that are there, takes half a second.
_SET_BYTES = 1 << 28

#: The marks of states: behind the opening bracket of an array whose items must differ, and behind one of its items;
#: behind the opening brace of an object whose names must differ, behind a name, and behind a member.
OPENS_ARRAY, ENDS_ITEM, OPENS_OBJECT, ENDS_NAME, ENDS_MEMBER = range(1, 6)

#: Groups whose moves are kept spelled out.
_MOST_SPELLED = 1 << 17

#: No states that are open.
_NONE_OPEN: frozenset[int] = frozenset()

#: States that a move puts in place of one at most.
MOST_SEQUENCE = 1 << 13

#: What a move does with a counter or a register, as the five columns of its record, None for neither.
Record: TypeAlias = "tuple[int, ...] | None"

#: A group's moves: the record of each, and its sequence.
Moves: TypeAlias = tuple[tuple[Record, tuple[int, ...]], ...]

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = Columns(
    Column("returns", "u1", flags="states"),
    Column("edge_start", rows=("states", 1), starts="edges", cast="i4"),
    Column("edge_low", "u1", rows="edges"),
    Column("edge_high", "u1", rows="edges", ends="edge_low", within="edge_start"),
    Column("like", rows="states", below=("states", 1)),
    replace(LOOPS, fields=((-1, MOST), (1, MOST))),  # of a register -1
    LIVE,
    Column("distinct", "u1", rows="marked", below=6, default=0),
    Column("tests", "i4", rows="tests", fields=((-1, 1 << 31), *[(0, 1 << 31)] * 3), default=0),
    Column(
        "records", "i4", rows="records", default=0,
        fields=(
            (SET, MARK + 1), (0, ("loops", "tests")),
            (DEAD, "states"), (DEAD, ("states", MOST_MEMBERS)), (DEAD, "states"),
        ),
    ),
    Column("group_start", rows=("groups", 1), starts="moves", order="rises"),
    Column("edge_target", rows="edges", below=("states", "groups", 1)),
    Column("move_record", rows="moves", below=("records", 1)),
    Column("move_start", rows=("moves", 1), starts="sequence", widest=MOST_SEQUENCE),
    Column("sequence", rows="sequence", below="states"),
)  # fmt: skip


_NAMES = [column.name for column in SECTIONS]

_BYTES = bytes(range(256))


class GroupMoves(Memo[int, Moves]):
    """The moves of groups by number. Threads may spell the same out twice: they are equal, and either will do."""

    __slots__ = ("_columns",)

    def __init__(self, tables: PushdownTables) -> None:
        super().__init__(_MOST_SPELLED)
        self._columns = (
            tables.group_start, tables.move_record, tables.move_start, tables.records.reshape(-1), tables.sequence,
        )  # fmt: skip

    def __missing__(self, group: int) -> Moves:
        # Slices of buffers cost less than those of arrays; but each is two objects to the collector of garbage.
        groups, numbers, starts, records, states = (column.data for column in self._columns)
        found: list[tuple[Record, tuple[int, ...]]] = []
        for move in range(groups[group], groups[group + 1]):
            number = 5 * numbers[move]
            record = tuple(records[number - 5 : number]) if number else None
            found.append((record, tuple(states[starts[move] : starts[move + 1]])))
        moves = self[group] = tuple(found)
        return moves


class Source(Protocol):
    """Where tables come from that are lowered on demand."""

    def lower(self, states: Iterable[int]) -> PushdownTables:
        """The tables with the edges of some open states; all others are as they were, and new ones come behind them.

        Raises `BudgetExceededError`, and is as it was then.
        """


@dataclass(eq=False)
class PushdownTables:
    """A real-time pushdown automaton over bytes.

    Of an automaton that is lowered on demand some states are *open*: they have no edges yet. Whoever comes to one has
    it lowered by `lower`, under the machine's lock. The tables change in place then; states keep their numbers,
    groups do not. So what reads them without the lock keeps to columns that it has taken together.

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
        Counters, as in `structgen.runtime.automaton.tables.Tables`. A loop with the minimum -1 is a register, its
        maximum the number of possible members. A record of it is `MARK`, a test, the state, the member to add or -1,
        and -1.
    tests:
        ``int32[tests, 4]``: from how many to how many of the members in a mask must be there, and the mask's lower
        and upper 31 bits; those of the next 62 members are in another row behind it, which begins with -1, and so on.
    start:
        The initial state, alone on the stack.
    tokens:
        Token edges and token bounds, where there are or may come to be any.
    interiors:
        By state that is never above another one: a state, and the one behind it, such that with every byte it does as
        the first above the second. Not kept in files.
    distinct:
        ``uint8[states]`` where there are arrays whose items, or objects whose names, must differ, else empty: the
        marks of the states of such; see `structgen.runtime.pushdown.distinct`.
    labels:
        The states that stand for rules with captures and temperatures.
    """

    edge_start: Array
    edge_low: NDArray[np.uint8]
    edge_high: NDArray[np.uint8]
    edge_target: Array
    like: Array
    group_start: Array
    move_record: Array
    move_start: Array
    sequence: Array
    returns: NDArray[np.uint8]
    records: NDArray[np.int32]
    loops: NDArray[np.int32]
    live: NDArray[np.int32]
    tests: NDArray[np.int32]
    start: int
    tokens: TokenTables | None = None
    interiors: dict[int, tuple[int, int]] = field(default_factory=dict)
    distinct: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    labels: StateLabels = NO_LABELS

    def __post_init__(self) -> None:
        #: The open states, and what lowers them; nothing, where all is there.
        self.open = _NONE_OPEN
        self.source: Source | None = None

    def lower(self, states: Collection[int]) -> None:
        """Have some states lowered, those among them that are open still. Raises `BudgetExceededError`."""
        missing = self.open.intersection(states)
        if missing and self.source is not None:
            self.__dict__ = self.source.lower(missing).__dict__

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
        found: list[tuple[int, int, int]] = []
        for low, high, lower, upper in reversed(self.tests.tolist()):
            mask = upper << 31 | lower
            if found and found[-1][1] < 0:
                mask |= found[-1][0] << PAIR
            found.append((mask, low, high))
        return found[::-1]

    @cached_property
    def widest(self) -> int:
        """Members of the largest set at most."""
        return max((maximum for minimum, maximum in self.loops.tolist() if minimum < 0), default=0)

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

    def grouped(self, state: int) -> list[tuple[bytes, int]]:
        """The same by target: the bytes that lead there, and the target."""
        starts, lows, highs, targets, likes = self._edge_buffers
        by_target: dict[int, bytes] = {}
        for edge in range(starts[state], starts[state + 1]):
            target = targets[edge] - 1
            by_target[target] = by_target.get(target, b"") + _BYTES[lows[edge] : highs[edge] + 1]
        like = likes[state]
        if not like and -1 not in by_target:
            return [(data, target) for target, data in by_target.items()]
        told = b"".join(by_target.values())
        for data, target in self.grouped(like - 1) if like else ():
            left = data.translate(None, told)
            if left:
                by_target[target] = by_target.get(target, b"") + left
        by_target.pop(-1, None)
        return [(data, target) for target, data in by_target.items()]

    @cached_property
    def _edge_buffers(self) -> tuple[memoryview, ...]:
        """The columns of `edges`: single numbers come from buffers sooner than from arrays."""
        columns = self.edge_start, self.edge_low, self.edge_high, self.edge_target, self.like
        return tuple([np.ascontiguousarray(column).data for column in columns])

    @cached_property
    def moves(self) -> GroupMoves:
        """The moves of each group, spelled out when first asked for."""
        return GroupMoves(self)

    def all_moves(self) -> Iterator[Moves]:
        """The moves of one group after the other, sooner than each by itself."""
        records = [None, *map(tuple, self.records.tolist())]
        starts, states, numbers = self.move_start.tolist(), self.sequence.tolist(), self.move_record.tolist()
        for i, j in pairwise(self.group_start.tolist()):
            yield tuple([(records[numbers[m]], tuple(states[starts[m] : starts[m + 1]])) for m in range(i, j)])

    def is_deterministic(self, below: list[set[int]]) -> bool:
        """Whether no text leads to two stacks, as far as that is seen without following any.

        No byte has several moves, and none that a state takes which may return is taken by a state that it may be
        left to. ``below`` says which can lie directly below each state.
        """
        if (np.diff(self.group_start.astype(np.int64)) > 1).any():
            return False
        returns, taken = self.returns.tolist(), self.dense()[0] != DEAD
        above: dict[frozenset[int], list[int]] = {}  # states that return, by what can lie below them
        for state in np.flatnonzero(self.returns).tolist():
            above.setdefault(frozenset(below[state]), []).append(state)
        for lower, states in above.items():
            handed = dict.fromkeys(lower)
            todo = list(lower)
            while todo:
                state = todo.pop()
                if returns[state]:
                    more = below[state] - handed.keys()
                    handed.update(dict.fromkeys(more))
                    todo += more
            if (taken[states].any(axis=0) & taken[list(handed)].any(axis=0)).any():
                return False
        return True

    def dense(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """What each state does with each class of bytes, ``int32[states, classes]``, and the class of each byte.

        A state, ``states + g`` for group ``g``, or `DEAD`.
        """
        classes = byte_classes(self.edge_low, self.edge_high)
        table = dense_table(self.edge_start, self.edge_low, self.edge_high, self.edge_target, classes)
        states = np.flatnonzero(self.like)
        own = table[states]
        table[states] = np.where(own == DEAD, table[self.like[states].astype(np.int64) - 1], own)
        return np.maximum(table - 1, DEAD), classes

    # -- the form for kernels --------------------------------------------------------------------------

    def arena(self, sets: int = 0) -> NDArray[np.int32]:
        """Everything in one ``int32`` array; the layout is that of `structgen.kernels`' section on stacks.

        No row of the table is in it yet, but room for all: memory that is never touched is never taken. There is room
        for ``sets`` sets of members, a power of two, or for usually more than ever come about, if some can have more
        than `PAIR`.
        """
        columns = (
            self.edge_start, self.edge_low, self.edge_high, self.edge_target, self.move_record, self.move_start,
            self.like, self.group_start, self.sequence, self.records, self.loops, self.live, self.returns, self.tests,
        )  # fmt: skip
        given = np.array([n for each in columns for n in (kernels.address(each), each.size, each.itemsize)], np.int64)
        (words, sets), classes = self._room_for_sets(sets), np.zeros(256, np.uint8)
        size = kernels.arena_size(given, words, sets, classes)
        if size >= MOST:
            raise BudgetExceededError(f"an automaton of {self.states:,} states and {classes[-1] + 1} classes of bytes")
        arena = np.zeros(size, np.int32) if words else np.empty(size, np.int32)  # memory that is there already
        kernels.lay_out_arena(given, classes, words, sets, arena)
        if self.open:
            arena[arena[kernels.A_LIKE] + np.fromiter(self.open, np.int64, len(self.open))] = kernels.OPEN
        return arena

    def _room_for_sets(self, sets: int) -> tuple[int, int]:
        """Words of a set in the kernels' table, and how many sets it has room for; none if no set is in it."""
        if self.widest <= PAIR:
            return 0, 0
        words = -(-self.widest // 31)
        return words, max(sets, 1 << max(0, (_SET_BYTES // (4 * words + 8)).bit_length() - 1))

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md); counters only where there are any."""
        sections: dict[str, Array] = {
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
        if len(self.distinct):
            sections["distinct"] = self.distinct
        if self.tokens is not None and (len(self.tokens.states) or len(self.tokens.bounded)):
            sections |= self.tokens.to_sections()
        return sections | self.labels.to_sections()

    @classmethod
    def from_columns(
        cls, found: Sections, sizes: Sizes, where: str, tokens: TokenTables | None = None
    ) -> PushdownTables:
        """Of what `SECTIONS` declare, among others. Raises `FormatError`."""
        own: dict[str, Any] = {name: found[name] for name in _NAMES}
        like = found["like"]
        likes = np.zeros(len(like) + 1, like.dtype)
        likes[1:] = like
        if likes.take(like).tobytes().strip(b"\0"):
            raise FormatError("section 'like' has a state like one that is like another", where=where)
        if sizes["loops"] or sizes["records"]:
            _check_counters(found["records"], found["loops"], sizes, where)
        if sizes["marked"] not in (0, sizes["states"]):
            raise FormatError("section 'distinct' does not have a mark for each state", where=where)
        if tokens is not None and (found["live"][tokens.exhausted] >= 0).any():
            raise FormatError("section 'cap_exhausted' has a state that counts in a loop", where=where)
        return cls(**own, start=sizes["start"], tokens=tokens, interiors={})


def _check_counters(records: NDArray[np.int32], loops: NDArray[np.int32], sizes: Sizes, where: str) -> None:
    """Raise `FormatError` where a record does not fit what it works on: a counter, or a register and a test."""
    if (loops[loops[:, 0] < 0, 1] > MOST_MEMBERS).any():
        raise FormatError(f"section 'loops' has a register of more than {MOST_MEMBERS} members", where=where)
    of = records[:, 0] == MARK
    marks, counts = records[of], records[~of]
    widest = max(PAIR, int(loops[loops[:, 0] < 0, 1].max(initial=0)))
    bounds = np.array([sizes["tests"], sizes["states"], widest])
    if (marks[:, 1:4] >= bounds).any() or (marks[:, 2] < 0).any():
        raise FormatError("section 'records' has a mark without its test, state or member", where=where)
    bounds = np.array([len(loops), sizes["states"], sizes["states"]])
    if (counts[:, 1:4] >= bounds).any() or (loops[counts[:, 1], 0] < 0).any():
        raise FormatError("section 'records' has a count without its counter or state", where=where)
    check_counters(counts, loops, where)
