"""Masks of a grammar on a parser's stack: partial masks put together by what the parser accepts."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel, spliced
from ..signatures import Out, boolean, int32, int64, uint32
from .blocks import (
    _ALLOWED,
    _CELLS,
    _COMPLETIONS,
    _MISSING,
    _OPEN,
    _WORKLIST,
    _actions,
    _flat,
    _of_answers,
    _of_levels,
    _of_stacks,
    _table,
)
from .completions import _completed, _have_common, _same_words

#
# Stacks are cells: a state and the cell below. Equal ones have the same number, from call to call, so that what a
# stack accepts and where a terminal leads to is worked out once. All that is remembered lies in tables that hold
# numbered pairs, each with the slots by which a pair is found: the number and 1, or 0 for a free one. Slots are a
# power of 2, and at least twice as many as there can be pairs.

# Numbers in `counts`: how many there are, and the cell of the stack that the last mask was for; then, of a mask that
# is not finished, what is left to do, or 0, what there is of each output, the lowest depth looked at, what was done.
_N_CELLS, _N_SHIFTS, _N_ACCEPTS, _N_OFFERS, _STACK = range(5)
_N_LEFT, _N_ALLOWED, _N_MISSING, _N_OPEN, _LOOKED, _VISITED, _N_ANSWERS, GSS_PROGRESS = range(5, 13)

# Columns of `answers`: the set, the context, the level, the answer, and how many of the states behind decided it.
_ANSWER, _STATES = 3, 5

#: So many states on top of a stack may decide an answer that is remembered.
MOST_DECIDING = 8

#: Added to a number of open brackets where an answer holds at all levels with so many; levels have lower numbers.
OF_BRACKETS = 1 << 30

#: What stands for a cell: the terminal can't come; the stack is too short, or reduces without end; a table is full.
REFUSED, SHORT, FULL = -1, -2, -3

#: What stands for the number of groups where a mask is not finished.
UNFINISHED = -4

# Reductions, and states followed, in a row, and records for one mask; only damaged tables need more.
_MOST_STEPS, _MOST_RECORDS = 1000000, 10000000


@spliced
def _slot(slots, pairs, a, b, bits):
    """The slot of a pair of numbers, which is free where the pair is new.

    It lies near those of pairs with neighbouring ``a``, which come at the same time, if it can: a cell has few others
    above it. From there on it is double hashing (Knuth, TAOCP 3, section 6.4, algorithm D). Spliced, because masks
    that are put together again take a third more where it is called.
    """
    mask = len(slots) - 1
    mixed = np.uint64(b + 1) * np.uint64(0x9E3779B97F4A7C15)
    slot = (np.int64(a + 1) << bits) + np.int64(mixed >> np.uint64(64 - bits)) & mask
    step = np.int64((mixed ^ np.uint64(a + 1) * np.uint64(0xBF58476D1CE4E5B9)) >> np.uint64(33)) | 1
    while slots[slot]:
        pair = slots[slot] - 1
        if pairs[pair, 0] == a and pairs[pair, 1] == b:
            break
        slot = (slot + step) & mask
    return slot


@helper
def _cell(cells, cell_slots, counts, state, below):
    """The cell of a state on top of another cell, or `FULL`."""
    slot = _slot(cell_slots, cells, np.int64(below), np.int64(state), 1)
    if cell_slots[slot]:
        return cell_slots[slot] - 1
    c = counts[_N_CELLS]
    if c == len(cells):
        return FULL
    counts[_N_CELLS] = c + 1
    cell_slots[slot] = c + 1
    cells[c, 0] = below
    cells[c, 1] = state
    cells[c, 2] = cells[below, 2] + 1 if below >= 0 else 0
    cells[c, 3] = 0
    return c


@helper
def _reduced(goto, cells, cell_slots, counts, state, below, length, nonterminal):
    """The state and the cell below it after a reduction of a stack given likewise; the cell may be `SHORT` or `FULL`.

    So the stacks on the way to a shift, of which there are many in a row of operators of growing precedence, need no
    cells.
    """
    if length == 0:
        below = _cell(cells, cell_slots, counts, state, below)
    else:
        for _ in range(length - 1):
            if below < 0:
                break
            below = cells[below, 0]
        if below < 0:
            below = SHORT
    state = -1
    if below >= 0:
        state = goto[cells[below, 1], nonterminal]
        if state < 0:
            below = SHORT
    return state, below


@helper
def _shifted(
    shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts, cell, terminal
):
    """The number in ``shifts`` of what a terminal leads to, which may be `REFUSED`; or `SHORT` or `FULL`."""
    slot = _slot(shift_slots, shifts, cell, terminal, 2)
    if shift_slots[slot]:
        return shift_slots[slot] - 1
    known = counts[_N_SHIFTS]
    if known == len(shifts):
        return FULL
    s = np.int64(cells[cell, 1])
    below = np.int64(cells[cell, 0])
    depth_read = cells[cell, 2]
    word = terminal >> 5
    bit = np.uint32(1) << np.uint32(terminal & 31)
    steps = 0
    state = np.int64(0)
    here = np.int64(REFUSED)
    while shift[s, terminal] < 0:
        r = reductions[s]
        while r < reductions[s + 1] and not before[r, word] & bit:
            r += 1
        if r == reductions[s + 1]:
            break
        steps += 1
        if steps > _MOST_STEPS:
            return SHORT
        s, below = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
        if below < 0:
            return below
        depth_read = min(depth_read, cells[below, 2])
    if shift[s, terminal] >= 0:
        state = np.int64(shift[s, terminal])
        below = _cell(cells, cell_slots, counts, s, below)
        s = state
        while below >= 0 and defaults[s]:
            r = reductions[s]
            steps += 1
            if steps > _MOST_STEPS:
                return SHORT
            s, below = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
            if below >= 0:
                depth_read = min(depth_read, cells[below, 2])
        here = _cell(cells, cell_slots, counts, s, below) if below >= 0 else below
        if here < 0:
            return here
    counts[_N_SHIFTS] = known + 1
    shift_slots[slot] = known + 1
    shifts[known, 0] = cell
    shifts[known, 1] = terminal
    shifts[known, 2] = here
    shifts[known, 3] = depth_read
    shifts[known, 4] = state
    return known


@helper
def _line_ended(shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts,
                cell, move, newline, indent, dedent):  # fmt: skip
    """What a line end leads to, with indents or dedents: -2 for an indent, else 1 plus the number of dedents.

    Returns the cell, or what stands for it, the lowest depth looked at, and the state that shifted the last terminal.
    """
    depth_read = cells[cell, 2]
    state = np.int32(0)
    for k in range(2 if move == -2 else move):
        terminal = newline if k == 0 else indent if move == -2 else dedent
        known = _shifted(
            shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts,
            cell, np.int64(terminal),
        )  # fmt: skip
        if known < 0:
            return known, depth_read, state
        cell = np.int64(shifts[known, 2])
        depth_read = min(depth_read, shifts[known, 3])
        state = shifts[known, 4]
        if cell < 0:
            break
    return cell, depth_read, state


@helper
def _find_accepted(goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots,
                   counts, waiting, masks, cell):  # fmt: skip
    """Note in a cell what its stack accepts, from all terminals' reductions at once; 0, or `SHORT` or `FULL`."""
    words = len(ignored)
    new = counts[_N_ACCEPTS]
    if new == len(accepted):
        return FULL
    for w in range(words):
        accepted[new, w] = ignored[w]
        masks[0, w] = np.uint32(0xFFFFFFFF)
    depth_read = cells[cell, 2]
    waiting[0, 0] = cells[cell, 1]
    waiting[0, 1] = cells[cell, 0]
    n = 1
    steps = 0
    while n:
        n -= 1
        s = np.int64(waiting[n, 0])
        below = np.int64(waiting[n, 1])
        steps += 1
        if steps > _MOST_STEPS or n + 1 + reductions[s + 1] - reductions[s] >= len(waiting):
            return SHORT
        for w in range(words):
            accepted[new, w] |= shifted[s, w] & masks[n, w]
        # What is read is overwritten by the first of them, so that one comes last.
        first = n
        n += 1
        for r in range(reductions[s] + 1, reductions[s + 1]):
            any_left = False
            for w in range(words):
                masks[n, w] = masks[first, w] & before[r, w]
                if masks[n, w]:
                    any_left = True
            if any_left:
                after, under = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
                if under < 0:
                    return under
                depth_read = min(depth_read, cells[under, 2])
                waiting[n, 0] = after
                waiting[n, 1] = under
                n += 1
        any_left = False
        if reductions[s] < reductions[s + 1]:
            r = reductions[s]
            for w in range(words):
                masks[first, w] &= before[r, w]
                if masks[first, w]:
                    any_left = True
        if any_left:
            after, under = _reduced(goto, cells, cell_slots, counts, s, below, reduce[r, 0], reduce[r, 1])
            if under < 0:
                return under
            depth_read = min(depth_read, cells[under, 2])
            waiting[first, 0] = after
            waiting[first, 1] = under
        else:
            n -= 1
            waiting[first, 0] = waiting[n, 0]
            waiting[first, 1] = waiting[n, 1]
            for w in range(words):
                masks[first, w] = masks[n, w]
    mixed = np.uint64(0)
    for w in range(words):
        mixed = (mixed ^ accepted[new, w]) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    mask = len(accept_slots) - 1
    slot = np.int64(mixed) & mask
    while accept_slots[slot] and not _same_words(accepted, accept_slots[slot] - 1, new):
        slot = (slot + 1) & mask
    if not accept_slots[slot]:
        accept_slots[slot] = new + 1
        counts[_N_ACCEPTS] = new + 1
    cells[cell, 3] = accept_slots[slot]
    cells[cell, 4] = depth_read
    return 0


