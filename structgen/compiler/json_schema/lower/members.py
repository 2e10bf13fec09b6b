"""Objects: from an `ObjectShape` to the states between its braces.

Properties come in their order, then the others. A *place* is the number of properties passed, a *tally* what of the
members so far still matters: their number, as far as bounds ask for it, and the marks they earned. Each place and
tally has a key state and a tail state. They are made from the end towards the beginning, since the keys that are
possible at a place are those of the next one and one more name, up to the next required property; tries share the
rest. In the plain case there is one tally, and nothing but the names costs anything.

Members with other names may come twice, which no finite memory can exclude. That is harmless (all of them are valid)
unless several of them are counted, or must earn marks. Then the names of small classes are *listed*, and those that
have been there are part of the tally. Of larger classes, and wherever `unique_names` is asked for, who follows a text
keeps the set of names (`structgen.runtime.pushdown.distinct`), if enough of them are seen to be left for what members
are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from ....errors import InternalError, UnsupportedError
from ....runtime.pushdown.tables import ENDS_MEMBER, OPENS_OBJECT
from ...automata.edge_lists import EdgeLists
from ...programs.program import State
from ..normal_form.shapes import Choice, Count, KeyClass, ObjectShape, Property
from ..strings.strings import StringSet
from .builder import CLOSE_BRACE, Builder, MemberEnd, Refs, grouped, references
from .keys import Others
from .tallies import MAX_COUNT, NOTHING_TOLD, Tally, Tallying, live, reachable
from .trie import FORBIDDEN, NONE, Trie

#: So many names are listed in any order; of up to so many more, each has its place after the properties.
_IN_ANY_ORDER, _LISTED = 6, 64


def _bounds(shape: ObjectShape) -> tuple[int, bool]:
    """From how many members on their number is no matter, and whether it matters if a name comes twice."""
    if not shape.min_properties:
        return 0, shape.exists > 0
    required = _required(shape)
    least = shape.min_properties if shape.min_properties > required else 0
    return least, shape.exists > 0 or least > required + 1


def _required(shape: ObjectShape) -> int:
    return sum([p.required for p in shape.properties])


def tells_names(shape: ObjectShape) -> bool:
    """Whether it can matter that a name comes twice that is not among the shape's properties.

    Readers keep the last member of a name: the others count for nothing, and earn no mark that they alone could.
    """
    return bool(shape.others) and (
        (shape.min_properties > 1 and shape.min_properties > _required(shape) + 1)
        or any(len({option.marks for option in choice}) > 1 for _, choice in shape.others)
    )


def _tallying(shape: ObjectShape, listed: int) -> Tallying:
    most = shape.max_properties
    if most is not None:
        possible = listed + sum(1 for p in shape.properties if p.choice)
        if most > MAX_COUNT or (not shape.others and most >= possible):
            most = None
    least, _ = _bounds(shape)
    if not least and most is None and not shape.exists:
        return NOTHING_TOLD
    return Tallying(least, most, least if most is None else most, (Count(1),) * shape.exists)


def settled(shape: ObjectShape) -> tuple[ObjectShape, list[Property]]:
    """The shape without classes that have no names of their own, and what has been listed in any order."""
    if not shape.others:
        return shape, []
    declared = {name for name, _, _ in shape.properties}
    _, is_exact = _bounds(shape)
    others: list[KeyClass] = []
    listed: list[Property] = []
    for key_class in shape.others:
        names = key_class.keys.texts(max(len(declared), _LISTED if is_exact else 0))
        own = None if names is None else [name for name in names if name not in declared]
        if own is None or (own and not is_exact):
            others.append(key_class)
        else:
            listed += [Property(name, key_class.choice) for name in own]
    if len(others) == len(shape.others):
        return shape, []
    properties = shape.properties
    if len(listed) > _IN_ANY_ORDER:
        properties += tuple(sorted(listed, key=_name))
        listed = []
    return shape._replace(properties=properties, others=tuple(others)), listed


def _name(declared: Property) -> str:
    return declared.name


class Members:
    """What the two orders in which members may come have in common.

    ``shape`` is the settled shape, ``listed`` what it lists in any order; ``spellings`` are those of its properties'
    names.
    """

    def __init__(self, builder: Builder, shape: ObjectShape, pointer: str, level: int) -> None:
        self.builder = builder
        self.pointer = pointer
        self.level = level
        self.inner = builder.inner(level)
        self.text = builder.text(level)
        self.shape, self.listed = settled(shape)
        self.tally = _tallying(self.shape, len(self.listed))
        spelling = self.text.spelling
        self.spellings = [spelling(name) for name, _, _ in self.shape.properties]
        #: Whether it is left to who follows a text that other names differ.
        asked = builder.layout.unique_names and bool(self.shape.others)
        self.is_distinct = (asked or tells_names(self.shape)) and self._has_names()

    def spelling(self, declared: Property) -> bytes | EdgeLists | None:
        """How a property's name is written."""
        return self.text.spelling(declared.name)

    def _has_names(self) -> bool:
        """Whether names that differ never run out, or the schema is relaxed."""
        builder, (least, is_exact) = self.builder, _bounds(self.shape)
        why = ""
        if not builder.keeps_sets(self.level):
            why = "no set of an object's names is kept here"
        elif is_exact and not self._has_several(least):
            why = "it is not seen that the members that must be there can have different names"
        if why:
            asked = builder.layout.unique_names
            remedy = "leave unique_names out." if asked else "pass lenient=True, and look for names that come twice."
            builder.relax(
                "unique_names" if asked else "names must differ where members are counted",
                self.pointer,
                why,
                f"Bound the names by an enum or by additionalProperties: false, or {remedy}",
            )
        return not why

    def _has_several(self, least: int) -> bool:
        """Whether there are so many other names, and ever more of those whose members may or may not earn a mark."""
        meter = self.builder.meter
        possible = [each for each in self.shape.others if each.choice]
        endless = [each for each in possible if each.keys.is_endless(meter)]
        finite = [each for each in possible if each not in endless]
        if self.shape.exists and any(len({option.marks for option in each.choice}) > 1 for each in finite):
            return False
        declared = [p.name for p in self.shape.properties]
        required = sum(p.required for p in self.shape.properties)

        def several(keys: StringSet) -> int:
            known = sum(name in keys for name in declared)
            return keys.several(known + least - required, meter) - known

        return bool(endless) or sum(several(each.keys) for each in finite) >= least - required

    def tell_apart(self, start: State) -> None:
        """Mark the state after the opening brace where names must differ."""
        if self.is_distinct:
            self.builder.program.distinct[start] = OPENS_OBJECT

    @property
    def mark(self) -> int:
        """The mark of a state behind a member where other names may follow."""
        return ENDS_MEMBER if self.is_distinct else 0

    @property
    def tallies(self) -> int:
        """An upper bound on the number of different tallies, but for listed names."""
        return self.tally.enough + 1 << self.shape.exists

    def list_first(self) -> None:
        """Put what is listed among the properties, where these come in any order too."""
        self.shape = self.shape._replace(properties=(*self.shape.properties, *self.listed))
        self.spellings += map(self.spelling, self.listed)
        self.listed = []

    def forbidden(self) -> Trie:
        """The trie in which no declared name may come; only needed where others may."""
        names = NONE
        if self.shape.others:
            for text in (*self.spellings, *map(self.spelling, self.listed)):
                if text is not None:
                    names = self.builder.tries.insert(names, text, FORBIDDEN)
        return names

    def with_name(self, names: Trie, text: bytes | EdgeLists | None, tails: dict[State, Refs]) -> Trie:
        """A trie in which a property may come, by the tails after its values; without any it stays as it is."""
        builder = self.builder
        if text is None or not tails:
            return names
        return builder.tries.insert(names, text, self.text.end_name(text, tails, self.inner))

    def classes(self, tails: Callable[[Choice], dict[State, Refs]]) -> Others | None:
        """The classes of other names of which a member may come."""
        possible = [(each.keys, after) for each in self.shape.others if (after := tails(each.choice))]
        others = self.text.others(possible, self.inner)
        self.check_counted(others)
        return others

    def check_counted(self, others: Others | None) -> None:
        """Raise `UnsupportedError` where the names of several classes count."""
        if others and sum(body.is_counted for body in others.bodies) > 1:
            raise UnsupportedError(
                "several kinds of property names have long bounds on their lengths",
                where=self.pointer or "#",
                remedy="Bound the length of names in one pattern at most.",
            )

    def begin_key(self, state: State, names: Trie, others: Others | None) -> None:
        """Give the state before a member its edges."""
        self.builder.program.give(state, self.text.begin_name(self.builder.keys.after_quote(names, others)))


