"""The temperature of a grammar's rule, where an engine samples at one of its own."""

from __future__ import annotations

import numpy as np

from ...errors import ArgumentError
from ...system.arguments import LEAST_TEMPERATURE, MOST_TEMPERATURE, is_temperature
from ...system.types import Foreign


def checked_temperature(temperature: float) -> float:
    """The temperature of an engine. Raises `ArgumentError` for one that is no positive number, or out of bounds."""
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not is_number or not temperature or not is_temperature(temperature):
        raise ArgumentError(
            f"temperature is a number from {LEAST_TEMPERATURE} to {MOST_TEMPERATURE:.0e}, got {temperature!r}"
        )
    return temperature


def temper(scores: Foreign, wanted: float, given: float) -> None:
    """Change scores in place, so that dividing them by one temperature samples at another.

    Parameters
    ----------
    scores:
        ``[width]``, a tensor or an array of floats, masked.
    wanted:
        The temperature to sample at; with 0 the largest scores alone are left.
    given:
        The one that they will be divided by.
    """
    most = scores.max()
    if not most > -float("inf"):
        return
    scores -= most  # or half floats might overflow
    if not wanted:
        scores[scores < 0] = -float("inf")
        return
    factor = given / wanted
    if scores.dtype == np.float16:  # its numbers go from 6e-8 to 65,504, and so must the factor
        factor = min(max(factor, 2.0**-24), 2.0**15)
    scores *= factor
