"""Optimistic decoding: tokens are chosen without masks, some at a time, and checked together.

A model that knows what it is asked for is seldom wrong, and then a mask changes nothing. So the choice is made among
all tokens; the guide looks at several of them at once, which spares a step its mask and a device its synchronisation.
At the first token that is not allowed the text and the key-value cache go back to the longest valid prefix (Wang et
al. 2023, "Grammar Prompting", Section 3.2), and one step is taken with the mask, from the scores that are there.

``"exact"``: what comes out is what masks at each step give, token for token. ``torch.multinomial`` takes, for one
token, the largest of ``p / q`` with ``q`` drawn from an exponential distribution, independently of ``p`` (the
Gumbel-max trick). So a choice among all tokens that is allowed is the choice among those that are; for another the
random numbers go back to where they were. That holds as long as nothing behind the mask's place looks at more than
one score: with top-k, top-p and their like each step is masked.
``"lenient"``: each token that is allowed is kept as the model chose it, with warpers and all; the distribution is
the model's own up to the first mistake, and not that of masked sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch

from ...runtime.guide.guide import Guide
from ...runtime.logits.masks import apply_masks, revive
from ...system.types import Foreign
from ..checks import tell_of_precedence
from ..local.pace import Pace
from ..refusals import RefusedTokenError

#: How the result is distributed.
Distribution = Literal["exact", "lenient"]

#: Tokens between two checks at most, on a device. On the processor looking at each token costs nothing, and each
#: token behind a mistake a pass.
_MOST = 16

#: Warpers that change no order of scores.
_COMMUTES = frozenset({"TemperatureLogitsWarper", "LogitNormalization"})


class _Step(NamedTuple):
    """A choice: the scores in front of the mask's place, the random numbers' state, and the reader's after it."""

    scores: torch.Tensor
    numbers: torch.Tensor | None
    mark: Foreign


class Optimist:
    """One sequence that is decoded so.

    Parameters
    ----------
    reader:
        Reads ids, and goes back; see `structgen.integrations.transformers.custom_generate`.
    guide:
        The definition.
    before, behind:
        Logits processors in front of the mask's place, and behind it.
    criteria, streamer:
        As transformers has them.
    samples:
        Whether tokens are drawn; else the best one is taken.
    distribution:
        See the module.
    ahead:
        Tokens between two checks at most; None for 16 on a device, and 1 on the processor.
    """

    def __init__(
        self, reader: Foreign, guide: Guide, before: Sequence[Foreign], behind: Sequence[Foreign], criteria: Foreign,
        streamer: Foreign, *, samples: bool, distribution: Distribution, ahead: int | None = None,
    ) -> None:  # fmt: skip
        self._reader, self._guide, self._criteria, self._streamer = reader, guide, criteria, streamer
        self._before, self._behind, self._samples = before, behind, samples
        self._is_exact = distribution == "exact"
        self._masks_always = self._is_exact and any(type(each).__name__ not in _COMMUTES for each in behind)
        self._most, self._size = ahead, guide.index.vocabulary.size
        #: Tokens that were not allowed.
        self.mistakes = 0

    def decode(self, ids: torch.Tensor) -> torch.Tensor:
        """``int64[1, length]``: the prompt, and the text behind it."""
        done = False
        pace = Pace(self._most or (1 if ids.device.type == "cpu" else _MOST))
        while not done:
            if self._masks_always or pace.is_masked():
                ids, done = self._masked(ids, self._scores(ids))
                continue
            start = ids.shape[1]
            steps: list[_Step] = []
            while len(steps) < pace.ahead and not done:
                scores = self._scores(ids)
                numbers = _numbers(scores) if self._samples and self._is_exact else None
                ids = torch.cat([ids, self._chosen(ids, scores)[:, None]], dim=1)
                steps.append(_Step(scores, numbers, self._reader.mark()))
                done = bool(self._criteria(ids, None)[0])
            allowed = self._allowed(ids[0, start:].tolist())
            self._put(ids[:, start : start + allowed])
            if allowed < len(steps):
                self._go_back(steps[allowed])
                pace.wrong(allowed)
                ids, done = self._masked(ids[:, : start + allowed], steps[allowed].scores)
            else:
                pace.right(allowed)
        self.mistakes += pace.mistakes
        return ids

    def _scores(self, ids: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self._reader.read(ids)
        for processor in self._before:
            scores = processor(ids, scores)
        return scores

    def _chosen(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """``int64[1]``: the token that scores lead to."""
        for processor in self._behind:
            scores = processor(ids, scores)
        if self._samples:
            return torch.multinomial(torch.softmax(scores, dim=-1), num_samples=1).squeeze(1)
        return scores.argmax(dim=-1)

    def _allowed(self, tokens: list[int]) -> int:
        """How many tokens the guide accepts."""
        for count, token in enumerate(tokens):
            if not self._takes(token):
                return count
        return len(tokens)

    def _takes(self, token: int) -> bool:
        """Go on with a token, where the guide accepts it."""
        return token < self._size and self._guide.advance(token)

    def _go_back(self, step: _Step) -> None:
        """To where a choice was wrong."""
        self._reader.go_back(step.mark)
        if step.numbers is not None:
            _set_numbers(step.scores, step.numbers)

    def _masked(self, ids: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """A step with the mask, which is written into the scores."""
        masks = {0: self._guide.bitmask()}
        apply_masks(scores, masks)
        if revive(scores, masks):
            tell_of_precedence()
        ids = torch.cat([ids, self._chosen(ids, scores)[:, None]], dim=1)
        if not self._allowed(ids[0, -1:].tolist()):
            raise RefusedTokenError(
                self._guide,
                int(ids[0, -1]),
                where="row 0",
                remedy="Another logits processor may have forbidden or forced tokens (min_new_tokens, ...).",
            )
        self._put(ids[:, -1:])
        return ids, bool(self._criteria(ids, None)[0])

    def _put(self, tokens: torch.Tensor) -> None:
        if self._streamer is not None:
            for token in tokens[0].cpu():
                self._streamer.put(token[None])


def _numbers(scores: torch.Tensor) -> torch.Tensor:
    """The state of the random numbers of the device that scores are on."""
    return torch.cuda.get_rng_state(scores.device) if scores.is_cuda else torch.get_rng_state()


def _set_numbers(scores: torch.Tensor, state: torch.Tensor) -> None:
    if scores.is_cuda:
        torch.cuda.set_rng_state(state, scores.device)
    else:
        torch.set_rng_state(state)
