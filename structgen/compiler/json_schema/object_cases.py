"""Cases of objects: conjunctions of what keywords say about members, before they are brought to a shape."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from .assertions import OBJECT_FIELDS, Assertions
from .family import Family, Mode
from .goals import ANYTHING, NOTHING, Goal, all_of, both
from .member_rules import MemberRule
from .nodes import Nodes
from .outline import Extent, Outline
from .schema import Schema, SchemaId
from .strings import StringSet


class Evaluated:
    """The members that a successful subschema has evaluated, for ``unevaluatedProperties``; compared by value."""

    __slots__ = ("classes", "everything", "names")

    def __init__(self, names: frozenset[str], classes: tuple[StringSet, ...], everything: bool) -> None:
        self.names = names
        self.classes = classes
        self.everything = everything


class ObjectCase:
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

    __slots__ = ("evaluated", "exists", "goals", "high", "low", "required", "rules")

    def __init__(
        self,
        rules: tuple[MemberRule, ...] = (),
        required: tuple[str, ...] = (),
        low: int = 0,
        high: int | None = None,
        exists: tuple[MemberRule, ...] = (),
        evaluated: tuple[Evaluated, ...] = (),
    ) -> None:
        self.rules = rules
        self.required = required
        self.low = low
        self.high = high
        self.exists = exists
        self.evaluated = evaluated
        self.goals: dict[str, Goal] = {}  # of the names that were asked for

    def goal(self, name: str) -> Goal:
        """What a member of this name must be."""
        goal = self.goals.get(name)
        if goal is None:
            goal = self.goals[name] = all_of([rule.goal(name) for rule in self.rules])
        return goal

    def key(self) -> Any:
        """Equal for cases that are the same conjunction."""
        return (
            frozenset(self.rules),
            frozenset(self.required),
            self.low,
            self.high,
            frozenset(self.exists),
            (frozenset(self.evaluated)),
        )


_ANY = ObjectCase()

#: So many required names are supposed to be right in a case where a later one is wrong; with all of them, the cases
#: of a long list would take quadratic space.
_MOST_SUPPOSED = 16


class ObjectFamily(Family[ObjectCase]):
    """How object cases come from keywords, and how they combine."""

    type_name = "object"
    any = _ANY
    unevaluated = "unevaluated_properties"
    fields = OBJECT_FIELDS

    def __init__(self, nodes: Nodes, assertions: Assertions) -> None:
        self.nodes = nodes
        self.assertions = assertions
        self._rules: dict[SchemaId, MemberRule] = {}
        self._listed: dict[frozenset[tuple[str, Goal]], MemberRule] = {}

    @staticmethod
    def extent(outline: Outline) -> Extent:
        """How many of the objects an outline allows."""
        return outline.objects

    # From keywords

    def own(self, node: SchemaId, mode: Mode) -> list[list[ObjectCase]]:
        """What the node's own keywords say: the conjunction of unions of cases."""
        schema, names = self.nodes.schemas[node], self.nodes.said(node)
        factors: list[list[ObjectCase]] = []
        if names & OBJECT_FIELDS:
            rule = self.rule(node)
            rules = (rule,) if rule.names or rule.classes or rule.rest else ()
            if schema.property_names is not None:
                rules += (MemberRule({}, ((self._allowed_names(schema), ANYTHING),), NOTHING),)
            evaluated = () if mode is Mode.PLAIN else self._evaluated(schema, rule)
            required = tuple(dict.fromkeys(schema.required))
            case = ObjectCase(rules, required, schema.min_properties, schema.max_properties, (), evaluated)
            factors.append([] if self._is_empty(case) else [case])
        if schema.enum is not None:
            factors.append([self._equal(value) for value in schema.enum if isinstance(value, dict)])
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
                factors.append([ObjectCase(required=needed), _absent(*needed, *names)])
            else:
                factors += [[_absent(name), ObjectCase(required=(name, *needed))] for name in names]
        return factors

    def violations(self, node: SchemaId) -> list[ObjectCase]:
        """What violates one of the node's own keywords.

        Required names come first, and every case supposes that the first of those before it were there and right.
        Then cases of different schemas exclude each other where a required name tells the schemas apart.
        """
        schema, negation = self.nodes.schemas[node], self.nodes.negation
        rule = self.rule(node)
        cases: list[ObjectCase] = []
        right: dict[str, Goal] = {}
        for name in sorted(dict.fromkeys(schema.required), key=lambda name: not self._tells_apart(rule.goal(name))):
            # Absent, or there and wrong: together, that is one goal of an optional member.
            wrong = MemberRule({**right, name: negation(rule.goal(name))})
            cases.append(ObjectCase((wrong,), tuple(right)))
            if len(right) < _MOST_SUPPOSED:
                right[name] = rule.goal(name)
        supposed = ObjectCase((MemberRule(right),) if any(right.values()) else (), tuple(right))
        others = self._member_violations(schema, rule) + self._counting_violations(schema)
        return cases + [case for other in others if (case := self.merge(supposed, other)) is not None]

    def _tells_apart(self, goal: Goal) -> bool:
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

    def dependents(self, schema: Schema) -> list[tuple[ObjectCase, list[ObjectCase], Goal]]:
        """For each dependent schema: the case that it does not matter in, those that it does, and its goal."""
        needing: dict[Goal, list[str]] = {}
        for name, child in schema.dependent_schemas.items():
            needing.setdefault(self.nodes.goal(child), []).append(name)
        return [
            (_absent(*names), [ObjectCase(required=(name,)) for name in names], goal)
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

    def closed(self, case: ObjectCase, rest: Goal) -> ObjectCase | None:
        """The case under ``unevaluatedProperties``: all that has not been evaluated must meet a goal."""
        everything = (Evaluated(frozenset(), (), True),)
        if any(part.everything for part in case.evaluated):
            return case
        rule = self._unevaluated(case, ANYTHING, rest)
        return self.merge(ObjectCase(evaluated=everything), self.merge(case, ObjectCase((rule,))))

    def unclosed(self, case: ObjectCase, rest: Goal) -> ObjectCase | None:
        """The case, with a member that violates ``unevaluatedProperties``."""
        if any(part.everything for part in case.evaluated) or not rest:
            return None
        rule = self._unevaluated(case, NOTHING, self.nodes.negation(rest))
        return self.merge(case, ObjectCase(exists=(rule,)))

    @staticmethod
    def _unevaluated(case: ObjectCase, inside: Goal, outside: Goal) -> MemberRule:
        names = dict.fromkeys((name for part in case.evaluated for name in sorted(part.names)), inside)
        classes = dict.fromkeys(keys for part in case.evaluated for keys in part.classes)
        return MemberRule(names, tuple((keys, inside) for keys in classes), outside)

    # Combination

    def merge(self, left: ObjectCase | None, right: ObjectCase | None) -> ObjectCase | None:
        """The conjunction, None where it is plainly empty."""
        if left is None or right is None:
            return None
        if left is _ANY:
            return right
        if right is _ANY:
            return left
        case = ObjectCase(
            _joined(left.rules, right.rules),
            _joined(left.required, right.required),
            max(left.low, right.low),
            _lower(left.high, right.high),
            _joined(left.exists, right.exists),
            _joined(left.evaluated, right.evaluated),
        )
        if case.high is not None and case.high < max(case.low, len(case.required)):
            return None
        for name in case.required:
            mine, other = left.goal(name), right.goal(name)
            goal = case.goals[name] = both(mine, other)
            if self.barren(goal):
                return None
        return self._witnessed(case)

    def _is_empty(self, case: ObjectCase) -> bool:
        if case.high is not None and case.high < max(case.low, len(case.required)):
            return True
        return any(self.barren(case.goal(name)) for name in case.required)

    def _witnessed(self, case: ObjectCase) -> ObjectCase | None:
        """The case, its ``exists`` spelled out as far as few members can be the ones; None where none can be."""
        while case.exists:
            exists: list[MemberRule] = []
            forced: dict[str, Goal] | None = None
            for rule in case.exists:
                if any(self._meets(case.goal(name), rule.goal(name)) for name in case.required):
                    continue
                names = self._possible_witnesses(case, rule)
                if names is not None and not names:
                    return None
                if names is not None and len(names) == 1 and forced is None:
                    forced = names
                else:
                    exists.append(rule if names is None else self._one_of_members(names))
            if forced is None:
                return _with_exists(case, _weakest_dropped(exists))
            case = _with_exists(case, tuple(exists))
            case.rules += (MemberRule(forced),)
            case.required = _joined(case.required, tuple(forced))
            if self._is_empty(case):
                return None
        return case

    def _possible_witnesses(self, case: ObjectCase, rule: MemberRule) -> dict[str, Goal] | None:
        """The names, with goals, of members that may follow the rule; None where they are not a list."""
        listing = next((r for r in (rule, *case.rules) if r.rest == NOTHING and not r.classes), None)
        if listing is None:
            return None
        goals = {name: rule.goal(name) for name in listing.names}
        return {name: goal for name, goal in goals.items() if not self.barren(both(case.goal(name), goal))}

    def _one_of_members(self, goals: dict[str, Goal]) -> MemberRule:
        """The rule that only these members follow; one object for equal goals, so that equal cases are seen."""
        key = frozenset(goals.items())
        if key not in self._listed:
            self._listed[key] = MemberRule(goals, (), NOTHING)
        return self._listed[key]

    def included(self, left: ObjectCase, right: ObjectCase) -> bool:
        """Whether it is plain that every object of the one case is in the other; evaluation left aside."""
        if right.low > max(left.low, len(left.required)):
            return False
        if right.high is not None and (left.high is None or left.high > right.high):
            return False
        if not set(right.required) <= set(left.required):
            return False
        return all(rule in left.exists or self._has_witness(left, rule) for rule in right.exists) and all(
            rule in left.rules or self._implied(left, rule) for rule in right.rules
        )

    def _has_witness(self, case: ObjectCase, rule: MemberRule) -> bool:
        """Whether it is plain that every object of the case has a member that follows the rule."""
        return any(self._meets(case.goal(name), rule.goal(name)) for name in case.required) or any(
            set(other.names.items()) <= {(name, rule.goal(name)) for name in other.names}
            for other in case.exists
            if other.rest == NOTHING and not other.classes
        )

    def _implied(self, case: ObjectCase, rule: MemberRule) -> bool:
        if rule.rest or any(goal for _, goal in rule.classes):
            return False
        return all(self._meets(case.goal(name), goal) for name, goal in rule.names.items())

    def _meets(self, goal: Goal, wanted: Goal) -> bool:
        return self.nodes.meets(goal, wanted, self.barren)

    def tags(self, case: ObjectCase) -> dict[str, frozenset[Hashable]]:
        """The required names whose values are listed, with the lists."""
        found = {}
        for name in case.required:
            values = self.nodes.listed_values(case.goal(name))
            if values is not None:
                found[name] = values
        return found

    def same_evaluation(self, left: ObjectCase, right: ObjectCase) -> bool:
        """Whether the two cases have evaluated the same."""
        return left.evaluated == right.evaluated


def _with_exists(case: ObjectCase, exists: tuple[MemberRule, ...]) -> ObjectCase:
    return ObjectCase(case.rules, case.required, case.low, case.high, exists, case.evaluated)


def _weakest_dropped(rules: list[MemberRule]) -> tuple[MemberRule, ...]:
    """Without the rules that whatever follows another of them follows, too."""
    kept: list[MemberRule] = []
    for rule in sorted(rules, key=lambda rule: (bool(rule.classes) or rule.rest != NOTHING, len(rule.names))):
        if not any(
            other.rest == NOTHING
            and not other.classes
            and all(rule.goal(name) == goal for name, goal in other.names.items())
            for other in kept
        ):
            kept.append(rule)
    return tuple(kept)


def _absent(*names: str) -> ObjectCase:
    return ObjectCase((MemberRule(dict.fromkeys(names, NOTHING)),))


def _joined(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    if not right:
        return left
    if not left:
        return right
    return tuple(dict.fromkeys(left + right))


def _lower(left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")


def names_of(rules: Iterable[MemberRule]) -> Sequence[str]:
    """The names that the rules single out, in order of appearance."""
    return list(dict.fromkeys(name for rule in rules for name in rule.names))
