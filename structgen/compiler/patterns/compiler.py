"""The regex front end: a `Regex` in, the `Tables` of its byte automaton out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...budget import Meter
from ...definitions import Regex
from ...errors import EmptyLanguageError
from ...runtime.automaton.tables import Tables
from ..automata.dfa import to_tables
from ..automata.edge_lists import of_dfa
from .dialects import read
from .lower import language, regex_to_dfa

if TYPE_CHECKING:
    from ..programs.program import Program


def compile_regex(regex: Regex, meter: Meter) -> Tables:
    """Parse, build, determinise, minimise. Raises the errors of `read` and `regex_to_dfa`."""
    tree = read(regex, meter)
    return to_tables(regex_to_dfa(tree, meter), meter)


def regex_program(regex: Regex, meter: Meter) -> Program:
    """The same texts as a pushdown program that never pushes: for what goes on behind them.

    Raises the errors of `read` and `language`, and `EmptyLanguageError`.
    """
    from ..programs.program import Program

    dfa = language(read(regex, meter), meter, count=False)
    if not dfa.states:
        raise EmptyLanguageError("the pattern matches no text", remedy="Change the pattern.")
    program = Program(dfa.start)
    program.states("", dfa.states)
    program.returns.update(np.flatnonzero(dfa.accepting).tolist())
    program.blocks.append(of_dfa(dfa, meter).columns + np.array([[0], [0], [0], [1]], np.int32))
    return program
