"""The tags in which the formats of tool calls write the members of an object, a row for each.

A member is ``opening``, its name, the text after the name, its value and ``closing``; whitespace may stand around
members. Names and strings are written as they are; all other values as JSON, or, where items have a tag too, numbers,
booleans and null.
"""

from __future__ import annotations

from typing import NamedTuple

#: In a text: whitespace may stand here.
GAP = b"\0"

#: The types of a `Value`, by the fields that hold them.
NUMBERS, STRINGS, BOOLEANS, NULL, ARRAYS, OBJECTS = "numbers", "strings", "booleans", "null", "arrays", "objects"
_NO_STRINGS = frozenset({NUMBERS, BOOLEANS, NULL, ARRAYS, OBJECTS})
_ALL = _NO_STRINGS | {STRINGS}


class Kind(NamedTuple):
    """Values that are written alike.

    Parameters
    ----------
    before:
        The text after a name; its first byte is the same for all kinds, and ends the name.
    types:
        Of which types the values are.
    padded:
        Whether whitespace may stand around them.
    """

    before: bytes
    types: frozenset[str] = _ALL
    padded: bool = True


class Style(NamedTuple):
    """How members are written.

    Parameters
    ----------
    opening, closing:
        The texts before a name and after a value. No end of ``closing`` is a beginning of it.
    kinds:
        The kinds of values.
    entities:
        What is written for some characters of names.
    item:
        What comes before an item, and then a kind's text but for its first byte. Empty: arrays and objects within
        values are JSON.
    again:
        What stands behind ``closing``, before and after the name, which is written once more. Names that the schema
        does not declare cannot be written then.
    item_name:
        The name that is written again behind an item.
    frame:
        What chat templates write around a padded value, so that it is no part of a string.
    """

    opening: bytes
    kinds: tuple[Kind, ...]
    closing: bytes
    entities: tuple[tuple[str, str], ...] = ()
    item: bytes = b""
    again: tuple[bytes, bytes] | None = None
    item_name: bytes = b""
    frame: bytes = b""

    @property
    def name_end(self) -> int:
        """The byte that ends names."""
        return self.kinds[0].before[0]

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands in tags beside names; whitespace may stand between some."""
        before = [kind.before for kind in self.kinds]
        items = [self.item + text[1:] for text in before] if self.item else []
        texts = (self.opening, self.closing, *before, *items, *(self.again or ()))
        return tuple(part.decode() for text in texts for part in text.split(GAP))

    def spelled(self, name: str) -> bytes | None:
        """What is written for a name; None for those that cannot be written."""
        for character, entity in self.entities:
            name = name.replace(character, entity)
        try:
            text = name.encode()
        except UnicodeEncodeError:
            return None
        is_end = self.again is not None and (not text or text[0] == self.again[0][-1])
        return None if self.name_end in text or is_end else text


def _quoted(kind: str) -> bytes:
    return f'" type="{kind}"<|sep|>'.encode()


def _deepseek(space: str) -> Style:
    """DeepSeek's, whose kinds are strings and others."""
    token = "｜DSML｜" + space
    strings = Kind(b'" string="true">', frozenset({STRINGS}), padded=False)
    others = Kind(b'" string="false">', _NO_STRINGS)
    return Style(f'<{token}parameter name="'.encode(), (strings, others), f"</{token}parameter>".encode())


_KIMI_TYPES = {
    STRINGS: "string", NUMBERS: "number", BOOLEANS: "boolean", NULL: "null", ARRAYS: "array", OBJECTS: "object",
}  # fmt: skip

_COHERE_TYPES = {"raw": {STRINGS}, "json": {NUMBERS, BOOLEANS, NULL}, "dict": {OBJECTS}, "list": {ARRAYS}}

#: By the names that `JsonSchema.style` takes.
STYLES = {
    "qwen_xml": Style(b"<parameter=", (Kind(b">"),), b"</parameter>", frame=b"\n"),
    "minimax_xml": Style(b'<parameter name="', (Kind(b'">'),), b"</parameter>"),
    "minimax_m3_xml": Style(
        b"]<]minimax[>[<",
        (Kind(b">", padded=False),),
        b"]<]minimax[>[",
        item=b"]<]minimax[>[<item>",
        again=(b"</", b">"),
        item_name=b"item",
    ),
    "deepseek_xml": _deepseek(""),
    "deepseek_v4_1_xml": _deepseek(" "),
    "glm_xml": Style(b"<arg_key>", (Kind(b"</arg_key>" + GAP + b"<arg_value>"),), b"</arg_value>"),
    "cohere_xml": Style(
        b'<cofl:value name="',
        tuple(Kind(f'" type="{name}">'.encode(), frozenset(types)) for name, types in _COHERE_TYPES.items()),
        b"</cofl:value>",
        (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")),
        b"<cofl:value",
    ),
    "kimi_k3_xml": Style(
        b'<|open|>argument key="',
        tuple(Kind(_quoted(name), frozenset({field})) for field, name in _KIMI_TYPES.items()),
        b"<|close|>argument<|sep|>",
        (("&", "&amp;"), ('"', "&quot;")),
    ),
}
