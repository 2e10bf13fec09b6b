"""Arguments of calls as JSON text, whatever notation the model writes them in.

Each notation takes text as it comes and gives JSON as soon as it is certain: JSON at once; in tags, a member when it
is closed; Gemma's notation at the end.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from ..compiler.json_schema.layout.styles import ARRAYS, GAP, OBJECTS, STRINGS, Kind, Style
from ..errors import InternalError
from ..runtime.core.interned_machine import Configuration
from ..runtime.pushdown.machine import PushdownMachine
from ..runtime.pushdown.stacks import Thread

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
        return _GEMMA.sub(lambda found: _quoted(found["text"] if found["key"] is None else found["key"]), self._text)

    def copy(self) -> Arguments:
        """The same, to go on with apart."""
        return GemmaArguments(self._text)


class TaggedArguments(Arguments):
    """Members in the tags of a style, typed by the schema: where a text may be a string or something else, what comes
    first in `_values` stands that the schema allows there.

    Parameters
    ----------
    style:
        The tags.
    schema:
        Makes the machine of the same schema's JSON, in any layout.
    """

    def __init__(self, style: Style, schema: Callable[[], PushdownMachine]) -> None:
        self._style = style
        self._schema = schema
        self._tags = _tags(style)
        self._text = ""  # that was not read yet
        self._looked = 0  # so much of it does not end a value
        self._open: list[str] = []  # the brackets to be closed
        self._is_first = True
        self._name = ""
        self._kind: Kind | None = None  # of the value that is being read
        self._begun = False
        self._ways: dict[str, Configuration[Thread]] = {}  # the JSON that is not certain

    def feed(self, text: str) -> str:
        """More of them; returns the members that are closed now."""
        self._text += text
        self._begin()
        while self._step():
            pass
        return self._certain()

    def finish(self) -> str:
        """The rest, with the bracket that closes all."""
        self._begin()
        self._take(["}"])
        machine = self._schema()
        complete = [way for way, config in self._ways.items() if machine.is_accepting(config)]
        if not complete:
            raise InternalError("the arguments of a call were read as JSON that their schema refuses")
        return complete[0]

    def copy(self) -> Arguments:
        """The same, to go on with apart."""
        twin = TaggedArguments.__new__(TaggedArguments)
        twin.__dict__ = {**self.__dict__, "_open": [*self._open], "_ways": {**self._ways}}
        return twin

    def _begin(self) -> None:
        if not self._begun:
            self._begun, self._ways = True, {"": self._schema().start}
            self._take(["{"])

    def _step(self) -> bool:
        """Read one tag, or one value, if all of it is there."""
        if self._kind is not None:
            return self._read_value(self._kind)
        found = self._tags.match(self._text)
        if found is None:
            return False
        if found.lastgroup is None:
            self._take([self._open.pop()])
            self._is_first = False
        else:
            self._begin_value(self._style.kinds[int(found.lastgroup[1:])], found["name"])
        self._text = self._text[found.end() :]
        return True

    def _read_value(self, kind: Kind) -> bool:
        closing = self._style.closing.decode()
        end = self._text.find(closing, self._looked)
        if end < 0:
            self._looked = max(0, len(self._text) - len(closing) + 1)
            return False
        before = self._before(self._name)
        self._take([before + value for value in self._values(kind, self._text[:end])])
        self._text, self._looked, self._kind = self._text[end + len(closing) :], 0, None
        return True

    def _begin_value(self, kind: Kind, name: str | None) -> None:
        name = "" if name is None or (self._open and self._open[-1] == "]") else f"{_quoted(self._named(name))}: "
        nested = {OBJECTS: "{}", ARRAYS: "[]"}
        within = [brackets for each, brackets in nested.items() if self._style.item and each in kind.types]
        if not within:
            self._kind, self._name = kind, name
            return
        self._take([self._before(name) + within[0][0]])
        self._open.append(within[0][1])
        self._is_first = True

    def _before(self, name: str) -> str:
        before = "" if self._is_first else ", "
        self._is_first = False
        return before + name

    def _named(self, text: str) -> str:
        for character, entity in reversed(self._style.entities):
            text = text.replace(entity, character)
        return text

    def _values(self, kind: Kind, text: str) -> Iterator[str]:
        """What the text of a value may mean, as JSON, the likeliest first."""
        bare = text.strip(" \t\n\r")
        if kind.types != {STRINGS} and not bare.startswith('"') and _is_json(bare):
            yield bare
        if STRINGS in kind.types:
            frame = self._style.frame.decode()
            framed = kind.padded and text.startswith(frame) and text.endswith(frame) and len(text) >= 2 * len(frame)
            unframed = text[len(frame) : len(text) - len(frame)] if framed else text
            yield from map(_quoted, dict.fromkeys([unframed, bare, text] if kind.padded else [text]))

    def _take(self, texts: list[str]) -> None:
        """Go on with one of some texts, the first ones first."""
        machine = self._schema()
        found: dict[str, Configuration[Thread]] = {}
        for way, config in self._ways.items():
            for text in texts:
                there: Configuration[Thread] | None = config
                for byte in text.encode():
                    there = there and machine.follow_byte(there, byte)
                if there is not None and there not in found.values():
                    found[way + text] = there
        if not found:
            raise InternalError("the arguments of a call were read as JSON that their schema refuses")
        self._ways = found

    def _certain(self) -> str:
        """What all ways begin with, which is left out of them."""
        first, *others = self._ways
        length = len(first)
        for other in others:
            while not other.startswith(first[:length]):
                length -= 1
        self._ways = {way[length:]: config for way, config in self._ways.items()}
        return first[:length]


def _tags(style: Style) -> re.Pattern[str]:
    """The tags that begin a member or an item, and the one that ends what holds others."""
    kinds = "|".join(f"(?P<k{number}>{_pattern(kind.before)})" for number, kind in enumerate(style.kinds))
    tags = _pattern(style.opening) + f"(?P<name>[^{re.escape(chr(style.name_end))}]*)(?:{kinds})"
    if style.item:
        items = "|".join(f"(?P<i{number}>{_pattern(kind.before[1:])})" for number, kind in enumerate(style.kinds))
        tags += f"|{_pattern(style.item)}(?:{items})|{_pattern(style.closing)}"
    return re.compile(rf"\s*(?:{tags})")


def _pattern(text: bytes) -> str:
    return r"\s*".join(re.escape(piece) for piece in text.decode().split(GAP.decode()))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
