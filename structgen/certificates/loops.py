"""Counted loops by doubling: productions for any number of turns, of which a loop's bounds take only the logarithm.

A symbol of a machine is a state with a count. Turn after turn a state of a loop has the same productions, in each of
two *zones*: below the loop's minimum, and from there to below its maximum. So what many turns read is what half of
them read, twice over:

    across(2n, s, t)  =  across(n, s, r) across(n, r, t)   for each r        texts of 2n turns, from s to t
    leaving(2n, s)    =  leaving(n, s)  |  across(n, s, r) leaving(n, r)     texts that leave the loop sooner
    (s, c)            =  leaving(n, s)  |  across(n, s, t) (t, c + n)        for turns that are all in one zone

Each derivation of the machine's own productions is one of these, and the other way round; so texts are as short, as
long and as many. The last turns of a zone, and loops whose turns come to many states, are taken one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from ..budget import Meter
from ..runtime.core.machine import CompiledMachine, Productions, Symbol
from .languages import AnyProductions

_DOING = "looking through the automaton's loops"

#: Turns that are taken one by one.
_FEW = 16


class _Zone(NamedTuple):
    """Counts of a loop, from which another turn leads to the same states."""

    loop: int
    first: int
    last: int


class _Turns(NamedTuple):
    """A symbol of our own: ``2 ** doublings`` turns from a state.

    Parameters
    ----------
    what:
        ``"across"`` to the target, ``"leaving"`` by one of them, or ``"alive"`` for one turn of any kind.
    zone, doublings, state, target:
        Where; the target is -1 but for ``"across"``.
    """

    what: Literal["across", "leaving", "alive"]
    zone: _Zone
    doublings: int
    state: int
    target: int = -1


AnySymbol: TypeAlias = Symbol | _Turns


class _Move(NamedTuple):
    """A move of a state of a loop: its bytes, what it puts on top, and the state of the loop that it comes to.

    ``turns``: 1 where the count goes up by one; ``state`` is -1 for a move out of the loop.
    """

    data: bytes
    above: tuple[Symbol, ...]
    state: int
    turns: int

    def behind(self, count: int) -> tuple[Symbol, ...]:
        """What takes the place of a state with a count."""
        return self.above if self.state < 0 else ((self.state, count + self.turns), *self.above)


class DoubledLoops:
    """A machine's symbols and productions, its loops taken by doubling.

    Parameters
    ----------
    machine:
        One that has productions.
    meter:
        Bounds the work. Raises `BudgetExceededError` beyond.

    Attributes
    ----------
    others:
        Symbols that no production has, and that have texts if all counts of loops have.
    """

    def __init__(self, machine: CompiledMachine, meter: Meter) -> None:
        self._machine, self._meter = machine, meter
        self.others: list[AnySymbol] = []
        self._moves: dict[tuple[_Zone, int], tuple[bool, list[_Move]]] = {}
        self._arrivals: dict[tuple[_Zone, int, int], dict[int, None]] = {}
        self._pays: dict[tuple[_Zone, int], int] = {}

    @staticmethod
    def is_own(symbol: object) -> bool:
        """Whether a symbol stands for some turns across a loop or out of it, which need not have a text."""
        return isinstance(symbol, _Turns) and symbol.what != "alive"

    def productions(self, symbol: AnySymbol | None = None) -> tuple[AnySymbol, AnyProductions[AnySymbol]]:
        """A symbol, by default the first one on the stack, and its productions. As `CompiledMachine.productions`."""
        self._meter.check_time(_DOING)
        if isinstance(symbol, _Turns):
            return symbol, self._of_turns(symbol)
        zone = None if symbol is None else self._zone(*symbol)
        if symbol is None or zone is None:
            found, (ends, moves) = self._machine.productions(symbol)
            return found, (ends, list(moves))
        state, count = symbol
        doublings = min(self._worth(zone, state), (zone.last + 1 - count).bit_length() - 1)
        if 1 << doublings < _FEW:
            ends, inner = self._moves_of(zone, state)
            return symbol, (ends, [(move.data, move.behind(count)) for move in inner])
        further = count + (1 << doublings)
        across = [
            (None, ((target, further), _Turns("across", zone, doublings, state, target)))
            for target in self._arriving(zone, doublings, state)
        ]
        return symbol, (False, [(None, (_Turns("leaving", zone, doublings, state),)), *across])

    def _zone(self, state: int, count: int) -> _Zone | None:
        """The zone of a count; None for those by themselves."""
        loop = self._machine.loop(state)
        if loop is None or count < 1:
            return None
        number, least, most = loop
        for zone in (_Zone(number, 1, least - 2), _Zone(number, max(1, least - 1), most - 2)):
            if zone.first <= count <= zone.last and zone.last > zone.first:
                return zone
        return None

    def _moves_of(self, zone: _Zone, state: int) -> tuple[bool, list[_Move]]:
        """Whether a state has the empty text, and its moves: the same ones at each count of a zone."""
        known = self._moves.get((zone, state))
        if known is None:
            _, (ends, moves) = self._machine.productions((state, zone.last))
            known = self._moves[zone, state] = ends, [self._move(zone, *move) for move in moves]
        return known

    def _move(self, zone: _Zone, data: bytes, symbols: tuple[Symbol, ...]) -> _Move:
        if symbols:
            state, count = symbols[0]
            loop = self._machine.loop(state)
            if loop is not None and loop[0] == zone.loop and zone.last <= count <= zone.last + 1:
                return _Move(data, symbols[1:], state, count - zone.last)
        return _Move(data, symbols, -1, 0)

    # -- many turns ------------------------------------------------------------------------------------

    def _of_turns(self, symbol: _Turns) -> AnyProductions[AnySymbol]:
        what, zone, doublings, state, target = symbol
        if what == "alive":
            ways = [_Turns("across", zone, 0, state, each) for each in self._arriving(zone, 0, state)]
            return False, [(None, (each,)) for each in (_Turns("leaving", zone, 0, state), *ways)]
        if not doublings:
            ends, _ = self._moves_of(zone, state)
            return ends and what == "leaving", list(self._single(symbol))
        half = doublings - 1
        found: list[tuple[bytes | None, tuple[AnySymbol, ...]]] = []
        if what == "leaving":
            found.append((None, (_Turns(what, zone, half, state),)))
        for middle in self._arriving(zone, half, state):
            if what == "leaving" or target in self._arriving(zone, half, middle):
                rest = _Turns(what, zone, half, middle, target)
                found.append((None, (rest, _Turns("across", zone, half, state, middle))))
        return False, found

    def _single(self, symbol: _Turns) -> Iterator[tuple[bytes, tuple[AnySymbol, ...]]]:
        """The productions of a single turn."""
        what, zone, _, state, target = symbol
        for data, above, after, turns in self._moves_of(zone, state)[1]:
            if after < 0:
                if what == "leaving":
                    yield data, above
            elif turns:
                if after == target:
                    yield data, above
            elif what == "leaving" or target in self._arriving(zone, 0, after):
                yield data, (symbol._replace(state=after), *above)

    def _arriving(self, zone: _Zone, doublings: int, state: int) -> dict[int, None]:
        """The states that so many turns lead to."""
        key = zone, doublings, state
        known = self._arrivals.get(key)
        if known is None:
            if doublings:
                halves = self._arriving(zone, doublings - 1, state)
                known = {each: None for half in halves for each in self._arriving(zone, doublings - 1, half)}
            else:
                moves = [move for each in self._within(zone, state) for move in self._moves_of(zone, each)[1]]
                known = {move.state: None for move in moves if move.turns}
            self._arrivals[key] = known
        return known

    def _within(self, zone: _Zone, *states: int, turns: int = 0) -> list[int]:
        """Some states, and all that they lead to by so many turns at most: none, or one and again."""
        found = dict.fromkeys(states)
        todo = [*states]
        while todo:
            for move in self._moves_of(zone, todo.pop())[1]:
                if move.state >= 0 and move.turns <= turns and move.state not in found:
                    found[move.state] = None
                    todo.append(move.state)
        return [*found]

    def _worth(self, zone: _Zone, state: int) -> int:
        """How often it pays to double turns from a state; 0 for not at all.

        Notes what has to have texts so that all counts of the zone have: what can follow a turn, and the ends.
        """
        known = self._pays.get((zone, state))
        if known is None:
            doublings = (zone.last + 1 - zone.first).bit_length() - 1
            known = self._pays[zone, state] = 0
            if 1 << doublings >= _FEW:
                met = self._within(zone, state, turns=1)
                arriving = dict.fromkeys(each for state in met for each in self._arriving(zone, 0, state))
                if len(arriving) ** 2 * doublings <= 1 << doublings:
                    known = self._pays[zone, state] = doublings
                    self.others += [_Turns("alive", zone, 0, each) for each in met]
                    self.others += [(each, zone.last + 1) for each in arriving]
        return known


class Uncounted:
    """A machine's symbols with their counts in loops left out: what a state does with any count, it does.

    Parameters
    ----------
    machine:
        One that has productions.
    """

    def __init__(self, machine: CompiledMachine) -> None:
        self._machine = machine

    def productions(self, symbol: Symbol | None = None) -> tuple[Symbol, Productions]:
        """A symbol, by default the first one on the stack, and its productions. As `CompiledMachine.productions`."""
        state, count = symbol or self._machine.productions()[0]
        loop = self._machine.loop(state)
        counts = {count}
        if loop is not None:
            _, least, most = loop
            # One of each zone is enough; these are the counts around their bounds.
            counts = {min(max(0, each), most) for each in (0, 1, least - 2, least - 1, most - 2, most - 1, most)}
        found = [self._machine.productions((state, each))[1] for each in sorted(counts)]
        moves = {
            (data, tuple([self._plain(*each) for each in symbols])) for one in found for data, symbols in one.moves
        }
        return self._plain(state, count), Productions(found[0].ends, sorted(moves))

    def _plain(self, state: int, count: int) -> Symbol:
        return state, count if self._machine.loop(state) is None else 0
