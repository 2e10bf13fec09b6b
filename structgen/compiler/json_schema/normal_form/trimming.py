"""Drafts to shapes that say no more than they have to: without goals that have no members, and marks that are earned
anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ..strings.strings import StringSet
from .shapes import Count
from .shaping import ArrayDraft, GoalChoice, ObjectDraft

#: Numbers of values with their marks.
Choice: TypeAlias = tuple[tuple[int, int], ...]

#: From goals to numbers; those without members are left out.
Placing: TypeAlias = Callable[[GoalChoice], Choice]


class Member(NamedTuple):
    """A `Property` of numbered values."""

    name: str
    choice: Choice
    required: bool


class TrimmedObject(NamedTuple):
    """An `ObjectShape` of numbered values."""

    members: tuple[Member, ...]
    others: tuple[tuple[StringSet, Choice], ...]
    low: int
    high: int | None
    exists: int


class TrimmedArray(NamedTuple):
    """An `ArrayShape` of numbered values."""

    prefix: tuple[Choice, ...]
    rest: Choice
    low: int
    high: int | None
    counts: tuple[Count, ...]
    unique: bool


def placed_object(draft: ObjectDraft, place: Placing) -> TrimmedObject:
    """The draft with numbers for goals, and no mark that is earned anyway. It must have members."""
    members = [Member(name, place(choice), must) for name, choice, must in draft.properties]
    others = [(keys, choice) for keys, goals in draft.others if (choice := place(goals))]
    kept = []
    for mark in range(draft.exists):
        earning = [k for k, member in enumerate(members) if _some(member.choice, mark)]
        if any(members[k].required and _all(members[k].choice, mark) for k in earning):
            continue
        if len(earning) == 1 and not any(_some(choice, mark) for _, choice in others):
            (k,) = earning
            choice = tuple(option for option in members[k].choice if option[1] >> mark & 1)
            members[k] = Member(members[k].name, choice, True)
        else:
            kept.append(mark)
    if len(kept) < draft.exists:
        members = [Member(name, _renumbered(choice, kept), must) for name, choice, must in members]
        others = [(keys, _renumbered(choice, kept)) for keys, choice in others]
    return TrimmedObject(tuple(members), tuple(others), draft.low, draft.high, len(kept))


def bounded_object(shape: TrimmedObject) -> TrimmedObject:
    """The shape with bounds that say no more than its members do."""
    members, others, low, high = list(shape.members), shape.others, shape.low, shape.high
    required = sum(member.required for member in members)
    if high == required:  # no room for anything that may be left out
        members, others = [member for member in members if member.required], ()
    if others:
        members = [m for m in members if m.choice or any(m.name in keys for keys, _ in others)]
    else:
        members = [member for member in members if member.choice]
        if low >= len(members):
            members = [member._replace(required=True) for member in members]
            required = len(members)
        if high is not None and high >= len(members):
            high = None
    return shape._replace(members=tuple(members), others=others, low=low if low > required else 0, high=high)


def trimmed_array(draft: ArrayDraft, place: Placing) -> TrimmedArray:
    """The draft with numbers for goals, cut where no further item can stand. It must have members."""
    prefix: list[Choice] = []
    rest: Choice = ()
    for goals in draft.prefix:
        choice = place(goals)
        if not choice:
            break
        prefix.append(choice)
    else:
        rest = place(draft.rest)
    low, high = draft.low, draft.high
    kept = []
    for mark, count in enumerate(draft.counts):
        if all(_all(choice, mark) for choice in (*prefix, rest)):  # then all items count
            low = max(low, count.min)
            if count.max is not None:
                high = count.max if high is None else min(high, count.max)
        elif any(_some(choice, mark) for choice in (*prefix, rest)):
            kept.append(mark)
    if len(kept) < len(draft.counts):
        prefix = [_renumbered(choice, kept) for choice in prefix]
        rest = _renumbered(rest, kept)
    counts = tuple(draft.counts[mark] for mark in kept)
    return _cut(TrimmedArray(tuple(prefix), rest, low, high, counts, draft.unique and high not in (0, 1)))


def _cut(shape: TrimmedArray) -> TrimmedArray:
    """The array's shape with a prefix no longer than the array can be, or needs to be."""
    prefix, rest, high = list(shape.prefix), shape.rest, shape.high
    if not rest:
        high = len(prefix) if high is None else min(high, len(prefix))
    elif high is not None and high <= len(prefix):
        rest = ()
    if high is not None:
        del prefix[high:]
    while prefix and prefix[-1] == rest:
        prefix.pop()
    return shape._replace(prefix=tuple(prefix), rest=rest, high=high)


def _some(choice: Choice, mark: int) -> bool:
    return any(marks >> mark & 1 for _, marks in choice)


def _all(choice: Choice, mark: int) -> bool:
    return all(marks >> mark & 1 for _, marks in choice)


def _renumbered(choice: Choice, kept: list[int]) -> Choice:
    """The choice with those marks only, numbered anew."""
    return tuple(
        dict.fromkeys(
            (value, sum((marks >> mark & 1) << k for k, mark in enumerate(kept))) for value, marks in choice
        )
    )
