"""`TracedGenerate`: the loop of `generate`, which records what it does."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from ...errors import BatchError
from ...runtime.guide.guide import Guide
from ...system.types import Foreign
from ...traces.guide import TracedGuide
from ...traces.recorder import CANDIDATES, MAX_STEPS
from ...traces.trace import Trace
from .custom_generate import Parts, WrittenRows, generate
from .optimistic import Optimist
from .tracing import TracingProcessor

if TYPE_CHECKING:
    from ...runtime.index.index import Index

__all__ = ["TracedGenerate"]


class TracedGenerate:
    """A recording `generate`: ``model.generate(custom_generate=traced, index=index)``, then ``traced.traces()``.

    Tokens that were appended without the model are recorded as forced. In optimistic decoding, the first token that
    is not allowed is recorded as refused; later tokens of the same draft are not recorded.

    Parameters
    ----------
    max_steps, candidates:
        For each row, as in `structgen.TracedGuide`.
    """

    def __init__(self, *, max_steps: int = MAX_STEPS, candidates: int = CANDIDATES) -> None:
        self._steps, self._candidates = max_steps, candidates
        self._guides: list[TracedGuide] = []
        self._processor: TracingProcessor | None = None
        self._answer: Foreign = None
        #: Read by transformers, which hands over what is named here.
        self.__signature__ = inspect.signature(generate)

    def __call__(self, *arguments: Foreign, **named: Foreign) -> Foreign:
        """`generate`; transformers calls it."""
        self._guides, self._processor = [], None
        named["parts"] = Parts(self._guide, _TracedRows, _TracedOptimist, self._masks)
        self._answer = generate(*arguments, **named)
        return self._answer

    def traces(self, *, prompts: Sequence[str] = ()) -> list[Trace]:
        """Return the record of each row of the last generation that has an index.

        Parameters
        ----------
        prompts:
            The prompts of these rows, for readers.

        Raises
        ------
        BatchError
            Where nothing was generated.
        """
        if self._processor is not None:
            sequences: Foreign = getattr(self._answer, "sequences", self._answer)
            return self._processor.traces(sequences, prompts=prompts)
        if not self._guides:
            raise BatchError("nothing was generated with this loop")
        names = [*prompts, *([""] * len(self._guides))]
        return [guide.trace(prompt=name) for guide, name in zip(self._guides, names, strict=False)]

    def _guide(self, index: Index) -> Guide:
        guide = TracedGuide(index, max_rollback=0, max_steps=self._steps, candidates=self._candidates)
        self._guides.append(guide)
        return guide

    def _masks(self, indexes: Sequence[Index | None], length: int) -> Foreign:
        self._processor = TracingProcessor(
            indexes, prompt_length=length, max_steps=self._steps, candidates=self._candidates
        )
        return self._processor


class _TracedRows(WrittenRows):
    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for row, guide in self._asking():
            if isinstance(guide, TracedGuide):
                guide.see(scores[row])
        return super().__call__(input_ids, scores)


class _TracedOptimist(Optimist):
    """Scores wait until the guide comes to where their token stands."""

    def __init__(self, reader: Foreign, guide: TracedGuide, *arguments: Foreign, **named: Foreign) -> None:
        super().__init__(reader, guide, *arguments, **named)
        self._traced = guide
        self._waiting: deque[torch.Tensor] = deque()

    def _scores(self, ids: torch.Tensor) -> torch.Tensor:
        scores = super()._scores(ids)
        self._waiting.append(scores[0].clone())
        return scores

    def _takes(self, token: int) -> bool:
        if self._waiting:
            self._traced.see(self._waiting.popleft())
        if super()._takes(token):
            return True
        self._traced.refuse(token)
        self._waiting.clear()
        return False
