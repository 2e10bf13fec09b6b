"""`LlamaDraft`: a model of llama.cpp that writes in the place of a mistake, for `structgen.correct`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...system.types import Foreign
from ..local.draft import MOST_TOKENS, LocalDraft
from .reader import LlamaReader
from .tokens import vocabulary


class LlamaDraft(LocalDraft):
    """A ``llama_cpp.Llama`` as the draft of `structgen.correct`. See `LocalDraft`.

    Parameters
    ----------
    llama:
        The model. Its key-value cache of the last text is kept.
    template:
        A function that renders a prompt for a chat model. Special tokens in its result count as such. None: the
        prompt itself.
    max_tokens:
        The most tokens of each continuation.
    """

    def __init__(
        self, llama: Foreign, *, template: Callable[[str], str] | None = None, max_tokens: int = MOST_TOKENS
    ) -> None:
        def encode(prompt: str, text: str) -> Sequence[int]:
            shown = prompt if template is None else template(prompt)
            ids: Sequence[int] = llama.tokenize((shown + text).encode(), special=template is not None)
            return ids

        super().__init__(LlamaReader(llama), vocabulary(llama), encode, max_tokens=max_tokens)
