"""The judge of a batch: a guide for each of its rows, to which the same is done."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from random import Random

import structgen as sg
from judges.naive import allowed_tokens


class Sequence:
    """One row, by a guide, or none: that allows every token."""

    def __init__(self, vocabulary: sg.Vocabulary, guide: sg.Guide | None, taken: int = 0) -> None:
        self.vocabulary, self.guide, self.taken = vocabulary, guide, taken

    @classmethod
    def of(cls, vocabulary: sg.Vocabulary, index: sg.Index | None, max_tokens: int | None = None) -> Sequence:
        """A new one of an index, or without any."""
        return cls(vocabulary, None if index is None else sg.Guide(index, max_tokens=max_tokens))

    def mask(self) -> set[int]:
        size = self.vocabulary.size
        return set(range(size)) if self.guide is None else allowed_tokens(self.guide.bitmask(), size)

    def advance(self, token: int) -> bool:
        accepted = 0 <= token < self.vocabulary.size and (self.guide is None or self.guide.advance(token))
        self.taken += accepted
        return accepted

    def rollback(self, n: int) -> None:
        self.taken -= n
        if self.guide is not None:
            self.guide.rollback(n)

    def fork(self) -> Sequence:
        return Sequence(self.vocabulary, self.guide and self.guide.fork(), self.taken)


def check(batch: sg.GuideBatch, oracle: list[Sequence]) -> None:
    """Every mask, by all calls that give one, and what else is told of each row."""
    size = batch.vocabulary.size
    assert len(batch) == len(oracle)
    wanted = [each.mask() for each in oracle]
    wide = sg.allocate_bitmask(len(oracle), size + 100)
    wide[:] = -1
    batch.fill_bitmask(wide)
    assert [allowed_tokens(row, size + 100) for row in wide] == wanted
    assert [allowed_tokens(row, size) for row in batch.bitmask()] == wanted
    rows = batch.rows.dense(batch.rows.numbers_of(batch.row_ids()))
    assert [allowed_tokens(row, size) for row in rows] == wanted
    assert batch.is_accepting().tolist() == [each.guide is None or each.guide.is_accepting() for each in oracle]
    assert batch.is_finished().tolist() == [each.guide is not None and each.guide.is_finished() for each in oracle]


def check_steps(index: sg.Index, rows: int, steps: int, chance: Random) -> None:
    """Append random tokens to rows of one index, as many times as there are steps."""
    batch = sg.GuideBatch(index.vocabulary, [index] * rows)
    oracle = [Sequence.of(index.vocabulary, index) for _ in range(rows)]
    for _ in range(steps):
        check(batch, oracle)
        tokens = [chance.choice(sorted(each.mask())) for each in oracle]
        assert batch.advance(tokens).all()
        assert all(each.advance(token) for each, token in zip(oracle, tokens, strict=True))


def limit_of(index: sg.Index, chance: Random) -> int | None:
    """A number of tokens for a text, or none."""
    with suppress(sg.errors.UnsupportedError):
        if chance.random() < 0.3:
            return index.shortest() + chance.randrange(8)
    return None


def draft(batch: sg.GuideBatch, oracle: list[Sequence], count: int, chance: Random) -> None:
    """Propose trees of tokens for rows: what is accepted, and every mask behind. No row moves."""
    size = batch.vocabulary.size
    ends: list[Sequence | None] = []
    tokens: list[int] = []
    above: list[int] = []
    rows: list[int] = []
    for _ in range(count if oracle else 0):
        place = chance.randrange(-1, len(ends)) if ends else -1
        row = rows[place] if place >= 0 else chance.randrange(len(oracle))
        start = ends[place] if place >= 0 else oracle[row]
        token = chance.randrange(size)
        if start is not None and chance.random() < 0.9:
            token = chance.choice([*start.mask()])
        end = start and start.fork()
        ends.append(end if end is not None and end.advance(token) else None)
        tokens.append(token)
        above.append(place)
        rows.append(row)
    drafts = batch.draft(tokens, above, rows)
    assert drafts.accepted.tolist() == [end is not None for end in ends]
    wanted = [set(batch.vocabulary.eos_ids) if end is None else end.mask() for end in ends]
    masks = sg.allocate_bitmask(len(ends), size)
    drafts.fill_bitmask(masks)
    assert [allowed_tokens(mask, size) for mask in masks] == wanted
    rows_of = batch.rows.dense(batch.rows.numbers_of(drafts.row_ids()))
    assert [allowed_tokens(mask, size) for mask in rows_of] == wanted


def move(batch: sg.GuideBatch, oracle: list[Sequence], indexes: Iterable[sg.Index], chance: Random) -> None:
    """Do one thing at random to both: add a row, remove one, reorder all, roll back, or append tokens."""
    kind, size = chance.random(), batch.vocabulary.size
    if not oracle or kind < 0.1:
        index = chance.choice([*indexes, None])
        added = Sequence.of(batch.vocabulary, index, None if index is None else limit_of(index, chance))
        as_guide = added.guide is not None and chance.random() < 0.3
        limit = None if added.guide is None else added.guide._given
        assert batch.add(added.guide if as_guide else index, max_tokens=None if as_guide else limit) == len(oracle)
        oracle.append(added.fork())
    elif kind < 0.14:
        row = chance.randrange(len(oracle))
        batch.remove([row])
        del oracle[row]
    elif kind < 0.2:
        order = [chance.randrange(len(oracle)) for _ in range(chance.randint(1, len(oracle) + 1))]
        batch.reorder(order)
        oracle[:] = [oracle[row].fork() for row in order]
    elif kind < 0.3:
        back = [chance.randint(0, each.taken) for each in oracle]
        batch.rollback(back)
        for each, n in zip(oracle, back, strict=True):
            each.rollback(n)
    else:
        rows = [row for row in range(len(oracle)) if chance.random() < 0.8]
        tokens = [
            chance.choice([*oracle[row].mask()]) if chance.random() < 0.8 else chance.randrange(size) for row in rows
        ]
        accepted = batch.advance(tokens, rows).tolist()
        assert accepted == [oracle[row].advance(token) for row, token in zip(rows, tokens, strict=True)]
        assert sorted(batch.errors) == [row for row, ok in zip(rows, accepted, strict=True) if not ok]
        for row, error in batch.errors.items():
            assert isinstance(error, sg.errors.TokenIdError)
            assert error.where == f"row {row}"
