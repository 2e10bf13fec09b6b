"""Sections of a file against their declarations: copies of them, of which every number is looked at.

A *plan* says what `structgen.storage.columns` declares, a row for each column. Kernels index with what is in a file
and check no bounds, so what they get is the copy that was looked at: whoever may write the file may do so at any time.
"""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel, table
from .plans import *
from .signatures import Out, int64

#: Columns of a total and of a field (`structgen.kernels.plans`).
_AMOUNT = TOTAL_WORDS - 1
_LEAST, _BELOW = range(FIELD_WORDS)

#: What copies are laid out to in a block.
_ALIGNMENT = 8

_octets, _shorts, _words, _signed = table("uint8"), table("uint16"), table("uint32"), table("int32")


@helper
def _total(totals, number, sizes):
    """The value of a total."""
    found = totals[number, _AMOUNT]
    for k in range(_AMOUNT):
        if totals[number, k] >= 0:
            found += sizes[totals[number, k]]
    return found


@helper
def _equated(totals, number, count, sizes):
    """What a count must be; the first quantity is known from now on."""
    first = totals[number, 0]
    if first >= 0 and sizes[first] < 0:
        sizes[first] = 0
        sizes[first] = max(0, count - _total(totals, number, sizes))
    return _total(totals, number, sizes)


@helper
def _note(wrong, what, value, bound):
    """Note what is wrong, if anything is; returns whether it is."""
    wrong[1] = what
    wrong[2] = value
    wrong[3] = bound
    return True


@helper
def _has_shape(plan, totals, found, sizes, wrong):
    """Check dtype and shape; says how many numbers there are."""
    width, dtype = found[F_WIDTH], found[F_DTYPE]
    if not dtype & plan[P_DTYPES]:
        return not _note(wrong, W_DTYPE, dtype, np.int64(0))
    rows = found[F_BYTES] // (min(dtype, 4) * max(1, width))
    is_wide = plan[P_WIDTH] >= 0 or (plan[P_MEMBERS] >= 0 and plan[P_ROWS] >= 0)
    if is_wide != (width > 0):
        return not _note(wrong, W_DIMENSIONS, np.int64(1 + (width > 0)), np.int64(1 + is_wide))
    words = (_total(totals, plan[P_MEMBERS], sizes) + 31) // 32 if plan[P_MEMBERS] >= 0 else np.int64(0)
    expected = rows
    if plan[P_FLAGS] >= 0:
        expected = (_total(totals, plan[P_FLAGS], sizes) + 7) // 8
    elif plan[P_ROWS] >= 0:
        expected = _equated(totals, plan[P_ROWS], rows, sizes)
    elif plan[P_MEMBERS] >= 0:
        expected = words
    if rows != expected:
        return not _note(wrong, W_ROWS, rows, expected)
    found[F_SIZE] = rows * max(1, width)
    if width:
        expected = words if plan[P_MEMBERS] >= 0 else _equated(totals, plan[P_WIDTH], width, sizes)
    return width == 0 or width == expected or not _note(wrong, W_WIDTH, width, expected)


@helper
def _copied(source, target, found):
    """Copy the numbers of a section."""
    low = source[0]
    top = source[0]
    for i in range(len(source)):
        number = source[i]
        target[i] = number
        low = min(low, number)
        top = max(top, number)
    found[F_LOW] = low
    found[F_TOP] = top


@helper
def _copy(plan, found, source):
    """Copy a section with numbers to where its target is; ``source`` is scratch."""
    dtype, is_cast = found[F_DTYPE], plan[P_USE] == CAST
    source[0] = found[F_ADDRESS]
    source[1] = (found[F_SIZE] + 7) // 8 if plan[P_FLAGS] >= 0 else found[F_SIZE]
    if plan[P_FLAGS] >= 0:
        flags, target = _octets(source, 0), _octets(found, F_TARGET)
        for i in range(len(target)):
            target[i] = flags[i >> 3] >> (i & 7) & 1
    elif dtype == U1 and is_cast:
        _copied(_octets(source, 0), _signed(found, F_TARGET), found)
    elif dtype == U1:
        _copied(_octets(source, 0), _octets(found, F_TARGET), found)
    elif dtype == U2 and is_cast:
        _copied(_shorts(source, 0), _signed(found, F_TARGET), found)
    elif dtype == U2:
        _copied(_shorts(source, 0), _shorts(found, F_TARGET), found)
    elif dtype == U4 and is_cast:
        _copied(_words(source, 0), _signed(found, F_TARGET), found)
    elif dtype == U4:
        _copied(_words(source, 0), _words(found, F_TARGET), found)
    else:
        _copied(_signed(source, 0), _signed(found, F_TARGET), found)


