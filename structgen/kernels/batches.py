"""Steps and masks of many sequences in one call."""

from __future__ import annotations

import numpy as np

from .jit import helper, kernel
from .signatures import Out, boolean, int8, int32, int64, uint8

#: Of a transition: not taken before; see `structgen.runtime.batch.lazy_automaton`.
UNKNOWN = -2

#: What became of a row's token: it is not worked out yet, it was refused, it was accepted.
PENDING, REJECTED, ACCEPTED = 0, 1, 2

#: The configuration of a text that has ended, and that of one without a definition.
ENDED, FREE = 0, 1


@helper
def token_slot(keys, config, token):
    """The slot of a configuration's token, which holds -1 where it is new. (Linear probing, TAOCP 3, section 6.4.)"""
    mask = len(keys) - 1
    key = np.int64(config) << 32 | np.int64(token)
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while keys[slot] != key and keys[slot] >= 0:
        slot = (slot + 1) & mask
    return slot


@helper
def _token_target(config, token, offsets, blob, following, spelled_in, keys, values, used_at, now):
    """Where a token leads from a configuration: its number, `DEAD` or `UNKNOWN`. Notes when it was come by."""
    if config == FREE:
        return FREE
    begin, end = offsets[token], offsets[token + 1]
    target = config
    while begin < end and target >= 0:
        used_at[target] = now
        target = following[spelled_in[target], blob[begin]]
        begin += 1
    if target == UNKNOWN or offsets[token] == end:
        slot = token_slot(keys, config, token)
        target = values[slot] if keys[slot] >= 0 else UNKNOWN
    if target >= 0:
        used_at[target] = now
    return target


@kernel
def follow_bytes(targets: int32[:, ::1], state: int64, data: uint8[::1], found: Out[int32[::1]]) -> int64:
    """Follow bytes by transitions that are known, ``int32[states, 256]``; returns how many were.

    ``found`` is ``int32[n]`` for as many bytes: the state behind each.
    """
    for i in range(len(data)):
        state = targets[state, data[i]]
        if state < 0:
            return i
        found[i] = state
    return len(data)


@kernel(releases_gil=False)
def remember_tokens(keys: Out[int64[::1]], values: Out[int32[::1]], taken: int64[:, ::1]) -> int64:
    """Remember where tokens lead; returns how many are new. There are free slots for all of them.

    ``taken`` is ``int64[*, 3]``: configurations, their tokens, and the configurations behind these.
    """
    count = 0
    for i in range(len(taken)):
        config, token = taken[i, 0], taken[i, 1]
        slot = token_slot(keys, config, token)
        if keys[slot] < 0:
            count += 1
        keys[slot] = config << 32 | token
        values[slot] = taken[i, 2]
    return count


@kernel
def keep_tokens(
    keys: int64[::1], values: int32[::1], gone: boolean[::1], used_at: int32[::1], since: int64,
    kept: Out[int64[::1]], targets: Out[int32[::1]],
) -> int64:  # fmt: skip
    """Copy what is remembered of tokens into another table, ``kept`` and ``targets``, that has room for it.

    Left out is what begins or ends at a configuration that is ``gone`` (``bool[configurations]``), or ends at one
    that was not come by after ``since``; what is refused ends where it began. Returns how many there are.
    """
    count = 0
    for i in range(len(keys)):
        if keys[i] < 0:
            continue
        config, token, target = keys[i] >> 32, keys[i] & 0xFFFFFFFF, values[i]
        end = target if target >= 0 else config
        if gone[config] or gone[end] or used_at[end] <= since:
            continue
        slot = token_slot(kept, config, token)
        kept[slot] = keys[i]
        targets[slot] = target
        count += 1
    return count


@kernel
def forget_targets(following: Out[int32[:, ::1]], spelled: int64, gone: boolean[::1]) -> None:
    """Have the first ``spelled`` rows of transitions by byte no longer lead to what is ``gone``."""
    for row in range(spelled):
        for byte in range(256):
            target = following[row, byte]
            if target >= 0 and gone[target]:
                following[row, byte] = UNKNOWN


