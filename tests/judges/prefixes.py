"""The judge of what follows growing prefixes: a guide that reads each text from its beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from unittest.mock import Mock

import pytest

import structgen as sg
from judges.guides import allowed


def counted_advances(patch: pytest.MonkeyPatch) -> Mock:
    """Count from now on how many tokens guides read: its ``call_count``."""
    counter, advance = Mock(), sg.Guide.advance

    def counted(guide: sg.Guide, token_id: int) -> bool:
        counter()
        return advance(guide, token_id)

    patch.setattr(sg.Guide, "advance", counted)
    return counter


def replayed(index: sg.Index, tokens: Sequence[int]) -> list[int]:
    """The ids allowed after some tokens; EOS after the end."""
    guide = sg.Guide(index)
    for token in tokens:
        if guide.is_finished():
            break
        assert guide.advance(token)
    return allowed(guide)


def check_prefixes(
    indexes: Sequence[sg.Index], follow: Callable[[list[list[int]]], list[list[int]]], rng: Random,
    eos: int, pad: int, beams: int = 3,
) -> None:  # fmt: skip
    """A random run of steps, beams that change places, repeats, and going back.

    ``follow`` gets the tokens of each row behind its prompt, ``beams`` rows for each index, and tells what it allows.
    """
    rows = range(len(indexes) * beams)
    texts: list[list[int]] = [[] for _ in rows]
    for _ in range(60):
        expected = [replayed(indexes[r // beams], texts[r]) for r in rows]
        assert follow(texts) == expected
        move = rng.choice(["step", "step", "beams", "beams", "repeat", "back"])
        if move == "repeat":
            continue
        if move == "back" and texts[0]:
            length = rng.randrange(len(texts[0]))
            texts = [text[:length] for text in texts]
            continue
        if move == "beams":
            texts = [texts[r // beams * beams + rng.randrange(beams)] for r in rows]
            expected = [replayed(indexes[r // beams], texts[r]) for r in rows]
        chosen = [pad if eos in t else rng.choice(e) for t, e in zip(texts, expected, strict=True)]
        texts = [[*text, token] for text, token in zip(texts, chosen, strict=True)]
