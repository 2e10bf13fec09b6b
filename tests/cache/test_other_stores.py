"""Caches before Google's and Azure's object stores: what is created once, what is replaced, what comes back.

Google's is a fake of its protocol, Azure's is Azurite (``npm install -g azurite``) where that is installed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path

import numpy as np
import pytest
from fakes.object_server import BUCKET, GoogleObjects, serving_objects
from fakes.word_lists import VOCABULARY, check_masks, definition_of, random_words

import structgen as sg
from structgen.cache.remote import upkeep
from structgen.cache.remote.bucket import Bucket
from structgen.cache.remote.objects import name_of
from structgen.errors import CacheWarning, StoreError
from structgen.storage.container import pack

pytest.importorskip("obstore")

#: Seconds that nobody waits for on a machine that is only slow.
LONG = 300.0

#: The account that every Azurite has; its documentation says the key.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def make_container(address: str, name: str) -> None:
    """Make a container of Azurite's; obstore has no way to."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    path = f"/{ACCOUNT}/{name}"
    signed = "PUT" + 12 * "\n" + "".join(f"{key}:{value}\n" for key, value in headers.items())
    signed += f"/{ACCOUNT}{path}\nrestype:container"
    digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}", "Content-Length": "0"}
    connection = http.client.HTTPConnection(address)
    connection.request("PUT", f"{path}?restype=container", headers=headers)
    assert connection.getresponse().status == 201
    connection.close()


@pytest.fixture(scope="module")
def azurite() -> Iterator[str]:
    """The address of an Azurite with a container."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("needs Azurite")
    command = [program, "--inMemoryPersistence", "--blobPort", "0", "--skipApiVersionCheck"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = (re.search(r"listen\w* (?:on|at) http://(\S+)", line) for line in process.stdout)
        address = next(filter(None, said))[1]
        make_container(address, BUCKET)
        yield address
        process.terminate()


@pytest.fixture(params=["gs", "az"])
def settings(request: pytest.FixtureRequest) -> Iterator[sg.ObjectStore]:
    """An empty store of each kind."""
    if request.param == "gs":
        with serving_objects(GoogleObjects()) as server:
            yield sg.ObjectStore(f"gs://{BUCKET}/all", wait=LONG, timeout=LONG, options=server.google_options)
    else:
        address: str = request.getfixturevalue("azurite")
        options = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": f"http://{address}/{ACCOUNT}"}
        prefix = hashlib.sha256(request.node.name.encode()).hexdigest()[:8]
        yield sg.ObjectStore(f"az://{BUCKET}/{prefix}", wait=LONG, timeout=LONG, options=options)


def before(settings: sg.ObjectStore, folder: Path, write: str) -> sg.Cache:
    return sg.Cache(folder, store=sg.ObjectStore(**{**vars(settings), "write": write}))


def test_a_server_takes_what_a_builder_compiled(settings: sg.ObjectStore, tmp_path: Path) -> None:
    all_words = [random_words(seed) for seed in range(3)]
    for number, made in enumerate((3, 0)):
        with before(settings, tmp_path / f"builder{number}", "now") as builder:
            for words in all_words:
                check_masks(sg.compile(definition_of(words), VOCABULARY, cache=builder), words)
            assert (builder.metrics().store_written, builder.metrics().hits_store) == (made, 3 - made)
    with before(settings, tmp_path / "server", "never") as server:
        for words in all_words:
            index = sg.compile(definition_of(words), VOCABULARY, cache=server, compile_missing=False)
            assert index.origin == "cache"
            check_masks(index, words)
        assert server.metrics().store_failures == 0
        assert len(upkeep.listing(server)) == 3
    with before(settings, tmp_path / "last", "never") as last:
        assert len(upkeep.pull(last).moved) == 3
        assert last.verify() == []


def test_of_many_that_create_one_does(settings: sg.ObjectStore) -> None:
    bucket, values = Bucket(settings), [str(number).encode() for number in range(8)]
    assert bucket.get("a/b", 100) is None
    with ThreadPoolExecutor(8) as pool:
        created = [*pool.map(lambda value: bucket.create("a/b", value), values)]
    found = bucket.get("a/b", 100)
    assert found is not None
    assert [value for value, is_first in zip(values, created, strict=True) if is_first] == [bytes(found.data)]


def test_only_the_version_that_was_seen_is_replaced(settings: sg.ObjectStore) -> None:
    bucket = Bucket(settings)
    assert bucket.create("a/b", b"first")
    seen = bucket.peek("a/b", 3)
    assert seen is not None
    assert (bytes(seen.data), seen.nbytes) == (b"fir", 5)
    assert bucket.replace("a/b", b"second", seen.version)
    assert not bucket.replace("a/b", b"third", seen.version)
    found = bucket.get("a/b", 100)
    assert found is not None
    assert bytes(found.data) == b"second"
    bucket.delete("a/b")
    bucket.delete("a/b")
    assert not bucket.replace("a/b", b"fourth", found.version)
    assert [*bucket.listing("a")] == []


def test_what_knows_more_stays(settings: sg.ObjectStore, tmp_path: Path) -> None:
    values = {rank: pack({"rank": rank}, {"data": np.full(40, rank, np.uint8)}) for rank in (1, 2, 3)}
    for rank in (2, 1, 3):
        with before(settings, tmp_path / f"builder{rank}", "now") as builder:
            assert builder.put("key", values[rank], rank=rank)
    with before(settings, tmp_path / "server", "never") as server:
        assert bytes(server.get("key") or b"") == values[3]
    assert [each.name for each in Bucket(settings).listing("")] == [name_of("key")]


class PanicException(BaseException):
    """What obstore raises where its Rust gives up, as over ``allow_http`` among Azure's options (0.12)."""


def test_where_obstore_gives_up_the_store_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: object, **__: object) -> None:
        raise PanicException("Expected config prefix to start with azure_")

    cache = sg.Cache(tmp_path / "cache", store=(tmp_path / "store").as_uri())
    monkeypatch.setattr("obstore.get", give_up)
    with pytest.warns(CacheWarning, match="Expected config"):
        assert cache.get("key") is None
    monkeypatch.setattr("obstore.store.from_url", give_up)
    with pytest.raises(StoreError, match="cannot be used: Expected config"):
        Bucket(sg.ObjectStore("az://masks/all"))
