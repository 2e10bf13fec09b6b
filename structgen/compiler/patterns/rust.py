r"""Reads the syntax of Rust's `regex` crate into the tree of `syntax`.

The judge is that crate (its documentation and ``regex-syntax``), in its Unicode mode: ``\d``, ``\s`` and ``\w`` are
Unicode's, ``.`` is all but ``\n``, ``$`` the very end. Classes have members in them and are intersected, subtracted
and differ (``&&``, ``--``, ``~~``); a sign may follow a sign (``a{2}{3}``, ``a++``) or an assertion. What the crate
has not, look-around and backreferences first of all, is refused. Sets of characters are those of the running Python's
Unicode; properties that it does not know are refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache

from ...budget import Meter
from ..automata import charset
from ..automata.charset import Ranges
from .reader import CONTROLS, ESCAPE_IT, FOLDING, SIMPLE, I, M, PatternReader, S, X, boundary, folded, literal
from .syntax import EMPTY, Alternate, Chars, Concat, Look, Node, Repeat

_ANYTHING: Ranges = charset.complement(())
_NEWLINE: Ranges = ((0x0A, 0x0A),)
_FLAG_BITS = {"i": I, "m": M, "s": S, "x": X, "U": 0, "u": 0}

_FLAGS = re.compile(r"([a-zA-Z]*)(-[a-zA-Z]*)?([:)])")
_NAME = re.compile(r"([^\W\d][\w.\[\]]*)>")
#: What the flag x takes out: Pattern_White_Space, and comments.
_BLANK = "\t\n\v\f\r \x85\u200e\u200f\u2028\u2029"
_SKIPPED = re.compile(rf"(?:[{_BLANK}]|#[^\n]*)*")
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_DIGITS = {"x": 2, "u": 4, "U": 8}
_EDGES = re.compile(r"\{(start|end|start-half|end-half)\}")

_ALNUM = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
_PUNCTUATION = ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))
_POSIX_CLASSES: dict[str, Ranges] = {
    "alnum": _ALNUM,
    "alpha": _ALNUM[1:],
    "ascii": ((0, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _ALNUM[:1],
    "graph": ((0x21, 0x7E),),
    "lower": _ALNUM[2:],
    "print": ((0x20, 0x7E),),
    "punct": _PUNCTUATION,
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": _ALNUM[1:2],
    "word": charset.union(_ALNUM, ((0x5F, 0x5F),)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_WHITE_SPACE: Ranges = charset.normalise(
    [(0x09, 0x0D), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
     (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)]
)  # fmt: skip
#: Characters of Other_Alphabetic that are no marks, and those of Join_Control (Unicode's PropList.txt).
_OTHER_WORD: Ranges = ((0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
_PROPERTIES = {"any": _ANYTHING, "ascii": _POSIX_CLASSES["ascii"], "whitespace": _WHITE_SPACE}

#: What two sets come to, by the sign between them.
_OPERATIONS: dict[str, Callable[[Ranges, Ranges], Ranges]] = {
    "&&": charset.intersect,
    "--": lambda a, b: charset.intersect(a, charset.complement(b)),
    "~~": lambda a, b: charset.intersect(charset.union(a, b), charset.complement(charset.intersect(a, b))),
}


class _Class:
    """A class that is still open: what stands before the last sign, that sign, and what came behind it."""

    def __init__(self, start: int, negate: bool) -> None:
        self.start, self.negate = start, negate
        self.left: Ranges = ()
        self.sign = ""
        self.spans: list[tuple[int, int]] = []
        self.sets: set[Ranges] = set()


class RustReader(PatternReader):
    """Reads a `Regex` that was written for Rust's crate."""

    plain = re.compile(r"[^\\\[{()*+?^$|.]{1,4096}"), re.compile(rf"[^\\\[{{()*+?^$|.#{_BLANK}]{{1,4096}}")
    counts = re.compile(r" *([0-9]+) *(?:(,)(?: *([0-9]+) *)?)?\}")
    dots = Chars(charset.complement(_NEWLINE)), Chars(_ANYTHING)

    def __init__(self, pattern: str, flags: int, meter: Meter) -> None:
        super().__init__(pattern, flags & (I | M | S | X) | SIMPLE, meter, kind="a regex of Rust's crate")
        self.names: set[str] = set()

    def special(self, char: str) -> None:
        """Read what begins with a character that may not stand for itself; blanks are passed over."""
        if char == "#" or char in _BLANK:  # under the flag x
            self.index -= 1
            self.skip(_SKIPPED)
        else:
            super().special(char)

    # -- groups and flags -------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the group whose parenthesis has just been read."""
        start = self.index - 1
        self.blank()
        if not self.take("?") or self.take(":"):
            self.push(start)
        elif self.pattern.startswith(("=", "!", "<=", "<!"), self.index):
            raise self.refused("look-around", start, 'Rust has none; with dialect="re" it is read.')
        elif self.take("P<") or self.take("<"):
            name = _NAME.match(self.pattern, self.index)
            if name is None:
                raise self.malformed("bad group name", start, "Write (?<name>...).")
            if name[1] in self.names:
                raise self.malformed(f"redefinition of group name {name[1]!r}", start, "Give each its own name.")
            self.names.add(name[1])
            self.index = name.end()
            self.push(start)
        else:
            self.flags(start)

    def flags(self, start: int) -> None:
        """``(?i-s:...)``; ``(?i)`` for the rest of a group."""
        found = _FLAGS.match(self.pattern, self.index)
        if found is None or found[0] in (")", "-:", "-)") or (found[2] == "-" and found[3]):
            raise self.malformed("malformed flags or unknown group", start, "Write (?i), (?i:...) or (?i-s:...).")
        added, removed = found[1], (found[2] or "-")[1:]
        if unknown := set(added + removed) - _FLAG_BITS.keys():
            raise self.refused(f"the flag {min(unknown)}", start, "The flags are i, m, s, x, U and u.")
        if "u" in removed:
            raise self.refused("a part without the flag u", start, "Spell its characters out.")
        if len(set(added + removed)) < len(added + removed):
            raise self.malformed("a flag is given twice", start, "Give it once.")
        self.index = found.end()
        flags = self.group.flags | sum(_FLAG_BITS[flag] for flag in added)
        flags &= ~sum(_FLAG_BITS[flag] for flag in removed)
        if found[3] == ":":
            self.push(start, flags)
        else:
            self.group.flags = flags
            self.obstacle = "nothing to repeat"

    # -- assertions and quantifiers ---------------------------------------------------------------------

    def assertion(self, node: Node) -> None:
        """Add what has no width; a quantifier may follow it."""
        self.add(node)

    def brace(self) -> None:
        """Read counts; a brace never stands for itself."""
        if not self.counts.match(self.pattern, self.index):
            raise self.malformed("a { that begins no counts", self.index - 1, ESCAPE_IT)
        super().brace()

    def repeat(self, low: int, high: int | None, start: int) -> None:
        """Apply a quantifier, one that has a quantifier before it too."""
        if self.obstacle:
            raise self.malformed(self.obstacle, start, ESCAPE_IT)
        if self.pattern[start] == "{":  # behind another sign, a blank has the question mark be a sign of its own
            self.blank()
        parts = self.group.parts
        parts[-1] = Repeat(parts[-1], low, high, column=start + 1, lazy=self.take("?"))

    def anchor(self, char: str, start: int) -> None:
        """Add what an anchor means."""
        behind, column = char in "^A", start + 1
        edge = Look(EMPTY, behind, negate=False, whole=True, column=column)
        if char in "^$" and self.group.flags & M:
            line = Look(Chars(_NEWLINE), behind, negate=False, whole=False, column=column)
            self.assertion(Alternate((edge, line)))
        else:
            self.assertion(edge)

    def edge(self, kind: str, column: int) -> None:
        """``\b{start}`` and the like: a word begins or ends here, or, by halves, none is before or behind."""
        starts = kind.startswith("start")
        outside = Look(_word(), starts, negate=True, whole=False, column=column)
        inside = Look(_word(), not starts, negate=False, whole=False, column=column)
        self.add(outside if kind.endswith("half") else Concat((outside, inside)))

    # -- characters and classes -------------------------------------------------------------------------

    def blank(self) -> None:
        """Read what means nothing under the flag x."""
        if self.group.flags & X:
            self.skip(_SKIPPED)

    def next(self) -> str:
        """The next character."""
        self.index += 1
        if self.index > len(self.pattern):
            raise self.malformed("the pattern ends too early", len(self.pattern), "Complete what it ends with.")
        return self.pattern[self.index - 1]

    def escaped(self) -> None:
        """Read what follows a backslash outside a class."""
        start = self.index - 1
        char = self.next()
        if char in "bB":
            half = _EDGES.match(self.pattern, self.index) if char == "b" else None
            if half is not None:
                self.index = half.end()
                self.edge(half[1], start + 1)
            else:
                self.assertion(boundary(char == "B", _word(), start + 1))
        elif char in "<>":
            self.edge("start" if char == "<" else "end", start + 1)
        elif char in "Az":
            self.anchor(char, start)
        else:
            found = self.escape(char, start)
            fold = self.group.flags & FOLDING
            self.add(literal(found, fold) if isinstance(found, int) else Chars(self.kept(found)))

    def escape(self, char: str, start: int) -> int | Ranges:
        """The character, or the set, of an escape whose letter has been read."""
        if char in "dDsSwW":
            return _shorthand(char)
        if char in "pP":
            return self.property(char == "P", start)
        if char in _DIGITS:
            return self.hexadecimal(_DIGITS[char], start)
        if char in CONTROLS:
            return CONTROLS[char]
        if char.isascii() and not char.isalnum() and char not in "<>":
            return ord(char)
        if char.isdecimal():
            raise self.refused("a backreference", start, r"Write \x07 for a character by its number.")
        raise self.malformed(rf"bad escape \{char}", start, r"Write \\ for a backslash.")

    def hexadecimal(self, width: int, start: int) -> int:
        r"""``\x41``, ``\u0041``, ``\U00000041``, and each with ``{41}``."""
        braces = self.take("{")
        end = self.pattern.find("}", self.index) if braces else self.index + width
        digits = self.pattern[self.index : max(end, self.index)]
        if not re.fullmatch("[0-9a-fA-F]+", digits) or (not braces and len(digits) < width):
            raise self.malformed("an escape without its digits", start, r"Write \x41 or \u{1F600}.")
        self.index = end + braces
        digits = digits.lstrip("0") or "0"
        code = int(digits, 16) if len(digits) <= 6 else sys.maxunicode + 1
        if code > sys.maxunicode or 0xD800 <= code <= 0xDFFF:
            raise self.malformed("an escape of no character", start, "Characters end with U+10FFFF.")
        return code

    def property(self, negate: bool, start: int) -> Ranges:
        r"""``\pL``, ``\p{Letter}``, ``\p{gc=L}``; folded under the flag i before it is negated."""
        if self.take("{"):
            end = self.pattern.find("}", self.index)
            if end < 0:
                raise self.malformed("missing }, unterminated property name", start, r"Write \p{L}.")
            name, self.index = self.pattern[self.index : end], end + 1
        else:
            name = self.next()
        kind, equals, value = name.rpartition("=")
        try:
            if equals and _plain(kind) not in ("gc", "generalcategory"):
                raise KeyError(name)
            found = _PROPERTIES.get(_plain(value)) if not equals else None
            found = charset.category_named_loosely(value) if found is None else found
        except KeyError:
            raise self.refused_property(name, start) from None
        found = folded(found, self.group.flags)
        return charset.complement(found) if negate else found

    def char_class(self) -> Ranges:
        """Read a class, and those within it, whose bracket has just been read."""
        classes = [self.class_begins(self.index - 1)]
        while True:
            self.meter.check_time("reading the pattern")
            self.blank()
            here = classes[-1]
            if self.take("]"):
                found = self.class_ended(classes.pop())
                if not classes:
                    return found
                classes[-1].sets.add(found)
            elif posix := _POSIX.match(self.pattern, self.index):
                here.sets.add(self.posix(posix))
            elif self.take("["):
                self.check_depth(len(self.outer) + len(classes), self.index - 1)
                classes.append(self.class_begins(self.index - 1))
            elif (sign := self.pattern[self.index : self.index + 2]) in _OPERATIONS:
                self.index += 2
                self.class_operated(here)
                here.sign = sign
            else:
                self.class_member(here)

    def class_begins(self, start: int) -> _Class:
        """Open a class; a bracket or hyphens that come first are members."""
        self.blank()
        opened = _Class(start, self.take("^"))
        self.blank()
        while self.take("-"):
            opened.spans.append((ord("-"), ord("-")))
            self.blank()
        if not opened.spans and self.take("]"):
            opened.spans.append((ord("]"), ord("]")))
        return opened

    def class_operated(self, here: _Class) -> Ranges:
        """What the operations before this place come to."""
        right = folded(self.ranges(here.spans, here.sets), self.group.flags)
        here.left = _OPERATIONS[here.sign](here.left, right) if here.sign else right
        here.spans, here.sets = [], set()
        return here.left

    def class_ended(self, here: _Class) -> Ranges:
        """What a class comes to."""
        found = folded(self.class_operated(here), self.group.flags)
        return charset.complement(found) if here.negate else found

    def posix(self, found: re.Match[str]) -> Ranges:
        """``[:alpha:]``, within a class."""
        if found[2] not in _POSIX_CLASSES:
            raise self.malformed(f"unknown class {found[0]}", self.index, f"Use one of {', '.join(_POSIX_CLASSES)}.")
        self.index = found.end()
        ranges = folded(_POSIX_CLASSES[found[2]], self.group.flags)
        return charset.complement(ranges) if found[1] else ranges

    def class_member(self, here: _Class) -> None:
        """A character, a range, or a set by its letter."""
        at = self.index
        low = self.class_atom(here.start)
        self.blank()
        behind = self.index
        if self.take("-"):
            self.blank()
            if not self.pattern.startswith(("]", "-"), self.index):
                high = self.class_atom(here.start)
                if not isinstance(low, int) or not isinstance(high, int) or low > high:
                    self.check_hyphen(low, high, at)
                else:
                    here.spans.append((low, high))
                return
            self.index = behind
        if isinstance(low, int):
            here.spans.append((low, low))
        else:
            here.sets.add(low)

    def class_atom(self, start: int) -> int | Ranges:
        """Read a character, or a set by its letter, inside a class."""
        if self.index >= len(self.pattern):
            raise self.malformed("missing ], unterminated character class", start, ESCAPE_IT)
        at, char = self.index, self.next()
        return ord(char) if char != "\\" else self.escape(self.next(), at)


def _plain(name: str) -> str:
    return re.sub("[ _-]", "", name).lower()


@cache
def _shorthand(letter: str) -> Ranges:
    r"""``\d``, ``\s``, ``\w`` and their complements, as UTS 18 has them."""
    if letter.isupper():
        return charset.complement(_shorthand(letter.lower()))
    if letter == "s":
        return _WHITE_SPACE
    if letter == "d":
        return charset.category("Nd")
    return charset.union(*map(charset.category, ("L", "M", "Nd", "Nl", "Pc")), _OTHER_WORD)


@cache
def _word() -> Chars:
    return Chars(_shorthand("w"))
