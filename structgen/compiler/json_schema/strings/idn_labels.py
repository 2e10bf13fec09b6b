"""U-labels of internationalised hostnames as a pattern: what RFC 5892 and 5893 say of characters and their order.

The properties of characters are those that Python's `unicodedata` has, by which RFC 5892 derives which are valid.

- *NFC.* A label is in that form if no mark stands where it is composed with, or sorted before, what precedes it. So
  marks of a class other than 0 come one at a time; marks that something can be composed with are left out, but for
  those of scripts from Hebrew on, which stand behind characters that nothing is composed with.
- *Bidi.* A label is written from left to right, or it begins with a letter that is not, and has no others that are;
  then its digits are of one kind (RFC 5893, 2). Hyphens stand within, and alone. `bidi_labels` has what the rule says
  of the labels beside such a one.
- *Context.* Joiners behind a virama, the Catalan dot, the keraia, geresh and gershayim, Arabic digits (RFC 5892,
  appendix A). Joiners by the types of what they join, and the Katakana dot, are left out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

#: The code points that are looked through; kana, Han and Hangul are ranges. All are below U+D7A4.
_SCRIPTS = (*range(0x80, 0x2000), *range(0x2C00, 0x2E00), *range(0xA000, 0xAC00))
_EAST_ASIAN = "\u3041-\u3096\u30a1-\u30fa\u3005-\u3007\u3400-\u4db5\u4e00-\u9fd5\uac00-\ud7a3"

#: Digits that count as European in the Bidi Rule, and Arabic ones.
_EUROPEAN, _ARABIC = "0-9\u06f0-\u06f9", "\u0660-\u0669"

#: RFC 5892: what 2.6 says; and what has the category of a letter or a mark, but is ignored (2.3), or is a conjoining
#: jamo (2.9), or takes context (appendix A).
_VALID = frozenset("\u00df\u03c2\u06fd\u06fe\u0f0b")
_INVALID = frozenset("\u034f\u0640\u07fa\u17b4\u17b5\u180b\u180c\u180d\u180f")
_JAMO = frozenset(map(chr, (*range(0x1100, 0x1200), *range(0xA960, 0xA980))))
_OF_CONTEXT = frozenset(map(chr, (*range(0x660, 0x66A), *range(0x6F0, 0x6FA))))
_LETTERS_AND_DIGITS = frozenset({"Ll", "Lu", "Lo", "Lm", "Mn", "Mc", "Nd"})

#: Marks below this can be composed with too many letters for it to be worth while.
_HEBREW = "\u0590"

#: The combining class of viramas, behind which joiners stand.
_VIRAMA = 9

_CONTEXT, _CONTEXT_OF_HEBREW = "|l(?:\u00b7l)+|\u0375[\u03ac-\u03ce]", "|[\u05d0-\u05ea][\u05f3\u05f4]+"


def u_label() -> str:
    """The pattern of U-labels of any length, less what is left out."""
    found = {char for char in map(chr, _SCRIPTS) if _is_valid(char)}
    firsts = _compositions()
    late = {char for char in found & firsts.keys() if char > _HEBREW}
    composed = set[str]().union(*(firsts[char] for char in late))
    late -= composed
    chars = (found - firsts.keys()) | late
    rtl = {char for char in chars if unicodedata.bidirectional(char) in ("R", "AL")}
    behind = {char for char in chars if unicodedata.combining(char)} | late
    bases = chars - behind
    viramas = {char for char in behind if unicodedata.combining(char) == _VIRAMA}
    of_rtl = {char for char in chars - viramas if unicodedata.bidirectional(char) == "NSM"}

    def label(begin: set[str], bases: set[str], behind: set[str], more: str, first: str, context: str) -> str:
        units = _Units(behind, late, composed, context)
        return f"{units.pattern(begin, first)}(?:-{units.pattern(begin, more)}|{units.pattern(bases, more)})*"

    unmarked = {char for char in bases if unicodedata.category(char)[0] != "M"}
    alike = f"a-z{_EUROPEAN}{_EAST_ASIAN}"
    ltr = label(unmarked - rtl, bases - rtl, behind, alike, alike, _CONTEXT)
    mixed = (bases & of_rtl) | rtl
    others = [label(rtl, mixed, behind & of_rtl, each, "", _CONTEXT_OF_HEBREW) for each in (_EUROPEAN, _ARABIC)]
    return "|".join((ltr, *others))


def bidi_labels(dots: str) -> tuple[str, str]:
    """Patterns of labels as far as they may stand together: without letters from right to left, and beside such.

    Beside such each keeps to the Bidi Rule itself (RFC 5893, 2): it begins with a letter of its direction, and one
    from left to right ends with such a letter or a European digit, and marks.
    """
    classes: dict[str, set[str]] = {}
    for char in map(chr, (*range(0x80), *_SCRIPTS)):
        classes.setdefault(unicodedata.bidirectional(char), set()).add(char)
    rtl, marks = _ranges(classes["R"] | classes["AL"]), _ranges(classes["NSM"])
    letters = f"{_ranges(classes['L'])}{_EAST_ASIAN}"
    return f"[^{dots}{rtl}]+", f"[{rtl}][^{dots}]*|[{letters}](?:[^{dots}]*[{letters}{_EUROPEAN}])?[{marks}]*"


class _Units:
    """Patterns of a character and what may stand behind it.

    Parameters
    ----------
    behind:
        What may: marks, and ``late``, which can be composed with ``composed`` and stand behind none of these.
    context:
        Alternatives that need no mark.
    """

    def __init__(self, behind: set[str], late: set[str], composed: set[str], context: str) -> None:
        marks = {char for char in behind if unicodedata.combining(char)}
        self._composed, self._context = composed, context
        self._plain, self._mark = _one_of(marks - late), f"{_one_of(marks)}?"
        vowels = behind - marks
        self._late = f"(?:[{_ranges(vowels)}]{self._mark})*" if vowels else ""

    def pattern(self, begin: set[str], more: str) -> str:
        """What begins with one of some characters, or with one of ``more``, the inside of a class."""
        free, taken = _ranges(begin - self._composed), _ranges(begin & self._composed)
        single = f"[{more}{free}]{self._mark}|[{taken}]{self._plain}{self._context}"
        return f"(?:(?:{single}){self._late}|[{taken}])"


def _one_of(marks: set[str]) -> str:
    """The pattern of one of some marks, and of a joiner behind a virama."""
    viramas = {char for char in marks if unicodedata.combining(char) == _VIRAMA}
    joined = f"|[{_ranges(viramas)}][\u200c\u200d]?" if viramas else ""
    return f"(?:[{_ranges(marks - viramas)}]{joined})"


def _is_valid(char: str) -> bool:
    """Whether a character is PVALID (RFC 5892, 3)."""
    if char in _VALID:
        return True
    if unicodedata.category(char) not in _LETTERS_AND_DIGITS or char in _INVALID | _JAMO | _OF_CONTEXT:
        return False
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", char).casefold())
    return folded == char


def _compositions() -> dict[str, set[str]]:
    """By the second character of a canonical composition, all first ones."""
    found: dict[str, set[str]] = {}
    for char in map(chr, range(0x80, 0x3100)):
        parts = unicodedata.decomposition(char).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.is_normalized("NFC", char):
            first, second = (chr(int(part, 16)) for part in parts)
            found.setdefault(second, set()).add(first)
    return found


def _ranges(chars: Iterable[str]) -> str:
    """The inside of a class of characters."""
    runs: list[list[str]] = []
    for char in sorted(chars):
        if runs and ord(char) == ord(runs[-1][-1]) + 1:
            runs[-1][1:] = [char]
        else:
            runs.append([char])
    return "".join("-".join(run) for run in runs)
