"""`ToolCallReader`: what went into a reply comes out of it, and it takes what the mask allows."""

from __future__ import annotations

import copy
import json
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from judges.replies import accumulated, calls_of, random_reply, told
from judges.tool_replies import MARK, TOOLS, TURNS_OF_TEMPLATES, as_reply, draw
from tiers import draws

import structgen as sg
from structgen import errors
from structgen.tools import tool_styles
from structgen.tools.calls import Reasoning

STYLES = [style.name for style in tool_styles()]
VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


@pytest.mark.parametrize("case", TURNS_OF_TEMPLATES, ids=lambda case: f"{case['style']}-{case['template']}")
def test_what_templates_render_is_read_back(case: dict[str, Any]) -> None:
    reasoning, text = as_reply(case["style"], case["text"])
    reader = sg.ToolCallReader(sg.tool_calls(TOOLS, case["style"], reasoning=reasoning))
    events = [event for character in text for event in reader.feed(character)] + reader.close()
    message = reader.message()
    assert calls_of(message) == case["calls"]
    assert accumulated(events) == told(message)
    texts = [message["content"] or "", message.get("reasoning_content", "")]
    for said in ("Just text.", "Just *text* {here}.", "Let me see.", "Hm."):
        assert (said in case["text"]) == any(said in text for text in texts)


def _ends(reader: sg.ToolCallReader, data: bytes) -> tuple[int, bool]:
    """How many bytes a reader takes one by one, and whether it could end there."""
    for i in range(len(data)):
        try:
            reader.feed(data[i : i + 1])
        except errors.ReplyTextError:
            return i, False
    return len(data), reader.is_complete()


@pytest.mark.parametrize("style", STYLES)
def test_it_takes_what_the_mask_allows(style: str) -> None:
    random = Random(style)
    modes: list[tuple[str, Reasoning]] = [("auto", True), ("required", "auto"), ("auto", False)]
    for choice, reasoning in modes:
        tag = sg.tool_calls(TOOLS, style, tool_choice=choice, reasoning=reasoning)
        index = sg.compile(tag, VOCABULARY, eager=False, base_rows=False)
        reader = sg.ToolCallReader(tag, VOCABULARY)
        format_ = json.loads(tag.text)
        for _ in range(12):
            data = draw(format_, random).encode()
            if random.random() < 0.5 and data:
                at = random.randrange(len(data))
                data = data[:at] + bytes([random.choice(b'<>{}"a,\n ')]) + data[at + random.randint(0, 1) :]
            match = index.machine.match(data)
            assert _ends(reader.fork(), data) == (match.consumed, match.accepted), data


#: Schemas whose values are told apart by their types alone, by bounds, or hardly.
SCHEMAS: list[dict[str, Any]] = [
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "number": {"type": "number"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "unit": {"enum": ["C", "F", 3, None]},
            "short": {"type": "string", "minLength": 2, "maxLength": 4},
        },
        "required": ["either", "unit"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": ["string", "boolean", "object"]}, "maxItems": 3},
            "inner": {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "string"}}},
        },
        "required": ["list"],
        "additionalProperties": {"type": ["integer", "string"]},
    },
    {
        "anyOf": [
            {"type": "object", "properties": {"k": {"const": "1"}}, "required": ["k"], "additionalProperties": False},
            {"type": "object", "properties": {"k": {"const": 2}}, "required": ["k"], "additionalProperties": False},
        ]
    },
]


