"""`apply_bitmask`: every dtype, shape and way gives what a plain loop gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from structgen.errors import BitmaskError  # noqa: E402
from structgen.runtime.logits.masks import LAST_RESORT, apply_bitmask, apply_masks, revive, revive_all  # noqa: E402
from structgen.runtime.rows.bitmask import pack  # noqa: E402

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
DEVICES = ["cpu"]
DEVICES += ["cuda"] if torch.cuda.is_available() else []
DEVICES += ["mps"] if torch.backends.mps.is_available() else []


def random_case(batch: int, width: int, bits: int, dtype: Any = torch.float32, seed: int = 0) -> tuple[Any, Any]:
    """Logits ``[batch, width]`` with infinities and NaNs among them, and booleans ``[batch, bits]``."""
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(size=(batch, width)).astype(np.float32)).to(dtype)
    for i, odd in enumerate((float("inf"), float("-inf"), float("nan"), 0.0, -0.0)):
        logits[:, i::11] = odd
    return logits, rng.random((batch, bits)) < 0.5


def naive(logits: Any, allowed: Any, rows: list[int]) -> Any:
    """What `apply_bitmask` is for: row ``rows[i]`` keeps the logits that row ``i`` of ``allowed`` names."""
    expected = logits.clone()
    for bits, row in zip(allowed, rows, strict=True):
        for t in range(logits.shape[1]):
            if t >= len(bits) or not bits[t]:
                expected[row, t] = float("-inf")
    return expected


def assert_same(found: Any, expected: Any) -> None:
    """Equal bit for bit: NaNs that are kept stay what they were, and -0.0 is not 0.0."""
    integers = torch.int32 if expected.dtype == torch.float32 else torch.int16
    assert found.dtype == expected.dtype
    assert torch.equal(found.cpu().view(integers), expected.view(integers))


# (width of the logits, bits of the bitmask): equal, padded to a word, padded beyond, one bit, word borders
SHAPES = [(270, 270), (288, 270), (333, 270), (1, 1), (31, 31), (32, 32), (33, 33), (1000, 1)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("width", "bits"), SHAPES)
def test_a_batch(width: int, bits: int, dtype: Any, device: str) -> None:
    logits, allowed = random_case(3, width, bits, dtype)
    expected = naive(logits, allowed, [0, 1, 2])
    bitmask = pack(allowed)
    for given in (bitmask, torch.from_numpy(bitmask), torch.from_numpy(bitmask).to(device)):
        found = logits.to(device, copy=True)
        apply_bitmask(found, given)
        assert_same(found, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("width", "bits"), SHAPES)
def test_the_way_for_accelerators_on_the_cpu(width: int, bits: int, dtype: Any) -> None:
    logits, allowed = random_case(3, width, bits, dtype)
    expected = naive(logits, allowed, [0, 1, 2])
    assert apply_bitmask(logits, torch.from_numpy(pack(allowed)), backend="torch") is logits
    assert_same(logits, expected)


@pytest.mark.parametrize("device", DEVICES)
def test_one_row(device: str) -> None:
    logits, allowed = random_case(1, 333, 270)
    expected = naive(logits, allowed, [0])
    found = logits[0].to(device, copy=True)
    apply_bitmask(found, pack(allowed[0]))
    assert_same(found, expected[0])


@pytest.mark.parametrize("device", DEVICES)
def test_one_bitmask_for_every_row(device: str) -> None:
    logits, allowed = random_case(4, 100, 100)
    expected = naive(logits, [allowed[0]] * 4, [0, 1, 2, 3])
    found = logits.to(device, copy=True)
    apply_bitmask(found, pack(allowed[0]))
    assert_same(found, expected)


@pytest.mark.parametrize("word", [0, -1, 1, -(1 << 31), (1 << 31) - 1, -2])
def test_sign_bits(word: int) -> None:
    allowed = [word >> t & 1 for t in range(32)]
    expected = [0.0 if bit else float("-inf") for bit in allowed]
    for backend in ("kernel", "torch"):
        logits = torch.zeros(32)
        apply_bitmask(logits, torch.tensor([word], dtype=torch.int32), backend=backend)
        assert logits.tolist() == expected


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows(dtype: Any, device: str) -> None:
    logits, allowed = random_case(5, 333, 270, dtype)
    some = allowed[:2]
    expected = naive(logits, some, [3, 1])
    for rows in ([3, 1], (3, 1), torch.tensor([3, 1]), torch.tensor([3, 1], device=device)):
        found = logits.to(device, copy=True)
        apply_bitmask(found, pack(some), rows=rows)
        assert_same(found, expected)


def test_rows_that_share_one_bitmask() -> None:
    logits, allowed = random_case(3, 64, 64)
    expected = naive(logits, [allowed[0]] * 2, [2, 0])
    apply_bitmask(logits, pack(allowed[0]), rows=[2, 0])
    assert_same(logits, expected)


def test_no_rows_at_all() -> None:
    logits, _ = random_case(3, 64, 64)
    expected = logits.clone()
    apply_bitmask(logits, np.zeros((0, 2), np.int32), rows=[])
    assert_same(logits, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [None, [1, 0, 2]])
def test_strided_logits(dtype: Any, device: str, rows: list[int] | None) -> None:
    logits, allowed = random_case(3, 150, 140, dtype)
    expected = naive(logits, allowed, rows or [0, 1, 2])
    columns = torch.full((150, 3), 7.0, dtype=dtype, device=device)
    columns.copy_(logits.T)
    every_other = torch.full((3, 300), 7.0, dtype=dtype, device=device)
    every_other[:, ::2] = logits.to(device)
    for found in (columns.T, every_other[:, ::2]):
        assert not found.is_contiguous()
        apply_bitmask(found, pack(allowed), rows=rows)
        assert_same(found.contiguous(), expected)
    assert (every_other[:, 1::2] == 7.0).all()


def test_bitmasks_that_are_read_only_or_strided() -> None:
    logits, allowed = random_case(2, 270, 270)
    expected = naive(logits, allowed, [0, 1])
    frozen = pack(allowed)
    frozen.flags.writeable = False
    wide = np.zeros((2, 18), np.int32)
    wide[:, ::2] = frozen
    for bitmask in (frozen, wide[:, ::2], torch.from_numpy(wide)[:, ::2]):
        found = logits.clone()
        apply_bitmask(found, bitmask)
        assert_same(found, expected)


def test_a_real_width_against_llguidance() -> None:
    reason = "the layout's other implementation is not installed"
    other = pytest.importorskip("llguidance.torch", reason=reason)
    logits, allowed = random_case(2, 128_320, 128_256)
    bitmask = torch.from_numpy(pack(allowed))
    expected = logits.clone()
    with torch.compiler.set_stance("force_eager"):
        other.apply_token_bitmask_inplace(expected, bitmask)
    apply_bitmask(logits, bitmask)
    assert_same(logits, expected)


# -- without the host -------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [False, True])
def test_nothing_depends_on_the_data(rows: bool) -> None:
    """On the meta device any read of a value, and any shape that depends on one, raises."""
    logits = torch.empty((4, 333), dtype=torch.bfloat16, device="meta")
    bitmask = torch.empty((2 if rows else 4, 9), dtype=torch.int32, device="meta")
    apply_bitmask(logits, bitmask, rows=torch.empty(2, dtype=torch.int64, device="meta") if rows else None)
    assert logits.shape == (4, 333)


@pytest.mark.parametrize("rows", [False, True])
def test_it_compiles_without_a_graph_break(rows: bool) -> None:
    def step(logits: Any, bitmask: Any, chosen: Any) -> Any:
        logits = logits * 2
        return apply_bitmask(logits, bitmask, rows=chosen)

    logits, allowed = random_case(3, 333, 270)
    chosen = [2, 0] if rows else None
    allowed = allowed[:2] if rows else allowed
    expected = naive(logits * 2, allowed, chosen or [0, 1, 2])
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    bitmask = torch.from_numpy(pack(allowed))
    found = compiled(logits, bitmask, torch.tensor(chosen) if chosen else None)
    assert_same(found, expected)


def test_the_kernel_and_triton_stay_out_of_compiled_code() -> None:
    for name in ("kernel", "triton"):
        step = torch.compile(lambda x, name=name: apply_bitmask(x, MASK, backend=name), backend="eager")
        with pytest.raises(Exception, match="no such backend"):
            step(LOGITS.clone())


@pytest.mark.parametrize("backend", ["kernel", "triton"])
def test_backends_of_other_devices_are_refused(backend: Any) -> None:
    logits = torch.zeros((3, 64), device="meta")
    with pytest.raises(BitmaskError, match=r"no such backend takes float32\[3, 64\] on meta"):
        apply_bitmask(logits, MASK, backend=backend)


# -- refusals ---------------------------------------------------------------------------------------------

LOGITS = torch.zeros((3, 64))
MASK = torch.zeros((3, 2), dtype=torch.int32)

REFUSED: list[tuple[str, Any, Any, Any]] = [
    (r"got float64\[3, 64\]", LOGITS.double(), MASK, None),
    (r"got int64\[3, 64\]", LOGITS.long(), MASK, None),
    (r"got float32\[1, 3, 64\]", LOGITS[None], MASK, None),
    (r"a NumPy int32\[words\] .* got int32\[3, 2\]", LOGITS.numpy(), MASK, None),
    (r"got int64\[3, 2\]", LOGITS, MASK.long(), None),
    (r"got uint32\[3, 2\]", LOGITS, MASK.numpy().view(np.uint32), None),
    (r"got int32\[1, 3, 2\]", LOGITS, MASK[None], None),
    ("got list", LOGITS, [0, 0], None),
    ("has 3 words, logits of width 64 need 2", LOGITS, torch.zeros((3, 3), dtype=torch.int32), None),
    (r"2 rows of bitmask for 3 rows of logits \(row 2 has no bitmask\)", LOGITS, MASK[:2], None),
    (r"3 rows of bitmask for 2 rows of logits \(row 2 has no logits\)", LOGITS[:2], MASK, None),
    (r"3 rows of bitmask for 1 rows of logits \(row 1 has no logits\)", LOGITS[0], MASK, None),
    (r"the logits have 1 rows \(row 1\)", LOGITS[0], MASK[0], [1]),
    (r"the logits have 3 rows \(row 3\)", LOGITS, MASK[:2], [0, 3]),
    (r"the logits have 3 rows \(row -1\)", LOGITS, MASK[:2], [0, -1]),
    (r"named twice in rows= \(row 1\)", LOGITS, MASK[:2], torch.tensor([1, 1])),
    (r"rows are int64\[count\], got bool\[3\]", LOGITS, MASK, torch.ones(3, dtype=torch.bool)),
    ("2 rows of bitmask for 1 rows of logits", LOGITS, MASK[:2], [0]),
]


@pytest.mark.parametrize(("message", "logits", "bitmask", "rows"), REFUSED)
def test_refusals(message: str, logits: Any, bitmask: Any, rows: Any) -> None:
    before = logits.copy() if isinstance(logits, np.ndarray) else logits.clone()
    with pytest.raises(BitmaskError, match=message):
        apply_bitmask(logits, bitmask, rows=rows)
    assert (logits == before).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_others_left_nothing_of_are_revived(dtype: Any, device: str) -> None:
    """Both ways give what the rule for one row gives."""
    logits, allowed = random_case(6, 300, 270, dtype)
    logits[1:4] = logits[1:4].nan_to_num(0, 0, 0)
    for row in (1, 3):
        logits[row, :270][torch.from_numpy(allowed[row])] = float("-inf")
    allowed[5] = False
    words = np.stack([pack(bits) for bits in allowed])
    expected = naive(logits, allowed, list(range(6)))
    for row in (1, 3):
        expected[row, :270][torch.from_numpy(allowed[row])] = LAST_RESORT
    found = logits.clone().to(device)
    apply_bitmask(found, words)
    revive_all(found, torch.from_numpy(words).to(device))
    assert_same(found, expected)
    found = logits.clone().to(device)
    masks = {row: words[row] for row in (0, 1, 2)}
    apply_masks(found, masks)
    assert revive(found, masks)
    assert not revive(found, masks)
    assert_same(found[:3], expected[:3])
    assert_same(found[3:], logits[3:])
