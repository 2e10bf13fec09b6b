"""What look-behind in a terminal may see: nothing before the terminal, which is up to the rules."""

from __future__ import annotations

import numpy as np

from ....budget import Meter
from ....errors import UnsupportedError
from ...patterns.lower import language
from ...patterns.syntax import Node
from .program import LexerProgram


def check_behind(made: LexerProgram, meter: Meter) -> None:
    """Refuse look-behind that could see what is before the terminal. Raises `UnsupportedError`."""
    behind = {k for k, (look, _) in enumerate(made.looks) if look.behind}
    if not behind:
        return
    shortest = _shortest(made)
    for state, moves in enumerate(made.empty):
        for _, k in moves:
            if k in behind:
                longest = _longest(made.looks[k][0].item, meter)
                if longest is None or shortest[state] < longest:
                    raise UnsupportedError(
                        "a look-behind sees what is before its terminal",
                        where=f"column {made.looks[k][0].column}",
                        remedy="Let the rules say what may come before a terminal.",
                    )


def _shortest(made: LexerProgram) -> list[int]:
    """By state: the fewest characters that lead there."""
    far = 1 << 60
    found = [far] * len(made.empty)
    found[0] = 0
    layer, distance = [0], 0
    while layer:
        following: list[int] = []
        while layer:
            state = layer.pop()
            if found[state] < distance:
                continue
            for target, _ in made.empty[state]:
                if found[target] > distance:
                    found[target] = distance
                    layer.append(target)
            for low, _, target in made.edges[state]:
                if not _continues(low):
                    following.append(target)
                elif found[target] > distance:
                    found[target] = distance
                    layer.append(target)
        distance += 1
        for target in following:
            if found[target] > distance:
                found[target] = distance
                layer.append(target)
    return found


def _longest(item: Node, meter: Meter) -> int | None:
    """The most characters of a text of a tree; None where there is no bound."""
    dfa = language(item, meter, edges=False, count=False)
    if not dfa.states:
        return 0
    first = np.flatnonzero(np.diff(dfa.classes[:256], prepend=-1))  # the lowest byte of each class
    following = [
        [
            (int(target), not _continues(int(low)))
            for low, target in zip(first, row[dfa.classes[first]], strict=True)
            if target >= 0
        ]
        for row in dfa.table
    ]
    longest = 0
    reached = {dfa.start}
    while reached:
        if longest > dfa.states:
            return None
        within = sorted(reached)
        after = set()
        for state in within:  # grows as it goes: bytes that continue a character
            for target, is_character in following[state]:
                if is_character:
                    after.add(target)
                elif target not in reached:
                    reached.add(target)
                    within.append(target)
        if not after:
            return longest
        reached, longest = after, longest + 1
    return longest


def _continues(byte: int) -> bool:
    """Whether a byte continues a character in UTF-8 (RFC 3629)."""
    return 0x80 <= byte <= 0xBF
