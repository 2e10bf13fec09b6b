"""`warm`: many definitions into one cache, on whatever runs functions.

*Who broke it.* When a worker dies, some executors say of all that they were given that it failed (processes), others
of what has been on several workers that died (Dask). All those are suspects then, and are tried one at a time, when
nothing else runs: one that fails alone did it. So a definition that costs workers their lives costs no other one its
place.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TYPE_CHECKING, NamedTuple

from ..api import compile_base_rows
from ..base_rows import are_worthwhile, has_strings
from ..cache.audit import check_value
from ..errors import FormatError
from ..index_store import read
from ..progress import Progress, silent
from ..vocabulary.vocabulary import Vocabulary
from .lanes import Lane
from .options import WarmOptions
from .plan import Task, plan
from .values import Outcome, Report
from .worker import Reply, crashed, present

if TYPE_CHECKING:
    from ..cache.cache import Cache


#: Definitions with strings for one vocabulary past which base rows take no more time than they save. (100 schemas of
#: MaskBench, Llama-3, two workers: 9 to 10 s of processor time with and without.)
_MOST_WITHOUT_BASE_ROWS = 100

#: Definitions that the store is asked for before it is decided whether to ask for more of them.
_LOOKED_AT = 256


def warm(
    definitions: Iterable[object],
    vocabularies: Vocabulary | Iterable[Vocabulary],
    cache: Cache,
    *,
    executor: Executor | Callable[[], Executor] | None = None,
    progress: Progress | None = None,
    options: WarmOptions | None = None,
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
    options:
        How definitions are compiled, which part of them, and what is asked of workers; None: the defaults.
    """
    began = time.perf_counter()
    options = options or WarmOptions()
    given = [vocabularies] if isinstance(vocabularies, Vocabulary) else vocabularies
    by_fingerprint = {vocabulary.fingerprint: vocabulary for vocabulary in given}
    planned = plan(list(definitions), by_fingerprint.values(), options.shard)
    report = _Ledger(planned.failed, len(planned.tasks), progress or silent)
    missing = _missing(planned.tasks, cache, options.eager, report)
    if missing:
        lane = Lane(executor, cache, options)
        if not lane.is_here and not options.hand_back:
            _make_base_rows(missing, cache)
        _Run(lane, missing, cache, report, options).work()
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


def _bring(tasks: list[Task], cache: Cache) -> None:
    """Bring into the folder what the store has, as long as that is most of it.

    Where it is little the rest is left to the workers, who look themselves, and all at once: 30,000 requests of 20 ms
    by one process would take longer than 256 workers take to compile.
    """
    for begin in range(0, len(tasks), _LOOKED_AT):
        keys = [task.key for task in tasks[begin : begin + _LOOKED_AT]]
        if 2 * len(cache.prefetch(keys)) > len(keys):
            return


def _missing(tasks: list[Task], cache: Cache, eager: bool, ledger: _Ledger) -> list[Task]:
    """Tasks whose index the cache does not have whole; the others are noted."""
    if cache.remote is not None:
        _bring(tasks, cache)
    missing = []
    for task in tasks:
        start = time.perf_counter()
        # Where the folder lacks it, the store was asked just now, or the worker asks it.
        nbytes = cache.size_of(task.key)
        index = None if nbytes is None else read(cache, task.key, task.definition, task.vocabulary)
        if nbytes is None or index is None or (eager and not index.machine.is_filled()):
            missing.append(task)
        else:
            ledger.note(task, present(index, task.key, nbytes, time.perf_counter() - start))
    return missing


def _make_base_rows(tasks: list[Task], cache: Cache) -> None:
    """Have the base rows of vocabularies in the cache before other processes begin, each of which makes none."""
    with_strings = Counter(task.vocabulary for task in tasks if has_strings(task.definition))
    for vocabulary, count in with_strings.items():
        if count > _MOST_WITHOUT_BASE_ROWS and are_worthwhile(vocabulary):
            compile_base_rows(vocabulary, cache=cache)


