"""What a regex matches at a place in a text, as Python's `re` has it: not all it could match, the match it prefers.

Lexers take the first match that backtracking finds. ``/\\*.*?\\*/`` ends at the first ``*/`` because it is lazy, and
``a|ab`` never takes the ``b``. So the automaton of a terminal keeps the threads of Thompson's simulation in order of
preference (Pike's, as in RE2 and Rust's regex-automata): when one of them has matched, those behind it are cut off,
since nothing they come to could be preferred; those ahead of it go on, and may yet replace the match by a longer one.
A state of the automaton is such a list. It *accepts* where the list ends in a match.

Look-behind is decided by automata that run along. A look-ahead becomes an obligation of the thread that made it, an
automaton over the bytes to come. A match that still owes something is none yet: it stays in the list, *pending*,
until what it owes is paid, which cuts off what is behind it, or cannot be paid any more. See
`structgen.compiler.grammar.matcher` for what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from ...budget import Meter
from ...errors import UnsupportedError
from ..automata.dfa import Dfa, determinize, minimize
from ..automata.nfa import NfaBuilder
from ..automata.utf8 import utf8_edges
from ..regex.looks import check_nesting
from ..regex.lower import language
from ..regex.syntax import Alternate, Chars, Concat, Look, Node, Repeat
from .characters import settled_early
from .matcher import Matcher, minimal

#: What a thread still owes: look-aheads by number, with the state of their automata.
Owed: TypeAlias = frozenset[tuple[int, int]]

#: Roles of a thread: one that goes on or matches here; a match that ended before and is pending; such a match that is
#: watched.
_HERE, _PENDING, _WATCHED = range(3)


class Thread(NamedTuple):
    """A state of the program, what is owed, and the role."""

    state: int
    owed: Owed
    role: int = _HERE


class Threads(NamedTuple):
    """A state of the automaton.

    Parameters
    ----------
    threads:
        In order of preference.
    behind:
        States of the look-behind automata; none where no thread goes on.
    beats:
        Whether the last byte paid for a pending match, or ended the match that was watched.
    """

    threads: tuple[Thread, ...]
    behind: tuple[int, ...] = ()
    beats: bool = False


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
        By state: the turn that ends here, or -1, and where to go on if it has read nothing: as in `re`, another turn
        is not tried then.
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
    made.looks.append((node, dfa if node.behind else settled_early(dfa)))
    return len(made.looks) - 1


def preferred(tree: Node, meter: Meter) -> Matcher:
    """The minimal automaton of the matches that a regex prefers.

    Raises `UnsupportedError` for look-around that sees what is before the match, and `BudgetExceededError`.
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
        self._number: dict[Threads, int] = {}
        self._todo: list[Threads] = []

    def run(self) -> Matcher:
        self._intern(self._closed([Thread(0, _NOTHING_OWED)], tuple(self._start_of(k) for k in self._behind)))
        moves: list[list[tuple[int, int, int]]] = []
        ends: list[tuple[int, ...]] = []
        for here in self._todo:  # grows as it goes
            self._meter.check_states(len(self._todo), "determinising a terminal")
            if len(moves) % 256 == 0:
                self._meter.check_time("determinising a terminal")
            ends.append(tuple(self._watching(here)))
            moves.append([])
            for low, high in self._ranges(here) if here.threads else ():
                after = self._step(here, low)
                if after.threads or after.beats:
                    moves[-1].append((low, high, self._intern(after)))
        if not any(here.beats for here in self._todo) and all(end in ((), (s,)) for s, end in enumerate(ends)):
            return Matcher.of(self._plain(moves, ends))
        return minimal(self._conditional(moves, ends))

    def _intern(self, threads: Threads) -> int:
        number = self._number.get(threads)
        if number is None:
            number = self._number[threads] = len(self._todo)
            self._todo.append(threads)
        return number

    def _watching(self, here: Threads) -> Iterator[int]:
        """For each match that ends here the state that watches it: itself where the match owes nothing."""
        for i, thread in enumerate(here.threads):
            if thread.state != 1 or thread.role != _HERE:
                continue
            if thread.owed:
                marked = (*here.threads[:i], thread._replace(role=_WATCHED))
                yield self._intern(Threads(marked, here.behind))
            else:
                yield self._number[here]

    def _plain(self, moves: list[list[tuple[int, int, int]]], ends: list[tuple[int, ...]]) -> Dfa:
        builder = NfaBuilder()
        names = [builder.state() for _ in moves]
        accept = builder.state()
        for name, there, end in zip(names, moves, ends, strict=True):
            if end:
                builder.epsilon(name, accept)
            for low, high, target in there:
                builder.edge(name, low, high, names[target])
        dfa = determinize(builder.build(names[0], accept), self._meter, "determinising a terminal")
        return minimize(dfa, self._meter)

    def _conditional(self, moves: list[list[tuple[int, int, int]]], ends: list[tuple[int, ...]]) -> Matcher:
        cuts = sorted(
            {0, *(cut for there in moves for low, high, _ in there for cut in (low, high + 1) if cut < 256)}
        )
        class_of = np.zeros(256, np.uint8)
        class_of[cuts[1:]] = 1
        class_of = np.cumsum(class_of).astype(np.uint8)
        table = np.full((len(moves), len(cuts)), -1, np.int32)
        for row, there in zip(table, moves, strict=True):
            for low, high, target in there:
                row[class_of[low] : int(class_of[high]) + 1] = target
        beats = [
            here.beats or any(self._is_match(thread) and not thread.owed for thread in here.threads)
            for here in self._todo
        ]
        return Matcher(
            class_of, table, ends, np.array(beats), np.array([*map(self._lapses, self._todo)]),
            np.array([*map(self._is_whole, self._todo)]),
        )  # fmt: skip

    @staticmethod
    def _is_match(thread: Thread) -> bool:
        return thread.state == 1 and thread.role == _HERE

    def _is_kept(self, owed: Owed) -> bool:
        """Whether what is owed would be kept if the text ended here."""
        looks = self._made.looks
        return all(bool(looks[k][1].accepting[state]) != looks[k][0].negate for k, state in owed)

    def _lapses(self, here: Threads) -> bool:
        """Whether a match that is watched would be none if the text ended here."""
        for state, owed, role in here.threads:
            if state == 1 and owed and self._is_kept(owed) != (role == _WATCHED):
                return True
        return False

    def _is_whole(self, here: Threads) -> bool:
        """Whether, if the text ended here, the match would end here."""
        return next(
            (role == _HERE for state, owed, role in here.threads if state == 1 and self._is_kept(owed)), False
        )

    def _ranges(self, here: Threads) -> Iterator[tuple[int, int]]:
        """The bytes that some thread reads, cut where anything changes."""
        cuts = {0, 256}
        for state, owed, _ in here.threads:
            for low, high, _ in self._made.edges[state]:
                cuts |= {low, high + 1}
            for k, _ in owed:
                cuts |= _cuts_of(self._made.looks[k][1])
        for k in self._behind if here.behind else ():
            cuts |= _cuts_of(self._made.looks[k][1])
        ordered = sorted(cuts)
        return ((low, after - 1) for low, after in pairwise(ordered))

    def _step(self, here: Threads, byte: int) -> Threads:
        moved: list[Thread] = []
        beats = False
        for state, owed, role in here.threads:
            left = self._pay(owed, byte)
            if state == 1:
                if not owed:
                    continue
                if left:
                    moved.append(Thread(1, left, max(role, _PENDING)))
                elif left is not None or role == _WATCHED:  # paid, or the end of what is watched
                    beats = (left is None) == (role == _WATCHED)
                    break
            elif left is not None:
                moved += (
                    Thread(target, left) for low, high, target in self._made.edges[state] if low <= byte <= high
                )
        after = tuple(_next(self._made.looks[k][1], s, byte) for k, s in zip(self._behind, here.behind, strict=False))
        found = self._closed(moved, after)
        return found._replace(beats=found.beats or beats)

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

    def _closed(self, seeds: list[Thread], behind: tuple[int, ...]) -> Threads:
        """All that empty moves lead to, in order, each once, up to the first match that owes nothing."""
        made = self._made
        found: dict[tuple[int, Owed], int] = {}
        beats = False
        none: frozenset[int] = frozenset()
        seen: set[tuple[int, Owed, frozenset[int]]] = set()
        todo = [(thread, none) for thread in reversed(seeds)]
        while todo:
            (state, owed, role), begun = todo.pop()
            if state == 1:
                # Of two matches that owe the same the preferred one will be it, if any.
                beats |= role == _WATCHED and (state, owed) in found
                found.setdefault((state, owed), role)
                if not owed:
                    break
                continue
            if (state, owed, begun) in seen:
                continue
            seen.add((state, owed, begun))
            if made.edges[state]:
                found[state, owed] = _HERE
            turn, after = made.turned[state]
            if turn in begun:
                todo.append((Thread(after, owed), begun - {turn}))
                continue
            if made.turn[state] >= 0:
                begun |= {made.turn[state]}
            for target, look in reversed(made.empty[state]):
                passed = owed if look < 0 else self._passed(look, owed, behind)
                if passed is not None:
                    todo.append((Thread(target, passed), begun))
        threads = tuple(Thread(*thread, role) for thread, role in found.items())
        return Threads(threads, behind if any(state != 1 for state, _, _ in threads) else (), beats)

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
        """By state: the fewest characters that lead there."""
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
                for low, _, target in made.edges[state]:
                    if not _continues(low):
                        following.append(target)
                    elif found[target] > distance:
                        found[target] = distance
                        layer.append(target)
            distance += 1
            for target in following:
                if found[target] > distance:
                    found[target] = distance
                    layer.append(target)
        return found


