"""Values straight from subschemas, where each says by itself what stands at its place: most places are of these.

What a place leads to comes before it, and equal values are one, as soon as they are found. The algebra has the places
where keywords meet that split the values, that lead to themselves, that nothing satisfies, or of which something is
refused, and those that lead to one of these.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError, UnsupportedError
from ..algebra.assertions import NUMBER_FIELDS, STRING_FIELDS, Assertions
from ..algebra.goals import Conjunction
from ..algebra.sharing import Fields
from ..algebra.type_bounds import EVERYTHING
from ..numbers.numbers import NumberSet
from ..read.document import Schema, SchemaId
from ..strings.strings import StringSet
from .shapes import ArrayShape, Choice, KeyClass, ObjectShape, Option, Property, Ref, Value
from .trimming import bounded, trimmed_array

#: The fields of which a plain place has one alone, and all others.
_ALONE = frozenset({"refs", "all_of", "any_of", "one_of", "never"})
_PLAIN = STRING_FIELDS | NUMBER_FIELDS | {
    "types", "enum", "items", "min_items", "max_items", "unique_items", "properties", "additional_properties",
    "required", "min_properties", "max_properties",
}  # fmt: skip


class _AlgebraNeeded(Exception):
    pass


class PlainValues:
    """The values of those places of a document that are plain; ``values`` has them by number, others may be added.

    ``fields``: the places that are looked at, as `places` has them, up to that of the root.
    """

    def __init__(self, schemas: Sequence[Schema], fields: Fields, root: SchemaId, meter: Meter, lenient: bool) -> None:
        self.values: list[Value] = []
        self.assertions = Assertions(meter)
        self._meter = meter
        self._choices: dict[SchemaId, Choice] = {}
        self._known: dict[Hashable, tuple[Option, ...]] = {}  # by the fields of values, or by types alone
        with suppress(BudgetExceededError):  # which the algebra raises again
            for node, names in meter.each(fields.items(), "reading values", every=64):
                try:
                    self._choices[node] = self._choice_of(schemas[node], names)
                except (_AlgebraNeeded, KeyError, UnsupportedError, DefinitionError):
                    continue
                if node == root:
                    break
        self.assertions.lenient = lenient

    def of(self, goal: Conjunction) -> Ref | None:
        """The number of the values of a goal; None where it, or one that it leads to, takes the algebra."""
        everything = self._anything() if self._choices and not goal else None
        choice = self._choices.get(next(iter(goal))) if len(goal) == 1 else everything
        return choice[0].value if choice else None

    def _choice_of(self, schema: Schema, names: frozenset[str]) -> Choice:
        """The values of a place. Raises `KeyError` where one that it leads to takes the algebra."""
        if not names:
            return self._anything()
        if names <= _PLAIN:
            if len(names) > 1 or schema.types is None:
                return self._numbered(self._fields(schema, names), schema.pointer)
            types = schema.types, schema.integer_is_exact
            if types not in self._known:
                self._known[types] = self._numbered(self._fields(schema, names), schema.pointer)
            return self._known[types]
        if len(names) > 1 or not names <= _ALONE:
            raise _AlgebraNeeded
        return () if schema.never else self._alone(schema, *names)

    def _numbered(self, fields: tuple[Any, ...], pointer: str) -> Choice:
        if not any(fields):
            raise _AlgebraNeeded
        ref = len(self.values)
        choice = self._known.setdefault(fields, (Option(ref),))
        if choice[0].value == ref:
            self.values.append(Value._make((*fields, pointer)))
        return choice

    def _anything(self) -> Choice:
        if () not in self._known:
            choice = (Option(len(self.values)),)
            objects = (ObjectShape((), (KeyClass(StringSet.ANY, choice),)),)
            self._known[()] = self._numbered((*EVERYTHING[:4], (ArrayShape((), choice),), objects), "")
        return self._known[()]

    def _choice(self, node: SchemaId | None) -> Choice:
        return self._anything() if node is None else self._choices[node]

    def _alone(self, schema: Schema, name: str) -> Choice:
        """The values of another place, or of alternatives of which no two have any of one type."""
        choices = [self._choices[node] for node in getattr(schema, name)]
        if len(choices) == 1:
            return choices[0]
        columns = list(zip(*[self.values[ref][:-1] for choice in choices for ref, _ in choice], strict=True))
        if name in ("refs", "all_of") or not columns or any(sum(map(bool, column)) > 1 for column in columns):
            raise _AlgebraNeeded
        null, booleans, numbers, *others = [max(column, key=bool) for column in columns]
        numbers = numbers and numbers.union(NumberSet.EMPTY, self._meter)  # of no other alternative, as written
        return self._numbered((null, booleans, numbers, *others), schema.pointer)

    def _fields(self, schema: Schema, names: frozenset[str]) -> tuple[Any, ...]:
        """The fields of a value, but for its place."""
        null, booleans, numbers, strings, arrays, objects = self.assertions.bounds(schema, names)
        if schema.enum is not None and (arrays or objects):
            raise _AlgebraNeeded
        return (
            null,
            booleans,
            None if numbers is NumberSet.EMPTY or numbers.is_empty() else numbers,
            None if strings is StringSet.EMPTY or strings.is_empty() else strings,
            (self._array(schema),) if arrays else (),
            (self._object(schema),) if objects else (),
        )

    def _array(self, schema: Schema) -> ArrayShape:
        rest, low, high = self._choice(schema.items), schema.min_items, schema.max_items
        if (high is not None and low > high) or (low and not rest):
            raise _AlgebraNeeded
        unique = schema.unique_items and bool(rest)
        if unique:
            items = self.values[rest[0].value]
            if not (items.arrays or items.objects or items.strings is StringSet.ANY):  # few may bound their number
                raise _AlgebraNeeded
        return trimmed_array(ArrayShape((), () if high == 0 else rest, low, high, (), unique))

    def _object(self, schema: Schema) -> ObjectShape:
        properties, needed, rest = schema.properties, {*schema.required}, self._choice(schema.additional_properties)
        choices = self._choices
        members = [Property(name, choices[node], name in needed) for name, node in properties.items()]
        members += [Property(name, rest, True) for name in schema.required if name not in properties]
        low, high = schema.min_properties, schema.max_properties
        possible = len(members) - [choice for _, choice, _ in members].count(())
        is_empty = (high is not None and high < max(low, len(needed))) or (low > possible and not rest)
        names = "".join([name for name, _, _ in members])
        if is_empty or possible < len(members) or not (names.isascii() or names in StringSet.ANY):
            raise _AlgebraNeeded
        return bounded(ObjectShape(tuple(members), ((KeyClass(StringSet.ANY, rest),) if rest else ()), low, high))
