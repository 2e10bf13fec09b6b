"""`ContinuousBatchingLogitsProcessor`: a definition for each request of transformers' continuous batching.

``ContinuousBatchingManager`` runs requests that come and go in one flat batch. What differs between them reaches a
processor as one ``int32`` for each token that is to be chosen, made on the host before the step; on the device, and
in a captured graph, `__call__` reads nothing else. Here the number is that of a mask in a pool on the device
(`structgen.runtime.logits.devices`); the sequences are rows of one `GuideBatch`.

The interface is that of transformers 5.24
(``transformers/generation/continuous_batching/cb_logits_processors.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from weakref import ref

import numpy as np
import torch

from ...errors import BatchError, DefinitionError, StructgenError, TokenIdError
from ...runtime.batch.batch import GuideBatch
from ...runtime.guide.tracker import vocabulary_of
from ...runtime.logits.devices import DeviceRows
from ...runtime.logits.masks import mask_rows
from ...runtime.rows.bitmask import check_width
from ...runtime.rows.row_store import ALL_IDS, EOS_IDS
from ...system.arguments import checked_token
from ...system.types import Foreign
from ..engine_names import check_engine
from ..refusals import RefusedTokenError
from .loops import place_for_masks

if TYPE_CHECKING:
    from ...runtime.index.index import Index

#: Masks that a pool holds where nobody asks for more.
_SLOTS = 1024

#: So many requests that are over may be kept before they are looked for.
_FEW = 64


class ContinuousBatchingLogitsProcessor:
    """A logits processor for a ``ContinuousBatchingManager``: each request names its definition.

    ::

        processor = ContinuousBatchingLogitsProcessor({"date": date_index, "person": person_index})
        manager = model.init_continuous_batching(generation_config=...)
        processor.attach(manager)
        manager.start()
        manager.add_request(input_ids, definition="person")

    A request without a name, where there is no default, is unconstrained. A request with an unknown name fails alone.
    So does one that runs out of its budget, or gets a token that its mask forbids: it ends with an EOS token, and its
    ``GenerationOutput.error`` says why.

    Parameters
    ----------
    definitions:
        Indexes by name, at least one, all of one vocabulary; see also `register`.
    default:
        The name of the definition for requests that name none.

    Raises
    ------
    VocabularyMismatchError
        Where two indexes belong to different vocabularies.
    VocabularyError
        For a vocabulary without EOS ids: no text could end.
    DefinitionError
        Where the default is not one of the names.
    """

    #: Read by transformers: what ``add_request`` takes for this processor.
    supported_kwargs: dict[str, type] = {"definition": str}  # noqa: RUF012 (the base class's own annotation)
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(self, definitions: Mapping[str, Index], *, default: str | None = None) -> None:
        vocabulary = vocabulary_of(list(definitions.values()))
        assert vocabulary is not None  # there are no rows without an index among these
        self._definitions = dict(definitions)
        self._default = default
        if default is not None:
            self._index(default)
        self._batch = GuideBatch(vocabulary)
        self._rows: DeviceRows | None = None
        #: By row of the batch, and by name.
        self._requests: list[_Request] = []
        self._by_name: dict[str, _Request] = {}

    def register(self, name: str, index: Index) -> None:
        """Add a definition, or replace the one of that name from the next request on.

        Parameters
        ----------
        name:
            The name for requests.
        index:
            The definition.

        Raises
        ------
        VocabularyMismatchError
            For an index of another vocabulary.
        """
        first = next(iter(self._definitions.values()))
        vocabulary_of([first, index])
        self._definitions[name] = index

    def attach(self, manager: Foreign) -> None:
        """Attach the processor to a manager that was not started yet.

        Parameters
        ----------
        manager:
            The result of ``model.init_continuous_batching(...)``.

        Raises
        ------
        BatchError
            For a manager that was started or that batches asynchronously, and for a processor that has a manager
            already.
        BitmaskError
            For a model whose logits are narrower than the vocabulary.
        """
        check_engine("transformers.batching")
        if self._rows is not None:
            raise BatchError("the processor belongs to a manager already", remedy="Make one for each manager.")
        if getattr(manager, "batch_processor", None) is not None or manager.is_running():
            raise BatchError("the manager was started already", remedy="Attach the processor before start().")
        config = manager.continuous_batching_config
        if config.use_async_batching:
            raise BatchError(
                "asynchronous batching begins a step before the last token is known, on which its masks depend",
                remedy="Pass ContinuousBatchingConfig(use_async_batching=False).",
            )
        width = manager.model.config.get_text_config().vocab_size
        check_width(self._batch.vocabulary.words, width)
        slots = max(_SLOTS, config.max_requests_per_batch or 0)
        self._rows = DeviceRows(self._batch.rows, manager.model.device, slots=None if slots == _SLOTS else slots)
        for index in self._definitions.values():
            self._rows.preload(index)
        _insert(self, manager.logit_processor)

    def check(self, kwargs: Mapping[str, str]) -> None:
        """Raise `DefinitionError` where a request's arguments name a definition that there is not."""
        name = kwargs.get("definition")
        if name is not None:
            self._index(name)

    def _index(self, name: str) -> Index:
        index = self._definitions.get(name)
        if index is None:
            raise DefinitionError(
                f"there is no definition {name!r}",
                remedy=f"Known are {', '.join(map(repr, list(self._definitions)[:20]))}; register() adds one.",
            )
        return index

    # -- transformers' interface -----------------------------------------------------------------------

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Write what stands where there is no request: a mask that allows every id."""
        int32_tensor.copy_(self._device_rows().slots(np.array([ALL_IDS], np.int32))[0])

    def prepare_tensor_args(self, requests_with_new_token: list[Foreign]) -> torch.Tensor:
        """Where the masks for the next tokens of requests are in the pool, ``int32[n]`` on the device.

        What is wrong with one request is written to its ``state.error``, and ends that request alone.
        """
        rows = self._device_rows()
        if len(self._requests) > 2 * len(requests_with_new_token) + _FEW:
            self._forget()
        requests = [self._request(future.state) for future in requests_with_new_token]
        self._catch_up(requests)
        numbers = self._batch.row_ids()[[request.row for request in requests]]
        self._note_errors({})
        numbers[[request.failed for request in requests]] = EOS_IDS
        return rows.slots(numbers)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Mask ``scores[n, width]``, in place, by the masks at ``tensor_arg[:n]``; nothing waits for the device."""
        mask_rows(scores, self._device_rows().pool, tensor_arg[: scores.shape[0]])
        return scores

    # -- requests --------------------------------------------------------------------------------------

    def _device_rows(self) -> DeviceRows:
        if self._rows is None:
            raise BatchError("the processor belongs to no manager", remedy="Call attach(manager).")
        return self._rows

    def _request(self, state: Foreign) -> _Request:
        """The request of a state, as a row of the batch, with the tokens that are to be appended to it."""
        request = self._by_name.get(state.request_id)
        if request is None:
            request = self._begun(state)
        elif request.state() is not state:
            # The request was put back into the queue (its tokens are part of the prompt then), or its name is
            # another's now: from the beginning, with what the name stands for.
            stale = request
            request = self._begun(state)
            stale.state = _nothing
        tokens = _text(state)
        request.pending = tokens[request.seen :]
        request.seen = len(tokens)
        return request

    def _begun(self, state: Foreign) -> _Request:
        index: Index | None = None
        error: StructgenError | None = None
        name = state.logit_processor_kwargs.get("definition", self._default)
        try:
            index = None if name is None else self._index(name)
        except DefinitionError as unknown:
            error = unknown
        request = _Request(state, self._batch.add(index))
        if error is not None:
            request.fail(error)
        self._requests.append(request)
        self._by_name[state.request_id] = request
        return request

    def _catch_up(self, requests: list[_Request]) -> None:
        """Append what was generated since the last step: a token each, or all of them for a request that is new."""
        moving = [request for request in requests if request.pending and not request.failed]
        while moving:
            known = [request for request in moving if self._knows(request)]
            tokens = {request.row: request.pending.pop(0) for request in known}
            self._batch.advance([*tokens.values()], [*tokens])
            self._note_errors(tokens)
            moving = [request for request in moving if request.pending and not request.failed]

    def _knows(self, request: _Request) -> bool:
        """Whether a request's next token is in the vocabulary; the request fails where it isn't."""
        try:
            checked_token(request.pending[0], self._batch.vocabulary.size)
        except TokenIdError as error:
            request.fail(error)
        return not request.failed

    def _note_errors(self, tokens: Mapping[int, int]) -> None:
        """Fail the requests of rows with errors, by the tokens that were appended to them."""
        for row, error in self._batch.errors.items():
            if row in tokens and isinstance(error, TokenIdError) and (guide := self._batch.guide(row)) is not None:
                error = RefusedTokenError(guide, tokens[row], error.where)
            self._requests[row].fail(error)

    def _forget(self) -> None:
        """Drop the requests that are over."""
        over = [request.row for request in self._requests if request.is_over()]
        self._batch.remove(over)
        gone = set(over)
        self._requests = [request for request in self._requests if request.row not in gone]
        for row, request in enumerate(self._requests):
            request.row = row
        alive = {id(request) for request in self._requests}
        self._by_name = {name: request for name, request in self._by_name.items() if id(request) in alive}


