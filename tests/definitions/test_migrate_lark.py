r"""Lark's syntax as llguidance, guidance and XGrammar read it: their regexes, strings and names, judged by them.

Regexes are drawn with Rust's and JavaScript's syntax in them, strings with every escape of JSON.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import structgen as sg
from structgen import migrate
from structgen.errors import BudgetExceededError

BYTES = sg.Vocabulary.bytewise()

RUST = [
    "a", "b", "é", r"\s", r"\w", r"\d", r"\S", r"\W", r"\x{61}", r"\u{e9}", r"\u0061", r"\U00000061", r"\-", r"\&",
    "[a-c&&b]", "[[:alpha:]]", "[^a]", "[[^a]&&[^b]]", "[a-c--b]", "[a-c~~b]", r"[\w&&[^a]]", "[-a]", "[]a]", r"\pL",
    r"\p{Lu}", "(?i:i)", "(?s:.)", "(?x: a b )", "(?<n>a)", "(?P<m>b)", "(?:)", "(?U:a*)", r"\/", ".", "(?i:[a-b])",
]  # fmt: skip
JAVASCRIPT = [
    "a", "b", "é", r"\s", r"\w", r"\d", r"\S", r"\W", r"\x61", r"\u{e9}", r"\u0061", r"\cI", r"\-", r"[\w&]", "[^a]",
    r"[^\w]", r"[\D-]", "(?<n>a)", "(?:b|)", ".", r"\/", "$", "^", r"\$",
]  # fmt: skip
ESCAPES = [
    r"\b", r"\/", r"\ud83d\ude00", r"\uD83D\uDE00", r"\n", r"\r", r"\t", r"\f", r"\\", r"\"", r"\u0041", r"\u0000",
    r"\u2028", "é", "😀", "/", "a", "'", "b", "u0041", "#", "//", "x41", "-", "<a>", "{2}", "]",
]  # fmt: skip
TEXTS = ["".join(each) for n in range(3) for each in itertools.product("ab&-é² \u0345Iİ\n\t", repeat=n)]


def by_llguidance(grammar: str, texts: list[str]) -> list[bool]:
    llguidance = pytest.importorskip("llguidance")
    tokenizer = llguidance.LLTokenizer("byte")
    found = []
    for text in texts:
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        found.append(matcher.consume_tokens(list(text.encode())) and matcher.is_accepting())
    return found


def by_xgrammar(grammar: str, texts: list[str]) -> list[bool]:
    xgrammar = pytest.importorskip("xgrammar")
    from xgrammar.testing import _is_grammar_accept_string as accepts

    made = xgrammar.Grammar.from_lark(grammar)
    return [bool(accepts(made, text)) for text in texts]


def accepted(found: migrate.Migrated, texts: list[str]) -> list[bool]:
    index = sg.compile(found.definition, BYTES, eager=False)
    return [index.match(text.encode()).accepted for text in texts]


def drawn(draw: random.Random, atoms: list[str], depth: int = 0) -> str:
    """A regex of some atoms; names of groups come once."""
    parts = []
    for _ in range(draw.randint(1, 3)):
        if depth < 2 and draw.random() < 0.2:
            atom = f"({drawn(draw, atoms, depth + 1)}|{drawn(draw, atoms, depth + 1)})"
        else:
            atom = draw.choice(atoms)
        sign = "" if atom in "^$" else draw.choice(["", "", "", "*", "+", "?", "{2}", "{0,2}", "*?", "+?"])
        parts.append(atom + sign)
    text = "".join(parts)
    for group in ("(?<n>", "(?P<m>"):
        head, found, rest = text.partition(group)
        text = head + found + rest.replace(group, "(")
    return text


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_regexes_are_rusts(seed: int) -> None:
    """A grammar that is one regex, by however many names, and terminals of which no other can take a part."""
    draw, some = random.Random(seed), 0
    for _ in range(4):
        regex = drawn(draw, RUST)
        one = f"start: START\nSTART: REGEX_1\n\nREGEX_1: /{regex}/\n"
        judged = by_llguidance(one, TEXTS)
        assert accepted(migrate.from_llguidance(one), TEXTS) == judged, regex
        some += any(judged)
        several = f'start: "<" T | "!" T T\nT: "b"? /{regex}/'
        texts = [f"<{text}" for text in TEXTS]
        found = migrate.from_llguidance(several)
        assert accepted(found, texts) == by_llguidance(several, texts), regex
    assert some >= 2


@pytest.mark.parametrize("seed", range(4))
def test_regexes_of_xgrammar_are_javascripts(seed: int) -> None:
    draw, some = random.Random(seed), 0
    for _ in range(6):
        regex = drawn(draw, JAVASCRIPT)
        grammar = f'start: "<" T\nT: /{regex}/'
        texts = [f"<{text}" for text in TEXTS]
        judged = by_xgrammar(grammar, texts)
        assert accepted(migrate.from_xgrammar(grammar, "lark"), texts) == judged, regex
        some += any(judged)
    assert some >= 3


def test_strings_are_those_of_json() -> None:
    draw = random.Random(7)
    for _ in range(40):
        string = "".join(draw.choice(ESCAPES) for _ in range(draw.randint(1, 4)))
        text = json.loads(f'"{string}"')
        texts = [text, text + "x", text[:-1], text.replace("\b", "b"), text.lower(), text.upper()]
        texts = [each for each in texts if each.isprintable() or "\ud800" not in each]
        for grammar in (
            f'start: "{string}"',
            f'start: x "x"?\nx: T\nT: "{string}" "c"? // "no"',
            f'start: %lark {{\nstart: "{string}"\n}} "y"?',
        ):
            judged = by_llguidance(grammar, texts)
            assert judged[0]
            assert accepted(migrate.from_llguidance(grammar), texts) == judged, grammar
            assert accepted(migrate.from_xgrammar(grammar, "lark"), texts) == by_xgrammar(grammar, texts), grammar


def test_json_in_a_grammar_means_what_it_meant() -> None:
    strings = r'start: %json {"const": "\/\b\ud83d\ude00"} "\/"'
    texts = [r'"/\b😀"/', r'"\/\b😀"/', '"/b😀"/']
    assert accepted(migrate.from_llguidance(strings), texts) == by_llguidance(strings, texts) == [True, False, False]
    words = r'start: %regex {"substring_chars": "a\/\b\"b"} "x-y" "."'
    texts = ['/\b"x-y.', "\\/x-y.", "ax-y."]
    assert accepted(migrate.from_llguidance(words), texts) == by_llguidance(words, texts) == [True, False, True]


def test_bytes_in_hexadecimal() -> None:
    assert accepted(migrate.from_llguidance(r'start: "\x41\xe9"'), ["Aé", "A", r"\x41"]) == [True, False, False]


@pytest.mark.parametrize(
    "imports",
    ["%import common.ESCAPED_STRING", "%import common (INT, ESCAPED_STRING, WS)", "%import common (ESCAPED_STRING)",
     "%import common.ESCAPED_STRING -> ESCAPED_STRING", "  %import  common.ESCAPED_STRING  // %import common.INT"],
)  # fmt: skip
def test_strings_that_are_imported_may_hold_line_ends(imports: str) -> None:
    grammar = f'start: ESCAPED_STRING "," ESCAPED_STRING\n{imports}\n'
    texts = ['"a","b"', '"a\n","\r\t"', r'"\"","\\"', '"a\\\n",""', '"a"",""', '"a', '"', '"",']
    judged = by_llguidance(grammar, texts)
    assert judged[:4] == [True, True, True, False]
    assert accepted(migrate.from_llguidance(grammar), texts) == judged
    assert accepted(migrate.from_xgrammar(grammar, "lark"), texts) == by_xgrammar(grammar, texts)


class GrammarNode:
    """What guidance's functions return."""

    def __init__(self, text: str) -> None:
        self.text = text

    def ll_grammar(self) -> str:
        return self.text


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        ('start: START\nSTART: SELECT\n\nSELECT: "\\ud83d\\ude00"\n     | "no"\n\n', ["😀", "no", "\ufffd", ""]),
        ("start: START\nSTART: REGEX\nREGEX: /[a-c&&b]+/\n", ["b", "&", "bb", "a"]),
        (
            "start: START\nSTART: REGEX REGEX_1\nREGEX: /[[:alpha:]]/\nREGEX_1: /\\w|\\s/\n",
            ["a²", "aé", "a\x1c", "a\x85", "l:"],
        ),
        ("start: t\nt[suffix=/\\s/]: T\nT: /(?s:.*)/\n", ["a\x1c", "a\x85"]),
    ],
)
def test_what_guidance_writes(written: str, texts: list[str]) -> None:
    whole = f"%llguidance {{}}\n\n{written}"
    judged = by_llguidance(whole, texts)
    assert True in judged
    assert accepted(migrate.from_guidance(GrammarNode(whole)), texts) == judged


