"""A worker's cache: the store is asked ahead and written behind, and what is said to be kept is there."""

from __future__ import annotations

import gc
import random
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest
from fakes.mortal_executor import Fates
from fakes.object_server import BUCKET, Answer, ObjectServer, Request, Serve, error, serving_objects
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words

import structgen as sg
from structgen.warming import pipeline, worker
from structgen.warming.plan import Task, Workload
from structgen.warming.watch import Watch
from structgen.warming.worker import CacheAddress

pytest.importorskip("obstore")

WORDS = [random_words(seed) for seed in range(12)]
DEFINITIONS = [definition_of(words) for words in WORDS]
KEYS = [sg.cache_key(each, VOCABULARY) for each in DEFINITIONS]

#: Seconds that nobody waits for on a machine that is only slow.
_PATIENCE = 300.0


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with serving_objects() as server:
        yield server


def store_of(server: ObjectServer) -> sg.ObjectStore:
    return sg.ObjectStore(
        f"s3://{BUCKET}/fleet", options=server.options, write="now", wait=_PATIENCE, timeout=_PATIENCE
    )


def in_store(server: ObjectServer, folder: Path) -> list[int]:
    """The definitions that somebody finds whose folder is empty, each with its masks."""
    with sg.Cache(folder, store=store_of(server)) as cache:
        missing = cache.prefetch(KEYS)
        found = [number for number, key in enumerate(KEYS) if key not in missing]
        for number in found:
            index = sg.compile(DEFINITIONS[number], VOCABULARY, cache=cache, compile_missing=False)
            check_masks(index, WORDS[number])
    return found


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_requests_are_on_their_way_together(method: str, server: ObjectServer, tmp_path: Path) -> None:
    """None of them is answered before three are there: one after another they would never be."""
    together = Barrier(3)

    def wait_for_others(request: Request, serve: Serve) -> Answer:
        if request.method == method and any(key in request.name for key in KEYS):
            together.wait(_PATIENCE)
        return serve(request)

    cache = CacheAddress.of(sg.Cache(tmp_path / "worker", store=store_of(server))).open()
    server.fault = wait_for_others
    with cache, cache.pipeline():
        cache.prefetch(KEYS[:3], patient=False)
        for definition in DEFINITIONS[:3]:
            sg.compile(definition, VOCABULARY, cache=cache)
        assert [write.result() for write in cache.take()] == [""] * 3
        assert cache.metrics().store_requests == 6
    server.fault = None
    assert in_store(server, tmp_path / "other") == [0, 1, 2]


def test_an_index_is_in_the_folder_when_it_is_in_the_store(server: ObjectServer, tmp_path: Path) -> None:
    """Were it there before, whoever does again what a worker died at would take it for kept."""
    goes_on = Event()

    def wait(request: Request, serve: Serve) -> Answer:
        if request.method == "PUT":
            goes_on.wait(_PATIENCE)
        return serve(request)

    server.fault = wait
    near = sg.Cache(tmp_path / "worker")
    cache = CacheAddress.of(sg.Cache(tmp_path / "worker", store=store_of(server))).open()
    with cache, cache.pipeline():
        sg.compile(DEFINITIONS[0], VOCABULARY, cache=cache)
        assert KEYS[0] in cache
        assert KEYS[0] not in near
        goes_on.set()
        assert [write.result() for write in cache.take()] == [""]
        assert KEYS[0] in near
        assert cache.take() == []
    assert cache.size_of(KEYS[0]) == near.size_of(KEYS[0])