class InOrder(Members):
    """Properties in the shape's order, then the others."""

    def __init__(self, builder: Builder, shape: ObjectShape, pointer: str, level: int) -> None:
        super().__init__(builder, shape, pointer, level)
        properties = self.shape.properties
        if not self.tally.is_single:
            builder.meter.check_states((len(properties) + 1) * self.tallies // 4, "lowering an object's bounds")
        #: The first place from which on no property is required.
        self.free = len(properties)
        while self.free and not properties[self.free - 1].required:
            self.free -= 1
        self.tails: list[dict[Tally, State]] = [{} for _ in range(len(properties) + 1)]

    def run(self, start: State) -> None:
        """Make the states of all places, the last first, and give the one after the opening brace its edges."""
        self.tell_apart(start)
        alive = self._live()
        end = self._end(alive[-1])
        self.tails[-1] = end.tails
        tries, inside = end.tries, end.inside.get(self.tally.start)
        for place in range(len(self.shape.properties) - 1, -1, -1):
            after, tries = tries, {}
            _, choice, required = self.shape.properties[place]
            for tally in alive[place]:
                # The names of the next place too, unless this one is required.
                names, others = (NONE, None) if required else after.get(tally, (NONE, None))
                names = self.with_name(names, self.spellings[place], self._tails_of(place + 1, tally, choice))
                tries[tally] = names, others
                target = self.builder.keys.after_quote(names, others)
                if place:
                    self.tails[place][tally] = self.text.tail(target, self._close(place, tally), self.level)
                else:
                    inside = self.text.key(target)
        if self.tally.start not in tries:
            raise InternalError("an object shape without members reached the lowering")
        self.text.whitespace.opening(start, inside, self._close(0, self.tally.start), self.level)

    # -- which tallies there are -----------------------------------------------------------------------------

    def _live(self) -> list[list[Tally]]:
        """By place, the tallies that members before it can come to, and from which an object can be finished."""
        last = len(self.shape.properties)
        if self._is_plain():
            return [[self.tally.start]] * (last + 1)
        following = reachable((0, self.tally.start), self._following, self._check)
        alive: list[list[Tally]] = [[] for _ in range(last + 1)]
        for place, tally in live(following, lambda here: here[0] == last and self.tally.is_enough(here[1])):
            alive[place].append(tally)
        return [sorted(tallies) for tallies in alive]

    def _is_plain(self) -> bool:
        """Whether nothing is counted, and no member can be missing that has to be there."""
        if not self.tally.is_single or self.listed:
            return False
        passed = zip(self.shape.properties, self.spellings, strict=True)
        return all(not p.required or (text is not None and p.choice) for p, text in passed)

    def _following(self, here: tuple[int, Tally]) -> Iterator[tuple[int, Tally]]:
        place, tally = here
        if place == len(self.shape.properties):
            yield from ((place, after) for after in self._after_others(tally))
            return
        p = self.shape.properties[place]
        if not p.required:
            yield place + 1, tally
        if self.spellings[place] is not None:
            yield from ((place + 1, after) for after in self._after(tally, p.choice))

    def _check(self, tallies: int) -> None:
        self.builder.meter.check_states(tallies // 4, "lowering an object's bounds")

    def _after(self, tally: Tally, choice: Choice, bit: int = 0) -> set[Tally]:
        after = (self.tally.add(tally, option.marks, bit) for option in choice)
        return {tally for tally in after if tally is not None}

    def _after_others(self, tally: Tally) -> set[Tally]:
        """The tallies after a member that is listed, or of some class."""
        after: set[Tally] = set()
        for key_class in self.shape.others:
            after |= self._after(tally, key_class.choice)
        for i, p in enumerate(self.listed):
            after |= self._after(tally, p.choice, 1 << i)
        return after

    # -- states ----------------------------------------------------------------------------------------------

    def _close(self, place: int, tally: Tally) -> int | None:
        return CLOSE_BRACE if place >= self.free and (self.tally.is_single or self.tally.is_enough(tally)) else None

    def _tails_of(self, place: int, tally: Tally, choice: Choice, bit: int = 0) -> dict[State, Refs]:
        """The values that a member may have, by the tail after it at ``place``."""
        tails = self.tails[place]
        if self.tally.is_single and not bit:
            tail = tails.get(tally)
            return {} if tail is None or not choice else {tail: references(choice)}

        def tail_after(marks: int) -> State | None:
            after = self.tally.add(tally, marks, bit)
            return None if after is None else tails.get(after)

        return grouped(choice, tail_after)

    def _end(self, alive: list[Tally]) -> MemberEnd:
        """The last place, where other names come in any number. It is the same for shapes with the same names."""
        builder, shape = self.builder, self.shape
        names = frozenset(p.name for p in shape.properties) if shape.others else None
        key = (
            names, shape.others, tuple(self.listed), self.tally.least, self.tally.most, tuple(alive), self.level,
            self.mark,
        )  # fmt: skip
        known = builder.ends.get(key)
        if known is None:
            known = builder.ends[key] = self._new_end(alive)
        return known

    def _new_end(self, alive: list[Tally]) -> MemberEnd:
        builder, place = self.builder, len(self.shape.properties)
        end = MemberEnd({}, {}, dict.fromkeys(alive))
        self.tails[place] = end.tails
        for tally in alive:
            # Keys lead to tails and tails to keys: the states come first, their edges later.
            if not self._after_others(tally).isdisjoint(alive):
                end.inside[tally] = builder.program.state("member")
            close = self._close(place, tally)
            end.tails[tally] = self.text.whitespace.tail(end.inside[tally], close, self.level, mark=self.mark)
        forbidden = self.forbidden()
        for tally, state in end.inside.items():
            others = self.classes(partial(self._tails_of, place, tally))
            names = forbidden if others else NONE
            for i, p in enumerate(self.listed):
                names = self.with_name(names, self.spelling(p), self._tails_of(place, tally, p.choice, 1 << i))
            end.tries[tally] = names, others
            if state is not None:
                self.begin_key(state, names, others)
        return end
