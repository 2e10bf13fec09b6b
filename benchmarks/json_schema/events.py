"""How fast `JsonEvents` reads MaskBench's instances, token by token.

Run ``python -m benchmarks.json_schema.events DATA TOKENIZER``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structgen as sg

from .instances import Encoder, read


def by_token(texts: list[list[int]], vocabulary: sg.Vocabulary, **options: Any) -> int:
    """Read every text, one token after another; the number of events."""
    count = 0
    for ids in texts:
        reader = sg.JsonEvents(vocabulary, **options)
        for token in ids:
            count += len(reader.feed(token))
        count += len(reader.close())
    return count


def with_values(texts: list[list[int]], vocabulary: sg.Vocabulary) -> int:
    """Ask every event for its path and value, too."""
    count = 0
    for ids in texts:
        reader = sg.JsonEvents(vocabulary)
        for token in ids:
            count += sum(event.path is not None and event.value is not event for event in reader.feed(token))
        reader.close()
    return count


def in_one(texts: list[bytes]) -> int:
    """Read every text as one piece."""
    return sum(len(sg.JsonEvents().feed(text)) for text in texts)


def main() -> None:
    """Print a line for each way to read; the fastest of three runs, in CPU time."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("data", type=Path, help="MaskBench's .jsonl.gz")
    arguments.add_argument("tokenizer", type=Path, help="a folder with a tokenizer.json")
    arguments.add_argument("--limit", type=int, default=300, help="schemas, a sample")
    given = arguments.parse_args()
    vocabulary = sg.Vocabulary.from_pretrained(given.tokenizer)
    encoder = Encoder(given.tokenizer / "tokenizer.json")
    lines = read(given.data, limit=given.limit, seed=1)
    texts = [instance.tokens for line in lines for instance in encoder.case(line).instances]
    data = [b"".join(vocabulary.token(t) or b"" for t in ids) for ids in texts]
    tokens, size = sum(map(len, texts)), sum(map(len, data))
    print(f"{len(texts):,} texts, {tokens:,} tokens, {size:,} bytes")
    ways: dict[str, Callable[[], int]] = {
        "token by token": lambda: by_token(texts, vocabulary),
        "with starts and deltas": lambda: by_token(texts, vocabulary, starts=True, deltas=True),
        "without text and rollback": lambda: by_token(texts, vocabulary, keep_text=False, max_rollback=0),
        "with each path and value": lambda: with_values(texts, vocabulary),
        "each text in one piece": lambda: in_one(data),
        "json.loads of each text": lambda: len([json.loads(text) for text in data]),
    }
    for name, way in ways.items():
        seconds = []
        for _ in range(3):
            begin = time.process_time()
            found = way()
            seconds.append(time.process_time() - begin)
        fastest = min(seconds)
        print(
            f"{name:26} {fastest / tokens * 1e6:5.2f} µs a token, {fastest / size * 1e9:5.0f} ns a byte, "
            f"{tokens / fastest / 1e3:6,.0f} thousand tokens/s, {found:,} events"
        )


if __name__ == "__main__":
    main()
