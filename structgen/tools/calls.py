"""Tools in a style, as the format of a structural tag: what a reply may be, from its first token to its last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..definitions import StructuralTag
from ..definitions.gemma import gemma_format
from ..definitions.json_text import dumps
from ..definitions.labels import ARGUMENTS, CALL, CONTENT, GEMMA, ID, NULL_CONTENT, REASONING
from ..definitions.values import format_of
from ..errors import BudgetExceededError, DefinitionError, StructgenError
from ..system.types import Foreign
from .style import PARTS, ToolStyle
from .styles import detect_tool_style, tool_style
from .tools import Tool, ToolChoice, read_choice, read_tools

#: A format of a structural tag, as JSON.
Format: TypeAlias = "dict[str, object]"

#: Whether a reply reasons first: yes, no, or as it likes.
Reasoning: TypeAlias = 'bool | Literal["auto"]'


def tool_calls(
    tools: object,
    style: str | ToolStyle = "auto",
    *,
    tokenizer: Foreign = None,
    tool_choice: object = "auto",
    parallel: bool = True,
    reasoning: Reasoning | None = None,
    **options: Foreign,
) -> StructuralTag:
    """Return the definition of the replies to a request with tools.

    Parameters
    ----------
    tools:
        A list of tools: dicts in OpenAI's shape, ``{"type": "function", "function": {"name": ..., "parameters":
        ..., "strict": ...}}``, nested or flat; Python functions; Pydantic models. The arguments are an object: any
        object for a tool without parameters or with ``"strict": False``; a closed one with ``"strict": True``.
    style:
        The notation of calls: a name, a `ToolStyle`, or ``"auto"``, which recognises the chat template.
    tokenizer:
        For ``"auto"``: a tokenizer with a ``chat_template``, or the template's text.
    tool_choice:
        ``"auto"`` or None; ``"none"``; ``"required"``; a tool's name, or ``{"type": "function", "function":
        {"name": ...}}``; ``{"type": "allowed_tools", "allowed_tools": {"mode": ..., "tools": [...]}}``.
    parallel:
        Whether a reply may contain more than one call.
    reasoning:
        Whether a section of reasoning comes first. True: it does; its opening tag may be in the prompt or in the
        reply. False: no reasoning. ``"auto"``: a whole section, or none. None: the default of the style, its
        ``thinks``; optional reasoning may also have been opened by the prompt, unless a call is required. It has no
        effect on styles without reasoning.
    options:
        Options of `StructuralTag`. With ``lenient=True`` malformed parameters are relaxed, and `Index.relaxations`
        names the tool.

    Raises
    ------
    DefinitionError
        For malformed tools, choices, styles and options, with the tool's position in the list; where a call is
        required and there is no tool; where the chat template has no known style.
    UnsupportedError
        For schemas that the style's notation of arguments cannot honour.
    """
    lenient = options.get("lenient") is True
    reply = _reply(tools, style, tokenizer, tool_choice, parallel, reasoning, lenient=lenient)
    called = reply.choice.tools
    places = {f"{CALL}{tool.name}": tool.where for tool in called}
    try:
        return StructuralTag(reply.format(), **options, places=places)
    except (DefinitionError, BudgetExceededError):
        for tool in called:
            try:
                dumps(tool.parameters)
            except StructgenError as error:
                raise error.within(tool.where) from error
        raise


def behind_reasoning(definition: object, style: ToolStyle, reasoning: Reasoning) -> StructuralTag | None:
    """A definition behind a style's reasoning, as in `tool_calls`; None where replies are more than these two parts.

    Raises `DefinitionError` for definitions that cannot be part of another one.
    """
    if style.messages or style.response:
        return None
    before = _Reply(style, ToolChoice("none", ()), False, reasoning).reasoned()
    return StructuralTag(_sequence([*before, {**format_of(definition), "label": CONTENT}]))


def tool_call_format(
    tools: object,
    style: str | ToolStyle = "auto",
    *,
    tokenizer: Foreign = None,
    tool_choice: object = "auto",
    parallel: bool = True,
    reasoning: Reasoning | None = None,
) -> Format:
    """The format that `tool_calls` makes a `StructuralTag` of; its parameters and errors are the same."""
    return _reply(tools, style, tokenizer, tool_choice, parallel, reasoning).format()


def _reply(
    tools: object, style: str | ToolStyle, tokenizer: Foreign, tool_choice: object, parallel: bool,
    reasoning: Reasoning | None, *, lenient: bool = False,
) -> _Reply:  # fmt: skip
    """What a request asks for; see `tool_calls`."""
    if style == "auto":
        style = detect_tool_style(tokenizer)
    if not isinstance(parallel, bool):
        raise DefinitionError(f"parallel is true or false, got {parallel!r}", where="parallel", remedy="Use a bool.")
    if reasoning is not None and not isinstance(reasoning, bool) and reasoning != "auto":
        what = f'reasoning is true, false, "auto" or None, got {reasoning!r}'
        raise DefinitionError(what, where="reasoning", remedy="Use one of these.")
    found, choice = tool_style(style), read_choice(tool_choice, read_tools(tools, lenient=lenient))
    if reasoning is None and found.thinks != "optional":
        reasoning = found.thinks == "always"
    return _Reply(found, choice, parallel, reasoning)


@dataclass(frozen=True)
class _Reply:
    """What one request asks for, and the three shapes of replies."""

    style: ToolStyle
    choice: ToolChoice
    parallel: bool
    reasoning: Reasoning | None

    def format(self) -> Format:
        """The format of all replies."""
        if self.style.messages:
            return self.messages()
        reply = self.sections() if self.style.response else self.text()
        return {"type": "sequence", "elements": [reply], "label": NULL_CONTENT} if self.style.null_content else reply

    def text(self) -> Format:
        """Reasoning, then text with calls in it."""
        style = self.style
        rest = self._text()
        if style.text_alone and self.choice.mode in ("none", "auto"):
            begin, end = style.text_alone
            rest = [_one_of([_tag(begin, _any_text(style.excludes), end), *rest])]
        return _sequence([*self.reasoned(), *rest])

    def sections(self) -> Format:
        """Reasoning, then a section of text, then one of calls; or one of the two."""
        style, mode = self.style, self.choice.mode
        assert style.response is not None
        begin, end = style.response
        opened = style.response_opened and self.reasoning is False
        text = _tag("" if opened else begin, _any_text(style.excludes), end)
        calls = self._required()
        if style.calls_alone:
            rest = {"none": [text], "auto": [_one_of([text, *calls])]}.get(mode, calls)
        else:
            rest = [text, *([{"type": "optional", "content": _sequence(calls)}] if mode == "auto" else calls)]
        return _sequence([*self.reasoned(), *rest, *_const(style.end)])

    def messages(self) -> Format:
        """Messages and calls in any order. A reply that may call once ends with the call."""
        style, mode = self.style, self.choice.mode
        begins = style.messages if mode in ("none", "auto") else style.messages[:-1]
        begins = begins[1:] if self.reasoning is False else begins
        texts = ((begin, REASONING if begin == style.messages[0] else CONTENT) for begin in begins)
        ends = list(style.message_ends)
        messages = [_tag(begin, _any_text(style.excludes, label), ends) for begin, label in texts]
        calls = list(self._calls())
        if mode == "none":
            return _separated(messages, style.separator)
        if mode == "auto" and self.parallel:
            return _separated([*calls, *messages], style.separator)
        called = _separated(calls, style.separator, at_least_one=True, stop_after_first=True)
        if self.parallel and mode == "required":
            more = _separated([*calls, *messages], style.separator, at_least_one=True)
            called = _sequence([called, {"type": "optional", "content": _sequence([*_const(style.separator), more])}])
        if not messages:
            return called
        before = _separated(messages, style.separator, at_least_one=True)
        allowed = [called, _sequence([before, *_const(style.separator), called])]
        if mode == "auto":
            allowed.append(_separated(messages, style.separator))
        return _one_of(allowed)

    def reasoned(self) -> list[Format]:
        """The reasoning, as parts of a sequence. The prompt may have begun it already."""
        style = self.style
        if style.reasoning is None:
            return []
        begin, end = style.reasoning
        if self.reasoning is False:
            return _optional(style.no_reasoning)
        excludes, suffix = (*style.excludes, *style.reasoning_excludes), _const(style.reasoning_suffix)
        text = _any_text(excludes, REASONING)
        if self.reasoning is not True:
            ways = [_sequence([_tag(begin, text, end), *suffix]), *_const(style.reasoning_skipped)]
            if self.reasoning is None and not style.reasoning_opened and self.choice.mode in ("none", "auto"):
                # What has no opening tag may be text as well, so it holds no trigger: no call goes unchecked.
                ways.append(_sequence([_tag("", _any_text((*excludes, style.trigger), REASONING), end), *suffix]))
            return [{"type": "optional", "content": _one_of(ways) if len(ways) > 1 else ways[0]}]
        if style.reasoning_opened:
            return [_tag(begin, text, end), *suffix]
        return [*_optional(begin), _tag("", text, end), *suffix]

    def _text(self) -> list[Format]:
        """Text with calls in it, or the calls that there must be."""
        style, mode = self.style, self.choice.mode
        excludes = style.excludes
        if mode == "none":
            return [_any_text((*excludes, style.trigger) if style.marked else excludes)]
        if mode == "named" or (mode == "required" and style.section):
            return self._required()
        tags = [self._section()] if style.section else list(self._calls())
        triggered: Format = {"type": "triggered_tags", "triggers": [style.trigger], "tags": tags, "label": CONTENT}
        if mode == "required":
            triggered["at_least_one"] = True
        return [_with(triggered, excludes=list(excludes), stop_after_first=not self.parallel)]

    def _required(self) -> list[Format]:
        """The calls alone: a section of them, or one call."""
        if self.choice.mode == "none":
            return []
        calls = self._section() if self.style.section else self._row()
        return [*_const(self.style.lead), calls]

    def _section(self) -> Format:
        assert self.style.section is not None
        begin, rest, last = _parts(self.style.section[0], {})
        return _tag(begin, _sequence([*rest, *_const(last), self._row()]), self.style.section[1])

    def _row(self) -> Format:
        """Calls one after the other; of a tool that is named, one."""
        once = self.choice.mode == "named" or not self.parallel
        calls = list(self._calls())
        if once and len(calls) == 1:
            return calls[0]
        return _separated(calls, self.style.separator, at_least_one=True, stop_after_first=once)

    def _calls(self) -> Iterator[Format]:
        """A tag for each way to write a call of each tool; one for all of them where the id comes before the name."""
        for call in self.style.calls:
            before, _, rest = call.partition("$id")
            if "$name" in rest:
                named = _one_of([*self._named(rest)])
                yield _tag(before, _sequence([self._id(ID), named]), "")
            else:
                yield from self._named(call)

    def _named(self, call: str) -> Iterator[Format]:
        for tool in self.choice.tools:
            prefix = self.style.id_prefix.replace("$name", tool.name)
            formats = {"id": self._id(f"{ID}:{prefix}" if prefix else ID), "arguments": self._arguments(tool)}
            begin, content, end = _parts(call.replace("$name", tool.name), formats)
            yield {**_tag(begin, _sequence(content), end), "label": f"{CALL}{tool.name}"}

    def _id(self, label: str) -> Format:
        return {"type": "regex", "pattern": self.style.id, "label": label}

    def _arguments(self, tool: Tool) -> Format:
        if self.style.arguments == "gemma":
            return _located(tool)
        style = "" if self.style.arguments == "json" else self.style.arguments
        schema: Format = {"type": "json_schema", "json_schema": tool.parameters, "label": ARGUMENTS}
        closed = {"additional_properties": False} if tool.strict else {}
        return _with(schema, style=style, excludes=list(self.style.argument_excludes), options=closed)


def _located(tool: Tool) -> Format:
    try:
        return {**gemma_format(tool.parameters, alphabetical=True), "label": GEMMA}
    except (DefinitionError, BudgetExceededError) as error:
        raise error.within(tool.where) from error


# -- formats -------------------------------------------------------------------------------------------------


def _parts(text: str, formats: dict[str, Format]) -> tuple[str, list[Format], str]:
    """A text of a style, cut at the places of its parts: what it begins with, its parts, what it ends with."""
    begin, *rest = PARTS.split(text)
    content: list[Format] = []
    last = ""
    for part, missing, then in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        content += [*_const(last), *([formats[part]] if part else _optional(missing))]
        last = then
    return begin, content, last


def _const(text: str) -> list[Format]:
    return [{"type": "const_string", "value": text}] if text else []


def _optional(text: str) -> list[Format]:
    return [{"type": "optional", "content": each} for each in _const(text)]


def _any_text(excludes: tuple[str, ...], label: str = CONTENT) -> Format:
    return _with({"type": "any_text", "label": label}, excludes=list(dict.fromkeys(excludes)))


def _sequence(elements: list[Format]) -> Format:
    return elements[0] if len(elements) == 1 else {"type": "sequence", "elements": elements}


def _one_of(elements: list[Format]) -> Format:
    return {"type": "or", "elements": elements}


def _tag(begin: str, content: Format, end: str | list[str]) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def _separated(tags: list[Format], separator: str, **options: bool) -> Format:
    return _with({"type": "tags_with_separator", "tags": tags, "separator": separator}, **options)


def _with(format: Format, **options: object) -> Format:
    """A format with those of its options that say something."""
    return {**format, **{name: value for name, value in options.items() if value}}
