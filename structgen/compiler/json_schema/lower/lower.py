"""From the normal form of a schema to a pushdown program.

Every value has a state where it begins; after it the program goes on with whatever state lies below. A worklist
gives each array's and object's first state its edges (`items`, `members`), which may ask for further values. The
insides of strings, and numbers, are automata (`embed`). docs/internals/json_lowering.md shows the states of an
example.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from ....budget import Budget, Meter, Unremembered
from ....errors import DefinitionError
from ....runtime.pushdown.tables import ENDS_NAME, OPENS_OBJECT
from ...automata.edge_lists import EdgeLists, of_dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from ...programs.fragments import Fragments
from ...programs.program import Program, State
from ...programs.tables import Flattener
from ..layout.options import TextOptions
from ..normal_form.shapes import ArrayShape, ObjectShape, Ref, Value, Values
from ..numbers.numbers import NumberSet
from ..read.blame import placed
from ..strings.strings import StringSet
from .builder import Builder, any_value
from .items import ArrayStates
from .members import InOrder
from .whitespace import WHITESPACE, Gaps, Indented, Separator, Whitespace

if TYPE_CHECKING:
    from .any_order import AnyOrder
    from .marked_order import MarkedOrder
    from .tags import Tags

#: States that a part has at least, about, where there are as many; and the share of those that are there already.
_PART, _SHARE = 256, 8

#: Arrays and objects between two looks at the meter.
_TURNS = 8

#: Values that many schemas have, beside any.
_PLAIN: tuple[dict[str, Any], ...] = (
    {"strings": StringSet.ANY}, {"numbers": NumberSet.INTEGERS}, {"numbers": NumberSet.ANY},
    {"booleans": frozenset((False, True))},
)  # fmt: skip

_WHITESPACE = frozenset(b" \t\n\r")


class SchemaLowering:
    """The program of the texts of a schema's values, lowered as a whole or in parts.

    In parts, the first has the root's values, but not those of members with declared names, and so on. States before
    such values are *open*: they have no edges, until `go_on` gives them some. (Only those wait: no token has the `{`
    before a declared name, all of the name, and what follows it. But tokens like `":[{"` stand at its end, and behind
    any other name.) Each part has tries of its own, so parts share fewer states than a whole does. Which states there
    are follows from the order in which they are asked for.

    Parameters
    ----------
    lenient:
        Takes what had to be relaxed; None: nothing may be.
    whole, keeps_sets:
        As `Builder` takes them.

    Raises
    ------
    UnsupportedError, BudgetExceededError
        What no program of a sensible size can honour. `structgen.compiler.json_schema.lower.bounds` says of which
        values that is never so, such that these may wait.
    DefinitionError
        A bad ``layout``.
    """

    def __init__(
        self,
        values: Values,
        layout: TextOptions,
        meter: Meter,
        *,
        lenient: list[str] | None,
        whole: bool,
        keeps_sets: bool = False,
    ) -> None:
        begun = begun_builder(layout, keeps_sets, meter) if layout.style is None else None
        program = self.program = Program() if begun is None else begun.program.continued()
        meter.grant(len(program.edges))
        builder = self._builder = _builder(
            values, layout, meter, program, begun, lenient=lenient, whole=whole, keeps_sets=keeps_sets
        )
        program.start = _lower_root(builder, values.root)

    @property
    def open(self) -> list[State]:
        """The states that have no edges yet."""
        return list(self._builder.open)

    def flattener(self, meter: Meter) -> Flattener:
        """The columns of the program, which has not gone on yet."""
        return Flattener(self.program, meter)

    def go_on(self, states: Iterable[State]) -> None:
        """Lower what some open states begin, and what members have whose turn is next, to a part worth its while."""
        builder, edges = self._builder, self.program.edges
        builder.begin_part()
        enough = len(edges) + max(_PART, len(edges) // _SHARE)
        for state in states:
            builder.begin(state)
            _drain(builder)
        # Members are made from the last one on, and so are the states before their values.
        following = [other for other in builder.open if other < state]
        while (following or builder.open) and len(edges) + builder.tries.size < enough:
            following = following or list(builder.open)
            builder.begin(following.pop())
            _drain(builder)
        _lower(builder)


def _drain(builder: Builder) -> None:
    """Give arrays and objects their edges, and those within."""
    turns = 0
    while builder.todo:
        if not turns % _TURNS:
            builder.meter.check_states(len(builder.program.edges), "lowering the schema")
        turns += 1
        shape, start, value, level = builder.todo.pop()
        with placed(value.pointer):
            _states_of(builder, shape, value.pointer, level).run(start)
        if isinstance(shape, ObjectShape) and len(shape.properties) > builder.widest[0]:
            builder.widest = len(shape.properties), value.pointer


def _lower(builder: Builder) -> None:
    """Give all states but open ones their edges."""
    _drain(builder)
    program = builder.program
    if OPENS_OBJECT in program.distinct.values():
        program.distinct |= dict.fromkeys(builder.whitespace.colons, ENDS_NAME)
    with placed(builder.widest[1]):  # the names of all objects together; these are the most
        builder.keys.finish()
    program.settle()


def _lower_root(builder: Builder, root: Ref) -> State:
    """The state where a value begins, with all that is lowered with it."""
    if builder.tags is None:
        start = builder.value((root,), 0)
        if start in builder.open:
            builder.begin(start)
        _lower(builder)
        return start
    tags = cast("Tags", builder.tags)
    start = tags.root(builder.values[root])
    _lower(builder)
    tags.finish()
    return start


def _builder(
    values: Values,
    layout: TextOptions,
    meter: Meter,
    program: Program,
    begun: Builder | None,
    *,
    lenient: list[str] | None = None,
    whole: bool = True,
    keeps_sets: bool = False,
) -> Builder:
    """A `Builder` with the whitespace of its layout, and the tags of its style."""
    builder = Builder(values, layout, meter, lenient, program, whole=whole, keeps_sets=keeps_sets, begun=begun)
    if begun is None:
        builder.whitespace = _whitespace(builder)
    if layout.style is not None:
        from .tags import Tags

        if begun is None:
            builder.tags = Tags(builder, layout.style, _gap(builder, layout.tag_gap))
        else:
            builder.tags = tags = cast("Tags", begun.tags)
            tags.begin(builder)
    return builder


def begun_builder(layout: TextOptions, keeps_sets: bool, meter: Meter) -> Builder:
    """A builder that has what most schemas have: any value, and integers, unless these depend on where they stand.

    The same for all schemas of a layout, which go on from copies of its parts. How many states it has is no matter
    for their budgets.

    Raises as `SchemaLowering`.
    """
    return _begun(layout, keeps_sets, Unremembered(meter))


@lru_cache(maxsize=64)
def _begun(layout: TextOptions, keeps_sets: bool, by: Unremembered) -> Builder:
    meter = Meter(replace(by.meter.budget, states=Budget().states))
    values = any_value(0), *[Value(**plain) for plain in _PLAIN]
    builder = _builder(Values(values, 0), layout, meter, Program(), None, keeps_sets=keeps_sets)
    if layout.indent is None and not layout.unique_names:
        builder.value((0,), 0)
        for ref, value in enumerate(values[1:], 1):
            builder.plain[value[:4]] = builder.whitespace.colon(builder.value((ref,), 0))
        _lower(builder)
        builder.whitespace.fragments = Fragments(len(builder.program.edges))
    return builder


def lower_into(
    program: Program, values: Values, layout: TextOptions, meter: Meter, begun: Builder | None
) -> tuple[State, Builder]:
    """Lower values into a program that has other states; ``begun`` has lowered some into it before, if any did.

    Returns the state where they begin, and what can go on from here; ``begun`` cannot any more. States that are there
    already count for no budget.

    Raises as `SchemaLowering`, and leaves a program then that is half made.
    """
    before = len(program.edges)
    meter.grant(before)
    try:
        builder = _builder(values, layout, meter, program, begun)
        start = _lower_root(builder, values.root)
        builder.begin_part()  # the names are not needed any more
    finally:
        meter.grant(-before)
    return start, builder


def _states_of(
    builder: Builder, shape: ArrayShape | ObjectShape, pointer: str, level: int
) -> ArrayStates | InOrder | AnyOrder | MarkedOrder:
    if isinstance(shape, ArrayShape):
        return ArrayStates(builder, shape, pointer, level)
    if builder.layout.property_order == "any":
        from .any_order import in_any_order

        return in_any_order(builder, shape, pointer, level)
    return InOrder(builder, shape, pointer, level)


def lower(
    values: Values, layout: TextOptions, meter: Meter, *, lenient: list[str] | None = None, keeps_sets: bool = False
) -> Program:
    """The program as a whole; see `SchemaLowering`."""
    return SchemaLowering(values, layout, meter, lenient=lenient, whole=True, keeps_sets=keeps_sets).program


def _whitespace(builder: Builder) -> Whitespace:
    layout = builder.layout
    if layout.indent is not None:
        return Indented(builder.program, layout.indent, _separators(builder))
    return Gaps(builder.program, _gap(builder, layout.gap or ""), _separators(builder))


def _gap(builder: Builder, pattern: str) -> EdgeLists:
    return gap_automaton(pattern, Unremembered(builder.meter))


@lru_cache(maxsize=64)
def gap_automaton(pattern: str, by: Unremembered) -> EdgeLists:
    """The automaton of what may stand between tokens. Raises `DefinitionError`, `BudgetExceededError`."""
    try:
        gap = _automaton(pattern, by.meter)
    except DefinitionError as error:
        raise error.within("whitespace") from error
    bytes_ = {byte for edges in gap.edges for low, high, _ in edges for byte in range(low, high + 1)}
    if not gap.edges or not bytes_ <= _WHITESPACE:
        raise DefinitionError(
            f"the whitespace pattern {pattern!r} matches nothing, or more than whitespace",
            where="whitespace",
            remedy="Use a pattern of spaces, tabs and line ends.",
        )
    return gap


def _separators(builder: Builder) -> tuple[Separator, Separator]:
    """What is written between items, and behind names. Raises `DefinitionError` and `BudgetExceededError`."""
    layout = builder.layout
    gap = _gap(builder, layout.gap or "")
    is_spaced = bool(gap.edges[gap.start])
    by = Unremembered(builder.meter)
    item, key = (
        text if text.strip(WHITESPACE) == mark else separator_automaton(text, is_spaced, by)
        for text, mark in zip(layout.separators, (",", ":"), strict=True)
    )
    return item, key


@lru_cache(maxsize=64)
def separator_automaton(pattern: str, is_spaced: bool, by: Unremembered) -> EdgeLists:
    """The automaton of a separator, before which whitespace may stand as well, or not.

    Raises `DefinitionError` and `BudgetExceededError`.
    """
    found = _automaton(pattern, by.meter)
    if not found.edges or found.accepting[found.start]:
        what = f"the separator {pattern!r} matches nothing, or may be empty"
        raise DefinitionError(what, where="separators", remedy="Use a pattern of texts with a character at least.")
    first = {byte for low, high, _ in found.edges[found.start] for byte in range(low, high + 1)}
    if is_spaced and not first.isdisjoint(_WHITESPACE):
        what = f"the separator {pattern!r} may begin with whitespace, where whitespace may stand anyway"
        raise DefinitionError(what, where="separators", remedy='Use whitespace="compact" or an indentation.')
    return found


def _automaton(pattern: str, meter: Meter) -> EdgeLists:
    return of_dfa(language(parse(pattern, 0, meter), meter, count=False), meter)
