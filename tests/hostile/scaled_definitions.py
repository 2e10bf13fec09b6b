"""Definitions that a stranger might send, in families: each family is a function of a size, taken at several sizes.

Where a family is harmless at one size and refused at the next, what lies between two looks at the clock and what
nobody counts shows at the sizes in between. Whether one compiles or is refused is not said here; see
`attack.definitions`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import structgen as sg
from hostile.hostile_schemas import all_of, has, nested, tower

#: A definition's text, or its schema, of a size.
Family: TypeAlias = Callable[[int], Any]


def _each(template: str, count: int, between: str = "") -> str:
    """A template for each number from 0 on, ``@`` being the number and ``#`` the next."""
    return between.join(template.replace("@", str(i)).replace("#", str(i + 1)) for i in range(count))


def _words(count: int) -> list[str]:
    """Words that have little in common."""
    return [f"{i * 2654435761 % 2**32:08x}" for i in range(count)]


def _blocks(count: int) -> list[str]:
    """Classes of a thousand characters each, that overlap by half."""
    return [f"[{chr(0x3400 + 500 * i)}-{chr(0x3400 + 500 * i + 999)}]" for i in range(count)]


_REGEXES: dict[str, tuple[Family, tuple[int, ...]]] = {
    "look-aheads with counts": (
        lambda n: "".join(f"(?=.{{{i},{3 * i}}}{i}$)" for i in range(1, n)) + ".*",
        (4, 12, 40),
    ),
    "a look-ahead in a counted repeat": (lambda n: f"(?:(?=[a-m]{{1,{n}}}x)[a-z]{{1,{n}}}x){{1,{n}}}", (5, 30, 200)),
    "look-behinds with counts": (lambda n: f"[ab]*(?<=a[ab]{{{n}}})(?:c[ab]*(?<!b[ab]{{{n}}})){{3}}d", (6, 11, 60)),
    "blocks of characters, counted": (lambda n: "(?:" + "|".join(f"{b}{{1,{n}}}" for b in _blocks(20)) + ")*", (3, 40)),
    "sequences of blocks": (lambda n: "".join(f"{b}?" for b in _blocks(40)) * n, (2, 50, 1_000)),
    "categories beside categories": (lambda n: rf"(?:[\p{{L}}\d]|[\p{{N}}\p{{P}}]{{2,7}}|\P{{Sc}}x){{1,{n}}}", (4, 90)),
    "either case of everything": (
        lambda n: f"(?i:[\u0100-\u024f\u0370-\u03ff\u1e00-\u1fff]{{{n},{3 * n}}}ß)" * 3,
        (8, 600),
    ),
    "a trie of optional ends": (
        lambda n: "(?:" + "|".join(f"{w}(?:{w}){{0,9}}" for w in _words(n)) + ")",
        (40, 900, 9_000),
    ),
    "words twice": (lambda n: "(?:" + "|".join(_words(n)) + ")(?:" + "|".join(_words(n)[::-1]) + ")", (500, 8_000)),
    "words and what follows any of them": (
        lambda n: "(?:" + "|".join(f"{w}.*{w}" for w in _words(n)) + ")",
        (8, 40, 700),
    ),
    "alternatives in alternatives": (lambda n: nested(lambda inner: f"(?:{inner}|x{inner})", n, "a"), (8, 14, 18)),
    "boundaries between counts": (lambda n: rf"(?:\b[a-z_]{{1,{n}}}\b[^a-z]{{0,{n}}}\B)*", (9, 80)),
    "lines that count": (lambda n: f"(?m)(?:^[ ]{{0,{n}}}[a-z]{{1,{n}}}$\\n)*", (20, 400)),
    "numbers below a bound": (
        lambda n: "|".join("".join(f"[0-{9 - i % 7}]" for _ in range(i)) + f"(?!{i})" for i in range(1, n)),
        (20, 150),
    ),
}


def _web(n: int, step: Callable[[int, int], int], **keywords: Any) -> Any:
    """Objects that refer to several others."""
    return {
        "$defs": {
            f"d{i}": {
                "type": "object",
                "properties": {f"p{j}": {"$ref": f"#/$defs/d{step(i, j) % n}"} for j in range(5)},
                **{name: value(i) if callable(value) else value for name, value in keywords.items()},
            }
            for i in range(n)
        },
        "$ref": "#/$defs/d0",
    }


def _stride(stride: int) -> Callable[[int, int], int]:
    """Each definition's first reference is so far beyond the last one's."""
    return lambda i, j: stride * i + j + 1


def _deep(number: int) -> Any:
    """A value of thirty levels."""
    return nested(lambda inner: {"k": [inner, number]}, 30, number)


