"""A terminal's regex as a program for ordered threads: Thompson's construction (1968) with preferences.

Of the empty moves of a state the preferred one comes first (Pike's, as in RE2 and Rust's regex-automata); see
`structgen.compiler.grammar.lexer.ordered` for how threads follow them. Look-arounds are moves that have to be passed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....budget import Meter
from ....errors import UnsupportedError
from ...automata.dfa import Dfa
from ...automata.utf8 import utf8_edges
from ...patterns.look_arounds import check_nesting
from ...patterns.measures import measure
from ...patterns.syntax import Alternate, Chars, Concat, Look, Node, Repeat
from .look_arounds import LookArounds

#: Bytes of a state of a program with its moves.
BYTES_OF_STATE = 600


@dataclass(eq=False)
class LexerProgram:
    """A regex as states with ordered empty moves. State 0 is the start, state 1 the match.

    Parameters
    ----------
    empty:
        By state: moves that read nothing, the preferred ones first: a target, and a look-around to pass or -1.
    turn:
        By state: the number of the turn of a loop that begins here, or -1.
    turned:
        By state: the turn that ends here, or -1, and where to go on if it has read nothing: as in `re`, another turn
        is not tried then.
    edges:
        By state: moves that read a byte: lowest, highest, target.
    looks:
        The look-arounds, each with its automaton.
    """

    empty: list[list[tuple[int, int]]] = field(default_factory=list)
    edges: list[list[tuple[int, int, int]]] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)
    turned: list[tuple[int, int]] = field(default_factory=list)
    looks: list[tuple[Look, Dfa]] = field(default_factory=list)

    def state(self) -> int:
        """A new state."""
        self.empty.append([])
        self.edges.append([])
        self.turn.append(-1)
        self.turned.append((-1, -1))
        return len(self.empty) - 1

    def optional_turn(self, target: int) -> tuple[int, int]:
        """The states between which a turn of a loop lies that need not be made; ``target`` is behind the loop."""
        begin, end = self.state(), self.state()
        self.turn[begin] = begin
        self.turned[end] = begin, target
        return begin, end


def program(tree: Node, looks: LookArounds, meter: Meter) -> LexerProgram:
    """Thompson's construction with preferences, on a stack of its own.

    Raises `UnsupportedError` for look-around that can't be honoured, and `BudgetExceededError`.
    """
    _check_size(tree, meter)
    made = LexerProgram()
    start, match = made.state(), made.state()
    todo: list[tuple[Node, int, int]] = [(tree, start, match)]
    for step in itertools.count():
        if not todo:
            break
        if step % 1024 == 0:
            meter.check_time("spelling out a terminal")
        node, source, target = todo.pop()
        if isinstance(node, Chars):
            _add_character(made, node, source, target)
        elif isinstance(node, Concat):
            for part in node.parts[:-1]:
                there = made.state()
                todo.append((part, source, there))
                source = there
            if node.parts:
                todo.append((node.parts[-1], source, target))
            else:
                made.empty[source].append((target, -1))
        elif isinstance(node, Alternate):
            for option in node.options:
                begin = made.state()
                made.empty[source].append((begin, -1))
                todo.append((option, begin, target))
        elif isinstance(node, Repeat):
            todo.extend(_repeat(made, node, source, target))
        else:
            made.empty[source].append((target, _look(made, node, looks, meter)))
    return made


def _check_size(tree: Node, meter: Meter) -> None:
    """Refuse a program over the budget before it is built."""
    size = measure(tree, meter)[id(tree)].size
    # A state costs a fraction of what one of the automaton does.
    meter.check_states(size // 4, "spelling out a terminal")
    meter.check_memory(BYTES_OF_STATE * size, "spelling out a terminal")


def _add_character(made: LexerProgram, node: Chars, source: int, target: int) -> None:
    names = {0: source, 1: target}
    for tail, low, high, head in utf8_edges(node.ranges).tolist():
        for state in (tail, head):
            if state not in names:
                names[state] = made.state()
        made.edges[names[tail]].append((low, high, names[head]))


def _repeat(made: LexerProgram, node: Repeat, source: int, target: int) -> Iterator[tuple[Node, int, int]]:
    """The turns that must be, then those that may: each a choice between another turn and going on."""

    def choose(here: int, turn: int) -> None:
        moves = [(turn, -1), (target, -1)]
        made.empty[here] += reversed(moves) if node.lazy else moves

    for _ in range(node.min):
        there = made.state()
        yield node.item, source, there
        source = there
    if node.max is None:
        turn, after = made.optional_turn(target)
        choose(source, turn)
        yield node.item, turn, after
        choose(after, turn)
        return
    for _ in range(node.max - node.min):
        turn, there = made.optional_turn(target)
        choose(source, turn)
        yield node.item, turn, there
        source = there
    made.empty[source].append((target, -1))


def _look(made: LexerProgram, node: Look, looks: LookArounds, meter: Meter) -> int:
    if node.whole:
        raise UnsupportedError(
            "a terminal cannot look for the beginning or the end of the whole text",
            where=f"column {node.column}",
            remedy="Leave out ^, $ and \\Z: where a text begins and ends is the grammar's business.",
        )
    check_nesting(node, False)
    made.looks.append((node, looks.automaton(node, meter)))
    return len(made.looks) - 1
