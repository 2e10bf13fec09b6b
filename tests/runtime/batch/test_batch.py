"""`GuideBatch`: the same as a guide for each row, whatever is done to them."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from judges.batches import Sequence, check, move
from judges.guides import EACH_BYTE
from judges.naive import allowed_tokens, small_vocabulary
from tiers import draws

import structgen as sg
from structgen import kernels
from structgen.runtime.batch import lazy_automaton
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.rows import row_store

VOCABULARY = small_vocabulary()
EOS = VOCABULARY.eos_ids[0]

DEFINITIONS: list[Any] = [
    sg.Regex("(a|b)+"),
    sg.Regex("a{2,5}b{3}"),
    sg.JsonSchema({"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
    sg.JsonSchema({"properties": {"a": {"type": "string", "maxLength": 4}, "b": {"type": "boolean"}}}),
    sg.JsonSchema({"enum": ["a", "ab", 1]}),
    sg.Grammar('start: "a" start "b" | "ab"'),
    sg.Gbnf('root ::= "a" root "a" | "b"'),
]
INDEXES = [sg.compile(each, VOCABULARY) for each in DEFINITIONS]


def sequence(index: sg.Index | None) -> Sequence:
    return Sequence.of(VOCABULARY, index)


@pytest.mark.parametrize("seed", range(draws(12)))
@pytest.mark.parametrize("cramped", [False, True])
def test_random_walks_as_guides_do(seed: int, cramped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_automaton, "_SPELLED_FROM", 1 + seed % 3)
    if cramped:  # what is remembered is forgotten all the time
        for bound in ("MOST_CONFIGS", "MOST_SPELLED", "MOST_TOKENS"):
            monkeypatch.setattr(lazy_automaton, bound, 8)
        monkeypatch.setattr(row_store, "MOST_BYTES", 0)
    chance = random.Random(seed)
    batch = sg.GuideBatch(VOCABULARY)
    oracle: list[Sequence] = []
    if cramped:
        batch.rows._most = 6
    for _ in range(60):
        move(batch, oracle, INDEXES, chance)
        check(batch, oracle)


@pytest.mark.parametrize("seed", range(draws(8)))
def test_drafts_of_trees_as_guides_do(seed: int) -> None:
    chance = random.Random(seed)
    indexes = [chance.choice([*INDEXES, None]) for _ in range(6)]
    batch, oracle = sg.GuideBatch(VOCABULARY, indexes), [sequence(index) for index in indexes]
    for _ in range(6):
        ends: list[Sequence | None] = []
        tokens: list[int] = []
        above: list[int] = []
        rows: list[int] = []
        for _ in range(24):
            place = chance.randrange(-1, len(ends)) if ends else -1
            row = rows[place] if place >= 0 else chance.randrange(6)
            start = ends[place] if place >= 0 else oracle[row]
            token = chance.randrange(VOCABULARY.size)
            if start is not None and chance.random() < 0.9:
                token = chance.choice([*start.mask()])
            end = start and start.fork()
            ends.append(end if end is not None and end.advance(token) else None)
            tokens.append(token)
            above.append(place)
            rows.append(row)
        drafts = batch.draft(tokens, above, rows)
        assert drafts.accepted.tolist() == [end is not None for end in ends]
        masks = sg.allocate_bitmask(len(ends), VOCABULARY.size)
        drafts.fill_bitmask(masks)
        for mask, end in zip(masks, ends, strict=True):
            assert allowed_tokens(mask, VOCABULARY.size) == (set(VOCABULARY.eos_ids) if end is None else end.mask())
        check(batch, oracle)  # no row has moved

        chains = [[chance.choice([*each.mask()]), chance.randrange(VOCABULARY.size)] for each in oracle]
        counts = [chance.randint(0, 2) for _ in oracle]
        wanted = []
        for each, chain, count in zip(oracle, chains, counts, strict=True):
            taken = 0
            while taken < count and each.advance(chain[taken]):
                taken += 1
            wanted.append(taken)
        assert batch.advance_many(chains, counts).tolist() == wanted
        assert sorted(batch.errors) == [row for row in range(6) if wanted[row] < counts[row]]
        check(batch, oracle)


def test_what_is_wrong_is_named() -> None:
    batch = sg.GuideBatch(VOCABULARY, [INDEXES[0], None])
    other = sg.compile(sg.Regex("a"), sg.Vocabulary.from_bytes([b"a", None], eos_ids=[1]))
    with pytest.raises(sg.errors.VocabularyMismatchError, match=r"row 2"):
        batch.add(other)
    with pytest.raises(sg.errors.BatchError, match=r"row 2"):
        batch.advance([1], [2])
    with pytest.raises(sg.errors.BatchError, match="twice"):
        batch.advance([1, 1], [0, 0])
    with pytest.raises(sg.errors.BatchError, match=r"int\[2\]"):
        batch.advance([1])
    with pytest.raises(sg.errors.TokenIdError, match="float"):
        batch.advance(np.zeros(2))
    with pytest.raises(sg.errors.RollbackError, match=r"row 0"):
        batch.rollback([1, 0])
    with pytest.raises(sg.errors.RollbackError, match=r"row 1"):
        batch.rollback(-1, [1])
    with pytest.raises(sg.errors.RollbackError):
        sg.GuideBatch(VOCABULARY, max_rollback=-1)
    words = VOCABULARY.words
    for wrong in (
        np.zeros((2, words), np.int64), np.zeros((3, words), np.int32), np.zeros((2, words - 1), np.int32),
        np.zeros(words, np.int32), [[0] * words] * 2,
    ):  # fmt: skip
        with pytest.raises(sg.errors.BitmaskError, match=rf"int32\[2, {words}\]"):
            batch.fill_bitmask(wrong)
    masks = np.zeros((2, words), np.int32)
    masks.flags.writeable = False
    with pytest.raises(sg.errors.BitmaskError, match="read-only"):
        batch.fill_bitmask(masks)
    for draft in (([1], [0], [0]), ([1, 1], [-1, 0], [0, 1]), ([1], [-1, -1], [0]), ([1], [-2], [0])):
        with pytest.raises(sg.errors.BatchError):
            batch.draft(*draft)
    with pytest.raises(sg.errors.BatchError):
        batch.draft([1], [-1], [7])
    check(batch, [sequence(INDEXES[0]), sequence(None)])


def test_a_row_that_goes_wrong_takes_no_other_down(monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(sg.Regex("(a|b)*c"), VOCABULARY)

    def broken(*_: Any) -> Any:
        raise sg.errors.BudgetExceededError("too ambiguous")

    batch = sg.GuideBatch(VOCABULARY, [index, INDEXES[0], index])
    monkeypatch.setattr(index.machine, "row", broken)
    masks = sg.allocate_bitmask(3, VOCABULARY.size)
    batch.fill_bitmask(masks)
    assert sorted(batch.errors) == [0, 2]
    assert [allowed_tokens(mask, VOCABULARY.size) for mask in masks] == [
        {*VOCABULARY.eos_ids},
        sequence(INDEXES[0]).mask(),
        {*VOCABULARY.eos_ids},
    ]
    for name in ("advance", "follow_byte"):
        monkeypatch.setattr(index.machine, name, broken)
    assert batch.advance([ord("a")] * 3).tolist() == [False, True, False]
    assert {row: type(error) for row, error in batch.errors.items()} == dict.fromkeys(
        [0, 2], sg.errors.BudgetExceededError
    )


def test_guides_come_and_go_with_their_history() -> None:
    guide = sg.Guide(INDEXES[0])
    for token in (ord("a"), ord("b"), EOS):
        assert guide.advance(token)
    batch = sg.GuideBatch(VOCABULARY, [guide, None])
    assert batch.guide(1) is None
    assert batch.is_finished().tolist() == [True, False]
    batch.rollback([2, 0])
    again = batch.guide(0)
    assert again is not None
    assert again.advance(ord("b"))
    again.rollback(2)
    with pytest.raises(sg.errors.RollbackError):
        again.rollback(1)
    batch.reset([0])
    check(batch, [sequence(INDEXES[0]), sequence(None)])


def test_bounded_rollback_and_a_forest_that_is_swept() -> None:
    batch = sg.GuideBatch(VOCABULARY, [INDEXES[0]] * 50, max_rollback=3)
    for step in range(400):  # 20,000 nodes, of which 200 are wanted
        assert batch.advance([ord("ab"[step % 2])] * 50).all()
    assert len(batch._histories.befores) < 20_000
    batch.sweep()
    assert batch._histories.used[0] == 200
    batch.rollback(3)
    assert batch.guide(49) is not None
    check(batch, [batch_row(batch, row) for row in range(50)])


def test_tokens_without_bytes() -> None:
    """Those that a grammar names lead on, wherever else they are refused: in a text, behind its end, in drafts."""
    names = {"<|call|>": 258, "<|pad|>": 259}
    vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, None, b"", None, None], eos_ids=[256], special_tokens=names)
    grammar = sg.compile(sg.Grammar('start: "a" <|call|> "b"'), vocabulary)
    plain = sg.compile(sg.Regex("a"), vocabulary)
    batch = sg.GuideBatch(vocabulary, [grammar, plain, None])
    assert batch.advance([ord("a")] * 3).all()
    assert batch.advance([258] * 3).tolist() == [True, False, True]
    assert batch.advance([ord("b"), 256, 256]).all()
    assert batch.advance([256, 259, 259]).tolist() == [True, False, True]
    for token in (257, 258, 259, ord("b")):
        assert batch.advance([token] * 3).tolist() == [False, False, True]
        assert batch.draft([token, 256], [-1, -1], [0, 0]).accepted.tolist() == [False, True]
    assert batch.advance([256] * 3).all()
    with pytest.raises(sg.errors.RollbackError, match="row 0"):
        batch.rollback(2**32 + 1)


def calls_of(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[tuple[object, ...]]:
    """The arguments with which some methods of `LazyAutomaton` and `PushdownMachine` are called from now on."""
    calls: list[tuple[object, ...]] = []

    def counted(method: Callable[..., object]) -> Callable[..., object]:
        def count(self: object, *arguments: object) -> object:
            calls.append(arguments)
            return method(self, *arguments)

        return count

    for name in names:
        owner = next(cls for cls in (lazy_automaton.LazyAutomaton, PushdownMachine) if hasattr(cls, name))
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    return calls


def test_histories_beyond_every_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("MOST_CONFIGS", "MOST_SPELLED", "MOST_TOKENS"):
        monkeypatch.setattr(lazy_automaton, bound, 16)
    index = sg.compile(sg.JsonSchema({"type": "array", "items": {"$ref": "#"}}), VOCABULARY, eager=False)
    batch, oracle = sg.GuideBatch(VOCABULARY, [index]), sequence(index)
    forgotten = calls_of(monkeypatch, "forget")
    for _ in range(300):
        assert batch.advance([ord("[")]).all()
        assert oracle.advance(ord("["))
    assert len(forgotten) <= 6  # 16, 32, 64 ... configurations
    check(batch, [oracle])
    batch.rollback(290)
    assert batch.advance([ord("]")]).all()


def test_where_histories_stand_nothing_is_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """However far beyond the bound they are."""
    monkeypatch.setattr(lazy_automaton, "MOST_CONFIGS", 16)
    index = sg.compile(sg.JsonSchema({"type": "array", "items": {"$ref": "#"}}), VOCABULARY, eager=False)
    batch = sg.GuideBatch(VOCABULARY, [index] * 3)
    asked = calls_of(monkeypatch, "_target", "row")
    for _ in range(200):
        assert batch.advance([ord("[")] * 3).all()
        batch.bitmask()
    assert len(batch.automaton) > 200
    written = len(asked)
    assert written <= 2 * 200 + 1
    for back in (50, 180, 200):
        batch.rollback(back)
        for _ in range(back):
            assert batch.advance([ord("[")] * 3).all()
            batch.bitmask()
    assert len(asked) == written


def test_beyond_the_bound_what_is_seldom_met_is_worked_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of which some come often, and a third of whose configurations have no room."""
    words = ["".join(chance.choices("abc", k=6)) for chance in map(random.Random, range(60))]
    index = sg.compile(sg.JsonSchema({"enum": words}), VOCABULARY, eager=False)

    def asked_of_steps() -> tuple[int, int, int]:
        """What is worked out once all has been met, of how many steps; and how many configurations there are."""
        chance, batch = random.Random(5), sg.GuideBatch(VOCABULARY, [index] * 4, max_rollback=0)
        asked = calls_of(monkeypatch, "_target")
        for turn in range(300):
            if turn == 100:
                asked.clear()
            texts = [f'"{words[int(60 * chance.random() ** 3)]}"'.encode() for _ in range(4)]
            for column in zip(*texts, strict=True):
                assert batch.advance(column).all()
            batch.reset()
        return len(asked), 200 * 4 * 8, len(batch.automaton)

    again, _, needed = asked_of_steps()
    assert again < 5
    monkeypatch.setattr(lazy_automaton, "MOST_CONFIGS", 2 * needed // 3)
    again, steps, _ = asked_of_steps()
    assert 0 < again < 0.2 * steps  # 0.29 if all but what histories stand on were forgotten


def test_pairs_that_several_rows_meet_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(sg.JsonSchema({"enum": ["a", "ab", 1]}), VOCABULARY, eager=False)
    batch, oracle = sg.GuideBatch(VOCABULARY, [index] * 50), sequence(index)
    asked = calls_of(monkeypatch, "_target", "row")
    for token in b'"ab"':
        assert batch.advance([token] * 50).all()
        assert oracle.advance(token)
        check(batch, [oracle] * 50)
    assert len(set(asked)) == len(asked) == 8


def test_what_is_new_in_a_step_is_remembered_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for tokens and one for masks, however many indexes they are of."""
    schemas = [sg.JsonSchema({"enum": [f"a{number}", "ab", number]}) for number in range(20)]
    indexes = [sg.compile(schema, VOCABULARY, eager=False) for schema in schemas]
    batch = sg.GuideBatch(VOCABULARY, indexes)
    calls = []
    for name in ("remember_tokens",):
        kernel = getattr(kernels, name)

        def counted(*arguments: Any, kernel: Any = kernel) -> Any:
            calls.append(kernel)
            return kernel(*arguments)

        monkeypatch.setattr(kernels, name, counted)
    guides = [sequence(index) for index in indexes]
    for token in b'"a':
        assert batch.advance([token] * 20).all()
        batch.bitmask()
        assert all(guide.advance(token) for guide in guides)
    assert len(calls) == 2
    check(batch, guides)


def test_indexes_that_nobody_uses_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_automaton, "MOST_MACHINES", 10)
    batch = sg.GuideBatch(VOCABULARY, [INDEXES[0]])
    seen = []
    for number in range(40):
        index = sg.compile(sg.Regex(f"[a-c]{{{number + 1}}}"), VOCABULARY)
        seen.append(weakref.ref(index.machine))
        batch.add(index)
        assert batch.advance([ord("a")] * 2).all()
        batch.remove([1])
    del index
    gc.collect()
    assert sum(each() is not None for each in seen) <= 10
    check(batch, [batch_row(batch, 0)])


def batch_row(batch: sg.GuideBatch, row: int) -> Sequence:
    return Sequence(VOCABULARY, batch.guide(row))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    batch = sg.GuideBatch(VOCABULARY, [INDEXES[0], None])
    assert batch.advance(torch.tensor([ord("a"), 3])).all()
    masks = torch.full((2, VOCABULARY.words), -1, dtype=torch.int32)
    batch.fill_bitmask(masks)
    assert np.array_equal(masks.numpy(), batch.bitmask())
    every_other = torch.zeros((4, VOCABULARY.words), dtype=torch.int32)[::2]
    batch.fill_bitmask(every_other)
    assert np.array_equal(every_other.numpy(), batch.bitmask())
    with pytest.raises(sg.errors.BitmaskError, match="meta"):
        batch.fill_bitmask(masks.to("meta"))
    with pytest.raises(sg.errors.BatchError, match="meta"):
        batch.advance(torch.tensor([1, 2], device="meta"))


class TestGenerations:
    """What is kept from before the batch forgot is refused: it would stand for something else."""

    def test_row_ids(self) -> None:
        batch = sg.GuideBatch(VOCABULARY, [INDEXES[0], INDEXES[2], None, INDEXES[1]])
        kept = [batch.row_ids()]
        for _ in range(4):
            batch.rows._most = 1
            assert batch.advance([97, 91, 97, 97], range(4)).any()
            kept.append(batch.row_ids())
            batch.reset()
        always = [ids for ids in kept[-1].tolist() if ids < 3]
        assert always == [row_store.ALL_IDS]  # of the row without an index
        assert len(set(np.concatenate(kept).tolist())) == sum(len(ids) - 1 for ids in kept) + 1
        assert len(batch.rows.numbers_of(kept[-1])) == 4
        for ids in kept[:-1]:
            with pytest.raises(sg.errors.BatchError, match="not kept"):
                batch.rows.numbers_of(ids)
            assert batch.rows.numbers_of(ids[2:3]) == [row_store.ALL_IDS]

    def test_drafts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        batch = sg.GuideBatch(VOCABULARY, [INDEXES[0], INDEXES[2]], max_rollback=0)
        drafts = batch.draft([97, 91], [-1, -1], [0, 1])
        batch.advance([97, 91])
        masks = sg.allocate_bitmask(2, VOCABULARY.size)
        drafts.fill_bitmask(masks)  # the batch moved, and remembers all
        assert (masks == batch.bitmask()).all()
        monkeypatch.setattr(lazy_automaton, "MOST_CONFIGS", 1)
        batch.automaton._most = 1
        for token in b"1,2,3":
            assert batch.advance([98, token]).all()
        for ask in (drafts.row_ids, lambda: drafts.fill_bitmask(masks)):
            with pytest.raises(sg.errors.BatchError, match="moved on"):
                ask()
        assert drafts.accepted.all()
