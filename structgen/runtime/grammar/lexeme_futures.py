"""What lexemes in progress can become: terminals, or, where something must be able to follow them, endings."""

from __future__ import annotations

from collections.abc import Callable

from ...system.properties import cached_property
from ..core.lazy_table import LazyTable
from .completability.boundaries import Boundaries
from .completability.obligations import Watched
from .completability.watched_futures import WatchedFutures
from .tables import GrammarTables

#: Bytes of a lexer state with the obligations there, while what it can become is worked out.
_BYTES_OF_STATE = 400


class LexemeFutures:
    """By lexer state and obligations: what the lexeme can become: terminals if all are unconstrained, else endings.

    Parameters
    ----------
    tables:
        The lexer.
    pause:
        Called within long work, with the bytes that it takes; may raise.
    """

    def __init__(self, tables: GrammarTables, pause: Callable[[int], object]) -> None:
        self._tables = tables
        self._pause = pause
        self._is_unconstrained = tables.endings.is_unconstrained
        #: By lexer state, without obligations.
        self.plain: LazyTable[int] = tables.futures if self._is_unconstrained else tables.endings.future

    def __call__(self, state: int, watched: Watched) -> int:
        """What the lexeme can become under obligations."""
        return self._under(state, watched) if watched else self.plain[state]

    @cached_property
    def boundaries(self) -> Boundaries:
        """What can be read behind boundaries."""
        endings = self._tables.endings
        return Boundaries(self._tables, endings.future.__getitem__, endings.number, check=self._check)

    @cached_property
    def _under(self) -> WatchedFutures:
        if not self._is_unconstrained:
            return self.boundaries.under
        return WatchedFutures(self._tables, self.plain.__getitem__, self._terminals, self._check)

    def _terminals(self, state: int, _: Watched) -> int:
        return sum({1 << terminal for terminal, _ in self._tables.ends_of[state]})

    def _check(self, states: int) -> None:
        self._pause(_BYTES_OF_STATE * states)
