"""Walks of graphs in depth, judged by recursion."""

from __future__ import annotations

import random

from structgen.system.depth_first import post_order

Graph = dict[int, list[int]]


def by_recursion(graph: Graph) -> tuple[list[int], list[tuple[int, int]]]:
    """Every node after its children, and the edges that lead back to where the walk still is."""
    order, back = list[int](), list[tuple[int, int]]()
    seen, open_ = set[int](), set[int]()

    def visit(node: int) -> None:
        seen.add(node)
        open_.add(node)
        for child in graph[node]:
            if child in open_:
                back.append((node, child))
            elif child not in seen:
                visit(child)
        open_.discard(node)
        order.append(node)

    for root in graph:
        if root not in seen:
            visit(root)
    return order, back


def in_post_order(graph: Graph) -> tuple[list[int], list[tuple[int, int]]]:
    back = list[tuple[int, int]]()

    def on_cycle(path: list[int], node: int) -> None:
        assert node in path
        back.append((path[-1], node))

    return list(post_order(graph, graph.__getitem__, on_cycle)), back


def test_random_graphs_from_all_their_nodes() -> None:
    chosen = random.Random(5)
    for _ in range(300):
        n = chosen.randint(1, 9)
        graph = {node: [chosen.randrange(n) for _ in range(chosen.randint(0, 3))] for node in range(n)}
        order, back = by_recursion(graph)
        assert in_post_order(graph) == (order, back)
        assert list(post_order(graph, graph.__getitem__)) == order
