"""`generate`: a decoding loop for transformers that appends what must follow without asking the model.

``model.generate(**inputs, custom_generate=generate, index=index)`` prepares inputs, cache, processors and stopping
criteria as ever, and hands them to the loop here. Where a definition leaves one way to go on, as between the values
of an object, the tokenizer's own tokens for it (`structgen.runtime.guide.forced_tokens`) are appended, and the model
reads them together with the token that it chose last: one forward pass for all of them, over the same ids, positions
and cache as one for each would leave behind.

The rows of a batch stay of one length, as transformers' caches want them: tokens are appended without the model while
every unfinished row has some that must follow. A row that has none has the model asked, and the others take what must
follow in that step.

With ``mode="optimistic"`` tokens are chosen without masks and checked some at a time, for one sequence; see
`structgen.integrations.transformers.optimistic`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch

from ...errors import VocabularyError
from ...runtime.guide.guide import Guide
from ...runtime.guide.tracker import check_shares, vocabulary_of
from ...runtime.logits.masks import apply_masks, revive
from ...system.types import Foreign
from ...vocabulary.token_table import Encode
from ..checks import tell_of_precedence
from ..engine_names import check_attributes, check_engine
from ..refusals import RefusedTokenError
from . import LogitsProcessor, caches
from .loops import place_for_masks
from .optimistic import Distribution, Optimist

if TYPE_CHECKING:
    from ...runtime.index.index import Index

#: What ``generate`` can be asked to return of every step, and that there is none of where the model was not asked.
_OF_EVERY_STEP = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")


def generate(
    model: Foreign,
    input_ids: torch.Tensor,
    logits_processor: Foreign,
    stopping_criteria: Foreign,
    generation_config: Foreign,
    index: Index | Sequence[Index | None],
    encode: Encode | None = None,
    mode: Literal["masked", "optimistic"] = "masked",
    distribution: Distribution = "exact",
    ahead: int | None = None,
    parts: Parts | None = None,
    **model_kwargs: Foreign,
) -> Foreign:
    """Run greedy search or sampling inside a definition, as ``custom_generate=`` of ``model.generate``.

    Forced text is appended without asking the model. Every token is the model's, as with a `LogitsProcessor`, where
    scores, logits, attentions or hidden states of every step are asked for, and for models with a recurrent state
    instead of a cache. Other logits processors do not apply to forced tokens.

    Parameters
    ----------
    model, input_ids, logits_processor, stopping_criteria, generation_config, model_kwargs:
        Passed by ``model.generate``.
    index:
        One index for all rows, or one (or None) for each prompt of the batch; see `LogitsProcessor`.
    encode:
        A function that splits a text into token ids, without special tokens. None: the vocabulary's own.
    mode:
        ``"masked"``; or ``"optimistic"``, for one sequence: tokens are sampled without a mask and checked
        afterwards.
    distribution:
        The distribution of optimistic decoding. ``"exact"``: that of masking at each step. ``"lenient"``: close to
        the model's own.
    ahead:
        In optimistic decoding, the most tokens between two checks. None: 16 on a device, 1 on the CPU.
    parts:
        Internal parts of the loop, which `TracedGenerate` replaces.

    Returns
    -------
    int64[rows, length]
        The ids; or a ``ModelOutput`` with ``return_dict_in_generate``. Its cache lacks tokens after the last one
        that the model was asked for.

    Raises
    ------
    ValueError
        For another mode than greedy search and sampling, and for several sequences in optimistic decoding.
    UnsupportedError
        For a cache that cannot be cropped, in optimistic decoding.
    VocabularyError
        Where there is no tokenizer: pass ``encode``.
    TokenIdError
        For a token that is not allowed, as other processors can force one; names the row.
    """
    parts = parts or PLAIN
    check_engine("transformers.generate")
    check_attributes("transformers.generate", generation_config)
    indexes = tuple(index) if isinstance(index, Sequence) else (index,)
    vocabulary = vocabulary_of(indexes)
    check_shares(len(input_ids), len(indexes))
    strategy = generation_config.get_generation_mode()
    if strategy not in ("greedy_search", "sample"):
        name = getattr(strategy, "value", strategy)
        raise ValueError(f"generate() is for greedy search and sampling, not for {name}")
    streamer = _streamer()
    asked = generation_config.return_dict_in_generate and any(getattr(generation_config, o) for o in _OF_EVERY_STEP)
    if asked or getattr(model, "_is_stateful", False):
        masks = parts.masks(indexes, input_ids.shape[1])
        return model._sample(
            input_ids, _with(logits_processor, masks), stopping_criteria, generation_config, streamer=streamer,
            **model_kwargs,
        )  # fmt: skip
    reader = _Reader(model, generation_config, model_kwargs, input_ids.shape[1])
    if mode == "optimistic":
        ids = _optimistic(
            parts, reader, input_ids, indexes[0], logits_processor, stopping_criteria, streamer,
            samples=generation_config.do_sample, distribution=distribution, ahead=ahead,
        )  # fmt: skip
        return reader.answer(ids) if generation_config.return_dict_in_generate else ids
    if vocabulary is not None and encode is None and vocabulary.encode is None:
        raise VocabularyError(
            "which tokens must follow is up to the tokenizer, and the vocabulary came without one",
            remedy="Pass encode=, or make the vocabulary from the tokenizer.",
        )
    share = len(input_ids) // len(indexes)
    guides = [None if index is None else parts.guide(index) for index in indexes for _ in range(share)]
    rows = parts.rows(input_ids, guides, encode, stopping_criteria, generation_config, streamer)
    processors = _with(logits_processor, rows)
    with reader:
        while True:
            while not rows.done and reader.takes_more() and rows.all_forced():
                rows.append(None)
            if rows.done:
                break
            scores = processors(rows.ids, reader.read(rows.ids))
            if generation_config.do_sample:
                chosen = torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1).squeeze(1)
            else:
                chosen = scores.argmax(dim=-1)
            rows.append(chosen)
    if streamer is not None:
        streamer.end()
    return reader.answer(rows.ids) if generation_config.return_dict_in_generate else rows.ids


def _optimistic(
    parts: Parts, reader: _Reader, ids: torch.Tensor, index: Index | None, processors: Foreign, criteria: Foreign,
    streamer: Foreign, *, samples: bool, distribution: Distribution, ahead: int | None,
) -> torch.Tensor:  # fmt: skip
    if len(ids) != 1 or index is None:
        raise ValueError("optimistic decoding is for one sequence, with an index")
    place = place_for_masks(processors)
    optimist = parts.optimist(
        reader, parts.guide(index), processors[:place], processors[place:], criteria, streamer,
        samples=samples, distribution=distribution, ahead=ahead,
    )  # fmt: skip
    with reader:
        reader.check_cache()
        ids = optimist.decode(ids)
    if streamer is not None:
        streamer.end()
    return ids


def _streamer() -> Foreign:
    """The streamer that ``model.generate`` was called with: it hands none to loops that are not its own (5.24)."""
    caller: FrameType | None = sys._getframe(1)
    while caller is not None and caller.f_globals.get("__name__", "").startswith(__package__):
        caller = caller.f_back
    return caller.f_locals.get("streamer") if caller is not None and caller.f_code.co_name == "generate" else None


def _with(processors: Foreign, masks: Foreign) -> Foreign:
    """A list of processors with the masks among them."""
    longer = type(processors)(processors)
    longer.insert(place_for_masks(longer), masks)
    return longer


class WrittenRows:
    """The ids of all rows, prompt included, with a guide for each, and the tokens that must follow there.

    It is also the processor that masks the scores.
    """

    def __init__(
        self, ids: torch.Tensor, guides: Sequence[Guide | None], encode: Encode | None, criteria: Foreign,
        config: Foreign, streamer: Foreign,
    ) -> None:  # fmt: skip
        #: ``int64[rows, length]``
        self.ids = ids
        self._running = [True] * len(ids)
        self.done = False
        self._guides = guides
        self._encode, self._criteria, self._streamer = encode, criteria, streamer
        self._forced: list[deque[int]] = [deque() for _ in guides]
        for row in range(len(guides)):
            self._look_ahead(row)
        self._unfinished = torch.ones(len(ids), dtype=torch.bool, device=ids.device)
        pad = config._pad_token_tensor
        # As `_sample` has it: rows that are over are padded where an EOS id can end them.
        pads = pad is not None and any(hasattr(each, "eos_token_id") for each in criteria)
        self._pad = int(pad) if pads else None

    def _look_ahead(self, row: int) -> None:
        guide, forced = self._guides[row], self._forced[row]
        if guide is not None and not forced:
            forced.extend(guide.forced_tokens(self._encode))

    def all_forced(self) -> bool:
        """Whether each row that is running has a token that must follow."""
        return all(bool(forced) or not runs for forced, runs in zip(self._forced, self._running, strict=True))

    def append(self, chosen: torch.Tensor | None) -> None:
        """Append a token to each row: one that must follow, or that was ``chosen`` (``int64[rows]``), or padding."""
        tokens = [0] * len(self._running) if chosen is None else chosen.tolist()
        for row, (runs, forced) in enumerate(zip(self._running, self._forced, strict=True)):
            if runs:
                tokens[row] = forced.popleft() if forced else tokens[row]
                self._advance(row, tokens[row])
            elif self._pad is not None:
                tokens[row] = self._pad
        column = torch.tensor(tokens, dtype=self.ids.dtype, device=self.ids.device)
        self.ids = torch.cat([self.ids, column[:, None]], dim=1)
        if self._streamer is not None:
            self._streamer.put(column.cpu())
        self._unfinished = self._unfinished & ~self._criteria(self.ids, None)
        self._running = self._unfinished.tolist()
        self.done = not any(self._running)

    def _advance(self, row: int, token: int) -> None:
        guide = self._guides[row]
        if guide is not None and not (0 <= token < guide.index.vocabulary.size and guide.advance(token)):
            raise RefusedTokenError(
                guide,
                token,
                where=f"row {row}",
                remedy="Another logits processor may have forbidden or forced tokens (min_new_tokens, ...).",
            )
        self._look_ahead(row)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores of the rows that choose by them."""
        masks = {row: guide.bitmask() for row, guide in self._asking()}
        apply_masks(scores, masks)
        if revive(scores, masks):
            tell_of_precedence()
        return scores

    def _asking(self) -> list[tuple[int, Guide]]:
        """The rows whose next token is the model's choice, and the definition's."""
        pairs = enumerate(zip(self._guides, self._forced, strict=True))
        return [(row, guide) for row, (guide, forced) in pairs if guide is not None and not forced]


