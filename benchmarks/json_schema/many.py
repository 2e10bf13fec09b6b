"""A process with many schemas open: its memory, what the collector of garbage looks at, and how long that takes.

``python -m benchmarks.json_schema.many TOKENIZER`` compiles them lazily, or with ``--cached`` opens them from a cache
that another process has filled; then reads all their texts, as far as they are valid. Linux with glibc.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import structgen as sg

from .. import run
from ..regex.memory import resident
from . import instances


def main() -> None:
    """Measure and print."""
    options = _options()
    encoder = instances.Encoder(options.tokenizer / "tokenizer.json")
    cases = [encoder.case(line) for line in instances.read(options.data, limit=options.limit, seed=options.sample)]
    del encoder
    with tempfile.TemporaryDirectory(prefix="structgen-bench-") as folder:
        cache = Path(folder) if options.cached else None
        if cache is not None:
            other = get_context("spawn").Process(target=_compile, args=(options.tokenizer, cases, cache))
            other.start()
            other.join()
        measure(options.tokenizer, cases, cache)


def measure(tokenizer: Path, cases: Sequence[instances.Case], cache: Path | None) -> None:
    """Print what a process takes after each stage, beyond what it took before the first schema."""
    vocabulary = sg.Vocabulary.from_pretrained(tokenizer)
    sg.compile_base_rows(vocabulary)
    _report("vocabulary and kernels", 0, [])
    before = resident()
    indexes = _compile(tokenizer, cases, cache, vocabulary)
    _report("open", before, indexes)
    bitmask = np.zeros(vocabulary.words, np.int32)
    for case, index in zip(cases, indexes, strict=True):
        if index is None:
            continue
        for instance in case.instances:
            guide = sg.Guide(index)
            for token in instance.tokens:
                guide.fill_bitmask(bitmask)
                if not guide.advance(token):
                    break
    _report("warmed", before, indexes)
    gc.freeze()
    _report("warmed, frozen", before, indexes)


def _compile(
    tokenizer: Path, cases: Sequence[instances.Case], cache: Path | None, vocabulary: sg.Vocabulary | None = None
) -> list[sg.Index | None]:
    """The indexes of all schemas, None for those that are refused."""
    vocabulary = vocabulary or sg.Vocabulary.from_pretrained(tokenizer)
    kept = None if cache is None else sg.Cache(cache)
    indexes: list[sg.Index | None] = []
    for case in cases:
        indexes.append(None)
        with suppress(sg.Error):
            definition = sg.JsonSchema(case.schema)
            indexes[-1] = sg.compile(definition, vocabulary, cache=kept, eager=cache is not None)
    return indexes


def _report(stage: str, before: int, indexes: Sequence[sg.Index | None]) -> None:
    gc.collect()
    began = time.thread_time()
    gc.collect()
    pause = time.thread_time() - began
    opened = [index for index in indexes if index is not None]
    kinds = Counter(type(each).__name__ for each in gc.get_objects())
    told = sum(index.nbytes for index in opened)
    print(
        f"{stage}: {len(opened)} schemas, {(resident() - before) / 1e6:.0f} MB resident, {told / 1e6:.0f} MB by"
        f" Index.nbytes; {kinds.total():,} objects, a full collection {1e3 * pause:.1f} ms; {kinds.most_common(8)}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", type=Path, help="a folder with a tokenizer.json")
    parser.add_argument("--data", type=Path, default=run.MASKBENCH, help="the .jsonl.gz file with schemas and tests")
    parser.add_argument("--limit", type=int, default=1000, help="how many schemas, drawn at random (1,000)")
    parser.add_argument("--sample", type=int, default=0, help="the seed for drawing them")
    parser.add_argument("--cached", action="store_true", help="open them from a cache")
    return parser.parse_args()


if __name__ == "__main__":
    main()
