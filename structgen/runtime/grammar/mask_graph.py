"""Partial masks in flat arrays, as `structgen.kernels.walk_stack_masks` reads them; they grow as more decide."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ..core.bitsets import bits_of, from_bits, sets_of, words_of
from .completability.completion_tables import asked_of
from .mask_table import PartialMaskTable
from .partial_masks import LexemeMasks, Watched
from .tables import GrammarTables

#: Partial masks that are decided ahead at once, and nodes of the trie below each.
_FEW, _NODES = 64, 1 << 11

#: Contexts that a terminal is expected to lead to.
_CONTEXTS = 4


class Growing:
    """An ``int32`` array with room at its end."""

    def __init__(self, values: NDArray[np.int32]) -> None:
        room = np.zeros((64, *values.shape[1:]), np.int32)
        self._data: NDArray[np.int32] = np.concatenate([values, room], dtype=np.int32)
        self._n = len(values)

    def __len__(self) -> int:
        return self._n

    def extend(self, values: list[int] | NDArray[np.int32]) -> None:
        """Append a list or an array of rows."""
        new = self._n + len(values)
        if new > len(self._data):
            wider = np.zeros((2 * new, *self._data.shape[1:]), np.int32)
            wider[: self._n] = self._data[: self._n]
            self._data = wider
        if len(values):
            self._data[self._n : new] = values
        self._n = new

    @property
    def data(self) -> NDArray[np.int32]:
        """The array, with what lies behind its end."""
        return self._data


class PartialMaskGraph:
    """The partial masks of one index, with their groups and ends: one record each, so that it is read at once.

    It begins with those that were stored: continuations and sets have the numbers of the `PartialMaskTable`. Others
    come behind them as they are needed.
    """

    def __init__(self, lexeme_masks: LexemeMasks) -> None:
        self._lexeme_masks = lexeme_masks
        self._stored = stored = lexeme_masks.stored
        self._number: dict[tuple[int, int, Watched], int] = {}
        self._continuation_of: dict[tuple[int, Watched], int] = {}
        self._new_continuations: list[tuple[int, Watched]] = []
        #: By continuation a terminal that is complete there, and by terminal some contexts that it led to last.
        self._terminal_of: dict[int, int] = {}
        self._led: dict[int, tuple[int, ...]] = {}
        self._sets: list[int] | None = None
        self._set_of: dict[int, int] = {}
        self._first_of: dict[int, int] = {}  # by row: where its ids begin, of those that were added
        self.sets, self.tight = sets_of_endings(stored.sets, lexeme_masks.tables)
        self.records, self.ids, at = _records(stored, lexeme_masks)
        self._at = at.tolist()
        self._context_of = np.full(stored.states, -1, np.int32)
        self._context_of[lexeme_masks.tables.starts] = np.arange(len(lexeme_masks.tables.starts))
        self.target = np.full((len(stored.continuations) + 64, len(lexeme_masks.tables.starts)), -1, np.int32)
        continuation, context = stored.entries[:, 0], self._context_of[stored.entries[:, 1]]
        begins = np.flatnonzero(context >= 0)
        self.target[continuation[begins], context[begins]] = at[begins]

    def number(self, residual: int, state: int, watched: Watched) -> int:
        """Where the record of a partial mask begins; it is decided if it was not."""
        key = residual, state, watched
        known = self._number.get(key)
        if known is None:
            stored = self._stored.find(*key)
            known = self._at[stored] if stored >= 0 else self._add(*key)
            self._number[key] = known
        return known

    def wanted(self, number: int) -> int:
        """The set with a number, as records have it."""
        return self._all_sets()[number]

    def follow(self, wanted: list[tuple[int, int]], ahead: int = 0) -> None:
        """Have the records at hand that go on from continuations in contexts, a pair each.

        And those that may go on from these over ``ahead`` lexemes, where each terminal leads as it did last. Which do
        is up to the stack; but a token of a hundred dashes asks for a hundred records, one behind the other.
        """
        keys = self._follow(wanted)
        for continuation, context in wanted:
            if continuation in self._terminal_of:
                terminal = self._terminal_of[continuation]
                others = (each for each in self._led.get(terminal, ()) if each != context)
                self._led[terminal] = context, *islice(others, _CONTEXTS - 1)
        while ahead and keys:
            keys = self._follow(self._likely(keys))
            ahead -= 1

    def _likely(self, keys: list[tuple[int, int, Watched]]) -> list[tuple[int, int]]:
        """Some of what goes on from partial masks and is not at hand: continuations and contexts."""
        found: dict[tuple[int, int], None] = {}
        for key in keys:
            for end in self._lexeme_masks.decide(*key).ends:
                contexts = self._led.get(end.terminal)
                if contexts is None or len(found) >= _FEW or self._lexeme_masks.work(end.residual) > _NODES:
                    continue
                continuation = self._continuation(end.residual, end.watched)
                found.update(((continuation, each), None) for each in contexts if self.target[continuation, each] < 0)
        return list(found)

    def _follow(self, wanted: list[tuple[int, int]]) -> list[tuple[int, int, Watched]]:
        """Have the records at hand that go on from continuations in contexts; the partial masks of these."""
        starts, keys = self._lexeme_masks.tables.starts, list[tuple[int, int, Watched]]()
        for continuation, context in wanted:
            new = continuation - len(self._stored.continuations)
            residual, watched = (
                self._stored.continuation_at(continuation) if new < 0 else self._new_continuations[new]
            )
            keys.append((residual, int(starts[context]), watched))
        self._lexeme_masks.decide_all([key for key in keys if key not in self._number])
        for (continuation, context), key in zip(wanted, keys, strict=True):
            # In a damaged file two continuations can be the same; the kernel asked for this one.
            self.target[continuation, context] = self.number(*key)
        return keys

    def _add(self, residual: int, state: int, watched: Watched) -> int:
        decided = self._lexeme_masks.decide(residual, state, watched)
        record = [len(decided.ends), len(decided.groups)]
        for end in decided.ends:
            record += end.terminal, (continuation := self._continuation(end.residual, end.watched))
            self._terminal_of[continuation] = end.terminal
        for terminals, row in decided.groups:
            record += self._group(self._set(terminals), row)
        at = len(self.records)
        self.records.extend(record)
        context = int(self._context_of[state])
        if context >= 0:
            self.target[self._continuation(residual, watched), context] = at
        return at

    def _group(self, number: int, row: int) -> list[int]:
        from ... import kernels

        ids = self._lexeme_masks.pool.listed(row)
        if ids is None:
            return [number << 5 | kernels.IS_ROW, row]
        if len(ids) <= kernels.MOST_IDS:
            return [number << 5 | len(ids), *ids.tolist()]
        first = self._first_of.get(row)
        if first is None:
            first = self._first_of[row] = len(self.ids)
            self.ids.extend(ids)
        return [number << 5 | kernels.IS_LONG, first, len(ids)]

    def _all_sets(self) -> list[int]:
        if self._sets is None:
            self._sets = sets_of(self._stored.sets)
            self._set_of = {each: i for i, each in enumerate(self._sets)}
        return self._sets

    def _set(self, terminals: int) -> int:
        """The number of a set."""
        sets = self._all_sets()
        if terminals not in self._set_of:
            # All that lexer states can become, at once; under obligations lexemes can become less.
            for each in (*self._lexeme_masks.distinct[0], terminals):
                if self._set_of.setdefault(each, len(sets)) == len(sets):
                    sets.append(each)
            tables = self._lexeme_masks.tables
            self.sets, self.tight = sets_of_endings(words_of(sets, tables.set_members), tables)
        return self._set_of[terminals]

    def _continuation(self, residual: int, watched: Watched) -> int:
        key = residual, watched
        known = self._continuation_of.get(key)
        if known is None:
            known = self._stored.continuation(residual, watched)
            if known < 0:
                known = len(self._stored.continuations) + len(self._new_continuations)
                self._new_continuations.append(key)
                if known == len(self.target):
                    wider = np.full((2 * known, self.target.shape[1]), -1, np.int32)
                    wider[:known] = self.target
                    self.target = wider
            self._continuation_of[key] = known
        return known


def _records(stored: PartialMaskTable, lexeme_masks: LexemeMasks) -> tuple[Growing, Growing, NDArray[np.int32]]:
    """The records of what is stored, the ids of long lists, and where the record of each begins."""
    from ... import kernels

    ids_start, ids, is_list = lexeme_masks.pool.lists()
    at = np.zeros(len(stored), np.int32)
    row = stored.groups[:, 1]
    count = np.where(is_list, np.diff(ids_start), 1)[row]
    size = 2 * len(at) + 2 * len(stored.ends) + len(row) + int(np.where(count > kernels.MOST_IDS, 2, count).sum())
    if size >= 1 << 31 or len(stored.sets) >= 1 << 26:  # a record has the number of a set in 27 bits
        raise FormatError("the partial masks have too many groups")
    records = np.zeros(size, np.int32)
    kernels.lay_out_places(
        stored.group_start, stored.groups, stored.end_start, stored.ends, ids_start, ids, is_list, records, at
    )
    return Growing(records), Growing(ids), at


def sets_of_endings(words: NDArray[np.uint32], tables: GrammarTables) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Sets as the kernel reads them: two for each, the terminals of unconstrained endings, and those of others.

    Of each then flags, ``int32[sets, *]``: whether there are others (1), and whether there are columns among the
    first (2) and the second (4), with 8 times the number of the first set that has the same of them; and these
    others as `structgen.runtime.grammar.completability.completion_tables.asked_of` counts them, in words.
    """
    asked, others = np.zeros(len(words), np.int32), np.zeros((len(words), 0), np.uint32)
    found = np.zeros((2 * len(words), -(-tables.members // 32)), np.uint32)
    if tables.endings.is_unconstrained:
        found[::2] = words
    else:
        endings = bits_of(words, tables.set_members)
        which, _ = asked_of(tables.endings, tables.end)
        found[::2] = _terminals(tables, endings, np.flatnonzero(tables.endings.ends[:, 2]))
        found[1::2] = _terminals(tables, endings, which)
        others = from_bits(np.ascontiguousarray(endings[:, which]))
        rows = others.view(np.dtype((np.void, max(1, others.itemsize * others.shape[1])))).reshape(-1)
        _, first, number = np.unique(rows, return_index=True, return_inverse=True)
        asked[:] = first[number.reshape(-1)]
    columns = np.asarray(bits_of(found, tables.members)[:, tables.end + 1 :].any(axis=1))
    flags = [found[1::2].any(axis=1), columns[::2], columns[1::2]]
    asked = 8 * asked + np.packbits(flags, axis=0, bitorder="little")[0]
    return found, np.concatenate([asked[:, None], others.view(np.int32)], axis=1)


def _terminals(tables: GrammarTables, endings: NDArray[np.bool_], which: NDArray[np.intp]) -> NDArray[np.uint32]:
    """The terminals of some of the endings of sets, ``bool[sets, endings]``."""
    terminal = tables.endings.ends[which, 0]
    order = np.argsort(terminal, kind="stable")
    distinct, first = np.unique(terminal[order], return_index=True)
    found = np.zeros((len(endings), tables.members), np.bool_)
    there = endings[:, which[order]]
    found[:, distinct] = there if len(distinct) == len(which) else np.logical_or.reduceat(there, first, axis=1)
    return from_bits(found)
