r"""The patterns of JSON Schema, judged by `re` where the dialects agree and by tables where they differ.

Where they agree: texts without line terminators other than ``\n``, without Unicode's spaces, ``re.ASCII``, and ``$``
written as ``\Z``.
"""

from __future__ import annotations

import re
import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import draws

from structgen.budget import Budget, Meter
from structgen.compiler.json_schema.strings.strings import StringSet
from structgen.compiler.patterns import ecma
from structgen.errors import BudgetExceededError, DefinitionError, UnsupportedError


def pattern(text: str) -> StringSet:
    return StringSet.pattern(text, Meter(Budget()), "/pattern")


ATOMS = ["a", "b", "é", "0", "-", r"\d", r"\w", r"\W", r"\.", ".", "[ab]", "[^a]", "[^b0-9]", r"[\s\d]", "(?:ab)"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"]
ASSERTIONS = ["^", "$", r"\b", r"\B", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)", "(?!.*b$)"]
PATTERNS = st.recursive(
    st.sampled_from(ATOMS + ASSERTIONS),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(QUANTIFIERS)).map(lambda p: f"(?:{p[0]}){p[1]}"),
        st.tuples(st.sampled_from(["^", ""]), inner, st.sampled_from(["$", ""])).map(lambda p: f"({''.join(p)})"),
        st.tuples(st.just("^"), inner, st.just("$")).map("".join),
    ),
    max_leaves=8,
)


def searched_by_re(text: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Until Python 3.14, \B is false in the empty text.
        text = text.replace(r"\B", r"(?!\b)")
        return re.compile(re.sub(r"(\\.)|\$", lambda m: m[1] or r"\Z", text), re.ASCII)


@settings(max_examples=draws(400))
@given(PATTERNS, st.lists(st.text(alphabet="ab0é\n.- ", max_size=7), min_size=5, max_size=15))
def test_agrees_with_re(text: str, samples: list[str]) -> None:
    try:
        judge = searched_by_re(text)
    except re.error:
        return  # look-behind of variable width
    try:
        found = pattern(text)
    except UnsupportedError:
        return  # look-around in look-around that sees too far
    for sample in samples:
        assert (sample in found) == bool(judge.search(sample)), (text, sample)


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("^$", [""], ["a", "\n"]),
        ("a$", ["a", "ba"], ["a\n"]),
        ("^.$", ["a", "é", "\x85", "\U0001f600"], ["\n", "\r", "\u2028", "\u2029", ""]),
        (r"^\d$", ["0", "9"], ["\u0660", "a"]),
        (r"^\D$", ["\u0660", "a"], ["0"]),
        (r"^\w$", ["_", "a", "Z", "5"], ["é", "-"]),
        (r"^\W$", ["é", "-"], ["a"]),
        (r"^\s$", list("\t\n\v\f\r \xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000\ufeff"), ["\x85", "\x1c"]),
        (r"^\S$", ["\x85", "x"], ["\ufeff"]),
        (r"^\ca\cZ$", ["\x01\x1a"], ["ca"]),
        (r"^\x41\u0042\u{43}\u{1F600}$", ["ABC\U0001f600"], ["ABC"]),
        (r"^\ud83d\ude00$", ["\U0001f600"], [""]),
        (r"^[\ud83d\ude00]$", ["\U0001f600"], ["\ufffd"]),
        (r"^\ud83d$", [], ["\ufffd", ""]),
        (r"^[\u{1F600}-\u{1F64F}]$", ["\U0001f610"], ["\U0001f650"]),
        (r"^\/\-\_\@$", ["/-_@"], []),
        ("^[^]$", ["\n", "a"], ["", "ab"]),
        ("^[^]*$", ["", "a\nb"], []),
        ("[]", [], ["", "a", "[]"]),
        ("^(?:[]|a)$", ["a"], [""]),
        ("^[]a]$", ["]", "a"], ["b"]),  # as re has it
        ("^[^]a]$", ["b"], ["]", "a"]),
        ("(?<year>[0-9]{4})", ["in 1999"], ["199"]),
        ("(?P<year>[0-9]{4})", ["in 1999"], ["199"]),
        (r"^\p{Lu}\p{L}*$", ["Éa"], ["éa", "1"]),
        (r"^\p{gc=Nd}\P{L}$", ["\u06601"], ["1a"]),
        (r"^[\p{Zs}a]$", ["\xa0", "a"], ["b"]),
        (r"^\p{ASCII}\p{Any}\p{White_Space}$", ["a\U0001f600\x85"], ["é b"]),
        (r"^\p{Lowercase}\p{Uppercase}$", ["\xaaA"], ["AA"]),
        (r"(?<=a)b|(?<!a)c", ["ab", "c", "bc"], ["b", "ac"]),
        (r"^(?!con$|nul$)[a-z]+$", ["a", "cons", "nu"], ["con", "nul"]),
        (r"^(?=.*\d)(?=.*[a-z]).{3,}$", ["a1b"], ["abc", "1a"]),
        ("^a{$", ["a{"], ["a"]),
        ("^a{,}x{}$", ["a{,}x{}"], []),
        ("^a{,2}$", ["", "aa"], ["aaa", "a{,2}"]),  # as re has it
        ("^a{2}?$", ["aa"], ["", "a"]),
        ("^a]}$", ["a]}"], []),
        (r"^[\w-.]$", ["a", "-", "."], ["/"]),
        (r"^[a-\d]$", ["a", "-", "5"], ["b"]),
        (r"^\1$", ["\x01"], ["1"]),
        (r"^\0\8$", ["\x008"], []),
        (r"^\y\i$", ["yi"], []),
        (r"^\u00\x4$", ["u00x4"], []),
        (r"^[\b]$", ["\b"], ["b"]),
        (r"^\a$", ["\a"], ["a"]),
        (r"^a\Z|\Ab", ["a", "bc"], ["ab", "a\n"]),
        (r"(?i)^straße$", ["STRAßE", "strasse"[:4] + "ße"], ["strasse"]),
        (r"^(?i:a)b$", ["Ab", "ab"], ["aB"]),
        (r"(?s)^.$", ["\n"], [""]),
        (r"(?m)^a$", ["b\na\nc", "a"], ["ba"]),
        ("^dev|rc$", ["developer", "src"], ["a dev", "rcs"]),
        ("^(a|^b|c$)", ["a", "b", "c"], ["cx", "xa"]),
        ("(^|x)a(y|$)", ["a", "xa", "-xay-"], ["ba", "ab"]),
        ("(^a){1,3}b", ["ab"], ["aab", "xab"]),
        (".*", ["", "\n"], []),
        ("", ["", "x"], []),
        ("a|", ["", "b"], []),
        ("(?#note)a", ["a"], ["b"]),
    ],
)
def test_dialect(text: str, yes: list[str], no: list[str]) -> None:
    found = pattern(text)
    assert [sample for sample in yes if sample not in found] == []
    assert [sample for sample in no if sample in found] == []


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("(", 1), ("a)", 2), ("[a", 1), ("a**", 3), ("*a", 1), ("^*", 2), ("a{2,1}", 2), ("[b-a]", 2), ("\\", 1),
        ("(?<1a>x)", 1), ("(?q)", 1), ("a(?i)", 2), (r"\u{110000}", 1), ("a{99999999999}", 2), ("(?#", 1),
        ("a{2}{3}", 5),
    ],
)  # fmt: skip
def test_malformed(text: str, column: int) -> None:
    with pytest.raises(DefinitionError) as caught:
        pattern(text)
    assert caught.value.where == f"/pattern, column {column}"
    assert repr(text) in caught.value.what


