"""What grows at run time is bounded, and what is forgotten is worked out again: the masks stay the same."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest
from hostile.concurrent_work import DEFINITIONS, LIMITABLE, check, compiled, expected, together, vocabulary

import structgen as sg
from structgen import kernels
from structgen.runtime.automaton import distances as automaton_distances
from structgen.runtime.automaton import machine as automaton
from structgen.runtime.batch import numbered_stepper
from structgen.runtime.core import dense_rows
from structgen.runtime.core import lazy_table as on_demand
from structgen.runtime.core.lazy_table import LazyTable
from structgen.runtime.grammar import interned_machine as stack_machine
from structgen.runtime.grammar import lexer_threads as grammar_threads
from structgen.runtime.grammar import mask_builder as stack_masks
from structgen.runtime.grammar import partial_masks as lexer_places
from structgen.runtime.grammar.completability import boundaries as borders_module
from structgen.runtime.grammar.completability import completions, obligations, watched_futures
from structgen.runtime.grammar.completability import indented_moves as laid_out
from structgen.runtime.grammar.completability import lexical_follow as reading
from structgen.runtime.grammar.distances import token_distances as grammar_distances
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser import parser_driver as parses
from structgen.runtime.grammar.parser import subsumption as parser_cover
from structgen.runtime.index.index import Index
from structgen.runtime.pushdown import machine as pushdown
from structgen.runtime.pushdown import partial_masks as stack_rows
from structgen.runtime.pushdown import walker
from structgen.runtime.pushdown.distances import cheapest_texts
from structgen.runtime.pushdown.distances import token_distances as stack_distances
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.store import store
from structgen.runtime.rows import row_pool as rows
from structgen.runtime.rows import row_store
from structgen.runtime.rows.head import Head
from structgen.system.memo import Memo, first, shorten
from structgen.vocabulary import vocabulary as vocabulary_module

every_kind = pytest.mark.parametrize("kind", list(DEFINITIONS))

#: Everything that has a bound, with a small one.
SMALL: list[tuple[Any, str, int]] = [
    (automaton, "MOST_GROWN", 300),
    (automaton_distances, "MEMO_ENTRIES", 3),
    (borders_module, "MOST_ANSWERS", 2),
    (cheapest_texts, "MEMO_ENTRIES", 3),
    (completions, "_MOST_KNOWN", 2),
    (grammar_distances, "MEMO_ENTRIES", 3),
    (grammar_threads, "_MOST_ANSWERS", 2),
    (laid_out, "MOST_ANSWERS", 2),
    (lexer_places, "MOST_GROWN", 4000),
    (obligations, "_MOST_KNOWN", 2),
    (obligations, "_MOST_SETS", 2),
    (on_demand, "MOST_ENTRIES", 2),
    (parser_cover, "_MOST_KNOWN", 2),
    (parses, "_MOST_STACKS", 5),
    (pushdown, "MEMO_FRAMES", 5),
    (pushdown, "MEMO_MOVES", 5),
    (dense_rows.ARENAS, "most", 0),
    (dense_rows.DENSE_ROWS, "most", 100),
    (reading, "MOST_ANSWERS", 2),
    (stack_distances, "MEMO_ENTRIES", 3),
    (stack_machine, "MEMO_CONFIGS", 4),
    (stack_machine, "MEMO_TARGETS", 4),
    (store, "MOST_CONFIGS", 4),
    (store, "MOST_TOKENS", 4),
    (store, "MOST_CELLS", 4),
    (stack_masks, "_MOST_BYTES", 2000),
    (stack_masks, "_MOST_LEVELS", 2),
    (stack_rows, "MOST_GROWN", 4000),
    (vocabulary_module, "_MOST_SHARED", 1000),
    (watched_futures, "_MOST_ANSWERS", 2),
    (watched_futures, "_MOST_STATES", 2),
]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that every text comes to."""
    for kind in DEFINITIONS:  # by themselves first
        expected(kind)
        if kind in LIMITABLE:
            expected(kind, is_limited=True)
    for module, name, bound in SMALL:
        monkeypatch.setattr(module, name, bound)


@every_kind
def test_masks_do_not_depend_on_bounds(kind: str, small: None) -> None:
    index = compiled(kind)
    for shift in range(2):
        check(index, kind, shift)
        check(Index.from_buffer(index.to_bytes(), vocabulary()), kind)
    if kind in LIMITABLE:
        check(index, kind, is_limited=True)
    index.machine.fill()
    check(index, kind)
    check(Index.from_buffer(index.to_bytes(), vocabulary()), kind)


