"""vLLM: a logits processor that masks each request by its own definition.

Installing structgen is enough: vLLM finds the class by its entry point, and it does nothing for requests that do not
ask for it. A request does with ``SamplingParams(extra_args={"structgen": {"regex": "..."}})``, or another key of
`structgen.integrations.requests.KINDS`. An operator sets things with ``additional_config={"structgen": {...}}``, in
a file, or in ``STRUCTGEN_VLLM``; see `structgen.integrations.settings`.

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
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.sample.logits_processor.interface import BatchUpdate, MoveDirectionality
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as RowProcessor

from ..errors import DefinitionError, StructgenError
from ..runtime.logits.masks import apply_masks, revive
from ..runtime.rows.bitmask import words_for
from ..runtime.rows.row_pool import row_of
from ..system.properties import cached_property
from ..system.types import Foreign
from ..vocabulary.token_table import eos_ids_of
from ..vocabulary.vocabulary import Vocabulary
from .checks import tell_of_precedence
from .engines import Door, door
from .matcher import Matcher
from .requests import Indexes, Named, check_definition, indexes_with, read_request
from .settings import Settings, settings_for

try:
    from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as SlotProcessor
except ImportError:

    class SlotProcessor:  # type: ignore[no-redef]
        """In place of the interface that older versions lack."""


_log = logging.getLogger(__name__)

#: The key of a request's ``extra_args``, and of the engine's ``additional_config``.
KEY = "structgen"

#: Sampling parameters that may forbid what a definition allows.
_RIVALS = ("min_tokens", "bad_words", "allowed_token_ids", "logit_bias")

#: The number of the logits processor among vLLM's doors.
_PROCESSOR = 1

#: A style of tool calls, with reasoning.
_STAND_IN = "qwen_3"

_NOT_TOLD = (
    "vLLM does not tell its plugins which tokens were sampled while it schedules ahead: pass "
    'logits_processors=["structgen.integrations.vllm:StructgenLogitsProcessor"], or async_scheduling=False'
)


class StructgenLogitsProcessor(RowProcessor, SlotProcessor):
    """A vLLM logits processor that constrains each request that asks for it. vLLM makes it."""

    def __init__(self, vllm_config: Foreign, place: Foreign, is_pin_memory: bool = False) -> None:
        model = vllm_config.model_config
        self._model = model
        self._settings = settings_of(vllm_config)
        self._words = words_for(model.get_vocab_size())
        self._states: Foreign = place  # of the second runner; for the first a device
        self._texts: dict[int, _Text] = {}  # by row in the first runner, by slot in the second

    @cached_property
    def _indexes(self) -> Indexes:
        vocabulary = vocabulary_of(self._model, _tokenizer_of(self._model))
        return indexes_with(vocabulary, self._settings, door("vllm", self._settings, _PROCESSOR))

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
            at = _admitting()
            wanted = read_request(request, at)
            if not isinstance(wanted, Named):
                check_definition(wanted, at.settings.budget)
        except StructgenError as error:
            raise ValueError(f"extra_args[{KEY!r}]: {error}") from error

    def _begin(self, params: Foreign, slot: int, where: str, output: Sequence[int] = ()) -> bool:
        """Put the text of a request into a slot. Returns whether it has a definition."""
        request = _request_of(params)
        self._put(slot, None if request is None else self._text_of(params, request, f"{where} {slot}", output))
        return request is not None

    def _text_of(self, params: Foreign, request: object, where: str, output: Sequence[int]) -> _Text:
        stop_ids = set(params.all_stop_token_ids)
        last_resort = row_of([i for i in stop_ids if 0 <= i < self._words * 32] or [0], self._words).view(np.int32)
        matcher = None
        try:
            most = params.max_tokens if self._settings.max_tokens else None
            wanted = read_request(request, self._indexes.door, _tokenizer_of(self._model))
            matcher = Matcher(self._indexes.of(wanted), stop_ids=stop_ids, max_tokens=most)
        except Exception as error:  # whatever it is, the other requests are not to know
            is_known = isinstance(error, StructgenError)
            _log.error("structgen: %s cannot be served: %s", where, error, exc_info=not is_known)
        has_rivals = any(getattr(params, name, None) for name in _RIVALS)
        return _Text(matcher, last_resort, where, output, has_rivals=has_rivals)

    def _put(self, slot: int, text: _Text | None) -> None:
        self._texts.pop(slot, None)
        if text is not None:
            self._texts[slot] = text

    # -- the first model runner ------------------------------------------------------------------------

    def is_argmax_invariant(self) -> bool:
        """False: a mask forbids tokens, the likeliest ones among them."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow requests that come, go, and change rows."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._put(row, None)
        for row, params, _, output in batch_update.added:
            self._begin(params, row, "row", output)
        for source, target, direction in batch_update.moved:
            moved, other = self._texts.pop(source, None), self._texts.pop(target, None)
            self._put(target, moved)
            if direction == MoveDirectionality.SWAP:
                self._put(source, other)

    # -- the second model runner -----------------------------------------------------------------------

    def add_request(self, req_idx: int, sampling_params: Foreign) -> bool:
        """Begin a request in a slot. Returns whether it has a definition."""
        return self._begin(sampling_params, req_idx, "slot")

    def _follow_slots(self, context: Foreign) -> dict[int, NDArray[np.int32]]:
        """The mask of each row of a slot with a definition. One transfer from the device, and rarely more."""
        if self._texts.keys().isdisjoint(context.idx_mapping_np.tolist()):
            return {}
        columns = (context.expanded_idx_mapping, context.expanded_local_pos, context.pos, context.input_ids)
        rows = len(context.expanded_idx_mapping)
        layout = torch.stack([column[:rows].to(torch.int64) for column in columns]).tolist()
        found = {}
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
            found[row] = text.moved_to(tokens)
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
        if ctx is not None:
            masks = self._follow_slots(ctx)
        else:
            masks = {row: text.moved_to(text.output) for row, text in sorted(self._texts.items())}
        apply_masks(logits, masks)
        # Before this vLLM has forbidden what min_tokens, bad_words, allowed_token_ids and logit_bias say.
        if any(text.has_rivals for text in self._texts.values()) and revive(logits, masks):
            tell_of_precedence()
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
    output:
        The tokens it is to have, which the first model runner appends to.
    has_rivals:
        Whether the request says what else is forbidden.
    """

    def __init__(
        self, matcher: Matcher | None, last_resort: NDArray[np.int32], where: str, output: Sequence[int], *,
        has_rivals: bool,
    ) -> None:  # fmt: skip
        self.output = output
        self.has_rivals = has_rivals
        self._matcher = matcher
        self._last_resort = last_resort
        self._where = where
        self._accepted = 0  # of the tokens seen: the others came after the end, or after one that is not allowed
        self.seen: list[int] = []

    def moved_to(self, tokens: Sequence[int]) -> NDArray[np.int32]:
        """Make the text be of these tokens. Returns the mask, ``int32[words]``."""
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
                    _log.error("structgen: %s ends, %s: %s", self._where, reason, matcher.refusal(token))
            seen.append(token)
        if matcher is None or (self._accepted < len(seen) and not matcher.is_terminated()):
            return self._last_resort
        return matcher.row()


def settings_of(vllm_config: Foreign) -> Settings:
    """The operator's settings. Raises `DefinitionError` for some that mean nothing."""
    config = getattr(vllm_config, "additional_config", None)
    given = config.get(KEY, {}) if isinstance(config, Mapping) else {}
    outputs = getattr(vllm_config, "structured_outputs_config", None)
    if getattr(outputs, "disable_any_whitespace", False) and isinstance(given, Mapping):
        given = {**given, "whitespace": "compact"}
    return settings_for("vllm", given)


def _admitting() -> Door:
    """How requests are read before there is a tokenizer: where its template says the style, another stands for it."""
    settings = settings_for("vllm")
    style = _STAND_IN if settings.tool_style == "auto" else settings.tool_style
    return door("vllm", replace(settings, tool_style=style), _PROCESSOR)


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
