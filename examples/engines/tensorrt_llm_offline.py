"""TensorRT-LLM with structgen in the place of XGrammar: ``python examples/engines/tensorrt_llm_offline.py MODEL``.

MODEL is a folder or a name on the hub. The executor runs in this process (``TLLM_WORKER_USE_SINGLE_PROCESS=1``), so
that `register` reaches it. Not run by structgen's tests: it needs an NVIDIA GPU.
"""

from __future__ import annotations

import os
import sys

PERSON = """{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"""


def main(model: str) -> None:
    """Send two requests, and print what comes back."""
    os.environ["TLLM_WORKER_USE_SINGLE_PROCESS"] = "1"
    from tensorrt_llm import LLM, SamplingParams
    from tensorrt_llm.llmapi import GuidedDecodingParams

    from structgen.integrations.tensorrt_llm import register

    register()
    llm = LLM(model, guided_decoding_backend="xgrammar")
    guides = [GuidedDecodingParams(json=PERSON), GuidedDecodingParams(regex="yes|no")]
    params = [SamplingParams(max_tokens=100, guided_decoding=guide) for guide in guides]
    for output in llm.generate(["Ada Lovelace, as JSON: ", "Did she write programs? "], params):
        print(repr(output.outputs[0].text))


if __name__ == "__main__":
    main(sys.argv[1])
