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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..errors import FormatError
from ..kernels import plans
from ..system.properties import cached_property
from ..system.types import Array, JsonMap, JsonValue, Sections
from .container import DTYPE_OF, SectionTable

#: A number, the name of a quantity, or a sum of these.
Total: TypeAlias = "int | str | tuple[int | str, ...]"

#: What is known of a file: states, rows and so on, by name.
Sizes: TypeAlias = dict[str, int]

#: Lengths and other numbers that a file may give; int32 holds them, and the one after.
MOST = (1 << 31) - 1

_REBUILD = "Delete the file and compile it again."


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
        The section, cast to ``int32``, whose parts ``order`` is about; without one it is the whole.
    first:
        The first number of each of these parts is below it.
    ends:
        The section with the lower ends of ranges, ``u1``, of which these are the upper ones. Within each of these
        parts they ascend without overlap.
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
        ``"i4"``, the dtype it is read as, or none.
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
    ends: str = ""
    gaps: Total | None = None
    members: Total | None = None
    flags: Total | None = None
    default: int | None = None
    cast: str = ""
    mapped: bool = False


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


class Columns(tuple[Column, ...]):
    """Sections that are read together."""

    def __new__(cls, *columns: Column) -> Columns:
        """Of its columns."""
        return super().__new__(cls, columns)

    @cached_property
    def plan(self) -> _Plan:
        """What kernels are told of them."""
        return _Plan(self)


#: The dtypes that a section may have, and the order of its numbers, by what is declared.
_CODES = {"u1": plans.U1, "u2": plans.U2, "u4": plans.U4, "i4": plans.I4}
_CODES["u"] = plans.U1 | plans.U2 | plans.U4
_ORDERS = {"": plans.ANY_ORDER, "never falls": plans.NEVER_FALLS, "rises": plans.RISES}
_INT32 = np.dtype(np.int32)


