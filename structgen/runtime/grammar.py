"""`GrammarMachine`: a lexer and a parser over a vocabulary, as a `Machine` that guides move over.

A configuration is a set of threads; nearly always there is one. What threads are, and how they move, is in
`structgen.runtime.grammar_threads`. Configurations are interned and remember where each token led, as in
`structgen.runtime.pushdown`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..errors import FormatError
from ..progress import Progress, silent
from ..vocabulary.vocabulary import Vocabulary
from .automaton import Match
from .embedded import Embedded, row_of
from .grammar_tables import GrammarTables
from .grammar_threads import Reader, Thread
from .lexer_places import ROOT, LexerPlaces, Watched
from .parses import Parse
from .place_table import from_sections, to_sections
from .rows import RowPool
from .stack_masks import StackMasks
from .walked_rows import WalkedRows
from .words import set_at

#: Configurations that are remembered; past that a memo starts afresh.
MEMO_CONFIGS = 1 << 15

#: An eager compile settles so many places at most; the others are settled when they are touched.
_MOST_PLACES = 50_000


class Configuration:
    """A set of threads, with what was found out about it. Interned by its machine."""

    __slots__ = ("accepting", "dense", "targets", "threads")

    def __init__(self, threads: tuple[Thread, ...]) -> None:
        self.threads = threads
        self.targets: dict[int, Configuration | None] = {}
        self.accepting: bool | None = None
        self.dense: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return " | ".join(f"{at} on {parse!r}"[:60] for parse, at, _ in self.threads)


class GrammarMachine:
    """A lexer and a parser over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Safe to use from several threads.

    Parameters
    ----------
    tables, vocabulary:
        The lexer and the parser; the tokens.
    places:
        What lexer states settle, as far as it is known.
    embedded:
        Definitions and special tokens within the grammar.
    filled:
        Whether all was worked out that is worked out ahead of time.
    """

    def __init__(
        self,
        tables: GrammarTables,
        vocabulary: Vocabulary,
        places: LexerPlaces | None = None,
        embedded: Embedded | None = None,
        *,
        filled: bool = False,
    ) -> None:
        self.tables = tables
        self.vocabulary = vocabulary
        self.places = places if places is not None else LexerPlaces(tables, vocabulary)
        self.embedded = embedded if embedded is not None else Embedded()
        self._filled = filled
        self.on_new_row: Callable[[], None] | None = None
        self._reader = Reader(tables, self.places, self.embedded)
        self._bytes = vocabulary.bytes
        self._bounds = vocabulary.offsets.data
        self._configs: dict[tuple[Thread, ...], Configuration] = {}
        self._unions: dict[tuple[Any, ...], tuple[NDArray[np.int32], list[NDArray[np.int32]]]] = {}
        self._generation = 0
        self.masks = StackMasks(
            self.places, self._reader.parses, self._reader.open_to, None if tables.is_deterministic else self._walk
        )
        self._walked = WalkedRows(self.places, self._reader, self.masks.note)
        self._lock = threading.RLock()
        self._row_of_thread: Callable[..., NDArray[np.int32]] = (
            self._walked.row if self.embedded.definitions else self.masks.row
        )
        self._start = self._config((self._reader.start,))

    def _walk(self, parse: Parse, lexer: int, watched: Watched) -> tuple[NDArray[np.int32], int]:
        return self._walked.find(parse, lexer, watched)

    @property
    def start(self) -> Configuration:
        """The initial configuration."""
        return self._start

    def is_empty(self) -> bool:
        """Whether no text can even begin: as far as is looked ahead, the lexer reads none that the parser accepts."""
        return not self.is_accepting(self._start) and not any(map(self._reader.is_alive, self._start.threads))

    @property
    def pool(self) -> RowPool:
        """The rows, each once."""
        return self.places.pool

    @property
    def nbytes(self) -> int:
        """Bytes of the tables and rows as stored."""
        inner = sum(machine.nbytes for _, machine in self.embedded.definitions)
        return self.tables.nbytes + self.pool.nbytes + self.places.resumes.nbytes + inner

    # -- following bytes -------------------------------------------------------------------------------

    def advance(self, config: Any, token_id: int) -> Configuration | None:
        """Follow a token's bytes, or a special token; ``None`` where they die, or the grammar has no such token."""
        try:
            return config.targets[token_id]  # type: ignore[no-any-return]
        except KeyError:
            pass
        data = self._bytes[self._bounds[token_id] : self._bounds[token_id + 1]]
        threads = config.threads if data else self._reader.take(config.threads, token_id)
        for byte in data:
            threads = self._reader.step(threads, byte)
            if not threads:
                break
        threads = tuple(filter(self._reader.is_alive, threads))
        target = self._config(threads) if threads else None
        config.targets[token_id] = target
        return target

    def _config(self, threads: tuple[Thread, ...]) -> Configuration:
        config = self._configs.get(threads)
        if config is None:
            if len(self._configs) >= MEMO_CONFIGS or self._reader.parses.is_full():
                self._forget()
            config = self._configs[threads] = Configuration(threads)
        return config

    def _forget(self) -> None:
        """Let go of all configurations, and of stacks that nobody holds. Guides keep those that they are at."""
        forgotten, self._configs = self._configs, {}
        for known in list(forgotten.values()):
            known.targets = {}
        self._configs[self._start.threads] = self._start
        self._reader.trim()

    def is_accepting(self, config: Any) -> bool:
        """Whether the text so far is complete."""
        if config.accepting is None:
            config.accepting = self._reader.may_end(config.threads)
        return bool(config.accepting)

    def match(self, data: bytes) -> Match:
        """Follow a text byte by byte, as far as it goes. (Special tokens are no part of a text.)"""
        threads = self._start.threads
        for i, byte in enumerate(data):
            following = tuple(filter(self._reader.is_alive, self._reader.step(threads, byte)))
            if not following:
                return self._match(i, len(data), threads)
            threads = following
        return self._match(len(data), len(data), threads)

    def _match(self, consumed: int, length: int, threads: tuple[Thread, ...]) -> Match:
        can_end = self._reader.may_end(threads)
        ranges: list[tuple[int, int]] = []
        for byte in range(256):
            if not any(map(self._reader.is_alive, self._reader.step(threads, byte))):
                continue
            if ranges and ranges[-1][1] == byte - 1:
                ranges[-1] = (ranges[-1][0], byte)
            else:
                ranges.append((byte, byte))
        return Match(consumed, can_end and consumed == length, can_end, tuple(ranges))

    # -- rows ------------------------------------------------------------------------------------------

    def row(self, config: Any) -> NDArray[np.int32]:
        """The bitmask row of a configuration: read-only ``int32[words]``, EOS ids included."""
        row: NDArray[np.int32] | None = config.dense
        return row if row is not None else self._find_row(config)

    def _find_row(self, config: Configuration) -> NDArray[np.int32]:
        with self._lock:
            known = self.known_rows
            accepting = self.is_accepting(config)
            rows = [self._row_of_thread(*thread) for thread in config.threads]
            tokens = self._reader.tokens(config.threads)
            row = rows[0] if len(rows) == 1 and not accepting and not tokens else self._union(rows, accepting, tokens)
            if self._generation != self.masks.generation:
                self._generation = self.masks.generation
                self._unions.clear()
                self._walked.clear()
                for other in list(self._configs.values()):
                    other.dense = None
            config.dense = row
            fresh = self.known_rows > known
        if fresh and self.on_new_row:
            self.on_new_row()
        return row

    def _union(self, rows: list[NDArray[np.int32]], accepting: bool, tokens: tuple[int, ...]) -> NDArray[np.int32]:
        """The row of several threads, with EOS ids where the text may end; the same for the same rows."""
        key = (accepting, tokens, *map(id, rows))
        known = self._unions.get(key)
        if known is None:
            row = rows[0] | row_of(list(tokens), self.pool.words)
            for other in rows[1:]:
                row |= other
            if accepting:
                row |= self.vocabulary.eos_row
            row.flags.writeable = False
            self.masks.note(row.nbytes)
            known = self._unions[key] = row, rows  # which keeps them, and so their identities
        return known[0]

    @property
    def known_rows(self) -> int:
        """How many places have been settled so far."""
        return len(self.places) + sum(machine.known_rows for _, machine in self.embedded.definitions)

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out: never known, what is watched may be new."""
        return False

    def is_filled(self) -> bool:
        """Whether there is nothing left for `fill` to do."""
        return self._filled

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Settle what a guide can come to, up to a bound.

        (One thread; ``threads`` is for machines that walk more.)
        """
        for _, machine in self.embedded.definitions:
            machine.fill(meter=meter, progress=progress)
        following = self._following()
        todo: list[tuple[int, int, Watched]] = [(ROOT, state, ()) for state in range(len(self.tables.table))]
        seen = set(todo)
        for done, place in enumerate(todo):  # grows as it goes
            if done >= _MOST_PLACES:
                break
            if done % 64 == 0:
                progress("token maps", done, len(todo))
                if meter:
                    meter.check_time("token maps")
                    meter.check_memory(self.pool.nbytes, "token rows")
            for terminal, resume, watch in self.places.settle(*place).ends:
                for state in following[terminal]:
                    after = resume, state, watch
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
        progress("token maps", len(todo), len(todo))
        self.pool.compact()
        self._filled = True

    def _following(self) -> list[list[int]]:
        """By terminal: the lexer states that can be the first after it."""
        tables, starts = self.tables, self.tables.starts.tolist()
        ignored = set_at(tables.ignored.reshape(1, -1), 0)
        found: list[set[int]] = [set() for _ in range(tables.members)]
        for _, terminal, target in tables.shift.tolist():
            found[terminal].add(starts[int(tables.context[target])])
        return [
            starts if terminal > tables.end or ignored >> terminal & 1 else sorted(there)
            for terminal, there in enumerate(found)
        ]

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> dict[str, Any]:
        """What goes into the file's meta section."""
        return {"filled": self._filled, **self.embedded.to_meta()}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md); nothing is kept elsewhere."""
        with self._lock:
            return self.tables.to_sections() | to_sections(self.places) | self.embedded.to_sections()

    @classmethod
    def from_sections(
        cls, meta: dict[str, Any], sections: dict[str, NDArray[Any]], vocabulary: Vocabulary, where: str
    ) -> GrammarMachine:
        """A machine over stored arrays, after a check of every index. Raises `FormatError`."""
        filled = meta.get("filled")
        if type(filled) is not bool:
            raise FormatError("the meta section does not say whether all rows are there", where=where)
        tables = GrammarTables.from_sections(sections, where)
        embedded = Embedded.read(meta, sections, vocabulary, tables.end, where)
        return cls(tables, vocabulary, from_sections(tables, vocabulary, sections, where), embedded, filled=filled)
