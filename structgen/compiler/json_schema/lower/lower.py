"""From the normal form of a schema to a pushdown program.

Every value has a state where it begins; after it the program goes on with whatever state lies below. A worklist
gives each array's and object's first state its edges (`items`, `members`), which may ask for further values. The
insides of strings, and numbers, are automata (`embed`). docs/internals/json_lowering.md shows the states of an
example.
"""

from __future__ import annotations

from functools import lru_cache

from ....budget import Meter, Unremembered
from ....errors import DefinitionError
from ...automata.edge_lists import EdgeLists, of_dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from ...programs.program import Program
from ..normal_form.shapes import ArrayShape, Values
from .any_order import in_any_order
from .builder import Builder
from .items import ArrayStates
from .members import InOrder
from .options import TextOptions
from .whitespace import Gaps, Indented, Whitespace

_WHITESPACE = frozenset(b" \t\n\r")


def lower(values: Values, layout: TextOptions, meter: Meter, *, lenient: list[str] | None = None) -> Program:
    """The program of the texts of a schema's values.

    Parameters
    ----------
    lenient:
        Takes what had to be relaxed; None: nothing may be.

    Raises `UnsupportedError` for what no program of a sensible size can honour, `BudgetExceededError`, and
    `DefinitionError` for a bad ``layout``.
    """
    builder = Builder(values, layout, meter, lenient)
    builder.whitespace = _whitespace(builder)
    builder.program.start = builder.value((values.root,), 0)
    while builder.todo:
        meter.check_states(len(builder.program.edges), "lowering the schema")
        meter.check_time("lowering the schema")
        shape, start, value, level = builder.todo.pop()
        if isinstance(shape, ArrayShape):
            ArrayStates(builder, shape, value.pointer, level).run(start)
        elif layout.property_order == "any":
            in_any_order(builder, shape, value.pointer, level).run(start)
        else:
            InOrder(builder, shape, value.pointer, level).run(start)
    builder.keys.finish()
    return builder.program


def _whitespace(builder: Builder) -> Whitespace:
    layout = builder.layout
    if layout.indent is not None:
        return Indented(builder.program, layout.indent)
    return Gaps(builder.program, gap_automaton(layout.gap or "", Unremembered(builder.meter)))


@lru_cache(maxsize=64)
def gap_automaton(pattern: str, by: Unremembered) -> EdgeLists:
    """The automaton of what may stand between tokens. Raises `DefinitionError`, `BudgetExceededError`."""
    meter = by.meter
    gap = of_dfa(language(parse(pattern, 0, meter), meter, count=False), meter)
    bytes_ = {byte for edges in gap.edges for low, high, _ in edges for byte in range(low, high + 1)}
    if not gap.edges or not bytes_ <= _WHITESPACE:
        raise DefinitionError(
            f"the whitespace pattern {pattern!r} matches nothing, or more than whitespace",
            where="whitespace",
            remedy="Use a pattern of spaces, tabs and line ends.",
        )
    return gap
