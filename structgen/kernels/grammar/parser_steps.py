"""A grammar's lexer and parser over the bytes of a token, on the stacks of `parser_walks`."""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel
from ..signatures import Out, int32, int64, uint8
from .blocks import (
    _CELL_SLOTS,
    _CELLS,
    _actions,
    _flat,
    _of_answers,
    _of_levels,
    _of_lexer,
    _of_stacks,
    _simpler,
    _table,
)
from .parser_walks import (
    REFUSED,
    SHORT,
    _accepted_by,
    _allows,
    _answer,
    _answered,
    _cell,
    _line_ended,
    _offer,
    _reduced,
    _shifted,
)

# Columns of a row of `same` as the kernels read it: how many states are taken away, then the symbols that are read in
# their place (a terminal, -2 minus a nonterminal, or -1 for none), then the states that there have to be.
_SYMBOL, _STATES = 1, 6

#: Stacks that a terminal's reductions may come to before Python has to look after them.
_REACHED = 64

#: Added to a lexer state where what is asked is whether a lexeme can go on from there; sets have lower numbers. What
#: is watched, plus 1, stands for so many contexts each as there are.
OF_LEXER = 1 << 26

#: Columns of `threads`: the stack's cell, the context, the level, the lexer's state, the state that is watched or -1,
#: the thread that this one comes from; then, at the end of the token, whether the lexeme can become what the parser
#: accepts (0, 1, or 2 where the kernel can't tell), and how many states were taken from that thread's stack, and put
#: on it instead.
T_CELL, T_CONTEXT, T_LEVEL, T_LEXER, T_WATCHED, T_FROM, T_ALIVE, T_POPPED, T_PUSHED, THREAD = range(10)

#: What stands for the number of threads: a level's follower is not known; there are several obligations, or too many
#: threads.
NO_LEVEL, SEVERAL = -5, -6


@helper
def _simplest(shift, goto, same_start, same, cells, cell_slots, counts, cell):
    """The simplest stack that is known to accept the same, or `SHORT` or `FULL`."""
    steps = 0
    found = True
    while found:
        found = False
        s = cells[cell, 1]
        for k in range(same_start[s], same_start[s + 1]):
            here = np.int64(cell)
            left = np.int64(-1)
            bottom = here
            count = 0
            for j in range(_STATES, same.shape[1]):
                if same[k, j] < 0 or here < 0 or cells[here, 1] != same[k, j]:
                    break
                bottom = here
                here = np.int64(cells[here, 0])
                count += 1
                if count == same[k, 0]:
                    left = here
            is_there = _STATES + count == same.shape[1] or same[k, _STATES + count] < 0
            if here < 0 and cells[bottom, 1] and (not is_there or left < 0):
                return np.int64(SHORT)  # there is more of the stack: its lowest state is not the first one
            if not is_there or left < 0:
                continue
            found = True
            cell = left
            for j in range(_SYMBOL, _STATES):
                symbol = same[k, j]
                if symbol == -1:
                    continue
                s = cells[cell, 1]
                s = shift[s, symbol] if symbol >= 0 else goto[s, -2 - symbol]
                if s < 0:
                    return np.int64(SHORT)
                cell = np.int64(_cell(cells, cell_slots, counts, np.int64(s), cell))
                if cell < 0:
                    return cell
            break
        steps += 1
        if steps > 100000:
            return np.int64(SHORT)
    return np.int64(cell)


@helper
def _read_terminal(shift, goto, reductions, reduce, before, defaults, same_start, same, cells, cell_slots, counts,
                   reached, cell, terminal):  # fmt: skip
    """The simplest stack after a terminal, or `REFUSED`, `SHORT` or `FULL`; and the state that shifted it."""
    word = terminal >> 5
    bit = np.uint32(1) << np.uint32(terminal & 31)
    here = np.int64(cell)
    reached[0] = here
    n = 1
    while shift[cells[here, 1], terminal] < 0:
        s = np.int64(cells[here, 1])
        r = reductions[s]
        while r < reductions[s + 1] and not before[r, word] & bit:
            r += 1
        if r == reductions[s + 1]:
            return np.int64(REFUSED), np.int64(0)
        s, below = _reduced(goto, cells, cell_slots, counts, s, np.int64(cells[here, 0]), reduce[r, 0], reduce[r, 1])
        if below < 0:
            return np.int64(below), np.int64(0)
        reduced = np.int64(_cell(cells, cell_slots, counts, s, below))
        if reduced < 0:
            return reduced, np.int64(0)
        simple = _simplest(shift, goto, same_start, same, cells, cell_slots, counts, reduced)
        if simple < 0:
            return simple, np.int64(0)
        is_simple_known = False
        is_known = False
        for k in range(n):
            is_simple_known |= reached[k] == simple
            is_known |= reached[k] == reduced
        if is_simple_known:  # it comes to what it comes from, by something empty
            if is_known:
                return np.int64(REFUSED), np.int64(0)
            simple = reduced
        if n == _REACHED:
            return np.int64(SHORT), np.int64(0)
        reached[n] = simple
        n += 1
        here = simple
    state = np.int64(shift[cells[here, 1], terminal])
    here = np.int64(_cell(cells, cell_slots, counts, state, here))
    steps = 0
    while here >= 0 and defaults[cells[here, 1]]:
        s = np.int64(cells[here, 1])
        r = reductions[s]
        steps += 1
        if steps > 100000:
            return np.int64(SHORT), np.int64(0)
        s, below = _reduced(goto, cells, cell_slots, counts, s, np.int64(cells[here, 0]), reduce[r, 0], reduce[r, 1])
        here = np.int64(_cell(cells, cell_slots, counts, s, below)) if below >= 0 else np.int64(below)
    if here >= 0:
        here = _simplest(shift, goto, same_start, same, cells, cell_slots, counts, here)
    return here, state


