"""Random schemas of every keyword, small enough to be wrong about, and values that come near them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "ab", "c", ""])
SMALL = st.integers(0, 3)
NUMBERS = st.sampled_from([-2, -1, 0, 1, 2, 3, 5, 10, 0.5, 1.5, -0.25, 2.0])
STRINGS = st.sampled_from(["", "a", "b", "ab", "aab", "c", "é", "😀", '"', "\\", "\n", "2024-02-29", "127.0.0.1"])
PATTERNS = st.sampled_from(["a", "^a", "b$", "^[ab]*$", "^(?!a)", "\\d", "^.{1,2}$", "a|c"])
FORMATS = st.sampled_from(["date", "ipv4", "uuid", "json-pointer", "no such format"])
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])

_ATOMS = st.none() | st.booleans() | NUMBERS | STRINGS


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4)


#: A schema of the usual keywords.
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 3},
        "age": {"type": "integer", "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}

#: Values of every type, from the same few atoms as the schemas.
VALUES = _ATOMS | _containers(_ATOMS) | _containers(st.recursive(_ATOMS, _containers, max_leaves=4))

_DEFINITIONS = ("x", "y")


def _some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the keywords, each with a value of its own."""
    return st.fixed_dictionaries({}, optional=keywords)


def _scalars() -> st.SearchStrategy[Any]:
    number = _some(
        minimum=NUMBERS, maximum=NUMBERS, exclusiveMinimum=NUMBERS, exclusiveMaximum=NUMBERS,
        multipleOf=st.sampled_from([1, 2, 3, 0.5, 0.3, 5]),
    )  # fmt: skip
    string = _some(minLength=SMALL, maxLength=SMALL, pattern=PATTERNS, format=FORMATS)
    typed = st.fixed_dictionaries({"type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True)})
    listed = st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=4)})
    constant = st.fixed_dictionaries({"const": VALUES})
    return st.one_of(number, string, typed, typed, listed, constant, st.booleans())


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.lists(NAMES, max_size=2, unique=True)
    return _some(
        properties=st.dictionaries(NAMES, inner, max_size=3), required=names, additionalProperties=inner,
        patternProperties=st.dictionaries(PATTERNS, inner, max_size=2), propertyNames=inner,
        minProperties=SMALL, maxProperties=SMALL, dependentRequired=st.dictionaries(NAMES, names, max_size=2),
        dependentSchemas=st.dictionaries(NAMES, inner, max_size=2), unevaluatedProperties=inner,
    )  # fmt: skip


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _some(
        items=inner, prefixItems=st.lists(inner, min_size=1, max_size=2), minItems=SMALL, maxItems=SMALL,
        contains=inner, minContains=SMALL, maxContains=SMALL, uniqueItems=st.booleans(), unevaluatedItems=inner,
    )  # fmt: skip


def _combinations(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    reference = st.sampled_from(_DEFINITIONS).map("#/$defs/{}".format)
    one = {"allOf": several, "anyOf": several, "oneOf": several, "not": inner, "$ref": reference}
    branches = st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner})
    return st.one_of([st.fixed_dictionaries({keyword: value}) for keyword, value in one.items()]) | branches


def _merged(parts: list[Any]) -> Any:
    """One schema that says what all of them say, as far as their keywords differ."""
    dicts = [part for part in parts if isinstance(part, dict)]
    return {key: value for part in dicts for key, value in part.items()} if dicts else parts[0]


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    part = _objects(inner) | _arrays(inner) | _combinations(inner) | _scalars()
    return st.lists(part, min_size=1, max_size=2).map(_merged)


#: Two levels of keywords below the root are enough for any two of them to meet.
_INNER = _scalars() | _composed(_scalars()) | _composed(_composed(_scalars()))
_ROOT = _composed(_INNER) | _composed(_scalars())


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """A schema of Draft 2020-12; references lead to two definitions, which may be recursive."""
    schema = draw(_ROOT)
    if isinstance(schema, bool) or "$ref" not in str(schema):
        return schema
    return {**schema, "$defs": {name: draw(_INNER) for name in _DEFINITIONS}}
