"""Many tables in one array, as `structgen.kernels.grammar.blocks` reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...system.types import Array


def blank(shapes: Sequence[tuple[int, int]]) -> tuple[NDArray[np.int32], list[NDArray[np.int32]]]:
    """A block of zeros, and the parts of it that are its tables."""
    sizes = [rows * columns for rows, columns in shapes]
    ends = (3 * len(shapes) + np.cumsum(sizes)).tolist()
    block = np.zeros(ends[-1], np.int32)
    tables = []
    for k, ((rows, columns), size, end) in enumerate(zip(shapes, sizes, ends, strict=True)):
        block[3 * k : 3 * k + 3] = end - size, rows, columns
        tables.append(block[end - size : end].reshape(rows, columns))
    return block, tables


def packed(tables: Sequence[Array]) -> NDArray[np.int32]:
    """The block of some tables of at most 32 bits, each of one dimension or two."""
    shaped = [table.reshape(-1, 1) if table.ndim == 1 else table for table in tables]
    block, parts = blank([(len(table), table.shape[1]) for table in shaped])
    for part, table in zip(parts, shaped, strict=True):
        part[:] = table.view(np.int32) if table.dtype == np.uint32 else table
    return block
