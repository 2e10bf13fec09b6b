"""Drafts to values: what has no members is removed, what is equal is merged.

Whether a goal has members is a least fixpoint: an object that must hold another of its own kind can't be finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from ...budget import Meter
from .goals import Goal
from .outline import Outline
from .shapes import ArrayShape, Count, KeyClass, ObjectShape, Option, Property, Ref, Value
from .shaping import ArrayDraft, GoalChoice, ObjectDraft
from .strings import StringSet

#: A trimmed choice: numbers of goals with their marks.
Choice: TypeAlias = tuple[tuple[int, int], ...]


class Draft(NamedTuple):
    """What a goal allows, before it is known which of the goals that it leads to have members."""

    outline: Outline
    arrays: list[ArrayDraft]
    objects: list[ObjectDraft]
    pointer: str

    def children(self) -> list[Goal]:
        """The goals that it leads to."""
        choices: list[GoalChoice] = []
        for array in self.arrays:
            choices += [*array.prefix, array.rest]
        for shape in self.objects:
            choices += [choice for _, choice, _ in shape.properties]
            choices += [choice for _, choice in shape.others]
        return list(dict.fromkeys(goal for choice in choices for goal, _ in choice))


def inhabited(drafts: Mapping[Goal, Draft], meter: Meter) -> set[Goal]:
    """The goals that have members."""
    alive: set[Goal] = set()
    waiting: dict[Goal, list[Goal]] = {}
    # Children are found after their parents, so most questions are settled in one pass from the end.
    for goal in reversed(list(drafts)):
        if _has_members(drafts[goal], alive):
            alive.add(goal)
        else:
            for child in drafts[goal].children():
                if child not in alive:
                    waiting.setdefault(child, []).append(goal)
    changed = [goal for goal in waiting if goal in alive]
    while changed:
        meter.check_time("looking for values without members")
        for parent in waiting.pop(changed.pop(), ()):
            if parent not in alive and _has_members(drafts[parent], alive):
                alive.add(parent)
                changed.append(parent)
    return alive


def _has_members(draft: Draft, alive: set[Goal]) -> bool:
    outline = draft.outline
    if outline.null or outline.booleans or not outline.numbers.is_empty() or not outline.strings.is_empty():
        return True
    return any(array_has_members(array, alive) for array in draft.arrays) or any(
        object_has_members(shape, alive) for shape in draft.objects
    )


def _living(choice: GoalChoice, alive: set[Goal]) -> GoalChoice:
    return tuple(option for option in choice if option[0] in alive)


# Objects


def object_has_members(draft: ObjectDraft, alive: set[Goal]) -> bool:
    """Whether some object has this shape."""
    required = optional = 0
    for _, choice, must in draft.properties:
        living = any(goal in alive for goal, _ in choice)
        if must and not living:
            return False
        required += must
        optional += living and not must
    if draft.high is not None and draft.high < max(required, draft.low):
        return False
    if draft.low > required + optional and draft.low > required + optional + _room(draft, alive):
        return False
    return not draft.exists or _marks_fit(draft, alive, required)


def _room(draft: ObjectDraft, alive: set[Goal]) -> int:
    """How many members with undeclared names there can be, at least up to the draft's lower bound."""
    names = {name for name, _, _ in draft.properties}
    room = 0
    for keys, choice in draft.others:
        if _living(choice, alive):
            room += _capacity(keys, names, draft.low)
    return room


def _capacity(keys: StringSet, names: set[str], enough: int) -> int:
    """How many names the set has beside those declared; ``enough`` if it has as many."""
    if keys is StringSet.ANY:
        return enough
    texts = keys.texts(min(enough + len(names), _MOST_LISTED))
    return enough if texts is None else min(enough, sum(text not in names for text in texts))


_MOST_LISTED = 10_000


def _marks_fit(draft: ObjectDraft, alive: set[Goal], required: int) -> bool:
    """Whether all marks can be earned within the upper bound: the least number of optional members that does it."""
    full = (1 << draft.exists) - 1
    cost = {0: 0}  # marks earned -> optional members spent
    for _, choice, must in draft.properties:
        earned = {marks for _, marks in _living(choice, alive)}
        if not earned:
            continue
        cost = _spent(cost, earned, 0 if must else 1, optional=not must)
    names = {name for name, _, _ in draft.properties}
    for keys, choice in draft.others:
        earned = {marks for _, marks in _living(choice, alive)}
        for _ in range(_capacity(keys, names, draft.exists) if earned else 0):
            cost = _spent(cost, earned, 1, optional=True)
    return full in cost and (draft.high is None or required + cost[full] <= draft.high)


