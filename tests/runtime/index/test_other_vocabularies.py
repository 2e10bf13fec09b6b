"""One index for all widths of the logits and all EOS ids: compiled over one vocabulary, used over others."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import structgen as sg
from structgen.errors import BitmaskError, VocabularyMismatchError
from structgen.index_store import cache_key
from structgen.runtime import ids_of

SPECIAL = {"<eot>": 258, "<tool>": 259, "<eos>": 260}

#: 256 bytes, a token of two, and three without bytes.
OWN = sg.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), b"12", b'"a', None, None, None], eos_ids=[260], special_tokens=SPECIAL
)

#: Padded logits, other ends, more of them, ends among the padding; none.
OTHERS = [
    OWN.with_size(300), OWN.with_eos_ids([258]), OWN.with_eos_ids([258, 260]).with_size(288),
    OWN.with_size(400).with_eos_ids([399]), OWN.with_eos_ids([]),
]  # fmt: skip

DEFINITIONS: dict[str, sg.Definition] = {
    "regex": sg.Regex(r"[0-9]{2,4}x?"),
    "counted": sg.Regex(r'"[^"]{2,300}"'),
    "schema": sg.JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}}),
    "distinct": sg.JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    "lark": sg.Grammar('start: A+ "!"?\nA: "a" | "12"'),
    "gbnf": sg.Gbnf('root ::= "a" [0-9]+ <tool>?'),
    "gbnf set": sg.Gbnf('root ::= "a" <[*]>+ | "b" <[255-260]> "c"'),
    "lark set": sg.Grammar('start: "a" <[*]> | "b" <[255-260]> "c" | "d" <[^1-250]>'),
    "lark token": sg.Grammar('start: "a" <tool> "b"?'),
    "any token": sg.StructuralTag({"type": "structural_tag", "format": {"type": "any_tokens"}}),
    "tag": sg.StructuralTag(
        {
            "type": "structural_tag",
            "format": {
                "type": "tag",
                "begin": {"type": "token", "token": "<tool>"},
                "content": {"type": "json_schema", "json_schema": {"type": "boolean"}},
                "end": {"type": "token", "token": "<eot>"},
            },
        }
    ),
}


def walked(guide: sg.Guide, other: sg.Guide, seed: int) -> None:
    """Two guides along a random text: they allow the same tokens, and their own EOS ids where texts may end."""
    rng = random.Random(seed)
    ends, others = ({*each.index.vocabulary.eos_ids} for each in (guide, other))
    for _ in range(12):
        allowed, there = ({*ids_of(each.bitmask()).tolist()} for each in (guide, other))
        named = {i for i in ends | others if i in allowed - ends or i in there - others}
        assert allowed - ends - others - named == there - ends - others - named
        assert guide.is_accepting() == other.is_accepting()
        assert other.is_accepting() <= (others <= there)
        assert max(there | {0}) < max(OWN.size, *(i + 1 for i in others), 0)
        tokens = sorted(allowed & there - ends - others)
        if not tokens:
            break
        token = rng.choice(tokens)
        assert guide.advance(token)
        assert other.advance(token)


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("eager", [True, False])
def test_one_index_in_the_cache(name: str, eager: bool, tmp_path: Path) -> None:
    definition, cache = DEFINITIONS[name], sg.Cache(tmp_path)
    own = sg.compile(definition, OWN, eager=eager, cache=cache)
    own.save(tmp_path / "own.sgx")
    for number, vocabulary in enumerate(OTHERS):
        assert cache_key(definition, vocabulary) == cache_key(definition, OWN)
        kept = sg.compile(definition, vocabulary, eager=eager, cache=cache)
        assert kept.origin == "cache"
        loaded = sg.Index.load(tmp_path / "own.sgx", vocabulary)
        fresh = sg.compile(definition, vocabulary, eager=eager)
        for index in (kept, loaded, own.over(vocabulary)):
            assert index.vocabulary is vocabulary
            walked(sg.Guide(own), sg.Guide(index), number)
            exact = sg.Guide(index), sg.Guide(fresh)
            for _ in range(8):
                masks = [each.bitmask() for each in exact]
                assert (masks[0] == masks[1]).all()
                if not len(ids := ids_of(masks[0])):
                    break
                token = random.Random(number).choice(ids.tolist())
                assert [each.advance(token) for each in exact] == [True, True]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_files_are_the_same_whatever_the_vocabulary(name: str) -> None:
    files = []
    for vocabulary in (OWN, *OTHERS):
        index = sg.compile(DEFINITIONS[name], vocabulary)
        index.compile_seconds = 0.0
        files.append(index.to_bytes(with_vocabulary=False))
    assert len({*files}) == 1


def test_sets_of_tokens_have_no_ends_and_no_padding() -> None:
    for name in ("gbnf set", "lark set", "any token"):
        for vocabulary in OTHERS:
            guide = sg.Guide(sg.compile(DEFINITIONS[name], OWN).over(vocabulary))
            if name != "any token":
                assert guide.advance(ord("a"))
            allowed = {*ids_of(guide.bitmask()).tolist()}
            assert allowed - {*vocabulary.eos_ids} == {*range(OWN.known)} - {*vocabulary.eos_ids}
            for end in vocabulary.eos_ids:
                assert guide.allows(end) == guide.is_accepting()


def test_a_guide_with_ends_of_its_own() -> None:
    index = sg.compile(DEFINITIONS["regex"], OWN)
    guide = sg.Guide(index, eos_ids=[258, 259], max_tokens=4)
    assert guide.advance(256)
    assert {258, 259} < {*ids_of(guide.bitmask()).tolist()}
    assert not guide.allows(260)
    assert guide.advance(259)
    assert guide.is_finished()
    assert ids_of(guide.bitmask()).tolist() == [258, 259]
    assert sg.Guide(index, eos_ids=[260]).index is index
    with pytest.raises(sg.errors.VocabularyError, match="has bytes"):
        sg.Guide(index, eos_ids=[97])


def test_a_batch_has_its_own_width_and_ends() -> None:
    schema, regex = (sg.compile(DEFINITIONS[name], OWN) for name in ("schema", "regex"))
    for vocabulary in OTHERS[:4]:
        begun = sg.Guide(regex)
        assert begun.advance(256)
        batch = sg.GuideBatch(vocabulary, [schema, regex, begun, None])
        masks = np.full((4, vocabulary.words + 1), -1, np.int32)
        batch.fill_bitmask(masks)
        assert not masks[:, -1].any()
        for row, guide in enumerate([sg.Guide(schema), sg.Guide(regex), begun]):
            over = guide.over(vocabulary)
            assert (masks[row, :-1] == over.bitmask()).all()
        assert {*vocabulary.eos_ids} < {*ids_of(masks[2]).tolist()}


def test_bitmasks_of_any_width_that_has_all_tokens() -> None:
    padded = OWN.with_size(300)
    index = sg.compile(DEFINITIONS["regex"], padded)
    guide = sg.Guide(index)
    for words in (9, 10, 30):
        mask = np.full(words, -1, np.int32)
        guide.fill_bitmask(mask)
        assert ids_of(mask).tolist() == ids_of(guide.bitmask()).tolist()
        masks = np.full((1, words), -1, np.int32)
        sg.GuideBatch(padded, [index]).fill_bitmask(masks)
        assert (masks[0] == mask).all()
    with pytest.raises(BitmaskError, match=r"int32\[9\]"):
        guide.fill_bitmask(np.zeros(8, np.int32))
    with pytest.raises(BitmaskError, match=r"int32\[1, 9\]"):
        sg.GuideBatch(padded, [index]).fill_bitmask(np.zeros((1, 8), np.int32))


def test_other_tokens_are_refused() -> None:
    index = sg.compile(DEFINITIONS["regex"], OWN)
    with pytest.raises(VocabularyMismatchError):
        index.over(OWN.without([97]))
