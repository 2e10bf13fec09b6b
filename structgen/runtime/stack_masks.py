"""Masks of a lexeme in progress on a parser's stack, composed of settled places and remembered by what decided them.

What a place allows depends on the states on top of the stack, as far down as the parser looked while it went through
the terminals that tokens complete. So a row is kept under just those states, and holds for every stack that has them
on top: for the same statement at another depth, in another function, in another text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetExceededError
from .grammar_tables import GrammarTables
from .layout import Level, LevelTable
from .lexer_places import ROOT, LexerPlaces, Watched
from .parser_stack import Accepted
from .parses import Parse, ParserDriver
from .place_graph import PlaceGraph

#: Bytes of rows that are kept; past that the memory starts afresh.
_MOST_BYTES = 256 << 20

#: So many states from the top of the stack are tried first.
_SHALLOW = 64

#: A lexer state, what is watched, the context, the level, and the state on top of the stack.
_Key: TypeAlias = tuple[int, Watched, int, Level | None, int]


class StackMasks:
    """The rows of threads, over the places of one index.

    Parameters
    ----------
    places, parses:
        What is settled, and the parser.
    open_to:
        The endings that a lexeme may come to after a parse: asked where something must be able to follow the lexeme.
    find:
        A row, and how many states decided it, of a grammar with conflicts, which the kernel doesn't know.
    """

    def __init__(
        self,
        places: LexerPlaces,
        parses: ParserDriver,
        open_to: Callable[[Parse], Accepted],
        find: Callable[[Parse, int, Watched], tuple[NDArray[np.int32], int]] | None = None,
    ) -> None:
        self._places = places
        self._parses = parses
        self._open_to = open_to
        self._find = find or self._walk
        self._tables: _ParserTables | None = None
        self._found_graph: PlaceGraph | None = None
        #: By key and by how many states were looked at, the rows by those states.
        self._known: dict[_Key, dict[int, dict[tuple[int, ...], NDArray[np.int32]]]] = {}
        self._rows: dict[bytes, NDArray[np.int32]] = {}
        self._bytes = 0
        #: How often everything was forgotten.
        self.generation = 0

    @property
    def _graph(self) -> PlaceGraph:
        if self._found_graph is None:
            self._found_graph = PlaceGraph(self._places)
        return self._found_graph

    def row(self, parse: Parse, lexer: int, watched: Watched) -> NDArray[np.int32]:
        """The row of a thread: read-only ``int32[words]``, without EOS ids."""
        stack = parse.stack
        key = lexer, watched, parse.context, parse.level, stack.state
        by_length = self._known.get(key)
        if by_length is not None:
            for length, rows in by_length.items():
                row = rows.get(stack.top(length))
                if row is not None:
                    return row
        row, length = self._find(parse, lexer, watched)
        row = self._interned(row)
        self.note(400 + 8 * length)
        self._known.setdefault(key, {}).setdefault(length, {})[stack.top(length)] = row
        return row

    def _walk(self, parse: Parse, lexer: int, watched: Watched) -> tuple[NDArray[np.int32], int]:
        """A row, and how many states decided it."""
        from .. import kernels

        if self._tables is None:
            self._tables = _ParserTables(self._places.tables)
        tables, graph, pool = self._tables, self._graph, self._places.pool
        levels = tables.levels
        place = graph.number(ROOT, lexer, watched)
        stack, level = parse.stack, levels.number(parse.level)
        states = np.array(stack.top(_SHALLOW)[::-1], np.int32)
        while True:
            row = np.zeros(pool.words, np.uint32)
            n, missing, questions, looked = kernels.walk_stack_masks(
                *tables.parser, levels.lines, levels.brackets, levels.keep, levels.given, levels.moves, levels.levels,
                graph.group_start.data, graph.groups.data, graph.sets, graph.tight, graph.ids_start.data,
                graph.ids.data, graph.end_start.data, graph.ends.data, graph.target, states, place, parse.context,
                level, *tables.scratch(), row, tables.dense, tables.missing, tables.questions,
            )  # fmt: skip
            if n < 0:
                if len(states) > stack.depth:
                    raise BudgetExceededError(
                        "the parser reduces without end, or a token holds too many lexemes",
                        remedy="See that no rule of the grammar derives itself.",
                    )
                states = np.array(stack.top(64 * len(states))[::-1], np.int32)
            elif missing:
                for continuation, to in tables.missing[:missing].tolist():
                    if continuation < 0:
                        levels.follow(-1 - continuation, to)
                    else:
                        graph.follow(continuation, to)
            else:
                break
        found: NDArray[np.int32] = row.view(np.int32)
        rows = set(tables.dense[:n].tolist())
        length = len(states) - looked
        if questions:
            length = max(length, self._answer(parse, len(states), tables, questions, found, rows))
        for number in rows:
            pool.add_to(found, number)
        return found, length

    def _answer(
        self,
        parse: Parse,
        given: int,
        tables: _ParserTables,
        questions: int,
        found: NDArray[np.int32],
        rows: set[int],
    ) -> int:
        """Add the groups that the kernel left open; returns how many states decided it."""
        graph, lowest = self._graph, parse.stack.depth
        answers: dict[tuple[int, int, int], int] = {}
        for cell, context, level, number in tables.questions[:questions].tolist():
            key = cell, context, level
            if key not in answers:
                states = []
                while cell >= given:
                    states.append(int(tables.cells[cell, 0]))
                    cell = int(tables.cells[cell, 1])
                after = self._parses.on(parse, given - 1 - cell, states[::-1], context, tables.levels.level(level))
                answers[key], looked = self._open_to(after)
                lowest = min(lowest, looked)
            wanted, listed = graph.group(number)
            if not wanted & answers[key]:
                continue
            if listed < 0:
                rows.add(-2 - listed)
            else:
                start, end = graph.ids_start.data[listed : listed + 2].tolist()
                ids = graph.ids.data[start:end]
                np.bitwise_or.at(found.view(np.uint32), ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))
        return parse.stack.depth + 1 - lowest

    def _interned(self, row: NDArray[np.int32]) -> NDArray[np.int32]:
        """The one array of this content: different stacks often allow the same."""
        key = hashlib.blake2b(row.data, digest_size=16).digest()
        known = self._rows.get(key)
        if known is None:
            row.flags.writeable = False
            self.note(row.nbytes)
            known = self._rows[key] = row
        return known

    def note(self, size: int) -> None:
        """Count bytes that are kept; when there are too many, everything is forgotten."""
        self._bytes += size
        if self._bytes > _MOST_BYTES:
            self._known.clear()
            self._rows.clear()
            self._bytes = size
            self.generation += 1


class _ParserTables:
    """The parser as the kernel reads it, with scratch for one call at a time."""

    def __init__(self, tables: GrammarTables) -> None:
        from .. import kernels

        states, words = len(tables.context), len(tables.ignored)
        shift = np.full((states, tables.end + 1), -1, np.int32)
        shift[tables.shift[:, 0], tables.shift[:, 1]] = tables.shift[:, 2]
        symbols, number = np.unique(tables.goto[:, 1], return_inverse=True)
        goto = np.full((states, len(symbols) + 1), -1, np.int32)  # the last one is for what nothing goes to
        goto[tables.goto[:, 0], number.reshape(-1)] = tables.goto[:, 2]
        origin = np.searchsorted(symbols, tables.reduce[:, 2])
        known = np.append(symbols, -1)[origin] == tables.reduce[:, 2]
        reduce = np.stack([tables.reduce[:, 1], np.where(known, origin, len(symbols))], axis=1).astype(np.int32)
        shifted = np.zeros((states, words), np.uint32)
        bits = np.uint32(1) << (tables.shift[:, 1] & 31).astype(np.uint32)
        np.bitwise_or.at(shifted, (tables.shift[:, 0], tables.shift[:, 1] >> 5), bits)
        starts = np.searchsorted(tables.reduce[:, 0], np.arange(states + 1)).astype(np.int32)
        self.parser = (
            shift, goto, starts, reduce, tables.before, shifted, tables.certain, tables.context, tables.ignored,
        )  # fmt: skip
        self.cells = np.zeros((kernels.CELLS, 4), np.int32)
        self._slots = np.zeros((kernels.CELL_SLOTS, 2), np.int32)
        self._accepted = np.zeros((kernels.CELLS, words), np.uint32)
        self._waiting = np.zeros(1 << 12, np.int32)
        self._masks = np.zeros((1 << 12, words), np.uint32)
        self._todo = np.zeros((1 << 14, 4), np.int32)
        self._stamp = 0
        self.dense = np.zeros(1 << 14, np.int32)
        self.missing = np.zeros((1 << 10, 2), np.int32)
        self.questions = np.zeros((1 << 14, 4), np.int32)
        self.levels = LevelTable(tables.layout, tables.end, words)

    def scratch(self) -> tuple[NDArray[np.int32] | NDArray[np.uint32] | int, ...]:
        """What a call may write to, and a stamp that no call before it had."""
        self._stamp += 1
        if self._stamp == 1 << 30:
            self._slots[:] = 0
            self._stamp = 1
        return (
            self.cells, self._slots, self._accepted, self._waiting, self._masks, self._todo, self._stamp,
        )  # fmt: skip
