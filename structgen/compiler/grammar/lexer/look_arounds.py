"""`LookArounds`: what the look-arounds of a grammar's terminals come to, worked out once for all of them.

The keywords of a language all look ahead alike: after each, no letter may follow. So automata are found by what a
look-around says and not by where it stands, and what a thread owes is a number that means the same in all
terminals: a set of look-aheads, each with the state of its automaton. Where the bytes lead is kept as *rows*, with
an entry for each of the 256 bytes, and the bytes that a row does not tell apart as a *partition*.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....runtime.core.lazy_table import LazyTable
from ...automata.dfa import Dfa
from ...patterns.lower import language
from ...patterns.measures import children, post_order
from ...patterns.syntax import Chars, Look, Node, Repeat
from .characters import settled_early

#: What can't be paid any more.
UNPAID = -1

#: Owed no more, within a set.
_PAID = -2

_BYTES = 256


class BytePartitions:
    """Partitions of the bytes, as numbers. A *pattern* has the number of a byte's part; 0 is the first byte's."""

    def __init__(self) -> None:
        #: By partition: ``uint8[256]``.
        self.patterns: list[NDArray[np.uint8]] = []
        self._number: dict[bytes, int] = {}
        self._refined: dict[frozenset[int], tuple[list[int], int]] = {}

    def of(self, row: NDArray[np.int64]) -> int:
        """The partition into bytes for which a row, ``int64[256]``, says the same."""
        _, first, part = np.unique(row, return_index=True, return_inverse=True)
        name = np.empty(len(first), np.uint8)
        name[np.argsort(first)] = np.arange(len(first))
        return self.number(name[part].tobytes())

    def number(self, pattern: bytes) -> int:
        """The number of a partition."""
        number = self._number.get(pattern)
        if number is None:
            number = self._number[pattern] = len(self.patterns)
            self.patterns.append(np.frombuffer(pattern, np.uint8))
        return number

    def refined(self, partitions: frozenset[int]) -> tuple[list[int], int]:
        """The coarsest partition that is at least as fine as each of some: a byte of each part, and its number."""
        found = self._refined.get(partitions)
        if found is None:
            number = self.number(bytes(_BYTES))
            for each in sorted(partitions):
                number = self.of(self.patterns[number].astype(np.int64) * _BYTES + self.patterns[each])
            _, first = np.unique(self.patterns[number], return_index=True)
            found = self._refined[partitions] = first.tolist(), number
        return found


class LookArounds:
    """The look-arounds of the terminals of a grammar. What is owed is a number, 0 for nothing."""

    def __init__(self) -> None:
        self.partitions = BytePartitions()
        self._automata: dict[tuple[int, bool], Dfa] = {}
        self._nodes: dict[tuple[object, ...], int] = {}
        #: By look-ahead: the automaton, whether it must fail, and by state whether it has been met whatever follows.
        self._aheads: list[tuple[Dfa, bool, list[bool]]] = []
        self._ahead: dict[tuple[int, bool], int] = {}
        self._owed: list[frozenset[tuple[int, int]]] = [frozenset()]
        self._number: dict[frozenset[tuple[int, int]], int] = {frozenset(): 0}
        #: By what is owed: by byte what is owed after it, or `UNPAID`; and the bytes that pay alike.
        self.paid = LazyTable(self._pay)
        self.partition = LazyTable(lambda owed: self.partitions.of(np.array(self.paid[owed])))
        self._rows: dict[tuple[int, int], tuple[list[int], int]] = {}

    def automaton(self, look: Look, meter: Meter) -> Dfa:
        """What the bytes behind it begin with, or those before it end with. Raises `BudgetExceededError`."""
        key = self._key(look.item), look.behind
        found = self._automata.get(key)
        if found is None:
            behind = look.behind
            found = language(look.item, meter, edges=False, suffix=not behind, prefix=behind, count=False)
            self._automata[key] = found = found if behind else settled_early(found)
        return found

    def _key(self, tree: Node) -> int:
        """A number for what a tree says."""
        known: dict[int, int] = {}
        for node in post_order(tree):
            below = tuple(known[id(child)] for child in children(node))
            if isinstance(node, Chars):
                own: tuple[object, ...] = (node.ranges,)
            elif isinstance(node, Repeat):
                own = node.min, node.max
            else:
                own = (node.behind, node.negate, node.whole) if isinstance(node, Look) else ()
            key = type(node), own, below
            known[id(node)] = self._nodes.setdefault(key, len(self._nodes))
        return known[id(tree)]

    def ahead(self, look: Look, dfa: Dfa) -> int:
        """The number of a look-ahead."""
        key = id(dfa), look.negate  # automata are kept, so that this is one of them
        if key not in self._ahead:
            self._ahead[key] = len(self._aheads)
            loops = dfa.accepting.astype(np.bool_) & (dfa.table == np.arange(dfa.states)[:, None]).all(axis=1)
            self._aheads.append((dfa, look.negate, loops.tolist()))
        return self._ahead[key]

    def begun(self, owed: int, ahead: int) -> int:
        """What is owed after a look-ahead, besides what was; `UNPAID` where it fails at once."""
        dfa, negate, met = self._aheads[ahead]
        if not dfa.states or met[dfa.start]:
            return owed if bool(dfa.states) != negate else UNPAID
        return self._numbered(self._owed[owed] | {(ahead, dfa.start)})

    def _numbered(self, owed: frozenset[tuple[int, int]]) -> int:
        number = self._number.get(owed)
        if number is None:
            number = self._number[owed] = len(self._owed)
            self._owed.append(owed)
        return number

    def _pay(self, owed: int) -> list[int]:
        rows = [(ahead, *self._row(ahead, state)) for ahead, state in self._owed[owed]]
        told_apart, partition = self.partitions.refined(frozenset(each for _, _, each in rows))
        left = []
        for byte in told_apart:
            after = {(ahead, row[byte]) for ahead, row, _ in rows}
            is_unpaid = any(state == UNPAID for _, state in after)
            left.append(UNPAID if is_unpaid else self._numbered(frozenset(s for s in after if s[1] != _PAID)))
        paid: list[int] = np.array(left)[self.partitions.patterns[partition]].tolist()
        return paid

    def _row(self, ahead: int, state: int) -> tuple[list[int], int]:
        """By byte: the next state of a look-ahead, `_PAID` or `UNPAID`; and the partition."""
        found = self._rows.get((ahead, state))
        if found is None:
            dfa, negate, met = self._aheads[ahead]
            fails, holds = (_PAID, UNPAID) if negate else (UNPAID, _PAID)
            after = [fails if s < 0 else holds if met[s] else s for s in dfa.table[state].tolist()]
            row = np.array(after)[dfa.classes[:_BYTES]]
            found = self._rows[ahead, state] = row.tolist(), self.partitions.of(row)
        return found

    def is_kept(self, owed: int) -> bool:
        """Whether what is owed would be kept if the text ended here."""
        return all(bool(self._aheads[k][0].accepting[s]) != self._aheads[k][1] for k, s in self._owed[owed])
