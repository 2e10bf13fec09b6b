"""Caches with an object store behind them: what goes there and comes back, and what any fault of it costs."""

from __future__ import annotations

import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.object_server import (
    BUCKET,
    FAULTS,
    Answer,
    Fault,
    Objects,
    ObjectServer,
    Request,
    Serve,
    error,
    serving_objects,
)
from fakes.vocabularies import in_another_process
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words

import structgen as sg
from structgen.cache.remote import breaker, bucket, calls, remote, upkeep
from structgen.cache.remote.breaker import Breaker
from structgen.cache.remote.objects import MAGIC, name_of
from structgen.errors import ArgumentError, CacheError, CacheWarning, MissingIndexError, StoreError
from structgen.storage.container import pack
from structgen.system import background
from structgen.system.background import PATIENCE

pytest.importorskip("obstore")

#: Seconds that nobody waits for on a machine that is only slow.
LONG = 300.0

FIRST, SECOND = random_words(1), random_words(2)


def container(number: int, nbytes: int = 40) -> bytes:
    return pack({"number": number}, {"data": np.full(nbytes, number % 256, np.uint8)})


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def server(objects: Objects) -> Iterator[ObjectServer]:
    with serving_objects(objects) as found:
        yield found


Open = Callable[..., sg.Cache]


