"""onnxruntime-genai: its logits loop, with a mask before each token.

Follows onnxruntime-genai 0.18. Its ``Generator`` has no processors; a loop reads the logits, writes them back and
goes on. What it does not do by itself, and is done here:

- ``rewind_to`` leaves the logits of the place that it left, and reading them puts a token back. Rewinding by one
  token more and appending that one again makes them right.
- ``get_sequence`` of a row that is not there reads memory that is not its own, so the number of rows is that of the
  definitions, and is compared with the logits' before any is read.

Beam search cannot be masked: with ``num_beams`` above 1 the library crashes once logits were read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..errors import BitmaskError, RollbackError
from ..runtime.guide.tracker import Rows, Text
from ..runtime.logits.masks import apply_bitmask, revive_row
from ..system.arguments import describe
from ..system.types import Array
from .checks import tell_of_precedence
from .refusals import RefusedTokenError

if TYPE_CHECKING:
    from ..runtime.index.index import Index


class Generator(Protocol):
    """What is used of an ``onnxruntime_genai.Generator``."""

    # fmt: off
    def token_count(self) -> int: ...  # noqa: D102
    def is_done(self) -> bool: ...  # noqa: D102
    def get_logits(self) -> Array: ...  # noqa: D102
    def set_logits(self, logits: Array) -> None: ...  # noqa: D102
    def generate_next_token(self) -> None: ...  # noqa: D102
    def get_sequence(self, row: int) -> Array: ...  # noqa: D102
    def append_tokens(self, tokens: Array) -> None: ...  # noqa: D102
    def rewind_to(self, length: int) -> None: ...  # noqa: D102
    # fmt: on


class GuidedGenerator:
    """An ``onnxruntime_genai.Generator`` with a definition for each row of its batch.

    Make it after the prompt was appended: everything after it is the text. After another prompt (a turn of a
    conversation), or for another definition, make a new one over the same generator. The text of each row is read
    from the generator before each token, so the generator itself may append and rewind.

    Parameters
    ----------
    generator:
        The generator, with the prompt appended.
    indexes:
        One index for a batch of one, or a sequence with one for each row; None leaves a row unconstrained.
    prompt_length:
        The number of tokens of each row, padding included, that are not part of the text. Default: all tokens so
        far.
    strict:
        The reaction to a token that was not allowed. True: raise `TokenIdError`. False: end the row.

    Raises
    ------
    VocabularyMismatchError
        For indexes of different vocabularies.
    VocabularyError
        For a vocabulary without EOS ids.
    """

    def __init__(
        self,
        generator: Generator,
        indexes: Index | Sequence[Index | None],
        *,
        prompt_length: int | None = None,
        strict: bool = True,
    ) -> None:
        indexes = tuple(indexes) if isinstance(indexes, Sequence) else (indexes,)
        self._generator = generator
        self._count = len(indexes)
        self._prompt_length = generator.token_count() if prompt_length is None else prompt_length
        self._rows = Rows(indexes, prompt_length=self._prompt_length, strict=strict, refuse=RefusedTokenError)

    def generate_next_token(self) -> None:
        """Mask the logits, and let the generator choose a token for each row. It does nothing when the generator is
        done.

        Raises
        ------
        BitmaskError
            For a wrong number of rows, or logits narrower than the vocabulary.
        TokenIdError
            With ``strict``, for a token that was not allowed; names the row and the token.
        """
        if self._generator.is_done():
            return
        logits = self._generator.get_logits()
        if logits.ndim != 3 or len(logits) != self._count:
            raise BitmaskError(
                f"logits are [rows, 1, width] for {self._count} rows, got {describe(logits)}",
                remedy="Pass an index, or None, for each row of the batch; there is no beam search.",
            )
        for row, text in enumerate(self._texts()):
            mask = text.bitmask()
            if mask is not None:
                apply_bitmask(logits[row, -1], mask)
                if revive_row(logits[row, -1], mask):
                    tell_of_precedence()
        self._generator.set_logits(logits)
        self._generator.generate_next_token()

    def append_tokens(self, tokens: Sequence[int]) -> None:
        """Append ``tokens`` to the text of a batch of one: all, or none.

        Raises
        ------
        TokenIdError
            For a token that is not allowed.
        BitmaskError
            For a larger batch.
        """
        self._check_single("append_tokens")
        (text,) = self._texts()
        text = text.rewound(0)
        for i, token in enumerate(tokens):
            if not text.advance(token):
                raise text.refusal(token, RefusedTokenError, f"token {i} of these", "")
        self._generator.append_tokens(np.asarray(tokens, np.int32))

    def rewind_to(self, length: int) -> None:
        """Take tokens back until ``length`` are left, prompt included, in a batch of one.

        Raises
        ------
        RollbackError
            For a length inside the prompt, or more tokens than there are.
        BitmaskError
            For a larger batch.
        """
        self._check_single("rewind_to")
        sequence = self._generator.get_sequence(0).copy()
        if not max(1, self._prompt_length) <= length <= len(sequence):
            raise RollbackError(
                f"cannot rewind to {length} tokens: there are {len(sequence)}, {self._prompt_length} of them the prompt"
            )
        self._generator.rewind_to(length - 1)
        self._generator.append_tokens(sequence[length - 1 : length])

    def is_done(self) -> bool:
        """Return whether every row has ended, or the maximum length is reached."""
        return self._generator.is_done()

    def _texts(self) -> list[Text]:
        return self._rows.follow(np.stack([self._generator.get_sequence(row) for row in range(self._count)]))

    def _check_single(self, method: str) -> None:
        if self._count != 1:
            raise BitmaskError(f"{method} is for a batch of one, this one has {self._count} rows")
