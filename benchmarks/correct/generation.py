"""Optimistic decoding beside masks at each step and transformers-CFG, with and without going back in the cache.

    python -m benchmarks.correct.generation                                         # ten minutes
    python -m benchmarks.correct.generation --models tiny                           # three
    python -m benchmarks.correct.generation --models mid-size --no-peers --repeats 3
    python -m benchmarks.correct.generation --models mid-size --mistakes 0,0.25 --repeats 1

The benchmark of "Grammar Prompting" (Wang et al. 2023): a JSON object of ten pairs of strings, written by a model in
transformers on the CPU, after a prompt with seven examples. Two Llamas, randomly initialised, over a real vocabulary:
*tiny*, whose passes cost about nothing, and *mid-size*, of 103 million parameters.

What is simulated is what the models know. A processor that is part of every variant adds to the scores so that a
prescribed text is written, and at some places (``--mistakes``, of all) a token comes first that isn't allowed
there; what a pass of the model costs is real. *random* is without it: what the model says is noise.

- *masks*: `LogitsProcessor`, a mask at each step,
- *exact*, *lenient*: ``mode="optimistic"`` with either distribution,
- *cropped*: sixteen tokens between two checks, and the cache taken back to the longest valid prefix,
- *reread*: the same without the cache, the valid prefix being read anew after each mistake,
- *CFG*, *CFG, speculative*: transformers-cfg with the same grammar, where it is installed: as it comes, and in the
  mode in which it looks at the likeliest token first, and at all of them where that isn't allowed. transformers 5
  lacks the table of bytes that it asks for, GPT-2's, so it is handed that.

The variants take turns, in another order each time; seconds are those of the process, on one thread, and rates those
of the fastest run: others disturb, and nothing makes a run faster than it is.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import structgen as sg
from structgen.vocabulary.byte_level import BYTE_OF

from .. import report, run, vocabularies
from ..batch.generate import Script, Text

#: What is to be reached; the last is the seed's own figure.
OVER_MASKS, OVER_PEER, OVER_REREAD = 1.0, 3.0, 1.7

#: Passes of the model per token at most, where masks take one.
MOST_PASSES = 1.02

#: One grammar for both: llama.cpp's notation, which transformers-cfg reads, too.
GRAMMAR = rf"""
root ::= "{{" {' ", " '.join(["pair"] * 10)} "}}"
pair ::= string ": " string
string ::= "\"" [a-zA-Z0-9 .,_-]* "\""
"""

_PEOPLE = [
    ["Ada Lovelace", "London", "mathematician", "1815-12-10", "English", "Analytical Engine", "Babbage", "poetry"],
    ["Emmy Noether", "Erlangen", "mathematician", "1882-03-23", "German", "invariant theory", "Hilbert", "physics"],
    ["Grace Hopper", "New York", "rear admiral", "1906-12-09", "English", "compilers", "Aiken", "sailing"],
    ["Marie Curie", "Warsaw", "physicist", "1867-11-07", "Polish", "radioactivity", "Pierre Curie", "cycling"],
    ["Rosalind Franklin", "London", "chemist", "1920-07-25", "English", "X-ray diffraction", "Gosling", "hiking"],
    ["Leonhard Euler", "Basel", "mathematician", "1707-04-15", "Latin", "graph theory", "Bernoulli", "music"],
    ["Henrietta Leavitt", "Lancaster", "astronomer", "1868-07-04", "English", "Cepheids", "Pickering", "reading"],
    ["Alan Turing", "Maida Vale", "logician", "1912-06-23", "English", "computable numbers", "Church", "running"],
]
_KEYS = ["name", "born_in", "profession", "born_on", "language", "known_for", "worked_with", "other_interest"]

VARIANTS = ("masks", "exact", "lenient", "cropped", "reread")

#: Where transformers-cfg 0.2.7 asks for a tokenizer's alphabet of bytes, of classes that transformers 5 has no more.
_SLOW_TOKENIZERS = "transformers_cfg.tokenization.middle.ByteProxyMapping.AutoTokenizer"

PEERS = {"CFG": "full_mask", "CFG, speculative": "speculation"}


def _person(values: list[str]) -> str:
    pairs = {**dict(zip(_KEYS, values, strict=True)), "status": "complete", "checked_by": "two readers"}
    return json.dumps(pairs)


PROMPT = "Answer with a JSON object of ten strings.\n" + "".join(f"{_person(each)}\n" for each in _PEOPLE[:-1])


@dataclass
class Case:
    """A model, and what it knows: the share of places at which it is wrong, None for noise.

    Parameters
    ----------
    seconds, tokens, passes:
        Of each run of a variant; tokens written in one, and passes of the model for them.
    """

    model: str
    mistakes: float | None
    seconds: dict[str, list[float]] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        knows = "random" if self.mistakes is None else f"{self.mistakes:.0%} mistakes"
        return f"{self.model}, {knows}"

    def rate(self, variant: str) -> float:
        """Tokens per second, of the fastest run."""
        return self.tokens[variant] / min(self.seconds[variant])

    def ratio(self, variant: str, other: str) -> float:
        return self.rate(variant) / self.rate(other)


class Bench:
    """A model, the text, and the clock."""

    def __init__(self, size: str, folder: Path, most: int) -> None:
        import torch

        transformers: Any = import_module("transformers")
        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.tokenizer = transformers.Qwen2TokenizerFast.from_pretrained(folder)
        vocabulary = sg.Vocabulary.from_pretrained(folder)
        shape: dict[str, Any] = {
            "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
            "mid-size": {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8,
                         "num_attention_heads": 8},
        }[size]  # fmt: skip
        config = transformers.LlamaConfig(
            vocab_size=vocabulary.size, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None,
            pad_token_id=None, max_position_embeddings=2048, **shape,
        )  # fmt: skip
        self.model = transformers.LlamaForCausalLM(config).eval()
        self.prompt = self.tokenizer(PROMPT, return_tensors="pt")["input_ids"]
        index = sg.compile(sg.Gbnf(GRAMMAR), vocabulary, eager=False)
        assert vocabulary.encode is not None
        tokens = [*vocabulary.encode(_person(_PEOPLE[-1])), vocabulary.eos_ids[0]][:most]
        guide = sg.Guide(index)
        assert all(map(guide.advance, tokens))
        self.text = Text(size, index, tokens)

    def run(self, variant: str, mistakes: float | None) -> tuple[float, int, int]:
        """Seconds of writing the text, how many tokens that were, and how many passes of the model."""
        import torch

        wanted = (
            [] if mistakes is None else [Script(self.text.tokens, self.prompt.shape[1], self.text.mistakes(mistakes))]
        )
        options, around = self._peer(variant) if variant in PEERS else self._ours(variant)
        processors = [*wanted, *options.pop("logits_processor", [])]
        passes: list[object] = []
        counting = self.model.register_forward_pre_hook(lambda *_: passes.append(None))
        with around, closing(SimpleNamespace(close=counting.remove)):
            began = time.process_time()
            rows = self.model.generate(
                self.prompt, attention_mask=torch.ones_like(self.prompt), logits_processor=processors,
                max_new_tokens=len(self.text.tokens), do_sample=False, **options,
            )  # fmt: skip
            seconds = time.process_time() - began
        found = rows[0, self.prompt.shape[1] :].tolist()
        if wanted and found != self.text.tokens:
            raise RuntimeError(f"{variant}: other tokens than prescribed")
        return seconds, len(found), len(passes)

    def _ours(self, variant: str) -> tuple[dict[str, Any], AbstractContextManager[None]]:
        from structgen.integrations.transformers import LogitsProcessor, generate

        if variant == "masks":
            return {"logits_processor": [LogitsProcessor(self.text.index)]}, nullcontext()
        distribution = "lenient" if variant == "lenient" else "exact"
        options = {"custom_generate": generate, "index": self.text.index, "mode": "optimistic",
                   "distribution": distribution}  # fmt: skip
        if variant in ("cropped", "reread"):
            options["ahead"] = 16
        return options, forgetful() if variant == "reread" else nullcontext()

    def _peer(self, variant: str) -> tuple[dict[str, Any], AbstractContextManager[None]]:
        from transformers_cfg.generation.logits_process import GrammarConstrainedLogitsProcessor
        from transformers_cfg.grammar_utils import IncrementalGrammarConstraint

        slow = SimpleNamespace(byte_decoder=BYTE_OF, byte_encoder={byte: char for char, byte in BYTE_OF.items()})
        with mock.patch(_SLOW_TOKENIZERS, SimpleNamespace(from_pretrained=lambda *_, **__: slow)):
            constraint = IncrementalGrammarConstraint(GRAMMAR, "root", self.tokenizer)
        processor = GrammarConstrainedLogitsProcessor(
            constraint, valid_token_start_idx=self.prompt.shape[1], execution_mode=PEERS[variant]
        )
        return {"logits_processor": [processor]}, nullcontext()


@contextmanager
def forgetful() -> Iterator[None]:
    """Within it, optimistic decoding keeps nothing of the cache after a mistake."""
    from transformers.cache_utils import DynamicCache

    from structgen.integrations.transformers import caches, custom_generate

    class Forgetful(custom_generate._Reader):
        def __init__(self, model: Any, config: Any, model_kwargs: dict[str, Any], prompt: int) -> None:
            super().__init__(model, config, model_kwargs, prompt)
            self._begin = prompt, dict(model_kwargs)

        def go_back(self, _: Any) -> None:
            self._length, self._kwargs = self._begin[0], dict(self._begin[1])
            self._kwargs[caches.name()] = DynamicCache(config=self._model.config)
            self._outputs = None

    with mock.patch.object(custom_generate, "_Reader", Forgetful):
        yield


def measured(bench: Bench, case: Case, variants: list[str], repeats: int, order: random.Random) -> None:
    """Runs of a case, after one of each variant that does not count."""
    for turn in range(repeats + 1):
        for variant in order.sample(variants, len(variants)):
            if variant in PEERS and turn not in (0, repeats):
                continue  # seconds, which little disturbs: one will do
            seconds, case.tokens[variant], case.passes[variant] = bench.run(variant, case.mistakes)
            if turn:
                case.seconds.setdefault(variant, []).append(seconds)


def figures(case: Case) -> list[report.Figure]:
    """The ratios of a case."""
    peers = [variant for variant in PEERS if variant in case.tokens]
    asked: list[tuple[str, float, float | None]] = [
        ("exact / masks", case.ratio("exact", "masks"), OVER_MASKS),
        ("lenient / masks", case.ratio("lenient", "masks"), OVER_MASKS),
        *((f"exact / {peer}", case.ratio("exact", peer), OVER_PEER) for peer in peers),
    ]
    if case.mistakes:
        # Where a pass costs next to nothing, so does reading anew.
        target = OVER_REREAD if case.model == "mid-size" else None
        asked.append(("cropped / reread", case.ratio("cropped", "reread"), target))
    repeats = len(case.seconds["masks"])
    found = [report.Figure(f"{case.name}: {name}", value, target, True, "x", repeats) for name, value, target in asked]
    for variant in ("exact", "lenient"):
        passes = case.passes[variant] / case.tokens[variant]
        name = f"{case.name}: passes per token, {variant}"
        found.append(report.Figure(name, passes, MOST_PASSES, False, "", case.tokens[variant]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="tiny,mid-size", help="which of them")
    parser.add_argument("--tokenizer", type=Path, default=vocabularies.TOKENIZERS / "qwen2_5", help="its folder")
    parser.add_argument("--mistakes", default="0,0.05,0.25,random", help="shares of places, and random for noise")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of the text at most")
    parser.add_argument("--no-peers", action="store_true", help="without transformers-cfg")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each case and variant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="a JSON file for the results")
    options = parser.parse_args()

    console = run.console()
    kept = run.begin(console, vars(options))
    has_peers = not options.no_peers and find_spec("transformers_cfg") is not None
    order = random.Random(options.seed)
    cases, found = [], []
    for size in run.names(options.models, ("tiny", "mid-size")):
        bench = Bench(size, options.tokenizer, options.tokens)
        for share in options.mistakes.split(","):
            case = Case(size, None if share == "random" else float(share))
            variants = [v for v in VARIANTS if case.mistakes or v not in ("cropped", "reread")]
            measured(bench, case, [*variants, *(PEERS if has_peers else [])], options.repeats, order)
            rates = ", ".join(f"{variant} {case.rate(variant):,.1f}" for variant in case.seconds)
            console.print(f"{case.name}, tokens/s: {rates}")
            cases.append(asdict(case))
            found += figures(case)
    report.show_figures(console, found)
    kept |= {"figures": [each.as_json() for each in found], "cases": cases}
    run.end(console, kept, options.save)


if __name__ == "__main__":
    main()
