"""Which of transformers' decoding loops is calling a logits processor.

A processor sees ids and scores, and no more. For most calls that is enough; two things it cannot tell from them:

- A token that was not allowed. In beam sampling and in a draft it is a candidate with a score of ``-inf`` that the
  loop itself drops; anywhere else it is part of the text.
- Ids of another tokenizer. In universal assisted decoding, transformers hands the target's processors to the
  assistant, whose ids mean other tokens.

Both are known to the loop, a few frames up the stack (``GenerationMixin._sample``, ``_beam_search`` and
``_assisted_decoding`` of transformers 4.48 to 5.24). Where none of them is found, as in a loop of someone's own, the
call counts as plain decoding, in which no token is dropped. Looking costs about a microsecond.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType

#: The modules of the loops, and of assistants.
LOOPS, _CANDIDATES = "transformers.generation.utils", "transformers.generation.candidate_generator"

#: From a processor up to the ``generate`` of the target there are a dozen, where an assistant decodes.
_MOST_FRAMES = 32

#: An assistant's ``generate``, which has a decorator for each argument that is called otherwise now, is called so far
#: below the module of its candidates, at most.
_ABOVE = 8


@dataclass(frozen=True)
class Loop:
    """A loop of transformers, as far as a processor needs to know it.

    Parameters
    ----------
    beams:
        The frame of ``_beam_search``; None in another loop.
    drafts:
        The frame of ``_assisted_decoding``, whether it checks a draft or has one written; None in another loop.
    writing:
        Whether a draft is being written, and not checked.
    foreign:
        Whether the ids are those of an assistant with another tokenizer.
    """

    beams: FrameType | None = None
    drafts: FrameType | None = None
    writing: bool = False
    foreign: bool = False

    def drops(self, row: int, position: int, outside: set[int]) -> bool:
        """Whether the token at ``position`` of a row's ids, which was not allowed, is no part of any result.

        Parameters
        ----------
        row, position:
            Where it is.
        outside:
            All rows with such a token.
        """
        if self.drafts is not None:
            return _is_dropped_draft(self.drafts, position, self.writing)
        if self.beams is not None:
            width = self.beams.f_locals.get("num_beams")
            if not isinstance(width, int):
                return False
            first = row - row % width
            return not outside.issuperset(range(first, first + width))
        return False


def _is_dropped_draft(drafts: FrameType, position: int, writing: bool) -> bool:
    """Whether the token at a position is a draft's, and cannot be what the model itself chooses there.

    It could where other processors left nothing to choose from: then the first id is as good as any.
    """
    variables = drafts.f_locals
    accepted, scores = variables.get("input_ids"), variables.get("new_logits")
    place = position - accepted.shape[1] if accepted is not None else -1
    if place < 0 or writing:
        return place >= 0  # what is being written will be checked
    return scores is not None and place < scores.shape[1] and bool((scores[:, place] > -math.inf).any())


_PLAIN = Loop()


def calling_loop() -> Loop:
    """The loop that called the processor that calls this."""
    frame: FrameType | None = sys._getframe(2)
    beams: FrameType | None = None
    writing = foreign = False
    left = _MOST_FRAMES
    while frame is not None and left:
        left -= 1
        module = frame.f_globals.get("__name__")
        if module == LOOPS:
            name = frame.f_code.co_name
            if name == "_assisted_decoding":
                return Loop(drafts=frame, writing=writing, foreign=foreign)
            if name == "_beam_search":
                beams = frame
            elif name == "generate" and not writing:
                left = min(left, _ABOVE)
        elif module == _CANDIDATES:
            writing, left = True, _MOST_FRAMES
            generator = frame.f_locals.get("self")
            foreign = foreign or getattr(generator, "assistant_tokenizer", None) is not None
        frame = frame.f_back
    return _PLAIN if beams is None else Loop(beams=beams)


def place_for_masks(processors: Sequence[object]) -> int:
    """Where in a list of processors masks belong: behind those that change scores, before those that choose by them.

    That is where ``generate`` itself puts what it is handed: top-k and top-p of tokens that are not allowed would
    leave nothing, and a penalty may add to ``-inf``.
    """
    for place, processor in enumerate(processors):
        name = type(processor).__name__
        if name.endswith("Warper") or "Watermark" in name or name == "LogitNormalization":
            return place
    return len(processors)
