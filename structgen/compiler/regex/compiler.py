"""The regex front end: a `Regex` in, the `Tables` of its byte automaton out."""

from __future__ import annotations

from ...budget import Meter
from ...definitions import Regex
from ...runtime.tables import Tables
from ..automata.dfa import to_tables
from .lower import regex_to_dfa
from .parser import parse

def compile_regex(regex: Regex, meter: Meter) -> Tables:
    """Parse, build, determinise, minimise. Raises the errors of `parse` and `regex_to_dfa`."""
    tree = parse(regex.pattern, regex.flags, depth=meter.budget.depth)
    return to_tables(regex_to_dfa(tree, meter))
