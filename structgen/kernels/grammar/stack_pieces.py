"""Bisimulation (Park 1981) of pieces of a parser's stack: see `structgen.compiler.grammar.parser.equivalent`.

A *piece* is some states on a *base*, a set of states one of which lies below. A *pair* of pieces is kept as a row of
integers: base, two lengths, the states of both, the lowest first. Rows are found by hashing, and so are bases.
"""

from __future__ import annotations

from ..jit import helper, kernel
from ..signatures import Out, boolean, int32, int64
from ..subset_construction import _append_row, _found_row
from .blocks import _flat, _table

#: What is counted, in ``counts``: pairs, their integers, pairs that wait, uses among them, bases, their states; work,
#: and how much of it may be done; the candidate that comes next, the symbol of the next state on top of it, and what
#: was found.
_PAIRS, _ITEMS, _N_WAITING, _USES, _BASES, _STATES, _WORK, _MOST_WORK, _CANDIDATE, _TOP, _FOUND = range(11)
PIECE_COUNTS = 12
_SPLIT_AT = 11

#: The tables of the blocks ``parser`` (see `replaced_pieces`) and ``memory``: where rows begin, and they, what is
#: known of each, slots to find them; users of pairs, with the one before, the last of each pair, the pairs that wait;
#: where bases begin, their states, their slots; pieces at hand; parts of a base; counts; the parts by where they
#: lead, and places of a part; pairs that fail; bases that wait; by state when a pair came to it.
(_TABLE, _LENGTH, _ORIGIN, _DEFAULTS, _CONTEXTS, _WAYS, _BELOW, _ORIGINS, _LIKE, _TERMINALS, _SHIFTS) = range(11)
(
    _STARTS, _ROWS, _STATUS, _SLOTS, _USED, _LAST_USE, _WAITING, _BASE_STARTS, _BASE_STATES, _BASE_SLOTS, _SCRATCH,
    _PARTS, _COUNTS, _CHAINS, _FAILED, _BASES_WAITING, _STAMPS,
) = range(17)  # fmt: skip

#: What is known of a pair.
_UNKNOWN, _HOLDS, _FAILS, _ASKED = range(4)

#: Bases of rows that are no pairs: pieces that are replaced, and pieces with a state on top that are.
_REPLACED, _COVERED = -1, -2

#: Where a state of a base does something else than another one.
_SPLIT = -3

#: What a terminal comes to, besides a split.
_REFUSED, _SHIFTED, _RETURNED, _UNBOUNDED = range(4)

#: Pairs that a single candidate may need; reductions before one terminal; the tallest piece that is followed, and the
#: tallest that is kept.
_MOST_AT_ONCE, _MOST_STEPS, _TALLEST, _LONGEST = 1_000, 256, 16, 24


@helper
def _target(parser, memory, base, piece, n, symbol):
    """Where a symbol leads from the top of a piece; -1 for nowhere, `_SPLIT` where that depends on the base."""
    table = _table(parser, _TABLE)
    if n:
        return max(table[piece[n - 1], symbol], -1)
    first, states, counts = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES), _flat(memory, _COUNTS)
    found = max(table[states[first[base]], symbol], -1)
    for i in range(first[base] + 1, first[base + 1]):
        if max(table[states[i], symbol], -1) != found:
            counts[_SPLIT_AT] = symbol
            return _SPLIT
    return found


@helper
def _settled(parser, memory, base, piece, n):
    """How long a piece is after reductions that are made whatever comes next, as long as they do not go below it."""
    length, origin, defaults = _flat(parser, _LENGTH), _flat(parser, _ORIGIN), _flat(parser, _DEFAULTS)
    for _ in range(_MOST_STEPS):
        rule = defaults[piece[n - 1]] if n else -1
        if rule < 0 or length[rule] > n:
            break
        rest = n - length[rule]
        target = _target(parser, memory, base, piece, rest, origin[rule])
        if target == _SPLIT:
            return _SPLIT
        if target < 0 or rest >= _TALLEST:
            break
        piece[rest] = target
        n = rest + 1
    return n


