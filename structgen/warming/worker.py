"""Definitions, compiled into the cache: in this process, or in another one that is sent all it needs.

To another process a definition goes as the small value that it is, with others; a vocabulary by its fingerprint, by
which the cache has its bytes, in structgen's own format, which are sent only where a worker said that it lacks them;
an index never, but as bytes where worker and caller have no folder and no store in common.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..cache.cache import Cache
from ..cache.in_memory import InMemory
from ..errors import FormatError, StructgenError
from ..index_store import vocabulary_key
from ..progress import Progress
from ..system.memo import Memo
from ..vocabulary.vocabulary import Vocabulary
from .values import Outcome, Status
from .watch import Watch

if TYPE_CHECKING:
    from ..cache.entry import Tag
    from ..cache.remote.values import ObjectStore
    from ..definitions import Definition
    from ..runtime.index.index import Index
    from .options import WarmOptions

#: Vocabularies that a worker holds: tasks come grouped by theirs.
_MOST_VOCABULARIES = 2

_LOADED = uuid.uuid4().hex


@dataclass(frozen=True)
class CacheAddress:
    """A cache as another process opens it. An object store is written at once: nothing waits when a worker ends."""

    directory: str
    size_limit: int
    timeout: float
    store: ObjectStore | None

    @classmethod
    def of(cls, cache: Cache) -> CacheAddress:
        """That of a cache."""
        store = None if cache.remote is None else cache.remote.settings
        if store is not None and store.writes == "behind":
            store = dataclasses.replace(store, write="now")
        return cls(str(cache.directory), cache.size_limit, cache.timeout, store)

    def open(self) -> Cache:
        """The cache."""
        return Cache(self.directory, size_limit=self.size_limit, timeout=self.timeout, store=self.store)


class SentTask(NamedTuple):
    """A task as it is sent: a definition, and the key of its index."""

    definition: Definition
    key: str


class Request(NamedTuple):
    """Tasks as they are sent, all of one vocabulary.

    Parameters
    ----------
    run, number:
        Of the caller's call, and of the request in it, so that no two are equal: some executors take what looks the
        same for the same work.
    caller:
        The process that sends it.
    address:
        None where values are to be handed back.
    """

    run: str
    number: int
    caller: str
    items: tuple[SentTask, ...]
    fingerprint: str
    options: WarmOptions
    address: CacheAddress | None
    vocabulary: bytes | None = None


class Done(NamedTuple):
    """What became of a task, and the values to be kept."""

    made: Outcome
    values: list[tuple[str, bytes, Tag]]
    is_crash: bool = False


class Reply(NamedTuple):
    """What comes back: what became of each task, and from which process. None: that process lacks the vocabulary."""

    done: list[Done] | None
    process: str = ""


def this_process() -> str:
    """A name that no other process has, on no machine: forks have the same memory, containers the same numbers."""
    return f"{_LOADED} {os.getpid()}"


def present(index: Index, key: str, nbytes: int, seconds: float, status: Status = "present") -> Outcome:
    """The outcome for an index that the cache has, in so many bytes."""
    return Outcome(
        0, "", index.vocabulary.fingerprint, status, key=key, kind=index.kind, states=index.states,
        rows=index.row_count, nbytes=nbytes, seconds=seconds,
    )  # fmt: skip


def crashed(error: BaseException, key: str, fingerprint: str) -> Outcome:
    """The outcome where something else than structgen's own errors came of a definition, or nothing."""
    what = "memory ran out" if isinstance(error, MemoryError) else f"{type(error).__name__}: {error}"
    return Outcome(0, "", fingerprint, "lost", key=key, what=what)


