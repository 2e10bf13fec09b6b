"""The definition behind an index, read back from the canonical text that the index holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields

from ..errors import DefinitionError, StructgenError
from ..system.types import Foreign
from .values import (
    GRAMMAR_DEFAULTS,
    TAG_OPTIONS,
    WHITESPACE,
    Definition,
    Ebnf,
    Gbnf,
    Grammar,
    Indentation,
    JsonSchema,
    Regex,
    StructuralTag,
)

_DECODER = json.JSONDecoder()

#: The pieces of JSON text: strings, empty containers, signs, and scalars with their digits.
_PIECES = re.compile(r'"(?:[^"\\]|\\.)*"|\{\}|\[\]|[{}\[\],:]|[^"{}\[\],:]+')

#: Characters and levels of JSON text that is indented at most, and characters of a container in one line.
_MOST_INDENTED, _LEVELS, _WIDTH = 1 << 16, 40, 72

#: The bounded pattern of ``whitespace="any"``.
_ANY_BOUNDED = re.compile(re.escape(WHITESPACE["any"]) + r"\{0,(\d{1,18})\}")


def definition_of(kind: str, canonical: str) -> Definition:
    """The definition that has a canonical text.

    Raises `DefinitionError` where it can't be had from that: an `Fsm` has no source, and of files that a grammar
    imports an index only holds the hashes, so that they must still be where they were.
    """
    reader = _READERS.get(kind)
    try:
        definition = reader(canonical) if reader is not None else None
    except (StructgenError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise _no_source(f"the definition in the index can't be read: {error}") from error
    if definition is None:
        raise _no_source(f"an index of kind {kind!r} holds no source")
    if definition.canonical() != canonical:
        raise _no_source("the index does not hold all of the definition's source")
    return definition


def as_written(kind: str, canonical: str) -> str:
    """The definition in an index as its author wrote it, for people: the pattern, the grammar, or the schema.

    JSON is indented by two spaces, its members in their order, numbers with their digits. Options other than the
    defaults follow in a line of their own. Where the index holds no source, it is the canonical text, and says so.
    """
    try:
        definition: Foreign = definition_of(kind, canonical)
    except DefinitionError:
        with suppress(DefinitionError):
            return grammar_text(canonical)
        return f"canonical text: {canonical}"
    text: str = getattr(definition, "pattern" if kind == "regex" else "text")
    if isinstance(definition, JsonSchema | StructuralTag):
        text = _indented(text)
    own = [each for each in fields(definition) if each.init and each.name not in ("pattern", "definitions", "places")]
    plain = {each.name: each.default for each in own} | (GRAMMAR_DEFAULTS if isinstance(definition, Grammar) else {})
    values = {name: getattr(definition, name, default) for name, default in plain.items()}
    options = ", ".join(f"{name}={value!r}" for name, value in values.items() if value != plain[name])
    return f"{text}\n({options})" if options else text


def _indented(text: str) -> str:
    """JSON text in lines, with characters as they are; a container that is short is in one line.

    Text that is long or nested deeply stays as it is: each level copies the levels within it.
    """
    held = [[""]]  # of each open container: its bracket, then the text of its members
    for piece in _PIECES.findall(text) if len(text) <= _MOST_INDENTED else [text]:
        if piece in ("{", "["):
            held.append([piece, ""])
            if len(held) > _LEVELS:
                return text
        elif piece in ("}", "]"):
            bracket, *members = held.pop()
            line = f"{bracket}{', '.join(members)}{piece}"
            if len(line) > _WIDTH or "\n" in line:
                gap = "\n" + "  " * len(held)
                line = f"{bracket}{gap}{f',{gap}'.join(members)}{gap[:-2]}{piece}"
            held[-1][-1] += line
        elif piece == ",":
            held[-1].append("")
        else:
            shown = json.dumps(json.loads(piece), ensure_ascii=False) if piece[0] == '"' else piece
            held[-1][-1] += shown + " " * (piece == ":")
    return held[0][0]


def _no_source(what: str) -> DefinitionError:
    return DefinitionError(what, remedy="Pass definition=, from which the index was compiled.")


def _json_schema(canonical: str) -> JsonSchema:
    at, parts = canonical.index("[") + 1, list[Foreign]()
    while len(parts) < 3:  # the schema's own text stays as it is: its numbers keep their digits
        value, end = _DECODER.raw_decode(canonical, at)
        if len(parts) == 2 and not (isinstance(value, list)):
            break
        parts.append(value)
        at = end + 1
    options, written = parts[1], parts[2] if len(parts) > 2 else ["json"]
    return JsonSchema(canonical[at:-1], **schema_options(options), style=written[0], excludes=tuple(written[1:]))


def schema_options(options: list[Foreign]) -> dict[str, Foreign]:
    """The options of a `JsonSchema` from what its canonical text says of them."""
    gap, indent, order, escapes, additional, lenient, *more = options
    # Separators are two texts, perhaps "unique_names"; the option's name stands alone, or behind a number or them.
    item, key = (more.pop(0), more.pop(0)) if len(more) > 1 and isinstance(more[0], str) else (None, None)
    max_items = next((each for each in more if isinstance(each, int)), None)
    max_string_length, max_digits = next(([*each, None][:2] for each in more if isinstance(each, list)), (None, None))
    unique_names = "unique_names" in more
    bounded = _ANY_BOUNDED.fullmatch(gap) if gap is not None else None
    words = {pattern: word for word, pattern in WHITESPACE.items()}
    whitespace = indent if gap is None else words.get(gap, gap)
    most: int | None = 20
    if bounded:
        whitespace, most = "any", int(bounded[1])
    elif gap == WHITESPACE["any"] + "*":
        whitespace, most = "any", None
    return {
        "whitespace": whitespace, "max_whitespace": most, "property_order": order, "escapes": escapes,
        "additional_properties": additional, "lenient": lenient, "item_separator": item, "key_separator": key,
        "max_items": max_items, "max_string_length": max_string_length,
        "max_digits": max_digits, "unique_names": unique_names,
    }  # fmt: skip


def _regex(canonical: str) -> Regex:
    _, pattern, flags, *dialect = json.loads(canonical)
    return Regex(pattern, flags, *dialect)


def _gbnf(canonical: str) -> Gbnf:
    _, start, text, *dialect = json.loads(canonical)
    return Ebnf(text, start=start, dialect=dialect[0]) if dialect else Gbnf(text, start=start)


def _grammar(canonical: str) -> Grammar:
    _, (start, lexer, strict, ambiguity, postlex, *rest), text, _, inner = json.loads(canonical)
    own: Foreign = [tuple(each) if isinstance(each, list) else each for each in postlex or ()]
    layout = None if postlex is None else Indentation(*own)
    named = {name: definition_of(json.loads(each)[0], each) for name, each in inner}
    return Grammar(
        text, start=start, lexer=lexer, strict=strict, ambiguity=ambiguity, matches=rest[0] if rest else "preferred",
        postlex=layout, definitions=named,
    )  # fmt: skip


def grammar_text(canonical: str) -> str:
    """The text of a grammar, whatever became of the files that it imports. Raises `DefinitionError`."""
    try:
        text = json.loads(canonical)[2]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise _no_source(f"the definition in the index can't be read: {error}") from error
    if not isinstance(text, str):
        raise _no_source("the index holds no text of a grammar")
    return text


def _structural_tag(canonical: str) -> StructuralTag:
    at = canonical.index(",") + 1
    options, end = _DECODER.raw_decode(canonical, at)
    text = canonical[end + 1 : _DECODER.raw_decode(canonical, end + 1)[1]]
    known = schema_options(options[1])
    return StructuralTag(text, **{name: known[name] for name in TAG_OPTIONS})


_READERS: dict[str, Callable[[str], Definition]] = {
    "json_schema": _json_schema, "regex": _regex, "gbnf": _gbnf, "grammar": _grammar,
    "structural_tag": _structural_tag,
}  # fmt: skip
