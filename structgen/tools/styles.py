"""The tool styles that are known by name. Each is what chat templates of its models write, character by character."""

from __future__ import annotations

from typing import Literal

from ..errors import DefinitionError
from ..system.types import Foreign
from .style import ToolStyle

_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_GLM = ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_M3 = "]<]minimax[>["
_QWEN = '<tool_call>\n{"name": "$name", "arguments": $arguments}\n</tool_call>'

#: The styles of this package.
SHIPPED = (
    ToolStyle(
        "llama",
        calls=('{"name": "$name", "parameters": $arguments}',),
        trigger='{"name": ',
        reasoning=None,
        marked=False,
        template=("<|start_header_id|>", '"parameters": '),
        models="Llama 3.1, 3.2, 3.3",
    ),
    ToolStyle(
        "hermes",
        calls=(_QWEN,),
        trigger="<tool_call>",
        reasoning=None,
        template=("<tool_call>", '"arguments": '),
        models="Hermes 2 Pro, Hermes 3, Qwen2.5, Granite 4",
    ),
    ToolStyle(
        "qwen_3",
        calls=(_QWEN,),
        trigger="<tool_call>",
        reasoning_suffix="\n\n",
        template=("<tool_call>", '"arguments": ', "</think>"),
        models="Qwen3, Qwen3-Next, QwQ",
    ),
    *(
        ToolStyle(
            name,
            # Without arguments there is one line break.
            calls=("<tool_call>\n<function=$name>\n$arguments$(\n)</function>\n</tool_call>",),
            arguments="qwen_xml",
            reasoning_suffix="\n\n",
            thinks=thinks,
            template=("<tool_call>\n<function=", *template),
            models=models,
        )
        for name, thinks, template, models in (
            ("qwen_3_coder", "never", (), "Qwen3-Coder, Qwen3-Coder-Next"),
            ("qwen_3_5", "optional", ("</think>",), "Qwen3.5, Qwen3.6"),
        )
    ),
    ToolStyle(
        "mimo",
        calls=("<tool_call><function=$name>$arguments</function></tool_call>",),
        arguments="qwen_xml",
        trigger="<tool_call>",
        reasoning_opened=True,
        excludes=("<think>", "</think>", "</tool_call>", "<function="),
        reasoning_excludes=("<tool_call>",),
        template=("<tool_call><function=",),
        models="MiMo-V2.6",
    ),
    ToolStyle(
        "kimi",
        calls=("<|tool_call_begin|>functions.$name:$id<|tool_call_argument_begin|>$arguments<|tool_call_end|>",),
        id_prefix="functions.$name:",
        section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        excludes=("<think>", "</think>", "<|tool_call_begin|>"),
        template=("<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"),
        models="Kimi K2, K2 Thinking, K2.5",
    ),
    ToolStyle(
        "kimi_k3",
        calls=('<|open|>call tool="$name" index="$id"<|sep|>$arguments<|close|>call<|sep|>',),
        arguments="kimi_k3_xml",
        argument_excludes=("<|open|>", "<|close|>", "<|sep|>"),
        section=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        reasoning=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        excludes=("<|open|>", "<|close|>"),
        response=("<|open|>response<|sep|>", "<|close|>response<|sep|>"),
        response_opened=True,
        end="<|close|>message<|sep|>",
        template=("<|open|>", "<|close|>", "<|sep|>"),
        models="Kimi K3",
    ),
    ToolStyle(
        "deepseek_r1",
        calls=("<｜tool▁call▁begin｜>function<｜tool▁sep｜>$name\n```json\n$arguments\n```<｜tool▁call▁end｜>",),
        section=_DEEPSEEK,
        separator="\n",
        null_content=True,
        template=(_DEEPSEEK[0], "```json"),
        models="DeepSeek-V3, R1, R1-0528",
    ),
    ToolStyle(
        "deepseek_v3_1",
        calls=("<｜tool▁call▁begin｜>$name<｜tool▁sep｜>$arguments<｜tool▁call▁end｜>",),
        section=_DEEPSEEK,
        template=(_DEEPSEEK[0],),
        models="DeepSeek-V3.1, V3.2-Exp",
    ),
    *(
        ToolStyle(
            name,
            calls=(f'<｜DSML｜{invoke} name="$name">\n$arguments</｜DSML｜{invoke}>\n',),
            arguments=arguments,
            section=(f"<｜DSML｜{section}>\n", f"</｜DSML｜{section}>"),
            trigger=f"<｜DSML｜{section}>",
            lead="\n\n",
            template=("｜DSML｜", f"{section}>"),
            models=models,
        )
        for name, section, invoke, arguments, models in (
            ("deepseek_v3_2", "function_calls", "invoke", "deepseek_xml", "DeepSeek-V3.2"),
            ("deepseek_v4", "tool_calls", "invoke", "deepseek_xml", "DeepSeek-V4"),
            ("deepseek_v4_1", " calls", " invoke", "deepseek_v4_1_xml", "DeepSeek-V4.1"),
        )
    ),
    ToolStyle(
        "harmony",
        calls=(
            "<|channel|>commentary to=functions.$name$( )<|constrain|>json<|message|>$arguments<|call|>",
            " to=functions.$name<|channel|>commentary $(<|constrain|>)json<|message|>$arguments<|call|>",
        ),
        separator="<|start|>assistant",
        reasoning=None,
        excludes=(),
        messages=("<|channel|>analysis<|message|>", "<|channel|>commentary<|message|>", "<|channel|>final<|message|>"),
        message_ends=("<|end|>", "<|return|>"),
        template=("<|channel|>", "<|message|>", "<|call|>"),
        models="gpt-oss",
    ),
    ToolStyle(
        "minimax",
        calls=('<invoke name="$name">\n$arguments</invoke>\n',),
        arguments="minimax_xml",
        section=("<minimax:tool_call>\n", "</minimax:tool_call>"),
        trigger="<minimax:tool_call>",
        lead="\n",
        reasoning_suffix="\n\n",
        thinks="always",
        no_reasoning="\n</think>\n\n",
        template=("<minimax:tool_call>", "<invoke name="),
        models="MiniMax-M2, M2.5, M2.7",
    ),
    ToolStyle(
        "minimax_m3",
        calls=(f'{_M3}<invoke name="$name">$arguments{_M3}</invoke>\n',),
        arguments="minimax_m3_xml",
        section=(f"{_M3}<tool_call>\n", f"{_M3}</tool_call>"),
        trigger=f"{_M3}<tool_call>",
        reasoning=("<mm:think>", "</mm:think>"),
        reasoning_skipped="</mm:think>",
        excludes=("<mm:think>", "</mm:think>", f"{_M3}</tool_call>", f"{_M3}<invoke", f"{_M3}</invoke>"),
        reasoning_excludes=(f"{_M3}<tool_call>",),
        template=(_M3, "<mm:think>"),
        models="MiniMax-M3",
    ),
    *(
        ToolStyle(
            name,
            calls=("<tool_call>$name$arguments</tool_call>",),
            arguments="glm_xml",
            reasoning=reasoning,
            excludes=("<think>", "</think>", "</tool_call>", *_GLM),
            reasoning_excludes=("<tool_call>",),
            template=("<arg_key>", "<arg_value>", *template),
            models=models,
        )
        for name, reasoning, template, models in (
            ("glm_4_5", ("\n<think>", "</think>"), ("\n<think>",), "GLM-4.5, GLM-4.6"),
            ("glm_4_7", ("<think>", "</think>"), (), "GLM-4.7, GLM-5"),
        )
    ),
    ToolStyle(
        "cohere",
        calls=('<cofl:tool_call id="$id" name="$name">$arguments</cofl:tool_call>',),
        arguments="cohere_xml",
        section=("<cofl:tool_calls>", "</cofl:tool_calls>"),
        reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
        excludes=("<|START_THINKING|>", "<|END_THINKING|>"),
        text_alone=("<|START_TEXT|>", "<|END_TEXT|>"),
        template=("<cofl:tool_call",),
        models="Command models that write calls as XML",
    ),
    *(
        ToolStyle(
            name,
            calls=('{"tool_call_id": "$id", "tool_name": "$name", "parameters": $arguments}',),
            section=("<|START_ACTION|>[\n    ", "\n]<|END_ACTION|>"),
            separator=",\n    ",
            trigger="<|START_ACTION|>",
            reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
            excludes=("<|START_THINKING|>", "<|END_THINKING|>"),
            response=(f"<|START_{text}|>", f"<|END_{text}|>"),
            calls_alone=True,
            template=("<|START_ACTION|>", '"tool_name"', f"<|START_{text}|>"),
            models=models,
        )
        for name, text, models in (
            ("command_r7b", "RESPONSE", "Command R7B, Command A"),
            ("command_moe", "TEXT", "Cohere's mixtures of experts"),
        )
    ),
    ToolStyle(
        "command_r",
        calls=('    {\n        "tool_name": "$name",\n        "parameters": $arguments\n    }',),
        section=("Action: ```json\n[\n", "\n]\n```"),
        separator=",\n",
        trigger="Action: ```json",
        reasoning=None,
        excludes=(),
        marked=False,
        template=("Action:", '"tool_name"'),
        models="Command R, Command R+",
    ),
    ToolStyle(
        "exaone",
        calls=('<tool_call>{"name": "$name", "arguments": $arguments}</tool_call>',),
        trigger="<tool_call>",
        reasoning_suffix="\n\n",
        template=("[|assistant|]", "<tool_call>"),
        models="EXAONE 4.0",
    ),
    ToolStyle(
        "gemma",
        calls=("<|tool_call>call:$name$arguments<tool_call|>",),
        arguments="gemma",
        trigger="<|tool_call>",
        reasoning=("<|channel>thought\n", "<channel|>"),
        reasoning_opened=True,
        excludes=("<|channel>", "<channel|>"),
        template=("<|tool_call>call:", "<|channel>"),
        models="Gemma 4",
    ),
    ToolStyle(
        "mistral",
        calls=('{"name": "$name", "arguments": $arguments, "id": "$id"}', '{"name": "$name", "arguments": $arguments}'),
        id="[a-zA-Z0-9]{9}",
        section=("[TOOL_CALLS]$( )[", "]"),  # sentencepiece writes the space, tekken does not
        separator=", ",
        trigger="[TOOL_CALLS]",
        reasoning=None,
        excludes=(),
        template=("[TOOL_CALLS]", '"id": "'),
        models="Mistral 7B v0.3, Mistral Nemo, Mistral Large, Mistral Small 3.1",
    ),
    ToolStyle(
        "mistral_v11",
        calls=("[TOOL_CALLS]$name[CALL_ID]$id[ARGS]$arguments",),
        id="[a-zA-Z0-9]{9}",
        reasoning=None,
        excludes=(),
        template=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        models="Mistral Small 3.2",
    ),
    ToolStyle(
        "mistral_v13",
        calls=("[TOOL_CALLS]$name[ARGS]$arguments",),
        reasoning=("[THINK]", "[/THINK]"),
        excludes=("[THINK]", "[/THINK]"),
        template=("[TOOL_CALLS]", "[ARGS]"),
        models="Magistral, Devstral, Ministral 3, Mistral Medium 3",
    ),
)

