"""A regular language that is a tree until somebody needs its automaton, of which there are two.

*Counted*: large repeats are counted loops; it is the smaller one, and no algebra can be done with it. *Plain*:
without counters. Each is built at most once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

import numpy as np

from .... import kernels
from ....budget import Meter
from ....errors import StructgenError
from ....system.digest import blake2b
from ...automata import dfa as automata
from ...automata.charset import Ranges
from ...automata.dfa import LOOP, OPERATION, TARGET_LOW, Dfa, add_to, determinize, minimize
from ...automata.nfa import NfaBuilder
from ...patterns.lower import language
from ...patterns.measures import measure, post_order
from ...patterns.syntax import Chars, Look, Node
from .lengths import text_widths
from .trees import Run
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
        #: The characters, where the language is all texts of them.
        self.ranges: Ranges | None = None
        #: The tree has no look-around and no empty class, so that its measures are exact.
        self.is_clean = tree is not None and not any(
            isinstance(node, Look) or (isinstance(node, Chars) and not node.ranges) for node in post_order(tree)
        )

    @classmethod
    def of_characters(cls, ranges: Ranges) -> Language:
        """All texts of these characters."""
        found = cls(("characters", ranges), Run(ranges, 0, None).tree)
        found.ranges = ranges
        return found

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
            raise error.within(self.where) from error

    def matches(self, text: str, meter: Meter) -> bool:
        """Whether the text, without lone surrogates, is in the language."""
        if self.ranges is not None:
            return all(any(low <= code <= high for low, high in self.ranges) for code in map(ord, set(text)))
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
    found = blake2b(digest_size=32)
    for array in (np.ascontiguousarray(table[:, new]), classes, dfa.accepting):
        found.update(array.tobytes())
    return found.digest()


def texts_of(dfa: Dfa, limit: int) -> list[str] | None:
    """All texts of an automaton without counters, sorted, if they are at most ``limit``."""
    classes, table = dfa.classes.tolist(), dfa.table.tolist()
    found: list[str] = []
    todo = [(dfa.start, b"")] if dfa.states else []
    while todo:
        state, text = todo.pop()
        if dfa.accepting[state]:
            found.append(text.decode())
        if len(found) > limit or len(text) >= dfa.states:  # on a cycle
            return None
        for byte, of_class in enumerate(classes):
            if table[state][of_class] != _DEAD:
                todo.append((table[state][of_class], text + bytes((byte,))))
    return sorted(found)


def count_of(dfa: Dfa, limit: int, meter: Meter) -> int:
    """How many texts a minimal automaton without counters has, or ``limit`` where there are more."""
    sizes = np.bincount(dfa.classes[:256], minlength=dfa.table.shape[1])
    counts = accepting = dfa.accepting.astype(np.int64)
    while counts[dfa.start] < limit:
        meter.check_time("counting texts")
        below = np.where(dfa.table == _DEAD, 0, counts[dfa.table])
        after = np.minimum(accepting + below @ sizes, limit)
        if (after == counts).all():
            break
        counts = after
    return min(limit, int(counts[dfa.start]))
