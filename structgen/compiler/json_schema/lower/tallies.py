"""What must be remembered of the items of an array, or the members of an object, that have been there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ....errors import InternalError
from ..normal_form.shapes import Count

_State = TypeVar("_State")

#: No text has more items or members than that; larger bounds would overflow the stored counts.
MAX_COUNT = 1 << 30


class Tally(NamedTuple):
    """Their number, saturated, how many earned each mark, saturated, and a bit for each listed one that was there."""

    number: int
    earned: tuple[int, ...]
    seen: int = 0


class Tallying:
    """The tallies of a shape: up to ``most``, None for any number; ``enough`` is the number that saturates."""

    def __init__(self, least: int, most: int | None, enough: int, marks: tuple[Count, ...]) -> None:
        self.least, self.most, self.enough, self.marks = least, most, enough, marks
        self.start = Tally(0, (0,) * len(marks))
        #: Whether nothing is told apart: there is one tally.
        self.is_single = not marks and not enough and most is None

    def add(self, tally: Tally, marks: int, bit: int = 0) -> Tally | None:
        """The tally with another one; None where that is one too many, earns too much, or has been there before.

        The bits of ``marks`` above those to be earned are listed ones, as ``bit`` is.
        """
        if self.is_single and not marks and not bit:
            return tally
        bit |= marks >> len(self.marks)
        if bit & tally.seen or tally.number == self.most:
            return None
        earned = list(tally.earned)
        for k, count in enumerate(self.marks):
            if marks >> k & 1:
                earned[k] += 1
                if count.max is None:
                    earned[k] = min(earned[k], count.min)
                elif earned[k] > count.max:
                    return None
        return Tally(min(tally.number + 1, self.enough), tuple(earned), tally.seen | bit)

    def is_enough(self, tally: Tally) -> bool:
        """Whether the array or the object may end, as far as the tally goes."""
        if tally.number < self.least or not self.marks:
            return tally.number >= self.least
        return all(n >= count.min for n, count in zip(tally.earned, self.marks, strict=True))


#: Where nothing is told apart.
NOTHING_TOLD = Tallying(0, None, 0, ())


def states(
    start: _State,
    after: Callable[[_State], Iterable[_State]],
    is_end: Callable[[_State], bool],
    check: Callable[[int], object],
) -> dict[_State, bool]:
    """What can be reached and come to an end, each with whether it can go on."""
    following = reachable(start, after, check)
    alive = live(following, is_end)
    if start not in alive:
        raise InternalError("a shape without members reached the lowering")
    return {here: not alive.keys().isdisjoint(following[here]) for here in alive}


def reachable(
    start: _State, after: Callable[[_State], Iterable[_State]], check: Callable[[int], object]
) -> dict[_State, set[_State]]:
    """All that can be reached, each with what can come next; ``check`` is told how many there are so far."""
    following: dict[_State, set[_State]] = {}
    todo = [start]
    while todo:
        here = todo.pop()
        if here not in following:
            if not len(following) % 64:
                check(len(following))
            following[here] = set(after(here))
            todo.extend(following[here])
    return following


def live(following: dict[_State, set[_State]], is_end: Callable[[_State], bool]) -> dict[_State, None]:
    """Those from which an end can be reached."""
    before: dict[_State, list[_State]] = {}
    for here, afters in following.items():
        for after in afters:
            before.setdefault(after, []).append(here)
    todo = list(filter(is_end, following))
    found = dict.fromkeys(todo)
    while todo:
        for here in before.get(todo.pop(), ()):
            if here not in found:
                found[here] = None
                todo.append(here)
    return found
