"""How many tokens a text still needs, at least, and machines that keep to a number of tokens.

The *distance* of a configuration is the number of tokens up to the end of the text, the EOS token included. A guide
with ``max_tokens`` allows what the mask allows and what leads where the distance is at most what is then left. So
there is always a token that leads one closer, and the text is complete in time.

Distances of automata are exact (`structgen.runtime.automaton.distances`). Those of machines with a stack are upper
bounds: a text of so many tokens is known (`structgen.runtime.pushdown.distances.token_distances`).

Far from the end no token can lead too far away. Then masks and steps are the ordinary ones: a configuration carries
the number of tokens left from which on it is worth looking (`Distances.near`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...errors import TokenBudgetError
from ...system.arguments import integer
from ..core.machine import ByteState, Config, Machine

if TYPE_CHECKING:
    from .index import Index


def checked(index: Index, max_tokens: int) -> int:
    """A number of tokens that suffices for some text of an index. Raises `TokenBudgetError`, `UnsupportedError`."""
    number, needed = integer(max_tokens, "max_tokens", TokenBudgetError), index.shortest()
    if number < needed:
        raise TokenBudgetError(
            f"max_tokens is {number}, but a text of this definition takes {needed} tokens, the EOS token included",
            remedy=f"Use max_tokens={needed} or more.",
        )
    return number


#: A configuration, how many tokens are left, and from how many left on the distance is to be looked at.
LimitedConfig: TypeAlias = tuple[Config, int, int]

#: As many tokens as no text has.
_ANY = 1 << 62


class LimitedMachine(Machine):
    """A `structgen.runtime.core.machine.Machine` whose texts are complete within a number of tokens.

    Its configurations hold what is left, so that rollback gives it back, and forks have each their own.

    Parameters
    ----------
    index:
        What to move over.
    max_tokens:
        The tokens of a text at most, the EOS token included; None where only those that `at` made are gone on from.

    Raises
    ------
    TokenBudgetError
        Where that is too few for any text that is known.
    UnsupportedError
        Where no bound on the distance is known.
    """

    def __init__(self, index: Index, max_tokens: int | None = None) -> None:
        self.index = index
        self.machine: Machine = index.machine
        self.distances = index.distances
        self._advance, self._row = self.machine.advance, self.machine.row
        self._eos_row = index.eos_row
        self._rows = index.limited_rows
        self._start = self.at(self.machine.start, _ANY if max_tokens is None else checked(index, max_tokens))

    def at(self, config: Config, left: int) -> LimitedConfig:
        """A configuration with so many tokens left."""
        return config, left, self.distances.near(config, left)

    @property
    def start(self) -> LimitedConfig:
        """The configuration before the first token."""
        return self._start

    def following(self, byte_state: ByteState) -> Iterator[tuple[int, ByteState]]:
        """As the index's machine: between two bytes tokens are not counted."""
        return self.machine.following(byte_state)

    def after(self, byte_state: ByteState, byte: int) -> ByteState | None:
        """As the index's machine."""
        return self.machine.after(byte_state, byte)

    def may_stop(self, byte_state: ByteState) -> bool:
        """As the index's machine."""
        return self.machine.may_stop(byte_state)

    def advance(self, limited: LimitedConfig, token_id: int) -> LimitedConfig | None:
        """Where a token leads; ``None`` where it is not allowed, or leads too far from the end."""
        config, left, near = limited
        target = self._advance(config, token_id)
        if target is None:
            return None
        left -= 1
        if left > near:
            return target, left, near
        if left < near and self.distances.distance(target) > left:
            return None
        return self.at(target, left)

    def follow_byte(self, limited: LimitedConfig, byte: int) -> None:
        """No configuration is within a token."""
        return

    def byte_state(self, config: LimitedConfig) -> ByteState:
        """Where a configuration is between two bytes."""
        return self.machine.byte_state(config[0])

    def row(self, limited: LimitedConfig) -> NDArray[np.int32]:
        """The bitmask of a configuration, EOS ids included: a read-only ``int32[words]``."""
        config, left, near = limited
        if left > near:
            return self._row(config)
        if self.distances.farthest(config) < left:
            return self._row(config)
        key = config, left
        row = self._rows.get(key)
        if row is None:
            row = self.distances.row(config, left - 1)
            if self.machine.is_accepting(config):
                row = row | self._eos_row
                row.flags.writeable = False
            self._rows[key] = row
        return row

    def write_mask(self, limited: LimitedConfig, bitmask: NDArray[np.int32]) -> None:
        """Write the bitmask of a configuration to a contiguous ``int32[*]``; as `Stepper.write_mask`."""
        config, left, near = limited
        if left > near:
            self.machine.write_mask(config, bitmask)
        else:
            super().write_mask(limited, bitmask)

    def is_accepting(self, limited: LimitedConfig) -> bool:
        """Whether the text so far is complete."""
        return self.machine.is_accepting(limited[0])

    def temperature(self, limited: LimitedConfig) -> float | None:
        """The temperature that the definition says the next token is sampled at."""
        return self.machine.temperature(limited[0])