@kernel
def advance_batch(
    tokens: int32[::1], which: int32[::1], at: Out[int32[::1]], nodes: Out[int32[:, ::1]], used: Out[int64[::1]],
    offsets: int32[::1], blob: uint8[::1], following: int32[:, ::1], spelled_in: int32[::1], keys: int64[::1],
    values: int32[::1], row_of: int32[::1], used_at: Out[int32[::1]], now: int64, outcome: Out[int8[::1]],
    rows: Out[int32[::1]],
) -> tuple[int64, int64]:  # fmt: skip
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
    following, spelled_in, keys, values, row_of, used_at, now:
        The transitions by byte and by token, the rows, and when configurations were come by, which is noted; see
        `structgen.runtime.batch.lazy_automaton`.
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
        target = _token_target(
            nodes[1, at[s]], tokens[i], offsets, blob, following, spelled_in, keys, values, used_at, now
        )
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


@kernel
def follow_tree(
    tokens: int32[::1], above: int32[::1], begins: int32[::1], offsets: int32[::1], blob: uint8[::1],
    following: int32[:, ::1], spelled_in: int32[::1], keys: int64[::1], values: int32[::1], used_at: Out[int32[::1]],
    now: int64, reached: Out[int32[::1]],
) -> int64:  # fmt: skip
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
            config = _token_target(config, tokens[i], offsets, blob, following, spelled_in, keys, values, used_at, now)
        reached[i] = config
        if config == UNKNOWN and first < 0:
            first = i
    return first


@kernel
def place_rows(hashes: int64[::1], count: int64, slots: Out[int32[::1]]) -> None:
    """Enter the numbers of the first rows into an empty hash table, by their hashes."""
    mask = len(slots) - 1
    for number in range(count):
        slot = hashes[number] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@helper
def _number_of_row(row, wide, counts, offsets, values, hashes, slots, used):
    """The number of a row: of an equal one, or the next; as `add_row`."""
    words, most = len(row), offsets.shape[1]
    count = used[0]
    n = 0
    w = 0
    while w < words and n <= most:
        if row[w]:
            if n < most:
                offsets[count, n] = w
                values[count, n] = row[w]
            n += 1
        w += 1
    h0, h1, h2, h3 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    factor = np.uint64(0x9E3779B97F4A7C15)
    if n <= most:
        for k in range(n):
            pair = np.int64(offsets[count, k]) << 32 | np.int64(values[count, k]) & 0xFFFFFFFF
            h0 = (h0 ^ np.uint64(pair)) * factor
            h0 = h0 ^ (h0 >> np.uint64(32))
    else:
        whole = words - words % 4
        for w in range(0, whole, 4):  # four sums, since a multiplication waits for the one before
            h0 = (h0 ^ np.uint64(np.int64(row[w]) & 0xFFFFFFFF)) * factor
            h1 = (h1 ^ np.uint64(np.int64(row[w + 1]) & 0xFFFFFFFF)) * factor
            h2 = (h2 ^ np.uint64(np.int64(row[w + 2]) & 0xFFFFFFFF)) * factor
            h3 = (h3 ^ np.uint64(np.int64(row[w + 3]) & 0xFFFFFFFF)) * factor
        for w in range(whole, words):
            h0 = (h0 ^ np.uint64(np.int64(row[w]) & 0xFFFFFFFF)) * factor
    h0 = ((h0 ^ (h1 >> np.uint64(1))) * factor ^ (h2 >> np.uint64(2))) * factor ^ (h3 >> np.uint64(3))
    found = np.int64((h0 * factor) >> np.uint64(20))
    mask = len(slots) - 1
    slot = found & mask
    while slots[slot] >= 0:
        number = slots[slot]
        if hashes[number] == found:
            k = 0
            if counts[number] < 0 and n > most:
                at = -1 - counts[number]
                while k < words and wide[at, k] == row[k]:
                    k += 1
                if k == words:
                    return number
            elif counts[number] == n:
                while k < n and offsets[number, k] == offsets[count, k] and values[number, k] == values[count, k]:
                    k += 1
                if k == n:
                    return number
        slot = (slot + 1) & mask
    slots[slot] = count
    hashes[count] = found
    counts[count] = n
    if n > most:
        at = used[1]
        for k in range(words):
            wide[at, k] = row[k]
        counts[count] = -1 - at
        used[1] = at + 1
    used[0] = count + 1
    return count


