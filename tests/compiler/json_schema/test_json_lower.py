"""From values to programs: judged by `jsonschema` in both directions, through the interpreter of pushdown_oracle."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from judges.pushdown_oracle import (
    Readable,
    Stack,
    accepts,
    dead_states,
    follow,
    is_complete,
    prefix_ok,
    readable,
    sample,
    start,
    step,
)
from tiers import draws

from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.layout.options import TextOptions
from structgen.compiler.json_schema.lower import any_order, marked_order
from structgen.compiler.json_schema.lower.lower import lower
from structgen.compiler.json_schema.normal_form.shapes import (
    ArrayShape,
    KeyClass,
    ObjectShape,
    Option,
    Property,
    Value,
    Values,
)
from structgen.compiler.json_schema.normalise import normalise
from structgen.compiler.json_schema.numbers.numbers import NumberSet
from structgen.compiler.json_schema.read.reader import read
from structgen.compiler.json_schema.strings.strings import StringSet
from structgen.definitions import JsonSchema
from structgen.errors import BudgetExceededError, DefinitionError, InternalError, UnsupportedError


def meter(**budget: Any) -> Meter:
    return Meter(Budget(**budget))


def program_of(schema: Any, *, lenient: list[str] | None = None, keeps_sets: bool = True, **layout: Any) -> Readable:
    values = normalise(read(JsonSchema(schema).text, meter()), meter())
    return readable(lower(values, TextOptions(**layout), meter(), lenient=lenient, keeps_sets=keeps_sets))


def lowered(*values: Value, budget: dict[str, Any] | None = None, **layout: Any) -> Readable:
    """The program of a system whose root is the first value."""
    return readable(lower(Values(values, 0), TextOptions(**layout), meter(**(budget or {})), keeps_sets=True))


def dumps(value: Any, **options: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, **options).encode()


# -- writing values into programs, members in any order that works ---------------------------------------------


def takes(program: Readable, value: Any) -> bool:
    """Whether a value is accepted in some order of its members."""
    return any(is_complete(program, stacks) for stacks in _after(program, start(program), value))


def _fed(program: Readable, stacks: set[Stack], text: bytes) -> set[Stack]:
    for byte in text:
        stacks = step(program, stacks, byte)
    return stacks


def _after(program: Readable, stacks: set[Stack], value: Any) -> Iterator[set[Stack]]:
    """The configurations after a value, for each order of members that gets through."""
    if isinstance(value, dict):
        yield from _members(program, _fed(program, stacks, b"{"), tuple(value.items()), b"")
    elif isinstance(value, list):
        yield from _items(program, _fed(program, stacks, b"["), value, b"")
    elif after := _fed(program, stacks, dumps(value)):
        yield after


def _members(
    program: Readable, stacks: set[Stack], members: tuple[tuple[str, Any], ...], before: bytes
) -> Iterator[set[Stack]]:
    if not members and (after := _fed(program, stacks, b"}")):
        yield after
    for i, (name, value) in enumerate(members):
        begun = _fed(program, stacks, before + dumps(name) + b": ")
        for after in _after(program, begun, value) if begun else ():
            yield from _members(program, after, members[:i] + members[i + 1 :], b", ")


def _items(program: Readable, stacks: set[Stack], items: list[Any], before: bytes) -> Iterator[set[Stack]]:
    if not items:
        if after := _fed(program, stacks, b"]"):
            yield after
        return
    begun = _fed(program, stacks, before)
    for after in _after(program, begun, items[0]) if begun else ():
        yield from _items(program, after, items[1:], b", ")


# -- against jsonschema -----------------------------------------------------------------------------------------

ANY_OBJECT = {"a": {"type": "integer"}, "ab": {"type": "boolean"}, "b": {"enum": ["x", 1, None]}}

SCHEMAS: dict[str, Any] = {
    "anything": True,
    "scalars": {"enum": [None, True, False, 0, 1, 10, "x", "xy", "", "\u00e9\n"]},
    "closed": {"properties": ANY_OBJECT, "required": ["ab"], "additionalProperties": False, "type": "object"},
    "open": {"properties": ANY_OBJECT, "required": ["a"], "type": "object"},
    "optional": {"properties": ANY_OBJECT, "type": "object", "additionalProperties": {"type": "null"}},
    "forbidden": {"properties": {"a": False, "ab": {"type": "boolean"}}, "type": "object"},
    "patterns": {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "^.?b": {"enum": [1, True]}}},
    "patterns closed": {
        "type": "object", "patternProperties": {"^a+$": {"type": "null"}}, "additionalProperties": False
    },
    "names": {"type": "object", "propertyNames": {"maxLength": 30}, "properties": {"a": {"const": 1}}},
    "few names": {"type": "object", "propertyNames": {"enum": ["a", "b", "c"]}, "properties": {"a": {"const": 1}}},
    "min": {"type": "object", "properties": ANY_OBJECT, "additionalProperties": False, "minProperties": 2},
    "min open": {"type": "object", "properties": ANY_OBJECT, "minProperties": 2},
    "max": {"type": "object", "properties": ANY_OBJECT, "required": ["b"], "maxProperties": 2},
    "min and max": {
        "type": "object", "propertyNames": {"enum": ["a", "b", "c"]}, "minProperties": 2, "maxProperties": 2
    },
    "some other": {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}], "items": {"type": "null"}},
    "closed tuple": {
        "type": "array", "prefixItems": [{"type": "integer"}, {"const": "x"}], "items": False, "minItems": 1
    },
    "contains": {"type": "array", "contains": {"const": "x"}, "minContains": 1, "maxContains": 2},
    "contains in tuple": {
        "type": "array", "prefixItems": [{"type": "string"}], "contains": {"const": "x"}, "maxItems": 3
    },
    "unique": {"type": "array", "items": {"enum": ["x", "xy", 1, None, True]}, "uniqueItems": True},
    "unique pair": {"type": "array", "items": {"enum": [*range(30)]}, "uniqueItems": True, "maxItems": 2},
    "one at most": {"type": "array", "uniqueItems": True, "maxItems": 1},
    "recursive": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}]},
    "alternatives": {
        "anyOf": [
            {"type": "object", "required": ["a"], "properties": {"a": {"const": 1}, "b": {"const": "x"}}},
            {"type": "object", "required": ["a"], "properties": {"a": {"enum": [1, 2]}, "b": {"const": None}}},
        ]
    },
    "short": {"type": "string", "maxLength": 2},
    "long": {"type": "string", "minLength": 3, "maxLength": 40},
}  # fmt: skip

NAMES = ["a", "ab", "b", "c", "aa", "", "\u00e9\n"]
SCALARS = [None, True, False, 0, 1, 2, 10, "x", "xy", "", "\u00e9\n", "z" * 40, "z" * 41]


def some_value(random: random.Random, depth: int = 2) -> Any:
    kind = random.random()
    if depth and kind < 0.35:
        names = random.sample(NAMES, random.randint(0, 4))
        return {name: some_value(random, depth - 1) for name in names}
    if depth and kind < 0.7:
        return [some_value(random, depth - 1) for _ in range(random.randint(0, 4))]
    return random.choice(SCALARS)


def altered(random: random.Random, value: Any) -> Any:
    """A value with a member or an item more, less, elsewhere, or altered."""
    change = random.random()
    if isinstance(value, dict | list) and value and change < 0.8:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        pairs: list[tuple[Any, Any]] = [(key, value[key]) for key in keys]
        i = random.randrange(len(pairs))
        if change < 0.3:
            pairs[i] = pairs[i][0], altered(random, pairs[i][1])
        elif change < 0.5:
            del pairs[i]
        elif change < 0.65:
            random.shuffle(pairs)
        else:
            pairs.insert(i, (random.choice(NAMES), random.choice([pairs[i][1], some_value(random, 0)])))
        return dict(pairs) if isinstance(value, dict) else [item for _, item in pairs]
    return some_value(random, 1)


def values_for(schema: Any, program: Readable, random: random.Random, count: int) -> Iterator[Any]:
    """Random values, and such that are valid or nearly so."""
    texts = [text for _ in range(30) if (text := sample(program, random, 40)) is not None]
    # Floats don't come back as they were written, and may be infinite.
    small = [json.loads(text, parse_float=lambda number: 0.5) for text in texts]
    yield from small
    small += [altered(random, value) for value in small * 3]
    for _ in range(count):
        yield some_value(random) if random.random() < 0.3 else altered(random, random.choice(small))


@pytest.mark.parametrize("name", SCHEMAS)
def test_accepts_what_is_valid(name: str) -> None:
    program, judge = program_of(SCHEMAS[name]), Draft202012Validator(SCHEMAS[name])
    valid = 0
    for value in values_for(SCHEMAS[name], program, random.Random(name), 300):
        assert takes(program, value) == judge.is_valid(value), value
        valid += judge.is_valid(value)
    assert valid > 20


@pytest.fixture(params=[0, None], ids=["sets in registers", "few sets in states"])
def few_sets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to lower members in any order, for small objects too."""
    if request.param is not None:
        monkeypatch.setattr(any_order, "_FEW_SETS", request.param)


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_what_is_accepted_is_valid(name: str, order: str, few_sets: None) -> None:
    program, judge = program_of(SCHEMAS[name], property_order=order), Draft202012Validator(SCHEMAS[name])
    assert not dead_states(program)
    draw = random.Random(name)
    for _ in range(60):
        text = sample(program, draw, 60)
        if text is not None and _has_unique_names(text):
            assert judge.is_valid(json.loads(text, parse_float=exactly)), text
            known = {b"": start(program)}
            assert all(follow(program, known, text[:i]) for i in range(len(text)))
            assert is_complete(program, follow(program, known, text))


