"""MaskBench's data: schemas with instances, as the token sequences that the engines replay."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .order import ordered


@dataclass(frozen=True)
class Instance:
    """One test of a schema.

    Parameters
    ----------
    tokens:
        The text of the instance, in token ids.
    valid:
        Whether the schema allows it.
    """

    tokens: list[int]
    valid: bool


@dataclass(frozen=True)
class Case:
    """One schema and its tests; ``schema`` is as `json.loads` gives it."""

    id: str
    schema: Any
    instances: list[Instance]


def read(path: Path, *, limit: int | None = None, seed: int | None = None) -> list[dict[str, Any]]:
    """The file's lines, ``{"id", "schema", "tests": [{"data", "valid"}]}``.

    ``limit`` keeps that many: a random sample for a ``seed``, the first ones without.
    """
    data = path.read_bytes()
    texts = (gzip.decompress(data) if path.suffix == ".gz" else data).decode().strip().split("\n")
    if limit is not None and limit < len(texts):
        texts = texts[:limit] if seed is None else random.Random(seed).sample(texts, limit)
    return [json.loads(text) for text in texts]


def sample(lines: list[dict[str, Any]], limit: int, seed: int) -> list[dict[str, Any]]:
    """A random sample of some lines, or all of them where there are no more."""
    return lines if limit >= len(lines) else random.Random(seed).sample(lines, limit)


class Encoder:
    """Instances to token ids, by the tokenizer of the model; text that looks like a special token is text.

    Parameters
    ----------
    tokenizer_json:
        The tokenizer's file.
    canonical:
        Whether to bring members into the schema's order first. MaskBench takes them as they are.
    """

    def __init__(self, tokenizer_json: Path, *, canonical: bool = False) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(tokenizer_json))
        self._tokenizer.encode_special_tokens = True
        self._canonical = canonical

    def case(self, line: dict[str, Any]) -> Case:
        """A line of the file with its instances encoded."""
        instances = [Instance(self.tokens(line["schema"], test["data"]), bool(test["valid"])) for test in line["tests"]]
        return Case(line["id"], line["schema"], instances)

    def tokens(self, schema: Any, data: Any) -> list[int]:
        """The ids of the text that `json.dumps` writes."""
        text = json.dumps(ordered(schema, data) if self._canonical else data, ensure_ascii=False)
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids
