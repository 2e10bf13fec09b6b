"""Stand-ins for classes of llama-cpp-python, with random scores for a model."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np

from fakes.fakes import byte_vocabulary
from structgen.integrations.llama_cpp import tokens

WIDTH = 300
VOCABULARY = byte_vocabulary()


class Sampler:
    """Stands for ``llama_cpp._internals.LlamaSampler``."""


class FakeLlama:
    """``Llama.generate`` and ``Llama.sample``, whose model draws at random."""

    def __init__(self, seed: int, draft: int = 0) -> None:
        self._random = random.Random(seed)
        self._draft = draft
        self._sampler: Sampler | None = None
        self._width = WIDTH
        tokens._vocabularies[self] = VOCABULARY

    def sample(self, ids: list[int], processor: Any) -> int:
        """Ids with their draft; the callback's exceptions are dropped, as ctypes drops them."""
        temporary = self._sampler is None
        self._sampler = self._sampler or Sampler()
        scores = np.array([self._random.gauss(0, 1) for _ in range(self._width)], np.single)
        with contextlib.suppress(Exception):
            scores[:] = processor(np.array(ids, np.intc), scores)
        if temporary:
            self._sampler = None
        return int(scores.argmax())

    def generate(self, prompt: list[int], processor: Any, tokens: int = 40) -> list[int]:
        self._sampler = Sampler()
        known = list(prompt)
        found: list[int] = []
        drafted: list[int] = []
        while True:
            place = len(known)
            known += drafted
            while place <= len(known):  # one sample for the last id, and one for each drafted one
                token = self.sample(known, processor)
                place += 1
                if token in VOCABULARY.eos_ids or len(found) == tokens:
                    return found
                found.append(token)
                if place <= len(known) and known[place - 1] != token:
                    break
            known = [*known[: place - 1], token]
            drafted = [self._random.choice([48, 49, 50, 46, 59, 97, 98]) for _ in range(self._draft)]


    def __reduce__(self) -> Any:  # as a Llama, which goes to other processes as the path of its model
        return type(self), (0, self._draft)