@helper
def _read(parser, memory, base, piece, n, symbol):
    """As `_settled` after a symbol; -1 where that leads nowhere."""
    target = _target(parser, memory, base, piece, n, symbol)
    if target < 0:
        return target
    piece[n] = target
    return _settled(parser, memory, base, piece, n + 1)


@helper
def _number(memory, row, size, is_kept):
    """The number of a row; -1 where it has none, and is not to be kept or there is no room."""
    starts, items = _flat(memory, _STARTS), _flat(memory, _ROWS)
    status, slots = _flat(memory, _STATUS), _flat(memory, _SLOTS)
    counts = _flat(memory, _COUNTS)
    known, slot = _found_row(slots, starts, items, row, 0, size)
    if known >= 0:
        return known
    if not is_kept:
        return -1
    number = counts[_PAIRS]
    if number + 2 > len(status) or counts[_ITEMS] + size > len(items):
        counts[_WORK] = counts[_MOST_WORK]
        return -1
    _append_row(slots, starts, items, row, size, number, slot)
    counts[_ITEMS] += size
    counts[_PAIRS] += 1
    status[number] = _UNKNOWN
    return number


@helper
def _is_known(memory, base, piece, begin, n, is_kept):
    """Whether a piece that is no pair is kept; from now on it is."""
    row = _table(memory, _SCRATCH)[0]
    row[0] = base
    row[1] = n - begin
    for i in range(begin, n):
        row[2 + i - begin] = piece[i]
    return _number(memory, row, 2 + n - begin, is_kept) >= 0


@helper
def _base_number(memory, size):
    """The number of the base whose states, ascending, were written behind those of all; -1 where there is no room."""
    first, states = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES)
    slots, counts = _flat(memory, _BASE_SLOTS), _flat(memory, _COUNTS)
    begin = counts[_STATES]
    known, slot = _found_row(slots, first, states, states, begin, begin + size)
    if known >= 0:
        return known
    number = counts[_BASES]
    if number + 2 > len(first):
        counts[_WORK] = counts[_MOST_WORK]
        return -1
    counts[_BASES] += 1
    counts[_STATES] += size
    first[number + 1] = counts[_STATES]
    slots[slot] = number
    return number


@helper
def _keep_bases(memory):
    """Have the bases found that were there at first."""
    first, states = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES)
    slots, counts = _flat(memory, _BASE_SLOTS), _flat(memory, _COUNTS)
    for base in range(counts[_BASES]):
        slots[_found_row(slots, first, states, states, first[base], first[base + 1])[1]] = base


@helper
def _parts(parser, memory, base, symbol):
    """Write the parts of a base that do the same with a symbol, with -1 single states: into ``parts``, how many."""
    table = _table(parser, _TABLE)
    first, states = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES)
    parts, counts = _flat(memory, _PARTS), _flat(memory, _COUNTS)
    # By state: the part of those that lead there; by place: the next place of the part.
    chains = _table(memory, _CHAINS)
    size, found = first[base + 1] - first[base], 0
    counts[_WORK] += size
    for i in range(size - 1, -1, -1):
        state = states[first[base] + i]
        to = state if symbol < 0 else max(table[state, symbol], -1) + 1
        part = chains[0, to]
        if part < 0:
            part = chains[0, to] = found
            chains[2, part] = -1
            found += 1
        chains[1, i] = chains[2, part]
        chains[2, part] = i
    for i in range(size):
        state = states[first[base] + i]
        chains[0, state if symbol < 0 else max(table[state, symbol], -1) + 1] = -1
    for part in range(found):
        if counts[_STATES] + size > len(states):
            counts[_WORK] = counts[_MOST_WORK]
            return 0
        n, i = 0, chains[2, part]
        while i >= 0:
            states[counts[_STATES] + n] = states[first[base] + i]
            n += 1
            i = chains[1, i]
        parts[part] = _base_number(memory, n)
        if parts[part] < 0:
            return 0
    return found


