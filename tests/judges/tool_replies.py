"""Replies with tool calls: texts that a format allows, drawn at random, and an engine that says whether it does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeAlias

import pytest

import structgen
from structgen.tools import ToolStyle, tool_style
from structgen.tools.calls import Reasoning
from structgen.tools.style import PARTS

Format: TypeAlias = "dict[str, Any]"

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "options": {
            "type": "object",
            "properties": {"metric": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}}},
            "additionalProperties": False,
        },
    },
    "required": ["city"],
    "additionalProperties": False,
}
NONE = {"type": "object", "properties": {}, "additionalProperties": False}

#: The tools of every reply, and arguments of each.
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "description": "…", "parameters": parameters}}
    for name, parameters in (("get_weather", WEATHER), ("now", NONE))
]
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "get_weather": [
        {"city": "Zürich"},
        {"city": 'a "b" <x> \\ 日本', "days": -1},
        {"city": "two\nlines", "days": 3, "options": {"metric": True, "tags": ["x", "y z"]}},
        {"city": "x", "options": {}},
    ],
    "now": [{}],
}
_BY_SCHEMA: dict[str, list[Any]] = {
    **{json.dumps(tool["function"]["parameters"]): ARGUMENTS[tool["function"]["name"]] for tool in TOOLS},
    '{"type": "integer"}': [-1, 30],
    '{"type": "boolean"}': [True, False],
}


#: Turns of assistants that real chat templates have rendered: style, template, text, and the calls that went in.
CASES = Path(__file__).parents[1] / "cases" / "tool_turns.json"
TURNS_OF_TEMPLATES: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))

#: What models have as special tokens: tokens that stand for no bytes.
MARK = re.compile(
    r"<\|[^<>|\"]*\|>|<｜[^｜]*｜>|｜DSML｜|\[/?[A-Z_]+\]|<\|\"\|>|<\|\w+>|<\w+\|>"
    r"|</?(?:think|tool_call|arg_key|arg_value|minimax:tool_call)>"
)


def as_reply(style: str, text: str, reasoning: Reasoning | None = None) -> tuple[Reasoning, str]:
    """Whether a turn reasons, and what of it the prompt does not have; who has reasoned has closed the section."""
    described = tool_style(style)
    if reasoning is None:
        reasoning = bool(described.messages) or (described.reasoning is not None and described.reasoning[1] in text)
    if described.response and described.response_opened and not reasoning:
        text = text.removeprefix(described.response[0])
    return reasoning, text


def call(style: ToolStyle, name: str) -> str:
    """A call of a tool without arguments, in its section, as the style writes it."""
    parts = {"name": name, "arguments": {"json": "{}", "gemma": "{}"}.get(style.arguments, ""), "id": "123456789"}
    begin, end = style.section or ("", "")
    before = "".join(style.response) if style.response and not style.calls_alone else style.lead
    written = before + begin + style.calls[0] + end + style.end
    return PARTS.sub(lambda found: parts[found[1]] if found[1] else found[2], written)


# -- arguments -----------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_text(value: object) -> str:
    return "true" if isinstance(value, str) else "false"


def _kimi_type(value: object) -> str:
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", dict: "object", list: "array"}
    return kinds.get(type(value), "null")


def _cohere(value: object, name: str = "") -> str:
    named = f' name="{name}"' if name else ""
    if isinstance(value, dict):
        return f'<cofl:value{named} type="dict">{"".join(_cohere(v, k) for k, v in value.items())}</cofl:value>'
    if isinstance(value, list):
        return f'<cofl:value{named} type="list">{"".join(map(_cohere, value))}</cofl:value>'
    kind = "raw" if isinstance(value, str) else "json"
    return f'<cofl:value{named} type="{kind}">{_text(value)}</cofl:value>'


def _minimax_m3(value: object) -> str:
    if isinstance(value, dict):
        return "".join(f"]<]minimax[>[<{k}>{_minimax_m3(v)}]<]minimax[>[</{k}>" for k, v in value.items())
    if isinstance(value, list):
        return "".join(f"]<]minimax[>[<item>{_minimax_m3(each)}]<]minimax[>[</item>" for each in value)
    return _text(value)


#: By notation, how chat templates write a member of the arguments, and what stands between two.
_MEMBERS: dict[str, tuple[Callable[[str, Any], str], str]] = {
    "qwen_xml": (lambda key, value: f"<parameter={key}>\n{_text(value)}\n</parameter>", "\n"),
    "minimax_xml": (lambda key, value: f'<parameter name="{key}">{_text(value)}</parameter>\n', ""),
    "minimax_m3_xml": (lambda key, value: _minimax_m3({key: value}), ""),
    "deepseek_xml": (
        lambda key, value: (
            f'<｜DSML｜parameter name="{key}" string="{_is_text(value)}">{_text(value)}</｜DSML｜parameter>\n'
        ),
        "",
    ),
    "deepseek_v4_1_xml": (
        lambda key, value: (
            f'<｜DSML｜ parameter name="{key}" string="{_is_text(value)}">{_text(value)}</｜DSML｜ parameter>\n'
        ),
        "",
    ),
    "glm_xml": (lambda key, value: f"<arg_key>{key}</arg_key><arg_value>{_text(value)}</arg_value>", ""),
    "kimi_k3_xml": (
        lambda key, value: (
            f'<|open|>argument key="{key}" type="{_kimi_type(value)}"<|sep|>{_text(value)}<|close|>argument<|sep|>'
        ),
        "",
    ),
    "cohere_xml": (lambda key, value: _cohere(value, key), ""),
}


def arguments_text(notation: str, arguments: dict[str, Any]) -> str:
    """Arguments as chat templates write them."""
    if notation == "json":
        return json.dumps(arguments, ensure_ascii=False)
    member, between = _MEMBERS[notation]
    return between.join(member(key, value) for key, value in arguments.items())


# -- random replies ------------------------------------------------------------------------------------------

#: Free text, some of it close to what begins or ends something.
_TEXTS = ("", "Hm.", "I see:\n", "\n\n", "a < b\n", "é 日本", "{}", "<tool", '{"nam', "<|", "[TOOL", "</thin", "<th")


def draw(format: Format, random: Random) -> str:
    """A text that a format allows, if its free text does not happen to say something else."""
    return "".join(_drawn(format, random))


def _drawn(format: Format, random: Random) -> Iterator[str]:
    kind = format["type"]
    if kind == "const_string":
        yield format["value"]
    elif kind == "any_text":
        yield random.choice(_TEXTS)
    elif kind == "regex":
        yield {r"\d+": "12", "[a-zA-Z0-9]{9}": "a1B2c3D4e"}[format["pattern"]]
    elif kind == "json_schema":
        yield arguments_text(format.get("style", "json"), random.choice(_BY_SCHEMA[json.dumps(format["json_schema"])]))
    elif kind == "sequence":
        for each in format["elements"]:
            yield from _drawn(each, random)
    elif kind == "or":
        yield from _drawn(random.choice(format["elements"]), random)
    elif kind == "optional":
        if random.random() < 0.7:
            yield from _drawn(format["content"], random)
    elif kind == "repeat":
        for _ in range(random.randint(format["min"], format["min"] + 2 if format["max"] < 0 else format["max"])):
            yield from _drawn(format["content"], random)
    elif kind == "tag":
        end = format["end"]
        yield format["begin"]
        yield from _drawn(format["content"], random)
        yield end if isinstance(end, str) else random.choice(end)
    else:
        yield from _tags(format, random)


def _tags(format: Format, random: Random) -> Iterator[str]:
    least = int(format.get("at_least_one", False))
    count = random.randint(least, 1 if format.get("stop_after_first") else 3)
    free = format["type"] == "triggered_tags"
    for i in range(count):
        if free and (i or not least):
            yield random.choice(_TEXTS)
        elif i:
            yield format["separator"]
        yield from _drawn(random.choice(format["tags"]), random)
    if free and not format.get("stop_after_first"):
        yield random.choice(_TEXTS)


# -- engines -------------------------------------------------------------------------------------------------


class Engine(Protocol):
    """Says whether a format allows a text. Texts are bytes to it, special tokens or not."""

    def accepts(self, format: Format, text: str) -> bool:
        """Whether the text is a whole reply."""
        ...


class XGrammarEngine:
    """XGrammar."""

    def __init__(self) -> None:
        self.xgrammar = pytest.importorskip("xgrammar")
        tokens = [*(bytes([i]) for i in range(256)), b"<end>"]
        info = self.xgrammar.TokenizerInfo(tokens, vocab_type=self.xgrammar.VocabType.RAW, stop_token_ids=[256])
        self.compiler = self.xgrammar.GrammarCompiler(info, max_threads=1)

    def accepts(self, format: Format, text: str) -> bool:
        """Whether the text is a whole reply."""
        tag = json.dumps({"type": "structural_tag", "format": format})
        matcher = self.xgrammar.GrammarMatcher(self.compiler.compile_structural_tag(tag))
        return bool(matcher.accept_string(text) and matcher.accept_token(256))


class StructgenEngine:
    """structgen, byte by byte."""

    def __init__(self) -> None:
        self.vocabulary = structgen.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
        self.indexes: dict[str, structgen.Index] = {}

    def accepts(self, format: Format, text: str) -> bool:
        """Whether the text is a whole reply."""
        written = json.dumps(format)
        if written not in self.indexes:
            tag = structgen.StructuralTag(written, whitespace="any")
            self.indexes[written] = structgen.compile(tag, self.vocabulary, eager=False, base_rows=False)
        guide = structgen.Guide(self.indexes[written])
        return all(guide.advance(byte) for byte in text.encode()) and guide.is_accepting()


#: The engines by name.
ENGINES: dict[str, Callable[[], Engine]] = {"structgen": StructgenEngine, "xgrammar": XGrammarEngine}


@cache
def engine(name: str) -> Engine:
    """The one engine of a process by a name: it remembers what it compiled."""
    return ENGINES[name]()
