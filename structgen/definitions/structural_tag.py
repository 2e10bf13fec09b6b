"""The JSON of a structural tag, in any of the shapes that servers are sent it."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import DefinitionError
from .json_text import loads

#: The `type` of what holds a format, as servers are sent it.
STRUCTURAL_TAG = "structural_tag"


def read_format(value: object) -> object:
    """The format that a value stands for. Raises `DefinitionError`."""
    if isinstance(value, str):
        value = loads(value)
    if not isinstance(value, Mapping):
        raise DefinitionError(
            f"a structural tag is an object, got {type(value).__name__}",
            where="/",
            remedy='Pass a dict such as {"type": "tag", ...}, or JSON text of one.',
        )
    if value.get("type") == STRUCTURAL_TAG and "format" in value:
        return read_format(value["format"])
    if "structures" in value:
        return _triggered(value)
    return value


def _triggered(value: Mapping[object, object]) -> object:
    """The older form: a schema for each begin and end, and the triggers. SGLang adds ``at_least_one``."""
    structures = value["structures"]
    if not isinstance(structures, list | tuple):
        raise DefinitionError("structures is no list", where="/structures", remedy="Make it a list.")
    tags = []
    for number, each in enumerate(structures):
        if not isinstance(each, Mapping) or not {"begin", "end"} <= each.keys():
            raise DefinitionError(
                "a structure has a begin, a schema and an end", where=f"/structures/{number}", remedy="Add them."
            )
        schema = each.get("schema")
        content = {"type": "json_schema", "json_schema": True if schema is None else schema}
        tags.append({"type": "tag", "begin": each["begin"], "content": content, "end": each["end"]})
    options = {"at_least_one": value["at_least_one"]} if "at_least_one" in value else {}
    return {"type": "triggered_tags", "triggers": value.get("triggers", []), "tags": tags, **options}
