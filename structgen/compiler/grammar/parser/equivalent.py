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
replacement, never the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....budget import Meter
from ....runtime.core.digraph import bits
from ....runtime.grammar.tables import SYMBOLS
from ....system.properties import cached_property
from .lalr import Lalr
from .symbols import Symbol

#: States on a base, the lowest first.
_Piece: TypeAlias = tuple[int, ...]

#: A set of states that may be the base, and two pieces on it.
_Pair: TypeAlias = tuple[int, _Piece, _Piece]

#: Work that is done at most: about as many pairs are looked at, terminals followed, states of a base asked.
_MOST_WORK = 200_000

#: Pairs that a single candidate may need; reductions before one terminal; the longest piece.
_MOST_AT_ONCE, _MOST_STEPS, _TALLEST = 1_000, 256, 16

#: The longest piece that is shortened, and where something lies on it; the longest that others are put in place of.
_LONGEST, _LONGEST_BELOW, _LONGEST_LIKE = 4, 3, 8

#: Pieces with one state at their top: so many are tried, of two states and of more.
_MOST_PAIRED, _MOST_PIECES = 64, 16

#: Other states that are tried in place of one.
_MOST_CANDIDATES = 4


class Replacement(NamedTuple):
    """A piece, and what accepts the same.

    Parameters
    ----------
    states:
        The states that lie upon each other, the uppermost first.
    popped:
        So many of them are taken away. The others only have to be there.
    symbols:
        What is read in their place, from what is left on.
    tops:
        The states on top of these for which this holds, as bits; their symbol is read again. 0 where it holds with
        nothing on top.
    """

    states: tuple[int, ...]
    popped: int
    symbols: tuple[Symbol, ...]
    tops: int


class _Split(Exception):
    """The states of a base do not all do the same: here are those that do."""

    def __init__(self, parts: list[int]) -> None:
        super().__init__(parts)
        self.parts = parts


class _Unbounded(Exception):
    """What a piece does is too much to follow."""


class _Moves(NamedTuple):
    """What a piece does, by terminals.

    Parameters
    ----------
    accepted:
        The terminals that are shifted.
    shifting:
        The pieces that shift, after reductions, and what each shifts.
    returns:
        By how many states below the piece are popped, one at least, and by nonterminal: before which terminals it is.
    """

    accepted: int
    shifting: list[tuple[_Piece, int]]
    returns: dict[tuple[int, Symbol], int]


