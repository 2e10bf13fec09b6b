"""Inclusion of context-free languages where it is plain: each production of one symbol has its like in another.

``p <= q`` holds if ``q`` has the empty text where ``p`` has it, and if for each production of ``p`` and each of its
bytes some production of ``q`` takes that byte, and has as many symbols, each above that of ``p`` in its place. The
greatest such relation is found by leaving out pairs until nothing changes. It implies inclusion of languages, by
induction over derivations, and is not implied by it. Where it fails, what left the pairs out leads to a text that may
be in one language alone: whoever asks has to try it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ..runtime.core.machine import Symbol
from .languages import MOST_BYTES, READABLE, GreibachLanguage, GreibachProduction

_DOING = "comparing productions"

_Pair: TypeAlias = tuple[int, int]


class _Demand(NamedTuple):
    """A production with one of its bytes, and the ways to meet it: each that all of some pairs hold."""

    made: GreibachProduction
    byte: int
    ways: tuple[tuple[_Pair, ...], ...]


class Simulation:
    """Whether productions show all texts of ``inner`` to be texts of ``outer``.

    Parameters
    ----------
    outer, inner:
        The languages. Raises `BudgetExceededError` of the inner one's meter.
    """

    def __init__(self, outer: GreibachLanguage[Symbol], inner: GreibachLanguage[Symbol]) -> None:
        self._outer, self._inner = outer, inner
        #: Pairs that don't hold, with what shows it: a demand that is not met, and the pair that a way to meet it
        #: lacks, if there is any; None where the empty text is lacking.
        self._false: dict[_Pair, tuple[_Demand, int, _Pair | None] | None] = {}
        self.holds = not (outer.reads_tokens or inner.reads_tokens) and self._compare()

    def _compare(self) -> bool:
        meter, start = self._inner.meter, (0, 0)
        demands: dict[_Pair, list[_Demand]] = {}
        users: dict[_Pair, set[_Pair]] = {}
        queue, seen = [start], {start}
        for pair in meter.each(queue, _DOING):  # grows as it goes
            demands[pair] = self._demands(pair)
            for each in {each for demand in demands[pair] for way in demand.ways for each in way}:
                users.setdefault(each, set()).add(pair)
                if each not in seen:
                    seen.add(each)
                    queue.append(each)
        for pair in queue:
            self._refute(pair, demands[pair])
        todo = [*self._false]
        for pair in meter.each(todo, _DOING):  # grows as it goes
            for user in users.get(pair, ()):
                if user not in self._false:
                    self._refute(user, demands[user])
                    if user in self._false:
                        todo.append(user)
        return start not in self._false

    def _demands(self, pair: _Pair) -> list[_Demand]:
        p, q = pair
        found = []
        for made in self._inner.productions[p]:
            if any(self._inner.cost[each] < 0 for each in made.symbols):
                continue
            likes = [
                (frozenset(each.data), tuple(zip(made.symbols, each.symbols, strict=True)))
                for each in self._outer.productions[q]
                if len(each.symbols) == len(made.symbols)
            ]
            asked: dict[tuple[tuple[_Pair, ...], ...], int] = {}
            for byte in sorted(made.data, key=READABLE.__getitem__):
                asked.setdefault(tuple([way for data, way in likes if byte in data]), byte)
            found += [_Demand(made, byte, ways) for ways, byte in asked.items()]
        return found

    def _refute(self, pair: _Pair, demands: list[_Demand]) -> None:
        """Note a pair that does not hold as far as is known."""
        p, q = pair
        if pair in self._false or self._inner.cost[p] < 0:
            return
        if self._inner.ends[p] and not self._outer.ends[q]:
            self._false[pair] = None
            return
        for demand in demands:
            if all(not self._false.keys().isdisjoint(way) for way in demand.ways):
                at, lacking = 0, None
                for way in demand.ways[:1]:
                    at, lacking = next((i, each) for i, each in enumerate(way) if each in self._false)
                self._false[pair] = demand, at, lacking
                return

    def candidate(self) -> bytes | None:
        """A text of the inner language that may not be one of the outer; None for none that is short enough."""
        before, behind = bytearray(), list[bytes]()
        pair: _Pair | None = (0, 0)
        while pair is not None and len(before) <= MOST_BYTES:
            reason = self._false.get(pair)
            if reason is None:
                break
            demand, at, pair = reason
            before.append(demand.byte)
            texts = [self._inner.shortest(each) for each in reversed(demand.made.symbols)]
            if any(text is None for text in texts):
                return None
            spelled = [text or b"" for text in texts]
            inner = len(spelled) - 1 - at if pair is not None else len(spelled)
            before += b"".join(spelled[:inner])
            behind.append(b"".join(spelled[inner + 1 :]))
        return bytes(before) + b"".join(reversed(behind))
