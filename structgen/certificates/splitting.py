"""Texts as tokens: the fewest that spell one."""

from __future__ import annotations

from ..budget import Meter
from ..vocabulary.vocabulary import Vocabulary

_DOING = "splitting a text into tokens"

#: More than any text has.
_NONE = 1 << 62


def fewest_tokens(vocabulary: Vocabulary, text: bytes, meter: Meter) -> list[int] | None:
    """The fewest tokens whose bytes are a text; None where there are none. Raises `BudgetExceededError`."""
    trie = vocabulary.trie
    best = [(0, -1, -1)] + [(_NONE, -1, -1)] * len(text)  # by end: how many, the last one, and its begin
    for start in meter.each(range(len(text)), _DOING, every=256):
        count, node = best[start][0] + 1, 0
        for end in range(start, len(text) if count <= _NONE else start):
            child = trie.child(node, text[end])
            if child is None:
                break
            node, first = child, int(trie.first_token[child])
            if first < trie.first_token[node + 1] and count < best[end + 1][0]:
                best[end + 1] = count, int(trie.token_ids[first]), start
    found: list[int] = []
    at = len(text)
    while at > 0:
        _, token, at = best[at]
        found.append(token)
    return found[::-1] if at == 0 else None
