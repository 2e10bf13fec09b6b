"""Tokens and masks of many sequences at once, each of which moves over a stepper of its own.

Where a sequence has come to is a *place*, one number: ``stepper << 32 | configuration``. Steppers are found by
``heads``, ``int64[3 * steppers]``: the address and the length of each one's head (0 where there is no such stepper),
and whether steps are made in it, rather than only those found that were made before. A head is a store's (`layout`)
or, which its length tells, that of an automaton without a stack (`automata`).
"""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64
from ..values import DEAD, LONG_GAP
from .automata import AUTOMATON_HEAD, D_ACCEPTING, D_POOL, D_ROW_OF, step_automaton, write_state_mask
from .layout import *
from .masks import _are_outdated, write_mask
from .steps import find_token, step_token

#: The places of a text that has ended, and of one without a definition.
ENDED, FREE = 0, 1

#: Columns of ``heads``: address and length, whether steps are made.
H_STEPS, HEADS = 2, 3

#: Steps that are made in one call at most: the GIL is held meanwhile.
_MOST_STEPS = 64

#: Parts of a mask of which it is known whether they have a bit, and rows of a union that are read ahead.
_BLOCKS, _NEAR = 63, 4


@helper
def _has_head(heads, place):
    """Whether there is the stepper of a place."""
    number = place >> 32
    return 0 < number < len(heads) // HEADS and heads[HEADS * number + 1] > 0


@helper
def _is_automaton(heads, place):
    return heads[HEADS * (place >> 32) + 1] == AUTOMATON_HEAD


@helper
def _may_end_at(heads, place):
    """Whether the text is complete at a place, a configuration that there is."""
    head, config = words64(heads, HEADS * (place >> 32)), place & 0xFFFFFFFF
    if _is_automaton(heads, place):
        accepting = octets(head, D_ACCEPTING)
        return accepting[config % len(accepting)] != 0
    return configs64(head, S_CONFIGS)[config, C_ACCEPTS] != 0


@kernel(releases_gil=False)
def follow_tokens(
    heads: int64[::1], tokens: int32[::1], above: int32[::1], begins: int64[::1], eos: int32[::1],
    reached: Out[int64[::1]],
) -> int64:  # fmt: skip
    """Follow trees of tokens, each from the place of a sequence.

    Parameters
    ----------
    heads:
        The steppers. The lock of each of those in which steps are made is held.
    tokens, above, begins:
        ``int32[n]``, ``int32[n]``, ``int64[n]``: the tokens, the index of the token before each, an earlier one, or
        -1, and the place that one without begins at.
    eos:
        ``int32[words]``: the EOS ids as a row.
    reached:
        ``int64[n]``: where each token leads, `DEAD` where it or one before it is refused. What is lower is looked at,
        and stays so where something is to be done first (see `layout`), `UNKNOWN` where that is so of a token before.

    Returns how many stay.
    """
    pending = 0
    left = _MOST_STEPS
    for i in range(len(tokens)):
        if reached[i] >= DEAD:
            continue
        place = begins[i] if above[i] < 0 else reached[above[i]]
        token = np.int64(tokens[i])
        ends = (eos[token >> 5] >> np.int32(token & 31)) & 1
        target = np.int64(DEAD)
        if place == FREE:
            target = np.int64(FREE)
        elif place == ENDED:
            target = np.int64(ENDED) if ends else target
        elif place < DEAD:
            target = np.int64(UNKNOWN)
        elif place > FREE and not _has_head(heads, place):
            target = np.int64(NO_CONFIG)
        elif place > FREE:
            head, config = words64(heads, HEADS * (place >> 32)), place & 0xFFFFFFFF
            if _is_automaton(heads, place):
                target = np.int64(step_automaton(head, config, token))
            else:
                target = np.int64(find_token(head, config, token))
                if target == NOT_STEPPED and left > 0 and heads[HEADS * (place >> 32) + H_STEPS]:
                    left -= 1
                    target = np.int64(step_token(head, config, token))
            if target >= 0:
                target |= place >> 32 << 32
            elif target == DEAD and ends and _may_end_at(heads, place):
                target = np.int64(ENDED)
        reached[i] = target
        if target < DEAD:
            pending += 1
    return pending


