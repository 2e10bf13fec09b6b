"""Many tables in one array. To hand a kernel an array takes 0.02 µs, and 0.1 where it is not in a cache.

A block is ``int32[*]``: for each table where it begins, its rows and its columns; behind these the tables, row after
row (`structgen.runtime.core.blocks`).
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

from ..jit import spliced

#: The tables of a block of stacks, in their order (see `walk_stack_masks`).
_CELLS, _CELL_SLOTS, _SHIFTS, _SHIFT_SLOTS, _ACCEPTED, _ACCEPT_SLOTS, _OFFERS, _OFFER_SLOTS, _OFFERED = range(9)
_HITS, _WAITING, _MASKS, _WORKLIST, _ANSWERS, _ANSWER_SLOTS, _ALLOWED, _MISSING, _OPEN = range(9, 18)

#: The first table of the parser's block of those that say what completes texts, `CompletionTables`' in their order:
#: ``reach``, ``net``, where the positions of each state begin, ``row_of``, ``sure``, ``starts``, ``moves``, ``sets``,
#: ``first``; ``int32[*, 2]`` the endings that are asked for; and scratch: ``int32[*, 3]`` a cell, open brackets and a
#: nonterminal, ``uint32[*, words]`` a set for each. All are empty where that is not known.
_COMPLETIONS = 13


def _flat(block, k):
    """A table's numbers, in one row."""
    return block[block[3 * k] : block[3 * k] + block[3 * k + 1] * block[3 * k + 2]]


def _table(block, k):
    return _flat(block, k).reshape(block[3 * k + 1], block[3 * k + 2])


def _words(block, k):
    return _table(block, k).view(np.uint32)


def _flat_words(block, k):
    return _flat(block, k).view(np.uint32)


def _bytes(block, k):
    return _table(block, k).view(np.uint8)


def _lowered(function, dtype, dimensions):
    """Have Numba make the array from the block's address: a reshape takes it fifty times as long, and can fail."""
    size = dtype.bitwidth // 8

    @type_callable(function)
    def typed(context):
        return lambda block, k: types.Array(dtype, dimensions, "C")

    @lower_builtin(function, types.Array, types.Integer)
    def made(context, builder, signature, arguments):
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        k = context.cast(builder, arguments[1], signature.args[1], types.intp)

        def header(place):
            at = builder.add(builder.mul(k, k.type(3)), k.type(place))
            return builder.sext(builder.load(builder.gep(data, [at])), k.type)

        rows, columns = header(1), builder.sdiv(builder.mul(header(2), k.type(4)), k.type(size))
        shape = [rows, columns] if dimensions == 2 else [builder.mul(rows, columns)]
        strides = [builder.mul(columns, k.type(size)), k.type(size)][-dimensions:]
        made = make_array(signature.return_type)(context, builder)
        begin = builder.bitcast(builder.gep(data, [header(0)]), context.get_data_type(dtype).as_pointer())
        populate_array(
            made, begin, cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides), k.type(size), None
        )
        return made._getvalue()


for _function, _dtype, _dimensions in (
    (_flat, types.int32, 1), (_table, types.int32, 2), (_words, types.uint32, 2), (_flat_words, types.uint32, 1),
    (_bytes, types.uint8, 2),
):  # fmt: skip
    _lowered(_function, _dtype, _dimensions)


@spliced
def _actions(block):
    """The parser: from ``shift`` to ``brackets``."""
    return (
        _table(block, 0), _table(block, 1), _flat(block, 2), _table(block, 3), _words(block, 4), _words(block, 5),
        _flat(block, 6), _flat(block, 7), _flat_words(block, 8), _flat(block, 9), _flat(block, 10),
    )  # fmt: skip


@spliced
def _simpler(block):
    """Of the parser: ``same_start`` and ``same``."""
    return _flat(block, 11), _table(block, 12)


@spliced
def _of_levels(block):
    """``keep``, ``given``, ``moves`` and ``levels``."""
    return _words(block, 0), _words(block, 1), _table(block, 2), _table(block, 3)


@spliced
def _of_lexer(block):
    """``class_of``, ``end_start``, ``ends``, ``beats``, ``lapses``, ``starts``, ``futures``, ``sets``, ``tight``."""
    return (
        _flat(block, 0), _flat(block, 1), _table(block, 2), _flat(block, 3), _flat(block, 4), _flat(block, 5),
        _flat(block, 6), _words(block, 7), _table(block, 8),
    )  # fmt: skip


@spliced
def _of_stacks(block):
    """From ``cells`` to ``masks``."""
    return (
        _table(block, _CELLS), _flat(block, _CELL_SLOTS), _table(block, _SHIFTS), _flat(block, _SHIFT_SLOTS),
        _words(block, _ACCEPTED), _flat(block, _ACCEPT_SLOTS), _table(block, _OFFERS), _flat(block, _OFFER_SLOTS),
        _words(block, _OFFERED), _bytes(block, _HITS), _table(block, _WAITING), _words(block, _MASKS),
    )  # fmt: skip


@spliced
def _of_answers(block):
    """``answers`` and ``answer_slots``."""
    return _table(block, _ANSWERS), _flat(block, _ANSWER_SLOTS)