@helper
def _is_bounded(plan, totals, fields, found, numbers, sizes, wrong):
    """Check numbers by themselves: bounds, those of each column, and members."""
    if plan[P_LIMIT] >= 0:
        below = _total(totals, plan[P_LIMIT], sizes)
        if found[F_TOP] >= below:
            return not _note(wrong, W_TOP, found[F_TOP], below)
        if found[F_LOW] < plan[P_LEAST]:
            return not _note(wrong, W_LOW, found[F_LOW], plan[P_LEAST])
    width = max(1, found[F_WIDTH])
    if plan[P_MEMBERS] >= 0:
        below = _total(totals, plan[P_MEMBERS], sizes)
        for i in range((width if found[F_WIDTH] else len(numbers)) - 1, len(numbers), width):
            if below & 31 and np.int64(numbers[i]) >> (below & 31):
                return not _note(wrong, W_MEMBER, np.int64(numbers[i]), below)
    for k in range(plan[P_COUNT]):
        wrong[4] = k
        least, below = fields[plan[P_FIELDS] + k, _LEAST], _total(totals, fields[plan[P_FIELDS] + k, _BELOW], sizes)
        for i in range(k, len(numbers), width):
            if np.int64(numbers[i]) >= below:
                return not _note(wrong, W_TOP, np.int64(numbers[i]), below)
            if np.int64(numbers[i]) < least:
                return not _note(wrong, W_LOW, np.int64(numbers[i]), least)
    wrong[4] = -1
    return True


@helper
def _is_in_order(plan, totals, found, numbers, parts, lows, sizes, wrong):
    """Check numbers against those before them, in each part by itself: order, widths, sums, ranges."""
    width, part, come_to = max(1, found[F_WIDTH]), np.int64(0), np.int64(0)
    below = _total(totals, plan[P_GAPS], sizes) if plan[P_GAPS] >= 0 else np.int64(0)
    is_starts = plan[P_STARTS] >= 0
    for i in range(0, len(numbers), width):
        number, before, is_first = np.int64(numbers[i]), np.int64(numbers[max(0, i - width)]), i == 0
        while part < len(parts) and parts[part] <= i:
            is_first = True
            part += 1
        come_to = number if is_first else come_to + number
        if plan[P_GAPS] >= 0 and come_to >= below:
            return not _note(wrong, W_LIST, come_to, below)
        if is_first and 0 < plan[P_FIRST] <= number:
            return not _note(wrong, W_FIRST, number, plan[P_FIRST])
        if len(lows) and (number < np.int64(lows[i]) or (not is_first and np.int64(lows[i]) <= before)):
            return not _note(wrong, W_OVERLAP, np.int64(lows[i]), number)
        if is_first:
            continue
        if (is_starts or plan[P_ORDER] != ANY_ORDER) and number < before + (plan[P_ORDER] == RISES):
            return not _note(wrong, W_ORDER, number, before)
        if is_starts and 0 < plan[P_WIDEST] < number - before:
            return not _note(wrong, W_PART, number - before, plan[P_WIDEST])
    return True


@helper
def _is_sound(plan, totals, fields, found, numbers, parts, lows, sizes, wrong):
    """Check the numbers of a section."""
    if not _is_bounded(plan, totals, fields, found, numbers, sizes, wrong):
        return False
    is_ordered = plan[P_STARTS] >= 0 or plan[P_ORDER] != ANY_ORDER or plan[P_GAPS] >= 0 or len(lows) > 0
    return not is_ordered or _is_in_order(plan, totals, found, numbers, parts, lows, sizes, wrong)


