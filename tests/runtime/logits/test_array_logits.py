"""Masks on NumPy logits, against `unpack` and ``numpy.where``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structgen.errors import BitmaskError
from structgen.runtime.logits.array_logits import LAST_RESORT, apply_bitmask, revive
from structgen.runtime.rows.bitmask import pack, unpack


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("width", [1, 31, 32, 33, 280, 333])
def test_disallowed_logits_become_minus_infinity(width: int, dtype: Any) -> None:
    random = np.random.default_rng(width)
    for words in {min(-(-width // 32), 9), 1}:
        for batch in (None, 1, 3):
            shape = (width,) if batch is None else (batch, width)
            logits = random.standard_normal(shape).astype(dtype)
            logits.flat[0] = np.nan
            strided = np.repeat(logits, 2, axis=-1)[..., ::2]
            masks = random.integers(-(2**31), 2**31, (words,) if batch is None else (batch, words), np.int64)
            mask = masks.astype(np.int32)
            covered = min(width, 32 * words)
            keep = np.zeros(shape, np.bool_)
            keep[..., :covered] = unpack(mask, covered)
            expected = np.where(keep, logits, np.array(-np.inf, dtype))
            for array in (logits, strided):
                apply_bitmask(array, mask)
                assert np.array_equal(array, expected, equal_nan=True)


def test_one_mask_for_all_rows() -> None:
    logits = np.zeros((3, 40), np.float32)
    apply_bitmask(logits, np.array([5, 0], np.int32))
    assert [np.flatnonzero(np.isfinite(row)).tolist() for row in logits] == [[0, 2]] * 3


def test_refusals() -> None:
    mask = np.zeros(2, np.int32)
    for logits, message in (
        (np.zeros(40), "float64"),
        (np.zeros((1, 1, 40), np.float32), r"float32\[1, 1, 40\]"),
        ([0.0], "got list"),
        (np.zeros(32, np.float32), "2 words, logits of width 32 need 1"),
    ):
        with pytest.raises(BitmaskError, match=message):
            apply_bitmask(logits, mask)  # type: ignore[arg-type]
    with pytest.raises(BitmaskError, match="int64"):
        apply_bitmask(np.zeros(40, np.float32), np.zeros(2, np.int64))  # type: ignore[arg-type]
    with pytest.raises(BitmaskError, match="2 rows of bitmask for 3 rows"):
        apply_bitmask(np.zeros((3, 40), np.float32), np.zeros((2, 2), np.int32))
    frozen = np.zeros(40, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(BitmaskError, match="read-only"):
        apply_bitmask(frozen, mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_others_forbid_is_allowed_where_nothing_else_is(dtype: Any) -> None:
    random = np.random.default_rng(3)
    for case in range(300):
        width = int(random.integers(1, 300))
        allowed = random.random(width) < random.choice([0, 0.02, 0.5])
        forbidden = random.random(width) < random.choice([0.1, 0.9, 1])
        scores = np.where(forbidden, -np.inf, random.standard_normal(width)).astype(dtype)
        if case % 7 == 0:
            scores[0] = np.nan
        mask = pack(allowed)
        apply_bitmask(scores, mask)
        dead = bool(allowed.any()) and bool((scores == -np.inf).all())
        expected = np.where(allowed, LAST_RESORT, -np.inf).astype(dtype) if dead else scores.copy()
        assert revive(scores, mask) == dead
        assert np.array_equal(scores, expected, equal_nan=True)
    assert np.isfinite(np.array(LAST_RESORT, np.float16) / np.float16(0.02))