@pytest.fixture
def opened(server: ObjectServer, tmp_path: Path) -> Open:
    """A cache in a folder of a name, before the server's bucket."""

    def opened(folder: str, **settings: Any) -> sg.Cache:
        settings = {"write": "now", "wait": LONG, "timeout": LONG, **settings}
        store = sg.ObjectStore(f"s3://{BUCKET}/all", options=server.options, **settings)
        return sg.Cache(tmp_path / folder, store=store)

    return opened


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause of a breaker is over before a test is, nor is one waited for."""
    monkeypatch.setattr(breaker, "_FIRST", 1e6)
    monkeypatch.setattr(breaker, "_LONGEST", 1e6)


def compiled(words: tuple[str, ...], cache: sg.Cache, **options: Any) -> sg.Index:
    index = sg.compile(definition_of(words), VOCABULARY, cache=cache, **options)
    check_masks(index, words)
    return index


def name(key: str) -> str:
    return f"all/{name_of(key)}"


# -- there and back --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_a_server_takes_what_a_builder_compiled(seed: int, opened: Open) -> None:
    words = random_words(seed)
    with opened("builder") as builder:
        compiled(words, builder)
    with opened("server", write="never") as cache:
        assert compiled(words, cache, compile_missing=False).origin == "cache"
        assert cache.metrics().hits_store == 1
        assert compiled(words, cache, compile_missing=False).origin == "cache"
        assert cache.metrics().hits_folder == 1
        with pytest.raises(MissingIndexError):
            compiled(("other",), cache, compile_missing=False)


def test_a_folder_is_a_store_too(tmp_path: Path) -> None:
    url = (tmp_path / "store").as_uri()
    with sg.Cache(tmp_path / "a", store=url) as cache:
        assert cache.put("key", container(1), label="one", kind="index", rank=2)
    other = sg.Cache(tmp_path / "b", store=url)
    assert bytes(other.get("key") or b"") == container(1)
    (entry,) = other.entries()
    assert (entry.label, entry.kind, entry.rank) == ("one", "index", 2)
    assert other.get("..") is None
    assert other.put("..", container(2))
    other.close()
    assert {each.key for each in upkeep.listing(other)} == {"key", ".."}


def test_what_knows_more_rows_stays(opened: Open, objects: Objects) -> None:
    for cache, rank in ((opened("a"), 5), (opened("b"), 3), (opened("c"), 9)):
        assert cache.put("key", container(rank), rank=rank)
        assert bytes(opened(f"reader{rank}").get("key") or b"") == container(max(5, rank))
    (data, _) = objects.objects[name("key")]
    assert data.startswith(MAGIC)


def test_what_is_there_is_not_written_again(opened: Open, server: ObjectServer) -> None:
    assert opened("a").put("key", container(1))
    other = opened("b")
    assert other.put("key", container(1))
    assert (other.metrics().store_present, other.metrics().store_written) == (1, 0)


def test_a_cache_without_a_store_asks_nobody(tmp_path: Path) -> None:
    cache = sg.Cache(tmp_path)
    assert cache.get("key") is None
    assert cache.prefetch(["key"]) == ["key"]
    assert cache.metrics().misses == 1
    with pytest.raises(StoreError):
        upkeep.push(cache)


def test_what_is_not_there_is_not_asked_for_twice(opened: Open, server: ObjectServer) -> None:
    cache = opened("a")
    assert cache.get("key") is None
    assert cache.get("key") is None
    assert server.requests == {"GET": 1}
    opened("b").put("key", container(1))
    assert cache.prefetch(["key", "none"]) == ["none"]
    assert bytes(cache.get("key") or b"") == container(1)


def test_rows_that_indexes_share_come_along(opened: Open) -> None:
    schema = sg.JsonSchema({"properties": {"a": {"type": "string"}}, "additionalProperties": False})
    with opened("builder") as builder:
        expected = sg.compile(schema, VOCABULARY, cache=builder)
    assert "shared" in {entry.kind for entry in builder.entries()}
    twin = in_another_process(VOCABULARY)
    with opened("server", write="never") as cache:
        index = sg.compile(schema, twin, cache=cache, compile_missing=False)
        assert {entry.key for entry in cache.entries()} == {entry.key for entry in builder.entries()}
    guide, other = sg.Guide(index), sg.Guide(expected)
    for token in b'{"a":"x':
        assert (guide.bitmask() == other.bitmask()).all()
        guide.advance(token)
        other.advance(token)


# -- writing behind --------------------------------------------------------------------------------------


def test_close_waits_for_what_is_written_behind(opened: Open, objects: Objects) -> None:
    with opened("a", write="behind") as cache:
        for number in range(20):
            assert cache.put(f"key{number}", container(number))
    assert set(objects.objects) == {name(f"key{number}") for number in range(20)}
    assert cache.put("late", container(1))
    cache.close()
    assert name("late") in objects.objects


def test_a_full_queue_drops_aloud(opened: Open, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "QUEUE_BYTES", 3 * len(container(0)))
    let_go = threading.Event()

    def slow(request: Request, serve: Serve) -> Answer:
        let_go.wait()
        return serve(request)

    server.fault = slow
    cache = opened("a", write="behind")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for number in range(10):
            cache.put(f"key{number}", container(number))
    let_go.set()
    assert [each.category for each in said] == [CacheWarning]
    assert "too slow" in str(said[0].message)
    cache.close()
    counts = cache.metrics()
    assert counts.store_dropped > 0
    assert counts.store_dropped + counts.store_written == 10
    assert not upkeep.push(cache).failed
    assert len(upkeep.listing(cache)) == 10


def test_close_drops_nothing_that_another_thread_puts_meanwhile(
    opened: Open, objects: Objects, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = opened("a", write="behind")
    is_late, let_go, join = threading.Event(), threading.Event(), threading.Thread.join

    def slow(request: Request, serve: Serve) -> Answer:
        if is_late.is_set():
            let_go.wait()
        return serve(request)

    def joined(writer: threading.Thread, timeout: float | None = None) -> None:
        join(writer, timeout)
        if not is_late.is_set():
            is_late.set()
            for number in range(3):
                cache.put(f"late{number}", container(number))

    server.fault = slow
    monkeypatch.setattr(background._Worker, "join", joined)
    cache.put("key", container(1))
    cache.close()
    let_go.set()
    cache.close()
    assert cache.metrics().store_dropped == 0
    if is_late.is_set():  # the first was not written before it was waited for
        assert {name(f"late{number}") for number in range(3)} <= set(objects.objects)


def test_what_the_store_had_is_at_hand_and_kept_by_a_thread(opened: Open, tmp_path: Path) -> None:
    builder = opened("builder")
    for number in range(5):
        builder.put(f"key{number}", container(number), label=f"{number}", rank=1 + number)
    cache = opened("server", write="never")
    waiting = threading.Event()
    cache._behind.rest = waiting.wait  # type: ignore[method-assign,assignment]
    for number in range(5):
        assert bytes(cache.get(f"key{number}") or b"") == container(number)
    assert not (tmp_path / "server").exists()
    for number in range(5):
        assert bytes(cache.get(f"key{number}") or b"") == container(number)
        assert cache.size_of(f"key{number}") == len(container(number))
    assert cache.metrics().hits_folder == 5
    waiting.set()
    assert [(each.key, each.label, each.rank) for each in cache.entries()] == [
        (f"key{number}", f"{number}", 1 + number) for number in range(5)
    ]
    assert bytes(sg.Cache(tmp_path / "server").get("key3") or b"") == container(3)
    assert cache.put("key3", container(7), rank=9)
    assert bytes(cache.get("key3") or b"") == container(7)


def test_what_a_thread_cannot_keep_is_said(opened: Open, tmp_path: Path) -> None:
    opened("builder").put("key", container(1))
    (tmp_path / "server").mkdir(mode=0o700)
    (tmp_path / "server" / "cache.db").mkdir()
    cache = opened("server", write="never")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the look-up, which fails as well
        assert bytes(cache.get("key") or b"") == container(1)
    cache._front._warned = False  # type: ignore[attr-defined]
    with pytest.warns(CacheWarning, match="is not used"):
        cache.close()


def test_at_the_end_of_the_interpreter_one_failure_is_enough(
    opened: Open, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "_RETRIES", 0)
    server.fault = lambda request, serve: error(500, "InternalError")
    cache = opened("a", write="behind")
    assert cache.remote is not None
    cache.remote.close_for_good()
    with pytest.warns(CacheWarning):
        cache.put("key", container(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(4):
            cache.put(f"key{number}", container(number))
    assert server.requests == {"PUT": 1}
    assert cache.metrics().store_dropped == 5


def test_a_value_larger_than_the_queue_is_written_alone(
    opened: Open, objects: Objects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "QUEUE_BYTES", 1)
    with opened("a", write="behind") as cache:
        cache.put("key", container(1))
    assert name("key") in objects.objects


def test_the_interpreter_s_end_waits_for_all_requests_together(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]

    def wait(call: threading.Thread, timeout: float) -> None:
        now[0] += timeout

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(calls._Call, "_ending", None)
    monkeypatch.setattr(calls._Call, "join", wait)
    for _ in range(16):
        calls._Call(int, threading.Semaphore()).stop()
    assert now == [100.0 + PATIENCE]


# -- trust -----------------------------------------------------------------------------------------------


def key_pair() -> tuple[bytes, bytes]:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization as how
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(how.Encoding.PEM, how.PrivateFormat.PKCS8, how.NoEncryption())
    return private, key.public_key().public_bytes(how.Encoding.PEM, how.PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_a_server_takes_what_its_builders_signed(opened: Open, objects: Objects) -> None:
    (mine, my_half), (others, _) = key_pair(), key_pair()
    assert opened("unsigned").put("plain", container(1))
    assert opened("foreign", sign_key=others).put("foreign", container(2))
    assert opened("builder", sign_key=mine).put("own", container(3))
    server = opened("server", verify_keys=(my_half,), write=None)
    assert server.get("plain") is None
    assert server.get("foreign") is None
    assert bytes(server.get("own") or b"") == container(3)
    assert server.metrics().store_rejected == 2
    # A signature is that of its key and its value.
    data, when = objects.objects[name("own")]
    objects.objects[name("moved")] = data, when
    objects.objects[name("own")] = data[:-1] + bytes([data[-1] ^ 1]), when
    assert opened("a", verify_keys=(my_half,)).get("moved") is None
    assert opened("b", verify_keys=(my_half,)).get("own") is None
    # What servers do not take, a builder's takes the place of.
    assert opened("c", sign_key=mine).put("plain", container(1))
    assert bytes(opened("d", verify_keys=(my_half,)).get("plain") or b"") == container(1)


def test_a_server_with_keys_for_reading_writes_nothing(opened: Open, server: ObjectServer) -> None:
    cache = opened("server", verify_keys=(key_pair()[1],), write=None)
    assert cache.put("key", container(1))
    cache.close()
    assert server.requests == {}


@pytest.mark.parametrize("length", [0, 7, 15, 16, 40, 80, 200])
@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_every_cut_and_every_wrong_byte_is_noticed(length: int, opened: Open, objects: Objects) -> None:
    builder = opened("builder", sign_key=key_pair()[0])
    assert builder.put("key", container(1), label="a label", kind="index", rank=3)
    data, when = objects.objects[name("key")]
    flipped = data[:length] + bytes([data[length] ^ 0x20]) + data[length + 1 :]
    for number, damaged in enumerate((data[:length], flipped, data + b"x")):
        objects.objects[name("key")] = damaged, when
        cache = opened(f"reader{number}", sign_key=builder.remote.settings.sign_key)  # type: ignore[union-attr]
        assert cache.get("key") is None
        assert cache.metrics().store_rejected == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "bucket/prefix"}, {"url": "s3://key:secret@bucket"}, {"url": "s3://b", "write": "later"},
        {"url": "s3://b", "wait": 0}, {"url": "s3://b", "timeout": float("inf")}, {"url": "key:secret@b/p"},
        {"url": "https://a.blob.core.windows.net/c?sig=secret"}, {"url": "s3://b#secret"},
        {"url": "s3://b", "options": {"endpoint": "http://key:secret@host"}},
    ],
    ids=["no scheme", "a secret", "another way", "no time", "for ever", "a secret alone", "a signature", "a fragment",
         "an endpoint's"],
)  # fmt: skip
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError) as caught:
        sg.ObjectStore(**settings)
    assert "secret" not in str(caught.value)


def test_an_error_s_text_has_no_credentials(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint, or a proxy, of the environment's."""
    monkeypatch.setattr("obstore.get", partial(failing, ValueError("GET http://key:secret@host/a in 3 ms: refused")))
    with pytest.warns(CacheWarning, match="GET http://host/a in 3 ms") as said:
        assert opened("a").get("key") is None
    assert "secret" not in str(said[0].message)


