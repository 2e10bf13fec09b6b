"""Bounds of digits, judged by outlines-core's regular expressions, which are transcribed here, under `re`."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import pytest
from judges.guides import BYTES
from tiers import draws

import structgen as sg
from structgen.errors import BudgetExceededError, DefinitionError, UnsupportedError

ANY_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def quantified(schema: dict[str, int], part: str, less: int) -> str:
    """outlines-core's quantifier. There a greatest number of 1 (of a fraction: 0) is none, which is not followed."""
    least, most = schema.get(f"minDigits{part}"), schema.get(f"maxDigits{part}")
    low = max((least or 0) - less, 0)
    return f"{{{low},{'' if most is None else max(most - less, 0)}}}"


def outlines(schema: dict[str, Any]) -> re.Pattern[str]:
    """The expression that outlines-core makes of a schema."""
    if schema["type"] == "integer":
        return re.compile(rf"(-)?(0|[1-9][0-9]{quantified(schema, '', 1)})")
    whole, fraction, exponent = (
        quantified(schema, part, less) for part, less in (("Integer", 1), ("Fraction", 0), ("Exponent", 0))
    )
    return re.compile(rf"((-)?(0|[1-9][0-9]{whole}))(\.[0-9]{fraction})?([eE][+-][0-9]{exponent})?")


def compiled(schema: Any, **options: Any) -> Any:
    return sg.compile(sg.JsonSchema(schema, **options), BYTES, eager=False)


def takes(index: Any, text: str) -> bool:
    return bool(index.match(text.encode()).accepted)


def random_text(rng: random.Random) -> str:
    def digits(least: int) -> str:
        return "".join(rng.choice("0123789") for _ in range(rng.randint(least, 4)))

    text = rng.choice(["", "-"]) + rng.choice(["0", rng.choice("19") + digits(0)])
    if rng.random() < 0.5:
        text += "." + digits(1)
    return text + (rng.choice("eE") + rng.choice("+-") + digits(1) if rng.random() < 0.4 else "")


def random_schema(rng: random.Random) -> dict[str, Any]:
    if rng.random() < 0.3:
        found: dict[str, Any] = {"type": "integer"}
        parts = [""]
    else:
        found, parts = {"type": "number"}, ["Integer", "Fraction", "Exponent"]
    for part in parts:
        low, high = sorted((rng.randrange(4), rng.randrange(5)))
        if rng.random() < 0.5:
            found[f"minDigits{part}"] = low
        if rng.random() < 0.6:
            found[f"maxDigits{part}"] = max(high, 1)
    return found


@pytest.mark.parametrize("seed", range(draws(12)))
def test_digits_are_those_of_outlines(seed: int) -> None:
    rng = random.Random(seed)
    schema = random_schema(rng)
    index, judge = compiled(schema), outlines(schema)
    for _ in range(150):
        text = random_text(rng)
        known = judge.fullmatch(text) and ANY_NUMBER.fullmatch(text)
        assert takes(index, text) == bool(known), (schema, text)


@pytest.mark.parametrize("seed", range(draws(8)))
def test_digits_beside_bounds_of_the_value(seed: int) -> None:
    """What is written as with the same bounds alone, and as outlines-core has the digits."""
    rng = random.Random(100 + seed)
    schema = random_schema(rng)
    bounds: dict[str, Any] = rng.choice(
        [{"minimum": -20}, {"exclusiveMaximum": 150, "minimum": 0}, {"multipleOf": 5}, {"enum": [0, 7, 19, 1.5, 777]},
         {"minimum": 0.5, "maximum": 99.25}, {"not": {"const": 7}}]
    )  # fmt: skip
    try:
        index = compiled({**schema, **bounds})
    except sg.EmptyLanguageError:
        index = None
    plain, judge = compiled({"type": schema["type"], **bounds}), outlines(schema)
    for text in [*(random_text(rng) for _ in range(150)), "0", "7", "19", "1.5", "777"]:
        known = takes(plain, text) and judge.fullmatch(text)
        assert (index is not None and takes(index, text)) == bool(known), (schema, bounds, text)


def test_digits_of_integers_are_sets_of_values() -> None:
    """They combine like any others: with ``not``, ``oneOf`` and ``uniqueItems``."""
    small, long = {"type": "integer", "maxDigits": 2}, {"type": "integer", "minDigits": 2}
    either = compiled({"oneOf": [small, long]})
    neither = compiled({"type": "integer", "not": small})
    items = {**long, "maxDigits": 2}
    several = compiled({"type": "array", "items": items, "uniqueItems": True}, whitespace="compact")
    for number in (*range(-120, 121), 1000):
        written = str(number)
        fits = [bool(outlines(each).fullmatch(written)) for each in (small, long)]
        assert takes(either, written) == (sum(fits) == 1), number
        assert takes(neither, written) == (not fits[0]), number
    for pair in itertools.product((0, 5, 10, -10, 99), repeat=2):
        valid = pair[0] != pair[1] and 5 not in pair
        assert takes(several, json.dumps(pair, separators=(",", ":"))) == valid, pair


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        ({"minDigits": 2}, UnsupportedError),
        ({"type": "number", "maxDigits": 2}, UnsupportedError),
        ({"type": ["integer", "number"], "maxDigits": 2}, UnsupportedError),
        ({"type": "integer", "maxDigitsFraction": 2}, UnsupportedError),
        ({"not": {"type": "number", "maxDigitsFraction": 2}}, UnsupportedError),
        ({"anyOf": [{"type": "number", "maxDigitsFraction": 2}, {"type": "number", "minimum": 5}]}, UnsupportedError),
        ({"type": "integer", "minDigits": 3, "maxDigits": 2}, DefinitionError),
        ({"type": "integer", "minDigits": -1}, DefinitionError),
        ({"type": "integer", "maxDigits": 10**6}, BudgetExceededError),
        ({"type": "number", "maxDigitsInteger": 10**6}, BudgetExceededError),
    ],
    ids=range(10),
)
def test_refused(schema: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"[dD]igits"):
        compiled(schema)


def test_where_they_say_nothing() -> None:
    """A document that names its draft has that draft's keywords, and no type but numbers is meant."""
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "integer", "maxDigits": 1}
    assert takes(compiled(draft), "10")
    both = compiled({"anyOf": [{"type": ["string", "number"], "maxDigitsFraction": 1}, {"type": "null"}]})
    assert [takes(both, text) for text in ('"1.25"', "1.5", "null", "1.25")] == [True, True, True, False]
    assert compiled({"minDigits": 2}, lenient=True).relaxations
    found = sg.explain(compiled({"properties": {"a": {"type": "number", "maxDigitsFraction": 1}}}), b'{"a": 1.25}')
    assert "maxDigitsFraction" in str(found)
