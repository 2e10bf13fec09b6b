"""What `JsonSchema` takes for a schema, what it keeps of it, and what it refuses."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from typing_extensions import TypedDict

from structgen import JsonSchema, Regex
from structgen.definitions import as_definition, json_text
from structgen.definitions.json_text import dumps, loads
from structgen.errors import BudgetExceededError, DefinitionError

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


class TestJsonText:
    @given(ANY_JSON)
    def test_writes_what_json_reads(self, value: Any) -> None:
        assert json.loads(dumps(value)) == value
        assert loads(dumps(value)) == value
        assert dumps(loads(json.dumps(value))) == dumps(value)

    @given(ANY_JSON)
    def test_small_values_are_written_as_others_are(self, value: Any) -> None:
        writer = json_text._Writer()
        writer.write(value)
        assert dumps(value) == "".join(writer.parts)

    def test_deep_values_are_not_left_to_recursion(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However deep a program lets Python recurse: its encoder does so in C."""
        written = list[object]()

        class Encoder:
            def encode(self, value: object) -> str:
                written.append(value)
                return json.dumps(value, separators=(",", ":"))

        monkeypatch.setattr(json_text, "_ENCODER", Encoder())
        for levels in (300, 700):
            value: Any = 1
            for _ in range(levels // 2):
                value = [{"a": value}]
            assert len(dumps(value)) == 4 * levels + 1
        assert len(written) == 1

    @pytest.mark.parametrize(
        "number",
        ["0", "-1", "1.5", "0.10", "1E+400", "1.0", "123456789.0123456789012345", "9" * 10_000, f"0.{'1' * 5000}"],
    )
    def test_numbers_keep_their_digits(self, number: str) -> None:
        assert dumps(loads(f'{{"minimum": {number}}}')) == f'{{"minimum":{number}}}'

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (Decimal("0.10"), "0.10"),
            (-0.0, "-0.0"),
            (("a", (True, None)), '["a",[true,null]]'),
            (MappingProxyType({"b": 1, "a": 2}), '{"b":1,"a":2}'),
            (Enum("E", {"A": "x"}).A, '"x"'),  # type: ignore[attr-defined]
            ("\ud800\0é", '"\\ud800\\u0000\\u00e9"'),
        ],
    )
    def test_python_values(self, value: Any, text: str) -> None:
        assert dumps(value) == text

    def test_an_int_longer_than_str_would_write(self) -> None:
        assert dumps(-(10**5000)) == "-1" + "0" * 5000

    @pytest.mark.parametrize(
        ("value", "where", "message"),
        [
            ({"a": {"b/~": [0, math.nan]}}, "/a/b~1~0/1", "nan is not"),
            ({"a": Decimal("Infinity")}, "/a", "Infinity is not"),
            ({"a": {1: 2}}, "/a", "a key is 1"),
            ([{"a": {1, 2}}], "/0/a", "a set is not"),
            ({"a": b"x"}, "/a", "a bytes is not"),
            ({"a": int}, "/a", "a type is not"),
        ],
    )
    def test_what_is_no_json_is_named(self, value: Any, where: str, message: str) -> None:
        with pytest.raises(DefinitionError, match=message) as caught:
            dumps(value)
        assert caught.value.where == where

    def test_a_value_that_contains_itself(self) -> None:
        value: dict[str, Any] = {"properties": {}}
        value["properties"]["child"] = value
        with pytest.raises(DefinitionError, match="contains itself") as caught:
            dumps(value)
        assert caught.value.where == "/properties/child"

    def test_what_is_used_twice_is_written_twice(self) -> None:
        shared = {"type": "string"}
        assert loads(dumps({"a": shared, "b": [shared, shared]})) == {"a": shared, "b": [shared, shared]}

    def test_what_comes_again_is_walked_once(self) -> None:
        looked = 0

        class Counted(dict[str, Any]):
            def __getitem__(self, key: str) -> Any:
                nonlocal looked
                looked += 1
                return super().__getitem__(key)

        value: dict[str, Any] = {"type": "string"}
        for level in range(60):
            value = Counted(a=value, b=[value, level])
            if level == 11:
                assert loads(dumps(value)) == value
        looked = 0
        with pytest.raises(BudgetExceededError, match="more than 1,000,000 values"):
            JsonSchema(value)
        assert looked < 1_000

    def test_long_numbers_that_come_again_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        written: list[int] = []

        def scalar(writer: object, item: int) -> str:
            written.append(item)
            return str(item)

        monkeypatch.setattr(json_text._Writer, "_scalar", scalar)
        long = 10**4_000
        assert dumps([long, 1, long]) == f"[{long},1,{long}]"
        assert written == [long, 1]
        with pytest.raises(BudgetExceededError, match="67,108,864 characters"):
            dumps([long] * 100_000)

    def test_depth(self) -> None:
        value: Any = True
        for _ in range(50_000):
            value = {"not": value}
        assert dumps(value) == '{"not":' * 50_000 + "true" + "}" * 50_000
        with pytest.raises(BudgetExceededError, match="nested too deeply"):
            dumps({"enum": _nested(200_000)})
        with pytest.raises(BudgetExceededError, match="nested too deeply"):
            loads("[" * 1_000_000)

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e99999999999999999999", "", "{'a': 1}", "01"])
    def test_text_that_is_no_json(self, text: str) -> None:
        with pytest.raises(DefinitionError):
            loads(text)


