"""Walks of the trie of tokens through a grammar's lexer."""

from __future__ import annotations

import numpy as np

from .jit import kernel
from .pushdown_walks import OVERFLOW

#: Where sets of watched states lead: to a lexeme that must not be completed, or where nobody has looked.
BEATEN = -2
NOT_FOLLOWED = -3


@kernel
def walk_lexer(byte, depth, skip, first_token, token_ids, max_depth, class_of, table, goes_on, beats, sets, residual,
               state, watch, ids, ends, end_watch, below, below_state, below_watch, missing):  # fmt: skip
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
    ids, ends, end_watch:
        ``int32[*]``, out: allowed tokens in the trie's order, the lexer state after each, and, where something was
        watched, what is after it.
    below, below_state, below_watch:
        ``int32[*]``, out: nodes at which the lexeme may be complete and a token may go on with another one, its state
        there, and what is watched there.
    missing:
        ``int32[*]``, out: sets that lead somewhere unknown; the walk has to be made again then.

    Returns
    -------
    (number of tokens, number of nodes, number of sets), or ``(OVERFLOW, 0, 0)`` where an output is too short.
    """
    states = np.empty(max_depth + 2, np.int32)
    watched = np.empty(max_depth + 2, np.int32)
    n = 0
    m = 0
    unknown = 0
    for r in range(len(residual)):
        root = residual[r]
        states[depth[root]] = state
        watched[depth[root]] = watch
        i = root + 1
        end = skip[root]
        while i < end:
            d = depth[i]
            c = class_of[byte[i]]
            s = table[states[d - 1], c]
            if s < 0:
                i = skip[i]
                continue
            w = watched[d - 1]
            if w >= len(table):
                before = w
                w = sets[before - len(table), c]
                if w == NOT_FOLLOWED and unknown < len(missing) and (not unknown or missing[unknown - 1] != before):
                    missing[unknown] = before
                    unknown += 1
                if w < -1:
                    i = skip[i]
                    continue
            elif w >= 0:
                w = table[w, c]
                if w >= 0 and beats[w]:
                    i = skip[i]
                    continue
            for t in range(first_token[i], first_token[i + 1]):
                if n == len(ids):
                    return OVERFLOW, 0, 0
                ids[n] = token_ids[t]
                ends[n] = s
                if watch >= 0:
                    end_watch[n] = w
                n += 1
            if i + 1 < skip[i]:
                # Only where some token goes on behind a lexeme that ends here.
                child = i + 1
                while child < skip[i] and not goes_on[s, class_of[byte[child]]]:
                    child = skip[child]
                if child < skip[i]:
                    if m == len(below):
                        return OVERFLOW, 0, 0
                    below[m] = i
                    below_state[m] = s
                    below_watch[m] = w
                    m += 1
                states[d] = s
                watched[d] = w
            i += 1
    return n, m, unknown


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
