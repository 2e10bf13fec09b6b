"""Long work of grammars is cut in slices: the same masks, and others have their turn in between."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from judges.lark_judge import vocabulary_of

import structgen as sg
from structgen import kernels
from structgen.runtime.core.bitsets import sets_of
from structgen.runtime.core.lazy_table import LazyTable
from structgen.runtime.grammar import mask_builder, partial_masks
from structgen.runtime.grammar.completability import obligations
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.mask_graph import SetsOfEndings
from structgen.system.locks import Lock

LETTERS = 'ab12+*()"{}[]:, ifn'
DEFINITIONS: dict[str, sg.Grammar] = {
    "json": sg.Grammar("%import json (value)\nstart: value"),
    "expressions": sg.Grammar(
        'start: e\ne: e "+" t | t\nt: t "*" f | f\nf: "(" e ")" | N | "if"\nN: /[a-z0-9]+/\n%ignore " "'
    ),
    "watched": sg.Grammar('start: (A | B | C)+\nA: /[ab]{6}|[ab]/\nB: /1(2+1)?/\nC: /"[^"]*"|"/', lexer="basic"),
    "blocks": sg.Grammar(
        'start: (_NL | s)+\ns: "if" W ":" _NL _INDENT s+ _DEDENT | W "(" W ")" _NL\nW: /[ab]+/\n_NL: /(\\n *)+/\n'
        "%declare _INDENT _DEDENT",
        postlex=sg.Indentation("_NL", opening=(), closing=()),
    ),
}
every_definition = pytest.mark.parametrize("name", DEFINITIONS)


def machine_of(name: str) -> GrammarMachine:
    vocabulary = vocabulary_of(LETTERS + ("\n" if name == "blocks" else ""), random.Random(name), size=200)
    machine = sg.compile(DEFINITIONS[name], vocabulary, eager=False).machine
    assert isinstance(machine, GrammarMachine)
    return machine


def found_by(walks: partial_masks._Walks) -> list[Any]:
    """What walks found, with obligations in place of their numbers."""
    (*runs, watched), (nodes, state, before) = walks.runs.tolist(), walks.below.tolist()
    starts = walks.run_starts.tolist(), walks.below_starts.tolist()
    return [starts, runs, nodes, state, *([walks.watched(number) for number in each] for each in (watched, before))]


@every_definition
def test_walks_in_slices_find_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, rng = machine_of(name), random.Random(name)
    masks, obligations = machine.lexeme_masks, machine.tables.obligations
    nodes, states = len(machine.vocabulary.trie.byte), len(machine.tables.table)
    pauses: list[None] = []
    monkeypatch.setattr(masks, "_pause", lambda: pauses.append(None))
    for _ in range(40):
        residual = np.array(sorted(rng.sample(range(nodes), rng.randrange(1, 12))), np.int32)
        watched = obligations.simplified(tuple(rng.sample(range(1, states), min(states - 1, rng.randrange(4)))))
        where = rng.choice([np.zeros(1, np.int32), residual]), rng.randrange(states), watched
        whole = found_by(masks._walk([where]))
        for most in (1, 7, 50):
            with monkeypatch.context() as slices:
                slices.setattr(partial_masks, "_NODES", most)
                slices.setattr(masks, "_scratch", np.empty((7, rng.randrange(1, 9)), np.int32))
                slices.setattr(masks, "_sets", masks._new_sets())
                assert found_by(masks._walk([where])) == whole
    assert len(pauses) > 100


@every_definition
def test_what_is_put_in_order_one_by_one_and_what_is_sorted_are_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, rng, sizes = machine_of(name), random.Random(name), set[bool]()
    masks, obligations, states = machine.lexeme_masks, machine.tables.obligations, len(machine.tables.table)
    nodes = len(machine.vocabulary.trie.byte)
    for _ in range(40):
        keys = []
        for _ in range(rng.randrange(1, 5)):
            nested = np.array(sorted(rng.sample(range(nodes), rng.randrange(1, 12))), np.int32)
            watched = obligations.simplified(tuple(rng.sample(range(1, states), min(states - 1, rng.randrange(4)))))
            residual = rng.choice([partial_masks.ROOT, masks.residuals.add(nested)])
            keys.append((residual, rng.randrange(states), watched))
        walks, found = masks._walk([(masks.residuals[key[0]], *key[1:]) for key in keys]), list[Any]()
        for few in (1, 4, 10_000):
            monkeypatch.setattr(partial_masks, "_FEW", few)
            sizes |= {few < size for size in np.diff(walks.below_starts).tolist()}
            groups, ends = masks._groups(walks), masks._ends(keys, walks)
            found.append([[sorted(each) for each in groups], [sorted(each) for each in ends]])
        assert found[0] == found[1] == found[2]
    assert sizes == {False, True}


@every_definition
def test_rows_in_slices_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two slices somebody else works out another row of the same index."""
    apart, sliced, rng = machine_of(name), machine_of(name), random.Random(name)
    waiting: list[Any] = []
    turns = 0

    def give_way(_: Lock) -> None:
        nonlocal turns
        turns += 1
        if waiting:
            sliced.row(waiting.pop())

    monkeypatch.setattr(partial_masks, "_NODES", 5)
    monkeypatch.setattr(mask_builder, "_RECORDS", 1)
    monkeypatch.setattr(Lock, "give_way", give_way)
    for _ in range(12):
        configs: list[Any] = [apart.start, sliced.start]
        for _ in range(12):
            rows = [apart.row(configs[0]), sliced.row(configs[1])]
            np.testing.assert_array_equal(rows[0], rows[1])
            ids = [token for token in range(200) if rows[0][token >> 5] >> (token & 31) & 1]
            ids = [token for token in ids if token not in apart.vocabulary.eos_ids]
            if not ids:
                break
            others = [sliced.advance(configs[1], token) for token in rng.sample(ids, min(3, len(ids)))]
            waiting[:] = [config for config in others if config is not None]
            token = rng.choice(ids)
            configs = [apart.advance(configs[0], token), sliced.advance(configs[1], token)]
    assert turns > 100


