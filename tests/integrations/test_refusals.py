"""Errors about refused tokens say why, wherever a guide is asked; before they are read nothing is looked for."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import structgen as sg
from structgen.explanations import explain as explaining
from structgen.integrations.matcher import Matcher
from structgen.integrations.refusals import RefusedTokenError
from structgen.runtime.guide.tracker import Rows, SequenceTracker

VOCABULARY = sg.Vocabulary.bytewise()
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 120}}, "required": ["a"]}
TEXT = b'{"a": 12'


@pytest.fixture(scope="module")
def index() -> sg.Index:
    return sg.compile(sg.JsonSchema(SCHEMA), VOCABULARY, eager=False, base_rows=False)


def by_matcher(index: sg.Index, tokens: list[int]) -> None:
    matcher = Matcher(index)
    for token in tokens:
        matcher.require(token)


def by_rows(index: sg.Index, tokens: list[int]) -> None:
    Rows([index], prompt_length=0, refuse=RefusedTokenError).follow(np.array([tokens]))


def by_lines(index: sg.Index, tokens: list[int]) -> None:
    SequenceTracker(index, prompt_length=0, refuse=RefusedTokenError).follow(np.array(tokens))


@pytest.mark.parametrize("by", [by_matcher, by_rows, by_lines], ids=["matcher", "rows", "lines"])
def test_the_text_of_an_error_says_why(
    by: Callable[[sg.Index, list[int]], None], index: sg.Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_search(*_: object, **__: object) -> None:
        raise AssertionError("nobody has read the error yet")

    with monkeypatch.context() as patch:
        patch.setattr(explaining, "explain", no_search)
        with pytest.raises(RefusedTokenError) as caught:
            by(index, [*TEXT, ord("1")])
    error = caught.value
    assert error.explanation is not None
    assert [reason.where for reason in error.explanation.reasons] == [("/properties/a/maximum",)]
    assert error.explanation.text == TEXT.decode() + "1"
    assert "/properties/a/maximum" in str(error)
    assert "\n" not in str(error)


def test_an_error_stays_what_it_was_when_the_text_goes_on(index: sg.Index) -> None:
    matcher = Matcher(index)
    for token in TEXT:
        assert matcher.accept(token)
    error = matcher.refusal(ord("1"), "a draft")
    assert matcher.accept(ord("}"))
    assert "/properties/a/maximum" in str(error)
    assert "a draft" in str(error)
    assert str(error.within("row 3")).startswith("token 49 is not allowed by the definition (row 3, a draft)")


@pytest.mark.parametrize("token", [-1, 1 << 40])
def test_numbers_that_are_no_tokens(token: int, index: sg.Index) -> None:
    with pytest.raises(RefusedTokenError) as caught:
        Matcher(index).require(token)
    assert caught.value.explanation is None
    assert "no such token" in str(caught.value)


def test_what_comes_after_the_end(index: sg.Index) -> None:
    matcher = Matcher(index)
    for token in [*TEXT, ord("}"), *VOCABULARY.eos_ids]:
        assert matcher.accept(token)
    assert "has ended" in str(matcher.refusal(97))


def test_a_log_says_why(index: sg.Index, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("structgen").error("a request ends: %s", Matcher(index).refusal(ord("1")))
    assert "/type" in caplog.text


def test_errors_travel_between_processes_without_their_index(index: sg.Index) -> None:
    error = RefusedTokenError(sg.Guide(index), ord("1"), "row 2", "Look.")
    packed = pickle.dumps(error)
    assert len(packed) < 10_000
    for twin in (pickle.loads(packed), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is RefusedTokenError
        assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))


def test_errors_that_were_read_keep_no_index() -> None:
    own = sg.compile(sg.Regex("[0-9]{3}"), VOCABULARY)
    alive, error = weakref.ref(own), RefusedTokenError(sg.Guide(own), ord("a"))
    assert "[0-9]" in str(error)
    del own
    gc.collect()
    assert alive() is None
    assert "[0-9]" in str(error)


def test_the_text_of_an_error_raises_none(index: sg.Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(explaining, "explain", fails)
    assert str(RefusedTokenError(sg.Guide(index), ord("1"))).endswith("can't be said: MemoryError")
