"""Masks of a store: which rows a configuration's mask is the union of, and that union in the caller's array."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..pushdown.arena import A_LIVE, A_LOOPS
from ..pushdown.cells import _LINK, _PROBES
from ..pushdown.count_tables import _representative
from ..rows import change_gaps
from ..signatures import Out, boolean, int32, int64
from ..subset_construction import shell_sort
from .interning import _hashed, _is_run
from .layout import *

#: The residual lists that are always there (`structgen.runtime.rows.residuals`).
_ROOT, _NOTHING = 0, 1

#: Gaps of a union that are worth a page, and what a row with a base counts as, which has one.
_COSTLY, _COST_OF_BASE = 64, 400


@helper
def _part_slot(parts, slots, listed, state, number):
    """The slot of a partial mask, or a free one."""
    slot = _hashed(_hashed(_hashed(np.int64(1), listed), state), number) & (len(slots) - 1)
    while slots[slot] >= 0:
        there = slots[slot]
        if parts[there, 0] == listed and parts[there, 1] == state and parts[there, 2] == number:
            break
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@helper
def _is_after(stored, i, listed, state, number):
    """Whether a stored mask comes behind a key."""
    if stored[i, 0] != listed:
        return stored[i, 0] > listed
    if stored[i, 1] != state:
        return stored[i, 1] > state
    return stored[i, 2] > number


@helper
def _known_part(machine, listed, state, number):
    """The row of a partial mask and the next residual list; -1 and 0 where it is not known."""
    parts, slots = parts64(machine, M_PARTS), words32(machine, M_PART_SLOTS)
    there = slots[_part_slot(parts, slots, listed, state, number)]
    if there >= 0:
        return parts[there, 3], parts[there, 4]
    stored = parts32(machine, M_STORED)
    low, high = np.int64(0), np.int64(len(stored))
    while low < high:
        middle = (low + high) >> 1
        if _is_after(stored, middle, listed, state, number):
            high = middle
        else:
            low = middle + 1
    low -= 1
    if low >= 0 and stored[low, 0] == listed and stored[low, 1] == state and stored[low, 2] == number:
        return np.int64(stored[low, 3]), np.int64(stored[low, 4])
    return np.int64(-1), np.int64(0)


@helper
def _stretch(machine, state, count):
    """The row and the next list of a state at a count, where what it decides is told apart by stretches of counts."""
    stretches = quads32(machine, M_STRETCHES)
    low, high = np.int64(0), np.int64(len(stretches))
    while low < high:
        middle = (low + high) >> 1
        if stretches[middle, 0] > state or (stretches[middle, 0] == state and stretches[middle, 1] > count):
            high = middle
        else:
            low = middle + 1
    if low > 0 and stretches[low - 1, 0] == state:
        return np.int64(stretches[low - 1, 2]), np.int64(stretches[low - 1, 3])
    return np.int64(-1), np.int64(0)


@helper
def _count_key(machine, state, count):
    """What stands for a count or a set in keys; there is an arena where it is not 0."""
    if not count:
        return np.int64(0)
    arena = words32(machine, M_ARENA)
    live = arena[arena[A_LIVE] + state]
    if live < 0:
        return np.int64(0)
    least = np.int64(arena[arena[A_LOOPS] + 2 * live])
    if least < 0:
        return count
    return _representative(least, np.int64(arena[arena[A_LOOPS] + 2 * live + 1]), count, machine[M_LONGEST])


@helper
def _part(machine, listed, state, count):
    """The row of what a state decides at a count or with a set, and the next residual list; or a reason and 0."""
    if count and not len(words32(machine, M_ARENA)):
        return np.int64(NO_ARENA), np.int64(0)
    number = _count_key(machine, state, count)
    if number and listed == _ROOT:  # stretches are of states that count
        row, after = _stretch(machine, state, count)
        if row >= 0:
            return row, after
    row, after = _known_part(machine, listed, state, number)
    return (row, after) if row >= 0 else (np.int64(NO_PARTS), np.int64(0))


@kernel(releases_gil=False)
def find_part(machine: int64[::1], listed: int64, state: int64, number: int64) -> tuple[int64, int64]:
    """The row of a partial mask by its key, and the residual list that it leaves; -1 and 0 where it is not known."""
    row, after = _known_part(machine, listed, state, number)
    return row, after


@helper
def _put_part(machine, listed, state, number, row, after):
    """Keep a partial mask. Returns `WRITTEN`, or `NO_SPACE`."""
    parts, slots = parts64(machine, M_PARTS), words32(machine, M_PART_SLOTS)
    slot = _part_slot(parts, slots, listed, state, number)
    there = np.int64(slots[slot])
    if there < 0:
        there = machine[M_USED]
        if there >= len(parts) or 2 * there + 2 > len(slots):
            return np.int64(NO_SPACE)
    parts[there, 0] = listed
    parts[there, 1] = state
    parts[there, 2] = number
    parts[there, 3] = row
    parts[there, 4] = after
    if slots[slot] < 0:
        slots[slot] = there
        machine[M_USED] = there + 1
    return np.int64(WRITTEN)


@kernel(releases_gil=False)
def add_part(machine: Out[int64[::1]], listed: int64, state: int64, number: int64, row: int64, after: int64) -> int64:
    """Keep a partial mask. Returns `WRITTEN`, or `NO_SPACE`."""
    return _put_part(machine, listed, state, number, row, after)


@kernel(releases_gil=False)
def move_part_slots(machine: Out[int64[::1]], slots: Out[int32[::1]], address: int64) -> None:
    """Find the partial masks that there are by other slots, all of them -1."""
    parts = parts64(machine, M_PARTS)
    for number in range(machine[M_USED]):
        slots[_part_slot(parts, slots, parts[number, 0], parts[number, 1], parts[number, 2])] = number
    machine[M_PART_SLOTS] = address
    machine[M_PART_SLOTS + 1] = len(slots)


@helper
def _add_place(places, slots, n, listed, cell):
    """Go through a stack cell with a residual list, once; returns how many places there are, -1 for too many."""
    slot = _hashed(_hashed(np.int64(1), listed), cell) & (len(slots) - 1)
    for _ in range(_PROBES):  # slots may hold anything: what is found is compared
        there = slots[slot]
        if not 0 <= there < n:
            break
        if places[there, 0] == listed and places[there, 1] == cell:
            return n
        slot = (slot + 1) & (len(slots) - 1)
    if n == len(places):
        return np.int64(-1)
    slots[slot] = n
    places[n, 0] = listed
    places[n, 1] = cell
    return n + 1


@helper
def _add_missing(missing, m, listed, state, count):
    """Note a partial mask that is missing; returns how many are."""
    if m < len(missing):
        missing[m, 0] = listed
        missing[m, 1] = state
        missing[m, 2] = count
        m += 1
    return m


@helper
def _rows_of(head, machine, config):
    """Find the rows of a configuration; returns how many there are in the scratch, ascending, or a reason."""
    configs, threads, cells = configs64(head, S_CONFIGS), triples64(head, S_THREADS), cells64(head, S_CELLS)
    places, slots = pairs64(head, S_PLACES), words32(head, S_PLACE_SLOTS)
    missing, rows = triples64(head, S_MISSING), words32(head, S_FOUND)
    n, m, found = np.int64(0), np.int64(0), np.int64(0)
    first = configs[config, C_FIRST]
    size = configs[config, C_COUNT]
    i = -size  # threads first, then what lies below them
    while i < n:
        if i < 0:
            thread = first + size + i
            listed, state, count, below = np.int64(_ROOT), threads[thread, 0], threads[thread, 1], threads[thread, 2]
        else:
            listed, cell = places[i, 0], places[i, 1]
            state, count, below = cells[cell, 0], cells[cell, 1], cells[cell, 2]
        i += 1
        after = listed
        if state != _LINK:
            row, after = _part(machine, listed, state, count)
            if row == NO_PARTS:
                m = _add_missing(missing, m, listed, state, count)
                continue
            if row < 0:
                return row
            if found == len(rows):
                return np.int64(TOO_MANY_WAYS)
            rows[found] = row
            found += 1
        elif count >= 0:  # a member of a list
            n = _add_place(places, slots, n, listed, count)
        if after != _NOTHING and below >= 0 and n >= 0:
            n = _add_place(places, slots, n, after, below)
        if n < 0:
            return np.int64(TOO_MANY_WAYS)
    if m:
        head[N_MISSING] = m
        return np.int64(NO_PARTS)
    shell_sort(rows, found)
    kept = np.int64(0)
    for k in range(found):
        if kept == 0 or rows[k] != rows[kept - 1]:
            rows[kept] = rows[k]
            kept += 1
    return kept


@helper
def _union_of(head, machine, n):
    """The number of the union of the rows in the scratch; `NO_SPACE`."""
    rows, unions, members = words32(head, S_FOUND), triples32(head, S_UNIONS), words32(head, S_UNION_ROWS)
    slots = words32(head, S_UNION_SLOTS)
    key = np.int64(n + 1)
    for k in range(n):
        key = _hashed(key, np.int64(rows[k]))
    slot = key & (len(slots) - 1)
    while slots[slot] >= 0:
        there = slots[slot]
        is_as_long = unions[there, U_COUNT] == n
        if is_as_long and _is_run(members, np.int64(unions[there, U_FIRST]), rows, np.int64(0), n):
            return np.int64(there)
        slot = (slot + 1) & (len(slots) - 1)
    number, first = head[N_UNIONS], head[N_UNION_ROWS]
    if number >= len(unions) or 2 * number + 2 > len(slots) or first + n > len(members):
        return np.int64(NO_SPACE)
    pool = words64(machine, M_POOL)
    base, start = words32(pool, R_BASE), words64(pool, R_START)
    cost = np.int64(0)
    for k in range(n):
        row = rows[k]
        members[first + k] = row
        cost += start[row + 1] - start[row]
        if base[row] != 0:
            cost += _COST_OF_BASE
        while base[row] < 0:
            row = -1 - base[row]
            cost += start[row + 1] - start[row]
    unions[number, U_FIRST] = first
    unions[number, U_COUNT] = n
    unions[number, U_PAGE] = MAY_WANT_PAGE if cost > _COSTLY else NO_PAGE
    slots[slot] = number
    head[N_UNIONS] = number + 1
    head[N_UNION_ROWS] = first + n
    return number


@helper
def _copy_row(pool, row, out):
    """Write a row of the pool to the first words of ``out``; returns 0 or `NO_SHARED`."""
    base, start, gaps = words32(pool, R_BASE), words64(pool, R_START), unsigned16(pool, R_GAPS)
    words = pool[R_WORDS]
    lowest = np.int64(base[row])
    for _ in range(LONGEST_CHAIN):
        if lowest >= 0:
            break
        lowest = np.int64(base[-1 - lowest])
    if lowest <= 0:
        for w in range(words):
            out[w] = 0
    elif lowest < SHARED_BASE:
        whole = words32(pool, R_WHOLE)[(lowest - 1) * words :]  # an index that may be negative costs a branch a word
        for w in range(words):
            out[w] = whole[w]
    else:
        shared = words64(pool, R_SHARED)
        place = 2 * (lowest - SHARED_BASE)
        if place >= len(shared) or shared[place] == 0:
            pool[R_MISSING] = lowest - SHARED_BASE
            return np.int64(NO_SHARED)
        whole = words32(shared, place)
        for w in range(words):
            out[w] = whole[w]
    here = np.int64(row)
    for _ in range(LONGEST_CHAIN):
        change_gaps(out, np.int32, gaps[start[here] : start[here + 1]], True)
        if base[here] >= 0:
            break
        here = np.int64(-1 - base[here])
    return np.int64(WRITTEN)


@helper
def _add_row(pool, row, out, scratch):
    """Set the bits of a row of the pool in ``out``; returns `WRITTEN` or `NO_SHARED`."""
    base, start = words32(pool, R_BASE), words64(pool, R_START)
    if base[row] == 0:
        gaps = unsigned16(pool, R_GAPS)
        change_gaps(out, np.int32, gaps[start[row] : start[row + 1]], False)
        return np.int64(WRITTEN)
    status = _copy_row(pool, row, scratch)
    if status == WRITTEN:
        for w in range(pool[R_WORDS]):
            out[w] |= scratch[w]
    return status


@helper
def _row_hash(row, words):
    """A hash of the first words of a row, as four sums, since a multiplication waits for the one before."""
    factor = np.uint64(0x9E3779B97F4A7C15)
    h0, h1, h2, h3 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = words - words % 4
    for w in range(0, whole, 4):
        h0 = (h0 ^ np.uint64(np.int64(row[w]) & 0xFFFFFFFF)) * factor
        h1 = (h1 ^ np.uint64(np.int64(row[w + 1]) & 0xFFFFFFFF)) * factor
        h2 = (h2 ^ np.uint64(np.int64(row[w + 2]) & 0xFFFFFFFF)) * factor
        h3 = (h3 ^ np.uint64(np.int64(row[w + 3]) & 0xFFFFFFFF)) * factor
    for w in range(whole, words):
        h0 = (h0 ^ np.uint64(np.int64(row[w]) & 0xFFFFFFFF)) * factor
    h0 = ((h0 ^ (h1 >> np.uint64(1))) * factor ^ (h2 >> np.uint64(2))) * factor ^ (h3 >> np.uint64(3))
    return np.int64((h0 * factor) >> np.uint64(20))


@helper
def _page_of(pages, row, words, is_new):
    """The page that is equal to the first words of a row, added where there is none; -1 where they begin anew.

    It is added if it is said to be new.
    """
    rows, hashes, slots = words32(pages, G_ROWS), words64(pages, G_HASHES), words32(pages, G_SLOTS)
    key = _row_hash(row, words)
    slot = key & (len(slots) - 1)
    while slots[slot] >= 0:
        there = np.int64(slots[slot])
        if hashes[there] == key and not is_new:
            known, w = rows[there * words :], np.int64(0)
            while w < words and known[w] == row[w]:
                w += 1
            if w == words:
                return there
        slot = (slot + 1) & (len(slots) - 1)
    number = pages[N_PAGES]
    if number == len(hashes):
        for i in range(len(slots)):
            slots[i] = -1
        pages[N_PAGES] = 0
        pages[G_GENERATION] += 1
        return np.int64(-1)
    slots[slot] = number
    hashes[number] = key
    written = rows[number * words :]
    for w in range(words):
        written[w] = row[w]
    pages[N_PAGES] = number + 1
    return number


@kernel(releases_gil=False)
def add_pages(pages: Out[int64[::1]], masks: int32[:, ::1], are_new: boolean, numbers: Out[int32[::1]]) -> int64:
    """The numbers of masks among pages, added where they are not there, or are said to be new.

    Parameters
    ----------
    pages:
        The head of the pages. There is room.
    masks:
        ``int32[n, words]``.
    are_new:
        Whether each is added, and not looked for.
    numbers:
        ``int32[n]``.

    Returns 0, or `NO_SPACE`: there is no room for so many, and none was added.
    """
    rows, most = words32(pages, G_ROWS), len(words64(pages, G_HASHES))
    n, words = masks.shape
    if n > most - pages[N_PAGES] or most * words > len(rows) or n > len(numbers):
        return NO_SPACE
    for i in range(n):
        numbers[i] = _page_of(pages, masks[i], words, are_new)
    return 0


@helper
def _write_union(head, machine, union, out):
    """Write a union of rows to an array; returns `WRITTEN` or `NO_SHARED`."""
    pool, pages = words64(machine, M_POOL), words64(head, S_PAGES)
    words = pool[R_WORDS]
    unions = triples32(head, S_UNIONS)
    page = np.int64(unions[union, U_PAGE])
    for w in range(words, len(out)):
        out[w] = 0
    if page >= 0:
        written = words32(pages, G_ROWS)[page * words :]
        for w in range(words):
            out[w] = written[w]
        return np.int64(WRITTEN)
    members, scratch = words32(head, S_UNION_ROWS), words32(head, S_ROW)
    first, count = unions[union, U_FIRST], unions[union, U_COUNT]
    if count == 0:
        for w in range(words):
            out[w] = 0
    for k in range(count):
        row = np.int64(members[first + k])
        status = _add_row(pool, row, out, scratch) if k else _copy_row(pool, row, out)
        if status != WRITTEN:
            return status
    if page == MAY_WANT_PAGE:
        unions[union, U_PAGE] = WANTS_PAGE
    elif page == WANTS_PAGE:
        page = _page_of(pages, out, words, False)
        if page >= 0:
            unions[union, U_PAGE] = page
    return np.int64(WRITTEN)


@helper
def _are_outdated(head, machine):
    """Whether unions are to be forgotten: they are of rows or of pages of an earlier generation."""
    return head[S_GENERATION] != machine[M_GENERATION] or head[S_PAGED] != words64(head, S_PAGES)[G_GENERATION]


@helper
def _forget_unions(head):
    """Forget unions of rows, and with them which one is each configuration's."""
    machine, configs, slots = words64(head, S_MACHINE), configs64(head, S_CONFIGS), words32(head, S_UNION_SLOTS)
    for i in range(head[N_CONFIGS]):
        configs[i, C_UNION] = -1
    for i in range(len(slots)):
        slots[i] = -1
    head[N_UNIONS] = head[N_UNION_ROWS] = 0
    head[S_GENERATION] = machine[M_GENERATION]
    head[S_PAGED] = words64(head, S_PAGES)[G_GENERATION]


