"""Walks of the vocabulary's trie through an automaton with a stack: the kernels, with what they need around them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.values import LONG_GAP
from ...system.memo import Memo
from ...system.properties import cached_property
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.tables import SET
from ..rows.head import Head
from ..rows.row_pool import row_of
from ..rows.subtrees import heights
from .stacks import END
from .subautomata import MOST_SPELLED, POP, Subautomaton, spelled, subautomaton
from .tables import PAIR, PushdownTables

T = TypeVar("T")

#: A base must take at least this share of all trie nodes, and of those below the bytes that a state takes.
_WORTH_A_BASE = 0.5

#: Frames of a configuration that the widest edges lead to.
_MOST_FRAMES = 8

#: Sizes of vocabularies that a thread keeps arrays for.
_MOST_SIZES = 4

#: Threads and stack cells that a short walk has room for.
_FEW = 1 << 8

#: Threads and stack cells that a walk has room for, and how many threads it follows, before it is done in slices.
ROOM, _AT_ONCE = 1 << 10, 1 << 16

#: How many nodes a slice looks at, and how much it does where counts are told apart: a millisecond or two, about.
_NODES, _PIECES = 1 << 19, 1 << 16

#: Pieces of the counts of a state along one way through the trie.
_MOST_PIECES = 1 << 16

#: Threads, cells, sets, and threads of all sets that a walk in slices has room for at first.
_MOST_THREADS, _MOST_CELLS, _MOST_SETS, _MOST_MEMBERS = 1 << 13, 1 << 16, 1 << 11, 1 << 17

#: Nodes, threads and cells that tell two configurations apart: past that one of them is walked by itself.
_FAR_APART = 8_000

#: The same where counts alone tell them apart.
_NEAR_APART = 60_000

#: Pairs of states of which it is kept for how many bytes they do the same, and how many lead to another one.
_MOST_PAIRS, _MOST_EDGES = 1 << 13, 1 << 16

#: The zones that a count can stay in, as kernels number them: below the minimum, and from there below the maximum.
BELOW, BETWEEN = 0, 1


#: A trie as kernels have it.
_Trie: TypeAlias = (
    "tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]"
)

#: The scratch of `kernels.walk_stack`: threads and cells, slots, and numbers by depth.
_Stacks: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]"


#: For how many bytes pairs of states do the same, as `kernels.agreement` has it: pairs, bytes, slots.
Agreement: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]"


def no_agreement(room: int = 0) -> Agreement:
    """Nothing yet, with room for so many pairs."""
    return np.empty(room, np.int64), np.empty(room, np.int32), np.full(2 * room, -1, np.int32)


_UNTOLD, _NOT_YET = no_agreement(), np.zeros(1, np.int64)


def stack_scratch(room: int, deepest: int) -> _Stacks:
    """Scratch of a walk with so many threads and cells at most, over tokens of so many bytes."""
    stacks, slots = np.empty((3 * room, kernels.CELL), np.int64), np.empty(2 * room, np.int32)
    return stacks, slots, np.empty((3, deepest + 3), np.int64)


class _Scratch(threading.local):
    """Arrays that the kernels write to, one set for each thread and size of vocabulary."""

    def __init__(self) -> None:
        self._arrays: Memo[tuple[int, int], tuple[NDArray[np.int32], NDArray[np.int32]]] = Memo(_MOST_SIZES)
        self._intervals, self._pieces = np.empty((6, 0), np.int32), np.empty((0, 4), np.int64)
        self._stacks: _Stacks | None = None
        self._edges: NDArray[np.int32] | None = None

    def intervals(self, size: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Six rows of at least ``size``, and as many pieces that counts are told apart in, up to a bound."""
        if self._intervals.shape[1] < size:
            self._intervals = np.empty((6, size), np.int32)
            self._pieces = np.empty((min(size, _MOST_PIECES), 4), np.int64)
        return self._intervals, self._pieces

    def edges(self) -> NDArray[np.int32]:
        """Pairs of numbers that `kernels.agreement` writes to."""
        if self._edges is None:
            self._edges = np.empty((_MOST_EDGES, 2), np.int32)
        return self._edges

    def stacks(self, deepest: int) -> _Stacks:
        """What `stack_scratch` has, for tokens of so many bytes at most."""
        if self._stacks is None or self._stacks[-1].shape[1] < deepest + 3:
            self._stacks = stack_scratch(ROOM, deepest)
        return self._stacks

    def of(self, tokens: int, nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        found = self._arrays.get((tokens, nodes))
        if found is None:
            found = np.empty(tokens + 64, np.int32), np.empty(nodes + 64, np.int32)
            self._arrays[tokens, nodes] = found
        return found


_scratch = _Scratch()


def trie_head(vocabulary: Vocabulary) -> Head:
    """Where kernels find a vocabulary's trie, with the scratch of short walks; see `structgen.kernels.store.layout`."""
    found: Head | None = vocabulary.for_walks.get("head")
    if found is None:
        trie = vocabulary.trie
        found = Head(kernels.TRIE_HEAD)
        found.put(kernels.V_BYTE, trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids, trie.upper)
        stacks, slots, by_depth = stack_scratch(_FEW, trie.max_depth)
        notes, config = np.empty((2, kernels.NOTES), np.int64), np.empty(2 * _MOST_FRAMES + 2, np.int64)
        found.put(kernels.V_HEIGHTS, heights(vocabulary), stacks, slots, by_depth, notes, config)
        for place, array in (kernels.V_UPPER, trie.upper), (kernels.V_BY_DEPTH, by_depth), (kernels.V_NOTES, notes):
            found.words[place + 1] = array.shape[1]  # of so many rows
        found.put(
            kernels.V_FOUND,
            np.empty(len(trie.token_ids) + 64, np.int32),
            np.empty(len(trie.byte) + 64, np.int32),
            np.empty(len(trie.byte) + 64, np.int32),
            np.empty(len(trie.token_ids) + vocabulary.spelled // LONG_GAP + 64, np.uint16),
            np.zeros(vocabulary.words + 1, np.uint32),
        )
        found = vocabulary.for_walks.setdefault("head", found)  # another thread may have been faster
    return found


class Reached(NamedTuple):
    """Where tokens lead, part by part.

    Parameters
    ----------
    ids, which:
        Tokens, ``int32[*]``, and for each the number of the set of threads that it leads to.
    sets:
        Their threads, each as state, count and cell; at the end of the text where one popped.
    cells:
        The cells, ``int64[*, 5]``.
    below:
        The nodes at which tokens are left to what is below the cells, in all parts so far.
    """

    ids: NDArray[np.int32]
    which: NDArray[np.int64]
    sets: list[list[list[int]]]
    cells: NDArray[np.int64]
    below: NDArray[np.int32]


class CountedWalk(NamedTuple):
    """What `kernels.walk_stack_counted` found: ids and nodes for every count, and those with intervals."""

    ids: NDArray[np.int32]
    tokens: tuple[NDArray[np.int32], ...]
    below: NDArray[np.int32]
    nodes: tuple[NDArray[np.int32], ...]


class _Sets:
    """Scratch arrays of `kernels.walk_sets`, ``times`` their first size, and how far the walk came."""

    def __init__(self, tokens: int, width: int, deep: int, known: NDArray[np.int64], times: int) -> None:
        self.progress = np.zeros(kernels.PROGRESS, np.int64)
        self.progress[kernels.P_CELLS] = len(known)
        sets, most = times * _MOST_SETS, times * _MOST_CELLS
        self.steps = np.empty(tokens, np.int32)
        self.cells = np.empty((most, kernels.CELL), np.int64)
        self.cells[: len(known)] = known
        self._begins = np.empty(sets + 1, np.int32)
        self._members = np.empty((times * _MOST_MEMBERS, 3), np.int64)
        self.arrays = (
            np.zeros(deep, np.int32),
            np.empty((times * _MOST_THREADS, 3), np.int64),
            self.cells,
            np.empty(2 * most, np.int32),
            self._begins,
            self._members,
            np.empty(sets, np.bool_),
            np.empty(2 * sets, np.int32),
            np.empty(sets * width, np.int32),
        )

    def threads_after(self, step: int) -> list[list[int]]:
        """The threads of a set, each as state, count and cell; with the end of the text where one popped."""
        begin, end = self._begins[step >> 1 : (step >> 1) + 2]
        found: list[list[int]] = self._members[begin:end].tolist()
        return [*found, [END, 0, -1]] if step & 1 else found


class StackWalker:
    """The kernels' form of an automaton, and the walks over the vocabulary's trie.

    Parameters
    ----------
    tables, vocabulary:
        What to walk.
    pause:
        Called between the slices of long walks.
    show:
        Called with the kernels' form of the automaton whenever it is laid out.
    """

    def __init__(
        self,
        tables: PushdownTables,
        vocabulary: Vocabulary,
        pause: Callable[[], object],
        show: Callable[[StackWalker], object] = lambda _: None,
    ) -> None:
        self._pause, self._show = pause, show
        self._tables = tables
        self._vocabulary = vocabulary
        self._deepest = vocabulary.longest
        self._words = vocabulary.row_words
        self._weights: NDArray[np.float64] | None = None
        self._lay_out()

    @cached_property
    def _trie(self) -> _Trie:
        """The vocabulary's, which steps do not need."""
        trie = self._vocabulary.trie
        return trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids

    @property
    def _sizes(self) -> tuple[int, int]:
        """Numbers of tokens and of nodes."""
        return len(self._trie[4]), len(self._trie[0])

    @property
    def _classes(self) -> NDArray[np.uint8]:
        """The class of each byte, ``uint8[256]``."""
        begin = self.arena[kernels.A_CLASS_OF]
        return self.arena[begin : begin + 256].astype(np.uint8)

    @property
    def weights(self) -> NDArray[np.float64]:
        """How many nodes of the trie are below the bytes of each class, ``float64[classes]``."""
        if self._weights is None:
            self._weights = self._vocabulary.trie.nodes_below(self._classes)
        return self._weights

    @property
    def narrowest_base(self) -> float:
        """How many nodes are below the bytes of a state at least that is compared with another one."""
        return float(_WORTH_A_BASE * self.weights.sum())

    @property
    def shares(self) -> NDArray[np.float64]:
        """`narrowest_base`, and what part of that the widest edge of such a state has, ``float64[2]``."""
        return np.array([self.narrowest_base, _WORTH_A_BASE])

    def _lay_out(self, sets: NDArray[np.int32] | None = None) -> None:
        """Take the tables as they are now, with the sets of an earlier form, and room for as many more."""
        tables = self._tables
        if sets is None:
            self.arena = tables.arena()
        else:
            self.arena = tables.arena(2 << len(sets).bit_length())
            words = int(self.arena[self.arena[kernels.A_SETS]])
            kernels.number_sets(self.arena, np.pad(sets, ((0, 0), (0, words - sets.shape[1]))))
        self._open = tables.open
        self._widest = tables.widest
        self._weights = None
        self._show(self)
        self._weight_of: dict[int, float] = {}  # by state
        self._agreement, self._agreeing = _UNTOLD, _NOT_YET

    def take_tables(self) -> None:
        """Lay the tables out as they are now: states were lowered that no walk came to."""
        self._lay_out(self._sets() if self._widest > PAIR else None)

    def has_grown(self) -> bool:
        """Whether a kernel came to open states of the form that is there; they are lowered."""
        return self._has_grown(self.arena)

    def _has_grown(self, arena: NDArray[np.int32]) -> bool:
        """Whether a walk of an arena came to open states. They are lowered then, and it is to be taken again."""
        if not arena[kernels.A_CAME_TO]:
            return False
        came_to = {int(arena[kernels.A_CAME_TO]) - 1} - {kernels.NO_SET - 1}
        if arena is self.arena:
            still_open = np.fromiter(self._open, np.int64, len(self._open))
            rows = arena[kernels.A_ROWS] + still_open
            came_to.update(still_open[arena[rows] != 0].tolist())
            arena[rows] = 0
            arena[kernels.A_CAME_TO] = 0
        before = self._tables.open
        self._tables.lower(came_to)
        if arena is self.arena or self._tables.open is not before:
            self.take_tables()
        return True

    def _sets(self) -> NDArray[np.int32]:
        """The sets that have numbers, ``int32[sets, words]``, in their order."""
        begin = int(self.arena[kernels.A_SETS])
        words, room, n = self.arena[begin : begin + kernels.SET_HEADER].tolist()
        begin += kernels.SET_HEADER + 2 * room
        return self.arena[begin : begin + n * words].reshape(n, words)

    @property
    def set_bytes(self) -> int:
        """About the bytes of the sets that have numbers, with those that whoever walks has of them."""
        sets = self._sets()
        return sets.nbytes + 100 * len(sets)

    def word(self, count: int) -> int:
        """What kernels have for a count or a set: the same, or the number of a set of more than `PAIR` members."""
        if count < kernels.NUMBERED or self._widest <= PAIR:
            return count & (kernels.NUMBERED - 1)
        number = -1
        while number < 0:
            width = int(self.arena[self.arena[kernels.A_SETS]])
            words = [count >> begin & 0x7FFFFFFF for begin in range(0, 31 * width, 31)]
            number = kernels.number_sets(self.arena, np.array([words], np.int32))
            self._has_grown(self.arena)
        return int(kernels.NUMBERED + number)

    def _settled(self, walk: Callable[[NDArray[np.int32]], T]) -> T:
        """What a walk finds once all states are lowered that it comes to."""
        while True:
            arena = self.arena
            found = walk(arena)
            if not self._has_grown(arena) and arena is self.arena:  # nor was it laid out anew in between
                return found

    @property
    def nbytes(self) -> int:
        """Bytes of the arena, with room for all rows, of the sets that there are, and of pairs of states."""
        taken = self.arena.nbytes + sum(each.nbytes for each in self._agreement)
        if self._widest > PAIR:
            begin = int(self.arena[kernels.A_SETS])
            words, room, n = self.arena[begin : begin + kernels.SET_HEADER].tolist()
            taken -= 4 * (words + 2) * (room - n)  # nothing was written there
        return int(taken)

    def narrow(
        self, residual: NDArray[np.int32], config: tuple[int, ...], at_once: int = _AT_ONCE
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Allowed ids in the trie's order and ascending residual nodes: views that the next walk overwrites.

        What takes more than ``at_once`` threads is walked in slices.
        """
        self._pause()
        ids, below = _scratch.of(*self._sizes)
        here, nodes = np.array(config, np.int64), self._sizes[1]
        n, m, node = self._settled(
            lambda arena: kernels.walk_stack(
                *self._trie,
                self._vocabulary.trie.upper,
                arena,
                residual,
                here,
                at_once,
                nodes,
                *_scratch.stacks(self._deepest),
                ids,
                below,
            )
        )
        if node < nodes:
            ((_, n, m),) = deque(self._in_slices(residual, *self._cells(config), (n, m, node), ids, below), 1)
        return ids[:n], below[:m]

    def whole(self, threads: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int32]:
        """The ids that some threads allow on stacks known down to the bottom: a view that the next walk overwrites.

        ``int64[*, 3]`` and ``int64[*, 5]``, as `structgen.kernels` has threads and cells.
        """
        ids, below = _scratch.of(*self._sizes)
        ((_, n, _),) = deque(self._in_slices(np.zeros(1, np.int32), threads, cells, (0, 0, 0), ids, below), 1)
        return ids[:n]

    def reached(
        self, threads: NDArray[np.int64], cells: NDArray[np.int64], residual: NDArray[np.int32] | None = None
    ) -> Iterator[Reached]:
        """Where tokens lead from some threads on such cells, entered at residual nodes, at the root if not."""
        ids, below = _scratch.of(*self._sizes)
        before, nodes = 0, np.zeros(1, np.int32) if residual is None else residual
        for sets, n, m in self._in_slices(nodes, threads, cells, (0, 0, 0), ids, below):
            steps, which = np.unique(sets.steps[before:n], return_inverse=True)
            after = [sets.threads_after(step) for step in steps.tolist()]
            yield Reached(ids[before:n].copy(), which, after, sets.cells, below[:m].copy())
            before = n

    def _cells(self, config: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The thread of a configuration, and the cells of its frames."""
        frames = [*zip(config[-2:1:-2], config[:1:-2], strict=True)]
        ends = np.logical_and.accumulate([self._tables.returns[state] for state, _ in frames])
        cells = [(*frame, below - 1, end, 0) for below, (frame, end) in enumerate(zip(frames, ends, strict=True))]
        return np.array([(*config[:2], len(cells) - 1)], np.int64), np.array(cells, np.int64).reshape(-1, 5)

    def _in_slices(
        self,
        residual: NDArray[np.int32],
        threads: NDArray[np.int64],
        cells: NDArray[np.int64],
        found: tuple[int, int, int],
        ids: NDArray[np.int32],
        below: NDArray[np.int32],
    ) -> Iterator[tuple[_Sets, int, int]]:
        """What threads on such cells allow, entered at residual nodes, from a node on; so much was found before it.

        Yields how much is found so far, and the sets that this leads to, whenever these are forgotten and at the end.
        What is remembered of sets has bounds, at which it is forgotten; they grow only where a node needs more.
        """
        trie = self._trie
        n, m, start = found
        times = 1
        while len(cells) >= times * _MOST_CELLS:
            times *= 4
        while True:
            arena = self.arena  # others may take the tables anew between two slices
            width = int(arena[kernels.A_CLASSES]) + 1
            sets = _Sets(self._sizes[0], width, self._deepest + 3, cells, times)
            left = residual[trie[2][residual] > start]
            sets.progress[[kernels.P_IDS, kernels.P_BELOW]] = n, m
            status = kernels.TOO_MUCH_WORK
            while status == kernels.TOO_MUCH_WORK:
                self._pause()
                status = kernels.walk_sets(
                    *trie, arena, left, threads, start, _NODES, sets.progress, *sets.arrays, ids, sets.steps, below
                )
            if self._has_grown(arena) or arena is not self.arena:  # which somebody came to open states in
                continue
            n, m = sets.progress[[kernels.P_IDS, kernels.P_BELOW]].tolist()
            yield sets, n, m
            if status == kernels.OK:
                return
            came_to = int(sets.progress[kernels.P_NODE])
            times, start = times if came_to > start else 4 * times, max(start, came_to)

    def difference(
        self,
        config: tuple[int, ...],
        base: tuple[int, ...],
        most: int | None = None,
        agreement: Agreement | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """Ids and nodes in which two configurations differ; views, as in `narrow`. None where that is too much.

        That is more than ``most`` or `_FAR_APART`.
        """
        self._pause()
        ids, below = _scratch.of(*self._sizes)
        both = np.array(config, np.int64), np.array(base, np.int64)
        notes = np.empty((2, kernels.NOTES), np.int64)
        n, m = self._settled(
            lambda arena: kernels.walk_stack_difference(
                *self._trie, self._vocabulary.trie.upper, heights(self._vocabulary), arena, *both,
                most or _FAR_APART, *_scratch.stacks(self._deepest), notes,
                *(agreement or _UNTOLD), ids, below,
            )
        )  # fmt: skip
        return None if n < 0 else (ids[:n], below[:m])

    def difference_of_alike(
        self, config: tuple[int, int], base: tuple[int, int]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """`difference` of two states that may do the same for many bytes; None, too, where that is not known."""
        both = np.array(config, np.int64), np.array(base, np.int64)
        if 4 * self._agreeing[0] >= 3 * len(self._agreement[0]):  # nearly full, or not there
            self._agreement, self._agreeing = no_agreement(_MOST_PAIRS), np.zeros(1, np.int64)
        told = self._settled(
            lambda arena: kernels.agreement(
                arena, *both, self._deepest, *self._agreement, self._agreeing, _scratch.edges()
            )
        )
        return self.difference(config, base, agreement=self._agreement) if told > 0 else None

    def near(
        self, config: tuple[int, ...], state: int, zone: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]] | None:
        """`difference` from a state whose count stays in a zone."""
        return self.difference(config, (state, kernels.UNBOUNDED - zone), _NEAR_APART)

    def subautomaton(self, state: int, zone: int | None = None) -> Subautomaton | None:
        """The automaton that begins at a state, as it is while all counts stay in a zone, or as it is."""
        return self._settled(lambda arena: subautomaton(arena, state, zone))

    def closed(self, automaton: Subautomaton) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The row and the residual list of the first state of an automaton that does not count."""
        return self._closed(automaton.table, POP)

    def spelled(self, state: int, count: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]] | None:
        """`closed` for a state with a count, 0 for none; None where it calls or is large."""
        table = self._settled(lambda arena: spelled(arena, state, count, self._deepest))
        return None if table is None else self._closed(table, MOST_SPELLED)

    def _closed(self, table: NDArray[np.int32], pop: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        row = np.zeros(self._words + 1, np.uint32)  # the last word takes the spare bit
        _, below = _scratch.of(*self._sizes)
        trie = self._vocabulary.trie
        m = kernels.walk_row(
            trie.byte, trie.depth, trie.skip, trie.token, trie.twins, table.reshape(-1), self._classes,
            table.shape[1], 0, np.empty(self._deepest + 1, np.int32), row, pop, below,
        )  # fmt: skip
        return row[:-1], below[:m].copy()

    def uncounted(self, state: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """The row and the residual list of a state, entered without a count."""
        spelled = self.spelled(state, 0)
        if spelled is not None:
            return spelled
        ids, below = self.narrow(np.zeros(1, np.int32), (state, 0))
        return row_of(ids, self._words), below.copy()

    def counted(self, state: int, bounds: tuple[int, int]) -> CountedWalk | None:
        """All counts of a state at once, in a loop with these bounds; None where that is too much."""
        return self._settled(lambda arena: self._counted(arena, state, bounds))

    def _counted(self, arena: NDArray[np.int32], state: int, bounds: tuple[int, int]) -> CountedWalk | None:
        size, told, node = 1 << 12, 0, 1
        ids, below = _scratch.of(*self._sizes)
        slices: list[list[NDArray[np.int32]]] = []
        while node < self._sizes[1]:
            rows, pieces = _scratch.intervals(size)
            a, b, c, d, after = kernels.walk_stack_counted(
                *self._trie, arena, state, *bounds, node, _PIECES, np.empty(self._deepest + 2, np.int64), pieces, ids,
                *rows[:3], below, *rows[3:],
            )  # fmt: skip
            if a < 0 and size > 128 * self._sizes[0]:
                return None
            if a < 0:
                size *= 8
                continue
            told, node = told + b + d, after
            if told > 128 * self._sizes[0]:
                return None
            slices.append([ids[:a].copy(), *rows[:3, :b].copy(), below[:c].copy(), *rows[3:, :d].copy()])
            self._pause()
        always, *tokens, below, first, second, third = map(np.concatenate, zip(*slices, strict=True))
        return CountedWalk(always, tuple(tokens), below, (first, second, third))

    # -- choosing what to compare with -----------------------------------------------------------------

    def base(self, state: int) -> tuple[int, ...] | None:
        """The configuration that the widest edges lead to and that they stay in; None where that is the state."""
        config = np.empty(2 * _MOST_FRAMES + 2, np.int64)
        n = self._settled(
            lambda arena: kernels.approach_base(
                arena, state, self.weights, self.narrowest_base, _WORTH_A_BASE, kernels.LONGEST_APPROACH, config
            )
        )
        return tuple(config[:n].tolist()) if n else None

    def counts_in(self, state: int) -> int | None:
        """The state in which the widest edge of another one, itself without a count, sets a count to 1."""
        if self._tables.live[state] >= 0 or self.weight(state) < self.narrowest_base:
            return None
        entry, share, _ = self._settled(lambda arena: kernels.widest_entry(arena, state, self.weights))
        tables = self._tables
        moves = tables.moves[entry - tables.states] if entry >= tables.states else []
        if share < _WORTH_A_BASE or len(moves) != 1 or moves[0][0] is None or moves[0][1]:
            return None
        operation, _, inside, *_ = moves[0][0]
        return inside if operation == SET and self._tables.live[inside] >= 0 else None

    def weight(self, state: int) -> float:
        """The number of trie nodes below the bytes that a state takes."""
        found = self._weight_of.get(state)
        if found is None:
            found = float(self._settled(lambda arena: kernels.widest_entry(arena, state, self.weights)[2]))
            self._weight_of[state] = found
        return found


def stretches(
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
