"""What a file may say of its rows' bases: each is there, comes before its users, and no chain of them is long."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from weakref import ref

import numpy as np
import pytest

from structgen import kernels
from structgen.errors import FormatError
from structgen.runtime.rows.row_pool import RowPool
from structgen.system.types import Array, Sections

#: Rows of a chain at most, but for the one that it ends with; ids of the vocabulary.
LONGEST, SIZE = 63, 40


def takes(row_base: list[int], bases: int, shared: int) -> bool:
    """Whether a file is taken whose rows have these bases, and nothing else."""
    sections: Sections = {
        "bases": np.zeros((bases, 2), np.uint32),
        "row_base": np.array(row_base, np.uint8 if max(row_base, default=0) < 256 else np.uint16),
        "row_start": np.zeros(len(row_base) + 1, np.uint8),
        "row_gaps": np.zeros(0, np.uint16),
    }
    try:
        RowPool.from_sections(sections, {"spelled": SIZE, "shared": shared}, "rows")
    except FormatError:
        return False
    return True


def is_sound(row_base: list[int], bases: int, shared: int) -> bool:
    """The same, row by row."""
    chain: list[int] = []
    for number, base in enumerate(row_base):
        before = base - 1 - bases - shared
        if before >= number:
            return False
        chain.append(1 + chain[before] if before >= 0 else 0)
    return max(chain, default=0) <= LONGEST


@pytest.mark.parametrize("rows", [LONGEST, LONGEST + 1, LONGEST + 2, 3 * LONGEST])
@pytest.mark.parametrize(("bases", "shared"), [(0, 0), (3, 2), (200, 0)])
def test_chains_of_rows_are_bounded(rows: int, bases: int, shared: int) -> None:
    first = 1 + bases + shared
    chain = [0, *range(first, first + rows - 1)]  # each row of the one before
    assert takes(chain, bases, shared) == (rows <= LONGEST + 1) == is_sound(chain, bases, shared)
    star = [0] + (rows - 1) * [first]  # each of the first
    assert takes(star, bases, shared)
    assert not takes([*star, first + rows], bases, shared)


def test_bases_are_as_they_are_row_by_row() -> None:
    draw, seen = Random(1), set()
    for _ in range(2000):
        bases, shared, rows = draw.randrange(3), draw.randrange(3), draw.choice([0, 1, 5, 70, 300])
        near = draw.choice([1, 2, 4])  # how far before a row its base is, or so: of short steps come long chains
        row_base = [
            draw.randrange(1 + bases + shared)
            if draw.random() < draw.choice([0.05, 0.5])
            else 1 + bases + shared + max(0, row - draw.choice(range(0 if draw.random() < 0.002 else 1, near + 1)))
            for row in range(rows)
        ]
        expected = is_sound(row_base, bases, shared)
        seen.add((expected, rows > LONGEST))
        assert takes(row_base, bases, shared) == expected
    assert len(seen) == 4


def test_a_row_that_is_lent_again_stays_until_the_new_one_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads may fetch it at once, each an array of its own, while kernels of a third read the first."""
    pool = RowPool(100)
    pool.add_shared(SimpleNamespace(row_of=lambda _: np.full(pool.words, 7, np.uint32)))
    pool.lend(0)
    lent = pool._lent[0]
    before, looked = ref(lent), list[bool]()
    del lent

    def address(array: Array) -> int:
        looked.append(before() is not None)
        return address_of(array)

    address_of = kernels.address
    monkeypatch.setattr(kernels, "address", address)
    pool.lend(0)
    assert looked == [True]
    assert before() is None
    assert pool.dense(0).tolist() == [7] * pool.words
