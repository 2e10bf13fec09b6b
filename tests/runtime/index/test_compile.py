"""`compile` and the cache: hits, lazy rows written back, damage, several processes, `kill -9`."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from judges.naive import small_vocabulary

import structgen as sg
from structgen.index_store import cache_key
from structgen.runtime.automaton.machine import AutomatonMachine
from structgen.system.types import Foreign

VOCABULARY = small_vocabulary()
HERE = Path(__file__).parents[2]


def walk(index: sg.Index, text: bytes) -> list[bytes]:
    """The rows before each byte of a text."""
    guide, rows = sg.Guide(index), []
    for byte in text:
        rows.append(guide.bitmask().tobytes())
        assert guide.advance(byte)
    return rows


def test_what_is_no_vocabulary_and_no_cache_is_named(tmp_path: Path) -> None:
    with pytest.raises(sg.errors.ArgumentError, match=r"a Vocabulary was expected, got str\. Read one"):
        sg.compile(sg.Regex("a"), "a tokenizer")  # type: ignore[arg-type]
    with pytest.raises(sg.errors.ArgumentError, match=r"a Cache was expected, got \w*Path\. Pass sg\.Cache"):
        sg.compile(sg.Regex("a"), VOCABULARY, cache=tmp_path)  # type: ignore[arg-type]


untyped: Foreign = sg  # type checkers would say it first
REGEX = sg.Regex("a")

#: Calls with the wrong thing, and what is said of them.
MISTAKES: dict[str, tuple[Callable[[sg.Cache], object], str]] = {
    "a guide of a definition": (lambda cache: untyped.Guide(REGEX), "an Index was expected, got Regex. Compile"),
    "a traced guide of a text": (lambda cache: untyped.TracedGuide("a"), "an Index was expected, got str. Compile"),
    "a batch of definitions": (
        lambda cache: untyped.GuideBatch(VOCABULARY, [REGEX]),
        "an Index was expected, got Regex",
    ),
    "a batch of indexes alone": (
        lambda cache: untyped.GuideBatch([sg.compile(REGEX, VOCABULARY)]),
        "a Vocabulary was expec",
    ),
    "certified definition": (lambda cache: untyped.certify(REGEX), "an Index was expected, got Regex. Compile"),
    "a number as a budget": (
        lambda cache: untyped.compile(REGEX, VOCABULARY, budget=5),
        "a Budget was expected, got int",
    ),
    "a cache's folder": (
        lambda cache: untyped.warm([REGEX], VOCABULARY, cache="folder"),
        "a Cache was expected, got str",
    ),
    "no cache": (lambda cache: untyped.warm([REGEX], VOCABULARY, cache=None), "a Cache was expected, got NoneType"),
    "a tokenizer's name": (
        lambda cache: untyped.warm([REGEX], "gpt2", cache=cache),
        "a Vocabulary was expected, got str",
    ),
    "swapped": (lambda cache: untyped.warm(VOCABULARY, [REGEX], cache=cache), "a Vocabulary was expected, got Regex"),
    "a definition": (lambda cache: untyped.warm(REGEX, VOCABULARY, cache=cache), "are several, got Regex. Pass a list"),
    "base rows of a name": (lambda cache: untyped.compile_base_rows("gpt2"), "a Vocabulary was expected, got str"),
    "base rows' folder": (
        lambda cache: untyped.compile_base_rows(VOCABULARY, cache="folder"),
        "a Cache was expected, got str",
    ),
}


@pytest.mark.parametrize(("call", "said"), MISTAKES.values(), ids=[*MISTAKES])
def test_usual_mistakes_are_named(call: Callable[[sg.Cache], object], said: str, tmp_path: Path) -> None:
    """None of them is an `AttributeError` from somewhere within."""
    with pytest.raises(sg.errors.ArgumentError) as caught:
        call(sg.Cache(tmp_path))
    assert said in str(caught.value)


def missing_of(index: sg.Index) -> list[int]:
    """The states of a regex's index whose rows are not there."""
    assert isinstance(index.machine, AutomatonMachine)
    return index.machine.missing()


