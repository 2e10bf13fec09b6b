"""What the look-arounds of a grammar's terminals come to, worked out once for all of them.

The keywords of a language all look ahead alike: after each, no letter may follow. So automata are found by what a
look-around says and not by where it stands, and what a thread owes is a number that means the same in all
terminals: a set of look-aheads, each with the state of its automaton.
"""

from __future__ import annotations

import numpy as np

from .... import kernels
from ....budget import Meter
from ...automata.dfa import Dfa
from ...patterns.look_arounds import check_nesting
from ...patterns.lower import language
from ...patterns.measures import children, post_order
from ...patterns.syntax import Chars, Look, Node, Repeat
from .characters import settled_early

#: Owed no more, within a set.
_PAID = -3

_BYTES = 256


class LookArounds:
    """Automata of look-arounds, by what these say."""

    def __init__(self) -> None:
        self._automata: dict[tuple[int, bool], Dfa] = {}
        self._nodes: dict[tuple[object, ...], int] = {}

    def automaton(self, look: Look, meter: Meter) -> Dfa:
        """What the bytes behind it begin with, or those before it end with.

        Raises `UnsupportedError` for one within it that sees more than it reads, and `BudgetExceededError`.
        """
        key = self._key(look.item), look.behind
        found = self._automata.get(key)
        if found is None:
            behind = look.behind
            check_nesting(look, False)
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


class Owed:
    """What is owed, as numbers: sets of look-aheads, each with the state of its automaton; 0 is the empty one.

    Parameters
    ----------
    aheads:
        The look-aheads: the automaton of each, and whether it must fail.

    What is not known yet is `UNASKED`; see `structgen.kernels.ordered_subsets`.
    """

    def __init__(self, aheads: list[tuple[Dfa, bool]]) -> None:
        self._aheads = aheads
        #: By look-ahead and state: whether it has been met whatever follows.
        self._met = [
            (dfa.accepting.astype(np.bool_) & (dfa.table == np.arange(dfa.states)[:, None]).all(axis=1)).tolist()
            for dfa, _ in aheads
        ]
        self._sets: list[frozenset[tuple[int, int]]] = []
        self._number: dict[frozenset[tuple[int, int]], int] = {}
        self._rows: dict[tuple[int, int], list[int]] = {}
        #: By what is owed: what is after each byte; what is with a look-ahead more; whether it would be kept if the
        #: text ended here.
        self.paid = np.full((16, _BYTES), kernels.UNASKED, np.int32)
        self.begun = np.full((16, len(aheads)), kernels.UNASKED, np.int32)
        self.kept = np.zeros(16, np.uint8)
        self._numbered(frozenset())

    @property
    def nbytes(self) -> int:
        """Bytes of what is known."""
        return self.paid.nbytes + self.begun.nbytes + 8 * _BYTES * len(self._rows)

    def ask(self, owed: int, ahead: int) -> None:
        """Find what is owed after each byte; with a look-ahead, not -1, what is when that begins."""
        if ahead < 0:
            self.paid[owed] = self._pay(owed)
            return
        dfa, negate = self._aheads[ahead]
        if not dfa.states or self._met[ahead][dfa.start]:
            found = owed if bool(dfa.states) != negate else kernels.UNPAID
        else:
            found = self._numbered(self._sets[owed] | {(ahead, dfa.start)})
        self.begun[owed, ahead] = found

    def _numbered(self, owed: frozenset[tuple[int, int]]) -> int:
        number = self._number.get(owed)
        if number is None:
            number = self._number[owed] = len(self._sets)
            self._sets.append(owed)
            if number == len(self.kept):
                self.paid, self.begun = (
                    np.concatenate([each, np.full_like(each, kernels.UNASKED)]) for each in (self.paid, self.begun)
                )
                self.kept = np.concatenate([self.kept, np.zeros_like(self.kept)])
            kept = (bool(self._aheads[k][0].accepting[state]) != self._aheads[k][1] for k, state in owed)
            self.kept[number] = all(kept)
        return number

    def _pay(self, owed: int) -> list[int]:
        there = sorted(self._sets[owed])
        left: dict[tuple[int, ...], int] = {}
        found = []
        for states in zip(*(self._row(ahead, state) for ahead, state in there), strict=True):
            if states not in left:
                still = {(ahead, s) for (ahead, _), s in zip(there, states, strict=True) if s != _PAID}
                is_unpaid = kernels.UNPAID in states
                left[states] = kernels.UNPAID if is_unpaid else self._numbered(frozenset(still))
            found.append(left[states])
        return found

    def _row(self, ahead: int, state: int) -> list[int]:
        """By byte: the next state of a look-ahead, `_PAID` or `UNPAID`."""
        found = self._rows.get((ahead, state))
        if found is None:
            dfa, negate = self._aheads[ahead]
            met = self._met[ahead]
            fails, holds = (_PAID, kernels.UNPAID) if negate else (kernels.UNPAID, _PAID)
            after = [fails if s < 0 else holds if met[s] else s for s in dfa.table[state].tolist()]
            found = self._rows[ahead, state] = np.array(after)[dfa.classes[:_BYTES]].tolist()
        return found
