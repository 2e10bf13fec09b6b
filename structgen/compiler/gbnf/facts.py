"""What the rest needs to know of a grammar's nodes and rules, and the refusal of left recursion.

A rule is *nullable* if it describes the empty text, *productive* if it describes any text, *fertile* if it describes
one that is not empty. They are least solutions: nothing holds of a rule before it is derived from what others have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ...budget import Meter
from ...errors import UnsupportedError
from ...system.depth_first import post_order
from .syntax import (
    CharacterSet,
    Choice,
    External,
    FreeText,
    GbnfGrammar,
    Network,
    NodeId,
    QuotedText,
    Reference,
    Repetition,
    Rule,
    Sequence,
)

NULLABLE, PRODUCTIVE, FERTILE = 1, 2, 4


@dataclass(frozen=True)
class RuleFacts:
    """What holds of each node, as a sum of `NULLABLE`, `PRODUCTIVE` and `FERTILE`."""

    document: GbnfGrammar
    flags: list[int]

    def nullable(self, node: NodeId) -> bool:
        """Whether the empty text is among a node's."""
        return bool(self.flags[node] & NULLABLE)

    def productive(self, node: NodeId) -> bool:
        """Whether a node has any text."""
        return bool(self.flags[node] & PRODUCTIVE)

    def fertile(self, node: NodeId) -> bool:
        """Whether a node has a text that is not empty."""
        return bool(self.flags[node] & FERTILE)


def establish(document: GbnfGrammar, meter: Meter) -> RuleFacts:
    """Work out the facts of all nodes. Raises `BudgetExceededError`."""
    flags = [0] * len(document.nodes)
    users: list[set[int]] = [set() for _ in document.rules]
    for number, rule in enumerate(document.rules):
        for node in document.nodes[rule.first : rule.root + 1]:
            if isinstance(node, Reference):
                users[node.rule].add(number)
    todo = deque(range(len(document.rules)))
    waiting = set(todo)
    while todo:
        meter.check_time("looking for rules without text")
        number = todo.popleft()
        waiting.discard(number)
        rule = document.rules[number]
        before = flags[rule.root]
        _settle(document, rule, flags)
        if flags[rule.root] != before:
            todo.extend(users[number] - waiting)
            waiting |= users[number]
    return RuleFacts(document, flags)


def _settle(document: GbnfGrammar, rule: Rule, flags: list[int]) -> None:
    """The flags of a rule's nodes, from what is known of other rules so far."""
    for number in range(rule.first, rule.root + 1):
        node = document.nodes[number]
        if isinstance(node, QuotedText):
            flag = PRODUCTIVE | FERTILE
        elif isinstance(node, CharacterSet):
            flag = PRODUCTIVE | FERTILE if node.ranges else 0
        elif isinstance(node, Reference):
            flag = flags[document.rules[node.rule].root]
        elif isinstance(node, Choice):
            flag = 0
            for option in node.options:
                flag |= flags[option]
        elif isinstance(node, Sequence):
            flag = _in_a_row([flags[part] for part in node.parts])
        elif isinstance(node, Network):
            flag = _through(node, flags)
        elif isinstance(node, External | FreeText):
            empty = node.nullable if isinstance(node, External) else True
            flag = PRODUCTIVE | FERTILE | (NULLABLE if empty else 0)
        else:
            flag = flags[node.item] if node.max != 0 else 0
            if node.min == 0:
                flag |= NULLABLE | PRODUCTIVE
        flags[number] = flag


def _through(network: Network, flags: list[int]) -> int:
    """What holds of some way through a network: by state, of ways that read nothing, and that read something."""
    moves: list[list[tuple[int, int]]] = [[] for _ in range(network.states)]
    for source, _, _, target in network.bytes:
        moves[source].append((target, PRODUCTIVE | FERTILE))
    for source, target in network.empty:
        moves[source].append((target, PRODUCTIVE | NULLABLE))
    for source, part, target in network.parts:
        moves[source].append((target, flags[part]))
    seen = {(0, False)}
    for here, has_read in (todo := [(0, False)]):  # grows as it goes
        for target, flag in moves[here]:
            ways = {(target, True)} if flag & FERTILE or (has_read and flag & PRODUCTIVE) else set()
            ways |= {(target, has_read)} if flag & NULLABLE else set()
            todo += ways - seen
            seen |= ways
    empty, full = (1, False) in seen, (1, True) in seen
    return (NULLABLE if empty else 0) | (FERTILE if full else 0) | (PRODUCTIVE if empty or full else 0)


def _in_a_row(parts: list[int]) -> int:
    every, some = NULLABLE | PRODUCTIVE, 0
    for part in parts:
        every &= part
        some |= part
    return every | (some & FERTILE if every & PRODUCTIVE else 0)


# -- left recursion ----------------------------------------------------------------------------------------


def refuse_left_recursion(facts: RuleFacts, meter: Meter) -> None:
    """Raise `UnsupportedError` where a rule can begin with itself, naming the rules on the way."""
    rules = facts.document.rules

    def refuse(path: list[int], rule: int) -> None:
        cycle = path[path.index(rule) :]
        names = [rules[number].name for number in (*cycle, rule)]
        raise UnsupportedError(
            f"the rule {names[0]} can begin with itself: {' -> '.join(names)}",
            where=rules[rule].where,
            remedy='Say it with a repeat: sum ::= term ("+" term)* in place of sum ::= sum "+" term | term.',
        )

    def corners(rule: int) -> Iterator[int]:
        meter.check_time("looking for left recursion")
        return left_corners(facts, rules[rule].root)

    for _ in post_order(range(len(rules)), corners, refuse):
        pass


def left_corners(facts: RuleFacts, root: NodeId) -> Iterator[int]:
    """The rules that a node can begin with."""
    nodes = facts.document.nodes
    todo = [root]
    while todo:
        node = nodes[todo.pop()]
        if isinstance(node, Reference):
            yield node.rule
        elif isinstance(node, Choice):
            todo.extend(node.options)
        elif isinstance(node, Repetition) and node.max != 0:
            todo.append(node.item)
        elif isinstance(node, Network):
            todo.extend(_first_parts(node, facts))
        elif isinstance(node, Sequence):
            for part in node.parts:
                todo.append(part)
                if not facts.nullable(part):
                    break


def _first_parts(network: Network, facts: RuleFacts) -> Iterator[NodeId]:
    """The parts that a way through a network can begin with."""
    moves: dict[int, list[int]] = {}
    for source, target in network.empty:
        moves.setdefault(source, []).append(target)
    parts: dict[int, list[NodeId]] = {}
    for source, part, target in network.parts:
        parts.setdefault(source, []).append(part)
        if facts.nullable(part):
            moves.setdefault(source, []).append(target)
    for state in post_order([0], lambda here: moves.get(here, ())):
        yield from parts.get(state, ())