@helper
def _may_do_the_same(parser, memory, base, one, n, other, m):
    """Whether two pieces may accept the same, by the states on top."""
    table, terminals = _table(parser, _TABLE), _flat(parser, _TERMINALS)[0]
    first, states = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES)
    if (not n or not m) and first[base + 1] - first[base] > 1:
        return True
    s = one[n - 1] if n else states[first[base]]
    t = other[m - 1] if m else states[first[base]]
    for terminal in range(terminals):
        x, y = table[s, terminal], table[t, terminal]
        if (x >= 0 and y == -1) or (y >= 0 and x == -1):
            return False
    return True


@helper
def _is_above(one, n, other, m):
    """Whether a piece comes behind another one in a fixed order."""
    if n != m:
        return n > m
    for i in range(n):
        if one[i] != other[i]:
            return one[i] > other[i]
    return False


@helper
def _ask(parser, memory, user, base, one, n, other, m):
    """Have a pair, if it is not known, wait to be looked at; False where it is known to fail, or may not be asked."""
    like, row, counts = _flat(parser, _LIKE), _table(memory, _SCRATCH)[0], _flat(memory, _COUNTS)
    status, uses = _flat(memory, _STATUS), _table(memory, _USED)
    last_use, todo = _flat(memory, _LAST_USE), _flat(memory, _WAITING)
    if n and m and one[n - 1] == other[m - 1]:
        # They do the same until what lies below the lowest state that they share differs.
        while n > 1 and m > 1 and one[n - 2] == other[m - 2]:
            n -= 1
            m -= 1
        if n == m == 1:
            return True
        one[n - 1] = other[m - 1] = like[one[n - 1]]
    elif n == m == 0:
        return True
    if n > _LONGEST or m > _LONGEST:
        return False
    is_above = _is_above(one, n, other, m)
    row[0], row[1], row[2] = base, m if is_above else n, n if is_above else m
    at = 3
    for i in range(m if is_above else n):
        row[at] = other[i] if is_above else one[i]
        at += 1
    for i in range(n if is_above else m):
        row[at] = one[i] if is_above else other[i]
        at += 1
    pair = _number(memory, row, at, True)
    if pair < 0 or status[pair] == _FAILS:
        return False
    if status[pair] == _HOLDS:
        return True
    if status[pair] == _UNKNOWN:
        is_shared = n and m and one[n - 1] == other[m - 1]
        may_hold = is_shared or _may_do_the_same(parser, memory, base, one, n, other, m)
        if counts[_N_WAITING] == len(todo) or not may_hold:
            return False
        status[pair] = _ASKED
        last_use[pair] = -1
        todo[counts[_N_WAITING]] = pair
        counts[_N_WAITING] += 1
    if user >= 0:
        if counts[_USES] == len(uses):
            return False
        uses[counts[_USES], 0] = user
        uses[counts[_USES], 1] = last_use[pair]
        last_use[pair] = counts[_USES]
        counts[_USES] += 1
    return True


@helper
def _taken(parser, memory, base, source, n, terminal, piece):
    """Reduce before a terminal, in a copy of a piece.

    Returns what it comes to, and the length of the piece that shifts it; or how many states are popped below it, and
    the nonterminal that comes then.
    """
    table, length, origin = _table(parser, _TABLE), _flat(parser, _LENGTH), _flat(parser, _ORIGIN)
    first, states, counts = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES), _flat(memory, _COUNTS)
    for i in range(n):
        piece[i] = source[i]
    for _ in range(_MOST_STEPS):
        counts[_WORK] += 1
        if not n and first[base + 1] - first[base] > 1:
            counts[_SPLIT_AT] = -1
            return _SPLIT, 0, 0
        action = table[piece[n - 1] if n else states[first[base]], terminal]
        if action >= -1:
            return _SHIFTED if action >= 0 else _REFUSED, n, 0
        rule = -2 - action
        if length[rule] > n:
            return _RETURNED, length[rule] - n, origin[rule]
        rest = n - length[rule]
        target = _target(parser, memory, base, piece, rest, origin[rule])
        if target < 0:
            return (_SPLIT if target == _SPLIT else _UNBOUNDED), 0, 0
        if rest >= _TALLEST:
            break
        piece[rest] = target
        n = rest + 1
    return _UNBOUNDED, 0, 0


