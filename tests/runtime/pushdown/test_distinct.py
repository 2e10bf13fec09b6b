"""Arrays whose items must differ, of too many values for a bit each: which have been there is in the configuration.

The judges: `jsonschema` says which texts are valid, among those of the same schema without ``uniqueItems``; what such
a text may begin like is tried with endings; and where the values are few the lowering has a bit for each, so that the
two ways must allow the same tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest
from conftest import tokenizer_folder
from judges.batches import check_steps
from judges.finite_texts import check_kept
from judges.guides import allowed, with_bytes

import structgen as sg
from structgen import kernels
from structgen.compiler.json_schema.lower import unique
from structgen.correction.endings import shortest_ending
from structgen.errors import FormatError, UnsupportedError
from structgen.runtime.pushdown.distinct import items
from structgen.runtime.pushdown.distinct.machine import DistinctMachine
from structgen.runtime.pushdown.distinct.store import DistinctStore
from structgen.runtime.pushdown.distinct.value_set import ValueSet, with_value
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.store.store import ConfigurationStore
from structgen.storage.container import FORMAT_VERSION, pack, unpack

#: All bytes, and tokens in which items end and others begin.
WORDS = [
    b", ",
    b'", "',
    *b""""," ", [" "] "a" ,"a a","a a"," ["a","a"] ["a","b"] "]," aa \\" \\u00""".split(),
    *b"[1,1 1,1 ,1 1, 10 0. .0 e1 E+ 0,1,0 ,true true, null]".split(),
]
VOCABULARY = with_bytes(*WORDS)

BOOLEANS = {"type": "boolean"}
EOS = 256 + len(WORDS)

#: Items of values that are too many for a bit each, with spellings of some of them that are equal at times.
ITEMS: dict[str, tuple[Any, str]] = {
    "strings": ({"type": "string"}, r'''"a" "\u0061" "" "ab" "\n" "\u000a" "😀" "\ud83d\uDE00" "aa"'''),
    "numbers": ({"type": "number"}, "1 1.0 1e0 10e-1 0 -0 0.0 0e7 -0.0 -1 100 1E+2 0.5 5e-1 12 1.20"),
    "integers": ({"type": "integer"}, "0 1 -1 10 100 101"),
    "mixed": ({"type": ["string", "number", "null", "boolean"]}, 'null true false 1 1.0 "1" "null" "" 0'),
    "words": ({"pattern": "^a*b?$", "type": "string"}, r'"" "a" "b" "ab" "\u0061b" "aab"'),
    "bounded": ({"type": "integer", "minimum": 8, "maximum": 30000}, "8 9 10 30000 29999 300"),
}

MORE: list[dict[str, Any]] = [
    {}, {"minItems": 2}, {"maxItems": 3}, {"minItems": 1, "maxItems": 40}, {"prefixItems": [{"type": "boolean"}]},
    {"contains": {"enum": [1, 10, "a"]}}, {"contains": {"enum": [1, 10, "a"]}, "minContains": 0, "maxContains": 1},
]  # fmt: skip

#: What completes some item, if anything does, with none that is in the tests; and what ends an array.
ITEM_ENDS = rb"""
    " zq" \nzq" nzq" u007azq" 7azq" 07azq" azq" aaaaab" aaaaaaab" b" "aaaaaaab" 61aaaaab" 1aaaaaab"
    0061aaaaaab" 061aaaaaab" u0061aaaaab" uDE07zq" ude07zq" DE07" E07" 07" 7" \ude07" 7\ude07zq" 37\ude07zq" 777.5
    e-77 E77 77 77e77 -77 .75 7 0777 9 20 999 3 1 2 00 01 "zq" rue ue e alse lse se ull ll l true false null
""".split()
ARRAY_ENDS = b'] ,777] ,"zzq"] ,null] ,"aaaaaaaab"] ,7777]'.split()


def compiled(schema: Any, vocabulary: sg.Vocabulary = VOCABULARY, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, escapes="any", **options), vocabulary, eager=False)


