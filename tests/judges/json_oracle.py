"""Which JSON values a system of `Values` allows, by the definitions alone: an oracle for algebra and lowering.

Everything is tried in turn, and nothing is fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from structgen.compiler.json_schema.normal_form.shapes import (
    ArrayShape,
    Choice,
    ObjectShape,
    Option,
    Ref,
    Value,
    Values,
)
from structgen.compiler.json_schema.read.equality import equality_key


class JsonOracle:
    """Tests instances against a system of values.

    Parameters
    ----------
    values:
        The system.
    ordered:
        Whether declared members have to come in their order, before the others.
    """

    def __init__(self, values: Values, *, ordered: bool = False) -> None:
        self.values = values
        self.ordered = ordered
        self._known: dict[tuple[Ref, int], bool] = {}
        self._alive: list[Any] = []  # keeps instances, and so their identities

    def accepts(self, instance: Any) -> bool:
        """Whether the root allows an instance, which is as `json.loads` gives it."""
        self._alive.append(instance)
        return self._value(self.values.root, instance)

    def _value(self, ref: Ref, instance: Any) -> bool:
        key = ref, id(instance)
        if key not in self._known or not isinstance(instance, (list, dict)):
            self._known[key] = self._allows(self.values.values[ref], instance)
        return self._known[key]

    def _allows(self, value: Value, instance: Any) -> bool:
        if instance is None:
            return value.null
        if isinstance(instance, bool):
            return instance in value.booleans
        if isinstance(instance, (int, float, Decimal)):
            return value.numbers is not None and number(instance) in value.numbers
        if isinstance(instance, str):
            return value.strings is not None and instance in value.strings
        if isinstance(instance, list):
            return any(self._array(shape, instance) for shape in value.arrays)
        return any(self._object(shape, instance) for shape in value.objects)

    def _array(self, shape: ArrayShape, items: list[Any]) -> bool:
        if len(items) < shape.min_items or (shape.max_items is not None and len(items) > shape.max_items):
            return False
        if shape.unique and len({identity_of(item) for item in items}) < len(items):
            return False
        reached = {(0,) * len(shape.contains)}
        for position, item in enumerate(items):
            choice = shape.prefix[position] if position < len(shape.prefix) else shape.rest
            marks = {option.marks for option in self._options(choice, item)}
            reached = {
                tuple(count + (bits >> k & 1) for k, count in enumerate(counts)) for counts in reached for bits in marks
            }
        return any(
            all(
                bound.min <= count and (bound.max is None or count <= bound.max)
                for count, bound in zip(counts, shape.contains, strict=True)
            )
            for counts in reached
        )

    def _object(self, shape: ObjectShape, members: dict[str, Any]) -> bool:
        size = len(members)
        if size < shape.min_properties or (shape.max_properties is not None and size > shape.max_properties):
            return False
        declared = {prop.name: prop for prop in shape.properties}
        if any(prop.required and prop.name not in members for prop in shape.properties):
            return False
        if self.ordered and not self._in_order([prop.name for prop in shape.properties], list(members)):
            return False
        reached = {0}
        for name, item in members.items():
            choice = declared[name].choice if name in declared else self._other(shape, name)
            marks = {option.marks for option in self._options(choice, item)}
            reached = {earned | bits for earned in reached for bits in marks}
        return (1 << shape.exists) - 1 in reached

    @staticmethod
    def _other(shape: ObjectShape, name: str) -> Choice:
        classes = [entry.choice for entry in shape.others if name in entry.keys]
        assert len(classes) < 2, f"{name!r} is in two classes"
        return classes[0] if classes else ()

    @staticmethod
    def _in_order(declared: list[str], names: list[str]) -> bool:
        places = [declared.index(name) if name in declared else len(declared) for name in names]
        return places == sorted(places)

    def _options(self, choice: Choice, item: Any) -> Iterator[Option]:
        found = [option for option in choice if self._value(option.value, item)]
        assert len({option.marks for option in found}) < 2, "options with different marks overlap"
        return iter(found)


def accepts(values: Values, instance: Any, *, ordered: bool = False) -> bool:
    """Whether a system of values allows an instance."""
    return JsonOracle(values, ordered=ordered).accepts(instance)


def number(value: int | float | Decimal) -> Decimal:
    """The number that Python would write."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def identity_of(value: Any) -> Any:
    """Equal for equal JSON values, with floats."""
    if isinstance(value, float):
        return equality_key(number(value))
    if isinstance(value, list):
        return "array", tuple(identity_of(item) for item in value)
    if isinstance(value, dict):
        return "object", tuple((name, identity_of(value[name])) for name in sorted(value))
    return equality_key(value)
