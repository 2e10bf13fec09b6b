"""How lexemes can end: whether something can follow them at all, without making them longer.

Lexers take what is longer. After ``/a+/`` no terminal that begins with an ``a`` can be read: it would be part of the lexeme. So it is
not enough that the parser accepts a terminal; something must be able to come next. An *ending* is a terminal with the classes
of bytes before which its lexeme ends. Where it can be followed by something that is ignored, such as a space, that is no
question; such endings are *loose*, and in most grammars all are. Otherwise a lexeme counts as what the parser accepts
only if some terminal that the parser accepts next, or the end of the text, can follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .closure import bits, solve

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
    """By ending: whether something that is ignored can follow, and everything can follow that, in each context that comes next.

    A comment up to the end of the line is followed by a line end, and that by anything.
    """
    ignored = int.from_bytes(tables.ignored.astype("<u4").tobytes(), "little")
    breaks_of: dict[int, list[int]] = {}
    for terminal, breaks in found:
        breaks_of.setdefault(terminal, []).append(breaks)
    separators: list[int] = []  # by context, the classes of bytes that begin what is ignored and can be followed by anything
    others: list[list[int]] = []  # by context, the classes of bytes that each terminal can begin with that is not ignored
    for start in tables.starts.tolist():
        first = _first(tables, rows[start])
        others.append([classes for terminal, classes in first.items() if not ignored >> terminal & 1])
        separators.append(0)
        for terminal in bits(ignored):
            if all(breaks & classes for breaks in breaks_of.get(terminal, ()) for classes in others[-1]):
                separators[-1] |= first.get(terminal, 0)
    contexts = _contexts_after(tables, ignored)
    return [
        all(
            breaks & separators[c] or (ignored >> terminal & 1 and all(breaks & classes for classes in others[c]))
            for c in contexts[terminal]
        )
        for terminal, breaks in found
    ]


def _first(tables: GrammarTables, row: list[int]) -> dict[int, int]:
    """By terminal: the classes of bytes that it can begin with where the lexer's state has a row."""
    found: dict[int, int] = {}
    for c, target in enumerate(row):
        for terminal in bits(tables.futures[target] if target >= 0 else 0):
            found[terminal] = found.get(terminal, 0) | 1 << c
    return found


def _contexts_after(tables: GrammarTables, ignored: int) -> list[set[int]]:
    """By terminal: the contexts that the lexer can read on in.

    What is ignored leaves the context as it is. So does a line end within brackets, of which one was opened before.
    """
    found: list[set[int]] = [set() for _ in range(tables.members)]
    for _, terminal, target in tables.shift.tolist():
        found[terminal].add(int(tables.context[target]))
    for terminal in bits(ignored):
        found[terminal] = set(range(len(tables.starts)))
    later = set(tables.context[1:].tolist())  # no terminal leads back to the parser's first state
    for terminal in range(tables.end + 1, tables.members):
        found[terminal] = later
    return found
