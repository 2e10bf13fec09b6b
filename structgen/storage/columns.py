"""What the sections and the meta fields of a file may hold, as declarations, and the one reader that checks them.

Kernels and the runtime index with the numbers of a file and check no bounds. So each section is declared as a
`Column`: dtype, shape, bounds, order. `read` copies it first and checks the copy: a file that is mapped can be
changed by whoever may write it, at any time. Only what nothing is indexed with, whole mask rows, is used where it
lies.

Bounds and lengths are *totals*: a number, the name of a quantity ("states"), or a tuple of such, which is added up. A
quantity that is not known yet is given by the first section that has it as its length or as the end of its starts.
"""

from __future__ import annotations

import reprlib
from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass
from operator import lt
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..system.types import Array, DType, JsonMap, JsonValue, Sections

#: A number, the name of a quantity, or a sum of these.
Total: TypeAlias = "int | str | tuple[int | str, ...]"

#: What is known of a file: states, rows and so on, by name.
Sizes: TypeAlias = dict[str, int]

#: Lengths and other numbers that a file may give; int32 holds them, and the one after.
MOST = (1 << 31) - 1

_DTYPES = {code: frozenset({np.dtype(code)}) for code in ("u1", "u2", "u4", "i4")}
_DTYPES["u"] = _DTYPES["u1"] | _DTYPES["u2"] | _DTYPES["u4"]
_LARGEST = {dtype: int(np.iinfo(dtype).max) for dtypes in _DTYPES.values() for dtype in dtypes}

#: What numbers of so many bytes are at most.
_TOPS = 0, (1 << 8) - 1, (1 << 16) - 1, 0, (1 << 32) - 1

# Sections are short, and the methods of arrays take longer than the work. Each function of NumPy's that a process has
# not used for a while takes as long as twenty calls, so these few do for all; and one that has no other use is not
# called where Python's own do it.
_largest = np.maximum.reduce

_REBUILD = "Delete the file and compile it again."


#: A column's name and dtypes, its cast and whether it is copied, ``is_words``, ``counted``, ``besides``, ``starts``,
#: ``below``, ``is_plain`` and ``has_more``. One tuple is nearer at hand than as many attributes.
_Read: TypeAlias = tuple[str, Container[DType], str, bool, bool, str, int, "Total | None", "Total | None", bool, bool]


@dataclass(frozen=True)
class Column:
    """One section.

    Parameters
    ----------
    name:
        The section's.
    dtype:
        As stored: ``"u1"``, ``"u2"``, ``"u4"``, ``"i4"``, or ``"u"`` for any of the unsigned.
    rows:
        The length; None for any.
    columns:
        Of each row; 0 for a section of one dimension.
    below, least:
        Every number is below the one and at least the other; None for any.
    fields:
        The same for each of the columns in turn, in place of ``columns`` and ``below``: ``(least, below)``.
    starts:
        The section says where the parts of something begin that is so long: from 0 to that, never falling.
    widest:
        The length of any of these parts at most.
    order:
        ``"rises"`` or ``"never falls"``: what the numbers do, or those of the first column.
    within:
        The section whose parts ``order`` is about, none of which is empty; without one it is the whole.
    first:
        The first number of each of these parts is below it.
    gaps:
        The numbers are gaps between ids (see `structgen.runtime.rows.row_pool.encode_gaps`), a list for each part of
        ``within``, all ids below this.
    members:
        Each row, or with ``rows`` None the section, is a set of numbers below this, in words of 32 bits.
    flags:
        So many bits, eight a byte; they are read as ``uint8``.
    default:
        Makes up a section that is missing.
    cast:
        The dtype it is read as.
    mapped:
        Nothing is indexed with it: it is used where it lies.
    """

    name: str
    dtype: str = "u"
    rows: Total | None = None
    columns: Total = 0
    below: Total | None = None
    least: int = 0
    fields: tuple[tuple[int, Total], ...] = ()
    starts: Total | None = None
    widest: int = 0
    order: str = ""
    within: str = ""
    first: int = 0
    gaps: Total | None = None
    members: Total | None = None
    flags: Total | None = None
    default: int | None = None
    cast: str = ""
    mapped: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtypes", _DTYPES[self.dtype])
        object.__setattr__(self, "width", len(self.fields) or self.columns)
        object.__setattr__(self, "has_bounds", self.below is not None or bool(self.least or self.cast))
        is_words = self.members is not None or self.flags is not None
        is_bounded = self.starts is not None or self.has_bounds
        more = bool(self.fields or self.order or self.gaps is not None or self.least)
        plain = is_bounded and not more and (self.dtype != "i4" or bool(self.cast))
        object.__setattr__(self, "is_words", is_words)
        object.__setattr__(self, "is_plain", plain and not is_words)
        object.__setattr__(self, "has_more", (is_bounded or more) and not plain and not is_words)
        quantity, *more_rows = self.rows if isinstance(self.rows, tuple) else (self.rows,)
        counts = isinstance(quantity, str) and not self.width
        object.__setattr__(self, "counted", quantity if counts else "")
        object.__setattr__(self, "besides", sum(map(int, more_rows)) if counts else 0)
        object.__setattr__(self, "nothing", _no_rows(self.dtype, len(self.fields) or self.columns))
        read = (
            self.name, self.dtypes, self.cast, not self.mapped, self.is_words, self.counted, self.besides,
            self.starts, self.below, self.is_plain, self.has_more,
        )  # fmt: skip
        object.__setattr__(self, "read", read)

    if TYPE_CHECKING:
        dtypes: ClassVar[Container[DType]]
        width: ClassVar[Total]
        has_bounds: ClassVar[bool]
        is_words: ClassVar[bool]
        is_plain: ClassVar[bool]  # nothing is said of it but bounds, or that it never falls
        has_more: ClassVar[bool]
        counted: ClassVar[str]  # the quantity that its length tells, where that is one, less so many
        besides: ClassVar[int]
        nothing: ClassVar[Array | None]  # in place of a section that is missing, of no rows
        read: ClassVar[_Read]  # what `read` looks at of each section


