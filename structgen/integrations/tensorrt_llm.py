"""TensorRT-LLM: structgen as the grammar matcher of its guided decoding (the PyTorch backend).

TensorRT-LLM has no registry of matchers. `register`, called where the executor runs before it is made, puts
`StructgenMatcherFactory` in the place of its factory for XGrammar, so that ``guided_decoding_backend="xgrammar"``
means structgen. A ``GuidedDecoder`` that exists already takes another factory at any time::

    decoder.grammar_matcher_factory = StructgenMatcherFactory(config, vocab_size_padded)

Guides of kind JSON, JSON_SCHEMA, REGEX, EBNF_GRAMMAR (XGrammar's or GBNF, or Lark's syntax where there is no ``::=``)
and STRUCTURAL_TAG are honoured. Settings come from the operator's file, or are a JSON object in
``STRUCTGEN_TENSORRT_LLM``; see `structgen.integrations.settings`.

Written against the sources of TensorRT-LLM 1.2, ``tensorrt_llm/_torch/pyexecutor/grammar_matcher.py``, which run on
NVIDIA GPUs only.
"""

from __future__ import annotations

import logging

import torch
from tensorrt_llm._torch.pyexecutor.grammar_matcher import GrammarMatcher, GrammarMatcherFactory

from ..errors import VocabularyError
from ..system.types import Foreign
from ..vocabulary.vocabulary import Vocabulary
from .engine_names import check_engine
from .engines import door
from .matcher import Matcher
from .requests import indexes_with, read_engine_request
from .settings import UNTOLD, settings_for, variable_of

_log = logging.getLogger(__name__)

#: The environment variable with the settings, a JSON object.
SETTINGS_VARIABLE = variable_of("tensorrt-llm")


def register() -> None:
    """Replace the backend ``guided_decoding_backend="xgrammar"`` by structgen, in this process.

    It replaces one name, ``XGrammarMatcherFactory``, where ``GuidedDecoder`` looks for it.
    """
    check_engine("tensorrt_llm")
    from tensorrt_llm._torch.pyexecutor import guided_decoder

    guided_decoder.XGrammarMatcherFactory = StructgenMatcherFactory


class StructgenMatcherFactory(GrammarMatcherFactory):
    """Makes a matcher for each request, from several threads.

    Parameters
    ----------
    guided_decoding_config:
        TensorRT-LLM's, of which ``tokenizer_str``, a ``tokenizer.json``, and ``stop_token_ids`` are read.
    vocab_size_padded:
        Width of the logits.
    max_num_draft_tokens:
        Of each step; so many tokens can be taken back, and the one before them.
    tokenizer:
        The tokenizer, which newer versions hand over; read where there is no ``tokenizer_str``.
    """

    def __init__(
        self,
        guided_decoding_config: Foreign,
        vocab_size_padded: int,
        max_num_draft_tokens: int = 0,
        tokenizer: Foreign = None,
    ) -> None:
        super().__init__()
        vocabulary = _vocabulary_of(guided_decoding_config, vocab_size_padded, tokenizer)
        settings = settings_for("tensorrt-llm", without=UNTOLD)
        self._indexes = indexes_with(vocabulary, settings, door("tensorrt-llm", settings))
        self._max_rollback = max_num_draft_tokens + 1

    def create(self, guided_decoding_params: Foreign) -> StructgenMatcher:
        """The matcher of a request. Raises `StructgenError` where there can be none, which fails that one request."""
        kind: str = guided_decoding_params.guide_type.name
        definition = read_engine_request(kind, guided_decoding_params.guide, self._indexes.door)
        matcher = Matcher(self._indexes.of(definition), max_rollback=self._max_rollback)
        return StructgenMatcher(matcher, has_drafts=self._max_rollback > 1)


class StructgenMatcher(GrammarMatcher):
    """One request.

    Parameters
    ----------
    matcher:
        The definition.
    has_drafts:
        Whether tokens are tried that may well not be allowed: then why one is not is only told for debugging.
    """

    def __init__(self, matcher: Matcher, *, has_drafts: bool = False) -> None:
        super().__init__()
        self._matcher = matcher
        self._level = logging.DEBUG if has_drafts else logging.ERROR

    def accept_token(self, token_id: int) -> bool:
        """Append a token. False, and nothing changes, where it is not allowed, or the text has ended.

        Why is logged: the engine fails the request with an error of its own.
        """
        accepted = self._matcher.accept(token_id)
        if not accepted and _log.isEnabledFor(self._level):
            _log.log(self._level, "structgen: %s", self._matcher.refusal(token_id))
        return accepted

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens."""
        self._matcher.rollback(num_tokens)

    def fill_next_token_bitmask(self, next_token_bitmask: torch.Tensor, index: int) -> None:
        """Write the mask into a row."""
        self._matcher.fill(next_token_bitmask, index)

    def is_terminated(self) -> bool:
        """Whether an EOS id was accepted."""
        return self._matcher.is_terminated()


def _vocabulary_of(config: Foreign, size: int, tokenizer: Foreign) -> Vocabulary:
    if config.tokenizer_str is not None:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(config.tokenizer_str)
    elif tokenizer is None:
        raise VocabularyError(
            "TensorRT-LLM hands over no tokenizer.json, only names of tokens, which do not tell their bytes",
            remedy="Use a fast tokenizer.",
        )
    else:
        tokenizer = getattr(tokenizer, "tokenizer", tokenizer)  # out of its own wrapper
    return Vocabulary.from_transformers(tokenizer, eos_ids=config.stop_token_ids or (), size=size)
