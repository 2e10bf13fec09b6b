"""Walks of the trie of tokens through a grammar's lexer."""

from __future__ import annotations

import numpy as np

from ..jit import bare_kernel, kernel
from ..values import CONFLICT, NO_ROOM, OK, TOO_MUCH_WORK

#: Where sets of watched states lead: to a lexeme that must not be completed, or where nobody has looked.
BEATEN = -2
NOT_FOLLOWED = -3

#: Numbers in `progress` of `walk_lexer`: the residual node that it is below, the node that it came to, or -1 where it
#: has not begun below that; numbers of tokens and nodes found; the set that it does not know.
L_RESIDUAL, L_NODE, L_IDS, L_BELOW, L_SET, LEXER_PROGRESS = range(6)


@bare_kernel
def walk_lexer(byte, depth, skip, first_token, token_ids, class_of, table, goes_on, beats, sets, residual, state,
               watch, most, progress, path, tokens, below):  # fmt: skip
    """The tokens that a lexeme in progress allows, and where in the trie it can be complete.

    Parameters
    ----------
    class_of, table, goes_on, beats:
        The lexer, as in `structgen.runtime.grammar.tables`.
    sets:
        ``int32[sets, classes]``: where a byte leads sets of several states that are watched, which are numbered
        behind the lexer's states: a state, a set, -1 for nothing, `BEATEN`, or `NOT_FOLLOWED`.
    residual:
        ``int32[*]``, nodes; the subtree below each is walked from ``state``.
    state:
        The lexer state at these nodes.
    watch:
        A state of an earlier lexeme that must not be completed any more, a set of such, or -1: the walk ends where
        it beats.
    most:
        So many nodes are looked at in this call.
    progress, path:
        ``int64[LEXER_PROGRESS]`` and ``int32[2, max_depth + 2]``: where an earlier call came to. In the beginning
        ``L_NODE`` is -1, the others 0.
    tokens, below:
        ``int32[3, *]``, out: allowed tokens in the trie's order, and nodes at which the lexeme may be complete and a
        token may go on with another one; the lexer state there, and what is watched there.

    Returns
    -------
    `OK`; or, where it can go on, `TOO_MUCH_WORK`, `CONFLICT` where a set leads somewhere unknown, and `NO_ROOM`.
    """
    n = progress[L_IDS]
    m = progress[L_BELOW]
    i = progress[L_NODE]
    r = progress[L_RESIDUAL]
    status = OK
    while r < len(residual):
        root = residual[r]
        if i < 0:
            path[0, depth[root]] = state
            path[1, depth[root]] = watch
            i = root + 1
        end = skip[root]
        while i < end:
            if most == 0:
                status = TOO_MUCH_WORK
                break
            most -= 1
            d = depth[i]
            c = class_of[byte[i]]
            s = table[path[0, d - 1], c]
            if s < 0:
                i = skip[i]
                continue
            w = path[1, d - 1]
            if w >= len(table):
                before = w
                w = sets[before - len(table), c]
                if w == NOT_FOLLOWED:
                    progress[L_SET] = before
                    status = CONFLICT
                    break
                if w == BEATEN:
                    i = skip[i]
                    continue
            elif w >= 0:
                w = table[w, c]
                if w >= 0 and beats[w]:
                    i = skip[i]
                    continue
            if n + first_token[i + 1] - first_token[i] > tokens.shape[1] or m == below.shape[1]:
                status = NO_ROOM
                break
            for t in range(first_token[i], first_token[i + 1]):
                tokens[0, n] = token_ids[t]
                tokens[1, n] = s
                tokens[2, n] = w
                n += 1
            if i + 1 < skip[i]:
                # Only where some token goes on behind a lexeme that ends here.
                child = i + 1
                while child < skip[i] and not goes_on[s, class_of[byte[child]]]:
                    child = skip[child]
                if child < skip[i]:
                    below[0, m] = i
                    below[1, m] = s
                    below[2, m] = w
                    m += 1
                path[0, d] = s
                path[1, d] = w
            i += 1
        if status != OK:
            break
        r += 1
        i = np.int64(-1)
    progress[L_IDS] = n
    progress[L_BELOW] = m
    progress[L_NODE] = i
    progress[L_RESIDUAL] = r
    return status


@kernel
def most_completed(byte, depth, skip, first_token, max_depth, class_of, table, goes_on, ends, begins, added, starts,
                   limit):  # fmt: skip
    """The most that the lexemes which a token completes add up to, from whatever lexer state it begins in.

    Parameters
    ----------
    class_of, table, goes_on, starts:
        The lexer, as in `structgen.runtime.grammar.tables`.
    ends, begins:
        ``int32[*]``, ``int64[lexer states + 1]``: the terminals that a lexeme can be where it ends, state by state.
    added:
        ``int64[terminals + 1, terminals]``: what a terminal adds behind another one, or behind any; -1 for one that
        leaves what was before it the one before.
    limit:
        So many states, each with the terminal before, are looked at below nodes at most.

    Returns
    -------
    The sum, or -1 where that takes too long.
    """
    count = len(table)
    kinds = added.shape[0]
    width = 2 * count + 4096
    states = np.empty((max_depth + 2, width), np.int32)  # with the terminal before
    sums = np.empty((max_depth + 2, width), np.int64)
    lengths = np.zeros(max_depth + 2, np.int64)
    seen = np.full(count * kinds, -1, np.int64)
    slots = np.empty(count * kinds, np.int64)
    for s in range(count):
        states[depth[0], s] = s * kinds + kinds - 1
        sums[depth[0], s] = 0
    lengths[depth[0]] = count
    most = 0
    steps = 0
    i = 1
    while i < len(byte):
        d = depth[i]
        c = class_of[byte[i]]
        n = 0
        for k in range(lengths[d - 1]):
            s = states[d - 1, k] // kinds
            before = states[d - 1, k] % kinds
            turns = (begins[s + 1] - begins[s]) * len(starts) if goes_on[s, c] else 0
            steps += 1 + turns
            for j in range(-1, turns):
                total = sums[d - 1, k]
                last = before
                if j < 0:
                    target = table[s, c]
                else:
                    target = table[starts[j % len(starts)], c]
                    terminal = ends[begins[s] + j // len(starts)]
                    if added[before, terminal] >= 0:
                        total += added[before, terminal]
                        last = terminal
                if target < 0:
                    continue
                key = target * kinds + last
                if seen[key] != i:
                    if n == width:
                        return -1
                    seen[key] = i
                    slots[key] = n
                    states[d, n] = key
                    sums[d, n] = total
                    n += 1
                elif sums[d, slots[key]] < total:
                    sums[d, slots[key]] = total
        if steps > limit:
            return -1
        lengths[d] = n
        if first_token[i] < first_token[i + 1]:
            for k in range(n):
                most = max(most, sums[d, k])
        i = i + 1 if n else skip[i]
    return most
