"""Whether a text can be completed, where that is a question of what the lexer can read.

The parser accepts a terminal when its stack says so, and the lexer can read one when the boundary before it says so
(`structgen.runtime.grammar.completability.boundaries`). A real stack is gone through from the top down, each state
with what the summaries of those above it left (`structgen.runtime.grammar.completability.pop_summaries`), until a run
succeeds or none is left. That is exact: there is no bound on how far ahead a lexeme without a follower may lie.

With a layout it is the same where brackets and blocks nest
(`structgen.runtime.grammar.completability.indented_moves`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from ....system.memo import Memo
from ...core.lazy_table import LazyTable
from ..embedded import Embedded
from ..indentation import Level
from ..parser.stack import Accepted, Parser, Stack
from ..tables import GrammarTables
from .boundaries import Boundaries
from .completion_tables import CompletionTables, TableBuilder, columns_of
from .indented_moves import OUTSIDE, IndentedMoves, Inside
from .lexical_follow import LexicalFollow
from .nesting import Nesting
from .obligations import Watched
from .pop_summaries import Group, PopSummaries, PopSummary

#: Answers that are remembered.
_MOST_KNOWN = 1 << 15

#: Places on the way down stacks that are remembered; these hold on to the stacks.
_MOST_PLACES = 1 << 13

#: Contexts times boundaries of which tables say what can come first.
_MOST_FIRST = 1 << 13

#: A nonterminal and how many states are popped besides, with the endings that may be next then.
_Left: TypeAlias = dict[tuple[int, int], int]

#: By stack what is put on it, before which endings, and its place.
_Waiting: TypeAlias = dict[Stack, tuple[dict[int, int], Inside]]

#: The same, as a key.
_Key: TypeAlias = frozenset[tuple[Stack, frozenset[tuple[int, int]], Inside]]

#: Stands for an answer that is not known yet.
_UNKNOWN: _Left = {}


class Completion(NamedTuple):
    """Whether a text can be completed, and the lowest depth of the stack that was looked at."""

    is_possible: bool
    depth_read: int


class Plain:
    """`structgen.runtime.grammar.completability.pop_summaries.Moves` of a grammar without a layout."""

    def __init__(self, tables: GrammarTables, parser: Parser, reading: LexicalFollow) -> None:
        endings = tables.endings
        self.terminal = [*endings.terminal, tables.end]
        self._sure = sum(1 << ending for ending, is_free in enumerate([*endings.unconstrained, True]) if is_free)
        self.mentioned, self.goto = parser.mentioned, parser.goto
        self.shifted_to, self.reductions = parser.shifted_to, parser.reductions
        self._context, self._boundary, self._read = parser.context, endings.boundary, reading.next

    def succeeding(self, _: int) -> int:
        """The endings behind which a text can be completed, as a set."""
        return self._sure

    def next(self, state: int, ending: int) -> int:
        """The endings that may come next where one has led to a state, as a set."""
        return self._read(self._context(state), self._boundary[ending])


class Completions:
    """Answers for one grammar whose endings are not all unconstrained.

    Parameters
    ----------
    tables, parser, boundaries:
        The grammar.
    embedded:
        Definitions and special tokens within it.
    pause:
        Called within long work, with the bytes that summaries take; may raise.
    known:
        What was worked out of this grammar before.
    """

    def __init__(
        self,
        tables: GrammarTables,
        parser: Parser,
        boundaries: Boundaries,
        embedded: Embedded,
        pause: Callable[[int], object],
        known: CompletionTables | None = None,
    ) -> None:
        self._tables = tables
        self._parser = parser
        self._pause = pause
        self.reading = LexicalFollow(tables, boundaries, embedded)
        #: Where there is a layout; None for one whose brackets or blocks do not nest: nothing can be asked then.
        self._nesting = nesting = None if tables.layout is None else _nesting(tables, known, pause)
        self._indented = IndentedMoves(tables, parser, self.reading, nesting) if nesting is not None else None
        #: Whether `find` can be asked.
        self.is_exact = tables.layout is None or self._indented is not None
        self._moves = self._indented or Plain(tables, parser, self.reading)
        self._summaries = PopSummaries(self._moves, pause)
        #: Whether summaries are of just the endings that are asked for: where conflicts are kept they come again and
        #: again, and have few that do the same. Elsewhere, above all with a layout, those of groups are put together.
        self._in_sets = not tables.is_deterministic and tables.layout is None
        self._known: Memo[tuple[int, int], _Left | None] = Memo(_MOST_KNOWN)
        self._places: Memo[_Key, Completion] = Memo(_MOST_PLACES)
        #: By state: what is shifted, see `_find_shifts`.
        self._shifts = LazyTable(self._find_shifts)

    def find(self, stack: Stack, context: int, boundary: Watched, level: Level | None) -> Completion:
        """Whether some text completes one that ends with this stack and a boundary behind its last lexeme."""
        place = OUTSIDE if self._indented is None or level is None else self._indented.place_at(level)
        left = self._left(self._at(stack, place), self._first(context, boundary, place.brackets > 0))
        return self._find(stack, 1, left, place)

    def open_to(self, stack: Stack, terminals: int, endings: int) -> Accepted:
        """Which of some endings can be next and the text behind it be completed, in a grammar without a layout.

        The terminals are those of the endings, none of them ignored. The stack is reduced for all of them at once,
        and those that are shifted to one state, with the same to be read behind them, are one question.
        """
        found, depth_read = 0, stack.depth
        seen = {stack: terminals}
        for here, asked in (queue := [(stack, terminals)]):  # grows as it goes
            for terminal, target, there, following in self._shifts[here.state]:
                there &= endings & ~found
                if there and asked >> terminal & 1:
                    is_possible, lowest = self._find(here, 0, self._left(target, following), OUTSIDE)
                    depth_read = min(depth_read, lowest)
                    found |= there if is_possible else 0
            for reduced, before in self._parser.reduced(here, asked):
                depth_read = min(depth_read, reduced.depth - 1)
                known = seen.get(reduced, 0)
                if asked & before & ~known:
                    seen[reduced] = known | asked & before
                    queue.append((reduced, asked & before & ~known))
        return Accepted(found, depth_read)

    def _find_shifts(self, state: int) -> list[tuple[int, int, int, int]]:
        """A state's shifts: a terminal, the state after it, endings, and those that may come next behind them.

        Without those endings that succeed at once.
        """
        moves, found = self._moves, dict[tuple[int, int, int], int]()
        mentioned = moves.mentioned(state)
        succeeding = moves.succeeding(state)
        for ending, terminal in enumerate(moves.terminal):
            target = moves.shifted_to(state, terminal) if mentioned >> terminal & 1 else None
            if target is not None and not succeeding >> ending & 1:
                key = terminal, target, moves.next(target, ending)
                found[key] = found.get(key, 0) | 1 << ending
        return [(terminal, target, there, following) for (terminal, target, following), there in found.items()]

    def _first(self, context: int, boundary: Watched, is_within: bool) -> int:
        """The endings that may come first in a context, within brackets or not."""
        if self._indented is None:
            return self.reading.next(context, boundary)
        return self._indented.first(context, boundary, is_within=is_within)

    def find_all(self) -> None:
        """Work out whatever `find` may need of what can come to lie on a stack: what it costs at most."""
        for _ in self._all():
            pass

    def _all(self) -> Iterator[tuple[int, list[tuple[Group, PopSummary]]]]:
        """Each position that a stack can come to, and its summaries, each with its endings."""
        nesting, indented = self._nesting, self._indented
        if nesting is not None and indented is not None:
            depths = nesting.depths(self._tables)
            positions = [indented.number(s, Inside(each)) for s, there in enumerate(depths) for each in sorted(there)]
        else:
            positions = list(range(len(self._tables.context))) if self.is_exact else []
        for position in positions:
            groups = self._summaries.groups[position]
            found = [(group, self._summaries.find(position, group.endings)) for group in groups]
            yield position, found
            self._pause(self._summaries.nbytes)

    def tables(self) -> CompletionTables | None:
        """All of it as tables; None where nothing can be asked, or too much can be first."""
        endings, nesting, indented = self._tables.endings, self._nesting, self._indented
        columns = columns_of(endings).tolist()
        contexts = range(len(self._tables.starts))
        if not self.is_exact or len(contexts) * len(columns) > _MOST_FIRST:
            return None
        builder = TableBuilder()
        reach = [below + 1 for below in nesting.below] if nesting is not None else [0] * len(self._tables.context)
        begins = [0, *accumulate(1 + each for each in reach)]
        row_of = [0] * begins[-1]
        for position, found in self._all():
            state, brackets = indented.positions[position][:2] if indented is not None else (position, 0)
            row_of[begins[state] + brackets] = builder.row(found)
        boundary_of = dict(zip(endings.ends[:, 1].tolist(), endings.boundary, strict=True))
        boundaries = [boundary_of[column] for column in columns]
        first = [
            [builder.number(self._first(context, each, within)) for each in boundaries for within in (False, True)]
            for context in contexts
        ]
        net = nesting.net if nesting is not None else [0] * len(reach)
        return builder.tables(reach, net, row_of, first, len(self._moves.terminal))

    def _at(self, stack: Stack, place: Inside) -> int:
        """The state on top of a stack, or the number of its position."""
        return stack.state if self._indented is None else self._indented.number(stack.state, place)

    def _find(self, stack: Stack, above: int, left: _Left | None, place: Inside) -> Completion:
        """Go down a stack, whose top is at a place, until a run succeeds or none is left.

        What is ``left`` there pops ``above`` more states than it says.

        What comes of a place on the way is the same whichever stack led there: those that a mask asks about differ in
        a few states on top.
        """
        found = Completion(False, stack.depth)
        waiting: _Waiting = {}
        if left is None:
            return Completion(True, stack.depth)
        for (origin, popped), endings in left.items():
            self._pop(waiting, stack, place, above + popped, origin, endings)
        passed: list[_Key] = []
        while waiting and not found.is_possible:
            key = frozenset((each, frozenset(put.items()), there) for each, (put, there) in waiting.items())
            known = self._places.get(key)
            if known is not None:
                found = known
                break
            passed.append(key)
            here = max(waiting, key=lambda stack: stack.depth)  # nothing more is put on it
            put, place = waiting.pop(here)
            self._pause(0)
            found = Completion(self._succeeds(waiting, here, place, put), here.depth)
        for key in passed:
            self._places[key] = found
        return found

    def _succeeds(self, waiting: _Waiting, here: Stack, place: Inside, put: dict[int, int]) -> bool:
        """Whether a run does on a stack that nonterminals are put on; else what is left of them is ``waiting``."""
        at = self._at(here, place)
        todo = list(put.items())
        seen = set(todo)
        for origin, endings in todo:  # grows as it goes
            target = self._moves.goto(at, origin)
            left = self._left(target, endings) if target is not None else {}
            if left is None:
                return True
            for (after, popped), there in left.items():
                if popped:
                    self._pop(waiting, here, place, popped, after, there)
                elif (after, there) not in seen:
                    seen.add((after, there))
                    todo.append((after, there))
        return False

    def _pop(self, waiting: _Waiting, stack: Stack, place: Inside, count: int, origin: int, endings: int) -> None:
        """Have a nonterminal wait on what a stack is without some states, before some endings."""
        indented, places = self._indented, {stack: place}
        for _ in range(count):
            places = {
                below: indented.below(each.state, place) if indented is not None else place
                for each, place in places.items()
                for below in each.belows
            }
        for each, place in places.items():
            there = waiting.setdefault(each, ({}, place))[0]
            there[origin] = there.get(origin, 0) | endings

    def _left(self, state: int, endings: int) -> _Left | None:
        """The union of a state's pop summaries before some endings; None where one of them succeeds."""
        known = self._known.get((state, endings), _UNKNOWN)
        if known is _UNKNOWN:
            known = self._known[state, endings] = self._find_left(state, endings)
        return known

    def _find_left(self, state: int, endings: int) -> _Left | None:
        if self._in_sets:
            summary = self._summaries.find(state, endings)
            return None if summary.succeeds else summary.found
        found: _Left = {}
        for group in self._summaries.groups[state]:
            if not group.endings & endings:
                continue
            summary = self._summaries.find(state, group.endings)
            if summary.succeeds:
                return None
            for each, following in summary.found.items():
                found[each] = found.get(each, 0) | (following & endings if group.stays else following)
        return found


def _nesting(tables: GrammarTables, known: CompletionTables | None, pause: Callable[[int], object]) -> Nesting | None:
    if known is None:
        return Nesting.find(tables, lambda: pause(0))
    return Nesting(known.net.tolist(), (known.reach - 1).tolist())
