"""Masks on logits by their type, against `unpack` and ``numpy.where``; tensors alone: `test_tensor_masks`."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from fakes.fake_mlx import CONTENT
from fakes.fake_modules import fake_modules

import structgen as sg
from structgen.errors import BitmaskError
from structgen.runtime.logits.masks import LAST_RESORT, apply_bitmask, revive_row
from structgen.runtime.rows.bitmask import pack, unpack

#: Libraries of logits, and the backends that take them where they are on the CPU.
TAKEN = {"numpy": {"kernel"}, "torch": {"kernel", "torch"}, "mlx": {"mlx"}}


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
    for dtype in (np.float64, np.dtype(np.float32).newbyteorder(), np.complex64, object):
        with pytest.raises(BitmaskError, match="logits are float32 or float16"):
            apply_bitmask(np.zeros(40, dtype), mask)
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
        assert revive_row(scores, mask) == dead
        assert np.array_equal(scores, expected, equal_nan=True)
    assert np.isfinite(np.array(LAST_RESORT, np.float16) / np.float16(0.02))


# -- dispatch -------------------------------------------------------------------------------------------------


def logits_of(library: str, values: Any) -> Any:
    """Logits of a library; of MLX, where it is not installed, with a stand-in."""
    if library == "numpy":
        return np.array(values)
    if library == "torch":
        return pytest.importorskip("torch").from_numpy(np.array(values))
    return import_module("mlx.core").array(values)


@pytest.fixture(params=TAKEN)
def library(request: pytest.FixtureRequest) -> Any:
    with fake_modules({"mlx": {}, "mlx.core": CONTENT}):
        yield request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_each_library_gives_the_same(library: str, dtype: Any) -> None:
    random = np.random.default_rng(2)
    for width, words in ((270, 9), (333, 9), (31, 1), (64, 2), (64, 1)):
        before = random.standard_normal((4, width)).astype(dtype)
        masks = random.integers(-(2**31), 2**31, (4, words), np.int64).astype(np.int32)
        for logits, mask, rows in (
            (before, masks, None), (before, masks[0], None), (before[0], masks[0], None), (before[:0], masks[:0], []),
            (before[0], masks[:1], None), (before[0], masks[0], [0]), (before[:1], masks[:1], None),
            (before, masks[:2], [3, 1]), (before, masks[2], (0, 2)), (before, masks[:1], np.array([2])),
            (before, masks[:0], []), (before, masks, [3, 2, 1, 0]),
        ):  # fmt: skip
            expected = logits.copy()
            for i, row in enumerate(range(len(np.atleast_2d(logits))) if rows is None else rows):
                bits = np.zeros(width, np.bool_)
                covered = min(width, 32 * words)
                bits[:covered] = unpack(mask if mask.ndim == 1 else mask[i], covered)
                np.atleast_2d(expected)[row][~bits] = -np.inf
            for backend in (None, *TAKEN[library]):
                given = logits_of(library, logits)
                found = sg.apply_bitmask(given, mask, rows=rows, backend=backend)  # type: ignore[arg-type]
                assert (found is given) == (library != "mlx")
                assert type(found) is type(given)
                assert np.asarray(found).dtype == dtype
                assert np.array_equal(np.asarray(found), expected)
                assert np.array_equal(np.asarray(given), logits if library == "mlx" else expected)


def test_a_backend_that_does_not_fit_is_refused(library: str) -> None:
    logits, mask = logits_of(library, np.zeros((2, 40), np.float32)), np.zeros(2, np.int32)
    for backend in {"kernel", "torch", "triton", "mlx"} - TAKEN[library]:
        with pytest.raises(BitmaskError, match=f"no such backend takes .*float32.*backend='{backend}'") as refused:
            sg.apply_bitmask(logits, mask, backend=backend)  # type: ignore[arg-type]
        assert refused.value.remedy == f"Use {', '.join(sorted(TAKEN[library]))}, or None."
    for wrong in ("auto", "KERNEL", "numpy", "", 1, ["kernel"], True):
        with pytest.raises(BitmaskError, match="no such backend") as refused:
            sg.apply_bitmask(logits, mask, backend=wrong)  # type: ignore[arg-type]
        assert refused.value.where == f"backend={wrong!r}"
    assert (np.asarray(logits) == 0).all()


def test_what_no_library_takes_is_refused(library: str) -> None:
    def of(*shape: int, dtype: Any = np.float32) -> Any:
        return logits_of(library, np.zeros(shape, dtype))

    for logits, mask, rows, message in (
        (of(40, dtype=np.int32), np.zeros(2, np.int32), None, r"int32.*\[40\]"),
        (of(1, 1, 40), np.zeros(2, np.int32), None, r"\[1, 1, 40\]"),
        (of(40), np.zeros(2, np.int64), None, "int64"),
        (of(40), [0, 0], None, "got list"),
        (of(40), np.zeros((1, 1, 2), np.int32), None, r"\[1, 1, 2\]"),
        (of(40), np.zeros((3, 2), np.int32), None, r"3 rows of bitmask for 1 rows .* \(row 1 has no logits\)"),
        (of(40), np.zeros(2, np.int32), [1], r"have 1 rows \(row 1\)"),
        (of(32), np.zeros(2, np.int32), None, "2 words, logits of width 32 need 1"),
        (of(3, 40), np.zeros((2, 2), np.int32), None, r"2 rows of bitmask for 3 rows .* \(row 2 has no bitmask\)"),
        (of(3, 40), np.zeros((2, 2), np.int32), [1], r"2 rows of bitmask for 1 rows .* \(row 1 has no logits\)"),
        (of(3, 40), np.zeros((2, 2), np.int32), [1, 3], r"have 3 rows \(row 3\)"),
        (of(3, 40), np.zeros((2, 2), np.int32), [1, -1], r"row -1"),
        (of(3, 40), np.zeros((2, 2), np.int32), [1, 1], "named twice"),
        (of(3, 40), np.zeros((2, 2), np.int32), [1.0, 2.0], "rows are integers"),
        (of(3, 40), np.zeros((3, 2), np.int32), [True, False, True], "rows are integers"),
    ):
        with pytest.raises(BitmaskError, match=message):
            sg.apply_bitmask(logits, mask, rows=rows)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "logits", [[0.0]], (0.0,), np.float32(0), b"logits"], ids=repr)
def test_what_is_no_array_is_refused(wrong: Any) -> None:
    with pytest.raises(BitmaskError, match="a NumPy array, a torch tensor or an MLX array, got"):
        sg.apply_bitmask(wrong, np.zeros(1, np.int32))


def test_neither_torch_nor_mlx_is_loaded_for_numpy() -> None:
    code = (
        "import sys, numpy as np, structgen as sg\n"
        "assert 'structgen.runtime.logits.masks' not in sys.modules\n"
        "mask = sg.allocate_bitmask(2, 40)\n"
        "assert (sg.apply_bitmask(np.zeros((2, 40), np.float32), mask, rows=[1, 0]) == -np.inf).all()\n"
        "try: sg.apply_bitmask([0.0], mask)\n"
        "except sg.errors.BitmaskError: pass\n"
        "print([name for name in ('torch', 'mlx', 'transformers', 'triton') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_arrays_while_another_thread_loads_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is in `sys.modules` before its names are."""
    monkeypatch.setitem(sys.modules, "torch", type(sys)("torch"))
    logits = np.zeros(40, np.float32)
    assert sg.apply_bitmask(logits, np.zeros(2, np.int32)) is logits
    with pytest.raises(BitmaskError, match="got list"):
        sg.apply_bitmask([0.0], np.zeros(1, np.int32))