@pytest.mark.parametrize("code", ["NoSuchBucket", "ContainerNotFound"])
def test_a_bucket_that_is_not_there_is_no_miss(code: str, opened: Open, server: ObjectServer) -> None:
    """What the store said stands behind the first line of its document, and is all that helps."""
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<Error>'
    body = f"{head}<Code>{code}</Code><Message>There is none\x1b[2J</Message></Error>".encode()
    server.fault = lambda request, serve: Answer(404, {"Content-Type": "application/xml"}, body)
    with pytest.warns(CacheWarning, match=f"is not read: .*404 Not Found: {code}\\. Work goes on") as said:
        assert opened("a", write="never").get("key") is None
    assert len(said) == 1


def test_what_a_store_says_of_a_refusal_is_said(opened: Open, server: ObjectServer) -> None:
    body = b'<?xml version="1.0"?>\n<Error><Code>RequestTimeTooSkewed</Code><Message>Set the clock.</Message></Error>'
    server.fault = lambda request, serve: Answer(403, {"Content-Type": "application/xml"}, body)
    with pytest.warns(CacheWarning, match=r"403 Forbidden: RequestTimeTooSkewed: Set the clock\."):
        assert opened("a", write="never").get("key") is None


def failing(error: Exception, *_: object) -> None:
    raise error


