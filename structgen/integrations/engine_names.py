"""Every name of an engine that is not part of its interface, and that structgen reads, calls or replaces.

They are looked up where an adapter becomes part of its engine, or is made for an object of it: a version that lacks
one is refused there, by name, and does not fail in the middle of a text.
"""

from __future__ import annotations

from functools import cache, reduce
from importlib import import_module

from ..errors import UnsupportedError
from ..system.types import Foreign

_BATCHING = "transformers.generation.continuous_batching."

#: By adapter: ``module:name``.
NAMES: dict[str, tuple[str, ...]] = {
    "outlines": ("outlines.backends:_get_backend",),
    "sglang": (
        "sglang.srt.server_args:GRAMMAR_BACKEND_CHOICES",
        "sglang.srt.constrained.reasoner_grammar_backend:ReasonerGrammarBackend",
        "sglang.srt.constrained.torch_ops.token_filter_torch_ops:set_token_filter_torch",
        "sglang.srt.parser.reasoning_parser:ReasoningParser",
        "sglang.srt.runtime_context:get_serving",
    ),
    "tensorrt_llm": (
        "tensorrt_llm._torch.pyexecutor.guided_decoder:XGrammarMatcherFactory",
        "tensorrt_llm._torch.pyexecutor.grammar_matcher:GrammarMatcher",
        "tensorrt_llm._torch.pyexecutor.grammar_matcher:GrammarMatcherFactory",
    ),
    "vllm_backend": (
        "vllm.v1.structured_output:XgrammarBackend",
        "vllm.v1.structured_output.backend_xgrammar:validate_xgrammar_grammar",
    ),
    "transformers.generate": tuple(
        f"transformers.generation.utils:GenerationMixin.{name}"
        for name in ("_sample", "_prefill", "_update_model_kwargs_for_generation", "_optimize_model_for_decode",
                     "_valid_auto_compile_criteria")
    ),
    "transformers.processor": tuple(
        f"transformers.generation.utils:GenerationMixin.{name}" for name in ("_beam_search", "_assisted_decoding")
    ),
    "transformers.batching": (
        f"{_BATCHING}cb_logits_processors:ContinuousBatchingLogitsProcessorList._retrieve_processors_kwargs",
        f"{_BATCHING}requests:RequestState._true_initial_tokens",
    ),
    "transformers.serve": (
        "transformers.cli.serving.response:ResponseHandler.handle_request",
        *(
            f"transformers.cli.serving.chat_completion:ChatCompletionHandler.{name}"
            for name in ("_unused_fields", "_validate_request", "_resolve_model", "_streaming", "_non_streaming",
                         "_build_generation_config", "_build_chunk_sse", "_build_completion")
        ),
    ),
}  # fmt: skip


#: By adapter: attributes of an engine's objects, which its classes do not show.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "llama_cpp": ("_sampler",),
    "llama_cpp.reader": ("_ctx", "eval", "input_ids", "n_ctx", "n_tokens", "n_vocab", "reset"),
    "transformers.generate": ("_pad_token_tensor",),
}

#: Names that are looked at where there are such, and that nothing is lost without.
OPTIONAL: dict[str, tuple[str, ...]] = {
    "mlx_lm": ("_tokenizer",),  # of its wrapper; a tokenizer of transformers is one itself
    "transformers.generate": ("_is_stateful", "_mask_length"),
}


@cache
def check_engine(adapter: str) -> None:
    """Raise `UnsupportedError` where the installed version of an engine lacks a name."""
    for each in NAMES[adapter]:
        module, _, path = each.partition(":")
        try:
            reduce(getattr, path.split("."), import_module(module))
        except (ImportError, AttributeError) as error:
            raise _lacking(module.partition(".")[0], path, module) from error


def check_attributes(adapter: str, value: Foreign) -> None:
    """Raise `UnsupportedError` where an engine's object lacks an attribute."""
    for name in ATTRIBUTES[adapter]:
        if not hasattr(value, name):
            module = type(value).__module__
            raise _lacking(module.partition(".")[0], f"{type(value).__name__}.{name}", module)


def _lacking(engine: str, name: str, module: str) -> UnsupportedError:
    return UnsupportedError(
        f"the installed version of {engine} has no {name}, which structgen relies on",
        where=module,
        remedy="Install a version that docs/guide/engines.md names, as structgen's extras do.",
    )
