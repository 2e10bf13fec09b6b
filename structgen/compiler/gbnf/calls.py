"""Which rules are called, and which are written out where they are mentioned.

A called rule costs a return state on the stack at run time, and two calls that begin alike are two threads until they
differ. Written out, the automata of alternatives are made one, and tails need no stack. So rules are written out,
except those that would go on for ever (one in each circle of rules is called), those that are large, and those with a
bounded repeat of more than a few turns, which every mention would multiply.

Measured on a grammar of an object with 40 optional members, as llama.cpp makes it of a JSON Schema: 1,298 states and
one thread. With ``[ ]{0,20}`` written out it is 5,037 states; with all larger rules called, up to 40 threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...budget import Meter
from ...system.depth_first import post_order
from ..automata.utf8 import utf8_edges
from .facts import RuleFacts
from .syntax import CharacterSet, External, FreeText, Network, NodeId, QuotedText, Reference, Repetition, children

#: Automaton states of the largest rule that is written out: the first bound that keeps the whole small, which is up
#: to so many states, or so many times the grammar's nodes.
_BOUNDS = (20_000, 4_000, 400, 40, 4)
_ALTOGETHER, _PER_NODE = 50_000, 4

#: A repeat is worth counting when spelling it out would take more turns than this.
_COUNT_FROM = 24

#: A rule with a repeat of more turns is called: copies of it would differ in nothing but what follows.
_FEW_TURNS = 4

#: States for each character of what free text watches for.
_OF_CHARACTER = 4

_DOING = "measuring the rules"

#: Sizes stop growing here.
_HUGE = 1 << 40


@dataclass(frozen=True)
class Plan:
    """How to build the automata.

    Parameters
    ----------
    called:
        The rules that are called, and the start.
    counted:
        Repeats that are made loops with a count.
    sizes:
        Automaton states of each node when it is written out; an upper bound, 0 where a node is of no use.
    """

    called: frozenset[int]
    counted: frozenset[NodeId]
    sizes: list[int]


def plan(facts: RuleFacts, start: int, meter: Meter) -> Plan:
    """Decide for all rules that the start needs. Raises `BudgetExceededError`."""
    circular = {start}  # without these, no circle of rules is left

    def mentioned(rule: int) -> Iterator[int]:
        meter.check_time(_DOING)
        return useful_references(facts, rule)

    order = list(post_order([start], mentioned, lambda path, rule: circular.add(rule)))
    rules, nodes = facts.document.rules, len(facts.document.nodes)
    circular.update(rule for rule in order if rules[rule].is_attributed)
    counted = frozenset(number for number in meter.each(range(nodes), _DOING) if _worth_counting(facts, number))
    if any(isinstance(node, External) and node.takes_tokens for node in facts.document.nodes):
        counted = frozenset()  # no state counts and takes tokens as such
    for bound in _BOUNDS:
        sizes = [0] * nodes
        called = set(circular)
        for rule in meter.each(order, _DOING):
            if _measure(facts, rule, called, counted, sizes, bound):
                called.add(rule)
        if sum(sizes[rules[rule].root] for rule in called) <= max(_ALTOGETHER, _PER_NODE * nodes):
            break
    return Plan(frozenset(called), counted, sizes)


def useful_references(facts: RuleFacts, rule: int) -> Iterator[int]:
    """The rules whose nonempty texts can be part of a rule's."""
    document = facts.document
    todo = [document.rules[rule].root]
    while todo:
        number = todo.pop()
        node = document.nodes[number]
        if not facts.fertile(number):
            continue
        if isinstance(node, Reference):
            yield node.rule
        else:
            todo.extend(children(node))


def _measure(
    facts: RuleFacts, rule: int, called: set[int], counted: frozenset[NodeId], sizes: list[int], bound: int
) -> bool:
    """The sizes of a rule's nodes; whether it is larger than the bound."""
    document = facts.document
    whole = document.rules[rule]
    loops = False
    for number in range(whole.first, whole.root + 1):
        node = document.nodes[number]
        if not facts.productive(number):
            continue
        if isinstance(node, QuotedText):
            size = len(node.data)
        elif isinstance(node, CharacterSet):
            size = len(utf8_edges(node.ranges))
        elif isinstance(node, Reference):
            there = sizes[document.rules[node.rule].root]
            size = 1 if node.rule in called else there
        elif isinstance(node, Repetition):
            turns = node.max if node.max is not None else node.min + 1
            size = (3 if number in counted else turns) * (sizes[node.item] + 1) + 2
        elif isinstance(node, External):
            size = 1
        else:
            size = 2 + sum(sizes[child] for child in children(node))
            size += node.states if isinstance(node, Network) else 0
            if isinstance(node, FreeText):
                size += _OF_CHARACTER * sum(map(len, (*node.excludes, *(trigger.text for trigger in node.triggers))))
        sizes[number] = min(size, _HUGE)
        loops |= number in counted or (isinstance(node, Repetition) and max(node.min, node.max or 0) > _FEW_TURNS)
    return loops or sizes[whole.root] > bound


def _worth_counting(facts: RuleFacts, number: NodeId) -> bool:
    node = facts.document.nodes[number]
    if not isinstance(node, Repetition) or facts.nullable(node.item):
        return False
    return (node.min if node.max is None else node.max) > _COUNT_FROM
