"""Rules that say, for every name, what a member of that name must be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....budget import Meter
from ....errors import BudgetExceededError
from ....system.properties import remembered
from ..strings.strings import StringSet
from .goals import ANYTHING, NOTHING, Conjunction, all_of


@dataclass(eq=False, slots=True)
class MemberRule:
    """A function from names to goals; compared by identity.

    Parameters
    ----------
    names:
        Goals of single names. They hold for these names alone, whatever classes the names are in.
    classes:
        Goals of sets of names; a name in several sets has to meet all their goals.
    rest:
        The goal of every other name.
    declares:
        Whether a schema says it, so that the order of its names is that of members. Others come of negations.
    """

    names: Mapping[str, Conjunction]
    classes: tuple[tuple[StringSet, Conjunction], ...] = ()
    rest: Conjunction = ANYTHING
    declares: bool = False
    _found: dict[str, Conjunction] = field(default_factory=dict, init=False)

    def goal(self, name: str) -> Conjunction:
        """The goal of a name."""
        goal = self.names.get(name)
        if goal is not None:
            return goal
        if not self.classes:
            return self.rest
        goal = self._found.get(name)
        if goal is None:
            matched = [goal for keys, goal in self.classes if name in keys]
            goal = self._found[name] = all_of(matched) if matched else self.rest
        return goal

    def lists_names(self) -> bool:
        """Whether only the names that it singles out can follow it."""
        return self.rest == NOTHING and not self.classes


#: So many classes of names at most.
MOST_CLASSES = 256


class NamePartitions:
    """Splits the names into classes that a list of sets does not tell apart; remembers its answers."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    @remembered
    def _outside(self, keys: StringSet) -> StringSet:
        """All other names, without counters: of an object's classes of names only one may count."""
        return keys.complement(self.meter).regular(self.meter)

    @remembered
    def _shared(self, keys: StringSet, others: StringSet) -> StringSet:
        return keys.intersect(others, self.meter)

    @remembered
    def split(self, sets: tuple[StringSet, ...], outside: bool) -> list[tuple[StringSet, int]]:
        """Disjoint classes, each with the bits of the sets that it lies in; the one in none only if asked for."""
        if not sets:
            return [(StringSet.ANY, 0)] if outside else []
        parts: list[tuple[StringSet, int]] = []
        for k, new in enumerate(sets):
            self.meter.check_time("splitting property names into classes")
            if len(parts) > MOST_CLASSES:
                raise BudgetExceededError(
                    f"overlapping patterns split the property names into more than {MOST_CLASSES} classes",
                    where="splitting property names into classes",
                    remedy="Use fewer patternProperties that overlap.",
                )
            parts = self._refined(parts, new, 1 << k)
        if outside:
            rest = StringSet.ANY
            for keys in sets:
                rest = self._shared(rest, self._outside(keys))
            if not rest.is_empty():
                parts.append((rest, 0))
        return parts

    def _refined(self, parts: list[tuple[StringSet, int]], new: StringSet, bit: int) -> list[tuple[StringSet, int]]:
        """The parts, each cut in two by a further set, and what that has beside them."""
        refined: list[tuple[StringSet, int]] = []
        fresh = new
        for part, bits in parts:
            shared = self._shared(part, new)
            if shared.is_empty():
                refined.append((part, bits))
                continue
            refined.append((shared, bits | bit))
            without = self._shared(part, self._outside(new))
            if not without.is_empty():
                refined.append((without, bits))
            fresh = self._shared(fresh, self._outside(part))
        if not fresh.is_empty():
            refined.append((fresh, bit))
        return refined
