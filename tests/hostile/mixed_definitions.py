"""More definitions that a stranger might send, of all kinds: products, counts of counts, recursion that is ambiguous.

Each is made when asked for. Whether one compiles or is refused is not said here; see `attack.definitions`.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, TypeAlias

import structgen as sg

Make: TypeAlias = Callable[[], Any]

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
_LETTERS = string.ascii_lowercase


def _each(template: str, count: int, between: str = "") -> str:
    """A template for each number from 0 on, ``@`` being the number and ``#`` the next."""
    return between.join(template.replace("@", str(i)).replace("#", str(i + 1)) for i in range(count))


_REGEXES: dict[str, Make] = {
    "two counts in a count": lambda: "(?:a{1,30}|b{1,40}){1,50}c",
    "options of options": lambda: "(?:(?:a?){30}){30}b",
    "twelve look-aheads": lambda: "".join(f"(?=.*{c})" for c in _LETTERS[:12]) + ".*",
    "twelve look-aheads that count": lambda: "".join(f"(?=(?:.*{c}){{5}})" for c in _LETTERS[:12]) + ".*",
    "a look-behind of 200": lambda: ".*(?<=a.{200})b",
    "behinds within a star": lambda: "(?:(?<!a.{9})[ab])*c",
    "the letter 22 before the end": lambda: ".*a.{22}",
    "the letter 22 before the end, twice": lambda: "(?:[ab]*a[ab]{11}c){1,40}",
    "classes beyond ASCII": lambda: "(?i)[\u0100-\U0010ffff]{1,5000}",
    "letters and others": lambda: r"\w{1,2000}\W{1,2000}\w{1,2000}",
    "folded letters": lambda: "(?i:ß|ſ|K|İ|ﬁ){40}",
    "hyphened words": lambda: r"[^\W\d_]{3,900}(?:-[^\W\d_]{3,900}){5}",
    "40,000 words": lambda: "|".join(f"w{i * 7919 % 1000003:07}x{i}" for i in range(40_000)),
    "rows of rows": lambda: "(?:x{0,99}y){0,99}z{0,99}",
    "stars of stars": lambda: "(?:" * 200 + "a*" + ")*" * 200 + "b",
    "primes": lambda: "(?:" + "|".join(f"a{{{p}}}" for p in _PRIMES) + ")*b",
    "the least common multiple": lambda: "".join(f"(?=(?:a{{{p}}})*$)" for p in _PRIMES) + "a*",
    "none of the multiples": lambda: "".join(f"(?!(?:a{{{p}}})*$)" for p in _PRIMES) + "a*",
    "edges of words": lambda: r"(?:\bfoo\b\s*|\Bbar\B){0,500}",
    "labels of labels": lambda: r"(?:(?:[a-z]{2,5}\.){1,100}[a-z]{2,6}@){1,50}",
    "fields": lambda: "(?:^|,)(?:[^,]{0,40};){40}$",
    "never twenty": lambda: "(?:(?!a{20})[ab]){400}",
    "never one of 200": lambda: "(?:(?!" + "|".join(f"k{i * i}" for i in range(200)) + ")[a-z0-9])*",
    "counts of 65,535": lambda: "(?s).{65535}.{65535}.{65535}",
    "a count that is no count": lambda: "x{99999999999999999999}",
    "a million letters": lambda: "ab" * 500_000,
    "100,000 classes": lambda: "[ab][cd]" * 50_000,
    "shuffled counts": lambda: "(?:" + "|".join(f"{c}{{1,{20 + i}}}" for i, c in enumerate(_LETTERS)) + "){1,60}!",
    "overlapping words": lambda: "(?:" + "|".join(_LETTERS[i:j] for i in range(26) for j in range(i + 1, 27)) + ")*1",
    "counts with a common beginning": lambda: "|".join(f"[a-z]{{{i},{3 * i}}}{i}" for i in range(1, 120)),
}

_DIGITS = "9" * 4_000


def _objects(count: int, **values: Any) -> list[Any]:
    return [{"type": "object", "properties": {"k": {"const": i}, **values}, "required": ["k"]} for i in range(count)]


