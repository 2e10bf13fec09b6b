"""``uniqueItems`` and its negation: what follows where the items have finitely many values."""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import UnsupportedError
from ..read.document import Json
from ..read.equality import equality_key
from .array_cases import ArrayCase, Counting, ItemRule
from .assertions import Assertions
from .expansion import Expansion
from .goals import NOTHING, Conjunction

#: So many values of an item are listed at most.
MOST_LISTED = 64

#: Of so many positions at most it is worked out whether they can all differ.
_MOST_MATCHED = 256


class Distinct:
    """Rewrites the cases of arrays whose items must, or must not, all differ."""

    def __init__(self, expansion: Expansion, assertions: Assertions) -> None:
        self.expansion = expansion
        self.nodes = expansion.nodes
        self.assertions = assertions

    def settled(self, case: ArrayCase) -> list[ArrayCase]:
        """The case as a union of cases without ``repeated``, its length within what distinct items allow."""
        if case.repeated is not None:
            return self._repeated(case, case.repeated)
        return self._unique(case) if case.unique else [case]

    def _repeated(self, case: ArrayCase, where: str) -> list[ArrayCase]:
        """Some value comes twice: one case for each value."""
        plain = case._replace(repeated=None)
        if case.unique:
            return []
        values = self._listed(self._goals(case))
        if values is None:
            self.assertions.relax(
                where,
                UnsupportedError(
                    "arrays in which some items are equal can't be told from others,"
                    " as the items are not of finitely many values",
                    where=where,
                    remedy="List the items' values in an enum, or remove the negation of uniqueItems.",
                ),
            )
            return [plain]
        counts = [Counting(ItemRule((), self.nodes.literal(value)), 2, None) for value in values]
        cases = [self.expansion.arrays.merge(plain, ArrayCase(counts=(count,))) for count in counts]
        return [merged for merged in cases if merged is not None]

    def _unique(self, case: ArrayCase) -> list[ArrayCase]:
        """Not longer than there are values; none where the first items can't all differ."""
        goals = self._goals(case)
        values = self._listed(goals)
        if values is not None:
            case = case._replace(high=len(values) if case.high is None else min(case.high, len(values)))
        if case.high is not None and case.low > case.high:
            return []
        if case.low > 1 and len(goals) > 1 and not self._can_differ(case):
            return []
        return [case]

    @staticmethod
    def _goals(case: ArrayCase) -> list[Conjunction]:
        """What the items must be: of each position with a rule of its own, and beyond."""
        known = max((len(rule.prefix) for rule in case.rules), default=0)
        positions = known + 1 if case.high is None else min(known + 1, case.high)
        return [case.goal(position) for position in range(positions)]

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
        if len(goal) == 1 and (values := self.nodes.literals(*goal)) is not None:
            return values
        outline = self.expansion.outline(goal)
        if outline.arrays or outline.objects:
            return None
        numbers, strings = outline.numbers.values(MOST_LISTED), outline.strings.texts(MOST_LISTED)
        if numbers is None or strings is None:
            return None
        return [*([None] if outline.null else []), *sorted(outline.booleans), *numbers, *strings]

    def _can_differ(self, case: ArrayCase) -> bool:
        """Whether the items that must be there can all differ: a matching of positions and values (Kuhn 1955)."""
        if case.low > _MOST_MATCHED:
            return True
        options: list[list[object]] = []
        for position in range(case.low):
            found = self.values(case.goal(position))
            if found is not None:  # the others have a value to spare, whatever is taken
                options.append([equality_key(value) for value in found])
        taken: dict[object, int] = {}
        return all(_place(position, options, taken) for position in range(len(options)))


def _place(position: int, options: list[list[object]], taken: dict[object, int]) -> bool:
    """Find a value for a position, moving others to other values where that helps; ``taken`` is updated."""
    came_from: dict[object, tuple[int, object]] = {}
    queue: list[int] = [position]
    reached_by: dict[int, object] = {position: None}
    for asking in queue:
        for value in options[asking]:
            if value in came_from:
                continue
            came_from[value] = (asking, reached_by[asking])
            if value not in taken:
                step: object = value
                while step is not None:
                    owner, before = came_from[step]
                    taken[step] = owner
                    step = before
                return True
            holder = taken[value]
            reached_by[holder] = value
            queue.append(holder)
    return False