class _Request:
    """A request, while transformers holds its state.

    Parameters
    ----------
    state:
        transformers' ``RequestState``.
    row:
        Its row of the batch.
    """

    __slots__ = ("failed", "pending", "row", "seen", "state")

    def __init__(self, state: Foreign, row: int) -> None:
        self.state: Callable[[], Foreign] = ref(state)
        self.row = row
        #: How many of its tokens were taken note of, and those of them that the batch does not have yet.
        self.seen = 0
        self.pending: list[int] = []
        self.failed = False

    def fail(self, error: StructgenError) -> None:
        self.failed = True
        state = self.state()
        if state is not None and state.error is None:
            state.error = str(error)

    def is_over(self) -> bool:
        state = self.state()
        if state is None:
            return True
        finished: bool = state.status.name in ("FINISHED", "FAILED")
        return finished


def _nothing() -> None:
    """The state of a request that is another one's by now."""


def _text(state: Foreign) -> list[int]:
    """The tokens that a request has generated. Of one that was put back into the queue, some are in the prompt."""
    before = state._true_initial_tokens
    taken = state.initial_tokens[before:] if before else []
    tokens: list[int] = [*taken, *state.generated_tokens]
    return tokens


def _insert(processor: ContinuousBatchingLogitsProcessor, processors: Foreign) -> None:
    """Make a processor part of transformers' list, which takes none from outside (5.24)."""
    from transformers.generation.continuous_batching.cb_logits_processors import (
        ContinuousBatchingLogitsProcessor as Interface,
    )

    Interface.register(type(processor))
    processors.logits_processor.insert(place_for_masks(processors.logits_processor), processor)
    processors.tensors_required += 1
    processors._retrieve_processors_kwargs()
    processors.do_processing = True
    check_types = processors.check_kwargs

    def check_kwargs(kwargs: dict[str, str]) -> None:
        # Called for each new request; what it raises fails that request.
        check_types(kwargs)
        processor.check(kwargs)

    processors.check_kwargs = check_kwargs
