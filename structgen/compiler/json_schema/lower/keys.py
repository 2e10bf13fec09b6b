"""The states that read the keys of objects.

A key is read along a trie of the declared names and, at the same time, through the automata of the classes of
other names. Declared names have precedence, forbidden ones simply end nowhere. Off the trie, where one class is
left, the key goes on inside that class's automaton, which a program has once; the state to go on with after the
key is pushed below it.

A state is determined by its node of the trie and the classes' states, so equal futures are one state. It is *like*
the state that is off the trie with the same classes, and has edges of its own only along the trie. Where after some
prefix only forbidden names would remain there is no state at all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter
from ....errors import InternalError
from ...automata.edge_lists import EdgeLists
from ...programs.program import REFUSED, CountedEdge, Edge, First, Program, State, TokenEdge
from .embed import Body
from .trie import BYTES_OF_NODE, NONE, Trie, Tries

_DOING = "lowering property names"
_REMEDY = "Declare fewer members, or group them in objects of their own"

#: Room that there is beside that for declared names.
_ROOM = 256

#: Edges whose targets are found between two looks at the meter.
_TOGETHER = 1 << 9

#: What a state of other names takes in its table.
_BYTES_OF_ROW = 1 << 10

#: The records where nothing counts; and the first classes, and ways, where there are no other names.
_NO_RECORDS, _NO_FAMILIES = np.zeros((0, 5), np.int32), (np.zeros((1, 1), np.int32), np.zeros((1, 0), np.int32))

#: Automata of other names whose tables are kept together have so many states at most.
_JOINED_STATES = 500


class Others:
    """The keys that may come besides the trie's, and the places reached with them.

    Parameters
    ----------
    bodies:
        The insides of the classes' names. The classes are pairwise disjoint; at most one counts.
    ends:
        For each class what can come at the end of such a key.
    afters:
        For each class the sequence below such a key, whose own states pop at its end. Empty where no state that pops
        is at that place; then each of these keys has its states for itself.
    """

    def __init__(
        self, bodies: tuple[Body, ...], ends: tuple[First, ...], afters: tuple[tuple[State, ...], ...]
    ) -> None:
        self.bodies = bodies
        self.ends = ends
        self.afters = afters
        #: Of which classes, where one is left alone, names go on in the automaton's own states: where it doesn't count.
        self.calls = [bool(afters) and not body.is_counted for body in bodies]

    def call(self, k: int, q: int) -> tuple[State, ...]:
        """The way into the own states of a class, as an edge's sequence."""
        return *self.afters[k], self.bodies[k].states[q]


class KeyStates:
    """Builds the key states of one program."""

    def __init__(self, program: Program, tries: Tries, meter: Meter) -> None:
        self._tries = tries
        self._program = program
        self._meter = meter
        # What comes at the end of declared names: edges, one end after the other, and tokens.
        self._actions: dict[tuple[Edge | TokenEdge, ...], int] = {}
        self._edges: list[Edge] = []
        self._begins = [0]
        self._tokens: dict[int, Sequence[TokenEdge]] = {}
        #: Tries with other names, and the states that begin them and are to get edges.
        self._roots: dict[tuple[Trie, Others | None], State] = {}

    def action(self, edges: tuple[Edge, ...], tokens: Sequence[TokenEdge] = ()) -> int:
        """The end of names with these edges."""
        key: tuple[Edge | TokenEdge, ...] = (*edges, *tokens) if tokens else edges
        known = self._actions.get(key)
        if known is None:
            known = self._actions[key] = len(self._actions)
            self._edges += edges
            self._begins.append(len(self._edges))
            if tokens:
                self._tokens[known] = tokens
        return known

    def after_quote(self, trie: Trie, others: Others | None) -> int:
        """The target behind a key's opening quote; `REFUSED` where no key is possible."""
        if trie == NONE:
            if others is None:
                return REFUSED
            if others.calls == [True]:
                return self._program.target(others.call(0, others.bodies[0].automaton.start))
        known = self._roots.get((trie, others))
        if known is None:
            known = self._roots[trie, others] = self._program.state("key")
        return 1 + known

    def finish(self) -> None:
        """Give all states their edges."""
        if not self._roots:
            return
        program = self._program
        families = _Families([others for _, others in self._roots], self.action, self._meter)
        block, classes, found = self._build(families)
        edges, states, ends, late = found[kernels.KEY_NUMBERS, :4].tolist()
        roots = len(self._roots)
        first = program.states("key", states - roots)
        if families.all:
            own = *self._roots.values(), *range(first, len(program.edges))
            program.like.update(zip(own, found[kernels.KEY_LIKE, :states].tolist(), strict=True))
            if len(families.records):
                program.live.update(zip(own, found[kernels.KEY_LIVE, :states].tolist(), strict=True))
        if late:
            self._lead(block, families, classes, found[kernels.KEY_LATE : kernels.KEY_NUMBERS, :late])
        program.blocks.append(block[:, :edges].copy())
        for state, end in found[kernels.KEY_ENDS : kernels.KEY_LATE, :ends].T.tolist() if self._tokens else ():
            program.give(state, First((), self._tokens.get(end, ())))

    def _lead(
        self, block: NDArray[np.int32], families: _Families, classes: NDArray[np.int32], late: NDArray[np.int32]
    ) -> None:
        """Give edges the targets that the kernel cannot make."""
        is_call = late[1] < 0
        (edges, _, which, _, _), counting = late[:, is_call], late[:, ~is_call].T
        called = np.flatnonzero(np.bincount(which))  # the classes, of which there are few
        targets = np.zeros(called.max(initial=-1) + 1, np.int32)
        for begin in self._meter.each(range(0, len(called), _TOGETHER), _DOING, every=1):
            some = called[begin : begin + _TOGETHER]
            targets[some] = self._program.targets(families.calls(classes[some]))
        block[3, edges] = targets[which]
        for begin in self._meter.each(range(0, len(counting), _TOGETHER), _DOING, every=1):
            for edge, record, *after in counting[begin : begin + _TOGETHER].tolist():
                counted = CountedEdge(*families.records[record, :2].tolist(), *after)
                block[3, edge] = self._program.target((), counted)

    def _build(self, families: _Families) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
        """The block of edges, the classes and the other results of the kernel."""
        tries, first, begun = self._tries, len(self._program.edges) - len(self._roots), self._roots.items()
        roots = [(trie, families.start_of(others), state) for (trie, others), state in begun]
        given = (
            *tries.columns(), np.array(self._edges, np.int64), np.array(self._begins, np.int32),
            np.array(roots, np.int32), families.tables, families.accepting, families.live, families.records,
            families.starts, families.ways, first,
        )  # fmt: skip
        room = tries.size * (3 if families.all else 2) + len(roots) + len(self._begins) + len(self._edges) + _ROOM
        width = families.starts.shape[1]
        while True:
            self._meter.check_memory((BYTES_OF_NODE + 4 * width) * room, _DOING)
            sizes = (4, 2 * room), (room, width), (2, 2 * room + kernels.KEY_CHILDREN), (2, 2 * room)
            block, classes, cells, slots = (np.empty(size, np.int32) for size in sizes)
            found = np.empty((kernels.KEY_ROWS, room), np.int32)
            code = kernels.build_key_states(*given, block, classes, cells, slots, found)
            self._meter.check_states(first + int(found[kernels.KEY_NUMBERS, 1]), _DOING, _REMEDY)
            if code == kernels.OK:
                return block, classes, found
            if code != kernels.NO_ROOM:
                raise InternalError("an object without names reached the lowering")
            room *= 2


