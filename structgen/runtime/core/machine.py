"""The interface between a `Guide` and the kind of automaton behind its index.

A machine is shared and immutable to its users; a configuration is one sequence's place in it. For a regex a
configuration is an integer, for what has a stack an object (`structgen.runtime.core.interned_machine`). The guide
only keeps configurations and hands them back, so that rollback and fork cost nothing whatever the machine is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Config = Hashable


class Machine(Protocol):
    """One compiled definition over one vocabulary."""

    @property
    def start(self) -> Config:
        """The configuration before the first token."""
        ...

    def advance(self, config: Config, token_id: int) -> Config | None:
        """Where a token leads, ``None`` where it is not allowed.

        That is where its bytes die, or it has none, as EOS ids, and the definition does not name it.
        """
        ...

    def follow_byte(self, config: Config, byte: int) -> Config | None:
        """Where a byte leads, ``None`` where no text goes on with it."""
        ...

    def repeats(self, config: Config) -> bool:
        """Whether texts come by the same configuration so often that its single bytes are worth remembering.

        They do not where something is counted, or where a parser's stack is part of it.
        """
        ...

    def row(self, config: Config) -> NDArray[np.int32]:
        """The bitmask of a configuration, EOS ids included: a read-only ``int32[words]``."""
        ...

    def is_accepting(self, config: Config) -> bool:
        """Whether the text so far is complete."""
        ...

    def byte_state(self, config: Config) -> Any:
        """Where a configuration is between two bytes, for `following` and `may_stop`."""
        ...

    def following(self, byte_state: Any) -> Iterator[tuple[int, Any]]:
        """Each byte that can follow, in no order, and the byte state after it, found as they are asked for."""
        ...

    def after(self, byte_state: Any, byte: int) -> Any:
        """The byte state after a byte, None where it can't follow."""
        ...

    def may_stop(self, byte_state: Any) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token without bytes."""
        ...


class Distances(Protocol):
    """Distances of one machine's configurations. Safe to use from several threads."""

    def distance(self, config: Any) -> int:
        """How many tokens complete a text, the EOS token included."""
        ...

    def farthest(self, config: Any) -> int:
        """The largest distance that a single token leads to, or more."""
        ...

    def near(self, config: Any, left: int) -> int:
        """A number of tokens left above which every token leaves enough of them to complete the text."""
        ...

    def row(self, config: Any, most: int) -> NDArray[np.int32]:
        """The tokens that lead to a distance of at most ``most``, without EOS ids; read-only ``int32[words]``."""
        ...


@dataclass(frozen=True)
class Match:
    """How far a text goes along with a definition.

    Parameters
    ----------
    consumed:
        Bytes of the longest prefix that some complete text continues.
    accepted:
        Whether the whole text is complete.
    can_end:
        Whether the text could end after ``consumed`` bytes.
    expected:
        Inclusive ranges of bytes that can follow there.
    """

    consumed: int
    accepted: bool
    can_end: bool
    expected: tuple[tuple[int, int], ...]


def ranges_of(members: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Numbers, ascending, as inclusive ranges."""
    ranges: list[tuple[int, int]] = []
    for member in members:
        if ranges and ranges[-1][1] == member - 1:
            ranges[-1] = ranges[-1][0], member
        else:
            ranges.append((member, member))
    return tuple(ranges)
