"""Base rows come by themselves: from the cache, or made in the background; and nobody is ever worse off for them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from fakes.vocabularies import in_another_process
from judges.tag_judge import render

import structgen as sg
from structgen import base_rows
from structgen.index_store import _SharedRows, fetch_base_rows, keep_base_rows
from structgen.runtime.pushdown.base_rows import BaseRows, to_bytes
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.shared_masks import SharedMasks, SharedMaskStore
from structgen.system.folders import cache_root
from structgen.tools.styles import SHIPPED

SCHEMA = sg.JsonSchema({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}})
ANOTHER = sg.JsonSchema({"properties": {"a": {"type": "string"}, "b": {"type": "null"}}, "required": ["a"]})
ROOT = Path(__file__).resolve().parents[2]

ALL_SAMPLES = base_rows.samples()

#: How many of the samples are made here; all of them take seconds.
FEW = 2

unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture
def vocabulary(llama3: sg.Vocabulary) -> sg.Vocabulary:
    """As in a process of its own."""
    return in_another_process(llama3)


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """They are made at once, without rests, and only a few; the default folder is a folder of the test's."""
    few = base_rows.samples()[:FEW]
    monkeypatch.setenv("STRUCTGEN_BASE_ROWS", "1")
    monkeypatch.setattr(base_rows, "_DELAY", 0.0)
    monkeypatch.setattr(base_rows, "_REST", 0.0)
    monkeypatch.setattr(base_rows, "samples", lambda: few)
    default = sg.Cache(tmp_path / "default")
    monkeypatch.setattr(base_rows, "_default_cache", lambda: default)
    yield
    for maker in makers():
        maker.stop()


def makers() -> list[base_rows._Maker]:
    return [thread for thread in threading.enumerate() if isinstance(thread, base_rows._Maker)]


def finish() -> None:
    for maker in makers():
        maker.join(60)
    assert not makers()


def masks(index: sg.Index) -> list[np.ndarray]:
    """Masks of a text with a string."""
    guide, found = sg.Guide(index), []
    for byte in b'{"a": "x"':
        found.append(guide.bitmask().copy())
        assert guide.advance(next(i for i in range(1000) if index.vocabulary.token(i) == bytes([byte])))
    return [*found, guide.bitmask().copy()]


