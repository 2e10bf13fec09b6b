"""Look-ahead, judged by `re` over all short texts, by both of the ways that lead to its automaton."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest

import structgen as sg
from structgen.compiler.patterns import look_arounds

VOCABULARY = sg.Vocabulary.bytewise()
TEXTS = ["".join(text) for length in range(7) for text in product("ab", repeat=length)]


@pytest.mark.parametrize("few", [0, look_arounds._FEW])
@pytest.mark.parametrize("seed", range(4))
def test_random_look_ahead(seed: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_arounds, "_FEW", few)
    random = Random(seed)
    for _ in range(40):
        pattern = random_pattern(random)
        expected = [text for text in TEXTS if re.fullmatch(pattern, text)]
        try:
            index = sg.compile(sg.Regex(pattern), VOCABULARY, eager=False)
        except sg.errors.EmptyLanguageError:
            assert not expected, pattern
        else:
            assert [text for text in TEXTS if index.match(text.encode()).accepted] == expected, pattern


def random_pattern(random: Random, depth: int = 0) -> str:
    """A pattern with look-ahead, also within look-ahead and in repeats."""
    inner = (random_pattern(random, depth + 1) for _ in iter(int, 1))
    kind = random.random()
    if depth > 3 or kind < 0.2:
        return random.choice(["a", "b", "[ab]", ".", "[^a]", "$"])
    if kind < 0.4:
        return next(inner) + next(inner)
    if kind < 0.5:
        return f"(?:{next(inner)}|{next(inner)})"
    if kind < 0.65:
        return f"(?:{next(inner)}){random.choice(['*', '+', '?', '{2,3}'])}"
    end = random.choice(["", "", "$", ".*b"])
    return f"(?{random.choice('=!')}{next(inner)}{end}){next(inner)}"


@pytest.mark.parametrize(
    ("pattern", "states"),
    [
        (r"(?:97[89]-)?(?=[0-9]{10}$|(?=(?:[0-9]+-){3})[-0-9]{13}$|(?=(?:[0-9]+-){4})[-0-9]{17}$)[-0-9]+", 1_000),
        (r"(?=(?:a{11})+$)(?=(?:a{13})+$)(?=(?:a{17})+$)a*", 5_000),
        (r"(?=(?:[ab]{3}){1,20}$)(?=(?:[ab]{7})+$)[ab]*", 500),
        (r"(?:c(?=[ab]*b[ab]{9}$)|[ab])*", 5_000),
    ],
)
def test_look_ahead_costs_what_its_places_do(pattern: str, states: int) -> None:
    """Words with markers in all the places where the pattern has none would be millions of states."""
    index = sg.compile(sg.Regex(pattern), VOCABULARY, eager=False, budget=sg.Budget(states=states))
    assert index.states <= states
