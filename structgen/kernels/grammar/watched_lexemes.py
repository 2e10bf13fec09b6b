"""What lexemes can become while an earlier one is watched: pairs of lexer states, and a least solution over them.

Used by `structgen.runtime.grammar.completability.watched_futures`. A table of what is known of pairs is two arrays as
long, a power of 2: a slot's key, 0 where it is free, and the number of a set.
"""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, boolean, int32, int64, uint8, uint32


@kernel
def follow_watched(
    table: int32[:, ::1], beats: uint8[::1], state: int64, watch: int64, keys: int64[::1], known: int32[::1],
    pairs: Out[int32[:, ::1]], slots: Out[int32[::1]], seen: Out[int32[::1]], begins: Out[int32[::1]],
    moves: Out[int32[::1]],
) -> int64:  # fmt: skip
    """The lexer states that a lexeme comes to, each with that of an earlier one, as long as that is not completed.

    Parameters
    ----------
    table, beats:
        The lexer, as in `structgen.runtime.grammar.tables`.
    state, watch:
        The first pair, of which nothing is known.
    keys, known:
        ``int64[*]``, ``int32[*]``: what is known of pairs. From these the lexeme is not followed.
    pairs, slots, seen:
        ``int32[most, 2]``, out; for twice as many, a power of 2, zeros; ``int32[lexer states + most + sets]``, zeros.
    begins, moves:
        ``int32[most + 1]`` and ``int32[*]``, out: where what a pair comes to begins, pair by pair, and that itself,
        once each: the number of a pair; or -1 less a lexer state where nothing is watched any more; or, -1 less the
        number of lexer states, less the set that is known of a pair.

    Returns
    -------
    How many pairs there are, or -1 where there is no room for them.
    """
    states = len(table)
    pairs[0, 0] = state
    pairs[0, 1] = watch
    slots[_pair_slot(slots, pairs, state, watch)] = 1
    begins[0] = 0
    n = 1
    m = 0
    k = 0
    while k < n:
        for c in range(table.shape[1]):
            s = table[pairs[k, 0], c]
            w = table[pairs[k, 1], c]
            if s < 0 or (w >= 0 and beats[w]):
                continue
            place = np.int64(s)
            if w >= 0:
                at = _key_slot(keys, s, w)
                if keys[at]:
                    place = states + known[at]
                else:
                    slot = _pair_slot(slots, pairs, s, w)
                    if not slots[slot]:
                        if n == len(pairs):
                            return -1
                        pairs[n, 0] = s
                        pairs[n, 1] = w
                        n += 1
                        slots[slot] = n
                    place = -np.int64(slots[slot])
            # Counted from the end for pairs.
            if seen[place] != k + 1:
                if m == len(moves):
                    return -1
                seen[place] = k + 1
                moves[m] = -1 - place
                m += 1
        k += 1
        begins[k] = m
    return n


@kernel
def solve_watched(
    begins: int32[::1], moves: int32[::1], own: int32[::1], set_of: int32[::1], sets: uint32[:, ::1],
    scratch: Out[int32[:, ::1]], slots: Out[int32[::1]], values: Out[uint32[:, ::1]], number: Out[int32[::1]],
    first: Out[int32[::1]],
) -> int64:  # fmt: skip
    """By pair, the union of the sets of all that it comes to.

    Tarjan's strongly connected components with a union on the way, as `structgen.runtime.core.digraph.solve` has it.

    Parameters
    ----------
    begins, moves:
        As `follow_watched` leaves them.
    own:
        ``int32[pairs]``: by pair the set of what a lexeme is that ends there, -1 for none.
    set_of:
        ``int32[*]``: the sets of moves from -1 down.
    sets:
        ``uint32[*, words]``.
    scratch, slots:
        ``int32[4, pairs]``, zeros; for twice as many, a power of 2, zeros.
    values, number, first:
        ``uint32[pairs, words]``, ``int32[pairs]``, ``int32[pairs]``, out: values as they grew; by pair which of the
        different ones it has; and of each of those the place in ``values``.

    Returns
    -------
    How many different values there are.
    """
    done = len(own) + 1
    different = 0
    # Rows of scratch: depth on the stack, the way to here, the stack, and the next move.
    _enter(0, begins, own, sets, scratch, values)
    scratch[0, 0] = 1
    scratch[1, 0] = 0
    scratch[2, 0] = 0
    top = 1
    level = 1
    while level:
        here = scratch[1, level - 1]
        at = scratch[3, here]
        if at < begins[here + 1]:
            there = moves[at]
            if there < 0:
                _add_words(values, here, sets, set_of[-1 - there])
            elif scratch[0, there] == 0:
                _enter(there, begins, own, sets, scratch, values)
                scratch[1, level] = there
                scratch[2, top] = there
                level += 1
                top += 1
                scratch[0, there] = top
                continue  # and look at it again from here
            else:
                if scratch[0, there] < scratch[0, here]:
                    scratch[0, here] = scratch[0, there]
                _add_words(values, here, values, there)
            scratch[3, here] = at + 1
            continue
        level -= 1
        if scratch[2, scratch[0, here] - 1] != here:
            continue
        slot = _value_slot(slots, values, first, here)
        if not slots[slot]:
            first[different] = here
            different += 1
            slots[slot] = different
        member = -1
        while member != here:
            top -= 1
            member = scratch[2, top]
            if member != here:
                scratch[0, member] = done
                _copy_words(values, member, here)
            number[member] = slots[slot] - 1
        scratch[0, here] = done
    return different


