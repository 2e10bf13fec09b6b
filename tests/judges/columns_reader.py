"""A plain reader of declared sections, number by number: the judge of `structgen.storage.columns.read`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from numpy.typing import NDArray

import structgen as sg
from structgen.errors import FormatError
from structgen.storage import columns as product
from structgen.storage.columns import MOST, Column, Columns, Sizes, Total


class Reading(NamedTuple):
    """Sections that are read together, what is declared of them, and what is known before and after."""

    sections: dict[str, NDArray[Any]]
    declared: Columns
    before: Sizes
    after: Sizes


def readings(index: sg.Index) -> list[Reading]:
    """All that is read of an index's file."""
    found: list[Reading] = []
    original = product.read

    def reading(sections: Mapping[str, NDArray[Any]], declared: Columns, sizes: Sizes, where: str) -> Any:
        own = {each.name: sections[each.name].copy() for each in declared if each.name in sections}
        before = dict(sizes)
        answer = original(sections, declared, sizes, where)
        found.append(Reading(own, declared, before, dict(sizes)))
        return answer

    with patch.object(product, "read", reading):
        sg.Index.from_buffer(index.to_bytes(with_vocabulary=False), index.vocabulary)
    return found


def agrees(sections: dict[str, NDArray[Any]], declared: Columns, known: Sizes) -> bool:
    """Whether sections are read; the product must say the same of them, and come to the same arrays."""
    sizes, others = dict(known), dict(known)
    try:
        expected = read(sections, declared, sizes)
    except Refused:
        with pytest.raises(FormatError, match="section"):
            product.read(sections, declared, others, "here")
        return False
    found = product.read(sections, declared, others, "here")
    assert others == sizes
    for column in declared:
        np.testing.assert_array_equal(found[column.name], expected[column.name], column.name)
        assert found[column.name].dtype == expected[column.name].dtype
    return True


_DTYPES = {"u": ("u1", "u2", "u4")}


class Refused(Exception):
    """A section is not as declared; the message is its name."""


def read(sections: Mapping[str, NDArray[Any]], columns: Sequence[Column], sizes: Sizes) -> dict[str, NDArray[Any]]:
    """The sections by name, as they are to be read; ``sizes`` gets what they tell. Raises `Refused`."""
    found: dict[str, NDArray[Any]] = {}
    for column in columns:  # shapes first
        if not _is_shaped(column, sections.get(column.name), sizes):
            raise Refused(column.name)
    for column in columns:
        array = sections.get(column.name)
        if array is None:
            found[column.name] = _made_up(column, sizes)
            continue
        if not _is_sound(column, array, sections, sizes):
            raise Refused(column.name)
        if column.flags is not None:
            array = np.unpackbits(array, count=_total(column.flags, sizes), bitorder="little")
        found[column.name] = array.astype(column.cast or array.dtype)
    return found


def _total(total: Total, sizes: Sizes) -> int:
    parts = total if isinstance(total, tuple) else (total,)
    return sum(sizes[part] if isinstance(part, str) else part for part in parts)


def _equals(total: Total, count: int, sizes: Sizes) -> bool:
    """Whether a total is a count; its first quantity is known from now on."""
    first, *others = total if isinstance(total, tuple) else (total,)
    if isinstance(first, str) and first not in sizes:
        sizes[first] = max(0, count - _total(tuple(others), sizes))
    return _total(total, sizes) == count


def _is_shaped(column: Column, array: NDArray[Any] | None, sizes: Sizes) -> bool:
    if array is None:
        if column.default is None:
            return False
        assert column.rows is not None
        _equals(column.rows, 0, sizes)
        return True
    if array.dtype.str[1:] not in _DTYPES.get(column.dtype, (column.dtype,)):
        return False
    width: Total | None = len(column.fields) or column.columns or None
    rows = column.rows
    if column.members is not None:
        words = -(-_total(column.members, sizes) // 32)
        rows, width = (words, None) if rows is None else (rows, words)
    if column.flags is not None:
        rows = -(-_total(column.flags, sizes) // 8)
    if array.ndim != (1 if width is None else 2):
        return False
    if rows is not None and not _equals(rows, len(array), sizes):
        return False
    if width is not None and not _equals(width, array.shape[1], sizes):
        return False
    if column.starts is not None:
        return bool(len(array)) and array[0] == 0 and _equals(column.starts, int(array[-1]), sizes)
    return True


def _is_sound(column: Column, array: NDArray[Any], sections: Mapping[str, NDArray[Any]], sizes: Sizes) -> bool:
    numbers = array.ravel().tolist()
    if column.flags is not None:
        return True
    if column.members is not None:
        bits = _total(column.members, sizes)
        rows = [array.tolist()] if array.ndim == 1 else array.tolist()
        return all(sum(word << 32 * i for i, word in enumerate(row)) < 1 << bits for row in rows)
    if column.starts is not None:
        sizes_of_parts = [b - a for a, b in pairwise(numbers)]
        if any(size < 0 or 0 < column.widest < size for size in sizes_of_parts):
            return False
    if column.below is not None or column.cast or column.least:
        below = MOST if column.below is None else _total(column.below, sizes)
        if not all(column.least <= number < below for number in numbers):
            return False
    for number, (least, total) in enumerate(column.fields):
        if not all(least <= each < _total(total, sizes) for each in array[:, number].tolist()):
            return False
    starts = sections[column.within].tolist() if column.within else [0, len(array)]
    keys = array.tolist() if array.ndim == 1 else array[:, :1].ravel().tolist()
    for begin, end in pairwise(starts):
        part = keys[begin:end]
        if column.order == "rises" and any(a >= b for a, b in pairwise(part)):
            return False
        if column.order == "never falls" and any(a > b for a, b in pairwise(part)):
            return False
        if part and 0 < column.first <= part[0]:
            return False
        if part and column.gaps is not None and sum(part) >= _total(column.gaps, sizes):
            return False
        if column.ends:
            ranges = [*zip(sections[column.ends][begin:end].tolist(), part, strict=True)]
            bounds = [bound for low, high in ranges for bound in (low, high + 1)]
            if bounds != sorted(bounds) or any(low > high for low, high in ranges):
                return False
    return True


def _made_up(column: Column, sizes: Sizes) -> NDArray[Any]:
    assert isinstance(column.rows, str)
    width = len(column.fields) or column.columns
    assert isinstance(width, int)
    shape = (sizes[column.rows], width) if width else sizes[column.rows]
    return np.full(shape, column.default, column.cast or ("u1" if column.dtype == "u" else column.dtype))
