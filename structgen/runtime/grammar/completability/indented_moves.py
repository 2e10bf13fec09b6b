"""What a parser and a lexer can do together where there is a layout, whose brackets and blocks nest.

The parser's stack tells then how many brackets are open (`structgen.runtime.grammar.completability.nesting`). A state
of the parser comes with that number, as far as it matters: up to one more than what may be closed above it. So it is
seen whether a line end means something, and what: it is the terminal of line ends, then an indent or as many dedents
as the stack takes, for a line that is yet to come may begin at any column. The end of the text ends all blocks.

Of the terminals that stand for the columns of one line end, one is left here; besides, there are endings that no
lexeme has: an indent and a dedent behind each boundary of a line end, and a dedent at the end of the text.

A state also comes with the *rooms* of the narrow levels around it (`structgen.runtime.grammar.indentation`): by how
many columns lines can be indented further there. An indent takes one of it. Where endings are unconstrained there is
a text that completes whatever there is, if it has room for all but two of the columns that a level is not narrow with
(`structgen.compiler.grammar.completion.lines`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from ....system.locks import Lock, Rank
from ....system.memo import Memo
from ...core.digraph import bits, set_of
from ..indentation import Level
from ..parser.stack import Parser
from ..tables import GrammarTables
from .boundaries import MOST_ANSWERS
from .lexical_follow import LexicalFollow
from .nesting import Nesting
from .obligations import Watched

#: A state, how many brackets are open, and rooms.
_Position: TypeAlias = tuple[int, int, tuple[int, ...]]


class Inside(NamedTuple):
    """Open brackets, and the rooms of narrow levels, the outermost first."""

    brackets: int = 0
    rooms: tuple[int, ...] = ()


#: What lies in no brackets, with room.
OUTSIDE = Inside()


class _Line(NamedTuple):
    """The endings behind a line end: itself, and what no lexeme has."""

    end: int
    indent: int
    dedent: int


class IndentedMoves:
    """`structgen.runtime.grammar.completability.pop_summaries.Moves` of a grammar whose brackets and blocks nest.

    Parameters
    ----------
    tables, parser, reading:
        The grammar.
    nesting:
        How it nests.
    """

    def __init__(self, tables: GrammarTables, parser: Parser, reading: LexicalFollow, nesting: Nesting) -> None:
        layout, endings = tables.layout, tables.endings
        assert layout is not None
        self._layout = layout
        self._nesting = nesting
        #: By state: the brackets that are opened right below it.
        self.net = nesting.net
        self._parser = parser
        self._reading = reading
        self._last = len(endings)
        self.terminal = [*endings.terminal, tables.end]
        self._sure = set_of(e for e, is_free in enumerate(endings.unconstrained) if is_free)
        self._boundary: list[Watched] = [*endings.boundary, ()]
        self._lines = 0  # all endings of line ends, as a set
        self._of_column: dict[int, int] = {}  # by such an ending that has a column: the one left for its boundary
        self._line: dict[int, _Line] = {}
        first: dict[Watched, int] = {}
        widest = 0
        for ending, (terminal, boundary) in enumerate(zip(endings.terminal, endings.boundary, strict=True)):
            if terminal == layout.newline:
                self.terminal[ending] = -1  # has no line end in it
                self._lines |= 1 << ending
            elif terminal > tables.end:
                widest = max(widest, terminal - tables.end - 1)
                self._lines |= 1 << ending
                self._of_column[ending] = first.setdefault(boundary, ending)
                self.terminal[ending] = layout.newline
        self._has_indents = widest > 0
        for boundary, ending in first.items():
            indent, dedent = self._more(layout.indent, boundary), self._more(layout.dedent, boundary)
            self._line[ending] = _Line(ending, indent, dedent)
        self._behind = {line.indent: line for line in self._line.values()}
        self._behind |= {line.dedent: line for line in self._line.values()}
        self._closes = self._more(layout.dedent, ())
        self._number: dict[_Position, int] = {}
        #: By number.
        self.positions: list[_Position] = []
        #: By state right behind an indent or a dedent: how many rooms it has more than the one below.
        self._blocks = {
            target: 1 if terminal == layout.indent else -1
            for _, terminal, target in tables.shift.tolist()
            if terminal in (layout.indent, layout.dedent)
        }
        self._numbering = Lock(Rank.LEAF)
        self._nexts: Memo[tuple[int, Watched, bool], int] = Memo(MOST_ANSWERS)

    def _more(self, terminal: int, boundary: Watched) -> int:
        self.terminal.append(terminal)
        self._boundary.append(boundary)
        return len(self.terminal) - 1

    # -- positions ----------------------------------------------------------------------------------------

    def place_at(self, level: Level) -> Inside:
        """The place of what is at a level."""
        first, columns = self._layout.first_narrow, self._layout.columns
        return Inside(level.brackets, tuple(columns - column for column in level.columns if column >= first))

    def below(self, state: int, place: Inside) -> Inside:
        """The place below a state that is at one itself. In a block that is closed nothing is put on any more."""
        block = self._blocks.get(state, 0)
        rooms = place.rooms if not block else place.rooms[:-1] if block > 0 else (*place.rooms, 0)
        return Inside(place.brackets - self.net[state], rooms)

    def number(self, state: int, place: Inside) -> int:
        """The number of a position."""
        position = state, min(place.brackets, self._nesting.below[state] + 1), place.rooms
        known = self._number.get(position)
        if known is None:
            with self._numbering:
                known = self._number.get(position, len(self.positions))
                if known == len(self.positions):
                    self.positions.append(position)
                    self._number[position] = known
        return known

    def _after(self, position: int, target: int | None) -> int | None:
        """The position of a state on top of that at another one, if it can be there."""
        if target is None:
            return None
        _, brackets, rooms = self.positions[position]
        brackets += self.net[target]
        block = self._blocks.get(target, 0) if self._layout.room else 0
        if block > 0:
            rooms = (*rooms, self._room(rooms) - 1)
        elif block:
            rooms = rooms[:-1]
        return self.number(target, Inside(brackets, rooms)) if brackets >= 0 and min(rooms, default=0) >= 0 else None

    def _room(self, rooms: tuple[int, ...]) -> int:
        return rooms[-1] if rooms else self._layout.room

    def succeeding(self, position: int) -> int:
        """The endings behind which a text can be completed, if a position shifts them, as a set."""
        has_room = self._room(self.positions[position][2]) >= self._layout.room - 2
        return 1 << self._last | (self._sure if has_room else 0)

    # -- moves -----------------------------------------------------------------------------------------

    def mentioned(self, position: int) -> int:
        """The terminals before which the state at a position does anything, as a set."""
        return self._parser.mentioned(self.positions[position][0])

    def shifted_to(self, position: int, terminal: int) -> int | None:
        """Where a terminal leads to, if it can be there."""
        return self._after(position, self._parser.shifted_to(self.positions[position][0], terminal))

    def reductions(self, position: int, terminal: int) -> Iterable[tuple[int, int]]:
        """The length and the nonterminal of each reduction that is made before a terminal."""
        return self._parser.reductions(self.positions[position][0], terminal)

    def goto(self, position: int, origin: int) -> int | None:
        """Where a nonterminal leads to, if it can be there."""
        return self._after(position, self._parser.goto(self.positions[position][0], origin))

    def next(self, position: int, ending: int) -> int:
        """The endings that may come next where one has led to a position, as a set."""
        state, brackets, _ = self.positions[position]
        if ending == self._closes:
            return 1 << self._closes | 1 << self._last
        found = self.first(self._parser.context(state), self._boundary[ending], is_within=brackets > 0)
        line = self._line.get(ending)
        if line is not None:
            return found | 1 << line.dedent | (1 << line.indent if self._has_indents else 0)
        line = self._behind.get(ending)
        return found | 1 << line.dedent if line is not None and ending == line.dedent else found

    def first(self, context: int, boundary: Watched, *, is_within: bool) -> int:
        """The endings that may come next in a context, within brackets or not."""
        key = context, boundary, is_within
        found = self._nexts.get(key)
        if found is None:
            found = self._reading.next(context, boundary, self._lines if is_within else 0)
            lines = found & self._lines
            found ^= lines
            for ending in {self._of_column.get(ending, ending) for ending in bits(lines)}:
                found |= 1 << ending
            if found >> self._last & 1:
                found |= 1 << self._closes
            self._nexts[key] = found
        return found
