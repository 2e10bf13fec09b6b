"""States that agree for as many bytes as tokens have decide the same, and an eager compile walks one of them."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from judges.guides import allowed, check_walk
from judges.naive import small_vocabulary

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.building import build
from structgen.runtime.pushdown import fill, partial_masks, walker
from structgen.runtime.pushdown.flow import agreeing
from structgen.runtime.pushdown.machine import PushdownMachine
from structgen.runtime.pushdown.partial_masks import ROOT, StateMasks

DEFINITIONS: dict[str, sg.Definition] = {
    "keys": sg.JsonSchema({"type": "object", "patternProperties": {"^[ab]{1,40}$": {"type": "boolean"}}}),
    "counted words": sg.JsonSchema({"type": "string", "pattern": r"^(?:[^ ]+ +){0,9}[^ ]+$", "maxLength": 60}),
    "two conditions": sg.JsonSchema({"type": "string", "allOf": [{"pattern": "ab1"}, {"pattern": "^.{20}$"}]}),
    "items": sg.JsonSchema({"type": "array", "items": {"enum": ["a", 1]}, "minItems": 2, "maxItems": 30}),
    "any order": sg.JsonSchema({"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}, property_order="any"),
    "rules": sg.Gbnf('root ::= ("a" root "b" | "a" root "c" | "ab" | [x-z]{2,30})*'),
}

#: Those of which some states agree for three bytes.
ALIKE = ("keys", "counted words", "two conditions")

#: What texts of up to so many of these bytes tell apart.
LETTERS, LONGEST = b'ab1 "\\,{', 3


def machine_of(definition: sg.Definition, vocabulary: sg.Vocabulary) -> PushdownMachine:
    machine, _ = build(definition, vocabulary, Meter(Budget()))
    assert isinstance(machine, PushdownMachine)
    return machine


def texts_of(longest: int) -> sg.Vocabulary:
    """All texts of so many letters at most, and bytes so that any value can be finished."""
    words = [bytes(word) for n in range(1, longest + 1) for word in itertools.product(LETTERS, repeat=n)]
    rest = [bytes([byte]) for byte in range(256) if byte not in LETTERS]
    return sg.Vocabulary.from_bytes([*words, *rest, None], eos_ids=[len(words) + len(rest)])


def decided(rows: StateMasks, state: int, count: int) -> tuple[bytes, bytes]:
    """What a walk of its own finds for a state."""
    walk = rows._walk()
    ids, below = walk.narrow(np.zeros(1, np.int32), (state, count))
    return np.sort(ids).tobytes(), below.tobytes()


@pytest.mark.parametrize("name", DEFINITIONS)
def test_states_that_agree_for_so_many_bytes_decide_the_same_of_tokens_so_long(name: str) -> None:
    tables = machine_of(DEFINITIONS[name], texts_of(1)).tables
    numbers = agreeing(tables, Meter(Budget()))
    assert not numbers[0].any()
    for longest in range(1, LONGEST + 1):
        rows = machine_of(DEFINITIONS[name], texts_of(longest)).rows
        groups: dict[int, list[int]] = {}
        for state, number in enumerate(numbers[longest].tolist()):
            groups.setdefault(number, []).append(state)
        assert name not in ALIKE or len(groups) < tables.states, "no two states agree"
        for group in groups.values():
            assert len({(int(tables.live[state]), int(tables.returns[state])) for state in group}) == 1
            loop = int(tables.live[group[0]])
            counts = [0] if loop < 0 else [0, 1, 2] if tables.loops[loop, 0] < 0 else [1, 2, 8, 28, 29]
            for count in counts:
                assert len({decided(rows, state, count) for state in group}) == 1, (group, count)


def test_states_are_told_apart_by_what_one_byte_more_reaches() -> None:
    """Of 40 letters, a state agrees with the one before it for as many bytes as there are letters to come."""
    definition = sg.JsonSchema({"const": "a" * 40})
    tables = machine_of(definition, texts_of(1)).tables
    numbers = agreeing(tables, Meter(Budget()))
    state = tables.edges(tables.start)[ord('"')]
    chain = [state]
    for _ in range(39):
        state = tables.edges(state)[ord("a")]
        chain.append(state)
    for bytes_, row in enumerate(numbers.tolist()):
        for one, other in itertools.pairwise(range(40)):
            assert (row[chain[one]] == row[chain[other]]) == (bytes_ <= 40 - other), (bytes_, one)


def all_masks(index: sg.Index) -> dict[tuple[bytes, int, int], tuple[bytes, bytes]]:
    """Row and residual nodes by residual nodes, state and count, whatever their numbers are."""
    assert isinstance(index.machine, PushdownMachine)
    rows = index.machine.rows
    found = rows.all_decided()
    for state, (begins, partial) in rows.segments.items():
        found |= {(ROOT, state, -begin): each for begin, each in zip(begins, partial, strict=True)}
    nodes = [rows.residuals[number].tobytes() for number in range(len(rows.residuals))]
    return {
        (nodes[residual], state, count): (rows.pool.dense(row).tobytes(), nodes[left])
        for (residual, state, count), (row, left) in found.items()
    }


@pytest.mark.parametrize("name", DEFINITIONS)
def test_an_index_is_the_same_where_states_are_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = small_vocabulary((b'ab":', b"ab ab ", b"\\u0061b", b"ab1ab"))
    expected = all_masks(sg.compile(DEFINITIONS[name], vocabulary, threads=1, base_rows=False))
    calls: Counter[str] = Counter()

    def counted(own: Any, what: str) -> Any:
        def call(*arguments: Any) -> Any:
            result = own(*arguments)
            calls[what] += result is not None and result is not False
            return result

        return call

    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(walker, "_SHORT", 0)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 2.0)
    monkeypatch.setattr(partial_masks, "_MANY", 1)
    monkeypatch.setattr(partial_masks, "_FEWEST", 1)
    monkeypatch.setattr(StateMasks, "_as_its_model", counted(StateMasks._as_its_model, "differences"))
    monkeypatch.setattr(walker.StackWalker, "agree", counted(walker.StackWalker.agree, "equal"))
    compared = sg.compile(DEFINITIONS[name], vocabulary, threads=1, base_rows=False)
    found = all_masks(compared)
    assert expected.keys() & found.keys()
    assert {key: found[key] for key in expected.keys() & found.keys()} == {
        key: expected[key] for key in expected.keys() & found.keys()
    }
    assert name not in ALIKE or calls["differences"] + calls["equal"]
    check_walk(compared, Random(name), steps=6)


def test_what_takes_too_many_walks_is_left_to_first_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(walker, "_SHORT", 0)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 2.0)
    definition, vocabulary = DEFINITIONS["keys"], small_vocabulary()
    whole = sg.compile(definition, vocabulary, threads=1, base_rows=False)
    monkeypatch.setattr(fill, "_MOST_WALKS", 3)
    index = sg.compile(definition, vocabulary, threads=1, base_rows=False)
    assert isinstance(index.machine, PushdownMachine)
    assert isinstance(whole.machine, PushdownMachine)
    assert not index.complete
    assert 0 < index.machine.known_rows < whole.machine.known_rows
    assert index.machine.rows.long_walks == 4
    check_walk(index, Random(7), steps=6)
    check_walk(sg.Index.from_buffer(index.to_bytes()), Random(8), steps=6)


def test_states_that_agree_may_both_have_too_many_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What told no counts of the first one is no answer for the second."""
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(walker, "_SHORT", 0)
    monkeypatch.setattr(partial_masks, "_MANY", 1)
    monkeypatch.setattr(partial_masks, "_FEWEST", 1)
    monkeypatch.setattr(walker.StackWalker, "counted", lambda *_: None)
    asked: Counter[bool] = Counter()
    agree = walker.StackWalker.agree

    def counted(own: walker.StackWalker, state: int, other: int) -> bool:
        found = agree(own, state, other)
        asked[found] += 1
        return found

    monkeypatch.setattr(walker.StackWalker, "agree", counted)
    for pattern in ("^(?:[^ ]+ +){0,9}[^ ]+$", "^(?:ab|b){3,30}$", "^[ab]{1,40}[bc]{2,30}$"):
        definition = sg.JsonSchema({"type": "string", "pattern": pattern, "maxLength": 60})
        index = sg.compile(definition, small_vocabulary((b"ab ab ",)), threads=1, base_rows=False)
        check_walk(index, Random(pattern), steps=6)
    assert asked[True]


