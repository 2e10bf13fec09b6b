"""``uniqueItems`` and its negation: what follows where the items have finitely many values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count as numbers_from

from ....errors import UnsupportedError
from ..read.document import Json
from ..read.equality import equality_key
from .arrays import ArrayClause, Counting, ItemRule
from .expansion import Expansion
from .goals import NOTHING, Conjunction, all_of

#: So many values of an item are listed at most.
MOST_LISTED = 64

#: Of so many positions at most it is worked out whether they can all differ.
_MOST_MATCHED = 256

#: Of so many sets of values at most it is worked out whether they can be counted right.
_MOST_SETS = 1 << 12

_DOING = "counting items that differ"


class Distinct:
    """Rewrites the clauses of arrays whose items must, or must not, all differ."""

    def __init__(self, expansion: Expansion) -> None:
        self.expansion = expansion
        self.nodes = expansion.nodes

    def settled(self, clause: ArrayClause) -> list[ArrayClause]:
        """The clause as a union of clauses without ``repeated``, its length within what distinct items allow."""
        if clause.repeated is not None:
            return self._repeated(clause, clause.repeated)
        return self._unique(clause) if clause.unique else [clause]

    def _repeated(self, clause: ArrayClause, where: str) -> list[ArrayClause]:
        """Some value comes twice: one clause for each value."""
        plain = clause._replace(repeated=None)
        if clause.unique:
            return []
        values = self._listed(self._goals(clause))
        if values is None:
            self.expansion.bounds.assertions.relax(
                where,
                UnsupportedError(
                    "arrays in which some items are equal can't be told from others,"
                    " as the items are not of finitely many values",
                    where=where,
                    remedy="List the items' values in an enum, or remove the negation of uniqueItems.",
                ),
            )
            return [plain]
        counts = [Counting(ItemRule((), self.nodes.constant(value)), 2, None) for value in values]
        clauses = [self.expansion.arrays.merge(plain, ArrayClause(counts=(count,))) for count in counts]
        return [merged for merged in clauses if merged is not None]

    def _unique(self, clause: ArrayClause) -> list[ArrayClause]:
        """Not longer than there are values; none where the first items can't all differ."""
        goals = self._goals(clause)
        values = self._listed(goals)
        if values is not None:
            clause = clause._replace(high=len(values) if clause.high is None else min(clause.high, len(values)))
        if clause.high is not None and clause.low > clause.high:
            return []
        if clause.low > 1 and len(goals) > 1 and not self._can_differ(clause):
            return []
        if clause.counts and values is not None and not self._can_count(clause):
            return []
        return [clause]

    @staticmethod
    def _goals(clause: ArrayClause) -> list[Conjunction]:
        """What the items must be: of each position with a rule of its own, and beyond."""
        known = max((len(rule.prefix) for rule in clause.rules), default=0)
        positions = known + 1 if clause.high is None else min(known + 1, clause.high)
        return [clause.goal(position) for position in range(positions)]

    def _listed(self, goals: Sequence[Conjunction]) -> list[Json] | None:
        """All values of some goals, each once; None if there may be more than can be listed."""
        values: dict[object, Json] = {}
        for goal in dict.fromkeys(goals):
            found = self.values(goal)
            if found is None:
                return None
            values.update((equality_key(value), value) for value in found)
            if len(values) > MOST_LISTED:
                return None
        return list(values.values())

    def values(self, goal: Conjunction) -> list[Json] | None:
        """The values of a goal; None if there may be more than can be listed."""
        if goal == NOTHING:
            return []
        if len(goal) == 1 and (values := self.nodes.constants(*goal)) is not None:
            return values
        bounds = self.expansion.bounds.solve(goal)
        if bounds.arrays or bounds.objects:
            return None
        numbers, strings = bounds.numbers.values(MOST_LISTED), bounds.strings.texts(MOST_LISTED)
        if numbers is None or strings is None:
            return None
        return [*([None] if bounds.null else []), *sorted(bounds.booleans), *numbers, *strings]

    def _can_differ(self, clause: ArrayClause) -> bool:
        """Whether the items that must be there can all differ: a matching of positions and values (Kuhn 1955)."""
        if clause.low > _MOST_MATCHED:
            return True
        options: list[list[object]] = []
        for position in range(clause.low):
            found = self.values(clause.goal(position))
            if found is not None:  # the others have a value to spare, whatever is taken
                options.append([equality_key(value) for value in found])
        taken: dict[object, int] = {}
        return all(_place(position, options, taken, set()) for position in range(len(options)))

    def _can_count(self, clause: ArrayClause) -> bool:
        """Whether items of few values can all differ and come in such numbers of each kind; in doubt, True."""
        beyond = max(len(rule.prefix) for rule in (*clause.rules, *(count.rule for count in clause.counts)))
        kinds: list[dict[object, tuple[bool, ...]]] = []  # by position: of each value, which counts have it
        for position in range(beyond + 1):
            goal = clause.goal(position)
            counted = [all_of([goal, count.rule.goal(position)]) for count in clause.counts]
            all_, *those = [self.values(each) for each in (goal, *counted)]
            if all_ is None or None in those:
                return True
            keys = [{equality_key(value) for value in found or ()} for found in those]
            kinds.append({key: tuple([key in each for each in keys]) for key in map(equality_key, all_)})
        here = {(frozenset[object](), (0,) * len(clause.counts))}
        meter = self.expansion.bounds.assertions.meter
        for length in numbers_from():
            if length >= clause.low and any(_are_right(counts, clause.counts) for _, counts in here):
                return True
            known = kinds[min(length, beyond)]
            here = {
                (seen | {key}, tuple([n + is_counted for n, is_counted in zip(counts, known[key], strict=True)]))
                for seen, counts in meter.each(here, _DOING)
                for key in known.keys() - seen
            }
            if not here or len(here) > _MOST_SETS or length == clause.high:
                break
        return len(here) > _MOST_SETS


def _are_right(counts: Sequence[int], bounds: Sequence[Counting]) -> bool:
    return all(
        bound.low <= count and (bound.high is None or count <= bound.high)
        for count, bound in zip(counts, bounds, strict=True)
    )


def _place(position: int, options: list[list[object]], taken: dict[object, int], tried: set[object]) -> bool:
    """Find a value for a position, moving others to other values where that helps; ``taken`` is updated."""
    for value in options[position]:
        if value not in tried:
            tried.add(value)
            if value not in taken or _place(taken[value], options, taken, tried):
                taken[value] = position
                return True
    return False
