"""`Rows` and `SequenceTracker` against guides replayed from the start, over random runs of what engines do."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fakes.fakes import EOS, PAD, byte_vocabulary, fake_index
from judges.prefixes import check_prefixes, counted_advances, replayed
from tiers import draws

from structgen.errors import BitmaskError, StructgenWarning, TokenIdError, VocabularyError
from structgen.runtime.guide.tracker import Rows, SequenceTracker, Text
from structgen.runtime.rows.bitmask import ids_of
from structgen.vocabulary import Vocabulary

VOCABULARY = byte_vocabulary()
OBJECT = fake_index(r'\{"(a|ab|the|x1)":(true|false|[0-9]{1,4})(,"(b|c)":"[a-z ]{0,12}"){0,3}\}', VOCABULARY)
NUMBER = fake_index(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?", VOCABULARY)


def allowed(text: Text) -> list[int]:
    mask = text.bitmask()
    assert mask is not None
    return [int(i) for i in ids_of(mask)]


def array(*rows: Sequence[int]) -> Any:
    return np.array(rows, np.int32)


# -- rows that come together ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:generation goes on behind")
@pytest.mark.parametrize("seed", range(draws(6)))
@pytest.mark.parametrize("fixed", [False, True])
def test_rows_follow_the_prefix(fixed: bool, seed: int) -> None:
    prompts = [[97, 98] if seed % 2 or row < 3 else [97, 99] for row in range(6)]
    rows = Rows([OBJECT, NUMBER], prompt_length=2 if fixed else None)

    def follow(texts: list[list[int]]) -> list[list[int]]:
        return [allowed(text) for text in rows.follow(array(*map(list.__add__, prompts, texts)))]

    check_prefixes([OBJECT, NUMBER], follow, random.Random(seed), EOS, PAD)


@pytest.mark.parametrize("together", [True, False])
def test_an_engine_that_stops_at_other_ids_is_told_once(together: bool) -> None:
    """It is asked for more behind the end of all its texts, where only EOS ids are left."""
    rows, tracker = Rows([NUMBER, NUMBER]), SequenceTracker(NUMBER)
    first, second = [1, 2, 49, EOS], [1, 3, 49, 50, EOS]  # the first ends sooner, and is padded meanwhile

    def follow(length: int) -> None:
        ids = [[*each, EOS, EOS, EOS, EOS][:length] for each in (first, second)]
        if together:
            rows.follow(array(*ids))
        else:
            tracker.follow(np.array(ids[1]))

    for length in range(2, 6):
        follow(length)
    with pytest.warns(StructgenWarning, match=f"only the EOS ids of the vocabulary, {EOS}, are allowed"):
        follow(6)
    for length in range(7, 9):  # a warning is an error
        follow(length)


def test_rows_are_checked() -> None:
    with pytest.raises(BitmaskError, match=r"integers \[rows, length\], got int32\[2\]"):
        Rows([NUMBER]).follow(np.array([1, 2], np.int32))
    with pytest.raises(BitmaskError, match="3 rows cannot be shared out among 2"):
        Rows([NUMBER, None]).follow(array([1], [2], [3]))
    with pytest.raises(BitmaskError, match="shorter than the prompt"):
        Rows([NUMBER], prompt_length=3).follow(array([1, 2]))
    with pytest.raises(TokenIdError, match="row 1"):
        Rows([NUMBER, NUMBER], prompt_length=1).follow(array([1, 49], [1, 97]))
    with pytest.raises(ValueError, match="prompt_length"):
        Rows([NUMBER], prompt_length=-1)


# -- rows that come one at a time -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(draws(8)))
@pytest.mark.parametrize("fixed", [False, True])
def test_lines_follow_the_prefix(fixed: bool, seed: int) -> None:
    """Sequences in turns, with equal and different prompts; drafts that go back; repeats; new generations."""
    rng = random.Random(seed)
    lines = SequenceTracker(OBJECT, prompt_length=3 if fixed else None)
    prompts = [[1, 2, 3], [1, 2, 3], [7, 8, 9], [1, 2, 5]]
    texts: list[list[int]] = [[] for _ in prompts]
    for _ in range(300):
        which = rng.randrange(len(prompts))
        text = texts[which]
        assert allowed(lines.follow(array(prompts[which] + text)[0])) == replayed(OBJECT, text)
        move = rng.choice(["step"] * 6 + ["repeat", "back", "again"])
        if move == "back":
            del text[rng.randrange(len(text) + 1) :]
        elif move == "again":
            text.clear()
        elif move == "step" and EOS not in text:
            text.append(rng.choice(replayed(OBJECT, text)))


def test_each_token_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted_advances(monkeypatch)
    lines = SequenceTracker(fake_index("[0-9]{300}", VOCABULARY))
    texts: list[list[int]] = [[1], [2], [3]]
    for step in range(200):
        for which, ids in enumerate(texts):
            lines.follow(np.array(ids, np.int64))
            ids.append(48 + (step + which) % 10)
    assert read.call_count == 199 * 3


@pytest.mark.filterwarnings("ignore:generation goes on behind")
def test_what_begins_a_generation() -> None:
    lines = SequenceTracker(NUMBER)
    start = replayed(NUMBER, [])

    def follow(ids: list[int], may_begin: bool = False) -> list[int]:
        return allowed(lines.follow(np.array(ids), may_begin=may_begin))

    assert follow([1, 2]) == start
    assert follow([1, 2, 48]) == replayed(NUMBER, [48])
    assert follow([1, 2, 48, EOS]) == [EOS]
    assert follow([1, 2, 48, EOS, EOS]) == [EOS]
    assert follow([1, 2, 48, EOS, EOS, 9]) == start  # a new prompt: nothing follows an end
    assert follow([1, 2, 48, 46, 46]) == start  # two tokens more than were seen
    assert follow([1, 2, 9], may_begin=True) == start
    with pytest.raises(TokenIdError, match=r"token 9 is not allowed .*\(0 tokens after a prompt of 3\)"):
        follow([1, 2, 9, 9])
    assert follow([1, 2, 9, 9]) == start  # its line was forgotten
    lines.reset()
    assert follow([1, 2, 48]) == start


def test_a_given_prompt_length() -> None:
    lines = SequenceTracker(NUMBER, prompt_length=2)
    assert allowed(lines.follow(np.array([1, 2, 49, 46, 50]))) == replayed(NUMBER, [49, 46, 50])
    assert allowed(lines.follow(np.array([1, 2, 49, 50, 51]))) == replayed(NUMBER, [49, 50, 51])
    with pytest.raises(TokenIdError):
        lines.follow(np.array([1, 2, 97]))
    with pytest.raises(BitmaskError, match="shorter than the prompt"):
        lines.follow(np.array([1]))


def test_lines_are_bounded() -> None:
    lines = SequenceTracker(NUMBER, most=4)
    for prompt in range(20):
        lines.follow(np.array([prompt, 200]))
        assert len(lines._lines) <= 4
    assert allowed(lines.follow(np.array([19, 200, 48]))) == replayed(NUMBER, [48])


def test_lines_are_checked() -> None:
    with pytest.raises(BitmaskError, match=r"integers \[length\], got int32\[1, 2\]"):
        SequenceTracker(NUMBER).follow(array([1, 2]))
    with pytest.raises(BitmaskError, match="float64"):
        SequenceTracker(NUMBER).follow(np.array([1.0]))
    endless = Vocabulary.from_bytes([b"1"], eos_ids=[])
    with pytest.raises(VocabularyError, match="no EOS id"):
        SequenceTracker(fake_index("1", endless))
