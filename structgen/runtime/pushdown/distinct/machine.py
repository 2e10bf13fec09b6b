"""`DistinctMachine`: an automaton with a stack, and what items and names have been where they must differ.

What threads do does not depend on the items' values but in one point: where an item ends, threads in an array whose
items must differ are dropped if its value has been there. Threads that are in such an array since the same byte read
the same items, so the set of values is there once, beside them all: that is a place. It begins at an opening bracket
after which some threads are in such an array, and is let go where that array ends, or no thread is in it. What is
nested in its items is told apart in the same way. Other threads, as of a structural tag, are in a place of their own.
Objects whose names must differ are such places, too: where a name ends, threads are dropped if it has been there.

A text must also be able to go on: where some value of the set can still come of the item in progress, it is looked
for another one that can, through the automaton. It is found as soon as no value of the set begins like the text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter, StepMeter
from ....errors import BudgetExceededError, UnsupportedError
from ....progress import Progress, silent
from ....system.properties import cached_property
from ....system.types import Array, JsonMap
from ....system.visible import legibility
from ...core.dense_rows import DENSE_ROWS
from ...core.descent import descent
from ...core.interned_machine import Configuration, InternedMachine
from ...core.machine import Distances, SharedRows
from ..machine import MEMO_FRAMES, PushdownMachine
from ..stacks import Thread
from ..tables import ENDS_ITEM, ENDS_MEMBER, ENDS_NAME, OPENS_ARRAY, OPENS_OBJECT
from .containers import CLOSE_BRACE, CLOSE_BRACKET, COLON, OPEN_BRACE, OPEN_BRACKET, SPACES, Around, Known, Seen, Value
from .endless import EndlessItems
from .item_tokens import ItemTokens, is_allowed
from .items import COMMA, NUMERIC, Number, String
from .several import SeveralItems

#: Beginnings of values that are looked at for one that an array does not have yet.
_MOST_LOOKED = 1 << 20

#: What each of them counts as, of a step's work.
_UNITS = 16

#: Beginnings that are looked at before it is remembered which they were, which takes longer than most searches.
_FEW_LOOKED = 16

#: Bytes that begin nothing.
_ENDING = b" \t\n\r]}"

#: Arrays that may have begun at different bytes of one text.
_MOST_PLACES = 1 << 8

#: Items of an ending that are not the automaton's, and places that are looked at for each.
_MOST_ITEMS, _MOST_NEAR = 1 << 10, 1 << 14

#: The threads, and the innermost container if items are told apart in it or around it.
Place: TypeAlias = "tuple[tuple[Thread, ...], Seen | None]"


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
        self.pool, self.states = inner.pool, inner.states
        marks = inner.tables.distinct
        arrays, objects, self._ends, self._names, self._members = (
            frozenset(np.flatnonzero(marks == mark).tolist())
            for mark in (OPENS_ARRAY, OPENS_OBJECT, ENDS_ITEM, ENDS_NAME, ENDS_MEMBER)
        )
        self._opens = arrays | objects
        self._brackets = frozenset((OPEN_BRACKET, OPEN_BRACE) if objects else (OPEN_BRACKET,))
        self._returns: list[int] = inner.tables.returns.tolist()
        self._own_rows = 0  # that differ from the automaton's
        self.tables = inner.tables
        super().__init__(inner.vocabulary, ((inner.start_threads, None),), filled=False, lock=inner.rows.lock)
        if inner.names_tokens():
            self._sees_tokens = True

    @property
    def steps(self) -> StepMeter:
        """Counts the work of steps: the automaton's, and beginnings of values that are looked at."""
        return self.inner.steps

    # -- following bytes -------------------------------------------------------------------------------

    def _follow(self, threads: tuple[Place, ...], data: bytes) -> tuple[Place, ...]:
        if len(threads) == 1 and threads[0][1] is None and self._brackets.isdisjoint(data):
            after = self.inner.follow(threads[0][0], data)
            return ((after, None),) if after else ()
        for byte in data:
            threads = self._all_after(threads, byte)
            if not threads:
                return ()
        return tuple([place for place in threads if self.can_go_on(place)])

    def _all_after(self, places: tuple[Place, ...], byte: int) -> tuple[Place, ...]:
        """The places after a byte: those with sets, in the order of their beginnings, and the one without any."""
        if len(places) == 1 and byte not in self._brackets:
            after = self.place_after(places[0], byte)
            return (after,) if after[0] else ()
        found: list[Place] = []
        outside: dict[Thread, None] = {}
        for place in places:
            threads, seen = self.place_after(place, byte)
            if seen is not None and threads:
                found.append((threads, seen))
            else:
                outside.update(dict.fromkeys(threads))
        if byte in self._brackets:
            began = tuple([thread for thread in outside if thread[0] in self._opens])
            if began:
                found.append((began, Seen(Around(None, byte), Known())))
                outside = {thread: None for thread in outside if thread[0] not in self._opens}
        if len(found) > _MOST_PLACES:
            raise BudgetExceededError("telling apart the items of arrays that may have begun at many bytes")
        if outside:
            stacks = self.inner.stacks
            found.append((stacks.united(outside) if len(outside) > 1 else tuple(outside), None))
        return tuple(found)

    def place_after(self, place: Place, byte: int) -> Place:
        """The place after a byte, whether or not texts go on from there; without threads, what repeated, if any.

        Outside of arrays whose items must differ it is looked elsewhere whether one begins (`_all_after`).
        """
        threads, seen = place
        if seen is None or seen.item is None:
            threads = self.inner.step(threads, byte)
            return self._between(threads, seen, byte) if threads else (threads, None)
        item = seen.item
        if isinstance(item, Number) and byte not in NUMERIC:
            value = item.value()
            if value is None:
                return (), None
            place = self._ended(threads, seen, value)
            return self.place_after(place, byte) if place[0] else place
        threads = self.inner.step(threads, byte)
        if not threads:
            return threads, None
        item = item.after(byte)
        if item.ends():
            return self._ended(threads, seen, item.value() or b"")
        return threads, seen.with_scalar(item)

    def _between(self, threads: tuple[Thread, ...], seen: Seen | None, byte: int) -> Place:
        """The place after a byte that is in no scalar of a container that is known."""
        if byte in SPACES:
            return threads, seen
        if seen is None:
            return threads, None
        if byte in (OPEN_BRACKET, OPEN_BRACE):
            is_distinct = any(state in self._opens for state, _, _ in threads)
            return threads, seen.opened(byte, is_distinct=is_distinct)
        if byte in (CLOSE_BRACKET, CLOSE_BRACE):
            around = seen.around.seen
            return self._ended(threads, around, seen.closed()) if around is not None else (threads, None)
        if byte == COMMA:
            return threads, seen._replace(is_due=True)
        return threads, seen if byte == COLON else seen.begun(byte)

    def _ended(self, threads: tuple[Thread, ...], seen: Seen, value: Value) -> Place:
        """The place behind an item or a name, where threads that may not have had its value are dropped."""
        after = seen.ended(value)
        if seen.known is None or seen.name is not None:
            return threads, after
        ends = self._names if seen.is_object else self._ends
        threads = self._left_to(threads)
        if after.known is seen.known:
            threads = tuple([thread for thread in threads if thread[0] not in ends])
        is_distinct = not threads or any(thread[0] in ends for thread in threads)
        return threads, after if is_distinct else after.without_set()

    def _left_to(self, threads: tuple[Thread, ...]) -> tuple[Thread, ...]:
        """Where the byte behind an item is left to: that of a number that could go on, or of an object whose closing
        brace depends on its members. Other threads are there already."""
        found, todo = dict[Thread, None](), [*threads]
        for thread in todo:  # grows as it goes
            state, _, frame = thread
            if state >= 0 and self._returns[state]:
                todo += self.inner.stacks.opened(frame)
            else:
                found[thread] = None
        return tuple(found)

    def can_go_on(self, place: Place) -> bool:
        """Whether some item can come of what is there that has not been there yet, if one must."""
        if self._is_free(place):
            return True
        todo, known, looked = [place], set[Hashable](), 0
        while todo:
            here = todo.pop()
            looked += 1
            self.steps.spend(_UNITS)
            if looked > _MOST_LOOKED:  # more than any array has items, or what no schema says
                raise BudgetExceededError("looking for a value that an array does not have yet")
            found: list[Place] = []
            for byte in self._tried(here):
                after = self.place_after(here, byte)
                if not after[0]:
                    continue
                if after[1] is None or self._is_free(after):
                    return True
                key = (after[0], after[1].key()) if looked > _FEW_LOOKED else None
                if key not in known:
                    found.append(after)
                    if key is not None:
                        known.add(key)
            todo += reversed(found)
        return False

    def _tried(self, place: Place) -> Iterator[int]:
        """The bytes that may follow: those that lead elsewhere first, last those that only end something."""
        threads, seen = place
        towards = seen.bytes_towards() if seen is not None else frozenset()
        later = []
        for byte in self.inner.candidates(threads):
            if byte in towards:
                later.append(byte)
            else:
                yield byte
        yield from sorted(later, key=_ENDING.__contains__)

    def _is_free(self, place: Place) -> bool:
        """Whether it is seen that items that have not been there can come of those in progress or due."""
        threads, seen = place
        if seen is None or seen.is_other():
            return True
        if seen.levels or seen.values is None:
            return False
        if self._endless_of(seen).follow(threads, seen.item):
            return True
        return not seen.is_object and self._several.follow(threads, seen.item, seen.values)

    # -- whole tokens ----------------------------------------------------------------------------------

    def _over_token(self, threads: tuple[Place, ...], token_id: int, data: bytes) -> tuple[Place, ...]:
        """The places behind a token. JSON takes no tokens as such and counts none; the place outside is told."""
        found = self._follow(threads, data) if data else ()
        outside = self.inner.behind_token(_outside(threads), token_id, _outside(found))
        within = tuple([place for place in found if place[1] is not None])
        return (*within, (outside, None)) if outside else within

    def may_stop(self, byte_state: tuple[Place, ...]) -> bool:
        """Whether something other than a byte may follow: the end of the text, or a token as such."""
        return super().may_stop(byte_state) or bool(self.inner.token_sets_of(_outside(byte_state)))

    def names_tokens(self) -> bool:
        """See `PushdownMachine`."""
        return self.inner.names_tokens()

    def token_sets(self, config: Configuration[Place]) -> list[tuple[frozenset[int], bool]]:
        """See `PushdownMachine`."""
        return self.inner.token_sets_of(_outside(config.threads))

    # -- endings ---------------------------------------------------------------------------------------

    def completion(self, config: Configuration[Place]) -> bytes | None:
        """Few bytes that complete a text: the automaton's ending, with another item where that repeats one.

        None where tokens are more than their bytes.
        """
        if self._sees_tokens:
            return None
        endings = (self._ending_of(place) for place in config.threads)
        return next((ending for ending in endings if ending is not None), None)

    def _ending_of(self, place: Place) -> bytes | None:
        ending = bytearray()
        for _ in range(_MOST_ITEMS):
            rest = self.inner.ending_of(place[0])
            if rest is None:  # as of members in any order
                found = descent(place, self._following, lambda here: self.may_end((here,)))
                return None if found is None else bytes(ending) + found
            for byte in rest:
                after = self._follow((place,), bytes((byte,)))
                if not after:
                    break
                place = after[0]
                ending.append(byte)
            else:
                return bytes(ending) if self.may_end((place,)) else None
            text, place = self._other_item(place)
            if not text:
                return None
            ending += text
        return None

    def _other_item(self, place: Place) -> tuple[bytes, Place]:
        """The nearest place where all items in progress are others, breadth first; without bytes, if none is near."""
        known, todo = {place}, deque([(b"", place)])
        while todo:
            text, here = todo.popleft()
            for byte, after in self._following(here):
                longer = text + bytes((byte,))
                if after[1] is None or after[1].is_other():
                    return longer, after
                if after not in known and len(known) < _MOST_NEAR:
                    known.add(after)
                    todo.append((longer, after))
        return b"", place

    def _following(self, place: Place) -> Iterator[tuple[int, Place]]:
        """The places after each byte that may follow."""
        for byte in sorted((byte for (byte,) in self._candidates((place,))), key=legibility):
            yield from ((byte, after) for after in self._follow((place,), bytes((byte,))))

    def may_end(self, threads: tuple[Place, ...]) -> bool:
        """Whether the text is complete."""
        return any(self.inner.may_end(place[0]) for place in threads)

    def _candidates(self, threads: tuple[Place, ...]) -> Iterable[Sequence[int]]:
        if len(threads) == 1:
            return ((byte,) for byte in self.inner.candidates(threads[0][0]))
        return ((byte,) for byte in {byte for place in threads for byte in self.inner.candidates(place[0])})

    def _is_full(self) -> bool:
        return len(self.inner.stacks) >= MEMO_FRAMES or super()._is_full()

    def _forget(self) -> None:
        super()._forget()
        self.inner.forget()
        self._own_rows = 0

    # -- rows ------------------------------------------------------------------------------------------

    def _work_out(self, config: Configuration[Place]) -> NDArray[np.int32]:
        rows = [self._row_at(place) for place in config.threads]
        row = rows[0]
        if len(rows) > 1:
            row = np.bitwise_or.reduce(rows)
            self._keep(row)
        config.dense = row
        return row

    def _row_at(self, place: Place) -> NDArray[np.int32]:
        """The row of one place."""
        row = self.inner.row_of(place[0])
        ids = self._forbidden(place, row)
        if len(ids):
            row = row.copy()
            np.bitwise_and.at(row.view(np.uint32), ids >> 5, ~(np.uint32(1) << (ids & 31).astype(np.uint32)))
            self._keep(row)
        return row

    def _keep(self, row: NDArray[np.int32]) -> None:
        row.flags.writeable = False
        self._own_rows += 1
        DENSE_ROWS.note(self, 4 * self.vocabulary.words * self._own_rows)

    @cached_property
    def _item_tokens(self) -> ItemTokens:
        return ItemTokens.of(self.vocabulary)

    @cached_property
    def _endless(self) -> EndlessItems:
        return EndlessItems(self.tables, self._ends)

    @cached_property
    def _endless_names(self) -> EndlessItems:
        return EndlessItems(self.tables, self._members)

    def _endless_of(self, seen: Seen) -> EndlessItems:
        return self._endless_names if seen.is_object else self._endless

    def _forbidden(self, place: Place, row: NDArray[np.int32]) -> NDArray[np.int64]:
        """The tokens that the automaton allows, in its row, and the items' values do not, as ids.

        Such a token repeats a value, or can only lead to one. Where that is the item in progress, it is found in the
        trie along the texts that values of the set can still come of. Where it is a later one the token has a comma;
        it is followed, unless its items are seen to be others.
        """
        repeating: list[NDArray[np.int64]] = []
        doubtful = self._doubtful(place[1], row)
        for node, may_follow in self._repeating_now(place):
            trie = self.vocabulary.trie
            tokens = trie.token_ids[trie.first_token[node] : trie.first_token[trie.skip[node]]].astype(np.int64)
            if may_follow:
                doubtful += tokens[is_allowed(tokens, row)].tolist()
            else:
                repeating.append(tokens)
        followed = [token for token in doubtful if not self._leads_on(place, token)]
        return np.concatenate([np.array(followed, np.int64), *repeating])

    def _leads_on(self, place: Place, token: int) -> bool:
        data = self.vocabulary.token(token) or b""
        return bool(self._over_token((place,), token, data) if self._sees_tokens else self._follow((place,), data))

    def _doubtful(self, seen: Seen | None, row: NDArray[np.int32]) -> list[int]:
        """The tokens of a row with items behind that in progress that may be equal, or lead to no other ones."""
        tokens = self._item_tokens
        item = seen and seen.item
        is_escaped = isinstance(item, String) and bool(item.escape)
        is_array = seen is not None and seen.around.seen is None and not seen.is_object
        if seen is not None and is_array and self._others_follow(seen) and not is_escaped:
            return [*tokens.doubtful(item, seen.values, row)]
        ids = tokens.named_ids(seen, endless=self._other_names_follow()) if self._names else tokens.ids(seen)
        found: list[int] = ids[is_allowed(ids, row)].tolist()
        return found

    def _others_follow(self, seen: Seen) -> bool:
        """Whether items that have not been there can follow each comma of a token, and any quote behind one."""
        if self._endless.behind_commas:
            return True
        return self._least_several > len(seen.values or ()) + self._item_tokens.most

    def _other_names_follow(self) -> bool:
        """Whether names that have not been there can follow each comma of an object, and what begins behind it."""
        return self._endless_names.behind_commas and self._endless_names.in_strings

    @cached_property
    def _several(self) -> SeveralItems:
        return SeveralItems(self.inner)

    @cached_property
    def _least_several(self) -> int:
        return self._several.behind_commas(self._endless.due)

    def _repeating_now(self, place: Place, root: int = 0) -> Iterator[tuple[int, bool]]:
        """The nodes of the trie where the scalar in progress, or the next one, can no more be one that was not there.

        With each whether some threads are left, in arrays whose items may be equal. The place is at node ``root``.
        """
        trie, tokens = self.vocabulary.trie, self._item_tokens
        todo: list[tuple[int, Place]] = [(root, place)]
        skip = trie.skip.data
        while todo:
            node, here = todo.pop()
            threads, seen = here
            if seen is None:
                continue
            item, endless = seen.item, self._endless_of(seen)
            is_plain = seen.known is not None and not seen.levels
            in_string = is_plain and isinstance(item, String) and endless.in_strings
            in_number = (
                is_plain and isinstance(item, Number) and item.exponent is None and endless.digits_follow(threads)
            )
            for byte, child in trie.children(node, seen.bytes_towards()):
                if (in_string and not tokens.to_quote[child]) or (in_number and not tokens.to_no_digit[child]):
                    continue
                if item is None and byte in SPACES and not tokens.to_item[child]:
                    continue
                after = self.place_after(here, byte)
                if not after[0] and after[1] is None:
                    continue
                if not after[0] or not self.can_go_on(after):
                    yield child, False
                elif is_plain and item and not (after[1] and after[1].item):
                    yield child, True
                elif skip[child] > child + 1:  # some token goes on
                    todo.append((child, after))

    def let_go(self) -> None:
        """Forget what can be put together again; see `structgen.runtime.core.dense_rows`."""
        self._own_rows = 0
        self._forget_rows()

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


def _outside(places: tuple[Place, ...]) -> tuple[Thread, ...]:
    """The threads in no array or object of which something is known."""
    return next((threads for threads, seen in places if seen is None), ())
