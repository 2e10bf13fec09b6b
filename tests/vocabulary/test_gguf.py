"""Vocabularies from GGUF files, written here byte by byte as the specification says."""

from __future__ import annotations

import json
import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from conftest import tokenizer_folder

import structgen as sg
from structgen.cli.options import load_vocabulary
from structgen.errors import VocabularyError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def string(text: str | bytes) -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(item: Any) -> bytes:
    """A value with its type: strings, unsigned ints, floats, bools, and arrays of strings or ints."""
    if isinstance(item, bool):
        return struct.pack("<I?", 7, item)
    if isinstance(item, int):
        return struct.pack("<II", 4, item)
    if isinstance(item, float):
        return struct.pack("<If", 6, item)
    if isinstance(item, str):
        return struct.pack("<I", 8) + string(item)
    if item and isinstance(item[0], int):
        return struct.pack(f"<IIQ{len(item)}i", 9, 5, len(item), *item)
    return struct.pack("<IIQ", 9, 8, len(item)) + b"".join(map(string, item))


def gguf(metadata: dict[str, Any], version: int = 3) -> bytes:
    pairs = b"".join(string(key) + value(item) for key, item in metadata.items())
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(metadata)) + pairs


def tokenizer(kind: str, tokens: list[tuple[Any, int]], **more: Any) -> dict[str, Any]:
    return {
        "general.name": "tiny",
        "general.weight": 0.5,
        "tokenizer.ggml.model": kind,
        "tokenizer.ggml.tokens": [piece for piece, _ in tokens],
        "tokenizer.ggml.token_type": [type_ for _, type_ in tokens],
        "tokenizer.ggml.add_bos_token": True,
        **{f"tokenizer.ggml.{key}": item for key, item in more.items()},
    }


SENTENCEPIECE = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<0x0A>", BYTE), ("▁the", NORMAL),
                 ("a▁b", NORMAL), ("▁▁", USER_DEFINED), ("<0x41>", NORMAL), ("<|im_end|>", USER_DEFINED),
                 ("x", UNUSED)]  # fmt: skip


def read(tmp_path: Path, data: bytes, **options: Any) -> sg.Vocabulary:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    return sg.Vocabulary.from_gguf(path, **options)


@pytest.mark.parametrize("version", [2, 3])
def test_sentencepiece(tmp_path: Path, version: int) -> None:
    found = read(tmp_path, gguf(tokenizer("llama", SENTENCEPIECE, eos_token_id=2), version) + b"tensors")
    assert [found.token(i) for i in range(found.size)] == [
        None, None, None, b"\n", b" the", b"a b", "▁▁".encode(), b"<0x41>", None, None
    ]  # fmt: skip
    assert found.eos_ids == (2, 8)
    assert found.special_tokens["<s>"] == 1


def test_byte_level(tmp_path: Path) -> None:
    tokens = [("Ġa", NORMAL), ("Ã©", NORMAL), ("Ã", NORMAL), (" user", USER_DEFINED), ("<|channel|>", CONTROL),
              ("<|end|>", CONTROL), ("<|return|>", CONTROL), ("<|call|>", CONTROL)]  # fmt: skip
    found = read(tmp_path, gguf(tokenizer("gpt2", tokens, eos_token_id=6)), size=20)
    assert [found.token(i) for i in range(5)] == [b" a", "é".encode(), b"\xc3", b" user", None]
    assert found.eos_ids == (6, 7)  # <|end|> ends a part of a message here
    assert found.size == 20
    assert read(tmp_path, gguf(tokenizer("gpt2", tokens)), eos_ids=[4]).eos_ids == (4,)


