"""Goals to unions of clauses: *and*, *or* and *not*, by recursion over applicators as in `goal_bounds`."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable
from typing import Generic, TypeAlias

from ....budget import Meter
from ..read.document import Schema, SchemaId
from .arrays import ArrayClause, ArrayDomain
from .assertions import Assertions
from .clauses import Clause, ClauseDomain, Mode
from .dnf import Dnf
from .goal_bounds import IN_PLACE, GoalBounds, Recursion
from .goals import NOTHING, TESTED, Conjunction, node_of
from .nodes import Nodes
from .objects import ObjectClause, ObjectDomain
from .type_bounds import Kleene

#: A goal, how much its clauses have to say, whether a node's own ``unevaluated...`` is left aside, and a context.
Query: TypeAlias = "tuple[Conjunction, Mode, bool, Clause | None]"

_Definition: TypeAlias = "Generator[Query[Clause], list[Clause], list[Clause]]"


class Clauses(Recursion["Query[Clause]", "list[Clause]"], Generic[Clause]):
    """The clauses of goals, of one type: their union is what a goal allows of it."""

    def __init__(self, domain: ClauseDomain[Clause], meter: Meter) -> None:
        super().__init__(domain.nodes, meter)
        self.domain = domain
        #: The fields for which others are asked.
        self._asking = IN_PLACE | {domain.unevaluated, "dependent_schemas"}

    def of(self, goal: Conjunction) -> list[Clause]:
        """The clauses of a goal."""
        return self.solve((goal, Mode.PLAIN, False, None))

    def _about(self, query: Query[Clause]) -> tuple[Conjunction, Hashable]:
        return query[0], query[1:3]  # with the context, no query would be asked twice

    def _plain(self, query: Query[Clause]) -> list[Clause] | None:
        goal, mode, _, known = query
        allowed = self.domain.allowed(self.domain.bounds.solve(goal))
        if allowed is Kleene.NONE:
            return []
        if allowed is Kleene.ALL and (mode is Mode.PLAIN or all(each < 0 for each in goal)):  # nothing is evaluated
            return [self.domain.any]
        if known is None and len(goal) == 1:
            (literal,) = goal
            if 0 <= literal < TESTED and self.nodes.said(literal).isdisjoint(self._asking):
                factors = self.domain.own(literal, mode)
                return factors[0] if len(factors) == 1 else None
        return None

    def _define(self, query: Query[Clause]) -> _Definition[Clause]:
        goal, mode, bare, known = query
        domain = self.domain
        at = Dnf(domain, mode, domain.any if known is None else known, self.where(goal), self.meter)
        if len(goal) != 1:
            single = dict.fromkeys((frozenset((literal,)) for literal in self.nodes.in_order(goal)), "")
            return (yield from self._conjunction(at, single, [domain.any]))
        (literal,) = goal
        if literal < 0:
            at.mode = Mode.PLAIN  # what fails evaluates nothing
            return (yield from self._negative(at, ~literal))
        if literal >= TESTED:
            found = yield frozenset((node_of(literal),)), mode, bare, known
            return [domain.tested(clause) for clause in found]
        return (yield from self._positive(at, literal, bare=bare))

    def _positive(self, at: Dnf[Clause], node: SchemaId, *, bare: bool) -> _Definition[Clause]:
        """The clauses of a subschema: the product of what each of its keywords says."""
        schema, names, goal = self.nodes.schemas[node], self.nodes.said(node), self.nodes.goal
        unevaluated = None if bare else getattr(schema, self.domain.unevaluated)
        if unevaluated is not None:
            at.mode = max(at.mode, Mode.AT_LEAST)
        clauses = [self.domain.any]
        at.order = schema.order() if names & IN_PLACE else ()
        for factor in self.domain.own(node, at.mode):
            clauses = at.product(clauses, factor, at.place("properties"))
        if names & IN_PLACE:
            goals = {goal(child): "all_of" for child in schema.all_of}
            goals = {goal(child): "refs" for child in schema.refs} | goals
            clauses = yield from self._conjunction(at, goals, clauses)
            if schema.not_ is not None:
                violated = self._violated(schema.not_)
                clauses = at.product(clauses, (yield self._asked(at, violated, at.within(clauses))))
            clauses = yield from self._any_of(at, schema, clauses)
            clauses = yield from self._one_of(at, schema, clauses)
            clauses = yield from self._if(at, schema, clauses)
        clauses = yield from self._dependents(at, schema, clauses)
        if unevaluated is not None:
            rest = goal(unevaluated)
            clauses = at.simplified([c for clause in clauses if (c := self.domain.closed(clause, rest)) is not None])
        return clauses

    def _conjunction(
        self, at: Dnf[Clause], goals: dict[Conjunction, str], clauses: list[Clause]
    ) -> _Definition[Clause]:
        """The clauses with several goals, by the fields that these stand in.

        Those that are not split into clauses are the context of the others.
        """
        answers: dict[Conjunction, list[Clause]] = {}
        context = at.within(clauses)
        for goal in goals:
            if not self._splits(goal):
                self.meter.check_time(at.doing)
                answers[goal] = answer = yield goal, at.mode, False, None
                if len(answer) == 1:
                    context = self.domain.merge(context, answer[0]) or context
        for number, (goal, name) in enumerate(goals.items()):
            if goal not in answers:
                answers[goal] = yield self._asked(at, goal, context, at.mode)
            clauses = at.product(clauses, answers[goal], at.place(name, number))
        return clauses

    def _violated(self, child: SchemaId) -> Conjunction:
        return self.nodes.negation(self.nodes.goal(child))

    def _splits(self, goal: Conjunction) -> bool:
        """Whether the clauses of a goal depend on applicators, so that a context may make them fewer."""
        return goal != NOTHING and any(
            literal < 0 or bool(self.nodes.said(node_of(literal)) & IN_PLACE) for literal in goal
        )

    def _asked(self, at: Dnf[Clause], goal: Conjunction, context: Clause, mode: Mode = Mode.PLAIN) -> Query[Clause]:
        known = context is not self.domain.any and self._splits(goal)
        return goal, mode, False, context if known else None

    def _each(
        self, at: Dnf[Clause], children: Iterable[SchemaId], context: Clause, mode: Mode
    ) -> Generator[Query[Clause], list[Clause], list[list[Clause]]]:
        found = []
        for child in children:
            found.append((yield self._asked(at, self.nodes.goal(child), context, mode)))
        return found

    def _any_of(self, at: Dnf[Clause], schema: Schema, clauses: list[Clause]) -> _Definition[Clause]:
        """The clauses with ``anyOf``."""
        if schema.any_of is None:
            return clauses
        context = at.within(clauses)
        some: list[Clause] = []
        none = [self.domain.any]
        for child in schema.any_of:
            goal = self.nodes.goal(child)
            branch = yield self._asked(at, goal, context, at.mode)
            if at.mode is Mode.EXACTLY:
                violated = yield self.nodes.negation(goal), Mode.PLAIN, False, None
                more = at.product(none + some, branch)
                some = more + at.product(some, violated)
                none = at.product(none, violated)
            elif at.mode is Mode.AT_LEAST and any(clause.evaluated for clause in branch):
                some = some + branch + at.product(some, branch)
            else:
                some = some + branch
            at.check(len(some))
        return at.product(clauses, at.simplified(some), at.place("any_of"))

    def _one_of(self, at: Dnf[Clause], schema: Schema, clauses: list[Clause]) -> _Definition[Clause]:
        """The clauses with ``oneOf``: each branch without those of the others that it may overlap with.

        What the schema says otherwise comes first, as that often keeps the branches apart.
        """
        if schema.one_of is None:
            return clauses
        context = at.within(clauses)
        branches = yield from self._each(at, schema.one_of, context, at.mode)
        written, others = self.nodes.as_written(schema.one_of), branches
        if written != schema.one_of:
            others = yield from self._each(at, written, context, Mode.PLAIN)
        result: list[Clause] = []
        rivals = at.rivals(others)
        for k, branch in enumerate(branches):
            kept = at.product(clauses, branch, at.place("one_of"))
            for j in rivals[k]:
                other = others[j]
                if self._overlap(at, kept, other):
                    violated = yield self._asked(at, self._violated(written[j]), context)
                    kept = at.simplified([c for clause in kept for c in at.difference(clause, other, violated)])
                    at.check(len(kept))
            result += kept
            at.check(len(result))
        return result

    def _overlap(self, at: Dnf[Clause], clauses: list[Clause], others: list[Clause]) -> bool:
        merge = self.domain.merge
        return any(merge(merge(at.context, clause), other) is not None for clause in clauses for other in others)

    def _if(self, at: Dnf[Clause], schema: Schema, clauses: list[Clause]) -> _Definition[Clause]:
        """The clauses with ``if``, ``then`` and ``else``."""
        if schema.if_ is None or (schema.then is None and schema.else_ is None and at.mode is Mode.PLAIN):
            return clauses
        condition, context = self.nodes.tested(self.nodes.goal(schema.if_)), at.within(clauses)
        yes = at.product(clauses, (yield self._asked(at, condition, context, at.mode)))
        no = at.product(clauses, (yield self._asked(at, self.nodes.negation(condition), context)))
        if schema.then is not None:
            yes = at.product(yes, (yield self._asked(at, self.nodes.goal(schema.then), at.within(yes), at.mode)))
        if schema.else_ is not None:
            no = at.product(no, (yield self._asked(at, self.nodes.goal(schema.else_), at.within(no), at.mode)))
        return yes + no

    def _dependents(self, at: Dnf[Clause], schema: Schema, clauses: list[Clause]) -> _Definition[Clause]:
        """The clauses with ``dependentSchemas``."""
        for absent, present, goal in self.domain.dependents(schema):
            context = at.within(clauses)
            met = yield self._asked(at, goal, context, at.mode)
            if at.mode is Mode.PLAIN:
                # Whether the schema is met, or else the names are absent: schemas overlap more often than names do.
                violated = yield self._asked(at, self.nodes.negation(goal), context)
                factor = [*met, *at.product([absent], violated)]
            else:
                factor = [absent, *at.product(present, met)]
            clauses = at.product(clauses, factor)
        return clauses

    # -- negation ------------------------------------------------------------------------------------------

    def _negative(self, at: Dnf[Clause], node: SchemaId) -> _Definition[Clause]:
        """The clauses of a subschema's negation: the union of what violates each of its keywords."""
        domain, goal, negation, tested = self.domain, self.nodes.goal, self.nodes.negation, self.nodes.tested
        schema = self.nodes.schemas[node]
        clauses = at.possible(domain.violations(node))
        if schema.enum is not None:
            others = [domain.any]
            for unequal in domain.unequal(schema.enum):
                others = at.product(others, unequal)
            clauses = clauses + others
        for child in (*schema.refs, *schema.all_of):
            clauses = clauses + (yield self._asked(at, self._violated(child), at.context))
        if schema.any_of is not None:
            clauses = clauses + (yield from self._none_of(at, schema.any_of))
        if schema.one_of is not None:
            clauses = clauses + (yield from self._none_of(at, schema.one_of))
            clauses = clauses + (yield from self._two_of(at, self.nodes.as_written(schema.one_of)))
        if schema.not_ is not None:
            clauses = clauses + (yield self._asked(at, tested(goal(schema.not_)), at.context))
        if schema.if_ is not None:
            clauses = clauses + (yield from self._if_violated(at, schema))
        for _, present, dependent in domain.dependents(schema):
            clauses = clauses + at.product(present, (yield (negation(dependent), Mode.PLAIN, False, None)))
        unevaluated = getattr(schema, domain.unevaluated)
        if unevaluated is not None:
            evaluated = yield tested(frozenset((node,))), Mode.EXACTLY, True, None
            failed = [domain.unclosed(clause, goal(unevaluated)) for clause in evaluated]
            clauses = clauses + [clause for clause in failed if clause is not None]
        return at.simplified(at.possible([clause.bare() if clause.evaluated else clause for clause in clauses]))

    def _none_of(self, at: Dnf[Clause], children: tuple[SchemaId, ...]) -> _Definition[Clause]:
        clauses = [self.domain.any]
        for child in children:
            clauses = at.product(clauses, (yield self._asked(at, self._violated(child), at.within(clauses))))
        return clauses

    def _two_of(self, at: Dnf[Clause], children: tuple[SchemaId, ...]) -> _Definition[Clause]:
        branches = []
        for child in children:
            branches.append((yield self._asked(at, self.nodes.tested(self.nodes.goal(child)), at.context)))
        clauses: list[Clause] = []
        for k, left in enumerate(branches):
            for right in branches[:k]:
                clauses += at.product(left, right)
                at.check(len(clauses))
        return clauses

    def _if_violated(self, at: Dnf[Clause], schema: Schema) -> _Definition[Clause]:
        assert schema.if_ is not None
        condition = self.nodes.tested(self.nodes.goal(schema.if_))
        clauses: list[Clause] = []
        for when, child in ((condition, schema.then), (self.nodes.negation(condition), schema.else_)):
            if child is not None:
                there = yield self._asked(at, when, at.context)
                violated = yield self._asked(at, self._violated(child), at.within(there))
                clauses += at.product(there, violated)
        return clauses


class Expansion:
    """Type bounds and clauses of goals."""

    def __init__(self, nodes: Nodes, assertions: Assertions, meter: Meter) -> None:
        self.bounds = bounds = GoalBounds(nodes, assertions, meter)
        self.nodes = nodes
        self.arrays, self.objects = ArrayDomain(bounds), ObjectDomain(bounds)
        self.array_clauses: Clauses[ArrayClause] = Clauses(self.arrays, meter)
        self.object_clauses: Clauses[ObjectClause] = Clauses(self.objects, meter)
