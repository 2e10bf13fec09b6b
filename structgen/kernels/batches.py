"""Steps and masks of many sequences in one call."""

from __future__ import annotations

import numpy as np

from .jit import bare_kernel, spliced

#: Of a transition: not taken before; see `structgen.runtime.batch.lazy_automaton`.
UNKNOWN = -2

#: What became of a row's token: it is not worked out yet, it was refused, it was accepted.
PENDING, REJECTED, ACCEPTED = 0, 1, 2

#: The configuration of a text that has ended, and that of one without a definition.
ENDED, FREE = 0, 1


@spliced
def token_slot(keys, config, token):
    """The slot of a configuration's token, which holds -1 where it is new. (Linear probing, TAOCP 3, section 6.4.)"""
    mask = len(keys) - 1
    key = np.int64(config) << 32 | np.int64(token)
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != key and keys[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@spliced
def _token_target(config, token, offsets, blob, following, spelled_in, keys, values):
    """Where a token leads from a configuration: its number, `DEAD` or `UNKNOWN`."""
    if config == FREE:
        return FREE
    begin, end = offsets[token], offsets[token + 1]
    target = config
    while begin < end and target >= 0:
        target = following[spelled_in[target], blob[begin]]
        begin += 1
    if target == UNKNOWN or offsets[token] == end:
        slot = token_slot(keys, config, token)
        target = values[slot] if keys[slot] >= 0 else UNKNOWN
    return target


@bare_kernel
def find_token(keys, config, token):
    """`token_slot`, for Python."""
    return token_slot(keys, config, token)


@bare_kernel
def advance_batch(tokens, which, at, nodes, used, offsets, blob, following, spelled_in, keys, values, row_of, outcome,
                  rows):  # fmt: skip
    """Append a token to each of some sequences.

    Parameters
    ----------
    tokens, which:
        ``int32[n]``: the tokens, in the vocabulary, and the sequences that they are for.
    at:
        ``int32[sequences]``: the node where each is; moved.
    nodes, used:
        The forest, ``int32[3, capacity]``: the node before each, its configuration, the token that led there; and
        how many there are. It has room for ``n`` more.
    offsets, blob:
        The vocabulary.
    following, spelled_in, keys, values, row_of:
        The transitions by byte and by token, and the rows; see `structgen.runtime.batch.lazy_automaton`.
    outcome:
        ``int8[n]``: what became of each token; those that are `PENDING` are looked at.
    rows:
        ``int32[sequences]``: the row of each sequence that was moved, where it is known, else `UNKNOWN`.

    Returns how many are still pending, and how many rows are unknown.
    """
    pending = 0
    unknown = 0
    for i in range(len(tokens)):
        if outcome[i] != PENDING:
            continue
        s = which[i]
        target = _token_target(nodes[1, at[s]], tokens[i], offsets, blob, following, spelled_in, keys, values)
        if target == UNKNOWN:
            pending += 1
            continue
        if target < 0:
            outcome[i] = REJECTED
            continue
        node = used[0]
        used[0] = node + 1
        nodes[0, node] = at[s]
        nodes[1, node] = target
        nodes[2, node] = tokens[i]
        at[s] = node
        rows[s] = row_of[target]
        if rows[s] < 0:
            unknown += 1
        outcome[i] = ACCEPTED
    return pending, unknown


@bare_kernel
def follow_tree(tokens, above, begins, offsets, blob, following, spelled_in, keys, values, reached):
    """Follow trees of tokens, without a change to any sequence.

    Parameters
    ----------
    tokens, above, begins:
        ``int32[n]``: the tokens, the index of the token before each, an earlier one, or -1, and the configuration
        that one without begins at.
    reached:
        ``int32[n]``: where each token leads, `DEAD` where it or one before it is refused; the `UNKNOWN` are looked
        at.

    Returns the index of the first that stays unknown, or -1.
    """
    first = -1
    for i in range(len(tokens)):
        if reached[i] != UNKNOWN:
            continue
        config = begins[i] if above[i] < 0 else reached[above[i]]
        if config >= 0:
            config = _token_target(config, tokens[i], offsets, blob, following, spelled_in, keys, values)
        reached[i] = config
        if config == UNKNOWN and first < 0:
            first = i
    return first


@bare_kernel
def copy_rows(numbers, rows, counts, offsets, masks):
    """Write rows into masks.

    Parameters
    ----------
    numbers:
        ``int32[batch]``: the row of each mask.
    rows, counts, offsets:
        ``int32[rows, words]``; how many words of each are not zero, -1 for many; and where these are.
    masks:
        ``int32[batch, width]``, at least as wide; what is wider becomes zero.
    """
    words = rows.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        if counts[number] < 0:
            for w in range(words):
                masks[i, w] = rows[number, w]
            for w in range(words, masks.shape[1]):
                masks[i, w] = 0
            continue
        for w in range(masks.shape[1]):
            masks[i, w] = 0
        for k in range(counts[number]):
            w = offsets[number, k]
            masks[i, w] = rows[number, w]


@bare_kernel
def change_rows(numbers, shown, rows, counts, offsets, masks):
    """As `copy_rows`, for masks that hold the rows ``shown`` (``int32[batch]``, updated); nobody else writes them."""
    words = rows.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        before = shown[i]
        if number == before:
            continue
        shown[i] = number
        if counts[number] < 0:
            for w in range(words):
                masks[i, w] = rows[number, w]
            continue
        if before < 0 or counts[before] < 0:
            for w in range(words):
                masks[i, w] = 0
        else:
            for k in range(counts[before]):
                masks[i, offsets[before, k]] = 0
        for k in range(counts[number]):
            w = offsets[number, k]
            masks[i, w] = rows[number, w]


@bare_kernel
def roll_back(counts, which, at, befores, reached):
    """The histories' nodes that lie ``counts`` tokens back, ``int32[n]``; -1 before the beginning."""
    for i in range(len(counts)):
        node = at[which[i]]
        for _ in range(counts[i]):
            if node < 0:
                break
            node = befores[node]
        reached[i] = node


@bare_kernel
def mark_nodes(at, befores, most, marks):
    """Mark the nodes where sequences are, and so many before each (``int32[nodes]``)."""
    for i in range(len(at)):
        node = at[i]
        for _ in range(most + 1):
            if node < 0:
                break
            marks[node] = 1
            node = befores[node]


@bare_kernel
def take_texts(last, befores, tokens, stops, found, tops, starts):
    """The tokens of chains of nodes, without those of their first nodes.

    Parameters
    ----------
    last:
        ``int32[n]``: the last node of each chain.
    befores, tokens:
        ``int32[capacity]`` each: the forest.
    stops:
        ``int64[n]``: where each text ends in ``found``.
    found:
        ``int32[total]``; of length 0, tokens are only counted.
    tops, starts:
        ``int32[n]``, ``int64[n]``: filled with the chains' first nodes, and with where their texts begin.
    """
    for i in range(len(last)):
        node, at = last[i], stops[i]
        while befores[node] >= 0:
            at -= 1
            if len(found):
                found[at] = tokens[node]
            node = befores[node]
        tops[i] = node
        starts[i] = at
