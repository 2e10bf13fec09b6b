"""`GuideBatch`: the same as a guide for each row, whatever is done to them."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from judges.batches import Sequence, check, draft, move
from judges.grammars import STATEMENTS
from judges.guides import EACH_BYTE
from judges.naive import allowed_tokens, small_vocabulary
from tiers import draws

import structgen as sg
from structgen import kernels
from structgen.runtime.batch import batch as module
from structgen.runtime.batch import numbered_stepper, steppers
from structgen.runtime.batch.numbered_stepper import NumberedStepper
from structgen.runtime.batch.steppers import Steppers
from structgen.runtime.pushdown.store import store
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
    sg.JsonSchema({"type": "array", "items": {"enum": ["a", "ab", 12]}, "uniqueItems": True}),
    sg.Grammar(STATEMENTS),
]
INDEXES = [sg.compile(each, VOCABULARY) for each in DEFINITIONS]


def sequence(index: sg.Index | None) -> Sequence:
    return Sequence.of(VOCABULARY, index)


def cramp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is remembered forgotten all the time: stores, steppers, masks."""
    for bound, most in (("MOST_CONFIGS", 8), ("MOST_TOKENS", 16), ("MOST_ROWS", 2)):
        monkeypatch.setattr(numbered_stepper, bound, most)
    monkeypatch.setattr(store, "MOST_CONFIGS", 8)
    monkeypatch.setattr(steppers, "MOST_STEPPERS", 3)
    monkeypatch.setattr(steppers, "_MOST_PLACES", 5)
    monkeypatch.setattr(module, "_SPARE", 1)


