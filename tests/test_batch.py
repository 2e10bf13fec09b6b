"""`GuideBatch`: the same as a guide for each row, whatever is done to them."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest
from naive import allowed_tokens, small_vocabulary

import structgen as sg
from structgen.runtime import lazy_automaton, row_store
from structgen.runtime.bitmask import allocate

VOCABULARY = small_vocabulary()
EOS = VOCABULARY.eos_ids[0]

DEFINITIONS: list[Any] = [
    sg.Regex("(a|b)+"),
    sg.Regex("a{2,5}b{3}"),
    sg.JsonSchema({"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
    sg.JsonSchema({"properties": {"a": {"type": "string", "maxLength": 4}, "b": {"type": "boolean"}}}),
    sg.JsonSchema({"enum": ["a", "ab", 1]}),
    sg.Grammar('start: "a" start "b" | "ab"'),
    sg.Gbnf('root ::= "a" root "a" | "b"'),
]
INDEXES = [sg.compile(each, VOCABULARY) for each in DEFINITIONS]


class Sequence:
    """One row, by a guide."""

    def __init__(self, index: sg.Index | None, guide: sg.Guide | None = None) -> None:
        self.guide = guide or (index and sg.Guide(index))
        self.taken = 0

    def mask(self) -> set[int]:
        return set(range(VOCABULARY.size)) if self.guide is None else allowed_tokens(self.guide.bitmask(), VOCABULARY.size)

    def advance(self, token: int) -> bool:
        accepted = 0 <= token < VOCABULARY.size and (self.guide is None or self.guide.advance(token))
        self.taken += accepted
        return accepted

    def rollback(self, n: int) -> None:
        self.taken -= n
        if self.guide is not None:
            self.guide.rollback(n)

    def fork(self) -> Sequence:
        twin = Sequence(None)
        twin.guide, twin.taken = self.guide and self.guide.fork(), self.taken
        return twin


def check(batch: sg.GuideBatch, oracle: list[Sequence]) -> None:
    assert len(batch) == len(oracle)
    wanted = [each.mask() for each in oracle]
    wide = allocate(len(oracle), VOCABULARY.size + 100)
    wide[:] = -1
    batch.fill_bitmask(wide)
    assert [allowed_tokens(row, VOCABULARY.size + 100) for row in wide] == wanted
    assert [allowed_tokens(row, VOCABULARY.size) for row in batch.bitmask()] == wanted
    assert [allowed_tokens(batch.rows.rows[i], VOCABULARY.size) for i in batch.row_ids()] == wanted
    assert batch.is_accepting().tolist() == [each.guide is None or each.guide.is_accepting() for each in oracle]
    assert batch.is_finished().tolist() == [each.guide is not None and each.guide.is_finished() for each in oracle]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cramped", [False, True])
def test_random_walks_as_guides_do(seed: int, cramped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if cramped:  # what is remembered is forgotten all the time
        monkeypatch.setattr(lazy_automaton, "MOST_CONFIGS", 8)
        monkeypatch.setattr(row_store, "MOST_BYTES", 0)
    chance = random.Random(seed)
    batch, oracle = sg.GuideBatch(VOCABULARY), []
    if cramped:
        batch.rows._most = 6
    for _ in range(60):
        move = chance.random()
        if not oracle or move < 0.1:
            index = chance.choice([*INDEXES, None])
            assert batch.add(index) == len(oracle)
            oracle.append(Sequence(index))
        elif move < 0.14:
            row = chance.randrange(len(oracle))
            batch.remove([row])
            del oracle[row]
        elif move < 0.2:
            order = [chance.randrange(len(oracle)) for _ in range(chance.randint(1, len(oracle) + 1))]
            batch.reorder(order)
            oracle = [oracle[row].fork() for row in order]
        elif move < 0.3:
            back = [chance.randint(0, each.taken) for each in oracle]
            batch.rollback(back)
            for each, n in zip(oracle, back, strict=True):
                each.rollback(n)
        else:
            rows = [row for row in range(len(oracle)) if chance.random() < 0.8]
            tokens = [
                chance.choice([*oracle[row].mask()]) if chance.random() < 0.8 else chance.randint(-1, VOCABULARY.size)
                for row in rows
            ]
            accepted = batch.advance(tokens, rows).tolist()
            assert accepted == [oracle[row].advance(token) for row, token in zip(rows, tokens, strict=True)]
            assert sorted(batch.errors) == [row for row, ok in zip(rows, accepted, strict=True) if not ok]
            for row, error in batch.errors.items():
                assert isinstance(error, sg.errors.TokenIdError)
                assert error.where == f"row {row}"
        check(batch, oracle)
