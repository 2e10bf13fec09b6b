"""Arguments of the wrong type, size, layout or device: typed errors, the same ones everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from judges.naive import small_vocabulary

import structgen as sg
from structgen.errors import ArgumentError, BatchError, BitmaskError, RollbackError, TokenBudgetError, TokenIdError
from structgen.errors import VocabularyError as WrongVocabulary
from structgen.integrations.matcher import Matcher
from structgen.runtime.events.events import JsonEvents
from structgen.runtime.guide.batches import fill_batch
from structgen.runtime.index.healing import heal
from structgen.runtime.rows.bitmask import unpack
from structgen.system.arguments import overlaps

VOCABULARY = small_vocabulary()
A = ord("a")
INDEX = sg.compile(sg.Regex("(a|b)*"), VOCABULARY)

#: What is no number, though Python or NumPy would make one of most of it.
NO_NUMBERS: list[Any] = [True, False, 1.0, 1.5, "1", b"1", None, [1], (), {}, 1j, np.float64(1), np.True_, float("nan")]

#: Numbers of other types.
NUMBERS: list[Any] = [A, np.int64(A), np.uint8(A), np.array(A)]


def calls_of_ids() -> dict[str, Callable[[Any], Any]]:
    guide, batch = sg.Guide(INDEX), sg.GuideBatch(VOCABULARY, [INDEX, None])
    return {
        "Guide.advance": guide.advance,
        "Guide.allows": guide.allows,
        "GuideBatch.advance": lambda token: batch.advance([token], [0]),
        "GuideBatch.advance, without a definition": lambda token: batch.advance([A, token]),
        "GuideBatch.advance_many": lambda token: batch.advance_many([[A, token], [A, A]]),
        "GuideBatch.draft": lambda token: batch.draft([A, token], [-1, 0], [0, 0]),
        "Vocabulary.token": VOCABULARY.token,
        "JsonEvents.feed": lambda token: JsonEvents(VOCABULARY).feed([token]),
        "heal": lambda token: heal([A, token], VOCABULARY, INDEX),
    }


CALLS_OF_IDS = calls_of_ids()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        pytest.param(name, wrong, id=f"{wrong!r}-{name}")
        for wrong in [*NO_NUMBERS, -1, VOCABULARY.size, 1 << 40, 1 << 70, -(1 << 70)]
        for name in CALLS_OF_IDS
        if not (name == "GuideBatch.advance_many" and wrong in ([1], ()))  # the shape is wrong, too
    ],
)
def test_token_ids(name: str, wrong: Any) -> None:
    with pytest.raises((TokenIdError, BatchError) if isinstance(wrong, list | tuple) else TokenIdError):
        CALLS_OF_IDS[name](wrong)


@pytest.mark.parametrize("name", [name for name in CALLS_OF_IDS if name != "JsonEvents.feed"])
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_of_other_types_are_token_ids(name: str, number: Any) -> None:
    CALLS_OF_IDS[name](number)


def test_a_batch_with_a_wrong_id_is_as_before() -> None:
    batch = sg.GuideBatch(VOCABULARY, [INDEX, INDEX])
    for wrong in ([A, VOCABULARY.size], [A, -1], [A, 1.0], [A, True], np.array([A, 2**63], np.uint64)):
        with pytest.raises(TokenIdError):
            batch.advance(wrong)
        with pytest.raises(TokenIdError):
            batch.advance_many([[each] for each in wrong])
    assert [len(batch.guide(row).path()) for row in range(2)] == [1, 1]  # type: ignore[union-attr]
    # What stands behind the tokens that count is padding, whatever it is.
    assert batch.advance_many([[A, -1], [-100, -100]], [1, 0]).tolist() == [1, 0]


def test_an_id_that_is_refused_is_false_everywhere() -> None:
    guide, batch = sg.Guide(INDEX), sg.GuideBatch(VOCABULARY, [INDEX])
    assert not guide.advance(ord("c"))
    assert not guide.allows(ord("c"))
    assert not batch.advance([ord("c")])[0]
    assert batch.advance_many([[ord("c")]])[0] == 0
    assert not batch.draft([ord("c")], [-1], [0]).accepted[0]


def calls_of_sizes() -> dict[str, tuple[Callable[[Any], Any], type[Exception]]]:
    guide, batch, events = sg.Guide(INDEX), sg.GuideBatch(VOCABULARY, [INDEX]), JsonEvents()
    guide.advance(A)
    batch.advance([A])
    events.feed(b"[1")
    return {
        "Guide.rollback": (guide.rollback, RollbackError),
        "GuideBatch.rollback": (batch.rollback, RollbackError),
        "GuideBatch.rollback, by row": (lambda n: batch.rollback([n]), RollbackError),
        "JsonEvents.rollback": (events.rollback, RollbackError),
        "Guide.max_rollback": (lambda n: sg.Guide(INDEX, max_rollback=n), RollbackError),
        "GuideBatch.max_rollback": (lambda n: sg.GuideBatch(VOCABULARY, max_rollback=n), RollbackError),
        "JsonEvents.max_rollback": (lambda n: JsonEvents(max_rollback=n), RollbackError),
        "Guide.max_tokens": (lambda n: sg.Guide(INDEX, max_tokens=n), TokenBudgetError),
        "GuideBatch.max_tokens": (lambda n: batch.add(INDEX, max_tokens=n), TokenBudgetError),
        "GuideBatch.max_tokens, without a definition": (lambda n: batch.add(None, max_tokens=n), TokenBudgetError),
        "GuideBatch.row": (batch.index, BatchError),
        "GuideBatch.guide": (batch.guide, BatchError),
        "GuideBatch.remove": (lambda n: batch.remove([n]), BatchError),
        "GuideBatch.reorder": (lambda n: batch.reorder([n]), BatchError),
        "JsonEvents.skip": (lambda n: JsonEvents(skip=n), ArgumentError),
        "heal": (lambda n: heal([A], VOCABULARY, INDEX, max_tokens=n), ArgumentError),
        "allocate_bitmask": (lambda n: sg.allocate_bitmask(n, 5), BitmaskError),
        "allocate_bitmask, width": (lambda n: sg.allocate_bitmask(1, n), BitmaskError),
        "unpack": (lambda n: unpack(sg.allocate_bitmask(1, 5), n), BitmaskError),
        "Vocabulary.size": (lambda n: sg.Vocabulary.from_bytes([b"a", None], [1], size=n), WrongVocabulary),
        "Vocabulary.eos_ids": (lambda n: sg.Vocabulary.from_bytes([b"a", None], [n]), WrongVocabulary),
        "Vocabulary.ids": (lambda n: sg.Vocabulary.from_bytes({n: b"a"}, [1]), WrongVocabulary),
        "Vocabulary.special_tokens": (
            lambda n: sg.Vocabulary.from_bytes([b"a", None], [1], special_tokens={"<x>": n}),
            WrongVocabulary,
        ),
    }


CALLS_OF_SIZES = calls_of_sizes()

#: Where None stands for all of them, or none.
NONE_MEANS = ("max_rollback", "max_tokens", "Vocabulary.size")


def is_size(name: str, wrong: Any) -> bool:
    """Whether a call can do with what is otherwise wrong, or cannot be made with it at all."""
    return (
        (wrong is None and any(each in name for each in NONE_MEANS))
        or (name.endswith("without a definition") and wrong == -1)  # such a row has no limit
        or (name == "GuideBatch.rollback" and isinstance(wrong, list))  # one for each row
        or (name == "Vocabulary.ids" and isinstance(wrong, list | dict))  # no key of a mapping
    )


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        pytest.param(name, wrong, id=f"{wrong!r}-{name}")
        for wrong in [*NO_NUMBERS, -1]
        for name in CALLS_OF_SIZES
        if not is_size(name, wrong)
    ],
)
def test_sizes(name: str, wrong: Any) -> None:
    call, error = CALLS_OF_SIZES[name]
    with pytest.raises((error, BatchError) if isinstance(wrong, list | tuple) else error):
        call(wrong)


def test_rows_of_a_batch() -> None:
    batch = sg.GuideBatch(VOCABULARY, [INDEX, INDEX])
    wrongs: list[Any] = [[0.0], [True], ["0"], [None], [2], [-1], [1 << 63], [[0]], np.array([0.5]), np.array([True])]
    for wrong in wrongs:
        for call in (batch.remove, batch.reorder, batch.reset, lambda rows: batch.advance([A], rows)):
            with pytest.raises(BatchError):
                call(wrong)
    with pytest.raises(BatchError):
        batch.rollback([0, 0, 0])
    with pytest.raises(BatchError):
        batch.advance([[A, A], [A]])
    with pytest.raises(BatchError):
        batch.advance_many([[A, A], [A]])
    for above in ([-1, 1], [1, -1], [0, 0], [-2, 0]):  # a cycle, a later one, itself, nowhere
        with pytest.raises(BatchError):
            batch.draft([A, A], above, [0, 0])
    assert len(batch) == 2


# -- memory ---------------------------------------------------------------------------------------------


def overlapping(shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any = np.int32, *, owned: bool = False) -> Any:
    """A view of an array, or an array that owns its memory."""
    if owned:
        return np.ndarray(shape, dtype, strides=strides)
    return np.lib.stride_tricks.as_strided(np.zeros(4096, dtype), shape, strides, writeable=True)


def test_elements_that_share_memory_are_told() -> None:
    """Against the plain way: how many places are there."""
    chance = np.random.default_rng(1)
    for _ in range(3000):
        shape = tuple(chance.integers(0, 5, chance.integers(1, 4)).tolist())
        strides = tuple((4 * chance.integers(-7, 30, len(shape))).tolist())
        places = np.zeros(shape, np.int64)
        for axis, stride in enumerate(strides):
            places += (np.arange(shape[axis]) * stride).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        shared = len(np.unique(places)) < places.size
        assert overlaps(shape, strides, 4) or not shared or not places.size
    assert not overlaps((3, 4), (16, 4), 4)
    assert not overlaps((3, 4), (4, 12), 4)
    assert not overlaps((3, 4), (-16, -4), 4)
    assert not overlaps((1, 4), (0, 4), 4)
    assert not overlaps((3, 2), (40, 20), 4)
    assert overlaps((4,), (2,), 4)


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize("place", ["words", "half words", "rows"])
def test_bitmasks_that_share_memory_are_refused(place: str, owned: bool) -> None:
    words, guide, batch = VOCABULARY.words, sg.Guide(INDEX), sg.GuideBatch(VOCABULARY, [INDEX, INDEX])
    inner = {"words": 0, "half words": 2, "rows": 4}[place]
    masks = overlapping((2, words), (4 if place == "rows" else 4 * words, inner), owned=owned)
    for call in (batch.fill_bitmask, lambda masks: fill_batch([guide, guide], masks)):
        with pytest.raises(BitmaskError, match="share memory"):
            call(masks)
    if place != "rows":
        with pytest.raises(BitmaskError, match="share memory"):
            guide.fill_bitmask(overlapping((words,), (inner,), owned=owned))
        with pytest.raises(BitmaskError, match="share memory"):
            Matcher(INDEX).fill(masks, 0)


def test_bitmasks_with_any_strides_are_filled() -> None:
    words, guide = VOCABULARY.words, sg.Guide(INDEX)
    for strided in (
        np.zeros(3 * words, np.int32)[::3],
        np.zeros(words, np.int32)[::-1],
        np.zeros((words, 2), np.int32)[:, 1],
        np.zeros((words, 2), np.int32, "F")[:, 1],
    ):
        guide.fill_bitmask(strided)
        assert np.array_equal(strided, guide.bitmask())


@pytest.mark.parametrize("owned", [False, True])
@pytest.mark.parametrize(
    ("shape", "strides"), [((64,), (0,)), ((64,), (2,)), ((2, 64), (0, 4)), ((2, 64), (4, 0)), ((2, 64), (4, 4))]
)
def test_array_logits_that_share_memory_are_refused(
    shape: tuple[int, ...], strides: tuple[int, ...], owned: bool
) -> None:
    mask = np.zeros(2, np.int32)
    with pytest.raises(BitmaskError, match="share memory"):
        sg.apply_bitmask(overlapping(shape, strides, np.float32, owned=owned), mask)
    logits = np.zeros(64, np.float32)
    with pytest.raises(BitmaskError, match="share memory"):
        sg.apply_bitmask(logits, logits.view(np.int32)[:2])


def test_array_logits_of_subclasses_are_masked() -> None:
    mask = np.array([5, 0], np.int32)
    wanted = np.where(np.isin(np.arange(64), (0, 2)), 1, -np.inf).astype(np.float32)
    masked = np.ma.masked_array(np.ones(64, np.float32), True)  # type: ignore[no-untyped-call]
    for logits in (np.ones((1, 64), np.float32).view(np.matrix), masked):
        sg.apply_bitmask(logits, mask)
        assert np.array_equal(np.asarray(logits).reshape(-1), wanted)


@pytest.mark.parametrize("wrong", [*(w for w in NO_NUMBERS if not isinstance(w, float)), float("nan"), 0, -1])
@pytest.mark.parametrize("name", ["states", "memory", "seconds", "depth"])
def test_budgets(name: str, wrong: Any) -> None:
    with pytest.raises(ArgumentError):
        sg.Budget(**{name: wrong})


def test_definitions_of_other_types() -> None:
    for flags in ("2", 1.0, True, None):
        with pytest.raises(sg.errors.DefinitionError):
            sg.Regex("a", flags)  # type: ignore[arg-type]
    for words in ("ab", b"ab", 3, None, [1], ["a", None], {1: 2}):
        with pytest.raises(sg.errors.DefinitionError):
            sg.Regex.choice(words)  # type: ignore[arg-type]


def test_a_number_is_no_path_of_an_index() -> None:
    """It would be a file that somebody has open, and be closed."""
    with pytest.raises(TypeError):
        sg.Index.load(1)  # type: ignore[arg-type]
    with pytest.raises(sg.errors.FormatError):
        sg.Index.load("a\0b")


@pytest.mark.parametrize("many", [1 << 62, 1 << 63, 10**30])
def test_more_tokens_than_can_be_counted(many: int) -> None:
    batch = sg.GuideBatch(VOCABULARY, [INDEX])
    batch.add(INDEX, max_tokens=many)
    batch.add(sg.Guide(INDEX, max_tokens=many))
    assert batch.advance([A] * 3).all()
    assert np.array_equal(batch.bitmask()[0], batch.bitmask()[1])
    batch.rollback(1)
    assert batch.guide(1).advance(A)  # type: ignore[union-attr]
