"""What the lexer can read next between two lexemes, whatever the parser makes of it.

Lexers take what is longer, so what may follow a lexeme depends on what it could have become. All of that is in the
states that watch it (`structgen.runtime.grammar.tables.GrammarTables.ends`), and in those that still watch lexemes
before it: these together are a *boundary*. Behind ``if`` the state of identifiers is watched, and no letter may come;
behind a lexeme that could not have gone on, nothing is, and anything may.

    next(context, boundary) = the endings of lexemes that can be read, a terminal and the boundary behind it each

This is a finite automaton, whose letters are terminals. What the parser makes of it is in
`structgen.runtime.grammar.completability.completions`.

With indentation, where there are too many boundaries, it is a simpler one: the next character alone decides, and of a
boundary only what the last lexeme could have become is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from ....system.memo import Memo
from ...core.lazy_table import LazyTable
from .obligations import Watched
from .watched_futures import WatchedFutures

if TYPE_CHECKING:
    from ..tables import GrammarTables

#: Answers that are remembered, of each kind.
MOST_ANSWERS = 1 << 16


class Fate(NamedTuple):
    """What bytes do to obligations.

    Parameters
    ----------
    ends:
        The classes of bytes after which there are no obligations any more.
    stays:
        The other classes that violate no obligation, each with those left behind it.
    is_final:
        Whether the text may end there.
    """

    ends: int
    stays: tuple[tuple[int, Watched], ...]
    is_final: bool


class Boundaries:
    """What can be read behind boundaries.

    Parameters
    ----------
    tables:
        The lexer.
    future:
        By lexer state: the endings that a lexeme can come to without other obligations, as a set.
    ending:
        The number of an ending, a terminal and the boundary behind it; -1 for one that no text comes to.
    is_far:
        Whether obligations are followed past the next lexeme.
    check:
        Called with the number of lexer states that are looked at together; may raise.
    """

    def __init__(
        self,
        tables: GrammarTables,
        future: Callable[[int], int],
        ending: Callable[[int, Watched], int],
        *,
        is_far: bool | None = None,
        check: Callable[[int], object] | None = None,
    ) -> None:
        self._future = future
        self._ending = ending
        self._is_simple = tables.layout is not None and not (tables.layout.is_far if is_far is None else is_far)
        self._rows = tables.rows
        self._starts: list[int] = tables.starts.tolist()
        self._ends = tables.ends_of
        self._obligations = tables.obligations
        self._classes = range(tables.table.shape[1])
        #: The classes of bytes that are no character by themselves.
        self._partial = frozenset(tables.class_of[0x80:].tolist()) - frozenset(tables.class_of[:0x80].tolist())
        #: The endings that a lexeme can come to under obligations.
        self.under = WatchedFutures(tables, future, self.here, check)
        #: By context: what lexemes can become after their first byte, with the classes of such bytes.
        self._first = LazyTable(self._find_first)
        self._fates: Memo[Watched, Fate] = Memo(MOST_ANSWERS)

    def here(self, state: int, watched: Watched) -> int:
        """The endings at which a lexeme can end in a state, under obligations."""
        found, kept = 0, () if self._is_simple else watched
        for terminal, watch in self._ends[state]:
            ending = self._ending(terminal, self._obligations.with_state(watch, kept))
            if ending >= 0:
                found |= 1 << ending
        return found

    def next(self, context: int, boundary: Watched) -> int:
        """The endings of the next lexeme, ignored ones among them, as a set."""
        fate, found = self.fate(boundary), 0
        for future, classes in self._first[context]:
            if classes & fate.ends:
                found |= future
        row = self._rows[self._starts[context]] if fate.stays else ()
        for c, left in fate.stays:
            if row[c] >= 0:
                found |= self.under(row[c], left)
        return found

    def _find_first(self, context: int) -> list[tuple[int, int]]:
        sets: dict[int, int] = {}
        for c, target in enumerate(self._rows[self._starts[context]]):
            if target >= 0:
                future = self._future(target)
                sets[future] = sets.get(future, 0) | 1 << c
        return list(sets.items())

    def _moves_of(self, boundary: Watched) -> Iterable[tuple[int, ...]]:
        """By class of bytes: the next states of what is watched, -1 for none."""
        rows = [self._rows[state] for state in boundary]
        return zip(*rows, strict=True) if rows else repeat((), len(self._classes))

    def fate(self, boundary: Watched) -> Fate:
        """What bytes do to obligations."""
        found = self._fates.get(boundary)
        if found is None:
            obligations, ends, stays = self._obligations, 0, []
            known: dict[tuple[int, ...], Watched | None] = {}  # by the next states of what is watched
            for c, states in zip(self._classes, self._moves_of(boundary), strict=True):
                if states not in known:
                    known[states] = obligations.left(states)
                left = known[states]
                if left is None:
                    continue
                if not left or (self._is_simple and c not in self._partial):
                    ends |= 1 << c
                else:
                    stays.append((c, left))
            is_final = not obligations.lapses(boundary)
            found = self._fates[boundary] = Fate(ends, tuple(stays), is_final)
        return found
