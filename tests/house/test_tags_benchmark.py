"""The benchmark of tool calls: its requests, and what the readings come to."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from judges.guides import EACH_BYTE, with_end

from benchmarks.tags import requests, tables
from benchmarks.tails.worker import COMPLETE, LAZY, Bench, Moments, Reading, Setup


@pytest.fixture(autouse=True)
def _callbacks() -> Iterator[None]:
    before = list(gc.callbacks)
    yield
    gc.callbacks[:] = before


def _bench(folder: Path, engine: str) -> Bench:
    vocabulary = folder / "vocabulary"
    vocabulary.write_bytes(with_end(EACH_BYTE).to_bytes())
    return Bench(Setup("tags", engine, vocabulary, None, folder / "cache", None, hold=2))


@pytest.mark.parametrize("kind", requests.KINDS)
@pytest.mark.parametrize("style", requests.STYLES)
def test_every_reply_is_taken(style: str, kind: str, tmp_path: Path) -> None:
    request = requests.Request(style, kind, 2, 6, "x")
    texts = [(name, list(text.encode())) for name, text in [*request.entries(), *request.calls(4, 0)]]
    case = request.case(texts)
    bench = _bench(tmp_path, LAZY)
    assert len(bench.first_mask(case).wall) == 2
    assert [len(text.wall) for text in bench.replay(case)] == [len(tokens) for _, tokens in texts]


def test_a_complete_index_has_a_size(tmp_path: Path) -> None:
    bench = _bench(tmp_path, COMPLETE)
    bench.first_mask(requests.Request("llama", "simple", 1, 2, "x").case())
    assert bench.file_size() > 1000


def test_figures_of_first_masks_are_medians_of_repeats() -> None:
    sizes = [(1, 2), (8, 2), (1, 2), (8, 2)]
    cases = [requests.Request("llama", "simple", *size, str(number)).case() for number, size in enumerate(sizes)]

    def readings(*milliseconds: int) -> dict[int, Reading]:
        moments = [np.array([1, each * 1_000_000], np.int64) for each in milliseconds]
        return {number: Reading("", Moments(times, times)) for number, times in enumerate(moments)}

    section = tables.Section(cases, {LAZY: readings(2, 6, 4, 8), "xgrammar": readings(20, 140, 40, 210)})
    assert tables.grid(section, "wall")[LAZY] == {"llama, simple, 1x2": 3.0, "llama, simple, 8x2": 7.0}
    found = {figure.name: figure.measured for figure in tables._first_masks("x", section, "wall")}
    assert found == {
        "x, xgrammar over structgen, median": 17.5,
        "x, xgrammar over structgen, least: llama, simple, 1x2": 10.0,
        "x, llama, simple: 8 tools over one, most: 2 parameters": pytest.approx(7 / 3),
    }
