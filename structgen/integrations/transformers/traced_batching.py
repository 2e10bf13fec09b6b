"""`TracedBatchingProcessor`: a `ContinuousBatchingLogitsProcessor` that records each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from ...errors import BatchError, UnsupportedError
from ...system.arguments import Integers
from ...system.memo import Memo
from ...system.types import Foreign
from ...traces.batch import TracedBatch
from ...traces.recorder import CANDIDATES, MAX_STEPS
from ...traces.trace import Trace
from .batching import ContinuousBatchingLogitsProcessor

if TYPE_CHECKING:
    from ...runtime.index.index import Index

__all__ = ["TracedBatchingProcessor"]

#: Requests that are over, of which so many are remembered.
_MOST_OVER = 1024


class TracedBatchingProcessor(ContinuousBatchingLogitsProcessor):
    """A `ContinuousBatchingLogitsProcessor` that records each request.

    ::

        processor = TracedBatchingProcessor({"date": date_index})
        processor.attach(manager)
        ...
        manager.stop()
        trace = processor.trace(result)  # what manager.get_result() returned

    For a request that was queued again or forked, earlier tokens are recorded without scores. Recording waits for the
    device at each step, so no step can be captured in a graph.

    Parameters
    ----------
    definitions, default:
        As in `ContinuousBatchingLogitsProcessor`.
    max_steps, candidates:
        For each request, as in `structgen.TracedGuide`.
    """

    def __init__(
        self,
        definitions: Mapping[str, Index],
        *,
        default: str | None = None,
        max_steps: int = MAX_STEPS,
        candidates: int = CANDIDATES,
    ) -> None:
        super().__init__(definitions, default=default)
        self._traced = _AskedBatch(self._batch.vocabulary, max_steps=max_steps, candidates=candidates)
        self._batch = self._traced
        #: The rows of the step that is being made, and requests that are over: tokens, and their record.
        self._step: list[int] = []
        self._over: Memo[str, tuple[int, TracedBatch]] = Memo(_MOST_OVER)

    def attach(self, manager: Foreign) -> None:
        """Attach the processor to a manager, as a `ContinuousBatchingLogitsProcessor` does.

        Parameters
        ----------
        manager:
            The result of ``model.init_continuous_batching(...)``.

        Raises
        ------
        UnsupportedError
            Where steps may be captured in a graph: on a device, unless that is switched off.
        """
        graphs = manager.continuous_batching_config.use_cuda_graph
        if manager.model.device.type != "cpu" and graphs not in (False, (False, False)):
            raise UnsupportedError(
                "scores can't be looked at in a step that is captured in a graph",
                remedy="Pass ContinuousBatchingConfig(use_cuda_graph=False).",
            )
        super().attach(manager)

    def trace(self, result: Foreign) -> Trace:
        """Return the record of a request.

        Parameters
        ----------
        result:
            A ``GenerationOutput`` of the manager, which has stopped or has no running requests.

        Raises
        ------
        BatchError
            For an unknown request. Of finished requests, the last thousand are known.
        """
        batch: TracedBatch
        request = self._by_name.get(result.request_id)
        if request is not None:
            seen, row, batch = request.seen, request.row, self._traced
        elif result.request_id in self._over:
            (seen, batch), row = self._over[result.request_id], 0
        else:
            raise BatchError(f"there is no request {result.request_id!r}", remedy="Ask sooner.")
        return batch.trace(row, result.generated_tokens[seen:])

    def prepare_tensor_args(self, requests_with_new_token: list[Foreign]) -> torch.Tensor:
        """As of a `ContinuousBatchingLogitsProcessor`."""
        numbers = super().prepare_tensor_args(requests_with_new_token)
        self._step = [self._by_name[future.state.request_id].row for future in requests_with_new_token]
        return numbers

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """As of a `ContinuousBatchingLogitsProcessor`."""
        self._traced.see(scores[: len(self._step)], self._step)
        return super().__call__(scores, tensor_arg)

    def _forget(self) -> None:
        for name, request in self._by_name.items():
            if request.is_over():
                self._over[name] = request.seen, self._traced.alone(request.row)
        super()._forget()


class _AskedBatch(TracedBatch):
    """Where no token is appended without the model."""

    def advance(self, token_ids: Integers, rows: Integers = None) -> NDArray[np.bool_]:
        for row in self._which(rows).tolist():
            self._recorders[row].ask(0.0)
        return super().advance(token_ids, rows)

    def alone(self, row: int) -> TracedBatch:
        """A batch of one row, with its record."""
        batch = TracedBatch(self.vocabulary, [self.guide(row)])
        batch._recorders = [self._recorders[row]]
        return batch
