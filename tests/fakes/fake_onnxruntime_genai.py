"""A stand-in for `onnxruntime_genai.Generator`, with random logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from fakes.fakes import EOS, PAD

WIDTH, LONGEST = 300, 40


class FakeGenerator:
    """Random logits, and the bookkeeping of a batch."""

    def __init__(self, prompts: list[list[int]], seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)
        self._rows = [list(prompt) for prompt in prompts]
        self._ended = [False] * len(prompts)
        self._logits: Any = None

    def token_count(self) -> int:
        return len(self._rows[0])

    def get_sequence(self, row: int) -> Any:
        assert row < len(self._rows), "reads foreign memory"
        return np.array(self._rows[row], np.int32)

    def is_done(self) -> bool:
        return all(self._ended) or self.token_count() >= LONGEST

    def get_logits(self) -> Any:
        if self._logits is None:
            self._logits = self._random.standard_normal((len(self._rows), 1, WIDTH)).astype(np.float32)
        return self._logits.copy()

    def set_logits(self, logits: Any) -> None:
        assert logits.shape == (len(self._rows), 1, WIDTH)
        self._logits = logits

    def generate_next_token(self) -> None:
        best = self._logits[:, 0].argmax(axis=1).tolist()
        chosen = [PAD if ended else token for ended, token in zip(self._ended, best, strict=True)]
        self._ended = [ended or token == EOS for ended, token in zip(self._ended, chosen, strict=True)]
        self._logits = None
        if not all(self._ended):
            for row, token in zip(self._rows, chosen, strict=True):
                row.append(token)

    def append_tokens(self, tokens: Any) -> None:
        assert len(self._rows) == 1
        self._rows[0] += [int(token) for token in tokens]
        self._logits, self._ended = None, [False]

    def rewind_to(self, length: int) -> None:
        if len(self._rows) > 1:
            raise RuntimeError("RewindToLength must be called with new_length=0 when batch_size > 1")
        del self._rows[0][length:]
        self._ended = [False]
        self._logits = np.full((1, 1, WIDTH), np.nan, np.float32)  # of another place, until tokens are appended
