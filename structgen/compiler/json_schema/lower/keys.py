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
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter
from ....errors import InternalError
from ...automata.edge_lists import EdgeLists
from ...programs.program import REFUSED, CountedEdge, Edge, First, Program, State, TokenEdge, edge_of, in_block
from .embed import Body, Classes, Move
from .trie import NONE, Node, Tries

_DOING = "lowering property names"
_REMEDY = "Declare fewer members, or group them in objects of their own"

#: What the kernel takes for each place that it has room for, and a state of other names in its table.
_BYTES_OF_PLACE, _BYTES_OF_ROW = 200, 1 << 10

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
        self.start: Classes = tuple(body.automaton.start for body in bodies)
        #: The states off the trie.
        self.bases: dict[Classes, State] = {}
        #: The targets off the trie, by the classes left there.
        self.targets: dict[Classes, int] = {}
        # What depends on a single class alone is the same for all objects.
        self._moves: dict[Classes, list[Move]] = bodies[0].moves if len(bodies) == 1 else {}

    def call(self, after: Classes) -> tuple[State, ...]:
        """The way into the own states of the one class that is left; ``()`` if there are several, or if it counts."""
        alive = [k for k, q in enumerate(after) if q >= 0]
        if not self.afters or len(alive) > 1 or self.bodies[alive[0]].is_counted:
            return ()
        (k,) = alive
        return *self.afters[k], self.bodies[k].states[after[k]]

    def closing(self, classes: Classes) -> tuple[list[Edge], list[TokenEdge]]:
        """The edges at the end of a name that is not the trie's."""
        named = zip(classes, self.bodies, self.ends, strict=False)
        ends = [end for q, body, end in named if q >= 0 and body.automaton.accepting[q]]
        return [edge for end in ends for edge in end.edges], [edge for end in ends for edge in end.tokens]

    def live(self, classes: Classes) -> int:
        """The loop whose count matters, or -1."""
        for q, body in zip(classes, self.bodies, strict=False):
            if q >= 0 and body.automaton.live[q] >= 0:
                return body.loops[body.automaton.live[q]]
        return -1

    def moves(self, classes: Classes) -> list[Move]:
        """Where bytes lead, by ranges on which nothing changes."""
        known = self._moves.get(classes)
        if known is None:
            alive = [(k, self.bodies[k].automaton.edges[q]) for k, q in enumerate(classes) if q >= 0]
            cuts = sorted({cut for _, edges in alive for low, high, _ in edges for cut in (low, high + 1)})
            place = {cut: i for i, cut in enumerate(cuts)}
            after = [[-1] * len(classes) for _ in cuts]
            for k, edges in alive:
                for low, high, target in edges:
                    for i in range(place[low], place[high + 1]):
                        after[i][k] = target
            known = []
            for (low, end), targets in zip(itertools.pairwise(cuts), after, strict=False):
                if min(targets) < -1:
                    known.append(self._counted(low, end - 1, targets))
                elif max(targets) >= 0:
                    known.append(Move(low, end - 1, (tuple(targets),)))
            self._moves[classes] = known
        return known

    def _counted(self, low: int, high: int, targets: list[int]) -> Move:
        k = targets.index(min(targets))
        operation, loop, *zones = self.bodies[k].automaton.records[-2 - targets[k]]
        after = tuple(_classes([*targets[:k], q, *targets[k + 1 :]]) for q in zones)
        return Move(low, high, after, (operation, self.bodies[k].loops[loop]))


def _classes(targets: list[int]) -> Classes:
    return tuple(targets) if max(targets) >= 0 else ()


