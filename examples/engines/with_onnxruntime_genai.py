"""A date from onnxruntime-genai: ``python examples/engines/with_onnxruntime_genai.py FOLDER``."""

from __future__ import annotations

import sys

import onnxruntime_genai as og

import structgen as sg
from structgen.integrations.onnxruntime_genai import GuidedGenerator


def main(folder: str) -> str:
    """Load a model folder and have it write a date."""
    model = og.Model(folder)
    tokenizer = og.Tokenizer(model)
    parameters = og.GeneratorParams(model)
    parameters.set_search_options(max_length=128)
    generator = og.Generator(model, parameters)
    generator.append_tokens(tokenizer.encode("The Bastille was stormed on "))

    index = sg.compile(sg.Regex("[0-9]{4}-[0-9]{2}-[0-9]{2}"), sg.Vocabulary.from_pretrained(folder))
    start = generator.token_count()
    guided = GuidedGenerator(generator, index)
    while not guided.is_done():
        guided.generate_next_token()
    text: str = tokenizer.decode(generator.get_sequence(0)[start:])
    return text


if __name__ == "__main__":
    print(main(sys.argv[1]))
