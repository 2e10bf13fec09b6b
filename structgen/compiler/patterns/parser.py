r"""Reads Python's `re` syntax into the tree of `syntax`.

This is interegular's parser grown to the whole language: `SimpleParser` carries the reading, and a method
reads what its namesake in interegular reads (`pattern`, `group`, `extension_group`, `repetition`,
`chargroup`, `escaped`). Three things differ from there.

*No recursion.* Patterns come from strangers, so the open groups are a list, not Python's stack, and the
reading is one loop over it. Failed attempts are remembered only at the furthest index, where interegular
keeps them all.

*The grammar is re's,* down to which braces are literal and which backslash hides a ``)`` in a comment: a
pattern is malformed here when `re.compile` says so. Exceptions: look-behind may have any width; ``\p{..}``
and ``\P{..}`` are general categories; what no finite automaton can follow is refused by name
(`UnsupportedError`).

*Abbreviations are spelled out.* Flags are applied to the characters they touch; ``^``, ``$``, ``\A``, ``\Z``,
``\b`` and ``\B`` become look-around.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

from interegular.utils.simple_parser import NoMatch, SimpleParser, nomatch

from ...budget import Budget, Meter
from ...errors import BudgetExceededError, DefinitionError, UnsupportedError
from ..automata import charset
from ..automata.charset import Ranges
from .syntax import BYTES_OF_RANGE, EMPTY, Alternate, Chars, Concat, Look, Node, Repeat

#: The flags of `re` as plain ints, whose algebra is faster than the enum's.
_A, _I, _M, _S, _U, _X = map(int, (re.A, re.I, re.M, re.S, re.U, re.X))
_FLAG_BITS = {"a": _A, "i": _I, "m": _M, "s": _S, "u": _U, "x": _X}

#: Counts from here on are errors in `re` (its ``MAXREPEAT``).
_MAX_COUNT = 2**32 - 1
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}

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

_COUNTS = re.compile(r"(?!\})([0-9]*)(,?)([0-9]*)\}")
_FLAGS = re.compile(r"([aiLmsux]*)(-[aiLmsux]+)?([:)])")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{2}")
_CLASS_OCTAL = re.compile(r"[0-7]{1,3}")
_REFERENCE = re.compile(r"[1-9][0-9]?")

_HEX_DIGITS = "0123456789abcdefABCDEF"
_HEX_WIDTHS = {"x": 2, "u": 4, "U": 8}
_CONTROLS = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_SET_ESCAPES = "dDsSwWpP"
_ANCHORS = "AZbBz" if sys.version_info >= (3, 14) else "AZbB"

#: Constructs of re and of other dialects that need captures, a match in progress, or more than an automaton.
_REFUSED_EXTENSIONS = {
    "(": "a conditional on a group",
    ">": "an atomic group",
    "|": "a branch reset group",
    **dict.fromkeys("R0123456789&+", "recursion"),
}
_REFUSED_ESCAPES = {
    "X": r"a grapheme cluster (\X)",
    "R": r"a line break sequence (\R)",
    "G": r"the end of the previous match (\G)",
    "K": r"a match reset (\K)",
}

_SPELL_OUT = "Spell the wanted texts out without it."
_ESCAPE_IT = "To match the character itself, put a backslash before it."


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
    return _Parser(pattern, flags, meter or Meter(Budget())).parse()


class _Furthest(defaultdict[int, list[str]]):
    """What `SimpleParser` expected to read, kept for the furthest index only."""

    def __missing__(self, index: int) -> list[str]:
        if self and index < max(self):
            return []
        self.clear()
        return self.setdefault(index, [])


class _LookAround(NamedTuple):
    behind: bool
    negate: bool


@dataclass(slots=True)
class _Group:
    """A group that is still open, or the whole pattern."""

    start: int
    flags: int
    look: _LookAround | None = None
    options: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)

    def end_option(self) -> None:
        if len(self.parts) == 1:
            self.options.append(self.parts[0])
        else:
            self.options.append(Concat(tuple(self.parts)) if self.parts else EMPTY)
        self.parts = []

    def node(self) -> Node:
        self.end_option()
        body = self.options[0] if len(self.options) == 1 else Alternate(tuple(self.options))
        if self.look is None:
            return body
        return Look(body, self.look.behind, self.look.negate, whole=False, column=self.start + 1)


class _Parser(SimpleParser[Node]):  # type: ignore[no-untyped-call]
    def __init__(self, data: str, flags: int, meter: Meter) -> None:
        super().__init__(data)
        self._expected = _Furthest()
        self._meter = meter
        self._sets: dict[Ranges, Ranges] = {}
        self._group = _Group(start=0, flags=int(flags))
        self._outer: list[_Group] = []
        self._captures = 0
        self._names: set[str] = set()
        # Why a quantifier cannot stand here; empty where it can.
        self._obstacle = "nothing to repeat"

    def parse(self) -> Node:
        try:
            node: Node = super().parse()
        except NoMatch as error:
            raise _malformed("the pattern ends too early", error.index, "Complete what it ends with.") from None
        return node

    def start(self) -> Node:
        self._check_flags(0)
        return self.pattern()

    def pattern(self) -> Node:
        """Read to the end; ``self._group`` is the innermost open group, ``self._outer`` those around it."""
        data, size = self.data, len(self.data)
        while self.index < size:
            self._meter.check_time("reading the pattern")
            flags = self._group.flags
            run = (_PLAIN_VERBOSE if flags & _X else _PLAIN).match(data, self.index)
            if run:
                fold = flags & (_I | _A)
                self._group.parts += [_literal(char, fold) for char in run[0]]
                self._obstacle = ""
                self.index = run.end()
            else:
                self._special(self.any())
        if self._outer:
            raise _malformed("missing ), unterminated group", self._group.start, _ESCAPE_IT)
        return self._group.node()

    def _special(self, char: str) -> None:
        match char:
            case "(":
                self.group()
            case ")":
                self._close()
            case "|":
                self._group.end_option()
                self._obstacle = "nothing to repeat"
            case "[":
                self.chargroup()
            case "\\":
                self.escaped()
            case "*" | "+" | "?" | "{":
                self.repetition(char)
            case ".":
                self._add(_ANYTHING if self._group.flags & _S else _NOT_NEWLINE)
            case "^" | "$":
                self._anchor(char, self.index - 1)
            case "#":
                self._skip(_LINE_COMMENT)
            # Whatever else ends a run of plain characters is white space, and that only in verbose mode.

    def group(self) -> None:
        """Open the group whose parenthesis has just been read."""
        start = self.index - 1
        if self.static_b("?"):
            self.extension_group(start)
        else:
            self._captures += 1
            self._open(start)

    def extension_group(self, start: int) -> None:
        char = self.any()
        if char == ":":
            self._open(start)
        elif char == "P":
            self._named_group(start)
        elif char in "=!":
            self._open(start, look=_LookAround(behind=False, negate=char == "!"))
        elif char == "<":
            char = self.any()
            if char not in "=!":
                raise _malformed(f"unknown extension (?<{char}", start, "Named groups are written (?P<name>...).")
            self._open(start, look=_LookAround(behind=True, negate=char == "!"))
        elif char == "#":
            if not self._skip(_GROUP_COMMENT):
                raise _malformed("missing ), unterminated comment", start, "Close it with ).")
        elif char in "aiLmsux-":
            self._inline_flags(start)
        elif char in _REFUSED_EXTENSIONS:
            raise _refused(_REFUSED_EXTENSIONS[char], start)
        else:
            raise _malformed(f"unknown extension (?{char}", start, _ESCAPE_IT)

    def _named_group(self, start: int) -> None:
        if self.static_b("<"):
            name = self._group_name(">", start)
            if name in self._names:
                raise _malformed(f"redefinition of group name {name!r}", start, "Give each group its own name.")
            self._names.add(name)
            self._captures += 1
            self._open(start)
        elif self.static_b("="):
            name = self._group_name(")", start)
            if name not in self._names:
                raise _malformed(f"unknown group name {name!r}", start, _SPELL_OUT)
            raise _refused("a backreference", start)
        elif self.static_b(">"):
            raise _refused("recursion", start)
        else:
            raise _malformed(f"unknown extension (?P{self.any()}", start, _ESCAPE_IT)

    def _group_name(self, terminator: str, start: int) -> str:
        name = self._until(terminator, "group name", start)
        if not name.isidentifier():
            raise _malformed(f"bad character in group name {name!r}", start, "A name is a Python identifier.")
        return name

    def _inline_flags(self, start: int) -> None:
        """``(?i)`` for the whole pattern, ``(?i-s:`` for a group."""
        found = _FLAGS.match(self.data, start + 2)
        if not found or (found[2] and found[3] == ")"):
            raise _malformed("malformed inline flags", start, "Write (?i) first of all, or (?i:...), or (?i-s:...).")
        if "L" in found[0]:
            raise _refused("the flag L (locale)", start, "A str pattern has no locale.")
        self.index = found.end()
        added, removed = _flag_bits(found[1]), _flag_bits(found[2] or "")
        if (added & _A and added & _U) or removed & (_A | _U) or added & removed:
            raise _malformed("incompatible inline flags", start, "a and u exclude each other and cannot be removed.")
        if found[3] == ":":
            kept = self._group.flags & ~(_A | _U) if added & (_A | _U) else self._group.flags
            self._open(start, (kept | added) & ~removed)
        elif self._outer or self._group.options or self._group.parts:
            raise _malformed(
                "global flags not at the start of the pattern",
                start,
                "Move them there, or scope them: (?i:...).",
            )
        else:
            self._group.flags |= added
            self._check_flags(start)

    def _check_flags(self, start: int) -> None:
        if self._group.flags & _A and self._group.flags & _U:
            raise _malformed("the flags ASCII and UNICODE are incompatible", start, "Remove one of them.")

    def _open(self, start: int, flags: int | None = None, look: _LookAround | None = None) -> None:
        self._outer.append(self._group)
        depth = self._meter.budget.depth
        if len(self._outer) > depth:
            raise BudgetExceededError(
                f"the pattern nests more than depth={depth:,} groups",
                where=_column(start),
                remedy="Remove parentheses that group nothing, or pass a larger budget=Budget(depth=...).",
            )
        self._group = _Group(start, self._group.flags if flags is None else flags, look)
        self._obstacle = "nothing to repeat"

    def _close(self) -> None:
        if not self._outer:
            raise _malformed("unbalanced parenthesis", self.index - 1, _ESCAPE_IT)
        node = self._group.node()
        self._group = self._outer.pop()
        self._add(node)

    def _add(self, node: Node) -> None:
        self._group.parts.append(node)
        self._obstacle = ""

    def _skip(self, comment: re.Pattern[str]) -> bool:
        found = comment.match(self.data, self.index)
        if found:
            self.index = found.end()
        return found is not None

    def repetition(self, char: str) -> None:
        """Apply the quantifier that begins with ``char`` to what stands before it."""
        start = self.index - 1
        counts = self._counts() if char == "{" else _SIGNS[char]
        if counts is None:
            self._add(_literal("{", 0))
            return
        if self._obstacle:
            raise _malformed(self._obstacle, start, _ESCAPE_IT)
        if self.peek_static("+"):
            raise _refused("a possessive quantifier", start, "Leave the second sign out, or group: (?:...)+.")
        lazy = bool(self.static_b("?"))
        parts = self._group.parts
        parts[-1] = Repeat(parts[-1], *counts, column=start + 1, lazy=lazy)
        self._obstacle = "multiple repeat"

    def _counts(self) -> tuple[int, int | None] | None:
        """The bounds behind a brace, or None where the brace stands for itself."""
        start = self.index - 1
        found = _COUNTS.match(self.data, self.index)
        if found is None:
            return None
        self.index = found.end()
        low, high = (_count(digits, start) for digits in (found[1], found[3] if found[2] else found[1]))
        if high is not None and high < (low or 0):
            raise _malformed("min repeat greater than max repeat", start, "Swap the two.")
        return low or 0, high

    def chargroup(self) -> None:
        """Read a class whose bracket has just been read."""
        start = self.index - 1
        try:
            self._add(Chars(self._kept(self._class())))
        except nomatch:
            raise _malformed("missing ], unterminated character class", start, _ESCAPE_IT) from None

    def _kept(self, ranges: Ranges) -> Ranges:
        """A set that the tree will hold; equal ones are held once."""
        if ranges not in self._sets:
            self._meter.hold(BYTES_OF_RANGE * len(ranges), "reading the pattern")
        return self._sets.setdefault(ranges, ranges)

    def _class(self) -> Ranges:
        negate = self.static_b("^")
        spans: list[tuple[int, int]] = []
        sets: list[Ranges] = []
        first = self.index
        while self.index == first or not self.static_b("]"):
            start = self.index
            low = self.chargroup_inner()
            dash = self.static_b("-")
            if dash and not self.peek_static("]"):
                spans.append(self._span(low, self.chargroup_inner(), start))
                continue
            if dash:
                spans.append((ord("-"), ord("-")))
            if isinstance(low, int):
                spans.append((low, low))
            else:
                sets.append(low)
        members = charset.normalise(spans)
        if self._group.flags & _I:
            members = charset.ignore_case(members, bool(self._group.flags & _A))
        members = charset.union(members, *sets)
        return charset.complement(members) if negate else members

    def _span(self, low: int | Ranges, high: int | Ranges, start: int) -> tuple[int, int]:
        if isinstance(low, int) and isinstance(high, int) and low <= high:
            return low, high
        text = self.data[start : self.index]
        raise _malformed(f"bad character range {text}", start, "Write two characters in order.")

    def chargroup_inner(self) -> int | Ranges:
        """A character or a set of them, inside a class."""
        start = self.index
        char = self.any()
        if char != "\\":
            return ord(char)
        char = self.any()
        if char in _SET_ESCAPES:
            return self._set(char, start).ranges
        if char == "b":
            return 0x08
        if octal := _CLASS_OCTAL.match(self.data, start + 1):
            return self._octal(octal, start)
        return self._character(char, start)

    def escaped(self) -> None:
        """Read what follows a backslash outside a class."""
        start = self.index - 1
        char = self.any()
        if char in _SET_ESCAPES:
            self._add(self._set(char, start))
        elif char in _ANCHORS:
            self._anchor(char, start)
        else:
            if octal := _OCTAL.match(self.data, start + 1):
                code = self._octal(octal, start)
            elif reference := _REFERENCE.match(self.data, start + 1):
                if int(reference[0]) > self._captures:
                    raise _malformed(f"invalid group reference {reference[0]}", start, _SPELL_OUT)
                raise _refused("a backreference", start)
            else:
                code = self._character(char, start)
            self._add(_literal(chr(code), self._group.flags & (_I | _A)))

    def _anchor(self, char: str, start: int) -> None:
        self._add(_anchor(char, self._group.flags, start + 1))
        self._obstacle = "nothing to repeat"

    def _set(self, char: str, start: int) -> Chars:
        if char not in "pP":
            return _shorthand(char, bool(self._group.flags & _A))
        name = self._until("}", "property name", start) if self.static_b("{") else self.any()
        try:
            return _category(name, char == "P", bool(self._group.flags & _I))
        except KeyError:
            raise _refused(
                f"the Unicode property {name!r}", start, r"Use a general category, such as \p{L} or \p{Lu}."
            ) from None

    def _octal(self, found: re.Match[str], start: int) -> int:
        self.index = found.end()
        code = int(found[0], 8)
        if code > 0o377:
            raise _malformed(rf"octal escape \{found[0]} outside of range 0-0o377", start, r"Write \uhhhh.")
        return code

    def _character(self, char: str, start: int) -> int:
        r"""The code point of an escape that means one character, in a class or outside."""
        if char in _HEX_WIDTHS:
            digits = self.multiple(_HEX_DIGITS, 0, _HEX_WIDTHS[char])
            if len(digits) < _HEX_WIDTHS[char]:
                raise _malformed(rf"incomplete escape \{char}{digits}", start, r"Write \xhh, \uhhhh or \Uhhhhhhhh.")
            code = int(digits, 16)
            if code > sys.maxunicode:
                raise _malformed(rf"bad escape \{char}{digits}", start, "The last character is U+10FFFF.")
            return code
        if char == "N":
            return self._named_character(start)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _REFUSED_ESCAPES:
            raise _refused(_REFUSED_ESCAPES[char], start)
        if char.isascii() and char.isalnum():
            raise _malformed(rf"bad escape \{char}", start, r"Write \\ for a backslash.")
        return ord(char)

    def _named_character(self, start: int) -> int:
        if not self.static_b("{"):
            raise _malformed("missing {", self.index, r"Name the character: \N{EM DASH}.")
        name = self._until("}", "character name", start)
        try:
            return ord(unicodedata.lookup(name))
        except (KeyError, TypeError, UnicodeEncodeError):
            raise _malformed(f"undefined character name {name!r}", start, "Write its name in Unicode.") from None

    def _until(self, terminator: str, what: str, start: int) -> str:
        end = self.data.find(terminator, self.index)
        if end < 0:
            raise _malformed(f"missing {terminator}, unterminated {what}", start, f"Close it with {terminator}.")
        text = self.data[self.index : end]
        if not text:
            raise _malformed(f"missing {what}", start, _ESCAPE_IT)
        self.index = end + 1
        return text


def _count(digits: str, start: int) -> int | None:
    digits = digits.lstrip("0") or digits[:1]
    if len(digits) > len(str(_MAX_COUNT)) or int(digits or 0) >= _MAX_COUNT:
        raise _malformed("the repetition number is too large", start, f"Counts end below {_MAX_COUNT:,}.")
    return int(digits) if digits else None


def _flag_bits(letters: str) -> int:
    return sum(_FLAG_BITS[letter] for letter in set(letters) - {"-"})


@lru_cache(maxsize=4096)
def _literal(char: str, fold: int) -> Chars:
    """One node for each character and union of re.IGNORECASE and re.ASCII."""
    ranges = charset.normalise([(ord(char), ord(char))])
    return Chars(charset.ignore_case(ranges, bool(fold & _A)) if fold & _I else ranges)


@cache
def _shorthand(char: str, ascii: bool) -> Chars:
    r"""One node for each of ``\d \D \s \S \w \W``."""
    if char.isupper():
        return Chars(charset.complement(_shorthand(char.lower(), ascii).ranges))
    return Chars({"d": charset.digit, "s": charset.space, "w": charset.word}[char](ascii))


@lru_cache(maxsize=256)
def _category(name: str, negate: bool, ignore_case: bool) -> Chars:
    ranges = charset.category(name, ignore_case)
    return Chars(charset.complement(ranges) if negate else ranges)


def _anchor(char: str, flags: int, column: int) -> Node:
    r"""``^ $ \A \Z \b \B`` as look-around."""
    if char in "bB":
        return _boundary(char, bool(flags & _A), column)
    behind = char in "^A"
    if flags & _M and char in "^$":
        return Look(_NOT_NEWLINE, behind=behind, negate=True, whole=False, column=column)
    item = _OPTIONAL_NEWLINE if char == "$" else EMPTY
    return Look(item, behind=behind, negate=False, whole=True, column=column)


def _boundary(char: str, ascii: bool, column: int) -> Node:
    word, other = _shorthand("w", ascii), _shorthand("W", ascii)
    after = Look(word, behind=True, negate=False, whole=False, column=column)
    before = Look(word, behind=False, negate=False, whole=False, column=column)
    not_after = Look(word, behind=True, negate=True, whole=False, column=column)
    not_before = Look(word, behind=False, negate=True, whole=False, column=column)
    sides: tuple[tuple[Look, Look], ...]
    if char == "b":
        sides = (after, not_before), (not_after, before)
    elif sys.version_info >= (3, 14):
        sides = (after, before), (not_after, not_before)
    else:
        # Until Python 3.14, \B is false in the empty text: on one side there must be a character.
        some_after = Look(other, behind=True, negate=False, whole=False, column=column)
        some_before = Look(other, behind=False, negate=False, whole=False, column=column)
        sides = (after, before), (some_after, not_before), (not_after, some_before)
    return Alternate(tuple(map(Concat, sides)))


def _column(index: int) -> str:
    return f"column {index + 1}"


def _malformed(what: str, index: int, remedy: str) -> DefinitionError:
    return DefinitionError(what, where=_column(index), remedy=remedy)


def _refused(construct: str, index: int, remedy: str = _SPELL_OUT) -> UnsupportedError:
    return UnsupportedError(f"{construct} is not supported in a regex", where=_column(index), remedy=remedy)
