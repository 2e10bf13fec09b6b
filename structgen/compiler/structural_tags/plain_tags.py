"""Tags of which one look says all that a compile needs, as most tools have. They are read when a text comes to them."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from typing import NamedTuple

from ...definitions.styles import STYLES
from ...system.memo import Memo
from ...system.types import Foreign
from ..json_schema.read.plain import is_plain

#: Fields of a tag, and of a schema in it.
_TAG = frozenset({"type", "begin", "content", "end", "label"})
_SCHEMA = frozenset({"type", "json_schema", "style", "label", "options"})

#: The options that a schema which is seen may have: those of a strict tool.
_STRICT = {"additional_properties": False}

#: Formats in a tag that is plain are not nested more deeply.
MOST_LEVELS = 4

#: Bytes of marshalled tags of which a process remembers what a look has said.
_MOST_KNOWN = 1 << 22


class SeenTag(NamedTuple):
    """What is seen of a tag.

    Parameters
    ----------
    begin:
        The text that it begins with.
    nullable:
        Whether the empty text is among those of its content, and among its ends.
    texts:
        All texts in it, for names of special tokens.
    styles:
        Those of its schemas.
    work:
        How much work it is to lower its ends and the texts of its content; see `work`.
    """

    begin: str
    nullable: bool
    texts: str
    styles: frozenset[str]
    work: int
    weight: int  # bytes that the memo counts


_KNOWN: Memo[tuple[bool, bytes], SeenTag] = Memo(_MOST_KNOWN, lambda seen: seen.weight)


def look_at(tag: bytes, *, closed: bool) -> SeenTag | None:
    """What is seen of a marshalled tag; None where it must be read to know that it is sound.

    It begins and ends with texts; its content is of schemas that `is_plain` says are sound, and of texts. Objects may
    be ``closed`` where schemas do not say so.
    """
    seen = _KNOWN.get((closed, tag))
    if seen is None:
        seen = _look_at(marshal.loads(tag), closed, len(tag))
        if seen is not None:
            _KNOWN[closed, tag] = seen
    return seen


def _look_at(tag: Mapping[str, Foreign], closed: bool, weight: int) -> SeenTag | None:
    begin, end, content = tag.get("begin"), tag.get("end"), tag.get("content")
    ends = end if type(end) is list else [end]
    if not (type(begin) is str and ends and all(type(each) is str for each in ends) and tag.keys() <= _TAG):
        return None
    if tag.get("type", "tag") != "tag":
        return None
    look = _Content(closed)
    nullable = look.nullable(content, MOST_LEVELS)
    if nullable is None or type(tag.get("label", "")) is not str:
        return None
    texts = [*look.texts, *ends]
    work = sum(map(len, texts))
    return SeenTag(begin, nullable and "" in ends, "\n".join([begin, *texts]), frozenset(look.styles), work, weight)


class _Content:
    """A look at the formats in a tag."""

    def __init__(self, closed: bool) -> None:
        self.texts: list[str] = []
        self.styles: set[str] = set()
        self._closed = closed

    def nullable(self, format_: Foreign, levels: int) -> bool | None:
        """Whether the empty text is among a format's, of so many levels; None where it is not known to be sound."""
        if type(format_) is not dict or not levels:
            return None
        kind = format_.get("type")
        if kind == "json_schema":
            return self._of_schema(format_)
        if kind == "const_string" and format_.keys() == {"type", "value"} and type(format_["value"]) is str:
            self.texts.append(format_["value"])
            return not format_["value"]
        if kind == "optional" and format_.keys() == {"type", "content"}:
            return None if self.nullable(format_["content"], levels - 1) is None else True
        if kind == "sequence" and format_.keys() == {"type", "elements"} and type(format_["elements"]) is list:
            found = [self.nullable(each, levels - 1) for each in format_["elements"]]
            return None if None in found or not found else all(found)
        return None

    def _of_schema(self, format_: Mapping[str, Foreign]) -> bool | None:
        schema, style = format_.get("json_schema"), format_.get("style", "json")
        if type(style) is not str or not (style == "json" or style in STYLES) or not format_.keys() <= _SCHEMA:
            return None
        tagged = style != "json"
        options = format_.get("options")
        if type(format_.get("label", "")) is not str or options not in (None, _STRICT):
            return None
        if not is_plain(schema, tagged=tagged, closed=self._closed or options is not None):
            return None
        self.styles.add(style)
        return type(schema) is dict and tagged and not schema.get("required")
