"""The parts of SGLang 0.5.23 that structgen touches, for where SGLang is not installed.

`traverse_tree` is what its speculative decoding does with a grammar, in its order of calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
        self.cache: dict[tuple[str, str], Any] = {}

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        self.cache[key] = value


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
    "sglang.srt.server_args": {
        "GRAMMAR_BACKEND_CHOICES": GRAMMAR_BACKEND_CHOICES,
        "add_grammar_backend_choices": GRAMMAR_BACKEND_CHOICES.extend,
    },
}
