"""What lowering takes at most, as far as that can be said without it.

A schema is lowered on demand only where nothing of it can be refused once it is compiled. So shapes that are not
bounded here (with sets of items that multiply, unions of strings, products of several classes of names) are lowered
when compiling.
"""

from __future__ import annotations

from math import prod

from ....budget import Meter
from ..layout.options import TextOptions
from ..normal_form.shapes import ArrayShape, Choice, ObjectShape, Value, Values
from ..numbers.numbers import NumberSet
from ..read.blame import placed
from ..strings.strings import StringSet
from .items import COUNT_FROM
from .members import tells_names

#: States beside names and values: of a place or an item with the brackets, commas, colons and spaces around it; and
#: of each letter of a name, which stands in the tries of places before the name and, if others may come, after it.
_OF_PLACE, _OF_LETTER = 12, 6

#: States of numbers whose bounds are few and short, and what is short: digits and exponent.
_OF_NUMBER, _FEW_POINTS, _MOST_DIGITS = 1_000, 4, 16

#: Products of states of classes of names, and tallies times places: with more it takes the lowering to tell.
_MOST_PAIRS, _MOST_PLACES = 1_000, 10_000


def most_states(
    values: Values, layout: TextOptions, meter: Meter
) -> tuple[int, list[tuple[ArrayShape | ObjectShape, Value]]] | None:
    """What the states of a program are fewer than, in whatever parts it is lowered, but for those of some shapes.

    Nothing bounds these shapes, each with a value that has it; but where all of them are lowered, nothing else is
    refused, and the rest has no more states than that. None where that is not known.

    Raises `BudgetExceededError` as making the strings' automata does.
    """
    if layout.indent is not None or layout.style is not None or layout.property_order == "any":
        return None
    if layout.separators != (",", ":"):  # they have states of their own
        return None
    parts: dict[StringSet | NumberSet | ArrayShape | ObjectShape, int] = {}
    unbounded: dict[ArrayShape | ObjectShape, Value] = {}
    met = {values.root: None}
    for ref in meter.each(queue := [values.root], "lowering the schema"):
        value = values.values[ref]
        fresh = dict.fromkeys(child for child in value.children() if child not in met)
        met |= fresh
        queue += fresh
        with placed(value.pointer):
            for scalars in (value.strings, value.numbers):
                if scalars is not None and scalars not in parts:
                    parts[scalars] = _of_scalars(scalars, layout, meter)
            shapes: list[ArrayShape | ObjectShape] = [*value.arrays, *value.objects]
            for shape in shapes:
                if shape in parts or shape in unbounded:
                    continue
                if _keeps_sets(shape, layout):
                    return None
                most = _of_array(shape) if isinstance(shape, ArrayShape) else _of_object(shape, layout, meter)
                if most is None:
                    unbounded[shape] = value
                else:
                    parts[shape] = most
    return _OF_PLACE * len(met) + sum(parts.values()), [*unbounded.items()]


def _keeps_sets(shape: ArrayShape | ObjectShape, layout: TextOptions) -> bool:
    """Whether items or names must differ: who follows a text keeps sets of them, or they are values of their own."""
    if isinstance(shape, ArrayShape):
        return shape.unique
    return tells_names(shape) or bool(shape.others and layout.unique_names)


def _of_scalars(part: StringSet | NumberSet, layout: TextOptions, meter: Meter) -> int:
    if isinstance(part, StringSet):
        return part.most_states(layout.escapes, meter)
    return 0 if part.is_any() or part == NumberSet.INTEGERS else _of_numbers(part, meter)


def _of_numbers(numbers: NumberSet, meter: Meter) -> int:
    lines = numbers.plain, numbers.written
    points = [point for line in lines for point in line.points]
    if (
        numbers.digits is not None
        or len(points) > 2 * _FEW_POINTS
        or max(line.modulus_bits for line in lines) > 1
        or any(len(point.as_tuple().digits) + abs(point.adjusted()) > _MOST_DIGITS for point in points)
    ):
        return numbers.dfa(meter).states
    return _OF_NUMBER


def _of_array(shape: ArrayShape) -> int | None:
    places = max(shape.min_items, shape.max_items or 0)
    if shape.contains or places >= 1 << 30 or not all(map(_is_plain, shape.choices())):
        return None
    edges = max(map(len, shape.choices()))
    return _OF_PLACE * (len(shape.prefix) + min(places, COUNT_FROM) + 4) + edges


def _of_object(shape: ObjectShape, layout: TextOptions, meter: Meter) -> int | None:
    if shape.exists or not all(map(_is_plain, shape.choices())):
        return None
    bodies = [key_class.keys.body(layout.escapes, meter) for key_class in shape.others]
    product = prod(1 + body.states for body in bodies)
    if len(bodies) > 1 and (product > _MOST_PAIRS or sum(bool(len(body.records)) for body in bodies) > 1):
        return None
    tallies = 1 + max(shape.min_properties, shape.max_properties or 0)
    places = 1 + len(shape.properties)
    if min(places, tallies) * tallies > _MOST_PLACES:
        return None
    letters = sum(len(p.name) + 2 for p in shape.properties)
    return (_OF_LETTER * letters + _OF_PLACE * places) * min(tallies, places) + product


def _is_plain(choice: Choice) -> bool:
    """Whether all options lead to the same tail."""
    return len({option.marks for option in choice}) <= 1
