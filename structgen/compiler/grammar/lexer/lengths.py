"""Terminals whose matches are as short as may be, or of so many characters at most."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....budget import Meter
from ....definitions.grammar_marks import MARKED
from ....errors import UnsupportedError
from ...patterns.lower import language
from ...patterns.parser import parse
from ..load.rules import Terminal
from .leftmost_dfa import LeftmostDfa, minimal

_DOING = "counting the characters of a terminal"

#: Bytes of a state of a terminal besides its row.
_BYTES_OF_STATE = 200


def bounded(terminal: Terminal, matcher: LeftmostDfa, meter: Meter) -> LeftmostDfa:
    """A terminal's automaton with the bounds that the terminal has.

    Raises `UnsupportedError` where a match depends on what follows it, and `BudgetExceededError`.
    """
    if not terminal.is_bounded or not matcher.states:
        return matcher
    plain = [(state,) if beats else () for state, beats in enumerate(matcher.beats.tolist())]
    if matcher.ends != plain:  # a match is one whatever follows
        raise UnsupportedError(
            "a lexeme that is lazy or has max_chars or max_tokens looks ahead",
            where=f"terminal {terminal.name}",
            remedy="Leave out the look-ahead, or end the lexeme by a suffix.",
        )
    if terminal.is_shortest:
        matcher = _shortest(matcher, meter)
    return matcher if terminal.max_chars is None else _within(matcher, terminal.max_chars, meter)


def _shortest(matcher: LeftmostDfa, meter: Meter) -> LeftmostDfa:
    """The automaton of the shortest matches: nothing leads on from the end of one.

    Which match a regex prefers makes no difference to where the first one ends: only what is longer is cut off.
    """
    table = np.where(matcher.beats[:, None], np.int32(-1), matcher.table)
    return minimal(replace(matcher, table=table), meter)


def _within(matcher: LeftmostDfa, most: int, meter: Meter) -> LeftmostDfa:
    """The automaton of the preferred ones of the matches of so many characters at most."""
    begins = np.arange(256) & 0xC0 != 0x80  # of a character
    kinds, class_of = np.unique(2 * matcher.class_of.astype(np.int64) + begins, return_inverse=True)
    todo = [(0, 0)]
    number = {todo[0]: 0}
    rows: list[list[int]] = []

    def intern(state: int, count: int) -> int:
        if state < 0 or count > most:
            return -1
        if (state, count) not in number:
            number[state, count] = len(todo)
            todo.append((state, count))
        return number[state, count]

    for state, count in todo:  # grows as it goes
        if len(rows) % 64 == 0:
            meter.check_time(_DOING)
            meter.check_states(len(number), _DOING)
            meter.check_memory(len(number) * (_BYTES_OF_STATE + 12 * len(kinds)), _DOING)
        before = matcher.table[state].tolist()
        rows.append([intern(before[kind >> 1], count + (kind & 1)) for kind in kinds.tolist()])
    old = [state for state, _ in todo]
    ends = [tuple(number[watch, count] for watch in matcher.ends[state]) for state, count in todo]
    return minimal(
        LeftmostDfa(
            class_of.astype(np.uint8), np.array(rows, np.int32), ends,
            matcher.beats[old], matcher.lapses[old], matcher.whole[old],
        ),
        meter,
    )  # fmt: skip


def byte_length(terminal: Terminal, meter: Meter, *, shortest: bool = False) -> int | None:
    """How many bytes all texts of a terminal have; None where they differ, or no regex says what they are.

    With ``shortest`` these are the texts that begin with no other one. Raises the errors of a regex.
    """
    if terminal.pattern is None or not MARKED.isdisjoint(terminal.pattern):
        return None
    dfa = language(parse(terminal.pattern, 0, meter), meter, edges=False, count=False)
    depths = {dfa.start: 0}
    for state, depth in (todo := [*depths.items()]):  # grows as it goes
        if shortest and dfa.accepting[state]:
            continue
        for target in {*dfa.table[state].tolist()} - {-1}:
            if target not in depths:
                depths[target] = depth + 1
                todo.append((target, depth + 1))
            elif depths[target] != depth + 1:
                return None
    found = {depth for state, depth in todo if dfa.accepting[state]}
    return found.pop() if len(found) == 1 else None
