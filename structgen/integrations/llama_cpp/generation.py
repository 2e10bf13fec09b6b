"""`generate`: a decoding loop for ``Llama``, with masks at each step, or optimistic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from ...errors import ArgumentError
from ...runtime.guide.guide import Guide
from ...system.arguments import integer
from ...system.types import Foreign
from ..checks import index_of_model
from ..local.decoding import Chooser, masked, optimistic
from .reader import LlamaReader
from .tokens import vocabulary

if TYPE_CHECKING:
    from ...runtime.index.index import Index


def generate(
    llama: Foreign,
    prompt: str | Sequence[int],
    index: Index,
    *,
    mode: Literal["masked", "optimistic"] = "optimistic",
    max_tokens: int = 256,
    temperature: float = 0.0,
    seed: int | None = None,
    ahead: int = 1,
) -> Iterator[int]:
    """Generate the tokens of a text inside a definition. The last is an EOS id, or number ``max_tokens``.

    ``"optimistic"`` samples from all tokens and checks them afterwards. The result equals masking at each step with
    the same seed, token for token. The distribution is that of the temperature; for llama.cpp's other samplers, use
    its own loop with a `LogitsProcessor`.

    Parameters
    ----------
    llama:
        A ``llama_cpp.Llama``. The part of the prompt that it has already read is not read again.
    prompt:
        A text, tokenized by llama.cpp with special tokens; or ids.
    index:
        The definition, compiled for the model's vocabulary.
    mode:
        ``"optimistic"``, or ``"masked"``, which masks the scores at each step.
    max_tokens:
        The most tokens.
    temperature, seed:
        0 takes the likeliest token. Without a seed, the random numbers differ each time.
    ahead:
        The most tokens between two checks. At the first token that is not allowed, the key-value cache is cut to
        the longest valid prefix.

    Raises
    ------
    VocabularyMismatchError
        For an index compiled for other tokens than this model's.
    ArgumentError
        For an empty prompt, and for numbers out of range.
    UnsupportedError
        For an unsupported version of llama-cpp-python.
    """
    remedy = "Compile the index with structgen.integrations.llama_cpp.vocabulary(llama)."
    index = index_of_model(index, vocabulary(llama), remedy=remedy)
    ids = llama.tokenize(prompt.encode(), special=True) if isinstance(prompt, str) else list(prompt)
    if not ids:
        raise ArgumentError("the prompt is empty", remedy="Begin with the model's BOS id.")
    most = integer(max_tokens, "max_tokens", ArgumentError, least=0)
    ahead = integer(ahead, "ahead", ArgumentError, least=1)
    reader, guide, chooser = LlamaReader(llama), Guide(index, max_rollback=0), Chooser(temperature, seed)
    if mode == "masked":
        return masked(reader, ids, guide, chooser, most=most)
    if mode == "optimistic":
        return optimistic(reader, ids, guide, chooser, most=most, ahead=ahead)
    raise ArgumentError(f"there is no mode {mode!r}", remedy="Use 'masked' or 'optimistic'.")
