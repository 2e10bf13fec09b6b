"""Building an automaton by exploring it from its start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from ....budget import Meter
from ...automata.dfa import Dfa, minimize, trim

#: Symbols, by column of the table: all that numbers are spelled with.
_SYMBOLS = b"-./0123456789:"
_COLUMNS = len(_SYMBOLS) + 1
CLASSES = np.zeros(256, np.int32)
for _byte in _SYMBOLS:
    CLASSES[_byte:] += 1
MINUS, POINT, ZERO = (int(CLASSES[byte]) for byte in b"-.0")

_DOING = "spelling numbers"

#: A state while exploring: a tag and what is known. Moves lead to the state after a symbol.
State: TypeAlias = tuple[Any, ...]
Moves: TypeAlias = Iterable[tuple[int, State]]


def explored(start: State, moves: Callable[[State], Moves], accepts: Callable[[State], bool], meter: Meter) -> Dfa:
    """The minimal automaton of what ``moves`` and ``accepts`` describe."""
    numbers = {start: 0}
    order = [start]
    rows: list[list[int]] = []
    for state in order:
        if len(rows) % 64 == 63:
            meter.check_time(_DOING)
            meter.check_states(len(order), _DOING)
        row = [-1] * _COLUMNS
        for column, target in moves(state):
            number = numbers.setdefault(target, len(order))
            if number == len(order):
                order.append(target)
            row[column] = number
        rows.append(row)
    dfa = Dfa(
        table=np.array(rows, np.int32),
        classes=CLASSES,
        accepting=np.array([accepts(state) for state in meter.each(order, _DOING)], np.uint8),
        records=np.zeros((0, 5), np.int32),
        loops=np.zeros((0, 2), np.int64),
        start=0,
    )
    return minimize(trim(dfa), meter)
