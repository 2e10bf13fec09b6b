"""vLLM: a logits processor that masks each request by its own definition.

Installing structgen is enough: vLLM finds the class by its entry point, and it does nothing for requests that do not
ask for it. A request does with ``SamplingParams(extra_args={"structgen": {"regex": "..."}})``, or another key of
`structgen.integrations.requests.KINDS`. An operator sets things with ``additional_config={"structgen": {...}}``; see
`structgen.integrations.requests.SETTINGS`.

vLLM has two model runners, each with an interface of its own for logits processors, and takes both from the same
entry point. So one class has both. The first runner tells which rows changed, and keeps a list of output tokens for
each request; the second gives requests slots, keeps the tokens on the device, and may ask for a row for each draft
token. Both may go back: a request can be preempted and come again, drafts are dropped. So a request's text is
compared with the tokens that it is to have, and moved to them.

An error here would end the engine and all that it is doing. So where one request cannot be served (its definition
does not compile, a token came that it does not allow), that is logged, and all that it may go on with are the tokens
that end it.

Written against vLLM 0.32.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as RowProcessor

from ..errors import DefinitionError, StructgenError
from ..runtime.grammar.embedded import row_of
from ..runtime.logits.logits import apply_bitmask
from ..runtime.rows.bitmask import words_for
from ..system.properties import cached_property
from ..system.types import Foreign, JsonMap
from ..vocabulary.vocabulary import Vocabulary
from .matcher import Matcher
from .requests import Indexes, Named, Settings, check_definition, eos_ids_of, indexes_with, read_request

try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as SlotProcessor
except ImportError:

    class SlotProcessor:  # type: ignore[no-redef]
        """In place of the interface that older versions lack."""


_log = logging.getLogger(__name__)

#: The key of a request's ``extra_args``, and of the engine's ``additional_config``.
KEY = "structgen"

_NOT_TOLD = (
    "vLLM does not tell its plugins which tokens were sampled while it schedules ahead: pass "
    'logits_processors=["structgen.integrations.vllm:StructgenLogitsProcessor"], or async_scheduling=False'
)


class StructgenLogitsProcessor(RowProcessor, SlotProcessor):
    """Keeps each request that asks for it inside its definition. Made by vLLM."""

    def __init__(self, vllm_config: Foreign, place: Foreign, is_pin_memory: bool = False) -> None:
        model = vllm_config.model_config
        self._model = model
        self._settings = settings_of(vllm_config)
        self._words = words_for(model.get_vocab_size())
        self._states: Foreign = place  # of the second runner; for the first a device
        self._texts: dict[int, _Text] = {}  # by row in the first runner, by slot in the second
        self._outputs: dict[int, Sequence[int]] = {}  # in the first

    @cached_property
    def _indexes(self) -> Indexes:
        return indexes_with(vocabulary_of(self._model, _tokenizer_of(self._model)), self._settings)

    # -- requests --------------------------------------------------------------------------------------

    @classmethod
    def validate_params(cls, sampling_params: Foreign) -> None:
        """Refuse a request whose definition is not right, in the process that admits requests.

        Raises `ValueError`, which vLLM makes an error of the client's.
        """
        request = _request_of(sampling_params)
        if request is None:
            return
        try:
            if getattr(sampling_params, "structured_outputs", None) is not None:
                raise DefinitionError(
                    "a request has a definition of structgen's and structured_outputs", remedy="Use one of them."
                )
            wanted = read_request(request)
            if not isinstance(wanted, Named):
                check_definition(wanted)
        except StructgenError as error:
            raise ValueError(f"extra_args[{KEY!r}]: {error}") from error

    def _begin(self, params: Foreign, where: str) -> _Text | None:
        """The text of a request; None where it has no definition."""
        request = _request_of(params)
        if request is None:
            return None
        stop_ids = set(params.all_stop_token_ids)
        last_resort = row_of([i for i in stop_ids if 0 <= i < self._words * 32] or [0], self._words)
        try:
            matcher = Matcher(self._indexes.of(read_request(request)), stop_ids=stop_ids)
        except Exception as error:  # whatever it is, the other requests are not to know
            is_known = isinstance(error, StructgenError)
            _log.error("structgen: %s cannot be served: %s", where, error, exc_info=not is_known)
            return _Text(None, last_resort, where)
        return _Text(matcher, last_resort, where)

    # -- the first model runner ------------------------------------------------------------------------

    def is_argmax_invariant(self) -> bool:
        """False: a mask forbids tokens, the likeliest ones among them."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow requests that come, go, and change rows."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._drop(row)
        for row, params, _, output in batch_update.added:
            self._drop(row)
            self._put(row, (self._begin(params, f"row {row}"), output))
        for source, target, direction in batch_update.moved:
            moved, other = self._drop(source), self._drop(target)
            self._put(target, moved)
            if direction == MoveDirectionality.SWAP:
                self._put(source, other)

    def _drop(self, row: int) -> tuple[_Text | None, Sequence[int]]:
        return self._texts.pop(row, None), self._outputs.pop(row, ())

    def _put(self, row: int, request: tuple[_Text | None, Sequence[int]]) -> None:
        text, output = request
        if text is not None:
            self._texts[row], self._outputs[row] = text, output

    # -- the second model runner -----------------------------------------------------------------------

    def add_request(self, req_idx: int, sampling_params: Foreign) -> bool:
        """Begin a request in a slot. Returns whether it has a definition."""
        text = self._begin(sampling_params, f"slot {req_idx}")
        self._texts.pop(req_idx, None)
        if text is not None:
            self._texts[req_idx] = text
        return text is not None

    def _follow_slots(self, context: Foreign) -> list[tuple[int, _Text, NDArray[np.int32]]]:
        """Each row of a slot with a definition, and its mask. One transfer from the device, and rarely more."""
        if self._texts.keys().isdisjoint(context.idx_mapping_np.tolist()):
            return []
        columns = (context.expanded_idx_mapping, context.expanded_local_pos, context.pos, context.input_ids)
        rows = len(context.expanded_idx_mapping)
        layout = torch.stack([column[:rows].to(torch.int64) for column in columns]).tolist()
        found = []
        for row, (slot, draft, position, last) in enumerate(zip(*layout, strict=True)):
            text = self._texts.get(slot)
            if text is None:
                continue
            prompt = int(self._states.prompt_len.np[slot])
            length = position + 1 - prompt
            if 0 < length <= len(text.seen) + 1:
                # All but the last were there before: what was dropped since are drafts, from the end.
                tokens = [*text.seen[: length - 1], last]
            elif draft == 0:
                all_ids = self._states.all_token_ids.gpu
                tokens = all_ids[slot, prompt : position + 1].tolist() if length > 0 else []
            else:
                tokens = [*text.seen, last]
            text.move_to(tokens)
            found.append((row, text, text.row()))
        return found

    # -- both ------------------------------------------------------------------------------------------

    def apply(self, logits: torch.Tensor, ctx: Foreign = None) -> torch.Tensor:
        """Set the logits of tokens that are not allowed to ``-inf``, in place.

        Parameters
        ----------
        logits:
            ``float32[rows, width]``, on any device.
        ctx:
            The layout of the batch, in the second model runner.
        """
        if not self._texts:
            return logits
        masks: dict[int, NDArray[np.int32]] = {}
        if ctx is not None:
            masks = {row: mask for row, _, mask in self._follow_slots(ctx)}
        else:
            for row, text in sorted(self._texts.items()):
                text.move_to(self._outputs[row])
                masks[row] = text.row()
        if masks:
            rows = None if len(masks) == len(logits) else list(masks)
            apply_bitmask(logits, np.stack(list(masks.values())), rows=rows)
        return logits


