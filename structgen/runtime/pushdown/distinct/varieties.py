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
        self._counts: Memo[tuple[int, int, bool], tuple[int, int]] = Memo(1 << 12)

    def are_more(self, than: int, config: StoredConfiguration, item: ItemInProgress) -> bool:
        """Whether it is seen that more values than so many can come of a scalar in progress."""
        is_string = isinstance(item, String)
        return self._is_counted(item) and any(
            self._scalar(state, is_string=is_string).is_endless
            or (count < kernels.NUMBERED and not (isinstance(item, String) and item.escape)
                and self._are_more(than, state, count, is_string))
            for state, count, _ in config.store.rows_of(config.number)
            if state != END
        )  # fmt: skip

    def is_endless(self, config: StoredConfiguration, item: ItemInProgress) -> bool:
        """Whether it is seen that values without end can come of it, whatever follows in it."""
        is_string, rows = isinstance(item, String), config.store.rows_of(config.number)
        return (
            bool(rows)
            and self._is_counted(item)
            and all(state != END and self._scalar(state, is_string=is_string).is_endless for state, _, _ in rows)
        )

    def is_alike(self, config: StoredConfiguration) -> bool:
        """Whether a string in progress is seen to end alike whatever follows in it: with one place behind its quote."""
        ((state, _, _), *others) = config.store.rows_of(config.number)
        return not others and state != END and self._scalar(state, is_string=True).is_alike

    @staticmethod
    def _is_counted(item: ItemInProgress) -> bool:
        """Whether values that can come of a scalar are counted at all."""
        return isinstance(item, String) or (isinstance(item, Number) and bool(item.digits) and item.exponent is None)

    def _are_more(self, than: int, state: int, count: int, is_string: bool) -> bool:
        """The same of a thread whose values end; it is counted as far as it takes to see it."""
        key = state, count, is_string
        most, depth = self._counts.get(key, (0, 0))
        while most <= than and depth < _DEPTH:
            depth += 1
            most = max(most, self._counted(*key, depth))
            self._counts[key] = most, depth
        return most > than

    def _scalar(self, state: int, *, is_string: bool) -> _Scalar:
        key = state, is_string
        if key not in self._scalars:
            found, reached = self._found(state, *(_STRING if is_string else _NUMBER))
            for each in reached if found.is_endless or found.is_alike else [state]:
                self._scalars[each, is_string] = found
        return self._scalars[key]

    def _found(self, state: int, within: frozenset[int], longer: frozenset[int]) -> tuple[_Scalar, list[int]]:
        """What is seen of a scalar, looking at all states that it can come to from one, and these."""
        reached, known, ends, is_endless = [state], {state}, set[Moves](), True
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
                reached += {*tops} - known
                known.update(tops)
                is_endless &= not any(record for record, _ in moves)
                does |= not longer.isdisjoint(data)
            is_endless &= does
        ends -= {((None, (top,)),) for top in reached}  # which an escape comes to
        is_alike = len(ends) == 1 and all(record is None and not above for ((record, above), *_) in ends)
        return _Scalar(is_endless, is_alike), reached

    def _counted(self, state: int, count: int, is_string: bool, depth: int) -> int:
        """How many texts of so many characters come of a state, whatever lies below it."""
        store, telling = self._inner.stepper(), _LETTERS if is_string else _DIGITS
        level = {store.keep([(state, count, -1)]): 1}
        for _ in range(depth):
            found: dict[int, int] = {}
            for here, ways in level.items():
                ((top, _, _), *others) = store.rows_of(here)
                for data, _ in [] if others or top == END else self._inner.grouped(top):
                    told = telling.intersection(data)
                    after = store.after_byte(here, min(told)) if told else -1
                    if after >= 0:
                        found[after] = found.get(after, 0) + ways * len(told)
            level = found
        return sum(level.values())
