"""What judges each kernel: a use of structgen that comes to it, held against something plain that has no kernels."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import blake2b
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest

import structgen as sg
from judges.batches import Sequence, check, draft, move
from judges.columns_reader import agrees, readings
from judges.grammars import BLOCKS, GRAMMARS, indentation
from judges.guides import check_walk, ids_of_bits
from judges.naive import small_vocabulary
from judges.preferred_matches import automaton, expected, matched, random_regex
from judges.pushdown_oracle import accepts, readable
from judges.token_distances import check_bounds, check_budgets, check_places, searched
from structgen import grammar_store, kernels
from structgen.budget import Budget, Meter
from structgen.compiler.automata.dfa import Dfa, complement, determinize, intersect, minimize, trim
from structgen.compiler.automata.nfa import Nfa, NfaBuilder
from structgen.compiler.automata.words import trie, words_dfa
from structgen.compiler.grammar.completion.completing import Alternative, are_good
from structgen.compiler.json_schema.compiler import compile_json_schema
from structgen.compiler.programs.program import REFUSED, CountedEdge, First, Program, bytes_of, edge_of
from structgen.compiler.programs.tables import to_tables
from structgen.errors import UnsupportedError
from structgen.runtime.automaton.machine import AutomatonMachine
from structgen.runtime.automaton.reaching import reaching
from structgen.runtime.automaton.tables import DEAD, MARK, SET
from structgen.runtime.batch import histories
from structgen.runtime.grammar import partial_masks as lexeme_masks
from structgen.runtime.grammar.completability import obligations, watched_futures
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.index.index import Index
from structgen.runtime.pushdown import partial_masks, walker
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.store import store as configuration_store
from structgen.runtime.pushdown.store.store import ConfigurationStore
from structgen.runtime.pushdown.subautomata import subautomaton
from structgen.runtime.pushdown.tables import PushdownTables
from structgen.runtime.rows import residuals, row_pool, row_store

#: What a kernel is judged by; it raises `AssertionError`.
Oracle: TypeAlias = Callable[[Random], object]


# -- automata: texts of an NFA, one by one ---------------------------------------------------------------------------

ALPHABET = b"abc"
WORDS = [bytes(word) for n in range(6) for word in itertools.product(ALPHABET, repeat=n)]


def meter() -> Meter:
    """A budget that a first compile of the kernels, which counts here, does not use up."""
    return Meter(Budget(seconds=3600))


def random_nfa(random: Random) -> tuple[Nfa, set[bytes]]:
    """An automaton, and those of `WORDS` that a textbook simulation from the first state to the last accepts."""
    builder, n = NfaBuilder(), random.randint(2, 7)
    for _ in range(n):
        builder.state()
    for _ in range(random.randint(1, 12)):
        low = random.choice(ALPHABET)
        builder.edge(random.randrange(n), low, random.randint(low, ALPHABET[-1]), random.randrange(n))
    for _ in range(random.randint(0, 4)):
        builder.epsilon(random.randrange(n), random.randrange(n))

    def closed(states: set[int]) -> set[int]:
        more = states | {t for s, t, _ in builder.epsilons if s in states}
        return states if more == states else closed(more)

    def after(states: set[int], byte: int) -> set[int]:
        return closed({t for s, low, high, t in builder.edges if s in states and low <= byte <= high})

    reached = {b"": closed({0})}
    for word in WORDS[1:]:
        reached[word] = after(reached[word[:-1]], word[-1])
    return builder.build(0, n - 1), {word for word, states in reached.items() if n - 1 in states}


def language(dfa: Dfa) -> set[bytes]:
    """Those of `WORDS` that an automaton accepts."""
    reached = {b"": dfa.start if dfa.states else kernels.DEAD}
    for word in WORDS[1:]:
        before = reached[word[:-1]]
        reached[word] = int(dfa.table[before, dfa.classes[word[-1]]]) if before >= 0 else before
    return {word for word, state in reached.items() if state >= 0 and dfa.accepting[state]}


def nerode_classes(dfa: Dfa) -> int:
    """Moore's algorithm: the number of states that can be told apart."""
    block = [int(accepting) for accepting in dfa.accepting]
    while True:
        signature = [
            (block[s], tuple(block[t] if t >= 0 else -1 for t in dfa.table[s].tolist())) for s in range(dfa.states)
        ]
        names = {key: i for i, key in enumerate(dict.fromkeys(signature))}
        refined = [names[key] for key in signature]
        if len(set(refined)) == len(set(block)):
            return len(set(block))
        block = refined


