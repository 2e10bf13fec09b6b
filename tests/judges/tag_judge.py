"""Objects written in tags, by a plain renderer and a plain parser of each style: what a text can mean."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import structgen as sg
from judges.guides import EACH_BYTE

#: By style: the text before a name, what ends a name, texts behind it with what they say of the value, the text after
#: it. ``s``: a string as it is; ``p``: the same, perhaps among whitespace; ``j``: JSON but no string; else types.
#: MiniMax M3's closing tag has the name once more; its values are in tags, but for strings and scalars.
STYLES: dict[str, tuple[str, str, dict[str, str], str]] = {
    "qwen_xml": ("<parameter=", ">", {"": "pj"}, "</parameter>"),
    "minimax_xml": ('<parameter name="', '"', {">": "pj"}, "</parameter>"),
    "minimax_m3_xml": ("]<]minimax[>[<", ">", {"": "any"}, "]<]minimax[>["),
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

#: Special tokens that stand in the tags of a style: as models have them, and others.
SPECIAL: dict[str, tuple[str, ...]] = {
    "qwen_xml": ("<parameter=", "</parameter>", "meter", ">"),
    "minimax_xml": ("<parameter", "</par", '">'),
    "minimax_m3_xml": ("]<]minimax[>[", "</"),
    "deepseek_xml": ("｜DSML｜", ' string="false'),
    "deepseek_v4_1_xml": ("｜DSML｜", "parameter"),
    "glm_xml": ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    "cohere_xml": ("<cofl:value", "</cofl:value>", '" type="raw', "json"),
    "kimi_k3_xml": ("<|open|>", "<|close|>", "<|sep|>"),
}

#: The first of the characters that stand for special tokens.
_MARKS = 0xE000

_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def _type(value: Any) -> str:
    return "null" if value is None else _TYPES[type(value)]


def _says(said: str, value: Any) -> bool:
    """Whether a value can be announced so."""
    if said == "any":
        return True
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
        text += _gap(random) + opening + name + name_end + _rendered(member, style, random) + _again(style, name)
    return text + _gap(random)


def _again(style: str, name: str) -> str:
    return f"</{name}>" if style == "minimax_m3_xml" else ""


def _rendered(member: Any, style: str, random: Random) -> str:
    """What comes behind a name."""
    opening, _, kinds, closing = STYLES[style]
    before, said = next((before, said) for before, said in kinds.items() if _says(said, member))
    if style == "minimax_m3_xml" and isinstance(member, list):
        items = (f"{_gap(random)}{opening}item>{_rendered(item, style, random)}</item>" for item in member)
        written = "".join(items) + _gap(random)
    elif style in ("cohere_xml", "minimax_m3_xml") and isinstance(member, dict):
        written = render(member, style, random)
    elif style == "cohere_xml" and isinstance(member, list):
        items = (f"{_gap(random)}<cofl:value{_rendered(item, style, random)}" for item in member)
        written = "".join(items) + _gap(random)
    else:
        written = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False, separators=(",", ":"))
        if said not in ("s", "any"):
            written = _gap(random) + written + _gap(random)
    between = "".join(_gap(random) if each == " " and style == "glm_xml" else each for each in before)
    return between + written + closing


def _gap(random: Random) -> str:
    return random.choice(("", "", "\n", " "))


def marked(text: str, special: Sequence[str], random: Random) -> str:
    """A text in which marks stand for some of the names of special tokens in it, wherever these are."""
    pieces = _named(special).split(text) if special else [text]
    return "".join(_mark(special, each) if each in special and random.random() < 0.6 else each for each in pieces)


def _mark(special: Sequence[str], name: str) -> str:
    return chr(_MARKS + special.index(name))


def _named(special: Sequence[str]) -> re.Pattern[str]:
    """The names of special tokens, the longest first."""
    return re.compile(f"({'|'.join(map(re.escape, sorted(special, key=len, reverse=True)))})")


def symbols(text: str, special: Sequence[str], first: int) -> list[bytes | int]:
    """The bytes of a text with marks, and the ids of its special tokens, which begin with ``first``."""
    return [
        ord(each) - _MARKS + first if _MARKS <= ord(each) < _MARKS + len(special) else each.encode() for each in text
    ]


def readings(text: str, style: str, special: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """The objects that a text can mean, if whitespace is one character or none and JSON is compact.

    Marks stand for ``special`` tokens, which may take the places of their names in tags.
    """
    reader = _Reader(style, special)
    members, rest = reader.members(text, STYLES[style][0])
    if re.fullmatch(r"[ \t\n\r]?", rest):
        for chosen in itertools.product(*(values for _, values in members)):
            yield dict(zip([name for name, _ in members], chosen, strict=True))


class _Reader:
    """What texts of a style can begin with."""

    def __init__(self, style: str, special: Sequence[str]) -> None:
        self._style = style
        self._special = special
        self._mark = f"[{_mark(special, special[0])}-{_mark(special, special[-1])}]" if special else "(?!)"

    def _tag(self, text: str) -> str:
        """A regex for what stands in a tag; spaces in GLM's are whitespace that may be missing."""
        pieces = _named(self._special).split(text) if self._special else [text]
        regex = "".join(
            f"(?:{re.escape(each)}|{_mark(self._special, each)})" if each in self._special else re.escape(each)
            for each in pieces
        )
        return regex.replace(r"\ ", "[ \t\n\r]?") if self._style == "glm_xml" else regex

    def members(self, text: str, opening: str) -> tuple[list[tuple[str, list[Any]]], str]:
        """Members, each with the values it may have, and the rest of a text; items where tags have no names."""
        _, name_end, _, _ = STYLES[self._style]
        members = []
        while (found := re.match(r"[ \t\n\r]?" + self._tag(opening), text)) is not None:
            name, ended = "", ""
            if opening == STYLES[self._style][0]:
                named = re.compile(f"(.*?)(?={re.escape(name_end)}|{self._mark})", re.DOTALL).match(text, found.end())
                if named is None:
                    break
                found, name, ended = named, named[1], name_end
            values, after = self._value(text[found.end() :], ended, name)
            if after is None:
                break
            for entity in reversed(_ENTITIES.get(self._style, ())):
                name = name.replace(entity, html.unescape(entity))
            members.append((name, values))
            text = after
        return members, text

    def _tagged(self, text: str, name: str) -> tuple[list[Any], str | None]:
        """`_value` in MiniMax M3's tags, in which the text ends at the same place, whatever it says."""
        opening, _, _, closing = STYLES[self._style]
        end = self._tag(closing) + self._tag("</") + re.escape(f"{name}>")
        found: list[Any] = []
        rest = None
        closed = re.search(self._tag(closing), text)
        if closed is not None and (ended := re.match(end, text[closed.start() :])):
            rest = text[closed.start() + ended.end() :]
            value = text[: closed.start()]
            if not re.search(self._mark, value):
                found.append(value)
                found += [each for each in _values(value, "j") if json.dumps(each) == value]
        for begin in (opening, f"{opening}item>"):
            members, after = self.members(text, begin)
            if (ended := re.match(f"[ \t\n\r]?{end}", after)) is not None:
                rest = after[ended.end() :]
                names = [each for each, _ in members]
                for chosen in itertools.product(*(values for _, values in members)):
                    found.append(dict(zip(names, chosen, strict=True)) if begin == opening else list(chosen))
        return found, rest

    def _value(self, text: str, ended: str, name: str) -> tuple[list[Any], str | None]:
        """What a text behind a name can begin with, and the text after the closing tag; None where there is none."""
        opening, _, kinds, closing = STYLES[self._style]
        if self._style == "minimax_m3_xml":
            begun = re.match(self._tag(ended), text)
            return self._tagged(text[begun.end() :], name or "item") if begun else ([], None)
        for before, said in kinds.items():
            begun = re.match(self._tag(ended + before), text)
            if begun is None:
                continue
            inner = text[begun.end() :]
            if self._style != "cohere_xml" or said not in ("object", "array"):
                closed = re.search(self._tag(closing), inner)
                if closed is None:
                    return [], None
                value = inner[: closed.start()]
                values = [] if re.search(self._mark, value) else list(_values(value, said))
                return values, inner[closed.end() :]
            members, rest = self.members(inner, opening if said == "object" else "<cofl:value")
            closed = re.match(r"[ \t\n\r]?" + self._tag(closing), rest)
            if closed is None:
                return [], None
            names = [name for name, _ in members]
            chosen = itertools.product(*(values for _, values in members))
            found = (dict(zip(names, each, strict=True)) if said == "object" else list(each) for each in chosen)
            return list(found), rest[closed.end() :]
        return [], None


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


