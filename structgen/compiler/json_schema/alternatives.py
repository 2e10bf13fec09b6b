"""Which parts of a schema no text can use: branches, enum values, types, members, items.

The normal form is found from the root's goal, and tells which goals texts come to: each is the conjunction of all
that is demanded at one place. Where such a goal has a subschema among its literals, or behind references and
applicators that apply to the same value, each alternative of that subschema is asked for on top of the goal. It is
unused if no goal leaves a value with it. So what excludes it may stand anywhere, in another branch of an ``allOf``
for one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from ...budget import Meter
from ...definitions import JsonSchema
from .algebra.expansion import Expansion
from .algebra.goals import NOTHING, Conjunction, both, node_of
from .algebra.nodes import Nodes
from .compiler import layout_of
from .layout.writable import writable
from .normal_form.inhabited import inhabited
from .normal_form.plain import PlainValues
from .normal_form.shaping import Shaping
from .normalise import drafts_of
from .read.document import Json, Schema, SchemaId
from .read.dynamic import without_dynamic_references
from .read.reader import read

_DOING = "looking for alternatives that no text can use"

#: Values of one enum that are looked at.
_MOST_VALUES = 1 << 10


@dataclass
class SchemaPart:
    """A part of a schema.

    Parameters
    ----------
    pointer:
        The JSON pointer to it.
    what:
        What it is, for a person.
    goals:
        What has to be satisfiable for it to be used: one of these.
    """

    pointer: str
    what: str
    goals: dict[Conjunction, None] = field(default_factory=dict)


def unused_alternatives(definition: JsonSchema, meter: Meter) -> tuple[list[SchemaPart], int]:
    """The alternatives that no text can use, and how many were looked at.

    Parts of what is negated, counted (``contains``) or only tested (``if``) are not looked at. Raises the errors of
    `structgen.compiler.json_schema.compiler.read_schema`.
    """
    document = read(definition.text, meter, additional_properties=definition.additional_properties)
    schemas, root = without_dynamic_references(document, meter)
    search = _Search(Nodes(schemas, {}, meter), definition, meter)
    return search.unused(root)


class _Search:
    def __init__(self, nodes: Nodes, definition: JsonSchema, meter: Meter) -> None:
        self._nodes, self._meter = nodes, meter
        self._layout = layout_of(definition)
        plain = PlainValues((), {}, 0, meter, definition.lenient)
        self._expansion = Expansion(nodes, plain.assertions, meter)
        self._shaping = Shaping(nodes, plain, self._layout.max_items, self._layout.max_string_length)
        self._found: dict[tuple[str, str], SchemaPart] = {}

    def unused(self, root: SchemaId) -> tuple[list[SchemaPart], int]:
        """See `unused_alternatives`."""
        self._shaping.ref(self._nodes.goal(root))
        narrowed = writable(drafts_of(self._shaping, self._expansion, self._meter), self._layout, self._meter)
        alive = inhabited(narrowed, self._meter)
        met = {0} & alive
        for ref in (queue := [*met]):
            for child in set(narrowed[ref].children()) & alive - met:
                met.add(child)
                queue.append(child)
        for ref in self._meter.each(sorted(met), _DOING):
            self._look(self._shaping.goals[ref])
        asked = {goal: self._shaping.ref(goal) for each in self._found.values() for goal in each.goals}
        drafts = drafts_of(self._shaping, self._expansion, self._meter)
        alive = inhabited(writable(drafts, self._layout, self._meter), self._meter)
        never = [each for each in self._found.values() if not any(asked[goal] in alive for goal in each.goals)]
        return never, len(self._found)

    def _look(self, goal: Conjunction) -> None:
        """Note the alternatives of all subschemas that apply to the values of a goal."""
        nodes = self._nodes
        seen: set[tuple[SchemaId, Conjunction]] = set()
        todo = [(node_of(literal), goal) for literal in goal if literal >= 0 and goal != NOTHING]
        for node, here in todo:  # grows as it goes
            if (node, here) in seen:
                continue
            seen.add((node, here))
            self._meter.check_time(_DOING)
            schema = nodes.schemas[node]
            for child in (*schema.refs, *schema.all_of):
                todo.append((child, here))
            for what, pointer, child, more in self._branches(schema):
                inner = both(here, more)
                if pointer != schema.pointer:  # else it is the reader's own
                    self._note(pointer, what, inner)
                if inner != NOTHING:
                    todo.append((child, inner))
            for what, pointer, more in self._parts(schema):
                self._note(pointer, what, both(here, more))

    def _note(self, pointer: str, what: str, goal: Conjunction) -> None:
        self._found.setdefault((pointer, what), SchemaPart(pointer, what)).goals[goal] = None

    def _branches(self, schema: Schema) -> Iterator[tuple[str, str, SchemaId, Conjunction]]:
        """The alternatives that are subschemas of the same value: what it is, its pointer, and what it demands."""
        nodes = self._nodes
        for keyword, children in (("anyOf", schema.any_of), ("oneOf", schema.one_of)):
            for child in children or ():
                if nodes.schemas[child].never:
                    continue  # it says itself that it has no value
                yield f"branch of {keyword}", nodes.schemas[child].pointer, child, nodes.goal(child)
        if schema.if_ is not None:
            test = nodes.goal(schema.if_)
            for keyword, branch, when in (("then", schema.then, test), ("else", schema.else_, nodes.negation(test))):
                if branch is not None and not nodes.schemas[branch].never:
                    yield keyword, nodes.schemas[branch].pointer, branch, both(when, nodes.goal(branch))

    def _parts(self, schema: Schema) -> Iterator[tuple[str, str, Conjunction]]:
        """The alternatives that are values, types, members or items."""
        place = schema.pointer
        if schema.enum is not None and len(schema.enum) > 1:
            for value in schema.enum[:_MOST_VALUES]:
                yield f"enum value {_shown(value)}", place, self._nodes.constant(value)
        if schema.types is not None and len(schema.types) > 1:
            for name in sorted(schema.types):
                yield f"type {name!r}", place, self._made(("type", name), types=frozenset([name]))
        for name, child in schema.properties.items():
            if not self._nodes.schemas[child].never:
                must = self._made(("property", name), types=frozenset(["object"]), required=(name,))
                yield f"property {_shown(name)}", self._nodes.schemas[child].pointer, must
        for k, child in enumerate(schema.prefix_items):
            if not self._nodes.schemas[child].never:
                long = self._made(("items", k), types=frozenset(["array"]), min_items=k + 1)
                yield f"item {k}", self._nodes.schemas[child].pointer, long

    def _made(self, key: tuple[str, str | int], **fields: object) -> Conjunction:
        return self._nodes.made(key, Schema("", **fields))


def _shown(value: Json) -> str:
    """A value as JSON, as far as it is short."""
    from ...definitions.json_text import dumps

    text = dumps(_plain(value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def _plain(value: Json) -> object:
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
