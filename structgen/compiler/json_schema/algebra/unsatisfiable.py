"""Why no value satisfies a schema: the innermost place whose keywords leave nothing."""

from __future__ import annotations

from collections.abc import Callable

from ....definitions.json_text import dumps
from ....errors import EmptyLanguageError
from ..read.document import Schema, SchemaId
from .assertions import NUMBER_FIELDS, STRING_FIELDS, camel_case
from .expansion import Expansion
from .goals import ANYTHING, NOTHING, Conjunction, all_of, in_order, node_of
from .type_bounds import Kleene

_KEYWORDS = {"types": "type", "not_": "not", "if_": "if", "else_": "else", "refs": "$ref"}

#: So many keywords are named at most, and so many characters of each one's value.
_MOST_NAMED = 4
_MOST_SHOWN = 40


def conflict(
    goal: Conjunction, expansion: Expansion, inhabited: Callable[[Conjunction], bool | None]
) -> EmptyLanguageError:
    """The error for a goal that no value reaches; ``inhabited`` knows of some goals whether any value does."""

    def unsatisfiable(inner: Conjunction) -> bool:
        known = inhabited(inner)
        return _is_barren(inner, expansion) if known is None else not known

    seen = {goal}
    while (found := _unsatisfiable_child(goal, expansion, unsatisfiable)) is not None:
        inner, what = found
        if inner == NOTHING:
            return _error(f"{what} is required and forbidden", goal, expansion)
        if inner in seen:
            return _error(f"{what} would have to hold another of its own kind, without end", goal, expansion)
        seen.add(inner)
        goal = inner
    if goal == NOTHING:
        return _error("it is the schema false", goal, expansion)
    return _error(f"nothing satisfies {_listed(_said(goal, expansion))} at once", goal, expansion)


def _error(why: str, goal: Conjunction, expansion: Expansion) -> EmptyLanguageError:
    return EmptyLanguageError(
        f"no value satisfies the schema: {why}",
        where=expansion.nodes.pointer(goal) or "the root",
        remedy="Relax one of the keywords.",
    )


def conjuncts(goal: Conjunction, expansion: Expansion) -> list[SchemaId]:
    """The subschemas that a value has to satisfy: the goal's, and those that they refer to or are made of."""
    nodes = expansion.nodes
    found = dict.fromkeys(node_of(literal) for literal in in_order(goal) if literal >= 0 and goal != NOTHING)
    queue = list(found)
    for node in queue:
        schema = nodes.schemas[node]
        for child in (*schema.refs, *schema.all_of):
            if child not in found:
                found[child] = None
                queue.append(child)
    return queue


def _unsatisfiable_child(
    goal: Conjunction, expansion: Expansion, unsatisfiable: Callable[[Conjunction], bool]
) -> tuple[Conjunction, str] | None:
    """The goal of a required member, or of an item that must be there, that can't be reached, and which one it is."""
    nodes = conjuncts(goal, expansion)
    schemas = [expansion.nodes.schemas[node] for node in nodes]
    rules = [expansion.objects.rule(node) for node in nodes]
    for name in dict.fromkeys(name for schema in schemas for name in schema.required):
        inner = all_of([rule.goal(name) for rule in rules])
        if unsatisfiable(inner):
            return inner, f"the member {name!r}"
    for schema in schemas:
        rule = expansion.arrays.rule(schema)
        for position in range(min(schema.min_items, len(rule.prefix) + 1)):
            if unsatisfiable(rule.goal(position)):
                return rule.goal(position), f"item {position}"
    return None


def _is_barren(goal: Conjunction, expansion: Expansion) -> bool:
    if goal == ANYTHING:
        return False
    scalars = expansion.bounds.solve(goal)._replace(arrays=Kleene.NONE, objects=Kleene.NONE)
    return scalars.is_empty() and not expansion.array_clauses.of(goal) and not expansion.object_clauses.of(goal)


def _said(goal: Conjunction, expansion: Expansion) -> list[str]:
    """The keywords of the goal's subschemas, with their values where these are short."""
    found: dict[str, None] = {}
    for node in conjuncts(goal, expansion):
        schema = expansion.nodes.schemas[node]
        for name in sorted(expansion.nodes.said(node) - {"refs", "all_of"}):
            found[_shown(schema, name)] = None
    for literal in in_order(goal):
        if literal < 0:
            found[f"not {expansion.nodes.schemas[~literal].pointer or 'the root'}"] = None
    return list(found)


def _shown(schema: Schema, name: str) -> str:
    keyword = _KEYWORDS.get(name) or camel_case(name)
    value = getattr(schema, name)
    if name == "types":
        value = " or ".join(sorted(value))
    elif name == "enum":
        value = ", ".join(each if isinstance(each, str) else dumps(each) for each in value[:_MOST_SHOWN]) or "[]"
    elif name not in STRING_FIELDS | NUMBER_FIELDS and not name.startswith(("min_", "max_")):
        return keyword
    text = str(value)
    return f"{keyword} {text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + '...'}"


def _listed(said: list[str]) -> str:
    if len(said) > _MOST_NAMED:
        said = [*said[:_MOST_NAMED], "the other keywords"]
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " and " + said[-1]
