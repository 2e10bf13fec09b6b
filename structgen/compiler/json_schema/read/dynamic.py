"""``$dynamicRef``: a reference whose target depends on the path that led to it.

The path matters only through the resources that were entered and define dynamic anchors. So each subschema is copied
once for every such path that can lead to it, and in each copy the reference has one target.
"""

from __future__ import annotations

from typing import TypeAlias

from ....budget import Meter
from .document import CHILD_FIELDS, Document, Schema, SchemaId

#: Resources with dynamic anchors, in the order in which they were entered, each once.
Scope: TypeAlias = tuple[int, ...]


def without_dynamic_references(document: Document, meter: Meter) -> tuple[tuple[Schema, ...], SchemaId]:
    """The document's subschemas and its root, all references static."""
    if all(schema.dynamic_ref is None for schema in document.schemas):
        return document.schemas, document.root
    return _Copying(document, meter).run()


class _Copying:
    def __init__(self, document: Document, meter: Meter) -> None:
        self.document = document
        self.meter = meter
        self.places: dict[tuple[SchemaId, Scope], SchemaId] = {}
        self.queue: list[tuple[SchemaId, Scope]] = []

    def run(self) -> tuple[tuple[Schema, ...], SchemaId]:
        root = self._place(self.document.root, ())
        copies = []
        for node, scope in self.queue:
            self.meter.check_states(len(self.queue), "resolving dynamic references")
            self.meter.check_time("resolving dynamic references")
            copies.append(self._copy(self.document.schemas[node], scope))
        return tuple(copies), root

    def _place(self, node: SchemaId, scope: Scope) -> SchemaId:
        """The copy of a subschema that is entered from a scope."""
        resource = self.document.schemas[node].resource
        if resource in self.document.dynamic_anchors and resource not in scope:
            scope = (*scope, resource)
        key = node, scope
        if key not in self.places:
            self.places[key] = len(self.queue)
            self.queue.append(key)
        return self.places[key]

    def _copy(self, schema: Schema, scope: Scope) -> Schema:
        if schema.dynamic_ref is not None:
            refs = (*schema.refs, self._target(schema, scope))
            schema = schema.changed({"refs": refs, "dynamic_ref": None, "dynamic_default": None})
        return schema.with_children(CHILD_FIELDS, lambda child: self._place(child, scope))

    def _target(self, schema: Schema, scope: Scope) -> SchemaId:
        """Where the dynamic reference leads: to the outermost resource that has its anchor."""
        assert schema.dynamic_ref is not None
        assert schema.dynamic_default is not None
        for resource in scope:
            target = self.document.dynamic_anchors[resource].get(schema.dynamic_ref)
            if target is not None:
                return target
        return schema.dynamic_default
