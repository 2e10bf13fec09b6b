"""Kernels compiled, kernels as plain Python, and plain oracles: the same answers."""

from __future__ import annotations

import itertools
import random
import sys

import numpy as np
import pytest
from judges.guides import ids_of_bits
from judges.naive import small_vocabulary

from structgen import kernels
from structgen.budget import Budget, Meter
from structgen.compiler.automata import utf8
from structgen.compiler.automata.dfa import Dfa, complement, determinize, intersect, minimize, trim
from structgen.compiler.automata.nfa import Nfa, NfaBuilder

ALPHABET = b"abc"
WORDS = [bytes(w) for n in range(6) for w in itertools.product(ALPHABET, repeat=n)]


def meter() -> Meter:
    """A budget that a first compile of the kernels, which counts here, does not use up."""
    return Meter(Budget(seconds=3600))


def random_nfa(seed: int) -> tuple[Nfa, list[tuple[int, int, int, int]], list[tuple[int, int, int]], int]:
    source = random.Random(seed)
    builder = NfaBuilder()
    n = source.randint(2, 7)
    for _ in range(n):
        builder.state()
    for _ in range(source.randint(1, 12)):
        low = source.choice(ALPHABET)
        builder.edge(source.randrange(n), low, source.randint(low, ALPHABET[-1]), source.randrange(n))
    for _ in range(source.randint(0, 4)):
        builder.epsilon(source.randrange(n), source.randrange(n))
    return builder.build(0, n - 1), builder.edges, builder.epsilons, n


def simulate(
    edges: list[tuple[int, int, int, int]], epsilons: list[tuple[int, int, int]], n: int, word: bytes
) -> bool:
    """Textbook simulation of an NFA from state 0 to state n - 1."""

    def close(states: set[int]) -> set[int]:
        while True:
            more = states | {t for s, t, _ in epsilons if s in states}
            if more == states:
                return states
            states = more

    states = close({0})
    for byte in word:
        states = close({t for s, low, high, t in edges if s in states and low <= byte <= high})
    return n - 1 in states


def accepts(dfa: Dfa, word: bytes) -> bool:
    state = dfa.start if dfa.states else kernels.DEAD
    for byte in word:
        if state < 0:
            return False
        state = int(dfa.table[state, dfa.classes[byte]])
    return state >= 0 and bool(dfa.accepting[state])


def language(dfa: Dfa) -> set[bytes]:
    return {w for w in WORDS if accepts(dfa, w)}


