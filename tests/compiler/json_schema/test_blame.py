"""Errors of the budget name the place in the schema and what is largest there, wherever they arise."""

from __future__ import annotations

import re
from typing import Any

import pytest
from judges.guides import BYTES

import structgen as sg
from structgen.errors import BudgetExceededError

CONTAINS = [{"contains": {"const": i}, "minContains": 20, "maxContains": 30} for i in range(5)]
MEMBERS = {f"m{i}": {"maxLength": i} for i in range(20_000)}

#: What is too much at ``/properties/x/items``, of which budgets, and what the remedy names.
TOO_MUCH: dict[str, tuple[Any, dict[str, float], str]] = {
    "enum": ({"enum": [f"value {i}" for i in range(100_000)]}, {"seconds": 0.01}, "'enum' of 100,000 entries"),
    "not": ({"not": {"enum": [[i] for i in range(20_000)]}}, {"seconds": 0.01}, "'enum' of 20,000 entries"),
    "objects": ({"enum": [{"a": i} for i in range(20_000)]}, {"memory": 3e6}, "'enum' of 20,000 entries"),
    "members": ({"properties": MEMBERS}, {"seconds": 0.01, "memory": 3e6}, "'properties' of 20,000 entries"),
    "pattern": ({"pattern": "a.{20}b|c.{20}d"}, {"states": 40, "seconds": 1e-4}, "counted repeats|'pattern' of 15"),
    "multiples": ({"multipleOf": 12_345_677}, {"states": 200}, "'multipleOf' of 12,345,677"),
    "minProperties": ({"minProperties": 100_000}, {"states": 200, "memory": 3e6}, "'minProperties' of 100,000"),
    "contains": ({"allOf": CONTAINS}, {"states": 2_000, "memory": 3e6}, "'maxContains' of 30"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_place_and_remedy(name: str) -> None:
    schema, budgets, largest = TOO_MUCH[name]
    definition = sg.JsonSchema({"properties": {"x": {"items": schema}}})
    sg.compile(sg.JsonSchema({"minLength": 3}), BYTES)  # so that kernels are there
    for kind, most in budgets.items():
        budget = sg.Budget(**{kind: most if kind == "seconds" else int(most)})  # type: ignore[arg-type]
        with pytest.raises(BudgetExceededError) as caught:
            sg.compile(definition, BYTES, eager=False, budget=budget)
        error = caught.value
        assert "/properties/x" in error.where or (kind == "seconds" and "at the root" in error.where)
        assert re.search(largest, error.remedy)
        assert f"Budget({kind}=" in error.remedy


def test_a_reference_is_blamed_where_it_leads() -> None:
    schema = {"items": {"$ref": "#/$defs/a~1b"}, "$defs": {"a/b": {"pattern": "^(a|b)*a(a|b){30}$"}}}
    with pytest.raises(BudgetExceededError) as caught:
        sg.compile(sg.JsonSchema(schema), BYTES, eager=False, budget=sg.Budget(states=500))
    assert caught.value.where.startswith("/$defs/a~1b/pattern")
