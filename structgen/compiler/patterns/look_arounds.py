"""Exact look-around, by intersection and complement.

Let ``M`` be the automaton of the pattern in which each look-around ``k`` is a symbol of its own, a *marker*
``#k``: ``foo(?=bar).*`` becomes ``foo #0 .*``. A text belongs to the language when markers can be inserted into
it so that ``M`` accepts and every marker tells the truth about its place. Truth is regular:

- ``(?<=B)``: the bytes before ``#k`` are in ``Σ*B``. Run that automaton along, and let ``#k`` pass only where it
  accepts (or, for ``(?<!B)``, where it does not).
- ``(?=B)``: the bytes after ``#k`` are in ``BΣ*``. The words with a *lying* marker are ``.. #k r`` with ``r`` not in
  ``BΣ*``, a nondeterministic automaton; determinise and complement it. Where ``#k`` may stand anywhere, that has
  states for sets of places where it stood, 2^n at worst. ``M`` has it in few places; so where these are many states,
  only words of ``M`` are determinised: with the lying marker as a symbol ``!`` of its own, ``M`` is intersected with
  ``.. ! r``, and ``!`` is then read as ``#k``.

Intersect ``M`` with each condition, erase the markers, determinise. No approximation anywhere; the budget bounds
the products. (interegular's FSM class was measured too: its `crawl` looks every new state up in
a list, so that time grows with the square of the states. A product of 4,000 states takes it 0.3 to 4 s, and 0.6
to 19 s with `reduce`, where the kernels take 3 to 36 ms for both.)

A look-around inside another one is resolved within that one's language. It must not see further than that
language's own text: a look-behind in a look-ahead may only look at what the look-ahead has read (or the
look-ahead stands at the start, where there is nothing else). Otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...budget import Meter
from ...errors import BudgetExceededError, UnsupportedError
from ..automata.dfa import Dfa, add_to, complement, determinize, intersect, minimize, total
from ..automata.nfa import BYTES, Nfa, NfaBuilder
from .measures import measure
from .syntax import Alternate, Concat, Look, Node, Repeat

#: Look-around inside look-around inside ...: each level is a recursive call.
MAX_NESTING = 12

#: States of the words with a lying marker up to which it is not worth asking where the pattern has markers.
_FEW = 1000


class AnchoredLook(NamedTuple):
    """A look-around in a pattern, and whether it stands at the edge of the text that it looks away from.

    A look-ahead at the very start sees the whole text, so that what looks behind inside it misses nothing.
    """

    look: Look
    at_edge: bool


def resolve_looks(dfa: Dfa, looks: list[AnchoredLook], language: Callable[..., Dfa], meter: Meter) -> Dfa:
    """Replace the markers in ``dfa`` (symbol ``256 + k`` for ``looks[k]``) by what they assert."""
    for k, (look, at_edge) in enumerate(looks):
        check_nesting(look, at_edge, meter)
        item = language(
            look.item, meter, edges=False, suffix=not (look.behind or look.whole), prefix=look.behind and not look.whole
        )
        if look.behind:
            condition = _behind(item, k, len(looks), look.negate, meter)
        else:
            condition = _ahead(dfa, item, k, look.negate, meter)
        dfa = intersect(dfa, condition, meter, f"look-around at column {look.column}")
    builder = NfaBuilder()
    start, accepting = add_to(builder, dfa)
    edges = builder.edge_blocks.pop()
    # A range may hold bytes and markers alike, where both lead to one state.
    for source, target in edges[edges[:, 2] >= BYTES][:, [0, 3]].tolist():
        builder.epsilon(source, target)
    edges = edges[edges[:, 1] < BYTES]
    edges[:, 2] = np.minimum(edges[:, 2], BYTES - 1)
    builder.edge_blocks.append(edges)
    return minimize(determinize(_accepting(builder, start, accepting), meter, "resolving look-around"), meter)


def _behind(before: Dfa, marker: int, markers: int, negate: bool, meter: Meter) -> Dfa:
    """The words in which ``#marker`` stands only after a prefix in (or, negated, not in) ``before``."""
    builder = NfaBuilder(markers)
    before = total(before)
    start, _ = add_to(builder, before)
    base = start - before.start
    accept = builder.state()
    for s in range(before.states):
        for m in range(markers):
            if m != marker or bool(before.accepting[s]) != negate:
                builder.edge(base + s, BYTES + m, BYTES + m, base + s)
        builder.epsilon(base + s, accept)
    return determinize(builder.build(start, accept), meter, "look-behind")


