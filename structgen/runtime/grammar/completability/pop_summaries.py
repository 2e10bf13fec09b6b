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

What a run comes to is additive in what may be next, so all of this is done for sets of endings: those that the lexer
can read behind e are one node above s, not one each, which leaves a hundredth of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

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

#: A state on top of the stack, and the endings that may be read next, as a set.
_Key: TypeAlias = tuple[int, int]


class Moves(Protocol):
    """A parser and a lexer side by side: what they do with the endings of lexemes.

    Attributes
    ----------
    terminal:
        By ending.
    """

    terminal: list[int]

    def succeeding(self, state: int) -> int:
        """The endings behind which a text can be completed, if a state shifts them, as a set."""

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
    """What is known of a state on top and the endings that may be read next."""

    __slots__ = ("below", "found", "put", "succeeds")

    def __init__(self) -> None:
        self.found: _Found = {}
        #: Whether a run succeeds without taking the state away.
        self.succeeds = False
        #: The states that it may be put on, each with the endings that were next there.
        self.below: dict[_Key, None] = {}
        #: By state that is put on it, the endings that may be next then.
        self.put: dict[int, int] = {}


class Group(NamedTuple):
    """Endings before which a state does the same.

    Parameters
    ----------
    endings:
        As a set.
    stays:
        Whether all it does is to reduce, so that whichever was next still is.
    """

    endings: int
    stays: bool

    @property
    def is_single(self) -> bool:
        """Whether it is one ending."""
        return not self.endings & (self.endings - 1)


class _Actions(NamedTuple):
    """What a state does before endings.

    Parameters
    ----------
    accepted:
        Those before which it does anything.
    shifts:
        The states that terminals lead to, with their endings.
    reductions:
        The length and the nonterminal of each, with the endings before which it is made.
    """

    accepted: int
    shifts: tuple[tuple[int, int], ...]
    reductions: tuple[tuple[int, int, int], ...]


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
        self._of_terminal: dict[int, int] = {}
        for ending, terminal in enumerate(moves.terminal):
            self._of_terminal[terminal] = self._of_terminal.get(terminal, 0) | 1 << ending
        self._actions = LazyTable(self._find_actions)
        #: By state: the endings before which it does anything, each in one group.
        self.groups = LazyTable(lambda state: tuple(self._find_groups(state)))
        self._known: dict[_Key, PopSummary] = {}
        self._count = 0
        self._lock = Lock(Rank.PARSER)
        #: What is new and not yet looked at; by node what the states below it do not know yet.
        self._fresh: list[_Key] = []
        self._grown: dict[_Key, _Found] = {}

    def find(self, state: int, endings: int) -> PopSummary:
        """The summaries of a state on top and a group of endings that may be read next.

        Threads that ask at once work on the same summaries, slice by slice; they are as many as the grammar has, and
        were all looked at where it was compiled under a budget for strangers
        (`structgen.compiler.grammar.completion.pop_summaries`).
        """
        while True:
            with self._lock:
                if self.nbytes > _MOST_BYTES and not self._fresh and not self._grown:
                    self._known, self._count = {}, 0
                known = self._node((state, endings))
                if self._solve():
                    return known
            self._pause(self.nbytes)

    @property
    def nbytes(self) -> int:
        """Bytes that all summaries take, about."""
        return _BYTES * self._count

    def _find_actions(self, state: int) -> _Actions:
        moves, accepted = self._moves, 0
        shifts: dict[int, int] = {}
        reductions: dict[tuple[int, int], int] = {}
        for terminal in bits(moves.mentioned(state)):
            endings = self._of_terminal.get(terminal, 0)
            accepted |= endings
            target = moves.shifted_to(state, terminal)
            if target is not None and endings:
                shifts[target] = shifts.get(target, 0) | endings
            for reduction in moves.reductions(state, terminal):
                reductions[reduction] = reductions.get(reduction, 0) | endings
        return _Actions(
            accepted,
            tuple(shifts.items()),
            tuple((length, origin, before) for (length, origin), before in reductions.items() if before),
        )

    def _find_groups(self, state: int) -> Iterator[Group]:
        _, shifts, reductions = self._actions[state]
        once = more = 0
        for there in (*(endings for _, endings in shifts), *(before for *_, before in reductions)):
            once, more = once | there, more | once & there
        for length, _, before in reductions:
            more |= 0 if length else before
        for target, there in shifts:
            succeeding = self._moves.succeeding(state)
            done = there & ~more & succeeding
            if done:
                yield Group(done, False)
            by_next: dict[int, int] = {}
            for ending in bits(there & ~more & ~succeeding):
                following = self._moves.next(target, ending)
                by_next[following] = by_next.get(following, 0) | 1 << ending
            yield from (Group(endings, False) for endings in by_next.values())
        yield from (Group(before & ~more, True) for *_, before in reductions if before & ~more)
        yield from (Group(1 << ending, False) for ending in bits(more))

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
        state, endings = key
        actions = self._actions[state]
        succeeding = endings & self._moves.succeeding(state)
        if any(there & succeeding for _, there in actions.shifts):
            self._succeed(key)
            return
        for length, origin, before in actions.reductions:
            if before & endings:
                self._reduce(key, origin, length, before & endings)
        for target, there in actions.shifts:
            following = 0
            for ending in bits(there & endings):
                following |= self._moves.next(target, ending)
            if following:
                self._put(key, target, following)

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
        node = self._known[key]
        known = node.put.get(state, 0)
        fresh = endings & self._actions[state].accepted & ~known
        if not fresh or node.succeeds:  # of what succeeds nothing more is asked
            return
        node.put[state] = known | fresh
        above = self._node((state, fresh))
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
