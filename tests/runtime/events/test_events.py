"""Events of JSON texts: judged by `json.loads`, and by a writer that notes what it writes where."""

from __future__ import annotations

import copy
import json
import pickle
import random
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from judges.naive import small_vocabulary

import structgen as sg
from structgen.runtime import ids_of
from structgen.runtime.events.json_event import JsonEvent

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=24,
)
#: Bytes that matter somewhere.
BYTES = b'{}[]",:\\/ \n\x00\x1f0123456789.-+eEutrfn\x80\xc3\xa9\xff\xed'

#: Type, path, start, end, value.
Expected = tuple[str, tuple[Any, ...], int, int, Any]


def write(value: Any, rng: random.Random) -> tuple[bytes, list[Expected]]:
    """A text of a value, with white space and escapes by chance, and what is complete in it, in order."""
    parts: list[bytes] = []
    found: list[Expected] = []

    def length() -> int:
        return sum(map(len, parts))

    def space() -> None:
        parts.append(b"".join(rng.choices([b" ", b"\n", b"\t", b"\r"], k=rng.choice([0, 0, 0, 1, 2]))))

    def string(text: str) -> bytes:
        return json.dumps(text, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")

    def put(value: Any, path: tuple[Any, ...]) -> None:
        space()
        start = length()
        if isinstance(value, dict):
            kind = "object"
            parts.append(b"{")
            for number, (key, member) in enumerate(value.items()):
                parts.append(b"," if number else b"")
                space()
                parts.append(string(key))
                space()
                parts.append(b":")
                put(member, (*path, key))
            space()
            parts.append(b"}")
        elif isinstance(value, list):
            kind = "array"
            parts.append(b"[")
            for number, item in enumerate(value):
                parts.append(b"," if number else b"")
                put(item, (*path, number))
            space()
            parts.append(b"]")
        elif isinstance(value, str):
            kind = "string"
            parts.append(string(value))
        else:
            kind = "null" if value is None else "boolean" if isinstance(value, bool) else "number"
            parts.append(json.dumps(value).encode())
        found.append((kind, path, start, length(), value))
        space()

    put(value, ())
    return b"".join(parts), found


def split(data: bytes, rng: random.Random) -> list[bytes]:
    """The text in pieces, some of them empty."""
    cuts = sorted(rng.choices(range(len(data) + 1), k=rng.randrange(1 + min(40, len(data)))))
    return [data[a:b] for a, b in pairwise([0, *cuts, len(data)])]


def plain(events: list[JsonEvent]) -> list[Expected]:
    return [(e.type, e.path, e.start, e.end, e.value) for e in events if e.kind == "value"]


def touched(pieces: list[bytes], start: int, end: int) -> range:
    """The pieces that have bytes of a span."""
    hit, offset = [], 0
    for number, piece in enumerate(pieces):
        if max(start, offset) < min(end, offset + len(piece)):
            hit.append(number)
        offset += len(piece)
    return range(hit[0], hit[-1] + 1)


def described(event: JsonEvent) -> tuple[Any, ...]:
    return event.kind, event.type, event.path, event.start, event.end, event.tokens, event.value


@given(VALUES, st.integers(0, 1 << 30), st.booleans(), st.booleans())
def test_events_are_a_walk_of_the_document(value: Any, seed: int, starts: bool, deltas: bool) -> None:
    rng = random.Random(seed)
    data, expected = write(value, rng)
    pieces = split(data, rng)
    reader = sg.JsonEvents(starts=starts, deltas=deltas)
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.close()
    assert plain(events) == expected
    for event in events:
        assert event.text == data[event.start : event.end]
        assert event.tokens == touched(pieces, event.start, event.end)
        assert event.key == (event.path[-1] if event.path else None)
    if starts:
        began = sorted((e.path, e.start) for e in events if e.kind == "start")
        assert began == sorted((p, s) for t, p, s, _, _ in expected if t in ("object", "array", "string"))
    if deltas:
        for kind, path, _, end, text in expected:
            if kind == "string":
                parts = [e for e in events if e.kind == "delta" and e.path == path and e.end <= end]
                assert "".join(e.value for e in parts if e.start > _before(events, end)) == text


def _before(events: list[JsonEvent], end: int) -> int:
    """Where the string that ends there begins."""
    return next(e.start for e in events if e.kind == "value" and e.end == end and e.type == "string")


@given(VALUES, st.integers(0, 1 << 30), st.booleans())
def test_values_come_as_soon_as_they_are_complete(value: Any, seed: int, keep_text: bool) -> None:
    data, expected = write(value, random.Random(seed))
    reader = sg.JsonEvents(keep_text=keep_text)
    for place in range(len(data)):
        events = reader.feed(data[place : place + 1])
        for event in events:
            assert event.end == place + (event.type != "number")
        wanted = [e for e in expected if e[3] == place + (e[0] != "number")]
        assert [(e.type, e.path, e.start, e.end) for e in events] == [e[:4] for e in wanted]
    assert reader.is_complete()


@given(VALUES, st.integers(0, 1 << 30), st.sampled_from([None, 0, 3]))
def test_rollback_and_fork_lead_where_feeding_leads(value: Any, seed: int, most: int | None) -> None:
    rng = random.Random(seed)
    data, _ = write(value, rng)
    pieces = split(data, rng)
    reader = sg.JsonEvents(starts=True, deltas=True, max_rollback=most)
    sure: list[list[JsonEvent]] = []
    while len(sure) < len(pieces):
        sure.append(reader.feed(pieces[len(sure)]))
        back = rng.randrange(1 + min(len(sure), 3 if most is None else most))
        if rng.random() < 0.4:
            twin = reader.fork()
            reader.rollback(back)
            again = [reader.feed(piece) for piece in pieces[len(sure) - back : len(sure)]]
            assert [list(map(described, e)) for e in again] == [
                list(map(described, e)) for e in sure[len(sure) - back :]
            ]
            reader = rng.choice([twin, reader])
    plainly = sg.JsonEvents(starts=True, deltas=True)
    wanted = [list(map(described, plainly.feed(piece))) for piece in pieces]
    assert [list(map(described, events)) for events in sure] == wanted


# -- what is no JSON -----------------------------------------------------------------------------------


def is_json(data: bytes) -> bool:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    try:
        json.loads(data.decode(), parse_constant=refuse)
    except ValueError:
        return False
    return True


def accepts(data: bytes) -> bool:
    reader = sg.JsonEvents()
    try:
        reader.feed(data)
        assert reader.is_complete() == can_close(reader)
        reader.close()
    except sg.errors.JsonTextError:
        return False
    return True


def can_close(reader: sg.JsonEvents) -> bool:
    try:
        reader.fork().close()
    except sg.errors.JsonTextError:
        return False
    return True


@given(VALUES, st.integers(0, 1 << 30))
def test_accepts_what_is_json(value: Any, seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(write(value, rng)[0])
    for _ in range(rng.choice([1, 1, 2])):
        place, byte = rng.randrange(len(data) + 1), rng.choice(BYTES)
        if rng.random() < 0.5:
            data[place : place + rng.randrange(3)] = bytes([byte])
        else:
            del data[place : place + 1]
    assert accepts(bytes(data)) == is_json(bytes(data))


def _completions(text: str) -> Iterator[str]:
    """Texts that begin like this one, one of which is JSON if any is."""
    ends = ["", "0", '"', '0"', 'n"', "rue", "ue", "e", "alse", "lse", "se", "ull", "ll", "l"]
    ends += [f'{"0" * n}"' for n in range(2, 5)]
    for end, more in product(ends, ["", "0", ":0", '"":0']):
        whole, stack, inside, escaped = text + end + more, "", False, False
        for c in whole:
            if inside:
                inside, escaped = c != '"' or escaped, c == "\\" and not escaped
            elif c == '"':
                inside = True
            elif c in "{[":
                stack += "}]"["{[".index(c)]
            elif c in "}]":
                stack = stack[:-1]
        yield whole + stack[::-1]


def test_refuses_where_no_json_goes_on() -> None:
    alphabet = '{}[]",:\\u0-.etn '
    rng = random.Random(3)
    for text in ("".join(rng.choices(alphabet, k=rng.randint(1, 7))) for _ in range(6_000)):
        reader = sg.JsonEvents()
        for place, c in enumerate(text):
            try:
                reader.feed(c.encode())
            except sg.errors.JsonTextError:
                head = text[: place + 1]
                assert not any(is_json(t.encode()) for t in _completions(head)), head
                break
        else:
            assert any(is_json(t.encode()) for t in _completions(text)), text


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b'{"a": [1, -]}', "byte 11, in /a/1"),
        (b'{"a/b~": tru}', "byte 12, in /a~1b~0"),
        (b'["\xff"]', "byte 2, in /0"),
        (b'["\xc3"]', "byte 2, in /0"),
        (b'"\xed\xa0\x80"', "byte 1"),
        (b"\xef\xbb\xbf1", "byte 0"),
        (b"NaN", "byte 0"),
        (b"1 2", "byte 2"),
    ],
)
def test_an_error_says_where_and_changes_nothing(text: bytes, where: str) -> None:
    reader = sg.JsonEvents()
    with pytest.raises(sg.errors.JsonTextError) as caught:
        reader.feed(text)
    assert caught.value.where == where
    assert reader.offset == 0
    assert [e.value for e in reader.feed(b"[1]")] == [1, [1]]


