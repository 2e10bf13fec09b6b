"""Arguments of calls as JSON text, whatever notation the model writes them in.

Each notation takes text as it comes and gives JSON as soon as it is certain: JSON at once; in tags, a member when it
is closed; Gemma's notation at the end.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from typing import NamedTuple, TypeAlias

from ..definitions.styles import ARRAYS, GAP, OBJECTS, STRINGS, Kind, Style
from ..errors import InternalError
from ..runtime.core.machine import CompiledMachine, Config

#: What whitespace may stand around a padded value.
BLANK = " \t\n\r"

#: Brackets, and the types of what they hold.
BRACKETS = (("[", "]", ARRAYS), ("{", "}", OBJECTS))

_GEMMA = re.compile(r'<\|"\|>(?P<text>.*?)<\|"\|>|(?P<key>[^\s{}\[\]:,<>|"]+)(?=:)', re.DOTALL)


class Arguments(ABC):
    """The arguments of one call, as they are read."""

    @abstractmethod
    def feed(self, text: str) -> str:
        """More of them; returns the JSON that is certain now."""

    def finish(self) -> str:
        """The rest of the JSON, at the end of the arguments."""
        return ""

    @abstractmethod
    def copy(self) -> Arguments:
        """The same, to go on with apart."""


class JsonArguments(Arguments):
    """JSON, given as it is written."""

    def feed(self, text: str) -> str:
        """More of them; returns the JSON that is certain now."""
        return text

    def copy(self) -> Arguments:
        """The same, which remembers nothing."""
        return self


class GemmaArguments(Arguments):
    """Gemma's notation: bare keys, and strings between marks. What is not written so is given as it is."""

    def __init__(self, text: str = "") -> None:
        self._text = text

    def feed(self, text: str) -> str:
        """More of them; nothing is certain before the end."""
        self._text += text
        return ""

    def finish(self) -> str:
        """The JSON."""
        return _GEMMA.sub(lambda found: quoted(found["text"] if found["key"] is None else found["key"]), self._text)

    def copy(self) -> Arguments:
        """The same, to go on with apart."""
        return GemmaArguments(self._text)


class _Way(NamedTuple):
    """What tagged arguments may mean so far.

    Parameters
    ----------
    text:
        The JSON that was not given yet.
    config:
        Where all of it leads in the schema's JSON.
    open:
        The brackets that are to be closed.
    """

    text: str
    config: Config
    open: str


#: How some JSON may go on: a text, and the brackets that are open behind it.
_Choices: TypeAlias = "list[tuple[str, str]]"