def _no_rows(dtype: str, width: Total) -> Array | None:
    """An array of no rows; None where a file tells how wide they are."""
    if not isinstance(width, int):
        return None
    return np.zeros((0, width) if width else 0, dtype if dtype != "u" else "u1")


@dataclass(frozen=True)
class Field:
    """One field of the meta section.

    Parameters
    ----------
    name:
        The field's.
    kind:
        ``bool``, ``int``, ``float`` (or an int), ``str``, ``list``, or ``dict``.
    of:
        What the values of a list or dict are: ``int``, ``str``, or ``list`` for pairs of ints.
    least, below:
        Bounds of numbers, of all numbers of a list or dict, or, as a list, of the two of each pair.
    """

    name: str
    kind: type
    of: type | None = None
    least: int = 0
    below: Total | list[Total] = MOST


def total(quantity: Total, sizes: Sizes) -> int:
    """What a total comes to."""
    if isinstance(quantity, int):
        return quantity
    if isinstance(quantity, str):
        return sizes[quantity]
    amount = 0
    for part in quantity:
        amount += sizes[part] if isinstance(part, str) else part
    return amount


def read(sections: Sections, columns: Sequence[Column], sizes: Sizes, where: str) -> dict[str, Array]:
    """Sections by name, checked: copies, but for those that are mapped and what `unpack` has copied.

    ``sizes`` has the quantities that are known, and gets the others. Raises `FormatError`, which names the section,
    the value and its bound.
    """
    found: dict[str, Array] = {}
    starting, bounded, others = [], [], []  # sections of which nothing more is said, and columns of which more is
    column = columns[0]
    get, setdefault = sections.get, sizes.setdefault
    try:
        for column in columns:
            name, dtypes, cast, copied, is_words, counted, besides, starts, below, is_plain, has_more = column.read
            array = get(name)
            if array is None:
                found[name] = _made_up(column, sizes)
                continue
            if array.dtype not in dtypes:
                raise _Wrong(f"has the dtype {array.dtype.str[1:]}, must have {column.dtype}")
            if cast:
                array = array.astype(cast)
            elif copied and not array.flags.writeable:
                array = array.copy()
            if is_words:
                found[name] = _checked_words(column, array, sizes)
                continue
            found[name] = array
            count = len(array) - besides
            if not counted or count < 0 or array.ndim > 1 or setdefault(counted, count) != count:
                _fix(array, column.rows, column.width, sizes)
            if starts is not None:
                last = _fix_end(array, starts, sizes)
                if is_plain and not 0 < column.widest < last:
                    starting.append(array)
                elif last or has_more:
                    others.append(column)
            elif is_plain:
                bounded.append((below, array))
            elif has_more:
                others.append(column)
        if not _are_within(starting, bounded, sizes):
            others = [column for column in columns if column.name in sections and not column.is_words]
        for column in others:
            array = found[column.name]
            if array.size:
                _check(column, array, sizes, found)
    except _Wrong as wrong:
        raise FormatError(f"section {column.name!r} {wrong}", where=where, remedy=_REBUILD) from None
    return found


class _Wrong(Exception):
    """What is wrong with a section."""


