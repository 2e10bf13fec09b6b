"""JSON text that may break off anywhere, as a tree of values with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

#: The inside of a string; what may be cut off at its end; a number's beginnings; words.
_INSIDE = re.compile(rb'(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_CUT_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_NUMBER = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:(?<=[0-9])[eE][+-]?[0-9]*)?)?")
_WORDS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_SPACE = re.compile(rb"[ \t\n\r]*")

#: What may come next: a value, one or the array's end, a name or the object's end, a name, a colon, a comma or the
#: end, nothing.
_VALUE, _FIRST_ITEM, _FIRST_NAME, _NAME, _COLON, _COMMA, _NOTHING = range(7)


@dataclass(eq=False)
class JsonPlace:
    """A value in a text.

    Parameters
    ----------
    kind:
        ``"object"``, ``"array"``, ``"string"``, ``"number"`` or ``"word"``.
    start, end:
        Its bytes; ``end`` is -1 where the text breaks off within it. A number that the text ends with does.
    names:
        Of an object's members, as far as they are written out, in their order.
    children:
        Values of members or items; there may be a name more than values.
    name_start:
        Where the last name begins whose value has not begun, or -1.
    """

    kind: str
    start: int
    end: int = -1
    names: list[str] = field(default_factory=list)
    children: list[JsonPlace] = field(default_factory=list)
    name_start: int = -1


class UnfinishedJson:
    """A text read as far as it is JSON (RFC 8259).

    Parameters
    ----------
    data:
        The text.

    Attributes
    ----------
    deepest:
        Values that lie in one another, at most, and one.
    root:
        Its value, None where none has begun.
    length:
        Bytes that some JSON text begins with.
    path:
        The values that the text breaks off within, the outermost first; where it breaks off behind a value, that one
        is the last, though it is over, and so is a number that a bracket has ended.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.root: JsonPlace | None = None
        self._open: list[JsonPlace] = []
        self._is_wrong = False
        self.deepest = 1
        self._next = _VALUE
        self.length = self._read()
        self.path = [*self._open]
        last = self.path[-1].children[-1:] if self.path else [self.root] if self.root else []
        self.path += [each for each in last if each not in self.path and not self._in_name(each)]
        closed = [each for each in self.path[-1:] if each.end == len(data)]
        self.path += [number for each in closed for number in each.children[-1:] if number.kind == "number"]

    @property
    def is_whole(self) -> bool:
        """Whether the text is a value, but for a number's end."""
        return self.root is not None and not self._open and self._next == _NOTHING

    def _in_name(self, last: JsonPlace) -> bool:
        """Whether a name was begun behind a value."""
        return bool(self._open) and self._open[-1].name_start > last.start

    def _read(self) -> int:
        at, size = 0, len(self._data)
        while True:
            space = _SPACE.match(self._data, at)
            at = space.end() if space else at
            if at == size:
                return at
            reached = self._step(at)
            if reached <= at or reached == size or self._is_wrong:
                return max(at, reached)
            at = reached

    def _step(self, at: int) -> int:
        """Read a token. Returns where it ends; its beginning, or where it is wrong, if it can't stand there."""
        byte, state = self._data[at : at + 1], self._next
        if state == _COLON and byte == b":":
            self._next = _VALUE
        elif state == _COMMA and byte == b"," and self._open:
            self._next = _NAME if self._open[-1].kind == "object" else _VALUE
        elif (byte == b"}" and self._next in (_FIRST_NAME, _COMMA) and self._ends("object")) or (
            byte == b"]" and self._next in (_FIRST_ITEM, _COMMA) and self._ends("array")
        ):
            self._close(at + 1)
        elif byte == b'"' and state in (_NAME, _FIRST_NAME):
            return self._name(at)
        elif state in (_VALUE, _FIRST_ITEM):
            return self._value(at, byte)
        else:
            return at
        return at + 1

    def _ends(self, kind: str) -> bool:
        return bool(self._open) and self._open[-1].kind == kind

    def _close(self, end: int) -> None:
        self._open.pop().end = end
        self._next = _COMMA if self._open else _NOTHING

    def _name(self, at: int) -> int:
        end, whole = self._string(at)
        inside = self._open[-1]
        inside.name_start = at
        if whole:
            inside.names.append(json.loads(self._data[at:end].decode("utf-8", "replace")))
            self._next = _COLON
        return end

    def _value(self, at: int, byte: bytes) -> int:
        kind = {b"{": "object", b"[": "array", b'"': "string"}.get(byte, "word" if byte in _WORDS else "number")
        place = JsonPlace(kind, at)
        if kind in ("object", "array"):
            end, whole = at + 1, False
        elif kind == "string":
            end, whole = self._string(at)
        elif kind == "word":
            word = _WORDS[byte]
            end = at + next(n for n in range(len(word), 0, -1) if self._data.startswith(word[:n], at))
            whole = end == at + len(word)
            self._is_wrong = not whole and end < len(self._data)
        else:
            found = _NUMBER.match(self._data, at)
            end = found.end() if found else at
            if end == at:
                return at
            whole = end < len(self._data) and self._data[end - 1 : end].isdigit()
            self._is_wrong = not whole and end < len(self._data)
        self._add(place)
        if whole:
            place.end = end
        if kind in ("object", "array"):
            self._open.append(place)
            self.deepest = max(self.deepest, len(self._open) + 1)
            self._next = _FIRST_NAME if kind == "object" else _FIRST_ITEM
        elif whole or end == len(self._data):
            self._next = _COMMA if self._open else _NOTHING
        return end

    def _add(self, place: JsonPlace) -> None:
        if not self._open:
            self.root = place
            return
        inside = self._open[-1]
        if inside.kind == "object":
            inside.name_start = -1
        inside.children.append(place)

    def _string(self, at: int) -> tuple[int, bool]:
        """Where a string ends, or is cut off, or is wrong; and whether it is whole."""
        found = _INSIDE.match(self._data, at + 1)
        end = found.end() if found else at + 1
        if self._data[end : end + 1] == b'"':
            return end + 1, True
        if _CUT_ESCAPE.match(self._data, end):
            end = len(self._data)
        self._is_wrong = end < len(self._data)
        return end, False


def place_at(data: bytes, pointer: str) -> JsonPlace | None:
    """The value that a JSON pointer (RFC 6901) names, or the last one on the way to it; None where no JSON begins."""
    at = UnfinishedJson(data).root
    for segment in pointer.split("/")[1:]:
        if at is None:
            break
        name = segment.replace("~1", "/").replace("~0", "~")
        names = at.names if at.kind == "object" else [str(i) for i in range(len(at.children))]
        found = dict(zip(names, at.children, strict=False)).get(name)
        if found is None:
            break
        at = found
    return at


def segment(outer: JsonPlace, at: int) -> str:
    """The piece of a JSON pointer that leads to a member or an item of a value."""
    return escaped(outer.names[at]) if outer.kind == "object" else str(at)


def escaped(name: str) -> str:
    """A name as a piece of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def segments(path: list[JsonPlace]) -> Iterator[str]:
    """Of values that lie each in the one before: the pieces of a JSON pointer to the last one."""
    for outer, inner in pairwise(path):
        yield segment(outer, next(i for i in range(len(outer.children) - 1, -1, -1) if outer.children[i] is inner))
