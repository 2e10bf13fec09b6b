"""Circles of random relations against paths, looked for one by one."""

from __future__ import annotations

import random

import pytest
from tiers import draws

from structgen.runtime.core.digraph import circles


@pytest.mark.parametrize("seed", range(draws(40)))
def test_circles_are_those_that_come_back_to_themselves(seed: int) -> None:
    dice = random.Random(seed)
    size = dice.randrange(9)
    relation = [[at for at in range(size) if dice.random() < 0.2] for _ in range(size)]
    paths = {(here, there) for here in range(size) for there in relation[here]}
    for _ in range(size):
        paths |= {(a, d) for a, b in paths for c, d in paths if b == c}
    expected = {
        frozenset(there for there in range(size) if {(here, there), (there, here)} <= paths)
        for here in range(size)
        if (here, here) in paths
    }
    found = circles(relation)
    assert {*map(frozenset, found)} == expected
    assert sum(map(len, found)) == sum(map(len, expected))
