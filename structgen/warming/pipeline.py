"""`PipelinedCache`: a worker's cache, whose object store is asked ahead of it and written behind it.

A request takes as long as a small definition does. So a worker asks for all that it was handed at once, and compiles
the next definition while the one before is on its way to the store; it says of each that it is kept when it has
arrived there. Nothing is in the folder sooner, and no index is anywhere before the rows that it shares with others:
what a worker was at that died is in neither, and is done again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..cache.cache import Cache
from ..cache.entry import SHARED_KINDS, Tag, check_key

if TYPE_CHECKING:
    from ..cache.remote.values import ObjectStore

#: Values of a thread that are on their way to the store together.
WRITTEN_AT_ONCE = 8

#: Bytes of them past which the thread waits.
_MOST_BYTES = 64 << 20

NOT_KEPT, NOT_STORED = "compiled, but the cache did not keep it", "the object store did not take it"
READ_ONLY = "compiled, but this cache is only read"


class _Pipeline:
    """What a thread puts: by whom it is written, and what becomes of it."""

    def __init__(self, writers: ThreadPoolExecutor) -> None:
        self.writers = writers
        self.writes: list[Future[str]] = []
        self.shared: list[Future[str]] = []  # those of what indexes share
        self.taken = 0  # of the writes


class _OfThread(threading.local):
    pipeline: _Pipeline | None = None


class PipelinedCache(Cache):
    """A cache whose object store is written by other threads, for whoever is within `pipeline`. As `Cache` else."""

    def __init__(self, directory: str, *, size_limit: int, timeout: float, store: ObjectStore | None) -> None:
        super().__init__(directory, size_limit=size_limit, timeout=timeout, store=store)
        self._of_thread = _OfThread()
        self._underway: dict[str, tuple[bytes, Tag]] = {}  # what the folder does not have yet

    @contextmanager
    def pipeline(self) -> Iterator[None]:
        """Have others write to the store what this thread puts until the end, which waits for that."""
        if self.remote is None or self.remote.settings.writes != "now":
            yield
            return
        with ThreadPoolExecutor(WRITTEN_AT_ONCE, "structgen-publisher") as writers:
            self._of_thread.pipeline = _Pipeline(writers)
            try:
                yield
            finally:
                self._of_thread.pipeline = None

    def put(self, key: str, value: bytes, *, label: str = "", kind: str = "", rank: int = 0) -> bool:
        """As `Cache.put`; within `pipeline` True as soon as somebody is to write the value: `take` has the rest."""
        mine = self._of_thread.pipeline
        if mine is None:
            return super().put(key, value, label=label, kind=kind, rank=rank)
        check_key(key)
        if sum(len(each) for each, _ in self._underway.copy().values()) > _MOST_BYTES:
            wait(mine.writes)
        tag = Tag(label, kind, rank)
        self._underway[key] = value, tag
        is_shared = kind in SHARED_KINDS
        write = self._begin(mine.writers, key, value, tag, [] if is_shared else mine.shared.copy())
        mine.writes.append(write)
        if is_shared:
            mine.shared.append(write)
        return True

    def _begin(
        self, writers: ThreadPoolExecutor, key: str, value: bytes, tag: Tag, before: list[Future[str]]
    ) -> Future[str]:
        try:
            return writers.submit(self._publish, key, value, tag, before)
        except RuntimeError:  # there are no more threads
            written: Future[str] = Future()
            written.set_result(self._publish(key, value, tag, before))
            return written

    def _publish(self, key: str, value: bytes, tag: Tag, before: list[Future[str]]) -> str:
        """Write a value to the store when others were written, and to the folder then, whatever the store does."""
        try:
            wait(before)  # they began sooner: none of them waits for a thread that this one has
            is_stored = self.remote is None or self.remote.put(key, value, tag)
            is_kept = self._keep(key, value, tag)
        finally:
            if self._underway.get(key, (None,))[0] is value:
                self._underway.pop(key, None)
        return (NOT_KEPT if not is_kept else "") if is_stored else NOT_STORED

    def take(self) -> list[Future[str]]:
        """Of each value that this thread has put since it asked last: what hinders that it is kept, if anything."""
        mine = self._of_thread.pipeline
        if mine is None:
            return []
        begin, mine.taken = mine.taken, len(mine.writes)
        return mine.writes[begin:]

    def size_of(self, key: object) -> int | None:
        """As `Cache.size_of`; what is on its way counts."""
        found = self._underway.get(key) if isinstance(key, str) else None
        return super().size_of(key) if found is None else len(found[0])

    def _look_up(self, key: str, *, names_itself: bool = False) -> memoryview | None:
        """The same, and what indexes share that is on its way. An index is not taken for kept before it is."""
        found = self._underway.get(key)
        if found is not None and found[1].kind in SHARED_KINDS:
            return memoryview(found[0])
        return super()._look_up(key, names_itself=names_itself)