@helper
def _accepted_by(goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots,
                 counts, waiting, masks, cell):  # fmt: skip
    """The number of what a stack accepts, or `SHORT` or `FULL`."""
    failed = 0
    if cells[cell, 3] == 0:
        failed = _find_accepted(
            goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots, counts,
            waiting, masks, cell,
        )  # fmt: skip
    return failed if failed else cells[cell, 3] - 1


@helper
def _offer(keep, given, accepted, offers, offer_slots, offered, hits, counts, number, level):
    """The number of what is accepted at a level, or `FULL`."""
    slot = _slot(offer_slots, offers, np.int64(number), np.int64(level), 1)
    if offer_slots[slot]:
        return offer_slots[slot] - 1
    new = counts[_N_OFFERS]
    if new == len(offers):
        return FULL
    counts[_N_OFFERS] = new + 1
    offer_slots[slot] = new + 1
    offers[new, 0] = number
    offers[new, 1] = level
    for w in range(offered.shape[1]):
        offered[new, w] = accepted[number, w] & keep[level, w] | given[level, w]
    for k in range(hits.shape[1]):
        hits[new, k] = 0
    return new


@helper
def _accepts(shift, goto, reductions, reduce, before, defaults, lines, moves, sets, number, has_columns, cells,
             cell_slots, shifts, shift_slots, offered, counts, cell, offer, level):  # fmt: skip
    """Whether one of a set of terminals is accepted: 1, 0, or `SHORT` or `FULL`; and the lowest depth looked at."""
    for w in range(sets.shape[1]):
        if sets[number, w] & offered[offer, w]:
            return 1, cells[cell, 2]
    depth_read = cells[cell, 2]
    if not has_columns:
        return 0, depth_read
    # Those of the columns that a line may begin at here, first that of the line before: without dedents it reads the
    # least of the stack. One that is an indent stands for all.
    for turn in range(2):
        is_indent_refused = False
        for w in range(lines[3] >> 5, sets.shape[1]):
            word = sets[number, w]
            t = 32 * w - 1
            while word:
                t += 1
                is_member = word & np.uint32(1)
                word >>= np.uint32(1)
                if not is_member or t < lines[3]:
                    continue
                move = np.int64(moves[level, t - lines[3]])
                if (turn == 0) != (move == 1) or (move <= 0 and (move != -2 or is_indent_refused)):
                    continue
                here, depth, _ = _line_ended(
                    shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts,
                    cell, move, lines[0], lines[1], lines[2],
                )  # fmt: skip
                depth_read = min(depth_read, depth)
                if here >= 0:
                    return 1, depth_read
                if here != REFUSED:
                    return here, depth_read
                is_indent_refused |= move == -2
    return 0, depth_read


