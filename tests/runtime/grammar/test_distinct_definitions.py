"""Schemas within grammars whose items or names must differ: which have been there is part of the configuration.

The judges: Python's ``json`` and `jsonschema` say which of the texts of the same grammar, with items that may repeat,
have valid values. Of grammars with finitely many texts all are spelled out, and a token is allowed if and only if
some text goes on with it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from conftest import tokenizer_folder
from judges.batches import check_steps
from judges.finite_texts import check_kept, check_masks, is_valid, tells_apart
from judges.guides import allowed, with_bytes

import structgen as sg
from structgen.compiler.json_schema.lower import unique
from structgen.errors import UnsupportedError

#: All bytes, and tokens in which items end, others begin, and texts are over.
TOKENS = b"""
    ["a","a"] ["a","b"] "," "," a"] a"]> "]> "]>! <[" <["a","a" <["a","b" ,"a" ,"a"]> ,"b"]>
    1,1 ,1 1] 1]> ,1]> [1,1 0,1 <{"a":1,"a" ":1,"b": "a":1}>
""".split()
VOCABULARY, EOS = with_bytes(*TOKENS), 256 + len(TOKENS)

WORDS: dict[str, Any] = {"type": "array", "items": {"enum": ["a", "ab", "abc"]}, "uniqueItems": True, "maxItems": 3}
MIXED = {"type": "array", "items": {"enum": ["a", 1, 12, None]}, "uniqueItems": True, "maxItems": 3}
NESTED = {
    "type": "array",
    "uniqueItems": True,
    "maxItems": 2,
    "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2, "uniqueItems": True},
}
EITHER = {"anyOf": [{**WORDS, "maxItems": 2}, {"type": "array", "items": {"enum": ["a", 2]}, "maxItems": 2}]}
NAMED = {
    "type": "object",
    "patternProperties": {"^(a|ab|abc)$": {"enum": [1, 12]}},
    "additionalProperties": False,
    "maxProperties": 2,
}

#: Grammars of one schema, and what finds its texts in theirs.
AROUND: dict[str, tuple[str, str]] = {
    "marks": ('start: "<" X ">"', "<(.*)>"),
    "letters": ("start: X TAIL?\nTAIL: /b{1,2}/", "(.*?)b*"),
    "brackets": ('start: "[" X "]"', r"\[(.*)\]"),
    "spaces": ('start: "<" SPACE? X SPACE? ">"\nSPACE: / {1,2}/', "< *(.*?) *>"),
    "twice": ('start: X ";" X?', "(.*?);(.*)"),
    "longer lexemes": (
        r"""start: WORD X "!"
        WORD: /a(\["a"(,"b)?|\[\[1,)?|\{"a/""",
        r"""(?:a(?:\["a"(?:,"b)?|\[\[1,)?|\{"a)(.*)!""",
    ),
    "lexemes that go on": (
        r"""start: WORD X ";"
        WORD: /a(\["ab?","a[?]|\[1,1[?]|\[\[\],\[[?]|\{"ab?":1,"a[?])?/""",
        r"""a(?:\["ab?","a\?|\[1,1\?|\[\[\],\[\?|\{"ab?":1,"a\?)?(.*);""",
    ),
    "either of two": ('start: "<" (X | X "?") ">"', r"<(.*?)\??>"),
}

SCHEMAS = {"words": WORDS, "mixed": MIXED, "nested": NESTED, "either": EITHER, "names": NAMED}


def within(grammar: str, schema: Any, *, unique: bool = True) -> sg.Grammar:
    """A grammar with the schema as X, or with one whose items and names may repeat."""
    if not unique:
        schema = json.loads(json.dumps(schema).replace('"uniqueItems": true', '"uniqueItems": false'))
    return sg.Grammar(grammar, definitions={"X": sg.JsonSchema(schema, whitespace="compact", unique_names=unique)})


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("around", AROUND)
def test_masks_by_all_texts(around: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unique, "_MAX_SETS", 0)
    grammar, pattern = AROUND[around]
    schema = SCHEMAS[name]
    if around == "twice":
        schema = {**schema, "maxItems": 2, "maxProperties": 2}

    def has_valid_values(text: bytes) -> bool:
        found = re.fullmatch(pattern, text.decode())
        assert found, text
        return all(is_valid(schema, each) for each in found.groups() if each)

    check_masks(within(grammar, schema), within(grammar, schema, unique=False), has_valid_values)


def test_masks_of_grammars_within_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose automata the schema's is a part of: a text may be several things from any of its bytes on."""
    monkeypatch.setattr(unique, "_MAX_SETS", 0)
    inner = 'start: X | X "!" | "[" X "]" "?" | "[" NUMBERS "]"\nNUMBERS: /1(,1){0,2}/'

    def grammar(*, unique: bool) -> sg.Grammar:
        return sg.Grammar('start: "<" @inner ">"', definitions={"INNER": within(inner, MIXED, unique=unique)})

    def has_valid_values(text: bytes) -> bool:
        found = text[1:-1].decode()
        if re.fullmatch(r"\[1(,1){0,2}\]", found):
            return True
        return is_valid(MIXED, found[1:-2] if found.endswith("?") else found.removesuffix("!"))

    check_masks(grammar(unique=True), grammar(unique=False), has_valid_values)


#: Schemas of values without end, and some of these as they are written, some of them equal.
ENDLESS: dict[str, tuple[Any, str]] = {
    "strings": ({"items": {"type": "string"}}, r'"a" "\u0061" "" "ab" "\n" "\u000a" "😀" "\ud83d\uDE00" "aa"'),
    "numbers": ({"items": {"type": "number"}}, "1 1.0 1e0 10e-1 0 -0 0.0 0e7 -1 100 1E+2 0.5 5e-1 12 1.20"),
    "mixed": ({"items": {}}, '[1] [1.0] {"a":1,"b":2} {"b":2,"a":1} {"a":1} null true "1" 1 [] [[]] {}'),
    "bounded": ({"items": {"type": "integer", "minimum": 8, "maximum": 30000}}, "8 9 10 30000 29999 300"),
    "of a length": ({"items": {"type": "string"}, "minItems": 2, "maxItems": 3}, r'"a" "\u0061" "" "ab" "aa"'),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_jsonschema_decides_texts(name: str) -> None:
    """Of grammars with `%json` in their texts; there may be several arrays, each with items of its own."""
    random = Random(name)
    schema = {"type": "array", "uniqueItems": True, **ENDLESS[name][0]}
    text = 'start: "items:" (list ";")+\nlist: %json SCHEMA\n%ignore / +/'
    wanted, without = (
        sg.compile(sg.Grammar(text.replace("SCHEMA", json.dumps(each))), VOCABULARY, eager=False)
        for each in (schema, {**schema, "uniqueItems": False})
    )
    assert tells_apart(wanted)
    seen = set()
    for _ in range(80):
        lists = [random.choices(ENDLESS[name][1].split(), k=random.randrange(5)) for _ in range(random.choice([1, 2]))]
        values = [f"[{','.join(items)}]" for items in lists]
        written = "items:" + "".join(f" {value} ;" for value in values)
        expected = without.match(written.encode()).accepted and all(is_valid(schema, value) for value in values)
        assert wanted.match(written.encode()).accepted == expected, written
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("name", sorted({*ENDLESS} - {"numbers"}))  # whose exponents take milliseconds each
def test_masks_are_those_of_the_schema_alone(name: str) -> None:
    """Which are judged where these are tested; and what is around it, in whole tokens with the end of the value."""
    random, refused = Random(name), 0
    schema = sg.JsonSchema({"type": "array", "uniqueItems": True, **ENDLESS[name][0]}, escapes="any")
    alone = sg.compile(schema, VOCABULARY, eager=False).machine
    index = sg.compile(sg.Grammar('start: "<" X ">" "!"?', definitions={"X": schema}), VOCABULARY, eager=False)
    tokens = [(token, VOCABULARY.token(token) or b"") for token in range(EOS)]

    for _ in range(3):
        guide, config = sg.Guide(index), alone.start
        assert guide.advance(ord("<"))
        for _ in range(8):
            expected = set()
            for token, data in tokens:
                ends = (len(data) - len(end) for end in (b">", b">!") if data.endswith(end))
                reached = (alone.reach(config, data[:end]) for end in ends)
                if alone.reach(config, data)[0] == len(data) or any(
                    consumed == data.find(b">") and alone.is_accepting(there) for consumed, there in reached
                ):
                    expected.add(token)
            found = {*allowed(guide)}
            assert found == expected
            inside = [token for token in sorted(found) if b">" not in tokens[token][1]]
            refused += EOS - len(found)
            if not inside:
                break
            likely = [token for token in inside if token > 255 or token in {*b'"a,1[]'}]
            token = random.choice([*inside, *likely * 8])
            assert guide.advance(token)
            config = alone.reach(config, tokens[token][1])[1]
    assert refused


def test_guides_fork_roll_back_and_are_kept(tmp_path: Path) -> None:
    schema = {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True}
    index = sg.compile(within('start: "<" X ">"', schema), VOCABULARY, eager=False)
    check_kept(index, tmp_path, b"<", b">")


def test_batches_have_the_guides_masks() -> None:
    schema = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    check_steps(sg.compile(within('start: "<" X ">"', schema), VOCABULARY, eager=False), 3, 20, Random(1))


def test_names_are_told_apart_in_any_object() -> None:
    definition = sg.JsonSchema(True, unique_names=True)
    index = sg.compile(sg.Grammar('start: "a" X', definitions={"X": definition}), VOCABULARY, eager=False)
    for text, accepted in (
        (b'a{"a": 1, "b": {"a": 2}}', True),
        (b'a{"a": 1, "a": 2}', False),
        (rb'a[{"a": 1, "\u0061": 2}]', False),
    ):
        assert index.match(text).accepted is accepted


def test_a_budget_of_tokens_counts_no_sets() -> None:
    grammar = (
        'start: "<" x ">"\nx[max_tokens=5]: %json {"type": "array", "items": {"type": "string"}, "uniqueItems": true}'
    )
    with pytest.raises(UnsupportedError, match="max_tokens is not supported"):
        sg.compile(sg.Grammar(grammar), VOCABULARY, eager=False)


def test_real_tokens() -> None:
    vocabulary = sg.Vocabulary.from_pretrained(tokenizer_folder("llama3"))
    schema = {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True}
    wanted, without = (
        sg.compile(within('start: "<" X ">"', schema, unique=each), vocabulary, eager=False) for each in (True, False)
    )
    refused, encode = 0, vocabulary.encode
    assert encode is not None
    for text in ('<["red","green', '<["red","green","', '<["red","g', "<[12,1,3,1", "<[12,1,", '<["red","re', "<"):
        guide, plain = sg.Guide(wanted), sg.Guide(without)
        for token in encode(text):
            assert guide.advance(token)
            assert plain.advance(token)
        mask, more = set(allowed(guide)), set(allowed(plain))
        assert mask <= more
        for token in more:
            data = vocabulary.token(token) or b""
            if token in mask and not {*data} & {*b'",>'}:
                continue
            value = text.encode() + data
            can = any(is_valid(schema, (value + end)[1:-1].decode()) for end in _ENDS if value.isascii())
            can = can or not value.isascii()
            assert (token in mask) == can, value
            refused += not can
    assert refused > 3


#: What ends any text of the test above, if anything does.
_ENDS = [item + end for item in (b"", b'zq"', b'"zq"', b' "zq"', b"777", b',"zq"', b'"') for end in (b"]>", b">", b"")]
