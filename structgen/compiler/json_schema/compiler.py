"""The JSON Schema front end: a `JsonSchema` in, the pushdown program of its texts out."""

from __future__ import annotations

from ...budget import Meter
from ...definitions import JsonSchema
from ...errors import UnsupportedError
from ..programs.program import Program
from .lower.lower import lower
from .lower.options import TextOptions
from .normal_form.nesting import endless
from .normal_form.shapes import Values
from .normalise import normalise
from .read.reader import read


def compile_json_schema(definition: JsonSchema, meter: Meter) -> tuple[Program, tuple[str, ...]]:
    """Read the schema, bring it into normal form, lower it.

    Returns the program, and a line for each thing that was relaxed (only where the definition is lenient). Raises
    the errors of `read`, `normalise` and `lower`, and `UnsupportedError` for an indentation without a deepest level.
    """
    document = read(definition.text, meter, additional_properties=definition.additional_properties)
    values = normalise(document, meter, lenient=definition.lenient)
    if definition.indent is not None:
        _check_bounded(values)
    layout = TextOptions(definition.gap, definition.indent, definition.property_order, definition.escapes)
    relaxed = list(values.relaxations)
    program = lower(values, layout, meter, lenient=relaxed if definition.lenient else None)
    return program, tuple(dict.fromkeys(relaxed))


def _check_bounded(values: Values) -> None:
    value = endless(values)
    if value is not None:
        raise UnsupportedError(
            "an indentation takes values whose nesting is bounded, and this one can contain itself",
            where=value.pointer or "the root",
            remedy="Use whitespace='any', or forbid members of any kind: additional_properties=False.",
        )
