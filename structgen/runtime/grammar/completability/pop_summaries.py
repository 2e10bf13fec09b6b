"""What a parser's runs come to until they take away the state that is on top, whatever lies below.

Whether some sequence of terminals suits both the parser and the lexer is whether an automaton with a stack comes from
here to the end, and that can be decided, for what a run does above a state does not depend on the stack below it
(Bouajjani, Esparza & Maler 1997). For a state on top, and the ending that is read next, there are *summaries*: the
nonterminals that a reduction which takes the state away may be to, how many states below are popped for it besides,
and which ending was read by then to decide it. They are the least solution of ::

    summaries(s, e) has  (A, k - 1, e)   if s reduces k states to A before e; for k = 0, A is put on s
                        what is left of the summaries of (t, f)
                                        if s shifts e to t, and the lexer can read f behind e in t's context

    of a summary (A, j, f) above s is left:   (A, j - 1, f)   for j > 0
                                               A is put on s   for j = 0

    A put on s before f:                what is left of the summaries of (goto(s, A), f)

and are found as they are asked for. A run that shifts the end of the text, or an unconstrained ending, has succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from ....system.locks import Lock, Rank
from ...core.digraph import bits
from ...core.lazy_table import LazyTable

#: Pop summaries that are looked at between two pauses.
_STEPS = 1 << 11

#: Bytes of a summary, or of a state that another one is put on; past so many all are forgotten, once none is looked
#: for.
_BYTES, _MOST_BYTES = 200, 1 << 27

#: A nonterminal, and how many more states are popped; for each the endings that may be next then, as a set.
_Found: TypeAlias = dict[tuple[int, int], int]

#: A state on top of the stack, and the ending that is read next.
_Key: TypeAlias = tuple[int, int]


class Moves(Protocol):
    """A parser and a lexer side by side: what they do with the endings of lexemes.

    Attributes
    ----------
    terminal:
        By ending.
    succeeds:
        By ending: whether a text can be completed wherever it is shifted.
    """

    terminal: list[int]
    succeeds: list[bool]

    def mentioned(self, state: int) -> int:
        """The terminals before which a state does anything, as a set."""

    def shifted_to(self, state: int, terminal: int) -> int | None:
        """The state that a terminal is shifted to, if it is."""

    def reductions(self, state: int, terminal: int) -> Iterable[tuple[int, int]]:
        """The length and the nonterminal of each reduction that is made before a terminal."""

    def goto(self, state: int, origin: int) -> int | None:
        """The state on top of another one and a nonterminal."""

    def next(self, state: int, ending: int) -> int:
        """The endings that may come next where one has led to a state, as a set."""


class PopSummary:
    """What is known of a state on top and the ending that is read next."""

    __slots__ = ("below", "found", "succeeds")

    def __init__(self) -> None:
        self.found: _Found = {}
        #: Whether a run succeeds without taking the state away.
        self.succeeds = False
        #: The states that it may be put on, each with the ending that was next there.
        self.below: dict[_Key, None] = {}


class PopSummaries:
    """Summaries of one grammar.

    Parameters
    ----------
    moves:
        What the grammar's parser does, and what its lexer can read.
    pause:
        Called after each slice of the work, with the bytes that all summaries take; may raise.
    """

    def __init__(self, moves: Moves, pause: Callable[[int], object]) -> None:
        self._moves = moves
        self._pause = pause
        self._terminal = moves.terminal
        self._succeeds = moves.succeeds
        self._of_terminal: dict[int, int] = {}
        for ending, terminal in enumerate(self._terminal):
            self._of_terminal[terminal] = self._of_terminal.get(terminal, 0) | 1 << ending
        #: By state: the endings before which it does anything, as a set: those that are worth looking at.
        self.accepted = LazyTable(self._accept)
        self._known: dict[_Key, PopSummary] = {}
        self._count = 0
        self._lock = Lock(Rank.PARSER)
        #: What is new and not yet looked at; by node what the states below it do not know yet.
        self._fresh: list[_Key] = []
        self._grown: dict[_Key, _Found] = {}

    def find(self, state: int, ending: int) -> PopSummary:
        """The summaries of a state on top and the ending that is read next.

        Threads that ask at once work on the same summaries, slice by slice; they are as many as the grammar has, and
        were all looked at where it was compiled under a budget for strangers
        (`structgen.compiler.grammar.completion.pop_summaries`).
        """
        while True:
            with self._lock:
                if self.nbytes > _MOST_BYTES and not self._fresh and not self._grown:
                    self._known, self._count = {}, 0
                known = self._node((state, ending))
                if self._solve():
                    return known
            self._pause(self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that all summaries take, about."""
        return _BYTES * self._count

    def _accept(self, state: int) -> int:
        found = 0
        for terminal in bits(self._moves.mentioned(state)):
            found |= self._of_terminal.get(terminal, 0)
        return found

    def _node(self, key: _Key) -> PopSummary:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = PopSummary()
            self._count += 1
            self._fresh.append(key)
        return known

    def _solve(self) -> bool:
        """Go on for a slice of the work; whether nothing is left of it."""
        done = 0
        try:
            while (self._fresh or self._grown) and done < _STEPS:
                if self._fresh:
                    self._begin(self._fresh.pop())
                    done += 1
                    continue
                key, grown = self._grown.popitem()
                for below in self._known[key].below:
                    for (origin, popped), endings in grown.items():
                        self._reduce(below, origin, popped, endings)
                done += len(grown) * len(self._known[key].below)
        except BaseException:
            self._known, self._fresh, self._grown, self._count = {}, [], {}, 0  # some of it is lost
            raise
        return not self._fresh and not self._grown

    def _begin(self, key: _Key) -> None:
        """What a state does at once."""
        state, ending = key
        moves, terminal = self._moves, self._terminal[ending]
        target = moves.shifted_to(state, terminal)
        if target is not None and self._succeeds[ending]:
            self._succeed(key)
            return
        for length, origin in moves.reductions(state, terminal):
            self._reduce(key, origin, length, 1 << ending)
        if target is not None:
            self._put(key, target, moves.next(target, ending))

    def _reduce(self, key: _Key, origin: int, popped: int, endings: int) -> None:
        """Reduce on top of a node's state, of which and those below so many are popped, before some endings."""
        if not popped:
            target = self._moves.goto(key[0], origin)
            if target is not None:
                self._put(key, target, endings)
            return
        found, summary = self._known[key].found, (origin, popped - 1)
        fresh = endings & ~found.get(summary, 0)
        if fresh:
            found[summary] = found.get(summary, 0) | fresh
            grown = self._grown.setdefault(key, {})
            grown[summary] = grown.get(summary, 0) | fresh
            self._count += 1

    def _put(self, key: _Key, state: int, endings: int) -> None:
        """Put a state on that of a node, before some endings."""
        if self._known[key].succeeds:
            return  # nothing more is asked of it
        for ending in bits(endings & self.accepted[state]):
            above = self._node((state, ending))
            if key in above.below:
                continue
            above.below[key] = None
            self._count += 1
            if above.succeeds:
                self._succeed(key)
            for (origin, popped), there in list(above.found.items()):
                self._reduce(key, origin, popped, there)

    def _succeed(self, key: _Key) -> None:
        for each in (todo := [key]):  # grows as it goes
            node = self._known[each]
            if not node.succeeds:
                node.succeeds = True
                todo += node.below
