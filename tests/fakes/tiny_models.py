"""Models and tokenizers of transformers that are small, random, and come from nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

EOS_NAME, PAD_NAME = "<|end|>", "<|pad|>"

#: Merges of a byte-level tokenizer, in its own alphabet.
MERGES = [("a", "b"), ("1", "2"), ("t", "h"), ("th", "e"), ("Ġ", "the"), ("t", "r"), ("u", "e"), ("tr", "ue"),
          ('"', ":"), ("{", '"'), ("n", "a"), ("m", "e"), ("na", "me")]  # fmt: skip


def byte_tokenizer(merges: Sequence[tuple[str, str]] = MERGES, *, backwards: bool = False) -> Any:
    """A ``PreTrainedTokenizerFast``: byte-level BPE of 256 bytes and some merges, then `EOS_NAME` and `PAD_NAME`.

    Backwards, the same pieces have other ids.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from structgen.vocabulary.byte_level import BYTE_OF

    pieces = [*BYTE_OF, *(a + b for a, b in merges)]
    if backwards:
        pieces.reverse()
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, list(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    made: Any = PreTrainedTokenizerFast
    return made(tokenizer_object=tokenizer, eos_token=EOS_NAME, pad_token=PAD_NAME)


def tiny_llama(width: int, eos: int | None, pad: int | None, *, seed: int = 0, **options: Any) -> Any:
    """A randomly initialised ``LlamaForCausalLM`` of one layer; ``options`` are its configuration's."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    options = {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "max_position_embeddings": 512, "initializer_range": 0.5, "bos_token_id": None, **options,
    }  # fmt: skip
    config = LlamaConfig(vocab_size=width, eos_token_id=eos, pad_token_id=pad, **options)
    model: Any = LlamaForCausalLM(config)
    return model.eval()


def tiny_mistral(width: int, eos: int | None, pad: int | None, window: int) -> Any:
    """A randomly initialised ``MistralForCausalLM`` of two layers, whose attention reaches back over a window."""
    import torch
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(1)
    config = MistralConfig(
        vocab_size=width, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=window, max_position_embeddings=512, initializer_range=0.5,
        eos_token_id=eos, pad_token_id=pad,
    )  # fmt: skip
    model: Any = MistralForCausalLM(config)
    return model.eval()
