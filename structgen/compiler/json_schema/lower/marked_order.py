"""Objects whose members come in any order, with a set of the names that have been there beside the states.

After an opening quote the text is read as each name that has not been there yet, at the same time, and as any other
name; all but one of these die within a few letters. Whichever it is, its bit was set when the quote was read, in the
frame that waits below the member. So only the few states between members have the set, and names, colons and values
are plain states, the same for every set.

A mark that some member must earn is part of the tally, and so of these few states. Until it is earned a member is
dead that leaves no name whose value could earn it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ....errors import InternalError
from ....runtime.pushdown.tables import MOST_MEMBERS
from ...automata.edge_lists import EdgeLists
from ...programs.program import Condition, First, MarkedEdge, State, TokenEdge, edge_of
from ..normal_form.shapes import Choice, ObjectShape
from .builder import BELOW, CLOSE_BRACE, Builder, Refs, grouped
from .members import Members
from .tallies import Tally, reachable
from .trie import NONE
from .whitespace import Conditions


class MarkedOrder(Members):
    """The states of one shape with one mark at most, and then no bound above; ``pointer`` is for messages."""

    def __init__(self, builder: Builder, shape: ObjectShape, pointer: str, level: int) -> None:
        super().__init__(builder, shape, pointer, level)
        self.list_first()
        #: The bits of properties, by their place; in a relaxed schema also those without one, which can come twice.
        self.members: dict[int, int] = {}
        self.rest: list[int] = []
        self._choose()
        self.register = builder.program.register(max(1, len(self.members)))
        self.all = (1 << len(self.members)) - 1
        self.needed = sum(1 << bit for place, bit in self.members.items() if self.shape.properties[place].required)
        free = [self.shape.properties[place].choice for place in self.rest]
        free += [key_class.choice for key_class in self.shape.others if key_class.choice]
        self.is_open = bool(free)
        #: The members whose values can earn the mark, where no others can.
        self.earning = 0
        if not any(map(_earns, free)):
            earning = [bit for place, bit in self.members.items() if _earns(self.shape.properties[place].choice)]
            self.earning = sum(1 << bit for bit in earning)
        self.tails: dict[Tally, State] = {}

    def _choose(self) -> None:
        """Give properties bits: the required ones first, if not all can have one."""
        properties = self.shape.properties
        possible = [i for i, text in enumerate(self.spellings) if text is not None and properties[i].choice]
        chosen = sorted(possible, key=lambda i: not properties[i].required)[:MOST_MEMBERS]
        self.members = {place: bit for bit, place in enumerate(sorted(chosen))}
        self.rest = [i for i in possible if i not in self.members]
        if self.rest:
            self.builder.relax(
                "properties",
                self.pointer,
                f"{len(possible):,} in any order are more than the {MOST_MEMBERS:,} that are told apart",
                'Use property_order="schema".',
            )
            self.is_distinct = False

    def run(self, start: State) -> None:
        """Make all states, and give the one after the opening brace its edges."""
        program = self.builder.program
        self.tell_apart(start)
        self._check_possible()
        inside: dict[Tally, State | None] = {}
        self.builder.meter.check_states(8 * self.tallies, "lowering properties in any order")
        for tally, following in reachable(self.tally.start, self._after, lambda _: None).items():
            inside[tally] = program.state("member", live=self.register) if following else None
            self.tails[tally] = self._tail(tally, inside[tally])
        for tally, state in inside.items():
            if state is not None:
                self._open(state, list(self._members(tally)))
        close = None if self.needed else self._close(self.tally.start)
        self.text.whitespace.opening(start, inside[self.tally.start], close, self.level)

    def _tail(self, tally: Tally, inside: State | None) -> State:
        """The state after a member; in tags one after which more come."""
        whitespace = self.text.whitespace
        if self.level < 0:
            return whitespace.tail(inside, None, self.level, self.register)
        return whitespace.tail(
            inside, self._close(tally), self.level, self.register, self._conditions(), mark=self.mark
        )

    def _tails_of(self, after: Tally) -> Iterator[tuple[State, Condition]]:
        """The states after a member, by what it must leave: in tags it is the last one, or it is not."""
        if self.level >= 0:
            yield self.tails[after], self._fits(after)
            return
        more, end = self._conditions()
        yield self.tails[after], self._fits(after) if self._is_owed(after) else more
        if self.tally.is_enough(after):
            yield self.text.whitespace.tail(None, CLOSE_BRACE, self.level), end

    def _check_possible(self) -> None:
        required = [i for i, p in enumerate(self.shape.properties) if p.required]
        most = len(required) if self.tally.most is None else self.tally.most
        if (
            len(required) > most
            or any(self.spellings[i] is None or not self.shape.properties[i].choice for i in required)
            or (self.tally.least > len(self.members) and not self.is_open)
        ):
            raise InternalError("an object shape without members reached the lowering")

    # -- how many there are --------------------------------------------------------------------------------

    def _after(self, tally: Tally) -> Iterator[Tally]:
        """The tallies that members can lead to."""
        choices = [self.shape.properties[place].choice for place in (*self.members, *self.rest)]
        choices += [key_class.choice for key_class in self.shape.others]
        for marks in {option.marks for choice in choices for option in choice}:
            after = self.tally.add(tally, marks)
            if after is not None:
                yield after

    def _is_owed(self, tally: Tally) -> bool:
        """Whether the mark has still to be earned, and only by some of the members that have not been there."""
        return 0 in tally.earned and bool(self.earning)

    def _close(self, tally: Tally) -> int | None:
        return CLOSE_BRACE if self.tally.is_enough(tally) else None

    def _conditions(self) -> Conditions:
        """When an object may go on, and when it may end."""
        more = Condition() if self.is_open else Condition(self.all, 0, len(self.members) - 1)
        required = self.needed.bit_count()
        return Conditions(more, Condition(self.needed, required, required))

    def _fits(self, after: Tally) -> Condition:
        """What a member must leave: room for the required ones still to come, or one that earns the mark."""
        if self._is_owed(after):
            return Condition(self.earning, 0, self.earning.bit_count() - 1)
        if self.tally.most is None:
            return Condition()
        required = self.needed.bit_count()
        return Condition(self.needed, max(0, required - (self.tally.most - after.number)), required)

    # -- names -----------------------------------------------------------------------------------------------

    def _open(self, state: State, ways: list[tuple[tuple[State, ...], MarkedEdge]]) -> None:
        """Read what stands before a name, the last byte or token of which marks it."""
        program = self.builder.program
        for number, (text, token) in enumerate(self.text.opening, 1):
            begun = state
            for byte in text[:-1]:
                program.edge(state, byte, byte, state := program.state("tag", live=self.register))
            targets = [program.target(*way) for way in ways]
            behind = state
            if number < len(self.text.opening):
                behind = program.state("tag", live=self.register)
                targets = [1 + behind]
            program.give(state, First([edge_of(text[-1], text[-1], target) for target in targets]))
            if token is not None:
                program.give(begun, First((), [TokenEdge(token, target) for target in targets]))
            state = behind

    def _members(self, tally: Tally) -> Iterator[tuple[tuple[State, ...], MarkedEdge]]:
        """The names of a member behind others, and what each marks."""
        keys, sequence = self.builder.keys, self.builder.program.sequence
        for after in dict.fromkeys(self._after(tally)):
            below, tails = partial(self._below, tally, after), list(self._tails_of(after))
            for place, bit in self.members.items():
                way = keys.after_quote(self.with_name(NONE, *self._named(place, below)), None)
                for tail, fits in tails if way else ():
                    yield sequence(way), MarkedEdge(tail, bit, fits)
            others = self.classes(below)
            names = self.forbidden() if others else NONE
            for place in self.rest:
                names = self.with_name(names, *self._named(place, below))
            way = keys.after_quote(names, others)
            for tail, fits in tails if way else ():
                yield sequence(way), MarkedEdge(tail, condition=fits)

    def _named(
        self, place: int, below: Callable[[Choice], dict[State, Refs]]
    ) -> tuple[bytes | EdgeLists | None, dict[State, Refs]]:
        return self.spellings[place], below(self.shape.properties[place].choice)

    def _below(self, tally: Tally, after: Tally, choice: Choice) -> dict[State, Refs]:
        """The values of a choice that lead from a tally to another one; the frame that has the tally lies below."""
        return grouped(choice, lambda marks: BELOW if self.tally.add(tally, marks) == after else None)


def _earns(choice: Choice) -> bool:
    return any(option.marks for option in choice)
