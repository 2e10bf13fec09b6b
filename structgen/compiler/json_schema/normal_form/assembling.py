"""Drafts to values: equal ones are merged."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from ....budget import Meter
from ....system.depth_first import post_order
from ..algebra.type_bounds import folded
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet
from .inhabited import array_has_members, object_has_members
from .merging import merged
from .shapes import Choice, Option, Ref, Value
from .trimming import bounded, trimmed_array, without_idle_marks

_Set = TypeVar("_Set", NumberSet, StringSet)

_DOING = "merging equal values"


def assemble(drafts: Sequence[Value], alive: set[Ref], meter: Meter) -> tuple[tuple[Value, ...], Ref]:
    """The living values that the first one leads to, and the number of its own."""
    return _Assembly(drafts, alive, meter).run()


class _Assembly:
    """Values by number, each after those that it leads to; what leads back to a draft on the way to it has ``~draft``
    until the end."""

    def __init__(self, drafts: Sequence[Value], alive: set[Ref], meter: Meter) -> None:
        self.drafts = drafts
        self.alive = alive
        self.meter = meter
        self.values: list[Value] = []
        self.numbers: dict[Ref, Ref] = {}  # of drafts
        self._is_cyclic = False
        self._known: dict[Hashable, Ref] = {}
        self._unions: dict[frozenset[Ref], Ref] = {}

    def run(self) -> tuple[tuple[Value, ...], Ref]:
        for ref in post_order([0], self._living_children):
            self.meter.check_time(_DOING)
            self.numbers[ref] = self._number(self._trimmed(self.drafts[ref]))
        if self._is_cyclic:
            self.values = [value.mapped(self._closed) for value in self.meter.each(self.values, _DOING)]
        return tuple(self.values), self.numbers[0]

    def _living_children(self, ref: Ref) -> Iterator[Ref]:
        return filter(self.alive.__contains__, self.drafts[ref].children())

    def _number(self, value: Value) -> Ref:
        """The number of a value, which equal ones share wherever they were written."""
        number = self._known.setdefault(value[:-1], len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def _trimmed(self, draft: Value) -> Value:
        if not draft.arrays and not draft.objects:
            return draft
        alive, meter = self.alive, self.meter
        arrays = [
            trimmed_array(array.mapped(self._placed))
            for array in meter.each(draft.arrays, _DOING)
            if array_has_members(array, alive, meter)
        ]
        objects = [
            without_idle_marks(shape.mapped(self._placed))
            for shape in meter.each(draft.objects, _DOING)
            if object_has_members(shape, alive, meter)
        ]
        if len(arrays) > 1:
            arrays = [array.mapped(self._united) for array in merged(arrays)]
        if len(objects) > 1:
            objects = [shape.mapped(self._united) for shape in merged(objects)]
        united = tuple(dict.fromkeys(arrays)), tuple(dict.fromkeys(map(bounded, objects)))
        return Value(draft.null, draft.booleans, draft.numbers, draft.strings, *united, draft.pointer)

    def _placed(self, choice: Choice) -> Choice:
        """The choice of the living drafts, by the numbers of their values."""
        numbers, alive = self.numbers, self.alive
        living = [Option(numbers.get(ref, ~ref), marks) for ref, marks in choice if ref in alive]
        if not all([ref >= 0 for ref, _ in living]):
            self._is_cyclic = True
        return tuple(living) if len(living) < 2 else tuple(dict.fromkeys(living))

    def _closed(self, choice: Choice) -> Choice:
        return tuple([Option(ref if ref >= 0 else self.numbers[~ref], marks) for ref, marks in choice])

    def _united(self, choice: Choice) -> Choice:
        """The choice with one value for all its options of the same marks, as far as these are known by now."""
        if len(choice) < 2:
            return choice
        by_marks: dict[int, list[Ref]] = {}
        for ref, marks in choice:
            by_marks.setdefault(marks, []).append(ref)
        united: list[Option] = []
        for marks, refs in by_marks.items():
            known = [ref for ref in refs if ref >= 0]
            united += [Option(ref, marks) for ref in refs if ref < 0]
            if known:
                united.append(Option(self._union(known), marks))
        return tuple(united)

    def _union(self, refs: list[Ref]) -> Ref:
        key = frozenset(refs)
        if len(key) == 1:
            return refs[0]
        if key not in self._unions:
            values = [self.values[ref] for ref in dict.fromkeys(refs)]
            united = Value(
                any(value.null for value in values),
                frozenset().union(*(value.booleans for value in values)),
                self._united_sets([value.numbers for value in values if value.numbers is not None]),
                self._united_sets([value.strings for value in values if value.strings is not None]),
                tuple(merged(array for value in values for array in value.arrays)),
                tuple(merged(shape for value in values for shape in value.objects)),
                values[0].pointer,
            )
            self._unions[key] = self._number(united)
        return self._unions[key]

    def _united_sets(self, sets: list[_Set]) -> _Set | None:
        return folded(sets, lambda left, right: left.union(right, self.meter), self.meter) if sets else None
