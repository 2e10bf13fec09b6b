"""Tokenizer files that somebody damaged, or made to eat time and memory: a vocabulary, or a `VocabularyError`."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import structgen as sg
from structgen.errors import VocabularyError
from structgen.vocabulary import gguf, tokenizer_json
from structgen.vocabulary.token_table import MAX_SIZE

BPE: dict[str, Any] = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "ab": 3}, "merges": [["a", "b"]], "unk_token": None},
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 4, "content": "</s>", "special": True}, {"id": 5, "content": "hi", "special": False}],
}
UNIGRAM: dict[str, Any] = {
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁a", -1], ["<0x41>", -2], ["b", -3]]},
    "decoder": {
        "type": "Sequence",
        "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}],
    },
    "added_tokens": [{"id": 4, "content": "</s>", "special": True}, {"id": 5, "content": "hi", "normalized": True}],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}]},
}
TEKKEN: dict[str, Any] = {
    "config": {"default_num_special_tokens": 3, "default_vocab_size": 6, "version": "v9"},
    "vocab": [{"rank": i, "token_bytes": "QQ=="} for i in range(3)],
    "special_tokens": [{"token_str": "</s>", "rank": 2}],
}

#: What stands where something else should.
VALUES: list[Any] = [
    None, True, 0, 1, -1, 2**31, 2**70, 1.5, float("nan"), float("inf"), "", "a", "x" * 70_000, "\ud800", "<0x41>",
    [], [1], ["a"], {}, {"a": 1}, {"type": "Sequence"}, [[]], "Ġ", "▁",
]  # fmt: skip


def damaged(document: Any, chance: Random) -> Any:
    """A copy with some values replaced, left out, or put in."""
    made = copy.deepcopy(document)
    for _ in range(chance.randint(1, 4)):
        places = list(containers(made))
        inside = chance.choice(places)
        key = chance.choice(list(inside) if isinstance(inside, dict) else range(len(inside)))
        if chance.random() < 0.75:
            inside[key] = copy.deepcopy(chance.choice(VALUES))
        else:
            del inside[key]
        if not isinstance(made, dict) or not any(containers(made)):
            break
    return made


def containers(value: Any) -> Iterator[Any]:
    """The dicts and lists that are not empty."""
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict | list) and each:
            yield each
            todo += each.values() if isinstance(each, dict) else each


def only_typed(call: Any) -> bool:
    """Whether it worked; other errors than `VocabularyError` go through."""
    try:
        call()
    except VocabularyError:
        return False
    return True


def read_document(document: Any) -> None:
    table = tokenizer_json.read(document, special_names=["</s>"])
    sg.Vocabulary.from_bytes(table.tokens, [4], special_tokens=table.special_tokens)


@pytest.mark.filterwarnings("ignore::structgen.errors.VocabularyWarning")  # a token may be left out
@pytest.mark.parametrize("seed", range(4))
def test_damaged_documents(seed: int) -> None:
    chance = Random(seed)
    worked = [only_typed(lambda: read_document(damaged(chance.choice([BPE, UNIGRAM]), chance))) for _ in range(500)]
    assert 0 < sum(worked) < len(worked)


@pytest.mark.filterwarnings("ignore::structgen.errors.VocabularyWarning")
def test_damaged_folders(tmp_path: Path) -> None:
    chance, config = Random(1), {"eos_token": "</s>", "added_tokens_decoder": {"4": {"content": "</s>"}}}
    worked = []
    for _ in range(200):
        documents = {"tokenizer": BPE, "tokenizer_config": config, "generation_config": {"eos_token_id": [4]}}
        for name, document in documents.items():
            made = document if chance.random() < 0.5 else damaged(document, chance)
            (tmp_path / f"{name}.json").write_text(json.dumps(made))
        worked.append(only_typed(lambda: sg.Vocabulary.from_pretrained(tmp_path)))
    assert 0 < sum(worked) < len(worked)


def test_damaged_tekken_files(tmp_path: Path) -> None:
    chance, path, worked = Random(2), tmp_path / "tekken.json", []
    for _ in range(400):
        path.write_text(json.dumps(damaged(TEKKEN, chance)))
        worked.append(only_typed(lambda: sg.Vocabulary.from_tekken(path)))
    assert 0 < sum(worked) < len(worked)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 100_000, "\x00", "[1e999]", '{"model":' + "[" * 100_000])
def test_json_that_is_none(tmp_path: Path, text: str) -> None:
    for name in ("tokenizer.json", "tekken.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(VocabularyError):
        sg.Vocabulary.from_pretrained(tmp_path)
    with pytest.raises(VocabularyError):
        sg.Vocabulary.from_tekken(tmp_path / "tekken.json")


def test_what_grows(tmp_path: Path) -> None:
    doubling = {"type": "Replace", "pattern": {"String": "h"}, "content": "hh"}
    with pytest.raises(VocabularyError, match="normalized"):
        tokenizer_json.read({**UNIGRAM, "normalizer": {"type": "Sequence", "normalizers": [doubling] * 60}})
    nested: dict[str, Any] = doubling
    for _ in range(5_000):
        nested = {"type": "Sequence", "normalizers": [nested]}
    with pytest.raises(VocabularyError):
        tokenizer_json.read({**UNIGRAM, "normalizer": nested})
    huge = 10**12
    config = {"default_num_special_tokens": huge, "default_vocab_size": huge + 3, "version": "v9"}
    (tmp_path / "tekken.json").write_text(json.dumps({**TEKKEN, "config": config}))
    with pytest.raises(VocabularyError, match="special tokens"):
        sg.Vocabulary.from_tekken(tmp_path / "tekken.json")
    assert huge > MAX_SIZE


# -- GGUF ----------------------------------------------------------------------------------------------


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def array(type_: int, values: list[Any]) -> bytes:
    form = gguf._FORMATS.get(type_, "")
    return struct.pack("<IQ", type_, len(values)) + b"".join(
        string(value) if type_ == 8 else struct.pack(f"<{form}", value) for value in values
    )


def pair(key: str, type_: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", type_) + value


def file_of(tokens: bytes, types: bytes, *others: bytes, model: str = "llama") -> bytes:
    prefix = "tokenizer.ggml."
    pairs = [
        pair(f"{prefix}model", 8, string(model)),
        pair(f"{prefix}tokens", 9, tokens),
        pair(f"{prefix}token_type", 9, types),
        *others,
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


GGUF = file_of(array(8, ["a", "b", "</s>", "<0x41>"]), array(5, [1, 1, 3, 6]))


def test_damaged_gguf_files(tmp_path: Path) -> None:
    chance, path, worked = Random(3), tmp_path / "model.gguf", []
    for _ in range(1_000):
        data = bytearray(GGUF)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(data))
            if chance.random() < 0.7:
                data[place] = chance.choice([0, 1, 255, 128, chance.randrange(256)])
            else:
                data[place : place + chance.randint(1, 9)] = chance.randbytes(chance.randint(0, 9))
        path.write_bytes(data)
        worked.append(only_typed(lambda: sg.Vocabulary.from_gguf(path)))
    assert 0 < sum(worked) < len(worked)


@pytest.mark.parametrize("model", ["llama", "gpt2"])
@pytest.mark.parametrize("tokens", [array(4, [1, 2]), array(12, [1.0, 2.0]), array(8, ["a"]), array(8, [])])
@pytest.mark.parametrize("types", [array(5, [1, 1]), array(8, ["1", "1"]), array(12, [1.0, 2.0]), array(7, [1, 0])])
def test_gguf_arrays_of_other_kinds(tmp_path: Path, model: str, tokens: bytes, types: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(file_of(tokens, types, model=model))
    with pytest.raises(VocabularyError):
        sg.Vocabulary.from_gguf(tmp_path / "model.gguf")


def test_a_gguf_in_which_every_token_ends_a_text(tmp_path: Path) -> None:
    """Nothing is looked up in a list: with so many it would take an hour."""
    count = 200_000
    path = tmp_path / "model.gguf"
    path.write_bytes(file_of(array(8, ["</s>"] * count + ["a"]), array(5, [1] * (count + 1))))
    assert len(sg.Vocabulary.from_gguf(path).eos_ids) == count


def test_large_values_of_others_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        pair("general.bytes", 9, array(0, [7] * 1_000)),
        pair("general.names", 9, array(8, ["x" * 500] * 3)),
        pair("general.name", 8, string("y" * 2_000)),
        pair("general.number", 10, struct.pack("<Q", 5)),
    ]
    taken: list[int] = []
    take = gguf._Reader._take

    def counted(self: Any, count: int, *, keep: bool = True) -> bytes:
        taken.append(count if keep else 0)
        return take(self, count, keep=keep)

    monkeypatch.setattr(gguf._Reader, "_take", counted)
    path = tmp_path / "model.gguf"
    path.write_bytes(file_of(array(8, ["a", "</s>"]), array(5, [1, 1]), *others))
    assert sg.Vocabulary.from_gguf(path).eos_ids == (1,)
    assert max(taken) < 100
    path.write_bytes(path.read_bytes()[:-900])
    with pytest.raises(VocabularyError, match="damaged"):
        sg.Vocabulary.from_gguf(path)
