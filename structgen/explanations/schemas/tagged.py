"""Findings about members in the tags of a style: the JSON that they may mean is asked about.

A text in tags may mean several values, a string or a number. Each is read as JSON that breaks off where the text does
(`structgen.replies.arguments`), and what stands against each is a branch of what stands against the text.
"""

from __future__ import annotations

from itertools import chain

from ...budget import Budget, Meter
from ...building import stack_machine
from ...compiler.json_schema.layout.styles import STYLES
from ...definitions import JsonSchema
from ...errors import StructgenError
from ...replies.arguments import TaggedArguments
from ...runtime.index.index import Index
from ...runtime.pushdown.machine import PushdownMachine
from ...vocabulary.vocabulary import Vocabulary
from ..values import Findings, Reason
from .json_places import UnfinishedJson
from .keywords import KeywordTexts
from .probes import SchemaProbes, with_options
from .reasons import SchemaReasons

#: What compiling a schema's JSON may cost, and readings of a text that are asked about.
_BUDGET, _MOST_READINGS = Budget(seconds=1.0), 12

#: What is said where the tags themselves do not go on.
_TAGS = "the tags of style={!r} do not go on so: a member begins with {!r}, and has a value of the type in its tag"

#: The keywords that have names refused which no tag holds.
_ADDITIONAL = frozenset({"/additionalProperties", "/unevaluatedProperties"})


def as_json(definition: JsonSchema) -> JsonSchema:
    """The same schema's JSON in any layout, which readings of tags are."""
    layout = {"whitespace": "any", "max_whitespace": None, "escapes": "any", "excludes": ()}
    return with_options(definition, style="json", item_separator=None, key_separator=None, **layout)


def find(
    index: Index, definition: JsonSchema, probes: SchemaProbes, keywords: KeywordTexts, data: bytes, ended: bool
) -> Findings:
    """What stands against each reading of a text."""
    style = STYLES[definition.style]
    before, last = (data, b"") if ended else (data[:-1], data[-1:])
    try:
        machine = _machine(index, probes.definition)
        arguments = TaggedArguments(style, lambda: machine)
        given = arguments.feed(before.decode("utf-8", "surrogateescape"))
        begun = [] if ended else arguments.unfinished(last.decode("utf-8", "surrogateescape"))
        texts = _read([given + each for each in begun or arguments.ended()])
    except StructgenError as error:
        return Findings((), "", (f"the members are not looked into: {error}",))
    asked = [SchemaReasons(probes, keywords, text) for text in texts]
    are_dead = all(machine.match(text).consumed < len(text) for text in texts)
    branches = tuple(dict.fromkeys(each.find() for each in asked)) if texts and are_dead else ()
    found: tuple[Reason, ...] = ()
    if ended and not branches:
        found = (Reason("incomplete", (), "the members break off"),)
    elif not ended and not begun:
        found = (Reason("tag", (), _TAGS.format(definition.style, style.opening.decode()), "", branches),)
    elif style.again is not None and any(_ADDITIONAL & {*reason.where} for branch in branches for reason in branch):
        found = (Reason("tag", (), f"style={definition.style!r} has declared members alone"),)
    elif len(branches) == 1:
        found = branches[0]
    elif branches and all(branches):
        what, path = "none of the values that the text may mean is left", branches[0][0].path
        found = (Reason("alternatives", (), what, path, branches),)
    notes = ["arrays and objects in tags of their own are not looked into"] if style.item and not texts else []
    writing = " or ".join(dict.fromkeys(each.writing() for each in asked))
    return Findings(found, writing, tuple(dict.fromkeys(chain(notes, *(each.notes for each in asked)))))


def _read(readings: list[str]) -> list[bytes]:
    """Readings as bytes: those that are JSON, or where none is, all of them."""
    texts = list(dict.fromkeys(each.encode("utf-8", "surrogateescape") for each in readings))[:_MOST_READINGS]
    return [text for text in texts if UnfinishedJson(text).length == len(text)] or texts


def _machine(index: Index, definition: JsonSchema) -> PushdownMachine:
    """What reads the same schema's JSON; the index remembers it."""
    key = f"{definition.canonical()} by bytes"
    known = index.explanations.get(key)
    if known is None:
        known, _ = stack_machine(definition, Vocabulary.bytewise(), Meter(_BUDGET), on_demand=True)
        index.explanations[key] = known
    machine: PushdownMachine = known
    return machine
