"""Random structural tags over a small alphabet."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from judges.structural_tags import Format

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

#: For `Interpreter`.
LEAVES = GRAMMARS | {repr(schema): check for schema, check in SCHEMAS}

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


_leaves: SearchStrategy[Format] = st.one_of(
    st.builds(lambda value: {"type": "const_string", "value": value}, st.text(LETTERS, max_size=2)),
    st.sampled_from([{"type": "regex", "pattern": regex} for regex in REGEXES]),
    st.sampled_from([{"type": "grammar", "grammar": grammar} for grammar in GRAMMARS]),
    st.sampled_from([{"type": "json_schema", "json_schema": schema} for schema, _ in SCHEMAS]),
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
