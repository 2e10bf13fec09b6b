"""Grammars from end to end, judged by Lark: every mask by every token, and texts in both directions."""

from __future__ import annotations

import itertools
import sys
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest
from judges.grammars import GRAMMARS, JSON, STATEMENTS
from judges.guides import BYTES, EACH_BYTE, allowed, with_end
from judges.lark_judge import parses
from lark import Lark
from lark.exceptions import LarkError
from tiers import draws

import structgen as sg
from structgen import kernels
from structgen.budget import Budget, Meter
from structgen.compiler.grammar.compiler import compile_rules
from structgen.compiler.grammar.load.loading import load
from structgen.runtime.grammar import kernel_gss
from structgen.runtime.grammar.completability import obligations
from structgen.runtime.grammar.machine import GrammarMachine
from structgen.runtime.grammar.parser.stack import Parser, Stack
from structgen.runtime.grammar.partial_masks import ROOT
from structgen.system import locks

each_grammar = pytest.mark.parametrize("name", GRAMMARS)
each_lexer = pytest.mark.parametrize("lexer", ["contextual", "basic"])


@cache
def lark(name: str, lexer: str) -> Lark:
    return Lark(GRAMMARS[name][0], parser="lalr", lexer=lexer)


def small_vocabulary(name: str, seed: int) -> sg.Vocabulary:
    """All bytes of the grammar's letters, and random strings of them; some end inside a character."""
    random, letters = Random(seed), GRAMMARS[name][1]
    tokens: list[bytes | None] = [bytes([b]) for b in sorted(set(letters.encode()))]
    tokens += ["".join(random.choices(letters, k=random.randint(2, 6))).encode() for _ in range(150)]
    tokens += [token[:-1] for token in tokens if token and token[-1] > 127][:5]
    return with_end(tokens)


def compiled(name: str, lexer: str, vocabulary: sg.Vocabulary, eager: bool = False) -> sg.Index:
    return sg.compile(sg.Grammar(GRAMMARS[name][0], lexer=lexer), vocabulary, eager=eager)


def walk(index: sg.Index, random: Random, steps: int) -> list[tuple[sg.Guide, bytes]]:
    """A guide before each token of a random walk, and after the last, with the text so far."""
    guide, text = sg.Guide(index), b""
    seen = [(guide.fork(), text)]
    for _ in range(steps):
        ids = [t for t in allowed(guide) if t not in index.vocabulary.eos_ids]
        if not ids:
            break
        token = random.choice(ids)
        text += index.vocabulary.token(token) or b""
        assert guide.advance(token)
        seen.append((guide.fork(), text))
    return seen


@each_grammar
@each_lexer
@pytest.mark.parametrize("seed", range(2))
def test_masks_and_ends_of_random_walks(name: str, lexer: str, seed: int) -> None:
    random, vocabulary = Random(seed), small_vocabulary(name, seed)
    index = compiled(name, lexer, vocabulary)
    ended = 0
    for _ in range(12):
        for guide, text in walk(index, random, 20):
            assert allowed(guide) == [t for t in range(vocabulary.size) if guide.allows(t)], text
            whole = text.decode("utf-8", "ignore")
            assert guide.is_accepting() == (whole.encode() == text and parses(lark(name, lexer), whole)), text
            assert allowed(guide), f"stuck after {text!r}"
            ended += guide.is_accepting()
    assert ended


@each_grammar
@each_lexer
def test_the_bytes_that_follow_are_those_that_lead_on(name: str, lexer: str) -> None:
    """Before the parser is asked what it accepts, and after."""
    random = Random(name)
    index = compiled(name, lexer, BYTES)
    machine, seen = index.machine, 0
    for _ in range(3):
        for guide, text in walk(index, random, 12):
            state = machine.byte_state(guide.index_config)
            wanted = {byte: machine.after(state, byte) for byte in range(256)}
            alive = {byte: after for byte, after in wanted.items() if after is not None}
            for _ in range(2):
                assert dict(machine.following(state)) == alive, text
            seen += len(alive)
    assert seen


