"""Grammars within grammars, ``%lark {...}`` and ``@name``: each is judged by itself, with a lexer of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from judges.guides import BYTES, allowed

import structgen as sg
from structgen.errors import BudgetExceededError

#: Grammars whose lexers would get into each other's way: longest matches, keywords, what is ignored, priorities.
INNER = {
    "words": "start: (A | B)+\nA: /[ab]+/ & ~\"ab\"\nB: \"ab\"",
    "ignored": 'start: "a" ("," "a")*\n%ignore " "',
    "nested": 'start: "(" start? ")" | "a"',
    "longest": "start: A B?\nA: /a+/\nB: /b|ab/",
    "counted": 'start: ("a" | "b"){2,3}',
    "parameters": 'start: p::0\np::_: "a" p::incr(_) %if lt(_, 2) | "b" %if bit_set(1)',
}


def texts(alphabet: str, most: int) -> Iterator[str]:
    return ("".join(each) for n in range(most + 1) for each in itertools.product(alphabet, repeat=n))


def accepts(definition: sg.Grammar, text: str) -> bool:
    return bool(sg.compile(definition, BYTES, eager=False).match(text.encode()).accepted)


@pytest.mark.parametrize("name", INNER)
def test_a_grammar_stands_for_its_texts(name: str) -> None:
    """Behind words of the same letters, and before a sign that no inner text has."""
    inner = sg.compile(sg.Grammar(INNER[name]), BYTES, eager=False)
    outer = 'start: W? "<" X ">" W?\nW: /[ab]+/\n%ignore "_"'
    given = sg.Grammar(outer.replace("X", "@inner"), definitions={"INNER": sg.Grammar(INNER[name])})
    written = sg.Grammar(outer.replace("X", "%lark {\n" + INNER[name] + "\n}"))
    for definition in (given, written):
        index = sg.compile(definition, BYTES, eager=False)
        for text in texts("ab,() ", 4):
            expected = inner.match(text.encode()).accepted
            for around in ("<{}>", "a_<{}>", "<{}>b", "<{}>_ab"):
                assert index.match(around.format(text).encode()).accepted is expected, (text, around)


def test_where_the_inner_text_ends_is_up_to_what_follows() -> None:
    """All ends of the inner text are followed, and what comes behind it may begin with the same letters."""
    inner, tail = "start: A+\nA: \"a\" | \"ab\"", "b?a"
    index = sg.compile(sg.Grammar(f"start: %lark {{ {inner} }} /{tail}/"), BYTES, eager=False)
    whole = sg.compile(sg.Grammar(inner), BYTES, eager=False)
    for text in texts("ab", 7):
        ends = [text[:n] for n in range(len(text)) if text[n:] in ("a", "ba")]
        assert index.match(text.encode()).accepted is any(whole.match(end.encode()).accepted for end in ends), text


def test_masks_are_what_guides_accept() -> None:
    definition = sg.Grammar('start: "<" @inner ">" /[ab]+/', definitions={"INNER": sg.Grammar(INNER["words"])})
    tokens = [*(bytes([i]) for i in range(256)), b"<ab", b"ab>a", b"a>", b"b>b", b"aba", b"><", None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[262])
    index = sg.compile(definition, vocabulary)
    for text in ("", "<", "<a", "<ab", "<aba", "<ab>", "<abb>a"):
        guide = sg.Guide(index)
        assert all(map(guide.advance, text.encode()))
        expected = [t for t in range(263) if guide.allows(t)]
        assert allowed(guide) == expected
        assert expected


@pytest.mark.parametrize("name", sorted(INNER))
def test_llguidance_accepts_no_more(name: str) -> None:
    """What it accepts is accepted. (It ignores nothing before the first lexeme, and takes back no part of one.)"""
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    grammar = 'start: "<" %lark {\n' + INNER[name] + '\n} ">"'
    tokens = llguidance.LLTokenizer("byte")
    index, found = sg.compile(sg.Grammar(grammar), BYTES, eager=False), 0
    for text in texts("ab,() ", 4):
        matcher = llguidance.LLMatcher(tokens, grammar, log_level=0)
        data = f"<{text}>".encode()
        if matcher.try_consume_tokens([*data]) == len(data) and matcher.is_accepting():
            assert index.match(data).accepted, text
            found += 1
    assert found


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ("start: @other", r"there is no grammar @other.*definitions=\{'OTHER'"),
        ('start: %lark { start: "a"', "%lark { is never closed"),
        ('start: "a" %lark start', "%lark without braces"),
        ('start: A\nA: %lark { start: "x" }', "holds LARK, which is no text for a lexer"),
        ('start: %lark { start: "x"? }', "has the empty text"),
        ('start: %lark { begin: "x" }', "there is no rule 'start'"),
        ('start: %lark { start: <|x|> }', "which nothing lexes"),
    ],
)  # fmt: skip
def test_what_is_refused(grammar: str, says: str) -> None:
    with pytest.raises(sg.Error, match=says):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False)


def test_inner_grammars_hold_definitions() -> None:
    item = sg.Grammar("start: /[a-z]+/")
    pair = sg.Grammar('start: @item ":" @item', definitions={"ITEM": item})
    assert accepts(sg.Grammar("start: @pair", definitions={"PAIR": pair}), "ab:c")
    assert not accepts(sg.Grammar("start: @pair", definitions={"PAIR": pair}), "ab:")
    inner = 'start: item ":" %json {"type": "integer"}\nitem: "x" | "(" item ")"\n%ignore " "\n'
    schema = f'start: "[" %lark {{\n{inner}}} "]"'
    assert accepts(sg.Grammar(schema), "[ (x) : -12]")
    assert not accepts(sg.Grammar(schema), "[x:1.5]")


def test_inner_grammars_that_hold_too_much_are_refused() -> None:
    grammar = sg.Grammar('start: "a"')
    for _ in range(18):
        grammar = sg.Grammar('start: "a" X | "b"', definitions={"X": grammar})
    with pytest.raises(BudgetExceededError, match="16 deep"):
        sg.compile(grammar, BYTES, eager=False)
    for inner, says in (
        (sg.Grammar('start: "a"', definitions={"X": {}}), "no rule has the terminal X"),
        (sg.Grammar('start: "a" X', definitions={"X": sg.Regex("a*")}), "the definition X has the empty text"),
        (sg.Grammar('start: "a" X\n%ignore X', definitions={"X": sg.Regex("a")}), "has X, which nothing lexes"),
    ):
        with pytest.raises(sg.Error, match=says):
            sg.compile(sg.Grammar("start: W", definitions={"W": inner}), BYTES, eager=False)


def test_inner_grammars_import_what_the_outer_one_may() -> None:
    grammar = "start: %lark {\n start: INT\n %import common.INT\n}"
    assert accepts(sg.Grammar(grammar), "42")
    assert not accepts(sg.Grammar(grammar), "x")
