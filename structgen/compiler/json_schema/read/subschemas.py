"""The subschemas of a document while it is read: those that were found, and what each says so far."""

from __future__ import annotations

import re
from functools import cache
from keyword import iskeyword
from typing import NamedTuple

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError
from .document import Json, Schema, SchemaId
from .drafts import DRAFT4, Dialect
from .json_values import describe
from .references import Location
from .unknown import Unknown

DOING = "reading the schema"


class Pending(NamedTuple):
    """A reference that is to be resolved."""

    keyword: str
    reference: str
    place: Location
    source: Schema


class Subschemas:
    """What the walk over a document has found.

    ``all_draft4``: the whole document is held to Draft 4's metaschema, not just a part with a ``$schema`` of its own,
    which the metaschema of the document around it governs.
    """

    def __init__(self, root: Location, meter: Meter) -> None:
        self.meter = meter
        self.all_draft4 = root.draft is DRAFT4
        self.schemas: list[Schema] = []
        self.ids: dict[int, SchemaId] = {}  # by the identity of the node
        self.applied: list[Subschema] = []  # to be read
        self.stored: list[Subschema] = []  # to be checked, unless a reference leads there
        self.pending: list[Pending] = []
        self.unchecked: list[str] = []
        self.unknown = Unknown()
        self._subschemas = 0
        self._characters = 0  # of all pointers

    def append(self, schema: Schema) -> SchemaId:
        """A schema that there is nothing to read of."""
        self.count(schema.pointer)
        self.schemas.append(schema)
        return len(self.schemas) - 1

    def apply(self, node: dict[str, Json], pointer: str, resource: int, draft: Dialect, depth: int) -> SchemaId:
        """A subschema that is to be read, once."""
        known = self.ids.get(id(node))
        if known is None:
            schema = Schema(pointer)
            known = self.ids[id(node)] = self.append(schema)
            self.applied.append(Subschema(self, node, pointer, resource, draft, depth, schema))
        return known

    def count(self, pointer: str) -> None:
        """Hold a subschema against the budget, and its pointer: names can be long, and it repeats all above."""
        self._subschemas += 1
        self._characters += len(pointer)
        if self._subschemas > self.meter.budget.states:
            raise BudgetExceededError(
                f"the schema has more than {self.meter.budget.states:,} subschemas",
                where=DOING,
                remedy="Simplify it, or pass a larger budget=Budget(states=...).",
            )
        if self._characters > 1 << 20:
            self.meter.check_memory(self._characters, DOING)


class Subschema:
    """A subschema while it is read.

    Parameters
    ----------
    pointer, resource, draft:
        Where it is; before it is read, in the resource and draft of what is around it.
    schema:
        What it says so far. None where nobody looks at it, so that it is only checked.
    """

    __slots__ = ("applied", "depth", "draft", "found", "node", "pointer", "resource", "schema")

    def __init__(
        self, found: Subschemas, node: dict[str, Json], pointer: str, resource: int, draft: Dialect, depth: int,
        schema: Schema | None = None,
    ) -> None:  # fmt: skip
        self.found = found
        self.node = node
        self.pointer = pointer
        self.resource = resource
        self.draft = draft
        self.depth = depth
        self.applied = schema is not None
        self.schema = schema or Schema("")

    def aside(self) -> Subschema:
        """The same, to have it checked only."""
        return Subschema(self.found, self.node, self.pointer, self.resource, self.draft, self.depth)

    def say(self, keyword: str, value: object) -> None:
        """What a keyword says, whose field is called like it."""
        setattr(self.schema, _field(keyword), value)

    def add(self, value: Json, path: str, *, boolean: bool = False) -> SchemaId:
        """A subschema, applied if this one is. ``boolean``: may be one even in Draft 4."""
        if not isinstance(value, dict):
            if not isinstance(value, bool):
                raise self.error(path, "a schema, that is, an object or a boolean", value)
            if self.found.all_draft4 and not boolean:
                raise self.error(path, "an object in Draft 4, where a boolean is no schema", value)
            return self.synthesize(path, never=not value) if self.applied else 0
        if self.applied:
            return self.found.apply(value, f"{self.pointer}/{path}", self.resource, self.draft, self.depth + 1)
        self.store(value, path)
        return 0  # nobody looks at the fields of a schema that is only checked

    def store(self, value: Json, path: str, *, boolean: bool = False) -> None:
        """A subschema that is only checked, unless a reference leads to it."""
        if not isinstance(value, dict):
            self.aside().add(value, path, boolean=boolean)
            return
        pointer = f"{self.pointer}/{path}"
        self.found.count(pointer)
        self.found.stored.append(Subschema(self.found, value, pointer, self.resource, self.draft, self.depth + 1))

    def refer(self, keyword: str, reference: str) -> None:
        """A reference to be resolved once the document has been read."""
        if self.applied:
            place = Location(self.node, self.pointer, self.resource, self.draft)
            self.found.pending.append(Pending(keyword, reference, place, self.schema))
            self.schema.refs = self.schema.refs  # which takes its place among the fields

    def synthesize(self, path: str, **fields: object) -> SchemaId:
        """A schema that the document doesn't have."""
        return self.found.append(Schema(f"{self.pointer}/{path}", resource=self.resource, **fields))

    def error(self, path: str, wanted: str, value: Json) -> DefinitionError:
        """The error for a value that a keyword doesn't allow. ``path`` leads to it from here."""
        keyword = path.split("/")[-1]
        return DefinitionError(
            f"{keyword!r} must be {wanted}, not {describe(value)}",
            where=f"{self.pointer}/{path}",
            remedy=_remedy(keyword, value, self.draft),
        )


@cache
def _field(keyword: str) -> str:
    """The field of `Schema` for a keyword: ``min_length`` for ``minLength``, ``not_`` for ``not``."""
    name = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", keyword)
    return f"{name}_" if iskeyword(name) else name


def _remedy(keyword: str, value: Json, draft: Dialect) -> str:
    if keyword == "required" and isinstance(value, bool):
        return "List the required names in 'required' of the object that has the properties."
    if keyword == "items" and isinstance(value, list):
        return "Write 'prefixItems', or name the draft that the schema was written for in $schema."
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and not draft.exact_integers:
        return "Give the bound itself, or name the draft that the schema was written for in $schema."
    return "Correct the schema."