def _nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


class TestSources:
    @pytest.mark.parametrize(
        "same",
        [
            {"type": "array", "maxItems": 2},
            '{"type": "array",\n "maxItems": 2}',
            '{"type": "array", "maxItems": 3, "maxItems": 2}',
            MappingProxyType({"type": "array", "maxItems": 2}),
        ],
    )
    def test_spellings_of_one_schema_are_equal(self, same: Any) -> None:
        expected = JsonSchema({"type": "array", "maxItems": 2})
        assert JsonSchema(same) == expected
        assert hash(JsonSchema(same)) == hash(expected)
        assert JsonSchema(same).canonical() == expected.canonical()

    def test_the_order_of_members_counts(self) -> None:
        one, other = (JsonSchema({"properties": dict.fromkeys(names, True)}) for names in ("ab", "ba"))
        assert one.canonical() != other.canonical()

    def test_what_happens_to_the_argument_later_does_not(self) -> None:
        schema = {"type": "array"}
        definition = JsonSchema(schema)
        schema["type"] = "object"
        assert definition.text == '{"type":"array"}'

    @pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), ("false", "false"), ({}, "{}")])
    def test_small_ones(self, value: Any, text: str) -> None:
        assert JsonSchema(value).text == text

    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "schema.json"
        path.write_bytes(b'\xef\xbb\xbf{"title": "\xc3\xa9"}')
        assert JsonSchema(path) == JsonSchema({"title": "é"})

    def test_a_str_is_never_a_path(self, tmp_path: Path) -> None:
        path = tmp_path / "schema.json"
        path.write_text("{}")
        with pytest.raises(DefinitionError, match="not JSON") as caught:
            JsonSchema(str(path))
        assert "pathlib.Path" in caught.value.remedy

    @pytest.mark.parametrize(
        ("content", "place"), [(b"{\n}}", ", line 2, column 2"), (b"\xff", ""), (b"3", ""), (None, "")]
    )
    def test_a_bad_file_is_named(self, tmp_path: Path, content: bytes | None, place: str) -> None:
        path = tmp_path / "schema.json"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DefinitionError) as caught:
            JsonSchema(path)
        assert caught.value.where == f"{path}{place}"

    @pytest.mark.parametrize("value", [None, 3, 1.5, b"{}", [], (), set(), "[]", "null", '"{}"'])
    def test_what_is_no_schema(self, value: Any) -> None:
        with pytest.raises(DefinitionError, match="a schema is an object or a boolean"):
            JsonSchema(value)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Person(pydantic.BaseModel):
    name: str
    age: Annotated[int, pydantic.Field(ge=0)] = 0
    friends: list[Person] = []


@dataclass
class Point:
    x: float
    y: float = 0


class Movie(TypedDict):
    title: str
    year: int


class Pair(NamedTuple):
    left: int
    right: str


def search(query: str, limit: Annotated[int, pydantic.Field(le=50)] = 10, *, tags: list[str] | None = None) -> str:
    return f"{query}{limit}{tags}"


class Shop:
    def order(self, item: str, count: int = 1) -> None: ...

    @classmethod
    def close(cls, hard: bool) -> None: ...


TYPES: list[tuple[Any, list[Any], list[Any]]] = [
    (int, [1], ["1", 1.5]),
    (list[int], [[], [1, 2]], [1, ["a"]]),
    (int | None, [1, None], ["a"]),
    (Optional[int], [1, None], ["a"]),  # noqa: UP045
    (Literal["a", 1], ["a", 1], ["b", 2]),
    (Annotated[str, pydantic.Field(max_length=2)], ["ab"], ["abc"]),
    (dict[str, int], [{"a": 1}], [{"a": "b"}]),
    (tuple[int, str], [[1, "a"]], [[1], [1, "a", 2]]),
    (Colour, ["red"], ["green"]),
    (Person, [{"name": "a", "age": 1, "friends": [{"name": "b"}]}], [{"age": 1}, {"name": "a", "age": -1}]),
    (int | Person, [1, {"name": "a"}], ["a", {}]),
    (Point, [{"x": 1.5}], [{"y": 1}]),
    (Movie, [{"title": "a", "year": 1}], [{"title": "a"}]),
    (Pair, [[1, "a"]], [["a", 1]]),
    (pydantic.TypeAdapter(list[Person]), [[{"name": "a"}]], [{}]),
    (search, [{"query": "a"}, {"query": "a", "limit": 50, "tags": ["b"]}], [{}, {"query": "a", "limit": 51}]),
    (Shop().order, [{"item": "a"}], [{"self": 1, "item": "a"}]),
    (Shop.close, [{"hard": True}], [{}]),
    (lambda a, b=1: a + b, [{"a": None}], [{"b": 1}]),
]