def test_the_end_of_a_text() -> None:
    reader = sg.JsonEvents()
    with pytest.raises(sg.errors.JsonTextError, match="before its JSON is complete"):
        reader.close()
    assert reader.feed(b"12") == []
    assert reader.is_complete()
    assert not reader.is_closed()
    assert [(e.value, e.start, e.end) for e in reader.close()] == [(12, 0, 2)]
    assert reader.close() == []
    assert reader.is_closed()
    with pytest.raises(sg.errors.JsonTextError, match="has ended"):
        reader.feed(b" ")
    reader.rollback(1)
    assert not reader.is_closed()
    assert [e.value for e in reader.feed(b"true")] == [True]
    for wrong in (2, -1):
        with pytest.raises(sg.errors.RollbackError):
            reader.rollback(wrong)
    with pytest.raises(sg.errors.RollbackError):
        sg.JsonEvents(max_rollback=-1)


# -- around it -----------------------------------------------------------------------------------------


def test_text_before_and_after() -> None:
    text = b'Sure: \xff{"a": [1, 2]} \xff"}'
    for size in (1, 3, len(text)):
        reader = sg.JsonEvents(skip=7, trailing=True)
        events = [e for i in range(0, len(text), size) for e in reader.feed(text[i : i + size])]
        wanted = [("/a/0", 1), ("/a/1", 2), ("/a", [1, 2]), ("", {"a": [1, 2]})]
        assert [(e.pointer, e.value) for e in events] == wanted
        assert [e.text for e in events] == [text[e.start : e.end] for e in events]
        assert reader.is_complete()
    assert [e.value for e in sg.JsonEvents(trailing=True).feed(b"12abc")] == [12]
    assert [e.value for e in sg.JsonEvents(trailing=True).feed(b"12\xff")] == [12]