@lru_cache(maxsize=64)
def _joined(automata: tuple[EdgeLists, ...]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The tables of automata one below the other, ``int32[states, 256]``, and which of their states accept."""
    tables = np.concatenate([np.zeros((0, 256), np.int32), *(automaton.dense for automaton in automata)])
    first = records = 0
    for automaton in automata:
        table = tables[first : first + automaton.states]
        table[table >= 0] += first
        table[table < -1] -= records
        first, records = first + automaton.states, records + len(automaton.records)
    return tables, np.array([*itertools.chain.from_iterable(each.accepting for each in automata)], np.uint8)


class _Families:
    """The classes of other names that stand beside some tries, as the kernel takes them.

    Rows of ``tables`` are the states of all bodies, one after the other; see `structgen.kernels.build_key_states`.
    """

    def __init__(self, all_others: Iterable[Others | None], action: Callable[..., int], meter: Meter) -> None:
        self.all = [others for others in dict.fromkeys(all_others) if others is not None]
        bodies = dict.fromkeys([body for others in self.all for body in others.bodies])
        self._states = [*itertools.chain.from_iterable([body.states for body in bodies])]
        states = len(self._states)
        meter.check_memory(_BYTES_OF_ROW * states, _DOING)
        self._first = dict(zip(bodies, itertools.accumulate([0, *[len(body.states) for body in bodies]]), strict=False))
        self._number = {others: number for number, others in enumerate(self.all, 1)}
        automata = tuple([body.automaton for body in bodies])
        self.tables, self.accepting = (_joined if states <= _JOINED_STATES else _joined.__wrapped__)(automata)
        self.live = np.full(states, -1, np.int32)
        self.records = self._counted() if any(body.is_counted for body in bodies) else _NO_RECORDS
        self.starts, self.ways = self._begin(action) if self.all else _NO_FAMILIES

    def _counted(self) -> NDArray[np.int32]:
        """The records of all bodies, ``int32[records, 5]``; it is noted which of their states live in which loop."""
        records = []
        for body, first in self._first.items():
            loops = [*body.loops, -1]
            if body.is_counted:
                self.live[first : first + len(body.states)] = [loops[loop] for loop in body.automaton.live]
            for operation, loop, *zones in body.automaton.records:
                records.append([operation, loops[loop], *(zone + first if zone >= 0 else -1 for zone in zones)])
        return np.array(records, np.int32)

    def _begin(self, action: Callable[..., int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first classes, and the ways to end or leave what is left of them."""
        width = max([len(others.bodies) for others in self.all])
        starts, ways = [[0] + [-1] * width], [[-1] * 2 * width]
        for number, others in enumerate(self.all, 1):
            rest = [-1] * (width - len(others.bodies))
            starts.append([number, *[self._first[body] + body.automaton.start for body in others.bodies], *rest])
            ways.append([*[action(tuple(edges), tokens) for edges, tokens in others.ends], *rest, *others.calls, *rest])
        return np.array(starts, np.int32), np.array(ways, np.int32)

    def start_of(self, others: Others | None) -> int:
        """The class at the beginning of a name."""
        return kernels.NO_CLASS if others is None else self._number[others]

    def calls(self, classes: NDArray[np.int32]) -> list[tuple[int, ...]]:
        """The moves into the own states of classes of the kernel of which one automaton is left."""
        which = classes[:, 1:].argmax(axis=1)
        places = zip(classes[:, 0].tolist(), which.tolist(), classes[:, 1:].max(axis=1).tolist(), strict=True)
        afters = [(), *[others.afters for others in self.all]]
        return [(0, *afters[number][k], self._states[row]) for number, k, row in places]
