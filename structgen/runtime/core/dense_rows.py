"""A bound on the rows that all machines of a process keep spelled out, ready to be copied.

A row of Llama-3 takes 16 KB, and a definition has some thirty that its texts come by; a server with a thousand
definitions would hold half a gigabyte. Those that added none for the longest time let go of theirs, and put them
together again when they are asked for, some microseconds each.
"""

from __future__ import annotations

from typing import Protocol
from weakref import ref

from ...system.locks import Lock, Rank

#: Bytes of rows of all machines of a process. Past that they let go until three quarters are left.
MOST_BYTES = 128 << 20


class RowHolder(Protocol):
    """A machine that keeps rows spelled out."""

    def let_go_of_rows(self) -> None:
        """Forget them. Any thread may call this at any time; no lock is held."""


class DenseRows:
    """Which machines keep how many bytes of rows; the one that added some last comes last."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[ref[RowHolder], int]] = {}
        self._lock = Lock(Rank.LEAF)
        #: Bytes of all of them together, with those of machines that are gone and were not missed yet.
        self.total = 0

    def note(self, holder: RowHolder, nbytes: int) -> None:
        """A machine keeps so many bytes from now on."""
        with self._lock:
            _, before = self._held.pop(id(holder), (None, 0))  # or that of one that is gone
            self._held[id(holder)] = ref(holder), nbytes
            self.total += nbytes - before
            least = self._least() if self.total > MOST_BYTES else []
        for each in least:
            each.let_go_of_rows()

    def _least(self) -> list[RowHolder]:
        """Those that are to let go of their rows."""
        found = []
        for key, (holder, nbytes) in list(self._held.items()):
            if 4 * self.total <= 3 * MOST_BYTES:
                break
            del self._held[key]
            self.total -= nbytes
            alive = holder()
            if alive is not None:
                found.append(alive)
        return found


#: Those of this process.
DENSE_ROWS = DenseRows()
