"""Index files: what is written is read; what is damaged is refused, and never crashes anything."""

from __future__ import annotations

import itertools
import json
import random
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from judges.naive import small_vocabulary
from make_golden import DEFINITIONS, FOLDER, PATTERNS, TEXTS, masks_along

import structgen as sg
from structgen.errors import FormatError
from structgen.runtime.automaton.machine import AutomatonMachine
from structgen.runtime.index.index import Index
from structgen.runtime.rows.row_pool import RowPool, decode_gaps, encode_gaps
from structgen.storage import container

VOCABULARY = small_vocabulary()


@pytest.mark.parametrize("name", DEFINITIONS)
def test_golden_files(name: str) -> None:
    index = sg.Index.load(FOLDER / f"{name}.sgx")
    expected = json.loads((FOLDER / "masks.json").read_text())[name]
    assert masks_along(index, TEXTS[name]) == expected
    assert index.definition == DEFINITIONS[name].canonical()
    assert masks_along(sg.compile(DEFINITIONS[name], VOCABULARY), TEXTS[name]) == expected


def test_save_and_load_in_another_process(tmp_path: Path) -> None:
    """A saved index needs nothing else: not the vocabulary, not the compiler."""
    path = tmp_path / "date.sgx"
    sg.compile(sg.Regex(PATTERNS["date"]), VOCABULARY).save(path)
    program = f"""
import sys, structgen as sg
guide = sg.Guide(sg.Index.load({str(path)!r}))
assert all(guide.advance(b) for b in b"2024-02-30") and guide.is_accepting()
assert guide.bitmask().any()
assert not {{"numba", "interegular", "lark", "diskcache", "torch"}} & set(sys.modules), "the runtime is light"
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_save_is_atomic_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(sg.Regex("a"), VOCABULARY)
    index.save(tmp_path / "a.sgx")
    before = (tmp_path / "a.sgx").read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        sg.compile(sg.Regex("b"), VOCABULARY).save(tmp_path / "a.sgx")
    assert (tmp_path / "a.sgx").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.sgx"]


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    sg.compile(sg.Regex("a"), VOCABULARY).save(tmp_path / "a.sgx")
    other = small_vocabulary((b"zzz",))
    with pytest.raises(sg.errors.VocabularyMismatchError, match="compiled for vocabulary"):
        sg.Index.load(tmp_path / "a.sgx", other)


def test_an_index_without_its_vocabulary_says_so() -> None:
    index = sg.compile(sg.Regex("a"), small_vocabulary((b"only here",)))
    data = index.to_bytes(with_vocabulary=False)
    with pytest.raises(sg.errors.VocabularyMismatchError, match="does not hold"):
        Index.from_buffer(data)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: b"", "magic"),
        (lambda d: b"PK\x03\x04" + d[4:], "magic"),
        (lambda d: d[:-1], "bytes, its header says"),
        (lambda d: d + b"\0", "bytes, its header says"),
        (lambda d: d[:8] + struct.pack("<I", 99) + d[12:], "format version is 99"),
        (lambda d: d[:12] + struct.pack(">I", 0x01020304) + d[16:], "byte order"),
        (lambda d: d[:-5] + bytes([d[-5] ^ 1]) + d[-4:], "checksum"),
    ],
)
def test_each_kind_of_damage_has_its_message(damage: object, message: str, tmp_path: Path) -> None:
    data = sg.compile(sg.Regex("ab"), VOCABULARY).to_bytes()
    path = tmp_path / "damaged.sgx"
    path.write_bytes(damage(data))  # type: ignore[operator]
    with pytest.raises(sg.errors.FormatError, match=message) as caught:
        sg.Index.load(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_a_format_error(tmp_path: Path) -> None:
    with pytest.raises(sg.errors.FormatError, match="cannot be read"):
        sg.Index.load(tmp_path / "none.sgx")


def test_unsealed_mutations_never_pass() -> None:
    """Without a new checksum any flipped bit is noticed."""
    original = sg.compile(sg.Regex("a+b"), VOCABULARY).to_bytes()
    random_source = random.Random(1)
    for _ in range(500):
        data = bytearray(original)
        data[random_source.randrange(len(data))] ^= 1 << random_source.randrange(8)
        with pytest.raises(sg.errors.FormatError):
            Index.from_buffer(bytes(data))


def test_rows_that_depend_on_a_count() -> None:
    """A file may have them in any order, and each belongs to one state."""
    index = sg.compile(sg.Regex("(?:ab|c){30,40}"), sg.Vocabulary.bytewise())
    assert isinstance(index.machine, AutomatonMachine)
    meta, sections = container.unpack(index.to_bytes(with_vocabulary=False))
    row_of, rows = sections["row_of"].copy(), len(index.machine.pool)
    first, second = np.flatnonzero(row_of > rows)[:2]
    starts = sections["seg_start"].tolist()
    parts = [range(*part) for part in itertools.pairwise(starts)]
    parts[:2] = reversed(parts[:2])
    order = [i for part in parts for i in part]
    turned = {**sections, **{each: sections[each][order] for each in ("seg_begin", "seg_row")}}
    turned["seg_start"] = np.cumsum([0, *map(len, parts)]).astype(np.uint32)
    row_of[[first, second]] = row_of[[second, first]]
    other = Index.from_buffer(container.pack(meta, turned | {"row_of": row_of}), index.vocabulary)
    assert isinstance(other.machine, AutomatonMachine)
    for (state, begin, row), again in zip(index.machine.all_rows(), other.machine.all_rows(), strict=True):
        assert again[:2] == (state, begin)
        np.testing.assert_array_equal(again[2], row)
    assert other.to_bytes() == index.to_bytes()
    row_of[first] = row_of[second]
    with pytest.raises(FormatError, match="'row_of' does not have each entry of 'seg_start' once"):
        Index.from_buffer(container.pack(meta, turned | {"row_of": row_of}), index.vocabulary)


def test_the_container_round_trips_and_aligns() -> None:
    sections: dict[str, Any] = {
        "a": np.arange(5, dtype=np.uint8),
        "b": np.ones((3, 4), np.int32),
        "empty": np.zeros(0, np.uint16),
    }
    meta, found = container.unpack(container.pack({"x": ["é", 1]}, sections))
    assert meta == {"x": ["é", 1]}
    for name, array in sections.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    with pytest.raises(ValueError, match="cannot be stored"):
        container.pack({}, {"f": np.zeros(1, np.float64)})


@pytest.mark.parametrize("ids", [[], [0], [5], [65534, 65535, 65536], [0, 131070, 131071, 262144], [196605]])
def test_gaps(ids: list[int]) -> None:
    array = np.array(ids, np.uint32)
    np.testing.assert_array_equal(decode_gaps(encode_gaps(array)), array)


def test_the_pool_stores_rows_once_and_small() -> None:
    size = 70_000
    pool = RowPool(size)
    random_source = np.random.default_rng(0)
    full = np.full(pool.words, 0xFFFFFFFF, np.uint32)
    full[-1] = (1 << size % 32) - 1
    rows = [full]
    for flips in (1, 100, 600, 1200, 40_000):
        row = full.copy()
        for i in random_source.choice(size, flips, replace=False).tolist():
            row[i >> 5] ^= np.uint32(1 << (i & 31))
        rows.append(row)
    rows += [full ^ row for row in rows]
    numbers = [pool.add_dense(row) for row in rows]
    assert numbers == [pool.add_dense(row) for row in rows]
    for number, row in zip(numbers, rows, strict=True):
        np.testing.assert_array_equal(pool.dense(number).view(np.uint32), row)
    pool.compact()
    assert [pool.add_dense(row) for row in rows] == numbers
    assert pool.nbytes < 5.5 * full.nbytes  # five rows of the twelve are stored whole
    again = RowPool.from_sections(pool.to_sections(), {"spelled": size}, "test")
    for number, row in zip(numbers, rows, strict=True):
        np.testing.assert_array_equal(again.dense(number).view(np.uint32), row)
    assert [again.add_dense(row) for row in rows] == numbers


def test_a_shared_row_is_the_first_that_is_added_to_those_of_a_file() -> None:
    """It has no gaps, so the file's array, which can't be written to, stays."""
    pool = RowPool(64)
    pool.add_ids(np.array([1, 5]))
    sections = pool.to_sections()
    base, start, gaps = (sections[name] for name in ("row_base", "row_start", "row_gaps"))
    mapped = np.frombuffer(gaps.tobytes(), np.uint16)
    again = RowPool(64, (base, start, mapped), sections["bases"])
    assert again.add_shared(SimpleNamespace(row_of=lambda _: np.array([7, 0], np.uint32))) == 1
    assert again.dense(1).tolist() == [7, 0]
    assert again.add_ids(np.array([2])) == 2
    assert [again.dense(row).tolist() for row in range(3)] == [[0b100010, 0], [7, 0], [4, 0]]
