"""From a schema document to a `Document`: every subschema checked, references resolved, drafts brought to one.

The document is read breadth first from its root, along the keywords that apply subschemas, so that nothing recurses
as deep as a stranger nests. References are resolved when all of that has been read; what they lead to is read in
turn, until nothing is new. What remains under ``$defs`` and the like is checked against its draft's metaschema, but
neither its references are resolved nor does it count: a definition that nobody uses may refer to what is not there.

How the drafts differ is in `drafts` and `keywords`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from urllib.parse import unquote

from ....budget import Meter
from ....errors import BudgetExceededError
from .blame import placed
from .document import Document, Schema, SchemaId
from .json_values import parse_json
from .keywords import KEYWORDS, KNOWN
from .references import Location, References
from .subschemas import DOING, Pending, Subschema, Subschemas
from .unknown import ANNOTATIONS


def read(text: str, meter: Meter, *, additional_properties: bool | str = True) -> Document:
    """Read a schema's JSON text.

    ``additional_properties``, as in `JsonSchema`, closes objects whose schema lists properties and says nothing of
    others; see `close_objects`.

    Raises `DefinitionError` for values that a keyword can't have, `UnsupportedError` for references that leave the
    document and for Draft 3, `BudgetExceededError`. The errors' ``where`` is a JSON pointer.
    """
    reader = _Reader(References(parse_json(text), meter), meter)
    with placed(lambda: reader.at):
        document = reader.run()
    if additional_properties is True:
        return document
    from .closing import close_objects

    return close_objects(document, meter, branches=additional_properties is False)


class _Reader:
    """Reads one document."""

    def __init__(self, references: References, meter: Meter) -> None:
        self.meter = meter
        self._references = references
        self._found = Subschemas(references.root, meter)
        self._dynamic: list[tuple[Pending, SchemaId, str]] = []  # with the default target and the anchor
        self._entered: set[int] = set()  # the resources that the path to a schema may lead through
        self.at = ""  # what was read last

    def run(self) -> Document:
        """Read everything."""
        found, root = self._found, self._target(self._references.root)
        while found.applied or found.pending:
            for subschema in self._draining(found.applied):
                self._read(subschema)
            found.applied.clear()
            self._resolve()
            if not found.applied:
                for name in dict.fromkeys(name for _, _, name in self._dynamic):
                    self._dynamic_targets(name)
        anchors = self._settle_dynamic_references()
        for subschema in self._draining(found.stored):
            if found.ids.setdefault(id(subschema.node), -1) == -1:  # no reference leads to it
                self._read(subschema)
        found.stored.clear()  # each leads back to what it is in, which would wait for the collector
        return Document(
            tuple(found.schemas), root, self._references.root.draft.name, MappingProxyType(anchors),
            tuple(found.unchecked), found.unknown.findings(),
        )  # fmt: skip

    def _draining(self, todo: list[Subschema]) -> Iterator[Subschema]:
        """The entries of a list that grows meanwhile, first in first out."""
        return self.meter.each(todo, DOING, every=256)

    def _target(self, place: Location) -> SchemaId:
        """The schema at a place where a reference leads."""
        node = place.node
        if isinstance(node, bool):
            return self._found.append(Schema(place.pointer, never=not node, resource=place.resource))
        assert isinstance(node, dict)
        return self._found.apply(node, place.pointer, place.resource, place.draft, 0)

    def _read(self, sub: Subschema) -> None:
        """Check a subschema, and note what it says."""
        self.at = sub.pointer
        if sub.depth > self.meter.budget.depth:
            raise BudgetExceededError(
                f"the schema is nested deeper than {self.meter.budget.depth:,} subschemas",
                where=sub.pointer[:200] + "…",
                remedy="Name its parts under $defs, or pass a larger budget=Budget(depth=...).",
            )
        node = sub.node
        if "$schema" in node or sub.draft.id_keyword in node:
            sub.resource, sub.draft = self._references.enter(node, sub.pointer, sub.resource, sub.draft)
        if sub.applied:
            self._entered.add(sub.resource)
            if sub.resource:
                sub.schema.resource = sub.resource
        handlers = KEYWORDS[sub.draft]
        if sub.draft.ref_alone and "$ref" in node:
            handlers["$ref"](sub, "$ref", node["$ref"])
            sub = sub.aside()
        for keyword, value in node.items():
            handler = handlers.get(keyword)
            if handler is not None:
                handler(sub, keyword, value)
            elif keyword not in ANNOTATIONS:
                self._found.unknown.keyword(keyword, value, sub.pointer, sub.draft, KNOWN)

    # References

    def _resolve(self) -> None:
        pending, self._found.pending = self._found.pending, []
        for reference in self.meter.each(pending, "resolving references", every=256):
            place = self._references.resolve(reference.reference, reference.place)
            target = self._target(place)
            anchor = None if reference.keyword == "$ref" else self._anchor(reference, place)
            if anchor is not None:
                self._dynamic.append((reference, target, anchor))
            else:
                reference.source.refs += (target,)

    def _anchor(self, reference: Pending, place: Location) -> str | None:
        """The dynamic anchor that a dynamic reference leads to; None if it leads to something else."""
        self._references.search()
        name = "" if reference.keyword == "$recursiveRef" else unquote(reference.reference.partition("#")[2])
        anchors = self._references.resources[place.resource].dynamic_anchors
        return name if name in anchors and anchors[name].node is place.node else None

    def _dynamic_targets(self, name: str) -> dict[int, SchemaId]:
        """What a dynamic reference may prefer to its default target, by resource."""
        resources = self._references.resources
        places = {index: resources[index].dynamic_anchors.get(name) for index in sorted(self._entered)}
        return {index: self._target(place) for index, place in places.items() if place is not None}

    def _settle_dynamic_references(self) -> dict[int, Mapping[str, SchemaId]]:
        """Make plain references of those with one possible target. The other ones' anchors, by resource."""
        needed: dict[int, dict[str, SchemaId]] = {}
        for reference, default, name in self._dynamic:
            targets = self._dynamic_targets(name)
            if set(targets.values()) <= {default}:
                reference.source.refs += (default,)
                continue
            for index, target in targets.items():
                needed.setdefault(index, {})[name] = target
            self._add_dynamic_reference(reference.source, default, name)
        return {index: MappingProxyType(anchors) for index, anchors in needed.items()}

    def _add_dynamic_reference(self, source: Schema, default: SchemaId, name: str) -> None:
        if source.dynamic_ref is not None:  # $dynamicRef and $recursiveRef in the same schema
            other = Schema(source.pointer, resource=source.resource)
            source.all_of += (self._found.append(other),)
            source = other
        source.dynamic_ref, source.dynamic_default = name, default
