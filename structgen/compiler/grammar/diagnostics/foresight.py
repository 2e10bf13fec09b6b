"""What is not looked at to the end of a text where there is a layout: masks may let dead ends through then."""

from __future__ import annotations

from collections.abc import Iterator

from ....budget import Meter
from ....definitions.shipped import names
from ....runtime.grammar.completability.boundaries import Boundaries
from ....runtime.grammar.completability.nesting import Nesting, NotNestedError
from ....runtime.grammar.completability.obligations import Watched
from ....runtime.grammar.tables import GrammarTables
from ..completion.endings import MOST_LASTING
from ..parser.symbols import Symbols

#: What the meter is told.
_DOING = "looking for what can follow lexemes"


def unforeseen(tables: GrammarTables, symbols: Symbols, meter: Meter) -> Iterator[str]:
    """A sentence for each reason why masks may let something through that no text completes."""
    layout, endings = tables.layout, tables.endings
    if layout is None:
        return
    try:
        is_whole = Nesting.of(tables, lambda: meter.check_time(_DOING)).is_whole
    except NotNestedError as error:
        if not endings.is_unconstrained:
            yield (
                f"{error.kind} do not nest in the texts of the rule {symbols.names[error.origin]}, so masks look"
                " three lexemes ahead, not to the end of a text, where something must be able to follow"
            )
            return
        is_whole = False
    if not is_whole:
        yield (
            f"some {tables.terminals[layout.indent]} has its {tables.terminals[layout.dedent]} in another rule, so"
            " masks suppose that blocks which must come have room, also close to the widest column"
        )
    if endings.is_unconstrained:
        return
    if not layout.is_far and _is_news(tables, meter):
        yield (
            "many lexemes could become longer ones even several bytes on; of what a lexeme could still become masks"
            " look at the next byte alone"
        )
    columns: dict[Watched, set[int]] = {}
    for terminal, border in zip(endings.terminal, endings.boundary, strict=True):
        if terminal > tables.end:
            columns.setdefault(border, set()).add(terminal)
    if any(there != next(iter(columns.values())) for there in columns.values()):
        yield (
            f"the terminal {tables.terminals[layout.newline]} ends lines in several ways that differ in the columns"
            " at which the next line can begin; masks suppose that it can begin at all of them"
        )


def _is_news(tables: GrammarTables, meter: Meter) -> bool:
    """Whether it is not for the terminals of structgen's own grammars that too much would have to be looked at."""
    endings = tables.endings
    borders = Boundaries(tables, endings.future.__getitem__, endings.number, is_far=True)
    imported = tuple(f"{name}__" for name in names())
    lasting: dict[Watched, bool] = {}  # whether some terminal with that border is none of structgen's
    for terminal, border in zip(endings.terminal, endings.boundary, strict=True):
        meter.check_time(_DOING)
        if borders.fate(border).stays:
            lasting[border] = lasting.get(border, False) or not tables.name(terminal).startswith(imported)
    return len(lasting) <= MOST_LASTING or sum(lasting.values()) > MOST_LASTING
