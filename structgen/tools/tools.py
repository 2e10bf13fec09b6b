"""Tools, and the choice among them, as callers write them: OpenAI's shapes, Python functions, Pydantic models."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..definitions.json_text import dumps
from ..definitions.schema_sources import Schema, read_schema
from ..errors import DefinitionError

#: A tool's name is written into every style as it is, so it holds nothing that would have to be escaped in one.
_NAME = re.compile(r"[\w.:/-]{1,256}")

#: The name of a schema of arguments that stands within another one.
_RESOURCE = "urn:structgen:arguments"

#: Drafts in which a reference stands alone, and what may be beside it all the same.
_REFERENCE_ALONE = re.compile(r"draft-0[3-7]")
_BESIDE = frozenset({"$schema", "definitions", "$defs"})

#: Tools of one request.
_MOST_TOOLS = 10_000

#: Which calls a reply may hold: none; any number; at least one; exactly one, of the only tool that is left.
Mode = Literal["none", "auto", "required", "named"]


@dataclass(frozen=True)
class Tool:
    """A tool's name, the schema of its arguments, where that stands, for messages, and whether it closes objects."""

    name: str
    parameters: Schema
    where: str
    strict: bool = False


@dataclass(frozen=True)
class ToolChoice:
    """Which tools may be called, and whether one must be."""

    mode: Mode
    tools: tuple[Tool, ...]


def read_tools(tools: object, *, lenient: bool = False) -> tuple[Tool, ...]:
    """The tools of a request, in their order; see `tool_calls` for what each may be.

    Where it is ``lenient``, parameters that are no schema stand in one that is relaxed when it is compiled.

    Raises `DefinitionError`, with the tool's place in the list.
    """
    if tools is None:
        return ()
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise DefinitionError(f"tools are a list, got {type(tools).__name__}", where="tools", remedy="Pass a list.")
    found: dict[str, Tool] = {}
    for i, each in enumerate(tools):
        if i == _MOST_TOOLS:
            raise DefinitionError(f"there are more than {_MOST_TOOLS} tools")
        try:
            name, place, source, strict = _read(each)
        except DefinitionError as error:
            raise error.within(f"tools[{i}]") from error
        where = f"{name!r}: tools[{i}]{place}"
        try:
            schema = read_schema(source)
        except DefinitionError as error:
            if not lenient or not isinstance(source, str | int | float | list):
                raise error.within(where) from error
            schema = {"type": "object", "properties": source}
        tool = Tool(name, _of_objects(schema), where, strict)
        if tool.name in found:
            what = f"two tools have the name {tool.name!r}"
            raise DefinitionError(what, where=f"tools[{i}]", remedy="Rename one of them.")
        found[tool.name] = tool
    return tuple(found.values())


def _of_objects(schema: Schema) -> Schema:
    """A schema of arguments, of which it takes the objects alone, whatever it says of other values, or lacks."""
    if not isinstance(schema, Mapping):
        return {"type": "object"} if schema else schema
    if schema.get("type") == "object" and "$ref" not in schema:
        return schema
    if '"#"' in dumps(schema):  # what refers to the root goes on to take other values
        within = {"$id": _RESOURCE, **schema}
        return {"type": "object", "allOf": [{"$ref": within["$id"]}], "$defs": {"arguments": within}}
    kind, clauses = schema.get("type"), schema.get("allOf", [])
    if not isinstance(clauses, list):
        return {**schema, "type": "object"}  # which is refused, or left out
    if "$ref" in schema:  # beside which older drafts read nothing
        clauses = [*clauses, {"$ref": schema["$ref"]}]
        is_old = _REFERENCE_ALONE.search(str(schema.get("$schema"))) is not None
        schema = {key: each for key, each in schema.items() if (key in _BESIDE if is_old else key != "$ref")}
        kind, clauses = (None, clauses[-1:]) if is_old else (kind, clauses)
    if kind is None or (isinstance(kind, list) and "object" in kind):
        kind = "object"
    elif kind != "object":
        clauses = [*clauses, {"type": "object"}]
    return {**schema, "type": kind, **({"allOf": clauses} if clauses else {})}


