"""Cheap texts that complete what a grammar's threads have read, byte by byte.

Which byte comes next is a function of the thread alone, so the rest of such a text is that of where its beginning
leads. Between lexemes it is a matter of the parser: the next terminal is the one that the cheapest text of the stack
begins with (`structgen.runtime.grammar.distances.parser_costs`). If obligations keep it from being read right
there, a short ignored terminal comes before it. Within a lexeme it ends as one of these, the first kind that there
is:

1. a terminal behind which the stack is cheaper than before;
2. an ignored one, if it may have come to keep two others apart;
3. whatever is the cheapest, together with the stack behind it.

So the stack gets cheaper with every lexeme but the first and ignored ones, only the first of which can be followed by
another; and the text ends.
"""

from __future__ import annotations

from ...core.bitsets import set_at
from ...core.digraph import bits
from ..completability.obligations import Watched
from ..lexer_threads import Thread
from ..parser.parser_driver import Parse, ParserDriver
from ..tables import GrammarTables
from .lexeme_costs import LexemeCosts, Spot
from .parser_costs import FAR, ParserCosts

#: A byte and the thread that it leads to, None where the text is complete.
Move = tuple[int, Thread] | None


class Stuck(Exception):
    """No text is known that completes a thread."""


class GrammarTexts:
    """Texts of one grammar. Not for several threads of the process at once.

    Parameters
    ----------
    tables, parses:
        The grammar; without a layout, no two of its parser's actions competing.
    chosen:
        A byte of each class that may be used, the preferred ones first.
    """

    def __init__(self, tables: GrammarTables, parses: ParserDriver, chosen: list[int]) -> None:
        self._parses = parses
        self._end = tables.end
        self._lapses: list[int] = tables.lapses.tolist()
        self._futures = tables.futures
        self._starts: list[int] = tables.starts.tolist()
        self._fresh = frozenset(self._starts)
        self._ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self.lexemes = LexemeCosts(tables, chosen)
        #: By terminal: the bytes of its cheapest text, `FAR` for one without.
        self.shortest = shortest = [
            min(self.lexemes.plain[terminal][start] for start in self._starts) for terminal in range(tables.end)
        ]
        self.costs = ParserCosts(tables, parses.parser, shortest)
        self.start, self.mentioned = parses.start.stack, parses.parser.mentioned
        least = min((shortest[terminal] for terminal in bits(self._ignored)), default=FAR)
        #: Ignored terminals that keep others apart, and the lexer states on the way to their ends.
        between = [t for t in bits(self._ignored) if shortest[t] == least < FAR]
        self.between = list(filter(self._keeps_apart, between)) or between
        self._apart = {
            state
            for start in self._starts
            for terminal in self.between
            if self.lexemes.plain[terminal][start] < FAR
            for state, _ in self.lexemes.path((start, ()), terminal)
        }
        self._ends_as: dict[Thread, int] = {}

    def _keeps_apart(self, ignored: int) -> bool:
        """Whether all that is not ignored can come behind an ignored one, as nothing can behind a line's comment."""
        plain, read = self.lexemes.plain, [t for t in range(self._end) if not self.is_ignored(t)]
        for start in (start for start in self._starts if plain[ignored][start] < FAR):
            spot = start, self.lexemes.boundary((start, ()), ignored)
            if any(plain[t][start] < FAR <= self.lexemes.bytes(spot, t) for t in read):
                return False
        return True

    def follow(self, thread: Thread) -> Move:
        """The next byte of a thread's text. Raises `Stuck`."""
        parse, at, watched = thread
        assert not isinstance(at, tuple)
        watched = tuple(sorted(set(watched)))
        if at in self._fresh:
            return self._begin(parse, watched)
        terminal = self._ends_as.get(thread)
        if terminal is None:
            terminal = self._ends_as[thread] = self._choose(parse, (at, watched))
        boundary = self.lexemes.ended((at, watched), terminal)
        if boundary is None:
            byte, spot = self.lexemes.step((at, watched), terminal)
            return byte, (parse, *spot)
        return self._begin(self._parses.after(parse, terminal).parses[0], boundary)

    def _begin(self, parse: Parse, boundary: Watched) -> Move:
        """The next byte, where no lexeme has begun."""
        terminal = self._next(parse, boundary)
        if terminal == self._end and self._can_come(parse, boundary):
            return None
        byte, spot = self.lexemes.step((self._starts[parse.context], boundary), terminal)
        return byte, (parse, *spot)

    def _can_come(self, parse: Parse, boundary: Watched) -> bool:
        """Whether what the stack's cheapest text begins with can be read behind a boundary."""
        if self.costs.bytes(parse.stack) >= FAR:
            return False
        terminal = self.costs.next(parse.stack)
        if terminal == self._end:
            return not any(self._lapses[w] for w in boundary)
        return self.lexemes.bytes((self._starts[parse.context], boundary), terminal) < FAR

    def _next(self, parse: Parse, boundary: Watched) -> int:
        """The terminal to read behind a boundary, maybe an ignored one. Raises `Stuck`."""
        if self._can_come(parse, boundary):
            return self.costs.next(parse.stack)
        spot = self._starts[parse.context], boundary
        for terminal in self.between:
            size = self.lexemes.bytes(spot, terminal)
            if size < FAR and self._can_come(parse, self.lexemes.boundary(spot, terminal)):
                return terminal
        raise Stuck

    def is_ignored(self, terminal: int) -> bool:
        """Whether the parser does not see a terminal."""
        return bool(self._ignored >> terminal & 1)

    def size(self, spot: Spot, terminal: int, *, may_part: bool) -> int:
        """The bytes up to the end of a terminal, maybe the end of the text, from where none has begun.

        With an ignored one before it if there must be and may be; `FAR` where that does not help.
        """
        if terminal != self._end:
            size = self.lexemes.bytes(spot, terminal)
        else:
            size = FAR if any(self._lapses[w] for w in spot[1]) else 0
        if size < FAR or not may_part:
            return size
        for between in self.between:
            first = self.lexemes.bytes(spot, between)
            if first < FAR:
                then = self.size((spot[0], self.lexemes.boundary(spot, between)), terminal, may_part=False)
                if then < FAR:
                    return first + then
        return FAR

    def _choose(self, parse: Parse, spot: Spot) -> int:
        """The terminal that a lexeme in progress is to end as. Raises `Stuck`."""
        here = self.costs.bytes(parse.stack)
        is_apart = spot[0] in self._apart
        found = []
        for terminal in bits(self._futures[spot[0]] & self._parses.accepted(parse).terminals):
            size = self.lexemes.bytes(spot, terminal)
            if size >= FAR:
                continue
            if self._ignored >> terminal & 1:
                found.append((1 if is_apart else 2, size + here, terminal))
                continue
            for after in self._parses.after(parse, terminal).parses:
                cost = self.costs.bytes(after.stack)
                if cost < FAR:
                    found.append((0 if cost < here else 2, size + cost, terminal))
        for _, _, terminal in sorted(found):
            after = self._parses.after(parse, terminal).parses[0]
            boundary = self.lexemes.boundary(spot, terminal)
            if (
                self._can_come(after, boundary)
                if self._ignored >> terminal & 1 and is_apart
                else self._may_begin(after, boundary)
            ):
                return terminal
        raise Stuck

    def _may_begin(self, parse: Parse, boundary: Watched) -> bool:
        try:
            self._next(parse, boundary)
        except Stuck:
            return False
        return True

    @property
    def remembered(self) -> int:
        """How much is remembered of threads and stacks."""
        return len(self._ends_as) + self.costs.remembered + self.lexemes.remembered

    def forget(self) -> None:
        """Forget what is remembered of threads and stacks."""
        self._ends_as = {}
        self.costs.forget()
        self.lexemes.forget()
