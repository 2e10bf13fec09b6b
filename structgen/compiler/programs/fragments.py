"""Fragments of programs: states with their edges, worked out once and copied to wherever they are needed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

#: What is added to a number of a fragment in a program: nothing, the first state of the copy, less how many moves the
#: program has, or an argument; those come from `GIVEN` on.
NOTHING, FIRST, MOVES, GIVEN = 0, 1, 2, 3

#: Fragments that are kept for programs that begin alike.
MOST_FRAGMENTS = 512

#: The numbers of a move, which calls a state and will come back to another one: the record, and the two.
_MOVE = 3

#: A number, and what is added to it.
Number: TypeAlias = tuple[int, int]

#: Numbers, and what is added to each.
Numbers: TypeAlias = tuple[NDArray[np.int32], NDArray[np.intp]]


class Fragment:
    """States without counts, numbered from 0 on, with their edges, and with edges of arguments.

    Parameters
    ----------
    names:
        Of the states.
    edges, moves:
        State, lowest and highest byte and target of each edge one after the other, ``[4 * edges]``, and what is added
        to each; record and two states of each move, ``[3 * moves]``, likewise.
    like:
        A state and what is added to it, and the same of the one that it is like.
    result:
        The state that others lead to.
    """

    def __init__(
        self,
        names: Sequence[str],
        edges: Numbers,
        moves: Numbers | None = None,
        like: Sequence[tuple[int, int, int, int]] = (),
        result: int = 0,
    ) -> None:
        self.names, self.edges, self.moves, self.like, self.result = names, edges, moves, like, result
        self.no_edges = ((),) * len(names)  #: those of each state that are not in a block


class Fragments:
    """The fragments of programs that begin with the same states, as many as are ``common``.

    No fragment leads to others, but for arguments and its own.
    """

    def __init__(self, common: int) -> None:
        self.common = common
        self.known: dict[Hashable, Fragment] = {}


def put_together(copies: list[tuple[Fragment, list[int]]], moves: int) -> tuple[NDArray[np.int32], list[list[int]]]:
    """Of copies, each with what is added, the block of edges, ``int32[4, edges]``, and the moves.

    There are so many ``moves`` before; what is added for them is noted with each copy.
    """
    given: list[int] = []
    parts, more = [], []
    edges = 0
    for fragment, added in copies:
        parts.append((*fragment.edges, len(given)))
        edges += len(fragment.edges[0])
        if fragment.moves is not None:
            more.append((*fragment.moves, len(given)))
            added[MOVES] = -moves
            moves += len(fragment.moves[0]) // _MOVE
        given += added
    numbers, which, begins = zip(*parts, *more, strict=True)
    index = np.concatenate(which)
    index += np.array(begins).repeat([*map(len, which)])
    found = np.array(given, np.int32)[index]
    found += np.concatenate(numbers)
    return np.ascontiguousarray(found[:edges].reshape(-1, 4).T), found[edges:].reshape(-1, _MOVE).tolist()


def numbers_of(rows: Iterable[Sequence[Number]]) -> Numbers:
    """Rows of numbers, one after the other."""
    numbers, added = np.array([*rows], np.int32).reshape(-1, 2).T
    return numbers.copy(), added.astype(np.intp)
