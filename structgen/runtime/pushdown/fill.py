"""What an eager compile decides: every partial mask that some configuration needs.

Which states can lie directly below a state is a flow problem: a sequence ``x1 .. xm`` in place of ``s`` puts ``x1``
on what was below ``s``, and each ``x(j + 1)`` on ``x(j)``. Whoever pops comes back to a state whose own lower
neighbour was noted when it was pushed. The least solution says which residual lists can meet which states; it
leaves out nothing, and what it has too much of costs a walk and no more.
"""

from __future__ import annotations

from itertools import pairwise
from time import monotonic

import numpy as np

from ... import kernels
from ...budget import Budget, Meter
from ...progress import Progress
from ...system.locks import Lock
from .counts import Counts, zones_of
from .flow import all_edges
from .partial_masks import NOTHING, ROOT, StateMasks
from .tables import PushdownTables

#: For rows that nobody waits for.
_UNBOUNDED = Budget(memory=1 << 62, seconds=1e9)

#: Seconds between looks at the clocks of the budget and of the lock, and masks that a kernel decides at once.
_LOOKS, _AT_ONCE = 0.001, 16

#: Bytes of a partial mask, beside rows and residual lists that others have, too.
_BYTES_OF_PLACE = 300

#: The target of an edge that leads nowhere.
_NOTHING = (-1,)

#: What a state in the set of another one's neighbours takes: a slot of a set that has just grown, mostly empty.
_BYTES_OF_NEIGHBOUR = 80


# Of the sets that a register can have, those that come about in the members' order are taken.

#: Counts of a wide state that calls while it counts (a key whose length is bounded, in an open object) that are
#: decided ahead of time: each takes a walk of the whole vocabulary. The others are decided when they are touched.
_WIDE_COUNTS = 4


#: More masks than these are worked out on first touch: hundreds of alternatives of one object, each with keys of
#: its own, can have any number, most of which no text ever comes to.
_MOST_MASKS = 30_000

#: The same after so many walks of the whole vocabulary, some milliseconds each: several conditions on one string
#: together can have thousands of states.
_MOST_WALKS = 512


def decide_everything(
    tables: PushdownTables, rows: StateMasks, lock: Lock, meter: Meter | None, progress: Progress
) -> bool:
    """Work out every partial mask that is missing; False where some were left for later.

    The rows are touched under ``lock``, which is passed on between two of them. Raises `BudgetExceededError`.
    """
    complete, meter = True, meter or Meter(_UNBOUNDED)
    counts, pairs = rows.counts(), _Pairs(tables.states, lower_neighbours(tables, meter))
    look, walked = 0.0, rows.long_walks
    while pairs.done < pairs.used:
        if pairs.done >= _MOST_MASKS or rows.long_walks - walked > _MOST_WALKS:
            complete = False
            break
        progress("token maps", pairs.done, pairs.used)
        held = rows.pool.nbytes + rows.residuals.nbytes + _BYTES_OF_PLACE * pairs.used
        meter.check_memory(held, "token rows")
        with lock:
            status = pairs.decide(rows, min(_AT_ONCE, _MOST_MASKS - pairs.done))
            if status == kernels.NO_PAIRS:
                pairs.make_room()
            elif not rows.provide(status):
                found, all_of_them = _residuals(rows, *pairs.next(), counts)
                pairs.given = np.array(sorted(found or {NOTHING}), np.int32)
                complete = complete and all_of_them
            late = monotonic() > look
            if late:
                lock.give_way()
        if late:
            meter.check_time("token maps")
            look = monotonic() + _LOOKS
    with lock:
        rows.lay_out_stretches()
        rows.shared.find_all()
    progress("token maps", pairs.used, pairs.used)
    return complete


