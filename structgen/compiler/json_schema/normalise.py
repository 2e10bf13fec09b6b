"""The algebra of schemas: a document in, the normal form of its values out. `docs/internals/json_algebra.md` has the
rules."""

from __future__ import annotations

from ...budget import Meter
from ...errors import BudgetExceededError
from .algebra.assertions import Assertions
from .algebra.distinct import Distinct
from .algebra.expansion import ARRAYS, OBJECTS, Expansion
from .algebra.goals import Conjunction
from .algebra.nodes import Nodes
from .algebra.objects.member_rules import NamePartitions
from .algebra.unsatisfiable import conflict
from .normal_form.assembling import assemble
from .normal_form.inhabited import Draft, inhabited
from .normal_form.shapes import Values
from .normal_form.shaping import Shaping
from .read.document import Document
from .read.dynamic import without_dynamic_references


def normalise(document: Document, meter: Meter, *, lenient: bool = False) -> Values:
    """Bring a schema into its normal form.

    Parameters
    ----------
    document:
        The schema.
    meter:
        Bounds the time, and the number of values.
    lenient:
        Drop the keywords that can't be honoured, and list them in ``Values.relaxations``, in place of refusing them.

    Raises
    ------
    EmptyLanguageError
        No value satisfies the schema.
    UnsupportedError
        A keyword can't be honoured exactly.
    BudgetExceededError
        The schema's alternatives multiply beyond the budget.
    """
    schemas, root = without_dynamic_references(document, meter)
    nodes = Nodes(schemas, root, meter)
    assertions = Assertions(meter, lenient=lenient)
    expansion = Expansion(nodes, assertions, meter)
    goal = nodes.goal(root)
    drafts = _drafts(goal, expansion, meter)
    alive = inhabited(drafts, meter)
    if goal not in alive:
        raise conflict(goal, expansion, lambda inner: inner in alive if inner in drafts else None)
    return Values(assemble(drafts, goal, alive, meter), 0, tuple(assertions.relaxations))


def _drafts(root: Conjunction, expansion: Expansion, meter: Meter) -> dict[Conjunction, Draft]:
    """The drafts of every goal that the root leads to."""
    shaping, distinct = Shaping(expansion.nodes, NamePartitions(meter)), Distinct(expansion, expansion.assertions)
    drafts: dict[Conjunction, Draft] = {}
    queue = [root]
    seen = {root}
    for goal in queue:
        meter.check_time("normalising the schema")
        meter.check_states(len(queue), "normalising the schema")
        pointer = expansion.nodes.pointer(goal)
        try:
            draft = drafts[goal] = _draft(goal, pointer, expansion, shaping, distinct)
        except BudgetExceededError as error:
            if error.where.startswith("/"):
                raise
            where = f"{error.where}, at {pointer or 'the root'}"
            raise BudgetExceededError(error.what, where=where, remedy=error.remedy) from error
        for child in draft.children():
            if child not in seen:
                seen.add(child)
                queue.append(child)
    return drafts


def _draft(goal: Conjunction, pointer: str, expansion: Expansion, shaping: Shaping, distinct: Distinct) -> Draft:
    outline = expansion.outline(goal)
    array_cases = expansion.cases(ARRAYS, goal) if outline.arrays else []
    object_cases = expansion.cases(OBJECTS, goal) if outline.objects else []
    arrays = [shaping.array(case) for split in array_cases for case in distinct.settled(split)]
    return Draft(outline, arrays, [shaping.object(case) for case in object_cases], pointer)
