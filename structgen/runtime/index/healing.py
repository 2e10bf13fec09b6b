"""Token healing: the end of a prompt is spelled anew, together with what comes after it.

A prompt that ends in ``http:`` ends in the token ``:``, and a model that has only ever seen ``://`` as one token
takes that for the end of the matter. So the last tokens are taken back, their bytes become a prefix of the text that
is generated, and the tokens that are allowed first are those that are compatible with it: they are a prefix of what
is left of it, or begin with it, and then what goes beyond is what the definition allows.

The name and the idea are guidance's (S. Lundberg, "The Art of Prompt Design: Prompt Boundaries and Token Healing",
2023). How much is taken back differs. ``token_healing=True`` of transformers' ``generate`` takes the last token, if
others begin with it; llguidance (``TokTrie::chop_tokens``) takes the tokens, four at most, that the longest end of
the text touches which a longer allowed token begins with, wherever in a token that end begins. `heal` takes whole
tokens as the former does, as many as the latter: the longest run whose bytes a longer allowed token begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import ArgumentError, FormatError, TokenIdError, UnsupportedError, VocabularyMismatchError
from ...system.arguments import integer
from ...system.types import Foreign
from ...vocabulary.vocabulary import Vocabulary
from ..core.machine import CompiledMachine, Config
from ..core.reference_walk import tokens_from
from .healing_machine import Anything, HealingMachine, is_spelled
from .index import Index

#: Tokens that are taken back at most; as many as in llguidance.
MAX_TOKENS = 4


@dataclass(frozen=True)
class Healed:
    """A prompt without its last tokens, and what spells them anew.

    Parameters
    ----------
    prompt_ids:
        What is left of the prompt.
    prefix:
        The bytes of the tokens that were taken back: the generated text begins with them.
    index:
        For `Guide`, `GuideBatch` and the logits processor: first the prefix, then the definition. It is the index
        that `heal` was given where nothing was taken back.
    """

    prompt_ids: list[int]
    prefix: bytes
    index: Index


def heal(
    prompt_ids: Sequence[int],
    vocabulary: Vocabulary,
    index: Index | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    behind: Config | None = None,
) -> Healed:
    """Take back the last tokens of a prompt where the model may prefer others (token healing).

    These are the longest run of tokens at the end of the prompt whose bytes begin some longer token, the rest of
    which the definition allows. Special tokens, tokens before them and the first token of the prompt are never
    taken back. With a vocabulary that lacks single bytes, a token is taken back only where its text can always be
    written in whole tokens again.

    Parameters
    ----------
    prompt_ids:
        The prompt, as ids of the vocabulary. (Not a text: the same text can be other tokens.)
    vocabulary:
        The tokens.
    index:
        The definition of the text behind the prompt. None: any text.
    max_tokens:
        The most tokens to take back.
    behind:
        The configuration of the index's machine behind the prompt, where part of the text is in the prompt already.
        None: the start.

    Returns
    -------
    Healed
        The remaining ``prompt_ids``, the ``prefix`` of bytes that were taken back, and an ``index`` of texts that
        begin with the prefix.

    Raises
    ------
    VocabularyMismatchError
        For an index of another vocabulary.
    TokenIdError
        For an id outside the vocabulary, among those that were read.
    """
    if index is not None and index.vocabulary.fingerprint != vocabulary.fingerprint:
        raise VocabularyMismatchError(
            f"the index belongs to {index.vocabulary!r}, the prompt to {vocabulary!r}",
            remedy="Compile the definition with the model's own vocabulary.",
        )
    if index is not None and behind is None:
        index = index.over(vocabulary)
    ids = [integer(i, "a token id", TokenIdError) for i in prompt_ids]
    max_tokens = integer(max_tokens, "max_tokens", ArgumentError, least=0)
    machine = Anything(vocabulary) if index is None else index.machine
    tails = [b""]
    for token_id in reversed(ids[1:]):
        data = vocabulary.token(token_id)
        if data is None or len(tails) > max_tokens:
            break
        tails.append(data + tails[-1])
    config = machine.start if behind is None else behind
    while tails[-1] and not _can_heal(vocabulary, index, machine, tails[-1], config):
        tails.pop()
    prefix = tails[-1]
    kept = ids[: len(ids) - len(tails) + 1]
    if index is None:
        return Healed(kept, prefix, HealedIndex(prefix, machine, None))
    return Healed(kept, prefix, index if behind is None and not prefix else _remembered(prefix, index, behind))


def _remembered(prefix: bytes, index: Index, behind: Config | None = None) -> Index:
    healed = index.healed.get((prefix, behind))
    if healed is None:
        healed = index.healed[prefix, behind] = HealedIndex(prefix, index.machine, index, behind)
    return healed


def _can_heal(
    vocabulary: Vocabulary, index: Index | None, machine: CompiledMachine, prefix: bytes, behind: Config
) -> bool:
    """Whether longer tokens begin with a prefix, and all ways over it lead to where a definition's own texts lead.

    The compiler has seen to it that every text that tokens spell can be finished. So the bytes beyond the prefix have
    to be such a text, too.
    """
    if not any(map(len, tokens_from(vocabulary, machine, behind, prefix))):
        return False
    if vocabulary.is_bytewise or index is None:
        return True
    return all(
        is_spelled(vocabulary, (vocabulary.token(token_id) or b"")[len(prefix) - offset :])
        for offset in range(len(prefix))
        for nodes in tokens_from(vocabulary, machine, behind, prefix[offset:])
        for token_id in vocabulary.trie.token[nodes].tolist()
    )


class HealedIndex(Index):
    """An index whose texts begin with a prefix; made by `heal`. It is used as any other, and can't be saved.

    Parameters
    ----------
    prefix:
        What texts begin with.
    machine:
        The machine of what follows.
    inner:
        Its index; None where anything may follow.
    behind:
        The machine's configuration behind the prefix; None for its start.
    """

    def __init__(
        self, prefix: bytes, machine: CompiledMachine, inner: Index | None, behind: Config | None = None
    ) -> None:
        super().__init__(
            "healed",
            f"{prefix!r}, then {'anything' if inner is None else inner.definition}",
            HealingMachine(prefix, machine, behind),
            origin="compiled" if inner is None else inner.origin,
            relaxations=() if inner is None else inner.relaxations,
        )
        self.prefix = prefix
        self.inner = inner
        self._behind = behind

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Foreign, ...]]:
        if self._behind is not None:
            raise FormatError("an index behind a text can't be pickled", remedy="Pickle the index that was healed.")
        return _healed_again, (self.prefix, self.inner, self.vocabulary)

    def _again(self, vocabulary: Vocabulary) -> Index:
        if self._behind is not None:
            raise UnsupportedError(
                "an index behind a text keeps to its vocabulary", remedy="Heal over the vocabulary that is served."
            )
        return _healed_again(self.prefix, self.inner and self.inner.over(vocabulary), vocabulary)

    def to_bytes(self, *, with_vocabulary: bool = True) -> bytes:
        """Refused with a `FormatError`: an index is kept without a prefix."""
        raise FormatError("an index with a prefix can't be saved", remedy="Save the index that was healed.")


def _healed_again(prefix: bytes, inner: Index | None, vocabulary: Vocabulary) -> Index:
    """A `HealedIndex` that was pickled."""
    return HealedIndex(prefix, Anything(vocabulary), None) if inner is None else _remembered(prefix, inner)
