"""The states of a reader of JSON text (RFC 8259), byte by byte: what may come next, and what that completes.

`read` takes one piece of text, which may begin and end anywhere, inside a character too. Its state is a tuple that is
never changed, so that whoever keeps one can go back to it; open containers and earlier pieces are linked lists that
states share. The insides of strings are skipped by a regex; other bytes are few.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode
from typing import TypeAlias

from ...errors import JsonTextError
from ...system.types import Foreign
from .json_event import Chunk, Frame, JsonEvent, Key, pointer_of, text_of

#: What is expected: a value; one or the end of an array; a name or the end of an object; a name; and so on. The last
#: is other text behind the JSON.
VALUE, FIRST_ITEM, FIRST_NAME, NAME, COLON, AFTER, DONE, OVER = range(8)
#: Inside a string; inside the name of a member; behind a backslash; the four digits behind ``\u``; ``true``, ...
IN_STRING, IN_NAME, ESCAPE, HEX, _, _, LAST_HEX, WORD = range(8, 16)
#: Inside a number: what was read last.
MINUS, ZERO, DIGITS, POINT, FRACTION, E, SIGN, EXPONENT = range(16, 24)
#: The text has ended.
CLOSED = 24

#: Mode; innermost open container; key of the value in it that is being read, or comes next (raw, for a name); where
#: a string, word or number begins; the word, or the mode to return to after an escape; bytes of a character that is
#: not whole; pieces; where the next delta of a string begins; bytes and pieces so far.
State: TypeAlias = "tuple[int, Frame | None, Foreign, int, Foreign, bytes, Chunk | None, int, int, int]"

START: State = (VALUE, None, None, 0, b"", b"", None, 0, 0, 0)

#: What a byte comes to besides another mode: a value, a name or a container begins; a container ends; the next member
#: or item is due; an escape is over; a number is over, and the byte is none of it; a letter of a word; an error.
STRING, MEMBER, NUMBER, LITERAL, OPEN, CLOSE, COMMA, RETURN, BEHIND, LETTER, WRONG = range(32, 43)

_run = re.compile(rb'[^"\\\x00-\x1f]*').match
_half_pair = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}$").search
_ESCAPE_BYTES = len(r"\ud83d")
_WORDS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_QUOTE, _BACKSLASH, _OPEN_OBJECT, _CLOSE_OBJECT = b'"\\{}'
_NUMBER_STARTS = {ord("-"): MINUS, ord("0"): ZERO} | dict.fromkeys(b"123456789", DIGITS)
_NUMBER_ENDS = frozenset((ZERO, DIGITS, FRACTION, EXPONENT))


def _moves() -> list[bytes]:
    """By mode and byte: the mode behind it, or what else it comes to."""
    digits, hexadecimal = b"0123456789", b"0123456789abcdefABCDEF"
    value = {b'"': STRING, b"-" + digits: NUMBER, b"tfn": LITERAL, b"[{": OPEN}
    moves: dict[int, dict[bytes, int]] = {
        VALUE: value,
        FIRST_ITEM: value | {b"]": CLOSE},
        FIRST_NAME: {b'"': MEMBER, b"}": CLOSE},
        NAME: {b'"': MEMBER},
        COLON: {b":": VALUE},
        AFTER: {b",": COMMA, b"]}": CLOSE},
        ESCAPE: {b'"\\/bfnrt': RETURN, b"u": HEX},
        **{mode: {hexadecimal: mode + 1} for mode in range(HEX, LAST_HEX)},
        LAST_HEX: {hexadecimal: RETURN},
        WORD: {bytes(range(256)): LETTER},
        MINUS: {b"0": ZERO, b"123456789": DIGITS},
        ZERO: {b".": POINT, b"eE": E},
        DIGITS: {digits: DIGITS, b".": POINT, b"eE": E},
        POINT: {digits: FRACTION},
        FRACTION: {digits: FRACTION, b"eE": E},
        E: {b"+-": SIGN, digits: EXPONENT},
        SIGN: {digits: EXPONENT},
        EXPONENT: {digits: EXPONENT},
    }
    tables = []
    for mode in range(CLOSED):
        table = bytearray([BEHIND if mode in _NUMBER_ENDS else WRONG]) * 256
        spaces = {b" \t\n\r": mode} if mode <= DONE else {}
        for members, target in (spaces | moves.get(mode, {})).items():
            for byte in members:
                table[byte] = target
        tables.append(bytes(table))
    return tables


_MOVES = _moves()

_EXPECTED = {
    VALUE: "a value", FIRST_ITEM: "a value or ]", FIRST_NAME: "a name or }", NAME: "a name", COLON: "a colon",
    DONE: "the end", IN_STRING: "a character of a string", IN_NAME: "a character of a name",
    ESCAPE: "an escaped character",
} | dict.fromkeys(range(HEX, LAST_HEX + 1), "a hexadecimal digit")  # fmt: skip


def read(
    state: State, data: bytes, begin: int, starts: bool, deltas: bool, keep: bool, trailing: bool
) -> tuple[State, list[JsonEvent]]:
    """Read one piece of text, not empty.

    Parameters
    ----------
    state, data:
        Where the text is, and what comes next. The state stays as it is.
    begin:
        Bytes of ``data`` that are skipped.
    starts, deltas, keep, trailing:
        See `structgen.runtime.events.events.JsonEvents`.

    Returns
    -------
    The state after it, and what was completed.

    Raises
    ------
    JsonTextError
        Where the text can't be the beginning of JSON.
    """
    mode, frame, key, first, aux, carry, chunk, since, offset, count = state
    if mode == CLOSED:
        raise JsonTextError("the text has ended", where=f"byte {offset}", remedy="Roll back, or use a new reader.")
    events: list[JsonEvent] = []
    here: Chunk = chunk, data, offset, count
    i, end, is_utf8 = begin, len(data), True
    if carry or not data.isascii():
        carry, end, is_utf8 = _whole_characters(carry, data, begin)
    while i < end and mode != OVER:
        if IN_STRING <= mode <= IN_NAME:
            i = _run(data, i, end).end()  # type: ignore[union-attr]
            if i == end:
                break
            byte = data[i]
            if byte == _BACKSLASH:
                aux, mode = mode, ESCAPE
            elif byte != _QUOTE:
                raise _unexpected(state, data, i, mode, frame, key)
            elif mode == IN_NAME:
                key, mode = text_of(here, first, offset + i + 1), COLON
            else:
                if deltas and since < offset + i:
                    events.append(JsonEvent("delta", "string", frame, key, since, offset + i, here))
                events.append(JsonEvent("value", "string", frame, key, first, offset + i + 1, here))
                mode = DONE if frame is None else AFTER
            i += 1
            continue
        byte = data[i]
        move = _MOVES[mode][byte]
        if move == BEHIND:  # a number, whose end may be in an earlier piece
            events.append(JsonEvent("value", "number", frame, key, first, offset + i, here if i else chunk))
            mode = DONE if frame is None else AFTER
            move = _MOVES[mode][byte]
        place = offset + i
        i += 1
        if move < STRING:
            mode = move
        elif move == RETURN:
            mode = aux
        elif move == COMMA and frame is not None:
            mode, key = (NAME, key) if frame[2] else (VALUE, key + 1)
        elif move == MEMBER:
            first, mode = place, IN_NAME
        elif move == NUMBER:
            first, mode = place, _NUMBER_STARTS[byte]
        elif move == LITERAL:
            first, mode, aux = place, WORD, _WORDS[byte]
        elif move == STRING:
            first, mode, since = place, IN_STRING, place + 1
            if starts:
                events.append(JsonEvent("start", "string", frame, key, place, place + 1, here))
        elif move == OPEN:
            is_object = byte == _OPEN_OBJECT
            if starts:
                kind = "object" if is_object else "array"
                events.append(JsonEvent("start", kind, frame, key, place, place + 1, here))
            frame = frame, key, is_object, place, count
            mode, key = (FIRST_NAME, None) if is_object else (FIRST_ITEM, 0)
        elif move == CLOSE and frame is not None and frame[2] == (byte == _CLOSE_OBJECT):
            frame, key, is_object, opened, token = frame
            kind, kept = "object" if is_object else "array", here if keep else None
            tokens = range(token, count + 1)
            events.append(JsonEvent("value", kind, frame, key, opened, place + 1, kept, tokens))
            mode = DONE if frame is None else AFTER
        elif move == LETTER and byte == aux[place - first]:
            if place - first == len(aux) - 1:
                kind = "null" if aux == b"null" else "boolean"
                events.append(JsonEvent("value", kind, frame, key, first, place + 1, here))
                mode = DONE if frame is None else AFTER
        elif mode == DONE and trailing:
            mode = OVER
        else:
            raise _unexpected(state, data, i - 1, mode, frame, key, repr(aux.decode()) if mode == WORD else "")
    if mode == OVER:
        carry = b""
    elif not is_utf8:
        raise JsonTextError("the text is not UTF-8", where=_place(offset + end - 1, frame, key))
    elif deltas and mode == IN_STRING and not carry:
        # Half of a surrogate pair waits for the other.
        last = text_of(here, max(since, offset + end - _ESCAPE_BYTES), offset + end)
        if last and not _half_pair(last):
            events.append(JsonEvent("delta", "string", frame, key, since, offset + end, here))
            since = offset + end
    if keep:
        chunk = here
    elif mode < IN_STRING:
        chunk = None
    else:
        chunk = here if first < offset else (None, data, offset, count)
    return (mode, frame, key, first, aux, carry, chunk, since, offset + len(data), count + 1), events


def _whole_characters(carry: bytes, data: bytes, begin: int) -> tuple[bytes, int, bool]:
    """Bytes of a character that is not whole yet; where to stop, behind what is not UTF-8; whether all of it is."""
    text = carry + data[begin:]
    try:
        _, consumed = utf_8_decode(text, "strict", False)
    except UnicodeDecodeError as error:
        return b"", begin + max(0, error.start - len(carry)) + 1, False
    return text[consumed:], len(data), True


def one_more(state: State, length: int) -> State:
    """The state after a piece of text that is not looked at."""
    return *state[:8], state[8] + length, state[9] + 1


def may_end(state: State) -> bool:
    """Whether the text is complete JSON."""
    return state[0] in (DONE, OVER, CLOSED) or (state[0] in _NUMBER_ENDS and state[1] is None)


def standing(state: State) -> str:
    """The value that is being written, or comes next, as a JSON pointer (RFC 6901)."""
    mode, frame, key, _, aux, *_ = state
    if ESCAPE <= mode <= LAST_HEX:
        mode = aux
    between = mode in (FIRST_NAME, NAME, IN_NAME, AFTER)
    return pointer_of(*frame[:2]) if between and frame is not None else pointer_of(frame, key)


def finish(state: State) -> tuple[State, list[JsonEvent]]:
    """The text ends here: the state after that, and a number that ends with it. Raises `JsonTextError`."""
    mode, frame, key, first, _, _, chunk, _, offset, _ = state
    if not may_end(state):
        raise JsonTextError("the text ends before its JSON is complete", where=_place(offset, frame, key))
    events = [JsonEvent("value", "number", None, None, first, offset, chunk)] if mode in _NUMBER_ENDS else []
    return (CLOSED, *state[1:]), events


def _place(position: int, frame: Frame | None, key: Key) -> str:
    pointer = pointer_of(frame, key)
    return f"byte {position}, in {pointer}" if pointer else f"byte {position}"


def _unexpected(
    state: State, data: bytes, i: int, mode: int, frame: Frame | None, key: Key, expected: str = ""
) -> JsonTextError:
    if mode == AFTER and frame is not None:
        expected = "a comma or }" if frame[2] else "a comma or ]"
    expected = expected or _EXPECTED.get(mode, "a digit")
    found = repr(data[i : i + 1])[1:]
    what = f"the text is not JSON: {expected} expected, {found} found"
    return JsonTextError(what, where=_place(state[8] + i, frame, key))
