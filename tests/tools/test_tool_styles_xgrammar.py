"""Styles beside XGrammar's own: the same replies, but for the differences that docs/guide/tool_calls.md explains."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from judges.tool_replies import TOOLS, draw, engine
from judges.xgrammar import explained, is_at_least

from structgen.tools import tool_call_format, tool_style
from structgen.tools.calls import Reasoning

pytest.importorskip("xgrammar")

STYLES = (
    "llama", "qwen_3", "qwen_3_5", "qwen_3_coder", "mimo", "kimi", "kimi_k3", "deepseek_r1", "deepseek_v3_1",
    "deepseek_v3_2", "deepseek_v4", "deepseek_v4_1", "harmony", "minimax", "minimax_m3", "glm_4_7", "cohere",
    "exaone",
)  # fmt: skip
CHOICES = ("auto", "none", "required", {"type": "function", "function": {"name": "get_weather"}})

MODES: tuple[Reasoning, ...] = (True, False, "auto")

#: Replies of each format of either side that the other is asked about.
DRAWN = 12


class Asked(NamedTuple):
    """What is asked for, and a reply that one side allows and the other does not."""

    style: str
    choice: Any
    reasoning: Reasoning
    ours: bool
    text: str


def opened_by_the_reply(asked: Asked) -> bool:
    begin, _ = tool_style(asked.style).reasoning or ("", "")
    return asked.ours and asked.reasoning is True and asked.text.startswith(begin)


def no_arguments(asked: Asked) -> bool:
    return asked.ours and re.search(r"(<function=\w+>\n|</parameter>)</function>", asked.text) is not None


def empty_reasoning(asked: Asked) -> bool:
    return asked.reasoning is False


def space_before_the_constraint(asked: Asked) -> bool:
    return asked.ours and re.search(r"to=functions\.\w+ <\|constrain\|>", asked.text) is not None


def preambles(asked: Asked) -> bool:
    return asked.ours and "<|channel|>commentary<|message|>" in asked.text


def no_call(asked: Asked) -> bool:
    return not asked.ours and asked.choice not in ("auto", "none") and "<|call|>" not in asked.text


def more_than_one_call(asked: Asked) -> bool:
    return not asked.ours and isinstance(asked.choice, dict) and "<|call|><|start|>" in asked.text


def more_sections(asked: Asked) -> bool:
    return not asked.ours and asked.choice == "required" and asked.text.partition("</tool_call>")[2] != ""


def behind_the_section(asked: Asked) -> bool:
    return asked.ours and re.search(r"</｜DSML｜ ?(?:tool_)?calls>.", asked.text, re.DOTALL) is not None


_OPENED = dict.fromkeys(
    ("qwen_3", "kimi_k3", "deepseek_r1", "deepseek_v3_1", "deepseek_v3_2", "deepseek_v4", "deepseek_v4_1", "glm_4_7"),
    (opened_by_the_reply,),
)
#: The differences of a style; the names of these functions are those of the guide, where each is explained.
EXPLAINED: dict[str, tuple[Callable[[Asked], bool], ...]] = {
    **_OPENED,
    **dict.fromkeys(("deepseek_v4", "deepseek_v4_1"), (opened_by_the_reply, behind_the_section)),
    "qwen_3_5": (opened_by_the_reply, no_arguments),
    "qwen_3_coder": (opened_by_the_reply, no_arguments),
    "minimax": (empty_reasoning,),
    "minimax_m3": (opened_by_the_reply, more_sections),
    "harmony": (space_before_the_constraint, preambles, no_call, more_than_one_call),
}


def theirs(style: str, choice: Any = "auto", parallel: bool = True, reasoning: Reasoning = True) -> Any:
    """XGrammar's own format."""
    from xgrammar.builtin_structural_tag import get_model_structural_tag

    mode: Any = {True: "enabled", False: "disabled", "auto": "auto"}[reasoning]
    tools: Any = TOOLS
    tag = get_model_structural_tag(style, tools, choice, mode, parallel_tool_calls=parallel)
    return json.loads(tag.model_dump_json())["format"]


@pytest.mark.parametrize("style", STYLES)
def test_replies_are_those_of_xgrammar(style: str) -> None:
    judge, random, seen = engine("xgrammar"), Random(1), set()
    for choice, parallel, reasoning in product(CHOICES, (True, False), MODES):
        both = (
            tool_call_format(TOOLS, style, tool_choice=choice, parallel=parallel, reasoning=reasoning),
            theirs(style, choice, parallel, reasoning),
        )
        for i, text in [(i, draw(both[i], random)) for i in (0, 1) for _ in range(DRAWN)]:
            assert judge.accepts(both[i], text), (choice, parallel, reasoning, text)
            if not judge.accepts(both[1 - i], text):
                asked = Asked(style, choice, reasoning, i == 0, text)
                reasons = {explain.__name__ for explain in EXPLAINED.get(style, ()) if explain(asked)}
                assert reasons, (choice, parallel, reasoning, text)
                seen |= reasons
    newer = set() if is_at_least("0.2.9") else {"behind_the_section"}
    assert seen - newer == {explain.__name__ for explain in EXPLAINED.get(style, ())} - newer


