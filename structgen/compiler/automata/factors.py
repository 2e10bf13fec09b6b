"""What stands somewhere in a sequence of texts, one or several of them in a row, as an automaton of its bytes.

The texts that a sequence has as *factors* are those that the states of its suffix automaton read, all of which accept
(Blumer, Blumer, Haussler, Ehrenfeucht, Chen & Seiferas 1985, The smallest automaton recognizing the subwords of a
text). Over units it has at most two states and three moves for each of them. A move is then spelled in bytes, and as
one unit may begin like another, the whole is determinised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...budget import Meter
from .dfa import Dfa, determinize, minimize
from .nfa import NfaBuilder

_DOING = "building the automaton of a text's parts"

#: Bytes of a state over units, and of a byte of a move.
_BYTES_OF_STATE, _BYTES_OF_EDGE = 420, 60

#: States over units between two looks at the meter.
_FEW = 4096


def factors_dfa(units: Sequence[str], meter: Meter) -> Dfa:
    """The minimal automaton of all runs of units, joined; the empty one among them. Raises `BudgetExceededError`."""
    spelled = [unit.encode("utf-8", "surrogatepass") for unit in units if unit]
    number: dict[bytes, int] = {}
    moves = _suffix_automaton([number.setdefault(unit, len(number)) for unit in spelled], meter)
    texts = [*number]
    inner = sum(len(texts[unit]) - 1 for there in moves for unit in there)
    # A state over bytes that is on the way costs a fraction of what one of the automaton does.
    meter.check_states((len(moves) + inner) // 4, _DOING)
    meter.check_memory(len(moves) * _BYTES_OF_STATE + (inner + 2 * len(moves)) * _BYTES_OF_EDGE, _DOING)
    builder = NfaBuilder()
    builder.owners = [-1] * (len(moves) + inner + 1)
    accept = len(moves) + inner
    free = len(moves)
    for state, there in enumerate(meter.each(moves, _DOING, every=_FEW)):
        edges: list[tuple[int, int, int, int]] = []
        for unit, target in there.items():
            data = texts[unit]
            last = state
            for byte in data[:-1]:
                edges.append((last, byte, byte, free))
                last = free
                free += 1
            edges.append((last, data[-1], data[-1], target))
        if edges:
            builder.edge_blocks.append(np.array(edges, np.int32))
        builder.epsilon(state, accept)
    return minimize(determinize(builder.build(0, accept), meter, _DOING), meter)


def _suffix_automaton(sequence: Sequence[int], meter: Meter) -> list[dict[int, int]]:
    """By state its moves, the start first. Each unit adds a state, and one more where it tells two apart."""
    moves: list[dict[int, int]] = [{}]
    link, length = [-1], [0]
    last = 0
    for unit in meter.each(sequence, _DOING, every=_FEW):
        new = len(moves)
        if new % _FEW < 2:
            meter.check_memory(new * _BYTES_OF_STATE, _DOING)
        moves.append({})
        link.append(0)
        length.append(length[last] + 1)
        at = last
        while at >= 0 and unit not in moves[at]:
            moves[at][unit] = new
            at = link[at]
        if at >= 0:
            target = moves[at][unit]
            if length[target] != length[at] + 1:
                target = _split(moves, link, length, at, unit)
            link[new] = target
        last = new
    return moves


def _split(moves: list[dict[int, int]], link: list[int], length: list[int], at: int, unit: int) -> int:
    """A copy of where a unit leads, for the shorter texts that lead there."""
    target, copy = moves[at][unit], len(moves)
    moves.append(moves[target].copy())
    link.append(link[target])
    length.append(length[at] + 1)
    link[target] = copy
    while at >= 0 and moves[at].get(unit) == target:
        moves[at][unit] = copy
        at = link[at]
    return copy