@helper
def _allows(shift, goto, reductions, reduce, before, defaults, lines, moves, sets, tight, number, cells, cell_slots,
            shifts, shift_slots, offered, counts, cell, offer, level):  # fmt: skip
    """Whether a group's tokens are allowed: 1, 0, or -1 where it depends on what can follow the lexeme."""
    answer, depth_read = _accepts(
        shift, goto, reductions, reduce, before, defaults, lines, moves, sets, 2 * number, tight[number, 0] & 2,
        cells, cell_slots, shifts, shift_slots, offered, counts, cell, offer, level,
    )  # fmt: skip
    if answer or not tight[number, 0] & 1:
        return answer, depth_read
    answer, depth = _accepts(
        shift, goto, reductions, reduce, before, defaults, lines, moves, sets, 2 * number + 1, tight[number, 0] & 4,
        cells, cell_slots, shifts, shift_slots, offered, counts, cell, offer, level,
    )  # fmt: skip
    return -1 if answer == 1 else answer, min(depth_read, depth)


@helper
def _mixed(mixed, number):
    """A hash, and another number."""
    return (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(number)


@helper
def _answer_slot(answers, answer_slots, cells, cell, count, number, within, level, mixed):
    """The slot of an answer that so many states on top of a stack decide, which is free where there is none.

    ``mixed`` is the hash of what is asked and of the states.
    """
    mask = len(answer_slots) - 1
    slot = _mixed(mixed, level)
    slot = np.int64((slot ^ slot >> np.uint64(32)) & np.uint64(mask))
    while answer_slots[slot]:
        a = answer_slots[slot] - 1
        here = cell
        same = answers[a, 0] == number and answers[a, 1] == within and answers[a, 2] == level
        same = same and answers[a, _ANSWER + 1] == count
        k = 0
        while same and k < count:
            same = answers[a, _STATES + k] == cells[here, 1]
            here = cells[here, 0]
            k += 1
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@helper
def _answered(answers, answer_slots, levels, cells, cell, number, within, level):
    """What is remembered of a set on a stack: 1, 0, or -1 for nothing; and the lowest depth looked at.

    For all levels with as many open brackets, or for this one.
    """
    alike = np.int64(OF_BRACKETS) + levels[level, levels.shape[1] - 1]
    mixed = _mixed(_mixed(np.uint64(0), number), within)
    here = np.int64(cell)
    for count in range(1, MOST_DECIDING + 1):
        if here < 0:
            break
        mixed = _mixed(mixed, cells[here, 1])
        for turn in range(2):
            where = np.int64(level) if turn else alike
            slot = _answer_slot(answers, answer_slots, cells, cell, count, number, within, where, mixed)
            if answer_slots[slot]:
                return answers[answer_slots[slot] - 1, _ANSWER], cells[here, 2]
        here = np.int64(cells[here, 0])
    return np.int32(-1), cells[cell, 2]


@helper
def _follows(parser, shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets, moves,
             levels, offered, offer, tight, number, cells, cell_slots, shifts, shift_slots, counts, cell, within,
             level):  # fmt: skip
    """Whether something can follow a lexeme that has one of a set's endings that are not unconstrained.

    Lexemes that are no line ends come first, then line ends with the column of their line, which read less of the
    stack than others. Returns 1, 0, -1 where that is not known, or `SHORT` or `FULL`; the lowest depth looked at; and
    whether it is so at all levels with as many open brackets.
    """
    first, asked = _table(parser, _COMPLETIONS + 8), _table(parser, _COMPLETIONS + 9)
    depth_read = min(cells[cell, 2], cells[cell, 4])
    if len(asked) == 0:
        return np.int64(-1), depth_read, False
    is_known = True
    for turn in range(3):
        last_move = np.int64(-1)
        last_boundary = np.int32(-1)
        e = -1
        while e + 1 < len(asked):
            e += 1
            if not e & 31 and not tight[number, 1 + (e >> 5)]:
                e += 31
                continue
            t = np.int64(asked[e, 0])
            is_line = t >= lines[3]
            if is_line != (turn > 0) or not tight[number, 1 + (e >> 5)] >> np.int32(e & 31) & 1:
                continue
            here = np.int64(cell)
            where = np.int64(within)
            inside = np.int64(levels[level, levels.shape[1] - 1])
            depth = np.int64(cells[cell, 2])
            is_alike = True
            if is_line:
                move = np.int64(moves[level, t - lines[3]])
                if move == -1 or (turn == 1) != (move == 0 or move == 1):
                    continue
                if move == -2 and t >= lines[4]:
                    is_known = False
                    continue
                if move == last_move and asked[e, 1] == last_boundary:
                    continue  # as wide a line, or one within brackets, was looked at
                last_move = move
                last_boundary = asked[e, 1]
                if move:
                    is_alike = False
                    here, depth, state = _line_ended(
                        shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots,
                        counts, cell, move, lines[0], lines[1], lines[2],
                    )  # fmt: skip
                    where = np.int64(context[state])
            else:
                if not offered[offer, t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                    continue
                if brackets[t]:
                    inside += 1 if brackets[t] == 1 else -1
                if t != lines[0] and not ignored[t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                    known = _shifted(
                        shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots,
                        counts, cell, t,
                    )  # fmt: skip
                    if known < 0:
                        return np.int64(known), depth_read, False
                    here = np.int64(shifts[known, 2])
                    depth = np.int64(shifts[known, 3])
                    where = np.int64(context[shifts[known, 4]])
            depth_read = min(depth_read, depth)
            if here == REFUSED:
                continue
            if here < 0:
                return here, depth_read, False
            begins = first[where, 2 * asked[e, 1] + (inside > 0)]
            answer, there = _completed(parser, goto, cells, here, inside, begins)
            if answer:
                return np.int64(answer), min(depth, there), is_alike
            depth_read = min(depth_read, there)
    return np.int64(0 if is_known else -1), depth_read, False


@helper
def _keep(answers, answer_slots, cells, counts, cell, count, number, within, level, answer):
    """See `keep_answer`."""
    known = counts[_N_ANSWERS]
    mixed = _mixed(_mixed(np.uint64(0), number), within)
    here = cell
    for _ in range(count):
        mixed = _mixed(mixed, cells[here, 1])
        here = np.int64(cells[here, 0])
    slot = _answer_slot(answers, answer_slots, cells, cell, count, number, within, level, mixed)
    if known == len(answers) or answer_slots[slot]:
        return False
    counts[_N_ANSWERS] = known + 1
    answer_slots[slot] = known + 1
    answers[known, 0] = number
    answers[known, 1] = within
    answers[known, 2] = level
    answers[known, _ANSWER] = answer
    answers[known, _ANSWER + 1] = count
    for k in range(count):
        answers[known, _STATES + k] = cells[cell, 1]
        cell = cells[cell, 0]
    return True


@helper
def _answer(parser, shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets, moves,
            levels, offered, offer, tight, number, cells, cell_slots, shifts, shift_slots, answers, answer_slots,
            counts, cell, name, within, level):  # fmt: skip
    """As `_follows`; what is found is remembered under a name. And the lowest depth looked at."""
    found, depth, is_alike = _follows(
        parser, shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets, moves, levels,
        offered, offer, tight, number, cells, cell_slots, shifts, shift_slots, counts, cell, within, level,
    )  # fmt: skip
    count = cells[cell, 2] + 1 - depth
    if found >= 0 and count <= MOST_DECIDING:
        where = np.int64(OF_BRACKETS) + levels[level, levels.shape[1] - 1] if is_alike else np.int64(level)
        _keep(answers, answer_slots, cells, counts, np.int64(cell), count, name, within, where, found)
    return found, np.int64(depth)


@kernel(releases_gil=False)
def keep_answer(
    stacks: Out[int32[::1]], counts: Out[int64[::1]], cell: int64, count: int64, number: int64, within: int64,
    level: int64, answer: int64,
) -> boolean:  # fmt: skip
    """Remember whether something can follow a lexeme on all stacks with the same states on top.

    Parameters
    ----------
    stacks, counts:
        See `walk_stack_masks`.
    cell, count:
        A stack, and how many of its states decided.
    number, within, level:
        What was asked, and where; `OF_BRACKETS` plus a number for all levels with so many.
    answer:
        1 or 0.

    Returns
    -------
    Whether there was room.
    """
    answers, answer_slots = _of_answers(stacks)
    return _keep(
        answers, answer_slots, _table(stacks, _CELLS), counts, np.int64(cell), count, number, within, level, answer
    )


#: Of the groups of a record (see `walk_stack_masks`): those with at most so many ids have them in it. Others have the
#: number of a row, or where in a list their ids lie.
MOST_IDS, IS_ROW, IS_LONG = 29, 30, 31


@kernel
def lay_out_places(
    group_start: int32[::1], groups: int32[:, ::1], end_start: int32[::1], ends: int32[:, ::1], ids_start: int32[::1],
    ids: int32[::1], is_list: boolean[::1], records: Out[int32[::1]], at: Out[int32[::1]],
) -> None:  # fmt: skip
    """Write the records of partial masks one after another.

    Parameters
    ----------
    group_start, groups, end_start, ends:
        Place ``p`` has the groups ``group_start[p]:group_start[p + 1]``, ``int32[*, 2]`` set and row, and likewise
        ends, ``int32[*, 2]`` terminal and continuation.
    ids_start, ids, is_list:
        The ids of row ``r`` are ``ids[ids_start[r]:ids_start[r + 1]]``, where it is a list of them.
    records, at:
        ``int32[*]``, out: the records, and where that of each mask begins.
    """
    n = 0
    for p in range(len(at)):
        at[p] = n
        records[n] = end_start[p + 1] - end_start[p]
        records[n + 1] = group_start[p + 1] - group_start[p]
        n += 2
        for e in range(end_start[p], end_start[p + 1]):
            records[n] = ends[e, 0]
            records[n + 1] = ends[e, 1]
            n += 2
        for g in range(group_start[p], group_start[p + 1]):
            r = groups[g, 1]
            first = ids_start[r]
            count = ids_start[r + 1] - first
            if not is_list[r]:
                records[n] = groups[g, 0] << 5 | IS_ROW
                records[n + 1] = r
                n += 2
            elif count > MOST_IDS:
                records[n] = groups[g, 0] << 5 | IS_LONG
                records[n + 1] = first
                records[n + 2] = count
                n += 3
            else:
                records[n] = groups[g, 0] << 5 | count
                n += 1
                for k in range(count):
                    records[n] = ids[first + k]
                    n += 1


@kernel(releases_gil=False)
def add_groups(
    records: int32[::1], ids: int32[::1], groups: int32[::1], row: Out[uint32[::1]], pool_rows: Out[int32[::1]]
) -> int64:
    """Set the bits of groups' ids in a row.

    Parameters
    ----------
    records, ids:
        ``int32[*]``. A group is 32 times its set, plus the number of its ids, `IS_ROW` or `IS_LONG`, and behind that
        its ids, or the row of the pool that has them, or where they begin in ``ids`` and how many they are.
    groups:
        ``int32[*]``: where groups begin in ``records``.
    row:
        ``uint32[words]``, out.
    pool_rows:
        ``int32[*]``, out, as long as ``groups``: the rows of the pool, which are not added.

    Returns
    -------
    The number of these.
    """
    n = 0
    for at in groups:
        count = records[at] & 31
        if count == IS_ROW:
            pool_rows[n] = records[at + 1]
            n += 1
        elif count == IS_LONG:
            first = records[at + 1]
            for k in range(first, first + records[at + 2]):
                i = ids[k]
                row[i >> 5] |= np.uint32(1) << np.uint32(i & 31)
        else:
            for k in range(at + 1, at + 1 + count):
                i = records[k]
                row[i >> 5] |= np.uint32(1) << np.uint32(i & 31)
    return n


@kernel
def walk_stack_masks(
    parser: Out[int32[::1]], of_levels: int32[::1], records: int32[::1], sets: uint32[:, ::1], tight: int32[:, ::1],
    target: int32[:, ::1], cell: int64, record: int64, within: int64, level: int64, most: int64,
    stacks: Out[int32[::1]], counts: Out[int64[::1]],
) -> tuple[int64, int64, int64, int64]:  # fmt: skip
    """Everything that a partial mask allows on a stack, through all terminals that tokens complete.

    Parameters
    ----------
    parser, of_levels, stacks:
        Blocks (`structgen.kernels.grammar.blocks`) with the tables below in this order: the parser's to ``brackets``,
        then ``same_start`` and ``same`` (see `read_token`) and what completes texts (`_COMPLETIONS`); to ``levels``,
        then ``dedents`` (see `may_end_text`); and from ``cells`` on.
    shift, goto:
        ``int32[states, terminals + 1]`` and ``int32[states, nonterminals]``: the next state, -1 for none.
    reductions, reduce, before:
        The reductions of state ``s`` are ``reductions[s]:reductions[s + 1]``; ``int32[*, 2]`` length and nonterminal;
        ``uint32[*, words]`` the terminals before which each is made.
    shifted, defaults, context, ignored:
        ``uint32[states, words]``; ``uint8[states]``: whether a state makes its only reduction whatever comes next;
        ``int32[states]``; ``uint32[words]``.
    lines, brackets:
        ``int32[4]``: the terminals of line ends, indents and dedents, and the one that stands for a line end with
        column 0; ``uint8[terminals]``: 1 for opening brackets, 2 for closing ones.
    keep, given:
        ``uint32[levels, words]``: the terminals that a level leaves to the parser, and those that it accepts itself.
    moves, levels:
        ``int32[levels, columns + 2]``: what a line end with a column, or behind these a bracket, comes to at a level:
        -1 can't come, 0 nothing, 1 a line end, 1 + d with d dedents, -2 with an indent; and the level after, -1
        where it is not known yet, with the number of open brackets behind them.
    records:
        ``int32[*]`` (see `add_groups`). A partial mask is where its record begins: the number of its ends and of its
        groups; for each end its terminal and continuation; and its groups.
    sets, tight:
        ``uint32[*, words]``, two for each set: terminals that are enough, and terminals that are if something can
        follow; ``int32[*, *]``: 1 where there are some of these, 2 and 4 for columns among the two, and 8 times the
        number of a set of which as much is asked; then, in words, which of the endings that are asked for (see
        `structgen.kernels.grammar.blocks`) it has.
    target:
        ``int32[continuations, contexts]``: the record that goes on from a continuation in a context, or -1.
    cell, record, within, level:
        The stack; where to begin, in which context, and at which level.
    most:
        So many records are gone through in this call.
    cells, cell_slots:
        ``int32[*, 5]``: cell below, state, depth, and, as soon as it is known, 1 plus the number of what is
        accepted, and the lowest depth looked at for that. The slots of this table and the next ones are ``int32[*]``.
    shifts, shift_slots:
        ``int32[*, 5]``: cell, terminal, cell after it, lowest depth looked at, and the state that shifted it.
    accepted, accept_slots:
        ``uint32[*, words]``: the different sets of terminals that stacks accept.
    offers, offer_slots, offered, hits:
        ``int32[offers, 2]`` number of such a set, and level; ``uint32[offers, words]``: what of it the level leaves;
        ``uint8[offers, sets]``: whether a set has one of these, 1 for no, 2 for yes, 0 where it is not known yet.
    counts:
        ``int64[GSS_PROGRESS]``, in no block: how many cells, shifts, sets and offers there are, which are left to
        the next call; and how far an earlier call came with this mask.
    waiting, masks, todo:
        Scratch: ``int32[*, 2]``, ``uint32[*, words]``, ``int32[*, 4]``.
    answers, answer_slots:
        ``int32[*, 5 + MOST_DECIDING]``: what is asked (see `tight`), a context, a level, whether it is so, how many
        states on top of a stack decided that, and these states, the uppermost first.
    allowed, missing, open_questions:
        ``int32[*]``, and twice ``int32[*, 4]``, out: where the groups that are allowed lie in ``records``;
        continuations and contexts without a record, with the cell and the level there, or -1 minus a level, and a
        column or bracket, without a level after; cell, context, level and the index of a group in ``records`` that
        are left open. What has a cell and a level is gone on with where it is put into ``todo``.

    Returns
    -------
    (number of groups, number missing, number left open, lowest depth looked at); the first is `SHORT` where more of
    the stack is needed or scratch does not suffice, `FULL` where the tables have to be emptied, and `UNFINISHED`
    where the same call goes on.
    """
    shift, goto, reductions, reduce, before, shifted, defaults, context, ignored, lines, brackets = _actions(parser)
    keep, given, moves, levels = _of_levels(of_levels)
    (
        cells, cell_slots, shifts, shift_slots, accepted, accept_slots, offers, offer_slots, offered, hits, waiting,
        masks,
    ) = _of_stacks(stacks)  # fmt: skip
    answers, answer_slots = _of_answers(stacks)
    todo, allowed = _table(stacks, _WORKLIST), _flat(stacks, _ALLOWED)
    missing, open_questions = _table(stacks, _MISSING), _table(stacks, _OPEN)
    n_allowed = np.int64(0)
    n_missing = np.int64(0)
    n_open = np.int64(0)
    visited = np.int64(0)
    n_todo = counts[_N_LEFT]
    if n_todo == 0:
        counts[_STACK] = cell
        depth_read = np.int64(cells[cell, 2])
        todo[0, 0] = record
        todo[0, 1] = cell
        todo[0, 2] = within
        todo[0, 3] = level
        n_todo = np.int64(1)
    else:
        depth_read = counts[_LOOKED]
        n_allowed = counts[_N_ALLOWED]
        n_missing = counts[_N_MISSING]
        n_open = counts[_N_OPEN]
        visited = counts[_VISITED]
        counts[_N_LEFT] = 0
    newline = lines[0]
    at_zero = lines[3]
    columns = moves.shape[1] - 2
    while n_todo:
        if most == 0:
            counts[_N_ALLOWED] = n_allowed
            counts[_N_MISSING] = n_missing
            counts[_N_OPEN] = n_open
            counts[_LOOKED] = depth_read
            counts[_VISITED] = visited
            counts[_N_LEFT] = n_todo
            return UNFINISHED, 0, 0, 0
        most -= 1
        n_todo -= 1
        visited += 1
        if visited > _MOST_RECORDS:
            return SHORT, 0, 0, 0
        # Whoever calls a helper with numbers of other types has Numba compile it again.
        p = np.int64(todo[n_todo, 0])
        c = np.int64(todo[n_todo, 1])
        p_context = np.int64(todo[n_todo, 2])
        p_level = np.int64(todo[n_todo, 3])
        number = _accepted_by(
            goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots, counts,
            waiting, masks, c,
        )  # fmt: skip
        if number < 0:
            return number, 0, 0, 0
        depth_read = min(depth_read, np.int64(cells[c, 4]))
        offer = _offer(keep, given, accepted, offers, offer_slots, offered, hits, counts, number, p_level)
        if offer < 0:
            return offer, 0, 0, 0
        e_end = p + 2 + 2 * records[p]
        for e in range(p + 2, e_end, 2):
            t = np.int64(records[e])
            here = c
            where = p_context
            after_level = p_level
            operation = -1
            if t >= at_zero:
                operation = t - at_zero
            else:
                if not offered[offer, t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                    continue
                if brackets[t]:
                    operation = columns + brackets[t] - 1
            if operation >= 0:
                move = np.int64(moves[p_level, operation])
                if move == -1:
                    continue
                after_level = np.int64(levels[p_level, operation])
            if t >= at_zero:
                if move:
                    here, depth, state = _line_ended(
                        shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots,
                        counts, c, move, newline, lines[1], lines[2],
                    )  # fmt: skip
                    depth_read = min(depth_read, depth)
                    if here == REFUSED:
                        continue
                    where = context[state]
            elif t != newline and not ignored[t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                slot = _slot(shift_slots, shifts, c, t, 2)
                known = shift_slots[slot] - 1
                if known < 0:
                    known = _shifted(
                        shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots,
                        counts, c, t,
                    )  # fmt: skip
                    if known < 0:
                        return known, 0, 0, 0
                here = np.int64(shifts[known, 2])
                depth_read = min(depth_read, shifts[known, 3])
                where = context[shifts[known, 4]]
            if here < 0:
                return min(here, SHORT), 0, 0, 0
            if after_level < 0:
                if n_missing < len(missing):
                    missing[n_missing, 0] = -1 - p_level
                    missing[n_missing, 1] = operation
                    missing[n_missing, 2] = missing[n_missing, 3] = 0
                    n_missing += 1
                continue
            following = target[records[e + 1], where]
            if following < 0:
                if n_missing < len(missing):
                    missing[n_missing, 0] = records[e + 1]
                    missing[n_missing, 1] = where
                    missing[n_missing, 2] = here
                    missing[n_missing, 3] = after_level
                    n_missing += 1
                continue
            if n_todo == len(todo):
                return SHORT, 0, 0, 0
            todo[n_todo, 0] = following
            todo[n_todo, 1] = here
            todo[n_todo, 2] = where
            todo[n_todo, 3] = after_level
            n_todo += 1
        g = e_end
        for _ in range(records[p + 1]):
            number = np.int64(records[g] >> 5)
            count = records[g] & 31
            group = g
            g += 2 if count == IS_ROW else 3 if count == IS_LONG else 1 + count
            if hits[offer, number] == 0:
                hits[offer, number] = 1
                for w in range(sets.shape[1]):
                    if sets[2 * number, w] & offered[offer, w]:
                        hits[offer, number] = 2
                        break
            if hits[offer, number] == 1:
                if not tight[number, 0]:
                    continue
                answer = np.int64(-1)
                if tight[number, 0] & 2 or not _have_common(sets, 2 * number + 1, offered, offer):
                    answer, depth = _allows(
                        shift, goto, reductions, reduce, before, defaults, lines, moves, sets, tight, number, cells,
                        cell_slots, shifts, shift_slots, offered, counts, c, offer, p_level,
                    )  # fmt: skip
                    depth_read = min(depth_read, depth)
                    if answer == 0:
                        continue
                    if answer < -1:
                        return answer, 0, 0, 0
                if answer == -1:
                    known, depth = _answered(
                        answers, answer_slots, levels, cells, c, np.int64(tight[number, 0] >> 3), p_context, p_level
                    )
                    if known >= 0:
                        answer = np.int64(known)
                        depth_read = min(depth_read, np.int64(depth))
                        if answer == 0:
                            continue
                if answer == -1:
                    answer, depth = _answer(
                        parser, shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets,
                        moves, levels, offered, offer, tight, number, cells, cell_slots, shifts, shift_slots, answers,
                        answer_slots, counts, c, np.int64(tight[number, 0] >> 3), p_context, p_level,
                    )  # fmt: skip
                    if answer < -1:
                        return answer, 0, 0, 0
                    depth_read = min(depth_read, depth)
                    if answer == 0:
                        continue
                if answer == -1:
                    if n_open == len(open_questions):
                        return SHORT, 0, 0, 0
                    open_questions[n_open, 0] = c
                    open_questions[n_open, 1] = p_context
                    open_questions[n_open, 2] = p_level
                    open_questions[n_open, 3] = group
                    n_open += 1
                    continue
            if n_allowed == len(allowed):
                return SHORT, 0, 0, 0
            allowed[n_allowed] = group
            n_allowed += 1
    if n_missing:
        counts[_N_ALLOWED] = n_allowed
        counts[_N_OPEN] = n_open
        counts[_LOOKED] = depth_read
        counts[_VISITED] = visited
    return n_allowed, n_missing, n_open, depth_read
