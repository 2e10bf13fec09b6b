"""Terminals that no regex says: what their operators come to, as one automaton.

What is intersected, and of what there is a complement, is determinised by itself, inner ones first, and stands in the
tree of what is around it as an automaton. A complement is one among all texts in UTF-8. The match of such a terminal
is the longest: there is no order among the ways to read it. (Brzozowski 1964 has the operators; llguidance takes
derivatives for them, which are made as a text comes to them, where here all states are.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from ....budget import Meter
from ....definitions.structured_regexes import units_of
from ....errors import UnsupportedError
from ...automata.dfa import Dfa, complement, intersect, minimize, trim
from ...automata.factors import factors_dfa
from ...patterns.lower import language
from ...patterns.measures import WordList, WordLists, children, post_order
from ...patterns.parser import parse
from ...patterns.syntax import Alternate, Chars, Concat, Look, Node, Repeat
from ..load.operators import AND, BOTH, END, LAST, NOT, NUMBER

_DOING = "working out the operators of a terminal"


def automaton(pattern: str, structured: Sequence[str], meter: Meter) -> Dfa:
    """The automaton of a terminal's regex with operators in it, possibly without states.

    ``structured`` are the regexes in JSON that it may name. Raises `DefinitionError` for what can't be read,
    `UnsupportedError` for look-around, and `BudgetExceededError`.
    """
    return _Evaluation(structured, meter).run(parse(pattern, 0, meter))


def named(number: int) -> str:
    """The regex that is a structured regex by its number, and nothing else."""
    return f"{NUMBER}{number}{LAST}"


class _Evaluation:
    """A tree without operators for one with them."""

    def __init__(self, structured: Sequence[str], meter: Meter) -> None:
        self._structured = structured
        self._meter = meter
        #: Nodes that stand for automata, which are kept, so that their ids remain theirs.
        self._known: WordLists = {}
        self._nodes: list[Node] = []
        self._texts = language(parse(r"(?s:.*)"), meter, count=False)

    def run(self, tree: Node) -> Dfa:
        """The automaton of all of it."""
        made: dict[int, Node] = {}
        for node in self._meter.each(post_order(tree), _DOING):
            below = [made[id(child)] for child in children(node)]
            made[id(node)] = self._without_operators(node, below)
        return self._language(made[id(tree)])

    def _without_operators(self, node: Node, below: list[Node]) -> Node:
        if isinstance(node, Look):
            raise UnsupportedError(
                "there is look-around, \\b or an anchor in a terminal with the operator & or ~",
                where=f"column {node.column}",
                remedy="Write what must not be there with ~, as in A & ~B.",
            )
        if isinstance(node, Concat):
            return self._sequence(below)
        if isinstance(node, Repeat):
            return replace(node, item=below[0])
        return replace(node, options=tuple(below)) if isinstance(node, Alternate) else node

    def _sequence(self, parts: list[Node]) -> Node:
        #: Of each bracket that is open: what it comes to, and its operands; of the sequence itself, first.
        todo: list[tuple[Callable[[list[list[Node]]], Dfa], list[list[Node]]]] = [(self._all_of, [[]])]
        for part in parts:
            mark = _mark(part)
            operands = todo[-1][1]
            if mark == BOTH:
                todo.append((self._all_of, [[]]))
            elif mark == NOT:
                todo.append((self._other_than, [[]]))
            elif mark == AND:
                operands.append([])
            elif mark == NUMBER:
                todo.append((self._structured_regex, [[]]))
            elif mark in (END, LAST):
                combine, operands = todo.pop()
                found = combine(operands)
                todo[-1][1][-1].append(self.node(found))
            else:
                operands[-1].append(part)
        return _joined(todo[0][1][0])

    def node(self, dfa: Dfa) -> Node:
        """A node that stands for an automaton."""
        node = Alternate(())
        self._known[id(node)] = WordList(dfa, int(not _has_empty(dfa)), None, ())
        self._nodes.append(node)
        return node

    def _language(self, node: Node) -> Dfa:
        known = self._known.get(id(node))
        return known.words if known else language(node, self._meter, edges=False, count=False, known=self._known)

    def _all_of(self, operands: list[list[Node]]) -> Dfa:
        return reduce(
            lambda a, b: intersect(a, b, self._meter, _DOING), [self._language(_joined(each)) for each in operands]
        )

    def _other_than(self, operands: list[list[Node]]) -> Dfa:
        (parts,) = operands
        return intersect(complement(self._language(_joined(parts))), self._texts, self._meter, _DOING)

    def _structured_regex(self, operands: list[list[Node]]) -> Dfa:
        number = int("".join(map(_mark, operands[0])))
        return factors_dfa(units_of(self._structured[number]), self._meter)


def _joined(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Concat(tuple(parts))


def _mark(node: Node) -> str:
    """The only text of a character."""
    if not isinstance(node, Chars) or len(node.ranges) != 1 or node.ranges[0][0] != node.ranges[0][1]:
        return ""
    return chr(node.ranges[0][0])


def _has_empty(dfa: Dfa) -> bool:
    return bool(dfa.states) and bool(dfa.accepting[dfa.start])


def is_optional(dfa: Dfa) -> bool:
    """Whether the empty text is among those of an automaton."""
    return _has_empty(dfa)


def without_empty(dfa: Dfa, meter: Meter) -> Dfa:
    """The automaton of all other texts."""
    if not _has_empty(dfa):
        return dfa
    table = np.vstack([dfa.table, dfa.table[dfa.start : dfa.start + 1]])
    accepting = np.append(dfa.accepting, np.uint8(0))
    return minimize(trim(replace(dfa, table=table, accepting=accepting, start=dfa.states)), meter)
