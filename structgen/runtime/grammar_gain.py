"""How much a token can add to a bound on the distance, whatever the stack of a grammar's parser.

Each state of a stack, but for the one on top, has a *weight*: the most bytes that it takes to read on from a nonterminal
on it until it goes, too. With what it takes to get rid of the state on top, whichever it is, the weights of a stack add
up to no less than its cheapest text has bytes. A reduction takes
states away, so what a lexeme adds is the weight of the state that shifts it, and of those that were put under it for
what is empty; one walk of the trie, from all lexer states at once, finds how much the lexemes of a token add at most.

Between lexemes a text may need something ignored, or have to take a longer way; how much longer is found by looking at
all that can be watched behind a lexeme. Where too much can, or not all that follows can be read, there is no bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .closure import bits
from .grammar_tables import SYMBOLS, GrammarTables
from .grammar_texts import GrammarTexts, Stuck
from .lexeme_costs import Spot
from .parser_costs import FAR

if TYPE_CHECKING:
    from ..vocabulary.trie import Trie
    from .parser_stack import Stack

#: Places in lexemes beside what is watched; steps of the walk of the trie; rounds to have simpler stacks weigh less.
_MOST_SPOTS, _MOST_STEPS, _MOST_ROUNDS = 1 << 13, 1 << 26, 8


@dataclass
class Gain:
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

    def forget(self) -> None:
        """Forget what is remembered of stacks."""
        self._sums = {}


def find_gain(tables: GrammarTables, texts: GrammarTexts, trie: Trie) -> Gain | None:
    """What tokens add; None where no bound is known. Raises `Stuck` where not all that may follow can be read."""
    edges = np.concatenate([tables.shift, tables.goto])
    edges = edges[edges[:, 1] != tables.end]
    longer = _longer(tables, texts)
    weighed = _weights(tables, texts, edges)
    if weighed is None or longer is None:
        return None
    (weights, top), (within, between) = weighed, longer
    shifting = _shifting(tables, edges, weights)
    if shifting is None:
        return None
    added = np.zeros(tables.members, np.int64)  # by terminal
    certain = _popped(tables)
    for state, terminal, target in tables.shift.tolist():
        gained = shifting[state] - (weights[state] if certain[target] > 1 else 0)
        added[terminal] = max(added[terminal], gained)
    in_token = _in_token(tables, trie, added)
    if in_token < 0:
        return None
    factor = 1 + between
    base = 1 + within + between + factor * (int(added.max(initial=0)) + top + texts.costs.bytes(texts.start))
    return Gain(weights, base, factor, factor * in_token)


def _weights(tables: GrammarTables, texts: GrammarTexts, edges: NDArray[np.int32]) -> tuple[list[int], int] | None:
    """By state the most that it takes, from a nonterminal on it, to take it away, too; not more after `same` than before.

    And the most that this takes from whatever is on top of any state.
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
    moves: list[dict[int, int]] = [{} for _ in weights]
    preceding: list[list[int]] = [[] for _ in weights]
    symbol_of = [-1] * len(weights)
    for state, symbol, target in edges.tolist():
        moves[state][symbol] = target
        preceding[target].append(state)
        symbol_of[target] = symbol
    for _ in range(_MOST_ROUNDS):
        is_done = True
        for kept, popped, *rest in tables.same.tolist():
            symbols = [symbol for symbol in rest[:SYMBOLS] if symbol >= 0]
            states = [state for state in rest[SYMBOLS:] if state >= 0]
            if kept:
                symbols.append(symbol_of[states[0]])
            gone = kept + popped
            for left in states[gone : gone + 1] or preceding[states[gone - 1]]:
                put, here = 0, left
                for count, symbol in enumerate(symbols):
                    put += weights[here] if count else 0
                    if symbol not in moves[here]:
                        break
                    here = moves[here][symbol]
                missing = put - sum(weights[state] for state in states[1:gone])
                if missing > 0:
                    if gone < 2:
                        return None
                    weights[states[1]] += missing
                    is_done = False
        if is_done:
            return weights, top
    return None


def _popped(tables: GrammarTables) -> list[int]:
    """By state: how many states it takes away whatever comes next, 0 if it does not."""
    found = [0] * len(tables.context)
    for state, length, _ in tables.reduce.tolist():
        if tables.certain[state]:
            found[state] = length
    return found


def _shifting(tables: GrammarTables, edges: NDArray[np.int32], weights: list[int]) -> list[int] | None:
    """By state: what a terminal adds that is shifted there, with what is read before it that is empty."""
    empty = _empty(tables, edges)
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


def _empty(tables: GrammarTables, edges: NDArray[np.int32]) -> set[int]:
    """Nonterminals that may be empty, and maybe others."""
    preceding: list[list[tuple[int, int]]] = [[] for _ in tables.context]
    gotos = set(tables.goto[:, 1].tolist())
    is_goto = np.isin(np.arange(len(edges)), np.arange(len(tables.shift), len(edges)))
    for (state, symbol, target), goto in zip(edges.tolist(), is_goto.tolist(), strict=True):
        preceding[target].append((state, symbol if goto else -1))
    empty: set[int] = set()
    while True:
        before = len(empty)
        for state, length, origin in tables.reduce.tolist():
            if origin in empty or origin not in gotos:
                continue
            here = {state}
            for _ in range(length):
                here = {low for each in here for low, symbol in preceding[each] if symbol in empty}
            if here:
                empty.add(origin)
        if len(empty) == before:
            return empty


def _longer(tables: GrammarTables, texts: GrammarTexts) -> tuple[int, int] | None:
    """The most bytes up to the end of a lexeme, and how many more than the fewest the next one takes.

    Whatever is watched; None where too much can be watched.

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
            border = lexemes.ended(spot, terminal)
            assert border is not None
            is_ignored = texts.is_ignored(terminal)
            for context in range(len(starts)) if is_ignored else contexts.get(terminal, ()):
                after = starts[context], tuple(sorted(border))
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
    more = 0
    for (_, (start, border), is_apart), wanted in begun.items():
        for terminal in bits(wanted):
            shortest = 0 if terminal == tables.end else texts.shortest[terminal]
            if shortest >= FAR or texts.is_ignored(terminal):
                continue
            if terminal != tables.end and lexemes.plain[terminal][start] >= FAR:
                continue  # not of this context
            size = texts.size((start, border), terminal, may_part=not is_apart)
            if size >= FAR:
                raise Stuck
            more = max(more, size - shortest)
    return within, more


def _in_token(tables: GrammarTables, trie: Trie, added: NDArray[np.int64]) -> int:
    """The most that the lexemes which a token completes add; -1 where that takes too long to see."""
    from .. import kernels

    of_state = np.full(len(tables.table), -1, np.int64)
    np.maximum.at(of_state, tables.ends[:, 0], added[tables.ends[:, 1]])
    return int(
        kernels.most_completed(
            trie.byte, trie.depth, trie.skip, trie.first_token, trie.max_depth, tables.class_of, tables.table,
            tables.goes_on, of_state, tables.starts, _MOST_STEPS,
        )
    )  # fmt: skip
