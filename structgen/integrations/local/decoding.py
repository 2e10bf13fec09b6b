"""Decoding inside a definition over a `Reader`: with a mask at each step, or optimistically.

*Optimistic* (Wang et al. 2023, "Grammar Prompting", Section 3.2): tokens are chosen without masks, some ahead, and
checked together. At the first that is not allowed the text goes back to the longest valid prefix, and one step is
taken with the mask, from the scores that are there. The result is that of masks at each step, token for token: a
token is the largest of ``score / temperature + g`` with ``g`` drawn from a Gumbel distribution for each place and
token (the Gumbel-max trick: Gumbel 1954; Maddison, Tarlow and Minka 2014), and the largest of all, where it is
allowed, is the largest of those that are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import ArgumentError
from ...runtime.guide.guide import Guide
from ...runtime.logits.masks import apply_bitmask
from ...system.arguments import TEMPERATURES, is_temperature
from .pace import Pace
from .reader import Reader

#: How a tokenizer splits a text, without special tokens.
Encode = Callable[[str], Sequence[int]]


class Chooser:
    """Chooses tokens by their scores; the same one at the same place for the same seed.

    Parameters
    ----------
    temperature:
        Scores are divided by it before a token is drawn; 0 takes the largest.
    seed:
        Of the random numbers; None for one that nobody knows.

    Raises
    ------
    ArgumentError
        For a temperature that scores can't be divided by, and a seed that is no integer or negative.
    """

    def __init__(self, temperature: float = 0.0, seed: int | None = None) -> None:
        if not (isinstance(temperature, int | float) and is_temperature(temperature)):
            raise ArgumentError(f"temperature is {TEMPERATURES}, got {temperature!r}")
        if seed is not None and (not isinstance(seed, int) or seed < 0):
            raise ArgumentError(f"seed is an integer that is not negative, got {seed!r}")
        self._temperature = temperature
        self._seed = np.random.SeedSequence().generate_state(1)[0] if seed is None else seed

    def choose(self, scores: NDArray[np.float32], place: int, temperature: float | None = None) -> int:
        """The id that scores, ``float32[width]``, lead to as the ``place``-th of a text.

        A ``temperature`` stands in for the chooser's own: that of a grammar's rule.
        """
        temperature = self._temperature if temperature is None else temperature
        if not temperature:
            return int(scores.argmax())
        numbers = np.random.default_rng([int(self._seed), place])
        gumbel = -np.log(numbers.standard_exponential(len(scores)))
        return int((scores / temperature + gumbel).argmax())


def masked(
    reader: Reader, ids: Sequence[int], guide: Guide, chooser: Chooser, *, most: int, encode: Encode | None = None
) -> Iterator[int]:
    """Tokens behind ``ids``, at most so many, with a mask at each step; the last may be an EOS id.

    With ``encode`` tokens that must follow are appended without asking the model.
    """
    ids = list(ids)
    end = len(ids) + most
    while len(ids) < end and not guide.is_finished():
        tokens = [] if encode is None else guide.forced_tokens(encode)[: end - len(ids)]
        for token in tokens or [_allowed(guide, chooser, reader.read(ids), len(ids))]:
            guide.advance(token)
            ids.append(token)
            yield token


def optimistic(
    reader: Reader, ids: Sequence[int], guide: Guide, chooser: Chooser, *, most: int, ahead: int = 1
) -> Iterator[int]:
    """The same, with masks only where a token that was chosen among all is not allowed.

    Parameters
    ----------
    ahead:
        Tokens between two checks at most: each behind a mistake is a pass of the model for nothing.
    """
    ids = list(ids)
    ends = guide.index.vocabulary.eos_ids
    end, pace = len(ids) + most, Pace(ahead)
    while len(ids) < end and not guide.is_finished():
        start = len(ids)
        found: list[NDArray[np.float32]] = []
        here = guide.fork() if pace.ahead > 1 else guide  # tells the temperature of the next one
        while not found or (len(found) < min(pace.ahead, end - start) and ids[-1] not in ends):
            found.append(reader.read(ids))
            if pace.is_masked():
                break
            ids.append(chooser.choose(found[-1], len(ids), here.temperature))
            if here is not guide:
                _followed(here, ids[-1:])
        allowed = _followed(guide, ids[start:])
        yield from ids[start : start + allowed]
        if allowed == len(found):
            pace.right(allowed)
            continue
        if len(ids) == start + len(found):
            pace.wrong(allowed)
        del ids[start + allowed :]
        ids.append(_allowed(guide, chooser, found[allowed], len(ids)))
        guide.advance(ids[-1])
        yield ids[-1]


def _followed(guide: Guide, tokens: Sequence[int]) -> int:
    """How many tokens the guide accepts."""
    size = guide.index.vocabulary.size
    for count, token in enumerate(tokens):
        if token >= size or not guide.advance(token):
            return count
    return len(tokens)


def _allowed(guide: Guide, chooser: Chooser, scores: NDArray[np.float32], place: int) -> int:
    """The token that scores lead to among those that are allowed."""
    apply_bitmask(scores, guide.bitmask())
    return chooser.choose(scores, place, guide.temperature)