class TaggedArguments(Arguments):
    """Members in the tags of a style, typed by the schema: where a text may mean several values, what comes first in
    `_values` stands that the schema allows there.

    Parameters
    ----------
    style:
        The tags.
    schema:
        Makes the machine of the same schema's JSON, in any layout.
    """

    def __init__(self, style: Style, schema: Callable[[], CompiledMachine]) -> None:
        self._style = style
        self._schema = schema
        self._tags = _tags(style)
        self._closing = style.closing.decode()
        self._text = ""  # that was not read yet
        self._looked = 0  # so much of it does not end a value
        self._kind: Kind | None = None  # of the value that is being read
        self._before: dict[str, str] = {}  # what stands before it, by the bracket that is open
        self._names: tuple[str, ...] = ()  # in the tags that are to be closed
        self._is_first = True
        self._ways: list[_Way] = []

    def feed(self, text: str) -> str:
        """More of them; returns the members that are closed now."""
        self._text += text
        self._begin()
        while self._read_tag() if self._kind is None else self._read_value(self._kind):
            pass
        return self._certain()

    def finish(self) -> str:
        """The rest, with the bracket that closes all."""
        self._begin()
        self._take(lambda way: [("}", "")])
        accepts = self._schema().is_accepting
        complete = [way.text for way in self._ways if accepts(way.config)]
        if not complete:
            raise _refused()
        return complete[0]

    def copy(self) -> Arguments:
        """The same, to go on with apart."""
        return copy(self)

    def _nested(self, kind: Kind) -> frozenset[str]:
        """The types of a kind whose values have tags in them."""
        return kind.types & {OBJECTS, ARRAYS} if self._style.item else frozenset()

    def _begin(self) -> None:
        if not self._ways:
            self._ways = [_Way("", self._schema().start, "")]
            self._take(lambda way: [("{", "}")])

    def _read_tag(self) -> bool:
        """Read the tag that begins a member or an item, or ends what holds some, if all of it is there."""
        found = self._tags.match(self._text)
        if found is None:
            return False
        self._text, self._looked = self._text[found.end() :], 0
        if found.lastgroup is None:
            self._take(lambda way: [(way.open[-1], way.open[:-1])] if len(way.open) > 1 else [])
            self._names, self._is_first = self._names[:-1], False
            return True
        self._kind = self._style.kinds[int(found.lastgroup[1:])]
        comma, name = "" if self._is_first else ", ", found["name"]
        self._before = {} if name is None else {"}": f"{comma}{quoted(self._named(name))}: "}
        if name is None or name.encode() == self._style.item_name:
            self._before["]"] = comma
        self._names = (*self._names, self._style.item_name.decode() if name is None else name)
        return True

    def _read_value(self, kind: Kind) -> bool:
        """Read a value with its closing tag, or begin one that has tags in it, if it is known which."""
        nested = self._nested(kind)
        if nested == kind.types:
            return self._begin_nested(kind, 0)
        end = self._text.find(self._closing, self._looked)
        self._looked = max(0, len(self._text) - len(self._closing) + 1) if end < 0 else end
        behind = end + len(self._closing)
        if self._style.again is not None and end >= 0:
            before, after = (each.decode() for each in self._style.again)
            if nested and not before.startswith(self._text[behind : behind + len(before)]):
                return self._begin_nested(kind, end)
            behind = self._text.find(after, behind + len(before)) + len(after)
            end = -1 if behind < len(after) else end
        if end < 0:
            return False
        values = [*self._values(kind, self._text[:end], tagged=bool(nested))]
        self._take(lambda way: [(before + value, way.open) for before in self._befores(way) for value in values])
        self._text, self._looked, self._kind, self._is_first = self._text[behind:], 0, None, False
        self._names = self._names[:-1]
        return True

    def _begin_nested(self, kind: Kind, end: int) -> bool:
        """Begin an array or an object in tags, behind some whitespace."""
        brackets = [each for each in BRACKETS if each[2] in kind.types]
        self._take(lambda way: [(b + o, way.open + c) for b in self._befores(way) for o, c, _ in brackets])
        self._text, self._looked, self._kind, self._is_first = self._text[end:], 0, None, True
        return True

    def _befores(self, way: _Way) -> list[str]:
        """What stands before a value: nothing where there is none, as no item is where members are."""
        return [self._before[each] for each in way.open[-1:] if each in self._before]

    def _named(self, text: str) -> str:
        for character, entity in reversed(self._style.entities):
            text = text.replace(entity, character)
        return text

    def _values(self, kind: Kind, text: str, *, tagged: bool) -> Iterator[str]:
        """What the text of a value may mean, as JSON, the likeliest first; ``tagged`` where arrays have tags."""
        bare = text.strip(BLANK)
        may_be_json = kind.types != {STRINGS} and (kind.padded or bare == text)
        if may_be_json and bare[:1] not in ('"{[' if tagged else '"') and _is_json(bare):
            yield bare
        if STRINGS in kind.types:
            frame = self._style.frame.decode()
            framed = kind.padded and text.startswith(frame) and text.endswith(frame) and len(text) >= 2 * len(frame)
            unframed = text[len(frame) : len(text) - len(frame)] if framed else text
            yield from map(quoted, dict.fromkeys([unframed, bare, text] if kind.padded else [text]))
        if tagged and not bare:
            yield from (each for each, of in (("[]", ARRAYS), ("{}", OBJECTS)) if of in kind.types)

    def _take(self, choices: Callable[[_Way], _Choices]) -> None:
        """Go on with one of some texts, the first ones first."""
        found: dict[tuple[Config, str], _Way] = {}
        for way in self._ways:
            for text, brackets in choices(way):
                there = self._followed(way.config, text)
                if there is not None:
                    found.setdefault((there, brackets), _Way(way.text + text, there, brackets))
        if not found:
            raise _refused()
        self._ways = [*found.values()]

    def _followed(self, config: Config, text: str) -> Config | None:
        machine = self._schema()
        there: Config | None = config
        for byte in text.encode():
            if there is None:
                return None
            there = machine.follow_byte(there, byte)
        return there

    def _certain(self) -> str:
        """What all ways begin with, which is left out of them."""
        first = self._ways[0].text
        length = len(first)
        for way in self._ways:
            while not way.text.startswith(first[:length]):
                length -= 1
        self._ways = [way._replace(text=way.text[length:]) for way in self._ways]
        return first[:length]


def _tags(style: Style) -> re.Pattern[str]:
    """The tags that begin a member or an item, and the one that ends what holds others."""
    kinds = "|".join(f"(?P<k{number}>{_pattern(kind.before)})" for number, kind in enumerate(style.kinds))
    tags = [_pattern(style.opening) + f"(?P<name>[^{re.escape(chr(style.name_end))}]*)(?:{kinds})"]
    if style.item:
        items = "|".join(f"(?P<i{number}>{_pattern(kind.before[1:])})" for number, kind in enumerate(style.kinds))
        before, after = style.again or (b"", b"")
        again = f"{_pattern(before)}.*?{_pattern(after)}" if style.again else ""
        tags = [_pattern(style.closing) + again, *tags, f"{_pattern(style.item)}(?:{items})"]
    return re.compile(rf"\s*(?:{'|'.join(tags)})", re.DOTALL)


def _pattern(text: bytes) -> str:
    return r"\s*".join(re.escape(piece) for piece in text.decode().split(GAP.decode()))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def quoted(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def _refused() -> InternalError:
    return InternalError("the arguments of a call were read as JSON that their schema refuses")
