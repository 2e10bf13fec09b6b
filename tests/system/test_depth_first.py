"""Walks in depth: the order, and every way back to a node of the path."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from structgen.system.depth_first import post_order

GRAPHS = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
)


@given(GRAPHS)
def test_as_by_recursion(graph: list[list[int]]) -> None:
    order: list[int] = []
    cycles: list[tuple[list[int], int]] = []
    seen: set[int] = set()

    def walk(node: int, path: list[int]) -> None:
        seen.add(node)
        for child in graph[node]:
            if child in path:
                cycles.append((path, child))
            elif child not in seen:
                walk(child, [*path, child])
        order.append(node)

    for root in range(len(graph)):
        if root not in seen:
            walk(root, [root])
    found: list[tuple[list[int], int]] = []
    walked = post_order(range(len(graph)), graph.__getitem__, lambda path, node: found.append(([*path], node)))
    assert list(walked) == order
    assert found == cycles
    assert list(post_order(range(len(graph)), graph.__getitem__)) == order
