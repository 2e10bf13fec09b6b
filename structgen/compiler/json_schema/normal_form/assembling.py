"""Drafts to values: equal ones are merged, and numbered from the root."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
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


def assemble(drafts: Sequence[Value], alive: set[Ref], meter: Meter) -> tuple[Value, ...]:
    """The living values that the first one leads to; that comes first."""
    return _Assembly(drafts, alive, meter).run()


class _Assembly:
    def __init__(self, drafts: Sequence[Value], alive: set[Ref], meter: Meter) -> None:
        self.drafts = drafts
        self.alive = alive
        self.meter = meter
        self.same = list(range(len(drafts)))  # for each number one that stands for it
        self.values: dict[Ref, Value] = {}
        self._known: dict[Value, Ref] = {}
        self._unions: dict[frozenset[Ref], Ref] = {}

    def run(self) -> tuple[Value, ...]:
        for ref in post_order([0], self._living_children):
            self.meter.check_time(_DOING)
            self._add(ref, self._trimmed(self.drafts[ref]))
        order = [self.same[0]]
        position = {order[0]: 0}  # of the distinct values, breadth first
        for ref in order:
            for child in map(self.same.__getitem__, self.values[ref].children()):
                if position.setdefault(child, len(order)) == len(order):
                    order.append(child)

        def renumbered(choice: Choice) -> Choice:
            return tuple([Option(position[self.same[ref]], marks) for ref, marks in choice])

        return tuple(
            replace(
                value,
                arrays=tuple([array.mapped(renumbered) for array in value.arrays]),
                objects=tuple([shape.mapped(renumbered) for shape in value.objects]),
            )
            for value in self.meter.each(map(self.values.__getitem__, order), _DOING)
        )

    def _living_children(self, ref: Ref) -> Iterator[Ref]:
        return (child for child in self.drafts[ref].children() if child in self.alive)

    def _add(self, ref: Ref, value: Value) -> Ref:
        """Give a number its value, or the number of an equal one."""
        self.same[ref] = same = self._known.setdefault(value, ref)
        self.values.setdefault(same, value)
        return same

    def _trimmed(self, draft: Value) -> Value:
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
        return replace(
            draft, arrays=tuple(dict.fromkeys(arrays)), objects=tuple(dict.fromkeys(map(bounded, objects)))
        )

    def _placed(self, choice: Choice) -> Choice:
        """The choice of the living goals, by the numbers that stand for them."""
        living = (Option(self.same[ref], marks) for ref, marks in choice if ref in self.alive)
        return tuple(dict.fromkeys(living))

    def _united(self, choice: Choice) -> Choice:
        """The choice with one value for all its options of the same marks, as far as these are known by now."""
        if len(choice) < 2:
            return choice
        by_marks: dict[int, list[Ref]] = {}
        for ref, marks in choice:
            by_marks.setdefault(marks, []).append(ref)
        united: list[Option] = []
        for marks, refs in by_marks.items():
            known = [ref for ref in refs if ref in self.values]
            united += [Option(ref, marks) for ref in refs if ref not in self.values]
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
            self.same.append(len(self.same))
            self._unions[key] = self._add(len(self.same) - 1, united)
        return self._unions[key]

    def _united_sets(self, sets: list[_Set]) -> _Set | None:
        return folded(sets, lambda left, right: left.union(right, self.meter), self.meter) if sets else None
