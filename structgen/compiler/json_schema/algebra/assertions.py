"""The bounds of a subschema's own assertions, its applicators left aside."""

from __future__ import annotations

from decimal import Decimal
from functools import cache, lru_cache

from ....budget import Meter, Unremembered
from ....errors import BudgetExceededError, UnsupportedError
from ..numbers.digits import Digits
from ..numbers.numbers import NumberSet
from ..read.document import Json, Schema
from ..read.keywords import MAX_DIGITS
from ..strings.strings import StringSet
from .type_bounds import BOOLEANS, EVERYTHING, Kleene, TypeBounds

STRING_FIELDS = frozenset({"min_length", "max_length", "pattern", "format"})
INTEGER_DIGITS = frozenset({"min_digits", "max_digits"})
NUMBER_DIGITS = frozenset(
    {f"{bound}_digits_{part}" for bound in ("min", "max") for part in ("integer", "fraction", "exponent")}
)
_DIGITS = INTEGER_DIGITS | NUMBER_DIGITS
NUMBER_FIELDS = _DIGITS | {"minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of"}
ARRAY_FIELDS = frozenset(
    {"prefix_items", "items", "min_items", "max_items", "contains", "unique_items", "unevaluated_items"}
)
OBJECT_FIELDS = frozenset({
    "properties", "pattern_properties", "additional_properties", "property_names", "required", "min_properties",
    "max_properties", "dependent_required", "dependent_schemas", "unevaluated_properties",
})  # fmt: skip
_SCALAR = STRING_FIELDS | NUMBER_FIELDS | {"enum"}
_ASSERTIONS = _SCALAR | ARRAY_FIELDS | OBJECT_FIELDS | {"types"}

_ALL_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})

#: Characters of two bounds of numbers that are remembered.
_SHORT = 40


class Assertions:
    """Type bounds of single subschemas; collects what ``lenient`` relaxes."""

    def __init__(self, meter: Meter, *, lenient: bool = False) -> None:
        self.meter = meter
        self.lenient = lenient
        self._patterns: dict[str, StringSet] = {}
        self.relaxations: dict[str, None] = {}  # in order, once each

    def bounds(self, schema: Schema, names: frozenset[str]) -> TypeBounds:
        """What the subschema's own assertions allow; ``names`` are the fields that say something."""
        if _ASSERTIONS.isdisjoint(names):
            return EVERYTHING
        are_some = not ARRAY_FIELDS.isdisjoint(names), not OBJECT_FIELDS.isdisjoint(names)
        bounds = _of_types(_ALL_TYPES if schema.types is None else schema.types, schema.integer_is_exact, *are_some)
        if _SCALAR.isdisjoint(names):
            return bounds
        null, booleans, numbers, strings, arrays, objects = bounds
        if strings is StringSet.ANY and not STRING_FIELDS.isdisjoint(names):
            strings = self._strings(schema, names)
        if not NUMBER_FIELDS.isdisjoint(names):
            if not _DIGITS.isdisjoint(names):
                names = self._with_meant_digits(schema, names)
            if numbers is not NumberSet.EMPTY:
                numbers = self._numbers(schema, names, numbers)
        bounds = TypeBounds(null, booleans, numbers, strings, arrays, objects)
        return self._listed(schema.enum, bounds) if schema.enum is not None else bounds

    def _strings(self, schema: Schema, names: frozenset[str]) -> StringSet:
        strings = StringSet.ANY
        if "min_length" in names or "max_length" in names:
            strings = StringSet.length(schema.min_length, schema.max_length)
        for keyword in ("pattern", "format"):
            if keyword in names:
                known = self._named_strings(schema, keyword)
                strings = strings if known is None else known.intersect(strings, self.meter)
        return strings

    def _named_strings(self, schema: Schema, keyword: str) -> StringSet | None:
        where = f"{schema.pointer}/{keyword}"
        try:
            if keyword == "pattern":
                return self._matching(schema.pattern or "", where)
            return StringSet.format(schema.format or "", self.meter)
        except UnsupportedError as error:
            self.relax(where, error)
            return None

    def _matching(self, pattern: str, where: str) -> StringSet:
        if pattern not in self._patterns:
            self._patterns[pattern] = StringSet.pattern(pattern, self.meter, where)
        return self._patterns[pattern]

    def keys(self, pattern: str, pointer: str) -> StringSet:
        """The names that a pattern of ``patternProperties`` matches; none of them where it was relaxed."""
        try:
            return self._matching(pattern, pointer)
        except UnsupportedError as error:
            self.relax(pointer, error)
            return StringSet.EMPTY

    def relax(self, where: str, error: UnsupportedError) -> None:
        """Note that a keyword is dropped; without ``lenient``, raise the error."""
        if not self.lenient:
            raise UnsupportedError(error.what, where=error.where or where, remedy=error.remedy) from error
        self.relaxations[f"{where}: dropped, since {error.what}"] = None

    def _numbers(self, schema: Schema, names: frozenset[str], numbers: NumberSet) -> NumberSet:
        low, low_open = _tighter(schema.minimum, schema.exclusive_minimum, 1)
        high, high_open = _tighter(schema.maximum, schema.exclusive_maximum, -1)
        if low is not None or high is not None:
            texts = ["" if bound is None else str(bound) for bound in (low, high)]
            between = _between if len("".join(texts)) < _SHORT else _between.__wrapped__
            numbers = between(numbers, *texts, low_open, high_open, Unremembered(self.meter))
        if schema.multiple_of is not None:
            numbers = numbers.intersect(NumberSet.multiples(schema.multiple_of), self.meter)
        if names & INTEGER_DIGITS:
            integers = NumberSet.integers(schema.min_digits, schema.max_digits, self.meter)
            numbers = numbers.intersect(integers, self.meter)
        if names & NUMBER_DIGITS:
            digits = Digits(
                (schema.min_digits_integer, schema.max_digits_integer),
                (schema.min_digits_fraction, schema.max_digits_fraction),
                (schema.min_digits_exponent, schema.max_digits_exponent),
            )
            numbers = numbers.within(digits, self.meter)
        return numbers

    def _with_meant_digits(self, schema: Schema, names: frozenset[str]) -> frozenset[str]:
        """The names without bounds of digits beside a type that they say nothing of, which are relaxed."""
        types = schema.types or frozenset()
        for fields, meant, other in ((INTEGER_DIGITS, "integer", "number"), (NUMBER_DIGITS, "number", "integer")):
            found = sorted(names & fields)
            if found and (meant not in types or other in types):
                keyword = camel_case(found[0])
                error = UnsupportedError(
                    f"{keyword!r} is honoured beside the type {meant!r}, and not {other!r}, alone",
                    remedy=f'Write "type": "{meant}" beside it, or drop it.',
                )
                self.relax(f"{schema.pointer}/{keyword}", error)
                names -= fields
            elif any((getattr(schema, name) or 0) > MAX_DIGITS for name in found):
                raise BudgetExceededError(
                    f"numbers of more than {MAX_DIGITS:,} digits",
                    where=f"{schema.pointer}/{camel_case(found[0])}",
                    remedy="Bound them by fewer digits, or leave the bound out.",
                )
        return names

    def _listed(self, values: tuple[Json, ...], bounds: TypeBounds) -> TypeBounds:
        """The bounds of those literals that bounds allow."""
        kinds = set(map(type, values))
        numbers = [value for value in values if isinstance(value, Decimal)] if Decimal in kinds else []
        texts = [value for value in values if isinstance(value, str)]
        return TypeBounds(
            bounds.null and type(None) in kinds,
            bounds.booleans & {value for value in values if isinstance(value, bool)} if bool in kinds else frozenset(),
            NumberSet.literal(numbers).intersect(bounds.numbers, self.meter) if numbers else NumberSet.EMPTY,
            StringSet.literal(texts).intersect(bounds.strings, self.meter),
            min(bounds.arrays, Kleene.SOME) if list in kinds else Kleene.NONE,
            min(bounds.objects, Kleene.SOME) if dict in kinds else Kleene.NONE,
        )


