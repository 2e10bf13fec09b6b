"""The store's kernels, judged by the reference stepper in plain Python, on definitions that branch, count and nest."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from judges.guides import ids_of_bits
from numpy.typing import NDArray
from tiers import draws

import structgen as sg
from structgen import kernels
from structgen.runtime.pushdown import machine as pushdown
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.stacks import END, Thread
from structgen.runtime.pushdown.store import store as module
from structgen.runtime.pushdown.store.store import ConfigurationStore

VOCABULARY = sg.Vocabulary.from_bytes(
    [
        *(bytes([i]) for i in range(32, 127)),
        b'{"',
        b'":',
        b'","',
        b'"}',
        b"[1",
        b"],",
        b"aa",
        b"aab",
        b"((",
        b")]",
        None,
    ],
    eos_ids=[105],
)

ANYTHING: dict[str, Any] = {"type": ["object", "array", "string", "number", "null"]}

DEFINITIONS = {
    "values": sg.JsonSchema(ANYTHING),
    "members": sg.JsonSchema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "number"},
                "ab": {"type": "array", "items": {"type": "integer"}, "maxItems": 3},
            },
            "additionalProperties": {"type": "string", "maxLength": 4},
        }
    ),
    "in any order": sg.JsonSchema(
        {"type": "object", "properties": {k: {"type": "integer"} for k in "abc"}, "required": ["a", "b"]},
        property_order="any",
    ),
    "alternatives": sg.JsonSchema(
        {
            "anyOf": [
                {"type": "array", "maxItems": 1, "items": {"$ref": "#"}},
                {"type": "array", "minItems": 2},
                {"const": 1},
            ]
        }
    ),
    "ambiguous": sg.Gbnf('root ::= "a" root "b"? | "a" root "c"? | "d" | root2\nroot2 ::= ("(" root2 ")")? "a"*'),
    "words": sg.Gbnf('root ::= (word ("," word)*)? ";"\nword ::= [a-c]{1,5} | "aab" word'),
}


def row_of(machine: PushdownMachine, threads: tuple[Thread, ...]) -> NDArray[np.int32]:
    """The mask of threads by the reference stepper."""
    machine.begin_deciding()
    try:
        numbers, _ = machine.rows_of(threads)
        row = np.zeros(machine.vocabulary.words, np.int32)
        for number in numbers:
            machine.pool.add_to(row, number)
    finally:
        machine.end_deciding()
    return row | machine.vocabulary.eos_row if machine.may_end(threads) else row


def machine_of(name: str) -> PushdownMachine:
    machine = sg.compile(DEFINITIONS[name], VOCABULARY, eager=False).machine
    assert isinstance(machine, PushdownMachine)
    return machine


def walks(machine: PushdownMachine, seed: str, texts: int = 4, steps: int = 25) -> Any:
    """Along random texts: a configuration of the store, the reference's threads, and the tokens that are allowed."""
    rng, store = random.Random(seed), machine.stepper()
    for _ in range(texts):
        config, threads = store.start, machine.start_threads
        for _ in range(steps):
            allowed = set(ids_of_bits(store.row(config))) - {105}
            yield store, config, threads, allowed
            if not allowed:
                break
            token = rng.choice(sorted(allowed))
            target = store.advance(config, token)
            assert target is not None
            config, threads = target, machine.follow(threads, VOCABULARY.token(token) or b"")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_kernels_step_as_the_reference_does(name: str) -> None:
    """Every token from every configuration: whether it is allowed, and whether the text is complete behind it."""
    machine = machine_of(name)
    for store, config, threads, allowed in walks(machine, name, draws(4)):
        assert store.is_accepting(config) == machine.may_end(threads)
        assert (105 in ids_of_bits(store.row(config))) == machine.may_end(threads)
        for token in range(105):
            data = VOCABULARY.token(token) or b""
            after, target = machine.follow(threads, data), store.advance(config, token)
            assert (target is not None) == bool(after) == (token in allowed), (name, data)
            if target is not None:
                assert store.is_accepting(target) == machine.may_end(after)
        text = "".join(map(chr, random.Random(name).choices(range(32, 127), k=6))).encode()
        consumed, behind = store.follow(config, text)
        expected, there = machine.followed(threads, text)
        assert (consumed, store.is_accepting(behind)) == (expected, machine.may_end(there))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_threads_are_told_and_kept(name: str) -> None:
    machine, alone = machine_of(name), 0
    for store, config, threads, _ in walks(machine, f"threads of {name}", draws(3)):
        rows = store.rows_of(config)
        assert store.keep(rows) == config
        assert {row[:2] for row in store.left_to(config)} >= {row[:2] for row in rows}
        closed = {(state, count) for state, count, _ in machine.stacks.closed(threads)}
        assert {row[:2] for row in store.left_to(config) if row[0] != END} == closed - {(END, 0)}
        for row in rows:
            ((state, count, _),) = store.threads(store.keep([row]))
            assert (state, count) == row[:2]
            alone += 1
        for byte in b'a1"[':
            consumed, after = store.follow(config, bytes((byte,)))
            assert store.after_byte(config, byte) == (after if consumed else -1)
    assert alone


