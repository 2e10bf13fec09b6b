"""The machine with a stack, judged by a plain interpreter of pushdown programs, on random programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from judges import pushdown_oracle as oracle
from judges.token_distances import allowed
from tiers import draws

from structgen.compiler.programs.program import Condition, CountedEdge, First, MarkedEdge, Program, bytes_of, edge_of
from structgen.compiler.programs.tables import to_tables
from structgen.errors import FormatError, VocabularyError
from structgen.runtime.automaton.tables import INC, SET
from structgen.runtime.core.machine import Config
from structgen.runtime.index.index import Index
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.shared_masks import SharedMaskStore
from structgen.runtime.pushdown.tables import MOST_MEMBERS, PAIR
from structgen.storage.container import pack, unpack
from structgen.vocabulary.vocabulary import Vocabulary

ALPHABET = b"abcd"

pytestmark = pytest.mark.usefixtures("_widths")


def random_vocabulary(rng: random.Random, wide: bool = False) -> Vocabulary:
    """All single bytes of the alphabet, and random strings of them; some twice."""
    tokens: list[bytes | None] = [bytes([b]) for b in ALPHABET]
    tokens += [bytes(rng.choice(ALPHABET) for _ in range(rng.randint(1, 6))) for _ in range(400 if wide else 60)]
    tokens += [rng.choice(tokens), None]
    return Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])


def random_program(rng: random.Random) -> Program:
    """A few states with random edges, of which the first of each state leads towards an end."""
    program = Program()
    n = rng.randint(1, 7)
    loops, size = [], 0
    if rng.random() < 0.3:
        size = rng.choice((1, 2, 5, 40, PAIR, PAIR + 1, 200, MOST_MEMBERS))
        loops = [program.register(size)]
    elif rng.random() < 0.6:
        loops = [program.loop(low := rng.randint(0, 3), rng.randint(max(1, low), 5))]
    for s in range(n):
        live = rng.choice(loops) if loops and rng.random() < 0.4 else -1
        program.state(f"s{s}", returns=rng.random() < 0.2, live=live)
    for s in range(n):
        # Down to smaller numbers, and at last to a pop: so every state can finish.
        sequence = [rng.randrange(s) for _ in range(rng.randint(0, 2))] if s else []
        byte = rng.choice(ALPHABET)
        program.edge(s, byte, byte, *sequence)
        for _ in range(rng.randint(0, 3)):
            low, high = sorted(rng.choices(ALPHABET, k=2))
            sequence = [rng.randrange(n) for _ in range(rng.choice((0, 1, 1, 1, 2, 3)))]
            counted: CountedEdge | MarkedEdge | None = None
            if size and rng.random() < 0.5:
                counted = random_mark(rng, size, n)
            elif loops and not size and rng.random() < 0.4:
                loop = rng.choice(loops)
                targets = [rng.choice((-1, rng.randrange(n))) for _ in range(3)]
                operation = rng.choice((SET, INC))
                targets[0] = max(targets[0], 0) if operation == SET else targets[0]
                counted = CountedEdge(operation, loop, *targets)
            program.give(s, First((edge_of(low, high, program.target(tuple(sequence), counted)),)))
    program.start = rng.randrange(n)
    return program


def in_columns(program: Program, rng: random.Random) -> Program:
    """The same program with some of its edges in columns."""
    found = program.continued()
    for state, edges in enumerate(program.edges):
        blocked = [edge for edge in edges if rng.random() < 0.5]
        found.edges[state] = [edge for edge in edges if edge not in blocked]
        for edge in blocked:
            rows = [(state, letter, letter, edge >> 16) for letter in sorted(bytes_of([edge]))]
            found.blocks.append(np.array(rows, np.int32).T)
    return found


def random_mark(rng: random.Random, size: int, states: int) -> MarkedEdge:
    """Nearly always takes one of a few members, at both ends of the set, so that they come again."""
    members = sorted({0, size // 2, size - 1})
    test = Condition()
    if rng.random() < 0.5:
        low = rng.choice((0, 0, 1))
        test = Condition(sum(1 << k for k in members if rng.random() < 0.7), low, rng.randint(low, 3))
    return MarkedEdge(rng.randrange(states), rng.choice([-1, *members]), test)


def check_walk(machine: PushdownMachine, program: Program, rng: random.Random, steps: int) -> None:
    """Along a random walk: the mask, `advance` and the interpreter agree on every token."""
    vocabulary = machine.vocabulary
    config: Config = machine.start
    readable = oracle.readable(program)
    stacks = oracle.start(readable)
    for _ in range(steps):
        found = allowed(machine.row(config))
        expected, known = set(), {b"": stacks}
        for token in range(vocabulary.size):
            data = vocabulary.token(token)
            after = oracle.follow(readable, known, data) if data else set()
            if after:
                expected.add(token)
            assert (machine.advance(config, token) is not None) == bool(after)
        complete = oracle.is_complete(readable, stacks)
        assert machine.is_accepting(config) == complete
        assert found == (expected | set(vocabulary.eos_ids) if complete else expected)
        if not expected:
            return
        token = rng.choice(sorted(expected))
        config = machine.advance(config, token)
        stacks = oracle.follow(readable, known, vocabulary.token(token) or b"")
        if len(stacks) > 16:  # more are too many for the interpreter
            return


@pytest.mark.parametrize("seed", range(draws(36)))
def test_masks_of_random_programs(seed: int) -> None:
    rng = random.Random(seed)
    program, vocabulary = random_program(rng), random_vocabulary(rng)
    machine = PushdownMachine(to_tables(in_columns(program, rng)), vocabulary)
    for _ in range(3):
        check_walk(machine, program, rng, 8)


def test_a_state_that_leads_nowhere_far_is_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structgen.runtime.pushdown.partial_masks._WIDE", 0)
    monkeypatch.setattr("structgen.runtime.pushdown.walker._WORTH_A_BASE", 2)
    monkeypatch.setattr("structgen.runtime.pushdown.partial_masks._SHORT", 1 << 12)
    monkeypatch.setattr(SharedMaskStore, "plain", lambda *_: pytest.fail("a short walk was not tried first"))
    rng = random.Random(2)
    program, vocabulary = random_program(rng), random_vocabulary(rng)
    check_walk(PushdownMachine(to_tables(program), vocabulary), program, rng, 8)


@pytest.mark.parametrize("seed", range(draws(20)))
def test_an_eager_machine_never_walks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(20):
        program, vocabulary = random_program(rng), random_vocabulary(rng)
        machine = PushdownMachine(to_tables(program), vocabulary)
        machine.fill()
        if machine.is_complete():  # else some counts of wide states were left for later
            break
    assert machine.is_complete()
    monkeypatch.setattr(machine.rows, "walker", lambda: pytest.fail("a complete index walked the vocabulary"))
    for _ in range(3):
        check_walk(machine, program, rng, 8)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("with_vocabulary", [False, True])
@pytest.mark.parametrize("seed", range(draws(5)))
def test_a_stored_machine_is_the_same(seed: int, with_vocabulary: bool, eager: bool) -> None:
    rng = random.Random(2000 + seed)
    program, vocabulary = random_program(rng), random_vocabulary(rng)
    machine = PushdownMachine(to_tables(program), vocabulary)
    check_walk(machine, program, rng, 5)
    if eager:
        machine.fill()
    index = Index("json_schema", "handmade", machine)
    stored = index.to_bytes(with_vocabulary=with_vocabulary)
    again = Index.from_buffer(stored, None if with_vocabulary else vocabulary)
    assert again.complete == index.complete
    assert again.to_bytes(with_vocabulary=with_vocabulary) == stored
    assert isinstance(again.machine, PushdownMachine)
    for _ in range(2):
        check_walk(again.machine, program, rng, 6)


def test_damaged_files_are_refused_or_sound() -> None:
    """Flip bytes in every section of a sealed file: reading it either raises `FormatError` or gives sound tables."""
    rng = random.Random(5)
    refused = 0
    for seed in range(3):
        rng.seed(3000 + seed)
        program, vocabulary = random_program(rng), random_vocabulary(rng)
        machine = PushdownMachine(to_tables(program), vocabulary)
        machine.fill()
        meta, sections = unpack(Index("json_schema", "handmade", machine).to_bytes())
        for _ in range(20):
            name = rng.choice([n for n, a in sections.items() if a.nbytes])
            damaged = sections[name].copy()
            damaged.view(np.uint8).reshape(-1)[rng.randrange(damaged.nbytes)] = rng.randrange(256)
            try:
                index = Index.from_buffer(pack(meta, {**sections, name: damaged}))
            except (FormatError, VocabularyError):
                refused += 1
                continue
            assert isinstance(index.machine, PushdownMachine)
            try:
                wander(index.machine, rng)
            except FormatError:
                refused += 1
    assert refused > 8


def wander(machine: PushdownMachine, rng: random.Random) -> None:
    config: Config = machine.start
    for _ in range(6):
        found = sorted(allowed(machine.row(config)))
        some = rng.sample(found, min(len(found), 12))
        targets = [t for t in some if machine.advance(config, t) is not None]
        if not targets:
            break
        config = machine.advance(config, rng.choice(targets))


def test_ambiguity_is_followed_on_every_path() -> None:
    """``a`` may pop, stay or call itself: sets of stacks that differ in depth."""
    program = Program()
    state = program.state()
    for sequence in ((), (state,), (state, state)):
        program.edge(state, 97, 97, *sequence)
    vocabulary = Vocabulary.from_bytes([b"a", b"aa", b"aaa", b"b", None], eos_ids=[4])
    machine = PushdownMachine(to_tables(program), vocabulary)
    config: Config = machine.start
    for _ in range(5):
        assert allowed(machine.row(config)) - {4} == {0, 1, 2}
        config = machine.advance(config, 1)
        assert machine.is_accepting(config)


def test_deep_nesting_costs_no_recursion() -> None:
    program = Program()
    value, tail = program.state("["), program.state("]")
    program.edge(value, 91, 91, tail, value)
    program.edge(value, 97, 97)
    program.edge(tail, 93, 93)
    vocabulary = Vocabulary.from_bytes([b"[", b"]", b"a", b"[[", None], eos_ids=[4])
    machine = PushdownMachine(to_tables(program), vocabulary)
    config: Config = machine.start
    for _ in range(50_000):
        config = machine.advance(config, 0)
    config = machine.advance(config, 2)
    assert allowed(machine.row(config)) == {1}
    for _ in range(50_000):
        config = machine.advance(config, 1)
    assert machine.is_accepting(config)
    assert allowed(machine.row(config)) == {4}


def test_a_long_token_costs_no_recursion() -> None:
    """Each of its bytes may return or stay, so that one thread becomes one again by the general step."""
    program = Program()
    begin, tail, item = program.state("item"), program.state("tail", returns=True), program.state("a", returns=True)
    program.edge(begin, 97, 97, tail, item)
    program.edge(item, 97, 97, item)
    program.edge(tail, 44, 44, begin)
    vocabulary = Vocabulary.from_bytes([b"a", b",", b"aa," * 1_000, None], eos_ids=[3])
    machine = PushdownMachine(to_tables(program), vocabulary)
    assert machine.advance(machine.start, 2) == machine.start