@pytest.mark.parametrize("is_full", [False, True])
def test_what_the_store_does_not_take_is_not_said_to_be_kept(
    is_full: bool, server: ObjectServer, tmp_path: Path
) -> None:
    refused = KEYS if is_full else KEYS[4:5]

    def refuse(request: Request, serve: Serve) -> Answer:
        if request.method == "PUT" and any(key in request.name for key in refused):
            return error(403, "AccessDenied")
        return serve(request)

    server.fault = refuse
    with sg.Cache(tmp_path / "mine", store=store_of(server)) as cache, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=Fates().executor)
        assert all(key in cache for key in KEYS)  # of the folder: `cache push` writes them
    server.fault = None
    failed = [number for number, key in enumerate(KEYS) if key in refused]
    assert [each.position for each in report.failed] == failed
    assert {each.what for each in report.failed} == {"the object store did not take it"}
    assert in_store(server, tmp_path / "other") == [n for n in range(12) if n not in failed]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_to_be_kept_is_in_the_store_whoever_dies(seed: int, server: ObjectServer, tmp_path: Path) -> None:
    draw = random.Random(seed)
    fates = Fates(deadly=[DEFINITIONS[draw.randrange(12)].pattern], deaths=[draw.randrange(1, 20) for _ in range(2)])
    with sg.Cache(tmp_path / "mine", store=store_of(server)) as cache:
        report = sg.warm(
            DEFINITIONS, VOCABULARY, cache, executor=partial(fates.executor, 3),
            options=sg.WarmOptions(in_flight=2, retries=2),
        )  # fmt: skip
    assert len(report.failed) == 1
    assert in_store(server, tmp_path / "other") == [each.position for each in report.kept]


@pytest.mark.parametrize("hand_back", [False, True])
def test_what_a_worker_has_no_time_for_others_do(
    hand_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LONGEST_BATCH", -1.0)  # one of each batch is begun all the same
    fates, cache = Fates(), sg.Cache(tmp_path)
    options = sg.WarmOptions(in_flight=2, hand_back=hand_back)
    report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=fates.executor, options=options)
    assert {(each.status, each.attempts) for each in report} == {("compiled", 1)}
    assert fates.begun > len(DEFINITIONS)  # some were handed out twice
    for definition, words in zip(DEFINITIONS, WORDS, strict=True):
        check_masks(sg.compile(definition, VOCABULARY, cache=cache, compile_missing=False), words)


class Hasty(Executor):
    """Has time for so many definitions of a request at once, in this process."""

    def __init__(self, time_for: int) -> None:
        self._time_for = time_for
        self.sent: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        (request,) = args
        self.sent.append(len(request.items))
        future: Future[Any] = Future()
        future.set_result(fn(replace(request, items=request.items[: self._time_for])))
        return future