def exactly(number: str) -> int | Decimal:
    """A number as it is: floats may round to integers."""
    value = Decimal(number)
    return int(value) if abs(value.adjusted()) < 300 and value == int(value) else value


def _has_unique_names(text: bytes) -> bool:
    found = []

    def hook(members: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in members]
        found.append(len(set(names)) == len(names))

    json.loads(text, object_pairs_hook=hook)
    return all(found)


@pytest.mark.parametrize("name", SCHEMAS)
def test_any_order(name: str, few_sets: None) -> None:
    program, judge = program_of(SCHEMAS[name], property_order="any"), Draft202012Validator(SCHEMAS[name])
    for value in values_for(SCHEMAS[name], program, random.Random(name), 150):
        assert accepts(program, dumps(value)) == judge.is_valid(value), value


# -- layouts ----------------------------------------------------------------------------------------------------

NESTED = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "empty": {"type": "object", "additionalProperties": {"type": "boolean"}},
    },
    "additionalProperties": False,
}

DOCUMENTS = [
    {},
    {"n": 1},
    {"n": 12, "list": [[1, 2], [], [3]]},
    {"list": [], "empty": {}},
    {"empty": {"x": True, "y": False}},
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=repr)
@pytest.mark.parametrize("indent", [0, 1, 2, 4])
def test_indentation_is_that_of_dumps(document: Any, indent: int) -> None:
    program = program_of(NESTED, gap=None, indent=indent, separators=(",", ": "))
    text = json.dumps(document, indent=indent)
    assert not dead_states(program)
    assert accepts(program, text.encode())
    for i, char in enumerate(text):
        if char in " \n":  # one space or line end more or less is not accepted
            assert not accepts(program, (text[:i] + text[i + 1 :]).encode()) or text[i - 1] == text[i]
            assert not accepts(program, (text[:i] + char + text[i:]).encode())


