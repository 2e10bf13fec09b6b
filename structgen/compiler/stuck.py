"""The check behind "never stuck": whether every text that a vocabulary can begin, it can also finish.

A vocabulary with a token for every single byte that the automaton reads can spell whatever the automaton
accepts, and nothing more needs to be looked at; real byte-level vocabularies are like that. For others the
configurations that tokens reach are enumerated, and each must reach a complete text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from ..budget import Meter
from ..errors import VocabularyError
from ..runtime.automaton.machine import AutomatonMachine
from ..runtime.automaton.tables import bytes_in
from ..runtime.core.digraph import set_of, solve
from ..runtime.core.machine import CompiledMachine, Config, Machine
from ..runtime.grammar.machine import GrammarMachine
from ..runtime.pushdown.counts import zones_of
from ..runtime.pushdown.distinct.machine import DistinctMachine
from ..runtime.pushdown.machine import PushdownMachine
from ..runtime.pushdown.tables import PushdownTables
from .grammar.lexer.leftmost_dfa import edges_of
from .grammar.lexer.minimise import reached, successors

_DOING = "checking that the vocabulary can finish every text"


def check_never_stuck(machine: AutomatonMachine, meter: Meter) -> None:
    """Raise `VocabularyError`, with an example, where some configuration cannot be finished."""
    missing = bytes_in(machine.tables.edge_low, machine.tables.edge_high) & ~machine.vocabulary.single_bytes
    if missing.any():
        names = ", ".join(f"0x{b:02x}" for b in np.flatnonzero(missing)[:8])
        where = f"no token is just the byte {names}{', ...' if missing.sum() > 8 else ''}"
        _check_configurations(machine, lambda config: _moves(machine, config).items(), where, meter)


def check_finishes(machine: CompiledMachine, meter: Meter, *, completes: bool) -> str:
    """Check a machine of any kind, and say how it was seen.

    Parameters
    ----------
    completes:
        Whether it is known that bytes, whether they are tokens or not, complete whatever bytes begin. Without it
        all configurations are looked at.

    Raises `VocabularyError` with an example, `BudgetExceededError`.
    """
    check = _CHECKS.get(type(machine)) if completes else None
    if check is None:
        _check_configurations(machine, lambda config: _steps(machine, config), "", meter)
        return "each configuration that tokens lead to was looked at"
    check(machine, meter)
    return "whatever bytes begin, bytes complete, and the vocabulary's tokens spell these"


def unfinished_text(machine: CompiledMachine, meter: Meter) -> bytes | None:
    """What tokens can begin and no tokens finish; None where there is none. Raises `BudgetExceededError`."""
    return _unfinished_text(machine, lambda config: _steps(machine, config), meter)


def _check_configurations(
    machine: Machine, moves: Callable[[Config], Iterable[tuple[Config, bytes]]], where: str, meter: Meter
) -> None:
    """Every configuration that tokens reach must reach a complete text. ``moves``: the next ones, and by what."""
    stuck = _unfinished_text(machine, moves, meter)
    if stuck is not None:
        raise VocabularyError(
            f"after {stuck!r} no sequence of this vocabulary's tokens completes the text",
            where=where,
            remedy="Use a definition that the vocabulary can spell, or a vocabulary with all single bytes.",
        )


def _unfinished_text(
    machine: Machine, moves: Callable[[Config], Iterable[tuple[Config, bytes]]], meter: Meter
) -> bytes | None:
    """A text behind which no tokens complete one: of few tokens, where nothing at all can follow; else of few bytes.
    """
    texts: dict[Config, bytes] = {machine.start: b""}
    into: dict[Config, set[Config]] = {}
    for config in (queue := [machine.start]):
        meter.check_states(len(texts), _DOING)
        following = list(meter.each(moves(config), _DOING))
        if not following and not machine.is_accepting(config):
            return texts[config]
        for target, token in following:
            into.setdefault(target, set()).add(config)
            if target not in texts:
                texts[target] = texts[config] + token
                queue.append(target)
    finishing = [config for config in texts if machine.is_accepting(config)]
    finished = set(finishing)
    while finishing:
        new = into.get(finishing.pop(), set()) - finished
        finished |= new
        finishing += new
    return min((text for config, text in texts.items() if config not in finished), key=len, default=None)


def _moves(machine: AutomatonMachine, config: int) -> dict[int, bytes]:
    """The configurations that one token leads to, each with the bytes of such a token."""
    trie, vocabulary = machine.vocabulary.trie, machine.vocabulary
    moves: dict[int, bytes] = {}
    at = [config]
    node, end = 1, len(trie.byte)
    while node < end:
        depth = int(trie.depth[node])
        target = machine.follow(at[depth - 1], bytes((int(trie.byte[node]),)))
        if target < 0:
            node = int(trie.skip[node])
            continue
        del at[depth:]
        at.append(target)
        if trie.first_token[node] < trie.first_token[node + 1]:
            token = vocabulary.token(int(trie.token_ids[trie.first_token[node]]))
            moves.setdefault(target, token or b"")
        node += 1
    return moves


# -- automata with a stack ----------------------------------------------------------------------------------


def check_stack_never_stuck(machine: PushdownMachine, meter: Meter) -> None:
    """Raise `VocabularyError`, with an example, where some configuration cannot be finished.

    Enough, whatever lies on a stack: every state that the vocabulary's bytes lead to can finish by single-byte
    tokens alone. Where that fails, configurations are enumerated as far as the budget goes.
    """
    tables = machine.tables
    single = machine.vocabulary.single_bytes
    if single.all():
        return
    machine.lower_all()
    if single[bytes_in(tables.edge_low, tables.edge_high)].all():
        return
    spelt = np.zeros(256, np.bool_)
    spelt[machine.vocabulary.blob] = True
    if _unfinished(tables, single, spelt):
        _check_configurations(machine, lambda config: _steps(machine, config), "", meter)


def _unfinished(tables: PushdownTables, single: NDArray[np.bool_], spelt: NDArray[np.bool_]) -> set[int]:
    """States that bytes of tokens lead to, and that single-byte tokens alone do not finish."""
    moves: dict[int, list[tuple[bool, bool, tuple[int, ...]]]] = {}
    for state in range(tables.states):
        by_target: dict[int, list[int]] = {}
        for byte, target in tables.edges(state).items():
            by_target.setdefault(target, []).append(byte)
        moves[state] = []
        for target, bytes_of in by_target.items():
            by_single, by_any = bool(single[bytes_of].any()), bool(spelt[bytes_of].any())
            moves[state] += [(by_single, by_any, sequence) for sequence in _sequences(tables, target)]
    stands_for = {state: state for state in range(tables.states)}
    if tables.tokens is not None:
        for state, target in zip(*map(np.ndarray.tolist, tables.tokens.moves()), strict=True):
            moves[state] += [(True, True, sequence) for sequence in _sequences(tables, target)]
        stands_for |= {state: exhausted for state, (_, exhausted) in tables.tokens.bounds.items()}
    reached = {tables.start}
    for state in (queue := [tables.start]):
        for _, by_any, sequence in moves[state]:
            new = set(sequence) - reached if by_any else set()
            reached |= new
            queue += new
    finished = {state for state in reached if tables.returns[stands_for[state]]}
    growing = True
    while growing:
        growing = False
        for state in reached - finished:  # whatever tokens were counted: by what an exhausted state can do
            can = moves[stands_for[state]]
            if any(by_single and finished.issuperset(sequence) for by_single, _, sequence in can):
                finished.add(state)
                growing = True
    return reached - finished


def _sequences(tables: PushdownTables, target: int) -> list[tuple[int, ...]]:
    """What may take a state's place by an edge to a state, or to a group of moves."""
    if target < tables.states:
        return [(target,)]
    found: list[tuple[int, ...]] = []
    for record, sequence in tables.moves[target - tables.states]:
        found += [sequence] if record is None else [(first, *sequence) for first in zones_of(record)]
    return found


