"""`ConfigurationStore`: the configurations that texts of one automaton have come to, by number.

It is a lazy DFA (as in RE2): a configuration gets a number when it is first met, and where a token leads from it is
remembered. All of it lies in arrays, and kernels step and write masks; Python works out what is missing. When a store
is full, its automaton gets another one, and guides move there when they next come to something new.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import budget, kernels
from ....errors import BitmaskError, InternalError
from ....kernels import (
    BEYOND,
    DEAD,
    NO_ARENA,
    NO_PARTS,
    NO_SHARED,
    NO_SPACE,
    NOT_LOWERED,
    TOO_MANY_WAYS,
    TOO_SHORT,
    WRITTEN,
)
from ....system.locks import Lock, Rank
from ....system.memo import Memo, memo
from ....system.sizes import COMMON
from ...core.machine import StepFunctions
from ...rows.head import FirstTables, Head
from ...rows.row_store import pages
from ..stacks import END, FORK, Fork, Stack, Thread

if TYPE_CHECKING:
    from ....vocabulary.vocabulary import Vocabulary
    from ...rows.row_pool import RowPool
    from ..partial_masks import StateMasks
    from ..stacks import Stacks
    from ..tables import PushdownTables

#: Configurations, tokens that lead from them, and stack cells; past that a store is full.
MOST_CONFIGS, MOST_TOKENS, MOST_CELLS = 1 << 15, 1 << 19, 1 << 18

#: Room for each to begin with, and for cells that one step may add.
_FEW, _MOST_NEW_CELLS = 1 << 6, 1 << 17

#: Threads of one step, and places that a mask goes through.
_MOST_THREADS, _MOST_PLACES = 1 << 13, 1 << 14

#: Missing partial masks that are worked out before the mask is looked at again; more are walked together.
_MOST_MISSING = 1 << 8

#: So many missing partial masks are decided one by one, whatever their states.
FEW_PARTS = 8

#: Bytes of unions that are written out, for all stores whose rows have as many words, and how many these are at most.
_MOST_PAGE_BYTES, _MOST_PAGES = 1 << 26, 1 << 13

#: Widths of rows of which there are pages.
_MOST_WIDTHS = 4

#: Below the last of the stacks of a fork.
_NIL = -2

#: Configurations whose threads are remembered, and where single bytes lead from some.
_MOST_REMEMBERED, _MOST_AFTER = 1 << 12, 1 << 14

EACH_BYTE = [bytes((byte,)) for byte in range(256)]

#: What the reference stepper does, which remembers more of each frame.
_BEYOND = BEYOND, TOO_MANY_WAYS

#: Threads that a kernel follows over bytes in one step, all together.
_MOST_WORK = 1 << 14


#: State, count and cell of a thread.
Row: TypeAlias = tuple[int, int, int]


class _Scratch:
    """What all stores of a process share: kernels of a store run one at a time.

    It is what they write to while they run, and pages, which have unions of rows by content: masks of different
    definitions are often the same.
    """

    def __init__(self) -> None:
        self.tables = (
            np.empty((_MOST_THREADS, 3), np.int64),
            np.empty((_MOST_PLACES, 2), np.int64),
            np.full(2 * _MOST_PLACES, -1, np.int32),
            np.empty((_MOST_MISSING, 3), np.int64),
            np.empty(_MOST_PLACES, np.int32),
        )
        self._rows: dict[int, NDArray[np.int32]] = {}
        self._pages: Memo[int, Head] = Memo(_MOST_WIDTHS)

    def pages(self, words: int) -> Head:
        """The pages of rows with so many words."""
        found = self._pages.get(words)
        if found is None:
            found = self._pages[words] = pages(max(1, min(_MOST_PAGE_BYTES // (4 * words), _MOST_PAGES)), words)
        return found

    def row(self, words: int) -> NDArray[np.int32]:
        """Room for a row."""
        found = self._rows.get(words)
        if found is None:
            found = self._rows[words] = np.empty(words, np.int32)
        return found


_scratch = _Scratch()
COMMON.append(_scratch)


#: Held while a store's tables grow.
GROWING = Lock(Rank.LEAF)


class Automaton(Protocol):
    """What a store needs of a `structgen.runtime.pushdown.machine.PushdownMachine`."""

    tables: PushdownTables
    vocabulary: Vocabulary
    rows: StateMasks
    pool: RowPool

    @property
    def lock(self) -> Lock:
        """Held while rows are worked out."""

    @property
    def steps(self) -> budget.StepMeter:
        """Counts the work of the reference stepper's steps."""

    def after_token_of(self, threads: tuple[Thread, ...], token_id: int) -> tuple[Thread, ...]:
        """The threads behind a token, measured as a step."""

    def followed(self, threads: tuple[Thread, ...], data: bytes) -> tuple[int, tuple[Thread, ...]]:
        """How many bytes texts go on with, and the threads behind them."""

    def have_arena(self) -> None:
        """Have kernels find the automaton, and states lowered that one of them came to."""

    def rows_of(self, threads: tuple[Thread, ...]) -> tuple[Collection[int], int]:
        """The rows of threads, and the number of a set of tokens that they take by their ids, or -1."""

    def walked_together(self, missing: Sequence[tuple[int, int, int]], threads: tuple[Thread, ...]) -> int | None:
        """The row of threads from one walk of all together; None where walks of each are better."""

    def begin_deciding(self) -> None:
        """Have what is decided from now on stay."""

    def end_deciding(self) -> None:
        """What is decided may be forgotten again."""

    def tell_of_rows(self) -> None:
        """Say that rows were worked out."""

    def known_stacks(self) -> Stacks:
        """The stacks of the reference stepper."""


