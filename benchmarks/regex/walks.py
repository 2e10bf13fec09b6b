"""Token sequences to replay: random walks over structgen's masks, always the same ones for a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import structgen as sg
from structgen.runtime import ids_of

Walk = list[int]

#: Stands for the first byte of ids that have none: among those that a mask allows, the EOS ids.
NO_BYTE = 256

#: See `draw`.
_RARELY = 50


def random_walks(index: sg.Index, count: int, length: int, seed: int) -> list[Walk]:
    """Walks of at most ``length`` tokens, each ended by an EOS id where one was drawn (which is left out)."""
    rng = np.random.default_rng(seed)
    first = first_bytes(index.vocabulary)
    return [_random_walk(index, length, first, rng) for _ in range(count)]


def _random_walk(index: sg.Index, length: int, first: NDArray[np.int16], rng: np.random.Generator) -> Walk:
    guide, walk = sg.Guide(index), Walk()
    while len(walk) < length:
        token = draw(ids_of(guide.bitmask()), first, rng)
        if first[token] == NO_BYTE:
            break
        if not guide.advance(token):
            raise AssertionError(f"the mask allows token {token} and advance does not")
        walk.append(token)
    return walk


def draw(ids: NDArray[np.int64], first: NDArray[np.int16], rng: np.random.Generator) -> int:
    """One of the ids: first a byte among those that can come next (or the end), then a token that begins with it.

    Drawn among all tokens alike, ``@`` would hardly ever follow a name that may go on. Bytes beyond ASCII are
    drawn at one step in `_RARELY` only, unless there is nothing else: ``\\d`` in what models write is 0 to 9.
    """
    choices = np.unique(first[ids])
    if rng.integers(_RARELY) and (choices < 0x80).any():
        choices = choices[(choices < 0x80) | (choices == NO_BYTE)]
    return int(rng.choice(ids[first[ids] == rng.choice(choices)]))


def first_bytes(vocabulary: sg.Vocabulary) -> NDArray[np.int16]:
    """``int16[size]``: each token's first byte, `NO_BYTE` for those without."""
    first = np.full(vocabulary.size, NO_BYTE, np.int16)
    spelled = np.flatnonzero(np.diff(vocabulary.offsets.astype(np.int64)))
    first[spelled] = vocabulary.blob[vocabulary.offsets[:-1][spelled]]
    return first
