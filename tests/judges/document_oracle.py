"""A plain validator of instances against a `Document`, for judging the reader apart from the algebra.

It follows the specification keyword by keyword, in the terms of Draft 2020-12, recursively. Numbers in instances
are `Decimal`, as in the document. Formats are `jsonschema`'s.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from structgen.compiler.json_schema.read.document import Document, Schema, SchemaId
from structgen.compiler.json_schema.read.equality import equality_key

#: What a schema evaluated: member names or item numbers; None if the instance is invalid.
Evaluated = "set[Any] | None"


class Oracle:
    """``Oracle(document, schema).accepts(instance)``; the original schema says which formats there are."""

    def __init__(self, document: Document, original: Any) -> None:
        self.document = document
        default = validator_for({"$schema": "https://json-schema.org/draft/2020-12/schema"})
        validator: type[Validator] = validator_for(original, default=default)
        self.formats = validator.FORMAT_CHECKER
        self.contains_evaluates = document.draft == "2020-12"

    def accepts(self, instance: Any) -> bool:
        return self.evaluate(self.document.root, instance, ()) is not None

    def evaluate(self, schema_id: SchemaId, instance: Any, scope: tuple[int, ...]) -> set[Any] | None:
        schema = self.document.schemas[schema_id]
        if schema.resource not in scope:
            scope = (*scope, schema.resource)
        if schema.never or not (self._type(schema, instance) and self._scalars(schema, instance)):
            return None
        found = self._in_place(schema, instance, scope)
        if found is None:
            return None
        if isinstance(instance, dict):
            return self._object(schema, instance, scope, found)
        if isinstance(instance, list):
            return self._array(schema, instance, scope, found)
        return found

    def _in_place(self, schema: Schema, instance: Any, scope: tuple[int, ...]) -> set[Any] | None:
        found: set[Any] = set()
        needed = [*schema.refs, *schema.all_of]
        if schema.dynamic_ref is not None:
            assert schema.dynamic_default is not None
            anchors = [self.document.dynamic_anchors.get(r, {}).get(schema.dynamic_ref) for r in scope]
            needed.append(next((a for a in anchors if a is not None), schema.dynamic_default))
        if isinstance(instance, dict):
            needed += [child for name, child in schema.dependent_schemas.items() if name in instance]
        if schema.if_ is not None:
            tried = self.evaluate(schema.if_, instance, scope)
            found |= tried or set()
            branch = schema.then if tried is not None else schema.else_
            needed += [] if branch is None else [branch]
        for child in needed:
            result = self.evaluate(child, instance, scope)
            if result is None:
                return None
            found |= result
        written = [(child, self.document.schemas[child].written) for child in schema.one_of or ()]
        counted = [child if other is None else other for child, other in written]
        if counted and sum(self.evaluate(child, instance, scope) is not None for child in counted) != 1:
            return None
        for several, one in ((schema.any_of, False), (schema.one_of, True)):
            if several is not None:
                results = [r for r in (self.evaluate(child, instance, scope) for child in several) if r is not None]
                if not results or (one and len(results) > 1):
                    return None
                found = found.union(*results)
        if schema.not_ is not None and self.evaluate(schema.not_, instance, scope) is not None:
            return None
        return found

    def _type(self, schema: Schema, instance: Any) -> bool:
        if schema.enum is not None and equality_key(instance) not in {equality_key(item) for item in schema.enum}:
            return False
        if schema.types is None:
            return True
        if isinstance(instance, Decimal):
            exact = instance.as_tuple().exponent == 0
            integer = exact if schema.integer_is_exact else instance == instance.to_integral_value()
            return "number" in schema.types or ("integer" in schema.types and integer)
        names = {type(None): "null", bool: "boolean", str: "string", list: "array", dict: "object"}
        return names[type(instance)] in schema.types

    def _scalars(self, schema: Schema, instance: Any) -> bool:
        if schema.format is not None and not self.formats.conforms(_plain(instance), schema.format):
            return False
        if isinstance(instance, str):
            return (
                schema.min_length <= len(instance)
                and (schema.max_length is None or len(instance) <= schema.max_length)
                and (schema.pattern is None or re.search(schema.pattern, instance) is not None)
            )
        if isinstance(instance, Decimal):
            return (
                (schema.minimum is None or instance >= schema.minimum)
                and (schema.maximum is None or instance <= schema.maximum)
                and (schema.exclusive_minimum is None or instance > schema.exclusive_minimum)
                and (schema.exclusive_maximum is None or instance < schema.exclusive_maximum)
                and (schema.multiple_of is None or Fraction(instance) / Fraction(schema.multiple_of) % 1 == 0)
            )
        return True

    def _object(
        self, schema: Schema, instance: dict[str, Any], scope: tuple[int, ...], found: set[Any]
    ) -> set[Any] | None:
        if len(instance) < schema.min_properties or not set(schema.required) <= set(instance):
            return None
        if schema.max_properties is not None and len(instance) > schema.max_properties:
            return None
        if any(n in instance and not set(needed) <= set(instance) for n, needed in schema.dependent_required.items()):
            return None
        for name, value in instance.items():
            if schema.property_names is not None and self.evaluate(schema.property_names, name, scope) is None:
                return None
            children = [child for p, child in schema.pattern_properties.items() if re.search(p, name)]
            if name in schema.properties:
                children.append(schema.properties[name])
            if not children and schema.additional_properties is not None:
                children.append(schema.additional_properties)
            if any(self.evaluate(child, value, scope) is None for child in children):
                return None
            if children:
                found.add(name)
        if schema.unevaluated_properties is not None:
            for name in set(instance) - found:
                if self.evaluate(schema.unevaluated_properties, instance[name], scope) is None:
                    return None
                found.add(name)
        return found

    def _array(self, schema: Schema, instance: list[Any], scope: tuple[int, ...], found: set[Any]) -> set[Any] | None:
        if len(instance) < schema.min_items or (schema.max_items is not None and len(instance) > schema.max_items):
            return None
        if schema.unique_items and len({equality_key(item) for item in instance}) < len(instance):
            return None
        for index, item in enumerate(instance):
            child = schema.prefix_items[index] if index < len(schema.prefix_items) else schema.items
            if child is not None:
                if self.evaluate(child, item, scope) is None:
                    return None
                found.add(index)
        if schema.contains is not None:
            hits = {i for i, item in enumerate(instance) if self.evaluate(schema.contains, item, scope) is not None}
            if len(hits) < schema.min_contains or (schema.max_contains is not None and len(hits) > schema.max_contains):
                return None
            found |= hits if self.contains_evaluates else set()
        if schema.unevaluated_items is not None:
            for index in set(range(len(instance))) - found:
                if self.evaluate(schema.unevaluated_items, instance[index], scope) is None:
                    return None
                found.add(index)
        return found


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value
