"""Definitions made of others: in a row, one of several, with text around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING

from ..errors import DefinitionError
from .json_text import loads
from .structural_tag import StructuralTag
from .values import Gbnf, Grammar, JsonSchema, Regex, as_definition

if TYPE_CHECKING:
    from ..system.types import Foreign


def tag(begin: str, content: object, end: str | Iterable[str] = "") -> StructuralTag:
    """What stands between two texts. Free text at the end of the content ends with the first ``end``.

    ``content``, and all that the other functions put together, is a definition, a str, which stands for itself, or
    what becomes a `JsonSchema`. They raise `DefinitionError` for anything else.
    """
    ends = end if isinstance(end, str) else list(end)
    return StructuralTag({"type": "tag", "begin": begin, "content": format_of(content), "end": ends})


def sequence(*parts: object) -> StructuralTag:
    """One part after the other."""
    return StructuralTag({"type": "sequence", "elements": [format_of(part) for part in parts]})


def one_of(*options: object) -> StructuralTag:
    """Any one of some options."""
    return StructuralTag({"type": "or", "elements": [format_of(option) for option in options]})


def text(
    *,
    until: str | Iterable[str] = "",
    excludes: Iterable[str] = (),
    max_chars: int | None = None,
    max_tokens: int | None = None,
) -> StructuralTag:
    """Free text, up to the first place where a string of ``until`` ends, that string included.

    It holds no string of ``excludes``, and has so many characters, or so many tokens, at most.
    """
    free: dict[str, Foreign] = {"type": "any_text", "excludes": list(excludes)}
    free |= {name: most for name, most in (("max_chars", max_chars), ("max_tokens", max_tokens)) if most is not None}
    if until == "":
        return StructuralTag(free)
    return tag("", StructuralTag(free), until)


def format_of(value: object) -> Foreign:
    """The format of a structural tag that a value stands for. Raises `DefinitionError`."""
    if isinstance(value, str):
        return {"type": "const_string", "value": value}
    definition = as_definition(value)
    if isinstance(definition, StructuralTag):
        if definition != StructuralTag(definition.text):
            what = "a structural tag with options of its own cannot be part of another one"
            raise DefinitionError(what, remedy="Give the whole these options.")
        return loads(definition.text)
    if isinstance(definition, Regex):
        return {"type": "regex", "pattern": definition.pattern, "flags": definition.flags}
    if isinstance(definition, Gbnf):
        return {"type": "grammar", "grammar": definition.text, "start": definition.start}
    if isinstance(definition, JsonSchema):
        own = [f for f in fields(definition) if f.init and f.name != "schema"]
        options = {f.name: value for f in own if (value := getattr(definition, f.name)) != f.default}
        return {"type": "json_schema", "json_schema": loads(definition.text), "options": options}
    kind = "Grammar of Lark's" if isinstance(definition, Grammar) else type(definition).__name__
    raise DefinitionError(f"a {kind} cannot be part of another definition", remedy="Write it as a Regex or a Gbnf.")
