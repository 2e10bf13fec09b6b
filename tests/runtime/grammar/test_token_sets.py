"""Tokens by their ids in grammars, ``<[1-3,5]>``, ``<[^4]>``, ``<[*]>``: all ways to read them judge."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import pytest
from judges.guides import EACH_BYTE, allowed

import structgen as sg
from structgen.errors import FormatError
from structgen.runtime.grammar.embedded import Embedded

#: Ids from 256 on: the EOS id, special tokens, a hole, and tokens of several bytes.
EOS, SPECIAL, LONG = 256, 257, [b"ab", b"ba", b"aab", b"b.", b"a.b"]


@cache
def vocabulary() -> sg.Vocabulary:
    tokens = [*EACH_BYTE, None, None, None, None, *LONG]
    return sg.Vocabulary.from_bytes(tokens, eos_ids=[EOS], special_tokens={"<|x|>": SPECIAL, "<|y|>": SPECIAL + 1})


#: What random grammars are made of: a letter, or a set of tokens as it is written and by its ids.
SETS = {
    "<[97]>": {97},
    "<[97-98,260]>": {97, 98, 260},
    "<[^97,99-255]>": {*range(265)} - {97, *range(99, 256), EOS},
    "<[*]>": {*range(265)} - {EOS},
    "<[255-258]>": {255, 257, 258},
    "<[262,260,261-263]>": {260, 261, 262, 263},
    "<|x|>": {SPECIAL},
}

#: A grammar without a lexer's say: letters that no lexeme can go on with, and sets; as a regex over symbols.
Symbols = list[str]


def random_grammar(random: Random, depth: int) -> str:
    if not depth or random.random() < 0.3:
        return random.choice(['"a"', '"b"', '"."', *SETS])
    kind = random.choice(["sequence", "sequence", "choice", "many", "may"])
    parts = " ".join(random_grammar(random, depth - 1) for _ in range(2)) if kind == "sequence" else ""
    if kind == "choice":
        return f"({random_grammar(random, depth - 1)} | {random_grammar(random, depth - 1)})"
    if kind in ("many", "may"):
        return f"({random_grammar(random, depth - 1)}){'*' if kind == 'many' else '?'}"
    return f"({parts})"


def readings(tokens: list[int]) -> Iterator[str]:
    """The texts of symbols that tokens can be read as: each as itself, or as its bytes."""
    if not tokens:
        yield ""
        return
    data = vocabulary().token(tokens[0])
    for rest in readings(tokens[1:]):
        yield chr(0x4E00 + tokens[0]) + rest
        if data:
            yield data.decode("latin-1") + rest


def as_regex(grammar: str) -> str:
    """The same as a regex of `re` over symbols: bytes, and tokens as characters that are no bytes."""
    for mark, ids in SETS.items():
        grammar = grammar.replace(mark, "[" + "".join(chr(0x4E00 + i) for i in sorted(ids)) + "]")
    return re.sub(r'"(.)"', lambda found: re.escape(found[1]), grammar).replace(" ", "")


def test_random_grammars_take_the_tokens_that_some_reading_takes() -> None:
    random, taken, refused = Random(5), 0, 0
    for _ in range(80):
        text = random_grammar(random, 3)
        try:
            index = sg.compile(sg.Grammar(f"start: {text}", ambiguity="all"), vocabulary(), eager=False)
        except sg.errors.DefinitionError as error:
            assert "without reading anything" in str(error)  # noqa: PT017
            continue
        pattern = re.compile(as_regex(text))
        for _ in range(12):
            guide, tokens = sg.Guide(index), list[int]()
            for _ in range(random.randrange(5)):
                ids = [t for t in allowed(guide) if t != EOS]
                if not ids:
                    break
                likely = [t for t in ids if t in {97, 98, 46, 257, *range(260, 265)}] or ids
                tokens.append(random.choice(likely))
                assert guide.advance(tokens[-1])
            complete = any(map(pattern.fullmatch, readings(tokens)))
            assert guide.is_accepting() is complete, (text, tokens)
            assert (EOS in allowed(guide)) is complete
            taken, refused = taken + complete, refused + (not complete)
            assert allowed(guide) == [t for t in range(265) if guide.allows(t)], (text, tokens)
            for token in random.sample([97, 98, 46, 257, 258, 259, 99, *range(260, 265)], 4):
                there = guide.fork()
                if not there.advance(token):
                    one_more = [*tokens, token]
                    assert not any(map(pattern.fullmatch, readings(one_more))), (text, one_more)
    assert taken > 100
    assert refused > 100


def test_masks_say_what_can_come() -> None:
    index = sg.compile(sg.Grammar('start: "x" <[97-99,257]> "y" <[^0-255]>'), vocabulary(), eager=False)
    guide = sg.Guide(index)
    assert allowed(guide) == [ord("x")]
    guide.advance(ord("x"))
    assert allowed(guide) == [97, 98, 99, 257]
    guide.advance(98)
    assert allowed(guide) == [ord("y")]
    guide.advance(ord("y"))
    assert allowed(guide) == [*range(257, 265)]
    assert guide.fork().advance(259)  # a hole in the vocabulary
    guide.rollback(2)
    assert allowed(guide) == [97, 98, 99, 257]


def test_a_token_is_text_and_itself() -> None:
    """``ab`` may be the token 260, or an ``a`` and a ``b``; what comes behind is up to both."""
    index = sg.compile(sg.Grammar('start: <[260]> "1" | "ab" "2"'), vocabulary(), eager=False)
    guide = sg.Guide(index)
    guide.advance(260)
    assert allowed(guide) == [ord("1"), ord("2")]
    guide = sg.Guide(index)
    assert guide.advance(ord("a"))
    assert guide.advance(ord("b"))
    assert allowed(guide) == [ord("2")]


def test_indexes_keep_them(tmp_path: Path) -> None:
    grammar = sg.Grammar('start: <[97]> <[*]> <[^0-258,260-264]> "x"')
    index = sg.compile(grammar, vocabulary(), eager=False)
    index.save(tmp_path / "index")
    for each in (index, sg.Index.load(tmp_path / "index")):
        guide = sg.Guide(each)
        assert all(map(guide.advance, [97, 258]))
        assert allowed(guide) == [259]
        assert all(map(guide.advance, [259, ord("x")]))
        assert guide.is_accepting()


def test_nothing_is_forced_beside_them() -> None:
    def forced(text: str) -> list[int]:
        index = sg.compile(sg.Grammar(text), vocabulary(), eager=False)
        return sg.Guide(index).forced_tokens(lambda text: [*text.encode()])

    assert forced('start: "a." "b"') == [97, ord("."), 98, EOS]
    assert forced('start: "a." <[260]> | "a." "b"') == [97, ord(".")]


@pytest.mark.nightly
def test_llguidance_allows_the_same_tokens() -> None:
    reason = "the layout's other implementation is not installed"
    llguidance = pytest.importorskip("llguidance", reason=reason)
    tokens = llguidance.LLTokenizer("byte")
    bytewise = sg.Vocabulary.from_bytes([*EACH_BYTE, *[None] * 6], eos_ids=[261], special_tokens={})
    texts = ['<[65-67]> "x"', '<[^65-67,90]> "x"', '<[*]> "x"', '<[65,67-69]> "x"', '(<[97-99]> ".")*', "<[260,97]>"]
    for text in texts:
        index = sg.compile(sg.Grammar(f"start: {text}"), bytewise, eager=False)
        for first in range(256):
            for second in (None, ord("x"), ord("."), 97):
                ids = [first] if second is None else [first, second]
                matcher = llguidance.LLMatcher(tokens, f"start: {text}", log_level=0)
                expected = matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting()
                guide = sg.Guide(index)
                assert (all(map(guide.advance, ids)) and guide.is_accepting()) is expected, (text, ids)


@pytest.mark.parametrize(
    ("tokens", "ranges"),
    [([[3, 1], [3, 1]], []), ([[3, 1]], [[2, 4, 1]]), ([], [[2, 4, 1], [4, 5, 1]]), ([], [[5, 4, 1]])],
)
def test_files_whose_ranges_meet_are_refused(tokens: list[list[int]], ranges: list[list[int]]) -> None:
    """The sets of terminals are worked out by what begins and ends at each id, once."""
    meta = {"definitions": [], "tokens": tokens, "token_ranges": ranges}
    with pytest.raises(FormatError, match="in common"):
        Embedded.read(meta, {}, vocabulary(), 2, "file")
    found = Embedded.read({"definitions": [], "tokens": [[3, 1]], "token_ranges": [[2, 4, 0]]}, {}, vocabulary(), 2, "")
    assert [found.terminals_of(token) for token in range(6)] == [0, 0, 1, 3, 1, 0]


@pytest.mark.parametrize("mark", [f"<[{EOS}]>", "<|end|>"])
def test_tokens_that_end_texts_are_told(mark: str) -> None:
    ending = sg.Vocabulary.from_bytes([*EACH_BYTE, *[None] * 6], eos_ids=[EOS], special_tokens={"<|end|>": EOS})
    with pytest.warns(sg.errors.GrammarWarning, match="is an EOS token: engines end the text there"):
        sg.compile(sg.Grammar(f'start: "a" {mark}'), ending)


def test_of_sets_nothing_is_told(recwarn: pytest.WarningsRecorder) -> None:
    ending = sg.Vocabulary.from_bytes([*EACH_BYTE, *[None] * 6], eos_ids=[EOS])
    sg.compile(sg.Grammar(f'start: "a" <[90-{EOS}]> <[^97]> <[*]>'), ending)
    assert not list(recwarn)
