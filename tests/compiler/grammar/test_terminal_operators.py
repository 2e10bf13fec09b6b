"""``&`` and ``~`` in terminals, as llguidance has them. Sets of texts judge, and llguidance does."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES, EOS, allowed

import structgen as sg
from structgen.errors import BudgetExceededError, DefinitionError

LONGEST = 4
TEXTS = ["".join(letters) for n in range(LONGEST + 1) for letters in itertools.product("ab", repeat=n)]

#: How tightly a part of a terminal binds: a choice, an intersection, a sequence, what is counted, one thing.
CHOICE, BOTH, SEQUENCE, COUNT, ATOM = range(5)

#: A part as it is written, how tightly it binds, and its texts.
Part = tuple[str, int, frozenset[str]]


def joined(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    return frozenset(a + b for a in first for b in second if len(a + b) <= LONGEST)


def repeated(texts: frozenset[str], least: int, most: int) -> frozenset[str]:
    found, power = set[str](), frozenset([""])
    for n in range(min(most, LONGEST + least) + 1):
        found |= power if n >= least else set()
        power = joined(power, texts)
    return frozenset(found)


def random_part(random: Random, depth: int) -> Part:
    kind = random.choice(["choice", "both", "sequence", "count", "not", "atom"] if depth else ["atom"])
    if kind == "atom":
        text = random.choice(["a", "b", "ab"])
        pattern, texts = random.choice(
            [(f'"{text}"', {text}), ("/[ab]/", {"a", "b"}), ("/[ab]*/", set(TEXTS)), ("/a?b?/", {"", "a", "b", "ab"})]
        )
        return pattern, ATOM, frozenset(texts)
    a, b = (random_part(random, depth - 1) for _ in range(2))
    if kind == "not":
        return f"~{within(a, ATOM)}", COUNT, frozenset(TEXTS) - a[2]
    if kind == "count":
        sign, least, most = random.choice([("?", 0, 1), ("*", 0, 9), ("+", 1, 9), ("{2}", 2, 2), ("{1,2}", 1, 2)])
        # A complement is counted as a whole.
        inner = a[0] if a[0].startswith("~") and a[1] == COUNT else within(a, ATOM)
        return inner + sign, SEQUENCE, repeated(a[2], least, most)
    if kind == "sequence":
        return f"{within(a, SEQUENCE)} {within(b, SEQUENCE)}", SEQUENCE, joined(a[2], b[2])
    if kind == "both":
        return f"{within(a, BOTH)} & {within(b, BOTH)}", BOTH, a[2] & b[2]
    return f"{within(a, CHOICE)} | {within(b, CHOICE)}", CHOICE, a[2] | b[2]


def within(part: Part, tightness: int) -> str:
    return part[0] if part[1] >= tightness else f"({part[0]})"


def random_terminals(seed: int, number: int) -> Iterator[tuple[str, frozenset[str]]]:
    """Grammars of a terminal with operators, and its texts over two letters."""
    random = Random(seed)
    while number:
        text, tightness, texts = random_part(random, 3)
        if texts and ("&" in text or "~" in text):
            number -= 1
            yield f"start: A\nA: /[ab]{{0,{LONGEST}}}/ & {within((text, tightness, texts), BOTH)}", texts


def test_random_terminals_have_the_texts_of_their_operators() -> None:
    for grammar, texts in random_terminals(1, 150):
        index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
        assert {text for text in TEXTS if index.match(text.encode()).accepted} == texts, grammar
        assert not index.match(b"a" * (LONGEST + 1)).accepted


def test_masks_allow_what_some_text_goes_on_with() -> None:
    for grammar, texts in random_terminals(2, 40):
        guide = sg.Guide(sg.compile(sg.Grammar(grammar), BYTES, eager=False))
        for prefix in {text[:n] for text in texts for n in range(len(text) + 1)}:
            there = guide.fork()
            assert all(map(there.advance, prefix.encode()))
            after = {ord(text[len(prefix)]) for text in texts if text.startswith(prefix) and text != prefix}
            assert set(allowed(there)) == after | ({EOS} if prefix in texts else set()), (grammar, prefix)


def peer() -> Any:
    return pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")


def test_llguidance_reads_random_terminals_alike() -> None:
    llguidance = peer()
    tokens = llguidance.LLTokenizer("byte")
    for grammar, _ in random_terminals(3, 60):
        index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
        for text in TEXTS:
            matcher = llguidance.LLMatcher(tokens, llguidance.LLMatcher.grammar_from_lark(grammar), log_level=0)
            read = matcher.try_consume_tokens(list(text.encode()))
            expected = read == len(text) and matcher.is_accepting()
            assert index.match(text.encode()).accepted is expected, (grammar, text)


@pytest.mark.parametrize(
    ("grammar", "accepted", "refused"),
    [
        ('start: A "x"\nA: /[a-c]+/ & ~/c+/', ["abx", "ccbx"], ["x", "ccx"]),
        # identifiers that are no keyword
        ('start: (A | B) "("\nA: /[a-z]+/ & ~"if"\nB: "if"', ["if(", "iff(", "i("], ["(", "x"]),
        ('start: A*\nA: CNAME "=" & ~KEY\n%import common.CNAME\nKEY: "if=" | "in="', ["i=ix="], ["if=", "in="]),
        ("start: A\nA: /[a-z]+/i & ~/if/i", ["iff", "I"], ["if", "IF"]),
        ("start: A\nA: /.+/ & ~/.*é.*/", ["è"], ["aéb"]),
        ('start: A\nA: /[ab]*/ & ~/(.*)bb(.*)/ // & ~ \n | "c" & ~"d" # no |', ["abab", "c", ""], ["abba"]),
        ('start: A\nA: ~"a"{2} & /[ab]*/', ["ab", "b", "aaa"], ["a"]),
        ('start: A\nA: "x" ~("a" | "b" "b") "y" & /[abxy]*/', ["xy", "xaay"], ["xay", "xbby"]),
        ('start: "a" "b"\n%ignore /[ _]+/ & ~/_*/', ["ab", "a b", "a _b"], ["a_b"]),
        ('start: A\nA: ~"~" & "&" | "~" "&"', ["&", "~&"], ["~"]),
        ('start: A\nA: B~2 & ~/aa/\nB: "a" | "b"', ["ab", "bb"], ["aa", "a"]),
        # regexes with alternatives, which Lark joins without brackets
        ("start: A\nA: /a|b/ & /b|c/", ["b"], ["a", "c", "ab"]),
        ("start: A\nA: ~/a|b/ & /[abc]/", ["c"], ["a", "b"]),
        ("start: A\nA: B & ~C\nB: /a|b/\nC: /b|c/", ["a"], ["b", "c"]),
        ("start: A\nA: (/a|b/) & (/b|c/i) | /x|y/", ["b", "x", "y"], ["a", "c", "C"]),
    ],
)
def test_grammars(grammar: str, accepted: list[str], refused: list[str]) -> None:
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    for text in [*accepted, *refused]:
        assert index.match(text.encode()).accepted is (text in accepted), text


def longest_matches(text: str) -> bool:
    """Whether a lexer for words but "if", "if" and words with a digit behind them takes all of a text."""
    at = 0
    while at < len(text):
        ends = [n for n in range(len(text), at, -1) if is_lexeme(text[at:n])]
        if not ends:
            return False
        at = ends[0]
    return True


def is_lexeme(text: str) -> bool:
    return set(text) <= set("if") or (set(text[:-1]) <= set("if") and len(text) > 1 and text[-1] == "1")


def test_the_longest_match_counts() -> None:
    grammar = 'start: (A | B | C)*\nA: /[if]+/ & ~"if"\nB: "if"\nC: /[if]+1/'
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    for text in ("".join(each) for n in range(6) for each in itertools.product("if1", repeat=n)):
        assert index.match(text.encode()).accepted is longest_matches(text), text


def test_a_match_of_a_higher_priority_counts() -> None:
    grammar = 'start: (A | B "x" | C)*\nA: /[a-z]+/ & ~/x.*/\nB.2: "if"\nC: "iff"'
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    assert index.match(b"ifx").accepted
    assert not index.match(b"iff").accepted


@pytest.mark.parametrize("start", ["b | ST", "b | (ST | x) b? | x", "(b ST)* b", "b | x", "b ST* | b ST+"])
def test_alternatives_without_texts(start: str) -> None:
    rules = f'start: {start}\nx[capture]: b? ST "c"\nb: "b"\nST: /a/? & /a{{2}}/\n%ignore ST\n'
    index = sg.compile(sg.Grammar(rules), BYTES, eager=False)
    texts = (b"b", b"", b"aa", b"ba", b"bb", b"bc", b"c")
    assert [index.match(text).accepted for text in texts] == [True] + 6 * [False]


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ("start: /a+/ & /b+/", r"& outside of a terminal .*\(line 1, column 13\)\. Give it a name in capital"),
        ('start: a\na: ~"b"', r"~ outside of a terminal"),
        ('start: A\nA: "a" & "b"', "matches nothing"),
        ("start: A\nA: /a(?=b)/ & /a/", "look-around"),
        ('start: A\nA: "a" & ~/\\ufdd1/', r"U\+FDD0 to U\+FDD5"),
        ('start: A\nA: "a" & ~"\ufdd1"', r"U\+FDD0 to U\+FDD5"),
    ],
)
def test_what_is_refused(grammar: str, says: str) -> None:
    with pytest.raises(sg.Error, match=says):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False)


def test_operators_keep_to_the_budget() -> None:
    grammar = "start: A\nA: ~/(?s:.*)a(?s:.){30}/ & ~/(?s:.*)b(?s:.){29}/"
    with pytest.raises(BudgetExceededError):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False, budget=sg.Budget(states=5_000))


def test_noncharacters_are_text_where_there_are_no_operators() -> None:
    index = sg.compile(sg.Grammar("start: A\nA: /\ufdd0+/"), BYTES, eager=False)
    assert index.match("\ufdd0\ufdd0".encode()).accepted


@pytest.mark.parametrize("body", ['"a" &', '& "a"', '("a" & ) | "b"', '"a" & & "b"', '"a" | "b" & // c'])
def test_operators_without_operands(body: str) -> None:
    with pytest.raises(DefinitionError, match=r"& has nothing on one of its sides \(line 3\)"):
        sg.compile(sg.Grammar(f"start: A\n\nA: {body}\n"), BYTES, eager=False)


@pytest.mark.parametrize("body", ["~ & /x/", "/x/ & ~", "(~) & /x/", "~~ & /x/", "~ // c\n & /x/"])
def test_complements_of_nothing(body: str) -> None:
    with pytest.raises(DefinitionError, match=r"~ has nothing behind it \(line [34]\)\. Write ~A"):
        sg.compile(sg.Grammar(f"start: A\n\nA: {body}\n"), BYTES, eager=False)


def test_long_chains_of_operators() -> None:
    index = sg.compile(sg.Grammar("start: A\nA: " + " & ".join(["/a|b/"] * 1_000)), BYTES, eager=False)
    assert [index.match(text).accepted for text in (b"a", b"b", b"ab")] == [True, True, False]