class _Pairs:
    """Residual lists and states that are entered there: those that are decided, and behind them those that will be.

    Parameters
    ----------
    states:
        How many there are; each is entered at the root.
    lower:
        What can lie below each.
    """

    def __init__(self, states: int, lower: list[set[int]]) -> None:
        self._pairs = np.stack([np.full(states, ROOT, np.int64), np.arange(states)], axis=1)
        self._progress = np.array([0, states, 0], np.int64)
        self._starts = np.cumsum([0, *map(len, lower)], dtype=np.int32)
        self._lower = np.fromiter((each for some in lower for each in some), np.int32)
        #: The residual lists that the next pair leaves, if somebody decided it.
        self.given = np.zeros(0, np.int32)
        self.make_room()

    @property
    def done(self) -> int:
        """How many are decided."""
        return int(self._progress[0])

    @property
    def used(self) -> int:
        """How many there are."""
        return int(self._progress[1])

    def next(self) -> tuple[int, int]:
        """The residual list and the state that are next."""
        listed, state = self._pairs[self.done].tolist()
        return listed, state

    def decide(self, rows: StateMasks, most: int) -> int:
        """Decide some; see `structgen.kernels.store.deciding.decide_all`."""
        status: int = kernels.decide_all(
            rows.head.words, self._pairs, self._slots, self._progress, self._starts, self._lower, self.given, most
        )
        if status != kernels.NO_PAIRS:
            self.given = self.given[:0]
        return status

    def make_room(self) -> None:
        """Have room for more, as many as one pair can lead to."""
        widest = (len(self.given) + 1) * int(np.diff(self._starts).max(initial=0))
        wider = np.empty((2 * self.used + widest, 2), np.int64)
        wider[: self.used] = self._pairs[: self.used]
        self._pairs, self._slots = wider, np.full(4 << len(wider).bit_length(), -1, np.int32)
        self._progress[2] = 0


def _residuals(rows: StateMasks, residual: int, state: int, counts_of: Counts) -> tuple[set[int], bool]:
    """Works out partial masks for the counts that there can be; their residual lists, and whether for all counts."""
    if rows.tables.live[state] < 0:
        return {rows.decide(residual, state, 0)[1]}, True
    if rows.tables.registers[state]:
        size = int(rows.tables.loops[rows.tables.live[state]][1])
        return {rows.decide(residual, state, (1 << k) - 1)[1] for k in range(size + 1)}, False
    found = {rows.decide(residual, state, 0)[1]} if state in counts_of.without else set()
    possible = counts_of.possible[state]
    if possible is None:
        segments = rows.tell_counts(state) if residual == ROOT else None
        if segments is not None:  # all counts at once
            return found.union(segments[:, 3].tolist()), True
        found.add(rows.decide(residual, state, 1)[1])
    counts = sorted(_all_counts(rows, state) if possible is None else possible)
    taken = counts[:_WIDE_COUNTS] if residual == ROOT and rows.is_wide(state) else counts
    found.update(rows.decide(residual, state, count)[1] for count in taken)
    return found, len(taken) == len(counts)


def _all_counts(rows: StateMasks, state: int) -> set[int]:
    """Counts that stand for all that a state in a loop can have."""
    minimum, maximum = rows.tables.loops[rows.tables.live[state]].tolist()
    reach = rows.vocabulary.trie.max_depth + 1
    near = {minimum, *range(minimum - reach, minimum), *range(maximum - reach, maximum + 1)}
    return {rows.representative(state, count) for count in near if 1 <= count <= maximum}


def lower_neighbours(tables: PushdownTables, meter: Meter) -> list[set[int]]:
    """For each state, those that can lie directly below it on a stack. Raises `BudgetExceededError`."""
    doing, states = "finding what can lie below a state", tables.states
    below: list[set[int]] = [set() for _ in range(states)]
    entered: list[set[int]] = []  # by group: what takes the state's own place
    for group in meter.each(tables.all_moves(), doing):
        entered.append(set())
        for record, sequence in group:
            firsts, rest = (sequence[:1], sequence[1:]) if record is None else (tuple(zones_of(record)), sequence)
            entered[-1].update(firsts)
            if rest:
                below[rest[0]].update(firsts)
                for lower, upper in pairwise(rest):
                    below[upper].add(lower)
    begins, heads = all_edges(tables)
    starts, targets = begins.tolist(), (heads - 1).tolist()
    like = tables.like.tolist()
    flows: dict[int, set[int]] = {}  # what takes the place of a state that has some below it
    todo = dict.fromkeys(state for state in range(states) if below[state])
    held, turns = sum(map(len, below)), 0
    while todo:
        turns += 1
        if turns % 16 == 0:
            meter.check_time(doing)
        meter.check_memory(_BYTES_OF_NEIGHBOUR * held, doing)
        state, _ = todo.popitem()
        following = flows.get(state)
        if following is None:
            following = set(targets[starts[state] : starts[state + 1]])
            if like[state]:
                following.update(targets[starts[like[state] - 1] : starts[like[state]]])
            groups = [target for target in following if target >= states]
            following.difference_update(groups, _NOTHING)
            following.update(*[entered[group - states] for group in groups])
            flows[state] = following
            held += len(following)
        own = below[state]
        for target in following:
            known = below[target]
            if not own <= known:
                held -= len(known)
                known |= own
                held += len(known)
                todo[target] = None
    return below
