"""Partial masks as they lie in a file: columns of numbers, checked as a whole and looked up one by one.

A *continuation* is what the end of a lexeme leaves to the next one: a residual list, and the obligations. A
partial mask belongs to a continuation and the lexer state that goes on from it. So its ends are pairs of a
terminal and a continuation, and `structgen.runtime.grammar.mask_graph` begins with these columns as they are. ::

    pl_way     residual list, number of obligations           in such an order that after the start of a lexeme
    pl_place   continuation, lexer state; ascending          only later ones are left
    pl_groups  where the groups of each mask begin           pl_group   set, row
    pl_ends    where the ends of each mask begin             pl_end     terminal, continuation
    pl_sets    the sets; words of bits
    pl_watches where the lists of obligations begin      pl_watched lexer states; list 0 is empty
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import Column, Columns, Sizes
from ...storage.container import smallest
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..core.bitsets import words_of
from ..rows.residuals import COUNT, Residuals
from ..rows.row_pool import RowPool
from .completability.obligations import Watched
from .mask_table import PartialMask, PartialMaskTable
from .partial_masks import KnownMasks, LexemeMasks
from .tables import GrammarTables

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = Columns(
    Column("pl_watches", rows=("watches", 1), starts="watched", cast="i4"),
    Column("pl_watched", rows="watched", below="lexer", cast="i4"),
    Column("pl_way", rows="continuations", fields=((0, COUNT), (0, "watches")), cast="i4"),
    Column("pl_place", rows="partial masks", fields=((0, "continuations"), (0, "lexer")), cast="i4"),
    Column("pl_sets", "u4", rows="sets", members="set members"),
    Column("pl_groups", rows=("partial masks", 1), starts="groups", cast="i4"),
    Column("pl_group", rows="groups", fields=((0, "sets"), (0, "rows")), cast="i4"),
    Column("pl_ends", rows=("partial masks", 1), starts="mask ends", cast="i4"),
    Column("pl_end", rows="mask ends", fields=((0, "terminal members"), (0, "continuations")), cast="i4"),
)


def to_sections(lexeme_masks: LexemeMasks) -> dict[str, Array]:
    """The sections of the file format: partial masks, in whatever order, rows and residual lists."""
    found = lexeme_masks.all_decided()
    watches = sorted({(), *(key[2] for key in found), *(end.watched for each in found.values() for end in each.ends)})
    watch = {watched: number for number, watched in enumerate(watches)}
    continuation = _continuations(found, frozenset(lexeme_masks.tables.starts.tolist()))
    order = sorted(found, key=lambda key: (continuation[key[0], key[2]], key[1]))
    sets = {each: i for i, each in enumerate(sorted({s for decided in found.values() for s, _ in decided.groups}))}
    groups = [(sets[wanted], row) for key in order for wanted, row in found[key].groups]
    ends = [(end.terminal, continuation[end.residual, end.watched]) for key in order for end in found[key].ends]
    return {
        "pl_way": _pairs([(residual, watch[watched]) for residual, watched in continuation]),
        "pl_place": _pairs([(continuation[residual, watched], state) for residual, state, watched in order]),
        "pl_groups": smallest(np.cumsum([0, *(len(found[key].groups) for key in order)])),
        "pl_group": _pairs(groups),
        "pl_ends": smallest(np.cumsum([0, *(len(found[key].ends) for key in order)])),
        "pl_end": _pairs(ends),
        "pl_sets": words_of(list(sets), lexeme_masks.tables.set_members),
        "pl_watches": smallest(np.cumsum([0, *map(len, watches)])),
        "pl_watched": smallest(np.array([state for watched in watches for state in watched], np.int64)),
        **lexeme_masks.pool.to_sections(),
        **lexeme_masks.residuals.to_sections(),
    }


def _pairs(values: list[tuple[int, int]]) -> Array:
    return smallest(np.array(values, np.int64).reshape(-1, 2))


def _continuations(
    found: Mapping[tuple[int, int, Watched], PartialMask], starts: frozenset[int]
) -> dict[tuple[int, Watched], int]:
    """All continuations with their numbers: behind each come those that lexemes which begin with it leave."""
    after: dict[tuple[int, Watched], set[tuple[int, Watched]]] = {}
    for (residual, state, watched), decided in found.items():
        left = after.setdefault((residual, watched), set())
        for end in decided.ends:
            after.setdefault((end.residual, end.watched), set())
            if state in starts:
                left.add((end.residual, end.watched))
    above = dict.fromkeys(after, 0)
    for left in after.values():
        for each in left:
            above[each] += 1
    ready = sorted(continuation for continuation, count in above.items() if not count)
    order: dict[tuple[int, Watched], int] = {}
    for continuation in ready:  # grows as it goes
        order[continuation] = len(order)
        for each in sorted(after[continuation]):
            above[each] -= 1
            if not above[each]:
                ready.append(each)
    if len(order) < len(after):
        raise FormatError("what was stored contradicts what was found: partial masks lead round in circles")
    return order


def from_sections(
    tables: GrammarTables, vocabulary: Vocabulary, sections: Sections, sizes: Sizes, where: str
) -> KnownMasks:
    """Read `to_sections`. Raises `FormatError`."""
    residuals = Residuals.from_sections(sections, sizes, vocabulary, where)
    pool = RowPool.from_sections(sections, sizes, where)
    sizes |= {"lexer": len(tables.table), "terminal members": tables.members, "set members": tables.set_members}
    return KnownMasks(pool, residuals, _table(sections, sizes, tables.starts, where))


def _table(sections: Sections, sizes: Sizes, starts: NDArray[np.int32], where: str) -> PartialMaskTable:
    found = columns.read(sections, SECTIONS, sizes, where)
    table = PartialMaskTable(
        sizes["lexer"], found["pl_way"], found["pl_place"], found["pl_groups"], found["pl_group"], found["pl_ends"],
        found["pl_end"], found["pl_sets"], found["pl_watches"], found["pl_watched"],
    )  # fmt: skip
    if table.watch_start[1]:
        raise FormatError("section 'pl_watches' has a first list that is not empty", where=where)
    for name, keys in (("pl_place", table.keys), ("pl_way", table.continuation_keys[0])):
        if (keys[1:] <= keys[:-1]).any():
            raise FormatError(f"section {name!r} has one twice, or out of order", where=where)
    if not _leads_on(table, starts):
        raise FormatError("section 'pl_end' leads round in circles", where=where)
    return table


def _leads_on(table: PartialMaskTable, starts: NDArray[np.int32]) -> bool:
    """Whether lexemes leave later continuations than those that they begin with, so that no mask needs itself."""
    is_start = np.zeros(table.states, np.bool_)
    is_start[starts] = True
    begun = np.where(is_start[table.entries[:, 1]], table.entries[:, 0], -1)
    return bool((table.ends[:, 1] > np.repeat(begun, np.diff(table.end_start))).all())
