"""`ValueSet`: a persistent set of values, each as bytes, in order: a treap (Seidel and Aragon 1996).

Priorities are hashes of the values, which Python salts, so the tree's shape follows from what is in it and nobody can
choose a deep one. To add a value copies the path to it: a set and the one before it share all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeAlias

#: A set; None for the empty one.
Values: TypeAlias = "ValueSet | None"


class ValuesAsked(Protocol):
    """What is asked of values."""

    @property
    def longest(self) -> int:
        """No member is longer."""

    def __contains__(self, value: bytes) -> bool: ...

    def has_prefix(self, prefix: bytes) -> bool:
        """Whether some member begins with a prefix."""

    def following(self, prefix: bytes) -> Iterator[int]:
        """The bytes that follow a prefix in members, ascending."""

    def count(self, prefix: bytes) -> int:
        """How many members begin with a prefix, which has no byte 0xFF at its end."""


class ValueSet:
    """A set that is not empty. It never changes; `with_value` makes another one."""

    __slots__ = ("_left", "_longest", "_right", "_size", "_value")

    def __init__(self, value: bytes, left: Values = None, right: Values = None) -> None:
        self._value, self._left, self._right = value, left, right
        self._longest: int = max(len(value), left._longest if left else 0, right._longest if right else 0)

        self._size: int = 1 + (left._size if left else 0) + (right._size if right else 0)

    def __len__(self) -> int:
        return self._size

    @property
    def longest(self) -> int:
        """The length of the longest value."""
        return self._longest

    def __contains__(self, value: bytes) -> bool:
        return self.at_least(value) == value

    def __iter__(self) -> Iterator[bytes]:
        value = self.at_least(b"")
        while value is not None:
            yield value
            value = self.at_least(value + b"\0")

    def at_least(self, value: bytes) -> bytes | None:
        """The first member that is not below a value; None where there is none."""
        found: bytes | None = None
        here: Values = self
        while here is not None:
            if here._value < value:
                here = here._right
            else:
                found, here = here._value, here._left
        return found

    def has_prefix(self, prefix: bytes) -> bool:
        """Whether some member begins with a prefix."""
        found = self.at_least(prefix)
        return found is not None and found.startswith(prefix)

    def count(self, prefix: bytes) -> int:
        """How many members begin with a prefix, which has no byte 0xFF at its end."""
        return self._below(prefix[:-1] + bytes((prefix[-1] + 1,))) - self._below(prefix)

    def _below(self, value: bytes) -> int:
        found = 0
        here: Values = self
        while here is not None:
            if here._value < value:
                found += 1 + (here._left._size if here._left else 0)
                here = here._right
            else:
                here = here._left
        return found

    def following(self, prefix: bytes) -> Iterator[int]:
        """The bytes that follow a prefix in members, ascending."""
        found = self.at_least(prefix + b"\0")
        while found is not None and found.startswith(prefix):
            byte = found[len(prefix)]
            yield byte
            found = self.at_least(prefix + bytes((byte + 1,))) if byte < 0xFF else None

    def _split(self, value: bytes) -> tuple[Values, Values]:
        """The members below a value that is none, and those above it."""
        if self._value < value:
            below, above = self._right._split(value) if self._right else (None, None)
            return ValueSet(self._value, self._left, below), above
        below, above = self._left._split(value) if self._left else (None, None)
        return below, ValueSet(self._value, above, self._right)

    def _with_new(self, value: bytes) -> ValueSet:
        if (hash(value), value) > (hash(self._value), self._value):
            return ValueSet(value, *self._split(value))
        child = self._left if value < self._value else self._right
        child = child._with_new(value) if child is not None else ValueSet(value)
        if value < self._value:
            return ValueSet(self._value, child, self._right)
        return ValueSet(self._value, self._left, child)


def with_value(values: Values, value: bytes) -> ValueSet:
    """A set and one more value; the same set where it is in it."""
    if values is None:
        return ValueSet(value)
    return values if value in values else values._with_new(value)
