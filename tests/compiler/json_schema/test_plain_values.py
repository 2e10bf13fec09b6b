"""Values that are made without the algebra are those that it finds, and all that is told is the same."""

from __future__ import annotations

import gzip
import json
import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from judges.json_schemas import schemas
from tiers import WHOLE, draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema import normalise
from structgen.compiler.json_schema.compiler import read_schema
from structgen.compiler.json_schema.normal_form.plain import PlainValues
from structgen.compiler.json_schema.normal_form.shapes import Option, Ref, Values
from structgen.compiler.json_schema.numbers.numbers import NumberSet

MASKBENCH = Path(__file__).resolve().parents[4] / "shared" / "data" / "maskbench" / "dev.jsonl.gz"


def as_met(values: Values) -> list[Any]:
    """All values with the numbers in which they are met from the root on, without their places."""
    numbers: dict[Ref, Ref] = {values.root: 0}
    todo = [values.root]
    for ref in todo:
        for child in values.values[ref].children():
            if child not in numbers:
                numbers[child] = len(numbers)
                todo.append(child)
    mapped = [values.values[r].mapped(lambda c: tuple(Option(numbers[o.value], o.marks) for o in c)) for r in numbers]
    return [
        (v.null, v.booleans, written(v.numbers), v.strings and v.strings.key, v.arrays, [named(o) for o in v.objects])
        for v in mapped
    ]


def written(numbers: NumberSet | None) -> Any:
    return numbers and (numbers.key, numbers.plain is numbers.other, numbers.written is numbers.other)


def named(shape: Any) -> Any:
    return shape._replace(others=tuple((each.keys.key, each.choice) for each in shape.others))


def found(schema: Any, options: dict[str, Any]) -> list[Any]:
    """What is found, and told."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            read = read_schema(sg.JsonSchema(schema, **options), Meter(Budget(seconds=100)))
        except sg.Error as error:
            return [type(error), str(error), sorted({str(each.message) for each in told})]
        read.warn()
        return [as_met(read.values), read.relaxed, read.values.impossible, sorted(str(each.message) for each in told)]


def check(schema: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Compare the two ways; returns whether any value was made without the algebra."""
    taken: list[PlainValues] = []

    def noted(*given: Any) -> PlainValues:
        taken.append(PlainValues(*given))
        return taken[-1]

    with monkeypatch.context() as patch:
        patch.setattr(normalise, "PlainValues", noted)
        plain = found(schema, options)
        patch.setattr(normalise, "PlainValues", lambda schemas, _, *given: PlainValues(schemas, {}, *given))
        assert plain == found(schema, options), json.dumps(schema)
    return any(each.values for each in taken)


@settings(
    max_examples=draws(400), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip
@given(schemas(), st.sampled_from([{}, {"lenient": True}, {"additional_properties": False}]))
def test_random_schemas(monkeypatch: pytest.MonkeyPatch, schema: Any, options: dict[str, Any]) -> None:
    event(f"plain: {check(schema, options, monkeypatch)}")


def scalar(random: Random) -> Any:
    kind = random.choice(["string", "integer", "number", "boolean", "null", ["string", "null"], ["integer", "array"]])
    bounds: dict[str, Any] = {"minimum": 1, "exclusiveMaximum": 2.5, "multipleOf": 0.5, "minLength": 2, "maxLength": 2}
    bounds |= {"pattern": "^[ab]{2}$", "format": "date", "enum": [1, 1.0, "ab", None, True], "const": "ab"}
    return {"type": kind, **dict(random.sample([*bounds.items()], random.choice([0, 0, 1, 1, 2])))}


def place(random: Random, depth: int) -> Any:
    """A place of which most can be plain."""
    kind = random.random()
    if depth == 0 or kind < 0.3:
        return random.choice([True, False, {}]) if random.random() < 0.1 else scalar(random)
    if kind < 0.5:
        bounds = {"minItems": random.randint(0, 2), "maxItems": random.randint(0, 3), "uniqueItems": True}
        kept = dict(random.sample([*bounds.items()], random.choice([0, 0, 1, 2])))
        return {"type": "array", "items": place(random, depth - 1), **kept}
    if kind < 0.8:
        names = random.sample("abcdé", random.randint(0, 4))
        needed = random.sample([*names, "z"], random.randint(0, len(names)))
        rest = random.choice([False, True, place(random, depth - 1)])
        bounds = {"minProperties": random.randint(0, 3), "maxProperties": random.randint(0, 4)}
        kept = dict(random.sample([*bounds.items()], random.choice([0, 0, 0, 1])))
        members = {name: place(random, depth - 1) for name in names}
        return {"type": "object", "properties": members, "required": needed, "additionalProperties": rest, **kept}
    if kind < 0.9:
        return {"$ref": f"#/$defs/{random.choice('xyz')}"}
    return {random.choice(["anyOf", "oneOf", "allOf"]): [place(random, depth - 1), scalar(random)]}


@pytest.mark.parametrize("seed", range(draws(300)))
def test_schemas_of_which_most_are_plain(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    plain = 0
    for _ in range(4):
        schema = {"type": "object", "properties": {"a": place(random, 3)}}
        schema["$defs"] = {name: place(random, 1) for name in "xyz"}
        plain += check(schema, random.choice([{}, {}, {"lenient": True}]), monkeypatch)
    assert seed or plain


@pytest.mark.skipif(not MASKBENCH.is_file(), reason="MaskBench is not there")
def test_wild_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    with gzip.open(MASKBENCH, "rt", encoding="utf-8") as file:
        lines = [json.loads(line)["schema"] for line in file]
    random = Random(0)
    several = lines if WHOLE else random.sample(lines, draws(400))
    plain = [check(schema, {}, monkeypatch) for schema in several]
    assert sum(plain) > len(plain) / 2
