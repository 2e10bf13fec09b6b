"""`JsonEvent`: a part of a JSON text, where it stands, and what it says. All of that is worked out when asked for."""

from __future__ import annotations

import json
import re
import sys
from typing import Literal, TypeAlias

from ...errors import JsonTextError
from ...system.depth_first import flattened, nested
from ...system.types import JsonValue

#: What stands between values and names.
_BETWEEN = re.compile(r"[ \t\r\n,:]*")

#: A piece of text: those before it, its bytes, its offset in the text, its number.
Chunk: TypeAlias = "tuple[Chunk | None, bytes, int, int]"

#: An open container: the one around it; its key there (a number, a name as it was written, None for the outermost);
#: whether it is an object; where it begins, and in which piece.
Key: TypeAlias = bytes | int | None
Frame: TypeAlias = "tuple[Frame | None, Key, bool, int, int]"

Kind: TypeAlias = Literal["value", "start", "delta"]


class JsonEvent:
    """Something that a text has come to; made by `structgen.runtime.events.events.JsonEvents`.

    Attributes
    ----------
    kind:
        ``"value"``: a value is complete. ``"start"``: one began. ``"delta"``: a string goes on.
    type:
        Of the value: ``"object"``, ``"array"``, ``"string"``, ``"number"``, ``"boolean"``, ``"null"``.
    start, end:
        Its bytes, as offsets in the UTF-8 text: those of the value, of the first byte of what began, of the part of
        a string.
    """

    __slots__ = ("_chunk", "_frame", "_key", "_tokens", "end", "kind", "start", "type")

    def __init__(
        self,
        kind: Kind,
        type: str,
        frame: Frame | None,
        key: Key,
        start: int,
        end: int,
        chunk: Chunk | None,
        tokens: range | None = None,
    ) -> None:
        self.kind = kind
        self.type = type
        self.start = start
        self.end = end
        self._frame = frame
        self._key = key
        self._chunk = chunk
        self._tokens = tokens

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.kind, self.type, self._key, self.start, self.end, self._tokens,
                           flattened((self._frame, self._chunk)))  # fmt: skip

    @property
    def path(self) -> tuple[str | int, ...]:
        """Names of members and numbers of items that lead to the value; () for the outermost."""
        return path_of(self._frame, self._key)

    @property
    def pointer(self) -> str:
        """The path as a JSON pointer (RFC 6901): ``"/items/3/name"``; ``""`` for the outermost value."""
        return pointer_of(self._frame, self._key)

    @property
    def key(self) -> str | int | None:
        """The last part of the path, None for the outermost value."""
        return None if self._frame is None or self._key is None else _decoded(self._key)

    @property
    def tokens(self) -> range:
        """The tokens that have bytes of it, by number: ``tokens[0]`` is the first, ``tokens[-1]`` the last."""
        if self._tokens is None:
            assert self._chunk is not None, "only containers come without their text"
            first, last = _piece_at(self._chunk, self.start), _piece_at(self._chunk, self.end - 1)
            self._tokens = range(first[3], last[3] + 1)
        return self._tokens

    @property
    def text(self) -> bytes:
        """The bytes from ``start`` to ``end``, as they were written.

        Raises `JsonTextError` for an array or object where the reader does not keep the text.
        """
        if self._chunk is None:
            raise JsonTextError(
                f"the text of the {self.type} was not kept", where=self.pointer, remedy="Read with keep_text=True."
            )
        return text_of(self._chunk, self.start, self.end)

    @property
    def value(self) -> JsonValue:
        """The value as `json.loads` reads it, anew each time; the characters of a delta; None for a start.

        Raises `JsonTextError` as `text` does, and for an integer with more digits than Python reads
        (`sys.set_int_max_str_digits`).
        """
        if self.kind == "start":
            return None
        text = self.text.decode()
        if self.kind == "delta":
            return json.loads(f'"{text}"')
        try:
            return json.loads(text)
        except RecursionError:
            return _without_recursion(text)
        except ValueError as error:  # it is JSON, that was seen
            raise JsonTextError(
                f"a number has more than {sys.get_int_max_str_digits()} digits",
                where=self.pointer,
                remedy="Use its text.",
            ) from error

    def __repr__(self) -> str:
        return f"<JsonEvent {self.kind} {self.type} {self.pointer!r} {self.start}:{self.end}>"


def _piece_at(chunk: Chunk, place: int) -> Chunk:
    """The piece that has the byte at a place of the text."""
    while chunk[2] > place and chunk[0] is not None:
        chunk = chunk[0]
    return chunk


def text_of(chunk: Chunk, start: int, end: int) -> bytes:
    """Bytes ``start`` to ``end`` of the text whose last piece is ``chunk``, or an earlier one."""
    _, data, offset, _ = chunk
    if start >= offset:
        return data[start - offset : end - offset]
    parts = []
    while offset > start:
        parts.append(data)
        before, *_ = chunk
        assert before is not None, "all of a value is kept"
        chunk = before
        _, data, offset, _ = chunk
    parts.append(data[start - offset :])
    return b"".join(reversed(parts))[: end - start]


def path_of(frame: Frame | None, key: Key) -> tuple[str | int, ...]:
    """The path of a value, from the container that it is in and its key there."""
    keys: list[str | int] = []
    while frame is not None and key is not None:
        keys.append(_decoded(key))
        frame, key, _, _, _ = frame
    return tuple(reversed(keys))


def pointer_of(frame: Frame | None, key: Key) -> str:
    """The path of a value as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(k).replace("~", "~0").replace("/", "~1") for k in path_of(frame, key))


def _decoded(key: bytes | int) -> str | int:
    name: str | int = json.loads(key.decode()) if isinstance(key, bytes) else key
    return name


def _without_recursion(text: str) -> JsonValue:
    """The value of a JSON text that is nested too deeply for `json.loads`."""
    decode = json.JSONDecoder().raw_decode
    containers: list[JsonValue] = []
    keys: list[str | None] = []  # by container: the name that waits for its value, None for none
    at = 0
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
        if text[at] in "]}":
            value, at = containers.pop(), at + 1
            keys.pop()
        elif text[at] in "[{":
            containers.append([] if text[at] == "[" else {})
            keys.append(None)
            at += 1
            continue
        else:
            value, at = decode(text, at)
        if not containers:
            return value
        if isinstance(containers[-1], list):
            containers[-1].append(value)
        elif keys[-1] is None:
            keys[-1] = value
        else:
            containers[-1][keys[-1]] = value
            keys[-1] = None


def _restored(
    kind: Kind, type: str, key: Key, start: int, end: int, tokens: range | None, flat: list[tuple[object, ...]]
) -> JsonEvent:
    """An event of a pickle."""
    frame, chunk = nested(flat)
    return JsonEvent(kind, type, frame, key, start, end, chunk, tokens)
