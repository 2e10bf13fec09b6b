"""Steps and masks of an automaton without a stack, over its tables as a file has them.

Nothing is remembered of texts: a configuration is the number of a state plus, where the automaton counts, a count
times the number of states.
"""

from __future__ import annotations

import numpy as np

from ..jit import helper, kernel, table
from ..pushdown.count_tables import _representative
from ..signatures import Out, int32, int64, uint8
from ..values import DEAD, SET
from .interning import _first_not_below
from .layout import *
from .masks import _copy_row

# -- the head of an automaton ---------------------------------------------------------------------------------

#: Edges, see `structgen.runtime.automaton.tables.Tables`: where those of each state begin (``int32``), their lowest and
#: highest bytes (``uint8``), and their targets (``int32``). Records, ``int32[*, 5]``, and loops, ``int32[*, 2]``; by
#: state its loop (``int32``) and whether texts may end there (``uint8``).
D_EDGE_START, D_EDGE_LOW, D_EDGE_HIGH, D_EDGE_TARGET, D_RECORDS, D_LOOPS, D_LIVE, D_ACCEPTING = range(0, 16, 2)

#: Offsets and bytes of tokens (``uint32``, ``uint8``), and the EOS ids (``int32``).
D_OFFSETS, D_BYTES, D_EOS = 16, 18, 20

#: By state its row, or one of those below (``int32``). Rows of states that have one for each stretch of counts: keys,
#: ascending, and rows (``int64``, ``int32``). Rows of states at one count that stands for others: keys, ascending,
#: rows, and the pool that has these. A key is a state and a count. And the pool of all others.
D_ROW_OF, D_STRETCHES, D_STRETCH_ROWS, D_SINGLES, D_SINGLE_ROWS, D_SINGLE_POOL, D_POOL = range(22, 36, 2)

#: Bytes of the longest token.
D_LONGEST, AUTOMATON_HEAD = 36, 37

#: In place of a row: it is not worked out, or depends on the count.
MISSING, BY_COUNT = -1, -2

#: Counts are below this.
MOST_COUNT = 1 << 31

#: In place of a mask: its row is missing.
NO_ROW = -12

records32 = table("int32", 5)
pairs32 = table("int32", 2)


# -- steps ----------------------------------------------------------------------------------------------------


@helper
def _behind_edge(head, target, count):
    """Where the target of an edge leads: a state or `DEAD`, and the count there."""
    live = words32(head, D_LIVE)
    if target >= len(live):
        records, record = records32(head, D_RECORDS), target - len(live)
        if records[record, 0] == SET:
            target, count = np.int64(records[record, 2]), np.int64(1)
        else:
            loops, loop = pairs32(head, D_LOOPS), records[record, 1]
            count = min(count + 1, np.int64(loops[loop, 1]))  # more are like the most
            zone = 2 + (count >= loops[loop, 0]) + (count >= loops[loop, 1])
            target = np.int64(records[record, zone])
    if target < 0 or live[target] < 0:
        count = np.int64(0)
    return target, count


@helper
def _behind_byte(head, state, count, byte):
    """Where a byte leads: a state or `DEAD`, and the count there."""
    starts, high = words32(head, D_EDGE_START), octets(head, D_EDGE_HIGH)
    end = np.int64(starts[state + 1])
    first = _first_not_below(high, np.int64(starts[state]), end, byte)
    if first == end or octets(head, D_EDGE_LOW)[first] > byte:
        return np.int64(DEAD), np.int64(0)
    return _behind_edge(head, np.int64(words32(head, D_EDGE_TARGET)[first]), count)


@kernel(releases_gil=False)
def step_automaton(head: int64[::1], config: int64, token: int64) -> int64:
    """Where a token leads: a configuration, or `DEAD`, as it is for one without bytes."""
    offsets, data = unsigned32(head, D_OFFSETS), octets(head, D_BYTES)
    if config < 0 or not 0 <= token < len(offsets) - 1 or offsets[token] == offsets[token + 1]:
        return DEAD
    states = len(words32(head, D_LIVE))
    state, count = config % states, config // states
    for at in range(offsets[token], offsets[token + 1]):
        state, count = _behind_byte(head, state, count, np.int64(data[at]))
        if state < 0:
            return DEAD
    return state + states * count


