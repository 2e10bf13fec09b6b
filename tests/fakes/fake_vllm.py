"""The parts of vLLM 0.32 that structgen touches, for where vLLM is not installed.

Classes and signatures are those of its modules of the same names; bodies are left out.
"""

from __future__ import annotations

import enum
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class MoveDirectionality(enum.Enum):
    UNIDIRECTIONAL = enum.auto()
    SWAP = enum.auto()


@dataclass(frozen=True)
class BatchUpdate:
    batch_size: int
    removed: Sequence[int]
    added: Sequence[tuple[int, Any, list[int] | None, list[int]]]
    moved: Sequence[tuple[int, int, MoveDirectionality]]


class RowProcessor(ABC):
    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        return None

    @abstractmethod
    def __init__(self, vllm_config: Any, device: Any, is_pin_memory: bool) -> None: ...

    @abstractmethod
    def apply(self, logits: Any) -> Any: ...

    @abstractmethod
    def is_argmax_invariant(self) -> bool: ...

    @abstractmethod
    def update_state(self, batch_update: BatchUpdate | None) -> None: ...


class SlotProcessor(ABC):
    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        return None

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        return None

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        return True

    def apply_staged_writes(self) -> None:
        return None

    @abstractmethod
    def apply(self, logits: Any, ctx: Any) -> Any: ...


class StructuredOutputOptions(enum.Enum):
    JSON = enum.auto()
    JSON_OBJECT = enum.auto()
    REGEX = enum.auto()
    GRAMMAR = enum.auto()
    CHOICE = enum.auto()
    STRUCTURAL_TAG = enum.auto()


class StructuredOutputGrammar(ABC):
    @abstractmethod
    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool: ...

    @abstractmethod
    def validate_tokens(self, tokens: list[int]) -> list[int]: ...

    @abstractmethod
    def rollback(self, num_tokens: int) -> None: ...

    @abstractmethod
    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None: ...

    @abstractmethod
    def is_terminated(self) -> bool: ...

    @abstractmethod
    def reset(self) -> None: ...


@dataclass
class StructuredOutputBackend(ABC):
    vllm_config: Any
    tokenizer: Any
    vocab_size: int

    @abstractmethod
    def compile_grammar(self, request_type: Any, grammar_spec: str, stop_token_ids: Any = None) -> Any: ...

    @abstractmethod
    def allocate_token_bitmask(self, max_num_seqs: int) -> Any: ...

    @abstractmethod
    def destroy(self) -> None: ...


class StructuredOutputManager:
    """What vLLM's does with one request whose reasoning it skips: where masks are, and which tokens the grammar has.

    The reasoning ends behind the first ``end``. Before it rows allow everything, and the grammar gets no token.
    """

    def __init__(self, backend: Any, grammar: Any, end: list[int]) -> None:
        self.grammar, self.end = grammar, end
        self.bitmask = backend.allocate_token_bitmask(8)
        self.tokens: list[int] = []
        self.reasoning_ended = not end

    def _start(self, drafts: list[int]) -> int:
        """From which of some tokens on the grammar has them; beyond them while the reasoning goes on."""
        if self.reasoning_ended:
            return 0
        for count in range(1, len(drafts) + 1):
            if (self.tokens + drafts[:count])[-len(self.end) :] == self.end:
                return count
        return len(drafts) + 1

    def grammar_bitmask(self, drafts: list[int]) -> Any:
        """``int32[1 + len(drafts), words]``"""
        start, advanced = self._start(drafts), 0
        for row in range(len(drafts) + 1):
            if row >= start and not self.grammar.is_terminated():
                self.grammar.fill_bitmask(self.bitmask, row)
            else:
                self.bitmask[row].fill_(-1)
            if start <= row < len(drafts) and not self.grammar.is_terminated():
                assert self.grammar.accept_tokens("r", [drafts[row]])
                advanced += 1
        if advanced:
            self.grammar.rollback(advanced)
        return self.bitmask[: len(drafts) + 1]

    def validate_tokens(self, drafts: list[int]) -> list[int]:
        start = self._start(drafts)
        return drafts[:start] + (self.grammar.validate_tokens(drafts[start:]) if start < len(drafts) else [])

    def accept_tokens(self, tokens: list[int]) -> bool:
        start = self._start(tokens)
        self.tokens += tokens
        if start > len(tokens):
            return True
        self.reasoning_ended = True
        return bool(self.grammar.accept_tokens("r", tokens[start:]))


class VLLMValidationError(Exception):
    pass


def get_structured_output_key(params: Any) -> tuple[StructuredOutputOptions, str]:
    if params.regex is not None:
        return StructuredOutputOptions.REGEX, params.regex
    if params.structural_tag is not None:
        return StructuredOutputOptions.STRUCTURAL_TAG, params.structural_tag
    return StructuredOutputOptions.JSON, params.json if isinstance(params.json, str) else json.dumps(params.json)


def grammar_is_likely_lark(text: str) -> bool:
    return "::=" not in text


class XgrammarBackend:
    pass


def validate_xgrammar_grammar(sampling_params: Any) -> None:
    return None


MODULES: dict[str, dict[str, Any]] = {
    "vllm": {},
    "vllm.exceptions": {"VLLMValidationError": VLLMValidationError},
    "vllm.v1": {},
    "vllm.v1.sample": {},
    "vllm.v1.sample.logits_processor": {},
    "vllm.v1.sample.logits_processor.interface": {
        "BatchUpdate": BatchUpdate,
        "LogitsProcessor": RowProcessor,
        "MoveDirectionality": MoveDirectionality,
    },
    "vllm.v1.worker": {},
    "vllm.v1.worker.gpu": {},
    "vllm.v1.worker.gpu.sample": {},
    "vllm.v1.worker.gpu.sample.logits_processor": {},
    "vllm.v1.worker.gpu.sample.logits_processor.interface": {"LogitsProcessor": SlotProcessor},
    "vllm.v1.structured_output": {"XgrammarBackend": XgrammarBackend},
    "vllm.v1.structured_output.backend_types": {
        "StructuredOutputBackend": StructuredOutputBackend,
        "StructuredOutputGrammar": StructuredOutputGrammar,
        "StructuredOutputOptions": StructuredOutputOptions,
    },
    "vllm.v1.structured_output.backend_xgrammar": {"validate_xgrammar_grammar": validate_xgrammar_grammar},
    "vllm.v1.structured_output.request": {"get_structured_output_key": get_structured_output_key},
    "vllm.v1.structured_output.utils": {"grammar_is_likely_lark": grammar_is_likely_lark},
}
