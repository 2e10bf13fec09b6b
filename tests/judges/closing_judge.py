"""Whether values are closed, by the words of the guide alone: schemas as they are written, values as `json.loads` has
them, validity by the package jsonschema, and no code of the project.

At a place, a *way* to take its schema has one branch of each ``anyOf``. A value is closed there if, by some way in
which it is valid, it has no member but those that the schemas which apply to it list, or none of them lists any; and
its own members and items are closed. ``not``, ``if``, ``propertyNames`` and the like are looked at for validity only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import pytest

from judges.formats import FORMATS
from judges.json_judge import exact_arithmetic

jsonschema = pytest.importorskip("jsonschema", reason="the judge is not installed: pip install 'jsonschema[format]'")

_OPENING = ("additionalProperties", "unevaluatedProperties")


class Way(NamedTuple):
    """One way to take a schema: the names that are listed, whether all are, and whether there is any list."""

    names: frozenset[str] = frozenset()
    everything: bool = False
    lists: bool = False

    def __add__(self, other: object) -> Way:
        assert isinstance(other, Way)
        return Way(self.names | other.names, self.everything or other.everything, self.lists or other.lists)


class ClosingJudge:
    """Judges values under a schema of Draft 2020-12 whose references lead to its ``$defs``.

    ``is_exact``: what is left of unevaluated members and items is no matter of this judge, so that not all values
    that it calls closed need be let through.
    """

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self.is_exact = "unevaluated" not in str(schema)
        self._definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
        self._validators: dict[int, Any] = {}  # by the identity of their schemas, which the root keeps

    def is_valid(self, value: Any, schema: Any = None) -> bool:
        """Whether a value is valid as the schema is written, or as a part of it is."""
        schema = self._root if schema is None else schema
        if isinstance(schema, bool):
            return schema
        if id(schema) not in self._validators:
            whole = {**schema, "$defs": self._definitions}
            self._validators[id(schema)] = jsonschema.Draft202012Validator(whole, format_checker=FORMATS)
        return bool(self._validators[id(schema)].is_valid(value))

    def is_closed(self, value: Any, schema: Any = None) -> bool:
        """Whether a valid value is closed."""
        schema = self._referred(self._root if schema is None else schema)
        if isinstance(schema, bool):
            return schema
        ways = list(self._ways(schema, value))
        if not isinstance(value, dict) or any(keyword in schema for keyword in _OPENING):
            return bool(ways)
        return any(way.everything or not way.lists or way.names >= value.keys() for way in ways)

    def _referred(self, schema: Any) -> Any:
        """The schema that a reference which stands alone leads to."""
        seen = []
        while isinstance(schema, dict) and schema.keys() - {"$defs"} == {"$ref"} and schema not in seen:
            seen.append(schema)
            schema = self._target(schema["$ref"])
        return schema

    def _target(self, reference: str) -> Any:
        return self._definitions[reference.removeprefix("#/$defs/")]

    # -- in one place --------------------------------------------------------------------------------------

    def _ways(self, schema: Any, value: Any) -> Iterator[Way]:
        """The ways in which a value is valid, and closed further down."""
        if isinstance(schema, bool):
            yield from [Way()] if schema else []
            return
        if not self.is_valid(value, schema) or not self._is_closed_below(schema, value):
            return
        applied = [*schema.get("allOf", ()), *([self._target(schema["$ref"])] if "$ref" in schema else [])]
        parts = [[_own(schema, value)], *(list(self._ways(each, value)) for each in applied)]
        if "anyOf" in schema:
            parts.append(list(self._any_of(schema["anyOf"], value)))
        if "oneOf" in schema:
            lists = Way(lists=any(map(self._may_list, schema["oneOf"])))
            parts.append([way + lists for each in schema["oneOf"] for way in self._ways(each, value)])
        for name, each in schema.get("dependentSchemas", {}).items():
            parts.append(self._conditional(each, value, isinstance(value, dict) and name in value))
        if "if" in schema:
            holds = self.is_valid(value, schema["if"])
            parts.append([self._evaluated(schema["if"], value)] if holds else [Way()])
            parts.append(self._conditional(schema.get("then", True), value, holds))
            parts.append(self._conditional(schema.get("else", True), value, not holds))
        for chosen in product(*parts):
            yield sum(chosen, Way())

    def _conditional(self, schema: Any, value: Any, applies: bool) -> list[Way]:
        return list(self._ways(schema, value)) if applies else [Way(lists=not self._may_be_open(schema))]

    def _any_of(self, branches: list[Any], value: Any) -> Iterator[Way]:
        """One branch that lists members, or any number of those that do not."""
        listing = [each for each in branches if self._may_list(each)]
        yield from chain.from_iterable(self._ways(each, value) for each in listing)
        others = [way for each in branches if each not in listing for way in self._ways(each, value)]
        for count in range(len(others)):
            yield from (sum(some, Way()) for some in combinations(others, count + 1))

    def _evaluated(self, schema: Any, value: Any) -> Way:
        """The names that a condition which holds has evaluated; they do not make it a list."""
        if isinstance(schema, bool) or not self.is_valid(value, schema):
            return Way()
        below = [each for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword, ())]
        below += [self._target(schema["$ref"])] if "$ref" in schema else []
        if isinstance(value, dict):
            below += [each for name, each in schema.get("dependentSchemas", {}).items() if name in value]
        if "if" in schema:
            below += [schema["if"], schema.get("then" if self.is_valid(value, schema["if"]) else "else", True)]
        found = sum((self._evaluated(each, value) for each in below), _own(schema, value))
        return found._replace(lists=False)

    def _may_list(self, schema: Any) -> bool:
        """Whether some way lists members."""
        if isinstance(schema, bool):
            return False
        return _lists(schema) or any(map(self._may_list, self._in_place(schema)))

    def _may_be_open(self, schema: Any) -> bool:
        """Whether some way lists no members."""
        if isinstance(schema, bool):
            return True
        branches = schema.get("anyOf")
        rest = {keyword: value for keyword, value in schema.items() if keyword not in ("anyOf", "oneOf")}
        return (
            not _lists(schema)
            and all(map(self._may_be_open, self._in_place(rest)))
            and (branches is None or any(map(self._may_be_open, branches)))
            and not any(map(self._may_list, schema.get("oneOf", ())))
        )

    def _in_place(self, schema: dict[str, Any]) -> list[Any]:
        found = [each for keyword in ("allOf", "anyOf", "oneOf") for each in schema.get(keyword, ())]
        found += [self._target(schema["$ref"])] if "$ref" in schema else []
        found += [schema[keyword] for keyword in ("then", "else") if keyword in schema and "if" in schema]
        return [*found, *schema.get("dependentSchemas", {}).values()]

    # -- members and items ---------------------------------------------------------------------------------

    def _is_closed_below(self, schema: dict[str, Any], value: Any) -> bool:
        """Whether the members and items of a value are closed; those are left out that are unevaluated elsewhere."""
        if isinstance(value, dict):
            return all(self.is_closed(member, each) for name, member in value.items() for each in _member(schema, name))
        if not isinstance(value, list):
            return True
        prefix = schema.get("prefixItems", [])
        below = [*zip(value, prefix, strict=False)]
        below += [(item, schema.get("items", True)) for item in value[len(prefix) :]]
        if not all(self.is_closed(item, each) for item, each in below):
            return False
        wanted = schema.get("minContains", 1) if "contains" in schema else 0
        return sum(self.is_closed(item, schema["contains"]) for item in value if wanted) >= wanted


def _lists(schema: dict[str, Any]) -> bool:
    return "properties" in schema or "patternProperties" in schema


def _own(schema: dict[str, Any], value: Any) -> Way:
    """The members that a schema itself lists."""
    names = value if isinstance(value, dict) else ()
    patterns = schema.get("patternProperties", {})
    listed = {n for n in names if n in schema.get("properties", {}) or any(re.search(p, n) for p in patterns)}
    return Way(frozenset(listed), any(keyword in schema for keyword in _OPENING), _lists(schema))


def _member(schema: dict[str, Any], name: str) -> list[Any]:
    """What a schema says of a member."""
    found = [each for pattern, each in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
    found += [schema["properties"][name]] if name in schema.get("properties", {}) else []
    return found or [schema.get("additionalProperties", True)]


def judged(judge: ClosingJudge, value: Any) -> tuple[bool, bool] | None:
    """Whether a value is valid, and closed; None where the judge follows a reference for ever."""
    try:
        with exact_arithmetic():
            is_valid = judge.is_valid(value)
            return is_valid, is_valid and judge.is_closed(value)
    except BaseException as error:  # a panic of the package `rpds`, when Python's stack is at its end
        if isinstance(error, RecursionError) or type(error).__name__ == "PanicException":
            return None
        raise