@kernel(releases_gil=False)
def write_whole_mask(head: Out[int64[::1]], config: int64, out: Out[int32[::1]]) -> int64:
    """Write all tokens that a configuration's threads allow, EOS ids included, as `write_mask`."""
    if not 0 <= config < head[N_CONFIGS]:
        return NO_CONFIG
    machine = words64(head, S_MACHINE)
    if _are_outdated(head, machine):
        _forget_unions(head)
    if len(out) < words64(machine, M_POOL)[R_WORDS]:
        return TOO_SHORT
    configs = configs64(head, S_CONFIGS)
    union = configs[config, C_UNION]
    if union < 0:
        if machine[M_BEYOND]:
            return BEYOND
        n = _rows_of(head, machine, config)
        if n < 0:
            return n
        union = _union_of(head, machine, n)
        if union < 0:
            return union
        configs[config, C_UNION] = union
    status = _write_union(head, machine, union, out)
    if status >= 0 and configs[config, C_ACCEPTS]:
        ends = words32(machine, M_EOS)
        for w in range(min(len(out), len(ends))):
            out[w] |= ends[w]
    tokens = configs[config, C_SET]
    if status >= 0 and tokens >= 0:
        sets, words = words32(machine, M_SETS), len(words32(machine, M_EOS))
        for w in range(min(len(out), words)):
            out[w] |= sets[tokens * words + w]
    return status


