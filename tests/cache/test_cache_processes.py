"""The cache as many processes see it: at once, after a fork, killed, without rights, without space."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import structgen
from structgen.cache.cache import Cache
from structgen.storage.container import unpack

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork, signals and resource limits")

#: What every script below begins with. A warning is a failure, so that no cache quietly goes unused.
PREAMBLE = """
import os, random, resource, signal, sys, time, warnings
from contextlib import suppress
from pathlib import Path
import numpy as np
from structgen.cache.cache import Cache
from structgen.errors import CacheWarning
from structgen.storage.container import pack, unpack

folder = Path(sys.argv[1])
warnings.simplefilter("error", CacheWarning)

def value(key, turn=0):
    nbytes = 1000 if key % 2 else 300_000
    return pack({"key": key}, {"data": np.full(nbytes, turn % 256, np.uint8)})

def check(buffer, key):
    '''A value must be whole and the key's own, whichever turn it is from.'''
    meta, sections = unpack(buffer)
    assert meta == {"key": key}, (meta, key)
    assert (sections["data"] == sections["data"][0]).all()

def in_children(count, work):
    '''Run work(number) in forked children, and fail unless each returns.'''
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            with suppress(BaseException):
                try:
                    work(number)
                    status = 0
                except BaseException:
                    import traceback
                    traceback.print_exc()
                    sys.stderr.flush()
            os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert statuses == [0] * count, statuses
"""


def start(script: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A fresh interpreter at work on ``folder``."""
    code = PREAMBLE + textwrap.dedent(script)
    root = os.path.dirname(os.path.dirname(structgen.__file__))
    environment = {**os.environ, "PYTHONPATH": root, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """What a process printed; fails unless it ended well."""
    try:
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return out


def run(script: str, folder: Path, *arguments: str) -> str:
    return finish(start(script, folder, *arguments))


def age_strays(folder: Path) -> None:
    for path in folder.glob("*.val"):
        os.utime(path, (1e9, 1e9))


def test_processes_write_and_read_one_folder(tmp_path: Path) -> None:
    """Fresh interpreters that all find no folder, and agree on one."""
    script = """
    cache = Cache(folder)
    hits = 0
    for turn in range(25):
        key = random.randrange(6)
        assert cache.put(f"key{key}", value(key, turn))
        for key in range(6):
            buffer = cache.get(f"key{key}")
            if buffer is not None:
                check(buffer, key)
                hits += 1
        if turn % 10 == 9:
            cache.discard(f"key{random.randrange(6)}")
            cache.verify(repair=True)
    print(hits)
    """
    processes = [start(script, tmp_path / "cache") for _ in range(4)]
    assert all(int(finish(process)) > 50 for process in processes)
    cache = Cache(tmp_path / "cache")
    assert cache.verify() == []
    assert len(list(cache.directory.glob("*.val"))) == len(cache) > 0


def test_one_process_clears_while_others_read(tmp_path: Path) -> None:
    run(
        """
        cache = Cache(folder)
        cache.put("key0", value(0))

        def work(number):
            for turn in range(40):
                if number == 0:
                    cache.clear()
                elif number == 1:
                    cache.prune(0)
                else:
                    assert cache.put("key0", value(0, turn))
                    buffer = cache.get("key0")
                    if buffer is not None:
                        check(buffer, 0)

        in_children(4, work)
        """,
        tmp_path / "cache",
    )
    assert Cache(tmp_path / "cache").verify() == []


def test_forked_children_go_on_with_an_open_cache(tmp_path: Path) -> None:
    """Also when the parent closes, which would fold away the log that inherited connections rely on."""
    run(
        """
        cache = Cache(folder)
        cache.put("key0", value(0))
        buffer = cache.get("key0")
        go, ready = os.pipe()

        def work(number):
            check(buffer, 0)
            check(cache.get("key0"), 0)
            os.close(ready)
            if number == 0:
                cache.close()
            else:
                os.read(go, 1)
            for turn in range(20):
                assert cache.put(f"key{number}", value(number, turn))
                check(cache.get("key0"), 0)
                check(cache.get(f"key{number}"), number)

        import threading
        threading.Timer(0.2, lambda: (cache.close(), os.close(ready))).start()
        in_children(3, work)
        assert len(cache) == 3
        """,
        tmp_path / "cache",
    )
    assert Cache(tmp_path / "cache").verify() == []


def test_a_fork_waits_for_other_threads_writes(tmp_path: Path) -> None:
    """A child that inherited a transaction of another thread would find the database locked for ever."""
    run(
        """
        import threading
        cache = Cache(folder, timeout=2)
        stop = threading.Event()

        def busy():
            turn = 0
            while not stop.is_set():
                cache.put("key1", value(1, turn))
                cache.get("key1")
                turn += 1

        thread = threading.Thread(target=busy)
        thread.start()
        warnings.simplefilter("ignore", DeprecationWarning)
        for _ in range(15):
            def work(number):
                assert cache.put("key3", value(3))
                check(cache.get("key3"), 3)
            in_children(1, work)
        stop.set()
        thread.join()
        """,
        tmp_path / "cache",
    )
    assert Cache(tmp_path / "cache").verify() == []


def test_kill_9_loses_at_most_the_entry_in_flight(tmp_path: Path) -> None:
    """A writer killed at random moments; what was there before it began is there ever after."""
    report = run(
        """
        with Cache(folder) as cache:
            cache.put("anchor", value(1))
        random.seed(7)
        for round in range(40):
            written, pen = os.pipe()
            child = os.fork()
            if child == 0:
                cache, turn = Cache(folder), round
                while True:
                    key = turn % 9 + 2
                    cache.put(f"key{key}", value(key, turn))
                    cache.get("anchor")
                    os.write(pen, b".")
                    turn += 1
            if round % 2:
                os.read(written, 1)  # or else it may still be opening the database
            time.sleep(random.uniform(0.001, 0.02))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(written)
            os.close(pen)
            cache = Cache(folder)
            check(cache.get("anchor"), 1)
            for entry in cache.entries():
                if entry.key != "anchor":
                    buffer = cache.get(entry.key)
                    if buffer is not None:
                        check(buffer, int(entry.key[3:]))
            assert all(problem.kind == "stray" for problem in cache.verify())
            assert cache.put("key2", value(2))
            check(cache.get("key2"), 2)
        print(len(cache), len(list(folder.glob("*.val"))))
        """,
        tmp_path / "cache",
    )
    entries, files = map(int, report.split())
    assert entries > 2
    cache = Cache(tmp_path / "cache")
    age_strays(cache.directory)
    assert len(cache.verify(repair=True)) == files - entries
    assert cache.verify() == []
    assert len(cache) == len(list(cache.directory.glob("*.val"))) == entries
    for entry in cache.entries():
        buffer = cache.get(entry.key)
        assert buffer is not None
        unpack(buffer)


def test_prune_removes_the_strays_of_killed_writers(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("key", b"value")
    (tmp_path / ("a" * 32 + ".val")).write_bytes(b"half a val")
    age_strays(tmp_path)
    assert cache.prune(100) == []
    assert len(list(tmp_path.glob("*.val"))) == len(cache) == 1


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="structgen-test-"))
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)
    shutil.rmtree(folder)


