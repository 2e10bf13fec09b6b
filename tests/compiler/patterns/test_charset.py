r"""Character sets, judged by `re` and `unicodedata` over all code points."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import draws

from structgen.compiler.automata.charset import (
    Ranges,
    category,
    complement,
    ignore_case,
    intersect,
    normalise,
    shorthand,
    union,
)

SURROGATES = range(0xD800, 0xE000)


@cache
def all_characters() -> str:
    return "".join(map(chr, range(sys.maxunicode + 1)))


def members(ranges: Ranges) -> set[int]:
    return {code for low, high in ranges for code in range(low, high + 1)}


def found(pattern: str, flags: int = 0) -> Ranges:
    """The characters that a one-character pattern matches, as `re` finds them."""
    runs = re.compile(f"{pattern}+", flags).finditer(all_characters())
    return normalise((run.start(), run.end() - 1) for run in runs)


@cache
def cased_characters() -> str:
    return "".join(char for char in all_characters() if char.lower() != char or char.upper() != char)


def is_normal(ranges: Ranges) -> bool:
    apart = all(high + 1 < low for (_, high), (low, _) in pairwise(ranges))
    return apart and all(low <= high and (high < 0xD800 or low > 0xDFFF) for low, high in ranges)


near_edges = [(0, 60), (0xD7F0, 0xD810), (0xDFF0, 0xE010), (0x10FFF0, 0x10FFFF)]
codes = st.one_of([st.integers(low, high) for low, high in near_edges])
widths = st.integers(0, 30) | st.just(0x810)
spans = st.lists(st.tuples(codes, widths).map(lambda s: (s[0], min(s[0] + s[1], sys.maxunicode))), max_size=8)


@settings(max_examples=draws(60))
@given(spans)
def test_normalise(given_spans: list[tuple[int, int]]) -> None:
    ranges = normalise(given_spans)
    assert is_normal(ranges)
    assert members(ranges) == members(tuple(given_spans)).difference(SURROGATES)


@settings(max_examples=draws(60))
@given(spans.map(normalise), spans.map(normalise))
def test_union_and_intersect(a: Ranges, b: Ranges) -> None:
    assert union(a, b) == normalise(a + b)
    assert is_normal(intersect(a, b))
    assert members(intersect(a, b)) == members(a) & members(b)


@settings(max_examples=draws(60))
@given(spans.map(normalise))
def test_complement(ranges: Ranges) -> None:
    other = complement(ranges)
    assert is_normal(other)
    assert intersect(ranges, other) == ()
    assert union(ranges, other) == ((0, 0xD7FF), (0xE000, 0x10FFFF))
    assert complement(other) == ranges


def test_union_of_nothing_is_empty() -> None:
    assert union() == ()


@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("letter", "wds")
def test_shorthand_classes(letter: str, ascii: bool) -> None:
    assert shorthand(letter, ascii) == found(f"\\{letter}", re.ASCII if ascii else 0)


def test_categories_partition_the_code_points() -> None:
    names = list(map(unicodedata.category, all_characters()))
    every = sorted(set(names))
    for name in every:
        assert is_normal(category(name))
    painted: list[str] = ["Cs"] * len(names)
    for name in every:
        for low, high in category(name):
            painted[low : high + 1] = [name] * (high + 1 - low)
    assert painted == names


def test_category_groups_and_long_names() -> None:
    assert category("L") == union(*map(category, ("Ll", "Lm", "Lo", "Lt", "Lu")))
    assert category("LC") == category("Cased_Letter") == union(*map(category, ("Ll", "Lt", "Lu")))
    assert category("Letter") == category("L")
    assert category("digit") == category("Decimal_Number") == category("Nd")
    assert category("Cs") == ()
    assert category("C") == union(*map(category, ("Cc", "Cf", "Cn", "Co")))


def test_cased_categories_are_one_without_case() -> None:
    assert category("Lu", True) == category("Lowercase_Letter", True) == category("Lt", True) == category("LC")
    assert category("Lo", True) == category("Lo")
    assert category("L", True) == category("L")


@pytest.mark.parametrize("name", ["", "l", "Lx", "Greek", "letter", "L ", "Any"])
def test_unknown_category(name: str) -> None:
    with pytest.raises(KeyError):
        category(name)


def code_points(*parts: str) -> Ranges:
    """Ranges out of single characters and pairs of them."""
    return normalise((ord(part[0]), ord(part[-1])) for part in parts)


FOLDED_CLASSES = [
    ("[a-z]", code_points("az")),
    ("[A-Z]", code_points("AZ")),
    ("[X-c]", code_points("Xc")),
    ("[А-я]", code_points("Ая")),
    ("[\u0100-\u024f]", code_points("\u0100\u024f")),
    ("[\u0345-\u03ff]", code_points("\u0345\u03ff")),
    ("[ſK]", code_points("ſ", "K")),
    ("[İı]", code_points("İ", "ı")),
    ("[\u13a0-\u13ff]", code_points("\u13a0\u13ff")),
    ("[\uab70-\uabbf]", code_points("\uab70\uabbf")),
    ("[\U00010400-\U00010410]", code_points("\U00010400\U00010410")),
    ("[\U00010430-\U0001044f]", code_points("\U00010430\U0001044f")),
    ("[\u1c80-\u1c88]", code_points("\u1c80\u1c88")),
    ("[ﬀ-ﬆ]", code_points("ﬀﬆ")),
    ("[!-@]", code_points("!@")),
    ("[\x00-\U0010ffff]", code_points("\x00\U0010ffff")),
    ("[\u1000-\U0001f000]", code_points("\u1000\U0001f000")),
]


@pytest.mark.parametrize(("pattern", "ranges"), FOLDED_CLASSES)
def test_folding_of_ranges(pattern: str, ranges: Ranges) -> None:
    folded = ignore_case(ranges, False)
    assert folded == found(pattern, re.IGNORECASE)
    assert complement(folded) == found("[^" + pattern[1:], re.IGNORECASE)


@pytest.mark.parametrize(("pattern", "ranges"), [case for case in FOLDED_CLASSES if case[1][-1][1] < 0x10000])
def test_folding_of_ranges_in_ascii(pattern: str, ranges: Ranges) -> None:
    assert ignore_case(ranges, True) == found(pattern, re.IGNORECASE | re.ASCII)


def test_folding_in_ascii_leaves_other_planes_alone() -> None:
    r"""With both flags only ASCII letters have a case. Judged on the capitals alone.

    In a range that reaches past U+FFFF, `re` compared upper cases too until it was mended (gh-126505, in 3.14 and
    late versions before): ``(?ai)[𐐀-𐐁]`` matched the small letters, though ``(?ai)𐐀`` did not.
    """
    capitals = code_points("\U00010400\U00010401")
    assert ignore_case(capitals, True) == capitals
    for char in "\U00010400\U00010401":
        assert found(char, re.IGNORECASE | re.ASCII) == code_points(char)


def test_folding_of_every_single_character() -> None:
    """Every cased code point, against what `re` finds for it among all of those."""
    cased = cased_characters()
    assert len(cased) > 2000
    for char in cased:
        expected = set(map(ord, re.findall(char, cased, re.IGNORECASE)))
        assert members(ignore_case(code_points(char), False)) == expected, f"U+{ord(char):04X}"


@pytest.mark.parametrize("char", "kKKsSſiIİıσςΣ\u0345\u03b9\u1fbeßẞµμΜåÅωΩвᲀꙋᲈǅᎠꭰ𐐀𐐨5_一")
@pytest.mark.parametrize("ascii", [False, True])
def test_folding_of_a_character_against_all_others(char: str, ascii: bool) -> None:
    flags = re.IGNORECASE | (re.ASCII if ascii else 0)
    folded = ignore_case(code_points(char), ascii)
    assert folded == found(char, flags)
    assert complement(folded) == found(f"[^{char}]", flags)


def test_characters_without_case_stay_alone() -> None:
    """The single-character test above covers the cased ones; a class of all the others must not grow."""
    others = complement(normalise((ord(char), ord(char)) for char in cased_characters()))
    assert ignore_case(others, False) == others
