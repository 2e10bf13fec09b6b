"""Which endings of lexemes are unconstrained in a grammar with indentation whose brackets and blocks nest.

An ending is unconstrained if some way to complete any stack can be written out behind it
(`structgen.compiler.grammar.completion.completing`): behind its border, what is ignored maybe in between, the way of
the state on top can be read, and again for the states that are on top then. Line ends within the texts of such ways
lie outside of brackets, indents come right behind them, and dedents too or behind other dedents. So many indents as
are open at once in one of these texts must have room; with two more, levels with less room are *narrow*, and line
ends that lead to one are never called unconstrained (`structgen.runtime.grammar.completability.indented_moves`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

from ....budget import Meter
from ....runtime.core.bitsets import set_at
from ....runtime.core.digraph import bits, set_of, solve
from ....runtime.grammar.completability.boundaries import Boundaries
from ....runtime.grammar.completability.nesting import Nesting
from ....runtime.grammar.completability.obligations import Watched
from ....runtime.grammar.indentation import MOST_ROOM
from ....runtime.grammar.tables import GrammarTables
from .completing import Alternative, Completing, Way, are_good

#: What the meter is told.
_DOING = "looking for what can follow lexemes"

#: What an indent counts in texts that complete others.
_INDENT = 1 << 20

#: What may come besides, right behind a line end: any of both, or dedents only.
_BLOCK, _DEDENTS = 1, 2


class _Place(NamedTuple):
    """Where the lexer is: its context, what is watched, what may still come of a line end."""

    context: int
    border: Watched
    line: int = 0


class LineEnds:
    """Looks for unconstrained endings.

    Parameters
    ----------
    tables:
        The grammar.
    nesting:
        How it nests.
    terminals, borders:
        The endings.
    reads:
        What the lexer can read.
    given:
        The terminals that are not lexed.
    """

    def __init__(
        self,
        tables: GrammarTables,
        nesting: Nesting,
        terminals: list[int],
        borders: list[Watched],
        reads: Boundaries,
        given: int,
        meter: Meter,
    ) -> None:
        layout = tables.layout
        assert layout is not None
        self._tables, self._layout, self._meter = tables, layout, meter
        self._terminal, self._border = terminals, borders
        self._reads = reads
        self._given = given
        self._net = nesting.net
        self._is_whole = nesting.is_whole
        self._depths = nesting.depths(tables)
        self._context: list[int] = tables.context.tolist()
        ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._blocked: dict[Watched, int] = {}
        for border in borders:
            if border not in self._blocked:
                self._blocked[border] = tables.table.shape[1] - reads.fate(border).ends.bit_count()
        #: By terminal its endings, those behind which most can come first; line ends, which come with every column.
        self._endings: dict[int, list[int]] = {}
        self._lines: dict[Watched, int] = {}
        for ending in sorted(range(len(terminals)), key=lambda e: self._blocked[borders[e]]):
            terminal = terminals[ending]
            if tables.end < terminal <= tables.end + 1 + layout.columns:
                self._lines[borders[ending]] = self._lines.get(borders[ending], 0) | 1 << ending
            elif terminal != layout.newline:
                self._endings.setdefault(terminal, []).append(ending)
        whole = layout.columns + 1
        self._lines = {border: ends for border, ends in self._lines.items() if ends.bit_count() == whole}
        self._ignored = [e for t in bits(ignored) for e in self._endings.get(t, ())]
        self._ignored.sort(key=lambda e: self._blocked[borders[e]])
        self._ignored_set = set_of(self._ignored)
        self._everything = (1 << tables.table.shape[1]) - 1
        self._known: dict[tuple[int, Watched], tuple[int, bool, bool]] = {}
        self._simplest: dict[tuple[int, Watched], Watched] = {}

    def unconstrained(self, completing: Callable[[list[int]], Completing]) -> tuple[list[bool], int]:
        """By ending: whether it is unconstrained; and the room that levels are narrow without.

        Raises `BudgetExceededError`.
        """
        classes = self._tables.table.shape[1]
        weights = [1] * (self._tables.end + 1)
        for terminal, endings in self._endings.items():
            if terminal <= self._tables.end:
                weights[terminal] += 8 * self._blocked[self._border[endings[0]]] // classes
        weights[self._layout.indent] = _INDENT
        ways = completing(weights).ways()
        least = max((min(map(self._indents, some), default=0) for some in ways.values()), default=0)
        room = min(MOST_ROOM - 2, least)
        ways = {state: [way for way in some if self._indents(way) <= room] for state, some in ways.items()}
        firsts = self._firsts(ways)
        number: dict[tuple[Any, ...], int] = {}
        todo: list[tuple[int, _Place]] = []

        def node(state: int, place: _Place) -> int:
            # Places are the same to a state if the same can be read of what its ways begin with.
            endings, *rest = self._next(place.context, place.border)
            key = state, endings & firsts.get(state, 0), *rest, place.line and place
            known = number.get(key)
            if known is None:
                known = number[key] = len(todo)
                todo.append((state, place))
            return known

        roots = {
            (terminal, border): [node(state, self._simple(context, border)) for state, context in there]
            for (terminal, border), there in self._roots().items()
        }
        options: list[list[Alternative]] = []
        for state, place in self._meter.each(todo, _DOING):  # grows as it goes
            found: list[Alternative] = []
            for way in ways.get(state, ()):
                after = self._read(state, way, place)
                if after is not None:
                    found.append(Alternative([[node(each, after)] for each in way.after], way.is_lower))
            options.append(found)
        good = are_good(options, self._meter)
        free = [all(good[each] for each in roots.get(key, ())) for key in self._keys()]
        if not self._is_whole or (not room and all(free)):
            return free, 0
        narrow = self._tables.end + 1 + replace(self._layout, room=room + 2).first_narrow
        return [is_free and t < narrow for is_free, t in zip(free, self._terminal, strict=True)], room + 2

    def _indents(self, way: Way) -> int:
        """How many indents are open at once in the text of a way."""
        step = {self._layout.indent: 1, self._layout.dedent: -1}
        return max(accumulate((step.get(terminal, 0) for terminal, _ in way.text), initial=0))

    def _firsts(self, ways: dict[int, list[Way]]) -> dict[int, int]:
        """By state: the endings that its ways can begin with, as a set."""
        lines = sum(self._lines.values())
        of = {terminal: set_of(endings) for terminal, endings in self._endings.items()}
        of[self._layout.newline] = lines
        number = {state: i for i, state in enumerate(ways)}
        values, related = [], []
        for there in ways.values():
            values.append(0)
            related.append([number[n] for way in there if not way.text for n in way.after if n in number])
            for way in there:
                if way.text:
                    values[-1] |= of.get(way.text[0][0], 0)
        solve(values, related, lambda: self._meter.check_time(_DOING))
        return dict(zip(number, values, strict=True))

    def _keys(self) -> list[tuple[int, Watched]]:
        """By ending: the terminal, one for all columns, and the border."""
        line = self._tables.end + 1
        return [(min(terminal, line), border) for terminal, border in zip(self._terminal, self._border, strict=True)]

    def _roots(self) -> dict[tuple[int, Watched], dict[tuple[int, int], None]]:
        """By terminal and border: the states that can be on top behind such endings, with their contexts."""
        layout, line = self._layout, self._tables.end + 1
        borders: dict[int, dict[Watched, None]] = {}
        for terminal, border in self._keys():
            borders.setdefault(terminal, {})[border] = None
        found: dict[tuple[int, Watched], dict[tuple[int, int], None]] = {}
        kinds = {layout.newline: line, layout.indent: line, layout.dedent: line}

        def enter(terminal: int, state: int) -> None:
            context = self._context[state]
            for border in borders.get(terminal, ()):
                self._meter.check_time(_DOING)
                found.setdefault((terminal, border), {})[state, context] = None
                for ending in bits(self._next(context, border)[0] & self._ignored_set):
                    found.setdefault((self._terminal[ending], self._border[ending]), {})[state, context] = None

        for ending in bits(self._next(self._context[0], ())[0] & self._ignored_set):
            found[self._terminal[ending], self._border[ending]] = {(0, self._context[0]): None}
        for terminal, target in dict.fromkeys((t, target) for _, t, target in self._tables.shift.tolist()):
            if terminal != self._tables.end:
                enter(kinds.get(terminal, terminal), target)
                if any(self._depths[target]):  # within brackets, where a line end changes nothing
                    enter(layout.newline, target)
                    enter(line, target)
        return found

    # -- reading ---------------------------------------------------------------------------------------

    def _simple(self, context: int, border: Watched) -> _Place:
        """A place, or the one behind something ignored that can be read there."""
        key = context, border
        found = self._simplest.get(key)
        if found is None:
            found, there = border, self._reads.next(context, border) & self._ignored_set
            for ending in self._ignored if there else ():
                if there >> ending & 1 and self._blocked[self._border[ending]] <= self._blocked[border]:
                    found = self._border[ending]
                    break
            self._simplest[key] = found
        return _Place(context, found)

    def _next(self, context: int, border: Watched) -> tuple[int, bool, bool]:
        """What can be read, past what is ignored; whether any byte may come; whether the text may end."""
        known = self._known.get((context, border))
        if known is None:
            self._meter.check_time(_DOING)
            found, seen = 0, {border}
            is_free = is_final = False
            for each in (todo := [border]):  # grows as it goes
                there, fate = self._reads.next(context, each), self._reads.fate(each)
                found |= there
                is_free |= fate.ends == self._everything
                is_final |= fate.is_final
                for ending in bits(there & self._ignored_set):
                    if self._border[ending] not in seen:
                        seen.add(self._border[ending])
                        todo.append(self._border[ending])
            known = self._known[context, border] = found, is_free, is_final
        return known

    def _read(self, state: int, way: Way, place: _Place) -> _Place | None:
        """Where the lexer is behind the text of a way; None where it can't read that."""
        layout, depth = self._layout, 0
        for terminal, target in way.text:
            context = self._context[target]
            if terminal == layout.indent:
                if place.line != _BLOCK:
                    return None
                place = _Place(context, place.border)
                continue
            if terminal == layout.dedent:
                if not place.line:
                    return None
                place = _Place(context, place.border, _DEDENTS)
                continue
            endings, is_free, is_final = self._next(place.context, place.border)
            if terminal == self._tables.end:
                return place if is_final else None
            if terminal == layout.newline:
                border = next((b for b, ends in self._lines.items() if not ends & ~endings), None)
                if border is None or any(each + depth for each in self._depths[state]):
                    return None
                place = _Place(context, border, _BLOCK)
                continue
            depth += self._net[target]
            if self._given >> terminal & 1:
                if not is_free:
                    return None
                place = _Place(context, ())
                continue
            ending = next((e for e in self._endings.get(terminal, ()) if endings >> e & 1), None)
            if ending is None:
                return None
            place = self._simple(context, self._border[ending])
        return place
