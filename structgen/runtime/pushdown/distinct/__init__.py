"""Arrays whose items must all differ, objects whose names must: which have been there is part of the configuration.

Comes in: a `PushdownMachine` whose tables mark where these begin, and where their items and names end. Goes out: a
machine around it. The set of values is a persistent search tree, so that forks and rollback cost nothing
(docs/internals/json_lowering.md).

Read `value_set`, `items` (the scalar in progress), `containers` (what is around it), `varieties` (how many values there
are), `places` (steps), `nodes` and `refusals` (masks), `machine`, `definition` (within grammars).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine import PushdownMachine

if TYPE_CHECKING:
    from ....system.types import JsonMap, Sections
    from ....vocabulary.vocabulary import Vocabulary
    from ...core.machine import CompiledMachine


def distinct(inner: PushdownMachine) -> CompiledMachine:
    """The machine of an automaton: one around it, where it has arrays whose items must differ."""
    if not len(inner.tables.distinct):
        return inner
    from .machine import DistinctMachine

    return DistinctMachine(inner)


def from_sections(meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> CompiledMachine:
    """Read what either machine wrote. Raises `FormatError`."""
    return distinct(PushdownMachine.from_sections(meta, sections, vocabulary, where))
