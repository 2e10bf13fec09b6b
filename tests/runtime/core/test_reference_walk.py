"""Masks that kernels find are those of the reference walk: random definitions, small vocabularies and a real one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judges import gbnf_judge, lexemes, random_lark
from judges.grammars import BLOCKS, JSON, indentation
from judges.guides import allowed, check_walk, drawn, reference_mask
from judges.json_schemas import schemas
from judges.json_tokens import CASES, small_vocabulary
from judges.lark_judge import vocabulary_of

import structgen as sg

WITHIN = 'start: (NAME "=" v ";" | NAME)+\nNAME: /[a-z]+=?/\nv: %json {"type": ["string", "integer"], "maxLength": 3}'
AMBIGUOUS = 'start: e\ne: e "+" e | e "+" e "*" e | NAME | NAME "+" NAME\nNAME: /[a-c]+/'

#: By kind: what draws a definition, and letters that its texts are made of.
DRAWN: dict[str, tuple[Callable[[Random], Any], str]] = {
    "regex": (lambda random: sg.Regex(lexemes.random_regex(random, 4)), "ab;xyé!"),
    "counted regex": (
        lambda random: sg.Regex(lexemes.random_regex(random, 3, repeats=("{2,9}", "{3}", "{1,40}", "*"))),
        "ab;xyé!",
    ),
    "gbnf": (lambda random: sg.Gbnf(gbnf_judge.render(gbnf_judge.random_grammar(random))), "abcé日1 "),
    "schema": (lambda random: sg.JsonSchema(random.choice(CASES)["schema"]), '{}[]",: -0123.etrufalsn\\é'),
    "grammar": (lambda random: sg.Grammar(random_lark.random_grammar(random)), random_lark.LETTERS),
    "one lexer": (lambda random: sg.Grammar(random_lark.random_grammar(random), lexer="basic"), random_lark.LETTERS),
    "blocks": (lambda _: sg.Grammar(BLOCKS, lexer="basic", postlex=indentation(6)), "abif: \n\t"),
    "conflicts": (lambda _: sg.Grammar(AMBIGUOUS, ambiguity="all"), "abc+*"),
    "json, all readings": (lambda _: sg.Grammar(JSON, ambiguity="all"), '[]{}",:1e- .truefalsn\\ab'),
    "definition within": (lambda _: sg.Grammar(WITHIN), 'ab=;"12- '),
}


@pytest.mark.parametrize("kind", DRAWN)
def test_random_definitions_over_random_vocabularies(kind: str) -> None:
    random, (draw, letters) = Random(kind), DRAWN[kind]
    for _ in range(12):
        vocabulary = vocabulary_of(letters, random)
        for eager in (False, True):
            index = drawn(lambda: sg.compile(draw(random), vocabulary, eager=eager), sg.errors.StructgenError)  # noqa: B023
            check_walk(index, random)


@given(schemas(), st.integers(0, 99))
def test_random_schemas(schema: Any, seed: int) -> None:
    try:
        index = sg.compile(sg.JsonSchema(schema), small_vocabulary(), eager=False)
    except sg.errors.StructgenError:
        return
    check_walk(index, Random(seed), steps=3)


@pytest.mark.parametrize("kind", DRAWN)
def test_a_real_vocabulary(kind: str, llama3: sg.Vocabulary) -> None:
    random, (draw, _) = Random(kind), DRAWN[kind]
    index = drawn(lambda: sg.compile(draw(random), llama3, eager=False), sg.errors.StructgenError)
    guide = sg.Guide(index)
    for _ in range(4):
        np.testing.assert_array_equal(guide.bitmask(), reference_mask(guide), f"{index.definition}, {guide.tokens()}")
        ids = [token for token in allowed(guide) if llama3.token(token)]
        if not ids:
            break
        assert guide.advance(random.choice(ids))
