"""The pool of an index's bitmask rows: each distinct row once, and most of them small.

A row is a *base* with some bits flipped. Base 0 is the empty row, so that a row of a few tokens is a short list
of ids; further bases are whole rows, and a row that nearly equals one is a short list of differences. A row is
stored whole, as a new base, when no list of at most half as many ids as it has words would do.

Two more kinds of bases serve automata with a stack: an earlier row of the same pool, and a *shared* row, which
belongs to the vocabulary (what may stand inside a string, say) and is kept outside the index. In memory a base is
an int: 0 empty, ``b > 0`` the whole row ``b - 1``, ``-1 - r`` row ``r``, ``SHARED + k`` shared row ``k``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import FormatError, InternalError
from ...kernels.values import LONG_GAP
from ...storage import columns
from ...storage.columns import Column, Columns, Sizes, count_set
from ...storage.container import smallest
from ...system.digest import blake2b
from ...system.types import Array, Sections
from .head import FirstTables, Head, longer

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = Columns(
    Column("bases", "u4", rows="bases", members="spelled", mapped=True),
    Column("row_base", rows="rows", below=("rows", "bases", "shared", 1), cast="i4"),
    Column("row_start", rows=("rows", 1), starts="row gaps", cast="i4"),
    Column("row_gaps", "u2", rows="row gaps", within="row_start", gaps="spelled"),
)

#: Above this, a base is a shared row.
SHARED = 1 << 30

#: Lists of at least this many ids are compared with this many earlier ones when an index is finished.
_WORTH_REBASING, _REBASING_CANDIDATES = 64, 24

#: Bytes of what is worked out as guides need it, rows and residual lists with their places, that machines keep beside
#: what was there before; past that it is worked out anew.
MOST_GROWN = 256 << 20


_NO_GAPS = np.zeros(0, np.uint16)

#: Rows, gaps, and shared rows that a pool has room for to begin with, once some are added.
_FEW_ROWS, _FEW_GAPS, _FEW_SHARED = 1 << 6, 1 << 12, 1 << 3


@dataclass(frozen=True)
class Segments:
    """The rows of one state: ``rows[i]`` holds for counts from ``begins[i]`` up to the next one's beginning.

    A state without a live counter has the single segment that begins at 0.
    """

    begins: tuple[int, ...]
    rows: tuple[int, ...]


#: The tables to begin with: where there are no rows yet, and where a file has them.
_FIRST_OF_FILE, _FIRST = (
    FirstTables(
        kernels.POOL_HEAD,
        {
            kernels.R_WHOLE: np.zeros(0, np.uint32),
            kernels.R_SHARED: np.zeros(2 * _FEW_SHARED, np.int64),
            kernels.R_BASE: np.zeros(rows, np.int32),
            kernels.R_START: np.zeros(rows + 1, np.int64),
            kernels.R_GAPS: np.zeros(_FEW_GAPS if rows else 0, np.uint16),
            kernels.R_SLOTS: np.full(4 * rows, -1, np.int32),
        },
    )
    for rows in (0, _FEW_ROWS)
)


class RowSource(Protocol):
    """Rows that are kept elsewhere."""

    def row_of(self, number: int) -> NDArray[np.uint32]:
        """The row of a number."""


class RowPool:
    """Bitmask rows of one vocabulary, deduplicated. Rows are added, and all taken away that came since a mark.

    Lists of ids are kept as gaps (see `encode_gaps`), two bytes for nearly every id.

    Parameters
    ----------
    size:
        One more than the last token id that has bytes; rows are ``int32[ceil(size / 32)]``, without EOS ids.
    flat:
        Rows of a file: ``row_base``, ``row_start`` and ``row_gaps``; None for none.
    bases:
        The whole rows among them, ``uint32[*, words]``; None without a file.
    shared:
        How many shared rows they are differences from, at most.
    """

    def __init__(
        self,
        size: int,
        flat: tuple[Array, Array, NDArray[np.uint16]] | None = None,
        bases: NDArray[np.uint32] | None = None,
        shared: int = 0,
    ) -> None:
        self.size = size
        self.words = -(-size // 32)
        #: Where kernels find the rows; see `structgen.kernels.store.layout`.
        self.head = Head(_FIRST if flat is None else _FIRST_OF_FILE)
        self.head.words[kernels.R_WORDS] = self.words
        # The first `_n_bases` rows are in use.
        self._bases = np.zeros((0, self.words), np.uint32)
        if bases is not None:
            self._hold_whole(bases)
        self._n_bases = len(self._bases)
        # How many shared rows there are, how to get one by its number among them, and those that kernels were lent.
        self._n_shared = 0
        self._source: RowSource | None = None
        self._lent: dict[int, NDArray[np.uint32]] = {}
        self._shared = self.head[kernels.R_SHARED]
        self._laid_out = 0  # rows that were there when they were laid out; those behind them were added
        if flat is None:
            arrays = self.head
            self._base, self._start = arrays[kernels.R_BASE], arrays[kernels.R_START]
            self._gaps: NDArray[np.uint16] = arrays[kernels.R_GAPS]
        else:
            self._hold_flat(flat, shared)
        self._by_content: dict[bytes, int] | None = None  # whole rows, and what differs from these, by content
        self._before = self.nbytes  # when it was last compacted or cut

    def _hold_whole(self, bases: NDArray[np.uint32]) -> None:
        self._bases = bases
        self.head.put(kernels.R_WHOLE, bases.reshape(-1))

    def _hold_flat(self, flat: tuple[Array, Array, NDArray[np.uint16]], shared: int) -> None:
        """Have the rows of a file: row r is base ``_base[r]`` and gaps ``_gaps[_start[r]:_start[r + 1]]``."""
        numbers, start, gaps = flat
        if len(numbers) and int(numbers.max()) > self._n_bases:
            others = numbers - (self._n_bases + 1)
            beyond = np.where(others < shared, SHARED + others, shared - 1 - others)
            numbers = np.where(others < 0, numbers, beyond)
        #: Rows that were there when they were laid out; those behind them were added.
        self._laid_out = len(numbers)
        self.head.words[kernels.R_COUNT] = len(numbers)
        self._hold(numbers, start.astype(np.int64), gaps)
        self._forget_slots()

    def _hold(self, base: NDArray[np.int32], start: NDArray[np.int64], gaps: NDArray[np.uint16]) -> None:
        self._base, self._start, self._gaps = base, start, gaps
        self.head.put(kernels.R_BASE, base, start, gaps)

    def _forget_slots(self) -> None:
        self.head.put(kernels.R_SLOTS, np.zeros(0, np.int32))

    @property
    def longest_list(self) -> int:
        """Rows of at most this many tokens are always lists of ids."""
        return self.words // 2

    def __len__(self) -> int:
        return int(self.head.words[kernels.R_COUNT])

    @property
    def _n_gaps(self) -> int:
        return int(self._start[len(self)])

    @property
    def nbytes(self) -> int:
        """Bytes of the rows as stored."""
        return 4 * self.words * self._n_bases + 6 * len(self) + 2 * self._n_gaps

    @property
    def grown(self) -> int:
        """Bytes of what was added, about, since it was last compacted or cut."""
        return 4 * (self.nbytes - self._before)  # with room for more, and slots

    # -- adding ----------------------------------------------------------------------------------------

    def add_ids(self, ids: Array) -> int:
        """The number of the row with exactly these token ids, in any order."""
        if len(ids) > self.longest_list:
            return self.add_dense(row_of(ids, self.words))
        return self.add_gaps(encode_gaps(np.sort(ids)))

    def add_gaps(self, gaps: NDArray[np.uint16]) -> int:
        """`add_ids` for at most `longest_list` ids as `encode_gaps` has them; the caller may reuse the array."""
        return self._add(0, gaps)

    def add_dense(self, row: NDArray[np.uint32]) -> int:
        """The number of this row, ``uint32[words]``; the array may be reused by the caller."""
        key, whole = _digest(row), self._whole_rows()
        known = whole.get(key)
        if known is not None:
            return known
        base, bits = kernels.nearest_base(row, self._bases, self._n_bases, self.longest_list)
        if bits > self.longest_list:
            number = whole[key] = self._add(self._new_base(row), _NO_GAPS)
            return number
        ids = np.empty(bits, np.uint32)
        kernels.set_bits(row, self._bases[base - 1] if base else np.zeros_like(row), ids)
        number = self._add(base, encode_gaps(ids))
        if base:
            whole[key] = number
        return number

    def add_difference(self, row: int, gaps: NDArray[np.uint16]) -> int:
        """The number of the row that differs from ``row`` in some token ids, as `encode_gaps` has them."""
        if not len(gaps):
            return row
        base, own = self._row(row)
        if base == 0 and not len(own) and len(gaps) <= self.longest_list:
            return self.add_gaps(gaps)
        return self._add(-1 - row, gaps)

    def union(self, row: int, other: int) -> int:
        """The number of the row of the tokens in either."""
        bits = self.dense(row).view(np.uint32)
        base, gaps = self._row(other)
        if base == 0:
            more = np.empty(len(gaps), np.uint16)
            return self.add_difference(row, more[: kernels.missing_gaps(bits, gaps, more)])
        new = self.dense(other).view(np.uint32) & ~bits
        ids = np.flatnonzero(np.unpackbits(new.view(np.uint8), bitorder="little")).astype(np.uint32)
        return self.add_difference(row, encode_gaps(ids))

    def add_to(self, row: NDArray[np.int32], number: int) -> None:
        """Set the bits of a pool's row in ``row``, ``int32[words]`` or wider."""
        base, gaps = self._row(number)
        if base != 0:
            own = row[: self.words]
            np.bitwise_or(own, self.dense(number), out=own)
        else:
            kernels.set_gaps(row, gaps)

    def add_shared(self, source: RowSource) -> int:
        """The number of a row that is kept elsewhere.

        ``source`` is asked for it when it is first needed, by how many shared rows there were before it.
        """
        self.share(1, source)
        return self._add(SHARED + self._n_shared - 1, _NO_GAPS)

    def share(self, count: int, source: RowSource) -> None:
        """Have so many shared rows more, of a source that is the same for all."""
        self._n_shared += count
        self._source = source

    def are_shared(self, rows: Array) -> bool:
        """Whether these rows of a file are its shared rows, each in its turn, and nothing more."""
        is_expected = self._base[rows] == np.arange(SHARED, SHARED + len(rows))
        is_plain = self._start[rows] == self._start[rows + 1]
        return bool((is_expected & is_plain).all())

    def lend(self, shared: int) -> None:
        """Have kernels find a shared row, by its number among them."""
        row = self._shared_row(shared)
        while 2 * shared >= len(self._shared):
            wider = np.zeros(2 * len(self._shared), np.int64)
            wider[: len(self._shared)] = self._shared
            self._shared = wider
            self.head.put(kernels.R_SHARED, wider)
        row = np.ascontiguousarray(row)
        self._shared[2 * shared + 1] = len(row)
        self._shared[2 * shared] = kernels.address(row)
        self._lent[shared] = row  # kernels of other threads read the one before until now, if it was lent twice at once

    def _new_base(self, row: NDArray[np.uint32]) -> int:
        if self._n_bases == len(self._bases):
            wider = np.empty((2 * self._n_bases + 2, self.words), np.uint32)
            wider[: self._n_bases] = self._bases[: self._n_bases]
            self._hold_whole(wider)
        self._bases[self._n_bases] = row
        self._n_bases += 1
        return self._n_bases

    def _add(self, base: int, gaps: NDArray[np.uint16]) -> int:
        while (number := kernels.put_row(self.head.words, base, gaps)) < 0:
            self.make_room()
        return int(number)

    def make_room(self) -> None:
        """Have room for one row more, of as many gaps as a kernel asked for."""
        n, used = len(self), self._n_gaps
        gaps = used + int(self.head.words[kernels.R_WANTED])
        if n == len(self._base) or gaps > len(self._gaps):
            rows = max(longer(n), _FEW_ROWS) if n == len(self._base) else len(self._base)
            base, start = np.zeros(rows, np.int32), np.zeros(rows + 1, np.int64)
            base[:n], start[: n + 1] = self._base[:n], self._start[: n + 1]
            wider = self._gaps
            if gaps > len(wider):
                wider = np.zeros(max(2 * len(wider), gaps, _FEW_GAPS), np.uint16)
                wider[:used] = self._gaps[:used]
            self._hold(base, start, wider)
        if 2 * n + 2 > len(self.head[kernels.R_SLOTS]):
            self.head.put(kernels.R_SLOTS, np.full(2 << len(self._base).bit_length(), -1, np.int32))
            kernels.number_rows(self.head.words)

    def _whole_rows(self) -> dict[bytes, int]:
        """The numbers of whole rows, and of what differs from them, by content."""
        if self._by_content is None:
            base, self._by_content = self._base[: len(self)], {}
            for number in np.flatnonzero((base > 0) & (base < SHARED)).tolist():
                self._by_content.setdefault(_digest(self.dense(number)), number)
        return self._by_content

    def compact(self) -> None:
        """Move all rows to flat arrays of just their size. More can still be added."""
        self._rebase()
        n = len(self)
        self._hold(self._base[:n].copy(), self._start[: n + 1].copy(), self._gaps[: self._n_gaps].copy())
        self._hold_whole(self._bases[: self._n_bases].copy())
        self._laid_out = n
        self._forget_slots()
        self._by_content = None
        self._before = self.nbytes

    def mark(self) -> tuple[int, int, int]:
        """How much there is now, for `cut`: rows, whole rows and shared rows."""
        return len(self), self._n_bases, self._n_shared

    def cut(self, mark: tuple[int, int, int]) -> None:
        """Take away all rows that came since a mark, which is not older than the last `compact`."""
        self.head.words[kernels.R_COUNT], self._n_bases, self._n_shared = mark
        shared = self._n_shared
        self._forget_slots()
        self._shared[2 * shared :] = 0
        self._lent = {number: row for number, row in self._lent.items() if number < shared}
        self._hold_whole(self._bases[: self._n_bases].copy())  # somebody may hold rows of the old array
        self._by_content = None
        self._before = self.nbytes

    def _rebase(self) -> None:
        """Turn long lists among the added rows into differences from earlier ones that have most ids in common."""
        first, size = self._laid_out, self.size
        rows = [self._row(number) for number in range(first, len(self))]
        earlier: list[tuple[int, int, NDArray[np.bool_]]] = []  # row, ids, and which they are
        for number, (base, gaps) in enumerate(rows, first):
            if base != 0 or len(gaps) < _WORTH_REBASING:
                continue
            ids = decode_gaps(gaps)
            best, fewest = -1, len(ids)
            for row, count, member in earlier:
                if abs(count - len(ids)) < fewest:
                    differ = count + len(ids) - 2 * int(np.count_nonzero(member[ids]))
                    if differ < fewest:
                        best, fewest = row, differ
            if 2 * fewest < len(ids):
                differs = next(member for row, _, member in earlier if row == best).copy()
                differs[ids] ^= True
                rows[number - first] = -1 - best, encode_gaps(np.flatnonzero(differs))
            elif len(earlier) < _REBASING_CANDIDATES:
                member = np.zeros(size, np.bool_)
                member[ids] = True
                earlier.append((number, len(ids), member))
        begin = int(self._start[first])
        ends = begin + np.cumsum([len(gaps) for _, gaps in rows], dtype=np.int64)
        base = np.concatenate([self._base[:first], np.array([base for base, _ in rows], np.int32)])
        gaps = np.concatenate([self._gaps[:begin], *(gaps for _, gaps in rows)])
        self._hold(base, np.concatenate([self._start[: first + 1], ends]), gaps)

    # -- reading ---------------------------------------------------------------------------------------

    def dense(self, row: int) -> NDArray[np.int32]:
        """A row as a read-only ``int32[words]``; the stored array itself where the row is stored whole."""
        base, gaps = self._row(row)
        if base > 0 and not len(gaps):
            dense: NDArray[np.int32] = self._whole(base).view(np.int32)
        else:
            dense = self.fresh(row)
        dense.flags.writeable = False
        return dense

    def listed(self, row: int) -> NDArray[np.int32] | None:
        """The ids of a row that is a list of them, ``int32[*]``; None for any other."""
        base, gaps = self._row(row)
        return None if base != 0 else decode_gaps(gaps).astype(np.int32)

    def few(self, row: int, most: int) -> list[int] | None:
        """The ids of a row that is a list of so many gaps at most; None for any other. Faster than `listed`."""
        base, gaps = self._row(row)
        if base != 0 or len(gaps) > most:
            return None
        steps = gaps.tolist()
        return None if LONG_GAP in steps else list(accumulate(steps))

    def lists(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
        """The ids of all rows that are stored as lists, one row after another.

        Returns ``int32[rows + 1]`` where those of each row begin, ``int32[*]``, and ``bool[rows]`` which are lists.
        """
        n = len(self)
        starts, ids = decode_lists(self._start[: n + 1], self._gaps[: self._n_gaps])
        return starts.astype(np.int32), ids, self._base[:n] == 0

    def fresh(self, row: int, words: int = 0) -> NDArray[np.int32]:
        """A row as a new array of the caller's own, of so many words if these are more."""
        base, gaps = self._row(row)
        bits = np.zeros(max(words, self.words), np.uint32)
        if base < 0:
            bits[: self.words] = self.dense(-1 - base).view(np.uint32)  # a few levels at most, see `from_sections`
        elif base:
            bits[: self.words] = self._whole(base)
        if len(gaps):
            kernels.flip_gaps(bits, gaps)
        dense: NDArray[np.int32] = bits.view(np.int32)
        return dense

    def _whole(self, base: int) -> NDArray[np.uint32]:
        return self._shared_row(base - SHARED) if base >= SHARED else self._bases[base - 1]

    def _shared_row(self, shared: int) -> NDArray[np.uint32]:
        if self._source is None:
            raise InternalError(f"a pool has no shared row {shared}")
        return self._source.row_of(shared)

    def _row(self, number: int) -> tuple[int, NDArray[np.uint16]]:
        return int(self._base[number]), self._gaps[self._start[number] : self._start[number + 1]]

    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self) -> dict[str, Array]:
        """The sections ``bases``, ``row_base``, ``row_start`` and ``row_gaps`` (see docs/internals/format.md)."""
        base = self._base[: len(self)].astype(np.int64)  # as a file has them: 0, whole rows, shared rows, rows
        base[base >= SHARED] -= SHARED - self._n_bases - 1
        base[self._base[: len(self)] < 0] = self._n_bases + self._n_shared - base[base < 0]
        return {
            "bases": self._bases[: self._n_bases],
            "row_base": smallest(base),
            "row_start": smallest(self._start[: len(self) + 1]),
            "row_gaps": self._gaps[: self._n_gaps],
        }

    @classmethod
    def from_sections(cls, sections: Sections, sizes: Sizes, where: str) -> RowPool:
        """Read `to_sections`; whole rows are used where they lie. Raises `FormatError`."""
        sizes.setdefault("shared", 0)
        return cls.from_columns(columns.read(sections, SECTIONS, sizes, where), sizes, where)

    @classmethod
    def from_columns(cls, found: Sections, sizes: Sizes, where: str) -> RowPool:
        """Of what `SECTIONS` declare, among others. Raises `FormatError`.

        The quantity "shared" says how many shared rows there are; the caller says how to get them by `share`.
        """
        if not _bases_are_sound(found["row_base"], sizes["bases"], sizes["shared"]):
            raise FormatError("section 'row_base' has a row that is not before its users, or far before", where=where)
        flat = found["row_base"], found["row_start"], found["row_gaps"]
        return cls(sizes["spelled"], flat, found["bases"], sizes["shared"])


