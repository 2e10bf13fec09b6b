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
    """The notation of a model family's replies: the texts around reasoning, content and tool calls.

    A reply is reasoning, then content in which calls occur: each call by itself, or runs of calls in a `section`.
    Two kinds of families differ: with `response`, content has a section of its own and calls come after it; with
    `messages`, a reply is a sequence of messages and calls.

    In `calls`, and before the calls of a `section`, ``$(text)`` is optional text.

    Parameters
    ----------
    name:
        The name of the style in `tool_calls`.
    calls:
        The notations of a call, with ``$name``, ``$arguments`` and, if a call has one, ``$id`` in their places:
        ``'{"name": "$name", "parameters": $arguments}'``. The first is the usual one.
    arguments:
        The notation of the arguments: a ``style`` of `JsonSchema`, or ``"gemma"``.
    argument_excludes:
        Texts that no string in the arguments contains.
    id:
        The pattern of an ``$id``.
    id_prefix:
        The text before an ``$id`` in messages, with ``$name`` in its place.
    section:
        The texts before and after a run of calls.
    separator:
        The text between the calls of a run; between messages, if there are `messages`.
    trigger:
        The text that begins a call. Default: the beginning of a section or of a call, up to its first placeholder.
    lead:
        The text before the first call where the reply must begin with one.
    reasoning:
        The texts before and after the reasoning; None for models without.
    thinks:
        Whether the models reason first: ``"never"``, ``"always"`` or ``"optional"``. It is the default of
        ``reasoning`` in `tool_calls`.
    reasoning_suffix:
        The text between the reasoning and the rest.
    reasoning_opened:
        Whether the reply itself always opens the reasoning. Otherwise the prompt may have done so.
    no_reasoning:
        The text with which a reply without reasoning may begin.
    reasoning_skipped:
        The text that may replace optional reasoning.
    excludes:
        Texts that neither content nor reasoning contains.
    reasoning_excludes:
        Further texts that the reasoning does not contain.
    marked:
        Whether the trigger is a mark that content never contains. A trigger that is plain JSON is allowed in
        content where no tool is called.
    text_alone:
        The optional texts before and after the content of a reply without calls.
    response:
        The texts before and after the content.
    response_opened:
        Whether the prompt has already opened the content, where there is no reasoning.
    calls_alone:
        Whether calls replace the content; otherwise they follow it.
    end:
        The text that ends the reply.
    messages:
        The beginnings of messages: the one of reasoning, then the others.
    message_ends:
        The ends of a message, any of them.
    null_content:
        Whether chat templates expect null, and not an empty text, for missing content.
    template:
        Strings that the chat templates of these models contain, all of them.
    models:
        Names of the models, for readers.
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
