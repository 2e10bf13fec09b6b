"""The benchmark of certificates plants what it counts, and calls undecided what has no number."""

from __future__ import annotations

import random

import pytest

import structgen as sg
from benchmarks import certify

VOCABULARY = sg.Vocabulary.bytewise()


@pytest.mark.parametrize("name", certify.PLANTED)
def test_each_plant_is_found(name: str) -> None:
    draw = random.Random(1)
    found = None
    while found is None or found[0] != name:
        found = certify.planted({"type": "object", "properties": {"a": {"type": "null"}}}, draw)
    _, schema, place = found
    index = certify.compiled(schema, VOCABULARY)
    assert index is not None
    assert {where for where, _ in certify.unused(index)} == {place}


def test_nothing_is_planted_where_it_could_be_unused_anyway() -> None:
    for schema in (True, {"$ref": "#"}, {"properties": {}, "maxProperties": 1}, {"type": "string"}):
        assert certify.planted(schema, random.Random(1)) is None


def test_rows_and_table() -> None:
    index = certify.compiled({"type": "string", "maxLength": 3000}, VOCABULARY)
    assert index is not None
    names = ["language", "shortest_and_longest"]
    rows = [{"schema": "a", **row} for row in certify.measured(index, names, 60.0)]
    assert [(row["item"], row["decided"]) for row in rows] == [(name, True) for name in [*names, "all"]]
    assert certify.table_of(rows, names).row_count == 3
