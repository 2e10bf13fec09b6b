"""Definitions whose texts are a list of words, so that their masks can be told without any automaton."""

from __future__ import annotations

import random
from collections.abc import Sequence

import structgen as sg

EOS = 256
VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[EOS])


def random_words(seed: int) -> tuple[str, ...]:
    """Some words of few letters: many have beginnings in common."""
    draw = random.Random(seed)
    words = {"".join(draw.choice("abc") for _ in range(draw.randrange(1, 6))) for _ in range(8)}
    return tuple(sorted(words))


def definition_of(words: Sequence[str]) -> sg.Regex:
    """The definition that has these texts and no others."""
    return sg.Regex("|".join(words))


def check_masks(index: sg.Index, words: Sequence[str]) -> None:
    """Compare the mask behind every beginning of a word with the words themselves."""
    for beginning in {word[:end] for word in words for end in range(len(word) + 1)}:
        guide = sg.Guide(index)
        for letter in beginning.encode():
            guide.advance(letter)
        expected = {ord(word[len(beginning)]) for word in words if word.startswith(beginning) and word != beginning}
        expected |= {EOS} if beginning in words else set()
        assert {token for token in range(EOS + 1) if guide.allows(token)} == expected, (beginning, words)
