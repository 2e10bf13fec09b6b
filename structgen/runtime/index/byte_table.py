"""`ByteTable`: the configurations of one index as states of an automaton over bytes, which grows as texts are read.

It is a lazy DFA (as in RE2): configurations get numbers when they are first met, a transition is worked out by the
machine when it is first taken, and a kernel follows those that are known, for a whole text in one call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.locks import Lock, Rank
from ..core.machine import Config, Machine

#: Configurations, a kilobyte each: to begin with, and at most.
_FEW, _MOST = 1 << 6, 1 << 14

_REFUSED, _UNKNOWN = -1, -2


class ByteTable:
    """Numbered configurations of one machine. Safe to use from several threads.

    Parameters
    ----------
    machine:
        What is followed.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._configs: list[Config] = []
        self._numbers: dict[Config, int] = {}
        self._targets = np.full((_FEW, 256), _UNKNOWN, np.int32)
        self._lock = Lock(Rank.LEAF)

    @property
    def is_full(self) -> bool:
        """Whether no configuration gets a number any more."""
        return len(self._configs) >= _MOST

    def number(self, config: Config) -> int:
        """The number of a configuration; -1 for one that is not worth a number, or where the table is full."""
        found = self._numbers.get(config, -1)
        if found < 0 and self._machine.repeats(config):
            with self._lock:
                found = self._numbers.get(config, -1)
                if found < 0 and not self.is_full:
                    found = len(self._configs)
                    if found == len(self._targets):
                        self._targets = np.pad(self._targets, ((0, found), (0, 0)), constant_values=_UNKNOWN)
                    self._configs.append(config)
                    self._numbers[config] = found
        return found

    def config(self, number: int) -> Config:
        """What a number stands for."""
        return self._configs[number]

    def follow(self, number: int, data: bytes) -> NDArray[np.int32]:
        """The numbers behind the bytes of a text, up to one that is refused, or leads to what has no number."""
        text = np.frombuffer(data, np.uint8)
        found, count = np.empty(len(text), np.int32), 0
        while True:
            count += kernels.follow_bytes(self._targets, number, text[count:], found[count:])
            if count == len(text):
                return found
            number = int(found[count - 1]) if count else number
            if not self._learn(number, data[count]):
                return found[:count]

    def _learn(self, number: int, byte: int) -> bool:
        """Work out where a byte leads. False where it is refused, or leads to what has no number."""
        if self._targets[number, byte] == _REFUSED:
            return False
        after = self._machine.follow_byte(self._configs[number], byte)
        target = _REFUSED if after is None else self.number(after)
        with self._lock:
            if after is None or target >= 0:
                self._targets[number, byte] = target
        return target >= 0
