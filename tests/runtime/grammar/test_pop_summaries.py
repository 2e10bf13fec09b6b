"""Pop summaries of random parsers and lexers against the least solution of their equations, ending by ending."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from tiers import draws

from structgen.runtime.core.digraph import bits
from structgen.runtime.grammar.completability.pop_summaries import PopSummaries

Found = set[tuple[int, int, int]]


class RandomMoves:
    """Moves of a parser and a lexer that no grammar need have: some states shift and reduce before one terminal."""

    def __init__(self, rng: random.Random) -> None:
        self.states, terminals, endings = rng.randrange(2, 7), rng.randrange(1, 5), rng.randrange(2, 9)
        self.terminal = [rng.randrange(terminals) for _ in range(endings)]
        self.succeeds = [rng.random() < 0.05 for _ in range(endings)]
        everywhere = [(s, t) for s in range(self.states) for t in range(terminals)]
        shifts, reduces = rng.random(), rng.random()
        self.shifts = {at: rng.randrange(self.states) for at in everywhere if rng.random() < shifts}
        self.reduces = {
            at: [(rng.randrange(4), rng.randrange(3)) for _ in range(rng.randrange(1, 3))]
            for at in everywhere
            if rng.random() < reduces
        }
        origins = [(s, a) for s in range(self.states) for a in range(3) if rng.random() < 0.7]
        self.gotos = {at: rng.randrange(self.states) for at in origins}
        self.nexts = {(s, e): rng.getrandbits(endings) for s in range(self.states) for e in range(endings)}

    def mentioned(self, state: int) -> int:
        return sum({1 << t for s, t in (*self.shifts, *self.reduces) if s == state})

    def shifted_to(self, state: int, terminal: int) -> int | None:
        return self.shifts.get((state, terminal))

    def reductions(self, state: int, terminal: int) -> Iterable[tuple[int, int]]:
        return self.reduces.get((state, terminal), ())

    def succeeding(self, _: int) -> int:
        return sum(1 << ending for ending, succeeds in enumerate(self.succeeds) if succeeds)

    def goto(self, state: int, origin: int) -> int | None:
        return self.gotos.get((state, origin))

    def next(self, state: int, ending: int) -> int:
        return self.nexts[state, ending]


def solved(moves: RandomMoves) -> tuple[dict[tuple[int, int], Found], set[tuple[int, int]]]:
    """The summaries of each state and ending, and which of them succeed; whatever these have besides is left out."""
    keys = [(s, e) for s in range(moves.states) for e in range(len(moves.terminal))]
    summaries: dict[tuple[int, int], Found] = {key: set() for key in keys}
    succeeding: set[tuple[int, int]] = set()
    is_new = True
    while is_new:
        is_new = False
        for state, ending in keys:
            terminal, target = moves.terminal[ending], moves.shifted_to(state, moves.terminal[ending])
            left: Found = {(a, k, ending) for k, a in moves.reductions(state, terminal)}  # k counts this state, too
            succeeds = target is not None and moves.succeeds[ending]
            if target is not None and not succeeds:
                for each in bits(moves.next(target, ending)):
                    left |= summaries[target, each]
                    succeeds |= (target, each) in succeeding
            todo = list(left)
            while todo:
                origin, popped, following = todo.pop()
                above = moves.goto(state, origin) if not popped else None
                if above is not None:
                    succeeds |= (above, following) in succeeding
                    new = summaries[above, following] - left
                    left |= new
                    todo += new
            found = {(a, k - 1, f) for a, k, f in left if k}
            is_new |= not found <= summaries[state, ending] or (succeeds and (state, ending) not in succeeding)
            summaries[state, ending] |= found
            if succeeds:
                succeeding.add((state, ending))
    return summaries, succeeding


@pytest.mark.parametrize("seed", range(draws(300)))
def test_summaries_are_the_least_solution(seed: int) -> None:
    rng = random.Random(seed)
    moves = RandomMoves(rng)
    known = PopSummaries(moves, lambda _: None)
    summaries, succeeding = solved(moves)
    for state in rng.sample(range(moves.states), moves.states):
        groups = known.groups[state]
        mentioned = moves.mentioned(state)
        active = [e for e, terminal in enumerate(moves.terminal) if mentioned >> terminal & 1]
        assert sorted(e for group in groups for e in bits(group.endings)) == active  # each in one group
        for group in groups:
            summary = known.find(state, group.endings)
            for ending in bits(group.endings):
                assert summary.succeeds == ((state, ending) in succeeding)
                if not summary.succeeds:
                    found = {(a, k, f) for (a, k), there in summary.found.items() for f in bits(there)}
                    if group.stays:
                        found = {(a, k, f) for a, k, f in found if f == ending}
                    assert found == summaries[state, ending]
        several = {e for e in range(len(moves.terminal)) if rng.random() < 0.5}
        both = known.find(state, sum(1 << e for e in several))
        assert both.succeeds == any((state, e) in succeeding for e in several)
        if not both.succeeds:
            found = {(a, k, f) for (a, k), there in both.found.items() for f in bits(there)}
            assert found == set[tuple[int, int, int]]().union(*(summaries[state, e] for e in several))
