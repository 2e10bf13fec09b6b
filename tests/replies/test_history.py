"""Messages that were read back go into the history of the chat, where the template writes what the model wrote."""

from __future__ import annotations

from typing import Any

import pytest
from house.skips import DATA
from judges.tool_replies import TOOLS, TURNS_OF_TEMPLATES, as_reply, call
from make_tool_turns import TURNS

import structgen as sg
from structgen.tools import tool_styles

VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
STYLES = {style.name: style for style in tool_styles()}

WEATHER = '{"city": "Zürich \\n\\"b\\"", "days": 3}'

#: Templates that lie beside the repository: their style, whether they take arguments as objects, and replies.
SHARED: dict[str, tuple[str, bool, tuple[str, ...]]] = {
    "qwen2_5": ("hermes", True, (
        f'See:\n<tool_call>\n{{"name": "get_weather", "arguments": {WEATHER}}}\n</tool_call>',
        f'<tool_call>\n{{"name": "get_weather", "arguments": {WEATHER}}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        "Hello.",
    )),
    "llama3_2": ("llama", True, (f'{{"name": "get_weather", "parameters": {WEATHER}}}', "Hello.")),
    "mistral_nemo": ("mistral", True, (
        f'[TOOL_CALLS][{{"name": "get_weather", "arguments": {WEATHER}, "id": "aB3dEfGh9"}}, '
        '{"name": "now", "arguments": {}, "id": "000000000"}]',
        "Hello.",
    )),
    "deepseek_v3": ("deepseek_r1", False, (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{WEATHER}\n```<｜tool▁call▁end｜>"
        "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "Hello.",
    )),
}  # fmt: skip


def read(style: str, text: str, **options: Any) -> sg.ToolCallReader:
    reader = sg.ToolCallReader(sg.tool_calls(TOOLS, style, **options))
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.parametrize("stem", SHARED)
def test_templates_write_the_calls_as_the_model_did(stem: str) -> None:
    templates = pytest.importorskip("transformers.utils.chat_template_utils")
    path = DATA / "chat_templates" / f"{stem}.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not in shared/data/chat_templates")
    style, parsed, replies = SHARED[stem]
    for text in replies:
        message = read(style, text).message(parsed=parsed)
        results = [
            {"role": "tool", "tool_call_id": each["id"], "content": "20°"} for each in message.get("tool_calls", [])
        ]
        asked = {"role": "user", "content": "Hello?"}
        (rendered,), _ = templates.render_jinja_template(
            [[asked, message, *(results or [asked])]], tools=TOOLS, chat_template=path.read_text(encoding="utf-8"),
            add_generation_prompt=True, bos_token="<s>", eos_token="</s>",
        )  # fmt: skip
        assert text in rendered
        assert ("20°" in rendered.partition(text)[2]) == bool(results)


@pytest.mark.parametrize("case", TURNS_OF_TEMPLATES, ids=lambda case: f"{case['style']}-{case['template']}")
def test_a_message_is_what_the_template_has_rendered(case: dict[str, Any]) -> None:
    reasoning, text = as_reply(case["style"], case["text"])
    message = read(case["style"], text, reasoning=reasoning).message(parsed=True)
    calls = message.get("tool_calls", [])
    names = [[call["function"]["name"], call["function"]["arguments"]] for call in calls]
    assert names == case["calls"]
    told = [
        (said or "", thought or "") for said, thought, called in TURNS if [*map(list, called)][: len(calls)] == names
    ]
    # Some templates leave out the text of turns with calls, some of them the reasoning of others.
    assert (message["content"] or "").removeprefix("\n") in {"", *(said for said, _ in told)}  # GLM-4.5 begins so
    assert message.get("reasoning_content", "") in {"", *(thought for _, thought in told)}
    assert (message["content"] is None) <= STYLES[case["style"]].null_content
    if '"id": "' in case["text"] or "[CALL_ID]" in case["text"]:
        assert [call["id"] for call in calls] == [f"abcdefgh{i}" for i in range(len(calls))]
    if case["style"] == "kimi":
        assert [call["id"] for call in calls] == [f"functions.{name}:{i}" for i, (name, _) in enumerate(names)]


def test_ids_are_read_wherever_they_stand_and_made_up_where_they_are_not() -> None:
    for id_ in ("aB3dEfGh9", None):
        given = f', "id": "{id_}"' if id_ else ""
        reader = sg.ToolCallReader(sg.tool_calls(TOOLS, "mistral"), new_id=None if id_ else lambda: "made_up")  # type: ignore[arg-type]
        events = reader.feed(f'[TOOL_CALLS][{{"name": "now", "arguments": {{}}{given}}}]')
        assert [event.id for event in events if event.kind in ("call", "id", "called")] == [
            None,
            *[id_ or "made_up"] * 2,
        ]
    made_up = [read("hermes", SHARED["qwen2_5"][2][0]).message()["tool_calls"][0]["id"] for _ in range(50)]
    assert len(set(made_up)) == 50
    assert all(len(each) == 9 and each.isalnum() and each.isascii() for each in made_up)


@pytest.mark.parametrize(("text", "content", "calls"), [
    ("Hm. \n", "Hm. \n", 0),
    ("\n\nHm.", "\n\nHm.", 0),
    (" \n", " \n", 0),
    ("{c}", "", 1),
    ("\n{c}\n{c}\n", "", 2),
    ("Hm.\n\n{c}\n{c}", "Hm.", 2),
    ("A b\n{c}\n\nC\n{c}\n", "A b\n\nC", 2),
    ("A{c}  B \n", "A  B \n", 1),
    ("A < b {c}", "A < b", 1),
])  # fmt: skip
def test_whitespace_around_calls_is_no_content(text: str, content: str, calls: int) -> None:
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    tag, data = sg.tool_calls(TOOLS, "hermes"), text.replace("{c}", call)
    for size in (1, 2, 3, 7, len(data)):
        reader = sg.ToolCallReader(tag)
        events = [event for i in range(0, len(data), size) for event in reader.feed(data[i : i + size])]
        events += reader.close()
        assert reader.message()["content"] == content
        assert "".join(event.text for event in events if event.kind == "content") == content
        assert len(reader.message().get("tool_calls", [])) == calls
    reader = sg.ToolCallReader(tag)
    reader.feed(data)
    reader.close(cut_off=True)
    assert reader.message()["content"] == content


def test_whitespace_around_reasoning_is_none_of_it() -> None:
    for text in ("<think>\n Hm,\n\nso. \n</think>\n\nYes.", "<think> Hm,\n\nso.</think>\n\nYes."):
        message = read("qwen_3", text).message()
        assert (message["reasoning_content"], message["content"]) == ("Hm,\n\nso.", "Yes.")
    assert "reasoning_content" not in read("qwen_3", "<think>\n\n</think>\n\nYes.").message()


def test_arguments_that_are_too_deep_are_refused_when_they_are_parsed() -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {
        "a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}}]  # fmt: skip
    reader = sg.ToolCallReader(sg.tool_calls(tools, "llama"))
    deep = "[" * 60_000 + "]" * 60_000
    reader.feed(f'{{"name": "f", "parameters": {{"a": {deep}}}}}')
    assert deep in reader.message()["tool_calls"][0]["function"]["arguments"]
    with pytest.raises(sg.errors.BudgetExceededError, match="too deeply"):
        reader.message(parsed=True)


@pytest.mark.parametrize("style", STYLES)
def test_calls_of_many_tools_are_read_back(style: str) -> None:
    names = [*(f"tool_{i}" for i in range(128)), "tool_1:x/ü.日本-", "x" * 256]
    tag = sg.tool_calls([{"name": name} for name in names], style, tool_choice="required", reasoning="auto")
    reader = sg.ToolCallReader(tag)
    for name in (names[0], names[127], names[128], names[129]):
        data = call(STYLES[style], name).encode()
        for size in (1, 5, len(data)):
            twin = reader.fork()
            for i in range(0, len(data), size):
                twin.feed(data[i : i + size])
            twin.close()
            (read_back,) = twin.message(parsed=True)["tool_calls"]
            assert read_back["function"] == {"name": name, "arguments": {}}
            assert ("123456789" in read_back["id"]) == ("$id" in STYLES[style].calls[0])
