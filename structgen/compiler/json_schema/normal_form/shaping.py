"""Cases to shapes: which members and items may come, spelled out name by name and position by position.

The values made here are *drafts*: they refer to goals by number, and some of these may turn out to have no values.
`trimming` finishes them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from ....errors import BudgetExceededError
from ..algebra.array_cases import ArrayCase
from ..algebra.goals import ANYTHING, NOTHING, Conjunction, all_of, both
from ..algebra.nodes import Nodes
from ..algebra.objects.member_rules import MemberRule, NamePartitions
from ..algebra.objects.object_case import ObjectCase, names_of
from ..algebra.outline import TypeBounds
from ..strings.strings import StringSet
from .shapes import ArrayShape, Choice, Count, KeyClass, ObjectShape, Option, Property, Ref, Value

#: So many marks at most: options and what later steps make of them can double with each.
MOST_MARKS = 8


class Shaping:
    """Makes drafts; ``goals`` are those that they lead to, by number."""

    def __init__(self, nodes: Nodes, partitions: NamePartitions) -> None:
        self.nodes = nodes
        self.partitions = partitions
        self.goals: list[Conjunction] = []
        self.refs: dict[Conjunction, Ref] = {}
        self._known_others: dict[Hashable, tuple[KeyClass, ...]] = {}

    def ref(self, goal: Conjunction) -> Ref:
        """The number of a goal."""
        known = self.refs.setdefault(goal, len(self.goals))
        if known == len(self.goals):
            self.goals.append(goal)
        return known

    def value(
        self, outline: TypeBounds, arrays: Iterable[ArrayCase], objects: Iterable[ObjectCase], pointer: str
    ) -> Value:
        """The draft of a goal."""
        return Value(
            outline.null,
            outline.booleans,
            None if outline.numbers.is_empty() else outline.numbers,
            None if outline.strings.is_empty() else outline.strings,
            tuple(map(self.array, arrays)),
            tuple(map(self.object, objects)),
            pointer,
        )

    def object(self, case: ObjectCase) -> ObjectShape:
        """The shape of a case."""
        required = set(case.required)
        names = dict.fromkeys((*names_of(case.rules), *case.required, *names_of(case.exists)))
        properties = tuple(
            Property(name, self._choice(case.goal(name), [rule.goal(name) for rule in case.exists]), name in required)
            for name in names
        )
        return ObjectShape(properties, self._others(case), case.low, case.high, len(case.exists))

    def _others(self, case: ObjectCase) -> tuple[KeyClass, ...]:
        rules = tuple(rule for rule in case.rules if rule.rest or rule.classes)
        key = rules, case.exists
        if key not in self._known_others:
            self._known_others[key] = tuple(self._classes(rules, case.exists))
        return self._known_others[key]

    def _classes(self, rules: tuple[MemberRule, ...], exists: tuple[MemberRule, ...]) -> Iterator[KeyClass]:
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
                yield KeyClass(keys, choice)

    def array(self, case: ArrayCase) -> ArrayShape:
        """The shape of a case."""
        counting = [count.rule for count in case.counts]
        beyond = max((len(rule.prefix) for rule in (*case.rules, *counting)), default=0)
        known = beyond if case.high is None else min(beyond, case.high)
        choices = [self._choice(case.goal(k), [rule.goal(k) for rule in counting]) for k in range(known)]
        rest: Choice = ()
        if case.high is None or case.high > beyond:
            rest = self._choice(case.goal(beyond), [rule.goal(beyond) for rule in counting])
        counts = tuple(Count(count.low, count.high) for count in case.counts)
        return ArrayShape(tuple(choices), rest, case.low, case.high, counts, case.unique)

    def _choice(self, goal: Conjunction, marks: list[Conjunction]) -> Choice:
        """A goal, split by which of the marks' goals are met."""
        if goal == NOTHING:
            return ()
        if len(marks) > MOST_MARKS:
            raise BudgetExceededError(
                f"more than {MOST_MARKS} kinds of members or items have to be counted at once",
                where=self.nodes.pointer(goal) or "the root",
                remedy="Combine fewer contains, or negated additionalProperties, in one place.",
            )
        options = [(goal, 0)]
        for k, mark in enumerate(marks):
            if mark == NOTHING:
                continue
            met = [(both(option, mark), earned | 1 << k) for option, earned in options]
            against = self.nodes.negation(mark)
            unmet = [(both(option, against), earned) for option, earned in options if mark != ANYTHING]
            options = [(option, earned) for option, earned in met + unmet if option != NOTHING]
        return tuple([Option(self.ref(option), earned) for option, earned in options])


def _class_goal(rule: MemberRule, inside: int, bits: Mapping[StringSet, int]) -> Conjunction:
    """What a rule demands of the names in those sets that have a bit ``inside``."""
    matched = [goal for keys, goal in rule.classes if bits[keys] & inside]
    return all_of(matched) if matched else rule.rest
