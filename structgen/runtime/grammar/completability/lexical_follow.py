"""What the lexer can read next, beside definitions and special tokens in the grammar, and past what is ignored.

Of a definition in the grammar only the first byte is looked at: where something is still watched behind that, it is
taken for one that does not matter.
"""

from __future__ import annotations

from ....system.memo import Memo
from ....system.properties import cached_property
from ...core.bitsets import set_at
from ...core.digraph import bits
from ..embedded import Embedded
from ..tables import GrammarTables
from .boundaries import MOST_ANSWERS, Boundaries
from .obligations import Watched


class LexicalFollow:
    """What can be read in one grammar whose endings are not all unconstrained.

    Parameters
    ----------
    tables, boundaries:
        The grammar.
    embedded:
        Definitions and special tokens within it.
    """

    def __init__(self, tables: GrammarTables, boundaries: Boundaries, embedded: Embedded) -> None:
        endings = tables.endings
        self._tables = tables
        self._embedded = embedded
        self._boundary = endings.boundary
        self._given = endings.given
        #: The end of the text, which is the ending after the last.
        self.last = len(endings)
        self._boundaries = boundaries
        ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._ignored = sum(1 << e for e, terminal in enumerate(endings.terminal) if ignored >> terminal & 1)
        self._nexts: Memo[tuple[int, Watched, int], int] = Memo(MOST_ANSWERS)

    @cached_property
    def _begins(self) -> list[tuple[int, int]]:
        """The endings of definitions, with the classes of bytes that their texts begin with."""
        found = []
        for terminal, machine in self._embedded.definitions:
            begun = {byte: machine.step(machine.start_threads, byte) for byte in range(256)}
            bytes_of = [byte for byte, there in begun.items() if there and machine.after_token(there)]
            classes = {int(self._tables.class_of[byte]) for byte in bytes_of}
            found.append((self._given(terminal), sum(1 << c for c in classes)))
        return found

    @cached_property
    def _silent(self) -> int:
        """What can come where no byte does, as a set: the end of the text, special tokens."""
        tokens = bits(self._embedded.token_terminals)
        return 1 << self.last | sum(1 << self._given(terminal) for terminal in tokens)

    def next(self, context: int, boundary: Watched, also: int = 0) -> int:
        """The endings that can come next, ignored lexemes left out, as a set; ``also`` are ignored besides."""
        key = context, boundary, also
        found = self._nexts.get(key)
        if found is None:
            ignored = self._ignored | also
            found, seen = 0, {boundary}
            for each in (todo := [boundary]):  # grows as it goes
                there = self._at_once(context, each)
                found |= there & ~ignored
                for ending in bits(there & ignored):
                    after = self._boundary[ending]
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
            self._nexts[key] = found
        return found

    def _at_once(self, context: int, boundary: Watched) -> int:
        """The endings that can come first, ignored ones among them."""
        found, fate = self._boundaries.next(context, boundary), self._boundaries.fate(boundary)
        if fate.is_final:
            found |= self._silent
        goes_on = fate.ends | sum(1 << c for c, _ in fate.stays)
        for ending, classes in self._begins:
            if classes & goes_on:
                found |= 1 << ending
        return found