def _lists(n: int, keyword: str) -> Any:
    """Arrays of each other, each of a length of its own."""
    return {
        "$defs": {
            f"d{i}": {
                keyword: [{"type": "array", "items": {"$ref": f"#/$defs/d{j}"}, "minItems": i ^ j} for j in range(n)]
            }
            for i in range(n)
        },
        "$ref": "#/$defs/d0",
    }


_SCHEMAS: dict[str, tuple[Family, tuple[int, ...]]] = {
    "a web of references": (lambda n: _web(n, lambda i, j: i * 7 + j * 3 + 1), (30, 400, 4_000)),
    "a web of references, closed": (
        lambda n: _web(n, lambda i, j: i * i + j, unevaluatedProperties=False, required=lambda i: [f"p{i % 5}"]),
        (30, 400),
    ),
    "webs at once": (
        lambda n: {"allOf": [{"$id": f"urn:w{k}", **_web(n, _stride(k))} for k in (2, 3, 5)]},
        (5, 30, 120),
    ),
    "arrays of each other, anyOf": (partial(_lists, keyword="anyOf"), (6, 20, 60)),
    "arrays of each other, oneOf": (partial(_lists, keyword="oneOf"), (4, 9, 30)),
    "a product of choices": (
        lambda n: all_of(
            (
                {"anyOf": [{"properties": {f"p{(i + j) % n}": {"type": t}}} for j, t in enumerate(("null", "string"))]}
                for i in range(n)
            ),
            type="object",
        ),
        (6, 14, 200),
    ),
    "a product of enums": (
        lambda n: all_of({"enum": [k for k in range(5 * n) if k % (i + 2)]} for i in range(n)),
        (9, 90, 900),
    ),
    "a product of strings": (
        lambda n: all_of(({"pattern": f"{w[:3]}.*{w[5:]}"} for w in _words(n)), type="string", maxLength=99),
        (2, 5, 40),
    ),
    "dependent schemas, each on the last": (
        lambda n: {
            "type": "object",
            "dependentSchemas": {
                f"p{i}": {"required": [f"p{i + 1}"], "properties": {f"q{i % 3}": {"minimum": i}}} for i in range(n)
            },
        },
        (5, 12, 300),
    ),
    "dependent schemas that exclude": (
        lambda n: {
            "type": "object",
            "dependentSchemas": {
                f"p{i}": {"not": {"required": [f"p{j}" for j in range(n) if j % (i + 2) == 1] or ["q"]}}
                for i in range(n)
            },
        },
        (4, 9, 40),
    ),
    "names by patterns": (
        lambda n: {
            "type": "object",
            "propertyNames": {"anyOf": [{"pattern": f"^{w}.*{w}$"} for w in _words(n)]},
            "minProperties": 3,
        },
        (5, 60, 900),
    ),
    "names by no pattern": (
        lambda n: {
            "type": "object",
            "propertyNames": {"not": {"pattern": "|".join(_words(n))}},
            "additionalProperties": {"$ref": "#"},
        },
        (20, 500, 9_000),
    ),
    "patterns of names that overlap": (
        lambda n: {
            "type": "object",
            "patternProperties": {f"[{chr(97 + i)}-z]{{{i + 1}}}": {"minLength": i} for i in range(n)},
            "additionalProperties": False,
        },
        (3, 8, 20),
    ),
    "unevaluated in allOf, anyOf, if": (
        lambda n: {
            "type": "object",
            "unevaluatedProperties": {"type": "boolean"},
            "allOf": [
                {
                    "anyOf": [has(f"a{i}"), {"properties": {f"a{i}": {"const": i}, f"b{i}": {}}}],
                    "if": has(f"b{i}"),
                    "then": {"properties": {f"c{i}": {}}},
                }
                for i in range(n)
            ],
        },
        (2, 4, 20),
    ),
    "unevaluated items behind contains": (
        lambda n: {
            "type": "array",
            "unevaluatedItems": False,
            "prefixItems": [{"type": "integer"}] * n,
            "anyOf": [{"contains": {"multipleOf": k + 2}, "minContains": k} for k in range(n)],
        },
        (3, 8, 60),
    ),
    "different and contained": (
        lambda n: {
            "type": "array",
            "items": {"enum": list(range(n))},
            "uniqueItems": True,
            "minItems": n // 2,
            "contains": {"multipleOf": 3},
            "minContains": 2,
            "maxContains": n // 3,
        },
        (6, 12, 16),
    ),
    "different pairs of few": (
        lambda n: {
            "type": "array",
            "uniqueItems": True,
            "prefixItems": [{"enum": list(range(i, i + 4))} for i in range(n)],
            "items": False,
        },
        (6, 14, 60),
    ),
    "an enum of deep values": (lambda n: {"enum": [_deep(i) for i in range(n)]}, (50, 900, 9_000)),
    "an enum of long arrays": (lambda n: {"enum": [[i, *range(200)] for i in range(n)]}, (40, 900, 5_000)),
    "not a constant of many members": (
        lambda n: {"not": {"const": {w: i for i, w in enumerate(_words(n))}}},
        (30, 3_000),
    ),
    "multiples of long numbers": (
        lambda n: (
            f'{{"type": "number", "multipleOf": {"3" * n}, "minimum": {"1" * (n + 2)}, "maximum": {"8" * (n + 3)}}}'
        ),
        (5, 40, 900),
    ),
    "multiples of long fractions": (
        lambda n: f'{{"type": "number", "multipleOf": 0.{"0" * n}{"37" * n}}}',
        (2, 9, 300),
    ),
    "bounds of long fractions": (
        lambda n: f'{{"type": "number", "minimum": 0.{"12" * n}, "exclusiveMaximum": 0.{"12" * n}5e{n}}}',
        (9, 90, 2_000),
    ),
    "no such numbers": (
        lambda n: {"type": "integer", "not": {"anyOf": [{"multipleOf": i + 2, "minimum": i * i} for i in range(n)]}},
        (3, 6, 40),
    ),
    "lengths of characters beyond ASCII": (
        lambda n: {
            "type": "string",
            "pattern": f"^(?:[À-ž]{{1,{n}}}|[ぁ-ん]{{2,{2 * n}}})*$",
            "minLength": n,
            "maxLength": 5 * n,
        },
        (4, 25, 120),
    ),
    "look-arounds with lengths": (
        lambda n: {"type": "string", "pattern": f"^(?=.*[A-Z])(?=.*[0-9])(?!.*(.)x{{{n}}})[ -~]{{{n},{9 * n}}}$"},
        (2, 8, 100),
    ),
    "conditions, each in the next one's else": (
        lambda n: nested(
            lambda inner: {
                "if": {"properties": {"k": {"type": "string", "minLength": 3}}, "required": ["k"]},
                "then": has("x"),
                "else": inner,
            },
            n,
            has("y"),
        ),
        (9, 90, 400),
    ),
    "oneOf of ranges of items": (
        lambda n: {
            "oneOf": [{"type": "array", "minItems": i, "maxItems": i + n, "contains": {"const": i}} for i in range(n)]
        },
        (3, 8, 60),
    ),
    "recursion through not": (
        lambda n: tower(
            lambda next_, i: {"type": ["object", "null"], "properties": {f"a{i}": {"not": next_}}, "not": has(f"b{i}")},
            n,
            {"$ref": "#"},
        ),
        (3, 30, 300),
    ),
    "dynamic anchors in dynamic scopes": (
        lambda n: {
            "$id": "urn:all",
            "$dynamicAnchor": "x",
            "type": "object",
            "properties": {f"p{i}": {"$ref": f"urn:r{i}"} for i in range(n)},
            "$defs": {
                str(i): {
                    "$id": f"urn:r{i}",
                    "$dynamicAnchor": "x",
                    "type": "array",
                    "items": {"$dynamicRef": "#x"},
                    "contains": {"$ref": f"urn:r{(i * 3 + 1) % n}"},
                }
                for i in range(n)
            },
        },
        (3, 20, 150),
    ),
}