@lru_cache(maxsize=256)
def _between(numbers: NumberSet, low: str, high: str, low_open: bool, high_open: bool, by: Unremembered) -> NumberSet:
    """The numbers between two bounds, of which an empty text is none; schemas have much the same."""
    bounds = Decimal(low) if low else None, Decimal(high) if high else None
    return NumberSet.interval(*bounds, low_open, high_open).intersect(numbers, by.meter)


@cache
def _of_types(types: frozenset[str], integer_is_exact: bool, some_arrays: bool, some_objects: bool) -> TypeBounds:
    """All values of some types, or perhaps only some of the arrays, or of the objects."""
    numbers = NumberSet.ANY if "number" in types else NumberSet.EMPTY
    if "integer" in types and "number" not in types:
        numbers = NumberSet.PLAIN_INTEGERS if integer_is_exact else NumberSet.INTEGERS
    return TypeBounds(
        "null" in types,
        BOOLEANS if "boolean" in types else frozenset(),
        numbers,
        StringSet.ANY if "string" in types else StringSet.EMPTY,
        Kleene.NONE if "array" not in types else Kleene.SOME if some_arrays else Kleene.ALL,
        Kleene.NONE if "object" not in types else Kleene.SOME if some_objects else Kleene.ALL,
    )


def camel_case(field: str) -> str:
    """The keyword of a field of `Schema`."""
    first, *others = field.split("_")
    return first + "".join(word.capitalize() for word in others)


def _tighter(inclusive: Decimal | None, exclusive: Decimal | None, sign: int) -> tuple[Decimal | None, bool]:
    """The stronger of two bounds of one side, and whether it excludes itself; ``sign`` is 1 for lower bounds."""
    if exclusive is None:
        return inclusive, False
    if inclusive is not None and (inclusive > exclusive if sign > 0 else inclusive < exclusive):
        return inclusive, False
    return exclusive, True
