"""What a client is told of a request that is malformed: the error's class, what, where, and what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from structgen.definitions import Definition
from structgen.errors import DefinitionError, EmptyLanguageError, StructgenError
from structgen.integrations.requests import (
    Named,
    check_definition,
    read_engine_request,
    read_request,
    read_response_format,
)

FUNCTION = {"name": "lamp", "parameters": {"type": "object"}}
LAMP = {"type": "function", "function": FUNCTION}
IMPOSSIBLE = {"type": "object", "properties": {"a": {"type": "string", "const": 1}}, "required": ["a"]}
ANY = {"type": "any_text"}


def tag(**fields: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": "<", "content": ANY, "end": ">", **fields}


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", **function}}


def allowed(**fields: Any) -> dict[str, Any]:
    return {"tool_choice": {"type": "allowed_tools", **fields}}


def chosen(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def sequence(*elements: Any) -> dict[str, Any]:
    return {"type": "sequence", "elements": list(elements)}


def triggered(*triggers: Any, begin: str) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": list(triggers), "tags": [tag(begin=begin)]}


#: A structural tag, what is said of it, and where.
TAGS: list[tuple[Any, str, str]] = [
    ({}, "has no type", "/"),
    ({"type": "tag"}, "has no begin", "/"),
    ({"type": "poem"}, "no format of type 'poem'", "/"),
    ({"type": "structural_tag"}, "no format of type 'structural_tag'", "/"),
    ({"type": "structural_tag", "format": 3}, "got int", "/"),
    (tag(colour=1), "no field 'colour'", "/"),
    (tag(begin=7), "begin is", "/begin"),
    (sequence(), "elements is empty", "/elements"),
    (sequence(ANY, {"type": "regex", "pattern": "("}), "unterminated group", "/elements/1"),
    (sequence({"type": "json_schema", "json_schema": {"type": "thing"}}), "'type' must be one of", "/elements/0"),
    ({"type": "grammar", "grammar": "root ::= x"}, "rule x is not defined", "line 1"),
    ({"type": "repeat", "content": ANY, "min": 5, "max": 2}, "min is 5, max is 2", "/"),
    ({"type": "token", "token": 1 << 25}, "no vocabulary has the token", "token"),
    (triggered("<b", begin="<a"), "no trigger begins", "/tags/0"),
    (triggered("<a", "<a>", begin="<a>"), "both begin", "/tags/0"),
    ({"structures": 1}, "no list", "/structures"),
    ({"structures": [{"begin": "<"}], "triggers": ["<"]}, "a begin, a schema and an end", "/structures/0"),
    ({"structures": [{"begin": "<", "end": ">"}], "triggers": "<"}, "triggers is", "/triggers"),
    ({"structures": [], "triggers": ["<"]}, "tags is empty", "/tags"),
]

#: What stands beside ``tools``, the tools, what is said, and where.
TOOLS: list[tuple[dict[str, Any], Any, str, str]] = [
    ({}, "lamp", "tools is a str", "tools"),
    ({}, [3], "got int", "tools[0]"),
    ({}, [LAMP, {"type": "retrieval"}], "type 'retrieval'", "tools[1]"),
    ({}, [{"type": "function"}], "name is a string, got NoneType", "tools[0]"),
    ({}, [{"type": "function", "function": 3}], "got int", "tools[0]"),
    ({}, [tool(name="a b")], "the name 'a b'", "tools[0]"),
    ({}, [LAMP, LAMP], "two tools", "tools[1]"),
    ({}, [tool(strict="yes")], "strict is true or false", "tools[0]"),
    ({}, [tool(parameters=[])], "got list", "tools[0]"),
    ({}, [tool(parameters={"type": "x"})], "'type' must be one of", "/type"),
    ({}, [tool(parameters=IMPOSSIBLE)], "no value satisfies", "/properties/a"),
    ({"tool_choice": "sometimes"}, [LAMP], "no tool has the name 'sometimes'", "tool_choice"),
    ({"tool_choice": 3}, [LAMP], "there is no tool_choice 3", "tool_choice"),
    ({"tool_choice": {"type": "function"}}, [LAMP], "by its function's name", "tool_choice"),
    ({"tool_choice": chosen("door")}, [LAMP], "no tool has the name 'door'", "tool_choice"),
    (allowed(allowed_tools={"mode": "x"}), [LAMP], "have a mode", "tool_choice"),
    (allowed(mode="auto", tools=[chosen("door")]), [LAMP], "'door'", "tool_choice"),
    ({"tool_choice": "required"}, [], "there is none", "tool_choice"),
    ({"parallel": 3}, [LAMP], "parallel is", "parallel"),
    ({"reasoning": "some"}, [LAMP], "reasoning is", "reasoning"),
    ({"style": "esperanto"}, [LAMP], "no tool style 'esperanto'", "style"),
    ({"style": "auto"}, [LAMP], "needs a chat template", "style"),
    ({"tokenizer": "x"}, [LAMP], "no option 'tokenizer'", "tokenizer"),
    ({"whitespace": 7.5}, [LAMP], "whitespace is 7.5", "whitespace"),
]

FORMATS: list[tuple[Any, str, str]] = [
    ("json", "none that is known", "type"),
    ({}, "none that is known", "type"),
    ({"type": ["json_schema"]}, "none that is known", "type"),
    ({"type": "json_schema"}, "no object json_schema", "json_schema"),
    ({"type": "json_schema", "json_schema": {"name": "x"}}, "no object schema", "json_schema"),
    ({"type": "structural_tag", "format": {"type": "tag"}}, "has no begin", "/"),
]


def asked(definition: Definition | Named | None) -> None:
    assert definition is not None
    assert not isinstance(definition, Named)
    check_definition(definition)


def check(error: StructgenError, said: str, where: str) -> None:
    assert isinstance(error, DefinitionError)
    assert said in error.what
    assert where in error.where
    assert error.remedy
    assert len(str(error)) < 2_000


@pytest.mark.parametrize(("format", "said", "where"), TAGS, ids=json.dumps)
def test_structural_tags(format: Any, said: str, where: str) -> None:
    with pytest.raises(StructgenError) as caught:
        asked(read_request({"structural_tag": format}))
    check(caught.value, said, where)
    with pytest.raises(StructgenError) as caught:
        asked(read_engine_request("STRUCTURAL_TAG", json.dumps(format)))
    check(caught.value, said, where)


@pytest.mark.parametrize(("options", "tools", "said", "where"), TOOLS, ids=json.dumps)
def test_tools(options: dict[str, Any], tools: Any, said: str, where: str) -> None:
    with pytest.raises(StructgenError) as caught:
        asked(read_request({"tools": tools, "style": "hermes", **options}))
    check(caught.value, said, where)
    assert isinstance(caught.value, EmptyLanguageError) == ("no value" in said)


@pytest.mark.parametrize(("given", "said", "where"), FORMATS, ids=json.dumps)
def test_response_formats(given: Any, said: str, where: str) -> None:
    with pytest.raises(StructgenError) as caught:
        asked(read_response_format(given))
    check(caught.value, said, where)
