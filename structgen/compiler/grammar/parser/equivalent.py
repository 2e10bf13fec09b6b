"""Stacks that can be told apart only by what lies behind them: which states may stand for others.

After ``a + b`` a parser that builds no tree has no need to know of the ``a +``. Below, a stack is written with its
top at the right, and ``B`` is any state that can lie under the part that is shown::

    B additive + ...   B multiplicative * ...   the same may follow
    B { items ITEM     B { ITEM                 and here
    B ( arguments , X  B ( X                    here, too, but not without the X: ``( )`` is right, ``(a, )`` is wrong

A `Replacement` says that one such piece may be put in place of another. It is proved by *bisimulation* (Park 1981): a
set of pairs of pieces such that both of a pair accept the same terminals, which lead to pieces that are a pair again,
and otherwise reduce into what lies below, in the same way. Only what the parser does counts, after conflicts were
resolved; lookaheads that come to nothing do not.

Both pieces of a pair lie on the same base, of which only the uppermost state is known. Where they have the same
states on top, these do the same until they are popped, and that is when an item of the lowest of them is complete. So
such a pair holds if what it is then reduced to does. (Caucal's self-bisimulations, 1990, do that for context-free
processes.) A proof may go round in circles, since at every pair that it comes back to both parsers have made moves in
between: the shortest text on which they differ would get shorter.

A candidate that comes to a pair that fails, to too many pairs, or to taller and taller ones is dropped. That costs a
replacement, never the proof. Candidates are put together here; `structgen.kernels.replaced_pieces` proves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....budget import Meter
from ....runtime.core import blocks
from ....runtime.core.bitsets import bits_of, words_of
from ....runtime.grammar.tables import SYMBOLS
from .lalr import Lalr
from .symbols import Symbol

#: States on a base, the lowest first.
_Piece: TypeAlias = tuple[int, ...]

#: States that shift the same, each with the symbols that lead to it.
_Group: TypeAlias = list[tuple[int, tuple[Symbol, ...]]]

#: Work that is done at most, and between two looks at the clock: reductions and shifts that are followed, pairs that
#: are looked at.
_MOST_WORK, _SLICE = 1 << 23, 1 << 20

#: What the kernel has room for: pairs, their integers, uses of pairs; bases, their states. Entries of the parser's
#: table at most, a column for each symbol: for a larger one nothing is looked for.
_PAIRS, _ITEMS, _USES, _BASES, _STATES, _ENTRIES = 1 << 16, 1 << 20, 1 << 17, 1 << 14, 1 << 18, 1 << 23

#: Pairs and bases that wait at most while a candidate is looked at; bytes of all that.
_WAITING, _HELD = 1 << 11, 1 << 24

#: The longest piece that is shortened, and where something lies on it; the longest that others are put in place of.
_LONGEST, _LONGEST_BELOW, _LONGEST_LIKE = 4, 3, 8

#: Pieces with one state at their top: so many are tried, of two states and of more.
_MOST_PAIRED, _MOST_PIECES = 64, 16

#: Other states that are tried in place of one.
_MOST_CANDIDATES = 4

#: Of the kernel's counts: bases, their states, the work that may be done; the next candidate, the next symbol on top
#: of it, and what was found.
_N_BASES, _N_STATES, _LIMIT, _NEXT, _NEXT_SYMBOL, _N_FOUND = 4, 5, 7, 8, 9, 10

#: What the meter is told.
_DOING = "comparing the parser's stacks"


class _Candidate(NamedTuple):
    """A piece on a base, and what might be put in its place: its lower part, and symbols that are read upon that.

    Parameters
    ----------
    base:
        The number of the states that it lies on.
    piece:
        The states, the lowest first.
    left:
        How many of them are left, from the lowest on.
    symbols:
        What is read in place of the others.
    """

    base: int
    piece: _Piece
    left: int
    symbols: tuple[Symbol, ...] = ()

    def row(self, top: int) -> tuple[int, ...]:
        """Its row of `structgen.runtime.grammar.tables.GrammarTables.same`, with a state on top or with none, -1."""
        symbols = self.symbols + (-1,) * (SYMBOLS - len(self.symbols))
        states = self.piece if top < 0 else (*self.piece, top)
        return int(top >= 0), len(self.piece) - self.left, *symbols, *states[::-1]


class _Candidates:
    """Pieces that may be replaced, by what their states shift."""

    def __init__(self, table: Lalr, most_popped: list[int]) -> None:
        self._table = table
        self._most_popped = most_popped
        below: list[dict[int, None]] = [{} for _ in range(table.states)]
        for state, moves in enumerate(table.automaton.moves):
            for target in moves.values():
                below[target][state] = None
        #: By state: those that can lie right below it, ascending.
        self._below = [tuple(each) for each in below]
        #: The states that pieces lie on, ascending, each set once.
        self.bases: dict[_Piece, int] = {}
        self._base_of: dict[int, int] = {}
        self._likes = _Likes(table)

    def of(self, state: int) -> Iterator[_Candidate]:
        """Candidates with a state at their top."""
        yield from self._shorter(state)
        yield from self._like(state)

    def _paths(self, state: int, lengths: range) -> Iterator[_Piece]:
        """The states that can lie on top of each other up to this one, as many as asked for; shorter ones first."""
        paths: list[_Piece] = [(state,)]
        for length in range(1, lengths.stop):
            if length in lengths:
                yield from paths
            paths = [(s, *path) for path in paths for s in self._below[path[0]]]
            if len(paths) > (_MOST_PAIRED if length == 1 else _MOST_PIECES):
                break

    def _base(self, lowest: int) -> int:
        """The number of the states that a piece lies on, by its lowest one."""
        if lowest not in self._base_of:
            self._base_of[lowest] = self.bases.setdefault(self._below[lowest], len(self.bases))
        return self._base_of[lowest]

    def _shorter(self, state: int) -> Iterator[_Candidate]:
        """Leave out states."""
        shifts = self._table.shifts
        moves = shifts[state].items()
        for path in self._paths(state, range(1, _LONGEST + 1)):
            if not self._below[path[0]]:
                continue
            for left in range(len(path)):
                other = path[left - 1] if left else self._below[path[0]][0]
                if not moves or not moves.isdisjoint(shifts[other].items()):
                    yield _Candidate(self._base(path[0]), path, left)

    def _like(self, state: int) -> Iterator[_Candidate]:
        """Put other states there, that do the same at first."""
        others = self._likes.of(state)
        deepest = self._most_popped[state] + 1
        for path in self._paths(state, range(deepest, deepest + 1)) if others and deepest <= _LONGEST_LIKE else ():
            if self._below[path[0]]:
                there = (
                    symbols
                    for other, symbols in others
                    if len(symbols) <= len(path) and self._leads(self._below[path[0]][0], symbols, other)
                )
                for symbols, _ in zip(there, range(_MOST_CANDIDATES), strict=False):
                    yield _Candidate(self._base(path[0]), path, 0, symbols)

    def _leads(self, state: int, symbols: tuple[Symbol, ...], target: int) -> bool:
        """Whether symbols lead from one state to another."""
        for symbol in symbols:
            state = self._table.automaton.moves[state].get(symbol, -1)
            if state < 0:
                return False
        return state == target


class _Likes:
    """States by what they shift."""

    def __init__(self, table: Lalr) -> None:
        self._items = [frozenset(there.items()) for there in table.shifts]
        self._groups: dict[frozenset[tuple[int, int]], _Group] = {}
        items = table.automaton.items
        for state, kernel in enumerate(table.automaton.kernels):
            if table.shifts[state] and not table.reductions[state] and len(kernel) == 1 and state:
                rule = items.rule[kernel[0]]
                prefix = table.symbols.rules[rule][1][: kernel[0] - items.first[rule]]
                if len(prefix) <= SYMBOLS:
                    self._groups.setdefault(self._items[state], []).append((state, prefix))
        for group in self._groups.values():
            group.sort(key=lambda each: (len(each[1]), each[0]))

    def of(self, state: int) -> _Group:
        """Some states before this one that shift the same, with the symbols that lead to each."""
        group = self._groups.get(self._items[state], [])
        own = next((len(prefix) for other, prefix in group if other == state), SYMBOLS)
        return [each for each in group if (len(each[1]), each[0]) < (own, state)]


class _Proofs:
    """What the kernel has of the parser, and what it remembers.

    Parameters
    ----------
    table, defaults, contexts:
        See `replacements`.
    """

    def __init__(self, table: Lalr, defaults: list[bool], contexts: list[int], meter: Meter) -> None:
        meter.check_memory(_HELD + 4 * table.states * len(table.symbols.names), _DOING)
        self._meter = meter
        rules, items = table.symbols.rules, table.automaton.items
        ways = [
            sorted({(item - items.first[items.rule[item]] - 1, rules[items.rule[item]][0]) for item in kernel})
            for kernel in table.automaton.kernels
        ]
        #: By state: how many states below it are popped with it at most.
        self.most_popped = [max((below for below, _ in there), default=0) for there in ways]
        like: dict[tuple[tuple[int, Symbol], ...], int] = {}
        sure = [next(iter(there)) if yes else -1 for yes, there in zip(defaults, table.reductions, strict=True)]
        self._sure = _ints(sure)
        numbers: dict[int, int] = {}
        self._parser, _ = blocks.packed((
            _actions(table), _ints(len(rule) for _, rule in rules), _ints(origin for origin, _ in rules), self._sure,
            _ints(numbers.setdefault(context, len(numbers)) for context in contexts),
            _ints(accumulate(map(len, ways), initial=0)),
            _ints(below for there in ways for below, _ in there),
            _ints(origin for there in ways for _, origin in there),
            _ints(like.setdefault(tuple(there), state) for state, there in enumerate(ways)),
            _ints([table.symbols.end + 1]), _ints(map(len, table.shifts)),
        ))  # fmt: skip
        read = {table.symbols.rules[rule][0] for rule in sure if rule >= 0} | {*range(table.symbols.end + 1)}
        #: The states that can be on top behind a terminal and what it makes certain.
        self._resting = np.zeros(table.states, np.bool_)
        self._resting[[t for there in table.automaton.moves for s, t in there.items() if s in read]] = True
        self._resting &= self._sure < 0

    def remember(self, bases: Iterable[_Piece]) -> None:
        """Begin with what lies below all candidates."""
        bases = list(bases)
        states = len(self._sure)
        firsts = [*accumulate(map(len, bases), initial=0)]
        many = len(bases) + _BASES
        self._memory, tables = blocks.blank([
            (_PAIRS + 1, 1), (_ITEMS, 1), (_PAIRS, 1), (4 * _PAIRS, 1), (_USES, 2), (_PAIRS, 1), (_WAITING, 1),
            (many, 1), (firsts[-1] + _STATES, 1), (2 << many.bit_length(), 1), (8, 64), (states + 1, 1),
            (kernels.PIECE_COUNTS, 1), (3, states + 1), (_WAITING, 1), (max(_WAITING, states + 1), 1), (states, 1),
        ])  # fmt: skip
        _, _, _, slots, *_, first, below, base_slots, _, _, counts, chains, _, _, stamps = tables
        for table in (slots, base_slots, chains, stamps):
            table[:] = -1
        first[: len(firsts), 0] = firsts
        below[: firsts[-1], 0] = [state for base in bases for state in base]
        self._counts = counts[:, 0]
        self._counts[[_N_BASES, _N_STATES, _LIMIT]] = len(bases), firsts[-1], _MOST_WORK

    def held(self, candidates: list[_Candidate], *, is_alone: bool) -> list[tuple[int, int]]:
        """Which candidates hold, each with a state on top; -1 where they do with nothing on top."""
        values = [(c.base, len(c.piece), c.left, len(c.symbols), *c.piece, *c.symbols) for c in candidates]
        given = _ints(accumulate(map(len, values), initial=0)), _ints(value for each in values for value in each)
        self._counts[[_NEXT, _NEXT_SYMBOL]] = 0
        found = np.empty((1 << 12, 2), np.int32)
        rows: list[tuple[int, int]] = []
        is_done = False
        while not is_done:
            self._meter.check_time(_DOING)
            self._counts[_N_FOUND] = 0
            is_done = kernels.replaced_pieces(
                self._parser, self._memory, *given, self._resting, is_alone, _SLICE, found
            )
            rows += map(tuple, found[: self._counts[_N_FOUND]].tolist())
        return rows


def _ints(values: Iterable[int]) -> NDArray[np.int32]:
    return np.fromiter(values, np.int32)


def _actions(table: Lalr) -> NDArray[np.int32]:
    """``int32[states, symbols]``: the next state, -1 for none, or -2 less the rule that is reduced."""
    found = np.full((table.states, len(table.symbols.names)), -1, np.int32)
    reductions = [(s, rule, before) for s, there in enumerate(table.reductions) for rule, before in there.items()]
    if reductions:
        states, rules, terminals = zip(*reductions, strict=True)
        members = table.symbols.end + 1
        which, terminal = np.nonzero(bits_of(words_of(list(terminals), members), members))
        found[np.array(states)[which], terminal] = -2 - np.array(rules)[which]
    moves = [(state, symbol, to) for state, there in enumerate(table.automaton.moves) for symbol, to in there.items()]
    states, symbols, targets = np.array(moves, np.int32).reshape(-1, 3).T
    found[states, symbols] = targets
    return found


def replacements(table: Lalr, defaults: list[bool], contexts: list[int], meter: Meter) -> list[tuple[int, ...]]:
    """What may be replaced on the stack of a parser in which no actions compete: first with nothing on top, then for
    some states on top only.

    A piece that is replaced as soon as it is on top never has anything upon it, so that is not asked.

    Parameters
    ----------
    table:
        The parser.
    defaults:
        By state: whether it makes its only reduction whatever comes next.
    contexts:
        By state: in which context the lexer reads on; what is told apart by it is not the same.

    Returns rows of `structgen.runtime.grammar.tables.GrammarTables.same`. Raises `BudgetExceededError`.
    """
    if table.states * len(table.symbols.names) > _ENTRIES:
        return []
    proofs = _Proofs(table, defaults, contexts, meter)
    found = _Candidates(table, proofs.most_popped)
    states = [s for s in range(1, table.states) if not defaults[s]]
    alone = [candidate for state in states for candidate in meter.each(found.of(state), _DOING)]
    others = [each for each in alone if not each.symbols and len(each.piece) <= _LONGEST_BELOW - (each.left > 0)]
    proofs.remember(found.bases)
    rows = [alone[c].row(top) for c, top in proofs.held(alone, is_alone=True)]
    return rows + [others[c].row(top) for c, top in sorted(proofs.held(others, is_alone=False))]


def table_of(rows: list[tuple[int, ...]]) -> NDArray[np.int32]:
    """Replacements as `structgen.runtime.grammar.tables.GrammarTables.same`."""
    width = max(map(len, rows), default=3 + SYMBOLS)
    return np.array([(*row, *[-1] * (width - len(row))) for row in rows], np.int32).reshape(-1, width)
