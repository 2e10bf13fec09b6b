"""Tokenizers as packages ship them: what each encodes, its vocabulary spells (``make tokenizers``, nightly).

The folders are those in STRUCTGEN_TOKENIZERS; mistral-common's files are in every run that has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from structgen import Vocabulary
from structgen.errors import VocabularyError
from structgen.vocabulary.roundtrip import TEXTS, check_roundtrip, faithful_texts

#: Where packages are, with `:` between them.
FOLDERS = os.environ.get("STRUCTGEN_TOKENIZERS", "")

#: Lines of this repository where there is time for them: prose, Python, tables, other scripts.
_ROOT = Path(__file__).resolve().parents[2]
_FILES = ("README.md", "tests/vocabulary/test_tokenizers.py") if FOLDERS else ()
LINES = (*TEXTS, *(line for name in _FILES for line in (_ROOT / name).read_text("utf-8").splitlines(keepends=True)))


def _found(pattern: str) -> list[Path]:
    return sorted(path for folder in FOLDERS.split(":") if folder for path in Path(folder).rglob(pattern))


def _spells(
    vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]], decode: Callable[[Sequence[int]], str]
) -> None:
    specials = set(vocabulary.special_tokens.values())  # a line may spell their names
    texts = [text for text in faithful_texts(encode, decode, LINES) if specials.isdisjoint(encode(text))]
    assert len(texts) > len(LINES) / 2, vocabulary
    check_roundtrip(vocabulary.token, vocabulary.eos_ids, encode, texts)


needs_folders = pytest.mark.skipif(not FOLDERS, reason="STRUCTGEN_TOKENIZERS names no folders with tokenizers")


@needs_folders
def test_folders_of_hugging_face() -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="the judge of tokenizer.json")
    refused: dict[str, str] = {}
    files = _found("tokenizer.json")
    for file in files:
        judge = tokenizers.Tokenizer.from_file(str(file))
        try:
            vocabulary = Vocabulary.from_pretrained(file.parent)
        except VocabularyError as error:
            refused[str(file.parent)] = str(error)
            continue
        _spells(
            vocabulary,
            lambda text, judge=judge: judge.encode(text, add_special_tokens=False).ids,  # type: ignore[misc]
            lambda ids, judge=judge: judge.decode(ids, skip_special_tokens=False),  # type: ignore[misc]
        )
    assert files
    assert not refused


@needs_folders
def test_ranks_of_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    load = pytest.importorskip("tiktoken.load")
    files = _found("*.tiktoken")
    for file in files:
        ranks = load.load_tiktoken_bpe(str(file))
        specials = {"<|endoftext|>": max(ranks.values()) + 1}
        pattern = r"[^\s\p{L}\p{N}]+|\p{L}+|\p{N}{1,3}|\s+"
        judge = tiktoken.Encoding(file.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        _spells(Vocabulary.from_tiktoken(judge), judge.encode_ordinary, judge.decode)
    assert files


@pytest.mark.skipif(not find_spec("mistral_common"), reason="the tekken vocabulary comes with mistral-common")
def test_files_of_mistral_common() -> None:
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    files = sorted((Path(mistral_common.__file__).parent / "data").glob("tekken_*.json"))
    for file in files:
        judge = Tekkenizer.from_file(file)
        _spells(
            Vocabulary.from_tekken(file),
            lambda text, judge=judge: judge.encode(text, bos=False, eos=False),  # type: ignore[misc]
            lambda ids, judge=judge: judge.decode(list(ids)),  # type: ignore[misc]
        )
    assert files