def _tower(levels: int, level: Callable[[str, int], Any], last: Any) -> Any:
    return {
        "$defs": {**{f"d{i}": level(f"#/$defs/d{i + 1}", i) for i in range(levels)}, f"d{levels}": last},
        "$ref": "#/$defs/d0",
    }


_SCHEMAS: dict[str, Make] = {
    "multiples of primes": lambda: {"type": "integer", "allOf": [{"multipleOf": p} for p in (*_PRIMES, 23, 29, 31)]},
    "no multiples of primes": lambda: {"type": "integer", "not": {"anyOf": [{"multipleOf": p} for p in _PRIMES]}},
    "a fine multiple": lambda: {"type": "number", "multipleOf": 1e-300, "maximum": 1},
    "many fine multiples": lambda: {"type": "number", "allOf": [{"multipleOf": m} for m in (0.1, 0.03, 0.007, 0.0011)]},
    "a bound of 4,000 digits": lambda: f'{{"type":"integer","minimum":{_DIGITS}}}',
    "bounds of 4,000 digits": lambda: f'{{"type":"integer","minimum":-{_DIGITS},"maximum":{_DIGITS},"multipleOf":7}}',
    "60 intervals": lambda: {
        "anyOf": [{"type": "number", "minimum": i * 1.37, "maximum": i * 1.39} for i in range(60)]
    },
    "large exponents": lambda: {"type": "number", "exclusiveMinimum": 1e308, "multipleOf": 3},
    "patterns at once": lambda: {"type": "string", "allOf": [{"pattern": f"a.{{{i}}}$"} for i in range(3, 14)]},
    "patterns none of which": lambda: {
        "type": "string",
        "not": {"anyOf": [{"pattern": f"a.{{{i}}}$"} for i in range(9)]},
    },
    "a pattern and lengths": lambda: {
        "type": "string",
        "pattern": "^(ab|a|ba)*$",
        "minLength": 3000,
        "maxLength": 6000,
    },
    "12 different ones of 12": lambda: {
        "type": "array",
        "items": {"enum": [*range(12)]},
        "uniqueItems": True,
        "minItems": 12,
    },
    "20 different ones of 20": lambda: {
        "type": "array",
        "items": {"enum": [*range(20)]},
        "uniqueItems": True,
        "minItems": 20,
    },
    "different objects": lambda: {
        "type": "array",
        "uniqueItems": True,
        "items": {
            "type": "object",
            "properties": {c: {"enum": [0, 1, 2]} for c in "abcd"},
            "additionalProperties": False,
        },
    },
    "ten things are contained": lambda: {
        "type": "array",
        "allOf": [{"contains": {"type": "integer", "multipleOf": p}, "minContains": 3} for p in _PRIMES],
    },
    "things are contained at most": lambda: {
        "type": "array",
        "minItems": 90,
        "allOf": [{"contains": {"const": i}, "minContains": 9, "maxContains": 20} for i in range(5)],
    },
    "contained itself": lambda: {
        "type": ["array", "null"],
        "contains": {"$ref": "#"},
        "minContains": 2,
        "maxContains": 3,
    },
    "dependent on each other": lambda: {
        "type": "object",
        "dependentSchemas": {
            f"p{i}": {"properties": {f"p{(i + 1) % 20}": {"type": "integer", "minimum": i}}} for i in range(20)
        },
    },
    "dependent names": lambda: {
        "type": "object",
        "properties": {f"p{i}": {} for i in range(30)},
        "dependentRequired": {f"p{i}": [f"p{(7 * i + 3) % 30}"] for i in range(30)},
    },
    "ifs in ifs": lambda: _tower(
        15, lambda ref, i: {"if": {"required": [f"a{i}"]}, "then": {"required": [f"b{i}"]}, "else": {"$ref": ref}}, {}
    ),
    "ifs beside ifs": lambda: {
        "allOf": [{"if": {"required": [f"a{i}"]}, "then": {"required": [f"b{i}"]}} for i in range(18)],
        "type": "object",
    },
    "one of overlapping ones": lambda: {
        "oneOf": [{"type": "object", "required": [f"p{i}", f"p{i + 1}"]} for i in range(12)]
    },
    "one of the numbers": lambda: {"oneOf": [{"type": "integer", "multipleOf": p} for p in _PRIMES]},
    "none of the objects": lambda: {"type": "object", "not": {"anyOf": _objects(20)}},
    "overlapping names": lambda: {
        "type": "object",
        "patternProperties": {f"{c}.*{d}": {"minimum": ord(c)} for c in "abcde" for d in "vwxyz"},
    },
    "names that count": lambda: {
        "type": "object",
        "propertyNames": {"pattern": "^(a|b)*a(a|b){12}$"},
        "minProperties": 3,
    },
    "100 ways around": lambda: {
        "$defs": {
            f"d{i}": {"anyOf": [{"type": "array", "items": {"$ref": f"#/$defs/d{(i + k) % 100}"}} for k in (1, 7)]}
            for i in range(100)
        },
        "$ref": "#/$defs/d0",
    },
    "arrays by length, recursive": lambda: {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
            {"type": "array", "items": {"$ref": "#"}, "minItems": 3, "maxItems": 5},
            {"type": "array", "prefixItems": [{"const": 1}, {"$ref": "#"}], "minItems": 2},
            {"const": 1},
            {"const": 2},
        ]
    },
    "arrays by parity, recursive": lambda: {
        "anyOf": [
            {"type": "array", "prefixItems": [{"$ref": "#"}] * n, "items": False, "minItems": n} for n in range(6)
        ]
    },
    "objects by depth, recursive": lambda: {
        "anyOf": [
            *(
                {"type": "object", "properties": {"a": {"$ref": "#"}, "k": {"const": i}}, "required": ["a", "k"]}
                for i in range(8)
            ),
            {"type": "null"},
        ]
    },
    "trees of trees": lambda: {
        "$defs": {
            "t": {"anyOf": [{"$ref": "#/$defs/u"}, {"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 1}]},
            "u": {
                "anyOf": [
                    {"type": "array", "items": {"$ref": "#/$defs/u"}},
                    {"type": "array", "items": {"$ref": "#/$defs/t"}},
                ]
            },
        },
        "$ref": "#/$defs/t",
    },
    "strings with a common beginning": lambda: {
        "anyOf": [{"type": "string", "pattern": f"^x[a-z]{{{i}}}[0-9]{{1,{i + 1}}}$"} for i in range(100)]
    },
    "200 lengths": lambda: {
        "anyOf": [{"type": "string", "minLength": 3 * i, "maxLength": 3 * i + 1} for i in range(200)]
    },
    "50,000 names": lambda: {"enum": [f"name {i * 7919}" for i in range(50_000)]},
    "3,000 objects by name": lambda: {"enum": [{"id": i, "deep": {"x": [i, i + 1]}} for i in range(3_000)]},
    "2,000 objects": lambda: {"anyOf": _objects(2_000, v={"type": "string"})},
    "objects with keys of their own": lambda: {
        "anyOf": [
            {"type": "object", "properties": {f"k{i}": {"type": "string"}}, "required": [f"k{i}"]} for i in range(800)
        ]
    },
    "a constant 10,000 deep": lambda: "[" * 0 + '{"const":' + "[" * 10_000 + "]" * 10_000 + "}",
    "500 members": lambda: {"type": "object", "minProperties": 500},
    "members by number and mark": lambda: {
        "type": "object",
        "minProperties": 40,
        "maxProperties": 60,
        "patternProperties": {"^a": {}, "^b": {}},
        "allOf": [{"minProperties": i} for i in range(40)],
    },
    "at least 10^9 characters": lambda: {"type": "string", "minLength": 10**9},
    "arrays of arrays of 10^12": lambda: {
        "type": "array",
        "maxItems": 10**12,
        "items": {"type": "array", "minItems": 10**6, "items": {"type": "array", "maxItems": 10**12}},
    },
    "all formats": lambda: {
        "type": "string",
        "anyOf": [
            {"format": f} for f in ("uri", "email", "hostname", "ipv6", "date-time", "uuid", "regex", "idn-email")
        ],
        "maxLength": 200,
    },
    "formats at once": lambda: {
        "type": "string",
        "allOf": [{"format": "uri"}, {"pattern": "a.{9}b"}, {"maxLength": 60}, {"minLength": 30}],
    },
    "no format": lambda: {
        "type": "string",
        "not": {"anyOf": [{"format": "uri"}, {"format": "email"}, {"format": "regex"}]},
    },
    "unevaluated members": lambda: {
        "allOf": [{"anyOf": [{"properties": {f"p{i}": {}}}, {"properties": {f"q{i}": {}}}]} for i in range(10)],
        "unevaluatedProperties": False,
        "type": "object",
    },
    "unevaluated items": lambda: {
        "type": "array",
        "contains": {"type": "integer"},
        "prefixItems": [{"type": "string"}] * 30,
        "anyOf": [{"prefixItems": [{}] * n} for n in range(30)],
        "unevaluatedItems": {"type": "boolean"},
    },
    "a key of 1 MB": lambda: {"type": "object", "properties": {"k" * 1_000_000: {}}, "required": ["k" * 1_000_000]},
    "20,000 properties": lambda: {
        "type": "object",
        "properties": {f"p{i}": {"type": "integer"} for i in range(20_000)},
    },
    "20,000 required ones": lambda: {
        "type": "object",
        "properties": {f"p{i}": {} for i in range(20_000)},
        "required": [f"p{i}" for i in range(20_000)],
    },
    "not itself": lambda: {"not": {"type": "array", "items": {"$ref": "#"}}},
    "one of itself": lambda: {"oneOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "array", "maxItems": 3}]},
    "dynamic anchors": lambda: {
        "$dynamicAnchor": "n",
        "type": "object",
        "properties": {f"p{i}": {"$dynamicRef": "#n"} for i in range(30)},
        "additionalProperties": {"$dynamicRef": "#n"},
    },
    "doubling members": lambda: _tower(
        24,
        lambda ref, _: {"type": "object", "properties": {"a": {"$ref": ref}, "b": {"$ref": ref}}},
        {"enum": [*range(99)]},
    ),
    "all of each other": lambda: _tower(
        12, lambda ref, i: {"allOf": [{"$ref": ref}, {"$ref": ref}, {"minLength": i}]}, {}
    ),
    "a lattice of choices": lambda: _tower(
        16,
        lambda ref, i: {
            "anyOf": [{"$ref": ref, "required": [f"a{i}"]}, {"$ref": ref, "required": [f"b{i}"]}],
            "type": "object",
        },
        {},
    ),
    "escaped names": lambda: {"type": "object", "properties": {'\u0001\u2028\\"/é' * i: {} for i in range(1, 60)}},
}

_ANY_ORDER: dict[str, Make] = {
    "62 in any order": lambda: {
        "type": "object",
        "properties": {f"p{i}": {} for i in range(62)},
        "required": ["p1", "p61"],
    },
    "62 in any order, some of them": lambda: {
        "type": "object",
        "properties": {f"p{i}": {"type": "integer"} for i in range(62)},
        "maxProperties": 30,
        "minProperties": 20,
    },
    "recursive in any order": lambda: {
        "type": "object",
        "properties": {c: {"$ref": "#"} for c in _LETTERS},
        "required": ["a"],
        "additionalProperties": False,
    },
    "names like each other in any order": lambda: {
        "type": "object",
        "properties": {"a" * i: {"const": i} for i in range(1, 60)},
        "additionalProperties": {"const": 0},
    },
}

_GBNF: dict[str, Make] = {
    "either side": lambda: 'root ::= "a" root "a" | "a" root | root0\nroot0 ::= "a" | "aa"',
    "one, two or three": lambda: 'root ::= (x x)* "."\nx ::= "a" | "aa" | "aaa" | y\ny ::= "a" "a"?',
    "nullable ones": lambda: "root ::= " + "a " * 20 + '"."\na ::= "x"? "y"? b\nb ::= ("x" | "")',
    "palindromes": lambda: 'root ::= "a" root "a" | "b" root "b" | "" | "a" | "b"',
    "500 ways at once": lambda: "root ::= " + _each("r@", 500, " | ") + "\n" + _each('r@ ::= "a" r@ "b" | "c@"\n', 500),
    "doubling": lambda: "root ::= r60\n" + _each("r# ::= r@ r@\n", 60) + 'r0 ::= "a"',
    "doubling options": lambda: "root ::= r0\n" + _each('r@ ::= ("x" r#)? r#\n', 40) + 'r40 ::= "y"',
    "counts of counts": lambda: 'root ::= (("a"{1,50} "b"){1,50} "c"){1,50}',
    "counts that overlap": lambda: 'root ::= ("a"{0,40} "a"{0,40}){0,40} "b"',
    "a recursive count": lambda: 'root ::= ("(" root ")"){0,9} | "x"',
    "a recursive count, nullable": lambda: 'root ::= ("(" root ")"? | "x"?){0,6}',
    "counted recursion that can stop": lambda: 'root ::= ("a" root | "a" root "b" | "a"){1,4}',
    "20,000 rules": lambda: _each('root@ ::= "a" root#\n', 20_000).replace("root0 ", "root ") + 'root20000 ::= "b"',
    "lists of lists": lambda: 'root ::= "[" (root ("," root)*)? "]" | "[" root "]" | "[]"',
    "dangling": lambda: 'root ::= s\ns ::= "if " s | "if " s " else " s | "x"',
    "tails": lambda: 'root ::= "a" root b | "c"\nb ::= "d"? e\ne ::= "d"? f\nf ::= "d"?',
    "as many of each": lambda: 'root ::= a | b\na ::= "x" a "y" | "x" a "z" | "."\nb ::= "x" b "yy" | "x" b "z" | "."',
    "sums": lambda: 'root ::= t ("+" root)? | t ("+" t)*\nt ::= [0-9]+ | "(" root ")" | [0-9]+ "." [0-9]*',
    "wide classes": lambda: "root ::= " + _each("[^@] [a-z@]? ", 3_000),
    "depth without an end": lambda: "root ::= " + "(" * 50_000 + '"a"' + ")" * 50_000,
}

_LARK: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "pairs": lambda: ('start: start start | "a"', {"ambiguity": "all"}),
    "threes": lambda: ('start: start start start | start start | "a"', {"ambiguity": "all"}),
    "nullable pairs": lambda: ('start: start start | "a" |', {"ambiguity": "all"}),
    "thirty operators": lambda: (
        "start: e\ne: A | " + _each('e "@" e', 30, " | ") + "\nA: /[a-z]+/",
        {"ambiguity": "all"},
    ),
    "thirty operators, resolved": lambda: ("start: e\ne: A | " + _each('e "@" e', 30, " | ") + "\nA: /[a-z]+/", {}),
    "dangling else": lambda: ('start: "if" start | "if" start "else" start | "x"\n%ignore " "', {"ambiguity": "all"}),
    "palindromes": lambda: ('start: "a" start "a" | "b" start "b" | "a" | "b"', {"ambiguity": "all"}),
    "readings of a name": lambda: (
        "start: (" + _each("r@", 200, "|") + ")+\n" + _each('r@: N "@"\n', 200) + "N: /[a-z]+/",
        {"ambiguity": "all"},
    ),
    "an LR(0) automaton of 2^n": lambda: (
        "start: "
        + _each("a@", 16, " | ")
        + "\n"
        + "\n".join(
            f"a{i}: " + " | ".join(f'"x{j}" a{i}' for j in range(16) if j != i) + f' | "y{i}"' for i in range(16)
        ),
        {},
    ),
    "300 terminals that overlap": lambda: (
        "start: (" + _each("T@", 300, "|") + ")+\n" + _each("T@.@: /[a-z]{1,@}[0-9]?x@/\n", 300),
        {},
    ),
    "terminals of many lengths": lambda: (
        "start: (" + _each("T@", 80, "|") + ")+\n" + _each("T@: /[a-z]{#}[0-9]*/\n", 80),
        {},
    ),
    "terminals with a common end": lambda: (
        "start: (" + _each("T@", 60, "|") + ")+\n" + _each("T@: /(a|b)*a(a|b){4}@/\n", 60),
        {},
    ),
    "comments everywhere": lambda: (
        r'start: ("x" | "y" "z")+' + "\n" + _each("C@: /<@[^>]*(>[^@]*)*@>/\n%ignore C@\n", 9),
        {},
    ),
    "5,000 words": lambda: ("start: (" + _each('"word@"', 5_000, "|") + ")+", {}),
    "5,000 words and a name": lambda: (
        "start: (" + _each('"word@"', 5_000, "|") + '|N)+\nN: /[a-z0-9]+/\n%ignore " "',
        {},
    ),
    "3,000 rules": lambda: ("start: r0\n" + _each('r@: "a" r# | "b"\n', 3_000) + 'r3000: "c"', {}),
    "doubling": lambda: ("start: r30\n" + _each("r#: r@ r@\n", 30) + 'r0: "a"', {}),
    "counts of counts": lambda: ('start: (("a"~1..30 "b")~1..30 "c")~1..30', {}),
    "counted ambiguity": lambda: ('start: ("a"~0..20 "a"~0..20)~0..20 "b"', {"ambiguity": "all"}),
    "templates in templates": lambda: ("start: t{t{t{t{t{a}}}}}\n" + 't{x}: x x | "(" x ")" | x ","\n' + 'a: "a"', {}),
    "a template that grows": lambda: ('start: t{a}\nt{x}: t{u{x}} | x\nu{x}: "(" x ")"\na: "a"', {}),
    "look-arounds in terminals": lambda: ("start: (A|B)+\nA: /(?:(?!a{9})[ab]){1,90}(?=c)/\nB: /c(?!a{5})/", {}),
    "a terminal of 80,000 states": lambda: (r"start: A" + "\nA: /[a-z]{1,300}( [a-z]{1,300}){1,100}!/", {}),
    "nullable tails": lambda: ('start: "a" start b | "c"\nb: d e\nd: "d" |\ne: "e" | d', {"ambiguity": "all"}),
    "two parsers in one": lambda: (
        'start: p | q\np: "x" p "y" | "x" p "z" | "."\nq: "x" q "y" "y" | "x" q "z" | "."',
        {"ambiguity": "all"},
    ),
    "rules that are each other": lambda: ('start: a\na: b | "x"\nb: c | "y"\nc: a | "z"', {"ambiguity": "all"}),
    "a basic lexer": lambda: (
        "start: (" + _each("T@", 120, "|") + ")+\n" + _each('T@: "k@" | /k[a-z]{@,#}/\n', 120),
        {"lexer": "basic"},
    ),
    "priorities against lengths": lambda: (
        "start: (" + _each("T@", 100, "|") + ")+\n" + _each("T@.@: /[a-f]{1,9}#?/\n", 100),
        {},
    ),
}


def _options(kind: Callable[..., Any], make: Make, **options: Any) -> Make:
    return lambda: kind(make(), **options)


def _lark(make: Callable[[], tuple[str, dict[str, Any]]]) -> Make:
    def made() -> sg.Grammar:
        text, options = make()
        return sg.Grammar(text, **options)

    return made


#: All of them, by kind and name.
DEFINITIONS: dict[str, Make] = {
    **{f"regex, mixed: {name}": _options(sg.Regex, make) for name, make in _REGEXES.items()},
    **{f"schema, mixed: {name}": _options(sg.JsonSchema, make) for name, make in _SCHEMAS.items()},
    **{
        f"schema, mixed: {name}": _options(sg.JsonSchema, make, property_order="any")
        for name, make in _ANY_ORDER.items()
    },
    **{f"gbnf, mixed: {name}": _options(sg.Gbnf, make) for name, make in _GBNF.items()},
    **{f"lark, mixed: {name}": _lark(make) for name, make in _LARK.items()},
}
