"""Random schemas against the package jsonschema, in both directions."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, note, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.utils import many
from judges.guides import BYTES
from judges.json_judge import Judge, NoVerdictError
from judges.json_schemas import VALUES, schemas
from judges.json_texts import accepts, dumps, is_text, random_text
from tiers import draws

import structgen as sg
from structgen.errors import BudgetExceededError, EmptyLanguageError, UnsupportedError

#: Schemas come in all sizes, and some of them are hard to satisfy: that is the point.
RANDOM = settings(
    max_examples=draws(150),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def compiled(schema: Any) -> sg.Index | None:
    """An index, None where nothing is valid. What is refused is another example's business."""
    try:
        return sg.compile(sg.JsonSchema(schema), BYTES, eager=False, budget=sg.Budget(seconds=5))
    except EmptyLanguageError:
        return None
    except (UnsupportedError, BudgetExceededError) as error:
        event(f"refused: {error.what[:60]}")
        assume(False)
        raise


def is_valid(schema: Any, text: bytes) -> bool:
    """The judge's answer about a text; where there is none, the example does not count."""
    try:
        return Judge(schema, "draft2020-12").is_valid(text)
    except NoVerdictError as error:
        event(f"no verdict: {error!s:.40}")
        assume(False)
        raise


@RANDOM
@given(schemas(), st.lists(VALUES, min_size=1, max_size=8))
def test_values_are_let_through_exactly_where_they_are_valid(schema: Any, values: list[Any]) -> None:
    index = compiled(schema)
    for value in values:
        expected = is_valid(schema, dumps(value))
        note(f"{dumps(schema).decode()}\n{dumps(value).decode()}: {expected}")
        event(f"valid: {expected}")
        assert expected == (index is not None and accepts(index, value))


@RANDOM
@given(schemas(), st.integers(0, 99))
def test_what_a_guide_lets_through_is_valid(schema: Any, seed: int) -> None:
    index = compiled(schema)
    assume(index is not None)
    assert index is not None
    random = Random(seed)
    for text in filter(None, (random_text(index, random, 20) for _ in range(5))):
        note(f"{dumps(schema).decode()}\n{text!r}")
        assert is_valid(schema, text)


@pytest.mark.skipif(
    not hasattr(many, "more"), reason="hypothesis-jsonschema uses an internal of Hypothesis that 6.167.1 took away"
)
@RANDOM
@given(st.data())
def test_what_hypothesis_jsonschema_draws_is_let_through(data: st.DataObject) -> None:
    hypothesis_jsonschema = pytest.importorskip("hypothesis_jsonschema")
    schema = data.draw(schemas())
    assume(schema is not False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = hypothesis_jsonschema.from_schema(schema)
        except Exception as error:  # recursive references, and what it takes for unsatisfiable
            event(type(error).__name__)
            assume(False)
        value = data.draw(values)
    assume(is_text(value) and is_valid(schema, dumps(value)))  # it knows no unevaluatedItems, say
    index = compiled(schema)
    note(f"{dumps(schema).decode()}\n{dumps(value).decode()}")
    assert index is not None
    assert accepts(index, value)