class _Pieces:
    """Moves of the parser over pieces of its stack.

    Parameters
    ----------
    table:
        The parser, its conflicts resolved.
    certain:
        By state: whether it makes its only reduction whatever comes next.
    contexts:
        By state: the context in which the lexer reads on.
    """

    def __init__(self, table: Lalr, certain: list[bool], contexts: list[int]) -> None:
        rules = table.symbols.rules
        self.moves = table.automaton.moves
        self.contexts = contexts
        self.end = table.symbols.end
        self.shifted = [sum(1 << terminal for terminal in shifts) for shifts in table.shifts]
        self.reductions = [
            [(len(rules[rule][1]), rules[rule][0], terminals) for rule, terminals in there.items()]
            for there in table.reductions
        ]
        #: By state: the terminals that it may accept, or reduce before.
        self.possible = self.shifted[:]
        for state, reductions in enumerate(self.reductions):
            for _, _, terminals in reductions:
                self.possible[state] |= terminals
        self.certain = [there[0][:2] if sure else None for sure, there in zip(certain, self.reductions, strict=True)]
        #: The states that can be on top behind a terminal and what it makes certain, as bits.
        self.resting = sum(1 << state for state in self._resting())
        #: The work that was done.
        self.work = 0
        self._table = table
        self._targets: dict[tuple[int, Symbol], int | list[int]] = {}
        self._known: dict[tuple[int, _Piece], _Moves | None] = {}
        #: What does not depend on the base.
        self._known_anywhere: dict[_Piece, _Moves] = {}
        self._tops: dict[int, tuple[int, int]] = {}

    def _resting(self) -> set[int]:
        read = {certain[1] for certain in self.certain if certain} | set(range(self.end + 1))
        there = {target for moves in self.moves for symbol, target in moves.items() if symbol in read}
        return {state for state in there if self.certain[state] is None}

    @cached_property
    def returns(self) -> list[tuple[tuple[int, Symbol], ...]]:
        """By state: in which ways it can be popped: so many states below it, and the nonterminal that is pushed."""
        items = self._table.automaton.items
        rules = self._table.symbols.rules
        return [
            tuple(sorted({(item - items.first[items.rule[item]] - 1, rules[items.rule[item]][0]) for item in kernel}))
            for kernel in self._table.automaton.kernels
        ]

    @staticmethod
    def pair(base: int, one: _Piece, other: _Piece) -> _Pair:
        """A pair, the same for all that are decided alike: of states on top that both have, the lowest is left."""
        if one and other and one[-1] == other[-1]:
            shared, most = 1, min(len(one), len(other))
            while shared < most and one[-1 - shared] == other[-1 - shared]:
                shared += 1
            if shared > 1:
                one, other = one[: 1 - shared], other[: 1 - shared]
        return (base, one, other) if one <= other else (base, other, one)

    def target(self, base: int, piece: _Piece, symbol: Symbol) -> int:
        """Where a symbol leads from the top; -1 for nowhere. Raises `_Split`."""
        if piece:
            return self.moves[piece[-1]].get(symbol, -1)
        found = self._targets.get((base, symbol))
        if found is None:
            self.work += base.bit_count()
            parts: dict[int, int] = {}
            for state in bits(base):
                target = self.moves[state].get(symbol, -1)
                parts[target] = parts.get(target, 0) | 1 << state
            found = self._targets[base, symbol] = next(iter(parts)) if len(parts) == 1 else list(parts.values())
        if isinstance(found, list):
            raise _Split(found)
        return found

    def read(self, base: int, piece: _Piece, symbol: Symbol) -> _Piece | None:
        """The piece after a symbol, and after reductions that are made whatever comes next. Raises `_Split`."""
        target = self.moves[piece[-1]].get(symbol, -1) if piece else self.target(base, piece, symbol)
        if target < 0:
            return None
        piece = (*piece, target)
        return piece if self.certain[target] is None else self.settled(base, piece)

    def settled(self, base: int, piece: _Piece) -> _Piece:
        """A piece after reductions that are made whatever comes next, as long as they do not go below it.

        Raises `_Split`.
        """
        steps = 0
        while (
            piece
            and (certain := self.certain[piece[-1]]) is not None
            and certain[0] <= len(piece)
            and steps < _MOST_STEPS
        ):
            steps += 1
            rest = piece[: len(piece) - certain[0]]
            target = self.target(base, rest, certain[1])
            if target < 0 or len(rest) >= _TALLEST:
                break
            piece = (*rest, target)
        return piece

    def may_do_the_same(self, pair: _Pair) -> bool:
        """Whether two pieces may accept the same, by the states on top."""
        base, one, other = pair
        certain, possible = self._at_top(base, one)
        others, possible_for_others = self._at_top(base, other)
        return not (certain & ~possible_for_others or others & ~possible)

    def _at_top(self, base: int, piece: _Piece) -> tuple[int, int]:
        """The terminals that some state on top shifts, and those that each may accept, or reduce before."""
        if piece:
            return self.shifted[piece[-1]], self.possible[piece[-1]]
        found = self._tops.get(base)
        if found is None:
            self.work += base.bit_count()
            shifted, possible = 0, -1
            for state in bits(base):
                shifted |= self.shifted[state]
                possible &= self.possible[state]
            found = self._tops[base] = shifted, possible
        return found

    def does(self, base: int, piece: _Piece) -> _Moves:
        """All that a piece does. Raises `_Split` and `_Unbounded`."""
        found = self._known_anywhere.get(piece)
        if found is None:
            key = base, piece
            if key not in self._known:
                try:
                    self._known[key] = self._follow(base, piece)
                except _Unbounded:
                    self._known[key] = None
            found = self._known[key]
            if found is None:
                raise _Unbounded
        return found

    def _follow(self, base: int, piece: _Piece) -> _Moves:
        """Follow all terminals at once through their reductions."""
        moves, reductions, shifts = self.moves, self.reductions, self.shifted
        accepted = 0
        shifting: list[tuple[_Piece, int]] = []
        returns: dict[tuple[int, Symbol], int] = {}
        todo = [(piece, -1)]
        steps = 0
        is_anywhere = True
        while todo:
            here, terminals = todo.pop()
            steps += 1
            if steps > _MOST_STEPS or len(here) > _TALLEST:
                self.work += steps
                raise _Unbounded
            is_anywhere &= bool(here)
            state = here[-1] if here else self._single(base)
            shifted = shifts[state] & terminals
            if shifted:
                accepted |= shifted
                shifting.append((here, shifted))
            for length, origin, before in reductions[state]:
                left = before & terminals
                if not left:
                    continue
                if length > len(here):
                    way = length - len(here), origin
                    returns[way] = returns.get(way, 0) | left
                    continue
                rest = here[: len(here) - length]
                if rest:
                    target = moves[rest[-1]].get(origin, -1)
                else:
                    is_anywhere = False
                    target = self.target(base, rest, origin)
                if target < 0:
                    raise _Unbounded
                todo.append(((*rest, target), left))
        self.work += steps
        found = _Moves(accepted, shifting, returns)
        if is_anywhere:
            self._known_anywhere[piece] = found
        return found

    def _single(self, base: int) -> int:
        """The one state of a base. Raises `_Split`."""
        if base & base - 1:
            raise _Split([1 << state for state in bits(base)])
        return base.bit_length() - 1


