"""`Vocabulary` and its trie, on small vocabularies where brute force is the judge."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import structgen
from structgen import Vocabulary
from structgen.errors import FormatError, TokenIdError, VocabularyError
from structgen.storage.container import pack, unpack
from structgen.vocabulary.token_table import MAX_TOKEN_BYTES

#: Tokens over few letters, zero bytes among them, so that prefixes and equal tokens are common; the long ones
#: go past the eight bytes that the sort compares at a time.
TOKENS = st.lists(
    st.none()
    | st.lists(st.sampled_from([0, 1, 97, 255]), max_size=3).map(bytes)
    | st.builds(lambda n, tail: b"\0" * n + tail, st.integers(6, 18), st.sampled_from([b"", b"a", b"ab"])),
    min_size=1,
    max_size=40,
)


@given(TOKENS, st.sets(st.integers(0, 50), max_size=3), st.integers(0, 10))
def test_from_bytes_keeps_every_token(tokens: list[bytes | None], eos: set[int], padding: int) -> None:
    expected = [None if i in eos else token or None for i, token in enumerate(tokens)]
    expected += [None] * (max([len(tokens), *(i + 1 for i in eos)]) - len(tokens) + padding)
    if not any(expected):
        with pytest.raises(VocabularyError, match="no token has any bytes"):
            Vocabulary.from_bytes(tokens, eos, size=len(expected))
        return
    vocabulary = Vocabulary.from_bytes(tokens, eos, size=len(expected))
    assert [vocabulary.token(i) for i in range(len(vocabulary))] == expected
    assert vocabulary.eos_ids == tuple(sorted(eos))
    assert vocabulary.words == len(range(0, len(expected), 32))


def test_a_mapping_may_have_gaps() -> None:
    vocabulary = Vocabulary.from_bytes({5: b"five", 2: b"two"}, [3], special_tokens={"<s>": 7})
    assert [vocabulary.token(i) for i in range(8)] == [None, None, b"two", None, None, b"five", None, None]
    assert (vocabulary.size, vocabulary.eos_ids, vocabulary.special_tokens) == (8, (3,), {"<s>": 7})
    assert "8 ids, EOS [3]" in repr(vocabulary)


def test_eos_and_special_tokens_lose_their_bytes() -> None:
    vocabulary = Vocabulary.from_bytes([b"a", b"</s>", b"<s>"], [1], special_tokens={"<s>": 2})
    assert [vocabulary.token(i) for i in range(3)] == [b"a", None, None]


def test_size_may_leave_out_only_what_has_no_bytes() -> None:
    tokens = {0: b"a", 1: b"b"}
    assert Vocabulary.from_bytes(tokens, [2], special_tokens={"<img>": 3}, size=3).special_tokens == {}
    for size in (1, 2):
        with pytest.raises(VocabularyError, match=f"size={size} leaves out token id 2"):
            Vocabulary.from_bytes(tokens, [2], size=size)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Vocabulary.from_bytes([], []), "1 to 4,194,304 token ids, this one has 0"),
        (lambda: Vocabulary.from_bytes([b"a"], [], size=0), "size=0 leaves out token id 0"),
        (lambda: Vocabulary.from_bytes({-1: b"a"}, []), "token ids run from -1 to -1"),
        (lambda: Vocabulary.from_bytes([b"a"], [-1]), "token ids run from -1"),
        (lambda: Vocabulary.from_bytes({0: b"a", 1 << 40: b"b"}, []), "token ids run from 0 to 1099511627776"),
        (lambda: Vocabulary.from_bytes([b"a"], [], size=1 << 23), "at most 4,194,304 token ids, got size=8,388,608"),
        (lambda: Vocabulary.from_bytes(["a"], []), "token 0 is str, expected bytes"),  # type: ignore[list-item]
        (lambda: Vocabulary.from_bytes([b"a" * (MAX_TOKEN_BYTES + 1)], []), "token 0 has 65,536 bytes"),
    ],
)
def test_nonsense_is_refused(build: Callable[[], Vocabulary], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        build()


@pytest.mark.parametrize(
    ("offsets", "eos", "message"),
    [
        ([0, 2], (), "do not partition"),
        ([1, 3], (), "do not partition"),
        ([0, 3, 2, 3], (), "do not partition"),
        ([0, 3], (0,), "EOS id 0 has bytes of its own"),
        ([0, 3, 3], (2,), r"EOS id 2 is outside 0\.\.1"),
        ([0, 3, 3], (-1,), r"EOS id -1 is outside 0\.\.1"),
        ([0], (), "this one has 0"),
    ],
)
def test_the_constructor_checks_its_arrays(offsets: list[int], eos: tuple[int, ...], message: str) -> None:
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(np.array(offsets, np.uint32), np.frombuffer(b"abc", np.uint8), eos)


def test_token_ids_out_of_range() -> None:
    vocabulary = Vocabulary.from_bytes([b"a", None], [1])
    for token_id in (-1, 2):
        with pytest.raises(TokenIdError, match=rf"token id {token_id} is outside the vocabulary \(0\.\.1\)"):
            vocabulary.token(token_id)


def test_the_fingerprint_is_of_the_bytes_alone() -> None:
    base = Vocabulary.from_bytes([b"a", b"bc", None], [2])
    alike = [
        Vocabulary.from_bytes([b"a", b"bc"], [2], special_tokens={"</s>": 2}),
        Vocabulary.from_bytes([b"a", b"bc", None, None], [2]),
        Vocabulary.from_bytes([b"a", b"bc", None], []),
        Vocabulary.from_bytes([b"a", b"bc"], [7], size=100),
        base.with_size(1000).with_eos_ids([999, 3]),
    ]
    assert {v.fingerprint for v in alike} == {base.fingerprint}
    assert len({v.identity for v in [base, *alike]}) == 6
    others = [
        Vocabulary.from_bytes([b"ab", b"c", None], [2]),
        Vocabulary.from_bytes([b"a", b"bd", None], [2]),
        Vocabulary.from_bytes([b"a", None, b"bc"], [1]),
        base.with_size(1000).with_eos_ids([999]).with_size(1000).without([1]),
    ]
    assert len({v.fingerprint for v in [base, *others]}) == 5


def test_the_same_tokens_for_other_models() -> None:
    base = Vocabulary.from_bytes([b"a", b"b", b"c", None, None], [3], special_tokens={"<x>": 4})
    assert base.with_eos_ids([3]) is base
    wide = base.with_size(40)
    assert (wide.size, wide.words, wide.eos_ids, wide.trie) == (40, 2, (3,), base.trie)
    assert (base.spelled, wide.spelled, wide.known, wide.least_words) == (3, 3, 5, 1)
    assert (wide.with_eos_ids([39]).least_words, wide.with_eos_ids([39]).known) == (2, 5)
    narrow = base.with_size(4)  # a model that cannot write <x>
    assert (narrow.special_tokens, narrow.fingerprint) == ({}, base.fingerprint)
    narrower = base.with_eos_ids([]).with_size(2)
    assert (narrower.token(1), narrower.spelled) == (b"b", 2)
    assert narrower.fingerprint == Vocabulary.from_bytes([b"a", b"b"], []).fingerprint
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: base.with_eos_ids([5]), "EOS id 5 is outside 0..4"),
        (lambda: base.with_eos_ids([0]), "EOS id 0 has bytes"),
        (lambda: base.with_size(3), "none of the EOS ids"),
        (lambda: base.with_size(0), "1 to"),
        (lambda: base.without([5]), "0 to 4"),
        (lambda: base.without([0, 1, 2]), "no token has any bytes"),
    ]
    for wrong, message in wrongs:
        with pytest.raises(VocabularyError, match=message):
            wrong()


def test_tokens_that_no_mask_allows() -> None:
    base = Vocabulary.from_bytes([b"a", b"b", b"ab", None, None], [3], special_tokens={"<x>": 4})
    without = base.without([1, 4])
    assert [without.token(i) for i in range(5)] == [b"a", None, b"ab", None, None]
    assert without.special_tokens == {}
    guide = structgen.Guide(structgen.compile(structgen.Regex("[ab]{2}"), without))
    assert [i for i in range(5) if guide.allows(i)] == [0, 2]


def test_alive_finds_a_vocabulary_while_it_is_held() -> None:
    vocabulary = Vocabulary.from_bytes([b"only here", None], [1])
    identity = vocabulary.identity
    assert Vocabulary.alive(identity) is vocabulary
    del vocabulary
    assert Vocabulary.alive(identity) is None


# -- keeping -------------------------------------------------------------------------------------------


@given(TOKENS.filter(lambda tokens: any(tokens)))
def test_to_bytes_and_back(tokens: list[bytes | None]) -> None:
    eos = len(tokens)
    vocabulary = Vocabulary.from_bytes(tokens, [eos], special_tokens={"</s>": eos})
    again = Vocabulary.from_buffer(vocabulary.to_bytes())
    assert again.fingerprint == vocabulary.fingerprint
    assert [again.token(i) for i in range(eos + 1)] == [token or None for token in tokens] + [None]
    assert again.special_tokens == {"</s>": eos}


def test_damaged_vocabularies_are_refused() -> None:
    good = Vocabulary.from_bytes([b"a", b"bc", None], [2], special_tokens={"</s>": 2}).to_bytes()
    for i in range(len(good)):
        flipped = bytearray(good)
        flipped[i] ^= 0x10
        with pytest.raises(FormatError):
            Vocabulary.from_buffer(flipped)
    for end in range(len(good)):
        with pytest.raises(FormatError):
            Vocabulary.from_buffer(good[:end])


@pytest.mark.parametrize(
    "change",
    [
        {"eos_ids": None},
        {"eos_ids": [True]},
        {"eos_ids": [99]},
        {"eos_ids": [0]},
        {"special_tokens": []},
        {"special_tokens": {"x": "0"}},
        {"token_offsets": None},
        {"token_offsets": np.array([0, 1, 9, 3], np.uint32)},
        {"token_offsets": np.array([0, 1, 3, 3], np.int32)},
        {"token_bytes": np.array([[97], [98], [99]], np.uint8)},
    ],
)
def test_well_packed_nonsense_is_refused(change: dict[str, object]) -> None:
    meta, sections = unpack(Vocabulary.from_bytes([b"a", b"bc", None], [2]).to_bytes())
    document = {**meta, **sections, **change}
    arrays = {name: array for name in sections if isinstance(array := document.pop(name), np.ndarray)}
    with pytest.raises(FormatError):
        Vocabulary.from_buffer(pack(document, arrays))


# -- the trie ------------------------------------------------------------------------------------------


@given(TOKENS.filter(lambda tokens: any(tokens)))
def test_the_trie_by_brute_force(tokens: list[bytes | None]) -> None:
    by_id = {i: token for i, token in enumerate(tokens) if token}
    ids = sorted(by_id, key=lambda i: (by_id[i], i))
    prefixes = sorted({token[:n] for token in by_id.values() for n in range(len(token) + 1)})
    ends = [sum(token == prefix for token in by_id.values()) for prefix in prefixes]
    skip = [
        next((k for k in range(j, len(prefixes)) if not prefixes[k].startswith(prefix)), len(prefixes))
        for j, prefix in enumerate(prefixes)
    ]

    trie = Vocabulary.from_bytes(tokens, []).trie

    assert trie.token_ids.tolist() == ids
    assert trie.byte.tolist() == [prefix[-1] if prefix else 0 for prefix in prefixes]
    assert trie.depth.tolist() == [len(prefix) for prefix in prefixes]
    assert trie.skip.tolist() == skip
    assert trie.first_token.tolist() == [0, *accumulate(ends)]
    assert trie.max_depth == max(map(len, by_id.values()))
    byte, node, child = trie.upper.tolist()
    upper = sorted([prefix for prefix in prefixes if len(prefix) <= 2], key=lambda prefix: (len(prefix), prefix))
    assert node[:-1] == [prefixes.index(prefix) for prefix in upper]
    assert byte[:-1] == [prefix[-1] if prefix else 0 for prefix in upper]
    for k, prefix in enumerate(upper[: sum(len(prefix) < 2 for prefix in upper)]):
        assert upper[child[k] : child[k + 1]] == [each for each in upper if each and each[:-1] == prefix]
    dtypes = [array.dtype for array in (trie.byte, trie.depth, trie.skip, trie.first_token, trie.token_ids)]
    assert dtypes == [np.uint8, np.uint16, np.int32, np.int32, np.int32]


def test_a_token_as_long_as_the_depths_allow() -> None:
    trie = Vocabulary.from_bytes([b"a" * MAX_TOKEN_BYTES, b"ab"], []).trie
    assert trie.max_depth == MAX_TOKEN_BYTES
    assert trie.token_ids.tolist() == [0, 1]
    assert trie.skip[1:3].tolist() == [MAX_TOKEN_BYTES + 2, MAX_TOKEN_BYTES + 1]


def test_the_trie_of_a_real_vocabulary(llama3: Vocabulary) -> None:
    trie = llama3.trie
    by_id = {i: token for i in range(llama3.size) if (token := llama3.token(i))}
    assert trie.token_ids.tolist() == sorted(by_id, key=lambda i: (by_id[i], i))
    assert len(trie.byte) == len({token[:n] for token in by_id.values() for n in range(len(token) + 1)})


def test_the_longest_token_takes_no_tree() -> None:
    vocabulary = Vocabulary.from_bytes([b"a", "é€".encode(), b"abc", None], eos_ids=[3])
    assert vocabulary.longest == 5
    assert "trie" not in vars(vocabulary)
    assert vocabulary.trie.max_depth == 5