class Parts(NamedTuple):
    """What a loop is made of.

    Parameters
    ----------
    guide:
        Makes the guide of a row.
    rows, optimist:
        Decode with masks, and optimistically.
    masks:
        Makes the processor for transformers' own loop, of indexes and the prompt's length.
    """

    guide: Callable[[Index], Guide]
    rows: type[WrittenRows]
    optimist: type[Optimist]
    masks: Callable[[Sequence[Index | None], int], Foreign]


PLAIN = Parts(
    lambda index: Guide(index, max_rollback=0),
    WrittenRows,
    Optimist,
    lambda indexes, length: LogitsProcessor(indexes, prompt_length=length),
)


class _Reader:
    """Has the model read what was appended since it was asked last; a context manager, for the time of decoding."""

    def __init__(self, model: Foreign, config: Foreign, model_kwargs: dict[str, Foreign], prompt: int) -> None:
        self._model, self._config, self._kwargs = model, config, model_kwargs
        self._outputs: Foreign = None
        #: The ids for which the arguments were made.
        self._length = prompt
        self._stack = ExitStack()

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *exception: Foreign) -> None:
        self._stack.close()

    def takes_more(self) -> bool:
        """Whether tokens can be appended to what the model reads next: not to a prompt that is made of embeddings."""
        return self._outputs is not None or self._kwargs.get("inputs_embeds") is None

    def read(self, ids: torch.Tensor) -> torch.Tensor:
        """The scores for what follows ``ids``, ``float32[rows, width]``, the caller's own."""
        new, self._length = ids.shape[1] - self._length, ids.shape[1]
        model, first = self._model, self._outputs is None
        if new:
            self._kwargs = model._update_model_kwargs_for_generation(
                {} if first else self._outputs,
                self._kwargs,
                is_encoder_decoder=model.config.is_encoder_decoder,
                num_new_tokens=new,
            )
        if first:
            if new and hasattr(self._config, "_mask_length"):
                self._config._mask_length += new  # the mask was dropped, being all ones
            self._outputs = model._prefill(ids, self._config, self._kwargs)
            self._stack.enter_context(model._optimize_model_for_decode())
        else:
            inputs = model.prepare_inputs_for_generation(
                ids, next_sequence_length=new if self._kwargs["use_cache"] else None, **self._kwargs
            )
            # A compiled call is made for one token; for others it would be compiled again and again.
            compiled = new == 1 and model._valid_auto_compile_criteria(self._kwargs, self._config)
            forward = model.get_compiled_call(self._config.compile_config) if compiled else model
            self._outputs = forward(**inputs, return_dict=True)
        logits: torch.Tensor = self._outputs.logits[:, -1].to(copy=True, dtype=torch.float32, device=ids.device)
        self._outputs.logits = None  # of a whole prompt they may be large
        return logits

    def check_cache(self) -> None:
        """Have the cache remember what going back takes. Raises `UnsupportedError` where it can't."""
        if self._kwargs["use_cache"]:
            caches.prepare(self._kwargs.get(caches.name()))

    def mark(self) -> tuple[int, dict[str, Foreign], caches.Held]:
        """Where the reader is, for `go_back`."""
        return self._length, dict(self._kwargs), caches.held(getattr(self._outputs, caches.name(), None))

    def go_back(self, mark: tuple[int, dict[str, Foreign], caches.Held]) -> None:
        """Forget what was read after a mark."""
        length, self._kwargs, held = mark
        cache = getattr(self._outputs, caches.name(), None)
        if cache is not None and length < self._length:
            caches.go_back(cache, self._length - length, held)
        self._length = length

    def answer(self, ids: torch.Tensor) -> Foreign:
        """What ``generate`` returns with ``return_dict_in_generate``."""
        outputs: Foreign = import_module("transformers.generation.utils")
        encodes = self._model.config.is_encoder_decoder
        kind = outputs.GenerateEncoderDecoderOutput if encodes else outputs.GenerateDecoderOnlyOutput
        return kind(sequences=ids, **{caches.name(): getattr(self._outputs, caches.name(), None)})
