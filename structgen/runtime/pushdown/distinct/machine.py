"""`DistinctMachine`: an automaton with a stack, and what items and names have been where they must differ.

What threads do does not depend on the items' values but in one point: where an item ends, threads in an array whose
items must differ are dropped if its value has been there. Threads that are in such an array since the same byte read
the same items, so the set of values is there once, beside them all: that is a place. It begins at an opening bracket
after which some threads are in such an array, and is let go where that array ends, or no thread is in it. What is
nested in its items is told apart in the same way. Other threads, as of a structural tag, are in a place of their own.
Objects whose names must differ are such places, too: where a name ends, threads are dropped if it has been there.

The threads of a place are a configuration of the automaton's store, which steps them and has their mask.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter, StepMeter
from ....errors import UnsupportedError
from ....progress import Progress, silent
from ....system.properties import cached_property
from ....system.types import Array, JsonMap
from ...core.descent import descent
from ...core.interned_machine import Configuration, InternedMachine
from ...core.machine import Distances, SharedRows
from ..machine import PushdownMachine
from ..store.configuration import StoredConfiguration
from .containers import Place
from .places import PlaceReader
from .refusals import Refusals

#: Items of an ending that are not the automaton's.
_MOST_ITEMS = 1 << 10

#: A bracket, where an array may begin.
_BRACKET = re.compile(rb"[\[{]")


class DistinctMachine(InternedMachine[Place]):
    """A machine around a `PushdownMachine` whose tables say where items must differ.

    Its configurations have a place for each byte at which such arrays began, and at most one outside them.

    Parameters
    ----------
    inner:
        The automaton. It must not be used by itself any more: the two have one lock.
    """

    def __init__(self, inner: PushdownMachine) -> None:
        self.inner = inner
        self.pool, self.states, self.tables = inner.pool, inner.states, inner.tables
        self.places = PlaceReader(inner)
        super().__init__(inner.vocabulary, ((inner.start, None),), inner.lock)
        self._sees_tokens = True

    @property
    def steps(self) -> StepMeter:
        """Counts the work of steps: the automaton's, and beginnings of values that are looked at."""
        return self.inner.steps

    # -- following bytes -------------------------------------------------------------------------------

    def _over_token(self, threads: tuple[Place, ...], token_id: int, data: bytes) -> tuple[Place, ...]:
        """The places behind a token. JSON takes no tokens as such and counts none; the place outside is told."""
        if len(threads) == 1 and threads[0][1] is None and not _BRACKET.search(data):
            after = self.inner.advance(threads[0][0], token_id)
            return ((after, None),) if after else ()
        found = self._follow(threads, data) if data else ()
        if not self.inner.names_tokens():
            return found
        threads_of = [here.threads if here else () for here in map(_outside, (threads, found))]
        behind = self.inner.behind_token(threads_of[0], token_id, threads_of[1])
        within = tuple([place for place in found if place[1] is not None])
        if not behind:
            return within
        store = self.inner.stepper()
        return (*within, (StoredConfiguration(store, store.add(behind)), None))

    def _follow(self, threads: tuple[Place, ...], data: bytes) -> tuple[Place, ...]:
        return tuple([place for place in self.places.read(threads, data)[0] if self.places.can_go_on(place)])

    # -- whole tokens ----------------------------------------------------------------------------------

    def may_stop(self, byte_state: tuple[Place, ...]) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token as such."""
        outside = _outside(byte_state)
        return super().may_stop(byte_state) or (outside is not None and self.inner.may_stop(outside))

    def names_tokens(self) -> bool:
        """See `PushdownMachine`."""
        return self.inner.names_tokens()

    def token_sets(self, config: Configuration[Place]) -> list[tuple[frozenset[int], bool]]:
        """See `PushdownMachine`."""
        outside = _outside(config.threads)
        return self.inner.token_sets(outside) if outside else []

    # -- endings ---------------------------------------------------------------------------------------

    def completion(self, config: Configuration[Place]) -> bytes | None:
        """Few bytes that complete a text: the automaton's ending, with another item where that repeats one.

        None where tokens are more than their bytes.
        """
        if self.names_tokens():
            return None
        endings = (self._ending_of(place) for place in config.threads)
        return next((ending for ending in endings if ending is not None), None)

    def _ending_of(self, place: Place) -> bytes | None:
        ending = b""
        for _ in range(_MOST_ITEMS):
            rest = self.inner.completion(place[0])
            if rest is None:  # as of members in any order
                here: tuple[Place, ...] = (place,)
                found = descent(here, self.following, self.may_end)
                return None if found is None else ending + found
            for at in range(len(rest)):
                after = self._follow((place,), rest[at : at + 1])
                if not after:
                    break
                place = after[0]
            else:
                return ending + rest if self.may_end((place,)) else None
            way = self.places.way(place, lambda here: here[1] is None or here[1].is_other())
            if not way:
                break
            ending, (place, *_) = ending + rest[:at] + way, self._follow((place,), way)
        return None

    def may_end(self, threads: tuple[Place, ...]) -> bool:
        """Whether the text is complete."""
        return any(self.inner.is_accepting(config) for config, _ in threads)

    def _candidates(self, threads: tuple[Place, ...]) -> Iterable[Sequence[int]]:
        found = frozenset().union(*[self.places.bytes_at(config) for config, _ in threads])
        return ((byte,) for byte in sorted(found))

    def _is_full(self) -> bool:
        return self._start.threads[0][0].store.is_full() or super()._is_full()

    def _forget(self) -> None:
        self._start = self._made(((self.inner.start, None),))
        self.places.forget()
        self.refusals.forget()
        super()._forget()

    # -- rows ------------------------------------------------------------------------------------------

    def row(self, config: Configuration[Place]) -> NDArray[np.int32]:
        """The bitmask of a configuration, EOS ids included: a new read-only ``int32[words]``."""
        row = np.empty(self.vocabulary.words, np.int32)
        self.write_mask(config, row)
        row.flags.writeable = False
        return row

    def write_mask(self, config: Configuration[Place], bitmask: NDArray[np.int32]) -> None:
        """Write the automaton's mask, without the tokens that the items' values do not allow."""
        (first, *others) = config.threads
        store, number = self.inner.at(first[0])
        store.write_mask(number, bitmask)
        for place in others:
            row = self.inner.row(place[0])[: len(bitmask)]
            bitmask[: len(row)] |= row
        if config.refused is None:
            config.refused = self.steps.measured(self._refused, config.threads, bitmask)
        if len(config.refused):
            kernels.flip_ids(bitmask.view(np.uint32), config.refused)

    def _refused(self, places: tuple[Place, ...], row: NDArray[np.int32]) -> NDArray[np.int32]:
        """The tokens of a row that repeat a value, or can only lead to one, as ids, ascending."""
        ids: NDArray[np.int32] = self.ids_below(self.refusals.nodes(places))
        is_wrong = row[ids >> 5] >> (ids & 31) & 1 == 1
        if self.names_tokens():
            for at in np.flatnonzero(is_wrong).tolist():
                token = int(ids[at])
                is_wrong[at] = not self._over_token(places, token, self.vocabulary.token(token) or b"")
        found: NDArray[np.int32] = ids[is_wrong]
        return found

    def ids_below(self, nodes: Iterable[int]) -> NDArray[np.int32]:
        """The tokens at and below some nodes of the trie, ascending."""
        trie = self.vocabulary.trie
        found = [trie.token_ids[trie.first_token[node] : trie.first_token[trie.skip[node]]] for node in nodes]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int32)

    @cached_property
    def refusals(self) -> Refusals:
        """Finds what masks lack."""
        return Refusals(self.places, self.vocabulary)

    def distances(self) -> Distances:
        """How far texts are from their end: not known, since what is nearest may have been there."""
        raise UnsupportedError(
            "max_tokens is not supported where the items of an array, or the names of an object, must differ",
            remedy="Leave max_tokens out, or bound the items by an enum; close objects, or leave unique_names out.",
        )

    @property
    def known_rows(self) -> int:
        """How many partial masks there are so far."""
        return self.inner.known_rows

    def tell(self, told: Callable[[], None]) -> None:
        """See `structgen.runtime.core.machine.CompiledMachine`."""
        self.inner.tell(told)

    def is_complete(self) -> bool:
        """Rows within such arrays depend on the items: they are put together when they are needed."""
        return False

    def is_filled(self) -> bool:
        """Whether the automaton's rows are there."""
        return self.inner.is_filled()

    def fill(self, *, threads: int | None = None, meter: Meter | None = None, progress: Progress = silent) -> None:
        """Work out the automaton's rows."""
        self.inner.fill(threads=threads, meter=meter, progress=progress)

    def share_rows(self, kept: SharedRows) -> None:
        """See `PushdownMachine`."""
        self.inner.share_rows(kept)

    def keep_shared_rows(self) -> None:
        """See `PushdownMachine`."""
        self.inner.keep_shared_rows()

    def to_meta(self) -> JsonMap:
        """What goes into the file's meta section."""
        return self.inner.to_meta()

    def to_sections(self, *, self_contained: bool = False) -> dict[str, Array]:
        """The sections of the file format: the automaton's."""
        return self.inner.to_sections(self_contained=self_contained)


def without(row: NDArray[np.int32], ids: NDArray[np.int32]) -> None:
    """Take tokens out of a row."""
    np.bitwise_and.at(row.view(np.uint32), ids >> 5, ~(np.uint32(1) << (ids & 31).astype(np.uint32)))


def _outside(places: tuple[Place, ...]) -> StoredConfiguration | None:
    """The threads in no array or object of which something is known."""
    return next((config for config, seen in places if seen is None), None)
