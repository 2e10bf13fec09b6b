"""The parts of TensorRT-LLM 1.2 that structgen touches, for where it is not installed.

`GuidedDecoder` makes the calls of the one in ``tensorrt_llm/_torch/pyexecutor/guided_decoder.py``, in its order: what
was sampled is accepted, a mask is filled, each draft is accepted and a mask filled, and what the model did not take
is rolled back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch


class GrammarMatcher(ABC):
    @abstractmethod
    def accept_token(self, token_id: int) -> bool: ...

    @abstractmethod
    def rollback(self, num_tokens: int) -> None: ...

    @abstractmethod
    def fill_next_token_bitmask(self, next_token_bitmask: torch.Tensor, index: int) -> None: ...

    @abstractmethod
    def is_terminated(self) -> bool: ...


class GrammarMatcherFactory(ABC):
    @abstractmethod
    def create(self, guided_decoding_params: Any) -> GrammarMatcher: ...


class XGrammarMatcherFactory(GrammarMatcherFactory):
    def create(self, guided_decoding_params: Any) -> GrammarMatcher:
        raise NotImplementedError


class GuidedDecoder:
    """Of one slot; ``bitmask`` is ``int32[max_num_draft_tokens + 1, words]``, and rows are used where ``guided``."""

    def __init__(self, factory: GrammarMatcherFactory, width: int, max_num_draft_tokens: int) -> None:
        self.grammar_matcher_factory = factory
        self.bitmask = torch.zeros(max_num_draft_tokens + 1, -(-width // 32), dtype=torch.int32)
        self.advanced = 0

    def begin(self, params: Any) -> int:
        self.matcher = self.grammar_matcher_factory.create(params)
        return self._fill([], 1)

    def step(self, new_token: int, drafts: list[int]) -> int:
        """How many rows are guided."""
        self.advanced = 0
        if self.matcher.is_terminated():
            return 0
        if not self.matcher.accept_token(new_token):
            raise ValueError(f"failed to accept last new token: {new_token}")
        return self._fill(drafts, 1)

    def _fill(self, drafts: list[int], advanced: int) -> int:
        guided = 0
        self.advanced = advanced
        if not self.matcher.is_terminated():
            self.matcher.fill_next_token_bitmask(self.bitmask, 0)
            guided = 1
            for i, token in enumerate(drafts, 1):
                if not self.matcher.accept_token(token):
                    break
                self.advanced += 1
                if self.matcher.is_terminated():
                    break
                self.matcher.fill_next_token_bitmask(self.bitmask, i)
                guided += 1
        return guided

    def rollback_rejected(self, num_accepted_drafts: int) -> None:
        if self.advanced > 0:
            self.matcher.rollback(self.advanced - (1 + num_accepted_drafts))


MODULES: dict[str, dict[str, Any]] = {
    "tensorrt_llm": {},
    "tensorrt_llm._torch": {},
    "tensorrt_llm._torch.pyexecutor": {},
    "tensorrt_llm._torch.pyexecutor.grammar_matcher": {
        "GrammarMatcher": GrammarMatcher,
        "GrammarMatcherFactory": GrammarMatcherFactory,
    },
    "tensorrt_llm._torch.pyexecutor.guided_decoder": {"XGrammarMatcherFactory": XGrammarMatcherFactory},
}
