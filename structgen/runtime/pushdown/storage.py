"""How what the states of an automaton with a stack decide is stored; docs/internals/format.md has the sections."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import MOST, Column, Sizes
from ...storage.container import smallest
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..rows.residuals import Residuals
from ..rows.row_pool import RowPool
from .partial_masks import StateMasks, StoredMasks, in_order
from .shared_masks import NAME_BYTES, PartialRow, SharedMasks
from .tables import PushdownTables

#: A set of members is stored in two words of so many bits.
_LOWER = (1 << 31) - 1

#: Shared masks that the index uses.
SHARED = (
    Column("shared_hash", "u1", rows="names", columns=NAME_BYTES),
    Column("shared_name", rows="shared", below="names"),
    Column("shared_place", rows="shared", below=1 << 16),
    Column("shared_state", rows="shared", below="states"),
    Column("shared_row", rows="shared"),  # looked at when there are rows
    Column("shared_next", rows="shared", below="residuals"),
)

#: Which of the shared masks that the file brings along are each name's.
STORED = (Column("sh_first", rows=("names", 1), starts="stretches", order="rises"),)

#: What partial masks decide.
SETTLED = (
    Column("set_resume", rows="decided", below="residuals"),
    Column("set_state", rows="decided", below="states"),
    Column("set_count", rows="decided", below=MOST, default=0),
    Column("set_row", rows="decided", below="rows"),
    Column("set_next", rows="decided", below="residuals"),
    Column("set_members", "u4", rows="sets", columns=2, below=_LOWER + 1, default=0),
)

#: What states that count decide, by stretches of counts.
SEGMENTS = (
    Column("seg_start", rows=("counting", 1), starts="stretches", order="rises"),
    Column("seg_state", rows="counting", below="states"),
    Column("seg_begin", rows="stretches", below=MOST, order="rises", within="seg_start", first=2),
    Column("seg_row", rows="stretches", below="rows"),
    Column("seg_next", rows="stretches", below="residuals"),
)


def to_sections(rows: StateMasks, shared: dict[bytes, SharedMasks]) -> dict[str, Array]:
    """The sections, with these shared masks: all that are used, or none."""
    keys, values = in_order(rows.all_decided())  # a reader searches
    found = {"set_resume": keys[:, 0], "set_state": keys[:, 1], "set_row": values[:, 0], "set_next": values[:, 1]}
    if keys[:, 2].any():
        found["set_count"] = keys[:, 2]
    if rows.segments:
        begins, masks = zip(*rows.segments.values(), strict=True)
        found |= {
            "seg_state": np.array(list(rows.segments)),
            "seg_start": np.cumsum([0] + [len(b) for b in begins]),
            "seg_begin": np.concatenate(begins),
            "seg_row": np.array([mask.row for group in masks for mask in group]),
            "seg_next": np.array([mask.residual for group in masks for mask in group]),
        }
    sections: dict[str, Array] = {name: smallest(column) for name, column in found.items()}
    if rows.sets:
        words = [(members & _LOWER, members >> 31) for members in rows.sets]
        sections["set_members"] = np.array(words, np.uint32)
    sections |= rows.pool.to_sections() | rows.residuals.to_sections()
    if rows.shared.used:
        sections |= _shared_sections(rows, shared)
    return sections


def _shared_sections(rows: StateMasks, shared: dict[bytes, SharedMasks]) -> dict[str, Array]:
    used = rows.shared.used
    number = {name: i for i, name in enumerate(dict.fromkeys(name for name, _ in used))}
    found = {
        "shared_name": [number[name] for name, _ in used],
        "shared_place": [stretch for _, stretch in used],
        "shared_state": [state for state, _ in used.values()],
        "shared_row": [decided.row for _, decided in used.values()],
        "shared_next": [decided.residual for _, decided in used.values()],
    }
    sections: dict[str, Array] = {"shared_hash": np.frombuffer(b"".join(number), np.uint8).reshape(-1, NAME_BYTES)}
    if shared:
        kept = [shared[name] for name in number]
        together = SharedMasks(
            [begin for masks in kept for begin in masks.begins],
            [row for masks in kept for row in masks.rows],
            [nodes for masks in kept for nodes in masks.residuals],
        )
        sections |= {f"sh_{name}": section for name, section in together.to_sections().items()}
        found["sh_first"] = [0, *np.cumsum([len(masks.rows) for masks in kept]).tolist()]
    return sections | {name: smallest(np.array(column)) for name, column in found.items()}


def from_sections(
    tables: PushdownTables, vocabulary: Vocabulary, sections: Sections, sizes: Sizes, where: str
) -> StateMasks:
    """Read `to_sections`. Raises `FormatError`."""
    residuals = Residuals.from_sections(sections, sizes, vocabulary, where)
    used = _read_used(sections, sizes, where)
    pool = RowPool.from_sections(sections, sizes, where)
    rows = StateMasks(tables, vocabulary, pool, residuals)
    if not pool.are_shared([row for *_, row, _ in used]):
        raise FormatError("section 'shared_row' has a row that is no shared one", where=where)
    shared = rows.shared
    for name, stretch, state, row, residual in used:
        pool.shared.append(partial(shared.row_of, name, stretch, state))
        residuals.share(residual, partial(shared.residual_of, name, stretch, state))
        shared.used[name, stretch] = state, PartialRow(row, residual)
    if len(shared.used) < len(used):
        raise FormatError("sections 'shared_name' and 'shared_place' have a stretch twice", where=where)
    if "sh_bits" in sections:
        shared.stored = _read_stored(sections, list(dict.fromkeys(name for name, *_ in used)), vocabulary, where)
    _read_decided(rows, sections, sizes, where)
    if "seg_state" in sections:
        _read_segments(rows, sections, sizes, where)
    return rows


#: A shared mask: its name and number, a state that has it, and the numbers of its row and residual list.
_Used: TypeAlias = tuple[bytes, int, int, int, int]


def _read_used(sections: Sections, sizes: Sizes, where: str) -> list[_Used]:
    if "shared_hash" not in sections:
        return []
    hashes, *numbers = columns.read(sections, SHARED, sizes, where).values()
    of, *others = (column.tolist() for column in numbers)
    return list(zip([hashes[i].tobytes() for i in of], *others, strict=True))


def _read_stored(
    sections: Sections, names: list[bytes], vocabulary: Vocabulary, where: str
) -> dict[bytes, SharedMasks]:
    """What the names stand for, where the file brings it along."""
    own = {name.removeprefix("sh_"): section for name, section in sections.items() if name.startswith("sh_")}
    together = SharedMasks.from_sections(own, vocabulary, where)
    sizes = {"names": len(names), "stretches": len(together.rows)}
    first = columns.read(sections, STORED, sizes, where)["sh_first"].tolist()
    return {
        name: SharedMasks(together.begins[i:j], together.rows[i:j], together.residuals[i:j])
        for name, (i, j) in zip(names, pairwise(first), strict=True)
    }


def _read_decided(rows: StateMasks, sections: Sections, sizes: Sizes, where: str) -> None:
    *decided, words = columns.read(sections, SETTLED, sizes, where).values()
    rows.stored = StoredMasks(rows.tables.states, *decided)
    if not rows.stored.is_sorted():
        raise FormatError("the partial masks are not in order", where=where)
    if len(words):
        sets = [lower | upper << 31 for lower, upper in words.tolist()]
        rows.sets = {members: number for number, members in enumerate(sets, 1)}
        if len(rows.sets) < len(sets) or 0 in rows.sets:
            raise FormatError("section 'set_members' has a set twice, or the empty one", where=where)


def _read_segments(rows: StateMasks, sections: Sections, sizes: Sizes, where: str) -> None:
    starts, states, begins, numbers, following = (
        column.tolist() for column in columns.read(sections, SEGMENTS, sizes, where).values()
    )
    decided = list(map(PartialRow, numbers, following))
    for state, (i, j) in zip(states, pairwise(starts), strict=True):
        if rows.tables.live[state] < 0:
            raise FormatError(f"section 'seg_state' has the state {state}, which does not count", where=where)
        rows.keep_segments(state, begins[i:j], decided[i:j])
