"""Products, differences and unions of cases, kept small."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic

from ....budget import Meter
from ....errors import BudgetExceededError
from .family import Case, Family, Mode

#: Beyond so many cases of one goal, a definition is refused: each would be an alternative of the guide.
MOST_CASES = 4_096

#: Inclusion is looked for among so many cases at most; it takes quadratic time.
_MOST_COMPARED = 64

#: A union whose members have been compared before is compared again, in a product, up to this size.
_FEW = 16


class Combining(Generic[Case]):
    """Combines the cases of one goal.

    Parameters
    ----------
    family:
        Arrays or objects.
    number:
        The family's, in questions.
    mode:
        What the cases have to say of evaluation.
    context:
        What is known to hold beside the goal. It is no part of the cases; those that contradict it are dropped, and
        alternatives that it keeps apart count as disjoint.
    where:
        The goal's JSON pointer, for messages.
    """

    def __init__(
        self, family: Family[Case], number: int, mode: Mode, context: Case, where: str, meter: Meter
    ) -> None:
        self.family = family
        self.number = number
        self.mode = mode
        self.context = context
        self.where = where
        self.doing = f"combining the alternatives of {where}"
        self.meter = meter

    def within(self, cases: list[Case]) -> Case:
        """The context for what these cases are multiplied with."""
        if len(cases) != 1:
            return self.context
        context = self.family.merge(self.context, cases[0])
        return self.context if context is None else context

    def product(self, left: list[Case], right: list[Case]) -> list[Case]:
        """The conjunction of two unions."""
        family = self.family
        if len(left) == 1 and left[0] is family.any:
            return self.possible(right)
        if len(right) == 1 and right[0] is family.any:
            return left
        self.check(len(left) * len(right) >> 4)
        merge = family.merge
        every = self.meter.each(left, self.doing, every=1)
        cases = self.possible([case for a in every for b in right if (case := merge(a, b)) is not None])
        self.check(len(cases))
        if len(cases) > _FEW and (len(left) == 1 or len(right) == 1):
            return cases
        return self.simplified(cases)

    def possible(self, cases: list[Case]) -> list[Case]:
        """Those that the context allows."""
        context, merge = self.context, self.family.merge
        if context is self.family.any:
            return cases
        return [case for case in self.meter.each(cases, self.doing) if merge(context, case) is not None]

    def difference(self, case: Case, without: Sequence[Case], violations: list[Case]) -> list[Case]:
        """A case without those of a union; ``violations`` is what the union leaves out."""
        merge = self.family.merge
        inside = merge(self.context, case)
        if inside is None:
            return []
        if all(merge(inside, other) is None for other in without):
            return [case]
        if any(self.family.included(inside, other) for other in violations):
            return [case]
        return self.product([case], violations)

    def rivals(self, branches: list[list[Case]]) -> list[list[int]]:
        """For each branch the others that it may overlap with, as far as a member that they all have can tell."""
        everyone = range(len(branches))
        tags = [[self._tags(case) for case in branch] for branch in branches]
        shared = set.intersection(*(set(found) for branch in tags for found in branch)) if all(tags) else set()
        for name in shared:
            owners: dict[Hashable, list[int]] = {}
            for k, branch in enumerate(tags):
                for value in frozenset().union(*(found[name] for found in branch)):
                    owners.setdefault(value, []).append(k)
            if all(len(of) == 1 for of in owners.values()):
                return [[] for _ in everyone]
        return [[j for j in everyone if j != k] for k in everyone]

    def _tags(self, case: Case) -> dict[str, frozenset[Hashable]]:
        inside = self.family.merge(self.context, case)
        return {} if inside is None else self.family.tags(inside)

    def simplified(self, cases: list[Case]) -> list[Case]:
        """Without those that are plainly part of another and have evaluated the same."""
        family = self.family
        if len(cases) < 2:
            return cases
        if self.mode is Mode.PLAIN and any(case is family.any for case in cases):
            return [family.any]
        if len(cases) > _MOST_COMPARED:
            return cases
        included, same = family.included, family.same_evaluation
        kept: list[Case] = []
        for case in self.meter.each(cases, "comparing alternatives"):
            if not any(same(case, other) and included(case, other) for other in kept):
                kept = [other for other in kept if not (same(other, case) and included(other, case))]
                kept.append(case)
        return kept

    def check(self, cases: int) -> None:
        """Raise `BudgetExceededError` for more cases than any goal may have."""
        if cases > MOST_CASES:
            raise BudgetExceededError(
                f"the schema's alternatives multiply to more than {MOST_CASES:,}",
                where=self.where,
                remedy="Combine fewer overlapping anyOf, oneOf, not, if or dependencies in one place.",
            )
        self.meter.check_time(self.doing)
