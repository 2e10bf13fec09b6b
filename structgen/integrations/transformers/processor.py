"""`LogitsProcessor`: a definition for each row of transformers' ``generate()``.

A row's mask depends on the tokens after the prompt in that row, and on nothing else: beams may swap rows,
assisted decoding may go back, and a call may be repeated. To find a row's guide without reading all of its
tokens again, the processor keeps the ids and guides of the last call:

- the rows of the last call with one token more (every step of greedy search and sampling): one comparison of
  the ids where they are, and one `Guide.advance` for each row;
- otherwise (beams, drafts), each row takes up from the remembered row with which it shares the longest
  prefix (`structgen.runtime.guide.tracker.Rows`). A few vectorised comparisons for each row.

Nothing here imports transformers: ``generate()`` only calls its processors.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

import torch

from ...errors import BitmaskError
from ...runtime.guide.tracker import Ids, Rows, Text
from ...runtime.logits.masks import apply_masks, masked_copy, revive, temper
from ...system.arguments import checked_temperature, describe
from ...system.types import Array
from ..checks import tell_of_precedence
from ..engine_names import check_engine
from ..refusals import RefusedTokenError
from .loops import LOOPS, Loop, calling_loop

if TYPE_CHECKING:
    from ...runtime.index.index import Index

__all__ = ["LogitsProcessor"]

F = TypeVar("F", bound=Callable[..., object])


def _signed(method: F) -> F:
    """Keep a method's signature with it: transformers asks each processor for its own at every step."""
    vars(method)["__signature__"] = inspect.signature(method)
    return method


