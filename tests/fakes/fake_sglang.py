"""The parts of SGLang 0.5.23 that structgen touches, for where SGLang is not installed.

`traverse_tree` is what its speculative decoding does with a grammar, in its order of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch


@dataclass
class GrammarStats:
    dispatch_type: str | None = None
    is_cache_hit: bool = False


class GrammarRow(NamedTuple):
    row: int
    grammar: Any


class BaseGrammarObject:
    def __init__(self) -> None:
        self._finished = False
        self.grammar_stats: Any = None
        self.current_token: Any = None

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @property
    def finished(self) -> bool:
        return self._finished

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message: str = "Unknown grammar error") -> None:
        super().__init__()
        self.error_message = error_message


class BaseGrammarBackend:
    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor()
        self.cache: dict[tuple[str, str], Any] = {}

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        return getattr(self, f"dispatch_{key[0]}")(key[1])

    def get_cached_or_future_value(self, key: tuple[str, str], require_reasoning: bool) -> tuple[Any, bool]:
        return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        self.cache[key] = value


class ReasoningParser:
    def __init__(self, model_type: str, stream_reasoning: bool, tokenizer: Any) -> None:
        self.think_end_ids: list[int] = tokenizer.encode({"qwen3": "</think>"}[model_type])


class ReasonerGrammarObject(BaseGrammarObject):
    """Masks nothing, and hands on no token, before the ids that end the reasoning have come in a row."""

    def __init__(self, grammar: Any, think_end_ids: list[int], reasoning: bool) -> None:
        super().__init__()
        self.grammar, self.think_end_ids = grammar, think_end_ids
        self.tokens: list[int] = []
        self.start: int | None = None if reasoning else 0

    def accept_token(self, token: int) -> None:
        self.tokens.append(token)
        if self.start is not None:
            self.grammar.accept_token(token)
        elif self.tokens[-len(self.think_end_ids) :] == self.think_end_ids:
            self.start = len(self.tokens)

    def rollback(self, k: int) -> None:
        del self.tokens[len(self.tokens) - k :]
        if self.start is not None and self.start <= len(self.tokens) + k:
            self.grammar.rollback(min(k, len(self.tokens) + k - self.start))
            self.start = self.start if self.start <= len(self.tokens) else None

    def is_terminated(self) -> bool:
        return self.start is not None and self.grammar.is_terminated()

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        if self.start is not None:
            self.grammar.fill_vocab_mask(vocab_mask, idx)


class ReasonerGrammarBackend(BaseGrammarBackend):
    def __init__(
        self, grammar_backend: Any, reasoning_parser: ReasoningParser, tokenizer: Any, enable_strict_thinking: bool
    ) -> None:
        super().__init__()
        self.grammar_backend, self.parser = grammar_backend, reasoning_parser
        names = ["allocate_vocab_mask", "move_vocab_mask", "apply_vocab_mask"]
        if enable_strict_thinking:
            assert grammar_backend.is_support_token_filter
            names.append("set_token_filter")
        self.of_masks = [getattr(grammar_backend, name) for name in names]

    def _init_value_dispatch(self, key: tuple[str, str], require_reasoning: bool) -> Any:
        return self.begin(*key, require_reasoning)

    def begin(self, kind: str, text: str, reasoning: bool) -> Any:
        """What ``_init_value_dispatch`` makes of a request."""
        found = getattr(self.grammar_backend, f"dispatch_{kind}")(text)
        if isinstance(found, InvalidGrammarObject):
            return found
        return ReasonerGrammarObject(found, self.parser.think_end_ids, reasoning)


def set_token_filter_torch(
    vocab_mask: torch.Tensor, token_ids: list[int], batch_idx: int, is_allowed: bool = True
) -> None:
    raise NotImplementedError


#: What ``get_serving()`` returns: the server's arguments.
SERVING = SimpleNamespace(reasoning_parser=None, enable_strict_thinking=False)

GRAMMAR_BACKEND_REGISTRY: dict[str, Callable[..., Any]] = {}
GRAMMAR_BACKEND_CHOICES = ["xgrammar", "outlines", "llguidance", "none"]


def register_grammar_backend(name: str, init_func: Callable[..., Any]) -> None:
    GRAMMAR_BACKEND_REGISTRY[name] = init_func


def traverse_tree(
    children: list[int], siblings: list[int], drafts: list[int], grammar: Any, masks: torch.Tensor
) -> None:
    """Fill the mask of each node of a tree of drafts: accept, fill, go down, roll back, go on to the sibling."""

    def visit(node: int, parent: int) -> None:
        token = drafts[node]
        if node == 0 or (token < masks.shape[1] * 32 and int(masks[parent, token // 32]) >> token % 32 & 1):
            if node:
                grammar.accept_token(token)
            if not grammar.is_terminated():
                grammar.fill_vocab_mask(masks, node)
                if children[node] != -1:
                    visit(children[node], node)
            if node:
                grammar.rollback(1)
        if siblings[node] != -1:
            visit(siblings[node], parent)

    visit(0, -1)


MODULES: dict[str, dict[str, Any]] = {
    "sglang": {},
    "sglang.srt": {},
    "sglang.srt.constrained": {},
    "sglang.srt.constrained.base_grammar_backend": {
        "BaseGrammarBackend": BaseGrammarBackend,
        "BaseGrammarObject": BaseGrammarObject,
        "GRAMMAR_BACKEND_REGISTRY": GRAMMAR_BACKEND_REGISTRY,
        "GrammarRow": GrammarRow,
        "GrammarStats": GrammarStats,
        "InvalidGrammarObject": InvalidGrammarObject,
        "register_grammar_backend": register_grammar_backend,
    },
    "sglang.srt.constrained.reasoner_grammar_backend": {"ReasonerGrammarBackend": ReasonerGrammarBackend},
    "sglang.srt.constrained.torch_ops": {},
    "sglang.srt.constrained.torch_ops.token_filter_torch_ops": {"set_token_filter_torch": set_token_filter_torch},
    "sglang.srt.parser": {},
    "sglang.srt.parser.reasoning_parser": {"ReasoningParser": ReasoningParser},
    "sglang.srt.runtime_context": {"get_serving": lambda: SERVING},
    "sglang.srt.server_args": {
        "GRAMMAR_BACKEND_CHOICES": GRAMMAR_BACKEND_CHOICES,
        "add_grammar_backend_choices": GRAMMAR_BACKEND_CHOICES.extend,
    },
}
