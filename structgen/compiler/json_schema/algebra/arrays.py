"""Clauses of arrays: conjunctions of what keywords say about items, before they are brought to a shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ..read.document import Json, Schema, SchemaId
from .assertions import ARRAY_FIELDS
from .clauses import ALL_EVALUATED, ClauseDomain, Evaluated, Mode, joined, lower
from .goals import ANYTHING, NOTHING, Conjunction, all_of
from .type_bounds import Kleene, TypeBounds


class ItemRule(NamedTuple):
    """What the item of every position must be: ``prefix`` by position, then ``rest``."""

    prefix: tuple[Conjunction, ...] = ()
    rest: Conjunction = ANYTHING

    def goal(self, position: int) -> Conjunction:
        """The goal of a position."""
        return self.prefix[position] if position < len(self.prefix) else self.rest

    def mapped(self, change: Callable[[Conjunction], Conjunction]) -> ItemRule:
        """The rule with other goals."""
        return ItemRule(tuple(map(change, self.prefix)), change(self.rest))


class Counting(NamedTuple):
    """``low`` to ``high`` items follow a rule."""

    rule: ItemRule
    low: int
    high: int | None


class ArrayClause(NamedTuple):
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
    evaluated: tuple[Evaluated, ...] = ()

    def goal(self, position: int) -> Conjunction:
        """What the item of a position must be."""
        return all_of([rule.goal(position) for rule in self.rules])

    def bare(self) -> ArrayClause:
        """The same clause, which has evaluated nothing."""
        return self._replace(evaluated=())

    def arranged(self, parts: Sequence[ArrayClause]) -> ArrayClause:
        """The same clause, with its rules in the order of those that it is made of."""
        return self._replace(rules=tuple(dict.fromkeys(rule for part in (*parts, self) for rule in part.rules)))


class ArrayDomain(ClauseDomain[ArrayClause]):
    """How clauses of arrays come from keywords, and how they combine."""

    any = ArrayClause()
    unevaluated = "unevaluated_items"
    fields = ARRAY_FIELDS

    def allowed(self, bounds: TypeBounds) -> Kleene:
        """How many of the arrays bounds allow."""
        return bounds.arrays

    # -- from keywords -------------------------------------------------------------------------------------

    def asserted(self, node: SchemaId, mode: Mode) -> ArrayClause | None:
        """What the node's keywords about arrays say together."""
        schema = self.nodes.schemas[node]
        rule = self.rule(schema)
        rules = (rule,) if rule.rest or rule.prefix else ()
        evaluated = () if mode is Mode.PLAIN else self._evaluated(schema)
        low, high, counts = schema.min_items, schema.max_items, self._contains(schema)
        return self._checked(ArrayClause(rules, low, high, counts, schema.unique_items, None, evaluated))

    def violations(self, node: SchemaId) -> list[ArrayClause]:
        """What violates one of the node's own keywords."""
        schema, negation = self.nodes.schemas[node], self.nodes.negation
        rule = self.rule(schema)
        clauses = []
        for position, goal in enumerate(rule.prefix):
            if goal:
                clauses.append(_at(position, negation(goal)))
        if rule.rest:
            outside = ItemRule((NOTHING,) * len(rule.prefix), negation(rule.rest))
            clauses.append(ArrayClause(counts=(Counting(outside, 1, None),)))
        if schema.min_items > 0:
            clauses.append(ArrayClause(high=schema.min_items - 1))
        if schema.max_items is not None:
            clauses.append(ArrayClause(low=schema.max_items + 1))
        if schema.unique_items:
            clauses.append(ArrayClause(low=2, repeated=f"{schema.pointer}/uniqueItems"))
        for counting in self._contains(schema):
            if counting.low > 0:
                clauses.append(ArrayClause(counts=(Counting(counting.rule, 0, counting.low - 1),)))
            if counting.high is not None:
                clauses.append(ArrayClause(counts=(Counting(counting.rule, counting.high + 1, None),)))
        return clauses

    def tested(self, clause: ArrayClause) -> ArrayClause:
        """See `ClauseDomain`."""
        tested = self.nodes.tested
        counts = tuple([count._replace(rule=count.rule.mapped(tested)) for count in clause.counts])
        return clause._replace(rules=tuple([rule.mapped(tested) for rule in clause.rules]), counts=counts)

    def equal(self, values: Sequence[Json]) -> Iterator[ArrayClause]:
        """Each array among the values, alone."""
        for value in values:
            if isinstance(value, list):
                rule = ItemRule(tuple(map(self.nodes.constant, value)), NOTHING)
                yield ArrayClause((rule,), len(value), len(value))

    def unequal(self, values: Sequence[Json]) -> Iterator[list[ArrayClause]]:
        """For each array among the values: all others."""
        for value in values:
            if isinstance(value, list):
                clauses = [ArrayClause(low=len(value) + 1)]
                if value:
                    clauses.append(ArrayClause(high=len(value) - 1))
                for position, item in enumerate(value):
                    clauses.append(_at(position, self.nodes.negation(self.nodes.constant(item))))
                yield clauses

    def rule(self, schema: Schema) -> ItemRule:
        """``prefixItems`` and ``items`` of one subschema."""
        goal = self.nodes.goal
        return ItemRule(tuple(map(goal, schema.prefix_items)), ANYTHING if schema.items is None else goal(schema.items))

    def _contains(self, schema: Schema) -> tuple[Counting, ...]:
        if schema.contains is None or (schema.min_contains == 0 and schema.max_contains is None):
            return ()
        rule = ItemRule((), self.nodes.tested(self.nodes.goal(schema.contains)))
        return (Counting(rule, schema.min_contains, schema.max_contains),)

    # -- evaluation ----------------------------------------------------------------------------------------

    def _evaluated(self, schema: Schema) -> tuple[Evaluated, ...]:
        matching = () if schema.contains is None else (self.nodes.tested(self.nodes.goal(schema.contains)),)
        part = Evaluated(prefix=len(schema.prefix_items), matching=matching, everything=schema.items is not None)
        return (part,) if part != Evaluated() else ()

    def others_meet(self, clause: ArrayClause, rest: Conjunction) -> ArrayClause:
        """All items that a clause has not evaluated meet a goal."""
        prefix, goal = self._evaluated_or(clause, rest)
        return ArrayClause((ItemRule((ANYTHING,) * prefix, goal),), evaluated=ALL_EVALUATED)

    def another_fails(self, clause: ArrayClause, rest: Conjunction) -> ArrayClause:
        """Some item that a clause has not evaluated fails a goal."""
        prefix, goal = self._evaluated_or(clause, rest)
        outside = ItemRule((NOTHING,) * prefix, self.nodes.negation(goal))
        return ArrayClause(counts=(Counting(outside, 1, None),))

    def _evaluated_or(self, clause: ArrayClause, rest: Conjunction) -> tuple[int, Conjunction]:
        """The number of items evaluated by position; what the others are that have been, too, or meet a goal."""
        prefix = max((part.prefix for part in clause.evaluated), default=0)
        matching = dict.fromkeys(goal for part in clause.evaluated for goal in part.matching)
        return prefix, self.nodes.either([*matching, rest])

    # -- combination ---------------------------------------------------------------------------------------

    def conjunction(self, left: ArrayClause, right: ArrayClause) -> ArrayClause | None:
        """See `merge`."""
        return self._checked(
            ArrayClause(
                joined(left.rules, right.rules),
                max(left.low, right.low),
                lower(left.high, right.high),
                joined(left.counts, right.counts),
                left.unique or right.unique,
                right.repeated if left.repeated is None else left.repeated,
                joined(left.evaluated, right.evaluated),
            )
        )

    def _checked(self, clause: ArrayClause) -> ArrayClause | None:
        """The clause with its counts settled; None where it is plainly empty."""
        if clause.counts:
            settled = self._settled(clause)
            if settled is None:
                return None
            clause = settled
        if clause.high is not None and clause.low > clause.high:
            return None
        if clause.low == 0 or not clause.rules:
            return clause
        known = max(len(rule.prefix) for rule in clause.rules)
        # Beyond the longest prefix all positions are alike.
        required = map(clause.goal, range(min(clause.low, known + 1)))
        return None if any(map(self.bounds.is_unsatisfiable, required)) else clause

    def _settled(self, clause: ArrayClause) -> ArrayClause | None:
        """The clause with one count for each rule, and none that is but a bound on the length, or a rule for all."""
        bounds: dict[ItemRule, tuple[int, int | None]] = {}
        for rule, least, most in clause.counts:
            known = bounds.get(rule, (0, None))
            bounds[rule] = max(known[0], least), lower(known[1], most)
        rules, low, high = clause.rules, clause.low, clause.high
        counts = []
        for rule, (least, most) in bounds.items():
            if most is not None and least > most:
                return None
            if rule == ItemRule():
                low, high = max(low, least), lower(high, most)
            elif most == 0:
                rules = joined(rules, (rule.mapped(self.nodes.negation),))
            elif least or most is not None:
                low = max(low, least)
                counts.append(Counting(rule, least, most))
        return clause._replace(rules=rules, low=low, high=high, counts=tuple(counts))

    def included(self, left: ArrayClause, right: ArrayClause) -> bool:
        """Whether it is plain that every array of the one clause is in the other; evaluation left aside."""
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

    def _implied(self, clause: ArrayClause, rule: ItemRule) -> bool:
        known = max((len(rule.prefix) for rule in (rule, *clause.rules)), default=0)
        return all(self.bounds.meets(clause.goal(position), rule.goal(position)) for position in range(known + 1))


def _at(position: int, goal: Conjunction) -> ArrayClause:
    """Arrays whose item at a position is there and meets a goal."""
    return ArrayClause((ItemRule((ANYTHING,) * position + (goal,)),), position + 1)
