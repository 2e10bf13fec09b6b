"""Styles against chat templates: what real templates render is allowed, and nothing that is nearly it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.tiny_models import byte_tokenizer
from house.skips import DATA
from judges.tool_replies import ENGINES, MARK, TOOLS, TURNS_OF_TEMPLATES, Engine, as_reply, engine
from make_tool_turns import TEMPLATES, TURNS, turn

import structgen
from structgen.tools import detect_tool_style, tool_call_format, tool_style

#: Templates that lie beside the repository: their style, what the assistant's turn stands between, and the turns (by
#: number) that they cannot render. Command R+'s renders calls as text that somebody else has written.
SHARED = {
    "qwen2_5": ("hermes", "<|im_start|>assistant\n", "<|im_end|>", ()),
    "deepseek_v3": ("deepseek_r1", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", (1, 4, 5)),
    "llama3_2": ("llama", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>", (0, 5)),
    "mistral_nemo": ("mistral", "[/INST]", "</s>", ()),
    "command_r_plus.tool_use": ("command_r", "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>", ()),
}


@pytest.fixture(params=ENGINES)
def judge(request: pytest.FixtureRequest) -> Engine:
    return engine(request.param)


def name(case: dict[str, Any]) -> str:
    return f"{case['style']}-{case['template']}"


def allowed(judge: Engine, style: str, text: str, **options: Any) -> bool:
    """Whether a reply is."""
    reasoning, text = as_reply(style, text, options.pop("reasoning", None))
    return judge.accepts(tool_call_format(TOOLS, style, reasoning=reasoning, **options), text)


@pytest.mark.parametrize("case", TURNS_OF_TEMPLATES, ids=name)
def test_what_templates_render_is_allowed(judge: Engine, case: dict[str, Any]) -> None:
    style, text, calls = case["style"], case["text"], case["calls"]
    assert allowed(judge, style, text), text
    assert allowed(judge, style, text, parallel=False) == (len(calls) < 2)
    if calls:
        assert not allowed(judge, style, text, tool_choice="none") or not tool_style(style).marked
        assert not allowed(judge, style, text.replace("get_weather", "get_wether").replace("now", "later"))
        assert not allowed(judge, style, text, tool_choice="get_weather") or {each[0] for each in calls} == {
            "get_weather"
        }


@pytest.mark.parametrize("case", TURNS_OF_TEMPLATES, ids=name)
def test_a_reply_may_reason_or_not(judge: Engine, case: dict[str, Any]) -> None:
    style, text = tool_style(case["style"]), case["text"]
    if style.reasoning and not text.startswith(style.reasoning[0]) and style.reasoning[1] in text:
        text = style.reasoning[0] + text  # the prompt had
    assert allowed(judge, style.name, text, reasoning="auto"), text


def test_every_style_but_two_has_turns() -> None:
    # No template of the two's models comes in a package.
    rendered = {case["style"] for case in TURNS_OF_TEMPLATES}
    assert rendered == TEMPLATES.keys()


@pytest.mark.parametrize("stem", SHARED)
def test_templates_beside_the_repository(judge: Engine, stem: str) -> None:
    pytest.importorskip("jinja2")
    style, begin, end, refused = SHARED[stem]
    path = DATA / "chat_templates" / f"{stem}.jinja"
    if not path.exists():
        pytest.skip(f"{path.name} is not in shared/data/chat_templates")
    template = path.read_text(encoding="utf-8")
    assert detect_tool_style(template).name == style
    if stem.startswith("command_r"):
        return
    for i, (text, _, calls) in enumerate(TURNS):
        if i not in refused:
            # DeepSeek's and Llama's take text or calls.
            said = (None if calls and stem == "deepseek_v3" else text, None, calls)
            assert allowed(judge, style, turn(template, begin, end, said)), (text, calls)


def test_command_r_writes_actions(judge: Engine) -> None:
    actions = [{"tool_name": "get_weather", "parameters": {"city": "Zürich"}}, {"tool_name": "now", "parameters": {}}]
    assert allowed(judge, "command_r", f"Action: ```json\n{json.dumps(actions, indent=4, ensure_ascii=False)}\n```")


@pytest.mark.parametrize("make", ["v3", "v7", "tekken"])
def test_turns_of_mistral_common(judge: Engine, make: str) -> None:
    pytest.importorskip("mistral_common")
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    keep: Any = SpecialTokenPolicy.KEEP

    tokenizer: Any = MistralTokenizer.v3(is_tekken=True) if make == "tekken" else getattr(MistralTokenizer, make)()
    for text, _, calls in TURNS:
        message: dict[str, Any] = {"role": "assistant"}
        if calls:
            message["tool_calls"] = [
                {"id": f"abcdefgh{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
                for i, (name, given) in enumerate(calls)
            ]
        else:
            message["content"] = text
        asked = [{"role": "user", "content": "Hello"}, message]
        results = [
            {"role": "tool", "tool_call_id": f"abcdefgh{i}", "name": name, "content": "x"}
            for i, (name, _) in enumerate(calls)
        ]
        request: Any = ChatCompletionRequest.model_validate(
            {"messages": [*asked, *(results or [asked[0]])], "tools": TOOLS}
        )
        tokens = tokenizer.encode_chat_completion(request).tokens
        whole = tokenizer.decode(tokens, special_token_policy=keep).replace("▁", " ")
        assert allowed(judge, "mistral", whole.partition("[/INST]")[2].partition("</s>")[0])


@pytest.mark.parametrize("style", TEMPLATES)
def test_marks_may_be_special_tokens(style: str) -> None:
    pytest.importorskip("transformers")
    cases = [case for case in TURNS_OF_TEMPLATES if case["style"] == style]
    tokenizer = byte_tokenizer()
    marks = sorted({mark for case in cases for mark in MARK.findall(case["text"])})
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    vocabulary = structgen.Vocabulary.from_transformers(tokenizer)
    for case in cases:
        reasoning, text = as_reply(style, case["text"])
        tag = structgen.tool_calls(TOOLS, style, reasoning=reasoning)
        guide = structgen.Guide(structgen.compile(tag, vocabulary, eager=False, base_rows=False))
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert sum(vocabulary.token(token) is None for token in tokens) == len(MARK.findall(text))
        for i, token in enumerate(tokens):
            assert guide.allows(token), tokenizer.decode(tokens[: i + 1])
            assert guide.advance(token)
        assert guide.is_accepting()
