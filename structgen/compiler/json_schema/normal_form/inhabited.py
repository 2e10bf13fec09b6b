"""Which goals have members.

That is a least fixpoint: an object that must hold another of its own kind can't be finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from ....budget import Meter
from ....system.depth_first import post_order
from ..read.blame import placed
from ..strings.strings import StringSet
from .shapes import ArrayShape, Choice, Count, ObjectShape, Ref, Value

_DOING = "looking for values without members"

_MOST_LISTED = 10_000
_LONGEST_COUNT = 1_000


def inhabited(drafts: Sequence[Value], meter: Meter, sure: Iterable[Ref] = ()) -> set[Ref]:
    """The drafts that have members, as those that are ``sure`` have."""
    alive = set(sure)
    waiting: dict[Ref, list[Ref]] = {}
    ref = 0
    with placed(lambda: drafts[ref].pointer):
        for ref in reversed(range(len(drafts))):  # most lead to those behind them
            if ref in alive or _has_members(drafts[ref], alive, meter):
                alive.add(ref)
            else:
                for child in set(drafts[ref].children()) - alive:
                    waiting.setdefault(child, []).append(ref)
        changed = [each for each in waiting if each in alive]
        while changed:
            meter.check_time(_DOING)
            for ref in waiting.pop(changed.pop(), ()):
                if ref not in alive and _has_members(drafts[ref], alive, meter):
                    alive.add(ref)
                    changed.append(ref)
    return alive


def _has_members(draft: Value, alive: set[Ref], meter: Meter) -> bool:
    if draft.null or draft.booleans or draft.numbers is not None or draft.strings is not None:
        return True
    return any(array_has_members(array, alive, meter) for array in draft.arrays) or any(
        object_has_members(shape, alive, meter) for shape in draft.objects
    )


def living(root: Ref, drafts: Sequence[Value], alive: set[Ref], meter: Meter) -> dict[Ref, Value]:
    """What has members of all that the root leads to, children first, with those alternatives that have."""
    found: dict[Ref, Value] = {}
    draft = drafts[root]
    with placed(lambda: draft.pointer):
        for ref in post_order([root], lambda ref: [child for child in drafts[ref].children() if child in alive]):
            draft = found[ref] = drafts[ref]
            if draft.arrays or draft.objects:
                arrays = tuple([each for each in draft.arrays if array_has_members(each, alive, meter)])
                objects = tuple([each for each in draft.objects if object_has_members(each, alive, meter)])
                if len(arrays) < len(draft.arrays) or len(objects) < len(draft.objects):
                    found[ref] = draft._replace(arrays=arrays, objects=objects)
    return found


def lives(choice: Choice, alive: Set[Ref]) -> bool:
    """Whether some option of a choice has values."""
    return not alive.isdisjoint([ref for ref, _ in choice])


def _earned(choice: Choice, alive: set[Ref]) -> set[int]:
    """The sets of marks that living options earn."""
    return {marks for ref, marks in choice if ref in alive}


# Objects


def object_has_members(shape: ObjectShape, alive: set[Ref], meter: Meter) -> bool:
    """Whether some object has this shape."""
    needed = [choice for _, choice, must in shape.properties if must]
    for choice in needed:
        if not lives(choice, alive):
            return False
    required = len(needed)
    low, high = shape.min_properties, shape.max_properties
    if high is not None and high < max(required, low):
        return False
    if low > required:
        possible = sum([lives(choice, alive) for _, choice, _ in shape.properties])
        if low > possible and low > possible + sum(
            _capacity(keys, shape, low) for keys, choice in shape.others if lives(choice, alive)
        ):
            return False
    return not shape.exists or _marks_fit(shape, alive, required, meter)


def _capacity(keys: StringSet, shape: ObjectShape, enough: int) -> int:
    """How many names a class has beside those declared; ``enough`` if it has as many."""
    if keys is StringSet.ANY:
        return enough
    names = {name for name, _, _ in shape.properties}
    texts = keys.texts(min(enough + len(names), _MOST_LISTED))
    return enough if texts is None else min(enough, sum(text not in names for text in texts))


def _marks_fit(shape: ObjectShape, alive: set[Ref], required: int, meter: Meter) -> bool:
    """Whether all marks can be earned within the upper bound: the least number of optional members that does it."""
    cost = {0: 0}  # marks earned -> optional members spent
    for _, choice, must in shape.properties:
        if earned := _earned(choice, alive):
            cost = _spent({} if must else cost, cost, earned, 0 if must else 1, meter)
    for keys, choice in shape.others:
        earned = _earned(choice, alive)
        for _ in range(_capacity(keys, shape, shape.exists) if earned else 0):
            cost = _spent(cost, cost, earned, 1, meter)
    full, most = (1 << shape.exists) - 1, shape.max_properties
    return full in cost and (most is None or required + cost[full] <= most)


def _spent(without: dict[int, int], cost: dict[int, int], earned: set[int], price: int, meter: Meter) -> dict[int, int]:
    """The costs after one more member that earns one of the sets of marks, or that is left out."""
    after = dict(without)
    for marks, paid in meter.each(cost.items(), _DOING):
        for more in earned:
            total = paid + price
            if total < after.get(marks | more, total + 1):
                after[marks | more] = total
    return after


# Arrays


def array_has_members(shape: ArrayShape, alive: set[Ref], meter: Meter) -> bool:
    """Whether some array has this shape; uniqueness left aside."""
    if not shape.min_items and not shape.contains:
        return True
    beyond = len(shape.prefix)
    known = next((k for k, choice in enumerate(shape.prefix) if not lives(choice, alive)), beyond)
    goes_on = known == beyond and lives(shape.rest, alive)
    most = shape.max_items
    if not goes_on:
        most = known if most is None else min(most, known)
    if most is not None and shape.min_items > most:
        return False
    return not shape.contains or _counts_fit(shape, alive, most, meter)


def _counts_fit(shape: ArrayShape, alive: set[Ref], most: int | None, meter: Meter) -> bool:
    """Whether some length lets every count come out right.

    A breadth-first search over the counts, each of which stops where more of it makes no difference.
    """
    least, beyond = shape.min_items, len(shape.prefix)
    caps = [count.min if count.max is None else count.max + 1 for count in shape.contains]
    if max((*caps, least)) > _LONGEST_COUNT:
        return True
    reached = {(0,) * len(caps)}
    # Beyond the prefix, the lower bound and the sum of all caps, nothing new can happen.
    horizon = max(beyond, least) + sum(caps) + 1
    for length in range(horizon + 1 if most is None else min(horizon, most) + 1):
        if length >= least and any(_in_bounds(counts, shape.contains) for counts in reached):
            return True
        earned = _earned(shape.prefix[length] if length < beyond else shape.rest, alive)
        meter.check_states(len(reached), _DOING)
        reached = {_counted(counts, marks, caps) for counts in meter.each(reached, _DOING) for marks in earned}
    return False


def _in_bounds(counts: tuple[int, ...], bounds: tuple[Count, ...]) -> bool:
    return all(
        bound.min <= count and (bound.max is None or count <= bound.max)
        for count, bound in zip(counts, bounds, strict=True)
    )


def _counted(counts: tuple[int, ...], marks: int, caps: list[int]) -> tuple[int, ...]:
    return tuple(min(count + (marks >> k & 1), caps[k]) for k, count in enumerate(counts))
