"""`structgen.compiler.stuck` for a machine of any kind."""

from __future__ import annotations

from collections.abc import Callable

from ..budget import Meter
from ..runtime.automaton.machine import AutomatonMachine
from ..runtime.core.machine import CompiledMachine
from ..runtime.grammar.machine import GrammarMachine
from ..runtime.pushdown.distinct.machine import DistinctMachine
from ..runtime.pushdown.machine import PushdownMachine
from .stuck import check_configurations, check_never_stuck, steps
from .stuck_lexers import check_lexer_never_stuck
from .stuck_stacks import check_distinct_never_stuck, check_stack_never_stuck

_CHECKS: dict[type, Callable[..., None]] = {
    AutomatonMachine: check_never_stuck,
    PushdownMachine: check_stack_never_stuck,
    GrammarMachine: check_lexer_never_stuck,
    DistinctMachine: check_distinct_never_stuck,
}


def check_finishes(machine: CompiledMachine, meter: Meter, *, completes: bool) -> str:
    """Check a machine of any kind, and say how it was seen.

    Parameters
    ----------
    completes:
        Whether it is known that bytes, whether they are tokens or not, complete whatever bytes begin. Without it
        all configurations are looked at.

    Raises `VocabularyError` with an example, `BudgetExceededError`.
    """
    check = _CHECKS.get(type(machine)) if completes else None
    if check is None:
        check_configurations(machine, lambda config: steps(machine, config), "", meter)
        return "each configuration that tokens lead to was looked at"
    check(machine, meter)
    return "whatever bytes begin, bytes complete, and the vocabulary's tokens spell these"