@pytest.mark.nightly
@pytest.mark.parametrize("style", [style for style in STYLES if style != "gemma"])
def test_arguments_are_what_the_schema_allows(style: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    random = Random(style)
    tools = [{"type": "function", "function": {"name": f"t{i}", "parameters": s}} for i, s in enumerate(SCHEMAS)]
    tag = sg.tool_calls(tools, style, tool_choice="required", reasoning=False)
    index = sg.compile(tag, VOCABULARY, eager=False, base_rows=False)
    reader = sg.ToolCallReader(tag)
    for _ in range(draws(8)):
        data = random_reply(sg.Guide(index, max_tokens=400), random, 256)
        whole, single = reader.fork(), reader.fork()
        events = whole.feed(data) + whole.close()
        calls = calls_of(whole.message())
        assert calls
        for name, arguments in calls:
            jsonschema.validate(arguments, SCHEMAS[int(name[1:])])
        parts = [event for i in range(len(data)) for event in single.feed(data[i : i + 1])] + single.close()
        texts = [call["function"] for call in accumulated(parts)["tool_calls"]]
        assert texts == [call["function"] for call in accumulated(events)["tool_calls"]]


def test_items_and_names_that_must_differ_do_so_within_tags() -> None:
    properties = {"s": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "o": {"type": "object"}}
    parameters = {"type": "object", "properties": properties, "required": ["s", "o"], "additionalProperties": False}
    tools = [{"name": "f", "parameters": parameters}]
    tag = sg.tool_calls(tools, "qwen_3_coder", tool_choice="required", reasoning=False)
    index = sg.compile(tag, VOCABULARY, eager=False)
    for items, is_taken in (('["a", "b"]', True), ('["a", "a"]', False), ('["a", "\\u0061"]', False)):
        reader = sg.ToolCallReader(tag)
        parts = f"<parameter=s>\n{items}\n</parameter>", '<parameter=o>\n{"a": 1}\n</parameter>'
        text = "<tool_call>\n<function=f>\n{}\n{}\n</function>\n</tool_call>".format(*parts)
        assert index.match(text.encode()).accepted is is_taken
        if is_taken:
            reader.feed(text)
            assert calls_of(reader.message()) == [["f", {"s": ["a", "b"], "o": {"a": 1}}]]
        else:
            with pytest.raises(sg.errors.ReplyTextError):
                reader.feed(text)


def test_gemma_arguments_are_json() -> None:
    properties = {"a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "number"}}
    tools = [{"name": "f", "parameters": {"type": "object", "properties": properties, "required": ["a"]}}]
    reader = sg.ToolCallReader(sg.tool_calls(tools, "gemma", reasoning=False))
    reader.feed('<|tool_call>call:f{a:[<|"|>x: "y"<|"|>,<|"|>\n<|"|>],b:-1.5e3}<tool_call|>')
    assert calls_of(reader.message()) == [["f", {"a": ['x: "y"', "\n"], "b": -1500.0}]]


@pytest.mark.parametrize(("written", "read"), [("12", 12), (" 12", " 12"), ("12\n", "12\n")])
def test_numbers_have_no_whitespace_around_them_where_the_tags_have_none(written: str, read: object) -> None:
    schema = {"type": "object", "properties": {"n": {"type": ["string", "integer"]}}, "required": ["n"]}
    tools = [{"name": "f", "parameters": schema}]
    mark = "]<]minimax[>["
    reader = sg.ToolCallReader(sg.tool_calls(tools, "minimax_m3", tool_choice="required", reasoning=False))
    call = f'{mark}<invoke name="f">{mark}<n>{written}{mark}</n>{mark}</invoke>'
    reader.feed(f"{mark}<tool_call>\n{call}\n{mark}</tool_call>")
    assert calls_of(reader.message()) == [["f", {"n": read}]]


@pytest.mark.parametrize("style", sorted({case["style"] for case in TURNS_OF_TEMPLATES}))
def test_tokens_are_read_as_texts_are(style: str) -> None:
    pytest.importorskip("transformers")
    from fakes.tiny_models import byte_tokenizer

    cases = [case for case in TURNS_OF_TEMPLATES if case["style"] == style]
    tokenizer = byte_tokenizer()
    marks = sorted({mark for case in cases for mark in MARK.findall(case["text"])})
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    vocabulary = sg.Vocabulary.from_transformers(tokenizer)
    for case in cases:
        reasoning, text = as_reply(style, case["text"])
        tag = sg.tool_calls(TOOLS, style, reasoning=reasoning)
        index = sg.compile(tag, vocabulary, eager=False, base_rows=False)
        tokens = [*tokenizer(text, add_special_tokens=False)["input_ids"], vocabulary.eos_ids[0]]
        reader, guide, read = sg.ToolCallReader(tag, vocabulary), sg.Guide(index), sg.ToolCallReader(tag)
        events = [event for token in tokens if guide.advance(token) for event in reader.feed(token)]
        assert guide.is_finished()
        assert reader.is_complete()
        read.feed(text)
        read.close()
        ids = {"id": None}
        calls = [[call | ids for call in each.message().get("tool_calls", [])] for each in (reader, read)]
        assert calls[0] == calls[1]
        assert calls_of(reader.message()) == case["calls"]
        assert {**reader.message(), "tool_calls": 0} == {**read.message(), "tool_calls": 0}
        assert accumulated(events) == told(reader.message())


REPLY = (
    '<think>Well.</think>\n\nSee: <tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich"}}\n</tool_call>'
)


def test_each_piece_comes_as_soon_as_it_is_certain() -> None:
    reader = sg.ToolCallReader(sg.tool_calls(TOOLS, "qwen_3"), new_id=lambda: "call_1")
    data = REPLY.encode()
    found = [(i + 1, event) for i in range(len(data)) for event in reader.feed(data[i : i + 1])]
    said = [(at, event.kind, event.text) for at, event in found]
    assert said[:6] == [(8, "reasoning", "W"), (9, "reasoning", "e"), (10, "reasoning", "l"), (11, "reasoning", "l"),
                        (12, "reasoning", "."), (23, "content", "S")]  # fmt: skip
    begin = data.index(b"{", data.index(b"arguments"))
    assert (begin, "call", "") in said
    assert (begin + 1, "arguments", "{") in said
    umlaut = data.index("ü".encode())
    assert (umlaut + 2, "arguments", "ü") in said
    assert umlaut + 1 not in [at for at, *_ in said]
    assert said[-1] == (data.rindex(b"}"), "called", '{"city": "Zürich"}')
    assert found[-1][1] == sg.ReplyEvent("called", '{"city": "Zürich"}', 0, "get_weather", "call_1")


def test_forks_go_their_own_ways() -> None:
    reader = sg.ToolCallReader(sg.tool_calls(TOOLS, "qwen_3_coder", reasoning=False))
    reader.feed("<tool_call>\n<function=get_weather>\n<parameter=city>\nZür")
    twin = reader.fork()
    for each, rest in ((reader, "ich"), (twin, "s")):
        each.feed(rest + "\n</parameter>\n</function>\n</tool_call>")
        each.close()
    assert calls_of(reader.message()) == [["get_weather", {"city": "Zürich"}]]
    assert calls_of(twin.message()) == [["get_weather", {"city": "Zürs"}]]


def test_a_reply_may_be_cut_off() -> None:
    for end in range(len(REPLY.encode())):
        reader = sg.ToolCallReader(sg.tool_calls(TOOLS, "qwen_3"))
        events = reader.feed(REPLY.encode()[:end])
        events += reader.close(cut_off=True)
        assert bool(reader.message().get("tool_calls")) == (end >= REPLY.encode().rindex(b"}"))
        text = "".join(event.text for event in events if event.kind == "reasoning")
        assert "Well.".startswith(text.partition("<")[0]) or text.startswith("<think>"[:end])
        assert reader.close() == []


def test_what_is_no_reply_is_refused() -> None:
    tag = sg.tool_calls(TOOLS, "qwen_3", tool_choice="required", reasoning=False)
    reader = sg.ToolCallReader(tag, VOCABULARY)
    reader.feed('<tool_call>\n{"name": "')
    before = reader.fork()
    with pytest.raises(errors.ReplyTextError, match="byte 22"):
        reader.feed("sing")
    assert reader.feed("now") == before.feed("now")
    with pytest.raises(errors.ReplyTextError, match="not complete"):
        reader.close()
    assert not reader.is_complete()
    assert reader.offset == 25
    with pytest.raises(errors.TokenIdError):
        reader.feed(257)
    reader.feed('", "arguments": {}}\n</tool_call>')
    reader.feed([256, 256])
    with pytest.raises(errors.ReplyTextError, match="has ended"):
        reader.feed(b"x")
    with pytest.raises(errors.TokenIdError, match="takes text"):
        sg.ToolCallReader(tag).feed(3)
    with pytest.raises(errors.DefinitionError, match="StructuralTag"):
        sg.ToolCallReader(sg.Regex("a"))  # type: ignore[arg-type]


@pytest.mark.parametrize(("format_", "message"), [
    ({"type": "any_text"}, "has a label"),
    ({"type": "any_text", "label": "contents"}, "no label 'contents'"),
    ({"type": "any_text", "label": 3}, "label"),
])  # fmt: skip
def test_labels_are_known_ones(format_: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.DefinitionError, match=message):
        sg.ToolCallReader(sg.StructuralTag(format_))


def test_labels_change_no_mask() -> None:
    plain: dict[str, Any] = {
        "type": "triggered_tags",
        "triggers": ["<t"],
        "tags": [{"begin": "<t>", "content": {"type": "any_text"}, "end": ["</t>", "!"]}],
    }
    labelled = {**plain, "label": "content", "tags": [{**plain["tags"][0], "label": "call:t"}]}
    one, other = (sg.compile(sg.StructuralTag(each), VOCABULARY) for each in (plain, labelled))
    for data in (b"", b"x<", b"x<t", b"x<t>", b"x<t>a</t", b"<t>!!"):
        first, second = sg.Guide(one), sg.Guide(other)
        for byte in data:
            assert first.advance(byte) == second.advance(byte)
        assert [first.allows(t) for t in range(257)] == [second.allows(t) for t in range(257)]


AMBIGUOUS: dict[str, Any] = {
    "star": {"type": "star", "content": {"type": "or", "elements": [
        {"type": "any_text", "label": "content"}, {"type": "any_text", "label": "reasoning"},
    ]}},
    "nested stars": {"type": "star", "label": "content", "content": {
        "type": "star", "content": {"type": "regex", "pattern": "a*", "label": "content"},
    }},
    "sequence": {"type": "sequence", "elements": [
        {"type": "any_text", "label": label} for label in ("content", "reasoning", "content", "reasoning")
    ]},
    "repeat": {"type": "repeat", "min": 0, "max": 50, "content": {
        "type": "regex", "pattern": "a|aa", "label": "content",
    }},
}  # fmt: skip


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_of_several_readings_the_first_stands(name: str) -> None:
    reader = sg.ToolCallReader(sg.StructuralTag(AMBIGUOUS[name]))
    reader.feed("a" * 40)
    reader.close()
    message = reader.message()
    assert (message["content"] or "") + message.get("reasoning_content", "") == "a" * 40


def test_texts_that_can_be_read_in_too_many_ways_are_refused() -> None:
    item = {"type": "regex", "pattern": "a{1,40}", "label": "content"}
    reader = sg.ToolCallReader(sg.StructuralTag({"type": "repeat", "min": 0, "max": 40, "content": item}))
    with pytest.raises(errors.BudgetExceededError, match="in more than 256 ways"):
        reader.feed("a" * 80)
    assert reader.offset == 0


def test_text_with_bounds_ends_where_its_tag_does() -> None:
    text = {"type": "any_text", "max_chars": 5, "max_tokens": 4, "label": "content"}
    tag = {"type": "tag", "begin": "<", "content": text, "end": ["</a>", "!"]}
    reader = sg.ToolCallReader(sg.StructuralTag({"type": "plus", "content": tag}))
    pieces = [event.text for character in "<abc!<d<</a><ab</</a>" for event in reader.feed(character)]
    reader.close()
    assert "".join(pieces) == reader.message()["content"] == "abcd<ab</"


# -- copies --------------------------------------------------------------------------------------------------


WEATHER = [
    {"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    }}}
    for name in ("f", "g")
]  # fmt: skip


def hermes_calls(*numbers: int, between: str = "\n") -> str:
    return between.join(f'<tool_call>\n{{"name": "f", "arguments": {{"n": {n}}}}}\n</tool_call>' for n in numbers)


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, sg.ToolCallReader.fork])
def test_copies_go_on_apart(twin_of: Any) -> None:
    definition = sg.tool_calls(WEATHER, "hermes")
    text = f"So.\n{hermes_calls(1, 2)}"
    for cut in range(0, len(text), 7):
        reader = sg.ToolCallReader(definition, new_id=lambda: "id")
        reader.feed(text[:cut])
        twin, before = twin_of(reader), reader.message()
        twin.feed(text[cut:])
        assert reader.message() == before
        reader.feed(text[cut:])
        assert reader.message() == twin.message()
        assert len(reader.message()["tool_calls"]) == 2


def test_a_reader_is_not_pickled() -> None:
    with pytest.raises(sg.errors.ArgumentError, match="feed them to a new one"):
        pickle.dumps(sg.ToolCallReader(sg.tool_calls(WEATHER, "hermes")))


@pytest.mark.parametrize("number", [np.int64, np.array, torch.tensor, lambda token: [torch.tensor(token)]])
def test_ids_of_other_kinds(number: Any) -> None:
    """As guides take them: also special tokens, which sets of ids are asked for."""
    names = {"<tool_call>": 256, "</tool_call>": 257}
    vocabulary = sg.Vocabulary.from_bytes(
        [*(bytes([byte]) for byte in range(256)), None, None, None], eos_ids=[258], special_tokens=names
    )
    reader = sg.ToolCallReader(sg.tool_calls(WEATHER, "hermes"), vocabulary)
    for token in (256, *b'\n{"name": "f", "arguments": {"n": 1}}\n', 257, 258):
        reader.feed(number(token))
    assert [each["function"]["arguments"] for each in reader.message()["tool_calls"]] == ['{"n": 1}']
    with pytest.raises(sg.errors.TokenIdError):
        reader.feed(number(259))


# -- white space ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", ["", "\n", " \n\n "])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_white_space_between_calls_is_no_content(between: str, size: int) -> None:
    text = f"So.\n{hermes_calls(1, 2, between=between)}{between}"
    reader = sg.ToolCallReader(sg.tool_calls(WEATHER, "hermes"))
    events = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
    events += reader.close()
    first = [event.kind for event in events].index("call")
    assert "content" not in {event.kind for event in events[first:]}
    # Before the first call, too, since chat templates write it anew.
    assert "".join(event.text for event in events[:first]) == "So."
    assert reader.message()["content"] == "So."


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_white_space_before_text_behind_a_call_is_content(size: int) -> None:
    text = f"{hermes_calls(1)}\n\nDone. {hermes_calls(2)}"
    reader = sg.ToolCallReader(sg.tool_calls(WEATHER, "hermes"))
    for at in range(0, len(text), size):
        reader.feed(text[at : at + size])
    assert reader.message()["content"] == "\n\nDone."
