"""Arrays whose items must all differ, objects whose names must: which have been there is part of the configuration.

Comes in: a `PushdownMachine` whose tables mark where these begin, and where their items and names end. Goes out: one
that keeps to the marks. The set of values is a persistent search tree, so that forks and rollback cost nothing
(docs/internals/json_lowering.md).

Read `value_set`, `items` (the scalar in progress), `containers` (what is around it), `varieties` (how many values there
are), `places` (steps), `nodes` and `refusals` (masks), `store`, `machine`, `definition` (within grammars).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..machine import PushdownMachine

if TYPE_CHECKING:
    from ....system.types import JsonMap, Sections
    from ....vocabulary.vocabulary import Vocabulary


def distinct(machine: PushdownMachine) -> PushdownMachine:
    """A machine whose items and names differ where they must; the other one must not be used any more."""
    if not len(machine.tables.distinct):
        return machine
    from .machine import DistinctMachine

    filled, complete = machine.is_filled(), machine.is_complete()
    return DistinctMachine(machine.tables, machine.vocabulary, machine.rows, filled=filled, complete=complete)


def from_sections(meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> PushdownMachine:
    """Read what either machine wrote. Raises `FormatError`."""
    return distinct(PushdownMachine.from_sections(meta, sections, vocabulary, where))
