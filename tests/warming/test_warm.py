"""`structgen.warm`: what is in the cache afterwards, by word lists as judges, whatever befalls the workers."""

from __future__ import annotations

import json
import multiprocessing
import random
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Timer
from typing import Any
from xml.etree import ElementTree as XML

import pytest
from fakes.mortal_executor import Deadly, Fates, Stuck
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words
from tiers import draws

import structgen as sg
from structgen import base_rows, index_store
from structgen.cache.entry import Tag
from structgen.definitions.loading import NamedDefinition
from structgen.errors import ArgumentError, StructgenWarning
from structgen.index_store import vocabulary_key
from structgen.progress import Progress, silent
from structgen.warming import warm as warming
from structgen.warming.plan import plan, weight
from structgen.warming.values import Outcome, Status
from structgen.warming.worker import CacheAddress

#: The same tokens in another order.
OTHER = sg.Vocabulary.from_bytes([None, *(bytes([i]) for i in range(256))], eos_ids=[0])

WORDS = [random_words(seed) for seed in range(12)]
DEFINITIONS = [definition_of(words) for words in WORDS]


def statuses(report: sg.Report) -> list[str]:
    return [each.status for each in report]


def check_cache(cache: sg.Cache, numbers: list[int]) -> None:
    """These definitions and no other one are in a cache, whole, each with its masks."""
    found = [n for n, each in enumerate(DEFINITIONS) if sg.cache_key(each, VOCABULARY) in cache]
    assert found == numbers
    for n in numbers:
        index = sg.compile(DEFINITIONS[n], VOCABULARY, cache=cache, compile_missing=False)
        assert index.complete
        check_masks(index, WORDS[n])


EXECUTORS: dict[str, Callable[[], Executor] | None] = {
    "here": None,
    "threads": partial(ThreadPoolExecutor, 3),
    "mortal": Fates().executor,
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_all_are_kept_and_the_second_run_does_nothing(name: str, tmp_path: Path) -> None:
    cache, told = sg.Cache(tmp_path), list[tuple[str, int, int]]()
    report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=EXECUTORS[name], progress=lambda *each: told.append(each))
    assert statuses(report) == ["compiled"] * len(WORDS)
    assert [each.position for each in report] == list(range(len(WORDS)))
    assert [(done, total) for _, done, total in told] == [(n + 1, len(WORDS)) for n in range(len(WORDS))]
    check_cache(cache, list(range(len(WORDS))))
    times = {entry.key: entry.stored for entry in cache.entries()}
    fates = Fates()
    again = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=fates.executor)
    assert statuses(again) == ["present"] * len(WORDS)
    assert (fates.made, {entry.key: entry.stored for entry in cache.entries()}) == (0, times)
    figures = [[(each.states, each.rows, each.nbytes) for each in run] for run in (report, again)]
    assert figures[0] == figures[1]