def test_a_url_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        sg.Cache(tmp_path, store="s3://[")


def test_keys_that_are_none(tmp_path: Path) -> None:
    private, public = key_pair()
    for store, what in (
        (sg.ObjectStore("s3://b", sign_key=b"no key"), "sign_key is not an Ed25519 private key"),
        (sg.ObjectStore("s3://b", sign_key=public), "sign_key is not an Ed25519 private key"),
        (sg.ObjectStore("s3://b", verify_keys=(public, private)), r"verify_keys\[1\] is not an Ed25519 public key"),
    ):
        with pytest.raises(ArgumentError, match=what):
            sg.Cache(tmp_path, store=store)
    with pytest.raises(StoreError):
        sg.Cache(tmp_path, store="nothing://here")


# -- faults ----------------------------------------------------------------------------------------------


def sometimes(fault: Fault, seed: int) -> Fault:
    """A fault of all requests for the seed 0; of some of them for others."""
    draw, share = random.Random(seed), random.Random(seed).choice((0.2, 0.5, 0.8)) if seed else 1.0

    def change(request: Request, serve: Serve) -> Answer:
        return fault(request, serve) if draw.random() < share else serve(request)

    return change


#: Schemas that share rows, so that faults meet these, too.
SCHEMA = sg.JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 50}}})


