"""`PipelinedCache`: a worker's cache, whose object store is asked ahead of it and written behind it.

A request takes as long as a small definition does. So a worker asks for all that it was handed at once, and compiles
the next definition while the one before is on its way to the store; it says of each that it is kept when it has
arrived there. An index is in the folder no sooner: what a worker was at that died is in neither, and is done again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..cache.cache import Cache
from ..cache.entry import Tag, check_key

if TYPE_CHECKING:
    from ..cache.remote.values import ObjectStore

#: Values of a thread that are on their way to the store together.
WRITTEN_AT_ONCE = 8

#: Bytes of them past which the thread waits.
_MOST_BYTES = 64 << 20

NOT_KEPT, NOT_STORED = "compiled, but the cache did not keep it", "the object store did not take it"


class _OfThread(threading.local):
    """What a thread has put: by whom it is written, and what became of it."""

    def __init__(self) -> None:
        self.writers: ThreadPoolExecutor | None = None
        self.writes: list[Future[str]] = []


class PipelinedCache(Cache):
    """A cache whose object store is written by other threads, for whoever is within `pipeline`. As `Cache` else."""

    def __init__(self, directory: str, *, size_limit: int, timeout: float, store: ObjectStore | None) -> None:
        super().__init__(directory, size_limit=size_limit, timeout=timeout, store=store)
        self._of_thread = _OfThread()
        self._underway: dict[str, bytes] = {}  # indexes that the folder does not have yet

    @contextmanager
    def pipeline(self, keys: Iterable[str]) -> Iterator[None]:
        """Ask the store for keys, together; what this thread puts until the end, others write to the store."""
        if self.remote is None or self.remote.settings.writes != "now":
            yield
            return
        self.prefetch(keys, patient=False)
        with ThreadPoolExecutor(WRITTEN_AT_ONCE, "structgen-publisher") as writers:
            self._of_thread.writers = writers
            try:
                yield
            finally:
                self._of_thread.writers = None

    def put(self, key: str, value: bytes, *, label: str = "", kind: str = "", rank: int = 0) -> bool:
        """As `Cache.put`; within `pipeline` True as soon as somebody is to write the value: `take` has the rest."""
        mine = self._of_thread
        if mine.writers is None:
            return super().put(key, value, label=label, kind=kind, rank=rank)
        check_key(key)
        if sum(map(len, self._underway.values())) > _MOST_BYTES:
            wait(mine.writes)
        tag = Tag(label, kind, rank)
        # What indexes share is looked for by the next definition; nobody takes it for all of an index.
        is_index = kind != "shared"
        if is_index:
            self._underway[key] = value
        is_kept = is_index or self._keep(key, value, tag)
        mine.writes.append(mine.writers.submit(self._publish, key, value, tag, is_index))
        return is_kept

    def _publish(self, key: str, value: bytes, tag: Tag, is_index: bool) -> str:
        """Write a value to the store, and an index to the folder then, whatever the store does."""
        try:
            is_stored = self.remote is None or self.remote.put(key, value, tag)
            is_kept = not is_index or self._keep(key, value, tag)
        finally:
            if self._underway.get(key) is value:
                self._underway.pop(key, None)
        return (NOT_KEPT if not is_kept else "") if is_stored else NOT_STORED

    def take(self) -> list[Future[str]]:
        """Of each value that this thread has put since it asked last: what hinders that it is kept, if anything."""
        taken, self._of_thread.writes = self._of_thread.writes, []
        return taken

    def size_of(self, key: object) -> int | None:
        """As `Cache.size_of`; what is on its way counts."""
        found = self._underway.get(key) if isinstance(key, str) else None
        return super().size_of(key) if found is None else len(found)