@helper
def _read_lexeme(shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets, given, moves,
                 levels, same_start, same, cells, cell_slots, counts, reached, cell, within, level,
                 terminal):  # fmt: skip
    """The stack, the context and the level after a terminal of the lexer.

    The stack may be `REFUSED`, `SHORT` or `FULL`, or `NO_LEVEL`, with the level's operation as the context.
    """
    word = terminal >> 5
    bit = np.uint32(terminal & 31)
    here = np.int64(cell)
    within = np.int64(within)
    level = np.int64(level)
    if ignored[word] >> bit & np.uint32(1):
        return here, within, level
    operation = np.int64(-1)
    if terminal >= lines[3]:
        operation = np.int64(terminal - lines[3])
    elif terminal == lines[0]:
        return here if given[level, word] >> bit & np.uint32(1) else np.int64(REFUSED), within, level
    elif brackets[terminal]:
        operation = np.int64(moves.shape[1] - 3 + brackets[terminal])
    after = level
    if operation >= 0:
        if moves[level, operation] == -1:
            return np.int64(REFUSED), within, level
        after = np.int64(levels[level, operation])
    state = np.int64(-1)
    if terminal < lines[3]:
        here, state = _read_terminal(
            shift, goto, reductions, reduce, before, defaults, same_start, same, cells, cell_slots, counts, reached,
            here, terminal,
        )  # fmt: skip
    else:
        move = moves[level, operation]
        for k in range(2 if move == -2 else move):
            here, state = _read_terminal(
                shift, goto, reductions, reduce, before, defaults, same_start, same, cells, cell_slots, counts,
                reached, here, lines[0] if k == 0 else lines[1] if move == -2 else lines[2],
            )  # fmt: skip
            if here < 0:
                break
    if here >= 0 and after < 0:
        return np.int64(NO_LEVEL), operation, level
    if here >= 0 and state >= 0:
        within = np.int64(context[state])
    return here, within, after


@kernel(releases_gil=False)
def push_states(stacks: Out[int32[::1]], counts: Out[int64[::1]], below: int64, states: int32[::1]) -> int64:
    """The cell of some states on top of another cell, -1 for none, the lowest first; or `FULL`."""
    cells, cell_slots = _table(stacks, _CELLS), _flat(stacks, _CELL_SLOTS)
    below = np.int64(below)
    for k in range(len(states)):
        below = np.int64(_cell(cells, cell_slots, counts, np.int64(states[k]), below))
        if below < 0:
            break
    return below


