"""XGrammar's macros and attributes of rules: what is written. What it stands for is the reader's to say."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from ...budget import Meter
from ...errors import DefinitionError, UnsupportedError
from ...runtime.pushdown.captures.labels import RuleLabel
from ...system.arguments import is_temperature
from .attributes.attributed import WrittenAttributes
from .characters import Character, read_character
from .dialects import Escapes

#: What a tag is told by, and what free text does not hold: a text, or a token's id.
T = TypeVar("T", str, int)

#: Flags of a `Regex` macro, with those of Python's `re`.
REGEX_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "u": 0}

_INLINE_FLAGS = re.compile(r"\(\?([isu]+)\)")

#: A character or a class of a pattern, or the beginning of a group as Python names it.
_PART = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\(\?P<|[^.\\\[(]+|.", re.DOTALL)

_COUNT, _NUMBER = re.compile(r"[0-9]{1,10}(?![0-9])"), re.compile(r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?")

#: Attributes of rules whose values are numbers: how these are written. Others are ``lazy``, and names of captures.
_NUMBERS = {
    "max_chars": _COUNT, "max_tokens": _COUNT, "temperature": _NUMBER,
    "capture_hidden_suffix_bytes": _COUNT, "capture_hidden_stop_bytes": _COUNT,
    "capture_hidden_body_rule_id": _COUNT, "capture_hidden_marker_rule_id": _COUNT,
}  # fmt: skip

_ATTRIBUTES = "There are lazy, max_chars, max_tokens, temperature and capture."

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
        return self._apart(self._dispatch(TagDispatch[str]([], True, []), self._quoted))

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

    def attributes(self, rule: str) -> WrittenAttributes:
        """``[lazy, max_chars=20, max_tokens=5, capture="name", temperature=0.5]``, of a rule with that name.

        XGrammar writes ends that captures are without as numbers of bytes, or of rules.
        """
        self._take("[")
        named: dict[str, str] = {}
        numbers: dict[str, float] = {}
        while True:
            name = self._word()
            if name in named or name in numbers:
                raise self._error(f"the attribute {name} is there twice", "Say it once.")
            if name in _NUMBERS:
                numbers[name] = self._number(name)
            elif name == "lazy":
                named[name] = ""
            elif name == "capture" and not self._takes("="):
                named[name] = rule
            elif name in ("capture", "stop_capture"):
                if name == "stop_capture":
                    self._take("=")
                named[name] = self._quoted()
            else:
                raise self._error(f"no attribute is named {name}", _ATTRIBUTES)
            if not self._takes(","):
                self._take("]")
                return self._written(named, numbers)

    def _number(self, name: str) -> float:
        """The value of an attribute."""
        self._take("=")
        self._skip()
        digits = _NUMBERS[name].match(self._text, self.at)
        value = float(digits[0]) if digits is not None else -1
        least = 1 if name == "max_tokens" else 0
        if digits is None or value < least or (name == "temperature" and not is_temperature(value)):
            what = "a temperature" if name == "temperature" else f"a number from {least} on"
            raise self._error(f"expected {what} behind {name}=", f"Write NAME[{name}=...] ::= ...")
        self.at = digits.end()
        return value

    def _written(self, named: dict[str, str], numbers: dict[str, float]) -> WrittenAttributes:
        whole = {name: int(value) for name, value in numbers.items() if name != "temperature"}
        capture, end_capture = named.get("capture", ""), named.get("stop_capture", "")
        hidden = whole.get("capture_hidden_suffix_bytes", whole.get("capture_hidden_stop_bytes", 0))
        label = None
        if capture or end_capture or "temperature" in numbers:
            label = RuleLabel(capture, end_capture, hidden, numbers.get("temperature"))
        return WrittenAttributes(
            label, whole.get("max_chars"), whole.get("max_tokens"), "lazy" in named,
            whole.get("capture_hidden_marker_rule_id"),
        )  # fmt: skip

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

    def _apart(self, found: TagDispatch[str]) -> TagDispatch[str]:
        """Without tags that hold what is excluded: these never come. Refuses one that holds another tag, or begins
        with what is excluded."""
        over = self._holding([tag for tag, _, _ in found.tags], {*found.excludes}, own=True)
        tags = [tag for tag, _, _ in found.tags if tag not in over]
        refused = [each for tag in over for each in found.excludes if tag.startswith(each)]
        refused += (tag for tag, count in Counter(tags).items() if count > 1)
        refused += self._holding(tags, {*tags}, own=False).values()
        if refused:
            raise UnsupportedError(
                f"a tag holds {refused[0]!r}, which is a tag too, or excluded",
                where=self._where(self.at),
                remedy="Give it to one tag alone, and what comes behind it to that tag's rule.",
            )
        return found._replace(tags=[each for each in found.tags if each[0] not in over])

    def _holding(self, tags: list[str], known: set[str], *, own: bool) -> dict[str, str]:
        """By tag that holds a known text one of these; its ``own`` counts, too, or not."""
        lengths = sorted({len(each) for each in known if len(each) <= _SHORT})
        long = [each for each in known if len(each) > _SHORT]
        found: dict[str, str] = {}
        for tag in tags:
            inner = tag if own and tag in known else ""
            for length in lengths[: bisect_left(lengths, len(tag))]:
                self._meter.check_time(_DOING)
                parts = (tag[at : at + length] for at in range(len(tag) - length + 1))
                inner = inner or next(filter(known.__contains__, parts), "")
            if len(tag) > _SHORT:
                others = self._meter.each(long, _DOING)
                inner = inner or next((each for each in others if each != tag and each in tag), "")
            if inner:
                found[tag] = inner
        return found

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
