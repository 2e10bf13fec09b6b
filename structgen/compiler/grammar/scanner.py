"""The lexer of a grammar as one automaton over bytes, exactly as Lark's scanners read.

Lark tries the terminals of a context in a fixed order (priority, width, length, name) and takes the first that matches, with the
match that its regex prefers (`structgen.compiler.grammar.ordered`). So once a terminal has matched, terminals later in
the order are out; earlier ones, and a longer match of its own, may still replace it. A string that a regex matches as
well, a keyword among identifiers, is not tried by itself: where the regex's match is that string, it becomes the string.

Terminals are numbered in that order, and sets of them are integers. Their automata run side by side: a *position* is what is
left of all of them. A *lexer state* is a position, the terminals that still count, and the strings that their matches can turn
out to be. The contextual lexer starts in another state for each set of terminals that some parser state accepts, the basic one in one;
contexts share what is the same in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...errors import DefinitionError
from ...runtime.closure import bits, solve
from ..regex.parser import parse

from .matcher import Matcher
from .ordered import preferred
from .rules import Terminal
from .watching import may_stand, simplest


def matchers(terminals: tuple[Terminal, ...], flags: int, meter: Meter) -> list[Matcher | None]:
    """The automaton of each terminal; None for those without a pattern.

    Raises `DefinitionError` for one that can't be read, or matches nothing or nought.
    """
    found: list[Matcher | None] = []
    for terminal in terminals:
        if terminal.pattern is None:
            found.append(None)
            continue
        try:
            matcher = preferred(parse(terminal.pattern, flags, depth=meter.budget.depth), meter)
        except DefinitionError as error:
            where = f"terminal {terminal.name}{f', {error.where}' if error.where else ''}"
            raise type(error)(error.what, where=where, remedy=error.remedy) from error
        if not matcher.states:
            raise DefinitionError(
                "the terminal matches nothing", where=f"terminal {terminal.name}", remedy="Leave it out, or change its regex."
            )
        if matcher.ends[0]:
            raise DefinitionError(
                "the terminal matches the empty string",
                where=f"terminal {terminal.name}",
                remedy="Use + in place of *, and let rules say that it may be left out.",
            )
        found.append(matcher)
    return found


#: Terminals with the states of their automata, ascending.
Pairs: TypeAlias = tuple[tuple[int, int], ...]


class Positions:
    """All terminals' automata, side by side. Position 0 is the start; the others are worked out as they are asked for.

    By position: ``alive``, the terminals that are left; ``ending``, those of which matches end here; ``beating``, those of which a
    match is certain here; ``lapsing``: see `Matcher.lapses`.
    """

    def __init__(self, matchers: list[Matcher | None], meter: Meter) -> None:
        self.matchers = matchers
        self._meter = meter
        present = [matcher for matcher in matchers if matcher is not None]
        cuts = np.zeros(256, np.bool_)
        for matcher in present:
            cuts[1:] |= np.diff(matcher.class_of) != 0
        self.class_of = np.cumsum(cuts).astype(np.uint8)
        first = np.flatnonzero(np.concatenate([[True], cuts[1:]]))  # a byte of each class
        self.classes = len(first)
        self._tables: list[list[list[int]]] = [
            [] if matcher is None else matcher.table[:, matcher.class_of[first]].tolist() for matcher in matchers
        ]
        self._number: dict[Pairs, int] = {}
        self.pairs: list[Pairs] = []
        self.alive: list[int] = []
        self.ending: list[int] = []
        self.beating: list[int] = []
        self.lapsing: list[int] = []
        self._rows: dict[int, list[int]] = {}
        self.number(tuple((t, 0) for t, matcher in enumerate(matchers) if matcher is not None))

    def number(self, pairs: Pairs) -> int:
        """The number of a position. Raises `BudgetExceededError`."""
        known = self._number.get(pairs)
        if known is None:
            known = self._number[pairs] = len(self.pairs)
            self.pairs.append(pairs)
            if known % 256 == 0:
                self._meter.check_states(known, "running the terminals side by side")
                self._meter.check_time("running the terminals side by side")
            alive = ending = beating = lapsing = 0
            for t, state in pairs:
                matcher = self.matchers[t]
                assert matcher is not None
                alive |= 1 << t
                ending |= bool(matcher.ends[state]) << t
                beating |= bool(matcher.beats[state]) << t
                lapsing |= bool(matcher.lapses[state]) << t
            self.alive.append(alive)
            self.ending.append(ending)
            self.beating.append(beating)
            self.lapsing.append(lapsing)
        return known

    def row(self, position: int) -> list[int]:
        """The next position for each class of bytes, -1 where no terminal is left."""
        row = self._rows.get(position)
        if row is None:
            after: list[list[tuple[int, int]]] = [[] for _ in range(self.classes)]
            for t, state in self.pairs[position]:
                for c, target in enumerate(self._tables[t][state]):
                    if target >= 0:
                        after[c].append((t, target))
            row = self._rows[position] = [self.number(tuple(pairs)) if pairs else -1 for pairs in after]
        return row

    def ends(self, position: int, terminal: int) -> Iterator[tuple[int, int | None]]:
        """The matches of a terminal that end here: the variant, and the position that watches, None for this one."""
        pairs = self.pairs[position]
        at = next(i for i, (t, _) in enumerate(pairs) if t == terminal)
        state, matcher = pairs[at][1], self.matchers[terminal]
        assert matcher is not None
        variant = matcher.variant[state] if matcher.variant else 0
        for watch in matcher.ends[state]:
            if watch == state:
                yield variant, None
            else:
                marked = ((terminal, watch),) if watch >= 0 else ()
                yield variant, self.number((*pairs[:at], *marked))


@dataclass(frozen=True, eq=False)
class Embedded:
    """Strings that regexes match.

    Parameters
    ----------
    becomes:
        By regex terminal: the strings that its match can turn out to be.
    hidden_by:
        By string: the regexes beside which it is not tried by itself.
    """

    becomes: dict[int, int]
    hidden_by: dict[int, int]


def embedded(terminals: tuple[Terminal, ...], matchers: list[Matcher | None]) -> Embedded:
    """As `lark.lexer._create_unless` finds them."""
    becomes: dict[int, int] = {}
    hidden_by: dict[int, int] = {}
    texts = [(k, terminal, terminal.text) for k, terminal in enumerate(terminals) if terminal.text is not None]
    for t, (regex, matcher) in enumerate(zip(terminals, matchers, strict=True)):
        if regex.text is not None or matcher is None:
            continue
        for k, string, text in texts:
            if string.priority == regex.priority and _prefers(matcher, text.encode("utf-8", "surrogatepass")):
                becomes[t] = becomes.get(t, 0) | 1 << k
                if string.flags <= regex.flags:
                    hidden_by[k] = hidden_by.get(k, 0) | 1 << t
    return Embedded(becomes, hidden_by)


def _prefers(matcher: Matcher, text: bytes) -> bool:
    """Whether the preferred match of a text is all of it."""
    state = 0
    for byte in text:
        state = matcher.next(state, byte)
        if state < 0:
            return False
    return bool(matcher.whole[state])


@dataclass(frozen=True, eq=False)
class Lexer:
    """Lexer states of all contexts.

    Parameters
    ----------
    class_of:
        ``uint8[256]``.
    table:
        ``int32[states, classes]``: the next state, -1 where the lexeme cannot go on.
    ends:
        By state: the terminals that the bytes so far can be, if the lexeme ends here, each with the state that watches: if it
        comes to one that beats, the lexeme was something else. -1 where there is nothing to watch.
    beats, lapses:
        By state; see `structgen.compiler.grammar.matcher`.
    future:
        By state: the terminals that the lexeme can become, however it goes on.
    starts:
        By context: the state before the first byte of a lexeme, which no byte leads to.
    cuts:
        By state in which a match put terminals that could go on out of the question: the one that matched, those
        terminals, and the position.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    ends: list[list[tuple[int, int]]]
    beats: list[bool]
    lapses: list[bool]
    future: list[int]
    starts: list[int]
    cuts: dict[int, tuple[int, int, int]]


