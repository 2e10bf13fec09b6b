"""An executor whose workers share nothing with the caller, and die."""

from __future__ import annotations

import ctypes
import os
import pickle
import random
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field, replace
from multiprocessing import parent_process
from pathlib import Path
from threading import Condition, Thread
from typing import Any

import structgen as sg
from structgen.warming import worker
from structgen.warming.worker import Request


@dataclass(frozen=True)
class Deadly(sg.Regex):
    """A definition that ends every process that was started to work for another one."""

    def canonical(self) -> str:
        if parent_process() is not None:
            os._exit(9)
        return super().canonical()


@dataclass(frozen=True)
class DeadlyOnce(sg.Regex):
    """The first process that works at it ends; those after it find the mark that it left."""

    mark: Path = Path()

    def canonical(self) -> str:
        if parent_process() is not None and not self.mark.exists():
            self.mark.touch()
            os._exit(9)
        return super().canonical()


@dataclass(frozen=True)
class Stuck(sg.Regex):
    """A definition that never ends in a process that works for another one, and lets nothing else run in it."""

    def canonical(self) -> str:
        if parent_process() is not None:
            ctypes.PyDLL(None).pause()  # which keeps the interpreter's lock
        return super().canonical()


@dataclass(frozen=True)
class Gluttonous(sg.Regex):
    """A definition for which no other process's memory suffices."""

    def canonical(self) -> str:
        if parent_process() is not None:
            raise MemoryError
        return super().canonical()


@dataclass
class Fates:
    """What befalls workers, over all executors of a test; and what they saw.

    ``deadly``: patterns of definitions that kill whoever compiles them. ``failing``: those with which a worker
    raises, and how often. ``deaths``: numbers of definitions at which a worker dies that did nothing wrong.
    What it did of the same request before is in the cache then, if that is shared, and its answer is lost.
    """

    deadly: Collection[str] = ()
    failing: dict[str, int] = field(default_factory=dict)
    deaths: Collection[int] = ()
    begun: int = 0
    made: int = 0
    unpacked: list[tuple[int, str]] = field(default_factory=list)  # workers, and vocabularies that they took
    biggest_reply: int = 0
    before: Callable[[], object] | None = None
    """Called before the first request is done."""

    def executor(self, workers: int = 2) -> MortalExecutor:
        self.made += 1
        return MortalExecutor(self, workers)


class MortalExecutor(Executor):
    """Does requests one after another in a thread, as several workers in turn; all that it gets and gives is pickled.

    When one of its workers dies it breaks, as a `ProcessPoolExecutor` does: all it was given is lost.
    """

    def __init__(self, fates: Fates, workers: int) -> None:
        self._fates, self._changed = fates, Condition()
        self._workers = [worker._Worker() for _ in range(workers)]
        self._draw = random.Random(workers)
        self._items: deque[tuple[Future[Any], bytes]] = deque()
        self._is_broken = self._is_shut = False
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with self._changed:
            if self._is_broken:
                raise BrokenExecutor("it broke before")
            future: Future[Any] = Future()
            self._items.append((future, pickle.dumps((fn, args, kwargs))))
            self._changed.notify_all()
            return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._is_shut = True
            if cancel_futures:
                self._items.clear()
            self._changed.notify_all()
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._items or self._is_shut)
                if not self._items:
                    return
                future, data = self._items.popleft()
            try:
                future.set_result(pickle.loads(self._do(data)))
            except BrokenExecutor as error:
                with self._changed:
                    self._is_broken = True
                    for each in (future, *(each for each, _ in self._items)):
                        each.set_exception(error)
                    self._items.clear()
                return
            except Exception as error:
                future.set_exception(error)

    def _do(self, data: bytes) -> bytes:
        fn, args, kwargs = pickle.loads(data)
        worker._worker = self._draw.choice(self._workers)
        if args and isinstance(args[0], Request):
            before, self._fates.before = self._fates.before, None
            if before is not None:
                before()
            self._befall(args[0], fn)
        reply = pickle.dumps(fn(*args, **kwargs))
        self._fates.biggest_reply = max(self._fates.biggest_reply, len(reply))
        return reply

    def _befall(self, request: Request, fn: Callable[..., Any]) -> None:
        fates = self._fates
        for number, item in enumerate(request.items):
            pattern = getattr(item.definition, "pattern", "")
            fates.begun += 1
            is_deadly = pattern in fates.deadly or fates.begun in fates.deaths
            if is_deadly or fates.failing.get(pattern, 0) > 0:
                fn(replace(request, items=request.items[:number]))
                if is_deadly:
                    raise BrokenExecutor("a worker died")
                fates.failing[pattern] -= 1
                raise MemoryError
        if request.vocabulary is not None and request.identity not in worker._worker._vocabularies:
            fates.unpacked.append((self._workers.index(worker._worker), request.fingerprint))
