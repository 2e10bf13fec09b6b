"""Tries of names, persistent: inserting makes a new root and shares what has not changed.

A schema's object has a key state for each place among its members, and from one place to the next a single name
changes. So the tries of all places together take little more than the text of the names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TypeAlias

from ....budget import Meter
from ...automata.edge_lists import EdgeLists, of_dfa
from ..strings.strings import StringSet

#: Index of a node.
Node: TypeAlias = int

#: The root of the trie without names, and of what lies off any trie.
NONE: Node = -1

#: What the end of a node says when no name ends there, and for a name that must not come.
NO_NAME, FORBIDDEN = -1, -2


#: What a node takes beside its objects, with the memory of where it is shared.
_BYTES_OF_NODE = 120

_DOING = "lowering property names"


class Tries:
    """A forest. ``children[node]`` maps bytes to nodes, ``ends[node]`` is what a name ending there leads to."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.children: list[dict[int, Node]] = []
        self.ends: list[int] = []
        self._chains: dict[tuple[int, Node], Node] = {}
        self._leaves: dict[int, Node] = {}

    def insert(self, root: Node, spelling: bytes | EdgeLists, end: int) -> Node:
        """The trie with a name added, or with a new ``end`` for it; the empty name ends at the root."""
        before = len(self.ends)
        self._meter.check_time(_DOING)
        if isinstance(spelling, bytes):
            self._meter.check_states(len(spelling) // 4, _DOING)
            self._meter.check_memory(_BYTES_OF_NODE * len(spelling), _DOING)
            new = self._insert_text(root, spelling, end)
        else:
            new = self._insert_automaton(root, spelling, end)
        self._meter.check_states(len(self.ends) // 4, _DOING)
        self._meter.hold(_BYTES_OF_NODE * (len(self.ends) - before), _DOING)
        return new

    def _node(self, children: dict[int, Node], end: int) -> Node:
        self.children.append(children)
        self.ends.append(end)
        return len(self.ends) - 1

    def _leaf(self, end: int) -> Node:
        known = self._leaves.get(end)
        if known is None:
            known = self._leaves[end] = self._node({}, end)
        return known

    def _link(self, byte: int, child: Node) -> Node:
        """The node with one child and nothing else; these are shared: the rest of a name is the same."""
        known = self._chains.get((byte, child))
        if known is None:
            known = self._chains[byte, child] = len(self.ends)
            self.children.append({byte: child})
            self.ends.append(NO_NAME)
        return known

    def _with_child(self, node: Node, byte: int, child: Node) -> Node:
        """``node`` with another child."""
        children = self.children[node] if node != NONE else {}
        end = self.ends[node] if node != NONE else NO_NAME
        if end == NO_NAME and (not children or (len(children) == 1 and byte in children)):
            return self._link(byte, child)
        return self._node({**children, byte: child}, end)

    def _with_end(self, node: Node, end: int) -> Node:
        if node == NONE or not self.children[node]:
            return self._leaf(end)
        return self._node(self.children[node], end)

    def _insert_text(self, root: Node, text: bytes, end: int) -> Node:
        children = self.children
        path = []
        node = root
        for byte in text:
            if node == NONE:
                break
            path.append(node)
            node = children[node].get(byte, NONE)
        new = self._with_end(node if len(path) == len(text) else NONE, end)
        for byte in reversed(text[len(path) :]):
            new = self._link(byte, new)
        for byte, node in zip(reversed(text[: len(path)]), reversed(path), strict=True):
            new = self._with_child(node, byte, new)
        return new

    def _insert_automaton(self, root: Node, spellings: EdgeLists, end: int) -> Node:
        """The same for a name with several spellings, given as an automaton without cycles."""
        made: dict[tuple[int, Node], Node] = {}
        todo = [(spellings.start, root)]
        while todo:
            state, node = todo[-1]
            children = self.children[node] if node != NONE else {}
            steps = [(byte, target, children.get(byte, NONE)) for byte, target in _bytes(spellings, state)]
            missing = [(target, child) for _, target, child in steps if (target, child) not in made]
            if missing:
                todo.extend(missing)
                continue
            todo.pop()
            new = self._with_end(node, end) if spellings.accepting[state] else node
            for byte, target, child in steps:
                new = self._with_child(new, byte, made[target, child])
            made[state, node] = new
        return made[spellings.start, root]


def _bytes(automaton: EdgeLists, state: int) -> Iterator[tuple[int, int]]:
    for low, high, target in automaton.edges[state]:
        for byte in range(low, high + 1):
            yield byte, target


def spelling(name: str, escapes: str, meter: Meter) -> bytes | EdgeLists | None:
    """How a name may be written between its quotes: the one way, or an automaton; None if there is no way."""
    if escapes != "any" and (escapes == "minimal" or name.isascii()):
        text = json.dumps(name, ensure_ascii=False)[1:-1]
        if "\\u" not in text.replace("\\\\", ""):  # hex digits can be of either case
            try:
                return text.encode()
            except UnicodeEncodeError:
                return None
    spellings = of_dfa(StringSet.literal([name]).body(escapes, meter), meter)
    return spellings if spellings.edges else None