@kernel(releases_gil=False)
def step_automaton_byte(head: int64[::1], config: int64, byte: int64) -> int64:
    """Where a byte leads: a configuration or `DEAD`."""
    if config < 0:
        return DEAD
    states = len(words32(head, D_LIVE))
    state, count = _behind_byte(head, config % states, config // states, byte)
    return state + states * count if state >= 0 else DEAD


@kernel
def follow_automaton(head: int64[::1], config: int64, data: uint8[::1], found: Out[int64[::1]]) -> int64:
    """Write the configurations behind the bytes of a text, ``int64[*]`` as many; returns how many it goes on with."""
    if config < 0:
        return 0
    states = len(words32(head, D_LIVE))
    state, count = config % states, config // states
    for i in range(min(len(data), len(found))):
        state, count = _behind_byte(head, state, count, np.int64(data[i]))
        if state < 0:
            return i
        found[i] = state + states * count
    return min(len(data), len(found))


@kernel(releases_gil=False)
def following_bytes(head: int64[::1], config: int64, found: Out[int64[:, ::1]]) -> int64:
    """Write which bytes can follow, ascending, and where they lead, ``int64[2, 256]``; returns how many these are."""
    if config < 0 or len(found) < 2:
        return 0
    states = len(words32(head, D_LIVE))
    starts, low, high = words32(head, D_EDGE_START), octets(head, D_EDGE_LOW), octets(head, D_EDGE_HIGH)
    n = 0
    for edge in range(starts[config % states], starts[config % states + 1]):
        state, count = _behind_edge(head, np.int64(words32(head, D_EDGE_TARGET)[edge]), config // states)
        for byte in range(low[edge], high[edge] + 1):
            if state >= 0 and n < found.shape[1]:
                found[0, n] = byte
                found[1, n] = state + states * count
                n += 1
    return n


# -- masks ----------------------------------------------------------------------------------------------------


@helper
def _last_key(keys, key):
    """The place of the last of some ascending keys that is not above one; -1 where all are."""
    return _first_not_below(keys, np.int64(0), np.int64(len(keys)), key + 1) - 1


@kernel(releases_gil=False)
def write_state_mask(head: int64[::1], config: int64, out: Out[int32[::1]]) -> int64:
    """Write the mask of a configuration, EOS ids included, to an array, ``int32[*]``; what is wider becomes 0.

    Returns `WRITTEN`, or what is to be done first: `NO_ROW`, `TOO_SHORT`, `NO_CONFIG`.
    """
    pool, accepting = words64(head, D_POOL), octets(head, D_ACCEPTING)
    state, count = config % len(accepting), config // len(accepting)
    if not 0 <= count < MOST_COUNT:
        return NO_CONFIG
    if len(out) < pool[R_WORDS]:
        return TOO_SHORT
    row = np.int64(words32(head, D_ROW_OF)[state])
    if row == BY_COUNT:
        keys = words64(head, D_STRETCHES)
        place = _last_key(keys, state << 32 | count)
        if place < 0 or keys[place] >> 32 != state:
            return NO_ROW
        row = np.int64(words32(head, D_STRETCH_ROWS)[place])
    elif row == MISSING:
        loop = words32(head, D_LIVE)[state]
        if loop < 0:
            return NO_ROW
        loops, keys = pairs32(head, D_LOOPS), words64(head, D_SINGLES)
        least, most = np.int64(loops[loop, 0]), np.int64(loops[loop, 1])
        count = _representative(least, most, max(count, np.int64(1)), head[D_LONGEST])
        place = _last_key(keys, state << 32 | count)
        if place < 0 or keys[place] != state << 32 | count:
            return NO_ROW
        row = np.int64(words32(head, D_SINGLE_ROWS)[place])
        pool = words64(head, D_SINGLE_POOL)
    status = _copy_row(pool, row, out)
    for w in range(pool[R_WORDS], len(out)):
        out[w] = 0
    if accepting[state]:
        ends = words32(head, D_EOS)
        for i in range(len(ends)):
            if ends[i] >> 5 < len(out):
                out[ends[i] >> 5] |= np.int32(1) << np.int32(ends[i] & 31)
    return status