def lexer(contexts: list[int], places: Positions, words: Embedded, variants: int, meter: Meter) -> Lexer:
    """The lexer states of some contexts, given as sets of terminals.

    ``variants`` is the number of the first terminal that stands for a variant of another one. Raises `BudgetExceededError`.
    """
    return _Builder(places, words, variants, meter).run(contexts)


class _Builder:
    def __init__(self, places: Positions, words: Embedded, variants: int, meter: Meter) -> None:
        self._places = places
        self._words = words
        self._variants = variants
        self._meter = meter
        self._number: dict[tuple[int, int, int], int] = {}
        #: The terminals that still count, the strings that they can turn out to be, the position.
        self._states: list[tuple[int, int, int]] = []
        self._turned: dict[int, int] = {}
        self._cuts: dict[int, tuple[int, int, int]] = {}

    def run(self, contexts: list[int]) -> Lexer:
        starts: dict[tuple[int, int], int] = {}
        start_of = []
        table: list[list[int]] = []
        ends: list[list[tuple[int, int]]] = []
        beats: list[bool] = []
        lapses: list[bool] = []
        for context in contexts:
            counting = self._candidates(context)
            key = counting, context & self._strings(counting)
            if key not in starts:
                starts[key] = len(self._states)
                self._states.append((*key, 0))  # not interned: nothing leads here
            start_of.append(starts[key])
            while len(table) < len(self._states):
                if len(table) % 512 == 0:
                    self._meter.check_states(len(self._states), "building the lexer")
                    self._meter.check_time("building the lexer")
                row, found, beaten, lapsing = self._row(len(table), len(table) == start_of[-1])
                table.append(row)
                ends.append(found)
                beats.append(beaten)
                lapses.append(lapsing)
        arrays = np.array(table, np.int32), np.array(beats), np.array(lapses)
        kept = may_stand(*arrays)
        watches = simplest({watch for there in ends for _, watch in there if watch >= 0}, *arrays)
        ends = [[(t, watches[watch]) for t, watch in there if watch < 0 or kept[watch]] for there in ends]
        future = [sum({1 << t for t, _ in there}) for there in ends]
        solve(future, [sorted({target for target in row if target >= 0}) for row in table])
        return Lexer(
            self._places.class_of, np.array(table, np.int32), ends, beats, lapses, future, start_of, self._cuts
        )

    def _candidates(self, context: int) -> int:
        """The terminals that a scanner for a context tries."""
        hidden = sum(1 << k for k, by in self._words.hidden_by.items() if by & context)
        return context & ~hidden & self._places.alive[0]

    def _strings(self, counting: int) -> int:
        """The strings that matches of terminals can turn out to be."""
        found = self._turned.get(counting)
        if found is None:
            found = 0
            for t, strings in self._words.becomes.items():
                found |= strings if counting >> t & 1 else 0
            self._turned[counting] = found
        return found

    def _state(self, counting: int, strings: int, position: int) -> int:
        alive = self._places.alive[position]
        counting &= alive
        if not counting:
            return -1
        key = counting, strings & alive & self._strings(counting), position
        state = self._number.get(key)
        if state is None:
            state = self._number[key] = len(self._states)
            self._states.append(key)
        return state

    def _row(self, number: int, is_start: bool) -> tuple[list[int], list[tuple[int, int]], bool, bool]:
        """Where the bytes lead from a state, what can end there, whether something is certain there, and whether it lapses."""
        counting, strings, position = self._states[number]
        places = self._places
        beating = 0 if is_start else places.beating[position] & counting
        if beating:
            first = (beating & -beating).bit_length() - 1
            cut = counting & ~((2 << first) - 1)
            if cut:
                self._cuts[number] = first, cut, position
            counting &= (2 << first) - 1
        ends = []
        for t in bits(0 if is_start else places.ending[position] & counting):
            words = self._words.becomes.get(t, 0) & strings & places.ending[position]
            for variant, watching in places.ends(position, t):
                terminal = t
                if words:
                    terminal = (words & -words).bit_length() - 1
                elif (matcher := places.matchers[t]) is not None and matcher.variant and variant >= 0:
                    terminal = self._variants + variant
                watch = number if watching is None else self._state(counting & (2 << t) - 1, 0, watching)
                ends.append((terminal, watch))
        row = [self._state(counting, strings, target) if target >= 0 else -1 for target in places.row(position)]
        # What a match that is certain puts out of the question has no say in whether that match counts.
        return row, ends, bool(beating), bool(places.lapsing[position] & counting)
