"""Masks of a lexeme in progress on a parser's stack, composed of settled places and remembered by what decided them.

What a place allows depends on the states on top of the stack, as far down as the parser looked while it went through the
terminals that tokens complete. So an answer is kept under just those states, and holds for every stack that has them on top:
for the same statement at another depth, in another function, in another text. The parts of an answer, what may follow the
first terminal of a token, the second, are answers of their own, and shared by all that lead there.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .lexer_places import ROOT, End, LexerPlaces, Watched
from .parser_stack import Parser, Stack

#: Bytes of answers that are kept; past that the memory starts afresh.
_MOST_BYTES = 128 << 20

#: A resume list, a lexer state, what is watched, and the state on top of the stack.
_Key: TypeAlias = tuple[int, int, Watched, int]


class _Part(NamedTuple):
    """Allowed tokens: lists of ids, rows of the pool, and the depth of the lowest state that was looked at."""

    ids: tuple[NDArray[np.int32], ...]
    rows: tuple[int, ...]
    looked: int


class StackMasks:
    """Answers over the places of one index."""

    def __init__(self, places: LexerPlaces, parser: Parser, ignored: int) -> None:
        self._places = places
        self._parser = parser
        self._ignored = ignored
        #: By key and by how many states were looked at, the answers by those states.
        self._parts: dict[_Key, dict[int, dict[tuple[int, ...], _Part]]] = {}
        self._dense: dict[_Key, dict[int, dict[tuple[int, ...], NDArray[np.int32]]]] = {}
        self._rows: dict[bytes, NDArray[np.int32]] = {}
        self._bytes = 0
        #: How often everything was forgotten.
        self.generation = 0

    def row(
        self, stack: Stack, lexer: int, watched: Watched, starts: list[int]
    ) -> NDArray[np.int32]:
        """The row of a thread: read-only ``int32[words]``, without EOS ids. ``starts`` is by parser state."""
        key = ROOT, lexer, watched, stack.state
        by_length = self._dense.get(key)
        if by_length is not None:
            for length, answers in by_length.items():
                row = answers.get(stack.top(length))
                if row is not None:
                    return row
        part = self._find(ROOT, stack, lexer, watched, starts)
        row = self._interned(self._merged(part))
        length = stack.depth - part.looked + 1
        self.note(400 + 8 * length)
        self._dense.setdefault(key, {}).setdefault(length, {})[stack.top(length)] = row
        return row

    def _interned(self, row: NDArray[np.int32]) -> NDArray[np.int32]:
        """The one array of this content: different stacks often allow the same."""
        key = hashlib.blake2b(row, digest_size=16).digest()
        known = self._rows.get(key)
        if known is None:
            self.note(row.nbytes)
            known = self._rows[key] = row
        return known

    def _merged(self, part: _Part) -> NDArray[np.int32]:
        from .. import kernels

        pool = self._places.pool
        row = pool.fresh(part.rows[0]) if part.rows else np.zeros(pool.words, np.int32)
        for number in part.rows[1:]:
            pool.add_to(row, number)
        if part.ids:
            kernels.or_ids(row.view(np.uint32), np.concatenate(part.ids))
        row.flags.writeable = False
        return row

    def _part(self, resume: int, stack: Stack, lexer: int, watched: Watched, starts: list[int]) -> _Part:
        """What a place allows on a stack, from memory if that has it."""
        key = resume, lexer, watched, stack.state
        by_length = self._parts.get(key)
        if by_length is not None:
            for length, answers in by_length.items():
                part = answers.get(stack.top(length))
                if part is not None:
                    return part._replace(looked=stack.depth - length + 1)
        part = self._find(resume, stack, lexer, watched, starts)
        length = stack.depth - part.looked + 1
        self.note(400 + 8 * (len(part.ids) + length))
        self._parts.setdefault(key, {}).setdefault(length, {})[stack.top(length)] = part
        return part

    def _find(self, resume: int, stack: Stack, lexer: int, watched: Watched, starts: list[int]) -> _Part:
        """What a place allows on a stack, and how far down that looked. As deep a call as a token has lexemes."""
        places = self._places
        groups, ends = places.settle(resume, lexer, watched)
        terminals, looked = self._parser.accepted(stack)
        terminals |= self._ignored
        ids: list[NDArray[np.int32]] = []
        rows: set[int] = set()
        for group, row in groups:
            if group & terminals:
                listed = places.ids_of(row)
                if listed is None:
                    rows.add(row)
                else:
                    ids.append(listed)
        for end in ends:
            if terminals >> end.terminal & 1:
                part = self._after(end, stack, starts)
                looked = min(looked, part.looked)
                ids += part.ids
                rows.update(part.rows)
        return _Part(tuple(ids), tuple(sorted(rows)), looked)

    def _after(self, end: End, stack: Stack, starts: list[int]) -> _Part:
        """What may follow where a lexeme ends."""
        looked = stack.depth
        if not self._ignored >> end.terminal & 1:
            after, looked = self._parser.after(stack, end.terminal)
            if after is None:
                return _Part((), (), looked)
            stack = after
        part = self._part(end.resume, stack, starts[stack.state], end.watched, starts)
        return part._replace(looked=min(looked, part.looked))

    def note(self, size: int) -> None:
        """Count bytes that are kept; when there are too many, everything is forgotten."""
        self._bytes += size
        if self._bytes > _MOST_BYTES:
            self._parts.clear()
            self._dense.clear()
            self._rows.clear()
            self._bytes = size
            self.generation += 1

