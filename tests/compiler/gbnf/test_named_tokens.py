"""Tokens that GBNF and XGrammar's EBNF name, judged by an Earley recogniser to which a token is a character."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from judges.gbnf_judge import Judge, Tree, render
from judges.json_tokens import mask_of
from judges.xgrammar import XGrammar

import structgen as sg
from structgen.definitions.token_sets import marks_in_gbnf
from structgen.errors import DefinitionError, EmptyLanguageError, UnsupportedError, VocabularyError
from structgen.integrations.requests import check_definition

#: Two ordinary tokens, one of two letters, one spelled like a mark, EOS, two special tokens.
VOCABULARY = sg.Vocabulary.from_bytes(
    [b"a", b"b", b"ab", b"<", b"t", b">", b"<t>", None, None, None],
    eos_ids=[7],
    special_tokens={"<|x|>": 8, "<|y|>": 9},
)
EOS, X, Y = 7, 8, 9
ALL = [each for each in range(10) if each != EOS]

#: How the judge writes a token: a character that no text has.
FIRST = 0xE000

#: Marks, and the tokens that they stand for.
MARKS: dict[str, list[int]] = {
    "<|x|>": [X], "<[9]>": [Y], "<[0]>": [0], "<t>": [6], "!<|x|>": [each for each in ALL if each != X],
    "!<[2]>": [each for each in ALL if each != 2], "<[0-2,9]>": [0, 1, 2, 9], "<[^0-6]>": [X, Y], "<[*]>": ALL,
    "!<[0-5]>": [6, X, Y],
}  # fmt: skip


def random_rules(rng: Random) -> dict[str, Tree]:
    """Rules over the letters a and b and tokens, which never begin with each other."""
    names = ["root", "n", "m"]

    def tree(depth: int, below: list[str]) -> Tree:
        kind = rng.choice(["text", "token", "token", "seq", "alt", "repeat", "rule"])
        if kind == "token" or (depth == 0 and kind != "text"):
            return ("rule", f"#{rng.choice([*MARKS])}")
        if kind == "text" or (kind == "rule" and not below):
            return ("text", rng.choice(["a", "b", "ab", "ba", "<t>"]))
        if kind == "rule":
            return ("rule", rng.choice(below))
        if kind == "repeat":
            return ("repeat", tree(depth - 1, below), *rng.choice([(0, None), (1, None), (0, 1), (2, 3), (1, 30)]))
        return (kind, tuple(tree(depth - 1, below) for _ in range(2)))

    return {name: tree(3, names[at + 1 :]) for at, name in enumerate(names)}


def judge_of(rules: dict[str, Tree]) -> Judge:
    """The judge of rules, tokens as characters of their own."""
    sets = {f"#{mark}": [(FIRST + each, FIRST + each) for each in ids] for mark, ids in MARKS.items()}
    return Judge(rules | {name: ("chars", False, tuple(spans)) for name, spans in sets.items()})


def written(rules: dict[str, Tree]) -> str:
    text: str = render(rules)
    for mark in MARKS:
        text = text.replace(f"#{mark}", mark)
    return text


def readings(tokens: list[int]) -> list[str]:
    """All texts that tokens can be to the judge: each itself, or what it spells."""
    spelled = [[chr(FIRST + each), *([data.decode()] if (data := VOCABULARY.token(each)) else [])] for each in tokens]
    return ["".join(parts) for parts in itertools.product(*spelled)]


def allowed(judge: Judge, tokens: list[int]) -> set[int]:
    """The tokens that may come next, and EOS."""
    found = {each for each in ALL for text in readings([*tokens, each]) if judge.columns(text)[-1] and len(
        judge.columns(text)) == len(text) + 1}  # fmt: skip
    return found | ({EOS} if any(judge.verdict(text.encode())[1] for text in readings(tokens)) else set())


def test_masks_of_random_grammars() -> None:
    rng = Random(5)
    looked = 0
    for _ in range(60):
        rules = random_rules(rng)
        judge, text = judge_of(rules), written(rules)
        if judge.size > 150:
            continue
        try:
            indexes = [sg.compile(sg.Gbnf(text), VOCABULARY, eager=eager) for eager in (True, False)]
            wrapped = sg.compile(sg.sequence("", sg.Gbnf(text)), VOCABULARY, eager=False)
        except UnsupportedError:  # repeats of what repeats, too ambiguous to follow
            continue
        tokens: list[int] = []
        for _ in range(4):
            expected = allowed(judge, tokens)
            for index in (*indexes, wrapped):
                guide = sg.Guide(index)
                assert all(map(guide.advance, tokens)), (text, tokens)
                assert {*mask_of(guide).nonzero()[0].tolist()} == expected, (text, tokens, index)
                looked += 1
            if not expected - {EOS}:
                break
            tokens.append(rng.choice(sorted(expected - {EOS})))
    assert looked > 300


def test_a_grammar_that_llama_cpp_has_as_an_example() -> None:
    think = "root ::= <|x|> thought <|y|> [a-z]*\nthought ::= !<|y|>*"
    guide = sg.Guide(sg.compile(sg.Gbnf(think), VOCABULARY))
    for token in (X, 0, 6, X, 3, Y, 2):
        assert guide.advance(token)
    assert not guide.advance(X)
    assert guide.is_accepting()


def test_a_repeat_counts_a_grammar_that_begins_with_a_token() -> None:
    content = {"type": "grammar", "grammar": 'root ::= <|x|> "a"'}
    repeat = {"type": "repeat", "min": 30, "max": 40, "content": content}
    index = sg.compile(sg.StructuralTag({"type": "sequence", "elements": [repeat]}), VOCABULARY, eager=False)
    guide = sg.Guide(index)
    for turn in range(41):
        expected = [token for token, may_come in ((EOS, turn >= 30), (X, turn < 40)) if may_come]
        assert mask_of(guide).nonzero()[0].tolist() == expected
        assert turn == 40 or (guide.advance(X) and guide.advance(0))


def test_two_grammars_in_one_tag_name_different_tokens() -> None:
    both = sg.sequence(sg.Gbnf("root ::= <|x|> <[0]>"), sg.Gbnf("root ::= <|y|> !<[1]>"))
    guide = sg.Guide(sg.compile(both, VOCABULARY))
    assert all(map(guide.advance, (X, 0, Y)))
    assert {*mask_of(guide).nonzero()[0].tolist()} == {*ALL} - {1}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("root ::= <[10]>", VocabularyError, "no token 10"),
        ("root ::= <zz>", VocabularyError, "no special token <zz>"),
        ("root ::= !<[*]>", VocabularyError, "stands for no token"),
        ("root ::= <[b]>", DefinitionError, r"names no ids of tokens \(line 1, column 10\)"),
        ("root ::= <[\u0661]>", DefinitionError, r"names no ids of tokens"),
        ('root ::= "a"\n  | <[1', DefinitionError, r"no token is named here \(line 2, column 5\)"),
        ('root ::= !"a"', DefinitionError, "no token is named here"),
        ("root ::= <|x|> root", EmptyLanguageError, "complete the rule root"),
    ],
)
def test_refused(text: str, error: type[Exception], said: str) -> None:
    text = text.replace("\n  |", " |\n   ")
    with pytest.raises(error, match=said):
        sg.compile(sg.Gbnf(text), VOCABULARY)


def test_none_within_a_grammar_in_larks_syntax() -> None:
    with pytest.raises(UnsupportedError, match=r"<\|x\|> is a token"):
        sg.compile(sg.Grammar('start: "a" X', definitions={"X": sg.Gbnf("root ::= <|x|>")}), VOCABULARY)


def test_requests_are_checked_without_the_models_vocabulary() -> None:
    check_definition(sg.Gbnf('root ::= <|q|> !<[128009]>* <[4-7]> "<[99999999]>" [<[8] # <[77777777]>'))
    with pytest.raises(DefinitionError, match="no vocabulary has the token 77777777"):
        check_definition(sg.Gbnf("root ::= <[77777777]>"))


def test_nothing_is_looked_for_behind_a_mark_that_never_ends() -> None:
    """A search from each "<" on would take minutes."""
    assert marks_in_gbnf('root ::= <|q|> "<z" <a\n <|r|>') == ["<|q|>"]
    with pytest.raises(DefinitionError, match="no token is named here"):
        check_definition(sg.Gbnf("root ::= " + 300_000 * "<a"))


def test_indexes_of_vocabularies_with_other_special_tokens_are_apart(tmp_path: object) -> None:
    other = sg.Vocabulary.from_bytes(
        [VOCABULARY.token(each) for each in range(10)], eos_ids=[7], special_tokens={"<|x|>": 9, "<|y|>": 8}
    )
    cache = sg.Cache(str(tmp_path))
    first, second = (sg.compile(sg.Gbnf("root ::= <|x|>"), each, cache=cache) for each in (VOCABULARY, other))
    assert [mask_of(sg.Guide(each)).nonzero()[0].tolist() for each in (first, second)] == [[8], [9]]


def test_why_a_token_is_refused_is_told_without_the_rules() -> None:
    index = sg.compile(sg.Gbnf('root ::= <|x|> "a"'), VOCABULARY, eager=False)
    assert "tokens" in str(sg.explain(index, b"b"))


@pytest.mark.parametrize(
    "text",
    [
        'root ::= Token(8) "a"', 'root ::= Token(0, 9, 2)+ "b"', "root ::= ExcludeToken(0, 9){2,3} Token(9)",
        "root ::= TokenTagDispatch((8, x), (9, y), excludes=(3, 4))\nx ::= \"a\"\ny ::= ExcludeToken(1)",
        "root ::= TokenTagDispatch((8, x), (8, y), loop_after_dispatch=false)\nx ::= \"a\"\ny ::= \"b\"",
        'root ::= "b" TokenTagDispatch() ', "root ::= TokenTagDispatch(excludes=(0, 1, 2))",
        'root ::= root Token(8) | "a"', 'root ::= Regex("[ab]*") Token(9) Substring("a", "b")',
    ],
)  # fmt: skip
def test_masks_of_xgrammars_macros(text: str) -> None:
    """XGrammar's own masks, along random tokens, until it has none but the end."""
    judge = XGrammar(VOCABULARY)
    index = sg.compile(sg.Ebnf(text), VOCABULARY, eager=False)
    rng = Random(1)
    for _ in range(5):
        guide, walk = sg.Guide(index), judge.walk({"type": "grammar", "grammar": text})
        for _ in range(8):
            expected = walk.mask().copy()
            if "ExcludeToken" in text:  # the differences "end-as-a-token" and "token-runs-into"
                either = [EOS, *(each for each in ALL if len(VOCABULARY.token(each) or b"") > 1)]
                expected[either] = mask_of(guide)[either]
            assert mask_of(guide).tolist() == expected.tolist(), (text, guide.tokens)
            tokens = [each for each in ALL if expected[each]]
            if not tokens:
                break
            token = rng.choice(tokens)
            assert guide.advance(token)
            assert walk.advance(token)
