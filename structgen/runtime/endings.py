"""How lexemes can end: whether something can follow them at all, without making them longer.

Lexers take what is longer. After ``/a+/`` no terminal that begins with an ``a`` can be read: it would be part of the lexeme. So it is
not enough that the parser accepts a terminal; something must be able to come next. An *ending* is a terminal with the classes
of bytes before which its lexeme ends. Where everything can be followed by something that is ignored, such as a space, that is no
question; such grammars are *loose*, and nothing more is looked at. In the others a lexeme counts as what the parser accepts
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
    is_loose:
        Whether every lexeme can be followed by one that is ignored, and that by anything.
    terminal, breaks:
        By ending: the terminal, and the classes of bytes before which it ends, a bit each.
    future:
        By lexer state: the endings that the lexeme can come to, as a set.
    """

    is_loose: bool
    terminal: list[int]
    breaks: list[int]
    future: list[int]


def endings(tables: GrammarTables) -> Endings:
    """Find all endings."""
    rows, labels = tables.table.tolist(), tables.label.tolist()
    number: dict[tuple[int, int], int] = {}
    own = []
    for state, terminal in enumerate(labels):
        if terminal < 0:
            own.append(0)
            continue
        breaks = sum(1 << c for c, target in enumerate(rows[state]) if target < 0 or labels[target] < 0)
        own.append(1 << number.setdefault((terminal, breaks), len(number)))
    solve(own, [sorted({target for target in row if target >= 0}) for row in rows])
    return Endings(_are_loose(tables, list(number), rows), [t for t, _ in number], [b for _, b in number], own)


def _are_loose(tables: GrammarTables, found: list[tuple[int, int]], rows: list[list[int]]) -> bool:
    """Whether what is ignored can follow every other terminal, and every other terminal what is ignored."""
    ignored = int.from_bytes(tables.ignored.astype("<u4").tobytes(), "little")
    first: dict[int, int] = {}  # by terminal, the classes of bytes that it can begin with in some context
    separators = -1  # the classes that what is ignored begins with, in all contexts
    for start in tables.starts.tolist():
        here = 0
        for c, target in enumerate(rows[start]):
            future = tables.futures[target] if target >= 0 else 0
            if future & ignored:
                here |= 1 << c
            while future:
                terminal = (future & -future).bit_length() - 1
                first[terminal] = first.get(terminal, 0) | 1 << c
                future &= future - 1
        separators &= here
    others = [classes for terminal, classes in first.items() if not ignored >> terminal & 1]
    return all(
        all(breaks & classes for classes in others) if ignored >> terminal & 1 else breaks & separators
        for terminal, breaks in found
    )
