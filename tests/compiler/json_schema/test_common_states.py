"""States that many schemas have are lowered once for a layout, and once for the tools of a tag."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.compiler import ReadSchema, read_schema
from structgen.compiler.json_schema.lower import whitespace
from structgen.compiler.json_schema.lower.builder import Builder
from structgen.compiler.json_schema.lower.lower import begun_builder, lower, lower_into
from structgen.compiler.programs.program import Program
from structgen.compiler.programs.tables import to_tables
from structgen.definitions.styles import STYLES
from structgen.errors import BudgetExceededError
from structgen.runtime.pushdown.machine import PushdownMachine

OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}
CLOSED: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False}
TEXTS = ("{}", '{"a": true}', '{"a": 1}', '{"a": 1.5}', '{"a": 1, "b": [{"x": null}]}', '{"a": 1, "c": {}}', '{"b": 1}')

BYTES = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def read(schema: Any, **options: Any) -> ReadSchema:
    return read_schema(sg.JsonSchema(schema, **options), Meter(Budget()))


def lowered(schema: ReadSchema, budget: Budget | None = None) -> Program:
    return lower(schema.values, schema.layout, Meter(budget or Budget()), lenient=None)


def accepted(program: Program) -> list[bool]:
    machine = PushdownMachine(to_tables(program), BYTES)
    return [machine.match(text.encode()).accepted for text in TEXTS]


def test_a_program_has_no_state_that_its_schema_does_not_ask_for() -> None:
    """Those of any value are in the program, and are left out of the tables."""
    program, begun = lowered(read(CLOSED)), begun_builder(read(CLOSED).layout, False, Meter(Budget())).program
    assert program.names[: len(begun.names)] == begun.names
    assert to_tables(program).states < len(begun.names) < len(program.names)


@pytest.mark.parametrize("options", [{}, {"whitespace": "any"}, {"property_order": "any"}, {"escapes": "any"}])
def test_a_schema_adds_nothing_to_what_all_begin_with(options: dict[str, Any]) -> None:
    schema = read(OPEN, **options)
    begun = begun_builder(schema.layout, False, Meter(Budget()))
    columns, moves = begun.program.columns(), [*begun.program.moves]
    first = to_tables(lowered(schema)).to_sections()
    lowered(read(CLOSED, **options))
    again = to_tables(lowered(schema)).to_sections()
    assert (begun.program.columns() == columns).all()
    assert begun.program.moves == moves
    assert first.keys() == again.keys()
    assert all((first[name] == again[name]).all() for name in first)


@pytest.mark.parametrize("schema", [OPEN, CLOSED], ids=["open", "closed"])
def test_fragments_have_a_bound(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = accepted(lowered(read(schema, max_digits=71)))
    monkeypatch.setattr(whitespace, "MOST_FRAGMENTS", 0)
    found = read(schema, max_digits=72)  # a layout of its own
    assert accepted(lowered(found)) == expected
    fragments = begun_builder(found.layout, False, Meter(Budget())).whitespace.fragments
    assert fragments is not None
    assert not fragments.known


def test_schemas_in_one_program_share_any_value() -> None:
    program, builder = Program(), None
    sizes, starts = list[int](), list[int]()
    schemas = CLOSED, OPEN, CLOSED, OPEN
    for schema in schemas:
        found = read(schema)
        _, builder = lower_into(program, found.values, found.layout, Meter(Budget()), builder)
        starts.append(builder.value((found.values.root,), 0))
        sizes.append(len(program.edges))
    assert len(set(starts)) == len(starts)
    assert sizes[3] - sizes[2] < (sizes[1] - sizes[0]) / 2
    for program.start, schema in zip(starts, schemas, strict=True):
        assert accepted(program) == accepted(lowered(read(schema)))


TAGGED = (
    {"type": "object", "properties": {"s": {"type": "string", "maxLength": 40}, "n": {"type": "integer"}}},
    {"type": "object", "properties": {"t": {"type": "string", "maxLength": 40}, "o": {"items": {"type": "integer"}}}},
    {"anyOf": [{"type": "object", "properties": {"n": {"type": "integer"}}, "required": [each]} for each in "ns"]},
    {"type": "object", "additionalProperties": False},
)  # fmt: skip


def some_text(machine: PushdownMachine, random: Random) -> bytes:
    """A text that a machine reads, for a while, and perhaps another byte."""
    state, text = machine.byte_state(machine.start), bytearray()
    for _ in range(random.randrange(100)):
        found = sorted(machine.following(state), key=lambda each: each[0])
        if not found:
            break
        rare = [each for each in found if bytes((each[0],)) in b'<>/=\n"{}[],: 10tn']
        byte, state = random.choice(rare if rare and random.random() < 0.8 else found)
        text.append(byte)
    return bytes(text) + bytes(random.choices(b"<>x1\n", k=random.randrange(2)))


@pytest.mark.parametrize("whitespace", ["single", "any"])
@pytest.mark.parametrize("style", sorted({*STYLES} - {"json"}))
def test_schemas_in_one_program_share_tagged_values(style: str, whitespace: str) -> None:
    random = Random(style)
    program, sizes = Program(), list[int]()
    builder: Builder | None = None
    for schema in (*TAGGED, TAGGED[0]):
        found = read(schema, style=style, whitespace=whitespace)
        program.start, builder = lower_into(program, found.values, found.layout, Meter(Budget()), builder)
        sizes.append(len(program.edges))
        one, other = (PushdownMachine(to_tables(each), BYTES) for each in (program, lowered(found)))
        for text in [some_text(machine, random) for machine in (one, other) for _ in range(3)]:
            assert one.match(text) == other.match(text), (schema, text)
    assert sizes[4] - sizes[3] < 0.7 * sizes[0]


def test_a_small_budget_is_for_the_schema_alone() -> None:
    """States that are there already are not counted."""
    small, tight = read(CLOSED), Budget(states=40)
    large = read({"type": "object", "properties": {f"name{k}": {"type": "boolean"} for k in range(40)}})
    lowered(small, tight)
    program, meter = Program(), Meter(tight)
    builder: Builder | None = None
    for _ in range(5):
        _, builder = lower_into(program, small.values, small.layout, meter, builder)
    assert len(program.edges) > meter.states == tight.states
    with pytest.raises(BudgetExceededError):
        lower_into(program, large.values, large.layout, meter, builder)
    with pytest.raises(BudgetExceededError):
        lowered(large, tight)
