"""Whether a text can be completed, where that is a question of what the lexer can read.

The parser accepts a terminal when its stack says so, and the lexer can read one when the border before it says so
(`structgen.runtime.borders`). A real stack is gone through from the top down, each state with what the outcomes of
those above it left (`structgen.runtime.outcomes`), until a run succeeds or none is left. That is exact: there is no
bound on how far ahead a lexeme without a follower may lie.

Of a definition in the grammar only the first byte is looked at: where something is still watched behind that, it is
taken for one that does not matter.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from .borders import Borders, Watched
from .closure import bits
from .embedded import Embedded
from .grammar_tables import GrammarTables
from .outcomes import Outcomes
from .parser_stack import Parser, Stack
from .words import set_at


class Completion(NamedTuple):
    """Whether a text can be completed, and the lowest depth of the stack that was looked at."""

    is_possible: bool
    looked: int


class Completions:
    """Answers for one grammar whose endings are not all loose.

    Parameters
    ----------
    tables, parser, borders:
        The grammar.
    embedded:
        Definitions and special tokens within it.
    """

    def __init__(self, tables: GrammarTables, parser: Parser, borders: Borders, embedded: Embedded) -> None:
        endings = tables.endings
        self._tables = tables
        self._embedded = embedded
        self._border = endings.border
        self._given = endings.given
        #: The end of the text, which is the ending after the last.
        self.last = len(endings)
        self._borders = borders
        ignored = set_at(tables.ignored.reshape(1, -1), 0)
        self._ignored = sum(1 << e for e, terminal in enumerate(endings.terminal) if ignored >> terminal & 1)
        self._nexts: dict[tuple[int, Watched], int] = {}
        self._outcomes = Outcomes(parser, endings, tables.end, self._behind)
        self._parser = parser

    @cached_property
    def _begins(self) -> list[tuple[int, int]]:
        """The endings of definitions, with the classes of bytes that their texts begin with."""
        found = []
        for terminal, machine in self._embedded.definitions:
            classes = {int(self._tables.class_of[b]) for b in range(256) if machine.step(machine.start_threads, b)}
            found.append((self._given(terminal), sum(1 << c for c in classes)))
        return found

    @cached_property
    def _silent(self) -> int:
        """What can come where no byte does, as a set: the end of the text, special tokens."""
        terminals = {t for each in (self._embedded.tokens or {}).values() for t in each}
        return 1 << self.last | sum(1 << self._given(terminal) for terminal in terminals)

    def _behind(self, context: int, ending: int) -> int:
        return self.next(context, self._border[ending])

    def next(self, context: int, border: Watched) -> int:
        """The endings that can come next, ignored lexemes left out, as a set."""
        found = self._nexts.get((context, border))
        if found is None:
            found, seen = 0, {border}
            for each in (todo := [border]):  # grows as it goes
                there = self._at_once(context, each)
                found |= there & ~self._ignored
                for ending in bits(there & self._ignored):
                    after = self._border[ending]
                    if after not in seen:
                        seen.add(after)
                        todo.append(after)
            self._nexts[context, border] = found
        return found

    def _at_once(self, context: int, border: Watched) -> int:
        """The endings that can come first, ignored ones among them."""
        found, fate = self._borders.next(context, border), self._borders.fate(border)
        if fate.is_final:
            found |= self._silent
        goes_on = fate.ends | sum(1 << c for c, _ in fate.stays)
        for ending, classes in self._begins:
            if classes & goes_on:
                found |= 1 << ending
        return found

    def find(self, stack: Stack, context: int, border: Watched) -> Completion:
        """Whether some text completes the one that led to a stack, with a border behind the last lexeme.

        Raises `BudgetExceededError` where that takes too long to see.
        """
        outcomes, looked = self._outcomes, stack.depth
        here, depth = stack.below, stack.depth - 1  # what the states to look at lie on
        todo = self._on(stack.state, self.next(context, border))
        waiting: dict[int, dict[int, int]] = {}  # by depth: what is put on the state there, before which endings
        while True:
            seen = set(todo)
            for each in todo:  # grows as it goes
                outcome = outcomes.find(*each)
                if outcome.succeeds:
                    return Completion(True, looked)
                for (origin, popped), endings in outcome.found.items():
                    if popped:
                        there = waiting.setdefault(depth - popped, {})
                        there[origin] = there.get(origin, 0) | endings
                    elif here is not None:
                        looked = depth
                        more = [key for key in self._put(here.state, origin, endings) if key not in seen]
                        seen.update(more)
                        todo += more
            if not waiting:
                return Completion(False, looked)
            looked = max(waiting)
            here = here and here.under(depth - looked)
            if here is None:
                return Completion(False, 0)
            depth = looked
            below = waiting.pop(depth)
            todo = [key for origin, endings in below.items() for key in self._put(here.state, origin, endings)]

    def _put(self, state: int, origin: int, endings: int) -> list[tuple[int, int]]:
        target = self._parser.goto(state, origin)
        return self._on(target, endings) if target is not None else []

    def _on(self, state: int, endings: int) -> list[tuple[int, int]]:
        """A state with each ending before which it does anything."""
        return [(state, ending) for ending in bits(endings & self._outcomes.accepted(state))]
