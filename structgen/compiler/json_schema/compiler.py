"""The JSON Schema front end: a `JsonSchema` in, the pushdown program of its texts out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ...budget import Meter
from ...definitions import JsonSchema
from ...definitions.styles import STYLES
from ...errors import SchemaWarning, UnsupportedError
from ...system.warning import warn
from ..programs.growing import GrowingProgram
from ..programs.program import First, Program
from ..programs.special_tokens import SpecialTokens
from .layout.options import NONE, TextOptions
from .lower.bounds import most_states
from .lower.builder import Builder
from .lower.lower import SchemaLowering, lower, lower_into
from .normal_form.nesting import endless
from .normal_form.shapes import Values
from .normalise import normalise
from .read.blame import blaming
from .read.document import Document, SchemaFinding
from .read.reader import read

#: A schema that has fewer is lowered as a whole, within some 60 ms: what waits would be in the way of steps.
_FEW_STATES = 100_000

#: Those of a member with its name and its value, as a rule at most.
_OF_MEMBER = 200

#: Findings that are told while compiling.
_MOST_WARNINGS = 3


@dataclass(frozen=True)
class ReadSchema:
    """A schema in normal form: its values, how they are written, and what was relaxed so far."""

    values: Values
    layout: TextOptions
    relaxed: list[str]
    lenient: bool
    findings: tuple[SchemaFinding, ...] = ()

    def warn(self) -> None:
        """Warn of the keywords and formats that check nothing, and are likely others that do."""
        likely = [each for each in self.findings if each.is_likely]
        for what, where, remedy, _ in likely[:_MOST_WARNINGS]:
            warn(SchemaWarning(f"{what} ({where}). {remedy}"))
        if len(likely) > _MOST_WARNINGS:
            more = f"{len(likely) - _MOST_WARNINGS:,} more keywords and formats check nothing. See structgen lint."
            warn(SchemaWarning(more))


def compile_json_schema(
    definition: JsonSchema, meter: Meter, special: SpecialTokens = NONE, *, keeps_sets: bool = False
) -> tuple[Program, tuple[str, ...]]:
    """Read the schema, bring it into normal form, lower it; ``special`` as in `TextOptions`.

    ``keeps_sets``: the program may leave it to who follows a text that an array's items differ.

    Returns the program, and a line for each thing that was relaxed (only where the definition is lenient). Raises
    the errors of `read`, `normalise` and `lower`, and `UnsupportedError` for an indentation without a deepest level.
    """
    with blaming(definition.text):
        schema = read_schema(definition, meter, special)
        schema.warn()
        program = lower_schema(schema, meter, keeps_sets=keeps_sets)
    return program, tuple(dict.fromkeys(schema.relaxed))


def begin_json_schema(
    definition: JsonSchema, meter: Meter, special: SpecialTokens, *, keeps_sets: bool = False
) -> tuple[Program | GrowingProgram, tuple[str, ...]]:
    """The same, lowered on demand where that pays, and is sure to be within the budget and to relax nothing."""
    with blaming(definition.text):
        schema = read_schema(definition, meter, special)
        schema.warn()
        members = sum(len(shape.properties) for value in schema.values.values for shape in value.objects)
        most = most_states(schema.values, schema.layout, meter) if _OF_MEMBER * members >= _FEW_STATES else None
        if most is None or not _FEW_STATES < most <= meter.states:
            program = lower_schema(schema, meter, keeps_sets=keeps_sets)
            return program, tuple(dict.fromkeys(schema.relaxed))
    begin = partial(SchemaLowering, schema.values, schema.layout, meter, lenient=None, whole=False)
    return GrowingProgram(begin, meter), tuple(dict.fromkeys(schema.relaxed))


def read_schema(definition: JsonSchema, meter: Meter, special: SpecialTokens = NONE) -> ReadSchema:
    """Read a schema and bring it into normal form, so that it is known to have a text."""

    def read_text(text: str) -> ReadSchema:
        document = read(text, meter, additional_properties=definition.additional_properties)
        return bring_to_normal_form(document, definition, meter, special)

    if not definition.lenient:
        return read_text(definition.text)
    from .repair import read_leniently

    schema, notes = read_leniently(definition.text, read_text)
    schema.relaxed[:0] = notes
    return schema


def bring_to_normal_form(
    document: Document, definition: JsonSchema, meter: Meter, special: SpecialTokens = NONE
) -> ReadSchema:
    """The same of a document that was read, whose texts are written as the definition's options have it."""
    layout = layout_of(definition, special)
    values = normalise(document, meter, lenient=definition.lenient, layout=layout)
    for what in values.impossible:
        warn(SchemaWarning(what))
    if definition.indent is not None:
        _check_bounded(values)
    relaxed = [*document.unchecked, *values.relaxations]
    return ReadSchema(values, layout, relaxed, definition.lenient, document.findings)


def layout_of(definition: JsonSchema, special: SpecialTokens = NONE) -> TextOptions:
    """How the values of a schema are written."""
    style = STYLES.get(definition.style)
    return TextOptions(
        definition.gap, definition.indent, definition.property_order, definition.escapes, style, definition.tag_gap,
        definition.excludes, NONE if style is None else special, definition.separators,
        definition.max_items, definition.max_string_length, definition.max_digits, definition.unique_names,
    )  # fmt: skip


def is_sure_to_lower(schema: ReadSchema, meter: Meter) -> bool:
    """Whether nothing but the budget can be in the way of lowering a schema, and nothing is relaxed then."""
    return not schema.lenient and most_states(schema.values, schema.layout, meter) is not None


def lower_schema(schema: ReadSchema, meter: Meter, *, keeps_sets: bool = False) -> Program:
    """The program of a schema, as a whole; what is relaxed is noted in the schema."""
    lenient = schema.relaxed if schema.lenient else None
    return lower(schema.values, schema.layout, meter, lenient=lenient, keeps_sets=keeps_sets)


class SharedProgram:
    """A program that schemas are lowered into, where those of one layout share strings, numbers, and any value."""

    def __init__(self, program: Program, meter: Meter) -> None:
        self._program = program
        self._meter = meter
        self._builders: dict[TextOptions, Builder] = {}  # of the schemas that were lowered last

    def first(self, schema: ReadSchema) -> First:
        """What the first state of a schema's texts does."""
        begun, blocks = self._builders.pop(schema.layout, None), len(self._program.blocks)
        start, builder = lower_into(self._program, schema.values, schema.layout, self._meter, begun)
        self._builders[schema.layout] = builder
        return self._program.first(start, blocks)


def _check_bounded(values: Values) -> None:
    value = endless(values)
    if value is not None:
        raise UnsupportedError(
            "an indentation takes values whose nesting is bounded, and this one can contain itself",
            where=value.pointer or "the root",
            remedy="Use whitespace='any', or forbid members of any kind: additional_properties=False.",
        )
