"""`structgen.warm` on executors that other packages have."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from fakes.mortal_executor import Deadly
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words

import structgen as sg

WORDS = [random_words(seed) for seed in range(6)]


@pytest.mark.nightly
def test_processes_of_loky(tmp_path: Path) -> None:
    loky = pytest.importorskip("loky")
    cache = sg.Cache(tmp_path)
    make = partial(loky.get_reusable_executor, max_workers=1)
    given = [*map(definition_of, WORDS), Deadly("(deadly|definition)" * 4)]
    report = sg.warm(given, VOCABULARY, cache, executor=make, options=sg.WarmOptions(retries=0, in_flight=2))
    assert [each.status for each in report] == ["compiled"] * 6 + ["lost"]
    for words in WORDS:
        check_masks(sg.compile(definition_of(words), VOCABULARY, cache=cache, compile_missing=False), words)
