"""Which endings of lexemes are unconstrained where brackets or blocks do not nest: a simpler answer than `lines`'."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....runtime.core.bitsets import bits_of
from ....runtime.grammar.completability.obligations import Watched
from ....runtime.grammar.tables import GrammarTables


def separated(
    tables: GrammarTables, terminals: list[int], borders: list[Watched], contexts: list[list[int]], meter: Meter
) -> list[bool]:
    """By ending, where there is indentation: whether something ignored can follow, and then everything.

    That is so in each context that may come. A comment up to the end of the line is followed by a line end, and
    that by anything.

    Parameters
    ----------
    tables:
        The grammar.
    terminals, borders:
        The endings.
    contexts:
        By terminal: the contexts that the lexer may read on in behind it.

    Raises `BudgetExceededError`.
    """
    doing = "looking for what can follow lexemes"
    terminal = np.array(terminals, np.int32)
    breaks = np.array([_breaks(tables, border) for border in borders], np.bool_)
    meter.check_time(doing)
    members, targets = tables.members, tables.table[tables.starts]
    meter.check_memory(len(tables.table) * members + 2 * targets.size * members, doing)
    meter.check_memory(len(terminal) * (2 * len(targets) + breaks.shape[1]), doing)
    ignored = bits_of(tables.ignored.reshape(1, -1), members)[0]
    # By context, class of bytes and terminal: whether it can begin that. Then eight classes to a byte.
    first = bits_of(tables.future, members)[targets] & (targets >= 0)[:, :, None]
    packed, packed_breaks = np.packbits(first, axis=1), np.packbits(breaks, axis=1)
    needless = ignored | ~first.any(axis=1)
    meets: dict[bytes, NDArray[np.bool_]] = {}  # by classes: the contexts in which all that is not ignored has one
    is_met = np.zeros((len(terminal), len(targets)), np.bool_)
    separates = np.broadcast_to(ignored[:, None], (members, len(targets))).copy()
    for end in np.flatnonzero(ignored[terminal]).tolist():
        meter.check_time(doing)
        key = packed_breaks[end].tobytes()
        if key not in meets:
            meets[key] = ((packed & packed_breaks[end][:, None]).any(axis=1) | needless).all(axis=1)
        is_met[end] = meets[key]
        separates[terminal[end]] &= meets[key]
    # By context: the classes of bytes that begin what is ignored and can be followed by anything.
    separators = np.zeros(packed.shape[:2], np.uint8)
    for each in np.flatnonzero(ignored).tolist():
        meter.check_time(doing)
        separators |= np.where(separates[each][:, None], packed[:, :, each], 0)
    distinct = {row.tobytes(): row for row in separators}
    follows = np.stack([(packed_breaks & row).any(axis=1) for row in distinct.values()], axis=1)
    number = {key: i for i, key in enumerate(distinct)}
    follows = follows[:, [number[row.tobytes()] for row in separators]]
    after = np.zeros((members, len(targets)), np.bool_)
    for t, there in enumerate(contexts):
        after[t, there] = True
    found: NDArray[np.bool_] = np.all(follows | is_met | ~after[terminal], axis=1)
    return [bool(each) for each in found]


def _breaks(tables: GrammarTables, border: Watched) -> NDArray[np.bool_]:
    """``bool[classes]``: the bytes that do not complete what is watched."""
    after = tables.table[list(border)]
    is_beaten: NDArray[np.bool_] = np.any((after >= 0) & (tables.beats[after] > 0), axis=0)
    return ~is_beaten
