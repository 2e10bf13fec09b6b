"""An object store as many processes see it: builders and servers at once, forks, the end of an interpreter."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Lock

import pytest
from fakes.object_server import (
    BUCKET,
    FAULTS,
    Answer,
    ObjectServer,
    Request,
    Serve,
    forward,
    serving_moto,
    serving_objects,
)

import structgen
from structgen.cache.remote import upkeep

pytest.importorskip("obstore")

#: Seconds for a process, on a machine that is slow and does much else.
_PATIENCE = 600

WORDS = 8

PREAMBLE = """
import json, os, sys, time, warnings
from contextlib import suppress
from pathlib import Path
import structgen as sg
from structgen.errors import StoreError
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words
from structgen.cache.remote import upkeep

folder, url, options = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def opened(name, **settings):
    return sg.Cache(folder / name, store=sg.ObjectStore(url, options=options, **settings))

def container(number):
    from structgen.storage.container import pack
    return pack({"number": number}, {})
"""


def start(script: str, folder: Path, url: str, options: dict[str, str] | None = None) -> subprocess.Popen[str]:
    code = PREAMBLE + textwrap.dedent(script)
    roots = (Path(structgen.__file__).parents[1], Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots)), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), url, json.dumps(options or {})],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> str:
    """What a process printed; fails unless it ended well."""
    try:
        out, errors = process.communicate(timeout=_PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return out


BUILDER = """
warnings.simplefilter("ignore")
cache = opened(f"builder{NUMBER}", write="now", wait=300, timeout=300)
order = range(COUNT) if NUMBER else reversed(range(COUNT))
for seed in order:
    words = random_words(seed)
    check_masks(sg.compile(definition_of(words), VOCABULARY, cache=cache), words)
while True:
    with suppress(StoreError):  # a listing that met a fault
        if not upkeep.push(cache).failed:
            break
    time.sleep(0.05)
print(json.dumps(cache.metrics().compiles))
"""

SERVER = """
warnings.simplefilter("ignore")
cache = opened(f"server{NUMBER}", write="never", wait=300, timeout=300)
wanted = [random_words(seed) for seed in range(COUNT)]
while cache.prefetch(sg.cache_key(definition_of(words), VOCABULARY) for words in wanted):
    time.sleep(0.05)
for words in wanted:
    index = sg.compile(definition_of(words), VOCABULARY, cache=cache, compile_missing=False)
    assert index.origin == "cache"
    check_masks(index, words)
