"""Styles beside XGrammar's own: the same replies, but for the differences that are listed and explained here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from judges.tool_replies import TOOLS, draw, engine

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
    """Where reasoning is on, the reply may write the tag that opens it, or the prompt.

    XGrammar takes the prompt to do so. Templates of one style differ: Qwen3's does not, that of its thinking models
    does.
    """
    begin, _ = tool_style(asked.style).reasoning or ("", "")
    return asked.ours and asked.reasoning is True and asked.text.startswith(begin)


def no_arguments(asked: Asked) -> bool:
    r"""A call without arguments is ``<function=now>\n</function>``, as Qwen's templates write it.

    XGrammar wants two line breaks. What ends a call may follow its last argument directly, then.
    """
    return asked.ours and re.search(r"(<function=\w+>\n|</parameter>)</function>", asked.text) is not None


def empty_reasoning(asked: Asked) -> bool:
    r"""MiniMax's prompt opens the reasoning, so a reply without closes it: ``\n</think>\n\n``, as the template does.

    XGrammar wants two line breaks more, and wants the section where the engine has skipped it.
    """
    return asked.reasoning is False


def space_before_the_constraint(asked: Asked) -> bool:
    """Harmony's documentation has ``to=functions.NAME <|constrain|>json``; XGrammar's form is without the space."""
    return asked.ours and re.search(r"to=functions\.\w+ <\|constrain\|>", asked.text) is not None


def preambles(asked: Asked) -> bool:
    """Harmony's documentation has preambles to calls, messages in the commentary channel to nobody."""
    return asked.ours and "<|channel|>commentary<|message|>" in asked.text


def no_call(asked: Asked) -> bool:
    """Where a call is required, XGrammar's Harmony allows replies without one, empty ones, too."""
    return not asked.ours and asked.choice not in ("auto", "none") and "<|call|>" not in asked.text


def more_than_one_call(asked: Asked) -> bool:
    """A tool that is named is called once; XGrammar's Harmony goes on after that."""
    return not asked.ours and isinstance(asked.choice, dict) and "<|call|><|start|>" in asked.text


def more_sections(asked: Asked) -> bool:
    """Where a call is required, XGrammar's MiniMax M3 goes on behind the section, which no other style does."""
    return not asked.ours and asked.choice == "required" and asked.text.partition("</tool_call>")[2] != ""


_OPENED = dict.fromkeys(
    ("qwen_3", "kimi_k3", "deepseek_r1", "deepseek_v3_1", "deepseek_v3_2", "deepseek_v4", "deepseek_v4_1", "glm_4_7"),
    (opened_by_the_reply,),
)
EXPLAINED: dict[str, tuple[Callable[[Asked], bool], ...]] = {
    **_OPENED,
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
    assert seen == {explain.__name__ for explain in EXPLAINED.get(style, ())}


#: Replies that random ones do not hit upon: style, options, the text, and whether it is allowed here, and there.
POINTED: tuple[tuple[str, dict[str, Any], str, bool, bool], ...] = (
    # Where no tool may be called, text does not begin a call either. XGrammar has this rule for newer styles only.
    ("qwen_3", {"tool_choice": "none", "reasoning": False}, "x <tool_call>\n{", False, True),
    ("kimi", {"tool_choice": "none", "reasoning": False}, "<|tool_calls_section_begin|>", False, True),
    ("glm_4_7", {"tool_choice": "none", "reasoning": False}, "<tool_call>", False, False),
    # Llama's trigger is plain JSON, which text without tools may hold.
    ("llama", {"tool_choice": "none"}, '{"name": "Ada"}', True, True),
    ("llama", {}, '{"name": "Ada"}', False, False),
    # Reasoning, too, holds no call outside a section.
    ("kimi", {}, "I <|tool_call_begin|>functions.now:0</think>x", False, True),
    # The reasoning's tags stand nowhere else.
    ("kimi", {}, "<think>a <think> b</think>x", False, True),
    ("minimax", {}, "a <think> b</think>\n\nx", False, True),
    ("cohere", {}, "a <|START_THINKING|> b<|END_THINKING|>x", False, True),
    ("exaone", {}, "a <think> b</think>\n\nx", False, True),
    ("qwen_3", {}, "a <think> b</think>\n\nx", False, False),
    # A trigger begins a call, whatever follows.
    ("hermes", {}, "<tool_call> is a tag", False, False),
    ("exaone", {"reasoning": False}, "<tool_call> is a tag", False, False),
    # Without `parallel`, nothing follows a call.
    ("qwen_3", {"parallel": False, "reasoning": False},
     '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', True, True),
    ("qwen_3", {"parallel": False, "reasoning": False},
     '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n', False, False),
)  # fmt: skip


@pytest.mark.parametrize(("style", "options", "text", "here", "there"), POINTED)
def test_replies_that_differ_are_known(style: str, options: Any, text: str, here: bool, there: bool) -> None:
    judge = engine("xgrammar")
    assert judge.accepts(tool_call_format(TOOLS, style, **options), text) == here
    if style in STYLES:
        reasoning = options.get("reasoning", True)
        format = theirs(style, options.get("tool_choice", "auto"), options.get("parallel", True), reasoning)
        assert judge.accepts(format, text) == there


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
