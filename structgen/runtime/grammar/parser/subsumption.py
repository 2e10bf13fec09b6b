"""Which of several stacks are needed: a stack is left out where another one takes every text that it takes.

Where a grammar is ambiguous and all actions are followed, stacks would soon be without number: after ``1+1+1+1`` with
``e: e "+" e`` there is one for each way to put brackets. What the ways lead to is the same, though. A stack A
*subsumes* B if

1. it is B, or
2. both have the same state q on top, and for every rule that q is in the middle of, after k symbols: with k states
   popped and the rule's nonterminal pushed, A subsumes B. Above q both do the same until such a rule is reduced. Or
3. reductions of A lead to a stack that is B, or subsumes B by 2 (their lookaheads hold all that can come then; none
   was taken from them in a conflict), or
4. A subsumes B after each of B's reductions, and for each terminal that B shifts, some stack that A comes to with it
   subsumes that of B.

Pairs may rest on each other: 2 and 4 are about what is left after a move of B, so this is induction on how many
moves of B it takes to accept a text. Whether stacks subsume each other cannot be decided in general (it would decide
inclusion of context-free languages); where the rules don't find it, both are kept, which is right as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from ....system.locks import Lock, Rank

if TYPE_CHECKING:
    from ..tables import GrammarTables
    from .stack import Accepted, Stack

#: Pairs of stacks that are looked at for one question, and shifts that one of them is apart from it at most; beyond
#: that the answer is no.
_MOST_PAIRS = 24
_MOST_SHIFTS = 2

#: So many nodes that reductions go through count as a pair.
_NODES = 32

#: Stacks that reductions lead to, looked through for one that subsumes another.
_MOST_REDUCED = 8

#: Pairs that are looked at for one set of stacks; past so many stacks that are kept others are not compared.
_MOST_IN_SET = 200
_MOST_COMPARED = 32

#: Answers that are remembered; past that the memory starts afresh.
_MOST_KNOWN = 1 << 16

#: An answer that more states of a stack decided is not remembered.
_MOST_STATES = 64

_Key = TypeVar("_Key")

#: The uppermost states of two stacks.
_Tops: TypeAlias = tuple[tuple[object, ...], tuple[object, ...]]

_FAR = 1 << 60


class Reductions(Protocol):
    """What a parser has to say of its stacks; `structgen.runtime.grammar.parser.gss.GraphParser` says it."""

    work: int

    def accepted(self, stack: Stack) -> Accepted:
        """The terminals that may come next."""

    def replaced(self, stack: Stack, length: int, origin: int) -> list[Stack]:
        """The stacks with a nonterminal in place of the uppermost states."""

    def reduced(self, stack: Stack) -> list[tuple[Stack, int]]:
        """The stacks that one reduction leads to, each with the terminals before which it is made."""

    def every(self, stack: Stack, terminal: int, most: int) -> tuple[list[tuple[Stack, int]], int]:
        """Stacks after a terminal with their contexts, and the lowest depth looked at."""

    def shifted(self, stack: Stack) -> Iterator[tuple[int, list[tuple[Stack, int]], int]]:
        """By terminal that is shifted at once: the stacks after it with their context, the lowest depth looked at."""


class Subsumption:
    """Compares stacks of a parser with conflicts. One question at a time: what is assumed for one is no answer."""

    def __init__(self, parser: Reductions, tables: GrammarTables) -> None:
        self._parser = parser
        self._middle = _middle(tables)
        #: By the states on top, how much higher the first stack is, and how many of its states decided it, the answer
        #: by these.
        self._known: dict[tuple[int, int, int], dict[int, dict[_Tops, bool]]] = {}
        #: Answers that are up to all of two stacks.
        self._whole: dict[tuple[Stack, Stack], bool] = {}
        self._count = 0
        self._depth_read = self._work = 0
        self._assumed: dict[tuple[Stack, Stack], None] = {}
        self._left = self._left_in_set = _MOST_IN_SET
        self._lock = Lock(Rank.PARSER)

    def forget(self) -> None:
        """Forget what was found."""
        self._known.clear()
        self._whole.clear()
        self._count = 0

    def thinned(self, stacks: Iterable[tuple[Stack, _Key]]) -> tuple[list[tuple[Stack, _Key]], int]:
        """The stacks without those that another one with the same key subsumes, and the lowest depth looked at.

        Of two that subsume each other the lower one stays.
        """
        with self._lock:
            return self._thinned(stacks)

    def _thinned(self, stacks: Iterable[tuple[Stack, _Key]]) -> tuple[list[tuple[Stack, _Key]], int]:
        lowest = _FAR
        kept: list[tuple[Stack, _Key]] = []
        self._left_in_set = _MOST_IN_SET
        for stack, key in sorted(stacks, key=lambda each: each[0].depth):
            alike = [by for by, other in kept if other == key] if len(kept) < _MOST_COMPARED else []
            is_subsumed = False
            for by in alike:
                is_subsumed, depth_read = self._subsumes(by, stack)
                lowest = min(lowest, depth_read)
                if is_subsumed:
                    break
            if is_subsumed:
                continue
            for by in alike:
                is_subsumed, depth_read = self._subsumes(stack, by)
                lowest = min(lowest, depth_read)
                if is_subsumed:
                    kept.remove((by, key))
            kept.append((stack, key))
        return kept, lowest

    def subsumes(self, a: Stack, b: Stack) -> tuple[bool, int]:
        """Whether every text that can follow ``b`` can follow ``a``, if that can be told; the lowest depth looked at.

        What lies lower makes no difference, as long as it is the same for both. So answers are remembered by the
        states above.
        """
        with self._lock:
            return self._subsumes(a, b)

    def _subsumes(self, a: Stack, b: Stack) -> tuple[bool, int]:
        higher = a.depth - b.depth
        known = self._known.setdefault((a.state, b.state, higher), {})
        common = self._common(a, b, higher) if known else _MOST_STATES
        for length, answers in known.items():
            if length >= common:
                answer = answers.get((a.top(length), b.top(length - higher)))
                if answer is not None:
                    return answer, a.depth - length + 1
        if (a, b) in self._whole:
            return self._whole[a, b], 0
        if self._left_in_set <= 0:
            return False, 0
        self._left = before = min(_MOST_PAIRS, self._left_in_set)
        work = self._work = self._parser.work
        self._depth_read = min(a.depth, b.depth)
        try:
            answer = self._holds(a, b, _MOST_SHIFTS)
        finally:
            self._assumed.clear()
            self._parser.work = work  # what is counted there are moves; these have a bound of their own
        self._left_in_set -= before - self._left
        self._count += 1
        if self._count > _MOST_KNOWN:
            self.forget()
            known = self._known.setdefault((a.state, b.state, higher), {})
        base = self._base(a, b)
        if base is None or max(a.depth, b.depth) - base.depth > _MOST_STATES:
            self._whole[a, b] = answer
            return answer, 0 if base is None else base.depth + 1
        length = a.depth - base.depth
        known.setdefault(length, {})[a.top(length), b.top(length - higher)] = answer
        return answer, base.depth + 1

    def _common(self, a: Stack, b: Stack, higher: int) -> int:
        """How many states ``a`` has above what both stand on, if it is not too many."""
        count = max(0, higher)
        if count >= _MOST_STATES or -higher >= _MOST_STATES:
            return _FAR
        here, there = a.under(count), b.under(count - higher)
        while here is not there and here is not None and there is not None and count < _MOST_STATES:
            here, there, count = here.below, there.below, count + 1
        return count if here is there and here is not None else _FAR

    def _base(self, a: Stack, b: Stack) -> Stack | None:
        """The highest stack that both stand on and that was not looked at."""
        depth = min(a.depth, b.depth, self._depth_read) - 1
        here, there = a.under(a.depth - depth), b.under(b.depth - depth)
        while here is not there and here is not None and there is not None:
            here, there = here.below, there.below
        return here if here is there else None

    def _holds(self, a: Stack, b: Stack, shifts: int) -> bool:
        """Whether a pair holds if those that are assumed do. If so it is one of them, with what it rests on."""
        pair = a, b
        if a is b or pair in self._assumed:
            return True
        self._left -= 1 + (self._parser.work - self._work) // _NODES
        self._work = self._parser.work
        if self._left < 0:
            return False
        accepted_a, accepted_b = self._parser.accepted(a), self._parser.accepted(b)
        if accepted_b.terminals & ~accepted_a.terminals:
            # Only a way to say no early: what lies lower does not matter where it says nothing.
            self._depth_read = min(self._depth_read, accepted_a.depth_read, accepted_b.depth_read)
            return False
        before = len(self._assumed)
        self._assumed[pair] = None
        if self._by_reducing(a, b, shifts) or self._by_moves(a, b, shifts):
            return True
        self._withdraw(before)
        return False

    def _withdraw(self, before: int) -> None:
        while len(self._assumed) > before:
            self._assumed.popitem()

    def _by_reducing(self, a: Stack, b: Stack, shifts: int) -> bool:
        """Rules 2 and 3."""
        reduced = {a: None}
        for here in (queue := [a]):
            if here is b:
                return True
            before = len(self._assumed)
            if here.state == b.state:
                if self._below(here, b, shifts):
                    return True
                self._withdraw(before)
            for after in self._reduced(here):
                if after not in reduced and len(reduced) < _MOST_REDUCED:
                    reduced[after] = None
                    queue.append(after)
        return False

    def _below(self, a: Stack, b: Stack, shifts: int) -> bool:
        """Rule 2: what comes after each rule that the state on top of both is in the middle of."""
        for length, origin in self._middle[a.state]:
            after_b = self._replaced(b, length, origin)
            after_a = self._replaced(a, length, origin) if after_b else []
            if not all(self._some_holds(after_a, each, shifts) for each in after_b):
                return False
        return True

    def _replaced(self, stack: Stack, length: int, origin: int) -> list[Stack]:
        found = self._parser.replaced(stack, length, origin)
        self._depth_read = min(self._depth_read, stack.depth - length, *(each.depth - 1 for each in found))
        return found

    def _by_moves(self, a: Stack, b: Stack, shifts: int) -> bool:
        """Rule 4."""
        parser = self._parser
        if not all(self._holds(a, after, shifts) for after in self._reduced(b)):
            return False
        for terminal, after_b, there in parser.shifted(b):
            if self._left < 0:
                return False
            every, depth_read = parser.every(a, terminal, _MOST_REDUCED)
            self._depth_read = min(self._depth_read, depth_read, there)
            for after, context in after_b:
                candidates = [each for each, at in every if at == context]
                if after not in candidates and not self._some_holds(candidates, after, shifts - 1):
                    return False
        return True

    def _reduced(self, stack: Stack) -> list[Stack]:
        found = [reduced for reduced, _ in self._parser.reduced(stack)]
        self._depth_read = min(self._depth_read, *(after.depth - 1 for after in found)) if found else self._depth_read
        return found

    def _some_holds(self, candidates: list[Stack], b: Stack, shifts: int) -> bool:
        for a in sorted(candidates, key=lambda a: a.state != b.state) if shifts >= 0 else ():
            before = len(self._assumed)
            if self._holds(a, b, shifts):
                return True
            self._withdraw(before)
        return False


def _middle(tables: GrammarTables) -> list[list[tuple[int, int]]]:
    """By state: the rules that it is in the middle of, or at the end of, as the symbols read and the nonterminal.

    A state is entered by one symbol only, so a rule's places are found backwards from where it is reduced.
    """
    states = len(tables.context)
    found: list[dict[tuple[int, int], None]] = [{} for _ in range(states)]
    into: list[list[int]] = [[] for _ in range(states)]
    for moves in (tables.shift, tables.goto):
        for state, _, target in moves.tolist():
            into[target].append(state)
    todo: list[tuple[int, int, int]] = [each for each in map(tuple, tables.reduce.tolist()) if each[1]]
    while todo:
        state, length, origin = todo.pop()
        if (length, origin) not in found[state]:
            found[state][length, origin] = None
            if length > 1:
                todo += ((before, length - 1, origin) for before in into[state])
    return [list(there) for there in found]
