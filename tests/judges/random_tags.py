"""Random structural tags over a small alphabet, and texts and rows of tokens of their indexes."""

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
from judges.guides import EACH_BYTE, allowed, with_end
from judges.json_tokens import random_text
from judges.structural_tags import Format
from judges.tag_judge import STYLES, readings
from structgen.definitions import StructuralTag
from structgen.errors import DefinitionError

LETTERS = "ab<>/1"

#: A grammar for XGrammar and for GBNF, and what is among its texts.
GRAMMARS: dict[str, Callable[[str], bool]] = {
    'root ::= "a" root "b" | "/"': lambda text: (
        re.fullmatch("a*/b*", text) is not None and len(text) % 2 == 1 and text.count("a") == text.count("b")
    ),
    'root ::= [ab]? rest\nrest ::= "" | ">"': lambda text: re.fullmatch("[ab]?>?", text) is not None,
}

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

#: Names of special tokens that stand in texts, too.
SPECIAL = ("<a>", "1", "/>")

_strings = st.one_of(
    st.text(LETTERS, min_size=1, max_size=3), st.sampled_from(["<a>", "b<a>", "<a>1", "<a></", "</>", "a/>b"])
)
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
    st.builds(lambda value: {"type": "const_string", "value": value}, st.one_of(st.just(""), _strings)),
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


# -- formats of tokens ------------------------------------------------------------------------------

_PIECES = [
    "ab", "ba", "<a", "a>", "</", "</a>", "<a>b", ">a", "//", "aa", "b<", "><", "11", '"<', "é", "aé<",
    "abab<", "a>/b", "<a>",
]  # fmt: skip
_TEXTS: list[bytes | None] = [*EACH_BYTE, *(piece.encode() for piece in _PIECES), "é".encode()[:1], b"aa"]
TOKENS: list[bytes | None] = [*_TEXTS, *[None] * (len(SPECIAL) + 2)]
IDS = {name: len(_TEXTS) + number for number, name in enumerate((*SPECIAL, "<|none|>"))}

#: Special tokens without bytes, two of which have names that are tokens, too; the last token ends a text.
VOCABULARY = sg.Vocabulary.from_bytes(TOKENS, eos_ids=[len(TOKENS) - 1], special_tokens=IDS)

#: The same without special tokens.
PLAIN = with_end(_TEXTS)
TASTE = [*map(ord, LETTERS), *range(256, len(TOKENS) - 1)]

_token = st.one_of(
    st.sampled_from([*SPECIAL, "<|none|>"]), st.sampled_from(["a", "ab", "aa", "</"]), st.sampled_from([97, 256, 257])
)
_token_format = st.builds(lambda token: {"type": "token", "token": token}, _token)
_tokens = st.lists(_token, max_size=2, unique=True)
_bounds = st.one_of(
    *(
        st.fixed_dictionaries({name: st.integers(0, 4) for name in names})
        for names in (("max_chars",), ("max_tokens",), ("max_chars", "max_tokens"))
    )
)
_token_leaves: SearchStrategy[Format] = st.one_of(
    _leaves,
    _token_format,
    st.builds(lambda excludes, more: {"type": "any_text", "excludes": excludes, **more}, _some, _bounds),
    st.builds(lambda tokens: {"type": "exclude_token", "exclude_tokens": tokens}, _tokens),
    st.builds(lambda tokens: {"type": "any_tokens", "exclude_tokens": tokens}, _tokens),
    st.builds(
        lambda tokens, most: {"type": "any_tokens", "exclude_tokens": tokens, "max_tokens": most},
        _tokens,
        st.integers(0, 3),
    ),
)


@st.composite
def _token_triggered(draw: st.DrawFn, content: SearchStrategy[Format]) -> Format:
    triggers = draw(st.lists(_token, min_size=1, max_size=2, unique=True))
    tags = [
        {**draw(_token_tags(content)), "begin": {"type": "token", "token": trigger}}
        for trigger in triggers
        for _ in range(draw(st.integers(1, 2)))
    ]
    flags = {name: draw(st.booleans()) for name in ("at_least_one", "stop_after_first")}
    excludes = draw(_tokens)
    return {
        "type": "token_triggered_tags", "trigger_tokens": triggers, "tags": tags, "exclude_tokens": excludes, **flags
    }  # fmt: skip


