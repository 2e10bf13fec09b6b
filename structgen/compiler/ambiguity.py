"""The check that a text can't be read in ever more ways at once, the longer it gets.

What a step costs grows with the stacks that its threads stand on. Most definitions need one; where alternatives begin
alike there are a few, and however deep values nest, those of one level are told apart by as many stacks as there are
states (see `structgen.runtime.stacks`). Not so in a palindrome, where each letter may be the middle one: the stacks
are as many as letters. No algorithm decides that for all grammars, as none decides ambiguity. So growth is looked
for: from the start along the bytes that make most stacks, then round and round along what came last. What grows past
`MOST_STACKS` is refused, with the text that shows it. What is not found is followed all the same, at a cost that is
polynomial in the text.

In JSON all frames of one level were pushed by the few bytes that open it, so there is no growth with the text.
"""

from __future__ import annotations

from random import Random

from ..budget import Meter
from ..errors import UnsupportedError
from ..runtime.pushdown import PushdownMachine
from ..runtime.stacks import Fork, Thread
from ..runtime.tables import byte_classes
from .pushdown import Program
from .pushdown_tables import state_order

#: Stacks of all threads of a text, at most.
MOST_STACKS = 1 << 10

#: Walks, bytes of each, the share of bytes that are chosen at random in each walk more, and the most for a period.
_WALKS, _BYTES, _RANDOM, _PERIOD = 4, 128, 0.15, 12

#: So many stacks at the end of a walk make it worth going round.
_SUSPICIOUS = 16

_DOING = "looking for texts that can be read in ever more ways"


def check_ambiguity(machine: PushdownMachine, program: Program, meter: Meter) -> None:
    """Raise `UnsupportedError` where a text is found whose stacks grow past `MOST_STACKS`."""
    if machine.tables.is_deterministic():
        return
    search = _Search(machine, meter)
    for number in range(_WALKS):
        text, threads = search.walk(Random(number), number * _RANDOM)
        if search.size(threads) >= _SUSPICIOUS:
            text, threads = search.go_round(text, threads)
        if search.size(threads) > MOST_STACKS:
            widest = max((thread for thread in threads), key=lambda thread: search.size((thread,)))
            name = program.names[state_order(program)[widest[0]]] if widest[0] >= 0 else ""
            raise UnsupportedError(
                "a text can be read in ever more ways at once, the longer it gets",
                where=f"{f'rule {name}, ' if name else ''}after {text[:40]!r}{'…' if len(text) > 40 else ''}",
                remedy="Have its alternatives differ in how they begin, or mark where its parts begin and end.",
            )


class _Search:
    def __init__(self, machine: PushdownMachine, meter: Meter) -> None:
        self._machine = machine
        self._meter = meter
        self._class_of = byte_classes(machine.tables.edge_low, machine.tables.edge_high).tolist()

    def size(self, threads: tuple[Thread, ...]) -> int:
        """Stacks that threads stand on, told apart by their topmost frames."""
        return sum(len(stack.members) if isinstance(stack, Fork) else 1 for _, _, stack in threads)

    def walk(self, random: Random, share: float) -> tuple[bytes, tuple[Thread, ...]]:
        """A text along bytes that make most stacks, but for a share of them that are taken at random.

        It begins anew where it has come to its end.
        """
        machine, text = self._machine, bytearray()
        threads = machine.start_threads
        for _ in range(_BYTES):
            self._meter.check_time(_DOING)
            if self.size(threads) > MOST_STACKS:
                break
            by_class = {self._class_of[byte]: byte for byte in machine.candidates(threads)}
            following = {byte: after for byte in by_class.values() if (after := machine.step(threads, byte))}
            if not following:
                if self.size(threads) >= _SUSPICIOUS:
                    break
                text.clear()
                threads = machine.start_threads
                continue
            choices = sorted(following)
            random.shuffle(choices)
            byte = choices[0]
            if random.random() >= share:
                byte = max(choices, key=lambda byte: self.size(following[byte]))
            text.append(byte)
            threads = following[byte]
        return bytes(text), threads

    def go_round(self, text: bytes, threads: tuple[Thread, ...]) -> tuple[bytes, tuple[Thread, ...]]:
        """A text that goes on with its own end as long as each turn makes more stacks."""
        best = text, threads
        for period in range(1, _PERIOD + 1):
            longer, here, before = text, threads, 0
            while before < self.size(here) <= MOST_STACKS:
                self._meter.check_time(_DOING)
                before = self.size(here)
                for byte in text[-period:]:
                    here = self._machine.step(here, byte) if here else ()
                longer += text[-period:]
            if self.size(here) > self.size(best[1]):
                best = longer, here
            if self.size(here) > MOST_STACKS:
                break
        return best
