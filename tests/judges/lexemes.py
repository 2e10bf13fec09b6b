"""Random regexes of lexemes, what `re` says of them, and llguidance over bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import numpy as np
import pytest

LETTERS, REPEATS = ("a", "b", ";", "[ab]", "[ab;]", "[^a!xyé]"), ("*", "+", "?", "{1,2}", "{2}")


def random_regex(random: Random, depth: int, letters: Sequence[str] = LETTERS, repeats: Sequence[str] = REPEATS) -> str:
    kind = random.random()
    if depth == 0 or kind < 0.3:
        return random.choice(letters)
    inner = random_regex(random, depth - 1, letters, repeats)
    if kind < 0.6:
        return inner + random_regex(random, depth - 1, letters, repeats)
    if kind < 0.75:
        return f"(?:{inner}|{random_regex(random, depth - 1, letters, repeats)})"
    return f"(?:{inner}){random.choice(repeats)}"


def is_shortest(pattern: str, text: str) -> bool:
    """Whether a text is matched, and nothing is that it begins with, but for the empty text."""
    return re.fullmatch(pattern, text) is not None and not any(
        re.fullmatch(pattern, text[:length]) for length in range(1, len(text))
    )


@cache
def llguidance_tokens() -> object:
    llguidance = pytest.importorskip("llguidance")

    class Tokens:
        eos_token_id = 256
        bos_token_id = None
        tokens = (*(bytes([i]) for i in range(256)), b"\xff<eos>")
        special_token_ids = (256,)

        def __call__(self, text: str | bytes) -> list[int]:
            return list(text.encode() if isinstance(text, str) else text)

    return llguidance.LLTokenizer(llguidance.TokenizerWrapper(Tokens()))


class Peer:
    """A text in llguidance, over bytes; 256 is the end."""

    def __init__(self, grammar: str) -> None:
        llguidance = pytest.importorskip("llguidance")
        made = llguidance.LLMatcher.grammar_from_lark(grammar)
        self.matcher = llguidance.LLMatcher(llguidance_tokens(), made, log_level=0)
        assert not self.matcher.is_error(), self.matcher.get_error()

    def allowed(self) -> list[int]:
        if self.matcher.is_stopped():
            return [256] if self.matcher.is_accepting() else []
        bias = np.frombuffer(self.matcher.compute_logit_bias(), np.uint8)
        # Before a stop the end of the text is allowed as well, and taken back.
        return [int(i) for i in np.flatnonzero(bias[:257]) if i < 256 or self.matcher.is_accepting()]

    def advance(self, token: int) -> bool:
        return not self.matcher.is_stopped() and bool(self.matcher.consume_token(token))


def walk(allowed: Callable[[], list[int]], advance: Callable[[int], bool], random: Random) -> bytes | None:
    """A random text of some letters that comes to its end; None for one that is long."""
    text = bytearray()
    while len(text) < 40:
        tokens = [token for token in allowed() if token in (256, *b"ab;xy!")]
        if not tokens:
            return None
        token = random.choice(tokens)
        if token == 256:
            return bytes(text)
        assert advance(token)
        text.append(token)
    return None
