"""What the text before a lexeme means to it, and when two of these mean the same.

They do if every text that the parser may accept behind them is read alike. So what is watched is forgotten where
nothing that may come could beat it, as in JSON no digit can follow a number; of an operator's longer forms only those
count that could begin an operand; and contexts of a contextual lexer are one where no terminal of one of them is in
the way of what may come behind the other. That is decided by following both, side by side (Hopcroft & Karp 1971),
along the bytes of terminals that may come. Where they come to watch different states anew they are held to be
different, which costs controls and never a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np

from ...budget import Meter
from ...runtime.core.lazy_table import LazyTable
from ...runtime.grammar.completability.obligations import Obligations, Watched
from ..grammar.lexer.minimise import futures
from ..grammar.lexer.scanner import Lexer
from ..grammar.parser.symbols import Symbol

#: A terminal, and the lexer state before the lexeme behind it.
Shift: TypeAlias = tuple[Symbol, int]

_DOING = "looking for what the lexer tells apart"

#: Bytes of a pair of places.
_BYTES_OF_PAIR = 400


class Control(NamedTuple):
    """What the text before a lexeme means to it.

    Parameters
    ----------
    start:
        The lexer's state.
    watched:
        States that must not be beaten.
    barred:
        Terminals that may not come next.
    """

    start: int
    watched: Watched = ()
    barred: int = 0


#: A lexer state and what is watched of one control, then of the other; where their lexemes begin, and what may come.
_Pair: TypeAlias = tuple[int, Watched, int, Watched, tuple[int, int], int]


class LexerStates:
    """A lexer, with what it ignores.

    Parameters
    ----------
    lexer:
        Its states.
    ignored:
        Terminals that may stand between any two others.
    end:
        The end of the text, as a terminal.
    given:
        Terminals that nothing lexes.
    """

    def __init__(self, lexer: Lexer, ignored: int, end: Symbol, meter: Meter, given: int = 0) -> None:
        self.class_of = lexer.class_of
        self.rows: LazyTable[list[int]] = LazyTable(lambda state: lexer.table[state].tolist())
        self.ends = lexer.ends
        beats, lapses = np.array(lexer.beats, np.uint8), np.array(lexer.lapses, np.uint8)
        self.obligations = Obligations(self.rows, beats, lapses)
        self.ignored = ignored
        self.end = end
        self._given = given
        self._future = futures(lexer, meter)
        self._meter = meter

    def same(self, a: Control, b: Control, follow: int, behind: Mapping[Shift, int]) -> bool:
        """Whether two controls mean the same to all texts that may come.

        Parameters
        ----------
        follow:
            The terminals that may come first.
        behind:
            By shift: those behind it. Nothing is looked up where nothing is watched.
        """
        obligations = self.obligations
        first: _Pair = a.start, a.watched, b.start, b.watched, (a.start, b.start), follow
        seen = {first}
        for pair in (todo := [first]):  # grows as it goes
            self._meter.check_time(_DOING)
            self._meter.check_memory(len(seen) * _BYTES_OF_PAIR, _DOING)
            here, left, there, right, starts, follow = pair
            if here == there and left == right and starts[0] == starts[1]:
                continue
            may_end = (here, there) == starts and follow >> self.end & 1
            if may_end and obligations.lapses(left) != obligations.lapses(right):
                return False
            if follow & self._given and left != right:  # what may follow is not looked at
                return False
            wanted = follow | self.ignored
            after = self._after(pair, wanted)
            ends = [{(t, w) for t, w in self.ends[state] if wanted >> t & 1} for state in (here, there)]
            if after is None or ends[0] != ends[1]:
                return False
            for terminal in {t for t, _ in ends[0]}:
                if self.ignored >> terminal & 1:
                    after.add((starts[0], left, starts[1], right, starts, follow))
                elif left != right:
                    shifts = ((s, more) for (t, s), more in behind.items() if t == terminal)
                    after |= {(s, left, s, right, (s, s), more) for s, more in shifts}
            todo += after - seen
            seen |= after
        return True

    def _after(self, pair: _Pair, wanted: int) -> set[_Pair] | None:
        """Where the bytes lead that both may read; None where one of them may and the other may not."""
        here, left, there, right, starts, follow = pair
        rows = self.rows[here], self.rows[there]
        found: set[_Pair] = set()
        classes = range(len(rows[0])) if left or right else repeat(0)  # where nothing is watched they are all the same
        each = {*zip(classes, *rows, strict=False)}
        for c, first, second in each:
            one = self.obligations.after(left, c) if first >= 0 and self._future[first] & wanted else None
            other = self.obligations.after(right, c) if second >= 0 and self._future[second] & wanted else None
            if (one is None) != (other is None):
                return None
            if one is not None and other is not None:
                found.add((first, one, second, other, starts, follow))
        return found


def contexts(states: LexerStates, starts: list[int], accepted: list[int]) -> list[int]:
    """By parser state: the lexer's state in which it reads on, one for all that mean the same.

    Parameters
    ----------
    starts:
        By parser state: the one that it has.
    accepted:
        By parser state: the terminals that may come, the end of the text among them.

    Raises `BudgetExceededError`.
    """
    found: dict[tuple[int, int], int] = {}
    kept: dict[int, None] = {}
    order = sorted({*zip(starts, accepted, strict=True)}, key=lambda each: -each[1].bit_count())
    for start, follow in order:
        same = (each for each in kept if states.same(Control(start), Control(each), follow, {}))
        found[start, follow] = each = start if start in kept else next(same, start)
        kept[each] = None
    return [found[key] for key in zip(starts, accepted, strict=True)]
