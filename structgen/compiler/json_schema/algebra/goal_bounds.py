"""Goals to bounds, by recursion over the applicators that act in place (``allOf``, ``$ref``, ``not`` ...).

Schemas are written by strangers, and may nest as deep as they like, so the recursion is kept on a list: a definition
is a generator that yields the query it needs answered, and is sent the answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Iterable
from functools import reduce
from typing import Generic, TypeAlias, TypeVar

from ....budget import Meter
from ....errors import UnsupportedError
from ..read.document import Schema
from .assertions import Assertions
from .goals import ANYTHING, NOTHING, TESTED, Conjunction, in_order, node_of
from .nodes import Nodes
from .type_bounds import EVERYTHING, TypeBounds, any_of, complement, exactly_one, join, meet
from .type_bounds import NOTHING as NO_VALUES

_Query = TypeVar("_Query", bound=Hashable)
_Answer = TypeVar("_Answer")

#: The fields of applicators that act in place.
IN_PLACE = frozenset({"refs", "all_of", "any_of", "one_of", "not_", "if_"})


class Recursion(ABC, Generic[_Query, _Answer]):
    """Answers queries about goals, and remembers the answers."""

    def __init__(self, nodes: Nodes, meter: Meter) -> None:
        self.nodes = nodes
        self.meter = meter
        self._answers: dict[_Query, _Answer] = {}
        self._queries = 0

    @abstractmethod
    def _plain(self, query: _Query) -> _Answer | None:
        """The answer to a query that needs no other one; None for those that do."""

    @abstractmethod
    def _define(self, query: _Query) -> Generator[_Query, _Answer, _Answer]:
        """Works out the answer to a query that is not plain."""

    @abstractmethod
    def _about(self, query: _Query) -> tuple[Conjunction, Hashable]:
        """The goal of a query, and what is asked of it, as far as a query that needs another like it has no end."""

    def where(self, goal: Conjunction) -> str:
        """The goal's place, for messages."""
        return self.nodes.pointer(goal) or "the root"

    def solve(self, query: _Query) -> _Answer:
        """The answer to a query."""
        answer = self._answers.get(query)
        if answer is None:
            answer = self._at_once(query)
        if answer is not None:
            return answer
        pending = {self._about(query)}
        stack = [(query, self._define(query))]
        while stack:
            asked, definition = stack[-1]
            try:
                needed = next(definition) if answer is None else definition.send(answer)
            except StopIteration as done:
                self._answers[asked] = answer = done.value
                pending.discard(self._about(asked))
                stack.pop()
                continue
            answer = self._at_once(needed)
            if answer is None:
                about = self._about(needed)
                if about in pending:
                    raise UnsupportedError(
                        "a schema refers to itself without going into a member or an item",
                        where=self.where(about[0]),
                        remedy="Such a reference says nothing, and validators loop on it; remove it.",
                    )
                pending.add(about)
                stack.append((needed, self._define(needed)))
        assert answer is not None
        return answer

    def _at_once(self, query: _Query) -> _Answer | None:
        """The answer to a query that was asked before, or is plain."""
        answer = self._answers.get(query)
        if answer is None:
            self._queries += 1
            if not self._queries & 63:
                self.meter.check_time(f"expanding {self.where(self._about(query)[0])}")
            answer = self._plain(query)
            if answer is not None:
                self._answers[query] = answer
        return answer


_Definition: TypeAlias = Generator[Conjunction, TypeBounds, TypeBounds]


class GoalBounds(Recursion[Conjunction, TypeBounds]):
    """The bounds of goals."""

    def __init__(self, nodes: Nodes, assertions: Assertions, meter: Meter) -> None:
        super().__init__(nodes, meter)
        self.assertions = assertions
        self._answers |= {ANYTHING: EVERYTHING, NOTHING: NO_VALUES}
        self._barren: dict[Conjunction, bool] = {ANYTHING: False, NOTHING: True}

    def is_unsatisfiable(self, goal: Conjunction) -> bool:
        """Whether the goal is plainly without values."""
        known = self._barren.get(goal)
        if known is None:
            clashes = len(goal) > 1 and self.nodes.clashes(goal)
            known = self._barren[goal] = clashes or self.solve(goal).is_empty()
        return known

    def meets(self, goal: Conjunction, wanted: Conjunction) -> bool:
        """Whether it is plain that whatever reaches one goal reaches another."""
        try:
            return self.nodes.meets(goal, wanted, self.is_unsatisfiable) and self._is_written_so(goal, wanted)
        except UnsupportedError:  # of a negation that nobody wrote
            return False

    def _is_written_so(self, goal: Conjunction, wanted: Conjunction) -> bool:
        """Whether no number of a goal is written more freely than among those of another one."""
        numbers = self.solve(goal).numbers
        if not numbers.is_free or goal >= wanted:
            return True
        return numbers.written.meet(self.solve(wanted).numbers.written.invert(), self.meter).is_empty

    def _about(self, query: Conjunction) -> tuple[Conjunction, Hashable]:
        return query, ()

    def _plain(self, query: Conjunction) -> TypeBounds | None:
        if len(query) == 1:
            (literal,) = query
            if 0 <= literal < TESTED and (names := self.nodes.said(literal)).isdisjoint(IN_PLACE):
                return self.assertions.bounds(self.nodes.schemas[literal], names)
        return None

    def _define(self, query: Conjunction) -> _Definition:
        if len(query) > 1:
            return self._meet((yield from _each(frozenset((literal,)) for literal in in_order(query))))
        (literal,) = query
        if literal < 0:
            return complement((yield frozenset((~literal,))), self.meter)
        if literal >= TESTED:
            found = yield frozenset((node_of(literal),))
            return found._replace(numbers=found.numbers.by_value())
        schema = self.nodes.schemas[literal]
        own = self.assertions.bounds(schema, self.nodes.said(literal))
        return self._meet([own, *(yield from self._applied(schema))])

    def _applied(self, schema: Schema) -> Generator[Conjunction, TypeBounds, list[TypeBounds]]:
        """The bounds of the applicators that act in place."""
        meter, goal = self.meter, self.nodes.goal
        parts = yield from _each(map(goal, (*schema.refs, *schema.all_of)))
        if schema.any_of is not None:
            parts.append(any_of((yield from _each(map(goal, schema.any_of))), meter))
        if schema.one_of is not None:
            written = self.nodes.as_written(schema.one_of)
            parts.append(exactly_one((yield from _each(map(goal, written))), meter))
            if written != schema.one_of:
                parts.append(any_of((yield from _each(map(goal, schema.one_of))), meter))
        if schema.not_ is not None:
            parts.append(complement((yield goal(schema.not_)), meter))
        if schema.if_ is not None:
            condition = yield self.nodes.tested(goal(schema.if_))
            yes = yield ANYTHING if schema.then is None else goal(schema.then)
            no = yield ANYTHING if schema.else_ is None else goal(schema.else_)
            parts.append(join(meet(condition, yes, meter), meet(complement(condition, meter), no, meter), meter))
        return parts

    def _meet(self, parts: list[TypeBounds]) -> TypeBounds:
        return reduce(lambda left, right: meet(left, right, self.meter), parts)


def _each(goals: Iterable[Conjunction]) -> Generator[Conjunction, TypeBounds, list[TypeBounds]]:
    found = []
    for goal in goals:
        found.append((yield goal))
    return found
