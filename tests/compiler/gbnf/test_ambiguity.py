"""Grammars whose conflicts are kept, judged by Lark's Earley parser: it takes every text that the rules describe."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES, allowed
from judges.lark_judge import changed, parses, spelled, vocabulary_of, written
from lark import Lark
from lark.exceptions import LarkError
from tiers import draws

import structgen as sg
from structgen.budget import Budget, Meter
from structgen.compiler.grammar import compiler as grammar_compiler
from structgen.compiler.grammar.compiler import compile_rules
from structgen.compiler.grammar.load.loading import load
from structgen.compiler.grammar.parser import ambiguity
from structgen.compiler.grammar.parser.conflicts import comes_to_itself
from structgen.compiler.grammar.parser.empty_rules import without_cycles
from structgen.compiler.grammar.parser.symbols import Symbols
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser import gss as parser_graph
from structgen.runtime.grammar.parser.gss import GraphParser
from structgen.runtime.grammar.parser.stack import Stack
from structgen.runtime.grammar.parser.subsumption import Subsumption

#: By name: a grammar with conflicts, and the letters of its texts.
AMBIGUOUS = {
    "dangling else": ('start: s\ns: "i" s | "i" s "e" s | "x"', "iex"),
    "no precedence": ('start: e\ne: e "+" e | e "*" e | "-" e | "(" e ")" | "n"', "n+*-()"),
    "concatenation": ('start: s\ns: s s | "n" | s s s | "x"', "nx"),
    "reduce/reduce": ('start: a "c" | b "d" | a a | b b b\na: "x" | "x" "y"\nb: "x" | "x" "y" "y"', "xycd"),
    "priorities": ('start: a "c" | b "d" | b "c" "d"\na.2: "x"\nb: "x"', "xcd"),
    "two of lookahead": ('start: a "d" "b" | c "d" "a"\na: "a" | "a" a\nc: "a" | c "a"', "adb"),
    "all of lookahead": ('start: l "b" | r "c"\nl: | "a" l\nr: | r "a"', "abc"),
    "copies of brackets": ('start: s\ns: | s "(" s ")" | "[" s "]" s', "()[]"),
    "nullable": ('start: a b c "!"\na: | "x" | a "y"\nb: | "x" b | "y"\nc: a | "z"', "xyz!"),
    "two ways to be empty": ('start: a | b | "x" a b\na: |"y"\nb: | "y" b', "xy"),
    "merged": ('start: "a" e "c" | "b" e "d" | "a" f "d" | "b" f "c"\ne: "x" | "x" e\nf: "x" | f "x"', "abcdx"),
    "unit rules": ('start: a | b\na: c | "x"\nb: c | "x" "x"\nc: "x" | c "y"', "xy"),
    "words": (
        'start: (declaration | use)+\ndeclaration: W W ";" | W "*" W ";"\nuse: e ";"\ne: W | e "*" e\n'
        'W: /[ab]+/\n%ignore " "',
        "ab*; ",
    ),
    "spaces in rules": ("start: w (s w)* | w s\nw: /[a-c]+/\ns: s s | S\nS: /[ ]{1,2}/", "abc "),
    "keywords": (
        'start: s+\ns: "if" e s | e ";" | "if" e s "else" s\ne: N | e N | e "=" e\nN: /[a-z]+/\n%ignore " "',
        "ifelsabx=; ",
    ),
    "numbers": ('start: e\ne: e e | e "-" e | N | "-" e\nN: /-?[0-9]+(\\.[0-9]+)?/', "-01."),
    "follow sets": ('start: "(" x ")" | "[" y "]" | "(" y "]"\nx: e e\ny: e | y e\ne: "n" | e "," e', "()[]n,"),
}

#: What is refused; the engine reads it all the same.
PALINDROMES = 'start: p\np: "a" p "a" | "b" p "b" | "a" | "b" |'

#: Letters of a text that is judged: of very ambiguous ones Lark's parser is slow.
LONGEST = 12

each_grammar = pytest.mark.parametrize("name", AMBIGUOUS)


def compiled(text: str, vocabulary: sg.Vocabulary = BYTES, **options: object) -> sg.Index:
    options = {"lexer": "basic", "ambiguity": "all", **options}
    if PALINDROMES in text:
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(grammar_compiler, "check_ambiguity", lambda *_: None)
            return sg.compile(sg.Grammar(text, **options), vocabulary, eager=False)  # type: ignore[arg-type]
    return sg.compile(sg.Grammar(text, **options), vocabulary, eager=False)  # type: ignore[arg-type]


def all_texts(letters: str, longest: int) -> Iterator[str]:
    """The texts of some letters, the shortest first."""
    for length in range(longest + 1):
        yield from map("".join, itertools.product(letters, repeat=length))


def earley(text: str) -> Lark:
    """Lark's parser, without the trees."""
    return Lark(text, parser="earley", lexer="basic", ambiguity="forest")


