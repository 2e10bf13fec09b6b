"""`ProductStates`: the automata of a lexer's terminals, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from .leftmost_dfa import LeftmostDfa

#: What the meter is told.
_DOING = "running the terminals side by side"

#: Terminals with the states of their automata, ascending.
Pairs: TypeAlias = tuple[tuple[int, int], ...]

#: Next positions, -1 for none, and for each class of bytes which of them: ``uint8[classes]``.
Moves: TypeAlias = tuple[list[int], NDArray[np.uint8]]


#: Moves of terminals that are put together between two looks at the clock.
_STEPS = 1 << 15

#: Bytes of a terminal in a position.
_BYTES_OF_PAIR = 80


class ProductStates:
    """All terminals' automata, side by side. Position 0 is the start; others are worked out as they are asked for.

    By position: ``alive``, the terminals that are left; ``ending``, those of which matches end here; ``beating``,
    those of which a match is certain here; ``lapsing``: see `LeftmostDfa.lapses`.
    """

    def __init__(self, matchers: list[LeftmostDfa | None], meter: Meter) -> None:
        self.matchers = matchers
        self._meter = meter
        present = [matcher for matcher in matchers if matcher is not None]
        cuts = np.zeros(256, np.bool_)
        for matcher in present:
            cuts[1:] |= np.diff(matcher.class_of) != 0
        self.class_of = np.cumsum(cuts).astype(np.uint8)
        first = np.flatnonzero(np.concatenate([[True], cuts[1:]]))  # a byte of each class
        self.classes = len(first)
        nothing = np.zeros((0, self.classes), np.int32)
        self._steps = 0
        self._held = sum(4 * self.classes * matcher.states for matcher in present)
        meter.check_memory(self._held, _DOING)
        #: By terminal: the table of its automaton, for these classes.
        self.tables = [nothing if m is None else m.table[:, m.class_of[first]] for m in matchers]
        self._number: dict[Pairs, int] = {}
        self.pairs: list[Pairs] = []
        self.alive: list[int] = []
        self.ending: list[int] = []
        self.beating: list[int] = []
        self.lapsing: list[int] = []
        self._rows: dict[tuple[int, int], list[int]] = {}
        self._moves: dict[int, Moves] = {}
        self._restricted: dict[tuple[int, int], int] = {}
        self.number(tuple((t, 0) for t, matcher in enumerate(matchers) if matcher is not None))

    def number(self, pairs: Pairs) -> int:
        """The number of a position. Raises `BudgetExceededError`."""
        known = self._number.get(pairs)
        if known is None:
            known = self._number[pairs] = len(self.pairs)
            self.pairs.append(pairs)
            self._held += _BYTES_OF_PAIR * (2 + len(pairs))
            self._meter.check_states(known, _DOING)
            self._spend(16 + len(pairs))
            alive = ending = beating = lapsing = 0
            for t, state in pairs:
                matcher = self.matchers[t]
                assert matcher is not None
                alive |= 1 << t
                ending |= bool(matcher.ends[state]) << t
                beating |= bool(matcher.beats[state]) << t
                lapsing |= bool(matcher.lapses[state]) << t
            self.alive.append(alive)
            self.ending.append(ending)
            self.beating.append(beating)
            self.lapsing.append(lapsing)
        return known

    def _spend(self, steps: int) -> None:
        """Count work; look at the meter now and then."""
        self._steps += steps
        if self._steps > _STEPS:
            self._steps = 0
            self._meter.check_time(_DOING)
            self._meter.check_memory(self._held, _DOING)

    def after(self, position: int) -> Moves:
        """Where the bytes lead from a position."""
        found = self._moves.get(position)
        if found is None:
            found = self._moves[position] = self._after(position)
        return found

    def _after(self, position: int) -> Moves:
        terminals = [t for t, _ in self.pairs[position]]
        self._spend(len(terminals) * self.classes)
        rows = [self._row(t, state) for t, state in self.pairs[position]]
        columns: list[tuple[int, ...]] = list(zip(*rows, strict=True)) if rows else [()] * self.classes
        parts = {column: number for number, column in enumerate(dict.fromkeys(columns))}
        part = [parts[column] for column in columns]
        pairs = (((t, s) for t, s in zip(terminals, states, strict=True) if s >= 0) for states in parts)
        targets = [self.number(there) if (there := tuple(each)) else -1 for each in pairs]
        return targets, np.array(part, np.uint8)

    def row(self, position: int) -> list[int]:
        """The next position for each class of bytes, -1 where no terminal is left."""
        targets, part = self.after(position)
        return [targets[p] for p in part.tolist()]

    def _row(self, terminal: int, state: int) -> list[int]:
        found = self._rows.get((terminal, state))
        if found is None:
            found = self._rows[terminal, state] = self.tables[terminal][state].tolist()
            self._held += 100 + 8 * self.classes
        return found

    def state(self, position: int, terminal: int) -> int:
        """The state of a terminal that is left."""
        return next(state for t, state in self.pairs[position] if t == terminal)

    def restricted(self, position: int, terminals: int) -> int:
        """The position without other terminals than some."""
        if not self.alive[position] & ~terminals:
            return position
        found = self._restricted.get((position, terminals))
        if found is None:
            left = tuple(pair for pair in self.pairs[position] if terminals >> pair[0] & 1)
            found = self._restricted[position, terminals] = self.number(left)
        return found

    def ends(self, position: int, terminal: int) -> Iterator[tuple[int, int | None]]:
        """The matches of a terminal that end here: the variant, and the position that watches, None for this one."""
        pairs = self.pairs[position]
        at = next(i for i, (t, _) in enumerate(pairs) if t == terminal)
        state, matcher = pairs[at][1], self.matchers[terminal]
        assert matcher is not None
        variant = matcher.variant[state] if matcher.variant else 0
        for watch in matcher.ends[state]:
            if watch == state:
                yield variant, None
            else:
                marked = ((terminal, watch),) if watch >= 0 else ()
                yield variant, self.number((*pairs[:at], *marked))