def test_tokens() -> None:
    vocabulary = small_vocabulary((b'{"', b'":', b'"}'))
    eos, special = vocabulary.eos_ids[0], vocabulary.eos_ids[0] - 1
    ids = {vocabulary.token(t): t for t in range(vocabulary.size)}
    reader = sg.JsonEvents(vocabulary, deltas=True)
    tokens = [ids[t] for t in (b'{"', b"ab", b'":', b' "', b"\xc3", b"\xa9b", b'"}')]
    events = reader.feed(tokens)
    assert [(e.kind, e.pointer, e.value, e.tokens) for e in events] == [
        ("delta", "/ab", "éb", range(4, 6)),
        ("value", "/ab", "éb", range(3, 7)),
        ("value", "", {"ab": "éb"}, range(7)),
    ]
    for wrong in (special, vocabulary.size, -1):
        with pytest.raises(sg.errors.TokenIdError):
            reader.feed(wrong)
    assert reader.feed(eos) == reader.feed([eos, eos]) == []
    assert reader.is_closed()
    with pytest.raises(sg.errors.JsonTextError):
        reader.feed(tokens[0])
    reader.rollback(4)
    assert not reader.is_complete()
    with pytest.raises(sg.errors.JsonTextError):
        reader.feed(eos)
    with pytest.raises(sg.errors.JsonTextError):
        reader.feed([ids[b'"'], ids[b"}"], ids[b"a"]])
    assert [e.value for e in reader.feed([ids[b'"'], ids[b"}"], eos])] == ["éb", {"ab": "éb"}]
    with pytest.raises(sg.errors.TokenIdError, match="without a vocabulary"):
        sg.JsonEvents().feed(3)
    number = sg.JsonEvents(vocabulary)
    number.feed(ids[b"12"])
    assert [(e.value, e.tokens) for e in number.feed(eos)] == [(12, range(1))]


@pytest.mark.parametrize("schema", [{"type": ["object", "array", "number"]}, {"type": "string", "maxLength": 9}])
def test_what_a_guide_lets_through_is_read(schema: dict[str, Any]) -> None:
    vocabulary, rng = small_vocabulary((b'{"', b'":', b'"}', b"[]", b"{}")), random.Random(2)
    index = sg.compile(sg.JsonSchema(schema), vocabulary)
    usual = [t for t in range(vocabulary.size) if set(vocabulary.token(t) or b"") <= set(b'{}[]",:0123e-. ab\\nu')]
    complete = 0
    for _ in range(40):
        guide, reader, text = sg.Guide(index), sg.JsonEvents(vocabulary), b""
        events: list[JsonEvent] = []
        for _ in range(120):
            allowed = ids_of(guide.bitmask()).tolist()
            token = rng.choice([t for t in allowed if t in usual] or allowed)
            assert guide.advance(token)
            events = reader.feed(token) or events
            assert reader.is_complete() >= guide.is_accepting()
            text += vocabulary.token(token) or b""
            if guide.is_finished():
                complete += 1
                assert reader.is_closed()
                assert plain(events)[-1][1:] == ((), 0, len(text), json.loads(text))
                break
    assert complete > 5


