"""`TokenTable`: what readers of tokenizers hand over, and how large it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

#: The ids of a text, without special tokens before or behind it.
Encode: TypeAlias = Callable[[str], Sequence[int]]

#: Ids above this are taken for a mistake rather than a vocabulary.
MAX_SIZE = 1 << 22

#: Names at which llama.cpp ends a text, whatever their type.
END_NAMES = frozenset(
    [
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
        "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
        "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>",
        "[e~[",
        # Fill-in-the-middle: padding, a repository's name, the separator of files.
        "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
        "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
    ]
)  # fmt: skip

#: Pieces that have no bytes, whatever a tokenizer's file says, so that all readers agree. Others spell the same.
#: Besides those ends, markers of gpt-oss that llama.cpp prints though they are no text, and special tokens of some
#: versions of transformers' classes.
SPECIAL_ANYWAY = END_NAMES | {
    "<|channel|>", "<|message|>", "<|start|>", "<|constrain|>", "<mask>", "<MASK_TOKEN>", "<mask_2>",
}  # fmt: skip

#: Bytes of the longest token: the trie counts depths in uint16.
MAX_TOKEN_BYTES = (1 << 16) - 1


@dataclass(frozen=True)
class TokenTable:
    """What a tokenizer says about its ids.

    Parameters
    ----------
    tokens:
        The bytes of each id that has any.
    special_tokens:
        The id of each name that has no bytes.
    eos_ids:
        The ids that end a text.
    size:
        Number of ids; None for the largest plus one.
    encode:
        The ids of a text, without special tokens before or behind it; None where nothing encodes.
    """

    tokens: dict[int, bytes]
    special_tokens: dict[str, int]
    eos_ids: Iterable[int] = ()
    size: int | None = None
    encode: Encode | None = None


def loaded_later(load: Callable[[], Encode]) -> Encode:
    """A tokenizer that is loaded when a text is first encoded: that takes longer than to read all of its tokens."""
    loaded = cache(load)
    return lambda text: loaded()(text)


def eos_ids_of(*found: int | Iterable[int] | None) -> list[int]:
    """The ids at which texts end, together, as tokenizers and configurations have them: one, several, or none."""
    ids: list[int] = []
    for each in found:
        ids += each if isinstance(each, Iterable) else [] if each is None else [each]
    return ids