@each_grammar
@each_lexer
def test_texts_are_judged_as_lark_does(name: str, lexer: str) -> None:
    random, letters = Random(name + lexer), GRAMMARS[name][1]
    index = compiled(name, lexer, small_vocabulary(name, 0))
    judged = {False: 0, True: 0}
    for _ in range(60):
        whole = walk(index, random, 15)[-1][1].decode("utf-8", "ignore")
        for _ in range(12):
            text = list(whole[: random.randint(0, len(whole))])
            for _ in range(random.randint(0, 3)):
                at = random.randint(0, len(text))
                text[at : at + random.randint(0, 1)] = random.choice(["", random.choice(letters)])
            changed = "".join(text)
            verdict = parses(lark(name, lexer), changed)
            found = index.match(changed.encode())
            assert found.accepted == verdict, changed
            judged[verdict] += 1
            if verdict:  # every prefix of what Lark parses is let through, in whatever tokens
                assert found.consumed == len(changed.encode())
    assert min(judged.values()) > 10, judged


@each_grammar
def test_eager_lazy_stored_and_cached_are_the_same(name: str, tmp_path: Path) -> None:
    vocabulary = small_vocabulary(name, 1)
    lazy, eager = compiled(name, "contextual", vocabulary), compiled(name, "contextual", vocabulary, eager=True)
    saved = tmp_path / "grammar.sgx"
    eager.save(saved)
    definition = sg.Grammar(GRAMMARS[name][0])
    with sg.Cache(tmp_path / "cache") as cache:
        sg.compile(definition, vocabulary, cache=cache)
        cached = sg.compile(definition, vocabulary, cache=cache)
    assert cached.origin == "cache"
    again = sg.Index.load(saved, vocabulary)
    assert again.to_bytes() == eager.to_bytes()
    for guide, text in walk(lazy, Random(3), 25):
        for index in (eager, again, cached):
            assert index.match(text).consumed == len(text)
        others = [sg.Guide(index) for index in (eager, again, cached)]
        for other in others:
            for byte in text:
                token = next(t for t in range(vocabulary.size) if vocabulary.token(t) == bytes([byte]))
                assert other.advance(token)
            assert allowed(other) == allowed(guide), text


def test_what_a_byte_beats_where_it_stands_is_watched_beside_what_it_does_not() -> None:
    """Behind ``@`` a longer E is open, and behind ``#`` a longer C: the next letter belongs to it, not to N."""
    text = r"""
    start: E C N M | E C K
    E: /@(#[^\r\n]*!)?/
    C: /#[^\r\n]*/
    N: /[a-z]/
    M: /\n/
    K: /\r/
    """
    vocabulary = sg.Vocabulary.from_bytes([*EACH_BYTE, b"x\n", b"x\r"], eos_ids=[])
    guide = sg.Guide(sg.compile(sg.Grammar(text, lexer="basic"), vocabulary, eager=False))
    assert guide.advance(ord("@"))
    assert guide.advance(ord("#"))
    assert {256, 257} & {*allowed(guide)} == {257}


def test_walks_that_watch_several_lexemes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks where sets of states are watched, simplified or not, are what the tokens' bytes lead to."""
    names = [f"T{i}" for i in range(30)]
    text = f"start: ({'|'.join(names)})+\n" + "\n".join(f"T{i}: /[a-z]{{{i + 1}}}[0-9]*/" for i in range(30))
    random = Random(5)
    tokens = {bytes(random.choices(b"abxyz019", k=random.randint(1, 9))): None for _ in range(400)}
    vocabulary = sg.Vocabulary.from_bytes([*tokens, *(bytes([b]) for b in b"az09"), None], eos_ids=[len(tokens) + 4])
    found = []
    for most in (obligations._MOST_PAIRS, 0):
        monkeypatch.setattr(obligations, "_MOST_PAIRS", most)
        index = sg.compile(sg.Grammar(f"{text}\n// {most}"), vocabulary, eager=False)  # tables are kept by content
        walked = list(walk(index, Random(1), 25))
        assert all(allowed(g) == [t for t in range(vocabulary.size) if g.allows(t)] for g, _ in walked)
        found.append([(text, allowed(guide)) for guide, text in walked])
        assert isinstance(index.machine, GrammarMachine)
        watched = max(len(w) for *_, w in index.machine.lexeme_masks.decided)
        assert watched <= 2 if most else watched > 4
    assert found[0] == found[1]