def logits(random: Random) -> None:
    """Bits of logits are kept where a token is allowed, for each width of them and any number of words."""
    rng = np.random.default_rng(random.randrange(2**32))
    for keep, dtype, never in (
        (kernels.keep_allowed, np.int32, -8388608),
        (kernels.keep_allowed_halves, np.int16, -1024),
    ):
        for width in (1, 31, 32, 33, 100, 640):
            for n in range(width // 32 + 2):
                bits = rng.integers(-99, 99, width).astype(dtype)
                words = rng.integers(-(2**31), 2**31, n).astype(np.int32)
                out = np.zeros_like(bits)
                keep(bits, words, never, out)
                allowed = np.unpackbits(words.astype("<i4").view(np.uint8), bitorder="little")
                allowed = np.pad(allowed, (0, max(0, width - len(allowed))))[:width].astype(bool)
                assert np.array_equal(out, np.where(allowed, bits, dtype(never)))


def automata(random: Random) -> None:
    """Subset construction and minimisation."""
    for _ in range(25):
        nfa, expected = random_nfa(random)
        dfa = determinize(nfa, meter())
        assert language(dfa) == expected
        small = minimize(dfa, meter())
        assert language(small) == expected
        assert small.states == nerode_classes(small)
        assert minimize(small, meter()).states == small.states


def finite_sets(random: Random) -> None:
    """Tries, and the minimal automata that they become."""
    for size in (0, 1, 2, 3, 5, 10, 30, 100, 200):
        words = {word.decode() for word in random.sample(WORDS, size)}
        tail, labels, ends = trie(words, meter())
        texts = [b""]
        for above, byte in zip(tail.tolist(), labels.tolist(), strict=True):
            texts.append(texts[above] + bytes((byte,)))
        assert len(set(texts)) == len(texts)
        assert [texts[end].decode() for end in ends.tolist()] == sorted(words)
        dfa = words_dfa(words, meter())
        assert {text.decode() for text in language(dfa)} == words
        assert not words or dfa.states == nerode_classes(dfa)


def products(random: Random) -> None:
    for _ in range(12):
        (one, first), (two, second) = random_nfa(random), random_nfa(random)
        a, b = (minimize(determinize(nfa, meter()), meter()) for nfa in (one, two))
        assert language(intersect(a, b, meter())) == first & second
        assert language(complement(a)) == set(WORDS) - first
        assert language(intersect(a, complement(b), meter())) == first - second
        assert language(trim(complement(complement(a)))) == first


def graphs(random: Random) -> None:
    """What reaches a goal, by going on until nothing changes."""
    for _ in range(20):
        n = random.randint(1, 30)
        edges = [(random.randrange(n), random.randrange(n)) for _ in range(random.randint(0, 2 * n))]
        goals = {node for node in range(n) if random.random() < 0.1}
        reach = set(goals)
        while more := {tail for tail, head in edges if head in reach} - reach:
            reach |= more
        tails, heads = np.array(edges, np.int32).reshape(-1, 2).T.copy()
        found = reaching(tails, heads, np.isin(np.arange(n), [*goals]))
        assert set(np.flatnonzero(found).tolist()) == reach


def places(random: Random) -> None:
    """What is proved by sets that get smaller, and within each by sets that grow."""
    for _ in range(30):
        n = random.randint(1, 12)
        options = [
            [
                Alternative(
                    [random.sample(range(n), random.randint(0, min(n, 2))) for _ in range(random.randint(0, 2))],
                    random.random() < 0.4,
                )
                for _ in range(random.randint(0, 2))
            ]
            for _ in range(n)
        ]
        good, smaller = set[int](), set(range(n))
        while good != smaller:
            good, smaller = smaller, set()
            while more := {
                place for place, there in enumerate(options) if place in good - smaller and any(
                    all({*group} & (good if is_lower else smaller) for group in groups) for groups, is_lower in there
                )
            }:  # fmt: skip
                smaller |= more
        assert are_good(options, meter()) == [place in good for place in range(n)]


# -- rows: bit by bit ------------------------------------------------------------------------------------------------


def rows(random: Random) -> None:
    source = np.random.default_rng(random.randrange(1 << 32))
    bases = source.integers(0, 1 << 32, (3, 5), np.uint32)
    for row in [*bases, bases[1] ^ np.uint32(5), np.zeros(5, np.uint32), np.full(5, 0xFFFFFFFF, np.uint32)]:
        distances = [sum(int(x).bit_count() for x in row ^ base) for base in (np.zeros(5, np.uint32), *bases)]
        base, bits = kernels.nearest_base(row, bases, 3, 0)
        assert bits == min(distances) == distances[base]
        expected = ids_of_bits(row ^ bases[0])
        found = np.empty(len(expected), np.uint32)
        kernels.set_bits(row, bases[0], found)
        assert found.tolist() == expected
        again = row.copy()
        kernels.flip_ids(again, found.astype(np.int32))
        assert again.tobytes() == bases[0].tobytes()
    ids = [*sorted(random.sample(range(1 << 18), 60)), (1 << 18) + 1, (1 << 19) - 1]  # with long gaps
    bits = np.zeros(1 << 14, np.uint32)
    gaps = row_pool.encode_gaps(np.array(ids, np.uint32))
    kernels.flip_gaps(bits, gaps)
    assert ids_of_bits(bits) == ids
    written = np.empty(len(gaps) + 9, np.uint16)
    written = written[: kernels.write_gaps(np.array(ids, np.int32), written)]
    assert written.tolist() == gaps.tolist()
    more = [each for each in range(1 << 19) if random.random() < 0.001]
    kernels.set_gaps(bits.view(np.int32), row_pool.encode_gaps(np.array(more, np.uint32)))
    assert ids_of_bits(bits) == sorted({*ids, *more})
    others = sorted({*random.sample(range(1 << 19), 90), *ids[::2]})
    stored = row_pool.encode_gaps(np.array(others, np.uint32))
    missing = stored[: kernels.missing_gaps(bits, stored.copy(), stored)]
    assert row_pool.decode_gaps(missing).tolist() == [each for each in others if each not in {*ids, *more}]


# -- masks: token by token -------------------------------------------------------------------------------------------

COUNTED = r'"([^"\\]|\\.){3,200}"(a{2,90}b){2}'
#: More names than a kernel's set has bits.
WIDE = {"properties": {f"{n}": {"enum": [1]} for n in range(70)}, "required": ["3", "69"], "type": "object"}

OBJECT = {
    "properties": {
        "id": {"type": "string", "minLength": 2, "maxLength": 40},
        "me": {"$ref": "#"},
        "n": {"anyOf": [{"type": "number"}, {"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 9}]},
    },
    "required": ["id"],
    "additionalProperties": False,
}
NESTED = sg.Gbnf('root ::= ("a" root "b" | "a" root "c" | "ab" | [x-z]{2,30})*')
STATEMENTS = sg.Grammar(GRAMMARS["statements"][0])
WORDS_APART = sg.Grammar('start: (W | N "," | "(" start ")")+\nW: /[a-c]+/\nN: /[a-c0-9]+,?/')
INDENTED = sg.Grammar(BLOCKS, lexer="basic", postlex=indentation(6))


@contextmanager
def no_tables_remembered() -> Any:
    """Grammars are compiled, whatever the process has compiled before."""
    grammar_store.forget()
    yield


@contextmanager
def everything_is_wide() -> Any:
    """The ways round walking a wide state are for real vocabularies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partial_masks, "_WIDE", 0)
        patch.setattr(partial_masks, "_SHORT", 5)
        patch.setattr(walker, "_FAR_APART", 20)
        patch.setattr(walker, "_WORTH_A_BASE", 0.1)
        yield


@contextmanager
def nothing_is_few() -> Any:
    """Masks that lack more than one partial mask are looked at as a whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(configuration_store, "FEW_PARTS", 0)
        yield


@contextmanager
def everything_is_much() -> Any:
    """The tokens and the ends of a lexeme are not put in order one by one where there is more than one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexeme_masks, "_FEW", 1)
        yield


@contextmanager
def everything_is_long() -> Any:
    """Walks go on in slices from their first node."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walker.StackWalker.narrow, "__defaults__", (0,))
        patch.setattr(walker, "_AT_ONCE", 0)
        patch.setattr(walker, "_NODES", 50)
        yield


def masks(*definitions: sg.Definition, eager: bool = False, when: Callable[[], Any] | None = None) -> Oracle:
    """A mask has the tokens that can be appended one by one, also in an index that was stored."""

    def judged(random: Random) -> None:
        for definition in definitions:
            with when() if when is not None else pytest.MonkeyPatch.context():
                index = sg.compile(definition, small_vocabulary(), eager=eager, budget=Budget(seconds=3600))
                check_walk(sg.Index.from_buffer(index.to_bytes()) if eager else index, random, steps=4)

    return judged


def tokens_read(random: Random) -> None:
    """Threads after a token are those of the lexer and the parser in Python, byte by byte: the same objects."""
    for definition in (STATEMENTS, INDENTED, WORDS_APART):
        index = sg.compile(definition, small_vocabulary(), eager=False)
        machine = index.machine
        assert isinstance(machine, GrammarMachine)
        reader, kernel = machine._reader, machine._token_reader
        for _ in range(4):
            guide = sg.Guide(index)
            for _ in range(12):
                config: Any = guide.config
                told = 0
                for token in random.sample(range(index.vocabulary.size), 60):
                    data = index.vocabulary.token(token)
                    if data:
                        expected = tuple(filter(reader.is_alive, reader.read(config.threads, data)))
                        found = kernel.read(config.threads, data)
                        assert found is None or found == expected
                        told += found is not None
                assert told
                assert kernel.may_end(config.threads) in (None, reader.may_end(config.threads))
                allowed = ids_of_bits(guide.bitmask())
                if not len(allowed) or not guide.advance(random.choice([*allowed])) or guide.is_finished():
                    break


# -- automata with a stack: edge by edge -----------------------------------------------------------------------------


def pushdown_tables() -> Iterator[PushdownTables]:
    patterned = {"type": "string", "pattern": r"^(a|b[cd]*){2,40}x|\d{3}$"}
    for definition in (NESTED, sg.JsonSchema(OBJECT), sg.JsonSchema({"properties": {"p": patterned, "q": {}}})):
        machine = sg.compile(definition, small_vocabulary(), eager=False).machine
        assert isinstance(machine, PushdownMachine)
        yield machine.tables


def arenas(random: Random) -> None:
    """An arena has an automaton's columns; what goes on behind the last test is the header of sets."""
    vocabulary = sg.Vocabulary.bytewise()
    wide = sg.compile(sg.JsonSchema(WIDE, property_order="any"), vocabulary, eager=False).machine
    assert isinstance(wide, PushdownMachine)
    for tables in (wide.tables, *pushdown_tables()):
        arena = tables.arena()
        moves = [*tables.all_moves()]
        for group, single in enumerate(arena[arena[kernels.A_SINGLE] :][: len(moves)].tolist()):
            ((record, above), *others) = moves[group]
            if others or above or (record is not None and record[0] == MARK):
                assert single == kernels.NOT_SINGLE
            else:
                assert (tables.records[single].tolist() == [*record]) if record else single == kernels.SINGLE_POP
        edges = np.stack([tables.edge_low + tables.edge_high.astype(np.int32) * 256, tables.edge_target - np.int64(1)])
        steps = np.stack([np.append(tables.move_record - np.int64(1), 0), tables.move_start])
        columns = {
            kernels.A_EDGE_START: tables.edge_start, kernels.A_EDGES: edges.T, kernels.A_MOVES: steps.T,
            kernels.A_LIKE: tables.like, kernels.A_GROUPS: tables.group_start, kernels.A_SEQUENCE: tables.sequence,
            kernels.A_RECORDS: tables.records, kernels.A_LOOPS: tables.loops, kernels.A_LIVE: tables.live,
            kernels.A_RETURNS: tables.returns, kernels.A_TESTS: tables.tests,
        }  # fmt: skip
        for word, column in columns.items():
            assert arena[arena[word] :][: column.size].tolist() == column.reshape(-1).tolist()
        assert arena[kernels.A_SETS] == arena[kernels.A_TESTS] + tables.tests.size
        assert not arena[arena[kernels.A_ROWS] :][: tables.states].any()
        assert (arena[arena[kernels.A_DEAD_ROW] :] == kernels.DEAD).all()
        assert len(arena) == arena[kernels.A_FREE] + (tables.states + 1) * arena[kernels.A_CLASSES]


def random_moves(random: Random) -> Program:
    """A program of a few states, some like the first one, which move, call, count and refuse."""
    program = Program()
    n, loop = random.randint(1, 7), program.loop(2, 4)
    for state in range(n):
        like = random.choice([-1, 0]) if state else -1
        refused = edge_of(99, 99, REFUSED) if like == 0 or random.random() < 0.5 else edge_of(99, 99, 1)
        program.state("", [refused], returns=random.random() < 0.3, live=random.choice([-1, loop]), like=like)
    for _ in range(random.randint(0, 3 * n)):
        sequence = tuple(random.randrange(n) for _ in range(random.choice((0, 1, 1, 2))))
        counted = CountedEdge(SET, loop, random.randrange(n), -1, random.randrange(n))
        low, high = sorted(random.choices(b"ab", k=2))
        target = program.target(sequence, random.choice([None, counted]))
        program.give(random.randrange(n), First((edge_of(low, high, target),)))
    program.start = random.randrange(n)
    return program


def flat_programs(random: Random) -> None:
    """The tables of a program make its moves, in each state that the start leads to; there are no other states."""
    program = random_moves(random)
    records = [(), *program.records]
    made: dict[tuple[int, int], set[tuple[int, ...]]] = {}  # by state and byte: a record, and a sequence
    leads: dict[int, set[int]] = {}
    for state in range(len(program.edges)):
        leads[state] = {program.like.get(state, -1)}
        for edge in program.edges_at(state):
            target = edge >> 16
            move = (0, target - 1) if target > 0 else program.moves[-1 - target]
            leads[state] |= {*move[1:], *records[move[0]][2:]}
            for byte in bytes_of([edge]):
                made.setdefault((state, byte), set()).add(move)
    reached = {program.start}
    while more := set().union(*(leads[state] for state in reached)) - {*reached, -1}:
        reached |= more
    number = {state: at for at, state in enumerate(sorted(reached))} | {-1: -1}
    tables = to_tables(program)
    assert (tables.states, tables.start) == (len(reached), number[program.start])
    for state in reached:
        own, edges = number[state], tables.edges(number[state])
        assert (tables.returns[own], tables.live[own]) == (state in program.returns, program.live.get(state, -1))
        for byte in ALPHABET:
            to = edges.get(byte)
            found = () if to is None else [(None, (to,))] if to < len(reached) else tables.moves[to - len(reached)]
            moves = made.get((state, byte), set())
            wanted = {(records[record], tuple(map(number.get, states))) for record, *states in moves}
            assert {*found} == {((*r[:2], *map(number.get, r[2:])) or None, states) for r, states in wanted}


def table_rows(random: Random) -> None:
    """A row says of each byte what the edges of its state do; it is laid out once."""
    for tables in pushdown_tables():
        arena = tables.arena()
        classes = arena[arena[kernels.A_CLASS_OF] :][:256].tolist()
        weights = np.arange(1.0, 2.0 + max(classes))
        dense, of_dense = tables.dense()
        for state in random.sample(range(tables.states), min(20, tables.states)):
            found = kernels.widest_entry(arena, state, weights)
            row = arena[arena[kernels.A_ROWS] + state]
            edges = tables.edges(state)
            weight = sum({classes[byte]: weights[classes[byte]] for byte in edges}.values())
            taken = Counter[int]()
            for c, entry in {classes[byte]: entry for byte, entry in edges.items()}.items():
                taken[entry] += weights[c]
            assert found[1:] == (max(taken.values(), default=0) / max(1, weight), weight)
            assert taken[found[0]] == max(taken.values(), default=0)
            laid_out = {byte: int(arena[row + classes[byte]]) for byte in range(256)}
            assert laid_out == dict.fromkeys(range(256), DEAD) | edges
            assert [*laid_out.values()] == dense[state, of_dense].tolist()
            assert kernels.widest_entry(arena, state, weights) == found
            assert arena[arena[kernels.A_ROWS] + state] == row


def bases(_: Random) -> None:
    """A state is compared with the configuration that the entries of most bytes lead to and stay in."""
    vocabulary = sg.Vocabulary.from_bytes([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    machine = sg.compile(sg.JsonSchema({"properties": {"abc": {}, "ad": {}}}), vocabulary, eager=False).machine
    assert isinstance(machine, PushdownMachine)
    walk, found = machine.rows.walker(), set[tuple[int, ...] | None]()
    for state in range(machine.tables.states):
        base = walk.base(state)
        found.add(base)
        if base is None:
            continue
        here, frames = state, list[int]()
        while True:
            entry = Counter(machine.tables.edges(here).values()).most_common(1)[0][0]
            if entry == here:
                break
            moves = [(None, (entry,))] if entry < machine.states else machine.tables.moves[entry - machine.states]
            sequence = moves[0][1]
            frames, here = [*reversed(sequence[:-1]), *frames], sequence[-1]
        assert base == tuple(x for s in (here, *frames) for x in (s, 0))
    assert len(found) > 1


def heights(_: Random) -> None:
    trie = small_vocabulary().trie
    expected = [trie.depth[i : trie.skip[i]].max() - trie.depth[i] for i in range(len(trie.depth))]
    found = np.empty(len(trie.depth), np.uint16)
    kernels.heights_of(trie.depth, np.zeros(trie.max_depth + 2, np.uint16), found)
    np.testing.assert_array_equal(found, expected)


def kinds_of_bytes(_: Random) -> None:
    trie = small_vocabulary().trie
    kinds = np.uint64(1) << (np.arange(256, dtype=np.uint64) % np.uint64(60))
    expected = [np.bitwise_or.reduce(kinds[trie.byte[i : trie.skip[i]]]) for i in range(len(trie.depth))]
    found = np.empty(len(trie.byte), np.uint64)
    kernels.kinds_below(trie.byte, trie.depth, kinds, np.zeros(trie.max_depth + 2, np.uint64), found)
    np.testing.assert_array_equal(found[1:], expected[1:])  # no byte leads to the root


def quotations(random: Random) -> None:
    """Suffixes one by one, byte by byte; and of tokens which are in the text behind what was read."""
    trie = small_vocabulary().trie
    for _ in range(20):
        text = bytes(random.choices(b'ab" 1', k=random.randrange(1, 40)))
        ends = bytes(random.choices((0, 1), k=len(text) + 1))
        order = sorted(random.sample(range(len(text)), random.randrange(1, len(text) + 1)), key=lambda at: text[at:])
        sections = np.frombuffer(text, np.uint8), np.array(order, np.int32), np.frombuffer(ends, np.uint8)
        begun = text[(at := random.choice(order)) :][: random.randrange(4)]
        low, high = 0, len(order)
        for length, byte in enumerate(begun):
            low, high = kernels.narrowed(*sections[:2], low, high, length, byte)
        found = [i for i in range(len(order)) if text[order[i] :].startswith(begun)]
        assert [*range(low, high)] == found
        assert order.index(at) in found

        def may_end(
            read: bytes, found: list[int] = found, order: list[int] = order, text: bytes = text, ends: bytes = ends
        ) -> bool:
            return any(text[order[i] :].startswith(read) and ends[order[i] + len(read)] for i in found)

        assert kernels.may_end(*sections[1:], low, high, len(begun)) == may_end(begun)
        tokens, below = np.zeros(small_vocabulary().size + 32, np.uint8), np.zeros(len(trie.byte), np.uint8)
        kernels.walk_text(
            trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids, np.zeros(1, np.int32), *sections, low,
            high, len(begun), np.empty((2, trie.max_depth + 2), np.int64), tokens, below,
        )  # fmt: skip
        spelled = [small_vocabulary().token(each) or b"" for each in range(small_vocabulary().size)]
        in_text = [any(text[order[i] :].startswith(begun + each) for i in found) for each in spelled]
        assert [*np.flatnonzero(tokens)] == [each for each, is_in in enumerate(in_text) if is_in and spelled[each]]
        path = [b""]
        for i in range(1, len(trie.byte)):
            path[trie.depth[i] - trie.depth[0] :] = [path[trie.depth[i] - trie.depth[0] - 1] + bytes((trie.byte[i],))]
            assert below[i] == may_end(begun + path[-1])


def named(tables: PushdownTables, first: int, zone: int | None) -> tuple[bytes, int, list[int]] | None:
    """The text that names what begins at a state, its loop, and its states; None where it has no name."""
    number, loops, text = {first: 0}, set[int](), b""
    far = zone is not None

    def name(target: int) -> int:
        return number.setdefault(target, len(number)) if target >= 0 else -1

    done = 0
    while done < len(number):
        state = [*number][done]
        done += 1
        if tables.returns[state] or tables.like[state]:
            return None
        names: list[object] = [bool(tables.live[state] >= 0) and not far]
        begin, end = tables.edge_start[state], tables.edge_start[state + 1]
        for target in (tables.edge_target[begin:end].astype(int) - 1).tolist():
            if target < tables.states:
                names.append(name(target))
                continue
            (record, sequence), *others = tables.moves[target - tables.states]
            if others or sequence or (record and (record[0] == MARK or (far and record[0] == SET))):
                return None
            if record is None:
                names.append("pop")
            elif zone is not None:
                names.append(name(record[2 + zone]))
            else:
                loops.add(record[1])
                zones = record[2:3] if record[0] == SET else record[2:]
                names.append((record[0], *map(name, zones)))
        text += tables.edge_low[begin:end].tobytes() + tables.edge_high[begin:end].tobytes() + repr(names).encode()
    return (text, max(loops, default=-1), [*number]) if len(loops) <= 1 else None


def subautomata(random: Random) -> None:
    """Parts of automata have the names that a plain search gives them, and tables with their edges."""
    for tables in pushdown_tables():
        arena = tables.arena()
        states = random.sample(range(tables.states), min(15, tables.states))
        for state, zone in itertools.product(states, (None, walker.BELOW, walker.BETWEEN)):
            found, expected = subautomaton(arena, state, zone), named(tables, state, zone)
            assert (found is None) == (expected is None)
            if found is None or expected is None:
                continue
            text, loop, members = expected
            assert (found.digest, found.loop) == (blake2b(text, digest_size=32).digest(), loop)
            assert len(found.table) == len(members)
            plain = [{t for t in tables.edges(s).values() if t < tables.states} for s in members]
            for row, targets in zip(found.table.tolist(), plain, strict=True):
                assert {members.index(target) for target in targets} <= {*row}


def followed(tables: PushdownTables, state: int, count: int, byte: int) -> tuple[int, int]:
    """State and count after a byte; -1 where it is dead, -2 where it pops."""
    target = tables.edges(state).get(byte, -1)
    if target >= tables.states:
        ((record, _),) = tables.moves[target - tables.states]
        if record is None:
            return -2, 0
        operation, loop, low, mid, high = record
        least, most = tables.loops[loop].tolist()
        count = 1 if operation == SET else count + 1
        target = low if operation == SET else high if count >= most else mid if count >= least else low
    return (target, count if tables.live[target] >= 0 else 0) if target >= 0 else (-1, 0)


def spelled(random: Random) -> None:
    """Texts lead in the table to the states and counts that they lead to, as far as they reach."""
    reach, came_to = 6, Counter[int]()
    for tables in pushdown_tables():
        arena = tables.arena()
        classes = arena[arena[kernels.A_CLASS_OF] :][:256].tolist()
        for state in range(tables.states):
            loop = int(tables.live[state])
            most = int(tables.loops[loop, 1]) if loop >= 0 else 0
            count = random.randint(1, most - 1) if most > 1 else most
            members, slots = np.empty((300, 2), np.int64), np.full(1 << 10, -1, np.int32)
            table = np.empty((300, 1 + max(classes)), np.int32)
            n = kernels.spell_counts(arena, state, count, reach, members, slots, table)
            for _ in range(20 if n else 0):
                here, place = (state, count), 0
                for _ in range(reach):
                    byte = random.choice([*tables.edges(here[0]), random.randrange(256)])
                    here, place = followed(tables, *here, byte), int(table[place, classes[byte]])
                    came_to[min(here[0], 0)] += 1
                    if here[0] < 0:
                        assert place == (len(table) if here[0] == -2 else -1)
                        break
                    assert place < n
                    assert members[place, 0] == here[0]
    assert len(came_to) == 3


def agreements(random: Random) -> None:
    """Pairs of states do the same for no fewer bytes than is told, and for just as many if nothing counts anew."""
    longest, told = 7, Counter[int]()
    words = {"type": "string", "pattern": r"^(\S+\s){0,6}\S+$", "maxLength": 900}
    machine = sg.compile(sg.JsonSchema(words), small_vocabulary(), eager=False).machine
    assert isinstance(machine, PushdownMachine)
    for tables in (machine.tables, *pushdown_tables()):
        arena, room = tables.arena(), random.choice((40, 4000))
        known = np.empty(room, np.int64), np.empty(room, np.int32), np.full(8192, -1, np.int32), np.zeros(1, np.int64)
        for _ in range(120):
            pair = [far_state(tables, longest, random) for _ in range(2)]
            edges = np.empty((1 << 14, 2), np.int32)
            found = kernels.agreement(arena, *(np.array(each, np.int64) for each in pair), longest, *known, edges)
            if found == kernels.NOT_TOLD:
                assert known[3][0] == room or any(tables.live[state] >= 0 for state, _ in pair)
                continue
            expected = same_for(tables, pair[0], pair[1], longest)
            assert found <= expected
            told[int(found)] += found == expected
    assert sum(told.values()) > 200
    assert {0, longest + 1} < told.keys()


def far_state(tables: PushdownTables, longest: int, random: Random) -> tuple[int, int]:
    """A state, with a count that no text so long brings to a bound if there is one."""
    state = random.randrange(tables.states)
    if tables.live[state] < 0:
        return state, 0
    least, most = tables.loops[tables.live[state]].tolist()
    return state, max(least, 1) if most - max(least, 1) > longest else most


def same_for(tables: PushdownTables, one: tuple[int, int], other: tuple[int, int], longest: int) -> int:
    """For how many bytes two states with counts do the same, found text by text."""

    def fate(place: tuple[int, int], byte: int) -> tuple[int, int]:
        entry = tables.edges(place[0]).get(byte, -1)
        if entry >= tables.states:
            first, *more = tables.moves[entry - tables.states]
            if more or first[0] is None or first[1]:
                return -2 - entry, 0
        return followed(tables, *place, byte)

    pairs = {(one, other)} if one != other else set()
    for length in range(longest + 1):
        if any(tables.returns[place[0]] for pair in pairs for place in pair):
            return length - 1
        after = {(fate(here, byte), fate(there, byte)) for here, there in pairs for byte in range(256)}
        after = {pair for pair in after if pair[0] != pair[1]}
        if any(place[0] < 0 for pair in after for place in pair):
            return length
        pairs = after
    return longest + 1


# -- distances: a search over all configurations, and texts that have to end -----------------------------------------


def counted_distances(random: Random) -> None:
    index = sg.compile(sg.Regex("a{3,20}b|(ab|c)+|(d{2,9}e){1,3}"), small_vocabulary(), eager=False)
    _, expected = searched(index)
    for more in (0, 1, 5):
        most = index.shortest() + more
        assert check_places(sg.Guide(index, max_tokens=most), most, random, expected) <= most


def stack_distances(random: Random) -> None:
    for definition in (NESTED, sg.Gbnf('root ::= "a" root "b" | [x-z]{2,30}'), sg.JsonSchema(OBJECT)):
        index = sg.compile(definition, small_vocabulary(), eager=False)
        check_bounds(index, random, texts=3, steps=8)
        check_budgets(index, random, (0, 3))


def grammar_distances(random: Random) -> None:
    index = sg.compile(STATEMENTS, small_vocabulary(), eager=False)
    check_budgets(index, random, (0, 3))


# -- batches: a guide for each sequence ------------------------------------------------------------------------------


def batches(random: Random) -> None:
    vocabulary = small_vocabulary()
    indexes = [
        sg.compile(each, vocabulary, eager=False)
        for each in (sg.Regex("(a|b)+"), sg.Regex("a{2,5}b{3}"), sg.JsonSchema({"enum": ["a", "ab", 1]}), NESTED)
    ]
    batch, guides = sg.GuideBatch(vocabulary), list[Sequence]()
    for _ in range(40):
        move(batch, guides, indexes, random)
        check(batch, guides)
    draft(batch, guides, 20, random)


def numbered_masks(random: Random) -> None:
    """Masks by number: a dictionary. Some are equal, and there is room for few at first."""
    store = row_store.RowStore(small_vocabulary())
    known = {bytes(row): number for number, row in enumerate(store.always)}
    for _ in range(30):
        masks = np.array(random.choices(range(1 << 10), k=random.randint(0, 40) * store.words), np.int32)
        masks = masks.reshape(-1, store.words) << random.choice((0, 20))
        numbers = store.add(masks)
        assert numbers.tolist() == [known.setdefault(bytes(row), len(known)) for row in masks]
        np.testing.assert_array_equal(store.dense(numbers), masks)
    assert len(store) == len(known)


def forests(random: Random) -> None:
    """Histories as lists, cut where no sequence can come back to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histories, "_FEW", 16)
        found = histories.Histories(4)
        texts: list[list[int]] = [[0] for _ in range(3)]
        found.at = np.array([found.begin(0) for _ in texts], np.int32)
        for _ in range(60):
            which = random.randrange(len(texts))
            if random.random() < 0.3:  # one goes on from where another one is
                other = random.randrange(len(texts))
                texts[which], found.at[which] = [*texts[other]], found.at[other]
            new = [random.randrange(100) for _ in range(random.randint(1, 3))]
            last = found.grow(new, new)
            found.befores[last - len(new) + 1] = found.at[which]
            found.at[which] = last
            texts[which] += new
            back = np.array([random.randint(0, min(4, len(text) - 1)) for text in texts], np.int32)
            nodes = found.before(np.arange(len(texts), dtype=np.int32), back)
            wanted = [text[-1 - n] for text, n in zip(texts, back.tolist(), strict=True)]
            assert found.places[nodes].tolist() == wanted
            if random.random() < 0.2:
                found.sweep()
            for sequence, text in enumerate(texts):
                assert [*found.tokens_of(sequence)] == text[1:]


# -- names of objects, one by one ------------------------------------------------------------------------------------


def names(random: Random) -> None:
    """Objects of one member, by its name: declared, forbidden, of a pattern, or any other."""
    for _ in range(8):
        declared = {word.decode(): random.random() < 0.7 for word in random.sample(WORDS, random.randint(0, 12))}
        others = random.choice((False, {"type": "integer"}, {"type": "null"}))
        schema: dict[str, Any] = {"type": "object", "additionalProperties": others}
        schema["properties"] = {name: {"type": "integer"} if taken else False for name, taken in declared.items()}
        pattern = random.choice(("", "a", "cb"))
        if pattern:
            schema["patternProperties"] = {f"^{pattern}": {"type": "integer"}}
        elif random.random() < 0.5:
            schema["propertyNames"] = {"maxLength": 40}
        written = sg.JsonSchema(schema, escapes=random.choice(("minimal", "any")))
        program = readable(compile_json_schema(written, meter(), keeps_sets=True)[0])
        for word in WORDS:
            name = word.decode()
            other = (pattern and name.startswith(pattern)) or others == {"type": "integer"}
            assert accepts(program, b'{"%b":1}' % word) == declared.get(name, bool(other)), (schema, name)
        assert not accepts(program, b'{"%b":1}' % (b"a" * 41)) or "propertyNames" not in schema


# -- matches of regexes, as `re` has them ----------------------------------------------------------------------------


def matches(random: Random) -> None:
    """The match at the beginning of a text, of regexes with lazy repeats and look-around."""
    for _ in range(20):
        pattern = random_regex(random, 4)
        with suppress(UnsupportedError):  # of what is before the text
            found = automaton(pattern)
            for _ in range(10):
                text = "".join(random.choices("abcé", k=random.randint(0, 8)))
                assert matched(found, text.encode()) == expected(pattern, text), (pattern, text)


def lexemes_under_obligations(random: Random) -> None:
    """What a lexeme can become while an earlier one is watched: a search through pairs of states, byte by byte."""
    for definition in (STATEMENTS, INDENTED, WORDS_APART):
        machine = sg.compile(definition, small_vocabulary(), eager=False).machine
        assert isinstance(machine, GrammarMachine)
        tables, future, own = machine.tables, machine._reader.futures.plain, machine._reader.futures._under._own
        table, beats = tables.table.tolist(), tables.beats.tolist()
        for most_pairs, most_known in (1 << 14, 1 << 19), (1 << 14, 8), (4, 1 << 19):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(watched_futures, "_MOST_PAIRS", most_pairs)
                patch.setattr(watched_futures, "_MOST_KNOWN", most_known)
                found = watched_futures.WatchedFutures(tables, future.__getitem__, own)
                for _ in range(40):
                    state = random.randrange(len(table))
                    watch = random.choice([each for each, is_longer in enumerate(beats) if not is_longer])
                    expected, seen = 0, {(state, watch)}
                    for here, there in (todo := [(state, watch)]):  # grows as it goes
                        expected |= own(here, (there,))
                        for s, w in zip(table[here], table[there], strict=True):
                            if s < 0 or (w >= 0 and beats[w]):
                                continue
                            if w < 0:
                                expected |= future[s]
                            elif (s, w) not in seen:
                                seen.add((s, w))
                                todo.append((s, w))
                    assert found(state, (watch,)) == expected


def obligations_of_lexers(random: Random) -> None:
    """Whether a state forbids all that another one does: a search through pairs of states, byte by byte."""
    for definition in (STATEMENTS, INDENTED, WORDS_APART):
        machine = sg.compile(definition, small_vocabulary(), eager=False).machine
        assert isinstance(machine, GrammarMachine)
        tables = machine.tables
        table, beats, lapses = tables.table.tolist(), tables.beats.tolist(), tables.lapses.tolist()
        for most in (1 << 12, 5):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(obligations, "_MOST_PAIRS", most)
                found = obligations.Obligations(tables.rows, tables.beats, tables.lapses, tables.table)
                for _ in range(60):
                    a, b = random.randrange(len(table)), random.randrange(len(table))
                    is_less, todo = False, [(a, b)]
                    for here, there in todo:  # grows as it goes
                        is_less |= bool(lapses[there] and not lapses[here])
                        for first, second in zip(table[here], table[there], strict=True):
                            if second < 0 or first == second or (first >= 0 and beats[first]):
                                continue
                            if first < 0 or beats[second]:
                                is_less = True
                            elif (first, second) not in todo[1:]:
                                todo.append((first, second))
                    assert found._find(a, b) == (not is_less and len(todo) - 1 <= most)


# -- configurations of an automaton with a stack, judged by the reference stepper -----------------------------------


def configurations(random: Random) -> None:
    """Steps and masks of a store, which grows on the way, and of another one that its configurations move to."""
    each_byte = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    item = {"type": "array", "items": {"$ref": "#"}, "maxItems": 9}
    index = sg.compile(
        sg.JsonSchema({"anyOf": [item, {"type": "integer"}, {"enum": ["aa", "ab"]}]}), each_byte, eager=False
    )
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    store = machine.stepper()
    config, threads = store.start, machine.start_threads
    for _ in range(60):
        allowed = ids_of_bits(store.row(config))
        wanted = [b for b in range(256) if machine.follow(threads, bytes([b]))]
        assert [each for each in allowed if each < 256] == wanted
        for byte in wanted:
            consumed, target = store.follow(config, bytes([byte]))
            assert consumed == 1
            assert store.advance(config, byte) == target
            assert store.is_accepting(target) == machine.may_end(machine.follow(threads, bytes([byte])))
        opening = [b for b in wanted if b == ord("[")]
        if not wanted:
            break
        byte = random.choice(opening or wanted)
        config, threads = store.advance(config, byte), machine.follow(threads, bytes([byte]))  # type: ignore[assignment]
    expected, other = store.row(config), ConfigurationStore(machine)
    for number in (other.adopt(store, np.array([config], np.int32))[0], other.add(threads)):
        np.testing.assert_array_equal(other.row(int(number)), expected)
    rows, _ = machine.rows_of(threads)
    store._put_rows(config, rows)
    np.testing.assert_array_equal(store.row(config), expected)
    for _ in range(3):  # written out with the second
        np.testing.assert_array_equal(store.row(config), expected)
    assert kernels.put_target(store._words, config, 0, kernels.DEAD) == 0
    assert store.advance(config, 0) is None
    refused = np.array(sorted(random.sample(range(257), 40)), np.int32)
    store._head.put(kernels.S_REFUSED, np.zeros(2 * len(store._head[kernels.S_CONFIGS]), np.int64))
    mask = np.zeros_like(expected)
    assert kernels.write_mask(store._words, config, mask) == kernels.NOT_REFUSED
    assert kernels.write_whole_mask(store._words, config, mask) == kernels.WRITTEN
    np.testing.assert_array_equal(mask, expected)
    for known, left_out in (((1, 0), ()), ((kernels.address(refused), 40), refused.tolist())):
        assert kernels.put_refused(store._words, config, *known) == kernels.WRITTEN
        assert kernels.write_mask(store._words, config, mask) == kernels.WRITTEN
        assert ids_of_bits(mask) == [each for each in ids_of_bits(expected) if each not in left_out]
    assert kernels.put_refused(store._words, len(known) << 40, 1, 0) == kernels.NO_CONFIG
    while (apart := kernels.stand_apart(store._words, config)) < 0:
        store._provide(apart)
    assert apart == len(store) - 1
    assert store.is_accepting(apart) == store.is_accepting(config)
    assert kernels.write_whole_mask(store._words, apart, mask) == kernels.WRITTEN
    np.testing.assert_array_equal(mask, expected)
    assert kernels.step_token(store._words, apart, 0) == kernels.BEYOND
    assert kernels.stand_apart(store._words, len(store)) == kernels.NO_CONFIG


# -- automata without a stack, judged by their tables, byte by byte -------------------------------------------------


def steps_of_automata(random: Random) -> None:
    """Where bytes and tokens lead, and masks: of eager and lazy indexes, of a file, and of one whose rows are few."""
    vocabulary = small_vocabulary()
    data = [vocabulary.token(token) or b"" for token in range(vocabulary.size)]
    for pattern in (r"(ab|c[d-f]*)+ \d{4}", COUNTED, r"[^x]*y?[^z]+x", r"(?:é{2,3}|b){4,40}"):
        lazy = sg.compile(sg.Regex(pattern), vocabulary, eager=False)
        eager = sg.compile(sg.Regex(pattern), vocabulary)
        indexes = [lazy, eager, Index.from_buffer(eager.to_bytes(), vocabulary)]
        machines = [each.machine for each in indexes if isinstance(each.machine, AutomatonMachine)]
        assert len(machines) == len(indexes)
        tables = machines[1].tables
        states, edges = tables.states, list[dict[int, int]]()
        for first, end in itertools.pairwise(tables.edge_start.tolist()):
            parts = [each[first:end].tolist() for each in (tables.edge_low, tables.edge_high, tables.edge_target)]
            edges.append({b: to for low, high, to in zip(*parts, strict=True) for b in range(low, high + 1)})

        def after(config: int, text: bytes, tables: Any = tables, edges: Any = edges, n: int = states) -> list[int]:
            found = []
            for byte in text:
                count, state = divmod(config, n)
                target = edges[state].get(byte, DEAD)
                if target >= n:
                    operation, loop, *targets = tables.records[target - n].tolist()
                    count = 1 if operation == SET else count + 1
                    least, most = tables.loops[loop].tolist()
                    target = targets[0 if operation == SET else 2 if count >= most else int(count >= least)]
                if target == DEAD:
                    break
                found.append(config := target + n * count * (tables.live[target] >= 0))
            return found

        config = tables.start
        for step in range(60):
            behind = [after(config, text) for text in data]
            targets = [
                way[-1] if text and len(way) == len(text) else None for way, text in zip(behind, data, strict=True)
            ]
            bytes_behind = {byte: to for byte in range(256) for to in after(config, bytes([byte]))}
            ends = list(vocabulary.eos_ids) if tables.accepting[config % states] else []
            mask = sorted([token for token, to in enumerate(targets) if to is not None] + ends)
            text = bytes(random.choices([*bytes_behind, 97], k=5))
            for machine in machines:
                assert [machine.advance(config, token) for token in range(vocabulary.size)] == targets
                assert [machine.follow_byte(config, byte) for byte in range(256)] == [
                    *map(bytes_behind.get, range(256))
                ]
                assert dict(machine.following(config)) == bytes_behind
                assert machine.follow(config, text).tolist() == after(config, text)
                assert ids_of_bits(machine.row(config)) == mask
                wide = np.full(vocabulary.words + 2, -1, np.int32)
                machine.write_mask(config, wide)
                assert ids_of_bits(wide) == mask
            going_on = [to for to in targets if to is not None]
            if not going_on:
                break
            config = max(going_on) if step % 2 else random.choice(going_on)
        words = machines[1]._words
        assert [kernels.step_automaton(words, tables.start, token) for token in (-1, vocabulary.size)] == [DEAD, DEAD]
        assert [kernels.step_automaton(words, -1, 0), kernels.step_automaton_byte(words, -1, 97)] == [DEAD, DEAD]
        for wrong in (-1, states << 31):
            assert kernels.write_state_mask(words, wrong, wide) == kernels.NO_CONFIG
        assert kernels.write_state_mask(words, 0, wide[:0]) == kernels.TOO_SHORT


_AUTOMATA = "step_automaton", "step_automaton_byte", "follow_automaton", "following_bytes", "write_state_mask"

_CONFIGURATIONS = (
    "begin_configs", "add_cell", "add_config", "adopt_configs", "longer_tables", "move_tables", "find_part", "add_part",
    "write_mask", "write_whole_mask", "put_refused", "stand_apart", "put_union",
    "decide_missing", "decide_and_write", "find_token", "step_token", "put_target", "step_bytes",
)  # fmt: skip


def differences(random: Random) -> None:
    """A row and a residual list that differ from others: what is in one of two sets."""
    index = sg.compile(sg.JsonSchema(OBJECT), small_vocabulary(), eager=True)
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    rows = machine.rows
    rows.come_by_open_states()
    tokens, nodes = [*range(rows.vocabulary.spelled)], [*range(1, len(rows.vocabulary.trie.byte))]
    for _ in range(60):
        held = random.randrange(len(rows.pool)), random.randrange(2, len(rows.residuals))
        ids = random.sample(tokens, random.choice((0, 1, 5, len(tokens) - 3)))
        below = random.sample(nodes, random.choice((0, 1, 9)))
        row, after = rows.differing(held, np.array(ids, np.int32), np.array(below, np.int32))
        assert ids_of_bits(rows.pool.dense(row)) == sorted({*ids_of_bits(rows.pool.dense(held[0]))} ^ {*ids})
        assert rows.residuals[after].tolist() == sorted({*rows.residuals[held[1]].tolist()} ^ {*below})


def interned(random: Random) -> None:
    """Rows and residual lists by number: a dictionary. Some are taken away again, and some rows laid out anew."""
    pool, lists, known = row_pool.RowPool(1 << 20), residuals.Residuals(), dict[tuple[int, ...], tuple[int, int]]()
    marks = pool.mark(), lists.mark(), 0
    for _ in range(400):
        few = sorted(random.sample(range(1, 1 << random.choice((3, 9, 20))), random.randint(1, 7)))
        found = pool.add_ids(np.array(few, np.int32)), lists.add(np.array(few, np.int32))
        assert known.setdefault(tuple(few), found) == found
        if random.random() < 0.02:
            marks = pool.mark(), lists.mark(), len(known)
        elif random.random() < 0.02:
            pool.cut(marks[0])
            lists.cut(marks[1])
            known = dict([*known.items()][: marks[2]])
        elif random.random() < 0.02 and len(known) == marks[2]:
            pool.compact()
    assert {len({each[i] for each in known.values()}) for i in (0, 1)} == {len(known)}
    for ids, (row, number) in known.items():
        assert tuple(ids_of_bits(pool.dense(row))) == tuple(lists[number]) == ids


def sections_of_files(random: Random) -> None:
    """Those of an index, with numbers of one of them changed, are read as a plain reader reads them."""
    index = sg.compile(sg.JsonSchema(OBJECT), small_vocabulary())
    for sections, declared, before, _ in readings(index):
        assert agrees(sections, declared, before)
        for _ in range(10):
            name = random.choice([name for name, each in sections.items() if each.size])
            changed = sections[name].copy()
            changed.reshape(-1)[random.randrange(changed.size)] = random.randrange(256)
            agrees({**sections, name: changed}, declared, before)


#: The oracle of each kernel.
ORACLES: Mapping[str, Oracle] = {
    **dict.fromkeys(_CONFIGURATIONS, configurations),
    **dict.fromkeys(_AUTOMATA, steps_of_automata),
    "read_columns": sections_of_files,
    **dict.fromkeys(("put_row", "number_rows", "put_list", "number_lists", "read_list"), interned),
    "decide_part": masks(NESTED, sg.JsonSchema(OBJECT), when=nothing_is_few),
    "decide_all": masks(NESTED, sg.JsonSchema(OBJECT), eager=True),
    "missing_parts": masks(NESTED, sg.JsonSchema(OBJECT), when=nothing_is_few),
    "determinize": automata,
    "word_trie": finite_sets,
    "share_suffixes": finite_sets,
    "ordered_subsets": matches,
    "coarsest_partition": automata,
    "intersect": products,
    "co_accessible": graphs,
    "prove_places": places,
    "build_key_states": names,
    "nearest_base": rows,
    "set_bits": rows,
    "flip_ids": rows,
    "flip_gaps": rows,
    "set_gaps": rows,
    "missing_gaps": rows,
    "keep_allowed": logits,
    "keep_allowed_halves": logits,
    "write_gaps": masks(sg.Regex(r"(ab|c[d-f]*)+ \d{4}"), eager=True),
    "walk_narrow": masks(sg.Regex(r"(ab|c[d-f]*)+ \d{4}"), eager=True),
    "walk_row": masks(sg.Regex(r"[^x]*y?[^z]+x"), sg.JsonSchema(OBJECT), eager=True, when=everything_is_wide),
    "walk_difference": masks(sg.Regex(r"[^x]*y?[^z]+x"), eager=True),
    "move_part_slots": masks(sg.JsonSchema(WIDE), eager=True),
    "walk_counted": masks(sg.Regex(COUNTED), eager=True),
    "widest_entry": table_rows,
    "number_byte_classes": masks(sg.Regex(r"[^x]*y?[^z]+x"), sg.JsonSchema(OBJECT)),
    "arena_size": arenas,
    "lay_out_arena": arenas,
    "order_edges": flat_programs,
    "flatten": flat_programs,
    "approach_base": bases,
    "heights_of": heights,
    "kinds_below": kinds_of_bytes,
    "spell_counts": spelled,
    "spell_regex_counts": masks(sg.Regex(COUNTED)),
    "number_sets": masks(sg.JsonSchema(WIDE, property_order="any"), eager=True),
    "narrowed": quotations,
    "may_end": quotations,
    "walk_text": quotations,
    "put_difference": differences,
    "name_subautomaton": subautomata,
    "agreement": agreements,
    "walk_stack": masks(NESTED, sg.JsonSchema(OBJECT), sg.JsonSchema(OBJECT, property_order="any")),
    "walk_sets": masks(NESTED, sg.JsonSchema(OBJECT), when=everything_is_long),
    "walk_stack_difference": masks(sg.JsonSchema(OBJECT), eager=True, when=everything_is_wide),
    "walk_stack_counted": masks(sg.JsonSchema(OBJECT), eager=True),
    "spread_counts": masks(sg.JsonSchema(OBJECT), eager=True),
    "looping_kinds": masks(STATEMENTS, INDENTED),
    "walk_lexer": masks(STATEMENTS, INDENTED),
    "follow_watched": lexemes_under_obligations,
    "solve_watched": lexemes_under_obligations,
    "keep_watched": lexemes_under_obligations,
    "find_watched": lexemes_under_obligations,
    "is_subsumed": obligations_of_lexers,
    "rows_of_runs": masks(STATEMENTS, INDENTED, when=everything_is_much),
    "lists_of_runs": masks(STATEMENTS, INDENTED),
    "lists_of_ends": masks(STATEMENTS, INDENTED),
    "lay_out_places": masks(STATEMENTS, INDENTED),
    "walk_stack_masks": masks(STATEMENTS, INDENTED),
    "replaced_pieces": masks(STATEMENTS, INDENTED, when=no_tables_remembered),
    "push_states": tokens_read,
    "read_token": tokens_read,
    "may_end_text": tokens_read,
    "keep_answer": tokens_read,
    "add_groups": masks(STATEMENTS, INDENTED),
    "walk_outcomes": counted_distances,
    "count_back": counted_distances,
    "walk_within": counted_distances,
    "cheapest_pops": stack_distances,
    "most_gained": stack_distances,
    "most_completed": grammar_distances,
    "follow_tokens": batches,
    "write_masks": batches,
    "find_targets": batches,
    "add_pages": numbered_masks,
    "roll_back": forests,
    "mark_nodes": forests,
    "take_texts": forests,
}