@pytest.mark.parametrize(
    ("gap", "good", "bad"),
    [
        ("", ['{"n":1}', "{}", '{"list":[[1,2],[]]}'], ['{"n": 1}', "{ }"]),
        (" ?", ['{"n":1}', '{ "n" : 1 }', '{"list" :[ [1 , 2] ,[ ]]}', "{ }"], ['{"n":  1}', "{  }", " {}", "{} "]),
        (" ", ['{ "n" : 1 }', "{ }", '{ "list" : [ [ 1 , 2 ] ] }'], ['{"n": 1}', "{}"]),
        ("[ \n]{0,3}", ['{"n":\n\n 1}', "{   }"], ['{"n":    1}']),
        ("[ \n]{0,100}", ['{"n":' + 100 * " " + "1}", "{" + 100 * "\n" + "}"], ['{"n":' + 101 * " " + "1}"]),
        ("[ \t\n\r]*", ['{"n":' + 1000 * " " + "1}", "{\r\n\t}"], [" {}"]),
        ("(?:\n *)?", ['{\n  "n":\n1}', "{}"], ["{ }"]),
    ],
)
def test_gaps(gap: str, good: list[str], bad: list[str]) -> None:
    program = program_of(NESTED, gap=gap)
    assert not dead_states(program)
    assert [text for text in good if not accepts(program, text.encode())] == []
    assert [text for text in bad if accepts(program, text.encode())] == []


