"""Ranges of code points as edges of bytes."""

from __future__ import annotations

import pytest

from structgen.compiler.automata import utf8


@pytest.mark.parametrize(
    "ranges", [((0, 0x7F),), ((0, 0xD7FF), (0xE000, 0x10FFFF)), ((0x61, 0x61), (0x7FF, 0x800)), ((0xFFFF, 0x10000),),
               ((0x3B1, 0x3C9), (0x1F600, 0x1F64F)), ()]
)  # fmt: skip
def test_utf8_automata(ranges: tuple[tuple[int, int], ...]) -> None:
    edges = utf8.utf8_edges(ranges).tolist()
    borders = {x for low, high in ranges for x in (low - 1, low, high, high + 1)}
    for code in borders | {0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x10FFFF} | set(range(0, 0x110000, 4099)):
        if not 0 <= code < 0x110000 or 0xD800 <= code < 0xE000:
            continue
        states = {0}
        for byte in chr(code).encode():
            states = {t for s, low, high, t in edges if s in states and low <= byte <= high}
        assert (1 in states) == any(low <= code <= high for low, high in ranges), hex(code)