@st.composite
def _token_dispatch(draw: st.DrawFn, content: SearchStrategy[Format]) -> Format:
    rules = draw(st.lists(st.tuples(_token, content).map(list), min_size=1, max_size=2))
    return {"type": "token_dispatch", "rules": rules, "loop": draw(st.booleans()), "exclude_tokens": draw(_tokens)}


def _token_tags(content: SearchStrategy[Format]) -> SearchStrategy[Format]:
    edge = st.one_of(_token_format, _strings)
    return st.builds(
        _tag, edge, content, st.one_of(edge, st.lists(st.one_of(edge, st.just("")), min_size=1, max_size=3))
    )


#: Formats of texts and tokens, of a few levels.
token_formats: SearchStrategy[Format] = st.recursive(
    _token_leaves,
    lambda content: st.one_of(
        _larger(content), _token_tags(content), _token_triggered(content), _token_dispatch(content)
    ),
    max_leaves=6,
)


# -- indexes, and texts and rows of tokens of them --------------------------------------------------

#: What fails is small enough to read; making it smaller takes minutes.
PHASES = [phase for phase in Phase if phase is not Phase.shrink]

#: All short texts over the alphabet.
SHORT = ["".join(letters) for length in range(4) for letters in product(LETTERS, repeat=length)]


def compiled(
    format_: Format,
    vocabulary: sg.Vocabulary = VOCABULARY,
    *,
    whitespace: str = "single",
    most: int | None = 20,
    **options: Any,
) -> sg.Index:
    definition = StructuralTag(format_, whitespace=whitespace, max_whitespace=most)
    return sg.compile(definition, vocabulary, base_rows=False, **options)


def drawn(format_: Format, vocabulary: sg.Vocabulary = VOCABULARY, **options: Any) -> sg.Index:
    """The index of a random format; one is dropped in which a trigger is hidden, or two of them begin a tag."""
    try:
        return compiled(format_, vocabulary, **options)
    except DefinitionError as error:
        if not re.search("free text never comes to|both begin this tag", error.what):
            raise
        reject()


def texts_of(index: sg.Index, rng: Random, number: int) -> list[str]:
    """Texts that an index lets through whose vocabulary has no special tokens, mostly of the alphabet."""
    found = (random_text(index, TASTE[: -len(SPECIAL) - 1], [], rng, 6) for _ in range(number))
    return [text.decode() for text in found if text is not None]


def rows_of(index: sg.Index, rng: Random, number: int) -> list[list[int]]:
    """Rows of tokens that an index lets through, mostly of the alphabet."""
    return [row for _ in range(number) if (row := row_behind(index, [], rng)) is not None]


def row_behind(index: sg.Index, row: list[int], rng: Random, most: int = 30) -> list[int] | None:
    """A row that begins so and is let through, without its EOS; None where it does not come to an end."""
    guide, row = sg.Guide(index), row[:]
    assert all(guide.advance(token) for token in row), row
    end = VOCABULARY.eos_ids[0]
    while len(row) < most:
        ids = allowed(guide)
        assert ids, row
        if end in ids and (len(ids) == 1 or rng.random() < 0.3 + len(row) / most):
            return row
        row.append(rng.choice([token for token in TASTE if token in ids] or [token for token in ids if token != end]))
        assert guide.advance(row[-1]), row
    return None


def mutated_row(row: list[int], rng: Random) -> list[int]:
    """A row with a token more, less or another one, or written otherwise."""
    at = rng.randrange(len(row) + 1)
    if at < len(row) and rng.random() < 0.5:
        names = {token: name.encode() for name, token in IDS.items()}
        return [*row[:at], *(TOKENS[row[at]] or names[row[at]]), *row[at + 1 :]]
    return row[:at] + rng.choice([[], [rng.choice(TASTE)]]) + row[at + rng.randrange(2) :]


def mutated(text: str, rng: Random) -> str:
    """A text with a letter more, less or another one."""
    at = rng.randrange(len(text) + 1)
    return str(text[:at] + rng.choice(["", *LETTERS]) + text[at + rng.randrange(2) :])
