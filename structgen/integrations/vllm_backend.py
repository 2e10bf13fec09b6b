"""vLLM: structgen as the backend of its own structured outputs.

For requests that say ``structured_outputs=StructuredOutputsParams(json=...)``, and all that vLLM's server makes of
``response_format`` and of tools. The masks are then filled by the scheduler, speculative decoding included, and
reasoning parsers work.

vLLM has no registry of backends, and its configuration allows the names of its own only. So `register` puts structgen
in the place of one: ``structured_outputs_config={"backend": "xgrammar"}`` then means this one. It has to be called in
each process of vLLM's; the entry point does that where ``STRUCTGEN_VLLM_BACKEND=1`` is set.

Written against vLLM 0.32.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from ..errors import StructgenError
from ..runtime.rows.bitmask import words_for
from ..system.types import Foreign
from .engine_names import check_engine
from .engines import door
from .matcher import Matcher
from .requests import check_definition, indexes_with, read_engine_request
from .settings import settings_for
from .vllm import settings_of, vocabulary_of

_log = logging.getLogger(__name__)


def register() -> None:
    """Replace vLLM's structured-output backend ``xgrammar`` by structgen, in this process. A second call changes
    nothing.

    It replaces two names: ``vllm.v1.structured_output.XgrammarBackend``, which the engine makes, and
    ``vllm.v1.structured_output.backend_xgrammar.validate_xgrammar_grammar``, which admits requests.
    """
    check_engine("vllm_backend")
    from vllm.v1 import structured_output
    from vllm.v1.structured_output import backend_xgrammar

    structured_output.XgrammarBackend = StructgenBackend
    backend_xgrammar.validate_xgrammar_grammar = validate


def validate(sampling_params: Foreign) -> None:
    """Raise ``VLLMValidationError`` for structured outputs that are not right."""
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.request import get_structured_output_key

    if sampling_params.structured_outputs is None:
        return
    _leave_to_definition(sampling_params)
    try:
        kind, text = get_structured_output_key(sampling_params.structured_outputs)
        settings = settings_for("vllm")
        check_definition(read_engine_request(kind.name, text, door("vllm", settings)), settings.budget)
    except StructgenError as error:
        raise VLLMValidationError(str(error)) from error


def _leave_to_definition(params: Foreign) -> None:
    """Take from a request what vLLM forbids after the masks, which may be all that a definition allows.

    Where its text ends, there is no token left then; and after the end vLLM masks nothing, up to ``min_tokens``.
    """
    for name, nothing in (("min_tokens", 0), ("bad_words", [])):
        if getattr(params, name, None):
            setattr(params, name, nothing)
            _tell(name)


@cache
def _tell(name: str) -> None:
    _log.warning("structgen: %s is left out of requests with structured outputs: the definition wins", name)


class StructgenBackend(StructuredOutputBackend):
    """Compiles what requests ask for. Made by vLLM, which calls `compile_grammar` from several threads."""

    def __init__(self, vllm_config: Foreign, tokenizer: Foreign, vocab_size: int) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        vocabulary = vocabulary_of(vllm_config.model_config, tokenizer)
        settings = settings_of(vllm_config)
        self._indexes = indexes_with(vocabulary, settings, door("vllm", settings))

    def compile_grammar(
        self, request_type: StructuredOutputOptions, grammar_spec: str, stop_token_ids: Iterable[int] | None = None
    ) -> StructgenGrammar:
        """The matcher of a request. What it raises fails this request alone."""
        definition = read_engine_request(request_type.name, grammar_spec, self._indexes.door)
        return StructgenGrammar(Matcher(self._indexes.of(definition), stop_ids=stop_token_ids or ()))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """``int32[max_num_seqs, words]`` that allows everything."""
        return torch.full((max_num_seqs, words_for(self.vocab_size)), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Nothing is held that has to be given back."""


class StructgenGrammar(StructuredOutputGrammar):
    """One request."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Append tokens, up to the one that ends the text. False at one that is not allowed; those before it stay."""
        for token in tokens:
            if self._matcher.is_terminated():
                break
            if not self._matcher.accept(token):
                _log.error("structgen: request %s: %s", request_id, self._matcher.refusal(token))
                return False
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """As many of the tokens as could be appended; none is."""
        return self._matcher.accepted_prefix(tokens)

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens."""
        self._matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask into a row."""
        self._matcher.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Whether a token that ends the text was accepted."""
        return self._matcher.is_terminated()

    def reset(self) -> None:
        """Go back to the beginning."""
        self._matcher.reset()
