"""Checks of adapters: that an index is for the tokens of the model, and that a definition has the last word."""

from __future__ import annotations

import logging
from functools import cache

from ..errors import VocabularyError, VocabularyMismatchError
from ..runtime.index.index import Index
from ..vocabulary.vocabulary import Vocabulary


def index_of_model(index: Index, own: Vocabulary, *, remedy: str) -> Index:
    """An index over the vocabulary of a model, whose texts end where the model ends them.

    An index for fewer tokens stays as it is: ids that it knows no bytes of are never allowed, except its EOS ids.

    Parameters
    ----------
    index:
        Compiled for the model's tokens, or for some of them.
    own:
        The model's.
    remedy:
        What the caller can do.

    Raises
    ------
    VocabularyMismatchError
        For the first token whose bytes differ, or a vocabulary larger than the model's.
    VocabularyError
        Where the model goes on after an EOS id of the index.
    """
    expected = index.vocabulary
    if expected.fingerprint == own.fingerprint:
        return index.over(own)
    if expected.spelled > own.size:
        raise VocabularyMismatchError(
            f"the index was compiled for {expected.spelled:,} token ids, the model has {own.size:,}", remedy=remedy
        )
    for i in range(expected.spelled):
        if (token := expected.token(i)) is not None and token != own.token(i):
            raise VocabularyMismatchError(
                f"the index was compiled for token {token!r}, the model's is {own.token(i)!r}",
                where=f"token {i}",
                remedy=remedy,
            )
    if not set(expected.eos_ids) <= set(own.eos_ids):
        raise VocabularyError(
            f"the index ends a text at the ids {list(expected.eos_ids)}, the model at {list(own.eos_ids)}",
            remedy=remedy,
        )
    return index


@cache
def tell_of_precedence() -> None:
    """Say once that a definition comes before what a sampler forbids."""
    logging.getLogger(__name__).warning(
        "structgen: what min_tokens, min_new_tokens, bad_words and other processors forbid holds as far as the "
        "definition leaves a choice; where it leaves none, and where its text ends, the definition wins"
    )
