"""A text parsed once more, for the parser's stack as a person would draw it.

Steps keep the simplest stack that accepts the same (`GrammarTables.same`): what may follow is read off it, but not
which rules are being written. Here nothing is taken out of the stack.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..lexer_threads import LexerThreads, Thread
from ..token_reader import TokenReader


class WholeStacks:
    """Threads whose stacks are whole. Whoever uses it holds the machine's lock.

    Of a text that goes on from the one before, only what is new is read.

    Parameters
    ----------
    reader:
        What moves the threads in Python's memory, with a `Parser.whole`.
    """

    def __init__(self, reader: LexerThreads) -> None:
        self.reader = reader
        self._token_reader: TokenReader | None = None
        self._known: tuple[bytes, tuple[Thread, ...]] = b"", (reader.start,)

    def read(self, pieces: Sequence[tuple[int, bytes]], kernels: TokenReader | None) -> tuple[Thread, ...]:
        """The threads behind a text, by its tokens with their bytes; an id of -1 is bytes alone.

        None are left where that is no beginning of a text. The kernels' reader is that of simpler stacks; without it
        none is used.
        """
        if self.reader.parses.is_full():
            self._known = b"", (self.reader.start,)
            self.reader.trim()
        if len(pieces) == 1 and pieces[0][0] < 0:
            return self._read_on(pieces[0][1], kernels)
        threads: tuple[Thread, ...] = (self.reader.start,)
        for token_id, data in pieces:
            read = self._over(threads, data, kernels) if data else ()
            if token_id >= 0:
                read = (*self.reader.at_token_end(read), *self.reader.take(threads, token_id))
            threads = tuple(dict.fromkeys(read)) if data or token_id >= 0 else threads
        return threads

    def _read_on(self, data: bytes, kernels: TokenReader | None) -> tuple[Thread, ...]:
        """The threads behind bytes; of those before, the ones that are known."""
        known, threads = self._known
        if not data.startswith(known):
            known, threads = b"", (self.reader.start,)
        if len(known) < len(data):
            threads = self._over(threads, data[len(known) :], kernels)
        self._known = data, threads
        return threads

    def _over(self, threads: tuple[Thread, ...], data: bytes, kernels: TokenReader | None) -> tuple[Thread, ...]:
        found = None
        if kernels is not None:
            if self._token_reader is None:
                self._token_reader = kernels.whole(self.reader.parses, self.reader.is_open)
            found = self._token_reader.read(threads, data)
        return tuple(filter(self.reader.is_alive, self.reader.read(threads, data))) if found is None else found