def vocabulary(special: Sequence[str] = ()) -> sg.Vocabulary:
    """All bytes, pieces of tags that begin or end in the middle of others, special tokens, and an EOS."""
    pieces = [
        "</", "</parameter", "</parameter>", "<parameter", "<parameter=", "parameter", ">\n", ">x", "x</", "\n</",
        "a>", '"><', ">12<", '">', '" string="', 'true">', "false", '=a>"', "</arg_key>\n<arg", "<arg_value>",
        "</arg_value>", "<|open|>", "<|close|>", "<|sep|>", 'argument key="', '" type="', "string", "number",
        "｜DSML｜", "<｜DSML｜para", "</｜DSML｜", "1</parameter>\n<parameter=b>", "x</parameter></", "\n\n", " <",
        "é<", "><", "a</", "]<]minimax[>[", "]<", "[<a>", "[</", "<item>", "er>", "nul", "[",
        '["', '"]</', "{}", "true<",
    ]  # fmt: skip
    tokens: list[bytes | None] = [*EACH_BYTE, *(piece.encode() for piece in pieces), "｜".encode()[:2]]
    ids = {name: len(tokens) + number for number, name in enumerate(special)}
    size = len(tokens) + len(special)
    return sg.Vocabulary.from_bytes([*tokens, *[None] * len(special), None], eos_ids=[size], special_tokens=ids)
