"""`AutomatonMachine`: a byte automaton with its rows, as a `Machine` that guides move over.

Kernels step and write masks over the automaton's own tables (`structgen.kernels.store.automata`); nothing is
remembered of texts. Python works out rows that are missing.

A configuration is an integer: the state plus, where the automaton counts, ``states`` times the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Meter
from ...errors import BitmaskError, FormatError, InternalError
from ...kernels import BY_COUNT, MISSING
from ...progress import Progress, silent
from ...storage import columns
from ...storage.columns import MOST, Column, Columns
from ...storage.container import smallest
from ...system.locks import Lock, Rank
from ...system.types import Array, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import CompiledMachine, Match, Productions, StepFunctions, Symbol, ranges_of
from ..rows.head import Head
from ..rows.row_pool import MOST_GROWN, RowPool, Segments
from .tables import FIELDS, Tables

if TYPE_CHECKING:
    from .distances import AutomatonDistances
    from .partial_masks import TokenMapper

#: The sections of the file format (see docs/internals/format.md) that say which row is a state's.
SEGMENTS = Columns(
    Column("seg_start", rows=("segmented", 1), starts="segments", order="rises", cast="i4"),
    Column("seg_begin", rows="segments", below=MOST, order="rises", within="seg_start", first=1, cast="i4"),
    Column("seg_row", rows="segments", below="rows"),
)
ROW_OF = Columns(Column("row_of", rows="states", below=("rows", "segmented", 1), cast="i4"))

#: Keys and rows, as many: those of a state at a count, ``state << 32 | count``, ascending.
_Rows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]
_NO_ROWS: _Rows = np.zeros(0, np.int64), np.zeros(0, np.int32)
_COUNT = (1 << 32) - 1  # of a key

#: States whose rows `fill` records together, at first; then twice as many, and so on.
_FEW = 1 << 6


class AutomatonMachine(CompiledMachine):
    """A byte automaton over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Parameters
    ----------
    tables:
        The automaton.
    vocabulary:
        The tokens.
    pool:
        The rows, each once; none by default.
    row_of:
        ``int32[states]``: a state's row, `MISSING`, or `BY_COUNT`.
    stretches:
        The rows of states that have one for each stretch of counts: from which state and count on each one holds.
    """

    def __init__(
        self,
        tables: Tables,
        vocabulary: Vocabulary,
        pool: RowPool | None = None,
        row_of: NDArray[np.int32] | None = None,
        stretches: _Rows = _NO_ROWS,
    ) -> None:
        self.tables: Tables = tables
        self.vocabulary = vocabulary
        self.pool = pool = RowPool(vocabulary.spelled) if pool is None else pool
        self.states = self._n = tables.states
        self._row_of = np.full(tables.states, MISSING, np.int32) if row_of is None else row_of
        self._accepting = tables.accepting.tobytes()
        self._head = head = Head(kernels.AUTOMATON_HEAD)
        self._words = head.words
        start, target = (np.ascontiguousarray(each, np.int32) for each in (tables.edge_start, tables.edge_target))
        head.put(  # in the order of `structgen.kernels.store.automata`
            kernels.D_EDGE_START, start, tables.edge_low, tables.edge_high, target, tables.records, tables.loops,
            tables.live, tables.accepting, vocabulary.offsets, vocabulary.blob,
            np.array(vocabulary.eos_ids, np.int32), self._row_of, *stretches, *_NO_ROWS,
        )  # fmt: skip
        head.put(kernels.D_POOL, pool.head.words)
        self._words[kernels.D_LONGEST] = vocabulary.longest
        self._mapper: TokenMapper | None = None
        self._singles: RowPool | None = None  # rows at single counts
        self._lock = Lock(Rank.MACHINE)

    @property
    def start(self) -> int:
        """The initial configuration."""
        return self.tables.start

    @property
    def head(self) -> NDArray[np.int64] | None:
        """Where kernels find the tables (`structgen.kernels.store.automata`), if configurations have 32 bits."""
        most = int(self.tables.loops[:, 1].max(initial=0))
        return self._words if self.states * (most + 1) < 1 << 32 else None

    @property
    def functions(self) -> StepFunctions:
        """Two kernels."""
        return StepFunctions(self._words, kernels.step_automaton, kernels.write_state_mask)

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
        target: int = kernels.step_automaton(self._words, config, token_id)
        return target if target >= 0 else None

    def follow_byte(self, config: int, byte: int) -> int | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        target: int = kernels.step_automaton_byte(self._words, config, byte)
        return target if target >= 0 else None

    def follow(self, config: int, data: bytes) -> NDArray[np.int64]:
        """The configurations behind the bytes of a text, as far as texts go on with it: ``int64[*]``."""
        found = np.empty(len(data), np.int64)
        return found[: kernels.follow_automaton(self._words, config, np.frombuffer(data, np.uint8), found)]

    def reach(self, config: int, data: bytes) -> tuple[int, int]:
        """How many bytes texts go on with, of some, and where these lead."""
        found = self.follow(config, data)
        return len(found), int(found[-1]) if len(found) else config

    def match(self, data: bytes) -> Match:
        """Follow a text byte by byte, as far as it goes."""
        consumed, config = self.reach(self.start, data)
        can_end = self.is_accepting(config)
        expected = ranges_of(byte for byte, _ in self.following(config))
        return Match(consumed, can_end and consumed == len(data), can_end, expected)

    def following(self, byte_state: int) -> Iterator[tuple[int, int]]:
        """Each byte that can follow, ascending, and the byte state after it."""
        found = np.empty((2, 256), np.int64)
        count = kernels.following_bytes(self._words, byte_state, found)
        return zip(*found[:, :count].tolist(), strict=True)

    def productions(self, symbol: Symbol | None = None) -> tuple[Symbol, Productions]:
        """Where bytes lead from a state with its count: each production has one symbol."""
        state, count = symbol or (self.tables.start, 0)
        by_target: dict[int, bytearray] = {}
        for byte, target in self.following(state + self._n * count):
            by_target.setdefault(target, bytearray()).append(byte)
        found = [(bytes(data), ((to % self._n, to // self._n),)) for to, data in by_target.items()]
        return (state, count), Productions(bool(self._accepting[state]), found)

    def loop(self, state: int) -> tuple[int, int, int] | None:
        """The loop whose count a state depends on: its number, and how often it goes round at least and at most."""
        number = int(self.tables.live[state])
        return None if number < 0 else (number, *self.tables.loops[number].tolist())

    def is_unambiguous(self, meter: Meter) -> bool:
        """An automaton without a stack is deterministic."""
        return True

    def is_accepting(self, config: int) -> bool:
        """Whether the text so far is complete."""
        return bool(self._accepting[config % self._n])

    def byte_state(self, config: int) -> int:
        """Where a configuration is, for `following`."""
        return config

    def after(self, byte_state: int, byte: int) -> int | None:
        """The byte state after a byte, None where it can't follow."""
        return self.follow_byte(byte_state, byte)

    def may_stop(self, byte_state: int) -> bool:
        """Whether something other than a byte may follow: the end of the text."""
        return self.is_accepting(byte_state)

    # -- rows ------------------------------------------------------------------------------------------

    def row(self, config: int) -> NDArray[np.int32]:
        """The bitmask row of a configuration: a new read-only ``int32[words]``, EOS ids included."""
        row = np.empty(self.vocabulary.words, np.int32)
        self.write_mask(config, row)
        row.flags.writeable = False
        return row

    def write_mask(self, config: int, bitmask: NDArray[np.int32]) -> None:
        """Write the bitmask of a configuration to a contiguous ``int32[*]``, as wide as spelled tokens need, or more.

        What is wider than the bitmask becomes zero.
        """
        status = kernels.write_state_mask(self._words, config, bitmask)
        if status:
            self.write_slowly(config, bitmask, status)

    def write_slowly(self, config: int, bitmask: NDArray[np.int32], status: int) -> None:
        """See `Stepper`."""
        fresh = False
        with self._lock:
            while status := kernels.write_state_mask(self._words, config, bitmask):
                if status == kernels.TOO_SHORT:
                    raise BitmaskError(f"a mask has {self.pool.words} words or more, got {len(bitmask)}")
                if status != kernels.NO_ROW:
                    raise InternalError(f"there is no configuration {config} ({status})")
                fresh |= self._work_out(config % self._n, config // self._n)
        if fresh and self._told:
            self._told()

    def _work_out(self, state: int, count: int) -> bool:
        """Work out a row that is missing. Returns whether it is part of what the index keeps."""
        mapper = self._map()
        if self.tables.live[state] >= 0:  # a thousand counts have as many rows, and a text comes to few
            count = mapper.representative(state, max(count, 1))
            row = mapper.row_at(state, count)
            if row is not None:
                self._add_single(state << 32 | count, row)
                return False
        self.put([(state, mapper.segments(state))])
        return True

    def _add_single(self, key: int, row: NDArray[np.uint32]) -> None:
        keys, rows = (self._head[place] for place in (kernels.D_SINGLES, kernels.D_SINGLE_ROWS))
        singles = self._singles
        if singles is None or singles.grown > MOST_GROWN:
            singles, (keys, rows) = RowPool(self.pool.size), _NO_ROWS
        at, number = int(np.searchsorted(keys, key)), singles.add_dense(row)
        self._head.put(kernels.D_SINGLES, np.insert(keys, at, key), np.insert(rows, at, number), singles.head.words)
        self._singles = singles  # kernels of other threads read the one before until now

    def put(self, found: Iterable[tuple[int, Segments]]) -> None:
        """Record the rows of states that have none; their numbers refer to this machine's pool."""
        keys, rows, states = list[int](), list[int](), list[int]()
        with self._lock:
            for state, segments in found:
                if self._row_of[state] != MISSING:
                    continue
                if len(segments.rows) == 1:
                    self._row_of[state] = segments.rows[0]
                else:
                    states.append(state)
                    keys += [state << 32 | begin for begin in segments.begins]
                    rows += segments.rows
            if states:
                known = self._stretches()
                self._head.put(kernels.D_STRETCHES, *_in_order(np.append(known[0], keys), np.append(known[1], rows)))
                self._row_of[states] = BY_COUNT

    def _stretches(self) -> _Rows:
        arrays = self._head
        return arrays[kernels.D_STRETCHES], arrays[kernels.D_STRETCH_ROWS]

    def _numbered(self) -> _Rows:
        """Every state, and count from which it has another row, and the rows; without missing ones."""
        with self._lock:
            begins, rows = self._stretches()
            plain = np.flatnonzero(self._row_of >= 0)
            return _in_order(np.append(begins, plain << 32), np.append(rows, self._row_of[plain]))

    def all_rows(self) -> Iterator[tuple[int, int, NDArray[np.int32]]]:
        """Every state and count from which it has another mask, with that mask; missing ones are worked out."""
        self.fill()
        for key in self._numbered()[0].tolist():
            state, begin = key >> 32, key & _COUNT
            yield state, begin, self.row(state + self._n * begin)

    def stored_rows(self) -> Iterator[NDArray[np.int32]]:
        """The masks that are known ahead of time, each once: read-only ``int32[words]``."""
        keys, rows = self._numbered()
        kinds = 2 * rows.astype(np.int64) + self.tables.accepting[keys >> 32]
        for key in keys[np.unique(kinds, return_index=True)[1]].tolist():
            yield self.row((key >> 32) + self._n * (key & _COUNT))

    def missing(self) -> list[int]:
        """The states whose rows have not been worked out."""
        found: list[int] = np.flatnonzero(self._row_of == MISSING).tolist()
        return found

    @property
    def known_rows(self) -> int:
        """How many states' rows have been worked out so far."""
        return self._n - len(self.missing())

    def is_complete(self) -> bool:
        """Whether every state's rows have been worked out."""
        return not (self._row_of == MISSING).any()

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out every missing row; see `TokenMapper.all_segments`."""
        states = self.missing()
        if not states:
            return
        waiting, most = list[tuple[int, Segments]](), _FEW
        try:
            for each in self._map().all_segments(states, threads=threads, meter=meter, progress=progress):
                waiting.append(each)
                if len(waiting) == most:
                    self.put(waiting)
                    waiting, most = [], 2 * most
        finally:
            self.put(waiting)
        with self._lock:
            self._head.put(kernels.D_SINGLES, *_NO_ROWS)
            self._singles = self._mapper = None  # a complete index needs neither the kernels' form of its tables
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
            keys, numbers = self._stretches()
            states, starts = np.unique(keys >> 32, return_index=True)
            row_of = self._row_of.astype(np.int64) + 1
            row_of[states] = 1 + len(self.pool) + np.arange(len(states))
            sections["row_of"] = smallest(row_of)
            if len(states):
                sections |= {
                    "seg_start": np.append(starts, len(keys)).astype(np.uint32),
                    "seg_begin": (keys & _COUNT).astype(np.uint32),
                    "seg_row": numbers.astype(np.uint32),
                }
        return sections

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> AutomatonMachine:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        columns.read_meta(meta, FIELDS, sizes, where)
        tables = Tables.from_sections(sections, sizes, where)
        pool = RowPool.from_sections(sections, sizes, where)
        stretches = _NO_ROWS
        if "seg_start" in sections:
            starts, begins, numbers = columns.read(sections, SEGMENTS, sizes, where).values()
        segmented, rows = sizes.setdefault("segmented", 0), len(pool)
        row_of = columns.read(sections, ROW_OF, sizes, where)["row_of"]
        row_of -= 1
        if segmented:
            states = np.flatnonzero(row_of >= rows)
            states = states[np.argsort(row_of[states])]
            if not np.array_equal(row_of[states], np.arange(rows, rows + segmented)):
                raise FormatError("section 'row_of' does not have each entry of 'seg_start' once", where=where)
            stretches = _in_order(np.repeat(states, np.diff(starts)) << 32 | begins, numbers)
            row_of[states] = BY_COUNT
        return cls(tables, vocabulary, pool, row_of, stretches)


def _in_order(keys: Array, rows: Array) -> _Rows:
    """Rows by ascending keys."""
    order = np.argsort(keys)
    return keys[order].astype(np.int64, copy=False), rows[order].astype(np.int32, copy=False)