def converted(folder: Path) -> tuple[str, list[tuple[str, int]]]:
    """The kind, pieces and types that llama.cpp's ``convert_hf_to_gguf.py`` writes for a ``tokenizer.json``."""
    document = json.loads((folder / "tokenizer.json").read_bytes())
    kind = "llama" if document["model"].get("byte_fallback") else "gpt2"
    pieces = {i: (piece, NORMAL) for piece, i in document["model"]["vocab"].items()}
    if kind == "llama":
        pieces |= {i: (p, BYTE) for i, (p, _) in pieces.items() if re.fullmatch("<0x[0-9A-F]{2}>", p)}
    for added in document["added_tokens"]:
        pieces[added["id"]] = added["content"], CONTROL if added["special"] else USER_DEFINED
    return kind, [pieces.get(i, (f"[PAD{i}]", UNUSED)) for i in range(max(pieces) + 1)]


@pytest.mark.parametrize("name", ["gemma", "llama3", "qwen2_5"])
def test_real_tokenizers(tmp_path: Path, name: str, request: pytest.FixtureRequest) -> None:
    """The bytes are those of the tokenizer that the file was converted from."""
    expected: sg.Vocabulary = request.getfixturevalue(name)
    kind, pieces = converted(tokenizer_folder(name))
    found = read(tmp_path, gguf(tokenizer(kind, pieces, eos_token_id=expected.eos_ids[0])))
    assert found.size == expected.size
    assert set(expected.eos_ids) <= set(found.eos_ids)
    assert found.fingerprint == expected.fingerprint


def test_command_line(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(tokenizer("llama", SENTENCEPIECE, eos_token_id=2)))
    assert load_vocabulary(str(path)).eos_ids == (2, 8)


def test_pieces_that_are_no_utf8(tmp_path: Path) -> None:
    tokens = [(b"\xff\xfe", NORMAL), (b"\xe2\x96\x81\xc3", NORMAL), (b"\xff", CONTROL), ("</s>", CONTROL)]
    found = read(tmp_path, gguf(tokenizer("llama", tokens)))
    assert [found.token(i) for i in range(3)] == [b"\xff\xfe", b" \xc3", None]
    assert sg.Vocabulary.from_buffer(found.to_bytes()).fingerprint == found.fingerprint


@pytest.mark.parametrize(
    ("kind", "tokens", "message"),
    [
        ("bert", SENTENCEPIECE, "kind 'bert' are not known"),
        ("llama", [("a", NORMAL)], "no EOS token"),
        ("llama", [("a", BYTE), ("</s>", CONTROL)], "'a' is typed as a byte"),
        ("gpt2", [("a b", NORMAL), ("</s>", CONTROL)], "'a b' is not spelled in the byte-level alphabet"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path: Path, kind: str, tokens: Any, message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        read(tmp_path, gguf(tokenizer(kind, tokens)))


def test_missing_metadata(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="kind None"):
        read(tmp_path, gguf({"general.name": "tiny"}))
    metadata = tokenizer("llama", SENTENCEPIECE)
    del metadata["tokenizer.ggml.token_type"]
    with pytest.raises(VocabularyError, match="type of each token"):
        read(tmp_path, gguf(metadata))
    with pytest.raises(VocabularyError, match="cannot be read"):
        sg.Vocabulary.from_gguf(tmp_path / "none.gguf")


def test_foreign_and_damaged_files(tmp_path: Path) -> None:
    """Every cut, and random bytes in the place of others: a vocabulary or a `VocabularyError`, and at once."""
    data = gguf(tokenizer("llama", SENTENCEPIECE, eos_token_id=2))
    for message, other in (("begin with GGUF", b"PK" + data), ("version 1", gguf({}, 1))):
        with pytest.raises(VocabularyError, match=message):
            read(tmp_path, other)
    for length in range(len(data)):
        with pytest.raises(VocabularyError):
            read(tmp_path, data[:length])
    rng = random.Random(1)
    damaged = 0
    for _ in range(800):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 8, 9, 255, rng.randrange(256)])
        try:
            read(tmp_path, bytes(changed))
        except VocabularyError:
            damaged += 1
    assert damaged > 100
