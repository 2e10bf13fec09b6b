"""`EndlessItems`: where items of ever other values can come, so that no set of values leads to a dead end.

A cycle makes a string longer, and each value has finitely many spellings; one of digits other than zero, before an
exponent, makes the significant digits of a number more. Items that are not seen to be endless may be so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias, TypeVar

from ...automaton.tables import MARK
from ..stacks import Stack, Thread
from ..tables import PushdownTables, Record
from .items import BACKSLASH, COMMA, NUMERIC, QUOTE, ItemInProgress, Number, String

_SPACES, _DIGITS = b" \t\n\r", b"123456789"
_COMMA, _QUOTE, _BACKSLASH = bytes((COMMA,)), bytes((QUOTE,)), bytes((BACKSLASH,))
_ALL, _NUMERIC = bytes(range(256)), bytes(sorted(NUMERIC))
_CHARACTERS = _ALL.translate(None, _QUOTE + _BACKSLASH)

#: States that are looked at; where there are more, nothing is seen.
_MOST_STATES = 1 << 12

#: One of `PushdownTables.moves`.
Move: TypeAlias = "tuple[Record, tuple[int, ...]]"

#: A state, and whether a backslash led to it within a string.
_Spot: TypeAlias = tuple[int, bool]

T = TypeVar("T")


class EndlessItems:
    """What is seen of an automaton with arrays whose items must differ.

    Parameters
    ----------
    tables:
        The automaton.
    ends:
        Its states behind an item of such an array.
    """

    def __init__(self, tables: PushdownTables, ends: Iterable[int]) -> None:
        self._tables = tables
        self._strings: frozenset[int] = frozenset()
        self._numbers: frozenset[int] = frozenset()
        self._due: frozenset[int] = frozenset()
        self._closed: frozenset[int] = frozenset()
        #: States where an item is due, endless or not; none where it is not seen which these are.
        self.due: frozenset[int] = frozenset()
        self._spaces: set[int] = set()
        #: Whether endless values follow any comma, and any quote behind one; and whether they do all over a string.
        self.behind_commas = self.in_strings = False
        try:
            self._find(ends)
        except _UnseenError:
            self._strings = self._numbers = self._closed = self._due = self.due = frozenset()

    def follow(self, threads: tuple[Thread, ...], item: ItemInProgress | None) -> bool:
        """Whether it is seen that endless values can come of an item in progress, or of one that is due."""
        if item is None:
            return any(self._is_due(state, frame) for state, _, frame in threads)
        if isinstance(item, String):
            states = self._strings
        elif isinstance(item, Number) and item.exponent is None:
            states = self._numbers
        else:
            return False
        return any(state in states for state, _, _ in threads)

    def _find(self, ends: Iterable[int]) -> None:
        behind = self._over_spaces(ends)
        due = self._over_spaces([each for state in behind for each in self._led(state, _COMMA)])
        quoted = [each for state in due for each in self._led(state, _QUOTE)]
        begun = [each for state in due for each in self._led(state, _NUMERIC)]
        spots = _reached([(state, False) for state in quoted], self._within)
        endless = _not_ending(spots, lambda spot: self._within(spot, sure=True))
        strings = frozenset({state for state, _ in endless} - {state for state, _ in spots - endless})
        digits = _reached(begun, lambda state: self._led(state, _NUMERIC, plain=True))
        numbers = frozenset(_not_ending(digits, lambda state: self._led(state, _DIGITS, plain=True)))
        self._strings, self._numbers = strings, numbers
        self._closed = frozenset(self._closed_under_digits(numbers))
        self._due = frozenset(state for state in due if self._goes_on(state))
        self.due = frozenset(due)
        self.behind_commas = due <= self._due and strings.issuperset(quoted)
        self.in_strings = endless == spots

    def digits_follow(self, threads: tuple[Thread, ...]) -> bool:
        """Whether endless values are seen to come of a number in progress, whatever digits follow."""
        return any(state in self._closed for state, _, _ in threads)

    def _closed_under_digits(self, states: Iterable[int]) -> set[int]:
        """Those of some states that no digits lead away from."""
        every = b"0" + _DIGITS
        found = {state for state in states if next(self._moves(state, every), None) is None}
        while left := {state for state in found if not self._led(state, every, plain=True) <= found}:
            found -= left
        return found

    def _goes_on(self, state: int) -> bool:
        """Whether endless values follow a state where an item is due."""
        return any(
            not self._strings.isdisjoint(self._led(each, _QUOTE))
            or not self._numbers.isdisjoint(self._led(each, _DIGITS))
            for each in self._over_spaces([state])
        )

    def _is_due(self, state: int, frame: Stack) -> bool:
        return state in self._due or (state in self._spaces and frame is not None and frame.state in self._due)

    def _over_spaces(self, begin: Iterable[int]) -> set[int]:
        """States of an array, and where spaces lead that are not among `_spaces`, which lie above them meanwhile."""

        def led(state: int) -> Iterable[int]:
            found = set(self._led(state, _SPACES, plain=True))
            for move in self._moves(state, _SPACES):
                if len(move[1]) < 2 or move[0] is not None:
                    found |= self._made(move)
                    continue
                found.update(move[1][:-1])
                above = _reached(move[1][-1:], lambda each: self._led(each, _ALL, plain=True))
                if any(data.translate(None, _SPACES) for each in above for data, _ in self._tables.grouped(each)):
                    raise _UnseenError
                if any(sequence for each in above for _, sequence in self._moves(each, _ALL)):
                    raise _UnseenError
                self._spaces |= above
            return found

        return _reached(begin, led)

    def _within(self, spot: _Spot, *, sure: bool = False) -> list[_Spot]:
        """Where a byte within a string leads; or only where it does whatever the counts and the stack are."""
        state, is_escaped = spot
        led = self._surely_led if sure else self._led
        if is_escaped:
            return [(each, False) for each in led(state, _ALL)]
        return [(each, True) for each in led(state, _BACKSLASH)] + [(each, False) for each in led(state, _CHARACTERS)]

    def _surely_led(self, state: int, wanted: bytes) -> set[int]:
        """The states of plain moves, and those that are pushed, as behind the beginning of a declared name."""
        pushed = {sequence[-1] for record, sequence in self._moves(state, wanted) if record is None and sequence}
        return self._led(state, wanted, plain=True) | pushed

    def _led(self, state: int, wanted: bytes, *, plain: bool = False) -> set[int]:
        """The states on top of the stack after any of some bytes, or only those of plain moves.

        Raises `_UnseenError` where the stack has to be known for that.
        """
        targets = [target for data, target in self._tables.grouped(state) if data.translate(None, wanted) != data]
        found = {target for target in targets if target < self._tables.states}
        return found if plain else found.union(*map(self._made, self._moves(state, wanted)))

    def _moves(self, state: int, wanted: bytes) -> Iterator[Move]:
        """The moves that are not plain over any of some bytes."""
        for data, target in self._tables.grouped(state):
            if target >= self._tables.states and data.translate(None, wanted) != data:
                yield from self._tables.moves[target - self._tables.states]

    def _made(self, move: Move) -> set[int]:
        """The states on top of the stack after a move."""
        record, sequence = move
        if sequence:
            return {sequence[-1]}
        if record is None:
            raise _UnseenError
        return {first for first in (record[2:3] if record[0] == MARK else record[2:]) if first >= 0}


class _UnseenError(Exception):
    """It is not seen what follows."""


def _reached(begin: Iterable[T], led: Callable[[T], Iterable[T]]) -> set[T]:
    """What is reached, itself included. Raises `_UnseenError`."""
    found = set(begin)
    todo = list(found)
    while todo:
        new = set(led(todo.pop())) - found
        found |= new
        todo += new
        if len(found) > _MOST_STATES:
            raise _UnseenError
    return found


def _not_ending(members: set[T], led: Callable[[T], Iterable[T]]) -> set[T]:
    """Those from which one can go on without end, among members that ``led`` does not leave."""
    left = {member: set(led(member)) for member in members}
    before: dict[T, list[T]] = {}
    for member, after in left.items():
        for each in after:
            before.setdefault(each, []).append(member)
    ending = [member for member, after in left.items() if not after]
    for member in ending:  # which grows
        del left[member]
        for each in before.get(member, ()):
            left[each].discard(member)
            if not left[each]:
                ending.append(each)
    return set(left)
