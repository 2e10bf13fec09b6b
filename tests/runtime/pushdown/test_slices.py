"""Long work of automata with a stack is cut in slices: the same masks, and others have their turn in between."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hostile.hostile_definitions import SCHEMAS
from judges.guides import ids_of_bits
from numpy.typing import NDArray
from test_stacks import ARRAYS, LONG, VOCABULARY

import structgen as sg
from structgen import kernels
from structgen.runtime.core.machine import Config
from structgen.runtime.pushdown import machine as pushdown
from structgen.runtime.pushdown import partial_masks as stack_rows
from structgen.runtime.pushdown import walker as stack_walks
from structgen.runtime.pushdown.distances.token_distances import StackDistances
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.stacks import laid_out
from structgen.runtime.pushdown.store import store
from structgen.runtime.pushdown.walker import StackWalker
from structgen.runtime.rows.bitmask import ids_of
from structgen.system import locks

DEFINITIONS: dict[str, Any] = {
    **{name: definition for name, (definition, *_) in LONG.items()},
    "anything": sg.JsonSchema({}),
    "sixty lengths": sg.JsonSchema(SCHEMAS["sixty lengths of objects"]()),
    "counted words": sg.Gbnf('root ::= ([a-z]{1,30} " "){1,30} [a-z]{1,90}'),
}
every_definition = pytest.mark.parametrize("name", DEFINITIONS)

#: Room for threads, cells, sets, and threads of all sets: none to speak of, and what there is.
TIGHT = {"_MOST_THREADS": 2, "_MOST_CELLS": 2, "_MOST_SETS": 2, "_MOST_MEMBERS": 2}


def machine_of(definition: Any, vocabulary: sg.Vocabulary = VOCABULARY) -> PushdownMachine:
    machine = sg.compile(definition, vocabulary, eager=False).machine
    assert isinstance(machine, PushdownMachine)
    return machine


def walks(machine: PushdownMachine, rng: random.Random, count: int) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Some residual lists, each with a configuration."""
    nodes = len(VOCABULARY.trie.byte)
    for _ in range(count):
        state = rng.randrange(machine.tables.states)
        counts = machine.tables.live[state] >= 0 and not machine.tables.registers[state]
        frames = [x for _ in range(rng.randrange(3)) for x in (rng.randrange(machine.tables.states), 0)]
        residual = np.array(sorted(rng.sample(range(nodes), rng.randrange(1, 12))), np.int32)
        config = state, rng.choice([0, 1, 5]) if counts else 0, *frames
        yield rng.choice([np.zeros(1, np.int32), residual]), config


