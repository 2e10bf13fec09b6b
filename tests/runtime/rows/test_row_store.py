"""`RowStore`: rows by number, each once, however they are put together."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray

import structgen as sg
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
        ids, keeps = frozenset(some(chance)), chance.random() < 0.5
        number = store.add(dense(set(ids)), keeps=keeps)
        assert known.setdefault(ids, number) == number
        assert (store.dense(np.array([number], np.int32))[0] == dense(set(ids))).all()
    every = store.dense(np.array([*known.values()], np.int32))
    assert (every == [dense(set(ids)) for ids in known]).all()


def test_few_ids_take_little() -> None:
    """The memory of a whole row is not written for a narrow one."""
    store = row_store.RowStore(VOCABULARY)
    _, wide = store._used
    for number in range(1, 50):
        store.add(dense({*range(number, 60 * number, number)}), keeps=False)
    assert len(store) >= 49
    assert store._used[1] == wide
