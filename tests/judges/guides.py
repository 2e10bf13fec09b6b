"""What most tests begin with: vocabularies that have every byte, and what a mask allows, read bit by bit."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

import structgen as sg

EACH_BYTE: list[bytes] = [bytes([byte]) for byte in range(256)]


def with_end(tokens: Iterable[bytes | None]) -> sg.Vocabulary:
    """Tokens, and an EOS id behind them."""
    tokens = list(tokens)
    return sg.Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])


#: The vocabulary whose token ids are bytes, and its EOS id.
BYTES, EOS = with_end(EACH_BYTE), 256


def ids_of_bits(row: np.ndarray[Any, Any]) -> list[int]:
    """The ids whose bit is set in a row of a bitmask, by other means than structgen's own."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()  # type: ignore[no-any-return]


def allowed(guide: sg.Guide) -> list[int]:
    """The ids that a guide's mask allows."""
    return ids_of_bits(guide.bitmask())


def check_walk(index: sg.Index, rng: random.Random, steps: int = 6) -> None:
    """Write a random text of at most ``steps`` tokens; after each, no mask is empty, and all three agree."""
    vocabulary, guide, written = index.vocabulary, sg.Guide(index), b""
    for _ in range(steps):
        ids = allowed(guide)
        assert ids, (index.definition, written)
        for token in range(vocabulary.size):
            data = vocabulary.token(token)
            assert guide.fork().advance(token) == (token in ids)
            if data:
                assert (index.match(written + data).consumed == len(written + data)) == (token in ids)
        ids = [token for token in ids if vocabulary.token(token)]
        if not ids:
            break
        token = rng.choice(ids)
        written += vocabulary.token(token) or b""
        assert guide.advance(token)