def check_schema(cache: sg.Cache, fresh: sg.Index) -> None:
    """`SCHEMA` from a cache has the masks of one that was compiled without."""
    guides = sg.Guide(sg.compile(SCHEMA, VOCABULARY, cache=cache)), sg.Guide(fresh)
    for token in b'{"a": "text, and more of it"}':
        assert (guides[0].bitmask() == guides[1].bitmask()).all()
        for each in guides:
            each.advance(token)


@pytest.fixture(scope="module")
def fresh() -> sg.Index:
    return sg.compile(SCHEMA, VOCABULARY, base_rows=False)


@pytest.mark.parametrize("seed", range(int(os.environ.get("STRUCTGEN_FAULTS", "1"))))
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_a_fault_costs_a_compile(
    kind: str, seed: int, fresh: sg.Index, opened: Open, server: ObjectServer, quick: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """No mask is wrong, nobody waits for ever, and what was compiled is there in the end."""
    monkeypatch.setattr(bucket, "_RETRIES", 0)
    first, second = random_words(2 * seed + 1), random_words(2 * seed + 2)
    times = {"wait": 0.3, "timeout": 0.5} if "never end" in kind else {}
    with opened("builder") as builder:
        compiled(first, builder)
        if seed:
            check_schema(builder, fresh)
    server.fault = sometimes(FAULTS[kind], seed)
    with opened("reader", **times) as reader:
        compiled(first, reader)
        compiled(second, reader)
        if seed:
            check_schema(reader, fresh)
    server.fault = None
    with opened("healer") as healer:
        compiled(first, healer)
        compiled(second, healer)
        if seed:
            check_schema(healer, fresh)
        assert not upkeep.push(healer).failed
    with opened("server", write="never") as cache:
        for words in (first, second):
            assert compiled(words, cache, compile_missing=False).origin == "cache"
        assert cache.metrics().hits_store == 2
        if seed:
            check_schema(cache, fresh)
            assert cache.metrics().compiles == 0


@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_objects_larger_than_the_cache_do_not_count_as_failures(opened: Open, server: ObjectServer) -> None:
    builder = opened("builder")
    for number in range(4):
        builder.put(f"large{number}", container(number, 100_000))
    builder.put("small", container(9))
    cache = opened("reader")
    cache.size_limit = 10_000
    for _ in range(2):
        for number in range(4):
            assert cache.get(f"large{number}") is None
    assert bytes(cache.get("small") or b"") == container(9)
    counts = cache.metrics()
    assert (counts.store_requests, counts.store_failures, counts.store_rejected) == (5, 0, 4)


def test_no_more_is_read_than_was_said(opened: Open, server: ObjectServer) -> None:
    cache, body = opened("a"), bytes(8 << 20)
    cache.put("key", container(1))

    def fault(request: Request, serve: Serve) -> Answer:
        answer = serve(request)
        if request.method != "GET":
            return answer
        size = len(serve(replace(request, headers={})).body)
        return Answer(206, {**answer.headers, "Content-Range": f"bytes 0-{size - 1}/{size}"}, body)

    server.fault = fault
    assert cache.remote is not None
    peeked, got = cache.remote.bucket.peek(name_of("key"), 9999), cache.remote.bucket.get(name_of("key"), 9999)
    assert peeked is not None
    assert len(peeked.data) == 9999
    assert got is not None
    assert len(got.data) < len(body) // 2


@pytest.mark.filterwarnings("ignore::structgen.errors.CacheWarning")
def test_what_is_not_signed_is_not_loaded(opened: Open, objects: Objects) -> None:
    assert opened("builder").put("key", container(1, 32 << 20))
    private, public = key_pair()
    cache = opened("server", verify_keys=(public,))
    assert cache.get("key") is None
    counts = cache.metrics()
    assert (counts.store_requests, counts.store_failures, counts.store_rejected) == (1, 0, 1)
    assert counts.store_bytes_read < 8 << 20
    assert opened("signer", sign_key=private).put("key", container(1, 32 << 20))
    assert len(opened("other", verify_keys=(public,)).get("key") or b"") == len(container(1, 32 << 20))
    # Nor what a head does not announce.
    data, when = objects.objects[name("key")]
    objects.objects[name("key")] = data + bytes(32 << 20), when
    third = opened("third")
    assert third.get("key") is None
    assert third.metrics().store_bytes_read < 8 << 20


def test_a_store_that_is_down_is_left_alone(opened: Open, server: ObjectServer, quick: None) -> None:
    server.fault = lambda request, serve: error(403, "AccessDenied")
    cache = opened("a")
    with pytest.warns(CacheWarning, match=r"not read: access is refused.*s3:ListBucket"):
        assert cache.get("key0") is None
    for number in range(1, 20):  # one warning is enough
        assert cache.get(f"key{number}") is None
    assert server.requests == {"GET": 3}
    counts = cache.metrics()
    assert (counts.store_requests, counts.store_failures, counts.store_skipped, counts.misses) == (3, 3, 17, 20)


def test_a_breaker_closes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tried = Breaker()
    for _ in range(3):
        assert tried.admits()
        tried.failed()
    trials = 0
    for quarter in range(16_000):
        now[0] = quarter / 4
        if tried.admits():
            trials += 1
            tried.failed()
    assert 12 <= trials <= 40  # 1, 2, 4 … 300 s, a random half of it less
    now[0] += 301
    assert tried.admits()
    assert not tried.admits()  # until the trial's outcome is known
    tried.succeeded()
    assert tried.admits()
    assert tried.admits()


def test_metrics_as_text(opened: Open) -> None:
    cache = opened("a")
    cache.put("key", container(1))
    text = cache.metrics().openmetrics()
    assert "# TYPE structgen_cache_store_written counter\nstructgen_cache_store_written_total 1\n" in text
    assert text.endswith("# EOF\n")


def test_metrics_as_instruments(opened: Open) -> None:
    """What OpenTelemetry's own reader sees is what the counters say."""
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    from opentelemetry.sdk.metrics import MeterProvider

    reader = export.InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("test")
    caches = [opened(name) for name in "ab"]
    for cache, name in zip(caches, "ab", strict=True):
        cache.instrument(meter, attributes={"cache": name})

    def seen() -> dict[tuple[str, str], float]:
        [scope] = reader.get_metrics_data().resource_metrics[0].scope_metrics
        return {
            (metric.name, point.attributes["cache"]): point.value
            for metric in scope.metrics
            for point in metric.data.data_points
        }

    for _ in range(2):
        caches[0].put("key", container(1))
        assert caches[1].get("key") is not None
        assert seen() == {
            (f"structgen.cache.{field}", name): value
            for cache, name in zip(caches, "ab", strict=True)
            for field, value in asdict(cache.metrics()).items()
        }
    assert seen()["structgen.cache.hits_store", "b"] == 1


def test_a_server_is_ready_when_all_is_near(opened: Open, server: ObjectServer) -> None:
    opened("builder").put("key", container(1))
    cache, before = opened("server"), dict(server.requests)
    assert cache.ready([])
    assert not cache.ready(["key"])
    assert server.requests == before
    assert cache.prefetch(["key"]) == []
    assert cache.ready(["key"])
    assert not cache.ready(["key", "other"])


@pytest.mark.parametrize("what", ["ready", "prefetch"])
def test_one_key_is_not_taken_for_its_letters(what: str, opened: Open) -> None:
    """A probe would say for ever that a server is not ready."""
    with pytest.raises(CacheError, match="keys are several, got 'key'"):
        getattr(opened("server"), what)("key")


# -- upkeep ----------------------------------------------------------------------------------------------


def test_push_and_pull(opened: Open, tmp_path: Path) -> None:
    before = sg.Cache(tmp_path / "a")  # from a time without a store
    for number in range(5):
        before.put(f"key{number}", container(number), rank=number)
    before.close()
    opened("other").put("key3", container(7), rank=7)
    cache = opened("a")
    pushed = upkeep.push(cache)
    assert (set(pushed.moved), pushed.present, pushed.failed) == ({"key0", "key1", "key2", "key4"}, ("key3",), ())
    pulled = upkeep.pull(opened("b"))
    assert (len(pulled.moved), pulled.present, pulled.failed) == (5, (), ())
    assert bytes(sg.Cache(tmp_path / "b").get("key3") or b"") == container(7)
    assert upkeep.push(cache).moved == ()


def test_why_entries_are_not_pushed_is_said(opened: Open, server: ObjectServer, quick: None) -> None:
    """A store that is full answers everything else."""
    cache = opened("a", write="never")
    for number in range(5):
        cache.put(f"key{number}", container(number))
    server.fault = lambda request, serve: error(507, "StorageFull") if request.method == "PUT" else serve(request)
    with pytest.warns(CacheWarning, match="5 of 5 entries failed, as in .*507 Insufficient Storage: StorageFull"):
        assert len(upkeep.push(cache).failed) == 5


def test_collecting_goes_by_the_store_s_clock(opened: Open, objects: Objects) -> None:
    objects.skew = 1e6  # ahead; by this machine's clock all would be new
    cache = opened("a")
    for number in range(4):
        cache.put(f"key{number}", container(number), kind="shared" if number == 3 else "index")
    for number, age in enumerate((500, 400, 300, 200)):
        data, when = objects.objects[name(f"key{number}")]
        objects.objects[name(f"key{number}")] = data, when - age
    listed = upkeep.listing(cache, by_store_clock=True)
    assert [each.key for each in listed] == ["key0", "key1", "key2", "key3"]
    assert all(age <= each.age < age + 100 for each, age in zip(listed, (500, 400, 300, 200), strict=True))
    lost = upkeep.unreachable(cache, listed, {"key1"})
    assert lost == {"key0", "key2"}
    size = listed[0].nbytes
    choose = partial(upkeep.victims, listed)

    def chosen(**options: Any) -> list[str]:
        return [each.key for each in choose(**{"lost": None, "older": None, "most": None, **options})]

    assert chosen(older=350) == ["key0", "key1"]
    assert chosen(lost=lost) == ["key0", "key2"]
    assert chosen(lost=lost, older=350) == ["key0"]
    assert chosen(most=2 * size + 20) == ["key0", "key1"]
    assert chosen(lost=lost, most=size + 20) == ["key0", "key2", "key1"]
    assert upkeep.delete(cache, choose(lost=lost, older=None, most=None)) == 2
    assert {each.key for each in upkeep.listing(cache)} == {"key1", "key3"}
