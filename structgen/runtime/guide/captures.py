"""What a guide's text captures: the parts that rules of a grammar name, with their bytes and tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..index.index import Index


@dataclass(frozen=True)
class Capture:
    """A part of a text that a rule of a grammar captures, ``name[capture]: ...``.

    Parameters
    ----------
    name:
        Under which it is captured.
    data:
        Its bytes.
    span:
        The first of these in the text, and the one behind the last.
    tokens:
        The first token that has some of its bytes, and the one behind the last, counted from the guide's first. Of an
        empty part they are the same.
    """

    name: str
    data: bytes
    span: tuple[int, int]
    tokens: tuple[int, int]


def captures(index: Index, tokens: Iterable[int]) -> tuple[Capture, ...]:
    """What is captured of accepted tokens; an inner part before an outer one."""
    vocabulary = index.vocabulary
    pieces = [(token, vocabulary.token(token) or b"") for token in tokens]
    while pieces and pieces[-1][0] in vocabulary.eos_ids:
        pieces.pop()
    ends = [*accumulate(len(data) for _, data in pieces)]
    whole = b"".join(data for _, data in pieces)
    return tuple(
        Capture(
            name,
            whole[start:end],
            (start, end),
            (first := bisect_right(ends, start), bisect_left(ends, end) + 1 if end > start else first),
        )
        for name, start, end in index.machine.captured(pieces)
    )