_REGISTRY: dict[str, ToolStyle] = {style.name: style for style in SHIPPED}


def register_tool_style(style: ToolStyle) -> None:
    """Register a style by its name for this process, replacing one of the same name.

    Parameters
    ----------
    style:
        The style.

    Raises
    ------
    DefinitionError
        For anything but a `ToolStyle`, and for the name ``auto``.
    """
    if not isinstance(style, ToolStyle):
        raise DefinitionError(f"a ToolStyle was expected, got {type(style).__name__}")
    if style.name == "auto":
        raise DefinitionError('no tool style can be called "auto"', remedy="That stands for the chat template's own.")
    _REGISTRY[style.name] = style


def tool_style(style: str | ToolStyle) -> ToolStyle:
    """A style by its name. Raises `DefinitionError` with the names that there are."""
    if isinstance(style, ToolStyle):
        return style
    found = _REGISTRY.get(style) if isinstance(style, str) else None
    if found is None:
        raise DefinitionError(f"there is no tool style {style!r}", where="style", remedy=f"Use one of {_names()}.")
    return found


def tool_styles() -> tuple[ToolStyle, ...]:
    """Every style that is known by name, those of this package first."""
    return tuple(_REGISTRY.values())


def _names() -> str:
    return ", ".join(sorted(_REGISTRY))


