"""Drafts that write under a guide: where they begin, where they stop, and what is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from judges.guides import EACH_BYTE

import structgen as sg
from structgen.correction.drafting import until_choice
from structgen.correction.path import Path
from structgen.errors import ArgumentError, VocabularyError, VocabularyMismatchError

SCHEMA = sg.JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer"},
            "role": {"enum": ["admin", "author", "user"]},
        },
        "required": ["name", "age", "role"],
        "additionalProperties": False,
    }
)
GRAMMAR = sg.Grammar(
    'start: "SELECT" (NAME | "*") "FROM" NAME ["WHERE" NAME ("<=" | "<" | "=") NUMBER] ["LIMIT" NUMBER] ";"\n'
    'NAME: /[a-z]+/\nNUMBER: /[0-9]+/\n%ignore " "',
    lexer="basic",
)
COMPARED, AGED = "SELECT a FROM b WHERE abc ", '{"name": "", "age": 3, "role": '
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, b"ab", b"admin", b'"us', None], eos_ids=[259])


class Scripted:
    """A draft that writes a given text behind another, a few bytes at a time, and keeps what it was asked."""

    def __init__(self, right: str, size: int = 3, vocabulary: sg.Vocabulary = VOCABULARY) -> None:
        self.vocabulary = vocabulary
        self._right, self._size = right.encode(), size
        self.asked: list[tuple[str, str, float, int | None]] = []
        self.written = 0

    def write(
        self, prompt: str, text: str, index: sg.Index, config: Any, *, temperature: float, seed: int | None
    ) -> Iterator[bytes]:
        self.asked.append((prompt, text, temperature, seed))
        path = Path(index)
        assert path.extend(text.encode()) == len(text.encode())
        assert path.config == config
        for begin in range(len(text.encode()), len(self._right), self._size):
            self.written += 1
            yield self._right[begin : begin + self._size]


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    ("definition", "begin", "right", "until"),
    [
        # A value is written whole, and what must follow it; the next one begins with a choice.
        (SCHEMA, '{"name": ', '{"name": "Ada", "age": 36, "role": "user"}', '{"name": "Ada", "age": '),
        (SCHEMA, '{"name": "A', '{"name": "A, é.", "age": 0, "role": "user"}', '{"name": "A, é.", "age": '),
        (SCHEMA, '{"name":"","age":', '{"name":"","age":36,"role":"user"}', '{"name":"","age":36,"role":"'),
        (SCHEMA, AGED, AGED + '"author"}', AGED + '"author"}'),
        (GRAMMAR, "SELECT ", "SELECT * FROM people WHERE a <= 12;", "SELECT * FROM people "),
        (GRAMMAR, "SELECT ", "SELECT abc FROM people;", "SELECT abc FROM people"),
        (GRAMMAR, "SELECT a FROM b ", "SELECT a FROM b WHERE abc <= 12;", "SELECT a FROM b WHERE abc "),
        (GRAMMAR, COMPARED, COMPARED + "= 12 LIMIT 3;", COMPARED + "= 12 "),
        (GRAMMAR, "SELECT a FROM b ", "SELECT a FROM b LIMIT 30;", "SELECT a FROM b LIMIT 30;"),
        (sg.Regex("(yes|no|none)( at all)?"), "", "none at all", "none at all"),
        (sg.Regex("(yes|no|none)(-yes|-no)?"), "", "none-yes", "none"),
        (sg.Regex("a{3}(b|c)d{4}-(e|f)"), "aaa", "aaabdddd-e", "aaabdddd-"),
        (sg.Regex("(éé|ü)x?"), "", "ééx", "ééx"),
    ],
)
def test_a_draft_goes_on_until_a_choice(definition: object, begin: str, right: str, until: str, size: int) -> None:
    path = Path(sg.compile(definition, VOCABULARY, eager=False))
    assert path.extend(right.encode()) == len(right.encode())
    config = path.config_at(len(begin.encode()))
    rest = right.encode()[len(begin.encode()) :]
    pieces = (rest[i : i + size] for i in range(0, len(rest), size))
    found = until_choice(path.machine, config, pieces, 1000)
    assert begin + found.data.decode("utf-8", "ignore") == until
    assert found.tokens <= -(-len(found.data) // size) + 1
    few = until_choice(path.machine, config, iter([rest]), 4)
    assert few.data == found.data[:4]


def test_what_it_writes_stands_there() -> None:
    right = '{"name": "Ada", "age": 36, "role": "user"}'
    draft = Scripted(right)
    replies = iter(['{"name": 17}', '36, "role": "user"}'])
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        return next(replies)

    result = sg.correct(model, SCHEMA, "Who? ", draft=draft, temperature=0.5, seed=7)
    assert json.loads(result.text) == json.loads(right)
    first = result.events[0]
    assert (first.chosen_by, first.choice) == ("draft", '"Ada", "age": ')
    assert first.tokens == draft.written
    assert draft.asked == [("Who? ", '{"name": ', 0.5, 7)]
    assert prompts[1] == 'Who? {"name": "Ada", "age": '


def test_seeds_are_others_for_each_mistake() -> None:
    draft = Scripted("aaabdddd-e")
    result = sg.correct(lambda prompt: "x", sg.Regex("a{3}(b|c)d{4}-(e|f)"), draft=draft, seed=5)
    assert result.text == "aaabdddd-e"
    assert [seed for *_, seed in draft.asked] == [5, 6]


@pytest.mark.parametrize("wrong", ["", "?", '{"name": "'])
def test_a_useless_draft_is_no_harm(wrong: str) -> None:
    result = sg.correct(lambda prompt: "nonsense" if prompt == "" else "", SCHEMA, draft=Scripted(wrong))
    assert result.complete
    assert json.loads(result.text)["role"] in ("admin", "author", "user")


def test_a_draft_in_a_thread() -> None:
    right = '{"name": "Ada", "age": 36, "role": "user"}'

    async def model(prompt: str) -> str:
        return right.replace("36", "thirty") if not prompt else ', "role": "user"}'

    result = asyncio.run(sg.acorrect(model, SCHEMA, draft=Scripted(right)))
    assert result.text == right


def test_an_index_has_to_be_of_the_drafts_vocabulary() -> None:
    own = sg.compile(SCHEMA, VOCABULARY, eager=False)
    text = '{"name": "Ada", "age": 36, "role": "user"}'
    assert sg.correct(lambda _: text, own, draft=Scripted(text)).text == text
    with pytest.raises(VocabularyMismatchError, match="the draft to"):
        sg.correct(lambda _: text, sg.compile(SCHEMA, sg.Vocabulary.bytewise(), eager=False), draft=Scripted(text))


def test_temperature_and_seed_are_heard_or_refused() -> None:
    for options in ({"temperature": 0.5}, {"seed": 1}):
        for draft in (None, "ask", lambda _, __: "a"):
            with pytest.raises(ArgumentError, match="means nothing"):
                sg.correct(lambda _: "a", sg.Regex("a"), draft=draft, **options)  # type: ignore[arg-type]

    class Model:
        takes = frozenset({"temperature"})

        def __init__(self, **options: float) -> None:
            self.options = options

        def sampled(self, **options: float) -> Model:
            return Model(**options)

        def reply(self, prompt: str, text: str) -> str:
            heard.append(self.options)
            return "a"

    heard: list[dict[str, float]] = []
    sg.correct(Model(), sg.Regex("a"), temperature=0.5)
    sg.correct(Model(), sg.Regex("a"))
    sg.correct(Model(), sg.Regex("a"), temperature=0.25, seed=3, draft=Scripted("a"))
    assert heard == [{"temperature": 0.5}, {}, {"temperature": 0.25}]
    with pytest.raises(ArgumentError, match="seed"):
        sg.correct(Model(), sg.Regex("a"), temperature=0.5, seed=1)


# -- numbers of tokens -------------------------------------------------------------------------------------


def words(text: str) -> list[int]:
    """A tokenizer whose tokens are three characters, or what is left."""
    return [0 for _ in range(0, len(text), 3)]


def counting(encode: Callable[[str], list[int]] | None) -> sg.Vocabulary:
    return sg.Vocabulary.from_bytes([*EACH_BYTE, b"abc", None], eos_ids=[257], encode=encode)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("most", [1, 2, 5, 40])
def test_max_new_tokens(most: int, size: int) -> None:
    asked = 0

    def model(prompt: str) -> Iterator[str]:
        nonlocal asked
        while True:
            asked += 1
            yield "é" * size

    for vocabulary, length in ((counting(words), 3 * most), (sg.Vocabulary.bytewise(), most // 2)):
        asked = 0
        index = sg.compile(sg.Regex("é*!"), vocabulary, eager=False)
        result = sg.correct(model, index, max_new_tokens=most)
        assert result.text == "é" * length + "!"
        assert (result.ended_by, result.calls) == ("ending", 1)
        assert asked * size <= length + 1 + size
    long = sg.correct(lambda _: "é" * 5 + "!", sg.Regex("é*!"), max_new_tokens=11)
    assert (long.text, long.ended_by) == ("é" * 5 + "!", "model")


def test_a_repair_that_makes_it_too_long() -> None:
    index = sg.compile(sg.Regex("[ab]{4}c{6}d+"), counting(words), eager=False)
    result = sg.correct(lambda prompt: "abab" + "x" if not prompt else "d", index, max_new_tokens=2)
    assert result.text == "ababcccccc" + "d"
    assert result.ended_by == "ending"
    assert "".join(piece.text for piece in result.pieces if piece.source != "dropped") == result.text


def test_tokens_that_nobody_can_count() -> None:
    index = sg.compile(sg.Regex("a*"), counting(None))
    with pytest.raises(VocabularyError, match="max_bytes"):
        sg.correct(lambda _: "a", index, max_new_tokens=3)
    with pytest.raises(ArgumentError):
        sg.correct(lambda _: "a", sg.Regex("a*"), max_new_tokens=0)
