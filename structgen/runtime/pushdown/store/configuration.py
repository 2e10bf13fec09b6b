"""`StoredConfiguration`: a configuration of a store as a value by itself, for code that keeps some for long."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..stacks import Thread
    from .store import ConfigurationStore


class StoredConfiguration(NamedTuple):
    """A configuration.

    Parameters
    ----------
    store:
        The store that has it.
    number:
        Its number there.
    """

    store: ConfigurationStore
    number: int

    def __repr__(self) -> str:
        return self.store.explain(self.number)

    @property
    def threads(self) -> tuple[Thread, ...]:
        """Its threads, as the reference stepper has them."""
        return self.store.threads(self.number)
