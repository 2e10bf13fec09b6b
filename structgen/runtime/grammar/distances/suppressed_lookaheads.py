"""The terminals that reductions lost when conflicts were resolved, seen from the table that was left.

A terminal is the look-ahead of a reduction where, after it, some way through the states comes to a shift of that
terminal: DeRemer & Pennello (1982), with edges between states in place of transitions of nonterminals. Those that the
table does not make the reduction before were taken by an action that competed.
"""

from __future__ import annotations

from ...core.digraph import solve

#: By state: the next state after each symbol.
Moves = list[dict[int, int]]

#: By state: the length and the nonterminal of each reduction, and the terminals before which it is made.
Reductions = list[list[tuple[int, int, int]]]


def suppressed_lookaheads(shifts: Moves, gotos: Moves, reductions: Reductions) -> list[list[int]]:
    """By state and reduction: the LALR lookaheads for which the table does not have the reduction, as a set."""
    number: dict[tuple[int, int], int] = {}
    preceding: list[set[int]] = [set() for _ in shifts]
    for state, (shifted, gone) in enumerate(zip(shifts, gotos, strict=True)):
        for target in (*shifted.values(), *gone.values()):
            number.setdefault((state, target), len(number))
            preceding[target].add(state)
    known: dict[tuple[int, int], frozenset[int]] = {}

    def below(state: int, count: int) -> frozenset[int]:
        """The states that can lie ``count`` levels below a state."""
        here = frozenset((state,))
        for k in range(1, count + 1):
            there = known.get((state, k))
            if there is None:
                there = known[state, k] = frozenset().union(*(preceding[each] for each in here))
            here = there
        return here

    def edges(lows: frozenset[int], origin: int) -> list[int]:
        """The edges along which a nonterminal is read."""
        return [number[low, gotos[low][origin]] for low in lows if origin in gotos[low]]

    values, related = [], []
    for low, state in number:
        values.append(sum(1 << terminal for terminal in shifts[state]))
        after: set[int] = set()
        for length, origin, _ in reductions[state]:
            after.update(edges(below(low, length - 1) if length else frozenset((state,)), origin))
        related.append(sorted(after))
    solve(values, related)
    found: list[list[int]] = []
    for state, there in enumerate(reductions):
        found.append([])
        for length, origin, made in there:
            wanted = 0
            for edge in edges(below(state, length), origin):
                wanted |= values[edge]
            found[-1].append(wanted & ~made)
    return found