def compile_into(
    definition: Definition, key: str, vocabulary: Vocabulary, cache: Cache, options: WarmOptions,
    progress: Progress | None, is_one_of_many: bool = False,
) -> Done:  # fmt: skip
    """Compile a definition into a cache, in this process, if it is not there. Raises nothing but interrupts.

    One of many processes takes base rows that are there, and makes none: each would make all of them.
    """
    from ..api import compile

    start = time.perf_counter()
    fingerprint = vocabulary.fingerprint
    try:
        index = compile(
            definition, vocabulary, cache=cache, eager=options.eager, budget=options.budget, threads=options.threads,
            progress=progress, base_rows=not is_one_of_many,
        )  # fmt: skip
    except StructgenError as error:
        failure = Outcome(
            0, "", fingerprint, "failed", key=key, what=error.what, where=error.where, remedy=error.remedy,
            seconds=time.perf_counter() - start,
        )  # fmt: skip
        return Done(failure, [])
    except Exception as error:
        return Done(crashed(error, key, fingerprint), [], is_crash=True)
    seconds, nbytes = time.perf_counter() - start, cache.size_of(key)
    made = present(index, key, nbytes or 0, seconds, "present" if index.origin == "cache" else "compiled")
    if nbytes is None:
        # A server gets by without a cache; here, keeping the index was the point.
        what = "compiled, but the cache did not keep it"
        made = dataclasses.replace(made, status="failed", what=what, remedy="See `cache verify`.")
    return Done(made, [])


class _Worker:
    """What a process that works for others keeps from one request to the next; its threads share it."""

    def __init__(self) -> None:
        self._vocabularies: Memo[str, Vocabulary] = Memo(_MOST_VOCABULARIES)
        self._of_thread = threading.local()  # values that are handed back go with the definition they are of
        self._opened: tuple[CacheAddress, Cache] | None = None
        self._watch = Watch()

    def answer(self, request: Request) -> list[Done] | None:
        """What became of each task of a request; None where the vocabulary is not here."""
        # The caller's own process, which is a worker of some executors, is not to end.
        patience = None if request.caller == this_process() else request.options.patience
        cache = None if request.address is None else self._open(request.address)
        vocabulary = self._vocabulary(request, cache)
        if vocabulary is None:
            return None
        done = []
        for item in request.items:
            with self._watch.limit(patience):
                done.append(self._do(item, request, vocabulary, cache))
        return done

    def _do(self, item: SentTask, request: Request, vocabulary: Vocabulary, shared: Cache | None) -> Done:
        memory = self._memory(request.run)
        memory.discard(item.key)  # asked for again: the answer got lost
        cache = shared or memory
        dropped = cache.metrics().store_dropped
        made, _, is_crash = compile_into(
            item.definition, item.key, vocabulary, cache, request.options, None, is_one_of_many=True
        )
        if made.is_kept and cache.metrics().store_dropped > dropped:
            # Nobody else may see the folder of this machine.
            remedy = "Where the folder is shared, `structgen cache push` writes it."
            made = dataclasses.replace(made, status="failed", what="the object store did not take it", remedy=remedy)
        return Done(made, memory.take(), is_crash)

    def _vocabulary(self, request: Request, cache: Cache | None) -> Vocabulary | None:
        """That of a request: remembered, sent along, or in the cache."""
        fingerprint = request.fingerprint
        found = self._vocabularies.get(fingerprint)
        if found is None and request.vocabulary is not None:
            found = read_vocabulary(request.vocabulary, fingerprint)
        if found is None and cache is not None:
            found = cache.read(vocabulary_key(fingerprint), lambda buffer: read_vocabulary(buffer, fingerprint))
        if found is not None:
            self._vocabularies[fingerprint] = found
        return found

    def _memory(self, run: str) -> InMemory:
        """Of what was handed back in one run: the caller of another one, or after an interrupt, has none of it."""
        if getattr(self._of_thread, "run", None) != run:
            self._of_thread.run, self._of_thread.memory = run, InMemory()
        memory: InMemory = self._of_thread.memory
        return memory

    def _open(self, address: CacheAddress) -> Cache:
        opened = self._opened
        if opened is None or opened[0] != address:
            opened = self._opened = address, address.open()
        return opened[1]


def read_vocabulary(buffer: bytes | memoryview, fingerprint: str) -> Vocabulary:
    """The vocabulary with a fingerprint. Raises `FormatError` where it is another one, or none."""
    found = Vocabulary.from_buffer(buffer, "a vocabulary that was sent")
    if found.fingerprint != fingerprint:
        raise FormatError("this is another vocabulary", where=fingerprint)
    return found


_worker = _Worker()


def answer(request: Request) -> Reply:
    """Do what a request says; what goes wrong is said in the reply."""
    try:
        done = _worker.answer(request)
    except Exception as error:
        done = [Done(crashed(error, each.key, request.fingerprint), [], is_crash=True) for each in request.items]
    return Reply(done, this_process())
