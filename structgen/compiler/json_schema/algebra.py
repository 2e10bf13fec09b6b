"""The algebra of schemas: a document in, the normal form of its values out. `docs/json_algebra.md` has the rules."""

from __future__ import annotations

from ...budget import Meter
from ...errors import BudgetExceededError
from .assembling import assemble
from .assertions import Assertions
from .conflicts import conflict
from .distinct import Distinct
from .dynamic import without_dynamic_references
from .expansion import ARRAYS, OBJECTS, Expansion
from .goals import Goal
from .inhabited import Draft, inhabited
from .member_rules import Partitions
from .nodes import Nodes
from .schema import Document
from .shapes import Values
from .shaping import Shaping


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


def _drafts(root: Goal, expansion: Expansion, meter: Meter) -> dict[Goal, Draft]:
    """The drafts of every goal that the root leads to."""
    shaping, distinct = Shaping(expansion.nodes, Partitions(meter)), Distinct(expansion, expansion.assertions)
    drafts: dict[Goal, Draft] = {}
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


def _draft(goal: Goal, pointer: str, expansion: Expansion, shaping: Shaping, distinct: Distinct) -> Draft:
    outline = expansion.outline(goal)
    array_cases = expansion.cases(ARRAYS, goal) if outline.arrays else []
    object_cases = expansion.cases(OBJECTS, goal) if outline.objects else []
    arrays = [shaping.array(case) for split in array_cases for case in distinct.settled(split)]
    return Draft(outline, arrays, [shaping.object(case) for case in object_cases], pointer)
