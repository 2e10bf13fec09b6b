"""`Remote`: the object store of one cache, which may fail in any way and costs no more than a warning.

*Reading.* A look-up waits for the store no longer than it was told, asks nothing while the store fails
(`structgen.cache.remote.breaker`), and does not ask again for what was not there a moment ago. What is not an object
of the key, with the right digest and signature, is rejected: a miss, whose place the next write of that key takes.

*Writing.* An object is created where none is. Where one is, it stays, unless it was rejected or knows fewer rows (a
lower rank): then it is replaced, if it is still that version. So builders need not know of each other, and whatever
comes of a race is one of the values that were written.

*Behind.* Values wait in a queue of so many bytes, which a thread empties (`structgen.system.background`). `close` and
the end of the interpreter wait for it, for one time-out after the last value that was written.
"""

from __future__ import annotations

import atexit
import time
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from ...errors import CacheWarning, FormatError, StoreError, StructgenError
from ...system.background import WorkQueue
from ...system.locks import Lock, Rank, at_fork
from ...system.memo import Memo
from ..entry import Tag
from ..metrics import Counters
from .breaker import Breaker
from .bucket import Bucket, Found
from .calls import Calls
from .objects import LARGEST_HEAD, Header, name_of, pack, read_head, unpack
from .signatures import Keys
from .values import ObjectStore

T = TypeVar("T")

#: Seconds for which an object that was not there, or was rejected, is not asked for again.
ABSENT_SECONDS = 30.0

#: Keys of which that is remembered.
_MOST_KEYS = 10_000

#: Bytes of values that wait to be written.
QUEUE_BYTES = 256 << 20

#: Times that a write looks again where others write and delete the same object.
_ROUNDS = 4


class Waiting(NamedTuple):
    """A value that is to be written."""

    key: str
    value: bytes
    tag: Tag