def array(item: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "uniqueItems": True, **more}


def is_valid(schema: Any, text: bytes) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize("name", ITEMS)
def test_jsonschema_decides_texts(name: str) -> None:
    item, spellings = ITEMS[name][0], ITEMS[name][1].split()
    random = Random(7)
    for more in MORE:
        schema = {"type": "object", "properties": {"x": array(item, **more)}, "additionalProperties": array(item)}
        index = compiled(schema)
        assert isinstance(index.machine, DistinctMachine)
        syntax = compiled(json.loads(json.dumps(schema).replace('"uniqueItems": true', '"uniqueItems": false')))
        seen = set()
        for _ in range(60):
            parts = random.choices(spellings, k=random.randrange(5))
            if "prefixItems" in more and random.random() < 0.8:
                parts.insert(0, random.choice(["true", "false"]))
            text = f'{{"x":[{random.choice([",", ", ", " ,"]).join(parts)}]}}'.encode()
            if random.random() < 0.3:
                text = text[:-1] + b',"y":[%b]}' % ",".join(random.choices(spellings, k=2)).encode()
            expected = syntax.match(text).accepted and is_valid(schema, text)
            assert index.match(text).accepted == expected, text
            seen.add(expected)
        assert seen == {True, False}


def endings(text: bytes) -> Iterator[bytes]:
    """What completes a text of arrays, if anything does."""
    for item in (b"", *ITEM_ENDS):
        for tail in ARRAY_ENDS:
            yield text + item + tail


@pytest.mark.parametrize("name", ITEMS)
def test_masks_are_what_can_be_completed(name: str) -> None:
    item, spellings = ITEMS[name][0], ITEMS[name][1].split()
    random = Random(3)
    schema = array(item, **random.choice([{}, {"minItems": 2}]))
    index, syntax = compiled(schema), compiled({**schema, "uniqueItems": False})
    refused = 0
    for _ in range(12):
        parts = random.sample(spellings, k=random.randrange(1, 4))
        text = ("[" + ",".join(parts) + "," + random.choice(spellings) + random.choice(["", ",", ", "])).encode()
        text = text[: random.randrange(1, len(text) + 1)] if random.random() < 0.5 else text.rstrip(b", ")
        while text and index.match(text).consumed < len(text):
            text = text[:-1]
        if not text.isascii():
            continue
        tokens = [*random.sample(range(128), 30), *range(256, 256 + len(WORDS)), *b'"\\,] abtn01-.eE9']
        guide, plain = sg.Guide(index), sg.Guide(syntax)
        for byte in text:
            guide.advance(byte)
            plain.advance(byte)
        mask, without = set(allowed(guide)), set(allowed(plain))
        assert mask <= without
        for token in {*tokens} & without:
            after = text + (VOCABULARY.token(token) or b"")
            can = any(syntax.match(whole).accepted and is_valid(schema, whole) for whole in [after, *endings(after)])
            assert (token in mask) == can, (text, VOCABULARY.token(token))
            refused += not can
    assert refused > 3


FEW: list[dict[str, Any]] = [
    array({"enum": ["a", "ab", "abc", "b"]}),
    array({"enum": ["a", "b", 1, 10, 1.5, None, True]}, minItems=3),
    array({"pattern": "^a(b|c)$", "type": "string"}, minItems=2),
    array({"type": "integer", "minimum": 8, "maximum": 12}, maxItems=4),
    {"anyOf": [array({"enum": ["a", "ab"]}), {"type": "array", "items": {"enum": ["a", 1]}, "maxItems": 3}]},
    {"properties": {"x": array({"enum": [1, 10, 100, -1]}), "y": array({"type": ["boolean", "null"]})}},
    array({"enum": [1, 2, 3, "a"]}, prefixItems=[{"enum": [1, "a"]}], minItems=2),
    {"type": "array", "items": array({"enum": ["a", "aa", "b"]}), "maxItems": 2},
    array({"enum": ["a", "ab", 1, 12]}, contains={"const": "a"}),
    array({"enum": ["a", "ab", "b", 1, 12]}, contains={"type": "string"}, minContains=2, maxContains=2),
    array({"enum": ["a", "ab", 1, 12, True]}, contains={"type": "string"}, minContains=0, maxContains=1, minItems=3),
    array({"enum": ["a", "ab", 1]}, contains={"const": 1}, prefixItems=[{"enum": ["a", 1]}], maxItems=3),
    array({"enum": ["a", "ab", "b"]}, contains={"const": "b"}, prefixItems=[{"const": 1}, {"enum": ["a", "b", 1]}]),
    array({"enum": ["a", "ab", 1, 12]}, contains={"const": "a"}, allOf=[{"contains": {"type": "integer"}}]),
]