class _Pairs:
    """Pairs of pieces, and which of them do the same."""

    def __init__(self, pieces: _Pieces, meter: Meter) -> None:
        self._pieces = pieces
        self._meter = meter
        self._known: dict[_Pair, bool] = {}

    def hold(self, base: int, one: _Piece, other: _Piece) -> bool:
        """Whether two pieces do the same, on every state of a base."""
        root = self._pieces.pair(base, one, other)
        known = self._known.get(root)
        if known is not None:
            return known
        if not self._pieces.may_do_the_same(root):
            return False
        users: dict[_Pair, list[_Pair]] = {root: []}
        todo = [root]
        for pair in todo:  # grows as it goes
            needed = self._needed(pair) if len(users) <= _MOST_AT_ONCE and not self.is_exhausted() else None
            if needed is None:
                return self._fails(pair, users)
            for below in needed:
                if below in users:
                    users[below].append(pair)
                    continue
                known = self._known.get(below)
                if known is None:
                    if not self._pieces.may_do_the_same(below):
                        return self._fails(pair, users)
                    users[below] = [pair]
                    todo.append(below)
                elif not known:
                    return self._fails(pair, users)
        self._known.update(dict.fromkeys(users, True))
        return True

    def _fails(self, pair: _Pair, users: dict[_Pair, list[_Pair]]) -> bool:
        """What is built upon a pair that fails does, too: False."""
        todo, seen = [pair], {pair}
        for failed in todo:  # grows as it goes
            todo += [user for user in users[failed] if user not in seen]
            seen.update(users[failed])
        self._known.update(dict.fromkeys(seen, False))
        return False

    def is_exhausted(self) -> bool:
        """Whether no more work is to be done; then nothing new holds. Raises `BudgetExceededError`."""
        self._meter.check_time("comparing the parser's stacks")
        return self._pieces.work > _MOST_WORK

    def _needed(self, pair: _Pair) -> list[_Pair] | None:
        """The pairs that have to hold if this one is to; None where it does not."""
        base, one, other = pair
        self._pieces.work += 1
        try:
            if one and other and one[-1] == other[-1]:
                return self._popped(base, one, other)
            return self._compared(base, one, other)
        except _Split as split:
            return [self._pieces.pair(part, one, other) for part in split.parts]
        except _Unbounded:
            return None

    def _popped(self, base: int, one: _Piece, other: _Piece) -> list[_Pair] | None:
        """What pieces with the same state on top come to when it is popped."""
        return self._reduced(base, one[:-1], other[:-1], self._pieces.returns[one[-1]])

    def _reduced(
        self, base: int, one: _Piece, other: _Piece, ways: Iterable[tuple[int, Symbol]]
    ) -> list[_Pair] | None:
        """What pieces come to when so many states of them are popped, and a nonterminal pushed."""
        needed = []
        for popped, origin in ways:
            if popped > len(one) and len(one) == len(other):
                continue
            if popped > min(len(one), len(other)):
                return None
            first = self._pieces.read(base, one[: len(one) - popped], origin)
            second = self._pieces.read(base, other[: len(other) - popped], origin)
            if first is None or second is None:
                return None
            if first != second:
                needed.append(self._pieces.pair(base, first, second))
        return needed

    def _compared(self, base: int, one: _Piece, other: _Piece) -> list[_Pair] | None:
        """What pieces with different states on top come to with one terminal."""
        first, second = self._pieces.does(base, one), self._pieces.does(base, other)
        if first.accepted != second.accepted or first.returns != second.returns:
            return None
        needed: dict[_Pair, None] = {}
        for here, terminals in first.shifting:
            for there, others in second.shifting:
                if terminals & others and here != there:
                    pairs = self._shifted(base, here, there, terminals & others)
                    if pairs is None:
                        return None
                    needed.update(dict.fromkeys(pairs))
        return list(needed)

    def _shifted(self, base: int, one: _Piece, other: _Piece, terminals: int) -> list[_Pair] | None:
        """What pieces come to with terminals that both shift at once."""
        if one and other and one[-1] == other[-1]:
            return [self._pieces.pair(base, one, other)]
        pieces = self._pieces
        pieces.work += terminals.bit_count()
        needed = []
        ways: set[tuple[int, Symbol]] = set()
        for terminal in bits(terminals & ~(1 << pieces.end)):
            first, second = pieces.target(base, one, terminal), pieces.target(base, other, terminal)
            if first == second:
                ways.update(pieces.returns[first])
            elif pieces.contexts[first] != pieces.contexts[second]:
                return None
            else:
                after = pieces.settled(base, (*one, first)), pieces.settled(base, (*other, second))
                if after[0] != after[1]:
                    needed.append(self._pieces.pair(base, *after))
        popped = self._reduced(base, one, other, ways)
        return None if popped is None else needed + popped


