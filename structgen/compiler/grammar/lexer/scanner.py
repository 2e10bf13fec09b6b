"""The lexer of a grammar as one automaton over bytes, exactly as Lark's scanners read.

Lark tries the terminals of a context in a fixed order (priority, width, length, name) and takes the first that
matches, with the match that its regex prefers (`structgen.compiler.grammar.lexer.ordered`). So once a terminal has
matched, terminals later in the order are out; earlier ones, and a longer match of its own, may still replace it. A
string that a regex matches as well, a keyword among identifiers, is not tried by itself: where the regex's match is
that string, it becomes the string.

Terminals are numbered in that order, and sets of them are integers. Their automata run side by side: a *position* is
what is left of all of them. A *lexer state* is a position, the terminals that still count, and the strings that their
matches can turn out to be. The contextual lexer starts in another state for each set of terminals that some parser
state accepts, the basic one in one; contexts share what is the same in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....errors import DefinitionError
from ....runtime.core.digraph import bits
from ...automata.dfa import Dfa
from ...patterns.empty_texts import NOTHING, without_empty
from ...patterns.lower import language
from ...patterns.measures import post_order
from ...patterns.parser import parse
from ...patterns.syntax import Look, Node, Repeat
from ..load.rules import Terminal
from . import algebra
from .leftmost_dfa import LeftmostDfa
from .lengths import bounded
from .ordered import preferred
from .positions import ProductStates
from .program import LexerProgram


def matchers(terminals: tuple[Terminal, ...], flags: int, meter: Meter) -> list[LeftmostDfa | None]:
    """The automaton of each terminal; None for those without a pattern.

    Raises `DefinitionError` for one that can't be read, or matches nothing or nought.
    """
    made = LexerProgram()
    whole: dict[int, Dfa] = {}  # by number, those of which the longest match counts
    for t, terminal in enumerate(terminals):
        if terminal.automaton is not None:
            whole[t] = algebra.without_empty(terminal.automaton, meter)
        if terminal.pattern is None or terminal.automaton is not None:
            continue
        meter.check_time("reading the terminals")
        try:
            tree = parse(terminal.pattern, flags, meter)
            tree = (without_empty(tree) if terminal.is_optional else None) or tree
            if terminal.takes_longest and is_greedy(tree):
                whole[t] = language(tree, meter, edges=False, count=False)
            else:
                made.add(tree, meter)
        except DefinitionError as error:
            raise _of(terminal, error) from error
    automata = iter(preferred(made, meter))
    found = [
        None
        if terminal.pattern is None and terminal.automaton is None
        else bounded(terminal, LeftmostDfa.of(whole[t]) if t in whole else next(automata), meter)
        for t, terminal in enumerate(terminals)
    ]
    for terminal, matcher in zip(terminals, found, strict=True):
        if matcher is not None and not matcher.states:
            raise DefinitionError(
                "the terminal matches nothing",
                where=f"terminal {terminal.name}",
                remedy="Leave it out, or change its regex.",
            )
        if matcher is not None and matcher.ends[0]:
            raise DefinitionError(
                "the terminal matches the empty string",
                where=f"terminal {terminal.name}",
                remedy="Use + in place of *, and let rules say that it may be left out.",
            )
    return found


def is_greedy(tree: Node) -> bool:
    """Whether a regex has neither lazy repeats, which say that less is wanted, nor look-around."""
    return not any(isinstance(node, Look) or (isinstance(node, Repeat) and node.lazy) for node in post_order(tree))


def optional(terminals: tuple[Terminal, ...], meter: Meter) -> tuple[set[str], set[str]]:
    """The names of the terminals that may be left out, and of those that match nothing else.

    Raises `DefinitionError` for one that can't be read.
    """
    found: tuple[set[str], set[str]] = set(), set()
    for terminal in terminals:
        if terminal.substring is not None:
            found[0].add(terminal.name)
        elif terminal.automaton is not None:
            if algebra.is_optional(terminal.automaton):
                is_only = not algebra.without_empty(terminal.automaton, meter).states
                found[is_only].add(terminal.name)
        elif terminal.pattern is not None and terminal.has_no_width:
            meter.check_time("reading the terminals")
            try:
                others = without_empty(parse(terminal.pattern, 0, meter))
            except DefinitionError as error:
                raise _of(terminal, error) from error
            if others is not None:
                found[others is NOTHING].add(terminal.name)
    return found


def _of(terminal: Terminal, error: DefinitionError) -> DefinitionError:
    """An error, with the terminal that it is about."""
    name = f"/{terminal.pattern}/" if terminal.name.startswith("__ANON") else f"terminal {terminal.name}"
    where = f"{name}{f', {error.where}' if error.where else ''}"
    return type(error)(error.what, where=where, remedy=error.remedy)


#: Bytes of a lexer state besides its row in the table.
_BYTES_OF_STATE = 500


@dataclass(frozen=True, eq=False)
class EmbeddedStrings:
    """Strings that regexes match.

    Parameters
    ----------
    becomes:
        By regex terminal: the strings that its match can turn out to be.
    hidden_by:
        By string: the regexes beside which it is not tried by itself.
    rivals:
        By terminal of which the longest match counts: those tried later whose match is preferred if it is longer.
    over:
        By terminal with the shortest match: those tried earlier that are over where it is, of such ones.
    """

    becomes: dict[int, int]
    hidden_by: dict[int, int]
    rivals: dict[int, int]
    over: dict[int, int]


def embedded(terminals: tuple[Terminal, ...], matchers: list[LeftmostDfa | None], meter: Meter) -> EmbeddedStrings:
    """As `lark.lexer._create_unless` finds them. Raises `BudgetExceededError`."""
    becomes: dict[int, int] = {}
    hidden_by: dict[int, int] = {}
    texts = [
        (k, terminal, terminal.text.encode("utf-8", "surrogatepass"))
        for k, terminal in enumerate(terminals)
        if terminal.text is not None
    ]
    for t, (regex, matcher) in enumerate(zip(terminals, matchers, strict=True)):
        if regex.text is not None or matcher is None or regex.is_shortest:
            continue
        for i, (k, string, text) in enumerate(texts):
            if i % 256 == 0:
                meter.check_time("looking for strings that regexes match")
            if string.priority == regex.priority and _prefers(matcher, text):
                becomes[t] = becomes.get(t, 0) | 1 << k
                if string.flags <= regex.flags:
                    hidden_by[k] = hidden_by.get(k, 0) | 1 << t
    return EmbeddedStrings(becomes, hidden_by, _rivals(terminals), _over(terminals))


def _rivals(terminals: tuple[Terminal, ...]) -> dict[int, int]:
    """By terminal of which the longest match counts: those of the same priority behind it."""
    found: dict[int, int] = {}
    for t, terminal in enumerate(terminals):
        is_longest = terminal.takes_longest and not terminal.is_shortest and terminal.pattern is not None
        if terminal.automaton is not None or (is_longest and is_greedy(parse(terminal.pattern or ""))):
            same = (1 << k for k, each in enumerate(terminals) if k > t and each.priority == terminal.priority)
            found[t] = sum(same)
    return found


def _over(terminals: tuple[Terminal, ...]) -> dict[int, int]:
    """By terminal with the shortest match: those of the same priority before it. As llguidance's lazy lexemes."""
    found: dict[int, int] = {}
    before: dict[int, int] = {}
    for t, terminal in enumerate(terminals):
        if terminal.is_shortest:
            found[t] = before.get(terminal.priority, 0)
            before[terminal.priority] = found[t] | 1 << t
    return found