@pytest.mark.parametrize("gap", ["x", " |x", "[^a]", "(?=a) "])
def test_gaps_are_whitespace(gap: str) -> None:
    with pytest.raises(DefinitionError, match="whitespace"):
        program_of(True, gap=gap)


@pytest.mark.parametrize(
    ("escapes", "good", "bad"),
    [
        ("minimal", ['{"\u00e9\\u001f\\"": 1}', '{"\u00e9\\u001F\\"": 1}'], ['{"\\u00e9\\u001f\\"": 1}']),
        ("ascii", ['{"\\u00e9\\u001f\\"": 1}', '{"\\u00E9\\u001F\\"": 1}'], ['{"\u00e9\\u001f\\"": 1}']),
        ("any", ['{"\u00e9\\u001f\\"": 1}', '{"\\u00e9\\u001f\\u0022": 1}'], ['{"\u00e8\\u001f\\"": 1}']),
    ],
)
def test_spellings_of_names(escapes: str, good: list[str], bad: list[str]) -> None:
    name = '\u00e9\x1f"'
    schema = {"type": "object", "properties": {name: {"const": 1}}, "required": [name], "additionalProperties": False}
    closed = program_of(schema, escapes=escapes)
    assert all(accepts(closed, text.encode()) for text in good)
    assert not any(accepts(closed, text.encode()) for text in bad)
    # However a declared name is spelled, it does not count as another name.
    open_ = program_of(schema | {"required": [], "additionalProperties": {"const": 2}}, escapes=escapes)
    assert not dead_states(open_)
    assert all(accepts(open_, text.encode()) for text in good)
    assert not any(accepts(open_, text.replace("1}", "2}").encode()) for text in good)


