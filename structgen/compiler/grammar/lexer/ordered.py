"""What a regex matches at a place in a text, as Python's `re` has it: not all it could match, the match it prefers.

Lexers take the first match that backtracking finds. ``/\\*.*?\\*/`` ends at the first ``*/`` because it is lazy, and
``a|ab`` never takes the ``b``. So the automaton of a terminal keeps the threads of Thompson's simulation in order of
preference (Pike's, as in RE2 and Rust's regex-automata): when one of them has matched, those behind it are cut off,
since nothing they come to could be preferred; those ahead of it go on, and may yet replace the match by a longer one.
A state of the automaton is such a list. It *accepts* where the list ends in a match.

Look-behind is decided by automata that run along. A look-ahead becomes an obligation of the thread that made it, an
automaton over the bytes to come. A match that still owes something is none yet: it stays in the list, *pending*,
until what it owes is paid, which cuts off what is behind it, or cannot be paid any more. See
`structgen.compiler.grammar.lexer.leftmost_dfa` for what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....runtime.core.lazy_table import LazyTable
from ...automata.dfa import Dfa, minimize, runs_begin, trim
from ...patterns.syntax import Node
from .behind import check_behind
from .leftmost_dfa import LeftmostDfa, minimal
from .look_arounds import UNPAID, LookArounds
from .program import BYTES_OF_STATE, LexerProgram, program

#: Threads that are followed between two looks at the meter, and the bytes of one that is remembered.
_STEPS, _BYTES_OF_THREAD = 8192, 160

#: Roles of a thread: one that goes on or matches here; a match that ended before and is pending; such a match that is
#: watched.
_HERE, _PENDING, _WATCHED = range(3)


class Thread(NamedTuple):
    """A state of the program, what is owed (see `LookArounds`), and the role."""

    state: int
    owed: int
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


#: By part of a partition the state after its bytes, -1 for none; and the partition.
_Moves: TypeAlias = tuple[list[int], int]


#: How a thread goes on: its role, and by byte what is owed then; unless it is a match, the part of each byte, and the
#: states after each part.
_Step: TypeAlias = tuple[int, list[int], bytes, list[list[int]]]


class SharedMatches:
    """What was worked out for some terminals and holds for others.

    Once all that is left is matches and what they owe, it no longer matters which terminal's they are.
    """

    def __init__(self) -> None:
        self.looks = LookArounds()
        self.after: dict[Threads, tuple[list[Threads], int]] = {}
        #: By ranges of bytes: a partition, the part of each byte, and which of the ranges each part is in.
        self.read: dict[tuple[tuple[int, int], ...], tuple[int, bytes, list[tuple[int, ...]]]] = {}


def preferred(tree: Node, meter: Meter, shared: SharedMatches | None = None) -> LeftmostDfa:
    """The minimal automaton of the matches that a regex prefers.

    ``shared`` is kept from one terminal of a grammar to the next. Raises `UnsupportedError` for look-around that sees
    what is before the match, and `BudgetExceededError`.
    """
    shared = SharedMatches() if shared is None else shared
    made = program(tree, shared.looks, meter)
    if any(look.behind for look, _ in made.looks):
        check_behind(tree, meter)
    return _Determinizer(made, shared, meter).run()


class _Determinizer:
    """The subset construction over lists."""

    def __init__(self, made: LexerProgram, shared: SharedMatches, meter: Meter) -> None:
        self._made = made
        self._shared = shared
        self._looks = looks = shared.looks
        self._meter = meter
        self._behind = [k for k, (look, _) in enumerate(made.looks) if look.behind]
        self._ahead = [-1 if look.behind else looks.ahead(look, dfa) for look, dfa in made.looks]
        self._reads = LazyTable(self._read)
        self._behind_rows: dict[tuple[int, int], tuple[int, list[int]]] = {}
        self._known: dict[tuple[tuple[Thread, ...], tuple[int, ...]], Threads] = {}
        self._number: dict[Threads, int] = {}
        self._todo: list[Threads] = []
        #: Threads that were followed since the meter was looked at; bytes of the program and of what is remembered.
        self._steps, self._held = 0, len(made.empty) * BYTES_OF_STATE

    def _spend(self, steps: int) -> None:
        """Count threads that are followed; look at the meter now and then."""
        self._steps += steps
        if self._steps > _STEPS:
            self._steps = 0
            self._meter.check_time("determinising a terminal")
            self._meter.check_states(len(self._todo), "determinising a terminal")
            self._meter.check_memory(self._held, "determinising a terminal")

    def run(self) -> LeftmostDfa:
        self._intern(self._closed((Thread(0, 0),), tuple(self._start_of(k) for k in self._behind)))
        moves: list[_Moves] = []
        ends: list[tuple[int, ...]] = []
        for here in self._todo:  # grows as it goes
            self._spend(16 + len(here.threads))
            ends.append(tuple(self._watching(here)))
            after, partition = self._after(here)
            moves.append(([self._intern(each) if each.threads or each.beats else -1 for each in after], partition))
        class_of, table = self._table(moves)
        self._meter.hold(self._held, "determinising a terminal")
        try:
            return self._matcher(class_of, table, ends)
        finally:
            self._meter.let_go(self._held)

    def _matcher(
        self, class_of: NDArray[np.uint8], table: NDArray[np.int32], ends: list[tuple[int, ...]]
    ) -> LeftmostDfa:
        if not any(here.beats for here in self._todo) and all(end in ((), (s,)) for s, end in enumerate(ends)):
            return LeftmostDfa.of(self._plain(class_of, table, ends))
        beats = [
            here.beats or any(self._is_match(thread) and not thread.owed for thread in here.threads)
            for here in self._todo
        ]
        found = LeftmostDfa(
            class_of, table, ends, np.array(beats), np.array([*map(self._lapses, self._todo)]),
            np.array([*map(self._is_whole, self._todo)]),
        )  # fmt: skip
        return minimal(found, self._meter)

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

    def _table(self, moves: list[_Moves]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
        """The class of each byte, and the moves by state and class."""
        patterns = {p: self._looks.partitions.patterns[p] for _, p in moves}
        cuts = runs_begin(np.stack(list(patterns.values())))
        first = np.flatnonzero(cuts)
        self._meter.check_memory(4 * len(first) * len(moves), "determinising a terminal")
        parts = {p: pattern[first] for p, pattern in patterns.items()}
        table = np.empty((len(moves), len(first)), np.int32)
        for row, (after, p) in zip(table, moves, strict=True):
            self._spend(16)
            row[:] = np.array(after)[parts[p]]
        return (np.cumsum(cuts) - 1).astype(np.uint8), table

    def _plain(self, class_of: NDArray[np.uint8], table: NDArray[np.int32], ends: list[tuple[int, ...]]) -> Dfa:
        accepting = np.array([bool(end) for end in ends], np.uint8)
        none = np.zeros((0, 5), np.int32), np.zeros((0, 2), np.int64)
        return minimize(trim(Dfa(table, class_of.astype(np.int32), accepting, *none, 0)), self._meter)

    @staticmethod
    def _is_match(thread: Thread) -> bool:
        return thread.state == 1 and thread.role == _HERE

    def _lapses(self, here: Threads) -> bool:
        """Whether a match that is watched would be none if the text ended here."""
        for state, owed, role in here.threads:
            if state == 1 and owed and self._looks.is_kept(owed) != (role == _WATCHED):
                return True
        return False

    def _is_whole(self, here: Threads) -> bool:
        """Whether, if the text ended here, the match would end here."""
        kept = self._looks.is_kept
        return next((role == _HERE for state, owed, role in here.threads if state == 1 and kept(owed)), False)

    def _after(self, here: Threads) -> tuple[list[Threads], int]:
        """Where the bytes lead, by part of a partition."""
        if any(state != 1 for state, _, _ in here.threads):
            return self._followed(here)
        found = self._shared.after.get(here)
        if found is None:
            found = self._shared.after[here] = self._followed(here)
        return found

    def _followed(self, here: Threads) -> tuple[list[Threads], int]:
        looks = self._looks
        if len(here.threads) == 1 and here.threads[0][1:] == (0, _HERE) and not here.behind:
            partition, _, read = self._reads[here.threads[0].state]
            self._held += _BYTES_OF_THREAD
            return [self._moved(tuple([Thread(target, 0) for target in part]), ()) for part in read], partition
        told_apart = {looks.partition[owed] for _, owed, _ in here.threads if owed}
        steps: list[_Step] = []
        for state, owed, role in here.threads:
            if state != 1:
                partition, part, targets = self._reads[state]
                told_apart.add(partition)
                steps.append((role, looks.paid[owed], part, targets))
            elif owed:
                steps.append((role, looks.paid[owed], b"", []))
        behind = []
        if here.behind:
            for k, state in zip(self._behind, here.behind, strict=True):
                partition, row = self._behind_row(k, state)
                told_apart.add(partition)
                behind.append(row)
        bytes_, partition = looks.partitions.refined(frozenset(told_apart))
        self._held += _BYTES_OF_THREAD + 16 * len(bytes_)
        return [self._step(steps, behind, byte) for byte in bytes_], partition

    def _read(self, state: int) -> tuple[int, bytes, list[list[int]]]:
        """What a state of the program reads: a partition, the part of each byte, and the states after each part."""
        edges = self._made.edges[state]
        ranges = tuple([(low, high) for low, high, _ in edges])
        found = self._shared.read.get(ranges)
        if found is None:
            cuts = sorted({0, 256, *(cut for low, high in ranges for cut in (low, high + 1))})
            parts: dict[tuple[int, ...], int] = {}
            pattern = b""
            for low, after in pairwise(cuts):
                which = tuple(i for i, (least, most) in enumerate(ranges) if least <= low <= most)
                pattern += bytes([parts.setdefault(which, len(parts))]) * (after - low)
            found = self._shared.read[ranges] = self._looks.partitions.number(pattern), pattern, [*parts]
        partition, pattern, read = found
        return partition, pattern, [[edges[i][2] for i in which] for which in read]

    def _behind_row(self, k: int, state: int) -> tuple[int, list[int]]:
        """How a look-behind goes on: a partition, and the states by byte."""
        found = self._behind_rows.get((k, state))
        if found is None:
            dfa = self._made.looks[k][1]
            row = dfa.table[state][dfa.classes[:256]] if state >= 0 else np.full(256, -1)
            found = self._behind_rows[k, state] = self._looks.partitions.of(row), row.tolist()
        return found

    def _step(self, steps: list[_Step], behind: list[list[int]], byte: int) -> Threads:
        self._spend(len(steps))
        moved: list[Thread] = []
        beats = False
        for role, paid, part, targets in steps:
            left = paid[byte]
            if part:
                if left != UNPAID:
                    moved += [Thread(target, left) for target in targets[part[byte]]]
            elif left > 0:
                moved.append(Thread(1, left, max(role, _PENDING)))
            elif left == 0 or role == _WATCHED:  # paid, or the end of what is watched
                beats = (left == UNPAID) == (role == _WATCHED)
                break
        found = self._moved(tuple(moved), tuple([row[byte] for row in behind]))
        return found._replace(beats=True) if beats else found

    def _moved(self, seeds: tuple[Thread, ...], behind: tuple[int, ...]) -> Threads:
        """As `_closed`, worked out once."""
        key = seeds, behind
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._closed(seeds, behind)
        return found

    def _closed(self, seeds: tuple[Thread, ...], behind: tuple[int, ...]) -> Threads:
        """All that empty moves lead to, in order, each once, up to the first match that owes nothing."""
        made = self._made
        found: dict[tuple[int, int], int] = {}
        beats = False
        none: frozenset[int] = frozenset()
        seen: set[tuple[int, int, frozenset[int]]] = set()
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
                if passed != UNPAID:
                    todo.append((Thread(target, passed), begun))
        self._spend(len(seen))
        self._held += _BYTES_OF_THREAD * (4 + len(seeds) + len(found))
        threads = tuple(Thread(*thread, role) for thread, role in found.items())
        return Threads(threads, behind if any(state != 1 for state, _, _ in threads) else (), beats)

    def _passed(self, k: int, owed: int, behind: tuple[int, ...]) -> int:
        """What is owed after a look-around; `UNPAID` where it fails."""
        look, dfa = self._made.looks[k]
        if not look.behind:
            return self._looks.begun(owed, self._ahead[k])
        state = behind[self._behind.index(k)]
        return owed if (state >= 0 and bool(dfa.accepting[state])) != look.negate else UNPAID

    def _start_of(self, k: int) -> int:
        dfa = self._made.looks[k][1]
        return dfa.start if dfa.states else -1
