"""Threads of a grammar's lexer and parser over tokens, in a kernel.

It does what `structgen.runtime.grammar.lexer_threads` does for grammars whose actions do not compete, and says so
where it can't: where several lexemes are watched at once, or the kernels' memory does not suffice.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.properties import cached_property
from ..core.bitsets import bits_of
from ..core.blocks import packed
from .kernel_gss import KernelGss, KernelMemory
from .lexer_threads import Opening, Thread
from .mask_graph import SetsOfEndings
from .parser.parser_driver import Parse, ParserDriver
from .tables import GrammarTables

#: Threads that are followed at once, and states that they put on their stacks with one token.
_THREADS, _PUSHED = 16, 1 << 12


class TokenReader:
    """Moves threads over tokens. Whoever uses it holds the machine's lock.

    Parameters
    ----------
    tables, parses, memory:
        The lexer and the parser, in Python's memory and in the kernels'.
    is_open:
        Whether a lexeme can be completed: asked of threads for which the kernel leaves it open.
    """

    def __init__(
        self, tables: GrammarTables, parses: ParserDriver, memory: KernelMemory, is_open: Callable[[Thread], Opening]
    ) -> None:
        self._tables = tables
        self._parses = parses
        self._memory = memory
        self._is_open = is_open
        self._fresh = frozenset(tables.starts.tolist())
        self._threads = np.zeros((_THREADS, kernels.THREAD), np.int32)
        self._others = np.zeros((_THREADS, kernels.THREAD), np.int32)
        self._entered = self._threads.data  # takes single numbers in a tenth of the time
        self._scratch = np.zeros(64 + _THREADS, np.int32)
        self._above = np.zeros(_PUSHED, np.int32)

    def whole(self, parses: ParserDriver, is_open: Callable[[Thread], Opening]) -> TokenReader:
        """The same with stacks of which nothing is taken out, under the same lock; see `Parser.whole`."""
        found = copy(self)
        found._parses, found._memory, found._is_open = parses, self._memory.whole(), is_open
        return found

    @cached_property
    def _lexer(self) -> NDArray[np.int32]:
        """The kernel's argument ``lexer_block``."""
        return self._block(*self._futures)

    @cached_property
    def _ends(self) -> NDArray[np.int32]:
        """The same without what lexemes can become, for `may_end`: a first mask comes sooner."""
        nothing = np.zeros(0, np.int32)
        return self._block(nothing, nothing, nothing)

    def _block(self, *futures: NDArray[np.int32] | NDArray[np.uint32]) -> NDArray[np.int32]:
        tables = self._tables
        starts = np.searchsorted(tables.ends[:, 0], np.arange(len(tables.table) + 1))
        block, _ = packed(
            [tables.class_of, starts, tables.ends[:, 1:], tables.beats, tables.lapses, tables.starts, *futures]
        )
        return block

    @cached_property
    def _last(self) -> frozenset[int]:
        """The lexer states in which a text may be complete, as far as the table tells.

        A lexeme may end there that is ignored, or shifted to a state that does anything before the end of the text;
        or none has begun.
        """
        tables = self._tables
        if tables.layout is not None:
            return frozenset(range(len(tables.table)))
        word, bit = tables.end >> 5, np.uint32(1 << (tables.end & 31))
        mentions = tables.shifted[:, word] & bit > 0
        mentions[tables.reduce[tables.before[:, word] & bit > 0, 0]] = True
        is_last = bits_of(tables.ignored.reshape(1, -1), tables.members)[0]
        is_last[tables.shift[mentions[tables.shift[:, 2]], 1]] = True
        return self._fresh.union(tables.ends[is_last[tables.ends[:, 1]], 0].tolist())

    @cached_property
    def _futures(self) -> tuple[NDArray[np.int32], NDArray[np.uint32], NDArray[np.int32]]:
        """By lexer state the number of what a lexeme can become, and these sets as kernels read them."""
        tables = self._tables
        if tables.endings.is_unconstrained:  # what equal sets would save is less than to find them
            words, number = tables.future, np.arange(len(tables.future), dtype=np.int32)
        else:
            words, number = tables.distinct_futures
        of_endings = SetsOfEndings(words, tables)
        return number, of_endings.sets, of_endings.tight

    def read(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...] | None:
        """The threads after some bytes that can go on; None where the kernel can't tell."""
        if len(threads) > _THREADS or any(len(watched) > 1 for _, _, watched in threads):
            return None
        memory, parser, number = self._memory, self._memory.parser, len(threads)
        if any(parser.levels.is_narrow(parse.level) for parse, _, _ in threads):
            return None
        text = np.frombuffer(data, np.uint8)
        least = 0
        stacks = memory.stacks()
        while True:
            known = len(stacks)
            n = self._begin(threads, stacks, least)
            a = b = 0
            if n >= 0:
                n, a, b = kernels.read_token(
                    parser.block, parser.levels.block, self._lexer, self._tables.table, stacks.block, stacks.counts,
                    text, self._threads, self._others, number, self._scratch, self._above,
                )  # fmt: skip
            if n >= 0:
                return self._found(threads, n, stacks)
            if n == kernels.NO_LEVEL:
                if not parser.levels.follow(a, b):
                    return None
            elif n == kernels.FULL and (wider := memory.wider(stacks, known)) is not None:
                stacks = wider
            elif n == kernels.SHORT and not least and any(parse.stack.depth >= 64 for parse, _, _ in threads):
                least = 1 << 30
            else:
                return None

    def _begin(self, threads: tuple[Thread, ...], stacks: KernelGss, least: int) -> int:
        """Enter the threads; negative where a stack has no cell."""
        number, entered = self._memory.parser.levels.number, self._entered
        for k, (parse, lexer, watched) in enumerate(threads):
            cell = stacks.cell(parse.stack, least)
            if cell < 0:
                return cell
            assert not isinstance(lexer, tuple)
            entered[k, 0], entered[k, 1], entered[k, 2] = cell, parse.context, number(parse.level)
            entered[k, 3], entered[k, 4] = lexer, watched[0] if watched else -1
        return len(threads)

    def _found(self, threads: tuple[Thread, ...], n: int, stacks: KernelGss) -> tuple[Thread, ...]:
        found, used, above, contexts = [], 0, self._above, len(self._tables.starts)
        levels, epoch = self._memory.parser.levels, stacks.epoch
        level_of = levels.level
        for cell, context, level, lexer, watch, number, alive, popped, pushed in self._threads[:n].tolist():
            first = used
            used += pushed
            if not alive:
                continue
            parse: Parse = threads[number][0]
            if popped or pushed or context != parse.context or level_of(level) != parse.level:
                states = above[first:used].tolist()
                states.reverse()
                parse = self._parses.on(parse, popped, states, context, level_of(level))
                parse.stack.cell, parse.stack.epoch = cell, stacks.epoch
            thread = parse, lexer, (watch,) if watch >= 0 else ()
            if alive == 2:
                above = above.copy()  # whoever is given way to meanwhile reads with the same scratch
                alive, depth_read, is_alike = self._is_open(thread)
                at = levels.alike(level) if is_alike else level
                where = kernels.OF_LEXER + lexer, context + contexts * (1 + watch), at
                if stacks.epoch == epoch:
                    stacks.keep_answer(cell, parse.stack.depth + 1 - depth_read, where, alive)
            if alive:
                found.append(thread)
        return tuple(found)

    def may_end(self, threads: tuple[Thread, ...]) -> bool | None:
        """Whether the text may end here; None where the kernel can't tell."""
        memory, parser = self._memory, self._memory.parser
        for parse, lexer, watched in threads:
            if lexer not in self._last:
                continue
            if len(watched) > 1:
                return None
            stacks, level = memory.stacks(), parser.levels.number(parse.level)
            cell = answer = stacks.cell(parse.stack)
            while cell >= 0:
                answer, a, b = kernels.may_end_text(
                    parser.block, parser.levels.block, self._ends, stacks.block, stacks.counts, cell, level, lexer,
                    watched[0] if watched else -1, int(lexer in self._fresh),
                )  # fmt: skip
                if answer != kernels.NO_LEVEL or not parser.levels.follow(a, b):
                    break
            if answer < 0:
                return None
            if answer:
                return True
        return False
