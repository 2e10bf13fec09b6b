"""Cases to shapes: which members and items may come, spelled out name by name and position by position.

The shapes made here are *drafts*: like those of `shapes`, but their choices hold goals, some of which may turn out to
have no values. `trimming` finishes them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ....errors import BudgetExceededError
from ..algebra.array_cases import ArrayCase
from ..algebra.goals import ANYTHING, NOTHING, Conjunction, all_of, both
from ..algebra.nodes import Nodes
from ..algebra.objects.member_rules import MemberRule, NamePartitions
from ..algebra.objects.object_case import ObjectCase, names_of
from ..strings.strings import StringSet
from .shapes import Count

#: Goals with their marks.
GoalChoice: TypeAlias = tuple[tuple[Conjunction, int], ...]

#: So many marks at most: options and what later steps make of them can double with each.
MOST_MARKS = 8


class ObjectDraft(NamedTuple):
    """An `ObjectShape` of goals: properties are (name, choice, required)."""

    properties: tuple[tuple[str, GoalChoice, bool], ...]
    others: tuple[tuple[StringSet, GoalChoice], ...]
    low: int
    high: int | None
    exists: int


class ArrayDraft(NamedTuple):
    """An `ArrayShape` of goals."""

    prefix: tuple[GoalChoice, ...]
    rest: GoalChoice
    low: int
    high: int | None
    counts: tuple[Count, ...]
    unique: bool


class Shaping:
    """Makes drafts of shapes."""

    def __init__(self, nodes: Nodes, partitions: NamePartitions) -> None:
        self.nodes = nodes
        self.partitions = partitions
        self._known_others: dict[Hashable, tuple[tuple[StringSet, GoalChoice], ...]] = {}

    def object(self, case: ObjectCase) -> ObjectDraft:
        """The shape of a case."""
        required = set(case.required)
        names = dict.fromkeys((*names_of(case.rules), *case.required, *names_of(case.exists)))
        properties = tuple(
            (name, self._choice(case.goal(name), [rule.goal(name) for rule in case.exists]), name in required)
            for name in names
        )
        return ObjectDraft(properties, self._others(case), case.low, case.high, len(case.exists))

    def _others(self, case: ObjectCase) -> tuple[tuple[StringSet, GoalChoice], ...]:
        rules = tuple(rule for rule in case.rules if rule.rest or rule.classes)
        key = rules, case.exists
        if key not in self._known_others:
            self._known_others[key] = tuple(self._classes(rules, case.exists))
        return self._known_others[key]

    def _classes(
        self, rules: tuple[MemberRule, ...], exists: tuple[MemberRule, ...]
    ) -> Iterator[tuple[StringSet, GoalChoice]]:
        """The classes of undeclared names that the rules tell apart, with what their members may be."""
        bits: dict[StringSet, int] = {}
        for rule in (*rules, *exists):
            for keys, _ in rule.classes:
                bits.setdefault(keys, 1 << len(bits))
        rest = all_of([rule.rest for rule in rules])
        for keys, inside in self.partitions.split(tuple(bits), rest != NOTHING):
            goal = all_of([_class_goal(rule, inside, bits) for rule in rules])
            choice = self._choice(goal, [_class_goal(rule, inside, bits) for rule in exists])
            if choice:
                yield keys, choice

    def array(self, case: ArrayCase) -> ArrayDraft:
        """The shape of a case."""
        counting = [count.rule for count in case.counts]
        beyond = max((len(rule.prefix) for rule in (*case.rules, *counting)), default=0)
        known = beyond if case.high is None else min(beyond, case.high)
        positions = self.nodes.meter.each(range(known), "normalising the schema")
        choices = [self._choice(case.goal(k), [rule.goal(k) for rule in counting]) for k in positions]
        rest: GoalChoice = ()
        if case.high is None or case.high > beyond:
            rest = self._choice(case.goal(beyond), [rule.goal(beyond) for rule in counting])
        counts = tuple(Count(count.low, count.high) for count in case.counts)
        return ArrayDraft(tuple(choices), rest, case.low, case.high, counts, case.unique)

    def _choice(self, goal: Conjunction, marks: list[Conjunction]) -> GoalChoice:
        """A goal, split by which of the marks' goals are met."""
        if goal == NOTHING:
            return ()
        if not marks:
            return ((goal, 0),)
        if len(marks) > MOST_MARKS:
            raise BudgetExceededError(
                f"more than {MOST_MARKS} kinds of members or items have to be counted at once",
                where=self.nodes.pointer(goal) or "the root",
                remedy="Combine fewer contains, or negated additionalProperties, in one place.",
            )
        options: list[tuple[Conjunction, int]] = [(goal, 0)]
        for k, mark in enumerate(marks):
            if mark == NOTHING:
                continue
            met = [(both(option, mark), marks_ | 1 << k) for option, marks_ in options]
            unmet = [] if mark == ANYTHING else self._unmet(options, mark)
            options = [(option, marks_) for option, marks_ in met + unmet if option != NOTHING]
        return tuple(options)

    def _unmet(self, options: list[tuple[Conjunction, int]], mark: Conjunction) -> list[tuple[Conjunction, int]]:
        against = self.nodes.negation(mark)
        return [(both(option, against), marks) for option, marks in options]


def _class_goal(rule: MemberRule, inside: int, bits: Mapping[StringSet, int]) -> Conjunction:
    """What a rule demands of the names in those sets that have a bit ``inside``."""
    matched = [goal for keys, goal in rule.classes if bits[keys] & inside]
    return all_of(matched) if matched else rule.rest