@pytest.mark.parametrize(
    ("options", "is_made"),
    [(sg.WarmOptions(), True), (sg.WarmOptions(hand_back=True), False), (sg.WarmOptions(shard=(1, 2)), False)],
    ids=["processes", "no shared folder", "few in the shard"],
)
def test_many_schemas_have_their_base_rows_first(
    options: sg.WarmOptions, is_made: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that share the cache find them there, made once; masks are those of a compile without."""
    few = base_rows.samples()[:1]
    monkeypatch.setattr(base_rows, "samples", lambda: few)
    monkeypatch.setattr(base_rows, "_FEWEST_NODES", 1)
    monkeypatch.setattr(warming, "_MOST_WITHOUT_BASE_ROWS", 2)
    monkeypatch.setattr(warming, "_MISSING_BEFORE_BASE_ROWS", 2)
    monkeypatch.setenv("STRUCTGEN_BASE_ROWS", "1")
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b'"a', None], eos_ids=[257])
    members = [{"type": "string"}, {"type": "integer"}, {}]
    definitions = [sg.JsonSchema({"properties": {"a": each}}) for each in members]
    with sg.Cache(tmp_path) as cache:
        others = [*DEFINITIONS[:4], sg.JsonSchema({"type": "string"})]
        assert statuses(sg.warm(others, vocabulary, cache, executor=Fates().executor)) == ["compiled"] * 5
        assert index_store.fetch_base_rows(cache, vocabulary) is None
        report = sg.warm(definitions, vocabulary, cache, executor=Fates().executor, options=options)
        found = index_store.fetch_base_rows(cache, vocabulary)
        assert (found is not None and found.is_complete) == is_made
        for outcome in report:
            index = sg.compile(definitions[outcome.position], vocabulary, cache=cache, compile_missing=False)
            afresh = sg.compile(definitions[outcome.position], vocabulary, base_rows=False)
            guides = [sg.Guide(index), sg.Guide(afresh)]
            for byte in b'{"a":':
                first, second = (guide.bitmask() for guide in guides)
                assert (first == second).all()
                assert all(guide.advance(byte) for guide in guides)


class AtOnce(Executor):
    """Is done with a request when it is asked; says what has been asked by then."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if args:  # or it is asked whether it works
            self.asked.append(len(args[0].items))
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


def test_workers_are_kept_at_work_while_base_rows_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What came back is taken, and as much handed out, between two samples."""
    executor, asked = AtOnce(), list[int]()

    def make(vocabulary: sg.Vocabulary, cache: sg.Cache, progress: Progress) -> None:
        for number in range(2):
            progress("base rows", number, 2)
            asked.append(len(executor.asked))

    monkeypatch.setattr(warming, "are_worthwhile", lambda _: True)
    monkeypatch.setattr(warming, "has_strings", lambda _: True)
    monkeypatch.setattr(warming, "_MOST_WITHOUT_BASE_ROWS", 2)
    monkeypatch.setattr(warming, "make_now", make)
    options = sg.WarmOptions(in_flight=3)
    report = sg.warm(MANY, VOCABULARY, sg.Cache(tmp_path), executor=executor, options=options)
    assert statuses(report) == ["compiled"] * len(MANY)
    assert asked == [6, 9]
    assert len(executor.asked) > 9
    assert sum(executor.asked) >= len(MANY)


class Breaking(AtOnce):
    """Breaks at the request of a number, once."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.left -= 1
        if not self.left:
            raise BrokenExecutor("somebody died")
        return super().submit(fn, *args, **kwargs)


@pytest.mark.parametrize("ends", [False, True])
def test_what_happens_to_workers_while_base_rows_are_made(
    ends: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor that breaks is replaced afterwards; an interrupt goes through."""
    made = [Breaking(8), Breaking(0)]
    executors = iter(made)

    def make(vocabulary: sg.Vocabulary, cache: sg.Cache, progress: Progress) -> None:
        for number in range(4):
            progress("base rows", number, 4)
        if ends:
            raise KeyboardInterrupt

    monkeypatch.setattr(warming, "are_worthwhile", lambda _: True)
    monkeypatch.setattr(warming, "has_strings", lambda _: True)
    monkeypatch.setattr(warming, "_MOST_WITHOUT_BASE_ROWS", 2)
    monkeypatch.setattr(warming, "make_now", make)
    cache, options = sg.Cache(tmp_path), sg.WarmOptions(in_flight=3)
    if ends:
        with pytest.raises(KeyboardInterrupt):
            sg.warm(MANY, VOCABULARY, cache, executor=partial(next, executors), options=options)
        assert len(cache) >= sum(made[0].asked)
    else:
        report = sg.warm(MANY, VOCABULARY, cache, executor=partial(next, executors), options=options)
        assert set(statuses(report)) <= {"compiled", "present"}
        assert made[1].asked


class Idle(AtOnce):
    """Has no worker for a while."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        Timer(0.5, lambda: future.set_result(fn(*args))).start()
        return future


def test_where_nothing_comes_back_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster without workers is waited for for ever, and nobody would know for what."""
    monkeypatch.setattr(warming, "_SILENCE", 0.01)
    options = sg.WarmOptions(patience=0.01, in_flight=1)
    with pytest.warns(StructgenWarning, match="nothing came back for 0.02 s of 1 batches") as said:
        report = sg.warm(DEFINITIONS[:3], VOCABULARY, sg.Cache(tmp_path), executor=Idle(), options=options)
    assert len(said) == 1
    assert statuses(report) == ["compiled"] * 3


def test_what_is_there_in_part_is_finished(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    sg.warm(DEFINITIONS[:2], VOCABULARY, cache, options=sg.WarmOptions(eager=False))
    assert not sg.compile(DEFINITIONS[0], VOCABULARY, cache=cache, eager=False).complete
    report = sg.warm(DEFINITIONS[:3], VOCABULARY, cache)
    assert statuses(report) == ["compiled"] * 3
    check_cache(cache, [0, 1, 2])


@pytest.mark.parametrize("seed", range(draws(6)))
def test_a_definition_that_kills_costs_no_other_one_its_place(seed: int, tmp_path: Path) -> None:
    draw, cache = random.Random(seed), sg.Cache(tmp_path)
    deadly = draw.sample(range(len(WORDS)), draw.randrange(4))
    fates = Fates(
        deadly=[DEFINITIONS[n].pattern for n in deadly],
        failing={each.pattern: draw.randrange(2) for each in DEFINITIONS},
        deaths=[draw.randrange(1, 20)],
    )
    report = sg.warm(
        DEFINITIONS, VOCABULARY, cache, executor=partial(fates.executor, draw.randrange(1, 4)),
        options=sg.WarmOptions(in_flight=draw.randrange(1, 8), hand_back=bool(seed % 2), retries=2),
    )  # fmt: skip
    lost = {each.position: each for each in report.failed}
    assert sorted(lost) == sorted(deadly)
    for each in lost.values():
        assert (each.status, each.attempts) == ("lost", 3)
        assert "died" in each.what
    check_cache(cache, sorted(set(range(len(WORDS))) - set(deadly)))


MANY = [definition_of(random_words(seed)) for seed in range(100, 160)]


@pytest.mark.parametrize("hand_back", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_one_of_a_batch_that_kills_is_soon_found(seed: int, hand_back: bool, tmp_path: Path) -> None:
    draw, cache = random.Random(seed), sg.Cache(tmp_path)
    deadly = draw.randrange(len(MANY))
    failing = sg.Regex("(a")
    fates = Fates(deadly=[MANY[deadly].pattern])
    options = sg.WarmOptions(in_flight=2, hand_back=hand_back, retries=1)
    report = sg.warm([*MANY, failing], VOCABULARY, cache, executor=fates.executor, options=options)
    assert [each.position for each in report if each.status == "lost"] == [deadly]
    assert [each.position for each in report if each.status == "failed"] == [len(MANY)]
    assert len(report.kept) == len(MANY) - 1
    # Twice alone, and before that in a batch of 16 at most, of which nothing is known where values are handed back.
    assert fates.made - 1 <= (6 if hand_back else 4)


def test_what_took_longest_for_one_vocabulary_is_begun_first_for_the_next() -> None:
    given = [sg.Regex(f"[ab]{{{count}}}" * count) for count in range(1, 9)]
    tasks = iter(plan(given, [VOCABULARY, OTHER], (1, 1)))
    seconds = dict(zip(range(8), [5.0, 1.0, 8.0, 2.0, 7.0, 3.0, 6.0, 4.0], strict=True))
    weights = []
    for task in islice(tasks, 8):
        weights.append(task.weight)
        task.of.seconds = seconds[task.wanted[0].position]
    assert weights == sorted(weights, reverse=True)
    left = list(tasks)
    assert [seconds[task.wanted[0].position] for task in left] == sorted(seconds.values(), reverse=True)
    assert sum(task.weight for task in left) == pytest.approx(sum(weights))


def test_an_order_that_is_known_in_part() -> None:
    given = [sg.Regex(f"[ab]{{{count}}}" * count) for count in range(1, 9)]
    tasks = iter(plan(given, [VOCABULARY, OTHER], (1, 1)))
    first, *_ = islice(tasks, 8)
    first.of.seconds = 1.0  # alone it says nothing of the others
    left = list(tasks)
    assert left[0].of is first.of
    assert [task.weight for task in left] == sorted((task.weight for task in left), reverse=True)


def test_what_becomes_known_meanwhile_changes_the_order_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structgen.warming.plan._SORTED_ONCE", 2)
    given = [sg.Regex(f"[ab]{{{count}}}" * count) for count in range(1, 9)]
    planned = plan(given, [VOCABULARY], (1, 1))
    tasks = iter(planned)
    first = next(tasks)
    first.of.seconds, planned._distinct[-1].seconds = 1.0, 100.0
    order = [each.wanted[0].position for each in (first, *tasks)]
    assert order == [7, 6, 0, 5, 4, 3, 2, 1]
    assert planned.left == pytest.approx(0.0)


@pytest.mark.parametrize("vocabularies", [[], [VOCABULARY], [VOCABULARY, OTHER]])
def test_what_weighs_nothing_is_a_task_as_well(vocabularies: list[sg.Vocabulary]) -> None:
    given = [sg.Regex(letter) for letter in "abc"]
    planned = plan(given, vocabularies, (1, 1))
    for each in planned._distinct:
        each.seconds = 0.0
    assert len(list(planned)) == len(planned) == 3 * len(vocabularies)


def test_what_takes_long_is_begun_for_all_vocabularies_before_the_rest() -> None:
    given = [sg.Regex(f"[ab]{{{count}}}" * count) for count in range(1, 9)]
    third = sg.Vocabulary.from_bytes([b"!", None, *(bytes([i]) for i in range(256))], eos_ids=[1])
    planned = plan(given, [VOCABULARY, OTHER, third], (1, 1))
    tasks = iter(planned)
    for task in islice(tasks, 8):
        task.of.seconds = {2: 1e6, 5: 2e6}.get(task.wanted[0].position, 1e-6 * task.wanted[0].position)
        task.of.weight = 1000.0
    left = [(task.vocabulary, task.wanted[0].position) for task in tasks]
    rest = [7, 6, 4, 3, 1, 0]
    assert left == [
        *((vocabulary, position) for vocabulary in (OTHER, third) for position in (5, 2)),
        *((vocabulary, position) for vocabulary in (OTHER, third) for position in rest),
    ]


def test_what_is_late_is_begun_for_all_vocabularies_at_once() -> None:
    given = [sg.Regex(f"[ab]{{{count}}}" * count) for count in range(1, 9)]
    planned = plan(given, [VOCABULARY, OTHER], (1, 1))
    tasks = iter(planned)
    handed = [[task] for task in islice(tasks, 6)]
    for now, batch in enumerate(handed):
        planned.hand_out(batch, float(now))
    assert planned.take_back(handed[1], 1, 8, 2.0) == []  # after a second
    handed[1][0].of.seconds = 0.5
    assert planned.take_back([*handed[2], *handed[3]], 1, 8, 3.0) == [handed[3]]  # nobody is at the second one of it
    rest = next(tasks)
    planned.hand_out([rest], 6.0)
    assert [task.of.seconds for (task,) in handed] == [6.0, 0.5, None, None, None, None]
    left = list(tasks)
    assert [(task.vocabulary, task.of) for task in left[:1]] == [(OTHER, handed[0][0].of)]
    assert left[0].weight > max(task.weight for task in left[2:])
    assert len({(task.vocabulary, task.of) for task in (*(task for (task,) in handed), rest, *left)}) == 16
    assert planned.left == pytest.approx(0.0)


def test_seconds_are_kept_of_what_is_compiled(tmp_path: Path) -> None:
    done: list[str] = []
    report = sg.warm(DEFINITIONS, [VOCABULARY, OTHER], sg.Cache(tmp_path), progress=lambda text, *_: done.append(text))
    names = [text.rsplit(": ", 1)[0] for text in done]
    of_first = sorted(report.kept[: len(DEFINITIONS)], key=lambda each: -each.seconds)
    last = names[len(DEFINITIONS) - 1]  # is not done yet when the others are put in order
    longest_first = [each.name for each in of_first if each.name != last]
    assert [name for name in names[len(DEFINITIONS) :] if name != last] == longest_first


@pytest.mark.parametrize(("status", "seconds"), [("compiled", 3.0), ("failed", 3.0), ("present", None), ("lost", None)])
def test_what_is_refused_has_taken_its_time_as_well(status: Status, seconds: float | None) -> None:
    (task,) = plan([sg.Regex("a")], [VOCABULARY], (1, 1))
    warming._Ledger([], 1, silent).note(task, Outcome(0, "", VOCABULARY.fingerprint, status, seconds=3.0))
    assert task.of.seconds == seconds


def test_the_last_batches_are_small_and_all_of_one_vocabulary() -> None:
    others = [OTHER, VOCABULARY]
    planned = plan([*MANY, *DEFINITIONS], others, (1, 1))
    found = list(planned.batches(planned, 8))
    sizes = [len(batch) for batch in found]
    assert sum(sizes) == 2 * 72
    assert max(sizes) > 8
    assert max(sizes) <= 16
    assert sizes[-1] == 1
    assert all(len({task.vocabulary for task in batch}) == 1 for batch in found)
    assert [batch[0].vocabulary for batch in found[:: len(found) - 1]] == others
    weights = [task.weight for batch in found for task in batch if task.vocabulary is OTHER]
    assert weights == sorted(weights, reverse=True)
    shares = [sum(task.weight for task in batch) for batch in found]
    for number, batch in enumerate(found):
        assert len(batch) == 1 or shares[number] <= sum(shares[number:]) / 4 + 1e-6


@pytest.mark.parametrize(("times", "status"), [(2, "compiled"), (3, "lost")])
def test_a_worker_without_memory_is_asked_again(times: int, status: str, tmp_path: Path) -> None:
    fates = Fates(failing={DEFINITIONS[1].pattern: times})
    report = sg.warm(DEFINITIONS[:3], VOCABULARY, sg.Cache(tmp_path), executor=fates.executor)
    # The first failure does not count: it had company.
    assert statuses(report) == ["compiled", status, "compiled"]
    assert [each.attempts for each in report] == [1, 2, 1]
    assert [each.what for each in report.failed] == (["whoever worked at it died: memory ran out"] * (status == "lost"))


def test_an_executor_that_is_given_and_breaks_is_not_replaced(tmp_path: Path) -> None:
    fates, cache = Fates(deadly=[DEFINITIONS[0].pattern]), sg.Cache(tmp_path)
    report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=fates.executor(), options=sg.WarmOptions(in_flight=2))
    assert fates.made == 1
    kept = [each.position for each in report.kept]
    assert 0 not in kept
    assert {each.what.partition(":")[0] for each in report.failed} == {"the executor broke, and there is no other one"}
    check_cache(cache, kept)


def test_an_executor_that_never_works_is_given_up(tmp_path: Path) -> None:
    def shut() -> Executor:
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        return pool

    report = sg.warm(DEFINITIONS, VOCABULARY, sg.Cache(tmp_path), executor=shut)
    assert set(statuses(report)) == {"lost"}


@pytest.mark.parametrize("shares_cache", [False, True])
def test_each_worker_is_sent_a_vocabulary_once_at_most(shares_cache: bool, tmp_path: Path) -> None:
    fates, cache = Fates(), sg.Cache(tmp_path)
    options = sg.WarmOptions(hand_back=not shares_cache)
    report = sg.warm(DEFINITIONS, [VOCABULARY, OTHER], cache, executor=partial(fates.executor, 3), options=options)
    assert set(statuses(report)) == {"compiled"}
    both = {VOCABULARY.fingerprint, OTHER.fingerprint}
    assert len(fates.unpacked) == len(set(fates.unpacked))
    assert {fingerprint for _, fingerprint in fates.unpacked} == (set() if shares_cache else both)
    assert {number for number, _ in fates.unpacked} == (set() if shares_cache else {0, 1, 2})
    assert {vocabulary_key(each.identity) in cache for each in (VOCABULARY, OTHER)} == {shares_cache}
    assert [each.vocabulary for each in report] == [VOCABULARY.fingerprint] * 12 + [OTHER.fingerprint] * 12
    check_cache(cache, list(range(12)))


@pytest.mark.parametrize("value", [VOCABULARY.to_bytes()[:-1], OTHER.to_bytes(), b""])
def test_another_vocabulary_in_the_place_of_one_is_not_used(value: bytes, tmp_path: Path) -> None:
    fates, cache = Fates(), sg.Cache(tmp_path)
    fates.before = lambda: cache._front.put(vocabulary_key(VOCABULARY.identity), value, Tag(), 1 << 30)
    report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=fates.executor)
    assert set(statuses(report)) == {"compiled"}
    assert {fingerprint for _, fingerprint in fates.unpacked} == {VOCABULARY.fingerprint}  # it was sent instead
    check_cache(cache, list(range(12)))


def test_values_are_handed_back_where_there_is_no_common_folder(tmp_path: Path) -> None:
    fates, cache = Fates(), sg.Cache(tmp_path / "mine")
    schema = sg.JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 50}}})
    options = sg.WarmOptions(hand_back=True)
    report = sg.warm([*DEFINITIONS, schema], VOCABULARY, cache, executor=fates.executor, options=options)
    assert set(statuses(report)) == {"compiled"}
    assert fates.biggest_reply > max(entry.nbytes for entry in cache.entries())
    check_cache(cache, list(range(12)))
    assert cache.verify() == []
    assert sg.compile(schema, VOCABULARY, cache=cache, compile_missing=False).complete


def test_values_whose_answer_got_lost_are_handed_back_to_the_next_caller(tmp_path: Path) -> None:
    executor, options = Fates().executor(), sg.WarmOptions(hand_back=True)
    for name in ("first", "second"):
        cache = sg.Cache(tmp_path / name)
        report = sg.warm(DEFINITIONS, VOCABULARY, cache, executor=executor, options=options)
        assert set(statuses(report)) == {"compiled"}
        check_cache(cache, list(range(12)))


def test_workers_with_another_folder_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = CacheAddress.of(sg.Cache(tmp_path / "theirs"))
    monkeypatch.setattr("structgen.warming.lanes.CacheAddress.of", lambda cache: theirs)
    report = sg.warm(DEFINITIONS[:2], VOCABULARY, sg.Cache(tmp_path / "mine"), executor=Fates().executor)
    assert {each.what for each in report.failed} == {"a worker kept it, but not in this cache"}
    assert len(report.failed) == 2


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)

    def interrupt(text: str, done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    for executor in (partial(ThreadPoolExecutor, 1), Fates().executor, None):
        cache.clear()
        options = sg.WarmOptions(in_flight=1)
        with pytest.raises(KeyboardInterrupt):
            sg.warm(DEFINITIONS, VOCABULARY, cache, executor=executor, progress=interrupt, options=options)
        done = [n for n, each in enumerate(DEFINITIONS) if sg.cache_key(each, VOCABULARY) in cache]
        assert len(done) in ((5,) if executor is None else range(5, 12))  # others do several at a time
        report = sg.warm(DEFINITIONS, VOCABULARY, cache)
        assert [each.position for each in report if each.status == "present"] == done
        check_cache(cache, list(range(12)))


@pytest.mark.parametrize("parts", [1, 3, 16, 40])
def test_shards_are_all_of_it_and_have_nothing_in_common(parts: int, tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    given: list[object] = [*DEFINITIONS, 7]
    shards = [sg.WarmOptions(shard=(part, parts)) for part in range(1, parts + 1)]
    reports = [sg.warm(given, [VOCABULARY, OTHER], cache, options=shard) for shard in shards]
    assert sum(each.status == "failed" for report in reports for each in report) == 2  # 7, for each vocabulary
    done = [(each.vocabulary, each.position) for report in reports for each in report.kept]
    assert len(done) == len(set(done)) == 24
    assert max(map(len, reports)) - min(map(len, reports)) <= 3
    assert {each.status for report in reports for each in report.kept} == {"compiled"}


@pytest.mark.parametrize("shard", [(0, 4), (5, 4), (1, 0), (1.0, 2), (True, 2)])
def test_no_shard(shard: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="is no shard"):
        sg.WarmOptions(shard=shard)


def test_failures_are_told_each_in_its_words(tmp_path: Path) -> None:
    named = NamedDefinition("odd", sg.Regex("(a"), Path("defs/odd.regex"))
    given = [sg.Regex("a+"), named, sg.Regex("a+"), "text", sg.Regex("(a|b)*a(a|b){12}")]
    told: list[str] = []
    report = sg.warm(
        given,
        VOCABULARY,
        sg.Cache(tmp_path),
        options=sg.WarmOptions(budget=sg.Budget(states=50)),
        progress=lambda text, *_: told.append(text),
    )
    assert statuses(report) == ["compiled", "failed", "compiled", "failed", "failed"]
    assert len(told) == 3  # one for both that are the same; none for what is no definition
    odd, text, big = report.failed
    assert (odd.name, odd.where.split(", ")[0]) == ("odd", "defs/odd.regex:1")
    assert "str" in text.what
    assert "50" in str(big)
    assert json.loads(json.dumps(report.to_json()))["outcomes"][1]["name"] == "odd"


def test_a_report_for_ci_is_xml_whatever_is_in_it(tmp_path: Path) -> None:
    given = [sg.Regex("a\x00?\x1b<&>\ud800\uffff"), NamedDefinition("bell\x07", sg.Regex("(\x01"), Path("x\x02.regex"))]
    report = sg.warm(given, VOCABULARY, sg.Cache(tmp_path))
    root = XML.fromstring(report.to_junit().encode())
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", str(len(report.failed)), "0")
    assert [case.get("name") for case in suite][1] == "bell\\x07"
    assert [len(case) for case in suite] == [int(not each.is_kept) for each in report]


def test_processes_that_are_spawned(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    make = partial(ProcessPoolExecutor, 1, mp_context=multiprocessing.get_context("spawn"))
    given: list[object] = [*DEFINITIONS, Deadly("(deadly|definition)" * 4)]
    report = sg.warm(given, VOCABULARY, cache, executor=make, options=sg.WarmOptions(retries=0, in_flight=2))
    assert statuses(report) == ["compiled"] * 12 + ["lost"]
    assert "died" in report.outcomes[12].what
    check_cache(cache, list(range(12)))


def test_a_process_that_stalls_is_ended(tmp_path: Path) -> None:
    make = partial(ProcessPoolExecutor, 1, mp_context=multiprocessing.get_context("spawn"))
    options = sg.WarmOptions(retries=0, patience=0.5)
    (outcome,) = sg.warm([Stuck("a")], VOCABULARY, sg.Cache(tmp_path), executor=make, options=options)
    assert outcome.status == "lost"
    assert outcome.what.startswith("not done after 0.5 s")


@pytest.mark.parametrize("settings", [{"retries": -1}, {"in_flight": 0}, {"patience": 0.0}])
def test_options_that_cannot_be(settings: dict[str, float]) -> None:
    with pytest.raises(ArgumentError):
        sg.WarmOptions(**settings)  # type: ignore[arg-type]


def test_keywords_weigh_more_than_descriptions() -> None:
    plain = sg.JsonSchema({"type": "string", "description": "a" * 500})
    dates = sg.JsonSchema({"type": "string", "format": "date", "pattern": "a"})
    shorter, longer = sg.Regex("a+"), sg.Regex("a" * 100)
    given = [plain, shorter, dates, longer]
    found = list(plan(given, [VOCABULARY], (1, 1)))
    assert [given[each.wanted[0].position] for each in found] == [dates, longer, plain, shorter]


def test_what_repeats_often_weighs_more() -> None:
    patterns = ["^a*$", "^[a-z]{9}$", "^a{1,55}$", f"^a{{{10**8}}}$"]
    weights = [weight(sg.JsonSchema({"type": "string", "pattern": pattern})) for pattern in patterns]
    assert [each - weights[0] for each in weights] == [0, 9, 55, 100]


def test_what_the_store_has_costs_one_request_each(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    store = sg.ObjectStore((tmp_path / "store").as_uri(), write="now", wait=300.0, timeout=300.0)
    text = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 50}}}
    given: list[object] = [*DEFINITIONS, sg.JsonSchema(text)]  # which shares rows with others
    with sg.Cache(tmp_path / "builder", store=store) as cache:
        assert set(statuses(sg.warm(given, VOCABULARY, cache))) == {"compiled"}
    with sg.Cache(tmp_path / "other", store=store) as cache:
        assert set(statuses(sg.warm(given, VOCABULARY, cache))) == {"present"}
        assert cache.metrics().store_requests == len(given)
        check_cache(cache, list(range(12)))


@pytest.mark.parametrize("kept", [3, 9])
def test_the_store_is_not_asked_for_what_it_hardly_has(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setattr(warming, "_LOOKED_AT", 4)
    store = sg.ObjectStore((tmp_path / "store").as_uri(), write="now", wait=300.0, timeout=300.0)
    order = sorted(DEFINITIONS, key=lambda each: -len(each.canonical()))
    with sg.Cache(tmp_path / "builder", store=store) as cache:
        sg.warm(order[:kept], VOCABULARY, cache)
    asked = list[int]()
    with sg.Cache(tmp_path / "other", store=store) as cache:
        prefetch = cache.prefetch

        def asking(keys: list[str]) -> list[str]:
            asked.append(len(keys))
            return prefetch(keys)

        monkeypatch.setattr(cache, "prefetch", asking)
        report = sg.warm(order, VOCABULARY, cache, executor=Fates().executor)
        assert statuses(report) == ["present"] * kept + ["compiled"] * (12 - kept)
        check_cache(cache, list(range(12)))
    assert asked == [4] * {3: 2, 9: 3}[kept]
