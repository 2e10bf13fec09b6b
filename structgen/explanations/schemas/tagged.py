"""Findings about members in the tags of a style: the JSON that they may mean is asked about.

A text in tags may mean several values, a string or a number. Each is read as JSON that breaks off where the text does
(`structgen.replies.unfinished_arguments`), and what stands against each is a branch of what stands against the text.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from ...budget import Budget, Meter
from ...building import build
from ...definitions import JsonSchema
from ...definitions.styles import STYLES
from ...errors import StructgenError
from ...replies.unfinished_arguments import UnfinishedArguments
from ...runtime.core.machine import CompiledMachine
from ...runtime.index.index import Index
from ...vocabulary.vocabulary import Vocabulary
from ..values import Findings, Reason
from .json_places import UnfinishedJson
from .keywords import KeywordTexts
from .probes import SchemaProbes, with_options
from .reasons import SchemaReasons
from .tag_names import TagNames

#: What compiling a schema's JSON may cost, and readings of a text that are asked about.
_BUDGET, _MOST_READINGS = Budget(seconds=1.0), 12

#: What is said of whitespace that only the tags refuse.
_SPACED = (Reason("option", ("whitespace",), "there is no more whitespace here"),)

#: What is said where the tags themselves do not go on.
_TAGS = "the tags of style={!r} do not go on so: {}, has a value of the type in its tag, and ends with {!r}"

#: What is said where a closing tag was begun that goes on otherwise.
_CLOSING = "the value is over, and its closing tag is {!r}"


def as_json(definition: JsonSchema) -> JsonSchema:
    """The same schema's JSON in any layout, which readings of tags are."""
    layout = {"whitespace": "any", "max_whitespace": None, "escapes": "any", "excludes": ()}
    return with_options(definition, style="json", item_separator=None, key_separator=None, **layout)


class _Reading(NamedTuple):
    """JSON that a text may mean: up to the byte that it dies at; whether it does; what tags say of its last name."""

    json: bytes
    is_dead: bool
    named: tuple[Reason, ...]


def find(
    index: Index, definition: JsonSchema, probes: SchemaProbes, keywords: KeywordTexts, data: bytes, ended: bool
) -> Findings:
    """What stands against each reading of a text."""
    style = STYLES[definition.style]
    before, last = (data, b"") if ended else (data[:-1], data[-1:])
    try:
        machine = _machine(index, probes.definition)
        arguments = UnfinishedArguments(style, lambda: machine)
        given = arguments.feed(before.decode("utf-8", "surrogateescape"))
        begun = [] if ended else arguments.unfinished(last.decode("utf-8", "surrogateescape"))
        names = TagNames(definition.style, probes)
        readings = _read([given + each for each in begun or arguments.ended()], machine, names)
    except StructgenError as error:
        return Findings((), "", (f"the members are not looked into: {error}",))
    asked = [SchemaReasons(probes, keywords, reading.json) for reading in readings]
    spaced = _SPACED if last and last in b" \t\n\r" else ()
    closing = "" if ended else arguments.closing()
    branches = tuple(
        dict.fromkeys(
            ((*_closed(each.find(), reading, closing), *reading.named) if reading.is_dead else reading.named or spaced)
            for each, reading in zip(asked, readings, strict=True)
        )
    )
    found: tuple[Reason, ...] = ()
    if ended and not branches:
        found = (Reason("incomplete", (), "the members break off"),)
    elif not begun and closing:
        found = (Reason("tag", (), _CLOSING.format(closing)),)
    elif not ended and not begun:
        begins = f"a member begins with {style.opening.decode()!r}"
        begins += f", an item with {style.item.decode()!r}" if style.item else ""
        what = _TAGS.format(definition.style, begins, style.closing.decode())
        found = (Reason("tag", (), what, "", branches if all(branches) else ()),)
    elif len(branches) == 1:
        found = branches[0]
    elif branches and all(branches):
        what, path = "none of the values that the text may mean is left", branches[0][0].path
        found = (Reason("alternatives", (), what, path, branches),)
    writing = " or ".join(dict.fromkeys(each.writing() for each in asked))
    return Findings(found, writing, tuple(dict.fromkeys(chain(*(each.notes for each in asked)))))


def _closed(reasons: tuple[Reason, ...], reading: _Reading, closing: str) -> tuple[Reason, ...]:
    """What stands against a reading; where a closing tag was begun that is no JSON, that this does not go on so."""
    is_tag = closing and reading.json.endswith(closing[0].encode())
    return tuple(
        Reason("tag", (), _CLOSING.format(closing), each.path) if is_tag and each.kind == "json" else each
        for each in reasons
    )


def _read(texts: list[str], machine: CompiledMachine, names: TagNames) -> list[_Reading]:
    """Readings of those texts that are JSON, or where none is, of all of them."""
    whole = [each.encode("utf-8", "surrogateescape") for each in texts]
    parsed = [(text, UnfinishedJson(text)) for text in whole]
    found: dict[_Reading, None] = {}
    for text, json in [each for each in parsed if each[1].length == len(each[0])] or parsed:
        taken, named = machine.match(text).consumed, names.against(text, json.path)
        is_dead = taken < len(text) - bool(named)  # before its last name's last byte
        found[_Reading(text[: taken + 1], is_dead, named)] = None
    return list(found)[:_MOST_READINGS]


def _machine(index: Index, definition: JsonSchema) -> CompiledMachine:
    """What reads the same schema's JSON; the index remembers it."""
    key = f"{definition.canonical()} by bytes"
    known = index.explanations.get(key)
    if known is None:
        known, _ = build(definition, Vocabulary.bytewise(), Meter(_BUDGET), on_demand=True)
        index.explanations[key] = known
    machine: CompiledMachine = known
    return machine
