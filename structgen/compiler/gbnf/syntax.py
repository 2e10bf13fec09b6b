"""The syntax tree of a GBNF grammar, after escapes, classes and repetition signs have been spelled out.

All rules share one list of nodes in which children come before their parents, and the nodes of a rule in one piece.
So whatever is known of the parts before it is known of the whole takes a loop, and no recursion, however deep a
stranger's grammar nests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from ...runtime.pushdown.captures.labels import RuleLabel
from ..automata.charset import Ranges

#: Turns that a repeat can have; larger bounds would overflow the stored counts.
MAX_COUNT = 1 << 30

#: A node's number.
NodeId: TypeAlias = int


@dataclass(frozen=True)
class QuotedText:
    """A text, encoded; never empty."""

    data: bytes


@dataclass(frozen=True)
class CharacterSet:
    """One character out of a set; ``()`` matches nothing."""

    ranges: Ranges


@dataclass(frozen=True)
class Sequence:
    """The parts one after another; no parts is the empty text."""

    parts: tuple[NodeId, ...]


@dataclass(frozen=True)
class Choice:
    """Any one of the options."""

    options: tuple[NodeId, ...]


@dataclass(frozen=True)
class Repetition:
    """The item ``min`` to ``max`` times; ``None`` is unbounded."""

    item: NodeId
    min: int
    max: int | None


@dataclass(frozen=True)
class Reference:
    """What the rule of that number describes."""

    rule: int


@dataclass(frozen=True)
class External:
    """What is described elsewhere: a definition of another kind, or a token; its number there.

    ``takes_tokens``: whether it is one, or a definition that may begin with one.
    """

    number: int
    nullable: bool = False
    takes_tokens: bool = False


@dataclass(frozen=True)
class Trigger:
    """What free text comes to: a text, or the `External` token behind it, and what follows.

    ``again`` has the free text go on after that. No text is empty unless a token follows it.
    """

    text: str
    behind: NodeId
    token: int = -1
    again: bool = False


@dataclass(frozen=True)
class FreeText:
    """Characters, and then a trigger, or none.

    The characters hold no trigger, and none of the strings in ``excludes``; nor does a trigger, with them before it.
    """

    triggers: tuple[Trigger, ...]
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """The texts along the ways from state 0 to state 1 of an automaton over bytes and nodes (Woods 1970).

    Parameters
    ----------
    states:
        How many there are, at least two.
    bytes:
        Moves ``(source, lowest byte, highest byte, target)``.
    parts:
        Moves ``(source, node, target)``.
    empty:
        Moves ``(source, target)`` that read nothing.
    """

    states: int
    bytes: tuple[tuple[int, int, int, int], ...] = ()
    parts: tuple[tuple[int, NodeId, int], ...] = ()
    empty: tuple[tuple[int, int], ...] = ()


Node: TypeAlias = QuotedText | CharacterSet | Sequence | Choice | Repetition | Reference | External | FreeText | Network


@dataclass(frozen=True)
class Rule:
    """A rule: its name, the place of its definition, and its nodes, ``first`` to ``root``, which is the last one.

    ``label`` says what is captured of its texts, and at which temperature they are sampled; ``max_tokens`` in how
    many tokens they end, if they can, or as soon as they can then.
    """

    name: str
    where: str
    first: NodeId
    root: NodeId
    label: RuleLabel | None = None
    max_tokens: int | None = None

    @property
    def is_attributed(self) -> bool:
        """Whether it has to be a rule of its own."""
        return self.label is not None or self.max_tokens is not None


@dataclass(frozen=True)
class GbnfGrammar:
    """A grammar as it was read: every reference leads to a rule.

    ``tokens``: those that `External` nodes have the numbers of, as `structgen.definitions.token_sets` reads them.
    """

    nodes: tuple[Node, ...]
    rules: tuple[Rule, ...]
    tokens: tuple[str, ...] = ()


def children(node: Node) -> tuple[NodeId, ...]:
    """The nodes directly below."""
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.options
    if isinstance(node, FreeText):
        return tuple(trigger.behind for trigger in node.triggers)
    if isinstance(node, Network):
        return tuple(part for _, part, _ in node.parts)
    return (node.item,) if isinstance(node, Repetition) else ()


def with_children(node: Node, below: list[NodeId]) -> Node:
    """The same node over others, as many as its `children`."""
    if isinstance(node, Sequence):
        return Sequence(tuple(below))
    if isinstance(node, Choice):
        return Choice(tuple(below))
    if isinstance(node, FreeText):
        pairs = zip(node.triggers, below, strict=True)
        return replace(node, triggers=tuple(replace(trigger, behind=behind) for trigger, behind in pairs))
    if isinstance(node, Network):
        moves = zip(node.parts, below, strict=True)
        return replace(node, parts=tuple((here, part, there) for (here, _, there), part in moves))
    return replace(node, item=below[0]) if isinstance(node, Repetition) else node


def repeated(nodes: list[Node], item: NodeId, low: int, high: int | None) -> Repetition:
    """``item{low,high}``, as one repeat where the item is one itself and the two make one: ``(x?)*`` is ``x*``."""
    inner = nodes[item]
    if isinstance(inner, Repetition) and high != 0:
        if inner.min == 0:
            # Whatever there is up to the largest number can be made of turns that may be empty.
            none = inner.max is None or high is None
            return Repetition(inner.item, 0, 0 if inner.max == 0 else None if none else (inner.max or 0) * (high or 0))
        if inner.max is None and (low > 0 or inner.min == 1):
            return Repetition(inner.item, inner.min * low, None)
    return Repetition(item, low, high)