@pytest.mark.parametrize("bounds", ["{1,60}", "{30,90}"])
def test_the_longest_token_stays_below_a_bound_that_is_farther(bounds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that all its bytes come to exactly is no bound of counts that are further away."""
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(walker, "_SHORT", 0)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 2.0)
    vocabulary = small_vocabulary((b" " * 20, b" " * 10))
    definition = sg.JsonSchema({"type": "string", "pattern": "^(?:[ab] +){7,12}[^ ]+$", "maxLength": 60})
    if bounds != "{1,60}":
        definition = sg.JsonSchema({"type": "string", "pattern": f"^[ ab]{bounds}$"})
    index = sg.compile(definition, vocabulary, threads=1, base_rows=False)
    lazy = sg.compile(definition, vocabulary, threads=1, base_rows=False, eager=False)
    for begun in (b'"', b'"a ', b'"b' + b" " * 9, b'"a ' + b" " * 8, b'"' + b"a " * 6, b'"' + b"a " * 14):
        guide, other = sg.Guide(index), sg.Guide(lazy)
        for byte in begun:
            token = next(token for token in range(vocabulary.size) if vocabulary.token(token) == bytes((byte,)))
            assert guide.advance(token) == other.advance(token)
        assert allowed(guide) == allowed(other), begun
