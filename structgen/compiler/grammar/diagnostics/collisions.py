"""Terminals that match the same text where the lexer tries both: what Lark's strict mode refuses.

Regexes of one priority are compared, as there; strings, such as keywords, go before them. Whole texts are compared:
what a look-ahead sees behind a text is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from ....budget import Meter
from ....errors import DefinitionError
from ...automata.dfa import Dfa, intersect, trim
from ...automata.words import plain_dfa
from ...patterns.lower import language
from ...patterns.parser import parse
from ..lexer.leftmost_dfa import LeftmostDfa
from ..load.rules import Terminal

_DOING = "looking for terminals that collide"


def check(
    terminals: Sequence[Terminal], matchers: Sequence[LeftmostDfa | None], contexts: Iterable[int], meter: Meter
) -> None:
    """Raise `DefinitionError` for the first two that collide in one of some contexts, each a set of terminals."""
    regexes = [n for n, each in enumerate(terminals) if each.pattern is not None and each.text is None]
    known: dict[int, Dfa] = {}
    seen: set[tuple[int, int]] = set()
    for context in contexts:
        for pair in combinations([n for n in regexes if context >> n & 1], 2):
            meter.check_time(_DOING)
            one, other = (terminals[n] for n in pair)
            if pair in seen or one.priority != other.priority:
                continue
            seen.add(pair)
            for n in pair:
                if n not in known:
                    known[n] = _texts(terminals[n], matchers[n], meter)
            both = intersect(known[pair[0]], known[pair[1]], meter, _DOING)
            if both.states:
                raise DefinitionError(
                    f"the terminals {one.name} and {other.name} both match {_shortest(both)!r}",
                    where=f"terminal {one.name}",
                    remedy="Give one of them a priority, as in NAME.2, or leave strict=True out.",
                )


def _texts(terminal: Terminal, matcher: LeftmostDfa | None, meter: Meter) -> Dfa:
    """The texts that a terminal matches: where no regex says them, or not all of its texts count, its matcher's."""
    if matcher is None or not (terminal.is_bounded or terminal.automaton is not None):
        return language(parse(terminal.pattern or "", 0, meter), meter, count=False)
    return trim(plain_dfa(matcher.table, matcher.class_of.astype(np.int32), matcher.beats.astype(np.uint8)))


def _shortest(dfa: Dfa) -> str:
    """A shortest text of an automaton that has some."""
    before: dict[int, bytes] = {dfa.start: b""}
    for state in (todo := [dfa.start]):  # grows as it goes
        if dfa.accepting[state]:
            return before[state].decode("utf-8", "replace")
        for byte, column in enumerate(dfa.classes[:256].tolist()):
            target = int(dfa.table[state, column])
            if target >= 0 and target not in before:
                before[target] = before[state] + bytes([byte])
                todo.append(target)
    raise AssertionError("an automaton without states has no text")
