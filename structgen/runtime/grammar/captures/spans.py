"""The parser's stack with the span that each symbol has in the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....errors import FormatError
from ...core.machine import Captured
from ..parser.stack import Parser
from .attributes import CapturedSymbol

#: Reductions before one terminal, besides so many for each symbol on the stack; a sound grammar makes less.
_MOST_REDUCTIONS = 1_000_000


class CapturedList(NamedTuple):
    """What was captured, the last first."""

    last: Captured
    before: CapturedList | None


class SpanStack(NamedTuple):
    """A state of the parser on top of others, with the span of the symbol that led to it.

    Parameters
    ----------
    state, depth:
        The state; how many are below it.
    start, end:
        The bytes of the symbol, -1 where it has none.
    upto:
        Where the last symbol on the stack ends that has bytes.
    below:
        What it is on top of.
    """

    state: int
    depth: int = 0
    start: int = -1
    end: int = -1
    upto: int = 0
    below: SpanStack | None = None

    def pushed(self, state: int, start: int, end: int) -> SpanStack:
        """The same with a state on top."""
        return SpanStack(state, self.depth + 1, start, end, max(self.upto, end), self)


class SpanParser:
    """An LALR parser whose symbols have spans.

    Parameters
    ----------
    parser:
        Its moves.
    captures:
        What is captured.
    """

    def __init__(self, parser: Parser, captures: tuple[CapturedSymbol, ...]) -> None:
        self._parser = parser
        self._of: dict[int, list[CapturedSymbol]] = {}
        for capture in captures:
            self._of.setdefault(capture.symbol, []).append(capture)

    def before(
        self, values: SpanStack, terminal: int, captured: CapturedList | None
    ) -> tuple[SpanStack, CapturedList | None] | None:
        """What is on the stack when a terminal is shifted, and what was captured by then; None where it can't be."""
        most = _MOST_REDUCTIONS + 16 * values.depth
        while self._parser.shifted_to(values.state, terminal) is None:
            reduction = next(self._parser.reductions(values.state, terminal), None)
            if reduction is None:
                return None
            values, captured = self._reduced(values, *reduction, captured)
            most -= 1
            if not most:
                raise FormatError("the parser's tables contradict themselves")
        return values, captured

    def shifted(self, values: SpanStack, terminal: int, start: int, end: int) -> SpanStack:
        """The stack with a terminal on top, which can be shifted."""
        state = self._parser.shifted_to(values.state, terminal)
        assert state is not None
        return values.pushed(state, start, end)

    def _reduced(
        self, values: SpanStack, length: int, origin: int, captured: CapturedList | None
    ) -> tuple[SpanStack, CapturedList | None]:
        """The stack with a nonterminal in place of the uppermost symbols."""
        here: SpanStack | None = values
        start = end = -1
        for _ in range(length):
            if here is None:
                break
            start = here.start if here.start >= 0 else start
            end = max(end, here.end)
            here = here.below
        state = None if here is None else self._parser.goto(here.state, origin)
        if here is None or state is None:
            raise FormatError("the parser's tables contradict themselves")
        for capture in self._of.get(origin, ()):
            if capture.before:
                part = capture.of(max(0, here.upto - capture.before), max(end, here.upto))
            elif end >= 0:
                part = capture.of(start, end)
            else:  # what has no text is not captured
                continue
            captured = CapturedList(part, captured)
        return here.pushed(state, start, end), captured


def listed(captured: CapturedList | None) -> Iterator[Captured]:
    """What was captured, the first first."""
    found = []
    while captured is not None:
        found.append(captured.last)
        captured = captured.before
    return reversed(found)
