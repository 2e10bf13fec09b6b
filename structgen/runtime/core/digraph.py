"""Sets as integers, and least solutions over relations: sets that take in the sets they are related to.

The Digraph algorithm of DeRemer & Pennello (1982), which is Tarjan's of strongly connected components with a union on
the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

#: Relations that are looked at between two calls of what `solve` is to call.
_STEPS = 4096


def set_of(members: Iterable[int]) -> int:
    """The set of some numbers; for many of them faster than adding bits up one by one."""
    numbers = list(members)
    if len(numbers) < 64:
        found = 0
        for number in numbers:
            found |= 1 << number
        return found
    data = bytearray(max(numbers) // 8 + 1)
    for number in numbers:
        data[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(data, "little")


def bits(members: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while members:
        low = members & -members
        yield low.bit_length() - 1
        members ^= low


def solve(values: list[int], relation: Sequence[Sequence[int]], check: Callable[[], object] | None = None) -> None:
    """Add to each value those that it is related to, however indirectly. In place; no recursion.

    ``check`` is called from time to time, and may raise.
    """
    done = len(values) + 1
    steps = 0
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
            if not at:
                steps += 1 + len(related)
                if check is not None and steps > _STEPS:
                    steps = 0
                    check()
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


def circles(relation: Sequence[Sequence[int]], check: Callable[[], object] | None = None) -> list[list[int]]:
    """Those that are related to themselves, however indirectly, by those that are so to each other.

    They are the strongly connected components that have a relation within. It takes a bit for each pair of numbers;
    ``check`` is as `solve` has it.
    """
    reached = [1 << number for number in range(len(relation))]
    solve(reached, relation, check)
    by_reach: dict[int, list[int]] = {}
    for number, members in enumerate(reached):
        if check is not None and not number % _STEPS:
            check()
        by_reach.setdefault(members, []).append(number)
    return [found for found in by_reach.values() if len(found) > 1 or found[0] in relation[found[0]]]
