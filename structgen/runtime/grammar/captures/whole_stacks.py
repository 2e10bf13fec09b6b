"""A text parsed once more, for the parser's stack as a person would draw it.

Steps keep the simplest stack that accepts the same (`GrammarTables.same`): what may follow is read off it, but not
which rules are being written. Here nothing is taken out of the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....system.properties import cached_property
from ..completability.completion_tables import CompletionTables
from ..embedded import Embedded
from ..kernel_gss import KernelMemory
from ..lexeme_futures import LexemeFutures
from ..lexer_threads import LexerThreads, Thread
from ..parser.parser_driver import ParserDriver
from ..tables import GrammarTables
from ..token_reader import TokenReader


class WholeStacks:
    """Threads whose stacks are whole. Whoever uses it holds the machine's lock.

    Of a text that goes on from the one before, only what is new is read.

    Parameters
    ----------
    tables:
        A parser none of whose actions compete.
    futures, embedded, completions:
        What is followed, as `LexerThreads` has it.
    pause:
        Called within long work, with the bytes that it takes.
    """

    def __init__(
        self,
        tables: GrammarTables,
        futures: LexemeFutures,
        embedded: Embedded,
        completions: CompletionTables | None,
        pause: Callable[[int], object],
    ) -> None:
        self._tables = whole = replace(tables, same=tables.same[:0])
        self._completions = completions
        #: What moves the threads in Python's memory.
        self.reader = LexerThreads(ParserDriver(whole), whole, futures, embedded, pause, completions)
        self._known: tuple[bytes, tuple[Thread, ...]] = b"", (self.reader.start,)

    @cached_property
    def _token_reader(self) -> TokenReader:
        """What moves them in the kernels'."""
        memory = KernelMemory(self._tables, self._completions)
        return TokenReader(self._tables, self.reader.parses, memory, self.reader.is_open)

    def read(self, pieces: Sequence[tuple[int, bytes]], *, with_kernels: bool) -> tuple[Thread, ...]:
        """The threads behind a text, by its tokens with their bytes; an id of -1 is bytes alone.

        None are left where that is no beginning of a text.
        """
        if self.reader.parses.is_full():
            self._known = b"", (self.reader.start,)
            self.reader.trim()
        if len(pieces) == 1 and pieces[0][0] < 0:
            return self._read_on(pieces[0][1], with_kernels)
        threads: tuple[Thread, ...] = (self.reader.start,)
        for token_id, data in pieces:
            read = self._over(threads, data, with_kernels) if data else ()
            if token_id >= 0:
                read = (*self.reader.at_token_end(read), *self.reader.take(threads, token_id))
            threads = tuple(dict.fromkeys(read)) if data or token_id >= 0 else threads
        return threads

    def _read_on(self, data: bytes, with_kernels: bool) -> tuple[Thread, ...]:
        """The threads behind bytes; of those before, the ones that are known."""
        known, threads = self._known
        if not data.startswith(known):
            known, threads = b"", (self.reader.start,)
        if len(known) < len(data):
            threads = self._over(threads, data[len(known) :], with_kernels)
        self._known = data, threads
        return threads

    def _over(self, threads: tuple[Thread, ...], data: bytes, with_kernels: bool) -> tuple[Thread, ...]:
        found = self._token_reader.read(threads, data) if with_kernels else None
        return tuple(filter(self.reader.is_alive, self.reader.read(threads, data))) if found is None else found
