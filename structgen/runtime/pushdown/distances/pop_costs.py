"""The fewest tokens in which an automaton's texts can be completed, exactly, also where it nests without bound.

A state on the stack may be left within a token, so what it costs is no number. Entered at the nodes of a residual
list ``R``, with so many tokens ended before, it is left at the nodes of other lists, after so many more ::

    pops(q, R) = {R': the fewest tokens that end in between}
    pops(q, R) = {left(q, R): 0} and, for each sequence r1 r2 ... that a token from R leads to in place of q,
                 1 + pops(r1, root), then pops(r2, ·) of what that leaves, and so on

where ``left`` is the residual list of a walk from ``R`` (`structgen.runtime.pushdown.partial_masks`). Costs of up to
as many tokens as are wanted are the least solution (Knuth 1977; over a pushdown automaton whose letters are tokens,
Reps, Schwoon, Jha & Melski 2005). The distance of a stack follows from these, frame by frame; a text is complete
where a token ends and all of the stack is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import StepMeter
from ....system.memo import Memo
from ...automaton.distances import MEMO_ENTRIES
from ..partial_masks import StateMasks
from ..stacks import END, FORK

#: The nodes of a residual list, as bytes.
Nodes: TypeAlias = bytes

#: A state with its count, entered at a residual list.
Entry: TypeAlias = tuple[int, int, Nodes]

#: By residual list: the fewest tokens that have ended.
Costs: TypeAlias = dict[Nodes, int]

#: States with their counts in place of one, the upper ones first.
_Sequence: TypeAlias = tuple[tuple[int, int], ...]

#: What a walk counts as, of a step's work, besides where it leads.
_UNITS = 16

#: Bytes of what is remembered of walks.
_MOST_BYTES = 64 << 20

#: Where a token ends.
_ROOT: Nodes = np.zeros(1, np.int32).tobytes()


class _Known(NamedTuple):
    """Costs of up to so many tokens."""

    most: int
    costs: Costs


class PopCosts:
    """What it takes to leave the states of one automaton.

    Parameters
    ----------
    rows:
        Walks of the vocabulary through the automaton, which has neither registers nor token edges. Their lock is
        held by whoever asks for costs, and passed on within walks: only what is whole is kept.
    look:
        Called in long work; may raise.

    Attributes
    ----------
    steps:
        Counts the work of a step. Nothing is bounded until it is that of a machine.
    work:
        What was looked at so far: costs, and places that walks lead to.
    nbytes:
        About the bytes of the walks so far.
    """

    def __init__(self, rows: StateMasks, look: Callable[[], object]) -> None:
        self._rows = rows
        self.look = look
        self.steps = StepMeter()
        self.work = self.nbytes = 0
        self._known: Memo[Entry, _Known] = Memo(MEMO_ENTRIES)
        self._walked: Memo[Entry, tuple[Costs, list[_Sequence]]] = Memo(_MOST_BYTES, _bytes_of)

    def distances(self, sets: Iterable[Iterable[list[int]]], cells: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """For each set of threads the fewest tokens that complete a text and end where it does.

        ``int64[sets]``, ``most + 1`` where these are more. A thread is its state, count and cell; ``int64[*, 5]``, as
        `structgen.kernels` has cells: one comes behind the one below it.
        """
        return self._through([self._left(threads, most) for threads in sets], cells, most)

    def farthest(
        self, threads: NDArray[np.int64], cells: NDArray[np.int64], nodes: NDArray[np.int32], most: int
    ) -> int:
        """At least the largest of `distances` behind a token, entered at residual nodes; ``most + 1`` for more.

        That of each thread by itself: a token that leads to several may be nearer to the end.
        """
        alike: dict[tuple[int, tuple[tuple[Nodes, int], ...]], None] = {}
        frames = dict.fromkeys((*thread, nodes.tobytes()) for thread in threads.tolist())
        for state, count, cell, entered in (todo := [*frames]):
            left, sequences = self.walked((state, count, entered))
            for sequence in sequences:
                costs: Costs = {_ROOT: 0}
                for each in sequence:
                    after: Costs = {}
                    self._leave(*each, costs, after, most)
                    costs = after
                alike[cell, tuple(costs.items())] = None
            for frame in _frames(cell, cells) if left else ():
                more = dict.fromkeys((*frame, each) for each in left if (*frame, each) not in frames)
                frames |= more
                todo += more
        return int(self._through([{cell: dict(costs)} for cell, costs in alike], cells, most).max(initial=0))

    def _left(self, threads: Iterable[list[int]], most: int) -> dict[int, Costs]:
        """By cell: what it costs to leave the threads above it."""
        at: dict[int, Costs] = {}
        for state, count, cell in threads:
            if state == END:
                return {-1: {_ROOT: 0}}
            self._leave(state, count, {_ROOT: 0}, at.setdefault(cell, {}), most)
        return at

    def _through(self, places: list[dict[int, Costs]], cells: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """`distances` of places: each is the cells that are come to, and at which costs.

        One way down finds the least costs at which a cell is come to, one way up what it takes from there on.
        """
        reached: dict[int, Costs] = {}
        for place in places:
            for cell, costs in place.items():
                _lower(reached.setdefault(cell, {}), costs, most)
        for cell in range(max(reached, default=-1), -1, -1):
            if cell in reached:
                state, count, below = cells[cell, :3].tolist()
                for lower in _forked(count, below) if state == FORK else ():
                    _lower(reached.setdefault(lower, {}), reached[cell], most)
                if state != FORK:
                    self._leave(state, count, reached[cell], reached.setdefault(below, {}), most)
        far: dict[int, Costs] = {-1: {_ROOT: 0}}
        for cell in sorted(reached.keys() - far.keys()):
            state, count, below = cells[cell, :3].tolist()
            here = far[cell] = {}
            for lower in _forked(count, below) if state == FORK else ():
                _lower(here, far[lower], most)
            for nodes, cost in reached[cell].items() if state != FORK else ():
                costs = self._of((state, count, nodes), most - cost)
                _lower(here, {nodes: _least(costs, far[below], most)}, most)
        found = (
            min((_least(costs, far[cell], most) for cell, costs in place.items()), default=most + 1) for place in places
        )
        return np.fromiter(found, np.int64, len(places))

    def spend(self, work: int) -> None:
        """Count work. Raises `BudgetExceededError` in a step that has none left."""
        self.work += work
        self.steps.spend(work)

    def _of(self, entry: Entry, most: int) -> Costs:
        """The costs of an entry, all those of up to so many tokens."""
        known = self._known.get(entry)
        return (self._find(entry, most) if known is None or known.most < most else known).costs

    def _leave(self, state: int, count: int, before: Costs, after: Costs, most: int) -> None:
        """Add what it costs to leave a state that is entered at such costs."""
        self.spend(1 + len(before))
        for nodes, cost in before.items():
            _lower(after, self._of((state, count, nodes), most - cost), most, cost)

    def _find(self, entry: Entry, most: int) -> _Known:
        """The costs of an entry, up to so many tokens; those of all that they depend on are kept."""
        solution = _Solution(self, self._known, entry, most)
        for each, found in solution.found.items():
            self._known[each] = found
        return solution.found[entry]

    def walked(self, entry: Entry) -> tuple[Costs, list[_Sequence]]:
        """Where an entry is left before a token ends, and what stands in its place where one does, each once."""
        found = self._walked.get(entry)
        if found is None:
            found = self._walked[entry] = self._walk(*entry)
            self.spend(_UNITS + sum(map(len, found[1])))
            self.nbytes += _bytes_of(found)
            self.look()
        return found

    def _walk(self, state: int, count: int, nodes: Nodes) -> tuple[Costs, list[_Sequence]]:
        sequences: dict[_Sequence, None] = {}
        threads, nothing = np.array([(state, count, -1)], np.int64), np.empty((0, 5), np.int64)
        below = np.empty(0, np.int32)
        for part in self._rows.reached(threads, nothing, np.frombuffer(nodes, np.int32)):
            below = part.below
            for each in part.sets:
                for thread in each:
                    sequences.update(dict.fromkeys(_sequences(thread, part.cells)))
        # A token's end is told apart from what is within one: together they would be a list of their own.
        ended = bool(len(below)) and not below[0]
        within = below[1:] if ended else below
        return dict.fromkeys([_ROOT] * ended + [within.tobytes()] * bool(len(within)), 0), list(sequences)


class _Solution:
    """The costs of one entry, up to ``most`` tokens, and of what they depend on and is not known.

    An entry is looked at for as many tokens as are left where it is come to.
    """

    def __init__(self, costs: PopCosts, known: Memo[Entry, _Known], entry: Entry, most: int) -> None:
        self._costs, self._known = costs, known
        self.found: dict[Entry, _Known] = {}
        self._used_by: dict[Entry, dict[Entry, None]] = {}
        self._todo: dict[Entry, None] = {}
        self._ask(entry, most)
        while self._todo:
            here = next(iter(self._todo))
            del self._todo[here]
            if self._evaluate(here):
                self._todo.update(self._used_by.get(here, {}))

    def _ask(self, entry: Entry, most: int) -> Costs:
        """What is known of an entry so far; it is to be looked at where that was for fewer tokens."""
        found = self.found.get(entry) or self._known.get(entry)
        if found is None or found.most < most:
            found = self.found[entry] = _Known(most, {} if found is None else dict(found.costs))
            self._todo[entry] = None
        return found.costs

    def _evaluate(self, entry: Entry) -> bool:
        """Take over the right side of an entry's equation, and whether that changed something."""
        self._costs.look()
        most, own = self.found[entry]
        left, sequences = self._costs.walked(entry)
        changed = _lower(own, left, most)
        for sequence in sequences if most else ():
            costs: Costs = {_ROOT: 1}
            for state, count in sequence:
                self._costs.spend(2 + 2 * len(costs))
                after: Costs = {}
                for nodes, cost in costs.items():
                    callee = state, count, nodes
                    _lower(after, self._ask(callee, most - cost), most, cost)
                    self._used_by.setdefault(callee, {})[entry] = None
                costs = after
            changed |= _lower(own, costs, most)
        return changed