# -- bounds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", [0, 1, 2])
@pytest.mark.parametrize("bounds", [(0, 40), (1, 40), (2, 40), (39, 40), (40, 40), (0, 36), (50, None), (40, 100)])
@pytest.mark.parametrize("gap", ["", " ?", "[ ]{0,9}"])
def test_long_arrays_are_counted(prefix: int, bounds: tuple[int, int | None], gap: str) -> None:
    least, most = bounds
    shape = ArrayShape(((Option(1),),) * prefix, (Option(1),), least, most)
    program = lowered(Value(arrays=(shape,)), Value(null=True, numbers=NumberSet.literal([Decimal(1)])), gap=gap)
    assert program.loops
    assert len(program.edges) < 100  # with those that all programs have
    assert not dead_states(program)
    for n in {0, 1, 2, 3, *range(least - 2, least + 3), *range((most or 100) - 2, (most or 100) + 3)}:
        if n >= 0:
            text = dumps([None, 1] * (n // 2) + [1] * (n % 2), separators=(",", ":"))
            assert accepts(program, text) == (least <= n <= (most or n)), n


def test_counts_within_counts() -> None:
    inner = ArrayShape((), (Option(2),), 35, 40)
    program = lowered(
        Value(arrays=(ArrayShape((), (Option(1),), 34, 50),)),
        Value(arrays=(inner,)),
        Value(strings=StringSet.length(3, 50), null=True),
    )
    good = [["x" * 3, *[None] * 36, "y" * 50]] * 34
    assert accepts(program, dumps(good))
    assert not accepts(program, dumps(good[1:]))
    assert not accepts(program, dumps([*good[1:], ["x" * 3] * 41]))
    assert not accepts(program, dumps([*good[1:], ["x" * 51] * 40]))


@pytest.mark.parametrize("text", ["a\x7f", "na\u00efve", "\n", "\x01", 'a"b', "a\\\\u"])
@pytest.mark.parametrize("ensure_ascii", [False, True])
def test_names_and_texts_are_spelled_as_dumps_spells_them(text: str, ensure_ascii: bool) -> None:
    shape = ObjectShape((Property(text, (Option(1),), required=True),))
    values = Value(objects=(shape,)), Value(strings=StringSet.literal([text, "b"]))
    program = lowered(*values, escapes="ascii" if ensure_ascii else "minimal")
    for written in (True, False):
        spelled = json.dumps({text: text}, ensure_ascii=written)
        assert accepts(program, spelled.encode()) == (spelled == json.dumps({text: text}, ensure_ascii=ensure_ascii))


def test_names_with_counted_lengths() -> None:
    shape = ObjectShape(
        (Property("abc", (Option(1),)), Property("b" * 60, ())), (KeyClass(StringSet.length(2, 60), (Option(2),)),)
    )
    program = lowered(Value(objects=(shape,)), Value(null=True), Value(booleans=frozenset({True})))
    assert program.loops
    assert not dead_states(program)
    for name, value, good in [
        ("abc", None, True), ("abc", True, False), ("ab", True, True), ("abd", True, True), ("a", True, False),
        ("b" * 60, True, False), ("b" * 59, True, True), ("b" * 61, True, False), ("bc" * 30, True, True),
        ("bc" * 31, True, False), ("abc" * 20, True, True), ("abc" * 21, True, False), ("\u00e9" * 60, True, True),
    ]:  # fmt: skip
        assert accepts(program, dumps({name: value})) == good, name


def test_no_way_into_forbidden_names() -> None:
    """Where only forbidden names would remain there is no way on: the text could not be finished."""
    keys = StringSet.literal(["xa", "xb", "y"])
    shape = ObjectShape((Property("xa", ()), Property("xb", ())), (KeyClass(keys, (Option(1),)),))
    program = lowered(Value(objects=(shape,)), Value(null=True))
    assert accepts(program, b'{"y": null}')
    assert not prefix_ok(program, b'{"x')
    every = ObjectShape(shape.properties, (KeyClass(StringSet.literal(["xa", "xb"]), (Option(1),)),))
    assert not prefix_ok(lowered(Value(objects=(every,)), Value(null=True)), b'{"')


def test_declared_names_come_once_and_in_order() -> None:
    program = program_of({"type": "object", "properties": {"a": {}, "b": {}}})
    assert accepts(program, b'{"a": 1, "b": 2, "c": 3, "": 4}')
    for text in (b'{"a": 1, "a": 2}', b'{"b": 1, "a": 2}', b'{"c": 1, "a": 2}', b'{"c": 1, "b": 2}'):
        assert not accepts(program, text)


# -- size and speed ---------------------------------------------------------------------------------------------


def test_unconstrained_strings_are_one_state() -> None:
    program = program_of({"type": "object", "properties": {"a": {"type": "string"}, "b": {"pattern": "^x-"}}})
    insides = set()
    for text in (b'{"a": "x', b'{"a": "x", "b": "x-y', b'{"c', b'{"c": "x', b'{"c": [{"d'):
        stacks = start(program)
        for byte in text:
            stacks = step(program, stacks, byte)
        insides |= {stack[1][0] for stack in stacks if stack is not None}
    assert len(insides) == 1


@pytest.mark.parametrize("others", [(), (KeyClass(StringSet.ANY, (Option(1),)),)], ids=["closed", "open"])
def test_optional_properties_share_states(others: tuple[KeyClass, ...]) -> None:
    names = [f"{i:03}-property" for i in range(400)]
    shape = ObjectShape(tuple(Property(name, (Option(1),)) for name in names), others)
    program = lowered(Value(objects=(shape,)), Value(null=True))
    assert len(program.edges) < 400 * 3 * len(names[0])
    assert accepts(program, dumps(dict.fromkeys([*names[::3], *(["x"] if others else [])])))
    assert not accepts(program, dumps({names[1]: None, names[0]: None}))


def test_nesting_takes_no_recursion() -> None:
    values = [Value(arrays=(ArrayShape(((Option(i + 1),),), (), 1, 1),)) for i in range(5_000)]
    program = lowered(*values, Value(null=True))
    assert accepts(program, b"[" * 5_000 + b"null" + b"]" * 5_000)


def test_budgets() -> None:
    long = ObjectShape((Property("x" * 1_000_000, (Option(1),)),))
    with pytest.raises(BudgetExceededError):
        lowered(Value(objects=(long,)), Value(null=True))
    wide = ArrayShape((), (Option(1),), 0, 2_000_000, contains=())
    assert accepts(lowered(Value(arrays=(wide,)), Value(null=True)), b"[null, null]")
    with pytest.raises(BudgetExceededError):
        program_of({"type": "array", "contains": {"type": "null"}, "minContains": 2_000_000})
    with pytest.raises(BudgetExceededError):
        program_of({"type": "object", "minProperties": 2_000_000})


# -- what is refused --------------------------------------------------------------------------------------------


def refused(build: Callable[[], Readable], where: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        build()
    assert error.value.where == where


def test_unique_items_of_many_values() -> None:
    schema = {"properties": {"a": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}}}
    refused(lambda: program_of(schema, keeps_sets=False), "/properties/a")
    relaxed: list[str] = []
    program = program_of(schema, lenient=relaxed, keeps_sets=False)
    assert accepts(program, b'{"a": ["x", "x"]}')
    assert relaxed[0].startswith("/properties/a: uniqueItems")


#: All members are null; that not all are is a mark that one must earn.
ALL_NULL = {"additionalProperties": {"type": "null"}}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("extra", "number"),
    [
        ({}, 20), ({"maxProperties": 3}, 20), ({"minProperties": 3}, 20), ({"additionalProperties": True}, 20),
        ({"maxProperties": 3}, 130), ({"not": ALL_NULL}, 130), ({"not": ALL_NULL, "minProperties": 4}, 20),
        ({"not": ALL_NULL, "additionalProperties": {"enum": ["x", None]}}, 20),
    ],
)  # fmt: skip
def test_many_properties_in_any_order(extra: dict[str, Any], number: int) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {f"p{i}": {"enum": [i, None] if i % 3 else [i]} for i in range(number)},
        "required": ["p7", "p3"],
        "additionalProperties": False,
    } | extra
    program, judge = program_of(schema, property_order="any"), Draft202012Validator(schema)
    assert not dead_states(program)
    draw = random.Random(repr((extra, number)))
    seen = set()
    for _ in range(draws(400 if number < 100 else 100)):
        names = draw.sample([f"p{i}" for i in range(number + 1)], draw.randint(0, 4)) + draw.sample(
            ["p7", "p3"], draw.choice((1, 2, 2, 2))
        )
        value = {name: draw.choice([int(name[1:]), None]) for name in names}
        seen.add(judge.is_valid(value))
        assert accepts(program, dumps(value)) == judge.is_valid(value), value
    assert seen == {False, True}
    for _ in range(draws(200 if number < 100 else 20)):  # what begins can end; no name comes twice
        text = sample(program, draw, 60)
        if text is None:
            continue
        value = json.loads(text, parse_float=exactly)
        declared = [name for name, _ in json.loads(text, object_pairs_hook=list) if name in schema["properties"]]
        assert judge.is_valid(value), text
        assert len(declared) == len(set(declared)), text