#: Lose the rights of root, which no mode binds. Modules load before, for their folder may be root's too.
UNPRIVILEGED = """
import sqlite3, tempfile
import structgen.cache.audit, structgen.cache.store
unpack(value(0))  # by kernels
Path("/").as_uri()
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
assert not os.access(folder, os.W_OK)
"""


def read_only(folder: Path) -> None:
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        path.chmod(0o444)
    folder.chmod(0o555)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "log left behind"])
def test_a_read_only_folder_serves_hits(public_folder: Path, closed: bool) -> None:
    folder = public_folder / "cache"
    run(
        f"""
        cache = Cache(folder)
        cache.put("key0", value(0), label="label")
        cache.put("key1", value(1))
        cache.get("key0")
        if {closed}:
            cache.close()
        sys.stdout.flush()
        os._exit(0)
        """,
        folder,
    )
    assert (folder / "cache.db-wal").exists() is not closed
    read_only(folder)
    script = """
    cache = Cache(folder)
    check(cache.get("key0"), 0)
    check(cache.get("key1"), 1)
    assert "key0" in cache
    assert cache.get("other") is None
    assert sorted(entry.key for entry in cache.entries()) == ["key0", "key1"]
    assert cache.verify() == []
    warnings.simplefilter("always", CacheWarning)
    with warnings.catch_warnings(record=True) as caught:
        assert not cache.put("key0", value(0, 1))
        assert not cache.put("other", value(2))
        cache.discard("key1")
    assert len(caught) == 1, caught
    check(cache.get("key1"), 1)
    """
    run(textwrap.dedent(UNPRIVILEGED) + textwrap.dedent(script), folder)


def test_a_forbidden_folder_means_one_warning(public_folder: Path) -> None:
    folder = public_folder / "cache"
    Cache(folder).put("key", b"value")
    folder.chmod(0o700 if os.geteuid() == 0 else 0)
    script = """
    warnings.simplefilter("always", CacheWarning)
    for place in (folder, folder / "sub", folder.parent / "new"):
        cache = Cache(place)
        with warnings.catch_warnings(record=True) as caught:
            assert cache.get("key") is None
            assert not cache.put("key", value(1))
            assert cache.get("key") is None
            assert cache.entries() == []
            cache.discard("key")
        assert len(caught) == 1, caught
    """
    public_folder.chmod(0o555)
    run(textwrap.dedent(UNPRIVILEGED) + textwrap.dedent(script), folder)


@pytest.mark.parametrize("limit", [200_000, 20_000], ids=["in the value", "in the database"])
def test_no_space(tmp_path: Path, limit: int) -> None:
    """A file size limit stands for a full disk: writes fail with an `OSError`, or inside SQLite."""
    report = run(
        f"""
        cache = Cache(folder)
        cache.put("key0", value(0))
        cache.get("key0")
        large = 0 if {limit} > 100_000 else 1
        if large:
            # Fill the log up to where the next transaction ends beyond the limit; values stay below it.
            while (folder / "cache.db-wal").stat().st_size < {limit}:
                cache.put("key1", value(1))
        before = {{path.name for path in folder.glob("*.val")}}
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, hard))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CacheWarning)
            assert not cache.put(f"key{{large}}", value(large, 1))
            assert not cache.put(f"key{{large}}", value(large, 1))
        assert len(caught) == 1, caught
        assert {{path.name for path in folder.glob("*.val")}} == before
        check(cache.get("key0"), 0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert cache.put(f"key{{large}}", value(large, 1))
        print(caught[0].message)
        """,
        tmp_path / "cache",
    )
    assert ("File too large" if limit > 100_000 else "OperationalError") in report
    assert Cache(tmp_path / "cache").verify() == []
