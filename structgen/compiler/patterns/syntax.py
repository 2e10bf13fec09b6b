"""The syntax tree of a regex, after everything that only abbreviates has been spelled out.

Character classes are sets of code points, flags have been applied, anchors and word boundaries are look-around.
Five node kinds remain. Trees can be as deep as the pattern nests, so nothing here compares or prints
recursively.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..automata.charset import Ranges

#: What a range of code points takes in memory: a pair of integers, and its place.
BYTES_OF_RANGE = 120


@dataclass(frozen=True, eq=False, repr=False)
class Chars:
    """One character out of a set; ``()`` matches nothing."""

    ranges: Ranges


@dataclass(frozen=True, eq=False, repr=False)
class Concat:
    """The parts one after another; no parts is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Alternate:
    """One of the options; ``columns`` says where each was written, if that is known."""

    options: tuple[Node, ...]
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Repeat:
    """The item ``min`` to ``max`` times; ``None`` is unbounded.

    ``lazy`` prefers fewer: the same texts, other matches.
    """

    item: Node
    min: int
    max: int | None
    column: int
    lazy: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Look:
    """A zero-width assertion about the text before (``behind``) or after a position.

    Ahead: some prefix of the rest matches ``item``, or, ``whole``, all of the rest does. Behind: some suffix of
    the text so far matches ``item``, or, ``whole``, all of it does. ``negate`` turns the answer round.
    """

    item: Node
    behind: bool
    negate: bool
    whole: bool
    column: int


Node: TypeAlias = Chars | Concat | Alternate | Repeat | Look

EMPTY = Concat(())
