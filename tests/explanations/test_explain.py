"""Explanations as a whole: verdicts, guides, tags, and texts that would like to be run."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import pytest
from rich.console import Console

import structgen as sg
from structgen.runtime.index.healing import heal

VOCABULARY = sg.Vocabulary.from_bytes(
    [bytes([i]) for i in range(256)] + [b'{"', b"12", b"abc", None, None], eos_ids=[259], special_tokens={"<end>": 260}
)

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 120}}, "required": ["a"]}

DEFINITIONS: list[sg.Definition] = [
    sg.JsonSchema(SCHEMA), sg.Regex("(ab|12)+c?"), sg.Gbnf('root ::= "{" [a-c]+ "}"'),
    sg.Grammar('start: "{" WORD* "}"\nWORD: /[a-c]+/\n%ignore " "'), sg.tag("<", sg.JsonSchema(SCHEMA), ">"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(DEFINITIONS)))
def test_the_verdict_is_the_guides(number: int) -> None:
    index = sg.compile(DEFINITIONS[number], VOCABULARY, base_rows=False)
    guide, draw = sg.Guide(index), random.Random(number)
    for _ in range(12):
        allowed = [token for token in range(VOCABULARY.size) if guide.allows(token)]
        for token in {*draw.sample(range(VOCABULARY.size), 12), 256, 257, 258, 259, 260, *allowed[:2]}:
            found = sg.explain(guide, token)
            assert found.accepted == (token in allowed)
            assert bool(found.reasons) != found.accepted
        guide.advance(draw.choice(allowed))


@pytest.mark.parametrize("number", range(len(DEFINITIONS)))
def test_a_text_dies_where_its_bytes_do(number: int) -> None:
    """Texts are followed in pieces."""
    machine, draw = sg.compile(DEFINITIONS[number], VOCABULARY, base_rows=False).machine, random.Random(number)
    for _ in range(40):
        config, text = machine.start, bytearray()
        for _ in range(draw.choice([3, 30, 300])):
            found = [byte for byte, _ in machine.following(machine.byte_state(config))]
            if not found:
                break
            text.append(draw.choice(found))
            config = machine.follow_byte(config, text[-1])
        assert machine.reach(machine.start, bytes(text)) == (len(text), config)
        dead = draw.choice([byte for byte in range(256) if machine.follow_byte(config, byte) is None] or [0])
        if machine.follow_byte(config, dead) is None:
            assert machine.reach(machine.start, bytes([*text, dead, *text])) == (len(text), config)


def test_the_byte_within_a_token_and_the_text_of_the_guide() -> None:
    guide = sg.Guide(sg.compile(DEFINITIONS[0], VOCABULARY, base_rows=False))
    for token in (256, ord("a"), ord('"'), ord(":"), ord("9")):
        assert guide.advance(token)
    found = sg.explain(guide, 257)
    assert (found.text, found.died_at, found.consumed) == ('{"a":912', 1, 7)
    assert found.reasons[0].where == ("/properties/a/maximum",)
    assert "/a" in found.writing
    assert found.completion == "}"


def test_tokens_of_no_text_and_after_the_end() -> None:
    index = sg.compile(sg.Regex("a<end>|a"), VOCABULARY)
    guide = sg.Guide(index)
    assert guide.advance(ord("a"))
    found = sg.explain(guide, 260)
    assert "'<end>'" in found.reasons[0].what
    assert found.other_tokens == tuple(b"<end>")
    assert guide.advance(259)
    assert sg.explain(guide, 259).accepted
    assert "has ended" in sg.explain(guide, 97).reasons[0].what


def test_a_token_that_leaves_too_few() -> None:
    guide = sg.Guide(sg.compile(sg.Regex("a*b{3}"), VOCABULARY), max_tokens=4)
    assert sg.explain(guide, 97).reasons[0].kind == "max_tokens"


def test_a_healed_prompt() -> None:
    healed = heal([ord("x"), ord("a")], VOCABULARY, sg.compile(sg.Regex("bc!"), VOCABULARY))
    assert healed.prefix == b"a"
    assert "spelled anew" in sg.explain(healed.index, "b").reasons[0].what
    assert sg.explain(healed.index, "abd").reasons[0].where == ("column 2",)


def test_formats_are_named_with_what_is_in_them() -> None:
    found = sg.explain(sg.compile(DEFINITIONS[4], VOCABULARY), '<{"a": 121}>')
    (reason,) = found.reasons
    assert (reason.kind, reason.where) == ("tag", ("/content",))
    assert reason.alternatives[0][0].where == ("/properties/a/maximum",)


def test_a_grammar_within_a_tag_names_its_terminals() -> None:
    source = 'start: list\nlist: "[" ITEM ("," ITEM)* "]"\nITEM: /[a-z]+/'
    for syntax in ({}, {"syntax": "lark"}):
        content = {"type": "grammar", "grammar": source, **syntax}
        tag = {"type": "structural_tag", "format": {"type": "tag", "begin": "<", "content": content, "end": ">"}}
        (reason,) = sg.explain(sg.compile(sg.StructuralTag(tag), VOCABULARY), "<[a,]").reasons
        assert (reason.kind, reason.where) == ("tag", ("/content",))
        (inner,) = reason.alternatives[0]
        assert (inner.kind, inner.where) == ("terminal", ("ITEM",))
        assert "line 3, column 1" in inner.what


def test_a_grammar_of_xgrammars_within_a_tag_names_its_rules() -> None:
    content = {"type": "grammar", "grammar": 'root ::= "y" root | "x"'}
    index = sg.compile(sg.StructuralTag({"type": "tag", "begin": "<", "content": content, "end": ">"}), VOCABULARY)
    (reason,) = sg.explain(index, "<yq").reasons
    (inner,) = reason.alternatives[0]
    assert (inner.kind, inner.where) == ("rule", ("root (line 1, column 1)",))
    assert "'x' (line 1, column 21)" in inner.what


def test_an_automaton_without_a_source() -> None:
    import interegular

    definition = sg.Fsm(interegular.parse_pattern("ab").to_fsm())
    index = sg.compile(definition, VOCABULARY)
    found = sg.explain(index, "ax")
    assert (found.consumed, found.expected, found.reasons[0].kind) == (1, ("b",), "unknown")
    assert "definition=" in found.notes[0]
    with pytest.raises(sg.errors.ArgumentError):
        sg.explain(index, "ax", definition=sg.Regex("ab"))


HOSTILE = ["[red]x[/red][/]", "<script>alert(1)</script>", "\x1b[31m\x07", "a\u202eb", "'\"&<b>", "{{x}}${y}"]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_nothing_of_a_text_or_a_definition_is_run(number: int) -> None:
    name = HOSTILE[number]
    schema = {"properties": {name: {"const": name}}, "additionalProperties": False, "type": "object"}
    index = sg.compile(sg.JsonSchema(schema), VOCABULARY, base_rows=False)
    found = sg.explain(index, json.dumps({name: name + "!"}, ensure_ascii=False))
    assert not found.accepted
    stream = io.StringIO()
    Console(file=stream, force_terminal=True, width=400, color_system=None).print(found)
    assert "\x1b[31m" not in stream.getvalue()
    assert "\x07" not in str(found) + stream.getvalue()
    assert "<script>" not in found._repr_html_()
    assert "<b>>" not in found._repr_html_()
    assert "\u202e" not in str(found)
    assert sg.Explanation.from_json(json.dumps(found.to_json())).reasons == found.reasons


@pytest.mark.parametrize("arguments", [{"asked": "a\ud83d"}, {"asked": "b", "before": "\ud83d"}])
def test_half_a_character_is_no_text(arguments: dict[str, Any]) -> None:
    with pytest.raises(sg.errors.ArgumentError, match="half of a character"):
        sg.explain(sg.compile(sg.Regex("a"), sg.Vocabulary.bytewise()), **arguments)


def test_blanks_that_may_follow_are_seen() -> None:
    found = sg.explain(sg.compile(sg.Regex("a[ ]b|a[.]"), VOCABULARY), "ac")
    assert found.expected == (" b", ".")
    assert "expected: ' b'  ." in str(found)
