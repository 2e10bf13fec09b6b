"""Drafts to values: equal ones are merged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ....budget import Meter
from ..algebra.type_bounds import folded
from ..numbers.numbers import NumberSet
from ..read.blame import placed
from ..strings.strings import StringSet
from .merging import merged
from .shapes import Choice, Option, Ref, Value
from .trimming import bounded, trimmed_array, without_idle_marks

_Set = TypeVar("_Set", NumberSet, StringSet)

_DOING = "merging equal values"


def assemble(drafts: Sequence[Value], living: dict[Ref, Value], meter: Meter) -> tuple[tuple[Value, ...], Ref]:
    """The values of the drafts, by number, and the root's: that of the last that is ``living`` (see there)."""
    return _Assembly(drafts, living, meter).run()


class _Assembly:
    """Drafts become values in their places; where nothing leads to, there is none."""

    def __init__(self, drafts: Sequence[Value], living: dict[Ref, Value], meter: Meter) -> None:
        self.values = [Value()] * len(drafts)
        self.living = living
        self.meter = meter
        self.same = list(range(len(drafts)))  # for each number one that stands for it
        self._numbered: set[Ref] = set()
        self._changed = set(self.same) - living.keys()  # and those that others stand for
        self._known: dict[Hashable, Ref] = {}
        self._unions: dict[frozenset[Ref], Ref] = {}

    def run(self) -> tuple[tuple[Value, ...], Ref]:
        ref, draft = root, _ = next(reversed(self.living.items()))
        with placed(lambda: draft.pointer):
            for ref, draft in self.meter.each(self.living.items(), _DOING, every=16):
                self._add(ref, self._trimmed(draft))
        if self._changed:
            self.values = [self._mapped(value, self._renumbered) for value in self.meter.each(self.values, _DOING)]
        return tuple(self.values), self.same[root]

    def _add(self, ref: Ref, value: Value) -> Ref:
        """Give a number its value, or the number of an equal one, wherever that was written."""
        self.values[ref] = value
        self.same[ref] = same = self._known.setdefault(value[:-1], ref)
        if same != ref:
            self._changed.add(ref)
        self._numbered.add(ref)
        return same

    def _trimmed(self, draft: Value) -> Value:
        if not draft.arrays and not draft.objects:
            return draft
        draft = self._mapped(draft, self._placed)
        arrays = [trimmed_array(array) for array in draft.arrays]
        objects = [without_idle_marks(shape) for shape in draft.objects]
        if len(arrays) > 1:
            arrays = [*dict.fromkeys([array.mapped(self._united) for array in merged(arrays)])]
        if len(objects) > 1:
            objects = [shape.mapped(self._united) for shape in merged(objects)]
        bound = [bounded(shape) for shape in objects]
        united = tuple(arrays), tuple(bound if len(bound) < 2 else dict.fromkeys(bound))
        return Value(draft.null, draft.booleans, draft.numbers, draft.strings, *united, draft.pointer)

    def _mapped(self, value: Value, change: Callable[[Choice], Choice]) -> Value:
        changed = self._changed
        return value.mapped(change) if changed and not changed.isdisjoint(value.children()) else value

    def _placed(self, choice: Choice) -> Choice:
        """The choice of the living drafts, by the numbers that stand for them."""
        return tuple(dict.fromkeys([Option(self.same[ref], marks) for ref, marks in choice if ref in self.living]))

    def _renumbered(self, choice: Choice) -> Choice:
        return tuple([Option(self.same[ref], marks) for ref, marks in choice])

    def _united(self, choice: Choice) -> Choice:
        """The choice with one value for all its options of the same marks, as far as these are known by now."""
        if len(choice) < 2:
            return choice
        by_marks: dict[int, list[Ref]] = {}
        for ref, marks in choice:
            by_marks.setdefault(marks, []).append(ref)
        united: list[Option] = []
        for marks, refs in by_marks.items():
            known = [ref for ref in refs if ref in self._numbered]
            united += [Option(ref, marks) for ref in refs if ref not in self._numbered]
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
            self.values.append(united)
            self._unions[key] = self._add(len(self.same) - 1, united)
        return self._unions[key]

    def _united_sets(self, sets: list[_Set]) -> _Set | None:
        return folded(sets, lambda left, right: left.union(right, self.meter), self.meter) if sets else None
