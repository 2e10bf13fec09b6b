"""Products, differences and unions of clauses, kept small."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Generic, TypeAlias

from ....budget import Meter
from ....errors import BudgetExceededError
from .clauses import Clause, ClauseDomain, Mode

#: Beyond so many clauses of one goal, a definition is refused: each would be an alternative of the guide.
MOST_CLAUSES = 4_096

#: Inclusion is looked for among so many clauses at most; it takes quadratic time.
_MOST_COMPARED = 64

#: A union whose members have been compared before is compared again, in a product, up to this size.
_FEW = 16


#: Which field of a schema, and which of the schemas in it.
Place: TypeAlias = tuple[int, int]

_FIRST: Place = (-1, 0)


@dataclass
class Dnf(Generic[Clause]):
    """Disjunctive normal forms of one goal: combines unions of clauses.

    Parameters
    ----------
    domain:
        Arrays or objects.
    mode:
        What the clauses have to say of evaluation.
    context:
        What is known to hold beside the goal. It is no part of the clauses; those that contradict it are dropped, and
        alternatives that it keeps apart count as disjoint.
    where:
        The goal's JSON pointer, for messages.
    """

    domain: ClauseDomain[Clause]
    mode: Mode
    context: Clause
    where: str
    meter: Meter
    #: The schema's fields in the order of the text (`Schema.order`), and what clauses are made of, by place in it.
    order: tuple[str, ...] = ()
    parts: dict[Clause, list[tuple[Place, Clause]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.doing = f"combining the alternatives of {self.where}"

    def place(self, name: str, number: int = 0) -> Place:
        """Where the schema with a number in a field stands in the text."""
        return (self.order.index(name), number) if name in self.order else _FIRST

    def within(self, clauses: list[Clause]) -> Clause:
        """The context for what these clauses are multiplied with."""
        if len(clauses) != 1:
            return self.context
        context = self.domain.merge(self.context, clauses[0])
        return self.context if context is None else context

    def product(self, left: list[Clause], right: list[Clause], place: Place | None = None) -> list[Clause]:
        """The conjunction of two unions. Members that the right one declares come where its place is, or last."""
        domain, place = self.domain, place or (len(self.order), 0)
        if len(left) == 1 and left[0] is domain.any:
            found = self.possible(right)
            self.parts |= {clause: [(place, clause)] for clause in found if self.order}
            return found
        if len(right) == 1 and right[0] is domain.any:
            return left
        self.check(len(left) * len(right) >> 4)
        every = self.meter.each(left, self.doing, every=1)
        merge = partial(self._arranged, place) if self.order else domain.merge
        clauses = self.possible([clause for a in every for b in right if (clause := merge(a, b)) is not None])
        self.check(len(clauses))
        if len(clauses) > _FEW and (len(left) == 1 or len(right) == 1):
            return clauses
        return self.simplified(clauses)

    def _arranged(self, place: Place, left: Clause, right: Clause) -> Clause | None:
        """The conjunction, its members in the order of the text."""
        clause = self.domain.merge(left, right)
        if clause is not None:
            parts = sorted([*self.parts.get(left, [(_FIRST, left)]), (place, right)], key=itemgetter(0))
            clause = clause.arranged([part for _, part in parts])
            self.parts[clause] = parts
        return clause

    def possible(self, clauses: list[Clause]) -> list[Clause]:
        """Those that the context allows."""
        context, merge = self.context, self.domain.merge
        if context is self.domain.any:
            return clauses
        return [clause for clause in self.meter.each(clauses, self.doing) if merge(context, clause) is not None]

    def difference(self, clause: Clause, without: Sequence[Clause], violations: list[Clause]) -> list[Clause]:
        """A clause without those of a union; ``violations`` is what the union leaves out."""
        merge = self.domain.merge
        inside = merge(self.context, clause)
        if inside is None:
            return []
        if all(merge(inside, other) is None for other in without):
            return [clause]
        if any(self.domain.included(inside, other) for other in violations):
            return [clause]
        return self.product([clause], violations)

    def rivals(self, branches: list[list[Clause]]) -> list[list[int]]:
        """For each branch the others that it may overlap with, as far as a member that they all have can tell."""
        everyone = range(len(branches))
        tags = [[self._tags(clause) for clause in branch] for branch in branches]
        shared = set.intersection(*(set(found) for branch in tags for found in branch)) if all(tags) else set()
        for name in shared:
            owners: dict[Hashable, list[int]] = {}
            for k, branch in enumerate(tags):
                for value in frozenset().union(*(found[name] for found in branch)):
                    owners.setdefault(value, []).append(k)
            if all(len(of) == 1 for of in owners.values()):
                return [[] for _ in everyone]
        return [[j for j in everyone if j != k] for k in everyone]

    def _tags(self, clause: Clause) -> dict[str, frozenset[Hashable]]:
        inside = self.domain.merge(self.context, clause)
        return {} if inside is None else self.domain.tags(inside)

    def simplified(self, clauses: list[Clause]) -> list[Clause]:
        """Without those that are plainly part of another and have evaluated the same."""
        domain = self.domain
        if len(clauses) < 2:
            return clauses
        if len(clauses) > _MOST_COMPARED:
            return clauses
        kept: list[Clause] = []
        for clause in self.meter.each(clauses, "comparing alternatives"):
            alike = [other for other in kept if other.evaluated == clause.evaluated]
            if not any(domain.included(clause, other) for other in alike):
                weaker = [other for other in alike if domain.included(other, clause)]
                kept = [other for other in kept if other not in weaker]
                kept.append(clause)
        return kept

    def check(self, clauses: int) -> None:
        """Raise `BudgetExceededError` for more clauses than any goal may have."""
        if clauses > MOST_CLAUSES:
            raise BudgetExceededError(
                f"the schema's alternatives multiply to more than {MOST_CLAUSES:,}",
                where=self.where,
                remedy="Combine fewer overlapping anyOf, oneOf, not, if or dependencies in one place.",
            )
        self.meter.check_time(self.doing)
