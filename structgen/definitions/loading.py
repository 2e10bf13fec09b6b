"""Definitions by name: from paths on disk, and from objects in Python modules.

====================  ===================================================================================
``NAME.regex``        one pattern, UTF-8, as it stands; one line break at the end of the file is dropped
``NAME.words``        a choice: one word a line; blank lines and lines that begin with ``#`` are skipped
``NAME.json``         a JSON Schema
``NAME.tag.json``     a structural tag
``NAME.tools.json``   tools as of a request, a list, or an object with ``tools`` and options; for engines alone
``NAME.lark``         a grammar in Lark's syntax, whose rule ``start`` a whole text is
``NAME.gbnf``         a grammar in llama.cpp's GBNF, whose rule ``root`` a whole text is
``NAME.ebnf``         one in XGrammar's EBNF
``*.toml``            a manifest: a table ``[definitions.NAME]`` for each definition, with one of
                      ``regex = "..."`` (and ``flags = "ims"``), ``words = ["...", ...]``,
                      ``json_schema = '...'``, ``structural_tag = '...'`` or ``tools = '...'`` (JSON text, or tables),
                      ``python = "MODULE:NAME"``, or ``file = "..."``, a path relative to the manifest;
                      schemas take the options of `JsonSchema` as further keys, structural tags
                      those of `StructuralTag`, and tools what stands beside them in a request; regexes
                      and files with EBNF take ``dialect``; ``for`` names the engines that ask for it, of one
                      definition or, above them, of all
``MODULE:NAME``       an object of an importable module: a definition, a dict, a type or a function. Modules
                      are looked for in the current folder first. Importing one runs it.
====================  ===================================================================================

Another kind of file is one more entry in `READERS`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DefinitionError, StructgenError
from .tool_request import TOOL_OPTIONS, ToolRequest
from .values import (
    DIALECT_FLAGS,
    EBNF_DIALECTS,
    TAG_OPTIONS,
    Definition,
    Ebnf,
    Gbnf,
    Grammar,
    JsonSchema,
    Regex,
    StructuralTag,
    as_definition,
)

if TYPE_CHECKING:
    from ..system.types import Foreign, JsonMap

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found]

#: The letters that a manifest's ``flags`` may hold, as in an inline ``(?ims)``.
FLAG_LETTERS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}

#: The keys of a manifest that say what a definition is, and those that a JSON Schema takes besides.
SOURCES = ("regex", "words", "json_schema", "structural_tag", "tools", "python", "file")
SCHEMA_OPTIONS = tuple(field.name for field in fields(JsonSchema) if field.init)

#: An object in a module, as in packaging's entry points.
_OBJECT = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)")

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class NamedDefinition:
    """A definition with its name and its origin.

    Parameters
    ----------
    name:
        The file name without its suffix, the name in a manifest, or the object's name in its module.
    definition:
        The definition.
    path:
        The file, or ``MODULE:NAME``, as the caller wrote it.
    line:
        The line on which it begins, from 1; 0 for an object in a module.
    said:
        The options that are set there; ``"choice"`` for a list of words. An engine's operator sets the others.
    engines:
        The engines that a manifest names for it.
    """

    name: str
    definition: Definition
    path: Path
    line: int = 1
    said: frozenset[str] = frozenset()
    engines: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """``path:line``, for messages."""
        return f"{self.path}:{self.line}" if self.line else str(self.path)


@dataclass(frozen=True)
class LoadedDefinitions:
    """Everything that was found under some paths: what could be read, and what could not.

    Parameters
    ----------
    definitions:
        In the order of the paths; folders in alphabetical order.
    failures:
        One error for each file, or manifest entry, that could not be read; ``where`` begins with its path.
    ignored:
        Files inside folders whose suffix means nothing here.
    """

    definitions: tuple[NamedDefinition, ...]
    failures: tuple[StructgenError, ...]
    ignored: tuple[Path, ...]


def load_definitions(paths: Iterable[PathLike], dialect: str = "") -> list[NamedDefinition]:
    """Read every definition in files, manifests, folders or modules. The first failure is raised.

    Parameters
    ----------
    paths:
        Paths of files and folders, or ``MODULE:NAME`` for an object in a module.
    dialect:
        The dialect of regexes and of EBNF in files of their own; empty for the default one.

    Returns
    -------
    list[NamedDefinition]
        The definitions, in the order of ``paths``.

    Raises
    ------
    DefinitionError
        For a missing path, an unknown suffix, a file that is not UTF-8, a malformed manifest, or a module that
        cannot be imported. ``where`` is the path and, if known, the line.
    BudgetExceededError
        For a schema that is nested too deeply to be read.
    """
    reading = read_definitions(paths, dialect)
    if reading.failures:
        raise reading.failures[0]
    return list(reading.definitions)


def read_definitions(paths: Iterable[PathLike], dialect: str = "") -> LoadedDefinitions:
    """Read every definition under ``paths`` and go on past those that fail; see `load_definitions`.

    Raises `DefinitionError` for a dialect that there is not, and nothing else of its own.
    """
    if dialect and dialect not in (*DIALECT_FLAGS, *EBNF_DIALECTS):
        raise _no_dialect(dialect, (*DIALECT_FLAGS, *EBNF_DIALECTS))
    definitions: list[NamedDefinition] = []
    failures: list[StructgenError] = []
    ignored: list[Path] = []
    for path in map(Path, paths):
        for file in _walk(path, failures) if path.is_dir() else [path]:
            if file != path and _suffix(file) not in SUFFIXES:
                ignored.append(file)
                continue
            for item in _read_file(file, dialect):
                if isinstance(item, NamedDefinition):
                    definitions.append(item)
                else:
                    failures.append(item)
    return LoadedDefinitions(tuple(definitions), tuple(failures), tuple(ignored))


def _walk(folder: Path, failures: list[StructgenError]) -> Iterator[Path]:
    """The files below a folder, sorted, without hidden ones and without following linked folders."""

    def cannot_list(error: OSError) -> None:
        failures.append(
            DefinitionError(
                f"cannot list the folder: {error.strerror}", where=str(error.filename), remedy="Check its permissions."
            )
        )

    for parent, folders, files in os.walk(folder, onerror=cannot_list):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(files) if not name.startswith("."))


#: A reader yields a failure instead of raising it, so that its neighbours in the same file still load.
Items = Iterator[NamedDefinition | StructgenError]


def _read_file(path: Path, dialect: str = "") -> Items:
    name = str(path)
    try:
        if _OBJECT.fullmatch(name) and not path.exists():
            found = _import_object(name)
            yield NamedDefinition(name.rpartition(":")[2], found, path, 0, said_by(found))
            return
        text = _decode(path)
        suffix = _suffix(path)
        if suffix == _MANIFEST:
            yield from _read_manifest(path, text)
        elif suffix in READERS:
            definition = READERS[suffix](path, text)
            said = _OF_WORDS if suffix == ".words" else frozenset[str]()
            if dialect in _DIALECTS.get(suffix, ()):
                definition, said = _in_dialect(definition, dialect), frozenset({"dialect"})
            yield NamedDefinition(path.name.removesuffix(suffix), definition, path, said=said)
        else:
            raise DefinitionError(
                f"no kind of definition goes by the suffix {suffix!r}",
                remedy=f"Use one of {', '.join(SUFFIXES)}, or MODULE:NAME.",
            )
    except StructgenError as error:
        yield error if error.where.startswith(name) else _located(error, error.what, name)


def _suffix(path: Path) -> str:
    """What says which kind of definition a file holds."""
    return next((each for each in (_TAG, _TOOLS) if path.name.endswith(each) and path.name != each), path.suffix)


def _decode(path: Path) -> str:
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        what = f"cannot read the file: {reason}"
        raise DefinitionError(what, where=str(path), remedy="Check its name and permissions.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DefinitionError(
            f"byte {data[error.start]:#04x} is not UTF-8", where=f"{path}:{line}", remedy="Save the file as UTF-8."
        ) from error


# -- the kinds of files --------------------------------------------------------------------------------


def _read_words(text: str) -> Regex:
    lines = (line.strip() for line in text.split("\n"))
    words = [line for line in lines if line and not line.startswith("#")]
    if not words:
        raise DefinitionError("the file lists no words", remedy="Write one word on each line.")
    return Regex.choice(words)


#: The options of a list of words, whose pattern is Python's.
_OF_WORDS = frozenset({"choice", "dialect"})


def said_by(definition: Definition) -> frozenset[str]:
    """The options of a definition that are not the usual ones."""
    given: tuple[Field[Foreign], ...] = fields(definition) if is_dataclass(definition) else ()
    options = (each for each in given if each.init and each.default is not MISSING)
    return frozenset(each.name for each in options if getattr(definition, each.name) != each.default)


_TAG, _TOOLS = ".tag.json", ".tools.json"

#: Which reader takes which suffix. A reader gets the path and the decoded text.
READERS: dict[str, Callable[[Path, str], Definition]] = {
    ".regex": lambda path, text: Regex(re.sub(r"\r?\n\Z", "", text)),
    ".words": lambda path, text: _read_words(text),
    ".json": lambda path, text: JsonSchema(text),
    _TAG: lambda path, text: StructuralTag(text),
    _TOOLS: lambda path, text: ToolRequest.of(text),
    ".lark": lambda path, text: Grammar(path),
    ".gbnf": lambda path, text: Gbnf(text),
    ".ebnf": lambda path, text: Ebnf(text),
}

#: The dialects of what stands in a file.
_DIALECTS: dict[str, Collection[str]] = {".regex": DIALECT_FLAGS, ".ebnf": EBNF_DIALECTS}

_MANIFEST = ".toml"
SUFFIXES = (*READERS, _MANIFEST)


def _located(error: StructgenError, what: str, place: str) -> StructgenError:
    """The same error, with the place of its definition before the place in it."""
    return type(error)(what, where=", ".join(filter(None, (place, error.where))), remedy=error.remedy)


def _read_manifest(path: Path, text: str) -> Items:
    try:
        manifest = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else str(path)
        what = f"the manifest is not valid TOML: {error}"
        raise DefinitionError(what, where=where, remedy="Correct it (toml.io).") from error
    entries = manifest.get("definitions")
    if not isinstance(entries, dict) or not entries:
        raise DefinitionError("the manifest defines nothing", remedy="Add a table [definitions.NAME].")
    common = _engines(manifest)
    for name, entry in entries.items():
        line_number = _line_of_entry(text, name)
        try:
            definition, said = _parse_entry(path, entry)
            yield NamedDefinition(name, definition, path, line_number, said, _engines(entry) or common)
        except StructgenError as error:
            yield _located(error, f"definition {name!r}: {error.what}", f"{path}:{line_number}")


def _engines(table: JsonMap) -> tuple[str, ...]:
    """The engines that a manifest, or a table of it, is for."""
    given = table.get("for", ())
    found = (given,) if isinstance(given, str) else given
    if not isinstance(found, list | tuple) or not all(isinstance(name, str) for name in found):
        raise DefinitionError("for is neither a string nor a list of strings", remedy='Write for = ["vllm"].')
    return tuple(found)


def _parse_entry(manifest: Path, entry: object) -> tuple[Definition, frozenset[str]]:
    """One table of a manifest, and the options that it says.

    Raises errors whose place, if any, is inside the definition.
    """
    if not isinstance(entry, dict):
        raise DefinitionError("expected a table", remedy='Write NAME = { regex = "..." }.')
    sources = [key for key in SOURCES if key in entry]
    options = {key: value for key, value in entry.items() if key in (*SCHEMA_OPTIONS, *TOOL_OPTIONS)}
    unknown = set(entry) - set(sources) - set(options) - ({"flags"} if sources == ["regex"] else set())
    unknown -= {"dialect", "for"}
    if unknown:
        raise DefinitionError(
            f"unknown key {min(unknown)!r}",
            remedy=f"Use one of {', '.join(SOURCES)}; flags go with regex, dialect with regex and EBNF, "
            f"{', '.join(SCHEMA_OPTIONS)} with a JSON Schema, {', '.join(TAG_OPTIONS)} with a structural tag, "
            f"{', '.join(TOOL_OPTIONS)} with tools, and for with any.",
        )
    if len(sources) != 1:
        what = f"expected exactly one of {', '.join(SOURCES)}"
        raise DefinitionError(what, remedy='Write such as { regex = "..." }.')
    definition, said = _parse_source(manifest, sources[0], entry)
    said |= entry.keys() & {*SCHEMA_OPTIONS, "dialect", "flags"}
    if "dialect" in entry:
        definition = _in_dialect(definition, entry["dialect"])
    if not options:
        return definition, said
    if isinstance(definition, ToolRequest):
        return ToolRequest.of(definition.text, **options), said
    if isinstance(definition, StructuralTag) and options.keys() <= set(TAG_OPTIONS):
        return replace(definition, format=definition.text, **options), said
    others = options.keys() - set(SCHEMA_OPTIONS)
    if others or not isinstance(definition, JsonSchema):
        of = "requests with tools" if others else "JSON Schemas"
        what = f"{min(others or options)} is an option of {of}, and this is a {definition.kind}"
        raise DefinitionError(what, remedy="Leave it out.")
    return replace(definition, schema=definition.text, **options), said


def _parse_source(manifest: Path, source: str, entry: JsonMap) -> tuple[Definition, frozenset[str]]:
    value, none = entry[source], frozenset[str]()
    if source == "words":
        if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
            raise DefinitionError("words is not a list of at least one string", remedy='Write ["yes", "no"].')
        return Regex.choice(value), _OF_WORDS
    if source == "structural_tag":
        if not isinstance(value, str | dict):
            raise DefinitionError("structural_tag is neither a string of JSON nor a table", remedy="Make it one.")
        return StructuralTag(value), none
    if source == "tools":
        return ToolRequest.of(value), none
    if source == "json_schema":
        if not isinstance(value, str | dict | bool):
            raise DefinitionError("json_schema is neither a string of JSON nor a table", remedy="Make it one.")
        return JsonSchema(value), none
    if not isinstance(value, str):
        raise DefinitionError(f"{source} is not a string", remedy="Make it one.")
    if source == "regex":
        return Regex(value, _parse_flags(entry.get("flags", ""))), none
    if source == "python":
        found = _import_object(value)
        return found, said_by(found)
    referenced = _load_referenced(manifest.parent / value)
    return referenced.definition, referenced.said


def _in_dialect(definition: Definition, dialect: object) -> Definition:
    """A definition, its text read in a dialect."""
    if isinstance(definition, Regex):
        known: Collection[str] = DIALECT_FLAGS
    elif isinstance(definition, Ebnf):
        known = EBNF_DIALECTS
    else:
        what = f"there are dialects of regexes and EBNF, and this is a {definition.kind}"
        raise DefinitionError(what, remedy="Leave dialect out.")
    if not isinstance(dialect, str) or dialect not in known:
        raise _no_dialect(dialect, known)
    if isinstance(definition, Regex):
        return replace(definition, dialect=dialect)
    return replace(definition, source=definition.text, dialect=dialect)


def _no_dialect(dialect: object, known: Iterable[str]) -> DefinitionError:
    return DefinitionError(f"there is no dialect {dialect!r}", remedy=f"Use one of {', '.join(known)}.")


def _parse_flags(letters: object) -> int:
    if not isinstance(letters, str) or not set(letters) <= set(FLAG_LETTERS):
        raise DefinitionError(f"flags is {letters!r}", remedy=f"Use letters of {''.join(FLAG_LETTERS)!r}.")
    return sum(FLAG_LETTERS[letter] for letter in set(letters))


def _load_referenced(path: Path) -> NamedDefinition:
    """The definition in a file that a manifest names; another manifest is refused, so nothing recurses."""
    if path.suffix == _MANIFEST:
        raise DefinitionError(f"file names another manifest, {path}", remedy="Pass both manifests instead.")
    (item,) = _read_file(path)
    if isinstance(item, StructgenError):
        raise type(item)(f"{item.what} ({item.where})", remedy=item.remedy)
    return item


def _import_object(name: str) -> Definition:
    """The definition that ``MODULE:NAME`` stands for; whatever goes wrong in the module is the caller's to read."""
    parts = _OBJECT.fullmatch(name)
    if parts is None:
        raise DefinitionError(f"{name!r} is not MODULE:NAME", remedy='Write "package.module:Name".')
    try:
        with _current_folder_first():
            value: object = import_module(parts[1])
    except Exception as error:
        what = f"cannot import {parts[1]}: {type(error).__name__}: {error}"
        raise DefinitionError(what, remedy="Check that it is installed, or is in the current folder.") from error
    for attribute in parts[2].split("."):
        try:
            value = getattr(value, attribute)
        except AttributeError as error:
            raise DefinitionError(f"{parts[1]} has no {parts[2]}", remedy="Correct the name.") from error
    return as_definition(value)


@contextmanager
def _current_folder_first() -> Iterator[None]:
    """What ``python -m`` does and an installed script does not."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with suppress(ValueError):  # the module may have removed it
            sys.path.remove(folder)


def _line_of_entry(text: str, name: str) -> int:
    """Where a manifest's entry begins; TOML parsers do not say. Line 1 where the header is spelled oddly."""
    key = rf"""["']?{re.escape(name)}["']?"""
    parent = r"definitions[ \t]*\.[ \t]*"
    found = re.search(rf"^[ \t]*(?:\[[ \t]*{parent}{key}[ \t]*\]|(?:{parent})?{key}[ \t]*[=.])", text, re.M)
    return text.count("\n", 0, found.start()) + 1 if found else 1