def threads(guide: sg.Guide) -> int:
    config: Any = guide.config
    return len(config.threads)


# -- texts and masks ------------------------------------------------------------------------------------------


@each_grammar
def test_texts_and_masks_are_earleys(name: str) -> None:
    text, letters = AMBIGUOUS[name]
    random, parser = Random(name), earley(text)
    vocabulary = vocabulary_of(letters, random, size=60)
    index = compiled(text, vocabulary)
    found = {False: 0, True: 0}
    for _ in range(15):
        text_written, guide = written(index, random, 5)
        whole = text_written.decode()[:LONGEST]
        assert len(whole) < len(text_written) or guide.is_accepting() == parses(parser, whole), whole
        for sample in (whole, *(changed(whole, letters, random) for _ in range(8))):
            verdict = parses(parser, sample)
            assert index.match(sample.encode()).accepted == verdict, sample
            assert spelled(index, sample.encode(), random) == verdict, sample
            found[verdict] += 1
    assert sum(found.values()) > 100


@each_grammar
def test_all_short_texts(name: str) -> None:
    text, letters = AMBIGUOUS[name]
    parser, index = earley(text), compiled(text)
    longest = {2: 8, 3: 6, 4: 5}.get(len(letters), 3)
    right = set()
    for sample in all_texts(letters, longest):
        verdict = parses(parser, sample)
        assert index.match(sample.encode()).accepted == verdict, sample
        if verdict:
            right.add(sample)
    for sample in right:
        assert index.match(sample.encode()).consumed == len(sample)
        for i in range(len(sample)):
            assert index.match(sample[:i].encode()).consumed == i
    assert right


def test_the_grammars_have_conflicts() -> None:
    for name, (text, _) in AMBIGUOUS.items():
        meter = Meter(Budget())
        assert not compile_rules(load(text, "start", meter), meter, ambiguity="all").is_deterministic, name


def random_grammar(random: Random) -> str:
    """A few rules over a few letters and words that overlap; every rule has a way out."""
    lines = []
    terminals = random.sample(['"a"', '"b"', '"c"', "/[ab]+/", '"ab"', "/c+b?/"], 3)
    names = ["start", "r", "s", "t"][: random.randint(2, 4)]
    for name in names:
        options = [random.choice(terminals)]
        for _ in range(random.randint(1, 3)):
            symbols = random.choices([*names[1:], *names[1:], *terminals], k=random.randint(0, 3))
            options.append(" ".join(symbols))
        lines.append(f"{name}: {' | '.join(options)}")
    return "\n".join([*lines, '%ignore " "'])


def endless(text: str) -> bool:
    """Whether rules come to themselves without reading anything."""
    return comes_to_itself(Symbols.of(load(text, "start", Meter(Budget()))))


@pytest.mark.parametrize("seed", range(draws(6)))
def test_random_grammars(seed: int) -> None:
    random = Random(seed)
    compared = kept = refused = 0
    while compared < 8:
        text = random_grammar(random)
        vocabulary = vocabulary_of("abc", random, size=30)
        if endless(text):
            continue
        try:
            parser = earley(text)
        except LarkError:
            continue
        try:
            index = compiled(text, vocabulary)
        except sg.errors.EmptyLanguageError:
            index = None
        except sg.errors.UnsupportedError:  # in ever more ways
            refused += 1
            continue
        compared += 1
        if index is not None:
            assert isinstance(index.machine, GrammarMachine)
            kept += not index.machine.tables.is_deterministic
        for sample in all_texts("abc", 4):
            verdict = parses(parser, sample)
            assert (index is not None and index.match(sample.encode()).accepted) == verdict, (text, sample)
            if verdict and index is not None:
                assert index.match(sample.encode()).consumed == len(sample)
                assert spelled(index, sample.encode(), random)
        for _ in range(3 if index is not None else 0):
            assert index is not None
            whole, guide = written(index, random, 8)
            assert len(whole) > LONGEST or guide.is_accepting() == parses(parser, whole.decode()), (text, whole)
    assert kept
    assert refused < 20