@pytest.mark.parametrize("number", range(len(FEW)))
@pytest.mark.parametrize("whitespace", ["compact", "any"])
def test_the_lowering_with_bits_allows_the_same(number: int, whitespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = FEW[number]
    bits = compiled(schema, whitespace=whitespace)
    assert not isinstance(bits.machine, DistinctMachine)
    monkeypatch.setattr(unique, "_MAX_SETS", 0)
    index = compiled(schema, whitespace=whitespace)
    assert isinstance(index.machine, DistinctMachine)
    random = Random(number)
    for _ in range(12):
        one, other = sg.Guide(bits), sg.Guide(index)
        for _ in range(40):
            np.testing.assert_array_equal(one.bitmask(), other.bitmask())
            tokens = [token for token in allowed(one) if token != EOS]
            if not tokens:
                break
            token = random.choice([*tokens, *[t for t in tokens if VOCABULARY.token(t) != b" "]])
            one.advance(token)
            other.advance(token)
            assert one.is_accepting() == other.is_accepting()


@pytest.mark.parametrize("name", [*ITEMS, "short", "either"])
@pytest.mark.parametrize("whitespace", ["compact", "any"])
def test_tokens_that_are_not_followed_repeat_nothing(
    name: str, whitespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge follows each token, and sees nowhere how many values there are."""
    schema = array(ITEMS[name][0] if name in ITEMS else {"type": ["string", "integer"]})
    if name == "short":
        schema = array({"type": "string", "maxLength": 3})
    if name == "either":
        schema = {"anyOf": [schema, {"type": "array", "items": {"enum": ["a", "aa", "", 1]}}]}
    index, random = compiled(schema, whitespace=whitespace), Random(4)
    other = compiled(schema, whitespace=whitespace).machine
    assert isinstance(other, DistinctMachine)
    monkeypatch.setattr(other.places.varieties, "_counted", lambda *_: 0)
    refused = 0
    for _ in range(4):
        guide = sg.Guide(index)
        place = other.byte_state(other.start)
        for _ in range(20):
            tokens = [token for token in allowed(guide) if token != EOS]
            followed = {t: other.places.followed(place, VOCABULARY.token(t) or b"") for t in range(EOS)}
            assert tokens == [token for token, after in followed.items() if after]
            without, store = np.zeros(VOCABULARY.words, np.int32), place[0][0].store
            ConfigurationStore.write_slowly(store, place[0][0].number, without, kernels.NO_PARTS)
            refused += int(np.bitwise_count(without.view(np.uint32)).sum()) - len(allowed(guide))
            likely = [token for token in tokens if token > 255 or token in {*b'"a,1'}]
            token = random.choice([*tokens, *likely * 5])
            guide.advance(token)
            place = followed[token]
            if not [t for t in allowed(guide) if t != EOS]:
                break
    assert refused


def test_a_number_that_is_over_for_some_threads_alone() -> None:
    """``1`` is an item that contains counts; for the others it has to go on, which a comma doesn't."""
    index = compiled(array({"type": "number"}, contains={"enum": [1, "a"]}))
    for text, comma in ((b"[1,1", False), (b"[1,11", True), (b"[1,1.0", False), (b"[11,1", True)):
        guide = sg.Guide(index)
        assert all(map(guide.advance, text))
        for token in allowed(guide):
            assert token == EOS or guide.fork().advance(token), (text, VOCABULARY.token(token))
        assert (ord(",") in allowed(guide)) == comma


@pytest.mark.parametrize("name", ITEMS)
def test_endings_repeat_nothing(name: str) -> None:
    item, random = ITEMS[name][0], Random(name)
    completed = repeated = 0
    for more in ({}, {"minItems": 4}, {"minItems": 2, "maxItems": 3}):
        schema = {"type": "object", "properties": {"a": array(item, **more)}, "required": ["a"]}
        index = compiled(schema)
        for _ in range(25):
            guide, text = sg.Guide(index), b""
            for _ in range(random.randrange(25)):
                longer = {token: text + (VOCABULARY.token(token) or b"") for token in allowed(guide) if token < EOS}
                tokens = [token for token, each in longer.items() if not re.search(rb"[0-9][eE]", each)]
                if not tokens:  # (1e-999 is json's 0)
                    break
                token = random.choice(tokens)
                assert guide.advance(token)
                text = longer[token]
            ending = shortest_ending(index, guide.config)
            assert ending is not None, text
            assert is_valid(schema, text + ending), (text, ending)
            completed += 1
            assert isinstance(index.machine, DistinctMachine)
            assert guide.config is not None
            plain = PushdownMachine.completion(index.machine, index.machine.byte_state(guide.config)[0][0])
            repeated += plain is not None and not is_valid(schema, text + plain)
    assert completed == 75
    assert repeated, "the automaton's own endings would do"


def test_an_interrupt_while_a_place_gets_a_number() -> None:
    """The number is not given away before it is known what it stands for."""
    index = compiled(array({"type": "string"}))
    guide, store = sg.Guide(index), index.machine.stepper()
    assert isinstance(store, DistinctStore)
    assert all(map(guide.advance, b'["a"'))

    class Interrupted(dict[Any, Any]):
        def __setitem__(self, key: object, value: object) -> None:
            raise KeyboardInterrupt

    kept = store._places
    store._places = Interrupted(kept)
    with pytest.raises(KeyboardInterrupt):
        guide.advance(ord(","))
    store._places = kept
    assert all(map(guide.advance, b',"a'))
    assert ord('"') not in allowed(guide)
    assert ord("a") in allowed(guide)


def test_guides_fork_roll_back_and_are_kept(tmp_path: Path) -> None:
    check_kept(compiled(array({"type": ["string", "integer"]}, maxItems=100)), tmp_path)


def test_batches_have_the_guides_masks() -> None:
    check_steps(compiled(array({"type": "integer"})), 4, 30, Random(1))


def test_a_damaged_mark_is_refused() -> None:
    index = compiled(array({"type": "string"}))
    meta, sections = unpack(index.to_bytes(), "index")
    for damaged in (np.full_like(sections["distinct"], 6), sections["distinct"][1:]):
        with pytest.raises(FormatError, match="distinct"):
            sg.Index.from_buffer(pack(meta, {**sections, "distinct": damaged}))


def test_files_are_not_for_readers_that_let_items_repeat() -> None:
    """Those of version 1 ignore the section: they must refuse the file, and this one theirs."""
    data = bytearray(compiled(array({"type": "string"})).to_bytes())
    assert int.from_bytes(data[8:12], "little") == FORMAT_VERSION > 1
    data[8:12] = (1).to_bytes(4, "little")
    with pytest.raises(FormatError, match="format version is 1"):
        sg.Index.from_buffer(bytes(data))


def test_long_arrays() -> None:
    index = compiled(array({"type": "integer"}))
    text = json.dumps([*range(400)]).encode()
    assert index.match(text).accepted
    assert index.match(text[:-1] + b", 123]").consumed == len(text) - 1 + len(b", 123")


def test_what_is_refused() -> None:
    for schema, why in (
        (array({"type": "string"}, contains={"pattern": "^a?$"}, minContains=3), "3 items that contains counts"),
        (array({"type": ["string", "boolean"]}, contains={"type": "string"}, maxContains=1, minItems=3), "contains"),
        (array({"type": "string"}, contains={"const": "a"}, prefixItems=[BOOLEANS] * 3), "contains"),
        (array({"type": "array", "maxItems": 1, "items": array(BOOLEANS, minItems=2)}, minItems=4), "can differ"),
    ):
        with pytest.raises(UnsupportedError, match=f"uniqueItems.*{why}"):
            compiled(schema)
    with pytest.raises(UnsupportedError, match="uniqueItems"):
        compiled(array({"pattern": "^a{1000}[b-z]?$", "type": "string"}, minItems=27, prefixItems=[{"type": "string"}]))
    index = compiled(array({"type": "string"}))
    with pytest.raises(UnsupportedError, match="max_tokens"):
        sg.Guide(index, max_tokens=20)


def test_a_set_of_values() -> None:
    random = Random(5)
    words = [bytes(random.choices(b"ab", k=random.randrange(6))) for _ in range(300)]
    values: ValueSet | None = None
    known: set[bytes] = set()
    for word in words:
        before = values
        values = with_value(values, word)
        assert (values is before) == (word in known)
        known.add(word)
    assert values is not None
    assert [*values] == sorted(known)
    assert values.longest == max(map(len, known))
    for prefix in words:
        follow = {word[len(prefix)] for word in known if word.startswith(prefix) and len(word) > len(prefix)}
        assert [*values.following(prefix)] == sorted(follow)
        assert values.has_prefix(prefix)
        assert values.count(prefix or b"a") == sum(word.startswith(prefix or b"a") for word in known)
        assert (prefix + b"b" in values) == (prefix + b"b" in known)


def test_numbers_are_equal_by_value() -> None:
    from decimal import Decimal

    random = Random(2)
    texts = ["-0", "0e9", "0.00", "1e1000000000000", "10e999999999999"]
    texts += [
        f"{random.choice(['', '-'])}{random.choice(['0', '1', '10', '120'])}{random.choice(['', '.0', '.50', '.05'])}"
        f"{random.choice(['', 'e1', 'E-2', 'e+02', 'e-0'])}"
        for _ in range(200)
    ]
    values = {}
    for text in texts:
        item: items.ItemInProgress = items.begun(ord(text[0]))
        for letter in text[1:]:
            item = item.after(ord(letter))
        values[text] = item.value()
    for one in texts:
        for other in texts[:60]:
            assert (values[one] == values[other]) == (Decimal(one) == Decimal(other)), (one, other)


def test_real_tokens() -> None:
    vocabulary = sg.Vocabulary.from_pretrained(tokenizer_folder("llama3"))
    schema = array({"type": ["string", "integer"]})
    index, syntax = compiled(schema, vocabulary), compiled({**schema, "uniqueItems": False}, vocabulary)
    random, refused, encode = Random(11), 0, vocabulary.encode
    assert encode is not None
    for text in ('["red","green', '["red","green","', '["red","g', "[12,1,3,1", "[12,1,", '["red","re'):
        tokens = encode(text)
        guide, plain = sg.Guide(index), sg.Guide(syntax)
        for token in tokens:
            guide.advance(token)
            plain.advance(token)
        mask, without = set(allowed(guide)), set(allowed(plain))
        assert mask <= without
        commas = [
            token
            for token in without
            if b'"' in (vocabulary.token(token) or b"") or b"," in (vocabulary.token(token) or b"")
        ]
        for token in {
            *(without - mask),
            *random.sample(sorted(without), 20),
            *random.sample(commas, min(len(commas), 40)),
        }:
            after = text.encode() + (vocabulary.token(token) or b"")
            if after.isascii():
                can = any(
                    syntax.match(whole).accepted and is_valid(schema, whole) for whole in [after, *endings(after)]
                )
                assert (token in mask) == can, after
                refused += not can
    assert refused > 10
