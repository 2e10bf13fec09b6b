"""The GBNF front end: a `Gbnf` in, the pushdown program of its texts out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...budget import Meter
from ...definitions import Gbnf
from ...definitions.grammar_marks import line_of
from ...definitions.token_sets import tokens_of
from ...errors import DefinitionError, EmptyLanguageError, InternalError, UnsupportedError, VocabularyError
from ...vocabulary.vocabulary import Vocabulary
from ..automata.edge_lists import EdgeLists
from ..programs.program import First, Program, TokenSet
from .attributes.token_bounds import bounded, ends_late
from .automata import automaton_of
from .calls import plan
from .dialects import DIALECTS
from .facts import RuleFacts, establish, refuse_left_recursion
from .left_recursion import without_left_recursion
from .lowering import Lowering
from .reader import read
from .syntax import GbnfGrammar

#: The automata of the rules that are called, and of the start.
Rules: TypeAlias = "dict[int, EdgeLists]"

#: What an id in a set takes.
_BYTES_OF_ID = 40


def compile_gbnf(definition: Gbnf, meter: Meter, vocabulary: Vocabulary | None = None) -> Program:
    """Read a grammar, build the automata of its rules, put them together; without a vocabulary it names no tokens.

    Raises the errors of `read_gbnf` and of `NamedTokens`, and `BudgetExceededError`.
    """
    facts, start = read_gbnf(definition, meter)
    if vocabulary is None:
        refuse_attributes(facts.document)
    names = facts.document.tokens
    tokens = NamedTokens(names, vocabulary, meter, definition.text) if names else None
    rules, named = rules_of(facts, start, meter)
    labels = {number: rule.label for number, rule in enumerate(facts.document.rules) if rule.label is not None}
    program = Lowering(rules, named, meter, externals=tokens, labels=labels).run(start)
    program.notes += tokens.notes if tokens is not None else []
    program.notes += _notes(facts, rules)
    return program


def _notes(facts: RuleFacts, rules: Rules) -> Iterator[str]:
    """What attributes of rules mean that their author may not expect."""
    for rule in facts.document.rules:
        if rule.label is not None and rule.label.names and not facts.fertile(rule.root):
            yield f"{rule.name} reads nothing, so nothing is captured of it ({rule.where})"
    for number, lists in rules.items():
        rule = facts.document.rules[number]
        if rule.max_tokens is not None and ends_late(lists):
            yield (
                f"{rule.name} need not be at an end behind max_tokens={rule.max_tokens}, and goes on there until it"
                f" can end ({rule.where})"
            )


def refuse_attributes(document: GbnfGrammar) -> None:
    """Raise `UnsupportedError` for rules with attributes in a grammar that is part of another definition."""
    for rule in document.rules:
        if rule.is_attributed:
            raise UnsupportedError(
                "the grammar is part of another definition, where captures, temperatures and max_tokens are unknown",
                where=f"rule {rule.name}, {rule.where}",
                remedy="Leave these attributes out, or compile it alone, as an Ebnf.",
            )


def renumbered(rules: Rules, externals: Sequence[int]) -> Rules:
    """The same automata, which call other externals: by the number of each, the new one."""
    return {
        rule: replace(there, calls=[
            tuple((callee if callee >= 0 else -1 - externals[-1 - callee], target) for callee, target in calls)
            for calls in there.calls
        ])
        for rule, there in rules.items()
    }  # fmt: skip


class NamedTokens:
    """The tokens that a grammar names, as the externals of its rules: there are no others.

    Parameters
    ----------
    names:
        As they are written.
    vocabulary:
        Where they are looked for; None for a grammar whose texts are bytes alone.
    written:
        The text that names them, for errors.

    Raises
    ------
    VocabularyError
        For what the vocabulary does not have.
    UnsupportedError
        Without one.
    """

    def __init__(self, names: Sequence[str], vocabulary: Vocabulary | None, meter: Meter, written: str = "") -> None:
        if vocabulary is None:
            raise UnsupportedError(
                f"{names[0]} is a token, and none can stand in a grammar within a grammar in Lark's syntax",
                remedy="Name it in the outer grammar, or use sg.sequence and sg.one_of.",
            )
        self.sets = []
        for name in names:
            try:
                self.sets.append(_token_set(name, vocabulary, meter))
            except VocabularyError as error:
                raise (error.within(line_of(name, written)) if name in written else error) from error
        #: What the author of a grammar may not expect.
        self.notes = [
            f"{name} is an EOS token: engines end the text there, whatever the grammar has behind it"
            for name, tokens in zip(names, self.sets, strict=True)
            if not tokens.complement and not {*vocabulary.eos_ids}.isdisjoint(tokens.ids)
        ]

    def tokens(self, number: int) -> TokenSet:
        """The tokens that an external is one of."""
        return self.sets[number]

    def first(self, number: int) -> First:
        """There are no definitions."""
        raise InternalError(f"the external {number} is a token")

    def waits(self, number: int) -> bool:
        """None waits to be lowered."""
        return False


def _token_set(name: str, vocabulary: Vocabulary, meter: Meter) -> TokenSet:
    """The tokens that a mark stands for."""
    ranges, complement, is_set = tokens_of(name, vocabulary)
    meter.hold(sum(1 + last - first for first, last in ranges) * _BYTES_OF_ID, "the tokens that the rules name")
    ids = sorted({token_id for first, last in ranges for token_id in range(first, last + 1)})
    return TokenSet(tuple(ids), complement, without_eos=is_set)


def read_gbnf(definition: Gbnf, meter: Meter) -> tuple[RuleFacts, int]:
    """Read a grammar. Returns what holds of its rules, and which is the start.

    Raises the errors of `read`, `UnsupportedError` for left recursion behind free text, `EmptyLanguageError`, and
    `BudgetExceededError`.
    """
    document = read(definition.text, meter, DIALECTS[definition.notation])
    start = next((number for number, rule in enumerate(document.rules) if rule.name == definition.start), -1)
    if start < 0:
        names = ", ".join(rule.name for rule in document.rules)
        raise DefinitionError(
            f"there is no rule {definition.start}",
            where=document.rules[0].where,
            remedy=f"Pass start=, one of {names}.",
        )
    facts = without_left_recursion(establish(document, meter), meter)
    document = facts.document
    refuse_left_recursion(facts, meter)
    if not facts.productive(document.rules[start].root):
        raise EmptyLanguageError(
            f"no text can ever complete the rule {definition.start}",
            where=document.rules[start].where,
            remedy="Give it, and the rules it needs, a way out that does not contain itself.",
        )
    return facts, start


def rules_of(facts: RuleFacts, start: int, meter: Meter) -> tuple[Rules, dict[int, str]]:
    """The automata of the rules that are called, and their names. Raises `BudgetExceededError`."""
    decided = plan(facts, start, meter)
    rules: Rules = {}
    states = 0
    for rule in sorted(decided.called):
        rules[rule] = automaton_of(facts, decided, rule, meter)
        if (most := facts.document.rules[rule].max_tokens) is not None:
            rules[rule] = bounded(rules[rule], most)
        states += len(rules[rule].edges)
        meter.check_states(states, "the automata of the rules")
    return rules, {rule: facts.document.rules[rule].name for rule in rules}
