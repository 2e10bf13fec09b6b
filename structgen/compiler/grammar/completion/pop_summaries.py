"""What it takes to see whether texts can be completed, looked at when a stranger's grammar is compiled.

Steps find outcomes as they ask for them (`structgen.runtime.grammar.completability.pop_summaries`), slice by slice.
All that they can ask for is worked out here once, under a budget whose steps are bounded. Ordinary texts ask for
little of it: for a grammar of Python it is 22 thousand outcomes, of which programs need some hundreds.
"""

from __future__ import annotations

from ....budget import Meter
from ....runtime.grammar.completability.boundaries import Boundaries
from ....runtime.grammar.completability.completions import Completions
from ....runtime.grammar.embedded import Embedded
from ....runtime.grammar.parser.parser_driver import ParserDriver
from ....runtime.grammar.tables import GrammarTables

#: What the meter is told.
_DOING = "looking for what completes texts"

#: Bytes of a lexer state with what is watched there.
_BYTES_OF_STATE = 400


def check_outcomes(tables: GrammarTables, embedded: Embedded, meter: Meter) -> None:
    """Raise `BudgetExceededError` where steps could take more time or memory than a compile may."""
    if tables.endings.is_unconstrained:
        return

    def check(nbytes: int) -> None:
        meter.check_time(_DOING)
        meter.check_memory(nbytes, _DOING)

    endings = tables.endings
    borders = Boundaries(
        tables, endings.future.__getitem__, endings.number, check=lambda states: check(_BYTES_OF_STATE * states)
    )
    Completions(tables, ParserDriver(tables).parser, borders, embedded, check).find_all()