def _made_up(column: Column, sizes: Sizes) -> Array:
    if column.default is None:
        raise _Wrong("is missing")
    assert isinstance(column.rows, str)
    rows = sizes.setdefault(column.rows, 0)
    if not rows and column.nothing is not None:
        return column.nothing
    width = len(column.fields) or total(column.columns, sizes)
    of = column.dtype if column.dtype != "u" else "u1", column.default
    length, known = rows * (width or 1), _constants.get(of)
    if known is None or len(known) < length:  # another thread may put a shorter one there: this one is what counts
        known = np.full(2 * length + 256, column.default, of[0])
        known.flags.writeable = False
        if len(known) <= _LONGEST_CONSTANT:
            _constants[of] = known
    return known[:length].reshape(rows, width) if width else known[:length]


#: By dtype and number, an array of nothing else, which files share; the numbers of the longest that is kept.
_constants: dict[tuple[str, int], Array] = {}
_LONGEST_CONSTANT = 1 << 20


def _are_within(starting: list[Array], bounded: list[tuple[Total | None, Array]], sizes: Sizes) -> bool:
    """Whether plain sections hold to their declarations, looked at in one pass: most are short.

    Starts come first in that pass. None of them falls where there are no more falls than from one to the next. Of the
    others it is given what they are below.
    """
    falls = sum([array.item(-1) > 0 for array in starting[:-1]])
    end = sum(map(len, starting))
    arrays, begin, begins, bounds = starting, end, [], []
    for quantity, array in bounded:
        below = MOST if quantity is None else sizes[quantity] if type(quantity) is str else total(quantity, sizes)
        if below <= _TOPS[array.itemsize] and (size := array.size):
            arrays.append(array)
            begins.append(begin)
            bounds.append(below)
            begin += size
    if not arrays:
        return True
    # What is below 0 in an int32 has become so by a cast, and is a large number again.
    numbers = np.concatenate(arrays, None, dtype=np.uint32, casting="unsafe")
    if end and count_set(numbers[1:end] < numbers[: end - 1]) != falls:
        return False
    return not bounds or all(map(lt, np.maximum.reduceat(numbers, begins).tolist(), bounds))


def count_set(mask: NDArray[np.bool_]) -> int:
    """How many items of a mask are set."""
    return mask.tobytes().count(1)


def _check(column: Column, array: Array, sizes: Sizes, others: Sections) -> None:
    """Check the numbers of one section."""
    if column.starts is not None:
        _check_starts(column, array)
    if column.fields:
        _check_fields(column, array, sizes)
    elif column.has_bounds:
        _check_bounds(column, array, sizes)
    if column.order:
        _check_order(column, array if array.ndim == 1 else array[:, 0], others)
    if column.gaps is not None:
        _check_gaps(array, others[column.within], total(column.gaps, sizes))


