"""Databases that somebody else wrote, and what they cost; waits, eviction and room on the disk."""

from __future__ import annotations

import itertools
import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_cache import container, content, file_of, plant, recorded, sql, values_in
from test_cache_processes import run

from structgen.cache import database, front, store
from structgen.cache.cache import Cache
from structgen.cache.store import Store
from structgen.errors import CacheError

pytestmark = pytest.mark.nightly

# -- the schema ------------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"

PLANTED = {
    "a view": [
        "DROP TABLE Cache",
        f"CREATE VIEW Cache AS {ENDLESS} SELECT x AS rowid, 'key' AS key, 1 AS raw, 0.0 AS store_time, '' AS tag,"
        " 1 AS size, 2 AS mode, x AS filename FROM n",
    ],
    "a view of settings": ["DROP TABLE Settings", f"CREATE VIEW Settings AS {ENDLESS} SELECT x AS key FROM n"],
    "a trigger": [
        f"CREATE TRIGGER t AFTER INSERT ON Cache BEGIN INSERT INTO Settings {ENDLESS} SELECT x, x FROM n; END"
    ],
    "another trigger by a known name": [
        "DROP TRIGGER Settings_count_insert",
        "CREATE TRIGGER Settings_count_insert AFTER INSERT ON Cache FOR EACH ROW BEGIN"
        f" INSERT INTO Settings {ENDLESS} SELECT x, x FROM n; END",
    ],
    "a trigger on settings": [
        f"CREATE TRIGGER t BEFORE INSERT ON Settings BEGIN INSERT INTO Cache (key) {ENDLESS} SELECT x FROM n; END"
    ],
    "an index on an expression": ["CREATE INDEX i ON Cache (abs(size))"],
    "a table with a check": [
        "DROP TABLE Settings",
        "CREATE TABLE Settings (key TEXT NOT NULL UNIQUE, value CHECK (randomblob(1000000000) IS NOT NULL))",
    ],
    "another table": ["CREATE TABLE other (x)"],
}


@pytest.mark.parametrize("statements", PLANTED.values(), ids=PLANTED.keys())
def test_a_database_holds_what_diskcache_makes_or_is_not_used(tmp_path: Path, statements: list[str]) -> None:
    folder = tmp_path / "cache"
    with Cache(folder) as cache:
        cache.put("key", container(1))
    for statement in statements:
        sql(folder, statement)
    run(
        """
        cache = Cache(folder)
        warnings.simplefilter("always", CacheWarning)
        with warnings.catch_warnings(record=True) as caught:
            assert cache.get("key") is None
            assert not cache.put("key", value(1))
            assert not cache.put("other", value(1))
            cache.discard("key")
            assert "key" not in cache
            assert cache.entries() == []
        assert len(caught) == 1
        assert "diskcache" in str(caught[0].message), caught[0].message
        assert [problem.kind for problem in cache.verify()] == ["database"]
        assert [problem.kind for problem in cache.verify(repair=True)] == ["database"]
        assert cache.put("key", value(1))
        check(cache.get("key"), 1)
        assert cache.verify() == []
        """,
        folder,
    )


def test_settings_without_end_are_not_gone_through(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("key", container(1))
    sql(tmp_path, f"INSERT INTO Settings {ENDLESS} SELECT x, x FROM n LIMIT 1000")
    with recorded() as caught:
        assert not cache.put("key", container(2))
    assert "more settings than diskcache" in str(caught[0].message)
    assert content(cache, "key") == container(1)
    assert [problem.kind for problem in cache.verify(repair=True)] == ["database"]
    assert cache.put("key", container(2))
    assert cache.verify() == []


def test_the_schema_is_diskcaches(tmp_path: Path) -> None:
    import diskcache

    diskcache.Cache(tmp_path, eviction_policy="none").close()
    assert set(sql(tmp_path, "SELECT type, name, tbl_name, sql FROM sqlite_master")) == database.SCHEMA


def test_a_statement_ends_at_its_deadline(tmp_path: Path) -> None:
    deadline = database.Deadline()
    connection = database.connect(f"{(tmp_path / 'file.db').as_uri()}?mode=rwc", deadline)
    deadline.restart(0)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(f"{ENDLESS} SELECT COUNT(*) FROM n").fetchall()
    deadline.restart()
    assert connection.execute(f"{ENDLESS} SELECT x FROM n LIMIT 20000").fetchall()[-1] == (20000,)
    connection.close()


def test_every_connection_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path)
    cache.put("key", container(1))
    sql(tmp_path, f"INSERT INTO Cache (key) {ENDLESS} SELECT x FROM n LIMIT 20000")
    monkeypatch.setattr(database.Deadline, "passed", lambda self: True)
    for fresh in (cache, Cache(tmp_path)):
        with recorded() as caught:
            assert fresh.entries() == []
        assert "interrupted" in str(caught[0].message)
    with pytest.raises(CacheError, match="interrupted"):
        cache.prune(0)


# -- rows ------------------------------------------------------------------------------------------------

