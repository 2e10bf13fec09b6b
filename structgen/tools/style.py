"""How a family of models writes reasoning, text and tool calls: a `ToolStyle`, a plain record."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from ..errors import DefinitionError

#: In a style's texts: the place of a call's part, or a text that may be missing.
PARTS = re.compile(r"\$(?:(name|id|arguments)|\(([^)]*)\))")

#: The notations of arguments: those of the ``json_schema`` format, and Gemma's, which is made of other formats.
NOTATIONS = (
    "json", "qwen_xml", "minimax_xml", "minimax_m3_xml", "deepseek_xml", "deepseek_v4_1_xml", "glm_xml", "cohere_xml",
    "kimi_k3_xml", "gemma",
)  # fmt: skip


@dataclass(frozen=True)
class ToolStyle:
    r"""How a family of models writes its replies: what stands around reasoning, text and tool calls.

    A reply is reasoning, then text in which calls stand: each call by itself, or runs of them in a `section`. Two
    families differ: where `response` is given, text has a section of its own and the calls come after it; where
    `messages` are given, a reply is a row of messages and calls.

    In `calls`, and before the calls of a `section`, ``$(text)`` is a text that may be missing.

    Parameters
    ----------
    name:
        What `tool_calls` calls it.
    calls:
        The ways to write a call, with ``$name``, ``$arguments`` and, if a call has one, ``$id`` in their places:
        ``'{"name": "$name", "parameters": $arguments}'``. The first is the usual one.
    arguments:
        The notation of the arguments: a ``style`` of the ``json_schema`` format, or ``"gemma"``.
    argument_excludes:
        What no string in the arguments holds.
    id:
        The pattern of an ``$id``.
    id_prefix:
        What messages have before it, with ``$name`` in its place.
    section:
        What stands before and after a run of calls.
    separator:
        What stands between the calls of a run; between messages, if there are `messages`.
    trigger:
        The text that makes text a call. By default what a section begins with, or a call, up to its first part.
    lead:
        What stands before the first call where the reply must begin with it.
    reasoning:
        What stands before and after the reasoning; None for models without.
    thinks:
        Whether the models of the style reason first: ``"never"``, ``"always"`` or ``"optional"``. The default of
        ``reasoning`` in `tool_calls` follows from it.
    reasoning_suffix:
        What stands between reasoning and the rest.
    reasoning_opened:
        Whether the reply itself always begins the reasoning. Otherwise the prompt may have done that.
    no_reasoning:
        What a reply without reasoning may begin with.
    reasoning_skipped:
        What may stand in the place of reasoning where a reply may do without.
    excludes:
        What neither text nor reasoning holds.
    reasoning_excludes:
        What reasoning does not hold besides.
    marked:
        Whether the trigger is a mark that text never holds. One that is plain JSON is allowed where no tool is.
    text_alone:
        What may stand before and after the text of a reply without calls.
    response:
        What stands before and after the text.
    response_opened:
        Whether the prompt has begun the text already, where there is no reasoning.
    calls_alone:
        Whether calls take the place of the text; otherwise they come after it.
    end:
        What ends the reply.
    messages:
        What messages begin with: the one for reasoning, then the others.
    message_ends:
        What a message ends with, any of them.
    null_content:
        Whether chat templates ask for null, and no empty text, as the content of a message that has none.
    template:
        Strings that chat templates of these models hold, all of them.
    models:
        Models that write so, for the reader.
    """

    name: str
    calls: tuple[str, ...]
    arguments: str = "json"
    argument_excludes: tuple[str, ...] = ()
    id: str = r"\d+"
    id_prefix: str = ""
    section: tuple[str, str] | None = None
    separator: str = ""
    trigger: str = ""
    lead: str = ""
    reasoning: tuple[str, str] | None = ("<think>", "</think>")
    thinks: str = "optional"
    reasoning_suffix: str = ""
    reasoning_opened: bool = False
    no_reasoning: str = ""
    reasoning_skipped: str = ""
    excludes: tuple[str, ...] = ("<think>", "</think>")
    reasoning_excludes: tuple[str, ...] = ()
    marked: bool = True
    text_alone: tuple[str, str] | None = None
    response: tuple[str, str] | None = None
    response_opened: bool = False
    calls_alone: bool = False
    end: str = ""
    messages: tuple[str, ...] = ()
    message_ends: tuple[str, ...] = ()
    null_content: bool = False
    template: tuple[str, ...] = ()
    models: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            self._check_type(each.name, each.type)
        if not self.name or not self.calls:
            raise DefinitionError("a tool style has a name, and a way to write a call", where=repr(self.name))
        for call in self.calls:
            self._check_call(call)
        if self.arguments not in NOTATIONS:
            raise DefinitionError(
                f"the arguments of the tool style {self.name!r} are written as {self.arguments!r}",
                remedy=f"Use one of {', '.join(NOTATIONS)}.",
            )
        if self.thinks not in ("never", "always", "optional"):
            raise DefinitionError(
                f"the models of the tool style {self.name!r} think {self.thinks!r}",
                remedy='Use "never", "always" or "optional".',
            )
        if self.reasoning is None and not self.messages:
            object.__setattr__(self, "thinks", "never")
        if not self.trigger:
            first = self.section[0] if self.section else self.calls[0]
            object.__setattr__(self, "trigger", PARTS.split(first)[0])
        if not self.trigger and not self.messages and not self.response:
            raise DefinitionError(f"nothing tells the calls of the tool style {self.name!r} from text")
        if self.messages and not self.message_ends:
            raise DefinitionError(f"the messages of the tool style {self.name!r} have no end")

    def _check_type(self, name: str, declared: object) -> None:
        value = getattr(self, name)
        if declared == "str":
            good = isinstance(value, str)
        elif declared == "bool":
            good = isinstance(value, bool)
        elif declared == "tuple[str, ...]":
            good = _strings(value)
        else:
            good = value is None or (_strings(value) and len(value) == 2)
        if not good:
            raise DefinitionError(f"the field {name!r} of a tool style is a {declared}, got {value!r}")

    def _check_call(self, call: str) -> None:
        parts = [part for part, _ in PARTS.findall(call) if part]
        where = f"{call!r} of {self.name!r}"
        if sorted(parts) not in (["arguments", "name"], ["arguments", "id", "name"]):
            raise DefinitionError("a call has $name and $arguments once each, and may have an $id", where=where)
        if parts.index("name") > parts.index("arguments"):
            raise DefinitionError("the name of a call stands before its arguments", where=where)
        if PARTS.split(call)[-1] == "" and self.arguments not in ("json", "gemma"):
            raise DefinitionError("a call ends with more than its arguments", where=where)


def _strings(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
