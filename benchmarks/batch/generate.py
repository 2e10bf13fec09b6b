"""What masks cost, and what forced tokens save, in transformers' ``generate()`` on the CPU.

    python -m benchmarks.batch.generate                     # sixteen schemas, some minutes
    python -m benchmarks.batch.generate --limit 4 --repeats 3

A small random Llama with the real vocabulary of Llama 3 writes valid instances of MaskBench's schemas, as compact
JSON. What it writes is prescribed, by a processor that is part of every variant, so that all write the same tokens:

- *free*: without a definition,
- *masked*: with `LogitsProcessor`,
- *forced*: with the loop that appends what must follow (`structgen.integrations.transformers.generate`),
- *optimistic*: with the loop that chooses tokens without masks, and checks them some at a time.

With ``--mistakes`` the model prefers a wrong token at some places, except when it is free.

The variants take turns, in another order each time; seconds are those of the process, on one thread.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import structgen as sg

from .. import run, vocabularies
from ..json_schema import instances
from ..json_schema.order import ordered

VARIANTS = ("free", "masked", "forced", "optimistic")

#: Texts of so many tokens are written.
SHORTEST, LONGEST = 40, 300

PROMPT = "Answer with JSON.\n"


@dataclass(frozen=True)
class Text:
    """An instance that is to be written: its schema's index, and its tokens, the end included."""

    id: str
    index: sg.Index
    tokens: list[int]

    def mistakes(self, share: float) -> dict[int, int]:
        """Places, so many of all, and a token at each that is not allowed there."""
        order, guide, found = random.Random(self.id), sg.Guide(self.index), {}
        for place, token in enumerate(self.tokens):
            wrong = order.randrange(guide.index.vocabulary.size)
            if order.random() < share and not guide.allows(wrong):
                found[place] = wrong
            guide.advance(token)
        return found


@dataclass
class Result:
    """Seconds of each run, and how often the model was asked, by variant."""

    id: str
    tokens: int
    seconds: dict[str, list[float]]
    calls: dict[str, int]

    def median(self, variant: str) -> float:
        return statistics.median(self.seconds[variant])


class Script:
    """A processor that has the model choose prescribed tokens, after others at some places."""

    def __init__(self, tokens: list[int], prompt: int, mistakes: dict[int, int]) -> None:
        self._tokens, self._prompt, self._mistakes = tokens, prompt, mistakes

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        place = input_ids.shape[1] - self._prompt
        scores[:, self._tokens[place] if place < len(self._tokens) else 0] += 1e4
        if place in self._mistakes:
            scores[:, self._mistakes[place]] += 2e4
        return scores


def texts(vocabulary: sg.Vocabulary, data: Path, limit: int, seed: int) -> list[Text]:
    """Valid instances of schemas drawn at random, one of each, in the schema's order of properties."""
    assert vocabulary.encode is not None
    lines = instances.read(data)
    random.Random(seed).shuffle(lines)
    found: list[Text] = []
    for line in lines:
        if len(found) == limit:
            break
        written = [
            list(vocabulary.encode(json.dumps(ordered(line["schema"], test["data"]), ensure_ascii=False,
                                              separators=(",", ":"))))
            for test in line["tests"] if test["valid"]
        ]  # fmt: skip
        tokens = next((t for t in written if SHORTEST <= len(t) <= LONGEST), None)
        if tokens is None:
            continue
        try:
            index = sg.compile(sg.JsonSchema(line["schema"], whitespace="compact"), vocabulary, eager=False)
        except sg.errors.StructgenError:
            continue
        guide = sg.Guide(index)
        if all(map(guide.advance, tokens)) and guide.is_accepting():
            found.append(Text(line["id"], index, [*tokens, vocabulary.eos_ids[0]]))
    return found


