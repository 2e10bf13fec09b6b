"""Objects whose members come in any order, with a state for each set of properties that have been there.

For objects with few properties, or whose members must earn several marks; `marked_order` has the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

from ...programs.program import State
from ..normal_form.shapes import Choice, ObjectShape
from .builder import CLOSE_BRACE, Builder, Refs, grouped
from .marked_order import MarkedOrder
from .members import Members
from .tallies import Tally, states
from .trie import NONE

#: The properties that have been there, a bit each, and the tally of all members.
Seen: TypeAlias = tuple[int, Tally]

#: So many sets of properties are told apart; and so many where that is not the only way.
_MAX_SETS, _FEW_SETS = 1024, 16


def in_any_order(builder: Builder, shape: ObjectShape, pointer: str, level: int) -> AnyOrder | MarkedOrder:
    """The way to lower a shape whose members come in any order."""
    few = 1 << sum(1 for p in shape.properties if p.choice) <= _FEW_SETS
    # No byte ends members in tags: that each may be the last, and that more can come, is one condition too many.
    bounded = level < 0 and shape.max_properties is not None
    # A name is marked where it begins: behind the first byte or token of all, what is called could not do that.
    opening = builder.text(level).opening
    at_once = len(opening) == 1 and opening[0][1] is not None
    marked = shape.exists > (shape.max_properties is None)
    return (AnyOrder if few or marked or bounded or at_once else MarkedOrder)(builder, shape, pointer, level)


class AnyOrder(Members):
    """The states of one shape; ``pointer`` is for messages."""

    def __init__(self, builder: Builder, shape: ObjectShape, pointer: str, level: int) -> None:
        super().__init__(builder, shape, pointer, level)
        self.list_first()
        properties = self.shape.properties
        self.bits = [0] * len(properties)
        tracked = [i for i, p in enumerate(properties) if p.choice]
        if 1 << len(tracked) > _MAX_SETS:
            builder.relax(
                "properties",
                pointer,
                f"{len(tracked):,} in any order have too many sets to be told apart, more than {_MAX_SETS:,}",
                'Use property_order="schema".',
            )
            # What may be left out may then come twice.
            tracked = [i for i in tracked if properties[i].required]
            self.is_distinct = False
            builder.meter.check_states(1 << len(tracked), "lowering properties in any order")
        self.needed = 0
        for bit, i in enumerate(tracked):
            self.bits[i] = 1 << bit
            self.needed |= properties[i].required << bit
        self.tails: dict[Seen, State] = {}

    def run(self, start: State) -> None:
        """Make all states, and give the one after the opening brace its edges."""
        builder = self.builder
        self.tell_apart(start)
        first: Seen = (0, self.tally.start)
        inside: dict[Seen, State] = {}
        for seen, goes_on in states(first, self._after, self._is_enough, self._check).items():
            if goes_on:
                inside[seen] = builder.program.state("member")
            tail = self.text.whitespace.tail(inside.get(seen), self._close(seen), self.level, mark=self.mark)
            self.tails[seen] = tail
        forbidden = self.forbidden()
        for seen, state in inside.items():
            others = self.classes(partial(self._tails_of, seen, 0))
            names = forbidden if others else NONE
            for bit, p, text in zip(self.bits, self.shape.properties, self.spellings, strict=True):
                if not bit & seen[0]:
                    names = self.with_name(names, text, self._tails_of(seen, bit, p.choice))
            self.begin_key(state, names, others)
        self.text.whitespace.opening(start, inside.get(first), self._close(first), self.level)

    def _close(self, seen: Seen) -> int | None:
        return CLOSE_BRACE if self._is_enough(seen) else None

    def _is_enough(self, seen: Seen) -> bool:
        return seen[0] & self.needed == self.needed and self.tally.is_enough(seen[1])

    def _next(self, seen: Seen, bit: int, choice: Choice) -> Iterator[Seen]:
        for option in choice:
            tally = self.tally.add(seen[1], option.marks)
            if tally is not None and not bit & seen[0]:
                yield seen[0] | bit, tally

    def _tails_of(self, seen: Seen, bit: int, choice: Choice) -> dict[State, Refs]:
        def tail(marks: int) -> State | None:
            tally = self.tally.add(seen[1], marks)
            return None if tally is None else self.tails.get((seen[0] | bit, tally))

        return grouped(choice, tail)

    def _after(self, seen: Seen) -> Iterator[Seen]:
        for bit, p, text in zip(self.bits, self.shape.properties, self.spellings, strict=True):
            if text is not None:
                yield from self._next(seen, bit, p.choice)
        for key_class in self.shape.others:
            yield from self._next(seen, 0, key_class.choice)

    def _check(self, sets: int) -> None:
        self.builder.meter.check_states(8 * sets, "lowering properties in any order")
