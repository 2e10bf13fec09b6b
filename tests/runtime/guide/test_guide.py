"""The guide's interface: its words, its edges, its errors."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from judges.naive import allowed_tokens, small_vocabulary

import structgen as sg

VOCABULARY = small_vocabulary()
A, B = ord("a"), ord("b")
EOS = VOCABULARY.eos_ids[0]


@pytest.fixture
def guide() -> sg.Guide:
    return sg.Guide(sg.compile(sg.Regex("a+b"), VOCABULARY))


def test_advance_refuses_and_keeps_the_state(guide: sg.Guide) -> None:
    assert not guide.advance(B)
    assert guide.advance(A)
    assert not guide.advance(EOS)
    assert guide.advance(B)
    assert guide.is_accepting()
    assert not guide.is_finished()


def test_state_after_eos(guide: sg.Guide) -> None:
    for token in (A, B, EOS):
        assert guide.advance(token)
    assert guide.is_finished()
    assert guide.is_accepting()
    assert allowed_tokens(guide.bitmask(), VOCABULARY.size) == set(VOCABULARY.eos_ids)
    assert guide.advance(VOCABULARY.eos_ids[1])
    assert not guide.advance(A)
    assert guide.is_finished()
    guide.rollback(2)
    assert not guide.is_finished()
    assert guide.is_accepting()


def test_rollback_fork_reset(guide: sg.Guide) -> None:
    guide.advance(A)
    twin = guide.fork()
    guide.advance(B)
    assert not twin.is_accepting()
    assert twin.advance(A)
    guide.rollback(1)
    assert guide.advance(A)
    guide.rollback(0)
    guide.rollback(2)
    assert not guide.allows(B)
    with pytest.raises(sg.errors.RollbackError, match="0 were accepted"):
        guide.rollback(1)
    with pytest.raises(sg.errors.RollbackError):
        guide.rollback(-1)
    twin.reset()
    with pytest.raises(sg.errors.RollbackError):
        twin.rollback(1)
    assert twin.allows(A)


def test_rollback_past_the_beginning_changes_nothing(guide: sg.Guide) -> None:
    guide.advance(A)
    with pytest.raises(sg.errors.RollbackError):
        guide.rollback(2)
    assert guide.allows(B)


def test_long_histories_are_freed_without_recursion() -> None:
    guide = sg.Guide(sg.compile(sg.Regex("a*"), VOCABULARY))
    for _ in range(300_000):
        guide.advance(A)
    guide.rollback(299_999)
    del guide
    gc.collect()


@pytest.mark.parametrize("extra", [0, 1, 7])
def test_fill_bitmask_clears_the_tail(guide: sg.Guide, extra: int) -> None:
    bitmask = np.full(VOCABULARY.words + extra, -1, np.int32)
    guide.fill_bitmask(bitmask)
    np.testing.assert_array_equal(bitmask[: VOCABULARY.words], guide.bitmask())
    assert not bitmask[VOCABULARY.words :].any()


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros(VOCABULARY.words, np.int64),
        np.zeros(VOCABULARY.words - 1, np.int32),
        np.zeros((2, VOCABULARY.words), np.int32),
        np.zeros((VOCABULARY.words, 2), np.int32),
        np.zeros(VOCABULARY.words, ">i4"),
        np.zeros((), np.int32),
        [0] * VOCABULARY.words,
        None,
    ],
)
def test_a_wrong_bitmask_is_an_error(guide: sg.Guide, wrong: object) -> None:
    for each in each_kind(guide):
        with pytest.raises(sg.errors.BitmaskError):
            each.fill_bitmask(wrong)


def each_kind(guide: sg.Guide) -> list[sg.Guide]:
    """A guide, and guides that write masks by other ways."""
    definitions = sg.JsonSchema({"type": "integer"}), sg.Grammar('start: "a"+', lexer="basic")
    ended = guide.fork()
    assert all(map(ended.advance, (A, B, EOS)))
    others = [sg.Guide(sg.compile(each, VOCABULARY, eager=False)) for each in definitions]
    return [guide, ended, sg.Guide(guide.index, max_tokens=9), *others]


def test_a_read_only_bitmask_is_an_error(guide: sg.Guide) -> None:
    bitmask = np.zeros(VOCABULARY.words, np.int32)
    bitmask.flags.writeable = False
    for each in each_kind(guide):
        with pytest.raises(sg.errors.BitmaskError, match="read-only"):
            each.fill_bitmask(bitmask)


def test_a_bitmask_with_gaps(guide: sg.Guide) -> None:
    for each in each_kind(guide):
        bitmask = np.full((VOCABULARY.words, 3), -1, np.int32)
        each.fill_bitmask(bitmask[:, 1])
        np.testing.assert_array_equal(bitmask[:, 1], each.bitmask())
        assert (bitmask[:, 0] == -1).all()


def test_fill_bitmask_takes_torch_tensors(guide: sg.Guide) -> None:
    torch = pytest.importorskip("torch")
    bitmask = torch.full((VOCABULARY.words + 2,), -1, dtype=torch.int32)
    guide.fill_bitmask(bitmask)
    np.testing.assert_array_equal(bitmask.numpy()[: VOCABULARY.words], guide.bitmask())
    with pytest.raises(sg.errors.BitmaskError):
        guide.fill_bitmask(torch.zeros(VOCABULARY.words, dtype=torch.int32, device="meta"))


def test_the_row_cannot_be_written(guide: sg.Guide) -> None:
    row = guide.bitmask()
    with pytest.raises(ValueError, match="read-only"):
        row[0] = 0


@pytest.mark.parametrize("token_id", [-1, VOCABULARY.size, 1 << 40])
def test_token_ids_out_of_range(guide: sg.Guide, token_id: int) -> None:
    for method in (guide.advance, guide.allows):
        with pytest.raises(sg.errors.TokenIdError, match="outside"):
            method(token_id)


def test_token_ids_of_other_integer_types(guide: sg.Guide) -> None:
    assert guide.allows(np.int64(A))  # type: ignore[arg-type]
    assert guide.advance(np.int32(A))  # type: ignore[arg-type]


def test_special_tokens_are_never_allowed() -> None:
    guide = sg.Guide(sg.compile(sg.Regex(r"(?s).*"), VOCABULARY))
    special = [t for t in range(VOCABULARY.size) if VOCABULARY.token(t) is None and t not in VOCABULARY.eos_ids]
    assert special
    assert not any(guide.allows(t) or guide.advance(t) for t in special)


def test_repr_says_where_it_is(guide: sg.Guide) -> None:
    assert "open" in repr(guide)
    assert '"a+b"' in repr(guide)


def test_a_bound_on_what_is_remembered() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", None], eos_ids=[2])
    index = sg.compile(sg.Regex("(a|b)*"), vocabulary)
    guide = sg.Guide(index, max_rollback=3)
    for _ in range(1000):
        assert guide.advance(0)
        guide.rollback(1)
        assert guide.advance(1)
    assert 3 <= len(guide._configs) <= 131
    twin = guide.fork()
    guide.rollback(3)
    assert guide.advance(0)
    with pytest.raises(sg.errors.RollbackError, match="were accepted or are remembered"):
        twin.rollback(132)
    twin.rollback(3)
    none = sg.Guide(index, max_rollback=0)
    assert none.advance(0)
    with pytest.raises(sg.errors.RollbackError, match="max_rollback is -1"):
        sg.Guide(index, max_rollback=-1)


def test_no_step_imports_a_module(tmp_path: Path) -> None:
    """Not in a process that has just opened a file either, nor where lists of nodes are read: `np.unique` and its like
    import 7 ms of NumPy."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "string", "maxLength": 300}}}
    text = '{"a": 1, "ab": "x", "c": [true, {"d": null}]}'
    sg.compile(sg.JsonSchema(schema), VOCABULARY, eager=True).save(tmp_path / "index")
    code = f"""
import sys
import numpy as np
import structgen as sg
from judges.naive import small_vocabulary
from structgen.runtime.rows.residuals import _checked

vocabulary = small_vocabulary()
guide = sg.Guide(sg.Index.load({str(tmp_path / "index")!r}, vocabulary))
before = {{*sys.modules}}
for byte in {text.encode()!r}:
    assert guide.bitmask().any() and guide.advance(byte)
assert guide.is_accepting()
_checked(np.array([0, 2, 3]), np.array([1, 2, 1], np.int32), vocabulary, "a file")
assert not {{*sys.modules}} - before, {{*sys.modules}} - before
"""
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True, cwd=Path(__file__).parents[2])
