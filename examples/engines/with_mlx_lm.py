"""A pet from mlx-lm: ``python examples/engines/with_mlx_lm.py FOLDER_OR_NAME``."""

from __future__ import annotations

import sys
from typing import Any

from mlx_lm import generate, load

import structgen as sg
from structgen.integrations.mlx_lm import LogitsProcessor, vocabulary

PET = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "legs": {"type": "integer", "minimum": 0, "maximum": 8},
    },
    "required": ["name", "legs"],
    "additionalProperties": False,
}


def main(model: Any, tokenizer: Any) -> str:
    """Have a loaded model write a JSON object."""
    processor = LogitsProcessor(sg.compile(sg.JsonSchema(PET), vocabulary(tokenizer)))
    text: str = generate(model, tokenizer, "A pet, as JSON: ", logits_processors=[processor], max_tokens=128)
    return text


if __name__ == "__main__":
    print(main(*load(sys.argv[1])))
