r"""Sets of characters as code point ranges: their algebra, the classes of Unicode, and case folding.

The judge of a pattern is the `re` of the running Python, so nothing here carries a Unicode table of its own.
``\w``, ``\d`` and ``\s`` are what `re` finds in a text of all code points; general categories come from
`unicodedata`; case folding comes from the `str` methods that `re` is built on. Each is worked out on first
use.

Surrogates (U+D800 to U+DFFF) cannot be encoded in UTF-8 and belong to no set, not even to a complement.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain
from typing import TypeAlias

import numpy as np

#: Sorted, disjoint, non-adjacent inclusive ranges of code points, surrogates excluded.
Ranges: TypeAlias = tuple[tuple[int, int], ...]

_MAX = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)

#: The long names of Unicode's general categories and their groups (``gc`` in PropertyValueAliases.txt).
_LONG_NAMES = {
    "Other": "C",
    "Control": "Cc",
    "cntrl": "Cc",
    "Format": "Cf",
    "Unassigned": "Cn",
    "Private_Use": "Co",
    "Surrogate": "Cs",
    "Letter": "L",
    "Cased_Letter": "LC",
    "Lowercase_Letter": "Ll",
    "Modifier_Letter": "Lm",
    "Other_Letter": "Lo",
    "Titlecase_Letter": "Lt",
    "Uppercase_Letter": "Lu",
    "Mark": "M",
    "Combining_Mark": "M",
    "Spacing_Mark": "Mc",
    "Enclosing_Mark": "Me",
    "Nonspacing_Mark": "Mn",
    "Number": "N",
    "Decimal_Number": "Nd",
    "digit": "Nd",
    "Letter_Number": "Nl",
    "Other_Number": "No",
    "Punctuation": "P",
    "punct": "P",
    "Connector_Punctuation": "Pc",
    "Dash_Punctuation": "Pd",
    "Close_Punctuation": "Pe",
    "Final_Punctuation": "Pf",
    "Initial_Punctuation": "Pi",
    "Other_Punctuation": "Po",
    "Open_Punctuation": "Ps",
    "Symbol": "S",
    "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk",
    "Math_Symbol": "Sm",
    "Other_Symbol": "So",
    "Separator": "Z",
    "Line_Separator": "Zl",
    "Paragraph_Separator": "Zp",
    "Space_Separator": "Zs",
}


def normalise(spans: Iterable[tuple[int, int]]) -> Ranges:
    """Sort and merge inclusive spans of code points, and take the surrogates out."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    first, last = _SURROGATES
    if all(high < first or low > last for low, high in merged):
        return tuple(merged)
    below = ((low, min(high, first - 1)) for low, high in merged)
    above = ((max(low, last + 1), high) for low, high in merged)
    return tuple(span for span in chain(below, above) if span[0] <= span[1])


def union(*sets: Ranges) -> Ranges:
    """The characters in any of the sets."""
    some = [each for each in sets if each]
    return normalise(chain(*some)) if len(some) != 1 else some[0]


def intersect(a: Ranges, b: Ranges) -> Ranges:
    """The characters in both sets."""
    common: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            common.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def complement(ranges: Ranges) -> Ranges:
    """All the other characters, surrogates excluded."""
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), _MAX]
    return normalise(span for span in zip(starts, ends, strict=True) if span[0] <= span[1])


@cache
def shorthand(letter: str, ascii: bool) -> Ranges:
    r"""What `re` finds of ``\w``, ``\d`` or ``\s`` among all characters, with `re.ASCII` or without."""
    # Said twice because re looks for a leading class in a tight loop, and for a leading repeat it does not.
    pattern = re.compile(rf"\{letter}\{letter}*", re.ASCII if ascii else 0)
    text = _characters(128 if ascii else _MAX + 1)
    return normalise((match.start(), match.end() - 1) for match in pattern.finditer(text))


@cache
def category(name: str, ignore_case: bool = False) -> Ranges:
    """The characters of a Unicode general category.

    Parameters
    ----------
    name:
        A category (``"Lu"``), a group of them (``"L"``, ``"LC"``), or the long name of either
        (``"Uppercase_Letter"``).
    ignore_case:
        Take Lu, Ll and Lt each for all three, as the `regex` package does under ``IGNORECASE``.

    Raises
    ------
    KeyError
        No category has that name.
    """
    short = _LONG_NAMES.get(name, name)
    if short not in _LONG_NAMES.values():
        raise KeyError(name)
    cased = ("Ll", "Lt", "Lu")
    parts = cased if short == "LC" or (ignore_case and short in cased) else (short,)
    return union(*(ranges for key, ranges in _categories().items() if key.startswith(parts)))


@cache
def category_named_loosely(name: str) -> Ranges:
    """The same by a name in which case, spaces, hyphens and underscores don't count (UAX44-LM3)."""

    def plain(name: str) -> str:
        return re.sub(r"[ _-]", "", name).lower()

    names = {plain(each): short for long, short in _LONG_NAMES.items() for each in (long, short)}
    return category(names[plain(name)])


@lru_cache(maxsize=4096)
def ignore_case(ranges: Ranges, ascii: bool) -> Ranges:
    """The characters that equal one of the set under `re.IGNORECASE`.

    `re` compares the first characters of the lower cases, and takes lower-case characters that share an upper
    case for equal (``s`` and the long s, the two lower-case sigmas). With ``ascii`` only A to Z have a case.
    """
    return _with_variants(ranges, *_variants(_case_in_re, 128 if ascii else _MAX + 1))


@lru_cache(maxsize=4096)
def fold_simply(ranges: Ranges) -> Ranges:
    """The characters whose simple case folding is that of one of the set (CaseFolding.txt, statuses C and S).

    From Unicode 15.1 on, characters of one full case folding, which `str.casefold` has, have one simple folding.
    """
    return _with_variants(ranges, *_variants(str.casefold, _MAX + 1))


def _with_variants(ranges: Ranges, cased: list[int], variants: dict[int, Ranges]) -> Ranges:
    spans = list(ranges)
    for low, high in ranges:
        for code in cased[bisect_left(cased, low) : bisect_right(cased, high)]:
            spans += variants[code]
    return normalise(spans)


def _case_in_re(char: str) -> str:
    return char.lower()[0].upper()


@cache
def _variants(case_of: Callable[[str], str], count: int) -> tuple[list[int], dict[int, Ranges]]:
    """The code points that have a case, sorted; and for each, all that are equal to it, itself among them."""
    text = _characters(count)
    equal: dict[str, list[int]] = defaultdict(list)
    for start in range(0, len(text), 256):
        block = text[start : start + 256]
        if block != block.lower() or block != block.upper():
            for code, char in enumerate(block, start):
                equal[case_of(char)].append(code)
    variants: dict[int, Ranges] = {}
    for codes in equal.values():
        if len(codes) > 1:
            variants.update(dict.fromkeys(codes, normalise((code, code) for code in codes)))
    return sorted(variants), variants


def _characters(count: int) -> str:
    """The first code points as one text; all of them are 4 MB, therefore not kept."""
    return str(np.arange(count, dtype=np.uint32).view(f"U{count}")[0])


@cache
def _categories() -> dict[str, Ranges]:
    """The ranges of each two-letter general category."""
    names = "".join(map(unicodedata.category, _characters(_MAX + 1)))
    codes = np.frombuffer(names.encode("ascii"), np.uint16)
    starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist()]
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
        spans[names[2 * start : 2 * start + 2]].append((start, end - 1))
    return {name: normalise(ranges) for name, ranges in spans.items()}
