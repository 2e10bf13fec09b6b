"""Objects written in tags, by a plain renderer and a plain parser of each style: what a text can mean."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import structgen as sg
from judges.guides import EACH_BYTE

#: By style: the text before a name, what ends a name, texts behind it with what they say of the value, the text after
#: it. ``s``: a string as it is; ``p``: the same, perhaps among whitespace; ``j``: JSON but no string; else types.
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
    "cohere_xml": (
        '<cofl:value name="', '"',
        {' type="raw">': "p", ' type="json">': "json", ' type="dict">': "object", ' type="list">': "array"},
        "</cofl:value>",
    ),
    "kimi_k3_xml": (
        '<|open|>argument key="', '"',
        {f' type="{each}"<|sep|>': each for each in ("number", "string", "boolean", "null", "array", "object")},
        "<|close|>argument<|sep|>",
    ),
}  # fmt: skip

#: What is written for some characters in names.
_ENTITIES = {"kimi_k3_xml": ("&amp;", "&quot;"), "cohere_xml": ("&amp;", "&lt;", "&gt;", "&quot;")}

_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def _type(value: Any) -> str:
    return "null" if value is None else _TYPES[type(value)]


def _says(said: str, value: Any) -> bool:
    """Whether a value can be announced so."""
    if isinstance(value, str):
        return said == "string" or said[0] in "sp"
    return said == _type(value) or said[-1] == "j" or (said == "json" and not isinstance(value, list | dict))


def render(value: dict[str, Any], style: str, random: Random) -> str:
    """A text of an object, with a line end here and there. What is no string is written as compact JSON."""
    opening, name_end, _, _ = STYLES[style]
    text = ""
    for name, member in value.items():
        for entity in _ENTITIES.get(style, ()):
            name = name.replace(html.unescape(entity), entity)
        text += _gap(random) + opening + name + name_end + _rendered(member, style, random)
    return text + _gap(random)


def _rendered(member: Any, style: str, random: Random) -> str:
    """What comes behind a name."""
    _, _, kinds, closing = STYLES[style]
    before, said = next((before, said) for before, said in kinds.items() if _says(said, member))
    if style == "cohere_xml" and isinstance(member, dict):
        written = render(member, style, random)
    elif style == "cohere_xml" and isinstance(member, list):
        items = (f"{_gap(random)}<cofl:value{_rendered(item, style, random)}" for item in member)
        written = "".join(items) + _gap(random)
    else:
        written = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False, separators=(",", ":"))
        if said != "s":
            written = _gap(random) + written + _gap(random)
    between = "".join(_gap(random) if each == " " and style == "glm_xml" else each for each in before)
    return between + written + closing


def _gap(random: Random) -> str:
    return random.choice(("", "", "\n", " "))


def readings(text: str, style: str) -> Iterator[dict[str, Any]]:
    """The objects that a text can mean, if whitespace is one character or none and JSON is compact."""
    members, rest = _members(text, style, STYLES[style][0])
    if re.fullmatch(r"[ \t\n\r]?", rest):
        for chosen in itertools.product(*(values for _, values in members)):
            yield dict(zip([name for name, _ in members], chosen, strict=True))


def _members(text: str, style: str, opening: str) -> tuple[list[tuple[str, list[Any]]], str]:
    """Members, each with the values it may have, and the rest of a text; items where tags have no names."""
    _, name_end, _, _ = STYLES[style]
    members = []
    while (found := re.match(r"[ \t\n\r]?" + re.escape(opening), text)) is not None:
        begin, name = text[found.end() :], ""
        if opening == STYLES[style][0]:
            name, ended, begin = begin.partition(name_end)
            if not ended:
                break
        values, after = _value(begin, style)
        if after is None:
            break
        for entity in reversed(_ENTITIES.get(style, ())):
            name = name.replace(entity, html.unescape(entity))
        members.append((name, values))
        text = after
    return members, text


def _value(text: str, style: str) -> tuple[list[Any], str | None]:
    """What a text behind a name can begin with, and the text after the closing tag; None where there is none."""
    _, _, kinds, closing = STYLES[style]
    for before, said in kinds.items():
        begun = _before(before, style).match(text)
        if begun is None:
            continue
        inner = text[begun.end() :]
        if style != "cohere_xml" or said not in ("object", "array"):
            value, closed, after = inner.partition(closing)
            return list(_values(value, said)), after if closed else None
        members, rest = _members(inner, style, STYLES[style][0] if said == "object" else "<cofl:value")
        closed_by = re.match(r"[ \t\n\r]?" + re.escape(closing), rest)
        if closed_by is None:
            return [], None
        names = [name for name, _ in members]
        chosen = itertools.product(*(values for _, values in members))
        values = (dict(zip(names, each, strict=True)) if said == "object" else list(each) for each in chosen)
        return list(values), rest[closed_by.end() :]
    return [], None


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
