"""Vocabularies of tokenizers. What a tokenizer encodes and decodes is the judge of every token's bytes."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest
from conftest import tokenizer_folder
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from judges.guides import EACH_BYTE, ids_of_bits

import structgen as sg
from structgen import Vocabulary
from structgen.errors import ArgumentError, VocabularyError, VocabularyWarning
from structgen.vocabulary import byte_level, tokenizer_json
from structgen.vocabulary.roundtrip import TEXTS, check_roundtrip, faithful_texts
from structgen.vocabulary.token_table import SPECIAL_ANYWAY

tokenizers = pytest.importorskip("tokenizers", reason="the judge of tokenizer.json")

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

#: Hand-picked: languages, emoji, combining marks, control characters, all kinds of spaces, code.
PICKED = (
    *TEXTS,
    "",
    " ",
    "    ",
    "\n\n\n",
    " \t \r\n ",
    "\u00a0\u2003\u3000x\u2028y",
    "  two before, two after  ",
    "Příliš žluťoučký kůň; Việt Nam; ไทย; हिन्दी; 한국어; 中文",
    "cafe\u0301 \u1112\u1161\u11ab \ufb01 \u212b",
    "🇨🇿👨‍👩‍👧‍👦🏽🫠",
    "\0\x01\x1b[0m\x7f\x80\x9f",
    "\ufeff\u200b\u200d\u202e\ufffd\U0010ffff",
    "for i in range(10):\n        if a[i]  !=  b:\n\t\treturn {'k': [\"v\\n\"]}  # ▁",
    "<0x0A> <0xZZ> ## Ġ Ċ ▁ </w> @@",
)
TEXT = st.one_of(
    st.text(max_size=40),
    st.text("ab \n\t1.,{}\"'\\éß語👍▁", max_size=60),
    st.lists(st.sampled_from(PICKED), max_size=3).map("".join),
)

REAL = ("llama3", "qwen2_5", "gemma")


class Case(NamedTuple):
    """A vocabulary, its tokenizer's two functions, and the text as the tokenizer normalizes it."""

    vocabulary: Vocabulary
    encode: Callable[[str], Sequence[int]]
    decode: Callable[[Sequence[int]], str]
    normalize: Callable[[str], str]


def case(vocabulary: Vocabulary, tokenizer: Any) -> Case:
    """A case around a `tokenizers.Tokenizer`."""

    def normalize(text: str) -> str:
        text = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        keeps = "ByteLevel" in repr((tokenizer.pre_tokenizer, tokenizer.decoder))
        return text if keeps else text.replace("▁", " ")

    return Case(
        vocabulary,
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
        normalize,
    )


@cache
def load(name: str) -> Any:
    return Tokenizer.from_file(str(tokenizer_folder(name) / "tokenizer.json"))


@pytest.fixture(scope="module", params=[*REAL, "tekken"])
def real(request: pytest.FixtureRequest) -> Case:
    vocabulary = request.getfixturevalue(request.param)
    return tekken_case(vocabulary) if request.param == "tekken" else case(vocabulary, load(request.param))


def tekken_case(vocabulary: Vocabulary) -> Case:
    judge = tekkenizer()
    return Case(vocabulary, lambda text: judge.encode(text, bos=False, eos=False), judge.decode, str)


@cache
def tekkenizer() -> Any:
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    folder = Path(mistral_common.__file__).parent / "data"
    return Tekkenizer.from_file(max(folder.glob("tekken_*.json")))


def spell(vocabulary: Vocabulary, ids: Sequence[int]) -> bytes:
    return b"".join(vocabulary.token(i) or b"" for i in ids)


# -- real tokenizers -----------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(text=TEXT)
def test_tokens_spell_the_text(real: Case, text: str) -> None:
    assert spell(real.vocabulary, real.encode(text)) == real.normalize(text).encode()


def test_tokens_spell_picked_texts(real: Case) -> None:
    for text in PICKED:
        assert spell(real.vocabulary, real.encode(text)) == real.normalize(text).encode()
    assert len(faithful_texts(real.encode, real.decode)) >= len(TEXTS) - 1  # NFC changes one of them
    vocabulary, texts = real.vocabulary, faithful_texts(real.encode, real.decode)
    check_roundtrip(vocabulary.token, vocabulary.eos_ids, real.encode, texts)


@pytest.mark.parametrize("name", REAL)
def test_every_token_is_what_the_decoder_makes_of_it(name: str, request: pytest.FixtureRequest) -> None:
    vocabulary: Vocabulary = request.getfixturevalue(name)
    tokenizer = load(name)
    assert vocabulary.size == tokenizer.get_vocab_size(with_added_tokens=True)
    decoded = tokenizer.decode_batch([[i] for i in range(vocabulary.size)], skip_special_tokens=True)
    tokens = [token.decode("utf-8", "replace") for token in vocabulary_tokens(vocabulary)]
    assert tokens == ["" if text in SPECIAL_ANYWAY else text for text in decoded]


def test_every_token_of_tekken(tekken: Vocabulary) -> None:
    judge = tekkenizer()
    assert vocabulary_tokens(tekken) == tekkenizer_tokens(judge)
    assert tekken.eos_ids == (judge.eos_id,)
    assert tekken.special_tokens == {judge.id_to_piece(i): i for i in range(judge.num_special_tokens)}


