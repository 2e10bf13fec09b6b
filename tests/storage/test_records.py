"""Records as JSON: what is written is read exactly, and what a stranger changed is refused, by the field's name."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from structgen.errors import FormatError
from structgen.storage import records


@dataclass(frozen=True)
class Leaf:
    """Of every kind of field."""

    data: bytes | None
    kind: Literal["a", "b"]
    share: Annotated[float, (0.0, 1.0)]
    number: int = 7
    flag: bool = False


@dataclass(frozen=True)
class Branch:
    """Records in records."""

    name: str
    leaves: tuple[Leaf, ...] = ()
    other: Branch | None = None
    seconds: float = 0.0


LEAF = Leaf(b"\x00\xff", "b", 0.25, 2**31 - 1, True)
BRANCH = Branch("é\ud800", (LEAF, Leaf(None, "a", 1.0)), Branch("below"), 1e-9)


def nested(depth: int) -> dict[str, Any]:
    return {"name": "x"} if depth == 1 else {"name": "x", "other": nested(depth - 1)}


def test_what_is_written_is_read() -> None:
    data = records.written(BRANCH)
    assert data["leaves"][0] == {"data": "00ff", "kind": "b", "share": 0.25, "number": 2**31 - 1, "flag": True}
    assert records.read(Branch, data, "here") == BRANCH
    for text in (json.dumps(data), json.dumps(data).encode()):
        assert records.read_text(Branch, text, "here") == BRANCH


def test_fields_with_a_default_may_be_missing() -> None:
    assert records.read(Branch, {"name": ""}, "here") == Branch("")
    found = records.read(Leaf, {"data": None, "kind": "a", "share": 1}, "here")
    assert found == Leaf(None, "a", 1.0)
    assert type(found.share) is float


#: Where in a branch, what stands there, and what is said of it.
WRONG: list[tuple[str, Any, str]] = [
    ("name", 5, "a text"), ("name", None, "a text"), ("name", ["x"], "a text"),
    ("leaves", {}, "an array"), ("leaves", None, "an array"), ("leaves", "ab", "an array"),
    ("leaves", [5], "an object"),
    ("leaves", [[]], "an object"), ("other", [], "an object"), ("other", "x", "an object"),
    ("other", False, "an object"),
    ("seconds", "1", "a number"), ("seconds", True, "a number"), ("seconds", None, "a number"),
    ("seconds", float("nan"), "a number"), ("seconds", float("inf"), "a number"), ("seconds", 10**400, "a number"),
    ("seconds", -1e301, "a number"),
    ("leaves/data", 5, "hexadecimal"), ("leaves/data", "0", "hexadecimal"), ("leaves/data", "zz", "hexadecimal"),
    ("leaves/data", ["00"], "hexadecimal"), ("leaves/data", "é", "hexadecimal"),
    ("leaves/kind", "c", "one of a, b"), ("leaves/kind", None, "one of"), ("leaves/kind", ["a"], "one of"),
    ("leaves/kind", {"a": 1}, "one of"),
    ("leaves/share", 1.0000001, "from 0.0 to 1.0"), ("leaves/share", -1, "from 0.0 to 1.0"),
    ("leaves/share", float("nan"), "from 0.0 to 1.0"), ("leaves/share", True, "from 0.0 to 1.0"),
    ("leaves/number", 2**31, "an integer"), ("leaves/number", -1, "an integer"), ("leaves/number", 1.0, "an integer"),
    ("leaves/number", True, "an integer"), ("leaves/number", "1", "an integer"),
    ("leaves/number", None, "an integer"),
    ("leaves/flag", 1, "true or false"), ("leaves/flag", "true", "true or false"),
    ("leaves/flag", None, "true or false"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_values_are_named(number: int) -> None:
    path, value, said = WRONG[number]
    data: Any = records.written(BRANCH)
    *outer, name = path.split("/")
    (data["leaves"][1] if outer else data)[name] = value
    with pytest.raises(FormatError) as raised:
        records.read(Branch, data, "here")
    assert said in raised.value.what
    assert str(raised.value.where).startswith(f"here, /leaves/1/{name}" if outer else f"here, /{name}")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "'name' is missing"),
        ({"name": "x", "leaves": [{"kind": "a", "share": 0}]}, "'data' is missing"),
        ({"name": "x", "extra": 1}, "'extra' is no field of a Branch"),
        ({"name": "x", "leaves": [{"data": None, "kind": "a", "share": 0, "_x": "x"}]}, "'_x' is no field"),
        ([], "an object"), (None, "an object"), (5, "an object"), ("name", "an object"),
    ],
    ids=range(8),
)  # fmt: skip
def test_missing_and_further_fields_are_named(data: Any, said: str) -> None:
    with pytest.raises(FormatError) as raised:
        records.read(Branch, data, "here")
    assert said in raised.value.what


def test_depth_is_bounded() -> None:
    assert records.read(Branch, nested(8), "here").name == "x"
    for depth in (9, 200):
        with pytest.raises(FormatError, match="too deeply"):
            records.read(Branch, nested(depth), "here")
    for text in ("[" * 100_000, '{"name": "x", "other": ' * 100_000, '{"name":' + "[" * 500 + "]" * 500 + "}"):
        with pytest.raises(FormatError):
            records.read_text(Branch, text, "here")


NO_JSON = ["", "{", '{"name": NaN}', '{"name": "x", "seconds": Infinity}', b"\xff\xfe", "1" * 5000, "nul"]


@pytest.mark.parametrize("number", range(len(NO_JSON)))
def test_what_is_no_json_is_refused(number: int) -> None:
    text = NO_JSON[number]
    assert isinstance(text, str | bytes)
    with pytest.raises(FormatError):
        records.read_text(Branch, text, "here")