class _Text:
    """What a request has generated.

    Parameters
    ----------
    matcher:
        Where it is in its definition; None where there is nothing that could be followed.
    last_resort:
        ``int32[words]``: the tokens that end the request.
    where:
        For the log.
    """

    def __init__(self, matcher: Matcher | None, last_resort: NDArray[np.int32], where: str) -> None:
        self._matcher = matcher
        self._last_resort = last_resort
        self._where = where
        self._accepted = 0  # of the tokens seen: the others came after the end, or after one that is not allowed
        self.seen: list[int] = []

    def move_to(self, tokens: Sequence[int]) -> None:
        """Make the text be of these tokens."""
        seen, matcher = self.seen, self._matcher
        kept = len(seen)
        if seen != tokens[:kept]:
            pairs = zip(seen, tokens, strict=False)
            kept = next((i for i, (a, b) in enumerate(pairs) if a != b), min(kept, len(tokens)))
        if kept < self._accepted and matcher is not None:
            matcher.rollback(self._accepted - kept)
            self._accepted = kept
        del seen[kept:]
        for token in tokens[kept:]:
            if matcher is not None and self._accepted == len(seen) and not matcher.is_terminated():
                if matcher.accept(token):
                    self._accepted += 1
                else:
                    reason = _NOT_TOLD if token < 0 else "another processor may have forced it"
                    _log.error("structgen: %s ends: token %d is not allowed, %s", self._where, token, reason)
            seen.append(token)

    def row(self) -> NDArray[np.int32]:
        """The mask, ``int32[words]``."""
        matcher = self._matcher
        if matcher is None or (self._accepted < len(self.seen) and not matcher.is_terminated()):
            return self._last_resort
        return matcher.row()


def settings_of(vllm_config: Foreign) -> JsonMap:
    """The operator's settings. Raises `DefinitionError` for some that mean nothing."""
    config = getattr(vllm_config, "additional_config", None)
    settings: JsonMap = config.get(KEY, {}) if isinstance(config, Mapping) else {}
    Settings.read(settings)
    return settings


def vocabulary_of(model_config: Foreign, tokenizer: Foreign) -> Vocabulary:
    """The vocabulary of a model: as wide as its logits, ended by its own EOS ids."""
    eos_ids = eos_ids_of(tokenizer.eos_token_id, model_config.try_get_generation_config().get("eos_token_id"))
    return Vocabulary.from_transformers(tokenizer, eos_ids=eos_ids, size=model_config.get_vocab_size())


def _tokenizer_of(model_config: Foreign) -> Foreign:
    from vllm.tokenizers import cached_tokenizer_from_config

    return cached_tokenizer_from_config(model_config)


def _request_of(params: Foreign) -> object:
    extra = getattr(params, "extra_args", None)
    return extra.get(KEY) if isinstance(extra, Mapping) else None
