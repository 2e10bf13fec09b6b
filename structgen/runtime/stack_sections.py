"""How what the states of an automaton with a stack settle is stored; docs/format.md has the sections."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..vocabulary.vocabulary import Vocabulary
from .container import smallest
from .pushdown_tables import PushdownTables
from .resume_lists import ResumeLists
from .rows import RowPool
from .shared import NAME_BYTES, Settled, Shared
from .stack_rows import StackRows, StoredPlaces, in_order

Sections = dict[str, NDArray[Any]]

#: A set of members is stored in two words of so many bits.
_LOWER = (1 << 31) - 1

#: Bounds where any count will do.
_ANY = 1 << 31


def to_sections(rows: StackRows, self_contained: bool) -> Sections:
    """The sections; ``self_contained`` includes the shared rows."""
    keys, values = in_order(rows.all_settled())  # a reader searches
    columns = {"set_resume": keys[:, 0], "set_state": keys[:, 1], "set_row": values[:, 0], "set_next": values[:, 1]}
    if keys[:, 2].any():
        columns["set_count"] = keys[:, 2]
    if rows.segments:
        begins, places = zip(*rows.segments.values(), strict=True)
        columns |= {
            "seg_state": np.array(list(rows.segments)),
            "seg_start": np.cumsum([0] + [len(b) for b in begins]),
            "seg_begin": np.concatenate(begins),
            "seg_row": np.array([place.row for group in places for place in group]),
            "seg_next": np.array([place.resume for group in places for place in group]),
        }
    sections: Sections = {name: smallest(column) for name, column in columns.items()}
    if rows.sets:
        words = [(members & _LOWER, members >> 31) for members in rows.sets]
        sections["set_members"] = np.array(words, np.uint32)
    sections |= rows.pool.to_sections() | rows.resumes.to_sections()
    if rows.shared.used:
        sections |= _shared_sections(rows, self_contained)
    return sections


def _shared_sections(rows: StackRows, self_contained: bool) -> Sections:
    used = rows.shared.used
    state_of = {name: state for (name, _), (state, _) in used.items()}
    number = {name: i for i, name in enumerate(state_of)}
    columns = {
        "shared_name": [number[name] for name, _ in used],
        "shared_place": [place for _, place in used],
        "shared_state": [state for state, _ in used.values()],
        "shared_row": [settled.row for _, settled in used.values()],
        "shared_next": [settled.resume for _, settled in used.values()],
    }
    sections: Sections = {"shared_hash": np.frombuffer(b"".join(number), np.uint8).reshape(-1, NAME_BYTES)}
    if self_contained:
        kept = [rows.shared.find(name, state) for name, state in state_of.items()]
        together = Shared(
            [begin for shared in kept for begin in shared.begins],
            np.concatenate([shared.rows for shared in kept]),
            [nodes for shared in kept for nodes in shared.resumes],
        )
        sections |= {f"sh_{name}": section for name, section in together.to_sections().items()}
        columns["sh_first"] = [0, *np.cumsum([len(shared.rows) for shared in kept]).tolist()]
    return sections | {name: smallest(np.array(column)) for name, column in columns.items()}


def from_sections(tables: PushdownTables, vocabulary: Vocabulary, sections: Sections, where: str) -> StackRows:
    """Rows used where they lie, after a check of every index in them. Raises `FormatError`."""
    resumes = ResumeLists.from_sections(sections, vocabulary, where)
    used = _read_used(sections, tables.states, len(resumes), where)
    pool = RowPool.from_sections(vocabulary.size, sections, where, shared=len(used))
    rows = StackRows(tables, vocabulary, pool, resumes)
    if not pool.are_shared([row for *_, row, _ in used]):
        raise FormatError("a shared row is listed but not there", where=where)
    shared = rows.shared
    for name, place, state, row, resume in used:
        pool.shared.append(partial(shared.row_of, name, place, state))
        resumes.share(resume, partial(shared.resume_of, name, place, state))
        shared.used[name, place] = state, Settled(row, resume)
    shared.stored = _read_stored(sections, list(dict.fromkeys(name for name, *_ in used)), vocabulary, where)
    _read_settled(rows, sections, where)
    _read_segments(rows, sections, where)
    return rows


#: A shared place: its name and number, a state that has it, and the numbers of its row and resume list.
_Used: TypeAlias = tuple[bytes, int, int, int, int]


def _read_used(sections: Sections, states: int, resumes: int, where: str) -> list[_Used]:
    if "shared_hash" not in sections:
        return []
    hashes = sections["shared_hash"]
    if hashes.ndim != 2 or hashes.dtype != np.uint8 or hashes.shape[1] != NAME_BYTES:
        raise FormatError("the shared rows are damaged", where=where)
    bounds = {"name": len(hashes), "place": 1 << 16, "state": states, "row": _ANY, "next": resumes}
    columns = _columns(sections, {f"shared_{name}": bound for name, bound in bounds.items()}, where)
    names = [h.tobytes() for h in hashes]
    numbers, *others = columns
    return list(zip([names[number] for number in numbers], *others, strict=True))


def _read_stored(sections: Sections, names: list[bytes], vocabulary: Vocabulary, where: str) -> dict[bytes, Shared]:
    """What the names stand for, where the file brings it along."""
    if "sh_bits" not in sections:
        return {}
    own = {name.removeprefix("sh_"): section for name, section in sections.items() if name.startswith("sh_")}
    together = Shared.from_sections(own, vocabulary, where)
    (first,) = _columns(sections, {"sh_first": len(together.rows) + 1}, where)
    if len(first) != len(names) + 1 or any(j <= i for i, j in pairwise(first)):
        raise FormatError("the shared rows are damaged", where=where)
    return {
        name: Shared(together.begins[i:j], together.rows[i:j], together.resumes[i:j])
        for name, (i, j) in zip(names, pairwise(first), strict=True)
    }


def _read_settled(rows: StackRows, sections: Sections, where: str) -> None:
    bounds = {
        "set_resume": len(rows.resumes),
        "set_state": rows.tables.states,
        "set_row": len(rows.pool),
        "set_next": len(rows.resumes),
    }
    columns = [_column(sections, name, bound, where) for name, bound in bounds.items()]
    counts = _column(sections, "set_count", _ANY, where) if "set_count" in sections else np.zeros_like(columns[0])
    if len({len(column) for column in (*columns, counts)}) > 1:
        raise FormatError("the settled places are damaged", where=where)
    resumes, states, numbers, following = columns
    rows.stored = StoredPlaces(rows.tables.states, resumes, states, counts, numbers, following)
    if not rows.stored.is_sorted():
        raise FormatError("the settled places are not in order", where=where)
    if "set_members" in sections:
        words = sections["set_members"]
        if words.dtype != np.uint32 or words.ndim != 2 or words.shape[1] != 2 or int(words.max(initial=0)) > _LOWER:
            raise FormatError("the sets of members are damaged", where=where)
        sets = [lower | upper << 31 for lower, upper in words.tolist()]
        rows.sets = {members: number for number, members in enumerate(sets, 1)}
        if len(rows.sets) < len(sets) or 0 in rows.sets:
            raise FormatError("the sets of members are damaged", where=where)


def _read_segments(rows: StackRows, sections: Sections, where: str) -> None:
    if "seg_state" not in sections:
        return
    places = {"seg_begin": _ANY, "seg_row": len(rows.pool), "seg_next": len(rows.resumes)}
    begins, numbers, following = _columns(sections, places, where)
    (states,) = _columns(sections, {"seg_state": rows.tables.states}, where)
    (starts,) = _columns(sections, {"seg_start": _ANY}, where)
    if (
        len(starts) != len(states) + 1 or starts[0] != 0 or starts[-1] != len(begins)
        or any(j <= i for i, j in pairwise(starts))
        or any(begins[i] > 1 for i in starts[:-1]) or any(rows.tables.live[s] < 0 for s in states)
    ):  # fmt: skip
        raise FormatError("the counted rows are damaged", where=where)
    settled = list(map(Settled, numbers, following))
    for state, (i, j) in zip(states, pairwise(starts), strict=True):
        rows.keep_segments(state, begins[i:j], settled[i:j])


def _columns(sections: Sections, bounds: dict[str, int], where: str) -> list[list[int]]:
    """Columns of a stored table as lists, equally long, each below its bound."""
    found = [_column(sections, name, bound, where).tolist() for name, bound in bounds.items()]
    if len({len(column) for column in found}) > 1:
        raise FormatError("columns of a stored table differ in length", where=where)
    return found


def _column(sections: Sections, name: str, bound: int, where: str) -> NDArray[Any]:
    column = sections.get(name)
    if column is None or column.ndim != 1 or column.dtype.kind != "u" or int(column.max(initial=0)) >= max(1, bound):
        raise FormatError(f"section {name!r} is missing or points outside the index", where=where)
    return column
