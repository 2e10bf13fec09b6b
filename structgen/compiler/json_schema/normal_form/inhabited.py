"""Which goals have members.

That is a least fixpoint: an object that must hold another of its own kind can't be finished.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ....budget import Meter
from ..algebra.goals import Conjunction
from ..algebra.outline import TypeBounds
from ..strings.strings import StringSet
from .shapes import Count
from .shaping import ArrayDraft, GoalChoice, ObjectDraft


class Draft(NamedTuple):
    """What a goal allows, before it is known which of the goals that it leads to have members."""

    outline: TypeBounds
    arrays: list[ArrayDraft]
    objects: list[ObjectDraft]
    pointer: str

    def children(self) -> list[Conjunction]:
        """The goals that it leads to."""
        choices: list[GoalChoice] = []
        for array in self.arrays:
            choices += [*array.prefix, array.rest]
        for shape in self.objects:
            choices += [choice for _, choice, _ in shape.properties]
            choices += [choice for _, choice in shape.others]
        return list(dict.fromkeys(goal for choice in choices for goal, _ in choice))


_DOING = "looking for values without members"


def inhabited(drafts: Mapping[Conjunction, Draft], meter: Meter) -> set[Conjunction]:
    """The goals that have members."""
    alive: set[Conjunction] = set()
    waiting: dict[Conjunction, list[Conjunction]] = {}
    # Children are found after their parents, so most questions are settled in one pass from the end.
    for goal in reversed(list(drafts)):
        if _has_members(drafts[goal], alive, meter):
            alive.add(goal)
        else:
            for child in drafts[goal].children():
                if child not in alive:
                    waiting.setdefault(child, []).append(goal)
    changed = [goal for goal in waiting if goal in alive]
    while changed:
        meter.check_time(_DOING)
        for parent in waiting.pop(changed.pop(), ()):
            if parent not in alive and _has_members(drafts[parent], alive, meter):
                alive.add(parent)
                changed.append(parent)
    return alive


def _has_members(draft: Draft, alive: set[Conjunction], meter: Meter) -> bool:
    outline = draft.outline
    if outline.null or outline.booleans or not outline.numbers.is_empty() or not outline.strings.is_empty():
        return True
    return any(array_has_members(array, alive, meter) for array in draft.arrays) or any(
        object_has_members(shape, alive, meter) for shape in draft.objects
    )


def _living(choice: GoalChoice, alive: set[Conjunction]) -> GoalChoice:
    return tuple(option for option in choice if option[0] in alive)


# Objects


def object_has_members(draft: ObjectDraft, alive: set[Conjunction], meter: Meter) -> bool:
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
    return not draft.exists or _marks_fit(draft, alive, required, meter)


def _room(draft: ObjectDraft, alive: set[Conjunction]) -> int:
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


def _marks_fit(draft: ObjectDraft, alive: set[Conjunction], required: int, meter: Meter) -> bool:
    """Whether all marks can be earned within the upper bound: the least number of optional members that does it."""
    full = (1 << draft.exists) - 1
    cost = {0: 0}  # marks earned -> optional members spent
    for _, choice, must in draft.properties:
        earned = {marks for _, marks in _living(choice, alive)}
        if not earned:
            continue
        cost = _spent(cost, earned, 0 if must else 1, meter, optional=not must)
    names = {name for name, _, _ in draft.properties}
    for keys, choice in draft.others:
        earned = {marks for _, marks in _living(choice, alive)}
        for _ in range(_capacity(keys, names, draft.exists) if earned else 0):
            cost = _spent(cost, earned, 1, meter, optional=True)
    return full in cost and (draft.high is None or required + cost[full] <= draft.high)


def _spent(
    cost: dict[int, int], earned: set[int], price: int, meter: Meter, *, optional: bool
) -> dict[int, int]:
    """The costs after one more member that earns one of the sets of marks."""
    after = dict(cost) if optional else {}
    for marks, paid in meter.each(cost.items(), _DOING):
        for more in earned:
            total = paid + price
            if total < after.get(marks | more, total + 1):
                after[marks | more] = total
    return after


# Arrays


def array_has_members(draft: ArrayDraft, alive: set[Conjunction], meter: Meter) -> bool:
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
    return not draft.counts or _counts_fit(prefix, rest, draft, most, meter)


def _counts_fit(
    prefix: list[GoalChoice], rest: GoalChoice, draft: ArrayDraft, most: int | None, meter: Meter
) -> bool:
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
        meter.check_states(len(reached), _DOING)
        reached = {_counted(counts, marks, caps) for counts in meter.each(reached, _DOING) for marks in earned}
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
