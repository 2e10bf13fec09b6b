"""Whether a reply reasons, by default: as the models of its style do, and no wrong call goes by as reasoning."""

from __future__ import annotations

from typing import Any

import pytest
from judges.tool_replies import TOOLS, TURNS_OF_TEMPLATES, call

import structgen as sg
from structgen.tools import ToolStyle, tool_styles

VOCABULARY = sg.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
STYLES = {style.name: style for style in tool_styles()}
THINKS = {
    **dict.fromkeys(("llama", "hermes", "qwen_3_coder", "mistral", "mistral_v11", "command_r"), "never"),
    "minimax": "always",
}


def index(style: str, **options: Any) -> sg.Index:
    return sg.compile(sg.tool_calls(TOOLS, style, **options), VOCABULARY, eager=False, base_rows=False)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("choice", ["auto", "required"])
def test_a_wrong_call_as_the_first_tokens_is_refused(style: str, choice: str) -> None:
    described, judge = STYLES[style], index(style, tool_choice=choice)
    assert described.thinks == THINKS.get(style, "optional")
    right, wrong = (call(described, name) for name in ("now", "never"))
    opened = described.reasoning[1] + described.reasoning_suffix if described.thinks == "always" else ""  # type: ignore[index]
    assert judge.match((opened + right).encode()).accepted, right
    assert judge.match((opened + wrong).encode()).consumed <= len((opened + wrong[: wrong.index("never") + 2]).encode())


def reasoned(style: ToolStyle, whole: bool) -> str:
    assert style.reasoning is not None
    return (style.reasoning[0] if whole else "") + "Hm, now.\n" + style.reasoning[1] + style.reasoning_suffix


@pytest.mark.parametrize("style", [each.name for each in STYLES.values() if each.reasoning])
def test_reasoning_is_what_the_models_do(style: str) -> None:
    described = STYLES[style]
    auto, required = (index(style, tool_choice=choice) for choice in ("auto", "required"))
    for is_whole in (True, False):
        text = reasoned(described, is_whole)
        right, wrong = (call(described, name) for name in ("now", "never"))
        thinks = described.thinks != "never" and (is_whole or not described.reasoning_opened)
        assert auto.match((text + right).encode()).accepted == thinks
        assert not auto.match((text + wrong).encode()).accepted
        # Where a call is required, text that nothing has opened would put it off for ever.
        thinks_first = described.thinks == "always" or (described.thinks == "optional" and is_whole)
        assert required.match((text + right).encode()).accepted == thinks_first
    for said in (True, "auto"):  # whoever asks for reasoning gets it
        asked: Any = said
        assert (
            index(style, reasoning=asked).match((reasoned(described, True) + call(described, "now")).encode()).accepted
        )


@pytest.mark.parametrize("style", sorted({case["style"] for case in TURNS_OF_TEMPLATES} - {"kimi_k3"}))
def test_what_templates_render_is_allowed_by_default(style: str) -> None:
    judge, described = index(style), STYLES[style]
    for case in TURNS_OF_TEMPLATES:
        text = case["text"]
        if case["style"] == style and (described.thinks != "always" or described.reasoning[1] in text):  # type: ignore[index]
            assert judge.match(text.encode()).accepted, text


def test_a_style_thinks_in_one_of_three_ways() -> None:
    with pytest.raises(sg.errors.DefinitionError, match="think 'sometimes'"):
        ToolStyle("x", calls=("<c>$name $arguments",), thinks="sometimes")
    assert ToolStyle("x", calls=("<c>$name $arguments",), reasoning=None, thinks="always").thinks == "never"
