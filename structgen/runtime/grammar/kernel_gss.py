"""The parser and its stacks as `structgen.kernels.walk_stack_masks` reads them.

The kernel remembers stacks, what they accept and where terminals lead to, from mask to mask: texts come to the same
stacks again and again, and new ones mostly differ from known ones in a state or two. All of that can be forgotten at
any time.
"""

from __future__ import annotations

from copy import copy
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ..core.blocks import blank, packed
from .completability.completion_tables import CompletionTables, asked_of
from .indentation import LevelTable
from .parser.stack import Stack
from .tables import SYMBOLS, GrammarTables

#: Room for stacks in the kernel, usually, and where one mask needs them: some 140 bytes each, with what is remembered
#: of them. More would be touched for the first time in some step, a millisecond for each megabyte, and be used less.
_FEW_CELLS, _MOST_CELLS = 1 << 13, 1 << 19

#: So many states from the top of a stack are in the kernel's memory, and less than as many again: what is remembered
#: of a stack begins at a multiple of it.
_SHALLOW = 64

#: Places of a stack that are looked at for one question before Python is asked.
_WAITING = 512

#: Bytes of `KernelGss.hits` at most, where there are many sets.
_MOST_HITS = 1 << 23

#: The table of the parser's block that says where those begin that replace a stack, by state.
_SAME_START = 11

_Array: TypeAlias = "NDArray[np.int32] | NDArray[np.uint32] | NDArray[np.uint8] | NDArray[np.int64]"


class ParserTables:
    """The parser's actions, a row for each state."""

    def __init__(self, tables: GrammarTables, completions: CompletionTables | None) -> None:
        states = len(tables.context)
        symbols, number = np.unique(tables.goto[:, 1], return_inverse=True)
        origin = np.searchsorted(symbols, tables.reduce[:, 2])
        known = np.append(symbols, -1)[origin] == tables.reduce[:, 2]
        reduce = np.stack([tables.reduce[:, 1], np.where(known, origin, len(symbols))], axis=1)
        starts = np.searchsorted(tables.reduce[:, 0], np.arange(states + 1))
        self.levels = levels = LevelTable(tables.layout, tables.end, len(tables.ignored))
        # The last column of ``goto`` is for what nothing goes to.
        none = [np.broadcast_to(np.int32(-1), (states, n)) for n in (tables.end + 1, len(symbols) + 1)]
        #: The kernel's argument ``parser``.
        self.block, (shift, goto, *_) = packed([
            *none, starts, reduce, tables.before, tables.shifted, tables.defaults, tables.context, tables.ignored,
            levels.lines, levels.brackets, *_replacements(tables, symbols),
            *_completing(tables, symbols, completions),
        ])  # fmt: skip
        shift[tables.shift[:, 0], tables.shift[:, 1]] = tables.shift[:, 2]
        goto[tables.goto[:, 0], number.reshape(-1)] = tables.goto[:, 2]

    def whole(self) -> ParserTables:
        """The same for which no stack is simpler than another."""
        found = copy(self)
        found.block = self.block.copy()
        begin, rows, _ = found.block[3 * _SAME_START :][:3].tolist()
        found.block[begin : begin + rows] = 0
        return found


def _replacements(tables: GrammarTables, nonterminals: NDArray[np.int32]) -> tuple[_Array, _Array]:
    """`GrammarTables.same` by state on top, as `structgen.kernels.read_token` has it."""
    tops = tables.same[:, 2 + SYMBOLS]
    same = tables.same[np.argsort(tops, kind="stable")]
    tops = same[:, 2 + SYMBOLS]
    symbol_of = np.full(len(tables.context), -1, np.int32)
    for moves in (tables.goto, tables.shift):
        symbol_of[moves[:, 2]] = moves[:, 1]
    kept = np.where(same[:, :1] > 0, symbol_of[tops, None], -1)
    read = np.concatenate([same[:, 2 : 2 + SYMBOLS], kept], axis=1)
    number = np.searchsorted(nonterminals, read)
    is_known = np.append(nonterminals, -1)[number] == read
    read = np.where(read > tables.end, -2 - np.where(is_known, number, len(nonterminals)), read)
    found = np.concatenate([same[:, :1] + same[:, 1:2], read, same[:, 2 + SYMBOLS :]], axis=1).astype(np.int32)
    return np.searchsorted(tops, np.arange(len(tables.context) + 1)).astype(np.int32), found


