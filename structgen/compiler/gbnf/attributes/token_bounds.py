"""Rules of so many tokens at most, by their automata."""

from __future__ import annotations

from ...automata.edge_lists import EdgeLists, in_columns


def bounded(lists: EdgeLists, most: int) -> EdgeLists:
    """The automaton of a rule, which calls and counts nothing, that is *exhausted* by so many tokens.

    It ends then, or as soon as it can, as in XGrammar: a text that was begun is finished.
    """
    count = len(lists.edges)
    ends = [
        () if accepts else tuple((low, high, count + target) for low, high, target in edges)
        for edges, accepts in zip(lists.edges, lists.accepting, strict=True)
    ]
    calls: list[tuple[tuple[int, int], ...]] = [() for _ in range(2 * count)]
    return EdgeLists(
        in_columns([*lists.edges, *ends]), calls, [*lists.accepting] * 2, [-1] * 2 * count, [], [], lists.start,
        {state: (most, count + state) for state in range(count)},
    )  # fmt: skip


def ends_late(lists: EdgeLists) -> bool:
    """Whether a rule that is exhausted need not be at an end, but within a character."""
    entered = {target for edges in lists.edges for _, _, target in edges}
    exhausted = [after for state, (_, after) in lists.bounds.items() if state in entered]
    return any(
        not lists.accepting[state] and (high < 0x80 or high > 0xBF)
        for state in exhausted
        for _, high, _ in lists.edges[state]
    )
