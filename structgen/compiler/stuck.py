"""The check behind "never stuck": whether every text that a vocabulary can begin, it can also finish.

A vocabulary with a token for every single byte that the automaton reads can spell whatever the automaton
accepts, and nothing more needs to be looked at; real byte-level vocabularies are like that. For others the
configurations that tokens reach are enumerated, and each must reach a complete text.
"""

from __future__ import annotations

import numpy as np

from ..budget import Meter
from ..errors import VocabularyError
from ..runtime.automaton import AutomatonMachine


def check_never_stuck(machine: AutomatonMachine, meter: Meter) -> None:
    """Raise `VocabularyError`, with an example, where some configuration cannot be finished."""
    missing = _bytes_read(machine) & ~_single_bytes(machine)
    if not missing.any():
        return
    texts: dict[int, bytes] = {machine.tables.start: b""}
    into: dict[int, set[int]] = {}
    todo = [machine.tables.start]
    while todo:
        config = todo.pop()
        meter.check_time("checking that the vocabulary can finish every text")
        meter.check_states(len(texts), "checking that the vocabulary can finish every text")
        for target, token in _moves(machine, config).items():
            into.setdefault(target, set()).add(config)
            if target not in texts:
                texts[target] = texts[config] + token
                todo.append(target)
    finishing = [config for config in texts if machine.is_accepting(config)]
    finished = set(finishing)
    while finishing:
        for config in into.get(finishing.pop(), ()):
            if config not in finished:
                finished.add(config)
                finishing.append(config)
    stuck = min((text for config, text in texts.items() if config not in finished), key=len, default=None)
    if stuck is not None:
        names = ", ".join(f"0x{b:02x}" for b in np.flatnonzero(missing)[:8])
        raise VocabularyError(
            f"after {stuck!r} no sequence of this vocabulary's tokens completes the text",
            where=f"no token is just the byte {names}{', ...' if missing.sum() > 8 else ''}",
            remedy="Use a definition that the vocabulary can spell, or a vocabulary with all single bytes.",
        )


def _bytes_read(machine: AutomatonMachine) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    read = np.zeros(257, np.int64)
    np.add.at(read, machine.tables.edge_low, 1)
    np.add.at(read, machine.tables.edge_high.astype(np.int64) + 1, -1)
    return np.cumsum(read)[:256] > 0


def _single_bytes(machine: AutomatonMachine) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    vocabulary = machine.vocabulary
    single = np.flatnonzero(np.diff(vocabulary.offsets.astype(np.int64)) == 1)
    have = np.zeros(256, np.bool_)
    have[vocabulary.blob[vocabulary.offsets[single]]] = True
    return have


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
