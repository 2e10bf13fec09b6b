"""What an eager compile settles: every place that some configuration can come to.

Which states can lie directly below a state is a flow problem: a sequence ``x1 .. xm`` in place of ``s`` puts ``x1``
on what was below ``s``, and each ``x(j + 1)`` on ``x(j)``. Whoever pops comes back to a state whose own lower
neighbour was noted when it was pushed. The least solution says which resume lists can meet which states; it
leaves out nothing, and what it has too much of costs a walk and no more.
"""

from __future__ import annotations

from ..budget import Meter
from ..progress import Progress
from .pushdown_tables import PushdownTables
from .stack_rows import NOTHING, ROOT, StackRows
from .tables import SET

#: Places settled between two looks at the clock.
_CHUNK = 64


def settle_everything(tables: PushdownTables, rows: StackRows, meter: Meter | None, progress: Progress) -> None:
    """Settle every place that is not settled yet. Raises `BudgetExceededError`."""
    below, countless = lower_neighbours(tables)
    todo = [(ROOT, state) for state in range(tables.states)]
    seen = set(todo)
    for done, (resume, state) in enumerate(todo):  # grows as it goes
        if done % _CHUNK == 0:
            progress("token maps", done, len(todo))
            if meter:
                meter.check_time("token maps")
                meter.check_memory(rows.pool.nbytes, "token rows")
        for after in _resumes(tables, rows, resume, state, countless):
            for neighbour in below[state]:
                if (after, neighbour) not in seen:
                    seen.add((after, neighbour))
                    todo.append((after, neighbour))
    rows.shared.find_all()
    progress("token maps", len(todo), len(todo))


def _resumes(
    tables: PushdownTables, rows: StackRows, resume: int, state: int, countless: set[int]
) -> set[int]:
    """Settles a place, for each count that it can have; the resume lists that it leaves to what lies below."""
    if tables.live[state] < 0:
        return {rows.settle(resume, state, 0).resume} - {NOTHING}
    found = {rows.settle(resume, state, 0).resume} if state in countless else set()
    found.add(rows.settle(resume, state, 1).resume)
    if resume == ROOT and state in rows.segments:  # all counts at once
        found.update(settled.resume for settled in rows.segments[state][1])
    else:
        found.update(rows.settle(resume, state, count).resume for count in _counts(tables, rows, state))
    return found - {NOTHING}


def _counts(tables: PushdownTables, rows: StackRows, state: int) -> set[int]:
    """Counts that stand for all that a state can have."""
    minimum, maximum = tables.loops[tables.live[state]].tolist()
    reach = rows.vocabulary.trie.max_depth + 1
    near = {minimum, *range(minimum - reach, minimum), *range(maximum - reach, maximum + 1)}
    return {rows.representative(state, count) for count in near if 1 <= count <= maximum}


def lower_neighbours(tables: PushdownTables) -> tuple[list[set[int]], set[int]]:
    """For each state, those that can lie directly below it on a stack; and the states that may lack a count."""
    below: list[set[int]] = [set() for _ in range(tables.states)]
    flows: list[set[int]] = [set() for _ in range(tables.states)]
    counting: set[tuple[int, int]] = set()  # flows that bring a count along
    countless = {tables.start}
    for state in range(tables.states):
        for target in tables.targets(state):
            if target < tables.states:
                flows[state].add(target)
                continue
            for record, sequence in tables.moves[target - tables.states]:
                firsts = [sequence[:1]] if record is None else [(s,) for s in _counted(record)]
                rest = sequence[1:] if record is None else sequence
                countless.update(rest)
                for first in firsts:
                    flows[state].update(first)
                    counting.update((state, s) for s in first if record is not None)
                    for lower, upper in zip((*first, *rest), rest, strict=False):
                        below[upper].add(lower)
    todo = [state for state in range(tables.states) if below[state]]
    while todo:
        state = todo.pop()
        for target in flows[state]:
            if not below[state] <= below[target]:
                below[target] |= below[state]
                todo.append(target)
    todo = [state for state in range(tables.states) if tables.live[state] < 0 or state in countless]
    countless.update(todo)
    while todo:
        state = todo.pop()
        for target in flows[state]:
            if target not in countless and (state, target) not in counting:
                countless.add(target)
                todo.append(target)
    return below, countless


def _counted(record: tuple[int, ...]) -> list[int]:
    """The states that a counting move may come to."""
    operation, _, low, mid, high = record
    return [low] if operation == SET else [s for s in dict.fromkeys((low, mid, high)) if s >= 0]
