"""The cache on disk, as one process sees it: values, upkeep, hostile folders, hostile archives."""

from __future__ import annotations

import copy
import errno
import hashlib
import io
import json
import os
import pickle
import sqlite3
import tarfile
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen.cache import folder as cache_folder
from structgen.cache.cache import Cache
from structgen.cache.entry import Entry
from structgen.cache.front import FolderFront
from structgen.cache.in_memory import InMemory
from structgen.cache.reader import Reader
from structgen.cache.remote.values import ObjectStore
from structgen.errors import CacheError, CacheWarning, FormatError
from structgen.storage.container import pack, unpack

SMALL, MAPPED = 1000, cache_folder.MAPPED_FROM


def container(seed: int, nbytes: int = SMALL) -> bytes:
    """A whole container file of about ``nbytes`` bytes."""
    return pack({"seed": seed}, {"data": np.random.default_rng(seed).integers(0, 256, nbytes, np.uint8)})


def sql(directory: Path, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
    """What somebody with write access to the folder can do."""
    with closing(sqlite3.connect(directory / "cache.db", isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def file_of(directory: Path, key: str) -> Path:
    ((name,),) = sql(directory, "SELECT filename FROM Cache WHERE key = ?", (key,))
    return directory / str(name)


def age(directory: Path, key: str, seconds: float) -> None:
    """Make an entry look as if it was stored and used that long ago."""
    sql(directory, "UPDATE Cache SET store_time = store_time - ? WHERE key = ?", (seconds, key))
    path = file_of(directory, key)
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def content(cache: Cache, key: str) -> bytes | None:
    buffer = cache.get(key)
    return None if buffer is None else bytes(buffer)


@contextmanager
def recorded() -> Iterator[list[warnings.WarningMessage]]:
    """The cache's warnings, which end no statement here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CacheWarning)
        yield caught


def values_in(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.val")}


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache(tmp_path / "cache") as cache:
        yield cache


# -- values ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [SMALL, MAPPED])
def test_a_value_comes_back_read_only_with_its_label_and_kind(cache: Cache, nbytes: int) -> None:
    value = container(1, nbytes)
    assert cache.get("key") is None
    assert cache.put("key", value, label="(ab)+ für 日本", kind="index")
    buffer = cache.get("key")
    assert buffer is not None
    assert bytes(buffer) == value
    assert buffer.readonly
    assert unpack(buffer)[0] == {"seed": 1}
    assert "key" in cache
    (entry,) = cache.entries()
    assert (entry.key, entry.label, entry.kind) == ("key", "(ab)+ für 日本", "index")
    assert entry.nbytes == len(value)
    assert entry.used >= entry.stored > 1.7e9


@pytest.mark.parametrize("nbytes", [SMALL, MAPPED])
@pytest.mark.parametrize("change", ["put", "discard", "clear", "close"])
def test_a_buffer_outlives_its_entry(cache: Cache, nbytes: int, change: str) -> None:
    value = container(1, nbytes)
    cache.put("key", value)
    buffer = cache.get("key")
    assert buffer is not None
    {
        "put": lambda: cache.put("key", container(2, nbytes)),
        "discard": lambda: cache.discard("key"),
        "clear": cache.clear,
        "close": cache.close,
    }[change]()
    assert bytes(buffer) == value


def test_replacing_and_discarding_leave_no_file_behind(cache: Cache) -> None:
    cache.put("key", container(1))
    cache.put("key", container(2))
    assert content(cache, "key") == container(2)
    assert len(values_in(cache.directory)) == len(cache) == 1
    cache.discard("key")
    cache.discard("key")
    assert cache.get("key") is None
    assert "key" not in cache
    assert not values_in(cache.directory)


@pytest.mark.parametrize("key", ["", "a/b", "..\\a", "a b", "ä", "a\n", "\0", "x" * 201, 7, None, b"bytes"])
def test_a_malformed_key_is_refused(cache: Cache, key: Any) -> None:
    for call in (cache.get, cache.discard, lambda key: cache.put(key, b"value")):
        with pytest.raises(CacheError, match="is not a cache key"):
            call(key)
    assert key not in cache


@pytest.mark.parametrize("key", ["x" * 200, "..", "-", "a.B_c-9"])
def test_keys_are_no_file_names(cache: Cache, key: str) -> None:
    assert cache.put(key, b"value")
    assert content(cache, key) == b"value"
    assert all(len(path.name) < 40 for path in cache.directory.iterdir())


@pytest.mark.parametrize("value", ["text", None, 7, bytearray(b"value"), memoryview(b"value")])
def test_only_bytes_are_kept(cache: Cache, value: Any) -> None:
    with pytest.raises(CacheError, match="bytes only"):
        cache.put("key", value)


def test_an_empty_value_is_a_value(cache: Cache) -> None:
    assert cache.put("key", b"")
    assert content(cache, "key") == b""


def test_labels_cannot_control_a_terminal(cache: Cache) -> None:
    cache.put("key", b"value", label="\x1b[2Jred\ud800" + "x" * 500, kind="a\nb")
    (entry,) = cache.entries()
    assert entry.label.startswith("\ufffd[2Jred\ufffdxxx")
    assert len(entry.label) == 200
    assert entry.kind == "a\ufffdb"


def test_an_empty_cache_is_true(cache: Cache) -> None:
    assert len(cache) == 0
    assert bool(cache)


# -- the folder ------------------------------------------------------------------------------------------


def test_nothing_is_made_before_the_first_put(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "a" / "b")
    assert cache.get("key") is None
    assert "key" not in cache
    cache.discard("key")
    assert (cache.entries(), cache.verify(), cache.prune(0), cache.clear()) == ([], [], [], 0)
    cache.close()
    assert not (tmp_path / "a").exists()
    cache.put("key", b"value")
    assert cache.directory.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in cache.directory.glob("*.val"))


def test_closing_leaves_the_database_and_the_values(cache: Cache) -> None:
    cache.put("key", b"value")
    assert content(cache, "key") == b"value"
    cache.close()
    assert {path.suffix for path in cache.directory.iterdir()} == {".db", ".val"}
    assert content(cache, "key") == b"value"


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert Cache().directory == tmp_path / "elsewhere"
    monkeypatch.delenv("STRUCTGEN_CACHE_DIR")
    assert Cache().directory.name == "structgen"
    monkeypatch.chdir(tmp_path)
    assert Cache("relative").directory == tmp_path / "relative"


@pytest.mark.parametrize("name", ["a b", "#?%20&mode=rwc", "日本", "x'y\"z"])
def test_odd_folder_names(tmp_path: Path, name: str) -> None:
    cache = Cache(tmp_path / name)
    assert cache.put("key", b"value")
    assert content(cache, "key") == b"value"
    assert os.listdir(tmp_path) == [name]


def test_a_variable_in_the_name_is_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEWHERE", "elsewhere")
    with pytest.warns(CacheWarning, match="variable"):
        assert not Cache(tmp_path / "$SOMEWHERE").put("key", b"value")
    assert not (tmp_path / "elsewhere").exists()


def test_two_caches_share_a_folder(cache: Cache) -> None:
    other = Cache(cache.directory)
    cache.put("key", container(1))
    assert content(other, "key") == container(1)
    other.put("key", container(2))
    assert content(cache, "key") == container(2)
    assert other.clear() == 1
    assert cache.get("key") is None
    assert cache.put("key", container(3))
    assert content(other, "key") == container(3)


def test_the_folder_is_deleted_under_an_open_cache(cache: Cache) -> None:
    cache.put("key", container(1))
    assert content(cache, "key") == container(1)
    for path in cache.directory.iterdir():
        path.unlink()
    cache.directory.rmdir()
    assert cache.get("key") is None
    assert cache.put("key", container(2))
    assert content(cache, "key") == container(2)
    assert cache.verify() == []


def test_a_database_that_another_process_is_making_is_a_miss(cache: Cache) -> None:
    cache.directory.mkdir()
    (cache.directory / "cache.db").touch()
    assert cache.get("key") is None
    assert cache.entries() == []
    assert cache.put("key", container(1))
    assert content(cache, "key") == container(1)


def test_the_tables_are_deleted_under_an_open_cache(cache: Cache) -> None:
    cache.put("key", container(1))
    sql(cache.directory, "DROP TABLE Cache")
    with pytest.warns(CacheWarning, match="no such table"):
        assert not cache.put("key", container(2))
    assert cache.put("key", container(2))
    assert content(cache, "key") == container(2)


def test_another_process_makes_the_folder_anew(cache: Cache) -> None:
    cache.put("key", container(1))
    assert content(cache, "key") == container(1)
    for path in cache.directory.iterdir():
        path.unlink()
    Cache(cache.directory).put("key", container(2))
    assert content(cache, "key") == container(2)


def test_threads(cache: Cache) -> None:
    failures: list[object] = []

    def work(number: int) -> None:
        for turn in range(10):
            key = f"key{turn % 3}"
            if not cache.put(key, container(turn % 3)):
                failures.append((number, turn, "put"))
            if content(cache, key) not in (None, container(turn % 3)):
                failures.append((number, turn, "get"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [entry.key for entry in sorted(cache.entries(), key=lambda e: e.key)] == ["key0", "key1", "key2"]
    assert len(values_in(cache.directory)) == 3


# -- eviction --------------------------------------------------------------------------------------------


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    value = b"x" * 1000
    cache = Cache(tmp_path, size_limit=5000)
    for number in range(5):
        cache.put(f"key{number}", value)
        age(tmp_path, f"key{number}", 1000 - number)
    assert [entry.key for entry in cache.entries()] == ["key0", "key1", "key2", "key3", "key4"]
    cache.get("key0")  # is now the one that was used last
    assert cache.put("new", value)
    assert {entry.key for entry in cache.entries()} == {"key0", "key3", "key4", "new"}
    assert len(values_in(tmp_path)) == 4


def test_the_value_that_was_just_put_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path, size_limit=1000)
    assert cache.put("first", b"x" * 600)
    assert cache.put("second", b"y" * 1000)
    assert [entry.key for entry in cache.entries()] == ["second"]


def test_a_value_over_the_limit_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path, size_limit=1000)
    cache.put("key", b"x" * 600)
    with pytest.warns(CacheWarning, match="1001 bytes exceeds the limit of 1000"):
        assert not cache.put("large", b"y" * 1001)
    assert [entry.key for entry in cache.entries()] == ["key"]


def test_prune_returns_what_it_evicts(cache: Cache) -> None:
    for number in range(4):
        cache.put(f"key{number}", b"x" * 100, label=f"label {number}")
        age(cache.directory, f"key{number}", 1000 - number)
    assert cache.prune(400) == []
    evicted = cache.prune(250)
    assert [(entry.key, entry.label) for entry in evicted] == [("key0", "label 0"), ("key1", "label 1")]
    assert [entry.key for entry in cache.entries()] == ["key2", "key3"]
    assert len(cache.prune(0)) == 2
    assert not values_in(cache.directory)


def test_hits_do_not_write_the_database(cache: Cache) -> None:
    cache.put("key", b"value")
    age(cache.directory, "key", 1000)
    cache.close()
    before = (cache.directory / "cache.db").read_bytes()
    (entry,) = cache.entries()
    cache.get("key")
    assert cache.entries()[0].used > entry.used + 900
    cache.close()
    assert (cache.directory / "cache.db").read_bytes() == before


def test_image_builds_that_reset_file_times_keep_the_order_of_storing(cache: Cache) -> None:
    for key in ("first", "second"):
        cache.put(key, b"value")
        os.utime(file_of(cache.directory, key), (0, 0))
    assert [entry.key for entry in cache.entries()] == ["first", "second"]
    assert all(entry.used == entry.stored for entry in cache.entries())


def test_nothing_was_used_in_the_future(cache: Cache) -> None:
    cache.put("key", b"value")
    os.utime(file_of(cache.directory, "key"), (1e12, 1e12))
    assert cache.entries()[0].used <= time.time()


# -- damage ----------------------------------------------------------------------------------------------


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def grow(path: Path) -> None:
    os.truncate(path, path.stat().st_size + 1)


@pytest.mark.parametrize("nbytes", [SMALL, MAPPED])
@pytest.mark.parametrize("resize", [truncate, grow])
def test_a_file_of_another_size_is_a_miss(cache: Cache, nbytes: int, resize: Callable[[Path], None]) -> None:
    cache.put("key", container(1, nbytes))
    resize(file_of(cache.directory, "key"))
    assert cache.get("key") is None
    assert "key" not in cache
    assert cache.put("key", container(2))
    assert content(cache, "key") == container(2)


def test_a_missing_file_is_a_miss(cache: Cache) -> None:
    cache.put("key", container(1))
    file_of(cache.directory, "key").unlink()
    assert cache.get("key") is None
    assert "key" not in cache
    assert len(cache) == 0
    assert cache.put("key", container(2))
    assert content(cache, "key") == container(2)


def test_verify_finds_and_repairs(cache: Cache) -> None:
    for key in ("sound", "short", "flipped", "missing"):
        cache.put(key, container(len(key)))
    truncate(file_of(cache.directory, "short"))
    flip(file_of(cache.directory, "flipped"))
    file_of(cache.directory, "missing").unlink()
    names = ("a" * 32 + ".val", "b" * 32 + ".val", "notes.txt")
    old, young, other = (cache.directory / name for name in names)
    for path in (old, young, other):
        path.write_bytes(b"?")
    for path in (old, other):
        os.utime(path, (1e9, 1e9))

    expected = {("damaged", "short"), ("damaged", "flipped"), ("missing", "missing"), ("stray", str(old))}
    problems = cache.verify()
    assert {(problem.kind, problem.where) for problem in problems} == expected
    assert "checksum" in next(problem.what for problem in problems if problem.where == "flipped")
    assert cache.verify(repair=True) == problems
    assert cache.verify() == []
    assert not old.exists()
    assert young.exists()
    assert other.exists()
    assert [entry.key for entry in cache.entries()] == ["sound"]
    assert values_in(cache.directory) == {file_of(cache.directory, "sound").name, young.name}


def test_verify_does_not_report_what_changes_meanwhile(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("key", container(1))

    def replaced(buffer: object, where: str) -> None:
        cache.put("key", container(2))
        raise FormatError("the file went away while it was read", where=where)

    monkeypatch.setattr("structgen.cache.audit.check_value", replaced)
    assert cache.verify(repair=True) == []
    assert content(cache, "key") == container(2)


def test_verify_does_not_count_as_a_use(cache: Cache) -> None:
    cache.put("key", container(1))
    age(cache.directory, "key", 1000)
    before = cache.entries()
    cache.verify()
    cache.export(cache.directory.parent / "archive.tar")
    assert cache.entries() == before


def garbage(directory: Path) -> None:
    directory.mkdir()
    (directory / "cache.db").write_bytes(b"garbage " * 1000)


def folder_for_database(directory: Path) -> None:
    (directory / "cache.db").mkdir(parents=True)


def overwritten(directory: Path) -> None:
    Cache(directory).put("other", b"value")
    with open(directory / "cache.db", "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 20000)


def other_tables(directory: Path) -> None:
    directory.mkdir()
    sql(directory, "CREATE TABLE Cache (key)")


@pytest.mark.parametrize("ruin", [garbage, folder_for_database, overwritten, other_tables])
def test_an_unusable_folder_means_one_warning(tmp_path: Path, ruin: Callable[[Path], None]) -> None:
    ruin(tmp_path / "cache")
    cache = Cache(tmp_path / "cache")
    with recorded() as caught:
        assert not cache.put("key", b"value")
        assert cache.get("key") is None
        assert not cache.put("key", b"value")
        assert cache.entries() == []
        assert "key" not in cache
        cache.discard("key")
    assert len(caught) == 1
    assert "Work goes on without it" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert [problem.kind for problem in cache.verify()] == ["database"]


@pytest.mark.parametrize("mend", [Cache.clear, lambda cache: cache.verify(repair=True)])
@pytest.mark.parametrize("ruin", [garbage, overwritten])
def test_a_damaged_database_can_be_made_anew(
    tmp_path: Path, ruin: Callable[[Path], None], mend: Callable[[Cache], object]
) -> None:
    ruin(tmp_path / "cache")
    cache = Cache(tmp_path / "cache")
    mend(cache)
    assert cache.put("key", b"value")
    assert content(cache, "key") == b"value"
    assert len(values_in(cache.directory)) == 1


def test_upkeep_of_an_unusable_folder_says_so(tmp_path: Path) -> None:
    folder_for_database(tmp_path / "cache")
    cache = Cache(tmp_path / "cache")
    for call in (cache.clear, lambda: cache.prune(0)):
        with pytest.raises(CacheError, match="cannot be written"):
            call()


def test_a_full_disk_keeps_what_was_there(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put("key", container(1))

    def no_space(path: Path, value: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(cache_folder, "write", no_space)
        with pytest.warns(CacheWarning, match="No space left"):
            assert not cache.put("key", container(2))
    assert content(cache, "key") == container(1)
    assert cache.put("key", container(2))


def test_a_busy_database_is_not_waited_for_beyond_the_timeout(tmp_path: Path) -> None:
    cache = Cache(tmp_path, timeout=0.05)
    cache.put("key", container(1))
    connection = sqlite3.connect(tmp_path / "cache.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    fresh = Cache(tmp_path, timeout=0.05)
    for busy in (cache, fresh):
        with recorded() as caught:
            assert not busy.put("key", container(2))
            assert not busy.put("key", container(2))
            assert content(busy, "key") == container(1)
        assert len(caught) == 1
        assert "locked" in str(caught[0].message)
    assert len(values_in(tmp_path)) == 1
    connection.execute("ROLLBACK")
    connection.close()
    assert cache.put("key", container(2))
    assert content(fresh, "key") == container(2)


# -- a hostile folder ------------------------------------------------------------------------------------

INSERT = (
    "INSERT OR REPLACE INTO Cache (key, raw, store_time, access_time, tag, size, mode, filename, value)"
    " VALUES (:key, :raw, :store_time, 0, :tag, :size, :mode, :filename, :value)"
)


def plant(directory: Path, **columns: Any) -> None:
    row = {"key": "key", "raw": 1, "store_time": 1.7e9, "tag": None, "size": 0, "mode": 2}
    with closing(sqlite3.connect(directory / "cache.db", isolation_level=None)) as connection:
        connection.execute(INSERT, {**row, "filename": None, "value": None, **columns})


def payload(marker: Path) -> bytes:
    """A pickle, in protocol 0, that makes a file when it is loaded."""
    return f"cposix\nmkdir\n(S'{marker}'\ntR.".encode()


def use_everything(cache: Cache, archive: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        for call in (cache.get, cache.__contains__, cache.discard):
            call("key")
        cache.get("key")
        cache.entries()
        cache.verify()
        cache.export(archive)
        cache.prune(1 << 20)
        cache.put("key", b"value")
        cache.put("good", container(1))
        cache.verify(repair=True)
        cache.clear()


def plant_inline(directory: Path, code: bytes) -> None:
    plant(directory, mode=4, value=code)


def plant_file(directory: Path, code: bytes) -> None:
    name = "c" * 32 + ".val"
    (directory / name).write_bytes(code)
    plant(directory, mode=4, filename=name, size=len(code))


def plant_key(directory: Path, code: bytes) -> None:
    plant(directory, key=code, raw=0, mode=1, value=b"value")


@pytest.mark.skipif(os.name != "posix", reason="the payload calls posix.mkdir")
@pytest.mark.parametrize("attack", [plant_inline, plant_file, plant_key])
def test_a_planted_pickle_is_never_loaded(cache: Cache, tmp_path: Path, attack: Callable[..., None]) -> None:
    cache.put("good", container(1))
    attack(cache.directory, payload(tmp_path / "marker"))
    use_everything(cache, tmp_path / "archive.tar")
    assert not (tmp_path / "marker").exists()


@pytest.mark.skipif(os.name != "posix", reason="the payload calls posix.mkdir")
@pytest.mark.parametrize("attack", [plant_inline, plant_file, plant_key])
def test_the_planted_pickle_is_real(cache: Cache, tmp_path: Path, attack: Callable[..., None]) -> None:
    """What `BytesDisk` is for: diskcache alone runs it. With our disk, its own methods refuse."""
    import diskcache

    from structgen.cache.disk import BytesDisk

    cache.put("good", container(1))
    attack(cache.directory, payload(tmp_path / "marker"))

    def read(disk: Any) -> None:
        with diskcache.Cache(cache.directory, disk=disk) as plain:
            plain.get("key")
            list(plain)

    with pytest.raises(CacheError):
        read(BytesDisk)
    assert not (tmp_path / "marker").exists()
    read(diskcache.Disk)
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("name", ["../secret", "sub/../../secret", "{absolute}", "x/secret", "secret", "", None, 7])
def test_a_planted_path_is_not_followed(cache: Cache, tmp_path: Path, name: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(container(9))
    cache.put("good", container(1))
    (cache.directory / "secret").write_bytes(container(9))
    name = str(secret) if name == "{absolute}" else name
    plant(cache.directory, filename=name, size=secret.stat().st_size)
    with pytest.warns(CacheWarning, match="is not the name of a value file"):
        assert cache.get("key") is None
    assert [(problem.kind, problem.where) for problem in cache.verify()] == [("foreign", "row 2")]
    assert len(cache) == 1
    use_everything(cache, tmp_path / "archive.tar")
    assert secret.read_bytes() == (cache.directory / "secret").read_bytes() == container(9)


@pytest.mark.parametrize("call", ["discard", "put", "verify", "clear"])
def test_a_planted_path_is_not_deleted(cache: Cache, tmp_path: Path, call: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    cache.put("key", container(1))
    sql(cache.directory, "UPDATE Cache SET filename = '../secret'")
    {
        "discard": lambda: cache.discard("key"),
        "put": lambda: cache.put("key", container(2)),
        "verify": lambda: cache.verify(repair=True),
        "clear": cache.clear,
    }[call]()
    assert secret.read_bytes() == b"secret"
    assert content(cache, "key") == (container(2) if call == "put" else None)


def link(path: Path, secret: Path) -> None:
    path.symlink_to(secret)


def pipe(path: Path, secret: Path) -> None:
    os.mkfifo(path)


def subfolder(path: Path, secret: Path) -> None:
    path.mkdir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs links and pipes")
@pytest.mark.parametrize("make", [link, pipe, subfolder])
def test_a_value_file_is_a_regular_file(cache: Cache, tmp_path: Path, make: Callable[..., None]) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(container(9))
    cache.put("key", container(9))
    path = file_of(cache.directory, "key")
    path.unlink()
    make(path, secret)
    with pytest.warns(CacheWarning):
        assert cache.get("key") is None
    assert "key" not in cache
    assert [problem.kind for problem in cache.verify(repair=True)] == ["missing"]
    assert cache.verify() == []
    assert secret.read_bytes() == container(9)


@pytest.mark.parametrize(
    "columns",
    [
        {"mode": 1, "value": b"value"},
        {"mode": 3, "filename": "d" * 32 + ".val"},
        {"mode": None},
        {"raw": 0, "filename": "d" * 32 + ".val"},
        {"key": 7, "filename": "d" * 32 + ".val"},
        {"key": "../x", "filename": "d" * 32 + ".val"},
        {"filename": "d" * 32 + ".val", "size": -1},
        {"filename": "d" * 32 + ".val", "size": "many"},
        {"filename": "d" * 32 + ".val", "size": 5, "store_time": float("inf")},
        {"filename": "d" * 32 + ".val", "size": 5, "store_time": None},
        {"filename": "D" * 32 + ".val", "size": 5},
        {"filename": "d" * 32 + ".val\n", "size": 5},
    ],
)
def test_foreign_rows_are_left_out_and_removed(cache: Cache, columns: dict[str, Any]) -> None:
    cache.put("good", container(1))
    (cache.directory / ("d" * 32 + ".val")).write_bytes(b"value")
    plant(cache.directory, **columns)
    assert [entry.key for entry in cache.entries()] == ["good"]
    assert [problem.kind for problem in cache.verify(repair=True)] == ["foreign"]
    assert cache.verify() == []
    assert content(cache, "good") == container(1)


def test_text_that_is_not_utf_8_is_one_foreign_row(cache: Cache) -> None:
    cache.put("good", container(1))
    plant(cache.directory, filename="d" * 32 + ".val")
    sql(cache.directory, "UPDATE Cache SET key = CAST(X'FF' AS TEXT), tag = key WHERE key = 'key'")
    assert [entry.key for entry in cache.entries()] == ["good"]
    assert [problem.kind for problem in cache.verify(repair=True)] == ["foreign"]
    assert cache.verify() == []


def test_a_row_of_another_key_is_a_miss(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQLite may return from a read-only folder that changes under it all the same."""
    cache.put("key", container(1))
    front = cache._front
    assert isinstance(front, FolderFront)
    row = front.reader.find("key")
    monkeypatch.setattr(front.reader, "find", lambda key, *, anew: row)
    assert content(cache, "key") == container(1)
    assert cache.get("other") is None
    assert "other" not in cache


@pytest.mark.parametrize("tag", [b"\xff", "{", "[" * 3000, "[1]", '{"label": 7}', 7, "x" * 5000])
def test_a_planted_tag_is_an_empty_label(cache: Cache, tag: Any) -> None:
    cache.put("key", container(1), label="label", kind="kind")
    sql(cache.directory, "UPDATE Cache SET tag = ?", (tag,))
    (entry,) = cache.entries()
    assert (entry.label, entry.kind) == ("", "")


def test_planted_settings_do_not_matter(cache: Cache, tmp_path: Path) -> None:
    cache.put("key", container(1))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    planted = {
        "_directory": str(elsewhere),
        "_timeout": 1e9,
        "close": "text",
        "disk_directory": str(elsewhere),
        "disk__directory": str(elsewhere),
        "disk_min_file_size": 1 << 40,
        "eviction_policy": "?",
        "sqlite_journal_mode": "off",
        "sqlite_writable_schema": 1,
        "statistics": 1,
        "cull_limit": 10,
    }
    for name, value in planted.items():
        sql(cache.directory, "INSERT OR REPLACE INTO Settings VALUES (?, ?)", (name, value))
    assert cache.put("key", container(1))
    assert sql(cache.directory, "PRAGMA journal_mode") == [("wal",)]
    fresh = Cache(cache.directory)
    assert fresh.put("key", container(2))
    assert content(fresh, "key") == container(2)
    assert not os.listdir(elsewhere)
    foreign = {problem.where for problem in fresh.verify(repair=True)}
    assert {f"setting {name!r}" for name in ("_directory", "close", "sqlite_writable_schema")} <= foreign
    assert fresh.verify() == []


def test_the_disk_takes_nothing_but_bytes(tmp_path: Path) -> None:
    from structgen.cache.disk import BytesDisk

    disk = BytesDisk(str(tmp_path), min_file_size=1 << 40, pickle_protocol=5)
    calls: list[Callable[[], object]] = [
        lambda: disk.put(7),
        lambda: disk.put("../x"),
        lambda: disk.hash(("a", "tuple")),
        lambda: disk.get(b"N.", 0),
        lambda: disk.get(b"bytes", 1),
        lambda: disk.store("text", False),
        lambda: disk.store(io.BytesIO(b"stream"), True),
        lambda: disk.fetch(1, None, b"value", False),
        lambda: disk.fetch(3, "e" * 32 + ".val", None, False),
        lambda: disk.fetch(4, None, b"N.", False),
        lambda: disk.fetch(2, "../x", None, True),
    ]
    for call in calls:
        with pytest.raises(CacheError):
            call()
    size, mode, name, inline = disk.store(b"value", False)
    assert (size, mode, inline) == (5, 2, None)
    assert disk.fetch(mode, name, inline, False) == b"value"
    file = disk.fetch(mode, name, inline, True)
    assert not isinstance(file, bytes)
    with file:
        assert file.read() == b"value"
    disk.remove("../" + tmp_path.name + "/" + name)
    assert (tmp_path / name).exists()
    disk.remove(name)
    assert not os.listdir(tmp_path)


# -- archives --------------------------------------------------------------------------------------------


def test_export_and_import(cache: Cache, tmp_path: Path) -> None:
    for number in range(3):
        cache.put("x" * (150 + number), container(number, number * MAPPED), label=f"{number}", kind="index")
    assert cache.export(tmp_path / "a.tar") == 3
    assert cache.export(tmp_path / "b.tar") == 3
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    other = Cache(tmp_path / "other")
    assert other.import_(tmp_path / "a.tar") == 3

    def everything(cache: Cache) -> list[object]:
        entries = sorted(cache.entries(), key=lambda entry: entry.key)
        return [(e.key, e.label, e.kind, content(cache, e.key)) for e in entries]

    assert everything(other) == everything(cache)
    assert other.verify() == []
    with tarfile.open(tmp_path / "a.tar") as archive:
        names = [f"values/00000{number}.sgx" for number in range(3)]
        assert archive.getnames() == ["manifest.jsonl", *names]


def test_export_of_some(cache: Cache, tmp_path: Path) -> None:
    for key in ("a", "b", "c"):
        cache.put(key, container(1))
    flip(file_of(cache.directory, "b"))
    target = tmp_path / "archive.tar"
    assert cache.export(target, ["c", "c"]) == 1
    before = target.read_bytes()
    for key, reason in (("b", "checksum"), ("d", "no such entry"), ("../x", "no such entry")):
        with pytest.raises(CacheError, match=reason):
            cache.export(target, ["a", key])
    assert target.read_bytes() == before
    assert cache.export(target) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.tar", "cache"]


def member(name: str, data: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def manifest(*lines: object, **header: Any) -> tuple[tarfile.TarInfo, bytes]:
    first = {"format": "structgen cache", "version": 3, **header}
    return member("manifest.jsonl", "".join(json.dumps(each) + "\n" for each in (first, *lines)).encode())


def line(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"key": "key", "kind": "", "label": "", "nbytes": len(container(1)), "rank": 0, **fields}
    head = "".join(f"{found[name]}\n" for name in ("key", "label", "kind", "nbytes", "rank")).encode()
    return {"digest": hashlib.blake2b(head + container(1), digest_size=32).hexdigest(), **found}


FIRST = "values/000000.sgx"
HOSTILE = {
    "no manifest": [member(FIRST, container(1))],
    "not JSON": [member("manifest.jsonl", b"{\n")],
    "deep JSON": [member("manifest.jsonl", b"[" * 100_000)],
    "deep JSON on a line": [member("manifest.jsonl", b"[" * 8000 + b"\n")],
    "not an object": [member("manifest.jsonl", b"[]\n")],
    "nothing": [member("manifest.jsonl", b"")],
    "huge number": [member("manifest.jsonl", b"9" * 7_000 + b"\n")],
    "one line": [member("manifest.jsonl", b'{"entries": [' + b"[]," * 100_000 + b"[]]}\n")],
    "one document": [member("manifest.json", b'{"format": "structgen cache", "version": 1, "entries": []}')],
    "another version": [manifest(version=2)],
    "more in the first line": [manifest(entries=[])],
    "a line is no object": [manifest("entry")],
    "a line is empty": [member("manifest.jsonl", manifest()[1] + b"\n" + json.dumps(line()).encode() + b"\n")],
    "a line is cut": [member("manifest.jsonl", manifest(line())[1][:-1]), member(FIRST, container(1))],
    "a field is missing": [manifest({"key": "key"})],
    "a field too many": [manifest(line(path="x")), member(FIRST, container(1))],
    "a key is a path": [manifest(line(key="../x")), member(FIRST, container(1))],
    "a key is a number": [manifest(line(key=7)), member(FIRST, container(1))],
    "a label is a list": [manifest(line(label=[])), member(FIRST, container(1))],
    "a label is long": [manifest(line(label="x" * 201)), member(FIRST, container(1))],
    "a size is a lie": [manifest(line(nbytes=5)), member(FIRST, container(1))],
    "a size is no number": [manifest(line(nbytes="many")), member(FIRST, container(1))],
    "a size is infinite": [manifest(line(nbytes=float("inf"))), member(FIRST, container(1))],
    "a size is 1e999": [
        member("manifest.jsonl", manifest(line(nbytes=0))[1].replace(b": 0, ", b": 1e999, ")),
        member(FIRST, container(1)),
    ],
    "a size is a fraction": [manifest(line(nbytes=5.5)), member(FIRST, container(1))],
    "a size is true": [manifest(line(nbytes=True)), member(FIRST, container(1))],
    "a size is negative": [manifest(line(nbytes=-5)), member(FIRST, container(1))],
    "a size of 400 digits": [manifest(line(nbytes=10**400)), member(FIRST, container(1))],
    "a digest is a number": [manifest(line(digest=7)), member(FIRST, container(1))],
    "another digest": [manifest(line(digest="0" * 64)), member(FIRST, container(1))],
    "another value": [manifest(line()), member(FIRST, container(2))],
    "a rank is infinite": [manifest(line(rank=float("inf"))), member(FIRST, container(1))],
    "no values": [manifest(line())],
    "climbing": [manifest(line()), member("../../values/000000.sgx", container(1))],
    "absolute": [manifest(line()), member("/tmp/x", container(1))],
    "a symbolic link": [manifest(line()), member(FIRST, type=tarfile.SYMTYPE, linkname="/etc/passwd")],
    "a hard link": [manifest(line()), member(FIRST, type=tarfile.LNKTYPE, linkname="manifest.json")],
    "a device": [manifest(line()), member(FIRST, type=tarfile.CHRTYPE)],
    "a folder": [manifest(line()), member("values", type=tarfile.DIRTYPE)],
    "sparse": [manifest(line()), member(FIRST, container(1), type=tarfile.GNUTYPE_SPARSE)],
    "extended header": [manifest(line()), member("x" * 300, container(1))],
    "not a container": [manifest(line(nbytes=5)), member(FIRST, b"value")],
    "damaged": [manifest(line()), member(FIRST, container(1)[:-1] + b"!")],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_archive_is_refused(
    cache: Cache, tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    archive = tmp_path / "archive.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    with pytest.raises(FormatError, match=r"archive\.tar"):
        cache.import_(archive)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive.tar"]


def test_a_header_that_announces_terabytes(cache: Cache, tmp_path: Path) -> None:
    info, _ = member("manifest.jsonl")
    info.size = 8 << 40
    archive = tmp_path / "archive.tar"
    archive.write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(FormatError, match="cannot have 8796093022208 bytes"):
        cache.import_(archive)


def test_a_header_that_announces_more_than_is_there(cache: Cache, tmp_path: Path) -> None:
    info, _ = member("manifest.jsonl")
    info.size = 5000
    archive = tmp_path / "archive.tar"
    archive.write_bytes(info.tobuf() + bytes(1024))
    with pytest.raises(FormatError, match="cannot have 5000 bytes"):
        cache.import_(archive)


def test_no_cut_or_flipped_archive_is_taken_for_whole(cache: Cache, tmp_path: Path) -> None:
    cache.put("a", container(1, 100))
    cache.put("b", container(2, 100))
    whole = tmp_path / "whole.tar"
    cache.export(whole)
    data = whole.read_bytes()
    end = max(data.rfind(bytes([byte])) for byte in range(1, 256))
    broken = tmp_path / "broken.tar"
    other = Cache(tmp_path / "other")
    for cut in range(0, end, 97):
        broken.write_bytes(data[:cut])
        with pytest.raises(FormatError):
            other.import_(broken)
    for place in range(0, end, 61):
        broken.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        try:
            other.import_(broken)  # a letter of a label, or padding, may differ
        except FormatError:
            continue
    values = {content(other, entry.key) for entry in other.entries()}
    assert values <= {container(1, 100), container(2, 100)}
    assert other.verify() == []


def test_an_import_that_the_cache_cannot_hold_is_refused_before_anything_is_stored(
    cache: Cache, tmp_path: Path
) -> None:
    for key in ("a", "b", "c"):
        cache.put(key, container(1, 2000))
    cache.export(tmp_path / "archive.tar")
    other = Cache(tmp_path / "other", size_limit=5000)
    with pytest.raises(CacheError, match=r"holds \d+ bytes, the cache at most 5000; 0 of"):
        other.import_(tmp_path / "archive.tar")
    assert len(other) == 0


def test_an_import_counts_what_is_there_in_the_end(cache: Cache, tmp_path: Path) -> None:
    for key in ("a", "b", "c"):
        cache.put(key, container(1, 2000))
    nbytes = sum(entry.nbytes for entry in cache.entries())
    cache.export(tmp_path / "archive.tar")
    other = Cache(tmp_path / "other", size_limit=nbytes)
    other.put("old", b"x" * 1000)
    age(other.directory, "old", 1000)
    count = other.import_(tmp_path / "archive.tar")  # a full cache is emptied by a tenth
    assert count == len(other) < 3
    assert "old" not in other


def test_an_import_that_stops_says_where_and_why(cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("a", "b", "c"):
        cache.put(key, container(1))
    archive = tmp_path / "archive.tar"
    cache.export(archive)
    write, left = cache_folder.write, 2

    def full(path: str, value: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, value)

    other = Cache(tmp_path / "other")
    with monkeypatch.context() as patch:
        patch.setattr(cache_folder, "write", full)
        with pytest.raises(CacheError, match=r"No space left on device; 2 of the archive's entries were stored"):
            other.import_(archive)
    data = archive.read_bytes()
    archive.write_bytes(data[: data.index(b"values/000001.sgx")])
    with pytest.raises(FormatError, match=r"no header for values/000001.sgx; 1 of the archive's entries were stored"):
        other.import_(archive)
    assert {entry.key for entry in other.entries()} == {"a", "b"}


def test_an_import_into_an_unusable_folder_says_so(cache: Cache, tmp_path: Path) -> None:
    cache.put("key", container(1))
    cache.export(tmp_path / "archive.tar")
    garbage(tmp_path / "other")
    with pytest.raises(CacheError, match=r"cannot be written.*0 of the archive's entries"):
        Cache(tmp_path / "other").import_(tmp_path / "archive.tar")


def test_a_large_manifest_of_nothing_is_refused_at_its_first_line(cache: Cache, tmp_path: Path) -> None:
    """However much there is, no more than a line is parsed."""
    archive = tmp_path / "archive.tar"
    for data in (manifest()[1] + b"[]," * (5 << 20), manifest()[1] + b"[]\n" * (5 << 20), b"[]," * (20 << 20)):
        with tarfile.open(archive, "w") as tar:
            tar.addfile(member("manifest.jsonl", data)[0], io.BytesIO(data))
        tracemalloc.start()
        with pytest.raises(FormatError, match=r"a line of the manifest is no object|cannot have"):
            cache.import_(archive)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3 * len(data)


def test_what_is_written_is_for_this_user_only(cache: Cache, tmp_path: Path) -> None:
    """Whatever the umask says."""
    before = os.umask(0)
    try:
        cache.put("key", container(1))
        cache.get("key")
        cache.export(tmp_path / "archive.tar")
    finally:
        os.umask(before)
    assert cache.directory.stat().st_mode & 0o777 == 0o700
    files = [*cache.directory.iterdir(), tmp_path / "archive.tar"]
    assert len(files) >= 4
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_entries_are_values() -> None:
    entry = Entry("key", "label", "index", 5, 1.0, 2.0)
    with pytest.raises(AttributeError):
        entry.key = "other"  # type: ignore[misc]


def test_a_value_is_found_by_its_name(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the folder was checked, without the database; the next value of a key has a name of its own."""
    for number in range(4):
        for key in ("a", "b"):
            cache.put(key, container(number), rank=1 + number)
    assert content(cache, "a") == container(3)
    cache.put("a", container(4), rank=5)
    cache.put("c", container(5))
    looked: list[str] = []
    find = Reader.find

    def counted(reader: Reader, key: str, *, anew: bool = False) -> object:
        looked.append(key)
        return find(reader, key, anew=anew)

    monkeypatch.setattr(Reader, "find", counted)
    found = [content(cache, key) for key in ("a", "b", "c")]
    assert found == [container(4), container(3), container(5)]
    assert looked == ["b"]  # of which every other value has no name of its key's
    assert len(list(cache.directory.glob("*.val"))) == 3


@pytest.mark.parametrize("call", ["put", "discard"])
def test_a_file_that_a_writer_left_behind_goes(cache: Cache, call: str) -> None:
    cache.put("key", container(0))
    cache.put("other", container(0))
    assert content(cache, "other") == container(0)  # so that the folder was checked
    cache_folder.write(cache_folder.value_path(cache.directory, cache_folder.name_of("left")), container(1))
    assert content(cache, "left") == container(1)  # it ended before its row was there
    if call == "put":
        cache.put("left", container(2))
    else:
        cache.discard("left")
    assert content(cache, "left") == (container(2) if call == "put" else None)
    assert len(list(cache.directory.glob("*.val"))) == 2 + (call == "put")


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
@pytest.mark.parametrize("store", [False, True])
def test_a_copy_is_another_cache_of_the_same_folder(twin_of: Any, store: bool, tmp_path: Path) -> None:
    there: Any = {}
    if store:
        pytest.importorskip("obstore")
        there = {"store": ObjectStore((tmp_path / "store").as_uri(), write="now")}
    with Cache(tmp_path / "folder", size_limit=1 << 20, timeout=3, **there) as cache:
        cache.put("key", container(1))
        with twin_of(cache) as twin:
            assert (twin.directory, twin.size_limit, twin.timeout) == (cache.directory, 1 << 20, 3)
            assert (twin.remote is None) != store
            assert content(twin, "key") == container(1)
            assert twin.metrics().hits_folder == 1
            assert cache.metrics().hits_folder == 0
    with pytest.raises(CacheError, match="in memory"):
        twin_of(InMemory())
