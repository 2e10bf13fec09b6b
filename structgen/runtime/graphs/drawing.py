"""Which reader an automaton has."""

from __future__ import annotations

from ...errors import ArgumentError, UnsupportedError
from ...system.arguments import integer
from ...system.types import Foreign
from ...system.visible import visible
from ...vocabulary.vocabulary import Vocabulary
from . import automaton, grammar, pushdown
from .graph import Graph

#: States that can be shown.
MOST = 2_000


def graph_of(kind: str, tables: Foreign, vocabulary: Vocabulary, title: str, *, limit: int) -> Graph:
    """The graph of an index's tables.

    Raises `ArgumentError` for a limit below 1 or above `MOST`, `UnsupportedError` where there are no tables.
    """
    if not 0 < integer(limit, "limit", ArgumentError) <= MOST:
        raise ArgumentError(f"limit is {limit}", remedy=f"Use a number from 1 to {MOST:,}.")
    if tables is None:
        raise UnsupportedError("an index behind a prefix has no picture", remedy="Draw the index itself.")
    title = visible(title)
    if kind in ("regex", "fsm"):
        return automaton.graph_of(tables, title, limit)
    if kind == "grammar":
        return grammar.graph_of(tables, title, limit)
    return pushdown.graph_of(tables, vocabulary, title, limit)
