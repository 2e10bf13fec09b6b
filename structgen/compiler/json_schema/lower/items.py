"""Arrays: from an `ArrayShape` to the states between its brackets.

A *tally* is what of the items so far still matters: their number as far as bounds and the prefix ask for it, how
many earned each mark, and, where items must differ, which values have been there. Each tally has an item state and
a tail state. Long bounds on the number alone are counted by a loop instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ....errors import InternalError
from ....runtime.automaton.tables import INC, SET
from ...programs.program import CountedEdge, Edge, State
from ..normal_form.shapes import ArrayShape, Choice
from .builder import CLOSE_BRACKET, Builder, grouped
from .unique import without_repeats

#: Lengths after the prefix from which on the items are counted by a loop.
_COUNT_FROM = 32

#: No text has more items than that; larger bounds would overflow the stored counts.
_MAX_COUNT = 1 << 30


class ItemTally(NamedTuple):
    """The number of items, saturated, how many of them earned each mark, saturated, and a bit for each value seen."""

    items: int
    earned: tuple[int, ...]
    seen: int = 0


class ItemTallying:
    """What must be remembered of the items of a shape, and what it allows."""

    def __init__(self, shape: ArrayShape) -> None:
        self._shape = shape
        self.most = shape.max_items
        if self.most is not None and self.most > _MAX_COUNT:
            self.most = None
        if not shape.rest and (self.most is None or self.most > len(shape.prefix)):
            self.most = len(shape.prefix)
        self.enough = max(len(shape.prefix), shape.min_items) if self.most is None else self.most
        self.start = ItemTally(0, (0,) * len(shape.contains))

    def choice(self, tally: ItemTally) -> Choice:
        """What the next item may be, if there can be one."""
        prefix = self._shape.prefix
        if self.most is not None and tally.items >= self.most:
            return ()
        return prefix[tally.items] if tally.items < len(prefix) else self._shape.rest

    def add(self, tally: ItemTally, marks: int) -> ItemTally | None:
        """The tally with another item; None where it has earned a mark too often, or has been there before."""
        earned = list(tally.earned)
        for k, count in enumerate(self._shape.contains):
            if marks >> k & 1:
                earned[k] += 1
                if count.max is None:
                    earned[k] = min(earned[k], count.min)
                elif earned[k] > count.max:
                    return None
        value = marks >> len(earned)
        if value & tally.seen:
            return None
        return ItemTally(min(tally.items + 1, self.enough), tuple(earned), tally.seen | value)

    def is_enough(self, tally: ItemTally) -> bool:
        """Whether an array may end."""
        counts = zip(tally.earned, self._shape.contains, strict=True)
        return tally.items >= self._shape.min_items and all(n >= count.min for n, count in counts)


class ArrayStates:
    """The states of one shape; ``pointer`` is for messages."""

    def __init__(self, builder: Builder, shape: ArrayShape, pointer: str, level: int) -> None:
        self.builder = builder
        self.level = level
        self.inner = builder.inner(level)
        self.shape = shape = without_repeats(builder, shape, pointer) if shape.unique else shape
        self.tally = ItemTallying(shape)
        #: The number of items from which on a loop counts; -1 where none does.
        self.loop_from = -1
        if self.tally.enough - len(shape.prefix) > _COUNT_FROM and not shape.contains and not shape.unique:
            self.loop_from = len(shape.prefix)
        self.inside: dict[ItemTally, State] = {}
        self.tails: dict[ItemTally, State] = {}

    def run(self, start: State) -> None:
        """Make the states of all tallies, and give the one after the opening bracket its edges."""
        builder, tally = self.builder, self.tally
        following = self._following()
        live = self._live(following)
        if tally.start not in live:
            raise InternalError("an array shape without members reached the lowering")
        for here in builder.meter.each(live, "lowering arrays"):
            if here.items == self.loop_from or not live.keys().isdisjoint(following[here]):
                self.inside[here] = builder.program.state("item")
            self.tails[here] = builder.whitespace.tail(self.inside.get(here), self._close(here), self.level)
        for here, state in builder.meter.each(self.inside.items(), "lowering arrays"):
            builder.program.edges[state] = (
                self._loop()
                if here.items == self.loop_from
                else builder.above(grouped(tally.choice(here), self._tail_after(here)), self.inner)
            )
        builder.whitespace.opening(start, self.inside.get(tally.start), self._close(tally.start), self.level)

    def _close(self, tally: ItemTally) -> int | None:
        return CLOSE_BRACKET if self.tally.is_enough(tally) else None

    def _tail_after(self, tally: ItemTally) -> Callable[[int], State | None]:
        def tail(marks: int) -> State | None:
            after = self.tally.add(tally, marks)
            return None if after is None else self.tails.get(after)

        return tail

    def _following(self) -> dict[ItemTally, set[ItemTally]]:
        """The tallies that can be reached, each with the next ones; where a loop begins there are none."""
        builder = self.builder
        following: dict[ItemTally, set[ItemTally]] = {}
        todo = [self.tally.start]
        while todo:
            here = todo.pop()
            if here in following:
                continue
            builder.meter.check_states(len(builder.program.edges) + 2 * len(following), "lowering arrays")
            choice = () if here.items == self.loop_from else self.tally.choice(here)
            afters = (self.tally.add(here, marks) for marks in {option.marks for option in choice})
            following[here] = {after for after in afters if after is not None}
            todo.extend(following[here])
        return following

    def _live(self, following: dict[ItemTally, set[ItemTally]]) -> dict[ItemTally, None]:
        """Those from which an array can be finished."""
        before: dict[ItemTally, list[ItemTally]] = {}
        for here, afters in following.items():
            for after in afters:
                before.setdefault(after, []).append(here)
        todo = [here for here in following if here.items == self.loop_from or self.tally.is_enough(here)]
        live = dict.fromkeys(todo)
        while todo:
            for here in before.get(todo.pop(), ()):
                if here not in live:
                    live[here] = None
                    todo.append(here)
        return live

    def _loop(self) -> list[Edge]:
        """The edges where the first item of a counted loop begins.

        The count is that of the items after the prefix. Below the minimum only a comma may follow, at the maximum
        only the bracket. Without a maximum the loop ends at the minimum, and a plain one goes on.
        """
        program, tail = self.builder.program, self.builder.whitespace.tail
        least = self.shape.min_items - self.loop_from
        most = least if self.tally.most is None else self.tally.most - self.loop_from
        if max(least, most) > _MAX_COUNT:
            self.builder.meter.check_states(max(least, most), "lowering array bounds")
        loop = program.loop(max(least, 1), most)
        item = program.state("item", live=loop)
        low = tail(item, None, self.level, loop) if least > 1 else -1
        mid = tail(item, CLOSE_BRACKET, self.level, loop) if least < most else -1
        high = self._plain_loop() if self.tally.most is None else tail(None, CLOSE_BRACKET, self.level)
        refs = tuple(sorted({option.value for option in self.shape.rest}))
        begin = self.builder.value_edges(refs, self.inner)
        first = CountedEdge(SET, loop, low if least > 1 else mid, mid, high)
        again = CountedEdge(INC, loop, low, mid, high)
        program.edges[item] = [Edge(e.low, e.high, e.sequence, again) for e in begin]
        return [Edge(e.low, e.high, e.sequence, first) for e in begin]

    def _plain_loop(self) -> State:
        """The tail of any number of further items."""
        builder = self.builder
        item = builder.program.state("item")
        tail = builder.whitespace.tail(item, CLOSE_BRACKET, self.level)
        builder.program.edges[item] = builder.above(grouped(self.shape.rest, lambda marks: tail), self.inner)
        return tail