#: Replies that random ones do not hit upon: style, options, the text, whether it is allowed here, and the difference,
#: if it is otherwise there.
POINTED: tuple[tuple[str, dict[str, Any], str, bool, str], ...] = (
    ("qwen_3", {"tool_choice": "none", "reasoning": False}, "x <tool_call>\n{", False, "calls-in-text"),
    ("kimi", {"tool_choice": "none", "reasoning": False}, "<|tool_calls_section_begin|>", False, "calls-in-text"),
    ("glm_4_7", {"tool_choice": "none", "reasoning": False}, "<tool_call>", False, ""),
    # Llama's trigger is plain JSON, which text without tools may hold.
    ("llama", {"tool_choice": "none"}, '{"name": "Ada"}', True, ""),
    ("llama", {}, '{"name": "Ada"}', False, ""),
    ("kimi", {}, "I <|tool_call_begin|>functions.now:0</think>x", False, "calls-in-reasoning"),
    ("kimi", {}, "<think>a <think> b</think>x", False, "reasoning-within"),
    ("minimax", {}, "a <think> b</think>\n\nx", False, "reasoning-within"),
    ("cohere", {}, "a <|START_THINKING|> b<|END_THINKING|>x", False, "reasoning-within"),
    ("exaone", {}, "a <think> b</think>\n\nx", False, "reasoning-within"),
    ("qwen_3", {}, "a <think> b</think>\n\nx", False, ""),
    # A trigger begins a call, whatever follows.
    ("hermes", {}, "<tool_call> is a tag", False, ""),
    ("exaone", {"reasoning": False}, "<tool_call> is a tag", False, ""),
    # Without `parallel`, nothing follows a call.
    ("qwen_3", {"parallel": False, "reasoning": False},
     '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', True, ""),
    ("qwen_3", {"parallel": False, "reasoning": False},
     '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n', False, ""),
)  # fmt: skip


@pytest.mark.parametrize(("style", "options", "text", "here", "difference"), POINTED)
def test_replies_that_differ_are_known(style: str, options: Any, text: str, here: bool, difference: str) -> None:
    judge = engine("xgrammar")
    assert judge.accepts(tool_call_format(TOOLS, style, **options), text) == here
    if style in STYLES:
        reasoning = options.get("reasoning", True)
        format = theirs(style, options.get("tool_choice", "auto"), options.get("parallel", True), reasoning)
        assert judge.accepts(format, text) == (here != bool(difference))


def test_the_guide_explains_each_difference() -> None:
    found = {each.__name__.replace("_", "-") for functions in EXPLAINED.values() for each in functions}
    assert explained("tool_calls.md").keys() == found | {difference for *_, difference in POINTED if difference}


@pytest.mark.parametrize("style", ["llama", "mimo", "kimi", "deepseek_v3_1", "exaone", "glm_4_7"])
def test_formats_are_those_of_xgrammar(style: str) -> None:
    def plain(format: Any) -> Any:
        """Less what says nothing: defaults."""
        if isinstance(format, dict):
            kept = {key: plain(value) for key, value in format.items() if key not in ("json_schema", "label")}
            return {key: value for key, value in kept.items() if value not in (None, False, [], "json")} | {
                key: value for key, value in format.items() if key == "json_schema"
            }
        return [plain(each) for each in format] if isinstance(format, list) else format

    ours = tool_call_format(TOOLS, style, reasoning=False)
    expected = plain(theirs(style, reasoning=False))
    if style == "kimi":  # one more string that text does not hold, in another order
        expected["excludes"] = ours["excludes"]
    assert plain(ours) == expected


@pytest.mark.nightly
@pytest.mark.parametrize("style", STYLES)
def test_engines_agree_on_formats_of_both(style: str) -> None:
    random, engines = Random(2), (engine("structgen"), engine("xgrammar"))
    for choice, parallel, reasoning in product(CHOICES, (True, False), MODES):
        both = (
            tool_call_format(TOOLS, style, tool_choice=choice, parallel=parallel, reasoning=reasoning),
            theirs(style, choice, parallel, reasoning),
        )
        texts = [draw(format, random) for format in both for _ in range(2)]
        texts += [spoilt(text, random) for text in texts]
        for format, text in product(both, texts):
            here, there = (judge.accepts(format, text) for judge in engines)
            assert here == there, (choice, parallel, reasoning, text)


def spoilt(text: str, random: Random) -> str:
    """A text with up to two characters less, and perhaps another one in their place."""
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(("", "<", "\n", "x", "}")) + text[at + random.randrange(3) :]
