"""`DistinctStore`: a store whose configurations know what items and names have been, where they must differ.

A configuration of it is either one of the automaton, by its threads alone, outside all such arrays and objects; or one
that stands *apart*: it has the threads of another one, and there is a tuple of `structgen.runtime.pushdown.distinct.
containers.Place` with what else is known. Kernels find where tokens lead from either, and write masks. They step from
the former, unless a token has a bracket; all other steps are Python's, and so is which tokens a mask lacks.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....kernels import DEAD
from ....vocabulary.vocabulary import Vocabulary
from ...rows.bitmask import pack
from ..stacks import Thread
from ..store.configuration import StoredConfiguration
from ..store.store import Automaton, ConfigurationStore
from .containers import OPEN_BRACE, OPEN_BRACKET, Place
from .places import BRACKET


class DistinctAutomaton(Automaton, Protocol):
    """What a store needs of a `structgen.runtime.pushdown.distinct.machine.DistinctMachine`."""

    def over_token(self, places: tuple[Place, ...], token_id: int) -> tuple[Place, ...]:
        """The places behind a token, measured as a step; none where it is not allowed."""

    def refused(self, places: tuple[Place, ...], mask: NDArray[np.int32]) -> NDArray[np.int32]:
        """The tokens of a mask that are not allowed at some places, ``int32[*]``, ascending; measured as a step."""


class DistinctStore(ConfigurationStore):
    """Configurations of one automaton whose items or names must differ, by number. Safe to use from several threads.

    Parameters
    ----------
    machine:
        The automaton over its vocabulary.
    """

    machine: DistinctAutomaton

    def __init__(self, machine: DistinctAutomaton) -> None:
        super().__init__(machine)
        self._places: dict[int, tuple[Place, ...]] = {}  # of configurations that stand apart
        self._numbers: dict[tuple[Place, ...], int] = {}  # the inverse
        self._refused: dict[int, NDArray[np.int32]] = {}  # whose addresses kernels have
        self._head.put(kernels.S_REFUSED, np.zeros(2 * len(self._head[kernels.S_CONFIGS]), np.int64))
        self._head.put(kernels.S_APART, _with_brackets(machine.vocabulary))

    def places(self, config: int) -> tuple[Place, ...]:
        """What is known of a configuration, one place at least."""
        return self._places.get(config) or ((StoredConfiguration(self, config), None),)

    def number(self, places: tuple[Place, ...]) -> int:
        """The configuration of some places of this store, one at least."""
        (config, seen), *others = places
        if seen is None and not others:
            return config.number
        with self.lock:
            found = self._numbers.get(places)
            if found is None:
                found = self._apart(places)
                self._places[found] = places  # first: an interrupt may come behind each
                self._numbers[places] = found
        return found

    def _apart(self, places: tuple[Place, ...]) -> int:
        """A new configuration with the threads of some places; the lock is held."""
        (config, _), *others = places
        like = config.number
        if others:
            like = self.keep([row for each, _ in places for row in self.rows_of(each.number)])
        while (number := kernels.stand_apart(self._words, like)) < 0:
            self._provide(number)
        return int(number)

    # -- steps -----------------------------------------------------------------------------------------

    def _step_beyond(self, config: int, token_id: int) -> int:
        if config not in self._places and not BRACKET.search(self.vocabulary.token(token_id) or b""):
            return super()._step_beyond(config, token_id)
        after = self.machine.over_token(self.places(config), token_id)
        return self.number(after) if after else DEAD

    # -- masks -----------------------------------------------------------------------------------------

    def write_slowly(self, config: int, bitmask: NDArray[np.int32], status: int) -> None:
        """See `Stepper`."""
        if status == kernels.NOT_REFUSED:
            status = kernels.write_whole_mask(self._words, config, bitmask)
        if status:
            super().write_slowly(config, bitmask, status)
        ids = self._refused.get(config)
        if ids is None:
            ids = self._refuse(config, self.machine.refused(self.places(config), bitmask))
        without(bitmask, ids[ids >> 5 < len(bitmask)])

    def _refuse(self, config: int, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """Have kernels know which tokens a mask lacks; those that they know if somebody else was sooner."""
        with self.lock:
            found = self._refused.setdefault(config, ids)
            kernels.put_refused(self._words, config, kernels.address(found) if len(found) else 1, len(found))
        return found

    # -- room, and what kernels don't do ---------------------------------------------------------------

    def threads(self, config: int) -> tuple[Thread, ...]:
        """The threads of a configuration, as the reference stepper has them."""
        places = self._places.get(config)
        if places is None:
            return super().threads(config)
        return tuple(dict.fromkeys([thread for place, _ in places for thread in place.threads]))

    def adopt(self, other: ConfigurationStore, configs: NDArray[np.int32]) -> NDArray[np.int32]:
        """The numbers here of configurations of another store of the automaton; numbers below 0 stay."""
        if other is self:
            return configs
        assert isinstance(other, DistinctStore)
        theirs = [other.places(config) if config >= 0 else () for config in configs.tolist()]
        numbers = [config.number for places in theirs for config, _ in places]
        own = iter(super().adopt(other, np.array(numbers, np.int32)).tolist())
        found = [tuple([(StoredConfiguration(self, next(own)), seen) for _, seen in places]) for places in theirs]
        moved = [self.number(places) if places else -1 for places in found]
        self._most_configs = max(self._most_configs, 2 * len(self))
        return np.array(moved, np.int32)


def _with_brackets(vocabulary: Vocabulary) -> NDArray[np.int32]:
    """The tokens that have a bracket, as a row; remembered."""
    found: NDArray[np.int32] | None = vocabulary.for_walks.get("brackets")
    if found is None:
        at = np.flatnonzero((vocabulary.blob == OPEN_BRACKET) | (vocabulary.blob == OPEN_BRACE))
        have = np.zeros(vocabulary.size, np.bool_)
        have[np.searchsorted(vocabulary.offsets, at, "right") - 1] = True
        found = vocabulary.for_walks["brackets"] = pack(have)
    return found


def without(row: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
    """Take tokens out of a row."""
    np.bitwise_and.at(row.view(np.uint32), ids >> 5, ~(np.uint32(1) << (ids & 31).astype(np.uint32)))
