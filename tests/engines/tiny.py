"""What tests of engines have in common: a tiny model with random weights, and judges of what it wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOKENIZERS = Path(__file__).resolve().parents[3] / "shared" / "data" / "tokenizers"

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "grün", "黄"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


def _is_person(text: str) -> bool:
    import jsonschema

    return bool(jsonschema.Draft202012Validator(PERSON).is_valid(json.loads(text)))


#: A request, and who judges its text.
REQUESTS: list[tuple[dict[str, Any], Callable[[str], bool]]] = [
    ({"regex": r"[0-9]{3}-[a-f]{2,9}"}, lambda text: bool(re.fullmatch(r"[0-9]{3}-[a-f]{2,9}", text))),
    ({"json_schema": PERSON}, _is_person),
    ({"choice": ["Zürich", "Genève", "Bern"]}, lambda text: text in ("Zürich", "Genève", "Bern")),
    ({"grammar": 'start: "a" ("+" "a")~2'}, lambda text: text == "a+a+a"),
    ({"gbnf": 'root ::= "x" [0-9] "y"'}, lambda text: bool(re.fullmatch("x[0-9]y", text))),
]


def save_tiny_llama(folder: Path) -> None:
    """Write a Llama with one layer, random weights and the tokenizer of Llama 3; skips where that is not there."""
    if not (TOKENIZERS / "llama3" / "tokenizer.json").is_file():
        pytest.skip("the tokenizer llama3 is not there")
    torch = pytest.importorskip("torch")
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=128_256, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=2048, bos_token_id=128_000, eos_token_id=[128_001, 128_009],
        tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(TOKENIZERS / "llama3").save_pretrained(folder)