# -- from a chat template ------------------------------------------------------------------------------------


def detect_tool_style(source: Foreign) -> ToolStyle:
    """The style whose strings a chat template holds; where several do, the one that names most characters.

    Parameters
    ----------
    source:
        The template's text, or a tokenizer (of transformers or its like) that has it as ``chat_template``: a text, or
        several by name, of which ``tool_use`` is taken, else ``default``.

    Raises
    ------
    DefinitionError
        Where there is no template, or none that is known.
    """
    text = _template(source).replace("\\n", "\n").replace('\\"', '"')
    found = [style for style in tool_styles() if style.template and all(each in text for each in style.template)]
    if not found:
        raise DefinitionError(
            "the chat template writes tool calls in no style that is known",
            where="style",
            remedy=f"Name the style: {_names()}; or describe it with register_tool_style.",
        )
    return max(found, key=lambda style: sum(map(len, style.template)))


def reasoning_after(prompt: str, style: ToolStyle) -> bool | Literal["auto"]:
    """Whether the reply to a rendered prompt reasons first: ``reasoning`` of `tool_calls`.

    True where the prompt ends with what begins the reasoning, and for messages, of which one kind is that. False
    where it ends with what ends it (an empty section), and for styles without. Else the model may do as it likes.
    """
    if style.messages:
        return True
    if style.reasoning is None:
        return False
    begin, end = (tag.strip() for tag in style.reasoning)
    prompt = prompt.rstrip()
    if prompt.endswith(end):
        return False
    return True if prompt.endswith(begin) else "auto"


def _template(source: Foreign) -> str:
    text = source if isinstance(source, str) else getattr(source, "chat_template", None)
    if isinstance(text, list):  # as tokenizer_config.json has several
        text = {each.get("name"): each.get("template") for each in text if isinstance(each, dict)}
    if isinstance(text, dict):
        text = text.get("tool_use", text.get("default"))
    if not isinstance(text, str):
        raise DefinitionError(
            f'style="auto" needs a chat template, and {type(source).__name__} has none',
            where="style",
            remedy="Pass tokenizer= a tokenizer that has one, or the template's text; or name the style.",
        )
    return text
