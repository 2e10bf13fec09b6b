"""Equality of JSON values as JSON Schema has it: 1 equals 1.0, but not true; members have no order."""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal

from .document import Json

_TRUE, _FALSE, _ARRAY, _OBJECT = ("true",), ("false",), "[", "{"


def equality_key(value: Json) -> Hashable:
    """A hashable that two values share exactly if they are equal.

    A `Decimal` hashes and compares by its value, so it stands for itself, as do strings and None. Python takes True
    for 1, so booleans do not.
    """
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if not isinstance(value, dict | list):
        number_or_text: str | Decimal | None = value
        return number_or_text
    keys: dict[int, Hashable] = {}
    for node in _post_order(value):
        if isinstance(node, list):
            keys[id(node)] = (_ARRAY, *(_known(item, keys) for item in node))
        else:
            keys[id(node)] = (_OBJECT, frozenset((name, _known(item, keys)) for name, item in node.items()))
    return keys[id(value)]


def _known(value: Json, keys: dict[int, Hashable]) -> Hashable:
    return keys[id(value)] if isinstance(value, dict | list) else equality_key(value)


def _post_order(value: Json) -> list[Json]:
    """The containers of a value, inner ones first."""
    order = [value]
    for node in order:
        items = node.values() if isinstance(node, dict) else node
        order.extend(item for item in items if isinstance(item, dict | list))
    return order[::-1]
