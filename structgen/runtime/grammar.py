"""`GrammarMachine`: a lexer and a parser over a vocabulary, as a `Machine` that guides move over.

A configuration is a set of threads; nearly always there is one. A thread is how far the parser has come before the lexeme that is
being read, the lexer's state within it, and what is watched: earlier lexemes that the bytes since may still turn
out to belong to, or whose look-ahead is still open. A lexeme is handed to the parser when the first byte after it is
read. Where it could also go on with that byte, both threads are followed, and the one that took it for complete watches
the other.

Configurations are interned and remember where each token led, as in `structgen.runtime.pushdown`.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..errors import BudgetExceededError, FormatError
from ..progress import Progress, silent
from ..vocabulary.vocabulary import Vocabulary
from .automaton import Match
from .grammar_tables import GrammarTables, sets_of
from .lexer_places import ROOT, LexerPlaces, Watched, from_sections, to_sections, watching
from .parser_stack import Accepted
from .parses import Parse, Postlex
from .rows import RowPool
from .stack_masks import StackMasks

#: Configurations that are remembered; past that a memo starts afresh.
MEMO_CONFIGS = 1 << 15

#: An eager compile settles so many places at most; the others are settled when they are touched.
_MOST_PLACES = 50_000

#: Where it is a question what can follow a lexeme, so many further lexemes are looked for.
_FORESIGHT = 3

#: Threads that a configuration can have.
MAX_THREADS = 1 << 8

#: The parser before the lexeme, the lexer's state, what is watched.
Thread: TypeAlias = tuple[Parse, int, Watched]


class Configuration:
    """A set of threads, with what was found out about it. Interned by its machine."""

    __slots__ = ("accepting", "dense", "targets", "threads")

    def __init__(self, threads: tuple[Thread, ...]) -> None:
        self.threads = threads
        self.targets: dict[int, Configuration | None] = {}
        self.accepting: bool | None = None
        self.dense: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return " | ".join(f"{lexer} on {parse!r}"[:60] for parse, lexer, _ in self.threads)


class GrammarMachine:
    """A lexer and a parser over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Safe to use from several threads.
    """

    def __init__(
        self,
        tables: GrammarTables,
        vocabulary: Vocabulary,
        places: LexerPlaces | None = None,
        *,
        filled: bool = False,
    ) -> None:
        self.tables = tables
        self.vocabulary = vocabulary
        self.places = places if places is not None else LexerPlaces(tables, vocabulary)
        self._filled = filled
        self.on_new_row: Callable[[], None] | None = None
        self._parses = Postlex(tables)
        self._bytes = vocabulary.bytes
        self._bounds = vocabulary.offsets.data
        self._class_of = tables.class_of.tobytes()
        self._table: list[list[int]] = tables.table.tolist()
        self._ends = tables.ends_of
        self._beats: list[int] = tables.beats.tolist()
        self._lapses: list[int] = tables.lapses.tolist()
        self._future = self.places.futures
        self._open: dict[tuple[Parse, int], Accepted] = {}
        self._ignored = sets_of(tables.ignored.reshape(1, -1))[0]
        self._end = 1 << tables.end
        self._starts: list[int] = tables.starts.tolist()  # by context
        self._firsts = [self._first(start) for start in self._starts]
        self._begun = 0  # the classes of bytes that some lexeme begins with
        for _, classes in itertools.chain(*self._firsts):
            self._begun |= classes
        self._fresh = frozenset(tables.starts.tolist())
        self._configs: dict[tuple[Thread, ...], Configuration] = {}
        self._unions: dict[tuple[Any, ...], tuple[NDArray[np.int32], list[NDArray[np.int32]]]] = {}
        self._generation = 0
        self.masks = StackMasks(
            self.places, self._parses, self._open_to, None if tables.is_deterministic else self._walked_row
        )
        self._lock = threading.RLock()
        self._is_loose = tables.endings.is_loose
        self._is_deterministic = tables.is_deterministic
        start = self._parses.start
        self._start = self._config(((start, self._starts[start.context], ()),))

    def _first(self, start: int) -> list[tuple[int, int]]:
        """What lexemes can become, with the classes of their first bytes."""
        found: dict[int, int] = {}
        for c, target in enumerate(self._table[start]):
            if target >= 0:
                found[self._future[target]] = found.get(self._future[target], 0) | 1 << c
        return list(found.items())

    @property
    def start(self) -> Configuration:
        """The initial configuration."""
        return self._start

    def is_empty(self) -> bool:
        """Whether no text can even begin: as far as `_FORESIGHT` sees, the lexer can read none that the parser accepts."""
        return not self.is_accepting(self._start) and not any(map(self._is_alive, self._start.threads))

    @property
    def pool(self) -> RowPool:
        """The rows, each once."""
        return self.places.pool

    @property
    def nbytes(self) -> int:
        """Bytes of the tables and rows as stored."""
        return self.tables.nbytes + self.pool.nbytes + self.places.resumes.nbytes

    # -- following bytes -------------------------------------------------------------------------------

    def advance(self, config: Any, token_id: int) -> Configuration | None:
        """Follow a token's bytes; ``None`` where they die or the token has none."""
        try:
            return config.targets[token_id]  # type: ignore[no-any-return]
        except KeyError:
            pass
        data = self._bytes[self._bounds[token_id] : self._bounds[token_id + 1]]
        threads = config.threads if data else ()
        for byte in data:
            threads = self._step(threads, byte)
            if not threads:
                break
        threads = tuple(thread for thread in threads if self._is_alive(thread))
        target = self._config(threads) if threads else None
        config.targets[token_id] = target
        return target

    def _config(self, threads: tuple[Thread, ...]) -> Configuration:
        config = self._configs.get(threads)
        if config is None:
            if len(self._configs) >= MEMO_CONFIGS:
                forgotten, self._configs = self._configs, {}
                for known in list(forgotten.values()):
                    known.targets = {}
                self._configs[self._start.threads] = self._start
                self._parses.trim()
            config = self._configs[threads] = Configuration(threads)
        return config

    def _step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """All threads over one byte."""
        c, table, beats = self._class_of[byte], self._table, self._beats
        found: dict[Thread, None] = {}
        for parse, lexer, watched in threads:
            if watched:
                watched = tuple(w for w in (table[w][c] for w in watched) if w >= 0)
                if any(beats[w] for w in watched):
                    continue  # an earlier lexeme was not what this thread took it to be
            longer = table[lexer][c]
            if longer >= 0:
                found[parse, longer, watched] = None
            for terminal, watch in self._ends[lexer]:
                watch = table[watch][c] if watch >= 0 else -1
                if watch >= 0 and beats[watch]:
                    continue
                for after in self._parses.after(parse, terminal).parses:
                    begun = table[self._starts[after.context]][c]
                    if begun >= 0:
                        found[after, begun, watching(watch, watched)] = None
        if len(found) > 1 and not self._is_deterministic:
            found = dict.fromkeys(self._parses.thinned(found))
        if len(found) > MAX_THREADS:
            raise BudgetExceededError(
                "a text could be read in too many ways at once",
                remedy="Make the terminals of the grammar differ earlier.",
            )
        return tuple(found)

    def _is_alive(self, thread: Thread) -> bool:
        """Whether the lexeme can become something that the parser accepts."""
        parse, lexer, _ = thread
        return bool(self._future[lexer] & self._open_to(parse).terminals)

    def _open_to(self, parse: Parse, lexemes: int = _FORESIGHT) -> Accepted:
        """What a lexeme may become: terminals in a loose grammar, endings in others.

        ``lexemes`` is how many have to follow, or else the end of the text.
        """
        if self._is_loose:
            return self._parses.accepted(parse)
        key = parse, lexemes
        found = self._open.get(key)
        if found is None:
            if len(self._open) >= MEMO_CONFIGS:
                self._open.clear()
            found = self._open[key] = self._endings_before(*key)
        return found

    def _endings_before(self, parse: Parse, lexemes: int) -> Accepted:
        """The endings of accepted terminals after which something can follow."""
        endings = self.tables.endings
        accepted, looked = self._parses.accepted(parse)
        followers: dict[int, int] = {}
        found = 0
        for ending, terminal in enumerate(endings.terminal):
            if not accepted >> terminal & 1:
                continue
            if endings.loose[ending]:
                found |= 1 << ending
                continue
            terminal = self._parses.like(parse, terminal)
            after, there = self._parses.after(parse, terminal)
            looked = min(looked, there)
            if endings.is_final[ending]:
                is_final = False
                for each in after:
                    final, there = self._parses.accepted(each)
                    looked = min(looked, there)
                    is_final |= bool(final & self._end)
                if is_final:
                    found |= 1 << ending
                    continue
            if endings.breaks[ending] & self._begun:
                if terminal not in followers:
                    followers[terminal], there = self._followers(after, lexemes) if lexemes else (-1, looked)
                    looked = min(looked, there)
                if endings.breaks[ending] & followers[terminal]:
                    found |= 1 << ending
        return Accepted(found, looked)

    def _followers(self, parses: tuple[Parse, ...], lexemes: int) -> tuple[int, int]:
        """The classes of bytes that the next lexeme may begin with, and the lowest depth looked at."""
        found, lowest = 0, 1 << 60
        for parse in parses:
            wanted, looked = self._open_to(parse, lexemes - 1)
            lowest = min(lowest, looked)
            for future, classes in self._firsts[parse.context]:
                if future & wanted:
                    found |= classes
        return found, lowest

    def _walked_row(self, parse: Parse, lexer: int, watched: Watched) -> tuple[NDArray[np.int32], int]:
        """The row of a thread, whatever the grammar, without EOS ids; and how many states of its stack decided it."""
        numbers: set[int] = set()
        depth = looked = parse.stack.depth
        todo = [(ROOT, parse, lexer, watched)]
        seen = set(todo)
        while todo:
            resume, parse, lexer, watched = todo.pop()
            groups, ends = self.places.settle(resume, lexer, watched)
            if groups:
                is_open, there = self._open_to(parse)
                looked = min(looked, there)
                numbers.update([row for wanted, row in groups if wanted & is_open])
            if not ends:
                continue
            accepted, there = self._parses.accepted(parse)
            looked = min(looked, there)
            for end in ends:
                if not accepted >> end.terminal & 1:
                    continue
                parses, there = self._parses.after(parse, end.terminal)
                looked = min(looked, there)
                for after in parses:
                    place = end.resume, after, self._starts[after.context], end.watched
                    if place not in seen:
                        seen.add(place)
                        todo.append(place)
        row = np.zeros(self.pool.words, np.int32)
        for number in numbers:
            self.pool.add_to(row, number)
        return row, depth + 1 - max(looked, 0)

    def is_accepting(self, config: Any) -> bool:
        """Whether the text so far is complete."""
        if config.accepting is None:
            config.accepting = any(map(self._may_end, config.threads))
        return bool(config.accepting)

    def _may_end(self, thread: Thread) -> bool:
        parse, lexer, watched = thread
        if any(self._lapses[watch] for watch in watched):
            return False
        if lexer in self._fresh:
            return bool(self._parses.accepted(parse).terminals & self._end)
        return any(
            self._parses.accepted(after).terminals & self._end
            for terminal, watch in self._ends[lexer] if watch < 0 or not self._lapses[watch]
            for after in self._parses.after(parse, terminal).parses
        )  # fmt: skip

    def match(self, data: bytes) -> Match:
        """Follow a text byte by byte, as far as it goes."""
        threads = self._start.threads
        for i, byte in enumerate(data):
            following = tuple(filter(self._is_alive, self._step(threads, byte)))
            if not following:
                return self._match(i, len(data), threads)
            threads = following
        return self._match(len(data), len(data), threads)

    def _match(self, consumed: int, length: int, threads: tuple[Thread, ...]) -> Match:
        can_end = any(map(self._may_end, threads))
        ranges: list[tuple[int, int]] = []
        for byte in range(256):
            if not any(map(self._is_alive, self._step(threads, byte))):
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
            known = len(self.places)
            accepting = self.is_accepting(config)
            rows = [self.masks.row(*thread) for thread in config.threads]
            row = rows[0] if len(rows) == 1 and not accepting else self._union(rows, accepting)
            if self._generation != self.masks.generation:
                self._generation = self.masks.generation
                self._unions.clear()
                for other in list(self._configs.values()):
                    other.dense = None
            config.dense = row
            fresh = len(self.places) > known
        if fresh and self.on_new_row:
            self.on_new_row()
        return row

    def _union(self, rows: list[NDArray[np.int32]], accepting: bool) -> NDArray[np.int32]:
        """The row of several threads, with EOS ids where the text may end; the same for the same rows."""
        key = (accepting, *map(id, rows))
        known = self._unions.get(key)
        if known is None:
            row = rows[0].copy()
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
        return len(self.places)

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out: never known, what is watched may be new."""
        return False

    def is_filled(self) -> bool:
        """Whether there is nothing left for `fill` to do."""
        return self._filled

    def fill(
        self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent
    ) -> None:
        """Settle what a guide can come to, up to a bound. (One thread; ``threads`` is for machines that walk more.)"""
        following = self._following()
        todo: list[tuple[int, int, Watched]] = [(ROOT, state, ()) for state in range(len(self._table))]
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
        everything, tables = sorted(self._fresh), self.tables
        found: list[set[int]] = [set() for _ in range(tables.members)]
        for _, terminal, target in tables.shift.tolist():
            found[terminal].add(self._starts[int(tables.context[target])])
        return [
            everything if terminal > tables.end or self._ignored >> terminal & 1 else sorted(starts)
            for terminal, starts in enumerate(found)
        ]

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> dict[str, Any]:
        """What goes into the file's meta section."""
        return {"filled": self._filled}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md); nothing is kept elsewhere."""
        with self._lock:
            return self.tables.to_sections() | to_sections(self.places)

    @classmethod
    def from_sections(
        cls, meta: dict[str, Any], sections: dict[str, NDArray[Any]], vocabulary: Vocabulary, where: str
    ) -> GrammarMachine:
        """A machine over stored arrays, after a check of every index. Raises `FormatError`."""
        filled = meta.get("filled")
        if type(filled) is not bool:
            raise FormatError("the meta section does not say whether all rows are there", where=where)
        tables = GrammarTables.from_sections(sections, where)
        return cls(tables, vocabulary, from_sections(tables, vocabulary, sections, where), filled=filled)