@kernel(releases_gil=False)
def read_token(
    parser: Out[int32[::1]], of_levels: int32[::1], lexer_block: int32[::1], table: int32[:, ::1],
    stacks: Out[int32[::1]], counts: Out[int64[::1]], data: uint8[::1], threads: Out[int32[:, ::1]],
    others: Out[int32[:, ::1]], n: int64, scratch: Out[int32[::1]], above: Out[int32[::1]],
) -> tuple[int64, int64, int64]:  # fmt: skip
    """Threads of the lexer and the parser over the bytes of a token.

    Parameters
    ----------
    lexer_block:
        A block with the tables from ``class_of`` to ``tight``, ``table`` left out.
    same_start, same:
        The stacks with state ``s`` on top that simpler ones can stand for are
        ``same[same_start[s]:same_start[s + 1]]``, ``int32[*, 6 + longest]``: how many states are taken away; five
        symbols that are read in their place, each a terminal, -2 minus a nonterminal, or -1 for none; the states from
        the top down, -1 behind the last.
    table, class_of, end_start, ends, beats, lapses, starts:
        The lexer, as in `structgen.runtime.grammar.tables`; the ends of state ``s`` are
        ``ends[end_start[s]:end_start[s + 1]]``.
    futures, sets, tight:
        ``int32[lexer states]``: the set that a lexeme can become; sets, as in `walk_stack_masks`.
    data:
        ``uint8[*]``, the bytes.
    threads, others:
        ``int32[room, THREAD]``: the first ``n`` threads, out: those after the bytes; and scratch.
    scratch:
        ``int32[64 + room]``.
    above:
        ``int32[*]``, out: the states that were put on the stacks, thread by thread, the uppermost first.

    The other parameters are those of `walk_stack_masks`.

    Returns
    -------
    (number of threads, 0, 0), or, in place of that number, `SHORT`, `FULL` or `SEVERAL`; or (`NO_LEVEL`, level,
    operation).
    """
    shift, goto, reductions, reduce, before, shifted, defaults, context, ignored, lines, brackets = _actions(parser)
    keep, given, moves, levels = _of_levels(of_levels)
    (
        cells, cell_slots, shifts, shift_slots, accepted, accept_slots, offers, offer_slots, offered, hits, waiting,
        masks,
    ) = _of_stacks(stacks)  # fmt: skip
    class_of, end_start, ends, beats, _, starts, futures, sets, tight = _of_lexer(lexer_block)
    same_start, same = _simpler(parser)
    answers, answer_slots = _of_answers(stacks)
    for k in range(n):
        threads[k, T_FROM] = k
        scratch[_REACHED + k] = threads[k, T_CELL]
    for i in range(len(data)):
        c = class_of[data[i]]
        m = 0
        for k in range(n):
            watched = threads[k, T_WATCHED]
            if watched >= 0:
                watched = table[watched, c]
                if watched >= 0 and beats[watched]:
                    continue  # an earlier lexeme was not what this thread took it to be
            lexer = threads[k, T_LEXER]
            for e in range(end_start[lexer] - 1, end_start[lexer + 1]):
                here = np.int64(threads[k, T_CELL])
                within = np.int64(threads[k, T_CONTEXT])
                level = np.int64(threads[k, T_LEVEL])
                owed = watched
                if e < end_start[lexer]:
                    after = table[lexer, c]
                else:
                    w = ends[e, 1]
                    if w >= 0:
                        w = table[w, c]
                        if w >= 0 and beats[w]:
                            continue
                    here, within, level = _read_lexeme(
                        shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets, given,
                        moves, levels, same_start, same, cells, cell_slots, counts, scratch, here, within, level,
                        ends[e, 0],
                    )  # fmt: skip
                    if here == REFUSED:
                        continue
                    if here == NO_LEVEL:
                        return NO_LEVEL, level, within
                    if here < 0:
                        return here, 0, 0
                    after = table[starts[within], c]
                    if after >= 0 and w >= 0:
                        if owed >= 0 and owed != w:
                            return SEVERAL, 0, 0
                        owed = w
                if after < 0:
                    continue
                is_there = False
                for j in range(m):
                    if (
                        others[j, T_CELL] == here and others[j, T_CONTEXT] == within and others[j, T_LEVEL] == level
                        and others[j, T_LEXER] == after and others[j, T_WATCHED] == owed
                    ):  # fmt: skip
                        is_there = True
                if is_there:
                    continue
                if m == len(others):
                    return SEVERAL, 0, 0
                others[m, T_CELL] = here
                others[m, T_CONTEXT] = within
                others[m, T_LEVEL] = level
                others[m, T_LEXER] = after
                others[m, T_WATCHED] = owed
                others[m, T_FROM] = threads[k, T_FROM]
                m += 1
        for k in range(m):
            for j in range(T_FROM + 1):
                threads[k, j] = others[k, j]
        n = m
        if n == 0:
            break
    used = 0
    for k in range(n):
        cell = np.int64(threads[k, T_CELL])
        level = np.int64(threads[k, T_LEVEL])
        accepts = _accepted_by(
            goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots, counts,
            waiting, masks, cell,
        )  # fmt: skip
        if accepts < 0:
            return accepts, 0, 0
        offer = _offer(keep, given, accepted, offers, offer_slots, offered, hits, counts, accepts, level)
        if offer < 0:
            return offer, 0, 0
        number = np.int64(futures[threads[k, T_LEXER]])
        answer, _ = _allows(
            shift, goto, reductions, reduce, before, defaults, lines, moves, sets, tight, number, cells, cell_slots,
            shifts, shift_slots, offered, counts, cell, offer, level,
        )  # fmt: skip
        if answer < -1:
            return answer, 0, 0
        if answer == -1 or (answer and threads[k, T_WATCHED] >= 0):
            name = np.int64(OF_LEXER + threads[k, T_LEXER])
            known, _ = _answered(
                answers, answer_slots, levels, cells, cell, name,
                threads[k, T_CONTEXT] + len(starts) * (1 + threads[k, T_WATCHED]), level,
            )  # fmt: skip
            answer = np.int64(known)
            if answer < 0 and threads[k, T_WATCHED] < 0:
                answer, _ = _answer(
                    parser, shift, goto, reductions, reduce, before, defaults, context, ignored, lines, brackets,
                    moves, levels, offered, offer, tight, number, cells, cell_slots, shifts, shift_slots, answers,
                    answer_slots, counts, cell, name, np.int64(threads[k, T_CONTEXT]), level,
                )  # fmt: skip
            if answer < -1:
                return answer, 0, 0
        threads[k, T_ALIVE] = 2 if answer < 0 else answer
        first = np.int64(scratch[_REACHED + threads[k, T_FROM]])
        popped = 0
        pushed = 0
        while first != cell:
            if cell < 0 or (first >= 0 and cells[first, 2] > cells[cell, 2]):
                first = np.int64(cells[first, 0])
                popped += 1
            else:
                if used == len(above):
                    return SEVERAL, 0, 0
                above[used] = cells[cell, 1]
                used += 1
                pushed += 1
                cell = np.int64(cells[cell, 0])
        threads[k, T_POPPED] = popped
        threads[k, T_PUSHED] = pushed
    return n, 0, 0


