"""What an eager compile decides: every partial mask that some configuration needs.

Which states can lie directly below a state is a flow problem: a sequence ``x1 .. xm`` in place of ``s`` puts ``x1``
on what was below ``s``, and each ``x(j + 1)`` on ``x(j)``. Whoever pops comes back to a state whose own lower
neighbour was noted when it was pushed. The least solution says which residual lists can meet which states; it
leaves out nothing, and what it has too much of costs a walk and no more.
"""

from __future__ import annotations

from itertools import pairwise
from time import monotonic

from ...budget import Budget, Meter
from ...progress import Progress
from ...system.locks import Lock
from .counts import Counts, zones_of
from .flow import all_edges
from .partial_masks import NOTHING, ROOT, StateMasks
from .tables import PushdownTables

#: For rows that nobody waits for.
_UNBOUNDED = Budget(memory=1 << 62, seconds=1e9)

#: Seconds between looks at the clocks of the budget and of the lock, where a mask takes as long; or after 64 masks.
_LOOKS = 0.001

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
    below, counts = lower_neighbours(tables, meter), rows.counts()
    todo = [(ROOT, state) for state in range(tables.states)]
    seen = set(todo)
    look, walked = 0.0, rows.long_walks
    for done, (residual, state) in enumerate(todo):  # grows as it goes
        if done == _MOST_MASKS or rows.long_walks - walked > _MOST_WALKS:
            complete = False
            break
        if done % 64 == 0:
            progress("token maps", done, len(todo))
            held = rows.pool.nbytes + rows.residuals.nbytes + _BYTES_OF_PLACE * len(todo)
            meter.check_memory(held, "token rows")
        with lock:
            found, all_of_them = _residuals(rows, residual, state, counts)
            late = monotonic() > look
            if late:
                lock.give_way()
        if late or done % 64 == 0:
            meter.check_time("token maps")
            look = monotonic() + _LOOKS
        complete = complete and all_of_them
        for after in found - {NOTHING}:
            for neighbour in below[state]:
                if (after, neighbour) not in seen:
                    seen.add((after, neighbour))
                    todo.append((after, neighbour))
    with lock:
        rows.lay_out_stretches()
        rows.shared.find_all()
    progress("token maps", len(todo), len(todo))
    return complete


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
            return found | {after for _, after in segments[1]}, True
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