@kernel(releases_gil=False)
def write_masks(
    heads: int64[::1], places: int64[::1], always: int32[:, ::1], eos: int32[::1], masks: Out[int32[:, ::1]],
    shown: Out[int64[::1]], blocks: Out[int64[::1]],
) -> int64:  # fmt: skip
    """Write the masks of places to an array.

    Parameters
    ----------
    heads:
        The steppers.
    places:
        ``int64[n]``, none of which is negative.
    always, eos:
        ``int32[2, *]``: the masks of the places `ENDED` and `FREE`; ``int32[*]``: the EOS ids.
    masks:
        ``int32[n, width]``; what is wider than a mask becomes 0.
    shown:
        ``int64[n]``: the places whose masks are there already; updated. What is to be done first (see `layout`) stands
        there where a mask was not written.
    blocks:
        ``int64[n]``: which of up to 63 parts of a mask may have a bit, each of as many words, a power of two; updated.
        All of them may in -1.

    Returns how many were not.
    """
    missing = 0
    for i in range(len(places)):
        is_store = places[i] > FREE and _has_head(heads, places[i]) and not _is_automaton(heads, places[i])
        if shown[i] != places[i] and is_store:
            shown[i] = _come_near(words64(heads, HEADS * (places[i] >> 32)), places[i] & 0xFFFFFFFF)
    shift = np.int64(0)
    while _BLOCKS << shift < masks.shape[1]:
        shift += 1
    for i in range(len(places)):
        place, out = places[i], masks[i]
        if shown[i] == place:
            continue
        status, some = np.int64(WRITTEN), np.int64(-1)
        if place <= FREE:
            _copy_mask(always[place], out)
        elif not _has_head(heads, place):
            status = np.int64(NO_CONFIG)
        else:
            head, config = words64(heads, HEADS * (place >> 32)), place & 0xFFFFFFFF
            if _is_automaton(heads, place):
                row_of = words32(head, D_ROW_OF)
                state = config % len(row_of)
                if row_of[state] >= 0:
                    accepts = _may_end_at(heads, place)
                    some = _write_few(
                        words64(head, D_POOL), row_of, state, np.int64(1), accepts, eos, out, blocks[i], shift
                    )
                if some < 0:
                    status = np.int64(write_state_mask(head, config, out))
            elif head[S_DENSE + 1] == 0:
                union = _known_union(head, config)
                if union >= 0 and configs64(head, S_CONFIGS)[config, C_SET] < 0:
                    unions, pool = triples32(head, S_UNIONS), words64(words64(head, S_MACHINE), M_POOL)
                    first, count = np.int64(unions[union, U_FIRST]), np.int64(unions[union, U_COUNT])
                    accepts, members = _may_end_at(heads, place), words32(head, S_UNION_ROWS)
                    some = _write_few(pool, members, first, count, accepts, eos, out, blocks[i], shift)
                if some < 0:
                    status = np.int64(write_mask(head, config, out))
            else:
                dense = words64(head, S_DENSE)
                if 2 * config < len(dense) and dense[2 * config]:
                    _copy_mask(words32(dense, 2 * config), out)
                else:
                    status = np.int64(NO_PARTS)
        shown[i] = place if status >= 0 else status
        blocks[i] = some
        if status < 0:
            missing += 1
    return missing


@helper
def _known_union(head, config):
    """The union of rows that a configuration's mask is, no token less, if it is known and not written out; -1."""
    machine = words64(head, S_MACHINE)
    if config >= head[N_CONFIGS] or _are_outdated(head, machine):
        return np.int64(-1)
    refused = words64(head, S_REFUSED)
    if len(refused) and (2 * config >= len(refused) or refused[2 * config] == 0 or refused[2 * config + 1]):
        return np.int64(-1)
    union = configs64(head, S_CONFIGS)[config, C_UNION]
    return union if union < 0 or triples32(head, S_UNIONS)[union, U_PAGE] < 0 else np.int64(-1)


@helper
def _come_near(head, config):
    """Read what a mask is put together from, so that it is in the processor's cache; returns some negative number.

    Sequences share no tables, and a processor waits for several of them at once if nothing long comes in between.
    """
    union = np.int64(-1) if head[S_DENSE + 1] else _known_union(head, config)
    read = np.int64(0)
    if union >= 0:
        pool, unions = words64(words64(head, S_MACHINE), M_POOL), triples32(head, S_UNIONS)
        base, starts, gaps = words32(pool, R_BASE), words64(pool, R_START), unsigned16(pool, R_GAPS)
        first = unions[union, U_FIRST]
        for k in range(first, first + min(unions[union, U_COUNT], _NEAR)):
            row = words32(head, S_UNION_ROWS)[k]
            read ^= base[row]
            if starts[row] < starts[row + 1]:
                read ^= np.int64(gaps[starts[row]])
    return -1 - (read & 0xFFFF)


@helper
def _write_few(pool, members, first, count, accepts, eos, out, blocks, shift):
    """Write a union of rows that are lists of ids, and the EOS ids where the text may end, in place of another mask.

    That one has bits in some blocks of ``1 << shift`` words.

    Returns its blocks; a negative number where nothing was written, as rows are something else.
    """
    if len(out) < pool[R_WORDS]:
        return np.int64(-1)
    base, starts, gaps = words32(pool, R_BASE), words64(pool, R_START), unsigned16(pool, R_GAPS)
    end = first + count
    for k in range(first, end):
        if base[members[k]] != 0:
            return np.int64(-1)
    if blocks < 0:
        blocks = np.int64(0)
        for w in range(len(out)):
            out[w] = 0
    block = np.int64(0)
    while blocks >> block:
        if blocks >> block & 0xF == 0:
            block += 4
            continue
        if blocks >> block & 1:
            for w in range(block << shift, min((block + 1) << shift, len(out))):
                out[w] = 0
        block += 1
    some = np.int64(0)
    for k in range(first, end):
        position = np.int64(0)
        for i in range(starts[members[k]], starts[members[k] + 1]):
            position += gaps[i]
            if gaps[i] != LONG_GAP:
                out[position >> 5] |= np.int32(1) << np.int32(position & 31)
                some |= np.int64(1) << (position >> 5 >> shift)
    if accepts:
        for position in eos:
            if position >> 5 < len(out):
                out[position >> 5] |= np.int32(1) << np.int32(position & 31)
                some |= np.int64(1) << np.int64(position >> 5 >> shift)
    return some


@helper
def _copy_mask(mask, out):
    """Copy a mask, without the words beyond, and with zeros behind it."""
    words = min(len(mask), len(out))
    for w in range(words):
        out[w] = mask[w]
    for w in range(words, len(out)):
        out[w] = 0
