"""`Parse`: how far the parser has come, with the context in which the lexer reads on and the level of indentation.

The lexer's terminals are handed to a `ParserDriver`. The parser itself sees neither what is ignored nor columns: an
ignored terminal leaves everything as it is, and the end of a line, which the lexer tells apart by column, becomes the
terminals that it stands for at the level of indentation (`structgen.runtime.grammar.indentation`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from ....budget import StepMeter
from ....errors import FormatError
from ...core.bitsets import set_at
from ..indentation import MOST_ROOM, IndentationTerminals, Level
from ..tables import GrammarTables
from .gss import GraphParser
from .stack import Accepted, Parser, Stack

#: Stacks that are remembered; past that the memory starts afresh.
_MOST_STACKS = 1 << 17

_A = TypeVar("_A")
_B = TypeVar("_B")


class Parse:
    """A stack, a context and a level; equal ones are the same object.

    It remembers what may come next and what each terminal leads to; a `ParserDriver` fills that in.
    """

    __slots__ = ("accepted", "after", "context", "level", "stack")

    def __init__(self, stack: Stack, context: int, level: Level | None) -> None:
        self.stack, self.context, self.level = stack, context, level
        self.accepted: Accepted | None = None
        self.after: dict[int, Parses] = {}  # by terminal

    def __repr__(self) -> str:
        return " ".join(map(str, self.stack.states()))


class Parses(NamedTuple):
    """What a terminal leads to, and the lowest depth that was looked at.

    None where it can't come, several where conflicts were kept.
    """

    parses: tuple[Parse, ...]
    depth_read: int


class ParserDriver:
    """Drives the parser by the lexer's terminals.

    It leaves out what is ignored and lays lines out, as Lark does behind its lexer (its ``postlex``); it tells which
    terminals may come next, and in which context the lexer reads on.

    Parameters
    ----------
    tables:
        The parser's actions.
    parser:
        What makes moves, where that is not one of its own.
    """

    def __init__(self, tables: GrammarTables, parser: Parser | None = None) -> None:
        #: Counts the work of a step.
        self.steps = StepMeter()
        self.parser = parser or (Parser(tables) if tables.is_deterministic else GraphParser(tables, self.steps))
        self._layout = tables.layout
        self._ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._end = tables.end
        level = Level() if tables.layout else None
        #: Before the first terminal.
        self.start = self._parse(self.parser.start, int(tables.context[0]), level)

    def _parse(self, stack: Stack, context: int, level: Level | None) -> Parse:
        key = context, level
        found: Parse | None = stack.parses.get(key)
        if found is None:
            found = stack.remember(key, Parse(stack, context, level))
        return found

    def on(self, parse: Parse, popped: int, states: list[int], context: int, level: Level | None) -> Parse:
        """The parse that has other states in place of the uppermost ``popped`` of a stack.

        Raises `FormatError` where there are not so many, which tables that contradict themselves bring about.
        """
        stack: Stack | None = parse.stack
        for _ in range(popped):
            stack = stack and stack.below
        if stack is None:
            raise FormatError("the parser's tables contradict themselves")
        for state in states:
            stack = self.parser.push(stack, state)
        return self._parse(stack, context, level)

    def is_full(self) -> bool:
        """Whether too much is remembered of stacks."""
        return self.parser.stacks > _MOST_STACKS

    def forget(self) -> None:
        """Forget what is remembered of stacks. Whoever holds a parse may go on with it."""
        self.parser.forget()
        self.start = self._parse(self.parser.start, self.start.context, self.start.level)

    def accepted(self, parse: Parse) -> Accepted:
        """The terminals of the lexer that may come next; the end of the text is one of them."""
        found = parse.accepted
        if found is None:
            found = self.accepted_in_line(parse)
            if self._layout is not None and parse.level is not None:
                found = self._indented(parse, found, self._layout, parse.level)
            parse.accepted = found
        return found

    def accepted_in_line(self, parse: Parse) -> Accepted:
        """As `accepted`, without line ends that close blocks or open one, and without the end of a text of lines."""
        terminals, depth_read = self.parser.accepted(parse.stack)
        layout, level = self._layout, parse.level
        if layout is not None and level is not None:
            terminals &= ~(1 << self._end | 1 << layout.newline)
            if level.brackets:  # all line ends are left out, whatever the column, and one without a line end in it
                first = self._end + 1
                terminals |= 1 << layout.newline | (1 << first + layout.columns + 2) - (1 << first)
            else:
                terminals &= ~sum(1 << t for t in layout.closing)
        return Accepted(terminals | self._ignored, depth_read)

    def accepts(self, parse: Parse, terminal: int) -> tuple[bool, int]:
        """Whether a terminal may come next, and the lowest depth that was looked at for that."""
        if terminal > self._end:
            parses, depth_read = self.after(parse, terminal)
            return bool(parses), depth_read
        accepted, depth_read = self.accepted(parse) if terminal == self._end else self.accepted_in_line(parse)
        return bool(accepted >> terminal & 1), depth_read

    def in_line(self, parse: Parse) -> int | None:
        """Where line ends matter: the terminal of one with the column of this line; None elsewhere."""
        level = parse.level
        return None if level is None or level.brackets else self._end + 1 + level.columns[-1]

    def may_end(self, parse: Parse) -> bool:
        """Whether the end of the text may come next."""
        if self._layout is None:
            return self.parser.accepts(parse.stack, self._end)
        return bool(self.accepted(parse).terminals >> self._end & 1)

    def may_be_last(self, parse: Parse, terminal: int) -> bool:
        """Whether the text may be complete after a terminal; in doubt, True."""
        if self._layout is not None or self._ignored >> terminal & 1:
            return True
        return self.parser.may_be_last(parse.stack, terminal)

    def _indented(self, parse: Parse, accepted: Accepted, layout: IndentationTerminals, level: Level) -> Accepted:
        """With a terminal for each column that a line may begin at, and the end of the text."""
        terminals, depth_read = accepted
        first = self._end + 1
        if not level.brackets:
            wider = level.columns[-1] + 1
            for column in (*level.columns, wider):
                after = self.after(parse, first + column)
                depth_read = min(depth_read, after.depth_read)
                if after.parses:
                    terminals |= 1 << first + column
            if wider <= layout.columns and terminals >> first + wider & 1:
                terminals |= (1 << first + layout.columns + 1) - (1 << first + wider)
        ended, there = self._sequence(parse, (layout.dedent,) * (len(level.columns) - 1))
        depth_read = min(depth_read, there)
        for stack, _ in ended:
            final = self.parser.accepted(stack)
            terminals |= final.terminals & 1 << self._end
            depth_read = min(depth_read, final.depth_read)
        return Accepted(terminals, depth_read)

    def like(self, parse: Parse, terminal: int) -> int:
        """A terminal after which all is as after this one, but for how wide lines are.

        One column stands for those further right, but for the widest: there may be no room for further indents.
        """
        level, first = parse.level, self._end + 1
        if terminal < first or self._layout is None or level is None:
            return terminal
        if level.brackets:
            return first
        wider = first + level.columns[-1] + 1
        return wider if wider < terminal <= first + self._layout.columns - MOST_ROOM else terminal

    def after(self, parse: Parse, terminal: int) -> Parses:
        """What a terminal of the lexer leads to."""
        known = parse.after.get(terminal)
        if known is None:
            known = parse.after[terminal] = self._find(parse, terminal)
        return known

    def _find(self, parse: Parse, terminal: int) -> Parses:
        nothing = Parses((), parse.stack.depth)
        if self._ignored >> terminal & 1:
            return Parses((parse,), parse.stack.depth)
        sequence: tuple[int, ...] = (terminal,)
        level = parse.level
        if self._layout is not None and level is not None:
            if terminal > self._end:
                moved = self._layout.moves(level, terminal - self._end - 1)
                if moved is None:
                    return nothing
                sequence, level = moved
                if not sequence:
                    return Parses((parse,), parse.stack.depth)
            else:
                if terminal == self._layout.newline:  # one without a line end in it
                    return Parses((parse,), parse.stack.depth) if level.brackets else nothing
                level = self._layout.after(level, terminal)
                if level is None:
                    return nothing
        stacks, depth_read = self._sequence(parse, sequence)
        return Parses(tuple(self._parse(stack, context, level) for stack, context in stacks), depth_read)

    def few(self, threads: Iterable[tuple[Parse, _A, _B]]) -> Iterable[tuple[Parse, _A, _B]]:
        """Threads without those that differ from another one by their stack only, and can do no more."""
        if not isinstance(self.parser, GraphParser):
            return threads
        keyed = ((parse.stack, (parse.context, parse.level, a, b)) for parse, a, b in threads)
        return [
            (self._parse(stack, context, level), a, b) for stack, (context, level, a, b) in self.parser.few(keyed)[0]
        ]

    def together(
        self, threads: Iterable[tuple[Parse, _A, _B]], *, near: bool = False
    ) -> Iterable[tuple[Parse, _A, _B]]:
        """Threads, with those merged that differ in nothing but what lies below the state on top of their stacks.

        See `structgen.runtime.grammar.parser.gss.GraphParser.together`, also for ``near``.
        """
        if not isinstance(self.parser, GraphParser):
            return threads
        keyed = [(parse.stack, (parse.context, parse.level, a, b)) for parse, a, b in threads]
        return [
            (self._parse(stack, context, level), a, b)
            for stack, (context, level, a, b) in self.parser.together(keyed, near=near)
        ]

    def _sequence(self, parse: Parse, terminals: tuple[int, ...]) -> tuple[tuple[tuple[Stack, int], ...], int]:
        """The stacks after several terminals of the parser."""
        stacks: tuple[tuple[Stack, int], ...] = ((parse.stack, parse.context),)
        depth_read = parse.stack.depth
        for terminal in terminals:
            found: dict[tuple[Stack, int], None] = {}
            for stack, _ in stacks:
                after = self.parser.after(stack, terminal)
                depth_read = min(depth_read, after.depth_read)
                found.update(dict.fromkeys(after.stacks))
            stacks = tuple(found)
        return stacks, depth_read
