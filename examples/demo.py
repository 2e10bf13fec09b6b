"""`make demo`: compile definitions and some Python types, generate text under each, and open it all again.

Needs no model hub and no network: the vocabulary is the tekken one that mistral-common ships (131,072 ids),
and the model is a tiny Llama with random weights. The weights don't matter: whatever the model prefers, the
mask leaves only what the definition allows, and Python's `re` and `jsonschema` judge the result.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

import structgen as sg
from structgen.cli.options import load_vocabulary
from structgen.definitions.loading import NamedDefinition, load_definitions

EXAMPLES = Path(__file__).resolve().parent
DEFINITIONS = ["examples/definitions", "examples.models:Recipe", "examples.models:book_table"]
TOKENIZER = "tekken"
MAX_NEW_TOKENS = 400


def main() -> int:
    """Run the three steps. Returns 0 when every text is complete and matches."""
    os.chdir(EXAMPLES.parent)
    with tempfile.TemporaryDirectory(prefix="structgen-demo-") as cache:
        heading("1. Compile every definition in examples/, with an empty cache")
        cold = warm(cache)

        heading("2. Generate with a random model, one definition for each row of the batch")
        all_match = generate_all(load_definitions(DEFINITIONS), cache)

        heading("3. The same command again, in a new process, with the cache that step 1 filled")
        cached = warm(cache)
    print(f"\nThe whole command took {cold:.1f} s with an empty cache and {cached:.1f} s with a full one.")
    return 0 if all_match else 1


def heading(text: str) -> None:
    """Print a step's title."""
    print(f"\n== {text}\n", flush=True)


def warm(cache: str) -> float:
    """Run ``structgen warm`` as a build step would. Returns the seconds of the whole process."""
    arguments = ["warm", *DEFINITIONS, "--tokenizer", TOKENIZER, "--cache", cache]
    print(f"$ structgen {' '.join(arguments)}", flush=True)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "structgen.cli", *arguments], check=True)
    return time.perf_counter() - start


def generate_all(named: list[NamedDefinition], cache: str) -> bool:
    """Generate one text for each definition, print them, and say whether all of them match."""
    vocabulary = load_vocabulary(TOKENIZER)
    store = sg.Cache(cache)
    indexes = [sg.compile(item.definition, vocabulary, cache=store) for item in named]
    start = time.perf_counter()
    texts = generate(indexes, vocabulary)
    seconds = time.perf_counter() - start
    results = [judge(item, text) for item, text in zip(named, texts, strict=True)]
    for item, text, verdict in zip(named, texts, results, strict=True):
        print(
            f"{'✓' if verdict == 'matches' else '✗'} {item.name:<12} {text!r}"
            + f"  ({verdict})" * (verdict != "matches")
        )
    matching = results.count("matches")
    print(f"\n{matching} of {len(results)} texts match under Python's re and jsonschema, generated in {seconds:.1f} s")
    return matching == len(results)


def judge(item: NamedDefinition, text: str | None) -> str:
    """``"matches"``, or what is wrong. ``None`` is a text that met no end-of-sequence token."""
    if text is None:
        return f"cut off after {MAX_NEW_TOKENS} tokens"
    return "matches" if matches(item.definition, text) else "does not match"


def matches(definition: sg.Definition, text: str) -> bool:
    """What Python's own tools say. Decimals, because 19.99 as a binary fraction is no multiple of 0.01."""
    if isinstance(definition, sg.JsonSchema):
        schema, value = (json.loads(each, parse_float=Decimal) for each in (definition.text, text))
        checker = Draft202012Validator.FORMAT_CHECKER
        return bool(Draft202012Validator(schema, format_checker=checker).is_valid(value))
    assert isinstance(definition, sg.Regex)
    return re.fullmatch(definition.pattern, text, definition.flags) is not None


def generate(indexes: list[sg.Index], vocabulary: sg.Vocabulary) -> list[str | None]:
    """Sample one batch, row ``i`` under index ``i``, from a tiny Llama with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from structgen.integrations.transformers import LogitsProcessor

    torch.manual_seed(7)
    eos = list(vocabulary.eos_ids)
    config = LlamaConfig(
        vocab_size=vocabulary.size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        bos_token_id=eos[0],
        eos_token_id=eos,
        pad_token_id=eos[0],
    )
    model: Any = LlamaForCausalLM(config)
    model.eval()
    prompt = torch.full((len(indexes), 1), eos[0])
    output = model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        logits_processor=[LogitsProcessor(indexes), growing_urge_to_end(eos)],
        do_sample=True,
        top_k=0,
        max_new_tokens=MAX_NEW_TOKENS,
    )
    return [decode(row, vocabulary) for row in output[:, 1:].tolist()]


def growing_urge_to_end(eos: list[int]) -> Any:
    """A logits processor that favours EOS more with every token.

    A trained model knows when it has said enough. This one doesn't: among thousands of allowed tokens it
    would hardly ever draw EOS. Where the mask forbids EOS its score is minus infinity and stays so.
    """

    def process(input_ids: Any, scores: Any) -> Any:
        scores[:, eos] += 0.6 * input_ids.shape[1]
        return scores

    return process


def decode(token_ids: list[int], vocabulary: sg.Vocabulary) -> str | None:
    """The text before the first EOS id; ``None`` where there is none."""
    pieces: list[bytes] = []
    for token_id in token_ids:
        if token_id in vocabulary.eos_ids:
            return b"".join(pieces).decode("utf-8")
        pieces.append(vocabulary.token(token_id) or b"")
    return None


if __name__ == "__main__":
    sys.exit(main())
