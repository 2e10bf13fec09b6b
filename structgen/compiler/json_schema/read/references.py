"""Where a ``$ref`` leads: resources and their URIs, anchors, JSON pointers (RFC 3986, RFC 6901).

A *resource* is a document, or a part of one with a ``$id`` of its own. Nothing is ever fetched: beside the user's
document there are only the metaschemas, which schemas that describe schemas refer to. They ship with the package, as
https://json-schema.org publishes them, and are read when a reference asks for one.

Most documents refer by ``#/$defs/name`` alone. So a pointer is followed where it is met, and the search for ids and
anchors in all of the document happens once a reference needs it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from ....budget import Meter
from ....errors import DefinitionError, UnsupportedError
from .document import Json
from .drafts import DRAFT4, UNDECLARED, Dialect, named_draft
from .json_values import describe, parse_json

_METASCHEMA = re.compile(r"https?://json-schema\.org/(draft-0[467]|draft/20(?:19-09|20-12))/(schema|meta/[a-z-]+)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

#: A longer name is cut in a message, and as a part of a pointer, which explanations follow.
_SHOWN_NAME, _SHOWN_SEGMENT = 100, 1_000

_SEARCHING = "looking for $id and $anchor"


class Location(NamedTuple):
    """A subschema in a document. ``resource`` is an index into `References.resources`."""

    node: Json
    pointer: str
    resource: int
    draft: Dialect


class Resource:
    """A part of a document that has a URI: where its relative references start, and which anchors it has.

    ``anchors`` holds every anchor, ``dynamic_anchors`` those that a dynamic reference may prefer; a draft 2019-09
    ``$recursiveAnchor`` is the dynamic anchor ``""``. Both are complete once the document has been searched.
    """

    __slots__ = ("anchors", "base", "dynamic_anchors", "root")

    def __init__(self, base: str, root: Location) -> None:
        self.base = base
        self.root = root
        self.anchors: dict[str, Location] = {}
        self.dynamic_anchors: dict[str, Location] = {}


class References:
    """The resources of a document and of the metaschemas that it refers to."""

    def __init__(self, node: Json, meter: Meter) -> None:
        self.resources: list[Resource] = []
        self._meter = meter
        self._entered: dict[int, tuple[int, Dialect]] = {}  # by the identity of the node
        self._by_uri: dict[str, Resource] = {}
        self._legacy: dict[str, Resource] = {}  # by `id`, where no draft was named
        self._legacy_base = ""
        self._searched = 0  # how many of the documents
        self._documents: list[Location] = []
        self.root = self._open(node, "", "", UNDECLARED)

    def enter(self, node: dict[str, Json], pointer: str, resource: int, draft: Dialect) -> tuple[int, Dialect]:
        """The resource and draft of a subschema, given those of the place around it.

        ``$schema`` changes the keywords, but which of them makes a resource is up to the draft around it.
        """
        known = self._entered.get(id(node))
        if known is not None:
            return known
        around = draft
        if "$schema" in node:
            draft = named_draft(node["$schema"], f"{pointer}/$schema") or draft
        uri = node.get(around.id_keyword)
        if around.ref_alone and "$ref" in node:
            uri = None
        if isinstance(uri, str) and uri and not (uri[0] == "#" and (around.id_is_anchor or uri == "#")):
            base = self._join(self.resources[resource].base, uri, pointer)
            return self._add(node, base, pointer, draft).root.resource, draft
        self._entered[id(node)] = resource, draft
        return resource, draft

    def resolve(self, reference: str, at: Location) -> Location:
        """Where a reference that stands at a place leads.

        Raises `DefinitionError` where that is nowhere, and `UnsupportedError` where it is outside the document.
        """
        base = self.resources[at.resource].base
        if reference[:1] == "#":
            return self._fragment(self.resources[at.resource], reference[1:], reference, at)
        uri, fragment = urldefrag(self._join(base, reference, at.pointer, keep_fragment=True))
        found = self.resources[at.resource] if uri == base else self._resource(uri, reference, at)
        return self._fragment(found, fragment, reference, at)

    def search(self) -> None:
        """Fill in the ids and anchors of everything opened so far."""
        while self._searched < len(self._documents):
            document = self._documents[self._searched]
            self._searched += 1
            self._search(document)

    # Resources

    def _open(self, node: Json, uri: str, pointer: str, draft: Dialect) -> Location:
        """Make a document known, under the URI that it was found by and the one that it gives itself."""
        if isinstance(node, dict) and "$schema" in node:
            draft = named_draft(node["$schema"], f"{pointer}/$schema") or draft
        base = uri
        if isinstance(node, dict) and not (draft.ref_alone and "$ref" in node):
            own = node.get(draft.id_keyword)
            base = (isinstance(own, str) and self._join(uri, own, pointer)) or uri
        resource = self._add(node, base, pointer, draft)
        self._by_uri.setdefault(uri, resource)
        self._documents.append(resource.root)
        return resource.root

    def _add(self, node: Json, base: str, pointer: str, draft: Dialect) -> Resource:
        resource = Resource(base, Location(node, pointer, len(self.resources), draft))
        self.resources.append(resource)
        self._entered[id(node)] = resource.root.resource, draft
        self._by_uri.setdefault(base, resource)
        return resource

    def _join(self, base: str, uri: str, pointer: str, keep_fragment: bool = False) -> str:
        try:
            joined = urljoin(base, uri)
            return joined if keep_fragment else urldefrag(joined)[0]
        except ValueError as error:  # such as an IPv6 address without its closing bracket
            what = f"{_shown(uri)!r} is not a URI: {error}"
            raise DefinitionError(what, where=pointer or "the root", remedy="Correct it (RFC 3986).") from None

    def _resource(self, uri: str, reference: str, at: Location) -> Resource:
        """The resource of that URI, without its fragment."""
        self.search()
        found = self._by_uri.get(uri)
        if found is None and at.draft.tolerant:
            old = self._join(self._legacy_base, reference, at.pointer)
            found = self._legacy.get(uri) or self._legacy.get(old)
        if found is None and (match := _METASCHEMA.fullmatch(uri)):
            node = _metaschema(f"{match[1]}.{match[2]}".replace("/", "."))
            if node is not None:
                found = self.resources[self._open(node, uri, uri + "#", UNDECLARED).resource]
        if found is None:
            raise UnsupportedError(
                f"$ref leads to {_shown(uri)!r}, which is not in the document and is never fetched",
                where=at.pointer or "the root",
                remedy="Put that schema under $defs, with this URI as its $id, or refer to it as '#/$defs/...'.",
            )
        return found

    # Fragments

    def _fragment(self, resource: Resource, fragment: str, reference: str, at: Location) -> Location:
        if "%" in fragment:
            fragment = unquote(fragment, errors="replace")
        if not fragment:
            return resource.root
        if fragment[0] == "/":
            return self._follow(resource.root, fragment, reference, at)
        self.search()
        place = resource.anchors.get(fragment)
        if place is None:
            raise _nowhere(reference, at, f"there is no anchor {_shown(fragment)!r}")
        return place

    def _follow(self, root: Location, fragment: str, reference: str, at: Location) -> Location:
        """Follow a JSON pointer. It may lead through keywords that are unknown, where no ids count."""
        node, pointer, resource, draft = root
        at_schema, among_schemas = True, False  # whether we stand on one, or on what holds several
        for segment in fragment[1:].split("/"):
            name = segment.replace("~1", "/").replace("~0", "~") if "~" in segment else segment
            if isinstance(node, dict) and name in node:
                child = node[name]
            elif isinstance(node, list) and _INDEX.fullmatch(name) and int(name) < len(node):
                child = node[int(name)]
            else:
                raise _nowhere(reference, at, f"there is no {_shown(name)!r} at {pointer or 'the root'}")
            several = at_schema and name in draft.several and not (name in draft.one and isinstance(child, dict))
            at_schema = among_schemas or (at_schema and name in draft.one and not several)
            node, pointer, among_schemas = child, f"{pointer}/{shown_segment(name)}", several
            if at_schema and isinstance(node, dict):
                resource, draft = self.enter(node, pointer, resource, draft)
        if not isinstance(node, dict | bool):
            raise _nowhere(reference, at, f"{pointer} is {describe(node)}, not a schema")
        return Location(node, pointer, resource, draft)

    # Ids and anchors

    def _search(self, document: Location) -> None:
        """Visit every subschema of a document, without recursion. What is no schema is the reader's to refuse."""
        todo = deque([(document, "")])  # with the URI that `id` gives to what is around it, where no draft was named
        legacy_anchors: list[tuple[Resource, str, Location]] = []
        for _ in self._meter.each(iter(todo.__len__, 0), _SEARCHING):
            (node, pointer, resource, draft), base = todo.popleft()
            if not isinstance(node, dict):
                continue
            resource, draft = self.enter(node, pointer, resource, draft)
            place = Location(node, pointer, resource, draft)
            self._note_anchors(node, place)
            own_id = node.get(DRAFT4.id_keyword)
            if document.draft.tolerant and draft.tolerant and isinstance(own_id, str) and own_id:
                if own_id[0] == "#":
                    legacy_anchors.append((self.resources[resource], own_id[1:], place))
                else:
                    base = self._join(base, own_id, pointer)
                    self._note_legacy_id(base, place)
            for path, child in _children(node, draft):
                todo.append((Location(child, f"{pointer}/{path}", resource, draft), base))
            if len(pointer) > 100_000:
                self._meter.check_memory(len(pointer) * len(todo), _SEARCHING)
        for holder, name, place in legacy_anchors:
            holder.anchors.setdefault(name, place)

    def _note_legacy_id(self, uri: str, place: Location) -> None:
        alias = self._legacy.setdefault(uri, Resource(uri, place))
        alias.anchors = self.resources[place.resource].anchors
        if place.node is self.root.node:
            self._legacy_base = uri

    def _note_anchors(self, node: dict[str, Json], place: Location) -> None:
        draft, resource = place.draft, self.resources[place.resource]
        own_id = node.get(draft.id_keyword)
        if draft.id_is_anchor and isinstance(own_id, str) and own_id[:1] == "#" and len(own_id) > 1:
            resource.anchors.setdefault(own_id[1:], place)
        if draft.ref_alone:
            return
        for keyword in ("$anchor", "$dynamicAnchor") if draft.name == "2020-12" else ("$anchor",):
            name = node.get(keyword)
            if isinstance(name, str):
                resource.anchors.setdefault(name, place)
                if keyword == "$dynamicAnchor":
                    resource.dynamic_anchors.setdefault(name, place)
        recursive = draft.name == "2019-09" or draft.tolerant
        if recursive and node.get("$recursiveAnchor") is True and resource.root.node is node:
            resource.dynamic_anchors.setdefault("", place)


