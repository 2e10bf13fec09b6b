"""The check that a text can't be read in ever more ways at once, the longer it gets.

What a step costs grows with the stacks that its threads stand on. Most definitions need one; where alternatives
begin alike there are a few, and however deep values nest, those of one level are told apart by as many stacks as
there are states (see `structgen.runtime.pushdown.stacks`). Not so in a palindrome, where each letter may be the
middle one: the stacks are as many as letters. No algorithm decides that for all grammars, as none decides ambiguity.
So growth is looked for: walks from the start take the bytes that make most stacks; from each set of states that they
come to, short pieces are repeated as long as that makes more stacks. What grows by more than `MOST_STACKS` is
refused, with the text that shows it. What is not found is followed all the same, at a cost that is polynomial in the
text.

In JSON all frames of one level were pushed by the few bytes that open it, so there is no growth with the text. Nor is
there in structural tags but within a grammar, which is looked at by itself: no format contains itself, so there are
as many stacks as ways through the formats. Grammars take no tokens as such; walks are of bytes alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from ...budget import Meter
from ...errors import UnsupportedError
from ...runtime.automaton.tables import byte_classes
from ...runtime.pushdown.fill import lower_neighbours
from ...runtime.pushdown.machine import PushdownMachine
from ...runtime.pushdown.stacks import Fork, Thread
from ...vocabulary.vocabulary import Vocabulary
from .program import Program
from .tables import state_order, to_tables

#: By so many stacks a text that repeats a piece may grow.
MOST_STACKS = 1 << 10

#: Walks, bytes of each, bytes after which one ends that comes to nothing new, and the share of bytes that are chosen
#: at random in each walk more.
_WALKS, _BYTES, _NOTHING_NEW, _RANDOM = 4, 128, 16, 0.15

#: Bytes of the longest piece that is repeated, and turns after which it is no longer a question of time.
_PIECE, _TURNS = 8, 64

#: Threads that are moved at most, but for pieces that have been repeated so often.
_MOST_WORK = 100_000

_DOING = "looking for texts that can be read in ever more ways"


def check_program(program: Program, vocabulary: Vocabulary, meter: Meter) -> None:
    """`check_ambiguity` for a program that is no machine yet."""
    check_ambiguity(PushdownMachine(to_tables(program, meter), vocabulary), program, meter)


def check_ambiguity(machine: PushdownMachine, program: Program, meter: Meter) -> None:
    """Raise `UnsupportedError` where a text is found whose stacks grow past all bounds."""
    if machine.tables.is_deterministic(lower_neighbours(machine.tables, meter)):
        return
    search = _Search(machine, meter)
    for number in range(_WALKS):
        for text, threads, piece in search.places(Random(number), number * _RANDOM):
            turns, after = search.go_round(threads, piece)
            if size_of(after) - size_of(threads) > MOST_STACKS:
                widest = max(after, key=lambda thread: size_of((thread,)))
                raise UnsupportedError(
                    "a text can be read in ever more ways at once, the longer it gets",
                    where=f"rule {program.names[state_order(program, meter)[widest[0]]]}, "
                    f"after {text[:40]!r} and {turns} times {piece!r}",
                    remedy="Have its alternatives differ in how they begin, or mark where its parts begin and end.",
                )


def size_of(threads: tuple[Thread, ...]) -> int:
    """Stacks that threads stand on, told apart by their topmost frames."""
    return sum(len(stack.members) if isinstance(stack, Fork) else 1 for _, _, stack in threads)


class _Search:
    """Walks of one machine, along one byte of each class."""

    def __init__(self, machine: PushdownMachine, meter: Meter) -> None:
        self._machine = machine
        self._meter = meter
        self._class_of = byte_classes(machine.tables.edge_low, machine.tables.edge_high).tolist()
        self._seen: set[frozenset[int]] = set()
        self._work = 0

    def _step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        self._meter.check_time(_DOING)
        self._work += len(threads)
        return self._machine.step(threads, byte) if threads else ()

    def places(self, random: Random, share: float) -> Iterator[tuple[bytes, tuple[Thread, ...], bytes]]:
        """Beginnings of a walk at which other states are on top than anywhere before, each with pieces to repeat.

        Bytes that make most stacks are taken, but for a share of them at random; it begins anew at the end of a text.
        """
        text = bytearray()
        threads = self._machine.start_threads
        found: list[tuple[int, tuple[Thread, ...], list[int]]] = []
        new = 0
        for done in range(_BYTES):
            if self._work > _MOST_WORK or done - new > _NOTHING_NEW:
                break
            by_class = {self._class_of[byte]: byte for byte in self._machine.candidates(threads)}
            following = {byte: after for byte in by_class.values() if (after := self._step(threads, byte))}
            tops = frozenset(state for state, _, _ in threads)
            if tops not in self._seen:
                self._seen.add(tops)
                new = done
                found.append((len(text), threads, list(following)))
            if not following:
                yield from self._pieces(bytes(text), found)
                text.clear()
                found.clear()
                threads = self._machine.start_threads
                continue
            choices = sorted(following)
            random.shuffle(choices)
            byte = choices[0]
            if random.random() >= share:
                byte = max(choices, key=lambda byte: size_of(following[byte]))
            text.append(byte)
            threads = following[byte]
        yield from self._pieces(bytes(text), found)

    def _pieces(
        self, text: bytes, found: list[tuple[int, tuple[Thread, ...], list[int]]]
    ) -> Iterator[tuple[bytes, tuple[Thread, ...], bytes]]:
        for at, threads, following in found:
            for piece in [*(bytes([byte]) for byte in following), *(text[at : at + n] for n in range(2, _PIECE + 1))]:
                yield text[:at], threads, piece

    def go_round(self, threads: tuple[Thread, ...], piece: bytes) -> tuple[int, tuple[Thread, ...]]:
        """Repeat a piece as long as two turns make more stacks; how often, and where that leads."""
        sizes = [size_of(threads)]
        while sizes[-1] - sizes[0] <= MOST_STACKS and (len(sizes) < 5 or sizes[-1] > sizes[-3]):
            if not threads or (self._work > _MOST_WORK and len(sizes) < _TURNS):
                break
            for byte in piece:
                threads = self._step(threads, byte)
            sizes.append(size_of(threads))
        return len(sizes) - 1, threads
