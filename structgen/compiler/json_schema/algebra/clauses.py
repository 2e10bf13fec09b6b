"""What arrays and objects have in common: both are described by unions of clauses, and clauses by conjunction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from enum import IntEnum
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from ..read.document import Json, Schema, SchemaId
from ..strings.strings import StringSet
from .goal_bounds import GoalBounds
from .goals import Conjunction
from .type_bounds import Kleene, TypeBounds

_Item = TypeVar("_Item")


class Mode(IntEnum):
    """How much the clauses of a schema have to say about what it evaluates (``unevaluatedProperties`` and the like).

    ``PLAIN``: nothing. ``AT_LEAST``: every clause names members that are evaluated, and for every object some clause
    names all of them; enough where more evaluation allows more. ``EXACTLY``: every clause names just the members that
    are evaluated; needed under negation.
    """

    PLAIN = 0
    AT_LEAST = 1
    EXACTLY = 2

    __hash__ = int.__hash__  # that of an `Enum` is a function in Python


class Evaluated(NamedTuple):
    """What a successful subschema has evaluated: members by name, items by position or by what they are, or all."""

    names: frozenset[str] = frozenset()
    classes: tuple[StringSet, ...] = ()
    prefix: int = 0
    matching: tuple[Conjunction, ...] = ()
    everything: bool = False


ALL_EVALUATED = (Evaluated(everything=True),)


_Self = TypeVar("_Self", bound="_HasEvaluated")


class _HasEvaluated(Protocol):
    @property
    def evaluated(self) -> tuple[Evaluated, ...]: ...

    def bare(self: _Self) -> _Self:
        """The same clause, which has evaluated nothing."""

    def arranged(self: _Self, parts: Sequence[_Self]) -> _Self:
        """The same clause, with its rules in the order of those that it is made of."""


Clause = TypeVar("Clause", bound=_HasEvaluated)


class ClauseDomain(ABC, Generic[Clause]):
    """One of the two types that need clauses."""

    any: Clause  #: every array, or object
    unevaluated: ClassVar[str]  #: the field of ``unevaluatedItems``, or of ``unevaluatedProperties``
    fields: ClassVar[frozenset[str]]  #: the fields of keywords about this type

    def __init__(self, bounds: GoalBounds) -> None:
        self.bounds = bounds
        self.nodes = bounds.nodes

    @abstractmethod
    def allowed(self, bounds: TypeBounds) -> Kleene:
        """How many of the arrays, or objects, bounds allow."""

    # -- from keywords -------------------------------------------------------------------------------------

    def own(self, node: SchemaId, mode: Mode) -> list[list[Clause]]:
        """What the node's own keywords say: a conjunction of unions of clauses."""
        factors: list[list[Clause]] = []
        if not self.fields.isdisjoint(self.nodes.said(node)):
            clause = self.asserted(node, mode)
            factors.append([] if clause is None else [clause])
        schema = self.nodes.schemas[node]
        if schema.enum is not None:
            factors.append(list(self.nodes.meter.each(self.equal(schema.enum), "reading an enumeration")))
        return factors

    def dependents(self, schema: Schema) -> list[tuple[Clause, list[Clause], Conjunction]]:
        """``dependentSchemas``: the clause that one does not matter in, those that it does, and its goal."""
        return []

    @abstractmethod
    def asserted(self, node: SchemaId, mode: Mode) -> Clause | None:
        """What the node's keywords about this type say together; None where that is plainly nothing."""

    @abstractmethod
    def violations(self, node: SchemaId) -> list[Clause]:
        """The union of what violates one of the node's own keywords; not ``enum``."""

    @abstractmethod
    def tested(self, clause: Clause) -> Clause:
        """The clause of the same values, however their numbers are spelled."""

    @abstractmethod
    def equal(self, values: Sequence[Json]) -> Iterator[Clause]:
        """Each of the values that are of this type, alone."""

    @abstractmethod
    def unequal(self, values: Sequence[Json]) -> Iterator[list[Clause]]:
        """For each of the values that are of this type: all but it."""

    # -- evaluation ----------------------------------------------------------------------------------------

    def closed(self, clause: Clause, rest: Conjunction) -> Clause | None:
        """The clause, and whatever it has not evaluated meets a goal."""
        if any(part.everything for part in clause.evaluated):
            return clause
        return self.merge(clause, self.others_meet(clause, rest))

    def unclosed(self, clause: Clause, rest: Conjunction) -> Clause | None:
        """The clause, and something that it has not evaluated fails a goal."""
        if not rest or any(part.everything for part in clause.evaluated):
            return None
        return self.merge(clause, self.another_fails(clause, rest))

    @abstractmethod
    def others_meet(self, clause: Clause, rest: Conjunction) -> Clause:
        """All that a clause has not evaluated meets a goal; then all is evaluated."""

    @abstractmethod
    def another_fails(self, clause: Clause, rest: Conjunction) -> Clause:
        """Something that a clause has not evaluated fails a goal."""

    # -- combination ---------------------------------------------------------------------------------------

    def merge(self, left: Clause | None, right: Clause | None) -> Clause | None:
        """The conjunction, None where it is plainly empty."""
        if left is None or right is None:
            return None
        if left is self.any or right is self.any:
            return right if left is self.any else left
        return self.conjunction(left, right)

    @abstractmethod
    def conjunction(self, left: Clause, right: Clause) -> Clause | None:
        """The same of two clauses that both say something."""

    @abstractmethod
    def included(self, left: Clause, right: Clause) -> bool:
        """Whether it is plain that the one clause allows no more than the other; evaluation left aside."""

    def tags(self, clause: Clause) -> dict[str, frozenset[Hashable]]:
        """Names that every object of the clause has, with the few values that they have in it."""
        return {}


def joined(left: tuple[_Item, ...], right: tuple[_Item, ...]) -> tuple[_Item, ...]:
    """Both, each element once."""
    if not right or left == right:
        return left
    return tuple(dict.fromkeys(left + right)) if left else right


def lower(left: int | None, right: int | None) -> int | None:
    """The lower one of two upper bounds."""
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)
