"""Outside judges say that what comes out is valid, and that what was kept is the longest valid prefix."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise

import jsonschema
import lark
import pytest
import regex
from judges.adversaries import SHIPPED, Adversary, invalid, mutated

import structgen as sg
from structgen.budget import Budget
from structgen.correction.path import Path

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["circle", "square", "triangle"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 4},
        "at": {"type": "object", "properties": {key: {"type": "number"} for key in "xy"}, "required": ["x", "y"]},
        "ok": {"type": "boolean"},
    },
    "required": ["id", "kind"],
    "additionalProperties": False,
}

ARITHMETIC = """
start: sum
sum: product (("+" | "-") product)*
product: atom (("*" | "/") atom)*
atom: NUMBER | NAME ["(" [sum ("," sum)*] ")"] | "(" sum ")"
NUMBER: /[0-9]+(\\.[0-9]+)?/
NAME: /[a-z]+/
%ignore " "
"""


def json_texts(random_: random.Random) -> list[str]:
    def value() -> dict[str, object]:
        found: dict[str, object] = {
            "id": random_.randrange(1000),
            "kind": random_.choice(["circle", "square", "triangle"]),
            "tags": random_.sample(["a", "bé", "long one"], random_.randrange(3)),
            "at": {"x": -1.5, "y": 2},
            "ok": True,
        }
        for name in random_.sample(["tags", "at", "ok"], random_.randrange(4)):
            del found[name]
        return found

    return [json.dumps(value(), ensure_ascii=False) for _ in range(30)]


def is_valid_json(text: str) -> bool:
    jsonschema.validate(json.loads(text), SCHEMA)
    return True


PATTERN = r"(?:[a-z]+=(?:[0-9]{1,3}|\"[^\"]*\");){2,4}end"
_lark = lark.Lark(ARITHMETIC, parser="lalr")

KINDS: dict[str, tuple[Callable[[], object], Callable[[random.Random], list[str]], Callable[[str], bool]]] = {
    "schema": (lambda: sg.JsonSchema(SCHEMA, whitespace="any"), json_texts, is_valid_json),
    "grammar": (
        lambda: sg.Grammar(ARITHMETIC),
        lambda _: ["1 + 2*(foo(3, x) - 4.5)", "f()", "((a))/b", "12.50 - bar(1, 2, 3)"],
        lambda text: _lark.parse(text) is not None,
    ),
    "regex": (
        lambda: sg.Regex(PATTERN),
        lambda _: ['a=1;b="x y";end', "abc=123;d=4;e=5;f=6;end"],
        lambda text: regex.fullmatch(PATTERN, text) is not None,
    ),
    "gbnf": (
        lambda: sg.Gbnf('root ::= "[" item ("," item)* "]"\nitem ::= [a-z]+ | root'),
        lambda _: ["[a,b,[c]]", "[[[abc]],d]"],
        lambda text: regex.fullmatch(r"(\[((?1)|[a-z]+)(,((?1)|[a-z]+))*\])", text) is not None,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_comes_out_is_valid(kind: str) -> None:
    definition, texts, judge = KINDS[kind]
    index = sg.compile(definition(), sg.Vocabulary.bytewise(), eager=False, base_rows=False)
    random_ = random.Random(kind)
    right = texts(random_)
    assert all(map(judge, right))
    ended: set[str] = set()
    for _ in range(300):
        result = sg.correct(Adversary(right, random_), index, max_corrections=random_.randrange(8))
        assert result.complete
        assert judge(result.text)
        assert "".join(piece.text for piece in result.pieces if piece.source != "dropped") == result.text
        ended.add(result.ended_by)
    assert ended == {"model", "definition", "ending"} - ({"definition"} if kind in ("grammar",) else set())


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHIPPED)
def test_whatever_comes_out_of_a_shipped_grammar_is_valid(name: str) -> None:
    target, random_ = SHIPPED[name], random.Random(name)
    assert not any(map(target.judge, target.texts))
    index = sg.compile(target.definition(), sg.Vocabulary.bytewise(), eager=False, budget=Budget(seconds=120))
    for _ in range(50):
        result, error = invalid(target, index, random_)
        assert result.complete
        assert not error, result.text


def test_what_is_kept_is_the_longest_prefix_that_a_regex_continues() -> None:
    index = sg.compile(sg.Regex(PATTERN), sg.Vocabulary.bytewise(), eager=False)
    random_ = random.Random(5)
    for _ in range(2000):
        text = mutated('abc=12;d="é ";e=5;end', random_)
        path = Path(index)
        path.extend(text.encode())
        path.cut_to_character()
        kept = len(path.text)
        partial = [regex.fullmatch(PATTERN, text[:end], partial=True) is not None for end in range(len(text) + 1)]
        assert partial[kept]
        assert kept == len(text) or not partial[kept + 1]


def test_what_is_kept_is_the_longest_prefix_of_any_text_of_a_finite_language() -> None:
    words = [a + b + c for a in ('{"x": ', '{"yé": ') for b in ("true", "false", "12") for c in ("}", ', "z": "é"}')]
    index = sg.compile(sg.Regex.choice(words), sg.Vocabulary.bytewise(), eager=False)
    random_ = random.Random(6)
    for _ in range(2000):
        data = mutated(random_.choice(words), random_).encode()
        path = Path(index)
        longest = max(
            next(
                (i for i, pair in enumerate(zip(word.encode(), data, strict=False)) if pair[0] != pair[1]),
                min(len(word.encode()), len(data)),
            )
            for word in words
        )
        assert path.extend(data) == longest
        found = sg.candidates(index, data.decode(errors="ignore"))
        ends = {word.removeprefix(found.prefix) for word in words if word.startswith(found.prefix)}
        assert all(any(end.startswith(literal) for end in ends) for literal in found.literals)
        assert all(any(end.startswith(literal) for literal in found.literals) for end in ends if end)
        assert found.can_end == ("" in ends)


def test_repairs_are_the_nearest_by_edit_distance() -> None:
    words = ["select", "selection", "delete", "insert", "update", "upsert"]
    definition = sg.compile(sg.Regex.choice([word + ";" for word in words]), sg.Vocabulary.bytewise(), eager=False)
    random_ = random.Random(7)
    for _ in range(500):
        word = random_.choice(words)
        at = random_.randrange(2, len(word))
        wrong = word[:at] + random_.choice(["", "x", word[at] + "q"]) + word[at + 1 :] + ";"
        result = sg.correct(lambda _, wrong=wrong: wrong, definition)  # type: ignore[misc]
        distances = {each: distance(wrong, each + ";") for each in words}
        assert result.complete
        if min(distances.values()) == 1:
            assert distances[result.text[:-1]] == 1, (wrong, result.text)


def distance(a: str, b: str) -> int:
    """Levenshtein's."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def test_pieces_come_in_any_size() -> None:
    definition = sg.JsonSchema(SCHEMA, whitespace="any")
    index = sg.compile(definition, sg.Vocabulary.bytewise(), eager=False, base_rows=False)
    random_ = random.Random(8)
    for text in json_texts(random_):
        cuts = sorted(random_.choices(range(len(text) + 1), k=6))
        pieces = [text[a:b] for a, b in pairwise([0, *cuts, len(text)])]
        assert sg.correct(lambda _, pieces=pieces: iter(pieces), index).text == text  # type: ignore[misc]