def test_functions_of_guidance() -> None:
    guidance = pytest.importorskip("guidance")
    words = guidance.select(["😀", "no", "\b/", 'q"\\'])
    texts = ["😀", "no", "\b/", 'q"\\', "b/", "\\/"]
    assert accepted(migrate.from_guidance(words), texts) == [True] * 4 + [False] * 2
    texts = ["", *TEXTS]
    for pattern in (r"[a-c&&b]+", r"[[:alpha:]]", r"\x{61}", r"(?<n>a)", r"\s", r"\w"):
        for made in (guidance.regex(pattern), guidance.regex(pattern) + guidance.regex("b?")):
            judged = by_llguidance(made.ll_grammar(), texts)
            assert accepted(migrate.from_guidance(made), texts) == judged, pattern


@pytest.mark.parametrize(
    ("text", "captures"),
    [
        ('start: a-b a_b\na-b[stop="]-[", capture]: /x*/\na_b: "]-[" y-z?\ny-z: "y-z"', {"a-b": "xx"}),
        ('start: a-b\na-b[capture="q"]: [c-d] N-O\nc-d: "x"+\nN-O: "]-["', {"q": "xx]-["}),
        ('start: c-d\nc-d[capture]: [capture] "]-["\ncapture: "xx"', {"c-d": "xx]-["}),
    ],
)
def test_names_with_hyphens(text: str, captures: dict[str, Any]) -> None:
    found = migrate.from_llguidance(text)
    guide = sg.Guide(sg.compile(found.definition, BYTES, eager=False))
    for byte in b"xx]-[":
        guide.advance(byte)
    assert {each.name: b"xx]-["[slice(*each.span)].decode() for each in guide.captures()} == captures


