"""How much a token can add to a bound on the distance, whatever the stack of a grammar's parser.

Each state of a stack, but for the one on top, has a *weight*: the most bytes that it takes to read on from a
nonterminal on it until it goes, too. With what it takes to get rid of the state on top, whichever it is, the weights
of a stack add up to no less than its cheapest text has bytes. A reduction takes
states away, so what a lexeme adds is the weight of the state that shifts it, and of those that were put under it for
what is empty; one walk of the trie, from all lexer states at once, finds how much the lexemes of a token add at most.

Between lexemes a text may need something ignored, or have to take a longer way; how much longer is found by looking
at all that can be watched behind a lexeme. Where too much can, there is no bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....system.types import Array
from ...core.digraph import bits
from ..completability.nesting import rules_of
from ..tables import SYMBOLS, GrammarTables
from .lexeme_costs import Spot
from .parser_costs import FAR
from .texts import GrammarTexts, Stuck

if TYPE_CHECKING:
    from ....vocabulary.trie import Trie
    from ..parser.stack import Stack

#: Places in lexemes under obligations; steps of the walk of the trie; rounds to have simpler stacks weigh less.
_MOST_SPOTS, _MOST_STEPS, _MOST_ROUNDS = 1 << 13, 1 << 26, 8


@dataclass
class Potential:
    """A bound on distances, which tokens add little to.

    Parameters
    ----------
    weights:
        By parser state.
    base, factor:
        A thread whose stack weighs ``w`` is completed by ``base + factor * w`` tokens.
    most:
        What a token adds to that at most.
    """

    weights: list[int]
    base: int
    factor: int
    most: int
    _sums: dict[Stack, int] = field(default_factory=dict)

    def bound(self, stack: Stack) -> int:
        """Tokens that suffice before any lexeme that is in progress upon a stack."""
        sums = self._sums
        above = []
        here = stack.below
        while here is not None and here not in sums:
            above.append(here)
            here = here.below
        total = 0 if here is None else sums[here]
        for each in reversed(above):
            total += self.weights[each.state]
            sums[each] = total
        return self.base + self.factor * total

    @property
    def remembered(self) -> int:
        """How many stacks are remembered."""
        return len(self._sums)

    def forget(self) -> None:
        """Forget what is remembered of stacks."""
        self._sums = {}


def find_potential(tables: GrammarTables, texts: GrammarTexts, trie: Trie) -> Potential | None:
    """What tokens add; None where no bound is known. Raises `Stuck` where not all that may follow can be read."""
    if (tables.members + 1) * max(tables.members, len(tables.table)) > _MOST_STEPS:
        return None
    edges = np.concatenate([tables.shift, tables.goto])
    edges = edges[edges[:, 1] != tables.end]
    longer = _longer(tables, texts)
    weighed = _weights(tables, texts, edges)
    if weighed is None or longer is None:
        return None
    (weights, top), (within, between) = weighed, longer
    shifting = _shifting(tables, weights)
    if shifting is None:
        return None
    added = _added(tables, shifting, weights)
    in_token = _in_token(tables, texts, trie, added)
    if in_token < 0:
        return None
    factor = 1 + between
    base = 1 + within + between + factor * (int(added.max(initial=0)) + top + texts.costs.bytes(texts.start))
    return Potential(weights, base, factor, factor * in_token)


def _weights(tables: GrammarTables, texts: GrammarTexts, edges: NDArray[np.int32]) -> tuple[list[int], int] | None:
    """By state the most bytes, from a nonterminal on it, that take it away, too; with `same` they get no more.

    And the most that it takes from whatever is on top of any state.
    """
    weights, top = [0] * len(tables.context), 0
    for k, (state, _, target) in enumerate(edges.tolist()):
        is_shift = k < len(edges) - len(tables.goto)  # behind a terminal anything may come
        cost = texts.costs.least(state, target, any_head=is_shift)
        if cost >= FAR:
            return None
        top = max(top, cost)
        if not is_shift:
            weights[state] = max(weights[state], cost)
    simpler = list(_simpler(tables))
    for _ in range(_MOST_ROUNDS):
        is_done = True
        for states, gone, put in simpler:
            missing = sum(weights[state] for state in put[1:-1]) - sum(weights[state] for state in states[1:gone])
            if missing > 0:
                if gone < 2:
                    return None
                weights[states[1]] += missing
                is_done = False
        if is_done:
            return weights, top
    return None


def _simpler(tables: GrammarTables) -> Iterator[tuple[list[int], int, list[int]]]:
    """States from the top down, how many of them `same` takes away; the state that is left, those put on it."""
    moves: list[dict[int, int]] = [{} for _ in tables.context]
    preceding: list[list[int]] = [[] for _ in moves]
    symbol_of = [-1] * len(moves)
    for state, symbol, target in np.concatenate([tables.shift, tables.goto]).tolist():
        moves[state][symbol] = target
        preceding[target].append(state)
        symbol_of[target] = symbol
    for kept, popped, *rest in tables.same.tolist():
        symbols = [symbol for symbol in rest[:SYMBOLS] if symbol >= 0]
        states = [state for state in rest[SYMBOLS:] if state >= 0]
        if kept:
            symbols.append(symbol_of[states[0]])
        gone = kept + popped
        for left in states[gone : gone + 1] or preceding[states[gone - 1]]:
            put = [left]
            for symbol in symbols:
                if symbol not in moves[put[-1]]:
                    break
                put.append(moves[put[-1]][symbol])
            else:
                yield states, gone, put


def _popped(tables: GrammarTables) -> list[int]:
    """By state: how many states it takes away whatever comes next, 0 if it does not."""
    found = [0] * len(tables.context)
    for state, length, _ in tables.reduce.tolist():
        if tables.defaults[state]:
            found[state] = length
    return found


def _shifting(tables: GrammarTables, weights: list[int]) -> list[int] | None:
    """By state: the most that a terminal adds which is shifted there, empty nonterminals before it included."""
    empty = _empty(tables)
    onto: list[list[int]] = [[] for _ in weights]  # by state, those on top of it by something empty
    waiting = [0] * len(weights)
    for state, symbol, target in tables.goto.tolist():
        if symbol in empty:
            onto[state].append(target)
            waiting[target] += 1
    found = list(weights)
    todo = [state for state, count in enumerate(waiting) if not count]
    for state in todo:  # grows as it goes
        for target in onto[state]:
            found[target] = max(found[target], found[state] + weights[target])
            waiting[target] -= 1
            if not waiting[target]:
                todo.append(target)
    return found if len(todo) == len(weights) else None


def _empty(tables: GrammarTables) -> set[int]:
    """A superset of the nonterminals that can be empty."""
    rules, _ = rules_of(tables, int)
    found: set[int] = set()
    while more := {origin for origin, expansion in rules if found.issuperset(expansion)} - found:
        found |= more
    return found


def _longer(tables: GrammarTables, texts: GrammarTexts) -> tuple[int, int] | None:
    """The most bytes up to the end of a lexeme, and how many more than the fewest the next one takes.

    Whatever the obligations; None where there can be too many.

    Raises `Stuck` where something that the parser may accept cannot be read.
    """
    lexemes, starts = texts.lexemes, tables.starts.tolist()
    contexts: dict[int, set[int]] = {}
    follow: dict[int, int] = {}
    for _, terminal, target in tables.shift.tolist():
        if terminal != tables.end:
            contexts.setdefault(terminal, set()).add(int(tables.context[target]))
            follow[terminal] = follow.get(terminal, 0) | texts.mentioned(target)
    anything = (1 << tables.end + 1) - 1
    todo: list[Spot] = [(start, ()) for start in starts]
    seen = set(todo)
    begun: dict[tuple[int, Spot, bool], int] = {}  # what may have to be read at a context's start
    within = 0
    for spot in todo:  # grows as it goes
        if len(todo) > _MOST_SPOTS:
            return None
        following = [after for c in range(tables.table.shape[1]) if (after := lexemes.moved(spot, c)) is not None]
        for terminal, _ in tables.ends_of[spot[0]]:
            boundary = lexemes.ended(spot, terminal)
            assert boundary is not None
            is_ignored = texts.is_ignored(terminal)
            for context in range(len(starts)) if is_ignored else contexts.get(terminal, ()):
                after = starts[context], boundary
                key = context, after, terminal in texts.between
                begun[key] = begun.get(key, 0) | (anything if is_ignored else follow[terminal])
                following.append(after)
        for after in following:
            if after not in seen:
                seen.add(after)
                todo.append(after)
        for terminal in bits(tables.futures[spot[0]]) if spot[0] not in starts else ():
            size = lexemes.bytes(spot, terminal)
            within = max(within, size if size < FAR else 0)
    more, needed = 0, texts.costs.firsts()
    for (_, (start, boundary), is_apart), wanted in begun.items():
        for terminal in bits(wanted & needed):
            shortest = 0 if terminal == tables.end else texts.shortest[terminal]
            if shortest >= FAR or texts.is_ignored(terminal):
                continue
            if terminal != tables.end and lexemes.plain[terminal][start] >= FAR:
                continue  # not of this context
            size = texts.size((start, boundary), terminal, may_part=not is_apart)
            if size >= FAR:
                raise Stuck
            more = max(more, size - shortest)
    return within, more


def _added(tables: GrammarTables, shifting: list[int], weights: list[int]) -> NDArray[np.int64]:
    """``int64[terminals + 1, terminals]``: what a terminal adds that comes next after another one, or after any."""
    edges = np.concatenate([tables.shift, tables.goto]).tolist()
    preceding: list[set[int]] = [set() for _ in weights]
    for state, _, target in edges:
        preceding[target].add(state)
    gotos: list[dict[int, int]] = [{} for _ in weights]
    for state, symbol, target in tables.goto.tolist():
        gotos[state][symbol] = target
    following: list[set[int]] = [set() for _ in weights]  # by state: what is on top after one move that reads nothing
    for state, length, origin in tables.reduce.tolist():
        lows = {state}
        for _ in range(length):
            lows = {low for each in lows for low in preceding[each]}
        following[state].update(gotos[low][origin] for low in lows if origin in gotos[low])
    for states, _, put in _simpler(tables):
        following[states[0]].add(put[-1])
    popped = _popped(tables)
    gains: list[list[tuple[int, int]]] = [[] for _ in weights]  # by state: terminals, and what each adds
    targets: list[set[int]] = [set() for _ in range(tables.members)]
    for state, terminal, target in tables.shift.tolist():
        gains[state].append((terminal, shifting[state] - (weights[state] if popped[target] > 1 else 0)))
        targets[terminal].add(target)
    added = np.zeros((tables.members + 1, tables.members), np.int64)
    for before, first in enumerate([*targets, set(range(len(weights)))]):
        todo = list(first)
        seen = set(first)
        for state in todo:  # grows as it goes
            for terminal, gain in gains[state]:
                added[before, terminal] = max(added[before, terminal], gain)
            for after in following[state] - seen:
                seen.add(after)
                todo.append(after)
    return added


def _in_token(tables: GrammarTables, texts: GrammarTexts, trie: Trie, added: NDArray[np.int64]) -> int:
    """The most that the lexemes which a token completes add; -1 where that takes too long to see."""
    added = added.copy()
    added[:, [texts.is_ignored(terminal) for terminal in range(tables.members)]] = -1
    begins = np.searchsorted(tables.ends[:, 0], np.arange(len(tables.table) + 1))
    return int(
        kernels.most_completed(
            trie.byte, trie.depth, trie.skip, trie.first_token, tables.class_of, tables.table, tables.goes_on,
            np.ascontiguousarray(tables.ends[:, 1]), begins, added, tables.starts, _MOST_STEPS,
            *completion_scratch(trie.max_depth, len(tables.table), len(added)),
        )
    )  # fmt: skip


def completion_scratch(deepest: int, states: int, kinds: int) -> tuple[Array, ...]:
    """Scratch of `kernels.most_completed`, with room for more than all states at each depth."""
    depths, room, keys = deepest + 2, 2 * states + 4096, states * kinds
    return (
        np.empty((depths, room), np.int32),
        np.empty((depths, room), np.int64),
        np.empty(depths, np.int64),
        *np.empty((2, keys), np.int64),
    )