class _Underway(NamedTuple):
    """A task that the executor has."""

    task: Task
    since: float
    has_vocabulary: bool
    meant_for: str
    """The process that lacked the vocabulary which goes with it."""


class _Run:
    """Brings tasks to an end, whatever happens to those who work at them."""

    def __init__(self, lane: Lane, tasks: list[Task], cache: Cache, ledger: _Ledger, options: WarmOptions) -> None:
        self._lane, self._cache, self._ledger, self._options = lane, cache, ledger, options
        self._waiting = deque(tasks)
        self._suspects: deque[Task] = deque()  # under way when a worker died
        self._tried_alone: Task | None = None
        self._running: dict[Future[Reply], _Underway] = {}
        self._awaiting: set[tuple[str, str]] = set()  # processes, and vocabularies that are on their way to them
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
            elif not self._suspects and self._waiting and len(self._running) < self._options.in_flight:
                self._submit(self._waiting.popleft())
            else:
                return

    def _submit(self, task: Task, *, with_vocabulary: bool = False, meant_for: str = "") -> None:
        underway = _Underway(task, time.monotonic(), with_vocabulary, meant_for)
        try:
            future = self._lane.submit(task, with_vocabulary=with_vocabulary)
        except Exception as error:  # it broke meanwhile, or was shut down
            self._broken = error
            self._fell(underway, error)
        else:
            self._running[future] = underway
            self._awaiting.add((meant_for, task.vocabulary.fingerprint))

    def _take(self, future: Future[Reply]) -> None:
        underway = self._running.pop(future)
        task = underway.task
        self._awaiting.discard((underway.meant_for, task.vocabulary.fingerprint))
        try:
            reply = future.result()
            for key, value, tag in reply.values:
                check_value(memoryview(value), key)
                self._cache.put(key, value, label=tag.label, kind=tag.kind, rank=tag.rank)
        except BrokenExecutor as error:
            self._broken = error
            self._fell(underway, error)
        except Exception as error:  # a worker died, and was replaced; or the task could not be sent, or was given up
            self._fell(underway, error)
        else:
            if reply.made is None and not underway.has_vocabulary:
                self._send_vocabulary(task, reply.process)
            elif reply.made is None or reply.is_crash:
                lacking = FormatError("the vocabulary did not arrive")
                self._crashed(task, reply.made or crashed(lacking, task.key, task.vocabulary.fingerprint))
            else:
                self._finish(task, self._checked(task, reply.made))

    def _send_vocabulary(self, task: Task, process: str) -> None:
        """Have a task done again whose worker lacked the vocabulary, which goes to each process once.

        An executor sends what it is given where it likes. So the vocabulary is sent again when a process says that
        it lacks it and none is on its way there; what comes before it is asked for once more.
        """
        if (process, task.vocabulary.fingerprint) in self._awaiting:
            self._submit(task)
        else:
            self._submit(task, with_vocabulary=True, meant_for=process)

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
        self._end_trial(task)
        self._ledger.note(task, made)

    def _crashed(self, task: Task, made: Outcome) -> None:
        if task.attempts < self._options.retries:
            task.attempts += 1
            self._end_trial(task)
            self._waiting.append(task)
        else:
            self._finish(task, made)

    def _fell(self, underway: _Underway, error: Exception) -> None:
        """Nothing came of a task but what the executor says: it is tried alone, and counts when it was."""
        task = underway.task
        if self._tried_alone is not task:
            self._suspects.append(task)
        elif task.attempts < self._options.retries:
            task.attempts += 1
            self._end_trial(task)
            self._suspects.append(task)
        else:
            patience, took = self._options.patience, time.monotonic() - underway.since
            has_stalled = patience is not None and took >= patience
            what = f"not done after {patience:g} s" if has_stalled else "whoever worked at it died"
            self._finish(task, self._lost(what, error, task))

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
