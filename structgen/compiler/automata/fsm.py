"""The front end for interegular's machines: an `Fsm` over characters in, `Tables` over bytes out."""

from __future__ import annotations

from ...budget import Meter
from ...definitions import Fsm
from ...errors import EmptyLanguageError
from ...runtime.automaton.tables import Tables
from .charset import Ranges, complement, normalise, union
from .dfa import determinize, minimize, to_tables
from .nfa import NfaBuilder
from .utf8 import utf8_edges


def compile_fsm(definition: Fsm, meter: Meter) -> Tables:
    """Spell each character as UTF-8, determinise, minimise.

    Raises `EmptyLanguageError` and `BudgetExceededError`.
    """
    fsm = definition.fsm
    characters = _characters(definition.symbols())
    meter.check_states(len(fsm.states), "reading the FSM")
    builder = NfaBuilder()
    number = {state: builder.state() for state in fsm.states}
    accept = builder.state()
    for state, moves in fsm.map.items():
        by_target: dict[int, list[Ranges]] = {}
        for key, target in moves.items():
            by_target.setdefault(number[target], []).append(characters[key])
        for target, ranges in by_target.items():
            builder.template(utf8_edges(union(*ranges)), number[state], target, -1)
        meter.check_time("reading the FSM")
    for state in fsm.finals:
        builder.epsilon(number[state], accept)
    dfa = minimize(determinize(builder.build(number[fsm.initial], accept), meter), meter)
    if not dfa.states:
        raise EmptyLanguageError("the FSM accepts no text at all", remedy="Check which states are final.")
    return to_tables(dfa)


def _characters(symbols: dict[int, list[str | None]]) -> dict[int, Ranges]:
    """The code points of each transition key."""
    named = normalise((ord(s), ord(s)) for group in symbols.values() for s in group if s is not None)
    return {
        key: union(
            normalise((ord(s), ord(s)) for s in group if s is not None), complement(named) if None in group else ()
        )
        for key, group in symbols.items()
    }
