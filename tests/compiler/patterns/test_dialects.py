r"""Dialects of regexes, judged by who runs them: node, and Rust's crate in pydantic-core."""

from __future__ import annotations

import re
import shutil
import sys
import unicodedata
from contextlib import suppress

import pytest
from judges import regexes

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.automata import charset
from structgen.compiler.patterns.dialects import read
from structgen.compiler.patterns.syntax import Chars
from structgen.definitions.canonical import definition_of
from structgen.definitions.values import DIALECT_FLAGS
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, StructgenError, UnsupportedError

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="needs node")
BYTES = sg.Vocabulary.bytewise()
FLAGS = {"": 0, "i": re.I, "m": re.M, "s": re.S, "im": re.I | re.M}


def ours(pattern: str, dialect: str, texts: list[str], flags: int = 0) -> list[bool] | None:
    """Which texts a pattern is all of; None for one that is no pattern. Raises `UnsupportedError`."""
    try:
        index = sg.compile(sg.Regex(pattern, flags, dialect), BYTES, eager=False)
    except EmptyLanguageError:
        return [False] * len(texts)
    except UnsupportedError:
        raise
    except DefinitionError:
        return None
    return [index.match(text.encode()).accepted for text in texts]


def differences(theirs: list[bool] | None, found: list[bool] | None, texts: list[str]) -> list[str]:
    """The texts that are told otherwise."""
    if theirs is None or found is None:
        return [] if theirs is found else ["only one of the two reads it"]
    return [text for text, a, b in zip(texts, theirs, found, strict=True) if a != b]


@needs_node
def test_random_patterns_of_javascript() -> None:
    texts = [text for text in regexes.texts(60, 1) if "😀" not in text]  # V8 looks behind into halves of it
    letters = list(FLAGS)
    cases = [(p, letters[n % len(letters)], texts) for n, p in enumerate(regexes.patterns("ecma", 400, 5))]
    read_both = 0
    for (pattern, flags, _), theirs in zip(cases, regexes.node_matches(cases), strict=True):
        try:
            found = ours(pattern, "ecma", texts, FLAGS[flags])
        except UnsupportedError:
            continue
        read_both += found is not None
        if theirs is not None:  # what JavaScript refuses may be read, as its own next edition or the like
            assert not differences(theirs, found, texts), (pattern, flags)
    assert read_both > 200


def test_random_patterns_of_rust() -> None:
    texts = regexes.texts(60, 2)
    read_both = 0
    for pattern in regexes.patterns("rust", 400, 6):
        theirs = regexes.rust_matches(pattern, texts)
        try:
            found = ours(pattern, "rust", texts)
        except UnsupportedError:
            continue
        read_both += found is not None
        assert not differences(theirs, found, texts), pattern
    assert read_both > 200


def test_every_escape_of_rust() -> None:
    texts = ["", *map(chr, range(128)), "é"]
    for code in range(128):
        for pattern in (f"\\{chr(code)}", f"[\\{chr(code)}]", f"[{chr(code)}]", chr(code), f"(?x){chr(code)}a"):
            theirs = regexes.rust_matches(pattern, texts)
            try:
                found = ours(pattern, "rust", texts)
            except UnsupportedError:
                assert theirs is None or chr(code) in "pP", pattern
                continue
            assert not differences(theirs, found, texts), pattern


@pytest.mark.parametrize(
    "pattern",
    ["a{2 3}", "a{ 2 , 3 }", "a{2, }", "a{2 ,}", "a{,2}", "a{}", "(?x)a + ?", "(?x)a{2} ?", "(?x)a* #\n?", "a+??",
     "(?x)a ? ?", "^*a", "(?i)*a", "[a--b]", "[--a]", "[]a]", "(?x)( ?:a)", "(?i)[K--k]"],
)  # fmt: skip
def test_signs_and_counts_of_rust(pattern: str) -> None:
    texts = ["", *("a" * count for count in range(1, 8)), "a{2 3}", "b", "-", "]", "K", "k"]
    theirs = regexes.rust_matches(pattern, texts)
    try:
        found = ours(pattern, "rust", texts)
    except DefinitionError:
        assert theirs is None
    else:
        assert found == theirs


def same_in_both(theirs: list[bool], set_: charset.Ranges, codes: list[int]) -> None:
    ours_ = [any(low <= code <= high for low, high in set_) for code in codes]
    told = [f"U+{code:04X}" for code, a, b in zip(codes, theirs, ours_, strict=True) if a != b]
    assert not told, told


#: Characters that this Python's Unicode knows: what a later one made of others is not for it to say.
KNOWN = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
CLASSES = [r"\d", r"\s", r"\w", r"\W", ".", r"\p{L}", r"[^\w\s]"]


def set_of(pattern: str, dialect: str, flags: int = 0) -> charset.Ranges:
    node = read(sg.Regex(pattern, flags, dialect), Meter(Budget()))
    assert isinstance(node, Chars)
    return node.ranges


@pytest.mark.nightly
@needs_node
def test_classes_of_javascript_over_all_characters() -> None:
    texts = list(map(chr, KNOWN))
    cases = [(each, flags, texts) for each in CLASSES for flags in ("", "i")]
    for (pattern, flags, _), theirs in zip(cases, regexes.node_matches(cases), strict=True):
        assert theirs is not None
        same_in_both(theirs, set_of(pattern, "ecma", FLAGS[flags]), KNOWN)


