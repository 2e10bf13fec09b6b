"""The open parts of a reply: text whose end may be a trigger, and the call that is being written."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy

from ..compiler.structural_tags.marks import Label
from ..definitions.labels import CONTENT, REASONING
from ..errors import BudgetExceededError
from ..system.types import JsonMap
from .arguments import BLANK, Arguments
from .events import ReplyEvent


class OpenPart:
    """A labelled part of a reply. Text waits that may come to be a trigger, and whitespace until text follows it.

    Whitespace before and between calls is layout, which chat templates write anew; so is that around reasoning.
    """

    def __init__(self, label: Label) -> None:
        self.name = label.name
        self._triggers = [trigger.encode() for trigger in label.triggers]
        self._longest = max(map(len, self._triggers), default=0)
        self._blank = BLANK.encode() if self.name in (CONTENT, REASONING) else b""
        self._is_trimmed = self.name == REASONING  # until there is text
        self._waiting = b""

    def feed(self, data: bytes) -> str:
        """More bytes; returns the text that is certain."""
        data = self._waiting + data
        return self._certain(data, _whole(data, self._begin_of_trigger(data)))

    def _certain(self, data: bytes, end: int) -> str:
        certain = data[:end].rstrip(self._blank) if self._blank else data[:end]
        self._waiting = data[len(certain) :]
        if certain and self.name == REASONING and self._is_trimmed:
            certain = certain.lstrip(self._blank)
        self._is_trimmed = self._is_trimmed and not certain
        return certain.decode("utf-8", "replace")

    def _begin_of_trigger(self, data: bytes) -> int:
        """Where the longest end of some bytes begins that a trigger begins with."""
        for begin in range(max(0, len(data) - self._longest), len(data)):
            if any(text.startswith(data[begin:]) for text in self._triggers):
                return begin
        return len(data)

    def triggered(self) -> str:
        """The text before a trigger that is complete."""
        ending = max((each for each in self._triggers if self._waiting.endswith(each)), key=len, default=b"")
        data = self._waiting[: len(self._waiting) - len(ending)]
        return self._certain(data, len(data))

    def called(self) -> None:
        """Leave out the whitespace that waits, since a call begins, and what stands alone behind the call."""
        self._waiting, self._is_trimmed = b"", True

    def rest(self) -> str:
        """All that waits, at the end of the part or before another in it."""
        data, self._waiting = self._waiting, b""
        if self._is_trimmed or self.name == REASONING:
            data = data.rstrip(self._blank)
        return data.decode("utf-8", "replace")


def _whole(data: bytes, end: int) -> int:
    """``end``, or where the character begins that goes on behind it (UTF-8)."""
    for begin in range(end - 1, max(-1, end - 4), -1):
        byte = data[begin]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if begin + length <= end else begin
        if byte < 0x80:
            return end
    return end


class Call:
    """A call that is being written, and then one that was.

    Parameters
    ----------
    index:
        Its number.
    name:
        The tool's.
    made_up_id:
        Its id; None where the model writes one.
    arguments:
        What reads its arguments.
    """

    def __init__(self, index: int, name: str, made_up_id: str | None, arguments: Arguments) -> None:
        self.arguments = arguments
        self.written_id = ""
        self._index = index
        self._name = name
        self._id = made_up_id
        self._begun = False
        self._json: list[str] = []

    def copy(self) -> Call:
        """The same, to go on with apart."""
        twin = copy(self)
        twin.arguments, twin._json = self.arguments.copy(), [*self._json]
        return twin

    def begin(self) -> list[ReplyEvent]:
        """Say that it begins, once."""
        if self._begun:
            return []
        self._begun = True
        self._id = self._id or self.written_id or None
        return [ReplyEvent("call", index=self._index, name=self._name, id=self._id)]

    def said(self, text: str) -> list[ReplyEvent]:
        """Say more of its arguments."""
        if not text:
            return []
        self._json.append(text)
        return [ReplyEvent("arguments", text, self._index, self._name, self._id)]

    def end(self, new_id: Callable[[], str]) -> list[ReplyEvent]:
        """Say that it ends, and its id, if that was not said."""
        events = []
        if self._id is None:
            self._id = self.written_id or new_id()
            events = [ReplyEvent("id", "", self._index, self._name, self._id)]
        return [*events, ReplyEvent("called", "".join(self._json), self._index, self._name, self._id)]

    def as_json(self, *, parsed: bool) -> JsonMap:
        """As a message has it; ``parsed`` for an object in the place of the text of its arguments."""
        text = "".join(self._json)
        function = {"name": self._name, "arguments": _parsed(text) if parsed else text}
        return {"id": self._id, "type": "function", "function": function}


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except RecursionError:
        what = "the arguments of a call are nested too deeply for Python's parser"
        raise BudgetExceededError(what, remedy="Take the message without `parsed`.") from None
