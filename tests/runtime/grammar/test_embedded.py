"""Definitions and special tokens within grammars: one grammar for a whole reply."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from judges.guides import BYTES, EACH_BYTE, allowed

import structgen as sg
from structgen.errors import UnsupportedError

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}

#: Thought, then a call whose arguments follow a schema, or an answer; and what ends a turn is a special token.
REPLY = r"""
start: THOUGHT (call+ | answer) <|eom|>
THOUGHT: /<think>(.|\n)*?<\/think>/
call: "<call>" "lookup" PERSON "</call>" | "<call>" "count" %json {"type": "integer", "minimum": 0} "</call>"
answer: "Answer:" WORD+ | <[261]> DATE
WORD: /[a-z]+/
%ignore /[ \n]+/
"""

EXTRA = [
    b"<think>", b"</think>", b"<call>", b"</call>", b"lookup", b'{"name"', b'":"', b'"}', b'"}</call>',
    b"</call><call>", b"12", b"Answer: ", b"ok", b"\n", b"0</", b" count 1", b"2024-", b'"}</',
    b"k>Answer", b"1</call>\n",
]  # fmt: skip


@cache
def vocabulary() -> sg.Vocabulary:
    tokens: list[bytes | None] = [*EACH_BYTE]
    tokens += [None, None, None, None, None, None]  # 256..261
    tokens += EXTRA
    return sg.Vocabulary.from_bytes(tokens, eos_ids=[256], special_tokens={"<|eom|>": 257, "<|python|>": 258})


@cache
def reply(lexer: str = "contextual") -> sg.Index:
    definitions = {"PERSON": PERSON, "DATE": sg.Regex(r"\d{4}-\d\d(-\d\d)?")}
    return sg.compile(sg.Grammar(REPLY, lexer=lexer, definitions=definitions), vocabulary(), eager=False)


def follow(index: sg.Index, *parts: bytes | int) -> sg.Guide | None:
    """A guide after some bytes, one by one, and special tokens; None where one is refused."""
    guide = sg.Guide(index)
    for part in parts:
        for token in part if isinstance(part, bytes) else [part]:
            if not guide.advance(token):
                return None
    return guide


def accepts(index: sg.Index, *parts: bytes | int) -> bool:
    guide = follow(index, *parts)
    return guide is not None and guide.is_accepting()


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
@pytest.mark.parametrize(
    ("parts", "accepted"),
    [
        ((b'<think>a </thin b</think> <call>lookup {"name":"B","age":3} </call>', 257), True),
        ((b'<think></think><call>lookup{"name":"B"}</call>\n<call>count 12</call>', 257), True),
        ((b"<think></think>Answer: yes no", 257), True),
        ((b"<think></think>Answer: yes no",), False),
        ((b"<think></think>", 261, b"2024-01", 257), True),
        ((b"<think></think>", 261, b"2024-01-31 \n", 257), True),
        ((b"<think></think>", 261, b"2024-1", 257), False),
        ((b"<think></think>", 258), False),
        ((b"<think>", 257), False),
        ((b"<think></think><call>count -1</call>", 257), False),
        ((b'<think></think><call>lookup {"age":3}</call>', 257), False),
        ((b"<think></think>Answer: yes", 257, 257), False),
    ],
)
def test_replies(parts: tuple[bytes | int, ...], accepted: bool, lexer: str) -> None:
    assert accepts(reply(lexer), *parts) == accepted


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_masks_are_what_guides_accept(lexer: str) -> None:
    index, random, ended, inside = reply(lexer), Random(lexer), 0, 0
    size = index.vocabulary.size
    for _ in range(60):
        guide = follow(index, random.choice([b"", b"<think>", b"<think></think>", b"<think></think><call>"]))
        assert guide is not None
        for _ in range(20):
            ids = allowed(guide)
            assert ids == [t for t in range(size) if guide.allows(t)]
            assert ids, "stuck"
            assert (256 in ids) == guide.is_accepting()
            ended += guide.is_accepting()
            inside += 123 in ids
            likely = [t for t in ids if t > 256 or chr(t) in '{}"<>0123</'] or ids
            token = random.choice(likely if random.random() < 0.8 else ids)
            guide.advance(token)
    assert ended
    assert inside


def test_a_definition_behind_a_lexeme_that_could_go_on() -> None:
    """``ab`` may be all of the word, or the beginning of ``abc``: then no definition begins with what goes on."""
    text = 'start: WORD CODE "!"\nWORD: /[a-z]+/'
    index = sg.compile(sg.Grammar(text, definitions={"CODE": sg.Regex("[a-z]?[0-9]+x?")}), vocabulary(), eager=False)
    for given, accepted in {b"ab12!": True, b"abc12x!": True, b"a!": False, b"1!": False}.items():
        assert index.match(given).accepted == accepted
    guide = follow(index, b"ab")
    assert guide is not None
    assert allowed(guide) == [t for t in range(index.vocabulary.size) if guide.allows(t)]


def test_schemas_agree_with_json_inside_a_grammar() -> None:
    text = 'start: "<" VALUE ("," VALUE)* ">"\n%ignore " "'
    definitions = {"VALUE": {"type": ["integer", "array"], "items": True}}
    index = sg.compile(sg.Grammar(text, definitions=definitions), vocabulary(), eager=False)
    random = Random(0)
    for _ in range(60):
        values = [random.choice([1, 23, [], [1, [2]], [{"a": "b>,"}]]) for _ in range(random.randint(1, 4))]
        written = [json.dumps(value, separators=(",", ":")) for value in values]
        text = "<" + random.choice([",", " ,", ", "]).join(written) + ">"
        assert index.match(text.encode()).accepted, text
        broken = text.replace("]", "", 1).replace("1", "true", 1)
        assert index.match(broken.encode()).accepted == (broken == text)


def test_eager_stored_and_cached_are_the_same(tmp_path: Path) -> None:
    definitions = {"PERSON": PERSON, "DATE": sg.Regex(r"\d{4}-\d\d(-\d\d)?")}
    definition = sg.Grammar(REPLY, definitions=definitions)
    with sg.Cache(tmp_path / "cache") as cache:
        eager = sg.compile(definition, vocabulary(), cache=cache)
        cached = sg.compile(definition, vocabulary(), cache=cache)
        renamed = sg.Vocabulary.from_bytes(
            [vocabulary().token(t) for t in range(vocabulary().size)], eos_ids=[256], special_tokens={"<|eom|>": 258}
        )
        other = sg.compile(definition, renamed, cache=cache)
    assert cached.origin == "cache"
    assert other.origin != "cache", "the token has another id"
    eager.save(tmp_path / "index")
    stored = sg.Index.load(tmp_path / "index", vocabulary())
    assert stored.to_bytes() == eager.to_bytes()
    random = Random(3)
    for _ in range(10):
        guides = [sg.Guide(index) for index in (reply(), eager, cached, stored)]
        for _ in range(30):
            ids = allowed(guides[0])
            assert all(allowed(guide) == ids for guide in guides)
            token = random.choice([t for t in ids if t > 256] or ids)
            assert all(guide.advance(token) for guide in guides)


@pytest.mark.parametrize(
    ("text", "options", "error", "match"),
    [
        ("start: <|nothing|>", {}, sg.errors.VocabularyError, "no special token <.nothing.>"),
        ("start: <[999999]>", {}, sg.errors.VocabularyError, r"has no token 999999, .* Its last id is 2\d\d"),
        ("start: <[5,90-999999]>", {}, sg.errors.VocabularyError, "has no token 999999"),
        ("start: <[256-256]>", {}, sg.errors.VocabularyError, "stands for no token"),
        ("start: <[9-5]>", {}, sg.errors.DefinitionError, "names no ids"),
        ("start: <[^*]>", {}, sg.errors.DefinitionError, "names no ids"),
        ("start: <[]>", {}, sg.errors.DefinitionError, "names no ids"),
        ('start: "a" %json {"type": }', {}, sg.errors.DefinitionError, "followed by no JSON"),
        ('start: "a"\n  | %json 12', {}, sg.errors.DefinitionError, r"no schema \(line 2, column 11\)"),
        ("start: X", {"definitions": {"X": sg.Regex("a*")}}, sg.errors.DefinitionError, "X has the empty text"),
        ("start: X", {"definitions": {"x": sg.Regex("a")}}, sg.errors.DefinitionError, "'x' is no name"),
        ('start: "a"', {"definitions": {"X": sg.Regex("a")}}, sg.errors.DefinitionError, "no rule has the terminal X"),
        (
            "start: X",
            {"definitions": {"X": sg.StructuralTag({"type": "const_string", "value": "a"})}},
            sg.errors.DefinitionError,
            "cannot stand in a grammar",
        ),
        ("start: X", {"definitions": {"X": "a"}}, sg.errors.DefinitionError, "cannot compile a str"),
        ("start: X", {"definitions": ["X"]}, sg.errors.DefinitionError, "definitions is a list"),
        ("start: X", {"definitions": {"X": False}}, sg.errors.DefinitionError, "X|bool"),
    ],
)
def test_bad_marks(text: str, options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        sg.compile(sg.Grammar(text, **options), vocabulary())


def test_marks_are_not_looked_for_in_strings_regexes_and_comments() -> None:
    index = sg.compile(sg.Grammar('start: "<|eom|>" /<b>/ // <|no|>\n  # <no>\n'), vocabulary(), eager=False)
    assert index.match(b"<|eom|><b>").accepted


def test_marks_are_not_looked_for_in_regexes_over_several_lines() -> None:
    index = sg.compile(sg.Grammar("start: A\nA: /(?P<name>a) # <no>\n b/x"), vocabulary(), eager=False)
    assert index.match(b"ab").accepted


@pytest.mark.parametrize("special", [257, 256])
@pytest.mark.parametrize("lexer", ["contextual", "basic"])
@pytest.mark.parametrize("text", ["", '"b"', '%json {"const": 12}', "/[a-z]+/"])
def test_a_special_token_ends_the_text(text: str, lexer: str, special: int) -> None:
    """With nothing ignored, nothing can come behind it. An EOS token that the grammar names is one like others."""
    index = sg.compile(sg.Grammar(f"start: {text} <[{special}]>", lexer=lexer), vocabulary(), eager=False)
    guide = follow(index, {"": b"", '"b"': b"b", "/[a-z]+/": b"ok"}.get(text, b"12"))
    assert guide is not None
    assert special in allowed(guide)
    assert not guide.is_accepting()
    assert guide.advance(special)
    assert guide.is_accepting()
    assert allowed(guide) == [256]


def test_a_special_token_that_nothing_can_follow_is_not_allowed() -> None:
    text = 'start: "b" | <|eom|> A | <|python|>\nA: /a(?=b)/'
    index = sg.compile(sg.Grammar(text), vocabulary(), eager=False)
    assert allowed(sg.Guide(index)) == [98, 258]
    assert [t for t in range(index.vocabulary.size) if sg.Guide(index).allows(t)] == [98, 258]


def test_what_an_unused_rule_holds_does_not_matter() -> None:
    text = 'start: "a"\nunused: %json {"type": "null"} <|eom|>'
    assert sg.compile(sg.Grammar(text), vocabulary(), eager=False).match(b"a").accepted


@pytest.mark.parametrize(("mark", "name"), [('%json {"type": "integer"}', "JSON"), ("<|eom|>", "TOKEN_EOM")])
def test_a_definition_does_not_take_the_place_of_a_mark(mark: str, name: str) -> None:
    """Marks become terminals with names; a definition that happens to have such a name is not that terminal."""
    with pytest.raises(sg.errors.DefinitionError, match=f"no rule has the terminal {name}"):
        sg.compile(sg.Grammar(f"start: {mark}", definitions={name: {"type": "null"}}), vocabulary())
    both = sg.Grammar(f'start: {mark} | "a" {name}', definitions={name: {"type": "null"}})
    assert sg.compile(both, vocabulary(), eager=False).match(b"anull").accepted


@pytest.mark.parametrize(
    ("rules", "regex", "is_read"),
    [
        ('A D | "z" LONG', "bcd", False),  # behind abc nothing could follow
        ('A D | "z" LONG', "bc[de]", True),
        ('A D | "z" LONG', "b", True),
        ('A D "!" | "z" LONG', "b(cde)?", False),
        ('(A | LONG) D "!"', "bc[df]", True),
        ('A D "!" | LONG', "c", True),
    ],
)
def test_definitions_behind_lexemes_that_may_go_on(rules: str, regex: str, is_read: bool) -> None:
    """Refused where a text could come to no end; else each mask lets something through."""
    grammar = sg.Grammar(f'start: {rules}\nA: "a"\nLONG: "abcd"', lexer="basic", definitions={"D": sg.Regex(regex)})
    if not is_read:
        with pytest.raises(UnsupportedError, match="may go on for several bytes") as caught:
            sg.compile(grammar, BYTES, eager=False)
        assert "What may go on is LONG." in caught.value.remedy
        return
    todo = [sg.Guide(sg.compile(grammar, BYTES, eager=False))]
    for guide in todo:  # grows as it goes
        allowed = [byte for byte in range(256) if guide.allows(byte)]
        assert allowed or guide.is_accepting(), guide.tokens
        for byte in allowed:
            todo.append(guide.fork())
            assert todo[-1].advance(byte)
    assert len(todo) > 3