@pytest.fixture(params=["compiled", "python"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with the kernels as they are, or with the Python functions they were compiled from."""
    if request.param == "python":
        for module in [module for name, module in sys.modules.items() if name.startswith("structgen.kernels")]:
            for name, value in list(vars(module).items()):
                if hasattr(value, "py_func"):
                    monkeypatch.setattr(module, name, value.py_func)
    return str(request.param)


@pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes wrap on purpose; only Python says so
@pytest.mark.parametrize("seed", range(25))
def test_subset_construction_and_minimisation(mode: str, seed: int) -> None:
    nfa, edges, epsilons, n = random_nfa(seed)
    dfa = determinize(nfa, meter())
    expected = {w for w in WORDS if simulate(edges, epsilons, n, w)}
    assert language(dfa) == expected
    small = minimize(dfa, meter())
    assert language(small) == expected
    assert small.states == nerode_classes(small)
    assert minimize(small, meter()).states == small.states


def nerode_classes(dfa: Dfa) -> int:
    """Moore's algorithm: the number of states that can be told apart."""
    block = [int(a) for a in dfa.accepting]
    while True:
        signature = [
            (block[s], tuple(block[t] if t >= 0 else -1 for t in dfa.table[s].tolist())) for s in range(dfa.states)
        ]
        names = {key: i for i, key in enumerate(dict.fromkeys(signature))}
        refined = [names[key] for key in signature]
        if len(set(refined)) == len(set(block)):
            return len(set(block))
        block = refined


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("seed", range(12))
def test_products_and_complements(mode: str, seed: int) -> None:
    a, b = (minimize(determinize(random_nfa(s)[0], meter()), meter()) for s in (seed, seed + 1000))
    assert language(intersect(a, b, meter())) == language(a) & language(b)
    assert language(complement(a)) == set(WORDS) - language(a)
    assert language(intersect(a, complement(b), meter())) == language(a) - language(b)
    assert language(trim(complement(complement(a)))) == language(a)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("seed", range(6))
def test_walks_against_following_each_token(mode: str, seed: int) -> None:
    vocabulary = small_vocabulary((b"abcabc", b"cab", b"ccc"))
    trie = vocabulary.trie
    dfa = next(dfa for dfa in (minimize(determinize(random_nfa(s)[0], meter()), meter())
                               for s in range(seed, 1000, 100)) if dfa.states)  # some accept nothing
    arrays = (trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids)
    nodes = (trie.byte, trie.depth, trie.skip, trie.token, trie.twins)
    automaton = (dfa.table.reshape(-1), dfa.classes.astype(np.uint8), dfa.n_classes)

    def allowed(state: int) -> set[int]:
        found = set()
        for token_id in range(vocabulary.size):
            token, at = vocabulary.token(token_id), state
            for byte in token or b"":
                at = int(dfa.table[at, dfa.classes[byte]]) if at >= 0 else at
            if token and at >= 0:
                found.add(token_id)
        return found

    states = np.arange(dfa.states, dtype=np.int32)
    counts, ids = kernels.walk_narrow(*arrays, *automaton, states, trie.max_depth, 10_000)
    lists = np.split(ids, np.cumsum(counts)[:-1])
    rows = []
    for state in range(dfa.states):
        row = np.zeros(vocabulary.words + 1, np.uint32)
        kernels.walk_row(*nodes, *automaton, state, trie.max_depth, row, dfa.states, np.empty(0, np.int32))
        row[-1] = 0  # the spare bit
        rows.append(row)
        expected = allowed(state)
        assert set(lists[state].tolist()) == expected
        assert set(ids_of_bits(row)) == expected
    for state, base in itertools.product(range(dfa.states), repeat=2):
        row = rows[base].copy()
        kernels.walk_difference(*nodes, *automaton, state, base, trie.max_depth, row)
        np.testing.assert_array_equal(row[:-1], rows[state][:-1])
    short, none = kernels.walk_narrow(*arrays, *automaton, states, trie.max_depth, -1)
    assert all(c == (-1 if len(one) else 0) for c, one in zip(short.tolist(), lists, strict=True))
    assert not len(none)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_bit_kernels(mode: str) -> None:
    source = np.random.default_rng(0)
    bases = source.integers(0, 1 << 32, (3, 5), np.uint32)
    for row in [*bases, bases[1] ^ np.uint32(5), np.zeros(5, np.uint32), np.full(5, 0xFFFFFFFF, np.uint32)]:
        distances = [sum(int(x).bit_count() for x in row ^ base) for base in (np.zeros(5, np.uint32), *bases)]
        base, bits = kernels.nearest_base(row, bases, 3, 0)
        assert bits == min(distances) == distances[base]
        expected = np.flatnonzero(np.unpackbits((row ^ bases[0]).view(np.uint8), bitorder="little"))
        np.testing.assert_array_equal(kernels.set_bits(row, bases[0], len(expected)), expected)


@pytest.mark.parametrize(
    "ranges", [((0, 0x7F),), ((0, 0xD7FF), (0xE000, 0x10FFFF)), ((0x61, 0x61), (0x7FF, 0x800)), ((0xFFFF, 0x10000),),
               ((0x3B1, 0x3C9), (0x1F600, 0x1F64F)), ()]
)  # fmt: skip
def test_utf8_automata(ranges: tuple[tuple[int, int], ...]) -> None:
    edges = utf8.utf8_edges(ranges).tolist()
    borders = {x for low, high in ranges for x in (low - 1, low, high, high + 1)}
    for code in borders | {0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF} | set(range(0, 0x110000, 4099)):
        if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
            continue
        states = {0}
        for byte in chr(code).encode():
            states = {t for s, low, high, t in edges if s in states and low <= byte <= high}
        assert (1 in states) == any(low <= code <= high for low, high in ranges), hex(code)
