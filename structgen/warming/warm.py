"""`warm`: many definitions into one cache, on whatever runs functions.

*Who broke it.* When a worker dies, some executors say of all that they were given that it failed. All those are
suspects then, and are tried one at a time on an executor of their own: one that breaks it alone did it. So a
definition that costs workers their lives costs no other one its place.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TYPE_CHECKING

from ..cache.audit import check_value
from ..errors import ArgumentError, FormatError
from ..index_store import fetch
from ..progress import Progress, silent
from ..vocabulary.vocabulary import Vocabulary
from .lanes import Lane
from .plan import Task, plan
from .values import Outcome, Report
from .worker import Reply, Terms, crashed, present

if TYPE_CHECKING:
    from ..budget import Budget
    from ..cache.cache import Cache


def warm(
    definitions: Iterable[object],
    vocabularies: Vocabulary | Iterable[Vocabulary],
    cache: Cache,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    progress: Progress | None = None,
    eager: bool = True,
    budget: Budget | None = None,
    threads: int | None = None,
    shard: tuple[int, int] | None = None,
    retries: int = 1,
    in_flight: int = 64,
    hand_back: bool = False,
) -> Report:
    """Compile what a cache lacks of many definitions, for one vocabulary or several. See docs/guide/fleet.md.

    What is there, in the folder or in the object store behind it, is not compiled again. An interrupt keeps what is
    done, for each index is kept when it is finished.

    Parameters
    ----------
    definitions:
        What `structgen.compile` takes, or `structgen.definitions.loading.NamedDefinition`.
    vocabularies:
        Each definition is compiled for each of them.
    cache:
        Where the indexes go.
    executor:
        A `concurrent.futures.Executor`: threads, processes, a cluster's; or a function that makes one, which is
        called again where workers died and took it with them, and whose executors are closed. None: this thread, one
        definition after another. Threads share the cache and the vocabularies that are given; of all others it is
        assumed that their workers are other processes.
    progress:
        Called in this thread as ``progress(text, done, total)`` after each definition, with what became of it.
    eager, budget, threads:
        As in `structgen.compile`.
    shard:
        ``(3, 16)``: the third of 16 parts of the work, which are each other's rest for the same definitions.
    retries:
        Times that a definition is tried again whose worker died, or broke off with an error that is none of
        structgen's.
    in_flight:
        Definitions that the executor has at a time: at least twice as many as there are workers.
    hand_back:
        Workers send the values back and this process writes them, for workers that reach neither the cache's folder
        nor an object store behind it.

    Raises
    ------
    ArgumentError
        For a shard that is none, negative retries, or fewer than one in flight.
    """
    began = time.perf_counter()
    if retries < 0 or in_flight < 1:
        raise ArgumentError(f"retries is {retries!r} and in_flight {in_flight!r}: at least 0 and 1")
    given = [vocabularies] if isinstance(vocabularies, Vocabulary) else vocabularies
    by_fingerprint = {vocabulary.fingerprint: vocabulary for vocabulary in given}
    planned = plan(list(definitions), by_fingerprint.values(), shard)
    report = _Ledger(planned.failed, len(planned.tasks), progress or silent)
    missing = _missing(planned.tasks, cache, eager, report)
    if missing:
        lane = Lane(executor, cache, Terms(eager, budget, threads), hand_back)
        _Run(lane, missing, cache, report, retries, in_flight).work()
    order = {fingerprint: number for number, fingerprint in enumerate(by_fingerprint)}
    outcomes = sorted(report.outcomes, key=lambda each: (order[each.vocabulary], each.position))
    return Report(tuple(outcomes), time.perf_counter() - began)


class _Ledger:
    """What became of tasks so far."""

    def __init__(self, failed: list[Outcome], total: int, progress: Progress) -> None:
        self.outcomes = failed
        self._done, self._total, self._progress = 0, total, progress

    def note(self, task: Task, made: Outcome) -> None:
        """Write down what became of a task."""
        found = task.outcomes(made)
        self.outcomes += found
        self._done += 1
        self._progress(f"{found[0].name}: {made.status}, {made.seconds:.2f} s", self._done, self._total)


def _missing(tasks: list[Task], cache: Cache, eager: bool, ledger: _Ledger) -> list[Task]:
    """Tasks whose index the cache does not have whole; the others are noted."""
    if cache.remote is not None:
        cache.prefetch(task.key for task in tasks)
    missing = []
    for task in tasks:
        start = time.perf_counter()
        # Where the folder lacks it, the store was asked just now.
        nbytes = cache.size_of(task.key)
        index = None if nbytes is None else fetch(cache, task.key, task.definition, task.vocabulary)
        if nbytes is None or index is None or (eager and not index.machine.is_filled()):
            missing.append(task)
        else:
            ledger.note(task, present(index, task.key, nbytes, time.perf_counter() - start))
    return missing


class _Run:
    """Brings tasks to an end, whatever happens to those who work at them."""

    def __init__(
        self, lane: Lane, tasks: list[Task], cache: Cache, ledger: _Ledger, retries: int, in_flight: int
    ) -> None:
        self._lane, self._cache, self._ledger = lane, cache, ledger
        self._retries, self._in_flight = retries, in_flight
        self._waiting = deque(tasks)
        self._suspects: deque[Task] = deque()  # under way when an executor broke
        self._tried_alone: Task | None = None
        self._running: dict[Future[Reply], tuple[Task, bool]] = {}  # and whether the vocabulary went with it
        self._broken: Exception | None = None

    def work(self) -> None:
        """Until nothing is left. What an interrupt leaves undone is let go of."""
        try:
            while self._waiting or self._suspects or self._running:
                self._hand_out()
                for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                    self._take(future)
                if self._broken is not None and not self._running:
                    self._renew(self._broken)
        except BaseException:
            for future in self._running:
                future.cancel()
            self._lane.abandon()
            raise
        self._lane.close()

    def _hand_out(self) -> None:
        while self._broken is None and self._tried_alone is None:
            if self._suspects and not self._running:
                self._tried_alone = self._suspects.popleft()
                self._submit(self._tried_alone)
            elif not self._suspects and self._waiting and len(self._running) < self._in_flight:
                self._submit(self._waiting.popleft())
            else:
                return

    def _submit(self, task: Task, *, with_vocabulary: bool = False) -> None:
        try:
            future = self._lane.submit(task, with_vocabulary=with_vocabulary)
        except Exception as error:  # it broke meanwhile, or was shut down
            self._broke(task, error)
        else:
            self._running[future] = task, with_vocabulary

    def _take(self, future: Future[Reply]) -> None:
        task, had_vocabulary = self._running.pop(future)
        try:
            reply = future.result()
            for key, value, tag in reply.values:
                check_value(memoryview(value), key)
                self._cache.put(key, value, label=tag.label, kind=tag.kind, rank=tag.rank)
        except BrokenExecutor as error:
            self._broke(task, error)
        except Exception as error:  # of the executor: it could not send it, say, or gave it up
            self._crashed(task, crashed(error, task.key, task.vocabulary.fingerprint))
        else:
            if reply.made is None and not had_vocabulary:
                self._submit(task, with_vocabulary=True)
            elif reply.made is None or reply.is_crash:
                lacking = FormatError("the vocabulary did not arrive")
                self._crashed(task, reply.made or crashed(lacking, task.key, task.vocabulary.fingerprint))
            else:
                self._finish(task, self._checked(task, reply.made))

    def _checked(self, task: Task, made: Outcome) -> Outcome:
        """What a worker says, unless this cache knows better."""
        if not made.is_kept or self._cache.remote is not None or task.key in self._cache:
            return made
        return Outcome(
            0, "", made.vocabulary, "failed", key=task.key, seconds=made.seconds,
            what="a worker kept it, but not in this cache",
            remedy="Where workers do not share the folder, pass hand_back=True, or have an object store.",
        )  # fmt: skip

    def _finish(self, task: Task, made: Outcome) -> None:
        task.attempts += 1
        self._end_trial(task)
        self._ledger.note(task, made)

    def _crashed(self, task: Task, made: Outcome) -> None:
        if task.attempts < self._retries:
            task.attempts += 1
            self._end_trial(task)
            self._waiting.append(task)
        else:
            self._finish(task, made)

    def _broke(self, task: Task, error: Exception) -> None:
        self._broken = error
        if self._tried_alone is not task:
            self._suspects.append(task)
        elif task.attempts < self._retries:
            task.attempts += 1
            self._end_trial(task)
            self._suspects.append(task)
        else:
            self._finish(task, self._lost("whoever worked at it died", error, task))

    def _end_trial(self, task: Task) -> None:
        if self._tried_alone is task:
            self._tried_alone = None

    def _renew(self, error: Exception) -> None:
        self._broken = None
        if not self._lane.renew():
            for task in (*self._suspects, *self._waiting):
                self._ledger.note(task, self._lost("the executor broke, and there is no other one", error, task))
            self._suspects.clear()
            self._waiting.clear()

    @staticmethod
    def _lost(what: str, error: Exception, task: Task) -> Outcome:
        made = crashed(error, task.key, task.vocabulary.fingerprint)
        return Outcome(0, "", made.vocabulary, "lost", key=task.key, what=f"{what}: {made.what}")
