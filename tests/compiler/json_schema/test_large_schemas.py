"""Enumerations and objects as wide as people write them, within the budget of a request; errors name their place."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES

import structgen as sg
from structgen.errors import BudgetExceededError

#: `Budget.request`, but for its seconds: tests share their machine.
REQUEST = replace(sg.Budget.request, seconds=60)

RANDOM = Random(36)
LONG = ["".join(RANDOM.choices(string.ascii_letters + " é", k=50)) for _ in range(2_000)]
SKUS = [f"SKU-{RANDOM.randrange(10**9):09}-{RANDOM.choice('ABCDEF')}{RANDOM.randrange(1_000)}" for _ in range(30_000)]
NUMBERS = [RANDOM.randrange(10**9) for _ in range(30_000)]
NAMES = [f"member_{number}_{RANDOM.randrange(10**6)}" for number in range(10_000)]


def compiled(schema: Any, budget: sg.Budget = REQUEST, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, **options), BYTES, eager=False, budget=budget)


@pytest.mark.nightly
@pytest.mark.parametrize("values", [LONG, SKUS, NUMBERS], ids=["long", "many", "numbers"])
@pytest.mark.parametrize("form", ["enum", "a member", "consts", "items"])
def test_enumerations(values: list[Any], form: str) -> None:
    schema: Any = {"enum": values}
    if form == "consts":
        schema = {"anyOf": [{"const": value} for value in values]}
    begin, end = {"a member": ('{"id": ', "}"), "items": ("[", "]")}.get(form, ("", ""))
    if form == "a member":
        schema = {"type": "object", "properties": {"id": schema}, "required": ["id"]}
    elif form == "items":
        schema = {"type": "array", "items": schema}
    index = compiled(schema)
    for value in RANDOM.sample(values, 20):
        assert index.match(f"{begin}{json.dumps(value, ensure_ascii=False)}{end}".encode()).accepted
        other = f"{value}7" if isinstance(value, str) else value * 10 + 7
        assert not index.match(f"{begin}{json.dumps(other, ensure_ascii=False)}{end}".encode()).accepted


@pytest.mark.parametrize(
    "more", [{}, {"additionalProperties": False}, {"required": NAMES}], ids=["open", "closed", "all"]
)
def test_wide_objects(more: dict[str, Any]) -> None:
    kinds = {"string": "x", "integer": 7}
    members = {name: {"type": [*kinds][number % 2]} for number, name in enumerate(NAMES)}
    index = compiled({"type": "object", "properties": members, **more})
    chosen = NAMES if "required" in more else NAMES[1::999]
    value = {name: kinds[members[name]["type"]] for name in chosen}
    assert index.match(json.dumps(value).encode()).accepted
    assert not index.match(json.dumps({**value, chosen[3]: None}).encode()).accepted
    wrong = index.match(json.dumps({"member_x": 1}).encode()).accepted
    assert wrong == (not more)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[ab]*a[ab]{20}$"},
        {"type": "array", "contains": {"type": "null"}, "minContains": 200_000},
        {"enum": LONG, "pattern": "^.*(a.{30}){2}$"},
    ],
)
def test_what_grows_faster_than_the_schema_is_refused(schema: Any) -> None:
    with pytest.raises(BudgetExceededError) as error:
        compiled({"properties": {"x": schema}}, replace(sg.Budget.request, seconds=60, states=20_000))
    assert "/properties/x" in error.value.where


@pytest.mark.parametrize(
    ("schema", "memory", "where"),
    [
        ({"enum": SKUS}, 1 << 20, "/properties/x/items"),
        ({"enum": LONG}, 1 << 22, "/properties/x/items"),
        ({"properties": {"y": {"enum": SKUS}}}, 1 << 22, "/properties/x/items/properties/y"),
        ({"properties": dict.fromkeys(NAMES, True)}, 1 << 24, "/properties/x/items"),
    ],
    ids=["many", "long", "a member's", "names"],
)
def test_errors_name_the_place(schema: Any, memory: int, where: str) -> None:
    with pytest.raises(BudgetExceededError) as error:
        compiled({"properties": {"w": {"type": "string"}, "x": {"items": schema}}}, replace(REQUEST, memory=memory))
    assert error.value.where.endswith(f", at {where}")
    assert "counted repeats" not in error.value.remedy
