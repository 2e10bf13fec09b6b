"""The tokens that a structural tag names."""

from __future__ import annotations

import re

from ...errors import VocabularyError
from ...system.properties import cached_property
from ...vocabulary.vocabulary import Vocabulary
from ..programs.program import TokenSet
from .formats import OneToken


class TokenNames:
    """The tokens of a vocabulary, by what a structural tag calls them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        named = vocabulary.special_tokens.items()
        self._ids = {name: token for name, token in named if name and vocabulary.token(token) is None}
        self._first = {name[0] for name in self._ids}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        names = sorted(self._ids, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, names)))

    def has(self, text: str) -> bool:
        """Whether the name of a special token stands in a text."""
        return not self._first.isdisjoint(text) and self._pattern.search(text) is not None

    def split(self, text: str) -> list[tuple[str, TokenSet | None]]:
        """A text in pieces, each with the special token that it is the name of, or None."""
        if not self.has(text):
            return [(text, None)]
        pieces: list[tuple[str, TokenSet | None]] = []
        at = 0
        for found in self._pattern.finditer(text):
            if found.start() > at:
                pieces.append((text[at : found.start()], None))
            pieces.append((found[0], TokenSet((self._ids[found[0]],))))
            at = found.end()
        if at < len(text) or not pieces:
            pieces.append((text[at:], None))
        return pieces

    def tokens(self, format_: OneToken) -> TokenSet:
        """The ids of a format. Raises `VocabularyError` for those that the vocabulary lacks."""
        ids = {number for name in format_.names for number in self._ids_of(name, format_.where)}
        return TokenSet(tuple(sorted(ids)), format_.complement)

    def _ids_of(self, name: int | str, where: str) -> list[int]:
        vocabulary = self._vocabulary
        if isinstance(name, int):
            if 0 <= name < vocabulary.size:
                return [name]
            raise VocabularyError(f"the vocabulary has no token {name}", where=where)
        if name in vocabulary.special_tokens:
            return [vocabulary.special_tokens[name]]
        trie = vocabulary.trie
        node = trie.find(name.encode())
        ids = [] if node is None else trie.token_ids[trie.first_token[node] : trie.first_token[node + 1]].tolist()
        if not ids:
            raise VocabularyError(
                f"the vocabulary has no token {name!r}", where=where, remedy="Name one of its tokens, or an id."
            )
        return ids
