"""The algebra of schemas: a document in, the normal form of its values out. `docs/internals/json_algebra.md` has the
rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ...budget import Meter
from ...errors import EmptyLanguageError
from .algebra.distinct import Distinct
from .algebra.expansion import Expansion
from .algebra.goals import Conjunction
from .algebra.nodes import Nodes
from .algebra.sharing import places
from .algebra.unsatisfiable import conflict
from .impossible import impossible_places
from .layout.options import TextOptions
from .layout.writable import writable
from .normal_form.assembling import assemble
from .normal_form.digits import with_at_most
from .normal_form.inhabited import inhabited, living
from .normal_form.plain import PlainValues
from .normal_form.shapes import Value, Values
from .normal_form.shaping import Shaping
from .read.blame import placed
from .read.document import Document
from .read.dynamic import without_dynamic_references

#: Places without values that are told of.
_MOST_TOLD = 3

_AS_JSON = TextOptions()
_DOING = "normalising the schema"


def normalise(document: Document, meter: Meter, *, lenient: bool = False, layout: TextOptions = _AS_JSON) -> Values:
    """Bring a schema into its normal form.

    Parameters
    ----------
    document:
        The schema.
    meter:
        Bounds the time, and the number of values.
    lenient:
        Drop the keywords that can't be honoured, and list them in ``Values.relaxations``, in place of refusing them.

    layout:
        How the values must be writable.

    Raises
    ------
    EmptyLanguageError
        No value satisfies the schema, or none that does can be written.
    UnsupportedError
        A keyword can't be honoured exactly.
    BudgetExceededError
        The schema's alternatives multiply beyond the budget.
    """
    schemas, root = without_dynamic_references(document, meter)
    is_free = layout.max_items is layout.max_string_length is layout.max_digits is None and not layout.forbidden
    fields = places(schemas, root, meter)
    plain = PlainValues(schemas, fields if is_free else {}, root, meter, lenient)
    if (at := plain.of(frozenset((root,)))) is not None:
        return Values(tuple(plain.values), at)
    nodes = Nodes(schemas, fields, meter)
    expansion = Expansion(nodes, plain.assertions, meter)
    goal = nodes.goal(root)
    shaping = Shaping(nodes, plain, layout.max_items, layout.max_string_length)
    at = shaping.ref(goal)
    drafts: Sequence[Value] = drafts_of(shaping, expansion, meter)
    alive = inhabited(drafts, meter, set(range(len(drafts))) - shaping.goals.keys())

    def has_values(inner: Conjunction) -> bool | None:
        return shaping.refs[inner] in alive if inner in shaping.refs else None

    if at not in alive:
        raise conflict(goal, expansion, has_values)
    lives = living(at, drafts, alive, meter)
    impossible = [*islice(impossible_places(lives, shaping.goals, expansion, has_values), _MOST_TOLD)]
    if layout.forbidden:
        drafts = writable(drafts, layout, meter)
        alive = inhabited(drafts, meter)
        if at not in alive:
            raise EmptyLanguageError(
                "no value satisfies the schema and can be written",
                where="#",
                remedy="Exclude less, allow the escapes that strings need, and describe an object for a style, whose "
                "strings do not hold the closing tag.",
            )
        lives = living(at, drafts, alive, meter)
    found, at = assemble(drafts, lives, meter)
    if layout.max_digits is not None:  # no set of values, so that unions come before
        found = tuple([with_at_most(layout.max_digits, value, meter) for value in found])
    return Values(found, at, tuple(expansion.bounds.assertions.relaxations), tuple(impossible))


def drafts_of(shaping: Shaping, expansion: Expansion, meter: Meter) -> Sequence[Value]:
    """The drafts of all goals, and of every goal that these lead to."""
    distinct = Distinct(expansion)
    pointer = ""
    with placed(lambda: pointer):
        for ref, goal in meter.each(shaping.todo, _DOING, every=16):  # grows while it is read
            pointer = expansion.nodes.pointer(goal)
            if len(shaping.goals) > meter.states:
                raise meter.too_many_states(len(shaping.goals), _DOING)
            bounds = expansion.bounds.solve(goal)
            splits = expansion.array_clauses.of(goal) if bounds.arrays else []
            arrays = [clause for split in splits for clause in distinct.settled(split)]
            objects = expansion.object_clauses.of(goal) if bounds.objects else []
            shaping.drafts[ref] = shaping.value(bounds, arrays, objects, pointer)
    shaping.todo.clear()
    return shaping.drafts