def shown_segment(name: str) -> str:
    """A member's name as a segment of a JSON pointer for messages: escaped, and cut where it is long."""
    if len(name) > _SHOWN_SEGMENT:
        name = name[:_SHOWN_SEGMENT] + "…"
    if not name.isascii():
        name = name.encode("utf-8", "backslashreplace").decode()  # a lone surrogate can't be printed
    if "~" in name or "/" in name:
        name = name.replace("~", "~0").replace("/", "~1")
    return name


@cache
def _metaschema(name: str) -> Json:
    """A metaschema by the name of its file, None if there is no such. Nobody may change it."""
    from importlib import resources  # which loads tempfile, and more

    file = resources.files(__package__) / "metaschemas" / f"{name}.json"
    return parse_json(file.read_text(encoding="utf-8")) if file.is_file() else None


def _children(node: dict[str, Json], draft: Dialect) -> Iterator[tuple[str, Json]]:
    """The values below a schema where its draft expects schemas, each with its path."""
    for keyword, value in node.items():
        if isinstance(value, dict) and keyword in draft.one:
            yield keyword, value
        elif isinstance(value, dict) and keyword in draft.several:
            for name, item in value.items():
                yield f"{keyword}/{shown_segment(name)}", item
        elif isinstance(value, list) and keyword in draft.several:
            for index, item in enumerate(value):
                yield f"{keyword}/{index}", item


def _nowhere(reference: str, at: Location, why: str) -> DefinitionError:
    return DefinitionError(
        f"the reference {_shown(reference)!r} leads nowhere: {why}",
        where=at.pointer or "the root",
        remedy="Correct it, or define what it names.",
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_NAME else text[:_SHOWN_NAME] + "…"
