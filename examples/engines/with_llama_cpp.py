"""A date from llama-cpp-python: ``python examples/engines/with_llama_cpp.py MODEL.gguf``."""

from __future__ import annotations

import sys
from typing import Any

from llama_cpp import Llama, LogitsProcessorList

import structgen as sg
from structgen.integrations.llama_cpp import LogitsProcessor, vocabulary


def main(path: str) -> str:
    """Load a GGUF model and have it write a date."""
    llama = Llama(path, n_ctx=512, verbose=False)
    index = sg.compile(sg.Regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"), vocabulary(llama))
    processor = LogitsProcessor(index, llama)
    processors = LogitsProcessorList([processor])
    reply: Any = llama("The Bastille was stormed on ", logits_processor=processors, max_tokens=32)
    processor.check()  # llama.cpp cannot pass a processor's exceptions on
    text: str = reply["choices"][0]["text"]
    return text


if __name__ == "__main__":
    print(main(sys.argv[1]))