class LogitsProcessor:
    """A logits processor for ``generate(logits_processor=[...])``, with one definition or one for each prompt.

    Scores of disallowed tokens become ``-inf`` in a copy. A row that has ended allows the EOS ids only, so no row
    is ever all ``-inf``.

    **Where the generated text begins.** The first call sees the prompt, with left padding. A later call belongs to
    the same generation if it has as many rows and each row is the same prompt, a text known from the last call (or
    the beginning of one), and at most one more token. Any other call begins a new generation whose ids are the
    prompt. So one processor serves one ``generate()`` after another. A new prompt that equals the old one plus the
    beginning of its answer, or plus a single token, cannot be told apart: call `reset` before it, or pass
    ``prompt_length``.

    Use one processor for one ``generate()`` at a time.

    Parameters
    ----------
    indexes:
        One index for all rows, or a sequence with one for each prompt of the batch; None leaves a prompt
        unconstrained. With ``num_beams`` or ``num_return_sequences``, row ``r`` of the scores belongs to prompt ``r
        // (rows // len(indexes))``. All indexes belong to one vocabulary.
    prompt_length:
        The number of leading ids of every row, padding included, that are not part of the text. None: found from
        the ids, as above.
    strict:
        The reaction to a token that was not allowed. None: end its row where transformers itself drops the row or
        the token (a beam while another beam is valid, an unaccepted draft token), and raise `TokenIdError`
        elsewhere. True: always raise. False: always end the row, as an EOS id does; its text is outside the
        definition.
    max_tokens:
        The most tokens of each text, as in `structgen.Guide`. Set it to ``max_new_tokens`` of ``generate()``, and
        no text is cut off.
    temperature:
        The temperature of ``generate()``. Where a grammar's rule has one, ``name[temperature=0.7]: ...``, scores
        are changed so that sampling uses the rule's.

    Raises
    ------
    TokenBudgetError
        For ``max_tokens`` that is too small for any text of a definition.
    VocabularyMismatchError
        For indexes of different vocabularies.
    VocabularyError
        For a vocabulary without EOS ids: no text could end.
    UnsupportedError
        For an unsupported version of transformers.
    """

    #: Read by transformers: its continuous batching flattens the rows, which could not be told apart here.
    supports_continuous_batching = False

    def __init__(
        self,
        indexes: Index | Sequence[Index | None],
        *,
        prompt_length: int | None = None,
        strict: bool | None = None,
        max_tokens: int | None = None,
        temperature: float = 1.0,
    ) -> None:
        if LOOPS in sys.modules:
            check_engine("transformers.processor")
        indexes = tuple(indexes) if isinstance(indexes, Sequence) else (indexes,)
        self._rows = _TensorRows(
            indexes, prompt_length=prompt_length, strict=bool(strict), max_tokens=max_tokens, refuse=RefusedTokenError
        )
        self._strict = strict
        self._temperature = checked_temperature(temperature)

    def reset(self) -> None:
        """Forget the generation in progress. The next call begins a new one."""
        self._rows.reset()

    @_signed
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores of each row's next token.

        Parameters
        ----------
        input_ids:
            ``int64[rows, length]``: prompt and generated tokens.
        scores:
            ``[rows, width]``, float32, float16 or bfloat16; ``width`` may exceed the vocabulary's size.

        Returns
        -------
        torch.Tensor
            A new tensor of the same shape and dtype; ``scores`` itself where no row has an index, and for the
            drafts of an assistant with another tokenizer.

        Raises
        ------
        BitmaskError
            For ids or scores of the wrong shape or dtype, a number of rows that is no multiple of the number
            of indexes, ids shorter than ``prompt_length``, or scores narrower than the vocabulary.
        TokenIdError
            For a token that was not allowed, see ``strict``; names the row and the token.
        """
        loop = calling_loop()
        if loop.foreign:
            return scores  # whatever they come to, the draft is checked in this model's own tokens
        rows = len(input_ids)
        if scores.ndim != 2 or len(scores) != rows:
            raise BitmaskError(f"scores are [{rows}, width] for {rows} rows of input_ids, got {describe(scores)}")
        # Few calls of torch: after a model's pass nothing of this is in the caches any more.
        texts = self._rows.follow(input_ids.numpy() if input_ids.device.type == "cpu" else input_ids)
        outside = {row: n for row, text in enumerate(texts) if (n := text.outside())}
        if outside and self._strict is None:
            self._check_refused(outside, input_ids, loop)
        return _masked(scores, texts, outside, self._temperature)

    def _check_refused(self, outside: dict[int, int], input_ids: torch.Tensor, loop: Loop) -> None:
        """Raise `TokenIdError` for a token that was not allowed and that the loop does not drop.

        ``outside`` has for each row with such a token how many tokens ago that was.
        """
        for row, count in outside.items():
            position = input_ids.shape[1] - count
            if not loop.drops(row, position, set(outside)):
                text = self._rows.texts[row]
                self._rows.reset()
                raise self._rows.refusal(text, int(input_ids[row, position]), row, position)


class _TensorRows(Rows):
    """Over tensors, and arrays in place of those on the CPU.

    A plain step compares tensors on their device, and copies one column to the host.
    """

    @staticmethod
    def _are_equal(ids: Ids, known: Ids) -> bool:
        if not isinstance(ids, torch.Tensor) or not isinstance(known, torch.Tensor):
            return type(ids) is type(known) and Rows._are_equal(ids, known)
        return ids.device == known.device and torch.equal(ids, known)

    @staticmethod
    def _on_host(ids: Ids) -> Array:
        host: Array = ids.cpu().numpy() if isinstance(ids, torch.Tensor) else ids
        return host

    @staticmethod
    def _copied(ids: Ids) -> Ids:
        return ids.clone() if isinstance(ids, torch.Tensor) else ids.copy()


def _masked(scores: torch.Tensor, texts: list[Text], outside: Collection[int], temperature: float) -> torch.Tensor:
    masks = {row: mask for row, text in enumerate(texts) if (mask := text.bitmask()) is not None}
    if not masks:
        return scores
    # A copy, as transformers' own processors make: callers go on using the scores that they passed in.
    if len(masks) == len(texts) and scores.device.type == "cpu":
        masked = masked_copy(scores, list(masks.values()))
    else:
        masked = scores.clone()
        apply_masks(masked, masks)
    if revive(masked, masks):
        tell_of_precedence()
    for row in masks:
        if (wanted := texts[row].temperature) is not None:
            temper(masked[row], wanted, temperature)
    for row in outside:
        # Whatever brought the beam here, it shall lose; -inf would become NaN where scores are normalised.
        masked[row].clamp_(max=torch.finfo(masked.dtype).min)
    return masked
