"""The judge of explanations: what is named is taken out of the schema, and the text must be able to go on.

A schema without the keywords that are named is compiled like any other; nothing of `structgen.explanations` is asked.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice, product
from typing import Any

import structgen as sg
from structgen.explanations.values import Reason

#: What takes an option out.
LOOSE: dict[str, dict[str, Any]] = {
    "property_order": {"property_order": "any"}, "additional_properties": {"additional_properties": True},
    "whitespace": {"whitespace": "any", "max_whitespace": None}, "escapes": {"escapes": "any"},
    "excludes": {"excludes": ()},
}  # fmt: skip

#: Combinations of alternatives that are tried.
_MOST = 24


def without(schema: Any, pointers: set[str]) -> Any:
    """A schema without the keywords, or with ``true`` in place of the schemas, at some JSON pointers."""
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
    return schema


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


def is_revived(
    schema: Any, options: dict[str, Any], reasons: tuple[Reason, ...], data: bytes, *, whole: bool
) -> bool:
    """Whether a text, or its beginning, is taken when some reasons are taken out."""
    pointers = {place for reason in reasons if reason.kind in ("keyword", "conflict") for place in reason.where}
    pointers |= {place for reason in reasons if reason.kind == "alternatives" for place in reason.where}
    loose = dict(options)
    for reason in reasons:
        if reason.kind == "option":
            for name in reason.where:
                loose |= LOOSE[name]
    try:
        found = sg.compile(
            sg.JsonSchema(without(schema, pointers), **loose), sg.Vocabulary.bytewise(), eager=False, base_rows=False
        ).match(data)
    except sg.errors.UnsupportedError:
        return True  # not to be judged
    return found.accepted if whole else found.consumed == len(data)
