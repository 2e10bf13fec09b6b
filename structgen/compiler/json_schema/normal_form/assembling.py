"""Drafts to values: equal ones are merged, and numbered from the root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....budget import Meter
from ..algebra.goals import Conjunction
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet
from .inhabited import Draft, array_has_members, object_has_members
from .merging import merged_arrays, merged_objects
from .shapes import ArrayShape, KeyClass, ObjectShape, Option, Property, Value
from .shaping import GoalChoice
from .trimming import Choice, TrimmedArray, TrimmedObject, bounded_object, placed_object, trimmed_array


class _Trimmed(NamedTuple):
    """A `Value` of numbered values."""

    null: bool
    booleans: frozenset[bool]
    numbers: NumberSet | None
    strings: StringSet | None
    arrays: tuple[TrimmedArray, ...]
    objects: tuple[TrimmedObject, ...]

    def choices(self) -> list[Choice]:
        """All that may stand in its arrays and objects."""
        found: list[Choice] = []
        for array in self.arrays:
            found += [*array.prefix, array.rest]
        for shape in self.objects:
            found += [member.choice for member in shape.members]
            found += [choice for _, choice in shape.others]
        return found


_DOING = "merging equal values"


def assemble(
    drafts: Mapping[Conjunction, Draft], root: Conjunction, alive: set[Conjunction], meter: Meter
) -> tuple[Value, ...]:
    """The values of all living goals that the root leads to; the root's comes first."""
    return _Assembly(drafts, alive, meter).run(root)


class _Assembly:
    def __init__(self, drafts: Mapping[Conjunction, Draft], alive: set[Conjunction], meter: Meter) -> None:
        self.drafts = drafts
        self.alive = alive
        self.meter = meter
        self.numbers = {goal: k for k, goal in enumerate(drafts)}
        self.pointers = [draft.pointer for draft in drafts.values()]
        self.same = list(range(len(drafts)))  # for each number one that stands for it
        self.trimmed: dict[int, _Trimmed] = {}
        self._known: dict[_Trimmed, int] = {}
        self._unions: dict[frozenset[int], int] = {}

    def run(self, root: Conjunction) -> tuple[Value, ...]:
        for goal in _children_first(self.drafts, root, self.alive):
            self.meter.check_time(_DOING)
            self._settle(self.numbers[goal], self._trim(self.drafts[goal]))
        order = self._reachable(self.same[self.numbers[root]])
        new = {old: position for position, old in enumerate(order)}
        refs = [new.get(same, -1) for same in self.same]
        return tuple(_value(self.trimmed[k], self.pointers[k], refs) for k in self.meter.each(order, _DOING))

    def _settle(self, number: int, value: _Trimmed) -> int:
        """Give a number its value, or the number of an equal one."""
        self.same[number] = same = self._known.setdefault(value, number)
        self.trimmed.setdefault(same, value)
        return same

    def _trim(self, draft: Draft) -> _Trimmed:
        outline, alive, each = draft.outline, self.alive, self.meter.each
        arrays = [
            trimmed_array(array, self._place)
            for array in each(draft.arrays, _DOING)
            if array_has_members(array, alive, self.meter)
        ]
        objects = [
            placed_object(shape, self._place)
            for shape in each(draft.objects, _DOING)
            if object_has_members(shape, alive, self.meter)
        ]
        if len(arrays) > 1:
            arrays = [
                array._replace(prefix=tuple(map(self._united, array.prefix))) for array in merged_arrays(arrays)
            ]
        if len(objects) > 1:
            objects = [
                shape._replace(members=tuple(m._replace(choice=self._united(m.choice)) for m in shape.members))
                for shape in merged_objects(objects)
            ]
        return _Trimmed(
            outline.null,
            outline.booleans,
            None if outline.numbers.is_empty() else outline.numbers,
            None if outline.strings.is_empty() else outline.strings,
            tuple(dict.fromkeys(arrays)),
            tuple(dict.fromkeys(map(bounded_object, objects))),
        )

    def _place(self, choice: GoalChoice) -> Choice:
        living = ((self.same[self.numbers[goal]], marks) for goal, marks in choice if goal in self.alive)
        return tuple(dict.fromkeys(living))

    def _united(self, choice: Choice) -> Choice:
        """The choice with one value for all its options of the same marks, as far as these are known by now."""
        if len(choice) < 2:
            return choice
        by_marks: dict[int, list[int]] = {}
        for number, marks in choice:
            by_marks.setdefault(marks, []).append(number)
        united: list[tuple[int, int]] = []
        for marks, numbers in by_marks.items():
            known = [number for number in numbers if number in self.trimmed]
            united += [(number, marks) for number in numbers if number not in self.trimmed]
            if known:
                united.append((self._union(known), marks))
        return tuple(united)

    def _union(self, numbers: list[int]) -> int:
        key = frozenset(numbers)
        if len(key) == 1:
            return numbers[0]
        if key not in self._unions:
            values = [self.trimmed[number] for number in dict.fromkeys(numbers)]
            self.same.append(len(self.same))
            self.pointers.append(self.pointers[numbers[0]])
            self._unions[key] = self._settle(len(self.same) - 1, self._united_value(values))
        return self._unions[key]

    def _united_value(self, values: list[_Trimmed]) -> _Trimmed:
        return _Trimmed(
            any(value.null for value in values),
            frozenset().union(*(value.booleans for value in values)),
            _balanced([value.numbers for value in values if value.numbers is not None], self.meter),
            _balanced([value.strings for value in values if value.strings is not None], self.meter),
            tuple(merged_arrays(array for value in values for array in value.arrays)),
            tuple(merged_objects(shape for value in values for shape in value.objects)),
        )

    def _reachable(self, root: int) -> list[int]:
        """The distinct values, breadth first from the root."""
        order = [root]
        seen = {root}
        for number in order:
            for choice in self.trimmed[number].choices():
                for child, _ in choice:
                    target = self.same[child]
                    if target not in seen:
                        seen.add(target)
                        order.append(target)
        return order


def _balanced(sets: list[Any], meter: Meter) -> Any:
    """The union of sets of one kind, two and two, so that big ones are not copied often; None for no sets."""
    while len(sets) > 1:
        sets = [sets[k].union(sets[k + 1], meter) if k + 1 < len(sets) else sets[k] for k in range(0, len(sets), 2)]
    return sets[0] if sets else None


def _children_first(
    drafts: Mapping[Conjunction, Draft], root: Conjunction, alive: set[Conjunction]
) -> list[Conjunction]:
    """The living goals that the root leads to, children before their parents as far as cycles allow."""
    order: list[Conjunction] = []
    seen = {root}
    stack = [(root, iter(drafts[root].children()))]
    while stack:
        goal, children = stack[-1]
        for child in children:
            if child in alive and child not in seen:
                seen.add(child)
                stack.append((child, iter(drafts[child].children())))
                break
        else:
            stack.pop()
            order.append(goal)
    return order


def _value(value: _Trimmed, pointer: str, refs: list[int]) -> Value:
    def options(choice: Choice) -> tuple[Option, ...]:
        return tuple([Option(refs[number], marks) for number, marks in choice])

    arrays = tuple(
        ArrayShape(tuple(map(options, array.prefix)), options(array.rest), *array[2:]) for array in value.arrays
    )
    objects = tuple(
        ObjectShape(
            tuple([Property(name, options(choice), must) for name, choice, must in shape.members]),
            tuple([KeyClass(keys, options(choice)) for keys, choice in shape.others]),
            *shape[2:],
        )
        for shape in value.objects
    )
    return Value(value.null, value.booleans, value.numbers, value.strings, arrays, objects, pointer)