@kernel(releases_gil=False)
def may_end_text(
    parser: int32[::1], of_levels: int32[::1], lexer_block: int32[::1], stacks: Out[int32[::1]],
    counts: Out[int64[::1]], cell: int64, level: int64, lexer: int64, watched: int64, is_fresh: int64,
) -> tuple[int64, int64, int64]:  # fmt: skip
    """Whether the text is complete if the lexeme of a thread is.

    Parameters
    ----------
    dedents:
        ``int32[levels]``: how many blocks are open.
    cell, level, lexer, watched, is_fresh:
        The thread, as in `read_token`, and whether no lexeme has begun.

    The other parameters are those of `walk_stack_masks` and `read_token`.

    Returns
    -------
    (0 or 1, 0, 0); or, in place of that number, `SHORT` or `FULL`; or (`NO_LEVEL`, level, operation).
    """
    shift, goto, reductions, reduce, before, shifted, defaults, _, ignored, lines, brackets = _actions(parser)
    _, given, moves, levels = _of_levels(of_levels)
    cells, cell_slots, shifts, shift_slots, accepted, accept_slots, _, _, _, _, waiting, masks = _of_stacks(stacks)
    _, end_start, ends, _, lapses, _, _, _, _ = _of_lexer(lexer_block)
    dedents = _flat(of_levels, 4)
    end = shift.shape[1] - 1
    if watched >= 0 and lapses[watched]:
        return 0, 0, 0
    for e in range(end_start[lexer] - is_fresh, end_start[lexer + 1]):
        here = np.int64(cell)
        after = level
        t = -1
        move = 0
        operation = -1
        if e >= end_start[lexer]:
            if ends[e, 1] >= 0 and lapses[ends[e, 1]]:
                continue
            t = np.int64(ends[e, 0])
            if ignored[t >> 5] >> np.uint32(t & 31) & np.uint32(1):
                move = 0
            elif t >= lines[3]:
                operation = t - lines[3]
            elif t == lines[0]:
                move = 0 if given[level, t >> 5] >> np.uint32(t & 31) & np.uint32(1) else -1
            else:
                move = -3  # one terminal of the parser
                if brackets[t]:
                    operation = moves.shape[1] - 3 + brackets[t]
        if operation >= 0:
            after = levels[level, operation]
            if moves[level, operation] == -1:
                move = -1
            elif after < 0:
                return NO_LEVEL, level, operation
            elif t >= lines[3]:
                move = np.int64(moves[level, operation])
        if move == -1:
            continue
        if move == -3:
            known = _shifted(
                shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts,
                here, t,
            )  # fmt: skip
            if known < 0:
                return known, 0, 0
            here = np.int64(shifts[known, 2])
        elif move:
            here, _, _ = _line_ended(
                shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts,
                here, move, lines[0], lines[1], lines[2],
            )  # fmt: skip
        for _ in range(dedents[after]):
            if here < 0:
                break
            known = _shifted(
                shift, goto, reductions, reduce, before, defaults, cells, cell_slots, shifts, shift_slots, counts,
                here, np.int64(lines[2]),
            )  # fmt: skip
            here = np.int64(shifts[known, 2]) if known >= 0 else np.int64(known)
        if here == REFUSED:
            continue
        if here < 0:
            return here, 0, 0
        accepts = _accepted_by(
            goto, reductions, reduce, before, shifted, ignored, cells, cell_slots, accepted, accept_slots, counts,
            waiting, masks, here,
        )  # fmt: skip
        if accepts < 0:
            return accepts, 0, 0
        if accepted[accepts, end >> 5] >> np.uint32(end & 31) & np.uint32(1):
            return 1, 0, 0
    return 0, 0, 0
