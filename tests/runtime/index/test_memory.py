"""`Index.nbytes` against what Python and NumPy allocated."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hostile.concurrent_work import DEFINITIONS, check, vocabulary

import structgen as sg

SCHEMAS = {
    "object": {"properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "bc"]}}}},
    "formats": {"properties": {"at": {"type": "string", "format": "date-time"}, "n": {"type": "integer"}}},
    "counts": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-z ]*$"},
}
TEXT = '{"name": "x y", "tags": ["a", "bc"], "at": "2020-01-01T00:00:00Z", "n": 12}'


@pytest.fixture(autouse=True)
def _traced() -> Iterator[None]:
    yield
    tracemalloc.stop()


def read(index: sg.Index) -> sg.Index:
    """An index that guides have used."""
    guide = sg.Guide(index)
    for byte in TEXT.encode():
        guide.bitmask()
        if not guide.advance(next(i for i in range(1000) if index.vocabulary.token(i) == bytes([byte]))):
            break
    return index


def is_counted(make: Callable[[], sg.Index]) -> bool:
    """Whether an index counts what making it took. The first one leaves behind what the process remembers of it.

    Of the others one has to be right: what else the process remembers may grow, or go, meanwhile.
    """
    make()
    for _ in range(3):
        gc.collect()
        tracemalloc.start()
        index = make()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        if 0.8 * grown <= index.nbytes <= 1.2 * grown + 4096:
            return True
        del index
    return False


@pytest.mark.parametrize("kind", list(DEFINITIONS))
def test_of_every_kind(kind: str) -> None:
    def make() -> sg.Index:
        index = sg.compile(DEFINITIONS[kind], vocabulary(), eager=False)
        check(index, kind)
        return index

    assert is_counted(make)


@pytest.mark.parametrize("eager", [False, True], ids=["lazy", "eager"])
@pytest.mark.parametrize("name", list(SCHEMAS))
def test_with_a_real_vocabulary(name: str, eager: bool, llama3: sg.Vocabulary) -> None:
    assert is_counted(lambda: read(sg.compile(sg.JsonSchema(SCHEMAS[name]), llama3, eager=eager)))


def test_what_a_vocabulary_keeps(llama3: sg.Vocabulary) -> None:
    trie = llama3.trie
    assert llama3.nbytes > llama3.offsets.nbytes + llama3.blob.nbytes + trie.byte.nbytes + trie.token_ids.nbytes
    before = llama3.nbytes
    index = sg.compile(sg.JsonSchema({"type": "string", "pattern": "^[a-y]*$"}), llama3)
    assert llama3.nbytes >= before + 4 * llama3.words, "rows that its indexes share are its own"
    assert index.nbytes < 200_000


def test_a_mapped_file_takes_no_memory(llama3: sg.Vocabulary, tmp_path: Path) -> None:
    index = sg.compile(sg.JsonSchema({"type": "string", "pattern": "^([A-Y]|é)*$", "maxLength": 100}), llama3)
    index.save(tmp_path / "saved")
    assert sg.Index.load(tmp_path / "saved", llama3).nbytes < (tmp_path / "saved").stat().st_size / 4
