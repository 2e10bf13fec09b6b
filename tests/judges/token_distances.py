"""Distances of indexes, judged by a search over all configurations, and by random texts within a number of tokens."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import structgen as sg
from judges.guides import ids_of_bits
from structgen.runtime.index.index import Index


def searched(index: Index, most: int = 10_000) -> tuple[dict[Any, dict[int, Any]], dict[Any, int]]:
    """What tokens lead to by configuration, all of them, and the distance of each: the judge."""
    machine = index.machine
    moves: dict[Any, dict[int, Any]] = {machine.start: {}}
    todo = [index.machine.start]
    for config in todo:
        for token in range(index.vocabulary.size):
            target = machine.advance(config, token)
            if target is not None:
                moves[config][token] = target
                if target not in moves:
                    assert len(moves) < most
                    moves[target] = {}
                    todo.append(target)
    distances = {config: 1 for config in moves if machine.is_accepting(config)}
    level = set(distances)
    before: dict[Any, set[Any]] = {}
    for config, targets in moves.items():
        for target in targets.values():
            before.setdefault(target, set()).add(config)
    while level:
        level = {config for target in level for config in before.get(target, ())} - distances.keys()
        distances.update(dict.fromkeys(level, max(distances.values()) + 1))
    return moves, distances


def allowed(row: np.ndarray) -> set[int]:
    return set(ids_of_bits(row))


def check_places(guide: sg.Guide, seen: int, rng: random.Random, expected: dict[Any, int] | None = None) -> int:
    """One random text under ``max_tokens``: mask and `advance` agree, and it never gets stuck; its length.

    ``seen`` tokens may come. With ``expected`` distances the masks are what they say.
    """
    index, taken = guide.index, 0
    eos = set(index.vocabulary.eos_ids)
    while not guide.is_finished():
        mask = allowed(guide.bitmask())
        assert mask
        assert taken < seen
        config = guide.machine.advance, guide.path()[-1][0]  # type: ignore[index]
        full = allowed(index.machine.row(config[1]))
        assert mask <= full
        for token in range(index.vocabulary.size):
            assert guide.allows(token) == (token in mask)
            if expected is not None and token not in eos:
                target = index.machine.advance(config[1], token)
                assert (token in mask) == (target is not None and expected[target] < seen - taken)
        assert mask & eos == full & eos or not guide.is_accepting()  # else EOS ids are tokens like others
        longest = [t for t in mask - eos if guide.allows(t)] or sorted(mask)
        assert guide.advance(rng.choice(longest))
        taken += 1
    return taken


def check_bounds(index: Index, rng: random.Random, texts: int = 12, steps: int = 30) -> None:
    """What the distances of an index with a stack promise, along random texts."""
    machine, distances = index.machine, index.distances
    for _ in range(texts):
        config: Any = machine.start
        for _ in range(steps):
            targets = {token: machine.advance(config, token) for token in sorted(allowed(machine.row(config)))}
            targets = {token: target for token, target in targets.items() if target is not None}  # not of EOS ids
            tokens = list(targets)
            far = {token: distances.distance(target) for token, target in targets.items()}
            here = distances.distance(config)
            assert (here == 1) <= machine.is_accepting(config)
            assert here == 1 or min(far.values()) < here
            assert distances.farthest(config) == max(far.values(), default=0)
            for most in (here - 1, here, rng.randint(0, here + 3)):
                assert allowed(distances.row(config, most)) == {t for t in tokens if far[t] <= most}
            left = here + rng.randint(0, 40)
            near = distances.near(config, left)
            assert near == left or max(far.values(), default=0) < left
            assert all(distances.near(target, left - 1) <= max(near, left - 1) for target in targets.values())
            if not tokens:
                break
            config = targets[rng.choice(tokens)]


def check_budgets(index: Index, rng: random.Random, more: tuple[int, ...] = (0, 1, 2, 3, 5, 8, 13, 40)) -> None:
    least = index.shortest()
    for most in (least + k for k in more):
        assert check_places(sg.Guide(index, max_tokens=most), most, rng) <= most
