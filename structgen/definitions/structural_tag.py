"""The JSON of a structural tag, in any of the shapes that servers are sent it."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii as quote

from ..errors import DefinitionError, StructgenError
from ..system.memo import Memo
from ..system.types import Foreign
from .json_text import dumps, dumps_plain, loads

#: The `type` of what holds a format, as servers are sent it.
STRUCTURAL_TAG = "structural_tag"

#: The version of `marshal` in which values that are the same have one object for strings that are.
_MARSHALLED = 4

#: Bytes of tags that are packed by themselves, letters of a format with such tags, and its levels above them.
_MOST_BYTES, _MOST_LETTERS, _MOST_LEVELS = 1 << 16, 1 << 20, 8

#: The JSON of tags that come again, as they do with each request of the same tools: so many letters.
_KNOWN: Memo[bytes, str] = Memo(1 << 22, len)

#: Fields of formats with formats in them.
_NESTED = frozenset({"content", "elements", "tags"})


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
    if value.get("type", STRUCTURAL_TAG) == STRUCTURAL_TAG and "format" in value:  # XGrammar leaves the type out, too
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


def write_format(value: Foreign) -> tuple[str, bytes]:
    """The JSON of a format; and the format for `marshal`, in it tags that stand in a list, marshalled by themselves.

    The second is empty where that does not say it all. Raises as `dumps`.
    """
    writer = _Writer()
    try:
        packed, text = writer.write(value, _MOST_LEVELS)
        return text, marshal.dumps(packed, _MARSHALLED)
    except (ValueError, RecursionError, StructgenError):  # which is told with its place in the whole
        return dumps(value), b""


def _marshalled(tag: Foreign) -> bytes:
    """A tag, marshalled; nothing for a large one."""
    data = marshal.dumps(tag, _MARSHALLED) if type(tag) is dict else b""
    return data if len(data) <= _MOST_BYTES else b""


class _Writer:
    """Writes a format, the tags in it each by itself.

    Raises `ValueError` where there is more than is written so, or something that `marshal` keeps and JSON does not,
    such as a tuple.
    """

    def __init__(self) -> None:
        self._left = _MOST_LETTERS

    def write(self, value: Foreign, levels: int) -> tuple[Foreign, str]:
        """What is marshalled of a value, and its JSON."""
        if levels and type(value) is list:
            found = [self.write(each, levels - 1) for each in value]
            return [packed for packed, _ in found], f"[{','.join([text for _, text in found])}]"
        if not levels or type(value) is not dict or not set(map(type, value)) <= {str}:
            return value, self._counted(*dumps_plain([value]))
        members = {
            name: self._tags(inner)
            if name == "tags" and type(inner) is list
            else self.write(inner, levels - 1 if name in _NESTED else 0)
            for name, inner in value.items()
        }
        texts = [f"{quote(name)}:{text}" for name, (_, text) in members.items()]
        return {name: packed for name, (packed, _) in members.items()}, f"{{{','.join(texts)}}}"

    def _tags(self, tags: list[Foreign]) -> tuple[Foreign, str]:
        packed = [_marshalled(tag) for tag in tags]
        texts = [_KNOWN.get(data) for data in packed]
        new = [n for n, text in enumerate(texts) if text is None]
        for n, text in zip(new, dumps_plain([tags[n] for n in new]), strict=True):
            texts[n] = text
            if packed[n]:
                _KNOWN[packed[n]] = text
        text = self._counted(f"[{','.join(filter(None, texts))}]")
        return [data or tag for tag, data in zip(tags, packed, strict=True)], text

    def _counted(self, text: str) -> str:
        self._left -= len(text)
        if self._left < 0:
            raise ValueError("a long format")
        return text
