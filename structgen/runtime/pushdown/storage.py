"""How what the states of an automaton with a stack decide is stored; docs/internals/format.md has the sections."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ...errors import FormatError
from ...storage import columns
from ...storage.columns import MOST, Column, Columns, Sizes
from ...storage.container import SectionTable, smallest
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..rows import residuals, row_pool
from ..rows.residuals import COUNT, Residuals
from ..rows.row_pool import RowPool
from . import tables
from .captures import labels
from .partial_masks import StateMasks
from .shared_masks import NAME_BYTES, SharedMasks, names_of
from .tables import PAIR, PushdownTables
from .token_edges import TokenTables

#: A set of members is stored in words of so many bits, two in a row.
_LOWER = (1 << 31) - 1

#: Shared masks that the index uses.
SHARED = Columns(
    Column("shared_hash", "u1", rows="names", columns=NAME_BYTES, default=0),
    Column("shared_name", rows="shared", below="names", default=0, cast="i4"),
    Column("shared_place", rows="shared", below=1 << 16, default=0, cast="i4"),
    Column("shared_state", rows="shared", below="states", default=0, cast="i4"),
    Column("shared_row", rows="shared", below="rows", default=0, cast="i4"),
    Column("shared_next", rows="shared", below=COUNT, default=0, cast="i4"),
)

_USES = [column.name for column in SHARED[1:]]

#: Which of the shared masks that the file brings along are each name's; of some names it may have none.
STORED = Columns(Column("sh_first", rows=("names", 1), starts="stretches"))

#: What partial masks decide.
SETTLED = Columns(
    Column("set_resume", rows="decided", below=COUNT, cast="i4"),
    Column("set_state", rows="decided", below="states", cast="i4"),
    Column("set_count", rows="decided", below=MOST, default=0, cast="i4"),
    Column("set_row", rows="decided", below="rows", cast="i4"),
    Column("set_next", rows="decided", below=COUNT, cast="i4"),
    Column("set_members", "u4", rows="sets", columns=2, below=_LOWER + 1, default=0),
)

_DECIDED = [column.name for column in SETTLED]

#: All that is read in one pass.
SECTIONS = Columns(*tables.SECTIONS, *residuals.SECTIONS, *SHARED, *row_pool.SECTIONS, *SETTLED)

#: What states that count decide, by stretches of counts.
SEGMENTS = Columns(
    Column("seg_start", rows=("counting", 1), starts="stretches", order="rises", cast="i4"),
    Column("seg_state", rows="counting", below="states", cast="i4"),
    Column("seg_begin", rows="stretches", below=MOST, order="rises", within="seg_start", first=2, cast="i4"),
    Column("seg_row", rows="stretches", below="rows", cast="i4"),
    Column("seg_next", rows="stretches", below=COUNT, cast="i4"),
)


def to_sections(rows: StateMasks, shared: dict[bytes, SharedMasks]) -> dict[str, Array]:
    """The sections, with these of the shared masks that are used."""
    parts, sets = rows.parts.all(), _sets_of(rows)
    if sets:
        in_set = rows.tables.registers[parts[:, 1]] & (parts[:, 2] > 0)
        numbers = {members: number for number, members in enumerate(sets, 1)}
        parts[in_set, 2] = [numbers[rows.members(number)] for number in parts[in_set, 2].tolist()]
        parts = parts[np.lexsort(parts.T[2::-1])]
    found = {"set_resume": parts[:, 0], "set_state": parts[:, 1], "set_row": parts[:, 3], "set_next": parts[:, 4]}
    if parts[:, 2].any():
        found["set_count"] = parts[:, 2]
    if len(rows.stretches):
        of, begins, numbers, following = rows.stretches.T
        states, first = np.unique(of, return_index=True)
        found |= {
            "seg_state": states,
            "seg_start": np.append(first, len(of)),
            "seg_begin": begins,
            "seg_row": numbers,
            "seg_next": following,
        }
    sections: dict[str, Array] = {name: smallest(column) for name, column in found.items()}
    if sets:
        pairs = range(0, _set_rows(rows.tables) * PAIR, PAIR)
        words = [(members >> i & _LOWER, members >> i + 31 & _LOWER) for members in sets for i in pairs]
        sections["set_members"] = np.array(words, np.uint32)
    sections |= rows.pool.to_sections() | rows.residuals.to_sections()
    if rows.shared.uses:
        sections |= _shared_sections(rows, shared)
    return sections


def _sets_of(rows: StateMasks) -> list[int]:
    """The sets of members that partial masks are told apart by, each once."""
    if not rows.tables.widest:
        return []
    parts = rows.parts.all()
    in_set = rows.tables.registers[parts[:, 1]] & (parts[:, 2] > 0)
    return [*dict.fromkeys(map(rows.members, parts[in_set, 2].tolist()))]


def _shared_sections(rows: StateMasks, shared: dict[bytes, SharedMasks]) -> dict[str, Array]:
    names, *numbers = map(list, zip(*rows.shared.uses, strict=True))
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    parts = ("shared_place", "shared_state", "shared_row", "shared_next")
    found = {"shared_name": [number[name] for name in names]} | dict(zip(parts, numbers, strict=True))
    sections: dict[str, Array] = {"shared_hash": np.frombuffer(b"".join(number), np.uint8).reshape(-1, NAME_BYTES)}
    if shared:
        kept = [shared[name] for name in number if name in shared]
        together = SharedMasks(
            [begin for masks in kept for begin in masks.begins],
            [row for masks in kept for row in masks.rows],
            [nodes for masks in kept for nodes in masks.residuals],
        )
        sections |= {f"sh_{name}": section for name, section in together.to_sections().items()}
        lengths = [len(shared[name].rows) if name in shared else 0 for name in number]
        found["sh_first"] = [0, *np.cumsum(lengths).tolist()]
    return sections | {name: smallest(np.array(column)) for name, column in found.items()}


def from_sections(
    vocabulary: Vocabulary, sections: Sections, sizes: Sizes, where: str
) -> tuple[PushdownTables, StateMasks]:
    """Read `PushdownTables.to_sections` and `to_sections`. Raises `FormatError`."""
    found = columns.read(sections, SECTIONS, sizes, where)
    tokens = TokenTables.from_sections(sections, sizes, where) if "tok_state" in sections else None
    tables = PushdownTables.from_columns(found, sizes, where, tokens)
    if labels.SECTION in sections:
        text = sections[labels.SECTION].tobytes()
        tables.labels = labels.StateLabels.from_section(text, sizes["states"], where)
    pool = RowPool.from_columns(found, sizes, where)
    rows = StateMasks(tables, vocabulary, pool, Residuals.from_columns(found, vocabulary, where))
    if sizes["shared"]:
        _read_shared(rows, found, where)
        if "sh_bits" in sections:
            rows.shared.stored = _read_stored(sections, found["shared_hash"], vocabulary, where)
    _read_decided(rows, found, where)
    if "seg_state" in sections:
        _read_segments(rows, sections, sizes, where)
    return tables, rows


def _read_shared(rows: StateMasks, found: Sections, where: str) -> None:
    if not rows.pool.are_shared(found["shared_row"]):
        raise FormatError("section 'shared_row' has a row that is no shared one", where=where)
    names = names_of(found["shared_hash"])
    of, stretches, *others = [found[name].tolist() for name in _USES]
    if len(set(names)) < len(names) or len(set(zip(of, stretches, strict=True))) < len(of):
        raise FormatError("sections 'shared_name' and 'shared_place' have a stretch twice", where=where)
    rows.shared.adopt(list(zip([names[i] for i in of], stretches, *others, strict=True)))


def _read_stored(sections: Sections, hashes: Array, vocabulary: Vocabulary, where: str) -> dict[bytes, SharedMasks]:
    """What the names stand for, where the file brings it along."""
    together = SharedMasks.from_sections(SectionTable.of(sections).within("sh_"), vocabulary, where)
    names = names_of(hashes)
    sizes = {"names": len(names), "stretches": len(together.rows)}
    first = columns.read(sections, STORED, sizes, where)["sh_first"].tolist()
    return {
        name: SharedMasks(together.begins[i:j], together.rows[i:j], together.residuals[i:j])
        for name, (i, j) in zip(names, pairwise(first), strict=True)
        if i < j
    }


def _read_decided(rows: StateMasks, found: Sections, where: str) -> None:
    *decided, words = [found[name] for name in _DECIDED]
    parts = np.empty((len(decided[0]), len(decided)), np.int32)
    for number, column in enumerate(decided):
        parts[:, number] = column
    if not rows.tables.widest:
        rows.parts.store(parts)
        return
    of_each = _set_rows(rows.tables)
    if len(words) % of_each:
        raise FormatError("section 'set_members' ends within a set", where=where)
    sets = [
        sum(word << 31 * place for place, word in enumerate(each)) for each in words.reshape(-1, 2 * of_each).tolist()
    ]
    if len(set(sets)) < len(sets) or 0 in sets:
        raise FormatError("section 'set_members' has a set twice, or the empty one", where=where)
    in_set = rows.tables.registers[parts[:, 1]]
    if int(parts[in_set, 2].max(initial=0)) > len(sets):
        raise FormatError("section 'set_count' has a set that is not there", where=where)
    rows.read(parts, sets)


def _set_rows(tables: PushdownTables) -> int:
    """Rows of the section 'set_members' for each set."""
    return max(1, -(-tables.widest // PAIR))


def _read_segments(rows: StateMasks, sections: Sections, sizes: Sizes, where: str) -> None:
    starts, states, *told = columns.read(sections, SEGMENTS, sizes, where).values()
    if (rows.tables.live[states] < 0).any():
        raise FormatError("section 'seg_state' has a state that does not count", where=where)
    of = np.repeat(states, np.diff(starts))
    found = np.column_stack((of, *told)).astype(np.int32)
    rows.lay_out_stretches(found if (of[1:] >= of[:-1]).all() else found[np.argsort(of, kind="stable")])
