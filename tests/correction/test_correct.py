"""Correcting texts of models that give no logits: what is kept, what is put there, who is asked."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import structgen as sg
from structgen.correction.correct import replay
from structgen.correction.values import CorrectionError, CorrectionEvent
from structgen.errors import ArgumentError, BudgetExceededError, FormatError

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "role": {"enum": ["admin", "user"]}},
    "required": ["name", "age", "role"],
    "additionalProperties": False,
}
GOOD = '{"name": "Ada", "age": 36, "role": "admin"}'


@pytest.fixture(scope="module")
def index() -> sg.Index:
    return sg.compile(SCHEMA, sg.Vocabulary.bytewise(), eager=False, base_rows=False)


class Scripted:
    """A model that says one thing after another, then nothing."""

    def __init__(self, *replies: str) -> None:
        self._replies = iter(replies)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return next(self._replies, "")


class Streaming:
    """A model that says a thing in pieces, and counts those that were asked for."""

    def __init__(self, *replies: str, size: int = 1) -> None:
        self._replies = iter(replies)
        self._size = size
        self.pieces = 0
        self.closed = 0

    def __call__(self, prompt: str) -> Iterator[str]:
        reply = next(self._replies, "")
        try:
            for begin in range(0, len(reply), self._size):
                self.pieces += 1
                yield reply[begin : begin + self._size]
        finally:
            self.closed += 1


def test_a_right_text_is_left_alone(index: sg.Index) -> None:
    model = Scripted(GOOD)
    result = sg.correct(model, index, "Who? ")
    assert (result.text, result.complete, result.ended_by) == (GOOD, True, "model")
    assert result.events == ()
    assert model.prompts == ["Who? "]


def test_a_mistake_is_mended_and_the_rest_used(index: sg.Index) -> None:
    result = sg.correct(Scripted(GOOD.replace("admin", "Admin")), index)
    assert result.text == GOOD
    [event] = result.events
    assert (event.chosen_by, event.dropped) == ("nearest", 'Admin"}')
    assert event.candidates == ('admin"', 'user"')
    assert event.broken_at == GOOD.index("admin")
    assert result.calls == 1


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('{"naem": "Ada", "age": 36, "role": "user"}', '{"name": "Ada", "age": 36, "role": "user"}'),
        ('{"name": "Ada", "age": 36, "role": "user",}', '{"name": "Ada", "age": 36, "role": "user"}'),
        ('{"name": "Ada", "age": 36, "role": "user"', '{"name": "Ada", "age": 36, "role": "user"}'),
        ('{"name": "say "hi"", "age": 36, "role": "user"}', '{"name": "say \'hi\'", "age": 36, "role": "user"}'),
        (GOOD + "\n\nI hope this helps!", GOOD),
    ],
)
def test_usual_mistakes(index: sg.Index, wrong: str, right: str) -> None:
    assert sg.correct(Scripted(wrong), index).text == right


def test_what_is_far_from_anything_is_left_out_and_the_model_goes_on(index: sg.Index) -> None:
    model = Scripted('{"name": "Ada", "age": thirty-six}', 'user"}')
    result = sg.correct(model, index)
    assert result.text == '{"name": "Ada", "age": 0,"role":"user"}'
    assert model.prompts[1] == '{"name": "Ada", "age": 0,"role":"'
    assert result.events[0].chosen_by == "ending"


def test_a_stream_is_cut_off_at_the_first_mistake(index: sg.Index) -> None:
    model = Streaming('{"name": "Ada", "age": x' + "y" * 1000, '6, "role": "user"}')
    result = sg.correct(model, index)
    assert model.pieces < 50
    assert model.closed == len(result.replies)
    assert result.complete


def test_a_stream_ends_where_nothing_more_may_follow(index: sg.Index) -> None:
    model = Streaming(GOOD + " " * 1000)
    assert sg.correct(model, index).text == GOOD
    assert model.pieces == len(GOOD)


def test_a_model_may_begin_anew(index: sg.Index) -> None:
    model = Scripted('{"name": "Ada", "age": "', GOOD)
    result = sg.correct(model, index)
    assert result.text == GOOD
    assert [piece.text for piece in result.pieces if piece.source == "model"] == [GOOD]


def test_a_draft_is_asked(index: sg.Index) -> None:
    asked: list[tuple[str, sg.Candidates]] = []

    def draft(prompt: str, candidates: sg.Candidates) -> str:
        asked.append((prompt, candidates))
        return 'user"} and more'

    result = sg.correct(Scripted(GOOD.replace('admin"', 'Admin"')), index, "Who? ", draft=draft)
    assert result.text == GOOD.replace("admin", "user")
    [(prompt, candidates)] = asked
    assert prompt == "Who? "
    assert candidates.prefix == '{"name": "Ada", "age": 36, "role": "'
    assert candidates.literals == ('admin"', 'user"')
    assert result.events[0].chosen_by == "draft"


def test_the_model_itself_is_asked(index: sg.Index) -> None:
    model = Scripted(GOOD.replace('admin"', 'boss"'), "Number 2.")
    result = sg.correct(model, index, draft="ask")
    assert result.text == GOOD.replace("admin", "user")
    assert "2. 'user\"'" in model.prompts[1]


def test_a_useless_draft_is_no_harm(index: sg.Index) -> None:
    assert sg.correct(Scripted(GOOD.replace("admin", "Admin")), index, draft=lambda _, __: "?").text == GOOD


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("extract", "reply"),
    [
        ("fence", f"Here you are:\n\n```json\n{GOOD}\n```\nBye."),
        ("fence", GOOD),
        ("json", f"Here you are: {GOOD} Bye."),
        (lambda reply: reply.split("|")[1], f"a|{GOOD}|b"),
    ],
)
def test_chatty_replies(index: sg.Index, extract: Callable[[str], str], reply: str, size: int) -> None:
    result = sg.correct(Streaming(reply, size=size), index, extract=extract)
    assert result.text == GOOD
    assert result.events == ()


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_continuation_may_be_in_a_fence_or_not(index: sg.Index, size: int) -> None:
    begin = '```json\n{"name": "Ada", "age": \n```'
    for rest in ('```json\n36, "role": "user"}\n```', '36, "role": "user"}\n```'):
        result = sg.correct(Streaming(begin, rest, size=size), index, extract="fence")
        assert json.loads(result.text) == {"name": "Ada", "age": 36, "role": "user"}


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_stop_strings(size: int) -> None:
    result = sg.correct(Streaming("abcEND def", size=size), sg.Regex("[a-z ]+"), stop="END")
    assert result.text == "abc"
    result = sg.correct(Streaming("abEc", size=size), sg.Regex("[a-zE]+"), stop=["END", "Exit"])
    assert result.text == "abEc"


def test_bounds(index: sg.Index) -> None:
    result = sg.correct(Scripted(*["\0"] * 100), index, max_corrections=3)
    assert (len(result.events), result.complete, result.ended_by) == (3, True, "ending")
    result = sg.correct(Scripted('{"na', 'me": "a'), index, max_calls=2)
    assert (result.calls, result.complete) == (2, True)
    result = sg.correct(lambda _: iter(lambda: "a" * 1000, ""), sg.Regex("a+"), max_bytes=5000)
    assert result.complete
    assert len(result.text) == 5000
    result = sg.correct(lambda _: iter(lambda: "a", ""), sg.Regex("a+"), timeout=0.05)
    assert result.complete


@pytest.mark.parametrize("extract", [None, "fence", "json", lambda reply: reply])
def test_a_model_that_never_stops(index: sg.Index, extract: Callable[[str], str] | None) -> None:
    for text in ('{"name": "' + "a" * 9, "Well, "):
        model = Streaming(text + "a" * 300_000)
        result = sg.correct(model, index, extract=extract, max_bytes=100_000)  # type: ignore[arg-type]
        assert result.complete
        assert model.pieces <= 100_001


@pytest.mark.parametrize("draft", ["ask", "function"])
def test_an_answer_about_a_mistake_that_never_ends(draft: str) -> None:
    """It is heard up to the bytes of a text, and closed."""
    closed = []

    def endless(*_: object) -> Iterator[str]:
        try:
            while True:
                yield "b" * 100
        finally:
            closed.append(True)

    async def later(*_: object) -> AsyncIterator[str]:
        for piece in endless():
            yield piece

    options: Any = {"max_calls": 3, "max_bytes": 2_000}
    said = iter(["a!", *[None] * 9])  # the pattern goes on with b
    options["draft"] = "ask" if draft == "ask" else endless
    result = sg.correct(lambda _: next(said) or endless(), sg.Regex("ab{9}c"), **options)
    assert result.text == "abbbbbbbbbc"
    assert closed
    said = iter(["a!", *[None] * 9])
    options["draft"] = "ask" if draft == "ask" else later
    result = asyncio.run(sg.acorrect(lambda _: next(said) or later(), sg.Regex("ab{9}c"), **options))
    assert result.text == "abbbbbbbbbc"


def test_what_was_complete_is_not_gone_on_with(index: sg.Index) -> None:
    model = Scripted(GOOD)
    first = sg.correct(model, index)
    assert sg.correct(model, index, resume=first).text == GOOD
    assert len(model.prompts) == 1


def test_a_model_that_says_nothing(index: sg.Index) -> None:
    result = sg.correct(Scripted(), index)
    assert result.calls == 1
    assert json.loads(result.text)["role"] in ("admin", "user")


def test_a_failing_model_loses_nothing(index: sg.Index) -> None:
    def model(prompt: str) -> Iterator[str]:
        yield '{"name": "Ada", '
        raise ConnectionResetError("gone")

    with pytest.raises(CorrectionError, match="gone") as caught:
        sg.correct(model, index)
    so_far = caught.value.correction
    assert so_far.text == '{"name": "Ada", '
    assert not so_far.complete
    result = sg.correct(Scripted('"age": 36, "role": "admin"}'), index, resume=so_far)
    assert result.text == GOOD
    assert result.calls == 2


def test_async_models(index: sg.Index) -> None:
    async def whole(prompt: str) -> str:
        await asyncio.sleep(0)
        return GOOD.replace("admin", "Admin")

    closed = []

    async def pieces(prompt: str) -> AsyncIterator[str]:
        try:
            for character in GOOD + " " * 100:
                yield character
        finally:
            closed.append(True)

    async def draft(prompt: str, candidates: sg.Candidates) -> str:
        return candidates.literals[1]

    async def test() -> None:
        assert (await sg.acorrect(whole, index)).text == GOOD
        assert (await sg.acorrect(pieces, index)).text == GOOD
        assert (await sg.acorrect(Scripted(GOOD), index)).text == GOOD
        assert (await sg.acorrect(whole, index, draft=draft)).text == GOOD.replace("admin", "user")

    asyncio.run(test())
    assert closed == [True]
    with pytest.raises(ArgumentError, match="acorrect"):
        sg.correct(whole, index)


def test_events_are_told_and_logged(index: sg.Index, caplog: pytest.LogCaptureFixture) -> None:
    told: list[CorrectionEvent] = []
    with caplog.at_level(logging.INFO, "structgen.correct"):
        result = sg.correct(Scripted(GOOD.replace("admin", "Admin")), index, on_correction=told.append)
    assert tuple(told) == result.events
    assert len(caplog.records) == 1


def test_a_log_is_replayed(index: sg.Index) -> None:
    model = Streaming('{"naem": "Ada", "age": 3x', ', "role": "Boss"}', size=2)
    result = sg.correct(model, index, draft=lambda _, c: c.literals[0] if c.literals else "")
    log = sg.Correction.from_json(json.dumps(result.to_json()))
    assert log == result
    again = replay(log, index)
    assert (again.text, again.replies) == (result.text, result.replies)


def test_logs_that_are_none_are_refused(index: sg.Index) -> None:
    log = sg.correct(Scripted('{"naem": "Ada", "age": x'), index).to_json()
    event = log["events"][0]
    wrong: tuple[Any, ...] = (
        {}, [], "{", {**log, "more": 1}, {**log, "text": 3}, {**log, "ended_by": "me"},
        {**log, "pieces": [{"source": "me", "text": "a"}]}, {**log, "events": [{**event, "kept": -1}]},
    )  # fmt: skip
    for each in wrong:
        with pytest.raises(FormatError):
            sg.Correction.from_json(each)


def test_what_is_gone_on_with_is_of_the_definition(index: sg.Index) -> None:
    first = sg.correct(Scripted(GOOD), index)
    cut_off = {**first.to_json(), "pieces": [{"source": "model", "text": GOOD[:-1]}], "text": GOOD[:-1]}
    for definition, before in ((sg.Regex(r"\{\d+\}"), first), (index, sg.Correction.from_json(cut_off))):
        with pytest.raises(ArgumentError, match="none of this definition"):
            sg.correct(Scripted(), definition, resume=before)


def test_errors_of_structgen_lose_nothing_either(index: sg.Index) -> None:
    def draft(prompt: str, candidates: sg.Candidates) -> str:
        raise BudgetExceededError("too much")

    with pytest.raises(CorrectionError, match="too much") as caught:
        sg.correct(Scripted('{"name": "Ada", "age": x'), index, draft=draft)
    assert caught.value.correction.text == '{"name": "Ada", "age": '


def test_long_words_are_gone_back_in_by_characters() -> None:
    words = ["漢" * 40, "漢" * 30 + "字" * 10]
    names = sg.compile(sg.Regex.choice(words), sg.Vocabulary.bytewise(), eager=False)
    found = sg.candidates(names, "漢" * 35 + "x")
    assert found.prefix + found.dropped == "漢" * 35 + "x"
    assert found.literals
    assert all(names.match((found.prefix + each).encode()).accepted for each in found.literals)
    [event] = sg.correct(Scripted("漢" * 30 + "字" * 4 + "x" + "字" * 6), names).events
    assert event.chosen_by == "nearest"


def test_pieces_spell_the_text(index: sg.Index) -> None:
    result = sg.correct(Scripted('{"naem": "Ada", "age": x', '1, "role": "usr"}'), index)
    assert "".join(piece.text for piece in result.pieces if piece.source != "dropped") == result.text


def test_pictures_run_nothing() -> None:
    hostile = "<script>alert(1)</script>[bold]"
    result = sg.correct(Scripted("a" + hostile), sg.Regex("a+b"))
    for page in (result.to_html(), result._repr_html_()):
        assert "<script>alert" not in page
        assert "script" in page
    assert hostile in result.__rich__().plain


def test_bytes_that_are_no_characters() -> None:
    result = sg.correct(Scripted("é\ud800x"), sg.Regex("[éx]+"))
    assert result.text == "éx"


def test_candidates(index: sg.Index) -> None:
    found = sg.candidates(index, '{"name": "x", "age": 1, "role": "x')
    assert (found.prefix[-9:], found.dropped) == ('"role": "', "x")
    assert found.literals == ('admin"', 'user"')
    assert not found.can_end
    assert sg.candidates(index, GOOD).can_end
    open_ = sg.candidates(index, '{"name": "x", "age": ')
    assert open_.open == ("[1-9]",)
    assert {"-", "0"} <= set(open_.literals)


def test_candidates_are_words_as_a_whole() -> None:
    grammar = sg.Grammar('start: ("select" | "delete" | "set") NAME\nNAME: /[a-z]+[0-9]/\n%ignore " "')
    found = sg.candidates(grammar, "se")
    assert (found.prefix, found.dropped) == ("", "se")
    assert {"select", "set", "delete"} <= set(found.literals)


def test_arguments_that_mean_nothing(index: sg.Index) -> None:
    wrongs: tuple[dict[str, object], ...] = (
        {"extract": "xml"}, {"draft": "best"}, {"max_calls": 0}, {"max_corrections": -1}, {"timeout": -1},
        {"timeout": float("nan")}, {"timeout": "1"}, {"stop": ""}, {"stop": ["a", ""]}, {"stop": [3]},
    )  # fmt: skip
    for wrong in wrongs:
        with pytest.raises(ArgumentError):
            sg.correct(Scripted(GOOD), index, **wrong)  # type: ignore[arg-type]
