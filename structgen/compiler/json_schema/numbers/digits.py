"""Bounds on the digits that numbers are written with, as outlines-core's schemas and ``max_digits`` have them."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ....budget import Meter
from ...automata.dfa import Dfa, intersect
from ...patterns.lower import language
from ...patterns.parser import parse

#: So many digits at least, and at most; None for any number.
Bounds = tuple[int, int | None]


class Digits(NamedTuple):
    """Bounds on the digits before the point, of the fraction and of the exponent, each where there is such a part.

    A zero before the point is within any bounds. Numbers need neither a fraction nor an exponent. ``total`` bounds
    all digits together, that zero among them.
    """

    whole: Bounds = (1, None)
    fraction: Bounds = (1, None)
    exponent: Bounds = (1, None)
    total: Bounds = (1, None)

    def meet(self, other: Digits) -> Digits:
        """What is within both."""
        return Digits(*map(_narrower, self, other))

    def dfa(self, meter: Meter) -> Dfa:
        """The automaton of the numbers, of any value, that are written so. Raises `BudgetExceededError`."""
        whole = "0" if _is_empty(self.whole) else f"(?:0|[1-9]{_repeat(self.whole, less=1)})"
        fraction = "" if _is_empty(self.fraction) else rf"(?:\.{_repeat(self.fraction)})?"
        exponent = "" if _is_empty(self.exponent) else f"(?:[Ee][+-]?{_repeat(self.exponent)})?"
        found = language(parse(f"-?{whole}{fraction}{exponent}"), meter, count=False)
        most = self.total[1]
        if most is None:
            return found
        return intersect(found, language(parse(rf"(?:[-+.Ee]*[0-9]){{1,{most}}}"), meter, count=False), meter)


def _narrower(left: Bounds, right: Bounds) -> Bounds:
    most = [high for _, high in (left, right) if high is not None]
    return max(left[0], right[0], 1), min(most, default=None)


def _is_empty(bounds: Bounds) -> bool:
    least, most = bounds
    return most is not None and most < max(least, 1)


def _repeat(bounds: Bounds, less: int = 0) -> str:
    least, most = bounds
    return f"[0-9]{{{max(least, 1) - less},{'' if most is None else most - less}}}"


def power_of_ten(exponent: int) -> Decimal:
    """1 with so many zeros."""
    return Decimal((0, (1,) + (0,) * exponent, 0))
