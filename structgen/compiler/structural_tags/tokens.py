"""The tokens that a structural tag names."""

from __future__ import annotations

from ...errors import VocabularyError
from ...vocabulary.vocabulary import Vocabulary
from ..programs.program import TokenSet
from ..programs.special_tokens import SpecialTokens
from .formats import OneToken


class TokenNames(SpecialTokens):
    """The tokens of a vocabulary, by what a structural tag calls them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary.special_tokens)
        self._vocabulary = vocabulary

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
