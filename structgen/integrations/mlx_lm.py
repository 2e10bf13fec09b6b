"""mlx-lm: a logits processor for ``generate(..., logits_processors=[...])``, and masks on MLX arrays.

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

from ..errors import BitmaskError
from ..runtime.guide.tracker import SequenceTracker
from ..runtime.logits.array_logits import LAST_RESORT
from ..runtime.rows.bitmask import BITS, check_width
from ..system.arguments import describe
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


def apply_bitmask(logits: Foreign, bitmask: Foreign) -> Foreign:
    """The logits, ``-inf`` where the bitmask has no bit. Nothing is evaluated.

    Parameters
    ----------
    logits:
        ``mlx.core.array``, ``[width]`` or ``[batch, width]``, float32, float16 or bfloat16. It may be wider than the
        bitmask, or than the vocabulary (padding): logits without a bit become ``-inf``.
    bitmask:
        ``mlx.core.array`` ``int32[words]``, for every row, or ``int32[batch, words]``.

    Returns
    -------
    mlx.core.array
        Of the logits' shape and dtype.

    Raises
    ------
    BitmaskError
        For logits or a bitmask of another dtype or shape, or more words than the logits need.
    """
    import mlx.core as mx

    if not isinstance(logits, mx.array) or logits.ndim not in (1, 2):
        raise BitmaskError(f"logits are an mlx [width] or [batch, width], got {describe(logits)}")
    if logits.dtype not in (mx.float32, mx.float16, mx.bfloat16):
        raise BitmaskError(f"logits are float32, float16 or bfloat16, got {describe(logits)}")
    if not isinstance(bitmask, mx.array) or bitmask.dtype != mx.int32 or bitmask.ndim not in (1, logits.ndim):
        raise BitmaskError(f"a bitmask is an mlx int32[words] or int32[batch, words], got {describe(bitmask)}")
    width = logits.shape[-1]
    check_width(bitmask.shape[-1], width)
    if bitmask.ndim == 2 and bitmask.shape[0] != logits.shape[0]:
        raise BitmaskError(f"{bitmask.shape[0]} rows of bitmask for {logits.shape[0]} rows of logits")
    return mx.where(unpack(bitmask, width), logits, mx.array(-np.inf, logits.dtype))


def unpack(bitmask: Foreign, width: int) -> Foreign:
    """``bool[..., width]``: the bits of ``int32[..., words]``; False behind the last one."""
    import mlx.core as mx

    # The shift of a signed word is arithmetic and drags the sign bit along; the & 1 makes that harmless.
    bits = ((bitmask[..., None] >> mx.arange(BITS, dtype=mx.int32)) & 1).astype(mx.bool_)
    bits = bits.reshape(*bitmask.shape[:-1], -1)[..., :width]
    missing = width - bits.shape[-1]
    return mx.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)]) if missing else bits