@kernel(releases_gil=False)
def write_mask(head: Out[int64[::1]], config: int64, out: Out[int32[::1]]) -> int64:
    """Write the mask of a configuration, EOS ids included, to an array, ``int32[*]``; what is wider becomes 0.

    Returns `WRITTEN`, or what is to be done first (see `layout`).
    """
    refused = words64(head, S_REFUSED)
    if len(refused) == 0:
        return write_whole_mask(head, config, out)
    if not 0 <= config < len(refused) >> 1:
        return NO_CONFIG
    if refused[2 * config] == 0:
        return NOT_REFUSED
    status = write_whole_mask(head, config, out)
    if status == WRITTEN:
        for token in words32(refused, 2 * config):
            if token >> 5 < len(out):
                out[token >> 5] &= ~(np.int32(1) << np.int32(token & 31))
    return status


@kernel(releases_gil=False)
def put_refused(head: int64[::1], config: int64, address: int64, count: int64) -> int64:
    """Say which tokens a mask lacks, by the address of their ids, which stay there; 1 and 0 for none.

    Returns `WRITTEN`, or `NO_CONFIG`.
    """
    refused = words64(head, S_REFUSED)
    if not 0 <= config < len(refused) >> 1:
        return NO_CONFIG
    refused[2 * config] = address
    refused[2 * config + 1] = count
    return WRITTEN