@pytest.mark.parametrize("seed", range(draws(12)))
@pytest.mark.parametrize("cramped", [False, True])
def test_random_walks_as_guides_do(seed: int, cramped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if cramped:
        cramp(monkeypatch)
    chance = random.Random(seed)
    batch = sg.GuideBatch(VOCABULARY)
    oracle: list[Sequence] = []
    if cramped:
        batch.rows._most = 6
    for step in range(60):
        move(batch, oracle, INDEXES, chance)
        check(batch, oracle)
        if step % 8 == 7:
            draft(batch, oracle, 10, chance)
            check(batch, oracle)


@pytest.mark.parametrize("seed", range(draws(8)))
def test_drafts_of_trees_as_guides_do(seed: int) -> None:
    chance = random.Random(seed)
    indexes = [chance.choice([*INDEXES, None]) for _ in range(6)]
    batch, oracle = sg.GuideBatch(VOCABULARY, indexes), [sequence(index) for index in indexes]
    for _ in range(6):
        draft(batch, oracle, 24, chance)
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
    for drafted in (([1], [0], [0]), ([1, 1], [-1, 0], [0, 1]), ([1], [-1, -1], [0]), ([1], [-2], [0])):
        with pytest.raises(sg.errors.BatchError):
            batch.draft(*drafted)
    with pytest.raises(sg.errors.BatchError):
        batch.draft([1], [-1], [7])
    check(batch, [sequence(INDEXES[0]), sequence(None)])


def test_a_row_that_goes_wrong_takes_no_other_down(monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(sg.Grammar('start: /[ab]/* "c"'), VOCABULARY)

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
    assert batch._histories.used == 200
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


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> list[tuple[object, ...]]:
    """The arguments with which some functions of a class or a module are called from now on."""
    calls: list[tuple[object, ...]] = []

    def counted(name: str, method: Callable[..., object]) -> Callable[..., object]:
        def count(*arguments: object) -> object:
            calls.append((name, *arguments[isinstance(owner, type) :]))
            return method(*arguments)

        return count

    for name in names:
        monkeypatch.setattr(owner, name, counted(name, getattr(owner, name)))
    return calls


#: One with a store.
STORED = sg.JsonSchema({"type": "array", "items": {"$ref": "#"}})


@pytest.mark.parametrize("definition", [STORED, sg.Grammar('start: ("[" start "]")?')])
def test_histories_beyond_every_bound(definition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a row can go back to stays, however much it is, and moves seldom: each time twice as much has room."""
    for where in (store, numbered_stepper):
        monkeypatch.setattr(where, "MOST_CONFIGS", 16)
    monkeypatch.setattr(module, "_SPARE", 1)
    index = sg.compile(definition, VOCABULARY, eager=False)
    batch, oracle = sg.GuideBatch(VOCABULARY, [index]), sequence(index)
    renewed = calls_of(monkeypatch, Steppers, "renew")
    for _ in range(300):
        assert batch.advance([ord("[")]).all()
        assert oracle.advance(ord("["))
    assert 0 < len(renewed) <= 6  # 16, 32, 64 ... configurations
    check(batch, [oracle])
    batch.rollback(290)
    oracle.rollback(290)
    check(batch, [oracle])
    assert batch.advance([ord("]")]).all()
    assert oracle.advance(ord("]"))
    check(batch, [oracle])
    guide = batch.guide(0)
    assert guide is not None
    assert guide.tokens() == oracle.guide.tokens()  # type: ignore[union-attr]


@pytest.mark.parametrize("definition", [sg.JsonSchema({"enum": ["a", "ab", 1]}), sg.Regex('"(a|ab)"')])
def test_what_several_rows_meet_is_worked_out_once(definition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(definition, VOCABULARY, eager=False)
    batch, oracle = sg.GuideBatch(VOCABULARY, [index] * 50), sequence(index)
    asked = calls_of(monkeypatch, Steppers, "_asked")
    for token in b'"ab"':
        assert batch.advance([token] * 50).all()
        batch.bitmask()
        assert oracle.advance(token)
        check(batch, [oracle] * 50)
    steps = [(place, token) for _, place, name, token in asked if name == "advance"]
    masks = [place for _, place, name, _ in asked if name == "write_mask"]
    assert len(set(steps)) == len(steps) <= 4
    assert 1 <= len(set(masks)) == len(masks) <= 4


def test_new_steps_of_many_stores_are_made_by_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = [sg.JsonSchema({"enum": [f"a{number}", "ab", number]}) for number in range(20)]
    indexes = [sg.compile(schema, VOCABULARY, eager=False) for schema in schemas]
    warm = sg.GuideBatch(VOCABULARY, indexes)  # whose first step lays out the automata
    assert warm.advance([ord("1")] * 20).sum() == 11
    batch, guides = sg.GuideBatch(VOCABULARY, indexes), [sequence(index) for index in indexes]
    calls = calls_of(monkeypatch, kernels, "follow_tokens")
    asked = calls_of(monkeypatch, Steppers, "_asked")
    for token in b'"a':
        assert batch.advance([token] * 20).all()
    assert len(calls) == 4  # which find nothing, and which step
    assert not asked
    for token in b'"a':
        assert all(guide.advance(token) for guide in guides)
    check(batch, guides)
    batch.rollback(2)
    for token in b'"a':
        assert batch.advance([token] * 20).all()
    assert len(calls) == 6


def test_where_a_lock_is_held_rows_wait_and_others_do_not_step_unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel makes steps in stores whose locks are free; for the others each row waits, as a guide does."""
    index = sg.compile(STORED, VOCABULARY, eager=False)
    batch, oracle = sg.GuideBatch(VOCABULARY, [index, index]), sequence(index)
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        lock = index.machine.lock
        assert lock is not None
        with lock:
            held.set()
            let_go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    asked = calls_of(monkeypatch, Steppers, "_asked")
    threading.Timer(0.05, let_go.set).start()
    assert batch.advance([ord("["), ord("[")]).all()
    thread.join()
    assert len(asked) == 1
    assert oracle.advance(ord("["))
    check(batch, [oracle, oracle])


def test_masks_that_are_let_go_of_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of machines without a store, which kernels have by their addresses."""
    batch, oracle = sg.GuideBatch(VOCABULARY, INDEXES), [sequence(index) for index in INDEXES]
    check(batch, oracle)
    held = [each for each in batch._steppers._steppers if isinstance(each, NumberedStepper)]
    assert len(held) >= 2
    asked = calls_of(monkeypatch, Steppers, "_asked")
    check(batch, oracle)
    assert not asked
    for each in held:
        assert each._rows
        each.let_go()
        assert not each._rows
    check(batch, oracle)
    assert len(asked) == len(held)


def test_indexes_that_nobody_uses_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steppers, "MOST_STEPPERS", 10)
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
        monkeypatch.setattr(module, "_SPARE", 1)
        for each in batch._steppers._steppers[2:]:
            monkeypatch.setattr(each, "is_full", lambda: True)
        for token in b"1,2,3":
            assert batch.advance([98, token]).all()
        for ask in (drafts.row_ids, lambda: drafts.fill_bitmask(masks)):
            with pytest.raises(sg.errors.BatchError, match="moved on"):
                ask()
        assert drafts.accepted.all()
