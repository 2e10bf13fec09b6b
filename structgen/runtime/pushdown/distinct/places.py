"""`PlaceReader`: what follows texts in arrays whose items must differ, and what of it can go on.

A place is a configuration of the automaton's store, which steps its threads, and what is known of the innermost
container; places that are read together are of one store. Where an item ends, threads in states with a mark are
dropped if its value has been there.

A text must also be able to go on: where some value of the set can still come of the item in progress, it is looked
for another one that can, through the automaton. It is found as soon as no value of the set begins like the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import compress, count
from operator import not_
from typing import TypeAlias

from .... import kernels
from ....errors import BudgetExceededError
from ....system.memo import Memo
from ..machine import PushdownMachine
from ..stacks import END, FORK
from ..store.configuration import StoredConfiguration
from ..store.store import EACH_BYTE, ConfigurationStore, Row
from ..tables import ENDS_ITEM, ENDS_MEMBER, ENDS_NAME, OPENS_ARRAY, OPENS_OBJECT
from .containers import (
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    OPEN_BRACE,
    OPEN_BRACKET,
    SPACES,
    Around,
    Known,
    Place,
    Seen,
    Value,
)
from .items import COMMA, NUMERIC, Number, String, begun
from .varieties import Varieties

#: Beginnings of values that are looked at for one that an array does not have yet.
_MOST_LOOKED = 1 << 20

#: What each of them counts as, of a step's work.
_UNITS = 16

#: Beginnings that are looked at before it is remembered which they were, which takes longer than most searches.
_FEW_LOOKED = 16

#: Stack cells that are looked at for arrays around; places that are looked at for a scalar of which there are many
#: values; bytes that are tried from each, and those that are tried last.
_MOST_CELLS, _MOST_TRIED, _FEW_TRIED, _LATER = 1 << 8, 1 << 7, 1 << 2, frozenset(b" \t\n\r\\")

#: Bytes that begin nothing.
_ENDING = b" \t\n\r]}"

#: Arrays that may have begun at different bytes of one text.
_MOST_PLACES = 1 << 8

#: Bytes within a string, and a bracket, where an array may begin.
_WITHIN, BRACKET = re.compile(rb'[^"\\]+'), re.compile(rb"[\[{]")

#: What scalars are begun with of which there may be many.
_BEGINNINGS = tuple((bytes((byte,)), begun(byte)) for byte in b'"1')

_OPENS, _ENDS = (OPENS_ARRAY, OPENS_OBJECT), (ENDS_ITEM, ENDS_MEMBER)

#: A place, and whether threads were dropped on the way there.
_After: TypeAlias = "tuple[Place | None, bool]"


class PlaceReader:
    """What follows places.

    Parameters
    ----------
    inner:
        The automaton.
    """

    def __init__(self, inner: PushdownMachine) -> None:
        self._inner = inner
        self._marks = inner.tables.distinct.tobytes() + b"\0"  # a byte for each state, and one at `END`
        self._may: Memo[StoredConfiguration, frozenset[int]] = Memo(1 << 12)  # see `bytes_at`
        self._behind: Memo[tuple[StoredConfiguration, int], tuple[list[Row], bool]] = Memo(1 << 12)  # see `_others`
        self._roomy: Memo[StoredConfiguration, bool] = Memo(1 << 12)  # see `is_roomy`
        self._around: Memo[StoredConfiguration, int] = Memo(1 << 12)  # see `_roomy_around`
        self._next: Memo[tuple[int, int], bool] = Memo(1 << 12)  # by state and count; see `_is_next_roomy`
        #: How many values there are.
        self.varieties = Varieties(inner)

    def forget(self) -> None:
        """Forget what is remembered of configurations."""
        for known in (self._may, self._behind, self._roomy, self._around):
            known.clear()

    def followed(self, places: Sequence[Place], data: bytes) -> tuple[Place, ...]:
        """The places after some bytes from which texts go on."""
        return tuple([place for place in self.read(places, data)[0] if self.can_go_on(place)])

    def candidates(self, places: Iterable[Place]) -> list[int]:
        """A superset of the bytes that may follow, ascending."""
        return sorted(frozenset().union(*[self.bytes_at(config) for config, _ in places]))

    def read(self, places: Sequence[Place], data: bytes) -> tuple[tuple[Place, ...], bool]:
        """The places after some bytes, whether or not texts go on from there, the one outside last; and whether threads
        were dropped on the way.
        """
        drops = False
        found: list[Place] = []
        outside: dict[StoredConfiguration, None] = {}
        todo = [(place, 0) for place in places]
        while todo:
            (config, seen), at = todo.pop()
            if at == len(data):
                if seen is None:
                    outside[config] = None
                else:
                    found.append((config, seen))
            elif seen is None:
                bracket = BRACKET.search(data, at)
                end = bracket.end() if bracket else len(data)
                after = self.moved(config, data[at:end])
                if after is None:
                    continue
                began, rest = self._began(after) if bracket else (None, after)
                if began is not None:
                    todo.append(((began, Seen(Around(None, data[end - 1]), Known())), end))
                if rest is not None:
                    todo.append(((rest, None), end))
            else:
                is_within = isinstance(seen.item, String) and not seen.item.escape
                piece = _WITHIN.match(data, at) if is_within else None
                end = piece.end() if piece else at + 1
                place, dropped = self._after(config, seen, data[at:end])
                drops |= dropped
                if place is not None:
                    todo.append((place, end))
        if len(found) > _MOST_PLACES:
            raise BudgetExceededError("telling apart the items of arrays that may have begun at many bytes")
        if len(outside) > 1:
            return (*found, (self._united(outside), None)), drops
        return (*found, *[(config, None) for config in outside]), drops

    def _after(self, config: StoredConfiguration, seen: Seen, data: bytes) -> _After:
        """The place after a byte, or some within a string, if there is one; and whether threads were dropped."""
        item, byte, drops = seen.item, data[0], False
        after = self.moved(config, data)
        if after is not None and isinstance(item, Number) and byte not in NUMERIC:
            value = item.value()
            place, drops = (None, False) if value is None else self.ended(config, seen, value)
            after = None if place is None else self.moved(place[0], data)
            if after is None or place is None or place[1] is None:
                return None if after is None else (after, None), drops
            seen, item = place[1], None
        if after is None:
            return None, False
        if item is not None:
            item = item.longer(data) if len(data) > 1 and isinstance(item, String) else item.after(byte)
            if item.ends():
                return self.ended(after, seen, item.value() or b"")
            return (after, seen.with_scalar(item)), False
        if byte in (CLOSE_BRACKET, CLOSE_BRACE):
            around = seen.around.seen
            if around is None:
                return (after, None), drops
            place, dropped = self.ended(after, around, seen.closed())
            return place, drops or dropped
        if byte in (OPEN_BRACKET, OPEN_BRACE):
            states = (state for state, _, _ in after.store.rows_of(after.number))
            seen = seen.opened(byte, is_distinct=any(self._marks[state] in _OPENS for state in states))
        elif byte == COMMA:
            seen = seen.due()
        elif byte not in SPACES and byte != COLON:
            seen = seen.begun(byte)
        return (after, seen), drops

    def moved(self, config: StoredConfiguration, data: bytes) -> StoredConfiguration | None:
        """Where the threads are after some bytes."""
        store, number = config
        if len(data) == 1:
            target = store.after_byte(number, data[0])
            return StoredConfiguration(store, target) if target >= 0 else None
        consumed, target = store.follow(number, data)
        return StoredConfiguration(store, target) if consumed == len(data) else None

    def _began(self, config: StoredConfiguration) -> tuple[StoredConfiguration | None, StoredConfiguration | None]:
        """The threads that are at the beginning of an array or object of which something is known, and all others."""
        rows = config.store.rows_of(config.number)
        opens = [self._marks[state] in _OPENS for state, _, _ in rows]
        if not any(opens):
            return None, config
        return self._kept(config, compress(rows, opens)), self._kept(config, compress(rows, map(not_, opens)))

    def _kept(self, config: StoredConfiguration, rows: Iterable[Row]) -> StoredConfiguration | None:
        """Some threads of a configuration, if there are any."""
        kept = [*rows]
        return StoredConfiguration(config.store, config.store.keep(kept)) if kept else None

    def _united(self, configs: Iterable[StoredConfiguration]) -> StoredConfiguration:
        """The threads of some configurations together."""
        ((store, _), *_) = every = [*configs]
        return StoredConfiguration(store, store.keep([row for _, number in every for row in store.rows_of(number)]))

    def ended(self, config: StoredConfiguration, seen: Seen, value: Value) -> _After:
        """The place behind an item or a name, where threads that may not have had its value are dropped."""
        after = seen.ended(value)
        if seen.known is None or seen.name is not None:
            return (config, after), False
        others, is_within = self._others(config, ENDS_NAME if seen.is_object else ENDS_ITEM)
        if after.known is not seen.known:
            return (config, after if is_within else after.without_set()), False
        kept = self._kept(config, others)
        return None if kept is None else (kept, after.without_set()), is_within

    def _others(self, config: StoredConfiguration, mark: int) -> tuple[list[Row], bool]:
        """The threads behind an item or a name that are in no array or object of a mark, and whether there are more.

        The last byte of a number that could go on leaves the next one to what is below it, and so does an object
        whose closing brace depends on its members.
        """
        found = self._behind.get((config, mark))
        if found is None:
            rows = config.store.left_to(config.number)
            self._inner.steps.spend(len(rows))
            rows = [row for row in rows if row[0] == END or not self._inner.returns(row[0])]
            others = [row for row in rows if self._marks[row[0]] != mark]
            found = self._behind[config, mark] = others, len(others) < len(rows)
        return found

    # -- what can go on --------------------------------------------------------------------------------

    def can_go_on(self, place: Place) -> bool:
        """Whether some item can come of what is there that has not been there yet, if one must."""
        return self.is_free(place) or bool(self.way(place, self.is_free))

    def way(self, place: Place, is_there: Callable[[Place], bool]) -> bytes:
        """Bytes that lead to a place with room for other items, depth first; none where none do."""
        todo, known, looked = [(place, b"")], set[Hashable](), 0
        while todo:
            here, text = todo.pop()
            looked += 1
            self._inner.steps.spend(_UNITS)
            if looked > _MOST_LOOKED:  # more than any array has items, or what no schema says
                raise BudgetExceededError("looking for a value that an array does not have yet")
            found: list[tuple[Place, bytes]] = []
            for byte in self._tried(here, is_long=looked > _FEW_LOOKED):
                longer = text + EACH_BYTE[byte]
                for after in self.read((here,), longer[-1:])[0]:
                    if after[1] is None or is_there(after):
                        return longer
                    key = (after[0], after[1].key()) if looked > _FEW_LOOKED else None
                    if key not in known:
                        found.append((after, longer))
                        if key is not None:
                            known.add(key)
            todo += reversed(found)
        return b""

    def _tried(self, place: Place, *, is_long: bool) -> Iterator[int]:
        """The bytes that may follow: those that lead elsewhere first, last those that only end something.

        Where it takes long, those are preferred that fewer values begin with.
        """
        config, seen = place
        towards = seen.bytes_towards() if seen is not None else frozenset()
        later = []
        for byte in sorted(self.bytes_at(config)):
            if byte in towards:
                later.append(byte)
            else:
                yield byte
        if seen is not None and is_long:
            later.sort(key=seen.crowd)
        yield from sorted(later, key=_ENDING.__contains__)

    def bytes_at(self, config: StoredConfiguration) -> frozenset[int]:
        """A superset of the bytes that may follow."""
        found = self._may.get(config)
        if found is None:
            states = {state for state, _, _ in config.store.left_to(config.number)}
            found = self._may[config] = frozenset(self._inner.bytes_at(states))
        return found

    def is_free(self, place: Place) -> bool:
        """Whether it is seen that items that have not been there can come of those in progress or due."""
        config, seen = place
        if seen is None or seen.is_other():
            return True
        if seen.item is not None:
            known = sum(each.count(seen.item.beginning()) for each in seen.sets())
            return self.varieties.are_more(known, config, seen.item)
        if seen.levels:
            return False
        known = sum(map(len, seen.finite()))
        led = ((self.moved(config, data), item) for data, item in _BEGINNINGS)
        return any(self.varieties.are_more(known, after, item) for after, item in led if after)

    def is_roomy(self, end: StoredConfiguration) -> bool:
        """Whether others follow the string that ends there and a comma without end, whatever they begin like."""
        found = self._roomy.get(end)
        if found is None:
            due = self.moved(end, b",")
            led = ((due and self.moved(due, data), item) for data, item in _BEGINNINGS)
            begun = next(((config, item) for config, item in led if config is not None), None)
            found = self._roomy[end] = due is None or (begun is not None and self.varieties.is_endless(*begun))
        return found

    def is_roomy_around(self, config: StoredConfiguration, seen: Seen, beginnings: Iterable[bytes]) -> bool:
        """Whether it is seen that in all arrays and objects around, whose items or names must differ, others can follow
        without end, if what is in progress there is another one and the next one has some beginning.

        Each of them has a state with a mark in the stack; members that are told from others may have none yet.
        """
        found = self._around.get(config)
        if found is None:
            found = self._around[config] = self._roomy_around(config, beginnings)
        return found >= 0 and seen.distinct_around() <= found

    def _roomy_around(self, config: StoredConfiguration, beginnings: Iterable[bytes]) -> int:
        """How many such marks there are in any stack at least, if all are roomy; -1."""
        store = config.store
        cells = store.below(config.number, _MOST_CELLS)
        self._inner.steps.spend(_MOST_CELLS if cells is None else len(cells))
        if cells is None:
            return -1
        least, threads = {-1: 0}, store.rows_of(config.number)
        for cell, row in (*sorted(cells.items()), *zip(count(-2, -1), threads)):  # what is below has a smaller number
            state, number, below = row
            if state == FORK:
                least[cell] = min(least.get(number, 0), least.get(below, _MOST_CELLS))
                continue
            is_marked = self._marks[state] in _ENDS  # not so at `END`
            if is_marked and not self._is_next_roomy(store, row, beginnings):
                return -1
            least[cell] = least[below] + is_marked
        return min(least[-2 - at] for at in range(len(threads)))

    def _is_next_roomy(self, store: ConfigurationStore, row: Row, beginnings: Iterable[bytes]) -> bool:
        if row[1] >= kernels.NUMBERED:  # which sets these are depends on the store
            return False
        found = self._next.get(row[:2])
        if found is None:
            kind = OPEN_BRACKET if self._marks[row[0]] == ENDS_ITEM else OPEN_BRACE
            due = self.moved(StoredConfiguration(store, store.keep([row])), b",")
            seen = Seen(Around(None, kind), Known(), is_due=True)
            led = [self.read(((due, seen),), text)[0] for text in beginnings] if due else []
            found = self._next[row[:2]] = all(self._is_varied(*places) for places in led if places)
        return found

    def _is_varied(self, *places: Place) -> bool:
        """Whether it is seen that items without end can come of one in progress, or due."""
        todo, known = [*places], set[StoredConfiguration]()
        while todo and len(known) < _MOST_TRIED:
            config, seen = todo.pop()
            if seen is None or config in known:
                continue
            if seen.item is not None and self.varieties.is_endless(config, seen.item):
                return True
            known.add(config)
            self._inner.steps.spend(_UNITS)
            if seen.around.seen is not None or seen.item is not None or seen.is_due:
                tried = sorted(self.bytes_at(config), key=_LATER.__contains__)[:_FEW_TRIED]
                for byte in reversed(tried):
                    todo += self.read(((config, seen),), EACH_BYTE[byte])[0]
        return False
