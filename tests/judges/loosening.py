"""The judge of explanations: what is named is taken out of the schema, and the text must be able to go on.

A schema without the keywords that are named is compiled like any other; nothing of `structgen.explanations` is asked.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterator
from itertools import islice, product
from typing import Any

import structgen as sg
from structgen.explanations.values import Reason

#: What takes an option out.
LOOSE: dict[str, dict[str, Any]] = {
    "property_order": {"property_order": "any"}, "additional_properties": {"additional_properties": True},
    "whitespace": {"whitespace": "any", "max_whitespace": None}, "escapes": {"escapes": "any"},
    "excludes": {"excludes": ()},
    "item_separator": {"item_separator": None}, "key_separator": {"key_separator": None},
    "max_items": {"max_items": None},
}  # fmt: skip

#: Styles that have declared members alone: a value can't become an object that no keyword declares members of.
DECLARED_ALONE = frozenset({"minimax_m3_xml"})

#: Combinations of alternatives that are tried.
_MOST = 24


def without(schema: Any, pointers: set[str], declared: Collection[str] = ()) -> Any:
    """A schema without the keywords, or with ``true`` in place of the schemas, at some JSON pointers.

    Where a type was taken out members of some names are declared.
    """
    schema = copy.deepcopy(schema)
    for pointer in sorted(pointers, key=len, reverse=True):
        if not pointer:
            return True
        node = schema
        *path, last = [segment.replace("~1", "/").replace("~0", "~") for segment in pointer.split("/")[1:]]
        parents = [node]
        for segment in path:
            node = node[int(segment)] if isinstance(node, list) else node[segment]
            parents.append(node)
        is_named = path and path[-1] in ("properties", "patternProperties", "dependentSchemas", "$defs")
        if isinstance(node, list):
            node[int(last)] = True
        elif is_named and isinstance(node[last], bool):
            node[last] = True
        else:
            del node[last]
            if last in ("type", "enum", "const"):
                node["properties"] = dict.fromkeys(declared, True) | node.get("properties", {})
    return schema


def with_any_of(schema: Any, pointers: set[str]) -> Any:
    """A schema whose ``oneOf`` is an ``anyOf`` wherever a pointer leads into one."""
    schema = copy.deepcopy(schema)
    for pointer in pointers:
        node = schema
        for segment in pointer.split("/")[1:]:
            name = segment.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and name == "oneOf" and isinstance(node.get(name), list):
                any_of = node["oneOf"] = _AnyOf(node["oneOf"])
                node = any_of
            else:
                node = node[int(name)] if isinstance(node, list) else node[name]
    return _renamed(schema)


class _AnyOf(list[Any]):
    """Alternatives of which any number may match."""


def _renamed(node: Any) -> Any:
    if isinstance(node, list):
        return [_renamed(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = {name: _renamed(value) for name, value in node.items() if not isinstance(value, _AnyOf)}
    for value in node.values():
        if isinstance(value, _AnyOf):
            found["allOf"] = [*found.get("allOf", []), {"anyOf": _renamed([*value])}]
    return found


def revivals(reasons: tuple[Reason, ...]) -> Iterator[tuple[Reason, ...]]:
    """The sets of reasons that must each be enough: all of them, of alternatives each branch in turn."""
    choices = [
        [(reason,)]
        if not reason.alternatives
        else [each for branch in reason.alternatives for each in revivals(branch)]
        for reason in reasons
    ]
    for chosen in islice(product(*choices), _MOST):
        yield tuple(reason for each in chosen for reason in each)


def is_revived(schema: Any, options: dict[str, Any], reasons: tuple[Reason, ...], data: bytes, *, whole: bool) -> bool:
    """Whether a text, or its beginning, is taken when some reasons are taken out.

    What is taken out of a branch of ``oneOf`` has that branch match elsewhere in the text, too, where another one
    matches. Then the same is asked of ``anyOf``, which alone must not be enough.
    """
    named = [reason for reason in reasons if reason.kind in ("keyword", "conflict", "alternatives")]
    pointers = {place for reason in named for place in reason.where}
    loose = dict(options)
    for reason in reasons:
        if reason.kind == "option":
            for name in reason.where:
                loose |= LOOSE[name]
    if _takes(without(schema, pointers), loose, data, whole):
        return True
    if options.get("style") in DECLARED_ALONE:
        names = dict.fromkeys(re.findall(r"(?<=\[<)[^<>/]+(?=>)", data.decode("utf-8", "ignore")))
        if _takes(without(schema, pointers, names), loose, data, whole):
            return True
    inner = {pointer for pointer in pointers if "/oneOf/" in pointer}
    if not inner or _takes(with_any_of(schema, inner), options, data, whole):
        return False
    left = with_any_of(without(schema, pointers), {pointer.rpartition("/")[0] for pointer in inner})
    return _takes(left, loose, data, whole)


def _takes(schema: Any, options: dict[str, Any], data: bytes, whole: bool) -> bool:
    try:
        index = sg.compile(sg.JsonSchema(schema, **options), sg.Vocabulary.bytewise(), eager=False, base_rows=False)
    except sg.errors.UnsupportedError:
        return True  # not to be judged
    found = index.match(data)
    return found.accepted if whole else found.consumed == len(data)


def is_right(schema: Any, options: dict[str, Any], found: sg.Explanation) -> bool | None:
    """Whether what is named of a refusal stands against it; None where nothing of a schema, or tags beside it, is."""
    kinds = {reason.kind for reason in found.reasons}
    if kinds & {"json", "incomplete", "tag"} or ("option" in kinds and not found.reasons[0].where):
        return None
    whole, data = found.consumed == len(found.data), found.data[: found.consumed + 1]
    if "unknown" in kinds:
        return False
    ways = [way for way in revivals(found.reasons) if all(reason.kind != "tag" for reason in way)]
    return all(is_revived(schema, options, way, data, whole=whole) for way in ways) if ways else None
