"""`LexerThreads`: how threads of a lexer and a parser read bytes and special tokens.

A thread is how far the parser has come before the lexeme that is being read, the lexer's state within it, and what is
watched: earlier lexemes that the bytes since may still turn out to belong to, or whose look-ahead is still open. A
lexeme is handed to the parser when the first byte after it is read. Where it could also go on with that byte, both
threads are followed, and the one that took it for complete watches the other.

In place of a lexer state a thread may have a thread of a definition that stands in the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import or_
from typing import NamedTuple, TypeAlias

from ...system.memo import Memo
from ...system.properties import cached_property
from ..core.bitsets import set_at
from ..core.digraph import bits
from ..core.lazy_table import LazyTable
from .completability.completion_tables import CompletionTables
from .completability.completions import Completions
from .completability.obligations import Watched
from .embedded import Embedded, Inner
from .lexeme_futures import LexemeFutures
from .parser.parser_driver import Parse, ParserDriver
from .parser.stack import Accepted
from .tables import GrammarTables

#: Answers that are remembered.
_MOST_ANSWERS = 1 << 15

#: Where it is a question what can follow a lexeme, and brackets or blocks do not nest, so many more are looked for.
_FORESIGHT = 3

#: A lexer state, or the number of a definition and its threads.
At: TypeAlias = int | tuple[int, Inner]

#: The parser before the lexeme, where the thread is in it, the obligations.
Thread: TypeAlias = tuple[Parse, At, Watched]


class Readings(NamedTuple):
    """How a text can be read, for explanations.

    Parameters
    ----------
    between:
        Where the parser is if no further byte belongs to the last lexeme.
    within:
        Where it is before each lexeme that may go on, with the lexer's state; of definitions within the grammar there
        is none: -1.
    """

    between: list[Parse]
    within: list[tuple[Parse, int]]


class Opening(NamedTuple):
    """Whether something can follow; the lowest depth read; whether so at all levels with as many open brackets."""

    is_open: bool
    depth_read: int
    is_alike: bool


class LexerThreads:
    """Moves threads.

    Parameters
    ----------
    parses, tables, futures, embedded:
        What is followed.
    pause:
        Called within long work, with the bytes that it takes; may raise.
    known:
        What completes texts, if that was worked out.
    """

    def __init__(
        self,
        parses: ParserDriver,
        tables: GrammarTables,
        futures: LexemeFutures,
        embedded: Embedded,
        pause: Callable[[int], object],
        known: CompletionTables | None = None,
    ) -> None:
        self._pause = pause
        self._known = known
        self.parses = parses
        self.embedded = embedded
        self._tables = tables
        self.futures = futures
        self._class_of = tables.class_of.tobytes()
        self._table = tables.rows
        self._ends = tables.ends_of
        self._beats: list[int] = tables.beats.tolist()
        self._obligations = tables.obligations
        self._possible: Memo[tuple[Parse, int, Watched, int], tuple[bool, int]] = Memo(_MOST_ANSWERS)
        self._open: Memo[tuple[Parse, int], Accepted] = Memo(_MOST_ANSWERS)
        self._end = 1 << tables.end
        self.starts: list[int] = tables.starts.tolist()  # by context
        self.fresh = frozenset(self.starts)
        self._is_unconstrained = tables.endings.is_unconstrained
        self._given = self._end | embedded.terminals

    @cached_property
    def _lexed(self) -> int:
        """The terminals that have endings."""
        return sum(1 << terminal for terminal in self._tables.endings.by_terminal)

    @cached_property
    def _completions(self) -> Completions:
        return self.completions(self._pause)

    def completions(self, pause: Callable[[int], object]) -> Completions:
        """What completes texts, with nothing found yet; ``pause`` is called within long work."""
        return Completions(self._tables, self.parses.parser, self.futures.boundaries, self.embedded, pause, self._known)

    @property
    def start(self) -> Thread:
        """Before the first byte."""
        start = self.parses.start
        return start, self.starts[start.context], ()

    def trim(self) -> None:
        """Let go of what is remembered of parses, if it is much."""
        if self.parses.is_full():
            self.parses.forget()

    @cached_property
    def _within(self) -> LazyTable[list[int]]:
        """By lexer state and class: the state after it, -1 for none; -2 where a lexeme can end before it."""

        def of(state: int) -> list[int]:
            goes_on = self._tables.goes_on[state].tolist()
            return [-2 if ends else target for target, ends in zip(self._table[state], goes_on, strict=True)]

        return LazyTable(of)

    def read(self, threads: tuple[Thread, ...], data: bytes) -> tuple[Thread, ...]:
        """All threads over bytes."""
        within, class_of, plain = self._within, self._class_of, not self.embedded.definitions
        at, end = 0, len(data)
        while at < end and threads:
            if plain and len(threads) == 1 and not threads[0][2]:
                # Most bytes belong to the lexeme before them, and there is no question about it.
                parse, lexer, watched = threads[0]
                assert not isinstance(lexer, tuple)
                begin = at
                while at < end:
                    following = within[lexer][class_of[data[at]]]
                    if following < 0:
                        break
                    lexer = following
                    at += 1
                if begin < at:
                    threads = ((parse, lexer, watched),)
                if at == end:
                    break
                if following == -1:
                    return ()
            threads = self.step(threads, data[at])
            at += 1
        return threads

    def step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """All threads over one byte."""
        found: dict[Thread, None] = {}
        if self.embedded.definitions:
            for thread in self.closed(threads):
                self._read(thread, byte, found)
        else:
            self._lex(threads, byte, found)
        self.parses.steps.spend(len(found))
        return tuple(self.parses.few(found)) if len(found) > 1 else tuple(found)

    def _lex(self, threads: tuple[Thread, ...], byte: int, found: dict[Thread, None]) -> None:
        """Step where all threads are of the lexer."""
        c, table, beats, obligations = self._class_of[byte], self._table, self._beats, self._obligations
        for parse, lexer, watched in threads:
            left = obligations.after(watched, c)
            if left is None:
                continue  # an earlier lexeme was not what this thread took it to be
            assert not isinstance(lexer, tuple)
            longer = table[lexer][c]
            if longer >= 0:
                found[parse, longer, left] = None
            for terminal, watch in self._ends[lexer]:
                watch = table[watch][c] if watch >= 0 else -1
                if watch >= 0 and beats[watch]:
                    continue
                for after in self.parses.after(parse, terminal).parses:
                    begun = table[self.starts[after.context]][c]
                    if begun >= 0:
                        found[after, begun, obligations.with_state(watch, left)] = None

    def _read(self, thread: Thread, byte: int, found: dict[Thread, None]) -> None:
        """Read a byte in the lexeme, or definition, that a thread is in."""
        parse, at, watched = thread
        c, table = self._class_of[byte], self._table
        left = self._obligations.after(watched, c)
        if left is None:
            return
        if isinstance(at, tuple):
            for inner in self.embedded.step(*at, byte):
                found[parse, (at[0], inner), left] = None
        elif table[at][c] >= 0:
            found[parse, table[at][c], left] = None

    def keeps(self, watched: Watched, text: bytes) -> bool:
        """Whether earlier lexemes stay what a thread took them to be while a text is read."""
        left: Watched | None = watched
        for byte in text if watched else b"":
            left = None if left is None else self._obligations.after(left, self._class_of[byte])
        return left is not None

    def within(self, thread: Thread, byte: int) -> Thread | None:
        """The thread after a byte, if nothing else can be read and that can be completed for sure; else None.

        It is told without a look at the parser's stack.
        """
        parse, at, watched = thread
        if watched or isinstance(at, tuple) or self.embedded.definitions or parse.accepted is None:
            return None
        c, table = self._class_of[byte], self._table
        target = table[at][c]
        longer = (table[watch][c] if watch >= 0 else -1 for _, watch in self._ends[at])
        if target < 0 or not all(state >= 0 and self._beats[state] for state in longer):
            return None
        sure, _ = self.sure_endings(parse, parse.accepted)
        return (parse, target, ()) if sure & self.futures(target, ()) else None

    def closed(self, threads: tuple[Thread, ...]) -> Iterator[Thread]:
        """The threads, and all that they come to without reading: complete lexemes, definitions that begin or end."""
        todo = list(threads)
        seen = set(todo)
        for thread in todo:  # grows as it goes
            yield thread
            for more in self._ended(thread):
                if more not in seen:
                    seen.add(more)
                    todo.append(more)

    def _ended(self, thread: Thread) -> Iterator[Thread]:
        """What a thread is next, where its lexeme or definition is complete; what begins where none has begun."""
        parse, at, watched = thread
        if isinstance(at, tuple):
            terminal, machine = self.embedded.definitions[at[0]]
            if machine.may_end(at[1]):
                for after in self.parses.after(parse, terminal).parses:
                    yield after, self.starts[after.context], watched
            return
        if at in self.fresh:
            for begun in self.embedded.begin(self.given(parse).terminals):
                yield parse, begun, watched
        for terminal, watch in self._ends[at]:
            for after in self.parses.after(parse, terminal).parses:
                yield after, self.starts[after.context], self._obligations.with_state(watch, watched)

    def complete(self, threads: tuple[Thread, ...]) -> Iterator[Parse]:
        """Where the parser is if no further byte belongs to what the threads are in."""
        for parse, at, watched in self.closed(threads):
            if not isinstance(at, tuple) and at in self.fresh and not self._obligations.lapses(watched):
                yield parse

    def readings(self, threads: tuple[Thread, ...]) -> Readings:
        """How the text that led to some threads can be read; each way once."""
        between: dict[Parse, bool] = {}  # whether anything can follow
        within: dict[tuple[Parse, int], None] = {}
        for thread in self.closed(threads):
            parse, at, watched = thread
            if isinstance(at, tuple):
                within[parse, -1] = None
            elif at in self.fresh:
                between[parse] = between.get(parse, False) or not watched or self._goes_on(thread)
            else:
                within[parse, at] = None
        # A keyword may be read as a name up to its end, behind which nothing then comes.
        return Readings([parse for parse, goes_on in between.items() if goes_on] or list(between), list(within))

    def _goes_on(self, thread: Thread) -> bool:
        """Whether anything can follow a lexeme that is over, the end of the text included."""
        parse, _, watched = thread
        if not self._obligations.lapses(watched) and self.given(parse).terminals:
            return True
        return self.is_open(thread)[0]

    def may_end(self, threads: tuple[Thread, ...]) -> bool:
        """Whether the text may end here."""
        likely = tuple(filter(self._may_be_last, threads))
        return any(map(self.parses.may_end, self.complete(likely)))

    def _may_be_last(self, thread: Thread) -> bool:
        """Whether what a thread is in may be the last of a text; in doubt, True."""
        parse, at, _ = thread
        if isinstance(at, tuple) or at in self.fresh:
            return True
        return any(self.parses.may_be_last(parse, terminal) for terminal, _ in self._ends[at])

    def take(self, threads: tuple[Thread, ...], token_id: int) -> tuple[Thread, ...]:
        """All threads over a token by its id, if they can go on from there, or end."""
        terminals = self.embedded.terminals_of(token_id)
        return self._over(threads, terminals) if terminals else ()

    def at_token_end(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """The threads at the end of a token, which lexemes with a budget count.

        Of those that differ in the tokens that are left alone, the one with most has all possibilities of the others.
        """
        if not self.embedded.budgeted:
            return threads
        found: dict[Thread, None] = {}
        most: dict[tuple[Parse, int, int, Inner, Watched], int] = {}
        for parse, at, watched in threads:
            if isinstance(at, tuple) and at[0] in self.embedded.budgeted:
                inner = self.embedded.definitions[at[0]][1].after_token(at[1])
                for state, left, _ in inner[:1]:
                    key = parse, at[0], state, inner[1:], watched
                    most[key] = max(left, most.get(key, left))
            else:
                found[parse, at, watched] = None
        for (parse, number, state, rest, watched), left in most.items():
            found[parse, (number, ((state, left, None), *rest)), watched] = None
        return tuple(found)

    def counts_tokens(self, threads: tuple[Thread, ...]) -> bool:
        """Whether some thread is in a lexeme that has tokens of a budget left, or one may begin."""
        budgeted = self.embedded.budgeted
        within = (at for _, at, _ in self.closed(threads) if isinstance(at, tuple)) if budgeted else ()
        return any(number in budgeted and inner[0][1] for number, inner in within)

    def _over(self, threads: tuple[Thread, ...], terminals: int) -> tuple[Thread, ...]:
        """All threads over a token that is some terminals."""
        found: dict[Thread, None] = {}
        for parse in self.complete(threads):
            for terminal in bits(terminals):
                for after in self.parses.after(parse, terminal).parses:
                    found[after, self.starts[after.context], ()] = None
        return tuple(filter(self.is_alive, found))

    def tokens(self, threads: tuple[Thread, ...]) -> tuple[int, ...]:
        """The groups of tokens that may come next, by number."""
        if not self.embedded.tokens:
            return ()
        accepted = 0
        for parse in self.complete(threads):
            accepted |= self.given(parse).terminals
        groups = enumerate(self.embedded.groups)
        return tuple(number for number, each in groups if each & accepted and self._over(threads, each))

    def ahead(self, thread: Thread) -> int:
        """The terminals that the next byte, or token, may belong to in what a thread is in, as a set.

        Ignored ones are among them, and those that the parser does not accept.
        """
        _, at, watched = thread
        if isinstance(at, tuple):
            terminal, machine = self.embedded.definitions[at[0]]
            goes_on = any(self._read_on(thread, byte) for byte in machine.candidates(at[1]))
            return 1 << terminal if goes_on else 0
        given = self.embedded.token_terminals if at in self.fresh else 0
        if not watched:
            return given | self._ahead[at]
        after, futures = self._obligations.after, self._tables.futures
        states = (target for c, target in enumerate(self._table[at]) if target >= 0 and after(watched, c) is not None)
        return reduce(or_, (futures[target] for target in states), given)

    def _read_on(self, thread: Thread, byte: int) -> bool:
        found: dict[Thread, None] = {}
        self._read(thread, byte, found)
        return bool(found)

    @cached_property
    def _ahead(self) -> LazyTable[int]:
        """By lexer state: the terminals of which more than what was read may be there."""
        futures = self._tables.futures
        return LazyTable(lambda at: reduce(or_, (futures[each] for each in {*self._table[at]} - {-1}), 0))

    def is_alive(self, thread: Thread) -> bool:
        """Whether the lexeme can become what the parser accepts, or something else can come where none has begun."""
        parse, at, _ = thread
        if isinstance(at, tuple):
            return True
        if self.is_open(thread)[0]:
            return True
        return at in self.fresh and bool(self.given(parse).terminals)

    def is_open(self, thread: Thread) -> Opening:
        """Whether the lexeme can become what the parser accepts."""
        parse, at, watched = thread
        assert not isinstance(at, tuple)
        return self.is_open_to(parse, self.futures(at, watched))

    def given(self, parse: Parse) -> Accepted:
        """The terminals that may come next and are not lexed: definitions, special tokens, the end of the text."""
        accepted, depth_read = self.parses.accepted(parse)
        found = accepted & self._given
        if not self._is_unconstrained and found:
            ending = {t: self._tables.endings.given(t) for t in bits(found & ~self._end)}
            is_open, there = self.open_to(parse, sum(1 << number for number in ending.values()))
            found &= self._end | sum(1 << t for t, number in ending.items() if is_open >> number & 1)
            depth_read = min(depth_read, there)
        return Accepted(found, depth_read)

    def open_to(self, parse: Parse, wanted: int) -> Accepted:
        """What of ``wanted`` a lexeme may become: terminals in an unconstrained grammar, endings in others.

        A text up to its end has to follow. Where brackets or blocks do not nest, `_FORESIGHT` lexemes, or the end.
        """
        if self._is_unconstrained:
            accepted, depth_read = self.parses.accepted(parse)
            return Accepted(accepted & wanted, depth_read)
        known = self._open.get((parse, wanted))
        if known is None:
            known = self._open[parse, wanted] = self._find_open_to(parse, wanted)
        return known

    def _find_open_to(self, parse: Parse, wanted: int) -> Accepted:
        accepted = self.parses.accepted(parse)
        found, depth_read = self.sure_endings(parse, accepted)
        found, asked = found & wanted, wanted if self._is_narrow(parse) else wanted & self._tight
        if self._tables.layout is None:
            asked &= self._endings_of[accepted.terminals & self._lexed]
            at_once = asked & ~self._of_ignored
            if at_once:
                terminals = self._terminals_of[at_once]
                sure, there = self._completions.open_to(parse.stack, terminals, at_once)
                found, depth_read, asked = found | sure, min(depth_read, there), asked & ~at_once
        for ending in bits(asked):
            is_open, there = self._is_possible(parse, ending, _FORESIGHT)
            depth_read = min(depth_read, there)
            if is_open:
                found |= 1 << ending
        return Accepted(found, depth_read)

    def is_open_to(self, parse: Parse, wanted: int, lexemes: int = _FORESIGHT) -> Opening:
        """Whether `open_to` is not empty, looking ``lexemes`` lexemes ahead."""
        sure, depth_read = self.sure_endings(parse, self.parses.accepted_in_line(parse))
        if sure & wanted:
            return Opening(True, depth_read, True)
        if not self._is_unconstrained:
            return self._is_any_possible(parse, wanted, lexemes)
        accepted, depth_read = self.parses.accepted(parse)
        return Opening(bool(accepted & wanted), depth_read, False)

    def is_surely_followed(self, parse: Parse, wanted: int) -> Opening:
        """As `is_open_to`, for a stack that accepts none of the unconstrained endings among them."""
        return self._is_any_possible(parse, wanted & self._tight, _FORESIGHT)

    def _is_any_possible(self, parse: Parse, wanted: int, lexemes: int) -> Opening:
        """Whether a lexeme can have one of some endings and the text behind it be completed.

        Line ends read more of the stack than other lexemes, most of all those that close blocks or open one.
        """
        depth_read, column = parse.stack.depth, self.parses.in_line(parse)
        lines, near = (0, 0) if column is None else (wanted & self._lines, wanted & self._of_column[column])
        for endings in wanted & ~lines, near, lines & ~near:
            for ending in bits(endings):
                is_possible, there = self._is_possible(parse, ending, lexemes)
                depth_read = min(depth_read, there)
                if is_possible:
                    is_alike = not lines >> ending & 1 and self._completions.is_exact and not self._is_narrow(parse)
                    return Opening(True, depth_read, is_alike)
        return Opening(False, depth_read, False)

    @cached_property
    def _of_column(self) -> LazyTable[int]:
        """By the terminal of a column: its endings, as a set."""
        by_terminal = self._tables.endings.by_terminal

        def of(terminal: int) -> int:
            unconstrained, others = by_terminal.get(terminal, (0, ()))
            return unconstrained | sum(1 << ending for ending in others)

        return LazyTable(of)

    @cached_property
    def _of_ignored(self) -> int:
        """The endings of what the parser does not see."""
        ignored = bits(set_at(self._tables.ignored.reshape(1, -1), 0))
        return self._endings_of[sum(1 << terminal for terminal in ignored) & self._lexed]

    @cached_property
    def _endings_of(self) -> LazyTable[int]:
        """By set of terminals: their endings."""
        by_terminal = self._tables.endings.by_terminal

        def of(terminals: int) -> int:
            tight = (ending for terminal in bits(terminals) for ending in by_terminal[terminal][1])
            return self._unconstrained_of[terminals] | sum(1 << ending for ending in tight)

        return LazyTable(of)

    @cached_property
    def _terminals_of(self) -> LazyTable[int]:
        """By set of endings: their terminals."""
        terminal_of = self._tables.endings.terminal
        return LazyTable(lambda endings: sum(1 << each for each in {terminal_of[ending] for ending in bits(endings)}))

    @cached_property
    def _lines(self) -> int:
        """The endings that have columns."""
        end = self._tables.end
        return sum(1 << ending for ending, terminal in enumerate(self._tables.endings.terminal) if terminal > end)

    @cached_property
    def _tight(self) -> int:
        """The endings that are not unconstrained."""
        unconstrained = self._tables.endings.unconstrained
        return sum(1 << ending for ending, is_free in enumerate(unconstrained) if not is_free)

    def _is_narrow(self, parse: Parse) -> bool:
        layout = self._tables.layout
        return layout is not None and layout.is_narrow(parse.level)

    def sure_endings(self, parse: Parse, accepted: Accepted) -> Accepted:
        """The endings that are allowed whatever follows: those that the stack accepts and that are unconstrained."""
        if self._is_unconstrained:
            return accepted
        if self._is_narrow(parse):
            return Accepted(0, accepted.depth_read)
        return Accepted(self._unconstrained_of[accepted.terminals & self._lexed], accepted.depth_read)

    @cached_property
    def _unconstrained_of(self) -> LazyTable[int]:
        """By set of terminals: their unconstrained endings."""
        by_terminal = self._tables.endings.by_terminal
        return LazyTable(lambda terminals: sum(by_terminal[terminal][0] for terminal in bits(terminals)))

    def _is_possible(self, parse: Parse, ending: int, lexemes: int) -> tuple[bool, int]:
        """Whether a lexeme can have this ending and the text behind it be completed; and the lowest depth read."""
        endings = self._tables.endings
        terminal, boundary = endings.terminal[ending], endings.boundary[ending]
        if endings.unconstrained[ending] and not self._is_narrow(parse):
            return self.parses.accepts(parse, terminal)
        key = parse, self.parses.like(parse, terminal), boundary, lexemes
        found = self._possible.get(key)
        if found is None:
            can_follow = self._can_complete if self._completions.is_exact else self._can_follow
            found = self._possible[key] = can_follow(*key)
        return found

    def _can_complete(self, parse: Parse, terminal: int, boundary: Watched, _: int) -> tuple[bool, int]:
        """Whether some text completes the one up to a terminal and its boundary; the lowest depth looked at."""
        after, depth_read = self.parses.after(parse, terminal)
        for each in after:
            is_possible, there = self._completions.find(each.stack, each.context, boundary, each.level)
            depth_read = min(depth_read, there)
            if is_possible:
                return True, depth_read
        return False, depth_read

    def _can_follow(self, parse: Parse, terminal: int, boundary: Watched, lexemes: int) -> tuple[bool, int]:
        """Whether ``lexemes`` lexemes can follow a terminal and its boundary; and the lowest depth read."""
        after, depth_read = self.parses.after(parse, terminal)
        reading = self._completions.reading
        self._pause(0)
        for each in after:
            following = reading.next(each.context, boundary)
            if following >> reading.last & 1:
                final, there = self.parses.accepted(each)
                depth_read = min(depth_read, there)
                if final & self._end:
                    return True, depth_read
                following ^= 1 << reading.last
            if following and not lexemes:
                return True, depth_read
            if following:
                is_open, there, _ = self.is_open_to(each, following, lexemes - 1)
                depth_read = min(depth_read, there)
                if is_open:
                    return True, depth_read
        return False, depth_read