_GBNF: dict[str, tuple[Family, tuple[int, ...]]] = {
    "brackets of many kinds": (
        lambda n: "root ::= (" + _each('"<@>" root "</@>"', n, " | ") + " | [a-z])*",
        (20, 400, 4_000),
    ),
    "counts around recursion": (lambda n: f'root ::= ("(" root{{0,{n}}} ")" | "x"){{1,{n}}}', (3, 30, 900)),
    "groups in groups with choices": (
        lambda n: "root ::= " + nested(lambda inner: f'("a" {inner} "b" | {inner}? "c")', n, '"x"'),
        (7, 12, 16),
    ),
    "rules that begin with each other": (
        lambda n: (
            "root ::= r0\n"
            + "\n".join(
                f"r{i} ::= " + " | ".join(f'r{j} "{i}.{j}"' for j in range(i + 1, min(n, i + 9))) + f' | "{i}"'
                for i in range(n)
            )
        ),
        (9, 30, 300),
    ),
    "an escape for every character": (
        lambda n: "root ::= " + '"\\u00e9\\U0001F600\\x41" [\\u0100-\\U0001F5FF]? ' * n,
        (50, 5_000),
    ),
    "operators by level": (
        lambda n: "root ::= e0\n" + _each('e@ ::= e# ("o@" e#)*\n', n) + f'e{n} ::= [0-9]+ | "(" root ")"',
        (20, 300, 3_000),
    ),
    "negated classes in a row": (lambda n: "root ::= (" + "[^a-z] [^A-Z\\n]? " * n + ")*", (30, 3_000)),
    "optional tails": (lambda n: "root ::= [a-z]+ " + _each('("," [a-z]+ ', n) + ")?" * n, (20, 400)),
    "lists that end alike": (
        lambda n: "root ::= " + _each('"k@" x ";"', n, " | ") + '\nx ::= "(" x ")" x | ""',
        (30, 900),
    ),
}


