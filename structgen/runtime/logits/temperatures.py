"""The temperature of a grammar's rule, where an engine samples at one of its own."""

from __future__ import annotations

from ...errors import ArgumentError
from ...system.types import Foreign


def checked_temperature(temperature: float) -> float:
    """The temperature of an engine. Raises `ArgumentError` for one that is no positive number."""
    is_number = isinstance(temperature, int | float) and not isinstance(temperature, bool)
    if not is_number or not 0 < temperature < float("inf"):
        raise ArgumentError(f"temperature is a positive number, got {temperature!r}")
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
    if wanted:
        scores *= given / wanted
    else:
        scores[scores < 0] = -float("inf")
