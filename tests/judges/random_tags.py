"""Random structural tags over a small alphabet, and texts of their indexes."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

from hypothesis import Phase, reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft202012Validator

import structgen as sg
from judges.guides import with_bytes
from judges.json_tokens import random_text
from judges.structural_tags import Format
from judges.tag_judge import STYLES, readings
from structgen.definitions import StructuralTag
from structgen.errors import DefinitionError

LETTERS = "ab<>/1"

#: A grammar for XGrammar and for GBNF, and what is among its texts.
GRAMMARS: dict[str, Callable[[str], bool]] = {
    'root ::= "a" root "b" | "/"': lambda text: re.fullmatch("a*/b*", text) is not None and len(text) % 2 == 1
    and text.count("a") == text.count("b"),
    'root ::= [ab]? rest\nrest ::= "" | ">"': lambda text: re.fullmatch("[ab]?>?", text) is not None,
}  # fmt: skip

#: A schema, and what is among its texts.
SCHEMAS: list[tuple[object, Callable[[str], bool]]] = [
    ({"enum": [1, 11, "a"]}, lambda text: text in ("1", "11", '"a"')),
    ({"type": "string", "pattern": "^<a*$"}, lambda text: re.fullmatch('"<a*"', text) is not None),
]

_OBJECT = {"type": "object", "additionalProperties": False}

#: Schemas of objects that are written in tags; no string in them goes on for long.
MEMBERS: list[dict[str, Any]] = [
    {**_OBJECT, "properties": {"a": {"enum": ["a", "1>"]}, "b": {"enum": [1, 11]}}, "required": ["a"]},
    {**_OBJECT, "properties": {"a": {**_OBJECT, "properties": {"b": {"type": "null"}}}, "b": {"type": "boolean"}}},
    {**_OBJECT, "properties": {"b": {"type": "array", "items": {"enum": ["<", 1]}, "maxItems": 2}}},
    {**_OBJECT, "properties": {"a": {"type": "string", "maxLength": 2}}, "minProperties": 1},
]


def _is_tagged(schema: dict[str, Any], style: str) -> Callable[[str], bool]:
    is_valid = Draft202012Validator(schema).is_valid
    return lambda text: any(map(is_valid, readings(text, style)))


#: For `Interpreter`.
LEAVES = (
    GRAMMARS
    | {repr((schema, "json")): check for schema, check in SCHEMAS}
    | {repr((schema, style)): _is_tagged(schema, style) for schema in MEMBERS for style in STYLES}
)

REGEXES = ("a*", "a|ab", "[^a]b?", "(<|>)+", "</?a>", "1{2,30}")

_strings = st.text(LETTERS, min_size=1, max_size=3)
_some = st.lists(_strings, max_size=2, unique=True)


def _tags(content: SearchStrategy[Format]) -> SearchStrategy[Format]:
    ends = st.one_of(
        _strings, st.just(""), st.lists(st.one_of(_strings, st.just("")), min_size=1, max_size=3, unique=True)
    )
    return st.builds(_tag, st.one_of(_strings, st.just("")), content, ends)


def _tag(begin: str, content: Format, end: str | list[str]) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _styled(schema: dict[str, Any], style: str) -> Format:
    return {"type": "json_schema", "json_schema": schema, "style": style}


_leaves: SearchStrategy[Format] = st.one_of(
    st.builds(lambda value: {"type": "const_string", "value": value}, st.text(LETTERS, max_size=2)),
    st.sampled_from([{"type": "regex", "pattern": regex} for regex in REGEXES]),
    st.sampled_from([{"type": "grammar", "grammar": grammar} for grammar in GRAMMARS]),
    st.sampled_from([{"type": "json_schema", "json_schema": schema} for schema, _ in SCHEMAS]),
    st.builds(_styled, st.sampled_from(MEMBERS), st.sampled_from([*STYLES])),
    st.builds(lambda excludes: {"type": "any_text", "excludes": excludes}, _some),
    st.just({"type": "any_text"}),
)


@st.composite
def _triggered(draw: st.DrawFn, content: SearchStrategy[Format]) -> Format:
    triggers = draw(st.lists(_strings, min_size=1, max_size=2, unique=True))
    tags = []
    for trigger in triggers:
        for _ in range(draw(st.integers(1, 2))):
            tag = draw(_tags(content))
            tags.append({**tag, "begin": trigger + tag["begin"]})
    flags = {name: draw(st.booleans()) for name in ("at_least_one", "stop_after_first")}
    excludes = draw(st.one_of(st.just([]), _some))
    return {"type": "triggered_tags", "triggers": triggers, "tags": tags, "excludes": excludes, **flags}


@st.composite
def _separated(draw: st.DrawFn, content: SearchStrategy[Format]) -> Format:
    tags = draw(st.lists(_tags(content), min_size=1, max_size=2))
    flags = {name: draw(st.booleans()) for name in ("at_least_one", "stop_after_first")}
    return {"type": "tags_with_separator", "tags": tags, "separator": draw(st.text(LETTERS, max_size=1)), **flags}


@st.composite
def _dispatch(draw: st.DrawFn, content: SearchStrategy[Format]) -> Format:
    rules = draw(st.lists(st.tuples(_strings, content).map(list), min_size=1, max_size=2))
    excludes = draw(st.one_of(st.just([]), _some))
    return {"type": "dispatch", "rules": rules, "loop": draw(st.booleans()), "excludes": excludes}


def _larger(content: SearchStrategy[Format]) -> SearchStrategy[Format]:
    several, rows = st.lists(content, min_size=1, max_size=3), st.sampled_from(["sequence", "or"])
    bounds = st.sampled_from([(0, 0), (0, 1), (0, 2), (1, 1), (2, 3), (1, -1), (3, -1)])
    return st.one_of(
        st.builds(lambda kind, parts: {"type": kind, "elements": parts}, rows, several),
        st.builds(
            lambda kind, part: {"type": kind, "content": part}, st.sampled_from(["optional", "star", "plus"]), content
        ),
        st.builds(lambda b, part: {"type": "repeat", "min": b[0], "max": b[1], "content": part}, bounds, content),
        _tags(content),
        _tags(content),
        _triggered(content),
        _separated(content),
        _dispatch(content),
    )


#: Formats without tokens, of a few levels.
formats: SearchStrategy[Format] = st.recursive(_leaves, _larger, max_leaves=6)


# -- indexes and texts of them ----------------------------------------------------------------------

VOCABULARY = with_bytes(
    "ab", "ba", "<a", "a>", "</", "</a>", "<a>b", ">a", "//", "aa", "b<", "><", "11", '"<', "é", "aé<",
    "abab<", "a>/b",
)  # fmt: skip
_TASTE = [*map(ord, LETTERS), *range(257, VOCABULARY.size)]

#: What fails is small enough to read; making it smaller takes minutes.
PHASES = [phase for phase in Phase if phase is not Phase.shrink]

#: All short texts over the alphabet.
SHORT = ["".join(letters) for length in range(4) for letters in product(LETTERS, repeat=length)]


def compiled(format_: Format, whitespace: str = "single", most: int | None = 20, **options: Any) -> sg.Index:
    definition = StructuralTag(format_, whitespace=whitespace, max_whitespace=most)
    return sg.compile(definition, VOCABULARY, base_rows=False, **options)


def drawn(format_: Format, **options: Any) -> sg.Index:
    """The index of a random format; one is dropped in which a trigger is hidden, or two of them begin a tag."""
    try:
        return compiled(format_, **options)
    except DefinitionError as error:
        if not re.search("free text never comes to|both begin this tag", error.what):
            raise
        reject()


def texts_of(index: sg.Index, rng: Random, number: int) -> list[str]:
    """Texts that an index lets through, mostly of the alphabet."""
    found = (random_text(index, _TASTE, [], rng, 6) for _ in range(number))
    return [text.decode() for text in found if text is not None]


def mutated(text: str, rng: Random) -> str:
    """A text with a letter more, less or another one."""
    at = rng.randrange(len(text) + 1)
    return str(text[:at] + rng.choice(["", *LETTERS]) + text[at + rng.randrange(2) :])