# -- how it is built and kept ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dangling else", "no precedence", "nullable", "words"])
def test_eager_lazy_stored_and_cached_are_the_same(name: str, tmp_path: Path) -> None:
    text, letters = AMBIGUOUS[name]
    definition = sg.Grammar(text, lexer="basic", ambiguity="all")
    random = Random(3)
    vocabulary = vocabulary_of(letters, random, size=40)
    lazy, eager = sg.compile(definition, vocabulary, eager=False), sg.compile(definition, vocabulary)
    eager.save(tmp_path / "ambiguous.sgx")
    loaded = sg.Index.load(tmp_path / "ambiguous.sgx", vocabulary)
    with sg.Cache(tmp_path / "cache") as cache:
        sg.compile(definition, vocabulary, cache=cache)
        cached = sg.compile(definition, vocabulary, cache=cache)
    assert cached.origin == "cache"
    assert loaded.to_bytes() == eager.to_bytes()
    for _ in range(5):
        guides = [sg.Guide(index) for index in (lazy, eager, loaded, cached)]
        for _ in range(12):
            ids = [t for t in allowed(guides[0]) if t not in vocabulary.eos_ids]
            assert all(allowed(guide) == allowed(guides[0]) for guide in guides)
            assert len({guide.is_accepting() for guide in guides}) == 1
            if not ids:
                break
            token = random.choice(ids)
            assert all(guide.advance(token) for guide in guides)


def test_what_is_kept_is_part_of_what_a_grammar_means() -> None:
    text = AMBIGUOUS["dangling else"][0]
    assert sg.Grammar(text, ambiguity="all").canonical() != sg.Grammar(text).canonical()
    with pytest.raises(sg.errors.DefinitionError, match="ambiguity"):
        sg.Grammar(text, ambiguity="some")


def test_priorities_of_rules_decide_nothing() -> None:
    text = 'start: a "c" | b "d"\na{}: "x"\nb: "x"'
    for priority in ("", ".2", ".-2"):
        index = compiled(text.format(priority) + "\n")
        assert index.match(b"xc").accepted
        assert index.match(b"xd").accepted
    resolved = 'start: a "c" | b "d" | b "c" "c"\na.2: "x"\nb: "x"'
    assert not compiled(resolved, ambiguity="resolve").match(b"xcc").accepted
    assert compiled(resolved).match(b"xcc").accepted


def test_strict_is_about_what_is_resolved() -> None:
    text = AMBIGUOUS["dangling else"][0]
    with pytest.raises(sg.errors.DefinitionError, match="not LALR"):
        compiled(text, ambiguity="resolve", strict=True)


def test_indentation(tmp_path: Path) -> None:
    """A statement that two rules describe, with and without a block."""
    text = r"""
    start: (_NL | s)+
    s: "if" W _NL [block] | "if" W ":" _NL block | W W? _NL | W _NL block
    block: _INDENT s+ _DEDENT
    W: /[a-z]/
    _NL: /(\r?\n[ ]*)+/
    %declare _INDENT _DEDENT
    %ignore / +/
    """
    layout = sg.Indentation("_NL", opening=(), closing=())
    index = compiled(text, postlex=layout)
    assert index.match(b"if a\n b\n  c\nd e\n").accepted
    assert not index.match(b"if a\n b\n   c\n  d e\n").accepted


# -- what never ends ------------------------------------------------------------------------------------------

