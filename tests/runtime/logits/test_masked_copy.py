"""Masks on logits in CPU memory, in place and as a copy: bit by bit, from no token to all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from structgen.errors import BitmaskError  # noqa: E402
from structgen.runtime.logits.masks import apply_bitmask, masked_copy  # noqa: E402
from structgen.runtime.rows.bitmask import pack  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [33, 640, 1000, 1024, 1111])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.02, 0.5, 1.0])
def test_few_and_many_tokens(share: float, width: int, dtype: Any) -> None:
    chance = np.random.default_rng(int(width + 1000 * share))
    size = min(width, 1000)
    allowed = chance.random((3, size)) < share
    allowed[:, -1] |= share == 0.02  # the last word, of which the logits may have a part
    masks = [pack(row) for row in allowed]
    logits = torch.randn((3, width)).to(dtype)
    logits[0, 5] = float("nan")
    before = logits.clone()
    expected = before.masked_fill(~torch.from_numpy(np.pad(allowed, ((0, 0), (0, width - size)))), float("-inf"))
    copied = masked_copy(logits, masks)
    assert torch.equal(logits.view(torch.uint8), before.view(torch.uint8))
    strided = before.repeat(1, 2)[:, ::2].clone().t().contiguous().t()
    strided.copy_(before)
    apply_bitmask(logits, np.stack(masks))
    apply_bitmask(strided, np.stack(masks))
    for found in (copied, logits, strided):
        assert found.dtype == dtype
        assert torch.equal(found.nan_to_num(nan=7.0, neginf=-9.0), expected.nan_to_num(nan=7.0, neginf=-9.0))
    if dtype != torch.bfloat16:
        array = before.numpy().copy()
        apply_bitmask(array, np.stack(masks))
        assert np.array_equal(array, expected.numpy(), equal_nan=True)


def test_what_a_copy_refuses() -> None:
    mask = np.zeros(3, np.int32)
    with pytest.raises(BitmaskError, match="2 masks for 1 rows"):
        masked_copy(torch.zeros((1, 96)), [mask, mask])
    with pytest.raises(BitmaskError, match="has 3 words, logits of width 64 need 2"):
        masked_copy(torch.zeros((1, 64)), [mask])
    with pytest.raises(BitmaskError, match="float64"):
        masked_copy(torch.zeros((1, 96), dtype=torch.float64), [mask])
