"""Clauses of objects: conjunctions of what keywords say about members, before they are brought to a shape."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ....system.properties import remembered
from ..read.document import Json, Schema, SchemaId
from ..strings.strings import StringSet
from .assertions import OBJECT_FIELDS
from .clauses import ALL_EVALUATED, ClauseDomain, Evaluated, Mode, joined, lower
from .goal_bounds import GoalBounds
from .goals import ANYTHING, NOTHING, Conjunction, all_of, both
from .member_rules import MemberRule
from .type_bounds import Kleene, TypeBounds

#: So many required names are supposed to be right in a clause where a later one is wrong; with all of them, a long
#: list would take quadratic space.
_MOST_SUPPOSED = 16


@dataclass(eq=False, slots=True)
class ObjectClause:
    """Objects whose members follow all rules, in such a number, with such names, and such members among them.

    Parameters
    ----------
    rules:
        What the members must be.
    required:
        Names that must be there, each once.
    low, high:
        Bounds on the number of members.
    exists:
        For each rule some member must *follow* it: one whose value meets the goal of its name.
    evaluated:
        What has been evaluated, where that matters.
    """

    rules: tuple[MemberRule, ...] = ()
    required: tuple[str, ...] = ()
    low: int = 0
    high: int | None = None
    exists: tuple[MemberRule, ...] = ()
    evaluated: tuple[Evaluated, ...] = ()
    #: Of the names that were asked for.
    goals: dict[str, Conjunction] = field(default_factory=dict, init=False)
    _order: tuple[tuple[str, ...], ...] | None = field(default=None, init=False)

    def goal(self, name: str) -> Conjunction:
        """What a member of this name must be."""
        goal = self.goals.get(name)
        if goal is None:
            exists = name.isascii() or name in StringSet.ANY  # no text has a name with a lone surrogate
            goal = self.goals[name] = all_of([rule.goal(name) for rule in self.rules]) if exists else NOTHING
        return goal

    def names(self) -> dict[str, None]:
        """The names that it speaks of, in the order in which their members come."""
        return dict.fromkeys((*names_of(self.rules), *self.required, *names_of(self.exists)))

    def order(self) -> tuple[tuple[str, ...], ...]:
        """The names that schemas declare, and, where none of its rules comes of a negation, all names after that."""
        if self._order is None:
            declaring = [rule for rule in self.rules if rule.declares]
            is_positive = len(declaring) == len(self.rules) and not self.exists
            self._order = tuple(names_of(declaring)), tuple(self.names()) if is_positive else ()
        return self._order

    def bare(self) -> ObjectClause:
        """The same clause, which has evaluated nothing."""
        return ObjectClause(self.rules, self.required, self.low, self.high, self.exists)

    def arranged(self, parts: Sequence[ObjectClause]) -> ObjectClause:
        """The same clause, with its rules in the order of those that it is made of, and the required names, too."""
        rules = tuple(dict.fromkeys(rule for part in (*parts, self) for rule in part.rules))
        required = tuple(dict.fromkeys(name for part in (*parts, self) for name in part.required))
        is_same = (rules, required) == (self.rules, self.required)
        return self if is_same else replace(self, rules=rules, required=required)


def absent(*names: str) -> ObjectClause:
    """Objects without members of these names."""
    return ObjectClause((MemberRule(dict.fromkeys(names, NOTHING)),))


def names_of(rules: Iterable[MemberRule]) -> list[str]:
    """The names that the rules single out, in order of appearance."""
    return list(dict.fromkeys([name for rule in rules for name in rule.names]))


class ObjectDomain(ClauseDomain[ObjectClause]):
    """How clauses of objects come from keywords, and how they combine."""

    any = ObjectClause()
    unevaluated = "unevaluated_properties"
    fields = OBJECT_FIELDS

    def __init__(self, bounds: GoalBounds) -> None:
        super().__init__(bounds)
        self._listed: dict[frozenset[tuple[str, Conjunction]], MemberRule] = {}

    def allowed(self, bounds: TypeBounds) -> Kleene:
        """How many of the objects bounds allow."""
        return bounds.objects

    # -- from keywords -------------------------------------------------------------------------------------

    def own(self, node: SchemaId, mode: Mode) -> list[list[ObjectClause]]:
        """What the node's own keywords say: a conjunction of unions of clauses."""
        return super().own(node, mode) + self._dependent_names(self.nodes.schemas[node])

    def asserted(self, node: SchemaId, mode: Mode) -> ObjectClause | None:
        """What the node's keywords about objects say together."""
        schema, rule = self.nodes.schemas[node], self.rule(node)
        rules: tuple[MemberRule, ...] = (rule,) if rule.names or rule.classes or rule.rest else ()
        if schema.property_names is not None:
            rules += (MemberRule({}, ((self._allowed_names(schema), ANYTHING),), NOTHING),)
        evaluated = () if mode is Mode.PLAIN else self._evaluated(schema, rule)
        required = tuple(dict.fromkeys(schema.required))
        clause = ObjectClause(rules, required, schema.min_properties, schema.max_properties, (), evaluated)
        return None if self._is_empty(clause) else clause

    @staticmethod
    def _dependent_names(schema: Schema) -> list[list[ObjectClause]]:
        """``dependentRequired``: names that need the same others are taken together.

        Where a single name is needed, the clauses tell whether it is there; so they multiply with the number of such
        names, and not with that of the names that need them.
        """
        needing: dict[tuple[str, ...], list[str]] = {}
        for name, others in schema.dependent_required.items():
            needed = tuple(sorted({*others} - {name}))
            if needed:
                needing.setdefault(needed, []).append(name)
        factors = []
        for needed, names in needing.items():
            if len(needed) == 1:
                factors.append([ObjectClause(required=needed), absent(*needed, *names)])
            else:
                factors += [[absent(name), ObjectClause(required=(name, *needed))] for name in names]
        return factors

    def violations(self, node: SchemaId) -> list[ObjectClause]:
        """What violates one of the node's own keywords.

        Required names come first, and every clause supposes that the first of those before it were there and right.
        Then clauses of different schemas exclude each other where a required name tells the schemas apart.
        """
        schema, negation = self.nodes.schemas[node], self.nodes.negation
        rule = self.rule(node)
        clauses: list[ObjectClause] = []
        right: dict[str, Conjunction] = {}
        for name in sorted(dict.fromkeys(schema.required), key=lambda name: not self._tells_apart(rule.goal(name))):
            # Absent, or there and wrong: together, that is one goal of an optional member.
            wrong = MemberRule({**right, name: negation(rule.goal(name))})
            clauses.append(ObjectClause((wrong,), tuple(right)))
            if len(right) < _MOST_SUPPOSED:
                right[name] = self.nodes.tested(rule.goal(name))
        supposed = ObjectClause((MemberRule(right),) if any(right.values()) else (), tuple(right))
        others = self._member_violations(schema, rule) + self._counting_violations(schema)
        return clauses + [clause for other in others if (clause := self.merge(supposed, other)) is not None]

    def _tells_apart(self, goal: Conjunction) -> bool:
        """Whether the goal lists its values."""
        return goal != NOTHING and any(self.nodes.listed(literal) is not None for literal in goal)

    def _member_violations(self, schema: Schema, rule: MemberRule) -> list[ObjectClause]:
        negation = self.nodes.negation
        clauses = [
            ObjectClause((MemberRule({name: negation(goal)}),), (name,))
            for name, goal in rule.names.items()
            if goal and name not in schema.required
        ]
        # A name in several sets violates any one of their goals.
        witnesses = [MemberRule({}, ((keys, negation(goal)),), NOTHING) for keys, goal in rule.classes if goal]
        if rule.rest:
            outside = tuple((keys, NOTHING) for keys, _ in rule.classes)
            witnesses.append(MemberRule(dict.fromkeys(rule.names, NOTHING), outside, negation(rule.rest)))
        return clauses + [ObjectClause(exists=(witness,)) for witness in witnesses]

    def _counting_violations(self, schema: Schema) -> list[ObjectClause]:
        clauses = []
        if schema.property_names is not None:
            clauses.append(ObjectClause(exists=(MemberRule({}, ((self._allowed_names(schema), NOTHING),)),)))
        if schema.min_properties > 0:
            clauses.append(ObjectClause(high=schema.min_properties - 1))
        if schema.max_properties is not None:
            clauses.append(ObjectClause(low=schema.max_properties + 1))
        for name, others in schema.dependent_required.items():
            clauses += [ObjectClause((MemberRule({other: NOTHING}),), (name,)) for other in dict.fromkeys(others)]
        return clauses

    def tested(self, clause: ObjectClause) -> ObjectClause:
        """See `ClauseDomain`."""
        rules, exists = (tuple(map(self._tested, rules)) for rules in (clause.rules, clause.exists))
        if rules == clause.rules and exists == clause.exists:
            return clause
        return ObjectClause(rules, clause.required, clause.low, clause.high, exists, clause.evaluated)

    @remembered
    def _tested(self, rule: MemberRule) -> MemberRule:
        tested = self.nodes.tested
        names = {name: tested(goal) for name, goal in rule.names.items()}
        found = MemberRule(names, tuple([(keys, tested(goal)) for keys, goal in rule.classes]), tested(rule.rest))
        return rule if (found.names, found.classes, found.rest) == (rule.names, rule.classes, rule.rest) else found

    def unequal(self, values: Sequence[Json]) -> Iterator[list[ObjectClause]]:
        """For each object among the values: all others."""
        negation = self.nodes.negation
        for goals in self._constants(values):
            clauses = [ObjectClause((MemberRule({name: negation(goal)}),)) for name, goal in goals.items()]
            yield [*clauses, ObjectClause(exists=(MemberRule(dict.fromkeys(goals, NOTHING)),))]

    def _constants(self, values: Sequence[Json]) -> Iterator[dict[str, Conjunction]]:
        for value in values:
            if isinstance(value, dict):
                yield {name: self.nodes.constant(item) for name, item in value.items()}

    def dependents(self, schema: Schema) -> list[tuple[ObjectClause, list[ObjectClause], Conjunction]]:
        """For each dependent schema: the clause that it does not matter in, those that it does, and its goal."""
        needing: dict[Conjunction, list[str]] = {}
        for name, child in schema.dependent_schemas.items():
            needing.setdefault(self.nodes.goal(child), []).append(name)
        return [
            (absent(*names), [ObjectClause(required=(name,)) for name in names], goal)
            for goal, names in needing.items()
            if goal
        ]

    def equal(self, values: Sequence[Json]) -> Iterator[ObjectClause]:
        """Each object among the values, alone."""
        for goals in self._constants(values):
            yield ObjectClause((MemberRule(goals, (), NOTHING),), tuple(goals))

    @remembered
    def rule(self, node: SchemaId) -> MemberRule:
        """``properties``, ``patternProperties`` and ``additionalProperties`` of one subschema."""
        schema, goal = self.nodes.schemas[node], self.nodes.goal
        keys, where = self.bounds.assertions.keys, f"{schema.pointer}/patternProperties/"
        names = {name: goal(child) for name, child in schema.properties.items()}
        classes = tuple([
            (keys(pattern, where + _escaped(pattern)), goal(child))
            for pattern, child in schema.pattern_properties.items()
        ])  # fmt: skip
        for name in names if classes else ():
            names[name] = all_of([names[name], *(extra for members, extra in classes if name in members)])
        rest = ANYTHING if schema.additional_properties is None else goal(schema.additional_properties)
        return MemberRule(names, classes, rest, declares=True)

    def _allowed_names(self, schema: Schema) -> StringSet:
        assert schema.property_names is not None
        return self.bounds.solve(self.nodes.goal(schema.property_names)).strings.regular(self.nodes.meter)

    # -- evaluation ----------------------------------------------------------------------------------------

    @staticmethod
    def _evaluated(schema: Schema, rule: MemberRule) -> tuple[Evaluated, ...]:
        everything = schema.additional_properties is not None
        classes = tuple(keys for keys, _ in rule.classes)
        part = Evaluated(frozenset(rule.names), classes, everything=everything)
        return (part,) if part != Evaluated() else ()

    def others_meet(self, clause: ObjectClause, rest: Conjunction) -> ObjectClause:
        """All members that a clause has not evaluated meet a goal."""
        return ObjectClause((_unevaluated(clause, ANYTHING, rest),), evaluated=ALL_EVALUATED)

    def another_fails(self, clause: ObjectClause, rest: Conjunction) -> ObjectClause:
        """Some member that a clause has not evaluated fails a goal."""
        return ObjectClause(exists=(_unevaluated(clause, NOTHING, self.nodes.negation(rest)),))

    # -- combination ---------------------------------------------------------------------------------------

    def conjunction(self, left: ObjectClause, right: ObjectClause) -> ObjectClause | None:
        """See `merge`."""
        clause = ObjectClause(
            joined(left.rules, right.rules),
            joined(left.required, right.required),
            max(left.low, right.low),
            lower(left.high, right.high),
            joined(left.exists, right.exists),
            joined(left.evaluated, right.evaluated),
        )
        if clause.high is not None and clause.high < max(clause.low, len(clause.required)):
            return None
        ruled = left if left.rules else right
        if clause.rules is ruled.rules:  # the same rules make the same goals
            clause.goals = ruled.goals
        mine, other, dead = left.goals, right.goals, self.bounds.is_unsatisfiable
        for name in clause.required:
            goal = both(mine.get(name) or left.goal(name), other.get(name) or right.goal(name))
            clause.goals[name] = goal
            if dead(goal):
                return None
        return self._witnessed(clause)

    def _is_empty(self, clause: ObjectClause) -> bool:
        """Whether the clause is plainly empty, its ``exists`` left aside."""
        if clause.high is not None and clause.high < max(clause.low, len(clause.required)):
            return True
        return any(self.bounds.is_unsatisfiable(clause.goal(name)) for name in clause.required)

    def _witnessed(self, clause: ObjectClause) -> ObjectClause | None:
        """The clause, its ``exists`` spelled out as far as few members can be the ones; None where none can be."""
        while clause.exists:
            exists: list[MemberRule] = []
            forced: dict[str, Conjunction] | None = None
            for rule in clause.exists:
                if any(self.bounds.meets(clause.goal(name), rule.goal(name)) for name in clause.required):
                    continue
                names = self._possible_witnesses(clause, rule)
                if names is not None and not names:
                    return None
                if names is not None and len(names) == 1 and forced is None:
                    forced = names
                else:
                    exists.append(rule if names is None else self._one_of_members(names))
            if forced is None:
                return _with_exists(clause, _weakest_dropped(exists))
            clause = _with_exists(clause, tuple(exists))
            clause.rules += (MemberRule(forced),)
            clause.required = joined(clause.required, tuple(forced))
            if self._is_empty(clause):
                return None
        return clause

    def _possible_witnesses(self, clause: ObjectClause, rule: MemberRule) -> dict[str, Conjunction] | None:
        """The names, with goals, of members that may follow the rule; None where they are not a list."""
        listing = next((r for r in (rule, *clause.rules) if r.lists_names()), None)
        if listing is None:
            return None
        goals = {name: rule.goal(name) for name in listing.names}
        dead = self.bounds.is_unsatisfiable
        return {name: goal for name, goal in goals.items() if not dead(both(clause.goal(name), goal))}

    def _one_of_members(self, goals: dict[str, Conjunction]) -> MemberRule:
        """The rule that only these members follow; one object for equal goals, so that equal clauses are seen."""
        return self._listed.setdefault(frozenset(goals.items()), MemberRule(goals, (), NOTHING))

    def included(self, left: ObjectClause, right: ObjectClause) -> bool:
        """Whether it is plain that every object of the one clause is in the other; evaluation left aside."""
        if right.low > max(left.low, len(left.required)):
            return False
        if right.high is not None and (left.high is None or left.high > right.high):
            return False
        if left.required != right.required and not set(right.required) <= set(left.required):
            return False
        if (left.rules, left.required) != (right.rules, right.required) and left.order() != right.order():
            return False  # members come in another order, or do when more is said of both
        return all(rule in left.exists or self._has_witness(left, rule) for rule in right.exists) and all(
            rule in left.rules or self._implied(left, rule) for rule in right.rules
        )

    def _has_witness(self, clause: ObjectClause, rule: MemberRule) -> bool:
        """Whether it is plain that every object of the clause has a member that follows the rule."""
        return any(self.bounds.meets(clause.goal(name), rule.goal(name)) for name in clause.required) or any(
            set(other.names.items()) <= {(name, rule.goal(name)) for name in other.names}
            for other in clause.exists
            if other.lists_names()
        )

    def _implied(self, clause: ObjectClause, rule: MemberRule) -> bool:
        if rule.rest or any(goal for _, goal in rule.classes):
            return False
        return all(self.bounds.meets(clause.goal(name), goal) for name, goal in rule.names.items())

    def tags(self, clause: ObjectClause) -> dict[str, frozenset[Hashable]]:
        """The required names whose values are listed, with the lists."""
        found = {}
        for name in clause.required:
            values = self.nodes.listed_values(clause.goal(name))
            if values is not None:
                found[name] = values
        return found


def _unevaluated(clause: ObjectClause, inside: Conjunction, outside: Conjunction) -> MemberRule:
    """What the members must be that a clause has evaluated, and the others."""
    names = dict.fromkeys((name for part in clause.evaluated for name in sorted(part.names)), inside)
    classes = dict.fromkeys(keys for part in clause.evaluated for keys in part.classes)
    return MemberRule(names, tuple((keys, inside) for keys in classes), outside)


def _with_exists(clause: ObjectClause, exists: tuple[MemberRule, ...]) -> ObjectClause:
    return ObjectClause(clause.rules, clause.required, clause.low, clause.high, exists, clause.evaluated)


def _weakest_dropped(rules: list[MemberRule]) -> tuple[MemberRule, ...]:
    """Without the rules that whatever follows another of them follows, too."""
    kept: list[MemberRule] = []
    for rule in sorted(rules, key=lambda rule: (not rule.lists_names(), len(rule.names))):
        if not any(
            other.lists_names() and all(rule.goal(name) == goal for name, goal in other.names.items()) for other in kept
        ):
            kept.append(rule)
    return tuple(kept)


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
