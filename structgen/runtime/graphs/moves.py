"""From an automaton's moves to a `Graph`: what is near the start is looked at, what is one text becomes one move.

*Folded* is what nobody needs to see: states within a character of several bytes, and states that one move leads to
and one leads away from. What is left is shown up to a limit, nearest to the start first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from .graph import Graph, GraphEdge, GraphNode
from .labels import Spelling, is_inside_character, label_of, starts_character

#: So many states are looked at for each that is shown.
_LOOKED_AT = 16

#: Moves that folding a state may make.
_MOST_FOLDED = 256

#: Bytes of a move that folding may make.
_LONGEST = 60

#: Bytes of a character behind its first, at most.
_BEHIND_LEAD = 3

#: A target that is no state: what lies below on the stack.
POP = -1


@dataclass(frozen=True)
class DrawnMove:
    """What an automaton does in a state.

    Parameters
    ----------
    target:
        The state that is entered, or `POP`.
    reads:
        The bytes it reads, as sets; empty where it reads none.
    note:
        What it does besides.
    is_return:
        Whether a call comes back there.
    """

    target: int
    reads: Spelling = ()
    note: str = ""
    is_return: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it reads, and does nothing else."""
        return bool(self.reads) and not self.note and not self.is_return and self.target != POP


@dataclass(frozen=True)
class DrawnState:
    """How a state is shown."""

    label: str
    is_accepting: bool = False
    is_fixed: bool = False  # it is not folded: something is to be said of it


MovesOf: TypeAlias = Callable[[int], Iterable[DrawnMove]]


def draw(title: str, start: int, moves_of: MovesOf, shown: Callable[[int], DrawnState], limit: int) -> Graph:
    """The graph of an automaton from its start on.

    Parameters
    ----------
    title:
        What it is of.
    start:
        The first state.
    moves_of:
        The moves of a state.
    shown:
        How a state is shown.
    limit:
        So many states are shown, at most.
    """
    found = folded(start, moves_of, shown, _LOOKED_AT * limit)
    near = _nearest(start, found, limit)
    return _graph(title, near, found, shown)


def folded(start: int, moves_of: MovesOf, shown: Callable[[int], DrawnState], most: int) -> dict[int, list[DrawnMove]]:
    """States near the start, of which so many are looked at, without those that needn't be seen; with their moves."""
    found = _explored(start, moves_of, most)
    fixed = {state for state in found if state == start or shown(state).is_accepting or shown(state).is_fixed}
    folding = _Folding(found, fixed)
    for _ in range(_BEHIND_LEAD):  # states that continue a character are shared by longer ones
        folding.fold(_is_within_character)
    folding.fold(_is_within_text)
    return found


def _explored(start: int, moves_of: MovesOf, most: int) -> dict[int, list[DrawnMove]]:
    """States that are near the start, with their moves; targets that are not among them were not looked at."""
    found: dict[int, list[DrawnMove]] = {}
    todo = deque([start])
    known = {start}
    while todo and len(found) < most:
        state = todo.popleft()
        found[state] = list(moves_of(state))
        for move in found[state]:
            if move.target != POP and move.target not in known:
                known.add(move.target)
                todo.append(move.target)
    return found


class _Folding:
    """Takes states out of an automaton, so that moves read more.

    Parameters
    ----------
    found:
        States with their moves, which change.
    fixed:
        States that stay.
    """

    def __init__(self, found: dict[int, list[DrawnMove]], fixed: set[int]) -> None:
        self._found, self._fixed = found, fixed
        self._sources: dict[int, set[int]] = {}
        for state, moves in found.items():
            for move in moves:
                self._sources.setdefault(move.target, set()).add(state)

    def fold(self, may_fold: Callable[[list[DrawnMove], list[DrawnMove]], bool]) -> None:
        """Take out the states whose moves, those that lead there and those that lead away, may become one."""
        for state in [each for each in self._found if each not in self._fixed]:
            after = self._found[state]
            before = [m for source in self._sources.get(state, ()) for m in self._found[source] if m.target == state]
            if not before or not after or any(move.target == state for move in after):
                continue
            if all(move.is_plain for move in (*before, *after)) and may_fold(before, after):
                self._take_out(state)

    def _take_out(self, state: int) -> None:
        after, sources = self._found.pop(state), self._sources.pop(state)
        for source in sources:
            self._found[source] = [
                longer
                for move in self._found[source]
                for longer in (_joined(move, after) if move.target == state else [move])
            ]
        for move in after:
            self._sources[move.target].discard(state)
            self._sources[move.target] |= sources


def _joined(move: DrawnMove, after: list[DrawnMove]) -> list[DrawnMove]:
    return [replace(each, reads=move.reads + each.reads) for each in after]


def _is_within_character(before: list[DrawnMove], after: list[DrawnMove]) -> bool:
    return (
        all(starts_character(move.reads) for move in before)
        and all(is_inside_character(m.reads) for m in after)
        and len(before) * len(after) <= _MOST_FOLDED
    )


def _is_within_text(before: list[DrawnMove], after: list[DrawnMove]) -> bool:
    reads = before[0].reads + after[0].reads
    return (
        len(before) == len(after) == 1
        and len(reads) <= _LONGEST
        and all(ranges[-1][1] <= 0x7F or ranges[0][0] == ranges[-1][1] for ranges in reads)
    )


def _nearest(start: int, found: dict[int, list[DrawnMove]], limit: int) -> list[int]:
    near: list[int] = []
    known = {start}
    todo = deque([start])
    while todo and len(near) < limit:
        state = todo.popleft()
        near.append(state)
        for move in found[state]:
            if move.target in found and move.target not in known:
                known.add(move.target)
                todo.append(move.target)
    return near


def _graph(title: str, near: list[int], found: dict[int, list[DrawnMove]], shown: Callable[[int], DrawnState]) -> Graph:
    names = {state: f"s{number}" for number, state in enumerate(near)}
    nodes = [GraphNode(names[s], shown(s).label, is_accepting=shown(s).is_accepting) for s in near]
    edges: list[GraphEdge] = []
    for state in near:
        edges += _edges(names[state], found[state], names)
    used = {edge.target for edge in edges}
    if "pop" in used:
        nodes.append(GraphNode("pop", "pop: back to the state below", "pop"))
    omitted = len(found) - len(near)
    if "more" in used:
        nodes.append(GraphNode("more", "… more states", "more"))
    is_whole = all(move.target in found for moves in found.values() for move in moves if move.target != POP)
    return Graph(title, tuple(nodes), tuple(edges), omitted, is_whole)


def _edges(source: str, moves: Iterable[DrawnMove], names: dict[int, str]) -> list[GraphEdge]:
    """The moves of a state, those to the same one together where they do the same."""
    together: dict[tuple[str, str, bool], list[Spelling]] = {}
    for move in moves:
        target = "pop" if move.target == POP else names.get(move.target, "more")
        together.setdefault((target, move.note, move.is_return), []).append(move.reads)
    return [
        GraphEdge(source, target, "; ".join(filter(None, (label_of(filter(None, reads)), note))), is_return)
        for (target, note, is_return), reads in together.items()
    ]
