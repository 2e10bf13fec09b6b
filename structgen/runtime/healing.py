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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import index as as_int
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, VocabularyMismatchError
from ..vocabulary.vocabulary import Vocabulary
from .bitmask import fill_first
from .index import AnyMachine, Index
from .machine import Config, Machine, Match

#: Tokens that are taken back at most; as many as in llguidance.
MAX_TOKENS = 4

#: Prefixes that an index remembers, with their rows.
_MAX_PREFIXES = 256


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
    prompt_ids: Sequence[int], vocabulary: Vocabulary, index: Index | None = None, *, max_tokens: int = MAX_TOKENS
) -> Healed:
    """Take back the last tokens of a prompt where the model may rather write others.

    These are the longest run of tokens at the prompt's end whose bytes some longer token begins with, the rest of
    which the definition allows. Special tokens, which have no bytes, are never taken back, nor what is before them,
    nor the first token of the prompt: a model has to begin with something. With a vocabulary that is not bytewise,
    none are taken back whose spelling anew could end in the middle of a token, where no other goes on.

    Parameters
    ----------
    prompt_ids:
        The prompt, as ids of the vocabulary. (Not as text: the same text can be other tokens, and a tokenizer of the
        SentencePiece family may hide a space at its beginning. The bytes of a vocabulary's tokens have it.)
    vocabulary:
        The tokens.
    index:
        What the text behind the prompt has to be; None for anything.
    max_tokens:
        Tokens to take back at most.

    Raises
    ------
    VocabularyMismatchError
        For an index of another vocabulary.
    TokenIdError
        For an id outside the vocabulary, among those that were looked at.
    """
    if index is not None and index.vocabulary.fingerprint != vocabulary.fingerprint:
        raise VocabularyMismatchError(
            f"the index belongs to {index.vocabulary!r}, the prompt to {vocabulary!r}",
            remedy="Compile the definition with the model's own vocabulary.",
        )
    ids = [as_int(i) for i in prompt_ids]
    machine: Machine = _Anything(vocabulary) if index is None else index.machine
    tails = [b""]
    for token_id in reversed(ids[1:]):
        data = vocabulary.token(token_id)
        if data is None or len(tails) > max_tokens:
            break
        tails.append(data + tails[-1])
    while tails[-1] and not _can_heal(vocabulary, machine, tails[-1]):
        tails.pop()
    prefix = tails[-1]
    kept = ids[: len(ids) - len(tails) + 1]
    if index is None:
        return Healed(kept, prefix, HealedIndex(prefix, machine, None))
    return Healed(kept, prefix, _remembered(prefix, index) if prefix else index)


def _remembered(prefix: bytes, index: Index) -> Index:
    healed = index.healed.get(prefix)
    if healed is None:
        if len(index.healed) >= _MAX_PREFIXES:
            index.healed.clear()
        healed = index.healed[prefix] = HealedIndex(prefix, index.machine, index)
    return healed


def _can_heal(vocabulary: Vocabulary, machine: Machine, prefix: bytes) -> bool:
    """Whether longer tokens begin with a prefix, and all ways over it lead to where a definition's own texts lead.

    The compiler has seen to it that every text that tokens spell can be finished. So the bytes beyond the prefix have
    to be such a text, too.
    """
    if not any(map(len, _beyond(vocabulary, machine, prefix))):
        return False
    if vocabulary.is_bytewise or isinstance(machine, _Anything):
        return True
    return all(
        _is_spelled(vocabulary, (vocabulary.token(token_id) or b"")[len(prefix) - offset :])
        for offset in range(len(prefix))
        for nodes in _beyond(vocabulary, machine, prefix[offset:])
        for token_id in vocabulary.trie.token[nodes].tolist()
    )


def _is_spelled(vocabulary: Vocabulary, text: bytes) -> bool:
    """Whether some sequence of tokens has these bytes."""
    reached = {0}
    for begin in range(len(text)):
        if begin in reached:
            reached.update(begin + length for length, _ in _prefixes(vocabulary, text[begin:]))
    return len(text) in reached


def _prefixes(vocabulary: Vocabulary, text: bytes) -> Iterator[tuple[int, int]]:
    """Tokens that a text begins with: their length, and their node in the trie."""
    trie = vocabulary.trie
    node = 0
    for length, byte in enumerate(text, 1):
        child = trie.child(node, byte)
        if child is None:
            return
        node = child
        if trie.token[node] < 32 * vocabulary.words:
            yield length, node


