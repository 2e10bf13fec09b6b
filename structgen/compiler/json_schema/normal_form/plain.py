"""Values straight from subschemas, where each says by itself what stands at its place: most schemas are of these.

Values are made in depth, and equal ones are one, as soon as they are found. All is left to the algebra where anything
takes it: where keywords meet that split the values of a place, where a schema refers to itself, where nothing
satisfies one, and where something is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

from ....budget import Meter
from ....errors import BudgetExceededError, DefinitionError, UnsupportedError
from ....system.depth_first import post_order
from ..algebra.assertions import NUMBER_FIELDS, STRING_FIELDS, Assertions
from ..algebra.sharing import BELOW, said
from ..algebra.type_bounds import EVERYTHING
from ..numbers.numbers import NumberSet
from ..read.document import Schema, SchemaId
from ..strings.strings import StringSet
from .shapes import ArrayShape, Choice, KeyClass, ObjectShape, Option, Property, Ref, Value
from .trimming import bounded, trimmed_array

#: The fields of which a plain place has one alone; those of subschemas, with their type; and all others.
_ALONE = frozenset({"refs", "all_of", "any_of", "one_of", "never"})
_HOLDING = {"items": "array", "properties": "object", "additional_properties": "object"}
_PLAIN = STRING_FIELDS | NUMBER_FIELDS | {
    *_HOLDING, "types", "enum", "required", "min_items", "max_items", "unique_items", "min_properties",
    "max_properties",
}  # fmt: skip

#: The number of the values of the schema ``false``.
_NOTHING = -1


class _AlgebraNeeded(Exception):
    pass


def _refuse_cycle(path: list[SchemaId], node: SchemaId) -> None:
    raise _AlgebraNeeded


def plain_values(schemas: Sequence[Schema], root: SchemaId, meter: Meter) -> tuple[tuple[Value, ...], Ref] | None:
    """The values of a schema, and the number of the root's; None where that takes the algebra."""
    with suppress(_AlgebraNeeded, UnsupportedError, DefinitionError, BudgetExceededError):
        return _PlainValues(schemas, meter).run(root)
    return None


class _PlainValues:
    def __init__(self, schemas: Sequence[Schema], meter: Meter) -> None:
        self._schemas = schemas
        self._meter = meter
        self._assertions = Assertions(meter, lenient=False)
        self._refs: dict[SchemaId, Ref] = {}
        self._values: list[Value] = []
        self._choices: list[Choice] = []
        self._known: dict[Hashable, Ref] = {}  # by the fields of values, and by types for places that only name these

    def run(self, root: SchemaId) -> tuple[tuple[Value, ...], Ref]:
        """The values of a schema and of all places that it leads to, children first."""
        said_of: dict[SchemaId, frozenset[str]] = {}

        def children(node: SchemaId) -> list[SchemaId]:
            schema = self._schemas[node]
            fields, types = said(schema), schema.types
            names = said_of[node] = frozenset(fields)
            if not (names <= _PLAIN or (len(names) == 1 and names <= _ALONE)):
                raise _AlgebraNeeded
            if names.isdisjoint(BELOW):
                return []
            return schema.children([n for n in fields if n in BELOW and (types is None or _HOLDING[n] in types)])

        for node in self._meter.each(post_order([root], children, _refuse_cycle), "reading values", every=64):
            self._refs[node] = self._ref(self._schemas[node], said_of[node])
        if self._refs[root] == _NOTHING:
            raise _AlgebraNeeded
        return tuple(self._values), self._refs[root]

    def _ref(self, schema: Schema, names: frozenset[str]) -> Ref:
        """The number of the values of a place."""
        if not names:
            return self._anything()
        if names <= _ALONE:
            return _NOTHING if schema.never else self._alone(schema, *names)
        if len(names) > 1 or schema.types is None:
            return self._number(self._fields(schema, names), schema.pointer)
        types = schema.types, schema.integer_is_exact
        if types not in self._known:
            self._known[types] = self._number(self._fields(schema, names), schema.pointer)
        return self._known[types]

    def _number(self, fields: tuple[Any, ...], pointer: str) -> Ref:
        known = self._known.setdefault(fields, len(self._values))
        if known == len(self._values):
            if not any(fields):
                raise _AlgebraNeeded
            self._values.append(Value._make((*fields, pointer)))
            self._choices.append((Option(known),))
        return known

    def _anything(self) -> Ref:
        if () not in self._known:
            choice = (Option(len(self._values)),)
            objects = (ObjectShape((), (KeyClass(StringSet.ANY, choice),)),)
            self._known[()] = self._number((*EVERYTHING[:4], (ArrayShape((), choice),), objects), "")
        return self._known[()]

    def _choice(self, node: SchemaId | None) -> Choice:
        ref = self._anything() if node is None else self._refs[node]
        return () if ref == _NOTHING else self._choices[ref]

    def _alone(self, schema: Schema, name: str) -> Ref:
        """The number of the values of another place, or of alternatives of which no two have any of one type."""
        refs = [self._refs[node] for node in getattr(schema, name)]
        if len(refs) == 1:
            return refs[0]
        columns = list(zip(*[self._values[ref][:-1] for ref in refs if ref != _NOTHING], strict=True))
        if name in ("refs", "all_of") or not columns or any(sum(map(bool, column)) > 1 for column in columns):
            raise _AlgebraNeeded
        null, booleans, numbers, *others = [max(column, key=bool) for column in columns]
        numbers = numbers and numbers.union(NumberSet.EMPTY, self._meter)  # of no other alternative, as written
        return self._number((null, booleans, numbers, *others), schema.pointer)

    def _fields(self, schema: Schema, names: frozenset[str]) -> tuple[Any, ...]:
        """The fields of a value, but for its place."""
        null, booleans, numbers, strings, arrays, objects = self._assertions.bounds(schema, names)
        if schema.enum is not None and (arrays or objects):
            raise _AlgebraNeeded
        return (
            null,
            booleans,
            None if numbers.is_empty() else numbers,
            None if strings.is_empty() else strings,
            (self._array(schema),) if arrays else (),
            (self._object(schema),) if objects else (),
        )

    def _array(self, schema: Schema) -> ArrayShape:
        rest, low, high = self._choice(schema.items), schema.min_items, schema.max_items
        if (high is not None and low > high) or (low and not rest):
            raise _AlgebraNeeded
        unique = schema.unique_items and bool(rest)
        if unique:
            items = self._values[rest[0].value]
            if not (items.arrays or items.objects or items.strings is StringSet.ANY):  # few may bound their number
                raise _AlgebraNeeded
        return trimmed_array(ArrayShape((), () if high == 0 else rest, low, high, (), unique))

    def _object(self, schema: Schema) -> ObjectShape:
        properties, needed, rest = schema.properties, {*schema.required}, self._choice(schema.additional_properties)
        members = [Property(name, self._choice(node), name in needed) for name, node in properties.items()]
        members += [Property(name, rest, True) for name in schema.required if name not in properties]
        low, high = schema.min_properties, schema.max_properties
        possible = len(members) - [choice for _, choice, _ in members].count(())
        is_empty = (high is not None and high < max(low, len(needed))) or (low > possible and not rest)
        names = "".join([name for name, _, _ in members])
        if is_empty or possible < len(members) or not (names.isascii() or names in StringSet.ANY):
            raise _AlgebraNeeded
        return bounded(ObjectShape(tuple(members), ((KeyClass(StringSet.ANY, rest),) if rest else ()), low, high))
