"""`NumberedStepper`: the configurations of a machine that has no store, by number, so that kernels find steps."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import DEAD
from ...system.locks import TABLES, Lock, Rank
from ..core.dense_rows import DENSE_ROWS
from ..core.machine import Config, Stepper
from ..rows.head import Head, longer

#: Configurations, tokens that lead from them, and masks that are kept at hand; past that it is full, but for masks,
#: which are forgotten.
MOST_CONFIGS, MOST_TOKENS, MOST_ROWS = 1 << 15, 1 << 18, 1 << 11

#: Room for configurations to begin with.
_FEW = 1 << 4


class NumberedStepper:
    """The configurations of a machine. For one batch.

    Its head (see `structgen.kernels.store.layout`) has where tokens lead, which configurations an EOS token ends, and
    the addresses of their masks, as far as anybody asked for them: kernels find these, and make none.

    Parameters
    ----------
    machine:
        What steps, and has masks.
    eos_ids:
        The EOS ids.
    """

    #: Kernels make no steps here.
    lock = None

    def __init__(self, machine: Stepper, eos_ids: Collection[int]) -> None:
        self._machine, self._eos_ids = machine, eos_ids
        self._head = head = Head(kernels.STORE_HEAD)
        self.head = head.words
        head.put(kernels.S_CONFIGS, np.zeros((_FEW, kernels.CONFIG), np.int64))
        head.put(kernels.S_TOKENS, np.full(4 * _FEW, -1, np.int64), np.zeros(4 * _FEW, np.int32))
        head.put(kernels.S_DENSE, np.zeros(2 * _FEW, np.int64))
        self._configs: list[Config] = []
        self._numbers: dict[Config, int] = {}
        self._most = MOST_CONFIGS
        self._rows: dict[int, NDArray[np.int32]] = {}  # whose addresses kernels have, by their identities
        self._lock = Lock(Rank.LEAF)  # for `let_go`
        self.start = self.number(machine.start)

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self._configs)

    def is_full(self) -> bool:
        """Whether it is time for another one."""
        return len(self._configs) >= self._most or int(self.head[kernels.N_TOKENS]) >= MOST_TOKENS

    def number(self, config: Config) -> int:
        """The number of a configuration of the machine."""
        found = self._numbers.get(config)
        if found is None:
            found = len(self._configs)
            if found == len(self._head[kernels.S_CONFIGS]):
                lengths = np.zeros(kernels.GROWING_TABLES, np.int64)
                lengths[kernels.T_CONFIGS] = longer(found)
                lengths[kernels.T_DENSE] = 2 * longer(found)
                with self._lock:
                    self._head.lengthen(lengths)
            self._configs.append(config)
            self._numbers[config] = found
            self.head[kernels.N_CONFIGS] = found + 1
        return found

    def config(self, number: int) -> Config:
        """The inverse."""
        return self._configs[number]

    def adopt(self, other: NumberedStepper, configs: list[int]) -> list[int]:
        """The numbers here of configurations of another one of the machine."""
        found = [self.number(other.config(config)) for config in configs]
        self._most = max(self._most, 2 * len(self))  # what histories go back to stays, however much it is
        return found

    def advance(self, config: int, token_id: int) -> int | None:
        """Where a token leads, ``None`` where it is not allowed; kernels find it from now on."""
        here = self._configs[config]
        after = self._machine.advance(here, token_id)
        if after is None and token_id in self._eos_ids and self._machine.is_accepting(here):
            self._head[kernels.S_CONFIGS][config, kernels.C_ACCEPTS] = 1
        target = DEAD if after is None else self.number(after)
        while kernels.put_target(self.head, config, token_id, target):
            self._head.lengthen_tokens()
        return None if after is None else target

    def write_mask(self, config: int, bitmask: NDArray[np.int32]) -> None:
        """Write the mask of a configuration to an ``int32[*]``; kernels do so from now on."""
        row = np.ascontiguousarray(self._machine.row(self._configs[config]), np.int32)
        bitmask[: len(row)] = row[: len(bitmask)]
        bitmask[len(row) :] = 0
        with self._lock:
            is_new = id(row) not in self._rows
            if is_new and len(self._rows) >= MOST_ROWS:
                self._forget_rows()
            self._rows[id(row)] = row
            self._head[kernels.S_DENSE][2 * config : 2 * config + 2] = kernels.address(row), len(row)
        if is_new:
            DENSE_ROWS.note(self, len(self._rows) * row.nbytes)

    def let_go(self) -> None:
        """Forget masks; see `structgen.runtime.core.dense_rows`."""
        with self._lock:
            self._forget_rows()

    def _forget_rows(self) -> None:
        with TABLES:
            self._head[kernels.S_DENSE][:] = 0
        self._rows = {}

    def is_accepting(self, config: int) -> bool:
        """Whether the text so far is complete."""
        return self._machine.is_accepting(self._configs[config])
