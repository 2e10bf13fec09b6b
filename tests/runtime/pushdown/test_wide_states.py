"""States whose walks visit a good part of the vocabulary: masks found by shorter walks, or on first touch."""

from __future__ import annotations

from random import Random

import pytest
from judges.guides import allowed, check_walk
from judges.naive import small_vocabulary

import structgen as sg
from structgen.runtime.pushdown import fill, partial_masks, walker
from structgen.runtime.pushdown.machine import PushdownMachine

KEYS = sg.JsonSchema({"type": "object", "patternProperties": {"^[ab]{1,40}$": {"type": "boolean"}}})


def test_what_takes_too_many_walks_is_left_to_first_touch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(partial_masks, "_SHORT", 0)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 2.0)
    monkeypatch.setattr(partial_masks, "_MOST_MODELS", 0)
    definition, vocabulary = KEYS, small_vocabulary()
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


WORDS = sg.JsonSchema({"type": "string", "pattern": r"^(\S+\s){0,60}\S+$", "maxLength": 900})


@pytest.mark.parametrize(("definition", "eager"), [(KEYS, True), (KEYS, False), (WORDS, False)])
def test_states_that_do_the_same_for_many_bytes_are_walked_once(
    definition: sg.JsonSchema, *, eager: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(partial_masks, "_SHORT", 0)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 2.0)
    index = sg.compile(definition, small_vocabulary((b"ab ab ",)), eager=eager, threads=1, base_rows=False)
    assert isinstance(index.machine, PushdownMachine)
    check_walk(index, Random(3), steps=9)
    assert index.machine.rows.long_walks < 20


@pytest.mark.parametrize(("most", "room"), [("_MOST_PAIRS", 8), ("_MOST_EDGES", 8)])
def test_pairs_of_states_have_bounds(most: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past them states are walked: the masks are the same."""
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(partial_masks, "_SHORT", 0)
    monkeypatch.setattr(walker, "_WORTH_A_BASE", 2.0)
    monkeypatch.setattr(walker, most, room)
    monkeypatch.setattr(walker, "_scratch", walker._Scratch())
    index = sg.compile(WORDS, small_vocabulary((b"ab ab ",)), eager=False, base_rows=False)
    check_walk(index, Random(5), steps=9)


def test_a_state_may_have_too_many_counts_for_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(partial_masks, "_SHORT", 0)
    monkeypatch.setattr(walker.StackWalker, "counted", lambda *_: None)
    for pattern in ("^(?:[^ ]+ +){0,9}[^ ]+$", "^(?:ab|b){3,30}$", "^[ab]{1,40}[bc]{2,30}$"):
        definition = sg.JsonSchema({"type": "string", "pattern": pattern, "maxLength": 60})
        index = sg.compile(definition, small_vocabulary((b"ab ab ",)), threads=1, base_rows=False)
        check_walk(index, Random(pattern), steps=6)


@pytest.mark.parametrize("bounds", ["{1,60}", "{30,90}"])
def test_the_longest_token_stays_below_a_bound_that_is_farther(bounds: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that all its bytes come to exactly is no bound of counts that are further away."""
    monkeypatch.setattr(partial_masks, "_WIDE", 0)
    monkeypatch.setattr(partial_masks, "_SHORT", 0)
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
