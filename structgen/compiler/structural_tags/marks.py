"""Marks: tokens of no text, which say in a program where the texts of labelled formats begin and end.

A program with marks has the texts of the same program without, with a mark before and behind each text that has a
label. Whoever follows it takes marks where they may stand, and knows what each part of the text is (captures, as in
tagged automata, Laurikari 2000).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...vocabulary.vocabulary import Vocabulary
from ..programs.program import TokenSet
from .formats import Format


class Label(NamedTuple):
    """What a part of a text is.

    Parameters
    ----------
    name:
        As the format says; empty for what stands behind a trigger.
    triggers:
        What the text ends with, before another one with an empty name begins in it.
    """

    name: str
    triggers: tuple[str, ...] = ()


class Marks:
    """The marks of one program: tokens beyond those of the vocabulary, a first one that closes, and one a label.

    ``formats`` are all of the program's, those within before those that they are in.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._numbers: dict[Label, int] = {}
        self.labels: list[Label] = []
        self.formats: list[Format] = []

    def make_room(self, formats: list[Format]) -> None:
        """Have marks for these formats, each of which has a label at most, and what is behind its triggers."""
        self.formats = formats

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens with the marks behind them."""
        before = self._vocabulary
        ends = np.full(len(self.ids), before.offsets[-1], before.offsets.dtype)
        return Vocabulary(np.concatenate([before.offsets, ends]), before.blob, before.eos_ids, before.special_tokens)

    @property
    def ids(self) -> range:
        """All of them."""
        return range(self.close, self.close + 2 + len(self.formats))

    @property
    def close(self) -> int:
        """The mark behind the text that began last."""
        return self._vocabulary.size

    def open(self, label: Label) -> int:
        """The mark before texts with a label."""
        number = self._numbers.setdefault(label, len(self.labels))
        if number == len(self.labels):
            self.labels.append(label)
        return self.close + 1 + number

    def label(self, mark: int) -> Label:
        """What `open` was asked for."""
        return self.labels[mark - self.close - 1]

    def around(self, label: Label) -> tuple[TokenSet, TokenSet]:
        """The marks before and behind."""
        return TokenSet((self.open(label),)), TokenSet((self.close,))
