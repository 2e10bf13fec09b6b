"""`TracedGuide`: a `Guide` that records its text."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from ..runtime.guide.guide import Guide
from ..runtime.index.index import Index
from ..system.types import Foreign
from .recorder import CANDIDATES, MAX_STEPS, Recorder
from .trace import Trace


class TracedGuide(Guide):
    """A `Guide` that records each token: the effect of the mask on the scores, and the time taken.

    Use it as a `Guide`. A token that is appended without asking for a mask counts as forced, as those of
    `forced_tokens` do. Forks and copies are plain guides, which record nothing.

    Parameters
    ----------
    index, max_rollback, max_tokens:
        As in `Guide`.
    max_steps:
        The most recorded tokens; of further ones only the number is kept.
    candidates:
        The number of likeliest tokens to keep for each step, without the mask and with it.
    """

    __slots__ = ("_recorder",)

    def __init__(
        self,
        index: Index,
        *,
        max_rollback: int | None = None,
        max_tokens: int | None = None,
        max_steps: int = MAX_STEPS,
        candidates: int = CANDIDATES,
    ) -> None:
        super().__init__(index, max_rollback=max_rollback, max_tokens=max_tokens)
        self._recorder = Recorder(index.vocabulary, index, max_steps=max_steps, candidates=candidates)

    def trace(self, *, prompt: str = "", unconstrained: Trace | None = None) -> Trace:
        """Return the record so far.

        Parameters
        ----------
        prompt:
            The prompt, for readers.
        unconstrained:
            A trace to be shown beside this one.
        """
        return self._recorder.trace(prompt, unconstrained)

    def see(self, scores: Foreign) -> None:
        """Record the model's scores of the next token, before any mask.

        Parameters
        ----------
        scores:
            ``float[width]``: logits or log-probabilities, an array or a tensor on any device. ``width`` may exceed
            the vocabulary's size.

        Raises
        ------
        BitmaskError
            For scores of another shape, or narrower than the vocabulary.
        """
        self._recorder.see(scores, super().bitmask())

    def bitmask(self) -> NDArray[np.int32]:
        """As of a `Guide`."""
        begun = time.perf_counter()
        row = super().bitmask()
        self._recorder.ask(time.perf_counter() - begun)
        return row

    def fill_bitmask(self, bitmask: object) -> None:
        """As of a `Guide`."""
        begun = time.perf_counter()
        super().fill_bitmask(bitmask)
        self._recorder.ask(time.perf_counter() - begun)

    def allows(self, token_id: int) -> bool:
        """As of a `Guide`."""
        begun = time.perf_counter()
        found = super().allows(token_id)
        self._recorder.ask(time.perf_counter() - begun)
        return found

    def advance(self, token_id: int) -> bool:
        """As of a `Guide`."""
        row = super().bitmask()
        if not super().advance(token_id):
            return False
        self._recorder.add(int(token_id), row)
        return True

    def refuse(self, token_id: int) -> None:
        """Record a token that was chosen without the mask and is not allowed. The guide stays where it is.

        `advance` records nothing for a token that it refuses, because the caller may only have tried.

        Parameters
        ----------
        token_id:
            The token.
        """
        self._recorder.refuse(int(token_id), super().bitmask())

    def rollback(self, n: int) -> None:
        """As of a `Guide`."""
        super().rollback(n)
        self._recorder.rollback(int(n))

    def reset(self) -> None:
        """As of a `Guide`; what was recorded is forgotten."""
        super().reset()
        self._recorder.reset()
