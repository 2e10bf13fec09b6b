"""The base rows of a vocabulary as one file: shared masks, each row of which is decoded when it is first asked for.

Many are nearly equal, so they are stored as the rows of an index are: some 4,000 of Llama-3 take 1.8 MB, not 68.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import MOST, Column, Columns, Field
from ...storage.container import Buffer, pack, smallest, unpack
from ...system.properties import remembered
from ...system.types import Array, JsonMap
from ...vocabulary.vocabulary import Vocabulary
from ..rows.residuals import COUNT, Residuals
from ..rows.row_pool import RowPool
from .shared_masks import NAME_BYTES, LazySequence, SharedMasks, names_of

#: What the meta section calls such a file; how many of the definitions that have base rows went into it, and whether
#: all of them did.
KIND = "base rows"
_FIELDS = (Field("samples", int), Field("complete", bool))

#: The sections, with those of `RowPool` and `Residuals` (see docs/internals/format.md).
SECTIONS = Columns(
    Column("name", "u1", rows="names", columns=NAME_BYTES),
    Column("first", rows=("names", 1), starts="stretches", order="rises"),
    Column("begin", rows="stretches", below=MOST),
    Column("row", rows="stretches", below="rows"),
    Column("next", rows="stretches", below=COUNT),
)


class BaseRows:
    """What `to_bytes` wrote.

    Parameters
    ----------
    buffer:
        The file; whole rows are used where they lie.
    vocabulary:
        The one that it is of.
    where:
        Which cache it is from, for errors, and for whoever asks whether that cache has them.

    Raises
    ------
    FormatError
        For anything that is not sound. (A residual list is checked against the trie when it is first needed.)
    """

    def __init__(self, buffer: Buffer, vocabulary: Vocabulary, where: str) -> None:
        self.where = where
        meta, sections = unpack(buffer, where)
        if meta.get("kind") != KIND:
            raise FormatError("not the base rows of a vocabulary", where=where)
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        done = columns.read_meta(meta, _FIELDS, sizes, where)
        #: How many definitions went into it, and whether all did.
        self.samples: int = done["samples"]
        self.is_complete: bool = done["complete"]
        self._residuals = Residuals.from_sections(sections, sizes, vocabulary, where)
        self._pool = RowPool.from_sections(sections, sizes, where)
        names, *self._columns = columns.read(sections, SECTIONS, sizes, where).values()
        self._numbers = {name: number for number, name in enumerate(names_of(names))}
        self._known: dict[bytes, SharedMasks] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: bytes) -> bool:
        return name in self._numbers

    def get(self, name: bytes) -> SharedMasks | None:
        """What a name stands for."""
        found = self._known.get(name)
        if found is None and name in self._numbers:
            number = self._numbers[name]
            first, *parts = self._columns
            i, j = first[number : number + 2].tolist()
            begins, rows, lists = (part[i:j].tolist() for part in parts)
            residual = self._residuals.__getitem__
            found = SharedMasks(begins, LazySequence(rows, self._row), LazySequence(lists, residual))
            self._known[name] = found
        return found

    def all_masks(self) -> dict[bytes, SharedMasks]:
        """All of them by name."""
        return {name: masks for name in self._numbers if (masks := self.get(name)) is not None}

    @remembered
    def _row(self, number: int) -> NDArray[np.uint32]:
        """A row, decoded once for all indexes."""
        return self._pool.dense(number).view(np.uint32)


def to_bytes(masks: Mapping[bytes, SharedMasks], samples: int, is_complete: bool, size: int) -> bytes:
    """A file of shared masks by name, of a vocabulary of ``size`` ids, and what else `BaseRows` tells."""
    pool, residuals = RowPool(size), Residuals()
    found: dict[str, list[int]] = {"first": [0], "begin": [], "row": [], "next": []}
    for mask in masks.values():
        found["row"] += map(pool.add_dense, mask.rows)
        found["next"] += map(residuals.add, mask.residuals)
        found["begin"] += mask.begins
        found["first"].append(len(found["begin"]))
    sections: dict[str, Array] = {"name": np.frombuffer(b"".join(masks), np.uint8).reshape(-1, NAME_BYTES)}
    sections |= {name: smallest(np.array(column, np.int64)) for name, column in found.items()}
    meta: JsonMap = {"kind": KIND, "samples": samples, "complete": is_complete}
    return pack(meta, sections | pool.to_sections() | residuals.to_sections())
