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
    below = lower_neighbours(tables)
    todo = [(ROOT, state) for state in range(tables.states)]
    seen = set(todo)
    for done, (resume, state) in enumerate(todo):  # grows as it goes
        if done % _CHUNK == 0:
            progress("token maps", done, len(todo))
            if meter:
                meter.check_time("token maps")
                meter.check_memory(rows.pool.nbytes, "token rows")
        for after in _resumes(tables, rows, resume, state):
            for neighbour in below[state]:
                if (after, neighbour) not in seen:
                    seen.add((after, neighbour))
                    todo.append((after, neighbour))
    rows.fetch_all()
    progress("token maps", len(todo), len(todo))


def _resumes(tables: PushdownTables, rows: StackRows, resume: int, state: int) -> set[int]:
    """Settles a place, for each count that it can have; the resume lists that it leaves to what lies below."""
    if tables.live[state] < 0:
        found = {rows.settle(resume, state, 0).resume}
    else:
        found = {rows.settle(resume, state, count).resume for count in _counts(tables, rows, state)}
        if resume == ROOT and state in rows.segments:
            found |= {settled.resume for settled in rows.segments[state][1]}
    return found - {NOTHING}


def _counts(tables: PushdownTables, rows: StackRows, state: int) -> set[int]:
    """Counts that stand for all that a state can have; 0 where something pushed it without counting."""
    minimum, maximum = tables.loops[tables.live[state]].tolist()
    reach = rows.vocabulary.trie.max_depth + 1
    near = {minimum, *range(minimum - reach, minimum), *range(maximum - reach, maximum + 1)}
    return {0, 1} | {rows.representative(state, count) for count in near if 1 <= count <= maximum}


def lower_neighbours(tables: PushdownTables) -> list[set[int]]:
    """For each state, those that can lie directly below it on a stack."""
    below: list[set[int]] = [set() for _ in range(tables.states)]
    flows: list[set[int]] = [set() for _ in range(tables.states)]
    for state in range(tables.states):
        for target in tables.targets(state):
            if target < tables.states:
                flows[state].add(target)
                continue
            for record, sequence in tables.moves[target - tables.states]:
                firsts = [sequence[:1]] if record is None else [(s,) for s in _counted(record)]
                rest = sequence[1:] if record is None else sequence
                for first in firsts:
                    flows[state].update(first)
                    for lower, upper in zip((*first, *rest), rest, strict=False):
                        below[upper].add(lower)
    todo = [state for state in range(tables.states) if below[state]]
    while todo:
        state = todo.pop()
        for target in flows[state]:
            if not below[state] <= below[target]:
                below[target] |= below[state]
                todo.append(target)
    return below


def _counted(record: tuple[int, ...]) -> list[int]:
    """The states that a counting move may come to."""
    operation, _, low, mid, high = record
    return [low] if operation == SET else [s for s in dict.fromkeys((low, mid, high)) if s >= 0]
