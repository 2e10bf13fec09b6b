"""How lexemes can end: whether something can follow them at all, without making them longer.

Lexers take what is longer. After ``/a+/`` no terminal that begins with an ``a`` can be read: it would be part of the
lexeme. So it is not enough that the parser accepts a terminal; something must be able to come next. An *ending* is a
terminal with the classes of bytes before which its lexeme ends. Where it can be followed by something that is
ignored, such as a space, that is no question; such endings are *loose*, and in most grammars all are. Otherwise a
lexeme counts as what the parser accepts only if some terminal that the parser accepts next, or the end of the text,
can follow.

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
    """The endings of a lexer's lexemes: of those ends that have the same terminal and classes, one."""

    def __init__(self, tables: GrammarTables) -> None:
        self._tables = tables
        _, self._terminal, watch = tables.ends.T
        targets = tables.table[watch]
        self._breaks: NDArray[np.bool_] = (targets < 0) | (tables.beats[targets] == 0) | (watch < 0)[:, None]
        self._is_final = (watch < 0) | (tables.lapses[watch] == 0)
        self._loose = _loose(tables, self._terminal, self._breaks)
        #: Whether all endings are loose.
        self.is_loose = bool(self._loose.all())

    @cached_property
    def _numbers(self) -> tuple[list[int], list[int]]:
        """By end: the number of its ending; by ending: its first end."""
        found: dict[tuple[int, bool, bytes], int] = {}
        packed = np.packbits(self._breaks, axis=1)
        ends = zip(self._terminal.tolist(), self._is_final.tolist(), map(bytes, packed), strict=True)
        of_end = [found.setdefault(each, len(found)) for each in ends]
        return of_end, [of_end.index(number) for number in range(len(found))]

    def __len__(self) -> int:
        return len(self._numbers[1])

    @cached_property
    def terminal(self) -> list[int]:
        """By ending: the terminal."""
        return [int(self._terminal[end]) for end in self._numbers[1]]

    @cached_property
    def is_final(self) -> list[bool]:
        """By ending: whether the text may end there."""
        return [bool(self._is_final[end]) for end in self._numbers[1]]

    @cached_property
    def loose(self) -> list[bool]:
        """By ending: whether its lexeme can be followed by one that is ignored, and that by anything."""
        return [bool(self._loose[end]) for end in self._numbers[1]]

    @cached_property
    def by_terminal(self) -> dict[int, tuple[int, list[int]]]:
        """By terminal that has any: its endings that are loose, as a set, and the others."""
        found: dict[int, tuple[int, list[int]]] = {}
        for ending, (terminal, loose) in enumerate(zip(self.terminal, self.loose, strict=True)):
            there, others = found.setdefault(terminal, (0, []))
            if loose:
                found[terminal] = there | 1 << ending, others
            else:
                others.append(ending)
        return found

    @cached_property
    def breaks(self) -> list[int]:
        """By ending: the classes of bytes before which it ends, a bit each."""
        return sets_of(from_bits(self._breaks[self._numbers[1]]))

    @cached_property
    def here(self) -> list[int]:
        """By lexer state: the endings at which a lexeme can end there, as sets."""
        found = [0] * len(self._tables.table)
        for state, ending in zip(self._tables.ends[:, 0].tolist(), self._numbers[0], strict=True):
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
    """By end: whether something ignored can follow, and everything can follow that, in each context that may come.

    A comment up to the end of the line is followed by a line end, and that by anything.
    """
    members, targets = tables.members, tables.table[tables.starts]
    ignored = bits_of(tables.ignored.reshape(1, -1), members)[0]
    # By context, class of bytes and terminal: whether it can begin that. Then eight classes to a byte.
    first = bits_of(tables.future, members)[targets] & (targets >= 0)[:, :, None]
    packed, packed_breaks = np.packbits(first, axis=1), np.packbits(breaks, axis=1)
    needless = ignored | ~first.any(axis=1)
    meets: dict[bytes, NDArray[np.bool_]] = {}  # by classes: the contexts in which all that is not ignored has one
    is_met = np.zeros((len(terminal), len(targets)), np.bool_)
    separates = np.broadcast_to(ignored[:, None], (members, len(targets))).copy()
    for end in np.flatnonzero(ignored[terminal]).tolist():
        key = packed_breaks[end].tobytes()
        if key not in meets:
            meets[key] = ((packed & packed_breaks[end][:, None]).any(axis=1) | needless).all(axis=1)
        is_met[end] = meets[key]
        separates[terminal[end]] &= meets[key]
    # By context: the classes of bytes that begin what is ignored and can be followed by anything.
    separators = np.zeros(packed.shape[:2], np.uint8)
    for each in np.flatnonzero(ignored).tolist():
        separators |= np.where(separates[each][:, None], packed[:, :, each], 0)
    distinct = {row.tobytes(): row for row in separators}
    follows = np.stack([(packed_breaks & row).any(axis=1) for row in distinct.values()], axis=1)
    number = {key: i for i, key in enumerate(distinct)}
    follows = follows[:, [number[row.tobytes()] for row in separators]]
    after = _contexts_after(tables, ignored)[terminal]
    loose: NDArray[np.bool_] = (follows | is_met | ~after).all(axis=1)
    return loose


def _contexts_after(tables: GrammarTables, ignored: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``bool[terminals, contexts]``: those that the lexer can read on in behind a terminal.

    What is ignored leaves the context as it is. So does a line end within brackets, of which one was opened before.
    """
    found = np.zeros((tables.members, len(tables.starts)), np.bool_)
    found[tables.shift[:, 1], tables.context[tables.shift[:, 2]]] = True
    found[ignored] = True
    later = np.zeros(len(tables.starts), np.bool_)  # no terminal leads back to the parser's first state
    later[tables.context[1:]] = True
    found[tables.end + 1 :] = later
    return found
