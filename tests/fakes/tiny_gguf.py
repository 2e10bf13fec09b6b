"""A Llama model of a few thousand random weights, as a GGUF file, with a tokenizer of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HEADS, INNER, CONTEXT = 32, 2, 64, 1024

#: GGUF's token types.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def write(
    path: Path, kind: str, pieces: Sequence[tuple[str, int]], seed: int = 0, merges: Sequence[str] = (), **ids: int
) -> Path:
    """Write a model whose vocabulary is ``pieces`` (each with its type); ``ids`` are ``eos=3`` and the like."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model(kind)
    if kind == "gpt2":
        writer.add_tokenizer_pre("default")
        writer.add_token_merges(list(merges) or ["a b"])
    writer.add_token_list([piece for piece, _ in pieces])
    writer.add_token_scores([-float(i) for i in range(len(pieces))])
    writer.add_token_types([type_ for _, type_ in pieces])
    for name, i in ids.items():
        getattr(writer, f"add_{name}_token_id")(i)
    writer.add_add_bos_token("bos" in ids)
    for name, array in _weights(len(pieces), seed):
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _weights(size: int, seed: int) -> list[tuple[str, Any]]:
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return (random.standard_normal(shape) * 0.5).astype(np.float32)

    ones = np.ones(WIDTH, np.float32)
    block = {
        "attn_norm": ones, "attn_q": normal(WIDTH, WIDTH), "attn_k": normal(WIDTH, WIDTH),
        "attn_v": normal(WIDTH, WIDTH), "attn_output": normal(WIDTH, WIDTH), "ffn_norm": ones,
        "ffn_gate": normal(INNER, WIDTH), "ffn_up": normal(INNER, WIDTH), "ffn_down": normal(WIDTH, INNER),
    }  # fmt: skip
    return [
        ("token_embd.weight", normal(size, WIDTH)),
        ("output_norm.weight", ones),
        ("output.weight", normal(size, WIDTH)),
        *((f"blk.0.{name}.weight", array) for name, array in block.items()),
    ]


def sentencepiece_pieces() -> list[tuple[str, int]]:
    """``<unk> <s> </s>``, the 256 bytes, and some pieces; EOS is 2."""
    words = ["▁", "▁the", "▁cat", "true", "false", "12", "00", "ab", "é", '":', '{"', '"}', "▁▁", "-"]
    letters = [chr(c) for c in range(0x21, 0x7F) if chr(c) not in words]
    return [
        ("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL),
        *((f"<0x{byte:02X}>", BYTE) for byte in range(256)),
        *((piece, NORMAL) for piece in [*words, *letters]),
        ("  two", USER_DEFINED), ("<|im_end|>", USER_DEFINED), ("<unused0>", UNUSED), ("[INST]", CONTROL),
    ]  # fmt: skip


def byte_level_pieces(merges: Sequence[str]) -> list[tuple[str, int]]:
    """The byte-level alphabet, the results of ``merges``, and special tokens; the last is the EOS."""
    from structgen.vocabulary.byte_level import BYTE_OF

    return [
        *((letter, NORMAL) for letter in BYTE_OF),
        *((merge.replace(" ", ""), NORMAL) for merge in merges),
        ("<|pad|>", CONTROL), (" user", USER_DEFINED), ("<|eot_id|>", CONTROL), ("<|endoftext|>", CONTROL),
    ]  # fmt: skip