@helper
def _compared(parser, memory, pair, base, one, n, other, m):
    """Ask for what pieces with different states on top come to with one terminal: whether that may hold, `_SPLIT`."""
    table, contexts = _table(parser, _TABLE), _flat(parser, _CONTEXTS)
    like, terminals = _flat(parser, _LIKE), _flat(parser, _TERMINALS)[0]
    first, states = _flat(memory, _BASE_STARTS), _flat(memory, _BASE_STATES)
    here, there, last = _table(memory, _SCRATCH)[3], _table(memory, _SCRATCH)[4], _flat(memory, _STAMPS)
    counts = _flat(memory, _COUNTS)
    asked = counts[_WORK]
    if (not n or not m) and first[base + 1] - first[base] > 1:
        counts[_SPLIT_AT] = -1
        return _SPLIT
    single = states[first[base]]
    s, t = one[n - 1] if n else single, other[m - 1] if m else single
    for terminal in range(terminals):
        action, instead = table[s, terminal], table[t, terminal]
        if action == -1 and instead == -1:
            continue
        if action >= 0 and action == instead:  # most terminals lead to few states that are popped in different ways
            if last[like[action]] == asked:
                continue
            last[like[action]] = asked
        did, k, way = _taken(parser, memory, base, one, n, terminal, here)
        does, size, another_way = _taken(parser, memory, base, other, m, terminal, there)
        if did == _SPLIT or does == _SPLIT:
            return _SPLIT
        if did != does or did == _UNBOUNDED:
            return 0
        if did == _RETURNED and (k != size or way != another_way):
            return 0
        if did != _SHIFTED or terminal == terminals - 1:  # behind the end of the text nothing comes
            continue
        if k and size and here[k - 1] == there[size - 1]:
            if not _ask(parser, memory, pair, base, here, k, there, size):
                return 0
            continue
        target = table[here[k - 1] if k else single, terminal]
        another = table[there[size - 1] if size else single, terminal]
        if target == another:
            here[k] = there[size] = like[target]
            k += 1
            size += 1
        else:
            if contexts[target] != contexts[another]:
                return 0
            here[k] = target
            there[size] = another
            k, size = _settled(parser, memory, base, here, k + 1), _settled(parser, memory, base, there, size + 1)
            if k == _SPLIT or size == _SPLIT:
                return _SPLIT
        if not _ask(parser, memory, pair, base, here, k, there, size):
            return 0
    return 1


@helper
def _popped(parser, memory, pair, base, one, n, other, m, top):
    """Ask for what pieces come to when a state is popped that lies on both: 1 where that may hold, 0, or `_SPLIT`."""
    first, below, origins = _flat(parser, _WAYS), _flat(parser, _BELOW), _flat(parser, _ORIGINS)
    here, there = _table(memory, _SCRATCH)[3], _table(memory, _SCRATCH)[4]
    for way in range(first[top], first[top + 1]):
        if below[way] > n and n == m:
            continue
        if below[way] > n or below[way] > m:
            return 0
        for i in range(n - below[way]):
            here[i] = one[i]
        for i in range(m - below[way]):
            there[i] = other[i]
        k = _read(parser, memory, base, here, n - below[way], origins[way])
        size = _read(parser, memory, base, there, m - below[way], origins[way])
        if k == _SPLIT or size == _SPLIT:
            return _SPLIT
        if k < 0 or size < 0 or not _ask(parser, memory, pair, base, here, k, there, size):
            return 0
    return 1


