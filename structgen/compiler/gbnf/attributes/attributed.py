"""The grammar whose rules have the attributes that are written of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ....budget import Meter
from ....errors import UnsupportedError
from ....runtime.pushdown.captures.labels import RuleLabel
from ....system.depth_first import post_order
from ..automata import network_of, written_out
from ..calls import useful_references
from ..facts import RuleFacts, establish
from ..syntax import External, GbnfGrammar, Network, Node, NodeId
from .early_ends import closed, ending_early
from .tail_recursion import without_tail_recursion


class WrittenAttributes(NamedTuple):
    """What is written of a rule.

    Parameters
    ----------
    label:
        What is captured, and the temperature; None for neither.
    max_chars, max_tokens:
        How many of them it may have; None where that is not said.
    is_lazy:
        Whether it ends as soon as it can.
    marker:
        Which rule, as they are defined, is the end that captures are without; None where it has so many bytes.
    """

    label: RuleLabel | None = None
    max_chars: int | None = None
    max_tokens: int | None = None
    is_lazy: bool = False
    marker: int | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether the rule has to be a regular language."""
        return self.is_lazy or self.max_chars is not None or self.max_tokens is not None


def attributed(
    grammar: GbnfGrammar, written: Mapping[int, WrittenAttributes], defined: Sequence[int], meter: Meter
) -> GbnfGrammar:
    """The grammar with what is written of its rules; ``defined`` are these in the order of their definitions.

    Raises `UnsupportedError` for a rule with a bound of which there is no automaton, one that cannot end behind its
    ``max_chars`` (XGrammar lets it go on), an end of several lengths; and `BudgetExceededError`.
    """
    bounded = [number for number, each in written.items() if each.is_bounded]
    grammar = without_tail_recursion(grammar, bounded, written, meter)
    facts = establish(grammar, meter)
    rules = [*grammar.rules]
    for number, each in written.items():
        label = each.label
        if label is not None and each.marker is not None:
            label = replace(label, hidden=_length(facts, number, defined, each, meter))
        rules[number] = replace(rules[number], label=label, max_tokens=each.max_tokens)
    nodes = [*grammar.nodes]
    for number in bounded:
        _refuse_calls(facts, number, written, meter)
        first = len(nodes)
        nodes += _regular(facts, number, written[number], first, meter)
        rules[number] = replace(rules[number], first=first, root=len(nodes) - 1)
    return replace(grammar, nodes=tuple(nodes), rules=tuple(rules))


def _regular(facts: RuleFacts, number: int, attributes: WrittenAttributes, first: NodeId, meter: Meter) -> list[Node]:
    """The nodes, from number ``first`` on, of a rule with a bound."""
    if attributes.is_lazy or attributes.max_chars is not None:
        # What is lazy ends at the first place where it can, whether or not its characters are used up.
        most = None if attributes.is_lazy else attributes.max_chars
        return closed(facts, number, most, first, meter, counts=attributes.max_tokens is None)
    rule = facts.document.rules[number]
    return [network_of(written_out(facts, rule.root, meter, f"the automaton of the rule {rule.name}"))]


def _refuse_calls(facts: RuleFacts, number: int, written: Mapping[int, WrittenAttributes], meter: Meter) -> None:
    """Raise `UnsupportedError` where a rule with a bound is no regular language by its rules, or has others in it."""
    rules = facts.document.rules

    def refuse(what: str) -> None:
        remedy = "Leave out the attribute there, or write the rule with repeats and without tokens."
        what = f"lazy, max_chars or max_tokens on a rule {what}"
        raise UnsupportedError(what, where=rules[number].where, remedy=remedy)

    def mentioned(rule: int) -> list[int]:
        meter.check_time("looking for rules that end early")
        return [*useful_references(facts, rule)]

    def refuse_circle(path: list[int], rule: int) -> None:
        refuse(f"in which {rules[rule].name} mentions itself")

    for each in post_order([number], mentioned, refuse_circle):
        if each != number and each in written:
            refuse(f"that mentions {rules[each].name}, which has attributes, too")
        if any(isinstance(node, External) for node in facts.document.nodes[rules[each].first : rules[each].root + 1]):
            refuse("with tokens")


def _length(facts: RuleFacts, number: int, defined: Sequence[int], attributes: WrittenAttributes, meter: Meter) -> int:
    """How many bytes the end of a rule has. Raises `UnsupportedError` where that depends."""
    rule, marker = facts.document.rules[number], attributes.marker
    if marker is not None and marker < len(defined):
        end = facts.document.rules[defined[marker]]
        lists = written_out(facts, end.root, meter, f"the automaton of the rule {end.name}")
        # What is lazy ends with the shortest end that there is.
        network = ending_early(lists, None, meter, "measuring an end") if attributes.is_lazy else network_of(lists)
        lengths = {*_lengths(network)} if network is not None else set()
        if len(lengths) == 1:
            return lengths.pop()
    raise UnsupportedError(
        f"what is captured of {rule.name} is without an end whose texts are of several lengths",
        where=rule.where,
        remedy="Let a rule of its own say what ends it, or use ends of one length.",
    )


def _lengths(network: Network) -> Iterator[int]:
    """Lengths of texts, at least two where there are several; every state leads to an end."""
    ends = {state for state, _ in network.empty}
    after: dict[int, set[int]] = {}
    for source, _, _, target in network.bytes:
        after.setdefault(source, set()).add(target)
    here, length = {0}, 0
    while here and length <= network.states:
        if here & ends:
            yield length
        here = {target for state in here for target in after.get(state, ())}
        length += 1