def test_a_hit_gives_the_same_masks(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    definition = sg.Regex(r"(?:[a-z]{2,40} )+x")
    first = sg.compile(definition, VOCABULARY, cache=cache)
    second = sg.compile(definition, VOCABULARY, cache=sg.Cache(tmp_path))
    assert (first.origin, second.origin) == ("compiled", "cache")
    assert second.complete
    assert walk(first, b"ab abc x") == walk(second, b"ab abc x")


def test_lazy_rows_are_remembered_for_the_next_process(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    definition = sg.Regex(r"[ab]{3}[0-9]{3,60}x")
    lazy = sg.compile(definition, VOCABULARY, cache=cache, eager=False)
    assert not lazy.complete
    assert lazy.row_count == 0
    rows = walk(lazy, b"aba1234")
    again = sg.compile(definition, VOCABULARY, cache=cache, eager=False)
    assert again.origin == "cache"
    assert again.row_count > 0
    assert not again.complete
    assert walk(again, b"aba1234") == rows
    complete = sg.compile(definition, VOCABULARY, cache=cache)
    assert complete.complete
    assert complete.origin == "compiled"
    assert walk(complete, b"aba1234") == rows
    assert sg.compile(definition, VOCABULARY, cache=cache).origin == "cache"


def test_rows_learned_last_are_remembered_too(tmp_path: Path) -> None:
    program = """
import sys, structgen as sg
from judges.naive import small_vocabulary
index = sg.compile(sg.Regex("[a-z]{9}x"), small_vocabulary(), cache=sg.Cache(sys.argv[1]), eager=False)
guide = sg.Guide(index)
for byte in b"abcdefg":
    guide.bitmask()
    guide.advance(byte)
print(len(index.machine.missing()))
"""
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], env=environment, capture_output=True, text=True, check=True
    )
    again = sg.compile(sg.Regex("[a-z]{9}x"), VOCABULARY, cache=sg.Cache(tmp_path), eager=False)
    assert len(missing_of(again)) == int(run.stdout) == again.states - 7
    again = sg.compile(sg.Regex("[a-z]{8}x"), VOCABULARY, cache=sg.Cache(tmp_path), eager=False)
    walk(again, b"abc")
    missing = missing_of(again)
    del again
    gc.collect()
    once_more = sg.compile(sg.Regex("[a-z]{8}x"), VOCABULARY, cache=sg.Cache(tmp_path), eager=False)
    assert missing_of(once_more) == missing
    assert 0 < len(missing) < once_more.states


def test_asking_for_single_tokens_walks_nothing() -> None:
    index = sg.compile(sg.Regex("[a-z]{2,9}"), VOCABULARY, eager=False)
    guide = sg.Guide(index)
    assert guide.allows(ord("a"))
    assert not guide.allows(ord("1"))
    assert guide.advance(ord("a"))
    assert index.row_count == 0


def test_lazy_and_eager_agree_row_for_row() -> None:
    definition = sg.Regex(r'"(?:[^"\\]|\\.){0,50}"|[a-z]+')
    lazy, eager = (sg.compile(definition, VOCABULARY, eager=e) for e in (False, True))
    assert isinstance(eager.machine, AutomatonMachine)
    for state in range(eager.states):
        for counter in range(0, 50, 7):
            config = state + eager.states * (counter if eager.machine.tables.live[state] >= 0 else 0)
            np.testing.assert_array_equal(lazy.machine.row(config), eager.machine.row(config))


def test_threads_make_no_difference() -> None:
    definition = sg.Regex(r"(?:\w+ ){1,3}[^a]*(?:é|ab)+")
    one, many = (sg.compile(definition, VOCABULARY, threads=n) for n in (1, 4))
    assert one.row_count == many.row_count
    assert walk(one, b"ab ba zzab") == walk(many, b"ab ba zzab")


