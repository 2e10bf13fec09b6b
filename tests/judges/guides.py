"""What most tests begin with: vocabularies that have every byte, and what a mask allows, read bit by bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

import structgen as sg
from structgen.runtime.core.reference_walk import row_of_nodes, tokens_from

Drawn = TypeVar("Drawn")

EACH_BYTE: list[bytes] = [bytes([byte]) for byte in range(256)]


def with_end(tokens: Iterable[bytes | None]) -> sg.Vocabulary:
    """Tokens, and an EOS id behind them."""
    tokens = list(tokens)
    return sg.Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])


def with_bytes(*tokens: bytes | str) -> sg.Vocabulary:
    """All bytes, then these tokens, and an EOS id behind them."""
    return with_end([*EACH_BYTE, *(token.encode() if isinstance(token, str) else token for token in tokens)])


#: The vocabulary whose token ids are bytes, and its EOS id.
BYTES, EOS = with_bytes(), 256


def ids_of_bits(row: np.ndarray[Any, Any]) -> list[int]:
    """The ids whose bit is set in a row of a bitmask, by other means than structgen's own."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()  # type: ignore[no-any-return]


def allowed(guide: sg.Guide) -> list[int]:
    """The ids that a guide's mask allows."""
    return ids_of_bits(guide.bitmask())


def reference_mask(guide: sg.Guide) -> np.ndarray[Any, Any]:
    """What a guide's mask has to be, unless a definition names tokens: the reference walk's tokens, and EOS ids."""
    index, vocabulary = guide.index, guide.index.vocabulary
    row = row_of_nodes(vocabulary, tokens_from(vocabulary, index.machine, guide.config))
    return row | vocabulary.eos_row if guide.is_accepting() else row


def drawn(draw: Callable[[], Drawn], *useless: type[Exception]) -> Drawn:
    """What is drawn at random; once more where that raises an error that says that it is of no use."""
    for _ in range(100):
        with suppress(*useless):
            return draw()
    raise AssertionError("a hundred draws, none of them of use")


def check_walk(index: sg.Index, rng: random.Random, steps: int = 6) -> None:
    """Along a random text of so many tokens at most no mask is empty, and the reference walk and `advance` agree."""
    guide = sg.Guide(index)
    for _ in range(steps):
        ids = allowed(guide)
        assert ids, guide
        assert ids == ids_of_bits(reference_mask(guide)), guide
        assert ids == [token for token in range(index.vocabulary.size) if guide.fork().advance(token)], guide
        ids = [token for token in ids if index.vocabulary.token(token)]
        if not ids:
            break
        assert guide.advance(rng.choice(ids))
