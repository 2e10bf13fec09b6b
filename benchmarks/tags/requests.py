"""Requests with tools: as many as asked for, of as many parameters, in some styles; and replies that call them.

No two requests have a name in common, unless one is to have a tool more than the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from structgen.tools import tool_call_format

from ..tails.worker import Case
from .engines import Reply

Tool: TypeAlias = "dict[str, Any]"

#: The parameters of simple tools and of rich ones, in turns.
KINDS: dict[str, list[Any]] = {
    "simple": [{"type": "integer"}, {"type": "string"}],
    "rich": [
        {"type": "string", "maxLength": 40, "description": "text"},
        {"type": "array", "items": {"type": "number"}, "maxItems": 5},
        {"type": "string", "enum": ["a", "bc", "def"]},
        {
            "type": "object",
            "properties": {"x": {"type": "integer", "minimum": 0}, "y": {"type": ["string", "null"]}},
            "required": ["x"],
            "additionalProperties": False,
        },
        {"type": "string", "format": "date"},
    ],
}

#: By style, the text before a call's arguments.
_BEGINS = {"llama": '{{"name": "{0}", "parameters": ', "qwen_3_coder": "<tool_call>\n<function={0}>\n"}

#: By style, the text behind them.
_ENDS = {"llama": "}", "qwen_3_coder": "</function>\n</tool_call>"}

#: What the first argument begins with.
_FIRST = {"llama": "{", "qwen_3_coder": "<parameter="}

#: The styles that there are requests in.
STYLES = tuple(_BEGINS)

#: llguidance's trigger, for the styles that it has tags for.
_TRIGGERS = {"llama": '{"name": '}

_TEXT = "the weather in Paris is mild today, so let me look up what you asked for and tell you about it"
_WORDS = _TEXT.split()


@dataclass(frozen=True)
class Request:
    """So many tools of so many parameters each.

    Parameters
    ----------
    style, kind:
        One of `STYLES` and of `KINDS`.
    tools, parameters:
        How many.
    name:
        What sets it apart from others, in the names of its tools.
    more:
        A further tool of another name, or an empty string.
    """

    style: str
    kind: str
    tools: int
    parameters: int
    name: str
    more: str = ""

    def names(self) -> list[str]:
        """The names of its tools."""
        names = [f"tool_{self.name}_{number}" for number in range(self.tools)]
        return [*names, f"tool_{self.name}_{self.more}"] if self.more else names

    def schema(self, name: str) -> Any:
        """What the arguments of a tool are to be."""
        kinds = KINDS[self.kind]
        members = {f"{name[5:]}_p{j}": kinds[j % len(kinds)] for j in range(self.parameters)}
        return {"type": "object", "properties": members, "required": list(members)[:1], "additionalProperties": False}

    def reply(self) -> Reply:
        """What a reply may be, for the engines."""
        schemas = {name: self.schema(name) for name in self.names()}
        tools = [{"type": "function", "function": {"name": n, "parameters": schema}} for n, schema in schemas.items()]
        tags = None
        if trigger := _TRIGGERS.get(self.style):
            begin, end = _BEGINS[self.style], _ENDS[self.style]
            tags = [(trigger, begin.format(name), schema, end) for name, schema in schemas.items()]
        return Reply(tool_call_format(tools, self.style, reasoning=False), tags)

    def case(self, texts: Sequence[tuple[str, Sequence[int]]] = ()) -> Case:
        """The request by its name, with texts in token ids."""
        title = f"{self.style}, {self.kind}, {self.tools}x{self.parameters}{f' + {self.more}' if self.more else ''}"
        return Case(title, self.reply(), texts)

    def entries(self) -> Iterator[tuple[str, str]]:
        """For each tool, the text up to the beginning of its arguments."""
        for name in self.names():
            yield name, _BEGINS[self.style].format(name) + _FIRST[self.style]

    def calls(self, count: int, seed: int) -> Iterator[tuple[str, str]]:
        """Replies: some words, a call or two, some words between."""
        random = Random(seed)
        for number in range(count):
            text = _prose(random)
            for name in random.choices(self.names(), k=random.randint(1, 2)):
                call = _BEGINS[self.style].format(name) + self._arguments(name, random) + _ENDS[self.style]
                text += f"{call}\n{_prose(random)}"
            yield f"reply {number}", text

    def _arguments(self, name: str, random: Random) -> str:
        members = self.schema(name)["properties"].items()
        chosen = {
            key: _value(schema, random) for n, (key, schema) in enumerate(members) if not n or random.random() < 0.7
        }
        if self.style == "llama":
            return json.dumps(chosen)
        return "".join(f"<parameter={key}>\n{_text(value)}\n</parameter>\n" for key, value in chosen.items())


def prose(words: int) -> str:
    """Free text without a call."""
    return " ".join((_WORDS * (words // len(_WORDS) + 1))[:words])


def _prose(random: Random) -> str:
    return " ".join(random.choices(_WORDS, k=random.randint(5, 20))) + ". "


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _value(schema: Any, random: Random) -> object:
    """A value of a parameter."""
    if "enum" in schema:
        return random.choice(schema["enum"])
    if schema["type"] == "integer":
        return random.randint(0, 1000)
    if schema["type"] == "array":
        return [round(random.uniform(-9, 9), 2) for _ in range(random.randint(0, 5))]
    if schema["type"] == "object":
        return {"x": random.randint(0, 99), "y": random.choice([None, "north"])}
    if schema.get("format") == "date":
        return f"20{random.randint(10, 30)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    return " ".join(random.choices(_WORDS, k=random.randint(1, 6)))[:40]


def encoder(tokenizer_json: Path) -> Callable[[str], list[int]]:
    """From a text to token ids; what looks like a special token is text."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_json))
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
