"""Many threads over one index of each kind, and forks in the middle of it: every mask is that of a thread alone.

``make test-threads PYTHON=python3.14t`` runs this file without the GIL.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import structgen as sg
from hostile.concurrent_work import (
    DEFINITIONS,
    LIMITABLE,
    SEEDS,
    LockOrder,
    check,
    compiled,
    expected,
    in_background,
    in_child,
    together,
    vocabulary,
)
from structgen.integrations.requests import Indexes
from structgen.runtime.index.healing import heal
from structgen.runtime.index.index import Index
from structgen.runtime.pushdown.store import store
from structgen.runtime.rows.row_pool import RowPool
from structgen.system import garbage
from structgen.system.locks import SLICE, Lock, Rank

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
#: Forks in the middle of walks of other threads: CPython's own locks of dictionaries have to be safe.
forks_beside_walks = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without the GIL a dictionary's lock can be handed to a thread that the child does not have",
)
every_kind = pytest.mark.parametrize("kind", list(DEFINITIONS))
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def small_turns() -> Iterator[None]:
    """Let threads run for a microsecond at a time, so that they come between each other everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def order() -> Iterator[LockOrder]:
    """All locks are taken in their order."""
    order = LockOrder()
    with order.watched():
        yield order
    assert order.violations == []
    assert order.taken


def check_batch(index: sg.Index, kind: str) -> None:
    """All texts as rows of a batch."""
    _, wanted = expected(kind)
    batch = sg.GuideBatch(index.vocabulary, [index] * SEEDS)
    for step in range(10):
        assert [mask.tobytes() for mask in batch.bitmask()] == [each.masks[step] for each in wanted]
        assert batch.advance([each.tokens[step] for each in wanted]).all()


def check_device(index: sg.Index, kind: str) -> None:
    """The same with the masks on a device."""
    if not find_spec("torch"):
        return
    from structgen.runtime.logits.devices import DeviceRows

    _, wanted = expected(kind)
    batch = sg.GuideBatch(index.vocabulary, [index] * SEEDS)
    device = DeviceRows(batch.rows, "cpu")
    device.preload(index)
    for step in range(10):
        masks = device.pool[device.slots(batch.row_ids()).long()].numpy()
        assert [mask.tobytes() for mask in masks] == [each.masks[step] for each in wanted]
        assert batch.advance([each.tokens[step] for each in wanted]).all()


def check_saved(index: sg.Index, kind: str) -> None:
    """What is saved meanwhile has right rows."""
    check(Index.from_buffer(index.to_bytes(), vocabulary()), kind)


def check_healed(index: sg.Index, kind: str) -> None:
    """Behind prompts whose last token may be spelled anew, texts go on as they would alone."""
    _, wanted = expected(kind)
    for byte in b'"1(,:= atn':
        guide = sg.Guide(heal([1, byte], vocabulary(), index).index)
        assert guide.index is index or guide.advance(byte)
        for mask, token in zip(*wanted[byte % SEEDS], strict=True):
            assert guide.bitmask().tobytes() == mask
            assert guide.advance(token)


@every_kind
def test_threads_have_the_masks_of_one(kind: str, order: LockOrder) -> None:
    """Eight threads, and beside them what else touches rows: filling, saving, batches, devices, limits, healing."""
    expected(kind)
    index = compiled(kind)
    work: list[Callable[[], object]] = [partial(check, index, kind, shift) for shift in range(8)]
    others = [check_batch, check_device, check_saved, check_healed]
    work += [partial(each, index, kind) for each in others]
    work += [index.machine.fill, index.machine.fill]
    if kind in LIMITABLE:
        expected(kind, is_limited=True)
        work += 2 * [partial(check, index, kind, is_limited=True)]
    together(work)
    check(index, kind)
    check_saved(index, kind)