def tekkenizer_tokens(judge: Any) -> list[bytes]:
    specials = judge.num_special_tokens
    return [b""] * specials + [judge.id_to_byte_piece(i) for i in range(specials, judge.n_words)]


def vocabulary_tokens(vocabulary: Vocabulary) -> list[bytes]:
    return [vocabulary.token(i) or b"" for i in range(vocabulary.size)]


def test_special_and_added_tokens_of_real_vocabularies(
    llama3: Vocabulary, qwen2_5: Vocabulary, gemma: Vocabulary
) -> None:
    assert llama3.special_tokens["<|eot_id|>"] == 128009
    assert llama3.eos_ids == (128001,)
    assert all(llama3.token(i) is None for i in range(128000, 128256))
    assert qwen2_5.eos_ids == (151645,)
    assert qwen2_5.token(151645) is None
    assert qwen2_5.token(151657) == b"<tool_call>"  # an added token that is text
    assert gemma.special_tokens == {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3} | {
        "<mask>": 4,
        "<end_of_turn>": 107,
        "</s>": 213,  # which are pieces like others in the file
    }
    letters = [i for i, token in enumerate(vocabulary_tokens(gemma)) if token == b"A"]
    assert len(letters) == 2  # the piece and the byte


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["gemma", "llama3", "qwen2_5"])
def test_all_readers_agree(name: str, request: pytest.FixtureRequest) -> None:
    transformers = pytest.importorskip("transformers")
    expected: Vocabulary = request.getfixturevalue(name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(tokenizer_folder(name)))
    vocabulary = Vocabulary.from_transformers(tokenizer)
    assert vocabulary.identity == expected.identity
    bare = Vocabulary.from_transformers(load(name), eos_ids=expected.eos_ids)
    assert bare.identity == expected.identity
    wider = Vocabulary.from_transformers(tokenizer, eos_ids=[0, expected.eos_ids[0]], size=expected.size + 271)
    assert wider.size == expected.size + 271
    if expected.token(0) is None:
        assert wider.fingerprint == expected.fingerprint
    assert all(wider.token(i) is None for i in range(expected.size, wider.size))


def test_width_and_ends_of_a_model_beside_its_tokenizer(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens(["</s>", "<|eot|>", "<image>"])
    end, eot, image = (tokenizer.token_to_id(name) for name in ("</s>", "<|eot|>", "<image>"))

    def doors() -> list[Vocabulary]:
        loaded = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path))
        found = [Vocabulary.from_pretrained(tmp_path), Vocabulary.from_transformers(loaded)]
        assert found[0].identity == found[1].identity
        return found

    save(tmp_path, tokenizer, tokenizer_config={"eos_token": "</s>"}, config={"vocab_size": 512, "eos_token_id": eot})
    for vocabulary in doors():
        assert (vocabulary.size, vocabulary.eos_ids) == (512, (end, eot))
    save(tmp_path, tokenizer, config={"text_config": {"vocab_size": image}}, generation_config={"eos_token_id": eot})
    for vocabulary in doors():  # a head that cannot write <image>
        assert (vocabulary.size, vocabulary.eos_ids) == (image, (end, eot))
        assert "<image>" not in vocabulary.special_tokens
    save(tmp_path, tokenizer, config={"vocab_size": 100, "eos_token_id": "none"}, generation_config={})
    for vocabulary in doors():  # tokens with bytes are left out where the caller says so
        assert (vocabulary.size, vocabulary.eos_ids) == (image + 1, (end,))
    narrow = Vocabulary.from_pretrained(tmp_path, eos_ids=[7], size=100)
    assert (narrow.size, narrow.eos_ids, narrow.special_tokens) == (100, (7,), {})
    with pytest.raises(VocabularyError, match="none of the EOS ids"):
        Vocabulary.from_pretrained(tmp_path, size=100)


@pytest.mark.parametrize(("name", "meant"), [("eos_id", "eos_ids"), ("sise", "size"), ("revison", "revision")])
def test_misspelt_options_are_errors(name: str, meant: str, tmp_path: Path) -> None:
    save(tmp_path, byte_level_tokenizer())
    with pytest.raises(ArgumentError, match=f"no option '{name}'.* Is {meant} meant"):
        Vocabulary.from_pretrained(tmp_path, **{name: 1})


# -- folders and names ---------------------------------------------------------------------------------


def byte_level_tokenizer(*words: str) -> Any:
    """A byte-level BPE with all bytes and a few merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([*words, "the theme of these: é é é"], trainer)
    return tokenizer


def save(folder: Path, tokenizer: Any, **files: Any) -> Path:
    """A model's folder: ``tokenizer.json`` and the given JSON files."""
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, document in files.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return folder


