"""Vocabularies of real models, for every test that wants one. Each is loaded once, and absent data skips."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from structgen import Vocabulary

#: Folders with a ``tokenizer.json`` each; they lie beside the repository, not in it.
TOKENIZERS = Path(__file__).resolve().parents[2] / "shared" / "data" / "tokenizers"


def tokenizer_folder(name: str) -> Path:
    """The folder of a real tokenizer; skips the test where it is not there."""
    folder = TOKENIZERS / name
    if not (folder / "tokenizer.json").is_file():
        pytest.skip(f"the tokenizer {name} is not in {TOKENIZERS.parent.name}/{TOKENIZERS.name}")
    return folder


@pytest.fixture(scope="session", autouse=True)
def lock_order() -> Iterator[None]:
    """With ``STRUCTGEN_CHECK_LOCKS=1`` all locks have to be taken in their order, in every test."""
    if not os.environ.get("STRUCTGEN_CHECK_LOCKS"):
        yield
        return
    from hostile.concurrent_work import LockOrder

    order = LockOrder()
    with order.watched():
        yield
    assert order.violations == []


@pytest.fixture(scope="session")
def llama3() -> Vocabulary:
    """Llama 3: byte-level BPE, 128,256 ids."""
    return Vocabulary.from_pretrained(tokenizer_folder("llama3"))


@pytest.fixture(scope="session")
def qwen2_5() -> Vocabulary:
    """Qwen 2.5: byte-level BPE behind NFC, 151,665 ids, some added tokens are text."""
    return Vocabulary.from_pretrained(tokenizer_folder("qwen2_5"))


@pytest.fixture(scope="session")
def gemma() -> Vocabulary:
    """Gemma: SentencePiece with byte fallback, 256,000 ids, 125 pairs with equal bytes."""
    return Vocabulary.from_pretrained(tokenizer_folder("gemma"))


@pytest.fixture(scope="session")
def tekken() -> Vocabulary:
    """Mistral's tekken: 131,072 ids, the first thousand special."""
    if find_spec("mistral_common") is None:
        pytest.skip("the tekken vocabulary comes with mistral-common, which is not installed")
    return Vocabulary.from_tekken()
