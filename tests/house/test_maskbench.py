"""Real schemas: the developers' half of MaskBench, with instances that are valid and instances that are not.

A sample of it, unless ``STRUCTGEN_MASKBENCH=all``.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from conftest import tokenizer_folder
from judges.guides import BYTES
from judges.json_judge import Judge, NoVerdictError
from judges.json_texts import accepts, dumps, random_text

import structgen as sg
from structgen.errors import BudgetExceededError, EmptyLanguageError, UnsupportedError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "maskbench" / "dev.jsonl.gz"

pytestmark = [
    pytest.mark.skipif(not DATA.is_file(), reason=f"{DATA.name} is not in shared/data/{DATA.parent.name}"),
    pytest.mark.nightly,
]

#: How many schemas a normal run takes, for each test.
SAMPLE = 100

#: The share of schemas that are taken, and right in every instance.
COVERED = 0.98


@cache
def lines() -> list[dict[str, Any]]:
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sampled(purpose: str, count: int = SAMPLE) -> list[dict[str, Any]]:
    """Schemas drawn at random, always the same ones for a purpose."""
    if os.environ.get("STRUCTGEN_MASKBENCH") == "all":
        return lines()
    return Random(purpose).sample(lines(), count)


def indexes(chosen: list[dict[str, Any]], vocabulary: sg.Vocabulary) -> Iterator[tuple[dict[str, Any], sg.Index]]:
    """The schemas that structgen takes, each with its lazy index; one that allows nothing has to be one."""
    for line in chosen:
        try:
            yield line, sg.compile(sg.JsonSchema(line["schema"]), vocabulary, eager=False)
        except EmptyLanguageError:
            assert not any(test["valid"] for test in line["tests"]), line["id"]
        except (UnsupportedError, BudgetExceededError):
            continue


def test_instances_are_let_through_exactly_where_they_are_valid() -> None:
    """Valid ones in some order of their members: a few of the data are not in the order of their schema."""
    chosen, wrong, right = sampled("instances"), [], 0
    for line, index in indexes(chosen, BYTES):
        found = [number for number, test in enumerate(line["tests"]) if not is_right(index, test)]
        if found:
            wrong.append(f"{line['id']}: instances {found}")
        else:
            right += 1
    assert not wrong, "\n".join(wrong)
    assert right >= COVERED * len(chosen), f"{right} of {len(chosen)} schemas are taken"


def is_right(index: sg.Index, test: dict[str, Any]) -> bool:
    return accepts(index, test["data"], integral=False) if test["valid"] else not takes(index, dumps(test["data"]))


def takes(index: sg.Index, text: bytes) -> bool:
    guide = sg.Guide(index)
    return all(map(guide.advance, text)) and guide.is_accepting()


def test_what_a_guide_lets_through_is_valid() -> None:
    wrong, judged, random = [], Counter[str](), Random(0)
    for line, index in indexes(sampled("texts"), BYTES):
        judge = Judge(line["schema"])
        for text in (random_text(index, random) for _ in range(3)):
            verdict = "unfinished" if text is None else _verdict(judge, text)
            judged[verdict] += 1
            if verdict == "invalid":
                wrong.append(f"{line['id']}: {text!r}")
    assert not wrong, "\n".join(wrong)
    assert judged["valid"] > 0.7 * judged.total(), judged


def _verdict(judge: Judge, text: bytes) -> str:
    try:
        return "valid" if judge.is_valid(text) else "invalid"
    except NoVerdictError:
        return "no verdict"


def test_masks_along_the_instances_of_a_real_vocabulary(llama3: sg.Vocabulary) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="instances are encoded by the tokenizer itself")
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_folder("llama3") / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    for line, index in indexes(sampled("tokens", 20), llama3):
        by_byte = sg.compile(sg.JsonSchema(line["schema"]), BYTES, eager=False)
        for test in line["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            tokens = tokenizer.encode(text, add_special_tokens=False).ids
            assert takes_tokens(index, tokens) == takes(by_byte, text.encode()), f"{line['id']}: {text}"


def takes_tokens(index: sg.Index, tokens: list[int]) -> bool:
    """Whether mask after mask allows the tokens and then the end; `advance` must agree with every mask."""
    guide = sg.Guide(index)
    mask = np.zeros(index.vocabulary.words, np.int32)
    bits = mask.view(np.uint8)
    for token in tokens:
        guide.fill_bitmask(mask)
        allowed = bool(bits[token >> 3] >> (token & 7) & 1)
        assert guide.advance(token) == allowed
        if not allowed:
            return False
    guide.fill_bitmask(mask)
    ends = {bool(bits[token >> 3] >> (token & 7) & 1) for token in index.vocabulary.eos_ids}
    assert ends == {guide.is_accepting()}
    return guide.is_accepting()
