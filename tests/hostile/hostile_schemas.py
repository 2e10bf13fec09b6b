"""Schemas that a stranger might send to make a compiler hang, crash or eat the memory, each made when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: More than any text can have of anything.
_HUGE = 10**18


def nested(wrap: Callable[[Any], Any], levels: int, inner: Any) -> Any:
    """``inner``, wrapped so many times."""
    for _ in range(levels):
        inner = wrap(inner)
    return inner


def tower(level: Callable[[dict[str, str], int], Any], levels: int, last: Any) -> dict[str, Any]:
    """Definitions that each refer to the next one."""
    defs = {f"d{i}": level({"$ref": f"#/$defs/d{i + 1}"}, i) for i in range(levels)}
    return {"$defs": {**defs, f"d{levels}": last}, "$ref": "#/$defs/d0"}


def all_of(schemas: Iterator[Any], **others: Any) -> dict[str, Any]:
    """The conjunction of schemas."""
    return {**others, "allOf": list(schemas)}


def has(*names: str) -> dict[str, Any]:
    """Objects with members of these names."""
    return {"type": "object", "required": list(names)}


# -- combinations ---------------------------------------------------------------------------------------------

#: These compile: what they repeat is one thing, or they are merely large.
HARMLESS: dict[str, Callable[[], Any]] = {
    "different strings": lambda: {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
    "a tower of allOf twice the same": lambda: tower(lambda next_, i: {"allOf": [next_] * 2}, 60, {"type": "string"}),
    "a tower of anyOf twice the same": lambda: tower(lambda next_, i: {"anyOf": [next_] * 2}, 60, {"type": "string"}),
    "a tower of pairs of objects": lambda: tower(
        lambda next_, i: {
            "anyOf": [
                {"type": "object", "properties": {"a": next_}},
                {"type": "object", "properties": {"b": next_}, "required": ["b"]},
            ]
        },
        60,
        {"type": "string"},
    ),
    "2,000 references in a row": lambda: tower(lambda next_, i: {"allOf": [next_]}, 2_000, {"type": "string"}),
    "900 levels of items": lambda: nested(lambda inner: {"items": inner}, 900, {}),
    "900 levels of not": lambda: nested(lambda inner: {"not": inner}, 900, {"type": "string"}),
    "300 levels of allOf, as text": lambda: '{"allOf":[' * 300 + "{}" + "]}" * 300,
    "a constant of 400 levels": lambda: {"const": nested(lambda inner: [inner], 400, 1)},
    "an enum of 100,000 strings": lambda: {"enum": [f"item-{i:08d}" for i in range(100_000)]},
    "5,000 strings of which exactly one": lambda: {"oneOf": [{"const": str(i)} for i in range(5_000)]},
    "50,000 alternatives": lambda: {"anyOf": [{"const": str(i)} for i in range(50_000)]},
    "a description of 4 MB": lambda: {"type": "string", "description": "\0é\U0010ffffx" * 1_000_000},
    "a long string of escapes": lambda: '{"title": "' + "\\u0041" * 500_000 + '"}',
    "10,000 definitions that nobody uses": lambda: {
        "$defs": {f"d{i}": {"pattern": "^a+$"} for i in range(10_000)},
        "type": "null",
    },
    "references all over": lambda: {
        "$defs": {
            f"d{i}": {"type": "array", "prefixItems": [{"anyOf": [{"$ref": f"#/$defs/d{j}"} for j in range(30)]}]}
            for i in range(30)
        },
        "$ref": "#/$defs/d0",
    },
    "a class of 10,000 characters, again and again": lambda: {
        "type": "string",
        "pattern": "[" + "".join(chr(0x4E00 + 2 * i) for i in range(10_000)) * 10 + "]",
    },
    "bounds beyond any text": lambda: {
        "maxLength": _HUGE,
        "maxItems": _HUGE,
        "maxProperties": _HUGE,
        "pattern": "^(ab)*$",
    },
    "nested counts": lambda: {"type": "string", "pattern": "(" * 4 + "a" + "{1,1000})" * 4 + "b"},
    "300 negations": lambda: nested(
        lambda inner: {"not": {"type": "object", "properties": {"a": inner}, "required": ["a"]}}, 300, {}
    ),
    "forty objects of which exactly one": lambda: {"oneOf": [has(f"a{i}") for i in range(40)]},
    "a chain of 80 required names": lambda: {
        "type": "object",
        "dependentRequired": {f"a{i}": [f"a{i + 1}"] for i in range(80)},
    },
    "a reference to itself below not": lambda: {
        "type": ["array", "object"],
        "items": {"not": {"$ref": "#"}},
        "contains": {"$ref": "#"},
    },
    "keys equal after escapes": lambda: '{"properties": {"a": {"type": "string"}, "\\u0061": {"type": "null"}}}',
}

#: These are refused, by the budget or as unsupported.
REFUSED: dict[str, Callable[[], Any]] = {
    "2^20 alternatives of allOf": lambda: '{"allOf":[' + ",".join(["{}"] * (1 << 20)) + "]}",
    "2^20 alternatives of anyOf": lambda: '{"anyOf":[' + ",".join(['{"const":1}'] * (1 << 20)) + "]}",
    "2^20 pairs of objects": lambda: all_of({"anyOf": [has(f"a{i}"), has(f"b{i}")]} for i in range(20)),
    "2^1000 pairs of objects": lambda: all_of({"anyOf": [has(f"a{i}"), has(f"b{i}")]} for i in range(1000)),
    "2^20 pairs of items": lambda: all_of(
        {"anyOf": [{"contains": {"const": i}}, {"contains": {"const": str(i)}}]} for i in range(20)
    ),
    "2^12 sets of counted items": lambda: all_of(({"contains": {"pattern": f"a{i}"}} for i in range(12)), type="array"),
    "products of patterns": lambda: all_of(
        ({"pattern": f"{c}.{{1{i}}}{c}"} for i, c in enumerate("abcdefgh")), type="string"
    ),
    "exponential subsets": lambda: {"type": "string", "pattern": "^(a|b)*a(a|b){60}$"},
    "nested counts of names": lambda: {"patternProperties": {"^(((a{1,999}b){1,999}c){1,999}d)$": {"type": "null"}}},
    "a tower of look-ahead": lambda: {"type": "string", "pattern": "(?=" * 40 + "a" + ")" * 40 + "a"},
    "100,000 groups": lambda: {"type": "string", "pattern": "(" * 100_000 + "a" + ")" * 100_000},
    "a pattern of 1 MB": lambda: {"type": "string", "pattern": "^" + "a?" * 500_000 + "$"},
    "a long prefix and a bound": lambda: {"type": "string", "pattern": "(?<=a{1000})b{1000}", "maxLength": 100_000},
    "a format of 5,000 characters": lambda: {
        "type": "string",
        "format": "uri",
        "minLength": 5_000,
        "maxLength": 10_000,
    },
    "20 overlapping names": lambda: {
        "type": "object",
        "patternProperties": {f"{c}.{{{i}}}{c}": {"minLength": i} for i, c in enumerate("abcdefghijklmnopqrst")},
    },
    "25 conditions": lambda: all_of(
        {"if": has(f"a{i}"), "then": has(f"b{i}"), "else": has(f"c{i}")} for i in range(25)
    ),
    "30 dependent schemas": lambda: {
        "type": "object",
        "dependentSchemas": {f"a{i}": {**has(f"b{i}"), "properties": {f"c{i}": {"const": i}}} for i in range(30)},
    },
    "20 alternatives that evaluate": lambda: {
        "anyOf": [{"type": "object", "properties": {f"a{i}": {"type": "string"}}} for i in range(20)],
        "unevaluatedProperties": False,
    },
    "4,000 names of 10^18 members": lambda: {
        "minProperties": _HUGE,
        "type": "object",
        "properties": {f"a{i}": True for i in range(4_000)},
    },
    "10^18 items": lambda: {"type": "array", "minItems": _HUGE},
    "10^18 items of a kind": lambda: {"type": "array", "contains": {"const": 1}, "minContains": _HUGE},
    "10^18 characters": lambda: {"type": "string", "minLength": _HUGE},
    "10^18 characters of a pattern": lambda: {"type": "string", "minLength": _HUGE, "pattern": "^(ab)*$"},
    "10,000 required names": lambda: all_of(has(f"a{i}") for i in range(10_000)),
    "10,000 intervals": lambda: {
        "type": "number",
        "anyOf": [{"minimum": 2 * i, "maximum": 2 * i + 1} for i in range(10_000)],
    },
    "1,000 divisors": lambda: all_of(({"multipleOf": i} for i in range(1, 1001)), type="integer"),
    "a large prime": lambda: {"multipleOf": _HUGE + 9, "type": "number"},
    "a key of 1 MB": lambda: {"type": "object", "properties": {"\U0010ffff\0" * 250_000: {"type": "string"}}},
    "a constant of 1 MB": lambda: {"const": "a" * 1_000_000},
    "200,000 members": lambda: {"type": "object", "properties": {f"{i}": {} for i in range(200_000)}},
    "100,000 items in their places": lambda: {"type": "array", "prefixItems": [{"minimum": i} for i in range(100_000)]},
    "many dynamic anchors": lambda: {
        "$id": "http://x/root",
        "$ref": "r0",
        "$defs": {
            f"r{i}": {
                "$id": f"r{i}",
                "$dynamicAnchor": "n",
                "properties": {
                    "a": {"$dynamicRef": "#n"},
                    "b": {"$ref": f"r{(i * 3 + 1) % 40}"},
                    "c": {"$ref": f"r{(i * 5 + 2) % 40}"},
                },
            }
            for i in range(40)
        },
    },
    "10,000 levels of items": lambda: nested(lambda inner: {"items": inner}, 10_000, {}),
    "10,000 levels of not, as text": lambda: '{"not":' * 10_000 + "{}" + "}" * 10_000,
    "10,000 levels of members": lambda: nested(lambda inner: {**has("a"), "properties": {"a": inner}}, 10_000, {}),
    "a constant of 300,000 levels": lambda: {"const": nested(lambda inner: [inner], 300_000, 1)},
    "four million brackets": lambda: "[" * 4_000_000,
    "2^60 parts in 60 lists": lambda: {"const": nested(lambda inner: [inner, inner], 60, 1)},
    "2^60 parts in 60 objects": lambda: nested(lambda inner: {"allOf": [inner, inner]}, 60, {}),
    "2^20 times a long string": lambda: {"enum": ["x" * 1_000_000] * 1_000},
    "an integer of a million digits": lambda: {"minimum": 1 << 3_400_000},
}

#: The largest of all, for which the memory is measured.
LARGEST = (
    "2^20 alternatives of anyOf",
    "2^60 parts in 60 objects",
    "2^20 times a long string",
    "a long prefix and a bound",
    "a format of 5,000 characters",
    "a pattern of 1 MB",
)
