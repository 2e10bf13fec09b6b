"""A text parsed once more, for what it captures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ....errors import FormatError
from ...core.bitsets import set_at
from ...core.digraph import bits
from ...core.machine import Captured
from ..embedded import Embedded
from ..lexer_threads import LexerThreads, Thread
from ..parser.parser_driver import Parse, ParserDriver, Parses
from ..parser.stack import Parser
from ..tables import GrammarTables
from .spans import CapturedList, SpanParser, SpanStack, listed


class RecordedParse(Parse):
    """A parse with the spans of its symbols, where its text ends, and what was captured."""

    __slots__ = ("captured", "end", "values")

    def __init__(self, parse: Parse, values: SpanStack, end: int, captured: CapturedList | None) -> None:
        super().__init__(parse.stack, parse.context, parse.level)
        self.values, self.end, self.captured = values, end, captured


class RecordingDriver(ParserDriver):
    """A `ParserDriver` whose parses are recorded.

    Parameters
    ----------
    tables, parser, embedded:
        Moves over stacks, and what is not lexed.
    """

    def __init__(self, tables: GrammarTables, parser: Parser, embedded: Embedded) -> None:
        super().__init__(tables, parser)
        self.spans = SpanParser(parser, tables.attributes.captures)
        self._tokens = embedded.token_terminals
        #: Where the lexeme ends that is handed over next, and how many bytes a token has that is one by its id.
        self.at = self.width = 0
        self.start = RecordedParse(self.start, SpanStack(0), 0, None)

    def after(self, parse: Parse, terminal: int) -> Parses:
        """What a terminal leads to, if its text ends where the text that was read does."""
        assert isinstance(parse, RecordedParse)
        found, depth_read = self._find(parse, terminal)
        if self._ignored >> terminal & 1:
            return Parses((RecordedParse(parse, parse.values, self.at, parse.captured),), depth_read)
        before = self.spans.before(parse.values, terminal, parse.captured) if found else None
        if before is None:
            return Parses((), depth_read)
        values, captured = before
        end = self.at + (self.width if self._tokens >> terminal & 1 else 0)
        values = self.spans.shifted(values, terminal, parse.end, end)
        return Parses(tuple(RecordedParse(each, values, end, captured) for each in found), depth_read)

    def plain(self, parse: Parse) -> Parse:
        """The same, as other parses are."""
        return self._parse(parse.stack, parse.context, parse.level)


class Recording:
    """The threads of a text, each with what it captured.

    Parameters
    ----------
    driver, reader:
        Parses, and what reads bytes with these.
    is_alive:
        Whether a thread can go on, told by its plain parse.
    """

    def __init__(
        self, driver: RecordingDriver, reader: LexerThreads, tables: GrammarTables, is_alive: Callable[[Thread], bool]
    ) -> None:
        self._driver, self._reader, self._tables, self._is_alive = driver, reader, tables, is_alive
        self._threads: tuple[Thread, ...] = (reader.start,)

    def read(self, tokens: Iterable[tuple[int, bytes]]) -> None:
        """Read tokens by their bytes, and by their ids. Raises `FormatError` where that is no beginning of a text."""
        for token, data in tokens:
            self._driver.width = len(data)
            taken = self._reader.take(self._threads, token) if token >= 0 else ()
            read = self._threads if data else ()
            for byte in data:
                read = self._reader.step(read, byte)
                self._driver.at += 1
            if not data and token < 0:
                continue
            if token >= 0:
                read = self._reader.at_token_end(read)
            alive: dict[object, Thread] = {}
            for parse, at, watched in (*read, *taken):
                plain = self._driver.plain(parse), at, watched
                if plain not in alive and self._is_alive(plain):
                    alive[plain] = parse, at, watched
            self._threads = tuple(alive.values())
        if not self._threads:
            raise FormatError("a text that was accepted is refused when it is read once more")

    def captured(self) -> tuple[Captured, ...]:
        """What is captured of the text if it is complete; else what is, however it goes on."""
        for parse in self._reader.complete(self._threads):
            assert isinstance(parse, RecordedParse)
            if self._driver.may_end(parse):
                found = self._driver.spans.before(parse.values, self._tables.end, parse.captured)
                if found is not None:
                    return tuple(listed(found[1]))
        ways = [list(listed(captured)) for captured in self._possible()]
        certain = set[Captured].intersection(*map(set, ways)) if ways else set()
        return tuple(each for each in (ways[0] if ways else ()) if each in certain)

    def _possible(self) -> Iterator[CapturedList | None]:
        """What is captured when the next terminal comes, for each that may."""
        ignored = set_at(self._tables.ignored.reshape(1, -1), 0)
        for thread in self._reader.closed(self._threads):
            parse, at, watched = thread
            assert isinstance(parse, RecordedParse)
            if not self._is_alive((self._driver.plain(parse), at, watched)):
                continue
            ahead = self._reader.ahead(thread) | (1 << self._tables.end if at in self._reader.fresh else 0)
            for terminal in bits(self._driver.accepted(parse).terminals & (-1 if ahead & ignored else ahead)):
                found = self._driver.spans.before(parse.values, terminal, parse.captured)
                if found is not None:
                    yield found[1]
