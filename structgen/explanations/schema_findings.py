"""Findings about a JSON Schema's texts: reasons, and the value that was being written."""

from __future__ import annotations

from ..definitions import JsonSchema
from ..runtime.index.index import Index
from ..system.types import Foreign
from .keywords import KeywordTexts
from .probes import SchemaProbes
from .schema_reasons import SchemaReasons
from .values import Findings


def find(index: Index, definition: JsonSchema, data: bytes, ended: bool, _: Foreign = None) -> Findings:
    """What stands against a text under a schema; what was asked of its keywords the index remembers."""
    if definition.style != "json":
        note = f"members in the tags of style={definition.style!r} are not looked into"
        return Findings((), "", (note,))
    key = definition.canonical()
    known = index.explanations.get(key)
    if known is None:
        probes = SchemaProbes(definition)
        known = index.explanations[key] = probes, KeywordTexts(probes)
    probes, keywords = known
    unanswered = probes.unanswered
    reasons = SchemaReasons(probes, keywords, data, ended=ended)
    found = reasons.find()
    notes = [*reasons.notes]
    if probes.unanswered > unanswered:
        notes.append("some keywords were not looked at: alone they can't be compiled within the bounds")
    return Findings(found, reasons.writing(), tuple(notes))
