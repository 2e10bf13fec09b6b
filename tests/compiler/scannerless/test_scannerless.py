"""Grammars in Lark's syntax as parts of other definitions: Lark's texts, and the masks of the grammar alone."""

from __future__ import annotations

from random import Random

import pytest
from judges.grammars import GRAMMARS
from judges.guides import allowed
from judges.lark_judge import changed, judge, parses, spelled, vocabulary_of, written
from judges.random_lark import LETTERS, random_grammar

import structgen as sg
from structgen.errors import DefinitionError, EmptyLanguageError


def check(source: str, letters: str, lexer: str, *, rounds: int = 6) -> int:
    """Compare with Lark on texts, and with the grammar alone on masks; how many texts were accepted.

    The grammar stands in a tag, whose end is no text of it, and all of a definition.
    """
    random = Random(f"{source}{lexer}")
    parser = judge(source, lexer)
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
            verdict = parses(parser, sample)
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


@pytest.mark.parametrize("seed", range(24))
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
