"""Rules that end early: as soon as they can, or behind so many characters."""

from __future__ import annotations

from ....budget import Meter
from ....errors import UnsupportedError
from ...automata.edge_lists import EdgeLists
from ..automata import written_out
from ..facts import RuleFacts
from ..syntax import MAX_COUNT, CharacterSet, Choice, Network, Node, NodeId, Reference, Repetition, Sequence


def closed(facts: RuleFacts, number: int, most: int | None, first: NodeId, meter: Meter, *, counts: bool) -> list[Node]:
    """The nodes, from number ``first`` on, of a rule that has so many characters at most.

    None ends it as soon as it can. ``counts``: whether characters may be counted, in place of spelling out how many
    there were.

    Raises `UnsupportedError` for one that cannot end behind so many (XGrammar lets it go on).
    """
    nodes, root = facts.document.nodes, facts.document.rules[number].root
    while isinstance(node := nodes[root], Reference | Choice | Sequence):
        if isinstance(node, Reference):
            root = facts.document.rules[node.rule].root
            continue
        below = node.options if isinstance(node, Choice) else node.parts
        if len(below) != 1:
            break
        root = below[0]
    if (
        isinstance(node, Repetition) and isinstance(item := nodes[node.item], CharacterSet)
        and counts and node.max is None and most is not None and node.min <= most
    ):  # fmt: skip
        return [item, Repetition(first, node.min, most if most <= MAX_COUNT else None)]  # a count, no states for it
    rule = facts.document.rules[number]
    doing = f"the automaton of the rule {rule.name}"
    found = ending_early(written_out(facts, rule.root, meter, doing), most, meter, doing)
    if found is None:
        raise UnsupportedError(
            f"the rule {rule.name} need not be at an end behind max_chars={most}",
            where=rule.where,
            remedy="Bound what may end anywhere, such as [a-z]*, in a rule of its own.",
        )
    return [found]


def ending_early(lists: EdgeLists, most: int | None, meter: Meter, doing: str) -> Network | None:
    """The texts of an automaton with so many characters at most; or those of which none begins with another one.

    None where some text has more characters, and no end behind so many.
    """
    if not lists.edges:
        return Network(2)
    last_count = most or 0
    number = {(lists.start, 0): 0}
    moves: list[tuple[int, int, int, int]] = []
    ends: list[tuple[int, int]] = []
    for here in (todo := [(lists.start, 0)]):  # grows as it goes
        meter.check_time(doing)
        meter.check_states(len(number), doing)
        state, count = here
        if lists.accepting[state]:
            ends.append((number[here], 1))
            if count == last_count:
                continue
        elif most == count and any(high < 0x80 or high > 0xBF for _, high, _ in lists.edges[state]):
            return None
        for low, high, target in lists.edges[state]:
            for first, last, begins in ((0, 0x7F, 1), (0x80, 0xBF, 0), (0xC0, 0xFF, 1)):
                if max(low, first) <= min(high, last):
                    there = target, min(count + begins, last_count)
                    if there not in number:
                        number[there] = 1 + len(number)  # 1 is the end
                        todo.append(there)
                    moves.append((number[here], max(low, first), min(high, last), number[there]))
    return Network(1 + len(number), bytes=tuple(moves), empty=tuple(ends))
