"""What a regex matches at a place in a text, as Python's `re` has it: not all it could match, the match it prefers.

Lexers take the first match that backtracking finds. ``/\\*.*?\\*/`` ends at the first ``*/`` because it is lazy, and ``a|ab``
never takes the ``b``. So the automaton of a terminal keeps the threads of Thompson's simulation in order of preference
(Pike's, as in RE2 and Rust's regex-automata): when one of them has matched, those behind it are cut off, since
nothing they come to could be preferred; those ahead of it go on, and may yet replace the match by a longer one. A state
of the automaton is such a list. It *accepts* where the list ends in a match.

Look-behind is decided by automata that run along. A look-ahead becomes an obligation of the thread that made it, an automaton over
the bytes to come. A match that still owes something depends on what follows it; that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ...budget import Meter
from ...errors import UnsupportedError
from ..automata.dfa import Dfa, determinize, minimize
from ..automata.nfa import NfaBuilder
from ..automata.utf8 import utf8_edges
from ..regex.looks import check_nesting
from ..regex.lower import language
from ..regex.syntax import Alternate, Chars, Concat, Look, Node, Repeat

#: What a thread still owes: look-aheads by number, with the state of their automata.
Owed: TypeAlias = frozenset[tuple[int, int]]

#: A state of the program and what is owed, in order of preference.
Threads: TypeAlias = tuple[tuple[int, Owed], ...]

_NOTHING_OWED: Owed = frozenset()


@dataclass(eq=False)
class Program:
    """A regex as states with ordered empty moves. State 0 is the start, state 1 the match.

    Parameters
    ----------
    empty:
        By state: moves that read nothing, the preferred ones first: a target, and a look-around to pass or -1.
    turn:
        By state: the number of the turn of a loop that begins here, or -1.
    turned:
        By state: the turn that ends here, or -1, and where to go on if it has read nothing: as in `re`, another turn is
        not tried then.
    edges:
        By state: moves that read a byte: lowest, highest, target.
    looks:
        The look-arounds, each with its automaton.
    """

    empty: list[list[tuple[int, int]]] = field(default_factory=list)
    edges: list[list[tuple[int, int, int]]] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)
    turned: list[tuple[int, int]] = field(default_factory=list)
    looks: list[tuple[Look, Dfa]] = field(default_factory=list)

    def state(self) -> int:
        """A new state."""
        self.empty.append([])
        self.edges.append([])
        self.turn.append(-1)
        self.turned.append((-1, -1))
        return len(self.empty) - 1

    def optional_turn(self, target: int) -> tuple[int, int]:
        """The states between which a turn of a loop lies that need not be made; ``target`` is behind the loop."""
        begin, end = self.state(), self.state()
        self.turn[begin] = begin
        self.turned[end] = begin, target
        return begin, end


def program(tree: Node, meter: Meter) -> Program:
    """Thompson's construction with preferences, on a stack of its own. Raises `BudgetExceededError`."""
    made = Program()
    start, match = made.state(), made.state()
    todo: list[tuple[Node, int, int]] = [(tree, start, match)]
    while todo:
        meter.check_states(len(made.empty) // 4, "spelling out a terminal")
        node, source, target = todo.pop()
        if isinstance(node, Chars):
            _add_character(made, node, source, target)
        elif isinstance(node, Concat):
            for part in node.parts[:-1]:
                there = made.state()
                todo.append((part, source, there))
                source = there
            if node.parts:
                todo.append((node.parts[-1], source, target))
            else:
                made.empty[source].append((target, -1))
        elif isinstance(node, Alternate):
            for option in node.options:
                begin = made.state()
                made.empty[source].append((begin, -1))
                todo.append((option, begin, target))
        elif isinstance(node, Repeat):
            todo.extend(_repeat(made, node, source, target, meter))
        else:
            made.empty[source].append((target, _look(made, node, meter)))
    return made


def _add_character(made: Program, node: Chars, source: int, target: int) -> None:
    names = {0: source, 1: target}
    for tail, low, high, head in utf8_edges(node.ranges).tolist():
        for state in (tail, head):
            if state not in names:
                names[state] = made.state()
        made.edges[names[tail]].append((low, high, names[head]))


def _repeat(made: Program, node: Repeat, source: int, target: int, meter: Meter) -> Iterator[tuple[Node, int, int]]:
    """The turns that must be, then those that may: each a choice between another turn and going on."""
    meter.check_states((node.min if node.max is None else node.max) // 4, "spelling out a terminal")

    def choose(here: int, turn: int) -> None:
        moves = [(turn, -1), (target, -1)]
        made.empty[here] += reversed(moves) if node.lazy else moves

    for _ in range(node.min):
        there = made.state()
        yield node.item, source, there
        source = there
    if node.max is None:
        turn, after = made.optional_turn(target)
        choose(source, turn)
        yield node.item, turn, after
        choose(after, turn)
        return
    for _ in range(node.max - node.min):
        turn, there = made.optional_turn(target)
        choose(source, turn)
        yield node.item, turn, there
        source = there
    made.empty[source].append((target, -1))


def _look(made: Program, node: Look, meter: Meter) -> int:
    whole = node.whole
    if whole:
        raise UnsupportedError(
            "a terminal cannot look for the beginning or the end of the whole text",
            where=f"column {node.column}",
            remedy="Leave out ^, $ and \\Z: where a text begins and ends is the grammar's business.",
        )
    check_nesting(node, False)
    dfa = language(node.item, meter, edges=False, suffix=not node.behind, prefix=node.behind, count=False)
    made.looks.append((node, dfa))
    return len(made.looks) - 1


def preferred(tree: Node, meter: Meter) -> Dfa:
    """The minimal automaton of the matches that a regex prefers.

    Run it over a text until it dies: the match ends at the last place where it accepted.

    Raises `UnsupportedError` for look-around that sees beyond the match, and `BudgetExceededError`.
    """
    return _Determinizer(program(tree, meter), meter).run()


class _Determinizer:
    """The subset construction over lists."""

    def __init__(self, made: Program, meter: Meter) -> None:
        self._made = made
        self._meter = meter
        self._behind = [k for k, (look, _) in enumerate(made.looks) if look.behind]
        self._check_behind()
        #: By look-ahead and state: whether it has been met whatever follows.
        self._is_met = [
            [bool(dfa.accepting[s]) and bool((dfa.table[s] == s).all()) for s in range(dfa.states)]
            for _, dfa in made.looks
        ]

    def run(self) -> Dfa:
        start = self._closed([(0, _NOTHING_OWED)], tuple(self._start_of(k) for k in self._behind))
        number = {start: 0}
        builder = NfaBuilder()
        builder.state()
        accept = builder.state()
        todo = [start]
        names = [0]
        for here, (threads, behind) in enumerate(todo):  # grows as it goes
            self._meter.check_states(len(todo), "determinising a terminal")
            if here % 256 == 0:
                self._meter.check_time("determinising a terminal")
            if threads and threads[-1][0] == 1:
                builder.epsilon(names[here], accept)
            for low, high in self._ranges(threads, behind) if threads else ():
                after = self._step(threads, behind, low)
                if not after[0]:
                    continue
                if after not in number:
                    number[after] = len(todo)
                    todo.append(after)
                    names.append(builder.state())
                builder.edge(names[here], low, high, names[number[after]])
        return minimize(determinize(builder.build(0, accept), self._meter, "determinising a terminal"), self._meter)

    def _ranges(self, threads: Threads, behind: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        """The bytes that some thread reads, cut where anything changes."""
        cuts = {0, 256}
        for state, owed in threads:
            for low, high, _ in self._made.edges[state]:
                cuts |= {low, high + 1}
            for k, _ in owed:
                cuts |= _cuts_of(self._made.looks[k][1])
        for k in self._behind:
            cuts |= _cuts_of(self._made.looks[k][1])
        ordered = sorted(cuts)
        return ((low, after - 1) for low, after in zip(ordered, ordered[1:], strict=False))

    def _step(self, threads: Threads, behind: tuple[int, ...], byte: int) -> tuple[Threads, tuple[int, ...]]:
        moved: list[tuple[int, Owed]] = []
        for state, owed in threads:
            if state == 1:
                continue
            for low, high, target in self._made.edges[state]:
                if low <= byte <= high:
                    left = self._pay(owed, byte)
                    if left is not None:
                        moved.append((target, left))
        after = tuple(_next(self._made.looks[k][1], s, byte) for k, s in zip(self._behind, behind, strict=True))
        return self._closed(moved, after)

    def _pay(self, owed: Owed, byte: int) -> Owed | None:
        """What is owed after a byte; None where it can't be paid."""
        left = set()
        for k, state in owed:
            look, dfa = self._made.looks[k]
            state = _next(dfa, state, byte)
            is_met = state >= 0 and self._is_met[k][state]
            if is_met if look.negate else state < 0:
                return None
            if state >= 0 and not is_met:
                left.add((k, state))
        return frozenset(left) if left else _NOTHING_OWED

    def _closed(self, seeds: list[tuple[int, Owed]], behind: tuple[int, ...]) -> tuple[Threads, tuple[int, ...]]:
        """All that empty moves lead to, in order, each once, up to the first match."""
        made = self._made
        found: dict[tuple[int, Owed], None] = {}
        none: frozenset[int] = frozenset()
        seen: set[tuple[int, Owed, frozenset[int]]] = set()
        todo = [(state, owed, none) for state, owed in reversed(seeds)]
        while todo:
            visit = todo.pop()
            if visit in seen:
                continue
            seen.add(visit)
            state, owed, begun = visit
            thread = state, owed
            if state == 1:
                if owed:
                    raise UnsupportedError(
                        "a look-ahead sees beyond the end of its terminal",
                        remedy="Let the rules say what may follow a terminal.",
                    )
                found[thread] = None
                break
            if made.edges[state]:
                found[thread] = None
            turn, after = made.turned[state]
            if turn in begun:
                todo.append((after, owed, begun - {turn}))
                continue
            if made.turn[state] >= 0:
                begun |= {made.turn[state]}
            for target, look in reversed(made.empty[state]):
                passed = owed if look < 0 else self._passed(look, owed, behind)
                if passed is not None:
                    todo.append((target, passed, begun))
        return tuple(found), behind if found else ()

    def _passed(self, k: int, owed: Owed, behind: tuple[int, ...]) -> Owed | None:
        """What is owed after a look-around; None where it fails."""
        look, dfa = self._made.looks[k]
        if look.behind:
            state = behind[self._behind.index(k)]
            return owed if (state >= 0 and bool(dfa.accepting[state])) != look.negate else None
        state = dfa.start if dfa.states else -1
        is_met = state >= 0 and self._is_met[k][state]
        if is_met or state < 0:
            return owed if is_met != look.negate else None
        return owed | {(k, state)}

    def _start_of(self, k: int) -> int:
        dfa = self._made.looks[k][1]
        return dfa.start if dfa.states else -1

    # -- what look-behind may see ------------------------------------------------------------------------------

    def _check_behind(self) -> None:
        """Refuse look-behind that could see what is before the terminal."""
        if not self._behind:
            return
        shortest = self._shortest()
        for state, moves in enumerate(self._made.empty):
            for _, k in moves:
                if k in self._behind:
                    longest = _longest(self._made.looks[k][0].item, self._meter)
                    if longest is None or shortest[state] < longest:
                        raise UnsupportedError(
                            "a look-behind sees what is before its terminal",
                            where=f"column {self._made.looks[k][0].column}",
                            remedy="Let the rules say what may come before a terminal.",
                        )

    def _shortest(self) -> list[int]:
        """By state: the fewest bytes that lead there."""
        made, far = self._made, 1 << 60
        found = [far] * len(made.empty)
        found[0] = 0
        layer, distance = [0], 0
        while layer:
            following: list[int] = []
            while layer:
                state = layer.pop()
                if found[state] < distance:
                    continue
                for target, _ in made.empty[state]:
                    if found[target] > distance:
                        found[target] = distance
                        layer.append(target)
                following += (target for _, _, target in made.edges[state])
            distance += 1
            for target in following:
                if found[target] > distance:
                    found[target] = distance
                    layer.append(target)
        return found


def _longest(item: Node, meter: Meter) -> int | None:
    """The most bytes of a text of a tree; None where there is no bound."""
    dfa = language(item, meter, edges=False, count=False)
    if not dfa.states:
        return 0
    longest = 0
    reached = {dfa.start}
    while reached:
        if longest > dfa.states:
            return None
        after = {int(t) for s in reached for t in np.unique(dfa.table[s]) if t >= 0}
        if not after:
            return longest
        reached, longest = after, longest + 1
    return longest


def _next(dfa: Dfa, state: int, byte: int) -> int:
    return -1 if state < 0 else int(dfa.table[state, dfa.classes[byte]])


def _cuts_of(dfa: Dfa) -> set[int]:
    """Where the classes of bytes of an automaton begin."""
    classes = np.asarray(dfa.classes[:256])
    return {0, *(np.flatnonzero(np.diff(classes)) + 1).tolist()}