def _completing(
    tables: GrammarTables, nonterminals: NDArray[np.int32], completions: CompletionTables | None
) -> tuple[_Array, ...]:
    """What completes texts, as the kernels read it: empty tables where that is not known."""
    none = np.zeros(0, np.int32)
    if completions is None:
        return (none,) * 12
    moves = completions.moves.copy()
    number = np.searchsorted(nonterminals, moves[:, 0])
    is_known = np.append(nonterminals, -1)[number] == moves[:, 0]
    moves[:, 0] = np.where(is_known, number, len(nonterminals))
    return (
        completions.reach, completions.net, np.append(0, np.cumsum(1 + completions.reach)).astype(np.int32),
        completions.row_of, completions.sure, completions.starts, moves, completions.sets, completions.first,
        asked_of(tables.endings, tables.end)[1], np.zeros((_WAITING, 3), np.int32),
        np.zeros((_WAITING, completions.sets.shape[1]), np.uint32),
    )  # fmt: skip


#: Each memory's, and anew whenever it forgets.
_epochs = count(1)


class KernelGss:
    """What the kernel remembers, and its scratch.

    Parameters
    ----------
    words:
        Words of a set of terminals.
    cells:
        How many cells there is room for, a power of 2.
    sets:
        How many sets groups have.
    """

    def __init__(self, words: int, cells: int, sets: int) -> None:
        self.size, self.width = cells, max(64, 2 * sets)
        accepts, shifts = max(256, cells // 16), 2 * cells
        offers = min(accepts, max(256, _MOST_HITS // self.width))
        shapes = (
            (cells, 5), (2 * cells, 1), (shifts, 5), (2 * shifts, 1), (accepts, words), (2 * accepts, 1), (offers, 2),
            (2 * accepts, 1), (offers, words), (offers, -(-self.width // 4)), (1 << 12, 2), (1 << 12, words),
            (1 << 14, 4), (cells, 5 + kernels.MOST_DECIDING), (2 * cells, 1), (1 << 16, 1), (1 << 10, 4),
            (1 << 14, 4),
        )  # fmt: skip
        #: The kernel's argument ``stacks``, and ``counts``.
        self.block, parts = blank(shapes)
        flat = [part.reshape(-1) for part in parts]
        self.cells, self.allowed, self.missing, self.questions = parts[0], flat[15], parts[16], parts[17]
        self._todo = parts[12]
        self._slots, self._answer_slots = [flat[k] for k in (1, 3, 5, 7)], flat[14]
        self.counts = np.zeros(kernels.GSS_PROGRESS, np.int64)
        #: What `Stack.epoch` has if `Stack.cell` is a cell of these.
        self.epoch = next(_epochs)

    def __len__(self) -> int:
        return int(self.counts[0])

    def clear(self) -> None:
        """Forget all stacks. Answers stay while there are few of them: they say which states decided them."""
        slots = self._slots.copy()
        answers = int(self.counts[-1])
        if 2 * answers > self.size:
            slots.append(self._answer_slots)
            answers = 0
        for each in slots:
            each[:] = 0
        self.counts[:] = 0
        self.counts[-1] = answers
        self.epoch = next(_epochs)

    def cell(self, stack: Stack, least: int = 0) -> int:
        """The cell of a stack, with so many of its upper states at least, or all of them; or `kernels.FULL`."""
        if not least and stack.epoch == self.epoch:
            return stack.cell
        least = least or _SHALLOW
        depth = stack.depth + 1
        left = depth - max(0, depth // least - 1) * least
        states, here, below = [], stack, -1
        while True:
            states.append(here.state)
            left -= 1
            if not left or here.below is None:
                break
            here = here.below
            if least == _SHALLOW and here.epoch == self.epoch:
                below = here.cell
                break
        states.reverse()
        found: int = kernels.push_states(self.block, self.counts, below, np.array(states, np.int32))
        if found >= 0:
            stack.cell, stack.epoch = found, self.epoch
        return found

    def resume(self, missing: NDArray[np.int32], records: NDArray[np.int32]) -> None:
        """Have the next call of `structgen.kernels.walk_stack_masks` go on with what was missing, now the records."""
        self._todo[: len(missing), 0] = records
        self._todo[: len(missing), 1:] = missing[:, [2, 1, 3]]
        self.counts[[5, 7]] = len(missing), 0

    def is_whole(self, cell: int, stack: Stack) -> bool:
        """Whether all of a stack's states are in its cell."""
        return int(self.cells[cell, 2]) == stack.depth

    def keep_answer(self, cell: int, count: int, question: tuple[int, int, int], answer: bool) -> None:
        """See `structgen.kernels.keep_answer`; a question is a set, a context and a level."""
        if count <= min(kernels.MOST_DECIDING, int(self.cells[cell, 2]) + 1):
            kernels.keep_answer(self.block, self.counts, cell, count, *question, int(answer))

    def above(self, cell: int) -> tuple[list[int], int]:
        """The states that a stack has above the last mask's stack, the lowest first, and how many of that stay."""
        depth_of, here = {}, int(self.counts[4])
        while here >= 0:
            depth_of[here] = int(self.cells[here, 2])
            here = int(self.cells[here, 0])
        states: list[int] = []
        while cell not in depth_of:
            if cell < 0:
                return states[::-1], 0
            states.append(int(self.cells[cell, 1]))
            cell = int(self.cells[cell, 0])
        return states[::-1], depth_of[cell] + 1


class KernelMemory:
    """A parser in the kernels' memory: its tables, and the stacks that there are.

    Parameters
    ----------
    tables:
        A parser none of whose actions compete.
    completions:
        What completes texts, if that is known.
    """

    def __init__(self, tables: GrammarTables, completions: CompletionTables | None) -> None:
        self._tables = tables
        self._completions = completions
        self._gss: KernelGss | None = None
        self._parser: ParserTables | None = None

    @property
    def parser(self) -> ParserTables:
        """The parser's actions, and the levels of indentation."""
        if self._parser is None:
            self._parser = ParserTables(self._tables, self._completions)
        return self._parser

    def whole(self) -> KernelMemory:
        """Memory for stacks of which nothing is taken out, with the same levels of indentation."""
        found = KernelMemory(self._tables, self._completions)
        found._parser = self.parser.whole()
        return found

    def complete(self, completions: CompletionTables | None) -> None:
        """Have the kernels know what completes texts."""
        self._completions = completions
        self.forget()

    def stacks(self, *, size: int = _FEW_CELLS, sets: int = 0) -> KernelGss:
        """Room for so many cells and sets at least."""
        known = self._gss
        if known is None or known.size < size or known.width < sets:
            size, sets = max(size, known.size if known else 0), max(sets, known.width // 2 if known else 0)
            known = self._gss = KernelGss(len(self._tables.ignored), size, sets)
        return known

    def wider(self, full: KernelGss, known: int) -> KernelGss | None:
        """Other room where there is none left, though it began with so many cells; None where there can't be more."""
        if known:
            full.clear()
            return full
        return self.stacks(size=8 * full.size) if full.size < _MOST_CELLS else None

    def lend(self) -> None:
        """Have whoever comes next use others, until these are given `back`."""
        self._gss = None

    def back(self, stacks: KernelGss) -> None:
        """Use these from now on."""
        self._gss = stacks

    @property
    def known_levels(self) -> int:
        """How many levels of indentation there are."""
        return len(self._parser.levels) if self._parser is not None else 0

    def forget(self) -> None:
        """Forget stacks and levels."""
        self._gss = self._parser = None
