"""`PushdownMachine`: an automaton with a stack and its rows, as a `Machine` that guides move over.

Threads are a state with a count and a stack. Stacks are linked lists of frames that share their tails. Frames are
interned, so that equal ones are the same object (see `structgen.runtime.stack_machine`).

As in `structgen.runtime.automaton`, a step runs no compiled code unless a row is missing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..errors import FormatError
from ..memo import Memo
from ..progress import Progress, silent
from ..properties import cached_property
from ..vocabulary.vocabulary import Vocabulary
from .pushdown_tables import PushdownTables
from .rows import RowPool
from .stack_machine import Configuration, StackMachine
from .stack_rows import NOTHING, ROOT, StackRows
from .stack_sections import from_sections, to_sections
from .stack_walks import too_ambiguous
from .tables import MARK, SET

#: Rows, moves by byte, and frames that are remembered; past that what remembers rows, or frames, starts afresh.
MEMO_ROWS, MEMO_MOVES, MEMO_FRAMES = 1 << 12, 1 << 17, 1 << 18

_UNKNOWN = object()

#: Threads that a configuration can have.
MAX_THREADS = 1 << 10

#: The state of a text that is complete, with nothing on the stack.
END = -1


class Frame:
    """A state to return to, with its count, and the frames below it."""

    __slots__ = ("above", "below", "count", "state")

    def __init__(self, state: int, count: int, below: Frame | None) -> None:
        self.state, self.count, self.below = state, count, below
        self.above: dict[tuple[int, int], Frame] = {}

    def __repr__(self) -> str:
        shown: list[str] = []
        frame: Frame | None = self
        while frame is not None and len(shown) < 12:
            shown.append(f"{frame.state}#{frame.count}" if frame.count else str(frame.state))
            frame = frame.below
        return f"<{' '.join(shown)}>"


#: State, count, and the stack.
Thread = tuple[int, int, Frame | None]


class PushdownMachine(StackMachine[Thread]):
    """A pushdown automaton over a vocabulary. Rows that are missing are worked out on first touch and kept.

    Safe to use from several threads.

    Parameters
    ----------
    tables:
        The automaton.
    vocabulary:
        The tokens.
    rows:
        What states settle, as far as it is known.
    filled, complete:
        Whether all of it was worked out that is worked out ahead of time; and whether guides can need nothing else.
    """

    def __init__(
        self,
        tables: PushdownTables,
        vocabulary: Vocabulary,
        rows: StackRows | None = None,
        *,
        filled: bool = False,
        complete: bool = False,
    ) -> None:
        self.tables = tables
        self.rows = rows if rows is not None else StackRows(tables, vocabulary)
        self.rows.mark()
        self._complete = complete
        self._returns = tables.returns.tobytes()
        self._live: list[int] = tables.live.tolist()
        self._counts = bool(len(tables.loops))
        self._loops: list[list[int]] = tables.loops.tolist()
        self._tests = tables.passes
        self._moves: Memo[int, Any] = Memo(MEMO_MOVES)  # by state and byte; see `_move`
        self._dense: dict[Any, NDArray[np.int32]] = {}
        self._floor: dict[tuple[int, int], Frame] = {}
        self._frames = 0
        super().__init__(vocabulary, ((tables.start, 0, None),), filled=filled)

    @property
    def start_threads(self) -> tuple[Thread, ...]:
        """The threads of the initial configuration."""
        return self._start.threads

    @property
    def pool(self) -> RowPool:
        """The rows, each once."""
        return self.rows.pool

    @property
    def nbytes(self) -> int:
        """Bytes of the automaton and its rows as stored, without rows that belong to the vocabulary."""
        return self.tables.nbytes + self.pool.nbytes + self.rows.resumes.nbytes + 8 * len(self.rows)

    # -- following bytes -------------------------------------------------------------------------------

    def _forget(self) -> None:
        super()._forget()
        todo, self._floor, self._frames = list(self._floor.values()), {}, 0
        for frame in todo:  # grows as it goes; frames that nobody stands on can go, too
            above, frame.above = frame.above, {}
            todo += above.values()

    def _is_full(self) -> bool:
        return super()._is_full() or self._frames >= MEMO_FRAMES

    def repeats(self, config: Any) -> bool:
        """Whether nothing is counted on top of the stack."""
        return not any(count for _, count, _ in config.threads)

    def _follow(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        i, end = 0, len(data)
        while i < end and threads:
            if len(threads) == 1 and not self._counts:
                threads, i = self._follow_one(threads[0], data, i)
            else:
                threads = self.step(threads, data[i])
                i += 1
        return threads

    def _follow_one(self, thread: Thread, data: bytes, begin: int) -> tuple[tuple[Thread, ...], int]:
        """`_follow` from byte ``begin`` on, for one thread that does not count, until it may become several.

        Returns the threads, and the byte to go on from.
        """
        state, _, frame = thread
        moves, returns = self._moves, self._returns
        for i in range(begin, len(data)):
            while True:
                if state < 0:
                    return (), i
                move = moves.get(state << 8 | data[i], _UNKNOWN)
                if move is _UNKNOWN:
                    move = self._move(state, data[i])
                if move is None:
                    if not returns[state] or frame is None:
                        return (), i
                    state, frame = frame.state, frame.below
                    continue
                break
            if type(move) is int and not returns[state]:
                state = move
                continue
            if (returns[state] and frame is not None) or (type(move) is not int and len(move) > 1):
                return self.step(((state, 0, frame),), data[i]), i + 1
            sequence = (move,) if type(move) is int else move[0][1]
            if not sequence:
                state, frame = (END, None) if frame is None else (frame.state, frame.below)
            else:
                for below in sequence[:-1]:
                    frame = self._push(below, 0, frame)
                state = sequence[-1]
        return ((state, 0, frame),), len(data)

    def step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """All threads over one byte."""
        live = self._live
        found: dict[Thread, None] = {}
        for state, count, frame in threads:
            while state >= 0:
                move = self._moves.get(state << 8 | byte, _UNKNOWN)
                if move is _UNKNOWN:
                    move = self._move(state, byte)
                if type(move) is int:
                    found[move, count if live[move] >= 0 else 0, frame] = None
                elif move is not None:
                    for record, sequence in move:
                        self._make(record, sequence, count, frame, found)
                if not self._returns[state] or frame is None:
                    break
                state, count, frame = frame.state, frame.count, frame.below
        if len(found) > MAX_THREADS:
            raise too_ambiguous()
        return tuple(found)

    def _make(
        self,
        record: tuple[int, ...] | None,
        sequence: tuple[int, ...],
        count: int,
        frame: Frame | None,
        found: dict[Thread, None],
    ) -> None:
        """One move of one thread; see `structgen.compiler.pushdown`."""
        if record is not None:
            operation, loop, low, mid, high = record
            if operation == SET:
                first, count = low, 1
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
                first = high if count >= most else mid if count >= least else low
                if first < 0:
                    return
            sequence = (first, *sequence)
        if not sequence:
            found[(END, 0, None) if frame is None else (frame.state, frame.count, frame.below)] = None
            return
        state = sequence[0]
        count = count if self._live[state] >= 0 else 0
        for above in sequence[1:]:
            frame = self._push(state, count, frame)
            state, count = above, 0
        found[state, count, frame] = None

    def _push(self, state: int, count: int, frame: Frame | None) -> Frame:
        above = self._floor if frame is None else frame.above
        pushed = above.get((state, count))
        if pushed is None:
            self._frames += 1
            pushed = above.setdefault((state, count), Frame(state, count, frame))
        return pushed

    @cached_property
    def _edges(self) -> tuple[list[int], ...]:
        t = self.tables
        return tuple(column.tolist() for column in (t.edge_start, t.edge_low, t.edge_high, t.edge_target, t.like))

    def _move(self, state: int, byte: int) -> Any:
        """A state's move for a byte: a state for a plain one, a list of (record, sequence), or None."""
        starts, lows, highs, targets, like = self._edges
        key, here = state << 8 | byte, state
        move: Any = None
        while here >= 0:
            begin = starts[here]
            edge = bisect_right(lows, byte, begin, starts[here + 1]) - 1
            if edge >= begin and byte <= highs[edge]:
                target = targets[edge] - 1
                if target >= 0:
                    move = target if target < self.tables.states else self.tables.moves[target - self.tables.states]
                break
            here = like[here] - 1
        self._moves[key] = move
        return move

    def _candidates(self, threads: tuple[Thread, ...]) -> Iterator[tuple[int]]:
        seen: set[int] = set()
        for thread in threads:
            for byte in self.candidates(thread):
                if byte not in seen:
                    seen.add(byte)
                    yield (byte,)

    def candidates(self, thread: Thread) -> Iterator[int]:
        """The bytes that some state that a thread can come to has moves for; a move may lead nowhere."""
        starts, lows, highs, targets, like = self._edges
        state, _, frame = thread
        while state >= 0:
            here = state
            while here >= 0:
                for edge in range(starts[here], starts[here + 1]):
                    if targets[edge]:
                        yield from range(lows[edge], highs[edge] + 1)
                here = like[here] - 1
            if not self._returns[state] or frame is None:
                break
            state, frame = frame.state, frame.below

    def _may_end(self, threads: tuple[Thread, ...]) -> bool:
        return any(map(self.may_end, threads))

    def may_end(self, thread: Thread) -> bool:
        """Whether the text is complete where a thread is."""
        state, _, frame = thread
        while state >= 0 and self._returns[state]:
            if frame is None:
                return True
            state, frame = frame.state, frame.below
        return state == END

    # -- rows ------------------------------------------------------------------------------------------

    def _work_out(self, config: Configuration[Thread]) -> NDArray[np.int32]:
        if self._may_forget(self.rows):
            self.rows.forget()
            self._dense.clear()
            self._forget_rows()
        if config.row is None or config.row[0] != self.rows.generation:
            numbers: dict[int, None] = {}
            for thread in config.threads:
                numbers.update(dict.fromkeys(self.settle(thread, ROOT)[0]))
            config.row = (self.rows.generation, self.is_accepting(config), *sorted(numbers))
        row = self._dense.get(config.row)
        if row is None:
            row = self._union(config.row)
            if len(self._dense) >= MEMO_ROWS:
                self._dense.clear()
                self._forget_rows()
            self._dense[config.row] = row
        config.dense = row
        return row

    def settle(self, thread: Thread, resume: int) -> tuple[list[int], int]:
        """The rows of a thread entered at a resume list: its own, then what is left open, frame by frame.

        With them comes the resume list of what is left to whatever follows the text.
        """
        state, count, frame = thread
        numbers: list[int] = []
        settled, live = self.rows.settled, self._live
        while state >= 0:
            found = settled.get((resume, state, 0)) if live[state] < 0 else None
            row, resume = found or self.rows.settle(resume, state, count)
            numbers.append(row)
            if resume == NOTHING or frame is None:
                break
            state, count, frame = frame.state, frame.count, frame.below
        return numbers, resume

    def _union(self, key: tuple[Any, ...]) -> NDArray[np.int32]:
        _, accepting, *numbers = key
        row = self.pool.fresh(numbers[0]) if numbers else np.zeros(self.pool.words, np.int32)
        for number in numbers[1:]:
            self.pool.add_to(row, number)
        if accepting:
            row |= self.vocabulary.eos_row
        row.flags.writeable = False
        return row

    def is_complete(self) -> bool:
        """Whether every row that a guide can need has been worked out."""
        return self._complete

    @property
    def known_rows(self) -> int:
        """How many places have been settled so far."""
        return len(self.rows)

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out the missing rows, but for a few that would take too long.

        (One thread; ``threads`` is for machines that walk more.)
        """
        from .reachable import settle_everything

        with self._filling():
            complete = settle_everything(self.tables, self.rows, self._lock, meter, progress)
            with self._lock:
                self._filled, self._complete = True, complete
                self.rows.rest()

    # -- keeping ---------------------------------------------------------------------------------------

    def to_meta(self) -> dict[str, Any]:
        """What goes into the file's meta section."""
        return {"filled": self._filled, "complete": self._complete}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md); ``self_contained`` includes shared rows."""
        with self._lock:
            return self.tables.to_sections() | to_sections(self.rows, self_contained)

    @classmethod
    def from_sections(
        cls, meta: dict[str, Any], sections: dict[str, NDArray[Any]], vocabulary: Vocabulary, where: str
    ) -> PushdownMachine:
        """A machine over arrays used where they lie, after a check of every index. Raises `FormatError`."""
        states, start = meta.get("states"), meta.get("start")
        filled, complete = meta.get("filled"), meta.get("complete")
        if (
            type(states) is not int
            or type(start) is not int
            or type(complete) is not bool
            or type(filled) is not bool
        ):
            raise FormatError("the number of states is missing", where=where)
        tables = PushdownTables.from_sections(states, start, sections, where)
        rows = from_sections(tables, vocabulary, sections, where)
        return cls(tables, vocabulary, rows, filled=filled, complete=complete)
