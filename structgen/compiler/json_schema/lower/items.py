"""Arrays: from an `ArrayShape` to the states between its brackets.

A *tally* is what of the items so far still matters: their number as far as bounds and the prefix ask for it, how
many earned each mark, and, where items must differ, which values have been there. Each tally has an item state and
a tail state. Long bounds on the number alone are counted by a loop instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ....runtime.automaton.tables import INC, SET
from ....runtime.pushdown.tables import ENDS_ITEM, OPENS_ARRAY
from ...programs.program import CountedEdge, First, State, TokenEdge
from ..normal_form.shapes import ArrayShape, Choice
from .builder import CLOSE_BRACKET, Builder, grouped
from .tallies import MAX_COUNT, Tally, Tallying, states

#: Lengths after the prefix from which on the items are counted by a loop.
COUNT_FROM = 32


class ArrayStates:
    """The states of one shape; ``pointer`` is for messages."""

    def __init__(self, builder: Builder, shape: ArrayShape, pointer: str, level: int) -> None:
        self.builder = builder
        self.level = level
        self.inner = builder.inner(level)
        self.text = builder.text(level)
        #: Whether it is left to who follows a text that items differ.
        self.is_distinct = False
        if shape.unique:
            from .unique import without_repeats

            shape, self.is_distinct = without_repeats(builder, shape, pointer, level)
        self.shape = shape
        prefix, most = len(shape.prefix), shape.max_items
        if most is not None and most > MAX_COUNT:
            most = None
        if not shape.rest and (most is None or most > prefix):
            most = prefix
        enough = max(prefix, shape.min_items) if most is None else most
        self.tally = Tallying(shape.min_items, most, enough, shape.contains)
        #: The number of items from which on a loop counts; -1 where none does.
        self.loop_from = -1
        if enough - prefix > COUNT_FROM and not shape.contains and not shape.unique:
            self.loop_from = prefix
        self.inside: dict[Tally, State] = {}
        self.tails: dict[Tally, State] = {}

    def run(self, start: State) -> None:
        """Make the states of all tallies, and give the one after the opening bracket its edges."""
        builder, tally = self.builder, self.tally
        if self.is_distinct:
            builder.program.distinct[start] = OPENS_ARRAY
        alive = states(
            tally.start, self._next, lambda here: here.number == self.loop_from or tally.is_enough(here), self._check
        )
        for here, goes_on in builder.meter.each(alive.items(), "lowering arrays"):
            if goes_on or here.number == self.loop_from:
                self.inside[here] = builder.program.state("item")
            self.tails[here] = self._tail(self.inside.get(here), self._close(here))
        for here, state in builder.meter.each(self.inside.items(), "lowering arrays"):
            if here.number == self.loop_from:
                builder.program.give(state, self._loop())
            else:
                self.text.begin_items(state, grouped(self._choice(here), self._tail_after(here)), self.inner)
        self.text.whitespace.opening(start, self.inside.get(tally.start), self._close(tally.start), self.level)

    def _tail(self, inside: State | None, close: int | None, live: int = -1) -> State:
        """The state after an item."""
        return self.text.whitespace.tail(inside, close, self.level, live, None, ENDS_ITEM if self.is_distinct else 0)

    def _close(self, tally: Tally) -> int | None:
        return CLOSE_BRACKET if self.tally.is_enough(tally) else None

    def _tail_after(self, tally: Tally) -> Callable[[int], State | None]:
        def tail(marks: int) -> State | None:
            after = self.tally.add(tally, marks)
            return None if after is None else self.tails.get(after)

        return tail

    def _choice(self, tally: Tally) -> Choice:
        """What the next item may be, if there can be one and no loop begins."""
        prefix = self.shape.prefix
        if tally.number in (self.tally.most, self.loop_from):
            return ()
        return prefix[tally.number] if tally.number < len(prefix) else self.shape.rest

    def _next(self, tally: Tally) -> Iterator[Tally]:
        for marks in {option.marks for option in self._choice(tally)}:
            if (after := self.tally.add(tally, marks)) is not None:
                yield after

    def _check(self, tallies: int) -> None:
        self.builder.meter.check_states(len(self.builder.program.edges) + 2 * tallies, "lowering arrays")

    def _loop(self) -> First:
        """The edges where the first item of a counted loop begins.

        The count is that of the items after the prefix. Below the minimum only a comma may follow, at the maximum
        only the bracket. Without a maximum the loop ends at the minimum, and a plain one goes on.
        """
        program, tail = self.builder.program, self._tail
        least = self.shape.min_items - self.loop_from
        most = least if self.tally.most is None else self.tally.most - self.loop_from
        if max(least, most) > MAX_COUNT:
            self.builder.meter.check_states(max(least, most), "lowering array bounds")
        loop = program.loop(max(least, 1), most)
        item = program.state("item", live=loop)
        low = tail(item, None, loop) if least > 1 else -1
        mid = tail(item, CLOSE_BRACKET, loop) if least < most else -1
        high = self._plain_loop() if self.tally.most is None else tail(None, CLOSE_BRACKET)
        refs = tuple(sorted({option.value for option in self.shape.rest}))
        begin = self.text.item(refs, self.inner)
        first = CountedEdge(SET, loop, low if least > 1 else mid, mid, high)
        again = CountedEdge(INC, loop, low, mid, high)
        program.give(item, self._counted(begin, again))
        return self._counted(begin, first)

    def _plain_loop(self) -> State:
        """The tail of any number of further items."""
        builder = self.builder
        item = builder.program.state("item")
        tail = self._tail(item, CLOSE_BRACKET)
        self.text.begin_items(item, grouped(self.shape.rest, lambda marks: tail), self.inner)
        return tail

    def _counted(self, begin: First, counted: CountedEdge) -> First:
        """The same edges, which count."""
        program = self.builder.program

        def target(plain: int) -> int:
            return program.target(program.sequence(plain), counted)

        return First(
            [target(edge >> 16) << 16 | edge & 0xFFFF for edge in begin.edges],
            [TokenEdge(tokens, target(plain)) for tokens, plain in begin.tokens],
        )
