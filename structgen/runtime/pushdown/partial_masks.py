"""Rows of an automaton with a stack: what a state decides whatever lies below it, and what it leaves open.

A token may reach below the stack that its first byte found: ``"},`` ends a string, an object, and goes on with
whatever encloses it. So a state ``q`` is walked with the stack below unknown. Most tokens are decided. Where the
walk would pop below the bottom, the rest of the token is up to the state there, and the trie node is put on the
*residual list* ``R``. Resuming composes: from ``R`` and the state below follow further decided tokens and a further
residual list ::

    mask(q r1 r2 ...) = row(R0, q) | row(R1, r1) | row(R2, r2) | ...      R0 = {root}
    (row(R, s), next R) = decide(R, s)                                    until R is empty

Both sides of `decide` are finite tables, worked out once; a mask is one row and a few more look-ups.

Wide states are walked only where they differ. Inside a string nearly every token is allowed, and so it is at every
letter of every key of an open object, since the key may become another one. A state whose widest edge leads to a
configuration that stays in place is walked beside that configuration, and a subtree is left out as soon as
both have come to the same threads. What such a state in a string, with nothing above the unknown bottom,
decides is a property of the string automaton alone: it is *shared*, kept with the vocabulary under a hash of that
automaton.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...system.locks import Lock, Rank
from ...system.memo import first
from ...system.types import Array
from ...vocabulary.vocabulary import Vocabulary
from ..automaton.tables import representative
from ..core.dense_rows import ARENAS
from ..rows.head import FirstTables, Head, longer
from ..rows.residuals import NOTHING, ROOT, Residuals
from ..rows.row_pool import MOST_GROWN, RowPool
from .counts import Counts, counts_of
from .shared_masks import PartialRow, SharedMasks, SharedMaskStore
from .stacks import Thread, laid_out
from .subautomata import calling_states
from .tables import PAIR, PushdownTables
from .walker import BELOW, BETWEEN, Reached, StackWalker, stretches, trie_head

__all__ = ["NOTHING", "ROOT", "PartialRow", "StateMasks"]

#: Partial masks that there is room for to begin with.
_FEW_PARTS = 1 << 6

_NO_ARENA = np.zeros(0, np.int32)

#: A state with fewer trie nodes below the bytes it takes is walked without looking for a base.
_WIDE = 20_000

#: So many nodes are looked at before it is asked what a state that leads far has in common with others.
_SHORT = 1 << 12

#: A state so near a bound is walked; one that is further is compared with the same where no bound matters.
_FEW_LEFT = 16

#: Bytes of a partial mask with its slots; and with its row and residual list at most, about.
_BYTES_OF_PART, _BYTES_OF_LARGEST = 56, 1 << 20

#: Wide states that were walked last, which others are compared with.
_MOST_MODELS = 4

#: Nodes, threads and cells that may tell a state from a shared mask's by which it is walked.
_ALIKE = 1_600


#: The tables to begin with.
_FIRST = FirstTables(kernels.MACHINE_HEAD, {
    kernels.M_ARENA: np.zeros(0, np.int32), kernels.M_PARTS: np.zeros((_FEW_PARTS, 5), np.int64),
    kernels.M_PART_SLOTS: np.full(2 * _FEW_PARTS, -1, np.int32), kernels.M_STORED: np.zeros((0, 5), np.int32),
    kernels.M_STRETCHES: np.zeros((0, 4), np.int32),
})  # fmt: skip


class _Parts:
    """Partial masks in arrays, where kernels find them: those of a file in order, and what was decided since.

    Parameters
    ----------
    head:
        Where kernels look for the tables.
    """

    def __init__(self, head: Head) -> None:
        self._head = head
        self._table, self._slots = head[kernels.M_PARTS], head[kernels.M_PART_SLOTS]

    def _hold(self, room: int) -> None:
        """Have room for so many."""
        table = np.zeros((room, 5), np.int64)
        used = len(self)
        table[:used] = self._table[:used]
        self._table = table
        self._head.put(kernels.M_PARTS, table)
        self._number(2 * room)

    def _number(self, slots: int) -> None:
        before, self._slots = self._slots, np.full(slots, -1, np.int32)
        kernels.move_part_slots(self._head.words, self._slots, kernels.address(self._slots))
        self._head[kernels.M_PART_SLOTS] = self._slots
        del before  # which kernels read until now

    def __len__(self) -> int:
        """How many were decided since what is stored was."""
        return int(self._head.words[kernels.M_USED])

    @property
    def stored(self) -> NDArray[np.int32]:
        """Those of a file, ``int32[*, 5]``: residual list, state, count, row, next list."""
        return self._head[kernels.M_STORED]

    def get(self, residual: int, state: int, number: int) -> PartialRow | None:
        """What is known of a key."""
        row, after = kernels.find_part(self._head.words, residual, state, number)
        return (row, after) if row >= 0 else None

    def add(self, residual: int, state: int, number: int, found: PartialRow) -> None:
        """Keep what was decided of a key."""
        while kernels.add_part(self._head.words, residual, state, number, *found):
            self.make_room()

    def make_room(self) -> None:
        """Have room for one more."""
        if 2 * len(self) + 2 > len(self._slots) or len(self) == len(self._table):
            self._hold(longer(len(self._table)))

    def cut(self, count: int) -> None:
        """Keep the first that were decided only."""
        self._head.words[kernels.M_USED] = count
        self._number(len(self._slots))

    def store(self, stored: Array) -> None:
        """Have these as those of a file, ``int[*, 5]``, in order, and none that were decided since."""
        self._head.put(kernels.M_STORED, stored.astype(np.int32, copy=False))
        if len(self):
            self._head.words[kernels.M_USED] = 0
            self._number(2 * _FEW_PARTS)  # before the table gets shorter
            self._hold(_FEW_PARTS)

    def all(self) -> NDArray[np.int64]:
        """All of them in order, ``int64[*, 5]``, without those of a state above another one."""
        found = np.concatenate([self.stored.astype(np.int64), self._table[: len(self)]])
        found = found[found[:, 0] >= 0]
        ordered: NDArray[np.int64] = found[np.lexsort(found.T[2::-1])]
        return ordered


class StateMasks:
    """The partial masks of a pushdown automaton's states over one vocabulary, each worked out once.

    Parameters
    ----------
    tables, vocabulary:
        What to walk.
    pool, residuals:
        Rows and residual lists that are there already.
    """

    def __init__(
        self,
        tables: PushdownTables,
        vocabulary: Vocabulary,
        pool: RowPool | None = None,
        residuals: Residuals | None = None,
    ) -> None:
        self.tables = tables
        self.vocabulary = vocabulary
        #: Held while rows are worked out, and passed on between walks and in long ones.
        self.lock = Lock(Rank.MACHINE)
        self.pool = pool if pool is not None else RowPool(vocabulary.spelled)
        self.residuals = residuals if residuals is not None else Residuals()
        self.shared = SharedMaskStore(tables, vocabulary, self.pool, self.residuals, self)
        #: Where kernels find all this; see `structgen.kernels.store.layout`.
        self.head = Head(_FIRST)
        self.head.put(kernels.M_POOL, self.pool.head.words)
        self.head.put(kernels.M_LISTS, self.residuals.head.words)
        self.head.lend(kernels.M_OFFSETS, vocabulary.offsets, vocabulary.blob, vocabulary.eos_row)
        self.head.words[kernels.M_LONGEST] = vocabulary.longest
        self._say_what_is_beyond()
        #: By residual list, state and count, or set: what is decided.
        self.parts = _Parts(self.head)
        #: By counting state those of its `stretches` that are not laid out yet.
        self._told: dict[int, NDArray[np.int32]] = {}
        self._calling: NDArray[np.bool_] | None = None
        self._counts: Counts | None = None
        self._wide_sets: dict[int, int] = {}  # by set of more than `PAIR` members, what stands for it in keys
        self._walker: StackWalker | None = None
        #: How often all that a wide state allows was looked at.
        self.long_walks = 0
        self._models: tuple[tuple[tuple[int, int], PartialRow], ...] = ()  # see `_like_an_earlier_one`
        self.mark()

    def mark(self) -> None:
        """Keep all that is known now, whatever `forget` forgets later."""
        self._kept = self.pool.mark(), self.residuals.mark()
        self._looks_at = 0  # when so many are there it is looked whether it is time to `forget`
        self._entries = len(self.parts), len(self._wide_sets), len(self.shared.uses)
        self._kept_stretches = self.stretches

    def is_full(self) -> bool:
        """Whether it is time to `forget`. What is decided between two looks takes less than what was left."""
        if len(self.parts) < self._looks_at:
            return False
        sets = self._walker.set_bytes if self._walker is not None and self.tables.widest > PAIR else 0
        parts = len(self.parts)
        left = MOST_GROWN - self.pool.grown - self.residuals.grown - _BYTES_OF_PART * (parts - self._entries[0]) - sets
        self._looks_at = parts + left // _BYTES_OF_LARGEST
        return left < 0

    def forget(self) -> None:
        """Forget what came since the last mark: other rows and residual lists will have those numbers."""
        rows, residuals = self._kept
        decided, sets, used = self._entries
        self.parts.cut(decided)
        self._wide_sets = first(self._wide_sets, sets)
        self._told = {}
        self.lay_out_stretches(self._kept_stretches)
        self.head.words[kernels.M_GENERATION] += 1  # kernels forget what they know of these rows, before they go
        self.pool.cut(rows)
        self.residuals.cut(residuals)
        self.shared.cut(used)
        self._models = ()
        self._looks_at = 0
        if self.tables.widest > PAIR:
            self.let_go()  # of a walker that knows sets

    @property
    def generation(self) -> int:
        """How often what came since the last mark was forgotten: numbers of rows and residual lists belong to one."""
        return int(self.head.words[kernels.M_GENERATION])

    def decide(self, residual: int, state: int, count: int) -> PartialRow:
        """What ``state`` decides when entered at the nodes of a residual list; ``count`` is a count or a set."""
        found = self._at_count(state, count) if count and residual == ROOT else None
        if found is not None:
            return found
        number = self._number(state, count)
        found = self.parts.get(residual, state, number)
        if found is None:
            self._find(residual, state, number, count)
            found = self.parts.get(residual, state, number)
            assert found is not None
        return found

    def _find(self, residual: int, state: int, number: int, count: int) -> None:
        """`decide` what is not known: by a kernel, if that is quickly done."""
        while status := kernels.decide_part(self.head.words, residual, state, number):
            if not self.provide(status):
                own = count if number and self.tables.registers[state] else number
                self.parts.add(residual, state, number, self._walked(residual, state, own, status))
                return

    def provide(self, status: int) -> bool:
        """Do what a kernel that decides needs before it can go on; False for what is left to walks."""
        if status in (kernels.NO_ARENA, kernels.NOT_LOWERED):
            self.come_by_open_states()
        elif status == kernels.NO_TRIE:
            self._show_trie()
        elif status == kernels.NO_LIST:
            self.residuals.fetch(int(self.residuals.head.words[kernels.L_MISSING]))
        elif status == kernels.NO_SPACE:
            self.pool.make_room()
            self.residuals.make_room()
            self.parts.make_room()
        return status not in (kernels.NOT_NARROW, kernels.NOT_LISTED)

    def decide_next(self, status: int) -> None:
        """Do what a kernel needs that decides what a mask lacks, or decide what it came to and left to walks."""
        if not self.provide(status):
            residual, state, number = self.head.words[kernels.M_LISTED : kernels.M_NUMBER + 1].tolist()
            self.parts.add(residual, state, number, self._walked(residual, state, number, status))

    def _number(self, state: int, count: int) -> int:
        """What stands for a count or a set in keys: a count from which tokens fare alike, a set of few members."""
        if not count or self.tables.live[state] < 0:
            return 0
        if not self.tables.registers[state]:
            return self.representative(state, count)
        if count < kernels.NUMBERED:
            return count
        return kernels.NUMBERED + self._wide_sets.setdefault(count, len(self._wide_sets))

    def members(self, number: int) -> int:
        """The set that a number stands for in keys."""
        return number if number < kernels.NUMBERED else [*self._wide_sets][number - kernels.NUMBERED]

    def read(self, parts: NDArray[np.int32], sets: Sequence[int]) -> None:
        """Keep partial masks of a file, ``int32[*, 5]``, of states that are told apart by ``sets``, from 1 on."""
        registers = self.tables.registers
        for residual, state, count, row, after in parts.tolist():
            number = self._number(state, sets[count - 1]) if count and registers[state] else count
            self.parts.add(residual, state, number, (row, after))
        self.mark()

    @property
    def stretches(self) -> NDArray[np.int32]:
        """What counting states decide by stretches of counts, ``int32[*, 4]``: state, count, row, next list."""
        return self.head[kernels.M_STRETCHES]

    def lay_out_stretches(self, stretches: NDArray[np.int32] | None = None) -> None:
        """Have kernels find these, or all so far."""
        if stretches is None:
            stretches = np.concatenate([self.stretches, *self._told.values()])
            stretches = stretches[np.argsort(stretches[:, 0], kind="stable")]
            self._told = {}
        self.head.put(kernels.M_STRETCHES, stretches)

    def _stretches_of(self, state: int) -> NDArray[np.int32]:
        """The stretches of a state; none where they are not known."""
        found = self._told.get(state)
        if found is None:
            begin, end = np.searchsorted(self.stretches[:, 0], (state, state + 1))
            found = self.stretches[begin:end]
        return found

    def _at_count(self, state: int, count: int) -> PartialRow | None:
        """What a state decides at a count, if that is told by stretches."""
        found = self._stretches_of(state)
        at = int(found[:, 1].searchsorted(count, "right")) - 1 if len(found) else -1
        return (int(found[at, 2]), int(found[at, 3])) if at >= 0 else None

    def _walked(self, residual: int, state: int, count: int, status: int) -> PartialRow:
        """`decide` for what a kernel does not, for a reason."""
        if residual == ROOT and state in self.tables.interiors:
            return self._by_interior(*self.tables.interiors[state])
        if status != kernels.NOT_LISTED and residual == ROOT and self._leads_far(state, count):
            found = self._wide(state, count) or self._like_an_earlier_one(state, count)
            if found is not None:
                return found
            self.long_walks += 1
            found = self._narrow(residual, state, count)
            self._take_for_model(state, count, found)
            return found
        return self._narrow(residual, state, count)

    def _narrow(self, residual: int, state: int, count: int) -> PartialRow:
        walk = self.walker()
        ids, below = walk.narrow(self.residuals[residual], (state, walk.word(count)))
        if residual == ROOT and not count and len(ids) > self.pool.longest_list // 2:
            found = self.shared.publish(state, ids, below)
            if found is not None:
                return found
        return self.pool.add_ids(ids), self.residuals.add(below)

    def _like_an_earlier_one(self, state: int, count: int) -> PartialRow | None:
        """A wide state as a difference from one that was walked, with which it does the same for some bytes.

        Those of a long text that is counted twice do, say as words and as characters, or by a pattern.
        """
        if self.tables.registers[state]:
            return None
        config = self._far(state, count)
        for model, held in self._models:
            differs = self.walker().difference_of_alike(config, model)
            if differs is not None:
                found = self.differing(held, *differs)
                ARENAS.note(self, self.walker().nbytes)
                self._take_for_model(state, count, found, model)  # the next one is nearer to this one
                return found
        return None

    def _take_for_model(
        self, state: int, count: int, decided: PartialRow, instead: tuple[int, int] | None = None
    ) -> None:
        if not self.tables.registers[state]:
            others = [each for each in self._models if each[0] != instead]
            self._models = ((self._far(state, count), decided), *others)[:_MOST_MODELS]

    def _far(self, state: int, count: int) -> tuple[int, int]:
        """A state and its count for the walker, which need not be known where it is far from a bound."""
        zone, left = self._zone(state, count) if count else (0, 0)
        return (state, kernels.UNBOUNDED - zone) if left > self.vocabulary.longest else (state, count)

    def _leads_far(self, state: int, count: int) -> bool:
        """Whether a state is wide, and not just like another one but for edges that lead nowhere near as far."""
        weight = self.walker().weight(state)
        return weight >= _WIDE and bool(count or not self.tables.like[state] or weight >= self.walker().narrowest_base)

    def _by_interior(self, interior: int, behind: int) -> PartialRow:
        """What a state at the bottom decides that does as an interior above the state behind it."""
        row, left = self.decide(ROOT, interior, 0)
        if left == NOTHING:
            return row, left
        more, left = self.decide(left, behind, 0)
        return self.pool.union(row, more), left

    def __len__(self) -> int:
        """Number of partial masks."""
        return len(self.parts.stored) + len(self.parts) + len(self.stretches) + sum(map(len, self._told.values()))

    def representative(self, state: int, count: int) -> int:
        """A count from which every token fares as from ``count``: no token counts further than it has bytes."""
        return representative(self.tables.loops[self.tables.live[state]], count, self.vocabulary.longest)

    def known(self, residual: int, state: int, count: int) -> PartialRow | None:
        """What `decide` would give, if that was decided before."""
        found = self._at_count(state, count) if count and residual == ROOT else None
        if found is not None:
            return found
        if count >= kernels.NUMBERED and count not in self._wide_sets and self.tables.registers[state]:
            return None
        return self.parts.get(residual, state, self._number(state, count))

    def takes_long(self, state: int, count: int) -> bool:
        """Whether a state is wide, and what it decides from the root not known."""
        if state < 0 or self.tables.registers[state] or self.known(ROOT, state, count) is not None:
            return False
        return self.is_wide(state)

    def row_of_all(self, threads: tuple[Thread, ...], counted: int, most: int) -> int | None:
        """The row of threads on all that lies below them, found in one walk; None for more than ``most`` frames.

        Their counts and sets are the bits of ``counted``.
        """
        walk = self.walker()
        laid, cells = laid_out(threads, most, lambda count: walk.word(count & counted))
        return self.pool.add_ids(walk.whole(laid, cells)) if len(cells) <= most else None

    def reached(
        self, threads: NDArray[np.int64], cells: NDArray[np.int64], residual: NDArray[np.int32] | None = None
    ) -> Iterator[Reached]:
        """Where tokens lead from threads on such cells; see `StackWalker.reached`."""
        return self.walker().reached(threads, cells, residual)

    def is_wide(self, state: int) -> bool:
        """Whether walking a state visits a good part of the vocabulary."""
        return bool(self.walker().weight(state) >= _WIDE)

    # -- wide states -----------------------------------------------------------------------------------

    def _wide(self, state: int, count: int) -> PartialRow | None:
        """The partial mask of a state that leads far, found by walking less than that; None where it can't be."""
        if count:
            return self._counted(state, count)
        known = self.shared.known(state)
        if known is not None:
            return known
        walk = self.walker()
        base = walk.base(state)
        if base is None:
            alike = self._before_counting(state) or self._like_a_shared_one(state)
            return self.shared.plain(state) if alike is None else self.shared.share(state, alike)
        held = self._configuration(base)
        found = walk.difference((state, 0), base)
        return self.shared.plain(state) if found is None else self.differing(held, *found)

    def differing(self, held: PartialRow, ids: NDArray[np.int32], nodes: NDArray[np.int32]) -> PartialRow:
        """What decides as ``held`` does but for some ids and nodes, which are put in order."""
        if not len(ids) and not len(nodes):
            return held
        while True:
            row, after = kernels.put_difference(self.head.words, *held, ids, nodes)
            if row >= 0:
                return row, after
            if row == kernels.NO_LIST:
                ids, nodes = ids.copy(), nodes.copy()  # to ask for what is shared may take another walk
            self.provide(row)

    def _before_counting(self, state: int) -> PartialRow | None:
        """A wide state that begins to count, as a difference from the one it counts in, with nothing counted."""
        inside = self.walker().counts_in(state)
        if inside is None:
            return None
        held = self._with_nothing_counted(inside)
        if held is None:
            return self._near((state, 0), inside, *self._zone(inside, 0))
        found = self.walker().difference((state, 0), (inside, 0))
        return self.differing(held, *found) if found else None

    def _like_a_shared_one(self, state: int) -> PartialRow | None:
        """A wide state as a difference from the first shared mask that was used, inside any string as a rule."""
        for _, _, model, *held in self.shared.uses:
            if self.tables.live[model] < 0:
                found = self.walker().difference((state, 0), (model, 0), _ALIKE)
                return self.differing((held[0], held[1]), *found) if found else None
        return None

    def _with_nothing_counted(self, state: int) -> PartialRow | None:
        """What a state that counts would decide with a count of 0."""
        minimum, maximum = self.tables.loops[self.tables.live[state]].tolist()
        if minimum > 1:
            return None
        found = self.shared.counted(state, 0)
        if found is None and maximum > self.vocabulary.longest + 1:  # so far away it is all the same
            found = self.decide(ROOT, state, 1)
        return found

    def _configuration(self, config: tuple[int, ...]) -> PartialRow:
        """What a state with some known frames below it decides; ``config`` as in the kernels."""
        states = config[::2]
        key = -1 - states[-1], states[0], 0  # where kernels find it
        found = self.parts.get(*key) if len(states) == 2 else None
        if found is None:
            row, residual = self.decide(ROOT, states[0], 0)
            for state in states[1:]:
                if residual == NOTHING:
                    break
                more, residual = self.decide(residual, state, 0)
                row = self.pool.union(row, more)
            found = row, residual
            if len(states) == 2:
                self.parts.add(*key, found)
        return found

    # -- states that count -----------------------------------------------------------------------------

    def _counted(self, state: int, count: int) -> PartialRow | None:
        """A wide state that counts, by what the vocabulary knows of it."""
        if self.tables.registers[state]:
            return None
        zone, left = self._zone(state, count)
        if left > self.vocabulary.longest:
            return self.shared.unbounded(state, zone)
        found = self.shared.counted(state, count) or self._near((state, count), state, zone, left)
        spelled = self.walker().spelled(state, count) if found is None else None
        return found if spelled is None else (self.pool.add_dense(spelled[0]), self.residuals.add(spelled[1]))

    def _near(self, config: tuple[int, ...], state: int, zone: int, left: int) -> PartialRow | None:
        """What a configuration decides that comes to a state so much before a bound, as a difference from the same
        state with a count that stays in its zone."""
        held = self.shared.unbounded(state, zone) if left >= _FEW_LEFT else None
        found = held and self.walker().near(config, state, zone)
        return self.differing(held, *found) if held and found else None

    def _zone(self, state: int, count: int) -> tuple[int, int]:
        """The zone that a count goes on in, and how far it is to the bound that ends it."""
        minimum, maximum = self.tables.loops[self.tables.live[state]].tolist()
        return (BELOW, minimum - count) if count + 1 < minimum else (BETWEEN, maximum - count)

    def tell_counts(self, state: int) -> NDArray[np.int32] | None:
        """The stretches of a state that counts without calling, ``int32[*, 4]`` as in `stretches`; None for any other,
        or if there are too many."""
        found = self._stretches_of(state)
        if len(found):
            return found
        if self.counts().possible[state] is not None or self._calls(state):
            return None
        told = self.shared.segments(state) if self.is_wide(state) else None
        told = told or self._own_segments(state)
        if told is None:
            return None
        begins, decided = told
        found = self._told[state] = np.column_stack(([state] * len(begins), begins, decided)).astype(np.int32)
        return found

    def _own_segments(self, state: int) -> tuple[list[int], list[PartialRow]] | None:
        self.long_walks += self.is_wide(state)
        minimum, maximum = self.tables.loops[self.tables.live[state]].tolist()
        walked = self.walker().counted(state, (minimum, maximum))
        if walked is None:
            return None
        if len(walked.ids) + len(walked.tokens[0]) > self.pool.longest_list:
            cut = SharedMasks.cut(walked, maximum, self.pool.words)
            rows = map(self.pool.add_dense, cut.rows)
            return cut.begins, list(zip(rows, map(self.residuals.add, cut.residuals), strict=True))
        begins, ids = stretches(walked.ids, walked.tokens, maximum)
        changes, nodes = stretches(walked.below, walked.nodes, maximum)
        together = sorted({*begins, *changes})
        decided = []
        for begin in together:
            row = self.pool.add_ids(ids[bisect_right(begins, begin) - 1])
            decided.append((row, self.residuals.add(nodes[bisect_right(changes, begin) - 1])))
        return together, decided

    def counts(self) -> Counts:
        """Which counts each state can have."""
        if self._counts is None:
            self._counts = counts_of(self.tables)
        return self._counts

    def _calls(self, state: int) -> bool:
        """Whether a state reaches a move that pushes, or several moves for one byte, before it pops."""
        if self._calling is None:
            self._calling = calling_states(self.tables)
        return bool(self._calling[state])

    # -- walking ---------------------------------------------------------------------------------------

    def walker(self) -> StackWalker:
        """What walks the vocabulary."""
        return self._laid_out()

    def _laid_out(self) -> StackWalker:
        """The kernels' form of the automaton, and what walks by it."""
        walker = self._walker
        if walker is None:
            walker = self._walker = StackWalker(self.tables, self.vocabulary, lambda: self.lock.give_way(), self._show)
            ARENAS.note(self, walker.nbytes)
        return walker

    def _show(self, walker: StackWalker) -> None:
        """Have kernels find an arena, and say whether they may step by it."""
        self._say_what_is_beyond()
        self.head.words[kernels.M_TRIE] = 0  # until one of them decides something
        self.head.put(kernels.M_ARENA, walker.arena)

    def _show_trie(self) -> None:
        """Have kernels find the trie, and what they need to tell which walks are short."""
        walker, interiors = self._laid_out(), np.array(sorted(self.tables.interiors), np.int32)
        self.head.put(kernels.M_WEIGHTS, walker.weights, interiors, walker.shares)
        self.head.words[[kernels.M_WIDE, kernels.M_SHORT]] = _WIDE, _SHORT
        self.head.put(kernels.M_TRIE, trie_head(self.vocabulary).words)

    def _say_what_is_beyond(self) -> None:
        """Kernels follow no whole tokens, and number sets of many members anew with each arena."""
        self.head.words[kernels.M_BEYOND] = self.tables.tokens is not None or self.tables.widest > PAIR

    def take_lowered(self) -> None:
        """States were lowered that no walk came to."""
        if self._walker is not None:
            self._walker.take_tables()

    def come_by_open_states(self) -> bool:
        """Have states lowered that a step of a kernel came to, if there are any; have an arena in any case."""
        return self._laid_out().has_grown()

    def let_go(self) -> None:
        """Forget what only walking needs; see `structgen.runtime.core.dense_rows`."""
        self._walker = None
        self.head.put(kernels.M_ARENA, _NO_ARENA)

    def rest(self) -> None:
        """Let go of what only walking needs, and lay out what was decided as it is stored."""
        self.let_go()
        self.pool.compact()
        if not self.tables.widest:  # a set takes more than 32 bits
            self.parts.store(self.parts.all())
        self.lay_out_stretches()
        self.mark()
