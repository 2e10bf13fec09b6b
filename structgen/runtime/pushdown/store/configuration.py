"""`StoredConfiguration`: a configuration of a store as a value by itself, for code that keeps some for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..stacks import Thread
    from .store import ConfigurationStore


class StoredConfiguration:
    """A configuration.

    Parameters
    ----------
    store:
        The store that has it.
    number:
        Its number there.
    """

    __slots__ = ("number", "store")

    def __init__(self, store: ConfigurationStore, number: int) -> None:
        self.store, self.number = store, number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredConfiguration) and other.number == self.number and other.store is self.store

    def __hash__(self) -> int:
        return hash((id(self.store), self.number))

    def __repr__(self) -> str:
        return self.store.explain(self.number)

    @property
    def threads(self) -> tuple[Thread, ...]:
        """Its threads, as the reference stepper has them."""
        return self.store.threads(self.number)
