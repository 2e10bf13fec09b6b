"""`RowStore`: rows by number, each once, however they are put together."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

import structgen as sg
from structgen import kernels
from structgen.runtime.rows import row_store

SIZE = 70_000  # more than a gap spans
VOCABULARY = sg.Vocabulary.from_bytes([b"%d" % number for number in range(SIZE - 1)] + [None], eos_ids=[SIZE - 1])


def dense(ids: set[int]) -> NDArray[np.int32]:
    bits = np.zeros(32 * VOCABULARY.words, np.bool_)
    bits[sorted(ids)] = True
    row: NDArray[np.int32] = np.packbits(bits, bitorder="little").view(np.int32)
    row.flags.writeable = False
    return row


def some(chance: random.Random) -> set[int]:
    return set(chance.sample(range(SIZE), chance.choice([0, 1, 3, 60, 64, 65, 3000])))


@pytest.mark.parametrize("seed", range(4))
def test_rows_as_sets(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_store, "_FEW", 1)  # there is room for few: it is made as rows come
    chance = random.Random(seed)
    store = row_store.RowStore(VOCABULARY, most_bytes=0)
    known: dict[frozenset[int], int] = {}
    for _ in range(40):
        ids = frozenset(some(chance))
        [number] = store.add(dense(set(ids))[None]).tolist()
        assert known.setdefault(ids, number) == number
        assert (store.dense(np.array([number], np.int32))[0] == dense(set(ids))).all()
    every = store.dense(np.array([*known.values()], np.int32))
    assert (every == [dense(set(ids)) for ids in known]).all()


def test_several_rows_at_once() -> None:
    store, rows = row_store.RowStore(VOCABULARY), np.array([dense({each}) for each in (5, 6, 7, 5, 7)])
    numbers = store.add(rows)
    assert numbers.tolist() == [3, 4, 5, 3, 5]
    assert (store.dense(numbers) == rows).all()


def test_rows_whose_hashes_are_equal() -> None:
    """They are told apart by what they are."""
    store = row_store.RowStore(VOCABULARY)
    assert store.add(dense({5})[None]) == [3]
    store._pages[kernels.G_ROWS].reshape(-1, store.words)[3] = dense({6})  # where {5} is found by its hash
    assert store.add(np.array([dense({5}), dense({5})])).tolist() == [4, 4]


def test_a_vocabulary_without_eos_ids() -> None:
    """What is always there has its number, also where two of these rows are equal."""
    store = row_store.RowStore(sg.Vocabulary.from_bytes([b"a", b"b"], eos_ids=[]))
    assert store.dense(np.arange(3, dtype=np.int32)).tolist() == [[0], [0], [3]]
    assert store.add(np.array([[3]], np.int32)) == row_store.ALL_IDS
    assert len(store) == 3
