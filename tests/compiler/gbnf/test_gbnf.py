"""GBNF: the reader, what is refused, and masks, judged by an Earley recogniser over characters."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from judges import pushdown_oracle as oracle
from judges.gbnf_judge import Judge, random_grammar, random_texts, render
from judges.guides import EACH_BYTE
from judges.json_tokens import Speller, guides_along, mask_of, masks, takes
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.gbnf import automata, calls, interiors
from structgen.compiler.gbnf.compiler import compile_gbnf
from structgen.compiler.programs.program import Program
from structgen.compiler.programs.tables import to_tables
from structgen.definitions.loading import load_definitions
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, VocabularyError
from structgen.runtime.pushdown.machine import PushdownMachine

#: Tokens that cross rules, characters and the ends of quoted texts.
PIECES = [
    *(piece.encode() for piece in (
        "aa", "ab", "ba", "bc", "abc", "aaa", "cab", "éa", "aé", "☃☃", "😀a", "b☃", "é😀", "a b", "))", "((", ")*(",
        "1+", "+1", "12", '":', '",', '"}', '{"', "[[", "]]", '"]', "true", "1.", " 1", "\n1", "\n- ", "- a", "e4 ",
    )),
    b"\xc3", b"\xa9a", b"a\xe2\x98", b"\x83", b"\xf0\x9f", b"\x98\x80b", b"aaaaaaa",
]  # fmt: skip
EOS = 256 + len(PIECES) + 1
VOCABULARY = sg.Vocabulary.from_bytes([*EACH_BYTE, *PIECES, PIECES[0], None], eos_ids=[EOS])

JSON = r"""
root   ::= value
value  ::= (object | array | string | number | "true" | "false" | "null") ws
object ::= "{" ws (member ("," ws member)*)? "}"
member ::= string ws ":" ws value
array  ::= "[" ws (value ("," ws value)*)? "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= [ \t\n]*
"""

#: A grammar, texts of it, texts that are none.
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "sums of llama.cpp's kind": (
        r"""
        root  ::= (expr "=" ws term "\n")+
        expr  ::= term ([-+*/] term)*
        term  ::= name | num | "(" ws expr ")" ws
        name  ::= [a-z] [a-z0-9_]* ws
        num   ::= [0-9]+ ws
        ws    ::= [ \t]*
        """,
        ["1=2\n", "(1 +x_1)*3 = y\na=b\n", "((((1))))=(2)\n"],
        ["", "1=2", "1+=2\n", "(1=2)\n", "1 = 2\n\n", "((1)=2\n"],
    ),
    "json": (
        JSON,
        ['{"a": [1, -2.5e+7, {}], "é\\u00e9\\n": null}', '"😀"', "[ ]", "0 ", "[[[[]]]]", "[1,\n 2]"],
        ["", "[", "01", "[1,]", '"a', "{a: 1}", "[}", '"\t"', "nul", ' {"a" 1}'],
    ),
    "a list": ('root ::= ("- " item)+\nitem ::= [^\\n]+ "\\n"', ["- a\n", "- a\n- - é\n"], ["", "- \n", "- a", "-a\n"]),
    "moves of chess": (
        r"""
        root ::= (
            # the first one is numbered 1
            "1. " move " " move "\n"

            ([1-9] [0-9]? ". " move " " move "\n")+
        )
        move ::= (pawn | piece | castle) [+#]?
        # a pawn's capture begins with its file
        pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBQR])?
        piece ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
        castle ::= "O-O" "-O"?
        """,
        ["1. e4 e5\n2. Nf3 O-O\n", "1. O-O-O exd8=Q#\n10. Nbxd2 a1+\n"],
        ["1. e4 e5\n", "2. e4 e5\n3. e4 e5\n", "1. e9 e5\n2. e4 e5\n", "1. e4 e5\n2. O-O-O-O e5\n"],
    ),
    "a tail that calls": ('root ::= item ("," root)?\nitem ::= [a-z]+', ["a", "a,b,cd"], ["", "a,", ",a"]),
    "balanced, twice": ('root ::= a a\na ::= "(" a ")" | ""', ["", "()", "(())()", "()(())"], ["(", ")(", "()()()"]),
    "empty on the way": (
        'root ::= a b a "x"\na ::= "" | "(" root ")"\nb ::= "y"?',
        ["x", "yx", "(x)y(x)x"],
        ["(x", "y"],
    ),
    "an empty start": ('root ::= ""', [""], ["a"]),
    "counted": ("root ::= [a-c]{30,40}", ["a" * 30, "b" * 40], ["a" * 29, "a" * 41]),
    "counted calls": (
        'root ::= "[" (root ";"){30,31} "]" | "x"',
        ["x", "[" + "x;" * 30 + "]", "[" + "x;" * 30 + "[" + "x;" * 31 + "];]"],
        ["[" + "x;" * 29 + "]", "[" + "x;" * 32 + "]"],
    ),
    "counts that disagree": (
        'root ::= ("a" "b"?){30} ("a" | "c"){30,} "d"',
        ["a" * 60 + "d", "ab" * 30 + "c" * 31 + "d"],
        ["a" * 59 + "d"],
    ),
    "no texts in some alternatives": ('root ::= "a" | b\nb ::= "x" b | c "y"\nc ::= "c" c', ["a"], ["", "x", "c"]),
    "dangling else": (
        'root ::= "s" | "i" root ("e" root)?',
        ["s", "is", "ises", "iises", "iisese" + "s"],
        ["i", "se", "ises" + "es"],
    ),
    "dangling wide": ('root ::= "<" [^>]* ">" | "<" [^\\n]* "\\n"', ["<é>", "<>\n", "<☃>>\n"], ["<", "<>>", "<\n\n"]),
    "not deterministic": (
        'root ::= [ab]* "a" [ab]{20} "!" root?',
        ["a" * 21 + "!", "ab" * 11 + "a!"],
        ["a" * 20 + "!", "b" * 21 + "!"],
    ),
    "surrogates lie within": ("root ::= [\\uD000-\\uFFFF]", ["\ud000", "\ue000", "\uffff"], ["a", "\U00010000"]),
}

#: The right side of a rule, texts of it, texts that are none: what the reader makes of it.
RIGHT_SIDES: list[tuple[str, list[str], list[str]]] = [
    (r'"\n\t\r\\\"\[\]\-\x41\u00e9\U0001F600"', ['\n\t\r\\"[]-Aé😀'], []),
    ("[a-]", ["a", "-"], ["b"]),
    ("[-a]", ["a", "-"], ["b"]),
    ("[a-c-e]", ["b", "-", "e"], ["d"]),
    (r"[\]\-\\a]", ["]", "-", "\\", "a"], ["b"]),
    ("[+--]", ["+", ",", "-"], ["."]),
    (r"[a\-c]", ["a", "-", "c"], ["b"]),
    ("[^^]", ["a", "\n", "é"], ["^"]),
    ("[a^]", ["a", "^"], ["b"]),
    ("[\n\t]", ["\n", "\t"], ["n"]),
    ('"a\nb"', ["a\nb"], ["ab"]),
    (".", ["a", "\n", "😀", "\0"], ["", "aa"]),
    ('"ab"*', ["", "ab", "abab"], ["a", "abb"]),
    ('"ab"+', ["ab", "abab"], [""]),
    ('"ab" ?', ["", "ab"], ["abab"]),
    ('"a"{2}', ["aa"], ["a", "aaa"]),
    ('"a"{ 2 , }', ["aa", "aaaa"], ["a"]),
    ('"a"{2,3}', ["aa", "aaa"], ["a", "aaaa"]),
    ('"a"{0}', [""], ["a"]),
    ('"a"{0} "b"', ["b"], ["ab"]),
    ('"a"+?', ["", "a", "aaa"], ["b"]),
    ('"a"{2}*', ["", "aa", "aaaa"], ["a", "aaa"]),
    ('"a"{2,}{0,2}', ["", "aa", "aaa", "aaaaaaa"], ["a"]),
    ('("a"?){2,3}', ["", "a", "aaa"], ["aaaa"]),
    ('("a"*)*', ["", "a", "aaa"], ["b"]),
    ('"a" | "b" "c"', ["a", "bc"], ["ac", "b"]),
    ('"a" |\n  # and\n  "b"', ["a", "b"], ["ab"]),
    ('\n "a"', ["a"], [""]),
    ('("a"\n"b" # here: )\n)+', ["ab", "abab"], ["a"]),
    ('| "a"', ["", "a"], ["aa"]),
    ('"a" | | "b"', ["", "a", "b"], ["ab"]),
    ("()", [""], ["a"]),
    ("(a | (b))* a\na ::= \"a\"\nb ::= 'x'".replace("'", '"'), ["a", "xaa"], ["x"]),
    ('rule-1 rule_2\nrule-1 ::= "1"\r\nrule_2::="2"\r', ["12"], ["1"]),
    ('"a" # the end, and no line end', ["a"], [""]),
]

#: A grammar, the error, what it says.
REFUSED: list[tuple[str, type[sg.Error], str]] = [
    ("", DefinitionError, "has no rules"),
    ("# nothing\n", DefinitionError, "has no rules"),
    ('other ::= "a"', DefinitionError, "there is no rule root"),
    ("root ::= a", DefinitionError, r"the rule a is not defined \(line 1, column 10\)"),
    (
        'root ::= "a"\nb ::= "b"\nroot ::= "c"',
        DefinitionError,
        r"root is defined twice, first at line 1, column 1 \(line 3",
    ),
    ('root "a"', DefinitionError, r"expected ::= after root, found '\"' \(line 1, column 6\)"),
    ('root\n::= "a"', DefinitionError, "expected ::="),
    ('root ::= "a"\n  | "b"', DefinitionError, r"expected the name of a rule, found '\|' \(line 2, column 3\)"),
    ('root ::= "a" b ::= "c"\nb ::= "d"', DefinitionError, "found ':'"),
    ('root ::= ("a"', DefinitionError, r"never closed \(line 1, column 10\)"),
    ('root ::= ("a"\nb ::= "c"', DefinitionError, "found ':'"),
    ('root ::= "a")', DefinitionError, r"found '\)'"),
    ('root ::= "a', DefinitionError, r"never ends \(line 1, column 10\)"),
    ("root ::= [a", DefinitionError, "never ends"),
    ("root ::= []", DefinitionError, "empty class"),
    ("root ::= [^]", DefinitionError, "empty class"),
    ("root ::= [z-a]", DefinitionError, r"from U\+007A down to U\+0061 \(line 1, column 11\)"),
    (r'root ::= "\d"', DefinitionError, r"escape \\d is unknown \(line 1, column 11\)"),
    ('root ::= "\\', DefinitionError, "ends within an escape"),
    (r'root ::= "\x4"', DefinitionError, "takes 2 hexadecimal digits"),
    (r'root ::= "\u+123"', DefinitionError, "takes 4 hexadecimal digits"),
    (r'root ::= "\uD83D\uDE00"', DefinitionError, "surrogate"),
    ("root ::= [\ud800-\udfff]", DefinitionError, "surrogate"),
    (r'root ::= "\U00110000"', DefinitionError, r"no character U\+110000"),
    ('root ::= "\0"', DefinitionError, "NUL"),
    ("root ::= *", DefinitionError, "nothing before"),
    ('root ::= "a" | +', DefinitionError, "nothing before"),
    ('root ::= "a"{,3}', DefinitionError, r"expected a number, found ','.*\{0,n\} for up to n"),
    ('root ::= "a"{}', DefinitionError, "expected a number"),
    ('root ::= "a"{2', DefinitionError, "expected }"),
    ('root ::= "a"{3,2}', DefinitionError, "no number of turns"),
    ('root ::= "a"{-1}', DefinitionError, "expected a number"),
    ("root ::= 'a'", DefinitionError, 'found "\'"'),
    ('root ::= "a" root', EmptyLanguageError, "complete the rule root"),
    (r"root ::= [^\x00-\U0010FFFF]", EmptyLanguageError, "complete the rule root"),
]


def program_of(text: str, **budget: Any) -> Program:
    return compile_gbnf(sg.Gbnf(text), Meter(Budget(**budget)))


def compiled(text: str, eager: bool = False, **more: Any) -> sg.Index:
    return sg.compile(sg.Gbnf(text), VOCABULARY, eager=eager, **more)


def machine_of(text: str) -> PushdownMachine:
    return PushdownMachine(to_tables(program_of(text)), VOCABULARY)


class TestReading:
    @pytest.mark.parametrize(("right", "accepted", "rejected"), RIGHT_SIDES, ids=[r for r, _, _ in RIGHT_SIDES])
    def test_right_sides(self, right: str, accepted: list[str], rejected: list[str]) -> None:
        machine = machine_of(f"root ::= {right}")
        for text in accepted + rejected:
            assert machine.match(text.encode()).accepted == (text in accepted), text

    @pytest.mark.parametrize(
        ("text", "accepted", "rejected"),
        [
            ('root ::= root "a" | "b"', ["b", "baa"], ["", "a", "ab"]),
            ('root ::= a\na ::= "x"? b "c"\nb ::= ("y"* a) | "z"', ["zc", "xyyxzccc", "zcc"], ["z", "xz", "yzc"]),
            ('root ::= "a"\nunused ::= e unused\ne ::= ""', ["a"], ["", "aa"]),
            ('root ::= root ("+" | "-") term | term\nterm ::= [0-9]+', ["1", "12-3+4"], ["", "+1", "1-"]),
        ],
    )
    def test_rules_that_begin_with_themselves(self, text: str, accepted: list[str], rejected: list[str]) -> None:
        """As in an `Ebnf`, by themselves and as parts."""
        for definition in (sg.Gbnf(text), sg.Ebnf(text), sg.Gbnf(text) + ";"):
            index = sg.compile(definition, VOCABULARY, eager=False)
            end = "" if isinstance(definition, sg.Gbnf) else ";"
            for each in accepted + rejected:
                assert index.match((each + end).encode()).accepted == (each in accepted), each

    @pytest.mark.parametrize(("text", "kind", "says"), REFUSED, ids=[repr(text) for text, _, _ in REFUSED])
    def test_refused(self, text: str, kind: type[sg.Error], says: str) -> None:
        with pytest.raises(kind, match=says) as caught:
            program_of(text)
        assert type(caught.value) is kind
        assert caught.value.remedy

    def test_a_byte_order_mark_is_no_part_of_it(self) -> None:
        assert machine_of('\ufeffroot ::= "a"').match(b"a").accepted

    def test_another_start(self) -> None:
        index = sg.compile(sg.Gbnf('root ::= "a" b\nb ::= "b"', start="b"), VOCABULARY)
        assert index.match(b"b").accepted
        assert not index.match(b"ab").accepted


class TestDefinition:
    def test_canonical(self) -> None:
        text = 'root ::= "a"'
        assert sg.Gbnf(text) == sg.Gbnf(text, start="root")
        assert json.loads(sg.Gbnf(text).canonical()) == ["gbnf", "root", text]
        assert sg.Gbnf(text).canonical() != sg.Gbnf(text, start="a").canonical()

    def test_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "yes.gbnf"
        file.write_text('root ::= "yé"', encoding="utf-8")
        assert sg.Gbnf(file) == sg.Gbnf('root ::= "yé"')
        (named,) = load_definitions([file])
        assert (named.name, named.definition) == ("yes", sg.Gbnf(file))
        file.write_bytes(b'root ::= "\xff"')
        for read in (sg.Gbnf, lambda path: load_definitions([path])):
            with pytest.raises(DefinitionError):
                read(file)

    @pytest.mark.parametrize("wrong", [None, 3, b'root ::= "a"', ["a"]])
    def test_what_is_no_source(self, wrong: Any) -> None:
        with pytest.raises(DefinitionError, match="a grammar is a str"):
            sg.Gbnf(wrong)

    @pytest.mark.parametrize("wrong", ["", None, 1])
    def test_what_is_no_start(self, wrong: Any) -> None:
        with pytest.raises(DefinitionError, match="start is"):
            sg.Gbnf('root ::= "a"', start=wrong)


class TestCases:
    @pytest.mark.parametrize("name", CASES)
    def test_texts(self, name: str) -> None:
        text, accepted, rejected = CASES[name]
        index, speller, rng = compiled(text), Speller(VOCABULARY), Random(name)
        for each in accepted + rejected:
            data = each.encode()
            assert index.match(data).accepted == (each in accepted), each
            for tokens in (speller.spell(data), speller.spell(data, rng)):
                assert takes(index, tokens) == (each in accepted), each

    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.usefixtures("_widths")
    def test_masks_are_what_advance_lets_through(self, name: str) -> None:
        text, accepted, _ = CASES[name]
        index, rng = compiled(text), Random(name)
        for each in accepted[:3]:
            for guide in guides_along(index, Speller(VOCABULARY).spell(each.encode(), rng)):
                expected = np.array(
                    [index.machine.advance(guide.config, i) is not None for i in range(VOCABULARY.size)]
                )
                expected[list(VOCABULARY.eos_ids)] = guide.is_accepting()
                np.testing.assert_array_equal(mask_of(guide), expected)
                assert mask_of(guide).any(), "never stuck"

    @pytest.mark.parametrize("name", CASES)
    @pytest.mark.usefixtures("_widths")
    def test_the_same_masks_eagerly_from_a_file_and_from_the_cache(self, name: str, tmp_path: Path) -> None:
        text, accepted, _ = CASES[name]
        spelled = [Speller(VOCABULARY).spell(each.encode(), Random(each)) for each in accepted]
        lazy, eager = compiled(text), compiled(text, eager=True)
        expected = [masks(lazy, tokens) for tokens in spelled]
        cached = []
        for how in (True, False):
            folder = tmp_path / str(how)
            compiled(text, eager=how, cache=sg.Cache(folder))
            cached.append(compiled(text, eager=how, cache=sg.Cache(folder)))
            assert cached[-1].origin == "cache"
        for index in (eager, *cached, *(reloaded(each, tmp_path) for each in (lazy, eager))):
            known = index.machine.known_rows
            assert [masks(index, tokens) for tokens in spelled] == expected
            assert not index.complete or index.machine.known_rows == known, "it was all there"


def reloaded(index: sg.Index, folder: Path) -> sg.Index:
    index.save(folder / "index.sgx")
    VOCABULARY.shared_rows.clear()  # as in another process
    return sg.Index.load(folder / "index.sgx", VOCABULARY)


class TestRandomGrammars:
    """Both directions: what the judge accepts is accepted, what begins no text is no prefix."""

    @pytest.mark.parametrize("small", [False, True], ids=["as it is", "everything is large"])
    @pytest.mark.parametrize("seed", range(4))
    def test_texts_and_their_beginnings(self, seed: int, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """Once more with all that is done about large rules and wide states done to small ones."""
        if small:
            monkeypatch.setattr(interiors, "_WIDE", 1)
            monkeypatch.setattr(calls, "_COUNT_FROM", 2)
            monkeypatch.setattr(calls, "_FEW_TURNS", 2)
            monkeypatch.setattr(calls, "_BOUNDS", (6,))
            monkeypatch.setattr(automata, "_MANY", 4 + seed)
            monkeypatch.setattr(automata, "_BLOWN_UP", 0)
        seen = Counter[str]()
        for number in range(25):
            rng = Random(f"{seed} {number}")
            rules = random_grammar(rng)
            judge, text = Judge(rules), render(rules, rng)
            try:
                program = program_of(text)
            except EmptyLanguageError:
                assert judge.is_empty(), text
                continue
            assert not judge.is_empty(), text
            assert not oracle.dead_states(oracle.readable(program)), text
            if judge.size > 300:
                continue
            machine = PushdownMachine(to_tables(program), VOCABULARY)
            for data in random_texts(judge, rng, 5):
                found = machine.match(data)
                assert (found.consumed, found.accepted) == judge.verdict(data), (text, data)
                seen.update(texts=1, accepted=found.accepted, inside="inside" in program.names)
        assert seen["texts"] > 40
        assert seen["accepted"] > 15
        assert seen["inside"] > 0

    def test_rules_that_begin_with_themselves(self) -> None:
        rng, checked, accepted = Random(7), 0, 0
        while checked < 25:
            rules = random_grammar(rng)
            judge = Judge(rules)
            if not judge.is_left_recursive() or judge.is_empty() or judge.size > 300:
                continue
            machine = PushdownMachine(to_tables(program_of(text := render(rules, rng))), VOCABULARY)
            for data in random_texts(judge, rng, 5):
                found = machine.match(data)
                assert (found.consumed, found.accepted) == judge.verdict(data), (text, data)
                accepted += found.accepted
            checked += 1
        assert accepted > 20

    @pytest.mark.parametrize("seed", range(draws(6)))
    @pytest.mark.usefixtures("_widths")
    def test_masks(self, seed: int) -> None:
        """Every token of a vocabulary is allowed exactly if the judge says that some text goes on with it."""
        rng, checked = Random(seed), 0
        while checked < 3:
            rules = random_grammar(rng)
            judge = Judge(rules)
            if judge.is_empty() or judge.size > 200:
                continue
            lazy, eager = (compiled(render(rules), eager=how) for how in (False, True))
            for data in random_texts(judge, rng, 2):
                data = data[: judge.verdict(data)[0]][:10]
                np.testing.assert_array_equal(check_mask(lazy, judge, data), check_mask(eager, judge, data))
            checked += 1


def check_mask(index: sg.Index, judge: Judge, data: bytes) -> np.ndarray[Any, Any]:
    """The mask behind a beginning, against the judge."""
    guide = sg.Guide(index)
    for step in Speller(VOCABULARY).spell(data, Random(0)):
        assert guide.advance(step)
    mask = mask_of(guide)
    for each in range(VOCABULARY.size):
        token = VOCABULARY.token(each)
        if token is not None:
            assert mask[each] == (judge.verdict(data + token)[0] == len(data + token)), (data, token)
    assert mask[VOCABULARY.eos_ids[0]] == judge.verdict(data)[1]
    return mask


class TestPrograms:
    def threads(self, text: str, data: bytes) -> list[int]:
        """How deep the stacks are after a text."""
        machine = machine_of(text)
        threads = machine.follow(machine.start_threads, data)
        depths = []
        for _, _, frame in threads:
            depth = 0
            while frame is not None:
                depth, frame = depth + 1, frame.below
            depths.append(depth)
        return depths

    @pytest.mark.parametrize("text", [
        'root ::= item ("," root)?\nitem ::= [a-z]+',
        'root ::= item "," root | item\nitem ::= [a-z]+',
        'root ::= "" | item rest\nrest ::= "," root | ""\nitem ::= [a-z]+',
        'root ::= (item ",")* item\nitem ::= [a-z] item | [a-z]',
    ])  # fmt: skip
    def test_tail_calls_take_no_stack(self, text: str) -> None:
        assert max(self.threads(text, b"abc,def," * 200 + b"x" * 500)) <= 1

    def test_json_needs_one_thread(self) -> None:
        for length in range(len(document := b'{"a": [1.5, "x\\n", {"b" : null}], "c": true } ')):
            assert len(self.threads(JSON, document[:length])) == 1, document[:length]

    def test_nesting_costs_a_frame(self) -> None:
        assert self.threads(JSON, b"[" * 50_000) == [50_000 - 1] or self.threads(JSON, b"[" * 50_000) == [50_000]

    def test_quoted_texts_are_there_once(self) -> None:
        """However many rules have them, and whatever comes behind them."""
        quoted = '"\\"" [^\\"\\n]* "\\""'
        one = program_of(f"root ::= {quoted}")
        many = program_of("root ::= " + " ".join(f'"{c}:" {quoted}' for c in "abcdefgh"))
        assert many.names.count("inside") == one.names.count("inside") > 0

    def test_counts_stay_out_of_the_states(self) -> None:
        assert len(program_of("root ::= [a-z]{1,100000}").edges) < 10
        assert len(program_of('root ::= "(" root{1,100000} ")" | "x"').edges) < 20

    def test_equal_alternatives_are_one(self) -> None:
        same = [program_of(f"root ::= {right}") for right in ('"abc" | "abd"', '"ab" [cd]', '("a") "b" ("c" | "d")')]
        assert same[0] == same[1] == same[2]


class TestHostile:
    """Whatever it is, a typed error or a program, in bounded time."""

    @pytest.mark.parametrize("text", [
        "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000,
        "root ::= " + "(" * 60_000,
        'root ::= ("a" | "ab"){1000000}',
        'root ::= ("a"? "b"?){1000000}',
        'root ::= "a"{100000000000}',
        'root ::= "a"{' + "9" * 100_000 + "}",
        'root ::= "' + "a" * 2_000_000 + '"',
        "root ::= [a-z]" + "{2,3}" * 200,
    ], ids=lambda text: text[:40])  # fmt: skip
    def test_over_the_budget(self, text: str) -> None:
        with pytest.raises(BudgetExceededError):
            program_of(text)

    @pytest.mark.parametrize("text", [
        'root ::= "a"' + "*" * 60_000,
        'root ::= "a"' + "?+" * 30_000,
        'root ::= "a"{1000000}',
        "root ::= " + "|" * 60_000,
        "\n".join(f"a{i} ::= a{i + 1} a{i + 1}" for i in range(100)).replace("a0", "root", 1) + '\na100 ::= "x"',
        "\n".join(f'a{i} ::= "x" a{i - 1}' for i in range(3000, 0, -1)) + '\na0 ::= "x"\nroot ::= a3000',
        'root ::= ([ab]* "a" [ab]{20} "(" root ")")*',
        "root ::= " + '[a-z]* "a" ' * 300,
        "root ::= a0\n" + "\n".join(
            f'a{i} ::= a{i + 1} "x" a0? | b{i + 1} "y" b0?\nb{i} ::= a{i + 1} "z" b0? | b{i + 1} "w" a0?'
            for i in range(9)
        ) + '\na9 ::= "p"\nb9 ::= "q"',
    ], ids=lambda text: text[:40])  # fmt: skip
    def test_within_it(self, text: str) -> None:
        assert not oracle.dead_states(oracle.readable(program_of(text)))

    def test_depth_is_the_budgets(self) -> None:
        text = "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000
        assert len(program_of(text, depth=60_000).edges) == 1
        nested = "root ::= " + '("a" ' * 500 + ")?" * 500
        assert len(program_of(nested).edges) == 500

    def test_time_is_the_budgets(self) -> None:
        with pytest.raises(BudgetExceededError, match="longer"):
            program_of('root ::= "a"', seconds=1e-9)

    def test_a_vocabulary_that_would_be_stuck(self) -> None:
        vocabulary = sg.Vocabulary.from_bytes([b"(", b"))", b"x", None], eos_ids=[3])
        sg.compile(sg.Gbnf('root ::= "(x" "))" | "x"'), vocabulary)
        with pytest.raises(VocabularyError):
            sg.compile(sg.Gbnf('root ::= "(x)"'), vocabulary)
