"""Packed bitmasks: the layout, the helpers, and batches of guides."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from fakes.fakes import EOS, byte_vocabulary, fake_index
from numpy.typing import NDArray

import structgen as sg
from structgen.errors import BitmaskError, VocabularyMismatchError
from structgen.runtime import fill_batch, ids_of
from structgen.runtime.guide.guide import Guide
from structgen.runtime.rows.bitmask import pack, unpack, words_for
from structgen.vocabulary import Vocabulary

WIDTHS = [1, 31, 32, 33, 64, 95, 128_256, 128_257]


def naive_pack(allowed: NDArray[np.bool_]) -> list[int]:
    """The layout, spelled out: bit ``t % 32`` of word ``t // 32``, as signed 32-bit integers."""
    words = [0] * -(-len(allowed) // 32)
    for t in np.flatnonzero(allowed).tolist():
        words[t // 32] |= 1 << t % 32
    return [word - (1 << 32) if word >> 31 else word for word in words]


@pytest.mark.parametrize("width", WIDTHS)
def test_pack_and_back(width: int) -> None:
    allowed = np.random.default_rng(width).random(width) < 0.4
    packed = pack(allowed)
    assert packed.dtype == np.int32
    assert packed.tolist() == naive_pack(allowed)
    assert np.array_equal(unpack(packed, width), allowed)
    assert ids_of(packed).tolist() == np.flatnonzero(allowed).tolist()
    assert ids_of(packed).dtype == np.int64


def test_pack_a_batch_row_by_row() -> None:
    allowed = np.random.default_rng(1).random((3, 77)) < 0.5
    assert np.array_equal(pack(allowed), [naive_pack(row) for row in allowed])
    assert np.array_equal(unpack(pack(allowed), 77), allowed)


def test_the_sign_bit_is_token_31() -> None:
    assert ids_of(np.array([0, -(1 << 31), -1], np.int32)).tolist() == [63, *range(64, 96)]


def test_ids_of_a_strided_row() -> None:
    assert ids_of(np.arange(8, dtype=np.int32)[1::2]).tolist() == [0, 32, 33, 64, 66, 96, 97, 98]


@pytest.mark.parametrize("width", WIDTHS)
def test_allocate_forbids_everything(width: int) -> None:
    bitmask = sg.allocate_bitmask(2, width)
    assert bitmask.dtype == np.int32
    assert bitmask.shape == (2, words_for(width))
    assert not bitmask.any()


@pytest.mark.parametrize(
    "wrong", [np.zeros(3, np.int64), np.zeros(3, np.uint32), np.zeros((2, 3), np.int32), np.int32(1), [1, 2], None]
)
def test_ids_of_refuses(wrong: object) -> None:
    with pytest.raises(BitmaskError, match=r"expected a NumPy int32\[words\]"):
        ids_of(wrong)  # type: ignore[arg-type]


def test_the_other_helpers_refuse() -> None:
    with pytest.raises(BitmaskError, match="got 2 rows and 0 tokens"):
        sg.allocate_bitmask(2, 0)
    with pytest.raises(BitmaskError, match="-1 rows"):
        sg.allocate_bitmask(-1, 5)
    with pytest.raises(BitmaskError, match=r"got int32\[3\]"):
        pack(np.zeros(3, np.int32))  # type: ignore[arg-type]
    with pytest.raises(BitmaskError, match="cannot read 65 bits from 2 words"):
        unpack(np.zeros(2, np.int32), 65)


# -- batches ----------------------------------------------------------------------------------------------


def guides_and_vocabulary() -> tuple[list[Guide | None], Vocabulary]:
    vocabulary = byte_vocabulary()
    digits, words = fake_index("[0-9]{2}", vocabulary), fake_index("the|true", vocabulary)
    return [Guide(digits), None, Guide(words), Guide(digits)], vocabulary


@pytest.mark.parametrize("extra_words", [0, 3])
def test_fill_batch(extra_words: int) -> None:
    guides, vocabulary = guides_and_vocabulary()
    last = guides[3]
    assert last is not None
    assert last.advance(ord("7"))
    assert last.advance(ord("8"))
    bitmask = np.full((4, vocabulary.words + extra_words), 0x5A5A5A5A, np.int32)
    fill_batch(guides, bitmask)
    digits = list(range(ord("0"), ord("9") + 1))
    spelled = {i for i in range(vocabulary.size) if vocabulary.token(i) in (b"12", b"00")}
    assert set(ids_of(bitmask[0])) == {*digits, *spelled}
    assert ids_of(bitmask[1]).tolist() == list(range(vocabulary.size))
    assert {vocabulary.token(i) for i in ids_of(bitmask[2])} == {b"t", b"the", b"true"}
    assert ids_of(bitmask[3]).tolist() == [EOS]


def test_fill_batch_without_any_guide_allows_every_bit() -> None:
    bitmask = sg.allocate_bitmask(2, 40)
    fill_batch([None, None], bitmask)
    assert (bitmask == -1).all()


@pytest.mark.parametrize("size", [64, 65])
def test_fill_batch_stops_at_the_vocabulary(size: int) -> None:
    vocabulary = Vocabulary.from_bytes([b"a"], eos_ids=[1], size=size)
    bitmask = sg.allocate_bitmask(2, 100)
    fill_batch([Guide(fake_index("a", vocabulary)), None], bitmask)
    assert ids_of(bitmask[1]).tolist() == list(range(size))


def test_fill_batch_refuses() -> None:
    guides, vocabulary = guides_and_vocabulary()
    with pytest.raises(BitmaskError, match=r"int32\[4, 9\] or wider, got int32\[3, 9\]"):
        fill_batch(guides, sg.allocate_bitmask(3, vocabulary.size))
    with pytest.raises(BitmaskError, match=r"int32\[4, 9\] or wider, got int32\[4, 8\]"):
        fill_batch(guides, sg.allocate_bitmask(4, 256))
    with pytest.raises(BitmaskError, match=r"int32\[4, 9\] or wider, got int32\[9\]"):
        fill_batch(guides, np.zeros(9, np.int32))
    frozen = sg.allocate_bitmask(4, vocabulary.size)
    frozen.flags.writeable = False
    with pytest.raises(BitmaskError, match="read-only"):
        fill_batch(guides, frozen)


def test_fill_batch_refuses_two_vocabularies_and_names_the_rows() -> None:
    guides, vocabulary = guides_and_vocabulary()
    other = Vocabulary.from_bytes([b"a", b"b"], eos_ids=[2], size=vocabulary.size)
    guides[2] = Guide(fake_index("a", other))
    with pytest.raises(VocabularyMismatchError, match=r"rows 0 and 2"):
        fill_batch(guides, sg.allocate_bitmask(4, vocabulary.size))


def test_fill_batch_takes_equal_vocabularies_that_are_not_the_same_object() -> None:
    bitmask = sg.allocate_bitmask(2, 270)
    fill_batch([Guide(fake_index("a", byte_vocabulary())), Guide(fake_index("b", byte_vocabulary()))], bitmask)
    assert [ids_of(row).tolist() for row in bitmask] == [[ord("a")], [ord("b")]]


# -- imports ----------------------------------------------------------------------------------------------


def test_the_runtime_loads_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, structgen as sg, structgen.runtime as r; r.fill_batch, r.ids_of, r.Guide; "
        "sg.allocate_bitmask, sg.apply_bitmask; "
        "sys.exit(' '.join({'torch', 'transformers'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    import structgen.runtime

    with pytest.raises(AttributeError, match=r"'structgen\.runtime' has no attribute 'gide'"):
        structgen.runtime.gide  # noqa: B018
    assert "LogitsProcessor" in dir(structgen.runtime)
