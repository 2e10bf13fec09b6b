"""XGrammar's macros and attributes of rules: what is written. What it stands for is the reader's to say."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ...budget import Meter
from ...errors import DefinitionError, UnsupportedError
from .characters import Character, read_character
from .dialects import Escapes

#: What a tag is told by, and what free text does not hold: a text, or a token's id.
T = TypeVar("T", str, int)

#: Flags of a `Regex` macro, with those of Python's `re`.
REGEX_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "u": 0}

_INLINE_FLAGS = re.compile(r"\(\?([isu]+)\)")

#: A character or a class of a pattern, or the beginning of a group as Python names it.
_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\(\?P<|[^.\\\[(]+|.", re.DOTALL)

#: Attributes of rules that say something of a text that was read: of each, where there is such a thing.
_ATTRIBUTES_ELSEWHERE = {
    "max_tokens": "sg.Grammar, in Lark's syntax, has budgets of tokens: name[max_tokens=20]: ...",
    **dict.fromkeys(["capture", "stop_capture"], "sg.Grammar, in Lark's syntax, has captures: NAME[capture]: ..."),
    "temperature": "sg.Grammar, in Lark's syntax, has temperatures: NAME[temperature=0.7]: ...",
}
_CHARACTERS = re.compile(r"[0-9]{1,10}")
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_PLAIN = re.compile(r'[^"\\\0\r\n\ud800-\udfff]+')
_WORD = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_ID = re.compile(r"[0-9]{1,9}(?![0-9])")

#: Characters of texts that are looked for all at once.
_SHORT = 64

_DOING = "reading the grammar"

_REMEDY = 'Write TagDispatch(("tag", rule), ...), Token(5, 7), Regex("[a-z]+") or Substring("one ", "two ").'


class TagDispatch(NamedTuple, Generic[T]):
    """Tags, with rules and the offsets of these; whether free text goes on behind a rule; what it does not hold."""

    tags: list[tuple[T, str, int]]
    again: bool
    excludes: list[T]


class RegexMacro(NamedTuple):
    """A pattern, flags of Python's `re`, and whether no character may be one that JSON's strings escape."""

    pattern: str
    flags: int
    in_json: bool


class MacroReader:
    """Reads a macro's arguments, from its name on; ``at`` is the offset behind what was read."""

    def __init__(self, text: str, at: int, escapes: Escapes, where: Callable[[int], str], meter: Meter) -> None:
        self._text = text
        self.at = at
        self._escapes = escapes
        self._where = where
        self._meter = meter

    def tag_dispatch(self) -> TagDispatch[str]:
        """``TagDispatch(("<a>", rule), ..., loop_after_dispatch=true, excludes=("b", ...))``."""
        found = self._dispatch(TagDispatch[str]([], True, []), self._quoted)
        self._check_apart([tag for tag, _, _ in found.tags], found.excludes)
        return found

    def token_tag_dispatch(self) -> TagDispatch[int]:
        """``TokenTagDispatch((5, rule), ..., loop_after_dispatch=true, excludes=(7, ...))``."""
        found = self._dispatch(TagDispatch[int]([], True, []), self._id)
        both = {tag for tag, _, _ in found.tags} & {*found.excludes}
        if both:
            raise self._error(f"the token {min(both)} is a tag, and excluded", "Leave it out of one of the two.")
        return found

    def ids(self) -> list[int]:
        """``Token(5, 7)``: at least one."""
        found: list[int] = []
        self._each(lambda: found.append(self._id()))
        if not found:
            raise self._error("no token is named", "Write the ids of some: Token(5, 7).")
        return found

    def attributes(self) -> int | None:
        """``[lazy, max_chars=20]``: how many characters a rule may have; None if it ends as soon as it can."""
        self._take("[")
        found: dict[str, int | None] = {}
        while True:
            begin, name = self.at, self._word()
            if remedy := _ATTRIBUTES_ELSEWHERE.get(name):
                what = f"the attribute {name} of a rule is not supported"
                raise UnsupportedError(what, where=self._where(begin), remedy=remedy)
            if name == "max_chars":
                self._take("=")
                self._skip()
                digits = _CHARACTERS.match(self._text, self.at)
                if digits is None:
                    raise self._error("expected a number of characters", "Write NAME[max_chars=20] ::= ...")
                self.at = digits.end()
                found[name] = int(digits[0])
            elif name == "lazy":
                found[name] = None
            else:
                raise self._error(f"no attribute is named {name}", "There are lazy and max_chars.")
            if not self._takes(","):
                self._take("]")
                # What is lazy ends at the first place where it can, whether or not its characters are used up.
                return None if "lazy" in found else found["max_chars"]

    def texts(self) -> list[str]:
        """``Substring("a ", "b ")``."""
        found: list[str] = []
        self._each(lambda: found.append(self._quoted(may_be_empty=True)))
        return found

    def regex(self) -> RegexMacro:
        """``Regex("[a-z]+", flags="i", json_string=false)``. With flags, a dot is no line feed but by ``s``."""
        patterns: list[str] = []
        flags: list[str] = []
        in_json: list[bool] = []

        def one() -> None:
            self._skip()
            if self._text.startswith('"', self.at):
                patterns.append(self._quoted(may_be_empty=True))
                return
            name = self._word()
            if name not in ("flags", "json_string"):
                raise self._error(f"Regex has no argument {name}", "It has a text, flags and json_string.")
            self._take("=")
            if name == "flags":
                flags.append(self._quoted(may_be_empty=True))
            else:
                in_json.append(self._truth(name))

        self._each(one)
        if len(patterns) != 1:
            raise self._error(f"Regex has {len(patterns)} patterns", 'Write Regex("...").')
        pattern, dot = patterns[0], "[^\\n]" if flags and "s" not in "".join(flags) else "."
        while inline := _INLINE_FLAGS.match(pattern):
            flags.append(inline[1])
            pattern = pattern[inline.end() :]
        letters = {*"".join(flags)}
        if unknown := letters - REGEX_FLAGS.keys():
            raise self._error(f"Regex has no flag {min(unknown)!r}", f"It has {', '.join(REGEX_FLAGS)}.")
        spelled = {"(?P<": "(?<", ".": dot}
        parts = (part[0] for part in self._meter.each(_PART.finditer(pattern), _DOING, every=4096))
        pattern = "".join(spelled.get(part, part) for part in parts)
        all_flags = re.DOTALL | sum(REGEX_FLAGS[letter] for letter in letters - {"s"})
        return RegexMacro(pattern, all_flags, any(in_json))

    def _each(self, argument: Callable[[], None]) -> None:
        """The name, and arguments in parentheses."""
        self._word()
        self._take("(")
        while not self._takes(")"):
            self._meter.check_time(_DOING)
            argument()
            if not self._takes(","):
                self._take(")")
                break

    def _dispatch(self, found: TagDispatch[T], tag: Callable[[], T]) -> TagDispatch[T]:
        named = [found]

        def one() -> None:
            if not self._takes("("):
                named.append(self._named(named[-1], tag))
                return
            name = tag()
            self._take(",")
            rule = self._word()
            found.tags.append((name, rule, self.at - len(rule)))
            self._takes(",")
            self._take(")")

        self._each(one)
        return named[-1]

    def _check_apart(self, tags: list[str], excludes: list[str]) -> None:
        """Refuse a tag that holds another one, or what is excluded."""
        known, seen = {*tags, *excludes}, {*excludes}
        lengths = sorted({len(each) for each in known if len(each) <= _SHORT})
        long = [each for each in known if len(each) > _SHORT]
        for tag in tags:
            inner = tag if tag in seen else ""
            for length in lengths[: bisect_left(lengths, len(tag))]:
                self._meter.check_time(_DOING)
                parts = (tag[at : at + length] for at in range(len(tag) - length + 1))
                inner = inner or next(filter(known.__contains__, parts), "")
            if len(tag) > _SHORT:
                others = self._meter.each(long, _DOING)
                inner = inner or next((each for each in others if each != tag and each in tag), "")
            if inner:
                raise UnsupportedError(
                    f"a tag holds {inner!r}, which is a tag too, or excluded",
                    where=self._where(self.at),
                    remedy="Give it to one tag alone, and what comes behind it to that tag's rule.",
                )
            seen.add(tag)

    def _named(self, found: TagDispatch[T], tag: Callable[[], T]) -> TagDispatch[T]:
        name = self._word()
        self._take("=")
        if name == "loop_after_dispatch":
            return found._replace(again=self._truth(name))
        if name != "excludes":
            raise self._error(f"no argument is named {name}", "There are loop_after_dispatch and excludes.")
        excludes: list[T] = []
        self._take("(")
        while not self._takes(")"):
            excludes.append(tag())
            if not self._takes(","):
                self._take(")")
                break
        return found._replace(excludes=excludes)

    def _truth(self, name: str) -> bool:
        value = self._word()
        if value not in ("true", "false"):
            raise self._error(f"{name} is {value}", "Write true or false.")
        return value == "true"

    def _error(self, what: str, remedy: str) -> DefinitionError:
        return DefinitionError(what, where=self._where(self.at), remedy=remedy)

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def _takes(self, sign: str) -> bool:
        self._skip()
        found = self._text.startswith(sign, self.at)
        self.at += len(sign) * found
        return found

    def _take(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._error(f"expected {sign} in a macro", _REMEDY)

    def _word(self) -> str:
        self._skip()
        found = _WORD.match(self._text, self.at)
        if found is None:
            raise self._error("expected a name in a macro", _REMEDY)
        self.at = found.end()
        return found[0]

    def _id(self) -> int:
        self._skip()
        found = _ID.match(self._text, self.at)
        if found is None:
            raise self._error("expected the id of a token", "Write Token(5, 7); sg.Gbnf has <name>.")
        self.at = found.end()
        return int(found[0])

    def _quoted(self, *, may_be_empty: bool = False) -> str:
        """A text."""
        self._take('"')
        begin = self.at
        found: list[str] = []
        while not self._text.startswith('"', self.at):
            if plain := _PLAIN.match(self._text, self.at):
                found.append(plain[0])
                self.at = plain.end()
                continue
            if self.at >= len(self._text) or self._text[self.at] in "\r\n":
                raise self._error("a quoted text never ends", 'Add the missing ".')
            character = read_character(self._text, self.at, self._escapes)
            if not isinstance(character, Character):
                raise self._error(character.what, character.remedy)
            found.append(chr(character.code))
            self.at = character.end
        if self.at == begin and not may_be_empty:
            raise self._error("an empty text in a macro", "Write what it is to be.")
        self.at += 1
        return "".join(found)