def _prefers(matcher: LeftmostDfa, text: bytes) -> bool:
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
        By state: the terminals that the bytes so far can be, if the lexeme ends here, each with the state that
        watches: if it comes to one that beats, the lexeme was something else. -1 where there is nothing to watch.
    beats, lapses:
        By state; see `structgen.compiler.grammar.lexer.leftmost_dfa`.
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
    starts: list[int]
    cuts: dict[int, tuple[int, int, int]]


def lexer(contexts: list[int], places: ProductStates, words: EmbeddedStrings, variants: int, meter: Meter) -> Lexer:
    """The lexer states of some contexts, given as sets of terminals.

    ``variants`` is the number of the first terminal that stands for a variant of another one. Raises
    `BudgetExceededError`.
    """
    return _Builder(places, words, variants, meter).run(contexts)


class _Builder:
    """The lexer states, as they are come to.

    Where one terminal alone is left, its own automaton is all there is: these states are taken over as they are.
    Until all others are there they are known by negative numbers.
    """

    def __init__(self, places: ProductStates, words: EmbeddedStrings, variants: int, meter: Meter) -> None:
        self._places = places
        self._words = words
        self._variants = variants
        self._meter = meter
        self._number: dict[tuple[int, int, int], int] = {}
        #: The terminals that still count, the strings that they can turn out to be, the position.
        self._states: list[tuple[int, int, int]] = []
        #: By set of terminals: the strings that their matches can turn out to be.
        self._strings: dict[int, int] = {}
        #: By the regexes beside which they are not tried by themselves: strings.
        self._hidden: dict[int, int] = {}
        for string, by in words.hidden_by.items():
            self._hidden[by] = self._hidden.get(by, 0) | 1 << string
        self._cuts: dict[int, tuple[int, int, int]] = {}
        sizes = [0 if matcher is None else matcher.states for matcher in places.matchers]
        #: By terminal: the number of its first state among those of single terminals.
        self._first = np.cumsum([0, *sizes]).tolist()

    def run(self, contexts: list[int]) -> Lexer:
        starts: dict[tuple[int, int], int] = {}
        start_of = []
        rows: list[NDArray[np.int32]] = []
        ends: list[list[tuple[int, int]]] = []
        beats: list[bool] = []
        lapses: list[bool] = []
        for context in contexts:
            counting = self._candidates(context)
            key = counting, context & self._becoming(counting)
            if key not in starts:
                starts[key] = len(self._states)
                self._states.append((*key, 0))  # not interned: nothing leads here
            start_of.append(starts[key])
            while len(rows) < len(self._states):
                self._meter.check_time("building the lexer")
                if len(rows) % 64 == 0:
                    self._check_size()
                row, found, beaten, lapsing = self._row(len(rows), len(rows) == start_of[-1])
                rows.append(row)
                ends.append(found)
                beats.append(beaten)
                lapses.append(lapsing)
        self._check_size()
        count = len(rows)
        table = np.concatenate([np.stack(rows), *self._single_tables()])
        ends += self._single_ends()
        for matcher in self._places.matchers:
            beats += [] if matcher is None else matcher.beats.tolist()
            lapses += [] if matcher is None else matcher.lapses.tolist()
        return Lexer(
            self._places.class_of, np.where(table < -1, np.int32(count - 2) - table, table),
            [[(t, count - 2 - watch if watch < -1 else watch) for t, watch in there] for there in ends],
            beats, lapses, start_of, self._cuts,
        )  # fmt: skip

    def _check_size(self) -> None:
        states = len(self._states) + self._first[-1]
        self._meter.check_states(states, "building the lexer")
        self._meter.check_memory(states * (3 * 4 * self._places.classes + _BYTES_OF_STATE), "building the lexer")

    def _single(self, terminal: int, state: int) -> int:
        return -2 - self._first[terminal] - state if state >= 0 else -1

    def _single_tables(self) -> Iterator[NDArray[np.int32]]:
        for first, table in zip(self._first, self._places.tables, strict=False):
            yield np.where(table >= 0, np.int32(-2 - first) - table, np.int32(-1))

    def _single_ends(self) -> Iterator[list[tuple[int, int]]]:
        for t, matcher in enumerate(self._places.matchers):
            for state, watches in enumerate(matcher.ends if matcher is not None else ()):
                terminal = self._terminal(t, matcher.variant[state] if matcher is not None and matcher.variant else 0)
                yield [(terminal, self._single(t, watch)) for watch in watches]

    def _terminal(self, terminal: int, variant: int) -> int:
        """What stands for a terminal, or for a variant of it."""
        matcher = self._places.matchers[terminal]
        return self._variants + variant if matcher is not None and matcher.variant and variant >= 0 else terminal

    def _candidates(self, context: int) -> int:
        """The terminals that a scanner for a context tries."""
        hidden = 0
        for by, strings in self._hidden.items():
            hidden |= strings if by & context else 0
        return context & ~hidden & self._places.alive[0]

    def _becoming(self, counting: int) -> int:
        found = self._strings.get(counting)
        if found is None:
            found = 0
            for t, strings in self._words.becomes.items():
                found |= strings if counting >> t & 1 else 0
            self._strings[counting] = found
        return found

    def _state(self, counting: int, strings: int, position: int) -> int:
        alive = self._places.alive[position]
        counting &= alive
        if not counting:
            return -1
        strings &= alive & self._becoming(counting)
        if not strings and not counting & counting - 1:
            terminal = counting.bit_length() - 1
            return self._single(terminal, self._places.state(position, terminal))
        key = counting, strings, self._places.restricted(position, counting | strings)
        state = self._number.get(key)
        if state is None:
            state = self._number[key] = len(self._states)
            self._states.append(key)
        return state

    def _row(self, number: int, is_start: bool) -> tuple[NDArray[np.int32], list[tuple[int, int]], bool, bool]:
        """Where the bytes lead from a state, what can end there, whether something is certain, whether it lapses."""
        counting, strings, position = self._states[number]
        places = self._places
        rivals = self._words.rivals
        beating = 0 if is_start else places.beating[position] & counting
        ending = 0 if is_start else places.ending[position] & counting
        if beating:
            first = (beating & -beating).bit_length() - 1
            ending &= (2 << first) - 1
            cut = 0
            for t in bits(beating):
                later = ~((2 << t) - 1 | rivals.get(t, 0))
                cut |= counting & (later | self._words.over.get(t, 0)) if not cut >> t & 1 else 0
            if cut:
                self._cuts[number] = first, cut, position
            counting &= ~cut
        ends = []
        for t in bits(ending):
            words = self._words.becomes.get(t, 0) & strings & places.ending[position]
            for variant, watching in places.ends(position, t):
                terminal = (words & -words).bit_length() - 1 if words else self._terminal(t, variant)
                ahead = counting & ((2 << t) - 1 | rivals.get(t, 0))
                watch = number if watching is None else self._state(ahead, 0, watching)
                ends.append((terminal, watch))
        targets, part = places.after(position)
        after = [self._state(counting, strings, target) if target >= 0 else -1 for target in targets]
        # What a match that is certain puts out of the question has no say in whether that match counts.
        return np.array(after, np.int32)[part], ends, bool(beating), bool(places.lapsing[position] & counting)