class ConfigurationStore:
    """Configurations of one automaton with a stack, by number. Safe to use from several threads.

    Parameters
    ----------
    machine:
        The automaton over its vocabulary.
    """

    # For the reference stepper: the threads of configurations.
    _threads: Memo[int, tuple[Thread, ...]] = memo(_MOST_REMEMBERED)
    # For what looks closer at single bytes: threads and where bytes lead.
    _rows_known: Memo[int, list[Row]] = memo(_MOST_REMEMBERED)
    _after: Memo[int, int] = memo(_MOST_AFTER)

    def __init__(self, machine: Automaton) -> None:
        self.machine = machine
        self.vocabulary = machine.vocabulary
        self._rows = machine.rows
        self._head = head = Head(_FIRST)
        self.head = self._words = words = head.words
        row_words = machine.pool.words
        head.put(kernels.S_MACHINE, self._rows.head.words)
        self._pages = _scratch.pages(row_words)
        head.put(kernels.S_PAGES, self._pages.words)
        head.lend(kernels.S_ROOM, *_scratch.tables, _scratch.row(row_words))
        words[kernels.S_GENERATION], words[kernels.S_WORK] = self._rows.generation, _MOST_WORK
        tables = machine.tables
        #: The configuration before the first byte.
        self.start: int = kernels.begin_configs(words, tables.start, int(tables.returns[tables.start]))
        self._most_cells, self._most_configs = MOST_CELLS, MOST_CONFIGS
        # For the reference stepper: stacks of cells and the inverse, large counts.
        self._stacks: dict[int, Stack] = {-1: None}
        self._cells: dict[Stack, int] = {None: -1}
        self._counts: dict[int, int] = {}

    def __len__(self) -> int:
        """Number of configurations."""
        return int(self._words[kernels.N_CONFIGS])

    @property
    def lock(self) -> Lock:
        """Held while steps are made that nobody made before."""
        return self.machine.lock

    def is_full(self) -> bool:
        """Whether it is time for another one."""
        words = self._words
        return bool(
            words[kernels.N_CONFIGS] >= self._most_configs
            or words[kernels.N_TOKENS] >= MOST_TOKENS
            or words[kernels.N_CELLS] >= self._most_cells
        )

    @property
    def functions(self) -> StepFunctions:
        """Two kernels."""
        return StepFunctions(self._words, kernels.find_token, kernels.write_mask)

    # -- steps -----------------------------------------------------------------------------------------

    def advance(self, config: int, token_id: int) -> int | None:
        """Where a token leads; ``None`` where its bytes die, or it has none and the definition does not name it."""
        target: int = kernels.find_token(self._words, config, token_id)
        return target if target >= 0 else self.missed(config, token_id, target)

    def missed(self, config: int, token_id: int, found: int) -> int | None:
        """See `Stepper`."""
        if found == DEAD:
            return None
        with self.machine.lock:  # walks lay out rows of the automaton, too
            while (target := kernels.step_token(self._words, config, token_id)) < DEAD:
                if not self._is_beyond(target):
                    self._provide(target)
                    continue
                target = self._step_beyond(config, token_id)
                while kernels.put_target(self._words, config, token_id, target):
                    self._grow()
                break
        return target if target >= 0 else None

    def _step_beyond(self, config: int, token_id: int) -> int:
        """Where a token leads by the reference stepper, or `DEAD`."""
        after = self.machine.after_token_of(self.threads(config), token_id)
        return self.add(after) if after else DEAD

    def _is_beyond(self, status: int) -> bool:
        """Whether the reference stepper does it: kernels don't, or it takes more room than a step may."""
        return status in _BEYOND or (status == NO_SPACE and self._is_large())

    def after_byte(self, config: int, byte: int) -> int:
        """The configuration behind a byte, -1 where texts don't go on with it; remembered."""
        key = config << 8 | byte
        found = self._after.get(key)
        if found is None:
            consumed, target = self.follow(config, EACH_BYTE[byte])
            found = self._after[key] = target if consumed else -1
        return found

    def follow(self, config: int, data: bytes) -> tuple[int, int]:
        """How many of some bytes texts go on with, and the configuration behind these."""
        text, consumed = np.frombuffer(data, np.uint8), 0
        while consumed < len(data):
            with self.machine.lock:
                target, count = kernels.step_bytes(self._words, config, text[consumed:])
                if self._is_beyond(target):
                    count, threads = self.machine.followed(self.threads(config), data[consumed:])
                    return consumed + count, self.add(threads) if count else config
                if target < 0:
                    self._provide(target)
                    continue
            config, consumed = target, consumed + count
            if consumed < len(data):
                break
        return consumed, config

    def _provide(self, status: int) -> None:
        """Do what a kernel needs before it can go on."""
        if status in (NO_ARENA, NOT_LOWERED):
            self.machine.have_arena()
        elif status == NO_SPACE:
            self._grow()
        else:
            raise InternalError(f"a store has no such configuration ({status})")

    # -- masks -----------------------------------------------------------------------------------------

    def write_mask(self, config: int, bitmask: NDArray[np.int32]) -> None:
        """Write the mask of a configuration, EOS ids included, to a contiguous ``int32[*]``.

        What is wider becomes zero; it is as wide as tokens with bytes need at least.
        """
        status = kernels.write_mask(self._words, config, bitmask)
        if status:
            self.write_slowly(config, bitmask, status)

    def write_slowly(self, config: int, bitmask: NDArray[np.int32], status: int) -> None:
        """Write all tokens that threads allow, after a kernel has not."""
        machine, parts = self.machine, self._rows.parts
        known = len(parts)
        with machine.lock:
            if status == NO_PARTS and not self._rows.is_full():
                status = kernels.decide_and_write(self._words, config, FEW_PARTS, bitmask)
            if status:
                self._write_with_help(config, bitmask)
            fresh = len(parts) > known
        if fresh:
            machine.tell_of_rows()

    def _write_with_help(self, config: int, bitmask: NDArray[np.int32]) -> None:
        machine = self.machine
        machine.begin_deciding()
        try:
            while status := kernels.write_whole_mask(self._words, config, bitmask):
                if status == TOO_SHORT:
                    raise BitmaskError(f"a mask has {machine.pool.words} words or more, got {len(bitmask)}")
                self._help(status, config)
        finally:
            machine.end_deciding()

    def _help(self, status: int, config: int) -> None:
        """Do what a kernel needs before it can write a mask."""
        machine = self.machine
        if status == NO_PARTS:
            self._decide(config)
            machine.lock.give_way()
        elif status == NO_SHARED:
            machine.pool.lend(int(machine.pool.head.words[kernels.R_MISSING]))
        elif status in _BEYOND:
            self._put_rows(config, *machine.steps.measured(machine.rows_of, self.threads(config)))
        else:
            self._provide(status)

    def row(self, config: int) -> NDArray[np.int32]:
        """The mask of a configuration, a new read-only ``int32[words]``."""
        row = np.empty(self.vocabulary.words, np.int32)
        self.write_mask(config, row)
        row.flags.writeable = False
        return row

    def _decide(self, config: int) -> None:
        """Work out partial masks that a mask lacks, as many as a kernel can, or the next one."""
        status = kernels.decide_missing(self._words, config, FEW_PARTS)
        if status == NO_PARTS:
            self.machine.steps.measured(self._decide_many, config)
        elif status != WRITTEN:
            self._rows.decide_next(status)

    def _decide_many(self, config: int) -> None:
        missing = np.empty((_MOST_MISSING, 3), np.int64)
        count = kernels.missing_parts(self._words, config, missing)
        wanted = [tuple(each) for each in missing[:count].tolist()]
        row = self.machine.walked_together(wanted, self.threads(config))
        if row is not None:
            self._put_rows(config, [row])
            return
        for residual, state, count in wanted:
            self._rows.decide(residual, state, count)

    def _put_rows(self, config: int, numbers: Collection[int], tokens: int = -1) -> None:
        rows = np.array(sorted(numbers), np.int32)
        while kernels.put_union(self._words, config, rows, tokens):
            self._grow()

    def is_accepting(self, config: int) -> bool:
        """Whether the text so far is complete."""
        return bool(self._head[kernels.S_CONFIGS][config, kernels.C_ACCEPTS])

    # -- room ------------------------------------------------------------------------------------------

    def _grow(self) -> None:
        """Have more room in tables that are full, or nearly."""
        lengths = np.empty(kernels.GROWING_TABLES, np.int64)
        with GROWING:
            kernels.longer_tables(self._words, lengths)
            self._head.lengthen(lengths)

    def _is_large(self) -> bool:
        """Whether there is room for more cells than one step may add."""
        return len(self._head[kernels.S_CELLS]) - int(self._words[kernels.N_CELLS]) > _MOST_NEW_CELLS

    # -- for people, and what kernels don't do ---------------------------------------------------------

    def threads(self, config: int) -> tuple[Thread, ...]:
        """The threads of a configuration, as the reference stepper has them."""
        found = self._threads.get(config)
        if found is None:
            first, count, ended, *_ = self._head[kernels.S_CONFIGS][config].tolist()
            cells, stacks, known = self._head[kernels.S_CELLS], self.machine.known_stacks(), self._stacks
            members = self._head[kernels.S_THREADS][first : first + count].tolist()
            count_of = self._count_of
            found = tuple(
                [(state, count_of(n), stacks.of_cell(cell, cells, known, count_of)) for state, n, cell in members]
            )
            if ended:
                found = ((END, 0, None), *found)
            self._threads[config] = found
        return found

    def add(self, threads: Sequence[Thread]) -> int:
        """The number of the configuration of some threads of the reference stepper."""
        number = self.keep([(state, self._word(n), self._cell_of(stack)) for state, n, stack in threads])
        self._threads[number] = tuple(threads)
        return number

    def rows_of(self, config: int) -> list[Row]:
        """State, count and cell of each thread; the state is `END` where the text may have ended."""
        found = self._rows_known.get(config)
        if found is None:
            with self.machine.lock:  # no table grows
                first, count, ended, *_ = self._head[kernels.S_CONFIGS][config].tolist()
                rows = self._head[kernels.S_THREADS][first : first + count].tolist()
            found = self._rows_known[config] = [(state, n, cell) for state, n, cell in rows] + [(END, 0, -1)] * ended
        return found

    def left_to(self, config: int) -> list[Row]:
        """The same, and all threads that the next byte may be left to."""
        rows, returns = self.rows_of(config), self.machine.tables.returns
        todo = [cell for state, _, cell in rows if state != END and returns[state]]
        if not todo:
            return rows
        found = dict.fromkeys(rows)
        with self.machine.lock:
            cells = self._head[kernels.S_CELLS]
            for cell in todo:  # which grows
                row = (END, 0, -1) if cell < 0 else tuple(cells[cell, :3].tolist())
                if row[0] == FORK:
                    todo += [row[1]] if row[2] == _NIL else [row[1], row[2]]
                elif row not in found:
                    found[row] = None
                    if row[0] != END and returns[row[0]]:
                        todo.append(row[2])
        return [*found]

    def below(self, config: int, most: int) -> dict[int, Row] | None:
        """The stack cells below threads, by number; None where they are more than so many."""
        todo, found = [cell for _, _, cell in self.rows_of(config)], dict[int, Row]()
        with self.machine.lock:
            cells = self._head[kernels.S_CELLS]
            while todo and len(found) <= most:
                cell = todo.pop()
                if cell >= 0 and cell not in found:
                    found[cell] = state, count, below = tuple(cells[cell, :3].tolist())
                    todo += (count, below) if state == FORK else (below,)
        return None if todo else found

    def keep(self, threads: Collection[Row]) -> int:
        """The number of the configuration of some threads, as `rows_of` and `left_to` have them."""
        found = np.array([each for each in threads if each[0] != END], np.int64).reshape(-1, 3)
        with self.machine.lock:
            while (number := kernels.add_config(self._words, found, int(len(found) < len(threads)))) < 0:
                self._provide(number)
        return int(number)

    def _cell_of(self, stack: Stack) -> int:
        """The cell of a frame of the reference stepper; those of lower frames are known or found first."""
        known, todo = self._cells, [stack]
        while todo:
            here = todo[-1]
            lower = [] if here is None or here in known else [*here.members] if isinstance(here, Fork) else [here.below]
            missing = [each for each in lower if each not in known]
            if missing:
                todo += missing
                continue
            todo.pop()
            if here is None or here in known:
                continue
            if isinstance(here, Fork):
                cell = _NIL
                for member in sorted((known[each] for each in lower), reverse=True):
                    cell = self._add_cell(FORK, member, cell)
            else:
                cell = self._add_cell(here.state, self._word(here.count), known[here.below])
            known[here] = cell
        return known[stack]

    def _add_cell(self, state: int, count: int, below: int) -> int:
        while (number := kernels.add_cell(self._words, state, count, below)) < 0:
            self._provide(number)
        return int(number)

    def _word(self, count: int) -> int:
        """What kernels have for a count: the same, or what stands for a large one."""
        if count < kernels.NUMBERED:
            return count
        return kernels.NUMBERED + self._counts.setdefault(count, len(self._counts))

    def _count_of(self, word: int) -> int:
        """The inverse of `_word`."""
        return word if word < kernels.NUMBERED else [*self._counts][word - kernels.NUMBERED]

    def adopt(self, other: ConfigurationStore, configs: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers here of configurations of another store of the automaton; numbers below 0 stay."""
        if other is self:
            return configs
        if other._counts:
            with self.machine.lock:  # large counts get numbers
                return np.array([c if c < 0 else self.add(other.threads(c)) for c in configs.tolist()], np.int32)
        found, numbers = np.empty(len(configs), np.int32), np.empty(len(other._head[kernels.S_CELLS]), np.int64)
        while status := kernels.adopt_configs(other._words, self._words, configs, numbers, found):
            self._provide(status)
        # What a guide can go back to stays, however much it is.
        self._most_cells = max(self._most_cells, 2 * int(self._words[kernels.N_CELLS]))
        self._most_configs = max(self._most_configs, 2 * len(self))
        return found

    def explain(self, config: int) -> str:
        """A configuration for people: states with counts, and the stack below each, the topmost frame first."""
        return " | ".join(map(repr, self.threads(config)))


def _slots(items: int) -> NDArray[np.int32]:
    return np.full(2 * items, -1, np.int32)


#: The tables of a store that is new.
_FIRST = FirstTables(kernels.STORE_HEAD, {
    kernels.S_CELLS: np.zeros((_FEW, kernels.CELL), np.int64), kernels.S_CELL_SLOTS: _slots(_FEW),
    kernels.S_THREADS: np.zeros((_FEW, 3), np.int64), kernels.S_CONFIGS: np.zeros((_FEW, kernels.CONFIG), np.int64),
    kernels.S_CONFIG_SLOTS: _slots(_FEW), kernels.S_TOKENS: np.full(2 * _FEW, -1, np.int64),
    kernels.S_TARGETS: np.zeros(2 * _FEW, np.int32), kernels.S_UNIONS: np.zeros((_FEW, kernels.UNION), np.int32),
    kernels.S_UNION_ROWS: np.zeros(4 * _FEW, np.int32), kernels.S_UNION_SLOTS: _slots(_FEW),
})  # fmt: skip