@kernel(releases_gil=False)
def keep_watched(
    keys: Out[int64[::1]], known: Out[int32[::1]], pairs: int32[:, ::1], count: int64, numbers: int32[::1]
) -> None:
    """Enter the sets of so many pairs into a table that has room for them."""
    for k in range(count):
        at = _key_slot(keys, pairs[k, 0], pairs[k, 1])
        known[at] = numbers[k]
        keys[at] = _key(pairs[k, 0], pairs[k, 1])


@kernel(releases_gil=False)
def find_watched(keys: int64[::1], known: int32[::1], state: int64, watch: int64) -> int64:
    """The set of a pair; -1 where it is not known."""
    at = _key_slot(keys, state, watch)
    return known[at] if keys[at] else -1


@kernel
def is_subsumed(
    table: int32[:, ::1], beats: uint8[::1], lapses: uint8[::1], a: int64, b: int64, pairs: Out[int32[:, ::1]],
    slots: Out[int32[::1]],
) -> boolean:  # fmt: skip
    """Whether state ``a`` is beaten, or lapses, wherever ``b`` does.

    Parameters
    ----------
    table, beats, lapses:
        The lexer, as in `structgen.runtime.grammar.tables`.
    pairs, slots:
        Scratch: ``int32[most + 1, 2]``; and for twice as many at least, a power of 2, zeros.

    Returns
    -------
    Also False where there are more than ``most`` pairs besides the first.
    """
    pairs[0, 0] = a
    pairs[0, 1] = b
    n = 1
    k = 0
    while k < n:
        here = pairs[k, 0]
        there = pairs[k, 1]
        k += 1
        if lapses[there] and not lapses[here]:
            return False
        for c in range(table.shape[1]):
            first = table[here, c]
            second = table[there, c]
            if second < 0 or (first >= 0 and beats[first]) or first == second:
                continue
            if first < 0 or beats[second]:
                return False
            slot = _pair_slot(slots, pairs, first, second)
            if not slots[slot]:
                if n == len(pairs):
                    return False
                pairs[n, 0] = first
                pairs[n, 1] = second
                n += 1
                slots[slot] = n
    return True


@helper
def _enter(pair, begins, own, sets, scratch, values):
    """Begin with a pair."""
    scratch[3, pair] = begins[pair]
    for w in range(values.shape[1]):
        values[pair, w] = sets[own[pair], w] if own[pair] >= 0 else np.uint32(0)


@helper
def _add_words(values, here, others, there):
    for w in range(values.shape[1]):
        values[here, w] |= others[there, w]


@helper
def _copy_words(values, to, source):
    for w in range(values.shape[1]):
        values[to, w] = values[source, w]


@helper
def _scattered(key):
    """Bits that depend on all of a key's."""
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33))


@helper
def _key(a, b):
    """Of two numbers, both at least 0: not 0."""
    return (np.int64(a) << 32 | np.int64(b)) + 1


@helper
def _key_slot(keys, a, b):
    """The slot of a pair, which is free where the pair is new; at least half of them are free."""
    key = _key(a, b)
    mask = len(keys) - 1
    slot = _scattered(key) & mask
    while keys[slot] and keys[slot] != key:
        slot = slot + 1 & mask
    return slot


@helper
def _pair_slot(slots, pairs, a, b):
    """As `_key_slot`, where slots have 1 plus the number of a pair."""
    mask = len(slots) - 1
    slot = _scattered(_key(a, b)) & mask
    while slots[slot]:
        if pairs[slots[slot] - 1, 0] == a and pairs[slots[slot] - 1, 1] == b:
            break
        slot = slot + 1 & mask
    return slot


@helper
def _value_slot(slots, values, first, row):
    """As `_pair_slot`, for a row of values; slots have 1 plus the number of a different one."""
    mixed = np.int64(0)
    for w in range(values.shape[1]):
        mixed = _scattered(mixed << 32 ^ np.int64(values[row, w]) ^ mixed + w)
    mask = len(slots) - 1
    slot = mixed & mask
    while slots[slot]:
        other = first[slots[slot] - 1]
        w = 0
        while w < values.shape[1] and values[other, w] == values[row, w]:
            w += 1
        if w == values.shape[1]:
            break
        slot = slot + 1 & mask
    return slot
