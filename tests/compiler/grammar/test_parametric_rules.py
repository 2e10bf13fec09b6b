"""Rules with a parameter of 64 bits, ``p::set_bit(0) %if ...``: sets of texts judge, and llguidance does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES, EOS, allowed

import structgen as sg
from structgen.budget import Budget
from structgen.errors import BudgetExceededError, DefinitionError

PERMUTATION = 'start: perm::0x0\nperm::_: "" %if is_ones([0:4])\n' + "\n".join(
    f'  | "{letter}" perm::set_bit({bit}) %if bit_clear({bit})' for bit, letter in enumerate("abcd")
)


def letters(alphabet: str, most: int) -> list[str]:
    return ["".join(each) for n in range(most + 1) for each in itertools.product(alphabet, repeat=n)]


def matches(grammar: str, text: str) -> bool:
    return bool(sg.compile(sg.Grammar(grammar), BYTES, eager=False).match(text.encode()).accepted)


def test_permutations() -> None:
    index = sg.compile(sg.Grammar(PERMUTATION), BYTES, eager=False)
    for text in letters("abcd", 5):
        assert index.match(text.encode()).accepted is (sorted(text) == [*"abcd"]), text
    guide = sg.Guide(index)
    guide.advance(ord("c"))
    assert allowed(guide) == [*b"abd"]


CASES: list[tuple[str, str, int, Callable[[str], bool]]] = [
    (
        'start: p::0\np::_: "" %if is_ones([0:3]) | "a" p::set_bit(0) | "b" p::set_bit(1) | "c" p::set_bit(2)',
        "abc", 5, lambda text: {*text} == {*"abc"},
    ),
    (
        'start  : aa::0\naa::_  : "b" aa::incr(_)    %if lt(_, 4)\n       | bb::_\n'
        'bb::_  : "a" bb::incr(_)    %if lt(_, 4)\n       | ""',
        "ab", 6, lambda text: "ab" not in text and len(text) <= 4,
    ),
    (
        'start  : lst::0x0 "."\nlst::_ : "a" lst::incr([0:3])  %if lt([0:3], 2) // "a" %if\n'
        '       | "b" lst::incr([3:6])  %if lt([3:6], 1)\n       | ""',
        "ab.", 5,
        lambda text: text[-1:] == "." and text.count(".") == 1 and text.count("a") < 3 and text.count("b") < 2,
    ),
    (
        'start: s::0\ns::_: "" %if bit_count_ge(_, 1) | "a" s::set_bit(0) %if and(bit_clear(0), bit_count_lt(_, 2))'
        ' | "b" s::set_bit(1) %if and(bit_clear(1), bit_count_lt(_, 2))'
        ' | "c" s::set_bit(2) %if and(bit_clear(2), bit_count_lt(_, 2))',
        "abc", 4, lambda text: 1 <= len(text) <= 2 and len({*text}) == len(text),
    ),
    (
        'start: p::3\np::_: "a" p::decr([0:2]) %if gt([0:2],0) | "" %if is_zeros([0:2])',
        "a", 6, lambda text: text == "aaa",
    ),
    # In groups, with counts, and where nothing is left of a group.
    (
        'start: p::0\np::_ : "a" ("b" %if bit_set(0) | "c") p::set_bit(0) | ""',
        "abc", 6, lambda text: text == "" or (text.startswith("ac") and set(zip(text[2::2], text[3::2], strict=False))
                                             <= {("a", "b"), ("a", "c")} and len(text) % 2 == 0),
    ),
    (
        'start: p::0\np::_ : "a" ("b" %if bit_set(0))? "c" | "d" ("b" %if bit_set(0)){2}',
        "abcd", 4, lambda text: text == "ac",
    ),
    # A parameter that doesn't depend on the one before, of which llguidance panics.
    ('start: p::1\np::_ : "a" p::2 %if bit_set(0) | "b" %if bit_set(1)', "ab", 4, lambda text: text == "ab"),
    ('start: p::1 | q::1\np::_ : "a" q::incr(_) "c"\nq::_ : "b" %if eq(_, 1)', "abc", 3, lambda text: text == "b"),
    ('start: p::1\np::_ : "a" (q::incr(_))* "c"\nq::_ : "b" %if eq(_, 1)', "abc", 4, lambda text: text == "ac"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_texts(case: int) -> None:
    grammar, alphabet, most, expected = CASES[case]
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    texts = letters(alphabet, most)
    assert [text for text in texts if index.match(text.encode()).accepted] == [*filter(expected, texts)]


def random_condition(random: Random, depth: int = 2) -> str:
    bits = random.choice(["_", "[0:2]", "[1:3]", "[0:4]"])
    kinds = ["bit_set", "bit_clear", "is_ones", "is_zeros", "compare", "count", "true"]
    kind = random.choice([*kinds, "and", "or", "not"] if depth else kinds)
    if kind in ("and", "or"):
        return f"{kind}({random_condition(random, depth - 1)}, {random_condition(random, depth - 1)})"
    if kind == "not":
        return f"not({random_condition(random, depth - 1)})"
    if kind in ("bit_set", "bit_clear"):
        return f"{kind}({random.randrange(4)})"
    if kind in ("is_ones", "is_zeros"):
        return f"{kind}({bits})"
    name = random.choice(["eq", "ne", "lt", "le", "gt", "ge"])
    if kind == "compare":
        return f"{name}({bits}, {random.randrange(5)})"
    return "true" if kind == "true" else f"bit_count_{name}({bits}, {random.randrange(4)})"


def random_change(random: Random) -> str:
    bit, bits = random.randrange(4), random.choice(["[0:2]", "[1:3]", "[2:4]"])
    return random.choice(
        ["_", f"set_bit({bit})", f"clear_bit({bit})", f"bit_and({random.randrange(16)})", f"bit_or(0x{bit})",
         f"incr({bits})", f"decr({bits})"]
    )  # fmt: skip


def random_rules(random: Random) -> str:
    """Rules whose alternatives begin with letters of their own."""
    rules = []
    for name in "pq":
        parts = [
            f'"{letter}" {random.choice("pq")}::{random_change(random)} %if {random_condition(random)}'
            for letter in random.sample("abc", 2)
        ]
        end = f'"." %if {random_condition(random)}'
        rules.append(f"{name}::_: {' | '.join([*parts, end])}")
    return "\n".join([f"start: {random.choice('pq')}::{random.randrange(16)}", *rules])


def peer() -> Any:
    return pytest.importorskip("llguidance", reason="the layout's other implementation is not installed")


@pytest.mark.nightly
def test_llguidance_reads_random_rules_alike() -> None:
    llguidance, random, judged = peer(), Random(8), 0
    tokens, texts = llguidance.LLTokenizer("byte"), [text + "." for text in letters("abc", 4)]
    for _ in range(60):
        grammar = random_rules(random)
        try:
            index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
        except sg.Error as error:  # no text: then it has none there
            assert isinstance(error, sg.errors.EmptyLanguageError), grammar  # noqa: PT017
            index = None
        for text in texts:
            matcher = llguidance.LLMatcher(tokens, grammar, log_level=0)
            expected = matcher.try_consume_tokens([*text.encode()]) == len(text) and matcher.is_accepting()
            assert (index is not None and index.match(text.encode()).accepted) is expected, (grammar, text)
            judged += expected
    assert judged > 200


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ('start: p::_\np::_: "a"', r"has none to make another one of \(line 1, column 8\)"),
        ('start: p::0\np: "a"', "no rule p has a parameter"),
        ('start: p::0\np::_: "a" %if eq([3:1], 1)', r"no bits \[3:1\] \(line 2"),
        ('start: p::0\np::_: "a" %if bit_set(64)', "64 is more than 63"),
        ('start: p::18446744073709551616\np::_: "a"', "is more than 18446744073709551615"),
        ('start: p::0\np::_: "a" %if even(_)', r"found 'even' where a condition is to be"),
        ('start: p::0\np::_: "a" %if true "b"', "%if stands behind all of an alternative"),
        ('start: "a" %if true', "for alternatives of rules that have a parameter"),
        ('start: p::0\np::_: ("a"', r"\( is never closed"),
        ('start: p::0\np::_: "a"\np::_: "b"', "defined twice"),
        ('start: p::0\np::_: "a" p::less(_)', "found 'less' where a number"),
    ],
)
def test_what_is_refused(grammar: str, says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False)


@pytest.mark.parametrize(
    "grammar",
    [
        'start: p::0\np::_: "a" p::incr(_) | ""',  # 2^64 rules
        "start: p::0\np::_: " + "(" * 200 + '"a"' + ")" * 200,
        'start: p::0\np::_: "a" %if ' + "not(" * 200 + "true" + ")" * 200,
    ],
)
def test_rules_keep_to_the_budget(grammar: str) -> None:
    with pytest.raises(BudgetExceededError):
        sg.compile(sg.Grammar(grammar), BYTES, eager=False, budget=Budget.request)


def test_colons_in_texts_are_texts() -> None:
    assert matches('start: "std::x" /a::b/ // p::0', "std::xa::b")


def test_parameters_in_a_larger_grammar() -> None:
    grammar = """
        start: "[" list::0 "]" | /n(ot)?/ & X
        list::_: item list::incr([0:2]) %if lt([0:2], 2)   // at most
               | ""
        ?item: WORD{1,2} ";"
        WORD: /[a-z]+/ & ~"no"
        X: "x"
        %ignore " "
    """.replace(" & X", "")
    index = sg.compile(sg.Grammar(grammar), BYTES, eager=False)
    accepted = {"[]", "[a;]", "[a b; c ;]", "n", "not"}
    for text in [*accepted, "[a;b;c;]", "[a b c;]", "[1;]"]:
        assert index.match(text.encode()).accepted is (text in accepted), text
    guide = sg.Guide(index)
    assert all(map(guide.advance, b"[a;b;"))
    assert allowed(guide) == [*b" ]"]
    guide.advance(ord("]"))
    assert EOS in allowed(guide)