def walked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The names of the shared masks that are walked from now on."""
    names: list[bytes] = []
    walk = SharedMaskStore._walk

    def noted(self: SharedMaskStore, name: bytes, state: int) -> SharedMasks:
        names.append(name)
        return walk(self, name, state)

    monkeypatch.setattr(SharedMaskStore, "_walk", noted)
    return names


@pytest.mark.parametrize("given", [True, False], ids=["a cache", "the default folder"])
def test_the_first_compile_has_them_made_and_the_next_process_finds_them(
    given: bool, vocabulary: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = sg.Cache(tmp_path / "given") if given else None
    expected = masks(sg.compile(SCHEMA, vocabulary, eager=False, cache=cache))
    finish()
    (entry,) = [each for each in (cache or sg.Cache(tmp_path / "default")).entries() if each.label == "base rows"]
    assert entry.rank == 1 + FEW
    assert (tmp_path / "default").exists() != given
    names, later = walked(monkeypatch), in_another_process(vocabulary)
    index = sg.compile(ANOTHER, later, eager=False, cache=cache if given else None)
    assert later.base_rows.is_complete
    np.testing.assert_array_equal(masks(index)[6:8], expected[6:8])  # inside the string
    assert not names, "all shared rows came from the file"
    assert not makers(), "there is nothing left to make"


def test_an_index_from_the_cache_finds_its_rows_there(
    vocabulary: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = sg.Cache(tmp_path / "given")
    expected = masks(sg.compile(SCHEMA, vocabulary, cache=cache))
    finish()
    for entry in cache.entries():
        if entry.kind == "shared" and entry.label != "base rows":
            cache.discard(entry.key)
    names, later = walked(monkeypatch), in_another_process(vocabulary)
    index = sg.compile(SCHEMA, later, cache=cache)
    assert index.origin == "cache"
    assert later.base_rows is None, "nothing is read before it is needed"
    np.testing.assert_array_equal(masks(index), expected)
    assert not names


def test_names_beside_declared_ones_are_walked_as_far_as_they_differ_from_texts(vocabulary: sg.Vocabulary) -> None:
    sg.compile_base_rows(vocabulary)
    members = {name: {"type": "integer"} for name in ("base", "height", "width")}
    index = sg.compile(sg.JsonSchema({"type": "object", "properties": members}), vocabulary, eager=False)
    assert isinstance(index.machine, PushdownMachine)
    guide = sg.Guide(index)
    for byte in b'{"base": 1, "height": 2, "width": 3, "x':
        guide.bitmask()
        assert guide.advance(next(i for i in range(1000) if vocabulary.token(i) == bytes([byte])))
    assert not index.machine.rows.long_walks


@pytest.mark.parametrize("has_base_rows", [True, False])
def test_a_store_gets_one_object_of_an_index_where_it_has_base_rows(
    has_base_rows: bool, vocabulary: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has rows of its own beside strings of any kind brings them along; a reader needs nothing else."""
    pytest.importorskip("obstore")
    texts = {"a": {"type": "string", "pattern": "^x[^b]*$"}, "b": {"type": "string"}}
    definition = sg.JsonSchema({"type": "object", "properties": texts})
    expected = masks(sg.compile(definition, in_another_process(vocabulary), base_rows=False))
    url = (tmp_path / "store").as_uri()
    with sg.Cache(tmp_path / "builder", store=sg.ObjectStore(url, write="now", wait=300.0, timeout=300.0)) as cache:
        if has_base_rows:
            sg.compile_base_rows(vocabulary, cache=cache)
        before = cache.metrics()
        sg.compile(definition, vocabulary, cache=cache, base_rows=False)
        after = cache.metrics()
    written = after.store_written - before.store_written
    assert written == 1 if has_base_rows else written > 2
    if has_base_rows:
        assert after.store_requests - before.store_requests == 2  # asked for the index, and wrote it
    names, later = walked(monkeypatch), in_another_process(vocabulary)
    with sg.Cache(tmp_path / "server", store=sg.ObjectStore(url, write="never", wait=300.0)) as cache:
        index = sg.compile(definition, later, cache=cache, compile_missing=False)
        assert isinstance(index.machine, PushdownMachine)
        stored = index.machine.rows.shared.stored.keys()
        assert bool(stored) == has_base_rows
        assert stored < {name for name, *_ in index.machine.rows.shared.uses}, "not what any string has"
        np.testing.assert_array_equal(masks(index), expected)
        assert not names
        assert cache.metrics().store_requests == 2 or not has_base_rows, "the index and the base rows"


@pytest.mark.parametrize("style", sorted({style.arguments for style in SHIPPED} - {"json", "gemma"}))
def test_arguments_in_tags_have_some(
    style: str, vocabulary: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [each for each in ALL_SAMPLES if each.style == style]
    monkeypatch.setattr(base_rows, "samples", lambda: few)
    form = {"type": "json_schema", "style": style, "excludes": list(few[0].excludes)}
    closed = {"type": "object", "additionalProperties": False}
    first, second = (
        sg.StructuralTag({**form, "json_schema": {**closed, "properties": {name: {"type": "string"}}}})
        for name in ("city", "town")
    )
    cache = sg.Cache(tmp_path / "given")
    sg.compile(first, vocabulary, eager=False, cache=cache)
    finish()
    names, later = walked(monkeypatch), in_another_process(vocabulary)
    index = sg.compile(second, later, eager=False, cache=cache)
    assert later.base_rows.is_complete
    guide = sg.Guide(index)
    text = render({"town": "Zurich"}, style, Random(1)).encode()
    for byte in text[: text.index(b"rich")]:
        assert guide.advance(next(i for i in range(1000) if later.token(i) == bytes([byte])))
        guide.bitmask()
    assert not names


def test_a_vocabulary_that_spells_no_strings_has_none(tmp_path: Path) -> None:
    """That is no failure: what is compiled for it has other values."""
    tokens = [*(bytes([i]) for i in range(256) if i != ord('"')), *(f"{i:x}z".encode() for i in range(20_000)), None]
    own = sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])
    assert base_rows.are_worthwhile(own)
    sg.compile_base_rows(own, cache=sg.Cache(tmp_path / "own"))
    assert sg.compile(sg.JsonSchema({"type": "integer"}), own, cache=sg.Cache(tmp_path / "own")).complete


