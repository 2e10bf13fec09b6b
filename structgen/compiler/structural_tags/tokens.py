"""The tokens that a structural tag names."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import VocabularyError
from ...vocabulary.vocabulary import Vocabulary
from ..programs.program import TokenSet
from ..programs.special_tokens import SpecialTokens
from .formats import OneToken


class TokenNames(SpecialTokens):
    """The tokens of a vocabulary, by what a structural tag calls them.

    Parameters
    ----------
    vocabulary:
        The tokens.
    beyond:
        Ids of others, which no format means.
    """

    def __init__(self, vocabulary: Vocabulary, beyond: Iterable[int] = ()) -> None:
        super().__init__(vocabulary.special_tokens)
        self._vocabulary = vocabulary
        self._beyond = beyond

    def tokens(self, format_: OneToken) -> TokenSet:
        """The ids of a format. Raises `VocabularyError` for those that the vocabulary lacks."""
        ids = {number for name in format_.names for number in self._ids_of(name, format_.where)}
        return self.among(TokenSet(tuple(sorted(ids)), format_.complement))

    def among(self, tokens: TokenSet) -> TokenSet:
        """Those of a set that a format may mean."""
        return TokenSet(tuple(sorted({*tokens.ids, *self._beyond})), True) if tokens.complement else tokens

    def text(self, name: int | str) -> str:
        """What is read of a token that has this id, or this name."""
        return name if isinstance(name, str) else token_text(self._vocabulary, name).decode("utf-8", "replace")

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


def token_text(vocabulary: Vocabulary, token_id: int) -> bytes:
    """What is read of a token: its bytes, or its name, where it has one."""
    data = vocabulary.token(token_id)
    if data is not None:
        return data
    return next((name.encode() for name, i in vocabulary.special_tokens.items() if i == token_id), b"")
