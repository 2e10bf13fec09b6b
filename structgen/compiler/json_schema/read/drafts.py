"""The drafts of JSON Schema: how a document says which it follows, and where each draft expects subschemas.

A document that names no draft is read as Draft 2020-12, and so is one that names a dialect of its own: what
`jsonschema.validators.validator_for` does. But most schemas name none and many of them were written for an earlier
draft, so there older spellings count where Draft 2020-12 has no meaning for them: ``items`` with an array and
``additionalItems`` beside it, booleans for ``exclusiveMinimum`` and ``exclusiveMaximum``, ``dependencies``,
``$recursiveRef``, ``$id`` with a fragment alone, and ``id`` where a reference can't be resolved without it. A
document that names Draft 2020-12 has to keep to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....errors import DefinitionError, UnsupportedError
from .document import Json
from .json_values import describe


@dataclass(frozen=True, eq=False)
class Dialect:
    """One draft's rules, as far as they are not in its keywords (see `structgen.compiler.json_schema.read.keywords`).

    Parameters
    ----------
    name:
        As in `Document.draft`.
    one, several:
        The keywords that hold a subschema; those that hold an array of them, or an object whose members they are.
        (``items`` is both, before 2020-12.)
    id_keyword:
        What names a resource: ``$id`` or ``id``.
    id_is_anchor:
        A fragment alone in ``id_keyword`` names an anchor.
    ref_alone:
        ``$ref`` makes a schema ignore its other keywords.
    exact_integers:
        1.0 is no integer.
    tolerant:
        No draft was named: older spellings count too.
    """

    name: str
    one: frozenset[str]
    several: frozenset[str]
    id_keyword: str = "$id"
    id_is_anchor: bool = False
    ref_alone: bool = False
    exact_integers: bool = False
    tolerant: bool = False


def _keywords(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ONE_4 = _keywords("additionalItems additionalProperties not items")
_ONE_6 = _ONE_4 | _keywords("contains propertyNames")
_ONE_7 = _ONE_6 | _keywords("if then else")
_ONE_2019 = _ONE_7 | _keywords("unevaluatedItems unevaluatedProperties contentSchema")
_SEVERAL_4 = _keywords("allOf anyOf oneOf definitions properties patternProperties items dependencies")
_SEVERAL_2019 = _SEVERAL_4 | _keywords("$defs dependentSchemas")
_SEVERAL_ANY = _SEVERAL_2019 | {"prefixItems"}

DRAFT4 = Dialect("draft4", _ONE_4, _SEVERAL_4, "id", id_is_anchor=True, ref_alone=True, exact_integers=True)
DRAFT6 = Dialect("draft6", _ONE_6, _SEVERAL_4, id_is_anchor=True, ref_alone=True)
DRAFT7 = Dialect("draft7", _ONE_7, _SEVERAL_4, id_is_anchor=True, ref_alone=True)
DRAFT2019 = Dialect("2019-09", _ONE_2019, _SEVERAL_2019)
DRAFT2020 = Dialect("2020-12", _ONE_2019 - {"additionalItems"}, _SEVERAL_ANY - {"items"})
UNDECLARED = Dialect("2020-12", _ONE_2019, _SEVERAL_ANY, id_is_anchor=True, tolerant=True)

#: By the part of the metaschema's URI that differs.
_BY_NAME = {
    "draft-04": DRAFT4,
    "draft-06": DRAFT6,
    "draft-07": DRAFT7,
    "draft/2019-09": DRAFT2019,
    "draft/2020-12": DRAFT2020,
}
_URI = re.compile(r"https?://json-schema\.org/(draft-0[0-7]|draft/20\d\d-\d\d)/schema#?")


def named_draft(uri: Json, where: str) -> Dialect | None:
    """The draft that a ``$schema`` names; None for a dialect of the author's own.

    Raises `UnsupportedError` for Draft 3 and earlier ones, whose keywords mean other things.
    """
    if not isinstance(uri, str):
        raise DefinitionError(
            f"'$schema' must be a string, not {describe(uri)}",
            where=where,
            remedy="Name a draft by the URI of its metaschema, or leave $schema out.",
        )
    match = _URI.fullmatch(uri.strip())
    if match is None:
        return None
    draft = _BY_NAME.get(match[1])
    if draft is None:
        raise UnsupportedError(
            f"$schema names {match[1]!r}",
            where=where,
            remedy="Rewrite the schema for Draft 4, 6, 7, 2019-09 or 2020-12.",
        )
    return draft
