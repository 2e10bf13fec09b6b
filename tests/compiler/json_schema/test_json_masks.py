"""Masks of JSON Schemas, token by token, over small and real vocabularies: every id, all options, many guides.

The cases are data, in ``cases/json_schemas.toml``.
"""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from judges import pushdown_oracle as oracle
from judges.guides import reference_mask
from judges.json_judge import Judge, NoVerdictError
from judges.json_tokens import CASES, Speller, guides_along, mask_of, masks, random_text, small_vocabulary, takes

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.compiler import compile_json_schema
from structgen.runtime.core import dense_rows
from structgen.runtime.pushdown import machine as pushdown
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.partial_masks import StateMasks
from structgen.runtime.pushdown.shared_masks import SharedMaskStore
from structgen.runtime.pushdown.store import store
from structgen.vocabulary.trie import Trie

VOCABULARY = small_vocabulary()
EOS = VOCABULARY.eos_ids[0]
BY_NAME = {case["name"]: case for case in CASES}

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])


@cache
def speller(vocabulary: sg.Vocabulary) -> Speller:
    return Speller(vocabulary)


def definition(case: dict[str, Any]) -> sg.JsonSchema:
    return sg.JsonSchema(case["schema"], **case.get("options", {}))


def compiled(
    case: dict[str, Any], vocabulary: sg.Vocabulary = VOCABULARY, eager: bool = False, **more: Any
) -> sg.Index:
    return sg.compile(definition(case), vocabulary, eager=eager, **more)


def spellings(case: dict[str, Any], vocabulary: sg.Vocabulary) -> list[list[int]]:
    """The texts of a case in random tokens, always the same."""
    random = Random(case["name"])
    return [speller(vocabulary).spell(text.encode(), random) for text in case["accept"]]


class TestCases:
    @each_case
    def test_texts_are_judged_as_the_case_says(self, case: dict[str, Any]) -> None:
        index, judge, random = compiled(case), Judge(json.loads(case["schema"])), Random(1)
        for kind, valid, taken in (("accept", True, True), ("reject", False, False), ("layout", True, False)):
            for text in case.get(kind, []):
                assert judge.is_valid(text) == valid, f"the case itself is wrong: {text}"
                assert index.match(text.encode()).accepted == taken, text
                spell = speller(VOCABULARY).spell
                for tokens in (spell(text.encode()), spell(text.encode(), random)):
                    assert takes(index, tokens) == taken, text

    @each_case
    @pytest.mark.usefixtures("_widths")
    def test_a_mask_is_what_advance_lets_through(self, case: dict[str, Any]) -> None:
        index = compiled(case)
        for tokens in spellings(case, VOCABULARY):
            for guide in guides_along(index, tokens):
                check_every_id(guide)

    @each_case
    def test_advance_lets_through_what_the_program_does(self, case: dict[str, Any]) -> None:
        """At a few configurations, against an interpreter of the program that the tables were made from."""
        program = oracle.readable(compile_json_schema(definition(case), Meter(Budget()), keeps_sets=True)[0])
        index, random = compiled(case), Random(2)
        for tokens in spellings(case, VOCABULARY):
            stops = set(random.sample(range(len(tokens) + 1), min(3, len(tokens))))
            stacks = oracle.start(program)
            for at, guide in enumerate(guides_along(index, tokens)):
                known = {b"": stacks}
                if at in stops:
                    for each in range(VOCABULARY.size):
                        token = VOCABULARY.token(each)
                        if token is not None:
                            assert guide.allows(each) == bool(oracle.follow(program, known, token)), token
                    assert guide.is_accepting() == oracle.is_complete(program, stacks)
                if at < len(tokens):
                    stacks = oracle.follow(program, known, VOCABULARY.token(tokens[at]) or b"")

    @each_case
    @pytest.mark.usefixtures("_widths")
    def test_the_same_masks_eagerly_and_from_a_file(self, case: dict[str, Any], tmp_path: Path) -> None:
        eager, lazy = compiled(case, eager=True), compiled(case)
        texts = spellings(case, VOCABULARY)
        expected = [masks(lazy, tokens) for tokens in texts]
        for index in (eager, reloaded(eager, tmp_path), reloaded(lazy, tmp_path)):
            known = index.machine.known_rows
            assert [masks(index, tokens) for tokens in texts] == expected
            assert not index.complete or index.machine.known_rows == known, "it was all there"

    @pytest.mark.parametrize("case", CASES[::4], ids=lambda case: case["name"])
    @pytest.mark.parametrize("eager", [True, False])
    def test_the_same_masks_from_the_cache(self, case: dict[str, Any], eager: bool, tmp_path: Path) -> None:
        index = recalled(case, VOCABULARY, eager, tmp_path)
        for tokens in spellings(case, VOCABULARY):
            assert masks(index, tokens) == masks(compiled(case), tokens)


