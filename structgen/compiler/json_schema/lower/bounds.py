"""What lowering takes at most, as far as that can be said without it.

A schema is lowered on demand only where nothing of it can be refused once it is compiled. So all that is not
bounded here (sets of names or of items that multiply, unions of strings, products of several classes of names) is
lowered when compiling, with the rest of its schema.
"""

from __future__ import annotations

from math import prod

from ....budget import Meter
from ..layout.options import TextOptions
from ..normal_form.shapes import ArrayShape, Choice, ObjectShape, Values
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


def most_states(values: Values, layout: TextOptions, meter: Meter) -> int | None:
    """What the states of a program are fewer than, in whatever parts it is lowered; None where that is not known.

    Raises `BudgetExceededError` as making the strings' automata does.
    """
    if layout.indent is not None or layout.style is not None or layout.property_order == "any":
        return None
    if layout.separators != (",", ":"):  # they have states of their own
        return None
    parts: dict[StringSet | NumberSet | ArrayShape | ObjectShape, int | None] = {}
    for value in meter.each(values.values, "lowering the schema"):
        with placed(value.pointer):
            for part in (value.strings, value.numbers, *value.arrays, *value.objects):
                if part is not None and part not in parts:
                    parts[part] = _of_part(part, layout, meter)
                    if parts[part] is None:
                        return None
    return _OF_PLACE * len(values.values) + sum(filter(None, parts.values()))


def _of_part(part: StringSet | NumberSet | ArrayShape | ObjectShape, layout: TextOptions, meter: Meter) -> int | None:
    if isinstance(part, StringSet):
        return part.most_states(layout.escapes, meter)
    if isinstance(part, NumberSet):
        return 0 if part.is_any() or part == NumberSet.INTEGERS else _of_numbers(part, meter)
    return _of_array(part) if isinstance(part, ArrayShape) else _of_object(part, layout, meter)


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
    if shape.unique or shape.contains or places >= 1 << 30 or not all(map(_is_plain, shape.choices())):
        return None
    edges = max(map(len, shape.choices()))
    return _OF_PLACE * (len(shape.prefix) + min(places, COUNT_FROM) + 4) + edges


def _of_object(shape: ObjectShape, layout: TextOptions, meter: Meter) -> int | None:
    if shape.exists or (shape.others and layout.unique_names) or not all(map(_is_plain, shape.choices())):
        return None
    if tells_names(shape):
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