@pytest.mark.parametrize("name", DEFINITIONS)
def test_masks_are_those_of_the_reference(name: str) -> None:
    machine = machine_of(name)
    for store, config, threads, _ in walks(machine, f"masks of {name}", draws(3)):
        with machine.lock:
            np.testing.assert_array_equal(store.row(config), row_of(machine, threads))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_configurations_move_to_another_store(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels copy them, the reference stepper lays them out: either way the masks are the same."""
    machine = machine_of(name)
    for store, config, _, _ in [*walks(machine, f"moves of {name}", 2)]:
        other = ConfigurationStore(machine)
        [moved, none] = other.adopt(store, np.array([config, -1], np.int32)).tolist()
        assert none == -1
        again = other.add(store.threads(config))
        for number in (moved, again):
            np.testing.assert_array_equal(other.row(number), store.row(config))
            assert other.is_accepting(number) == store.is_accepting(config)
        assert other.explain(moved) == other.explain(again)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_guides_go_on_where_stores_are_full(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    index = sg.compile(DEFINITIONS[name], VOCABULARY, eager=False)
    plain = sg.compile(DEFINITIONS[name], VOCABULARY, eager=False)
    monkeypatch.setattr(module, "MOST_CONFIGS", 5)
    rng = random.Random(name)
    for _ in range(draws(4)):
        guide, other, kept = sg.Guide(index), sg.Guide(plain), []
        for _ in range(150):
            row = guide.bitmask()
            np.testing.assert_array_equal(row, other.bitmask())
            allowed = sorted(set(ids_of_bits(row)) - {105})
            if not allowed:
                break
            token = rng.choice(allowed)
            kept.append((guide.fork(), row))
            assert guide.advance(token)
            assert other.advance(token)
        for fork, row in kept:
            np.testing.assert_array_equal(fork.bitmask(), row)
        for _, row in reversed(kept):
            guide.rollback(1)
            np.testing.assert_array_equal(guide.bitmask(), row)


@pytest.mark.parametrize("tokens", [[105, 106, 105], [0, 106, 106, 105, 0]])
def test_states_that_a_step_lowers_are_laid_out(tokens: list[int]) -> None:
    """A mask may be the first thing that is asked for behind steps that no mask was asked for."""
    vocabulary = sg.Vocabulary.from_bytes(
        [*(VOCABULARY.token(i) for i in range(105)), None, None, None],
        eos_ids=[107],
        special_tokens={"<a>": 105, "<b>": 106},
    )
    inner = {"type": "any_tokens", "exclude_tokens": [0, 1]}
    dispatch = {"type": "token_dispatch", "rules": [["<b>", inner]], "loop": False, "exclude_tokens": []}
    tag = sg.StructuralTag({"type": "structural_tag", "format": dispatch})
    asked, unasked = (sg.Guide(sg.compile(tag, vocabulary, eager=False)) for _ in range(2))
    unasked.bitmask()
    for token in tokens:
        np.testing.assert_array_equal(asked.bitmask(), asked.bitmask())
        assert asked.advance(token) == unasked.advance(token)
        assert asked.is_accepting() == unasked.is_accepting()
    np.testing.assert_array_equal(asked.bitmask(), unasked.bitmask())


def test_sets_of_tokens_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """And masks stay right where those that were put together are forgotten."""
    vocabulary = sg.Vocabulary.from_bytes(
        [*(VOCABULARY.token(i) for i in range(105)), None, None, None],
        eos_ids=[107],
        special_tokens={"<a>": 105, "<b>": 106},
    )
    elements = [{"type": "any_tokens", "exclude_tokens": [k, "<b>"]} for k in range(6)]
    tags = [
        {"type": "tag", "begin": "x", "content": each, "end": {"type": "token", "token": "<b>"}} for each in elements
    ]
    tag = sg.StructuralTag({"type": "structural_tag", "format": {"type": "sequence", "elements": tags}})
    bounded, plain = (sg.compile(tag, vocabulary, eager=False) for _ in range(2))
    assert isinstance(bounded.machine, PushdownMachine)
    for _ in range(2):
        guide, other = sg.Guide(bounded), sg.Guide(plain)
        for _ in tags:
            for token in (ord("x") - 32, 40, 106):
                monkeypatch.setattr(pushdown, "MOST_TOKEN_SETS", 1)
                row = guide.bitmask()
                monkeypatch.undo()
                np.testing.assert_array_equal(row, other.bitmask())
                assert guide.advance(token)
                assert other.advance(token)
                assert len(bounded.machine._sets) <= 1
    assert bounded.machine.rows.generation > 4


def test_rows_that_are_forgotten_change_no_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = machine_of("members")
    for store, config, _, _ in walks(machine, "forgotten", 3):
        row = store.row(config)
        with machine.lock:
            machine.rows.forget()
        np.testing.assert_array_equal(store.row(config), row)


#: With pairs of characters: masks that are worth a page.
PAIRS = sg.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(32, 127)), *(bytes([i, j]) for i in range(32, 72) for j in range(32, 127, 2)), None],
    eos_ids=[95 + 40 * 48],
)


def masks_with_pages(monkeypatch: pytest.MonkeyPatch, most: int) -> tuple[NDArray[np.int64], list[Any]]:
    """The head of the pages, so many at most, and places of several stores with their masks."""
    monkeypatch.setattr(module, "_MOST_PAGES", most)
    monkeypatch.setattr(module, "_scratch", module._Scratch())
    found = []
    for longest in (4, 4, 6, 9):
        schema = {
            "properties": {"a": {"type": "number"}},
            "additionalProperties": {"type": "string", "maxLength": longest},
        }
        machine = sg.compile(sg.JsonSchema(schema), PAIRS, eager=False).machine
        assert isinstance(machine, PushdownMachine)
        store = machine.stepper()
        config: int | None = store.start
        for token in b'{"b":"xyz':
            config = None if config is None else store.advance(config, token - 32)
            assert config is not None
            with machine.lock:
                found.append((store, config, row_of(machine, store.threads(config))))
    return module._scratch.pages(PAIRS.row_words).words, found


def test_masks_are_written_out_once_for_all_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, found = masks_with_pages(monkeypatch, 1000)
    counts = []
    for _ in range(3):
        for store, config, row in found:
            np.testing.assert_array_equal(store.row(config), row)
        counts.append(int(pages[kernels.N_PAGES]))
    assert 0 == counts[0] < counts[1] == counts[2]  # of what is written but once there is none
    paged = [(store, config) for store, config, _ in found if page_of(store, config) >= 0]
    assert len({page_of(*each) for each in paged}) == counts[2] < len({(id(store), config) for store, config in paged})


def page_of(store: ConfigurationStore, config: int) -> int:
    arrays = store._head
    union = arrays[kernels.S_CONFIGS][config, kernels.C_UNION]
    return int(arrays[kernels.S_UNIONS][union, kernels.U_PAGE])


def test_pages_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    pages, found = masks_with_pages(monkeypatch, 1)
    for _ in range(8):
        for store, config, row in found:
            np.testing.assert_array_equal(store.row(config), row)
        assert pages[kernels.N_PAGES] <= 1
    assert pages[kernels.G_GENERATION] > 1


def test_a_mask_of_any_width() -> None:
    machine = machine_of("values")
    store = machine.stepper()
    row = store.row(store.start)
    for words in (4, 5, 9):
        mask = np.full(words, -1, np.int32)
        store.write_mask(store.start, mask)
        np.testing.assert_array_equal(mask[:4], row[:4])
        assert not mask[4:].any()
    with pytest.raises(sg.errors.BitmaskError, match="4 words"):
        store.write_mask(store.start, np.zeros(3, np.int32))


def test_no_configuration_beyond_the_last() -> None:
    store = machine_of("values").stepper()
    for number in (-1, len(store), 1 << 40):
        with pytest.raises(sg.errors.InternalError, match="no such configuration"):
            store.advance(number, 0)
        assert kernels.write_mask(store._words, number, np.zeros(4, np.int32)) == kernels.NO_CONFIG


def test_a_step_allocates_nothing_that_is_collected() -> None:
    import gc

    index = sg.compile(DEFINITIONS["members"], VOCABULARY, eager=False)
    mask = np.zeros(VOCABULARY.words, np.int32)
    tokens = [ord(c) - 32 for c in '{"a":1,"ab":[1,2],"x":"y"}']
    for _ in range(2):
        guide = sg.Guide(index)
        gc.collect()
        before = len(gc.get_objects())
        for token in tokens:
            assert guide.advance(token)
            guide.fill_bitmask(mask)
        after = len(gc.get_objects())
    assert after - before <= 1


def test_an_interrupt_while_tables_grow_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before they are moved, and behind that: kernels go on in memory that is there."""
    store, one = ConfigurationStore(machine_of("values")), VOCABULARY.byte_ids[ord("1")]
    after, move_tables = store.advance(store.start, one), kernels.move_tables
    for has_moved in (False, True, True):

        def interrupted(*arguments: Any, has_moved: bool = has_moved) -> int:
            size: int = move_tables(*arguments) if has_moved or not len(arguments[2]) else 0
            if len(arguments[2]):
                raise KeyboardInterrupt
            return size

        with monkeypatch.context() as patched:
            patched.setattr(kernels, "move_tables", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store._grow()
        held = [*store._head.values(), *store._head._moving.values()]
        for place in (kernels.S_CELLS, kernels.S_THREADS, kernels.S_CONFIGS, kernels.S_UNIONS):
            assert store.head[place] in [*map(kernels.address, held), kernels.address(store._head[place])]
        assert store.advance(store.start, one) == after
    store._grow()
    for place in (kernels.S_CELLS, kernels.S_THREADS, kernels.S_CONFIGS, kernels.S_UNIONS):
        assert store.head[place] == kernels.address(store._head[place])
    assert store.advance(store.start, one) == after


def test_who_reads_a_table_while_it_grows_finds_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """`is_accepting` holds no lock: the longer table is in its place only when it has everything."""
    store = ConfigurationStore(machine_of("values"))
    after = store.advance(store.start, VOCABULARY.byte_ids[ord("1")])
    assert after is not None
    assert store.is_accepting(after)
    found, move_tables = list[bool](), kernels.move_tables

    def move(*arguments: Any) -> int:
        found.append(store.is_accepting(after))
        size: int = move_tables(*arguments)
        found.append(store.is_accepting(after))
        return size

    monkeypatch.setattr(kernels, "move_tables", move)
    store._grow()
    assert found == [True] * 4
    assert store.is_accepting(after)