@kernel
def read_columns(
    plans: int64[:, ::1], totals: int64[:, ::1], fields: int64[:, ::1], sections: Out[int64[:, ::1]],
    sizes: Out[int64[::1]], block: int64, wrong: Out[int64[::1]],
) -> int64:  # fmt: skip
    """Copy sections one behind the other, and check them.

    Parameters
    ----------
    plans, totals, fields:
        What is declared: ``int64[columns, COLUMN_PLAN]``, ``int64[*, TOTAL_WORDS]``, ``int64[*, FIELD_WORDS]``.
    sections:
        ``int64[columns, SECTION_FOUND]``: where they are, and, when it is done, what became of them.
    sizes:
        Quantities by number, or `NOT_KNOWN`. Those that sections tell are known from now on.
    block:
        The address of room for all copies, each of whole words of 8 bytes.
    wrong:
        ``int64[WRONG_WORDS]``.

    Returns
    -------
    Bytes of the block that are used; below 0 where a section is not as declared, which is ``wrong``.
    """
    used, wrong[4] = np.int64(0), -1
    for c in range(len(plans)):
        plan, found, wrong[0] = plans[c], sections[c], c
        found[F_SIZE] = 0
        if found[F_ADDRESS] == 0:
            if not plan[P_OPTIONAL]:
                _note(wrong, W_MISSING, np.int64(0), np.int64(0))
                return -1
            _equated(totals, plan[P_ROWS], np.int64(0), sizes)
            continue
        if not _has_shape(plan, totals, found, sizes, wrong):
            return -1
        if plan[P_USE] == MAPPED:
            found[F_TARGET] = found[F_ADDRESS]
            continue
        found[F_TARGET] = block + used
        itemsize = np.int64(4) if plan[P_USE] == CAST else min(found[F_DTYPE], 4)
        if plan[P_FLAGS] >= 0:
            found[F_SIZE] = _total(totals, plan[P_FLAGS], sizes)
        used += -(-itemsize * found[F_SIZE] // _ALIGNMENT) * _ALIGNMENT
        if found[F_SIZE]:
            _copy(plan, found, wrong[2:4])
        if plan[P_STARTS] >= 0:  # which are in order, or refused below
            if found[F_SIZE] == 0 or found[F_LOW] != 0:
                _note(wrong, W_BEGINS, np.int64(0), np.int64(0))
                return -1
            if found[F_TOP] != _equated(totals, plan[P_STARTS], found[F_TOP], sizes):
                _note(wrong, W_LAST, found[F_TOP], _total(totals, plan[P_STARTS], sizes))
                return -1
    for c in range(len(plans)):
        plan, found, wrong[0] = plans[c], sections[c], c
        if found[F_SIZE] == 0 or plan[P_FLAGS] >= 0 or (plan[P_USE] == MAPPED and plan[P_MEMBERS] < 0):
            continue
        parts = _signed(sections[max(0, plan[P_WITHIN])], F_TARGET)
        lows = _octets(sections[max(0, plan[P_ENDS])], F_TARGET)
        parts = parts if plan[P_WITHIN] >= 0 else parts[:0]
        lows = lows if plan[P_ENDS] >= 0 else lows[:0]
        if plan[P_USE] == CAST or found[F_DTYPE] == I4:
            numbers = _signed(found, F_TARGET)
            is_sound = _is_sound(plan, totals, fields, found, numbers, parts, lows, sizes, wrong)
        elif found[F_DTYPE] == U1:
            octets = _octets(found, F_TARGET)
            is_sound = _is_sound(plan, totals, fields, found, octets, parts, lows, sizes, wrong)
        elif found[F_DTYPE] == U2:
            shorts = _shorts(found, F_TARGET)
            is_sound = _is_sound(plan, totals, fields, found, shorts, parts, lows, sizes, wrong)
        else:
            words = _words(found, F_TARGET)
            is_sound = _is_sound(plan, totals, fields, found, words, parts, lows, sizes, wrong)
        if not is_sound:
            return -1
    return used
