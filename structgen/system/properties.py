"""Attributes that are worked out on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """As `functools.cached_property`, without the lock that this has before Python 3.12.

        It would be one for all instances of a class, and stay held in a child that is forked meanwhile. Of threads
        that work the same out at once, all get what the first of them has found.
        """

        def __init__(self, function: Callable[[object], object]) -> None:
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object, owner: type | None = None) -> object:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._function(instance))