def _longest(item: Node, meter: Meter) -> int | None:
    """The most characters of a text of a tree; None where there is no bound."""
    dfa = language(item, meter, edges=False, count=False)
    if not dfa.states:
        return 0
    first = np.flatnonzero(np.diff(dfa.classes[:256], prepend=-1))  # the lowest byte of each class
    following = [
        [
            (int(target), not _continues(int(low)))
            for low, target in zip(first, row[dfa.classes[first]], strict=True)
            if target >= 0
        ]
        for row in dfa.table
    ]
    longest = 0
    reached = {dfa.start}
    while reached:
        if longest > dfa.states:
            return None
        within = sorted(reached)
        after = set()
        for state in within:  # grows as it goes: bytes that continue a character
            for target, is_character in following[state]:
                if is_character:
                    after.add(target)
                elif target not in reached:
                    reached.add(target)
                    within.append(target)
        if not after:
            return longest
        reached, longest = after, longest + 1
    return longest


def _continues(byte: int) -> bool:
    """Whether a byte continues a character in UTF-8 (RFC 3629)."""
    return 0x80 <= byte <= 0xBF


def _next(dfa: Dfa, state: int, byte: int) -> int:
    return -1 if state < 0 else int(dfa.table[state, dfa.classes[byte]])


def _cuts_of(dfa: Dfa) -> set[int]:
    """Where the classes of bytes of an automaton begin."""
    classes = np.asarray(dfa.classes[:256])
    return {0, *(np.flatnonzero(np.diff(classes)) + 1).tolist()}
