"""Edges that take whole tokens and bounds on tokens, judged by a plain interpreter over whole small vocabularies."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from judges import pushdown_oracle as oracle
from judges.guides import drawn
from judges.token_distances import allowed, check_bounds, check_budgets
from test_pushdown import ALPHABET, random_program
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.programs.growing import GrowingProgram
from structgen.compiler.programs.program import CountedEdge, First, Program, TokenBound, TokenEdge, TokenSet, edge_of
from structgen.compiler.programs.tables import Flattener, to_tables
from structgen.compiler.stuck_stacks import check_stack_never_stuck
from structgen.errors import BudgetExceededError, InternalError, UnsupportedError, VocabularyError
from structgen.runtime.automaton.tables import INC, SET
from structgen.runtime.index.healing_machine import HealingMachine
from structgen.runtime.index.index import Index
from structgen.runtime.pushdown import machine as stack_machine
from structgen.runtime.pushdown.machine import PushdownMachine

pytestmark = pytest.mark.usefixtures("_widths")

#: Tokens without bytes, the last two of which end a text.
SPECIAL = 5


def vocabulary_of(rng: random.Random, words: int = 40) -> sg.Vocabulary:
    """All single bytes of the alphabet, random strings of them, some twice, special tokens, and two EOS ids."""
    tokens: list[bytes | None] = [bytes([b]) for b in ALPHABET]
    tokens += [bytes(rng.choice(ALPHABET) for _ in range(rng.randint(1, 6))) for _ in range(words)]
    tokens += [rng.choice(tokens), *[None] * SPECIAL]
    rng.shuffle(tokens)
    specials = [i for i, token in enumerate(tokens) if token is None]
    return sg.Vocabulary.from_bytes(tokens, eos_ids=specials[-2:])


def with_tokens(program: Program, vocabulary: sg.Vocabulary, rng: random.Random) -> Program:
    """A program with token edges at some of its states, and token bounds at some."""
    states = len(program.edges)
    for state in rng.choices(range(states), k=rng.randint(0, 4)):
        places = [rng.randrange(states) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
        counting = [edge.counted for edges in oracle.readable(program).edges for edge in edges if edge.counted]
        counted = rng.choice(counting) if counting and rng.random() < 0.5 else None
        target = program.target(tuple(places), counted)
        program.give(state, First((), [TokenEdge(random_tokens(vocabulary, rng), target)]))
    readable = oracle.readable(program)
    bounded = [s for s in range(states) if rng.random() < 0.4 and hands_nothing_on(program, s, readable.edges[s][0])]
    for state in bounded:
        exhausted = program.state(f"{program.names[state]} exhausted", returns=state in program.returns)
        program.token_bounds[state] = TokenBound(rng.randint(1, 3), exhausted)
    for state in bounded:
        _, exhausted = program.token_bounds[state]

        def weakened(sequence: tuple[int, ...]) -> tuple[int, ...]:
            """The first state would keep what the exhausted one has forgotten."""
            found = [program.token_bounds.get(s, (0, s))[1] for s in sequence]
            return tuple([weak if not i or rng.random() < 0.5 else sequence[i] for i, weak in enumerate(found)])

        first, *edges = readable.edges[state]  # by the first a state can finish
        kept = [first, *(edge for edge in edges if hands_nothing_on(program, state, edge) and rng.random() < 0.5)]
        for edge in kept:
            program.edge(exhausted, edge.low, edge.high, *weakened(edge.sequence))
        for tokens, edge in readable.token_edges.get(state, ()):
            if hands_nothing_on(program, state, edge) and rng.random() < 0.5:
                program.token_edge(exhausted, tokens, *weakened(edge.sequence))
    assert not oracle.dead_states(oracle.readable(program))
    return program


def hands_nothing_on(program: Program, state: int, edge: oracle.Edge) -> bool:
    """Whether an edge leads to the same place whatever the state has counted."""
    first = edge.sequence[0] if edge.sequence else -1
    return not edge.counted and (first < 0 or program.live.get(state, -1) < 0 or program.live.get(first, -1) < 0)


def random_tokens(vocabulary: sg.Vocabulary, rng: random.Random) -> TokenSet:
    ids = rng.sample(range(vocabulary.size), rng.choice((1, 1, 3, 10)))
    special = [i for i in range(vocabulary.size) if vocabulary.token(i) is None and i not in vocabulary.eos_ids]
    if rng.random() < 0.5:
        ids = rng.sample(special, rng.randint(1, len(special)))
    return TokenSet(tuple(sorted(ids)), rng.random() < 0.3)


def drawn_program(seed: int) -> tuple[Program, sg.Vocabulary, random.Random]:
    rng = random.Random(seed)
    vocabulary = vocabulary_of(rng)
    while True:
        program = with_tokens(random_program(rng), vocabulary, rng)
        if program.token_edges or program.token_bounds:
            return program, vocabulary, rng


class InParts:
    """A program that is there already, some states of which are handed out on demand."""

    def __init__(self, whole: Program, seed: int) -> None:
        self._whole, self.program = whole, whole.continued()
        self.program.reads_tokens, self.program.counts_tokens = bool(whole.token_edges), bool(whole.token_bounds)
        states = sorted(set(range(len(whole.edges))) - whole.token_bounds.keys())
        self.open = [state for state in states if random.Random(seed + state).random() < 0.7]
        for state in self.open:
            self.program.edges[state] = ()
            self.program.token_edges.pop(state, None)

    def flattener(self, meter: Meter) -> Flattener:
        return Flattener(self.program, meter)

    def go_on(self, states: Iterable[int]) -> None:
        for state in states:
            self.open.remove(state)
            self.program.edges[state] = self._whole.edges[state]
            if state in self._whole.token_edges:
                self.program.token_edges[state] = self._whole.token_edges[state]


def machine_in_parts(program: Program, vocabulary: sg.Vocabulary, seed: int) -> PushdownMachine:
    growing = GrowingProgram(lambda: InParts(program, seed), Meter(Budget()))
    return PushdownMachine(growing.tables(), vocabulary)


def check_walk(machine: PushdownMachine, program: Program, rng: random.Random, steps: int = 8) -> None:
    """Along a random walk: the mask, `advance` and the interpreter agree on every token."""
    vocabulary = machine.vocabulary
    config: Any = machine.start
    readable = oracle.readable(program)
    stacks = oracle.start(readable)
    for _ in range(steps):
        after = {token: oracle.token_step(readable, stacks, token, vocabulary) for token in range(vocabulary.size)}
        expected = {token for token, found in after.items() if found}
        assert {token for token in after if machine.advance(config, token) is not None} == expected
        complete = oracle.is_complete(readable, stacks)
        assert machine.is_accepting(config) == complete
        assert allowed(machine.row(config)) == (expected | set(vocabulary.eos_ids) if complete else expected)
        if not expected:
            return
        special = sorted(token for token in expected if vocabulary.token(token) is None)
        token = rng.choice(special if special and rng.random() < 0.5 else sorted(expected))
        config, stacks = machine.advance(config, token), after[token]
        if len(stacks) > 16:  # more are too many for the interpreter
            return


@pytest.mark.parametrize("seed", range(draws(60)))
def test_masks_and_steps_are_those_of_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program, vocabulary, rng = drawn_program(seed)
    if seed % 3 == 0:  # all threads are walked together
        monkeypatch.setattr(stack_machine, "FEW_PARTS", 0)
        monkeypatch.setattr(stack_machine, "_MANY_THREADS", 0)
    machine = PushdownMachine(to_tables(program), vocabulary)
    growing = machine_in_parts(program, vocabulary, seed)
    for _ in range(3):
        check_walk(machine, program, rng)
        check_walk(growing, program, rng)
    growing.lower_all()
    check_walk(growing, program, rng)


@pytest.mark.parametrize("seed", range(draws(16)))
def test_a_complete_machine_never_walks_and_is_stored(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program, vocabulary, rng = drawn_program(1000 + seed)
    machines = PushdownMachine(to_tables(program), vocabulary), machine_in_parts(program, vocabulary, seed)
    for machine in machines:
        check_walk(machine, program, rng, 3)
        machine.fill()
        index = Index("gbnf", "", machine)
        stored = index.to_bytes()
        again = Index.from_buffer(stored)
        assert again.to_bytes() == stored
        assert isinstance(again.machine, PushdownMachine)
        if machine.is_complete():
            monkeypatch.setattr(again.machine.rows, "walker", lambda: pytest.fail("a complete index walked"))
        for _ in range(3):
            check_walk(again.machine, program, rng)


@pytest.mark.parametrize("seed", range(draws(30)))
def test_texts_are_finished_within_max_tokens(seed: int) -> None:
    rng = random.Random(2000 + seed)

    def check() -> None:
        program, vocabulary, own = drawn_program(rng.randrange(1 << 30))
        index = Index("gbnf", "", PushdownMachine(to_tables(program), vocabulary))
        check_bounds(index, own, texts=2, steps=6)
        check_budgets(index, own, (0, 1, 3, 9))

    drawn(check, UnsupportedError, BudgetExceededError)


def walks(index: Index, rng: random.Random, texts: int = 8) -> Iterator[tuple[sg.Guide, list[int]]]:
    for _ in range(texts):
        guide = sg.Guide(index)
        tokens: list[int] = []
        while len(tokens) < 10 and not guide.is_finished() and (ids := sorted(allowed(guide.bitmask()))):
            tokens.append(rng.choice(ids))
            assert guide.advance(tokens[-1])
        yield guide, tokens


@pytest.mark.parametrize("seed", range(draws(16)))
def test_rows_of_a_batch_are_at_the_places_of_guides(seed: int) -> None:
    """Also where they come by a configuration so often that its single bytes would be remembered."""
    program, vocabulary, rng = drawn_program(3000 + seed)
    indexes = [Index("gbnf", "", PushdownMachine(to_tables(program), vocabulary))]
    indexes.append(Index("gbnf", "", machine_in_parts(program, vocabulary, seed)))
    batch = sg.GuideBatch(vocabulary)
    for _ in range(12):
        for _, tokens in walks(rng.choice(indexes), rng):
            row = batch.add(rng.choice(indexes))
            guide = sg.Guide(indexes[0])
            drafts = batch.draft(tokens, range(-1, len(tokens) - 1), [row] * len(tokens))
            assert drafts.accepted.all()
            for token in tokens:
                assert (batch.bitmask()[row] == guide.bitmask()).all()
                other = rng.randrange(vocabulary.size)
                if not guide.allows(other):
                    assert not batch.advance([other], [row])[0]
                assert batch.advance([token], [row])[0]
                assert guide.advance(token)
            batch.remove([row])


@pytest.mark.parametrize("seed", range(draws(8)))
def test_rows_of_a_batch_with_max_tokens_have_the_masks_of_guides(seed: int) -> None:
    rng = random.Random(4000 + seed)

    def check() -> None:
        program, vocabulary, _ = drawn_program(rng.randrange(1 << 30))
        index = Index("gbnf", "", PushdownMachine(to_tables(program), vocabulary))
        batch, guides = sg.GuideBatch(vocabulary), []
        for most in (index.shortest() + rng.randint(0, 9) for _ in range(8)):
            batch.add(index, max_tokens=most)
            guides.append(sg.Guide(index, max_tokens=most))
        while not all(guide.is_finished() for guide in guides):
            assert [allowed(row) for row in batch.bitmask()] == [allowed(guide.bitmask()) for guide in guides]
            tokens = [rng.choice(sorted(allowed(guide.bitmask()))) for guide in guides]
            assert batch.advance(tokens).all()
            assert all(guide.advance(token) for guide, token in zip(guides, tokens, strict=True))

    drawn(check, UnsupportedError, BudgetExceededError)


@pytest.mark.parametrize("seed", range(draws(10)))
def test_a_healed_prefix_goes_on_as_the_definition_does(seed: int) -> None:
    """Masks and steps agree, and behind a token that ends with the prefix all is as at the beginning."""
    program, vocabulary, rng = drawn_program(5000 + seed)
    machine = PushdownMachine(to_tables(program), vocabulary)
    prefix = bytes(rng.choice(ALPHABET) for _ in range(rng.randint(1, 3)))
    healed = HealingMachine(prefix, machine)
    for _ in range(6):
        config, text = healed.start, b""
        for _ in range(6):
            steps = {token: healed.advance(config, token) for token in range(vocabulary.size)}
            taken = sorted(token for token, after in steps.items() if after is not None)
            ends = set(vocabulary.eos_ids) if healed.is_accepting(config) else set()
            assert allowed(healed.row(config)) == ends.union(taken)
            if not taken:
                break
            token = rng.choice(taken)
            config, text = steps[token], text + (vocabulary.token(token) or b"")
            if text == prefix and vocabulary.token(token):
                assert config == machine.start
                check_walk(machine, program, rng, 4)


LETTERS = sg.Vocabulary.from_bytes([b"a", b"b", b"ab", b"c", None, None, None, b"aa"], eos_ids=[6])


def test_what_may_be_a_token_is_not_forced() -> None:
    """``a``, ``b`` or token 4, ``c``."""
    program = Program()
    a, b, c = (program.state(name) for name in "abc")
    program.edge(a, 97, 97, b)
    program.edge(b, 98, 98, c)
    program.token_edge(b, TokenSet((4,)), c)
    program.edge(c, 99, 99)
    index = Index("gbnf", "", PushdownMachine(to_tables(program), LETTERS))
    guide = sg.Guide(index)
    assert guide.forced_bytes() == b"a"
    assert allowed(guide.bitmask()) == {0, 2}
    assert guide.advance(0)
    assert allowed(guide.bitmask()) == {1, 4}
    assert guide.forced_bytes() == b""
    assert guide.advance(4)
    assert guide.forced_bytes() == b"c"
    assert guide.forced_tokens(lambda text: [3]) == [3, 6]
    assert index.match(b"abc").accepted
    assert index.shortest() == 3  # "ab", "c", and the EOS token


def test_a_token_that_must_follow_is_forced() -> None:
    program = Program()
    a, end = program.state("a"), program.state("end")
    program.edge(a, 97, 97, end)
    program.token_edge(end, TokenSet((5,)))
    index = Index("gbnf", "", PushdownMachine(to_tables(program), LETTERS))
    assert sg.Guide(index).forced_tokens(lambda text: [0]) == [0, 5]
    assert index.shortest() == 3


def test_free_text_ends_when_its_tokens_are_counted() -> None:
    """``a`` and ``b`` as often as one likes, in at most three tokens, then ``c``; masks know no count."""
    program = Program()
    entry, text, only = program.state("entry"), program.state("text"), program.state("exhausted")
    for state in (entry, text):
        program.edge(state, 97, 98, text)
        program.edge(state, 99, 99)
    program.edge(only, 99, 99)
    program.token_bounds[text] = TokenBound(3, only)
    index = Index("gbnf", "", PushdownMachine(to_tables(program), LETTERS))
    guide = sg.Guide(index)
    for token in (2, 7, 0):
        assert allowed(guide.bitmask()) == {0, 1, 2, 3, 7}
        assert guide.advance(token)
    assert allowed(guide.bitmask()) == {3}
    assert not guide.allows(0)
    guide.rollback(1)
    assert guide.advance(3)
    assert guide.is_accepting()
    assert index.machine.known_rows <= 3
    assert index.match(b"ab" * 20 + b"c").accepted


def test_eos_ids_are_in_no_complement_and_may_be_named() -> None:
    program = Program()
    begin, after = program.state("begin"), program.state("after", returns=True)
    program.token_edge(begin, TokenSet((0, 4), complement=True), begin)
    program.token_edge(begin, TokenSet((4,)), after)
    program.edge(after, 97, 97, after)
    program.token_edge(after, TokenSet((6,)), begin)
    guide = sg.Guide(Index("gbnf", "", PushdownMachine(to_tables(program), LETTERS)))
    assert allowed(guide.bitmask()) == {1, 2, 3, 4, 5, 7}
    assert not guide.advance(6)
    assert guide.advance(4)
    assert allowed(guide.bitmask()) == {0, 6, 7}
    assert guide.advance(6)  # what the definition names is no end
    assert allowed(guide.bitmask()) == {1, 2, 3, 4, 5, 7}


@pytest.mark.parametrize("bound", [None, 1, 2])
@pytest.mark.parametrize("way_out", [False, True])
def test_token_edges_are_ways_out_of_what_cannot_be_spelled(way_out: bool, bound: int | None) -> None:
    """Behind ``a`` follows ``x``, which no token has, or a token that is named; with a bound, that alone."""
    program = Program()
    begin, inside, only = program.state("begin"), program.state("inside"), program.state("only")
    program.edge(begin, 97, 97, inside)
    program.edge(inside, 97, 97, inside)
    for state in (inside, only):
        program.edge(state, 120, 120)
        if way_out:
            program.token_edge(state, TokenSet((0,), complement=True))
    if bound:
        program.token_bounds[inside] = TokenBound(bound, only)
    machine = PushdownMachine(to_tables(program), LETTERS)
    if way_out:
        check_stack_never_stuck(machine, Meter(Budget()))
        check_bounds(Index("gbnf", "", machine), random.Random(0), texts=3, steps=5)
    else:
        with pytest.raises(VocabularyError, match="no sequence of this vocabulary's tokens"):
            check_stack_never_stuck(machine, Meter(Budget()))


@pytest.mark.parametrize("live", [False, True])
def test_exhausted_states_that_count_are_refused(live: bool) -> None:
    program = Program()
    loop = program.loop(1, 3)
    text, only, last = program.state(), program.state(live=loop if live else -1), program.state()
    for state in (text, only, last):
        program.edge(state, 97, 97)
    program.token_bounds[text] = TokenBound(1, only)
    if not live:
        to_tables(program)
        program.token_bounds[only] = TokenBound(1, last)
    with pytest.raises(InternalError):
        to_tables(program)


def test_characters_and_tokens_are_counted_beside_each_other() -> None:
    """Up to six letters in at most three tokens, then ``c``."""
    program = Program()
    loop = program.loop(0, 6)
    entry, only = program.state("entry"), program.state("exhausted")
    text = program.state("text", live=loop)
    program.edges[entry] = [edge_of(97, 98, program.target((), CountedEdge(SET, loop, text, -1, -1)))]
    program.edges[text] = [edge_of(97, 98, program.target((), CountedEdge(INC, loop, text, text, only)))]
    for state in (entry, text, only):
        program.edge(state, 99, 99)
    program.token_bounds[text] = TokenBound(3, only)
    index = Index("gbnf", "", PushdownMachine(to_tables(program), LETTERS))
    guide = sg.Guide(index)
    for tokens in ((0, 1, 0), (2, 2, 0), (2, 7, 7)):
        guide.reset()
        for token in tokens:
            assert {0, 1, 2, 3} <= allowed(guide.bitmask())
            assert guide.advance(token)
        assert allowed(guide.bitmask()) == {3}
    guide.reset()
    assert guide.advance(2)
    assert guide.advance(0)
    rows = index.machine.known_rows
    guide.reset()
    assert guide.advance(0)
    assert guide.advance(2)
    assert allowed(guide.bitmask()) == {0, 1, 2, 3, 7}
    assert index.machine.known_rows == rows
    check_bounds(index, random.Random(0), texts=5, steps=5)


def test_a_token_that_the_vocabulary_lacks_is_refused() -> None:
    program = Program()
    program.token_edge(program.state(), TokenSet((8,)))
    with pytest.raises(InternalError, match="token 8"):
        PushdownMachine(to_tables(program), LETTERS)