class KeyStates:
    """Builds the key states of one program.

    ``actions[end]`` are the edges at the end of a declared name.
    """

    def __init__(self, program: Program, tries: Tries, meter: Meter) -> None:
        self.actions: list[First] = []
        self._action_of: dict[tuple[Edge | TokenEdge, ...], int] = {}
        self._tries = tries
        self._program = program
        self._meter = meter
        #: Tries, by position and other names, with the states that begin them and are to get edges.
        self._roots: dict[tuple[int, Others | None], tuple[Node, State]] = {}
        self._off_trie: list[tuple[Classes, Others]] = []  # states whose edges are yet to come

    def action(self, end: First) -> int:
        """The end of names with these edges."""
        known = self._action_of.setdefault((*end.edges, *end.tokens), len(self.actions))
        if known == len(self.actions):
            self.actions.append(end)
        return known

    def after_quote(self, root: Node, others: Others | None) -> tuple[State, ...]:
        """What follows a key's opening quote, as an edge's sequence; ``()`` where no key is possible."""
        if root != NONE:
            key = self._tries.nodes[root][3], others
            known = self._roots.get(key)
            if known is None:
                known = self._roots[key] = root, self._program.state("key")
            return (known[1],)
        if others is None:
            return ()
        return others.call(others.start) or (self._base(others.start, others),)

    # -- on the trie -----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Give all states their edges."""
        if self._roots:
            self._build(_Families([others for _, others in self._roots], self._meter))
        while self._off_trie:
            self._finish_base(*self._off_trie.pop())

    def _build(self, families: _Families) -> None:
        """Make the states along the tries."""
        begun = self._roots.items()
        roots = np.array([(root, families.start_of(others), state) for (_, others), (root, state) in begun], np.int32)
        tries = self._tries.columns()
        room = (self._tries.size + len(families.all)) * (2 if families.all else 1) + 64
        code = kernels.NO_ROOM
        while code == kernels.NO_ROOM:
            self._meter.check_memory(_BYTES_OF_PLACE * room, _DOING)
            slots = 1 << (2 * room).bit_length()
            classes = families.classes(room)
            made, edges, ends, counted, stack = (np.empty((room, width), np.int32) for width in (2, 3, 2, 6, 4))
            code, n_made, n_edges, n_ends, n_counted, n_classes = kernels.build_key_states(
                *tries, roots, families.tables, families.accepting, families.records, 1 + len(families.all),
                len(self._program.edges), *_hash_table(slots), *_hash_table(slots), classes,
                np.full(slots, -1, np.int32), made, edges, ends, counted, stack,
            )  # fmt: skip
            self._meter.check_states(len(self._program.edges) + n_made, _DOING, _REMEDY)
            room *= 2
        if code != kernels.OK:
            raise InternalError("an object without names reached the lowering")
        self._add_states(made[:n_made], families, classes[:n_classes])
        program = self._program
        edges = edges[:n_edges, [0, 1, 1, 2]].T + np.array([[0], [0], [0], [1]], np.int32)
        program.blocks.append(edges)
        self._end_names(ends[:n_ends])
        for state, byte, record, *targets in counted[:n_counted].tolist():
            operation, loop = families.records[record, :2].tolist()
            target = program.target((), CountedEdge(operation, loop, *targets))
            program.give(state, First((edge_of(byte, byte, target),)))

    def _end_names(self, ends: NDArray[np.int32]) -> None:
        """Give states where names end, each with its action, the edges of these."""
        program, actions = self._program, self.actions
        states, found = ends[:, 0], [actions[end] for end in ends[:, 1].tolist()]
        program.blocks.append(in_block(states, [edges for edges, _ in found]))
        for state, action in ends.tolist() if any(tokens for _, tokens in actions) else ():
            program.give(state, First((), actions[action].tokens))

    def _add_states(self, made: NDArray[np.int32], families: _Families, classes: NDArray[np.int32]) -> None:
        """The states that were made, and those that they are like: off the trie, with the same classes."""
        program = self._program
        program.states("key", int(np.count_nonzero(made[:, 0] >= len(program.edges))))
        named = sorted({*made[:, 1].tolist()} - {kernels.NO_CLASS})
        bases = {which: self._base(*families.local(classes[which].tolist())) for which in named}
        like, live = program.like, program.live
        for state, which in zip(*made[made[:, 1] != kernels.NO_CLASS].T.tolist(), strict=True):
            like[state] = base = bases[which]
            live[state] = live[base]

    # -- off the trie ----------------------------------------------------------------------------------------

    def _base(self, classes: Classes, others: Others) -> State:
        """The state off the trie; there names always remain."""
        state = others.bases.get(classes)
        if state is None:
            state = others.bases[classes] = self._program.state("other key", live=others.live(classes))
            self._off_trie.append((classes, others))
        return state

    def _finish_base(self, classes: Classes, others: Others) -> None:
        program, (edges, tokens) = self._program, others.closing(classes)
        for low, high, after, counted in others.moves(classes):
            if counted is not None:
                reached = [self._base(classes, others) if classes else -1 for classes in after]
                target = program.target((), CountedEdge(*counted, *reached))
            elif (target := others.targets.get(after[0], REFUSED)) == REFUSED:
                way = others.call(after[0]) or (self._base(after[0], others),)
                target = others.targets[after[0]] = program.target(way)
            edges.append(target << 16 | high << 8 | low)
        program.give(others.bases[classes], First(edges, tokens))
        self._meter.check_states(len(self._program.edges), _DOING, _REMEDY)


def _hash_table(slots: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Keys, and room for what they stand for."""
    return np.full(slots, -1, np.int64), np.empty(slots, np.int32)


@lru_cache(maxsize=64)
def _joined(automata: tuple[EdgeLists, ...]) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """The tables of automata one below the other, and which of their states accept."""
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

    def __init__(self, all_others: Iterable[Others | None], meter: Meter) -> None:
        self.all = [others for others in dict.fromkeys(all_others) if others is not None]
        bodies = dict.fromkeys(body for others in self.all for body in others.bodies)
        states = [len(body.states) for body in bodies]
        meter.check_memory(_BYTES_OF_ROW * sum(states), _DOING)
        self._first = dict(zip(bodies, itertools.accumulate([0, *states]), strict=False))
        self._width = max((len(others.bodies) for others in self.all), default=0)
        self._number = {others: number for number, others in enumerate(self.all, 1)}
        automata = tuple(body.automaton for body in bodies)
        self.tables, self.accepting = (_joined if sum(states) <= _JOINED_STATES else _joined.__wrapped__)(automata)
        records = [
            [operation, body.loops[loop], *(zone + first if zone >= 0 else -1 for zone in zones)]
            for body, first in self._first.items()
            for operation, loop, *zones in body.automaton.records
        ]
        self.records = np.array(records, np.int32).reshape(-1, 5)

    def start_of(self, others: Others | None) -> int:
        """The class at the beginning of a name."""
        return kernels.NO_CLASS if others is None else self._number[others]

    def classes(self, room: int) -> NDArray[np.int32]:
        """Room for classes, of which those at the beginning of names are there."""
        found = np.full((room, 1 + self._width), -1, np.int32)
        for others, number in self._number.items():
            found[number, 0] = number
            for k, (body, q) in enumerate(zip(others.bodies, others.start, strict=True), 1):
                found[number, k] = self._first[body] + q
        return found

    def local(self, found: list[int]) -> tuple[Classes, Others]:
        """A class of the kernel as the states of each body, and whose it is."""
        others = self.all[found[0] - 1]
        rows = zip(others.bodies, found[1:], strict=False)
        return tuple(row - self._first[body] if row >= 0 else -1 for body, row in rows), others
