"""The benchmark of masks on a device runs without one: every way masks alike, on the CPU and interpreted."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is made

from benchmarks.batch import masks  # noqa: E402


def test_the_suite_in_small() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    found = masks.measure(device, [masks.Size(3, 320)], peers=False)
    ways = {row["way"] for row in found.rows}
    assert ways >= {
        "structgen", "structgen, row ids sent", "structgen, new rows sent", "structgen, states on the device",
    }  # fmt: skip
    if device == "cpu" and find_spec("triton") is not None:
        assert "structgen, interpreted" in ways
    assert not found.left_out, found.left_out
    masked = [row for row in found.rows if row["way"] == "structgen"]
    assert {(row["dtype"], row["allowed"]) for row in masked} == {(d, s) for d in masks.DTYPES for s in masks.SHARES}
    assert all(row["microseconds"] > 0 and row["share of bandwidth"] > 0 for row in masked)


def test_what_masks_otherwise_is_left_out() -> None:
    bench = masks.Bench("cpu")
    logits = torch.zeros((1, 32))
    assert bench._checked("idle", lambda _: None, logits, torch.full((1, 32), -torch.inf)) == {}
    assert bench.found.left_out == {"idle": "masks otherwise"}
