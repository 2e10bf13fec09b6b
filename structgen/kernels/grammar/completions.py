"""Whether a text can be completed, by `structgen.runtime.grammar.completability.completion_tables`."""

from __future__ import annotations

import numpy as np

from ..jit import helper
from .blocks import _COMPLETIONS, _flat, _table, _words


@helper
def _have_common(sets, a, others, b):
    """Whether two sets have a common member."""
    w = 0
    while w < sets.shape[1] and not sets[a, w] & others[b, w]:
        w += 1
    return w < sets.shape[1]


@helper
def _same_words(rows, a, b):
    w = 0
    while w < rows.shape[1] and rows[a, w] == rows[b, w]:
        w += 1
    return w == rows.shape[1]


@helper
def _completed(parser, goto, cells, cell, brackets, first):
    """Whether some text completes a stack in which so many brackets are open.

    One of a set of endings comes first. A breadth-first search over the stack's cells, each with a nonterminal that
    is put on it and the endings that may be next then. Returns 1, 0, or -1 where that is not known; and the lowest
    depth looked at.
    """
    reach, net, begins, row_of, sure, starts = (
        _flat(parser, _COMPLETIONS), _flat(parser, _COMPLETIONS + 1), _flat(parser, _COMPLETIONS + 2),
        _flat(parser, _COMPLETIONS + 3), _flat(parser, _COMPLETIONS + 4), _flat(parser, _COMPLETIONS + 5),
    )  # fmt: skip
    moves, sets = _table(parser, _COMPLETIONS + 6), _words(parser, _COMPLETIONS + 7)
    waiting, ahead = _table(parser, _COMPLETIONS + 10), _words(parser, _COMPLETIONS + 11)
    words = sets.shape[1]
    depth_read = cells[cell, 2]
    waiting[0, 0] = cell
    waiting[0, 1] = brackets
    waiting[0, 2] = -1
    for w in range(words):
        ahead[0, w] = sets[first, w]
    n = 1
    k = 0
    while k < n:
        here = waiting[k, 0]
        open_here = waiting[k, 1]
        state = cells[here, 1]
        inside = min(open_here, reach[state])
        count = 1
        if waiting[k, 2] >= 0:
            depth_read = min(depth_read, cells[here, 2])
            state = goto[state, waiting[k, 2]]
            count = 0
            if state < 0 or inside + net[state] < 0:
                k += 1
                continue
            inside = min(inside + net[state], reach[state])
        row = np.int64(row_of[begins[state] + inside])
        if row == 0:
            return -1, depth_read
        if _have_common(sets, sure[row], ahead, k):
            return 1, depth_read
        for m in range(starts[row], starts[row + 1]):
            if not _have_common(sets, np.int64(moves[m, 2]), ahead, k):
                continue
            if n == len(waiting):
                return -1, depth_read
            below = here
            left = open_here
            for _ in range(moves[m, 1] + count):
                if below < 0:
                    break
                left -= net[cells[below, 1]]
                below = cells[below, 0]
            if below < 0:
                return -1, depth_read
            for w in range(words):
                ahead[n, w] = sets[moves[m, 3] - 1, w] if moves[m, 3] else ahead[k, w] & sets[moves[m, 2], w]
            waiting[n, 0] = below
            waiting[n, 1] = left
            waiting[n, 2] = moves[m, 0]
            j = 0
            while j < n and not (waiting[j, 0] == below and waiting[j, 2] == moves[m, 0] and _same_words(ahead, j, n)):
                j += 1
            if j == n:
                n += 1
        k += 1
    return 0, depth_read