@kernel(releases_gil=False)
def missing_parts(head: Out[int64[::1]], config: int64, found: Out[int64[:, ::1]]) -> int64:
    """Write which partial masks a mask lacks first, ``int64[*, 3]``: residual lists, states, counts; returns how many.

    There may be more than there is room for.
    """
    if not 0 <= config < head[N_CONFIGS]:
        return NO_CONFIG
    n = _rows_of(head, words64(head, S_MACHINE), config)
    if n != NO_PARTS:
        return 0
    missing = triples64(head, S_MISSING)
    m = min(head[N_MISSING], len(found))
    for k in range(m):
        for column in range(3):
            found[k, column] = missing[k, column]
    return m


@kernel(releases_gil=False)
def put_union(head: Out[int64[::1]], config: int64, rows: int32[::1], tokens: int64) -> int64:
    """Say which rows, ascending, a configuration's mask is the union of, and a row of `M_SETS` or -1.

    Returns 0, or `NO_SPACE`.
    """
    machine, found = words64(head, S_MACHINE), words32(head, S_FOUND)
    if _are_outdated(head, machine):
        _forget_unions(head)
    if len(rows) > len(found):
        return TOO_MANY_WAYS
    for k in range(len(rows)):
        found[k] = rows[k]
    union = _union_of(head, machine, np.int64(len(rows)))
    if union < 0:
        return union
    configs = configs64(head, S_CONFIGS)
    configs[config, C_UNION] = union
    configs[config, C_SET] = tokens
    return 0
