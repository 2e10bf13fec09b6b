"""`structgen.compiler.stuck` for grammars."""

from __future__ import annotations

import numpy as np

from ..budget import Meter
from ..errors import VocabularyError
from ..runtime.core.digraph import set_of, solve
from ..runtime.grammar.machine import GrammarMachine
from .grammar.lexer.leftmost_dfa import edges_of
from .grammar.lexer.minimise import reached, successors
from .stuck import DOING


def check_lexer_never_stuck(machine: GrammarMachine, meter: Meter) -> None:
    """Raise `VocabularyError` where a lexeme needs a byte that no token is by itself to become what it could be.

    What the vocabulary can then begin it can finish, byte by byte. Raises `BudgetExceededError`.
    """
    tables = machine.tables
    spelled = np.zeros(tables.table.shape[1], np.bool_)
    spelled[tables.class_of[machine.vocabulary.single_bytes]] = True
    if spelled.all():
        return
    future = [set_of({terminal for terminal, _ in tables.ends_of[state]}) for state in range(len(tables.table))]
    solve(future, successors(tables.table[:, spelled], meter), lambda: meter.check_time(DOING))
    for state in _states_met(machine):
        possible, left = tables.futures[state], future[state]
        if possible != left:
            lost = possible & ~left
            byte = int(
                np.flatnonzero(~spelled[tables.class_of] & (tables.table[state, tables.class_of] >= 0)).min(initial=255)
            )
            raise VocabularyError(
                "the vocabulary cannot complete every text of this grammar",
                where=f"terminal {tables.name((lost & -lost).bit_length() - 1)}; "
                f"no token is just the byte 0x{byte:02x}",
                remedy="Use a grammar that the vocabulary can spell, or a vocabulary with all single bytes.",
            )


def _states_met(machine: GrammarMachine) -> list[int]:
    """The lexer states that bytes of the vocabulary's tokens can lead to."""
    tables = machine.tables
    met = np.zeros(tables.table.shape[1], np.bool_)
    met[tables.class_of[np.unique(machine.vocabulary.blob)]] = True
    goals = np.zeros(len(tables.table), np.bool_)
    goals[tables.starts] = True
    found: list[int] = np.flatnonzero(reached(goals, edges_of(tables.table[:, met]))).tolist()
    return found