ENDLESS = {
    "hidden": 'start: n start "x" | "y"\nn: | "n"',
    "hidden behind two": 'start: n m a\na: n m a "x" | "y"\nn: | "n"\nm: n n',
    "hidden and indirect": 'start: a\na: b "x" | "y"\nb: n a\nn: | "n"',
    "itself": 'start: a\na: a | "x"',
    "unit cycle": 'start: a\na: b | "x"\nb: c | "y"\nc: a',
    "cycle beside empty rules": 'start: a\na: n b m | "x"\nb: a\nn: | "n"\nm: n',
    "empty repeated": 'start: n+ "x"\nn: | "n"',
    "right of itself, empty": 'start: a\na: a n | "x"\nn: | "n"',
    "perhaps itself": 'start: start? | "x" start "y"',
    "nothing but itself, or empty": "start: start | n\nn: n | ",
    "repeats within repeats": 'start: (a+)*\na: "x" | ',
    "two cycles that meet": 'start: a\na: b | c | "x" a\nb: a | "n" c\nc: n a n | "y"\nn: | "n"',
}

ENDING = {
    "left": 'start: a\na: a "x" | a a | "x"',
    "right": 'start: a\na: "x" a | "x" a a | "x"',
    "indirect left": 'start: a\na: b "x" | "x"\nb: a "y" | b b "x" | "x"',
    "empty behind": 'start: a\na: a "x" n | a "x" | "x" n\nn: | "n"',
    "middle": 'start: a\na: "x" n a n | "x"\nn: | "n"',
    "after something": 'start: n "x" start | n\nn: | "n" n | "n"',
}


@pytest.mark.parametrize("name", ENDLESS)
def test_rules_that_come_to_themselves(name: str) -> None:
    parser, index = earley(ENDLESS[name]), compiled(ENDLESS[name])
    accepted = [sample for sample in all_texts("xyn", 6) if index.match(sample.encode()).accepted]
    assert accepted == [sample for sample in all_texts("xyn", 6) if parses(parser, sample)]
    beginnings = {sample[:length] for sample in accepted for length in range(len(sample) + 1)}
    for sample in all_texts("xyn", 2):
        assert (sample in beginnings) == (index.match(sample.encode()).consumed == len(sample)), sample


@pytest.mark.parametrize("seed", range(2))
def test_random_rules_that_come_to_themselves(seed: int) -> None:
    random, compared = Random(seed), 0
    while compared < 4:
        text = random_grammar(random)
        if not endless(text):
            continue
        grammar = load(text, "start", Meter(Budget()))
        assert not comes_to_itself(Symbols.of(without_cycles(grammar, Meter(Budget()))))
        try:
            index = compiled(text)
        except sg.errors.UnsupportedError:  # in ever more ways
            continue
        compared += 1
        parser = earley(text)
        for sample in all_texts("abc", 4):
            assert index.match(sample.encode()).accepted == parses(parser, sample), (text, sample)


def test_more_than_the_search_for_growth_looks_through() -> None:
    text = 'start: "b" | r\nr: "c" | r "b" | | s t\ns: "b" | "b" t "c" | s t t | r\nt: "c" | s "c" s'
    parser, index = earley(text), compiled(text)
    for sample in all_texts("bc", 4):
        assert index.match(sample.encode()).accepted == parses(parser, sample), sample


def test_requests_hold_no_rules_that_come_to_themselves() -> None:
    # Where this grammar was followed a mask behind 64 bytes took seconds, and it is not seen to grow.
    grammar = sg.Grammar('start: r |\nr: "a" "a" r | (start)+ "c" start', ambiguity="all")
    with pytest.raises(sg.errors.BudgetExceededError, match="comes to itself"):
        sg.compile(grammar, BYTES, eager=False, budget=sg.Budget.request)
    assert sg.compile(grammar, BYTES, eager=False).match(b"caac").accepted


def test_rules_that_are_nothing_but_themselves_have_no_text() -> None:
    with pytest.raises(sg.errors.EmptyLanguageError, match="no text can ever complete the rule start"):
        compiled('start: a\na: b\nb: a | b "x"')
    with pytest.raises(sg.errors.EmptyLanguageError, match="no text can ever complete the rule start"):
        compiled("start: a\na: b\nb: a")
    index = compiled('start: "b" | a "c"\na: b | b a\nb: a')
    assert index.match(b"b").accepted
    assert not index.match(b"bc").accepted


@pytest.mark.parametrize("name", ENDING)
def test_other_recursion_is_not(name: str) -> None:
    parser, index = earley(ENDING[name]), compiled(ENDING[name])
    found = 0
    for sample in all_texts("xyn", 6):
        verdict = parses(parser, sample)
        assert index.match(sample.encode()).accepted == verdict, sample
        found += verdict
    assert found > 5


