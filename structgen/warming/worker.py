"""Definitions, compiled into the cache: in this process, or in another one that is sent all it needs.

To another process a definition goes as the small value that it is, with others; a vocabulary by its identity, by
which the cache has its bytes, in structgen's own format, which are sent only where a worker said that it lacks them;
an index never, but as bytes where worker and caller have no folder and no store in common.
"""

from __future__ import annotations

import atexit
import dataclasses
import gc
import os
import threading
import time
import uuid
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..cache.in_memory import InMemory
from ..errors import FormatError, StructgenError
from ..index_store import vocabulary_key
from ..system.memo import Memo
from ..vocabulary.vocabulary import Vocabulary
from .pipeline import NOT_KEPT, NOT_STORED, READ_ONLY, PipelinedCache
from .values import Outcome, Status
from .watch import Watch

if TYPE_CHECKING:
    from ..budget import Cancel
    from ..cache.cache import Cache
    from ..cache.entry import Tag
    from ..cache.remote.values import ObjectStore
    from ..definitions import Definition
    from ..runtime.index.index import Index
    from .options import WarmOptions

#: Vocabularies that a worker holds: tasks come grouped by theirs.
_MOST_VOCABULARIES = 2

#: Seconds after which a worker begins none of what else it was handed: somebody guessed wrong how long it takes.
LONGEST_BATCH = 0.5

#: Nobody else may see the folder of this machine.
_REMEDIES = {
    NOT_KEPT: "See `cache verify`.",
    READ_ONLY: "Name a folder: a bundle keeps nothing.",
    NOT_STORED: "Where the folder is shared, `structgen cache push` writes it.",
}

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

    def open(self) -> PipelinedCache:
        """The cache."""
        return PipelinedCache(self.directory, size_limit=self.size_limit, timeout=self.timeout, store=self.store)


class SentTask(NamedTuple):
    """A task as it is sent: a definition, and the key of its index."""

    definition: Definition
    key: str


@dataclass(frozen=True)
class Request:
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
    identity: str
    options: WarmOptions
    address: CacheAddress | None
    vocabulary: bytes | None = None

    def __dask_tokenize__(self) -> tuple[str, int]:
        """What Dask names its work by: it would hash all that is in it, which took half of the caller's time."""
        return self.run, self.number


class Done(NamedTuple):
    """What became of a task, and the values to be kept."""

    made: Outcome
    values: list[tuple[str, bytes, Tag]]
    is_crash: bool = False


class Reply(NamedTuple):
    """What comes back: what became of the first tasks, and from which process. None: that lacks the vocabulary."""

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
    cancel: Cancel | None = None, *, is_one_of_many: bool = False,
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
            base_rows=not is_one_of_many, cancel=cancel,
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
        made = _not_kept(made, READ_ONLY if cache.is_read_only else NOT_KEPT)
    return Done(made, [])


class _Worker:
    """What a process that works for others keeps from one request to the next; its threads share it."""

    def __init__(self) -> None:
        self._vocabularies: Memo[str, Vocabulary] = Memo(_MOST_VOCABULARIES)
        self._of_thread = threading.local()  # values that are handed back go with the definition they are of
        self._opened: tuple[CacheAddress, str, PipelinedCache] | None = None
        self._watch = Watch()
        self._ends_at_once = False

    def answer(self, request: Request) -> list[Done] | None:
        """What became of the tasks of a request; None where the vocabulary is not here.

        Those that are not begun in time are left: others may have nothing to do.
        """
        patience = None  # the caller's own process, which is a worker of some executors, is not to end
        if request.caller != this_process():
            patience = request.options.patience
            self._end_at_once()
        with self._watch.limit(patience):
            cache = None if request.address is None else self._open(request.address)
            vocabulary = self._vocabulary(request, cache)
            if vocabulary is not None and cache is not None and cache.remote is not None:
                cache.prefetch([item.key for item in request.items], patient=False)
        if vocabulary is None:
            return None
        begun = []
        with cache.pipeline() if cache else nullcontext():
            until = time.monotonic() + LONGEST_BATCH
            for item in request.items:
                with self._watch.limit(patience):
                    begun.append(self._do(item, request, vocabulary, cache))
                if time.monotonic() > until:
                    break
            with self._watch.limit(patience):
                return [_published(done, writes) for done, writes in begun]

    def _end_at_once(self) -> None:
        """Have the end of this process collect no garbage: that took 0.15 s, for which the caller waits."""
        if not self._ends_at_once:
            self._ends_at_once = True
            atexit.register(gc.freeze)

    def _do(
        self, item: SentTask, request: Request, vocabulary: Vocabulary, shared: PipelinedCache | None
    ) -> tuple[Done, list[Future[str]]]:
        """What became of a task, as far as it is known while some of it is on its way to the store."""
        memory = self._memory(request.run)
        memory.discard(item.key)  # asked for again: the answer got lost
        made, _, is_crash = compile_into(
            item.definition, item.key, vocabulary, shared or memory, request.options, is_one_of_many=True
        )
        return Done(made, memory.take(), is_crash), shared.take() if shared else []

    def _vocabulary(self, request: Request, cache: Cache | None) -> Vocabulary | None:
        """That of a request: remembered, sent along, or in the cache."""
        identity = request.identity
        found = self._vocabularies.get(identity)
        if found is None and request.vocabulary is not None:
            found = read_vocabulary(request.vocabulary, identity)
        if found is None and cache is not None:
            found = cache.read(vocabulary_key(identity), lambda buffer: read_vocabulary(buffer, identity))
        if found is not None:
            self._vocabularies[identity] = found
        return found

    def _memory(self, run: str) -> InMemory:
        """Of what was handed back in one run: the caller of another one, or after an interrupt, has none of it."""
        if getattr(self._of_thread, "run", None) != run:
            self._of_thread.run, self._of_thread.memory = run, InMemory()
        memory: InMemory = self._of_thread.memory
        return memory

    def _open(self, address: CacheAddress) -> PipelinedCache:
        opened, here = self._opened, this_process()  # nobody goes on with what a parent's threads were at
        if opened is None or opened[:2] != (address, here):
            opened = self._opened = address, here, address.open()
        return opened[2]


def read_vocabulary(buffer: bytes | memoryview, identity: str) -> Vocabulary:
    """The vocabulary with an identity. Raises `FormatError` where it is another one, or none."""
    found = Vocabulary.from_buffer(buffer, "a vocabulary that was sent")
    if found.identity != identity:
        raise FormatError("this is another vocabulary", where=identity)
    return found


def _published(done: Done, writes: list[Future[str]]) -> Done:
    """What became of a task, when all of it is where it goes."""
    made = done.made
    try:
        hindered = [what for write in writes if (what := write.result())]
    except Exception as error:
        return Done(crashed(error, made.key, made.vocabulary), [], is_crash=True)
    return done._replace(made=_not_kept(made, hindered[0])) if hindered and made.is_kept else done


def _not_kept(made: Outcome, what: str) -> Outcome:
    """A server gets by without a cache; here, keeping the index was the point."""
    return dataclasses.replace(made, status="failed", what=what, remedy=_REMEDIES[what])


_worker = _Worker()


def answer(request: Request) -> Reply:
    """Do what a request says; what goes wrong is said in the reply."""
    try:
        done = _worker.answer(request)
    except Exception as error:
        done = [Done(crashed(error, each.key, request.fingerprint), [], is_crash=True) for each in request.items]
    return Reply(done, this_process())