class Bench:
    """A model, and the clock."""

    def __init__(self, vocabulary: sg.Vocabulary, tokenizer_json: Path, mistakes: float = 0.0) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

        torch.set_num_threads(1)
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=vocabulary.size, hidden_size=256, intermediate_size=704, num_hidden_layers=4,
            num_attention_heads=8, num_key_value_heads=4, bos_token_id=None, eos_token_id=None, pad_token_id=None,
        )  # fmt: skip
        made: Any = LlamaForCausalLM(config)
        self._model: Any = made.eval()
        kind: Any = PreTrainedTokenizerFast
        self._prompt = kind(tokenizer_file=str(tokenizer_json))(PROMPT, return_tensors="pt")["input_ids"]
        self._calls = 0
        self._mistakes = mistakes
        self._model.register_forward_hook(self._called)

    def _called(self, *_: Any) -> None:
        self._calls += 1

    def run(self, text: Text, variant: str) -> tuple[float, int]:
        """Seconds, and calls of the model, of writing a text."""
        import torch

        from structgen.integrations.transformers import LogitsProcessor, generate

        prompt = self._prompt.shape[1]
        mistakes = text.mistakes(self._mistakes) if variant != "free" else {}
        processors: list[Any] = [Script(text.tokens, prompt, mistakes)]
        options: dict[str, Any] = {}
        if variant == "masked":
            processors.append(LogitsProcessor(text.index))
        elif variant != "free":
            mode = "optimistic" if variant == "optimistic" else "masked"
            options = {"custom_generate": generate, "index": text.index, "mode": mode}
        self._calls = 0
        began = time.process_time()
        rows = self._model.generate(
            self._prompt, attention_mask=torch.ones_like(self._prompt), logits_processor=processors,
            max_new_tokens=len(text.tokens), do_sample=False, **options,
        )  # fmt: skip
        seconds = time.process_time() - began
        if rows[0, prompt:].tolist() != text.tokens:
            raise RuntimeError(f"{text.id}, {variant}: other tokens than prescribed")
        return seconds, self._calls

    def result(self, text: Text, repeats: int, order: random.Random) -> Result:
        """Runs of a text, after one of each variant that does not count."""
        result = Result(text.id, len(text.tokens), {v: [] for v in VARIANTS}, {})
        for turn in range(repeats + 1):
            for variant in order.sample(VARIANTS, len(VARIANTS)):
                seconds, result.calls[variant] = self.run(text, variant)
                if turn:
                    result.seconds[variant].append(seconds)
        return result


def figures(results: list[Result]) -> dict[str, float]:
    """Tokens per second of each variant, and their ratios: of all texts together, each by its median run."""
    total = {v: sum(r.median(v) for r in results) for v in VARIANTS}
    tokens = sum(r.tokens for r in results)
    calls = {v: sum(r.calls[v] for r in results) for v in VARIANTS}
    return {
        **{f"{v}, tokens/s": tokens / total[v] for v in VARIANTS},
        **{f"{v}, calls per token": calls[v] / tokens for v in VARIANTS},
        "masked / free": total["free"] / total["masked"],
        "masked / free, median of texts": statistics.median(r.median("free") / r.median("masked") for r in results),
        "forced / masked": total["masked"] / total["forced"],
        "optimistic / masked": total["masked"] / total["optimistic"],
        "forced / masked, median of texts": statistics.median(r.median("masked") / r.median("forced") for r in results),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=run.MASKBENCH, help="the .jsonl.gz file with schemas and tests")
    parser.add_argument("--tokenizer", type=Path, default=vocabularies.TOKENIZERS / "llama3", help="its folder")
    parser.add_argument("--limit", type=int, default=16, help="schemas")
    parser.add_argument("--repeats", type=int, default=7, help="runs of each text and variant")
    parser.add_argument("--mistakes", type=float, default=0.0, help="places at which the model is wrong, of all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()

    vocabulary = sg.Vocabulary.from_pretrained(options.tokenizer)
    bench = Bench(vocabulary, options.tokenizer / "tokenizer.json", options.mistakes)
    kept = run.begin(run.console(), vars(options))
    order = random.Random(options.seed)
    results = []
    for text in texts(vocabulary, options.data, options.limit, options.seed):
        results.append(bench.result(text, options.repeats, order))
        last = results[-1]
        rates = ", ".join(f"{v} {last.tokens / last.median(v):,.0f}" for v in VARIANTS)
        print(f"{last.id}: {last.tokens} tokens; tokens/s: {rates}", flush=True)
    found = figures(results)
    for name, value in found.items():
        print(f"{name:32} {value:10,.3f}")
    kept |= {"figures": found, "results": [asdict(result) for result in results]}
    run.end(run.console(), kept, options.save)


if __name__ == "__main__":
    main()
