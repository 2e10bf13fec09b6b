"""From a schema document to a `Document`: every subschema checked, references resolved, drafts brought to one.

The document is read breadth first from its root, along the keywords that apply subschemas, so that nothing recurses
as deep as a stranger nests. References are resolved when all of that has been read; what they lead to is read in
turn, until nothing is new. What remains under ``$defs`` and the like is checked against its draft's metaschema, but
neither its references are resolved nor does it count: a definition that nobody uses may refer to what is not there.

How the drafts differ is in `structgen.compiler.json_schema.read.drafts` and `keywords`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError
from .closing import close_objects
from .document import Document, Json, Schema, SchemaId
from .drafts import DRAFT4, Dialect
from .json_values import describe, from_python, parse_json
from .keywords import KEYWORDS, Subschema
from .references import Location, References

_DOING = "reading the schema"

#: How many subschemas are read between two looks at the clock.
_STRIDE = 256


def read(schema: Any, meter: Meter, *, additional_properties: bool | None = None) -> Document:
    """Read a schema: JSON text, or a Python value as `json.loads` returns them (floats and `Decimal` both do).

    ``additional_properties=False`` closes the objects whose schema lists properties and says nothing of others, see
    `close_objects`.

    Raises `DefinitionError` for what is not a schema, `UnsupportedError` for references that leave the document and
    for Draft 3, `BudgetExceededError`. The errors' ``where`` is a JSON pointer.
    """
    node = parse_json(schema) if isinstance(schema, str) else from_python(schema, meter)
    document = _Reader(node, meter).run()
    return close_objects(document) if additional_properties is False else document


class _Pending(NamedTuple):
    """A reference that is to be resolved."""

    keyword: str
    reference: str
    place: Location
    source: SchemaId


class _Unread(NamedTuple):
    """A subschema that is to be read, in the resource and draft of what is around it."""

    node: dict[str, Json]
    pointer: str
    resource: int
    draft: Dialect
    depth: int
    schema_id: SchemaId | None


class _Reader:
    """Reads one document. It is the `Sink` of the keywords' handlers."""

    def __init__(self, node: Json, meter: Meter) -> None:
        self.meter = meter
        self._references = References(node, meter)
        self.all_draft4 = self._references.root.draft is DRAFT4
        self._schemas: list[dict[str, Any]] = []
        self._ids: dict[int, SchemaId] = {}  # by the identity of the node
        self._applied: list[_Unread] = []
        self._stored: list[_Unread] = []
        self._pending: list[_Pending] = []
        self._dynamic: list[tuple[_Pending, SchemaId, str]] = []  # with the default target and the anchor
        self._entered: set[int] = set()  # the resources that the path to a schema may lead through
        self._subschemas = 0
        self._characters = 0  # of all pointers

    def run(self) -> Document:
        """Read everything."""
        root = self._place(self._references.root)
        while self._applied or self._pending:
            self._read_applied()
            self._resolve()
            if not self._applied:
                self._find_dynamic_targets()
        anchors = self._settle_dynamic_references()
        self._check_stored()
        return Document(
            tuple([Schema.of(fields) for fields in self._schemas]),
            root,
            self._references.root.draft.name,
            MappingProxyType(anchors),
        )

    # What handlers find

    def add(self, value: Json, path: str, around: Subschema, *, boolean: bool = False) -> SchemaId:
        """A subschema that is applied."""
        if around.schema_id is None:
            self.store(value, path, around, boolean=boolean)
            return 0  # nobody looks at the fields of a schema that is only checked
        pointer = f"{around.pointer}/{path}"
        if isinstance(value, dict):
            known = self._ids.get(id(value))
            return known if known is not None else self._queue(value, pointer, around)
        self._check_boolean(value, path, around, boolean)
        return self._append({"pointer": pointer, "never": not value, "resource": around.resource})

    def store(self, value: Json, path: str, around: Subschema, *, boolean: bool = False) -> None:
        """A subschema that is only checked, unless a reference leads to it."""
        if isinstance(value, dict):
            pointer = f"{around.pointer}/{path}"
            self._count(pointer)
            self._stored.append(_Unread(value, pointer, around.resource, around.draft, around.depth + 1, None))
        else:
            self._check_boolean(value, path, around, boolean)

    def refer(self, keyword: str, reference: str, source: Subschema) -> None:
        """A reference to be resolved once the document has been read."""
        assert source.schema_id is not None
        self._pending.append(_Pending(keyword, reference, source.place, source.schema_id))

    def synthesize(self, fields: dict[str, Any], path: str, around: Subschema) -> SchemaId:
        """A schema that the document doesn't have."""
        return self._append({"pointer": f"{around.pointer}/{path}", "resource": around.resource, **fields})

    def _check_boolean(self, value: Json, path: str, around: Subschema, boolean: bool) -> None:
        if not isinstance(value, bool):
            raise around.error(path, "a schema, that is, an object or a boolean", value)
        if self.all_draft4 and not boolean:
            raise around.error(path, "an object in Draft 4, where a boolean is no schema", value)

    # Reading

    def _append(self, fields: dict[str, Any]) -> SchemaId:
        self._count(fields["pointer"])
        self._schemas.append(fields)
        return len(self._schemas) - 1

    def _queue(self, node: dict[str, Json], pointer: str, around: Subschema) -> SchemaId:
        schema_id = self._append({"pointer": pointer})
        self._ids[id(node)] = schema_id
        self._applied.append(_Unread(node, pointer, around.resource, around.draft, around.depth + 1, schema_id))
        return schema_id

    def _place(self, place: Location) -> SchemaId:
        """The schema at a place where a reference leads."""
        node, pointer, resource, draft = place
        if isinstance(node, bool):
            return self._append({"pointer": pointer, "never": not node, "resource": resource})
        if not isinstance(node, dict):
            raise DefinitionError(
                f"a schema must be an object or a boolean, not {describe(node)}",
                where=pointer or "the root",
                remedy="Pass a JSON Schema.",
            )
        schema_id = self._ids.get(id(node))
        if schema_id is None:
            schema_id = self._ids[id(node)] = self._append({"pointer": pointer})
            self._applied.append(_Unread(node, pointer, resource, draft, 0, schema_id))
        return schema_id

    def _read_applied(self) -> None:
        for subschema in self._draining(self._applied):
            self._read(subschema)
        self._applied.clear()

    def _check_stored(self) -> None:
        """Check what no reference leads to."""
        for subschema in self._draining(self._stored):
            if self._ids.setdefault(id(subschema.node), -1) == -1:
                self._read(subschema)

    def _read(self, unread: _Unread) -> None:
        """Check a subschema, and note what it says."""
        node, pointer, resource, draft, depth, schema_id = unread
        if depth > self.meter.budget.depth:
            raise BudgetExceededError(
                f"the schema is nested deeper than {self.meter.budget.depth:,} subschemas",
                where=pointer[:200] + "…",
                remedy="Name its parts under $defs, or pass a larger budget=Budget(depth=...).",
            )
        if "$schema" in node or draft.id_keyword in node:
            resource, draft = self._references.enter(node, pointer, resource, draft)
        handlers = KEYWORDS[draft]
        sub = Subschema(self, node, pointer, resource, draft, depth, schema_id)
        heeded = sub
        if draft.ref_alone and "$ref" in node:
            heeded = Subschema(self, {"$ref": node["$ref"]}, pointer, resource, draft, depth, schema_id)
            handlers["$ref"](heeded, "$ref", node["$ref"])
            sub.schema_id = None
        for keyword, value in node.items():
            handler = handlers.get(keyword)
            if handler is not None:
                handler(sub, keyword, value)
        if schema_id is not None:
            self._entered.add(resource)
            fields = self._schemas[schema_id]
            fields.update(heeded.fields, resource=resource)
            if heeded.conjuncts:
                fields["all_of"] = tuple(heeded.conjuncts)

    def _draining(self, todo: list[_Unread]) -> Iterator[_Unread]:
        """The entries of a list that grows meanwhile, first in first out."""
        for position, entry in enumerate(todo):
            if not position % _STRIDE:
                self.meter.check_time(_DOING)
            yield entry

    def _count(self, pointer: str) -> None:
        """Hold a subschema against the budget, and its pointer: names can be long, and it repeats all above."""
        self._subschemas += 1
        self._characters += len(pointer)
        if self._subschemas > self.meter.budget.states:
            raise BudgetExceededError(
                f"the schema has more than {self.meter.budget.states:,} subschemas",
                where=_DOING,
                remedy="Simplify it, or pass a larger budget=Budget(states=...).",
            )
        if self._characters > 1 << 20:
            self.meter.check_memory(self._characters, _DOING)

    # References

    def _resolve(self) -> None:
        pending, self._pending = self._pending, []
        for count, reference in enumerate(pending):
            if not count % _STRIDE:
                self.meter.check_time("resolving references")
            place = self._references.resolve(reference.reference, reference.place)
            target = self._place(place)
            anchor = None if reference.keyword == "$ref" else self._anchor(reference, place)
            if anchor is not None:
                self._dynamic.append((reference, target, anchor))
            else:
                self._add_reference(reference.source, target)

    def _add_reference(self, source: SchemaId, target: SchemaId) -> None:
        fields = self._schemas[source]
        fields["refs"] = (*fields.get("refs", ()), target)

    def _anchor(self, reference: _Pending, place: Location) -> str | None:
        """The dynamic anchor that a dynamic reference leads to; None if it leads to something else."""
        self._references.search()
        name = "" if reference.keyword == "$recursiveRef" else unquote(reference.reference.partition("#")[2])
        anchors = self._references.resources[place.resource].dynamic_anchors
        return name if name in anchors and anchors[name].node is place.node else None

    def _find_dynamic_targets(self) -> None:
        """Read what dynamic references may prefer to their default targets."""
        for name in dict.fromkeys(name for _, _, name in self._dynamic):
            for index in sorted(self._entered):
                place = self._references.resources[index].dynamic_anchors.get(name)
                if place is not None:
                    self._place(place)

    def _settle_dynamic_references(self) -> dict[int, Mapping[str, SchemaId]]:
        """Make plain references of those with one possible target. The other ones' anchors, by resource."""
        needed: dict[int, dict[str, SchemaId]] = {}
        for reference, default, name in self._dynamic:
            targets: dict[int, SchemaId] = {}
            for index in sorted(self._entered):
                place = self._references.resources[index].dynamic_anchors.get(name)
                if place is not None:
                    targets[index] = self._place(place)
            if set(targets.values()) <= {default}:
                self._add_reference(reference.source, default)
                continue
            for index, target in targets.items():
                needed.setdefault(index, {})[name] = target
            self._add_dynamic_reference(reference.source, default, name)
        return {index: MappingProxyType(anchors) for index, anchors in needed.items()}

    def _add_dynamic_reference(self, source: SchemaId, default: SchemaId, name: str) -> None:
        fields = self._schemas[source]
        dynamic = {"dynamic_ref": name, "dynamic_default": default}
        if "dynamic_ref" in fields:  # $dynamicRef and $recursiveRef in the same schema
            place = {"pointer": fields["pointer"], "resource": fields["resource"]}
            fields["all_of"] = (*fields.get("all_of", ()), self._append({**place, **dynamic}))
        else:
            fields.update(dynamic)