@pytest.mark.parametrize(
    "text",
    [
        r"(a)\1", r"(?<n>a)\k<n>", "(?P<n>a)(?P=n)", "a++", "a{2}+", "(?>a)", "[[:alpha:]]", "[^_[:digit:]]",
        r"a\z", r"\R", r"\p{Script=Greek}", r"\pL", r"\p{Nonsense}", "(?x) a", "(a)?(?(1)b|c)", r"\h", "(?R)",
    ],
)  # fmt: skip
def test_refused(text: str) -> None:
    with pytest.raises(UnsupportedError):
        pattern(text)


def test_back_reference_without_a_group_of_that_number_is_octal() -> None:
    assert "\x02" in pattern(r"^(?:)\2$")
    with pytest.raises(UnsupportedError):
        pattern(r"\2(a)(b)")


def test_depth() -> None:
    ecma.parse("(" * 1000 + "a" + ")" * 1000)
    with pytest.raises(BudgetExceededError):
        ecma.parse("(" * 1001 + "a" + ")" * 1001)


@pytest.mark.parametrize(
    "text",
    ["(" * 900 + "a" + ")+" * 900, "(^|" * 900 + "a" + ")" * 900, "a" * 100_000, "a|" * 20_000, "a" * 4_000_000],
    ids=["groups", "options", "long", "many", "too long"],
)
def test_large_patterns_end(text: str) -> None:
    meter = Meter(Budget(seconds=1))
    with suppress(BudgetExceededError):
        StringSet.pattern(text, meter, "").body("minimal", meter)


def test_posix_look_alikes() -> None:
    assert ":" in pattern("^[:a-z]$")
    assert "[" in pattern(r"^[\[:alpha:]$")