def _lark(text: str, **options: Any) -> tuple[str, Mapping[str, Any]]:
    return text, options


_LARK: dict[str, tuple[Family, tuple[int, ...]]] = {
    "templates of templates": (
        lambda n: _lark("start: " + "t{" * n + '"x"' + "}" * n + '\nt{x}: "[" x "]" | x "," u{x}\nu{y}: y+ "!"'),
        (4, 40),
    ),
    "separated lists by template": (
        lambda n: _lark(
            "start: "
            + _each("sep{A@, B@}", n, " | ")
            + "\nsep{x, s}: x (s x)*\n"
            + _each('A@: /a@[a-z]/\nB@: "b@"\n', n)
        ),
        (9, 150, 900),
    ),
    "imports under other names": (
        lambda n: _lark("start: (" + _each("N@", n, " | ") + ")+\n" + _each("%import common.CNAME -> N@\n", n)),
        (5, 40, 400),
    ),
    "imports with priorities": (
        lambda n: _lark(
            "start: ("
            + _each("A@", n, " | ")
            + " | ESCAPED_STRING)+\n%import common.ESCAPED_STRING\n"
            + _each('A@.@: /"[a-z]{#}[^"]*"/\n', n)
        ),
        (4, 20, 90),
    ),
    "everything is ignored": (
        lambda n: _lark('start: ("a" | "b")*\n' + _each("%ignore /a[^a]{@}b?/\n", n)),
        (4, 20, 120),
    ),
    "declared and indented": (
        lambda n: _lark(
            "start: (stmt _NL)+\nstmt: "
            + _each('"k@" ":" _NL _INDENT start _DEDENT', n, " | ")
            + ' | "x"\n%declare _INDENT _DEDENT\n_NL: /(\\r?\\n[\\t ]*)+/',
            postlex=sg.Indentation(newline="_NL", indent="_INDENT", dedent="_DEDENT", opening=(), closing=()),
        ),
        (2, 30, 300),
    ),
    "terminals with look-aheads of each other": (
        lambda n: _lark("start: (" + _each("A@", n, " | ") + ")+\n" + _each("A@: /[a-z]+(?=[0-9]{@}x)|[0-9]{#}/\n", n)),
        (3, 9, 40),
    ),
    "terminals either case": (
        lambda n: _lark("start: (" + _each('"wörd@straße"i', n, " | ") + " | N)+\nN: /\\w+/i"),
        (9, 90, 900),
    ),
    "rules of equal beginnings": (
        lambda n: _lark("start: " + _each("r@", n, " | ") + "\n" + _each('r@: "a"* "b"? "c@"\n', n)),
        (5, 60, 600),
    ),
    "rules with priorities, ambiguous": (
        lambda n: _lark(
            "start: e\ne: " + _each('e "o@" e', n, " | ") + " | A | B\nA.2: /[a-z]+/\nB.1: /[a-z0-9]+/", ambiguity="all"
        ),
        (2, 12, 90),
    ),
    "schemas in rules": (
        lambda n: _lark(
            "start: "
            + " | ".join(
                f'"k{i}" %json ' + json.dumps({"type": "object", "properties": {f"p{i}": {"maxLength": i + 3}}})
                for i in range(n)
            )
        ),
        (3, 30, 200),
    ),
    "definitions in rules": (
        lambda n: _lark(
            "start: " + _each("D@", n, " | ") + "\n%declare " + _each("D@", n, " "),
            definitions={f"D{i}": sg.Regex(f"[a-f]{{{i + 1},{90 + i}}};{i}") for i in range(n)},
        ),
        (3, 40),
    ),
    "counts of rules": (lambda n: _lark(f'start: a~0..{n} b~{n}\na: "x" | "y" a\nb: "z"? "w"'), (9, 90, 2_000)),
    "brackets that may be absent": (lambda n: _lark("start: " + _each('["a@" ["b@"]] ', n)), (3, 6, 60)),
}


def _made(kind: Callable[..., Any], family: Family, size: int) -> Any:
    made = family(size)
    return kind(made[0], **made[1]) if isinstance(made, tuple) else kind(made)


#: All of them, by kind, family and size.
DEFINITIONS: dict[str, Callable[[], Any]] = {
    f"{prefix}, scaled: {name}, {size:,}": partial(_made, kind, family, size)
    for prefix, kind, families in (
        ("regex", sg.Regex, _REGEXES),
        ("schema", sg.JsonSchema, _SCHEMAS),
        ("gbnf", sg.Gbnf, _GBNF),
        ("lark", sg.Grammar, _LARK),
    )
    for name, (family, sizes) in families.items()
    for size in sizes
}
