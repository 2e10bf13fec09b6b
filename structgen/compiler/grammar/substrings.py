"""The machines of terminals that have any part of a text that is too long for the lexer."""

from __future__ import annotations

from ...budget import Meter
from ...definitions import Grammar
from ...definitions.structured_regexes import is_long, units_of
from ...runtime.grammar.substrings.machine import SubstringMachine
from ...runtime.grammar.substrings.suffixes import BYTES_WHILE_SORTING, suffixes_of
from ...vocabulary.vocabulary import Vocabulary
from .compiler import read_rules

_DOING = "putting the parts of a text in order"


def substrings(definition: Grammar, vocabulary: Vocabulary, meter: Meter) -> dict[str, SubstringMachine]:
    """By name of a terminal: the texts of a grammar that are not lexed.

    Raises
    ------
    BudgetExceededError
        Where the order of a text takes too much time or memory.
    VocabularyError
        Where no token is just a byte of a text.
    """
    if not any(map(is_long, definition.marked.structured)):
        return {}
    return {
        each.name: _machine(each.substring, vocabulary, meter)
        for each in read_rules(definition, meter).terminals
        if each.substring is not None
    }


def _machine(text: str, vocabulary: Vocabulary, meter: Meter) -> SubstringMachine:
    units = units_of(text)
    meter.check_memory(sum(map(len, units)) * BYTES_WHILE_SORTING, _DOING)
    return SubstringMachine(suffixes_of(units, lambda: meter.check_time(_DOING)), vocabulary)
