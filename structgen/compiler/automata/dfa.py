"""Deterministic automata, and the operations on them that the front ends need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Meter
from ...runtime.automaton.reaching import reaching as reaching
from ...runtime.automaton.tables import Tables
from ...storage.container import smallest
from ...system.types import Array
from .nfa import BYTES, Nfa, NfaBuilder

#: Elementary steps of a kernel between two looks at the clock: 3 to 10 ns each in the subset construction, 5 to 50 ns
#: in the partition, whose arrays outgrow the caches.
_WORK = 1 << 19

#: Transitions that are put in order, before the partition begins, in a second.
_ORDERED_PER_SECOND = 10_000_000

#: What `minimize` holds of a transition.
_BYTES_OF_TRANSITION = 60

#: Rows of a table that are turned into ranges at a time, to bound the memory in flight.
_CHUNK = 4096

#: Cells of a table whose transitions are listed, or that are copied, at a time.
_CELLS = 1 << 20

#: Columns of a counter record.
OPERATION, LOOP, TARGET_LOW, TARGET_MID, TARGET_HIGH = range(5)


class CounterConflictError(Exception):
    """Two threads of a subset would need different counts: one of the ``loops`` cannot be counted."""

    def __init__(self, loops: tuple[int, ...]) -> None:
        super().__init__(loops)
        self.loops = loops


@dataclass(frozen=True, eq=False)
class Dfa:
    """A deterministic automaton over bytes (and, on the way, markers), with at most one live counter.

    Every state can reach an accepting one; transitions that could not are dead (-1). An automaton with no
    states accepts nothing.

    Parameters
    ----------
    table:
        ``int32[states, classes]``: the next state, -1 for dead, or ``-2 - r`` for record ``r``.
    classes:
        ``int32[symbols]``: the class of each symbol; classes are numbered in order of the symbols.
    accepting:
        ``uint8[states]``: 1 where a text may end.
    records:
        ``int32[records, 5]``: operation (`kernels.SET` or `kernels.INC`), loop, and the target for the new
        count's zone `LOW`, `MID` and `HIGH`.
    loops:
        ``int64[loops, 2]``: minimum and maximum count.
    start:
        The initial state.
    """

    table: NDArray[np.int32]
    classes: NDArray[np.int32]
    accepting: NDArray[np.uint8]
    records: NDArray[np.int32]
    loops: NDArray[np.int64]
    start: int

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.accepting)

    @property
    def n_classes(self) -> int:
        """Number of classes of symbols."""
        return int(self.classes[-1]) + 1

    def __str__(self) -> str:
        """A table for reading: a line for each state, with its byte ranges and their targets."""
        moves: list[list[str]] = [[] for _ in range(self.states)]
        for state, low, high, entry in zip(*(column.tolist() for column in self.edges()), strict=True):
            moves[state].append(f"{_symbol(low)}-{_symbol(high)}: {self._target(entry)}")
        lines = []
        for s in range(self.states):
            mark = ("->" if s == self.start else "  ") + ("(%d)" if self.accepting[s] else " %d ") % s
            lines.append(f"{mark}  {', '.join(moves[s])}")
        return "\n".join(lines)

    def _target(self, entry: int) -> str:
        if entry >= 0:
            return str(entry)
        operation, loop, low, mid, high = self.records[-2 - entry].tolist()
        if operation == kernels.SET:
            return f"{mid} count=1"
        least, most = self.loops[loop].tolist()
        return f"count+=1 [<{least}: {low}, <{most}: {mid}, ={most}: {high}]"

    def edges(
        self, meter: Meter | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """All live transitions as (state, lowest symbol, highest symbol, table entry), in this order."""
        firsts: Iterable[int] = range(0, self.states, _CHUNK)
        if meter is not None:
            firsts = meter.each(firsts, "listing transitions", every=1)
        parts = [_runs(self.table[i : i + _CHUNK], i) for i in firsts]
        none = np.zeros(0, np.int64)
        columns = zip((none, none, none, none.astype(np.int32)), *parts, strict=True)
        state, first, last, entry = (np.concatenate(column) for column in columns)
        begins = np.searchsorted(self.classes, np.arange(self.n_classes + 1))
        return state, begins[first], begins[last + 1] - 1, entry


def _runs(
    rows: NDArray[np.int32], first_state: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """The maximal runs of equal live entries in each row."""
    begins = np.ones(rows.shape, np.bool_)
    begins[:, 1:] = rows[:, 1:] != rows[:, :-1]
    state, low = np.nonzero(begins)
    entry = rows[state, low]
    high = np.append(low[1:], 0) - 1
    high[high < 0] = rows.shape[1] - 1  # the last run of a row, where the next begins at 0
    live = entry != kernels.DEAD
    return state[live] + first_state, low[live], high[live], entry[live]


def _symbol(symbol: int) -> str:
    if symbol >= BYTES:
        return f"#{symbol - BYTES}"
    return chr(symbol) if 33 <= symbol < 127 else f"\\x{symbol:02x}"


def determinize(nfa: Nfa, meter: Meter, doing: str = "determinising", *, most: int | None = None) -> Dfa:
    """Subset construction, of ``most`` states where that is less than the budget.

    Raises `CounterConflictError`, or `BudgetExceededError`.
    """
    meter.check_time(doing)
    states = min(meter.states, most or meter.states)
    width, room = nfa.n_classes, len(nfa.owner) + 1
    at = np.array([0, 0, 0, -1, 0, 0])
    table, accepting, first = np.empty(64 * width, np.int32), np.zeros(64, np.uint8), np.zeros(65, np.int64)
    items, records = np.empty(1024 + 3 * room, np.int32), np.empty((16, 5), np.int32)
    slots, scratch = np.full(256, -1, np.int32), np.empty((7, max(room, width) + 1), np.int32)
    while True:
        status, loop, other = kernels.determinize(
            nfa.t_start, nfa.t_lo, nfa.t_hi, nfa.t_to, nfa.e_start, nfa.e_to, nfa.e_kind, nfa.owner, nfa.loops,
            nfa.start, nfa.accept, width, states, _WORK, at, table, accepting, items, first, slots, records,
            scratch,
        )  # fmt: skip
        n_states, n_items, n_records = at[:3].tolist()
        if status == kernels.OK:
            break
        if status == kernels.CONFLICT:
            raise CounterConflictError(tuple({x for x in (loop, other) if x >= 0}))
        if status == kernels.TOO_MANY_STATES:
            raise meter.too_many_states(states + 1, doing)
        meter.check_time(doing)
        if status == kernels.NO_ROOM:
            held = table.nbytes + items.nbytes + first.nbytes + slots.nbytes
            table = _with_room(table, (n_states + 3) * width, held, meter, doing)
            items = _with_room(items, n_items + 3 * room, held, meter, doing)
            accepting = _with_room(accepting, n_states + 3, held, meter, doing)
            first = _with_room(first, n_states + 4, held, meter, doing)
            records = _with_room(records, n_records + 2, held, meter, doing)
            if 2 * (n_states + 3) > len(slots):
                slots, at[-1] = _more_slots(slots, held, meter, doing), 1
    return Dfa(
        table=table[: n_states * width].reshape(n_states, width),
        classes=nfa.classes,
        accepting=accepting[:n_states],
        records=records[:n_records],
        loops=nfa.loops[:, :2].copy(),
        start=0,
    )


def _with_room(array: Array, size: int, held: int, meter: Meter, doing: str) -> Array:
    """The array, or one twice as long, or as long as there is memory for, if it is shorter than ``size``.

    ``held`` bytes are held already, those of the array among them.
    """
    if size <= len(array):
        return array
    of_one = array.nbytes // len(array)
    larger = max(size, min(2 * len(array), meter.room(held) // of_one))
    meter.check_memory(held + larger * of_one, doing)
    copy = np.empty((larger, *array.shape[1:]), array.dtype)
    for begin in meter.each(range(0, len(array), _CELLS), doing, every=1):
        end = min(begin + _CELLS, len(array))
        copy[begin:end] = array[begin:end]
    return copy


def _more_slots(slots: NDArray[np.int32], held: int, meter: Meter, doing: str) -> NDArray[np.int32]:
    """Four times as many, all empty."""
    meter.check_memory(held + 4 * slots.nbytes, doing)
    return np.full(4 * len(slots), -1, np.int32)


def minimize(dfa: Dfa, meter: Meter) -> Dfa:
    """The smallest automaton of the same language, states numbered in breadth-first order from the start.

    (With counters: the coarsest that respects the counter operations, which is as small as this form gets.)
    Raises `BudgetExceededError`.
    """
    if not dfa.states:
        return dfa
    _check_transitions(int(np.count_nonzero(dfa.table != kernels.DEAD)), meter)
    tails, labels, heads = _labelled_transitions(dfa, meter)
    order = np.arange(len(labels), dtype=np.int32)
    if len(dfa.records):
        order = np.argsort(labels, kind="stable").astype(np.int32)
        meter.check_time("minimising")
        labels = labels[order]
    begins = np.append(np.flatnonzero(runs_begin(labels)), len(labels)).astype(np.int32)
    meter.check_time("minimising")
    del labels
    return _renumbered(dfa, _partition(tails, order, begins, heads, dfa.accepting, meter))


def coarsest_partition(table: NDArray[np.int32], kinds: NDArray[np.int64], meter: Meter) -> NDArray[np.int32]:
    """The coarsest partition of states into blocks whose members are of one kind and go on into the same blocks.

    Parameters
    ----------
    table:
        ``int32[states, labels]``: the next state, -1 for none, which is told apart from any state.
    kinds:
        ``int64[states]``: from 0 on.

    Returns the block of each state, ``int32[states]``. Raises `BudgetExceededError`.
    """
    _check_transitions(int(np.count_nonzero(table >= 0)) + len(kinds), meter)
    by_label = np.ascontiguousarray(table.T).reshape(-1)
    flat = np.flatnonzero(by_label >= 0)
    labels, tails = np.divmod(flat, len(table))
    heads = by_label[flat]
    # A kind is one more label, with which its states lead to themselves.
    order = np.argsort(kinds, kind="stable")
    labels = np.concatenate([labels, table.shape[1] + kinds[order]])
    tails, heads = np.concatenate([tails, order]), np.concatenate([heads, order])
    begins = np.append(np.flatnonzero(runs_begin(labels)), len(labels))
    return _partition(
        tails.astype(np.int32), np.arange(len(labels), dtype=np.int32), begins.astype(np.int32),
        heads.astype(np.int32), np.ones(len(table), np.uint8), meter,
    )  # fmt: skip


def _check_transitions(transitions: int, meter: Meter) -> None:
    """Refuse to begin what would hold too much, or not even be put in order in time."""
    meter.check_memory(_BYTES_OF_TRANSITION * transitions, "minimising")
    if transitions > meter.work(_ORDERED_PER_SECOND):
        raise meter.out_of_time("minimising")


def _partition(
    tails: NDArray[np.int32], order: NDArray[np.int32], begins: NDArray[np.int32], heads: NDArray[np.int32],
    accepting: NDArray[np.uint8], meter: Meter,
) -> NDArray[np.int32]:  # fmt: skip
    """The block of each state; see `kernels.coarsest_partition`."""
    n, m = len(accepting), len(tails)
    at, blocks, cords = np.zeros(4, np.int64), np.zeros((5, n + 1), np.int32), np.zeros((5, m + 1), np.int32)
    marks = np.zeros((4, max(n, m) + 1), np.int32)
    in_first, incoming = np.zeros(n + 2, np.int32), np.zeros(m, np.int32)
    while (
        kernels.coarsest_partition(
            tails, order, begins, heads, accepting, _WORK, at, blocks, cords, marks, in_first, incoming
        )
        == kernels.TOO_MUCH_WORK
    ):
        meter.check_time("minimising")
    return blocks[2, :n]


def _labelled_transitions(dfa: Dfa, meter: Meter) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """Every live transition as (tail, label, head); a record gives one for each zone, each its own label.

    Those without records come first, in order of their labels, which are their classes.
    """
    width = max(1, _CELLS // dfa.states)
    slices = [
        _transitions(dfa.table[:, first : first + width], first)
        for first in meter.each(range(0, dfa.n_classes, width), "minimising", every=1)
    ]
    tails, classes, entries = (np.concatenate(column) for column in zip(*slices, strict=True))
    meter.check_time("minimising")
    plain = entries >= 0
    parts = [(tails[plain], classes[plain], entries[plain])]
    if not plain.all():
        tails, classes, record = tails[~plain], classes[~plain], dfa.records[-2 - entries[~plain]]
        for zone in range(3):
            heads = record[:, TARGET_LOW + zone]
            kind = 1 + zone + 3 * record[:, OPERATION] + 6 * record[:, LOOP].astype(np.int64)
            live = heads >= 0
            parts.append((tails[live], (classes + kind * dfa.n_classes)[live], heads[live]))
    tail, label, head = (np.concatenate(column) for column in zip(*parts, strict=True))
    return tail.astype(np.int32), label.astype(np.int64), head.astype(np.int32)


def _transitions(
    columns: NDArray[np.int32], first: int
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]]:
    """The live transitions in some columns of a table, from class ``first`` on, by class, as (tail, class, entry)."""
    classes, tails = np.nonzero(columns.T != kernels.DEAD)
    return tails.astype(np.int32), classes + first, columns[tails, classes]


def runs_begin(values: Array) -> NDArray[np.bool_]:
    """Where a run of equal values begins in a sequence, or one of equal columns in a table: `bool[columns]`."""
    begins = np.ones(values.shape[-1], np.bool_)
    different = values[..., 1:] != values[..., :-1]
    begins[1:] = different if values.ndim == 1 else different.any(axis=0)
    return begins


def _renumbered(dfa: Dfa, block: NDArray[np.int32]) -> Dfa:
    """One state for each block, in the order in which the states are first seen; equal records are shared."""
    blocks = int(block.max()) + 1
    if blocks == dfa.states and not len(dfa.records):
        return dfa
    first = np.empty(blocks, np.int64)
    first[block[::-1]] = np.arange(dfa.states - 1, -1, -1)  # the last assignment holds
    first.sort()  # subset construction numbers states breadth first; keep that order
    rename = np.empty(blocks, np.int32)
    rename[block[first]] = np.arange(blocks)
    new = np.append(rename[block], np.int32(kernels.DEAD))  # new[-1]: the dead state stays dead
    table = dfa.table[first]
    records = dfa.records
    if len(records):
        records = records.copy()
        records[:, TARGET_LOW:] = new[records[:, TARGET_LOW:]]
        records, which = np.unique(records, axis=0, return_inverse=True)
        entry = np.where(table < kernels.DEAD, -2 - which.reshape(-1)[np.clip(-2 - table, 0, len(which) - 1)], 0)
        table = np.where(table >= kernels.DEAD, new[np.maximum(table, -1)], entry).astype(np.int32)
    else:
        table = new[table]
    return replace(
        dfa,
        table=np.ascontiguousarray(table),
        accepting=dfa.accepting[first],
        records=np.ascontiguousarray(records),
        start=int(new[dfa.start]),
    )


# -- algebra, for automata without counters ----------------------------------------------------------------


def total(dfa: Dfa) -> Dfa:
    """The same language with a state, not accepting, in place of the dead one (so not trimmed any more)."""
    n = dfa.states
    table = np.vstack([np.where(dfa.table < 0, n, dfa.table), np.full((1, dfa.n_classes), n)])
    return replace(
        dfa,
        table=table.astype(np.int32),
        accepting=np.append(dfa.accepting, 0).astype(np.uint8),
        start=dfa.start if n else 0,
    )


def complement(dfa: Dfa) -> Dfa:
    """All symbol sequences that ``dfa`` does not accept (not trimmed)."""
    everything = total(dfa)
    return replace(everything, accepting=(1 - everything.accepting).astype(np.uint8))


def intersect(a: Dfa, b: Dfa, meter: Meter, doing: str = "intersecting") -> Dfa:
    """What both automata accept, minimised. They may have different classes of the same symbols."""
    a, b = same_classes(a, b)
    if not (a.states and b.states):
        return replace(a, table=a.table[:0], accepting=a.accepting[:0], start=0)
    width, held = a.n_classes, a.table.nbytes + b.table.nbytes
    at, slots = np.array([1, 0, 1]), np.full(1024, -1, np.int32)
    left, right = np.full((2, 64 + width), [[a.start], [b.start]], np.int32)
    table, tables = np.empty(64 * width, np.int32), [np.ascontiguousarray(each.table).reshape(-1) for each in (a, b)]
    while True:
        status = kernels.intersect(
            tables[0], a.accepting, tables[1], b.accepting, width, meter.states, _WORK, at, left, right, table, slots
        )
        n, done = at[:2].tolist()
        if status == kernels.OK:
            break
        if status == kernels.TOO_MANY_STATES:
            raise meter.too_many_states(meter.states + 1, doing)
        meter.check_time(doing)
        if status == kernels.NO_ROOM:
            all_of = held + table.nbytes + 2 * left.nbytes + slots.nbytes
            table = _with_room(table, (done + 1) * width, all_of, meter, doing)
            left = _with_room(left, n + width, all_of, meter, doing)
            right = _with_room(right, n + width, all_of, meter, doing)
            if 2 * (n + width) > len(slots):
                slots, at[2] = _more_slots(slots, all_of, meter, doing), 1
    accepting = a.accepting[left[:n]] & b.accepting[right[:n]]
    product = replace(a, table=table[: n * width].reshape(n, width), accepting=accepting, start=0)
    return minimize(trim(product), meter)


def same_classes(a: Dfa, b: Dfa) -> tuple[Dfa, Dfa]:
    """Both automata, with the same classes of symbols."""
    begins = runs_begin(a.classes) | runs_begin(b.classes)
    classes = np.cumsum(begins, dtype=np.int32) - np.int32(1)
    symbol = np.flatnonzero(begins)
    return (
        replace(a, table=np.ascontiguousarray(a.table[:, a.classes[symbol]]), classes=classes),
        replace(b, table=np.ascontiguousarray(b.table[:, b.classes[symbol]]), classes=classes),
    )


def trim(dfa: Dfa) -> Dfa:
    """Without the states that reach no accepting one."""
    tails, classes = np.nonzero(dfa.table >= 0)
    heads = dfa.table[tails, classes]
    kept = reaching(tails, heads, dfa.accepting)
    if not kept[dfa.start]:
        return replace(dfa, table=dfa.table[:0], accepting=dfa.accepting[:0], start=0)
    if kept.all():
        return dfa
    new = np.full(dfa.states + 1, kernels.DEAD, np.int32)
    new[:-1][kept] = np.arange(int(kept.sum()))
    return replace(dfa, table=new[dfa.table[kept]], accepting=dfa.accepting[kept], start=int(new[dfa.start]))


def add_to(builder: NfaBuilder, dfa: Dfa, owner: int = -1) -> tuple[int, list[int]]:
    """Copy an automaton into an NFA under construction, inside counted loop ``owner`` or none.

    Returns its start and its accepting states.
    """
    base = len(builder.owners)
    # An automaton without states still needs a place to start.
    builder.owners.extend([owner] * max(1, dfa.states))
    state, low, high, target = dfa.edges()
    builder.edge_blocks.append(np.stack([state + base, low, high, target + base], axis=1).astype(np.int32))
    return base + dfa.start, [base + int(s) for s in np.flatnonzero(dfa.accepting)]


# -- the form that is stored and run ----------------------------------------------------------------------


def to_tables(dfa: Dfa, meter: Meter | None = None) -> Tables:
    """The converter from the compiler's form of an automaton to the one that is stored and run."""
    state, low, high, entry = dfa.edges(meter)
    return Tables(
        edge_start=smallest(np.searchsorted(state, np.arange(dfa.states + 1))),
        edge_low=low.astype(np.uint8),
        edge_high=high.astype(np.uint8),
        edge_target=smallest(np.where(entry >= 0, entry, dfa.states - 2 - entry)),
        accepting=dfa.accepting.copy(),
        records=dfa.records.astype(np.int32),
        loops=dfa.loops.astype(np.int32) if len(dfa.records) else np.zeros((0, 2), np.int32),
        live=_live_loops(dfa),
        start=dfa.start,
    )


def _live_loops(dfa: Dfa) -> NDArray[np.int32]:
    """The loop whose count each state depends on: one that it increments before anything resets it."""
    live = np.full(dfa.states, kernels.DEAD, np.int32)
    if not len(dfa.records):
        return live
    tails, classes = np.nonzero(dfa.table >= 0)
    heads = dfa.table[tails, classes]
    increments = np.append(dfa.records[:, OPERATION] == kernels.INC, False)
    for loop in range(len(dfa.loops)):
        here = increments & np.append(dfa.records[:, LOOP] == loop, False)
        counts = here[np.where(dfa.table < kernels.DEAD, -2 - dfa.table, -1)].any(axis=1)
        live[reaching(tails, heads, counts)] = loop
    return live