def test_eos_ids_are_those_of_the_tokenizer_and_the_generation_config(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens(["</s>", "<|eot|>", "<|eom|>"])
    end, eot, eom = (tokenizer.token_to_id(name) for name in ("</s>", "<|eot|>", "<|eom|>"))
    eos_of = Vocabulary.from_pretrained
    save(tmp_path, tokenizer, generation_config={"eos_token_id": [eom, eot]})
    assert eos_of(tmp_path).eos_ids == (eot, eom)
    save(tmp_path, tokenizer, tokenizer_config={"eos_token": {"content": "</s>", "special": True}})
    assert eos_of(str(tmp_path)).eos_ids == (end, eot, eom)
    save(tmp_path, tokenizer, tokenizer_config={"eos_token": "</s>"}, generation_config={"eos_token_id": eot})
    assert eos_of(tmp_path).eos_ids == (end, eot)
    assert eos_of(tmp_path, eos_ids=[eom], size=1000).eos_ids == (eom,)
    save(tmp_path, tokenizer, tokenizer_config={}, generation_config={}, special_tokens_map={"eos_token": "<|eom|>"})
    assert eos_of(tmp_path).eos_ids == (eom,)
    save(tmp_path, tokenizer, special_tokens_map={}, generation_config={"eos_token_id": None})
    with pytest.raises(VocabularyError, match=r"has no EOS token .* Pass the ids that end a text as eos_ids="):
        eos_of(tmp_path)


def test_configs_may_name_and_override_special_tokens(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_tokens(["<end>", "<image>", "<turn>", "<think>", "<pad>"])
    config = {
        "eos_token": "<end>",
        "image_token": "<image>",
        "additional_special_tokens": ["<turn>"],
        "added_tokens_decoder": {str(tokenizer.token_to_id("<pad>")): {"content": "<pad>", "special": True}},
        "add_bos_token": False,
    }
    vocabulary = Vocabulary.from_pretrained(save(tmp_path, tokenizer, tokenizer_config=config))
    assert set(vocabulary.special_tokens) == {"<end>", "<image>", "<turn>", "<pad>"}
    assert vocabulary.token(tokenizer.token_to_id("<think>")) == b"<think>"


def test_a_folder_is_read_without_transformers(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens(["</s>"])
    save(tmp_path, tokenizer, tokenizer_config={"eos_token": "</s>"})
    script = (
        f"import sys, structgen; print(len(structgen.Vocabulary.from_pretrained({str(tmp_path)!r})));"
        "print([name for name in ('torch', 'transformers', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(tokenizer.get_vocab_size()), "[]"]


def test_what_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=r"there is no such folder \(.*missing\)\. Pass the folder"):
        Vocabulary.from_pretrained(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(VocabularyError, match="not a folder"):
        Vocabulary.from_pretrained(tmp_path / "file")
    for content, message in (("{", "cannot be read"), ("[]", "expected a JSON object"), ("{}", "is malformed")):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(VocabularyError, match=message):
            Vocabulary.from_pretrained(tmp_path, eos_ids=[0])


def test_names_go_to_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(VocabularyError, match="transformers cannot load the tokenizer"):
        Vocabulary.from_pretrained("nobody/has-this-model", local_files_only=True, cache_dir=str(tmp_path))
    with pytest.raises(VocabularyError, match="transformers cannot load the tokenizer"):
        Vocabulary.from_pretrained(tmp_path)


def test_options_go_to_transformers_for_folders_too(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens(["</s>", "<|eot|>"])
    end, eot = tokenizer.token_to_id("</s>"), tokenizer.token_to_id("<|eot|>")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>").save_pretrained(tmp_path)
    transformers.GenerationConfig(eos_token_id=eot).save_pretrained(tmp_path)
    vocabulary = Vocabulary.from_pretrained(tmp_path, local_files_only=True)
    assert vocabulary.eos_ids == (end, eot)
    assert vocabulary.fingerprint == Vocabulary.from_pretrained(tmp_path).fingerprint


@pytest.mark.parametrize(
    "config",
    [
        {"tokenizer_class": "GPT2Tokenizer", "eos_token": "<|endoftext|>"},
        {"tokenizer_class": "Qwen2Tokenizer", "eos_token": "<|endoftext|>", "added_tokens_decoder": {
            str(number): {"content": f"<|{number}|>", "special": True} for number in range(22)
        }},
    ],
)  # fmt: skip
def test_a_folder_of_settings_alone_is_named(config: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_pretrained(tmp_path)
    assert caught.value.where == str(tmp_path)
    assert "tokenizer.json" in caught.value.remedy


class TestCodeOfTheirOwn:
    """A folder that asks for code is read without it, or refused. Nobody is asked on standard input."""

    @pytest.fixture
    def folder(self, tmp_path: Path, sentencepiece_file: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
        (tmp_path / "tokenization_own.py").write_text("raise SystemExit('code of a stranger ran')\n")
        (tmp_path / "tokenizer.model").write_bytes(sentencepiece_file.read_bytes())
        return tmp_path

    def configure(self, folder: Path, **added: str) -> None:
        config = {
            "auto_map": {"AutoTokenizer": ["tokenization_own.OwnTokenizer", None]},
            "tokenizer_class": "OwnTokenizer",
            "eos_token": "</s>",
            "additional_special_tokens": ["<turn>"],
            "added_tokens_decoder": {i: {"content": content} for i, content in added.items()},
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(config))

    def test_the_model_is_read(self, folder: Path, slow: Any) -> None:
        size = slow.sp_model.get_piece_size()
        self.configure(folder, **{"2": "</s>", str(size): "<turn>", str(size + 1): "<think>"})
        vocabulary = Vocabulary.from_pretrained(folder)
        assert vocabulary.eos_ids == (2,)
        assert vocabulary.special_tokens["<turn>"] == size
        assert vocabulary.token(size + 1) == b"<think>"
        judge = slow.sp_model
        assert all(vocabulary.token(i) == judge.id_to_piece(i).replace("▁", " ").encode() for i in range(300, size))
        assert vocabulary.encode is not None
        assert vocabulary.encode("the number 7") == judge.encode("the number 7")

    @pytest.mark.parametrize(
        ("added", "says"),
        [({"3": "</s>"}, "token 3 is '</s>', and .* in the model"), ({"900": "<turn>"}, "nothing"), ({}, "nothing")],
        ids=["shifted", "above", "none"],
    )
    def test_numbers_that_nothing_tells_are_refused(self, folder: Path, added: dict[str, str], says: str) -> None:
        self.configure(folder, **added)
        with pytest.raises(VocabularyError, match=says):
            Vocabulary.from_pretrained(folder)

    def test_what_is_no_model_is_refused(self, folder: Path) -> None:
        self.configure(folder)
        (folder / "tokenizer.model").write_bytes(b"no model")
        with pytest.raises(VocabularyError, match="the model cannot be read"):
            Vocabulary.from_pretrained(folder)

    def test_transformers_asks_nobody(self, folder: Path) -> None:
        pytest.importorskip("transformers")
        self.configure(folder)
        (folder / "tokenizer.model").unlink()
        with pytest.raises(VocabularyError, match="runs with trust_remote_code=True"):
            Vocabulary.from_pretrained(folder)


# -- kinds of tokenizer.json ---------------------------------------------------------------------------


def test_the_byte_level_alphabet() -> None:
    assert set(byte_level.BYTE_OF) == set(pre_tokenizers.ByteLevel.alphabet())
    decoder = decoders.ByteLevel()
    for char, byte in byte_level.BYTE_OF.items():
        assert decoder.decode([char]) == bytes([byte]).decode("utf-8", "replace")
        assert byte_level.piece_bytes("a" + char) == b"a" + bytes([byte])
    foreign = (chr(c) for c in range(0x250) if chr(c) not in byte_level.BYTE_OF)
    assert all(byte_level.piece_bytes(f"a{char}") is None for char in [*foreign, "\uffff", "語", "\ud800"])


def byte_level_bpe() -> Any:
    return byte_level_tokenizer()


def byte_level_with_foreign_pieces() -> Any:
    """As Cohere's, with pieces that are not spelled in the byte-level alphabet."""
    document = json.loads(byte_level_bpe().to_str())
    document["model"]["vocab"] |= {"\u200d": 900, "x語": 901, "é\u00a0": 902}
    return Tokenizer.from_str(json.dumps(document))


def byte_level_without_decoder() -> Any:
    tokenizer = byte_level_tokenizer()
    tokenizer.decoder = None
    return tokenizer


def llama2_like() -> Any:
    """BPE with byte fallback; a space is put in front of the text, and taken off by the decoder."""
    vocab = {"<unk>": 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    vocab |= {piece: i for i, piece in enumerate(["▁", "a", "b", "▁a", "ab", "▁▁", "é"], len(vocab))}
    merges = [("▁", "a"), ("a", "b"), ("▁", "▁")]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def unigram_with_metaspace() -> Any:
    """As T5 has it, but with every character of the test's alphabet."""
    pieces = [("<unk>", 0.0), ("▁", -2.0), ("▁a", -3.0), ("ab", -3.0)]
    pieces += [(char, -4.0) for char in sorted({char for text in PICKED for char in text} - {" ", "▁"})]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    return tokenizer


def unigram_with_byte_fallback() -> Any:
    pieces = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256)), ("▁a", -1.0), ("▁", -2.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


BUILT = [
    byte_level_bpe,
    byte_level_with_foreign_pieces,
    byte_level_without_decoder,
    llama2_like,
    unigram_with_metaspace,
    unigram_with_byte_fallback,
]


@pytest.fixture(scope="module", params=BUILT, ids=lambda build: build.__name__)
def built(request: pytest.FixtureRequest) -> Case:
    tokenizer = request.param()
    tokenizer.add_special_tokens(["</s>"])
    eos = tokenizer.token_to_id("</s>")
    return case(Vocabulary.from_transformers(tokenizer, eos_ids=[eos]), tokenizer)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(text=st.lists(st.sampled_from("".join(PICKED)), max_size=30).map("".join))
@example(text="  a b  ")
def test_tokens_of_built_tokenizers_spell_the_text(built: Case, text: str) -> None:
    spelled = spell(built.vocabulary, built.encode(text))
    normal = built.normalize(text).encode()
    assert spelled in (normal, b" " + normal)


def test_pieces_outside_the_alphabet_are_text() -> None:
    tokenizer = byte_level_with_foreign_pieces()
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=[0])
    for i, text in ((900, "\u200d"), (901, "x語"), (902, "é\u00a0")):
        assert vocabulary.token(i) == tokenizer.decode([i]).encode() == text.encode()


def test_a_leading_space_belongs_to_the_token() -> None:
    tokenizer = llama2_like()
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=[0])
    token_id = tokenizer.token_to_id("▁a")
    assert tokenizer.decode([token_id]) == "a"  # at the beginning of a text
    assert tokenizer.decode([tokenizer.token_to_id("b"), token_id]) == "b a"
    assert vocabulary.token(token_id) == b" a"


def test_ids_with_equal_bytes_stay_apart() -> None:
    tokenizer = llama2_like()
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=[0])
    assert [i for i in range(vocabulary.size) if vocabulary.token(i) == b"a"] == [1 + 0x61, 258]


def test_the_unknown_token_has_no_bytes() -> None:
    assert Vocabulary.from_transformers(llama2_like(), eos_ids=[1]).special_tokens == {"<unk>": 0}
    vocabulary = Vocabulary.from_transformers(unigram_with_metaspace(), eos_ids=[1])
    assert vocabulary.special_tokens == {"<unk>": 0}


@pytest.mark.parametrize("build", BUILT)
def test_added_tokens_are_special_or_text(build: Callable[[], Any]) -> None:
    tokenizer = build()
    texts = ["<tool call>", "語é"]
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in texts])
    tokenizer.add_special_tokens(["</s>"])
    eos = tokenizer.token_to_id("</s>")
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=[eos])
    assert [vocabulary.token(tokenizer.token_to_id(text)) for text in texts] == [t.encode() for t in texts]
    assert vocabulary.special_tokens["</s>"] == eos


def test_added_tokens_go_through_normalizer_and_decoder() -> None:
    tokenizer = llama2_like()
    tokenizer.add_tokens([AddedToken("foo bar", normalized=True), AddedToken("▁▁▁▁", normalized=False)])
    vocabulary = Vocabulary.from_transformers(tokenizer, eos_ids=[0])
    foo, spaces = vocabulary.size - 2, vocabulary.size - 1
    assert vocabulary.token(foo) == b" foo bar"
    assert vocabulary.token(spaces) == b"    "
    ids = tokenizer.encode("b foo bar", add_special_tokens=False).ids
    assert foo in ids
    assert spell(vocabulary, ids) == b" b foo bar"


def test_placeholders_of_the_model_stay_text() -> None:
    tokenizer = llama2_like()
    document = json.loads(tokenizer.to_str())
    document["model"]["vocab"]["<unused0>"] = len(document["model"]["vocab"])
    table = tokenizer_json.read(document)
    assert table.tokens[len(document["model"]["vocab"]) - 1] == b"<unused0>"


def test_special_pieces_need_no_spelling() -> None:
    document = json.loads(byte_level_tokenizer().to_str())
    document["model"]["vocab"]["<｜end｜>"] = 999
    assert tokenizer_json.read(document).tokens[999] == "<｜end｜>".encode()
    table = tokenizer_json.read(document, special_names=["<｜end｜>"])
    assert table.special_tokens == {"<｜end｜>": 999}
    assert 999 not in table.tokens


def change(**components: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(components)


def change_model(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["model"].update(fields)


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": list(steps)}


REPLACE = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
BYTE_FALLBACK, FUSE = {"type": "ByteFallback"}, {"type": "Fuse"}
METASPACE = {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True}
FOO = {"id": 300, "content": "foo", "normalized": True, "special": False}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (change(decoder=None), "it has no decoder"),
        (change(decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}), "does not keep the spaces"),
        (change(decoder={"type": "BPEDecoder", "suffix": "</w>"}), "end-of-word suffix"),
        (change(decoder={"type": "CTC"}), "CTC merges repeated tokens"),
        (change(decoder={"type": "Novel"}), "its decoder Novel is not known"),
        (change(decoder=sequence(REPLACE, {"type": "Novel"})), r"Replace\+Novel is not known"),
        (change(decoder=sequence(BYTE_FALLBACK, FUSE, METASPACE)), "Metaspace is not known"),
        (change(decoder=sequence(BYTE_FALLBACK, REPLACE, FUSE)), "stand in an order that is not known"),
        (change(decoder=sequence(REPLACE, BYTE_FALLBACK, STRIP)), "stand in an order that is not known"),
        (change(decoder=sequence(REPLACE, FUSE, {**STRIP, "stop": 1})), "strips more than spaces"),
        (change(decoder=sequence(REPLACE, FUSE, {**STRIP, "content": "a"})), "strips more than spaces"),
        (change(decoder=sequence({**REPLACE, "pattern": {"Regex": "▁"}}, FUSE)), "replaces by a regex"),
        (change(decoder=METASPACE), "falls back to bytes, but its decoder does not know"),
        (change_model(type="WordPiece"), "WordPiece does not keep the spaces"),
        (change_model(type="Novel"), "its model Novel is not known"),
        (change_model(end_of_word_suffix="</w>"), "end_of_word_suffix '</w>'"),
        (change_model(continuing_subword_prefix="##"), "continuing_subword_prefix '##'"),
    ],
)
def test_what_could_only_be_guessed_is_refused(damage: Callable[[dict[str, Any]], None], reason: str) -> None:
    document = json.loads(llama2_like().to_str())
    document["model"]["byte_fallback"] = reason.startswith("falls back")
    tokenizer_json.read(document | {"decoder": sequence(REPLACE, BYTE_FALLBACK, FUSE, STRIP)})
    damage(document)
    with pytest.raises(VocabularyError, match=f"token bytes cannot be known: .*{reason}"):
        tokenizer_json.read(document)


