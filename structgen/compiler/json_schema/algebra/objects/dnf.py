"""How cases of objects combine: conjunction, inclusion, and who can be a witness."""

from __future__ import annotations

from collections.abc import Hashable

from ..family import Family, joined, lower
from ..goals import NOTHING, Conjunction, both
from ..nodes import Nodes
from .member_rules import MemberRule
from .object_case import ANY_OBJECT, ObjectCase


class ObjectCombining(Family[ObjectCase]):
    """The half of the family of objects that knows cases, and no keywords."""

    any = ANY_OBJECT

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self._listed: dict[frozenset[tuple[str, Conjunction]], MemberRule] = {}

    def merge(self, left: ObjectCase | None, right: ObjectCase | None) -> ObjectCase | None:
        """The conjunction, None where it is plainly empty."""
        if left is None or right is None:
            return None
        if left is ANY_OBJECT:
            return right
        if right is ANY_OBJECT:
            return left
        case = ObjectCase(
            joined(left.rules, right.rules),
            joined(left.required, right.required),
            max(left.low, right.low),
            lower(left.high, right.high),
            joined(left.exists, right.exists),
            joined(left.evaluated, right.evaluated),
        )
        if case.high is not None and case.high < max(case.low, len(case.required)):
            return None
        for name in case.required:
            mine, other = left.goal(name), right.goal(name)
            goal = case.goals[name] = both(mine, other)
            if self.barren(goal):
                return None
        return self._witnessed(case)

    def is_empty(self, case: ObjectCase) -> bool:
        """Whether the case is plainly empty, its ``exists`` left aside."""
        if case.high is not None and case.high < max(case.low, len(case.required)):
            return True
        return any(self.barren(case.goal(name)) for name in case.required)

    def _witnessed(self, case: ObjectCase) -> ObjectCase | None:
        """The case, its ``exists`` spelled out as far as few members can be the ones; None where none can be."""
        while case.exists:
            exists: list[MemberRule] = []
            forced: dict[str, Conjunction] | None = None
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
            case.required = joined(case.required, tuple(forced))
            if self.is_empty(case):
                return None
        return case

    def _possible_witnesses(self, case: ObjectCase, rule: MemberRule) -> dict[str, Conjunction] | None:
        """The names, with goals, of members that may follow the rule; None where they are not a list."""
        listing = next((r for r in (rule, *case.rules) if r.rest == NOTHING and not r.classes), None)
        if listing is None:
            return None
        goals = {name: rule.goal(name) for name in listing.names}
        return {name: goal for name, goal in goals.items() if not self.barren(both(case.goal(name), goal))}

    def _one_of_members(self, goals: dict[str, Conjunction]) -> MemberRule:
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

    def _meets(self, goal: Conjunction, wanted: Conjunction) -> bool:
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
