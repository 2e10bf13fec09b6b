"""`ReplyEvent`: what a piece of a reply says, and how the Chat Completions API streams it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..system.types import JsonMap


@dataclass(frozen=True)
class ReplyEvent:
    """A piece of a reply with tool calls.

    Parameters
    ----------
    kind:
        ``"reasoning"`` or ``"content"``: more of it, in ``text``. ``"call"``: a call begins. ``"arguments"``: more
        of the JSON text of its arguments. ``"id"``: its id, where the model writes it behind the arguments.
        ``"called"``: the call ends; ``text`` is all of its arguments.
    text:
        The text, as ``kind`` says.
    index:
        The number of the call, from 0; -1 outside of calls.
    name:
        The name of the called tool.
    id:
        The id of the call, generated where the model writes none; None where it comes later.
    """

    kind: Literal["reasoning", "content", "call", "arguments", "id", "called"]
    text: str = ""
    index: int = -1
    name: str = ""
    id: str | None = None

    @property
    def delta(self) -> JsonMap:
        """The ``delta`` of a ``chat.completion.chunk``, with reasoning as servers add it. Empty for the end of a
        call.
        """
        if self.kind == "content":
            return {"content": self.text}
        if self.kind == "reasoning":
            return {"reasoning_content": self.text}
        if self.kind == "called":
            return {}
        call: dict[str, object] = {"index": self.index}
        if self.kind == "arguments":
            call["function"] = {"arguments": self.text}
        elif self.id is not None:
            call["id"] = self.id
        if self.kind == "call":
            call |= {"type": "function", "function": {"name": self.name, "arguments": ""}}
        return {"tool_calls": [call]}
