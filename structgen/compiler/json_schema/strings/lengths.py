"""Bounds on the number of characters, put on an automaton.

Two ways. *Spelled out*: the product with an automaton that knows the number, which has a state for each number.
*Counted*, where the bound is large: only the beginning and the end are spelled out, in between a counter is kept::

    characters   0 .. first              first + 1 .. last - 1     last .. maximum
    states       one for each number     one, with a count         one for each number

``first`` is at least the minimum, so that the number no longer decides what is accepted, and ``maximum - last`` is so
large that in the middle every state can still finish: a state with a count is live whatever its count is.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import replace
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter
from ....system.properties import cached_property
from ...automata.dfa import TARGET_LOW, Dfa, intersect, minimize, reaching, same_classes
from ...automata.words import nothing, plain_dfa
from .words import everything

_DEAD = -1
#: Bounds up to here are spelled out.
COUNT_FROM = 24
#: What it takes to count the characters of an automaton, for each entry of the table with all zones.
_BYTES_OF_ENTRY, _ENTRIES_PER_SECOND = 40, 4_000_000
_DOING = "bounding the length of a string"
#: Automata of lengths up to here are remembered.
_REMEMBERED = 1_000
#: So many characters are spelled out at the start if that helps.
_LONGEST_START = 64


def between_characters(dfa: Dfa) -> NDArray[np.bool_]:
    """Which states lie between two characters, not inside one: no continuation byte leads on from them."""
    inside = dfa.table[:, dfa.classes[0x80] : dfa.classes[0xBF] + 1]  # classes are numbered in order
    found: NDArray[np.bool_] = (inside == _DEAD).all(axis=1)
    return found


def bounded(dfa: Dfa, minimum: int, maximum: int | None, meter: Meter, *, count: bool = True) -> Dfa:
    """The texts of ``dfa``, which has no counters, of ``minimum`` to ``maximum`` characters.

    With ``count``, a large maximum may be counted. Raises `BudgetExceededError`.
    """
    if not dfa.states or (maximum is not None and maximum < minimum):
        return nothing()
    if minimum == 0 and maximum is None:
        return dfa
    widths = _widths(dfa, meter)
    if minimum <= widths.shortest[dfa.start]:
        minimum = 0
    if maximum is not None and widths.longest is not None and widths.longest <= maximum:
        maximum = None
    if minimum == 0 and maximum is None:
        return dfa
    if count and maximum is not None and maximum > COUNT_FROM:
        first, to_go = _spelled_ends(widths, minimum, maximum)
        last = maximum - max(0, to_go - 1)
        if last - first >= 2:
            return _counted(dfa, minimum, first, last, maximum, meter)
    last = minimum if maximum is None else maximum
    meter.check_states(last // 4, "spelling out the length of a string")
    _check(last * everything().table.size, meter)
    lengths = _lengths if last <= _REMEMBERED else _lengths.__wrapped__
    return intersect(dfa, lengths(minimum, maximum), meter, _DOING)


def _check(entries: int, meter: Meter) -> None:
    """Refuse a table that would take too much memory or time to make."""
    meter.check_memory(_BYTES_OF_ENTRY * entries, _DOING)
    if entries > meter.work(_ENTRIES_PER_SECOND):
        raise meter.out_of_time(_DOING)


def text_widths(dfa: Dfa, meter: Meter) -> tuple[int, int | None]:
    """The fewest and the most characters of a text of ``dfa``, which has no counters; None for no bound.

    Both are 0 where there is no text.
    """
    if not dfa.states:
        return 0, 0
    # The usual answers are seen at a glance.
    shortest = 0 if dfa.accepting[dfa.start] else _widths(dfa, meter).shortest[dfa.start]
    return shortest, None if _has_self_loop(dfa) else _widths(dfa, meter).longest


def _has_self_loop(dfa: Dfa) -> bool:
    """Whether a state leads to itself, as it does where anything may follow; the texts are of any length then."""
    return bool((dfa.table == np.arange(dfa.states)[:, None]).any())


def _spelled_ends(widths: _Widths, minimum: int, maximum: int) -> tuple[int, int]:
    """How many characters to spell out at the start, and the most that a text needs to its end after that.

    States that only the start can be in, of a long prefix say, need not be finished from the middle, nor need those
    that always finish within the maximum.
    """
    longest = max(minimum, _LONGEST_START)
    to_go = [0] * (longest + 2)  # by the latest number of characters
    for least, at in zip(widths.shortest, widths.latest, strict=True):
        if at is not None and at + least <= maximum:
            continue  # it always finishes in time
        place = longest + 1 if at is None or at > longest else at
        to_go[place] = max(to_go[place], least)
    most = list(itertools.accumulate(reversed(to_go), max))[::-1]
    # A state at the start is one of few, at the end it may be any.
    first = min(range(minimum, longest + 1), key=lambda first: first + 4 * most[first + 1])
    return first, most[first + 1]


@lru_cache(maxsize=32)
def _lengths(minimum: int, maximum: int | None) -> Dfa:
    """All texts of so many characters, not trimmed."""
    one = everything()
    last = minimum if maximum is None else maximum
    turns = between_characters(one)[one.table] & (one.table != _DEAD)
    step = np.where(turns, one.states, 0)
    offsets = np.arange(last + 1)[:, None, None] * one.states
    table = np.where(one.table == _DEAD, _DEAD, one.table + step + offsets)
    if maximum is None:
        table[-1] = np.where(one.table == _DEAD, _DEAD, one.table + last * one.states)
    else:
        table[-1][turns] = _DEAD
    accepting = np.tile(one.accepting, last + 1)
    accepting[: minimum * one.states] = 0
    return plain_dfa(table.reshape(-1, one.n_classes).astype(np.int32), one.classes, accepting)


_known_widths: WeakKeyDictionary[Dfa, _Widths] = WeakKeyDictionary()


def _widths(dfa: Dfa, meter: Meter) -> _Widths:
    known = _known_widths.get(dfa)
    if known is None:
        known = _known_widths[dfa] = _Widths(dfa, meter)
    return known


class _Widths:
    """How many characters there can be on the way from and to the states of an automaton, worked out when asked."""

    def __init__(self, dfa: Dfa, meter: Meter) -> None:
        between = between_characters(dfa).tolist()
        self.heads = [set(row.tolist()) - {_DEAD} for row in meter.each(dfa.table, _DOING)]
        self.tails: list[list[int]] = [[] for _ in range(dfa.states)]
        for tail, heads in meter.each(enumerate(self.heads), _DOING):
            for head in heads:
                self.tails[head].append(tail)
        self.weight = [int(there) for there in between]  # a character ends where a state between two is entered
        self._start = dfa.start
        self._accepting: list[int] = np.flatnonzero(dfa.accepting).tolist()

    @cached_property
    def shortest(self) -> list[int]:
        """By state, the fewest characters to an accepting one."""
        return self._shortest(self._accepting)

    @cached_property
    def latest(self) -> list[int | None]:
        """By state, the most characters on a path from the start, None for no bound."""
        return self._latest(self._start)

    @cached_property
    def longest(self) -> int | None:
        """The most characters in a text, None for no bound."""
        return None if None in self.latest else max(self.latest[state] or 0 for state in self._accepting)

    def _shortest(self, accepting: list[int]) -> list[int]:
        """Breadth first from the end, where edges weigh 0 or 1."""
        found = [-1] * len(self.heads)
        todo = deque((state, 0) for state in accepting)
        while todo:
            state, distance = todo.popleft()
            if found[state] >= 0:
                continue
            found[state] = distance
            for tail in self.tails[state]:
                if found[tail] < 0:
                    if self.weight[state]:
                        todo.append((tail, distance + 1))
                    else:
                        todo.appendleft((tail, distance))
        return found

    def _latest(self, start: int) -> list[int | None]:
        """In topological order; what lies on a cycle or behind one is never reached by it."""
        missing = [len(tails) for tails in self.tails]
        longest = [0] * len(missing)
        found: list[int | None] = [None] * len(missing)
        todo = [start] if not missing[start] else []
        while todo:
            state = todo.pop()
            found[state] = longest[state]
            for head in self.heads[state]:
                longest[head] = max(longest[head], longest[state] + self.weight[head])
                missing[head] -= 1
                if not missing[head]:
                    todo.append(head)
        return found


def _counted(dfa: Dfa, minimum: int, first: int, last: int, maximum: int, meter: Meter) -> Dfa:
    """The counted form. State ``q`` of ``dfa`` in zone ``z`` has the number ``z * dfa.states + q``.

    Zones ``0 .. first`` are numbers of characters, then comes the middle, then ``last .. maximum``.
    """
    n, middle = dfa.states, first + 1
    zones = middle + 1 + maximum - last + 1
    _check(zones * dfa.table.size, meter)
    live = dfa.table != _DEAD
    ends = between_characters(dfa)[dfa.table] & live  # a character
    offset = n * np.arange(zones)[:, None, None]
    table = np.where(live, dfa.table + n * ends + offset, _DEAD)
    table[middle - 1][ends] = -2 - dfa.table[ends]
    table[middle][ends] = -2 - n - dfa.table[ends]
    table[-1][ends] = _DEAD
    inner = np.arange(n, dtype=np.int32)[:, None] + n * middle
    entering = np.hstack([inner * 0 + kernels.SET, inner * 0, inner, inner, inner])
    counting = np.hstack([inner * 0 + kernels.INC, inner * 0, inner * 0 + _DEAD, inner, inner + n])
    accepting = np.tile(dfa.accepting, zones)
    accepting[: n * minimum] = 0
    counted = replace(
        dfa,
        table=table.reshape(-1, dfa.n_classes).astype(np.int32),
        accepting=accepting,
        records=np.vstack([entering, counting]).astype(np.int32),
        loops=np.array([(1, last - first)], np.int64),
    )
    return minimize(trimmed(counted), meter)


def others(dfa: Dfa, meter: Meter) -> Dfa:
    """All texts but those of ``dfa``, which may count and whose texts are bounded: counted as they are.

    Counting is deterministic, so what it refuses, at any count, is what leads to a state where anything may follow.
    Each state is paired with that of `everything`, by which it is known which bytes can follow.
    """
    a, b = same_classes(dfa, everything())
    pairs = b.states
    _check((a.states + 1) * pairs * a.n_classes, meter)
    sink = a.states

    def paired(left: NDArray[np.int32], right: NDArray[np.integer]) -> NDArray[np.integer]:
        found: NDArray[np.integer] = np.where(left == _DEAD, sink, left) * pairs + right
        return found

    left = np.vstack([a.table, np.full((1, a.n_classes), _DEAD, np.int32)])[:, None, :]
    right = b.table[None, :, :]
    entry = np.where(left < _DEAD, -2 - ((-2 - left) * pairs + right), paired(left, right))
    every = np.arange(pairs)
    records = np.repeat(a.records, pairs, axis=0)
    for zone in range(TARGET_LOW, records.shape[1] if len(records) else 0):
        records[:, zone] = paired(records[:, zone], np.tile(every, len(a.records)))
    product = replace(
        a,
        table=np.where(right == _DEAD, _DEAD, entry).reshape(-1, a.n_classes).astype(np.int32),
        accepting=(np.append(a.accepting, 0)[:, None] < b.accepting[None, :]).reshape(-1).astype(np.uint8),
        records=records.astype(np.int32),
        start=a.start * pairs + b.start,
    )
    return minimize(trimmed(product), meter)


def trimmed(dfa: Dfa) -> Dfa:
    """Without the states that nothing leads to and those that lead to no accepting one."""
    tails, classes = np.nonzero(dfa.table != _DEAD)
    entries = dfa.table[tails, classes]
    plain = entries >= 0
    targets = dfa.records[-2 - entries[~plain], TARGET_LOW:]
    all_tails = np.r_[tails[plain], np.repeat(tails[~plain], 3)].astype(np.int32)
    all_heads = np.r_[entries[plain], targets.reshape(-1)].astype(np.int32)
    real = all_heads >= 0
    all_tails, all_heads = all_tails[real], all_heads[real]
    is_start = np.zeros(dfa.states, np.bool_)
    is_start[dfa.start] = True
    useful = reaching(all_tails, all_heads, dfa.accepting) & reaching(all_heads, all_tails, is_start)
    if not useful[dfa.start]:
        return nothing()
    new = np.full(dfa.states + 1, _DEAD, np.int32)
    new[:-1][useful] = np.arange(int(useful.sum()))
    records = dfa.records.copy()
    records[:, TARGET_LOW:] = new[records[:, TARGET_LOW:]]
    dead = np.append((records[:, TARGET_LOW:] == _DEAD).all(axis=1), False)
    table = dfa.table[useful]
    number = np.maximum(-2 - table, 0)
    table = np.where(table < _DEAD, np.where(dead[number], _DEAD, table), new[np.maximum(table, _DEAD)])
    return replace(
        dfa, table=table.astype(np.int32), accepting=dfa.accepting[useful], records=records, start=int(new[dfa.start])
    )
