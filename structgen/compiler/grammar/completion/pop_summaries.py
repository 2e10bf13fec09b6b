"""What it takes to see whether texts can be completed, looked at when a grammar is compiled.

Steps find outcomes as they ask for them (`structgen.runtime.grammar.completability.pop_summaries`), slice by slice.
All that they can ask for is worked out here once, under a budget whose steps are bounded, and where it takes little:
a mask of Go asks about 200 stacks, which takes Python 20 ms. With indentation ordinary texts ask for little of it:
for a grammar of Python it is 22 thousand outcomes, of which programs need some hundreds.
"""

from __future__ import annotations

from contextlib import suppress

from ....budget import Meter
from ....runtime.grammar.completability.boundaries import Boundaries
from ....runtime.grammar.completability.completion_tables import CompletionTables
from ....runtime.grammar.completability.completions import Completions
from ....runtime.grammar.embedded import Embedded
from ....runtime.grammar.parser.parser_driver import ParserDriver
from ....runtime.grammar.tables import GrammarTables

#: What the meter is told.
_DOING = "looking for what completes texts"

#: Bytes that are spent on what need not be found, a quarter of a second.
_MOST_BYTES = 16 << 20

#: Bytes of a lexer state with what is watched there.
_BYTES_OF_STATE = 400


class _TooMuchError(Exception):
    """It takes more than is spent on it."""


def find_completions(tables: GrammarTables, embedded: Embedded, meter: Meter) -> CompletionTables | None:
    """What completes texts, for kernels to ask, where that takes little; else None.

    Raises `BudgetExceededError` where steps could take more time or memory than a compile may, if they are bounded.
    """
    is_bounded = meter.budget.bounded_steps
    if tables.endings.is_unconstrained or (tables.layout is not None and not is_bounded):
        return None

    def check(nbytes: int) -> None:
        meter.check_time(_DOING)
        meter.check_memory(nbytes, _DOING)
        if nbytes > _MOST_BYTES and not is_bounded:
            raise _TooMuchError

    endings = tables.endings
    borders = Boundaries(
        tables, endings.future.__getitem__, endings.number, check=lambda states: check(_BYTES_OF_STATE * states)
    )
    completions = Completions(tables, ParserDriver(tables).parser, borders, embedded, check)
    found = None
    with suppress(_TooMuchError):
        if tables.is_deterministic and not embedded.definitions:
            found = completions.tables()
        if found is None and is_bounded:
            completions.find_all()
    return found
