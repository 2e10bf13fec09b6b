"""Where schemas come from: Python values, JSON text, files, and types that Pydantic can describe."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, get_origin

from ..errors import DefinitionError
from .json_text import dumps, loads

if TYPE_CHECKING:
    from ..system.types import Foreign

#: A schema as a JSON value.
Schema: TypeAlias = "bool | Mapping[str, object]"


def schema_text(source: object) -> str:
    """The schema that ``source`` stands for, as compact JSON. Raises as `read_schema` and `dumps`."""
    return dumps(read_schema(source))


def read_schema(source: object) -> Schema:
    """The schema that ``source`` stands for, as a JSON value; see `JsonSchema` for what it may be.

    Raises `DefinitionError` (with line and column for text, the path for a file) and `BudgetExceededError`.
    """
    if isinstance(source, bool | Mapping):
        return unwrapped(source)
    if isinstance(source, str):
        return _checked(_parse(source))
    if isinstance(source, os.PathLike):
        return _read_file(os.fspath(source))
    if source is None or isinstance(source, bytes | int | float | list | tuple | set):
        raise _not_a_schema(source)
    return describe(source)


def _parse(text: str) -> object:
    try:
        return loads(text)
    except DefinitionError as error:
        if text.endswith(".json") and "\n" not in text:
            error.remedy = "For a file, pass pathlib.Path(...)."
        raise


def _read_file(path: str) -> Schema:
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except OSError as error:
        what = f"cannot read the schema: {error.strerror}"
        raise DefinitionError(what, where=path, remedy="Check its name and permissions.") from error
    except ValueError as error:  # a NUL in the name, or bytes that are not UTF-8
        what = f"cannot read the schema: {error}"
        raise DefinitionError(what, where=path, remedy="Save it as UTF-8.") from error
    try:
        return _checked(loads(text))
    except DefinitionError as error:
        raise error.within(path) from error


def _checked(value: object) -> Schema:
    if isinstance(value, bool | Mapping):
        return unwrapped(value)
    raise _not_a_schema(value)


#: The members of what requests wrap a schema in.
_WRAPPER = frozenset({"type", "name", "description", "strict", "schema"})


def unwrapped(value: Schema) -> Schema:
    """The schema in a response format, such as OpenAI's ``{"name": ..., "strict": ..., "schema": ...}``."""
    if not isinstance(value, Mapping):
        return value
    is_response = value.get("type") in ("json_schema", "json_object")
    inner = value.get("json_schema") if is_response else None
    outer: Mapping[str, object] = inner if isinstance(inner, Mapping) else value
    is_typed = "type" in outer and not (outer is value and is_response)
    is_wrapper = outer.keys() <= _WRAPPER and not is_typed
    found = outer.get("schema", outer) if is_wrapper else outer
    return found if isinstance(found, bool | Mapping) else value


def _not_a_schema(value: object) -> DefinitionError:
    return DefinitionError(
        f"a schema is an object or a boolean, got {type(value).__name__}",
        remedy="Pass a dict, JSON text, a pathlib.Path, or a type such as list[int].",
    )


# -- types ---------------------------------------------------------------------------------------------------


def describe(annotation: Foreign) -> Schema:
    """The schema of a type or of a function's parameters, as Pydantic's `TypeAdapter` gives it.

    It is the schema of what Pydantic *validates*, so whatever a guide lets through can be parsed by
    ``TypeAdapter(annotation).validate_json``; see `pydantic_types` for what is added to Pydantic's own.

    Raises `DefinitionError` where Pydantic is missing, or has no JSON schema for it.
    """
    try:
        from inspect import isroutine

        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        from .pydantic_types import describe as described
    except ImportError as error:
        raise DefinitionError(
            f"the schema of {_shown(annotation)} takes Pydantic, which is not installed",
            remedy="pip install structgen[pydantic], or pass the schema itself.",
        ) from error
    if isroutine(annotation):
        _check_parameters(annotation)
    try:
        adapter = annotation if isinstance(annotation, TypeAdapter) else TypeAdapter(annotation)
        return described(adapter)
    except (PydanticUserError, ImportError, NameError, TypeError) as error:  # a forward reference; what is no type
        what = str(error).split("\n")[0].rstrip(".")
        raise DefinitionError(
            f"Pydantic has no JSON schema for {_shown(annotation)}: {what}",
            remedy="Pass a model, dataclass, TypedDict, annotation or function, or the schema itself.",
        ) from error


def _check_parameters(function: Callable[..., object]) -> None:
    """A call's arguments are an object, so each parameter needs a name to be passed by."""
    from inspect import signature

    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # some builtins have none; Pydantic says so
        return
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise DefinitionError(
                f"the parameter {parameter.name!r} of {_shown(function)} cannot be passed by name",
                remedy="Wrap it in a function whose parameters can.",
            )


def _shown(annotation: object) -> str:
    named = get_origin(annotation) is None  # list[int] would be called "list"
    return str((named and getattr(annotation, "__qualname__", None)) or annotation)