def check_every_id(guide: sg.Guide) -> None:
    """The mask against `advance` for every id of the vocabulary, and EOS against the end."""
    vocabulary, mask = guide.index.vocabulary, mask_of(guide)
    advance, config = guide.index.machine.advance, guide.config
    expected = np.array([advance(config, each) is not None for each in range(vocabulary.size)])
    expected[list(vocabulary.eos_ids)] = guide.is_accepting()
    different = np.flatnonzero(mask != expected)
    assert not len(different), (guide, [(i, vocabulary.token(i), mask[i]) for i in different[:5].tolist()])
    for each in (*vocabulary.eos_ids, *np.flatnonzero(mask)[:20].tolist()):
        assert guide.allows(each) == guide.fork().advance(each) == mask[each]


def reloaded(index: sg.Index, folder: Path) -> sg.Index:
    """The index from a file of its own."""
    index.save(folder / "index.sgx")
    index.vocabulary.shared_rows.clear()  # as in another process
    found = sg.Index.load(folder / "index.sgx", index.vocabulary)
    assert (found.origin, found.complete) == ("file", index.complete)
    return found


def recalled(case: dict[str, Any], vocabulary: sg.Vocabulary, eager: bool, folder: Path) -> sg.Index:
    """The index from a cache; a lazy one with what another learned along the first text."""
    index = compiled(case, vocabulary, eager, cache=sg.Cache(folder))
    complete = index.complete
    masks(index, spellings(case, vocabulary)[0])
    del index  # what it learned is written now
    vocabulary.shared_rows.clear()  # as in another process
    found = compiled(case, vocabulary, eager, cache=sg.Cache(folder))
    assert (found.origin, found.complete) == ("cache", complete)
    return found


