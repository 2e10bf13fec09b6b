"""LALR(1) lookaheads by the relations of DeRemer & Pennello (Efficient computation of LALR(1) look-ahead sets, 1982).

Sets of terminals are integers, a bit for each. With a transition ``(p, A)`` of the LR(0) automaton on a nonterminal:

- what can be read right after it (*direct reads*), and after empty nonterminals (*reads*), is ``Read(p, A)``;
- where a rule ends with ``A`` and what can be empty, whatever follows the rule follows ``A`` (*includes*):
  ``Follow(p, A)``;
- a rule of ``A`` that was begun in ``p`` and ends in ``q`` is reduced there before ``Follow(p, A)`` (*lookback*).

Both ``Read`` and ``Follow`` are least solutions of ``F(x) = F'(x) | F(y) for x R y``, found in one pass over the
strongly connected components (the paper's Digraph).
"""

from __future__ import annotations

from ....budget import Meter
from ....runtime.core.digraph import set_of, solve
from .lr0 import Lr0

#: What the meter is told.
_DOING = "looking ahead"

#: Bytes of a transition, besides its terminals.
_BYTES_OF_TRANSITION = 500


def lookaheads(automaton: Lr0, meter: Meter) -> list[dict[int, int]]:
    """By state: the terminals before which each complete rule is reduced, as bits."""
    symbols, moves = automaton.symbols, automaton.moves
    end, nullable = symbols.terminals, symbols.nullable
    transitions = [(p, a) for p, there in enumerate(moves) for a in there if a > end]
    number = {transition: i for i, transition in enumerate(transitions)}
    follow = [0] * len(transitions)
    reads: list[list[int]] = []
    for i, (p, a) in enumerate(transitions):
        if i % 256 == 0:
            meter.check_time(_DOING)
            meter.check_memory(i * (_BYTES_OF_TRANSITION + end // 8), _DOING)
        after = moves[p][a]
        reads.append([number[after, symbol] for symbol in moves[after] if symbol > end and nullable[symbol]])
        follow[i] = set_of(symbol for symbol in moves[after] if symbol <= end)
    solve(follow, reads, lambda: meter.check_time(_DOING))
    includes: list[list[int]] = [[] for _ in transitions]
    lookback: list[tuple[int, int, int]] = []  # state at the end, rule, transition
    empty_from = _empty_from(automaton)
    held = 0  # related transitions
    for i, (p, a) in enumerate(transitions):
        if i % 256 == 0:
            meter.check_time(_DOING)
            meter.check_memory(8 * held + len(transitions) * (_BYTES_OF_TRANSITION + end // 8), _DOING)
        held += len(symbols.rules_of[a])
        for rule in symbols.rules_of[a]:
            here, from_ = p, empty_from[rule]
            for place, symbol in enumerate(symbols.rules[rule][1]):
                if symbol > end and place + 1 >= from_:
                    includes[number[here, symbol]].append(i)
                    held += 1
                here = moves[here][symbol]
            lookback.append((here, rule, i))
    solve(follow, includes, lambda: meter.check_time(_DOING))
    found: list[dict[int, int]] = [dict.fromkeys(rules, 0) for rules in automaton.complete]
    for state, rule, i in lookback:
        found[state][rule] |= follow[i]
    return found


def _empty_from(automaton: Lr0) -> list[int]:
    """By rule: the first place from which on all symbols can be empty."""
    nullable = automaton.symbols.nullable
    found = []
    for _, expansion in automaton.symbols.rules:
        place = len(expansion)
        while place and nullable[expansion[place - 1]]:
            place -= 1
        found.append(place)
    return found
