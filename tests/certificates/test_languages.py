"""How many texts there are, the shortest and the longest, judged by writing all of them down."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import partial

import lark
import pytest
from judges.lark_judge import parses
from judges.patterns import patterns

import structgen as sg

#: Two letters, and two tokens of several: all texts over them can be written down.
VOCABULARY = sg.Vocabulary.from_bytes([b"a", b"b", b"ab", b"bba", None], eos_ids=[4])

_LONGEST = 9


def judge_of(kind: str, pattern: str) -> Callable[[str], bool]:
    """What says whether a text is accepted: Python's `re`; and Lark, whose lexer takes what `re` prefers."""
    if kind != "grammar":
        compiled = re.compile(pattern)
        return lambda text: compiled.fullmatch(text) is not None
    parser = lark.Lark(f"start: T\nT: /{pattern}/", parser="lalr")
    return partial(parses, parser)


def texts_of(accepts: Callable[[str], bool]) -> list[bytes]:
    """All of up to `_LONGEST` letters."""
    letters = (itertools.product("ab", repeat=length) for length in range(_LONGEST + 1))
    return [text.encode() for word in itertools.chain(*letters) if accepts(text := "".join(word))]


def fewest_tokens(text: bytes) -> int:
    """By trying all splits."""
    tokens = [VOCABULARY.token(i) for i in range(4)]
    best = {b"": 0}
    for length in range(1, len(text) + 1):
        here = text[:length]
        best[here] = min(
            best[here[: -len(t)]] + 1 for t in tokens if t and here.endswith(t) and here[: -len(t)] in best
        )
    return best[text]


@pytest.mark.parametrize("kind", ["regex", "gbnf", "grammar"])
def test_small_languages(kind: str) -> None:
    seen = {"finite": 0, "infinite": 0}
    for pattern in patterns(120):
        infinite = "*" in pattern or "+" in pattern
        least, most = re._parser.parse(pattern).getwidth()  # type: ignore[attr-defined]
        if (kind == "grammar" and (not least or infinite)) or (not infinite and most > _LONGEST):
            continue  # Lark's terminals are not empty; and texts of others are too long to be written down
        accepts = judge_of(kind, pattern)
        texts = texts_of(accepts)
        certificate = sg.certify(sg.compile(definition(kind, pattern), VOCABULARY, eager=False))
        language, ends = certificate["language"], certificate["shortest_and_longest"]
        assert language.verdict == ends.verdict == "proved", (pattern, certificate)
        assert ends.facts["shortest"]["bytes"] == least == min(map(len, texts)), pattern
        assert ends.facts["shortest"]["text"].encode() in texts
        assert ends.facts["shortest"]["tokens"] == fewest_tokens(ends.facts["shortest"]["text"].encode())
        if ends.facts["fewest_tokens"] is not None and ends.facts["fewest_tokens"]["exact"]:
            assert ends.facts["fewest_tokens"]["tokens"] == min(map(fewest_tokens, texts)), pattern
        if language.says.startswith("infinite"):
            seen["infinite"] += 1
            assert infinite, pattern
            pump = language.facts["pump"]
            for times in range(4):
                text = pump["prefix"] + pump["again"] * times + pump["middle"] + pump["more"] * times + pump["suffix"]
                assert accepts(text), (pattern, pump)
            assert pump["again"] + pump["more"]
        else:
            seen["finite"] += 1
            assert not infinite, pattern
            assert language.facts["texts"] == len(texts), pattern
            assert ends.facts["longest"]["bytes"] == max(map(len, texts)), pattern
            assert ends.facts["longest"]["text"].encode() in texts
    assert seen["finite"] > 20
    assert seen["infinite"] > 20 or kind == "grammar"


def definition(kind: str, pattern: str) -> sg.Definition:
    """The same texts in another language."""
    if kind == "regex":
        return sg.Regex(pattern)
    if kind == "grammar":
        return sg.Grammar(f"start: T\nT: /{pattern}/")
    quoted = re.sub(r"\[ab\]|[ab]+", lambda found: found[0] if found[0][0] == "[" else f'"{found[0]}"', pattern)
    return sg.Gbnf("root ::= " + quoted.replace("(?:", "("))


def test_a_grammar_with_a_stack_is_pumped_on_both_sides() -> None:
    vocabulary = sg.Vocabulary.bytewise()
    index = sg.compile(sg.Gbnf('root ::= "(" root ")" | "x" "y"?'), vocabulary)
    pump = sg.certify(index, items=["language"])["language"].facts["pump"]
    assert pump["again"].count("(") == pump["more"].count(")") > 0


def test_texts_are_counted_once_however_they_are_derived(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = [
        {"anyOf": [{"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
                   {"type": "array", "items": {"enum": [True, 1]}, "maxItems": 1}]},
        {"type": "object", "properties": {"a": {"enum": [1, 12]}, "b": {"type": "null"}},
         "additionalProperties": False},
    ]  # fmt: skip
    vocabulary = sg.Vocabulary.bytewise()
    indexes = [sg.compile(sg.JsonSchema(schema, whitespace="compact"), vocabulary) for schema in schemas]
    counts = [sg.certify(index, items=["language"])["language"].facts["texts"] for index in indexes]
    assert counts == [1 + 2 + 4 + 1, 3 * 2]
    for index, count in zip(indexes, counts, strict=True):
        monkeypatch.setattr(type(index.machine), "is_unambiguous", lambda *_: False)
        assert sg.certify(index, items=["language"])["language"].facts["texts"] == count


@pytest.mark.parametrize("bound", [3, 40, 700])
def test_counted_loops(bound: int) -> None:
    index = sg.compile(sg.Regex(f"[ab]{{2,{bound}}}"), VOCABULARY)
    certificate = sg.certify(index, items=["language", "shortest_and_longest"])
    number = sum(2**length for length in range(2, bound + 1))
    assert certificate["language"].facts["texts"] == (number if number < 10**100 else None)
    assert certificate["language"].facts["digits"] == len(str(number))
    assert certificate["shortest_and_longest"].facts["shortest"]["bytes"] == 2
    assert certificate["shortest_and_longest"].facts["longest"]["bytes"] == bound


def test_counted_objects() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1, "x", None]}, "b": {"type": "boolean"}, "c": {"enum": ["y"]}},
        "required": ["c"],
        "additionalProperties": False,
    }
    for order, factor in (("schema", 1), ("any", None)):
        definition = sg.JsonSchema(schema, whitespace="compact", property_order=order)
        facts = sg.certify(sg.compile(definition, sg.Vocabulary.bytewise()))["language"].facts
        # With a and b both there are 6 ways to fill them, and with n members n! orders.
        assert facts["texts"] == (4 * 3 if factor else 1 + 2 * 3 + 2 * 2 + 6 * 6)
