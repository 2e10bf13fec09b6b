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
    """Tokens inside a definition, as they are checked; the last is an EOS id, or the ``max_tokens``-th.

    ``"optimistic"`` chooses among all tokens, and has the definition look at them: what comes out is what masks at
    each step give for the same seed, token for token; see `structgen.integrations.local.decoding`. There is one
    distribution, that of the temperature: other samplers of llama.cpp are for its own loop, with a `LogitsProcessor`.

    Parameters
    ----------
    llama:
        A ``llama_cpp.Llama``. What it has read of the same prompt before is not read again.
    prompt:
        A text, which becomes ids as llama.cpp does it, special tokens included; or ids.
    index:
        The definition, compiled for the model's vocabulary.
    max_tokens:
        Tokens at most.
    temperature, seed:
        0 takes the likeliest token. Without a seed the random numbers are others each time.
    ahead:
        Tokens between two checks at most. At the first that is not allowed the key-value cache is cut to the longest
        valid prefix. Looking at a token costs microseconds, one behind a mistake a pass of the model.

    Raises
    ------
    VocabularyMismatchError
        Where the index was compiled for tokens other than this model's.
    ArgumentError
        For an empty prompt, and for numbers that mean nothing.
    UnsupportedError
        For a version of llama-cpp-python that lacks what is relied on.
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