def test_it_can_be_switched_off(vocabulary: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sg.compile(SCHEMA, vocabulary, eager=False, base_rows=False)
    monkeypatch.setenv("STRUCTGEN_BASE_ROWS", "0")
    sg.compile(SCHEMA, vocabulary, eager=False)
    assert not makers()
    assert not (tmp_path / "default").exists()
    cache = sg.Cache(tmp_path / "given")
    sg.compile_base_rows(vocabulary, cache=cache)
    later = in_another_process(vocabulary)
    sg.compile(SCHEMA, later, eager=False, cache=cache)
    assert later.base_rows.is_complete, "a cache that is given is read all the same"


def test_what_needs_no_strings_begins_nothing(vocabulary: sg.Vocabulary, tmp_path: Path) -> None:
    sg.compile(sg.Regex("[a-z]{3}"), vocabulary, eager=False)
    small = sg.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [None], eos_ids=[256])
    sg.compile(SCHEMA, small)
    with pytest.raises(sg.errors.MissingIndexError):
        sg.compile(SCHEMA, vocabulary, compile_missing=False)
    assert not makers()
    assert not (tmp_path / "default").exists()


def test_one_that_is_stopped_is_gone_on_with(vocabulary: sg.Vocabulary, tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path / "given")
    turns = iter([None])

    def one_turn() -> None:
        if next(turns, 0) == 0:
            raise base_rows._Stopped

    base_rows._make(vocabulary, cache, lambda: 0.0, lambda *_: None, one_turn)
    (entry,) = cache.entries()
    assert entry.rank == 2
    later = in_another_process(vocabulary)
    sg.compile(ANOTHER, later, eager=False, cache=cache)
    finish()
    assert later.base_rows.is_complete
    found = fetch_base_rows(cache, in_another_process(vocabulary))
    assert found is not None
    assert found.samples == FEW


