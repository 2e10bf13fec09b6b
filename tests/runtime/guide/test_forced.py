"""Forced bytes against masks over a vocabulary of single bytes, which are worked out in quite another way."""

from __future__ import annotations

import random
import re

import pytest
from judges.guides import EACH_BYTE

import structgen as sg
from structgen import grammars
from structgen.runtime.guide.forced import forced_bytes, whole_characters
from structgen.runtime.rows.bitmask import ids_of

EOS, SPECIAL = 256, 257
BYTES = sg.Vocabulary.from_bytes([*EACH_BYTE, None, None], eos_ids=[EOS], special_tokens={"<|call|>": SPECIAL})

PERSON = {
    "type": "object",
    "properties": {"first_name": {"type": "string"}, "first_born": {"type": "boolean"}, "n": {"enum": ["one", "only"]}},
    "required": ["first_name"],
    "additionalProperties": False,
}

DEFINITIONS: dict[str, sg.Definition] = {
    "regex": sg.Regex("(GET|GOT) /index\\.html( HTTP/1\\.[01])?"),
    "counted": sg.Regex("a{40}b{3,5}c"),
    "look-around": sg.Regex("(?!ab)[a-b](bcd|bce)é(?<=é)"),
    "umlauts": sg.Regex("[äöü]ßen|äh"),
    "schema": sg.JsonSchema(PERSON, whitespace="compact"),
    "indented": sg.JsonSchema(PERSON, whitespace=4),
    "long strings": sg.JsonSchema({"type": "string", "minLength": 40, "maxLength": 41, "pattern": "^x+$"}),
    "unique": sg.JsonSchema({"enum": [["red", "green"], ["red", "grey"], {"red": None}]}),
    "gbnf": sg.Gbnf('root ::= "begin " list " end"\nlist ::= "x" (", " list)?'),
    "grammar": sg.Grammar('start: "select" "from" NAME ("where" NAME)? ";"\nNAME: /[a-c]{2}/\n%ignore " "'),
    "keywords": sg.Grammar('start: ("begin" start? "end" | "break") ";"'),
    "look-ahead": sg.Grammar('start: A "b" "cd"\nA: /a+(?=bc)/'),
    "ambiguous": sg.Grammar('start: s\ns: s "+" s | "one"', ambiguity="all", lexer="basic"),
    "embedded": sg.Grammar(
        'start: "call(" PERSON ");" | "call(" DATE ")!" <|call|> "done"',
        definitions={"PERSON": sg.JsonSchema(PERSON, whitespace="compact"), "DATE": sg.Regex("19[0-9]{2}-01")},
    ),
    "indentation": sg.Grammar(
        'start: line+\nline: "if" ":" _NEWLINE _INDENT line+ _DEDENT | "pass" _NEWLINE\n'
        "_NEWLINE: /(\\r?\\n *)+/\n%declare _INDENT _DEDENT\n",
        postlex=sg.Indentation(columns=8),
    ),
    "json": sg.Grammar(grammars.path("json"), start="value"),
    "c": sg.Grammar(grammars.path("c"), lexer="basic"),
}


def by_masks(guide: sg.Guide, most: int) -> bytes:
    """The ids of masks that allow one byte and nothing else, as long as there are such."""
    guide, found = guide.fork(), bytearray()
    while len(found) < most:
        allowed = ids_of(guide.bitmask()).tolist()
        if len(allowed) != 1 or allowed[0] >= 256:
            break
        assert guide.advance(allowed[0])
        found.append(allowed[0])
    return bytes(found)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_they_are_what_masks_leave(name: str) -> None:
    index = sg.compile(DEFINITIONS[name], BYTES, eager=False)
    rng = random.Random(name)
    asked = found = 0
    for _ in range(6):
        guide = sg.Guide(index)
        for _ in range(70):
            forced = forced_bytes(guide.machine, guide.config, 60)
            assert forced == by_masks(guide, 60)
            asked, found = asked + 1, found + bool(forced)
            allowed = ids_of(guide.bitmask()).tolist()
            if EOS in allowed and (len(allowed) == 1 or rng.random() < 0.2):
                break
            assert guide.advance(rng.choice([token for token in allowed if token != EOS]))
    assert asked > found > 0


def test_they_are_the_same_however_the_text_was_cut_into_tokens() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"GET", b"G", b"E", b"T", b" /", b" ", b"/", None], eos_ids=[7])
    index = sg.compile(sg.Regex("GET //G"), vocabulary)
    guides = [sg.Guide(index), sg.Guide(index)]
    assert guides[0].advance(0)
    assert all(map(guides[1].advance, (1, 2, 3)))
    assert [guide.forced_bytes() for guide in guides] == [b" //G"] * 2


def test_a_bound_cuts_them_off() -> None:
    guide = sg.Guide(sg.compile(sg.Regex("a{5000}"), BYTES))
    assert guide.forced_bytes() == b"a" * 1024
    assert forced_bytes(guide.machine, guide.config, 3) == b"aaa"
    assert forced_bytes(guide.machine, guide.config, 0) == b""
    assert forced_bytes(guide.index.machine, guide.index.machine.start, 10_000) == b"a" * 5000


def test_nothing_is_forced_after_the_end() -> None:
    guide = sg.Guide(sg.compile(sg.Regex("ab?"), BYTES))
    assert guide.forced_bytes() == b"a"
    assert guide.advance(ord("a"))
    assert guide.forced_bytes() == b""  # b could follow, but nothing has to
    assert guide.advance(EOS)
    assert guide.config is None
    assert guide.forced_bytes() == b""


def test_no_mask_is_worked_out() -> None:
    for definition in (DEFINITIONS["regex"], DEFINITIONS["schema"], DEFINITIONS["grammar"]):
        index = sg.compile(definition, BYTES, eager=False)
        sg.Guide(index).forced_bytes()
        assert index.row_count == 0 or index.machine.known_rows == 0


def test_what_a_text_is_matched_against_names_the_same_bytes() -> None:
    index = sg.compile(DEFINITIONS["embedded"], BYTES, eager=False)
    assert index.match(b"call(").expected == ((ord("1"), ord("1")), (ord("{"), ord("{")))
    assert index.match(b"cal").expected == ((ord("l"), ord("l")),)


@pytest.mark.parametrize("text", ["", "a", "aé", "aé€", "aé€𝄞", "𝄞"])
def test_whole_characters(text: str) -> None:
    data = text.encode()
    for end in range(len(data) + 1):
        expected = data[:end].decode(errors="ignore")
        assert whole_characters(data[:end]) == expected
    for begin in range(len(data)):
        if re.match(rb"[\x80-\xbf]", data[begin:]):
            assert whole_characters(data[begin:]) is None
