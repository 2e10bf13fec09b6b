"""Grammars in Lark's syntax as parts of other definitions: Lark's texts, and the masks of the grammar alone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from judges.grammars import GRAMMARS
from judges.guides import BYTES, allowed
from judges.lark_judge import changed, judge, parses, spelled, vocabulary_of, written
from judges.random_lark import LETTERS, random_grammar
from lark.exceptions import GrammarError
from tiers import draws

import structgen as sg
from structgen import grammars
from structgen.budget import Budget, Meter
from structgen.compiler.scannerless.lowering import lower_grammar
from structgen.errors import BudgetExceededError, DefinitionError, EmptyLanguageError, UnsupportedError


def check(source: str, letters: str, lexer: str, *, rounds: int = 6) -> int:
    """Compare with Lark on texts, if it has a parser, and with the grammar alone; how many texts were accepted.

    The grammar stands in a tag, whose end is no text of it, and all of a definition.
    """
    random = Random(f"{source}{lexer}")
    try:
        parser = judge(source, lexer)
    except GrammarError:  # of what is empty in several ways
        parser = None
    vocabulary = vocabulary_of(letters, random)
    grammar = sg.Grammar(source, lexer=lexer)
    alone = sg.compile(grammar, vocabulary, eager=False)
    part = sg.compile(sg.sequence(grammar), vocabulary, eager=False)
    tagged = sg.compile(sg.tag("\0", grammar, "\0"), vocabulary, eager=False)
    accepted = 0
    for _ in range(rounds):
        text, _ = written(part, random, 12)
        whole = text.decode("utf-8", "ignore")
        for sample in [whole, *(changed(whole, letters, random) for _ in range(8))]:
            verdict = alone.match(sample.encode()).accepted
            assert parser is None or parses(parser, sample) == verdict, sample
            assert part.match(sample.encode()).accepted == verdict, sample
            assert tagged.match(f"\0{sample}\0".encode()).accepted == verdict, sample
            assert spelled(tagged, f"\0{sample}\0".encode(), random) == verdict, sample
            accepted += verdict
        compare_masks(alone, part, text)
    return accepted


def compare_masks(alone: sg.Index, part: sg.Index, text: bytes) -> None:
    """Byte by byte of a text."""
    guides = sg.Guide(alone), sg.Guide(part)
    for byte in [*text, None]:
        one, other = map(allowed, guides)
        assert one == other, text
        if byte is not None:
            token = next(t for t in one if alone.vocabulary.token(t) == bytes([byte]))
            assert all(guide.advance(token) for guide in guides)


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
@pytest.mark.parametrize("name", GRAMMARS)
def test_texts_are_larks_and_masks_those_of_the_grammar_alone(name: str, lexer: str) -> None:
    assert check(*GRAMMARS[name], lexer)


@pytest.mark.parametrize("seed", range(draws(24)))
def test_random_grammars_are_larks(seed: int) -> None:
    random = Random(seed)
    source, lexer = random_grammar(random), random.choice(["contextual", "basic"])
    alone = sg.Grammar(source, lexer=lexer)
    vocabulary = vocabulary_of(LETTERS, random)
    try:
        sg.compile(alone, vocabulary, eager=False)
    except (DefinitionError, EmptyLanguageError) as error:
        with pytest.raises(type(error)):
            sg.compile(sg.sequence(alone), vocabulary, eager=False)
    else:
        check(source, LETTERS, lexer, rounds=2)


@pytest.mark.parametrize("seed", range(100, 112))
def test_all_that_random_grammars_describe(seed: int) -> None:
    """Conflicts kept: the grammar alone is the judge."""
    random = Random(seed)
    grammar = sg.Grammar(random_grammar(random), lexer=random.choice(["contextual", "basic"]), ambiguity="all")
    vocabulary = vocabulary_of(LETTERS, random)
    try:
        alone = sg.compile(grammar, vocabulary, eager=False)
    except (DefinitionError, EmptyLanguageError) as error:
        with pytest.raises(type(error)):
            sg.compile(sg.sequence(grammar), vocabulary, eager=False)
        return
    part = sg.compile(sg.sequence(grammar), vocabulary, eager=False)
    for _ in range(3):
        text, _ = written(part, random, 10)
        compare_masks(alone, part, text)
        whole = text.decode("utf-8", "ignore")
        for sample in (changed(whole, LETTERS, random) for _ in range(8)):
            assert part.match(sample.encode()).accepted == alone.match(sample.encode()).accepted, sample


#: Definitions in place of terminals of random grammars.
INNER: dict[str, sg.Definition] = {
    "INT": sg.Regex("[01]+e?"),
    "TEXT": sg.JsonSchema({"enum": ["a", 1, 10, [1]]}),
    "NAME": sg.Grammar('start: "a" start? "b" | "if"'),
}


def with_definitions(random: Random) -> sg.Grammar | None:
    """A random grammar in which some terminals are definitions; None where none is."""
    source = random_grammar(random)
    names = random.sample(sorted(INNER), random.randint(1, 3))
    kept = [line for line in source.splitlines() if not line.startswith(tuple(names))]
    used = {name: INNER[name] for name in names if name in source.partition("\nNAME")[0]}
    lexer, ambiguity = random.choice(["contextual", "basic"]), random.choice(["resolve", "all"])
    return sg.Grammar("\n".join(kept), lexer=lexer, ambiguity=ambiguity, definitions=used) if used else None


def test_definitions_within_grammars_within_grammars() -> None:
    """The grammar alone is the judge, whose definitions are machines beside its own lexer and parser."""
    compared = accepted = 0
    for seed in range(90):
        random = Random(seed)
        grammar = with_definitions(random)
        vocabulary = vocabulary_of(LETTERS + '[],"', random, ('[1] "a" aifb', "1 10"))
        try:
            alone = sg.compile(grammar or "", vocabulary, eager=False)
            part = sg.compile(sg.Grammar("start: W", definitions={"W": grammar}), vocabulary, eager=False)
        except (DefinitionError, EmptyLanguageError, UnsupportedError):  # texts that are empty among them
            continue
        compared += 1
        for _ in range(2):
            text, _ = written(alone, random, 10)
            compare_masks(alone, part, text)
            whole = text.decode("utf-8", "ignore")
            for sample in [whole, *(changed(whole, LETTERS, random) for _ in range(8))]:
                verdict = alone.match(sample.encode()).accepted
                assert part.match(sample.encode()).accepted == verdict, sample
                accepted += verdict
    assert compared >= 10
    assert accepted >= 50


def test_a_definition_begins_where_the_lexeme_before_it_is_over() -> None:
    """The first byte says so, or the grammar is refused."""
    word, value = sg.Grammar("start: /[a-z]+/ V", definitions={"V": sg.Regex("1|2a")}), b"ab1"
    index = sg.compile(sg.Grammar("start: W", definitions={"W": word}), BYTES, eager=False)
    assert index.match(value).accepted
    assert not index.match(b"ab").accepted
    none = sg.Grammar('start: /[a-z]+/ V | "1"', definitions={"V": sg.Regex("[a-z]1")})  # what the word always takes
    index = sg.compile(sg.Grammar("start: W", definitions={"W": none}), BYTES, eager=False)
    assert not index.match(b"ab1").accepted
    assert index.match(b"1").accepted
    some = sg.Grammar("start: /[a-z]+/ V", definitions={"V": sg.Regex("[a-z]1|1")})
    with pytest.raises(UnsupportedError, match="could become a longer one"):
        sg.compile(sg.Grammar("start: W", definitions={"W": some}), BYTES, eager=False)


def test_lazy_and_eager_and_from_a_file_are_the_same(tmp_path: Path) -> None:
    random = Random(0)
    source, letters = GRAMMARS["statements"]
    vocabulary = vocabulary_of(letters, random)
    whole = sg.text(until="<") + (sg.Grammar(source) | sg.JsonSchema({"type": "array"})) + ">" + sg.Regex("[if]+")
    eager, lazy = sg.compile(whole, vocabulary), sg.compile(whole, vocabulary, eager=False)
    eager.save(tmp_path / "index.sgx")
    loaded = sg.Index.load(tmp_path / "index.sgx", vocabulary)
    for _ in range(6):
        text, _ = written(lazy, random, 12)
        compare_masks(eager, lazy, text)
        compare_masks(loaded, lazy, text)


@pytest.mark.parametrize("name", ["json", "arithmetic", "markdown"])
def test_shipped_grammars_need_few_controls(name: str) -> None:
    """One, whatever the lexer, so that each nonterminal is one rule; two for the ends of blocks."""
    for lexer in ("contextual", "basic") if name != "markdown" else ("contextual",):
        found = lower_grammar(sg.Grammar(grammars.path(name), lexer=lexer), Meter(Budget()))
        assert len(found.rules) <= 9


def test_what_takes_too_many_controls_is_refused_by_the_budget() -> None:
    grammar = sg.sequence(sg.Grammar(grammars.path("c"), lexer="basic"))
    with pytest.raises(BudgetExceededError):
        sg.compile(grammar, BYTES, eager=False, budget=Budget(states=2_000, seconds=60))
