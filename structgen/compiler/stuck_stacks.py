"""`structgen.compiler.stuck` for automata with a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..runtime.automaton.tables import bytes_in
from ..runtime.pushdown.counts import zones_of
from ..runtime.pushdown.machine import PushdownMachine
from ..runtime.pushdown.tables import PushdownTables
from .stuck import check_configurations, steps

if TYPE_CHECKING:
    from ..runtime.pushdown.distinct.machine import DistinctMachine


def check_stack_never_stuck(machine: PushdownMachine, meter: Meter) -> None:
    """Raise `VocabularyError`, with an example, where some configuration cannot be finished.

    Enough, whatever lies on a stack: every state that the vocabulary's bytes lead to can finish by single-byte
    tokens alone. Where that fails, configurations are enumerated as far as the budget goes.
    """
    tables = machine.tables
    single = machine.vocabulary.single_bytes
    if single.all():
        return
    machine.lower_all()
    if single[bytes_in(tables.edge_low, tables.edge_high)].all():
        return
    spelt = np.zeros(256, np.bool_)
    spelt[machine.vocabulary.blob] = True
    if _unfinished(tables, single, spelt):
        check_configurations(machine, lambda config: steps(machine, config), "", meter)


def _unfinished(tables: PushdownTables, single: NDArray[np.bool_], spelt: NDArray[np.bool_]) -> set[int]:
    """States that bytes of tokens lead to, and that single-byte tokens alone do not finish."""
    moves: dict[int, list[tuple[bool, bool, tuple[int, ...]]]] = {}
    for state in range(tables.states):
        by_target: dict[int, list[int]] = {}
        for byte, target in tables.edges(state).items():
            by_target.setdefault(target, []).append(byte)
        moves[state] = []
        for target, bytes_of in by_target.items():
            by_single, by_any = bool(single[bytes_of].any()), bool(spelt[bytes_of].any())
            moves[state] += [(by_single, by_any, sequence) for sequence in _sequences(tables, target)]
    stands_for = {state: state for state in range(tables.states)}
    if tables.tokens is not None:
        for state, target in zip(*map(np.ndarray.tolist, tables.tokens.moves()), strict=True):
            moves[state] += [(True, True, sequence) for sequence in _sequences(tables, target)]
        stands_for |= {state: exhausted for state, (_, exhausted) in tables.tokens.bounds.items()}
    reached = {tables.start}
    for state in (queue := [tables.start]):
        for _, by_any, sequence in moves[state]:
            new = set(sequence) - reached if by_any else set()
            reached |= new
            queue += new
    finished = {state for state in reached if tables.returns[stands_for[state]]}
    growing = True
    while growing:
        growing = False
        for state in reached - finished:  # whatever tokens were counted: by what an exhausted state can do
            can = moves[stands_for[state]]
            if any(by_single and finished.issuperset(sequence) for by_single, _, sequence in can):
                finished.add(state)
                growing = True
    return reached - finished


def _sequences(tables: PushdownTables, target: int) -> list[tuple[int, ...]]:
    """What may take a state's place by an edge to a state, or to a group of moves."""
    if target < tables.states:
        return [(target,)]
    found: list[tuple[int, ...]] = []
    for record, sequence in tables.moves[target - tables.states]:
        found += [sequence] if record is None else [(first, *sequence) for first in zones_of(record)]
    return found


def check_distinct_never_stuck(machine: DistinctMachine, meter: Meter) -> None:
    """The same where an array's items must differ: what can still differ is looked for byte by byte."""
    check_stack_never_stuck(machine, meter)
    if not machine.vocabulary.single_bytes[bytes_in(machine.tables.edge_low, machine.tables.edge_high)].all():
        check_configurations(machine, lambda config: steps(machine, config), "", meter)
