"""Models of transformers that write in the place of a mistake, for `structgen.correct`.

>>> draft = TransformersDraft(model, tokenizer)  # doctest: +SKIP
>>> structgen.correct(api, definition, "What is asked", draft=draft)  # doctest: +SKIP
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import UnsupportedError
from ...system.locks import Lock, Rank
from ...system.types import Foreign
from ...vocabulary.vocabulary import Vocabulary
from ..local.draft import MOST_TOKENS, LocalDraft
from ..local.reader import known
from . import caches


class TransformersDraft(LocalDraft):
    """A causal language model of transformers as the draft of `structgen.correct`. See `LocalDraft`.

    Parameters
    ----------
    model:
        An ``AutoModelForCausalLM``, on any device. Its key-value cache of the last text is kept.
    tokenizer:
        The model's tokenizer.
    vocabulary:
        The tokenizer's vocabulary, if it was read before.
    template:
        A function that renders a prompt for a chat model, such as ``lambda prompt:
        tokenizer.apply_chat_template([{"role": "user", "content": prompt}], tokenize=False,
        add_generation_prompt=True)``. None: the prompt itself, after the tokenizer's special tokens.
    max_tokens:
        The most tokens of each continuation.
    """

    def __init__(
        self, model: Foreign, tokenizer: Foreign, *, vocabulary: Vocabulary | None = None,
        template: Callable[[str], str] | None = None, max_tokens: int = MOST_TOKENS,
    ) -> None:  # fmt: skip
        def encode(prompt: str, text: str) -> Sequence[int]:
            shown = prompt if template is None else template(prompt)
            ids: Sequence[int] = tokenizer.encode(shown + text, add_special_tokens=template is None)
            return ids

        own = vocabulary or Vocabulary.from_transformers(tokenizer)
        super().__init__(CausalReader(model), own, encode, max_tokens=max_tokens)


class CausalReader:
    """A causal language model as a `structgen.integrations.local.reader.Reader`. Safe to use from several threads.

    A cache that can't go back is made anew instead.
    """

    def __init__(self, model: Foreign) -> None:
        self._model = model
        self.window: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        self._ids: list[int] = []
        self._cache: Foreign = None
        self._lock = Lock(Rank.LEAF)
        named = inspect.signature(model.forward).parameters
        self._options: dict[str, Foreign] = {"logits_to_keep": 1} if "logits_to_keep" in named else {}

    def read(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """The scores of the token behind some ids, ``float32[width]``."""
        with self._lock, torch.no_grad():
            count = self._go_back(ids)
            self._ids = []  # should the model raise, nothing is known to be there
            new = torch.tensor([list(ids[count:])], device=self._model.device)
            outputs = self._model(new, use_cache=True, **{caches.name(): self._cache}, **self._options)
            self._ids = list(ids)
            scores: NDArray[np.float32] = outputs.logits[0, -1].to("cpu", torch.float32).numpy()
            return scores

    def _go_back(self, ids: Sequence[int]) -> int:
        """Have the cache hold only what ids begin with. Returns how many of them that are."""
        count = known(self._ids, ids)
        if count == 0 or not self._take_back(len(self._ids) - count):
            self._cache = import_module("transformers").DynamicCache(config=self._model.config)
            self._can_go_back = self._is_prepared()
            return 0
        return count

    def _is_prepared(self) -> bool:
        try:
            caches.prepare(self._cache)
        except UnsupportedError:
            return False
        return True

    def _take_back(self, count: int) -> bool:
        """Whether so many ids could be taken back."""
        if count and not (self._can_go_back and caches.reaches(self._cache, count)):
            return False
        if count:
            caches.go_back(self._cache, count, caches.held(self._cache))
        return True
