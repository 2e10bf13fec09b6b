"""Schemas that are lowered on demand: the same masks, whatever was lowered when, and no more lowered than is met."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from judges.json_schemas import schemas
from judges.json_tokens import CASES, mask_of, small_vocabulary
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema import compiler
from structgen.compiler.json_schema.layout.options import TextOptions
from structgen.compiler.json_schema.lower import bounds, lower
from structgen.compiler.json_schema.lower.keys import KeyStates
from structgen.compiler.json_schema.lower.lower import SchemaLowering
from structgen.compiler.json_schema.normalise import normalise
from structgen.compiler.json_schema.read.reader import read
from structgen.errors import StructgenError, UnsupportedError
from structgen.runtime.pushdown.machine import PushdownMachine

VOCABULARY = small_vocabulary()
OF_BYTE = {VOCABULARY.token(i): i for i in range(VOCABULARY.size)}

#: Values in values: each member's is an object that nothing else has, with names and strings of its own.
DEEP = {
    "type": "object",
    "properties": {
        f"member_{k}": {
            "type": "object",
            "properties": {
                f"inner_{k}_{n}": {"enum": [f"text {k} {n}", n, {"at": [f"{k}.{n}", None]}]} for n in range(4)
            },
            "required": [f"inner_{k}_0"],
        }
        for k in range(6)
    },
    "additionalProperties": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": 50},
}

TEXT = json.dumps({f"member_{k}": {f"inner_{k}_0": f"text {k} 0"} for k in range(6)}).encode()


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is lowered on demand, as little at once as there can be."""
    monkeypatch.setattr(compiler, "_FEW_STATES", 0)
    monkeypatch.setattr(lower, "_PART", 1)
    monkeypatch.setattr(lower, "_SHARE", 1 << 30)


pytestmark = pytest.mark.usefixtures("small_parts")


def machine_of(index: sg.Index) -> PushdownMachine:
    machine = index.machine
    assert isinstance(machine, PushdownMachine)
    return machine


def compiled(schema: Any, *, eager: bool = False, **options: Any) -> sg.Index:
    return sg.compile(sg.JsonSchema(schema, **options), VOCABULARY, eager=eager, base_rows=False)


def walk(guide: sg.Guide, random: Random, steps: int) -> Iterator[int]:
    """Random tokens that a guide allows, each before it is taken."""
    for _ in range(steps):
        ids = np.flatnonzero(mask_of(guide))
        token = int(ids[random.randrange(len(ids))])
        yield token
        if token in VOCABULARY.eos_ids:
            return
        assert guide.advance(token)


def check_same(index: sg.Index, other: sg.Index, seed: int, texts: int = 4, steps: int = 30) -> None:
    """Masks along random texts of one, and whether these may end, are those of the other."""
    random = Random(seed)
    for _ in range(texts):
        one, two = sg.Guide(index), sg.Guide(other)
        for token in walk(one, random, steps):
            np.testing.assert_array_equal(mask_of(one), mask_of(two))
            assert one.is_accepting() == two.is_accepting()
            if token not in VOCABULARY.eos_ids:
                assert two.advance(token)