def test_more_properties_in_any_order_than_a_register_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marked_order, "MOST_MEMBERS", 62)
    schema: dict[str, Any] = {"type": "object", "properties": {f"p{i}": {"const": i} for i in range(70)}}
    refused(lambda: program_of(schema, property_order="any"), "#")  # a declared name comes at most once
    refused(lambda: program_of({"type": "array", "items": schema}, property_order="any"), "/items")
    relaxed: list[str] = []
    program = program_of(schema | {"required": ["p69"]}, property_order="any", lenient=relaxed)
    assert len(relaxed) == 1
    assert not accepts(program, b'{"p1": 1, "p64": 64, "p2": 2}')
    assert accepts(program, b'{"p1": 1, "p69": 69, "p64": 64, "p2": 2}')
    assert not accepts(program, b'{"p1": 1, "p69": 69, "p64": 64, "p1": 1}')
    assert not accepts(program, b'{"p69": 69, "p64": 65}')
    schema["required"] = list(schema["properties"])
    refused(lambda: program_of(schema, property_order="any"), "#")
    relaxed = []
    program = program_of(schema, property_order="any", lenient=relaxed)
    text = ", ".join(f'"p{i}": {i}' for i in range(62))
    assert accepts(program, b"{%s}" % text.encode())
    assert not accepts(program, b"{%s}" % text[9:].encode())
    assert len(relaxed) == 1


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("many", [1, 6])
def test_a_shape_that_should_not_be_there_is_our_own_mistake(order: str, many: int) -> None:
    """Shapes without members are left out before the lowering, so that no schema leads to this."""
    properties = tuple(Property(f"x{i}", (Option(1),), required=True) for i in range(many))
    for shape in (
        Value(objects=(ObjectShape(properties, max_properties=0),)),
        Value(arrays=(ArrayShape((), (), 1, 1, contains=()),)),
    ):
        with pytest.raises(InternalError, match="report") as error:
            lowered(shape, Value(null=True), property_order=order)
        assert not isinstance(error.value, DefinitionError)


