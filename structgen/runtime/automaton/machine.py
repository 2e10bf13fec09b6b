"""`AutomatonMachine`: a byte automaton with its rows, as a `Machine` that guides move over.

Everything on the way of a step is plain Python over dictionaries: following a token of five bytes costs about as
much as one call into compiled code, a remembered one far less, and serving needs no compiler in the process.

A configuration is an integer: the state plus, where the automaton counts, ``states`` times the count.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...progress import Progress, silent
from ...storage import columns
from ...storage.columns import MOST, Column
from ...storage.container import smallest
from ...system.locks import Lock, Rank
from ...system.memo import shorten
from ...system.types import Array, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.dense_rows import DENSE_ROWS
from ..core.machine import CompiledMachine, Match, Productions, Symbol, ranges_of
from ..rows.bitmask import widened
from ..rows.row_pool import RowPool, Segments
from .tables import DEAD, FIELDS, SET, Tables

if TYPE_CHECKING:
    from .distances import AutomatonDistances
    from .partial_masks import TokenMapper

_MISSING = -1

#: States whose transitions are spelled out by byte, two KiB each.
MEMO_STATES = 1 << 12

#: What is remembered by configuration, or by configuration and token.
MEMO_ENTRIES = 1 << 16

#: The sections of the file format (see docs/internals/format.md) that say which row is a state's.
SEGMENTS = (
    Column("seg_start", rows=("segmented", 1), starts="segments", order="rises"),
    Column("seg_begin", rows="segments", below=MOST, order="rises", within="seg_start", first=1),
    Column("seg_row", rows="segments", below="rows"),
)
ROW_OF = (Column("row_of", rows="states", below=("rows", "segmented", 1), cast="i4"),)


class AutomatonMachine(CompiledMachine):
    """A byte automaton over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Parameters
    ----------
    tables:
        The automaton.
    vocabulary:
        The tokens.
    pool:
        The rows, each once.
    row_of:
        ``int32[states]``: a state's row; -1 where it is missing; ``-2 - k`` for ``segmented[k]``.
    segmented:
        The rows of states whose row depends on a count.
    """

    def __init__(
        self,
        tables: Tables,
        vocabulary: Vocabulary,
        pool: RowPool,
        row_of: NDArray[np.int32],
        segmented: list[Segments],
    ) -> None:
        self.tables: Tables = tables
        self.vocabulary = vocabulary
        self.pool = pool
        self.states = self._n = tables.states
        self._row_of = row_of
        self._segmented = segmented
        # Masks: of rows of the pool, with EOS ids or without, and of single counts; see `_row_at`.
        self._masks: dict[tuple[int, bool], NDArray[np.int32]] = {}
        self._by_count: dict[tuple[int, int], NDArray[np.int32]] = {}
        self._size = vocabulary.size
        self._bytes = vocabulary.bytes
        self._bounds = vocabulary.offsets.data  # yields ints, faster than an array's scalars
        self._accepting = tables.accepting.tobytes()
        self._live = tables.live.tolist() if len(tables.loops) else None
        self._next: dict[int, list[int]] = {}  # by state, the targets of the 256 bytes
        self._targets: dict[int, int] = {}
        self._rows: dict[int, NDArray[np.int32]] = {}
        self.remembered = self._targets, self._rows
        self._decodings = 0  # of the pool's, while these rows were remembered
        self._numbers = row_of.data  # likewise
        self._starts = tables.edge_start.data
        self._edges = tables.edge_low.data, tables.edge_high.data, tables.edge_target.data
        self._mapper: TokenMapper | None = None
        self._lock = Lock(Rank.MACHINE)

    @property
    def start(self) -> int:
        """The initial configuration."""
        return self.tables.start

    def distances(self) -> AutomatonDistances:
        """How far configurations are from a complete text: exact."""
        from .distances import AutomatonDistances

        return AutomatonDistances(self.tables, self.vocabulary)

    def flat(self) -> AutomatonMachine:
        """This machine: it has no stack."""
        return self

    # -- following bytes -------------------------------------------------------------------------------

    def advance(self, config: int, token_id: int) -> int | None:
        """Follow a token's bytes; ``None`` where they die or the token has none."""
        key = config * self._size + token_id
        target = self._targets.get(key)
        if target is None:
            data = self._bytes[self._bounds[token_id] : self._bounds[token_id + 1]]
            target = self.follow(config, data) if data else DEAD
            self._targets[key] = target
            shorten(self._targets, MEMO_ENTRIES)
        return target if target >= 0 else None

    def follow(self, config: int, data: bytes) -> int:
        """Where some bytes lead, -1 where they die."""
        moves = self._next
        if self._live is not None:
            return self._follow_counting(config, data)
        for byte in data:
            targets = moves.get(config)
            if targets is None:
                targets = self._spell_out(config)
            config = targets[byte]
            if config < 0:
                return DEAD
        return config

    def _follow_counting(self, config: int, data: bytes) -> int:
        count, state = divmod(config, self._n)
        for byte in data:
            state, count = self._step(state, count, byte)
            if state < 0:
                return DEAD
        return state + self._n * count

    def _step(self, state: int, count: int, byte: int) -> tuple[int, int]:
        """One byte of an automaton that counts: the next state (or -1) and the next count."""
        target = (self._next.get(state) or self._spell_out(state))[byte]
        if target >= self._n:
            operation, loop, low, mid, high = self.tables.records[target - self._n].tolist()
            if operation == SET:
                target, count = low, 1
            else:
                count += 1
                least, most = self.tables.loops[loop].tolist()
                target = high if count >= most else mid if count >= least else low
        if target < 0 or self._live is None or self._live[target] < 0:
            count = 0
        return target, count

    def _spell_out(self, state: int) -> list[int]:
        """The target of each byte from a state, `DEAD` where there is none; remembered."""
        begin, end = self._starts[state], self._starts[state + 1]
        targets = [DEAD] * 256
        for low, high, target in zip(*(edges[begin:end] for edges in self._edges), strict=True):
            if low == high:
                targets[low] = target
            else:
                targets[low : high + 1] = [target] * (high + 1 - low)
        self._next[state] = targets
        shorten(self._next, MEMO_STATES)
        return targets

    def productions(self, symbol: Symbol | None = None) -> tuple[Symbol, Productions]:
        """Where bytes lead from a state with its count: each production has one symbol."""
        state, count = symbol or (self.tables.start, 0)
        by_target: dict[int, bytearray] = {}
        for byte, target in enumerate(self._next.get(state) or self._spell_out(state)):
            if target != DEAD:
                by_target.setdefault(target, bytearray()).append(byte)
        moves = [(bytes(data), self._step(state, count, data[0])) for data in by_target.values()]
        found = [(data, (target,)) for data, target in moves if target[0] >= 0]
        return (state, count), Productions(bool(self._accepting[state]), found)

    def loop(self, state: int) -> tuple[int, int, int] | None:
        """The loop whose count a state depends on: its number, and how often it goes round at least and at most."""
        number = int(self.tables.live[state])
        return None if number < 0 else (number, *self.tables.loops[number].tolist())

    def is_unambiguous(self, meter: Meter) -> bool:
        """An automaton without a stack is deterministic."""
        return True

    def follow_byte(self, config: int, byte: int) -> int | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        target = self.follow(config, bytes([byte]))
        return target if target >= 0 else None

    def repeats(self, config: int) -> bool:
        """Whether nothing is counted."""
        return config < self._n

    def is_accepting(self, config: int) -> bool:
        """Whether the text so far is complete."""
        return bool(self._accepting[config % self._n])

    def match(self, data: bytes) -> Match:
        """Follow a text byte by byte, as far as it goes."""
        state, count = self.tables.start, 0
        for i, byte in enumerate(data):
            target, new_count = self._step(state, count, byte)
            if target < 0:
                return Match(i, False, bool(self._accepting[state]), self._expected(state, count))
            state, count = target, new_count
        can_end = bool(self._accepting[state])
        return Match(len(data), can_end, can_end, self._expected(state, count))

    def _expected(self, state: int, count: int) -> tuple[tuple[int, int], ...]:
        return ranges_of(sorted(byte for byte, _ in self.following(state + self._n * count)))

    def byte_state(self, config: int) -> int:
        """Where a configuration is, for `following`."""
        return config

    def following(self, byte_state: int) -> Iterator[tuple[int, int]]:
        """Each byte that can follow, in no order, and the byte state after it, found as they are asked for."""
        count, state = divmod(byte_state, self._n)
        for byte, target in enumerate(self._next.get(state) or self._spell_out(state)):
            if target >= 0:
                target, new_count = self._step(state, count, byte)
                if target >= 0:
                    yield byte, target + self._n * new_count

    def after(self, byte_state: int, byte: int) -> int | None:
        """The byte state after a byte, None where it can't follow."""
        return self.follow_byte(byte_state, byte)

    def may_stop(self, byte_state: int) -> bool:
        """Whether something other than a byte may follow: the end of the text."""
        return self.is_accepting(byte_state)

    # -- rows ------------------------------------------------------------------------------------------

    def row(self, config: int) -> NDArray[np.int32]:
        """The bitmask row of a configuration: read-only ``int32[words]``, EOS ids included."""
        row = self._rows.get(config)
        return self._find_row(config) if row is None else row

    def _find_row(self, config: int) -> NDArray[np.int32]:
        count, state = divmod(config, self._n)
        with self._lock:
            fresh = self._numbers[state] == _MISSING
            row = self._row_at(state, count) if fresh else None
            if row is not None:
                fresh = False
            else:
                if fresh:
                    self.put(state, self._map().segments(state))
                number = self._numbers[state]
                if number < _MISSING:
                    segments = self._segmented[-2 - number]
                    number = segments.rows[bisect_right(segments.begins, count) - 1]
                row = self._mask(number, state)
            if self._decodings != self.pool.decodings:  # those of the pool are bounded, if nothing else keeps them
                self._decodings = self.pool.decodings
                self._rows.clear()
                self._masks.clear()
            self._rows[config] = row
            shorten(self._rows, MEMO_ENTRIES)
            masks = len(self._by_count) + len(self._masks)
            DENSE_ROWS.note(self, self.pool.decoded_bytes + 4 * self.vocabulary.words * masks)
        if fresh and self._told:
            self._told()
        return row

    def _mask(self, number: int, state: int) -> NDArray[np.int32]:
        """The mask of a state that has a row of the pool, read-only ``int32[words]``: the row with its EOS ids."""
        accepting = bool(self._accepting[state])
        if not accepting and self.pool.words == self.vocabulary.words:
            return self.pool.dense(number)
        mask = self._masks.get((number, accepting))
        if mask is None:
            row = self.pool.fresh(number, self.vocabulary.words)
            mask = self._masks[number, accepting] = self._finished(row, state)
        return mask

    def _finished(self, row: NDArray[np.int32], state: int) -> NDArray[np.int32]:
        """A new row with the EOS ids of a state, and read-only."""
        if self._accepting[state]:
            row |= self.vocabulary.eos_row
        row.flags.writeable = False
        return row

    def _row_at(self, state: int, count: int) -> NDArray[np.int32] | None:
        """The row of a state that counts at one count. A thousand counts have as many, and a text comes to few: they
        are no part of what the index keeps."""
        if self.tables.live[state] < 0:
            return None
        mapper = self._map()
        key = state, mapper.representative(state, count)
        row = self._by_count.get(key)
        if row is None:
            found = mapper.row_at(*key)
            if found is not None:
                row = self._by_count[key] = self._finished(widened(found, self.vocabulary.words), state)
        return row

    def let_go(self) -> None:
        """Forget what can be decoded again; see `structgen.runtime.core.dense_rows`."""
        self.pool.let_go_of_decoded()
        self._by_count.clear()
        self._masks.clear()
        self._rows.clear()

    def put(self, state: int, segments: Segments) -> None:
        """Record the rows of a state, if there are none; their numbers refer to this machine's pool."""
        if self._row_of[state] != _MISSING:
            return
        if len(segments.rows) == 1:
            self._row_of[state] = segments.rows[0]
        else:
            self._row_of[state] = -2 - len(self._segmented)
            self._segmented.append(segments)

    def all_rows(self) -> Iterator[tuple[int, int, NDArray[np.int32]]]:
        """Every state and count from which it has another mask, with that mask; missing ones are worked out."""
        self.fill()
        for state, begin, number in self._numbered():
            yield state, begin, self._stored_mask(number, state)

    def stored_rows(self) -> Iterator[NDArray[np.int32]]:
        """The masks that are known ahead of time, each once: read-only ``int32[words]``."""
        states = {(number, self._accepting[state]): state for state, _, number in self._numbered()}
        return (self._stored_mask(number, state) for (number, _), state in states.items())

    def _numbered(self) -> Iterator[tuple[int, int, int]]:
        """Every state, and count from which it has another row, with the number of that row; without missing ones."""
        for state, number in enumerate(self._row_of.tolist()):
            if number != _MISSING:
                segments = self._segmented[-2 - number] if number < _MISSING else Segments((0,), (number,))
                yield from ((state, *each) for each in zip(segments.begins, segments.rows, strict=True))

    def _stored_mask(self, number: int, state: int) -> NDArray[np.int32]:
        with self._lock:
            return self._mask(number, state)

    def missing(self) -> list[int]:
        """The states whose rows have not been worked out."""
        found: list[int] = np.flatnonzero(self._row_of == _MISSING).tolist()
        return found

    @property
    def known_rows(self) -> int:
        """How many states' rows have been worked out so far."""
        return self._n - len(self.missing())

    def is_complete(self) -> bool:
        """Whether every state's rows have been worked out."""
        return not (self._row_of == _MISSING).any()

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out every missing row; see `TokenMapper.all_segments`."""
        if states := self.missing():
            every = self._map().all_segments(states, threads=threads, meter=meter, progress=progress)
            for state, segments in every:
                with self._lock:
                    self.put(state, segments)
                    self._lock.give_way()
            with self._lock:
                self._by_count.clear()
                self._mapper = None  # a complete index needs neither the kernels' form of its tables
                self.pool.compact()  # nor room to grow

    def _map(self) -> TokenMapper:
        with self._lock:
            if self._mapper is None:
                from .partial_masks import TokenMapper

                self._mapper = TokenMapper(self.tables, self.vocabulary, self.pool, self._lock)
            return self._mapper

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section, beyond what every index has."""
        return {"states": self.states, "start": self.start}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md); always self-contained."""
        with self._lock:
            sections = self.tables.to_sections() | self.pool.to_sections()
            # 0: missing; 1 + r: row r; 1 + rows + k: the k-th state whose row depends on a count.
            row_of, rows = self._row_of.astype(np.int64), len(self.pool)
            sections["row_of"] = smallest(np.where(row_of < _MISSING, rows - 1 - row_of, row_of + 1))
            if self._segmented:
                lengths = np.cumsum([0] + [len(s.rows) for s in self._segmented])
                sections |= {
                    "seg_start": lengths.astype(np.uint32),
                    "seg_begin": np.array([b for s in self._segmented for b in s.begins], np.uint32),
                    "seg_row": np.array([r for s in self._segmented for r in s.rows], np.uint32),
                }
        return sections

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> AutomatonMachine:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        columns.read_meta(meta, FIELDS, sizes, where)
        tables = Tables.from_sections(sections, sizes, where)
        pool = RowPool.from_sections(sections, sizes, where)
        segmented: list[Segments] = []
        if "seg_start" in sections:
            found = columns.read(sections, SEGMENTS, sizes, where)
            bounds, begins, numbers = (column.tolist() for column in found.values())
            segmented = [Segments(tuple(begins[i:j]), tuple(numbers[i:j])) for i, j in pairwise(bounds)]
        sizes.setdefault("segmented", 0)
        row_of = columns.read(sections, ROW_OF, sizes, where)["row_of"]
        row_of -= 1
        beyond = row_of >= len(pool)
        row_of[beyond] = len(pool) - 2 - row_of[beyond]
        return cls(tables, vocabulary, pool, row_of, segmented)
