"""What the lexer lets a lexeme be, as automata over bytes: from what is forbidden before it to what is behind it.

A lexer's terminals are told apart by what follows them. In at of a look at the next bytes there are *follow
restrictions* (Visser 1997, Scannerless Generalized-LR Parsing), here carried along: the lexer states that watch
whether a lexeme which is over would have become a longer one (`structgen.compiler.grammar.lexer.leftmost_dfa`) run
beside the lexemes behind it, until they are beaten, which is a dead end, or over. So the restrictions are regular,
however many bytes ahead they look. A `Control` is what is watched, with the state in which the lexer reads on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeAlias

from ...budget import Meter
from ...errors import UnsupportedError
from ...runtime.grammar.completability.obligations import Watched
from ..gbnf.syntax import Network
from ..grammar.parser.symbols import Symbol
from .controls import Control, LexerStates, Shift

_DOING = "following lexemes"

#: Bytes of a state of the lexer with what is watched beside it.
_BYTES_OF_STATE = 1_500

#: A lexer state within a lexeme or before it, and what is watched.
_WatchedState: TypeAlias = tuple[int, Watched]


@dataclass
class _LexemeNfa:
    """The lexemes from one control on, ignored ones before them, as an automaton; state 0 is the start."""

    states: list[_WatchedState]
    moves: list[dict[int, list[int]]] = field(default_factory=list)  # by target: classes of bytes, none for no byte
    into: list[list[int]] = field(default_factory=list)
    ends: dict[tuple[Symbol, Watched], list[int]] = field(default_factory=dict)
    between: list[int] = field(default_factory=list)  # where no lexeme has begun and the text may end


class Lexemes:
    """The lexemes of one lexer.

    Parameters
    ----------
    states:
        Its states.
    follow:
        By shift: the terminals that may come behind it.
    first_bytes:
        By terminal that is a definition, which nothing lexes: the bytes that its texts begin with.
    """

    def __init__(
        self, states: LexerStates, follow: dict[Shift, int], first_bytes: Mapping[Symbol, set[int]], meter: Meter
    ) -> None:
        self._states = states
        self._follow = follow
        self._first_bytes = first_bytes
        self._meter = meter
        runs = groupby(range(256), key=states.class_of.tolist().__getitem__)
        #: Runs of bytes of one class: the class, the lowest, the highest.
        self._runs = [(c, bytes_[0], bytes_[-1]) for c, there in runs if (bytes_ := [*there])]
        self._nfas: dict[_WatchedState, _LexemeNfa] = {}
        self._nodes: dict[tuple[_WatchedState, Symbol, Watched], Network] = {}
        self._controls: dict[tuple[Shift, Watched], Control] = {}
        #: By the lexer's state: controls, that without anything watched first.
        self._known: dict[int, dict[Control, None]] = {}
        self._held = 0

    def after(self, control: Control, shift: Shift) -> Iterator[tuple[Watched, Control]]:
        """How a terminal may be read behind a control: what is watched where it ends, and the control then."""
        terminal, _ = shift
        if control.barred >> terminal & 1:
            return
        if terminal in self._first_bytes:
            if self._begun(self._from(control), terminal):
                yield (), self._canonical(shift, ())
            return
        for found, watched in self._from(control).ends:
            if found == terminal:
                yield watched, self._canonical(shift, watched)

    def network(self, control: Control, terminal: Symbol, watched: Watched) -> Network:
        """The texts of a terminal with what is ignored before it, with so much watched at its end."""
        key = (control.start, control.watched), terminal, watched
        if key not in self._nodes:
            nfa = self._from(control)
            self._nodes[key] = self._network(nfa, nfa.ends[terminal, watched])
        return self._nodes[key]

    def before(self, control: Control, terminal: Symbol) -> Network:
        """What is ignored before a definition."""
        nfa = self._from(control)
        return self._network(nfa, self._begun(nfa, terminal))

    def _begun(self, nfa: _LexemeNfa, terminal: Symbol) -> list[int]:
        """Where a definition may begin. Raises `UnsupportedError` where that is up to more than its first byte."""
        found = []
        for i, (state, watched) in enumerate(nfa.states):
            if state != nfa.states[0][0]:
                continue
            classes = {int(self._states.class_of[byte]) for byte in self._first_bytes[terminal]}
            left = {self._states.obligations.after(watched, c) for c in classes}
            if left == {()}:
                found.append(i)
            elif left != {None}:
                raise UnsupportedError(
                    "the grammar is part of another definition, and a definition in it may begin where the lexeme"
                    " before it could become a longer one",
                    remedy="Have a lexeme between them that nothing goes on, such as a colon, or compile it alone.",
                )
        return found

    def last(self, control: Control) -> Network:
        """What is ignored at the end of a text."""
        nfa = self._from(control)
        return self._network(nfa, [] if control.barred >> self._states.end & 1 else nfa.between)

    def _from(self, control: Control) -> _LexemeNfa:
        at = control.start, control.watched
        if at not in self._nfas:
            self._nfas[at] = self._follow_all(at)
        return self._nfas[at]

    def _follow_all(self, start: _WatchedState) -> _LexemeNfa:
        lexer, nfa = self._states, _LexemeNfa([start])
        number = {start: 0}
        for i, at in enumerate(nfa.states):  # grows as it goes
            self._held += 1
            if self._held % 64 == 0:
                self._meter.check_time(_DOING)
                self._meter.check_states(self._held, _DOING)
                self._meter.check_memory(self._held * _BYTES_OF_STATE, _DOING)
            state, watched = at
            targets: dict[_WatchedState, list[int]] = {}
            for c, after in enumerate(lexer.rows[state]):
                left = lexer.obligations.after(watched, c) if after >= 0 else None
                if left is not None:
                    targets.setdefault((after, left), []).append(c)
            for terminal, watch in lexer.ends[state]:
                behind = lexer.obligations.with_state(watch, watched)
                if lexer.ignored >> terminal & 1:
                    targets.setdefault((start[0], behind), [])
                else:
                    nfa.ends.setdefault((terminal, behind), []).append(i)
            if state == start[0] and not lexer.obligations.lapses(watched):
                nfa.between.append(i)
            for target in targets.keys() - number.keys():
                number[target] = len(nfa.states)
                nfa.states.append(target)
            nfa.moves.append({number[target]: classes for target, classes in targets.items()})
        nfa.into = [[] for _ in nfa.states]
        for i, moves in enumerate(nfa.moves):
            for there in moves:
                nfa.into[there].append(i)
        return nfa

    def _network(self, nfa: _LexemeNfa, ends: list[int]) -> Network:
        """The part of an automaton that leads to some states."""
        kept = dict.fromkeys(ends)
        for there in (todo := list(kept)):
            new = [here for here in nfa.into[there] if here not in kept]
            kept.update(dict.fromkeys(new))
            todo += new
        names = {at: 2 + i for i, at in enumerate(kept)}
        names[0] = 0
        moves: list[tuple[int, int, int, int]] = []
        empty = [(names[at], 1) for at in ends]
        for here in kept:
            by_class: dict[int, int] = {}
            for there, classes in nfa.moves[here].items():
                if there in kept:
                    by_class |= dict.fromkeys(classes, names[there])
                    empty += [] if classes else [(names[here], names[there])]
            for to, runs in groupby(self._runs, key=lambda run: by_class.get(run[0], -1)):
                if to >= 0:
                    each = [*runs]
                    moves.append((names[here], each[0][1], each[-1][2], to))
        return Network(2 + len(kept), tuple(moves), empty=tuple(empty))

    def _canonical(self, shift: Shift, watched: Watched) -> Control:
        """The control behind a shift: one that was met before, if it means the same there."""
        key = shift, watched
        if key not in self._controls:
            control = Control(shift[1], watched)
            known = self._known.setdefault(shift[1], {Control(shift[1]): None})
            same = (each for each in known if self._states.same(control, each, self._follow[shift], self._follow))
            found = self._controls[key] = next(same, control)
            known[found] = None
        return self._controls[key]
