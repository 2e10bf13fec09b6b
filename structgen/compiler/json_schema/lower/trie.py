"""Tries of names, persistent: inserting makes a new root and shares what has not changed.

A schema's object has a key state for each place among its members, and from one place to the next a single name
changes. So the tries of all places together take little more than the text of the names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....system.properties import remembered
from ...automata.edge_lists import EdgeLists, of_dfa
from ..strings.strings import StringSet

#: Index of a node.
Node: TypeAlias = int

#: The root of the trie without names, and of what lies off any trie.
NONE: Node = -1

#: What the end of a node says when no name ends there, and for a name that must not come.
NO_NAME, FORBIDDEN = -1, -2


#: What a node takes beside its label, with the memory of where it is shared; and so much is made between two looks at
#: the meter.
_BYTES_OF_NODE, _BYTES_UNSEEN = 500, 1 << 16

_DOING = "lowering property names"

#: The escapes with which nearly every character has one spelling.
ONE_WAY = ("minimal", "ascii")


class Tries:
    """A forest of compressed tries (radix trees; Morrison 1968).

    To read a node is to read its label, and then the byte of one of its children, or no more where a name ends.
    Of each node there are the label, a dictionary of children by bytes, what a name ending there leads to, and a
    *position*, the number of the beginning of its label: from a position, whatever node it is seen from, the same
    names go on, and from one byte of a label to the next it is one more.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.nodes: list[tuple[bytes, dict[int, Node], int, int]] = []
        self.held = 0  #: bytes that the meter counts
        self.size = 0  #: positions so far
        self._new = 0  # bytes that the meter is still to count
        self._leaves: dict[tuple[bytes, int], Node] = {}

    def insert(self, root: Node, spelling: bytes | EdgeLists, end: int) -> Node:
        """The trie with a name added, or with a new ``end`` for it; the empty name ends at the root."""
        if isinstance(spelling, bytes):
            if len(spelling) > _BYTES_UNSEEN:
                self._meter.check_states(len(spelling) // 4, _DOING)
            new = self._insert_text(root, spelling, end)
        else:
            new = self._insert_automaton(root, spelling, end)
        if self._new > _BYTES_UNSEEN:
            self._meter.check_states(len(self.nodes), _DOING)
            self._meter.hold(self._new, _DOING)
            self.held += self._new
            self._new = 0
        return new

    def _node(self, label: bytes, children: dict[int, Node], end: int, position: int = -1) -> Node:
        size = len(label) + 1
        if position < 0:
            position = self.size
            self.size += size
        self._new += _BYTES_OF_NODE + size
        self.nodes.append((label, children, end, position))
        return len(self.nodes) - 1

    def _leaf(self, label: bytes, end: int) -> Node:
        """A name that is alone; these are shared."""
        known = self._leaves.get((label, end))
        if known is None:
            known = self._leaves[label, end] = self._node(label, {}, end)
        return known

    @remembered
    def _rest(self, node: Node, begin: int) -> Node:
        """The node without the first bytes of its label."""
        label, children, end, position = self.nodes[node]
        return self._node(label[begin:], children, end, position + begin)

    def _insert_text(self, root: Node, text: bytes, end: int) -> Node:
        path: list[tuple[Node, int]] = []
        nodes = self.nodes
        node, at = root, 0
        while node != NONE:
            label, children, _, _ = nodes[node]
            if not text.startswith(label, at):
                new = self._split(node, text[at:], end)
                break
            at += len(label)
            if at == len(text):
                new = self._node(label, children, end)
                break
            byte = text[at]
            path.append((node, byte))
            node = children.get(byte, NONE)
            at += 1
        else:
            new = self._leaf(text[at:], end)
        while path:
            node, byte = path.pop()
            label, children, its_end, _ = nodes[node]
            new = self._node(label, {**children, byte: new}, its_end)
        return new

    def _split(self, node: Node, text: bytes, end: int) -> Node:
        """A node with a name added that leaves its label before the label ends."""
        label = self.nodes[node][0]
        differs = (at for at, (a, b) in enumerate(zip(label, text, strict=False)) if a != b)
        common = next(differs, len(text))
        children = {label[common]: self._rest(node, common + 1)}
        if common == len(text):
            return self._node(text, children, end)
        children[text[common]] = self._leaf(text[common + 1 :], end)
        return self._node(text[:common], children, NO_NAME)

    def _insert_automaton(self, root: Node, spellings: EdgeLists, end: int) -> Node:
        """The same for a name with several spellings, given as an automaton without cycles."""
        made: dict[tuple[int, Node], Node] = {}
        todo = [(spellings.start, root)]
        while todo:
            state, node = todo[-1]
            children = self._letters(node)
            steps = [(byte, target, children.get(byte, NONE)) for byte, target in _bytes(spellings, state)]
            missing = [(target, child) for _, target, child in steps if (target, child) not in made]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            following = children | {byte: made[target, child] for byte, target, child in steps}
            its_end = NO_NAME if node == NONE or self.nodes[node][0] else self.nodes[node][2]
            new = self._node(b"", following, end if spellings.accepting[state] else its_end)
            made[state, node] = new
        return made[spellings.start, root]

    def columns(self) -> tuple[NDArray[np.uint8] | NDArray[np.int32], ...]:
        """All nodes, as `structgen.kernels.build_key_states` takes them."""
        labels, all_children, ends, positions = zip(*self.nodes, strict=True)
        starts = np.zeros((2, len(ends) + 1), np.int32)
        np.cumsum(np.array([[*map(len, labels)], [*map(len, all_children)]]), axis=1, out=starts[:, 1:])
        letters = np.frombuffer(b"".join(labels), np.uint8)
        child_bytes = np.frombuffer(bytes(chain.from_iterable(all_children)), np.uint8)
        children = np.fromiter(chain.from_iterable(map(dict.values, all_children)), np.int32, len(child_bytes))
        of_nodes = np.array([positions, ends], np.int32)
        return letters, starts[0], of_nodes[0], starts[1], child_bytes, children, of_nodes[1]

    def _letters(self, node: Node) -> dict[int, Node]:
        """The nodes after each byte that a node begins with."""
        if node == NONE:
            return {}
        label, children, _, _ = self.nodes[node]
        return {label[0]: self._rest(node, 1)} if label else children


def _bytes(automaton: EdgeLists, state: int) -> Iterator[tuple[int, int]]:
    for low, high, target in automaton.edges[state]:
        for byte in range(low, high + 1):
            yield byte, target


def spelling(name: str, escapes: str, meter: Meter) -> bytes | EdgeLists | None:
    """How a name may be written between its quotes: the one way, or an automaton; None if there is no way."""
    if escapes in ONE_WAY:
        if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
            return name.encode()
        text = json.dumps(name, ensure_ascii=escapes == "ascii")[1:-1]
        if "\\u" not in text.replace("\\\\", ""):  # hex digits can be of either case
            try:
                return text.encode()
            except UnicodeEncodeError:
                return None
    spellings = of_dfa(StringSet.literal([name]).body(escapes, meter), meter)
    return spellings if spellings.edges else None
