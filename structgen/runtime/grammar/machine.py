"""`GrammarMachine`: a lexer and a parser over a vocabulary, as a `Machine` that guides move over.

What threads are, and how they move, is in `structgen.runtime.grammar.lexer_threads`; how configurations, which are
sets of them, are remembered, in `structgen.runtime.grammar.interned_machine`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter, StepMeter
from ...progress import Progress, silent
from ...storage import columns
from ...storage.columns import Field
from ...system.locks import Lock, Rank
from ...system.properties import cached_property
from ...system.types import Array, JsonMap, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.bitsets import set_at
from ..core.digraph import bits
from ..core.lazy_table import LazyTable
from ..core.machine import Captured, LexemeAutomaton
from .completability.completion_tables import CompletionTables
from .embedded import Embedded, Grown
from .interned_machine import Configuration, InternedMachine
from .kernel_gss import KernelMemory
from .lexeme_futures import LexemeFutures
from .lexer_threads import LexerThreads, Readings, Thread
from .mask_builder import StackMasks
from .parser.parser_driver import ParserDriver
from .partial_masks import ROOT, Key, KnownMasks, LexemeMasks, Walked, Watched
from .storage import from_sections, to_sections
from .tables import GrammarTables
from .token_reader import TokenReader

if TYPE_CHECKING:
    from .captures.whole_stacks import WholeStacks
    from .distances.completion_search import CompletionSearch
    from .distances.token_distances import GrammarDistances
    from .parser.keywords import Keywords

#: An eager compile decides so many partial masks at most; the others are decided when they are touched.
_MOST_MASKS = 50_000

#: So many of them are decided at once, over so many nodes of the trie.
_BATCH, _NODES = 256, 1 << 21

#: So many of them where each walks the whole trie.
_FEW = 16

#: Classes of bytes that are followed before the parser is asked which are worth it.
_UNASKED = 4

#: What the meter is told.
_DOING = "looking for a text of the grammar"

#: The fields of the meta section, beside those of `Embedded`.
_FIELDS = (Field("filled", bool),)


class GrammarMachine(InternedMachine):
    """A lexer and a parser over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Safe to use from several threads. Python finds the attributes of an object faster while they are fewer than 30.

    Parameters
    ----------
    tables, vocabulary:
        The lexer and the parser; the tokens.
    embedded:
        Definitions and special tokens within the grammar.
    stored:
        What lexer states decide, as far as it is known.
    completions:
        What completes texts, as far as it is known.
    filled:
        Whether all was worked out that is worked out ahead of time.
    """

    def __init__(
        self,
        tables: GrammarTables,
        vocabulary: Vocabulary,
        embedded: Embedded | None = None,
        stored: KnownMasks | None = None,
        completions: CompletionTables | None = None,
        *,
        filled: bool = False,
    ) -> None:
        self.tables: GrammarTables = tables
        self.states = tables.states
        futures = LexemeFutures(tables, self._pause)
        self.lexeme_masks = LexemeMasks(tables, vocabulary, futures, stored, self._give_way)
        self.pool = self.lexeme_masks.pool
        self.embedded = embedded if embedded is not None else Embedded()
        self._inner = [machine for _, machine in self.embedded.definitions]
        begins = vocabulary.offsets
        if self.embedded.budgeted or any(begins[last + 1] > begins[first] for first, last, _ in self.embedded.tokens):
            self._sees_tokens = True  # tokens are counted, or those by their ids have bytes
        self._meter: Meter | None = None
        self._reader = LexerThreads(ParserDriver(tables), tables, futures, self.embedded, self._pause, completions)
        self._unions: dict[tuple[object, ...], tuple[NDArray[np.int32], list[NDArray[np.int32]]]] = {}
        self._generation = 0
        self._completions = completions
        self._memory = memory = KernelMemory(tables, completions)
        self.masks = StackMasks(self.lexeme_masks, self._reader, memory, self._give_way)
        self._filled = filled
        self._fills = 0  # how many are going on
        super().__init__(vocabulary, (self._reader.start,), Lock(Rank.MACHINE))
        for machine in self._inner:
            machine.belong_to(self._lock, self.steps)

    def lexemes(self) -> LexemeAutomaton | None:
        """The lexer's automaton; None where definitions or whole tokens stand in a text, too."""
        if self.embedded.definitions or self.embedded.tokens:
            return None
        tables = self.tables
        return LexemeAutomaton(tables.class_of, tables.table, tables.starts, np.unique(tables.ends[:, 0]))

    def names_tokens(self) -> bool:
        """Whether some terminals are tokens, or have a budget of them."""
        return bool(self.embedded.tokens or self.embedded.budgeted)

    def distances(self) -> GrammarDistances:
        """How far configurations are from a complete text: upper bounds."""
        from .distances.token_distances import GrammarDistances

        return GrammarDistances(self)

    def completion(self, config: Configuration) -> bytes | None:
        """Bytes that complete a text, few if not the fewest."""
        if self.embedded.definitions or not self.tables.is_deterministic:
            return None
        return self._completion_search.find(config.threads)

    def captured(self, tokens: Sequence[tuple[int, bytes]]) -> tuple[Captured, ...]:
        """What is captured of an accepted text, by its tokens: the text is parsed once more."""
        if not self.tables.attributes.captures:
            return ()
        from .captures.recording import Recording, RecordingDriver

        driver = RecordingDriver(self.tables, self._reader.parses.parser, self.embedded)
        recording = Recording(driver, self._reader_over(driver), self.tables, self._reader.is_alive)
        recording.read(tokens)
        return recording.captured()

    def temperature(self, config: Configuration) -> float | None:
        """The highest one of the terminals that the next byte may belong to; None where none has one."""
        if not self.tables.attributes.temperatures:
            return None
        found = 0
        for thread in self._reader.closed(config.threads):
            found |= self._reader.ahead(thread) & self._reader.parses.accepted(thread[0]).terminals
        said = (each.temperature for each in self.tables.attributes.temperatures if found >> each.terminal & 1)
        return max(said, default=None)

    def letters(self, byte_state: tuple[Thread, ...], most: int) -> tuple[bytes, tuple[Thread, ...]]:
        """The rest of a word, where a lexeme has begun that can only become that; see `CompiledMachine.letters`."""
        if len(byte_state) != 1 or self.embedded.definitions:
            return b"", byte_state
        ((parse, at, watched),) = byte_state
        if watched or isinstance(at, tuple) or at in self._reader.fresh:
            return b"", byte_state
        found, at = self._keywords.rest(parse, at, most)
        return found, ((parse, at, ()),)

    def keywords(self, byte_state: tuple[Thread, ...], known: Sequence[bytes] = ()) -> Iterator[bytes]:
        """Words that may come right behind a byte state, as the parser knows."""
        for parse, at, watched in self._reader.closed(byte_state):
            if not isinstance(at, tuple) and at in self._reader.fresh:
                for _, text in self._keywords.expected(parse, known):
                    if self._reader.keeps(watched, text):
                        yield text

    @cached_property
    def _keywords(self) -> Keywords:
        from .parser.keywords import Keywords

        return Keywords(self.tables, self._reader.parses)

    @cached_property
    def _completion_search(self) -> CompletionSearch:
        from .distances.completion_search import CompletionSearch

        return CompletionSearch(self.tables, self._reader.parses)

    def _uses_kernels(self) -> bool:
        """Whether kernels step and put rows together; they know of no definitions within a grammar."""
        return not self.embedded.definitions

    def _row_of_thread(self) -> Callable[..., NDArray[np.int32]]:
        return self.masks.row if self._uses_kernels() else self.masks.walked.row

    @cached_property
    def _token_reader(self) -> TokenReader:
        return TokenReader(self.tables, self._reader.parses, self._memory, self._reader.is_open)

    def _give_way(self) -> None:
        """Let others have their turn between two walks of the vocabulary."""
        self._lock.give_way()

    def _pause(self, nbytes: int) -> None:
        """Let others have their turn within a walk; when the grammar is compiled, look at time and memory."""
        if self._meter is None:
            self._lock.give_way()
        else:
            self._meter.check_time(_DOING)
            self._meter.check_memory(nbytes, _DOING)

    def is_empty(self, meter: Meter) -> bool:
        """Whether no text can even begin: as far as is looked ahead, the lexer reads none that the parser accepts.

        Raises `BudgetExceededError`.
        """
        self._meter = meter
        try:
            return not self.is_accepting(self._start) and not any(map(self._reader.is_alive, self._start.threads))
        finally:
            self._meter = None

    @property
    def steps(self) -> StepMeter:
        """Counts the work of steps: threads, nodes of stacks, places that partial masks are visited at."""
        return self._reader.parses.steps

    @property
    def parses(self) -> ParserDriver:
        """The parser."""
        return self._reader.parses

    def walk(self, nodes: NDArray[np.int32], state: int, watched: Watched) -> tuple[list[Walked], list[Walked]]:
        """See `LexemeMasks.walk`. Safe to use from several threads."""
        with self._lock:
            return self.lexeme_masks.walk(nodes, state, watched)

    def readings(self, config: Configuration) -> Readings:
        """How the text before a configuration can be read, for explanations."""
        with self._lock:
            return self._reader.readings(config.threads)

    def whole_readings(self, config: Configuration, pieces: Sequence[tuple[int, bytes]]) -> Readings:
        """The same with all that is on the parser's stack, where configurations keep a simpler one.

        The text is parsed once more, by its tokens with their bytes; an id of -1 is bytes alone. There is no reading
        where they do not lead to the configuration.
        """
        if not len(self.tables.same) or not self.tables.is_deterministic:
            return self.readings(config)
        with self._lock:
            whole = self._whole_stacks
            threads = whole.read(pieces, self._token_reader if self._uses_kernels() else None)
            is_alike = {*map(_apart_from_stack, threads)} == {*map(_apart_from_stack, config.threads)}
            return whole.reader.readings(threads if is_alike else ())

    @cached_property
    def _whole_stacks(self) -> WholeStacks:
        from .captures.whole_stacks import WholeStacks

        return WholeStacks(self._reader_over(ParserDriver(self.tables, self._reader.parses.parser.whole())))

    def _reader_over(self, driver: ParserDriver) -> LexerThreads:
        """What moves threads of another parser."""
        futures = self._reader.futures
        return LexerThreads(driver, self.tables, futures, self.embedded, self._pause, self._completions)

    @property
    def ignored(self) -> int:
        """The terminals that the parser does not see, as bits."""
        return set_at(self.tables.ignored.reshape(1, -1), 0)

    def futures_of(self, state: int) -> int:
        """The terminals that a lexeme can become in a lexer state, as bits."""
        return set_at(self.tables.future, state)

    # -- following bytes -------------------------------------------------------------------------------

    def _follow(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        if self.tables.is_deterministic and self._uses_kernels():
            with self._lock:
                found = self._token_reader.read(threads, data)
            if found is not None:
                return found
        return tuple(filter(self._reader.is_alive, self._reader.read(threads, data)))

    def _follow_byte(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        within = self._reader.within(threads[0], byte) if len(threads) == 1 else None
        return (within,) if within is not None else self._follow(threads, bytes([byte]))

    def _take(self, threads: tuple[Thread, ...], token_id: int) -> tuple[Thread, ...]:
        return self._reader.take(threads, token_id)

    def _over_token(self, threads: tuple[Thread, ...], token_id: int, data: bytes) -> tuple[Thread, ...]:
        read = self._reader.at_token_end(self._follow(threads, data)) if data else ()
        return tuple(dict.fromkeys((*read, *self._take(threads, token_id))))

    def _tokens(self, threads: tuple[Thread, ...]) -> tuple[int, ...]:
        return self._reader.tokens(threads)

    @cached_property
    def _members(self) -> list[list[int]]:
        """By class: its bytes."""
        class_of = self.tables.class_of.tolist()
        members: list[list[int]] = [[] for _ in range(max(class_of) + 1)]
        for byte, c in enumerate(class_of):
            members[c].append(byte)
        return members

    @cached_property
    def _largest_first(self) -> list[int]:
        """The classes, those of many bytes first: who asks whether many may follow is then told soon.

        A file may have classes without any, which are left out.
        """
        return sorted((c for c, some in enumerate(self._members) if some), key=lambda c: -len(self._members[c]))

    def _candidates(self, threads: tuple[Thread, ...]) -> Iterator[Sequence[int]]:
        if not self.embedded.definitions:  # whose bytes go by classes of their own
            yield from map(self._members.__getitem__, self._classes(threads))
            return
        seen: set[int] = set()
        for byte in self._bytes_of(threads):
            if byte not in seen:
                seen.add(byte)
                yield (byte,)

    def _classes(self, threads: tuple[Thread, ...]) -> Iterator[int]:
        """The classes that some lexer state that threads can be in goes on with, each once.

        But for the first few, only those after which a lexeme can still become what the parser accepts. To ask the
        parser takes longer than to follow some bytes, and who asks what is forced needs no more of them.
        """
        seen: set[int] = set()
        for parse, at, _ in self._reader.closed(threads):
            if isinstance(at, tuple):
                continue
            targets, known, classes = self.tables.rows[at], parse.accepted, self._largest_first
            alive = None if known is None else self._alive(targets, known.terminals)
            for c in classes if alive is None else [c for c in classes if targets[c] in alive]:
                if targets[c] < 0 or c in seen:
                    continue
                if alive is None and len(seen) >= _UNASKED:
                    alive = self._alive(targets, self.parses.accepted(parse).terminals)
                if alive is None or targets[c] in alive:
                    seen.add(c)
                    yield c

    def _alive(self, targets: Iterable[int], accepted: int) -> set[int]:
        """The lexer states, of some, in which a lexeme can still become one of some terminals."""
        futures = self.tables.futures
        return {target for target in {*targets} if target >= 0 and futures[target] & accepted}

    def _bytes_of(self, threads: tuple[Thread, ...]) -> Iterator[int]:
        for c in self._classes(threads):
            yield from self._members[c]
        for _, at, _ in self._reader.closed(threads):
            if isinstance(at, tuple):
                yield from self.embedded.definitions[at[0]][1].candidates(at[1])

    def may_stop(self, byte_state: tuple[Thread, ...]) -> bool:
        """Whether something other than a byte may follow; also where it matters how bytes are split into tokens."""
        return super().may_stop(byte_state) or self._reader.counts_tokens(byte_state)

    def may_end(self, threads: tuple[Thread, ...]) -> bool:
        """Whether the text is complete in some thread."""
        if self.tables.is_deterministic and self._uses_kernels():
            with self._lock:
                known = self._token_reader.may_end(threads)
            if known is not None:
                return known
        return self._reader.may_end(threads)

    def _is_full(self) -> bool:
        return super()._is_full() or self._reader.parses.is_full() or any(each.is_crowded() for each in self._inner)

    def _forget(self) -> None:
        super()._forget()
        for machine in self._inner:
            machine.forget()
        self._reader.trim()  # stacks that nobody holds can go, too

    # -- rows ------------------------------------------------------------------------------------------

    def row(self, config: Configuration) -> NDArray[np.int32]:
        """The bitmask row of a configuration: read-only ``int32[words]``, EOS ids included."""
        row = config.dense
        if row is not None:
            return row
        told = self._told
        with self._lock:
            known = self.known_rows if told else 0
            row = self.steps.measured(self._work_out, config)
            fresh = told and self.known_rows > known
        if told and fresh:
            told()
        return row

    def _work_out(self, config: Configuration) -> NDArray[np.int32]:
        grown: tuple[Grown, ...] = self.lexeme_masks, self.masks, *(machine.rows for machine in self._inner)
        if not self._fills and any(each.is_full() for each in grown):
            for each in grown:
                each.forget()
            self._clear()
        accepting = self.is_accepting(config)
        self._fills += 1  # what others find out while this gives way does not make room for itself
        try:
            row_of = self._row_of_thread()
            rows = [row_of(*thread) for thread in self.parses.together(config.threads, near=True)]
        finally:
            self._fills -= 1
        tokens = self._tokens(config.threads)
        row = rows[0] if len(rows) == 1 and not accepting and not tokens else self._union(rows, accepting, tokens)
        if self._generation != self.masks.generation:
            self._clear()
        config.dense = row
        return row

    def _clear(self) -> None:
        """Forget what was put together of rows that are forgotten."""
        self._generation = self.masks.generation
        self._unions.clear()
        for known in (*list(self._configs.values()), *list(self._forgotten.values())):
            known.dense = None

    def _union(self, rows: list[NDArray[np.int32]], accepting: bool, tokens: tuple[int, ...]) -> NDArray[np.int32]:
        """The row of several threads, with EOS ids where the text may end; the same for the same rows."""
        key = (accepting, tokens, *map(id, rows))
        known = self._unions.get(key)
        if known is None:
            row = rows[0] | self.embedded.rows(tokens, self.vocabulary.words)
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
        """How many partial masks there are so far."""
        return len(self.lexeme_masks) + sum(machine.known_rows for _, machine in self.embedded.definitions)

    def is_filled(self) -> bool:
        """Whether there is nothing left for `fill` to do."""
        return self._filled

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out: never known, there may be new obligations."""
        return False

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Decide what a guide can come to, up to a bound.

        (One thread; ``threads`` is for machines that walk more.)
        """
        with self._lock:
            self._fills += 1
        try:
            self._fill(meter, progress)
        finally:
            with self._lock:
                self._fills -= 1

    def _fill(self, meter: Meter | None, progress: Progress) -> None:
        for machine in self._inner:
            machine.fill(meter=meter, progress=progress)
        watched = self._watched(meter)
        roots: list[Key] = [(ROOT, state, ()) for state in range(len(self.tables.table))]
        self._decide(roots, watched, meter, progress)
        fresh = frozenset(self.tables.starts.tolist())
        behind: list[Key] = [(ROOT, *each) for each in watched if each[0] not in fresh]
        for done in range(0, min(len(behind), _MOST_MASKS), _FEW):
            self._look_at(meter)
            with self._lock:
                self.lexeme_masks.decide_all(behind[done : done + _FEW])
                self._lock.give_way()
        self._decide(behind, watched, meter, progress)
        completions = self._complete(meter)
        with self._lock:
            self._completions = completions
            self._memory.complete(completions)
            self.pool.compact()
            self.lexeme_masks.mark()
            self._filled = True

    def _complete(self, meter: Meter | None) -> CompletionTables | None:
        """What completes texts, where that is a question of what can follow lexemes, and kernels can answer it."""
        if self.tables.endings.is_unconstrained or self.embedded.definitions or self._completions is not None:
            return self._completions

        def pause(nbytes: int) -> None:
            self._look_at(meter)
            if meter:
                meter.check_memory(nbytes, "what completes texts")

        return self._reader.completions(pause).tables() if self.tables.is_deterministic else None

    def _look_at(self, meter: Meter | None) -> None:
        """Raises `BudgetExceededError`."""
        if meter:
            meter.check_time("token maps")
            meter.check_memory(self.pool.nbytes, "token rows")

    def _decide(
        self, todo: list[Key], begun: dict[tuple[int, Watched], int], meter: Meter | None, progress: Progress
    ) -> None:
        """Decide partial masks and all that go on from them; ``begun`` is from `_watched`."""
        seen = set(todo)
        begins: dict[tuple[int, Watched], int] = {}
        work_of = LazyTable(self.lexeme_masks.work)
        done = depth_read = 0
        while done < min(len(todo), _MOST_MASKS):  # grows as it goes
            if done >= depth_read:
                depth_read = done + 64
                progress("token maps", done, len(todo))
            self._look_at(meter)
            with self._lock:
                batch, work = list[Key](), 0
                while done < len(todo) and len(batch) < _BATCH and work < _NODES:
                    batch.append(todo[done])
                    work += work_of[todo[done][0]]
                    done += 1
                new = [key for key in self._following(batch, begun, begins) if key not in seen]
                self._lock.give_way()
            todo += new
            seen.update(new)
        progress("token maps", len(todo), len(todo))

    def _watched(self, meter: Meter | None) -> dict[tuple[int, Watched], int]:
        """What the lexeme right behind another one comes to while that one is watched, and can become something.

        Lexer states and what is watched, each with the contexts that the lexeme may have begun in, as a set.
        """
        tables, obligations, futures = self.tables, self.tables.obligations, self._reader.futures
        starts, found = tables.starts.tolist(), dict[tuple[int, Watched], int]()
        begun: dict[int, int] = {}
        for state, terminal, watch in tables.ends[tables.ends[:, 2] >= 0].tolist():
            begun[watch] = begun.get(watch, 0) | self._behind(terminal, self._contexts_of[state])
        for watch, contexts in begun.items():
            found.update(((starts[context], (watch,)), 1 << context) for context in bits(contexts))
        for done, (state, watched) in enumerate(todo := list(found)):  # grows as it goes
            if not done % _BATCH:
                self._look_at(meter)
            contexts = found[state, watched]
            for target, *others in {*zip(*(tables.rows[each] for each in (state, *watched)), strict=True)}:
                left = obligations.left(others) if target >= 0 else None
                if left and contexts & ~found.get((target, left), 0) and futures(target, left):
                    found[target, left] = found.get((target, left), 0) | contexts
                    todo.append((target, left))
        return found

    def _following(
        self, keys: list[Key], begun: dict[tuple[int, Watched], int], begins: dict[tuple[int, Watched], int]
    ) -> Iterator[Key]:
        """Decide some partial masks; those that can go on from them.

        ``begins`` has the contexts in which that was said already, by residual list and what is watched.
        """
        masks, starts = self.lexeme_masks, self.tables.starts.tolist()
        masks.decide_all(keys)
        for key in keys:
            within = begun.get(key[1:], self._contexts_of[key[1]])
            for terminal, residual, watch in masks.decide(*key).ends:
                known = begins.get((residual, watch), 0)
                new = self._behind(terminal, within) & ~known
                if new:
                    begins[residual, watch] = known | new
                    for context in bits(new):
                        yield residual, starts[context], watch

    def _behind(self, terminal: int, within: int) -> int:
        """The contexts in which the lexer can read on behind a terminal that was read in some contexts, as a set."""
        there, stays = self._contexts_after[terminal]
        return there | within if stays else there

    @cached_property
    def _contexts_after(self) -> list[tuple[int, bool]]:
        """By terminal: the contexts in which the lexer can read on behind it, and whether it may stay in its own."""
        tables, layout = self.tables, self.tables.layout
        found = [0] * tables.members
        for _, terminal, target in tables.shift.tolist():
            found[terminal] |= 1 << int(tables.context[target])
        ignored = set_at(tables.ignored.reshape(1, -1), 0)
        after = [(there, bool(ignored >> terminal & 1)) for terminal, there in enumerate(found)]
        if layout is not None:
            lines = found[layout.newline] | found[layout.indent] | found[layout.dedent]
            after[layout.newline] = 0, True  # within brackets
            after[tables.end + 1 :] = [(lines, True)] * (tables.members - tables.end - 1)
        return after

    @cached_property
    def _contexts_of(self) -> list[int]:
        """By lexer state: the contexts that lexemes which come to it begin in, as a set."""
        tables = self.tables
        found, todo = [0] * len(tables.table), tables.starts.tolist()
        for context, start in enumerate(todo):
            found[start] |= 1 << context
        for state in todo:  # grows as it goes
            for target in {*tables.rows[state]} - {-1}:
                if found[state] & ~found[target]:
                    found[target] |= found[state]
                    todo.append(target)
        return found

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        tables = self.tables
        return {"states": tables.states, "start": tables.start, "filled": self._filled, **self.embedded.to_meta()}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md); nothing is kept elsewhere."""
        with self._lock:
            completions = self._completions.to_sections() if self._completions is not None else {}
            found = self.tables.to_sections() | to_sections(self.lexeme_masks)
            return found | completions | self.embedded.to_sections()

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> GrammarMachine:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        filled = columns.read_meta(meta, _FIELDS, sizes, where)["filled"]
        tables = GrammarTables.from_sections(sections, where)
        embedded = Embedded.read(meta, sections, vocabulary, tables.end, where)
        stored = from_sections(tables, vocabulary, sections, sizes, where)
        completions = CompletionTables.from_sections(tables, sections, where)
        return cls(tables, vocabulary, embedded, stored, completions, filled=filled)


def _apart_from_stack(thread: Thread) -> tuple[object, ...]:
    """What threads with equal stacks can differ in."""
    parse, at, watched = thread
    return parse.context, parse.level, at, watched
