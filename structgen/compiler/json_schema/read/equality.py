"""Equality of JSON values as JSON Schema has it: 1 equals 1.0, but not true; members have no order."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal

from .document import Json


def equality_key(value: Json, *, written: bool = False) -> Hashable:
    """A hashable that two values share exactly if they are equal; with ``written`` also written alike.

    A `Decimal` hashes and compares by its value, so it stands for itself, as do strings and None. Python takes True
    for 1, so booleans do not.
    """
    if not isinstance(value, (dict, list)):
        if isinstance(value, bool):
            return "boolean", value
        is_fraction = written and isinstance(value, Decimal) and value.as_tuple().exponent != 0
        return ("fraction", value) if is_fraction else value
    keys: dict[int, Hashable] = {}
    members = tuple if written else frozenset  # the order is that of the text

    def known(item: Json) -> Hashable:
        return keys[id(item)] if isinstance(item, dict | list) else equality_key(item, written=written)

    for node in reversed(containers(value)):
        if isinstance(node, list):
            keys[id(node)] = ("array", *map(known, node))
        else:
            keys[id(node)] = ("object", members((name, known(item)) for name, item in node.items()))
    return keys[id(value)]


def containers(value: Json) -> list[dict[str, Json] | list[Json]]:
    """The arrays and objects of a value, each before those within it."""
    order = [value] if isinstance(value, dict | list) else []
    for node in order:
        items = node.values() if isinstance(node, dict) else node
        order.extend(item for item in items if isinstance(item, dict | list))
    return order
