"""What lazy indexes learn, on its way to the cache: when it is written, by whom, and over what."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from judges.naive import small_vocabulary
from test_cache import recorded
from test_cache_processes import run

import structgen as sg
from structgen import grammar_store, index_store
from structgen.cache import folder as cache_folder
from structgen.index_store import WriteBack, cache_key
from structgen.runtime.grammar.tables import GrammarTables
from structgen.runtime.pushdown.shared_masks import SharedMasks
from structgen.storage.container import pack, unpack

VOCABULARY = small_vocabulary()


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    WriteBack._waiting.clear()
    yield
    WriteBack._waiting.clear()


def definition(number: int) -> sg.Regex:
    return sg.Regex(f"[a-c]{{{number % 10 + 9}}}{'x' * (number // 10 + 1)}")


def learned(cache: sg.Cache, number: int, rows: int = 3) -> sg.Index:
    """An index that worked out some rows, of which nothing is written yet."""
    index = sg.compile(definition(number), VOCABULARY, cache=cache, eager=False)
    index.machine._told._written = 1 << 30  # type: ignore[union-attr]
    guide = sg.Guide(index)
    for _ in range(rows):
        guide.bitmask()
        assert guide.advance(ord("a"))
    return index


def known(cache: sg.Cache, number: int) -> int:
    """How many rows the entry in the cache knows."""
    buffer = cache.get(cache_key(definition(number), VOCABULARY))
    assert buffer is not None
    return sg.Index.from_buffer(buffer, VOCABULARY).machine.known_rows


def test_an_index_ends_with_its_last_user(tmp_path: Path) -> None:
    """Nothing that waits to be written keeps it, nor does a cycle."""
    with sg.Cache(tmp_path) as cache:
        index = learned(cache, 0)
        guide, end = sg.Guide(index), weakref.ref(index)
        gc.disable()
        try:
            del index
            assert end() is not None
            del guide
            assert end() is None
        finally:
            gc.enable()


def test_what_was_learned_is_written_by_the_next_call(tmp_path: Path) -> None:
    with sg.Cache(tmp_path) as cache:
        index = learned(cache, 0)
        machine = weakref.ref(index.machine)
        assert known(cache, 0) == 0
        del index
        assert known(cache, 0) == 0
        sg.compile(sg.Regex("a"), VOCABULARY)
        assert known(cache, 0) == 3
        gc.collect()
        assert machine() is None


def test_what_was_learned_is_written_by_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step writes. The thread empties the queue, also of indexes that are gone, and ends; another one begins."""
    writers = set[str]()
    put = sg.Cache.put

    def noted(self: sg.Cache, *args: Any, **kwargs: Any) -> bool:
        writers.add(threading.current_thread().name)
        return put(self, *args, **kwargs)

    with sg.Cache(tmp_path) as cache:
        other = sg.compile(definition(1), VOCABULARY, cache=cache, eager=False)
        index = learned(cache, 0)
        del index
        monkeypatch.setattr(sg.Cache, "put", noted)
        guide = sg.Guide(other)
        guide.bitmask()
        settle()
        assert (known(cache, 0), known(cache, 1)) == (3, 1)
        for _ in range(3):
            assert guide.advance(ord("a"))
            guide.bitmask()
        settle()
        assert known(cache, 1) >= 3
    assert writers == {"structgen-write-back"}


def settle() -> None:
    """Wait for the thread that writes."""
    writer = WriteBack._writer
    assert writer is not None
    writer.join(60)
    assert not writer.is_alive()


def test_few_wait(tmp_path: Path) -> None:
    with sg.Cache(tmp_path) as cache:
        indexes = [learned(cache, number) for number in range(index_store.MOST_WAITING + 4)]
        machines = [weakref.ref(index.machine) for index in indexes]
        while indexes:
            del indexes[0]
        gc.collect()
        assert [machine() is None for machine in machines] == [True] * 4 + [False] * index_store.MOST_WAITING
        WriteBack.flush_waiting()
        rows = [known(cache, number) for number in range(index_store.MOST_WAITING + 4)]
        assert rows == [0] * 4 + [3] * index_store.MOST_WAITING


def test_an_index_that_learned_nothing_waits_for_nothing(tmp_path: Path) -> None:
    with sg.Cache(tmp_path) as cache:
        index = sg.compile(definition(0), VOCABULARY, cache=cache, eager=False)
        del index
        assert not WriteBack._waiting


@pytest.mark.parametrize("later", [2, 5, 7])
def test_an_entry_never_gives_way_to_one_that_knows_less(tmp_path: Path, later: int) -> None:
    """As of two processes, each with an index of its own."""
    indexes = [learned(sg.Cache(tmp_path), 0, rows) for rows in (5, later)]
    indexes.reverse()  # the one that knows five ends first
    while indexes:
        indexes.pop()
        WriteBack.flush_waiting()
    assert known(sg.Cache(tmp_path), 0) == max(5, later)


