"""The lexer of a grammar as one automaton over bytes, exactly as Lark's scanners read.

Lark tries the terminals of a context in a fixed order (priority, width, length, name) and takes the first that matches, with the
match that its regex prefers (`structgen.compiler.grammar.ordered`). So once a terminal has matched, terminals later in
the order are out; earlier ones, and a longer match of its own, may still replace it. A string that a regex matches as
well, a keyword among identifiers, is not tried by itself: where the regex's match is that string, it becomes the string.

Terminals are numbered in that order, and sets of them are integers. Their automata run side by side: a *position* is what is
left of all of them. A *lexer state* is a position within a context, and up to which terminal the order still counts.
The contextual lexer has a context for each set of terminals that some parser state accepts, the basic one has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...budget import Meter
from ...errors import DefinitionError
from ...runtime.closure import solve
from ..automata.dfa import Dfa
from ..regex.parser import parse
from .ordered import preferred
from .rules import Terminal


@dataclass(frozen=True, eq=False)
class Positions:
    """All terminals' automata, side by side. Position 0 is the start.

    Parameters
    ----------
    class_of:
        ``uint8[256]``: bytes that no terminal tells apart have one class.
    table:
        ``int32[positions, classes]``: the next position, -1 where no terminal is left.
    alive, matched:
        By position: the terminals that may still match, and those that match the bytes so far.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    alive: list[int]
    matched: list[int]


def matchers(terminals: tuple[Terminal, ...], flags: int, meter: Meter) -> list[Dfa]:
    """The automaton of each terminal. Raises `DefinitionError` for one that can't be read, or matches nothing or nought."""
    found = []
    for terminal in terminals:
        try:
            dfa = preferred(parse(terminal.pattern or "", flags, depth=meter.budget.depth), meter)
        except DefinitionError as error:
            where = f"terminal {terminal.name}{f', {error.where}' if error.where else ''}"
            raise type(error)(error.what, where=where, remedy=error.remedy) from error
        if not dfa.states:
            raise DefinitionError(
                "the terminal matches nothing", where=f"terminal {terminal.name}", remedy="Leave it out, or change its regex."
            )
        if dfa.accepting[dfa.start]:
            raise DefinitionError(
                "the terminal matches the empty string",
                where=f"terminal {terminal.name}",
                remedy="Use + in place of *, and let rules say that it may be left out.",
            )
        found.append(dfa)
    return found


def positions(dfas: list[Dfa], meter: Meter) -> Positions:
    """Run the automata side by side. Raises `BudgetExceededError`."""
    cuts = np.zeros(256, np.bool_)
    for dfa in dfas:
        cuts[1:] |= np.diff(dfa.classes[:256]) != 0
    class_of = np.cumsum(cuts).astype(np.uint8)
    first = np.flatnonzero(np.concatenate([[True], cuts[1:]]))  # a byte of each class
    rows: list[list[list[int]]] = [dfa.table[:, dfa.classes[first]].tolist() for dfa in dfas]
    accepting = [dfa.accepting.tolist() for dfa in dfas]
    start = tuple((t, dfa.start) for t, dfa in enumerate(dfas))
    number = {start: 0}
    todo = [start]
    table: list[list[int]] = []
    for here in todo:  # grows as it goes
        if len(table) % 256 == 0:
            meter.check_states(len(todo), "running the terminals side by side")
            meter.check_time("running the terminals side by side")
        after: list[list[tuple[int, int]]] = [[] for _ in first]
        for t, state in here:
            for c, target in enumerate(rows[t][state]):
                if target >= 0:
                    after[c].append((t, target))
        row = []
        for pairs in map(tuple, after):
            if pairs and pairs not in number:
                number[pairs] = len(todo)
                todo.append(pairs)
            row.append(number[pairs] if pairs else -1)
        table.append(row)
    alive = [sum(1 << t for t, _ in pairs) for pairs in todo]
    matched = [sum(1 << t for t, state in pairs if accepting[t][state]) for pairs in todo]
    return Positions(class_of, np.array(table, np.int32).reshape(len(todo), len(first)), alive, matched)


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