# -- how many ways are followed -------------------------------------------------------------------------------

GROWING = {
    "one operator": ('start: e\ne: e "+" e | "n"', b"n", b"+n"),
    "operators": ('start: e\ne: e "+" e | e "*" e | "-" e | e "?" e ":" e | "(" e ")" | "n"', b"n", b"+-n*(n)?n:n"),
    "two in a row": ('start: s\ns: s s | s s s | "n"', b"n", b"n"),
    "brackets": ('start: s\ns: | s "(" s ")" | "[" s "]" s', b"", b"[([])]"),
    "ifs": ('start: s\ns: "i" s | "i" s "e" s | "x"', b"", b"i"),
    "declarations": (AMBIGUOUS["words"][0], b"", b"a*b;a b;a*b*a;"),
}


@pytest.mark.parametrize("name", GROWING)
def test_what_comes_to_the_same_is_followed_once(name: str) -> None:
    """500 operands can be put in brackets in some 10^297 ways."""
    text, first, again = GROWING[name]
    guide = sg.Guide(compiled(text))
    for byte in first + (60 if name == "brackets" else 500) * again:
        assert guide.advance(byte)
        assert threads(guide) <= 2
    assert allowed(guide)


#: By name: a grammar whose stacks are many, and a long text of n parts.
MANY: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "two ways for each": (
        'start: s\ns: x s "e" | y s "f" | "z"\nx: "a"\ny: "a"',
        lambda n: b"a" * n + b"z" + b"ef" * (n // 2),
    ),
    "three ways for each": (
        'start: s\ns: x s "e" | y s "f" | w s "g" | "z"\nx: "a"\ny: "a"\nw: "a"',
        lambda n: b"a" * n + b"z" + b"efg" * (n // 3),
    ),
    "empty tails": ('start: s\ns: "a" s n | "a"\nn: | "n"', lambda n: b"a" * n + b"n" * (n - 1)),
    "two empty tails": ('start: s\ns: "a" s n m | "b"\nn: | "n"\nm: | "m"', lambda n: b"a" * n + b"b" + b"nm" * n),
    "palindromes": (PALINDROMES, lambda n: b"ab" * (n + 1) + b"a"),
    "palindromes of all kinds": (PALINDROMES, lambda n: bytes(b"ab"[i.bit_count() & 1] for i in range(2 * n))),
    "prefixes": (ENDING["indirect left"], lambda n: b"x" * 2 * n),
    "dangling else": (AMBIGUOUS["dangling else"][0], lambda n: b"i" * n + b"x" + b"ex" * n),
    "sums": (AMBIGUOUS["no precedence"][0], lambda n: b"n+n*(" * n),
}


def works(guide: sg.Guide, text: bytes) -> list[int]:
    """By token: how many nodes of stacks it takes to ask for the mask and go on."""
    machine = guide.index.machine
    assert isinstance(machine, GrammarMachine)
    parser, found = machine.parses.parser, []
    assert isinstance(parser, GraphParser)
    for byte in text:
        before = parser.work
        assert byte in allowed(guide)
        assert guide.advance(byte)
        found.append(parser.work - before + threads(guide))
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("name", MANY)
def test_a_step_costs_no_more_the_longer_the_text(name: str) -> None:
    """Up to 750 tokens; five times the text takes less than eight times the work."""
    text, written_out = MANY[name]
    short, long = (sum(works(sg.Guide(compiled(f"{text}\n// {n}")), written_out(n))) for n in (50, 250))
    assert long < 8 * short, (short, long)


@pytest.mark.parametrize("name", [name for name in MANY if name not in ("dangling else", "sums")])
def test_many_stacks_are_earleys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks that are merged take what they took apart."""
    text, written_out = MANY[name]
    parser, random = earley(text), Random(name)
    for apart in (1, 2, 4, parser_graph.MOST_APART):
        monkeypatch.setattr(parser_graph, "MOST_APART", apart)
        index = compiled(f"{text}\n// {apart}")
        for _ in range(12):
            sample = changed(written_out(random.randint(1, 9)).decode(), "abefgznx", random)[:24]
            found = index.match(sample.encode())
            assert found.accepted == parses(parser, sample), sample


def test_random_grammars_with_all_stacks_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser_graph, "MOST_APART", 1)
    random, compared = Random(7), 0
    while compared < 12:
        text = random_grammar(random)
        if endless(text):
            continue
        try:
            parser, index = earley(text), compiled(text, vocabulary_of("abc", random, size=20))
        except (LarkError, sg.errors.StructgenError):
            continue
        compared += 1
        for sample in all_texts("abc", 4):
            verdict = parses(parser, sample)
            assert index.match(sample.encode()).accepted == verdict, (text, sample)
            assert spelled(index, sample.encode(), random) == verdict, (text, sample)
        written(index, random, 8)


# -- what is refused: a search for texts whose stacks become ever more --------------------------------------------

#: By name: a grammar in which each symbol may be the middle one, and the rule that says so.
EVER_MORE = {
    "palindromes": (PALINDROMES, "p"),
    "of one letter": ('start: s\ns: "a" s "a" | "a"', "s"),
    "of words": ('start: s\ns: W s W | W\nW: /[a-z]+/\n%ignore " "', "s"),
    "of values": ('start: s\ns: v s v | v\nv: %json {"enum": ["a", "b"]}', "s"),
    "of rules": ('start: s\ns: x s y | x\nx: "a" | "b"\ny: "a" | "c"', "s"),
    "in brackets": ('start: s\ns: "(" s ")" | p\np: l p l | "m" | "a"\nl: "a" | "b" | "c" l "d"', "p"),
    "behind what is not": ('start: s\ns: "a" s "b" | "a" s "c" | "a" t\nt: "a" t "a" | "a" |', "t"),
    "in a language": (
        'start: st+\nst: "let" N "=" e ";" | "if" "(" e ")" st ["else" st] | "{" st* "}"\n'
        'e: e "+" e | N | "(" e ")" | p\np: "[" q "]"\nq: "a" q "a" | "b" q "b" | "c" | "a"\n'
        'N: /[a-z]+/\n%ignore " "',
        "q",
    ),
}


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.parametrize("name", EVER_MORE)
def test_what_grows_with_the_text_is_refused(name: str, lexer: str) -> None:
    text, rule = EVER_MORE[name]
    with pytest.raises(sg.errors.UnsupportedError, match=f"in ever more ways at once.*rule {rule}, after") as refused:
        sg.compile(sg.Grammar(text, lexer=lexer, ambiguity="all"), BYTES, eager=False)  # type: ignore[arg-type]
    assert refused.value.remedy


def test_what_the_lexer_never_reads_does_not_grow() -> None:
    """Two words in a row are one: there is nothing to read in several ways."""
    assert compiled("start: s\ns: W s W | W\nW: /[a-z]+/").match(b"abc").accepted


def random_palindromes(random: Random) -> str:
    """Words about a middle that any of them can be, too, within rules that are no matter."""
    length = random.randint(1, 3)
    words = {"".join(random.choices("abcd", k=length)) for _ in range(random.randint(1, 3))}
    options = [*(f'"{word}" p "{word}"' for word in sorted(words)), f'"{min(words)}"']
    options += random.choices([f'"{max(words)}"', '"x"', '"y" p', "", "q"], k=2)
    around = random.choice(["p", '"<" p ">"', 'p ("," p)*', '"-" p | "[" s "]"', 'p | s "+" s'])
    rules = [f"s: {around}", f"p: {' | '.join(dict.fromkeys(options))}", 'q: "z" q "z" | "o"']
    ignored = random.choice(["", '\n%ignore " "'])
    return "\n".join(["start: s", *random.sample(rules, 3)]) + ignored


def random_operators(random: Random) -> str:
    """Expressions in as many ways as there are, statements whose parts may be missing, lists of lists."""
    operators = random.sample("+-*/%&|", random.randint(1, 5))
    options = [f'e "{operator}" e' for operator in operators]
    others = ['"-" e', 'e "?" e ":" e', '"(" e ")"', "e e", 'e "[" e "]"', '"f" "(" [e ("," e)*] ")"']
    options += random.sample(others, 3)
    statements = ['e ";"', '"if" e s', '"if" e s "else" s', '"{" s* "}"', '"do" s+ "od"']
    lines = ["start: s+", f's: ";" | {" | ".join(random.sample(statements, 3))}', f"e: {' | '.join(options)} | N"]
    return "\n".join([*lines, "N: /[a-z]+/", '%ignore " "'])


@pytest.mark.parametrize("seed", range(3))
def test_random_palindromes_are_refused(seed: int) -> None:
    random = Random(seed)
    for _ in range(8):
        text = random_palindromes(random)
        with pytest.raises(sg.errors.UnsupportedError, match="in ever more ways"):
            pytest.fail(f"{text} {compiled(text)}")


@pytest.mark.parametrize("seed", range(3))
def test_random_operators_are_not(seed: int) -> None:
    random = Random(seed)
    for _ in range(8):
        text = random_operators(random)
        assert compiled(text).match(b";").accepted, text


def test_looking_for_growth_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grammar of C whose conflicts are many: some hundred terminals are read, and nothing is spelled in bytes."""
    searches = []
    make = ambiguity._GrowthSearch.__init__

    def made(self: ambiguity._GrowthSearch, *args: object) -> None:
        searches.append(self)
        make(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ambiguity._GrowthSearch, "__init__", made)
    compiled(f"%import c_names (start, typedef_name)\n// {monkeypatch}")
    assert [(search._steps <= ambiguity._STEPS, search._spelled) for search in searches] == [(True, 0)]


@each_grammar
def test_a_stack_that_covers_another_takes_all_that_it_takes(name: str) -> None:
    """What is left out is right to leave out: all sequences of terminals, from stacks that walks come to."""
    meter = Meter(Budget())
    tables = compile_rules(load(AMBIGUOUS[name][0], "start", meter), meter, lexer="basic", ambiguity="all")
    parser, random = GraphParser(tables), Random(name)
    stacks = [parser.start]
    for stack in stacks:  # grows as it goes
        if len(stacks) < 120:
            for terminal in range(tables.end):
                stacks += [after for after, _ in parser.every(stack, terminal, 1 << 20)[0] if after not in stacks]

    def follow(stacks: set[Stack], terminal: int) -> set[Stack]:
        return {after for stack in stacks for after, _ in parser.every(stack, terminal, 1 << 20)[0]}

    covered = 0
    for _ in range(400):
        a, b = random.choice(stacks), random.choice(stacks)
        if a is b or not parser.subsumption.subsumes(a, b)[0]:
            continue
        covered += 1
        todo: list[tuple[set[Stack], set[Stack], int]] = [({a}, {b}, 3)]
        while todo:
            these, those, left = todo.pop()
            for terminal in range(tables.end + 1):
                after = follow(those, terminal)
                if after:
                    others = follow(these, terminal)
                    assert others, (a, b)
                    if left and len(after) < 50:
                        todo.append((others, after, left - 1))


def test_what_one_thread_assumes_is_nothing_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a pair of stacks is looked at it is assumed to hold; whoever asks then waits for the answer."""
    meter = Meter(Budget())
    text = AMBIGUOUS["no precedence"][0]
    tables = compile_rules(load(text, "start", meter), meter, lexer="basic", ambiguity="all")
    parser = GraphParser(tables)
    stacks = [parser.start]
    for stack in stacks:  # grows as it goes
        if len(stacks) < 60:
            for terminal in range(tables.end):
                stacks += [after for after, _ in parser.every(stack, terminal, 1 << 20)[0] if after not in stacks]
    a, b = next(
        (a, b)
        for a, b in itertools.permutations(stacks, 2)
        if not parser.accepted(b).terminals & ~parser.accepted(a).terminals and not parser.subsumption.subsumes(a, b)[0]
    )
    subsumption, begun, reduced = Subsumption(parser, tables), threading.Event(), parser.reduced

    def slow(stack: Stack, terminals: int = -1) -> list[tuple[Stack, int]]:
        if not begun.is_set():
            begun.set()
            time.sleep(0.3)
        return reduced(stack, terminals)

    monkeypatch.setattr(parser, "reduced", slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(subsumption.subsumes, a, b)
        assert begun.wait(10)
        assert not subsumption.subsumes(a, b)[0]
        assert not first.result()[0]
