r"""Reads Python's `re` syntax into the tree of `syntax`.

*The grammar is re's,* down to which braces are literal and which backslash hides a ``)`` in a comment: a
pattern is malformed here when `re.compile` says so. Exceptions: look-behind may have any width; ``\p{..}``
and ``\P{..}`` are general categories; look-around may decide between two options, ``(?(?=a)b|c)``; what no finite
automaton can follow is refused by name (`UnsupportedError`).

*Abbreviations are spelled out.* Flags are applied to the characters they touch; ``^``, ``$``, ``\A``, ``\Z``,
``\b`` and ``\B`` become look-around.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache, lru_cache

from ...budget import Budget, Meter
from ..automata import charset
from ..automata.charset import Ranges
from .reader import (
    CONTROLS,
    ESCAPE_IT,
    FOLDING,
    REFUSED_GROUPS,
    SPELL_OUT,
    A,
    I,
    M,
    PatternReader,
    U,
    X,
    boundary,
    literal,
)
from .syntax import EMPTY, Alternate, Chars, Look, Node

_FLAG_BITS = {"a": A, "i": I, "m": M, "s": int(re.S), "u": U, "x": X}

_ANYTHING = Chars(charset.complement(()))
_NEWLINE = Chars(((10, 10),))
_NOT_NEWLINE = Chars(charset.complement(_NEWLINE.ranges))
_OPTIONAL_NEWLINE = Alternate((EMPTY, _NEWLINE))

#: A run of characters that stand for themselves, and the same under re.VERBOSE.
_PLAIN = re.compile(r"[^\\\[{()*+?^$|.]{1,4096}")
_PLAIN_VERBOSE = re.compile(r"[^\\\[{()*+?^$|.# \t\n\r\v\f]{1,4096}")

# A backslash hides the character behind it even inside comments.
_GROUP_COMMENT = re.compile(r"[^\\)]*(?:\\.[^\\)]*)*\)", re.DOTALL)
_LINE_COMMENT = re.compile(r"[^\\\n]*(?:\\.[^\\\n]*)*\n?", re.DOTALL)

_FLAGS = re.compile(r"([aiLmsux]*)(-[aiLmsux]+)?([:)])")
_CONDITION = re.compile(r"\?(<?)([=!])")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{2}")
_CLASS_OCTAL = re.compile(r"[0-7]{1,3}")
_REFERENCE = re.compile(r"[1-9][0-9]?")

#: What other dialects have, and how it is written here.
_OTHERS = 'dialect="ecma" reads JavaScript\'s spelling, dialect="rust" Rust\'s.'
_NAMED = f"Named groups are written (?P<name>...); {_OTHERS}"
_SPELLED = {
    "c": r'Write \xhh for a control character; dialect="ecma" reads \cJ.', "z": r"Write \Z for the end of the text.",
    "h": r"Write [ \t] for blanks.", "Q": "Put a backslash before each sign.",
    "E": "Put a backslash before each sign.", "k": "Spell the wanted texts out without it.",
}  # fmt: skip

_HEX_WIDTHS = {"x": 2, "u": 4, "U": 8}
_HEX = {char: re.compile(f"[0-9a-fA-F]{{0,{width}}}") for char, width in _HEX_WIDTHS.items()}
_SET_ESCAPES = "dDsSwWpP"
_ANCHORS = "AZbBz" if sys.version_info >= (3, 14) else "AZbB"

_REFUSED_ESCAPES = {
    "X": r"a grapheme cluster (\X)",
    "R": r"a line break sequence (\R)",
    "G": r"the end of the previous match (\G)",
    "K": r"a match reset (\K)",
}


def parse(pattern: str, flags: int = 0, meter: Meter | None = None) -> Node:
    """Parse a regex.

    Parameters
    ----------
    pattern:
        Python's `re` syntax for str patterns.
    flags:
        A union of `re.ASCII`, `re.IGNORECASE`, `re.MULTILINE`, `re.DOTALL`, `re.VERBOSE` and `re.UNICODE`.
    meter:
        Of the compile; None: one of its own.

    Returns
    -------
    Node
        A tree that means, as the whole of a text, what `re.fullmatch` accepts.

    Raises
    ------
    DefinitionError
        The pattern is malformed; ``where`` is the column, counted from 1.
    UnsupportedError
        The pattern uses a construct that no finite automaton can honour exactly.
    BudgetExceededError
        Groups are nested deeper than the budget says, or reading takes too long or holds too much.
    """
    return PythonReader(pattern, flags, meter or Meter(Budget())).parse()


class _End(Exception):
    """The pattern ends too early."""


class PythonReader(PatternReader):
    """Reads a pattern of `re`."""

    plain = _PLAIN, _PLAIN_VERBOSE
    counts = re.compile(r"(?!\})([0-9]*)(,?)([0-9]*)\}")
    dots = _NOT_NEWLINE, _ANYTHING

    def __init__(self, pattern: str, flags: int, meter: Meter) -> None:
        super().__init__(pattern, int(flags), meter, kind="a regex")
        self._captures = 0
        self._names: set[str] = set()

    def parse(self) -> Node:
        """Read to the end."""
        self._check_flags(0)
        try:
            return super().parse()
        except _End:
            raise self.malformed(
                "the pattern ends too early", len(self.pattern), "Complete what it ends with."
            ) from None

    def any(self) -> str:
        """The next character."""
        if self.index == len(self.pattern):
            raise _End
        self.index += 1
        return self.pattern[self.index - 1]

    def special(self, char: str) -> None:
        """Read what begins with a character that may not stand for itself; comments are skipped."""
        if char == "#":
            self.skip(_LINE_COMMENT)
        else:  # white space ends a run of plain characters in verbose mode, and means nothing
            super().special(char)

    def open(self) -> None:
        """Open the group whose parenthesis has just been read."""
        start = self.index - 1
        if self.take("?"):
            self.extension_group(start)
        else:
            self._captures += 1
            self.push(start)

    def extension_group(self, start: int) -> None:
        """Open a group that begins with a question mark."""
        char = self.any()
        if char == ":":
            self.push(start)
        elif char == "P":
            self._named_group(start)
        elif char in "=!":
            self.push(start, look=(False, char == "!"))
        elif char == "<":
            char = self.any()
            if char not in "=!":
                raise self.malformed(f"unknown extension (?<{char}", start, _NAMED)
            self.push(start, look=(True, char == "!"))
        elif char == "#":
            if not self.skip(_GROUP_COMMENT):
                raise self.malformed("missing ), unterminated comment", start, "Close it with ).")
        elif char in "aiLmsux-":
            self._inline_flags(start)
        elif char == "(" and (found := _CONDITION.match(self.pattern, self.index)):
            self.push(start)
            self.group.conditional = True
            self.index = found.end()
            self.push(found.start() - 1, look=(found[1] == "<", found[2] == "!"))
        elif char in REFUSED_GROUPS:
            raise self.refused(REFUSED_GROUPS[char], start)
        else:
            raise self.malformed(f"unknown extension (?{char}", start, ESCAPE_IT)

    def _named_group(self, start: int) -> None:
        if self.take("<"):
            name = self._group_name(">", start)
            if name in self._names:
                raise self.malformed(f"redefinition of group name {name!r}", start, "Give each group its own name.")
            self._names.add(name)
            self._captures += 1
            self.push(start)
        elif self.take("="):
            name = self._group_name(")", start)
            if name not in self._names:
                raise self.malformed(f"unknown group name {name!r}", start, SPELL_OUT)
            raise self.refused("a backreference", start)
        elif self.take(">"):
            raise self.refused("recursion", start)
        else:
            raise self.malformed(f"unknown extension (?P{self.any()}", start, ESCAPE_IT)

    def _group_name(self, terminator: str, start: int) -> str:
        name = self._until(terminator, "group name", start)
        if not name.isidentifier():
            raise self.malformed(f"bad character in group name {name!r}", start, "A name is a Python identifier.")
        return name

    def _inline_flags(self, start: int) -> None:
        """``(?i)`` for the whole pattern, ``(?i-s:`` for a group."""
        found = _FLAGS.match(self.pattern, start + 2)
        if not found or (found[2] and found[3] == ")"):
            raise self.malformed(
                "malformed inline flags", start, "Write (?i) first of all, or (?i:...), or (?i-s:...)."
            )
        if "L" in found[0]:
            raise self.refused("the flag L (locale)", start, "A str pattern has no locale.")
        self.index = found.end()
        added, removed = _flag_bits(found[1]), _flag_bits(found[2] or "")
        if (added & A and added & U) or removed & (A | U) or added & removed:
            raise self.malformed(
                "incompatible inline flags", start, "a and u exclude each other and cannot be removed."
            )
        if found[3] == ":":
            kept = self.group.flags & ~(A | U) if added & (A | U) else self.group.flags
            self.push(start, (kept | added) & ~removed)
        elif self.outer or self.group.options or self.group.parts:
            raise self.malformed(
                "global flags not at the start of the pattern", start, "Move them there, or scope them: (?i:...)."
            )
        else:
            self.group.flags |= added
            self._check_flags(start)

    def _check_flags(self, start: int) -> None:
        if self.group.flags & A and self.group.flags & U:
            raise self.malformed("the flags ASCII and UNICODE are incompatible", start, "Remove one of them.")

    def char_class(self) -> Ranges:
        """Read a class whose bracket has just been read."""
        start = self.index - 1
        try:
            return super().char_class()
        except _End:
            raise self.malformed("missing ], unterminated character class", start, ESCAPE_IT) from None

    def class_atom(self, start: int) -> int | Ranges:
        """Read a character or a set of them, inside a class."""
        start = self.index
        char = self.any()
        if char != "\\":
            return ord(char)
        char = self.any()
        if char in _SET_ESCAPES:
            return self._set(char, start).ranges
        if char == "b":
            return 0x08
        if octal := _CLASS_OCTAL.match(self.pattern, start + 1):
            return self._octal(octal, start)
        return self._character(char, start)

    def escaped(self) -> None:
        """Read what follows a backslash outside a class."""
        start = self.index - 1
        char = self.any()
        if char in _SET_ESCAPES:
            self.add(self._set(char, start))
        elif char in _ANCHORS:
            self.anchor(char, start)
        else:
            if octal := _OCTAL.match(self.pattern, start + 1):
                code = self._octal(octal, start)
            elif reference := _REFERENCE.match(self.pattern, start + 1):
                if int(reference[0]) > self._captures:
                    raise self.malformed(f"invalid group reference {reference[0]}", start, SPELL_OUT)
                raise self.refused("a backreference", start)
            else:
                code = self._character(char, start)
            self.add(literal(code, self.group.flags & FOLDING))

    def anchor(self, char: str, start: int) -> None:
        """Add what an anchor means."""
        flags, column, behind = self.group.flags, start + 1, char in "^A"
        if char in "bB":
            ascii = bool(flags & A)
            # Until Python 3.14, \B is false in the empty text.
            other = _shorthand("W", ascii) if sys.version_info < (3, 14) else None
            self.assertion(boundary(char == "B", _shorthand("w", ascii), column, other))
        elif flags & M and char in "^$":
            self.assertion(Look(_NOT_NEWLINE, behind, negate=True, whole=False, column=column))
        else:
            item = _OPTIONAL_NEWLINE if char == "$" else EMPTY
            self.assertion(Look(item, behind, negate=False, whole=True, column=column))

    def _set(self, char: str, start: int) -> Chars:
        if char not in "pP":
            return _shorthand(char, bool(self.group.flags & A))
        name = self._until("}", "property name", start) if self.take("{") else self.any()
        try:
            return _category(name, char == "P", bool(self.group.flags & I))
        except KeyError:
            raise self.refused_property(name, start) from None

    def _octal(self, found: re.Match[str], start: int) -> int:
        self.index = found.end()
        code = int(found[0], 8)
        if code > 0o377:
            raise self.malformed(rf"octal escape \{found[0]} outside of range 0-0o377", start, r"Write \uhhhh.")
        return code

    def _character(self, char: str, start: int) -> int:
        r"""The code point of an escape that means one character, in a class or outside."""
        if char in _HEX_WIDTHS:
            self.skip(_HEX[char])
            digits = self.pattern[start + 2 : self.index]
            if len(digits) < _HEX_WIDTHS[char]:
                remedy = r"Write \xhh, \uhhhh or \Uhhhhhhhh."
                if self.pattern.startswith("{", self.index) and not digits:
                    remedy = rf"{remedy[:-1]}; {_OTHERS}"
                raise self.malformed(rf"incomplete escape \{char}{digits}", start, remedy)
            code = int(digits, 16)
            if code > sys.maxunicode:
                raise self.malformed(rf"bad escape \{char}{digits}", start, "The last character is U+10FFFF.")
            return code
        if char == "N":
            return self._named_character(start)
        if char in CONTROLS:
            return CONTROLS[char]
        if char in _REFUSED_ESCAPES:
            raise self.refused(_REFUSED_ESCAPES[char], start)
        if char.isascii() and char.isalnum():
            raise self.malformed(rf"bad escape \{char}", start, _SPELLED.get(char, r"Write \\ for a backslash."))
        return ord(char)

    def _named_character(self, start: int) -> int:
        if not self.take("{"):
            raise self.malformed("missing {", self.index, r"Name the character: \N{EM DASH}.")
        name = self._until("}", "character name", start)
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError, UnicodeEncodeError):
            raise self.malformed(f"undefined character name {name!r}", start, "Write its name in Unicode.") from None

    def _until(self, terminator: str, what: str, start: int) -> str:
        end = self.pattern.find(terminator, self.index)
        if end < 0:
            raise self.malformed(f"missing {terminator}, unterminated {what}", start, f"Close it with {terminator}.")
        text = self.pattern[self.index : end]
        if not text:
            raise self.malformed(f"missing {what}", start, ESCAPE_IT)
        self.index = end + 1
        return text


def _flag_bits(letters: str) -> int:
    return sum(_FLAG_BITS[letter] for letter in set(letters) - {"-"})


@cache
def _shorthand(char: str, ascii: bool) -> Chars:
    r"""One node for each of ``\d \D \s \S \w \W``."""
    if char.isupper():
        return Chars(charset.complement(_shorthand(char.lower(), ascii).ranges))
    return Chars(charset.shorthand(char, ascii))


@lru_cache(maxsize=256)
def _category(name: str, negate: bool, ignore_case: bool) -> Chars:
    ranges = charset.category(name, ignore_case)
    return Chars(charset.complement(ranges) if negate else ranges)
