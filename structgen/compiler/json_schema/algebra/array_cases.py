"""Cases of arrays: conjunctions of what keywords say about items, before they are brought to a shape."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..read.document import Schema, SchemaId
from .assertions import ARRAY_FIELDS
from .family import Family, Mode, joined, lower
from .goals import ANYTHING, NOTHING, Conjunction, all_of
from .nodes import Nodes
from .outline import Extent, TypeBounds


class ItemRule(NamedTuple):
    """What the item of every position must be: ``prefix`` by position, then ``rest``."""

    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = ANYTHING

    def goal(self, position: int) -> Conjunction:
        """The goal of a position."""
        return self.prefix[position] if position < len(self.prefix) else self.rest


class Counting(NamedTuple):
    """``low`` to ``high`` items follow a rule."""

    rule: ItemRule
    low: int
    high: int | None


class EvaluatedItems(NamedTuple):
    """Evaluated are the items before ``prefix``, those that meet one of the goals, or all."""

    prefix: int
    matching: tuple[Conjunction, ...] = ()
    everything: bool = False


class ArrayCase(NamedTuple):
    """Arrays whose items follow all rules, in such a number, with so many items of each kind that counts.

    Parameters
    ----------
    rules:
        What the items must be.
    low, high:
        Bounds on the length.
    counts:
        Bounds on how many items follow a rule.
    unique:
        No two items are equal.
    repeated:
        Some two items are equal: the JSON pointer of the ``uniqueItems`` that is violated, or None.
    evaluated:
        What has been evaluated, where that matters.
    """

    rules: tuple[ItemRule, ...] = ()
    low: int = 0
    high: int | None = None
    counts: tuple[Counting, ...] = ()
    unique: bool = False
    repeated: str | None = None
    evaluated: tuple[EvaluatedItems, ...] = ()

    def goal(self, position: int) -> Conjunction:
        """What the item of a position must be."""
        return all_of([rule.goal(position) for rule in self.rules])


_ANY = ArrayCase()


class ArrayFamily(Family[ArrayCase]):
    """How array cases come from keywords, and how they combine."""

    any = _ANY
    unevaluated = "unevaluated_items"

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    @staticmethod
    def extent(outline: TypeBounds) -> Extent:
        """How many of the arrays an outline allows."""
        return outline.arrays

    # From keywords

    def own(self, node: SchemaId, mode: Mode) -> list[list[ArrayCase]]:
        """What the node's own keywords say: a conjunction of unions of cases."""
        schema, names = self.nodes.schemas[node], self.nodes.said(node)
        factors: list[list[ArrayCase]] = []
        if names & ARRAY_FIELDS:
            rule = self.rule(schema)
            case = self._checked(
                ArrayCase(
                    (rule,) if rule != ItemRule() else (),
                    schema.min_items,
                    schema.max_items,
                    self._contains(schema),
                    schema.unique_items,
                    evaluated=() if mode is Mode.PLAIN else self._evaluated(schema),
                )
            )
            factors.append([] if case is None else [case])
        if schema.enum is not None:
            values = self.nodes.meter.each(schema.enum, "reading an enumeration")
            factors.append([self._equal(value) for value in values if isinstance(value, list)])
        return factors

    def violations(self, node: SchemaId) -> list[ArrayCase]:
        """What violates one of the node's own keywords."""
        schema, negation = self.nodes.schemas[node], self.nodes.negation
        rule = self.rule(schema)
        cases = []
        for position, goal in enumerate(rule.prefix):
            if goal:
                cases.append(_at(position, negation(goal)))
        if rule.rest:
            outside = ItemRule((NOTHING,) * len(rule.prefix), negation(rule.rest))
            cases.append(ArrayCase(counts=(Counting(outside, 1, None),)))
        if schema.min_items > 0:
            cases.append(ArrayCase(high=schema.min_items - 1))
        if schema.max_items is not None:
            cases.append(ArrayCase(low=schema.max_items + 1))
        if schema.unique_items:
            cases.append(ArrayCase(low=2, repeated=f"{schema.pointer}/uniqueItems"))
        for counting in self._contains(schema):
            if counting.low > 0:
                cases.append(ArrayCase(counts=(Counting(counting.rule, 0, counting.low - 1),)))
            if counting.high is not None:
                cases.append(ArrayCase(counts=(Counting(counting.rule, counting.high + 1, None),)))
        return cases

    def listed(self, schema: Schema) -> list[Any]:
        """The arrays in the schema's ``enum``."""
        return [value for value in schema.enum or () if isinstance(value, list)]

    def unequal(self, value: list[Any]) -> list[ArrayCase]:
        """Every array but this one."""
        cases = [ArrayCase(low=len(value) + 1)]
        if value:
            cases.append(ArrayCase(high=len(value) - 1))
        for position, item in enumerate(value):
            cases.append(_at(position, self.nodes.negation(self.nodes.literal(item))))
        return cases

    def dependents(self, schema: Schema) -> list[tuple[ArrayCase, list[ArrayCase], Conjunction]]:
        """None: nothing of an array depends on a name."""
        return []

    def _equal(self, value: list[Any]) -> ArrayCase:
        rule = ItemRule(tuple(map(self.nodes.literal, value)), NOTHING)
        return ArrayCase((rule,), len(value), len(value))

    def rule(self, schema: Schema) -> ItemRule:
        """``prefixItems`` and ``items`` of one subschema."""
        goal = self.nodes.goal
        return ItemRule(
            tuple(map(goal, schema.prefix_items)), ANYTHING if schema.items is None else goal(schema.items)
        )

    def _contains(self, schema: Schema) -> tuple[Counting, ...]:
        if schema.contains is None or (schema.min_contains == 0 and schema.max_contains is None):
            return ()
        rule = ItemRule((), self.nodes.goal(schema.contains))
        return (Counting(rule, schema.min_contains, schema.max_contains),)

    # Evaluation

    def _evaluated(self, schema: Schema) -> tuple[EvaluatedItems, ...]:
        matching = () if schema.contains is None else (self.nodes.goal(schema.contains),)
        part = EvaluatedItems(len(schema.prefix_items), matching, schema.items is not None)
        return (part,) if part != EvaluatedItems(0) else ()

    def closed(self, case: ArrayCase, rest: Conjunction) -> ArrayCase | None:
        """The case under ``unevaluatedItems``: all that has not been evaluated must meet a goal."""
        if any(part.everything for part in case.evaluated):
            return case
        prefix, matching = _extent_of(case)
        rule = ItemRule((ANYTHING,) * prefix, self.nodes.either([*matching, rest]))
        everything = (EvaluatedItems(0, (), True),)
        return self.merge(case, ArrayCase((rule,), evaluated=everything))

    def unclosed(self, case: ArrayCase, rest: Conjunction) -> ArrayCase | None:
        """The case, with an item that violates ``unevaluatedItems``."""
        if any(part.everything for part in case.evaluated) or not rest:
            return None
        prefix, matching = _extent_of(case)
        outside = self.nodes.negation(self.nodes.either([*matching, rest]))
        rule = ItemRule((NOTHING,) * prefix, outside)
        return self.merge(case, ArrayCase(counts=(Counting(rule, 1, None),)))

    # Combination

    def merge(self, left: ArrayCase | None, right: ArrayCase | None) -> ArrayCase | None:
        """The conjunction, None where it is plainly empty."""
        if left is None or right is None:
            return None
        if left is _ANY:
            return right
        if right is _ANY:
            return left
        return self._checked(
            ArrayCase(
                joined(left.rules, right.rules),
                max(left.low, right.low),
                lower(left.high, right.high),
                joined(left.counts, right.counts),
                left.unique or right.unique,
                right.repeated if left.repeated is None else left.repeated,
                joined(left.evaluated, right.evaluated),
            )
        )

    def _checked(self, case: ArrayCase) -> ArrayCase | None:
        """The case with its counts settled; None where it is plainly empty."""
        if case.counts:
            settled = self._settled(case)
            if settled is None:
                return None
            case = settled
        if case.high is not None and case.low > case.high:
            return None
        if case.low == 0 or not case.rules:
            return case
        known = max(len(rule.prefix) for rule in case.rules)
        # Beyond the longest prefix all positions are alike.
        dead = any(self.barren(case.goal(position)) for position in range(min(case.low, known + 1)))
        return None if dead else case

    def _settled(self, case: ArrayCase) -> ArrayCase | None:
        """The case with one count for each rule, and none that is but a bound on the length, or a rule for all."""
        bounds: dict[ItemRule, tuple[int, int | None]] = {}
        for rule, least, most in case.counts:
            known = bounds.get(rule, (0, None))
            bounds[rule] = max(known[0], least), lower(known[1], most)
        rules, low, high = case.rules, case.low, case.high
        counts = []
        for rule, (least, most) in bounds.items():
            if most is not None and least > most:
                return None
            if rule == ItemRule():
                low, high = max(low, least), lower(high, most)
            elif most == 0:
                rules = joined(rules, (self._negated(rule),))
            elif least or most is not None:
                low = max(low, least)
                counts.append(Counting(rule, least, most))
        return case._replace(rules=rules, low=low, high=high, counts=tuple(counts))

    def _negated(self, rule: ItemRule) -> ItemRule:
        return ItemRule(tuple(map(self.nodes.negation, rule.prefix)), self.nodes.negation(rule.rest))

    def included(self, left: ArrayCase, right: ArrayCase) -> bool:
        """Whether it is plain that every array of the one case is in the other; evaluation left aside."""
        if (
            right.low > left.low
            or (right.unique and not left.unique)
            or (right.repeated is not None and left.repeated is None)
        ):
            return False
        if right.high is not None and (left.high is None or left.high > right.high):
            return False
        if not set(right.counts) <= set(left.counts):
            return False
        return all(rule in left.rules or self._implied(left, rule) for rule in right.rules)

    def _implied(self, case: ArrayCase, rule: ItemRule) -> bool:
        known = max((len(rule.prefix) for rule in (rule, *case.rules)), default=0)
        return all(self._meets(case.goal(position), rule.goal(position)) for position in range(known + 1))

    def _meets(self, goal: Conjunction, wanted: Conjunction) -> bool:
        return self.nodes.meets(goal, wanted, self.barren)

    def same_evaluation(self, left: ArrayCase, right: ArrayCase) -> bool:
        """Whether both have evaluated the same."""
        return left.evaluated == right.evaluated


def _at(position: int, goal: Conjunction) -> ArrayCase:
    """Arrays whose item at a position is there and meets a goal."""
    return ArrayCase((ItemRule((ANYTHING,) * position + (goal,)),), position + 1)


def _extent_of(case: ArrayCase) -> tuple[int, list[Conjunction]]:
    prefix = max((part.prefix for part in case.evaluated), default=0)
    return prefix, list(dict.fromkeys(goal for part in case.evaluated for goal in part.matching))