@pytest.mark.nightly
class TestRealVocabularies:
    """Trying every id takes up to a second, so that is done in a few of the cases; a walk tells of all ids, too."""

    @pytest.mark.parametrize("name", ["llama3", "qwen2_5", "gemma"])
    def test_a_mask_is_what_advance_lets_through(self, name: str, request: pytest.FixtureRequest) -> None:
        vocabulary: sg.Vocabulary = request.getfixturevalue(name)
        random = Random(name)
        for case in random.sample(CASES, 6 if name == "llama3" else 2):
            tokens = random.choice(spellings(case, vocabulary))
            stop = random.randint(0, len(tokens))
            guide = next(g for at, g in enumerate(guides_along(compiled(case, vocabulary), tokens)) if at == stop)
            check_every_id(guide)

    @pytest.mark.parametrize("name", ["llama3", "qwen2_5", "gemma"])
    def test_every_row_is_that_of_a_plain_walk(self, name: str, request: pytest.FixtureRequest) -> None:
        """Shared, counted, clipped, base-relative rows, frame by frame, against one walk with the stack known."""
        vocabulary: sg.Vocabulary = request.getfixturevalue(name)
        random = Random(name)
        for case in CASES if name == "llama3" else random.sample(CASES, 6):
            vocabulary.shared_rows.clear()  # so that they are found in the middle of other rows
            index = compiled(case, vocabulary)
            for tokens in spellings(case, vocabulary):
                stops = set(random.sample(range(len(tokens) + 1), min(4, len(tokens))))
                for at, guide in enumerate(guides_along(index, tokens)):
                    if at in stops:
                        np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide), case["name"])
            guide = sg.Guide(index)
            for _ in range(6):
                np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide), case["name"])
                assert guide.advance(int(random.choice(np.flatnonzero(mask_of(guide)))))
                if guide.is_finished():
                    break

    @pytest.mark.parametrize(
        ("minimum", "maximum"),
        [(0, 1), (0, 5), (4, 5), (5, 5), (1, 31), (30, 129), (0, 128), (127, 127), (130, 200), (128, 400)],
    )
    def test_counted_strings_at_every_distance(self, minimum: int, maximum: int, llama3: sg.Vocabulary) -> None:
        """k characters left, or missing, for k around the length of the longest token."""
        schema = {"items": {"type": "string", "minLength": minimum, "maxLength": maximum}, "type": "array"}
        index = sg.compile(sg.JsonSchema(schema), llama3, eager=False)
        random = Random(minimum + 1000 * maximum)
        for length in {0, maximum, max(0, minimum - 1), random.randint(0, maximum)}:
            guide = sg.Guide(index)
            for token in speller(llama3).spell(b'["' + b"a" * length, random):
                assert guide.advance(token)
            np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide), str(length))

    @pytest.mark.parametrize(
        "asserted",
        [
            {"format": "email", "maxLength": 1000},
            {"pattern": "^[a-z]([a-z0-9-]|é)*$", "minLength": 2, "maxLength": 300},
            {"pattern": "^([a-z]{30,200}_)+[a-z]$"},  # a count that begins anew
            {"minLength": 100, "maxLength": 700},
            {"minLength": 9},
        ],
        ids=repr,
    )
    def test_counts_far_from_their_bounds(self, asserted: dict[str, Any], llama3: sg.Vocabulary) -> None:
        """Where no token comes near a bound a state has the row that it would have without a counter."""
        llama3.shared_rows.clear()
        index = sg.compile(sg.JsonSchema({"type": "string"} | asserted), llama3, eager=False)
        random = Random(repr(asserted))
        letters = [token for token in range(llama3.size) if re.fullmatch(b"[a-z]{1,9}", llama3.token(token) or b"")]
        for steps in (0, 3, 20, 60):
            guide = sg.Guide(index)
            assert guide.advance(speller(llama3).spell(b'"')[0])
            for _ in range(steps):
                np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide))
                allowed = [token for token in random.sample(letters, 50) if guide.allows(token)]
                if not allowed or not guide.advance(allowed[0]):
                    break
            np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide))

    def test_base_rows_are_what_schemas_share(
        self, llama3: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        llama3.shared_rows.clear()
        schema = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 77}}
        text = b'["https://example.org/x", "a"]'
        try:
            with sg.Cache(tmp_path) as cache:
                assert sg.compile_base_rows(llama3, cache=cache) > 0
            monkeypatch.setattr(SharedMaskStore, "_walk", None)  # nothing has to be walked for these
            for case in (schema, {"items": {"type": "string", "format": "uri-reference"}, "type": "array"}):
                index = sg.compile(sg.JsonSchema(case), llama3, eager=False)
                for guide in guides_along(index, speller(llama3).spell(text)):
                    np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide))
        finally:
            llama3.base_rows = None

    def test_a_complete_index_from_a_cache_walks_nothing(
        self, llama3: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Although what it shares was at hand when it was compiled: another index had worked it out, without a cache.

        Nor does it need the tokens' prefix tree.
        """
        schema = {"type": "array", "items": {"type": "string", "pattern": "^[a-z ]{2,90}$"}}
        llama3.shared_rows.clear()
        sg.compile(sg.JsonSchema(schema), llama3)
        definition = sg.JsonSchema({"type": "object", "properties": {"names": schema}})
        with sg.Cache(tmp_path) as cache:
            compiled = sg.compile(definition, llama3, cache=cache)
        assert compiled.complete
        text = speller(llama3).spell(b'{"names": ["some words", "' + b"abcdef gh" * 9 + b'"]}')
        elsewhere = sg.Vocabulary.from_bytes(
            [llama3.token(token) for token in range(llama3.size)], eos_ids=llama3.eos_ids
        )
        assert elsewhere.fingerprint == llama3.fingerprint
        monkeypatch.setattr(StateMasks, "_walked", None)
        monkeypatch.setattr(Trie, "build", None)
        with sg.Cache(tmp_path) as cache:
            index = sg.compile(definition, elsewhere, cache=cache)
            assert index.origin == "cache"
            assert masks(index, text) == masks(compiled, text)

    @pytest.mark.parametrize("eager", [False, True])
    def test_a_shared_row_that_another_row_asks_for_first(self, eager: bool, llama3: sg.Vocabulary) -> None:
        """A string that is not empty differs from any string; that one is walked while the difference is at hand."""
        schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}
        llama3.shared_rows.clear()
        index = sg.compile(sg.JsonSchema(schema, additional_properties=False), llama3, eager=eager)
        guide = sg.Guide(index)
        assert all(map(guide.advance, speller(llama3).spell(b'{"a":"')))
        np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide))

    def test_the_same_masks_however_the_index_came(self, llama3: sg.Vocabulary, tmp_path: Path) -> None:
        for number, case in enumerate(CASES):
            eager = compiled(case, llama3, eager=True)
            indexes = [eager, compiled(case, llama3)]
            if number % 5 == 0:
                indexes += [reloaded(eager, tmp_path), recalled(case, llama3, number % 2 == 0, tmp_path)]
            for tokens in spellings(case, llama3):
                assert len({tuple(masks(index, tokens)) for index in indexes}) == 1, case["name"]


# -- options -------------------------------------------------------------------------------------------------

#: Finite in depth, so that it can be indented; every kind of gap, and strings that need escapes.
RECORD = {
    "type": "object",
    "properties": {
        "naïve": {"type": "string", "maxLength": 12},
        "b": {"type": "array", "items": {"type": ["integer", "null"]}, "maxItems": 40},
        "c\n": {
            "type": "object",
            "properties": {
                "x": {"enum": ["é", "\u2028", "a/b", "\x7f", "😀"]},
                "": {"type": "array", "items": {"type": "boolean"}},
            },
            "required": ["x"],
            "additionalProperties": False,
        },
    },
    "required": ["naïve"],
    "additionalProperties": False,
}

RECORDS: list[dict[str, Any]] = [
    {"naïve": ""},
    {"naïve": 'é"\\\n\u0001😀', "b": [], "c\n": {"x": "é"}},
    {"naïve": "日本", "b": [1, None, -20], "c\n": {"x": "\x7f", "": []}},
    {"naïve": "\u2028/", "c\n": {"x": "😀", "": [True, False]}},
]

#: Options, how `json.dumps` is asked to write so, and what no longer fits.
OPTIONS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "default": (
        {}, [{"ensure_ascii": False}, {"ensure_ascii": False, "separators": (",", ":")}],
        [{}, {"indent": 2, "ensure_ascii": False}],
    ),
    "compact": (
        {"whitespace": "compact"}, [{"ensure_ascii": False, "separators": (",", ":")}], [{"ensure_ascii": False}],
    ),
    "any whitespace": (
        {"whitespace": "any"},
        [{"ensure_ascii": False}, {"ensure_ascii": False, "indent": 3}, {"ensure_ascii": False, "indent": "\t\r"}],
        [{"ensure_ascii": False, "indent": 20}],
    ),
    "whitespace without bound": (
        {"whitespace": "any", "max_whitespace": None}, [{"ensure_ascii": False, "indent": 50}], [],
    ),
    "a pattern": (
        {"whitespace": r"(\n\t*)?"}, [{"ensure_ascii": False, "indent": "\t", "separators": (",", ":")}],
        [{"ensure_ascii": False}, {"ensure_ascii": False, "indent": "\t"}],
    ),
    "indented by 2": (
        {"whitespace": 2}, [{"ensure_ascii": False, "indent": 2}],
        [{"ensure_ascii": False}, {"ensure_ascii": False, "indent": 1}],
    ),
    "indented by 0": ({"whitespace": 0}, [{"ensure_ascii": False, "indent": 0}], [{"ensure_ascii": False}]),
    "ASCII": ({"escapes": "ascii"}, [{}, {"separators": (",", ":")}], [{"ensure_ascii": False}]),
    "any escapes": ({"escapes": "any"}, [{}, {"ensure_ascii": False}], [{"indent": 1}]),
    "ASCII, indented, any order": (
        {"escapes": "ascii", "whitespace": 4, "property_order": "any"},
        [{"indent": 4}, {"indent": 4, "sort_keys": True}], [{"indent": 3}],
    ),
    "any order": (
        {"property_order": "any"}, [{"ensure_ascii": False}, {"ensure_ascii": False, "sort_keys": True}], [],
    ),
}  # fmt: skip

#: Those under which a value, its members in some order, is written in one way only.
ONE_LAYOUT = {"compact", "indented by 2", "indented by 0", "ASCII, indented, any order"}

each_option = pytest.mark.parametrize("name", OPTIONS)


def record_index(name: str, vocabulary: sg.Vocabulary) -> sg.Index:
    return sg.compile(sg.JsonSchema(RECORD, **OPTIONS[name][0]), vocabulary, eager=False)


def sampled(index: sg.Index, examples: list[str], random: Random) -> bytes | None:
    """A random text with a taste for the tokens of the examples, and for coming to an end."""
    vocabulary = index.vocabulary
    spell = speller(vocabulary).spell
    taste = [token for text in examples for token in spell(text.encode(), random)]
    return random_text(index, taste, [*vocabulary.eos_ids, *spell(b'"'), *spell(b"}"), *spell(b"]")], random)


class TestOptions:
    @each_option
    @pytest.mark.parametrize("vocabulary_name", ["small", "llama3", "gemma"])
    def test_what_dumps_writes_is_let_through(
        self, name: str, vocabulary_name: str, request: pytest.FixtureRequest
    ) -> None:
        vocabulary = VOCABULARY if vocabulary_name == "small" else request.getfixturevalue(vocabulary_name)
        index, random = record_index(name, vocabulary), Random(name)
        for ways, expected in zip(OPTIONS[name][1:], (True, False), strict=True):
            for way in ways:
                for record in RECORDS[1:]:
                    text = json.dumps(record, **way)
                    assert takes(index, speller(vocabulary).spell(text.encode(), random)) == expected, text

    @each_option
    def test_masks(self, name: str) -> None:
        index, random = record_index(name, VOCABULARY), Random(name)
        text = json.dumps(RECORDS[2], **OPTIONS[name][1][0])
        for guide in guides_along(index, speller(VOCABULARY).spell(text.encode(), random)):
            check_every_id(guide)

    @each_option
    @pytest.mark.parametrize("vocabulary_name", ["small", "llama3"])
    def test_what_is_let_through_is_valid(
        self, name: str, vocabulary_name: str, request: pytest.FixtureRequest
    ) -> None:
        vocabulary = VOCABULARY if vocabulary_name == "small" else request.getfixturevalue(vocabulary_name)
        index, judge, random = record_index(name, vocabulary), Judge(RECORD), Random(name)
        texts = [sampled(index, [], random) for _ in range(12)]
        finished = [text for text in texts if text is not None]
        assert len(finished) >= 8
        for text in finished:
            assert judge.is_valid(text), text
            if name in ONE_LAYOUT:  # but for the hex digits of an escape, which may be of either case
                way = OPTIONS[name][1][0]
                assert json.dumps(json.loads(text), **way).lower() == text.decode().lower()
            if OPTIONS[name][0].get("escapes") == "ascii":
                assert text.isascii()

    @each_case
    def test_sampled_texts_are_valid(self, case: dict[str, Any]) -> None:
        index, judge, random = compiled(case), Judge(json.loads(case["schema"])), Random(case["name"])
        judged = Counter[str]()
        for _ in range(12):
            text = sampled(index, case["accept"], random)
            try:
                judged["none" if text is None else "valid" if judge.is_valid(text) else f"not valid: {text!r}"] += 1
            except NoVerdictError:  # a name came twice, or a number is too long
                judged["no verdict"] += 1
        assert judged["valid"] >= 4, judged
        assert judged.keys() <= {"valid", "none", "no verdict"}

    def test_members_that_are_not_declared(self) -> None:
        schema = {"properties": {"a": {"properties": {"b": {}}}}, "type": "object"}
        text = b'{"a": {"b": 1, "c": 2}}'
        for allowed in (True, False):
            index = sg.compile(sg.JsonSchema(schema, additional_properties=allowed), VOCABULARY, eager=False)
            assert takes(index, speller(VOCABULARY).spell(text)) == allowed
            assert takes(index, speller(VOCABULARY).spell(b'{"a": {"b": {"c": 1}}}'))

    def test_lenient_masks_are_wider_and_say_so(self, tmp_path: Path) -> None:
        items = {"minimum": 1, "type": ["number", "boolean"]}
        numbers = {"type": "array", "items": items, "contains": {"type": "boolean"}, "uniqueItems": True}
        numbers["minContains"] = 3
        schema = {"type": "object", "properties": {"a": numbers, "b": {"pattern": r"(a|b)\1", "type": "string"}}}
        index = sg.compile(sg.JsonSchema(schema, lenient=True), VOCABULARY)
        assert ["uniqueItems" in line for line in sorted(index.relaxations)] == [True, False]
        assert ["/properties/b" in line for line in sorted(index.relaxations)] == [False, True]
        index.save(tmp_path / "index.sgx")
        tokens = speller(VOCABULARY).spell(b'{"a": [true, true, true], "b": "ab"}', Random(0))
        for each in (index, sg.Index.load(tmp_path / "index.sgx")):
            assert each.relaxations == index.relaxations
            for guide in guides_along(each, tokens):
                check_every_id(guide)
            assert not takes(each, speller(VOCABULARY).spell(b'{"a": [0]}'))


# -- guides --------------------------------------------------------------------------------------------------


#: Cases with deep stacks, with counts on the stack, with sets of stacks.
NESTED = ("lists and maps of each other", "counts within counts", "nested anyOf")


class TestGuides:
    @pytest.mark.parametrize("name", [*NESTED, "a tree"])
    def test_any_sequence_of_moves_is_like_a_fresh_guide(self, name: str) -> None:
        """Advance, rollback, fork and reset at random, on several guides; a history says where each of them is."""
        index, random = compiled(BY_NAME[name]), Random(name)
        guides: list[tuple[sg.Guide, list[int]]] = [(sg.Guide(index), [])]
        for _ in range(300):
            guide, history = random.choice(guides)
            move = random.choice(("advance",) * 6 + ("rollback", "fork", "reset"))
            if move == "advance":
                token = int(random.choice(np.flatnonzero(mask_of(guide))))
                assert guide.advance(token)
                history.append(token)
            elif move == "rollback":
                count = random.randint(0, len(history))
                guide.rollback(count)
                del history[len(history) - count :]
            elif move == "fork" and len(guides) < 6:
                guides.append((guide.fork(), history.copy()))
            elif move == "reset" and random.random() < 0.3:
                guide.reset()
                history.clear()
            fresh = sg.Guide(index)
            assert all(map(fresh.advance, history))
            np.testing.assert_array_equal(guide.bitmask(), fresh.bitmask())
            assert (guide.is_accepting(), guide.is_finished()) == (fresh.is_accepting(), fresh.is_finished())

    def test_guides_on_different_stacks_keep_out_of_each_others_way(self) -> None:
        index = compiled(BY_NAME["lists and maps of each other"])
        deep, flat = sg.Guide(index), sg.Guide(index)
        for token in speller(VOCABULARY).spell(b'{"a": [{"b": [{"c": [1'):
            deep.advance(token)
        for token in speller(VOCABULARY).spell(b'{"a": [1'):
            flat.advance(token)
        (closing,) = speller(VOCABULARY).spell(b"]}")
        for depth in range(3):
            assert deep.advance(closing)
            assert flat.advance(closing) == (depth == 0)
        assert deep.is_accepting()
        assert flat.is_accepting()
        deep.rollback(2)
        assert not deep.is_accepting()
        assert not deep.allows(EOS)
        assert deep.allows(closing)

    @pytest.mark.parametrize("limit", [1, 7, 40])
    def test_a_memo_that_starts_afresh_changes_no_mask(self, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in NESTED:
            case = BY_NAME[name]
            texts = spellings(case, VOCABULARY)
            expected = [masks(compiled(case), tokens) for tokens in texts]
            with monkeypatch.context() as patch:
                patch.setattr(store, "MOST_CONFIGS", limit)
                patch.setattr(pushdown, "MEMO_MOVES", limit)
                patch.setattr(dense_rows.DENSE_ROWS, "most", 4 * VOCABULARY.words * limit)
                index = compiled(case)
                kept = [list(map(sg.Guide.fork, guides_along(index, tokens))) for tokens in texts]
                for _ in range(2):
                    assert [masks(index, tokens) for tokens in texts] == expected
                    assert [[guide.bitmask().tobytes() for guide in guides] for guides in kept] == expected
                for tokens, guides in zip(texts, kept, strict=True):
                    for at, guide in enumerate(guides):
                        assert all(map(guide.advance, tokens[at:]))
                        assert guide.is_accepting()

    def test_50_000_levels(self) -> None:
        """A level costs a frame or two; no mask has to be worked out for it."""
        index = sg.compile(sg.JsonSchema({}), VOCABULARY, eager=False)
        assert isinstance(index.machine, PushdownMachine)
        (opening,), guide, known = speller(VOCABULARY).spell(b"["), sg.Guide(index, max_rollback=0), 0
        for level in range(50_000):
            if level == 10:
                known = index.machine.known_rows
            guide.bitmask()
            assert guide.advance(opening)
        assert index.machine.known_rows == known
        assert len(index.machine.stepper()) <= 2 * 50_000

    def test_a_document_of_100_000_tokens(self) -> None:
        """A long array costs nothing for its length; a count makes each place in it another one, and they can go."""
        for schema, most in ((COUNTING | {"maxItems": 10**9}, 300_000), ({"type": "array"}, 100)):
            index = sg.compile(sg.JsonSchema(schema), VOCABULARY, eager=False)
            (opening,), (item,), (end,) = map(speller(VOCABULARY).spell, (b"[", b"0,0,0,0,0,0,0", b"]"))
            (comma,) = speller(VOCABULARY).spell(b",")
            guide = sg.Guide(index)
            assert guide.advance(opening)
            for _ in range(50_000):
                assert guide.advance(item)
                assert guide.advance(comma)
            check_every_id(guide)
            assert guide.advance(speller(VOCABULARY).spell(b"0")[0])
            assert guide.advance(end)
            assert guide.is_accepting()
            guide.rollback(100_000)
            check_every_id(guide)
            assert isinstance(index.machine, PushdownMachine)
            assert len(index.machine.stepper()) <= most

    def test_full_stores_are_freed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One stays as long as a guide stands there, and guides go on in the next one."""
        monkeypatch.setattr(store, "MOST_CONFIGS", 50)
        index = sg.compile(sg.JsonSchema(COUNTING), VOCABULARY, eager=False)
        tokens = speller(VOCABULARY).spell(b"[" + b"0," * 5_000)
        standing = sg.Guide(index)
        assert all(map(standing.advance, tokens[:100]))
        assert all(map(sg.Guide(index, max_rollback=0).advance, tokens))
        going_on = sg.Guide(index, max_rollback=0)
        assert all(map(going_on.advance, tokens))
        assert isinstance(index.machine, PushdownMachine)
        machine = index.machine
        stores = [
            each for each in gc.get_objects() if type(each) is store.ConfigurationStore and each.machine is machine
        ]
        assert len(stores) <= 4
        assert len(index.machine.stepper()) <= 200
        assert [*map(standing.allows, (tokens[100], tokens[0]))] == [True, False]

    @pytest.mark.parametrize("limit", [5, 1 << 15])
    def test_threads(self, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Several guides of one lazy index at once, each row asked for first by whichever comes first."""
        monkeypatch.setattr(store, "MOST_CONFIGS", limit)
        for case in CASES[::4]:
            index, alone = compiled(case), compiled(case)
            texts = spellings(case, VOCABULARY)
            expected = [masks(alone, tokens) for tokens in texts]
            with ThreadPoolExecutor(6) as pool:
                found = list(pool.map(lambda tokens, index=index: masks(index, tokens), texts * 6))
            assert found == expected * 6


#: Each item is another configuration.
COUNTING = {"type": "array", "items": {"type": "integer"}, "maxItems": 1_000_000}
