"""Free text of so many characters and tokens at most, and what ends it, as the automaton of a rule.

A state is one of the automaton of Aho and Corasick (`structgen.compiler.gbnf.free_text`) with the places in ends that
have begun in the text, as the subset construction would have it. Of a text that is *exhausted*, by its last character
or token or by an excluded string, only such places are left.

A count of characters goes up with the first byte of each. The first two are spelled out: no count begins with the
first byte of a rule. A token counts if the text goes on where it ends. Where it ends within a character, the rest of
that character may follow, whatever the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...runtime.automaton.tables import INC, SET
from ..automata.edge_lists import EdgeLists, in_columns
from ..automata.utf8 import utf8_edges
from .free_text import AhoCorasick, by_target
from .syntax import FreeText

_DOING = "building free text with a bound"

#: What a place takes.
_BYTES_OF_PLACE = 100

#: The copies: nothing read yet; one character read; counted; exhausted.
_BEGIN, _ONE, _FREE, _EXHAUSTED = range(4)

#: Places in `_Ends`.
_Places: TypeAlias = frozenset[int]
_BEGUN, _NOWHERE = frozenset([0]), frozenset[int]()

#: An end in pieces, each with the number of the token that may stand for it, or -1; a token alone has no text.
End: TypeAlias = Sequence[tuple[str, int]]


class _Ends:
    """The trie of what ends a text, place 0 for nothing read.

    Ends that begin alike share their places as far as tokens may stand for the same pieces of them.
    """

    def __init__(self, ends: Iterable[End], meter: Meter) -> None:
        self.written: list[dict[tuple[str, str | int], int]] = [{}]  # by character, and the piece that it is of
        self.tokens: list[set[tuple[int, int]]] = [set()]  # each with the place behind it
        self.is_end = [False]
        for end in ends:
            place = 0
            for text, token in end:
                begin = place
                for character in text:
                    place = self._next(place, (character, text if token >= 0 else ""), meter)
                if not text and token >= 0:
                    place = self._next(place, ("", token), meter)
                if token >= 0:
                    self.tokens[begin].add((token, place))
            self.is_end[place] = True

    def _next(self, place: int, key: tuple[str, str | int], meter: Meter) -> int:
        found = self.written[place].setdefault(key, len(self.written))
        if found == len(self.written):
            meter.check_states(found, _DOING)
            self.written.append({})
            self.tokens.append(set())
            self.is_end.append(False)
        return found


def bounded_text(
    text: FreeText, ends: Sequence[End], *, characters: int | None, tokens: int | None, meter: Meter
) -> EdgeLists:
    """The automaton of a rule: free text of so many ``characters`` and ``tokens``, which has no triggers, and an end.

    None bounds nothing. Raises the errors of `AhoCorasick.of`.
    """
    return _Construction(AhoCorasick.of(text, meter, _DOING), _Ends(ends, meter), characters, tokens, meter).run()


class _Construction:
    """The states made so far: by copy, state of the automaton and places, with edges once their turn has come."""

    def __init__(
        self, automaton: AhoCorasick, ends: _Ends, characters: int | None, tokens: int | None, meter: Meter
    ) -> None:
        self._automaton = automaton
        self._ends = ends
        self._characters = characters
        self._tokens = tokens
        self._meter = meter
        self._held = 0
        self._edges: list[list[tuple[int, int, int]]] = []
        self._calls: list[tuple[tuple[int, int], ...]] = []
        self._accepting: list[bool] = []
        self._live: list[int] = []
        self._records: list[tuple[int, int, int, int, int]] = []
        self._bounds: dict[int, tuple[int, int]] = {}
        self._known: dict[tuple[int, int, _Places], int] = {}
        self._todo: list[tuple[int, int, int, _Places]] = []

    def run(self) -> EdgeLists:
        """The whole."""
        start = self._at(_EXHAUSTED if 0 in (self._characters, self._tokens) else _BEGIN, 0, _BEGUN)
        while self._todo:
            self._go_on(*self._todo.pop())
        loops = [(0, self._characters - 1)] if self._characters is not None and self._characters > 1 else []
        edges = in_columns([*map(sorted, self._edges)])
        return EdgeLists(edges, self._calls, self._accepting, self._live, self._records, loops, start, self._bounds)

    def _state(self, *, accepting: bool = False, live: bool = False) -> int:
        self._edges.append([])
        self._calls.append(())
        self._accepting.append(accepting)
        self._live.append(0 if live else -1)
        self._meter.check_states(len(self._edges), _DOING)
        return len(self._edges) - 1

    def _at(self, copy: int, here: int, places: _Places) -> int:
        """The state of a copy; where it is exhausted, ``here`` does not matter."""
        key = (copy, 0 if copy == _EXHAUSTED else here, places)
        state = self._known.get(key)
        if state is None:
            accepting = any(self._ends.is_end[place] for place in places)
            state = self._state(accepting=accepting, live=copy == _FREE and self._characters is not None)
            self._known[key] = state
            self._todo.append((state, *key))
            self._held += len(places)
            self._meter.check_memory(self._held * _BYTES_OF_PLACE, _DOING)
            if copy in (_ONE, _FREE) and self._tokens is not None:
                self._bounds[state] = self._tokens, self._at(_EXHAUSTED, 0, places)
        return state

    def _go_on(self, state: int, copy: int, here: int, places: _Places) -> None:
        """The edges of a state."""
        tokens = sorted({pair for place in places for pair in self._ends.tokens[place]})
        self._calls[state] = tuple(
            [(-1 - token, self._at(_EXHAUSTED, 0, frozenset([place]))) for token, place in tokens]
        )
        written: dict[str, list[int]] = {}
        for place in places:
            for (character, _), there in self._ends.written[place].items():
                if character:
                    written.setdefault(character, []).append(there)
        free, others = ({}, None) if copy == _EXHAUSTED else (self._automaton.moves(here), (0, _NOWHERE))
        targets = {
            character: (free.get(character, 0 if others else -1), frozenset(written.get(character, ())))
            for character in (*free, *written)
        }
        for ranges, (goal, after) in by_target(targets, others):
            if goal >= 0:
                self._count(state, copy, utf8_edges(ranges), goal, _BEGUN | after)
            elif after:
                self._character(state, utf8_edges(ranges), self._at(_EXHAUSTED, 0, after))

    def _count(self, source: int, copy: int, template: NDArray[np.int32], free: int, places: _Places) -> None:
        """A character with which the text goes on."""
        exhausted = self._at(_EXHAUSTED, 0, places)
        if self._characters is None:
            self._character(source, template, self._at(_FREE, free, places), exhausted)
        elif self._characters == copy + 1:
            self._character(source, template, exhausted)
        elif copy == _BEGIN:
            self._character(source, template, self._at(_ONE, free, places), exhausted)
        else:
            operation = SET if copy == _ONE else INC
            self._character(source, template, self._at(_FREE, free, places), exhausted, operation)

    def _character(
        self, source: int, template: NDArray[np.int32], target: int, exhausted: int = -1, operation: int = -1
    ) -> None:
        """A character, and beside it the rest of it for a text that is exhausted within it, if that may be."""
        inside, rest = [source, target], [-1, exhausted]
        for tail, low, high, head in template.tolist():
            while len(inside) <= max(tail, head):
                inside.append(self._state(live=operation >= 0))
                rest.append(self._state() if exhausted >= 0 else -1)
                if self._tokens is not None and exhausted >= 0:
                    self._bounds[inside[-1]] = self._tokens, rest[-1]
            if tail and exhausted >= 0:
                self._edges[rest[tail]].append((low, high, rest[head]))
            if tail or operation < 0:
                self._edges[inside[tail]].append((low, high, inside[head]))
            else:
                high_zone = inside[head] if operation == SET else rest[head]
                self._records.append((operation, 0, inside[head], inside[head], high_zone))
                self._edges[source].append((low, high, -1 - len(self._records)))