@pytest.mark.parametrize("kind", ["json", "json in any order", "json with unique items", "gbnf"])
def test_threads_move_to_new_stores(kind: str, order: LockOrder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores that are full give way to others while texts go through them."""
    expected(kind)
    monkeypatch.setattr(store, "MOST_CONFIGS", 6)
    for _ in range(3):
        index = compiled(kind)
        first = index.machine.stepper()
        together([partial(check, index, kind, shift) for shift in range(8)])
        assert index.machine.stepper() is not first


@every_kind
def test_rows_filled_beside_others(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a row gets its number there is time for another thread; all rows that are stored are right."""
    expected(kind)
    size = RowPool.__len__

    def slowly(pool: RowPool) -> int:
        found = size(pool)
        time.sleep(1e-5)
        return found

    for _ in range(2):
        index = compiled(kind)
        with monkeypatch.context() as patched:
            patched.setattr(RowPool, "__len__", slowly)
            together([partial(index.machine.fill, threads=2), *(partial(check, index, kind, i) for i in range(3))])
        check(Index.from_buffer(index.to_bytes(), vocabulary()), kind)


def test_device_automata_fill_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from structgen.runtime.logits.device_automata import DeviceAutomata

    for kind in ("regex", "counted regex"):
        index = compiled(kind)
        alone = DeviceAutomata([compiled(kind)], "cpu")
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(DeviceAutomata, [index], "cpu")
            together([partial(check, index, kind, i) for i in range(3)])
        assert np.array_equal(rows_of(made.result()), rows_of(alone))


def rows_of(automata: object) -> np.ndarray:
    """The mask of every state and count."""
    found: np.ndarray = automata.pool[automata._row_of.long()].numpy()  # type: ignore[attr-defined]
    return found


def test_rows_do_not_wait_for_a_fill() -> None:
    """A fill passes the lock on: a thread that asks for a row gets it before all of them are there."""
    schema = {"anyOf": [{"const": f"{i:03}" * 9} for i in range(300)]}
    index = sg.compile(sg.JsonSchema(schema), vocabulary(), eager=False)
    seen: list[bool] = []

    def ask(*_: object) -> None:
        if not seen:
            with ThreadPoolExecutor(1) as pool:
                mask = pool.submit(sg.Guide(index).bitmask).result(60)
            seen.append(bool(mask.any()) and not index.machine.is_filled())

    index.machine.fill(progress=ask)  # which is called without the lock, so that others can have it
    assert seen == [True]


class TestLock:
    def test_waiting_threads_have_their_turn(self) -> None:
        lock, turns = Lock(Rank.MACHINE), []

        def take() -> None:
            with lock:
                turns.append(1)

        with lock, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(take)
            deadline = time.monotonic() + 60
            with lock:  # held twice
                while not turns and time.monotonic() < deadline:
                    lock.give_way()
            waiting.result(60)
        assert turns
        assert lock.passed_on

    def test_is_kept_within_a_slice(self) -> None:
        lock = Lock(Rank.MACHINE)
        with lock:
            lock._since = time.monotonic() + 1000 * SLICE
            lock.give_way()
        assert lock.passed_on == 0

    def test_a_collection_finds_no_lock_taken(self) -> None:
        """Passing a lock on holds none of the interpreter's: what a collection frees in the midst of it needs them."""
        code = """
import gc, threading
from structgen.system.locks import Lock, Rank

class Cycle: ...

gc.disable()
gc.set_threshold(1)
lock = Lock(Rank.MACHINE)
for _ in range(200):
    cycle = Cycle()
    cycle.itself, cycle.local = cycle, threading.local()
    del cycle
    with lock:
        lock._since -= 1000
        gc.enable()
        lock.give_way()
        gc.disable()
assert lock.passed_on == 200
"""
        subprocess.run([sys.executable, "-c", code], timeout=60, check=True)

    def test_order_is_watched(self) -> None:
        first, second, order = Lock(Rank.MACHINE), Lock(Rank.LEAF), LockOrder()
        with order.watched():
            with first, second, first, second:
                pass
            assert order.violations == []
            with second, first:
                pass
        assert len(order.violations) == 1


@forks
class TestFork:
    @forks_beside_walks
    @every_kind
    def test_in_the_middle_of_walks(self, kind: str) -> None:
        """Children hang in no lock, and what they work out goes on from what is whole."""
        expected(kind)
        for _ in range(2):
            index = compiled(kind)
            with in_background(partial(check, index, kind, 1), 3):
                for _ in range(2):
                    assert in_child(partial(check, index, kind))
            check(index, kind)

    @forks_beside_walks
    def test_while_rows_are_filled(self) -> None:
        for kind in ("regex", "json", "lark"):
            expected(kind)
            with in_background(partial(check_filled, kind), 2):
                assert in_child(partial(check_filled, kind))

    def test_inside_a_fill_with_threads(self) -> None:
        """The child of a callback goes on with the fill, whose threads it does not have."""
        index = compiled("counted regex")
        children: list[int] = []

        def fork(*_: object) -> None:
            if not children:
                children.append(os.fork())
                if not children[0]:
                    signal.alarm(120)

        try:
            index.machine.fill(threads=3, progress=fork)
            check(index, "counted regex")
        finally:
            if children == [0]:
                os._exit(sys.exc_info()[0] is not None)
        assert os.waitpid(children[0], 0)[1] == 0

    def test_locks_of_threads_that_are_gone(self) -> None:
        """A lock that another thread holds is waited for, and is free in the child."""
        lock, state = Lock(Rank.MACHINE), [0, 0]

        def change() -> None:
            with lock:
                state[0] += 1
                time.sleep(1e-4)
                state[1] += 1

        def look() -> None:
            assert lock.acquire(timeout=60)
            assert state[0] == state[1]

        with in_background(change, 3):
            for _ in range(20):
                assert in_child(look)

    @forks_beside_walks
    def test_pools(self) -> None:
        """Processes of pools that are made by forks, while threads walk."""
        context = multiprocessing.get_context("fork")
        expected("json")
        for made in (1, 2):
            _shared[:] = [compiled("json")]
            with in_background(partial(check, _shared[0], "json", made), 3):
                with ProcessPoolExecutor(2, mp_context=context) as executor:
                    assert list(executor.map(_walk_shared, range(4), timeout=120)) == [True] * 4
                with context.Pool(2) as pool:
                    assert pool.map_async(_walk_shared, range(4)).get(120) == [True] * 4

    def test_the_collector_goes_on(self) -> None:
        """In a child of a process in which another thread compiles."""
        import gc

        with ThreadPoolExecutor(1) as pool:
            paused = garbage.paused()
            pool.submit(paused.__enter__).result(60)
            assert not gc.isenabled()
            assert in_child(lambda: _assert(gc.isenabled()))
            pool.submit(paused.__exit__, None, None, None).result(60)
        assert gc.isenabled()

    def test_requests_that_threads_were_at(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A child compiles what another thread of its parent is compiling."""
        import threading

        begun, go_on, find, parent = threading.Event(), threading.Event(), Indexes._find, os.getpid()

        def wait(indexes: Indexes, *wanted: Any) -> sg.Index:
            if os.getpid() == parent:
                begun.set()
                go_on.wait(120)
            return find(indexes, *wanted)

        monkeypatch.setattr(Indexes, "_find", wait)
        indexes = Indexes(vocabulary())
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(indexes.of, DEFINITIONS["regex"])
            begun.wait(60)
            found = in_child(lambda: _assert(indexes.of(DEFINITIONS["regex"]) is indexes.of(DEFINITIONS["regex"])))
            go_on.set()
            assert waiting.result(120) is indexes.of(DEFINITIONS["regex"])
        assert found


_shared: list[sg.Index] = []


def _walk_shared(shift: int) -> bool:
    check(_shared[0], "json", shift)
    return True


def _assert(truth: bool) -> None:
    assert truth


def check_filled(kind: str) -> None:
    """Fill an index, and check it."""
    index = compiled(kind)
    index.machine.fill(threads=2)
    check(index, kind)


def test_properties_are_found_once() -> None:
    """Of threads that ask for the same at once, all get the same."""
    from structgen.system.properties import cached_property

    class Thing:
        @cached_property
        def it(self) -> object:
            """What it is."""
            time.sleep(1e-3)
            return object()

    for _ in range(5):
        with ThreadPoolExecutor(6) as pool:
            assert len(set(pool.map(getattr, [Thing()] * 6, ["it"] * 6))) == 1
    assert Thing.it.__doc__ == "What it is."
