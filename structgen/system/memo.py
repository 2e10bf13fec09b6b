"""`Memo`: a dictionary with a bound, for what can be worked out again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import TypeVar

from .properties import cached_property
from .types import Foreign

_set = dict.__setitem__

K = TypeVar("K")
V = TypeVar("V")


def first(entries: dict[K, V], count: int) -> dict[K, V]:
    """The entries that a dictionary had when it had so many."""
    return dict(islice(entries.items(), count))


def shorten(entries: dict[K, V], most: int) -> None:
    """Let go of the oldest entries of a dictionary, an eighth, where it has more than a bound.

    Half of 32,768 would take one step 4 ms.

    For what is looked up at every step: Python looks faster into its own dictionaries than into a `Memo`.
    """
    size = len(entries)  # once: others may shorten it meanwhile
    if size > most:
        count = size - most + most // 8
        try:
            oldest = list(islice(entries, count))
        except RuntimeError:  # without the GIL others may add to it meanwhile, but not while a copy is made of it
            oldest = list(entries.copy())[:count]  # a list alone is only made of a dictionary's own class at once
        for key in oldest:
            entries.pop(key, None)


class Memo(dict[K, V]):
    """A dictionary that lets go of its oldest entries when it grows beyond a bound.

    Only ``memo[key] = value`` looks at the bound. Several threads may use it.

    Parameters
    ----------
    most:
        Entries, or what they weigh together.
    weigh:
        What a value weighs, bytes as a rule; None for 1.
    """

    __slots__ = ("_most", "_weigh", "_weight")

    def __init__(self, most: int, weigh: Callable[[V], int] | None = None) -> None:
        self._most = most  # the dictionary is made already
        self._weigh = weigh
        self._weight = 0  # at least that of all values, for some were replaced

    def __setitem__(self, key: K, value: V) -> None:
        _set(self, key, value)
        weigh = self._weigh
        if weigh is None:
            if len(self) > self._most:
                shorten(self, self._most)
            return
        self._weight += weigh(value)
        if self._weight > self._most:
            self._make_room(weigh)

    def _make_room(self, weigh: Callable[[V], int]) -> None:
        weights = {key: weigh(value) for key, value in self.copy().items()}
        total = sum(weights.values())
        for key, weight in weights.items() if total > self._most else ():
            if 2 * total <= self._most:
                break
            self.pop(key, None)
            total -= weight
        self._weight = total

    def clear(self) -> None:
        """Let go of everything."""
        super().clear()
        self._weight = 0


def memo(most: int) -> Foreign:
    """An attribute that is a `Memo`, which each object makes on first use."""
    return cached_property(lambda _: Memo(most))
