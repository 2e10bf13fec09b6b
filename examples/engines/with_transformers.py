"""transformers, with a model of yours: python examples/engines/with_transformers.py your/model"""

from __future__ import annotations

import sys
from typing import Any

from transformers import AutoModelForCausalLM, AutoTokenizer

import structgen as sg
from structgen.integrations.transformers import LogitsProcessor, generate

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "founded": {"type": "integer"}, "capital": {"type": "boolean"}},
    "required": ["city", "founded", "capital"],
    "additionalProperties": False,
}


def main(name: str) -> None:
    """Answer a question twice: every token from the model, then only those that could be others."""
    tokenizer: Any = AutoTokenizer.from_pretrained(name)
    model: Any = AutoModelForCausalLM.from_pretrained(name)
    vocabulary = sg.Vocabulary.from_transformers(tokenizer)
    index = sg.compile(sg.JsonSchema(SCHEMA), vocabulary, eager=False)
    prompt = tokenizer("Tell me about Rome, as JSON:\n", return_tensors="pt")
    for options in ({"logits_processor": [LogitsProcessor(index)]}, {"custom_generate": generate, "index": index}):
        output = model.generate(**prompt, **options, max_new_tokens=100)
        print(tokenizer.decode(output[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
