"""`SeveralItems`: how many values an item can have at least, where they are not endless.

Strings that begin alike and go on with other letters, as many, are different; so are numbers of other digits behind a
digit that is none of zeros at the beginning. So it counts how texts go on for a few bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....system.memo import Memo
from ..machine import PushdownMachine
from ..stacks import Thread
from .items import QUOTE, ItemInProgress, Number, String
from .value_set import ValueSet

_LETTERS = bytes(each for each in range(0x20, 0x7F) if each not in b'"\\')
_DIGITS = b"0123456789"

#: So many bytes of a text are looked at.
_DEPTH = 3

#: How texts go on: what may come first, and then.
_Bytes = tuple[bytes, bytes]
_IN_STRING, _STRING = (_LETTERS, _LETTERS), (bytes((QUOTE,)), _LETTERS)
_IN_NUMBER, _NUMBER = (_DIGITS, _DIGITS), (_DIGITS[1:], _DIGITS)


class SeveralItems:
    """What is counted in the texts of an automaton.

    Parameters
    ----------
    inner:
        The automaton's machine.
    """

    def __init__(self, inner: PushdownMachine) -> None:
        self._inner = inner
        self._known: Memo[tuple[int, int, _Bytes], int] = Memo(1 << 12)

    def follow(self, threads: tuple[Thread, ...], item: ItemInProgress | None, values: ValueSet) -> bool:
        """Whether it is seen that more values can come of an item in progress, or due, than a set has of them."""
        kinds: tuple[_Bytes, ...] = ()
        size = len(values)
        if item is None:
            kinds = _STRING, _NUMBER
        elif isinstance(item, String) and isinstance(item.text, bytes) and not item.escape:
            kinds, size = (_IN_STRING,), values.count(item.text)
        elif isinstance(item, Number) and item.digits and item.exponent is None:
            kinds, size = (_IN_NUMBER,), values.count(item.beginning())
        return any(self._at(state, n, each) > size for state, n, _ in threads if state >= 0 for each in kinds)

    def behind_commas(self, due: Iterable[int]) -> int:
        """So many at least come of each of some states where an item is due, and of a quote there."""
        found = []
        for state in due:
            strings = self._at(state, 0, _STRING)
            has_strings = bool(self._inner.step(((state, 0, None),), QUOTE))
            found.append(strings if has_strings else self._at(state, 0, _NUMBER))
        return min(found, default=0)

    def _at(self, state: int, count: int, kind: _Bytes) -> int:
        key = state, count, kind
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._counted(((state, count, None),), kind)
        return found

    def _counted(self, begin: tuple[Thread, ...], kind: _Bytes) -> int:
        """The greatest number of texts of one length."""
        most, here = 0, {begin: 1}
        for depth in range(_DEPTH):
            after: dict[tuple[Thread, ...], int] = {}
            for threads, number in here.items():
                for byte in kind[depth > 0]:
                    led = self._inner.step(threads, byte)
                    if led:
                        after[led] = after.get(led, 0) + number
            here = after
            most = max(most, sum(here.values()))
        return most
