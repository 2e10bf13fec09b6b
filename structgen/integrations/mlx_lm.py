"""mlx-lm: a logits processor for ``generate(..., logits_processors=[...])``.

Follows mlx-lm 0.32 and mlx 0.32. mlx-lm keeps the device busy by building, and starting, step ``t + 1`` before it
reads the token of step ``t``; what it hands to a processor are promises. A definition needs to know token ``t``
before it can mask step ``t + 1``, so one thing has to be waited for: *that token*. Not waited for is the model. The
processor starts the forward pass of step ``t + 1`` before it reads the token, which was started earlier and is done
first; the mask is then looked up on the host while the device computes the logits, and is applied to them
as one more promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..runtime.guide.tracker import SequenceTracker
from ..runtime.logits.masks import LAST_RESORT, apply_bitmask
from ..system.types import Foreign
from ..vocabulary.vocabulary import Vocabulary
from .refusals import RefusedTokenError

if TYPE_CHECKING:
    from ..runtime.index.index import Index


class LogitsProcessor:
    """A logits processor for mlx-lm.

    It works in ``generate``, ``stream_generate``, ``generate_step``, speculative decoding (``draft_model=``) and
    ``BatchGenerator``. It finds the beginning of a generation from the ids. Several sequences may take turns, but
    prompts of one batch that differ only by a token at the end need a processor each.

    Parameters
    ----------
    index:
        The definition, compiled for the model's vocabulary.
    prompt_length:
        The number of leading ids of a row that are not part of the text. None: found from the ids. Speculative
        decoding passes only the last token of the prompt.
    """

    def __init__(self, index: Index, *, prompt_length: int | None = None) -> None:
        self._tracker = SequenceTracker(index, prompt_length=prompt_length, refuse=RefusedTokenError)

    def reset(self) -> None:
        """Forget the generations in progress. The next call begins a new one."""
        self._tracker.reset()

    def __call__(self, tokens: Foreign, logits: Foreign) -> Foreign:
        """Mask the logits of the next token.

        Parameters
        ----------
        tokens:
            ``mlx.core.array`` of integers, ``[length]``: prompt and generated tokens. Waited for.
        logits:
            ``[width]`` or ``[1, width]``, float32, float16 or bfloat16; ``width`` may exceed the vocabulary's size.
            Started, not waited for.

        Returns
        -------
        mlx.core.array
            Of the same shape and dtype, not evaluated.

        Raises
        ------
        BitmaskError
            For tokens or logits of another shape or dtype, or logits narrower than the vocabulary.
        TokenIdError
            For a token that was not allowed.
        """
        import mlx.core as mx

        # The order matters: what is started first is done first, and does not wait for the model.
        mx.async_eval(tokens)
        mx.async_eval(logits)
        row = self._tracker.follow(np.asarray(tokens)).bitmask()
        assert row is not None, "only a row without an index has no mask"
        mask = mx.array(row)
        masked = apply_bitmask(logits, mask)
        # Where a processor before this one has forbidden all that is allowed, the definition wins.
        again = apply_bitmask(mx.full(logits.shape, LAST_RESORT, logits.dtype), mask)
        return mx.where(mx.max(masked, axis=-1, keepdims=True) == -np.inf, again, masked)


def vocabulary(tokenizer: Foreign, *, eos_ids: Iterable[int] | None = None) -> Vocabulary:
    """Return the vocabulary of a tokenizer that mlx-lm loaded.

    Parameters
    ----------
    tokenizer:
        mlx-lm's ``TokenizerWrapper``, or a tokenizer of transformers.
    eos_ids:
        The ids that end a text. Default: those at which mlx-lm ends one.

    Raises
    ------
    VocabularyError
        For a tokenizer whose bytes cannot be known exactly.
    """
    if eos_ids is None:
        eos_ids = getattr(tokenizer, "eos_token_ids", None)
    return Vocabulary.from_transformers(getattr(tokenizer, "_tokenizer", tokenizer), eos_ids=eos_ids)
