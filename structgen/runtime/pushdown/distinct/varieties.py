"""`Varieties`: how many values a scalar in progress can have at least, so that a set of fewer leaves room.

Longer strings are others, and so are strings that go on with other letters, as many. Of numbers that is so by digits,
of the longer ones by such as are no zeros. It is counted byte by byte through the automaton.
"""

from __future__ import annotations

from typing import NamedTuple

from .... import kernels
from ....system.memo import Memo
from ..counts import zones_of
from ..machine import PushdownMachine
from ..stacks import END
from ..store.configuration import StoredConfiguration
from ..tables import Moves
from .items import BACKSLASH, QUOTE, ItemInProgress, Number, String

#: States of a text that goes on and on; where there are more, that is not seen. Bytes for which values are counted.
_MOST_STATES, _DEPTH = 1 << 9, 3

#: More values than that come of what has no end.
_ENDLESS = 1 << 62

#: What may follow within a string, and a number, and what tells longer ones from others; what tells as many apart.
_DIGITS, _LETTERS = frozenset(b"0123456789"), frozenset(range(0x20, 0x7F)) - {QUOTE, BACKSLASH}
_NUMBER, _STRING = (_DIGITS, _DIGITS - {0x30}), (frozenset(range(256)) - {QUOTE},) * 2


class _Scalar(NamedTuple):
    """What is seen of the strings or numbers from a state on; see `Varieties`."""

    is_endless: bool
    is_alike: bool


class Varieties:
    """What is counted in the texts of an automaton.

    Parameters
    ----------
    inner:
        The automaton's machine.
    """

    def __init__(self, inner: PushdownMachine) -> None:
        self._inner = inner
        self._scalars: Memo[tuple[int, bool], _Scalar] = Memo(1 << 12)
        self._counts: Memo[tuple[int, int, bool], int] = Memo(1 << 12)

    def most(self, config: StoredConfiguration, item: ItemInProgress) -> int:
        """So many values at least can come of a scalar in progress; 0 where that is not seen."""
        return max(self._of(config, item), default=0)

    def is_endless(self, config: StoredConfiguration, item: ItemInProgress) -> bool:
        """Whether it is seen that values without end can come of it, whatever follows in it."""
        return min(self._of(config, item), default=0) == _ENDLESS

    def is_alike(self, config: StoredConfiguration) -> bool:
        """Whether a string in progress is seen to end alike whatever follows in it: with one place behind its quote."""
        ((state, _, _), *others) = config.store.rows_of(config.number)
        return not others and state != END and self._scalar(state, is_string=True).is_alike

    def _of(self, config: StoredConfiguration, item: ItemInProgress) -> list[int]:
        """The numbers by threads."""
        is_string = isinstance(item, String)
        if not is_string and not (isinstance(item, Number) and item.digits and item.exponent is None):
            return []
        found = []
        for state, count, _ in config.store.rows_of(config.number):
            if state != END and self._scalar(state, is_string=is_string).is_endless:
                found.append(_ENDLESS)
            elif state == END or count >= kernels.NUMBERED or (isinstance(item, String) and item.escape):
                found.append(0)
            else:
                key = state, count, is_string
                if key not in self._counts:
                    self._counts[key] = self._counted(*key)
                found.append(self._counts[key])
        return found

    def _scalar(self, state: int, *, is_string: bool) -> _Scalar:
        key = state, is_string
        if key not in self._scalars:
            found, reached = self._found(state, *(_STRING if is_string else _NUMBER))
            for each in reached if found.is_endless or found.is_alike else [state]:
                self._scalars[each, is_string] = found
        return self._scalars[key]

    def _found(self, state: int, within: frozenset[int], longer: frozenset[int]) -> tuple[_Scalar, list[int]]:
        """What is seen of a scalar, looking at all states that it can come to from one, and these."""
        reached, ends, is_endless = [state], set[Moves](), True
        for here in reached:  # which grows
            does = False
            for data, target in self._inner.grouped(here):
                moves = self._inner.moves_to(target)
                if QUOTE in data:
                    ends.add(moves)
                if within.isdisjoint(data):
                    continue
                if len(reached) > _MOST_STATES or any(len(above) != (record is None) for record, above in moves):
                    return _Scalar(False, False), reached
                tops = [top for record, above in moves for top in (zones_of(record) if record else above)]
                reached += {*tops} - {*reached}
                is_endless &= not any(record for record, _ in moves)
                does |= not longer.isdisjoint(data)
            is_endless &= does
        ends -= {((None, (top,)),) for top in reached}  # which an escape comes to
        is_alike = len(ends) == 1 and all(record is None and not above for ((record, above), *_) in ends)
        return _Scalar(is_endless, is_alike), reached

    def _counted(self, state: int, count: int, is_string: bool) -> int:
        """How many come of a state at least, whatever lies below it: the most texts of one length."""
        store, telling = self._inner.stepper(), _LETTERS if is_string else _DIGITS
        level, most = {store.keep([(state, count, -1)]): 1}, 0
        for _ in range(_DEPTH):
            found: dict[int, int] = {}
            for here, ways in level.items():
                ((top, _, _), *others) = store.rows_of(here)
                for data, _ in [] if others or top == END else self._inner.grouped(top):
                    told = telling.intersection(data)
                    after = store.after_byte(here, min(told)) if told else -1
                    if after >= 0:
                        found[after] = found.get(after, 0) + ways * len(told)
            level, most = found, max(most, sum(found.values()))
        return most