def _spent(cost: dict[int, int], earned: set[int], price: int, *, optional: bool) -> dict[int, int]:
    """The costs after one more member that earns one of the sets of marks."""
    after = dict(cost) if optional else {}
    for marks, paid in cost.items():
        for more in earned:
            total = paid + price
            if total < after.get(marks | more, total + 1):
                after[marks | more] = total
    return after


def trimmed_object(draft: ObjectDraft, place: Callable[[GoalChoice], Choice]) -> ObjectDraft:
    """The draft with choices of numbers, and bounds that say no more than they have to. It must have members."""
    properties = [(name, place(choice), must) for name, choice, must in draft.properties]
    others = [(keys, choice) for keys, goals in draft.others if (choice := place(goals))]
    required = sum(must for _, _, must in properties)
    possible = sum(bool(choice) for _, choice, _ in properties)
    low, high = draft.low, draft.high
    if high == required:  # no room for anything that may be left out
        properties = [entry for entry in properties if entry[2]]
        others, possible = [], required
    if not others:
        properties = [entry for entry in properties if entry[1]]
        if high is not None and high >= possible:
            high = None
        if low >= possible:
            properties = [(name, choice, True) for name, choice, _ in properties]
            required = possible
    else:
        open_names = [keys for keys, _ in others]
        properties = [e for e in properties if e[1] or any(e[0] in keys for keys in open_names)]
    return ObjectDraft(tuple(properties), tuple(others), low if low > required else 0, high, draft.exists)  # type: ignore[arg-type]


# Arrays


def array_has_members(draft: ArrayDraft, alive: set[Goal]) -> bool:
    """Whether some array has this shape; uniqueness left aside."""
    prefix = []
    for choice in draft.prefix:
        living = _living(choice, alive)
        if not living:
            break
        prefix.append(living)
    rest = _living(draft.rest, alive) if len(prefix) == len(draft.prefix) else ()
    most = None if rest else len(prefix)
    if draft.high is not None:
        most = draft.high if most is None else min(most, draft.high)
    if most is not None and draft.low > most:
        return False
    return not draft.counts or _counts_fit(prefix, rest, draft, most)


def _counts_fit(prefix: list[GoalChoice], rest: GoalChoice, draft: ArrayDraft, most: int | None) -> bool:
    """Whether some length lets every count come out right.

    A breadth-first search over the counts, each of which stops where more of it makes no difference.
    """
    caps = [count.min if count.max is None else count.max + 1 for count in draft.counts]
    if max((*caps, draft.low)) > _LONGEST_COUNT:
        return True
    reached = {(0,) * len(caps)}
    length = 0
    # Beyond the prefix, the lower bound and the sum of all caps, nothing new can happen.
    horizon = max(len(prefix), draft.low) + sum(caps) + 1
    while reached:
        if length >= draft.low and any(_in_bounds(counts, draft.counts) for counts in reached):
            return True
        if length == horizon or (most is not None and length >= most):
            return False
        earned = {marks for _, marks in (prefix[length] if length < len(prefix) else rest)}
        reached = {_counted(counts, marks, caps) for counts in reached for marks in earned}
        length += 1
    return False


_LONGEST_COUNT = 1_000


def _in_bounds(counts: tuple[int, ...], bounds: tuple[Count, ...]) -> bool:
    return all(
        bound.min <= count and (bound.max is None or count <= bound.max)
        for count, bound in zip(counts, bounds, strict=True)
    )


def _counted(counts: tuple[int, ...], marks: int, caps: list[int]) -> tuple[int, ...]:
    return tuple(min(count + (marks >> k & 1), caps[k]) for k, count in enumerate(counts))