def embedded(terminals: tuple[Terminal, ...], dfas: list[Dfa]) -> Embedded:
    """As `lark.lexer._create_unless` finds them."""
    becomes: dict[int, int] = {}
    hidden_by: dict[int, int] = {}
    texts = [(k, terminal, terminal.text) for k, terminal in enumerate(terminals) if terminal.text is not None]
    for t, regex in enumerate(terminals):
        if regex.text is not None:
            continue
        for k, string, text in texts:
            if string.priority == regex.priority and _prefers(dfas[t], text.encode("utf-8", "surrogatepass")):
                becomes[t] = becomes.get(t, 0) | 1 << k
                if string.flags <= regex.flags:
                    hidden_by[k] = hidden_by.get(k, 0) | 1 << t
    return Embedded(becomes, hidden_by)


def _prefers(dfa: Dfa, text: bytes) -> bool:
    """Whether the preferred match at the beginning of a text is all of it."""
    state = dfa.start
    for byte in text:
        state = int(dfa.table[state, dfa.classes[byte]])
        if state < 0:
            return False
    return bool(dfa.accepting[state])


@dataclass(frozen=True, eq=False)
class Lexer:
    """Lexer states of all contexts.

    Parameters
    ----------
    class_of:
        ``uint8[256]``.
    table:
        ``int32[states, classes]``: the next state, -1 where the lexeme cannot go on.
    label:
        ``int32[states]``: the terminal that the bytes so far are, if the lexeme ends here; -1 for none.
    future:
        By state: the terminals that the lexeme can become, however it goes on.
    starts:
        ``int32[contexts]``: the state before the first byte of a lexeme, which no byte leads to.
    """

    class_of: NDArray[np.uint8]
    table: NDArray[np.int32]
    label: NDArray[np.int32]
    future: list[int]
    starts: NDArray[np.int32]


def lexer(contexts: list[int], places: Positions, words: Embedded, meter: Meter) -> Lexer:
    """The lexer states of some contexts, given as sets of terminals. Raises `BudgetExceededError`."""
    return _Builder(places, words, meter).run(contexts)


class _Builder:
    def __init__(self, places: Positions, words: Embedded, meter: Meter) -> None:
        self._places = places
        self._words = words
        self._meter = meter
        self._number: dict[tuple[int, int, int], int] = {}
        #: Context, candidates that still count, position.
        self._states: list[tuple[int, int, int]] = []
        self._rows = places.table.tolist()

    def run(self, contexts: list[int]) -> Lexer:
        table: list[list[int]] = []
        label: list[int] = []
        starts = []
        for context in contexts:
            starts.append(len(self._states))
            self._states.append((context, self._candidates(context), 0))  # not interned: nothing leads here
            while len(table) < len(self._states):
                if len(table) % 512 == 0:
                    self._meter.check_states(len(self._states), "building the lexer")
                    self._meter.check_time("building the lexer")
                row, found = self._row(*self._states[len(table)], len(table) == starts[-1])
                table.append(row)
                label.append(found)
        future = [1 << t if t >= 0 else 0 for t in label]
        solve(future, [sorted({target for target in row if target >= 0}) for row in table])
        return Lexer(
            self._places.class_of, np.array(table, np.int32), np.array(label, np.int32), future,
            np.array(starts, np.int32),
        )  # fmt: skip

    def _candidates(self, context: int) -> int:
        """The terminals that a scanner for a context tries."""
        hidden = sum(1 << k for k, by in self._words.hidden_by.items() if by & context)
        return context & ~hidden

    def _row(self, context: int, counting: int, position: int, is_start: bool) -> tuple[list[int], int]:
        """Where the bytes lead from a state, and what it is labelled with."""
        matched = 0 if is_start else self._places.matched[position] & counting
        found = -1
        if matched:
            best = (matched & -matched).bit_length() - 1
            counting &= (2 << best) - 1
            strings = self._words.becomes.get(best, 0) & context & self._places.matched[position]
            found = (strings & -strings).bit_length() - 1 if strings else best
        alive, row = self._places.alive, []
        for target in self._rows[position]:
            if target < 0 or not alive[target] & counting:
                row.append(-1)
                continue
            key = context, counting, target
            state = self._number.get(key)
            if state is None:
                state = self._number[key] = len(self._states)
                self._states.append(key)
            row.append(state)
        return row, found
