r"""Reads ECMA-262's regex syntax (the `pattern` of JSON Schema) into the tree of
`structgen.compiler.patterns.syntax`.

The specification asks for ECMA-262 with the flag ``u``, validators run what their language has, and schemas hold
what some validator let through. So a construct means what the first of these says that gives it a meaning:

1. ECMA-262 with ``u`` (2024, with the modifiers ``(?i:...)`` of 2025): ``\d`` and ``\w`` are ASCII, ``\s`` and ``.``
   know Unicode's spaces and line terminators, ``$`` is the very end, ``[]`` is empty and ``[^]`` is anything.
2. Python's `re`, which `jsonschema` runs: ``\A``, ``\Z``, ``\a``, ``(?i)`` at the start, ``(?P<name>...)``,
   ``(?#...)``, ``x{,5}``, a bracket first in a class (where ``u`` would leave the closing one without a partner).
3. ECMA-262's Annex B: ``{`` and ``\y`` stand for themselves, ``[\w-x]`` holds a hyphen, ``\1`` without a group is
   octal.

A `Regex` of the dialect ``ecma`` was written for JavaScript: there the second of these is refused by name.

What has no meaning in any of them is a `DefinitionError`; what has one that no automaton can follow, or means
something else in the dialect it was evidently written for (``[[:alpha:]]``, ``a++``, ``\z``), an `UnsupportedError`.
"""

from __future__ import annotations

import re
import sys
from functools import cache, lru_cache

from ...budget import Budget, Meter
from ..automata import charset
from ..automata.charset import Ranges
from .reader import (
    CONTROLS,
    ESCAPE_IT,
    FOLDING,
    REFUSED_GROUPS,
    SIMPLE,
    I,
    M,
    PatternReader,
    S,
    boundary,
    folded,
    literal,
)
from .syntax import EMPTY, Alternate, Chars, Look, Node

_FLAG_BITS = {"i": I, "m": M, "s": S}

