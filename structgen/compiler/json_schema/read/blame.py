"""Errors of the budget: where in a schema they are, and what is largest there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal

from ....errors import BudgetExceededError
from .document import Json
from .json_values import parse_json
from .references import shown_segment

#: Keywords that cost nothing, however much they hold.
_FREE = {"$defs", "definitions", "default", "examples", "title", "description", "$comment", "$schema", "$id", "$ref"}

#: Longer numbers are not spelled out.
_DIGITS = 15

_COUNTS = re.compile(r"(min|max)[A-Z]|multipleOf")


class placed:
    """Has errors of the budget say which part of the schema they are about; entered for each value of a schema."""

    __slots__ = ("_pointer",)

    def __init__(self, pointer: str | Callable[[], str]) -> None:
        self._pointer = pointer

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, BudgetExceededError) and not (error.where.startswith("/") or ", at " in error.where):
            at = self._pointer if isinstance(self._pointer, str) else self._pointer()
            where = f"{error.where}, at {at or 'the root'}"
            raise BudgetExceededError(error.what, where=where, remedy=error.remedy) from error


@contextmanager
def blaming(text: str) -> Iterator[None]:
    """Have errors of the budget name the largest keyword at their place in a schema of this JSON text."""
    try:
        yield
    except BudgetExceededError as error:
        found = re.search(r"(?:^|[a-z], at )(/[^,]*)", error.where)
        is_read = error.where.startswith("reading")  # breadth first, so that it is all of the schema
        if not error.remedy.startswith(("Simplify", "Shrink")):
            raise
        part = _largest(parse_json(text), found[1] if found and not is_read else "")
        if part is None:
            raise
        how, _, otherwise = error.remedy.partition(", or ")
        how = how if "repeats" in how and "'pattern" in part else f"Shrink what is largest there, {part}"
        raise BudgetExceededError(error.what, where=error.where, remedy=f"{how}, or {otherwise}") from error


def _largest(node: Json, pointer: str) -> str | None:
    """The largest keyword at or below a place: which, its size, and where it stands."""
    keyword, at = "", ""
    with suppress(LookupError, TypeError, ValueError):  # a pointer may be cut, or lead elsewhere than the text
        for segment in pointer.split("/")[1:]:
            name = segment.replace("~1", "/").replace("~0", "~")
            node = node[int(name)] if isinstance(node, list) else node[name]  # type: ignore[index, call-overload]
            keyword, at = segment, f"{at}/{segment}"
    most, found = 1, None
    keys = [(keyword, -1)]  # of all values, each with the number of the one around it
    todo = [(0, node)]
    while todo:
        number, node = todo.pop()
        keyword = keys[number][0]
        size, unit = (0, "") if keyword in _FREE else _size(keyword, node)
        if size > most:
            most, found = size, (number, unit)
        children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, child in children:
            todo.append((len(keys), child))
            keys.append((str(key), number))
    if found is None:
        return None
    number, unit = found
    keyword, path = keys[number][0], []
    while number > 0:
        path.append(keys[number][0])
        number = keys[number][1]
    return f"{keyword!r} of {most:,}{unit} ({'/'.join([at, *map(shown_segment, reversed(path))])})"


def _size(keyword: str, value: Json) -> tuple[int, str]:
    if isinstance(value, (list, dict)):
        return len(value), " entries"
    if isinstance(value, str) and keyword == "pattern":
        return len(value), " characters"
    if not isinstance(value, Decimal) or not _COUNTS.match(keyword):
        return 0, ""
    return (int(value), "") if value.adjusted() < _DIGITS else (10**_DIGITS, " and more")
