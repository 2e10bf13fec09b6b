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
    "words": 'start: (A | B)+\nA: /[ab]+/ & ~"ab"\nB: "ab"',
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


@pytest.mark.nightly
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
    inner, tail = 'start: A+\nA: "a" | "ab"', "b?a"
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


@pytest.mark.nightly
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


#: Inner grammars that may be empty, and those of the same texts but for the empty one.
EMPTY = {
    'start: "b"?': 'start: "b"',
    'start: ("b" "a")*': 'start: ("b" "a")+',
    "start: /(ab|c)*/": "start: /(ab|c)+/",
    "start: A B\nA: /a?/\nB: /b?c?/": "start: A B | A | B\nA: /a/\nB: /bc?|c/",
    'start: x*\nx: "a" | "c" x "b"': 'start: x+\nx: "a" | "c" x "b"',
    'start: ("(" start ")")?': 'start: "()" | "(" start ")"',
}
#: Grammars around them, and the same with rules that say where they are left out.
OUTER = {
    'start: "a" X "c"': 'start: "a" X? "c"',
    "start: X": "start: X?",
    'start: (X "c")*': 'start: (X? "c")*',
    'start: "a" x "b"\nx: X | "c"\n%ignore " "': 'start: "a" x? "b"\nx: X | "c"\n%ignore " "',
    'start: "a" X X "c"': 'start: "a" X? X? "c"',
    'start: (X | "a")* "b"': 'start: (X | "a")* "b"',
}


@pytest.mark.parametrize("inner", EMPTY)
@pytest.mark.parametrize("outer", OUTER)
def test_a_grammar_that_may_be_empty_is_left_out(outer: str, inner: str) -> None:
    """As where the rules around it say so, in texts and in masks."""
    tokens = [*(bytes([i]) for i in range(256)), b"ab", b"ba", b"abc", b"b ", b" a", b"()", b"(ac", None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[len(tokens) - 1])
    other = sg.Grammar(OUTER[outer].replace("X", f"%lark {{\n{EMPTY[inner]}\n}}"), ambiguity="all")
    given = sg.Grammar(outer.replace("X", "@inner"), definitions={"INNER": sg.Grammar(inner)}, ambiguity="all")
    written = sg.Grammar(outer.replace("X", f"%lark {{\n{inner}\n}}"), ambiguity="all")
    expected = sg.compile(other, vocabulary, eager=False)
    for index in (sg.compile(each, vocabulary, eager=False) for each in (given, written)):
        for text in texts("abc" + "()" * ("(" in inner) + " " * (" " in outer), 4):
            assert index.match(text.encode()).accepted is expected.match(text.encode()).accepted, text
            guides = sg.Guide(index), sg.Guide(expected)
            if all(guides[1].advance(byte) for byte in text.encode()):
                assert all(map(guides[0].advance, text.encode()))
                assert allowed(guides[0]) == allowed(guides[1]), text


@pytest.mark.parametrize("most", [0, 2, 3])
def test_a_grammar_with_a_budget_of_tokens_that_may_be_empty(most: int) -> None:
    index = sg.compile(sg.Grammar(f'start: "a" x "b"\nx[max_tokens={most}]: %lark {{ start: "a"* }}'), BYTES)
    for count in range(6):
        guide = sg.Guide(index)
        assert all(map(guide.advance, b"a" * (count + 1) + b"b")) is (count <= most)


def test_where_llguidance_leaves_a_grammar_out() -> None:
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    tokens = llguidance.LLTokenizer("byte")
    for inner in ('start: "b"?', 'start: ("b" "a")*', "start: A B\nA: /a?/\nB: /b?/"):
        for outer in ('"<" X ">"', '("<" X ">")*', '"<" X X ">"'):
            grammar = "start: " + outer.replace("X", f"%lark {{\n{inner}\n}}")
            index = sg.compile(sg.Grammar(grammar, ambiguity="all"), BYTES, eager=False)
            for text in ("<" + more for more in (*texts("ab<>", 3), "><>", "><ba>", "baba>", "ba><ba>", "ab>")):
                matcher = llguidance.LLMatcher(tokens, grammar, log_level=0)
                judged = matcher.try_consume_tokens([*text.encode()]) == len(text) and matcher.is_accepting()
                assert index.match(text.encode()).accepted is judged, (grammar, text)


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ("start: @other", r"there is no grammar @other.*definitions=\{'OTHER'"),
        ('start: %lark { start: "a"', "%lark { is never closed"),
        ('start: "a" %lark start', "%lark without braces"),
        ('start: A\nA: %lark { start: "x" }', "holds LARK, which is no text for a lexer"),
        ('start: %lark { start: "" }', "has the empty text"),
        ('start: %lark { begin: "x" }', "there is no rule 'start'"),
        ("start: %lark { start: <|x|> }", "which nothing lexes"),
    ],
)
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
    for _ in range(15):
        grammar = sg.Grammar('start: "a" X | "b"', definitions={"X": grammar})
    with pytest.raises(BudgetExceededError, match="16 deep"):
        sg.Grammar("start: X", definitions={"X": grammar})
    with pytest.raises(BudgetExceededError, match="16 deep"):
        sg.compile(sg.Grammar('start: "a" X | "b"', definitions={"X": braces(15)}), BYTES, eager=False)
    assert sg.compile(grammar, BYTES, eager=False).match(b"aab").accepted
    assert sg.compile(braces(15), BYTES, eager=False).match(b"aab").accepted


def braces(levels: int) -> sg.Grammar:
    text = 'start: "b"'
    for _ in range(levels):
        text = f'start: "a" %lark {{\n{text}\n}} | "b"'
    return sg.Grammar(text)


def test_inner_grammars_that_hold_each_other_in_too_many_ways_are_refused() -> None:
    grammar = sg.Grammar('start: "a"')
    for _ in range(12):
        grammar = sg.Grammar("start: X Y Z", definitions=dict.fromkeys("XYZ", grammar))
    with pytest.raises(BudgetExceededError, match="more than 16,777,216 characters"):
        grammar.canonical()


def test_what_else_inner_grammars_refuse() -> None:
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
