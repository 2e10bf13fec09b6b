"""Structural tags that a stranger might send: those that are refused, with what the refusal says, and others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import structgen as sg

Format: TypeAlias = dict[str, Any]
Make: TypeAlias = Callable[[], "Format | str"]

TEXT = {"type": "any_text"}
SCHEMA = {"type": "json_schema", "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
PALINDROMES = 'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""'
LARKS_PALINDROMES = '"a" start "a" | "b" start "b" | "a" | "b"'


def tag(begin: Any, content: Any, end: Any) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(triggers: list[str], tags: list[Any], **more: Any) -> Format:
    return {"type": "triggered_tags", "triggers": triggers, "tags": tags, **more}


def dispatch(*rules: Any, **more: Any) -> Format:
    return {"type": "dispatch", "rules": [*map(list, rules)], **more}


def several(kind: str, content: Format, low: int = 0, high: int = -1) -> Format:
    return {"type": kind, "content": content, **({"min": low, "max": high} if kind == "repeat" else {})}


def row(*elements: Format) -> Format:
    return {"type": "sequence", "elements": list(elements)}


def one_of(*elements: Format) -> Format:
    return {"type": "or", "elements": list(elements)}


#: Formats, and what the refusal of each says, with its place.
REFUSED: dict[str, tuple[Any, str]] = {
    "a trigger in a trigger": (triggered(["<a", "<"], [tag("<a>", TEXT, "."), tag("<b>", TEXT, ".")]), "both begin"),
    "a pattern in a pattern": (
        dispatch(("a", TEXT), ("ba>", TEXT)), r"trigger 'ba>', as 'a' stands in it \(/\)",
    ),
    "an excluded trigger": (triggered(["<a"], [tag("<a", TEXT, ">")], excludes=["<"]), "never comes to"),
    "the end is a trigger": (tag("a", triggered(["<a"], [tag("<a", TEXT, ">")]), "<a"), "never comes"),
    "no trigger begins it": (triggered(["<"], [tag("a", TEXT, ">")]), r"no trigger begins this tag \(/tags/0\)"),
    "an empty trigger": (triggered([""], [tag("a", TEXT, ">")]), r"empty string \(/triggers\)"),
    "an empty exclude": ({"type": "any_text", "excludes": [""]}, r"empty string \(/excludes\)"),
    "no ends": (tag("<", TEXT, []), r"end is empty \(/end\)"),
    "a negative bound": ({**TEXT, "max_chars": -1}, r"max_chars is -1 \(/max_chars\)"),
    "a bound over all": ({**TEXT, "max_tokens": 1 << 31}, r"max_tokens is 2147483648 \(/max_tokens\)"),
    "an unknown token": (tag({"type": "token", "token": "<|no|>"}, TEXT, ">"), r"no token '<\|no\|>' \(/begin\)"),
    "an unknown id": (triggered(["<"], [tag("<", {"type": "token", "token": 1 << 40}, ">")]), "no token 1099"),
    "an unknown token behind a trigger": (
        dispatch(("<", {"type": "any_tokens", "exclude_tokens": ["<|no|>"]})), "no token",
    ),
    "an unknown type": ({"type": "tags"}, "no format of type 'tags'"),
    "an unknown field": ({**TEXT, "exclude": []}, "no field 'exclude'"),
    "no type": (tag("<", {}, ">"), r"no type \(/content\)"),
    "a list": (tag("<", row(), ">"), r"elements is empty \(/content/elements\)"),
    "a schema that nothing satisfies": (
        triggered(["<"], [tag("<", {"type": "json_schema", "json_schema": False}, ">")]), "/tags/0/content",
    ),
    "a grammar without a text": ({"type": "grammar", "grammar": 'root ::= "a" root'}, "complete the rule root"),
    "palindromes": (
        dispatch(("<", {"type": "grammar", "grammar": PALINDROMES})), r"ever more ways .* \(/rules/0/1, rule root"
    ),
    "a Lark grammar with a special token": (
        tag("<", {"type": "grammar", "grammar": "?start: word+ <|no|> // words\nword.2: /[a-z]+/"}, ">"),
        r"has TOKEN_NO, which nothing lexes \(/content, terminal TOKEN_NO\)\. Put special tokens",
    ),
    "a Lark grammar with a file": (
        {"type": "grammar", "grammar": "%import .secret.A\nstart: A"}, "no grammar secret.lark to import",
    ),
    "a Lark grammar with folders": (
        {"type": "grammar", "grammar": "start: A", "options": {"import_paths": ["/etc"]}}, "not 'import_paths'",
    ),
    "palindromes of Lark's": (
        {"type": "grammar", "grammar": f"start: {LARKS_PALINDROMES}", "options": {"ambiguity": "all"}},
        "ever more ways",
    ),
    "hidden left recursion": (
        {"type": "grammar", "grammar": 'start: n start "a" | "b"\nn: "c"?\n'},
        "start can begin with itself behind something empty",
    ),
    "no syntax": ({"type": "grammar", "grammar": "start: A", "syntax": "yacc"}, r"syntax is 'yacc' \(/syntax\)"),
    "no regex": (tag("<", {"type": "regex", "pattern": "("}, ">"), "/content"),
    "sequences nested 5,000 deep": (
        '{"type":"sequence","elements":[' * 5_000 + '{"type":"any_text"}' + "]}" * 5_000, "nested too deeply",
    ),
}  # fmt: skip


def nested(content: Format, levels: int) -> Format:
    for level in range(levels):
        content = tag(f"<{level}>", content, f"</{level}>")
    return content


def tools(schema: Format, number: int) -> Format:
    return triggered(["<f"], [tag(f"<f{n}>", schema, "</f>") for n in range(number)])


_RICH = {
    "type": "json_schema",
    "json_schema": {"type": "object", "additionalProperties": False, "minProperties": 1, "properties": {
        f"k{n}": {"anyOf": [{"type": "string", "maxLength": 40}, {"type": "array", "items": {"enum": [1, n, "x"]}}]}
        for n in range(30)
    }},
}  # fmt: skip

#: By family and sizes; whether one compiles or is refused is not said here.
FAMILIES: dict[str, tuple[Callable[[int], Format], tuple[int, ...]]] = {
    "tools": (partial(tools, SCHEMA), (10, 1_000, 20_000)),
    "rich tools": (partial(tools, _RICH), (10, 100, 1_000)),
    "tools of bounded text": (lambda n: tools({**TEXT, "max_chars": 100, "max_tokens": 9}, n), (10, 300)),
    "tags in tags": (partial(nested, TEXT), (10, 100, 240, 500)),
    "excludes": (lambda n: {**TEXT, "excludes": [f"{k:08}x" for k in range(n)]}, (100, 10_000, 900_000)),
    "an exclude": (lambda n: {**TEXT, "excludes": ["ab" * n]}, (1_000, 5_000_000)),
    "an end of bounded text": (lambda n: tag("<", {**TEXT, "max_chars": 9}, "ab" * n), (30, 1_000, 100_000)),
    "ends of bounded text": (
        lambda n: tag("<", {**TEXT, "max_chars": 9_999}, ["a" * k + "b" for k in range(n)]), (10, 100, 1_000)
    ),
    "a trigger": (lambda n: triggered(["ab" * n], [tag("ab" * n, TEXT, ">")]), (1_000, 500_000)),
    "triggers": (lambda n: dispatch(*((f"<{k:05}", TEXT) for k in range(n))), (100, 5_000)),
    "a thousand turns": (lambda n: several("repeat", several("repeat", tag("<", TEXT, ">"), n, n), n, n), (9, 1_000)),
    "the largest bounds": (
        lambda n: several("star", {**TEXT, "max_chars": n, "max_tokens": n}), (5, 1_000, (1 << 31) - 1)
    ),
    "text in a row": (lambda n: row(*[{**TEXT, "max_chars": 40}] * n), (3, 30, 300)),
    "one of many texts": (
        lambda n: one_of(*(row({**TEXT, "excludes": [f"x{k}"]}, tag("", TEXT, f"e{k}")) for k in range(n))), (9, 90)
    ),
    "counts in a star": (
        lambda n: several("star", {"type": "regex", "pattern": f"a{{1,{n}}}b?"}), (10, 1_000, 50_000)
    ),
    "tokens in a star": (
        lambda n: several("star", row(*[{"type": "any_tokens", "max_tokens": 2}] * n)), (3, 30, 3_000)
    ),
    "dispatches in dispatches": (
        lambda n: several("star", dispatch(("<", dispatch(("<", row(*[TEXT] * n)))))), (2, 50)
    ),
}  # fmt: skip

#: All of them, by name and size.
DEFINITIONS: dict[str, Callable[[], sg.StructuralTag]] = {
    **{f"tag: {name}": partial(sg.StructuralTag, format_) for name, (format_, _) in REFUSED.items()},
    **{
        f"tag: {name}, {size:,}": lambda family=family, size=size: sg.StructuralTag(family(size))  # type: ignore[misc]
        for name, (family, sizes) in FAMILIES.items()
        for size in sizes
    },
}