def test_a_token_whose_bytes_nobody_knows_is_left_out() -> None:
    """What a normalizer does matters for added tokens alone: other pieces are as it leaves them."""
    document = json.loads(llama2_like().to_str())
    change(normalizer={"type": "Lowercase"}, added_tokens=[FOO])(document)
    known = tokenizer_json.read(json.loads(llama2_like().to_str()))
    with pytest.warns(VocabularyWarning, match=r"1 of \d+ tokens are left out of masks: .* of 'foo' is not known"):
        table = tokenizer_json.read(document)
    vocabulary = Vocabulary.from_table(replace(table, eos_ids=[1]))
    assert vocabulary.size == 301
    assert vocabulary.token(300) is None
    assert table.tokens == {i: token for i, token in known.tokens.items() if i != 300}
    mask = sg.Guide(sg.compile(sg.Regex("(?s).*"), vocabulary)).bitmask()
    ascii_ids = {i for i, token in table.tokens.items() if token.isascii()}
    assert ascii_ids <= set(ids_of_bits(mask))
    assert 300 not in ids_of_bits(mask)


def test_a_token_that_is_left_out_has_its_place_in_masks(tmp_path: Path) -> None:
    document = json.loads(llama2_like().to_str())
    change(normalizer={"type": "Lowercase"}, added_tokens=[FOO])(document)
    (tmp_path / "tokenizer.json").write_text(json.dumps(document), "utf-8")
    with pytest.warns(VocabularyWarning):
        assert Vocabulary.from_pretrained(tmp_path, eos_ids=[1], size=310).size == 310
    with pytest.warns(VocabularyWarning):
        assert Vocabulary.from_pretrained(tmp_path, eos_ids=[1], size=300).size == 300
    change(added_tokens=[FOO | {"id": -1}])(document)
    with pytest.raises(VocabularyError, match="id -1"):
        tokenizer_json.read(document)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"model": None},
        {"model": {"type": "BPE"}, "decoder": {"type": "ByteLevel"}},
        {"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": {"kind": "ByteLevel"}},
        {"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": "ByteLevel"},
        {"model": {"type": "BPE", "vocab": {"a": 0}}, "decoder": {"type": "ByteLevel"}, "added_tokens": [{}]},
        {"model": {"type": "Unigram", "vocab": [["a"]]}, "decoder": METASPACE},
        {"model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 7}, "decoder": METASPACE},
    ],
)
def test_malformed_documents_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(VocabularyError, match="malformed"):
        tokenizer_json.read(document)


