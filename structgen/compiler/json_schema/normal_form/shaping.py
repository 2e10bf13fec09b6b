"""Clauses to shapes: which members and items may come, spelled out name by name and position by position.

The values made here are *drafts*: they refer to goals by number, and some of these may turn out to have no values.
`trimming` finishes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....errors import BudgetExceededError
from ....system.properties import remembered
from ..algebra.arrays import ArrayClause
from ..algebra.goals import ANYTHING, NOTHING, Conjunction, all_of, both
from ..algebra.member_rules import MemberRule, NamePartitions
from ..algebra.nodes import Nodes
from ..algebra.objects import ObjectClause
from ..algebra.type_bounds import TypeBounds
from ..numbers.numbers import NumberSet
from ..strings.strings import StringSet
from .plain import PlainValues
from .shapes import ArrayShape, Choice, Count, KeyClass, ObjectShape, Option, Property, Ref, Value

#: So many marks at most: options and what later steps make of them can double with each.
MOST_MARKS = 8


class Shaping:
    """Makes ``drafts``; ``goals`` are those that they lead to, by number, but for those of ``plain`` places.

    Of the options, ``max_items`` and ``max_string_length`` bound what no keyword bounds.
    """

    def __init__(self, nodes: Nodes, plain: PlainValues, max_items: int | None, max_string_length: int | None) -> None:
        self.max_items, self.max_string_length = max_items, max_string_length
        self.nodes, self.plain, self.drafts = nodes, plain, plain.values
        self.partitions = NamePartitions(nodes.meter)
        self.goals: dict[Ref, Conjunction] = {}
        self.todo: list[tuple[Ref, Conjunction]] = []  # those whose drafts are not made yet
        self.refs: dict[Conjunction, Ref] = {}
        self._choices: dict[Conjunction, Choice] = {NOTHING: ()}  # without marks

    def ref(self, goal: Conjunction) -> Ref:
        """The number of a goal."""
        known = self.refs.get(goal)
        if known is None:
            known = self.plain.of(goal)
            if known is None:
                self.goals[known := len(self.drafts)] = goal
                self.todo.append((known, goal))
                self.drafts.append(Value())
            self.refs[goal] = known
        return known

    def value(
        self, bounds: TypeBounds, arrays: Iterable[ArrayClause], objects: Iterable[ObjectClause], pointer: str
    ) -> Value:
        """The draft of a goal."""
        null, booleans, numbers, strings, _, _ = bounds
        if self.max_string_length is not None:
            strings = strings.at_most(self.max_string_length, self.nodes.meter)
        return Value(
            null,
            booleans,
            None if numbers is NumberSet.EMPTY or numbers.is_empty() else numbers,
            None if strings.is_empty() else strings,
            tuple([self.array(clause) for clause in arrays]),
            tuple([self.object(clause) for clause in objects]),
            pointer,
        )

    def object(self, clause: ObjectClause) -> ObjectShape:
        """The shape of a clause."""
        required, exists = set(clause.required), clause.exists
        properties: list[Property] = []
        for name in clause.names():
            goal = clause.goal(name)
            if len(goal) > 1:
                self.nodes.put_in_order(goal, (rule.goal(name) for rule in clause.rules))
            choice = self._choice(goal, [rule.goal(name) for rule in exists])
            properties.append(Property(name, choice, name in required))
        rules = tuple([rule for rule in clause.rules if rule.rest or rule.classes])
        others = self._classes(rules, exists)
        return ObjectShape(tuple(properties), others, clause.low, clause.high, len(exists))

    @remembered
    def _classes(self, rules: tuple[MemberRule, ...], exists: tuple[MemberRule, ...]) -> tuple[KeyClass, ...]:
        """The classes of undeclared names that the rules tell apart, with what their members may be."""
        found: list[KeyClass] = []
        bits: dict[StringSet, int] = {}
        for rule in (*rules, *exists):
            for keys, _ in rule.classes:
                bits.setdefault(keys, 1 << len(bits))
        rest = all_of([rule.rest for rule in rules])
        if not bits:
            choice = self._choice(rest, [rule.rest for rule in exists])
            return (KeyClass(StringSet.ANY, choice),) if choice else ()
        for keys, inside in self.partitions.split(tuple(bits), rest != NOTHING):
            goal = all_of([_class_goal(rule, inside, bits) for rule in rules])
            choice = self._choice(goal, [_class_goal(rule, inside, bits) for rule in exists])
            if choice:
                found.append(KeyClass(keys, choice))
        return tuple(found)

    def array(self, clause: ArrayClause) -> ArrayShape:
        """The shape of a clause."""
        if clause.high is None and self.max_items is not None:
            clause = clause._replace(high=max(self.max_items, _shortest(clause)))
        counting = [count.rule for count in clause.counts]
        beyond = max([len(rule.prefix) for rule in (*clause.rules, *counting)], default=0)
        is_ordered = len(clause.rules) > 1
        choices: list[Choice] = []
        positions = range(beyond + 1)
        for k in self.nodes.meter.each(positions, "normalising the schema") if beyond else positions:
            goal = clause.goal(k)
            if is_ordered:
                self.nodes.put_in_order(goal, (rule.goal(k) for rule in clause.rules))
            is_there = clause.high is None or k < clause.high
            choices.append(self._choice(goal, [rule.goal(k) for rule in counting]) if is_there else ())
        rest = choices.pop()
        if clause.high is not None:
            del choices[clause.high :]
        counts = tuple([Count(count.low, count.high) for count in clause.counts])
        return ArrayShape(tuple(choices), rest, clause.low, clause.high, counts, clause.unique)

    def _choice(self, goal: Conjunction, marks: list[Conjunction]) -> Choice:
        """A goal, split by which of the marks' goals are met."""
        if not marks:
            known = self._choices.get(goal)
            if known is None:
                known = self._choices[goal] = (Option(self.ref(goal)),)
            return known
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


def _shortest(clause: ArrayClause) -> int:
    """A length that arrays of a clause have, if it has any: of those that it asks for, and as many of each kind."""
    counted = sum(count.low for count in clause.counts)
    known = max((len(rule.prefix) for rule in (*clause.rules, *(count.rule for count in clause.counts))), default=0)
    return max(clause.low, known + counted if counted else 0)


def _class_goal(rule: MemberRule, inside: int, bits: Mapping[StringSet, int]) -> Conjunction:
    """What a rule demands of the names in those sets that have a bit ``inside``."""
    matched = [goal for keys, goal in rule.classes if bits[keys] & inside]
    return all_of(matched) if matched else rule.rest
