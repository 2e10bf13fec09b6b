"""Rows that belong to a vocabulary: partial masks whose automaton does not depend on a definition."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...errors import FormatError
from ...storage import columns
from ...storage.columns import MOST, Column, Columns
from ...storage.container import Buffer, pack, smallest, unpack
from ...system.digest import blake2b
from ...system.types import Array, Sections
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.tables import events
from ..core.machine import SharedRows
from ..rows.residuals import Residuals, lists_to_sections, stored_lists
from ..rows.row_pool import RowPool, row_of
from .tables import PushdownTables
from .walker import BELOW, BETWEEN, CountedWalk, StackWalker, stretches

T = TypeVar("T")

#: The sections of shared masks (see docs/internals/format.md), at least one.
SECTIONS = Columns(
    Column("begins", rows=("more stretches", 1), below=MOST),
    Column("bits", "u4", rows=("more stretches", 1), members="spelled", mapped=True),
    Column("resume_start", rows=("more stretches", 2), starts="residual gaps"),
    Column("resume_gaps", "u2", rows="residual gaps"),
)


class LazySequence(Sequence[T]):
    """Rows or lists by their numbers, each of which is decoded when it is asked for; ``nbytes`` are held for that."""

    def __init__(self, numbers: Sequence[int], decode: Callable[[int], T], nbytes: int = 0) -> None:
        self._numbers = numbers
        self._decode = decode
        self.nbytes = nbytes

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            return LazySequence(self._numbers[at], self._decode)
        return self._decode(self._numbers[at])

    def __iter__(self) -> Iterator[T]:
        return map(self._decode, self._numbers)


class SharedMasks(NamedTuple):
    """Partial masks whose automaton does not depend on the rest, kept with the vocabulary.

    One partial mask, or for a state that counts, one for each stretch of counts.

    Parameters
    ----------
    begins:
        The first count of each stretch; ``[0]`` without counts.
    rows:
        ``uint32[words]`` each.
    residuals:
        ``int32[*]`` each.
    """

    begins: list[int]
    rows: Sequence[NDArray[np.uint32]]
    residuals: Sequence[NDArray[np.int32]]

    @classmethod
    def cut(cls, walked: CountedWalk, high: int, words: int) -> SharedMasks:
        """Sweep over the counts up to ``high``: one for each stretch in which nothing comes or goes."""
        row = row_of(walked.ids, words)
        when, tokens = events(*walked.tokens)
        changes, nodes = stretches(walked.below, walked.nodes, high)
        cuts = np.unique(np.concatenate([when[when <= high], changes]))
        changed = np.searchsorted(when, np.append(cuts, high + 1))
        rows = np.empty((len(cuts), words), np.uint32)
        for i in range(len(cuts)):
            kernels.flip_ids(row, tokens[changed[i] : changed[i + 1]])
            rows[i] = row
        begins = cuts.tolist()
        return cls(begins, list(rows), [nodes[bisect_right(changes, begin) - 1] for begin in begins])

    @property
    def nbytes(self) -> int:
        """Bytes of rows and lists, as they are held."""
        lists = self.residuals
        held = lists.nbytes if isinstance(lists, LazySequence) else sum(nodes.nbytes for nodes in lists)
        return held + sum(row.nbytes for row in self.rows)

    def to_sections(self) -> dict[str, Array]:
        """The sections of a file in the container format."""
        own = {"begins": smallest(np.array(self.begins)), "bits": np.stack(self.rows)}
        return own | lists_to_sections(self.residuals)

    @classmethod
    def from_sections(cls, sections: Sections, vocabulary: Vocabulary, where: str) -> SharedMasks:
        """Read `to_sections`; rows are used where they lie. Raises `FormatError`.

        A residual list is checked against the trie when it is first needed: only walks need either.
        """
        sizes = {"size": vocabulary.size, "spelled": vocabulary.spelled}
        begins, rows, start, gaps = columns.read(sections, SECTIONS, sizes, where).values()
        residuals = LazySequence(range(len(begins)), stored_lists(start, gaps, vocabulary, where), gaps.nbytes)
        return cls(begins.tolist(), list(rows), residuals)

    def to_bytes(self) -> bytes:
        """A file of its own, kind ``"shared"``."""
        return pack({"kind": "shared"}, self.to_sections())

    @classmethod
    def from_buffer(cls, buffer: Buffer, vocabulary: Vocabulary, where: str) -> SharedMasks | None:
        """Read `to_bytes`; None for anything that is not a sound one for this vocabulary."""
        try:
            meta, sections = unpack(buffer, where)
            return cls.from_sections(sections, vocabulary, where) if meta.get("kind") == "shared" else None
        except FormatError:
            return None


#: What a state decides: the number of a row, and of the residual list for what lies below. (Numbers alone: the
#: collector lets go of such a tuple.)
PartialRow: TypeAlias = tuple[int, int]

#: A shared mask that is used: its name, and the number of a stretch of it; a state that has that, and the numbers of
#: its row and residual list. (Bytes and numbers alone: the collector lets go of such a tuple.)
Use: TypeAlias = tuple[bytes, int, int, int, int]

#: Kinds of shared masks: entered without a count; with one, as seen from the maximum, and from the minimum.
PLAIN, MID, LOW = range(3)

#: Bytes of the hash that names a shared mask.
NAME_BYTES = 16


class _TooManyIntervals(Exception):
    """Counts of a state can't be told apart all at once."""