def test_word_piece_is_refused() -> None:
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "hello": 1, "##s": 2}, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece()
    with pytest.raises(VocabularyError, match="WordPiece does not keep the spaces between words"):
        Vocabulary.from_transformers(tokenizer, eos_ids=[0])


def test_a_bare_tokenizer_needs_eos_ids() -> None:
    with pytest.raises(VocabularyError, match=r"has no EOS token \(Tokenizer\)\. Pass the ids"):
        Vocabulary.from_transformers(byte_level_tokenizer())


def test_unknown_objects_are_refused() -> None:
    with pytest.raises(VocabularyError, match=r"not known \(builtins\.dict\)"):
        Vocabulary.from_transformers({}, eos_ids=[0])


# -- the self-test -------------------------------------------------------------------------------------


def test_a_wrong_vocabulary_is_found_out() -> None:
    tokenizer = byte_level_tokenizer()
    encode, decode = case_functions(tokenizer)
    right = Vocabulary.from_transformers(tokenizer, eos_ids=[0])
    texts = faithful_texts(encode, decode)
    assert texts == list(TEXTS)
    for text in texts:
        for i in set(encode(text)):
            tokens = vocabulary_tokens(right)
            tokens[i] = b"?!"
            with pytest.raises(VocabularyError, match=r"the vocabulary is not the tokenizer's: it spells"):
                check_roundtrip(Vocabulary.from_bytes(tokens, []).token, [], encode, [text])