def _checked_words(column: Column, array: Array, sizes: Sizes) -> Array:
    """Sets and flags."""
    if column.flags is not None:
        count = total(column.flags, sizes)
        _fix(array, -(-count // 8), 0, sizes)
        return np.unpackbits(array, count=count, bitorder="little")
    _check_members(column, array, sizes)
    return array


def _fix(array: Array, rows: Total | None, columns: Total, sizes: Sizes) -> None:
    """Check the shape where it is known; a quantity that is not known is so from now on."""
    shape = array.shape
    if len(shape) != (2 if columns else 1):
        raise _Wrong(f"has {len(shape)} dimensions, must have {2 if columns else 1}")
    if rows is not None and (type(rows) is not str or sizes.setdefault(rows, shape[0]) != shape[0]):
        _equate(rows, shape[0], "rows", sizes)
    if columns:
        _equate(columns, shape[1], "columns", sizes)


def _fix_end(starts: Array, end: Total, sizes: Sizes) -> int:
    """The last of some starts, checked with the first; it gives the quantity where that is not known."""
    if not len(starts) or starts.item(0):
        raise _Wrong("does not begin at 0")
    last: int = starts.item(-1)
    if last < 0:
        raise _Wrong(f"has the value {last}")
    if type(end) is not str or sizes.setdefault(end, last) != last:
        _equate(end, last, "as the last value", sizes)
    return last


def _equate(quantity: Total, count: int, of: str, sizes: Sizes) -> None:
    if isinstance(quantity, tuple) and isinstance(quantity[0], str) and quantity[0] not in sizes:
        sizes[quantity[0]] = max(0, count - total(quantity[1:], sizes))
    expected = sizes.setdefault(quantity, count) if isinstance(quantity, str) else total(quantity, sizes)
    if expected != count:
        raise _Wrong(f"has {count} {of}, must have {expected}")


def _check_bounds(column: Column, array: Array, sizes: Sizes) -> None:
    below, largest = MOST if column.below is None else total(column.below, sizes), _LARGEST[array.dtype]
    if below <= largest and (top := int(_largest(array, None))) >= below:
        raise _Wrong(f"has the value {top}, must be below {below}")
    if (column.least > 0 or array.dtype.kind == "i") and (low := int(array.min())) < column.least:
        raise _Wrong(f"has the value {low}, must be at least {column.least}")


def _check_fields(column: Column, array: Array, sizes: Sizes) -> None:
    by_field = np.ascontiguousarray(array.T)  # fifty times faster than along the first axis
    lows, tops = np.minimum.reduce(by_field, 1).tolist(), _largest(by_field, 1).tolist()
    for number, (least, quantity) in enumerate(column.fields):
        if (top := tops[number]) >= (below := total(quantity, sizes)):
            raise _Wrong(f"has the value {top} in column {number}, must be below {below}")
        if (low := lows[number]) < least:
            raise _Wrong(f"has the value {low} in column {number}, must be at least {least}")


def _check_members(column: Column, sets: Array, sizes: Sizes) -> None:
    assert column.members is not None
    words, extra = divmod(total(column.members, sizes), 32)
    words += extra > 0
    if column.rows is None:
        _fix(sets, words, 0, sizes)
    else:
        _fix(sets, column.rows, words, sizes)
    if extra and sets.size and int(_largest(sets[..., -1], None)) >> extra:
        raise _Wrong(f"has a member of {total(column.members, sizes)} or more")


def _check_starts(column: Column, starts: Array) -> None:
    if column.order != "rises" and count_set(starts[1:] < starts[:-1]):
        raise _Wrong("falls, must never fall")
    if column.widest and len(starts) > 1 and starts[-1] > column.widest:
        widest = int(_largest(starts[1:] - starts[:-1]))
        if widest > column.widest:
            raise _Wrong(f"has a part of {widest}, must have at most {column.widest}")


def _check_order(column: Column, keys: Array, others: Sections) -> None:
    wrong = keys[1:] <= keys[:-1] if column.order == "rises" else keys[1:] < keys[:-1]
    if column.within:
        begins = others[column.within][:-1]
        wrong[begins[1:] - 1] = False
        if column.first and (first := int(_largest(keys[begins]))) >= column.first:
            raise _Wrong(f"has the value {first} at the beginning of a part, must be below {column.first}")
    if count_set(wrong):
        at = int(wrong.argmax())
        raise _Wrong(f"has the value {keys[at + 1]} behind {keys[at]}: it {column.order}")


def _check_gaps(gaps: Array, starts: Array, below: int) -> None:
    """Check that no list comes to an id out of bounds. (Sums of 2**16 gaps are below 2**32, of 2**32 below 2**48.)"""
    begins = starts[: bisect_left(starts.data, len(gaps))]  # of an empty list one gap of the next is looked at
    sums = np.add.reduceat(gaps, begins, dtype=np.uint32 if len(gaps) <= 1 << 16 else np.int64)
    if (top := max(sums.tolist())) >= below:
        raise _Wrong(f"has a list that comes to {top}, must be below {below}")


def read_meta(meta: JsonMap, fields: Sequence[Field], sizes: Sizes, where: str) -> dict[str, JsonValue]:
    """Fields of the meta section by name, checked; those that are single ints become quantities."""
    found: dict[str, JsonValue] = {}
    for field in fields:
        value: JsonValue = meta.get(field.name)
        if not _is_sound(field, value, sizes):
            shown = reprlib.repr(value) if field.name in meta else "missing"
            raise FormatError(f"the meta field {field.name!r} can't be: {shown}", where=where, remedy=_REBUILD)
        if field.kind is int:
            sizes[field.name] = value
        found[field.name] = value
    return found


def _is_sound(field: Field, value: object, sizes: Sizes) -> bool:
    if field.kind is float:
        return isinstance(value, int | float) and type(value) is not bool and 0 <= value < MOST  # so no NaN
    if type(value) is not field.kind:
        return False
    if field.kind is str or field.kind is bool:
        return True
    if isinstance(value, int) and not isinstance(field.below, list):
        return field.least <= value < total(field.below, sizes)
    values = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    kind = field.of or field.kind
    if kind is not int and kind is not list:
        return all(type(each) is kind for each in values)
    if isinstance(field.below, list):  # pairs
        bounds = [total(each, sizes) for each in field.below]
        return all(
            isinstance(pair, list)
            and len(pair) == len(bounds)
            and all(type(n) is int and field.least <= n < below for n, below in zip(pair, bounds, strict=True))
            for pair in values
        )
    below = total(field.below, sizes)
    return all(type(n) is int and field.least <= n < below for n in values)
