"""How lexemes can end: whether something can follow them at all, without making them longer.

Lexers take what is longer. After ``/a+/`` no terminal that begins with an ``a`` can be read: it would be part of the lexeme. So it is
not enough that the parser accepts a terminal; something must be able to come next. An *ending* is a terminal with the classes
of bytes before which its lexeme ends. Where it can be followed by something that is ignored, such as a space, that is no
question; such endings are *loose*, and in most grammars all are. Otherwise a lexeme counts as what the parser accepts
only if some terminal that the parser accepts next, or the end of the text, can follow.

Every index that is opened needs to know whether all its endings are loose, so that is worked out of the arrays as a
whole; the rest waits until it is needed.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .closure import solve
from .on_demand import OnDemand
from .words import bits_of, from_bits, set_at, sets_of, words_of

if TYPE_CHECKING:
    from .grammar_tables import GrammarTables


class Endings:
    """The endings of a lexer's lexemes.

    Attributes
    ----------
    terminal, is_final, loose:
        By ending: the terminal, whether the text may end there, and whether its lexeme can be followed by one that is
        ignored, and that by anything.
    """

    def __init__(self, tables: GrammarTables) -> None:
        self._tables = tables
        _, terminal, watch = tables.ends.T
        is_watch = np.zeros(len(tables.table) + 1, np.bool_)
        is_watch[watch + 1] = True
        watches = np.flatnonzero(is_watch) - 1
        which = (np.cumsum(is_watch) - 1)[watch + 1]
        targets = tables.table[watches]
        breaks = (targets < 0) | (tables.beats[targets] == 0) | (watches < 0)[:, None]
        is_final = (watches < 0) | (tables.lapses[watches] == 0)
        # Sorting arrays takes longer than some hundred look-ups.
        kinds: dict[bytes, int] = {}
        packed = np.packbits(breaks, axis=1)
        kind = np.array([kinds.setdefault(row.tobytes(), i) for i, row in enumerate(packed)], np.int64)
        codes = (terminal.astype(np.int64) * (len(watches) + 1) + kind[which]) * 2 + is_final[which]
        numbers: dict[int, int] = {}
        self._of_end: list[int] = [numbers.setdefault(code, len(numbers)) for code in codes.tolist()]
        first = np.zeros(len(numbers), np.int64)
        first[self._of_end[::-1]] = np.arange(len(codes))[::-1]
        self._breaks: NDArray[np.bool_] = breaks[which[first]]
        self.terminal: list[int] = terminal[first].tolist()
        self.is_final: list[bool] = is_final[which[first]].tolist()
        self.loose: list[bool] = _loose(tables, terminal[first], self._breaks).tolist()

    def __len__(self) -> int:
        return len(self.terminal)

    @cached_property
    def is_loose(self) -> bool:
        """Whether all endings are loose."""
        return all(self.loose)

    @cached_property
    def breaks(self) -> list[int]:
        """By ending: the classes of bytes before which it ends, a bit each."""
        return sets_of(from_bits(self._breaks))

    @cached_property
    def here(self) -> list[int]:
        """By lexer state: the endings at which a lexeme can end there, as sets."""
        found = [0] * len(self._tables.table)
        for state, ending in zip(self._tables.ends[:, 0].tolist(), self._of_end, strict=True):
            found[state] |= 1 << ending
        return found

    @cached_property
    def words(self) -> NDArray[np.uint32]:
        """``uint32[lexer states, words]``: the endings that a lexeme can come to."""
        stored = self._tables.future_endings
        if stored is not None:
            return stored
        found = self.here[:]
        rows = self._tables.table.tolist()
        solve(found, [sorted({target for target in row if target >= 0}) for row in rows])
        return words_of(found, max(1, len(self)))

    @cached_property
    def future(self) -> OnDemand[int]:
        """`words` as sets."""
        return OnDemand(lambda state: set_at(self.words, state))


def _loose(tables: GrammarTables, terminal: NDArray[Any], breaks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """By ending: whether something that is ignored can follow, and everything can follow that.

    A comment up to the end of the line is followed by a line end, and that by anything.
    """
    members = tables.members
    ignored = bits_of(tables.ignored.reshape(1, -1), members)[0]
    futures = bits_of(tables.future, members)
    # By class of bytes and terminal: whether it can begin that in some context, and in all contexts that have it.
    first = np.zeros((tables.table.shape[1], members), np.bool_)
    everywhere = np.ones_like(first)
    # The same in all but the first context: only what is ignored leaves the parser in its first state.
    behind, met_behind = np.ones_like(first), np.zeros(members, np.bool_)
    later = set(tables.context[1:].tolist())
    for context, start in enumerate(tables.starts.tolist()):
        targets = tables.table[start]
        here = futures[targets] & (targets >= 0)[:, None]
        first |= here
        has = here.any(axis=0)
        everywhere &= here | ~has
        if context in later:
            behind &= here | ~has
            met_behind |= has
    met = first.any(axis=0)
    others = first[:, met & ~ignored]
    meets = ignored[terminal]  # whether it is ignored, and all others can follow
    meets[meets] = (breaks[meets][:, :, None] & others).any(axis=1).all(axis=1)
    ending_in = np.zeros(members, np.bool_)
    ending_in[terminal] = ignored[terminal]
    ending_in[terminal[~meets]] = False
    separators = everywhere[:, ending_in & met].any(axis=1)
    separators_behind = behind[:, ending_in & met_behind].any(axis=1)
    after = np.where(ignored[terminal][:, None], separators, separators_behind)
    loose: NDArray[np.bool_] = (breaks & after).any(axis=1) | meets
    return loose