#: No character, every character, and those that end a line.
_ANYTHING: Ranges = charset.complement(())
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_WHITE_SPACE: Ranges = charset.normalise(
    [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
     (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]
)  # fmt: skip
_DIGITS: Ranges = ((0x30, 0x39),)
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SHORTHANDS = {"d": _DIGITS, "s": _WHITE_SPACE, "w": _WORD}

_LINE_END = Chars(_LINE_ENDS)

_MODIFIERS = re.compile(r"([a-zA-Z]*)(-[a-zA-Z]*)?([:)])")
_LOOK = re.compile("(<?)([=!])")
_NAME = re.compile(r"(?:[^\W\d]|\$)[\w$]*>")
_COMMENT = re.compile(r"[^)]*\)", re.DOTALL)
_POSIX = re.compile(
    r"(?<!\\)\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
)
_CAPTURE = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\()(?:(?!\?)|\?P?<(?![=!]))", re.DOTALL)
_LEGACY_OCTAL = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_PAIR = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_HEX = re.compile(r"[0-9a-fA-F]+")

#: Escapes that mean something in the dialect they come from, and just the letter in Annex B.
_FOREIGN_ESCAPES = {
    "e": "the escape character",
    "G": "the end of the previous match",
    "h": "a horizontal space",
    "H": "no horizontal space",
    "K": "a match reset",
    "N": "a named character",
    "Q": "a quotation",
    "E": "the end of a quotation",
    "R": "a line break sequence",
    "U": "a long code point",
    "X": "a grapheme cluster",
    "z": "the end of the text",
}
#: Binary properties that Python knows exactly, beside the general categories.
_BINARY_PROPERTIES: dict[str, Ranges] = {
    "Any": _ANYTHING,
    "ASCII": ((0, 0x7F),),
    "ASCII_Hex_Digit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "AHex": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "White_Space": charset.normalise([*(s for s in _WHITE_SPACE if s[0] != 0xFEFF), (0x85, 0x85)]),
    "space": charset.normalise([*(s for s in _WHITE_SPACE if s[0] != 0xFEFF), (0x85, 0x85)]),
}
_CASE_PROPERTIES = {"Lowercase": str.islower, "Lower": str.islower, "Uppercase": str.isupper, "Upper": str.isupper}


def parse(pattern: str, meter: Meter | None = None) -> Node:
    """Parse a pattern.

    Parameters
    ----------
    pattern:
        ECMA-262, and what the module says of others.
    meter:
        Of the compile; None: one of its own.

    Returns
    -------
    Node
        What the pattern matches, not yet searched for: see `searched`. Lone surrogates match nothing.

    Raises
    ------
    DefinitionError
        The pattern is malformed; ``where`` is the column, counted from 1.
    UnsupportedError
        No finite automaton can honour it exactly, or its dialect is not ECMA-262's.
    BudgetExceededError
        Groups are nested deeper than the budget says, or reading takes too long or holds too much.
    """
    meter = meter or Meter(Budget())
    try:
        return _Parser(pattern, meter, bracket_first=False).parse()
    except _LoneBracket:
        return _Parser(pattern, meter, bracket_first=True).parse()


class _LoneBracket(Exception):
    """After ``[]`` or ``[^]`` came a ``]`` without a partner: `re` reads those differently."""


class _Parser(PatternReader):
    plain = (re.compile(r"[^\\\[\](){}*+?^$|.]{1,4096}"),) * 2
    counts = re.compile(r"(?!,?\})([0-9]*)(,?)([0-9]*)\}")
    dots = Chars(charset.complement(_LINE_ENDS)), Chars(_ANYTHING)
    folds_sets = True

    def __init__(self, pattern: str, meter: Meter, bracket_first: bool) -> None:
        shown = repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")
        super().__init__(pattern, SIMPLE, meter, kind=f"a pattern: {shown}", where=f" in the pattern {shown}")
        self.bracket_first = bracket_first
        self.empty_class_at = -1

    def of_re(self, what: str, start: int, remedy: str) -> None:
        """What `re` alone gives a meaning comes next: a validator of schemas runs that."""

    def special(self, char: str) -> None:
        if char == "]" and self.empty_class_at >= 0:
            self.of_re("a ] without a [", self.index - 1, r"Write \], also first in a class; [] is empty.")
            raise _LoneBracket
        if char in "]}":
            self.add(literal(ord(char), 0))
        else:
            super().special(char)

    def alternate(self, options: list[Node]) -> Node:
        """One of several options; a class if all of them are classes."""
        ranges = [option.ranges for option in options if isinstance(option, Chars)]
        return Chars(charset.union(*ranges)) if len(ranges) == len(options) else super().alternate(options)

    # -- groups ---------------------------------------------------------------------------------------------

    def open(self) -> None:
        start = self.index - 1
        if not self.take("?") or self.take(":"):
            self.push(start)
        elif found := _LOOK.match(self.pattern, self.index):
            self.index = found.end()
            self.push(start, look=(found[1] == "<", found[2] == "!"))
        elif self.take("<") or self.take("P<"):
            if self.pattern[self.index - 2] == "P":
                self.of_re("(?P<name>...)", start, "Write (?<name>...).")
            if not self.skip(_NAME):
                raise self.malformed("bad group name", start, "Write (?<name>...).")
            self.push(start)
        elif self.take("P="):
            raise self.refused("a backreference", start)
        elif not self.take("#"):
            self.modifiers(start)
        elif self.skip(_COMMENT):
            self.of_re("a comment", start, "Leave it out.")
        else:
            raise self.malformed("missing ), unterminated comment", start, "Close it with ).")

    def modifiers(self, start: int) -> None:
        """``(?i:...)`` and ``(?i-s:...)``; ``(?i)`` before everything else."""
        found = _MODIFIERS.match(self.pattern, self.index)
        char = self.pattern[self.index : self.index + 1]
        if not found or (not found[1] and not found[2]):
            if char in REFUSED_GROUPS:
                raise self.refused(REFUSED_GROUPS[char], start)
            raise self.malformed(f"unknown group (?{char}", start, ESCAPE_IT)
        added, removed = found[1], (found[2] or "-")[1:]
        if unknown := set(added + removed) - set(_FLAG_BITS) - set("u" if found[3] == ")" else ""):
            raise self.refused(f"the flag {min(unknown)}", start, "The flags are i, m and s.")
        if len(set(added + removed)) < len(added + removed):
            raise self.malformed("a flag is given twice", start, "Give it once.")
        self.index = found.end()
        flags = self.group.flags | sum(_FLAG_BITS.get(flag, 0) for flag in added)
        flags &= ~sum(_FLAG_BITS.get(flag, 0) for flag in removed)
        if found[3] == ":":
            self.push(start, flags)
        elif start or found[2]:
            raise self.malformed("flags not at the start of the pattern", start, "Scope them: (?i:...).")
        else:
            self.of_re("(?i) for all of a pattern", start, "Pass flags=, or scope them: (?i:...).")
            self.group.flags = flags

    def brace(self) -> None:
        """Read counts, or a brace that stands for itself."""
        if self.pattern.startswith(",", self.index) and self.counts.match(self.pattern, self.index):
            self.of_re("{,n}", self.index - 1, r"Write {0,n}, or \{ for the character itself.")
        super().brace()

    # -- assertions -----------------------------------------------------------------------------------------

    def anchor(self, char: str, start: int) -> None:
        behind, column = char in "^A", start + 1
        edge = Look(EMPTY, behind, negate=False, whole=True, column=column)
        if char in "^$" and self.group.flags & M:
            after = Look(_LINE_END, behind, negate=False, whole=False, column=column)
            self.assertion(Alternate((edge, after)))
        else:
            self.assertion(edge)

    # -- characters and classes -----------------------------------------------------------------------------

    def escaped(self) -> None:
        """Read what follows a backslash outside a class."""
        start = self.index - 1
        char = self.pattern[self.index : self.index + 1]
        if char and char in "bB":
            self.index += 1
            self.assertion(boundary(char == "B", _class_of("w", bool(self.group.flags & I)), self.index))
        elif char and char in "AZ":
            self.of_re(f"\\{char}", start, "Write ^ or $, or the letter itself.")
            self.index += 1
            self.anchor(char, start + 1)
        elif char and char in "123456789":
            self.back_reference(start)
        elif char == "k" and "<" in self.pattern:
            raise self.refused("a backreference", start)
        else:
            found = self.escape(start)
            fold = self.group.flags & FOLDING
            self.add(literal(found, fold) if isinstance(found, int) else Chars(self.kept(folded(found, fold))))

    def back_reference(self, start: int) -> None:
        """``\\1`` with that many groups; Annex B's octal, or the digit itself, without."""
        groups = sum(1 for found in _CAPTURE.finditer(self.pattern) if found[1])
        digits = re.compile("[0-9]+").match(self.pattern, self.index)
        assert digits is not None
        if len(digits[0]) < 6 and int(digits[0]) <= groups:
            raise self.refused("a backreference", start)
        octal = _LEGACY_OCTAL.match(self.pattern, self.index)
        self.index = octal.end() if octal else self.index + 1
        code = int(octal[0], 8) if octal else ord(self.pattern[self.index - 1])
        self.add(literal(code, self.group.flags & FOLDING))

    def char_class(self) -> Ranges:
        start = self.index - 1
        found = super().char_class()
        if _POSIX.search(self.pattern, start + 1, self.index):
            raise self.refused("a POSIX class", start, r"Write the characters, or \p{L} and the like.")
        return found

    def class_ends(self, start: int, first: int) -> bool:
        if not self.pattern.startswith("]", self.index):
            return False
        if self.index == first:
            if self.bracket_first:
                return False
            self.empty_class_at = start
        self.index += 1
        return True

    def check_hyphen(self, low: int | Ranges, high: int | Ranges, at: int) -> None:
        if isinstance(low, int) and isinstance(high, int):
            super().check_hyphen(low, high, at)

    def class_atom(self, start: int) -> int | Ranges:
        char = self.pattern[self.index : self.index + 1]
        if not char:
            raise self.malformed("missing ], unterminated character class", start, ESCAPE_IT)
        self.index += 1
        if char != "\\":
            return ord(char)
        if self.take("b"):
            return 0x08
        return self.escape(self.index - 1)

    def escape(self, start: int) -> int | Ranges:
        """The character, or the set of characters, of an escape whose backslash has been read."""
        char = self.pattern[self.index : self.index + 1]
        if not char:
            raise self.malformed("the pattern ends in a backslash", start, r"Write \\ for a backslash.")
        self.index += 1
        if char in "dDsSwW":
            return _class_of(char, bool(self.group.flags & I)).ranges
        if char in "pP":
            return self.property(char == "P", start)
        if char == "x":
            return self.hexadecimal(2, char)
        if char == "u":
            return self.unicode(start)
        if char == "c":
            return self.control()
        if char in CONTROLS:
            if char == "a":
                self.of_re(r"\a", start, r"Write \x07, or the letter itself.")
            return CONTROLS[char]
        if char in "01234567":
            octal = _LEGACY_OCTAL.match(self.pattern, self.index - 1)
            assert octal is not None
            self.index = octal.end()
            return int(octal[0], 8)
        if char in _FOREIGN_ESCAPES:
            what = rf"\{char} ({_FOREIGN_ESCAPES[char]} in other dialects)"
            raise self.refused(what, start, f"If the letter is meant, write {char}.")
        return ord(char)

    def hexadecimal(self, width: int, letter: str) -> int:
        r"""``\xhh``, ``\uhhhh``; Annex B takes the letter where digits are missing."""
        found = _HEX.match(self.pattern, self.index, self.index + width)
        if not found or len(found[0]) < width:
            return ord(letter)
        self.index = found.end()
        return int(found[0], 16)

    def unicode(self, start: int) -> int:
        r"""``\u{...}``, ``\uhhhh``, or two of these that are a pair of surrogates."""
        if self.pattern.startswith("{", self.index):
            end = self.pattern.find("}", self.index)
            digits = self.pattern[self.index + 1 : end]
            if end >= 0 and _HEX.fullmatch(digits):
                digits = digits.lstrip("0") or "0"
                if len(digits) > 6 or int(digits, 16) > sys.maxunicode:
                    raise self.malformed("bad code point", start, "The last character is U+10FFFF.")
                self.index = end + 1
                return int(digits, 16)
        code = self.hexadecimal(4, "u")
        if 0xD800 <= code <= 0xDBFF and (pair := _PAIR.match(self.pattern, self.index)):
            self.index = pair.end()
            return 0x10000 + ((code - 0xD800) << 10) + int(pair[1], 16) - 0xDC00
        return code

    def control(self) -> int:
        r"""``\cA`` to ``\cZ``; elsewhere, in Annex B, the backslash stands for itself."""
        char = self.pattern[self.index : self.index + 1]
        if char.isascii() and char.isalpha():
            self.index += 1
            return ord(char) % 32
        self.index -= 1
        return ord("\\")

    def property(self, negate: bool, start: int) -> Ranges:
        r"""``\p{..}`` and ``\P{..}``."""
        end = self.pattern.find("}", self.index)
        if not self.take("{") or end < 0:
            raise self.refused(r"\p without braces", start, r"Write \p{L}.")
        name = self.pattern[self.index : end]
        self.index = end + 1
        try:
            found = _property(name)
        except KeyError:
            raise self.refused_property(name, start) from None
        return charset.complement(found) if negate else found


class EcmaReader(_Parser):
    """Reads a `Regex` that was written for JavaScript, with its flag ``u`` or without."""

    def __init__(self, pattern: str, flags: int, meter: Meter) -> None:
        super().__init__(pattern, meter, bracket_first=False)
        self.kind, self.where = "a regex of JavaScript", ""
        self.group.flags |= flags & (I | M | S)

    def of_re(self, what: str, start: int, remedy: str) -> None:
        """What `re` alone gives a meaning comes next."""
        raise self.refused(f"{what}, which is Python's,", start, remedy)


@cache
def _class_of(char: str, fold: bool) -> Chars:
    r"""One node for each of ``\d \D \s \S \w \W``; under ``i``, ``\w`` holds what folds to an ASCII letter."""
    ranges = _SHORTHANDS[char.lower()]
    ranges = charset.fold_simply(ranges) if fold else ranges
    return Chars(charset.complement(ranges) if char.isupper() else ranges)


@lru_cache(maxsize=256)
def _property(name: str) -> Ranges:
    """The characters of a property that Python knows exactly; `KeyError` for others."""
    key, equals, value = name.partition("=")
    if equals:
        if key not in ("gc", "General_Category"):
            raise KeyError(name)
        return charset.category(value)
    if name in _BINARY_PROPERTIES:
        return _BINARY_PROPERTIES[name]
    if name == "Assigned":
        return charset.complement(charset.category("Cn"))
    if name in _CASE_PROPERTIES:
        return charset.normalise(
            (code, code) for code in range(sys.maxunicode + 1) if _CASE_PROPERTIES[name](chr(code))
        )
    return charset.category(name)