def test_compiling_eagerly_replaces_what_was_learned(tmp_path: Path) -> None:
    with sg.Cache(tmp_path) as cache:
        index = learned(cache, 0)
        del index
        complete = sg.compile(definition(0), VOCABULARY, cache=cache)
        assert known(cache, 0) == complete.states


@pytest.mark.nightly
def test_the_collector_comes_inside_every_call_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes end while a value is written, while entries are evicted, while files are deleted."""
    cache = sg.Cache(tmp_path / "small", size_limit=20_000)
    kept = sg.Cache(tmp_path / "kept")
    dying: list[list[Any]] = []
    for number in range(12):
        cycle: list[Any] = [learned(cache if number % 2 else kept, number)]
        cycle.append(cycle)
        dying.append(cycle)
    collecting, ended = False, 0

    def notice(phase: str, _: object) -> None:
        nonlocal collecting
        collecting = phase == "start"

    put = sg.Cache.put

    def watched(self: sg.Cache, *args: Any, **kwargs: Any) -> bool:
        assert not collecting
        return put(self, *args, **kwargs)

    def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
        def calling(*args: Any, **kwargs: Any) -> Any:
            nonlocal ended
            if dying:
                dying.pop()
                gc.collect()
                ended += 1
            return call(*args, **kwargs)

        return calling

    monkeypatch.setattr(sg.Cache, "put", watched)
    for name in ("write", "remove", "status", "new_name", "strays"):
        monkeypatch.setattr(cache_folder, name, interrupted(getattr(cache_folder, name)))
    gc.callbacks.append(notice)
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with recorded() as caught:
            for number in range(40):
                assert cache.put(f"key{number}", bytes(2000))
                assert cache.get(f"key{number}") is not None
            assert ended == 12
            sg.compile(sg.Regex("a"), VOCABULARY, cache=cache)
        assert not caught
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(notice)
    assert sum(path.stat().st_size for path in cache.directory.glob("*.val")) <= 20_000
    problems = cache.verify()
    assert {problem.kind for problem in problems} <= {"damaged"}, problems  # these values are no containers
    assert [known(kept, number) for number in range(0, 12, 2)] == [3] * 6
    assert not WriteBack._waiting


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_index_ends_under_a_lock_that_a_fork_waits_for(tmp_path: Path) -> None:
    """A fork takes the lock of writers, then that of readers; whoever reads must not come to want to write.

    An index ends in the child, too, which writes what it learned.
    """
    run(
        f"""
        import gc, threading
        sys.path.insert(0, {os.fspath(Path(__file__).parents[1])!r})
        from judges.naive import small_vocabulary
        from structgen.cache.reader import Reader
        import structgen as sg

        cache = Cache(folder)
        gc.disable()
        vocabulary = small_vocabulary()

        def learned(count):
            index = sg.compile(sg.Regex(f"[a-c]{{{{{{count}}}}}}x"), vocabulary, cache=cache, eager=False)
            index.machine._told._written = 1 << 30
            guide = sg.Guide(index)
            for _ in range(3):
                guide.bitmask()
                guide.advance(97)
            index.me = [index]
            return index

        dying, inherited = learned(9), learned(10)
        identify = Reader._identify

        def interrupted(self):
            global dying
            if dying is not None:
                forking.start()
                time.sleep(0.5)  # so that it waits for us; a late one finds nothing wrong
                dying = None
                gc.collect()
            return identify(self)

        def fork():
            global inherited, status
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                inherited = None
                gc.collect()
                learned(11)
                os._exit(0)
            status = os.waitpid(child, 0)[1]

        forking = threading.Thread(target=fork)
        Reader._identify = interrupted
        cache.get("key")
        forking.join()
        assert (dying, status) == (None, 0)
        ranks = [entry.rank for entry in cache.entries() if "{{10}}" in entry.label]
        assert ranks == [4]  # the child wrote that when it compiled the next one
        """,
        tmp_path / "cache",
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_end_of_a_process_has_written_what_it_learned(tmp_path: Path) -> None:
    """Its thread may be writing then, and while it forks; a child has a thread of its own."""
    run(
        f"""
        sys.path.insert(0, {os.fspath(Path(__file__).parents[1])!r})
        from judges.naive import small_vocabulary
        from structgen.index_store import WriteBack
        import structgen as sg

        put = sg.Cache.put

        def slow(*arguments, **options):
            time.sleep(0.2)
            return put(*arguments, **options)

        definition = sg.JsonSchema({{"properties": {{"a": {{"type": "string"}}}}}})
        index = sg.compile(definition, small_vocabulary(), cache=Cache(folder), eager=False)
        sg.Cache.put = slow
        guide = sg.Guide(index)
        for byte in b'{{"a": "x':
            guide.bitmask()
            assert guide.advance(byte)
        assert WriteBack._writer.is_alive()
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            assert not WriteBack._writer.is_alive()
            guide.advance(34)
            guide.bitmask()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """,
        tmp_path / "cache",
    )
    (rank,) = [entry.rank for entry in sg.Cache(tmp_path / "cache").entries() if entry.kind == "json_schema"]
    assert rank >= 10


@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="the end of Python 3.12 begins no threads")
@pytest.mark.parametrize("hangs", ["writing", "looking up"])
def test_a_folder_that_hangs_does_not_keep_a_process_from_its_end(tmp_path: Path, hangs: str) -> None:
    """What was learned is lost then; a folder that works has it, whoever looks into one that does not."""
    run(
        f"""
        import threading
        sys.path.insert(0, {os.fspath(Path(__file__).parents[1])!r})
        from judges.naive import small_vocabulary
        from structgen.cache import fork
        from structgen.cache.reader import Reader, _orphans
        import structgen as sg

        cache = Cache(folder, timeout=0.5 if {hangs!r} == "writing" else 100)
        index = sg.compile(sg.Regex("[a-c]{{9}}x"), small_vocabulary(), cache=cache, eager=False)
        index.machine._told._written = 1 << 30
        guide = sg.Guide(index)
        for _ in range(3):
            guide.bitmask()
            guide.advance(97)

        is_held = threading.Event()

        def hang(*_, **__):
            is_held.set()
            threading.Event().wait()

        if {hangs!r} == "writing":
            sg.Cache.put = hang
        else:
            reader = Reader(folder)
            reader.rows()
            _orphans.add(reader._connection)
            reader._connection = None

            def look_up():
                with fork.READING:
                    hang()

            threading.Thread(target=look_up, daemon=True).start()
            is_held.wait()
        """,
        tmp_path / "cache",
    )
    (rank,) = [entry.rank for entry in sg.Cache(tmp_path / "cache").entries()]
    assert (rank > 1) == (hangs == "looking up")


# -- entries that cannot be read -------------------------------------------------------------------------

ERRORS = [ValueError, TypeError, OverflowError, AssertionError, MemoryError, RecursionError, IndexError]


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_an_entry_breaks_is_a_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def failing(*_: object, **__: object) -> Any:
        raise error

    cache = sg.Cache(tmp_path)
    grammar = sg.Grammar('start: "a" /[a-c]+/')
    schema = sg.JsonSchema({"properties": {"a": {"type": "string"}}})
    # Rows that are shared stay with a vocabulary: the first one is not that of other tests, nor the second one's.
    first, second = (small_vocabulary((error.__name__.encode(),)) for _ in "ab")
    for each in (definition(0), grammar, schema):
        sg.compile(each, first, cache=cache)
    assert {entry.kind for entry in cache.entries()} >= {"regex", "grammar", "json_schema", "tables", "shared"}
    grammar_store.forget()
    with monkeypatch.context() as patch:
        patch.setattr(sg.Index, "from_buffer", failing)
        patch.setattr(GrammarTables, "from_sections", failing)
        patch.setattr(SharedMasks, "from_buffer", failing)
        for each in (definition(0), grammar, schema):
            assert sg.compile(each, second, cache=cache).origin == "compiled"
    assert {entry.kind for entry in cache.entries()} >= {"regex", "grammar", "json_schema", "tables", "shared"}
    for each in (definition(0), grammar, schema):
        assert sg.compile(each, second, cache=cache).origin == "cache"


@pytest.mark.parametrize(
    "fields",
    [
        {"states": 10**12}, {"states": 2**31}, {"states": -1}, {"states": 10**30}, {"compile_seconds": 10**400},
        {"compile_seconds": float("nan")}, {"start": 10**12}, {"start": None}, {"relaxations": "x"}, {"kind": []},
        {"definition": 7}, {"vocabulary": ""},
    ],
    ids=lambda fields: repr(fields)[:30],
)  # fmt: skip
def test_damage_with_a_good_checksum_is_a_miss(tmp_path: Path, fields: dict[str, Any]) -> None:
    cache = sg.Cache(tmp_path)
    sg.compile(definition(0), VOCABULARY, cache=cache)
    key = cache_key(definition(0), VOCABULARY)
    buffer = cache.get(key)
    assert buffer is not None
    meta, sections = unpack(bytes(buffer))
    cache.put(key, pack({**meta, **fields}, sections))
    index = sg.compile(definition(0), VOCABULARY, cache=cache)
    assert index.match(b"aaaaaaaaax").accepted
    assert known(cache, 0) == index.states
    assert sys.getsizeof(index.compile_seconds) < 100