def test_pairs_of_surrogates_stay_together() -> None:
    text = rb'"\ud83d\ude00 \ud83d \\ud83d"'
    for cut in range(1, len(text)):
        reader = sg.JsonEvents(deltas=True)
        events = reader.feed(text[:cut]) + reader.feed(text[cut:])
        assert "".join(e.value for e in events if e.kind == "delta") == "\U0001f600 \ud83d \\ud83d"


def test_depth_is_not_limited_by_recursion() -> None:
    depth = 50_000
    text = b'[{"a":' * depth + b"1" + b"}]" * depth
    events = sg.JsonEvents(starts=True).feed(text)
    assert len(events) == 4 * depth + 1
    innermost = events[2 * depth]
    assert innermost.path == (0, "a") * depth
    value, levels = events[-1].value, 0
    while isinstance(value, (list, dict)):
        value = value[0] if isinstance(value, list) else value["a"]
        levels += 1
    assert (value, levels) == (1, 2 * depth)


def test_memory_grows_with_nesting_alone() -> None:
    item = b'{"name": "some text", "values": [1, 2.5, null]}, '

    def peak(items: int) -> int:
        reader = sg.JsonEvents(keep_text=False, max_rollback=2)
        reader.feed(b"[")
        tracemalloc.start()
        for _ in range(items):
            for i in range(0, len(item), 5):
                reader.feed(item[i : i + 5])
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(2_000) < 2 * peak(100) + 10_000


def test_values_of_containers_need_the_text() -> None:
    events = sg.JsonEvents(keep_text=False).feed(b'{"a": ["x", 1]}')
    assert [e.value for e in events[:2]] == ["x", 1]
    assert events[2].tokens == range(1)
    with pytest.raises(sg.errors.JsonTextError, match=r"array was not kept \(/a\)"):
        _ = events[2].value


def test_numbers_with_too_many_digits() -> None:
    (event,) = sg.JsonEvents(trailing=True).feed(b"1" * 5_000 + b" ")
    assert event.text == b"1" * 5_000
    with pytest.raises(sg.errors.JsonTextError, match="digits"):
        _ = event.value


def _pickled(each: Any) -> Any:
    return pickle.loads(pickle.dumps(each))


@pytest.mark.nightly
@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, _pickled])
def test_copies_go_on_apart_from_wherever_they_are(twin_of: Any) -> None:
    """Nested deeply and fed byte by byte: what is remembered of a text is linked, and pickles recurse."""
    text = b"[" * 1500 + b'{"a\\u00e9": [1, "\xc3\xa9", null]}' + b"]" * 1500
    for cut in (1, 1499, 1508, 1521, 2000):
        reader = sg.JsonEvents(starts=True, deltas=True)
        fed = [event for byte in text[:cut] for event in reader.feed(bytes([byte]))]
        twin, past = twin_of(reader), reader.offset
        assert (twin.offset, twin.pointer, repr(twin)) == (reader.offset, reader.pointer, repr(reader))
        rest = [event for byte in text[cut:] for event in twin.feed(bytes([byte]))]
        assert reader.offset == past
        ours = [event for byte in text[cut:] for event in reader.feed(bytes([byte]))]
        assert list(map(_facts, rest)) == list(map(_facts, ours))
        twin.rollback(len(text))
        assert twin.offset == 0
        for event in (*fed[-3:], *rest[-3:]):
            assert _facts(_pickled(event)) == _facts(event)


def _facts(event: JsonEvent) -> tuple[Any, ...]:
    return event.kind, event.type, event.start, event.end, event.pointer, event.tokens


@pytest.mark.parametrize("number", [np.int64, np.array, torch.tensor, lambda token: torch.tensor([token])])
def test_ids_of_other_kinds(number: Any) -> None:
    reader = sg.JsonEvents(sg.Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256]))
    found = [event for token in (*b"[97]", 256) for event in reader.feed(number(token))]
    assert [event.value for event in found] == [97, [97]]
    with pytest.raises(sg.errors.TokenIdError):
        sg.JsonEvents(reader._vocabulary).feed(number(257))
