"""Masks of a lexeme in progress on a parser's stack, composed of partial masks and remembered by what decided them.

What a partial mask allows depends on the states on top of the stack, as far down as the parser looked while it went
through the terminals that tokens complete. So a row is kept under just those states, and holds for every stack that
has them on top: for the same statement at another depth, in another function, in another text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.properties import cached_property
from .indentation import Level
from .kernel_gss import KernelGss, KernelMemory
from .lexer_threads import LexerThreads
from .mask_graph import PartialMaskGraph
from .parser.parser_driver import Parse
from .parser.stack import Stack
from .partial_masks import ROOT, LexemeMasks, Watched
from .walked_rows import WalkedRows

#: Bytes of rows that are kept; past that the memory starts afresh.
_MOST_BYTES = 256 << 20

#: A row that more states decided is kept for that stack alone: what takes in so many is of no use for others.
_MOST_STATES = 64

#: Records that the kernel goes through in a slice: a millisecond or two.
_RECORDS = 1 << 13

#: Partial masks that are decided at once.
_FEW = 64

#: Levels of indentation that the kernel knows, a kilobyte or two each.
_MOST_LEVELS = 1 << 14

#: A lexer state, the obligations, the context, the level, and the state on top of the stack.
_Key: TypeAlias = tuple[int, Watched, int, Level | None, int]


class StackMasks:
    """The rows of threads, over the partial masks of one index.

    Parameters
    ----------
    lexeme_masks, reader, memory:
        What is decided; the threads' moves, and the parser in the kernels' memory.
    pause:
        Called between walks of the vocabulary; other rows may be put together meanwhile.
    """

    def __init__(
        self, lexeme_masks: LexemeMasks, reader: LexerThreads, memory: KernelMemory, pause: Callable[[], None]
    ) -> None:
        self._lexeme_masks = lexeme_masks
        self._words = lexeme_masks.vocabulary.words
        self._reader = reader
        self._pause = pause
        self._memory = memory
        #: Rows that the kernel does not put together.
        self.walked = WalkedRows(lexeme_masks, reader, self.note, pause)
        self._find = self._walk if lexeme_masks.tables.is_deterministic else self.walked.find
        #: By key and by how many states were looked at, the rows by those states.
        self._known: dict[_Key, dict[int, dict[tuple[object, ...], NDArray[np.int32]]]] = {}
        #: The rows that more states decided than these are told apart by, by key and stack.
        self._deep: dict[tuple[_Key, Stack], NDArray[np.int32]] = {}
        #: By the groups that they have.
        self._rows: dict[bytes, NDArray[np.int32]] = {}
        self._bytes = 0
        #: How often everything was forgotten.
        self.generation = 0

    @cached_property
    def _graph(self) -> PartialMaskGraph:
        return PartialMaskGraph(self._lexeme_masks)

    def row(self, parse: Parse, lexer: int, watched: Watched) -> NDArray[np.int32]:
        """The row of a thread: read-only ``int32[words]``, without EOS ids."""
        stack = parse.stack
        key = lexer, watched, parse.context, parse.level, stack.state
        by_length = self._known.get(key)
        if by_length is not None:
            states = stack.top(max(by_length))
            for length, rows in by_length.items():
                row = rows.get(states[:length])
                if row is not None:
                    return row
        row = self._deep.get((key, stack))
        if row is not None:
            return row
        row, length = self._find(parse, lexer, watched)
        self.note(400 + 8 * min(length, _MOST_STATES))
        if length > _MOST_STATES:
            self._deep[key, stack] = row
            return row
        self._known.setdefault(key, {}).setdefault(length, {})[stack.top(length)] = row
        return row

    def _walk(self, parse: Parse, lexer: int, watched: Watched) -> tuple[NDArray[np.int32], int]:
        """A row, and how many states decided it."""
        graph, memory = self._graph, self._memory
        parser = memory.parser
        if parser.levels.is_narrow(parse.level):
            return self.walked.find(parse, lexer, watched)
        record, level = graph.number(ROOT, lexer, watched), parser.levels.number(parse.level)
        cells = memory.stacks(sets=len(graph.of_endings.tight))
        least = 0
        while True:
            known = len(cells)
            cell = n = cells.cell(parse.stack, least)
            if cell >= 0:
                n = kernels.UNFINISHED
            while n == kernels.UNFINISHED:
                of_endings = graph.of_endings
                if len(of_endings.tight) > cells.width:  # others had many new sets
                    return self.walked.find(parse, lexer, watched)
                n, missing, questions, depth_read = kernels.walk_stack_masks(
                    parser.block, parser.levels.block, graph.records.data, of_endings.sets, of_endings.tight,
                    graph.target, cell, record, parse.context, level, _RECORDS, cells.block, cells.counts,
                )  # fmt: skip
                if n == kernels.UNFINISHED:
                    memory.lend()
                    self._pause()
                    memory.back(cells)
                elif n >= 0 and missing and self._goes_on(cells, missing):
                    n = kernels.UNFINISHED
            if n == kernels.SHORT and not cells.is_whole(cell, parse.stack):
                least = 64 * (int(cells.cells[cell, 2]) + 1)
            elif n == kernels.FULL and (wider := memory.wider(cells, known)) is not None:
                cells = wider
            elif n < 0:
                return self.walked.find(parse, lexer, watched)
            elif missing:
                if not self._follow(cells.missing[:missing]):
                    return self.walked.find(parse, lexer, watched)
                cells = memory.stacks(sets=len(graph.of_endings.tight))  # there may be new sets
            else:
                break
        given = int(cells.cells[cell, 2]) + 1
        groups, length = cells.allowed[:n].copy(), given - depth_read
        if questions:
            more, deepest = self._answer(parse, given, cells, questions)
            groups, length = np.append(groups, more), max(length, deepest)
        return self._row_of(groups), length

    def _follow(self, wanted: NDArray[np.int32]) -> bool:
        """Have all at hand that a walk lacked; False where some of it is not for kernels."""
        pairs = dict.fromkeys((number, to) for number, to, *_ in wanted.tolist())
        if not self._memory.parser.levels.follow_all([(-1 - number, to) for number, to in pairs if number < 0]):
            return False
        following = [pair for pair in pairs if pair[0] >= 0]
        for done in range(0, len(following), _FEW):
            self._graph.follow(following[done : done + _FEW])
            self._pause()
        return True

    def _goes_on(self, cells: KernelGss, missing: int) -> bool:
        """Whether a walk can go on where it lacked so many partial masks, at hand now; else it begins anew.

        A token of a hundred dashes lacks a hundred, one behind the other.
        """
        wanted = cells.missing[:missing].copy()
        if missing == len(cells.missing) or (wanted[:, 0] < 0).any():
            return False
        self._memory.lend()
        self._follow(wanted)
        self._memory.back(cells)
        if len(self._graph.of_endings.tight) > cells.width:
            return False
        cells.resume(wanted, self._graph.target[wanted[:, 0], wanted[:, 1]])
        return True

    def _answer(self, parse: Parse, given: int, cells: KernelGss, questions: int) -> tuple[NDArray[np.int32], int]:
        """Those groups that the kernel left open and that are allowed, and how many states decided it.

        To find that out may give way to others, who use the cells; so these are read before.
        """
        lowest, epoch, tight = parse.stack.depth, cells.epoch, self._graph.of_endings.tight
        parses: dict[tuple[int, int, int], Parse] = {}
        sets: dict[tuple[int, int, int, int], list[int]] = {}
        for cell, context, level, group in cells.questions[:questions].tolist():
            number = int(tight[self._graph.records.data[group] >> 5, 0]) >> 3
            sets.setdefault((cell, context, level, number), []).append(group)
            if (cell, context, level) not in parses:
                states, left = cells.above(cell)
                where = self._memory.parser.levels.level(level)
                parses[cell, context, level] = self._reader.parses.on(parse, given - left, states, context, where)
        found = []
        for (cell, context, level, number), groups in sets.items():
            after = parses[cell, context, level]
            is_open, depth_read, is_alike = self._reader.is_surely_followed(after, self._graph.wanted(number))
            lowest = min(lowest, depth_read)
            if is_open:
                found += groups
            if cells.epoch == epoch:  # nobody has forgotten them meanwhile
                known = self._memory.parser.levels.alike(level) if is_alike else level
                cells.keep_answer(cell, after.stack.depth + 1 - depth_read, (number, context, known), is_open)
        return np.array(found, np.int32), parse.stack.depth + 1 - lowest

    def _row_of(self, groups: NDArray[np.int32]) -> NDArray[np.int32]:
        """The row of groups, the same array for the same ones: different stacks often allow the same."""
        key = groups.tobytes()
        row = self._rows.get(key)
        if row is None:
            graph, pool = self._graph, self._lexeme_masks.pool
            bits, rows = np.zeros(self._words, np.uint32), np.empty(len(groups), np.int32)
            n = kernels.add_groups(graph.records.data, graph.ids.data, groups, bits, rows)
            row = bits.view(np.int32)
            for number in set(rows[:n].tolist()):
                pool.add_to(row, number)
            row.flags.writeable = False
            self.note(row.nbytes + len(key))
            self._rows[key] = row
        return row

    def note(self, size: int) -> None:
        """Count bytes that are kept; when there are too many, everything is forgotten."""
        self._bytes += size
        if self._bytes > _MOST_BYTES:
            self._forget_rows()
            self._bytes = size

    def _forget_rows(self) -> None:
        self._known.clear()
        self._deep.clear()
        self._rows.clear()
        self.walked.clear()
        self._bytes = 0
        self.generation += 1

    def is_full(self) -> bool:
        """Whether there are so many levels of indentation that it is time to `forget`."""
        return self._memory.known_levels > _MOST_LEVELS

    def forget(self) -> None:
        """Forget all rows, partial masks and levels."""
        self._forget_rows()
        self._memory.forget()
        self.__dict__.pop("_graph", None)
