"""How lexemes can end: whether something can follow them at all, without making them longer.

Lexers take what is longer. After ``/a+/`` no terminal that begins with an ``a`` can be read: it would be part of the lexeme. So it is
not enough that the parser accepts a terminal; something must be able to come next. An *ending* is a terminal with the classes
of bytes before which its lexeme ends. Where it can be followed by something that is ignored, such as a space, that is no
question; such endings are *loose*, and in most grammars all are. Otherwise a lexeme counts as what the parser accepts
only if some terminal that the parser accepts next, or the end of the text, can follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .closure import solve

if TYPE_CHECKING:
    from .grammar_tables import GrammarTables


class Endings(NamedTuple):
    """The endings of a lexer's lexemes.

    Parameters
    ----------
    terminal, breaks, is_final:
        By ending: the terminal, the classes of bytes before which it ends, a bit each, and whether the text may end there.
    loose:
        By ending: whether its lexeme can be followed by one that is ignored, and that by anything.
    here, future:
        By lexer state: the endings at which it can end there, and that it can come to, as sets.
    """

    terminal: list[int]
    breaks: list[int]
    is_final: list[bool]
    loose: list[bool]
    here: list[int]
    future: list[int]

    @property
    def is_loose(self) -> bool:
        """Whether all endings are loose."""
        return all(self.loose)


def endings(tables: GrammarTables) -> Endings:
    """Find all endings."""
    rows, beats, lapses = tables.table.tolist(), tables.beats.tolist(), tables.lapses.tolist()
    number: dict[tuple[int, int, bool], int] = {}
    own = [0] * len(rows)
    everything = (1 << tables.table.shape[1]) - 1
    for state, terminal, watch in tables.ends.tolist():
        breaks = everything
        if watch >= 0:
            breaks = sum(1 << c for c, target in enumerate(rows[watch]) if target < 0 or not beats[target])
        ending = terminal, breaks, watch < 0 or not lapses[watch]
        own[state] |= 1 << number.setdefault(ending, len(number))
    here = own[:]
    solve(own, [sorted({target for target in row if target >= 0}) for row in rows])
    loose = _loose(tables, [(terminal, breaks) for terminal, breaks, _ in number], rows)
    return Endings([t for t, _, _ in number], [b for _, b, _ in number], [f for _, _, f in number], loose, here, own)


def _loose(tables: GrammarTables, found: list[tuple[int, int]], rows: list[list[int]]) -> list[bool]:
    """By ending: whether something that is ignored can follow, and everything can follow that.

    A comment up to the end of the line is followed by a line end, and that by anything.
    """
    ignored = int.from_bytes(tables.ignored.astype("<u4").tobytes(), "little")
    first: dict[int, int] = {}  # by terminal, the classes of bytes that it can begin with in some context
    everywhere: dict[int, int] = {}  # the same in all contexts
    behind: dict[int, int] = {}  # the same in all but the first: only what is ignored leaves the parser in its first state
    later = set(tables.context[1:].tolist())
    for context, start in enumerate(tables.starts.tolist()):
        here: dict[int, int] = {}
        for c, target in enumerate(rows[start]):
            future = tables.futures[target] if target >= 0 else 0
            while future:
                terminal = (future & -future).bit_length() - 1
                here[terminal] = here.get(terminal, 0) | 1 << c
                future &= future - 1
        for terminal, classes in here.items():
            first[terminal] = first.get(terminal, 0) | classes
            everywhere[terminal] = everywhere.get(terminal, -1) & classes
            if context in later:
                behind[terminal] = behind.get(terminal, -1) & classes
    others = [classes for terminal, classes in first.items() if not ignored >> terminal & 1]
    breaks_of: dict[int, list[int]] = {}
    for terminal, breaks in found:
        breaks_of.setdefault(terminal, []).append(breaks)
    separators = separators_behind = 0
    for terminal, all_breaks in breaks_of.items():
        if ignored >> terminal & 1 and all(breaks & classes for breaks in all_breaks for classes in others):
            separators |= everywhere.get(terminal, 0)
            separators_behind |= behind.get(terminal, 0)
    return [
        bool(breaks & separators) or all(breaks & classes for classes in others)
        if ignored >> terminal & 1
        else bool(breaks & separators_behind)
        for terminal, breaks in found
    ]
