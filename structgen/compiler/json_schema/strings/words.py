"""All texts, and all but finitely many, as the automata of their UTF-8 bytes.

For the latter, a byte that leaves the trie of the texts goes over to the automaton of all texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from ....budget import Budget, Meter
from ...automata.dfa import Dfa, minimize
from ...automata.words import cuts_around, plain_dfa, trie
from ...patterns.lower import language
from .trees import ANY_TEXT

_DEAD = -1


@cache
def everything() -> Dfa:
    """All sequences of Unicode scalar values, as UTF-8."""
    return language(ANY_TEXT, Meter(Budget()))


def other_words_dfa(words: Iterable[str], meter: Meter) -> Dfa:
    """The minimal automaton of all texts but these. Raises `BudgetExceededError`."""
    rest = everything()
    tail, labels, ends = trie(words, meter)
    states = len(tail) + 1
    # Where the automaton of all texts is when the trie is in each of its states.
    rows, of_byte = rest.table.tolist(), rest.classes.tolist()
    places = [rest.start]
    for source, symbol in zip(tail.tolist(), labels.tolist(), strict=True):
        places.append(rows[places[source]][of_byte[symbol]])
    beside = np.array(places)
    cuts = cuts_around(labels)
    cuts[1:256] |= np.diff(rest.classes) != 0
    classes = np.cumsum(cuts[:256], dtype=np.int32)
    columns = rest.classes[np.flatnonzero(np.r_[True, cuts[1:256]])]
    meter.check_memory(4 * states * len(columns), "building the automaton of excluded texts")
    outside = np.where(rest.table < 0, _DEAD, rest.table + states)[:, columns]
    table = np.vstack([outside[beside], outside]).astype(np.int32)
    table[tail, classes[labels]] = np.arange(1, states)
    accepting = np.append(rest.accepting[beside], rest.accepting)
    accepting[ends] = 0
    return minimize(plain_dfa(table, classes, accepting), meter)