#: How long a chain of rows that are each the base of the next may be.
_LONGEST_CHAIN = 64


def _bases_are_sound(row_base: Array, bases: int, shared: int) -> bool:
    """Whether every base is there, and every row that is a base comes before its users, in short chains."""
    first = 1 + bases + shared  # stands for row 0
    if count_set(row_base >= np.arange(first, first + len(row_base), dtype=np.int32)):
        return False
    is_user = row_base >= first
    if count_set(is_user) < _LONGEST_CHAIN:
        return True  # each row of a chain but the first is a user
    rows = row_base.astype(np.int64) - first
    chained = rows[is_user]
    for _ in range(_LONGEST_CHAIN):
        if not len(chained):
            return True
        chained = rows[chained]
        chained = chained[chained >= 0]
    return False


def _digest(row: Array) -> bytes:
    """What stands for a whole row among the known ones; longer than any confusion with a list of gaps needs."""
    return b"row" + blake2b(row.tobytes(), digest_size=16).digest()


def encode_gaps(ids: Array) -> NDArray[np.uint16]:
    """Ascending ids as the steps between them, the first from 0; a step too long for 16 bits is several."""
    if not len(ids):
        return _NO_GAPS
    gaps = np.empty(len(ids) + int(ids[-1]) // LONG_GAP, np.uint16)
    return gaps[: kernels.write_gaps(ids.astype(np.int32, copy=False), gaps)]


def decode_gaps(gaps: NDArray[np.uint16]) -> NDArray[np.uint32]:
    """The inverse of `encode_gaps`."""
    ids: NDArray[np.uint32] = np.cumsum(gaps, dtype=np.uint32)[gaps != LONG_GAP]
    return ids


def decode_lists(starts: Array, gaps: NDArray[np.uint16]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """`decode_gaps` of lists one behind the other, ``starts[i]`` to ``starts[i + 1]``: the same, with their ids."""
    ids = np.cumsum(gaps, dtype=np.uint32)  # over all lists; what overflows is taken away again
    starts = starts.astype(np.int64)
    if len(ids):
        before = np.where(starts[:-1] > 0, ids[starts[:-1] - 1], np.uint32(0))
        ids -= np.repeat(before, np.diff(starts))
    is_id = gaps != LONG_GAP
    if not is_id.all():
        starts = np.concatenate([[0], np.cumsum(is_id)])[starts]
        ids = ids[is_id]
    return starts, ids.view(np.int32)


def row_of(ids: Array | list[int], words: int) -> NDArray[np.uint32]:
    """The row of some ids, in any order: ``uint32[words]``."""
    row = np.zeros(words, np.uint32)
    kernels.flip_ids(row, np.asarray(ids, np.int32))
    return row