def trimmed_array(draft: ArrayDraft, place: Callable[[GoalChoice], Choice]) -> ArrayDraft:
    """The draft with choices of numbers, cut where no further item can stand. It must have members."""
    prefix: list[Choice] = []
    rest: Choice = ()
    for goals in draft.prefix:
        choice = place(goals)
        if not choice:
            break
        prefix.append(choice)
    else:
        rest = place(draft.rest)
    high = draft.high
    if not rest:
        high = len(prefix) if high is None else min(high, len(prefix))
    elif high is not None and high <= len(prefix):
        rest = ()
    if high is not None:
        del prefix[high:]
    while prefix and rest and prefix[-1] == rest:
        prefix.pop()
    return draft._replace(prefix=tuple(prefix), rest=rest, high=high)  # type: ignore[arg-type]


# Values


class _Trimmed(NamedTuple):
    """A goal's value, its choices of numbers; equal ones are one value."""

    null: bool
    booleans: frozenset[bool]
    numbers: object
    strings: object
    arrays: tuple[ArrayDraft, ...]
    objects: tuple[ObjectDraft, ...]


def assemble(
    drafts: Mapping[Goal, Draft], root: Goal, alive: set[Goal], meter: Meter
) -> tuple[tuple[Value, ...], Ref]:
    """The values of all living goals that the root leads to."""
    numbers = {goal: k for k, goal in enumerate(drafts)}
    goals = list(drafts)
    same = list(range(len(goals)))  # a number that stands for the value
    known: dict[_Trimmed, int] = {}
    trimmed: dict[int, _Trimmed] = {}

    def place(choice: GoalChoice) -> Choice:
        return tuple(dict.fromkeys((same[numbers[goal]], marks) for goal, marks in choice if goal in alive))

    for k in _children_first(drafts, numbers, root, alive):
        meter.check_time("merging equal values")
        draft = drafts[goals[k]]
        value = _Trimmed(
            draft.outline.null,
            draft.outline.booleans,
            None if draft.outline.numbers.is_empty() else draft.outline.numbers,
            None if draft.outline.strings.is_empty() else draft.outline.strings,
            tuple(dict.fromkeys(trimmed_array(a, place) for a in draft.arrays if array_has_members(a, alive))),
            tuple(dict.fromkeys(trimmed_object(o, place) for o in draft.objects if object_has_members(o, alive))),
        )
        same[k] = known.setdefault(value, k)
        trimmed.setdefault(same[k], value)
    order = _reachable(trimmed, same, same[numbers[root]])
    new = {old: position for position, old in enumerate(order)}
    refs = [new.get(s, -1) for s in same]
    return tuple(_value(trimmed[k], drafts[goals[k]].pointer, refs) for k in order), 0


def _children_first(
    drafts: Mapping[Goal, Draft], numbers: Mapping[Goal, int], root: Goal, alive: set[Goal]
) -> list[int]:
    """The living goals that the root leads to, children before their parents as far as cycles allow."""
    order: list[int] = []
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
            order.append(numbers[goal])
    return order


def _choices(value: _Trimmed) -> list[Choice]:
    choices: list[Choice] = []
    for array in value.arrays:
        choices += [*array.prefix, array.rest]  # type: ignore[list-item]
    for shape in value.objects:
        choices += [choice for _, choice, _ in shape.properties]  # type: ignore[misc]
        choices += [choice for _, choice in shape.others]  # type: ignore[misc]
    return choices


def _reachable(trimmed: Mapping[int, _Trimmed], same: list[int], root: int) -> list[int]:
    """The distinct values, breadth first from the root."""
    order = [root]
    seen = {root}
    for k in order:
        for choice in _choices(trimmed[k]):
            for child, _ in choice:
                target = same[child]
                if target not in seen:
                    seen.add(target)
                    order.append(target)
    return order


def _value(value: _Trimmed, pointer: str, refs: list[Ref]) -> Value:
    def options(choice: object) -> tuple[Option, ...]:
        return tuple(Option(refs[k], marks) for k, marks in choice)  # type: ignore[attr-defined]

    arrays = tuple(
        ArrayShape(tuple(map(options, a.prefix)), options(a.rest), a.low, a.high, a.counts, a.unique)
        for a in value.arrays
    )
    objects = tuple(
        ObjectShape(
            tuple(Property(name, options(choice), must) for name, choice, must in o.properties),
            tuple(KeyClass(keys, options(choice)) for keys, choice in o.others),
            o.low,
            o.high,
            o.exists,
        )
        for o in value.objects
    )
    return Value(value.null, value.booleans, value.numbers, value.strings, arrays, objects, pointer)  # type: ignore[arg-type]
