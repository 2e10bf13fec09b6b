"""Differences of two definitions, judged by trying all short texts with `re`."""

from __future__ import annotations

import itertools
import re

import pytest
from judges.patterns import patterns

import structgen as sg

#: All texts of two letters up to this length.
_WORDS = ["".join(word) for length in range(8) for word in itertools.product("ab", repeat=length)]


def test_regexes_both_ways() -> None:
    found = dict.fromkeys(("equal", "narrower", "wider", "different"), 0)
    drawn = [*patterns(160)]
    for one, other in [*itertools.pairwise(drawn), *((each, f"(?:{each})?") for each in drawn[:30])]:
        texts = [{word for word in _WORDS if re.fullmatch(pattern, word)} for pattern in (one, other)]
        difference = sg.difference(sg.Regex(one), sg.Regex(other))
        found[difference.relation] += 1
        only = difference.only_first, difference.only_second
        for text, mine, theirs, (yes, no) in zip(only, texts, texts[::-1], ((one, other), (other, one)), strict=True):
            short = mine - theirs
            if text is None:
                assert not short, (one, other)
            else:
                assert re.fullmatch(yes, text), (one, other)
                assert not re.fullmatch(no, text), (one, other)
                assert len(text) == min(map(len, short)) if short else len(text) > 7, (one, other)
        assert difference.relation != "undecided"
    assert min(found["narrower"], found["different"]) > 10


@pytest.mark.parametrize(("one", "other", "relation"), [
    ({"type": "object"}, {"type": "object", "minProperties": 1}, "wider"),
    ({}, True, "equal"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["null", "string"]}, "equal"),
    ({"properties": {"a": {"type": "string", "maxLength": 30}}},
     {"properties": {"a": {"type": "string", "maxLength": 40}}}, "narrower"),
    (False, {"type": "null"}, "narrower"),
])  # fmt: skip
def test_schemas(one: object, other: object, relation: str) -> None:
    first, second = sg.JsonSchema(one), sg.JsonSchema(other)
    assert sg.difference(first, second).relation == relation
    swapped = {"wider": "narrower", "narrower": "wider"}.get(relation, relation)
    assert sg.difference(second, first).relation == swapped


def test_what_is_not_decided_says_how_far_it_was_looked() -> None:
    nested = sg.Gbnf('root ::= "(" root ")" | "x"'), sg.Grammar('start: "(" start ")" | "x"')
    difference = sg.difference(*nested, budget=sg.Budget(seconds=1))
    assert difference.relation == "undecided"
    assert difference.same_up_to is not None
    assert difference.same_up_to > 3
    assert sg.Difference.from_json(difference.to_json()) == difference


def _compiled(definition: object, **special: int) -> sg.Index:
    """An index over single bytes, EOS and two tokens without bytes."""
    tokens = [*(bytes([byte]) for byte in range(256)), None, None, None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[256], special_tokens=special or {"<a>": 257, "<b>": 258})
    return sg.compile(definition, vocabulary, eager=False)


_NAMING = [
    (sg.Grammar('start: "x" <a>'), sg.Grammar('start: "x" <b>')),
    (sg.Gbnf('root ::= "x" | <a>'), sg.Gbnf('root ::= "x" | <b>')),
    (sg.Grammar('start: "x" <[97]>'), sg.Grammar('start: "x" <[98]>')),
    (sg.Ebnf('root ::= "x" | Token(97)'), sg.Gbnf('root ::= "x"')),
    tuple(sg.StructuralTag({"type": "token", "token": token}) for token in (257, 258)),
]


@pytest.mark.parametrize("number", range(len(_NAMING)))
def test_what_differs_in_tokens_alone_is_not_proved_equal(number: int) -> None:
    pair = [*map(_compiled, _NAMING[number])]
    for one, other in (pair, pair[::-1]):
        found = sg.difference(one, other)
        assert found.relation == "undecided"
        assert "tokens" in found.how
    assert sg.difference(pair[0], _compiled(_NAMING[number][0])).relation == "equal"


def test_definitions_that_name_tokens_by_their_ids() -> None:
    one, other = sg.Grammar('start: "x" <[97]>'), sg.Grammar('start: "x" <[98]>')
    assert sg.difference(one, other).relation == "undecided"
    assert sg.difference(one, one).relation == "equal"


def test_tokens_of_one_name_and_two_ids() -> None:
    grammar = sg.Grammar('start: "x" <a>')
    swapped = _compiled(grammar, **{"<a>": 258, "<b>": 257})
    assert sg.difference(_compiled(grammar), swapped).relation == "undecided"


def test_a_text_that_only_one_accepts_is_told_where_tokens_are_read() -> None:
    found = sg.difference(_compiled(sg.Grammar('start: "x" (<a> | "y")')), _compiled(sg.Grammar('start: "x" <a>')))
    assert (found.first_in_second, found.second_in_first, found.only_first) == ("refuted", "undecided", "xy")