@every_definition
def test_walks_that_go_on_find_what_those_find_that_begin_anew(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ongoing, anew = machine_of(name), machine_of(name)
    begun, rng = list[int](), random.Random(name)

    def begins_anew(_: object, missing: int) -> bool:
        begun.append(missing)
        return False

    monkeypatch.setattr(anew.masks, "_goes_on", begins_anew)
    for _ in range(6):
        configs: list[Any] = [ongoing.start, anew.start]
        for _ in range(12):
            rows = [ongoing.row(configs[0]), anew.row(configs[1])]
            np.testing.assert_array_equal(rows[0], rows[1])
            ids = [token for token in range(200) if rows[0][token >> 5] >> (token & 31) & 1]
            ids = [token for token in ids if token not in ongoing.vocabulary.eos_ids]
            if not ids:
                break
            token = rng.choice(ids)
            configs = [ongoing.advance(configs[0], token), anew.advance(configs[1], token)]
    assert begun


@every_definition
def test_sets_of_endings_that_come_one_by_one_are_read_as_all_at_once(name: str) -> None:
    tables = machine_of(name).tables
    words, _ = tables.distinct_futures
    whole, grown = SetsOfEndings(words, tables), SetsOfEndings(words[:1], tables)
    for count in range(1, len(words) + 1):
        grown.extend(sets_of(words[:count]))
        np.testing.assert_array_equal(grown.sets[: 2 * count], whole.sets[: 2 * count])
        np.testing.assert_array_equal(grown.tight[:count], whole.tight[:count])


def test_what_others_ask_meanwhile_leaves_answers_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds out what a lexeme can become lets others have their turn, and these may forget all rows."""
    monkeypatch.setattr(obligations, "_MOST_BYTES", 1)
    states, asked = 10, list[int]()

    def futures(state: int, watched: obligations.Watched) -> int:
        if not asked:
            asked.append(state)
            for number in (0, 1, 2, 6):  # more than there are rows
                sets.ask(0, number)
        return (state + watched[0]) % 2

    rows = LazyTable(lambda _: [-1])
    lexer = obligations.Obligations(rows, np.zeros(states, bool), np.zeros(states, bool))
    sets = obligations.WatchedSets(lexer, rows, futures, states, 1)
    for state, number in ((3, 5), (0, 7), (0, 9), (0, 8)):
        sets.ask(state, number)
        assert sets.lives[sets.row_of[number], state]
        for other in np.flatnonzero(sets.row_of >= 0).tolist():
            noted = sets.lives[sets.row_of[other]]
            expected = [kernels.LIVE if (each + other) % 2 else kernels.STUCK for each in range(states)]
            assert all(one in (0, right) for one, right in zip(noted, expected, strict=True)), (state, number, other)
