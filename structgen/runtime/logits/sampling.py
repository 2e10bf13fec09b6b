"""Sampling without a mask: candidates are tested in the order of their probability until the sampler has enough.

Greedy search, top-k and top-p look at a few tokens of 100,000. Where a guide's row is known, masking all logits
costs less than anything; where nobody worked it out yet, `Guide.allows` on a handful of candidates takes
microseconds and a new row up to milliseconds. The distribution is the same as with the whole mask: tokens that were
not tested are either less probable than what the sampler keeps, or their share is bounded so closely that it makes
no difference to what is kept; where that can't be shown within `MOST_TESTED` tokens, the mask is used.

The order is that of transformers and most engines: mask, temperature, top-k, then top-p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from numbers import Real

import torch

from ...errors import ArgumentError, BitmaskError
from ...system.arguments import TEMPERATURES, integer, is_temperature
from ..guide.guide import Guide
from .masks import apply_bitmask, check_logits

#: Candidates that are tested before the mask is used, and how many are taken at first.
MOST_TESTED, _FIRST = 512, 16


@dataclass(frozen=True)
class Sampler:
    """How a token is chosen.

    Parameters
    ----------
    temperature:
        Logits are divided by it; 0 is greedy search. One that a grammar's rule has stands in for it.
    top_k:
        Keep the so many most probable tokens, and those that are as probable as the last of them; None: all.
    top_p:
        Keep the most probable tokens that together have this probability (nucleus sampling, Holtzman et al. 2020);
        1 keeps all.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if self.top_k is not None:
            integer(self.top_k, "top_k", ArgumentError, least=1)
        for name, value in (("temperature", self.temperature), ("top_p", self.top_p)):
            if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
                raise ArgumentError(f"{name} is a finite number, got {value!r}")
        if not is_temperature(self.temperature) or not 0 < self.top_p <= 1:
            raise ArgumentError(f"a temperature is {TEMPERATURES}, top_p in (0, 1]: {self}")

    def sample(self, logits: torch.Tensor, guide: Guide, *, generator: torch.Generator | None = None) -> int:
        """A token that the guide allows, at random; see `distribution`."""
        ids, probabilities = self.distribution(logits, guide)
        if len(ids) == 1:
            return int(ids[0])
        return int(ids[torch.multinomial(probabilities, 1, generator=generator)])

    def distribution(self, logits: torch.Tensor, guide: Guide) -> tuple[torch.Tensor, torch.Tensor]:
        """What the sampler draws from.

        Parameters
        ----------
        logits:
            ``[width]``, float32, float16 or bfloat16, of one sequence, on any device.
        guide:
            Where the sequence is.

        Returns
        -------
        ``int64[n]`` and ``float32[n]``: the tokens that are kept, the most probable first, and their probabilities,
        which sum to 1.

        Raises
        ------
        BitmaskError
            For logits of another dtype or shape, or where no token is allowed that has a finite logit.
        """
        size = guide.index.vocabulary.size
        check_logits(logits, (1,), is_written=False)
        if len(logits) < size:
            raise BitmaskError(f"the vocabulary has {size} ids, the logits are of width {len(logits)}")
        logits, of_rule = logits[:size], guide.temperature
        temperature = self.temperature if of_rule is None else of_rule
        if temperature == 0 or self.top_k == 1:
            return self._greedy(logits, guide)
        if self.top_k is not None or self.top_p < 1:
            found = self._tested(logits.float() / temperature, guide)
            if found is not None:
                return found
        masked = apply_bitmask(logits.float() / temperature, guide.bitmask())
        ids = torch.nonzero(masked > -torch.inf).flatten()
        if self.top_k is not None and self.top_k < len(ids):
            ids = torch.nonzero(masked >= torch.topk(masked, self.top_k).values[-1]).flatten()
        scores, order = torch.sort(masked[ids], descending=True)
        return self._kept(scores, ids[order])

    def _greedy(self, logits: torch.Tensor, guide: Guide) -> tuple[torch.Tensor, torch.Tensor]:
        best = int(logits.argmax())
        if not guide.allows(best) or not bool(logits[best] > -torch.inf):
            for _, ids in _in_order(logits):
                found = next((token for token in ids.tolist() if guide.allows(token)), None)
                if found is not None:
                    best = found
                    break
            else:
                best = int(apply_bitmask(logits.clone(), guide.bitmask()).argmax())
            if not guide.allows(best) or not bool(logits[best] > -torch.inf):
                raise _nothing_left()
        return torch.tensor([best]), torch.ones(1)

    def _tested(self, scores: torch.Tensor, guide: Guide) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The distribution, from as few tokens as show it; None where too many would have to be tested."""
        tested: dict[int, bool] = {}  # equal scores may come in another order, each time
        scores = scores - scores.max()  # or the exponentials would overflow
        total = float(scores.double().exp().sum()) if self.top_k is None else 0.0
        for values, ids in _in_order(scores):
            order = ids.tolist()
            tested.update((token, guide.allows(token)) for token in order if token not in tested)
            allowed = [place for place, token in enumerate(order) if tested[token]]
            if 16 * len(allowed) < len(order):
                return None  # few tokens are allowed here, and such a mask costs little
            kept, names = values[allowed], ids[allowed]
            if self.top_k is not None:
                # What is as probable as the last one counts, too.
                if len(kept) >= self.top_k and bool(values[-1] < kept[self.top_k - 1]):
                    return self._kept(kept, names)
            elif allowed:
                # All that was not tested may be allowed, or none of it.
                weights = kept.double().exp()
                least = float(weights.sum())
                rest = max(0.0, total - float(values.double().exp().sum()))
                fewest, most = (_nucleus(weights, bound, self.top_p) for bound in (least, least + rest))
                if fewest == most <= len(kept):
                    weights = weights[:fewest]
                    return names[:fewest].cpu(), (weights / weights.sum()).float().cpu()
        return None

    def _kept(self, scores: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Top-k, then top-p, of allowed tokens in the order of their scores."""
        count = len(scores)
        if not count:
            raise _nothing_left()
        if self.top_k is not None and self.top_k < count:
            count = int((scores[:count] >= scores[self.top_k - 1]).sum())
        weights = torch.softmax(scores[:count].double(), 0)
        kept = min(count, _nucleus(weights, 1.0, self.top_p)) if self.top_p < 1 else count
        weights = weights[:kept]
        return ids[:kept].cpu(), (weights / weights.sum()).float().cpu()


def _in_order(scores: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The best scores and their ids, descending: a few, then more, each time from the first; none is ``-inf``."""
    count = _FIRST
    while count <= min(MOST_TESTED, len(scores)):
        values, ids = torch.topk(scores, count)
        finite = int((values > -torch.inf).sum())
        yield values[:finite], ids[:finite]
        if finite < count:
            return
        count *= 4


def _nucleus(weights: torch.Tensor, total: float, share: float) -> int:
    """How many of some weights, descending, come to a share of the total; one more than there are, if they don't."""
    before = torch.cumsum(weights, 0)
    return int((before < share * total).sum()) + 1


def _nothing_left() -> BitmaskError:
    return BitmaskError(
        "no token is allowed that has a finite logit",
        remedy="Another processor may have forbidden the tokens that the definition needs.",
    )
