"""A schema as the union of others, each with at most one branch of every ``anyOf`` that lists members."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from ....budget import Meter
from ....errors import BudgetExceededError
from .document import Document, Schema, SchemaId

#: The fields with schemas for the same value that may list its members; not those that are only tried.
IN_PLACE = ("refs", "all_of", "any_of", "one_of", "dependent_schemas", "then", "else_")

#: Those whose schemas all apply, or under a condition that is not theirs.
_APPLIED = ("refs", "all_of", "dependent_schemas", "then", "else_")

_MOST_ALTERNATIVES = 10_000


def names_members(schema: Schema) -> bool:
    """Whether a schema lists members, if only none."""
    return not vars(schema).keys().isdisjoint(("properties", "pattern_properties"))


class Alternatives:
    """The alternatives of a document's schemas."""

    def __init__(self, document: Document, meter: Meter) -> None:
        self._schemas = document.schemas
        self._meter = meter
        self._known: dict[SchemaId, list[SchemaId]] = {}
        self._listing: dict[SchemaId, bool] = {}  # whether a schema, or one in its place, lists members

    def of(self, root: SchemaId, schemas: list[Schema]) -> list[SchemaId]:
        """The alternatives of a schema, or itself alone if it has none; they are appended to ``schemas``.

        Raises `BudgetExceededError` for branches in too many combinations.
        """
        todo, entered = [root], set[SchemaId]()
        while todo:
            schema_id = todo[-1]
            if schema_id not in entered:
                entered.add(schema_id)
                todo += [child for child in self._schemas[schema_id].children(IN_PLACE) if child not in entered]
                continue
            todo.pop()
            if schema_id not in self._known:
                self._split(schema_id, schemas)
        return self._known[root]

    def _split(self, schema_id: SchemaId, schemas: list[Schema]) -> None:
        """Note the alternatives of a schema, those of all that applies in its place being known.

        A schema that applies in its own place, where it adds nothing, is not split there.
        """
        schema = self._schemas[schema_id]
        below = schema.children(IN_PLACE)
        self._listing[schema_id] = names_members(schema) or any(self._listing.get(child) for child in below)
        applied = [child for child in dict.fromkeys(schema.children(_APPLIED)) if len(self._of(child)) > 1]
        factors = [self._of(child) for child in applied]
        any_of, one_of = self._any_of(schema), self._one_of(schema, schemas)
        count = prod(map(len, factors)) * len(any_of) * len(one_of)
        self._check(schema, count)
        self._known[schema_id] = found = [schema_id] if count == 1 else []
        choices = product(product(*factors), any_of, one_of) if count > 1 else ()
        for chosen, branch, more in self._meter.each(choices, "closing objects", every=64):
            to = dict(zip(applied, chosen, strict=True))
            copy = schema.with_children(_APPLIED, _replacing(to))
            changes: dict[str, object] = {"any_of": branch}
            if more:  # its branches list members, whichever applies
                changes |= {"one_of": None, "all_of": copy.all_of + more, "properties": copy.properties}
            found.append(_appended(schemas, copy.changed(changes)))

    def _of(self, child: SchemaId) -> list[SchemaId]:
        return self._known.get(child, [child])

    def _any_of(self, schema: Schema) -> list[tuple[SchemaId, ...] | None]:
        """What ``anyOf`` can be: one of the branches that list members, or those that list none."""
        listing = [child for child in schema.any_of or () if self._listing.get(child)]
        others = tuple([child for child in schema.any_of or () if not self._listing.get(child)])
        if not listing:
            return [schema.any_of]
        return [*((each,) for child in listing for each in self._of(child)), *([others] if others else [])]

    def _one_of(self, schema: Schema, schemas: list[Schema]) -> list[tuple[SchemaId, ...]]:
        """What stands for ``oneOf``: nothing but itself; or, as it has alternatives, one of these and none other."""
        branches = schema.one_of or ()
        if all(len(self._of(child)) == 1 for child in branches):
            return [()]
        found: list[tuple[SchemaId, ...]] = []
        for at, child in enumerate(branches):
            others = Schema(schema.pointer, any_of=branches[:at] + branches[at + 1 :], never=len(branches) == 1)
            none = _appended(schemas, Schema(schema.pointer, not_=_appended(schemas, others)))
            found += [(each, none) for each in self._of(child)]
        return found

    def _check(self, schema: Schema, count: int) -> None:
        """Refuse too many alternatives."""
        if count > _MOST_ALTERNATIVES:
            raise BudgetExceededError(
                f"closing the branches of anyOf takes more than {_MOST_ALTERNATIVES:,} combinations of them",
                where=schema.pointer or "the root",
                remedy='Say in the schema what else objects may have, or use additional_properties="unevaluated".',
            )


def _replacing(to: dict[SchemaId, SchemaId]) -> Callable[[SchemaId], SchemaId]:
    return lambda child: to.get(child, child)


def _appended(schemas: list[Schema], schema: Schema) -> SchemaId:
    schemas.append(schema)
    return len(schemas) - 1
