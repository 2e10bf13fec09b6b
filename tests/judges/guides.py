"""What most tests begin with: vocabularies that have every byte, and what a mask allows, read bit by bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

import structgen as sg

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


def drawn(draw: Callable[[], Drawn], *useless: type[Exception]) -> Drawn:
    """What is drawn at random; once more where that raises an error that says that it is of no use."""
    for _ in range(100):
        with suppress(*useless):
            return draw()
    raise AssertionError("a hundred draws, none of them of use")


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
