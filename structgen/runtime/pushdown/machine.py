"""`PushdownMachine`: an automaton with a stack and its rows, as a `Machine` that guides move over.

Where texts have come to is in a `structgen.runtime.pushdown.store.store.ConfigurationStore`, whose kernels step. The
methods here that take threads (`step`, `follow`, `decide`) are the reference stepper: threads are a state with a count
and a stack, of which there is one graph (see `structgen.runtime.pushdown.stacks`). It serves captures, distances and
shortest texts, definitions within grammars, and what kernels don't do: whole tokens, sets of many members.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...budget import Meter, StepMeter
from ...errors import BudgetExceededError, UnsupportedError
from ...progress import Progress, silent
from ...storage import columns
from ...storage.columns import Field
from ...system.locks import Lock
from ...system.memo import Memo, memo, shorten
from ...system.properties import cached_property
from ...system.types import Array, JsonMap, Sections
from ...system.visible import legibility
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.tables import DEAD, FIELDS, MARK, SET
from ..core.machine import (
    ByteState,
    Captured,
    CompiledMachine,
    Match,
    Productions,
    SharedRows,
    Stepper,
    Symbol,
    followed,
    ranges_of,
)
from .partial_masks import NOTHING, ROOT, StateMasks
from .stacks import END, FORK, LOOP_COUNT, Fork, Frame, Stack, Stacks, Thread
from .storage import from_sections, to_sections
from .store.configuration import StoredConfiguration
from .store.store import FEW_PARTS, GROWING, ConfigurationStore
from .tables import MOST_MEMBERS, GroupMoves, Moves, PushdownTables
from .token_edges import TokenMoves

if TYPE_CHECKING:
    from .distances.token_distances import StackDistances

#: Moves by byte, and frames that are remembered; past that what remembers frames starts afresh.
MEMO_MOVES, MEMO_FRAMES = 1 << 17, 1 << 18

#: Bytes of a text that are followed in one step.
_BYTES = 1 << 8

#: Sets of tokens that masks have together; past that they are put together anew.
MOST_TOKEN_SETS = 1 << 8

#: States whose edges are remembered by target.
MEMO_GROUPED = 1 << 12

#: Threads that are walked together have at most so many frames; `FEW_PARTS` threads are not, nor as many whose states
#: take long to walk.
_MOST_CELLS = 1 << 13

#: Walked together are more threads and stacks than this that were not walked before, whatever their states.
_MANY_THREADS = 32

#: A walk that is entered at more nodes than this takes long.
_MANY_NODES = 1 << 10

#: Frames that the rest of tokens is left to before it is remembered what comes of it further down.
_SHORT = 8

#: The fields of the meta section.
_FIELDS = (*FIELDS, Field("filled", bool), Field("complete", bool))

#: What a state does with a byte: the state of a plain move, `DEAD` for none, or moves that are all made.
_Move: TypeAlias = int | Moves

#: The rows of a byte state, and the residual lists of what it leaves to whatever follows the text.
_Deciding: TypeAlias = tuple[frozenset[int], frozenset[int]]


#: The columns of the tables' edges as buffers, which yield ints faster than arrays; the number of states, groups'
#: moves and open states that go with them.
_Edges: TypeAlias = tuple[memoryview, memoryview, memoryview, memoryview, memoryview, int, GroupMoves, frozenset[int]]


def _edges_of(t: PushdownTables) -> _Edges:
    return (
        t.edge_start.data, t.edge_low.data, t.edge_high.data, t.edge_target.data, t.like.data,
        t.states, t.moves, t.open,
    )  # fmt: skip


class PushdownMachine(CompiledMachine):
    """A pushdown automaton over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Safe to use from several threads.

    Parameters
    ----------
    tables:
        The automaton.
    vocabulary:
        The tokens.
    rows:
        What states decide, as far as it is known.
    filled, complete:
        Whether all of it was worked out that is worked out ahead of time; and whether guides can need nothing else.
    """

    _token_moves: TokenMoves | None = None
    _by_target: Memo[int, list[tuple[bytes, int]]] = memo(MEMO_GROUPED)  # see `grouped`
    #: Completes texts, once that was asked for.
    _complete_text: Callable[[tuple[Thread, ...]], bytes | None] | None = None

    def __init__(
        self,
        tables: PushdownTables,
        vocabulary: Vocabulary,
        rows: StateMasks | None = None,
        *,
        filled: bool = False,
        complete: bool = False,
    ) -> None:
        self.tables: PushdownTables = tables
        self.vocabulary = vocabulary
        self._filled = filled
        self._fills = 0  # how many are going on
        self.rows = rows if rows is not None else StateMasks(tables, vocabulary)
        self.pool = self.rows.pool
        self.rows.mark()
        self._complete = complete
        self._returns = bytearray(tables.returns.tobytes())
        #: By state which part of a count it keeps: none, what is counted or a set, tokens, or all of it.
        self._keeps = bytearray()
        self._sees_tokens = False
        if tables.tokens is not None:
            counted_from = MOST_MEMBERS if tables.open else max(LOOP_COUNT.bit_length(), tables.widest)
            self._token_moves, self._sees_tokens = TokenMoves(vocabulary, counted_from), True
        self._take_counters()
        if tables.open:  # they change
            self._edges = _edges_of(tables)
        self._moves: dict[int, _Move] = {}  # by state and byte; see `_move`
        self.stacks = Stacks(self._returns, tables.labels.temperatures)
        self._below: dict[tuple[int, Stack], _Deciding] = {}  # see `_decide_below`
        #: Where a text begins, for the reference stepper.
        self.start_threads: tuple[Thread, ...] = ((tables.start, 0, None),)
        self.rows.head.words[kernels.M_TELLS] = bool(tables.labels.temperatures)
        self._sets: dict[tuple[int, ...], int] = {}  # sets of tokens that masks have together, by their numbers
        self._store: ConfigurationStore | None = None

    @cached_property
    def _edges(self) -> _Edges:
        return _edges_of(self.tables)

    @property
    def lock(self) -> Lock:
        """Held while rows are worked out."""
        return self.rows.lock

    # -- the store -------------------------------------------------------------------------------------

    def stepper(self) -> ConfigurationStore:
        """The store that guides begin in: another one where the last is full."""
        store = self._store
        if store is None or store.is_full():
            with GROWING:
                if self._store is store:
                    self._store = self._new_store()
                    self.forget()
                store = self._store
        assert store is not None
        return store

    def _new_store(self) -> ConfigurationStore:
        return ConfigurationStore(self)

    def place(self, stepper: Stepper, config: int) -> StoredConfiguration:
        """A store's configuration as a value by itself."""
        assert isinstance(stepper, ConfigurationStore)
        return StoredConfiguration(stepper, config)

    def gathered(self, places: Sequence[StoredConfiguration | None]) -> tuple[ConfigurationStore, list[int | None]]:
        """The inverse for some, in the store that guides begin in; None stays."""
        store, found = self.stepper(), np.full(len(places), -1, np.int32)
        for other in {id(place.store): place.store for place in places if place is not None}.values():
            own = {at: place.number for at, place in enumerate(places) if place is not None and place.store is other}
            found[[*own]] = store.adopt(other, np.array([*own.values()], np.int32))
        return store, [None if number < 0 else number for number in found.tolist()]

    def at(self, place: StoredConfiguration) -> tuple[ConfigurationStore, int]:
        """The store of a configuration and its number, in the store that guides begin in if that one is full."""
        store, number = place.store, place.number
        if store.is_full() and (newer := self.stepper()) is not store:
            return newer, int(newer.adopt(store, np.array([number], np.int32))[0])
        return store, number

    def renewed(self, stepper: Stepper, configs: list[int | None]) -> tuple[Stepper, list[int | None]]:
        """The store that guides begin in, and configurations of another one there; None stays."""
        newer = self.stepper()
        if newer is stepper:
            return stepper, configs
        assert isinstance(stepper, ConfigurationStore)
        numbers = newer.adopt(stepper, np.array([-1 if c is None else c for c in configs], np.int32)).tolist()
        return newer, [None if number < 0 else number for number in numbers]

    def have_arena(self) -> None:
        """Have kernels find the automaton, and states lowered that one of them came to."""
        with self.lock:
            if self.rows.come_by_open_states():
                self._take_lowered()

    @property
    def start(self) -> StoredConfiguration:
        """The initial configuration."""
        store = self.stepper()
        return StoredConfiguration(store, store.start)

    def advance(self, config: StoredConfiguration, token_id: int) -> StoredConfiguration | None:
        """Follow a token; ``None`` where its bytes die, or it has none and the definition does not name it."""
        store, number = self.at(config)
        target = store.advance(number, token_id)
        return None if target is None else StoredConfiguration(store, target)

    def follow_byte(self, config: StoredConfiguration, byte: int) -> StoredConfiguration | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        store, number = self.at(config)
        consumed, target = store.follow(number, bytes((byte,)))
        return StoredConfiguration(store, target) if consumed else None

    def reach(self, config: StoredConfiguration, data: bytes) -> tuple[int, StoredConfiguration]:
        """How many bytes texts go on with, of some, and where these lead."""
        consumed, (store, number) = 0, self.at(config)
        for begin in range(0, len(data), _BYTES):
            piece = data[begin : begin + _BYTES]
            count, number = store.follow(number, piece)
            consumed += count
            if count < len(piece):
                break
            store, number = self.at(StoredConfiguration(store, number))
        return consumed, StoredConfiguration(store, number)

    def match(self, data: bytes) -> Match:
        """Follow a text as far as it goes. (Tokens without bytes are no part of a text.)"""
        consumed, place = self.reach(self.start, data)
        can_end = self.is_accepting(place)
        expected = ranges_of(sorted(byte for byte, _ in self.following(self.byte_state(place))))
        return Match(consumed, can_end and consumed == len(data), can_end, expected)

    def byte_state(self, config: StoredConfiguration) -> ByteState:
        """Where a configuration is, for `following`."""
        return config

    def following(self, byte_state: ByteState) -> Iterator[tuple[int, ByteState]]:
        """Each byte that can follow, in no order, and the byte state after it, found as they are asked for."""
        candidates = self.candidates(byte_state.threads)
        while (byte := self.steps.measured(next, candidates, None)) is not None:
            after = self.follow_byte(byte_state, byte)
            if after is not None:
                yield byte, after

    def after(self, byte_state: ByteState, byte: int) -> ByteState | None:
        """The byte state after a byte, None where it can't follow."""
        return self.follow_byte(byte_state, byte)

    def may_stop(self, byte_state: ByteState) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token by a token edge."""
        if self.is_accepting(byte_state):
            return True
        return self._sees_tokens and bool(self.steps.measured(self._token_edges, byte_state.threads))

    def is_accepting(self, config: StoredConfiguration) -> bool:
        """Whether the text so far is complete."""
        return config.store.is_accepting(config.number)

    def row(self, config: StoredConfiguration) -> NDArray[np.int32]:
        """The bitmask row of a configuration: a new read-only ``int32[words]``, EOS ids included."""
        return config.store.row(config.number)

    def temperature(self, config: StoredConfiguration) -> float | None:
        """The highest one of the rules that the next token may belong to; None where none has one."""
        temperatures = self.tables.labels.temperatures
        if not temperatures:
            return None
        from .captures.temperatures import highest

        return highest(self, self._closed(config.threads), temperatures)

    def known_stacks(self) -> Stacks:
        """The stacks of the reference stepper, which knows all states that kernels do."""
        if len(self._returns) < self.tables.states:
            with self.lock:
                self._take_lowered()
        return self.stacks

    def tell_of_rows(self) -> None:
        """Say that rows were worked out; no lock is held."""
        if self._told is not None:
            self._told()

    @property
    def steps(self) -> StepMeter:
        """Counts the work of steps: threads, frames and members of forks that these come by."""
        return self.stacks.steps

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """Be part of another machine, whose steps pay for work here.

        Its lock is held wherever this one's would be, and passed on by walks.
        """
        self.rows.lock = lock
        self.stacks.steps = steps

    def names_tokens(self) -> bool:
        """Whether some edges take tokens, or bounds count them."""
        return self._sees_tokens

    def distances(self) -> StackDistances:
        """How far configurations are from a complete text: upper bounds."""
        from .distances.token_distances import StackDistances

        self.lower_all()
        return StackDistances(self)

    def completion(self, config: StoredConfiguration) -> bytes | None:
        """The fewest bytes that complete a text; None with registers, or where tokens are more than their bytes."""
        if self._sees_tokens:
            return None
        if self._complete_text is None:
            self._complete_text = self._cheapest_texts()
        return self._complete_text(config.threads)

    def _cheapest_texts(self) -> Callable[[tuple[Thread, ...]], bytes | None]:
        """What finds the fewest bytes, or says again that it takes too long."""
        from .distances.cheapest_texts import CheapestTexts

        self.lower_all()
        try:
            return CheapestTexts(self, self.tables.arena(), sorted(range(256), key=legibility)).text
        except UnsupportedError:
            return lambda _: None
        except BudgetExceededError as error:
            found = copy(error)  # without the frames that it comes from

        def refuse(_: tuple[Thread, ...]) -> bytes | None:
            raise copy(found)

        return refuse

    # -- following bytes -------------------------------------------------------------------------------

    def followed(self, threads: tuple[Thread, ...], data: bytes) -> tuple[int, tuple[Thread, ...]]:
        """How many bytes texts go on with, and the threads behind them."""
        return followed(lambda *here: self.steps.measured(self.follow, *here), threads, data)

    def forget(self) -> None:
        """Forget what is remembered of texts."""
        self.stacks.forget()
        self._below = {}

    def is_crowded(self) -> bool:
        """Whether so much is remembered of texts that it is time to `forget`."""
        return len(self.stacks) >= MEMO_FRAMES

    #: How many tokens have a byte of a text within a grammar at most: as many as it takes.
    max_tokens: int | None = None

    def after_token(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """Where a text within a grammar is when a token ends in it."""
        return threads

    def follow(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        """The threads after some bytes; none where they are dead."""
        i, end = 0, len(data)
        while i < end and threads:
            if len(threads) == 1:
                threads, i = self._follow_one(threads[0], data, i)
            else:
                threads = self.step(threads, data[i])
                i += 1
        return threads

    def _follow_one(self, thread: Thread, data: bytes, begin: int) -> tuple[tuple[Thread, ...], int]:
        """`_follow` from byte ``begin`` on, for one thread, until it may become several.

        Returns the threads, and the byte to go on from.
        """
        state, count, frame = thread
        moves, returns, keeps, parts = self._moves, self._returns, self._keeps, self._parts
        popped: Stack = None  # the frame that the state comes from, where that is negative
        for i in range(begin, len(data)):
            while True:
                if state < 0:
                    return (self.step(self.stacks.opened(popped), data[i]), i + 1) if state == FORK else ((), i)
                move = moves.get(state << 8 | data[i])
                if move is None:
                    move = self._move(state, data[i])
                if move != DEAD:
                    break
                if not returns[state] or frame is None:
                    return (), i
                popped = frame
                state, count, frame = popped.state, popped.count, popped.below
            if isinstance(move, int):
                if not returns[state]:
                    state = move
                    if count:
                        count &= parts[keeps[state]]
                    continue
                move = ((None, (move,)),)
            if (returns[state] and frame is not None) or len(move) > 1 or move[0][0] is not None:
                return self.step(((state, count, frame),), data[i]), i + 1
            sequence = move[0][1]
            if not sequence:
                popped = frame
                state, count, frame = (END, 0, None) if popped is None else (popped.state, popped.count, popped.below)
                continue
            state = sequence[0]
            if count:
                count &= parts[keeps[state]]
            for above in sequence[1:]:
                frame = self.stacks.push(state, count, frame)
                state, count = above, 0
        return (self.stacks.opened(popped) if state == FORK else ((state, count, frame),)), len(data)

    def step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """All threads over one byte."""
        moves, keeps, parts = self._moves, self._keeps, self._parts
        found: dict[Thread, None] = {}
        for state, count, frame in self._closed(threads):
            if state < 0:
                continue
            move = moves.get(state << 8 | byte)
            if move is None:
                move = self._move(state, byte)
            if not isinstance(move, int):
                for record, sequence in move:
                    self.make(record, sequence, count, frame, found)
            elif move >= 0:
                found[move, count & parts[keeps[move]], frame] = None
        if len(found) < 2:
            return tuple(found)
        self.steps.spend(len(found))
        return self.stacks.united(found)

    def _closed(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """`Stacks.closed`; nearly always a state that ends, such as a number, above one that does not return."""
        if len(threads) > 1:
            return self.stacks.closed(threads)
        state, count, frame = threads[0]
        if state < 0 or frame is None or not self._returns[state]:
            return threads
        if frame.state < 0 or self._returns[frame.state] or (frame.state == state and frame.count == count):
            return self.stacks.closed(threads)
        return threads[0], (frame.state, frame.count, frame.below)

    def make(
        self,
        record: tuple[int, ...] | None,
        sequence: tuple[int, ...],
        count: int,
        frame: Stack,
        found: dict[Thread, None],
    ) -> None:
        """Make one move of one thread, which stands ``found`` then; see `structgen.compiler.programs.program`."""
        if record is not None:
            operation, loop, low, mid, high = record
            if operation == SET:
                first, count = low, count & ~self._counted | 1
            elif operation == MARK:
                first = low
                if mid >= 0:
                    if count >> mid & 1:
                        return
                    count |= 1 << mid
                mask, least, most = self._tests[loop]
                if not least <= (count & mask).bit_count() <= most:
                    return
            else:
                count += 1
                least, most = self._loops[loop]
                counted = count & self._counted
                first = high if counted >= most else mid if counted >= least else low
                if first < 0:
                    return
            sequence = (first, *sequence)
        if not sequence:
            found.update(dict.fromkeys(self.stacks.opened(frame)))
            return
        state = sequence[0]
        count &= self._parts[self._keeps[state]]
        for above in sequence[1:]:
            frame = self.stacks.push(state, count, frame)
            state, count = above, 0
        found[state, count, frame] = None

    def productions(self, symbol: Symbol | None = None) -> tuple[Symbol, Productions]:
        """What takes a state with its count off the stack. Raises `UnsupportedError` where tokens are counted."""
        if self._edges[-1]:
            self.lower_all()
        if self._sees_tokens and self._counts_tokens:
            raise UnsupportedError("tokens are counted, which texts alone do not tell")
        state, count = symbol or (self.tables.start, 0)
        moves = [
            (data, symbols)
            for data, target in self.grouped(state)
            for symbols in self._symbols_behind(self.moves_to(target), count)
        ]
        for _, _, edges in self._token_edges(((state, count, None),)) if self._sees_tokens else ():
            moves += [(b"", symbols) for symbols in self._symbols_behind(edges, count)]
        return (state, count), Productions(bool(self._returns[state]), moves)

    def loop(self, state: int) -> tuple[int, int, int] | None:
        """The loop whose count a state depends on: its number, and how often it goes round at least and at most."""
        number = int(self.tables.live[state])
        if number < 0 or self.tables.registers[state]:
            return None
        least, most = self._loops[number]
        return number, least, most

    def is_unambiguous(self, meter: Meter) -> bool:
        """Whether it is seen that no text leads to two stacks. Raises `BudgetExceededError`."""
        from .fill import lower_neighbours

        return not self._sees_tokens and self.tables.is_deterministic(lower_neighbours(self.tables, meter))

    def grouped(self, state: int) -> list[tuple[bytes, int]]:
        """The targets of a state's edges, each with its bytes; remembered."""
        found = self._by_target.get(state)
        if found is None:
            found = self._by_target[state] = self.tables.grouped(state)
        return found

    def moves_to(self, target: int) -> Moves:
        """The moves of an edge's target."""
        return self.tables.moves[target - self.states] if target >= self.states else ((None, (target,)),)

    def _symbols_behind(self, moves: Moves, count: int) -> Iterator[tuple[Symbol, ...]]:
        """What takes the place of a symbol with a count, by each move that can be made."""
        for record, sequence in moves:
            if record is None and sequence:  # nearly always, and then no stack has to be made
                yield (
                    (sequence[0], count & self._parts[self._keeps[sequence[0]]]),
                    *[(each, 0) for each in sequence[1:]],
                )
                continue
            found: dict[Thread, None] = {}
            self.make(record, sequence, count, None, found)
            for state, own, frame in found:
                symbols = [(state, own)] if state >= 0 else []
                while frame is not None:
                    symbols.append((frame.state, frame.count))
                    frame = frame.below
                yield tuple(reversed(symbols))

    # -- what rules capture, and temperatures ----------------------------------------------------------

    def captured(self, tokens: Sequence[tuple[int, bytes]]) -> tuple[Captured, ...]:
        """What is captured of an accepted text, by its tokens: the text is read once more."""
        if not self.tables.labels.capture:
            return ()
        from .captures.recording import StackRecording

        reader = copy(self)
        reader.stacks = Stacks(self._returns)
        recording = StackRecording(reader, self.tables.labels.by_state)
        recording.read(tokens)
        return recording.captured()

    def returns(self, state: int) -> bool:
        """Whether the next byte may be left to what is below a state."""
        return bool(self._returns[state])

    def moves_at(self, state: int, byte: int) -> Moves:
        """The moves of a state with a byte, as `make` takes them."""
        move = self._move(state, byte) if state >= 0 else DEAD
        return () if move == DEAD else ((None, (move,)),) if isinstance(move, int) else move

    def token_moves_at(self, thread: Thread, token_id: int) -> list[Moves]:
        """The moves of a thread's own state with a token as such."""
        known = self._token_moves
        return [
            moves
            for there, tokens, moves in self._token_edges((thread,))
            if there == thread and known is not None and known.has(tokens, token_id)
        ]

    def at_token_end(self, thread: Thread) -> Thread:
        """A thread where a token ends."""
        return next(iter(self._with_token_counted({thread: None})))

    def sequences_at(self, thread: Thread) -> Iterator[tuple[int, ...]]:
        """The states that a move of a thread's own state puts in its place, for each of its moves."""
        if thread[0] < 0:
            return
        for _, target in self.grouped(thread[0]):
            yield from (sequence for _, sequence in self.moves_to(target))
        for there, _, moves in self._token_edges((thread,)):
            if there == thread:
                yield from (sequence for _, sequence in moves)

    # -- whole tokens ----------------------------------------------------------------------------------

    def _token_edges(self, threads: tuple[Thread, ...]) -> list[tuple[Thread, int, Moves]]:
        """The token edges of threads, and of those that the next token may be left to: set of tokens, and moves."""
        if self._token_moves is None or not threads:
            return []
        closed = self._closed(threads)
        missing = [state for state, _, _ in closed if state in self._edges[-1]]
        if missing:
            self.lower(missing)
        at = self._token_moves.at
        found = [(thread, tokens, moves) for thread in closed for tokens, moves in at(thread[0])]
        return [each for each in found if self._can_be_made(each[0], each[2])]

    def _can_be_made(self, thread: Thread, moves: Moves) -> bool:
        """Whether a thread's count, or set, lets it make one of some moves."""
        _, count, frame = thread
        after: dict[Thread, None] = {}
        for record, sequence in moves:
            if record is None:
                return True
            self.make(record, sequence, count, frame, after)
        return bool(after)

    def token_sets(self, config: StoredConfiguration) -> list[tuple[frozenset[int], bool]]:
        """The sets of tokens that are taken whole there: ids, and whether all others are meant."""
        moves = self._token_moves
        return [] if moves is None else [moves.members(n) for _, n, _ in self._token_edges(config.threads)]

    def after_token_of(self, threads: tuple[Thread, ...], token_id: int) -> tuple[Thread, ...]:
        """The threads behind a token, measured as a step."""
        data = self.vocabulary.token(token_id) or b""
        if self._sees_tokens:
            return self.steps.measured(self._over_token, threads, token_id, data)
        return self.steps.measured(self.follow, threads, data) if data else ()

    def _over_token(self, threads: tuple[Thread, ...], token_id: int, data: bytes) -> tuple[Thread, ...]:
        """The threads behind a token: by its bytes, and by token edges; each counts where it ends."""
        return self.behind_token(threads, token_id, self.follow(threads, data) if data else ())

    def behind_token(self, threads: tuple[Thread, ...], token_id: int, read: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """The threads behind a token: by token edges, and those that ``read`` its bytes."""
        found = dict.fromkeys(read)
        for (_, count, frame), tokens, moves in self._token_edges(threads):
            if self._token_moves is not None and self._token_moves.has(tokens, token_id):
                for record, sequence in moves:
                    self.make(record, sequence, count, frame, found)
        found = self._with_token_counted(found)
        return self.stacks.united(found) if len(found) > 1 else tuple(found)

    def _with_token_counted(self, threads: dict[Thread, None]) -> dict[Thread, None]:
        """Threads at the end of a token. Of those that differ in the tokens counted alone, the one that has counted
        least has all possibilities of the others."""
        moves = self._token_moves
        if moves is None or not any(state in moves.bounds for state, _, _ in threads):
            return threads
        bounds, at = moves.bounds, moves.counted_from
        found: dict[Thread, None] = {}
        least: dict[Thread, int] = {}
        for state, count, frame in threads:
            most, exhausted = bounds.get(state, (0, DEAD))
            tokens = (count >> at) + 1
            if exhausted == DEAD:
                found[state, count, frame] = None
            elif tokens >= most:
                found[exhausted, 0, frame] = None
            else:
                alike = state, count & self._counted, frame
                least[alike] = min(tokens, least.get(alike, most))
        for (state, count, frame), tokens in least.items():
            found[state, tokens << at | count, frame] = None
        return found

    def _take_counters(self) -> None:
        tables = self.tables
        self.states = tables.states
        self._loops: Sequence[list[int]] = tables.loops.tolist() or ()
        self._tests = tables.passes if len(tables.tests) else ()
        new = len(self._keeps)
        if self._loops:
            self._keeps += (tables.live[new:] >= 0).tobytes()
        else:
            self._keeps += bytes(self.states - new)
        #: The part of a count that is of a loop, or a set; tokens are counted above it.
        self._counted = -1
        if tables.tokens is not None and self._token_moves is not None:
            self._token_moves.take(tables.tokens, tables.states, tables.moves)
            self._counts_tokens = tables.tokens.counts
            if self._counts_tokens:
                self._counted = (1 << self._token_moves.counted_from) - 1
                for state in self._token_moves.bounds:
                    self._keeps[state] |= 2
        #: The parts of a count that `_keeps` has numbers for, as masks.
        self._parts = 0, self._counted, ~self._counted, -1

    def lower(self, states: Collection[int]) -> None:
        """Have the open ones among some states lowered. Raises `BudgetExceededError`."""
        with self.lock:
            self.tables.lower(states)
            self.rows.take_lowered()
            self._take_lowered()

    def _take_lowered(self) -> None:
        """Read the tables anew. What is read without the lock comes last: the edges, which lead to new states."""
        tables = self.tables
        self._returns += tables.returns[len(self._returns) :].tobytes()
        self._take_counters()
        self._edges = _edges_of(tables)

    def lower_all(self) -> None:
        """Have all of the automaton lowered. Raises `BudgetExceededError`."""
        while self._edges[-1]:
            self.lower(self.tables.open)

    def _move(self, state: int, byte: int) -> _Move:
        """A state's move for a byte."""
        starts, lows, highs, targets, like, states, moves, is_open = self._edges
        here = state
        move: _Move = DEAD
        while here >= 0:
            if here in is_open:
                self.lower((here,))
                return self._move(state, byte)
            begin = starts[here]
            edge = bisect_right(lows, byte, begin, starts[here + 1]) - 1
            if edge >= begin and byte <= highs[edge]:
                target = targets[edge] - 1
                if target >= 0:
                    move = target if target < states else moves[target - states]
                break
            here = like[here] - 1
        self._moves[state << 8 | byte] = move
        if len(self._moves) > MEMO_MOVES:
            shorten(self._moves, MEMO_MOVES)
        return move

    def candidates(self, threads: tuple[Thread, ...]) -> Iterator[int]:
        """The bytes that some state that threads can come to has moves for; a move may lead nowhere."""
        return self.bytes_at({state for state, _, _ in self.stacks.closed(threads)})

    def bytes_at(self, states: Iterable[int]) -> Iterator[int]:
        """The bytes that some states have moves for, each once."""
        seen: set[int] = set()
        for here in states:
            while here >= 0:
                if here in self._edges[-1]:
                    self.lower((here,))
                starts, lows, highs, targets, like, *_ = self._edges
                for edge in range(starts[here], starts[here + 1]):
                    new = range(lows[edge], highs[edge] + 1) if targets[edge] else ()
                    yield from (byte for byte in new if byte not in seen)
                    seen.update(new)
                here = like[here] - 1

    def may_end(self, threads: tuple[Thread, ...]) -> bool:
        """Whether the text is complete where some thread is."""
        returns = self._returns
        if len(threads) == 1:
            state, _, frame = threads[0]
            return state == END or bool(returns[state] and (frame is None or frame.ends))
        return any(
            state == END or bool(returns[state] and (frame is None or frame.ends)) for state, _, frame in threads
        )

    # -- rows ------------------------------------------------------------------------------------------

    def begin_deciding(self) -> None:
        """Have what is decided from now on stay; before that, forget what came about where it is much."""
        if self.rows.is_full() and not self._fills:
            self.rows.forget()
            self._below = {}
        self.lock.begin()
        self._fills += 1  # what others find out meanwhile does not make room for itself

    def end_deciding(self) -> None:
        """What is decided may be forgotten again."""
        self._fills -= 1

    def rows_of(self, threads: tuple[Thread, ...]) -> tuple[Collection[int], int]:
        """The rows of threads, and the number of a set of tokens that they take by their ids, or -1."""
        tokens = -1
        if self._sees_tokens:
            numbers = tuple(sorted({number for _, number, _ in self._token_edges(threads)}))
            tokens = self._set_of(numbers) if numbers else -1
        counted = self._counted
        tops = [(ROOT, state, count & counted) for state, count, _ in threads if state >= 0]
        row = self.walked_together(tops, threads) if len(threads) > 1 else None
        return ((row,) if row is not None else self.decide(threads, ROOT)[0]), tokens

    def _set_of(self, numbers: tuple[int, ...]) -> int:
        """The number of the row of all tokens in some sets."""
        found = self._sets.get(numbers)
        if found is None:
            assert self._token_moves is not None
            if len(self._sets) >= MOST_TOKEN_SETS:  # stores forget which ones masks have, before these go
                self.rows.head.words[kernels.M_GENERATION] += 1
                self.rows.head.put(kernels.M_SETS, np.zeros(0, np.int32))
                self._sets = {}
            row = np.bitwise_or.reduce([self._token_moves.row(number) for number in numbers])
            before = self.rows.head.get(kernels.M_SETS, row[:0])
            self.rows.head.put(kernels.M_SETS, np.concatenate([before, row]))
            found = self._sets[numbers] = len(self._sets)
        return found

    def walked_together(self, missing: Sequence[tuple[int, int, int]], threads: tuple[Thread, ...]) -> int | None:
        """The row of threads from one walk of all together; None where walks of each are better.

        ``missing`` are the residual list, state and count of each that may have to be walked.
        """
        rows = self.rows
        new = [each for each in missing if rows.known(*each) is None]
        if len(new) <= FEW_PARTS:
            return None
        long = sum(
            rows.takes_long(state, count) if residual == ROOT else len(rows.residuals[residual]) > _MANY_NODES
            for residual, state, count in new
        )
        if len(new) <= _MANY_THREADS and long <= FEW_PARTS:
            return None
        return rows.row_of_all(threads, self._counted, _MOST_CELLS)

    def decide(self, threads: tuple[Thread, ...], residual: int) -> tuple[set[int], set[int]]:
        """The rows of threads entered at a residual list: their own, then what is left open, frame by frame.

        With them come the residual lists of what is left to whatever follows the text.
        """
        rows: set[int] = set()
        left: set[int] = set()
        decide, counted = self.rows.decide, self._counted
        for state, count, frame in threads:
            after, depth = residual, 0
            if state == END:
                left.add(after)
            while state >= 0:
                row, after = decide(after, state, count & counted)
                rows.add(row)
                if after == NOTHING:
                    break
                if frame is None:
                    left.add(after)
                    break
                depth += 1
                if frame.state == FORK or depth == _SHORT:
                    more = self._decide_below(after, frame)
                    rows |= more[0]
                    left |= more[1]
                    break
                state, count, frame = frame.state, frame.count, frame.below
        return rows, left

    def _decide_below(self, residual: int, stack: Frame) -> _Deciding:
        """`decide` for what lies below threads. Remembered for each frame."""
        known = self._below
        if len(known) >= MEMO_FRAMES:
            known = self._below = {}
        todo = [(residual, stack)]
        while todo:
            here, frame = todo[-1]
            own: set[int] = set()
            lower: list[tuple[int, Stack]] = []
            if isinstance(frame, Fork):
                lower = [(here, member) for member in frame.members]
            else:
                row, after = self.rows.decide(here, frame.state, frame.count & self._counted)
                own.add(row)
                lower = [(after, frame.below)] if after != NOTHING else []
            self.steps.spend(len(lower))
            missing = [(after, below) for after, below in lower if below is not None and (after, below) not in known]
            if missing:
                todo += missing
                continue
            todo.pop()
            deeper = [known[after, below] for after, below in lower if below is not None]
            left = frozenset([after for after, below in lower if below is None])
            if len(deeper) == 1 and not left and own <= deeper[0][0]:
                known[here, frame] = deeper[0]
            else:
                known[here, frame] = (
                    frozenset(own).union(*(rows for rows, _ in deeper)),
                    left.union(*(below for _, below in deeper)),
                )
        return known[residual, stack]

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out."""
        return self._complete

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return len(self.rows)

    @property
    def slow_steps(self) -> int:
        """How often working out rows gave way to others that waited."""
        return self.lock.passed_on

    def is_filled(self) -> bool:
        """Whether there is nothing left for `fill` to do."""
        return self._filled

    def share_rows(self, kept: SharedRows) -> None:
        """Look there for rows inside strings, and keep new ones there."""
        self.rows.shared.keep_in(kept)

    def keep_shared_rows(self) -> None:
        """Keep there whatever is used, also what was at hand from another index or another cache."""
        with self.lock:
            self.rows.shared.keep_used()

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out the missing rows, but for a few that would take too long.

        (One thread; ``threads`` is for machines that walk more.)
        """
        from .fill import decide_everything

        self.lower_all()
        with self.lock:
            self._fills += 1
        try:
            complete = decide_everything(self.tables, self.rows, self.lock, meter, progress)
            with self.lock:
                self._filled, self._complete = True, complete
                self.rows.rest()
        finally:
            with self.lock:
                self._fills -= 1

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        self.lower_all()
        return {"states": self.states, "start": self.tables.start, "filled": self._filled, "complete": self._complete}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md); ``self_contained`` includes shared rows."""
        self.lower_all()
        with self.lock:
            shared = self.rows.shared.find_all() if self_contained else self.rows.shared.brought_along()
            return self.tables.to_sections() | to_sections(self.rows, shared)

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> PushdownMachine:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        flags = columns.read_meta(meta, _FIELDS, sizes, where)
        tables, rows = from_sections(vocabulary, sections, sizes, where)
        return cls(tables, vocabulary, rows, filled=flags["filled"], complete=flags["complete"])
