"""What may be empty in a grammar: strings, terminals, repeats of these. Lark refuses such; sets of texts judge."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from random import Random

import pytest
from judges.guides import BYTES

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.patterns.empty_texts import NOTHING, without_empty
from structgen.compiler.patterns.lower import regex_to_dfa
from structgen.compiler.patterns.parser import parse
from structgen.errors import DefinitionError, GrammarWarning

LONGEST = 4
LETTERS = "abc"

#: The texts of a part, up to the longest, from those of the rules.
Meaning = Callable[[dict[str, frozenset[str]]], frozenset[str]]
Part = tuple[str, Meaning]


def short(texts: Iterator[str]) -> frozenset[str]:
    return frozenset(text for text in texts if len(text) <= LONGEST)


def joined(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    return short(a + b for a, b in itertools.product(first, second))


def times(texts: frozenset[str], least: int, most: int) -> frozenset[str]:
    found, power = set[str](), frozenset([""])
    for n in range(min(most, least + LONGEST + 1) + 1):
        found |= power if n >= least else set()
        power = joined(power, texts)
    return frozenset(found)


def constant(text: str, means: frozenset[str]) -> Part:
    return text, lambda _: means


def random_part(random: Random, atoms: list[Part], depth: int) -> Part:
    kind = random.choice(["atom", "atom", "sequence", "choice", "count"] if depth else ["atom"])
    if kind == "atom":
        return random.choice(atoms)
    (a, of_a), (b, of_b) = (random_part(random, atoms, depth - 1) for _ in range(2))
    if kind == "sequence":
        return f"({a} {b})", lambda rules: joined(of_a(rules), of_b(rules))
    if kind == "choice":
        return f"({a} | {b})", lambda rules: of_a(rules) | of_b(rules)
    sign, least, most = random.choice(
        [("?", 0, 1), ("*", 0, 99), ("+", 1, 99), ("{2}", 2, 2), ("{1,}", 1, 99), ("{,2}", 0, 2), ("{1,2}", 1, 2)]
    )
    return f"({a}){sign}", lambda rules: times(of_a(rules), least, most)


def random_grammar(random: Random) -> tuple[str, frozenset[str]]:
    """A grammar, and its texts up to the longest. Each letter is of one terminal, so that no lexeme hides another."""
    atoms = [constant('""', frozenset([""]))]
    terminals = []
    for letter in LETTERS:
        form = random.choice(["string", "string", f'"{letter}"?', f"/{letter}{{0,1}}/", f'"" | "{letter}"'])
        if form == "string":
            atoms.append(constant(f'"{letter}"', frozenset([letter])))
        else:
            terminals.append(f"{letter.upper()}: {form}")
            atoms.append(constant(letter.upper(), frozenset(["", letter])))
    names = ["start", "p", "q"]
    inner: list[Part] = [(name, lambda rules, name=name: rules[name]) for name in names[1:]]  # type: ignore[misc]
    rules = {name: random_part(random, atoms + inner, 3) for name in names}
    texts = dict.fromkeys(names, frozenset[str]())
    while (after := {name: means(texts) for name, (_, means) in rules.items()}) != texts:
        texts = after
    return "\n".join([*(f"{name}: {text}" for name, (text, _) in rules.items()), *terminals]), texts["start"]


def test_random_grammars_have_the_texts_of_their_rules() -> None:
    random, judged = Random(4), 0
    texts = ["".join(letters) for n in range(LONGEST + 1) for letters in itertools.product(LETTERS, repeat=n)]
    for _ in range(400):
        grammar, expected = random_grammar(random)
        try:
            index = sg.compile(sg.Grammar(grammar, strict=True), BYTES, eager=False)
        except sg.Error:  # ambiguous, or without a text
            continue
        assert {text for text in texts if index.match(text.encode()).accepted} == expected, grammar
        judged += 1
    assert judged > 60


@pytest.mark.parametrize(
    ("grammar", "accepted", "refused"),
    [
        ('start: A "b"\nA: /x*/', ["b", "xxb"], ["", "x"]),
        ("start: A*\nA: /a?/", ["", "a", "aaa"], ["b"]),
        ('start: (a b)*\na: "a"*\nb: "b"?', ["", "ab", "ba", "abba"], ["c"]),
        ('start: a\na: NOTHING a "x" | "" \nNOTHING: ""', ["", "x", "xx"], ["y"]),
        ("start: " + "(" * 30 + '"a"' + ")*" * 30 + ' "b"', ["b", "aab"], ["", "a"]),
        ('start: "x" "y"\n%ignore /[ ]*/', ["xy", "x y", " x  y "], ["x"]),
        ('start: "x" "y"\n%ignore ""', ["xy"], ["x y"]),
        ('start: item{2,3}\nitem: "a" ";"', ["a;a;", "a;a;a;"], ["a;", "a;a;a;a;"]),
        ('start: pair{"a"}{2}\npair{x}: x x', ["aaaa"], ["aa"]),
        ('start: A // {2}\nA: "a".."c"{2,} /x{2}/{1} "{2}"', ["abxx{2}"], ["axx{2}", "abx{2}"]),
    ],
)
def test_grammars(grammar: str, accepted: list[str], refused: list[str]) -> None:
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    for text in [*accepted, *refused]:
        assert index.match(text.encode()).accepted is (text in accepted), text


@pytest.mark.parametrize(
    "pattern", ["a*", "a?b?", "(a|)(b|ba)?", "(a*b?){2,3}", "(|a){1,2}(c|)", "()", "(a{0}|)*", "a*?b*?"]
)
def test_patterns_without_the_empty_text(pattern: str) -> None:
    others = without_empty(parse(pattern))
    assert others is not None
    texts = ["".join(letters) for n in range(5) for letters in itertools.product("abc", repeat=n)]
    expected = {text for text in texts if text and re.fullmatch(pattern, text)}
    assert (others is NOTHING) == (not expected)
    if expected:
        dfa = regex_to_dfa(others, Meter(Budget()))
        ends = ((text, reduce(lambda state, byte: dfa.table[state, dfa.classes[byte]] if state >= 0 else -1,
                              text.encode(), dfa.start)) for text in texts)  # fmt: skip
        assert {text for text, end in ends if end >= 0 and dfa.accepting[end]} == expected


@pytest.mark.parametrize("pattern", ["a", "a|b+", "(?=a)a?", r"a*\b"])
def test_patterns_that_are_not_always_empty_are_left(pattern: str) -> None:
    assert without_empty(parse(pattern)) is None


def test_conflicts_that_lark_has_are_decided_as_before() -> None:
    grammar = 'start: s\ns: "i" s | "i" s "e" s | "x" |'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        assert sg.compile(sg.Grammar(grammar), BYTES, eager=False).match(b"iie").accepted
    with pytest.raises(DefinitionError, match="is not LALR"):
        sg.compile(sg.Grammar(grammar, strict=True), BYTES, eager=False)


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ("start: FOO\nFOO: %json {}", "the terminal FOO holds JSON, which is no text for a lexer"),
        ("start: FOO\nFOO: <|x|>", "the terminal FOO holds TOKEN_X"),
        ("start: /a/l", r"has a flag that is none: .* \(line 1, column 8: /a/l of start\)"),
        ('start: A\nA: "d".."a"', r"ends before it begins \(line 2, column 4: A\)"),
        ("start: X\nX[lazy]: /a+/", r"an attribute of .* is not read \(line 2, column 2\)"),
        ('root ::= "a"', r"::= of GBNF and EBNF is not read \(line 1, column 6\)\. Use sg\.Gbnf"),
        ('%llguidance {"skip_repetition": "once"}\nstart: "a"', "'skip_repetition' with \"once\" is not honoured"),
        ('%llguidance {"allow_invalid_utf8": true}\nstart: "a"', "'allow_invalid_utf8' with true"),
        ('%llguidance {"other": 1}\nstart: "a"', "'other' with 1 is not honoured"),
        ('%llguidance 1\nstart: "a"', "followed by no object"),
        ('%grammar_options {"allow_initial_skip": false}\nstart: "a"', "'allow_initial_skip' with false"),
        ('start: "x"{3,2}', "Bad Range"),
    ],
)
def test_notations_of_others_are_refused_by_name(grammar: str, says: str) -> None:
    with pytest.raises(sg.Error, match=says):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False)


def test_options_of_xgrammar_are_read_as_llguidances() -> None:
    text = '%grammar_options {"allow_initial_skip": false}\n%grammar_options {"allow_initial_skip": true}\n'
    index = sg.compile(sg.Grammar(text + 'start: "a" "b"\n%ignore " "'), BYTES, eager=False)
    assert index.match(b" a b").accepted
    assert not index.match(b" a").accepted


#: What is ignored once, and of which letters its texts are.
ONCE = {
    'start: "a" "c"\n%ignore /[ -]{1,2}/': "ac -",
    'start: x+ "c"?\nx: "a" | "b" x "b"\n%ignore " "': "abc ",
    "start: (W | N)*\nW: /[ab]+ ?/\nN: /c/\n%ignore /  ?/": "abc ",
    'start: start "," "a" | "a" "b"?\n%ignore / |-/': "a,b -",
    'start: "if" "a" | W\nW: /[a-e]+/\n%ignore " "': "ifa ",
    'start: x y\nx: "a"?\ny: | "b" y\n%ignore " "': "ab ",
}


@pytest.mark.parametrize("grammar", ONCE)
def test_what_is_ignored_once(grammar: str) -> None:
    """As by llguidance, but at the beginning and at the end, where nothing is ignored there."""
    llguidance = pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")
    tokenizer, text = llguidance.LLTokenizer("byte"), '%llguidance { "ignore_once": true }\n' + grammar
    definitions = [sg.Grammar(text, ambiguity=each) for each in ("resolve", "all")]
    indexes = [sg.compile(each, sg.Vocabulary.bytewise(), eager=False) for each in definitions]
    for size in range(6):
        for each in map("".join, itertools.product(ONCE[grammar], repeat=size)):
            if each[:1] in (" ", "-") or each[-1:] in (" ", "-"):
                continue
            matcher = llguidance.LLMatcher(tokenizer, text, log_level=0)
            judged = matcher.try_consume_tokens([*each.encode()]) == size and matcher.is_accepting()
            assert [index.match(each.encode()).accepted for index in indexes] == [judged] * 2, each


def test_what_is_ignored_once_in_masks() -> None:
    """As where rules say where it may stand, here by hand."""
    tokens = [*(bytes([i]) for i in range(256)), b"a ", b" b", b"  ", b" b ", b"b a", None]
    vocabulary = sg.Vocabulary.from_bytes(tokens, eos_ids=[261])
    once = sg.Grammar('%llguidance {"ignore_once": true}\nstart: "a" "b" start | "a"\n%ignore WS\nWS: " "')
    by_hand = sg.Grammar('start: I? x\nx: "a" I? "b" I? x | "a" I?\nI: " "')
    indexes = [sg.compile(each, vocabulary, eager=False) for each in (once, by_hand)]
    for size in range(5):
        for text in map(bytes, itertools.product(b"ab ", repeat=size)):
            guides = [sg.Guide(index) for index in indexes]
            read = [all(map(guide.advance, text)) for guide in guides]
            assert read[0] == read[1]
            found, expected = ([t for t in range(262) if guide.allows(t)] for guide in guides)
            assert not read[0] or found == expected, text


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ('start: "a" "b"\n%ignore " "\n%ignore "-"', "the grammar ignores several"),
        ('start: "a" WS "b"\nWS: " "\n%ignore WS', "WS is ignored once, and a rule holds it"),
        ('start: x "b"\nx[capture]: "a"\n%ignore " "', "captures beside ignore_once"),
    ],
)
def test_what_is_not_ignored_once(grammar: str, says: str) -> None:
    with pytest.raises(sg.Error, match=says):
        sg.compile(sg.Grammar('%llguidance {"ignore_once": true}\n' + grammar), sg.Vocabulary.bytewise())
