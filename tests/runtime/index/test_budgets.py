"""Definitions from strangers: each ends in an index or in a typed error that says what to do."""

from __future__ import annotations

import pytest
from judges.naive import small_vocabulary

import structgen as sg

VOCABULARY = small_vocabulary()

#: States and seconds small enough that the suite stays quick; the point is that the bounds hold.
BUDGET = sg.Budget(states=30_000, seconds=10)

HOSTILE = {
    "nested counts": "((a{1,1000}){1,1000}){1,1000}",
    "a hundred thousand groups": "(" * 100_000 + "a" + ")" * 100_000,
    "a hundred thousand groups that never close": "(" * 100_000,
    "exponential subsets": "(a|b)*a(a|b){20}",
    "counts that overlap": "(?:a{0,2000}b{0,2000}){0,2000}",
    "two counts with a common letter": ".{0,1000}x.{0,1000}",
    "many look-aheads": "".join(f"(?=.*{c})" for c in "abcdefghijklmnop") + ".*",
    "a count beyond any text": "a{4294967294}",
    "counts inside counts": "(((a{1,50}b){1,50}c){1,50}d){1,50}",
}

HARMLESS = {
    "nine hundred groups": "(" * 900 + "a" + ")" * 900,
    "stars of stars": "(" * 200 + "a*" + ")*" * 200,
    "catastrophic for backtracking": "(x+x+)+y",
    "optional then required": "(a?){300}a{300}",
    "a long string": '"[^"]{0,65536}"',
    "a thousand words of up to twenty letters": "([a-z]{1,20} ){1,1000}",
    "a hundred thousand letters twice": "[a-z]{1,100000}@[a-z]{1,100000}",
    "three look-aheads": "(?=.*a)(?=.*b)(?=.*c)[a-z]{3,60}",
    "ten thousand words": "|".join(hex(i * 7919) for i in range(10_000)),
}


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_regexes_end_in_a_typed_error(pattern: str) -> None:
    with pytest.raises((sg.errors.BudgetExceededError, sg.errors.DefinitionError)) as caught:
        sg.compile(sg.Regex(pattern), VOCABULARY, budget=BUDGET)
    assert caught.value.what
    assert caught.value.where


@pytest.mark.parametrize("pattern", HARMLESS.values(), ids=HARMLESS.keys())
def test_large_but_harmless_regexes_compile(pattern: str) -> None:
    index = sg.compile(sg.Regex(pattern), VOCABULARY, budget=BUDGET, eager=False)
    assert sg.Guide(index).bitmask().any()


def test_the_time_budget_is_kept() -> None:
    with pytest.raises(sg.errors.BudgetExceededError, match="seconds"):
        sg.compile(sg.Regex("(a|b)*a(a|b){16}"), VOCABULARY, budget=sg.Budget(seconds=1e-6))


def test_the_memory_budget_is_kept() -> None:
    with pytest.raises(sg.errors.BudgetExceededError, match="bytes"):
        sg.compile(sg.Regex("(a|b)*a(a|b){16}"), VOCABULARY, budget=sg.Budget(memory=100_000))


def test_a_small_state_budget_is_kept() -> None:
    with pytest.raises(sg.errors.BudgetExceededError, match="states"):
        sg.compile(sg.Regex("[0-9]{20}"), VOCABULARY, budget=sg.Budget(states=10))


@pytest.mark.parametrize("field", ["states", "memory", "seconds", "depth"])
def test_a_budget_is_positive(field: str) -> None:
    with pytest.raises(ValueError, match=field):
        sg.Budget(**{field: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["[^\\s\\S]", "a(?!a)a", "a(?<=b)b", "(?=b)a", "^a^b", "a\\bb", "\ud800"])
def test_an_empty_language_is_refused(pattern: str) -> None:
    with pytest.raises(sg.errors.EmptyLanguageError, match="no text"):
        sg.compile(sg.Regex(pattern), VOCABULARY)


@pytest.mark.parametrize(
    ("pattern", "column"),
    [(r"(a)\1", 4), ("(?P<x>a)(?P=x)", 9), ("(a)(?(1)b|c)", 4), ("(?>a)", 1), ("a*+", 2), ("a(?R)", 2)],
)
def test_what_cannot_be_honoured_is_refused_with_its_column(pattern: str, column: int) -> None:
    with pytest.raises(sg.errors.DefinitionError) as caught:
        sg.compile(sg.Regex(pattern), VOCABULARY)
    assert f"column {column}" in caught.value.where


def test_look_around_that_sees_beyond_its_own_is_refused() -> None:
    for pattern in ("a(?=(?<=a)b)b", "(?<=a(?=b))b", "(?<=a$)b"):
        with pytest.raises(sg.errors.UnsupportedError, match="may only look at"):
            sg.compile(sg.Regex(f"x{pattern}x*"), VOCABULARY)
    deep = "(?=" * 40 + "a" + ")" * 40 + "a"
    with pytest.raises(sg.errors.UnsupportedError, match="nested more than"):
        sg.compile(sg.Regex("x" + deep + "b*"), VOCABULARY)


def test_definitions_check_their_fields() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="str"):
        sg.Regex(b"a")  # type: ignore[arg-type]
    with pytest.raises(sg.errors.DefinitionError, match="flags"):
        sg.Regex("a", flags=4096)
    with pytest.raises(sg.errors.DefinitionError, match="cannot compile"):
        sg.compile("a", VOCABULARY)  # type: ignore[arg-type]
