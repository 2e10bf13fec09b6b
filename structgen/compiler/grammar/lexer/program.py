"""The regexes of terminals as a program for ordered threads: Thompson's construction (1968) with preferences.

Of the empty moves of a state the preferred one comes first (Pike's, as in RE2 and Rust's regex-automata); see
`structgen.compiler.grammar.lexer.ordered` for how threads follow them. Look-arounds are moves that have to be passed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ....budget import Meter
from ....errors import UnsupportedError
from ...automata.dfa import Dfa
from ...automata.utf8 import utf8_edges
from ...patterns.measures import measure
from ...patterns.syntax import Alternate, Chars, Concat, Look, Node, Repeat
from .behind import check_behind
from .look_arounds import LookArounds

#: Bytes of a state of a program with its moves.
_BYTES_OF_STATE = 600


class LexerProgram:
    """Regexes as states with ordered empty moves, one behind the other.

    Parameters
    ----------
    starts:
        By regex: its start, right before its match and its other states; and the number of all states.
    empty:
        Moves that read nothing, of each state the preferred ones first: source, target, a look-around to pass or -1.
    edges:
        Moves that read a byte: source, lowest, highest, target.
    turns:
        States in which the turn of a loop begins.
    turned:
        By state in which the turn of a loop ends: where to go on if it has read nothing. As in `re`, another turn is
        not tried then.
    looks:
        The look-arounds, each with its automaton.
    first_look:
        By regex: its first look-around; and how many there are.
    looks_at:
        What look-arounds come to.
    """

    def __init__(self) -> None:
        self.starts: list[int] = [0]
        self.empty: list[tuple[int, int, int]] = []
        self.edges: list[tuple[int, int, int, int]] = []
        self.turns: list[int] = []
        self.turned: dict[int, int] = {}
        self.looks: list[tuple[Look, Dfa]] = []
        self.first_look: list[int] = [0]
        self.looks_at = LookArounds()
        self._states = 0

    def _state(self) -> int:
        self._states += 1
        return self._states - 1

    def add(self, tree: Node, meter: Meter) -> None:
        """Add a regex, by Thompson's construction with preferences on a stack of its own.

        Raises `UnsupportedError` for look-around that can't be honoured, or that sees what is before the match, and
        `BudgetExceededError`.
        """
        self._check_size(tree, meter)
        todo: list[tuple[Node, int, int]] = [(tree, self._state(), self._state())]
        for step in itertools.count():
            if not todo:
                break
            if step % 1024 == 0:
                meter.check_time("spelling out a terminal")
            node, source, target = todo.pop()
            if isinstance(node, Chars):
                self._add_character(node, source, target)
            elif isinstance(node, Concat):
                for part in node.parts[:-1]:
                    there = self._state()
                    todo.append((part, source, there))
                    source = there
                if node.parts:
                    todo.append((node.parts[-1], source, target))
                else:
                    self.empty.append((source, target, -1))
            elif isinstance(node, Alternate):
                for option in node.options:
                    begin = self._state()
                    self.empty.append((source, begin, -1))
                    todo.append((option, begin, target))
            elif isinstance(node, Repeat):
                todo.extend(self._repeat(node, source, target))
            else:
                self.empty.append((source, target, self._look(node, meter)))
        if any(look.behind for look, _ in self.looks[self.first_look[-1] :]):
            check_behind(tree, meter)
        self.starts.append(self._states)
        self.first_look.append(len(self.looks))

    def _check_size(self, tree: Node, meter: Meter) -> None:
        """Refuse a program over the budget before it is built."""
        size = measure(tree, meter)[id(tree)].size
        # A state costs a fraction of what one of the automaton does.
        meter.check_states(size // 4, "spelling out a terminal")
        meter.check_memory(_BYTES_OF_STATE * (self._states + size), "spelling out a terminal")

    def _add_character(self, node: Chars, source: int, target: int) -> None:
        edges = utf8_edges(node.ranges).tolist()
        inner = self._states
        self._states += max(0, max((head for _, _, _, head in edges), default=0) - 1)
        names = (source, target, *range(inner, self._states))
        self.edges += [(names[tail], low, high, names[head]) for tail, low, high, head in edges]

    def _repeat(self, node: Repeat, source: int, target: int) -> Iterator[tuple[Node, int, int]]:
        """The turns that must be, then those that may: each a choice between another turn and going on."""

        def choose(here: int, turn: int) -> None:
            moves = [(here, turn, -1), (here, target, -1)]
            self.empty += reversed(moves) if node.lazy else moves

        for _ in range(node.min):
            there = self._state()
            yield node.item, source, there
            source = there
        for _ in range(1 if node.max is None else node.max - node.min):
            turn, there = self._state(), self._state()
            self.turns.append(turn)
            self.turned[there] = target
            choose(source, turn)
            yield node.item, turn, there
            source = there
        if node.max is None:
            choose(there, turn)
        else:
            self.empty.append((source, target, -1))

    def _look(self, node: Look, meter: Meter) -> int:
        if node.whole:
            raise UnsupportedError(
                "a terminal cannot look for the beginning or the end of the whole text",
                where=f"column {node.column}",
                remedy="Leave out ^, $ and \\Z: where a text begins and ends is the grammar's business.",
            )
        self.looks.append((node, self.looks_at.automaton(node, meter)))
        return len(self.looks) - 1