@helper
def _looked_at(parser, memory, pair):
    """Ask for what a pair needs; whether it may hold."""
    starts, items = _flat(memory, _STARTS), _flat(memory, _ROWS)
    parts, counts = _flat(memory, _PARTS), _flat(memory, _COUNTS)
    one, other = _table(memory, _SCRATCH)[1], _table(memory, _SCRATCH)[2]
    begin = starts[pair]
    base, n, m = items[begin], items[begin + 1], items[begin + 2]
    for i in range(n):
        one[i] = items[begin + 3 + i]
    for i in range(m):
        other[i] = items[begin + 3 + n + i]
    counts[_WORK] += 1
    if n and m and one[n - 1] == other[m - 1]:
        found = _popped(parser, memory, pair, base, one, n - 1, other, m - 1, one[n - 1])
    else:
        found = _compared(parser, memory, pair, base, one, n, other, m)
    if found != _SPLIT:
        return found == 1
    many = _parts(parser, memory, base, counts[_SPLIT_AT])
    for part in range(many):
        for i in range(n):
            one[i] = items[begin + 3 + i]
        for i in range(m):
            other[i] = items[begin + 3 + n + i]
        if not _ask(parser, memory, pair, parts[part], one, n, other, m):
            return False
    return many > 0


@helper
def _fail(memory, pair):
    """What is built upon a pair that fails does, too; of the others that were asked nothing is known."""
    status, uses = _flat(memory, _STATUS), _table(memory, _USED)
    last_use, todo = _flat(memory, _LAST_USE), _flat(memory, _WAITING)
    failed, counts = _flat(memory, _FAILED), _flat(memory, _COUNTS)
    status[pair] = _FAILS
    failed[0] = pair
    n = 1
    while n:
        n -= 1
        use = last_use[failed[n]]
        while use >= 0:
            if status[uses[use, 0]] == _ASKED:
                status[uses[use, 0]] = _FAILS
                failed[n] = uses[use, 0]
                n += 1
            use = uses[use, 1]
    for i in range(counts[_N_WAITING]):
        if status[todo[i]] == _ASKED:
            status[todo[i]] = _UNKNOWN


@helper
def _hold(parser, memory, base, one, n, other, m):
    """Whether two pieces do the same on every state of a base; they are overwritten."""
    status, todo, counts = _flat(memory, _STATUS), _flat(memory, _WAITING), _flat(memory, _COUNTS)
    counts[_N_WAITING] = counts[_USES] = 0
    if not _ask(parser, memory, -1, base, one, n, other, m):
        return False
    at = 0
    while at < counts[_N_WAITING]:
        is_over = counts[_N_WAITING] > _MOST_AT_ONCE or counts[_WORK] >= counts[_MOST_WORK]
        if is_over or not _looked_at(parser, memory, todo[at]):
            _fail(memory, todo[at])
            return False
        at += 1
    for i in range(counts[_N_WAITING]):
        status[todo[i]] = _HOLDS
    return True


@helper
def _is_less(parser, one, n, other, m):
    """The order in which each replacement goes down, so that they end: by length, then by states from the top."""
    shifts = _flat(parser, _SHIFTS)
    if n != m:
        return n < m
    for i in range(n - 1, -1, -1):
        if one[i] != other[i]:
            return (shifts[one[i]], one[i]) < (shifts[other[i]], other[i])
    return False


