"""Who collects garbage after a pause."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import structgen as sg
from structgen.system.garbage import paused

#: References, schemas that only they lead to, bounds of numbers, patterns, and alternatives.
SCHEMA: dict[str, Any] = {
    "$defs": {
        "price": {"type": "number", "minimum": 0.5, "exclusiveMaximum": 1000},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 9},
        "unused": {"$ref": "#/$defs/list"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/list"}, "maxItems": 3},
    },
    "properties": {"a": {"$ref": "#/$defs/price"}, "b": {"oneOf": [{"$ref": "#/$defs/name"}, {"minimum": 3}]}},
    "patternProperties": {"^x": {"$ref": "#/$defs/list"}},
}


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


@pytest.mark.parametrize(
    ("settles", "objects", "others", "collected"),
    [
        (True, 20_000, 100_000, 1),
        (True, 100, 100, 0),
        (False, 20_000, 100_000, 0),
        (True, 20_000, 1_000_000, 0),  # Python would not collect soon, either
    ],
)
def test_work_that_leaves_many_objects_collects_at_its_end(
    settles: bool, objects: int, others: int, collected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "get_objects", lambda generation: [None] * others)
    gc.collect()
    before = full_collections()
    with paused(settles=settles):
        kept: list[list[int]] = [[] for _ in range(objects)]
        assert not gc.isenabled()
    assert full_collections() - before == collected
    assert gc.isenabled()
    assert len(kept) == objects


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        before = full_collections()
        with paused(settles=True):
            kept: list[list[int]] = [[] for _ in range(20_000)]
        assert not gc.isenabled()
        assert full_collections() == before
        assert len(kept) == 20_000
    finally:
        gc.enable()


@pytest.fixture
def garbage() -> Iterator[list[Any]]:
    """What the collector finds at its next collections, which come when they are asked for."""
    gc.collect()
    with paused():
        gc.set_debug(gc.DEBUG_SAVEALL)
        yield gc.garbage
        gc.set_debug(0)
    gc.garbage.clear()


@pytest.mark.parametrize(
    "definition", [sg.JsonSchema(SCHEMA), sg.Regex(r"(?i)[a-z]{3,40}@\d+"), sg.Gbnf('root ::= "a" root | "b"')]
)
def test_nothing_of_a_compile_waits_for_the_collector(definition: Any, garbage: list[Any]) -> None:
    index = sg.compile(definition, sg.Vocabulary.bytewise(), eager=False, base_rows=False)
    gc.collect()
    assert index.machine is not None
    assert {type(each).__qualname__ for each in garbage if type(each).__module__.startswith("structgen.")} == set()
