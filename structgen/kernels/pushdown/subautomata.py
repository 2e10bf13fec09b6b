"""Texts that name parts of an automaton with a stack, by which equal ones are found."""

from __future__ import annotations

import numpy as np

from ..jit import inlined, kernel
from ..values import DEAD, SET
from .arena import (
    A_CLASS_OF,
    A_CLASSES,
    A_EDGE_START,
    A_EDGES,
    A_LIKE,
    A_LIVE,
    A_RECORDS,
    A_RETURNS,
    A_SINGLE,
    A_STATES,
    NOT_SINGLE,
    OPEN,
    SINGLE_POP,
    _come_to_open,
)

#: The words of `name_subautomaton`'s text.
_ALIVE, _NO_LOOP, _COMMA = (np.frombuffer(text, np.uint8) for text in (b"[True", b"[False", b", "))
_POP, _OPENED, _CLOSED, _END = (np.frombuffer(text, np.uint8) for text in (b"'pop'", b"(", b")", b"]"))


@inlined
def _write(text, n, words):
    """Append words to a text of length ``n``; returns the length, which exceeds the room where they do not fit."""
    for i in range(len(words)):
        if n < len(text):
            text[n] = words[i]
        n += 1
    return n


@inlined
def _write_number(text, n, number):
    """`_write` of a number in decimal digits."""
    rest = number
    if number < 0:
        if n < len(text):
            text[n] = 45
        n += 1
        rest = -number
    digits = 1
    power = np.int64(10)
    while rest >= power:
        digits += 1
        power *= 10
    for k in range(digits - 1, -1, -1):
        if n + k < len(text):
            text[n + k] = 48 + rest % 10
        rest //= 10
    return n + digits


@inlined
def _local(states, known, n, state):
    """The number of a state among ``states[:n]``, found by its hash; ``n`` for a new one, which is entered if there
    is room."""
    slot = (np.int64(state) * 0x9E3779B1 >> 7) & (len(known) - 1)
    while known[slot] >= 0:
        if states[known[slot]] == state:
            return known[slot]
        slot = (slot + 1) & (len(known) - 1)
    if n < len(states):
        states[n] = state
        known[slot] = n
    return n


@kernel
def name_subautomaton(arena, zone_kept, states, known, table, text):
    """What tells the automaton that begins at a state from others, whatever it lies in, as a text.

    Parameters
    ----------
    zone_kept:
        A zone that all counts are taken to stay in, so that bounds do not matter; or -1.
    states:
        ``int32[largest]``: the state to begin with, out: all that it comes to, numbered in the order of their edges.
    known:
        ``int32[2 ** k]``, -1 each, with more room than ``states``.
    table:
        ``int32[largest, classes]``, out: by number what each does with a class of bytes, the length of ``states``
        for a pop; 0 where it counts.
    text:
        ``uint8[*]``, out: state after state the first bytes of its edges, the last ones, whether it counts, and the
        numbers of where they lead, as Python writes a list.

    Returns
    -------
    (how many states, how long a text, the last loop or -1): no states where one calls, returns, branches, has a set,
    is open or like another, where the automaton counts in several loops, begins to count and stays in a zone, or
    finds no room.
    """
    far = zone_kept >= 0
    n_states = arena[A_STATES]
    n_classes = arena[A_CLASSES]
    classes = arena[A_CLASS_OF]
    slot = (np.int64(states[0]) * 0x9E3779B1 >> 7) & (len(known) - 1)
    known[slot] = 0
    n = np.int64(1)
    length = np.int64(0)
    loop = np.int64(-1)
    here = 0
    while here < n:
        state = states[here]
        begin = arena[arena[A_EDGE_START] + state]
        end = arena[arena[A_EDGE_START] + state + 1]
        if arena[arena[A_LIKE] + state] == OPEN:
            _come_to_open(arena, state)
        if arena[arena[A_RETURNS] + state] or arena[arena[A_LIKE] + state] or length + 2 * (end - begin) > len(text):
            return 0, 0, -1
        for edge in range(begin, end):
            text[length + edge - begin] = arena[arena[A_EDGES] + 2 * edge] & 255
            text[length + end + edge - 2 * begin] = arena[arena[A_EDGES] + 2 * edge] >> 8
        length += 2 * (end - begin)
        length = _write(text, length, _ALIVE if arena[arena[A_LIVE] + state] >= 0 and not far else _NO_LOOP)
        for c in range(n_classes):
            table[here, c] = DEAD
        for edge in range(begin, end):
            length = _write(text, length, _COMMA)
            at = arena[A_EDGES] + 2 * edge
            target = np.int64(arena[at + 1])
            into = np.int64(DEAD)
            if target >= n_states:
                single = arena[arena[A_SINGLE] + target - n_states]
                if single == NOT_SINGLE:
                    return 0, 0, -1
                if single == SINGLE_POP:
                    length = _write(text, length, _POP)
                    into = np.int64(len(states))
                    target = np.int64(-2)
                else:
                    r = arena[A_RECORDS] + 5 * single
                    if far and arena[r] == SET:
                        return 0, 0, -1
                    if far:
                        target = np.int64(arena[r + 2 + zone_kept])
                    else:
                        if loop >= 0 and loop != arena[r + 1]:
                            return 0, 0, -1
                        loop = np.int64(arena[r + 1])
                        length = _write(text, length, _OPENED)
                        length = _write_number(text, length, np.int64(arena[r]))
                        for zone in range(1 if arena[r] == SET else 3):
                            length = _write(text, length, _COMMA)
                            number = np.int64(arena[r + 2 + zone])
                            if number >= 0:
                                number = np.int64(_local(states, known, n, number))
                                if number == len(states):
                                    return 0, 0, -1
                                n = max(n, number + 1)
                            length = _write_number(text, length, number)
                        length = _write(text, length, _CLOSED)
                        into = np.int64(0)
                        target = np.int64(-2)
            if target != -2:
                if target >= 0:
                    target = np.int64(_local(states, known, n, target))
                    if target == len(states):
                        return 0, 0, -1
                    n = max(n, target + 1)
                length = _write_number(text, length, target)
                into = target
            for c in range(arena[classes + (arena[at] & 255)], arena[classes + (arena[at] >> 8)] + 1):
                table[here, c] = into
        length = _write(text, length, _END)
        if length > len(text):
            return 0, 0, -1
        here += 1
    return n, length, loop
