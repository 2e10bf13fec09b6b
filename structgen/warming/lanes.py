"""Where work runs: any `concurrent.futures.Executor`, which may break, and what replaces it then."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from ..index_store import vocabulary_key
from ..system.memo import Memo
from .plan import Batch
from .worker import CacheAddress, Reply, Request, SentTask, answer, compile_into, this_process

if TYPE_CHECKING:
    from typing import ParamSpec

    from ..cache.cache import Cache
    from ..vocabulary.vocabulary import Vocabulary
    from .options import WarmOptions

    P = ParamSpec("P")

T = TypeVar("T")


class Serial(Executor):
    """Does at once, in the thread that asks, what it is given. An interrupt goes through to that thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A future that is done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Lane:
    """Hands tasks to an executor.

    Parameters
    ----------
    executor:
        One, which is the caller's to close; or what makes one, again where it broke; None for this thread.
    cache:
        Where indexes go.
    options:
        How they are compiled, and whether workers send the values instead of writing them.
    """

    def __init__(self, executor: Executor | Callable[[], Executor] | None, cache: Cache, options: WarmOptions) -> None:
        self._make = None if isinstance(executor, Executor) else (executor or Serial)
        self._executor = executor if isinstance(executor, Executor) else (executor or Serial)()
        self._cache, self._options = cache, options
        self._address = None if options.hand_back else CacheAddress.of(cache)
        self._packed: Memo[str, bytes] = Memo(2)  # vocabularies, by their identities
        self._sent: set[str] = set()  # vocabularies that went, or that the cache has
        self._run, self._numbers = uuid.uuid4().hex, count()
        self._abandoned = threading.Event()

    @property
    def is_here(self) -> bool:
        """Whether tasks run in this process, with the caller's own vocabularies and cache."""
        return isinstance(self._executor, Serial | ThreadPoolExecutor)

    @property
    def at_a_time(self) -> int:
        """Batches that it takes before the first one is done; in this thread none would be told before that."""
        return 1 if isinstance(self._executor, Serial) else self._options.in_flight

    def submit(self, batch: Batch, *, with_vocabulary: bool = False) -> Future[Reply]:
        """Have tasks done. Raises what the executor does: `BrokenExecutor` and `RuntimeError` as a rule."""
        if self.is_here:
            return self._executor.submit(self._compile, batch)
        vocabulary = batch[0].vocabulary
        identity = vocabulary.identity
        if identity not in self._sent:
            self._sent.add(identity)
            # Where nobody finds it, whoever comes first has none; the others say so.
            with_vocabulary = with_vocabulary or not self._publish(vocabulary)
        tasks = tuple([SentTask(each.definition, each.key) for each in batch])
        request = Request(
            self._run, next(self._numbers), this_process(), tasks, vocabulary.fingerprint, identity, self._options,
            self._address, self._bytes_of(vocabulary) if with_vocabulary else None,
        )  # fmt: skip
        return self._executor.submit(answer, request)

    def _compile(self, batch: Batch) -> Reply:
        return Reply(
            [
                compile_into(each.definition, each.key, each.vocabulary, self._cache, self._options, self._abandoned)
                for each in batch
            ]
        )

    def _publish(self, vocabulary: Vocabulary) -> bool:
        """Put a vocabulary where workers look for it: one who hands it to hundreds of them keeps them waiting."""
        key = vocabulary_key(vocabulary.identity)
        if self._address is None:
            return False
        return self._cache.put(key, self._bytes_of(vocabulary), label="a vocabulary", kind="vocabulary")

    def _bytes_of(self, vocabulary: Vocabulary) -> bytes:
        packed = self._packed.get(vocabulary.identity)
        if packed is None:
            packed = self._packed[vocabulary.identity] = vocabulary.to_bytes()
        return packed

    def renew(self) -> bool:
        """Take another executor in place of one that broke; False where there is none that works."""
        if self._make is None:
            return False
        with suppress(Exception):
            self._executor.shutdown(wait=False)
        try:
            self._executor = self._make()
            self._executor.submit(int).result()
        except Exception:
            return False
        self._sent.clear()
        return True

    def close(self) -> None:
        """Close the executor, if it was made here; nothing runs any more."""
        if self._make is not None:
            self._executor.shutdown()

    def abandon(self) -> None:
        """After an interrupt: let go of what was not begun, and have the compiles of threads end."""
        self._abandoned.set()
        if self._make is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