def _read(tool: object) -> tuple[str, str, object, bool]:
    """A tool's name, the place and the source of the schema of its arguments, and whether it is strict."""
    if not isinstance(tool, Mapping):
        return _from_python(tool)
    function = tool.get("function", tool)
    if tool.get("type", "function") != "function":
        raise DefinitionError(
            f"a tool of type {tool['type']!r} is not written out by the model",
            remedy='Tools are functions: {"type": "function", "function": {"name": ..., "parameters": ...}}.',
        )
    if not isinstance(function, Mapping):
        what = f"a tool's function is an object, got {type(function).__name__}"
        raise DefinitionError(what, remedy='Write {"name": ..., "parameters": ...}.')
    strict, parameters = function.get("strict"), function.get("parameters")
    if strict is not None and not isinstance(strict, bool):
        raise DefinitionError(f"strict is true or false, got {strict!r}", remedy="Leave it out for true.")
    unconstrained = strict is False or parameters is None
    place = ".parameters" if function is tool else ".function.parameters"
    return _name(function.get("name")), place, True if unconstrained else parameters, bool(strict)


def _from_python(tool: object) -> tuple[str, str, object, bool]:
    if not (inspect.isclass(tool) or inspect.isroutine(tool)):
        raise DefinitionError(
            f"a tool is a dict, a function or a model, got {type(tool).__name__}",
            remedy='Pass {"type": "function", "function": {"name": ..., "parameters": ...}}, or a Python function.',
        )
    return _name(tool.__name__), "", tool, False


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise DefinitionError(f"a tool's name is a string, got {type(name).__name__}", remedy="Give it a name.")
    if not _NAME.fullmatch(name):
        raise DefinitionError(
            f"a tool cannot have the name {name!r}",
            remedy="A name is of 1 to 256 letters, digits and the characters _ - . : /",
        )
    return name


# -- the choice ----------------------------------------------------------------------------------------------


def read_choice(tool_choice: object, tools: tuple[Tool, ...]) -> ToolChoice:
    """What a ``tool_choice`` leaves of the tools; see `tool_calls` for what it may be.

    Raises `DefinitionError` for what is no choice, for names that no tool has, and where a tool must be called and
    there is none.
    """
    if tool_choice is None or tool_choice == "auto":
        return ToolChoice("auto" if tools else "none", tools)
    if tool_choice == "none":
        return ToolChoice("none", ())
    if tool_choice == "required":
        return _required(tools)
    if isinstance(tool_choice, str):
        return _named(tool_choice, tools)
    if isinstance(tool_choice, Mapping):
        if tool_choice.get("type") == "function":
            return _named(_referred(tool_choice), tools)
        if tool_choice.get("type") == "allowed_tools":
            return _allowed(tool_choice.get("allowed_tools", tool_choice), tools)
    raise DefinitionError(
        f"there is no tool_choice {tool_choice!r}",
        where="tool_choice",
        remedy='Use "auto", "none", "required", the name of a tool, or {"type": "function" or "allowed_tools", ...}.',
    )


def _required(tools: tuple[Tool, ...]) -> ToolChoice:
    if not tools:
        raise DefinitionError(
            "a tool must be called, and there is none", where="tool_choice", remedy='Pass tools, or tool_choice="auto".'
        )
    return ToolChoice("required", tools)


def _allowed(allowed: object, tools: tuple[Tool, ...]) -> ToolChoice:
    references = allowed.get("tools") if isinstance(allowed, Mapping) else None
    mode = allowed.get("mode") if isinstance(allowed, Mapping) else None
    if not isinstance(references, list | tuple) or mode not in ("auto", "required"):
        raise DefinitionError(
            'allowed_tools have a mode, "auto" or "required", and a list of tools',
            where="tool_choice",
            remedy='Write {"mode": "auto", "tools": [{"type": "function", "function": {"name": ...}}]}.',
        )
    by_name = {tool.name: tool for tool in tools}
    for each in references:
        if _referred(each) not in by_name:
            raise _no_tool(_referred(each), tools)
    names = {_referred(each) for each in references}
    left = tuple(tool for tool in tools if tool.name in names)
    return _required(left) if mode == "required" else ToolChoice("auto" if left else "none", left)


def _referred(reference: object) -> str:
    """The name in ``{"type": "function", "function": {"name": ...}}``, or in the flat shape of the newer API."""
    if isinstance(reference, str):
        return reference
    function = reference.get("function", reference) if isinstance(reference, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise DefinitionError(
            "a tool is chosen by its function's name",
            where="tool_choice",
            remedy='Write {"type": "function", "function": {"name": ...}}.',
        )
    return name


def _named(name: object, tools: tuple[Tool, ...]) -> ToolChoice:
    for tool in tools:
        if tool.name == name:
            return ToolChoice("named", (tool,))
    raise _no_tool(name, tools)


def _no_tool(name: object, tools: tuple[Tool, ...]) -> DefinitionError:
    shown = ", ".join(tool.name for tool in tools[:20]) + (", ..." if len(tools) > 20 else "")
    return DefinitionError(
        f"no tool has the name {name!r}", where="tool_choice", remedy=f"There are: {shown or 'none'}."
    )