def test_from_transformers_runs_the_self_test() -> None:
    """A tokenizer that does not mean what its file says."""
    honest = byte_level_tokenizer()
    size = honest.get_vocab_size()

    class Shifted:
        eos_token_id = 0
        backend_tokenizer = honest

        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            return [(i + 1) % size for i in honest.encode(text, add_special_tokens=add_special_tokens).ids]

        def decode(self, ids: Sequence[int], clean_up_tokenization_spaces: bool) -> str:
            text: str = honest.decode([(i - 1) % size for i in ids])
            return text

    with pytest.raises(VocabularyError, match="it spells 'hello world' as"):
        Vocabulary.from_transformers(Shifted())


def test_texts_that_a_tokenizer_changes_do_not_judge_it() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.normalizer = normalizers.Lowercase()
    assert faithful_texts(*case_functions(tokenizer))[0] == "hello world"
    assert TEXTS[1] not in faithful_texts(*case_functions(tokenizer))
    assert Vocabulary.from_transformers(tokenizer, eos_ids=[0]).size == tokenizer.get_vocab_size()


def case_functions(tokenizer: Any) -> tuple[Callable[[str], Sequence[int]], Callable[[Sequence[int]], str]]:
    return (
        lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        lambda ids: tokenizer.decode(ids, skip_special_tokens=False),
    )