def _steps(machine: CompiledMachine, config: Config) -> Iterator[tuple[Config, bytes]]:
    """The configurations that tokens lead to, with their bytes."""
    row = machine.row(config).view(np.uint8)
    for token in np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist():
        target = machine.advance(config, token)
        if target is not None:  # as it is after an EOS id
            yield target, machine.vocabulary.token(token) or b""


def check_lexer_never_stuck(machine: GrammarMachine, meter: Meter) -> None:
    """Raise `VocabularyError` where a lexeme needs a byte that no token is by itself to become what it could be.

    What the vocabulary can then begin it can finish, byte by byte. Raises `BudgetExceededError`.
    """
    tables = machine.tables
    spelled = np.zeros(tables.table.shape[1], np.bool_)
    spelled[tables.class_of[machine.vocabulary.single_bytes]] = True
    if spelled.all():
        return
    future = [set_of({terminal for terminal, _ in tables.ends_of[state]}) for state in range(len(tables.table))]
    solve(future, successors(tables.table[:, spelled], meter), lambda: meter.check_time(_DOING))
    for state in _states_met(machine):
        possible, left = tables.futures[state], future[state]
        if possible != left:
            lost = possible & ~left
            byte = int(
                np.flatnonzero(~spelled[tables.class_of] & (tables.table[state, tables.class_of] >= 0)).min(
                    initial=255
                )
            )
            raise VocabularyError(
                "the vocabulary cannot complete every text of this grammar",
                where=f"terminal {tables.name((lost & -lost).bit_length() - 1)}; "
                f"no token is just the byte 0x{byte:02x}",
                remedy="Use a grammar that the vocabulary can spell, or a vocabulary with all single bytes.",
            )


def _states_met(machine: GrammarMachine) -> list[int]:
    """The lexer states that bytes of the vocabulary's tokens can lead to."""
    tables = machine.tables
    met = np.zeros(tables.table.shape[1], np.bool_)
    met[tables.class_of[np.unique(machine.vocabulary.blob)]] = True
    goals = np.zeros(len(tables.table), np.bool_)
    goals[tables.starts] = True
    found: list[int] = np.flatnonzero(reached(goals, edges_of(tables.table[:, met]))).tolist()
    return found


def check_distinct_never_stuck(machine: DistinctMachine, meter: Meter) -> None:
    """The same where an array's items must differ: what can still differ is looked for byte by byte."""
    check_stack_never_stuck(machine.inner, meter)
    if not machine.vocabulary.single_bytes[bytes_in(machine.tables.edge_low, machine.tables.edge_high)].all():
        _check_configurations(machine, lambda config: _steps(machine, config), "", meter)


_CHECKS: dict[type, Callable[..., None]] = {
    AutomatonMachine: check_never_stuck, PushdownMachine: check_stack_never_stuck,
    GrammarMachine: check_lexer_never_stuck, DistinctMachine: check_distinct_never_stuck,
}  # fmt: skip
