"""Write tests/cases/tool_turns.json: assistants' turns as real chat templates render them.

    python tests/make_tool_turns.py FOLDER

FOLDER holds chat templates, as the source distribution of llama-cpp-python has them under
``vendor/llama.cpp/models/templates``.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from judges.tool_replies import TOOLS

CASES = Path(__file__).parent / "cases/tool_turns.json"

#: By style: templates, and what the assistant's turn stands between. A prompt that ends in more than the first of
#: these (as ``<think>``) has begun the reply; the turn is then read as if the reply had done that.
TEMPLATES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "llama": (
        ("meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct", "meta-llama-Llama-3.3-70B-Instruct"),
        "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>",
    ),
    "hermes": (
        ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
         "Qwen-Qwen2.5-7B-Instruct", "MiMo-VL"),
        "<|im_start|>assistant\n", "<|im_end|>",
    ),
    "qwen_3": (("Qwen-Qwen3-0.6B", "Qwen-QwQ-32B"), "<|im_start|>assistant\n", "<|im_end|>"),
    "qwen_3_coder": (("Qwen3-Coder",), "<|im_start|>assistant\n", "<|im_end|>"),
    "qwen_3_5": (("Qwen3.5-4B",), "<|im_start|>assistant\n", "<|im_end|>"),
    "kimi": (
        ("Kimi-K2-Instruct", "Kimi-K2-Thinking", "moonshotai-Kimi-K2"),
        "<|im_assistant|>assistant<|im_middle|>", "<|im_end|>",
    ),
    "kimi_k3": (("Kimi-K3",), '<|open|>message role="assistant"<|sep|>', "<|end_of_msg|>"),
    "deepseek_r1": (("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",), "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "deepseek_v3_1": (("deepseek-ai-DeepSeek-V3.1",), "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "deepseek_v3_2": (("deepseek-ai-DeepSeek-V3.2",), "<｜Assistant｜>", "<｜end▁of▁sentence｜>"),
    "deepseek_v4": (
        ("deepseek-ai-DeepSeek-V4", "deepseek-ai-DeepSeek-V4-Flash-0731"), "<｜Assistant｜>", "<｜end▁of▁sentence｜>",
    ),
    "harmony": (("openai-gpt-oss-120b",), "<|end|><|start|>assistant", "$"),
    "minimax": (("MiniMax-M2",), "]~b]ai\n", "[e~["),
    "glm_4_5": (("GLM-4.6",), "<|assistant|>", "$"),
    "glm_4_7": (("GLM-4.7-Flash",), "<|assistant|>", "$"),
    "command_r7b": (
        ("CohereForAI-c4ai-command-r7b-12-2024-tool_use",), "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        "<|END_OF_TURN_TOKEN|>",
    ),
    "command_moe": (("Cohere2MoE",), "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    "gemma": (("google-gemma-4-31B-it", "google-gemma-4-31B-it-interleaved"), "<|turn>model\n", "<turn|>"),
    "mistral": (("mistralai-Mistral-Nemo-Instruct-2407",), "[/INST]", "</s>"),
    "mistral_v11": (("Mistral-Small-3.2-24B-Instruct-2506",), "[/INST]", "</s>"),
    "mistral_v13": (
        ("mistralai-Ministral-3-14B-Reasoning-2512", "unsloth-mistral-Devstral-Small-2507"), "[/INST]", "</s>",
    ),
}  # fmt: skip

#: What assistants say: text, reasoning, and calls.
TURNS: tuple[tuple[str | None, str | None, tuple[tuple[str, dict[str, Any]], ...]], ...] = (
    ("Let me see.", "I think\nso.", (
        ("get_weather", {"city": "Zürich", "days": 3, "options": {"metric": True, "tags": ["x", "y z"]}}),
        ("now", {}),
    )),
    ("", None, (("get_weather", {"city": 'a "b" <x> \\ 日本\ntwo lines', "days": -1}),)),
    ("Just *text* {here}.", "Well …", ()),
    ("Just text.", None, ()),
    ("", "Hm.", (("now", {}),)),
    ("", None, (("now", {}), ("get_weather", {"city": "x"}), ("now", {}))),
)  # fmt: skip


def turn(template: str, begin: str, end: str, said: tuple[str | None, str | None, Any], **options: Any) -> str:
    """The assistant's turn as a template renders it. Raises what the template does where it cannot."""
    text, reasoning, calls = said
    for written in (dict, partial(json.dumps, ensure_ascii=False)):  # objects, or JSON text
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [
                {"id": f"abcdefgh{i}", "type": "function", "function": {"name": name, "arguments": written(arguments)}}
                for i, (name, arguments) in enumerate(calls)
            ]
        if reasoning is not None:
            message |= {"reasoning_content": reasoning, "thinking": reasoning}
        try:
            whole: str = _environment().from_string(template).render(
                messages=[{"role": "user", "content": "Hello"}, message], tools=TOOLS, bos_token="<s>",
                eos_token="</s>", add_generation_prompt=False, **options,
            )  # fmt: skip
        except TypeError:
            continue
        return whole.partition("Hello")[2].partition(begin)[2].partition(end)[0].removesuffix("<|tool_response>")
    raise TypeError("takes arguments neither as objects nor as text")


def _environment() -> Any:
    """Jinja as transformers sets it up."""
    from jinja2.exceptions import TemplateError
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import SandboxedEnvironment

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=refuse, strftime_now=lambda _: "2026-01-01")
    return environment


def _cases(folder: Path) -> Any:
    from jinja2.exceptions import TemplateError

    for style, (names, begin, end) in TEMPLATES.items():
        seen = set()
        for name in names:
            template = (folder / f"{name}.jinja").read_text(encoding="utf-8")
            for said in TURNS:
                if style == "deepseek_r1" and len(said[2]) in (1, 3):
                    continue  # it ends a section after the second call, and after every further one
                if said[2] and style in ("deepseek_r1", "harmony"):  # which take text or calls
                    said = (None if style == "deepseek_r1" else "", *said[1:])
                thinks = said[1] is not None
                try:
                    text = turn(template, begin, end, said, enable_thinking=thinks, thinking=thinks)
                except TemplateError as error:
                    print(f"{name}: {error}")
                    continue
                if text not in seen:
                    rendered = said[2][:1] if style == "harmony" else said[2]  # a call ends its reply
                    yield {"style": style, "template": name, "text": text, "calls": rendered}
                seen.add(text)


if __name__ == "__main__":
    found = list(_cases(Path(sys.argv[1])))
    CASES.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} turns")