# -- SentencePiece -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentencepiece_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small SentencePiece model with byte fallback, trained on the spot."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("sentencepiece")
    corpus = [word for i in range(200) for word in (f"the number {i} is the next", "žluťoučký kůň", "  x  y")]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=350,
        model_type="unigram",
        byte_fallback=True,
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["<tool>"],
        control_symbols=["<ctl>"],
        minloglevel=2,
    )
    return folder / "tokenizer.model"


@pytest.fixture(scope="module")
def slow(sentencepiece_file: Path) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.BertGenerationTokenizer(str(sentencepiece_file))


def test_slow_tokenizers(slow: Any) -> None:
    assert not hasattr(slow, "backend_tokenizer")
    vocabulary = Vocabulary.from_transformers(slow)
    assert vocabulary.eos_ids == (slow.eos_token_id,)
    assert slow.sp_model.decode(slow.sp_model.encode(TEXTS[3])) == TEXTS[3]
    for text in PICKED:
        expected = text.replace("▁", " ").encode()
        spelled = spell(vocabulary, slow.encode(text, add_special_tokens=False))
        assert spelled in (expected, b" " + expected)


def test_added_tokens_of_slow_tokenizers(sentencepiece_file: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.BertGenerationTokenizer(str(sentencepiece_file))
    tokenizer.add_tokens(["<think ▁>"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<turn>"]})
    vocabulary = Vocabulary.from_transformers(tokenizer)
    think, turn = (tokenizer.convert_tokens_to_ids(name) for name in ("<think ▁>", "<turn>"))
    assert vocabulary.token(think) == "<think ▁>".encode()
    assert vocabulary.token(turn) is None
    assert vocabulary.special_tokens["<turn>"] == turn
    assert vocabulary.special_tokens["<ctl>"] == tokenizer.sp_model.piece_to_id("<ctl>")
    assert vocabulary.token(tokenizer.sp_model.piece_to_id("<tool>")) == b"<tool>"


def test_slow_tokenizers_may_shift_the_ids(slow: Any) -> None:
    class Shifted:
        """As XLM-RoBERTa does."""

        eos_token_id = 0
        sp_model = slow.sp_model
        added_tokens_decoder: ClassVar = {0: AddedToken("[end]", special=True)}

        def get_vocab(self) -> dict[str, int]:
            model = slow.sp_model
            return {model.id_to_piece(i): i + 5 for i in range(model.get_piece_size())} | {"[end]": 0}

        def encode(self, text: str, add_special_tokens: bool) -> list[int]:
            return [i + 5 for i in slow.encode(text, add_special_tokens=add_special_tokens)]

        def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str]:
            tokens: list[str] = slow.convert_ids_to_tokens([i - 5 for i in ids])
            return tokens

    shifted = vocabulary_tokens(Vocabulary.from_transformers(Shifted()))
    straight = vocabulary_tokens(Vocabulary.from_transformers(slow))
    assert shifted == [b""] * 5 + straight[: len(shifted) - 5]

    class Foreign(Shifted):
        def get_vocab(self) -> dict[str, int]:
            return {"no such piece": 7}

    with pytest.raises(VocabularyError, match=r"token 7 is 'no such piece', which .* does not know"):
        Vocabulary.from_transformers(Foreign())


def test_a_model_is_the_same_slow_and_fast(slow: Any) -> None:
    model = slow.sp_model
    ids = range(model.get_piece_size())
    pieces = [(model.id_to_piece(i), model.get_score(i)) for i in ids]
    fast = Tokenizer(models.Unigram(pieces, unk_id=model.unk_id(), byte_fallback=True))
    fast.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fast.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fast.add_special_tokens([piece for i, (piece, _) in zip(ids, pieces, strict=True) if model.is_control(i)])
    eos = slow.eos_token_id
    assert (
        vocabulary_tokens(Vocabulary.from_transformers(fast, eos_ids=[eos]))
        == vocabulary_tokens(Vocabulary.from_transformers(slow))[: model.get_piece_size()]
    )


# -- Mistral -------------------------------------------------------------------------------------------


def mistral_backend(file: str) -> Any:
    """Transformers' wrapper around one of the tokenizers that the mistral-common wheel ships."""
    mistral_common = pytest.importorskip("mistral_common")
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, "MistralCommonBackend", None) or getattr(transformers, "MistralCommonTokenizer", None)
    if kind is None:
        pytest.skip("this version of transformers has no tokenizer backed by mistral-common")
    return kind(tokenizer_path=str(Path(mistral_common.__file__).parent / "data" / file))


def test_tekken_inside_transformers(tekken: Vocabulary) -> None:
    vocabulary = Vocabulary.from_transformers(mistral_backend("tekken_240911.json"))
    assert vocabulary.fingerprint == tekken.fingerprint
    assert vocabulary.special_tokens == tekken.special_tokens


def test_sentencepiece_inside_mistral_common() -> None:
    backend = mistral_backend("mistral_instruct_tokenizer_240323.model.v3")
    vocabulary = Vocabulary.from_transformers(backend)
    assert vocabulary.eos_ids == (2,)
    assert vocabulary.special_tokens["[INST]"] == 3
    assert vocabulary.token(771 + 0x0A) == b"\n"
    for text in PICKED:
        expected = text.replace("▁", " ").encode()
        assert spell(vocabulary, backend.encode(text, add_special_tokens=False)) in (expected, b" " + expected)


def tekken_document(**config: Any) -> dict[str, Any]:
    tokens = [*EACH_BYTE, b"ab", b"abc"]
    return {
        "config": {
            "pattern": ".+",
            "num_vocab_tokens": len(tokens),
            "default_vocab_size": 260,
            "default_num_special_tokens": 3,
            "version": "v13",
            **config,
        },
        "vocab": [
            {"rank": i, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for i, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": 0, "token_str": "<unk>", "is_control": True},
            {"rank": 1, "token_str": "</s>", "is_control": True},
        ],
    }


def test_tekken_files_with_special_tokens_of_their_own(tmp_path: Path) -> None:
    base = pytest.importorskip("mistral_common.tokens.tokenizers.base")
    if "v13" not in base.TokenizerVersion.__members__:
        pytest.skip("this version of mistral-common knows no tekken files of version v13")
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    file = tmp_path / "tekken.json"
    file.write_text(json.dumps(tekken_document()))
    vocabulary = Vocabulary.from_tekken(file)
    judge = Tekkenizer.from_file(file)
    assert vocabulary_tokens(vocabulary) == tekkenizer_tokens(judge)
    assert vocabulary.special_tokens == {"<unk>": 0, "</s>": 1, "<SPECIAL_2>": 2}
    assert vocabulary.eos_ids == (1,)
    assert vocabulary.token(259) == b"ab"  # "abc" is cut off
    folder = Vocabulary.from_pretrained(tmp_path, eos_ids=[2])
    assert folder.eos_ids == (2,)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "KeyError: 'config'"),
        ([], "not a tekken file"),
        (tekken_document(default_vocab_size=1000), "expected the ranks 0 to 996 in order"),
        (tekken_document() | {"special_tokens": None}, "after v7 list their special tokens"),
        (tekken_document() | {"special_tokens": []}, "</s> among them"),
        (tekken_document(default_num_special_tokens=1, default_vocab_size=250), "take the ids 0 to 0"),
    ],
)
def test_other_files_are_not_tekken(tmp_path: Path, document: Any, message: str) -> None:
    file = tmp_path / "tekken.json"
    file.write_text(json.dumps(document))
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tekken(file)


