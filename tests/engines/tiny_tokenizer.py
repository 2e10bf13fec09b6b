"""A fast tokenizer of transformers over single bytes and a few merges; nothing is downloaded."""

from __future__ import annotations

from typing import Any

MERGES = [("a", "b"), ("1", "2"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("t", "r"), ("tr", "ue"), ("u", "e")]
EOS_NAME, PAD_NAME = "<|end|>", "<|pad|>"


def byte_tokenizer() -> Any:
    """A ``PreTrainedTokenizerFast``: byte-level BPE, `EOS_NAME` and `PAD_NAME` behind its 264 tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from structgen.vocabulary.byte_level import BYTE_OF

    pieces = [*BYTE_OF, *(a + b for a, b in MERGES)]
    model = models.BPE({piece: i for i, piece in enumerate(pieces)}, MERGES)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    made: Any = PreTrainedTokenizerFast
    return made(tokenizer_object=tokenizer, eos_token=EOS_NAME, pad_token=PAD_NAME)
