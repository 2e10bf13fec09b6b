"""A machine's configurations as a deterministic automaton: for what has no productions, or several for one text."""

from __future__ import annotations

from collections.abc import Iterator

from ..budget import Meter
from ..runtime.core.machine import ByteState, Config, Machine, Productions, Symbol
from .languages import READABLE, Pump

_DOING = "looking through configurations"


class Configurations:
    """Configurations between two bytes, by number. The start is 0.

    Parameters
    ----------
    machine:
        What to follow.
    meter:
        Bounds the work.
    """

    def __init__(self, machine: Machine, meter: Meter) -> None:
        self._machine, self._meter = machine, meter
        self._start = machine.byte_state(machine.start)
        self._states: list[ByteState] = [self._start]
        self._numbers: dict[ByteState, int] = {self._start: 0}
        self._configs: dict[ByteState, Config] = {self._start: machine.start}

    def productions(self, symbol: Symbol | None = None) -> tuple[Symbol, Productions]:
        """A configuration's number, with 0, and the moves to others: as `CompiledMachine.productions`."""
        number, _ = symbol or (0, 0)
        self._meter.check_time(_DOING)
        by_target: dict[int, bytearray] = {}
        here = self._states[number]
        for byte, after in self._following(here):
            target = self._numbers.setdefault(after, len(self._states))
            if target == len(self._states):
                self._states.append(after)
            by_target.setdefault(target, bytearray()).append(byte)
        moves = [(bytes(data), ((target, 0),)) for target, data in by_target.items()]
        return (number, 0), Productions(self._ends(here), moves)

    def _following(self, state: ByteState) -> Iterator[tuple[int, ByteState]]:
        """Each byte that can follow, and the byte state after it."""
        for byte, after in self._machine.following(state):
            if after not in self._configs:
                self._configs[after] = self._machine.follow_byte(self._configs[state], byte)
            yield byte, after

    def _ends(self, state: ByteState) -> bool:
        return self._machine.is_accepting(self._configs[state])

    def pump(self) -> Pump | None:
        """A cycle: the language is infinite, as each configuration can be completed. None without any.

        Nearer ones first, where a stack may only grow on the way to others. Raises `BudgetExceededError`.
        """
        before: dict[ByteState, tuple[ByteState, int]] = {self._start: (None, -1)}
        for here in (queue := [self._start]):
            self._meter.check_time(_DOING)
            for byte, after in self._sorted(here):
                if after not in before:
                    before[after] = here, byte
                    queue.append(after)
                elif (again := self._from(before, after, here)) is not None:
                    prefix = self._from(before, self._start, after) or b""
                    return Pump(prefix, again + bytes([byte]), b"", b"", self.ending(after))
        return None

    @staticmethod
    def _from(before: dict[ByteState, tuple[ByteState, int]], first: ByteState, last: ByteState) -> bytes | None:
        """The bytes between two configurations, None where the first is not on the way to the last."""
        found = bytearray()
        while last != first:
            last, byte = before[last]
            if byte < 0:
                return None
            found.append(byte)
        return bytes(reversed(found))

    def _sorted(self, state: ByteState) -> Iterator[tuple[int, ByteState]]:
        return iter(sorted(self._following(state), key=lambda pair: READABLE[pair[0]]))

    def ending(self, state: ByteState) -> bytes:
        """A shortest text that completes a configuration. Raises `BudgetExceededError` where it takes too long."""
        before: dict[ByteState, tuple[ByteState, int]] = {state: (None, -1)}
        for here in (queue := [state]):
            self._meter.check_time(_DOING)
            if self._ends(here):
                found = bytearray()
                while before[here][1] >= 0:
                    here, byte = before[here]
                    found.append(byte)
                return bytes(reversed(found))
            for byte, after in self._sorted(here):
                if after not in before:
                    before[after] = here, byte
                    queue.append(after)
        raise self._meter.out_of_time(_DOING)

    def ending_of(self, number: int) -> bytes:
        """`ending` for a configuration by its number."""
        return self.ending(self._states[number])

    def shortest(self) -> bytes:
        """A shortest text. Raises `BudgetExceededError` where none is found in time."""
        return self.ending(self._start)