def test_missing_tekken_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VocabularyError, match="cannot be read: No such file"):
        Vocabulary.from_tekken(tmp_path / "tekken.json")
    monkeypatch.setattr("structgen.vocabulary.tekken.find_spec", lambda name: None)
    with pytest.raises(VocabularyError, match=r"pip install structgen\[tekken\]"):
        Vocabulary.from_tekken()


# -- tiktoken ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def encoding() -> Any:
    """An encoding with a gap in its ids, as cl100k_base has."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b" ab": 257, "é".encode(): 258}
    special_tokens = {"<|endoftext|>": 260, "<|im_end|>": 262}
    return tiktoken.Encoding("tiny", pat_str=r" ?\w+|.|\s", mergeable_ranks=ranks, special_tokens=special_tokens)


def test_tiktoken(encoding: Any) -> None:
    vocabulary = Vocabulary.from_tiktoken(encoding)
    assert vocabulary.size == encoding.n_vocab == 263
    assert vocabulary.eos_ids == (encoding.eot_token,)
    assert vocabulary.special_tokens == {"<|endoftext|>": 260, "<|im_end|>": 262}
    assert [vocabulary.token(i) for i in (0, 257, 259, 260, 261, 262)] == [b"\0", b" ab", None, None, None, None]
    assert Vocabulary.from_tiktoken(encoding, eos_ids=[260, 262]).eos_ids == (260, 262)


@given(text=TEXT)
def test_tiktoken_tokens_spell_the_text(encoding: Any, text: str) -> None:
    assert spell(Vocabulary.from_tiktoken(encoding), encoding.encode_ordinary(text)) == text.encode()


def test_tekken_through_tiktoken(tekken: Vocabulary) -> None:
    """The ranks of tekken make an encoding whose ids are a thousand lower."""
    tiktoken = pytest.importorskip("tiktoken")
    tokens = vocabulary_tokens(tekken)[1000:]
    ranks = {token: i for i, token in enumerate(tokens)}
    eos = {"<|endoftext|>": len(tokens)}
    encoding = tiktoken.Encoding("tekken", pat_str=r"\s+|\S+", mergeable_ranks=ranks, special_tokens=eos)
    assert vocabulary_tokens(Vocabulary.from_tiktoken(encoding)) == [*tokens, b""]


def test_encodings_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    bare = tiktoken.Encoding("bare", pat_str=".", mergeable_ranks={b"a": 0, b"b": 1}, special_tokens={})
    with pytest.raises(VocabularyError, match=r"has no <\|endoftext\|> \(bare\)\. Pass the ids"):
        Vocabulary.from_tiktoken(bare)
    with pytest.raises(VocabularyError, match=r"Unknown encoding nonesuch\.\s+\(encoding 'nonesuch'\)"):
        Vocabulary.from_tiktoken("nonesuch")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(VocabularyError, match=r"pip install structgen\[tiktoken\]"):
        Vocabulary.from_tiktoken("cl100k_base")