def test_a_mask_costs_what_its_lexemes_differ_in() -> None:
    """Ten matches can be open behind each letter; tokens are not gone through one by one for that."""
    names = [f"T{i}" for i in range(100)]
    text = f"start: ({'|'.join(names)})+\n" + "\n".join(f"T{i}: /[a-z]{{{i + 1}}}[0-9]*/" for i in range(100))
    random = Random(5)
    tokens = {bytes(random.choices(b"abcdefgh01", k=random.randint(1, 9))): None for _ in range(5000)}
    vocabulary = with_end(tokens)
    guide = sg.Guide(sg.compile(sg.Grammar(text), vocabulary, eager=False))
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        guide.bitmask()
    finally:
        sys.setprofile(None)
    assert calls < 80_000


def test_masks_where_the_kernel_remembers_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables fill up all the time, and have to be emptied, or to grow in the middle of a mask."""
    vocabulary = small_vocabulary("json", 3)
    expected = walk(compiled("json", "contextual", vocabulary), Random(5), 60)
    monkeypatch.setattr(kernel_gss, "_FEW_CELLS", 4)
    tight = compiled("json", "contextual", vocabulary)
    found = walk(tight, Random(5), 60)
    assert [text for _, text in found] == [text for _, text in expected]
    pairs = zip(found, expected, strict=True)
    assert all((guide.bitmask() == other.bitmask()).all() for (guide, _), (other, _) in pairs)
    assert isinstance(tight.machine, GrammarMachine)
    assert tight.machine.masks._memory.stacks(size=4).size > 4


def test_a_stack_decides_where_lookaheads_promise_too_much() -> None:
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"x", b"y", b"d", b"c", b"yc", b"yd", b"xyd", b"b", None], eos_ids=[9])
    guide = sg.Guide(compiled("merged", "contextual", vocabulary))
    assert guide.advance(0)
    assert guide.advance(1)
    assert guide.advance(2)
    assert allowed(guide) == [2, 4, 5], "after a x y: more y, or c; the d would do after b"


def test_long_texts_cost_nesting_and_not_length() -> None:
    vocabulary = small_vocabulary("statements", 0)
    index = sg.compile(sg.Grammar(STATEMENTS), vocabulary, eager=False)
    assert isinstance(index.machine, GrammarMachine)
    guide = sg.Guide(index)
    tokens = {vocabulary.token(t): t for t in range(vocabulary.size)}
    for _ in range(3000):
        for byte in b"x=1;":
            assert guide.advance(tokens[bytes([byte])])
    assert len(index.machine._configs) < 100


def test_deep_nesting_costs_no_recursion() -> None:
    vocabulary = small_vocabulary("json", 0)
    index = sg.compile(sg.Grammar(JSON), vocabulary, eager=False)
    depth = 20_000
    assert index.match(b"[" * depth + b"]" * depth).accepted
    assert not index.match(b"[" * depth + b"]" * (depth - 1)).accepted


# -- rules that nothing completes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "accepted", "refused"),
    [
        ('start: "a" | "c" " " "b"\n%ignore " "', ["a", "a ", " a"], ["c", "c ", "c b"]),
        ('start: "a" e "c" | "a" f "d"\ne: x\nf: "x" "x"\nx: x "y"', ["axxd"], ["axc", "axyc"]),
    ],
)
def test_rules_that_no_text_completes_lead_nowhere(text: str, accepted: list[str], refused: list[str]) -> None:
    vocabulary = with_end(EACH_BYTE)
    index = sg.compile(sg.Grammar(text), vocabulary)
    for each in accepted:
        assert index.match(each.encode()).accepted
    for each in refused:
        assert index.match(each.encode()).consumed < len(each.rstrip()), each


def test_rules_that_no_text_completes_are_refused_where_they_decide_a_conflict() -> None:
    text = 'start: a "x" | "y"\na: b | b "x" " "\nb: "b"\n%ignore " "'
    with pytest.raises(sg.errors.DefinitionError, match="no text can ever complete 'a: b X"):
        sg.compile(sg.Grammar(text), small_vocabulary("arithmetic", 0))
    with pytest.raises(sg.errors.EmptyLanguageError, match="the rule start"):
        sg.compile(sg.Grammar('start: "a" " " "b"\n%ignore " "'), small_vocabulary("arithmetic", 0))


# -- files ----------------------------------------------------------------------------------------------------


def test_grammars_from_files_and_their_imports(tmp_path: Path) -> None:
    (tmp_path / "inner.lark").write_text('word: "a" | "b"\n')
    file = tmp_path / "outer.lark"
    file.write_text('%import .inner.word\nstart: word "!"\n')
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", b"c", b"!", None], eos_ids=[4])
    definition = sg.Grammar(file)
    index = sg.compile(definition, vocabulary)
    assert index.match(b"a!").accepted
    assert not index.match(b"c!").accepted
    before = definition.canonical()
    (tmp_path / "inner.lark").write_text('word: "a" | "c"\n')
    assert sg.Grammar(file).canonical() != before, "an import is part of what a definition means"
    assert sg.compile(sg.Grammar(file), vocabulary).match(b"c!").accepted
    with pytest.raises(sg.errors.DefinitionError, match="cannot be read"):
        sg.Grammar(tmp_path / "missing.lark")


def test_grammar_files_on_the_command_line(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from structgen.cli.app import app
    from structgen.definitions.loading import read_definitions

    (tmp_path / "calculator.lark").write_text(GRAMMARS["arithmetic"][0])
    (tmp_path / "broken.lark").write_bytes(b"\xff")
    reading = read_definitions([tmp_path])
    assert [found.definition.kind for found in reading.definitions] == ["grammar"]
    assert len(reading.failures) == 1
    assert CliRunner().invoke(app, ["warm", "--help"]).exit_code == 0


def test_no_token_leads_to_a_lexeme_that_nothing_can_follow() -> None:
    """Two words of one letter in a row are one word to the lexer, so the rule's second way leads nowhere."""
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", b"c", b"ba", b"ca", None], eos_ids=[5])
    text = 'start: "b" | "b" w w | "c" w d\nw: /a+/\nd: w | "b"'
    guide = sg.Guide(sg.compile(sg.Grammar(text), vocabulary))
    assert allowed(guide) == [1, 2, 4]
    assert guide.advance(1)
    assert allowed(guide) == [5]
    guide.reset()
    assert guide.advance(4)
    assert allowed(guide) == [0, 1]
    with pytest.raises(sg.errors.EmptyLanguageError, match="the lexer can read no text"):
        sg.compile(sg.Grammar('start: "b" w w\nw: /a+/'), vocabulary)