def _bytes_of(walked: tuple[Costs, list[_Sequence]]) -> int:
    """About the bytes that are remembered of a walk."""
    left, sequences = walked
    return 300 * (1 + len(sequences)) + sum(map(len, left))


def _lower(costs: Costs, by: Costs, most: int, more: int = 0) -> bool:
    """Lower costs to others, with so much more, up to ``most``; whether there were any that are lower."""
    changed = False
    for nodes, cost in by.items():
        if cost + more < costs.get(nodes, most + 1):
            costs[nodes] = cost + more
            changed = True
    return changed


def _least(costs: Costs, behind: Costs, most: int) -> int:
    """The least sum of costs and what it takes behind them; ``most + 1`` for more."""
    return min(
        (min(most + 1, cost + behind.get(nodes, most + 1)) for nodes, cost in costs.items() if cost <= most),
        default=most + 1,
    )


def _forked(member: int, others: int) -> list[int]:
    """The cells that a fork's cell stands for."""
    return [member, others] if others >= 0 else [member]


def _frames(cell: int, cells: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """The frames on top of a stack, each with its state, its count, and the cell below."""
    todo = [cell]
    while todo:
        here = todo.pop()
        if here >= 0:
            state, count, below = cells[here, :3].tolist()
            if state == FORK:
                todo += _forked(count, below)
            else:
                yield state, count, below


def _sequences(thread: list[int], cells: NDArray[np.int64]) -> Iterator[_Sequence]:
    """The states of a thread and of its stacks, the upper ones first; none where it is at the end."""
    top, count, cell = thread
    if top == END:
        yield ()
        return
    todo: list[tuple[int, _Sequence]] = [(cell, ((top, count),))]
    while todo:
        here, above = todo.pop()
        if here < 0:
            yield above
            continue
        state, number, below = cells[here, :3].tolist()
        if state == FORK:
            todo += [(lower, above) for lower in _forked(number, below)]
        else:
            todo.append((below, (*above, (state, number))))
