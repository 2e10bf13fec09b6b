"""Names of members that the tags of a style can't hold, whatever keywords say of them."""

from __future__ import annotations

import json
import re
from itertools import pairwise, repeat

from ...definitions.styles import STYLES
from ..values import Reason
from .json_places import JsonPlace, segments
from .probes import SchemaProbes
from .subschemas import ApplyingSubschemas

#: Fields whose subschemas may apply to the same value.
_APPLYING = ("refs", "all_of", "any_of", "one_of", "not_", "if_", "then", "else_", "dependent_schemas")

#: What names that are not declared have none of.
_NO_NAME = re.compile(r'[<>"&\x00-\x1f]')


class TagNames:
    """The names that tags may hold: those that a schema declares for a value, and others of plain characters.

    Parameters
    ----------
    style:
        The name of the tags.
    probes:
        The schema.
    """

    def __init__(self, style: str, probes: SchemaProbes) -> None:
        self._style, self._probes = style, probes
        self._subschemas = ApplyingSubschemas(probes)

    def against(self, text: bytes, path: list[JsonPlace]) -> tuple[Reason, ...]:
        """What stands against the name that some JSON breaks off in or behind, in the last value of a path.

        Nothing where it breaks off elsewhere.
        """
        if not path or path[-1].kind != "object" or path[-1].name_start < 0:
            return ()
        place = path[-1]
        is_over = len(place.names) > len(place.children)
        begun = text[place.name_start :].decode("utf-8", "ignore")
        name = place.names[-1] if is_over else str(json.loads(f'{begun}"'))
        declared = self._declared(path)
        if name in declared if is_over else any(map(str.startswith, declared - {*place.names}, repeat(name))):
            return ()
        if STYLES[self._style].again is not None:
            what = f"style={self._style!r} has declared members alone, once each"
            return (Reason("tag", (), what, _pointer(path)),)
        if _NO_NAME.search(name) or (is_over and not name):
            what = f"no member that is not declared is named so in style={self._style!r}"
            return (Reason("tag", (), what, _pointer(path)),)
        return ()

    def _declared(self, path: list[JsonPlace]) -> set[str]:
        """The names that some subschema declares which may apply to the last of values that lie in one another."""
        schemas = self._subschemas.applied(frozenset({self._probes.root}), _APPLYING)
        for outer, _ in pairwise(path):
            at = len(outer.children) - 1
            of_child = (
                self._subschemas.of_member(each, outer.names[at])
                if outer.kind == "object"
                else self._subschemas.of_item(each, at)
                for each in schemas
            )
            schemas = self._subschemas.applied(frozenset(child for each in of_child for child in each), _APPLYING)
        return {name for each in schemas for name in self._probes.schemas[each].properties}


def _pointer(path: list[JsonPlace]) -> str:
    """The JSON pointer of the last of values that lie each in the one before."""
    return "".join(f"/{each}" for each in segments(path))