# -- random grammars -----------------------------------------------------------------------------------------

LETTERS = "ab<> "


def random_terminal(random: Random) -> str:
    choices = [
        '"a"',
        '"b"',
        '"ab"',
        '"<"',
        '"<<"',
        '">"',
        "/a+/",
        "/a+?b?/",
        "/[ab]+/",
        "/<.*?>/",
        "/ab*(a|ba)/",
        "/b(?=a)a/",
    ]
    return random.choice(choices)


def random_grammar(random: Random) -> str:
    """Rules over terminals that begin alike, some with priorities; every rule has a way out."""
    lines = []
    for name in ("start", "r", "s"):
        options = [random_terminal(random)]
        for _ in range(random.randint(1, 2)):
            symbols = random.choices(
                ["r", "s", "T", "U", random_terminal(random), random_terminal(random)], k=random.randint(1, 3)
            )
            options.append(" ".join(symbols))
        lines.append(f"{name}: {' | '.join(options)}")
    lines += [f"T{random.choice(['', '.1', '.-1'])}: {random_terminal(random)}", f"U: {random_terminal(random)}"]
    return "\n".join([*lines, *(['%ignore " "'] if random.random() < 0.5 else [])])


@pytest.mark.parametrize("seed", range(draws(7)))
def test_random_grammars_are_read_as_lark_reads_them(seed: int) -> None:
    random = Random(seed)
    tokens: list[bytes | None] = [bytes([ord(c)]) for c in LETTERS]
    tokens += ["".join(random.choices(LETTERS, k=random.randint(2, 5))).encode() for _ in range(40)]
    vocabulary = with_end(tokens)
    compared = 0
    for _ in range(40):
        text, lexer = random_grammar(random), random.choice(["contextual", "basic"])
        try:
            judge = Lark(text, parser="lalr", lexer=lexer)
        except LarkError:
            with pytest.raises(sg.errors.StructgenError):
                sg.compile(sg.Grammar(text, lexer=lexer), vocabulary)
            continue
        try:
            index = sg.compile(sg.Grammar(text, lexer=lexer), vocabulary, eager=False)
        except sg.errors.VocabularyError:  # a terminal needs a letter beyond these
            continue
        except sg.errors.EmptyLanguageError:
            index = None
        compared += index is not None
        for _ in range(60):
            sample = "".join(random.choices(LETTERS, k=random.randint(0, 9)))
            verdict = parses(judge, sample)
            assert (index is not None and index.match(sample.encode()).accepted) == verdict, (text, lexer, sample)
        if index is None:
            continue
        guide = sg.Guide(index)
        for _ in range(8):
            assert allowed(guide) == [t for t in range(vocabulary.size) if guide.allows(t)], (text, lexer)
            ids = [t for t in allowed(guide) if t < len(tokens)]
            if not ids:
                break
            assert guide.advance(random.choice(ids))
    assert compared > 5