def test_a_damaged_entry_is_a_miss_and_is_rebuilt(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    definition = sg.Regex("a+b")
    sg.compile(definition, VOCABULARY, cache=cache)
    key = cache_key(definition, VOCABULARY)
    for value in (b"garbage", sg.compile(definition, small_vocabulary((b"other",))).to_bytes(with_vocabulary=False)):
        cache.put(key, value)
        assert sg.compile(definition, VOCABULARY, cache=cache).origin == "compiled"
        assert sg.compile(definition, VOCABULARY, cache=cache).origin == "cache"


def test_keys_tell_definitions_and_vocabularies_apart() -> None:
    other = small_vocabulary((b"one more",))
    keys = {
        cache_key(definition, vocabulary)
        for definition in (sg.Regex("a"), sg.Regex("b"), sg.Regex("a", flags=2), sg.Regex("\ud800"))
        for vocabulary in (VOCABULARY, other)
    }
    assert len(keys) == 8
    assert cache_key(sg.Regex("a"), VOCABULARY) == cache_key(sg.Regex("a", flags=32), VOCABULARY)  # re.U is implied


def test_an_unusable_cache_folder_means_uncached_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = sg.Cache(tmp_path / "file" / "cache")
    with pytest.warns(sg.errors.CacheWarning):
        index = sg.compile(sg.Regex("a+b"), VOCABULARY, cache=cache)
    assert sg.Guide(index).allows(ord("a"))


def test_progress_is_reported() -> None:
    seen: list[tuple[str, int, int]] = []
    sg.compile(sg.Regex("[a-z]{1,20}"), VOCABULARY, progress=lambda *step: seen.append(step))
    stages = {stage for stage, _, _ in seen}
    assert {"automaton", "token maps"} <= stages
    assert all(0 <= done <= total for _, done, total in seen)
    assert seen[-1][1] == seen[-1][2]


def test_guides_share_an_index_across_threads() -> None:
    index = sg.compile(sg.Regex(r"(?:[a-z]{1,3}[0-9]{1,3})*"), VOCABULARY, eager=False)
    expected = walk(sg.compile(sg.Regex(r"(?:[a-z]{1,3}[0-9]{1,3})*"), VOCABULARY), b"ab12c3def456")
    failures: list[object] = []

    def work() -> None:
        for _ in range(50):
            if walk(index, b"ab12c3def456") != expected:
                failures.append("rows differ")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


WARM = """
import sys, structgen as sg
from judges.naive import small_vocabulary
vocabulary, cache = small_vocabulary(), sg.Cache(sys.argv[1])
print("started", flush=True)
for round in range(int(sys.argv[2])):
    for n in range(1, 12):
        sg.compile(sg.Regex(f"[a-z]{{{n},{n + round % 3}}}x"), vocabulary, cache=cache)
"""


def warm(folder: Path, rounds: int) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    return subprocess.Popen(
        [sys.executable, "-c", WARM, str(folder), str(rounds)], env=environment, text=True, stdout=subprocess.PIPE
    )


def check_all(folder: Path) -> int:
    """Every definition compiles, through whatever the cache holds; returns the hits."""
    cache = sg.Cache(folder)
    hits = 0
    for n in range(1, 12):
        index = sg.compile(sg.Regex(f"[a-z]{{{n},{n}}}x"), VOCABULARY, cache=cache)
        hits += index.origin == "cache"
        assert index.match(b"a" * n + b"x").accepted
    cache.verify(repair=True)
    assert not cache.verify()
    return hits


def test_two_processes_warm_one_cache(tmp_path: Path) -> None:
    processes = [warm(tmp_path, 2) for _ in range(2)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    assert check_all(tmp_path) == 11


def test_kill_9_in_mid_warm(tmp_path: Path) -> None:
    for delay in (0.0, 0.05, 0.2):
        process = warm(tmp_path, 10_000)
        assert process.stdout
        assert process.stdout.readline() == "started\n"
        time.sleep(0.3 + delay)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        check_all(tmp_path)
    assert check_all(tmp_path) == 11


def test_only_what_is_in_the_cache_where_nothing_may_be_compiled(tmp_path: Path) -> None:
    vocabulary = small_vocabulary()
    with sg.Cache(tmp_path) as cache:
        with pytest.raises(sg.errors.MissingIndexError, match="not in the cache") as found:
            sg.compile(sg.Regex("a+"), vocabulary, cache=cache, compile_missing=False)
        assert "a+" in found.value.where
        sg.compile(sg.Regex("a+"), vocabulary, cache=cache, eager=False)
        index = sg.compile(sg.Regex("a+"), vocabulary, cache=cache, compile_missing=False)
        assert index.origin == "cache"
        assert sg.Guide(index).advance(ord("a"))
        with pytest.raises(sg.errors.CacheError, match="no cache"):
            sg.compile(sg.Regex("a+"), vocabulary, compile_missing=False)
