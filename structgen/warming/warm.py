"""`warm`: many definitions into one cache, on whatever runs functions.

*Who broke it.* When a worker dies, some executors say of all that they were given that it failed (processes), others
of what has been on several workers that died (Dask). A batch is taken apart then: the first of its definitions that
is not in the cache is a suspect, and tried when nothing else runs: what fails alone did it. The others go on in two
halves, so that one of them that did it is soon the first. So a definition that costs workers their lives costs no
other one its place.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from itertools import chain, islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from ..api import check_cache
from ..base_rows import are_worthwhile, make_now
from ..cache.audit import check_value
from ..definitions import Definition
from ..definitions.values import has_strings
from ..errors import ArgumentError, FormatError, StructgenError, StructgenWarning
from ..index_store import cache_key, read
from ..progress import Progress, silent
from ..vocabulary.vocabulary import Vocabulary, check_vocabulary
from .lanes import Lane
from .options import WarmOptions
from .plan import Batch, Task, Workload, plan
from .values import Outcome, Report
from .worker import Done, Reply, crashed, present

if TYPE_CHECKING:
    from ..cache.cache import Cache


#: Definitions of each vocabulary past which its base rows take no more time than they save, and how many must be
#: missing that may have strings. (100 schemas of MaskBench, Llama-3, two workers: 9 to 10 s of processor time both
#: ways. 300 before an object store: 16 s both ways, 48 s of the wall clock instead of 69 on a busy machine.)
_MOST_WITHOUT_BASE_ROWS, _MISSING_BEFORE_BASE_ROWS = 100, 16

#: Seconds, and at least twice the workers' patience, in which nothing comes back before that is said.
_SILENCE = 60.0

#: Definitions that the store is asked for before it is decided whether to ask for more of them.
_LOOKED_AT = 32


def warm(
    definitions: Iterable[object],
    vocabularies: Vocabulary | Iterable[Vocabulary],
    cache: Cache,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    progress: Progress | None = None,
    options: WarmOptions | None = None,
) -> Report:
    """Compile all definitions that a cache lacks, for one vocabulary or several. See docs/guide/fleet.md.

    Definitions that are in the folder, or in the object store behind it, are not compiled again. Each index is
    stored when it is finished, so an interrupt loses no finished work.

    Parameters
    ----------
    definitions:
        Definitions as `structgen.compile` takes them, or `NamedDefinition` values from `load_definitions`.
    vocabularies:
        The vocabularies; each definition is compiled for each of them.
    cache:
        The cache to fill.
    executor:
        A `concurrent.futures.Executor` (threads, processes, a cluster), or a function that makes one. The function
        is called again when workers died; its executors are closed at the end. None: compile in this thread, one
        definition after another. Workers of executors other than threads are assumed to be other processes.
    progress:
        Called in this thread as ``progress(text, done, total)`` after each definition, with its outcome.
    options:
        Options of the compiles and the workers. None: the defaults of `WarmOptions`.

    Returns
    -------
    Report
        The outcome of each definition for each vocabulary.

    Raises
    ------
    ArgumentError
        For a wrong type of vocabularies or cache, and for one definition instead of several.
    """
    if isinstance(definitions, str | Definition):
        raise ArgumentError(f"definitions are several, got {type(definitions).__name__}", remedy="Pass a list.")
    check_cache(cache)
    began = time.perf_counter()
    options = options or WarmOptions()
    given = [vocabularies] if isinstance(vocabularies, Vocabulary) else vocabularies
    for each in (given := [*given] if isinstance(given, Iterable) else [given]):
        check_vocabulary(each)
    # Widths and EOS ids make no other indexes.
    by_tokens = {(each.fingerprint, tuple(sorted(each.special_tokens.items()))): each for each in given}
    planned = plan(list(definitions), list(by_tokens.values()), options.shard)
    report = _Ledger(planned.failed, len(planned), progress or silent)
    missing = _missing(planned, cache, options.eager, report)
    first = next(missing, None)
    if first is not None:
        lane = Lane(executor, cache, options)
        tasks: Iterable[Task] = chain([first], missing)
        are_many = len(planned) > _MOST_WITHOUT_BASE_ROWS * len(by_tokens)
        if are_many and not lane.is_here and not options.hand_back:
            tasks = _seeking_base_rows(tasks, planned)
        _Run(lane, planned, tasks, cache, report, options).work()
    order = {fingerprint: number for number, (fingerprint, _) in enumerate(by_tokens)}
    outcomes = sorted(report.outcomes, key=lambda each: (order[each.vocabulary], each.position))
    return Report(tuple(outcomes), time.perf_counter() - began)


class _Ledger:
    """What became of tasks so far."""

    def __init__(self, failed: list[Outcome], total: int, progress: Progress) -> None:
        self.outcomes = failed
        self._done, self._total, self._progress = 0, total, progress

    def note(self, task: Task, made: Outcome) -> None:
        """Write down what became of a task."""
        if made.status in ("compiled", "failed"):  # what is refused may have taken its whole budget
            task.of.seconds = made.seconds
        found = task.outcomes(made)
        self.outcomes += found
        self._done += 1
        self._progress(f"{found[0].name}: {made.status}, {made.seconds:.2f} s", self._done, self._total)


def _missing(tasks: Iterable[Task], cache: Cache, eager: bool, ledger: _Ledger) -> Iterator[Task]:
    """Tasks whose index the cache does not have whole, now with their keys; the others are noted.

    The store is asked as long as it has most of them. Where it has little the rest is left to the workers, who look
    themselves, and all at once: 30,000 requests of 20 ms by one process would take longer than 256 workers take to
    compile.
    """
    left, asks = iter(tasks), cache.remote is not None
    while some := list(islice(left, _LOOKED_AT if asks else 1)):
        named = [task for task in some if _name(task, ledger)]
        if asks:
            keys = [task.key for task in named]
            asks = 2 * len(cache.prefetch(keys)) <= len(keys)
        yield from (task for task in named if not _is_there(task, cache, eager, ledger))


def _name(task: Task, ledger: _Ledger) -> bool:
    """Whether a task has a key, which it gets; otherwise that is noted."""
    try:
        task.key = cache_key(task.definition, task.vocabulary)
    except StructgenError as error:
        fingerprint = task.vocabulary.fingerprint
        ledger.note(
            task, Outcome(0, "", fingerprint, "failed", what=error.what, where=error.where, remedy=error.remedy)
        )
        return False
    return True


def _is_there(task: Task, cache: Cache, eager: bool, ledger: _Ledger) -> bool:
    """Whether the cache has an index whole, which is noted then."""
    start = time.perf_counter()
    # Where the folder lacks it, the store was asked just now, or the worker asks it.
    nbytes = cache.size_of(task.key)
    index = None if nbytes is None else read(cache, task.key, task.definition, task.vocabulary)
    if nbytes is None or index is None or (eager and not index.machine.is_filled()):
        return False
    ledger.note(task, present(index, task.key, nbytes, time.perf_counter() - start))
    return True


def _seeking_base_rows(tasks: Iterable[Task], planned: Workload) -> Iterator[Task]:
    """Tasks; of those of a vocabulary of which some that may have strings were missing, base rows are to be made.

    Other processes make none: each would make all of them.
    """
    missing: Counter[Vocabulary] = Counter()
    for task in tasks:
        if has_strings(task.definition):
            missing[task.vocabulary] += 1
            if missing[task.vocabulary] == _MISSING_BEFORE_BASE_ROWS and are_worthwhile(task.vocabulary):
                planned.without_base_rows.append(task.vocabulary)
        yield task


class _Underway(NamedTuple):
    """Tasks that the executor has."""

    batch: Batch
    since: float
    has_vocabulary: bool
    meant_for: str
    """The process that lacked the vocabulary which goes with them."""


class _Run:
    """Brings tasks to an end, whatever happens to those who work at them."""

    def __init__(
        self, lane: Lane, planned: Workload, missing: Iterable[Task], cache: Cache, ledger: _Ledger,
        options: WarmOptions,
    ) -> None:  # fmt: skip
        self._lane, self._cache, self._ledger, self._options = lane, cache, ledger, options
        self._workload = planned
        # Threads are handed one at a time: they share what others would be sent.
        self._planned = ([task] for task in missing) if lane.is_here else planned.batches(missing, lane.at_a_time)
        self._waiting: deque[Batch] = deque()  # what was under way before
        self._suspects: deque[Task] = deque()
        self._tried_alone: Task | None = None
        self._running: dict[Future[Reply], _Underway] = {}
        self._ended: SimpleQueue[Future[Reply]] = SimpleQueue()
        self._awaiting: set[tuple[str, str]] = set()  # processes, and vocabularies that are on their way to them
        self._broken: Exception | None = None
        self._is_told = False  # that nothing comes back

    def work(self) -> None:
        """Until nothing is left. What an interrupt leaves undone is let go of."""
        try:
            self._hand_out()
            while self._running or self._broken is not None:
                if self._workload.without_base_rows:
                    self._make_base_rows(self._workload.without_base_rows.popleft())
                elif self._running:
                    self._take(self._wait())
                elif self._broken is not None:
                    self._renew(self._broken)
                self._hand_out()
        except BaseException:
            for future in self._running:
                future.cancel()
            self._lane.abandon()
            raise
        self._lane.close()

    def _wait(self) -> Future[Reply]:
        """What ends next. Some executors wait for ever for workers where none is left: such a silence is said."""
        if not self._is_told and self._options.patience is not None:
            silence = max(_SILENCE, 2 * self._options.patience)
            with suppress(Empty):
                return self._ended.get(timeout=silence)
            self._is_told = True
            what = f"nothing came back for {silence:g} s of {len(self._running)} batches that workers were handed"
            warnings.warn(StructgenWarning(f"{what}. Look whether the executor has workers left."), stacklevel=4)
        return self._ended.get()

    def _make_base_rows(self, vocabulary: Vocabulary) -> None:
        """Have the cache hold base rows, for those who begin later; the others are kept at work meanwhile.

        No thread does that: of what it holds a process that is forked then would wait for for ever.
        """

        def serve(stage: str, done: int, total: int) -> None:
            for _ in range(self._ended.qsize()):
                self._take(self._ended.get())
                self._hand_out()

        make_now(vocabulary, self._cache, serve)

    def _hand_out(self) -> None:
        while self._broken is None and self._tried_alone is None:
            if self._suspects:
                if self._running:
                    return
                self._tried_alone = self._suspects.popleft()
                self._submit([self._tried_alone])
            elif len(self._running) < self._lane.at_a_time and (batch := self._next()):
                self._submit(batch)
            else:
                return

    def _next(self) -> Batch | None:
        return self._waiting.popleft() if self._waiting else next(self._planned, None)

    def _submit(self, batch: Batch, *, with_vocabulary: bool = False, meant_for: str = "") -> None:
        underway = _Underway(batch, time.monotonic(), with_vocabulary, meant_for)
        self._workload.hand_out(batch, underway.since)
        try:
            future = self._lane.submit(batch, with_vocabulary=with_vocabulary)
        except Exception as error:  # it broke meanwhile, or was shut down
            self._broken = error
            self._fell(underway, error)
        else:
            self._running[future] = underway
            self._awaiting.add((meant_for, batch[0].vocabulary.identity))
            future.add_done_callback(self._ended.put)

    def _take(self, future: Future[Reply]) -> None:
        underway = self._running.pop(future)
        batch = underway.batch
        self._awaiting.discard((underway.meant_for, batch[0].vocabulary.identity))
        try:
            done = future.result().done
        except BrokenExecutor as error:
            self._broken = error
            self._fell(underway, error)
        except Exception as error:  # a worker died, and was replaced; or the task could not be sent, or was given up
            self._fell(underway, error)
        else:
            if done is None and not underway.has_vocabulary:
                self._send_vocabulary(batch, future.result().process)
            else:
                self._tried_alone = None
                done = [*map(_without_vocabulary, batch)] if done is None else done
                for task, each in zip(batch, done, strict=False):
                    self._settle(task, each)
                self._waiting.extend(self._workload.take_back(batch, len(done), self._lane.at_a_time, time.monotonic()))

    def _send_vocabulary(self, batch: Batch, process: str) -> None:
        """Have tasks done again whose worker lacked the vocabulary, which goes to each process once.

        An executor sends what it is given where it likes. So the vocabulary is sent again when a process says that
        it lacks it and none is on its way there; what comes before it is asked for once more.
        """
        if (process, batch[0].vocabulary.identity) in self._awaiting:
            self._submit(batch)
        else:
            self._submit(batch, with_vocabulary=True, meant_for=process)

    def _settle(self, task: Task, done: Done) -> None:
        """Take what a worker says of a task, and keep what it hands back."""
        try:
            for key, value, tag in done.values:
                check_value(memoryview(value), key)
                self._cache.put(key, value, label=tag.label, kind=tag.kind, rank=tag.rank)
        except StructgenError as error:
            done = Done(crashed(error, task.key, task.vocabulary.fingerprint), [], is_crash=True)
        if done.is_crash and task.attempts < self._options.retries:
            task.attempts += 1
            self._waiting.append([task])
        else:
            self._finish(task, self._checked(task, done.made))

    def _checked(self, task: Task, made: Outcome) -> Outcome:
        """What a worker says, unless this cache knows better."""
        if not made.is_kept or self._cache.remote is not None or task.key in self._cache:
            return made
        return Outcome(
            0, "", made.vocabulary, "failed", key=task.key, seconds=made.seconds,
            what="a worker kept it, but not in this cache",
            remedy="Where workers do not share the folder, hand_back=True, or have an object store.",
        )  # fmt: skip

    def _finish(self, task: Task, made: Outcome) -> None:
        task.attempts += 1
        self._ledger.note(task, made)

    def _fell(self, underway: _Underway, error: Exception) -> None:
        """Nothing came of tasks but what the executor says: one is tried alone, and counts when it was."""
        if self._tried_alone is None:
            self._take_apart(underway.batch)
            return
        task, self._tried_alone = self._tried_alone, None
        if task.attempts < self._options.retries:
            task.attempts += 1
            self._suspects.append(task)
        else:
            patience, took = self._options.patience, time.monotonic() - underway.since
            has_stalled = patience is not None and took >= patience
            what = f"not done after {patience:g} s" if has_stalled else "whoever worked at it died"
            self._finish(task, self._lost(what, error, task))

    def _take_apart(self, batch: Batch) -> None:
        """Of tasks that nothing came of, one is a suspect: the first that is not in the cache. The others wait."""
        suspect = next((task for task in batch if task.key not in self._cache), batch[0])
        others = [task for task in batch if task is not suspect]
        middle = len(others) // 2
        self._suspects.append(suspect)
        self._waiting.extend(half for half in (others[:middle], others[middle:]) if half)

    def _renew(self, error: Exception) -> None:
        self._broken = None
        if not self._lane.renew():
            waiting = chain.from_iterable(chain(self._waiting, self._planned))
            for task in (*self._suspects, *waiting):
                if not _is_there(task, self._cache, self._options.eager, self._ledger):  # of a batch that was begun
                    self._ledger.note(task, self._lost("the executor broke, and there is no other one", error, task))
            self._suspects.clear()
            self._waiting.clear()

    @staticmethod
    def _lost(what: str, error: Exception, task: Task) -> Outcome:
        made = crashed(error, task.key, task.vocabulary.fingerprint)
        return Outcome(0, "", made.vocabulary, "lost", key=task.key, what=f"{what}: {made.what}")


def _without_vocabulary(task: Task) -> Done:
    lacking = FormatError("the vocabulary did not arrive")
    return Done(crashed(lacking, task.key, task.vocabulary.fingerprint), [], is_crash=True)
