"""`structgen.warm` on a cluster of Dask: schedulers, workers and nannies as others wrote them, in processes."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.mortal_executor import Deadly, DeadlyOnce, Gluttonous, Stuck
from fakes.object_server import BUCKET, options_of, serving_moto
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words
from typer.testing import CliRunner

import structgen as sg
from structgen.cli import options
from structgen.cli.app import app
from structgen.index_store import vocabulary_key
from structgen.warming.worker import Reply, Request

distributed = pytest.importorskip("distributed")

WORDS = [random_words(seed) for seed in range(12)]
DEFINITIONS = [definition_of(words) for words in WORDS]

#: What becomes of definitions; those of a worker that was lost sight of may be there when they are tried again.
KEPT = {"compiled", "present"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two workers, of which each that dies takes the task with it for good."""
    import dask

    settings = {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.comm.timeouts.connect": "300s",
        # Else a cluster on one machine does away with a worker that died, and had died 15 s before.
        "distributed.deploy.lost-worker-timeout": "1h",
        "temporary-directory": str(tmp_path_factory.mktemp("dask")),
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as made,
    ):
        yield made


@pytest.fixture
def executor(cluster: Any) -> Iterator[Executor]:
    with distributed.Client(cluster, set_as_default=False, timeout="300s") as client:
        yield client.get_executor()


class Nobody(Executor):
    """Fails when it is asked for anything."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise AssertionError("there was nothing to do")


class Counting(Executor):
    """Hands on what it is given, and counts what travels."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.requests: list[Request] = []
        self.replies: list[Future[Reply]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.requests.append(args[0])
        self.replies.append(self._executor.submit(fn, *args, **kwargs))
        return self.replies[-1]

    @property
    def vocabularies(self) -> list[str]:
        """By their fingerprints, once for each time that their bytes were sent."""
        return [each.fingerprint for each in self.requests if each.vocabulary is not None]

    @property
    def lacking(self) -> list[str]:
        """The same of each answer that a vocabulary is not there."""
        pairs = zip(self.requests, self.replies, strict=True)
        return [request.fingerprint for request, reply in pairs if reply.result().done is None]


#: Tokens of more than one byte, so that the bytes of a vocabulary are many beside those of a definition.
LARGE = [
    sg.Vocabulary.from_bytes(
        [*(bytes([i]) for i in range(256)), *(f"{i:x}{end}".encode() for i in range(20_000)), None], eos_ids=[20_256]
    )
    for end in "xyz"
]


@pytest.mark.nightly
@pytest.mark.parametrize("hand_back", [False, True])
def test_vocabularies_travel_to_those_who_lack_them_alone(hand_back: bool, executor: Executor, tmp_path: Path) -> None:
    counting, cache = Counting(executor), sg.Cache(tmp_path)
    options = sg.WarmOptions(hand_back=hand_back, in_flight=4)
    report = sg.warm(DEFINITIONS, LARGE, cache, executor=counting, options=options)
    assert {each.status for each in report} <= KEPT
    fingerprints = [each.fingerprint for each in LARGE]
    if hand_back:
        # The first of each goes with its vocabulary; after that one goes for an answer that it was lacking at most.
        assert set(counting.vocabularies) == set(fingerprints)
        for each in fingerprints:
            assert 1 <= counting.vocabularies.count(each) <= 1 + counting.lacking.count(each)
    else:
        assert counting.vocabularies == counting.lacking == []
        assert all(vocabulary_key(each.identity) in cache for each in LARGE)
        # All that travels is smaller than one vocabulary.
        assert sum(len(pickle.dumps(each)) for each in counting.requests) < len(LARGE[0].to_bytes())
    assert sum(len(each.items) for each in counting.requests) - len(counting.lacking) >= len(report)
    assert len(counting.requests) - len(counting.lacking) < len(report)  # several at a time


@pytest.mark.nightly
def test_a_cluster_and_an_object_store_of_others(executor: Executor, tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    with serving_moto() as address:
        store = sg.ObjectStore(f"s3://{BUCKET}/fleet", options=options_of(address), write="now", wait=300, timeout=300)
        with sg.Cache(tmp_path / "caller", store=store) as cache:
            report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=executor)
            assert {each.status for each in report} <= KEPT
        reader = replace(store, write="never")
        with sg.Cache(tmp_path / "server", store=reader) as cache:
            keys = [sg.cache_key(definition, VOCABULARY) for definition in DEFINITIONS]
            assert cache.prefetch([*keys, vocabulary_key(VOCABULARY.identity)]) == []
            check_cache(cache)
            assert cache.metrics().compiles == 0
        with sg.Cache(tmp_path / "other caller", store=store) as cache:
            again = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=Nobody())
            assert {each.status for each in again} == {"present"}
            assert cache.metrics().store_requests == len(DEFINITIONS)


