"""interegular's machines: compiled exactly, and as a judge of ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import interegular
import pytest
from interegular.fsm import FSM, Alphabet, anything_else
from judges.naive import small_vocabulary

import structgen as sg

VOCABULARY = small_vocabulary()
GROUPS: Any = Alphabet.from_groups  # interegular's annotations are partial
TEXTS = ["".join(t) for n in range(5) for t in itertools.product("abé0", repeat=n)]

#: Within interegular's own dialect: ASCII shorthands, no anchors. And no look-ahead, since its machines take the
#: text that is looked at to be part of the match.
PATTERNS = ["a*b", "(?:ab|ba){2}", "[^a]+", "(?:a|b0)*|", "[a-b]{1,3}0?", ".*b.", "a{0,30}b"]


def machine(pattern: str) -> Any:
    return interegular.parse_pattern(pattern).to_fsm()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_interegular_judges_our_regexes(pattern: str) -> None:
    judge = machine(pattern)
    ours, theirs = (sg.compile(d, VOCABULARY) for d in (sg.Regex(pattern), sg.Fsm(judge)))
    for text in TEXTS:
        assert ours.match(text.encode()).accepted == judge.accepts(text) == theirs.match(text.encode()).accepted, text


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(["a*b*", ".*ab.*", "[^0]{2,4}", "(?:ab)*"], 2)))
def test_the_algebra_of_interegular_compiles(a: str, b: str) -> None:
    cases: list[tuple[Any, Callable[[bool, bool], bool]]] = [
        (machine(a) & machine(b), lambda x, y: x and y),
        (machine(a) - machine(b), lambda x, y: x and not y),
        (machine(a) | machine(b), lambda x, y: x or y),
    ]
    for combined, holds in cases:
        if combined.empty():
            with pytest.raises(sg.errors.EmptyLanguageError):
                sg.compile(sg.Fsm(combined), VOCABULARY)
            continue
        index = sg.compile(sg.Fsm(combined), VOCABULARY)
        for text in TEXTS:
            expected = holds(machine(a).accepts(text), machine(b).accepts(text))
            assert index.match(text.encode()).accepted == expected, text


def test_it_is_kept_and_loaded_like_any_index(tmp_path: object) -> None:
    cache = sg.Cache(str(tmp_path))
    first, second = (sg.compile(sg.Fsm(machine("a+b") - machine("aab")), VOCABULARY, cache=cache) for _ in range(2))
    assert (first.origin, second.origin) == ("compiled", "cache")
    assert second.kind == "fsm"
    assert not second.match(b"aab").accepted
    assert second.match(b"aaab").accepted


def test_canonical_does_not_depend_on_the_numbering_of_states() -> None:
    alphabet = GROUPS({"a"}, {anything_else})
    one = FSM(alphabet, {0, 1}, 0, {1}, {0: {0: 1}})
    two = FSM(alphabet, {7, 3}, 7, {3}, {7: {0: 3}})
    assert sg.Fsm(one).canonical() == sg.Fsm(two).canonical()
    three = FSM(alphabet, {0, 1}, 0, {1}, {0: {1: 1}})
    assert sg.Fsm(one).canonical() != sg.Fsm(three).canonical()


def test_what_is_not_a_machine_is_refused() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="interegular"):
        sg.Fsm("a*")
    with pytest.raises(sg.errors.DefinitionError, match="single character"):
        sg.Fsm(FSM(GROUPS({"ab"}), {0}, 0, {0}, {}))
