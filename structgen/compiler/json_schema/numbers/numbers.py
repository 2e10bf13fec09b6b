"""Sets of JSON numbers, closed under and, or and not.

JSON has one kind of number, but it can be spelled as an integer (``10``) or with a fraction or exponent (``10.0``,
``1e1``), and two things look at the spelling: draft-04, whose ``integer`` does not include ``10.0``, and taste, as
nobody wants ``10.0`` written where an integer is asked for, although later drafts allow it. So a `NumberSet` is
three sets of values:

``plain``
    the values allowed when spelled as integers (only its integers matter),
``other``
    the values allowed when spelled with a fraction or exponent,
``written``
    those of ``other`` that are in fact generated so.

And and or go piece by piece; the complement generates all that it allows. So does a union with a set of endlessly
many numbers that are generated in all of their spellings: whoever began to write one of those may end with 5.0.
Nearly always the three are one object.

``freedom`` says whether ``other`` is written as an author would (`Freedom`).

``digits`` bounds how these values are written. That is no set of values, so it has no complement, and a union only
where both sides have the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import IntEnum
from typing import ClassVar, TypeAlias

from ....budget import Budget, Meter
from ....errors import UnsupportedError
from ....system.properties import cached_property
from ...automata.dfa import Dfa, intersect
from .dfa import number_dfa
from .digits import Digits, power_of_ten
from .interval_set import (
    ALWAYS,
    EVERYTHING,
    EXACT,
    INTEGERS,
    INTEGRAL,
    MAX_DIGITS,
    NEVER,
    NOTHING,
    IndicatorSum,
    IntervalSet,
    Multiples,
)

_Combine: TypeAlias = Callable[[IntervalSet, IntervalSet, Meter], IntervalSet]


class Freedom(IntEnum):
    """How freely numbers with a fraction or an exponent are written.

    ``LISTED``: by an author, value by value; each has one spelling. ``USUAL``: as JSON writers do. ``FREE``: as the
    other numbers of the place are, from which a test has cut them off. What begins like one of those can then end
    like one of these.
    """

    LISTED = 0
    USUAL = 1
    FREE = 2

    def meet(self, other: Freedom) -> Freedom:
        """The freedom of what is in both of two sets."""
        return Freedom.LISTED if Freedom.LISTED in (self, other) else max(self, other)


class NumberSet:
    """A set of JSON numbers. Immutable; equal sets of the same representation are equal and hash alike."""

    ANY: ClassVar[NumberSet]
    #: Integers by value, written without a fraction: ``integer`` from draft-06 on.
    INTEGERS: ClassVar[NumberSet]
    #: Integers by spelling: ``integer`` of draft-04.
    PLAIN_INTEGERS: ClassVar[NumberSet]
    EMPTY: ClassVar[NumberSet]

    __slots__ = ("__dict__", "_dfa", "digits", "freedom", "other", "plain", "written")

    def __init__(
        self,
        plain: IntervalSet,
        other: IntervalSet,
        written: IntervalSet,
        digits: Digits | None = None,
        freedom: Freedom = Freedom.USUAL,
    ) -> None:
        self.plain = plain
        self.other = other
        self.written = written
        self.digits = digits
        self.freedom = freedom
        self._dfa: Dfa | None = None

    # -- what a schema can say -----------------------------------------------------------------------------

    @classmethod
    def literal(cls, values: Iterable[Decimal]) -> NumberSet:
        """Exactly these. Integers are generated with a fraction only where the schema wrote them with one."""
        values = list(values)
        members = sorted(set(values))
        fractional = sorted({value for value in values if not is_plain(value)})
        line = _finite(members)
        return cls(line, line, line if len(members) == len(fractional) else _finite(fractional), None, Freedom.LISTED)

    @classmethod
    def interval(
        cls,
        minimum: Decimal | None = None,
        maximum: Decimal | None = None,
        exclusive_minimum: bool = False,
        exclusive_maximum: bool = False,
    ) -> NumberSet:
        """From ``minimum`` to ``maximum``; None is no bound."""
        if minimum is not None and maximum is not None and minimum >= maximum:
            if minimum > maximum or exclusive_minimum or exclusive_maximum:
                return cls.EMPTY
            return _everywhere(_finite([minimum]))
        low = () if minimum is None else ((minimum, not exclusive_minimum),)
        high = () if maximum is None else ((maximum, not exclusive_maximum),)
        points, at = tuple(p for p, _ in low + high), tuple(closed for _, closed in low + high)
        below: tuple[IndicatorSum, ...] = (NEVER,) if low else ()
        above: tuple[IndicatorSum, ...] = (NEVER,) if high else ()
        return _everywhere(IntervalSet(points, at, (*below, ALWAYS, *above)) if points else EVERYTHING)

    @classmethod
    def multiples(cls, of: Decimal) -> NumberSet:
        """All multiples of a positive number, however they are spelled."""
        if not (of.is_finite() and of > 0):
            raise ValueError(f"multipleOf must be a positive number, got {of}")
        lattice = Multiples.of(of)
        condition = IndicatorSum(0, ((lattice, 1),))
        return _everywhere(IntervalSet((), (), (INTEGRAL if condition == INTEGRAL else condition,)))

    @classmethod
    def integers(cls, least: int, most: int | None, meter: Meter) -> NumberSet:
        """Integers of so many digits at least and at most, and zero, whatever sign they have."""
        beyond = None if most is None else power_of_ten(most)
        below = None if beyond is None else beyond.copy_negate()
        found = cls.interval(below, beyond, True, True).intersect(cls.INTEGERS, meter)
        if least <= 1:
            return found
        first = power_of_ten(least - 1)
        outside = cls.interval(first).union(cls.interval(None, first.copy_negate()), meter)
        return found.intersect(outside.union(cls.literal([Decimal(0)]), meter), meter)

    # -- algebra -------------------------------------------------------------------------------------------

    def intersect(self, other: NumberSet, meter: Meter) -> NumberSet:
        """What is in both sets, within the bounds of digits of both."""
        found = self._pieced(other, IntervalSet.meet, meter, self.freedom.meet(other.freedom))
        if self.digits is None and other.digits is None:
            return found
        bounds = [each for each in (self.digits, other.digits) if each is not None]
        return found.within(bounds[0].meet(bounds[-1]), meter)

    def within(self, digits: Digits, meter: Meter) -> NumberSet:
        """Those of the set that can be written with so many digits, written so; it has no bounds yet."""
        if self.is_empty():
            return self
        found = NumberSet(self.plain, self.other, self.written, digits, self.freedom)
        return found if found.dfa(meter).states else NumberSet.EMPTY

    def with_at_most(self, digits: int) -> NumberSet:
        """Those of the set that can be written with so many digits in all, written so; there must be one."""
        bounds = (self.digits or Digits()).meet(Digits(total=(1, digits)))
        return NumberSet(self.plain, self.other, self.written, bounds, self.freedom)

    def union(self, other: NumberSet, meter: Meter) -> NumberSet:
        """What is in either set. Raises `UnsupportedError` where the two have different bounds of digits."""
        if self.digits != other.digits:
            if self.is_empty() or other.is_any():
                return other
            if other.is_empty() or self.is_any():
                return self
            raise _digits_error("beside numbers without the same ones")
        found = self._pieced(other, IntervalSet.join, meter, max(self.freedom, other.freedom))
        is_canonical = found.written is not found.other
        if is_canonical and any(each.written is each.other and not each.other.is_finite for each in (self, other)):
            found = found.by_value()
        if self.digits is None:
            return found
        return NumberSet(found.plain, found.other, found.written, self.digits, found.freedom)

    def by_value(self) -> NumberSet:
        """The same numbers, in all of their spellings."""
        return NumberSet(self.plain, self.other, self.other, self.digits, Freedom.FREE)

    def _pieced(self, other: NumberSet, combine: _Combine, meter: Meter, freedom: Freedom) -> NumberSet:
        whole = combine(self.other, other.other, meter)
        plain = written = whole
        if not (self.plain is self.other and other.plain is other.other):
            plain = combine(self.plain, other.plain, meter)
        if not (self.written is self.other and other.written is other.other):
            written = combine(self.written, other.written, meter)
        return _shared(plain, whole, written, freedom, meter)

    def complement(self, meter: Meter) -> NumberSet:
        """All other numbers. Raises `UnsupportedError` where there are bounds of digits."""
        if self.digits is not None:
            raise _digits_error("below not, if and the like, nor in oneOf beside other numbers")
        whole = self.other.invert()
        return _shared(whole if self.plain is self.other else self.plain.invert(), whole, whole, Freedom.FREE, meter)

    # -- questions -----------------------------------------------------------------------------------------

    @property
    def is_free(self) -> bool:
        """Whether some number is written in all of its spellings."""
        return self.freedom is Freedom.FREE and not self.written.is_empty

    def __contains__(self, value: object) -> bool:
        """Whether a number is in the set; exponent 0 (``Decimal("1")``, not ``Decimal("1.0")``) is plain spelling."""
        if not isinstance(value, Decimal):
            return False
        return value in (self.plain if is_plain(value) else self.other)

    def is_empty(self) -> bool:
        """Whether nothing is in the set."""
        if self.digits is not None or not self.other.is_empty:
            return False
        return self.plain is self.other or self._plain_integers.is_empty

    def is_any(self) -> bool:
        """Whether every number is in the set."""
        if self.digits is not None or self.other is not EVERYTHING:
            return False
        return self.plain is EVERYTHING or self._plain_integers == INTEGERS

    @cached_property
    def _plain_integers(self) -> IntervalSet:
        return self.plain.meet(INTEGERS, Meter(Budget()))

    @cached_property
    def key(self) -> tuple[IntervalSet | Digits, ...]:
        """The canonical identity, hashable."""
        if self.digits is not None:
            return (self.other, self.written, self._plain_integers, self.digits)
        if self.is_free and self.other is not EVERYTHING:
            return (self.other, self.written, self._plain_integers, EVERYTHING)
        if self.plain is self.other:
            return (self.other,) if self.written is self.other else (self.other, self.written)
        return (self.other, self.written, self._plain_integers)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NumberSet) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"NumberSet{self.key}"

    def values(self, limit: int) -> list[Decimal] | None:
        """All members, ascending, if there are at most ``limit`` of them (and finding them is cheap), else None.

        None also where there are bounds of digits, however many can be written.
        """
        if self.digits is not None:
            return None
        meter = Meter(Budget())
        members = self.other.members(limit, meter)
        if members is None or self.plain is self.other:
            return None if members is None else [_as_plain(value) for value in members]
        plain = self._plain_integers.members(limit, meter)
        if plain is None:
            return None
        merged = sorted({*(_as_plain(value) for value in plain), *members})
        return merged if len(merged) <= limit else None

    # -- spellings -----------------------------------------------------------------------------------------

    def dfa(self, meter: Meter) -> Dfa:
        """The minimal automaton of the members' spellings (see ``docs/guide/json_numbers.md``), made once.

        Raises `BudgetExceededError`.
        """
        if self._dfa is None:
            self._dfa = self._spelled(meter)
        return self._dfa

    def _spelled(self, meter: Meter) -> Dfa:
        written = self.written
        if written is not self.other and self.plain is not self.other:  # never leave a value without any spelling
            written = written.join(self.other.meet(self.plain.invert(), meter), meter)
        found = number_dfa(self.plain, written, meter, free=self.is_free)
        return found if self.digits is None else intersect(found, self.digits.dfa(meter), meter)


def is_plain(value: Decimal) -> bool:
    """Whether a number, as it was read, is spelled as an integer."""
    return value.as_tuple().exponent == 0


def _as_plain(value: Decimal) -> Decimal:
    """The same number, spelled as an integer if it is one."""
    whole = value == value.to_integral_value() and value.adjusted() < MAX_DIGITS
    return value.quantize(Decimal(1), context=EXACT) if whole else value


def _digits_error(where: str) -> UnsupportedError:
    return UnsupportedError(
        f"bounds of digits (maxDigitsInteger and the like) are no set of values, and are not honoured {where}",
        remedy="Use minimum, maximum and multipleOf there.",
    )


def _finite(members: list[Decimal]) -> IntervalSet:
    """Exactly these values, ascending and distinct."""
    return IntervalSet(tuple(members), (True,) * len(members), (NEVER,) * (len(members) + 1)) if members else NOTHING


def _everywhere(line: IntervalSet) -> NumberSet:
    return NumberSet(line, line, line)


def _shared(plain: IntervalSet, other: IntervalSet, written: IntervalSet, freedom: Freedom, meter: Meter) -> NumberSet:
    """A set whose pieces are one object where they say the same."""
    if plain is not other and (plain == other or plain.meet(INTEGERS, meter) == other.meet(INTEGERS, meter)):
        plain = other
    written = other if written is not other and written == other else written
    return NumberSet(plain, other, written, None, freedom)


NumberSet.ANY = _everywhere(EVERYTHING)
NumberSet.EMPTY = _everywhere(NOTHING)
NumberSet.INTEGERS = NumberSet(INTEGERS, INTEGERS, NOTHING)
NumberSet.PLAIN_INTEGERS = NumberSet(INTEGERS, NOTHING, NOTHING)
