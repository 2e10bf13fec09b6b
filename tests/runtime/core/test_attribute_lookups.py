"""Machines have so few attributes that Python finds them fast: with 30 or more each mask took a fifth longer (3.11)."""

from __future__ import annotations

import pytest
from judges.guides import BYTES

import structgen as sg

MOST = 29

DEFINITIONS = {
    "grammar": sg.Grammar('start: "a" /b+/ "c"'),
    "schema": sg.JsonSchema({"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}),
    "regex": sg.Regex("a{3,5}b"),
}


@pytest.mark.parametrize("kind", DEFINITIONS)
def test_machines_and_guides_have_few_attributes(kind: str) -> None:
    guide = sg.Guide(sg.compile(DEFINITIONS[kind], BYTES))
    guide.bitmask()
    attributes = [name for each in (guide._machine,) for name in vars(each)]
    assert len(attributes) <= MOST, attributes