def _ahead(words: Dfa, after: Dfa, marker: int, negate: bool, meter: Meter) -> Dfa:
    """Words, at least those of ``words``, in which a suffix in (or not in) ``after`` follows every ``#marker``."""
    doing = "negating look-ahead"
    symbol, symbols = BYTES + marker, len(words.classes)
    wrong = total(after) if negate else complement(after)
    with suppress(BudgetExceededError):
        liars = determinize(_behind_one(symbol, wrong, symbols), meter, doing, most=_FEW)
        return complement(minimize(liars, meter))
    return complement(minimize(_lying(words, symbol, wrong, meter, doing), meter))


def _lying(words: Dfa, symbol: int, wrong: Dfa, meter: Meter, doing: str) -> Dfa:
    """Those of ``words`` in which ``wrong`` follows some ``symbol``."""
    one = len(words.classes)  # that symbol, as another one, which may stand wherever it does
    marked = replace(
        words,
        table=np.hstack([words.table, words.table[:, [words.classes[symbol]]]]),
        classes=np.append(words.classes, np.int32(words.n_classes)),
    )
    behind_one = determinize(_behind_one(one, wrong, one), meter, doing)
    builder = NfaBuilder(one - BYTES)
    start, accepting = add_to(builder, intersect(marked, behind_one, meter, doing))
    edges = builder.edge_blocks[0]
    edges[edges[:, 1] == one, 1:3] = symbol  # a range by itself: nothing else leads behind it
    return determinize(_accepting(builder, start, accepting), meter, doing)


def _behind_one(symbol: int, language: Dfa, symbols: int) -> Nfa:
    """Words of some ``symbols`` that end, behind a ``symbol``, with a text in ``language`` with any markers."""
    builder = NfaBuilder(max(symbol + 1, symbols) - BYTES)
    inner, accepting = add_to(builder, language)
    first = inner - language.start
    for s in range(first, first + language.states):
        builder.edge(s, BYTES, symbols - 1, s)
    start = builder.state()
    builder.edge(start, 0, symbols - 1, start)
    builder.edge(start, symbol, symbol, inner)
    return _accepting(builder, start, accepting)


def _accepting(builder: NfaBuilder, start: int, accepting: list[int]) -> Nfa:
    accept = builder.state()
    for s in accepting:
        builder.epsilon(s, accept)
    return builder.build(start, accept)


def check_nesting(look: Look, at_edge: bool, meter: Meter | None = None) -> None:
    """Refuse look-around inside ``look`` that sees beyond what ``look`` itself reads."""
    facts = measure(look, meter)
    todo: list[tuple[Node, int, int, int]] = [(look.item, 0, 0, 1)]
    while todo:
        node, before, after, level = todo.pop()
        if isinstance(node, Look):
            if level >= MAX_NESTING:
                raise UnsupportedError(
                    f"look-around is nested more than {MAX_NESTING} deep",
                    where=f"column {node.column}",
                    remedy="Nest less of it.",
                )
            widest, room = facts[id(node.item)].max_width, before if node.behind else after
            # What is nested deeper is checked against its own parent, when that one is resolved.
            sees_beyond = widest is None or room < widest + node.whole
            if level == 1 and node.behind != look.behind and sees_beyond and not at_edge:
                raise UnsupportedError(
                    f"a look-{'behind' if node.behind else 'ahead'} inside a look-"
                    f"{'behind' if look.behind else 'ahead'} may only look at what that one reads",
                    where=f"column {node.column}",
                    remedy="Move the inner look-around out, or make the outer one read the text it needs.",
                )
            todo.append((node.item, 0, 0, level + 1))
        elif isinstance(node, Concat):
            rest = sum(facts[id(part)].min_width for part in node.parts)
            for part in node.parts:
                rest -= facts[id(part)].min_width
                todo.append((part, before, after + rest, level))
                before += facts[id(part)].min_width
        elif isinstance(node, Alternate):
            todo.extend((option, before, after, level) for option in node.options)
        elif isinstance(node, Repeat):
            todo.append((node.item, before, after, level))
