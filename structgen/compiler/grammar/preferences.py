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

from collections.abc import Iterator

from ...budget import Budget, Meter
from ...errors import BudgetExceededError
from ...runtime.closure import bits
from ..automata.dfa import Dfa
from ..regex.lower import language, post_order
from ..regex.parser import parse
from ..regex.syntax import Look, Node, Repeat
from .matcher import Matcher
from .positions import Positions
from .rules import Terminal
from .scanner import Lexer

#: What may be spent on a terminal or a lexer: a grammar that needs more is compiled without being told.
_BUDGET = Budget(states=20_000, seconds=1.0)

#: So many places are looked through for one lexer.
_MOST_PLACES = 20_000


def in_regexes(terminals: tuple[Terminal, ...], matchers: list[Matcher | None]) -> Iterator[str]:
    """A sentence for each terminal of which the preferred match is not always the longest."""
    for t in sorted(_plain(terminals, matchers)):
        terminal, matcher = terminals[t], matchers[t]
        if terminal.text is not None or terminal.pattern is None or matcher is None:
            continue
        try:
            everything = language(parse(terminal.pattern), Meter(_BUDGET), edges=False, count=False)
        except BudgetExceededError:
            continue
        text = _not_preferred(matcher, everything)
        if text is not None:
            taken = text[: _longest(matcher, text)]
            yield (
                f"the terminal {terminal.name} matches {_shown(text)}, but takes {_shown(taken)} of it:"
                f" an alternative that comes earlier in its regex is preferred to a longer one"
            )


def among_terminals(terminals: tuple[Terminal, ...], lexer: Lexer, places: Positions) -> Iterator[str]:
    """A sentence for each two terminals of which one keeps the other from a longer match."""
    plain = sum(1 << t for t in _plain(terminals, places.matchers))
    texts = _texts_to(lexer)
    told: set[tuple[int, int]] = set()
    left = _MOST_PLACES
    for state in sorted(texts.keys() & lexer.cuts, key=lambda state: (len(texts[state]), state)):
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
                whole = texts[state] + rest
                yield (
                    f"of {_shown(whole)}, which the terminal {terminals[t].name} matches, the lexer takes"
                    f" {_shown(whole[: len(texts[state]) + more])} as {terminals[by if winner < 0 else winner].name},"
                    f" which is tried before it"
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
    lexer: Lexer, places: Positions, state: int, position: int, terminal: int, left: int
) -> tuple[bytes | None, int]:
    """The shortest text with which a terminal that was cut off matches, and none that is tried; and what is left."""
    first = _first_bytes(lexer)
    seen = {(state, position)}
    layer = [(state, position, b"")]
    while layer and left > 0:
        following = []
        for here, at, text in layer:
            left -= 1
            for c, target in enumerate(places.row(at)):
                if target < 0 or not places.alive[target] >> terminal & 1:
                    continue
                after = int(lexer.table[here, c]) if here >= 0 else -1
                if (after, target) in seen:
                    continue
                seen.add((after, target))
                longer = text + bytes([first[c]])
                if places.ending[target] >> terminal & 1 and (after < 0 or not lexer.ends[after]):
                    return longer, left
                following.append((after, target, longer))
        layer = following
    return None, left


def _plain(terminals: tuple[Terminal, ...], matchers: list[Matcher | None]) -> set[int]:
    """The terminals without lazy repeats and look-around."""
    return {
        t for t, terminal in enumerate(terminals)
        if matchers[t] is not None and terminal.pattern is not None
        and (terminal.text is not None or _is_plain(parse(terminal.pattern)))
    }  # fmt: skip


def _is_plain(tree: Node) -> bool:
    return not any(isinstance(node, Look) or (isinstance(node, Repeat) and node.lazy) for node in post_order(tree))


def _not_preferred(matcher: Matcher, everything: Dfa) -> bytes | None:
    """A shortest text that is a match and not the preferred one of itself."""
    first = _representatives(matcher, everything)
    start = everything.start, 0
    seen, layer = {start}, [(*start, b"")]
    while layer:
        following = []
        for state, preferred, text in layer:
            for byte in first:
                after = int(everything.table[state, everything.classes[byte]])
                if after < 0:
                    continue
                here = matcher.next(preferred, byte) if preferred >= 0 else -1
                if everything.accepting[after] and (here < 0 or not matcher.ends[here]):
                    return text + bytes([byte])
                if (after, here) not in seen:
                    seen.add((after, here))
                    following.append((after, here, text + bytes([byte])))
        layer = following
    return None


def _longest(matcher: Matcher, text: bytes) -> int:
    """How much of a text the preferred match takes."""
    state, taken = 0, 0
    for i, byte in enumerate(text):
        state = matcher.next(state, byte)
        if state < 0:
            break
        if matcher.ends[state]:
            taken = i + 1
    return taken


def _representatives(matcher: Matcher, everything: Dfa) -> list[int]:
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


def _texts_to(lexer: Lexer) -> dict[int, bytes]:
    """By lexer state: a shortest text that leads there."""
    first = _first_bytes(lexer)
    found: dict[int, bytes] = dict.fromkeys(lexer.starts, b"")
    for state in (queue := list(found)):
        for c, target in enumerate(lexer.table[state].tolist()):
            if target >= 0 and target not in found:
                found[target] = found[state] + bytes([first[c]])
                queue.append(target)
    return found


def _shown(text: bytes) -> str:
    return repr(text.decode("utf-8", "backslashreplace"))


def _unreadable(byte: int) -> tuple[bool, bool, bool]:
    return byte > 0x7F, not chr(byte).isalnum(), not 0x20 < byte < 0x7F


#: All bytes, those that are easy to read first.
_BY_EASE: list[int] = sorted(range(256), key=_unreadable)
_READABLE = bytes(_BY_EASE)
