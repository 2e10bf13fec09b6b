"""Where a lexer takes less than it could: matches that depend on an order and not on what is longest.

Lark takes the first terminal that matches, with the match that `re` prefers. Most of the time that is the longest
match of any; where it is not, the author may not know. Two things make the difference, and both are found exactly,
with a shortest text:

- *alternatives of one regex*: ``/a|ab/`` never takes ``ab``. The automaton of preferred matches runs beside that of
  all matches, up to a text that only the second one accepts.
- *terminals of one lexer*: with ``A.2: "ab"`` and ``B: /abc/`` the lexer takes ``A``. A lexer state at which later
  terminals were cut off runs beside their automata, up to a text that one of these matches and none that is still
  tried does.

Lazy repeats say that less is wanted, and look-around that a match depends on what follows it: terminals with these
are not looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, KeysView
from typing import Generic, TypeVar

from ....budget import Budget, Meter
from ....errors import BudgetExceededError
from ....runtime.core.digraph import bits
from ....system.visible import legibility
from ...automata.dfa import Dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from ..lexer.leftmost_dfa import LeftmostDfa
from ..lexer.positions import ProductStates
from ..lexer.scanner import Lexer, is_greedy
from ..load.rules import Terminal

#: What may be spent on a terminal or a lexer: a grammar that needs more is compiled without being told.
_MOST_STATES, _MOST_SECONDS = 20_000, 1.0

#: Of the time that is left all terminals may take so much, and one of them so much of that.
_ALL, _ONE = 4, 2

#: What the meter is told.
_DOING = "looking for matches that are not the longest"

_Key = TypeVar("_Key", bound=Hashable)

#: So many places are looked through for one lexer.
_MOST_PLACES = 20_000

#: Bytes, those first that examples read best with.
_READABLE: list[int] = sorted(range(256), key=legibility)


def in_regexes(terminals: tuple[Terminal, ...], matchers: list[LeftmostDfa | None], meter: Meter) -> Iterator[str]:
    """A sentence for each terminal of which the preferred match is not always the longest.

    Raises `BudgetExceededError` where the time is up.
    """
    whole = _part(meter, _ALL, meter.budget.seconds)
    for t in sorted(_plain(terminals, matchers)):
        terminal, matcher = terminals[t], matchers[t]
        if terminal.text is not None or terminal.pattern is None or terminal.automaton is not None or matcher is None:
            continue
        meter.check_time(_DOING)
        try:
            part = _part(whole, _ONE, _MOST_SECONDS)
            everything = language(parse(terminal.pattern, 0, part), part, edges=False, count=False)
            text = _not_preferred(matcher, everything, part)
        except BudgetExceededError:
            continue
        if text is not None:
            taken = text[: _longest(matcher, text)]
            yield (
                f"the terminal {terminal.name} matches {_shown(text)}, but takes {_shown(taken)} of it:"
                f" an alternative that comes earlier in its regex is preferred to a longer one"
            )


def _part(meter: Meter, share: int, most: float) -> Meter:
    """A meter for something that may be left out: a share of what is left of another one, so many seconds at most."""
    seconds = min(most, max(1e-9, meter.work(1_000_000) / 1_000_000 / share))
    return Meter(Budget(_MOST_STATES, meter.budget.memory, seconds, meter.budget.depth))


def among_terminals(
    terminals: tuple[Terminal, ...], lexer: Lexer, places: ProductStates, meter: Meter
) -> Iterator[str]:
    """A sentence for each two terminals of which one keeps the other from a longer match.

    Raises `BudgetExceededError` where the time is up.
    """
    if not lexer.cuts:
        return
    plain = sum(1 << t for t in _plain(terminals, places.matchers))
    texts = _texts_to(lexer, meter)
    told: set[tuple[int, int]] = set()
    left = _MOST_PLACES
    for state in sorted(texts.keys() & lexer.cuts, key=lambda state: (texts.depth(state), state)):
        meter.check_time(_DOING)
        by, cut, position = lexer.cuts[state]
        if not plain >> by & 1:
            continue
        for t in bits(cut & plain):
            if (by, t) in told or left <= 0:
                continue
            rest, left = _longer(lexer, places, state, position, t, left)
            if rest is not None:
                told.add((by, t))
                more, winner = _taken(lexer, state, rest)
                whole, name = texts.to(state) + rest, terminals[by if winner < 0 else winner].name
                yield (
                    f"of {_shown(whole)}, which the terminal {terminals[t].name} matches, the lexer takes"
                    f" {_shown(whole[: len(whole) - len(rest) + more])} as {name}, which is tried before it"
                )


def _taken(lexer: Lexer, state: int, rest: bytes) -> tuple[int, int]:
    """How much of what comes after a match the lexer takes as well, and as what; -1 where that match stands."""
    found = 0, -1
    for i, byte in enumerate(rest):
        state = int(lexer.table[state, lexer.class_of[byte]])
        if state < 0:
            break
        if lexer.ends[state]:
            found = i + 1, lexer.ends[state][0][0]
    return found


def _longer(
    lexer: Lexer, places: ProductStates, state: int, position: int, terminal: int, left: int
) -> tuple[bytes | None, int]:
    """The shortest text with which a terminal that was cut off matches, and none that is tried; and what is left."""
    first = _first_bytes(lexer)
    texts = _Texts([(state, position)])
    for pair in texts:  # grows as it goes
        if left <= 0:
            break
        left -= 1
        here, at = pair
        for c, target in enumerate(places.row(at)):
            if target < 0 or not places.alive[target] >> terminal & 1:
                continue
            after = int(lexer.table[here, c]) if here >= 0 else -1
            is_new = texts.add((after, target), pair, first[c])
            if is_new and places.ending[target] >> terminal & 1 and (after < 0 or not lexer.ends[after]):
                return texts.to((after, target)), left
    return None, left


def _plain(terminals: tuple[Terminal, ...], matchers: list[LeftmostDfa | None]) -> set[int]:
    """The terminals without lazy repeats and look-around, as long as may be."""
    return {
        t
        for t, terminal in enumerate(terminals)
        if matchers[t] is not None
        and terminal.pattern is not None
        and (terminal.text is not None or terminal.automaton is not None or is_greedy(parse(terminal.pattern)))
        and not terminal.is_bounded
    }


def _not_preferred(matcher: LeftmostDfa, everything: Dfa, meter: Meter) -> bytes | None:
    """A shortest text that is a match and not the preferred one of itself. Raises `BudgetExceededError`."""
    first = _representatives(matcher, everything)
    texts = _Texts([(everything.start, 0)])
    for pair in texts:  # grows as it goes
        meter.check_time(_DOING)
        state, preferred = pair
        for byte in first:
            after = int(everything.table[state, everything.classes[byte]])
            if after < 0:
                continue
            here = matcher.next(preferred, byte) if preferred >= 0 else -1
            texts.add((after, here), pair, byte)
            if everything.accepting[after] and (here < 0 or not matcher.ends[here]):
                return texts.to(pair) + bytes([byte])
    return None


class _Texts(Generic[_Key]):
    """Shortest texts that lead somewhere, each as the last byte and where it leads from; shorter ones first."""

    def __init__(self, starts: Iterable[_Key]) -> None:
        self._order = list(starts)
        #: Where the last byte leads from, that byte, and the length; the starts lead from themselves.
        self._last: dict[_Key, tuple[_Key, int, int]] = {start: (start, -1, 0) for start in self._order}

    def __iter__(self) -> Iterator[_Key]:
        return iter(self._order)

    def keys(self) -> KeysView[_Key]:
        """All that texts lead to."""
        return self._last.keys()

    def add(self, key: _Key, before: _Key, byte: int) -> bool:
        """Where a byte leads from something known; whether that is new."""
        if key in self._last:
            return False
        self._last[key] = before, byte, self._last[before][2] + 1
        self._order.append(key)
        return True

    def depth(self, key: _Key) -> int:
        """How long the text is."""
        return self._last[key][2]

    def to(self, key: _Key) -> bytes:
        """The text."""
        found = bytearray()
        while self._last[key][1] >= 0:
            key, byte, _ = self._last[key]
            found.append(byte)
        return bytes(reversed(found))


def _longest(matcher: LeftmostDfa, text: bytes) -> int:
    """How much of a text the preferred match takes."""
    state, taken = 0, 0
    for i, byte in enumerate(text):
        state = matcher.next(state, byte)
        if state < 0:
            break
        if matcher.ends[state]:
            taken = i + 1
    return taken


def _representatives(matcher: LeftmostDfa, everything: Dfa) -> list[int]:
    """A byte of each class, letters and digits rather than others."""
    found: dict[tuple[int, int], int] = {}
    for byte in _READABLE:
        found.setdefault((int(matcher.class_of[byte]), int(everything.classes[byte])), byte)
    return [byte for byte in _READABLE if byte in found.values()]


def _first_bytes(lexer: Lexer) -> list[int]:
    found: dict[int, int] = {}
    for byte in _READABLE:
        found.setdefault(int(lexer.class_of[byte]), byte)
    return [found[c] for c in range(len(found))]


def _texts_to(lexer: Lexer, meter: Meter) -> _Texts[int]:
    """By lexer state: a shortest text that leads there. Raises `BudgetExceededError`."""
    first = _first_bytes(lexer)
    found = _Texts(dict.fromkeys(lexer.starts))
    for state in found:  # grows as it goes
        meter.check_time(_DOING)
        row = lexer.table[state].tolist()
        for target in dict.fromkeys(row):
            if target >= 0:
                found.add(target, state, first[row.index(target)])
    return found


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))
