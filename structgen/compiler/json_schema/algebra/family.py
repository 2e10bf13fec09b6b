"""What arrays and objects have in common: both are described by unions of cases, and cases by conjunction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import Any, Generic, TypeVar

from ..read.document import Schema, SchemaId
from .goals import Conjunction
from .outline import Extent, TypeBounds

Case = TypeVar("Case")


class Mode(IntEnum):
    """How much the cases of a schema have to say about what it evaluates (``unevaluatedProperties`` and the like).

    ``PLAIN``: nothing. ``AT_LEAST``: every case names members that are evaluated, and for every object some case
    names all of them; enough where more evaluation allows more. ``EXACTLY``: every case names just the members that
    are evaluated; needed under negation.
    """

    PLAIN = 0
    AT_LEAST = 1
    EXACTLY = 2


class Family(ABC, Generic[Case]):
    """One of the two types that need cases."""

    any: Case  #: every array, or object
    unevaluated: str  #: the field of ``unevaluatedItems``, or of ``unevaluatedProperties``
    outlines: Callable[[Conjunction], TypeBounds]  #: the outline of a goal; set by whoever expands
    barren: Callable[[Conjunction], bool]  #: whether a goal is plainly without values; likewise

    @staticmethod
    @abstractmethod
    def extent(outline: TypeBounds) -> Extent:
        """How many of the arrays, or objects, an outline allows."""

    @abstractmethod
    def own(self, node: SchemaId, mode: Mode) -> list[list[Case]]:
        """What the node's own keywords say: a conjunction of unions of cases."""

    @abstractmethod
    def violations(self, node: SchemaId) -> list[Case]:
        """The union of what violates one of the node's own keywords; not ``enum``."""

    @abstractmethod
    def listed(self, schema: Schema) -> list[Any]:
        """The literals of this type in the schema's ``enum``."""

    @abstractmethod
    def unequal(self, value: Any) -> list[Case]:
        """All but this literal."""

    @abstractmethod
    def dependents(self, schema: Schema) -> list[tuple[Case, list[Case], Conjunction]]:
        """``dependentSchemas``: the case that one does not matter in, those that it does, and its goal."""

    @abstractmethod
    def closed(self, case: Case, rest: Conjunction) -> Case | None:
        """The case, and whatever it has not evaluated meets a goal."""

    @abstractmethod
    def unclosed(self, case: Case, rest: Conjunction) -> Case | None:
        """The case, and something that it has not evaluated fails a goal."""

    @abstractmethod
    def merge(self, left: Case | None, right: Case | None) -> Case | None:
        """The conjunction, None where it is plainly empty."""

    @abstractmethod
    def included(self, left: Case, right: Case) -> bool:
        """Whether it is plain that the one case allows no more than the other."""

    @abstractmethod
    def same_evaluation(self, left: Case, right: Case) -> bool:
        """Whether both have evaluated the same."""

    def tags(self, case: Case) -> dict[str, frozenset[Hashable]]:
        """Names that every object of the case has, with the few values that they have in it."""
        return {}


def joined(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Both, each element once."""
    if not right or left == right:
        return left
    return tuple(dict.fromkeys(left + right)) if left else right


def lower(left: int | None, right: int | None) -> int | None:
    """The lower one of two upper bounds."""
    if left is None or right is None:
        return right if left is None else left
    return min(left, right)