@pytest.mark.parametrize(
    ("time_for", "left", "sent"), [(1, 1e9, [8] + 7 * [1]), (3, 1e9, [8, 3, 2]), (3, 0.0, [8] + 5 * [1])]
)
def test_what_comes_back_is_handed_out_by_as_many_as_there_was_time_for(
    time_for: int, left: float, sent: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one they would be asked for one by one, and written so."""

    def all_at_once(workload: Workload, tasks: Iterable[Task], _: int) -> Iterator[list[Task]]:
        batch = list(tasks)
        workload.left = left
        yield batch

    monkeypatch.setattr(Workload, "batches", all_at_once)
    hasty = Hasty(time_for)
    report = sg.warm(DEFINITIONS[:8], VOCABULARY, sg.Cache(tmp_path), executor=hasty)
    assert [each.status for each in report] == ["compiled"] * 8
    assert hasty.sent == sent


def opened(server: ObjectServer, folder: Path) -> pipeline.PipelinedCache:
    return CacheAddress.of(sg.Cache(folder, store=store_of(server))).open()


def test_no_index_is_anywhere_before_what_it_shares(server: ObjectServer, tmp_path: Path) -> None:
    """A worker may die in between: nobody writes again what is in the folder, nor looks what an index lacks."""
    index_came = Event()
    order: list[int] = []

    def hold_back(request: Request, serve: Serve) -> Answer:
        if request.method == "PUT":
            if KEYS[0] in request.name:
                index_came.wait(0.3)  # in vain
            else:
                index_came.set()
            order.append(0 if KEYS[0] in request.name else 1)
        return serve(request)

    server.fault = hold_back
    near = sg.Cache(tmp_path / "worker")
    cache = opened(server, tmp_path / "worker")
    with cache, cache.pipeline():
        assert cache.put(KEYS[0], b"rows", kind="shared")
        assert KEYS[0] in cache
        assert KEYS[0] not in near
        assert bytes(cache.get(KEYS[0]) or b"") == b"rows"
        assert cache.put(KEYS[1], b"index", kind="schema", rank=1)
        assert [write.result() for write in cache.take()] == [""] * 2
    assert order == [0, 1]
    assert all(key in near for key in KEYS[:2])


def test_what_waits_to_be_written_has_a_bound(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was taken note of, as that of the definition before is."""
    goes_on = Event()

    def hold_back(request: Request, serve: Serve) -> Answer:
        if request.method == "PUT":
            goes_on.wait(_PATIENCE)
        return serve(request)

    def wait_for(writes: Iterable[Future[str]]) -> object:
        if writes:
            goes_on.set()
        return wait(writes)

    server.fault = hold_back
    monkeypatch.setattr(pipeline, "wait", wait_for)
    monkeypatch.setattr(pipeline, "_MOST_BYTES", 10)
    cache = opened(server, tmp_path / "worker")
    with cache, cache.pipeline():
        cache.put(KEYS[0], bytes(11))
        (first,) = cache.take()
        assert not first.done()
        cache.put(KEYS[1], bytes(11))
        has_waited = first.done()
        goes_on.set()
    assert has_waited


def test_without_threads_a_worker_writes_itself(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Thread.start

    def start_few(thread: Thread) -> None:
        if thread.name.startswith(("structgen-publisher", "ThreadPoolExecutor")):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(Thread, "start", start_few)
    with sg.Cache(tmp_path / "mine", store=store_of(server)) as cache:
        report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=Hasty(16))
    monkeypatch.undo()
    assert {each.status for each in report} == {"compiled"}
    assert in_store(server, tmp_path / "other") == [*range(12)]


def test_what_an_interrupt_left_is_nothing_of_the_next_request(server: ObjectServer, tmp_path: Path) -> None:

    def interrupted(cache: pipeline.PipelinedCache) -> None:
        with cache.pipeline():
            cache.put(KEYS[0], b"index")
            raise KeyboardInterrupt

    cache = opened(server, tmp_path / "worker")
    with cache:
        with pytest.raises(KeyboardInterrupt):
            interrupted(cache)
        assert KEYS[0] in sg.Cache(tmp_path / "worker")
        with cache.pipeline():
            assert cache.take() == []


def test_looks_count_as_time_that_a_worker_has(
    server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder on a network that hangs is to end the worker, whoever looks first."""
    limits: list[float | None] = []
    looked: list[float | None] = []

    @contextmanager
    def limit(_: Watch, seconds: float | None) -> Iterator[None]:
        limits.append(seconds)
        yield
        limits.pop()

    def prefetch(*_: object, **__: object) -> list[str]:
        looked.extend(limits)
        return []

    address = CacheAddress.of(sg.Cache(tmp_path, store=store_of(server)))
    items = (worker.SentTask(DEFINITIONS[0], KEYS[0]),)
    monkeypatch.setattr(Watch, "limit", limit)
    monkeypatch.setattr(pipeline.PipelinedCache, "prefetch", prefetch)
    request = worker.Request(
        "", 0, "another process", items, VOCABULARY.fingerprint, VOCABULARY.identity,
        sg.WarmOptions(patience=77.0), address, VOCABULARY.to_bytes(),
    )  # fmt: skip
    (done,) = worker._Worker().answer(request) or []
    assert done.made.status == "compiled"
    assert looked == [77.0]


@pytest.mark.parametrize("is_caller", [False, True])
def test_the_end_of_a_worker_collects_no_garbage(is_caller: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[object] = []
    caller = worker.this_process() if is_caller else "another process"
    monkeypatch.setattr("atexit.register", registered.append)
    request = worker.Request(
        "", 0, caller, (), VOCABULARY.fingerprint, VOCABULARY.identity, sg.WarmOptions(), None, VOCABULARY.to_bytes()
    )
    process = worker._Worker()
    assert process.answer(request) == process.answer(request) == []
    assert registered == ([] if is_caller else [gc.freeze])
