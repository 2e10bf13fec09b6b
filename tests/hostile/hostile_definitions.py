"""Definitions that a stranger might send to make a compiler hang, crash or eat the memory, each made when asked for.

Whether one compiles or is refused is not said here: either may be right, as long as it happens within the budget.
`hostile_schemas` has more JSON Schemas, of which that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from string import ascii_lowercase
from typing import Any

import structgen as sg
from hostile import hostile_schemas
from hostile.hostile_schemas import all_of, has, nested, tower

#: More than any text can have of anything.
_HUGE = 10**18


def _words(count: int, letters: int = 12) -> list[str]:
    """Words that have little in common."""
    return [f"{i * 2654435761 % 2**64:x}"[:letters] + str(i) for i in range(count)]


def _string(**keywords: Any) -> dict[str, Any]:
    return {"type": "string", **keywords}


def _object(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


def _array(**keywords: Any) -> dict[str, Any]:
    return {"type": "array", **keywords}


# -- regexes --------------------------------------------------------------------------------------------------

REGEXES: dict[str, Callable[[], str]] = {
    "counts of a letter three ways": lambda: "(?:a{1,50}|a{1,70}|a{1,90}b){1,40}",
    "counts of a letter five ways": lambda: "(?:a{1,50}|a{1,70}|a{1,90}b|a{2,95}c|a{3,97}d){1,60}",
    "200,000 words": lambda: "|".join(_words(200_000)),
    "200,000 short words": lambda: "|".join(map(str, range(200_000))),
    "20,000 words in any case": lambda: "(?i)" + "|".join(_words(20_000)),
    "2,000 words of 500 letters": lambda: "|".join(word * 40 for word in _words(2_000)),
    "2^15 subsets": lambda: "(a|b)*a(a|b){14}",
    "2^15 subsets of any character": lambda: "(.|b)*a.{14}",
    "2^17 subsets": lambda: "(a|b)*a(a|b){16}",
    "2^20 subsets": lambda: "(a|b)*a(a|b){19}",
    "2^15 subsets, thrice": lambda: "(?:(a|b)*a(a|b){14}c){3}",
    "2^15 subsets behind a look-ahead": lambda: "(?=(a|b)*a(a|b){14}$)(a|b)*b(a|b){13}",
    "two look-aheads of 2^12 subsets": lambda: "(?=[ab]*a[ab]{12}$)(?=[ab]*b[ab]{11}$)[ab]+",
    "no look-ahead of 2^13 subsets": lambda: "(?![ab]*a[ab]{12}$)[ab]+",
    "look-behind of 2^13 subsets": lambda: "[ab]+(?<=a[ab]{12})c",
    "twelve look-aheads": lambda: "".join(f"(?=.*{c})" for c in "abcdefghijkl") + ".*",
    "forty look-aheads": lambda: "".join(f"(?!.*{c}{c})" for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN") + ".*",
    "look-around in turns": lambda: "(?:x(?=y)y(?<=xy))+" * 20,
    "word boundaries everywhere": lambda: r"(?:\b\w+\b\s*){1,20}" * 3,
    "200 word boundaries": lambda: r"\b\w\B\w" * 100,
    "look-around in look-around": lambda: "(?=a" * 11 + "b" + ")" * 11 + "a.*",
    "counts in counts": lambda: "((((a{1,30}b?){1,30}c?){1,30}d?){1,30}e?)",
    "counts of nothing": lambda: "(?:(?:(?:a{0,99}){0,99}){0,99}){0,99}",
    "a count of a count": lambda: "(?:a{1,1000}){1,1000}",
    "a million empty groups": lambda: "(?:){1000000}" * 10,
    "nothing, 10^9 times": lambda: "(?:(?:){1000000000}){1000000000}",
    "ten counts of the same": lambda: ".{0,200}" * 10,
    "ten counts with letters between": lambda: "x".join(["[a-z]{0,200}"] * 10),
    "optional letters": lambda: "a?" * 20_000 + "a" * 20_000,
    "optional groups": lambda: "(?:ab?c?)?" * 10_000,
    "stars in a row": lambda: "a*" * 20_000,
    "different stars in a row": lambda: "".join(f"{c}*" for c in ascii_lowercase) * 100,
    "words of words": lambda: r"(?:\w+\s?){1,200}\w+\s?\w*",
    "categories counted": lambda: r"(?:\p{Lu}\p{Ll}{1,20}\s?){1,50}",
    "many categories": lambda: r"[\p{L}\p{N}]{1,500}[^\p{L}]{1,500}" * 4,
    "characters in any case": lambda: "(?i)" + "".join(chr(i) for i in range(0x100, 0x1000) if chr(i).isalpha()),
    "classes of every other character": lambda: "".join(
        "[" + "".join(chr(0x4E00 + 2 * i + k) for i in range(3_000)) + "]*" for k in range(40)
    ),
    "alternatives of classes": lambda: "|".join(f"[{chr(i)}-{chr(i + 500)}]" for i in range(0x1000, 0x5000)),
    "100,000 classes": lambda: r"[\w]" * 100_000,
    "100,000 long classes": lambda: r"[^\W\d_]?" * 20_000,
    "a million letters": lambda: "ab" * 500_000,
    "a million dots": lambda: "." * 1_000_000,
    "100,000 groups": lambda: "(" * 100_000 + "a" + ")" * 100_000,
    "499 groups with stars": lambda: "(" * 499 + "a" + "b?)*" * 499,
    "499 groups with alternatives": lambda: "(?:a|" * 499 + "b" + ")" * 499,
    "499 groups with counts": lambda: "(?:" * 499 + "a" + "){1,2}" * 499,
    "19 groups doubled": lambda: "(?:" * 19 + "a|b" + "){2}" * 19,
    "40 groups doubled": lambda: "(?:" * 40 + "a|b" + "){2}" * 40,
    "a huge count": lambda: "a{1000000000}",
    "a huge count of digits": lambda: "a{" + "9" * 100_000 + "}",
    "huge counts side by side": lambda: "a{1,1000000000}b{1,1000000000}a{5,999999999}",
    "500 counted loops": lambda: "|".join(f"{c}{{1,{100 + i}}}x{i}" for i in range(20) for c in ascii_lowercase),
    "500 loops one behind the other": lambda: "".join(f"[{c}{i}]{{30,{100 + i}}}" for i in range(20) for c in "abcde"),
    "loops that conflict, one by one": lambda: "|".join(f"[a-z]{{30,{40 + i}}}{i}" for i in range(200)),
    "prefixes of prefixes": lambda: "|".join("a" * i + "b" * (400 - i) for i in range(400)),
    "suffixes": lambda: ".*(?:" + "|".join(_words(3_000)) + ")",
    "suffixes of letters": lambda: ".*(?:" + "|".join("a" * i + "b" for i in range(1_000)) + ")",
    "words with anything between": lambda: ".*".join(_words(1_000)),
    "words with little between": lambda: ".{0,30}".join(_words(60)),
    "anything but": lambda: "(?!" + "|".join(_words(3_000)) + ")[a-z0-9]+",
    "anything without": lambda: "(?:(?!" + "|".join(_words(500)) + ")[a-z0-9])+",
    "a permutation": lambda: "".join(f"(?=.*{c})" for c in "abcdefgh") + "[a-h]{8}",
    "thirty alternatives, eight times": lambda: "(?:" + "|".join(_words(30)) + "){8}",
    "three hundred alternatives, a hundred times": lambda: "(?:" + "|".join(_words(300)) + "){0,100}",
    "hex digits in any order": lambda: "".join(f"(?!.*{c}.*{c})" for c in "0123456789abcdef") + "[0-9a-f]{16}",
    "flags in groups": lambda: "(?i:a(?-i:b(?s:.(?x: c ))))" * 5_000,
    "a comment of a megabyte": lambda: "(?#" + "x" * 1_000_000 + ")a",
    "verbose blanks": lambda: "(?x)" + " \n# comment\n" * 100_000 + "a",
    "names of characters": lambda: r"\N{GREEK SMALL LETTER ALPHA}" * 10_000,
    "lines": lambda: "(?m)(?:^.*$\n){1,200}",
    "an anchor in a loop": lambda: "(?:a|^b|c$)*",
    "300 anchors in a loop": lambda: "(?m)(?:" + "|".join(f"^{word}$\n" for word in _words(300)) + ")*",
}

# -- JSON Schemas ---------------------------------------------------------------------------------------------

SCHEMAS: dict[str, Callable[[], Any]] = {
    "two patterns of 2^15 subsets": lambda: all_of(
        ({"pattern": f"^(a|b)*{c}(a|b){{14}}$"} for c in "ab"), type="string"
    ),
    "not a pattern of 2^15 subsets": lambda: _string(**{"not": {"pattern": "^(a|b)*a(a|b){14}$"}}),
    "counts of a letter three ways": lambda: _string(pattern="^(?:a{1,50}|a{1,70}|a{1,90}b){1,40}$"),
    "a pattern of 50,000 words": lambda: _string(pattern="^(" + "|".join(_words(50_000)) + ")$"),
    "a pattern of words, with lengths": lambda: _string(
        pattern=r"^(\w+ ){1,50}\w+$", minLength=100, maxLength=400
    ),
    "a pattern of counts, with lengths": lambda: _string(
        pattern="^([a-z]{1,30} ){1,30}$", minLength=17, maxLength=777
    ),
    "patterns that are searched for": lambda: all_of(({"pattern": word} for word in _words(12)), type="string"),
    "patterns that are not found": lambda: all_of(
        ({"not": {"pattern": word}} for word in _words(300, 4)), type="string"
    ),
    "formats with lengths": lambda: {
        "prefixItems": [
            _string(format=name, minLength=3 + i, maxLength=200 + i)
            for i, name in enumerate(("email", "uri", "regex", "hostname", "date-time", "uri-reference", "iri"))
        ]
    },
    "a regex with lengths": lambda: _string(format="regex", minLength=1_000, maxLength=5_000),
    "formats at once": lambda: all_of(({"format": name} for name in ("email", "uri", "regex")), type="string"),
    "no format": lambda: _string(**{"not": {"anyOf": [{"format": n} for n in ("email", "uri", "regex", "iri")]}}),
    "sixty lengths of objects": lambda: {
        "anyOf": [_object(properties={"a": _string(minLength=i)}, required=["a"]) for i in range(60)]
    },
    "lengths, each by itself": lambda: {"prefixItems": [_string(minLength=i, maxLength=3 * i) for i in range(300)]},
    "lengths, together": lambda: {"anyOf": [_string(minLength=50 * i, maxLength=50 * i + 7) for i in range(1_000)]},
    "no such lengths": lambda: _string(
        **{"not": {"anyOf": [{"minLength": 50 * i, "maxLength": 50 * i + 7} for i in range(300)]}}
    ),
    "an enum of 300,000 numbers": lambda: {"enum": list(range(300_000))},
    "an enum of 100,000 words": lambda: {"enum": _words(100_000)},
    "an enum of 20,000 objects": lambda: {
        "enum": [{"a": i, word: [i, word]} for i, word in enumerate(_words(20_000))]
    },
    "an enum of long words": lambda: {"enum": [word * 500 for word in _words(1_000)]},
    "no enum of 20,000 words": lambda: _string(**{"not": {"enum": _words(20_000)}}),
    "no enum of 20,000 numbers": lambda: {"type": "integer", "not": {"enum": [i * i for i in range(20_000)]}},
    "no enum of objects": lambda: _object(**{"not": {"enum": [{"a": i, "b": {"c": i}} for i in range(200)]}}),
    "an enum under an enum": lambda: all_of({"enum": _words(30_000)[i:]} for i in range(20)),
    "an enum and a pattern": lambda: {"enum": _words(50_000), "pattern": "^[0-9a-f]*7$"},
    "numbers of which exactly one": lambda: {
        "type": "integer",
        "oneOf": [{"minimum": i, "maximum": 3 * i} for i in range(600)],
    },
    "bounds of many digits": lambda: {"type": "number", "minimum": 1 << 3_000, "maximum": (1 << 3_000) * 3 + 1},
    "an integer of 20,000 digits": lambda: '{"type": "integer", "minimum": ' + "7" * 19_000 + "}",
    "a fraction of 20,000 digits": lambda: '{"type": "number", "maximum": 0.' + "7" * 19_000 + "}",
    "a divisor of many digits": lambda: '{"type": "number", "multipleOf": 0.' + "0" * 300 + "7}",
    "a divisor of 19,000 digits": lambda: '{"type": "integer", "multipleOf": ' + "7" * 19_000 + "}",
    "a divisor of 100 digits and bounds": lambda: {
        "type": "integer",
        "multipleOf": 10**100 + 7,
        "minimum": 10**103,
        "maximum": 3 * 10**103,
    },
    "a divisor of 99,991": lambda: {"type": "integer", "multipleOf": 99_991},
    "a divisor of 99,991, with bounds": lambda: {
        "type": "number",
        "multipleOf": 99_991,
        "minimum": -(10**30) + 1,
        "maximum": 10**31 + 7,
    },
    "divisors, each by itself": lambda: {"prefixItems": [{"type": "number", "multipleOf": i} for i in range(2, 200)]},
    "divisors of each other": lambda: all_of(({"multipleOf": p} for p in (2, 3, 5, 7, 11, 13)), type="number"),
    "not these divisors": lambda: all_of(({"not": {"multipleOf": p}} for p in (2, 3, 5, 7, 11, 13)), type="integer"),
    "exponents": lambda: '{"type": "number", "minimum": 1e-5000, "maximum": 1e5000, "multipleOf": 1e-5000}',
    "numbers with exponents": lambda: {"type": "number", "enum": [float(f"{i}e{i - 300}") for i in range(600)]},
    "10,000 constants": lambda: {"anyOf": [{"const": i * 1_000_003} for i in range(10_000)]},
    "10,000 arrays": lambda: {"anyOf": [{"const": [i, str(i), None]} for i in range(10_000)]},
    "400 levels of items": lambda: nested(lambda inner: _array(items=inner, minItems=1), 400, {"type": "null"}),
    "100,000 levels of anyOf": lambda: nested(lambda inner: {"anyOf": [inner, {"type": "null"}]}, 100_000, {}),
    "100,000 levels of items, as text": lambda: '{"items":' * 100_000 + "{}" + "}" * 100_000,
    "100,000 references in a row": lambda: tower(lambda next_, i: next_, 100_000, {"type": "null"}),
    "100,000 members, each in the next": lambda: tower(
        lambda next_, i: _object(properties={"a": next_}, required=["a"]), 100_000, {"type": "null"}
    ),
    "400 references to all": lambda: {
        "$defs": {
            f"d{i}": _object(properties={f"p{j}": {"$ref": f"#/$defs/d{j}"} for j in range(100)}) for i in range(100)
        },
        "$ref": "#/$defs/d0",
    },
    "references to all, in anyOf": lambda: {
        "$defs": {
            f"d{i}": {"anyOf": [_array(items={"$ref": f"#/$defs/d{j}"}, minItems=i) for j in range(40)]}
            for i in range(40)
        },
        "$ref": "#/$defs/d0",
    },
    "references to all, in allOf": lambda: {
        "$defs": {
            f"d{i}": _object(
                properties={"a": {"allOf": [{"$ref": f"#/$defs/d{j}"} for j in range(i + 1, 26)]}, f"b{i}": {}}
            )
            for i in range(25)
        },
        "$ref": "#/$defs/d0",
    },
    "conjunctions of recursions": lambda: {
        "$defs": {
            f"d{i}": _object(properties={"a": {"$ref": f"#/$defs/d{(2 * i + 1) % 9}"}, f"b{i}": {}}) for i in range(9)
        },
        "allOf": [{"$ref": f"#/$defs/d{i}"} for i in range(9)],
    },
    "recursions of coprime lengths": lambda: {
        "$defs": {
            f"d{p}x{i}": _array(items={"$ref": f"#/$defs/d{p}x{(i + 1) % p}"}, maxItems=p + i)
            for p in (2, 3, 5, 7, 11)
            for i in range(p)
        },
        "allOf": [{"$ref": f"#/$defs/d{p}x0"} for p in (2, 3, 5, 7, 11)],
    },
    "not a recursion": lambda: {
        "$defs": {
            "t": _object(properties={"a": {"$ref": "#/$defs/t"}, "b": {"type": "null"}}, additionalProperties=False)
        },
        "type": "object",
        "not": {"$ref": "#/$defs/t"},
    },
    "dynamic references": lambda: {
        "$dynamicAnchor": "n",
        "$defs": {
            f"r{i}": {"$id": f"r{i}", "$dynamicAnchor": "n", **_array(items={"$dynamicRef": "#n"}, minItems=i)}
            for i in range(100)
        },
        "anyOf": [{"$ref": f"r{i}"} for i in range(100)],
    },
    "allOf of anyOf": lambda: all_of(
        {"anyOf": [{**has(f"p{i}"), "properties": {f"p{i}": {"const": j}}} for j in range(6)]} for i in range(8)
    ),
    "allOf of anyOf of strings": lambda: all_of(
        ({"anyOf": [{"pattern": f"{c}{i}"} for c in "abcdef"]} for i in range(9)), type="string"
    ),
    "allOf of anyOf of numbers": lambda: all_of(
        ({"anyOf": [{"multipleOf": p}, {"minimum": 7**p}]} for p in range(2, 60)), type="integer"
    ),
    "oneOf of oneOf": lambda: nested(
        lambda inner: {"oneOf": [inner, {"allOf": [inner, has("x")]}, has("y")]}, 12, has("z")
    ),
    "oneOf of a hundred objects": lambda: {
        "oneOf": [_object(properties={f"p{j}": {"const": i * j} for j in range(i)}) for i in range(100)]
    },
    "oneOf of open objects": lambda: {"oneOf": [_object(properties={f"p{i}": _string()}) for i in range(30)]},
    "oneOf of arrays": lambda: {"oneOf": [_array(items=_string(minLength=i), minItems=i) for i in range(30)]},
    "not large things": lambda: {
        "not": {"anyOf": [_object(properties={f"p{i}": {"enum": _words(50)}}, required=["k"]) for i in range(25)]}
    },
    "not not not": lambda: nested(lambda inner: {"not": {"allOf": [inner, has("x"), has("y")]}}, 15, has("z")),
    "conditions in conditions": lambda: nested(
        lambda inner: {"if": has("a"), "then": inner, "else": {"if": inner, "then": has("b"), "else": has("c")}},
        12,
        has("z"),
    ),
    "12 conditions on values": lambda: all_of(
        (
            {"if": {"properties": {f"k{i}": {"const": i}}}, "then": {"properties": {f"v{i}": {"type": "null"}}}}
            for i in range(12)
        ),
        type="object",
    ),
    "60 conditions on one member": lambda: all_of(
        (
            {
                "if": {"properties": {"kind": {"const": f"k{i}"}}, "required": ["kind"]},
                "then": {"properties": {"value": {"minLength": i, "maxLength": 100 + i}}},
            }
            for i in range(60)
        ),
        type="object",
        properties={"kind": {"enum": [f"k{i}" for i in range(60)]}, "value": _string()},
        required=["kind"],
    ),
    "names of 12 patterns": lambda: _object(
        patternProperties={f"{c}.*{chr(ord(c) + 12)}": {"minimum": i} for i, c in enumerate("abcdefghijkl")}
    ),
    "names of patterns and lengths": lambda: _object(
        patternProperties={f"^.{{{i},{5 * i}}}$": {"type": ["string", "null"], "maxLength": i} for i in range(1, 40)}
    ),
    "names of a pattern of 2^13 subsets": lambda: _object(
        patternProperties={"^(a|b)*a(a|b){12}$": {}}, minProperties=3
    ),
    "names without patterns": lambda: _object(
        patternProperties={f"^{word}": False for word in _words(2_000)}, propertyNames={"pattern": "^[0-9a-f]+$"}
    ),
    "names of an enum": lambda: _object(propertyNames={"enum": _words(3_000)}),
    "names of a length": lambda: _object(propertyNames={"minLength": 100, "maxLength": 2_000}, minProperties=50),
    "20,000 members": lambda: _object(properties={word: _string() for word in _words(20_000)}),
    "20,000 required members": lambda: _object(
        properties={word: _string() for word in _words(20_000)}, required=_words(20_000)
    ),
    "2,000 members, closed": lambda: _object(
        properties={word: {"type": "integer", "minimum": i} for i, word in enumerate(_words(2_000))},
        additionalProperties=False,
        minProperties=1_000,
    ),
    "3,000 members, at least 1,500": lambda: _object(
        properties={f"m{i}": {} for i in range(3_000)}, minProperties=1_500, maxProperties=1_700
    ),
    "a name of 100,000 letters": lambda: has("x" * 100_000),
    "1,000 names of 1,000 letters": lambda: _object(properties={word * 70: {} for word in _words(1_000)}),
    "18 required of others": lambda: _object(
        dependentRequired={f"a{i}": [f"a{(i * 7 + 3) % 18}", f"a{(i * 5 + 1) % 18}"] for i in range(18)}
    ),
    "16 dependent schemas": lambda: _object(
        dependentSchemas={f"a{i}": {"properties": {f"a{(i + 1) % 16}": {"const": i}}} for i in range(16)}
    ),
    "unevaluated under anyOf": lambda: {
        "anyOf": [_object(properties={f"a{i}": {}, "k": {"const": i}}, required=["k"]) for i in range(12)],
        "unevaluatedProperties": {"type": "null"},
    },
    "unevaluated under allOf of anyOf": lambda: all_of(
        ({"anyOf": [{"properties": {f"a{i}": {"const": 1}}}, {"properties": {f"b{i}": {}}}]} for i in range(6)),
        type="object",
        unevaluatedProperties=False,
    ),
    "unevaluated items": lambda: {
        "type": "array",
        "anyOf": [{"prefixItems": [{"const": j} for j in range(i)]} for i in range(20)],
        "unevaluatedItems": False,
    },
    "unevaluated, contained": lambda: _array(
        allOf=[{"contains": {"const": i}} for i in range(8)], unevaluatedItems={"type": "string"}
    ),
    "unevaluated in unevaluated": lambda: nested(
        lambda inner: _object(anyOf=[{"properties": {"a": inner}}, has("b")], unevaluatedProperties=inner), 9, {}
    ),
    "different items": lambda: _array(items={"enum": _words(18)}, uniqueItems=True),
    "different items, many": lambda: _array(items={"enum": _words(300)}, uniqueItems=True, maxItems=100),
    "different objects": lambda: _array(
        items=_object(properties={"a": {"type": "boolean"}, "b": {"enum": [1, 2, 3]}}, additionalProperties=False),
        uniqueItems=True,
    ),
    "different pairs": lambda: _array(
        items=_array(prefixItems=[{"enum": list(range(9))}] * 3, items=False, minItems=3), uniqueItems=True
    ),
    "contained several times": lambda: all_of(
        ({"contains": {"const": i}, "minContains": 3, "maxContains": 30} for i in range(4)), type="array"
    ),
    "contained up to 10,000 times": lambda: _array(contains={"type": "null"}, minContains=5_000, maxContains=10_000),
    "items between 5,000 and 100,000": lambda: _array(minItems=5_000, maxItems=100_000, items={"enum": [1, "a"]}),
    "counts in counts": lambda: nested(lambda inner: _array(items=inner, minItems=30, maxItems=90), 8, _string()),
    "counts of alternatives": lambda: _array(
        anyOf=[{"minItems": i, "maxItems": 2 * i, "items": {"minimum": i}} for i in range(1, 60)]
    ),
    "items not alike": lambda: {
        "type": "array",
        "not": {"anyOf": [{"items": {"type": t}} for t in ("string", "null", "array", "object", "boolean")]},
    },
    "arrays that recur": lambda: {
        "anyOf": [_array(items={"$ref": "#"}, maxItems=1), _array(minItems=2), {"const": 1}]
    },
    "trees of three kinds": lambda: {
        "$defs": {
            kind: _object(properties={k: {"$ref": f"#/$defs/{k}"} for k in "abc"}, minProperties=i)
            for i, kind in enumerate("abc")
        },
        "allOf": [{"$ref": f"#/$defs/{k}"} for k in "abc"],
    },
    "every keyword at once": lambda: {
        "type": ["object", "array", "string", "number"],
        "minLength": 3, "maxLength": 300, "pattern": "^[a-z ]+$", "format": "hostname",
        "minimum": -1.5, "exclusiveMaximum": 1e9, "multipleOf": 0.25,
        "minItems": 2, "maxItems": 40, "uniqueItems": False, "contains": {"type": "null"}, "prefixItems": [{}, {}],
        "minProperties": 2, "maxProperties": 20, "patternProperties": {"^x": {"$ref": "#"}},
        "dependentRequired": {"a": ["b"]}, "propertyNames": {"minLength": 2},
        "if": {"minProperties": 4}, "then": has("q"), "else": {"not": has("q")},
    },
}  # fmt: skip
SCHEMAS |= {f"schema: {name}": make for name, make in (hostile_schemas.REFUSED | hostile_schemas.HARMLESS).items()}

# -- GBNF -----------------------------------------------------------------------------------------------------


def _rules(*lines: str) -> str:
    return "\n".join(lines)


GBNF: dict[str, Callable[[], str]] = {
    "100,000 rules in a row": lambda: _rules(
        "root ::= r0", *(f'r{i} ::= "a" r{i + 1}' for i in range(100_000)), 'r100000 ::= "b"'
    ),
    "100,000 rules of nothing": lambda: _rules(
        "root ::= r0", *(f"r{i} ::= r{i + 1}" for i in range(100_000)), 'r100000 ::= "b"'
    ),
    "100,000 rules, none of them used": lambda: _rules('root ::= "a"', *(f'r{i} ::= "{i}"' for i in range(100_000))),
    "20,000 alternatives": lambda: "root ::= " + " | ".join(f'"{word}"' for word in _words(20_000)),
    "200,000 alternatives": lambda: "root ::= " + " | ".join(f'"{word}"' for word in _words(200_000)),
    "1,000 recursive alternatives": lambda: _rules(
        "root ::= " + " | ".join(f"r{i}" for i in range(1_000)),
        *(f'r{i} ::= "a" r{i} "{i}" | "b"' for i in range(1_000)),
    ),
    "300 mutually recursive rules": lambda: _rules(
        "root ::= r0",
        *(
            f'r{i} ::= "a" r{(i * 7 + 1) % 300} "b" r{(i * 11 + 5) % 300} | "c" r{(i + 1) % 300} | "d"'
            for i in range(300)
        ),
    ),
    "200 rules, each of all": lambda: _rules(
        "root ::= r0", *(f'r{i} ::= "{i}" (' + " | ".join(f"r{j}" for j in range(200)) + ") | [x]" for i in range(200))
    ),
    "100,000 groups": lambda: "root ::= " + "(" * 100_000 + '"a"' + ")" * 100_000,
    "499 groups with stars": lambda: "root ::= " + "(" * 499 + '"a"' + ' "b"?)*' * 499,
    "a count of nothing": lambda: 'root ::= ("a"? "b"?){1,5000}',
    "counts of nothing": lambda: "root ::= (((((" + '"a"?){0,40}){0,40}){0,40}){0,40}){0,40}',
    "a count of a million": lambda: 'root ::= "a"{1,1000000}',
    "a count of 10^18": lambda: 'root ::= "a"{1000000000000000000}',
    "counts in counts": lambda: 'root ::= ((("a"{1,99} "b"){1,99} "c"){1,99} "d"){1,99}',
    "a count of rules": lambda: _rules("root ::= r{100,2000}", 'r ::= "a" r "b" | "c"'),
    "a doubling": lambda: _rules("root ::= r0", *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(40)), 'r40 ::= "a"'),
    "a doubling of choices": lambda: _rules(
        "root ::= r0", *(f"r{i} ::= r{i + 1} r{i + 1} | r{i + 1}" for i in range(40)), 'r40 ::= "a" | "b"'
    ),
    "a doubling of recursions": lambda: _rules(
        "root ::= r0", *(f'r{i} ::= r{i + 1} "x" r{i + 1} | "y" r0' for i in range(200)), 'r200 ::= "a"'
    ),
    "2^15 subsets": lambda: 'root ::= ("a" | "b")* "a" ' + '("a" | "b") ' * 14,
    "2^15 subsets of recursions": lambda: _rules(
        'root ::= ("a" | "b" | p)* "a" ' + '("a" | "b" | p) ' * 14, 'p ::= "(" root ")"'
    ),
    "left-recursive": lambda: 'root ::= root "a" | "b"',
    "left-recursive, through others": lambda: _rules(
        *(f'r{i} ::= r{(i + 1) % 1000} "a" | "b"' for i in range(1_000)), "root ::= r0"
    ),
    "nullable, through others": lambda: _rules(
        "root ::= r0", *(f"r{i} ::= r{i + 1}? r{i + 1}?" for i in range(300)), 'r300 ::= "a"?'
    ),
    "nullable rules in a row": lambda: _rules("root ::= " + "n " * 3_000, 'n ::= ("(" root ")")?'),
    "a palindrome": lambda: 'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""',
    "ambiguous recursion, counted": lambda: 'root ::= ("a" root | "a" root "b" | "a"){0,3}',
    "an optional end": lambda: 'root ::= "a" root "b"? | "c"',
    "parallel recursions": lambda: _rules(
        "root ::= x | y | z", 'x ::= "a" x "b" | "b"', 'y ::= "a" y "c" | "c"', 'z ::= "a" z "a" | "d"'
    ),
    "classes of every other character": lambda: (
        "root ::= ("
        + " | ".join("[" + "".join(chr(0x4E00 + 2 * i + k) for i in range(2_000)) + "]" for k in range(50))
        + ")*"
    ),
    "no such characters": lambda: "root ::= [^" + "".join(chr(0x4E00 + 2 * i) for i in range(10_000)) + "]{1,300}",
    "500 different classes": lambda: "root ::= (" + " ".join(f"[\\u{i:04x}-\\uffff]?" for i in range(500)) + ")*",
    "a literal of a megabyte": lambda: 'root ::= "' + "ab" * 500_000 + '"',
    "suffixes of letters": lambda: "root ::= [a-z]* (" + " | ".join('"' + "a" * i + 'b"' for i in range(500)) + ")",
    "words anywhere": lambda: "root ::= [^\\x00]* (" + " | ".join(f'"{word}"' for word in _words(2_000)) + ")",
    "prefixes in recursion": lambda: _rules(
        "root ::= " + " | ".join(f'"{"a" * i}" root "b"' for i in range(1, 150)) + ' | "c"'
    ),
    "comments": lambda: "# x\n" * 200_000 + 'root ::= "a"',
    "4 MB of open brackets": lambda: "root ::= " + "[" * 4_000_000,
    "counted words": lambda: 'root ::= ([a-z]{1,30} " "){1,30} [a-z]{1,90}',
    "three counts of a letter": lambda: 'root ::= ("a"{1,50} | "a"{1,70} | "a"{1,90} "b"){1,40}',
}


def _tags(tags: Iterable[str]) -> str:
    return "root ::= TagDispatch(" + ", ".join(f'("{tag}", root)' for tag in tags) + ")"


EBNF: dict[str, Callable[[], str]] = {
    "10,000 rules that begin with each other": lambda: _rules(
        "root ::= r0", *(f'r{i} ::= r{i + 1} "b" | "c"' for i in range(10_000)), 'r10000 ::= root "a" | "d"'
    ),
    "10,000 rules that begin with themselves": lambda: _rules(
        "root ::= r0", *(f'r{i} ::= r{i} "b" | "c" | r{i + 1}' for i in range(10_000)), 'r10000 ::= "a"'
    ),
    "60 rules that each begin with all": lambda: _rules(
        "root ::= r0", *(f"r{i} ::= " + " | ".join(f'r{j} "x{j}"' for j in range(60)) + ' | "c"' for i in range(60))
    ),
    "3,000 parts that may be nothing before a rule itself": lambda: "root ::= " + '"a"? ' * 3_000 + 'root | "b"',
    "20,000 tags": lambda: _tags(f"<t{i}>" for i in range(10_000, 30_000)),
    "1,500 tags of 1,500 lengths": lambda: _tags(str(10_000 + i) + "a" * i for i in range(1_500)),
}


def _definition(kind: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: kind(make())


#: All of them, by kind and name.
DEFINITIONS: dict[str, Callable[[], Any]] = {
    f"{prefix}: {name.removeprefix('schema: ')}": _definition(kind, make)
    for prefix, kind, collection in (
        ("regex", sg.Regex, REGEXES),
        ("schema", sg.JsonSchema, SCHEMAS),
        ("gbnf", sg.Gbnf, GBNF),
        ("ebnf", sg.Ebnf, EBNF),
    )
    for name, make in collection.items()
}
