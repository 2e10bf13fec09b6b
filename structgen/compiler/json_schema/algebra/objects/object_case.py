"""A case of objects: a conjunction of what keywords say about members, before it is brought to a shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...strings.strings import StringSet
from ..goals import NOTHING, Conjunction, all_of
from .member_rules import MemberRule


class Evaluated(NamedTuple):
    """The members that successful subschemas have evaluated: some names, some sets of them, or everything."""

    names: frozenset[str]
    classes: tuple[StringSet, ...]
    everything: bool


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
        self.goals: dict[str, Conjunction] = {}  # of the names that were asked for

    def goal(self, name: str) -> Conjunction:
        """What a member of this name must be."""
        goal = self.goals.get(name)
        if goal is None:
            exists = name.isascii() or name in StringSet.ANY  # no text has a name with a lone surrogate
            goal = self.goals[name] = all_of([rule.goal(name) for rule in self.rules]) if exists else NOTHING
        return goal


#: Every object.
ANY_OBJECT = ObjectCase()


def absent(*names: str) -> ObjectCase:
    """Objects without members of these names."""
    return ObjectCase((MemberRule(dict.fromkeys(names, NOTHING)),))


def names_of(rules: Iterable[MemberRule]) -> list[str]:
    """The names that the rules single out, in order of appearance."""
    return list(dict.fromkeys(name for rule in rules for name in rule.names))