class TestTypes:
    @pytest.mark.parametrize(
        ("annotation", "valid", "invalid"), TYPES, ids=lambda value: getattr(value, "__name__", str(value))[:40]
    )
    def test_pydantic_describes_them(self, annotation: Any, valid: list[Any], invalid: list[Any]) -> None:
        definition = JsonSchema(annotation)
        validator = Draft202012Validator(json.loads(definition.text))
        assert all(validator.is_valid(value) for value in valid)
        assert not any(validator.is_valid(value) for value in invalid)
        assert as_definition(annotation) == definition

    def positional_only(a: int, /) -> None: ...  # type: ignore[misc]

    @pytest.mark.parametrize(
        ("annotation", "message"),
        [
            (positional_only, "parameter 'a' of .* cannot be passed by name"),
            (lambda *values: values, "parameter 'values' of"),
            (Shop, "no JSON schema for Shop"),
            (Callable[[int], int], "no JSON schema for"),
            (Shop(), "no JSON schema for"),
            (list["Absent"], "no JSON schema for"),  # type: ignore[name-defined] # noqa: F821
        ],
    )
    def test_what_pydantic_cannot_describe(self, annotation: Any, message: str) -> None:
        with pytest.raises(DefinitionError, match=message):
            JsonSchema(annotation)

    def test_without_pydantic(self) -> None:
        script = (
            "import sys; sys.modules['pydantic'] = None\n"
            "import structgen as sg\n"
            "print(sg.JsonSchema({'type': 'object'}).text)\n"
            "try: sg.JsonSchema(list[int])\n"
            "except sg.Error as error: print(error)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [
            '{"type":"object"}',
            "the schema of list[int] takes Pydantic, which is not installed. "
            "pip install structgen[pydantic], or pass the schema itself.",
        ]


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "gap", "indent"),
        [
            ({}, " ?", None),
            ({"whitespace": "compact"}, "", None),
            ({"whitespace": "any"}, r"[ \t\n\r]{0,20}", None),
            ({"whitespace": "any", "max_whitespace": 3}, r"[ \t\n\r]{0,3}", None),
            ({"whitespace": "any", "max_whitespace": None}, r"[ \t\n\r]*", None),
            ({"whitespace": r"\n{bound}?"}, r"\n{bound}?", None),
            ({"whitespace": 2}, None, 2),
            ({"whitespace": 0}, None, 0),
        ],
    )
    def test_whitespace(self, options: dict[str, Any], gap: str | None, indent: int | None) -> None:
        definition = JsonSchema(True, **options)
        assert (definition.gap, definition.indent) == (gap, indent)

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("whitespace", "sinlge"),
            ("whitespace", True),
            ("whitespace", None),
            ("whitespace", -1),
            ("whitespace", 1000),
            ("max_whitespace", -1),
            ("max_whitespace", 1.5),
            ("max_whitespace", True),
            ("property_order", "sorted"),
            ("escapes", None),
            ("additional_properties", "no"),
            ("additional_properties", 0),
            ("additional_properties", None),
            ("lenient", 1),
            ("lenient", None),
        ],
    )
    def test_an_option_without_meaning_is_named(self, option: str, value: Any) -> None:
        with pytest.raises(DefinitionError) as caught:
            JsonSchema(True, **{option: value})
        assert caught.value.what == f"{option} is {value!r}"
        assert caught.value.remedy

    def test_canonical_says_what_the_compiler_heeds(self) -> None:
        different: list[dict[str, Any]] = [
            {},
            {"whitespace": "compact"},
            {"whitespace": "any"},
            {"whitespace": "any", "max_whitespace": 3},
            {"whitespace": 2},
            {"property_order": "any"},
            {"escapes": "ascii"},
            {"escapes": "any"},
            {"additional_properties": False},
            {"lenient": True},
        ]
        canonical = [JsonSchema(True, **options).canonical() for options in different]
        assert len(set(canonical)) == len(different)
        assert all(json.loads(text)[0] == "json_schema" for text in canonical)
        assert JsonSchema(True, max_whitespace=3).canonical() == canonical[0]
        assert JsonSchema(True, whitespace=" ?").canonical() == canonical[0]

    def test_repr_says_what_was_given(self) -> None:
        definition = JsonSchema({"type": "null"}, whitespace=2, lenient=True)
        assert repr(definition) == """JsonSchema('{"type":"null"}', whitespace=2, lenient=True)"""
        assert eval(repr(definition)) == definition


class TestWhatCompileTakes:
    def test_definitions_stay_themselves(self) -> None:
        for definition in (Regex("a"), JsonSchema(True)):
            assert as_definition(definition) is definition

    def test_dicts_are_schemas(self) -> None:
        assert as_definition({"type": "null"}) == JsonSchema({"type": "null"})

    @pytest.mark.parametrize("value", ["a+", '{"type": "null"}', b"a", 3, True, None, Path("schema.json")])
    def test_what_could_be_several_things_is_refused(self, value: Any) -> None:
        with pytest.raises(DefinitionError, match="cannot compile a") as caught:
            as_definition(value)
        assert "Regex(...)" in caught.value.remedy
        assert "JsonSchema(...)" in caught.value.remedy