def _beyond(vocabulary: Vocabulary, machine: Machine, prefix: bytes) -> Iterator[NDArray[np.int64]]:
    """Tokens that are longer than a prefix and begin with it, and whose rest a definition's texts can begin with.

    They come as nodes of the trie where some token ends, ``int64[n]``, shorter ones first. The trie is walked below
    the prefix, one depth after another, and the machine takes each step that is the same for many nodes once.
    """
    trie = vocabulary.trie
    node = trie.find(prefix)
    if node is None:
        return
    end, no_token = int(trie.skip[node]), 32 * vocabulary.words
    if isinstance(machine, _Anything):
        yield node + 1 + np.flatnonzero(trie.token[node + 1 : end] < no_token)
        return
    configs, depth = [machine.start], len(prefix)
    level, at = np.array([node]), np.zeros(1, np.int64)  # live nodes of one depth, and which configuration each has
    while len(level):
        depth += 1
        nodes = node + 1 + np.flatnonzero(trie.depth[node + 1 : end] == depth)
        above = np.searchsorted(level, nodes) - 1
        below = (above >= 0) & (nodes < trie.skip[level[above]])
        nodes, above = nodes[below], above[below]
        steps, inverse = np.unique(at[above] << 8 | trie.byte[nodes], return_inverse=True)
        targets = [machine.follow_byte(configs[step >> 8], step & 255) for step in steps.tolist()]
        numbers = {config: number for number, config in enumerate(dict.fromkeys(targets)) if config is not None}
        at = np.array([numbers.get(config, -1) for config in targets], np.int64)[inverse]
        level, at = nodes[at >= 0], at[at >= 0]
        configs = list(dict.fromkeys(targets))
        yield level[trie.token[level] < no_token]


class _Anything:
    """The `Machine` of any text: every id is allowed, and an EOS id ends it."""

    start: Config = 0

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._eos_ids = frozenset(vocabulary.eos_ids)
        self._row = np.zeros(vocabulary.words, np.int32)
        fill_first(self._row, vocabulary.size)
        self._row.flags.writeable = False

    def advance(self, config: Config, token_id: int) -> Config | None:
        return None if token_id in self._eos_ids else config

    def follow_byte(self, config: Config, byte: int) -> Config | None:
        return config

    def repeats(self, config: Config) -> bool:
        return True

    def row(self, config: Config) -> NDArray[np.int32]:
        return self._row

    def is_accepting(self, config: Config) -> bool:
        return True


class _Spelling:
    """A configuration: how much of the prefix there is already, with what was found out about it."""

    __slots__ = ("offset", "row", "targets")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.targets: dict[int, Config | None] = {}
        self.row: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return f"<prefix from byte {self.offset}>"


