"""Distances to the end of a text and guides with ``max_tokens``, judged by a search over all configurations."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from judges.guides import drawn, with_bytes
from judges.token_distances import allowed, check_bounds, check_budgets, check_places, searched
from test_pushdown import random_program
from tiers import draws

import structgen as sg
from structgen.compiler.programs.tables import to_tables
from structgen.errors import BudgetExceededError, TokenBudgetError, UnsupportedError
from structgen.runtime import ids_of
from structgen.runtime.index.index import Index
from structgen.runtime.pushdown import walker as stack_walks
from structgen.runtime.pushdown.distances import token_distances as stack_distances
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.store import store


def vocabulary_of(letters: bytes, rng: random.Random, tokens: int = 25) -> sg.Vocabulary:
    """The letters, some strings of them, one of these twice, and two EOS ids."""
    words = [bytes([letter]) for letter in letters]
    words += [bytes(rng.choice(letters) for _ in range(rng.randint(2, 6))) for _ in range(tokens)]
    return sg.Vocabulary.from_bytes([*words, words[-1], None, None], eos_ids=[len(words) + 1, len(words) + 2])


REGEXES = [
    "a*b*c*", "(abc|bca|cab)*", "a|b[abc]{12}", "a{30,60}b", "(ab|c){25,40}", "[abc]{3,70}", "(a|b)*c[ab]{28}",
    "(a{27,}b)c{30,33}|b(c{40}a)*", "(ab?c?){30,35}(ba){26,50}", "(?!ab)[abc]{2,9}", "c{0,90}a",
]  # fmt: skip


@pytest.mark.parametrize("pattern", REGEXES)
def test_distances_of_regexes_are_exact(pattern: str) -> None:
    rng = random.Random(pattern)
    for size in (0, 5, 40):
        index = sg.compile(sg.Regex(pattern), vocabulary_of(b"abc", rng, size), eager=False)
        moves, expected = searched(index)
        distances: Any = index.distances
        assert index.shortest() == expected[index.machine.start]
        for config, targets in moves.items():
            far = {token: expected[target] for token, target in targets.items()}
            assert distances.distance(config) == expected[config]
            assert distances.farthest(config) == max(far.values(), default=0)
            for most in range(expected[config] - 2, expected[config] + 3):
                assert allowed(distances.row(config, most)) == {t for t, d in far.items() if d <= most}


@pytest.mark.parametrize("pattern", REGEXES)
def test_masks_under_a_budget_are_exact_for_regexes(pattern: str) -> None:
    rng = random.Random(pattern)
    index = sg.compile(sg.Regex(pattern), vocabulary_of(b"abc", rng), eager=False)
    _, expected = searched(index)
    least = index.shortest()
    for most in [*range(least, least + 6), least + 20]:
        for _ in range(3):
            assert check_places(sg.Guide(index, max_tokens=most), most, rng, expected) <= most


def test_too_few_tokens_are_refused() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"aa", b"b", None], eos_ids=[3])
    for definition in (sg.Regex("a{5}b"), sg.Gbnf('root ::= "aaaaa" "b"')):
        index = sg.compile(definition, vocabulary)
        assert index.shortest() == 5
        for most in (-1, 0, 4):
            with pytest.raises(TokenBudgetError, match="takes 5 tokens") as error:
                sg.Guide(index, max_tokens=most)
            assert "max_tokens=5" in error.value.remedy
            with pytest.raises(TokenBudgetError):
                sg.GuideBatch(vocabulary).add(index, max_tokens=most)
        assert check_places(sg.Guide(index, max_tokens=5), 5, random.Random(0)) == 5


def test_without_an_eos_token_the_text_alone_counts() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"aa", b"b"], eos_ids=[])
    for definition in (sg.Regex("a{5}b"), sg.Gbnf('root ::= "aaaaa" "b"')):
        index = sg.compile(definition, vocabulary)
        assert index.shortest() == 4
        guide = sg.Guide(index, max_tokens=4)
        assert all(map(guide.advance, (1, 1)))
        assert allowed(guide.bitmask()) == {0}


def test_rollback_gives_back_and_forks_have_their_own() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", None], eos_ids=[2])
    index = sg.compile(sg.Regex("a*b"), vocabulary)
    guide = sg.Guide(index, max_tokens=4)
    assert guide.advance(0)
    twin = guide.fork()
    assert guide.advance(0)
    assert allowed(guide.bitmask()) == {1}
    assert not guide.advance(0)
    assert allowed(twin.bitmask()) == {0, 1}
    assert twin.advance(1)
    assert allowed(twin.bitmask()) == {2}
    guide.rollback(1)
    assert allowed(guide.bitmask()) == {0, 1}
    guide.reset()
    assert all(map(guide.advance, (0, 0, 1, 2, 2, 2)))
    assert guide.is_finished()
    guide.rollback(4)
    assert allowed(guide.bitmask()) == {1}


# -- automata with a stack -----------------------------------------------------------------------------------

PIECES = [
    b'"}', b'":', b'"a"', b'{"', b"},", b"]}", b"}]", b"true", b"aaaa", b"    ", b"00", b'{"a":', b"null", b'","',
    b"]]", b"[[", b'"}}', "é".encode(),
]  # fmt: skip

SCHEMAS: list[Any] = [
    {
        "type": "object",
        "properties": {
            "a": {"type": "string", "minLength": 3, "maxLength": 40},
            "b": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        },
        "required": ["a", "b"],
    },
    {"type": "array", "items": {"$ref": "#"}},
    {},
    {"enum": ["abc", "xyzzzz", [1, 2, 3]]},
    {"type": "object", "properties": {"n": {"$ref": "#"}, "v": {"pattern": "^a{30,40}b"}}, "required": ["v"]},
    {"anyOf": [{"prefixItems": [{"const": "a"}, {"const": "aaaa"}], "minItems": 2}, {"type": "number"}]},
]


def json_vocabulary() -> sg.Vocabulary:
    return with_bytes(*PIECES)


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_schemas_are_finished_in_time(number: int) -> None:
    rng = random.Random(number)
    index = sg.compile(sg.JsonSchema(SCHEMAS[number]), json_vocabulary(), eager=False)
    check_bounds(index, rng)
    check_budgets(index, rng)


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_masks_are_the_ordinary_ones_where_enough_is_left(number: int) -> None:
    rng = random.Random(number)
    index = sg.compile(sg.JsonSchema(SCHEMAS[number]), json_vocabulary(), eager=False)
    plain, guide = sg.Guide(index), sg.Guide(index, max_tokens=2_000)
    for _ in range(200):
        assert (plain.bitmask() == guide.bitmask()).all()
        token = rng.choice(sorted(allowed(plain.bitmask())))
        assert plain.advance(token)
        assert guide.advance(token)


def test_runs_of_a_byte() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"aa", b"aaaa", b"ab", b"bb", b"cab", None], eos_ids=[6])
    assert {chr(byte): run for byte, run in enumerate(vocabulary.trie.runs) if run} == {"a": 4, "b": 2}


def test_the_bound_of_a_schema_counts_tokens_across_frames() -> None:
    index = sg.compile(sg.JsonSchema({"type": "array", "items": {"$ref": "#"}}), json_vocabulary(), eager=False)
    guide = sg.Guide(index)
    for _ in range(6):
        assert guide.advance(ord("["))
    assert index.distances.distance(guide.path()[-1]) == 4  # "]]" three times, and the EOS token


@pytest.mark.parametrize("seed", range(draws(36)))
def test_random_programs_are_finished_in_time(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 3 == 0:
        monkeypatch.setattr(stack_distances, "_FEW_PLACES", 0)
    if seed % 4 == 0:
        for constant in ("_MOST_THREADS", "_MOST_CELLS", "_MOST_SETS", "_MOST_MEMBERS"):
            monkeypatch.setattr(stack_walks, constant, 2)
    rng = random.Random(seed)

    def check() -> None:
        machine = PushdownMachine(to_tables(random_program(rng)), vocabulary_of(b"abcd", rng))
        index = Index("gbnf", "", machine)
        try:
            check_bounds(index, rng, texts=2, steps=6)
            check_budgets(index, rng, (0, 1, 3, 9))
        except UnsupportedError:
            assert (machine.tables.loops[:, 0] < 0).any()
            raise

    drawn(check, UnsupportedError, BudgetExceededError)  # the latter are hopelessly ambiguous


def test_bounds_against_the_shortest_texts_of_random_programs() -> None:
    """Never less than what a search finds, and mostly the same."""
    rng, same, tried = random.Random(5), 0, 0
    for _ in range(80):
        index = Index("gbnf", "", PushdownMachine(to_tables(random_program(rng)), vocabulary_of(b"abcd", rng)))
        try:
            bound = index.shortest()
        except UnsupportedError:
            continue
        level: set[Any] = {index.machine.start}
        exact = 1
        while not any(map(index.machine.is_accepting, level)) and exact < bound and len(level) < 100:
            level = {t for c in level for k in range(index.vocabulary.size) if (t := index.machine.advance(c, k))}
            exact += 1
        if any(map(index.machine.is_accepting, level)):
            tried += 1
            same += exact == bound
    assert tried > 30
    assert same > 0.7 * tried


def test_a_vocabulary_that_spells_some_bytes_only_in_words_is_refused() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"bc", b"c", b"d", None], eos_ids=[4])
    index = sg.compile(sg.Gbnf('root ::= "d" ("bc" | "dbc")'), vocabulary, eager=False)
    with pytest.raises(UnsupportedError, match="each single byte"):
        sg.Guide(index, max_tokens=10)
    index = sg.compile(sg.Gbnf('root ::= "d" ("bc" | "a")'), vocabulary, eager=False)
    check_bounds(index, random.Random(0))
    check_budgets(index, random.Random(0))
    regex = sg.compile(sg.Regex("d(bc|dbc)"), vocabulary)
    assert regex.shortest() == 3  # automata need no single bytes


def test_what_has_no_bound_is_refused() -> None:
    vocabulary = json_vocabulary()
    grammar = sg.compile(sg.Grammar('start: %json {"type": "integer"}'), vocabulary, eager=False)
    members = {"properties": {name: {} for name in "abcdefghijkl"}, "required": ["a", "b", "l"]}
    in_any_order = sg.compile(sg.JsonSchema(members, property_order="any"), vocabulary, eager=False)
    for index in (grammar, in_any_order):
        batch = sg.GuideBatch(vocabulary)
        with pytest.raises(UnsupportedError, match="max_tokens is not supported"):
            sg.Guide(index, max_tokens=100)
        with pytest.raises(UnsupportedError, match="max_tokens is not supported"):
            batch.add(index, max_tokens=100)
        assert len(batch) == 0


def test_deep_stacks_cost_no_recursion() -> None:
    index = sg.compile(sg.Gbnf('root ::= "[" root? "]"'), json_vocabulary(), eager=False)
    guide = sg.Guide(index, max_tokens=30_002)
    depth = 0
    while guide.allows(ord("[")) and depth < 20_000:
        assert guide.advance(ord("["))
        depth += 1
    assert depth == 20_000
    assert index.distances.distance(guide.path()[-1][0]) == 10_001  # type: ignore[index]
    pair = 256 + PIECES.index(b"]]")
    assert allowed(guide.bitmask()) == {ord("]"), pair}
    assert guide.advance(ord("]"))
    assert allowed(guide.bitmask()) == {ord("]"), pair}
    assert guide.advance(ord("]"))
    assert allowed(guide.bitmask()) == {pair}


def test_an_index_from_a_file_has_the_same_distances() -> None:
    rng, vocabulary = random.Random(0), vocabulary_of(b"abc", random.Random(0))
    for definition in (sg.Regex("(a{27,}b)c{30,33}|b(c{40}a)*"), sg.Gbnf('root ::= "a" root "bc" | [ab]{3,90}')):
        index = sg.compile(definition, vocabulary)
        stored = Index.from_buffer(index.to_bytes())
        assert stored.shortest() == index.shortest()
        check_budgets(stored, rng, (0, 3, 30))


def test_several_threads_share_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_distances, "MEMO_ENTRIES", 50)
    monkeypatch.setattr(store, "MOST_CONFIGS", 20)
    index = sg.compile(sg.JsonSchema(SCHEMAS[0]), json_vocabulary(), eager=False)
    least = index.shortest()

    def write(seed: int) -> list[int]:
        rng, lengths = random.Random(seed), []
        for _ in range(10):
            most, taken = least + rng.randint(0, 12), 0
            guide = sg.Guide(index, max_tokens=most)
            while not guide.is_finished():
                assert guide.advance(rng.choice(sorted(allowed(guide.bitmask()))))
                taken += 1
            lengths.append(most - taken)
        return lengths

    with ThreadPoolExecutor(4) as pool:
        spare = [each for lengths in pool.map(write, range(4)) for each in lengths]
    assert len(spare) == 40
    assert min(spare) >= 0


# -- batches -------------------------------------------------------------------------------------------------


def indexes_for_batches() -> list[Index]:
    vocabulary = json_vocabulary()
    schemas = [sg.JsonSchema(SCHEMAS[number]) for number in (0, 1, 4)]
    return [sg.compile(each, vocabulary, eager=False) for each in (*schemas, sg.Regex("(a|b){3,40}(true|00)*"))]


@pytest.mark.parametrize("seed", range(draws(8)))
def test_rows_of_a_batch_have_the_masks_of_guides(seed: int) -> None:
    rng, indexes = random.Random(seed), indexes_for_batches()
    vocabulary = indexes[0].vocabulary
    batch, guides = sg.GuideBatch(vocabulary), []
    for _ in range(10):
        index = rng.choice(indexes)
        most = rng.choice([None, index.shortest(), index.shortest() + rng.randint(0, 40)])
        guide = sg.Guide(index, max_tokens=most)
        if rng.random() < 0.5:
            batch.add(index, max_tokens=most)
        else:
            for _ in range(rng.randint(0, 4)):
                guide.advance(rng.choice(sorted(allowed(guide.bitmask()))))
            batch.add(guide)
        guides.append(guide)
    for _ in range(60):
        masks = batch.bitmask()
        for mask, guide in zip(masks, guides, strict=True):
            assert (mask == guide.bitmask()).all()
        tokens = [rng.choice(sorted(allowed(guide.bitmask()))) for guide in guides]
        if rng.random() < 0.2:
            tokens[0] = rng.randrange(vocabulary.size)
        check_draft(batch, guides, rng)
        assert batch.advance(tokens).tolist() == [g.advance(t) for g, t in zip(guides, tokens, strict=True)]
        if rng.random() < 0.2:
            row = rng.randrange(len(guides))
            back = rng.randint(0, len(guides[row].path()) - 1)
            batch.rollback([back], [row])
            guides[row].rollback(back)
        if rng.random() < 0.1:
            order = [rng.randrange(len(guides)) for _ in guides]
            batch.reorder(order)
            guides = [guides[row].fork() for row in order]
        if rng.random() < 0.1:
            row = rng.randrange(len(guides))
            batch.reset([row])
            guides[row].reset()
        row = rng.randrange(len(guides))
        copy = batch.guide(row)
        assert copy is not None
        assert (copy.bitmask() == guides[row].bitmask()).all()


def check_draft(batch: sg.GuideBatch, guides: list[sg.Guide], rng: random.Random) -> None:
    """A chain of tokens for one row: what a fork of its guide says."""
    row = rng.randrange(len(guides))
    twin, chain = guides[row].fork(), []
    masks = np.zeros((6, guides[row].index.vocabulary.words), np.int32)
    for place in range(6):
        chain.append(rng.choice(sorted(allowed(twin.bitmask()))))
        assert twin.advance(chain[-1])
        twin.fill_bitmask(masks[place])
    drafts = batch.draft(chain, range(-1, 5), [row] * 6)
    assert drafts.accepted.all()
    found = np.zeros_like(masks)
    drafts.fill_bitmask(found)
    assert (found == masks).all()


# -- real vocabularies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(SCHEMAS)))
def test_schemas_with_a_real_vocabulary(number: int, llama3: sg.Vocabulary) -> None:
    rng = random.Random(number)
    index = sg.compile(sg.JsonSchema(SCHEMAS[number]), llama3, eager=False)
    for most in [index.shortest() + k for k in (0, 1, 2, 5, 20)]:
        for _ in range(2):
            guide, text, taken = sg.Guide(index, max_tokens=most), b"", 0
            while not guide.is_finished():
                token = rng.choice(ids_of(guide.bitmask()).tolist())
                assert guide.advance(token)
                text += llama3.token(token) or b""
                taken += 1
            assert taken <= most
            assert index.match(text).accepted


@pytest.mark.parametrize("pattern", [r".{60}", r"[a-z ]{3,200}\.", r"(?!if\b)[a-z_]\w*(\(\d{30}\))?"])
def test_regexes_with_a_real_vocabulary(pattern: str, llama3: sg.Vocabulary) -> None:
    rng, index = random.Random(pattern), sg.compile(sg.Regex(pattern), llama3, eager=False)
    distances: Any = index.distances
    for most in (index.shortest(), index.shortest() + 3):
        guide, left = sg.Guide(index, max_tokens=most), most
        while not guide.is_finished():
            config: Any = guide.path()[-1]
            full = ids_of(index.machine.row(config[0]))
            targets = [index.machine.advance(config[0], token) for token in full.tolist()]
            expected = [t for t, c in zip(full, targets, strict=True) if c is None or distances.distance(c) < left]
            assert ids_of(guide.bitmask()).tolist() == expected
            assert guide.advance(int(rng.choice(expected)))
            left -= 1
        assert left >= 0


def test_what_must_follow_under_a_limit() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", b"aa", None], eos_ids=[3])
    guide = sg.Guide(sg.compile(sg.Regex("aab(aa)*"), vocabulary), max_tokens=3)
    assert guide.forced_bytes() == b"aab"
    assert guide.forced_tokens(lambda text: [0 if c == "a" else 1 for c in text]) == []  # too many, one by one
    assert guide.forced_tokens(lambda text: [2, 1][: len(text) - 1]) == [2, 1]
