"""Sets as integers, and least solutions over relations: sets that take in the sets they are related to.

The Digraph algorithm of DeRemer & Pennello (1982), which is Tarjan's of strongly connected components with a union on
the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def bits(members: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def solve(values: list[int], relation: Sequence[Sequence[int]]) -> None:
    """Add to each value those that it is related to, however indirectly. In place; no recursion."""
    done = len(values) + 1
    depth = [0] * len(values)
    stack: list[int] = []
    for root in range(len(values)):
        if depth[root]:
            continue
        stack.append(root)
        depth[root] = len(stack)
        path = [(root, 0)]
        while path:
            here, at = path.pop()
            related = relation[here]
            while at < len(related):
                there = related[at]
                if not depth[there]:
                    path.append((here, at))
                    stack.append(there)
                    depth[there] = len(stack)
                    path.append((there, 0))
                    break
                depth[here] = min(depth[here], depth[there])
                values[here] |= values[there]
                at += 1
            else:
                if stack[depth[here] - 1] == here:
                    value = values[here]
                    while True:
                        member = stack.pop()
                        depth[member] = done
                        values[member] = value
                        if member == here:
                            break
