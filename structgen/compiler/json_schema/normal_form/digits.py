"""Numbers of which there are endlessly many spellings, with a bound on their digits: ``max_digits``."""

from __future__ import annotations

from bisect import bisect_left

from ....budget import Meter
from ..strings.lengths import text_widths
from .shapes import Value


def with_at_most(digits: int, value: Value, meter: Meter) -> Value:
    """The value with numbers of so many digits, or as many as the shortest has, unless they have few spellings."""
    numbers = value.numbers
    shortest, longest = (0, 0) if numbers is None else text_widths(numbers.dfa(meter), meter)
    if numbers is None or longest is not None:
        return value

    def has(most: int) -> bool:
        return numbers.with_at_most(most).dfa(meter).states > 0

    longer = range(digits, shortest)  # there is one with as many as the shortest has characters
    return value._replace(numbers=numbers.with_at_most(digits + bisect_left(longer, True, key=has)))