class _Candidate(NamedTuple):
    """A piece on a base, and what might be put in its place: its lower part, and symbols that are read upon that.

    Parameters
    ----------
    base:
        The states that it lies on, as bits.
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

    def proved(self, tops: int = 0) -> Replacement:
        """What it becomes where it holds."""
        return Replacement(self.piece[::-1], len(self.piece) - self.left, self.symbols, tops)


class _Search:
    """What holds: first with nothing on top, then for some states on top only.

    A piece that is replaced as soon as it is on top never has anything upon it, so that is not asked.
    """

    def __init__(self, table: Lalr, certain: list[bool], contexts: list[int], meter: Meter) -> None:
        self._table = table
        self._pieces = _Pieces(table, certain, contexts)
        self._pairs = _Pairs(self._pieces, meter)
        self._below: list[set[int]] = [set() for _ in range(table.states)]
        for state, moves in enumerate(table.automaton.moves):
            for target in moves.values():
                self._below[target].add(state)
        self._bases: dict[int, int] = {}
        self._over: dict[int, int] = {}
        self._symbol = {target: symbol for moves in self._pieces.moves for symbol, target in moves.items()}
        self._replaced: set[_Piece] = set()

    def replacements(self) -> list[Replacement]:
        """All of them."""
        states = [s for s in range(1, self._table.states) if self._pieces.certain[s] is None]
        likes = _Likes(self._table)
        found: list[Replacement] = []
        for state in states:
            if self._pairs.is_exhausted():
                break
            found += self._alone([*self._shorter(state), *self._like(state, likes.same(state))])
        for state in states:
            if self._pairs.is_exhausted():
                break
            found += self._below_others([*self._shorter(state), *self._like(state, likes.smaller(state))])
        return found

    def _alone(self, candidates: list[_Candidate]) -> Iterator[Replacement]:
        """What holds with nothing on top, of candidates with the same state at their top."""
        for candidate in candidates:
            if not self._is_replaced(candidate.piece) and self._holds(candidate, -1):
                yield candidate.proved()
                self._replaced.add(candidate.piece)

    def _below_others(self, candidates: list[_Candidate]) -> Iterator[Replacement]:
        """What holds for some states on top only."""
        covered: dict[_Piece, int] = {}
        for candidate in candidates:
            piece = candidate.piece
            if len(piece) > (_LONGEST_BELOW if not candidate.left else 2) or self._is_replaced(piece):
                continue
            known = 0
            for n in range(len(piece)):
                known |= covered.get(piece[n:], 0)
            tops = sum(1 << top for top in bits(self._tops(candidate) & ~known) if self._holds(candidate, top))
            if tops:
                yield candidate.proved(tops)
                covered[piece] = covered.get(piece, 0) | tops

    def _is_replaced(self, piece: _Piece) -> bool:
        return any(piece[n:] in self._replaced for n in range(len(piece)))

    def _holds(self, candidate: _Candidate, top: int) -> bool:
        """Whether a candidate holds with a state on top, or with none, -1."""
        todo = [candidate.base]
        pieces = self._pieces
        while todo:
            base = todo.pop()
            instead = candidate.piece[: candidate.left]
            try:
                for symbol in candidate.symbols if top < 0 else (*candidate.symbols, self._symbol[top]):
                    target = pieces.target(base, instead, symbol)
                    if target < 0 or pieces.certain[target] is not None:
                        return False
                    instead = (*instead, target)
            except _Split as split:
                todo += split.parts
                continue
            piece = candidate.piece if top < 0 else (*candidate.piece, top)
            if not self._is_less(instead, piece) or not self._pairs.hold(base, piece, instead):
                return False
        return True

    def _is_less(self, piece: _Piece, other: _Piece) -> bool:
        """The order in which each replacement goes down, so that they end: by length, then by states from the top."""
        if len(piece) != len(other):
            return len(piece) < len(other)
        shifts = self._table.shifts
        for one, two in zip(reversed(piece), reversed(other), strict=True):
            if one != two:
                return (len(shifts[one]), one) < (len(shifts[two]), two)
        return False

    def _paths(self, state: int, lengths: range) -> Iterator[_Piece]:
        """The states that can lie on top of each other up to this one, as many as asked for; shorter ones first."""
        paths: list[_Piece] = [(state,)]
        for length in range(1, lengths.stop):
            if length in lengths:
                yield from paths
            paths = [(s, *path) for path in paths for s in sorted(self._below[path[0]])]
            if len(paths) > (_MOST_PAIRED if length == 1 else _MOST_PIECES):
                break

    def _base(self, path: _Piece) -> int:
        lowest = path[0]
        if lowest not in self._bases:
            self._pieces.work += len(self._below[lowest])
            self._bases[lowest] = sum(1 << state for state in self._below[lowest])
        self._pieces.work += 1
        return self._bases[lowest]

    def _shorter(self, state: int) -> Iterator[_Candidate]:
        """Leave out states."""
        for path in self._paths(state, range(1, _LONGEST + 1)):
            base = self._base(path)
            for left in range(len(path)):
                if base and self._may_do(path[left - 1] if left else (base & -base).bit_length() - 1, state):
                    yield _Candidate(base, path, left)

    def _like(self, state: int, others: list[tuple[int, tuple[Symbol, ...]]]) -> Iterator[_Candidate]:
        """Put other states there, that do the same at first."""
        deepest = max(n for n, _ in self._pieces.returns[state]) + 1
        for path in self._paths(state, range(deepest, deepest + 1)) if others and deepest <= _LONGEST_LIKE else ():
            base = self._base(path)
            if base:
                there = [
                    symbols
                    for other, symbols in others
                    if len(symbols) <= len(path) and self._leads(base, symbols, other)
                ]
                yield from (_Candidate(base, path, 0, symbols) for symbols in there[:_MOST_CANDIDATES])

    def _leads(self, base: int, symbols: tuple[Symbol, ...], target: int) -> bool:
        """Whether symbols lead to a state, at least from the first of some."""
        state = (base & -base).bit_length() - 1
        for symbol in symbols:
            state = self._pieces.moves[state].get(symbol, -1)
            if state < 0:
                return False
        return state == target

    def _may_do(self, other: int, state: int) -> bool:
        """Whether two states shift anything in common."""
        moves, others = self._table.shifts[state], self._table.shifts[other]
        return not moves or not moves.items().isdisjoint(others.items())

    def _tops(self, candidate: _Candidate) -> int:
        """The states that can be on top of a piece when a terminal was read."""
        state = candidate.piece[-1]
        if state not in self._over:
            targets = self._pieces.moves[state].values()
            self._pieces.work += len(targets)
            self._over[state] = sum(1 << target for target in targets) & self._pieces.resting
        return self._over[state]


class _Likes:
    """States by what they shift."""

    def __init__(self, table: Lalr) -> None:
        self._items = [frozenset(there.items()) for there in table.shifts]
        self._groups: dict[frozenset[tuple[int, int]], list[tuple[int, tuple[Symbol, ...]]]] = {}
        items = table.automaton.items
        for state, kernel in enumerate(table.automaton.kernels):
            if table.shifts[state] and not table.reductions[state] and len(kernel) == 1 and state:
                rule = items.rule[kernel[0]]
                prefix = table.symbols.rules[rule][1][: kernel[0] - items.first[rule]]
                if len(prefix) <= SYMBOLS:
                    self._groups.setdefault(self._items[state], []).append((state, prefix))
        for group in self._groups.values():
            group.sort(key=lambda each: (len(each[1]), each[0]))

    def same(self, state: int) -> list[tuple[int, tuple[Symbol, ...]]]:
        """Some states before this one that shift the same, with the symbols that lead to each."""
        group = self._groups.get(self._items[state], [])
        own = next((len(prefix) for other, prefix in group if other == state), SYMBOLS)
        return [each for each in group if (len(each[1]), each[0]) < (own, state)]

    def smaller(self, state: int) -> list[tuple[int, tuple[Symbol, ...]]]:
        """Some states that shift less of the same, the most of it first."""
        own = self._items[state]
        best = sorted((items for items in self._groups if len(items) > 1 and items < own), key=len, reverse=True)
        return self._groups[best[0]] if best else []


def replacements(table: Lalr, certain: list[bool], contexts: list[int], meter: Meter) -> list[Replacement]:
    """What may be replaced on the stack of a parser in which no actions compete.

    Parameters
    ----------
    table:
        The parser.
    certain:
        By state: whether it makes its only reduction whatever comes next.
    contexts:
        By state: in which context the lexer reads on; what is told apart by it is not the same.

    Raises `BudgetExceededError`.
    """
    return _Search(table, certain, contexts, meter).replacements()


def table_of(found: list[Replacement]) -> NDArray[np.int32]:
    """Replacements as `structgen.runtime.grammar.tables.GrammarTables.same`, one for each state on top."""
    rows: list[tuple[int, ...]] = []
    for each in found:
        symbols = each.symbols + (-1,) * (SYMBOLS - len(each.symbols))
        if each.tops:
            rows += [(1, each.popped, *symbols, top, *each.states) for top in bits(each.tops)]
        else:
            rows.append((0, each.popped, *symbols, *each.states))
    width = max(map(len, rows), default=3 + SYMBOLS)
    return np.array([(*row, *[-1] * (width - len(row))) for row in rows], np.int32).reshape(-1, width)
