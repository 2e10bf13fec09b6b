"""A regular language that is a tree until somebody needs its automaton, of which there are two.

*Counted*: large repeats are counted loops; it is the smaller one, and no algebra can be done with it. *Plain*:
without counters. Each is built at most once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from typing import TypeAlias

import numpy as np

from .... import kernels
from ....budget import Meter
from ....errors import StructgenError
from ...automata import dfa as automata
from ...automata.dfa import LOOP, OPERATION, TARGET_LOW, Dfa, add_to, determinize, minimize
from ...automata.nfa import NfaBuilder
from ...patterns.lower import language
from ...patterns.measures import measure, post_order
from ...patterns.syntax import Chars, Look, Node
from .lengths import text_widths
from .words import everything

_DEAD = -1

#: Fewest and most characters of a text; None for no bound.
Widths: TypeAlias = tuple[int, int | None]


class Language:
    """A language given by a tree or by a plain automaton, one of them.

    Parameters
    ----------
    key:
        Equal keys, equal languages. None, with an automaton, for one made from that.
    where:
        The JSON pointer of the pattern that the tree comes from, for messages.
    """

    def __init__(self, key: Hashable, tree: Node | None = None, dfa: Dfa | None = None, where: str = "") -> None:
        self.tree = tree
        self.where = where
        self._key = key
        self._counted = self._plain = dfa
        self._runner: _Runner | None = None
        self._widths: Widths | None = None
        #: The tree has no look-around and no empty class, so that its measures are exact.
        self.is_clean = tree is not None and not any(
            isinstance(node, Look) or (isinstance(node, Chars) and not node.ranges) for node in post_order(tree)
        )

    @property
    def key(self) -> Hashable:
        """Hashable; says which language it is."""
        if self._key is None:
            assert self._plain is not None
            self._key = digest(self._plain)
        return self._key

    def widths(self, meter: Meter) -> Widths:
        """Of a clean tree and of an automaton exact, else bounds that hold."""
        if self._widths is None:
            if self.tree is not None:
                facts = measure(self.tree, meter)[id(self.tree)]
                self._widths = facts.min_width, facts.max_width
            else:
                self._widths = text_widths(self.plain(meter), meter)
        return self._widths

    def counted(self, meter: Meter) -> Dfa:
        """The minimal automaton, perhaps with counters."""
        if self._counted is None:
            self._counted = self._built(meter, count=True)
            if not len(self._counted.records):
                self._plain = self._counted
        return self._counted

    def plain(self, meter: Meter) -> Dfa:
        """The minimal automaton without counters."""
        if self._plain is None and self._counted is None:
            self.counted(meter)
        if self._plain is None:
            self._plain = self._built(meter, count=False)
        return self._plain

    def _built(self, meter: Meter, *, count: bool) -> Dfa:
        assert self.tree is not None
        try:
            return language(self.tree, meter, count=count)
        except StructgenError as error:
            where = ", ".join(filter(None, (self.where, error.where)))
            raise type(error)(error.what, where=where, remedy=error.remedy) from error

    def matches(self, text: str, meter: Meter) -> bool:
        """Whether the text, without lone surrogates, is in the language."""
        if self._runner is None:
            self._runner = _Runner(self.counted(meter))
        return self._runner.accepts(text.encode())


class _Runner:
    """An automaton as lists, to run it in Python."""

    def __init__(self, dfa: Dfa) -> None:
        self.of_byte: list[int] = dfa.classes.tolist()
        self.rows: list[list[int]] = dfa.table.tolist()
        self.accepting: list[int] = dfa.accepting.tolist()
        self.records: list[list[int]] = dfa.records.tolist()
        self.loops: list[list[int]] = dfa.loops.tolist()
        self.start = dfa.start

    def accepts(self, text: bytes) -> bool:
        if not self.rows:
            return False
        state, count = self.start, 0
        for byte in text:
            entry = self.rows[state][self.of_byte[byte]]
            if entry < _DEAD:
                entry, count = self.count(self.records[-2 - entry], count)
            if entry == _DEAD:
                return False
            state = entry
        return bool(self.accepting[state])

    def count(self, record: list[int], count: int) -> tuple[int, int]:
        """The target that the new count selects, and the new count."""
        if record[OPERATION] == kernels.SET:
            return record[TARGET_LOW], 1
        minimum, maximum = self.loops[record[LOOP]]
        zone = 2 if count + 1 >= maximum else 1 if count + 1 >= minimum else 0
        return record[TARGET_LOW + zone], count + 1


def union(a: Dfa, b: Dfa, meter: Meter) -> Dfa:
    """What either of two automata without counters accepts, minimised."""
    builder = NfaBuilder()
    start, accept = builder.state(), builder.state()
    for dfa in (a, b):
        if dfa.states:
            first, accepting = add_to(builder, dfa)
            builder.epsilon(start, first)
            for state in accepting:
                builder.epsilon(state, accept)
    return minimize(determinize(builder.build(start, accept), meter, "uniting strings"), meter)


def complement(dfa: Dfa, meter: Meter) -> Dfa:
    """All other texts, minimised: sequences of characters, not just of bytes."""
    return automata.intersect(everything(), automata.complement(dfa), meter, "complementing strings")


def digest(dfa: Dfa) -> bytes:
    """A fingerprint of an automaton without counters that is minimal and numbered breadth first.

    (`determinize`, `intersect` and `minimize` number so. Classes that no state tells apart count as one.)
    """
    table = dfa.table
    new = automata.runs_begin(table)
    classes = (np.cumsum(new) - 1).astype(np.int32)[dfa.classes]
    found = hashlib.blake2b(digest_size=32)
    for array in (np.ascontiguousarray(table[:, new]), classes, dfa.accepting):
        found.update(array.tobytes())
    return found.digest()


def texts_of(dfa: Dfa, limit: int) -> list[str] | None:
    """All texts of an automaton without counters, sorted, if they are at most ``limit``."""
    rows = [sorted({entry for entry in row if entry != _DEAD}) for row in dfa.table.tolist()]
    order = _topological(rows, dfa.start) if rows else []
    if order is None:
        return None
    sizes = np.bincount(dfa.classes, minlength=dfa.n_classes).tolist()
    table, accepting = dfa.table.tolist(), dfa.accepting.tolist()
    counts: dict[int, int] = {}
    for state in reversed(order):
        ways = sum(size * counts[entry] for size, entry in zip(sizes, table[state], strict=True) if entry != _DEAD)
        counts[state] = min(limit + 1, accepting[state] + ways)
    if not order or counts[dfa.start] > limit:
        return None if order else []
    classes = dfa.classes.tolist()
    found: list[str] = []
    todo: list[tuple[int, bytes]] = [(dfa.start, b"")]
    while todo:
        state, text = todo.pop()
        if accepting[state]:
            found.append(text.decode())
        for byte, of_class in enumerate(classes):
            if table[state][of_class] != _DEAD:
                todo.append((table[state][of_class], text + bytes((byte,))))
    return sorted(found)


def _topological(heads: list[list[int]], start: int) -> list[int] | None:
    """The states in an order in which every move leads on, or None if there is a cycle."""
    missing = [0] * len(heads)
    for targets in heads:
        for target in targets:
            missing[target] += 1
    if missing[start]:
        return None
    order = [start]
    for state in order:  # grows while it is read
        for target in heads[state]:
            missing[target] -= 1
            if not missing[target]:
                order.append(target)
    return order if len(order) == len(heads) else None