@helper
def _holds(parser, memory, first, values, c, top, symbol):
    """Whether a candidate holds with a state on top, that a symbol leads to, or with none, -1."""
    defaults, parts, todo = _flat(parser, _DEFAULTS), _flat(memory, _PARTS), _flat(memory, _BASES_WAITING)
    piece, instead = _table(memory, _SCRATCH)[5], _table(memory, _SCRATCH)[6]
    begin = first[c]
    size, left, n_symbols = values[begin + 1], values[begin + 2], values[begin + 3]
    todo[0] = values[begin]
    waiting = 1
    while waiting:
        waiting -= 1
        base = todo[waiting]
        for i in range(size):
            piece[i] = values[begin + 4 + i]
        for i in range(left):
            instead[i] = piece[i]
        n, split = left, False
        for i in range(n_symbols + (top >= 0)):
            each = symbol if i == n_symbols else values[begin + 4 + size + i]
            target = _target(parser, memory, base, instead, n, each)
            if target == _SPLIT:
                split = True
                many = _parts(parser, memory, base, each)
                if not many or waiting + many > len(todo):
                    return False
                for part in range(many):
                    todo[waiting] = parts[part]
                    waiting += 1
                break
            if target < 0 or defaults[target] >= 0:
                return False
            instead[n] = target
            n += 1
        if split:
            continue
        m = size
        if top >= 0:
            piece[m] = top
            m += 1
        if not _is_less(parser, instead, n, piece, m) or not _hold(parser, memory, base, piece, m, instead, n):
            return False
    return True


@helper
def _is_any_known(memory, base, piece, n, shortest):
    """Whether a piece is kept, or one of its upper parts, so many states or more."""
    found = False
    for begin in range(n - shortest + 1):
        found |= _is_known(memory, base, piece, begin, n, False)
    return found


@kernel
def replaced_pieces(
    parser: int32[::1], memory: Out[int32[::1]], first: int32[::1], values: int32[::1], resting: boolean[::1],
    is_alone: boolean, most: int64, found: Out[int32[:, ::1]],
) -> boolean:  # fmt: skip
    """Which candidates hold, for some time.

    ``parser`` is a block of ``table[states, symbols]``: the next state, -1, or -2 less a rule; ``length``, ``origin``
    by rule; by state: its default reduction's rule, ``contexts``, the first of its ways to be popped; of these ways,
    the states ``below`` and the nonterminal; by state: one ``like`` it in these ways; how many terminals there are;
    by state how many it shifts. ``memory`` is the block of what is remembered, see above. Candidates are a base, the
    lengths of a piece, of what is left of it and of the symbols, the piece and the symbols, in ``values`` each from
    ``first[c]`` on. With ``is_alone`` they are asked with nothing on top, else with each state on top that is
    ``resting``.

    Adds candidates and states on top, or -1, to ``found``, ``int32[*, 2]``, until ``most`` more work is done. Returns
    whether all were looked at; ``counts`` say how many were found.
    """
    table, counts, piece = _table(parser, _TABLE), _flat(memory, _COUNTS), _table(memory, _SCRATCH)[7]
    if not counts[_PAIRS]:
        _keep_bases(memory)
    until = counts[_WORK] + most
    while counts[_CANDIDATE] < len(first) - 1 and counts[_WORK] < counts[_MOST_WORK]:
        c = counts[_CANDIDATE]
        n = values[first[c] + 1]
        for i in range(n):
            piece[i] = values[first[c] + 4 + i]
        is_open = not _is_any_known(memory, _REPLACED, piece, n, 1)
        # With nothing on top, which is done at once, or with each state in turn.
        while is_open and counts[_TOP] < (1 if is_alone else table.shape[1]):
            if counts[_WORK] >= until or counts[_FOUND] == len(found):
                return False
            symbol = -1 if is_alone else counts[_TOP]
            top = -1 if is_alone else table[piece[n - 1], symbol]
            counts[_TOP] += 1
            if not is_alone and (top < 0 or not resting[top]):
                continue
            m = n
            if not is_alone:
                piece[n] = top
                m = n + 1
                if _is_any_known(memory, _COVERED, piece, m, 2):
                    continue
            if _holds(parser, memory, first, values, c, top, symbol):
                found[counts[_FOUND], 0] = c
                found[counts[_FOUND], 1] = top
                counts[_FOUND] += 1
                _is_known(memory, _REPLACED if is_alone else _COVERED, piece, 0, m, True)
        counts[_TOP] = 0
        counts[_CANDIDATE] += 1
    return True