COLUMNS = ("key", "tag", "size", "mode", "filename", "store_time", "raw")


@pytest.mark.parametrize(("column", "kind"), [*zip(COLUMNS, itertools.cycle(["TEXT", "BLOB"]), strict=False)])
def test_large_values_are_not_loaded(tmp_path: Path, column: str, kind: str) -> None:
    """Whoever cuts a row short of memory here would do it to a server."""
    if kind == "TEXT" and sys.version_info < (3, 11):
        pytest.skip("SQLite can be told the largest value from Python 3.11 on")
    cache = Cache(tmp_path / "cache")
    cache.put("good", container(1))
    plant(cache.directory, filename="d" * 32 + ".val", size=5)
    sql(cache.directory, f"UPDATE Cache SET {column} = CAST(zeroblob(100000000) AS {kind}) WHERE key = 'key'")
    script = """
    cache = Cache(folder)
    warnings.simplefilter("ignore", CacheWarning)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for key in ("key", "good", "other"):
        cache.get(key)
        key in cache
    assert [entry.key for entry in cache.entries()] == ["good"]
    assert cache.put("more", value(1))
    for call in (lambda: cache.prune(1 << 30), lambda: cache.discard("key"), lambda: cache.verify(repair=True)):
        with suppress(CacheError):  # SQLite can't delete what it can't load; then all goes
            call()
    assert cache.put("more", value(1))
    check(cache.get("more"), 1)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert cache.verify() == []
    """
    script = "from structgen.errors import CacheError\n" + textwrap.dedent(script)
    assert int(run(script, cache.directory)) < 60_000  # KiB; half of it is diskcache


@pytest.mark.parametrize("size", [-(10**9), -(1 << 62), -1e300, "many", None, b"bytes"])
def test_sizes_that_nothing_has_lift_no_cap(tmp_path: Path, size: object) -> None:
    cache = Cache(tmp_path, size_limit=5000)
    cache.put("key0", b"x" * 1000)
    plant(tmp_path, size=size, filename="d" * 32 + ".val")
    for number in range(1, 20):
        assert cache.put(f"key{number}", b"x" * 1000)
    assert sum((tmp_path / name).stat().st_size for name in values_in(tmp_path)) <= 5000


@pytest.mark.parametrize("size", [10**15, 1 << 61, (1 << 63) - 1])
def test_a_row_that_claims_much_evicts_nothing_but_itself(tmp_path: Path, size: int) -> None:
    cache = Cache(tmp_path, size_limit=5000)
    for number in range(3):
        cache.put(f"key{number}", b"x" * 1000)
    plant(tmp_path, size=size, filename="d" * 32 + ".val")
    (tmp_path / ("d" * 32 + ".val")).write_bytes(b"little")
    assert cache.put("key3", b"x" * 1000)
    assert {entry.key for entry in cache.entries()} == {f"key{number}" for number in range(4)}
    assert sql(tmp_path, "SELECT COUNT(*) FROM Cache") == [(4,)]


def test_rows_without_files_do_not_make_every_put_evict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, size_limit=5000)
    for number in range(4):
        cache.put(f"key{number}", b"x" * 1200)
    for path in tmp_path.glob("*.val"):
        path.unlink()
    calls = 0
    evict = Store.evict

    def counting(self: Store, *args: Any, **kwargs: Any) -> object:
        nonlocal calls
        calls += 1
        return evict(self, *args, **kwargs)

    monkeypatch.setattr(Store, "evict", counting)
    for number in range(4):
        assert cache.put(f"new{number}", b"x" * 1000)
    assert calls == 1
    assert [entry.key for entry in cache.entries()] == [f"new{number}" for number in range(4)]
    assert sql(tmp_path, "SELECT COUNT(*) FROM Cache") == [(4,)]


# -- waiting ---------------------------------------------------------------------------------------------


