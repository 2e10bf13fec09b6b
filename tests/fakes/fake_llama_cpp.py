"""Stand-ins for classes of llama-cpp-python, with random scores for a model."""

from __future__ import annotations

import contextlib
import ctypes
import random
from typing import Any

import numpy as np

from fakes.fakes import byte_vocabulary
from structgen.integrations.llama_cpp import tokens

WIDTH = 300
VOCABULARY = byte_vocabulary()


class Sampler:
    """Stands for ``llama_cpp._internals.LlamaSampler``."""


class Context:
    """``llama_cpp._internals.LlamaContext``: scores that depend on the ids in the cache, each at its place."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.ids: list[int] = []
        self.can_cut = True
        #: Ids that were read.
        self.read = 0

    def kv_cache_seq_rm(self, _: int, begin: int, __: int) -> bool:
        if self.can_cut or begin in (0, len(self.ids)):
            del self.ids[begin:]
            return True
        return False

    def get_logits_ith(self, _: int) -> Any:
        self._scores = np.random.default_rng([self._seed, *self.ids]).standard_normal(WIDTH).astype(np.single)
        return self._scores.ctypes.data_as(ctypes.POINTER(ctypes.c_float))


class FakeLlama:
    """``Llama.generate`` and ``Llama.sample``, whose model draws at random; ``Llama.eval`` over a `Context`."""

    def __init__(self, seed: int, draft: int = 0) -> None:
        self._random = random.Random(seed)
        self._draft = draft
        self._sampler: Sampler | None = None
        self._width = WIDTH
        tokens._vocabularies[self] = VOCABULARY
        self._ctx = Context(seed)
        self.n_tokens = 0
        self.input_ids = np.zeros(512, np.intc)

    def n_ctx(self) -> int:
        return len(self.input_ids)

    def n_vocab(self) -> int:
        return WIDTH

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        return list(text)

    def reset(self) -> None:
        self.n_tokens = 0

    def eval(self, ids: list[int]) -> None:
        if not self._ctx.kv_cache_seq_rm(-1, self.n_tokens, -1):
            self._ctx.ids[self.n_tokens :] = [-1] * (len(self._ctx.ids) - self.n_tokens)  # in disorder
        self._ctx.ids += ids
        self._ctx.read += len(ids)
        self.input_ids[self.n_tokens : self.n_tokens + len(ids)] = ids
        self.n_tokens += len(ids)

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
