"""`PushdownMachine`: an automaton with a stack and its rows, as a `Machine` that guides move over.

Threads are a state with a count and a stack, of which there is one graph (see `structgen.runtime.pushdown.stacks`).

As in `structgen.runtime.automaton.machine`, a step runs no compiled code unless a row is missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter, StepMeter
from ...errors import BudgetExceededError, UnsupportedError
from ...progress import Progress, silent
from ...storage import columns
from ...storage.columns import Field
from ...system.locks import Lock
from ...system.memo import Memo, shorten
from ...system.types import Array, JsonMap, RowParts, Sections
from ...system.visible import legibility
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.tables import DEAD, FIELDS, MARK, SET
from ..core.dense_rows import DENSE_ROWS
from ..core.interned_machine import Configuration, InternedMachine
from ..core.lazy_table import LazyTable
from ..core.machine import WHOLE, Captured, Productions, SharedRows, Symbol
from .partial_masks import NOTHING, ROOT, StateMasks
from .stacks import END, FORK, LOOP_COUNT, Fork, Frame, Stack, Stacks, Thread
from .storage import from_sections, to_sections
from .tables import MOST_MEMBERS, Moves, PushdownTables
from .token_edges import TokenMoves

if TYPE_CHECKING:
    from .distances.token_distances import StackDistances

#: Moves by byte, and frames that are remembered; past that what remembers frames starts afresh.
MEMO_MOVES, MEMO_FRAMES = 1 << 17, 1 << 18

#: States whose edges are remembered by target.
MEMO_GROUPED = 1 << 12

#: More threads than this whose states take long to walk are walked together, on at most so many frames.
_MANY_WALKS, _MOST_CELLS = 8, 1 << 13

#: So are more threads and stacks than this that were not walked before, whatever their states.
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
_Edges: TypeAlias = tuple[
    memoryview, memoryview, memoryview, memoryview, memoryview, int, LazyTable[Moves], frozenset[int]
]


def _edges_of(t: PushdownTables) -> _Edges:
    return (
        t.edge_start.data, t.edge_low.data, t.edge_high.data, t.edge_target.data, t.like.data,
        t.states, t.moves, t.open,
    )  # fmt: skip


class PushdownMachine(InternedMachine[Thread]):
    """A pushdown automaton over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Safe to use from several threads. Python finds the attributes of an object faster while they are fewer than 30.

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
        self.rows = rows if rows is not None else StateMasks(tables, vocabulary)
        self.pool = self.rows.pool
        self.rows.mark()
        self._complete = complete
        self._returns = bytearray(tables.returns.tobytes())
        #: By state which part of a count it keeps, as a mask: 0 for none, -1 for all.
        self._keeps: list[int] = []
        if tables.tokens is not None:
            counted_from = MOST_MEMBERS if tables.open else max(LOOP_COUNT.bit_length(), tables.widest)
            self._token_moves, self._sees_tokens = TokenMoves(vocabulary, counted_from), True
        self._take_counters()
        self._edges = _edges_of(tables)
        self._moves: dict[int, _Move] = {}  # by state and byte; see `_move`
        self._dense: dict[tuple[int, ...], NDArray[np.int32]] = {}
        self._by_target: Memo[int, list[tuple[bytes, int]]] = Memo(MEMO_GROUPED)  # see `_grouped`
        self.stacks = Stacks(self._returns, tables.labels.temperatures)
        self._below: dict[tuple[int, Stack], _Deciding] = {}  # see `_decide_below`
        super().__init__(vocabulary, ((tables.start, 0, None),), filled=filled, lock=self.rows.lock)

    @property
    def steps(self) -> StepMeter:
        """Counts the work of steps: threads, frames and members of forks that these come by."""
        return self.stacks.steps

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """Be part of another machine, whose steps pay for work here.

        Its lock is held wherever this one's would be, and passed on by walks.
        """
        self._lock = self.rows.lock = lock
        self.stacks.steps = steps

    def names_tokens(self) -> bool:
        """Whether some edges take tokens, or bounds count them."""
        return self._sees_tokens

    def distances(self) -> StackDistances:
        """How far configurations are from a complete text: upper bounds."""
        from .distances.token_distances import StackDistances

        self.lower_all()
        return StackDistances(self)

    def completion(self, config: Configuration[Thread]) -> bytes | None:
        """The fewest bytes that complete a text; None with registers, or where tokens are more than their bytes."""
        return self.ending_of(config.threads)

    def ending_of(self, threads: tuple[Thread, ...]) -> bytes | None:
        """The same of threads, for another machine."""
        if self._sees_tokens:
            return None
        if self._complete_text is None:
            self._complete_text = self._cheapest_texts()
        return self._complete_text(threads)

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

    @property
    def start_threads(self) -> tuple[Thread, ...]:
        """The threads of the initial configuration."""
        return self._start.threads

    # -- following bytes -------------------------------------------------------------------------------

    def follow(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        """The threads after some bytes; none where they are dead."""
        return self._follow(threads, data)

    def forget(self) -> None:
        """Forget what is remembered of texts."""
        self._forget()

    def is_crowded(self) -> bool:
        """Whether so much is remembered of texts that it is time to `forget`."""
        return self._is_full()

    #: How many tokens have a byte of a text within a grammar at most: as many as it takes.
    max_tokens: int | None = None

    def after_token(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """Where a text within a grammar is when a token ends in it."""
        return threads

    def _forget(self) -> None:
        super()._forget()
        self.stacks.forget()
        self._below = {}

    def _is_full(self) -> bool:
        return len(self.stacks) >= MEMO_FRAMES or super()._is_full()

    def repeats(self, config: Configuration[Thread]) -> bool:
        """Whether nothing is counted on top of the stack, and tokens are no more than their bytes."""
        if self._sees_tokens and (self._counts_tokens or self._token_edges(config.threads)):
            return False
        return not any(count for _, count, _ in config.threads)

    def _follow(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
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
        moves, returns, keeps = self._moves, self._returns, self._keeps
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
                        count &= keeps[state]
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
                count &= keeps[state]
            for above in sequence[1:]:
                frame = self.stacks.push(state, count, frame)
                state, count = above, 0
        return (self.stacks.opened(popped) if state == FORK else ((state, count, frame),)), len(data)

    def step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """All threads over one byte."""
        moves, keeps = self._moves, self._keeps
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
                found[move, count & keeps[move], frame] = None
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
        count &= self._keeps[state]
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
            for data, target in self._grouped(state)
            for symbols in self._symbols_behind(self._moves_to(target), count)
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

    def _grouped(self, state: int) -> list[tuple[bytes, int]]:
        """The targets of a state's edges, each with its bytes; remembered."""
        found = self._by_target.get(state)
        if found is None:
            found = self._by_target[state] = self.tables.grouped(state)
        return found

    def _moves_to(self, target: int) -> Moves:
        """The moves of an edge's target."""
        return self.tables.moves[target - self.states] if target >= self.states else ((None, (target,)),)

    def _symbols_behind(self, moves: Moves, count: int) -> Iterator[tuple[Symbol, ...]]:
        """What takes the place of a symbol with a count, by each move that can be made."""
        for record, sequence in moves:
            if record is None and sequence:  # nearly always, and then no stack has to be made
                yield ((sequence[0], count & self._keeps[sequence[0]]), *[(each, 0) for each in sequence[1:]])
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

    def temperature(self, config: Configuration[Thread]) -> float | None:
        """The highest one of the rules that the next token may belong to; None where none has one."""
        temperatures = self.tables.labels.temperatures
        if not temperatures:
            return None
        from .captures.temperatures import highest

        return highest(self, self._closed(config.threads), temperatures)

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
        for _, target in self._grouped(thread[0]):
            yield from (sequence for _, sequence in self._moves_to(target))
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

    def token_sets(self, config: Configuration[Thread]) -> list[tuple[frozenset[int], bool]]:
        """The sets of tokens that are taken whole there: ids, and whether all others are meant."""
        return self.token_sets_of(config.threads)

    def token_sets_of(self, threads: tuple[Thread, ...]) -> list[tuple[frozenset[int], bool]]:
        """The same of threads."""
        moves = self._token_moves
        return [] if moves is None else [moves.members(n) for _, n, _ in self._token_edges(threads)]

    def may_stop(self, byte_state: tuple[Thread, ...]) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token by a token edge."""
        return super().may_stop(byte_state) or bool(self._token_edges(byte_state))

    def _over_token(self, threads: tuple[Thread, ...], token_id: int, data: bytes) -> tuple[Thread, ...]:
        """The threads behind a token: by its bytes, and by token edges; each counts where it ends."""
        return self.behind_token(threads, token_id, self._follow(threads, data) if data else ())

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
        self._loops: list[list[int]] = tables.loops.tolist()
        self._tests = tables.passes if len(tables.tests) else []
        new = len(self._keeps)
        if self._loops:
            self._keeps += (-(tables.live[new:] >= 0).astype(np.int8)).tolist()
        else:
            self._keeps += [0] * (self.states - new)
        #: The part of a count that is of a loop, or a set; tokens are counted above it.
        self._counted = -1
        if tables.tokens is not None and self._token_moves is not None:
            self._token_moves.take(tables.tokens, tables.states, tables.moves)
            self._counts_tokens = tables.tokens.counts
            if self._counts_tokens:
                self._counted = (1 << self._token_moves.counted_from) - 1
                self._keeps[new:] = [mask & self._counted for mask in self._keeps[new:]]
                for state in self._token_moves.bounds:
                    self._keeps[state] |= ~self._counted

    def lower(self, states: Collection[int]) -> None:
        """Have the open ones among some states lowered. Raises `BudgetExceededError`."""
        tables = self.tables
        with self._lock:
            tables.lower(states)
            # What is read without the lock: the edges, which lead to new states, come last.
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

    def _candidates(self, threads: tuple[Thread, ...]) -> Iterator[tuple[int]]:
        return ((byte,) for byte in self.candidates(threads))

    def candidates(self, threads: tuple[Thread, ...]) -> Iterator[int]:
        """The bytes that some state that threads can come to has moves for; a move may lead nowhere."""
        seen: set[int] = set()
        for state in {state for state, _, _ in self.stacks.closed(threads)}:
            here = state
            while here >= 0:
                if here in self._edges[-1]:
                    self.lower((here,))
                starts, lows, highs, targets, like, *_ = self._edges
                for edge in range(starts[here], starts[here + 1]):
                    new = range(lows[edge], highs[edge] + 1) if targets[edge] else ()
                    yield from (byte for byte in new if byte not in seen)
                    seen.update(new)
                here = like[here] - 1

    def is_accepting(self, config: Configuration[Thread]) -> bool:
        """Whether the text so far is complete, which takes no work that is measured."""
        accepting = config.accepting
        if accepting is None:
            accepting = config.accepting = self.may_end(config.threads)
        return accepting

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

    def _key(self, config: Configuration[Thread]) -> tuple[int, ...]:
        """The parts of a configuration's row: the generation, whether EOS ids are in it, and partial rows."""
        if self.rows.is_full() and not self._fills:
            self.rows.forget()
            self._dense.clear()
            self._below = {}
            self._forget_rows()
        key = config.row
        if key is None or key[0] != self.rows.generation:
            numbers = sorted(self._rows_of(config.threads))
            if self._sees_tokens:
                numbers += sorted({-1 - tokens for _, tokens, _ in self._token_edges(config.threads)})
            key = config.row = (self.rows.generation, self.is_accepting(config), *numbers)
        return key

    def _work_out(self, config: Configuration[Thread]) -> NDArray[np.int32]:
        key = self._key(config)
        row = self._dense.get(key)
        if row is None:
            row = self._union(key)
            self._dense[key] = row
            self._note()
        config.dense = row
        return row

    def row_of(self, threads: tuple[Thread, ...]) -> NDArray[np.int32]:
        """The bitmask of threads, for another machine, under its lock."""
        config = self._config(threads)
        row = config.dense
        return row if row is not None else self._work_out(config)

    def _note(self) -> None:
        DENSE_ROWS.note(self, 4 * self.vocabulary.words * len(self._dense) + self.pool.decoded_bytes)

    def row_parts(self, config: Configuration[Thread]) -> RowParts:
        """What the row of a configuration is put together of."""
        return self._find(self._parts, config)

    def _parts(self, config: Configuration[Thread]) -> RowParts:
        _, accepting, *numbers = self._key(config)
        decoded = self.pool.decoded_bytes
        parts = [*self.pool.parts([number for number in numbers if number >= 0])]
        if self.pool.decoded_bytes > decoded:
            self._note()
        if self._token_moves is not None:
            parts += [(self._token_moves.row(-1 - number), WHOLE) for number in numbers if number < 0]
        return [*parts, (self.vocabulary.eos_row, WHOLE)] if accepting else parts

    def let_go(self) -> None:
        """Forget what can be put together again; see `structgen.runtime.core.dense_rows`."""
        self._dense.clear()
        self.pool.let_go_of_decoded()
        self._forget_rows()

    def _rows_of(self, threads: tuple[Thread, ...]) -> set[int]:
        """The rows of threads. Others have their turn between walks, and in long ones."""
        self._lock.begin()
        self._fills += 1  # what others find out meanwhile does not make room for itself
        try:
            if (len(threads) > 1 or isinstance(threads[0][2], Fork)) and self._takes_long(threads):
                row = self.rows.row_of_all(threads, self._counted, _MOST_CELLS)
                if row is not None:
                    return {row}
            return self.decide(threads, ROOT)[0]
        finally:
            self._fills -= 1

    def _takes_long(self, threads: tuple[Thread, ...]) -> bool:
        """Whether enough threads have to be walked that one walk of all together is better."""
        counted = self._counted
        forks = [(state, n & counted, frame.members) for state, n, frame in threads if isinstance(frame, Fork)]
        if len(threads) <= _MANY_WALKS and not forks:
            return False
        rows = self.rows
        tops = [(state, count & counted) for state, count, _ in threads if state >= 0]
        new = [(state, count) for state, count in tops if rows.known(ROOT, state, count) is None]
        lower = [(state, count, self._new_below(state, count, members)) for state, count, members in forks]
        if len(new) + sum(n for *_, n in lower) > _MANY_THREADS:
            return True
        missing = sum(rows.takes_long(state, count) for state, count in new)
        for state, count, n in lower:
            found = rows.known(ROOT, state, count)
            if rows.takes_long(state, count) or (found and len(rows.residuals[found[1]]) > _MANY_NODES):
                missing += n
        return missing > _MANY_WALKS

    def _new_below(self, state: int, count: int, members: Collection[Stack]) -> int:
        """For how many stacks it is not known what comes of what a state leaves open."""
        found = self.rows.known(ROOT, state, count)
        if found is None:
            return len(members)
        if found[1] == NOTHING:
            return 0
        frames = [each for each in members if each is not None]
        known, counted = self.rows.known, self._counted
        return sum(known(found[1], frame.state, frame.count & counted) is None for frame in frames)

    def decide(self, threads: tuple[Thread, ...], residual: int) -> tuple[set[int], set[int]]:
        """The rows of threads entered at a residual list: their own, then what is left open, frame by frame.

        With them come the residual lists of what is left to whatever follows the text.
        """
        rows: set[int] = set()
        left: set[int] = set()
        decided, keeps, counted = self.rows.decided, self._keeps, self._counted
        for state, count, frame in threads:
            after, depth = residual, 0
            if state == END:
                left.add(after)
            while state >= 0:
                found = None if keeps[state] else decided.get((after, state, 0))
                row, after = found or self.rows.decide(after, state, count & counted)
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

    def _union(self, key: tuple[int, ...]) -> NDArray[np.int32]:
        """The row of a configuration: those of the pool, behind them sets of tokens, by -1 less their numbers."""
        _, accepting, *numbers = key
        words = self.vocabulary.words
        row = self.pool.fresh(numbers[0], words) if numbers and numbers[0] >= 0 else np.zeros(words, np.int32)
        for number in numbers[1:] if numbers and numbers[0] >= 0 else numbers:
            if number >= 0:
                self.pool.add_to(row, number)
            elif self._token_moves is not None:
                row |= self._token_moves.row(-1 - number)
        if accepting:
            row |= self.vocabulary.eos_row
        row.setflags(write=False)
        return row

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out."""
        return self._complete

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return len(self.rows)

    def share_rows(self, kept: SharedRows) -> None:
        """Look there for rows inside strings, and keep new ones there."""
        self.rows.shared.keep_in(kept)

    def keep_shared_rows(self) -> None:
        """Keep there whatever is used, also what was at hand from another index or another cache."""
        with self._lock:
            self.rows.shared.keep_used()

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out the missing rows, but for a few that would take too long.

        (One thread; ``threads`` is for machines that walk more.)
        """
        from .fill import decide_everything

        self.lower_all()
        with self._filling():
            complete = decide_everything(self.tables, self.rows, self._lock, meter, progress)
            with self._lock:
                self._filled, self._complete = True, complete
                self.rows.rest()

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        self.lower_all()
        return {"states": self.states, "start": self.tables.start, "filled": self._filled, "complete": self._complete}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format (see docs/internals/format.md); ``self_contained`` includes shared rows."""
        self.lower_all()
        with self._lock:
            shared = self.rows.shared.find_all() if self_contained else self.rows.shared.brought_along()
            return self.tables.to_sections() | to_sections(self.rows, shared)

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> PushdownMachine:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        flags = columns.read_meta(meta, _FIELDS, sizes, where)
        tables, rows = from_sections(vocabulary, sections, sizes, where)
        return cls(tables, vocabulary, rows, filled=flags["filled"], complete=flags["complete"])