class _Plan:
    """A declaration as numbers, for kernels (`structgen.kernels.columns`)."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.names = [column.name for column in columns]
        self._quantities: dict[str, int] = {}
        self._totals: list[list[int]] = []
        self._fields: list[tuple[int, int]] = []
        rows = [self._row(column) for column in columns]
        for number, column in enumerate(columns):
            if column.within:  # kernels index with these and with ``ends``, which they have checked before
                starts = columns[self.names.index(column.within)]
                assert starts in columns[:number], column.name
                assert starts.cast, column.name
                assert starts.starts == column.rows, column.name
                assert not column.columns, column.name
            if column.ends:
                lows = columns[self.names.index(column.ends)]
                assert lows in columns[:number], column.name
                assert (lows.dtype, lows.cast, lows.rows) == ("u1", "", column.rows), column.name
        #: ``int64[columns, COLUMN_PLAN]``; ``int64[*, TOTAL_WORDS]``; ``int64[*, FIELD_WORDS]``.
        self.rows = np.array(rows, np.int64)
        self.totals = np.array(self._totals, np.int64).reshape(-1, plans.TOTAL_WORDS)
        self.fields = np.array(self._fields, np.int64).reshape(-1, plans.FIELD_WORDS)
        #: Bytes of a copy for each byte of a section, at most, ``int64[columns]``.
        self.growth = np.array([8 if c.flags else 4 if c.cast else int(not c.mapped) for c in columns], np.int64)
        #: The names of quantities by number.
        self.quantities = [*self._quantities]

    def _row(self, column: Column) -> list[int]:
        use = plans.MAPPED if column.mapped else plans.CAST if column.cast else plans.COPIED
        fields, width, below = len(self._fields), column.columns, column.below
        self._fields += [(least, self._total(each)) for least, each in column.fields]
        if below is None and (column.cast or column.least):
            below = MOST
        totals = (
            column.rows, len(column.fields) or width or None, column.starts, below, column.gaps, column.members,
            column.flags,
        )  # fmt: skip
        return [
            _CODES[column.dtype], use, *map(self._total, totals), column.least, column.widest, fields,
            len(column.fields), _ORDERS[column.order], self._number(column.within), column.first,
            self._number(column.ends), column.default is not None,
        ]  # fmt: skip

    def _number(self, name: str) -> int:
        """The number of another column; -1 for none."""
        return self.names.index(name) if name else -1

    def _total(self, total: Total | None) -> int:
        """The number of a total; -1 for none."""
        if total is None:
            return -1
        parts = total if isinstance(total, tuple) else (total,)
        names = [self._quantities.setdefault(p, len(self._quantities)) for p in parts if isinstance(p, str)]
        assert len(names) < plans.TOTAL_WORDS
        amount = sum(part for part in parts if isinstance(part, int))
        self._totals.append([*names, *[-1] * (plans.TOTAL_WORDS - 1 - len(names)), amount])
        return len(self._totals) - 1


def total(quantity: Total, sizes: Sizes) -> int:
    """The value of a total."""
    parts = quantity if isinstance(quantity, tuple) else (quantity,)
    return sum(sizes[part] if isinstance(part, str) else part for part in parts)


def read(sections: Sections, columns: Columns, sizes: Sizes, where: str) -> dict[str, Array]:
    """Sections by name, checked: copies in one block, but for those that are mapped.

    ``sizes`` has the quantities that are known, and gets the others. Raises `FormatError`, which names the section,
    the value and its bound.
    """
    plan = columns.plan
    found, names = SectionTable.of(sections).places(plan.names), plan.quantities
    known = np.array([sizes.get(name, plans.NOT_KNOWN) for name in names], np.int64)
    wrong = np.zeros(plans.WRONG_WORDS, np.int64)
    block = np.empty(int(found[:, plans.F_BYTES] @ plan.growth) + 8 * len(columns), np.uint8)
    base = kernels.address(block)
    used = kernels.read_columns(plan.rows, plan.totals, plan.fields, found, known, base, wrong)
    if used < 0:
        raise FormatError(_told(plan, sections, *wrong.tolist()), where=where, remedy=_REBUILD)
    block.resize(used, refcheck=False)
    sizes.update((name, size) for name, size in zip(names, known.tolist(), strict=True) if size >= 0)
    arrays: dict[str, Array] = {}
    for column, (address, _, code, width, target, size, *_) in zip(columns, found.tolist(), strict=True):
        if not address:
            arrays[column.name] = _made_up(column, sizes)
        elif column.mapped:
            arrays[column.name] = sections[column.name]
        else:
            shape = (size // width, width) if width else size
            dtype = _INT32 if column.cast else DTYPE_OF[code]
            arrays[column.name] = np.ndarray(shape, dtype, block, target - base)
    return arrays


#: What is wrong, by what kernels say, with the value and its bound.
_TEXTS = {
    plans.W_MISSING: "is missing",
    plans.W_DIMENSIONS: "has {} dimensions, must have {}",
    plans.W_ROWS: "has {} rows, must have {}",
    plans.W_WIDTH: "has {} columns, must have {}",
    plans.W_BEGINS: "does not begin at 0",
    plans.W_LAST: "has {} as the last value, must have {}",
    plans.W_TOP: "has the value {}{field}, must be below {}",
    plans.W_LOW: "has the value {}{field}, must be at least {}",
    plans.W_MEMBER: "has a member that is not below {1}: {0:#x}",
    plans.W_PART: "has a part of {}, must have at most {}",
    plans.W_ORDER: "has the value {} behind {}: it {order}",
    plans.W_FIRST: "has the value {} at the beginning of a part, must be below {}",
    plans.W_LIST: "has a list that comes to {}, must be below {}",
    plans.W_OVERLAP: "has a range that overlaps with the one before it, or ends before it begins: {} to {}",
}


def _told(plan: _Plan, sections: Sections, number: int, what: int, value: int, bound: int, field: int) -> str:
    column = plan.columns[number]
    if what == plans.W_DTYPE:
        dtype = sections[column.name].dtype.str[1:]
        return f"section {column.name!r} has the dtype {dtype}, must have {column.dtype}"
    in_field = f" in column {field}" if field >= 0 else ""
    told = _TEXTS[what].format(value, bound, field=in_field, order=column.order or "never falls")
    return f"section {column.name!r} {told}"


def _made_up(column: Column, sizes: Sizes) -> Array:
    """A section that is missing."""
    assert isinstance(column.rows, str)
    rows, width = sizes[column.rows], len(column.fields) or column.columns
    assert isinstance(width, int)
    dtype = column.cast or (column.dtype if column.dtype != "u" else "u1")
    made = np.empty((rows, width) if width else rows, dtype)
    if rows:
        made.fill(column.default)
    return made


def count_set(mask: NDArray[np.bool_]) -> int:
    """How many items of a mask are set."""
    return mask.tobytes().count(1)


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
