"""What `MissingIndexError` says of what is kept that is nearly what was asked for."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest

import structgen as sg
from structgen import index_store

TOKENS = [*(bytes([byte]) for byte in range(256)), b"ab", b"cd"]


def vocabulary_of(*changes: tuple[int, bytes], more: tuple[bytes, ...] = ()) -> sg.Vocabulary:
    tokens = [dict(changes).get(number, token) for number, token in enumerate([*TOKENS, *more])]
    return sg.Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])


VOCABULARY = vocabulary_of()
LONG: dict[str, Any] = {"properties": {f"property {number}": {"type": "string"} for number in range(60)}}


def said(cache: sg.Cache, definition: object, vocabulary: sg.Vocabulary = VOCABULARY) -> str:
    with pytest.raises(sg.errors.MissingIndexError) as caught:
        sg.compile(definition, vocabulary, cache=cache, compile_missing=False)
    return caught.value.what.removeprefix("the definition is not in the cache").removeprefix(", where it is ")


PAIRS = [
    (sg.JsonSchema({"type": "integer"}), sg.JsonSchema({"type": "integer"}, whitespace="any"), "whitespace='single'"),
    (sg.JsonSchema(LONG), sg.JsonSchema(LONG, whitespace="compact"), "whitespace='single'"),
    (sg.JsonSchema(LONG, max_items=3), sg.JsonSchema(LONG), "max_items=3"),
    (sg.Regex("[0-9]+"), sg.Regex("[0-9]+", dialect="ecma"), "dialect='re'"),
    (sg.Grammar('start: "a" "b"', lexer="basic"), sg.Grammar('start: "a" "b"'), "lexer='basic'"),
]


@pytest.mark.parametrize(("kept", "asked", "options"), PAIRS)
@pytest.mark.parametrize("in_bundle", [False, True])
def test_other_options(
    kept: sg.Definition, asked: sg.Definition, options: str, in_bundle: bool, tmp_path: Path
) -> None:
    with sg.Cache(tmp_path / "folder") as cache:
        sg.compile(kept, VOCABULARY, cache=cache)
        sg.compile(sg.Regex("something else"), VOCABULARY, cache=cache)
        if in_bundle:
            cache.export(tmp_path / "bundle")
    found = sg.Cache(tmp_path / ("bundle" if in_bundle else "folder"))
    assert said(found, asked) == f"kept with {options}"
    assert said(found, sg.Regex("[a-f]+")) == ""


CHANGES = [
    ([(256, b"ax")], (), r"id 256: b'ab' there, b'ax' here"),
    ([(256, b"abc")], (), r"id 256: b'ab' there, b'abc' here"),
    ([(7, b"\x08"), (8, b"\x07")], (), r"id 7: b'\x07' there, b'\x08' here"),
]


@pytest.mark.parametrize(("changes", "more", "differs"), CHANGES)
@pytest.mark.parametrize("definition", [sg.JsonSchema(LONG), sg.Gbnf('root ::= "ab"'), sg.tag("<", sg.text(), ">")])
def test_another_vocabulary(
    changes: list[tuple[int, bytes]], more: tuple[bytes, ...], differs: str, definition: sg.Definition, tmp_path: Path
) -> None:
    theirs, mine = vocabulary_of((0, b"\x00ab")), vocabulary_of((0, b"\x00ab"), *changes, more=more)
    fingerprint, cache = theirs.fingerprint, sg.Cache(tmp_path)
    sg.compile(definition, theirs, cache=cache)
    expected = f"kept for vocabulary {fingerprint[:8]}"
    assert said(cache, definition, mine) == f"{expected} (which differs in {differs})"
    cache.put(key := index_store.vocabulary_key(theirs.identity), theirs.to_bytes(), kind="vocabulary")
    del theirs
    for _ in range(2):
        gc.collect()
    assert sg.Vocabulary.alive_with(fingerprint) is None
    assert said(cache, definition, mine) == f"{expected} (which differs in {differs})"
    gc.collect()
    cache.discard(key)
    assert said(cache, definition, mine) == expected


def test_both_at_once_and_three_at_most(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    for most in range(1, 6):
        sg.compile(sg.JsonSchema({"type": "array"}, max_items=most), VOCABULARY, cache=cache, eager=False)
    found = said(cache, sg.JsonSchema({"type": "array"}), vocabulary_of((256, b"xy")))
    assert found.count("kept for vocabulary") == found.count("with max_items=") == 3


def test_few_values_are_read_whatever_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, wanted, read = sg.Cache(tmp_path), sg.Regex("[0-9]+"), list[str]()
    for number in range(60):  # none is an index, and all say that they are
        cache.put(f"key-{number}", b"no index" * number, label=wanted.canonical(), kind="regex")
        cache.put(f"other-{number}", b"", label='["json_schema",[' * 9, kind="json_schema")
    load = sg.Cache.load

    def counted(self: sg.Cache, key: str) -> Any:
        read.append(key)
        return load(self, key)

    monkeypatch.setattr(sg.Cache, "load", counted)
    assert said(cache, wanted) == ""
    assert len(read) == index_store._MOST_READ
    assert said(cache, sg.JsonSchema({})) == ""


def test_an_empty_cache_and_none() -> None:
    assert said(sg.Cache("/nonexistent/structgen"), sg.Regex("a")) == ""
    with pytest.raises(sg.errors.MissingIndexError, match="there is no cache"):
        sg.compile(sg.Regex("a"), VOCABULARY, compile_missing=False)
