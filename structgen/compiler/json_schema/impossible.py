"""Places of a schema where no value can stand, though it has texts: what their author is told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from .algebra.expansion import Expansion
from .algebra.goals import ANYTHING, TESTED, Conjunction
from .algebra.type_bounds import Kleene
from .algebra.unsatisfiable import conflict, conjuncts
from .normal_form.inhabited import lives
from .normal_form.shapes import Choice, ObjectShape, Ref, Value


def impossible_places(
    living: Mapping[Ref, Value],
    goals: Mapping[Ref, Conjunction],
    expansion: Expansion,
    inhabited: Callable[[Conjunction], bool | None],
) -> Iterator[str]:
    """A line for each member or item that no text has, and for each array or object, but for what the schema
    ``false`` forbids and what some branch allows.
    """
    told = set[Ref]()
    some_are_dead = not goals.keys() <= living.keys()

    def why(goal: Conjunction) -> str:
        error = conflict(goal, expansion, inhabited)
        return f"{error.what.removeprefix('no value satisfies the schema: ')} ({error.where})"

    for ref, draft in expansion.nodes.meter.each(living.items(), "looking for what is impossible"):
        goal = goals.get(ref, ANYTHING)
        if some_are_dead:
            for what, below in _dead(draft, living.keys()).items():
                if below not in told:
                    told.add(below)
                    yield f"no text has {what}, as no value satisfies it: {why(goals[below])}"
        if len(goal) == 1 and 0 <= next(iter(goal)) < TESTED:  # of one schema, in whatever branch
            bounds = expansion.bounds.solve(goal)
            if draft.objects:
                for name in _closed_out(goal, draft.objects, expansion):
                    where = draft.pointer or "the root"
                    yield f"no text has the member {name!r}, as other keywords allow none ({where})"
            elif bounds.objects is Kleene.SOME:
                yield f"no text has an object here, as none satisfies the schema: {why(goal)}"
            if bounds.arrays is Kleene.SOME and not draft.arrays:
                yield f"no text has an array here, as none satisfies the schema: {why(goal)}"


def _dead(draft: Value, alive: Set[Ref]) -> dict[str, Ref]:
    """What has no values in any of a draft's shapes, each with the draft of its values."""
    found: dict[str, Ref] = {}
    living = set[str]()

    def look(what: str, choice: Choice) -> None:
        if lives(choice, alive):
            living.add(what)
        elif choice:
            found.setdefault(what, choice[0].value)

    for shape in draft.objects:
        for name, choice, _ in shape.properties:
            look(f"the member {name!r}", choice)
        look("members that are not declared", tuple(option for _, choice in shape.others for option in choice))
    for array in draft.arrays:
        for position, choice in enumerate(array.prefix):
            look(f"item {position}", choice)
        look("further items" if array.prefix else "items", array.rest)
    return {what: below for what, below in found.items() if what not in living}


def _closed_out(goal: Conjunction, objects: Sequence[ObjectShape], expansion: Expansion) -> Iterator[str]:
    """The names that a schema declares, and that it forbids all the same by what it says of other names."""
    if () not in [choice for _, choice, _ in objects[0].properties]:
        return
    schemas = expansion.nodes.schemas
    said = [schemas[node].properties for node in conjuncts(goal, expansion)]
    never = {name for names in said for name, child in names.items() if schemas[child].never}
    forbidden = [{p.name for p in shape.properties if not p.choice} for shape in objects]
    for name in dict.fromkeys(name for names in said for name in names if name not in never):
        if all(name in names for names in forbidden):
            yield name