# -- the same tables in every process ------------------------------------------------------------------------------

NUMBERED: list[Any] = [
    *SCHEMAS.values(),
    {"properties": {f"p{i}": {"enum": [f"v{i}", f"w{i}", i, None]} for i in range(20)}, "minProperties": 3},
    {"anyOf": [{"properties": {name: {"const": name}}, "required": [name]} for name in ("ab", "a", "abc", "x")]},
    {"type": "object", "patternProperties": {"^a.*b$": {"type": "null"}, "^(x|y)+": {"type": "string"}}},
]

DIGEST = """
import hashlib, sys
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.compiler import compile_json_schema
from structgen.compiler.programs.tables import to_tables
from structgen.definitions import JsonSchema
digest = hashlib.sha256()
for line in sys.stdin:
    tables = to_tables(compile_json_schema(JsonSchema(line), Meter(Budget(seconds=3600)), keeps_sets=True)[0])
    for name, section in sorted(tables.to_sections().items()):
        digest.update(name.encode() + section.tobytes())
print(digest.hexdigest())
"""


def test_states_have_the_same_numbers_in_every_process() -> None:
    lines = "\n".join(map(json.dumps, NUMBERED))
    found = {
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            input=lines,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "1234"
    }
    assert len(found) == 1


def test_automata_are_taken_in_columns() -> None:
    """An edge by itself is an object, and what takes most of a large program's time: most are not."""
    kinds = [{"type": "string", "pattern": "^[a-f]{3}-([a-z]|é){40}$"}, {"type": "number", "multipleOf": 0.07}]
    document = read(json.dumps({"type": "array", "items": {"anyOf": kinds}}), meter(), additional_properties=True)
    program = lower(normalise(document, meter()), TextOptions(), meter())
    in_blocks = sum(block.shape[1] for block in program.blocks)
    assert in_blocks > 200
    assert sum(map(len, program.edges)) < in_blocks
