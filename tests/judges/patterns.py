"""Random patterns over two letters, of which all short texts can be tried."""

from __future__ import annotations

import random
from collections.abc import Iterator


def patterns(count: int) -> Iterator[str]:
    """Random patterns over two letters, finite and infinite ones."""
    draw = random.Random(18)

    def part(deep: int) -> str:
        if deep == 0 or draw.random() < 0.3:
            return draw.choice(["a", "b", "ab", "[ab]", "bba"])
        kind = draw.random()
        if kind < 0.35:
            return part(deep - 1) + part(deep - 1)
        if kind < 0.65:
            return f"(?:{part(deep - 1)}|{part(deep - 1)})"
        return f"(?:{part(deep - 1)}){draw.choice(['?', '{1,2}', '{2}', '{0,2}', '*', '+'])}"

    for _ in range(count):
        yield part(3)