class Remote:
    """Reads and writes the objects of one store, for any thread.

    Parameters
    ----------
    store:
        Where it is, and how it is used.
    counters:
        Where to count.

    Raises `StoreError` and `ArgumentError` for a store that cannot be named so; nothing is asked of it yet.
    """

    def __init__(self, store: ObjectStore, counters: Counters) -> None:
        self.settings = store
        self.bucket = Bucket(store)
        self.keys = Keys.of(store)
        self._counters = counters
        self._calls = Calls()
        self._reads, self._writes = Breaker(), Breaker()
        self._absent: Memo[str, float] = Memo(_MOST_KEYS)  # until when, by the monotonic clock
        self._rejected: Memo[str, bool] = Memo(_MOST_KEYS)
        self._lock = Lock(Rank.LEAF)  # guards what follows
        self._unsaid: dict[str, str] = {}  # warnings by subject, once each
        self._queue: WorkQueue[tuple[str, int], Waiting] = WorkQueue(
            "structgen-store-writer", self._write_directly, lambda each: len(each.value),
            most=QUEUE_BYTES, patience=store.timeout, dropped=self._note_dropped,
        )  # fmt: skip
        self._is_ending = False
        self._is_given_up = False  # nothing was written since somebody waited for that in vain
        _remotes.add(self)

    # -- reading ---------------------------------------------------------------------------------------

    def fetch(self, key: str, most: int, *, anew: bool = False) -> tuple[Header, bytes] | None:
        """Header and value of a key's object, checked; None where there is none, or none that can be had now.

        Parameters
        ----------
        most:
            Bytes of an object that is loaded.
        anew:
            Ask, and wait, also for what was not there a moment ago: somebody waits for it and nothing else.
        """
        self.say()
        if not anew and time.monotonic() < self._absent.get(key, 0.0):
            return None
        seconds = self.settings.timeout if anew else self.settings.wait
        # A store that lies is not to fill the memory: what the head has no signature for is not loaded.
        is_sound = partial(self._is_as_good, key=key, rank=0)
        get = partial(self.bucket.get, name_of(key), most + LARGEST_HEAD, is_sound)
        try:
            found = self._request(self._reads, seconds, get)
        except StoreError as error:
            self._note("reads", "is not read", error)
            self.say()
            return None
        if found is None:
            self._absent[key] = time.monotonic() + ABSENT_SECONDS
            return None
        if found.nbytes > most + LARGEST_HEAD:
            self._leave(key, FormatError(f"an object has {found.nbytes} bytes, and {most} are the cache's limit"))
            return None
        self._counters.add("store_bytes_read", len(found.data))
        try:
            return unpack(found.data, key, self.keys)
        except FormatError as error:
            self.reject(key, error)
            return None

    def reject(self, key: str, reason: Exception) -> None:
        """Take a key's object for none, and its place when the key is written next."""
        self._rejected[key] = True
        self._leave(key, reason)

    def _leave(self, key: str, reason: Exception) -> None:
        """Take a key's object for none, for a while."""
        self._counters.add("store_rejected")
        self._absent[key] = time.monotonic() + ABSENT_SECONDS
        self._note("objects", "holds what cannot be used", reason)
        self.say()

    # -- writing ---------------------------------------------------------------------------------------

    def put(self, key: str, value: bytes, tag: Tag) -> bool:
        """Write a value, or have it written. False where it was to be written now, and is not in the store."""
        self.say()
        how, waiting = self.settings.writes, Waiting(key, value, tag)
        if how == "never":
            return True
        if how == "now":
            stored = self._guarded(waiting, partial(self._request, self._writes, self.settings.timeout))
            self.say()
            return stored
        if self._is_ending:
            stored = self._write_at_the_end(waiting)
            self.say()
            return stored
        if not self._queue.add((key, tag.rank), waiting):
            self._counters.add("store_dropped")
            self._note("queue", f"is too slow: {QUEUE_BYTES} bytes wait to be written, and what comes is dropped")
        self.say()
        return True

    def write(self, key: str, value: bytes, tag: Tag) -> bool:
        """Write a value now, whatever the settings; True if the store did not have it. Raises `StoreError`."""
        return self.ask(partial(self._store, Waiting(key, value, tag)))

    def ask(self, call: Callable[[], T]) -> T:
        """What a call to the bucket returns, for upkeep. Raises `StoreError`."""
        return self._request(self._writes, self.settings.timeout, call)

    def holds(self, key: str, rank: int) -> bool:
        """Whether the object of a key can stay in place of a value of a rank. Raises `StoreError`."""
        found = self._peek(key)
        return found is not None and self._is_as_good(found.data, found.nbytes, key, rank)

    def kind_of(self, key: str) -> str | None:
        """What the object of a key says that it is; None where that cannot be believed. Raises `StoreError`."""
        found = self._peek(key)
        try:
            return None if found is None else read_head(found.data, key, self.keys)[0].kind
        except FormatError:
            return None

    def _peek(self, key: str) -> Found | None:
        return self.ask(partial(self.bucket.peek, name_of(key), LARGEST_HEAD))

    def close(self) -> None:
        """Wait until the queue is empty, or nothing of it was written for as long as a request may take."""
        self._queue.close()
        self.say()

    def close_for_good(self) -> None:
        """At the end of the interpreter, when no thread begins any more."""
        self._is_ending = True
        self._queue.close_for_good()
        self.say()

    def start_anew(self) -> None:
        """In a child of a fork."""
        self._calls.start_anew()

    def say(self) -> None:
        """Warn of what happened since, in a caller's thread: once of each subject."""
        with self._lock:
            unsaid = [text for text in self._unsaid.values() if text]
            self._unsaid = dict.fromkeys(self._unsaid, "")
        for text in unsaid:
            warnings.warn(CacheWarning(text), stacklevel=4)

    # -- within ----------------------------------------------------------------------------------------

    def _request(self, breaker: Breaker, seconds: float | None, call: Callable[[], T]) -> T:
        """What a request returns, within so many seconds or its own time-out. Raises `StoreError`."""
        if not breaker.admits():
            self._counters.add("store_skipped")
            raise StoreError("it failed a moment ago", where=self.settings.url)
        self._counters.add("store_requests")
        try:
            with self._counters.timed("store_request_seconds"):
                answer = call() if seconds is None else self._calls.within(seconds, call)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust is no `Exception`
            breaker.failed()
            self._counters.add("store_failures")
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{type(error).__name__}: {error}", where=self.settings.url) from error
        breaker.succeeded()
        return answer

    def _write_directly(self, waiting: Waiting) -> bool:
        """In the thread that calls: at the end of the interpreter no other one begins."""
        return self._guarded(waiting, partial(self._request, self._writes, None))

    def _guarded(self, waiting: Waiting, request: Callable[[Callable[[], bool]], bool]) -> bool:
        """Whether the store has a value now; where it fails, that is noted."""
        try:
            request(partial(self._store, waiting))
        except StoreError as error:
            self._counters.add("store_dropped")
            self._note("writes", "is not written", error)
            return False
        return True

    def _store(self, waiting: Waiting) -> bool:
        """Create or replace an object. Returns False where there was one as good. Raises `StoreError`."""
        key, name = waiting.key, name_of(waiting.key)
        data = pack(key, waiting.value, waiting.tag, self.keys)
        for _ in range(_ROUNDS):
            if self.bucket.create(name, data):
                break
            there = self.bucket.peek(name, LARGEST_HEAD)
            if there is None:
                continue  # deleted meanwhile
            if key not in self._rejected and self._is_as_good(there.data, there.nbytes, key, waiting.tag.rank):
                self._counters.add("store_present")
                return False
            if self.bucket.replace(name, data, there.version):
                break
        else:
            raise StoreError("others keep writing and deleting an object", where=name)
        self._is_given_up = False
        self._rejected.pop(key, None)
        self._absent.pop(key, None)
        self._counters.add("store_written")
        self._counters.add("store_bytes_written", len(data))
        return True

    def _is_as_good(self, head: memoryview, nbytes: int, key: str, rank: int) -> bool:
        """Whether an object, by its head and its size, can stay in place of a value."""
        try:
            header, start = read_head(head, key, self.keys)
        except FormatError:
            return False
        return nbytes == start + header.nbytes and header.rank >= rank

    def _write_at_the_end(self, waiting: Waiting) -> bool:
        """The same, unless the store let somebody wait in vain: nobody's process stays for that twice."""
        if self._is_given_up:
            self._note_dropped(1)
            return False
        self._is_given_up = not self._write_directly(waiting)
        return not self._is_given_up

    def _note_dropped(self, count: int) -> None:
        self._is_given_up = True
        if count:
            self._counters.add("store_dropped", count)
            self._note("queue", f"does not answer: {count} values that waited to be written are dropped")

    def _note(self, subject: str, text: str, error: Exception | None = None) -> None:
        what, remedy = "", ""
        if isinstance(error, StructgenError):
            what, remedy = f": {error.what}", error.remedy
        elif error is not None:
            what = f": {type(error).__name__}"
        with self._lock:
            text = f"the store {self.settings.url} {text}{what}. Work goes on without it. {remedy}"
            self._unsaid.setdefault(subject, text.rstrip())


_remotes: weakref.WeakSet[Remote] = weakref.WeakSet()


def _start_anew() -> None:
    for remote in list(_remotes):
        remote.start_anew()


def _close_all() -> None:
    for remote in list(_remotes):
        remote.close_for_good()


at_fork(in_child=_start_anew)
atexit.register(_close_all)
