"""The spellings of finitely many numbers: each as JSON writers write it, no trailing zeros."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from ....budget import Meter

#: Where Python begins to write floats with an exponent; JavaScript begins farther out.
_LARGE, _SMALL = 16, -5


def plain_digits(value: Decimal) -> int:
    """How many digits it takes to write a number without an exponent, about."""
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(value.adjusted(), 0) + max(-exponent, 0) + 2


def spellings(integers: Iterable[Decimal], floats: Iterable[Decimal], meter: Meter) -> list[str]:
    """Of ``integers`` without a fraction; of ``floats`` with a fraction or an exponent."""
    texts: list[str] = []
    size = 0
    for number, write in [(v, _integer) for v in integers] + [(v, _float) for v in floats]:
        size += plain_digits(number)
        meter.check_states(size, "spelling numbers", "List fewer or shorter numbers, or use bounds and multipleOf")
        texts += write(number)
    return texts


def _integer(value: Decimal) -> Iterator[str]:
    yield f"{value:.0f}" if value else "0"


def _float(value: Decimal) -> Iterator[str]:
    sign = "-" if value < 0 else ""
    whole, _, fraction = f"{value.copy_abs():f}".partition(".")
    yield f"{sign}{whole}.{fraction.rstrip('0') or '0'}"
    if _has_exponent(value):
        power = value.adjusted()
        digits = (whole + fraction).strip("0")
        mantissa = sign + digits[0] + ("." + digits[1:] if digits[1:] else "")
        for mark in "e", "E":
            yield f"{mantissa}{mark}{power}"
            yield f"{mantissa}{mark}{power:+03}"


def _has_exponent(value: Decimal) -> bool:
    """Whether JSON writers may write a float with an exponent."""
    return bool(value) and not _SMALL < value.adjusted() < _LARGE
