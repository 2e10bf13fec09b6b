"""Goals to outlines and to cases: where *and*, *or* and *not* happen.

Each of the two is defined by recursion over the applicators that act in place (``allOf``, ``$ref``, ``not`` ...).
Schemas are written by strangers, and may nest as deep as they like, so the recursion is kept on a list: the
definitions below are generators that yield the question they need answered, and are sent the answer.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple, TypeAlias

from ....budget import Meter
from ....errors import UnsupportedError
from ..read.document import Schema, SchemaId
from . import outline as outlines
from .array_cases import ArrayFamily
from .assertions import Assertions
from .dnf import Combining
from .family import Case, Family, Mode
from .goals import ANYTHING, NOTHING, Conjunction, in_order
from .nodes import Nodes
from .objects.object_cases import ObjectFamily
from .outline import Extent, TypeBounds


class Question(NamedTuple):
    """The outline of a goal (``family`` 0), or its cases in a family and a mode, as far as a context allows."""

    family: int
    goal: Conjunction
    mode: Mode = Mode.PLAIN
    bare: bool = False  # leave the node's own ``unevaluated...`` aside
    context: Any = None  # a case of the family


_Answer: TypeAlias = Generator[Question, Any, Any]

OUTLINE, ARRAYS, OBJECTS = 0, 1, 2


class Expansion:
    """Answers questions about goals, and remembers the answers."""

    def __init__(self, nodes: Nodes, assertions: Assertions, meter: Meter) -> None:
        self.nodes = nodes
        self.assertions = assertions
        self.meter = meter
        self.arrays = ArrayFamily(nodes)
        self.objects = ObjectFamily(nodes, assertions)
        self._families: tuple[Any, ...] = (None, self.arrays, self.objects)
        for family in (self.arrays, self.objects):
            family.outlines = self.outline
            family.barren = self.barren
        self._answers: dict[Question, Any] = {
            Question(OUTLINE, ANYTHING): outlines.EVERYTHING,
            Question(OUTLINE, NOTHING): outlines.NOTHING,
        }
        self._questions = 0
        self._barren: dict[Conjunction, bool] = {ANYTHING: False, NOTHING: True}

    def outline(self, goal: Conjunction) -> TypeBounds:
        """The outline of a goal."""
        answer: TypeBounds = self._solve(Question(OUTLINE, goal))
        return answer

    def barren(self, goal: Conjunction) -> bool:
        """Whether the goal is plainly without values."""
        known = self._barren.get(goal)
        if known is None:
            known = self._barren[goal] = self.nodes.clashes(goal) or self.outline(goal).is_empty()
        return known

    def cases(self, family: int, goal: Conjunction) -> list[Any]:
        """The cases of a goal: their union is what it allows of that type."""
        answer: list[Any] = self._solve(Question(family, goal))
        return answer

    # The recursion

    def _solve(self, question: Question) -> Any:
        answers = self._answers
        if question in answers:
            return answers[question]
        open_questions = {question._replace(context=None)}
        stack: list[tuple[Question, _Answer]] = [(question, self._answer(question))]
        answer: Any = None
        while stack:
            asked, generator = stack[-1]
            try:
                needed = generator.send(answer)
            except StopIteration as done:
                answers[asked] = answer = done.value
                open_questions.discard(asked._replace(context=None))
                stack.pop()
                continue
            answer = answers.get(needed)
            if answer is None:
                plain = needed._replace(context=None)  # with it, no question would be asked twice
                if plain in open_questions:
                    raise self._endless(needed.goal)
                open_questions.add(plain)
                stack.append((needed, self._answer(needed)))
                self._questions += 1
                if not self._questions & 63:
                    self.meter.check_time(f"expanding {self._where(needed.goal)}")
        return answer

    def _answer(self, question: Question) -> _Answer:
        if question.family == OUTLINE:
            return self._outline(question.goal)
        return self._cases(self._families[question.family], question)

    def _where(self, goal: Conjunction) -> str:
        return self.nodes.pointer(goal) or "the root"

    def _endless(self, goal: Conjunction) -> UnsupportedError:
        return UnsupportedError(
            "a schema refers to itself without going into a member or an item",
            where=self._where(goal),
            remedy="Such a reference says nothing, and validators loop on it; remove it.",
        )

    # Outlines

    def _outline(self, goal: Conjunction) -> _Answer:
        if len(goal) > 1:
            parts = []
            for atom in in_order(goal):
                parts.append((yield Question(OUTLINE, frozenset((atom,)))))
            return self._meet(parts)
        (atom,) = goal
        if atom < 0:
            positive = yield Question(OUTLINE, frozenset((~atom,)))
            return outlines.complement(positive, self.meter)
        schema, names = self.nodes.schemas[atom], self.nodes.said(atom)
        parts = [self.assertions.outline(schema, names)]
        if names & _IN_PLACE:
            yield from self._applied_outlines(schema, parts)
        return self._meet(parts)

    def _applied_outlines(self, schema: Schema, parts: list[TypeBounds]) -> _Answer:
        """Append the outlines of the applicators that act in place."""
        meter, goal = self.meter, self.nodes.goal
        for child in (*schema.refs, *schema.all_of):
            parts.append((yield Question(OUTLINE, goal(child))))
        if schema.any_of is not None:
            branches = []
            for child in schema.any_of:
                branches.append((yield Question(OUTLINE, goal(child))))
            parts.append(outlines.any_of(branches, meter))
        if schema.one_of is not None:
            branches = []
            for child in schema.one_of:
                branches.append((yield Question(OUTLINE, goal(child))))
            parts.append(outlines.exactly_one(branches, meter))
        if schema.not_ is not None:
            parts.append(outlines.complement((yield Question(OUTLINE, goal(schema.not_))), meter))
        if schema.if_ is not None:
            condition = yield Question(OUTLINE, goal(schema.if_))
            yes, no = condition, outlines.complement(condition, meter)
            if schema.then is not None:
                yes = outlines.meet(yes, (yield Question(OUTLINE, goal(schema.then))), meter)
            if schema.else_ is not None:
                no = outlines.meet(no, (yield Question(OUTLINE, goal(schema.else_))), meter)
            parts.append(outlines.join(yes, no, meter))

    def _meet(self, parts: list[TypeBounds]) -> TypeBounds:
        result = parts[0]
        for part in parts[1:]:
            result = outlines.meet(result, part, self.meter)
        return result

    # Cases

    def _cases(self, family: Family[Case], question: Question) -> _Answer:
        goal, mode = question.goal, question.mode
        extent = family.extent((yield Question(OUTLINE, goal)))
        if extent is Extent.NONE:
            return []
        if extent is Extent.ALL and mode is Mode.PLAIN:
            return [family.any]
        context = family.any if question.context is None else question.context
        at = Combining(family, question.family, mode, context, self._where(goal), self.meter)
        if len(goal) != 1:
            return (yield from self._conjunction(at, [frozenset((atom,)) for atom in in_order(goal)], [family.any]))
        (atom,) = goal
        if atom < 0:
            at.mode = Mode.PLAIN  # what fails evaluates nothing
            return (yield from self._negative(at, ~atom))
        return (yield from self._positive(at, atom, bare=question.bare))

    def _positive(self, at: Combining[Case], node: SchemaId, *, bare: bool) -> _Answer:
        """The cases of a subschema: the product of what each of its keywords says."""
        schema, names, goal = self.nodes.schemas[node], self.nodes.said(node), self.nodes.goal
        unevaluated = None if bare else getattr(schema, at.family.unevaluated)
        if unevaluated is not None:
            at.mode = max(at.mode, Mode.AT_LEAST)
        cases = [at.family.any]
        for factor in at.family.own(node, at.mode):
            cases = at.product(cases, factor)
        if names & _IN_PLACE:
            cases = yield from self._conjunction(at, [goal(child) for child in (*schema.refs, *schema.all_of)], cases)
            if schema.not_ is not None:
                violated = self.nodes.negation(goal(schema.not_))
                cases = at.product(cases, (yield self._asked(at, violated, at.within(cases), Mode.PLAIN)))
            cases = yield from self._any_of(at, schema, cases)
            cases = yield from self._one_of(at, schema, cases)
            cases = yield from self._if(at, schema, cases)
        cases = yield from self._dependents(at, schema, cases)
        if unevaluated is not None:
            rest = goal(unevaluated)
            cases = at.simplified([c for case in cases if (c := at.family.closed(case, rest)) is not None])
        return cases

    def _conjunction(self, at: Combining[Case], goals: list[Conjunction], cases: list[Case]) -> _Answer:
        """The cases with several goals. Those that are not split into cases are the context of the others."""
        answers: dict[Conjunction, list[Case]] = {}
        context = at.within(cases)
        for goal in goals:
            if not self._splits(goal):
                self.meter.check_time(at.doing)
                answers[goal] = answer = yield Question(at.number, goal, at.mode)
                if len(answer) == 1:
                    context = at.family.merge(context, answer[0]) or context
        for goal in goals:
            if goal not in answers:
                answers[goal] = yield self._asked(at, goal, context, at.mode)
            cases = at.product(cases, answers[goal])
        return cases

    def _splits(self, goal: Conjunction) -> bool:
        """Whether the cases of a goal depend on applicators, so that a context may make them fewer."""
        return goal != NOTHING and any(atom < 0 or bool(self.nodes.said(atom) & _IN_PLACE) for atom in goal)

    def _asked(self, at: Combining[Case], goal: Conjunction, context: Case, mode: Mode) -> Question:
        known = context is not at.family.any and self._splits(goal)
        return Question(at.number, goal, mode, context=context if known else None)

    def _any_of(self, at: Combining[Case], schema: Schema, cases: list[Case]) -> _Answer:
        """The cases with ``anyOf``."""
        if schema.any_of is None:
            return cases
        any_, context = at.family.any, at.within(cases)
        some: list[Case] = []
        none = [any_]
        for child in schema.any_of:
            goal = self.nodes.goal(child)
            branch = yield self._asked(at, goal, context, at.mode)
            if at.mode is Mode.EXACTLY:
                violated = yield Question(at.number, self.nodes.negation(goal))
                more = at.product(none + some, branch)
                some = more + at.product(some, violated)
                none = at.product(none, violated)
            elif at.mode is Mode.AT_LEAST and not all(at.family.same_evaluation(case, any_) for case in branch):
                some = some + branch + at.product(some, branch)
            else:
                some = some + branch
            at.check(len(some))
        return at.product(cases, at.simplified(some))

    def _one_of(self, at: Combining[Case], schema: Schema, cases: list[Case]) -> _Answer:
        """The cases with ``oneOf``: each branch without those of the others that it may overlap with.

        What the schema says otherwise comes first, as that often keeps the branches apart.
        """
        if schema.one_of is None:
            return cases
        context = at.within(cases)
        goals = [self.nodes.goal(child) for child in schema.one_of]
        branches: list[list[Case]] = []
        for goal in goals:
            branches.append((yield self._asked(at, goal, context, at.mode)))
        result: list[Case] = []
        rivals = at.rivals(branches)
        for k, branch in enumerate(branches):
            kept = at.product(cases, branch)
            for j in rivals[k]:
                other = branches[j]
                if self._overlap(at, kept, other):
                    violated = yield self._asked(at, self.nodes.negation(goals[j]), context, Mode.PLAIN)
                    kept = at.simplified([c for case in kept for c in at.difference(case, other, violated)])
                    at.check(len(kept))
            result += kept
            at.check(len(result))
        return result

    @staticmethod
    def _overlap(at: Combining[Case], cases: list[Case], others: list[Case]) -> bool:
        merge = at.family.merge
        return any(merge(merge(at.context, case), other) is not None for case in cases for other in others)

    def _if(self, at: Combining[Case], schema: Schema, cases: list[Case]) -> _Answer:
        """The cases with ``if``, ``then`` and ``else``."""
        if schema.if_ is None or (schema.then is None and schema.else_ is None and at.mode is Mode.PLAIN):
            return cases
        condition, context = self.nodes.goal(schema.if_), at.within(cases)
        yes = at.product(cases, (yield self._asked(at, condition, context, at.mode)))
        no = at.product(cases, (yield self._asked(at, self.nodes.negation(condition), context, Mode.PLAIN)))
        if schema.then is not None:
            yes = at.product(yes, (yield self._asked(at, self.nodes.goal(schema.then), at.within(yes), at.mode)))
        if schema.else_ is not None:
            no = at.product(no, (yield self._asked(at, self.nodes.goal(schema.else_), at.within(no), at.mode)))
        return yes + no

    def _dependents(self, at: Combining[Case], schema: Schema, cases: list[Case]) -> _Answer:
        """The cases with ``dependentSchemas``."""
        for absent, present, goal in at.family.dependents(schema):
            context = at.within(cases)
            met = yield self._asked(at, goal, context, at.mode)
            if at.mode is Mode.PLAIN:
                # Whether the schema is met, or else the names are absent: schemas overlap more often than names do.
                violated = yield self._asked(at, self.nodes.negation(goal), context, Mode.PLAIN)
                factor = [*met, *at.product([absent], violated)]
            else:
                factor = [absent, *at.product(present, met)]
            cases = at.product(cases, factor)
        return cases

    # Cases of a negation

    def _negative(self, at: Combining[Case], node: SchemaId) -> _Answer:
        """The cases of a subschema's negation: the union of what violates each of its keywords."""
        nodes, family, number = self.nodes, at.family, at.number
        schema, goal, negation = nodes.schemas[node], nodes.goal, nodes.negation
        cases = at.possible(family.violations(node))
        if schema.enum is not None:
            others = [family.any]
            for value in family.listed(schema):
                others = at.product(others, family.unequal(value))
            cases = cases + others
        for child in (*schema.refs, *schema.all_of):
            cases = cases + (yield self._asked(at, negation(goal(child)), at.context, Mode.PLAIN))
        if schema.any_of is not None:
            cases = cases + (yield from self._none_of(at, schema.any_of))
        if schema.one_of is not None:
            cases = cases + (yield from self._none_of(at, schema.one_of))
            cases = cases + (yield from self._two_of(at, schema.one_of))
        if schema.not_ is not None:
            cases = cases + (yield self._asked(at, goal(schema.not_), at.context, Mode.PLAIN))
        if schema.if_ is not None:
            cases = cases + (yield from self._if_violated(at, schema))
        for _, present, dependent in family.dependents(schema):
            cases = cases + at.product(present, (yield Question(number, negation(dependent))))
        unevaluated = getattr(schema, family.unevaluated)
        if unevaluated is not None:
            evaluated = yield Question(number, frozenset((node,)), Mode.EXACTLY, bare=True)
            failed = [family.unclosed(case, goal(unevaluated)) for case in evaluated]
            cases = cases + [case for case in failed if case is not None]
        return at.simplified(at.possible(cases))

    def _none_of(self, at: Combining[Case], children: tuple[SchemaId, ...]) -> _Answer:
        cases = [at.family.any]
        for child in children:
            violated = self.nodes.negation(self.nodes.goal(child))
            cases = at.product(cases, (yield self._asked(at, violated, at.within(cases), Mode.PLAIN)))
        return cases

    def _two_of(self, at: Combining[Case], children: tuple[SchemaId, ...]) -> _Answer:
        branches: list[list[Case]] = []
        for child in children:
            branches.append((yield self._asked(at, self.nodes.goal(child), at.context, Mode.PLAIN)))
        cases: list[Case] = []
        for k, left in enumerate(branches):
            for right in branches[:k]:
                cases += at.product(left, right)
                at.check(len(cases))
        return cases

    def _if_violated(self, at: Combining[Case], schema: Schema) -> _Answer:
        goal, negation = self.nodes.goal, self.nodes.negation
        assert schema.if_ is not None
        condition = goal(schema.if_)
        cases: list[Case] = []
        for when, child in ((condition, schema.then), (negation(condition), schema.else_)):
            if child is not None:
                there = yield self._asked(at, when, at.context, Mode.PLAIN)
                violated = yield self._asked(at, negation(goal(child)), at.within(there), Mode.PLAIN)
                cases += at.product(there, violated)
        return cases


_IN_PLACE = frozenset({"refs", "all_of", "any_of", "one_of", "not_", "if_"})