def test_what_is_not_kept_of_a_grammar_is_said() -> None:
    assert any("İ" in change for change in migrate.from_llguidance('start: "if"i').changes)
    assert not any("İ" in change for change in migrate.from_llguidance('start: "us"i').changes)
    assert any("ASCII" in change for change in migrate.from_xgrammar("start: /k/i", "lark").changes)
    assert any("0.2.9" in change for change in migrate.from_xgrammar(r"start: /[\S]/", "lark").changes)
    ignored = 'start: "a" "b"\n%ignore " "'
    for found in (migrate.from_llguidance(ignored), migrate.from_xgrammar(ignored, "lark")):
        assert any("What is ignored" in change for change in found.changes)
    ended = migrate.from_xgrammar('start: x\nx[suffix=";"]: /(?s:.*)/', "lark")
    assert any("suffix" in change for change in ended.changes)
    number = '{"type": "number", "minimum": 1, "not": {"const": 2}}'
    assert len(migrate.from_llguidance(number, "json_schema").changes) == 1
    assert migrate.from_llguidance('{"type": "integer", "minimum": 1}', "json_schema").changes == ()


def test_regexes_that_take_too_much_to_spell_out_are_refused() -> None:
    with pytest.raises(BudgetExceededError, match="in the spelling of re"):
        migrate.from_llguidance("start: " + r"/\w+/ " * 2_000)
    unclosed = migrate.from_xgrammar("start: /" + "[" * 100_000 + "/", "lark")
    assert isinstance(unclosed.definition, sg.Grammar)
