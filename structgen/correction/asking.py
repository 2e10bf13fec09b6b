"""Asking a model which of some candidates stands in the place of a mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .candidates import Candidates

#: Characters of the text so far that the model is shown, and candidates.
_SHOWN, _MOST = 2_000, 20


@dataclass(frozen=True)
class Asked:
    """A question, and what its answers mean."""

    prompt: str
    literals: tuple[str, ...]

    def chosen(self, answer: str) -> str:
        """The candidate whose number an answer names first, or else the answer itself."""
        number = re.search(r"\d+", answer)
        if number is not None and 1 <= int(number[0][:9]) <= len(self.literals):
            return self.literals[int(number[0][:9]) - 1]
        return answer


def ask(prompt: str, candidates: Candidates) -> Asked:
    """The question what stands in the place of a mistake."""
    literals = candidates.literals[:_MOST]
    listed = "\n".join(f"{number}. {literal!r}" for number, literal in enumerate(literals, 1))
    others = f"\nOr something else that begins with {' or '.join(candidates.open)}." if candidates.open else ""
    return Asked(
        f"{prompt}\n\nThe answer begins so:\n{candidates.prefix[-_SHOWN:]}\n\n"
        f"It can't go on with {candidates.dropped[:200]!r}. It can go on with:\n{listed}{others}\n\n"
        "Say only the number of the best one (or the text itself, if it is not listed).\n",
        literals,
    )