class HealingMachine:
    """A prefix, then a definition, as a `structgen.runtime.machine.Machine`.

    Its configurations are places in the prefix and, behind it, those of the definition's machine. Safe to use from
    several threads.

    Parameters
    ----------
    prefix:
        What the text begins with.
    inner:
        The definition's machine.
    vocabulary:
        The tokens.
    """

    def __init__(self, prefix: bytes, inner: Machine, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._prefix = prefix
        self._inner = inner
        self._places: list[Config] = [*map(_Spelling, range(len(prefix))), inner.start]
        self._can_go_on = self._find_ways()

    def _find_ways(self) -> list[bool]:
        """For each place in the prefix, from the last one on, whether tokens lead from there to the definition."""
        single = self.vocabulary.single_bytes[list(self._prefix)].tolist()
        found = [True]
        for offset in reversed(range(len(self._prefix))):
            rest = self._prefix[offset:]
            found.append(
                (single[offset] and found[-1])
                or any(found[len(rest) - length] for length, _ in _prefixes(self.vocabulary, rest))
                or any(map(len, _beyond(self.vocabulary, self._inner, rest)))
            )
        return found[::-1]

    @property
    def start(self) -> Config:
        """The configuration before the prefix."""
        return self._places[0]

    def advance(self, config: Config, token_id: int) -> Config | None:
        """Where a token leads; ``None`` where it is not compatible with the prefix, or its rest not allowed."""
        if type(config) is not _Spelling:
            return self._inner.advance(config, token_id)
        try:
            return config.targets[token_id]
        except KeyError:
            target = config.targets[token_id] = self._target(config.offset, self.vocabulary.token(token_id))
            return target

    def _target(self, offset: int, data: bytes | None) -> Config | None:
        if not data:
            return None
        rest = self._prefix[offset:]
        if len(data) <= len(rest):
            after = offset + len(data)
            return self._places[after] if rest.startswith(data) and self._can_go_on[after] else None
        target: Config | None = self._inner.start if data.startswith(rest) else None
        for byte in data[len(rest) :]:
            if target is None:
                return None
            target = self._inner.follow_byte(target, byte)
        return target

    def follow_byte(self, config: Config, byte: int) -> Config | None:
        """Where a byte leads; ``None`` where no text goes on with it."""
        if type(config) is not _Spelling:
            return self._inner.follow_byte(config, byte)
        return self._places[config.offset + 1] if self._prefix[config.offset] == byte else None

    def repeats(self, config: Config) -> bool:
        """Whether single bytes are worth remembering; not those of the prefix, which a vocabulary may not spell."""
        return type(config) is not _Spelling and self._inner.repeats(config)

    def row(self, config: Config) -> NDArray[np.int32]:
        """The bitmask of a configuration: read-only ``int32[words]``."""
        if type(config) is not _Spelling:
            return self._inner.row(config)
        if config.row is None:
            config.row = self._work_out(config.offset)
        return config.row

    def _work_out(self, offset: int) -> NDArray[np.int32]:
        trie, width, rest = self.vocabulary.trie, 32 * self.vocabulary.words, self._prefix[offset:]
        within = [node for length, node in _prefixes(self.vocabulary, rest) if self._can_go_on[offset + length]]
        bits = np.zeros(width + 1, np.bool_)
        bits[trie.token[within]] = True
        for nodes in _beyond(self.vocabulary, self._inner, rest):
            bits[trie.token[nodes]] = True
        bits[trie.twins[:, 0]] = bits[trie.twins[:, 1]]
        row = np.packbits(bits[:width], bitorder="little").view("<i4").astype(np.int32)
        row.flags.writeable = False
        return row

    def is_accepting(self, config: Config) -> bool:
        """Whether the text so far is complete; never inside the prefix."""
        return type(config) is not _Spelling and self._inner.is_accepting(config)


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
    """

    def __init__(self, prefix: bytes, machine: Machine, inner: Index | None) -> None:
        vocabulary = inner.vocabulary if inner is not None else cast(_Anything, machine).vocabulary
        healing = HealingMachine(prefix, machine, vocabulary)
        super().__init__(
            "healed",
            f"{prefix!r}, then {'anything' if inner is None else inner.definition}",
            cast(AnyMachine, healing),
            origin="compiled" if inner is None else inner.origin,
            relaxations=() if inner is None else inner.relaxations,
        )
        self.prefix = prefix
        self.inner = inner

    @property
    def states(self) -> int:
        """Number of automaton states, with those of the prefix."""
        return len(self.prefix) + (1 if self.inner is None else self.inner.states)

    @property
    def row_count(self) -> int:
        """Number of distinct bitmask rows worked out so far, without those of the prefix."""
        return 1 if self.inner is None else self.inner.row_count

    @property
    def nbytes(self) -> int:
        """Bytes of the automaton and its rows, without those of the prefix."""
        return 0 if self.inner is None else self.inner.nbytes

    @property
    def complete(self) -> bool:
        """Whether every row is there: the first ones of a prefix are worked out on first touch."""
        return not self.prefix and (self.inner is None or self.inner.complete)

    def match(self, data: bytes) -> Match:
        """How far a text, prefix included, goes along with the definition, and what could follow."""
        prefix, rest = self.prefix, data[len(self.prefix) :]
        if not data.startswith(prefix):
            pairs = zip(data, prefix, strict=False)
            same = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), len(data))
            return Match(same, False, False, ((prefix[same], prefix[same]),))
        if self.inner is None:
            return Match(len(data), True, True, ((0, 255),))
        found = self.inner.match(rest)
        return Match(len(prefix) + found.consumed, found.accepted, found.can_end, found.expected)

    def to_bytes(self, *, with_vocabulary: bool = True) -> bytes:
        """Refused with a `FormatError`: an index is kept without a prefix."""
        raise FormatError("an index with a prefix can't be saved", remedy="Save the index that was healed.")
