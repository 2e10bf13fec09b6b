"""The table of subschemas that goals are made of: the document's, and those that the algebra makes on its way."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal

from ....budget import Meter
from ..read.document import Json, Schema, SchemaId
from ..read.equality import containers, equality_key
from .goals import ANYTHING, NOTHING, TESTED, Conjunction, Literal, both, in_order, node_of
from .sharing import BELOW, Fields, representatives, said

_APPLICATORS = frozenset({"refs", "all_of", "any_of", "one_of"})  # which alone, and of one schema, name that
_NAMING = _APPLICATORS | {"not_", "never"}  # without which a subschema has a goal of its own
_SPELLING = frozenset({"min_digits", "max_digits", "multiple_of"})
_ENUM = frozenset({"enum"})  # the fields of a node that is a list of values and nothing else


class Nodes:
    """Subschemas by number, each with the goal that stands for it.

    Parameters
    ----------
    schemas:
        The document's; their numbers are their `SchemaId`.
    fields:
        Those in which subschemas say something, as `places` has them; of these, equal ones are one.
    meter:
        Of the compile.
    """

    def __init__(self, schemas: Sequence[Schema], fields: Fields, meter: Meter) -> None:
        self.schemas = list(schemas)
        self.meter = meter
        self._same = representatives(schemas, fields, meter)
        self._said = dict(fields)
        self._written = {self._same[k]: each.written for k, each in enumerate(schemas) if each.written is not None}
        self._goals: list[Conjunction | None] = [None] * len(self.schemas)
        self._constants: dict[Hashable, Conjunction] = {}
        self._made: dict[Hashable, SchemaId] = {}
        self._orders: dict[Conjunction, tuple[Literal, ...]] = {}
        self._listed: dict[Literal, frozenset[Hashable] | None] = {}
        self._spelling: list[bool] = []  # by node, see `tested`

    def put_in_order(self, goal: Conjunction, parts: Iterable[Conjunction]) -> None:
        """Note the order of the parts of a goal, which is that of the places where they are written."""
        if len(goal) > 1 and goal not in self._orders:
            self._orders[goal] = tuple(dict.fromkeys(literal for part in parts for literal in self.in_order(part)))

    def in_order(self, goal: Conjunction) -> Iterable[Literal]:
        """The literals of a goal in the order that was noted, or that of their nodes."""
        return self._orders.get(goal) or in_order(goal)

    def said(self, node: SchemaId) -> frozenset[str]:
        """The names of the fields in which a node says something."""
        if node not in self._said:
            self._said[node] = said(self.schemas[node])
        return self._said[node]

    def pointer(self, goal: Conjunction) -> str:
        """Where the goal's first literal was written."""
        for literal in goal if len(goal) == 1 else in_order(goal):
            if (node := node_of(literal)) < len(self.schemas):
                return self.schemas[node].pointer
        return ""

    def goal(self, node: SchemaId) -> Conjunction:
        """The goal of satisfying a node. A node that only refers to another is that other."""
        goal = self._goals[node]
        if goal is not None:
            return goal
        last = self._same[node]
        names = self.said(last)
        if names.isdisjoint(_NAMING):
            goal = self._goals[node] = self._goals[last] = frozenset((last,)) if names else ANYTHING
            return goal
        trail = {last: None}
        while (target := self._alias(last)) is not None and target not in trail:
            trail[target] = None
            last = target
        # A loop of references ends anywhere; it is met again, and refused, when it is expanded.
        goal = self._goals[last]
        if goal is None:
            goal = self._own_goal(last) if self.said(last) else ANYTHING
        for step in (node, *trail):
            self._goals[step] = goal
        return goal

    def _alias(self, node: SchemaId) -> SchemaId | None:
        """The node that this one is but another name of."""
        if self._goals[node] is not None:
            return None
        names = self.said(node)
        if len(names) != 1 or names.isdisjoint(_APPLICATORS):
            return None
        schema = self.schemas[node]
        for single in (schema.refs, schema.all_of, schema.any_of, schema.one_of):
            if single is not None and len(single) == 1:
                return self._same[single[0]]
        return None

    def _own_goal(self, node: SchemaId) -> Conjunction:
        names, schema = self.said(node), self.schemas[node]
        if schema.never:
            return NOTHING
        if names == {"not_"} and schema.not_ is not None:
            return self._negated_goal(node, schema.not_)
        return frozenset((node,))

    def _negated_goal(self, node: SchemaId, child: SchemaId) -> Conjunction:
        """``~child`` if the child is an ordinary node; two negations are kept, as neither passes on annotations."""
        child = self._same[child]
        names = self.said(child)
        if not names:
            return NOTHING
        if self.schemas[child].never:
            return ANYTHING
        ordinary = len(names) > 1 or not names & (_APPLICATORS | {"not_"})
        return frozenset((~child if ordinary else node,))

    def constant(self, value: Json) -> Conjunction:
        """The goal of being equal to a literal."""
        key = equality_key(value, written=True)
        goal = self._constants.get(key)
        if goal is None:
            goal = self._constants[key] = frozenset((self._add(Schema("", enum=(value,))),))
        return goal

    def made(self, key: Hashable, schema: Schema) -> Conjunction:
        """The goal of satisfying a schema that no document has; the same one under the same key."""
        if key not in self._made:
            self._made[key] = self._add(schema)
        return frozenset((self._made[key],))

    def negation(self, goal: Conjunction) -> Conjunction:
        """The goal of not reaching a goal."""
        if not goal:
            return NOTHING
        if goal is NOTHING or goal == NOTHING:
            return ANYTHING
        if len(goal) == 1:
            (literal,) = goal
            return frozenset((~node_of(literal),)) if literal >= 0 else self.tested(frozenset((~literal,)))
        values = frozenset([literal if literal < 0 else node_of(literal) for literal in goal])
        return frozenset((~self._conjunction(values),))

    def tested(self, goal: Conjunction) -> Conjunction:
        """The goal of having the values of another one, however its numbers are spelled."""
        if goal == NOTHING or not any(0 <= literal < TESTED and self._spells(literal) for literal in goal):
            return goal
        return frozenset([each | TESTED if 0 <= each < TESTED and self._spells(each) else each for each in goal])

    def _spells(self, node: SchemaId) -> bool:
        """Whether a node, or what it leads to, says how numbers are spelled."""
        begin = len(self._spelling)
        if node >= begin:
            parents: dict[SchemaId, list[SchemaId]] = {}
            found = []
            for each in self.meter.each(range(begin, len(self.schemas)), "looking for integers"):
                schema, names = self.schemas[each], self.said(each)
                below = schema.children(names & BELOW)
                for child in below:
                    parents.setdefault(child, []).append(each)
                says = _spells_numbers(schema, names) or any(child < begin and self._spelling[child] for child in below)
                self._spelling.append(says)
                if says:
                    found.append(each)
            for each in found:  # grows as it goes
                for parent in parents.get(each, ()):
                    if not self._spelling[parent]:
                        self._spelling[parent] = True
                        found.append(parent)
        return self._spelling[node]

    def listed(self, literal: Literal) -> frozenset[Hashable] | None:
        """The values of a node's ``enum``, as `equality_key` has them; None for other literals."""
        if literal not in self._listed:
            node = node_of(literal)
            enum = self.schemas[node].enum if literal >= 0 and node < len(self.schemas) else None
            self._listed[literal] = None if enum is None else frozenset(map(equality_key, enum))
        return self._listed[literal]

    def constants(self, literal: Literal) -> list[Json] | None:
        """The values of a node that is a list of values and nothing else, each once; None for other literals."""
        if literal < 0 or self.said(node_of(literal)) != _ENUM:
            return None
        return list({equality_key(value): value for value in self.schemas[node_of(literal)].enum or ()}.values())

    def listed_values(self, goal: Conjunction) -> frozenset[Hashable] | None:
        """Values that include all of the goal's: what its lists have in common; None if it has no list."""
        lists = [values for literal in goal if (values := self.listed(literal)) is not None]
        return frozenset.intersection(*lists) if lists else None

    def clashes(self, goal: Conjunction) -> bool:
        """Whether the goal's lists have no value in common, or it denies what a closed schema allows no more than."""
        values = self.listed_values(goal)
        if values is not None and not values:
            return True
        written = [self.goal(self._written[each]) for each in goal if each in self._written]
        return any(~literal in goal for each in written if len(each) == 1 for literal in each)

    def as_written(self, children: tuple[SchemaId, ...]) -> tuple[SchemaId, ...]:
        """The schemas before they were closed."""
        return tuple([child if (written := self.schemas[child].written) is None else written for child in children])

    def meets(self, goal: Conjunction, wanted: Conjunction, unsatisfiable: Callable[[Conjunction], bool]) -> bool:
        """Whether it is plain that whatever reaches one goal reaches another."""
        if goal == NOTHING or goal >= wanted:
            return True
        if wanted == NOTHING:
            return unsatisfiable(goal)
        if any(literal | TESTED in goal for literal in wanted if 0 <= literal < TESTED):
            return False  # the same values, but not each in the same spellings
        if len(goal) == 1 and len(wanted) == 1:
            mine, other = self.listed(*goal), self.listed(*wanted)
            if mine is not None and other is not None:
                if self.said(node_of(*wanted)) <= _ENUM:
                    return mine <= other
                if mine.isdisjoint(other):
                    return unsatisfiable(goal)
        return unsatisfiable(both(goal, self.negation(wanted)))

    def either(self, goals: Sequence[Conjunction]) -> Conjunction:
        """The goal of reaching at least one of several."""
        alternatives = list(dict.fromkeys(goal for goal in goals if goal != NOTHING))
        if not alternatives:
            return NOTHING
        if ANYTHING in alternatives:
            return ANYTHING
        if len(alternatives) == 1:
            return alternatives[0]
        key = ("any_of", frozenset(alternatives))
        if key not in self._made:
            branches = tuple(self._conjunction(goal) for goal in alternatives)
            self._made[key] = self._add(Schema(self.pointer(alternatives[0]), any_of=branches))
        return frozenset((self._made[key],))

    def _conjunction(self, goal: Conjunction) -> SchemaId:
        literals = in_order(goal)
        if len(literals) == 1 and 0 <= literals[0] < TESTED:
            return literals[0]
        key = ("all_of", goal)
        if key not in self._made:
            self._made[key] = self._add(Schema(self.pointer(goal), all_of=tuple(map(self._positive, literals))))
        return self._made[key]

    def _positive(self, literal: Literal) -> SchemaId:
        if 0 <= literal < TESTED:
            return literal
        if literal >= TESTED:  # two negations leave the values
            literal = ~self._positive(~node_of(literal))
        key = ("not", literal)
        if key not in self._made:
            self._made[key] = self._add(Schema(self.schemas[~literal].pointer, not_=~literal))
        return self._made[key]

    def _add(self, schema: Schema) -> SchemaId:
        self.schemas.append(schema)
        self._same.append(len(self._same))
        self._goals.append(None)
        return len(self.schemas) - 1


def _spells_numbers(schema: Schema, names: frozenset[str]) -> bool:
    """Whether a subschema's own keywords say how numbers are spelled."""
    if schema.types is not None and "integer" in schema.types and "number" not in schema.types:
        return True
    if not _SPELLING.isdisjoint(names):
        return True
    return schema.enum is not None and any(
        isinstance(value, Decimal)
        for each in schema.enum
        for value in [
            each,
            *(item for node in containers(each) for item in (node.values() if isinstance(node, dict) else node)),
        ]
    )
