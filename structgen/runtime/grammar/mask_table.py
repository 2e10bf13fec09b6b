"""Partial masks as they lie in a file: columns of numbers, looked up one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...system.properties import cached_property
from ..core.bitsets import set_at
from .completability.obligations import Watched
from .tables import GrammarTables


class LexemeEnd(NamedTuple):
    """A lexeme that may end: its terminal, the residual nodes where it ends, the obligations from there on."""

    terminal: int
    residual: int
    watched: Watched


class PartialMask(NamedTuple):
    """Tokens by what the lexeme in progress at their end can become, and where lexemes end."""

    groups: tuple[tuple[int, int], ...]  # a set of terminals or endings, and a row
    ends: tuple[LexemeEnd, ...]


@dataclass(frozen=True, eq=False)
class PartialMaskTable:
    """Partial masks, with their groups and ends.

    Parameters
    ----------
    states:
        Number of lexer states.
    continuations, entries, groups, ends:
        ``int32[*, 2]``.
    group_start, end_start:
        ``int32[entries + 1]``.
    sets:
        ``uint32[sets, words]``: terminals in an unconstrained grammar, endings in others.
    watch_start, watched:
        ``int32[*]``.
    """

    states: int
    continuations: NDArray[np.int32]
    entries: NDArray[np.int32]
    group_start: NDArray[np.int32]
    groups: NDArray[np.int32]
    end_start: NDArray[np.int32]
    ends: NDArray[np.int32]
    sets: NDArray[np.uint32]
    watch_start: NDArray[np.int32]
    watched: NDArray[np.int32]

    @classmethod
    def empty(cls, tables: GrammarTables) -> PartialMaskTable:
        """No partial masks."""
        none, pairs, start = np.zeros(0, np.int32), np.zeros((0, 2), np.int32), np.zeros(1, np.int32)
        sets, watch_start = np.zeros((0, -(-tables.set_members // 32)), np.uint32), np.zeros(2, np.int32)
        return cls(len(tables.table), pairs, pairs, start, pairs, start, pairs, sets, watch_start, none)

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """What partial masks are looked up by."""
        return self.entries[:, 0].astype(np.int64) * self.states + self.entries[:, 1]

    @cached_property
    def continuation_keys(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """What continuations are looked up by, ascending, and their numbers."""
        keys = self.continuations[:, 0].astype(np.int64) * len(self.watch_start) + self.continuations[:, 1]
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def _watches(self) -> list[Watched]:
        data = self.watched.tolist()
        return [tuple(data[i:j]) for i, j in pairwise(self.watch_start.tolist())]

    @cached_property
    def _watch_number(self) -> dict[Watched, int]:
        return {watched: number for number, watched in enumerate(self._watches)}

    def continuation(self, residual: int, watched: Watched) -> int:
        """The number of a continuation, -1 for none."""
        if not len(self.continuations):  # in a lazy index
            return -1
        watch = self._watch_number.get(watched, -1) if watched else 0
        if watch < 0:
            return -1
        keys, order = self.continuation_keys
        key = residual * len(self.watch_start) + watch
        at = int(keys.searchsorted(key))
        return int(order[at]) if at < len(keys) and keys[at] == key else -1

    def continuation_at(self, number: int) -> tuple[int, Watched]:
        """The residual list of a continuation, and the obligations."""
        residual, watch = self.continuations[number].tolist()
        return residual, self._watches[watch]

    def find(self, residual: int, state: int, watched: Watched) -> int:
        """The number of a partial mask, -1 for none."""
        continuation = self.continuation(residual, watched)
        if continuation < 0:
            return -1
        key = continuation * self.states + state
        at = int(self.keys.searchsorted(key))
        return at if at < len(self.keys) and self.keys[at] == key else -1

    def decided(self, number: int) -> PartialMask:
        """What is stored under a number."""
        (a, b), (c, d) = (each[number : number + 2].tolist() for each in (self.group_start, self.end_start))
        groups = tuple((set_at(self.sets, wanted), row) for wanted, row in self.groups[a:b].tolist())
        ends = tuple(LexemeEnd(terminal, *self.continuation_at(each)) for terminal, each in self.ends[c:d].tolist())
        return PartialMask(groups, ends)

    def items(self) -> dict[tuple[int, int, Watched], PartialMask]:
        """All of them."""
        found = {}
        for number, (continuation, state) in enumerate(self.entries.tolist()):
            residual, watched = self.continuation_at(continuation)
            found[residual, state, watched] = self.decided(number)
        return found