@settings(
    max_examples=draws(60),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(schemas(), st.integers(0, 99))
def test_masks_are_those_of_a_schema_lowered_as_a_whole(schema: Any, seed: int) -> None:
    try:
        whole = compiled(schema, eager=True)
    except StructgenError as error:
        with pytest.raises(type(error)):
            compiled(schema)
        assume(False)
        raise
    index = compiled(schema)
    check_same(index, whole, seed)
    machine_of(index).lower_all()
    check_same(index, whole, seed + 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_masks_of_all_cases_are_those_of_a_whole(case: dict[str, Any]) -> None:
    options = case.get("options", {})
    check_same(compiled(case["schema"], **options), compiled(case["schema"], eager=True, **options), 3)


def test_what_is_stored_copied_filled_or_measured_is_all_of_it() -> None:
    whole = compiled(DEEP, eager=True)
    for use in (
        lambda index: sg.Index.from_buffer(index.to_bytes(), VOCABULARY),
        lambda index: pickle.loads(pickle.dumps(index)),
        lambda index: index.machine.fill() or index,
        lambda index: index.shortest() and index,
    ):
        index = compiled(DEEP)
        assert machine_of(index).tables.open
        check_same(index, whole, 7, texts=1)
        other = use(index)
        assert not machine_of(index).tables.open
        assert machine_of(index).tables.source is None
        check_same(other, whole, 8)
    assert compiled(DEEP).shortest() == whole.shortest()
    for limit in (5, 12):
        one, two = (sg.Guide(index, max_tokens=whole.shortest() + limit) for index in (compiled(DEEP), whole))
        for token in walk(one, Random(limit), 40):
            np.testing.assert_array_equal(mask_of(one), mask_of(two))
            if token not in VOCABULARY.eos_ids:
                assert two.advance(token)


def test_a_first_mask_lowers_the_names_of_the_first_object_and_no_values() -> None:
    def states(size: int) -> int:
        value = {"type": "object", "properties": {f"inner_{n}": {"pattern": f"^x{{{n}}}y+$"} for n in range(size)}}
        properties = {f"p{k:03}": {**value, "required": [f"inner_{k % size}"]} for k in range(1000)}
        index = sg.compile(
            sg.JsonSchema({"type": "object", "properties": properties, "additionalProperties": False}),
            VOCABULARY, eager=False, base_rows=False, budget=Budget(states=2_000_000),
        )  # fmt: skip
        mask_of(sg.Guide(index))
        return machine_of(index).tables.states

    few = states(2)
    assert states(8) <= few + 6 * 5  # six kinds of values more, each with the few states before it
    assert few < 1000 * (len("p000") + 20)


def test_parts_take_what_comes_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that has all members lowers them in few parts, where a part may be large."""

    def parts(size: int) -> int:
        monkeypatch.setattr(lower, "_PART", size)
        index = compiled(DEEP)
        guide = sg.Guide(index)
        grown: set[int] = set()
        for byte in TEXT:
            mask_of(guide)
            assert guide.advance(OF_BYTE[bytes([byte])])
            grown.add(machine_of(index).tables.states)
        assert guide.is_accepting()
        return len(grown)

    assert parts(1) > 6
    assert parts(10_000) <= 3


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "array", "contains": {"type": "boolean"}, "minContains": 3, "uniqueItems": True},
        {
            "type": "object",
            "patternProperties": {"^a.{100,200}$": {"type": "null"}, "^b.{100,200}$": {"type": "boolean"}},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ],
)
def test_what_lowering_refuses_is_refused_when_compiling(inner: Any) -> None:
    outer = {"type": "object", "properties": {"b": inner}, "required": ["b"]}
    schema = {"type": "object", "properties": {"a": outer}}
    with pytest.raises(UnsupportedError):
        compiled(schema)


@settings(max_examples=draws(60), suppress_health_check=list(HealthCheck))
@given(schemas(), st.integers(0, 99))
def test_what_is_lowered_is_bounded_before(schema: Any, seed: int) -> None:
    meter, random, layout = Meter(Budget()), Random(seed), TextOptions()
    try:
        values = normalise(read(json.dumps(schema), meter, additional_properties=True), meter)
        most = bounds.most_states(values, layout, meter)
        assume(most is not None)
    except StructgenError:
        assume(False)
    assert most is not None
    lowering = SchemaLowering(values, layout, meter, lenient=None, whole=False)
    usual = 200  # what nearly all programs begin with
    while lowering.open:
        assert len(lowering.program.edges) <= most + usual
        lowering.go_on(random.sample(lowering.open, random.randrange(1, len(lowering.open) + 1)))
    assert len(lowering.program.edges) <= most + usual


def test_an_interrupted_part_is_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is raised in the middle of a part, the next call makes the same of it."""
    whole, index = compiled(DEEP, eager=True), compiled(DEEP)
    original, armed, interrupted = KeyStates.finish, False, 0

    def failing(self: KeyStates) -> None:
        nonlocal armed, interrupted
        original(self)
        if armed:
            armed = False
            interrupted += 1
            raise KeyboardInterrupt

    monkeypatch.setattr(KeyStates, "finish", failing)
    one, two = sg.Guide(index), sg.Guide(whole)
    for byte in TEXT:
        armed = True
        with suppress(KeyboardInterrupt):
            mask_of(one)
        with suppress(KeyboardInterrupt):
            assert one.advance(OF_BYTE[bytes([byte])])
            one.rollback(1)
        armed = False
        np.testing.assert_array_equal(mask_of(one), mask_of(two))
        assert one.advance(OF_BYTE[bytes([byte])])
        assert two.advance(OF_BYTE[bytes([byte])])
    assert one.is_accepting()
    assert interrupted > 6


def test_threads_lower_one_index_together() -> None:
    whole = compiled(DEEP, eager=True)
    for _ in range(3):
        index = compiled(DEEP)
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(lambda seed, index=index: check_same(index, whole, seed, texts=6), range(6)))


def test_bytes_are_followed_where_no_mask_was_asked_for() -> None:
    index, whole = compiled(DEEP), compiled(DEEP, eager=True)
    for text in (TEXT, TEXT[:60], b'{"member_2": {"inner_2_1": {"at": ["2.1", nul'):
        assert index.match(text) == whole.match(text)
    assert machine_of(index).tables.open


def test_small_schemas_are_lowered_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert not machine_of(compiled({"type": "object", "properties": {"a": {"enum": ["x", "y"]}}})).tables.open