def test_stacks_may_be_forgotten_while_another_thread_asks() -> None:
    """As if another thread made the parser forget between any two lines: what is being worked out stays right."""
    meter = Meter(Budget())
    tables = compile_rules(load(STATEMENTS, "start", meter), meter)
    names = {name: number for number, name in enumerate(tables.terminals)}

    def after(words: str) -> tuple[Parser, Stack]:
        parser = Parser(tables)
        stack = parser.start
        for word in words.split():
            ((stack, _),) = parser.after(stack, names[word]).stacks
        return parser, stack

    for words in ("", "IF NAME", "IF NAME THEN LBRACE NAME EQUAL NAME", "IF NAME MORETHAN INT THEN LBRACE RBRACE"):
        parser, stack = after(words)
        expected = parser.accepted(stack)
        for line in itertools.count(1):
            parser, stack = after(words)
            left = line

            def forgetting(frame: FrameType, event: str, _: Any, parser: Parser = parser) -> Any:
                nonlocal left
                if frame.f_code is not Parser.accepted.__code__:
                    return None
                left -= event == "line"
                if event == "line" and not left:
                    sys.settrace(None)
                    parser.forget()
                return forgetting

            sys.settrace(forgetting)
            try:
                assert parser.accepted(stack) == expected
            finally:
                sys.settrace(None)
            if left > 0:
                break  # it has no more lines than that
        assert line > 3


# -- what reads nothing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['start: a\na.2: b | "x"\nb.3: a | "y"', 'start: a\na: b | "x"\nb.3: a | "y"'])
def test_a_parser_that_reduces_without_end_is_refused(text: str) -> None:
    """Lark loads these, and its parser never comes back from an X."""
    with pytest.raises(sg.errors.DefinitionError, match="is reduced without end before"):
        sg.compile(sg.Grammar(text), BYTES)


@pytest.mark.parametrize("text", [
    'start: n+ "x"\nn: | "n"',
    'start: a "x"\na.5: a n | n\nn: | "n"',
    'start: n start "x" | "y"\nn: | "n"',
    'start: n start "x" | "y"\nn.5: | "n"',
    'start: n m start "x" | "y"\nn.5:\nm.2:',
])  # fmt: skip
def test_rules_that_come_to_themselves_where_conflicts_are_decided(text: str) -> None:
    """A stack that stands for another one is not taken where the other is on its own way to the terminal."""
    parser, index = Lark(text, parser="lalr"), sg.compile(sg.Grammar(text), BYTES, eager=False)
    accepted = 0
    for length in range(6):
        for letters in itertools.product("nxy", repeat=length):
            sample = "".join(letters)
            verdict = parses(parser, sample)
            assert index.match(sample.encode()).accepted == verdict, sample
            accepted += verdict
    assert accepted


