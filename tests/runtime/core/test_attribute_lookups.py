"""Machines have few attributes, which Python finds faster: with 30 (in 3.11) each mask took a fifth longer."""

from __future__ import annotations

from pathlib import Path

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
def test_machines_have_few_attributes(kind: str, tmp_path: Path) -> None:
    index = sg.compile(DEFINITIONS[kind], BYTES, cache=sg.Cache(tmp_path), eager=False)
    guide = sg.Guide(index)
    assert guide.advance(next(filter(guide.allows, range(BYTES.size))))
    guide.bitmask()
    assert guide.config is not None
    index.machine.completion(guide.config)
    assert len(vars(index.machine)) <= MOST, [*vars(index.machine)]
