"""Tokens that must follow, split as the tokenizer itself would split their text.

The bytes are forced by the definition (`structgen.runtime.guide.forced`); which tokens spell them is up to the
tokenizer, and may depend on what comes after. Of a text ``F`` whose continuation is not known, only those tokens
are given that stay the same whatever follows. A token that crosses the end of ``F`` begins at some place ``j``,
and what stands before ``j`` is split as ``F[:j]`` is split alone. So the tokens that ``F`` has in common with
``F[:j]``, for all places at which a token crosses that the definition allows and the tokenizer would use there,
are *stable*. (That a boundary splits an encoding in two holds for byte-pair encodings. A tokenizer that cuts
words with a look at what follows is asked about some continuations in any case.)

Tokens that a model would have written in another way make its next predictions worse (Beurer-Kellner et al. 2024), so
when in doubt there are fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ...errors import VocabularyError
from ..core.machine import ByteState, Config, Machine
from ..rows.bitmask import ids_of
from .forced import MOST_BYTES, follow_forced, whole_characters

if TYPE_CHECKING:
    from ...vocabulary.trie import Trie
    from ...vocabulary.vocabulary import Vocabulary
    from ..index.index import Index

#: How a tokenizer splits a text, without special tokens before or behind it.
Encode = Callable[[str], Sequence[int]]

#: Nodes of the trie that are looked at for a token that crosses; past that one is taken to be there.
_MOST_NODES = 1 << 12

#: Continuations that the tokenizer is asked about for each place, in any case and where it makes a difference.
_ASKED, _MOST_ASKED = 2, 48

#: Put before a text where the tokenizer would begin it with a space.
_ANCHOR = "\n"


def forced_tokens(
    index: Index, machine: Machine, config: Config, encode: Encode | None = None, *, most: int = MOST_BYTES
) -> list[int]:
    """The tokens that must follow; see the module.

    Where no more bytes can follow, and one token can, such as the vocabulary's one EOS id, it is the last of them.

    Parameters
    ----------
    index, machine, config:
        Where the text is, on the index's machine or one that stands for it; None behind an EOS id.
    encode:
        The tokenizer; None takes the one that the vocabulary was made from (`Vocabulary.encode`).
    most:
        So many bytes are looked ahead.

    Returns
    -------
    Token ids, each allowed where it comes; none where nothing is forced, or nothing is stable.

    Raises
    ------
    VocabularyError
        Where there is no tokenizer: the index came with its vocabulary from a file.
    """
    vocabulary = index.vocabulary
    encode = encode or vocabulary.encode
    if encode is None:
        raise VocabularyError(
            "which tokens are forced is up to the tokenizer, and the vocabulary came without one",
            remedy="Pass encode=, or make the vocabulary from the tokenizer.",
        )
    if config is None:
        return []
    key = config, encode, most
    found = index.forced.get(key)
    if found is None:
        found = index.forced[key] = tuple(_forced_tokens(vocabulary, machine, config, encode, most))
    return list(found)


def _forced_tokens(vocabulary: Vocabulary, machine: Machine, config: Config, encode: Encode, most: int) -> list[int]:
    text, byte_state = follow_forced(machine, machine.byte_state(config), most)
    must_end = len(text) < most and next(machine.following(byte_state), None) is None
    tokens = _Splitter(vocabulary, encode).split(text, None if must_end else (machine, byte_state))
    found: list[int] = []
    length = 0
    for token in tokens:
        data = vocabulary.token(token) or b""
        after = machine.advance(config, token) if data and text[length : length + len(data)] == data else None
        if after is None:
            return found
        config = after
        found.append(token)
        length += len(data)
    if must_end and length == len(text):
        last = ids_of(machine.row(config)).tolist()  # tokens without bytes: EOS ids, and those that a grammar names
        found += last if len(last) == 1 else []
    return found


class _Splitter:
    """Splits texts of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, encode: Encode) -> None:
        self._vocabulary = vocabulary
        self._encode = encode

    def split(self, text: bytes, behind: tuple[Machine, ByteState] | None) -> list[int]:
        """The stable tokens of a text, which ends there, or else goes on as a machine says."""
        whole = whole_characters(text)
        tokens = self.encoded(whole or "")
        if not whole or behind is None:
            return tokens
        trie = self._vocabulary.trie
        for j in range(len(text) - 1, max(-1, len(text) - trie.max_depth), -1):
            if not tokens:
                break
            tokens = self._stable(tokens, text, j, _crossing(trie, text[j:], *behind))
        return self._within(tokens, len(whole.encode()))

    def _stable(self, tokens: list[int], text: bytes, j: int, crossing: Iterator[bytes]) -> list[int]:
        """The tokens before ``j`` that stay, whatever token begins at ``j`` and crosses the end of the text."""
        before: list[int] | None = None
        for number, rest in enumerate(crossing):
            if before is None:
                begin = j
                while _is_inside(text, begin):
                    begin -= 1
                before = self.encoded(text[:begin].decode())
            if number >= _ASKED and _common(tokens, before) == tokens:
                break  # it makes no difference whether one crosses there
            if number == _MOST_ASKED or not rest:
                return _common(tokens, before)
            whole = self.encoded(whole_characters(text + rest) or "")
            last = self._vocabulary.token(whole[-1]) if whole else None
            if number < _ASKED or last == text[j:] + rest:  # or else none begins there when this follows
                tokens = _common(tokens, whole)
        return tokens

    def _within(self, tokens: list[int], length: int) -> list[int]:
        """The tokens that end within a text."""
        end = 0
        for count, token in enumerate(tokens):
            end += len(self._vocabulary.token(token) or b"")
            if end > length:
                return tokens[:count]
        return tokens

    def encoded(self, text: str) -> list[int]:
        """The tokenizer's split of a text that something stands before."""
        if not text:
            return []
        tokens = list(self._encode(text))
        if self._spelled(tokens[:1])[:1] == b" " and not text.startswith(" "):
            tokens = self._behind_anchor(list(self._encode(_ANCHOR + text)))
        return tokens

    def _behind_anchor(self, tokens: list[int]) -> list[int]:
        for count in range(1, 4):
            if self._spelled(tokens[:count]).lstrip(b" ") == _ANCHOR.encode():
                return tokens[count:]
        return []

    def _spelled(self, tokens: Sequence[int]) -> bytes:
        size = self._vocabulary.size
        return b"".join(self._vocabulary.token(t) or b"" for t in tokens if 0 <= t < size)


def _crossing(trie: Trie, begin: bytes, machine: Machine, byte_state: ByteState) -> Iterator[bytes]:
    """Of the tokens that begin with some bytes, but are longer, and that may be written: what is longer in each.

    Where too many nodes had to be looked at, an empty text stands for those that were not.
    """
    node = trie.find(begin)
    if node is None:
        return
    tokens, looked = trie.first_token.data, 0  # which yields ints
    todo = [(node, byte_state, b"")]
    while todo:
        node, byte_state, rest = todo.pop()
        if rest and tokens[node] < tokens[node + 1]:
            yield rest
        for byte, child in trie.children(node):
            looked += 1
            if looked > _MOST_NODES:
                yield b""
                return
            after = machine.after(byte_state, byte)
            if after is not None:
                todo.append((child, after, rest + bytes([byte])))


def _common(a: list[int], b: list[int]) -> list[int]:
    """The prefix that two lists share."""
    count = 0
    while count < min(len(a), len(b)) and a[count] == b[count]:
        count += 1
    return a[:count]


def _is_inside(data: bytes, position: int) -> bool:
    """Whether a character goes on there."""
    return 0x80 <= data[position] < 0xC0
