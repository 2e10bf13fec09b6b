"""A logits processor for ``Llama`` of llama-cpp-python.

Follows llama-cpp-python 0.3.36. What its calls are like, and what follows from it here:

- A processor gets ``(input_ids, scores)`` from a sampler that ``generate()`` makes anew for each generation. With
  a draft model, ``input_ids`` has *all* drafted tokens at its end, and comes again, unchanged, for each of them in
  turn. So its length does not say which token is asked for; but within one sampler every call asks for the token
  behind that of the call before. So the sampler is looked at, and for that the processor knows its ``Llama``.
- The processor runs inside a C callback: Python prints an exception there, and sampling goes on with the scores as
  they were. So where a call fails, the scores are overwritten in place first, with the EOS ids alone, and the
  error is kept for `LogitsProcessor.check`.
- ``Llama.__call__`` with ``logit_bias`` drops all logits processors, silently. `check` notices.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from copy import copy, deepcopy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import BitmaskError, StructgenError
from ...runtime.guide.tracker import SequenceTracker
from ...runtime.logits.masks import apply_bitmask, revive_row, temper
from ...system.arguments import checked_temperature, describe
from ...system.types import Array, Foreign
from ..checks import index_of_model, tell_of_precedence
from ..engine_names import check_attributes
from ..refusals import RefusedTokenError
from .tokens import vocabulary

if TYPE_CHECKING:
    from ...runtime.index.index import Index


class LogitsProcessor:
    """A logits processor for ``Llama(...)``: ``logits_processor=LogitsProcessorList([processor])``.

    It works with ``draft_model=``, streaming, and one generation after another. It finds the beginning of a
    generation from the ids. Use one processor for one generation at a time, and call `check` after each.

    Parameters
    ----------
    index:
        The definition, compiled for the model's vocabulary.
    llama:
        The ``llama_cpp.Llama`` that generates.
    prompt_length:
        The number of leading ids that are not part of the text. None: found from the ids.
    temperature:
        The temperature of the call, 0.8 by default as in llama-cpp-python. Where a grammar's rule has one,
        ``name[temperature=0.7]: ...``, scores are changed so that sampling uses the rule's. With 0 in the call the
        likeliest token is taken.

    Raises
    ------
    VocabularyMismatchError
        For an index compiled for other tokens than this model's; names the first one.
    VocabularyError
        For an unknown kind of tokenizer, and for EOS ids at which llama.cpp would not end a text.
    UnsupportedError
        For an unsupported version of llama-cpp-python.
    """

    def __init__(
        self, index: Index, llama: Foreign, *, prompt_length: int | None = None, temperature: float = 0.8
    ) -> None:
        self._temperature = checked_temperature(temperature)
        check_attributes("llama_cpp", llama)
        remedy = "Compile the index with structgen.integrations.llama_cpp.vocabulary(llama)."
        self._index = index = index_of_model(index, vocabulary(llama), remedy=remedy)
        self._llama = llama
        # A Llama has one sequence.
        self._tracker = SequenceTracker(index, prompt_length=prompt_length, most=2, refuse=RefusedTokenError)
        self._sampler: weakref.ref[object] | None = None
        self._position = 0
        #: What went wrong since the last `reset` or `check`; the text was ended there.
        self.error: StructgenError | None = None
        self._called = False

    def __getstate__(self) -> dict[str, object]:
        """All but the sampler, which another process does not have: a generation there begins anew."""
        return {**self.__dict__, "_sampler": None}

    def __deepcopy__(self, memo: dict[int, object]) -> LogitsProcessor:
        """One for the same model, at the same place."""
        twin = copy(self)
        twin._tracker, twin._sampler = deepcopy(self._tracker, memo), self._sampler
        return twin

    def reset(self) -> None:
        """Forget the generation in progress and its error. The next call begins a new one."""
        self._tracker.reset()
        self._sampler = None
        self.error = None

    def check(self) -> None:
        """Raise the error of the last generation, if any. Call it after each, because C code cannot pass on
        exceptions.

        Raises
        ------
        StructgenError
            The error, once; or an error because there was no call since the last check, so that nothing was masked.
        """
        error, self.error = self.error, None
        called, self._called = self._called, False
        if error is not None:
            raise error
        if not called:
            raise StructgenError(
                "the logits processor was not called, so nothing kept the text inside the definition",
                remedy="With logit_bias=, llama-cpp-python drops logits processors: bias in one of your own.",
            )

    def __call__(self, input_ids: NDArray[np.intc], scores: NDArray[np.single]) -> NDArray[np.single]:
        """Mask the scores of the next token, in place.

        Parameters
        ----------
        input_ids:
            ``intc[length]``: prompt, generated tokens, and drafted ones.
        scores:
            ``float32[width]``, of each token id in order.

        Returns
        -------
        numpy.ndarray
            ``scores``.

        Raises
        ------
        BitmaskError
            For scores of another shape or dtype, or narrower than the vocabulary.
        TokenIdError
            For a token that was not allowed.
        """
        self._called = True
        try:
            begins = self._look(input_ids)
            text = self._tracker.follow(input_ids[: self._position], may_begin=begins)
            row = text.bitmask()
            if row is None or scores.ndim != 1:
                raise BitmaskError(f"scores are float32[width], got {describe(scores)}")
            apply_bitmask(scores, row)
            if revive_row(scores, row):
                tell_of_precedence()
            if (wanted := text.temperature) is not None:
                temper(scores, wanted, self._temperature)
        except StructgenError as error:
            self.error = error
            self._tracker.reset()
            _allow_only(scores, self._index.vocabulary.eos_ids)
            raise
        return scores

    def _look(self, input_ids: NDArray[np.intc]) -> bool:
        """Find how many ids stand before the token that is asked for, the rest being a draft. Returns whether a
        generation may begin here."""
        sampler = self._llama._sampler
        same = sampler is not None and self._sampler is not None and self._sampler() is sampler
        self._sampler = None if sampler is None else weakref.ref(sampler)
        goes_on = same and self._position < len(input_ids)
        self._position = self._position + 1 if goes_on else len(input_ids)
        return not goes_on


def _allow_only(scores: Array, ids: Iterable[int]) -> None:
    """Set every score but those of ``ids`` to ``-inf``, as far as there are scores."""
    if scores.ndim != 1 or scores.dtype.kind != "f":
        return
    kept = [i for i in ids if i < len(scores)]
    scores[...] = -np.inf
    scores[kept] = 0