@pytest.mark.nightly
def test_classes_of_rust_over_all_characters() -> None:
    texts = list(map(chr, KNOWN))
    for pattern in CLASSES:
        theirs = regexes.rust_matches(pattern, texts)
        assert theirs is not None
        same_in_both(theirs, set_of(pattern, "rust"), KNOWN)


@needs_node
def test_what_is_equal_when_cases_are_ignored() -> None:
    cased = [c for c in KNOWN if chr(c).lower() != chr(c) or chr(c).upper() != chr(c)]
    texts = list(map(chr, cased))
    cases = [(char, "i", [chr(c) for low, high in charset.ignore_case(((ord(char),) * 2,), False)
                          for c in range(low, high + 1)] + ["i", "İ", "ı", "ß", "ẞ"]) for char in texts]  # fmt: skip
    for (char, _, others), theirs in zip(cases, regexes.node_matches(cases), strict=True):
        assert theirs is not None
        same_in_both(theirs, charset.fold_simply(((ord(char),) * 2,)), list(map(ord, others)))
    for char, _, others in cases[::7]:
        judged = regexes.rust_matches(f"(?i){char}", others)
        assert judged is not None
        same_in_both(judged, charset.fold_simply(((ord(char),) * 2,)), list(map(ord, others)))


@pytest.mark.parametrize(
    ("pattern", "dialect", "yes", "no"),
    [
        (r"(?<year>\d{4})", "ecma", "2024", "٢٠٢٤"),
        (r"\u{1F600}\cJ", "ecma", "😀\n", "😀"),
        ("a$", "ecma", "a", "a\n"),
        (".", "ecma", "\x85", "\u2028"),
        (".", "rust", "\u2028", "\n"),
        (r"(?<n>\d)", "rust", "٢", "a"),
        (r"[\w--\d]+\z", "rust", "ab", "a1"),
        (r"\d", "re", "٢", "a"),
    ],
)
def test_each_dialect_means_its_own(pattern: str, dialect: str, yes: str, no: str) -> None:
    assert ours(pattern, dialect, [yes, no]) == [True, False]


@pytest.mark.parametrize(
    ("pattern", "dialect", "said"),
    [
        (r"\Aa", "ecma", "which is Python's"),
        ("(?P<n>a)", "ecma", "which is Python's"),
        ("(?i)a", "ecma", "which is Python's"),
        ("[]a]", "ecma", "which is Python's"),
        ("a{,3}", "ecma", "which is Python's"),
        ("(?=a)b", "rust", "look-around is not supported"),
        (r"(a)\1", "rust", "a backreference is not supported"),
        (r"\p{Greek}", "rust", "the Unicode property 'Greek'"),
        ("(?-u:a)", "rust", "without the flag u"),
    ],
)
def test_what_means_something_else_is_refused_by_name(pattern: str, dialect: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(said)):
        read(sg.Regex(pattern, dialect=dialect), Meter(Budget()))


def test_a_dialect_is_part_of_the_name_and_of_what_is_put_together() -> None:
    names = {sg.Regex("a$", dialect=dialect).canonical() for dialect in DIALECT_FLAGS}
    assert len(names) == len(DIALECT_FLAGS)
    for dialect in DIALECT_FLAGS:
        definition = sg.Regex("a$", re.I, dialect)
        assert definition_of("regex", definition.canonical()) == definition
    both = sg.sequence("x", sg.Regex(r"(?<n>\d)", dialect="ecma"))
    index = sg.compile(both, BYTES, eager=False)
    assert [index.match(text.encode()).accepted for text in ("x1", "x٢")] == [True, False]
    found = sg.explain(sg.compile(sg.Regex("a(?<n>b)c", dialect="ecma"), BYTES), "abd")
    assert not found.accepted
    assert "column 9" in str(found)


@pytest.mark.parametrize("text", ["[" * 5000 + "a" + "]" * 5000, "(?:" * 5000 + ")" * 5000, "(" * 5000])
def test_nesting_is_bounded(text: str) -> None:
    with pytest.raises(BudgetExceededError, match="nests more than"):
        read(sg.Regex(text, dialect="rust"), Meter(Budget(depth=100)))


@pytest.mark.parametrize(
    "part", ["[a&&", "[^", "[a-z--", r"\p{L", "(?i)", "a{1", "a{2}", "[[:alpha:]]", "(?x)# ", "\\"]
)
@pytest.mark.parametrize("dialect", ["ecma", "rust"])
def test_long_patterns_of_strangers_end(part: str, dialect: str) -> None:
    budget = Budget(seconds=2, depth=200)
    with suppress(StructgenError):
        sg.compile(sg.Regex(part * 3000, dialect=dialect), BYTES, eager=False, budget=budget)


@pytest.mark.parametrize(
    ("pattern", "dialect"), [("a" + "{9}" * 6000, "rust"), ("(" * 490 + "a" + "{1073741822})" * 490, "re")]
)
def test_counts_that_have_too_many_digits_to_be_written_are_refused(pattern: str, dialect: str) -> None:
    with pytest.raises(BudgetExceededError, match=r"at least 2\^\d+ automaton states"):
        sg.compile(sg.Regex(pattern, dialect=dialect), BYTES, eager=False)


def test_flags_that_a_dialect_has_not() -> None:
    with pytest.raises(DefinitionError, match="has no flag"):
        sg.Regex("a", re.X, "ecma")
    with pytest.raises(DefinitionError, match="has no flag"):
        sg.Regex("a", re.A, "rust")
    with pytest.raises(DefinitionError, match="dialect is 'perl'"):
        sg.Regex("a", dialect="perl")
    assert ours("a b", "rust", ["ab", "a b"], re.X) == [True, False]
