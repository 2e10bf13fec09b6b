"""The stacks of a parser whose conflicts are kept, as a graph.

Where actions compete all of them are followed, and there are several stacks. As long as they are few they are chains
that share what lies below, as in `structgen.runtime.grammar.parser.stack`, and those that others subsume are left out
(`structgen.runtime.grammar.parser.subsumption`). Where more are left, those with the same state on top become one
node with several below it, and what happens on top of it happens once: a graph-structured stack (Tomita 1986). It has
no more tops than the parser has states, whatever the text, and 2^n stacks take n nodes where each of n symbols was
read in two ways.

What a stack leads to is remembered by the stack, and worked out from what those lead to that it is reduced to: of a
long row of rules that end together each step makes what is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TypeVar

from ....budget import StepMeter
from ..tables import GrammarTables
from .stack import After, Parser, Stack
from .subsumption import Subsumption

#: So many stacks are kept apart at most.
MOST_APART = 16

#: States below the top within which stacks are to differ, if they are merged though they are few.
_NEAR = 32

_Key = TypeVar("_Key")


class Merge(Stack):
    """A state on top of several stacks.

    Its depth is one more than that of the deepest below it, so depths fall on all ways to the bottom.
    """

    __slots__ = ("_belows",)

    def __init__(self, state: int, belows: tuple[Stack, ...]) -> None:
        super().__init__(state, None)
        self._belows = belows
        self.depth = 1 + max(below.depth for below in belows)

    @property
    def belows(self) -> tuple[Stack, ...]:
        """What the state is on top of."""
        return self._belows


class GraphParser(Parser):
    """Moves of a parser whose conflicts are kept: every action that competes is taken.

    Parameters
    ----------
    tables:
        The parser.
    steps:
        Counts the work of a step, that of comparing stacks included; without it nothing is bounded.
    """

    def __init__(self, tables: GrammarTables, steps: StepMeter | None = None) -> None:
        super().__init__(tables)
        #: By state and what it is on top of: nodes, and what sets come to that have equal states on top.
        self._nodes: dict[tuple[int, frozenset[Stack]], Merge] = {}
        self._merged: dict[tuple[int, frozenset[Stack]], Stack] = {}
        #: Tells stacks that are needed from others.
        self.subsumption = Subsumption(self, tables)
        #: Nodes that reductions went through so far: what texts cost.
        self.work = 0
        self._steps = steps or StepMeter()

    def _count(self, nodes: int) -> None:
        self.work += nodes
        self._steps.spend(nodes)

    def forget(self) -> None:
        """Forget what was asked of stacks, and that equal ones are the same; whoever holds one may go on with it."""
        self._forgotten += self._nodes.values()
        self._nodes, self._merged = {}, {}
        super().forget()
        self.subsumption.forget()

    def _over(self, state: int, belows: frozenset[Stack]) -> Stack:
        """A state on top of several stacks; of these, those with the same state on top are one again, and so on down.

        So the same stacks are the same node, and what was merged before is found at once.
        """
        todo = [(state, belows)]
        while True:
            here = todo[-1]
            if here not in self._merged:
                alike: dict[int, set[Stack]] = {}
                for below in here[1]:
                    alike.setdefault(below.state, set()).add(below)
                keys = [
                    (each, frozenset(below for stack in stacks for below in stack.belows))
                    for each, stacks in alike.items()
                    if len(stacks) > 1
                ]
                missing = [key for key in keys if key not in self._merged]
                self._count(len(here[1]))
                if missing:
                    todo += missing
                    continue
                apart = [stack for stacks in alike.values() if len(stacks) == 1 for stack in stacks]
                self._merged[here] = self._node(here[0], [*apart, *(self._merged[key] for key in keys)])
            todo.pop()
            if not todo:
                return self._merged[here]

    def _node(self, state: int, belows: list[Stack]) -> Stack:
        """A state on top of stacks with different states on top."""
        if len(belows) == 1:
            return self.push(belows[0], state)
        key = state, frozenset(belows)
        found = self._nodes.get(key)
        if found is None:
            self.stacks += len(belows)
            found = self._nodes[key] = Merge(state, tuple(sorted(belows, key=lambda below: below.depth)))
        return found

    def few(self, stacks: Iterable[tuple[Stack, _Key]]) -> tuple[list[tuple[Stack, _Key]], int]:
        """Stacks with what they differ in besides, few of them, that take the same texts; the lowest depth looked at.

        Those that others subsume are left out. If many stay, those with the same state on top are merged, and with
        a node that stands for several others always are.
        """
        stacks = list(stacks)
        self._steps.spend(len(stacks) * min(len(stacks), MOST_APART))  # pairs that are compared
        merged = {(stack.state, key) for stack, key in stacks if len(stack.belows) > 1}
        thinned, depth_read = self.subsumption.thinned(self._together(stacks, merged) if merged else stacks)
        kept = self.together(thinned) if len(thinned) > MOST_APART else thinned
        if len(kept) < len(thinned):
            return kept, 0  # what is below a state is at several depths from here on
        if len(kept) < len(stacks):
            depth_read = min(depth_read, *(stack.depth - 1 for stack, _ in stacks))
        return kept, depth_read

    def together(self, stacks: list[tuple[Stack, _Key]], *, near: bool = False) -> list[tuple[Stack, _Key]]:
        """Stacks with those merged that have the same state on top, and the same key.

        ``near``: only where they differ near the top, since merging others takes as long as they are deep.
        """
        first: dict[tuple[int, _Key], Stack] = {}
        for stack, key in stacks:
            first.setdefault((stack.state, key), stack)
        far = {(stack.state, key) for stack, key in stacks if near and not _is_near(first[stack.state, key], stack)}
        return self._together(stacks, first.keys() - far)

    def _together(
        self, stacks: list[tuple[Stack, _Key]], which: AbstractSet[tuple[int, _Key]]
    ) -> list[tuple[Stack, _Key]]:
        """Stacks with those merged that have some states on top, and the same key."""
        found: list[tuple[Stack, _Key]] = []
        alike: dict[tuple[int, _Key], list[Stack]] = {}
        for stack, key in stacks:
            if (stack.state, key) in which:
                alike.setdefault((stack.state, key), []).append(stack)
            else:
                found.append((stack, key))
        for (state, key), same in alike.items():
            over = frozenset(below for stack in same for below in stack.belows)
            found.append((same[0] if len(same) == 1 else self._over(state, over), key))
        return found

    # -- moves -----------------------------------------------------------------------------------------

    def replaced(self, stack: Stack, length: int, origin: int) -> list[Stack]:
        """The stacks with a nonterminal in place of the uppermost states; none where it cannot be there."""
        here: Stack | None = stack
        for _ in range(length):
            here = here and here.below
        if here is None:
            return self._replaced(stack, length, origin)
        self._count(length)
        target = self._gotos[here.state].get(origin)
        return [] if target is None else [self.push(here, target)]

    def _replaced(self, stack: Stack, length: int, origin: int) -> list[Stack]:
        """The same where several stacks are below some of the states."""
        level: Iterable[Stack] = (stack,)
        for _ in range(length):
            level = {below: None for node in level for below in node.belows}
            self._count(len(level))
        found: dict[int, list[Stack]] = {}
        for node in level:
            target = self._gotos[node.state].get(origin)
            if target is not None:
                found.setdefault(target, []).append(node)
        return [
            self.push(nodes[0], target) if len(nodes) == 1 else self._over(target, frozenset(nodes))
            for target, nodes in found.items()
        ]

    def reduced(self, stack: Stack, terminals: int = -1) -> list[tuple[Stack, int]]:
        """The stacks that one reduction before some terminals leads to, each with those before which it is made."""
        found = stack.reduced
        if found is None:
            found = stack.reduced = tuple(
                (reduced, before)
                for length, origin, before in self._reductions[stack.state]
                for reduced in self.replaced(stack, length, origin)
            )
        return [each for each in found if each[1] & terminals]

    def accepts(self, stack: Stack, terminal: int) -> bool:
        """Whether a terminal may come next."""
        return bool(self.accepted(stack).terminals >> terminal & 1)

    def may_be_last(self, stack: Stack, terminal: int) -> bool:
        """Whether the text may be complete after a terminal; in doubt, True."""
        return bool(self.after(stack, terminal).stacks)

    def after(self, stack: Stack, terminal: int) -> After:
        """The stacks after a terminal."""
        known = stack.after.get(terminal)
        if known is not None:
            return known
        todo = [(stack, self.reduced(stack, 1 << terminal))]
        while True:
            here, reduced = todo[-1]
            answer = here.after.get(terminal)
            if answer is None:
                found: dict[tuple[Stack, int], None] = {}
                depth_read, missing = here.depth, []
                for each, _ in reduced:
                    after, accepted = each.after.get(terminal), each.accepted
                    if after is not None:
                        found.update(dict.fromkeys(after.stacks))
                        depth_read = min(depth_read, each.depth - 1, after.depth_read)
                    elif accepted is not None and not accepted.terminals >> terminal & 1:
                        depth_read = min(depth_read, each.depth - 1, accepted.depth_read)
                    else:
                        missing.append((each, self.reduced(each, 1 << terminal)))
                if missing:
                    self._check(len(todo), stack)
                    todo += missing
                    continue
                if terminal in self._shifts[here.state]:
                    shifted, there = self._shift_to(here, terminal)
                    shifted.update(found)
                    found, depth_read = shifted, min(depth_read, there)
                few, there = self.few(found) if len(found) > 1 else (list(found), depth_read)
                answer = After(tuple(few), min(depth_read, there))
                here.remember_after(terminal, answer)
            todo.pop()
            if not todo:
                return answer

    def every(self, stack: Stack, terminal: int, most: int) -> tuple[list[tuple[Stack, int]], int]:
        """Stacks after a terminal with their contexts, subsumed or not; and the lowest depth looked at.

        All of them, if reductions lead through at most ``most`` stacks.
        """
        found: dict[tuple[Stack, int], None] = {}
        depth_read, todo = stack.depth, {stack: None}
        for here in (queue := [stack]):  # grows as it goes
            shifted, there = self._shift_to(here, terminal)
            found.update(shifted)
            depth_read = min(depth_read, there)
            for reduced, _ in self.reduced(here, 1 << terminal):
                depth_read = min(depth_read, reduced.depth - 1)
                if reduced not in todo and len(todo) < most:
                    todo[reduced] = None
                    queue.append(reduced)
        return list(found), depth_read

    def shifted(self, stack: Stack) -> Iterator[tuple[int, list[tuple[Stack, int]], int]]:
        """By terminal that is shifted at once: the stacks after it with their context, the lowest depth looked at."""
        for terminal in self._shifts[stack.state]:
            found, depth_read = self._shift_to(stack, terminal)
            yield terminal, list(found), depth_read

    def _shift_to(self, stack: Stack, terminal: int) -> tuple[dict[tuple[Stack, int], None], int]:
        """The stacks after a shift and the default reductions behind it, and the lowest depth looked at."""
        target = self._shifts[stack.state].get(terminal)
        depth_read = stack.depth
        found: dict[tuple[Stack, int], None] = {}
        todo = [] if target is None else [self.push(stack, target)]
        for done, here in enumerate(todo):  # grows as it goes
            defaults = self._defaults[here.state]
            if defaults is None:
                assert target is not None
                found[here, self._context[target]] = None
                continue
            self._check(done, stack)
            for reduced in self.replaced(here, defaults[0], defaults[1]):
                depth_read = min(depth_read, reduced.depth - 1)
                todo.append(reduced)
        return found, depth_read


def _is_near(a: Stack, b: Stack) -> bool:
    """Whether stacks have different states, or the same stack below them, near the top."""
    here, other = [a], [b]
    for _ in range(_NEAR):
        if here == other or len(here) > 1 or len(other) > 1 or here[0].state != other[0].state:
            return True
        here, other = [*here[0].belows], [*other[0].belows]
    return False
