"""`DistinctMachine`: an automaton with a stack, and what items and names have been where they must differ.

What threads do does not depend on the items' values but in one point: where an item ends, threads in an array whose
items must differ are dropped if its value has been there. Threads that are in such an array since the same byte read
the same items, so the set of values is there once, beside them all: that is a place. It begins at an opening bracket
after which some threads are in such an array, and is let go where that array ends, or no thread is in it. What is
nested in its items is told apart in the same way. Other threads, as of a structural tag, are in a place of their own.
Objects whose names must differ are such places, too: where a name ends, threads are dropped if it has been there.

The threads of a place are a configuration of the automaton's store, which steps them and has their mask; so are some
places together (`structgen.runtime.pushdown.distinct.store`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ....errors import UnsupportedError
from ....system.properties import cached_property
from ...core.descent import descent
from ...core.machine import CompiledMachine, Distances, followed
from ..machine import PushdownMachine
from ..store.configuration import StoredConfiguration
from .containers import Place
from .places import PlaceReader
from .refusals import Refusals
from .store import DistinctStore

#: Items of an ending that are not the automaton's.
_MOST_ITEMS = 1 << 10


class DistinctMachine(PushdownMachine):
    """A machine whose tables say where items must differ.

    Its configurations have a place for each byte at which such arrays began, and at most one outside them.
    """

    # What threads alone do not tell.
    productions, loop, is_unambiguous = (
        CompiledMachine.productions,
        CompiledMachine.loop,
        CompiledMachine.is_unambiguous,
    )

    @cached_property
    def places(self) -> PlaceReader:
        """What follows texts."""
        return PlaceReader(self)

    @cached_property
    def refusals(self) -> Refusals:
        """Finds what masks lack."""
        return Refusals(self.places, self.vocabulary)

    def _new_store(self) -> DistinctStore:
        return DistinctStore(self)

    def forget(self) -> None:
        """Forget what is remembered of texts."""
        super().forget()
        self.places.forget()

    # -- following bytes -------------------------------------------------------------------------------

    def over_token(self, places: tuple[Place, ...], token_id: int) -> tuple[Place, ...]:
        """The places behind a token, measured as a step; none where it is not allowed."""
        return self.steps.measured(self._over, places, token_id)

    def _over(self, places: tuple[Place, ...], token_id: int) -> tuple[Place, ...]:
        """The places behind a token. JSON takes no tokens as such and counts none; the place outside is told."""
        data = self.vocabulary.token(token_id)
        found = self.places.followed(places, data) if data else ()
        if not self.names_tokens():
            return found
        threads_of = [here.threads if here else () for here in map(_outside, (places, found))]
        behind = self.behind_token(threads_of[0], token_id, threads_of[1])
        within = tuple([place for place in found if place[1] is not None])
        if not behind:
            return within
        store = places[0][0].store
        return (*within, (StoredConfiguration(store, store.add(behind)), None))

    def reach(self, config: StoredConfiguration, data: bytes) -> tuple[int, StoredConfiguration]:
        """How many bytes texts go on with, of some, and where these lead."""
        return followed(self._follow, config, data)

    def _follow(self, config: StoredConfiguration, data: bytes) -> StoredConfiguration | None:
        store, number = self.at(config)
        assert isinstance(store, DistinctStore)
        after = self.steps.measured(self.places.followed, store.places(number), data)
        return StoredConfiguration(store, store.number(after)) if after else None

    def follow_byte(self, config: StoredConfiguration, byte: int) -> StoredConfiguration | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        return self._follow(config, bytes((byte,)))

    def byte_state(self, config: StoredConfiguration) -> tuple[Place, ...]:
        """The places of a configuration, for `following`."""
        assert isinstance(config.store, DistinctStore)
        return config.store.places(config.number)

    def following(self, byte_state: tuple[Place, ...]) -> Iterator[tuple[int, tuple[Place, ...]]]:
        """Each byte that can follow, in no order, and the byte state after it, found as they are asked for."""
        for byte in self.places.candidates(byte_state):
            after = self.after(byte_state, byte)
            if after is not None:
                yield byte, after

    def after(self, byte_state: tuple[Place, ...], byte: int) -> tuple[Place, ...] | None:
        """The byte state after a byte, None where it can't follow."""
        return self.steps.measured(self.places.followed, byte_state, bytes((byte,))) or None

    def may_stop(self, byte_state: tuple[Place, ...]) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token as such."""
        outside = _outside(byte_state)
        return are_over(byte_state) or (outside is not None and super().may_stop(outside))

    # -- endings ---------------------------------------------------------------------------------------

    def completion(self, config: StoredConfiguration) -> bytes | None:
        """Few bytes that complete a text: the automaton's ending, with another item where that repeats one.

        None where tokens are more than their bytes.
        """
        if self.names_tokens():
            return None
        endings = map(self._ending_of, self.byte_state(config))
        return next((ending for ending in endings if ending is not None), None)

    def _ending_of(self, place: Place) -> bytes | None:
        ending = b""
        for _ in range(_MOST_ITEMS):
            rest = super().completion(place[0])
            if rest is None:  # as of members in any order
                here: tuple[Place, ...] = (place,)
                found = descent(here, self.following, are_over)
                return None if found is None else ending + found
            for at in range(len(rest)):
                after = self.places.followed((place,), rest[at : at + 1])
                if not after:
                    break
                place = after[0]
            else:
                return ending + rest if are_over((place,)) else None
            way = self.places.way(place, lambda here: here[1] is None or here[1].is_other())
            if not way:
                break
            ending, (place, *_) = ending + rest[:at] + way, self.places.followed((place,), way)
        return None

    # -- rows ------------------------------------------------------------------------------------------

    def refused(self, places: tuple[Place, ...], mask: NDArray[np.int32]) -> NDArray[np.int32]:
        """The tokens of a mask that are not allowed at some places, ``int32[*]``, ascending; measured as a step."""
        return self.steps.measured(self._refused, places, mask)

    def _refused(self, places: tuple[Place, ...], row: NDArray[np.int32]) -> NDArray[np.int32]:
        """The tokens of a row that repeat a value, or can only lead to one, as ids, ascending."""
        ids: NDArray[np.int32] = self.ids_below(self.refusals.nodes(places))
        ids = ids[ids >> 5 < len(row)]
        is_wrong = row[ids >> 5] >> (ids & 31) & 1 == 1
        if self.names_tokens():
            for at in np.flatnonzero(is_wrong).tolist():
                is_wrong[at] = not self._over(places, int(ids[at]))
        found: NDArray[np.int32] = ids[is_wrong]
        return found

    def ids_below(self, nodes: Iterable[int]) -> NDArray[np.int32]:
        """The tokens at and below some nodes of the trie, ascending."""
        trie = self.vocabulary.trie
        found = [trie.token_ids[trie.first_token[node] : trie.first_token[trie.skip[node]]] for node in nodes]
        ids = np.sort(np.concatenate([*found, np.zeros(0, np.int32)]))
        once: NDArray[np.int32] = ids[np.append(True, ids[1:] != ids[:-1])[: len(ids)]]  # `np.unique` imports a module
        return once

    def distances(self) -> Distances:  # type: ignore[override]
        """How far texts are from their end: not known, since what is nearest may have been there."""
        raise UnsupportedError(
            "max_tokens is not supported where the items of an array, or the names of an object, must differ",
            remedy="Leave max_tokens out, or bound the items by an enum; close objects, or leave unique_names out.",
        )

    def is_complete(self) -> bool:
        """Rows within such arrays depend on the items: they are put together when they are needed."""
        return False


def are_over(places: Iterable[Place]) -> bool:
    """Whether the text is complete in some place."""
    return any(config.store.is_accepting(config.number) for config, _ in places)


def _outside(places: tuple[Place, ...]) -> StoredConfiguration | None:
    """The threads in no array or object of which something is known."""
    return next((config for config, seen in places if seen is None), None)
