"""Texts that complete what a grammar's threads have read, of any deterministic grammar: found lexeme by lexeme.

`structgen.runtime.grammar.distances.texts` has a text for every thread, byte by byte, and refuses grammars with
indentation or with terminals that cannot follow each other. Here no promise is made ahead of time, so any are taken:
a best-first search (Pearl 1984) over the parses between lexemes, which goes where the stack is cheapest to complete
(`structgen.runtime.grammar.distances.parser_costs`). A line end may close blocks or open one; what its column costs
is seen when it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from ....system.locks import Lock, Rank
from ....system.memo import Memo
from ....system.visible import legibility
from ...automaton.distances import MEMO_ENTRIES
from ...core.digraph import bits
from ...pushdown.distances.cheapest_texts import by_class
from ..completability.obligations import Watched
from ..lexer_threads import Thread
from ..parser.parser_driver import Parse, ParserDriver
from ..tables import GrammarTables
from .lexeme_costs import LexemeCosts, Spot
from .parser_costs import FAR, ParserCosts

#: Boundaries between lexemes that are looked at for one text, lexemes that can come behind all of them, and what the
#: lexer comes to with one of them.
_MOST_BOUNDARIES, _MOST_LEXEMES, _MOST_SPOTS = 1 << 12, 1 << 16, 1 << 12

#: The rest of a lexeme, and what it leaves watched.
_Rest: TypeAlias = tuple[bytes, Watched]


class _Boundary(NamedTuple):
    """Where a lexeme has ended: the parse behind it, and what earlier lexemes still forbid."""

    parse: Parse
    watched: Watched


class CompletionSearch:
    """Completes texts of one grammar. Safe to use from several threads.

    Parameters
    ----------
    tables, parses:
        The grammar; no two of its parser's actions may compete.
    """

    def __init__(self, tables: GrammarTables, parses: ParserDriver) -> None:
        self._tables, self._parses = tables, parses
        self._futures = tables.futures
        self._lapses: list[int] = tables.lapses.tolist()
        self._starts: list[int] = tables.starts.tolist()
        self._fresh = frozenset(self._starts)
        self._lexemes = LexemeCosts(tables, by_class(sorted(range(256), key=legibility), tables.class_of))
        self._costs = ParserCosts(tables, parses.parser, self._least())
        self._known: Memo[tuple[Spot, int], tuple[_Rest, ...]] = Memo(MEMO_ENTRIES)
        self._lock = Lock(Rank.DISTANCES)

    def _least(self) -> list[int]:
        """By terminal of the parser: the fewest bytes that it takes."""
        layout, end = self._tables.layout, self._tables.end
        known = self._lexemes.least(self._starts)
        least = [known.get(terminal, FAR) for terminal in range(end)]
        if layout is not None:
            columns = range(end + 1, end + 1 + layout.columns + 1)
            least[layout.newline] = min(known.get(each, FAR) for each in (layout.newline, *columns))
            least[layout.indent], least[layout.dedent] = 1, 0
        return least

    def find(self, threads: Iterable[Thread]) -> bytes | None:
        """Bytes that complete the text of some thread, few if not the fewest; None where none were found."""
        with self._lock:
            if self._costs.remembered >= MEMO_ENTRIES:
                self._costs.forget()
            found = [text for text in map(self._find, threads) if text is not None]
        return min(found, key=len, default=None)

    def _find(self, thread: Thread) -> bytes | None:
        parse, at, watched = thread
        assert not isinstance(at, tuple)
        watched = tuple(sorted(set(watched)))
        first = _Boundary(parse, watched)
        seen: set[_Boundary] = set()
        heap: list[tuple[int, int, int, bytes, _Boundary]] = []
        pushed = 0

        def push(text: bytes, reached: Iterable[tuple[bytes, _Boundary]]) -> None:
            nonlocal pushed
            for lexeme, there in reached:
                cost = self._costs.bytes(there.parse.stack)
                if cost < FAR and there not in seen:
                    pushed += 1
                    heappush(heap, (cost, len(text) + len(lexeme), pushed, text + lexeme, there))

        push(b"", [(b"", first)] if at in self._fresh else self._lexed(first, at))
        while heap and len(seen) < _MOST_BOUNDARIES and pushed < _MOST_LEXEMES:
            *_, text, here = heappop(heap)
            if here in seen:
                continue
            seen.add(here)
            if self._may_end(here):
                return text
            push(text, self._lexed(here, self._starts[here.parse.context]))
        return None

    def _may_end(self, here: _Boundary) -> bool:
        return not any(self._lapses[w] for w in here.watched) and self._parses.may_end(here.parse)

    def _lexed(self, here: _Boundary, state: int) -> Iterator[tuple[bytes, _Boundary]]:
        """What a lexeme can become that is in a state: the rest of short ones of each terminal, what is behind."""
        terminals = self._futures[state] & self._parses.accepted(here.parse).terminals & self._told_apart(here)
        for terminal in bits(terminals):
            for text, watched in self._rests((state, here.watched), terminal):
                for parse in self._parses.after(here.parse, terminal).parses:
                    yield text, _Boundary(parse, watched)

    def _told_apart(self, here: _Boundary) -> int:
        """All terminals, as a set, without columns of line ends that lead where others do, or only further right."""
        level, layout, first = here.parse.level, self._tables.layout, self._tables.end + 1
        if level is None or layout is None:
            return -1
        columns = {0} if level.brackets else {*level.columns, level.columns[-1] + 1}
        return (1 << first) - 1 | sum(1 << first + column for column in columns if column <= layout.columns)

    def _rests(self, spot: Spot, terminal: int) -> tuple[_Rest, ...]:
        """Short rests of a lexeme that is to end as a terminal."""
        known = self._known.get((spot, terminal))
        if known is None:
            known = self._known[spot, terminal] = (*self._find_rests(spot, terminal),)
        return known

    def _find_rests(self, start: Spot, terminal: int) -> Iterator[_Rest]:
        """A* over what the lexer and the obligations come to, whose estimate leaves out the obligations.

        Of each boundary the shortest; those that are more than a byte longer than the shortest of all are left out.
        """
        far, most = self._lexemes.plain[terminal], FAR - 1
        heap, seen, pushed = [(far[start[0]], 0, b"", start)], {start}, 0
        told: set[Watched] = set()
        while heap and heap[0][0] <= most and pushed < _MOST_SPOTS:
            *_, text, spot = heappop(heap)
            watched = self._lexemes.ended(spot, terminal)
            if watched is not None and watched not in told:
                yield text, watched
                if not watched:  # nothing can come that could not come here
                    return
                told.add(watched)
                most = min(most, len(text) + 1)
            for byte, c in self._lexemes.chosen:
                after = self._lexemes.moved(spot, c)
                if after is not None and after not in seen and far[after[0]] < FAR:
                    seen.add(after)
                    pushed += 1
                    longer = text + bytes([byte])
                    heappush(heap, (len(longer) + far[after[0]], pushed, longer, after))