@each_lexer
@each_grammar
def test_masks_that_are_put_together_without_kernels(name: str, lexer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of grammars with definitions in them: they are those of the kernel."""
    vocabulary = small_vocabulary(name, 7)
    index = compiled(name, lexer, vocabulary, eager=True)
    expected = [([*guide.tokens()], allowed(guide)) for guide, _ in walk(index, Random(3), 25)]
    monkeypatch.setattr(GrammarMachine, "_uses_kernels", lambda self: False)
    again = sg.Index.from_buffer(index.to_bytes(), vocabulary)
    for tokens, mask in expected:
        guide = sg.Guide(again)
        assert all(map(guide.advance, tokens))
        assert allowed(guide) == mask
    assert isinstance(again.machine, GrammarMachine)
    assert again.machine.masks.walked.visits >= 10


def test_what_the_kernel_refuses_is_walked_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no room for tokens of very many lexemes; that is no error in the middle of a text."""
    monkeypatch.setattr(kernels, "walk_stack_masks", lambda *_: (kernels.REFUSED, 0, 0, 0))
    vocabulary = sg.Vocabulary.from_bytes([b"a", b"b", b"ab" * 30, b"a" * 50, b"ba" * 20 + b"x", None], eos_ids=[5])
    index = sg.compile(sg.Grammar('start: (s | t)+\ns: "a" s "b" | "a"\nt: "b"'), vocabulary, eager=False)
    guide = sg.Guide(index)
    assert allowed(guide) == [t for t in range(5) if guide.allows(t)]


def test_a_mask_gives_way_between_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks that need many walks, of a grammar with conflicts and of one without, each pass the lock on."""
    monkeypatch.setattr(locks, "SLICE", 0.0)
    for ambiguity in ("resolve", "all"):
        vocabulary = small_vocabulary("json", 3)
        definition = sg.Grammar(f"{JSON}\n// {ambiguity}", ambiguity=ambiguity, lexer="basic")
        index = sg.compile(definition, vocabulary, eager=False)
        assert isinstance(index.machine, GrammarMachine)
        guide, before = sg.Guide(index), index.machine._lock.passed_on
        assert allowed(guide) == [t for t in range(vocabulary.size) if guide.allows(t)]
        assert index.machine._lock.passed_on > before + 3


def test_a_complete_compile_decides_the_lexeme_behind_a_watched_one() -> None:
    """In ``1.`` the number is complete, and watched, for it could go on with a digit, while the point is read."""
    text = "start: (NUMBER | POINT | NAME)+\nNUMBER: /[0-9]+(\\.[0-9]+)?/\nPOINT: /\\.[a-z]*/\nNAME: /[a-z]+/"
    vocabulary = with_end([*(bytes([b]) for b in b"0123456789.abcxyz"), b"12", b".5", b".x", b"5."])
    index = sg.compile(sg.Grammar(text), vocabulary)
    assert isinstance(index.machine, GrammarMachine)
    decided, guide = index.machine.lexeme_masks.all_decided(), sg.Guide(index)
    assert guide.advance(1)
    assert guide.advance(10)
    config: Any = guide.config
    threads = [(at, watched) for _, at, watched in config.threads]
    assert [watched != () for _, watched in threads] == [False, True]
    assert all((ROOT, at, watched) in decided for at, watched in threads)
    assert allowed(guide) == [t for t in range(vocabulary.size) if guide.allows(t)]


def test_a_complete_compile_decides_what_follows_two_watched_lexemes() -> None:
    """In ``1.`` the point is complete, too, and watched besides: it could go on with a word and a mark."""
    text = "start: (NUMBER | POINT | NAME)+\nNUMBER: /[0-9]+(\\.[0-9]+)?/\nPOINT: /\\.([a-z]+!)?/\nNAME: /[a-z]+/"
    vocabulary = with_end([*(bytes([b]) for b in b"0123456789.abcxyz!"), b"12", b".5", b".x", b"5.", b"ab!"])
    index = sg.compile(sg.Grammar(text), vocabulary)
    assert isinstance(index.machine, GrammarMachine)
    before, guide = index.machine.known_rows, sg.Guide(index)
    assert guide.advance(1)
    assert guide.advance(10)
    assert allowed(guide) == [t for t in range(vocabulary.size) if guide.allows(t)]
    assert index.machine.known_rows == before


def test_a_partial_mask_goes_on_once_behind_a_terminal() -> None:
    """A name ends in the states of keywords and in that of other names: one residual list for all of them."""
    vocabulary = with_end([*EACH_BYTE, b"i=", b"ix=", b"if=", b"thex ", b"s;", b"th;e"])
    index = sg.compile(sg.Grammar(STATEMENTS, lexer="basic"), vocabulary)
    assert isinstance(index.machine, GrammarMachine)
    for (residual, *_), decided in index.machine.lexeme_masks.all_decided().items():
        inside = [(end.terminal, end.watched) for end in decided.ends if end.residual != residual]
        assert len(set(inside)) == len(inside)
