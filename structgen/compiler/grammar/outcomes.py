"""What it takes to see whether texts can be completed, looked at when a stranger's grammar is compiled.

Steps find outcomes as they ask for them (`structgen.runtime.outcomes`), slice by slice. All that they can ask for is
worked out here once, under a budget whose steps are bounded. Ordinary texts ask for little of it: for a grammar of
Python it is 17 million outcomes, of which programs need some thousands.
"""

from __future__ import annotations

from ...budget import Meter
from ...runtime.borders import Borders
from ...runtime.completions import Completions
from ...runtime.embedded import Embedded
from ...runtime.grammar_tables import GrammarTables
from ...runtime.parses import ParserDriver

#: What the meter is told.
_DOING = "looking for what completes texts"

#: Bytes of a lexer state with what is watched there.
_BYTES_OF_STATE = 400


def check_outcomes(tables: GrammarTables, embedded: Embedded, meter: Meter) -> None:
    """Raise `BudgetExceededError` where steps could take more time or memory than a compile may."""
    if tables.endings.is_loose:
        return

    def check(nbytes: int) -> None:
        meter.check_time(_DOING)
        meter.check_memory(nbytes, _DOING)

    endings = tables.endings
    borders = Borders(
        tables, endings.future.__getitem__, endings.number, check=lambda states: check(_BYTES_OF_STATE * states)
    )
    Completions(tables, ParserDriver(tables).parser, borders, embedded, check).find_all()