class Clock:
    """Time that passes only in `sleep`, and a little at each look."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        self.now += 1e-6
        return self.now

    def time(self) -> float:
        return 1.7e9 + self.monotonic()

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in (store, front):
        monkeypatch.setattr(module, "time", found)
    return found


def empty(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.close(os.open(folder / "cache.db", os.O_CREAT, 0o600))


def filled(folder: Path) -> None:
    with Cache(folder) as cache:
        cache.put("key", container(1))


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
@pytest.mark.parametrize("prepare", [empty, filled])
def test_a_put_waits_for_no_longer_than_its_timeout(
    tmp_path: Path, clock: Clock, lock: str, prepare: Callable[[Path], None]
) -> None:
    """All its statements together, those that set up the database too."""
    prepare(tmp_path / "cache")
    cache = Cache(tmp_path / "cache", timeout=3)
    connection = sqlite3.connect(tmp_path / "cache" / "cache.db", isolation_level=None)
    connection.execute(lock)
    for _ in range(2):
        began = clock.now
        with recorded():
            assert not cache.put("key", container(2))
        assert 3 <= clock.now - began < 3.1
    connection.execute("ROLLBACK")
    connection.close()
    began = clock.now
    assert cache.put("key", container(2))
    assert clock.now - began < 0.1


def test_waiting_for_another_thread_counts(tmp_path: Path, clock: Clock) -> None:
    """A thread that got its turn late tries once, and does not begin to wait."""
    cache = Cache(tmp_path, timeout=3)
    cache.put("key", container(1))
    connection = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")

    class Late:
        def __enter__(self) -> None:
            clock.sleep(3)

        def __exit__(self, *_: object) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch, recorded():
        patch.setattr("structgen.cache.fork.WRITING", Late())
        began = clock.now
        assert not cache.put("key", container(2))
        assert clock.now - began < 3.1
    connection.close()


# -- room ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
@pytest.mark.parametrize("closed", [True, False], ids=["closed", "log left behind"])
@pytest.mark.parametrize("call", ["prune(0)", "clear()"])
def test_a_full_disk_can_be_emptied(tmp_path: Path, closed: bool, call: str) -> None:
    """SQLite can write nothing, not even that rows are gone, and of a closed cache not even the log's index."""
    run(
        f"""
        cache = Cache(folder)
        for number in range(6):
            assert cache.put(f"key{{number}}", value(number))
        if {closed}:
            cache.close()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        fresh = Cache(folder)
        fresh.{call}
        assert not list(folder.glob("*.val"))
        assert fresh.get("key1") is None
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert fresh.prune(1 << 30) == []
        assert fresh.verify() == []
        assert fresh.put("key1", value(1))
        check(fresh.get("key1"), 1)
        """,
        tmp_path / "cache",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_full_disk_keeps_what_may_stay(tmp_path: Path) -> None:
    report = run(
        """
        cache = Cache(folder)
        for number in (1, 3, 5):
            assert cache.put(f"key{number}", value(number))
        nbytes = cache.entries()[0].nbytes
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        evicted = cache.prune(nbytes)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert len(list(folder.glob("*.val"))) == 1
        print(*(entry.key for entry in evicted), *(entry.key for entry in cache.entries()))
        """,
        tmp_path / "cache",
    )
    assert report.split() == ["key1", "key3", "key5"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)], capture_output=True)
    if mount.returncode:
        pytest.skip(f"no small disk here: {mount.stderr.decode().strip()}")
    try:
        run(
            """
            cache = Cache(folder, size_limit=1 << 30)
            warnings.simplefilter("ignore", CacheWarning)
            for number in range(100):
                if not cache.put(f"key{number}", pack({"key": number}, {"data": np.zeros(40_000, np.uint8)})):
                    break
            assert 3 < number < 99
            with open(folder.parent / "rest", "wb", buffering=0) as file, suppress(OSError):
                while file.write(bytes(512)):
                    pass
            before = len(list(folder.glob("*.val")))
            assert len(Cache(folder).prune(100_000)) == before - 2
            assert len(list(folder.glob("*.val"))) == 2
            assert cache.put("key0", value(1))
            assert cache.verify() == []
            """,
            tmp_path / "cache",
        )
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


# -- ranks -----------------------------------------------------------------------------------------------


def test_a_value_gives_way_to_one_of_a_higher_rank(tmp_path: Path) -> None:
    first, second = Cache(tmp_path), Cache(tmp_path)
    for cache, seed, rank, expected in (
        (first, 1, 5, 1), (second, 2, 4, 1), (second, 3, 5, 1), (second, 4, 6, 4), (first, 5, 5, 4), (first, 6, 0, 6),
        (second, 7, 1, 7),
    ):  # fmt: skip
        assert cache.put("key", container(seed), rank=rank)
        assert content(first, "key") == content(second, "key") == container(expected)
        assert len(values_in(tmp_path)) == 1
    assert [entry.rank for entry in first.entries()] == [1]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 5)])
def test_a_rank_counts_for_nothing_without_its_value(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    cache = Cache(tmp_path)
    cache.put("key", container(1), rank=9)
    damage(file_of(tmp_path, "key"))
    assert cache.put("key", container(2), rank=1)
    assert content(cache, "key") == container(2)


def test_ranks_travel(tmp_path: Path) -> None:
    cache, other = Cache(tmp_path / "cache"), Cache(tmp_path / "other")
    cache.put("key", container(1), rank=5)
    cache.export(tmp_path / "archive.tar")
    assert other.import_(tmp_path / "archive.tar") == 1
    other.put("key", container(2), rank=6)
    assert other.import_(tmp_path / "archive.tar") == 1
    assert content(other, "key") == container(2)


def test_what_cannot_be_read_is_discarded(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for error in (ValueError, OverflowError, AssertionError, MemoryError, RecursionError, KeyError):
        cache.put("key", b"value")

        def failing(buffer: memoryview, error: type[Exception] = error) -> None:
            raise error

        assert cache.read("key", failing) is None
        assert "key" not in cache
    cache.put("key", b"value")
    assert cache.read("key", bytes) == b"value"
    assert cache.read("other", bytes) is None
