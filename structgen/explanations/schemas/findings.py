"""Findings about a JSON Schema's texts: reasons, and the value that was being written."""

from __future__ import annotations

from ...definitions import JsonSchema
from ...runtime.index.index import Index
from ...system.types import Foreign
from ..values import Findings
from . import tagged
from .keywords import KeywordTexts
from .probes import SchemaProbes
from .reasons import SchemaReasons


def find(index: Index, definition: JsonSchema, data: bytes, ended: bool, _: Foreign = None) -> Findings:
    """What stands against a text under a schema; what was asked of its keywords the index remembers."""
    key = definition.canonical()
    known = index.explanations.get(key)
    if known is None:
        probes = SchemaProbes(definition if definition.style == "json" else tagged.as_json(definition))
        known = index.explanations[key] = probes, KeywordTexts(probes)
    probes, keywords = known
    unanswered = probes.unanswered
    if definition.style == "json":
        reasons = SchemaReasons(probes, keywords, data, ended=ended)
        found = Findings(reasons.find(), reasons.writing(), tuple(reasons.notes))
    else:
        found = tagged.find(index, definition, probes, keywords, data, ended)
    if probes.unanswered > unanswered:
        note = "some keywords were not looked at: alone they can't be compiled within the bounds"
        found = found._replace(notes=(*found.notes, note))
    return found