def test_they_are_what_was_made(vocabulary: sg.Vocabulary) -> None:
    sg.compile(sg.JsonSchema({"type": "string", "maxLength": 1000}), vocabulary, base_rows=False)
    made = dict(vocabulary.shared_rows)
    assert any(len(each.rows) > 1 for each in made.values())
    found = BaseRows(to_bytes(made, 3, False, vocabulary.spelled), vocabulary, "here")
    assert (found.samples, found.is_complete, len(found)) == (3, False, len(made))
    assert found.get(b"another name") is None
    for name, each in made.items():
        again = found.get(name)
        assert again is not None
        assert again.begins == each.begins
        np.testing.assert_array_equal(list(again.rows), list(each.rows))
        for mine, theirs in zip(again.residuals, each.residuals, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_an_index_is_kept_with_base_rows_that_its_cache_lacks(vocabulary: sg.Vocabulary, tmp_path: Path) -> None:
    """Those in memory are from the default folder; the cache has base rows, but other ones."""
    base_rows.make_now(vocabulary, None, lambda *_: None)
    assert vocabulary.base_rows is not None
    mask = next(iter(vocabulary.base_rows.all_masks().values()))
    with sg.Cache(tmp_path / "given") as cache:
        keep_base_rows(cache, in_another_process(vocabulary), {bytes(16): mask}, 1, False)
        index = sg.compile(SCHEMA, vocabulary, cache=cache, base_rows=False)
        assert isinstance(index.machine, PushdownMachine)
        uses = index.machine.rows.shared.uses
        assert any(name in vocabulary.base_rows for name, *_ in uses)
        kept = _SharedRows(cache, in_another_process(vocabulary))
        assert all(kept.fetch(name, bytes) is not None for name, *_ in uses)


@pytest.mark.parametrize("damage", ["checksum", "kind", "cut"])
def test_a_damaged_entry_is_made_anew(damage: str, vocabulary: sg.Vocabulary, tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path / "given")
    base_rows.make_now(vocabulary, cache, lambda *_: None)
    (entry,) = cache.entries()
    (file,) = (tmp_path / "given").glob("*.val")
    content = bytearray(file.read_bytes())
    if damage == "cut":
        del content[-1]
    elif damage == "checksum":
        content[-1] ^= 1
    else:
        content = bytearray(vocabulary.to_bytes())
    cache.put(entry.key, bytes(content), rank=99)
    later = in_another_process(vocabulary)
    sg.compile(SCHEMA, later, eager=False, cache=cache)
    assert later.base_rows is None
    finish()
    assert isinstance(later.base_rows, BaseRows)
    found = fetch_base_rows(cache, in_another_process(vocabulary))
    assert found is not None
    assert found.is_complete


def test_a_folder_that_cannot_be_used_costs_a_warning(vocabulary: sg.Vocabulary, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")
    cache = sg.Cache(place / "below")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sg.compile(SCHEMA, vocabulary, eager=False, cache=cache)
        finish()
    assert vocabulary.base_rows.is_complete, "this process has them all the same"
    assert {each.category for each in caught} <= {sg.errors.CacheWarning}
    assert sum("base" in str(each.message) for each in caught) <= 1


def test_what_goes_wrong_in_the_background_is_nobodys_concern(
    vocabulary: sg.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(base_rows, "stack_machine", failing)
    index = sg.compile(SCHEMA, vocabulary, eager=False)
    finish()
    assert masks(index)


@unix
def test_a_child_leaves_it_to_its_parent(
    vocabulary: sg.Vocabulary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_rows, "_DELAY", 3600.0)  # it is still there at the fork
    cache = sg.Cache(tmp_path / "given")
    sg.compile(SCHEMA, vocabulary, eager=False, cache=cache)
    assert makers()
    child = os.fork()
    if not child:
        status = 1
        try:
            sg.compile(SCHEMA, vocabulary, eager=True)
            before = vocabulary.base_rows is None and not makers()
            other = in_another_process(vocabulary)
            sg.compile(sg.JsonSchema({"type": "string"}), other, eager=False, base_rows=False)
            keep_base_rows(cache, other, dict(other.shared_rows), FEW, True)  # as the parent would
            sg.compile(ANOTHER, vocabulary, eager=False, cache=cache)
            status = 0 if before and vocabulary.base_rows is not None and not makers() else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


_AT_EXIT = """
import sys, time
import structgen as sg
from structgen import base_rows
base_rows._DELAY = 0.0
vocabulary = sg.Vocabulary.from_buffer(open(sys.argv[1], "rb").read())
sg.compile(sg.JsonSchema({"type": "string"}), vocabulary, eager=False)
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_the_end_of_the_interpreter_is_quiet(seconds: float, vocabulary: sg.Vocabulary, tmp_path: Path) -> None:
    file = tmp_path / "vocabulary"
    file.write_bytes(vocabulary.to_bytes())
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    (folder / "kernels").symlink_to(cache_root() / "kernels")
    ended = subprocess.run(
        [sys.executable, "-c", _AT_EXIT, file, str(seconds)],
        env=os.environ | {"STRUCTGEN_BASE_ROWS": "1", "STRUCTGEN_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