print(json.dumps(cache.metrics().compiles))
"""


class Unsteady:
    """A share of requests meets a fault, another one each time."""

    def __init__(self, share: float, seed: int) -> None:
        self._share = share
        self._draw = random.Random(seed)
        self._lock = Lock()
        self._faults = [each for kind, each in FAULTS.items() if "never end" not in kind and "is kept" not in kind]
        self.met = 0

    def __call__(self, request: Request, serve: Serve) -> Answer:
        with self._lock:
            fault = self._draw.choice(self._faults) if self._draw.random() < self._share else None
            self.met += fault is not None
        return serve(request) if fault is None else fault(request, serve)


def build_and_serve(server: ObjectServer, folder: Path, seed: int = 7) -> None:
    """Two builders and four servers at once: no mask is wrong, nothing is lost, nobody hangs."""
    unsteady = Unsteady(0.1, seed)
    server.fault = unsteady
    url = f"s3://{BUCKET}/fleet"
    processes: list[subprocess.Popen[str]] = []
    for script, many in ((BUILDER, 2), (SERVER, 4)):
        numbered = [f"NUMBER = {number}\nCOUNT = {WORDS}\n{script}" for number in range(many)]
        processes += [start(each, folder, url, server.options) for each in numbered]
    compiles = [json.loads(finish(process)) for process in processes]
    assert unsteady.met > 0
    assert all(1 <= each <= WORDS for each in compiles[:2])
    assert compiles[2:] == [0] * 4
    server.fault = None
    store = structgen.ObjectStore(url, options=server.options, wait=300)
    last = structgen.Cache(folder / "last", store=store)
    assert len(upkeep.listing(last)) == WORDS
    assert upkeep.pull(last).failed == ()
    assert last.verify() == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(7, 7 + int(os.environ.get("STRUCTGEN_FAULTS", "1"))))
def test_two_builders_and_four_servers(seed: int, tmp_path: Path) -> None:
    with serving_objects() as server:
        build_and_serve(server, tmp_path, seed)


@pytest.fixture
def moto() -> Iterator[str]:
    """The address of an S3 server that others wrote."""
    with serving_moto() as address:
        yield address


@pytest.mark.nightly
def test_the_same_with_a_server_of_others(moto: str, tmp_path: Path) -> None:
    with serving_objects(forward(moto)) as server:
        build_and_serve(server, tmp_path)


def test_the_fake_answers_as_a_server_of_others(moto: str) -> None:
    """What the tests of faults rest on."""
    questions = [
        Request("GET", "p/none", {}, {}, b""), Request("PUT", "p/a", {}, {"if-none-match": "*"}, b"0123456789"),
        Request("PUT", "p/a", {}, {"if-none-match": "*"}, b"other"), Request("GET", "p/a", {}, {}, b""),
        Request("GET", "p/a", {}, {"range": "bytes=2-4"}, b""),
        Request("GET", "p/a", {}, {"range": "bytes=8-99"}, b""),
        Request("GET", "p/a", {}, {"range": "bytes=10-99"}, b""), Request("HEAD", "p/a", {}, {}, b""),
        Request("PUT", "p/a", {}, {"if-match": '"0"'}, b"other"),
        Request("PUT", "p/a", {}, {"if-match": '"781e5e245d69b566979b86e28d23f2c7"'}, b"changed"),
        Request("GET", "p/a", {}, {}, b""), Request("DELETE", "p/a", {}, {}, b""),
        Request("DELETE", "p/a", {}, {}, b""), Request("GET", "p/a", {}, {}, b""),
    ]  # fmt: skip
    from fakes.object_server import Objects

    ask, other = Objects(), forward(moto)
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request"}
    for question in questions:
        mine, others = ask(question), other(replace(question, headers={**question.headers, **signed}))
        assert mine.status == others.status, question
        if mine.status < 300 and question.method == "GET":
            assert mine.body == others.body
            assert mine.headers["ETag"] == {k.title(): v for k, v in others.headers.items()}["Etag"]


def test_what_waits_is_written_at_the_end_of_the_interpreter(tmp_path: Path) -> None:
    store = (tmp_path / "store").as_uri()
    script = """
    cache = opened("a", write="behind")
    for number in range(30):
        cache.put(f"key{number}", container(number))
    """
    finish(start(script, tmp_path, store))
    assert len(upkeep.listing(structgen.Cache(tmp_path / "b", store=store))) == 30


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_an_empty_queue_and_a_thread_of_its_own(tmp_path: Path) -> None:
    script = """
    from structgen.cache.entry import Tag
    from structgen.cache.remote.remote import Waiting

    def in_child(work):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    warnings.simplefilter("error")
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # of forks beside threads
    cache = opened("a", write="behind")
    parents = Waiting("parents", container(1), Tag())
    queue = cache.remote._queue
    queue._items["parents", 0], queue._bytes = parents, len(parents.value)  # as if it waited

    def child():
        cache.put("childs", container(2))
        cache.close()

    in_child(child)
    assert queue.work_next()
    assert {each.key for each in upkeep.listing(cache)} == {"childs", "parents"}

    def grandchild():
        # The store's runtime has threads, which are the parent's: nobody waits for these.
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert cache.get("unknown") is None
        assert any("forked" in str(each.message) for each in said), said
        assert bytes(cache.get("childs")) == container(2)  # and the folder serves as ever
        cache.put("here", container(3))
        assert bytes(cache.get("here")) == container(3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cache.close()

    in_child(grandchild)
    """
    finish(start(script, tmp_path, (tmp_path / "store").as_uri()))
