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
from typing import TypeAlias

from ....budget import Meter
from ...programs.program import REFUSED, CountedEdge, Edge, Program, State
from .embed import QUOTE, Body, Classes, Move
from .trie import NO_NAME, NONE, Node, Tries

#: A node of the trie, or `NONE` off the trie, and the classes' states there.
Place: TypeAlias = tuple[Node, Classes]

_REFUSED_QUOTE = Edge(QUOTE, QUOTE, REFUSED)


class Others:
    """The keys that may come besides the trie's, and the places reached with them.

    Parameters
    ----------
    bodies:
        The insides of the classes' names. The classes are pairwise disjoint; at most one counts.
    afters:
        For each class the state after such a key.
    """

    def __init__(self, bodies: tuple[Body, ...] = (), afters: tuple[State, ...] = ()) -> None:
        self.bodies = bodies
        self.afters = afters
        self.start: Classes = tuple(body.automaton.start for body in bodies)
        #: The places built so far; None where no name remains.
        self.states: dict[Place, State | None] = {}
        #: The sequences that lead off the trie, by the classes left there.
        self.ways: dict[Classes, tuple[State, ...]] = {}
        # What depends on a single class alone is the same for all objects.
        alone = bodies[0] if len(bodies) == 1 else None
        self._moves: dict[Classes, list[Move]] = {} if alone is None else alone.moves
        self._rows: dict[Classes, list[Move | None]] = {} if alone is None else alone.rows

    def call(self, after: Classes) -> tuple[State, ...]:
        """The way into the own states of the one class that is left; ``()`` if there are several, or if it counts."""
        alive = [k for k, q in enumerate(after) if q >= 0]
        if len(alive) > 1 or self.bodies[alive[0]].is_counted:
            return ()
        (k,) = alive
        return self.afters[k], self.bodies[k].states[after[k]]

    def closing(self, classes: Classes) -> list[Edge]:
        """The edges at the closing quote of a name that is not the trie's."""
        return [
            Edge(QUOTE, QUOTE, (after,))
            for q, body, after in zip(classes, self.bodies, self.afters, strict=False)
            if q >= 0 and body.automaton.accepting[q]
        ]

    def live(self, classes: Classes) -> int:
        """The loop whose count matters, or -1."""
        for q, body in zip(classes, self.bodies, strict=False):
            if q >= 0 and body.automaton.live[q] >= 0:
                return body.loops[body.automaton.live[q]]
        return -1

    def row(self, classes: Classes) -> list[Move | None]:
        """The move of each byte."""
        known = self._rows.get(classes)
        if known is None:
            known = [None] * 256
            for move in self.moves(classes):
                known[move.low : move.high + 1] = [move] * (move.high - move.low + 1)
            self._rows[classes] = known
        return known

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

    ``actions[end]`` are the edges at the closing quote of a declared name.
    """

    def __init__(self, program: Program, tries: Tries, meter: Meter) -> None:
        self.actions: list[tuple[Edge, ...]] = []
        self._action_of: dict[tuple[Edge, ...], int] = {}
        self._tries = tries
        self._program = program
        self._meter = meter
        self._byte_edges: dict[tuple[int, State], Edge] = {}
        self._unclassed = Others()
        self._off_trie: list[Classes] = []  # states whose edges are yet to come

    def action(self, edges: Iterable[Edge]) -> int:
        """The end of names with these edges."""
        key = tuple(edges)
        known = self._action_of.setdefault(key, len(self.actions))
        if known == len(self.actions):
            self.actions.append(key)
        return known

    def after_quote(self, root: Node, others: Others | None) -> tuple[State, ...]:
        """What follows a key's opening quote, as an edge's sequence; ``()`` where no key is possible."""
        others = others or self._unclassed
        if root == NONE:
            way = (others.call(others.start) or (self._base(others.start, others),)) if others.start else ()
        else:
            state = self._build((root, others.start), others)
            way = () if state is None else (state,)
        while self._off_trie:
            self._finish_base(self._off_trie.pop(), others)
        return way

    # -- on the trie -----------------------------------------------------------------------------------------

    def _build(self, place: Place, others: Others) -> State | None:
        """The state of a place; made after those it leads to, which may turn out not to live."""
        states = others.states
        todo = [self._links(place, others)]
        while todo:
            links, here = todo[-1]
            if here not in states:
                edges: list[Edge] = []
                missing = self._add_moves(here, others, edges)
                if missing:
                    todo.extend(self._links(below, others) for below in missing)
                    continue
                self._add_end(here, others, edges)
                states[here] = self._state(here[1], others, edges) if self._lives(here, others, edges) else None
            todo.pop()
            self._make(links, states[here], others)
        return states[place]

    def _links(self, place: Place, others: Others) -> tuple[list[tuple[Place, int]], Place]:
        """The places, with their bytes, from which one way leads on, and the place that they come to.

        Nearly all nodes of a trie have one child and end no name.
        """
        states, children, ends = others.states, self._tries.children, self._tries.ends
        links: list[tuple[Place, int]] = []
        while place not in states:
            node, classes = place
            if len(children[node]) != 1 or ends[node] != NO_NAME:
                break
            ((byte, child),) = children[node].items()
            move = others.row(classes)[byte] if classes else None
            if move is not None and move.counted is not None:
                break
            links.append((place, byte))
            place = (child, () if move is None else move.after[0])
        return links, place

    def _make(self, links: list[tuple[Place, int]], state: State | None, others: Others) -> None:
        """Make the states of a way, the last one first; it leads to ``state``."""
        states = others.states
        for place, byte in reversed(links):
            if place in states:
                state = states[place]
                continue
            classes = place[1]
            if state is not None:
                edges = [Edge(byte, byte, (state,))]
            else:
                edges = [Edge(byte, byte, REFUSED)] if classes and others.row(classes)[byte] is not None else []
            alive = state is not None or self._lives(place, others, edges)
            state = states[place] = self._state(classes, others, edges) if alive else None

    def _add_moves(self, place: Place, others: Others, edges: list[Edge]) -> list[Place]:
        """Add the edges along the trie; or return the places that have to be made before."""
        node, classes = place
        row = others.row(classes) if classes else _NO_MOVES
        states, byte_edges = others.states, self._byte_edges
        missing: list[Place] = []
        for byte, child in self._tries.children[node].items():
            move = row[byte]
            if move is not None and move.counted is not None:
                missing += self._add_counted(byte, child, move, others, edges)
                continue
            below = (child, () if move is None else move.after[0])
            state = states.get(below, -1)
            if state is None:
                if move is not None:
                    edges.append(Edge(byte, byte, REFUSED))
            elif state < 0:
                missing.append(below)
            else:
                edge = byte_edges.get((byte, state))
                if edge is None:
                    edge = byte_edges[byte, state] = Edge(byte, byte, (state,))
                edges.append(edge)
        return missing

    def _add_counted(self, byte: int, child: Node, move: Move, others: Others, edges: list[Edge]) -> list[Place]:
        """The same for a byte after which the state depends on a count."""
        assert move.counted is not None
        places = [(child, after) for after in move.after]
        missing = [below for below in dict.fromkeys(places) if below not in others.states]
        if not missing:
            reached = [-1 if (state := others.states[below]) is None else state for below in places]
            counted = CountedEdge(*move.counted, *reached)
            edges.append(Edge(byte, byte, (), counted) if max(reached) >= 0 else Edge(byte, byte, REFUSED))
        return missing

    def _add_end(self, place: Place, others: Others, edges: list[Edge]) -> None:
        """Add the edges at the closing quote, where they are not those off the trie."""
        node, classes = place
        end = self._tries.ends[node]
        if end >= 0:
            edges.extend(self.actions[end])
        elif end != NO_NAME and others.closing(classes):
            edges.append(_REFUSED_QUOTE)

    def _lives(self, place: Place, others: Others, edges: list[Edge]) -> bool:
        """Whether any name remains."""
        node, classes = place
        for edge in edges:
            if edge.sequence != REFUSED:
                return True
        children = self._tries.children[node]
        return (self._tries.ends[node] == NO_NAME and bool(others.closing(classes))) or any(
            byte not in children for move in others.moves(classes) for byte in range(move.low, move.high + 1)
        )

    def _state(self, classes: Classes, others: Others, edges: list[Edge]) -> State:
        program = self._program
        base = self._base(classes, others) if classes else -1
        state = program.state("key", like=base, live=-1 if base < 0 else program.live[base])
        program.edges[state] = edges
        if state % 1024 == 0:
            self._meter.check_states(state, "lowering property names")
            self._meter.check_time("lowering property names")
        return state

    # -- off the trie ----------------------------------------------------------------------------------------

    def _base(self, classes: Classes, others: Others) -> State:
        """The state off the trie; there names always remain."""
        state = others.states.get((NONE, classes))
        if state is None:
            state = others.states[NONE, classes] = self._program.state("other key", live=others.live(classes))
            self._off_trie.append(classes)
        return state

    def _finish_base(self, classes: Classes, others: Others) -> None:
        edges = others.closing(classes)
        for low, high, after, counted in others.moves(classes):
            if counted is None:
                way = others.ways.get(after[0])
                if way is None:
                    way = others.ways[after[0]] = others.call(after[0]) or (self._base(after[0], others),)
                edges.append(Edge(low, high, way))
            else:
                reached = [self._base(classes, others) if classes else -1 for classes in after]
                edges.append(Edge(low, high, (), CountedEdge(*counted, *reached)))
        state = self._base(classes, others)
        self._program.edges[state] = edges
        self._meter.check_states(state, "lowering property names")


_NO_MOVES: list[Move | None] = [None] * 256
