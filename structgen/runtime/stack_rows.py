"""Rows of an automaton with a stack: what a state settles whatever lies below it, and what it leaves open.

A token may reach below the stack that its first byte found: ``"},`` ends a string, an object, and goes on with
whatever encloses it. So a state ``q`` is walked with the stack below unknown. Most tokens are settled. Where the
walk would pop below the bottom, the rest of the token is up to the state there, and the trie node is put on the
*resume list* ``R``. Resuming composes: from ``R`` and the state below follow further settled tokens and a further
resume list ::

    mask(q r1 r2 ...) = row(R0, q) | row(R1, r1) | row(R2, r2) | ...      R0 = {root}
    (row(R, s), next R) = settle(R, s)                                    until R is empty

Both sides of `settle` are finite tables, worked out once; a mask is one row and a few more look-ups.

Wide states are walked only where they differ. Inside a string nearly every token is allowed, and so it is at every
letter of every key of an open object, since the key may become another one. A state whose widest edge leads to a
configuration that stays in place is walked beside that configuration, and a subtree is left out as soon as
both have come to the same threads. What such a place in a string, with nothing above the unknown bottom,
settles is a property of the string automaton alone: it is *shared*, kept with the vocabulary under a hash of that
automaton.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetExceededError, FormatError
from ..vocabulary.vocabulary import Vocabulary
from .container import Buffer, pack, smallest, unpack
from .pushdown_tables import PushdownTables, partitions
from .rows import RowPool, decode_gaps, encode_gaps
from .tables import DEAD, SET

#: Kinds of shared places: without a count; with one, as seen from the maximum, and from the minimum.
PLAIN, MID, LOW = range(3)

#: Resume lists that are always there: the whole trie, and nothing.
ROOT, NOTHING = 0, 1

#: A state with fewer trie nodes below the bytes it takes is walked without looking for a base.
_WIDE = 20_000

#: A base must take at least this share of a state's bytes, by trie nodes below them.
_WORTH_A_BASE = 0.5

#: How far the widest edges are followed to a configuration that stays in place.
_LONGEST_APPROACH = 40

#: States of an automaton whose rows are shared through the vocabulary.
_SHARED_STATES = 200


class Settled(NamedTuple):
    """What a state settles: the number of a row, and of the resume list for what lies below."""

    row: int
    resume: int


class Shared(NamedTuple):
    """Settled places whose automaton does not depend on the rest, kept with the vocabulary.

    One place, or for a state that counts, one for each stretch of counts.

    Parameters
    ----------
    begins:
        The first count of each place's stretch; ``[0]`` without counts.
    rows:
        ``uint32[places, words]``.
    resumes:
        ``int32[*]`` each.
    """

    begins: list[int]
    rows: NDArray[np.uint32]
    resumes: list[NDArray[np.int32]]

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """The sections of a file in the container format."""
        gaps = [encode_gaps(nodes) for nodes in self.resumes]
        return {
            "begins": smallest(np.array(self.begins)),
            "bits": self.rows,
            "resume_start": smallest(np.cumsum([0] + [len(g) for g in gaps])),
            "resume_gaps": np.concatenate([np.zeros(0, np.uint16), *gaps]),
        }

    @classmethod
    def from_sections(cls, sections: dict[str, NDArray[Any]], vocabulary: Vocabulary, where: str) -> Shared:
        """Read `to_sections`, every index checked. Raises `FormatError`."""
        none = np.zeros(0)
        rows, begins = sections.get("bits", none), sections.get("begins", none)
        start, gaps = sections.get("resume_start", none), sections.get("resume_gaps", none)
        size = vocabulary.size
        if (
            rows.dtype != np.uint32 or rows.ndim != 2 or rows.shape[1] != vocabulary.words or not len(rows)
            or (size % 32 and (rows[:, -1] >> np.uint32(size % 32)).any())
            or begins.ndim != 1 or begins.dtype.kind != "u" or len(begins) != len(rows)
            or start.ndim != 1 or start.dtype.kind != "u" or len(start) != len(rows) + 1
            or gaps.ndim != 1 or gaps.dtype != np.uint16 or not partitions(start, len(gaps))
        ):  # fmt: skip
            raise FormatError("the shared rows are damaged", where=where)
        resumes = [_decoded(gaps[i:j], vocabulary, where) for i, j in pairwise(start.tolist())]
        return cls(begins.tolist(), rows, resumes)

    def to_bytes(self) -> bytes:
        """A file of its own, kind ``"shared"``."""
        return pack({"kind": "shared"}, self.to_sections())

    @classmethod
    def from_buffer(cls, buffer: Buffer, vocabulary: Vocabulary, where: str) -> Shared | None:
        """Read `to_bytes`; None for anything that is not a sound one for this vocabulary."""
        try:
            meta, sections = unpack(buffer, where)
            return cls.from_sections(sections, vocabulary, where) if meta.get("kind") == "shared" else None
        except FormatError:
            return None


class ResumeLists:
    """Interned resume lists: ascending trie nodes, ``int32[*]``. Lists are only ever added."""

    def __init__(self) -> None:
        self._lists: list[NDArray[np.int32] | None] = [np.zeros(1, np.int32), np.zeros(0, np.int32)]
        # How to get a list that is not there yet: one that was stored, or a shared one.
        self._sources: dict[int, Callable[[], NDArray[np.int32]]] = {}
        self._shared: set[int] = set()
        self._numbers: dict[bytes, int] | None = None  # by content, once something is added

    def __len__(self) -> int:
        return len(self._lists)

    def __getitem__(self, number: int) -> NDArray[np.int32]:
        nodes = self._lists[number]
        if nodes is None:
            nodes = self._lists[number] = self._sources[number]()
        return nodes

    def add(self, nodes: NDArray[np.int32]) -> int:
        """The number of this list; the array may be reused by the caller."""
        if not len(nodes):
            return NOTHING
        if self._numbers is None:
            own = [i for i in range(len(self._lists)) if i not in self._shared]
            self._numbers = {self[i].tobytes(): i for i in own}
        key = nodes.tobytes()
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._lists)
            self._lists.append(nodes.copy())
        return number

    def add_shared(self, source: Callable[[], NDArray[np.int32]]) -> int:
        """The number of a list that is kept elsewhere; ``source`` is asked for it when it is first needed."""
        number = len(self._lists)
        self.share(number, source)
        self._lists.append(None)
        return number

    def share(self, number: int, source: Callable[[], NDArray[np.int32]]) -> None:
        """Say where a list is kept whose place in the numbering is known."""
        self._sources[number] = source
        self._shared.add(number)

    @property
    def nbytes(self) -> int:
        """Bytes of the lists that belong to the index, where they were decoded."""
        return sum(2 * len(x) for i, x in enumerate(self._lists) if x is not None and i not in self._shared)

    def to_sections(self) -> dict[str, NDArray[Any]]:
        """``resume_start`` and ``resume_gaps``; shared lists are empty there."""
        none = np.zeros(0, np.int32)
        gaps = [encode_gaps(none if i in self._shared else self[i]) for i in range(2, len(self._lists))]
        return {
            "resume_start": smallest(np.cumsum([0] + [len(g) for g in gaps])),
            "resume_gaps": np.concatenate([np.zeros(0, np.uint16), *gaps]),
        }

    @classmethod
    def from_sections(
        cls, sections: dict[str, NDArray[Any]], vocabulary: Vocabulary, where: str
    ) -> ResumeLists:
        """Read `to_sections`. Raises `FormatError`.

        A list is checked against the trie when it is first needed: only walks need it, and they need the trie.
        """
        start, gaps = sections.get("resume_start"), sections.get("resume_gaps")
        if (
            start is None or gaps is None or start.ndim != 1 or gaps.ndim != 1 or start.dtype.kind != "u"
            or gaps.dtype != np.uint16 or not partitions(start, len(gaps))
        ):  # fmt: skip
            raise FormatError("the resume lists are damaged", where=where)
        lists = cls()
        for i, j in pairwise(start.tolist()):
            lists._sources[len(lists)] = partial(_decoded, gaps[i:j], vocabulary, where)
            lists._lists.append(None)
        return lists


def _decoded(gaps: NDArray[np.uint16], vocabulary: Vocabulary, where: str) -> NDArray[np.int32]:
    """A stored resume list, every node of it in the trie."""
    nodes = decode_gaps(gaps)
    if len(nodes) and int(nodes[-1]) >= len(vocabulary.trie.byte):
        raise FormatError("a resume list points outside the vocabulary's trie", where=where)
    return nodes.astype(np.int32)


class _Scratch(threading.local):
    """Arrays that the kernels write to, one set for each thread and size of vocabulary."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, int], tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
        self._intervals = np.empty((6, 1 << 12), np.int32)

    def intervals(self, size: int) -> NDArray[np.int32]:
        """Six rows of at least ``size``."""
        if self._intervals.shape[1] < size:
            self._intervals = np.empty((6, size), np.int32)
        return self._intervals

    def of(self, tokens: int, nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        found = self._arrays.get((tokens, nodes))
        if found is None:
            found = self._arrays[tokens, nodes] = np.empty(tokens + 64, np.int32), np.empty(nodes + 64, np.int32)
        return found


_scratch = _Scratch()


class StackRows:
    """Settles states of one pushdown automaton over one vocabulary, and remembers what it found.

    Parameters
    ----------
    tables, vocabulary:
        What to walk.
    """

    def __init__(self, tables: PushdownTables, vocabulary: Vocabulary) -> None:
        self.tables = tables
        self.vocabulary = vocabulary
        self.pool = RowPool(vocabulary.size)
        self.resumes = ResumeLists()
        self.settled: dict[tuple[int, int, int], Settled] = {}  # by resume list, state, count
        self.segments: dict[int, tuple[list[int], list[Settled]]] = {}  # by counting state: begins, what holds from there
        #: By name and number of the place: a state that has it, and what that settles.
        self.shared: dict[tuple[bytes, int], tuple[int, Settled]] = {}
        #: Called with a hash; may find what another process has worked out.
        self.fetch_shared: Callable[[bytes], Shared | None] | None = None
        #: Called with what was worked out afresh.
        self.on_shared: Callable[[bytes, Shared], None] | None = None
        self._stored_shared: dict[bytes, Shared] = {}  # what a file brings along
        self._calling: set[int] | None = None
        self._uncounted: set[int] = set()  # states with too many intervals to tell counts apart at once
        self._shapes: dict[int, Shape | None] = {}
        self._walker: _Walker | None = None

    # -- settling --------------------------------------------------------------------------------------

    def settle(self, resume: int, state: int, count: int) -> Settled:
        """What ``state`` settles when entered at the nodes of a resume list."""
        if count and self.tables.live[state] >= 0:
            found = self._counted(resume, state, count)
            if found is not None:
                return found
            count = self.representative(state, count)
        else:
            count = 0
        key = (resume, state, count)
        found = self.settled.get(key)
        if found is None:
            found = self._wide(state) if resume == ROOT and count == 0 else None
            if found is None:
                ids, below = self._walk().narrow(self.resumes[resume], (state, count))
                if resume == ROOT and not count and len(ids) > self.pool.longest_list // 2:
                    found = self._publish(state, ids, below)
                found = found or Settled(self._row(ids), self.resumes.add(below))
            self.settled[key] = found
        return found

    def known(self, resume: int, state: int, count: int) -> bool:
        """Whether `settle` would only look it up."""
        if count and self.tables.live[state] >= 0:
            if resume == ROOT and state in self.segments:
                return True
            count = self.representative(state, count)
        else:
            count = 0
        return (resume, state, count) in self.settled

    def representative(self, state: int, count: int) -> int:
        """A count from which every token fares as from ``count``: no token counts further than it has bytes."""
        minimum, maximum = self.tables.loops[self.tables.live[state]].tolist()
        reach = self.vocabulary.trie.max_depth
        if count + reach >= maximum:
            return count
        if count >= minimum:
            return int(minimum) or 1
        return count if count + reach >= minimum else 1

    def _row(self, ids: NDArray[np.int32]) -> int:
        """A row of these token ids, in any order."""
        if len(ids) <= self.pool.longest_list:
            return self.pool.add_ids(np.sort(ids))
        return self.pool.add_dense(self._walk().bits(ids))

    # -- wide states -----------------------------------------------------------------------------------

    def _wide(self, state: int) -> Settled | None:
        """The settled place of a wide state, found by walking less than all of it; None for any other state."""
        walk = self._walk()
        if walk.weight[state] < _WIDE:
            return None
        base = walk.base(state)
        if base is None:
            return self._shared_place(state)
        held = self._configuration(base)
        ids, nodes = walk.difference((state, 0), base)
        row = self.pool.add_difference(held.row, np.sort(ids))
        if not len(nodes):
            return Settled(row, held.resume)
        return Settled(row, self.resumes.add(np.setxor1d(self.resumes[held.resume], nodes).astype(np.int32)))

    def _configuration(self, config: tuple[int, ...]) -> Settled:
        """What a state with some known frames below it settles; ``config`` as in the kernels."""
        states = config[::2]
        found = self.settle(ROOT, states[0], 0)
        row, resume = found
        for state in states[1:]:
            more, resume = self.settle(resume, state, 0)
            row = self.pool.union(row, more)
        return Settled(row, resume)

    def _shared_place(self, state: int) -> Settled | None:
        """A state of an automaton that only moves and pops, or counts from nothing: once for each vocabulary."""
        name = self._name(state, PLAIN)
        return None if name is None else self._share(name, 0, state)

    def _name(self, state: int, kind: int) -> bytes | None:
        """What a shared place of a state is called: its automaton and, where it counts, the bounds that matter."""
        if state not in self._shapes:
            self._shapes[state] = shape_of(self.tables, state)
        shape = self._shapes[state]
        if shape is None or (kind == PLAIN) != (self.tables.live[state] < 0):
            return None
        reach = self.vocabulary.trie.max_depth  # no token counts further
        bounds = [kind, reach]
        if kind == PLAIN:
            bounds += [min(bound, reach + 1) for bound in self.tables.loops[shape.loop].tolist()] if shape.loop >= 0 else []
        return hashlib.blake2b(shape.digest, digest_size=_HASH, key=repr(bounds).encode()).digest()

    def _publish(self, state: int, ids: NDArray[np.int32], below: NDArray[np.int32]) -> Settled | None:
        """Make a place that turned out large a shared one, if it can be."""
        name = self._name(state, PLAIN)
        if name is None:
            return None
        if name not in self.vocabulary.shared_rows:
            shared = Shared([0], self._walk().bits(ids)[None], [below.copy()])
            self.vocabulary.shared_rows[name] = shared
            if self.on_shared is not None:
                self.on_shared(name, shared)
        return self._share(name, 0, state)

    def _share(self, name: bytes, place: int, state: int) -> Settled:
        """The row and the resume list of a shared place, fetched when they are needed."""
        found = self.shared.get((name, place))
        if found is None:
            row = self.pool.add_shared(self._source_of_row(name, place, state))
            resume = self.resumes.add_shared(self._source_of_resume(name, place, state))
            found = self.shared[name, place] = state, Settled(row, resume)
        return found[1]

    def _find_shared(self, name: bytes, state: int) -> Shared:
        """From the vocabulary's memory, from where else it may be kept, or by walking."""
        known = self.vocabulary.shared_rows
        shared = known.get(name)
        if shared is None and name in self._stored_shared:
            return self._stored_shared[name]  # a file speaks for itself only: this is not published
        if shared is None and self.fetch_shared is not None:
            shared = self.fetch_shared(name)
        if shared is None:
            shared = self._walk_shared(name, state)
            if self.on_shared is not None:
                self.on_shared(name, shared)
        known[name] = shared
        return shared  # type: ignore[no-any-return]

    def fetch_all(self) -> None:
        """Have every shared place at hand that the settled ones refer to."""
        for (name, _), (state, _) in self.shared.items():
            self._find_shared(name, state)

    def _walk_shared(self, name: bytes, state: int) -> Shared:
        kind = next((kind for kind in (PLAIN, MID, LOW) if self._name(state, kind) == name), None)
        if kind is None:
            raise FormatError("a shared row belongs to another automaton", where=f"state {state}")
        walk = self._walk()
        if kind == PLAIN:
            shape = self._shapes[state]
            row, below = walk.closed(state) if shape and shape.loop < 0 else walk.place(state)
            return Shared([0], row[None], [below])
        bounds = self._canonical_loop(kind)
        walked = walk.counted(state, bounds)
        if walked is None:
            raise too_ambiguous()
        return self._cut(bounds[1] if kind == MID else bounds[0] - 1, walked)

    def _canonical_loop(self, kind: int) -> tuple[int, int]:
        """Bounds between which a state counts as it does in any loop: `MID` up to the maximum, `LOW` to the minimum."""
        reach = self.vocabulary.trie.max_depth
        return (1, reach + 1) if kind == MID else (reach + 1, 3 * reach + 3)

    def _shared_segments(self, state: int) -> tuple[list[int], list[Settled]] | None:
        """The segments of a wide state: how far it is to the next bound is all that matters."""
        if self._walk().weight[state] < _WIDE:
            return None
        minimum, maximum = self.tables.loops[self.tables.live[state]].tolist()
        low, mid = self._name(state, LOW), self._name(state, MID)
        crossed = minimum > 1 and maximum - minimum <= self.vocabulary.trie.max_depth
        if low is None or mid is None or crossed:
            return None
        begins: list[int] = []
        settled: list[Settled] = []
        if minimum > 1:
            self._append(begins, settled, low, state, minimum - self._canonical_loop(LOW)[0], 1)
        self._append(begins, settled, mid, state, maximum - self._canonical_loop(MID)[1], max(1, minimum))
        return begins, settled

    def _append(
        self, begins: list[int], settled: list[Settled], name: bytes, state: int, offset: int, first: int
    ) -> None:
        """Segments from ``first`` on, of the counts of a shared place plus ``offset``."""
        stretches = [begin + offset for begin in self._find_shared(name, state).begins]
        skipped = max(0, bisect_right(stretches, first) - 1)
        stretches[skipped] = first
        for place, begin in enumerate(stretches[skipped:], skipped):
            begins.append(begin)
            settled.append(self._share(name, place, state))

    # -- states that count -----------------------------------------------------------------------------

    def _counted(self, resume: int, state: int, count: int) -> Settled | None:
        """From the segments of a state that counts without calling, such as the inside of a string."""
        if resume != ROOT:
            return None
        found = self.segments.get(state)
        if found is None:
            if state in self._uncounted or self._calls(state):
                return None
            found = self._shared_segments(state) or self._own_segments(state)
            if found is None:
                self._uncounted.add(state)
                return None
            self.segments[state] = found
        begins, settled = found
        return settled[bisect_right(begins, count) - 1]

    def _own_segments(self, state: int) -> tuple[list[int], list[Settled]] | None:
        minimum, maximum = self.tables.loops[self.tables.live[state]].tolist()
        walked = self._walk().counted(state, (minimum, maximum))
        if walked is None:
            return None
        if len(walked.ids) + len(walked.tokens[0]) > self.pool.longest_list:
            shared = self._cut(maximum, walked)
            rows = [self.pool.add_dense(row) for row in shared.rows]
            return shared.begins, [
                Settled(row, self.resumes.add(nodes)) for row, nodes in zip(rows, shared.resumes, strict=True)
            ]
        begins, ids = _stretches(walked.ids, walked.tokens, maximum)
        places, nodes = _stretches(walked.below, walked.nodes, maximum)
        together = sorted({*begins, *places})
        settled = []
        for begin in together:
            row = self.pool.add_ids(ids[bisect_right(begins, begin) - 1])
            settled.append(Settled(row, self.resumes.add(nodes[bisect_right(places, begin) - 1])))
        return together, settled

    def _calls(self, state: int) -> bool:
        """Whether a state reaches a move that pushes, or several moves for one byte, before it pops."""
        if self._calling is None:
            self._calling = calling_states(self.tables)
        return state in self._calling

    def _cut(self, high: int, walked: _Counted) -> Shared:
        """Sweep over the counts up to ``high``: a place for each stretch in which nothing comes or goes."""
        from .. import kernels

        row = np.zeros(self.pool.words, np.uint32)
        kernels.flip_ids(row, walked.ids)
        when, tokens = _events(*walked.tokens)
        places, nodes = _stretches(walked.below, walked.nodes, high)
        cuts = np.unique(np.concatenate([when[when <= high], places]))
        changed = np.searchsorted(when, np.append(cuts, high + 1))
        rows = np.empty((len(cuts), self.pool.words), np.uint32)
        for i in range(len(cuts)):
            kernels.flip_ids(row, tokens[changed[i] : changed[i + 1]])
            rows[i] = row
        begins = cuts.tolist()
        return Shared(begins, rows, [nodes[bisect_right(places, begin) - 1] for begin in begins])

    # -- walking ---------------------------------------------------------------------------------------

    def _walk(self) -> _Walker:
        if self._walker is None:
            self._walker = _Walker(self.tables, self.vocabulary)
        return self._walker

    def rest(self) -> None:
        """Let go of what only walking needs."""
        self._walker = None
        self.pool.compact()


    # -- keeping ---------------------------------------------------------------------------------------

    def to_sections(self, self_contained: bool) -> dict[str, NDArray[Any]]:
        """The sections of the file format (see docs/format.md); ``self_contained`` includes shared rows."""
        keys = np.array(list(self.settled), np.int64).reshape(-1, 3)
        values = np.array(list(self.settled.values()), np.int64).reshape(-1, 2)
        sections = self.pool.to_sections() | self.resumes.to_sections()
        columns = {"set_resume": keys[:, 0], "set_state": keys[:, 1], "set_row": values[:, 0], "set_next": values[:, 1]}
        if keys[:, 2].any():
            columns["set_count"] = keys[:, 2]
        if self.segments:
            begins, places = zip(*self.segments.values(), strict=True)
            columns |= {
                "seg_state": np.array(list(self.segments)),
                "seg_start": np.cumsum([0] + [len(b) for b in begins]),
                "seg_begin": np.concatenate(begins),
                "seg_row": np.array([place.row for group in places for place in group]),
                "seg_next": np.array([place.resume for group in places for place in group]),
            }
        if self.shared:
            names = list(dict.fromkeys(name for name, _ in self.shared))
            number = {name: i for i, name in enumerate(names)}
            states, places = zip(*self.shared.values(), strict=True)
            sections["shared_hash"] = np.frombuffer(b"".join(names), np.uint8).reshape(-1, _HASH)
            columns["shared_name"] = np.array([number[name] for name, _ in self.shared])
            columns["shared_place"] = np.array([place for _, place in self.shared])
            columns["shared_state"] = np.array(states)
            columns["shared_row"] = np.array([place.row for place in places])
            columns["shared_next"] = np.array([place.resume for place in places])
            if self_contained:
                state_of = dict(zip((name for name, _ in self.shared), states, strict=True))
                kept = [self._find_shared(name, state_of[name]) for name in names]
                together = Shared(
                    [begin for shared in kept for begin in shared.begins],
                    np.concatenate([shared.rows for shared in kept]),
                    [nodes for shared in kept for nodes in shared.resumes],
                )
                sections |= {f"sh_{name}": section for name, section in together.to_sections().items()}
                columns["sh_first"] = np.cumsum([0] + [len(shared.rows) for shared in kept])
        return sections | {name: smallest(column) for name, column in columns.items()}

    @classmethod
    def from_sections(
        cls, tables: PushdownTables, vocabulary: Vocabulary, sections: dict[str, NDArray[Any]], where: str
    ) -> StackRows:
        """Rows used where they lie, after a check of every index in them. Raises `FormatError`."""
        rows = cls(tables, vocabulary)
        rows.resumes = ResumeLists.from_sections(sections, vocabulary, where)
        shared = rows._read_shared(sections, where)
        rows.pool = RowPool.from_sections(
            vocabulary.size, sections, where, [rows._source_of_row(*entry[:3]) for entry in shared]
        )
        for k, (name, place, state, row, resume) in enumerate(shared):
            if not rows.pool.is_shared(row, k):
                raise FormatError("a shared row is listed but not there", where=where)
            rows.resumes.share(resume, rows._source_of_resume(name, place, state))
            rows.shared[name, place] = state, Settled(row, resume)
        bounds = {"resume": len(rows.resumes), "state": tables.states, "row": len(rows.pool), "next": len(rows.resumes)}
        found = _columns(sections, {f"set_{name}": bound for name, bound in bounds.items()}, where)
        resume, state, row, after = found
        count = [0] * len(state)
        if "set_count" in sections:
            (count,) = _columns(sections, {"set_count": 1 << 31}, where)
            if len(count) != len(state):
                raise FormatError("the settled places are damaged", where=where)
        rows.settled = dict(zip(zip(resume, state, count, strict=True), map(Settled, row, after), strict=True))
        rows._read_segments(sections, bounds, where)
        return rows

    def _read_shared(
        self, sections: dict[str, NDArray[Any]], where: str
    ) -> list[tuple[bytes, int, int, int, int]]:
        """Name, place, state, row and resume list of every shared place."""
        if "shared_hash" not in sections:
            return []
        hashes = sections["shared_hash"]
        if hashes.ndim != 2 or hashes.dtype != np.uint8 or hashes.shape[1] != _HASH:
            raise FormatError("the shared rows are damaged", where=where)
        bounds = {"name": len(hashes), "place": 1 << 16, "state": self.tables.states, "row": 1 << 31,
                  "next": len(self.resumes)}  # fmt: skip
        columns = _columns(sections, {f"shared_{name}": bound for name, bound in bounds.items()}, where)
        names = [h.tobytes() for h in hashes]
        if "sh_bits" in sections:
            own = {name.removeprefix("sh_"): section for name, section in sections.items() if name.startswith("sh_")}
            together = Shared.from_sections(own, self.vocabulary, where)
            (first,) = _columns(sections, {"sh_first": len(together.rows) + 1}, where)
            if len(first) != len(names) + 1 or any(j <= i for i, j in pairwise(first)):
                raise FormatError("the shared rows are damaged", where=where)
            for name, i, j in zip(names, first, first[1:], strict=False):
                self._stored_shared[name] = Shared(together.begins[i:j], together.rows[i:j], together.resumes[i:j])
        return [(names[name], *rest) for name, *rest in zip(*columns, strict=True)]

    def _source_of_row(self, name: bytes, place: int, state: int) -> Callable[[], NDArray[np.uint32]]:
        return lambda: self._place_of(name, place, state)[0]

    def _source_of_resume(self, name: bytes, place: int, state: int) -> Callable[[], NDArray[np.int32]]:
        return lambda: self._place_of(name, place, state)[1]

    def _place_of(self, name: bytes, place: int, state: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        shared = self._find_shared(name, state)
        if place >= len(shared.rows):
            raise FormatError("a shared row has no such place", where=f"state {state}")
        return shared.rows[place], shared.resumes[place]

    def _read_segments(self, sections: dict[str, NDArray[Any]], bounds: dict[str, int], where: str) -> None:
        if "seg_state" not in sections:
            return
        states, starts, begins, numbers, following = _columns(
            sections,
            {"seg_state": bounds["state"], "seg_start": 1 << 31, "seg_begin": 1 << 31, "seg_row": bounds["row"],
             "seg_next": bounds["next"]},
            where, same_length=False,
        )  # fmt: skip
        steps = [j - i for i, j in pairwise(starts)]
        if (
            len(starts) != len(states) + 1 or starts[0] != 0 or starts[-1] != len(begins) or min(steps) < 1
            or len(begins) != len(numbers) or len(begins) != len(following)
            or any(begins[i] > 1 for i in starts[:-1]) or any(self.tables.live[s] < 0 for s in states)
        ):  # fmt: skip
            raise FormatError("the counted rows are damaged", where=where)
        places = [Settled(*pair) for pair in zip(numbers, following, strict=True)]
        for state, i, j in zip(states, starts, starts[1:], strict=False):
            self.segments[state] = begins[i:j], places[i:j]


#: Bytes of the hash that names a shared row.
_HASH = 16


def _columns(
    sections: dict[str, NDArray[Any]], bounds: dict[str, int], where: str, same_length: bool = True
) -> list[list[int]]:
    """Columns of a stored table as lists, each below its bound."""
    found = []
    for name, bound in bounds.items():
        column = sections.get(name)
        if column is None or column.ndim != 1 or column.dtype.kind != "u" or int(column.max(initial=0)) >= max(1, bound):
            raise FormatError(f"section {name!r} is missing or points outside the index", where=where)
        found.append(column.tolist())
    if same_length and len({len(column) for column in found}) > 1:
        raise FormatError("columns of a stored table differ in length", where=where)
    return found


class _Counted(NamedTuple):
    """What `kernels.walk_stack_counted` found: ids and nodes for every count, and those with intervals."""

    ids: NDArray[np.int32]
    tokens: tuple[NDArray[np.int32], ...]
    below: NDArray[np.int32]
    nodes: tuple[NDArray[np.int32], ...]


def _flip(row: NDArray[np.uint32], ids: NDArray[Any]) -> None:
    ids = ids.astype(np.uint32)
    np.bitwise_xor.at(row, ids >> 5, np.uint32(1) << (ids & np.uint32(31)))


def _stretches(
    always: NDArray[np.int32], some: tuple[NDArray[np.int32], ...], high: int
) -> tuple[list[int], list[NDArray[np.int32]]]:
    """The counts at which something comes or goes, and what is there from each of them on, ascending."""
    what, first, last = some
    order = np.argsort(what, kind="stable")
    what, first, last = what[order], first[order], last[order]
    begins = np.unique(np.concatenate([[1], first, last + 1]))
    begins = begins[begins <= high]
    fixed = np.sort(always)
    found = []
    for begin in begins.tolist():
        here = what[(first <= begin) & (begin <= last)]
        found.append(np.sort(np.concatenate([fixed, here])) if len(fixed) else here)
    return begins.tolist(), found


def _events(
    what: NDArray[np.int32], first: NDArray[np.int32], last: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """When something comes or goes, in order, and what."""
    when = np.concatenate([first, last + 1])
    order = np.argsort(when, kind="stable")
    return when[order], np.concatenate([what, what])[order]


class _Walker:
    """The kernels' form of an automaton, and the walks over the vocabulary's trie."""

    def __init__(self, tables: PushdownTables, vocabulary: Vocabulary) -> None:
        from .. import kernels

        self._kernels: Any = kernels
        trie = vocabulary.trie
        self._tables = tables
        self._trie = (trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids, trie.max_depth)
        self._ends = trie.token, trie.twins
        self._sizes = len(trie.token_ids), len(trie.byte)
        self._words = vocabulary.words
        self._arena = tables.arena()
        self._n = tables.states
        classes = self._arena[self._arena[kernels.A_CLASS_OF] :][:256]
        begin, width = int(self._arena[kernels.A_TABLE]), int(self._arena[kernels.A_CLASSES])
        self._table = self._arena[begin : begin + self._n * width].reshape(self._n, width)
        self._weights = _nodes_below_each_class(vocabulary, classes)
        self._moves = tables.moves
        #: Trie nodes below the bytes that each state takes.
        self.weight = (self._table != DEAD) @ self._weights
        self._narrowest_base = _WORTH_A_BASE * self._weights.sum()

    def narrow(
        self, resume: NDArray[np.int32], config: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Allowed ids in the trie's order and ascending resume nodes: views that the next walk overwrites."""
        ids, below = _scratch.of(*self._sizes)
        n, m = self._kernels.walk_stack(*self._trie, self._arena, resume, np.array(config, np.int32), ids, below)
        if n < 0:
            raise too_ambiguous()
        return ids[:n], below[:m]

    def difference(
        self, config: tuple[int, ...], base: tuple[int, ...]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Ids and nodes in which two configurations differ; views, as in `narrow`."""
        ids, below = _scratch.of(*self._sizes)
        n, m = self._kernels.walk_stack_difference(
            *self._trie, self._arena, np.array(config, np.int32), np.array(base, np.int32), ids, below
        )
        if n < 0:
            raise too_ambiguous()
        return ids[:n], below[:m]

    def closed(self, state: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The row and the resume list of a state whose automaton only moves and pops."""
        row = np.zeros(self._words + 1, np.uint32)  # the last word takes the spare bit
        _, below = _scratch.of(*self._sizes)
        byte, depth, skip, *_, max_depth = self._trie
        m = self._kernels.walk_closed(byte, depth, skip, *self._ends, max_depth, self._arena, state, row, below)
        return row[:-1], below[:m].copy()

    def place(self, state: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The row and the resume list of a state, entered without a count."""
        ids, below = self.narrow(np.zeros(1, np.int32), (state, 0))
        return self.bits(ids), below.copy()

    def bits(self, ids: NDArray[np.int32]) -> NDArray[np.uint32]:
        """The row of some ids, ``uint32[words]``."""
        row = np.zeros(self._words, np.uint32)
        self._kernels.flip_ids(row, ids)
        return row

    def counted(self, state: int, bounds: tuple[int, int]) -> _Counted | None:
        """All counts of a state at once, in a loop with these bounds; None where that is too much."""
        arena, loop = self._arena.copy(), int(self._tables.live[state])
        where = int(arena[self._kernels.A_LOOPS]) + 2 * loop
        arena[where : where + 2] = bounds
        size = 1 << 12
        ids, below = _scratch.of(*self._sizes)
        while True:
            rows = _scratch.intervals(size)
            found = self._kernels.walk_stack_counted(
                *self._trie, arena, state, 1, bounds[1], ids, *rows[:3], below, *rows[3:]
            )
            if found[0] >= 0:
                a, b, c, d = found
                tokens, nodes = tuple(rows[:3, :b].copy()), tuple(rows[3:, :d].copy())
                return _Counted(ids[:a].copy(), tokens, below[:c].copy(), nodes)
            if size > 128 * self._sizes[0]:
                return None
            size *= 8

    # -- choosing what to compare with -----------------------------------------------------------------

    def base(self, state: int) -> tuple[int, ...] | None:
        """The configuration that the widest edges lead to and that they stay in; None where that is the state."""
        here, frames = state, ()
        for _ in range(_LONGEST_APPROACH):
            if self.weight[here] < self._narrowest_base:
                return None
            entry, share = self._widest(here)
            if entry < self._n:
                if entry == here:
                    return None if here == state and not frames else _config(here, frames)
                sequence: tuple[int, ...] = (entry,)
            else:
                moves = self._moves[entry - self._n]
                if len(moves) != 1 or moves[0][0] is not None or not moves[0][1]:
                    return None
                sequence = moves[0][1]
            if share < _WORTH_A_BASE or self._tables.live[sequence[-1]] >= 0 or len(frames) > 8:
                return None
            frames = (*reversed(sequence[:-1]), *frames)
            here = sequence[-1]
        return None

    def _widest(self, state: int) -> tuple[int, float]:
        """The entry that takes the most trie nodes, and its share of what the state takes."""
        sums = np.bincount(self._table[state] + 1, self._weights)  # entry -1, dead, comes first
        best = int(sums[1:].argmax())
        return best, float(sums[best + 1] / max(1.0, self.weight[state]))


def calling_states(tables: PushdownTables) -> set[int]:
    """The states that reach a return, a move that pushes, or several moves for one byte, before they pop."""
    found: set[int] = set()
    sources: dict[int, list[int]] = {}
    for state in range(tables.states):
        calls = bool(tables.returns[state])
        for target in tables.targets(state):
            if target < tables.states:
                sources.setdefault(target, []).append(state)
                continue
            moves = tables.moves[target - tables.states]
            record, sequence = moves[0]
            calls = calls or len(moves) > 1 or len(sequence) + (record is not None) > 1
            for after in (*(record[2:] if record else ()), *sequence):
                sources.setdefault(after, []).append(state)
        if calls:
            found.add(state)
    todo = list(found)
    while todo:
        for source in sources.get(todo.pop(), ()):
            if source not in found:
                found.add(source)
                todo.append(source)
    return found


class Shape(NamedTuple):
    """The automaton that begins at a state, whatever it lies in: a hash, and the loop that it counts in or -1."""

    digest: bytes
    loop: int


def shape_of(tables: PushdownTables, state: int) -> Shape | None:
    """None where it calls, returns, branches, counts in several loops, or is large."""
    number = {state: 0}
    loops: set[int] = set()
    digest = hashlib.blake2b(digest_size=32)

    def named(target: int) -> int:
        if target >= 0 and target not in number:
            number[target] = len(number)
            queue.append(target)
        return number[target] if target >= 0 else -1

    for here in (queue := [state]):
        if tables.returns[here] or tables.like[here] or len(queue) > _SHARED_STATES:
            return None
        begin, end = int(tables.edge_start[here]), int(tables.edge_start[here + 1])
        names: list[Any] = [int(tables.live[here]) >= 0]
        for target in (tables.edge_target[begin:end].astype(np.int64) - 1).tolist():
            if target < tables.states:
                names.append(named(target))
                continue
            moves = tables.moves[target - tables.states]
            (record, sequence), *others = moves
            if others or sequence:
                return None
            if record is None:
                names.append("pop")
                continue
            operation, loop, *zones = record
            loops.add(loop)
            names.append((operation, *map(named, zones[:1] if operation == SET else zones)))
        digest.update(tables.edge_low[begin:end].tobytes() + tables.edge_high[begin:end].tobytes())
        digest.update(repr(names).encode())
    return Shape(digest.digest(), max(loops, default=-1)) if len(loops) <= 1 else None


def _config(state: int, frames: tuple[int, ...]) -> tuple[int, ...]:
    """State and frames, none with a count, as the kernels read them."""
    return tuple(x for s in (state, *frames) for x in (s, 0))


def _nodes_below_each_class(vocabulary: Vocabulary, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Trie nodes whose first byte is in each class: what a live transition may cost."""
    trie = vocabulary.trie
    tops = np.flatnonzero(trie.depth == 1)
    weights = np.zeros(int(classes[-1]) + 1)
    np.add.at(weights, classes[trie.byte[tops]], trie.skip[tops] - tops)
    return weights


def too_ambiguous() -> BudgetExceededError:
    """The error for a text that could be read in more ways at once than are followed."""
    return BudgetExceededError(
        "a text could be read in too many ways at once",
        remedy="Make the alternatives of the definition (anyOf, oneOf) differ earlier.",
    )
