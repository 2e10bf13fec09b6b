"""Bounds on what all machines of a process keep together and can make again: rows spelled out, tables for walks.

A row of Llama-3 takes 16 KB, and a definition has some thirty that its texts come by; a server with a thousand
definitions would hold half a gigabyte. Those that added none for the longest time let go of theirs, and put them
together again when they are asked for, some microseconds each. What kernels need to walk an automaton with a stack is
100 KB, and nobody walks one whose texts are known: those that began to walk first let go, and lay it out again in
some hundred microseconds.
"""

from __future__ import annotations

from typing import Protocol
from weakref import ref

from ...system.locks import Lock, Rank

#: Bytes of rows of all machines of a process; and of room for tables, of which a third is written as a rule.
MOST_BYTES, MOST_ARENA_BYTES = 96 << 20, 48 << 20


class Holder(Protocol):
    """What keeps something that it can make again."""

    def let_go(self) -> None:
        """Forget it. Any thread may call this at any time; no lock is held."""


class SharedBound:
    """Who keeps how many bytes; the one that added some last comes last.

    Parameters
    ----------
    most:
        Bytes of all of them. Past that they let go until three quarters are left.
    keeps_last:
        The one that added some last keeps it, however much it is: it is about to be used.
    """

    def __init__(self, most: int, *, keeps_last: bool = False) -> None:
        self.most = most
        self._keeps_last = keeps_last
        self._held: dict[int, tuple[ref[Holder], int]] = {}
        self._lock = Lock(Rank.LEAF)
        #: Bytes of all of them together, with those of holders that are gone and were not missed yet.
        self.total = 0

    def note(self, holder: Holder, nbytes: int) -> None:
        """A holder keeps so many bytes from now on."""
        with self._lock:
            known, before = self._held.pop(id(holder), (None, 0))  # or that of one that is gone
            self._held[id(holder)] = known if known is not None and known() is holder else ref(holder), nbytes
            self.total += nbytes - before
            least = self._least() if self.total > self.most else []
        for each in least:
            each.let_go()

    def _least(self) -> list[Holder]:
        """Those that are to let go of what they keep."""
        found = []
        for key, (holder, nbytes) in list(self._held.items())[: len(self._held) - self._keeps_last]:
            if 4 * self.total <= 3 * self.most:
                break
            del self._held[key]
            self.total -= nbytes
            alive = holder()
            if alive is not None:
                found.append(alive)
        return found


#: Those of this process.
DENSE_ROWS, ARENAS = SharedBound(MOST_BYTES), SharedBound(MOST_ARENA_BYTES, keeps_last=True)
