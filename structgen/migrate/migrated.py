"""What became of another engine's definition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..compiler.json_schema.read.drafts import UNDECLARED
from ..definitions import Definition
from ..definitions.json_text import dumps, loads
from ..system.types import Foreign


@dataclass(frozen=True)
class Migrated:
    """What became of another engine's definition.

    Parameters
    ----------
    definition:
        To be compiled as any other.
    changes:
        What is not as it was there, a sentence for each; empty where the texts are the same.
    """

    definition: Definition
    changes: tuple[str, ...] = ()


#: How deep the objects may be nested that other engines' definitions are made of.
DEEPEST_TERM = 100

#: A change that many of them have.
ANY_ESCAPE = 'Strings may be spelled with any escape of JSON, by escapes="any".'


def corrected(
    schema: Foreign, correct: Callable[[dict[str, Foreign]], bool], change: str
) -> tuple[Foreign, tuple[str, ...]]:
    """A schema each of whose subschemas ``correct`` has corrected, and the ``change`` where it says that it did."""
    root: Foreign = loads(schema if isinstance(schema, str) else dumps(schema))
    todo, is_changed = [root], False
    while todo:
        each = todo.pop()
        if not isinstance(each, dict):
            continue
        is_changed |= correct(each)
        for keyword, value in each.items():
            if keyword in UNDECLARED.several and isinstance(value, list):
                todo += value
            elif keyword in UNDECLARED.one:
                todo.append(value)
            elif keyword in UNDECLARED.several and isinstance(value, dict):
                todo += value.values()
    return (dumps(root), (change,)) if is_changed else (schema, ())