@kernel
def add_row(
    row: int32[::1], wide: Out[int32[:, ::1]], counts: Out[int32[::1]], offsets: Out[int32[:, ::1]],
    values: Out[int32[:, ::1]], hashes: Out[int64[::1]], slots: Out[int32[::1]], used: Out[int64[::1]],
) -> int64:  # fmt: skip
    """The number of a row: of an equal one, or the next, under which it is kept.

    Parameters
    ----------
    row:
        ``int32[words]``.
    wide, counts, offsets, values:
        As for `copy_rows`; there is room for one more.
    hashes, slots:
        ``int64[rows]``, and ``int32[2**n]``: numbers by the hash of a row, -1 where there is none; linear probing.
    used:
        ``int64[2]``, in and out: how many rows there are, and wide ones.
    """
    return _number_of_row(row, wide, counts, offsets, values, hashes, slots, used)


@kernel
def copy_rows(
    numbers: int32[::1], wide: int32[:, ::1], counts: int32[::1], offsets: int32[:, ::1], values: int32[:, ::1],
    masks: Out[int32[:, ::1]],
) -> None:  # fmt: skip
    """Write rows into masks.

    Parameters
    ----------
    numbers:
        ``int32[batch]``: the row of each mask.
    wide, counts, offsets, values:
        ``int32[*, words]``: the rows with many words that are not zero. By row how many these are, or -1 minus its
        place among those; where they are; and which.
    masks:
        ``int32[batch, width]``, at least as wide; what is wider becomes zero.
    """
    words = wide.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        if counts[number] < 0:
            at = -1 - counts[number]
            for w in range(words):
                masks[i, w] = wide[at, w]
            for w in range(words, masks.shape[1]):
                masks[i, w] = 0
            continue
        for w in range(masks.shape[1]):
            masks[i, w] = 0
        for k in range(counts[number]):
            masks[i, offsets[number, k]] = values[number, k]


@kernel
def change_rows(
    numbers: int32[::1], shown: Out[int32[::1]], wide: int32[:, ::1], counts: int32[::1], offsets: int32[:, ::1],
    values: int32[:, ::1], masks: Out[int32[:, ::1]],
) -> None:  # fmt: skip
    """As `copy_rows`, for masks that hold the rows ``shown`` (``int32[batch]``, updated); nobody else writes them."""
    words = wide.shape[1]
    for i in range(len(numbers)):
        number = numbers[i]
        before = shown[i]
        if number == before:
            continue
        shown[i] = number
        if counts[number] < 0:
            at = -1 - counts[number]
            for w in range(words):
                masks[i, w] = wide[at, w]
            continue
        if before < 0 or counts[before] < 0:
            for w in range(words):
                masks[i, w] = 0
        else:
            for k in range(counts[before]):
                masks[i, offsets[before, k]] = 0
        for k in range(counts[number]):
            masks[i, offsets[number, k]] = values[number, k]


@kernel(releases_gil=False)
def roll_back(
    counts: int32[::1], which: int32[::1], at: int32[::1], befores: int32[::1], reached: Out[int32[::1]]
) -> None:
    """The histories' nodes that lie ``counts`` tokens back, ``int32[n]``; -1 before the beginning."""
    for i in range(len(counts)):
        node = at[which[i]]
        for _ in range(counts[i]):
            if node < 0:
                break
            node = befores[node]
        reached[i] = node


@kernel(releases_gil=False)
def mark_nodes(at: int32[::1], befores: int32[::1], most: int64, marks: Out[int32[::1]]) -> None:
    """Mark the nodes where sequences are, and so many before each (``int32[nodes]``)."""
    for i in range(len(at)):
        node = at[i]
        for _ in range(most + 1):
            if node < 0:
                break
            marks[node] = 1
            node = befores[node]


@kernel
def take_texts(
    last: int64[::1], befores: int32[::1], tokens: int32[::1], stops: int64[::1], found: Out[int32[::1]],
    tops: Out[int32[::1]], starts: Out[int64[::1]],
) -> None:  # fmt: skip
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
