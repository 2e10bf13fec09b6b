"""The check behind "never stuck": whether every text that a vocabulary can begin, it can also finish.

A vocabulary with a token for every single byte that the automaton reads can spell whatever the automaton
accepts, and nothing more needs to be looked at; real byte-level vocabularies are like that. For others the
configurations that tokens reach are enumerated, and each must reach a complete text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..budget import Meter
from ..errors import VocabularyError
from ..runtime.automaton.tables import bytes_in
from ..runtime.core.machine import CompiledMachine, Config, Machine
from ..runtime.core.reference_walk import walk

if TYPE_CHECKING:
    from ..runtime.automaton.machine import AutomatonMachine

DOING = "checking that the vocabulary can finish every text"


def check_never_stuck(machine: AutomatonMachine, meter: Meter) -> None:
    """Raise `VocabularyError`, with an example, where some configuration cannot be finished."""
    missing = bytes_in(machine.tables.edge_low, machine.tables.edge_high) & ~machine.vocabulary.single_bytes
    if missing.any():
        names = ", ".join(f"0x{b:02x}" for b in np.flatnonzero(missing)[:8])
        where = f"no token is just the byte {names}{', ...' if missing.sum() > 8 else ''}"
        check_configurations(machine, lambda config: _moves(machine, config), where, meter)


def unfinished_text(machine: CompiledMachine, meter: Meter) -> bytes | None:
    """What tokens can begin and no tokens finish; None where there is none. Raises `BudgetExceededError`."""
    return _unfinished_text(machine, lambda config: steps(machine, config), meter)


def check_configurations(
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
    """A text behind which no tokens complete one: of few tokens, where nothing at all can follow; else of few bytes."""
    texts: dict[Config, bytes] = {machine.start: b""}
    into: dict[Config, set[Config]] = {}
    for config in (queue := [machine.start]):
        meter.check_states(len(texts), DOING)
        following = list(meter.each(moves(config), DOING))
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


def _moves(machine: AutomatonMachine, config: int) -> Iterator[tuple[int, bytes]]:
    """The configurations that one token leads to, each with the bytes of such a token."""
    trie, token = machine.vocabulary.trie, machine.vocabulary.token
    for nodes, at, configs in walk(trie, machine.follow_byte, config):
        for which, first in zip(*(found.tolist() for found in np.unique(at, return_index=True)), strict=True):
            yield configs[which], token(int(trie.token[nodes[first]])) or b""


def steps(machine: CompiledMachine, config: Config) -> Iterator[tuple[Config, bytes]]:
    """The configurations that tokens lead to, with their bytes."""
    row = machine.row(config).view(np.uint8)
    for token in np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist():
        target = machine.advance(config, token)
        if target is not None:  # as it is after an EOS id
            yield target, machine.vocabulary.token(token) or b""