@every_definition
@pytest.mark.parametrize("room", [TIGHT, {}])
def test_walks_in_slices_find_the_same(name: str, room: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_of(DEFINITIONS[name])
    walker, rng = machine.rows.walker(), random.Random(name)
    for constant, value in room.items():
        monkeypatch.setattr(stack_walks, constant, value)
    for residual, config in walks(machine, rng, 12):
        whole = [each.copy() for each in walker.narrow(residual, config, 1 << 40)]
        for at_once in (0, 50, 500):
            for nodes in (1, 7, 1 << 19):
                monkeypatch.setattr(stack_walks, "_NODES", nodes)
                for expected, found in zip(whole, walker.narrow(residual, config, at_once), strict=True):
                    np.testing.assert_array_equal(found, expected)


@every_definition
def test_threads_that_are_walked_together_allow_the_same(name: str) -> None:
    machine = machine_of(DEFINITIONS[name])
    walker, rng = machine.rows.walker(), random.Random(name)
    config: Any = machine.start
    for _ in range(30):
        tokens = set(ids_of(machine.row(config)).tolist()) - {117}
        found = laid_out(config.threads)
        assert set(walker.whole(*found).tolist()) == tokens
        opening = [token for token in tokens if (VOCABULARY.token(token) or b"")[:1] in (b"a", b"[", b"(")]
        if not tokens:
            break
        config = machine.advance(config, rng.choice(opening or sorted(tokens)))


@every_definition
def test_rows_of_many_threads_are_those_of_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    together, apart = machine_of(DEFINITIONS[name]), machine_of(DEFINITIONS[name])
    monkeypatch.setattr(together, "walked_together", lambda _, threads: together.rows.row_of_all(threads, -1, 1 << 13))
    monkeypatch.setattr(store, "FEW_PARTS", 1)
    walked = Mock(wraps=together.rows.row_of_all)
    monkeypatch.setattr(together.rows, "row_of_all", walked)
    rng, many = random.Random(name), 0
    configs: tuple[Config, Config] = (together.start, apart.start)
    for _ in range(20):
        many += len(configs[0].threads) > 1
        rows = [machine.row(config) for machine, config in zip((together, apart), configs, strict=True)]
        np.testing.assert_array_equal(rows[0], rows[1])
        tokens = sorted(set(ids_of_bits(rows[0])) - {117})
        if not tokens:
            break
        token = rng.choice(tokens)
        configs = together.advance(configs[0], token), apart.advance(configs[1], token)
    assert walked.called == (many > 0)


class Slices:
    """Counts nodes that kernels look at between two times that a machine's lock could be passed on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, walker: StackWalker) -> None:
        self.pauses = 0
        self.most = self._done = 0
        pause = walker._pause

        def turn() -> None:
            self.pauses += 1
            self._done = 0
            pause()

        monkeypatch.setattr(walker, "_pause", turn)
        monkeypatch.setattr(stack_walks, "kernels", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(kernels, name)

    def walk_sets(self, *arguments: Any) -> int:
        progress: NDArray[np.int64] = arguments[10]
        before = int(progress[kernels.P_NODE])
        status = int(kernels.walk_sets(*arguments))
        self._done += int(progress[kernels.P_NODE]) - before
        self.most = max(self.most, self._done)
        return status


def test_a_slice_looks_at_so_many_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long walk no more than a slice is done between two times that others can have their turn."""
    walker = machine_of(sg.Gbnf("root ::= [ -~]*")).rows.walker()  # takes whatever token, so no node is left out
    monkeypatch.setattr(stack_walks, "_NODES", 10)
    slices = Slices(monkeypatch, walker)
    walker.whole(*walker._cells((walker._tables.start, 0)))
    assert slices.pauses > 1
    assert slices.most <= 10


def test_another_thread_has_its_turn_inside_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is asked for in the middle of one walk for another row, and is there before that goes on."""
    monkeypatch.setattr(locks, "SLICE", 0.0)
    monkeypatch.setattr(StackWalker.narrow, "__defaults__", (0,))
    monkeypatch.setattr(stack_walks, "_NODES", 20)
    definition = sg.Gbnf('root ::= "(" root ")" | [a-c]+ "1"')
    machine, again = machine_of(definition), machine_of(definition)
    opened: Config = machine.advance(machine.start, 8)  # "("
    rows: list[NDArray[np.int32]] = []
    answered = threading.Event()

    def ask() -> None:
        rows.append(machine.row(opened))
        answered.set()

    other, inside = threading.Thread(target=ask), []
    original: Callable[[Any], None] = locks.Lock.give_way

    def give_way(lock: Any) -> None:
        if lock is machine.lock and threading.current_thread() is not other:
            if other.ident is None:
                other.start()
            while not answered.is_set() and other.is_alive():
                original(lock)
            inside.append(answered.is_set())
        else:
            original(lock)

    monkeypatch.setattr(locks.Lock, "give_way", give_way)
    row = machine.row(machine.start)
    other.join(60)
    assert inside[0]
    np.testing.assert_array_equal(row, again.row(again.start))
    then: Config = again.advance(again.start, 8)
    np.testing.assert_array_equal(rows[0], again.row(then))


@pytest.mark.nightly
def test_counts_are_told_apart_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = sg.JsonSchema({"type": "string", "pattern": "^[a-c ]*$", "minLength": 30, "maxLength": 200})
    whole = machine_of(schema).rows
    state = next(s for s in range(whole.tables.states) if whole.tables.live[s] >= 0 and not whole._calls(s))
    expected = whole.walker().counted(state, (30, 200))
    assert expected is not None
    monkeypatch.setattr(stack_walks, "_PIECES", 3)
    found = machine_of(schema).rows.walker().counted(state, (30, 200))
    assert found is not None
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["arrays", "a tail that may be empty", "two tails"])
def test_distances_are_found_in_slices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in one piece, and with sets that are forgotten again and again."""
    index, sliced = (sg.compile(DEFINITIONS[name], VOCABULARY, eager=False) for _ in range(2))
    assert isinstance(sliced.machine, PushdownMachine)
    rng, pauses = random.Random(name), 0
    configs: tuple[Config, Config] = (index.machine.start, sliced.machine.start)

    def give_way() -> None:
        nonlocal pauses
        pauses += 1

    for _ in range(8):
        monkeypatch.undo()
        expected = index.distances.row(configs[0], 20), index.distances.farthest(configs[0])
        for constant, value in {"_NODES": 5, **TIGHT}.items():
            monkeypatch.setattr(stack_walks, constant, value)
        monkeypatch.setattr(sliced.machine.rows.walker(), "_pause", give_way)
        row, farthest = sliced.distances.row(configs[1], 20), sliced.distances.farthest(configs[1])
        np.testing.assert_array_equal(row, expected[0])
        assert farthest == expected[1]
        token = rng.choice(sorted(set(ids_of_bits(index.machine.row(configs[0]))) - {117}))
        configs = index.machine.advance(configs[0], token), sliced.machine.advance(configs[1], token)
        if configs[0] is None or not set(ids_of_bits(index.machine.row(configs[0]))) - {117}:
            break
    assert pauses > 20


def test_distances_have_the_lock_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """So whoever works out a row waits for a slice of theirs, and there is one order."""
    index = sg.compile(ARRAYS, VOCABULARY, eager=False)
    machine, distances = index.machine, index.distances
    assert isinstance(machine, PushdownMachine)
    assert isinstance(distances, StackDistances)
    seen: list[bool] = []
    monkeypatch.setattr(distances, "give_way", lambda: seen.append(machine.lock._is_owned()))
    distances.row(machine.start, 9)
    assert seen
    assert all(seen)


def test_kernels_results_have_different_names() -> None:
    assert kernels.NO_ROOM != kernels.FULL
    results = [kernels.OK, kernels.CONFLICT, kernels.TOO_MANY_STATES, kernels.TOO_MUCH_WORK, kernels.NO_ROOM]
    assert len(set(results)) == len(results)


def test_a_state_over_many_stacks_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of stacks below one state that takes anything: one walk of them all, not one for each."""
    rules = "".join(f'\nr{i} ::= "(" r{i} "{i})" | w "{i}"' for i in range(100))
    alternatives = " | ".join(f"r{i}" for i in range(100))
    definition = sg.Gbnf(f"root ::= {alternatives}{rules}\nw ::= [^()0-9]+")
    machine, apart = machine_of(definition), machine_of(definition)
    monkeypatch.setattr(stack_rows, "_WIDE", 10)
    monkeypatch.setattr(pushdown, "_MANY_NODES", 1)
    monkeypatch.setattr(apart, "walked_together", lambda *_: None)
    configs: Any = machine.start, apart.start
    for byte in b"((ab":
        np.testing.assert_array_equal(machine.row(configs[0]), apart.row(configs[1]))
        configs = machine.advance(configs[0], byte - 32), apart.advance(configs[1], byte - 32)
    np.testing.assert_array_equal(machine.row(configs[0]), apart.row(configs[1]))
    assert len(apart.rows.parts) > 100
    assert len(machine.rows.parts) < 10