@pytest.mark.nightly
def test_the_command_line_reaches_a_cluster(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("date.regex").write_text("[0-9]{4}")
    cache = sg.Cache(tmp_path / "kept")
    monkeypatch.setattr(options, "load_vocabulary", lambda _: VOCABULARY)
    arguments = ["warm", "date.regex", "-t", "any", "--cache", "kept", "--json"]
    result = CliRunner().invoke(app, [*arguments, "--executor", f"dask={cluster.scheduler_address}"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["warmed"][0]["source"] == "compiled"
    assert sg.compile(sg.Regex("[0-9]{4}"), VOCABULARY, cache=cache, compile_missing=False).complete


def check_cache(cache: sg.Cache) -> None:
    for definition, words in zip(DEFINITIONS, WORDS, strict=True):
        check_masks(sg.compile(definition, VOCABULARY, cache=cache, compile_missing=False), words)


@pytest.mark.nightly
def test_workers_that_die_cost_what_killed_them(executor: Executor, tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path / "cache")
    once = DeadlyOnce("once|twice", mark=tmp_path / "mark")
    given: list[object] = [Deadly("deadly" * 20), *DEFINITIONS, once, Gluttonous("too much")]
    options = sg.WarmOptions(in_flight=5)
    report = sg.warm(given, VOCABULARY, cache, executor=executor, options=options)
    # One whose worker died with the answer is there when it is tried again.
    assert [each.is_kept for each in report] == [False, *[True] * 13, False]
    assert {each.status for each in report.failed} == {"lost"}
    dead, hungry = report.failed
    assert "whoever worked at it died: KilledWorker" in dead.what
    assert (hungry.what, hungry.attempts) == ("memory ran out", 2)
    check_cache(cache)
    again = sg.warm(given[1:-1], VOCABULARY, cache, executor=Nobody(), options=options)
    assert {each.status for each in again} == {"present"}


@pytest.mark.nightly
def test_a_worker_that_stalls_costs_what_held_it_up(executor: Executor, tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    # One that only is slow, as the first one in a process, is not to meet the same fate.
    stuck = sg.warm([Stuck("a")], VOCABULARY, cache, executor=executor, options=sg.WarmOptions(patience=1.0))
    assert [each.status for each in stuck] == ["lost"]
    assert "not done after 1 s" in stuck.failed[0].what
    assert [each.status for each in sg.warm(DEFINITIONS[:1], VOCABULARY, cache, executor=executor)] == ["compiled"]


@pytest.mark.nightly
def test_an_interrupt_keeps_what_is_done(executor: Executor, tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)

    def interrupt(text: str, done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    options = sg.WarmOptions(hand_back=True, in_flight=2)
    with pytest.raises(KeyboardInterrupt):
        sg.warm(DEFINITIONS, VOCABULARY, cache, executor=executor, progress=interrupt, options=options)
    done = [n for n, each in enumerate(DEFINITIONS) if sg.cache_key(each, VOCABULARY) in cache]
    assert len(done) == 5
    report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=executor, options=options)
    assert [each.position for each in report if each.status == "present"] == done
    assert report.failed == []  # neither what a worker did whose answer nobody took
    check_cache(cache)