class Walks(Protocol):
    """Whoever has a walker, or makes one."""

    def walker(self) -> StackWalker:
        """What walks the vocabulary."""


class SharedMaskStore:
    """The shared masks that one index uses, by name: a hash of the automaton, and of the bounds that matter.

    What a name stands for is looked for in the vocabulary's memory and among its base rows, in the index's own file,
    in the cache (`keep_in`), and is walked if nobody has it.

    Parameters
    ----------
    tables, vocabulary:
        The index's.
    pool, residuals:
        Where rows and residual lists get their numbers.
    walks:
        Has the walker when something has to be walked.
    """

    def __init__(
        self, tables: PushdownTables, vocabulary: Vocabulary, pool: RowPool, residuals: Residuals, walks: Walks
    ) -> None:
        self._tables = tables
        self._vocabulary = vocabulary
        self.pool = pool
        self.residuals = residuals
        self._walks = walks
        self._automata: dict[int, tuple[bytes, int] | None] = {}  # digests and loops of those that can be shared
        self._far: dict[tuple[int, int], bytes | None] = {}  # names of states whose counts stay in a zone
        #: Those that are used, in the order in which the pool numbers their rows.
        self.uses: tuple[Use, ...] = ()
        self._numbers: dict[tuple[bytes, int], int] | None = {}  # by name and stretch; None: not read from `uses` yet
        self.stored: dict[bytes, SharedMasks] = {}  # what the index's file brings along
        self._cache: SharedRows | None = None
        self._kept: Collection[bytes] = ()  # names that the cache is known to have

    def keep_in(self, cache: SharedRows) -> None:
        """Look there for what another process has worked out, and keep there what is worked out afresh."""
        self._cache = cache
        self._kept = ()
        cache.expect({name for name, *_ in self.uses if name not in self.stored})

    def keep_used(self) -> None:
        """Keep there whatever is used, also what was at hand from another index or another cache."""
        if self._cache is None or self._cache.are_brought_along():
            return
        missing = self._missing(self._cache)
        for name, state in missing.items():
            self._cache.keep(name, self.find(name, state).to_bytes())
        self._kept = {*self._kept, *missing}

    def brought_along(self) -> dict[bytes, SharedMasks]:
        """What a file in the cache has to have itself, by name."""
        if self._cache is None or not self._cache.are_brought_along():
            return {}
        return {name: self.find(name, state) for name, state in self._missing(self._cache).items()}

    def _missing(self, cache: SharedRows) -> dict[bytes, int]:
        """Names that are used and not in the cache, each with a state that has it."""
        used = {name: state for name, _, state, *_ in self.uses if name not in self._kept}
        missing = cache.missing(used.keys())
        self._kept = {*self._kept, *used} - missing
        return {name: state for name, state in used.items() if name in missing}

    # -- partial masks ----------------------------------------------------------------------------------------

    def plain(self, state: int) -> PartialRow | None:
        """A state of an automaton that only moves and pops, or counts from nothing; None for any other."""
        name = self.name(state, PLAIN)
        return None if name is None else self._use(name, 0, state)

    def known(self, state: int) -> PartialRow | None:
        """`plain`, where the vocabulary has it at hand."""
        name = self.name(state, PLAIN)
        return None if name is None or self._at_hand(name) is None else self._use(name, 0, state)

    def unbounded(self, state: int, zone: int) -> PartialRow | None:
        """A state that counts, where no token leaves a zone: as without the counter, if that can be shared."""
        name = self._unbounded_name(state, zone)
        return None if name is None else self._use(name, 0, state)

    def publish(self, state: int, ids: NDArray[np.int32], below: NDArray[np.int32]) -> PartialRow | None:
        """Make a partial mask that has just been walked and turned out large a shared one, if it can be."""
        name = self.name(state, PLAIN)
        if name is None:
            return None
        if self._at_hand(name) is None:
            self._add(name, SharedMasks([0], [row_of(ids, self.pool.words)], [below.copy()]))
        return self._use(name, 0, state)

    def share(self, state: int, found: PartialRow) -> PartialRow:
        """Make a partial mask of this index that was found by another way a shared one, if it can be."""
        name = self.name(state, PLAIN)
        if name is None:
            return found
        if self._at_hand(name) is None:
            row = self.pool.dense(found[0]).view(np.uint32)
            self._add(name, SharedMasks([0], [row], [self.residuals[found[1]]]))
        return self._use(name, 0, state)

    def segments(self, state: int) -> tuple[list[int], list[PartialRow]] | None:
        """The segments of a state that counts: how far it is to the next bound is all that matters."""
        minimum, maximum = self._tables.loops[self._tables.live[state]].tolist()
        low, mid = self.name(state, LOW), self.name(state, MID)
        crossed = minimum > 1 and maximum - minimum <= self._reach
        if low is None or mid is None or crossed:
            return None
        begins: list[int] = []
        decided: list[PartialRow] = []
        try:
            if minimum > 1:
                self._append(begins, decided, low, state, minimum - self._bounds(LOW)[0], 1)
            self._append(begins, decided, mid, state, maximum - self._bounds(MID)[1], max(1, minimum))
        except _TooManyIntervals:
            return None
        return begins, decided

    def counted(self, state: int, count: int) -> PartialRow | None:
        """What a state decides at a count; None if it can't be shared, or nobody has worked it out.

        A count of 0 stands for nothing counted, in a loop with a minimum of at most 1.
        """
        minimum, maximum = self._tables.loops[self._tables.live[state]].tolist()
        is_low = 1 < minimum > count
        name = self.name(state, LOW if is_low else MID)
        shared = None if name is None else self._known(name)
        if name is None or shared is None or (minimum > 1 and maximum - minimum <= self._reach):
            return None
        offset = minimum - self._bounds(LOW)[0] if is_low else maximum - self._bounds(MID)[1]
        return self._use(name, max(0, bisect_right(shared.begins, count - offset) - 1), state)

    def _append(
        self, begins: list[int], decided: list[PartialRow], name: bytes, state: int, offset: int, first: int
    ) -> None:
        """Segments from ``first`` on, of the counts of a shared mask plus ``offset``."""
        found = [begin + offset for begin in self.find(name, state).begins]
        skipped = max(0, bisect_right(found, first) - 1)
        found[skipped] = first
        for stretch, begin in enumerate(found[skipped:], skipped):
            begins.append(begin)
            decided.append(self._use(name, stretch, state))

    # -- names -----------------------------------------------------------------------------------------

    @property
    def _reach(self) -> int:
        """No token counts further than it has bytes."""
        return self._vocabulary.trie.max_depth

    def name(self, state: int, kind: int) -> bytes | None:
        """What a shared mask of a state is called; None where it can't be shared."""
        tables = self._tables
        if (kind == PLAIN) != (tables.live[state] < 0) or tables.returns[state] or tables.like[state]:
            return None
        if state not in self._automata:
            found = self._walks.walker().subautomaton(state)
            self._automata[state] = None if found is None else (found.digest, found.loop)
        automaton = self._automata[state]
        if automaton is None:
            return None
        digest, loop = automaton
        bounds = [kind, self._reach] if kind == PLAIN else [kind, *self._bounds(kind)]
        if kind == PLAIN and loop >= 0:
            bounds += [min(bound, self._reach + 1) for bound in self._tables.loops[loop].tolist()]
        return _name(digest, bounds)

    def _unbounded_name(self, state: int, zone: int) -> bytes | None:
        if (state, zone) not in self._far:
            automaton = self._walks.walker().subautomaton(state, zone)
            self._far[state, zone] = None if automaton is None else _name(automaton.digest, [PLAIN, self._reach])
        return self._far[state, zone]

    def _bounds(self, kind: int) -> tuple[int, int]:
        """Bounds between which a state counts as in any loop: `MID` up to the maximum, `LOW` up to the minimum.

        The longest token does not come to them from the first count, which stands for all that are further away.
        """
        return (1, self._reach + 2) if kind == MID else (self._reach + 2, 3 * self._reach + 4)

    # -- finding them ----------------------------------------------------------------------------------

    def find(self, name: bytes, state: int) -> SharedMasks:
        """What a name stands for; ``state`` has it. Raises `FormatError` where it does not."""
        shared = self._known(name)
        if shared is None:
            shared = self._walk(name, state)
            self._add(name, shared)
        return shared

    def _known(self, name: bytes) -> SharedMasks | None:
        """What a name stands for, if that was walked before."""
        shared = self._at_hand(name)
        if shared is None and name in self.stored:
            return self.stored[name]  # a file speaks for itself only: this is not published
        if shared is None and self._cache is not None:
            read = partial(SharedMasks.from_buffer, vocabulary=self._vocabulary, where="the cache")
            shared = self._cache.fetch(name, read)
            if shared is not None and self._at_hand(name) is None:
                self._vocabulary.shared_rows[name] = shared
        return shared

    def _at_hand(self, name: bytes) -> SharedMasks | None:
        """What a name stands for, where the vocabulary has it in memory."""
        found: SharedMasks | None = self._vocabulary.shared_rows.get(name)
        base = self._vocabulary.base_rows
        return base.get(name) if found is None and base is not None else found

    def find_all(self) -> dict[bytes, SharedMasks]:
        """Every shared mask that is used, by its name; others may come into use while they are walked."""
        found: dict[bytes, SharedMasks] = {}
        while missing := {name: state for name, _, state, *_ in self.uses if name not in found}:
            for name, state in missing.items():
                found[name] = self.find(name, state)
        return found

    # -- their numbers -----------------------------------------------------------------------------------------

    def adopt(self, uses: list[Use]) -> None:
        """Use what a file does, before anything else is used."""
        self.uses, self._numbers = tuple(uses), None
        self.pool.share(len(uses), self)
        self.residuals.share([residual for *_, residual in uses], range(len(uses)), self)

    def cut(self, count: int) -> None:
        """Keep the first that are used only."""
        self.uses = self.uses[:count]
        self._numbers = None

    def row_of(self, number: int) -> NDArray[np.uint32]:
        """The row of a shared mask that is used."""
        shared, stretch = self._stretch(number)
        return shared.rows[stretch]

    def residual_of(self, number: int) -> NDArray[np.int32]:
        """The residual list of a shared mask that is used."""
        shared, stretch = self._stretch(number)
        return shared.residuals[stretch]

    def _stretch(self, number: int) -> tuple[SharedMasks, int]:
        name, stretch, state, *_ = self.uses[number]
        shared = self.find(name, state)
        if stretch >= len(shared.rows):
            raise FormatError("a shared row has no such stretch", where=f"state {state}")
        return shared, stretch

    def _use(self, name: bytes, stretch: int, state: int) -> PartialRow:
        if self._numbers is None:
            self._numbers = {(name, stretch): number for number, (name, stretch, *_) in enumerate(self.uses)}
        number = self._numbers.setdefault((name, stretch), len(self.uses))
        if number == len(self.uses):
            row = self.pool.add_shared(self)
            residual = self.residuals.add_shared(number, self)
            self.uses += ((name, stretch, state, row, residual),)
        return self.uses[number][3:]

    def _add(self, name: bytes, shared: SharedMasks) -> None:
        self._vocabulary.shared_rows[name] = shared

    def _walk(self, name: bytes, state: int) -> SharedMasks:
        kind = next((kind for kind in (PLAIN, MID, LOW) if self.name(state, kind) == name), None)
        zone = None
        if kind is None:
            zone = next((zone for zone in (BETWEEN, BELOW) if self._unbounded_name(state, zone) == name), None)
        if kind is None and zone is None:
            raise FormatError("a shared row belongs to another automaton", where=f"state {state}")
        walker = self._walks.walker()
        if kind is None or kind == PLAIN:
            automaton = walker.subautomaton(state, zone)
            if automaton is not None and automaton.loop < 0:
                row, below = walker.closed(automaton)
            else:
                row, below = walker.uncounted(state)
            return SharedMasks([0], [row], [below])
        low, high = self._bounds(kind)
        walked = walker.counted(state, (low, high))
        if walked is None:
            raise _TooManyIntervals
        return SharedMasks.cut(walked, high if kind == MID else low - 1, self.pool.words)


def names_of(hashes: Array) -> list[bytes]:
    """The names of shared masks, stored as ``uint8[names, NAME_BYTES]``."""
    together = hashes.tobytes()
    return [together[i : i + NAME_BYTES] for i in range(0, len(together), NAME_BYTES)]


def _name(digest: bytes, bounds: list[int]) -> bytes:
    return blake2b(digest, digest_size=NAME_BYTES, key=repr(bounds).encode()).digest()