@every_kind
def test_nor_beside_other_threads(kind: str, small: None) -> None:
    """While everything is forgotten over and over, and filled in."""
    index = compiled(kind)
    work: list[Any] = [partial(check, index, kind, shift) for shift in range(5)]
    together([*work, index.machine.fill, lambda: check(Index.from_buffer(index.to_bytes(), vocabulary()), kind)])
    check(index, kind)


NAMES = [f"{letter}{i}" for letter in "abcde" for i in range(6)]


def masks_of_members(index: sg.Index, seed: int) -> list[bytes]:
    """The masks before the members of an object, which come in some order."""
    guide, found = sg.Guide(index), []
    assert guide.advance(ord("{"))
    for name in Random(seed).sample(NAMES, len(NAMES)):
        found.append(guide.bitmask().tobytes())
        assert all(map(guide.advance, f'"{name}":0,'.encode())) or len(found) == len(NAMES)
    return found


class TestGenerations:
    """Numbers of rows and residual lists that configurations keep are of a generation."""

    def test_sets_of_members(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """There are more of them than there is memory for."""
        members = {name: {"const": 0} for name in NAMES}
        definition = sg.JsonSchema({"properties": members, "additionalProperties": False}, property_order="any")
        index, bounded = (sg.compile(definition, vocabulary(), eager=False) for _ in range(2))
        machine = bounded.machine
        assert isinstance(machine, PushdownMachine)
        for seed in range(12):
            with monkeypatch.context() as patched:
                wanted = masks_of_members(index, seed)
                patched.setattr(stack_rows, "MOST_GROWN", 5_000)
                assert masks_of_members(bounded, seed) == wanted
            assert machine.rows.pool.grown + machine.rows.residuals.grown < 10_000
        parts = index.machine.rows.parts  # type: ignore[attr-defined]
        assert len(parts) > 12 * 20
        assert len(machine.rows.parts) < len(parts) // 3
        assert machine.rows.generation > 2

    def test_what_a_guide_stands_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A configuration that is kept past a generation has its row worked out anew, from new numbers."""
        index = compiled("json in any order")
        machine = index.machine
        assert isinstance(machine, PushdownMachine)
        text = expected("json in any order")[1][0]
        guides = [sg.Guide(index)]
        for token in text.tokens:
            guides[-1].bitmask()
            guides.append(guides[-1].fork())
            assert guides[-1].advance(token)
        for guide, mask in reversed(list(zip(guides, text.masks, strict=False))):
            with machine.lock:
                machine.rows.forget()
            assert guide.bitmask().tobytes() == mask
        assert machine.rows.generation > 5

    def test_what_was_filled_in_stays(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And what came from a file."""
        for kind in ("json in any order", "lark", "lark with definitions", "indentation"):
            index = compiled(kind)
            index.machine.fill()
            for each in (index, Index.from_buffer(index.to_bytes(), vocabulary())):
                machine = each.machine
                known = machine.known_rows
                with monkeypatch.context() as patched:
                    patched.setattr(stack_rows, "MOST_GROWN", -1)  # forget whenever a row is asked for
                    patched.setattr(lexer_places, "MOST_GROWN", -1)
                    check(each, kind)
                assert machine.known_rows >= known
                check(Index.from_buffer(each.to_bytes(), vocabulary()), kind)

    def test_levels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        index = compiled("indentation")
        check(index, "indentation")
        machine = index.machine
        assert isinstance(machine, GrammarMachine)
        monkeypatch.setattr(stack_masks, "_MOST_LEVELS", 1)
        before = machine.masks.generation
        check(compiled("indentation"), "indentation")
        for config in list(machine._configs.values()):
            config.dense = None
        check(index, "indentation")
        assert machine.masks.generation > before


class TestBounds:
    """What each memory holds after many texts."""

    def test_targets_and_frames(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store, "MOST_TOKENS", 100)
        monkeypatch.setattr(store, "MOST_CELLS", 30)
        index = compiled("gbnf")
        machine = index.machine
        assert isinstance(machine, PushdownMachine)
        standing = sg.Guide(index)
        assert all(map(standing.advance, b"[[["))
        for text in range(40):
            index.match(b"[" * text + b"]")
            standing.allows(text)
        index.match(b"[" * 2000)
        for token in range(256):
            standing.allows(token)
        assert machine.stepper().is_full() is False
        assert len(machine.stepper()) < 100

    def test_forgotten_stacks(self) -> None:
        """They are taken apart a few with each new one, not all in one step."""
        definition = sg.Grammar('start: ("(" start ")")*', lexer="basic", ambiguity="all")
        index = sg.compile(definition, vocabulary(), eager=False)
        machine = index.machine
        assert isinstance(machine, GrammarMachine)
        parser = machine.parses.parser
        index.match(b"(" * 100)
        child = next(iter(parser.start.above.values()))
        assert child.above
        parser.forget()
        assert not parser.start.above
        assert child.above
        for state in range(100, 300):
            parser.push(parser.start, state)
        assert not child.above
        assert not parser._forgotten

    def test_distances(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in (stack_distances, cheapest_texts):
            monkeypatch.setattr(module, "MEMO_ENTRIES", 10)
        index = compiled("gbnf")
        check(index, "gbnf", is_limited=True)
        distances: Any = index.distances
        assert len(distances._farthest) <= 10
        for depth in range(40):
            guide = sg.Guide(index)
            assert all(map(guide.advance, b"[" * depth))
            distances.near(guide.config, 100)
        assert len(distances._sums) < 60
        assert len(distances._texts._next) <= 10

    def test_shared_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vocabulary_module, "_MOST_SHARED", 20_000)
        own = sg.Vocabulary.from_bytes([vocabulary().token(i) for i in range(vocabulary().size)], [])
        for length in range(600, 620):
            index = sg.compile(sg.JsonSchema({"type": "string", "pattern": f"^[a-z{chr(length)}]*$"}), own)
            guide = sg.Guide(index)
            assert guide.advance(ord('"'))
            assert guide.allows(ord("x"))
            assert not guide.allows(ord("X"))
        held = sum(vocabulary_module._bytes_of(shared) for shared in own.shared_rows.values())
        assert held <= 20_000

    @staticmethod
    def _check(batch: sg.GuideBatch, kind: str) -> None:
        """The same texts as `check`, in a batch."""
        for masks, tokens in expected(kind)[1]:
            batch.reset()
            for mask, token in zip(masks, tokens, strict=True):
                assert batch.bitmask().tobytes() == mask
                assert batch.advance([token]).all()

    def test_rows_that_are_spelled_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All machines together keep so many bytes; those that added none for the longest time let go of theirs."""
        row = 4 * vocabulary().words
        held = dense_rows.SharedBound(40 * row)
        monkeypatch.setattr(numbered_stepper, "DENSE_ROWS", held)
        kinds = ["lark"] * 6 + ["ambiguity"] * 6
        batches = [sg.GuideBatch(vocabulary(), [compiled(kind)]) for kind in kinds]
        for _ in range(2):
            for batch, kind in zip(batches, kinds, strict=True):
                self._check(batch, kind)
                assert 0 < held.total <= 40 * row
        del batch, batches
        gc.collect()
        self._check(sg.GuideBatch(vocabulary(), [compiled("lark")]), "lark")
        assert held.total <= 40 * row

    def test_rows_at_single_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Those of a lazy regex are forgotten where they are many."""
        definition = sg.Regex("(?:a|bc|d?e){300,900}x")
        lazy, eager = (sg.compile(definition, vocabulary(), eager=each) for each in (False, True))
        machine = lazy.machine
        assert isinstance(machine, automaton.AutomatonMachine)
        monkeypatch.setattr(automaton, "MOST_GROWN", 60)
        pools: list[rows.RowPool | None] = []
        put = Head.put

        def watched(head: Head, place: int, *arrays: Any) -> None:
            if head is machine._head and machine._singles is not None:  # which kernels of other threads read until now
                assert head.get(kernels.D_SINGLE_POOL) is machine._singles.head.words
            put(head, place, *arrays)

        monkeypatch.setattr(Head, "put", watched)
        guides = sg.Guide(lazy), sg.Guide(eager)
        for token in b"abcdee" * 130:
            lists = [guide.bitmask().tolist() for guide in guides]
            assert lists[0] == lists[1]
            assert all(guide.advance(token) for guide in guides)
            pools.append(machine._singles)
            assert pools[-1] is None or pools[-1].grown < 1000
        assert len({id(pool) for pool in pools if pool is not None}) > 1
        assert not machine.is_complete()

    def test_arenas(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All machines together keep room for so many tables; those that began to walk first let go of theirs."""
        indexes = [compiled("json") for _ in range(6)]
        check(compiled("json"), "json")  # whose masks the others share, for which they keep no pairs of states
        monkeypatch.setattr(stack_rows, "ARENAS", held := dense_rows.SharedBound(1 << 30))
        check(indexes[0], "json")
        monkeypatch.setattr(held, "most", 2 * held.total)
        for index in indexes[1:]:
            check(index, "json")
            assert 0 < held.total <= held.most
        machines = [index.machine for index in indexes if isinstance(index.machine, pushdown.PushdownMachine)]
        assert [machine.rows._walker is None for machine in machines] == [True] * 4 + [False] * 2

    def test_an_arena_larger_than_the_bound(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It stays while its machine walks, is laid out once, and goes without the collector when another one comes."""
        monkeypatch.setattr(stack_rows, "ARENAS", dense_rows.SharedBound(1, keeps_last=True))
        made: list[weakref.ref[walker.StackWalker]] = []
        make = walker.StackWalker.__init__

        def noted(self: walker.StackWalker, *arguments: Any) -> None:
            made.append(weakref.ref(self))
            make(self, *arguments)

        monkeypatch.setattr(walker.StackWalker, "__init__", noted)
        indexes = [compiled("json") for _ in range(2)]
        made.clear()
        gc.collect()
        gc.disable()
        try:
            for index in indexes:
                check(index, "json")
            assert [each() is None for each in made] == [True, False]
        finally:
            gc.enable()

    def test_rows_of_batches(self) -> None:
        """A row that comes as another array every time is held once."""
        store = row_store.RowStore(vocabulary(), most_bytes=0)
        assert {*store.add(np.tile(vocabulary().eos_row, (3000, 1))).tolist()} == {row_store.EOS_IDS}


class Changing(dict[int, int]):
    """A dictionary that another thread adds to while it is iterated for the first time."""

    changes = 1

    def __iter__(self) -> Iterator[int]:
        for key in super().__iter__():
            if self.changes:
                self.changes -= 1
                raise RuntimeError("dictionary changed size during iteration")
            yield key


def test_a_dictionary_that_changes_is_shortened() -> None:
    entries = Changing({key: key for key in range(20)})
    shorten(entries, 16)
    assert [*entries] == [*range(6, 20)]


class TestMemo:
    def test_the_oldest_go(self) -> None:
        memo: Memo[int, int] = Memo(16)
        for i in range(16):
            memo[i] = i
        assert list(memo) == [*range(16)]
        memo[16] = 16
        assert list(memo) == [*range(3, 17)]  # an eighth of them, not so many that a step is late
        for _ in range(20):
            memo[3] = 3  # what is replaced takes no more room
        assert list(memo) == [*range(3, 17)]

    def test_weights(self) -> None:
        memo: Memo[str, bytes] = Memo(10, len)
        memo["a"], memo["b"], memo["c"] = b"1234", b"1234", b"12"
        assert len(memo) == 3
        memo["d"] = b"1"
        assert list(memo) == ["c", "d"]
        memo["e"] = b"1" * 11
        assert "e" not in memo  # too large for it
        memo.clear()
        memo["f"] = b"1" * 10
        assert list(memo) == ["f"]

    def test_on_demand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(on_demand, "MOST_ENTRIES", 3)
        squares = LazyTable(lambda number: number**2)
        assert [squares[i % 7] for i in range(50)] == [(i % 7) ** 2 for i in range(50)]
        assert len(squares) <= 3

    def test_threads(self) -> None:
        memo: Memo[int, int] = Memo(10)

        def use(seed: int) -> None:
            for i in range(3000):
                memo[(i * seed) % 97] = 1
                assert memo.get((i * seed) % 89) in (None, 1)

        together([partial(use, seed) for seed in range(1, 6)])
        assert len(memo) <= 10 + 5

    def test_another_thread_shortens_it_meanwhile(self) -> None:
        """Its size is asked once."""

        class Shared(dict[int, int]):
            def __len__(self) -> int:
                size = super().__len__()
                self.clear()
                return size

        entries = Shared(dict.fromkeys(range(11), 1))
        shorten(entries, 10)
        assert not dict(entries)

    def test_first(self) -> None:
        assert first({"a": 1, "b": 2, "c": 3}, 2) == {"a": 1, "b": 2}
