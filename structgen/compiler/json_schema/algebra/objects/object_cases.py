"""What the keywords of objects come to, as cases; and what violates them."""

from __future__ import annotations

from typing import Any

from ...read.document import Schema, SchemaId
from ...strings.strings import StringSet
from ..assertions import OBJECT_FIELDS, Assertions
from ..family import Mode
from ..goals import ANYTHING, NOTHING, Conjunction, all_of
from ..nodes import Nodes
from ..outline import Extent, TypeBounds
from .dnf import ObjectCombining
from .member_rules import MemberRule
from .object_case import Evaluated, ObjectCase, absent

#: So many required names are supposed to be right in a case where a later one is wrong; with all of them, the cases
#: of a long list would take quadratic space.
_MOST_SUPPOSED = 16


class ObjectFamily(ObjectCombining):
    """How cases of objects come from keywords."""

    unevaluated = "unevaluated_properties"

    def __init__(self, nodes: Nodes, assertions: Assertions) -> None:
        super().__init__(nodes)
        self.assertions = assertions
        self._rules: dict[SchemaId, MemberRule] = {}

    @staticmethod
    def extent(outline: TypeBounds) -> Extent:
        """How many of the objects an outline allows."""
        return outline.objects

    def own(self, node: SchemaId, mode: Mode) -> list[list[ObjectCase]]:
        """What the node's own keywords say: the conjunction of unions of cases."""
        schema, names = self.nodes.schemas[node], self.nodes.said(node)
        factors: list[list[ObjectCase]] = []
        if names & OBJECT_FIELDS:
            rule = self.rule(node)
            rules: tuple[MemberRule, ...] = (rule,) if rule.names or rule.classes or rule.rest else ()
            if schema.property_names is not None:
                rules += (MemberRule({}, ((self._allowed_names(schema), ANYTHING),), NOTHING),)
            evaluated = () if mode is Mode.PLAIN else self._evaluated(schema, rule)
            required = tuple(dict.fromkeys(schema.required))
            case = ObjectCase(rules, required, schema.min_properties, schema.max_properties, (), evaluated)
            factors.append([] if self.is_empty(case) else [case])
        if schema.enum is not None:
            values = self.nodes.meter.each(schema.enum, "reading an enumeration")
            factors.append([self._equal(value) for value in values if isinstance(value, dict)])
        return factors + self._dependent_names(schema)

    @staticmethod
    def _dependent_names(schema: Schema) -> list[list[ObjectCase]]:
        """``dependentRequired``: names that need the same others are taken together.

        Where a single name is needed, the cases tell whether it is there; so they multiply with the number of such
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
                factors.append([ObjectCase(required=needed), absent(*needed, *names)])
            else:
                factors += [[absent(name), ObjectCase(required=(name, *needed))] for name in names]
        return factors

    def violations(self, node: SchemaId) -> list[ObjectCase]:
        """What violates one of the node's own keywords.

        Required names come first, and every case supposes that the first of those before it were there and right.
        Then cases of different schemas exclude each other where a required name tells the schemas apart.
        """
        schema, negation = self.nodes.schemas[node], self.nodes.negation
        rule = self.rule(node)
        cases: list[ObjectCase] = []
        right: dict[str, Conjunction] = {}
        for name in sorted(dict.fromkeys(schema.required), key=lambda name: not self._tells_apart(rule.goal(name))):
            # Absent, or there and wrong: together, that is one goal of an optional member.
            wrong = MemberRule({**right, name: negation(rule.goal(name))})
            cases.append(ObjectCase((wrong,), tuple(right)))
            if len(right) < _MOST_SUPPOSED:
                right[name] = rule.goal(name)
        supposed = ObjectCase((MemberRule(right),) if any(right.values()) else (), tuple(right))
        others = self._member_violations(schema, rule) + self._counting_violations(schema)
        return cases + [case for other in others if (case := self.merge(supposed, other)) is not None]

    def _tells_apart(self, goal: Conjunction) -> bool:
        """Whether the goal lists its values."""
        return goal != NOTHING and any(atom >= 0 and self.nodes.schemas[atom].enum is not None for atom in goal)

    def _member_violations(self, schema: Schema, rule: MemberRule) -> list[ObjectCase]:
        negation = self.nodes.negation
        cases = [
            ObjectCase((MemberRule({name: negation(goal)}),), (name,))
            for name, goal in rule.names.items()
            if goal and name not in schema.required
        ]
        # A name in several sets violates any one of their goals.
        witnesses = [MemberRule({}, ((keys, negation(goal)),), NOTHING) for keys, goal in rule.classes if goal]
        if rule.rest:
            outside = tuple((keys, NOTHING) for keys, _ in rule.classes)
            witnesses.append(MemberRule(dict.fromkeys(rule.names, NOTHING), outside, negation(rule.rest)))
        return cases + [ObjectCase(exists=(witness,)) for witness in witnesses]

    def _counting_violations(self, schema: Schema) -> list[ObjectCase]:
        cases = []
        if schema.property_names is not None:
            cases.append(ObjectCase(exists=(MemberRule({}, ((self._allowed_names(schema), NOTHING),)),)))
        if schema.min_properties > 0:
            cases.append(ObjectCase(high=schema.min_properties - 1))
        if schema.max_properties is not None:
            cases.append(ObjectCase(low=schema.max_properties + 1))
        for name, others in schema.dependent_required.items():
            cases += [ObjectCase((MemberRule({other: NOTHING}),), (name,)) for other in dict.fromkeys(others)]
        return cases

    def unequal(self, value: dict[str, Any]) -> list[ObjectCase]:
        """Every object but this one."""
        goals = {name: self.nodes.literal(item) for name, item in value.items()}
        cases = [ObjectCase((MemberRule({name: self.nodes.negation(goal)}),)) for name, goal in goals.items()]
        return [*cases, ObjectCase(exists=(MemberRule(dict.fromkeys(goals, NOTHING)),))]

    def listed(self, schema: Schema) -> list[Any]:
        """The objects in the schema's ``enum``."""
        return [value for value in schema.enum or () if isinstance(value, dict)]

    def dependents(self, schema: Schema) -> list[tuple[ObjectCase, list[ObjectCase], Conjunction]]:
        """For each dependent schema: the case that it does not matter in, those that it does, and its goal."""
        needing: dict[Conjunction, list[str]] = {}
        for name, child in schema.dependent_schemas.items():
            needing.setdefault(self.nodes.goal(child), []).append(name)
        return [
            (absent(*names), [ObjectCase(required=(name,)) for name in names], goal)
            for goal, names in needing.items()
            if goal
        ]

    def _equal(self, value: dict[str, Any]) -> ObjectCase:
        goals = {name: self.nodes.literal(item) for name, item in value.items()}
        return ObjectCase((MemberRule(goals, (), NOTHING),), tuple(goals))

    def rule(self, node: SchemaId) -> MemberRule:
        """``properties``, ``patternProperties`` and ``additionalProperties`` of one subschema."""
        rule = self._rules.get(node)
        if rule is not None:
            return rule
        schema, goal = self.nodes.schemas[node], self.nodes.goal
        classes = tuple(
            (self.assertions.keys(pattern, f"{schema.pointer}/patternProperties/{_escaped(pattern)}"), goal(child))
            for pattern, child in schema.pattern_properties.items()
        )
        names = {}
        for name, child in schema.properties.items():
            matched = [extra for keys, extra in classes if name in keys]
            names[name] = all_of([goal(child), *matched]) if matched else goal(child)
        rest = ANYTHING if schema.additional_properties is None else goal(schema.additional_properties)
        rule = self._rules[node] = MemberRule(names, classes, rest)
        return rule

    def _allowed_names(self, schema: Schema) -> StringSet:
        assert schema.property_names is not None
        return self.outlines(self.nodes.goal(schema.property_names)).strings

    # Evaluation

    @staticmethod
    def _evaluated(schema: Schema, rule: MemberRule) -> tuple[Evaluated, ...]:
        everything = schema.additional_properties is not None
        classes = tuple(keys for keys, _ in rule.classes)
        if not (everything or classes or rule.names):
            return ()
        return (Evaluated(frozenset(rule.names), classes, everything),)

    def closed(self, case: ObjectCase, rest: Conjunction) -> ObjectCase | None:
        """The case under ``unevaluatedProperties``: all that has not been evaluated must meet a goal."""
        everything = (Evaluated(frozenset(), (), True),)
        if any(part.everything for part in case.evaluated):
            return case
        rule = self._unevaluated(case, ANYTHING, rest)
        return self.merge(ObjectCase(evaluated=everything), self.merge(case, ObjectCase((rule,))))

    def unclosed(self, case: ObjectCase, rest: Conjunction) -> ObjectCase | None:
        """The case, with a member that violates ``unevaluatedProperties``."""
        if any(part.everything for part in case.evaluated) or not rest:
            return None
        rule = self._unevaluated(case, NOTHING, self.nodes.negation(rest))
        return self.merge(case, ObjectCase(exists=(rule,)))

    @staticmethod
    def _unevaluated(case: ObjectCase, inside: Conjunction, outside: Conjunction) -> MemberRule:
        names = dict.fromkeys((name for part in case.evaluated for name in sorted(part.names)), inside)
        classes = dict.fromkeys(keys for part in case.evaluated for keys in part.classes)
        return MemberRule(names, tuple((keys, inside) for keys in classes), outside)


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
