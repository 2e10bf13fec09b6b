"""XGrammar's macros: their arguments, and what is said of those that are not read."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from ...budget import Meter
from ...errors import DefinitionError, UnsupportedError
from .characters import Character, read_character
from .dialects import Escapes

_TOKENS = 'Use a structural tag: {"type": "token", "token": ...} and its like, with sg.sequence and sg.one_of.'

#: By name of a macro: what to write in its place; nothing where it is read.
MACROS = {
    "TagDispatch": "",
    "Token": _TOKENS,
    "ExcludeToken": _TOKENS,
    "TokenTagDispatch": _TOKENS,
    "Regex": "Write it as a rule; or put sg.Regex(...) beside the grammar, by sg.sequence and sg.one_of.",
    "Substring": "List the texts as options.",
}

_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_PLAIN = re.compile(r'[^"\\\0\r\n\ud800-\udfff]+')
_WORD = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")


#: Characters of texts that are looked for all at once.
_SHORT = 64

_DOING = "reading the grammar"


class TagDispatch(NamedTuple):
    """Tags, with rules and the offsets of these; whether free text goes on behind a rule; what it does not hold."""

    tags: list[tuple[str, str, int]]
    again: bool
    excludes: list[str]


class MacroReader:
    """Reads a macro's arguments, from its name on; ``at`` is the offset behind what was read."""

    def __init__(self, text: str, at: int, escapes: Escapes, where: Callable[[int], str], meter: Meter) -> None:
        self._text = text
        self.at = at
        self._escapes = escapes
        self._where = where
        self._meter = meter

    def tag_dispatch(self) -> TagDispatch:
        """``TagDispatch(("<a>", rule), ..., loop_after_dispatch=true, excludes=("b", ...))``."""
        found = TagDispatch([], True, [])
        self._word()
        self._take("(")
        while not self._takes(")"):
            if self._takes("("):
                tag = self._quoted()
                self._take(",")
                rule = self._word()
                found.tags.append((tag, rule, self.at - len(rule)))
                self._takes(",")
                self._take(")")
            else:
                found = self._named(found)
            if not self._takes(","):
                self._take(")")
                break
        self._check_apart([tag for tag, _, _ in found.tags], found.excludes)
        return found

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

    def _named(self, found: TagDispatch) -> TagDispatch:
        name = self._word()
        self._take("=")
        if name == "loop_after_dispatch":
            value = self._word()
            if value not in ("true", "false"):
                raise self._error(f"{name} is {value}", "Write true or false.")
            return found._replace(again=value == "true")
        if name != "excludes":
            raise self._error(f"TagDispatch has no argument {name}", "It has loop_after_dispatch and excludes.")
        excludes = []
        self._take("(")
        while not self._takes(")"):
            excludes.append(self._quoted())
            if not self._takes(","):
                self._take(")")
                break
        return found._replace(excludes=excludes)

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
            raise self._error(f"expected {sign} in a macro", 'Write TagDispatch(("tag", rule), ...).')

    def _word(self) -> str:
        self._skip()
        found = _WORD.match(self._text, self.at)
        if found is None:
            raise self._error("expected a name in a macro", 'Write TagDispatch(("tag", rule), ...).')
        self.at = found.end()
        return found[0]

    def _quoted(self) -> str:
        """A text that is not empty."""
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
        if self.at == begin:
            raise self._error("an empty text in a macro", "Write what it is to be.")
        self.at += 1
        return "".join(found)
