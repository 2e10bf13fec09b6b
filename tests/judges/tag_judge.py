"""Objects written in tags, by a plain renderer and a plain parser of each style: what a text can mean."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import structgen as sg
from judges.guides import EACH_BYTE

#: By style: the text before a name, what ends a name, texts behind it with what they say of the value, the text after
#: it. ``s``: a string as it is; ``p``: the same, perhaps among whitespace; ``j``: JSON but no string; else a type.
STYLES: dict[str, tuple[str, str, dict[str, str], str]] = {
    "qwen_xml": ("<parameter=", ">", {"": "pj"}, "</parameter>"),
    "minimax_xml": ('<parameter name="', '"', {">": "pj"}, "</parameter>"),
    "deepseek_xml": (
        '<｜DSML｜parameter name="', '"', {' string="true">': "s", ' string="false">': "j"}, "</｜DSML｜parameter>",
    ),
    "deepseek_v4_1_xml": (
        '<｜DSML｜ parameter name="', '"', {' string="true">': "s", ' string="false">': "j"},
        "</｜DSML｜ parameter>",
    ),
    "glm_xml": ("<arg_key>", "</arg_key>", {" <arg_value>": "pj"}, "</arg_value>"),
    "kimi_k3_xml": (
        '<|open|>argument key="', '"',
        {f' type="{each}"<|sep|>': each for each in ("number", "string", "boolean", "null", "array", "object")},
        "<|close|>argument<|sep|>",
    ),
}  # fmt: skip

_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def _type(value: Any) -> str:
    return "null" if value is None else _TYPES[type(value)]


def _says(said: str, value: Any) -> bool:
    """Whether a value can be announced so."""
    if isinstance(value, str):
        return said == "string" or said[0] in "sp"
    return said == _type(value) or said[-1] == "j"


def render(value: dict[str, Any], style: str, random: Random) -> str:
    """A text of an object, with a line end here and there. What is no string is written as compact JSON."""
    opening, name_end, kinds, closing = STYLES[style]
    text = ""
    for name, member in value.items():
        before, said = next((before, said) for before, said in kinds.items() if _says(said, member))
        written = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False, separators=(",", ":"))
        if not isinstance(member, str) or said in ("pj", "string"):
            written = _gap(random) + written + _gap(random)
        if style == "kimi_k3_xml":
            name = name.replace("&", "&amp;").replace('"', "&quot;")
        between = "".join(_gap(random) if each == " " and style == "glm_xml" else each for each in before)
        text += f"{_gap(random)}{opening}{name}{name_end}{between}{written}{closing}"
    return text + _gap(random)


def _gap(random: Random) -> str:
    return random.choice(("", "", "\n", " "))


def readings(text: str, style: str) -> Iterator[dict[str, Any]]:
    """The objects that a text can mean, if whitespace is one character or none and JSON is compact."""
    opening, name_end, kinds, closing = STYLES[style]
    members: list[list[tuple[str, Any]]] = []
    while (found := re.match(r"[ \t\n\r]?" + re.escape(opening), text)) is not None:
        name, ended, text = text[found.end() :].partition(name_end)
        value, closed, after = text.partition(closing)
        if not (ended and closed):
            return
        begun, said = next(
            ((begun, said) for before, said in kinds.items() if (begun := _before(before, style).match(value))),
            (None, ""),
        )
        if begun is None:
            return
        if style == "kimi_k3_xml":
            name = name.replace("&quot;", '"').replace("&amp;", "&")
        members.append([(name, each) for each in _values(value[begun.end() :], said)])
        text = after
    if not re.fullmatch(r"[ \t\n\r]?", text):
        return
    for chosen in itertools.product(*members):
        yield dict(chosen)


def _before(text: str, style: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\ ", "[ \t\n\r]?") if style == "glm_xml" else re.escape(text))


def _values(text: str, said: str) -> Iterator[Any]:
    for begin, end in itertools.product((0, 1), repeat=2):
        inner = text[begin : len(text) - end]
        if len(text) < begin + end or (text[:begin] + text[len(text) - end :]).strip(" \t\n\r"):
            continue
        if _says(said, "") and (said != "s" or inner == text):
            yield inner
        try:
            value = json.loads(inner)
        except ValueError:
            continue
        if _says(said, value) and not isinstance(value, str):
            yield value


def vocabulary() -> sg.Vocabulary:
    """All bytes, pieces of tags that begin or end in the middle of others, and an EOS."""
    pieces = [
        "</", "</parameter", "</parameter>", "<parameter", "<parameter=", "parameter", ">\n", ">x", "x</", "\n</",
        "a>", '"><', ">12<", '">', '" string="', 'true">', "false", '=a>"', "</arg_key>\n<arg", "<arg_value>",
        "</arg_value>", "<|open|>", "<|close|>", "<|sep|>", 'argument key="', '" type="', "string", "number",
        "｜DSML｜", "<｜DSML｜para", "</｜DSML｜", "1</parameter>\n<parameter=b>", "x</parameter></", "\n\n", " <",
        "é<", "><", "a</", "er>", "nul", "[", '["', '"]</', "{}", "true<",
    ]  # fmt: skip
    tokens: list[bytes | None] = [*EACH_BYTE, *(piece.encode() for piece in pieces), "｜".encode()[:2], None]
    return sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])
