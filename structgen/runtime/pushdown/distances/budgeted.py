"""`BudgetedDefinition`: a definition within a grammar of which so many tokens have a byte at most."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ....budget import MOST_STEP_WORK, Meter, StepMeter
from ....errors import BudgetExceededError, FormatError, UnsupportedError
from ....progress import Progress, silent
from ....storage import columns
from ....storage.columns import Column, Columns, Field
from ....storage.container import pack, unpack
from ....system.locks import Lock
from ....system.memo import Memo
from ....system.types import Array, JsonMap, Sections
from ....vocabulary.vocabulary import Vocabulary
from ...automaton.tables import MARK
from ..machine import PushdownMachine
from ..stacks import Thread, laid_out
from .pop_costs import PopCosts

#: The field of the meta section.
_BUDGET = Field("definition_tokens", int, least=1)

#: The one section: a file within the file.
_SECTIONS = Columns(Column("definition", "u1", mapped=True))

#: Places for which it is remembered which tokens are in time, half a megabyte each at most with Llama-3's vocabulary.
_MOST_PLACES = 16

#: What the meter is told.
_DOING = "counting the tokens of a definition"

#: The state of the thread that counts: its count is how many tokens are left. It comes before the others.
_LEFT = -3


class BudgetedDefinition:
    """A definition whose texts are complete within a number of tokens: an `InnerMachine`.

    What completes a text is reckoned exactly, in tokens that end where it ends
    (`structgen.runtime.pushdown.distances.pop_costs`).

    Parameters
    ----------
    machine:
        The definition's automaton.
    max_tokens:
        How many tokens there may be.

    Raises
    ------
    UnsupportedError
        Where the automaton has registers, as objects whose members come in any order do.
    """

    def __init__(self, machine: PushdownMachine, max_tokens: int) -> None:
        machine.lower_all()
        if not _is_counted(machine):
            raise UnsupportedError(
                "max_tokens is not supported for objects that nest without bound and whose members come in any order",
                remedy="Leave property_order at its default, or max_tokens out.",
            )
        self.max_tokens: int | None = max_tokens
        self.start_threads: tuple[Thread, ...] = ((_LEFT, max_tokens, None), *machine.start_threads)
        self._machine = machine
        self.rows, self.pool = machine.rows, machine.pool
        self._meter: Meter | None = None
        self._costs = PopCosts(machine.rows, self._look)
        self._known: Memo[tuple[tuple[Thread, ...], bytes, int], NDArray[np.int32]] = Memo(_MOST_PLACES)

    def belong_to(self, lock: Lock, steps: StepMeter) -> None:
        """See `PushdownMachine`."""
        self._machine.belong_to(lock, steps)
        self._costs.steps = steps

    def check(self, meter: Meter) -> int:
        """The fewest tokens of a text, ``max_tokens + 1`` for more; what that takes is counted.

        The first step over an index that was stored counts them anew. So it must not take more than a step may.
        """
        assert self.max_tokens is not None
        self._meter = meter
        try:
            with self.rows.lock:
                threads, cells = laid_out(self._machine.start_threads)
                (found,) = self._costs.distances([threads.tolist()], cells, self.max_tokens).tolist()
        finally:
            self._meter = None
        return int(found)

    def _look(self) -> None:
        """Give way to other threads; while the definition is compiled, see what it takes."""
        if self._meter is None:
            self.rows.lock.give_way()
            return
        self._meter.check_memory(self._costs.nbytes, _DOING)
        if self._costs.work > MOST_STEP_WORK:
            raise BudgetExceededError(
                f"a step would take more than {MOST_STEP_WORK:,} units of work",
                where=_DOING,
                remedy="Use a smaller max_tokens, or have items and members counted less far.",
            )

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return self._machine.known_rows

    def step(self, threads: tuple[Thread, ...], byte: int) -> tuple[Thread, ...]:
        """Where a byte leads; nothing where it leads nowhere."""
        after = self._machine.step(threads[1:], byte) if threads[0][1] else ()
        return (threads[0], *after) if after else ()

    def after_token(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """Where a text is when a token ends within it; nothing where it can't be completed any more."""
        if not threads or not threads[0][1]:
            return ()
        (_, left, _), *inner = threads
        with self.rows.lock:
            laid, cells = laid_out(inner)
            if not self.may_end(threads) and self._costs.distances([laid.tolist()], cells, left - 1)[0] >= left:
                return ()
        return ((_LEFT, left - 1, None), *inner)

    def may_end(self, threads: tuple[Thread, ...]) -> bool:
        """Whether the text is complete."""
        return self._machine.may_end(threads[1:])

    def candidates(self, threads: tuple[Thread, ...]) -> Iterator[int]:
        """A superset of the bytes that can follow."""
        return self._machine.candidates(threads[1:])

    def decide(self, threads: tuple[Thread, ...], residual: int) -> tuple[set[int], set[int]]:
        """The rows of what goes on from a residual list, and the residual lists left to what follows the text."""
        (_, left, _), *rest = threads
        inner = tuple(rest)
        if not left:
            return set(), {residual} if self.may_end(threads) else set()
        rows, below = self._machine.decide(inner, residual)
        nodes = self.rows.residuals[residual]
        with self.rows.lock:
            if self._costs.farthest(*laid_out(inner), nodes, left - 1) < left:
                return rows, below
            key = inner, nodes.tobytes(), left
            ids = self._known.get(key)
            if ids is None:
                ids = self._known[key] = self._in_time(inner, nodes, left)
        return {self.pool.add_ids(ids)} if len(ids) else set(), below

    def _in_time(self, inner: tuple[Thread, ...], nodes: NDArray[np.int32], left: int) -> NDArray[np.int32]:
        """The tokens that go on within the text and behind which fewer than ``left`` tokens complete it."""
        found = [np.empty(0, np.int32)]
        for part in self.rows.reached(*laid_out(inner), nodes):
            behind = self._costs.distances(part.sets, part.cells, left - 1)
            found.append(part.ids[behind[part.which] < left])
        return np.concatenate(found)

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Decide what is decided ahead of time: what any number of tokens leaves."""
        self._machine.fill(threads=threads, meter=meter, progress=progress)

    def is_crowded(self) -> bool:
        """Whether much is remembered of texts."""
        return self._machine.is_crowded()

    def forget(self) -> None:
        """Forget what is remembered of texts."""
        self._machine.forget()
        self._known.clear()

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        return {_BUDGET.name: self.max_tokens}

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format: the definition's machine, as a file within the file."""
        sections = self._machine.to_sections(self_contained=self_contained)
        return {_SECTIONS[0].name: np.frombuffer(pack(self._machine.to_meta(), sections), np.uint8)}

    @classmethod
    def from_sections(cls, meta: JsonMap, sections: Sections, vocabulary: Vocabulary, where: str) -> BudgetedDefinition:
        """Read `to_meta` and `to_sections`. Raises `FormatError`."""
        most = columns.read_meta(meta, (_BUDGET,), {}, where)[_BUDGET.name]
        (stored,) = columns.read(sections, _SECTIONS, {}, where).values()
        inner, own = unpack(stored.data, f"{where}, {_SECTIONS[0].name}")
        machine = PushdownMachine.from_sections(inner, own, vocabulary, where)
        if not _is_counted(machine):
            what = "a definition with a budget has registers, sets of items, or edges that take tokens"
            raise FormatError(what, where=where)
        return cls(machine, most)

    @classmethod
    def is_meta(cls, meta: JsonMap) -> bool:
        """Whether a meta section is one of `to_meta`."""
        return _BUDGET.name in meta


def _is_counted(machine: PushdownMachine) -> bool:
    """Whether tokens of an automaton's texts can be counted: it has no registers, token edges, or sets of items."""
    if machine.names_tokens() or len(machine.tables.distinct):
        return False
    return not (machine.tables.records[:, 0] == MARK).any()
