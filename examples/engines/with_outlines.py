"""Types through Outlines, with structgen's masks: ``python examples/engines/with_outlines.py NAME``."""

from __future__ import annotations

import sys
from typing import Any, Literal

import outlines
from pydantic import BaseModel, Field

from structgen.integrations.outlines import register


class Pet(BaseModel, extra="forbid"):
    """What the model is asked for."""

    name: str = Field(max_length=12)
    kind: Literal["cat", "dog", "other"]
    legs: int = Field(ge=0, le=8)


def main(model: Any) -> Pet:
    """Have an Outlines model write a `Pet`."""
    register()
    generator = outlines.Generator(model, Pet, backend="structgen")
    return Pet.model_validate_json(generator("A pet, as JSON: ", max_new_tokens=128))


if __name__ == "__main__":
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = sys.argv[1]
    loaded = AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name)
    print(main(outlines.from_transformers(*loaded)))
