"""Settled places as they lie in a file: columns of numbers, checked as a whole and looked up one by one.

A *way* is what the end of a lexeme leaves to the next one: a resume list, and what is watched. A place is a way and
the lexer state that goes on from it. So the ends of a place are pairs of a terminal and a way, and
`structgen.runtime.grammar.place_graph` begins with these columns as they are. ::

    pl_way     resume list, number of what is watched        in such an order that after the start of a lexeme
    pl_place   way, lexer state; ascending                   only later ways are left
    pl_groups  where the groups of each place begin          pl_group   set, row
    pl_ends    where the ends of each place begin            pl_end     terminal, way
    pl_sets    the sets; words of bits
    pl_watches where the lists of what is watched begin      pl_watched lexer states; list 0 is empty
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import Column, Sizes
from ...storage.container import smallest
from ...system.properties import cached_property
from ...vocabulary.vocabulary import Vocabulary
from ..core.bitsets import set_at, words_of
from ..rows.residuals import Residuals
from ..rows.row_pool import RowPool
from .partial_masks import LexemeEnd, LexemeMasks, PartialMask, Watched
from .tables import GrammarTables

#: The sections of the file format (see docs/internals/format.md).
SECTIONS = (
    Column("pl_watches", rows=("watches", 1), starts="watched", cast="i4"),
    Column("pl_watched", rows="watched", below="lexer", cast="i4"),
    Column("pl_way", rows="ways", fields=((0, "resumes"), (0, "watches")), cast="i4"),
    Column("pl_place", rows="places", fields=((0, "ways"), (0, "lexer")), cast="i4"),
    Column("pl_sets", "u4", rows="sets", members="set members"),
    Column("pl_groups", rows=("places", 1), starts="groups", cast="i4"),
    Column("pl_group", rows="groups", fields=((0, "sets"), (0, "rows")), cast="i4"),
    Column("pl_ends", rows=("places", 1), starts="place ends", cast="i4"),
    Column("pl_end", rows="place ends", fields=((0, "terminal members"), (0, "ways")), cast="i4"),
)


@dataclass(frozen=True, eq=False)
class PartialMaskTable:
    """Places, with their groups and ends.

    Parameters
    ----------
    states:
        Number of lexer states.
    ways, places, groups, ends:
        ``int32[*, 2]``.
    group_start, end_start:
        ``int32[places + 1]``.
    sets:
        ``uint32[sets, words]``: terminals in a loose grammar, endings in others.
    watch_start, watched:
        ``int32[*]``.
    """

    states: int
    ways: NDArray[np.int32]
    places: NDArray[np.int32]
    group_start: NDArray[np.int32]
    groups: NDArray[np.int32]
    end_start: NDArray[np.int32]
    ends: NDArray[np.int32]
    sets: NDArray[np.uint32]
    watch_start: NDArray[np.int32]
    watched: NDArray[np.int32]

    @classmethod
    def empty(cls, places: LexemeMasks) -> PartialMaskTable:
        """No places."""
        none, pairs, start = np.zeros(0, np.int32), np.zeros((0, 2), np.int32), np.zeros(1, np.int32)
        sets = np.zeros((0, -(-places.members // 32)), np.uint32)
        states, watch_start = len(places.tables.table), np.zeros(2, np.int32)
        return cls(states, pairs, pairs, start, pairs, start, pairs, sets, watch_start, none)

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def _keys(self) -> NDArray[np.int64]:
        return self.places[:, 0].astype(np.int64) * self.states + self.places[:, 1]

    @cached_property
    def _way_keys(self) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """What ways are looked up by, ascending, and their numbers."""
        keys = self.ways[:, 0].astype(np.int64) * len(self.watch_start) + self.ways[:, 1]
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def _watches(self) -> list[Watched]:
        data = self.watched.tolist()
        return [tuple(data[i:j]) for i, j in pairwise(self.watch_start.tolist())]

    @cached_property
    def _watch_number(self) -> dict[Watched, int]:
        return {watched: number for number, watched in enumerate(self._watches)}

    def way(self, resume: int, watched: Watched) -> int:
        """The number of a way, -1 for none."""
        watch = self._watch_number.get(watched, -1) if watched else 0
        if watch < 0:
            return -1
        keys, order = self._way_keys
        key = resume * len(self.watch_start) + watch
        at = int(keys.searchsorted(key))
        return int(order[at]) if at < len(keys) and keys[at] == key else -1

    def way_at(self, number: int) -> tuple[int, Watched]:
        """The resume list of a way, and what is watched."""
        resume, watch = self.ways[number].tolist()
        return resume, self._watches[watch]

    def find(self, resume: int, state: int, watched: Watched) -> int:
        """The number of a place, -1 for none."""
        way = self.way(resume, watched)
        if way < 0:
            return -1
        key = way * self.states + state
        at = int(self._keys.searchsorted(key))
        return at if at < len(self._keys) and self._keys[at] == key else -1

    def settled(self, number: int) -> PartialMask:
        """What is stored of a place."""
        (a, b), (c, d) = (each[number : number + 2].tolist() for each in (self.group_start, self.end_start))
        groups = tuple((set_at(self.sets, wanted), row) for wanted, row in self.groups[a:b].tolist())
        ends = tuple(LexemeEnd(terminal, *self.way_at(way)) for terminal, way in self.ends[c:d].tolist())
        return PartialMask(groups, ends)

    def items(self) -> dict[tuple[int, int, Watched], PartialMask]:
        """All places."""
        found = {}
        for number, (way, state) in enumerate(self.places.tolist()):
            resume, watched = self.way_at(way)
            found[resume, state, watched] = self.settled(number)
        return found


def to_sections(places: LexemeMasks) -> dict[str, NDArray[Any]]:
    """The sections of the file format: places, whatever order they were settled in, rows and resume lists."""
    found = places.all_settled()
    watches = sorted({(), *(key[2] for key in found), *(end.watched for each in found.values() for end in each.ends)})
    watch = {watched: number for number, watched in enumerate(watches)}
    way = _ways(found, frozenset(places.tables.starts.tolist()))
    order = sorted(found, key=lambda key: (way[key[0], key[2]], key[1]))
    sets = {each: i for i, each in enumerate(sorted({s for settled in found.values() for s, _ in settled.groups}))}
    groups = [(sets[wanted], row) for key in order for wanted, row in found[key].groups]
    ends = [(end.terminal, way[end.resume, end.watched]) for key in order for end in found[key].ends]
    return {
        "pl_way": _pairs([(resume, watch[watched]) for resume, watched in way]),
        "pl_place": _pairs([(way[resume, watched], state) for resume, state, watched in order]),
        "pl_groups": smallest(np.cumsum([0, *(len(found[key].groups) for key in order)])),
        "pl_group": _pairs(groups),
        "pl_ends": smallest(np.cumsum([0, *(len(found[key].ends) for key in order)])),
        "pl_end": _pairs(ends),
        "pl_sets": words_of(list(sets), places.members),
        "pl_watches": smallest(np.cumsum([0, *map(len, watches)])),
        "pl_watched": smallest(np.array([state for watched in watches for state in watched], np.int64)),
        **places.pool.to_sections(),
        **places.resumes.to_sections(),
    }


def _pairs(values: list[tuple[int, int]]) -> NDArray[Any]:
    return smallest(np.array(values, np.int64).reshape(-1, 2))


def _ways(
    found: Mapping[tuple[int, int, Watched], PartialMask], starts: frozenset[int]
) -> dict[tuple[int, Watched], int]:
    """All ways with their numbers: behind each come those that lexemes which begin with it leave."""
    after: dict[tuple[int, Watched], set[tuple[int, Watched]]] = {}
    for (resume, state, watched), settled in found.items():
        left = after.setdefault((resume, watched), set())
        for end in settled.ends:
            after.setdefault((end.resume, end.watched), set())
            if state in starts:
                left.add((end.resume, end.watched))
    above = dict.fromkeys(after, 0)
    for left in after.values():
        for each in left:
            above[each] += 1
    ready = sorted(way for way, count in above.items() if not count)
    order: dict[tuple[int, Watched], int] = {}
    for way in ready:  # grows as it goes
        order[way] = len(order)
        for each in sorted(after[way]):
            above[each] -= 1
            if not above[each]:
                ready.append(each)
    if len(order) < len(after):
        raise FormatError("what was stored contradicts what was found: places lead round in circles")
    return order


def from_sections(
    tables: GrammarTables, vocabulary: Vocabulary, sections: dict[str, NDArray[Any]], sizes: Sizes, where: str
) -> LexemeMasks:
    """Read `to_sections`. Raises `FormatError`."""
    resumes = Residuals.from_sections(sections, sizes, vocabulary, where)
    pool = RowPool.from_sections(sections, sizes, where)
    places = LexemeMasks(tables, vocabulary, pool, resumes)
    sizes |= {"lexer": len(tables.table), "terminal members": tables.members, "set members": places.members}
    places.stored = _table(sections, sizes, tables.starts, where)
    return places


def _table(
    sections: Mapping[str, NDArray[Any]], sizes: Sizes, starts: NDArray[np.int32], where: str
) -> PartialMaskTable:
    found = columns.read(sections, SECTIONS, sizes, where)
    table = PartialMaskTable(
        sizes["lexer"], found["pl_way"], found["pl_place"], found["pl_groups"], found["pl_group"], found["pl_ends"],
        found["pl_end"], found["pl_sets"], found["pl_watches"], found["pl_watched"],
    )  # fmt: skip
    if table.watch_start[1]:
        raise FormatError("section 'pl_watches' has a first list that is not empty", where=where)
    for name, keys in (("pl_place", table._keys), ("pl_way", table._way_keys[0])):
        if (keys[1:] <= keys[:-1]).any():
            raise FormatError(f"section {name!r} has one twice, or out of order", where=where)
    if not _leads_on(table, starts):
        raise FormatError("section 'pl_end' leads round in circles", where=where)
    return table


def _leads_on(table: PartialMaskTable, starts: NDArray[np.int32]) -> bool:
    """Whether lexemes leave later ways than those that they begin with, so that no mask goes round in circles."""
    is_start = np.zeros(table.states, np.bool_)
    is_start[starts] = True
    begun = np.where(is_start[table.places[:, 1]], table.places[:, 0], -1)
    return bool((table.ends[:, 1] > np.repeat(begun, np.diff(table.end_start))).all())
